/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pieces of kernels that compute element by element: types, conversions, loads and stores. */
#ifndef CLEAVE_HOST_ARRAY_KERNEL_TEXT_H
#define CLEAVE_HOST_ARRAY_KERNEL_TEXT_H

#include "base/text.h"
#include "host/array/apply.h"

/* Returns the type of the kernel variable that holds an element. For float16 it is float, because float16 is computed
 * as float32. */
const char *clv_text_variable(clv_dtype type);
/* Begins a kernel's text: includes array/apply.clh. */
void clv_text_begin(clv_text *t, bool fp64);
/* Defines the functions that operations on this type call. */
void clv_text_functions(clv_text *t, clv_dtype compute);
/* Defines CT as the type in which the following operations compute. */
void clv_text_compute_in(clv_text *t, clv_dtype compute);
/* Writes an expression that converts the variable `name` from one type to another. */
void clv_text_convert(clv_text *t, const char *name, clv_dtype from, clv_dtype to);

/* Declares array number i: the parameters p<i>, o<i> and one stride per axis. The first lines of a kernel define `at`,
 * the index of the element in the result, and its coordinates c<axis>. */
void clv_text_array(clv_text *t, const clv_layout *l, size_t i, clv_dtype type, bool written);
void clv_text_number(clv_text *t, size_t i, clv_dtype compute); /* declares v<i> (and w<i>) */
void clv_text_places(clv_text *t, const clv_layout *l);
void clv_text_load(clv_text *t, const clv_layout *l, size_t i, clv_dtype type); /* defines l<i> */
/* Stores the variable `name` of the type `from` in an element of array number i. */
void clv_text_store(clv_text *t, const clv_layout *l, size_t i, clv_dtype type, const char *name,
                    clv_dtype from);

/* Each function below adds the kernel arguments for the parameters of an array or a number and returns their count. */
enum { TEXT_ARRAY_ARGS = 2 + CLV_ARRAY_RANK, TEXT_NUMBER_ARGS = 2 };
size_t clv_text_array_args(const clv_layout *l, size_t i, const clv_array *array, clv_arg *args);
size_t clv_text_number_args(const clv_operand *number, clv_dtype compute, clv_arg *args);
/* Launches one work-item per element. The kernel's name must be "clv_apply". */
clv_status clv_text_launch(clv_engine *engine, const clv_cl_source *source, size_t elements,
                           const clv_arg *args, size_t count);

#endif

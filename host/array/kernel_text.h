/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the kernels that compute element by element: types, conversions, loads and stores. */
#ifndef CLEAVE_HOST_ARRAY_KERNEL_TEXT_H
#define CLEAVE_HOST_ARRAY_KERNEL_TEXT_H

#include "base/text.h"
#include "host/array/apply.h"

/* Returns the type of a variable that holds an element: float16 is computed as float32. */
const char *clv_text_variable(clv_dtype type);
/* Begins a kernel's text: includes array/apply.clh. */
void clv_text_begin(clv_text *t, bool fp64);
/* Defines the functions that operations on this type call. */
void clv_text_functions(clv_text *t, clv_dtype compute);
/* Makes CT the type in which the operations that follow compute. */
void clv_text_compute_in(clv_text *t, clv_dtype compute);
/* Writes the variable `name` of one type, converted to another one, as an expression. */
void clv_text_convert(clv_text *t, const char *name, clv_dtype from, clv_dtype to);

/* Array number i is the parameters p<i>, o<i> and its strides; the kernel's first lines define `at`, the place of the
 * element in the result, and its coordinates c<axis>. */
void clv_text_array(clv_text *t, const clv_layout *l, size_t i, clv_dtype type, bool written);
void clv_text_number(clv_text *t, size_t i, clv_dtype compute); /* the parameters v<i> (and w<i>) */
void clv_text_places(clv_text *t, const clv_layout *l);
void clv_text_load(clv_text *t, const clv_layout *l, size_t i, clv_dtype type); /* defines l<i> */
/* Stores the variable `name` of the type `from` in an element of array number i. */
void clv_text_store(clv_text *t, const clv_layout *l, size_t i, clv_dtype type, const char *name,
                    clv_dtype from);

/* The arguments of these parameters; each function returns how many it has added. */
enum { TEXT_ARRAY_ARGS = 2 + CLV_ARRAY_RANK, TEXT_NUMBER_ARGS = 2 };
size_t clv_text_array_args(const clv_layout *l, size_t i, const clv_array *array, clv_arg *args);
size_t clv_text_number_args(const clv_operand *number, clv_dtype compute, clv_arg *args);
/* Launches one work-item per element; the kernel's name is "clv_apply". */
clv_status clv_text_launch(clv_engine *engine, const clv_cl_source *source, size_t elements,
                           const clv_arg *args, size_t count);

#endif

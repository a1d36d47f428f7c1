/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a program of clv_fuse_parse as a list of values, each of which is computed from earlier values. */
#ifndef CLEAVE_HOST_ARRAY_FUSE_H
#define CLEAVE_HOST_ARRAY_FUSE_H

#include "host/array/apply.h"

#include <cleave/array_fuse.h>

enum { FUSE_VALUES = 256, FUSE_ARRAYS = CLV_FUSE_INPUTS + CLV_FUSE_OUTPUTS };

typedef enum clv_fuse_kind {
    FUSE_INPUT,
    FUSE_NUMBER, /* a number in the text */
    FUSE_STEP    /* the result of an operation */
} clv_fuse_kind;

typedef struct clv_fuse_value {
    clv_fuse_kind kind;
    clv_dtype type;     /* of the value; the operation's result is converted to it */
    clv_operand number; /* has the value's type */
    unsigned which;     /* index of the input */
    /* FUSE_STEP only; the arguments are converted to `compute` */
    clv_op op;
    unsigned argument[CLV_OP_INPUTS];
    clv_dtype compute, result;
} clv_fuse_value;

struct clv_fused {
    size_t inputs, outputs, count;
    clv_dtype input_type[CLV_FUSE_INPUTS], output_type[CLV_FUSE_OUTPUTS];
    unsigned output[CLV_FUSE_OUTPUTS]; /* indices of values, which have the outputs' types */
    clv_fuse_value value[FUSE_VALUES];
    double flops; /* estimate per element */
    bool fp64, has_kernel;
    uint64_t hash; /* equal for programs with equal values */
};

/* ---- building a program: fuse_build.c ---- */

/* The meaning of an expression: a value, or a number of the text that has no type yet. */
typedef struct clv_fuse_term {
    enum { TERM_VALUE, TERM_WHOLE, TERM_REAL } is;
    unsigned value;
    int64_t whole;
    double real;
} clv_fuse_term;

/* Each function below adds an operation and returns CLV_E_FORMAT or CLV_E_UNSUPPORTED if the operands do not fit; the
 * message does not state the position in the text. */
clv_status clv_fuse_apply(clv_fused *f, clv_op op, const clv_fuse_term *terms, size_t count,
                          clv_fuse_term *out);
/* Adds the operator "/", which refuses integers. */
clv_status clv_fuse_quotient(clv_fused *f, const clv_fuse_term terms[2], clv_fuse_term *out);
clv_status clv_fuse_convert(clv_fused *f, const clv_fuse_term *from, clv_dtype to,
                            clv_fuse_term *out);
clv_status clv_fuse_power(clv_fused *f, const clv_fuse_term *base, const clv_fuse_term *exponent,
                          clv_fuse_term *out);
/* Adds the choice: terms[0] != 0 ? terms[1] : terms[2]. */
clv_status clv_fuse_choose(clv_fused *f, const clv_fuse_term terms[3], clv_fuse_term *out);
/* Fills in the fields that follow from the values: flops, fp64, has_kernel and hash. */
void clv_fuse_close(clv_fused *f);

/* ---- running a program ---- */

typedef struct clv_fusion {
    const clv_fused *program;
    clv_operand operand[CLV_FUSE_INPUTS];
    clv_array *array[FUSE_ARRAYS]; /* inputs (NULL: a number), directly followed by outputs */
    clv_layout layout;
} clv_fusion;

clv_status clv_fusion_host(const clv_fusion *f);                        /* fuse_host.c */
clv_status clv_fusion_enqueue(const clv_fusion *f, clv_engine *engine); /* fuse_kernel.c */

#endif

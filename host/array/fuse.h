/* SPDX-License-Identifier: Apache-2.0 */
/* A program of clv_fuse_parse as a list of values, each of which is computed from earlier ones. */
#ifndef CLEAVE_HOST_ARRAY_FUSE_H
#define CLEAVE_HOST_ARRAY_FUSE_H

#include "host/array/apply.h"

#include <cleave/array_fuse.h>

enum { FUSE_VALUES = 256, FUSE_ARRAYS = CLV_FUSE_INPUTS + CLV_FUSE_OUTPUTS };

typedef enum clv_fuse_kind {
    FUSE_INPUT,
    FUSE_NUMBER, /* from the text */
    FUSE_STEP    /* an operation */
} clv_fuse_kind;

typedef struct clv_fuse_value {
    clv_fuse_kind kind;
    clv_dtype type;     /* of the value; the result of a step is converted to it */
    clv_operand number; /* of its type */
    unsigned which;     /* input */
    /* steps: the arguments are converted to `compute` */
    clv_op op;
    unsigned argument[CLV_OP_INPUTS];
    clv_dtype compute, result;
} clv_fuse_value;

struct clv_fused {
    size_t inputs, outputs, count;
    clv_dtype input_type[CLV_FUSE_INPUTS], output_type[CLV_FUSE_OUTPUTS];
    unsigned output[CLV_FUSE_OUTPUTS]; /* values, of the outputs' types */
    clv_fuse_value value[FUSE_VALUES];
    double flops; /* per element, roughly */
    bool fp64, has_kernel;
    uint64_t hash; /* equal for programs of equal values */
};

/* ---- building a program: fuse_build.c ---- */

/* What an expression stands for: a value, or a number of the text that has no type yet. */
typedef struct clv_fuse_term {
    enum { TERM_VALUE, TERM_WHOLE, TERM_REAL } is;
    unsigned value;
    int64_t whole;
    double real;
} clv_fuse_term;

/* Each returns CLV_E_FORMAT or CLV_E_UNSUPPORTED with a message that names no position. */
clv_status clv_fuse_apply(clv_fused *f, clv_op op, const clv_fuse_term *terms, size_t count,
                          clv_fuse_term *out);
/* The operator "/", which refuses integers. */
clv_status clv_fuse_quotient(clv_fused *f, const clv_fuse_term terms[2], clv_fuse_term *out);
clv_status clv_fuse_convert(clv_fused *f, const clv_fuse_term *from, clv_dtype to,
                            clv_fuse_term *out);
clv_status clv_fuse_power(clv_fused *f, const clv_fuse_term *base, const clv_fuse_term *exponent,
                          clv_fuse_term *out);
/* terms[0] != 0 ? terms[1] : terms[2] */
clv_status clv_fuse_choose(clv_fused *f, const clv_fuse_term terms[3], clv_fuse_term *out);
/* Fills in what follows from the values. */
void clv_fuse_close(clv_fused *f);

/* ---- a run ---- */

typedef struct clv_fusion {
    const clv_fused *program;
    clv_operand operand[CLV_FUSE_INPUTS];
    clv_array *array[FUSE_ARRAYS]; /* inputs (NULL: a number), then outputs, without a gap */
    clv_layout layout;
} clv_fusion;

clv_status clv_fusion_host(const clv_fusion *f);                        /* fuse_host.c */
clv_status clv_fusion_enqueue(const clv_fusion *f, clv_engine *engine); /* fuse_kernel.c */

#endif

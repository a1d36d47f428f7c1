/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the cases of `cleave bench` that are operations on arrays: declares the arrays of a case, and one run of it. */
#ifndef CLEAVE_BENCH_COMMAND_ARRAYS_H
#define CLEAVE_BENCH_COMMAND_ARRAYS_H

#include "bench/command/bench.h"

#include <cleave/array_data.h>

/* The operations and what the sizes of their cases mean. bench/peers/arrays_numpy.py has the same list. */
typedef enum arrays_kind {
    ARRAYS_MATMUL,    /* rows, columns, inner extent */
    ARRAYS_BATCHED,   /* matrices, their side */
    ARRAYS_CONVOLVE,  /* height, width, side of the kernel */
    ARRAYS_GAUSSIAN,  /* height, width, radius */
    ARRAYS_NORMALIZE, /* rows, columns */
    ARRAYS_STEP,      /* rows, columns */
    ARRAYS_LOOP,      /* rows, columns, steps */
    ARRAYS_PI,        /* thousands of samples */
    ARRAYS_EIGVALSH,  /* matrices, their side */
    ARRAYS_EIGVALS,   /* matrices, their side */
    ARRAYS_MAP,       /* elements */
    ARRAYS_SUM,       /* rows, columns */
    ARRAYS_VAR,       /* rows, columns; variance along the axis of rows */
} arrays_kind;

enum { ARRAYS_MOST = 6 };

typedef struct arrays_trial {
    clv_context *context;
    const bench_case *c;
    float *memory[ARRAYS_MOST];    /* operands, then results */
    clv_array *array[ARRAYS_MOST]; /* `memory` as arrays, if the operation takes arrays */
} arrays_trial;

clv_status arrays_open(arrays_trial *t); /* fills the operands; call arrays_close in any case */
clv_status arrays_once(void *user, double *seconds); /* `user` is an arrays_trial */
void arrays_close(arrays_trial *t);

#endif

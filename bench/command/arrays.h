/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on arrays in `cleave bench`: a case's arrays in memory, and one run of it. */
#ifndef CLEAVE_BENCH_COMMAND_ARRAYS_H
#define CLEAVE_BENCH_COMMAND_ARRAYS_H

#include "bench/command/bench.h"

#include <cleave/array_data.h>

/* bench/peers/arrays_numpy.py has the same list. */
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
    ARRAYS_EIGVALS,   /* likewise */
    ARRAYS_MAP,       /* elements */
    ARRAYS_SUM,       /* rows, columns */
    ARRAYS_VAR,       /* likewise, along the rows' axis */
} arrays_kind;

enum { ARRAYS_MOST = 6 };

typedef struct arrays_trial {
    clv_context *context;
    const bench_case *c;
    float *memory[ARRAYS_MOST];    /* operands, then results */
    clv_array *array[ARRAYS_MOST]; /* the same, wrapped, if the operation takes arrays */
} arrays_trial;

clv_status arrays_open(arrays_trial *t); /* fills the operands; call arrays_close in any case */
clv_status arrays_once(void *user, double *seconds); /* an arrays_trial */
void arrays_close(arrays_trial *t);

#endif

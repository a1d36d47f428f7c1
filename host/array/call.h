/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on arrays: a clv_call whose operands are clv_arrays, brought to the side that does it. */
#ifndef CLEAVE_HOST_ARRAY_CALL_H
#define CLEAVE_HOST_ARRAY_CALL_H

#include "host/array/data.h"
#include "runtime/offload/call.h"

enum {
    CALL_ARRAYS = 16,
    CALL_SCRATCH = CALL_ARRAYS /* engine keys from here on are the operation's */
};

typedef struct clv_array_call {
    clv_call call; /* with its work, but for bytes, and `sample`; the ways are these: */
    clv_status (*host)(void *user);                       /* array->host */
    clv_status (*device)(clv_engine *engine, void *user); /* kernels get array->at */
    void *user;
    clv_array *array[CALL_ARRAYS]; /* no array twice, but an input may be an output */
    bool input[CALL_ARRAYS], output[CALL_ARRAYS];
    size_t count;
} clv_array_call;

void clv_array_call_add(clv_array_call *call, clv_array *array, bool input, bool output);
/* For a sample, too: fills in the ways, bytes and shape. The arrays have been added. */
void clv_array_call_close(clv_array_call *call);
/* For the public entry: takes the orders of its caller, checks the arrays, runs. */
clv_status clv_array_call_run(clv_context *context, clv_array_call *call);

/* log2, rounded down: sizes of one octave cost alike. */
unsigned clv_call_octave(size_t n);

/* ---- sample.c ------------------------------------------------------------------------------------ */

/* A sample on arrays: the operation's struct, its arrays, and its call, in one place. */
typedef struct clv_array_sample {
    clv_array_call call;
    clv_context *context;
    clv_array *array[CALL_ARRAYS];
    float *memory[CALL_ARRAYS];
    size_t count;
    max_align_t user[]; /* a copy of the operation's struct */
} clv_array_sample;

/* With a copy of the operation's struct, which is to get arrays of its own. NULL: no memory. */
clv_array_sample *clv_array_sample_begin(clv_context *context, const void *user, size_t bytes);
/* An array of these extents in host memory, filled with numbers from `low` on, up to 1000 steps of
 * `step`. */
clv_status clv_array_sample_add(clv_array_sample *sample, size_t rank, const size_t *shape,
                                float low, float step, clv_array **out);
/* Hands it over, its call closed; or, after a failure, frees it and passes that on. */
clv_status clv_array_sample_end(clv_array_sample *sample, clv_status status, clv_sample *out);

#endif

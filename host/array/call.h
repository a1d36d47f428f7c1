/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on arrays: a clv_call whose operands are clv_arrays, which are brought to the side that executes it. */
#ifndef CLEAVE_HOST_ARRAY_CALL_H
#define CLEAVE_HOST_ARRAY_CALL_H

#include "host/array/data.h"
#include "runtime/offload/call.h"

enum {
    CALL_ARRAYS = 16,
    CALL_SCRATCH = CALL_ARRAYS /* engine keys from here on belong to the operation */
};

typedef struct clv_array_call {
    clv_call call; /* its work without the bytes, and `sample`; the functions are these: */
    clv_status (*host)(void *user);                       /* uses array->host */
    clv_status (*device)(clv_engine *engine, void *user); /* its kernels get array->at */
    void *user;
    clv_array *array[CALL_ARRAYS]; /* each once, but an input may also be an output */
    bool input[CALL_ARRAYS], output[CALL_ARRAYS]; /* of the array's storage, for its first array */
    bool again[CALL_ARRAYS];                      /* an array before it has the same storage */
    size_t count;
    bool shares; /* results may share memory with operands: the operation takes care of it */
} clv_array_call;

void clv_array_call_add(clv_array_call *call, clv_array *array, bool input, bool output);
/* Fills in the functions, bytes and shape of a call, also of a sample's, once all arrays have been added. */
void clv_array_call_close(clv_array_call *call);
/* Runs a call for a public function: takes over its caller's settings, checks the arrays, runs. */
clv_status clv_array_call_run(clv_context *context, clv_array_call *call);

/* Returns log2, rounded down: sizes within one octave have similar costs. */
unsigned clv_call_octave(size_t n);

/* ---- sample.c ------------------------------------------------------------------------------------ */

/* A sample on arrays: the operation's struct, its arrays and its call in one block of memory. */
typedef struct clv_array_sample {
    clv_array_call call;
    clv_context *context;
    clv_array *array[CALL_ARRAYS];
    void *memory[CALL_ARRAYS];
    size_t count;
    max_align_t user[]; /* a copy of the operation's struct */
} clv_array_sample;

/* Begins a sample with a copy of the operation's struct, which then gets arrays of its own. NULL without memory. */
clv_array_sample *clv_array_sample_begin(clv_context *context, const void *user, size_t bytes);
/* Adds an array of these extents in host memory, filled with numbers from `low` on, up to 1000 steps of `step`. */
clv_status clv_array_sample_add(clv_array_sample *sample, size_t rank, const size_t *shape,
                                float low, float step, clv_array **out);
/* Adds an array of one axis of any type, filled with whole numbers from 1 to 7. */
clv_status clv_array_sample_add_typed(clv_array_sample *sample, clv_dtype type, size_t elements,
                                      clv_array **out);
/* Closes the sample's call and hands the sample over; after a failure, frees it and returns `status`. */
clv_status clv_array_sample_end(clv_array_sample *sample, clv_status status, clv_sample *out);

#endif

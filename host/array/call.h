/* SPDX-License-Identifier: Apache-2.0 */
/* Declares calls on arrays. Such a call is a clv_call whose operands are clv_arrays. The operands are brought to the
 * side that executes the call. */
#ifndef CLEAVE_HOST_ARRAY_CALL_H
#define CLEAVE_HOST_ARRAY_CALL_H

#include "host/array/data.h"
#include "runtime/offload/call.h"

enum {
    CALL_ARRAYS = 16,
    CALL_SCRATCH = CALL_ARRAYS, /* the operation's own engine keys start here */
    /* most elements that simple operations compute at once: the host takes about 1 us, less than any launch */
    CALL_AT_ONCE = 1024
};

typedef struct clv_array_call {
    /* the caller fills in `sample` and the work except the bytes, and the two functions below */
    clv_call call;
    clv_status (*host)(void *user);                       /* uses array->host */
    clv_status (*device)(clv_engine *engine, void *user); /* its kernels get array->at */
    void *user;
    clv_array *array[CALL_ARRAYS]; /* no array twice; an input may also be an output */
    /* how the call uses the array's storage; set for the storage's first array */
    bool input[CALL_ARRAYS], output[CALL_ARRAYS];
    bool again[CALL_ARRAYS]; /* an earlier array has the same storage */
    size_t count;
    /* results may share memory with operands: the operation handles the overlap itself */
    bool shares;
} clv_array_call;

void clv_array_call_add(clv_array_call *call, clv_array *array, bool input, bool output);
/* Fills in the functions, bytes and shape of a call or of a sample's call, after all arrays have been added. */
void clv_array_call_close(clv_array_call *call);
/* Runs a call for a public function: applies its caller's settings, checks the arrays, and executes the call. */
clv_status clv_array_call_run(clv_context *context, clv_array_call *call);

/* A call that takes less time on the host than describing it to clv_array_call_run. */
typedef struct clv_small_call {
    const char *operation;
    double flops, host_flops;      /* of the call; of the host per second */
    clv_array *array[CALL_ARRAYS]; /* the operands; the last one is the result */
    size_t count;
    clv_status (*host)(void *user); /* uses array->host */
    void *user;
} clv_small_call;

/* Computes a small call on the host at once, and sets *done, if all its arrays are in memory that the host can use and
 * nobody has asked for a side. Otherwise the call is one for clv_array_call_run. */
clv_status clv_array_call_at_once(clv_context *context, const clv_small_call *call, bool *done);
/* Returns log2(n), rounded down. Calls whose sizes lie within one factor of two cost about the same. */
unsigned clv_call_octave(size_t n);

/* ---- sample.c ------------------------------------------------------------------------------------ */

/* A sample on arrays: the operation's struct, its arrays and its call in one block of memory. */
typedef struct clv_array_sample {
    clv_array_call call;
    clv_context *context;
    clv_array *array[CALL_ARRAYS];
    void *memory[CALL_ARRAYS];
    size_t count;
    max_align_t user[]; /* a copy of the operation's struct follows */
} clv_array_sample;

/* Begins a sample with a copy of the operation's struct. The caller then replaces the arrays in the copy by the
 * sample's arrays. Returns NULL if memory runs out. */
clv_array_sample *clv_array_sample_begin(clv_context *context, const void *user, size_t bytes);
/* Adds an array of the given shape in host memory, filled with `low` + k * `step` for whole numbers k below 1000 in a
 * fixed, mixed order. */
clv_status clv_array_sample_add(clv_array_sample *sample, size_t rank, const size_t *shape,
                                float low, float step, clv_array **out);
/* Adds an array of one axis and any type, filled with whole numbers from 1 to 7. */
clv_status clv_array_sample_add_typed(clv_array_sample *sample, clv_dtype type, size_t elements,
                                      clv_array **out);
/* Closes the sample's call and hands the sample over to `out`. If `status` is a failure, frees the sample and returns
 * `status`. */
clv_status clv_array_sample_end(clv_array_sample *sample, clv_status status, clv_sample *out);

#endif

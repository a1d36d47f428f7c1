/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of clv_array: where its latest elements are. */
#ifndef CLEAVE_HOST_ARRAY_DATA_H
#define CLEAVE_HOST_ARRAY_DATA_H

#include "runtime/offload/engine.h"

#include <cleave/array_data.h>
#include <cleave/offload.h>

struct clv_array {
    clv_context *context;
    size_t rank, shape[CLV_ARRAY_AXES], elements;
    bool wraps;              /* `host` belongs to the caller and always has the elements */
    float *host;             /* owned arrays: allocated when needed */
    clv_buffer *buffer;      /* owned arrays only; allocated when needed */
    bool on_host, on_device; /* where the latest elements are; neither: undefined contents */
    clv_buffer *at;          /* during a call on the device: the kernels' argument */
    clv_side planned;        /* the side that the latest plan wrote it on; AUTO: none */
};

clv_status clv_array_check(const char *what, const clv_context *context, const clv_array *array);
size_t clv_array_bytes(const clv_array *array);
bool clv_array_overlap(const clv_array *a, const clv_array *b); /* share memory, and are not one */

/* Bring the elements to where the call needs them. For the device, the engine must be locked. */
clv_status clv_array_to_device(clv_array *array, clv_engine *engine, unsigned key, bool input,
                               bool output);
clv_status clv_array_to_host(clv_array *array, bool input);
/* Marks the array as written by a call on that side. */
void clv_array_written(clv_array *array, bool on_device);

#endif

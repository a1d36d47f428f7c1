/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array inside: where the latest elements are. */
#ifndef CLEAVE_HOST_ARRAY_DATA_H
#define CLEAVE_HOST_ARRAY_DATA_H

#include "runtime/offload/engine.h"

#include <cleave/array_data.h>
#include <cleave/offload.h>

struct clv_array {
    clv_context *context;
    size_t rank, shape[CLV_ARRAY_AXES], elements;
    bool wraps;              /* `host` is the caller's, and the only home */
    float *host;             /* owned: made when needed */
    clv_buffer *buffer;      /* owned arrays only; made when needed */
    bool on_host, on_device; /* whose elements are the latest; neither: undefined contents */
    clv_buffer *at;          /* during a call on the device: what kernels get */
    clv_side planned;        /* who would have written it, by the latest plan; AUTO: nobody */
};

clv_status clv_array_check(const char *what, const clv_context *context, const clv_array *array);
size_t clv_array_bytes(const clv_array *array);
bool clv_array_overlap(const clv_array *a, const clv_array *b); /* share memory, and are not one */

/* Makes the elements be where the call needs them. For the device the engine is locked. */
clv_status clv_array_to_device(clv_array *array, clv_engine *engine, unsigned key, bool input,
                               bool output);
clv_status clv_array_to_host(clv_array *array, bool input);
/* The call wrote it there. */
void clv_array_written(clv_array *array, bool on_device);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces arrays along the middle axis of [outer, len, inner], for operations that contain reductions. */
#ifndef CLEAVE_HOST_ARRAY_REDUCE_H
#define CLEAVE_HOST_ARRAY_REDUCE_H

#include "runtime/offload/engine.h"

#include <cleave/array_math.h>

typedef struct clv_reduce_shape {
    size_t outer, len, inner;
} clv_reduce_shape;

/* Number of engine keys that clv_reduce_enqueue uses. */
enum { REDUCE_KEYS = 3 };

clv_status clv_reduce_enqueue(clv_engine *engine, unsigned key, clv_reduction what,
                              const clv_reduce_shape *shape, const clv_buffer *in, clv_buffer *out);
clv_status clv_reduce_host(clv_reduction what, const clv_reduce_shape *shape, const float *in,
                           float *out);

/* Returns the number of elements in a block. It depends only on the length, and therefore so does the order of a
 * sum. */
size_t clv_reduce_block(const clv_reduce_shape *shape);
/* Computes 1 / n as the sum of two floats. */
void clv_reduce_scale(size_t n, float *high, float *low);

#endif

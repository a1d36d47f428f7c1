/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues matrix products on the engine's device, for operations that consist of products. */
#ifndef CLEAVE_HOST_ARRAY_PRODUCT_H
#define CLEAVE_HOST_ARRAY_PRODUCT_H

#include "runtime/blas/gemm.h"
#include "runtime/offload/engine.h"

#include <cleave/array_math.h>

/* Enqueues a product. C is [batch,m,n] and dense; `key` is the engine key of the scratch memory. */
clv_status clv_product_enqueue(clv_engine *engine, unsigned key, size_t m, size_t n, size_t k,
                               size_t batch, const clv_matrix *a, const clv_matrix *b,
                               clv_buffer *c);

#endif

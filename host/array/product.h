/* SPDX-License-Identifier: Apache-2.0 */
/* Products on the engine's device, for operations made of them. */
#ifndef CLEAVE_HOST_ARRAY_PRODUCT_H
#define CLEAVE_HOST_ARRAY_PRODUCT_H

#include "runtime/blas/gemm.h"
#include "runtime/offload/engine.h"

#include <cleave/array_math.h>

/* C [batch,m,n], dense; `key` is one engine key. */
clv_status clv_product_enqueue(clv_engine *engine, unsigned key, size_t m, size_t n, size_t k,
                               size_t batch, const clv_matrix *a, const clv_matrix *b,
                               clv_buffer *c);

#endif

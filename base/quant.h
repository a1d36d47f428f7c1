/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of quantised weights: their values. Sizes are clv_quant_get_facts of <cleave/gguf.h>. */
#ifndef CLEAVE_BASE_QUANT_H
#define CLEAVE_BASE_QUANT_H

#include <cleave/gguf.h>

/* Values of `blocks` blocks of a supported type, one after the other; `bytes` may lie anywhere. */
void clv_quant_widen(clv_quant type, const void *bytes, size_t blocks, float *out);

/* The sixteen values of IQ4_NL and IQ4_XS. */
extern const int8_t clv_quant_uneven[16];

#endif

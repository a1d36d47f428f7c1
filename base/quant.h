/* SPDX-License-Identifier: Apache-2.0 */
/* Converts blocks of quantised weights to floats. For block sizes see clv_quant_get_facts in <cleave/gguf.h>. */
#ifndef CLEAVE_BASE_QUANT_H
#define CLEAVE_BASE_QUANT_H

#include <cleave/gguf.h>

/* Writes the values of `blocks` consecutive blocks of a supported type. `bytes` need not be aligned. */
void clv_quant_widen(clv_quant type, const void *bytes, size_t blocks, float *out);

/* The sixteen values that the four-bit codes of IQ4_NL and IQ4_XS stand for. */
extern const int8_t clv_quant_uneven[16];

#endif

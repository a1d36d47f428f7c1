/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as devices keep them: see cl/common/quants.clh. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_LAYOUT_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_LAYOUT_H

#include "host/transformer/generate/model.h"

/* Return how many weights a block has on devices (floats have blocks too), and the bytes of one block of 16
 * interleaved rows. */
size_t clv_lm_block(clv_quant type);
size_t clv_lm_block_bytes(clv_quant type);

/* Return the rows rounded up to whole groups of 16, the blocks that cover the columns, and the bytes of a
 * matrix of both. */
size_t clv_lm_padded_rows(size_t rows);
size_t clv_lm_blocks(clv_quant type, size_t columns);
uint64_t clv_lm_matrix_bytes(clv_quant type, size_t rows, size_t columns);

/* Interleaves `count` rows (at most 16) of `columns` weights in a file's own layout, `row_bytes` apart. Rows
 * and columns beyond them become zeros. */
void clv_lm_interleave(clv_quant type, const void *rows, size_t row_bytes, size_t count,
                       size_t columns, void *out);

#endif

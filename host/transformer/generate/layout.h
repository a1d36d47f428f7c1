/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as devices keep them: see cl/common/quants.clh. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_LAYOUT_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_LAYOUT_H

#include "host/transformer/generate/model.h"

/* Weights of a block on devices (floats have blocks too), and bytes of one of 16 interleaved rows. */
size_t clv_lm_block(clv_quant type);
size_t clv_lm_block_bytes(clv_quant type);

/* Rows in whole groups of 16, columns in whole blocks; bytes of a matrix. */
size_t clv_lm_padded_rows(size_t rows);
size_t clv_lm_blocks(clv_quant type, size_t columns);
uint64_t clv_lm_matrix_bytes(clv_quant type, size_t rows, size_t columns);

/* Interleaves `count` rows (at most 16) of `columns` weights as they lie in a file, `row_bytes` apart; rows
 * and columns beyond are zeros. */
void clv_lm_interleave(clv_quant type, const void *rows, size_t row_bytes, size_t count,
                       size_t columns, void *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the conversion of weights to their layout on devices: see cl/common/quants.clh. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_LAYOUT_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_LAYOUT_H

#include "host/transformer/generate/model.h"

/* The first function returns the number of weights in a block on devices, where floats form blocks, too. The second
 * returns the bytes of one block of 16 interleaved rows. */
size_t clv_lm_block(clv_quant type);
size_t clv_lm_block_bytes(clv_quant type);

/* The three functions return the number of rows rounded up to whole groups of 16, the number of blocks that cover the
 * columns, and the bytes of a matrix of these rows and blocks. */
size_t clv_lm_padded_rows(size_t rows);
size_t clv_lm_blocks(clv_quant type, size_t columns);
uint64_t clv_lm_matrix_bytes(clv_quant type, size_t rows, size_t columns);

/* Interleaves `count` rows (at most 16) of `columns` weights, which have the layout of a file and are `row_bytes`
 * apart. Rows beyond `count` and columns beyond `columns` become zeros. */
void clv_lm_interleave(clv_quant type, const void *rows, size_t row_bytes, size_t count,
                       size_t columns, void *out);

#endif

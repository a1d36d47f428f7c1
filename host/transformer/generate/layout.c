/* SPDX-License-Identifier: Apache-2.0 */
/* Converts weights to the layout on devices, in which groups of 16 rows of blocks are interleaved word by word. Only
 * the order of the bytes changes. */
#include "host/transformer/generate/layout.h"

#include "base/alloc.h"
#include "cl/common/shared.clh"

#include <string.h>

#define SAME(type, of_kernels) _Static_assert((int)(type) == (of_kernels), "shared.clh")
SAME(CLV_QUANT_F32, Q_F32);
SAME(CLV_QUANT_F16, Q_F16);
SAME(CLV_QUANT_Q4_0, Q4_0);
SAME(CLV_QUANT_Q4_1, Q4_1);
SAME(CLV_QUANT_Q5_0, Q5_0);
SAME(CLV_QUANT_Q5_1, Q5_1);
SAME(CLV_QUANT_Q8_0, Q8_0);
SAME(CLV_QUANT_Q2_K, Q2_K);
SAME(CLV_QUANT_Q3_K, Q3_K);
SAME(CLV_QUANT_Q4_K, Q4_K);
SAME(CLV_QUANT_Q5_K, Q5_K);
SAME(CLV_QUANT_Q6_K, Q6_K);
SAME(CLV_QUANT_IQ4_NL, IQ4_NL);
SAME(CLV_QUANT_IQ4_XS, IQ4_XS);
SAME(CLV_QUANT_BF16, Q_BF16);

enum { LANES = CLV_LM_LANES, WORD = 4, HALF = 2 };

static bool is_float(clv_quant type)
{
    return type == CLV_QUANT_F32 || type == CLV_QUANT_F16 || type == CLV_QUANT_BF16;
}

size_t clv_lm_block(clv_quant type)
{
    return is_float(type) ? CLV_LM_PAD : clv_quant_get_facts(type)->count;
}

size_t clv_lm_block_bytes(clv_quant type)
{
    const size_t bytes = clv_quant_get_facts(type)->bytes;
    return LANES * (is_float(type) ? CLV_LM_PAD * bytes : bytes);
}

size_t clv_lm_padded_rows(size_t rows)
{
    return clv_round_up(rows, LANES);
}

size_t clv_lm_blocks(clv_quant type, size_t columns)
{
    const size_t block = clv_lm_block(type);
    return (columns + block - 1) / block;
}

uint64_t clv_lm_matrix_bytes(clv_quant type, size_t rows, size_t columns)
{
    return (uint64_t)clv_lm_padded_rows(rows) / LANES * clv_lm_blocks(type, columns) *
           clv_lm_block_bytes(type);
}

/* The layout of a block in a file: its 4-byte words, and its scale, a half that belongs to none of these words. */
typedef struct parts {
    size_t bytes, words, first_word;
    size_t half; /* offset of this half; SIZE_MAX: the block has none */
} parts;

static parts parts_of(clv_quant type)
{
    const size_t bytes = clv_quant_get_facts(type)->bytes;
    if (is_float(type))
        return (parts){ CLV_LM_PAD * bytes, CLV_LM_PAD * bytes / WORD, 0, SIZE_MAX };
    if (bytes % WORD == 0) return (parts){ bytes, bytes / WORD, 0, SIZE_MAX };
    const bool behind = type == CLV_QUANT_Q3_K || type == CLV_QUANT_Q6_K;
    return (parts){ bytes, bytes / WORD, behind ? 0 : HALF, behind ? bytes - HALF : 0 };
}

static void interleave_block(const parts *p, const uint8_t *const rows[LANES], uint8_t *out)
{
    if (p->half != SIZE_MAX) {
        for (size_t r = 0; r < LANES; ++r)
            memcpy(out + HALF * r, rows[r] + p->half, HALF);
        out += HALF * LANES;
    }
    for (size_t w = 0, at = p->first_word; w < p->words; ++w, at += WORD)
        for (size_t r = 0; r < LANES; ++r, out += WORD)
            memcpy(out, rows[r] + at, WORD);
}

void clv_lm_interleave(clv_quant type, const void *data, size_t row_bytes, size_t count,
                       size_t columns, void *out)
{
    static const uint8_t zeros[256 * 4]; /* the size of the longest block */
    const parts p = parts_of(type);
    const uint8_t *from = data, *rows[LANES];
    uint8_t *to = out, last[LANES][CLV_LM_PAD * 4];
    const size_t blocks = clv_lm_blocks(type, columns), step = clv_lm_block_bytes(type);
    for (size_t b = 0; b < blocks; ++b, to += step) {
        const size_t at = b * p.bytes, left = row_bytes - at;
        for (size_t r = 0; r < LANES; ++r)
            rows[r] = r < count ? from + r * row_bytes + at : zeros;
        for (size_t r = 0; r < count && left < p.bytes; ++r) { /* floats may end within a block */
            memset(last[r], 0, p.bytes);
            memcpy(last[r], rows[r], left);
            rows[r] = last[r];
        }
        interleave_block(&p, rows, to);
    }
}

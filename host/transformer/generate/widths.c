/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the padded row lengths of a language model on a device, and the device memory for the keys and values of a
 * token and for a step. */
#include "host/transformer/generate/part.h"

#include "base/alloc.h"

clv_lm_widths clv_lm_widths_of(const clv_lm_config *c)
{
    const size_t q = clv_lm_padded_rows(c->heads * c->head);
    const size_t kv = clv_lm_padded_rows(c->kv_heads * c->head);
    return (clv_lm_widths){ .x = clv_lm_padded_rows(c->width),
                            .q = q,
                            .kv = kv,
                            .qkv = q + 2 * kv,
                            .seen = q,
                            .ffn = clv_lm_padded_rows(c->ffn),
                            .vocabulary = clv_lm_padded_rows(c->vocabulary) };
}

uint64_t clv_lm_cache_bytes(const clv_lm_config *c, bool half)
{
    return 2 * (uint64_t)c->kv_heads * clv_round_up(c->head, 16) * (half ? 2 : 4);
}

uint64_t clv_lm_work_bytes(const clv_lm_config *c, size_t rows)
{
    const clv_lm_widths w = clv_lm_widths_of(c);
    const size_t few = CLV_MIN(rows, (size_t)CLV_LM_FEW);
    return 4 * ((uint64_t)rows * (2 * w.x + w.qkv + w.seen + 3 * w.ffn) +
                few * (w.vocabulary + clv_lm_parts_floats(c))) +
           ((uint64_t)8 << 20);
}

size_t clv_lm_parts_floats(const clv_lm_config *c)
{
    return CLV_LM_SPLITS_MOST * c->heads * (2 + c->head);
}

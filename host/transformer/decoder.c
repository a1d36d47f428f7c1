/* SPDX-License-Identifier: Apache-2.0 */
/* Launches one decoder layer on a device. */
#include "host/transformer/decoder.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

static clv_gemm product(const clv_decoder_layer *l, size_t rows, size_t n, size_t k, clv_buffer *a,
                        size_t weight, clv_buffer *c, size_t c_offset, bool adds)
{
    return (clv_gemm){ .m = rows,
                       .n = n,
                       .k = k,
                       .a = { a, 0, k, 1, 0 },
                       .b = { l->weights, weight, 1, k, 0 },
                       .c = { c, c_offset, n, 1, 0 },
                       .b_packed = l->packed,
                       .any_order = true,
                       .alpha = 1,
                       .beta = adds ? 1 : 0 };
}

size_t clv_decoder_scratch(const clv_decoder_layer *l, size_t rows)
{
    const size_t kv = l->width / l->heads * l->kv_heads;
    const size_t sides[][2] = {
        { l->width, l->width }, { kv, l->width }, { 2 * l->ffn, l->width }, { l->width, l->ffn }
    };
    size_t most = 1;
    /* fewer rows may require more scratch, because several work-groups then share a sum */
    const size_t numbers[] = { rows, CLV_MIN(rows, (size_t)CLV_GEMM_FEW) };
    for (size_t i = 0; i < CLV_LEN(sides); ++i)
        for (size_t n = 0; n < CLV_LEN(numbers); ++n) {
            const clv_gemm g = product(l, numbers[n], sides[i][0], sides[i][1], NULL, 0, NULL, 0,
                                       sides[i][0] == l->width);
            most = CLV_MAX(most, clv_gemm_scratch(l->form, &g));
        }
    return most;
}

size_t clv_decoder_parts(const clv_device *device, const clv_decoder_layer *l, size_t rows,
                         size_t keys)
{
    clv_attention_call a = { .block_count = 1,
                             .heads = l->heads,
                             .kv_heads = l->kv_heads,
                             .width = l->width / l->heads,
                             .longest = keys };
    size_t most = 1;
    for (a.few = 1; a.few <= CLV_MIN(rows, (size_t)CLV_GEMM_FEW); ++a.few)
        most = CLV_MAX(most, clv_attention_parts(device, &a));
    return most;
}

static clv_status normalise(clv_queue *queue, const clv_decoder_layer *l, clv_buffer *x,
                            size_t weight, clv_buffer *y, size_t rows)
{
    const clv_norm n = { .x = { x, 0, l->width },
                         .y = { y, 0, l->width },
                         .parameters = l->weights,
                         .weight = weight,
                         .rows = rows,
                         .width = l->width,
                         .eps = l->eps,
                         .rms = true };
    return clv_norm_enqueue(queue, &n);
}

clv_status clv_decoder_layer_enqueue(clv_queue *queue, const clv_decoder_layer *l,
                                     const clv_decoder_room *r, const clv_buffer *blocks,
                                     size_t first, size_t rows, clv_buffer *x)
{
    const clv_block_form form = clv_block_form_of(clv_queue_device(queue));
    const size_t d = l->width, head = d / l->heads, kv = head * l->kv_heads;
    const clv_gemm steps[] = {
        product(l, rows, d, d, r->h, l->q, r->q, 0, false),
        product(l, rows, kv, d, r->h, l->k, l->keys, first * kv, false),
        product(l, rows, kv, d, r->h, l->v, l->values, first * kv, false),
        product(l, rows, d, d, r->seen, l->out, x, 0, true),
        product(l, rows, 2 * l->ffn, d, r->h, l->gate_up, r->inner, 0, false),
        product(l, rows, d, l->ffn, r->gated, l->down, x, 0, true),
    };
    const clv_rows q = { r->q, 0, d }, k = { l->keys, first * kv, kv };
    const clv_attention_call a = { .q = { r->q, 0, d, head },
                                   .k = { l->keys, 0, kv, head },
                                   .v = { l->values, 0, kv, head },
                                   .o = { r->seen, 0, d, head },
                                   .blocks = blocks,
                                   .block_count = clv_attention_block_count(&form, rows),
                                   .causal = true,
                                   .heads = l->heads,
                                   .kv_heads = l->kv_heads,
                                   .width = head,
                                   .scale = (float)(1 / sqrt((double)head)),
                                   .longest = first + rows,
                                   .few = rows <= CLV_GEMM_FEW ? rows : 0,
                                   .parts = r->parts };
    CLV_TRY(normalise(queue, l, x, l->norm1, r->h, rows));
    for (size_t i = 0; i < 3; ++i)
        CLV_TRY(clv_gemm_enqueue(queue, l->form, &steps[i], r->scratch, NULL));
    CLV_TRY(clv_rope_enqueue(queue, &q, l->turns, first, rows, l->heads, head / 2));
    CLV_TRY(clv_rope_enqueue(queue, &k, l->turns, first, rows, l->kv_heads, head / 2));
    CLV_TRY(clv_attention_enqueue(queue, &a));
    CLV_TRY(clv_gemm_enqueue(queue, l->form, &steps[3], r->scratch, NULL));
    CLV_TRY(normalise(queue, l, x, l->norm2, r->h, rows));
    CLV_TRY(clv_gemm_enqueue(queue, l->form, &steps[4], r->scratch, NULL));
    CLV_TRY(clv_gate_enqueue(queue, r->inner, rows, l->ffn, CLV_ACTIVATION_SILU, r->gated));
    return clv_gemm_enqueue(queue, l->form, &steps[5], r->scratch, NULL);
}

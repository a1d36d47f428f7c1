/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads matrices and vectors to a device; matrices are packed once for the device's products. */
#include "host/transformer/weights.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "host/transformer/blocks.h"
#include "runtime/device/queue.h"

static size_t count_of(size_t n, size_t k)
{
    return n * CLV_MAX(k, (size_t)1);
}

size_t clv_weight_room(const clv_gemm_form *form, size_t n, size_t k)
{
    const size_t packed = k ? clv_gemm_packed_b(form, n, k) : 0;
    return clv_round_up(packed ? packed : count_of(n, k), 16);
}

/* Writes a matrix as halves without changing its layout, for forms of products that do not pack. */
static clv_status bring_halves(clv_queue *queue, const float *host, size_t count, clv_buffer *to,
                               size_t at)
{
    uint16_t *halves = clv_alloc(count, sizeof *halves);
    if (!halves)
        return clv_fail(CLV_E_MEMORY, "weights: not enough memory for %zu float16 weights", count);
    for (size_t i = 0; i < count; ++i)
        halves[i] = clv_half_of(host[i]);
    const clv_status status =
        clv_write(queue, to, at * sizeof *halves, halves, count * sizeof *halves);
    clv_free(halves);
    return status;
}

clv_status clv_weight_bring(clv_queue *queue, const clv_gemm_form *form, bool half,
                            const clv_weight_piece *p, clv_buffer *to, size_t at)
{
    clv_buffer *raw = NULL;
    const size_t count = count_of(p->n, p->k), bytes = count * sizeof *p->host;
    if (!p->k || !clv_gemm_packed_b(form, p->n, p->k))
        return half && p->k ? bring_halves(queue, p->host, count, to, at)
                            : clv_write(queue, to, at * sizeof *p->host, p->host, bytes);
    CLV_TRY(clv_buffer_create(clv_queue_device(queue), bytes, CLV_BUFFER_DEVICE, &raw));
    const clv_matrix b = { raw, 0, 1, p->k, 0 };
    clv_status status = clv_write(queue, raw, 0, p->host, bytes);
    if (!status)
        status = (half ? clv_gemm_pack_b_half_enqueue
                       : clv_gemm_pack_b_enqueue)(queue, form, p->n, p->k, 1, &b, to, at);
    status = clv_queue_finish(queue, status);
    clv_buffer_free(raw);
    return status;
}

typedef struct filling {
    const clv_gemm_form *form;
    const clv_weight_piece *pieces;
    size_t count;
    const size_t *at;
} filling;

static clv_status fill(clv_queue *queue, clv_buffer *to, const void *user)
{
    const filling *f = user;
    for (size_t i = 0; i < f->count; ++i)
        CLV_TRY(clv_weight_bring(queue, f->form, false, &f->pieces[i], to, f->at[i]));
    return CLV_OK;
}

clv_status clv_weights_get(clv_queue *queue, const clv_gemm_form *form, const void *owner,
                           size_t part, const clv_weight_piece *pieces, size_t count, size_t *at,
                           clv_kept_tensor **out)
{
    const filling f = { form, pieces, count, at };
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
        at[i] = used;
        used += clv_weight_room(form, pieces[i].n, pieces[i].k);
    }
    return clv_tensor_get(queue, owner, part, used * sizeof(float), fill, &f, out);
}

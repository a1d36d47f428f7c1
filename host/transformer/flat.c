/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_attention_f32 and clv_ffn_f32: transformer blocks on plain arrays, for code generators. */
#include "host/transformer/blocks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "runtime/offload/call.h"

#include <math.h>

enum { Q = 4, K, V, O, MASK, BLOCKS, SCRATCH, X, W1, B1, W2, B2, INNER, Y, PACK };
enum { MOST_WIDTH = 256 };

/* Runs a call on a device if one works, without timing host and device against each other. With `nothing`, there is
 * nothing to compute, and the call runs on the host. */
static clv_status run(clv_context *context, clv_call *call, bool nothing)
{
    call->untimed = true;
    if (nothing) call->host_only = "host: there is nothing to compute";
    clv_call_take_orders(call);
    return clv_call_run(context, call);
}

/* ---- attention ---------------------------------------------------------------------------------- */

/* Computes the numbers of elements of the arrays; returns false if one exceeds the range of the kernels' indices. */
static bool extents(const clv_attention_shape *s, size_t kv_heads, size_t *q, size_t *k)
{
    size_t heads, row;
    return clv_size_mul(s->batch, s->heads, &heads) && clv_size_mul(s->queries, s->width, &row) &&
           clv_size_mul(heads, row, q) && clv_size_mul(s->batch, kv_heads, &heads) &&
           clv_size_mul(s->keys, s->width, &row) && clv_size_mul(heads, row, k) && *q < INT32_MAX &&
           *k < INT32_MAX;
}

typedef struct attention {
    const clv_attention_shape *shape;
    size_t kv_heads, q_count, k_count;
    float scale;
    const float *q, *k, *v;
    const int32_t *mask;
    float *o;
    clv_attention_block *list; /* the device's blocks; allocated until the call is over */
} attention;

static clv_status attention_on_host(void *user)
{
    const attention *t = user;
    const clv_attention_shape *s = t->shape;
    const size_t kv_heads = t->kv_heads;
    const float scale = t->scale, *q = t->q, *k = t->k, *v = t->v;
    const int32_t *mask = t->mask;
    float *o = t->o;
    double *p = clv_alloc(s->keys + 1, sizeof *p);
    if (!p) return clv_fail(CLV_E_MEMORY, "attention: not enough memory for %zu keys", s->keys);
    for (size_t at = 0; at < s->batch * s->heads * s->queries; ++at) {
        const size_t i = at % s->queries, h = at / s->queries % s->heads;
        const size_t b = at / s->queries / s->heads;
        const size_t kv = (b * kv_heads + h / (s->heads / kv_heads)) * s->keys * s->width;
        double top = -INFINITY, sum = 0;
        for (size_t j = 0; j < s->keys; ++j) {
            double score = 0;
            for (size_t c = 0; c < s->width; ++c)
                score += (double)q[at * s->width + c] * (double)k[kv + j * s->width + c];
            const bool seen =
                (!mask || mask[b * s->keys + j]) && (!s->causal || j + s->queries <= i + s->keys);
            p[j] = seen ? score * (double)scale : -INFINITY;
            top = fmax(top, p[j]);
        }
        const double from =
            top > -INFINITY ? top : 0; /* 0: no key is seen, or no score is a number */
        for (size_t j = 0; j < s->keys; ++j)
            sum += p[j] = exp(p[j] - from);
        for (size_t c = 0; c < s->width; ++c) {
            double value = 0;
            for (size_t j = 0; j < s->keys; ++j)
                value += p[j] * (double)v[kv + j * s->width + c];
            o[at * s->width + c] = sum != 0 ? (float)(value / sum) : 0;
        }
    }
    clv_free(p);
    return CLV_OK;
}

static clv_status bring_blocks(clv_engine *engine, const clv_attention_shape *s, size_t kv_heads,
                               clv_attention_call *call, clv_attention_block **list)
{
    const clv_block_form form = clv_block_form_of(clv_queue_device(engine->queue));
    const size_t each = clv_attention_block_count(&form, s->queries);
    clv_buffer *blocks;
    call->block_count = s->batch * each;
    *list = clv_alloc(call->block_count, sizeof **list);
    if (!*list)
        return clv_fail(CLV_E_MEMORY, "attention: not enough memory for %zu blocks",
                        call->block_count);
    /* one row holds one head of a token: each sequence of q begins heads * queries rows after the previous one */
    for (size_t b = 0; b < s->batch; ++b)
        clv_attention_fill(&form,
                           (clv_attention_block){ .query = (int32_t)(b * s->heads * s->queries),
                                                  .queries = (int32_t)s->queries,
                                                  .key = (int32_t)(b * kv_heads * s->keys),
                                                  .keys = (int32_t)s->keys,
                                                  .mask = (int32_t)(b * s->keys) },
                           *list + b * each);
    CLV_TRY(clv_engine_bring(engine, BLOCKS, *list, call->block_count * sizeof **list, true, false,
                             &blocks));
    call->blocks = blocks;
    return CLV_OK;
}

static clv_status attention_on_device(clv_engine *engine, void *user)
{
    attention *t = user;
    const clv_attention_shape *s = t->shape;
    clv_attention_call a = { .q = { .row = s->width, .head = s->queries * s->width },
                             .k = { .row = s->width, .head = s->keys * s->width },
                             .v = { .row = s->width, .head = s->keys * s->width },
                             .o = { .row = s->width, .head = s->queries * s->width },
                             .causal = s->causal,
                             .heads = s->heads,
                             .kv_heads = t->kv_heads,
                             .width = s->width,
                             .scale = t->scale,
                             .longest = CLV_MAX(s->queries, s->keys) };
    const size_t q = t->q_count * sizeof *t->q, k = t->k_count * sizeof *t->k;
    clv_buffer *seen = NULL;
    CLV_TRY(clv_attention_check(clv_queue_device(engine->queue), s->keys, s->width));
    CLV_TRY(clv_engine_bring(engine, Q, t->q, q, true, false, &a.q.buffer));
    CLV_TRY(clv_engine_bring(engine, K, t->k, k, true, false, &a.k.buffer));
    CLV_TRY(clv_engine_bring(engine, V, t->v, k, true, false, &a.v.buffer));
    CLV_TRY(clv_engine_bring(engine, O, t->o, q, false, true, &a.o.buffer));
    if (t->mask)
        CLV_TRY(clv_engine_bring(engine, MASK, t->mask, s->batch * s->keys * sizeof *t->mask, true,
                                 false, &seen));
    a.mask = seen;
    CLV_TRY(bring_blocks(engine, s, t->kv_heads, &a, &t->list));
    return clv_attention_enqueue(engine->queue, &a);
}

clv_status clv_attention_f32(clv_context *context, const clv_attention_shape *shape, const float *q,
                             const float *k, const float *v, const int32_t *mask, float *o)
{
    if (!context || !shape || !q || !k || !v || !o)
        return clv_fail(CLV_E_ARGUMENT, "attention: context, shape, q, k, v or o is NULL");
    clv_attention_shape own;
    CLV_TRY(clv_take_struct(&own, sizeof own, shape, "clv_attention_f32", "clv_attention_shape"));
    const clv_attention_shape *s = &own;
    attention t = { .shape = s,
                    .kv_heads = s->kv_heads ? s->kv_heads : s->heads,
                    .q = q,
                    .k = k,
                    .v = v,
                    .mask = mask,
                    .o = o };
    if (!s->width || s->width > MOST_WIDTH || !t.kv_heads || s->heads % t.kv_heads ||
        !extents(s, t.kv_heads, &t.q_count, &t.k_count))
        return clv_fail(CLV_E_SHAPE,
                        "attention: got %zu texts, %zu heads of width %zu, %zu key heads, %zu "
                        "queries and %zu keys, but the width must be 1 to %d, the key heads must "
                        "divide the heads, and arrays must have fewer than 2^31 elements",
                        s->batch, s->heads, s->width, t.kv_heads, s->queries, s->keys, MOST_WIDTH);
    if (!t.q_count) return CLV_OK;
    t.scale = s->scale != 0 ? s->scale : (float)(1 / sqrt((double)s->width));
    clv_call call = { .operation = "attention",
                      .work = { .flops = 4 * (double)t.q_count * (double)s->keys,
                                .bytes = sizeof(float) *
                                         (2.0 * (double)t.q_count + 2.0 * (double)t.k_count) },
                      .host = attention_on_host,
                      .device = attention_on_device,
                      .user = &t };
    call.work.transfer_bytes = call.work.bytes;
    const clv_status status = run(context, &call, !s->keys);
    clv_free(t.list);
    return status;
}

/* ---- feed forward --------------------------------------------------------------------------------- */

/* Enqueues y = act(x W^T + b) on the engine, with W [n,k] in `w`. */
static clv_status linear(clv_engine *engine, size_t m, size_t n, size_t k, clv_buffer *x,
                         clv_buffer *w, clv_buffer *bias, clv_activation activation, clv_buffer *y)
{
    clv_gemm_form form;
    clv_buffer *scratch;
    const clv_gemm g = { .m = m,
                         .n = n,
                         .k = k,
                         .a = { x, 0, k, 1, 0 },
                         .b = { w, 0, 1, k, 0 },
                         .c = { y, 0, n, 1, 0 },
                         .alpha = 1,
                         .bias = bias,
                         .activation = activation };
    CLV_TRY(clv_gemm_choose_once(engine->context, engine->queue, &g, &form));
    CLV_TRY(
        clv_engine_scratch(engine, SCRATCH, clv_gemm_scratch(&form, &g) * sizeof(float), &scratch));
    return clv_gemm_enqueue(engine->queue, &form, &g, scratch, NULL);
}

typedef struct ffn {
    size_t rows, width, inner;
    clv_activation activation;
    const float *x, *w1, *b1, *w2, *b2;
    float *y;
} ffn;

static clv_status ffn_on_device(clv_engine *e, void *user)
{
    const ffn *f = user;
    clv_buffer *x, *w1, *w2, *b1 = NULL, *b2 = NULL, *inner, *y;
    const size_t weight = f->width * f->inner * sizeof(float);
    const size_t rows = f->rows * f->width * sizeof(float);
    CLV_TRY(clv_engine_bring(e, X, f->x, rows, true, false, &x));
    CLV_TRY(clv_engine_bring(e, W1, f->w1, weight, true, false, &w1));
    CLV_TRY(clv_engine_bring(e, W2, f->w2, weight, true, false, &w2));
    if (f->b1) CLV_TRY(clv_engine_bring(e, B1, f->b1, f->inner * sizeof(float), true, false, &b1));
    if (f->b2) CLV_TRY(clv_engine_bring(e, B2, f->b2, f->width * sizeof(float), true, false, &b2));
    CLV_TRY(clv_engine_bring(e, Y, f->y, rows, false, true, &y));
    CLV_TRY(clv_engine_scratch(e, INNER, f->rows * f->inner * sizeof(float), &inner));
    CLV_TRY(linear(e, f->rows, f->inner, f->width, x, w1, b1, f->activation, inner));
    return linear(e, f->rows, f->width, f->inner, inner, w2, b2, CLV_ACTIVATION_NONE, y);
}

static clv_status ffn_on_host(void *user)
{
    const ffn *f = user;
    float *inner = clv_alloc(f->inner, sizeof *inner);
    if (!inner) return clv_fail(CLV_E_MEMORY, "ffn: not enough memory for %zu floats", f->inner);
    for (size_t r = 0; r < f->rows; ++r) {
        const float *x = f->x + r * f->width;
        for (size_t j = 0; j < f->inner; ++j) {
            double sum = f->b1 ? (double)f->b1[j] : 0;
            for (size_t q = 0; q < f->width; ++q)
                sum += (double)x[q] * (double)f->w1[j * f->width + q];
            inner[j] = (float)clv_activate(sum, f->activation);
        }
        for (size_t j = 0; j < f->width; ++j) {
            double sum = f->b2 ? (double)f->b2[j] : 0;
            for (size_t q = 0; q < f->inner; ++q)
                sum += (double)inner[q] * (double)f->w2[j * f->inner + q];
            f->y[r * f->width + j] = (float)sum;
        }
    }
    clv_free(inner);
    return CLV_OK;
}

clv_status clv_ffn_f32(clv_context *context, size_t rows, size_t width, size_t inner,
                       clv_activation activation, const float *x, const float *w1, const float *b1,
                       const float *w2, const float *b2, float *y)
{
    ffn f = { rows, width, inner, activation, x, w1, b1, w2, b2, y };
    size_t most;
    if (!context || !x || !w1 || !w2 || !y)
        return clv_fail(CLV_E_ARGUMENT, "ffn: context, x, w1, w2 or y is NULL");
    if ((unsigned)activation > CLV_ACTIVATION_RELU)
        return clv_fail(CLV_E_ARGUMENT,
                        "ffn: activation is %d, but it must be an enumerator from 0 to %d",
                        (int)activation, CLV_ACTIVATION_RELU);
    if (!clv_size_mul(CLV_MAX(width, inner), CLV_MAX(rows, CLV_MIN(width, inner)), &most) ||
        most > SIZE_MAX / 8 || rows > UINT32_MAX || width > UINT32_MAX || inner > UINT32_MAX)
        return clv_fail(CLV_E_SHAPE,
                        "ffn: got %zu rows of width %zu with %zu hidden units, expected extents "
                        "below 2^32, and arrays that fit in memory",
                        rows, width, inner);
    if (!rows || !width) return CLV_OK;
    const double weights = 2.0 * (double)width * (double)inner;
    clv_call call = { .operation = "ffn",
                      .work = { .flops = 2 * weights * (double)rows,
                                .bytes = sizeof(float) *
                                         (weights + 2.0 * (double)rows * (double)width) },
                      .host = ffn_on_host,
                      .device = ffn_on_device,
                      .user = &f };
    call.work.transfer_bytes = call.work.bytes;
    return run(context, &call, !inner);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* clv_attention_f32 and clv_ffn_f32: blocks on plain memory, for code generators. */
#include "host/transformer/blocks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/job/turn.h"
#include "runtime/offload/engine.h"
#include "runtime/record/context.h"

#include <cleave/offload.h>

#include <math.h>

enum { Q = 4, K, V, O, MASK, BLOCKS, SCRATCH, X, W1, B1, W2, B2, INNER, Y, PACK };
enum { MOST_WIDTH = 256 };

/* What this thread forces, and a device's engine unless that is the host; *engine NULL: the host does
 * the call. Calls of no work at all are the host's, whatever is forced. */
static clv_status choose(clv_context *context, const char *what, bool worth, clv_side *side,
                         clv_engine **engine)
{
    *side = clv_offload_force(CLV_SIDE_AUTO);
    (void)clv_offload_force(*side);
    *engine = worth && *side != CLV_SIDE_HOST ? clv_engine_lock(context) : NULL;
    if (*engine || !worth || *side != CLV_SIDE_DEVICE) return CLV_OK;
    return clv_jobs_held(context)
               ? clv_jobs_refuse(what)
               : clv_fail(CLV_E_NO_DEVICE, "%s: forced to a device, and none works", what);
}

/* Whether the host does what the device could not. */
static bool host_helps(const char *what, clv_status status, clv_side side)
{
    if (!status || side == CLV_SIDE_DEVICE) return false;
    clv_log(CLV_LOG_WARN, "%s: the host computes, since: %s", what, clv_error_message());
    return true;
}

/* ---- attention ---------------------------------------------------------------------------------- */

/* Elements of the arrays; false: too many for the kernels' indices. */
static bool extents(const clv_attention_shape *s, size_t kv_heads, size_t *q, size_t *k)
{
    size_t heads, row;
    return clv_size_mul(s->batch, s->heads, &heads) && clv_size_mul(s->queries, s->width, &row) &&
           clv_size_mul(heads, row, q) && clv_size_mul(s->batch, kv_heads, &heads) &&
           clv_size_mul(s->keys, s->width, &row) && clv_size_mul(heads, row, k) && *q < INT32_MAX &&
           *k < INT32_MAX;
}

static clv_status on_host(const clv_attention_shape *s, size_t kv_heads, float scale,
                          const float *q, const float *k, const float *v, const int32_t *mask,
                          float *o)
{
    double *p = clv_alloc(s->keys + 1, sizeof *p);
    if (!p) return clv_fail(CLV_E_MEMORY, "attention: no memory for %zu keys", s->keys);
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
            top > -INFINITY ? top : 0; /* nothing seen, or nothing that is a number */
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
        return clv_fail(CLV_E_MEMORY, "attention: no memory for %zu blocks", call->block_count);
    /* tokens are rows of one head: a sequence of q begins heads * queries rows behind the last */
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

clv_status clv_attention_f32(clv_context *context, const clv_attention_shape *s, const float *q,
                             const float *k, const float *v, const int32_t *mask, float *o)
{
    if (!context || !s || !q || !k || !v || !o)
        return clv_fail(CLV_E_ARGUMENT, "attention: context, shape, q, k, v or o is NULL");
    const size_t kv_heads = s->kv_heads ? s->kv_heads : s->heads;
    size_t q_count, k_count;
    if (!s->width || s->width > MOST_WIDTH || !kv_heads || s->heads % kv_heads ||
        !extents(s, kv_heads, &q_count, &k_count))
        return clv_fail(CLV_E_SHAPE,
                        "attention: %zu times %zu heads of width %zu, %zu of keys; %zu queries, "
                        "%zu keys: widths are 1 to %d, heads of keys divide the heads, and arrays "
                        "end below 2^31 elements",
                        s->batch, s->heads, s->width, kv_heads, s->queries, s->keys, MOST_WIDTH);
    if (!q_count) return CLV_OK;
    const float scale = s->scale != 0 ? s->scale : (float)(1 / sqrt((double)s->width));
    clv_side side;
    clv_engine *engine;
    CLV_TRY(choose(context, "attention", s->keys > 0, &side, &engine));
    if (!engine) return on_host(s, kv_heads, scale, q, k, v, mask, o);
    clv_attention_block *list = NULL;
    clv_attention_call a = { .q = { .row = s->width, .head = s->queries * s->width },
                             .k = { .row = s->width, .head = s->keys * s->width },
                             .v = { .row = s->width, .head = s->keys * s->width },
                             .o = { .row = s->width, .head = s->queries * s->width },
                             .causal = s->causal,
                             .heads = s->heads,
                             .kv_heads = kv_heads,
                             .width = s->width,
                             .scale = scale };
    clv_buffer *seen = NULL;
    clv_status status = clv_attention_check(clv_queue_device(engine->queue), s->keys, s->width);
    if (!status)
        status = clv_engine_bring(engine, Q, q, q_count * sizeof *q, true, false, &a.q.buffer);
    if (!status)
        status = clv_engine_bring(engine, K, k, k_count * sizeof *k, true, false, &a.k.buffer);
    if (!status)
        status = clv_engine_bring(engine, V, v, k_count * sizeof *v, true, false, &a.v.buffer);
    if (!status)
        status = clv_engine_bring(engine, O, o, q_count * sizeof *o, false, true, &a.o.buffer);
    if (!status && mask)
        status = clv_engine_bring(engine, MASK, mask, s->batch * s->keys * sizeof *mask, true,
                                  false, &seen);
    a.mask = seen;
    if (!status) status = bring_blocks(engine, s, kv_heads, &a, &list);
    if (!status) status = clv_attention_enqueue(engine->queue, &a);
    status = clv_engine_finish(engine, status);
    clv_engine_unlock(engine);
    clv_free(list);
    return host_helps("attention", status, side) ? on_host(s, kv_heads, scale, q, k, v, mask, o)
                                                 : status;
}

/* ---- feed forward --------------------------------------------------------------------------------- */

/* y = act(x W^T + b) by the engine: W [n,k] in `w`. */
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

static clv_status ffn_on_device(clv_engine *e, const ffn *f)
{
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

static clv_status ffn_on_host(const ffn *f)
{
    float *inner = clv_alloc(f->inner, sizeof *inner);
    if (!inner) return clv_fail(CLV_E_MEMORY, "ffn: no memory for %zu floats", f->inner);
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
    const ffn f = { rows, width, inner, activation, x, w1, b1, w2, b2, y };
    size_t most;
    if (!context || !x || !w1 || !w2 || !y)
        return clv_fail(CLV_E_ARGUMENT, "ffn: context, x, w1, w2 or y is NULL");
    if (!clv_size_mul(CLV_MAX(width, inner), CLV_MAX(rows, CLV_MIN(width, inner)), &most) ||
        most > SIZE_MAX / 8 || rows > UINT32_MAX || width > UINT32_MAX || inner > UINT32_MAX)
        return clv_fail(CLV_E_SHAPE,
                        "ffn: %zu rows of %zu through %zu given, expected extents below 2^32, and "
                        "arrays that fit in memory",
                        rows, width, inner);
    if (!rows || !width) return CLV_OK;
    clv_side side;
    clv_engine *engine;
    CLV_TRY(choose(context, "ffn", inner > 0, &side, &engine));
    if (!engine) return ffn_on_host(&f);
    const clv_status status = clv_engine_finish(engine, ffn_on_device(engine, &f));
    clv_engine_unlock(engine);
    return host_helps("ffn", status, side) ? ffn_on_host(&f) : status;
}

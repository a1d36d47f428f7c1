/* SPDX-License-Identifier: Apache-2.0 */
/* Computes clv_matmul on the host or on the context's best device, whichever is faster. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "runtime/blas/matmul_parts.h"
#include "runtime/job/turn.h"
#include "runtime/offload/engine.h"
#include "runtime/offload/call.h"
#include "runtime/offload/rates.h"
#include "runtime/record/context.h"

#include <string.h>

enum { A, B, C, SCRATCH, PACKED };

/* A call of clv_matmul with every stride spelled out, in which the columns of C are neighbours. */
typedef struct product {
    size_t m, n, k, batch;
    const float *a, *b;
    float *c;
    size_t a_row, a_col, a_batch, b_row, b_col, b_batch, c_row, c_batch;
    float alpha, beta;
    clv_progress *progress;
    void *progress_user;
    clv_watch *watch; /* NULL: no progress is reported */
    char kind[64];
} product;

/* Counts the elements from the first to one past the last; returns false if they are more than can be addressed. */
static bool span(size_t rows, size_t row, size_t cols, size_t col, size_t batch, size_t step,
                 size_t *out)
{
    size_t r, c, t;
    if (!rows || !cols) {
        *out = 0;
        return true;
    }
    return clv_size_mul(rows - 1, row, &r) && clv_size_mul(cols - 1, col, &c) &&
           clv_size_mul(batch - 1, step, &t) && clv_size_add(r, c, &r) && clv_size_add(r, t, &r) &&
           clv_size_add(r, 1, out) && *out <= SIZE_MAX / 8;
}

static void swap(size_t *x, size_t *y)
{
    const size_t kept = *x;
    *x = *y, *y = kept;
}

/* Rewrites the call as C^T = B^T A^T, for a C that lies column by column. */
static void transpose(product *t)
{
    const float *a = t->a;
    t->a = t->b, t->b = a;
    swap(&t->m, &t->n);
    swap(&t->a_row, &t->b_col);
    swap(&t->a_col, &t->b_row);
    swap(&t->a_batch, &t->b_batch);
}

/* Checks that every element can be addressed, that matrices of C do not overlap, and that a dense C shares
 * no memory with dense A or B. */
static clv_status check_reach(const product *t)
{
    size_t a, b, c, one, all;
    if (!span(t->m, t->a_row, t->k, t->a_col, t->batch, t->a_batch, &a) ||
        !span(t->k, t->b_row, t->n, t->b_col, t->batch, t->b_batch, &b) ||
        !span(t->m, t->c_row, t->n, 1, t->batch, t->c_batch, &c) ||
        !span(t->m, t->c_row, t->n, 1, 1, 0, &one) || !clv_size_mul(t->m * t->n, t->batch, &all))
        return clv_fail(CLV_E_SHAPE, "matmul: the strides reach beyond what can be addressed");
    const bool behind = t->c_batch >= one, /* or row by row: rows of all matrices in turn */
        between = t->c_batch >= t->n && t->c_row >= (t->batch - 1) * t->c_batch + t->n;
    if (t->batch > 1 && c && !behind && !between)
        return clv_fail(
            CLV_E_SHAPE,
            "matmul: the matrices of C are %zu elements apart and overlap, since each is [%zu,%zu]",
            t->c_batch, t->m, t->n);
    const bool with_a = t->a && a == (t->a_batch ? t->batch : 1) * t->m * t->k,
               with_b = t->b && b == (t->b_batch ? t->batch : 1) * t->k * t->n;
    if (c && c == all &&
        ((with_a && clv_shares(t->a, a * sizeof *t->a, t->c, c * sizeof *t->c)) ||
         (with_b && clv_shares(t->b, b * sizeof *t->b, t->c, c * sizeof *t->c))))
        return clv_fail(CLV_E_ARGUMENT, "matmul: C shares memory with A or B");
    return CLV_OK;
}

static clv_status check_dense(size_t m, size_t n, size_t k, const float *a, const float *b,
                              const float *c)
{
    const size_t bytes = m * n * sizeof *c;
    if (clv_shares(a, m * k * sizeof *a, c, bytes) || clv_shares(b, k * n * sizeof *b, c, bytes))
        return clv_fail(CLV_E_ARGUMENT, "matmul: C shares memory with A or B");
    return CLV_OK;
}

/* Checks and reads the call like read_call, for dense matrices so small that no size can overflow. */
static clv_status read_dense(size_t m, size_t n, size_t k, const float *a, const float *b, float *c,
                             product *out)
{
    *out = (product){ .m = m,
                      .n = n,
                      .k = k,
                      .batch = 1,
                      .a = a,
                      .b = b,
                      .c = c,
                      .a_row = k,
                      .a_col = 1,
                      .b_row = n,
                      .b_col = 1,
                      .c_row = n,
                      .c_batch = m * n,
                      .alpha = 1 };
    return check_dense(m, n, k, a, b, c);
}

static clv_status read_call(size_t m, size_t n, size_t k, const float *a, const float *b,
                            const clv_matmul_options *given, float *c, product *out)
{
    enum { SMALL = 1 << 16 };
    if (!given && m < SMALL && n < SMALL && k < SMALL) return read_dense(m, n, k, a, b, c, out);
    clv_matmul_options o = { .size = sizeof(clv_matmul_options) };
    CLV_TRY(clv_take_struct(&o, sizeof o, given, "clv_matmul", "clv_matmul_options"));
    if (m > UINT32_MAX || n > UINT32_MAX || k > UINT32_MAX || o.batch > UINT32_MAX)
        return clv_fail(CLV_E_SHAPE,
                        "matmul: the extents are %zu x %zu x %zu, but each must be below 2^32", m,
                        n, k);
    *out = (product){ .m = m,
                      .n = n,
                      .k = k,
                      .batch = CLV_MAX(o.batch, (size_t)1),
                      .a = a,
                      .b = b,
                      .c = c,
                      .a_row = o.a_row || o.a_col ? o.a_row : k,
                      .a_col = o.a_row || o.a_col ? o.a_col : 1,
                      .a_batch = o.a_batch,
                      .b_row = o.b_row || o.b_col ? o.b_row : n,
                      .b_col = o.b_row || o.b_col ? o.b_col : 1,
                      .b_batch = o.b_batch,
                      .c_row = o.c_row || o.c_col ? o.c_row : n,
                      .c_batch = o.c_batch ? o.c_batch : m * n,
                      .alpha = o.scale_given ? o.alpha : 1,
                      .beta = o.scale_given ? o.beta : 0,
                      .progress = o.progress,
                      .progress_user = o.progress_user };
    size_t c_col = o.c_row || o.c_col ? o.c_col : 1;
    if (c_col != 1 && n > 1) {
        if (out->c_row != 1 && m > 1)
            return clv_fail(CLV_E_SHAPE,
                            "matmul: C has the strides %zu and %zu, but one of them must be 1",
                            out->c_row, c_col);
        transpose(out);
        swap(&out->c_row, &c_col);
    }
    const size_t rows = out->m, columns = out->n; /* elements of C may not share an address */
    if (rows > 1 && out->c_row < columns)
        return clv_fail(
            CLV_E_SHAPE,
            "matmul: the rows of C are %zu elements apart but %zu long, so they overlap",
            out->c_row, columns);
    return check_reach(out);
}

/* Copies B so that its columns are neighbours. */
static void copy_b(const product *t, const float *b, float *dense)
{
    for (size_t q = 0; q < t->k; ++q)
        for (size_t j = 0; j < t->n; ++j)
            dense[q * t->n + j] = b[q * t->b_row + j * t->b_col];
}

static clv_status on_host(void *user)
{
    const product *t = user;
    const bool copy = t->b_col != 1 && t->n > 1;
    float *dense = copy ? clv_alloc(t->k * t->n, sizeof *dense) : NULL;
    if (copy && t->k && !dense) return clv_fail(CLV_E_MEMORY, "matmul: not enough memory for B");
    clv_matmul_parts parts = clv_matmul_parts_of(t->m, t->n, t->k, t->batch, true, t->watch);
    clv_status status = CLV_OK;
    for (clv_matmul_part part; !status && clv_matmul_next_part(&parts, &part);) {
        for (size_t i = part.matrix; i < part.matrix + part.matrices; ++i) {
            const float *b = t->b + i * t->b_batch;
            if (copy && !part.row) copy_b(t, b, dense); /* kept for the later rows */
            const clv_host_gemm g = { .m = part.rows,
                                      .n = t->n,
                                      .k = t->k,
                                      .a = t->a + i * t->a_batch + part.row * t->a_row,
                                      .a_row = t->a_row,
                                      .a_col = t->a_col,
                                      .b = copy ? dense : b,
                                      .b_row = copy ? t->n : t->b_row,
                                      .b_col = 1,
                                      .c = t->c + i * t->c_batch + part.row * t->c_row,
                                      .c_row = t->c_row,
                                      .c_col = 1,
                                      .alpha = t->alpha,
                                      .beta = t->beta };
            clv_gemm_host(&g);
        }
        status = clv_matmul_part_done(&parts, &part);
    }
    clv_free(dense);
    return status;
}

static clv_status enqueue(clv_engine *engine, const clv_gemm_form *form, const clv_gemm *gemm)
{
    clv_buffer *scratch;
    CLV_TRY(clv_engine_scratch(engine, SCRATCH, clv_gemm_scratch(form, gemm) * sizeof(float),
                               &scratch));
    return clv_gemm_enqueue(engine->queue, form, gemm, scratch, NULL);
}

/* Packs B as the form requires, once for all parts. */
static clv_status pack_b(clv_engine *engine, const clv_gemm_form *form, clv_gemm *g)
{
    const size_t floats = clv_gemm_packed_b(form, g->n, g->k), matrices = g->b.batch ? g->batch : 1;
    clv_buffer *packed;
    if (!floats) return CLV_OK;
    CLV_TRY(clv_engine_scratch(engine, PACKED, matrices * floats * sizeof(float), &packed));
    CLV_TRY(clv_gemm_pack_b_enqueue(engine->queue, form, g->n, g->k, matrices, &g->b, packed, 0));
    g->b = (clv_matrix){ .buffer = packed, .batch = g->b.batch ? floats : 0 };
    g->b_packed = true;
    return CLV_OK;
}

/* Enqueues the product in parts when the caller follows the progress. Parts do not change the bits of a row. */
static clv_status enqueue_parts(clv_engine *engine, const clv_gemm_form *form, const clv_gemm *gemm,
                                clv_watch *watch)
{
    clv_gemm all = *gemm;
    CLV_TRY(pack_b(engine, form, &all));
    clv_matmul_parts parts = clv_matmul_parts_of(all.m, all.n, all.k, all.batch, false, watch);
    for (clv_matmul_part part; clv_matmul_next_part(&parts, &part);) {
        clv_gemm g = all;
        g.m = part.rows, g.batch = part.matrices;
        g.a.offset += part.matrix * g.a.batch + part.row * g.a.row;
        g.b.offset += part.matrix * g.b.batch;
        g.c.offset += part.matrix * g.c.batch + part.row * g.c.row;
        CLV_TRY(enqueue(engine, form, &g));
        CLV_TRY(clv_queue_wait(engine->queue));
        CLV_TRY(clv_matmul_part_done(&parts, &part));
    }
    return CLV_OK;
}

static clv_status on_device(clv_engine *engine, void *user)
{
    const product *t = user;
    size_t a, b, c;
    clv_gemm_form form;
    clv_gemm g = { .m = t->m,
                   .n = t->n,
                   .k = t->k,
                   .batch = t->batch,
                   .a = { NULL, 0, t->a_row, t->a_col, t->a_batch },
                   .b = { NULL, 0, t->b_row, t->b_col, t->b_batch },
                   .c = { NULL, 0, t->c_row, 1, t->c_batch },
                   .alpha = t->alpha,
                   .beta = t->beta };
    if (!span(t->m, t->a_row, t->k, t->a_col, t->batch, t->a_batch, &a) ||
        !span(t->k, t->b_row, t->n, t->b_col, t->batch, t->b_batch, &b) ||
        !span(t->m, t->c_row, t->n, 1, t->batch, t->c_batch, &c))
        return clv_fail(CLV_E_SHAPE, "matmul: the strides reach beyond what can be addressed");
    CLV_TRY(clv_gemm_choose_once(engine->context, engine->queue, &g, &form));
    CLV_TRY(clv_engine_bring(engine, A, t->a, a * sizeof(float), true, false, &g.a.buffer));
    CLV_TRY(clv_engine_bring(engine, B, t->b, b * sizeof(float), true, false, &g.b.buffer));
    /* the gaps between C's rows are the caller's, who may be writing there */
    const size_t extent[3] = { t->batch, t->m, t->n };
    size_t stride[3] = { t->c_batch, t->c_row, 1 };
    CLV_TRY(
        clv_engine_bring_box(engine, C, t->c, extent, stride, c, t->beta != 0, true, &g.c.buffer));
    g.c.batch = stride[0], g.c.row = stride[1];
    return t->watch ? enqueue_parts(engine, &form, &g, t->watch) : enqueue(engine, &form, &g);
}

clv_status clv_matmul_host(size_t m, size_t n, size_t k, const float *a, const float *b,
                           const clv_matmul_options *options, float *c)
{
    product t;
    CLV_TRY(read_call(m, n, k, a, b, options, c, &t));
    return m && n ? on_host(&t) : CLV_OK;
}

static clv_status sample(clv_context *context, const clv_call *like, double flops, clv_sample *out);

static void describe(product *t, clv_call *c)
{
    const clv_matmul_shape shape = { t->m, t->n, t->k, t->batch, t->a_col != 1, t->b_col != 1 };
    const double a = (double)t->m * (double)t->k, b = (double)t->k * (double)t->n;
    const double bytes = 4 * (double)t->batch * (a + b + (double)t->m * (double)t->n);
    const double flops = 2 * a * (double)t->n * (double)t->batch, usual = 16e9;
    *c = (clv_call){ .operation = "matmul",
                     .work = { .kind = t->kind,
                               .amount = flops,
                               .shape = clv_call_shape(
                                   clv_call_shape(clv_call_shape(0, t->m), t->n), t->k),
                               .flops = flops,
                               .bytes = bytes,
                               .transfer_bytes = bytes },
                     .host = on_host,
                     .device = on_device,
                     .user = t,
                     .spent = t->beta != 0, /* beta * C may have been added already */
                     .sample = sample };
    if (!t->k) c->host_only = "host: products of no terms";
    /* a less cautious guess than the one for products where a device might be faster */
    c->work.host_flops = CLV_MAX(usual, clv_gemm_host_flops(t->n));
    if (clv_work_is_short(&c->work)) return;
    c->work.host_flops = usual;
    clv_matmul_kind(&shape, t->kind, &c->work.least, &c->work.most);
}

/* A product to be timed, and the memory for its operands. */
typedef struct sampled {
    product product;
    clv_call call;
    float memory[];
} sampled;

static clv_status sample(clv_context *context, const clv_call *like, double flops, clv_sample *out)
{
    const product *t = like->user;
    clv_matmul_shape s = { t->m, t->n, t->k, t->batch, t->a_col != 1, t->b_col != 1 };
    const double times = clv_matmul_scale(&s, flops);
    (void)context;
    const size_t a = s.m * s.k, b = s.k * s.n, c = s.m * s.n;
    sampled *made = clv_alloc_pages(sizeof *made + (a + b + c) * s.batch * sizeof(float));
    if (!made) return clv_fail(CLV_E_MEMORY, "matmul: not enough memory for a trial run");
    for (size_t i = 0; i < (a + b) * s.batch; ++i)
        made->memory[i] = (float)(i % 13) * 0.125f - 0.75f;
    made->product = (product){ .m = s.m,
                               .n = s.n,
                               .k = s.k,
                               .batch = s.batch,
                               .a = made->memory,
                               .b = made->memory + a * s.batch,
                               .c = made->memory + (a + b) * s.batch,
                               .a_row = s.a_columns ? 1 : s.k,
                               .a_col = s.a_columns ? s.m : 1,
                               .a_batch = a,
                               .b_row = s.b_columns ? 1 : s.n,
                               .b_col = s.b_columns ? s.k : 1,
                               .b_batch = b,
                               .c_row = s.n,
                               .c_batch = c,
                               .alpha = 1 };
    describe(&made->product, &made->call);
    *out = (clv_sample){ .call = &made->call,
                         .times = times, /* scaled extents miss the flops asked for */
                         .result = made->product.c,
                         .results = c * s.batch,
                         .tolerance = 1e-3,
                         .memory = made,
                         .end = clv_free };
    return CLV_OK;
}

/* Returns whether a product takes less time than any launch: it is dense and fits into the innermost cache. */
static bool is_tiny(size_t m, size_t n, size_t k)
{
    enum { SIDE = 1 << 10, TERMS = 1 << 15, FLOATS = 3 << 10 };
    if (!m || !n || !k || m > SIDE || n > SIDE || k > SIDE) return false;
    return m * n * k <= (clv_gemm_host_flops(n) > 0 ? TERMS : TERMS / 8) &&
           m * k + k * n + m * n <= FLOATS;
}

static clv_status do_tiny(size_t m, size_t n, size_t k, const float *a, const float *b, float *c)
{
    clv_linear_host(a, m, k, b, NULL, n, c);
    return CLV_OK;
}

clv_status clv_matmul(clv_context *context, size_t m, size_t n, size_t k, const float *a,
                      const float *b, const clv_matmul_options *options, float *c)
{
    product t;
    if (!context || ((!a || !b) && m && n && k) || (!c && m && n))
        return clv_fail(CLV_E_ARGUMENT, "matmul: context, a, b or c is NULL");
    if (!options && is_tiny(m, n, k)) {
        const size_t floats = m * k + k * n + m * n;
        CLV_TRY(check_dense(m, n, k, a, b, c));
        if (clv_call_at_once(context, "matmul", 2.0 * (double)(m * n * k), 64e9,
                             4.0 * (double)floats))
            return do_tiny(m, n, k, a, b, c);
    }
    CLV_TRY(read_call(m, n, k, a, b, options, c, &t));
    if (!m || !n) return CLV_OK;
    clv_watch watch = clv_watch_begin("matmul", t.progress, t.progress_user, t.m * t.batch);
    if (t.progress) t.watch = &watch;
    clv_call call;
    describe(&t, &call);
    clv_call_take_orders(&call);
    return clv_call_run(context, &call);
}

clv_status clv_matmul_f32(clv_context *context, size_t m, size_t n, size_t k, const float *a,
                          const float *b, float *c)
{
    return clv_matmul(context, m, n, k, a, b, NULL, c);
}

clv_status clv_sync(clv_context *context)
{
    if (!context) return clv_fail(CLV_E_ARGUMENT, "sync: context is NULL");
    clv_engine *engine = clv_engine_lock(context);
    const clv_status status = engine ? clv_queue_wait(engine->queue) : CLV_OK;
    clv_engine_unlock(engine);
    return status;
}

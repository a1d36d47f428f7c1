/* SPDX-License-Identifier: Apache-2.0 */
/* clv_product: products of arrays, where they lie. */
#include "host/array/product.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "host/array/call.h"

#include <string.h>

typedef struct product {
    clv_context *context;
    size_t m, n, k, batch;
    bool ta, tb;
    size_t a_batch, b_batch;
    clv_array *a, *b, *c;
} product;

clv_status clv_product_enqueue(clv_engine *engine, unsigned key, size_t m, size_t n, size_t k,
                               size_t batch, const clv_matrix *a, const clv_matrix *b,
                               clv_buffer *c)
{
    clv_gemm_form form;
    clv_buffer *scratch;
    if (!k) return clv_fill_enqueue(engine->queue, c, 0, m * n * batch * sizeof(float), 0, NULL);
    const clv_gemm g = { .m = m,
                         .n = n,
                         .k = k,
                         .batch = batch,
                         .a = *a,
                         .b = *b,
                         .c = { c, 0, n, 1, m * n },
                         .alpha = 1 };
    CLV_TRY(clv_gemm_choose_once(engine->context, engine->queue, &g, &form));
    CLV_TRY(clv_engine_scratch(engine, key, clv_gemm_scratch(&form, &g) * sizeof(float), &scratch));
    return clv_gemm_enqueue(engine->queue, &form, &g, scratch, NULL);
}

static clv_status on_device(clv_engine *engine, void *user)
{
    const product *p = user;
    const clv_matrix a = { p->a->at, 0, p->ta ? 1 : p->k, p->ta ? p->m : 1, p->a_batch };
    const clv_matrix b = { p->b->at, 0, p->tb ? 1 : p->n, p->tb ? p->k : 1, p->b_batch };
    return clv_product_enqueue(engine, CALL_SCRATCH, p->m, p->n, p->k, p->batch, &a, &b, p->c->at);
}

static clv_status on_host(void *user)
{
    const product *p = user;
    const clv_matmul_options o = { .a_row = p->ta ? 1 : p->k,
                                   .a_col = p->ta ? p->m : 1,
                                   .b_row = p->tb ? 1 : p->n,
                                   .b_col = p->tb ? p->k : 1,
                                   .batch = p->batch,
                                   .a_batch = p->a_batch,
                                   .b_batch = p->b_batch };
    return clv_matmul_host(p->m, p->n, p->k, p->a->host, p->b->host, &o, p->c->host);
}

static clv_status read_shapes(product *p, const clv_product_options *o)
{
    const clv_array *a = p->a, *b = p->b, *c = p->c;
    if (a->rank < 2 || a->rank > 3 || b->rank < 2 || b->rank > 3 || c->rank < 2 || c->rank > 3)
        return clv_fail(CLV_E_SHAPE, "product: arrays of %zu, %zu and %zu axes, 2 or 3 expected",
                        a->rank, b->rank, c->rank);
    const size_t *sa = a->shape + a->rank - 2, *sb = b->shape + b->rank - 2;
    const size_t *sc = c->shape + c->rank - 2;
    p->ta = o->a_transposed, p->tb = o->b_transposed;
    p->m = sa[p->ta], p->k = sa[!p->ta], p->n = sb[!p->tb];
    const size_t in_a = a->rank == 3 ? a->shape[0] : 1, in_b = b->rank == 3 ? b->shape[0] : 1;
    const size_t in_c = c->rank == 3 ? c->shape[0] : 1;
    p->batch = CLV_MAX(in_a, in_b);
    p->a_batch = in_a > 1 ? p->m * p->k : 0;
    p->b_batch = in_b > 1 ? p->k * p->n : 0;
    if (sb[p->tb] != p->k || sc[0] != p->m || sc[1] != p->n || in_c != p->batch ||
        (in_a > 1 && in_a != p->batch) || (in_b > 1 && in_b != p->batch))
        return clv_fail(CLV_E_SHAPE,
                        "product: %zu of [%zu,%zu] and %zu of [%zu,%zu] into %zu of [%zu,%zu]",
                        in_a, p->m, p->k, in_b, sb[p->tb], p->n, in_c, sc[0], sc[1]);
    return CLV_OK;
}

/* ---- trials ---------------------------------------------------------------------------------- */

typedef struct trial {
    clv_context *context;
    clv_array *a, *b, *c;
    clv_product_options options;
} trial;

static clv_status trial_once(void *user)
{
    trial *t = user;
    return clv_product(t->context, t->a, t->b, &t->options, t->c);
}

static clv_status wrap(trial *t, float **memory, size_t batch, size_t rows, size_t columns,
                       clv_array **out)
{
    const size_t shape[3] = { batch, rows, columns };
    CLV_TRY(clv_array_wrap(t->context, *memory, 3, shape, out));
    *memory += clv_round_up(batch * rows * columns, 1024) + 16;
    return CLV_OK;
}

/* Arrays of the call's proportions: what lies in arrays is not handed over as matrices of the caller
 * are, and so has curves of its own. */
static clv_status try_product(clv_context *context, double flops, clv_side side, double *seconds,
                              void *user)
{
    const product *p = user;
    clv_matmul_trial s = { p->m, p->n, p->k, p->batch, p->ta, p->tb };
    const double times = clv_matmul_scale(&s, flops);
    (void)side;
    const size_t in_a = p->batch > 1 && !p->a_batch ? 1 : s.batch;
    const size_t in_b = p->batch > 1 && !p->b_batch ? 1 : s.batch;
    const size_t floats = in_a * s.m * s.k + in_b * s.k * s.n + s.batch * s.m * s.n + 3 * 1040;
    float *memory = clv_alloc_pages(floats * sizeof *memory), *next = memory;
    if (!memory) return clv_fail(CLV_E_MEMORY, "product: no memory for a trial");
    for (size_t i = 0; i < floats; ++i)
        memory[i] = (float)(i % 13) * 0.125f - 0.75f;
    trial t = { .context = context,
                .options = {
                    .size = sizeof t.options, .a_transposed = p->ta, .b_transposed = p->tb } };
    clv_status status = wrap(&t, &next, in_a, p->ta ? s.k : s.m, p->ta ? s.m : s.k, &t.a);
    if (!status) status = wrap(&t, &next, in_b, p->tb ? s.n : s.k, p->tb ? s.k : s.n, &t.b);
    if (!status) status = wrap(&t, &next, s.batch, s.m, s.n, &t.c);
    if (!status) status = clv_offload_time(trial_once, &t, seconds);
    if (!status) *seconds *= times;
    clv_array_free(t.a), clv_array_free(t.b), clv_array_free(t.c);
    clv_free(memory);
    return status;
}

/* ---- what others call ------------------------------------------------------------------------ */

clv_status clv_product(clv_context *context, clv_array *a, clv_array *b,
                       const clv_product_options *options, clv_array *c)
{
    clv_product_options o = { 0 };
    clv_take_options(&o, sizeof o, options);
    CLV_TRY(clv_array_check("product", context, a));
    CLV_TRY(clv_array_check("product", context, b));
    CLV_TRY(clv_array_check("product", context, c));
    if (a == c || b == c) return clv_fail(CLV_E_ARGUMENT, "product: the result is an operand");
    product p = { .context = context, .a = a, .b = b, .c = c };
    CLV_TRY(read_shapes(&p, &o));
    static const char prefix[] = "array ";
    char kind[sizeof prefix + 64] = "array ";
    clv_matmul_trial shape = { p.m, p.n, p.k, p.batch, p.ta, p.tb };
    const double flops = 2.0 * (double)p.m * (double)p.n * (double)p.k * (double)p.batch;
    clv_call call = { .operation = "matmul",
                      .kind = kind,
                      .work = flops,
                      .flops = flops,
                      .host_flops = 16e9,
                      .trial = try_product,
                      .device = on_device,
                      .host = on_host,
                      .user = &p };
    clv_matmul_kind(&shape, kind + sizeof prefix - 1, &call.least_work, &call.most_work);
    clv_call_add(&call, a, true, false);
    clv_call_add(&call, b, true, false);
    clv_call_add(&call, c, false, true);
    return clv_call_run(context, &call);
}

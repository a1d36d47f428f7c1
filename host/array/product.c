/* SPDX-License-Identifier: Apache-2.0 */
/* clv_product: multiplies arrays on the side where they are stored. */
#include "host/array/product.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "host/array/call.h"
#include "host/array/later.h"
#include "host/array/team.h"
#include "runtime/blas/gemm.h"
#include "runtime/blas/provider.h"
#include "runtime/record/context.h"

#include <string.h>

typedef struct product {
    size_t m, n, k, batch;
    bool ta, tb;
    bool blas;  /* on the host, the caller's BLAS computes it, */
    bool quick; /* unless our own kernel takes less time */
    size_t a_batch, b_batch;
    clv_array *a, *b, *c;
    char kind[80];
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

/* Computes products that our own kernel computes faster than a BLAS. */
static void multiply(const product *p)
{
    clv_team *team =
        clv_gemm_host_is_shared(p->m, p->n, p->k) ? clv_array_team(p->c->context) : NULL;
    for (size_t i = 0; i < p->batch; ++i)
        clv_gemm_host_by(team, &(clv_host_gemm){ .m = p->m,
                                                 .n = p->n,
                                                 .k = p->k,
                                                 .a = p->a->host + i * p->a_batch,
                                                 .a_row = p->ta ? 1 : p->k,
                                                 .a_col = p->ta ? p->m : 1,
                                                 .b = p->b->host + i * p->b_batch,
                                                 .b_row = p->n,
                                                 .b_col = 1,
                                                 .c = p->c->host + i * p->m * p->n,
                                                 .c_row = p->n,
                                                 .c_col = 1,
                                                 .alpha = 1 });
}

static clv_status on_host(void *user)
{
    const product *p = user;
    if (p->quick) {
        multiply(p);
        return CLV_OK;
    }
    bool done = p->blas;
    for (size_t i = 0; i < p->batch && done; ++i)
        done = clv_blas_multiply(&(clv_dense_gemm){ .m = p->m,
                                                    .n = p->n,
                                                    .k = p->k,
                                                    .a_turned = p->ta,
                                                    .b_turned = p->tb,
                                                    .a = p->a->host + i * p->a_batch,
                                                    .b = p->b->host + i * p->b_batch,
                                                    .c = p->c->host + i * p->m * p->n });
    if (done) return CLV_OK;
    const clv_matmul_options o = { .size = sizeof(clv_matmul_options),
                                   .a_row = p->ta ? 1 : p->k,
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
        return clv_fail(CLV_E_SHAPE,
                        "product: the arrays have %zu, %zu and %zu axes, but each must have 2 or 3",
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
    p->blas = clv_blas_is_for(p->m, p->n, p->k);
    p->quick = !p->tb && clv_gemm_host_is_quick(p->m, p->n, p->k);
    if (sb[p->tb] != p->k || sc[0] != p->m || sc[1] != p->n || in_c != p->batch ||
        (in_a > 1 && in_a != p->batch) || (in_b > 1 && in_b != p->batch))
        return clv_fail(CLV_E_SHAPE,
                        "product: the shapes do not fit together: %zu matrices [%zu,%zu] times %zu "
                        "matrices [%zu,%zu] into %zu matrices [%zu,%zu]",
                        in_a, p->m, p->k, in_b, sb[p->tb], p->n, in_c, sc[0], sc[1]);
    return CLV_OK;
}

/* ---- the public function --------------------------------------------------------------------- */

static clv_status sample(clv_context *context, const clv_call *like, double flops, clv_sample *out);

static clv_matmul_shape shape_of(const product *p)
{
    return (clv_matmul_shape){ p->m, p->n, p->k, p->batch, p->ta, p->tb };
}

/* Describes the call. Arrays stay on their side while the caller's matrices are transferred, so products of arrays have
 * cost curves of their own. */
static void describe(product *p, clv_array_call *c)
{
    const char *prefix = p->blas ? "array blas " : "array ";
    const clv_matmul_shape shape = shape_of(p);
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
    c->call = (clv_call){ .operation = "matmul",
                          .work = { .kind = p->kind,
                                    .amount = flops,
                                    .flops = flops,
                                    .host_flops = p->blas ? 60e9 : 16e9 },
                          .sample = sample };
    strcpy(p->kind, prefix);
    clv_matmul_kind(&shape, p->kind + strlen(prefix), &c->call.work.least, &c->call.work.most);
    c->device = on_device;
    c->host = on_host;
    c->user = p;
    clv_array_call_add(c, p->a, true, false);
    clv_array_call_add(c, p->b, true, false);
    clv_array_call_add(c, p->c, false, true);
}

static clv_status sample(clv_context *context, const clv_call *like, double flops, clv_sample *out)
{
    const product *p = ((const clv_array_call *)like->user)->user;
    clv_matmul_shape s = shape_of(p);
    const double times = clv_matmul_scale(&s, flops);
    const size_t in_a = p->batch > 1 && !p->a_batch ? 1 : s.batch;
    const size_t in_b = p->batch > 1 && !p->b_batch ? 1 : s.batch;
    const size_t a[3] = { in_a, p->ta ? s.k : s.m, p->ta ? s.m : s.k };
    const size_t b[3] = { in_b, p->tb ? s.n : s.k, p->tb ? s.k : s.n };
    const size_t c[3] = { s.batch, s.m, s.n };
    clv_array_sample *made = clv_array_sample_begin(context, p, sizeof *p);
    if (!made) return clv_fail(CLV_E_MEMORY, "product: not enough memory for a trial run");
    product *mine = (product *)made->user;
    const clv_product_options o = { .size = sizeof(clv_product_options),
                                    .a_transposed = p->ta,
                                    .b_transposed = p->tb };
    clv_status status = clv_array_sample_add(made, 3, a, -0.75f, 1.5e-3f, &mine->a);
    if (!status) status = clv_array_sample_add(made, 3, b, -0.75f, 1.5e-3f, &mine->b);
    if (!status) status = clv_array_sample_add(made, 3, c, 0, 0, &mine->c);
    if (!status) status = read_shapes(mine, &o);
    if (!status) describe(mine, &made->call);
    *out = (clv_sample){ .times = times,
                         .result = status ? NULL : mine->c->host,
                         .results = s.batch * s.m * s.n,
                         .tolerance = 1e-3 };
    return clv_array_sample_end(made, status, out);
}

/* Computes a product that takes the host less time than any launch. */
static clv_status try_at_once(clv_context *context, product *p, bool *done)
{
    enum { TERMS = 1 << 20 };
    const size_t terms = p->m * p->n * p->k;
    const clv_small_call small = { .operation = "matmul",
                                   .flops = 2.0 * (double)terms,
                                   .host_flops = 60e9,
                                   .array = { p->a, p->b, p->c },
                                   .count = 3,
                                   .host = on_host,
                                   .user = p };
    const bool wraps = p->a->storage->wraps || p->b->storage->wraps || p->c->storage->wraps;
    *done = false;
    if (!(p->blas || p->quick) || p->batch != 1 || terms > TERMS || wraps) return CLV_OK;
    return clv_array_call_at_once(context, &small, done);
}

typedef struct arguments {
    clv_context *context;
    clv_product_options options;
} arguments;

static clv_status run_later(const clv_later *call)
{
    const arguments *a = call->arguments;
    return clv_product(a->context, call->array[0], call->array[1], &a->options, call->array[2]);
}

clv_status clv_product(clv_context *context, clv_array *a, clv_array *b,
                       const clv_product_options *options, clv_array *c)
{
    clv_product_options o = { .size = sizeof(clv_product_options) };
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_product", "clv_product_options"));
    CLV_TRY(clv_array_check("product", context, a));
    CLV_TRY(clv_array_check("product", context, b));
    CLV_TRY(clv_array_check("product", context, c));
    if (a == c || b == c)
        return clv_fail(CLV_E_ARGUMENT, "product: the result and an operand are the same array");
    product p = { .a = a, .b = b, .c = c };
    CLV_TRY(read_shapes(&p, &o));
    bool done;
    const arguments copy = { context, o };
    clv_array *const arrays[] = { a, b, c };
    const clv_later_call later = { "product", run_later, arrays, 3, &copy, sizeof copy };
    clv_status status = clv_later_add(context, &later, &done);
    if (!status && !done) status = try_at_once(context, &p, &done);
    if (status || done) return status;
    clv_array_call call = { .count = 0 };
    describe(&p, &call);
    return clv_array_call_run(context, &call);
}

clv_array *clv_array_multiply(clv_array *a, clv_array *b)
{
    clv_array *c = NULL;
    clv_status status = a && b && a->rank == 2 && b->rank == 2
                            ? CLV_OK
                            : clv_fail(CLV_E_SHAPE, "product: two arrays of 2 axes are expected");
    const size_t shape[] = { status ? 1 : a->shape[0], status ? 1 : b->shape[1] };
    if (!status) status = clv_array_create(a->context, 2, shape, &c);
    if (!status) status = clv_product(a->context, a, b, NULL, c);
    if (!status) return c;
    clv_array_free(c);
    return NULL;
}

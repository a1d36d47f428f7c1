/* SPDX-License-Identifier: Apache-2.0 */
/* Tests products in half precision: tiles of halves and matrix units of GPUs, in every form, against float64. Here the
 * matrix units are emulated (cl/common/matrix.clh), since no driver of a CPU offers any. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/half.h"
#include "probe/judge/matrix.h"
#include "runtime/blas/gemm.h"

#include <math.h>
#include <string.h>

static const char matrix_extensions[] =
    "cl_khr_fp16 cl_intel_required_subgroup_size cl_intel_subgroup_matrix_multiply_accumulate";

/* Kinds of devices: what a device says, and the form that must be the first. */
static const struct {
    bool fp16, few_registers;
    const char *extensions, *sizes, *first;
    size_t sub_group;
} kinds[] = {
    { true, false, matrix_extensions, "8 16 32", "matrix128", 8 },
    { true, true, matrix_extensions, "16 32", "matrix128", 16 },
    { true, false, "cl_khr_fp16", "8 16 32", "tile64-fp16", 0 },
    { true, true, matrix_extensions, NULL, "tile64-fp16", 0 }, /* sizes of sub-groups unknown */
    { false, false, "", NULL, NULL, 0 },
};

static void become(test_device *device, size_t kind)
{
    device->disguise.fp16 = kinds[kind].fp16;
    device->disguise.flags.few_registers = kinds[kind].few_registers;
    device->disguise.extensions = kinds[kind].extensions;
    device->disguise.subgroup_sizes = kinds[kind].sizes;
}

/* Shapes that end within tiles, sub-groups, groups of 8 terms and stages of 32; A is [m,k] or, if `ta`, [k,m]; B is
 * [k,n] or [n,k]. */
static const struct {
    size_t m, n, k, batch;
    bool ta, tb, bias, add;
    float alpha, beta;
} cases[] = {
    { 1, 1, 1, 1, false, false, false, false, 1, 0 },
    { 7, 9, 5, 1, false, true, true, false, 1, 0 },
    { 18, 41, 33, 1, true, false, true, true, -0.75f, 0.5f },
    { 33, 70, 47, 2, true, true, false, false, 1, 1.5f },
    { 131, 67, 72, 1, false, true, true, true, 1, 1 },
    { 66, 130, 100, 1, false, false, false, false, 2, 0 },
    { 5, 3, 0, 1, false, false, true, false, 1, 0.5f }, /* no terms */
};
enum { OFF = 5, PAD = 3 };

typedef struct product {
    size_t a_count, b_count, c_count;
    float *a, *b, *c, *bias, *add;
    double *want, *allowed;
    clv_gemm g; /* without buffers */
} product;

static float *numbers(size_t count, uint64_t seed)
{
    float *out = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < count; ++i)
        out[i] = (float)test_uniform(&seed, -1, 1);
    return out;
}

/* The product in float64, of A as the form takes it, and how far a form may be from it: 2e-6 of the sum of |a b|. */
static void expect(product *p, size_t i, bool rounds)
{
    const clv_gemm *g = &p->g;
    for (size_t e = 0; e < p->c_count; ++e)
        p->want[e] = (double)p->c[e], p->allowed[e] = 1e-30; /* between rows nothing changes */
    for (size_t t = 0; t < g->batch; ++t)
        for (size_t r = 0; r < g->m; ++r)
            for (size_t s = 0; s < g->n; ++s) {
                double sum = 0, size = 0, change = 0;
                for (size_t q = 0; q < g->k; ++q) {
                    const float *from = p->a + OFF + t * g->a.batch + r * g->a.row + q * g->a.col;
                    const double a =
                        (double)(rounds ? clv_half_to_float(clv_half_of(*from)) : *from);
                    const double b =
                        (double)p->b[OFF + t * g->b.batch + q * g->b.row + s * g->b.col];
                    sum += a * b, size += fabs(a * b);
                    change += (a - (double)*from) * b;
                }
                /* what gemm.h says of the rounding of A */
                assert_true(fabs(change) <= size * 0x1p-11 + 1e-12);
                const size_t at = OFF + t * g->c.batch + r * g->c.row + s;
                const double old =
                    (double)(cases[i].add ? p->add[t * g->m * g->n + r * g->n + s] : p->c[at]);
                p->want[at] = sum * (double)g->alpha + (cases[i].bias ? (double)p->bias[s] : 0) +
                              (double)g->beta * old;
                p->allowed[at] = 2e-6 * fabs((double)g->alpha) * size + 1e-6;
            }
}

static product product_of(size_t i)
{
    const size_t m = cases[i].m, n = cases[i].n, k = cases[i].k, batch = cases[i].batch;
    product p = { .a_count = OFF + batch * m * k,
                  .b_count = OFF + batch * k * n,
                  .c_count = OFF + batch * m * (n + PAD),
                  .g = { .m = m,
                         .n = n,
                         .k = k,
                         .batch = batch,
                         .a = { NULL, OFF, cases[i].ta ? 1 : k, cases[i].ta ? m : 1, m * k },
                         .b = { NULL, OFF, cases[i].tb ? 1 : n, cases[i].tb ? k : 1, k * n },
                         .c = { NULL, OFF, n + PAD, 1, m * (n + PAD) },
                         .b_half = true,
                         .alpha = cases[i].alpha,
                         .beta = cases[i].beta } };
    p.a = numbers(p.a_count, 1), p.b = numbers(p.b_count, 2), p.c = numbers(p.c_count, 3);
    p.bias = numbers(n, 4), p.add = numbers(batch * m * n, 5);
    for (size_t e = 0; e < p.b_count; ++e)
        p.b[e] = clv_half_to_float(clv_half_of(p.b[e]));
    p.want = clv_alloc(p.c_count, sizeof *p.want);
    p.allowed = clv_alloc(p.c_count, sizeof *p.allowed);
    return p;
}

static void check_case(test_device *device, const clv_gemm_form *form, size_t i)
{
    product p = product_of(i);
    uint16_t *halves = clv_alloc(p.b_count, sizeof *halves);
    for (size_t e = 0; e < p.b_count; ++e)
        halves[e] = clv_half_of(p.b[e]);
    test_array a = test_array_from(device, p.a, p.a_count * sizeof *p.a);
    test_array b = test_array_from(device, halves, p.b_count * sizeof *halves);
    test_array c = test_array_from(device, p.c, p.c_count * sizeof *p.c);
    test_array bias = test_array_from(device, p.bias, p.g.n * sizeof *p.bias);
    test_array add = test_array_from(device, p.add, p.g.batch * p.g.m * p.g.n * sizeof *p.add);
    clv_gemm g = p.g;
    g.a.buffer = a.buffer, g.b.buffer = b.buffer, g.c.buffer = c.buffer;
    g.bias = cases[i].bias ? bias.buffer : NULL;
    if (cases[i].add) g.add = (clv_matrix){ add.buffer, 0, g.n, 1, g.m * g.n };
    test_array scratch = test_array_new(device, clv_gemm_scratch(form, &g) * sizeof(float));
    EXPECT_OK(clv_gemm_enqueue(device->queue, form, &g, scratch.buffer, NULL));
    test_array_read(&c);
    test_array_read(&scratch);
    expect(&p, i, form->halves);
    test_expect_within(form->name, p.want, (const float *)(void *)c.host, p.allowed, p.c_count);
    test_array *const all[] = { &a, &b, &c, &bias, &add, &scratch };
    for (size_t e = 0; e < CLV_LEN(all); ++e)
        test_array_free(all[e]);
    clv_free(p.a), clv_free(p.b), clv_free(p.c), clv_free(p.bias), clv_free(p.add);
    clv_free(p.want), clv_free(p.allowed), clv_free(halves);
}

static bool too_large(const test_device *device, size_t i)
{
    return test_left_out(device, device->tiny && cases[i].m * cases[i].n * cases[i].k > 30000,
                         "case %zu: %zux%zux%zu", i, cases[i].m, cases[i].n, cases[i].k);
}

static void check_forms(test_device *device)
{
    for (size_t kind = 0; kind < CLV_LEN(kinds); ++kind) {
        clv_gemm_form forms[CLV_GEMM_MOST_HALVES];
        become(device, kind);
        const size_t count = clv_gemm_halves_forms(device->device, forms);
        assert_int_equal(clv_matrix_lanes(&device->disguise), kinds[kind].sub_group);
        assert_int_equal(count > 0, kinds[kind].first != NULL);
        if (count) assert_string_equal(forms[0].name, kinds[kind].first);
        for (size_t f = 0; f < count; ++f) {
            if (!forms[f].halves) continue;
            forms[f].emulated = true;
            /* few of them, since drivers compile each for seconds: those with other code */
            if (f != kind % 2 || (forms[f].provider == CLV_GEMM_TILE && kind != 2)) continue;
            for (size_t i = 0; i < CLV_LEN(cases); ++i)
                if (!too_large(device, i)) check_case(device, &forms[f], i);
            forms[f].most_terms = 32; /* sums wait between launches */
            check_case(device, &forms[f], 3);
        }
    }
}

static void products_are_near(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_forms);
}

/* Products of floats keep their bits: no function for them returns a form of halves, and such a form computes them as
 * any tile does. */
static void check_floats(test_device *device)
{
    enum { M = 9, N = 7, K = 40 };
    clv_gemm_form forms[CLV_GEMM_MOST_HALVES];
    become(device, 0);
    for (size_t i = 0; i < clv_gemm_form_count(device->device); ++i)
        assert_false(clv_gemm_form_of(device->device, i).halves);
    assert_true(clv_gemm_halves_forms(device->device, forms) > 2);
    float *a = numbers(M * K, 1), *b = numbers(K * N, 2), c[M * N];
    test_array da = test_array_from(device, a, M * K * sizeof *a);
    test_array db = test_array_from(device, b, K * N * sizeof *b);
    test_array dc = test_array_new(device, sizeof c), scratch = test_array_new(device, sizeof *a);
    const clv_gemm g = { .m = M,
                         .n = N,
                         .k = K,
                         .a = { da.buffer, 0, K, 1, 0 },
                         .b = { db.buffer, 0, N, 1, 0 },
                         .c = { dc.buffer, 0, N, 1, 0 },
                         .alpha = 1 };
    clv_gemm_host(&(clv_host_gemm){ .m = M,
                                    .n = N,
                                    .k = K,
                                    .a = a,
                                    .b = b,
                                    .c = c,
                                    .a_row = K,
                                    .a_col = 1,
                                    .b_row = N,
                                    .b_col = 1,
                                    .c_row = N,
                                    .c_col = 1,
                                    .alpha = 1 });
    for (size_t f = 0; f < 3; f += 2) { /* matrix128, tile64-fp16 */
        EXPECT_OK(clv_gemm_enqueue(device->queue, &forms[f], &g, scratch.buffer, NULL));
        test_array_read(&dc);
        if (!device->device->slow_fma) assert_memory_equal(dc.host, c, sizeof c);
    }
    test_array_free(&da), test_array_free(&db), test_array_free(&dc), test_array_free(&scratch);
    clv_free(a), clv_free(b);
}

static void floats_stay_floats(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_floats);
}

/* Without tuning, the first form that is right is chosen. No driver here has matrix units, so that those are refused
 * although the device claims them. A device that has neither gets what clv_gemm_choose gives. */
static void check_choice(test_device *device)
{
    static const size_t order[] = { 0, 2, 4 };
    if (test_left_out(device, device->tiny, "the choice: too slow")) return;
    for (size_t i = 0; i < CLV_LEN(order); ++i) {
        clv_gemm_form form, other;
        become(device, order[i]);
        EXPECT_OK(clv_gemm_choose_halves(device->context, device->queue, 1000, &form));
        EXPECT_OK(clv_gemm_choose(device->context, device->queue, 1000, &other));
        assert_string_equal(form.name, kinds[order[i]].fp16 ? "tile64-fp16" : other.name);
        assert_string_equal(clv_gemm_halves_say(&form),
                            kinds[order[i]].fp16 ? "fp16 x fp16" : "fp32 x fp16");
        assert_false(other.halves);
    }
}

static void a_right_form_is_chosen(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_near),
        cmocka_unit_test(floats_stay_floats),
        cmocka_unit_test(a_right_form_is_chosen),
    };
    test_share_compiled();
    return cmocka_run_group_tests_name("gemm_half", tests, NULL, NULL);
}

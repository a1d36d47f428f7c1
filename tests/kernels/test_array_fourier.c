/* SPDX-License-Identifier: Apache-2.0 */
/* Tests clv_array_fourier with a slow transform of our own in place of a library: the whole array, rows, two steps and
 * two axes, where the array lies on the host, on a device and in the caller's memory. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/array_fourier.h>
#include <cleave/offload.h>

#include <complex.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* What the caller's library calls a plan: `rows` transforms of `length` complex64 elements, which begin `pitch`
 * elements apart; the elements of one are `apart` elements from each other. */
typedef struct plan {
    size_t rows, length, pitch, apart;
    int sign;
} plan;

enum { LONGEST = 1517, PRIME = 41, ROOT = 6 };
static const double pi = 3.14159265358979323846;
static atomic_int calls, seconds;

static void transform(void *user, void *in, void *out)
{
    const plan *p = user;
    assert_true((uintptr_t)in % CLV_FOURIER_ALIGN == 0 && (uintptr_t)out % CLV_FOURIER_ALIGN == 0);
    assert_true(p->length <= LONGEST);
    atomic_fetch_add(&calls, 1);
    for (size_t row = 0; row < p->rows; ++row) {
        const float *from = (const float *)in + 2 * row * p->pitch;
        float *to = (float *)out + 2 * row * p->pitch, made[2 * LONGEST];
        for (size_t k = 0; k < p->length; ++k) {
            double re = 0, im = 0;
            for (size_t j = 0; j < p->length; ++j) {
                const double angle =
                    p->sign * 2 * pi * (double)(j * k % p->length) / (double)p->length;
                const double c = cos(angle), s = sin(angle);
                const float *x = from + 2 * j * p->apart;
                re += x[0] * c - x[1] * s;
                im += x[0] * s + x[1] * c;
            }
            made[2 * k] = (float)re, made[2 * k + 1] = (float)im;
        }
        for (size_t k = 0; k < p->length; ++k)
            memcpy(to + 2 * k * p->apart, made + 2 * k, 2 * sizeof *made);
    }
}

static void transform_second(void *user, void *in, void *out)
{
    atomic_fetch_add(&seconds, 1);
    transform(user, in, out);
}

typedef struct way {
    clv_fourier_form form;
    size_t rows, length, step[2];
    bool inverse;
    double scale;
} way;

static const way ways[] = {
    { CLV_FOURIER_BY_WHOLE, 1, 60, { 0 }, false, 0 },
    { CLV_FOURIER_BY_WHOLE, 3, 16, { 0 }, true, 0.0625 },
    { CLV_FOURIER_BY_ROWS, 24, 15, { 0 }, false, 0.5 },
    { CLV_FOURIER_BY_ROWS, 8, 1, { 0 }, false, 1 },
    { CLV_FOURIER_BY_STEPS, 1, 72, { 8, 9 }, false, 0 },
    { CLV_FOURIER_BY_STEPS, 1, 1517, { 41, 37 }, true, 1.0 / 1517 },
    { CLV_FOURIER_BY_STEPS, 1, 160, { 5, 32 }, false, 2 },
    { CLV_FOURIER_BY_PRIME, 1, PRIME, { 5, 8 }, false, 0 },
    { CLV_FOURIER_BY_PRIME, 1, PRIME, { 8, 5 }, true, 0.5 },
    { CLV_FOURIER_BY_AXES, 32, 72, { 16, 72 }, false, 0.5 }, /* two arrays, with short columns */
    { CLV_FOURIER_BY_AXES, 72, 20, { 72, 20 }, true, 0 },
};

/* The powers of 6 modulo 41, and the transform of the powers of the root of unity in the opposite order. */
static uint32_t order[PRIME - 1];
static float factors[2 * (PRIME - 1)];

static void make_tables(bool inverse)
{
    enum { COUNT = PRIME - 1 };
    order[0] = 1;
    for (int i = 1; i < COUNT; ++i)
        order[i] = order[i - 1] * ROOT % PRIME;
    for (int k = 0; k < COUNT; ++k) {
        double re = 0, im = 0;
        for (int s = 0; s < COUNT; ++s) {
            const double angle = (inverse ? 2 : -2) * pi * order[(COUNT - s) % COUNT] / PRIME -
                                 2 * pi * (k * s % COUNT) / COUNT;
            re += cos(angle), im += sin(angle);
        }
        factors[2 * k] = (float)(re / COUNT), factors[2 * k + 1] = (float)(im / COUNT);
    }
}

static void prepare(const way *w, plan plans[2], clv_fourier **out)
{
    const bool prime = w->form == CLV_FOURIER_BY_PRIME;
    const int sign = w->inverse && !prime ? 1 : -1;
    clv_fourier_options o = { .size = sizeof(clv_fourier_options) };
    o.run = transform;
    o.form = w->form, o.inverse = w->inverse, o.scale = w->scale;
    o.from = o.to = CLV_C64;
    o.rank = o.result_rank = 2;
    o.shape[0] = o.result_shape[0] = w->rows, o.shape[1] = o.result_shape[1] = w->length;
    const bool steps = w->form == CLV_FOURIER_BY_STEPS || prime;
    if (prime) make_tables(w->inverse), o.order = order, o.factors = factors;
    for (int i = 0; i < 2; ++i) {
        const size_t length = steps || (i && w->step[0]) ? w->step[i && steps] : w->length;
        const size_t rows = w->form == CLV_FOURIER_BY_WHOLE ? w->rows : CLV_FOURIER_ROWS;
        const size_t gap = steps || i ? CLV_FOURIER_GAP : 0;
        plans[i] = (plan){ rows, length, length + gap, 1, sign };
        o.plan[i] = &plans[i];
        o.length[i] = w->step[i];
    }
    if (w->form == CLV_FOURIER_BY_AXES) {
        if (w->step[0] <= CLV_FOURIER_SHORT)
            plans[1] = (plan){ CLV_FOURIER_COLUMNS, w->step[0], 1, CLV_FOURIER_COLUMNS, sign };
        o.run_second = transform_second;
        o.block = CLV_FOURIER_ROWS * w->length;
    }
    EXPECT_OK(clv_fourier_create(&o, out));
}

static float *aligned(size_t count)
{
    void *memory = NULL;
    assert_int_equal(0, posix_memalign(&memory, CLV_FOURIER_ALIGN,
                                       clv_round_up(count * 2 * sizeof(float), CLV_FOURIER_ALIGN)));
    return memory;
}

static void compare(const way *w, const float *x, clv_array *y)
{
    const size_t count = w->rows * w->length;
    const int sign = w->inverse ? 1 : -1;
    float *got = clv_alloc(count, 2 * sizeof *got), *want = aligned(count), *in = aligned(count);
    assert_non_null(got);
    memcpy(in, x, count * 2 * sizeof *in);
    transform(&(plan){ w->rows, w->length, w->length, 1, sign }, in, want);
    const size_t each = w->step[0] * w->length;
    for (size_t i = 0; w->form == CLV_FOURIER_BY_AXES && i < count; i += each)
        transform(&(plan){ w->length, w->step[0], 1, w->length, sign }, want + 2 * i, want + 2 * i);
    EXPECT_OK(clv_array_copy_to(y, got));
    double largest = 0;
    for (size_t i = 0; i < 2 * count; ++i)
        largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < 2 * count; ++i)
        assert_true(fabs(got[i] - want[i] * (w->scale != 0 ? w->scale : 1)) <=
                    1e-6 * largest * (w->scale != 0 ? w->scale : 1));
    clv_free(got);
    free(want), free(in);
}

static void transform_once(clv_context *c, const way *w)
{
    plan plans[2];
    clv_fourier *t;
    const size_t count = w->rows * w->length, shape[] = { w->rows, w->length };
    float *x = clv_alloc(count, 2 * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < 2 * count; ++i)
        x[i] = (float)((i * 7919) % 101) / 50 - 1;
    prepare(w, plans, &t);
    clv_array *a, *b;
    EXPECT_OK(clv_array_make_from(c, CLV_C64, x, 2, shape, &a));
    for (int side = CLV_SIDE_AUTO; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side); /* a forced side changes nothing: only the host can */
        b = clv_array_fourier(a, t);
        clv_offload_force(CLV_SIDE_AUTO);
        assert_non_null(b);
        assert_true(clv_array_type(b) == CLV_C64 && clv_array_rank(b) == 2 &&
                    clv_array_shape(b)[1] == w->length);
        compare(w, x, b);
        clv_array_free(b);
    }
    clv_fourier_free(t);
    clv_array_free(a), clv_free(x);
}

static void transform_all(test_device *device)
{
    for (size_t i = 0; i < CLV_LEN(ways); ++i)
        transform_once(device->context, &ways[i]);
}

static void transforms_match_a_sum_over_all_elements(void **state)
{
    (void)state;
    test_each_device(transform_all);
    clv_context *c;
    const clv_context_options o = { .size = sizeof o, .mode = CLV_MODE_REFERENCE };
    EXPECT_OK(clv_context_create(&o, &c));
    for (size_t i = 0; i < CLV_LEN(ways); ++i)
        transform_once(c, &ways[i]);
    clv_context_free(c);
}

/* Rows, steps and axes call the function once per block. */
static void work_is_divided(void **state)
{
    (void)state;
    plan plans[2];
    clv_fourier *t;
    clv_context *c;
    EXPECT_OK(clv_context_create(NULL, &c));
    const size_t shapes[][2] = { { 24, 15 }, { 1, 1517 }, { 32, 72 }, { 72, 20 } };
    const int way_of[] = { 2, 5, 9, 10 }, expected[] = { 3, 5 + 6, 4 + 2 * 2, 9 + 3 };
    const int expected_seconds[] = { 0, 0, 2 * 2, 3 };
    for (int i = 0; i < 4; ++i) {
        clv_array *a, *b;
        EXPECT_OK(clv_array_make(c, CLV_C64, 2, shapes[i], &a));
        void *memory;
        EXPECT_OK(clv_array_host(a, &memory));
        memset(memory, 0, shapes[i][0] * shapes[i][1] * 8);
        prepare(&ways[way_of[i]], plans, &t);
        atomic_store(&calls, 0), atomic_store(&seconds, 0);
        b = clv_array_fourier(a, t);
        assert_non_null(b);
        assert_int_equal(atomic_load(&calls), expected[i]);
        assert_int_equal(atomic_load(&seconds), expected_seconds[i]);
        clv_fourier_free(t), clv_array_free(a), clv_array_free(b);
    }
    clv_context_free(c);
}

static void refuses(clv_status status, const char *words, clv_fourier_options o)
{
    clv_fourier *t = (clv_fourier *)&o;
    EXPECT_FAIL(status, words, clv_fourier_create(&o, &t));
    assert_null(t);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    plan plans[2] = { { 8, 8, 16, 1, -1 }, { 8, 8, 16, 1, -1 } };
    clv_fourier_options good = { .size = sizeof(clv_fourier_options) }, o;
    good.run = transform, good.plan[0] = &plans[0], good.plan[1] = &plans[1];
    good.from = good.to = CLV_C64, good.rank = good.result_rank = 1;
    good.shape[0] = good.result_shape[0] = 64, good.length[0] = good.length[1] = 8;
    good.form = CLV_FOURIER_BY_STEPS;
    clv_fourier *t;
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_fourier_create(&good, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_fourier_create(NULL, &t));
    o = good, o.run = NULL, refuses(CLV_E_ARGUMENT, "NULL", o);
    o = good, o.plan[1] = NULL, refuses(CLV_E_ARGUMENT, "NULL", o);
    o = good, o.form = (clv_fourier_form)5, refuses(CLV_E_ARGUMENT, "5 is not one", o);
    o = good, o.from = CLV_I32, refuses(CLV_E_ARGUMENT, "int32", o);
    o = good, o.scale = NAN, refuses(CLV_E_ARGUMENT, "finite", o);
    o = good, o.from = o.to = CLV_C128, refuses(CLV_E_ARGUMENT, "complex128", o);
    o = good, o.length[0] = 7, refuses(CLV_E_SHAPE, "7 times 8", o);
    o = good, o.length[0] = (size_t)1 << 61, refuses(CLV_E_SHAPE, "elements", o);
    o = good, o.shape[0] = 0, refuses(CLV_E_SHAPE, "must have elements", o);
    o = good, o.rank = 9, refuses(CLV_E_SHAPE, "at most 8 axes", o);
    o = good, o.form = CLV_FOURIER_BY_ROWS, refuses(CLV_E_SHAPE, "has 1 rows", o);
    good.form = CLV_FOURIER_BY_AXES, good.block = 8;
    o = good, o.plan[1] = NULL, refuses(CLV_E_ARGUMENT, "NULL", o);
    o = good, o.from = CLV_C128, refuses(CLV_E_ARGUMENT, "complex128", o);
    o = good, o.to = CLV_C128, refuses(CLV_E_ARGUMENT, "complex128", o);
    o = good, o.length[0] = 7, refuses(CLV_E_SHAPE, "7 elements, 8 apart", o);
    o = good, o.length[1] = 0, refuses(CLV_E_SHAPE, "8 elements, 0 apart", o);
    o = good, o.length[0] = (size_t)1 << 61, refuses(CLV_E_SHAPE, "columns", o);
    o = good, o.block = 0, refuses(CLV_E_SHAPE, "blocks of 0", o);
    o = good, o.block = 4, refuses(CLV_E_SHAPE, "blocks of 4", o);
    o = good, o.block = 24, refuses(CLV_E_SHAPE, "blocks of 24", o);
    good.form = CLV_FOURIER_BY_PRIME, good.length[0] = 9, good.length[1] = 7;
    uint32_t places[63];
    for (uint32_t i = 0; i < 63; ++i)
        places[i] = i + 1;
    good.order = places, good.factors = (float[126]){ 0 };
    o = good, o.order = NULL, refuses(CLV_E_ARGUMENT, "order", o);
    o = good, o.factors = NULL, refuses(CLV_E_ARGUMENT, "order", o);
    o = good, o.length[0] = 7, refuses(CLV_E_SHAPE, "7 times 7", o);
    places[5] = 0, refuses(CLV_E_ARGUMENT, "place 5 of the order is 0", good);
    places[5] = 64, refuses(CLV_E_ARGUMENT, "place 5 of the order is 64 of 63", good);
    good.form = CLV_FOURIER_BY_STEPS, good.length[0] = good.length[1] = 8;
    o = good, o.size = 0, refuses(CLV_E_ARGUMENT, "CLV_INIT", o);
    EXPECT_OK(clv_fourier_create(&good, &t));
    clv_context *c;
    EXPECT_OK(clv_context_create(NULL, &c));
    float x[2 * 80] = { 0 };
    const size_t more = 80, count = 64;
    const ptrdiff_t apart = 1;
    clv_array *a, *b, *empty;
    EXPECT_OK(clv_array_make_from(c, CLV_C64, x, 1, &more, &a));
    assert_null(clv_array_fourier(NULL, t));
    assert_null(clv_array_fourier(a, NULL));
    assert_null(clv_array_fourier(a, t)); /* another shape */
    EXPECT_OK(clv_array_make(c, CLV_C64, 1, &count, &empty));
    assert_null(clv_array_fourier(empty, t)); /* no values */
    EXPECT_OK(clv_array_view(a, 1, 1, &count, &apart, &b));
    clv_array *y = clv_array_fourier(b, t);
    assert_non_null(y); /* steps need no alignment, */
    clv_array_free(y), clv_fourier_free(t);
    good.form = CLV_FOURIER_BY_WHOLE;
    EXPECT_OK(clv_fourier_create(&good, &t));
    assert_null(clv_array_fourier(b, t)); /* but a plan for the whole array does */
    assert_non_null(strstr(clv_error_message(), "not aligned"));
    clv_array_free(b), clv_array_free(a);
    const size_t wide = 128;
    float z[2 * 128] = { 0 };
    const ptrdiff_t two = 2;
    EXPECT_OK(clv_array_make_from(c, CLV_C64, z, 1, &wide, &a));
    EXPECT_OK(clv_array_view(a, 0, 1, &count, &two, &b));
    assert_null(clv_array_fourier(b, t)); /* not dense */
    clv_array_free(b), clv_array_free(a), clv_array_free(empty), clv_fourier_free(t);
    clv_fourier_free(NULL);
    clv_context_free(c);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(work_is_divided),
        cmocka_unit_test(transforms_match_a_sum_over_all_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

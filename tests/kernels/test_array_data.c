/* SPDX-License-Identifier: Apache-2.0 */
/* Tests where arrays lie, which side computes, and what happens if the device cannot. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <cleave/array_math.h>
#include <cleave/array_typed.h>
#include <cleave/blas.h>

#include <stdio.h>
#include <string.h>

enum { N = 5000 };

static clv_array *from(clv_context *context, const float *host, size_t count)
{
    clv_array *array;
    EXPECT_OK(clv_array_from(context, host, 1, &count, &array));
    return array;
}

static clv_array *empty(clv_context *context, size_t count)
{
    clv_array *array;
    EXPECT_OK(clv_array_create(context, 1, &count, &array));
    return array;
}

static void twice(clv_context *context, clv_array *x, clv_array *y)
{
    const clv_map_input in[] = { { "x", x, 0 } };
    EXPECT_OK(clv_map(context, "2 * x + 1", in, 1, y));
}

/* With memory of its own, small work stays on the device because its operand lies there, and nothing moves. */
static void stay(test_device *device)
{
    test_device_as_card(device);
    clv_context *c = device->context;
    float x[N], y[N];
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    clv_array *a = from(c, x, N), *b = empty(c, N), *s = empty(c, 1);
    assert_true(clv_array_is_on_device(a));
    const clv_array_stats before = clv_array_statistics(c);
    assert_int_equal(before.uploads, 1);
    assert_int_equal(before.bytes_to_device, N * sizeof(float));
    for (int turn = 0; turn < 3; ++turn) {
        twice(c, a, b);
        twice(c, b, a);
    }
    EXPECT_OK(clv_reduce(c, CLV_REDUCE_MAX, a, 0, s));
    clv_offload plan;
    EXPECT_OK(clv_offload_last(&plan));
    assert_int_equal(plan.side, CLV_SIDE_DEVICE);
    assert_string_equal(plan.reason, "device: an operand lies only there");
    assert_string_equal(plan.device, device->name);
    const clv_array_stats after = clv_array_statistics(c);
    assert_int_equal(after.uploads, before.uploads);
    assert_int_equal(after.downloads, 0);
    assert_int_equal(after.bytes_from_device, 0);
    assert_int_equal(after.calls_device, 7);
    EXPECT_OK(clv_array_get(s, y));
    assert_true(y[0] == 64.0f * (N - 1) + 63);
    EXPECT_OK(clv_array_get(a, y));
    assert_int_equal(clv_array_statistics(c).downloads, 2);
    for (int i = 0; i < N; ++i)
        assert_true(y[i] == 64 * x[i] + 63);
    /* forced to the other side it moves once, and then lies there */
    clv_offload_force(CLV_SIDE_HOST);
    twice(c, a, b);
    twice(c, a, b);
    clv_offload_force(CLV_SIDE_AUTO);
    assert_int_equal(clv_array_statistics(c).downloads, 3);
    assert_false(clv_array_is_on_device(b));
    assert_true(clv_array_is_on_device(a)); /* on both */
    clv_array_free(a), clv_array_free(b), clv_array_free(s);
}

/* A device that shares the host's memory takes turns with the host at one block of it: nothing is ever copied. */
static void take_turns(test_device *device)
{
    clv_context *c = device->context;
    float x[N], y[N];
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    clv_array *a = from(c, x, N), *b = empty(c, N), *copy, *part;
    void *first, *again;
    EXPECT_OK(clv_array_host(a, &first));
    for (int turn = 0; turn < 2; ++turn)
        for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
            clv_offload_force((clv_side)side);
            twice(c, a, b);
            twice(c, b, a);
            clv_offload_force((clv_side)(CLV_SIDE_HOST + CLV_SIDE_DEVICE - side));
            twice(c, a, b);
            twice(c, b, a);
        }
    clv_offload_force(CLV_SIDE_AUTO);
    EXPECT_OK(clv_array_copy(a, 0, NULL, &copy));
    EXPECT_OK(clv_array_get(copy, y));
    for (int i = 0; i < N; ++i)
        assert_true(y[i] == 65536 * x[i] + 65535);
    assert_true(clv_array_is_on_device(a) && clv_array_is_on_device(b));
    EXPECT_OK(clv_array_host(a, &again));
    assert_ptr_equal(first, again);
    assert_memory_equal(first, y, sizeof y);
    const size_t count = 5;
    const ptrdiff_t stride = 2;
    EXPECT_OK(clv_array_view(a, 3, 1, &count, &stride, &part));
    EXPECT_OK(clv_array_host(part, &again));
    assert_ptr_equal(again, (float *)first + 3);
    ((float *)first)[3] = 8;
    EXPECT_OK(clv_array_copy_to(part, y));
    assert_true(y[0] == 8);
    const clv_array_stats s = clv_array_statistics(c);
    assert_int_equal(s.bytes_to_device + s.bytes_from_device, 0);
    assert_int_equal(s.uploads + s.downloads, 0);
    assert_true(s.calls_host == 9 && s.calls_device == 8); /* the view was copied by a call */
    clv_array_free(a), clv_array_free(b), clv_array_free(copy), clv_array_free(part);
}

static void shared_memory_is_used_in_turns(void **state)
{
    (void)state;
    test_each_device(take_turns);
}

/* The host's address of memory that a device does not share: there is none. */
static void no_address(test_device *device)
{
    test_device_as_card(device);
    float x[N] = { 0 };
    void *host = x;
    clv_array *a = from(device->context, x, N), *b;
    EXPECT_FAIL(CLV_E_UNSUPPORTED, "does not share", clv_array_host(a, &host));
    assert_null(host);
    clv_offload_force(CLV_SIDE_HOST);
    b = empty(device->context, N);
    twice(device->context, a, b);
    clv_offload_force(CLV_SIDE_AUTO);
    EXPECT_OK(clv_array_host(b, &host)); /* from now on the host's memory has the latest elements */
    clv_offload_force(CLV_SIDE_DEVICE);
    twice(device->context, a, b);
    clv_offload_force(CLV_SIDE_AUTO);
    assert_true(((float *)host)[N - 1] == 1);
    clv_array_free(a), clv_array_free(b);
}

static void a_cards_memory_has_no_address(void **state)
{
    (void)state;
    test_each_device(no_address);
}

/* One call makes the result and computes it; a number takes the other operand's type. */
static void compute(test_device *device)
{
    clv_context *c = device->context;
    const int32_t whole[3] = { 1, 2, 3 };
    const size_t shape[] = { 3 }, other[] = { 2 };
    int32_t got[3];
    clv_array *a, *b, *d;
    EXPECT_OK(clv_array_make_from(c, CLV_I32, whole, 1, shape, &a));
    EXPECT_OK(clv_array_make(c, CLV_I32, 1, other, &d));
    b = clv_array_compute(CLV_OP_SUBTRACT, NULL, a, 10);
    assert_true(b && clv_array_type(b) == CLV_I32);
    EXPECT_OK(clv_array_copy_to(b, got));
    assert_true(got[0] == 9 && got[1] == 8 && got[2] == 7);
    clv_array_free(b);
    b = clv_array_compute(CLV_OP_LESS, a, a, 0);
    assert_true(b && clv_array_type(b) == CLV_BOOL);
    clv_array_free(b);
    b = clv_array_compute(CLV_OP_NEGATE, a, NULL, 0);
    EXPECT_OK(clv_array_copy_to(b, got));
    assert_true(got[2] == -3);
    clv_array_free(b);
    /* a column and a row broadcast to a table, whichever comes first */
    const size_t column[] = { 3, 1 };
    clv_array *tall;
    EXPECT_OK(clv_array_make_from(c, CLV_I32, whole, 2, column, &tall));
    for (int turned = 0; turned < 2; ++turned) {
        int32_t table[9];
        b = clv_array_compute(CLV_OP_SUBTRACT, turned ? a : tall, turned ? tall : a, 0);
        assert_non_null(b);
        assert_true(clv_array_rank(b) == 2 && clv_array_elements(b) == 9);
        EXPECT_OK(clv_array_copy_to(b, table));
        for (int i = 0; i < 9; ++i)
            assert_int_equal(table[i], (turned ? -1 : 1) * (whole[i / 3] - whole[i % 3]));
        clv_array_free(b);
    }
    clv_array_free(tall);
    assert_null(clv_array_compute(CLV_OP_ADD, a, d, 0));
    assert_null(clv_array_compute(CLV_OP_WHERE, a, a, 0));
    assert_null(clv_array_compute(CLV_OP_ADD, NULL, NULL, 0));
    assert_null(clv_array_compute(CLV_OP_NEGATE, NULL, a, 0));
    clv_array_free(a), clv_array_free(d);
}

static void results_are_made_by_the_call(void **state)
{
    (void)state;
    test_each_device(compute);
}

static int products;

/* cblas_sgemm of row-major matrices, one element after the other; the sums are doubled, which shows who computed. */
static void twice_wide(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
                       const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                       float *c, int64_t ldc)
{
    assert_true(order == 101 && alpha == 1 && beta == 0 && ldc == n);
    ++products;
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t q = 0; q < k; ++q)
                sum += (ta == 112 ? a[q * lda + i] : a[i * lda + q]) *
                       (tb == 112 ? b[j * ldb + q] : b[q * ldb + j]);
            c[i * ldc + j] = 2 * sum;
        }
}

static void twice_narrow(int order, int ta, int tb, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc)
{
    twice_wide(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* A [24,520] times B [520,16], stored as they are or transposed, on the host, by the caller's function or our own. If a
 * sum has so many terms, our own kernel does not take less time than a BLAS. */
static void multiply(clv_context *c, bool ta, bool tb, float times)
{
    enum { M = 24, K = 520, N_ = 16 };
    float a[M * K], b[K * N_], got[M * N_];
    const size_t sa[] = { ta ? K : M, ta ? M : K }, sb[] = { tb ? N_ : K, tb ? K : N_ },
                 sc[] = { M, N_ };
    for (int i = 0; i < M * K; ++i)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < K * N_; ++i)
        b[i] = (float)(i % 5 - 2);
    clv_array *x, *y, *z;
    EXPECT_OK(clv_array_from(c, a, 2, sa, &x));
    EXPECT_OK(clv_array_from(c, b, 2, sb, &y));
    EXPECT_OK(clv_array_create(c, 2, sc, &z));
    const clv_product_options o = { .size = sizeof o, .a_transposed = ta, .b_transposed = tb };
    EXPECT_OK(clv_product(c, x, y, &o, z));
    EXPECT_OK(clv_array_get(z, got));
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N_; ++j) {
            float want = 0;
            for (int q = 0; q < K; ++q)
                want += (ta ? a[q * M + i] : a[i * K + q]) * (tb ? b[j * K + q] : b[q * N_ + j]);
            assert_true(got[i * N_ + j] == times * want);
        }
    if (!ta && !tb) {
        float again[M * N_];
        clv_array_free(z);
        z = clv_array_multiply(x, y);
        EXPECT_OK(clv_array_get(z, again));
        assert_memory_equal(again, got, sizeof got);
        assert_null(clv_array_multiply(x, x));
        assert_null(clv_array_multiply(x, NULL));
    }
    clv_array_free(x), clv_array_free(y), clv_array_free(z);
}

static void by_blas(test_device *device)
{
    clv_function *const functions[] = { (clv_function *)twice_wide, (clv_function *)twice_narrow };
    for (unsigned i = 0; i < 2; ++i) {
        EXPECT_OK(clv_blas_use(functions[i], i ? 32 : 64));
        for (int side = CLV_SIDE_AUTO; side <= CLV_SIDE_HOST; ++side)
            for (int turned = 0; turned < 4; ++turned) {
                clv_offload_force((clv_side)side);
                multiply(device->context, turned & 1, turned & 2, 2);
            }
    }
    EXPECT_FAIL(CLV_E_ARGUMENT, "16 bits", clv_blas_use(functions[0], 16));
    EXPECT_OK(clv_blas_use(NULL, 0));
    assert_true(products >= 20);
    products = 0;
    multiply(device->context, true, false, 1);
    assert_int_equal(products, 0);
    clv_offload_force(CLV_SIDE_AUTO);
}

static void the_callers_blas_multiplies(void **state)
{
    (void)state;
    test_each_device(by_blas);
}

static void a_context_waits_for_its_arrays(void **state)
{
    (void)state;
    clv_context *c = test_plain_context();
    const float x[3] = { 1, 2, 3 };
    float y[3];
    clv_array *a = from(c, x, 3), *b = empty(c, 3);
    clv_context_free(c);
    twice(c, a, b);
    EXPECT_OK(clv_array_get(b, y));
    assert_true(y[2] == 7);
    clv_array_free(a), clv_array_free(b);
}

static void arrays_stay_where_they_are(void **state)
{
    (void)state;
    test_each_device(stay);
}

/* The device is treated as a card with memory of its own, so operands are copied and counted. */
static void move(test_device *device)
{
    test_device_as_card(device);
    clv_context *c = device->context;
    float x[N], y[N];
    const size_t count = N;
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    clv_array *a, *b;
    EXPECT_OK(clv_array_wrap(c, x, 1, &count, &a));
    EXPECT_OK(clv_array_wrap(c, y, 1, &count, &b));
    clv_offload_force(CLV_SIDE_DEVICE);
    twice(c, a, b);
    twice(c, b, b); /* in place */
    clv_offload_force(CLV_SIDE_AUTO);
    for (int i = 0; i < N; ++i)
        assert_true(y[i] == 4 * x[i] + 3);
    const clv_array_stats s = clv_array_statistics(c);
    assert_int_equal(s.uploads, 2);
    assert_int_equal(s.downloads, 2);
    assert_int_equal(s.calls_device, 2);
    clv_array_free(a), clv_array_free(b);
}

static void a_cards_transfers_are_counted(void **state)
{
    (void)state;
    test_each_device(move);
}

static void out_of_memory_falls_back(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    const clv_context_options small = { .size = sizeof(clv_context_options),
                                        .memory_bytes = 1 << 20 };
    test_device_open(0, &small, &device);
    test_device_as_card(&device);
    clv_context *c = device.context;
    const size_t count = 400000;
    float *x = clv_alloc(count, sizeof *x), *y = clv_alloc(count, sizeof *y);
    assert_true(x && y);
    for (size_t i = 0; i < count; ++i)
        x[i] = (float)(i % 100);
    clv_array *a = from(c, x, count), *b = empty(c, count); /* 1.6 MB: no room */
    assert_false(clv_array_is_on_device(a));
    clv_array *half = from(c, x, 200000), *copy; /* nor is there for a second one of 0.8 */
    assert_true(clv_array_is_on_device(half));
    EXPECT_OK(clv_array_copy(half, 0, NULL, &copy));
    assert_false(clv_array_is_on_device(copy));
    EXPECT_OK(clv_array_get(copy, y));
    assert_memory_equal(x, y, 200000 * sizeof *x);
    clv_array_free(half), clv_array_free(copy);
    clv_offload_force(CLV_SIDE_DEVICE);
    const clv_map_input in[] = { { "x", a, 0 } };
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "of the budget", clv_map(c, "2*x + 1", in, 1, b));
    clv_offload_force(CLV_SIDE_AUTO);
    EXPECT_OK(clv_map(c, "sin(x) + exp(-x) * cos(2*x) + pow(x, 1.5)", in, 1, b));
    twice(c, a, b);
    EXPECT_OK(clv_array_get(b, y));
    for (size_t i = 0; i < count; ++i)
        assert_true(y[i] == 2 * x[i] + 1);
    assert_true(clv_array_statistics(c).fallbacks >= 1);
    clv_array_free(a), clv_array_free(b);
    clv_free(x), clv_free(y);
    test_device_close(&device);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    clv_context *c, *other;
    c = test_plain_context();
    other = test_plain_context();
    float x[8] = { 0 };
    const size_t five = 5, none = 0, huge[] = { 1 << 20, 1 << 20 }, two[] = { 2, 4 };
    clv_array *a, *b, *d;
    EXPECT_FAIL(CLV_E_SHAPE, "extent 0", clv_array_create(c, 1, &none, &a));
    assert_null(a);
    EXPECT_FAIL(CLV_E_SHAPE, "2^31 elements", clv_array_create(c, 2, huge, &a));
    EXPECT_FAIL(CLV_E_SHAPE, "at most 4", clv_array_create(c, 5, huge, &a));
    EXPECT_FAIL(CLV_E_ARGUMENT, "memory to wrap is NULL", clv_array_wrap(c, NULL, 1, &five, &a));
    EXPECT_OK(clv_array_create(c, 1, &five, &a));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no values", clv_array_get(a, x));
    const clv_map_input in[] = { { "x", a, 0 } };
    EXPECT_OK(clv_array_wrap(c, x, 1, &five, &b));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no values", clv_map(c, "x", in, 1, b));
    EXPECT_FAIL(CLV_E_ARGUMENT, "another context", clv_map(other, "1", NULL, 0, b));
    EXPECT_OK(clv_array_wrap(c, x + 3, 1, &five, &d));
    const clv_map_input over[] = { { "x", b, 0 } };
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_map(c, "x", over, 1, d));
    EXPECT_FAIL(CLV_E_SHAPE, "8 elements, but the array has 5", clv_array_reshape(a, 2, two));
    EXPECT_OK(clv_array_put(a, x));
    EXPECT_OK(clv_array_get(a, x));
    clv_offload_force(CLV_SIDE_DEVICE);
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_map(c, "x", over, 1, d));
    clv_offload_force(CLV_SIDE_HOST);
    EXPECT_OK(clv_map(c, "x + 1", in, 1, b));
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array_free(a), clv_array_free(b), clv_array_free(d);
    clv_context_free(c), clv_context_free(other);
}

static void without_a_device_the_host_works(void **state)
{
    (void)state;
    clv_context *c = test_plain_context();
    const float x[3] = { 1, 2, 3 };
    float y[3];
    clv_array *a = from(c, x, 3), *b = empty(c, 3);
    twice(c, a, b);
    EXPECT_OK(clv_array_get(b, y));
    assert_true(y[2] == 7 && !clv_array_is_on_device(b));
    clv_offload plan;
    EXPECT_OK(clv_offload_last(&plan));
    assert_string_equal(plan.reason, "host: the context has no device");
    clv_offload_force(CLV_SIDE_DEVICE);
    const clv_map_input in[] = { { "x", a, 0 } };
    EXPECT_FAIL(CLV_E_NO_DEVICE, "a device was demanded", clv_map(c, "x", in, 1, b));
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array_free(a), clv_array_free(b);
    clv_context_free(c);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(without_a_device_the_host_works),
        cmocka_unit_test(arrays_stay_where_they_are),
        cmocka_unit_test(shared_memory_is_used_in_turns),
        cmocka_unit_test(a_cards_memory_has_no_address),
        cmocka_unit_test(results_are_made_by_the_call),
        cmocka_unit_test(the_callers_blas_multiplies),
        cmocka_unit_test(a_context_waits_for_its_arrays),
        cmocka_unit_test(a_cards_transfers_are_counted),
        cmocka_unit_test(out_of_memory_falls_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

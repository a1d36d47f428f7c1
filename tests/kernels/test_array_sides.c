/* SPDX-License-Identifier: Apache-2.0 */
/* Tests convolution, eigenvalues and Monte Carlo forced to either side: both give the same results, and the library
 * explains its choice. Tests that threads may use one array on either side. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/thread.h"

#include <cleave/array.h>
#include <cleave/array_typed.h>
#include <cleave/blas.h>
#include <cleave/offload.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 96, COUNT = 40, N = 6, SAMPLES = 400001 };

typedef struct data {
    float image[SIDE * SIDE], kernel[25], filtered[SIDE * SIDE];
    float matrices[COUNT * N * N], values[COUNT * N];
    uint64_t inside;
} data;

static data *make(void)
{
    data *d = clv_zalloc(1, sizeof *d);
    assert_non_null(d);
    uint64_t seed = 3;
    for (int i = 0; i < SIDE * SIDE; ++i)
        d->image[i] = (float)test_uniform(&seed, -1, 1);
    for (int i = 0; i < COUNT * N * N; ++i)
        d->matrices[i] = (float)test_uniform(&seed, -1, 1);
    EXPECT_OK(clv_gaussian_2d(1.5, 2, d->kernel));
    return d;
}

enum { CONVOLVE, EIGVALSH, MONTE_CARLO, OPERATIONS };
static const char *const names[] = { "convolve", "eigvalsh", "monte carlo" };

static clv_status compute(clv_context *context, data *d, int what, clv_report *report)
{
    if (what == CONVOLVE)
        return clv_convolve_2d(context, d->image, SIDE, SIDE, d->kernel, 5, 5, NULL, d->filtered,
                               report);
    if (what == EIGVALSH)
        return clv_eigvalsh(context, d->matrices, COUNT, N, NULL, d->values, report);
    return clv_monte_carlo_pi(context, SAMPLES, NULL, &d->inside, report);
}

static void expect_plan(const char *operation, clv_side side, bool forced)
{
    clv_offload plan;
    EXPECT_OK(clv_offload_last(&plan));
    assert_string_equal(plan.operation, operation);
    assert_int_equal(plan.side, side);
    assert_int_equal(plan.forced, forced);
    assert_true(plan.flops > 0 && plan.bytes >= 0 && *plan.reason);
}

/* Forced to either side, that side and no other does the work, and both find the same. */
static void both(test_device *device)
{
    data *of[2] = { make(), make() };
    const int last = device->slow || device->tiny ? CONVOLVE : MONTE_CARLO;
    for (int what = 0; what <= last; ++what)
        for (int side = 0; side < 2; ++side) {
            clv_report *report;
            EXPECT_OK(clv_report_create(&report));
            clv_offload_force(side ? CLV_SIDE_DEVICE : CLV_SIDE_HOST);
            EXPECT_OK(compute(device->context, of[side], what, report));
            clv_offload_force(CLV_SIDE_AUTO);
            expect_plan(names[what], side ? CLV_SIDE_DEVICE : CLV_SIDE_HOST, true);
            size_t hosts = 0, devices = 0;
            for (size_t i = 0; i < clv_report_share_count(report); ++i) {
                const clv_share share = clv_report_share(report, i);
                *(strstr(share.device, "host") == share.device ? &hosts : &devices) += share.units;
            }
            assert_true(side ? devices && !hosts : hosts && !devices);
            clv_report_free(report);
        }
    assert_memory_equal(of[0]->filtered, of[1]->filtered, sizeof of[0]->filtered);
    assert_int_equal(of[0]->inside, of[1]->inside);
    for (int i = 0; i < COUNT * N && last > CONVOLVE; ++i)
        assert_true(fabs((double)of[0]->values[i] - (double)of[1]->values[i]) < 1e-5);
    clv_free(of[0]), clv_free(of[1]);
}

static void either_side_is_an_order(void **state)
{
    (void)state;
    test_each_device(both);
    if (!test_device_count()) return;
    test_device device;
    test_device_open(0, NULL, &device);
    test_device_as_card(&device); /* operands are copied */
    both(&device);
    test_device_close(&device);
}

/* A product that is shorter than the decision: still told, and forced like others. */
static void a_tiny_product_is_decided_at_once(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    enum { ROWS = 4 };
    test_device device;
    float a[ROWS * ROWS], host[ROWS * ROWS], other[ROWS * ROWS] = { 0 };
    clv_offload plan;
    for (int i = 0; i < ROWS * ROWS; ++i)
        a[i] = (float)(i + 1) / 7;
    test_device_open(0, NULL, &device);
    clv_context *c = device.context;
    EXPECT_OK(clv_matmul_f32(c, ROWS, ROWS, ROWS, a, a, host));
    expect_plan("matmul", CLV_SIDE_HOST, false);
    EXPECT_OK(clv_offload_last(&plan));
    assert_true(plan.flops == 128 && plan.bytes == 192 && plan.host_s < plan.device_s);
    assert_string_equal(plan.device, device.name);
    assert_non_null(strstr(plan.reason, "predicted on the host"));
    clv_offload_dry(true);
    EXPECT_OK(clv_matmul_f32(c, ROWS, ROWS, ROWS, a, a, other));
    clv_offload_dry(false);
    assert_true(other[0] == 0);
    clv_offload_force(CLV_SIDE_DEVICE);
    EXPECT_OK(clv_matmul_f32(c, ROWS, ROWS, ROWS, a, a, other));
    expect_plan("matmul", CLV_SIDE_DEVICE, true);
    clv_offload_force(CLV_SIDE_HOST);
    EXPECT_OK(clv_matmul_f32(c, ROWS, ROWS, ROWS, a, a, other));
    expect_plan("matmul", CLV_SIDE_HOST, true);
    clv_offload_force(CLV_SIDE_AUTO);
    assert_memory_equal(host, other, sizeof host);
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory",
                clv_matmul_f32(c, ROWS, ROWS, ROWS, a, a, a + ROWS * ROWS - 1));
    test_device_close(&device);
}

/* A plan is made and nothing is computed; small ones are the host's. */
static void told(test_device *device)
{
    data *d = make();
    d->filtered[0] = d->values[0] = -7;
    d->inside = 77;
    for (int what = 0; what < OPERATIONS; ++what) {
        assert_false(clv_offload_dry(true));
        EXPECT_OK(compute(device->context, d, what, NULL));
        assert_true(clv_offload_dry(false));
        clv_offload plan;
        EXPECT_OK(clv_offload_last(&plan));
        assert_string_equal(plan.operation, names[what]);
        assert_true(plan.host_s > 0 && plan.device_s > 0 && !plan.forced);
        assert_non_null(strstr(plan.reason, "predicted on the host"));
    }
    assert_true(d->filtered[0] == -7 && d->values[0] == -7);
    EXPECT_OK(
        clv_convolve_2d(device->context, d->image, 8, 8, d->kernel, 5, 5, NULL, d->filtered, NULL));
    expect_plan("convolve", CLV_SIDE_HOST, false);
    clv_free(d);
}

static void a_plan_computes_nothing(void **state)
{
    (void)state;
    test_each_device(told);
}

static void without_a_device(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    data *d = make();
    for (int what = 0; what < OPERATIONS; ++what) {
        EXPECT_OK(compute(context, d, what, NULL));
        expect_plan(names[what], CLV_SIDE_HOST, true);
        clv_offload_force(CLV_SIDE_DEVICE);
        EXPECT_FAIL(CLV_E_NO_DEVICE, "a device was demanded", compute(context, d, what, NULL));
        clv_offload_force(CLV_SIDE_AUTO);
    }
    clv_free(d);
    clv_context_free(context);
}

static void *ask(void *context)
{
    static float image[64], out[64];
    static const float one = 1;
    EXPECT_OK(clv_convolve_2d(context, image, 8, 8, &one, 1, 1, NULL, out, NULL));
    clv_offload plan;
    EXPECT_OK(clv_offload_last(&plan));
    assert_false(plan.forced);
    return NULL;
}

static void an_order_is_one_threads(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    clv_thread thread;
    test_device_open(0, NULL, &device);
    clv_offload_force(CLV_SIDE_DEVICE);
    assert_true(clv_thread_start(&thread, "other", ask, device.context));
    pthread_join(thread, NULL);
    clv_offload_force(CLV_SIDE_AUTO);
    test_device_close(&device);
}

/* What each of several threads computes from an array that all of them read. */
typedef struct reader {
    clv_context *context;
    clv_array *shared;
    size_t wrong;
    clv_status status;
} reader;

enum { ROUNDS = 40, SHARED = 48 };

/* Doubles the shared array's odd elements on the device and on the host in turns, and reads the array itself. */
static void *read_in_turns(void *user)
{
    reader *r = user;
    const size_t half = SHARED / 2;
    const ptrdiff_t step = 2;
    float doubled[SHARED / 2], whole[SHARED];
    clv_array *odd = NULL, *sum = NULL;
    r->status = clv_array_view(r->shared, 1, 1, &half, &step, &odd);
    if (!r->status) r->status = clv_array_create(r->context, 1, &half, &sum);
    const clv_operand operands[] = { { .array = odd }, { .array = odd } };
    for (int round = 0; round < ROUNDS && !r->status; ++round) {
        clv_offload_force(round % 3 ? CLV_SIDE_AUTO : CLV_SIDE_DEVICE);
        r->status = clv_array_apply(r->context, CLV_OP_ADD, operands, 2, sum);
        if (!r->status) r->status = clv_array_get(sum, doubled);
        if (!r->status) r->status = clv_array_get(r->shared, whole);
        for (size_t i = 0; i < half && !r->status; ++i)
            r->wrong += doubled[i] != 2 * (float)(2 * i + 1) || whole[2 * i] != (float)(2 * i);
    }
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array_free(odd), clv_array_free(sum);
    return NULL;
}

static void threads_may_share_an_array(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    enum { THREADS = 4 };
    const size_t shape = SHARED;
    float values[SHARED];
    for (size_t i = 0; i < SHARED; ++i)
        values[i] = (float)i;
    for (size_t d = 0; d < test_device_count(); ++d) {
        test_device device;
        clv_array *shared;
        clv_thread threads[THREADS];
        reader readers[THREADS];
        test_device_open(d, NULL, &device);
        EXPECT_OK(clv_array_from(device.context, values, 1, &shape, &shared));
        for (size_t i = 0; i < THREADS; ++i) {
            readers[i] = (reader){ .context = device.context, .shared = shared };
            assert_true(clv_thread_start(&threads[i], "reader", read_in_turns, &readers[i]));
        }
        for (size_t i = 0; i < THREADS; ++i)
            pthread_join(threads[i], NULL);
        for (size_t i = 0; i < THREADS; ++i) {
            assert_int_equal(readers[i].status, CLV_OK);
            assert_int_equal(readers[i].wrong, 0);
        }
        clv_array_free(shared);
        test_device_close(&device);
    }
}

/* Odd sizes on the host alone, which no device sees any more: by definition, in float64. */
static void host_filters_are_right(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    uint64_t seed = 9;
    static float in[300 * 300], out[300 * 300], kernel[9];
    for (size_t i = 0; i < CLV_LEN(in); ++i)
        in[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < CLV_LEN(kernel); ++i)
        kernel[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t size = 1; size < 300; size += size < 40 ? 1 : 53) {
        const size_t height = 300 - size;
        EXPECT_OK(clv_convolve_2d(context, in, height, size, kernel, 3, 3, NULL, out, NULL));
        for (size_t y = 1; y + 1 < height; ++y)
            for (size_t x = 1; x + 1 < size; ++x) {
                double sum = 0;
                for (size_t k = 0; k < 9; ++k)
                    sum += (double)kernel[k] * (double)in[(y + 1 - k / 3) * size + x + 1 - k % 3];
                assert_true(fabs(sum - (double)out[y * size + x]) < 1e-6);
            }
    }
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_device),
        cmocka_unit_test(host_filters_are_right),
        cmocka_unit_test(either_side_is_an_order),
        cmocka_unit_test(a_plan_computes_nothing),
        cmocka_unit_test(an_order_is_one_threads),
        cmocka_unit_test(threads_may_share_an_array),
        cmocka_unit_test(a_tiny_product_is_decided_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

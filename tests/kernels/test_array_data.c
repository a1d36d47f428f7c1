/* SPDX-License-Identifier: Apache-2.0 */
/* Where arrays lie, who does the work, and what happens when the device cannot. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "runtime/offload/offload.h"

#include <cleave/array_math.h>
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

/* Small work stays on the device because its operand lies there, and nothing moves. */
static void stay(test_device *device)
{
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

static void arrays_stay_where_they_are(void **state)
{
    (void)state;
    test_each_device(stay);
}

/* As with a card: memory of its own, so operands are copied and counted. */
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
    const clv_context_options small = { .memory_bytes = 1 << 20 };
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
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL memory", clv_array_wrap(c, NULL, 1, &five, &a));
    EXPECT_OK(clv_array_create(c, 1, &five, &a));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no contents", clv_array_get(a, x));
    const clv_map_input in[] = { { "x", a, 0 } };
    EXPECT_OK(clv_array_wrap(c, x, 1, &five, &b));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no contents", clv_map(c, "x", in, 1, b));
    EXPECT_FAIL(CLV_E_ARGUMENT, "another context", clv_map(other, "1", NULL, 0, b));
    EXPECT_OK(clv_array_wrap(c, x + 3, 1, &five, &d));
    const clv_map_input over[] = { { "x", b, 0 } };
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_map(c, "x", over, 1, d));
    EXPECT_FAIL(CLV_E_SHAPE, "8 elements given, the array has 5", clv_array_reshape(a, 2, two));
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

/* ---- the decision -------------------------------------------------------------------------------- */

static void a_curve_is_read_between_its_points(void **state)
{
    (void)state;
    clv_curve c = { 0 }, back;
    clv_curve_add(&c, 1e4, 1e-5, 5e-5);
    clv_curve_add(&c, 1e2, 1e-7, 5e-5);
    clv_curve_add(&c, 1e6, 1e-3, 2e-4);
    double host, device;
    clv_curve_at(&c, 1e3, &host, &device);
    assert_true(host > 0.99e-6 && host < 1.01e-6 && device > 4.99e-5 && device < 5.01e-5);
    clv_curve_at(&c, 1e7, &host, &device);
    assert_true(host > 0.99e-2 && host < 1.01e-2 && device > 1.99e-3 && device < 2.01e-3);
    clv_curve_at(&c, 50, &host, &device);
    assert_true(host < 0.51e-7 && device == 5e-5);
    char text[400];
    clv_curve_write(&c, text, sizeof text);
    assert_true(clv_curve_read(text, &back));
    assert_int_equal(back.count, 3);
    assert_true(back.at[1].work == 1e4 && back.at[2].device_s == 2e-4);
    static const char *const bad[] = { "",      "1:2",     "1:2:3 1:2:3", "x:1:1",
                                       "1:0:1", "1:1:1 2", "1:-1:1" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i)
        assert_false(clv_curve_read(bad[i], &back));
}

/* Times that a test makes up: the host does 1e9 of work a second, the device ten times that after
 * 100 us. */
static clv_status made_up(clv_context *context, double work, clv_side side, double *seconds,
                          void *user)
{
    (void)context;
    ++*(int *)user;
    *seconds = side == CLV_SIDE_HOST ? work / 1e9 : 100e-6 + work / 1e10;
    return CLV_OK;
}

static void the_faster_side_is_taken(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    const clv_context_options with_notes = { .no_tuning = false };
    test_device_open(0, &with_notes, &device);
    int trials = 0;
    clv_context *context;
    const clv_context_options tuned = { .cache_dir = device.cache_dir, .no_qualification = true };
    EXPECT_OK(clv_context_create(&tuned, &context));
    clv_offload_request r = { .operation = "test",
                              .kind = "test kind",
                              .flops = 1e9,
                              .least_work = 1e3,
                              .most_work = 1e8,
                              .trial = made_up,
                              .user = &trials };
    int wrong = 0, after = 0;
    for (double work = 1e3; work < 1e8; work *= 1.1) {
        clv_offload plan;
        r.work = work;
        r.bytes = work * 100;
        EXPECT_OK(clv_offload_decide(context, &r, &plan));
        const double host = work / 1e9, there = 100e-6 + work / 1e10;
        if (plan.measured) {
            const bool right = (plan.side == CLV_SIDE_HOST) == (host < there);
            wrong += !right;
            if (!right) assert_true(host / there < 1.1 && there / host < 1.1);
        }
        if (!after) after = trials;
    }
    assert_true(wrong <= 1 && trials > 6 && trials < 90);
    clv_context_free(context); /* and the figures stay */
    const int before = trials;
    EXPECT_OK(clv_context_create(&tuned, &context));
    clv_offload plan;
    r.work = 1e7;
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    assert_int_equal(trials, before);
    assert_int_equal(plan.side, CLV_SIDE_DEVICE);
    assert_true(plan.measured && !plan.forced && plan.device_s < plan.host_s);
    assert_non_null(strstr(plan.reason, "predicted on the host"));
    /* force, dry */
    assert_int_equal(clv_offload_force(CLV_SIDE_HOST), CLV_SIDE_AUTO);
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    assert_true(plan.side == CLV_SIDE_HOST && plan.forced);
    assert_int_equal(clv_offload_force(CLV_SIDE_AUTO), CLV_SIDE_HOST);
    float a[4] = { 1, 2, 3, 4 }, out[4] = { -1, -1, -1, -1 };
    assert_false(clv_offload_dry(true));
    EXPECT_OK(clv_matmul_f32(context, 2, 2, 2, a, a, out));
    assert_true(clv_offload_dry(false));
    assert_true(out[0] == -1 && out[3] == -1);
    EXPECT_OK(clv_offload_last(&plan));
    assert_string_equal(plan.operation, "matmul");
    EXPECT_OK(clv_matmul_f32(context, 2, 2, 2, a, a, out));
    assert_true(out[0] == 7 && out[3] == 22);
    clv_context_free(context);
    test_device_close(&device);
}

/* The same, but one size is slow there: no curve tells. */
static clv_status odd_size(clv_context *context, double work, clv_side side, double *seconds,
                           void *user)
{
    const clv_status status = made_up(context, work, side, seconds, user);
    if (side == CLV_SIDE_DEVICE && work == 150001) *seconds *= 3;
    return status;
}

static void a_doubtful_size_is_timed_itself(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    test_device_open(0, NULL, &device);
    int trials = 0;
    clv_context *context;
    clv_offload plan;
    const clv_context_options tuned = { .cache_dir = device.cache_dir, .no_qualification = true };
    EXPECT_OK(clv_context_create(&tuned, &context));
    clv_offload_request r = { .operation = "test",
                              .kind = "odd kind",
                              .work = 150001,
                              .flops = 1e9,
                              .least_work = 1e3,
                              .most_work = 1e8,
                              .trial = odd_size,
                              .user = &trials };
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    assert_true(plan.measured && plan.side == CLV_SIDE_DEVICE); /* 150 us, 115 there */
    assert_non_null(strstr(plan.reason, "measured rates"));
    const int before = trials;
    for (int i = 0; i < 100; ++i) /* 12 ms of calls: it would not pay */
        clv_offload_took(context, &r, CLV_SIDE_DEVICE, 115e-6);
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    assert_int_equal(trials, before);
    assert_int_equal(plan.side, CLV_SIDE_DEVICE);
    for (int i = 0; i < 2000; ++i)
        clv_offload_took(context, &r, CLV_SIDE_DEVICE, 115e-6);
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    assert_true(trials > before && plan.side == CLV_SIDE_HOST && plan.device_s > 300e-6);
    assert_non_null(strstr(plan.reason, "measured at this size"));
    r.work = 150002;       /* not to others */
    clv_offload_dry(true); /* who asks for a plan waits for nothing */
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    clv_offload_dry(false);
    assert_int_equal(plan.side, CLV_SIDE_DEVICE);
    assert_non_null(strstr(plan.reason, "measured at this size"));
    clv_context_free(context); /* and it is noted */
    const int then = trials;
    EXPECT_OK(clv_context_create(&tuned, &context));
    r.work = 150001;
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    assert_int_equal(plan.side, CLV_SIDE_HOST);
    assert_non_null(strstr(plan.reason, "measured at this size"));
    assert_int_equal(trials, then);
    clv_context_free(context);
    test_device_close(&device);
}

/* The host is faster; the device, which is tried now and then, cannot do it. */
static void a_try_that_fails_is_not_repeated_at_once(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    test_device_open(0, NULL, &device);
    int trials = 0, tries = 0;
    clv_context *context;
    clv_offload plan;
    const clv_context_options tuned = { .cache_dir = device.cache_dir, .no_qualification = true };
    EXPECT_OK(clv_context_create(&tuned, &context));
    clv_offload_request r = { .operation = "test", .kind = "failing kind", .work = 1e5 };
    r.flops = 1e9, r.least_work = 1e3, r.most_work = 1e8, r.trial = made_up, r.user = &trials;
    clv_offload_dry(true);
    EXPECT_OK(clv_offload_decide(context, &r, &plan));
    clv_offload_dry(false);
    assert_non_null(strstr(plan.reason, "measured at this size"));
    clv_offload_took(context, &r, CLV_SIDE_DEVICE, 110e-6); /* its program is there */
    for (int i = 0; i < 6000; ++i) {
        EXPECT_OK(clv_offload_decide(context, &r, &plan));
        tries += plan.side == CLV_SIDE_DEVICE;
        if (plan.side == CLV_SIDE_DEVICE)
            clv_offload_fell_back(context, &r, "no room");
        else
            clv_offload_took(context, &r, CLV_SIDE_HOST, 100e-6);
    }
    assert_int_equal(tries, 1);
    clv_context_free(context);
    test_device_close(&device);
}

/* A kind that is being timed: its trial waits until another thread's calls were decided. */
typedef struct slow_kind {
    clv_context *context;
    clv_offload_request request;
    clv_mutex lock;
    clv_cond changed;
    bool begun, decided, waited_in_vain;
} slow_kind;

static clv_status held_up(clv_context *context, double work, clv_side side, double *seconds,
                          void *user)
{
    slow_kind *k = user;
    (void)context;
    pthread_mutex_lock(&k->lock);
    k->begun = true;
    pthread_cond_broadcast(&k->changed);
    for (const double until = clv_now() + 30; !k->decided && clv_now() < until;)
        clv_cond_wait_until(&k->changed, &k->lock, until);
    k->waited_in_vain |= !k->decided;
    k->decided = true;
    pthread_mutex_unlock(&k->lock);
    *seconds = side == CLV_SIDE_HOST ? work / 1e9 : 100e-6 + work / 1e10;
    return CLV_OK;
}

static void *call_slow_kind(void *user)
{
    slow_kind *k = user;
    clv_offload plan;
    return clv_offload_decide(k->context, &k->request, &plan) || !plan.measured ? k : NULL;
}

static void others_go_on_while_a_kind_is_timed(void **state)
{
    (void)state;
    if (!test_device_count()) test_skip_without_device();
    test_device device;
    test_device_open(0, NULL, &device);
    slow_kind k = { 0 };
    const clv_context_options tuned = { .cache_dir = device.cache_dir, .no_qualification = true };
    EXPECT_OK(clv_context_create(&tuned, &k.context));
    k.request = (clv_offload_request){ .operation = "test",
                                       .kind = "slow kind",
                                       .work = 1e7,
                                       .flops = 1e9,
                                       .least_work = 1e3,
                                       .most_work = 1e8,
                                       .trial = held_up,
                                       .user = &k };
    clv_mutex_init(&k.lock), clv_cond_init(&k.changed);
    clv_thread other;
    assert_true(clv_thread_start(&other, "slow kind", call_slow_kind, &k));
    pthread_mutex_lock(&k.lock);
    while (!k.begun)
        clv_cond_wait_until(&k.changed, &k.lock, clv_now() + 1);
    pthread_mutex_unlock(&k.lock);
    clv_offload plan;
    EXPECT_OK(clv_offload_decide(k.context, &k.request, &plan));
    assert_true(plan.side == CLV_SIDE_HOST && !plan.measured);
    clv_offload_request another = k.request;
    another.kind = "another kind";
    EXPECT_OK(clv_offload_decide(k.context, &another, &plan));
    assert_false(plan.measured);
    pthread_mutex_lock(&k.lock);
    k.decided = true;
    pthread_cond_broadcast(&k.changed);
    pthread_mutex_unlock(&k.lock);
    void *failed;
    pthread_join(other, &failed);
    assert_null(failed);
    assert_false(k.waited_in_vain);
    EXPECT_OK(clv_offload_decide(k.context, &k.request, &plan));
    assert_true(plan.measured && plan.side == CLV_SIDE_DEVICE);
    clv_context_free(k.context);
    test_device_close(&device);
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
    EXPECT_FAIL(CLV_E_NO_DEVICE, "forced to a device", clv_map(c, "x", in, 1, b));
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array_free(a), clv_array_free(b);
    clv_context_free(c);
}

int main(void)
{
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_is_read_between_its_points),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(without_a_device_the_host_works),
        cmocka_unit_test(the_faster_side_is_taken),
        cmocka_unit_test(a_doubtful_size_is_timed_itself),
        cmocka_unit_test(a_try_that_fails_is_not_repeated_at_once),
        cmocka_unit_test(others_go_on_while_a_kind_is_timed),
        cmocka_unit_test(arrays_stay_where_they_are),
        cmocka_unit_test(a_cards_transfers_are_counted),
        cmocka_unit_test(out_of_memory_falls_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

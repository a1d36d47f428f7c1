/* SPDX-License-Identifier: Apache-2.0 */
/* Tests asynchronous calls: what they return, when they wait, and how they fail. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "host/array/data.h"
#include "runtime/job/backlog.h"

#include <cleave/array_async.h>
#include <cleave/array_fold.h>
#include <cleave/array_math.h>
#include <cleave/log.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 2048, ROWS = 32, COLUMNS = N / ROWS };

static clv_array *ramp(clv_context *context)
{
    static const size_t shape[] = { ROWS, COLUMNS };
    static float x[N];
    clv_array *array;
    for (int i = 0; i < N; ++i)
        x[i] = (float)(i % 97);
    EXPECT_OK(clv_array_from(context, x, 2, shape, &array));
    return array;
}

static clv_context *asynchronous(void)
{
    clv_context *context = test_plain_context();
    assert_false(clv_array_is_asynchronous(context));
    EXPECT_OK(clv_array_set_asynchronous(context, true));
    assert_true(clv_array_is_asynchronous(context));
    return context;
}

/* Keeps the thread that runs the calls from beginning one that uses the array. */
static void hold(clv_array *array)
{
    assert_int_equal(pthread_mutex_lock(&array->storage->lock), 0);
}

static void let_go(clv_array *array)
{
    assert_int_equal(pthread_mutex_unlock(&array->storage->lock), 0);
}

static float first_of(clv_array *array)
{
    static float all[N];
    EXPECT_OK(clv_array_get(array, all));
    return all[0];
}

static void calls_return_before_they_run(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c);
    hold(a);
    clv_array *b = clv_array_compute(CLV_OP_ADD, a, NULL, 2),
              *d = clv_array_compute(CLV_OP_MULTIPLY, b, b, 0);
    assert_true(clv_array_is_pending(a) && clv_array_is_pending(b) && clv_array_is_pending(d));
    clv_array_free(b); /* the calls keep it */
    /* errors of shape and type come at once */
    static const size_t three = 3;
    clv_array *small, *e;
    EXPECT_OK(clv_array_create(c, 1, &three, &small));
    EXPECT_FAIL(CLV_E_SHAPE, "operand",
                clv_array_apply(c, CLV_OP_ADD, (clv_operand[]){ { a }, { d } }, 2, small));
    EXPECT_FAIL(CLV_E_SHAPE, "axes", clv_array_fold(c, CLV_FOLD_SUM, a, 0xff, small));
    e = clv_array_compute(CLV_OP_ADD, small, NULL, 1);
    assert_null(e); /* an operand without values */
    let_go(a);
    assert_true(first_of(d) == 4);
    assert_false(clv_array_is_pending(d));
    EXPECT_OK(clv_array_synchronize(c));
    assert_false(clv_array_is_pending(a));
    EXPECT_OK(clv_array_set_asynchronous(c, false));
    clv_array_free(a), clv_array_free(d), clv_array_free(small);
    clv_context_free(c);
}

static void views_are_written_in_order(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c), *row, *before;
    static const size_t shape[] = { COLUMNS };
    static const ptrdiff_t stride[] = { 1 };
    static float x[N];
    EXPECT_OK(clv_array_view(a, COLUMNS, 1, shape, stride, &row));
    hold(a);
    EXPECT_OK(clv_array_copy(a, 0, NULL, &before));
    EXPECT_OK(clv_array_apply(c, CLV_OP_ADD,
                              (clv_operand[]){ { row }, { .type = CLV_F32, .real = 5 } }, 2, row));
    EXPECT_OK(clv_array_apply(c, CLV_OP_MULTIPLY,
                              (clv_operand[]){ { a }, { .type = CLV_F32, .real = 2 } }, 2, a));
    assert_true(clv_array_is_pending(row));
    let_go(a);
    EXPECT_OK(clv_array_get(a, x));
    for (int i = 0; i < N; ++i)
        assert_true(x[i] == 2 * (float)(i % 97 + (i / COLUMNS == 1 ? 5 : 0)));
    EXPECT_OK(clv_array_get(before, x));
    assert_true(x[COLUMNS] == COLUMNS);
    clv_array_free(a), clv_array_free(row), clv_array_free(before);
    clv_context_free(c);
}

static void failures_come_at_the_wait(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c);
    hold(a);
    clv_offload_force(CLV_SIDE_DEVICE); /* the context has none */
    clv_array *b = clv_array_compute(CLV_OP_ADD, a, NULL, 2);
    clv_offload_force(CLV_SIDE_AUTO);
    clv_array *d = clv_array_compute(CLV_OP_NEGATE, b, NULL, 0);
    assert_true(b && d);
    let_go(a);
    EXPECT_FAIL(CLV_E_NO_DEVICE, "negate was not computed, for an operand has no values",
                clv_array_get(d, (float[N]){ 0 }));
    EXPECT_FAIL(CLV_E_NO_DEVICE, "a device was demanded", clv_array_get(b, (float[N]){ 0 }));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no values",
                clv_array_get(b, (float[N]){ 0 })); /* a failure is told once */
    EXPECT_OK(clv_array_synchronize(c));
    clv_array_free(b), clv_array_free(d);
    /* a failure of which nobody reads the result */
    clv_offload_force(CLV_SIDE_DEVICE);
    clv_array_free(clv_array_compute(CLV_OP_ADD, a, NULL, 2));
    clv_offload_force(CLV_SIDE_AUTO);
    EXPECT_FAIL(CLV_E_NO_DEVICE, "a device was demanded", clv_array_synchronize(c));
    EXPECT_OK(clv_array_synchronize(c));
    assert_true(first_of(a) == 0);
    clv_array_free(a);
    clv_context_free(c);
}

static void a_freed_context_runs_its_calls(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c), *sum = a;
    for (int i = 0; i < 50; ++i) {
        clv_array *next = clv_array_compute(CLV_OP_ADD, sum, NULL, 1);
        if (sum != a) clv_array_free(sum);
        sum = next;
    }
    clv_array_free(a);
    clv_context_free(c);
    assert_true(first_of(sum) == 50);
    clv_array *last = clv_array_compute(CLV_OP_ADD, sum, NULL, 1); /* synchronous again */
    assert_false(clv_array_is_pending(last));
    assert_true(first_of(last) == 51);
    clv_array_free(sum), clv_array_free(last);
}

static void your_memory_is_not_used_later(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    static float mine[N];
    static const size_t shape[] = { ROWS, COLUMNS };
    clv_array *a = ramp(c), *wrapped;
    void *host;
    EXPECT_OK(clv_array_wrap(c, mine, 2, shape, &wrapped));
    clv_array *b = clv_array_compute(CLV_OP_ADD, a, NULL, 3);
    EXPECT_OK(clv_array_apply(c, CLV_OP_ADD, (clv_operand[]){ { b }, { b } }, 2, wrapped));
    assert_true(mine[0] == 6);
    EXPECT_OK(clv_array_apply(c, CLV_OP_SUBTRACT, (clv_operand[]){ { b }, { a } }, 2, b));
    EXPECT_OK(clv_array_host(b, &host));
    assert_true(*(float *)host == 3);
    EXPECT_OK(clv_array_apply(c, CLV_OP_NEGATE, (clv_operand[]){ { b } }, 1, b));
    assert_true(*(float *)host == -3);
    clv_array_free(a), clv_array_free(b), clv_array_free(wrapped);
    clv_context_free(c);
}

/* ---- several threads ----------------------------------------------------------------------------- */

typedef struct adder {
    clv_array *shared;
    int calls;
    atomic_int made;
    float result;
} adder;

static void *add_many(void *argument)
{
    adder *mine = argument;
    clv_array *sum = clv_array_compute(CLV_OP_MULTIPLY, mine->shared, NULL, 0);
    for (; mine->made < mine->calls; ++mine->made) {
        clv_array *next = clv_array_compute(CLV_OP_ADD, sum, NULL, 1);
        clv_array_free(sum);
        sum = next;
    }
    static _Thread_local float all[N];
    if (!clv_array_get(sum, all)) mine->result = all[0];
    clv_array_free(sum);
    return NULL;
}

static void threads_share_an_operand(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c);
    clv_thread threads[3];
    adder of[3] = { 0 };
    for (size_t i = 0; i < CLV_LEN(of); ++i) {
        of[i].shared = a, of[i].calls = 100;
        assert_true(clv_thread_start(&threads[i], "adder", add_many, &of[i]));
    }
    for (size_t i = 0; i < CLV_LEN(of); ++i) {
        pthread_join(threads[i], NULL);
        assert_true(of[i].result == 100);
    }
    clv_array_free(a);
    clv_context_free(c);
}

static void the_list_has_an_end(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c);
    adder of = { .shared = a, .calls = 3 * BACKLOG_MOST };
    clv_thread thread;
    hold(a);
    assert_true(clv_thread_start(&thread, "adder", add_many, &of));
    for (int before = -1; before != of.made; clv_sleep(0.05))
        before = of.made;
    assert_in_range(of.made, BACKLOG_MOST - 1, BACKLOG_MOST);
    let_go(a);
    pthread_join(thread, NULL);
    assert_true(of.result == 3 * BACKLOG_MOST);
    clv_array_free(a);
    clv_context_free(c);
}

static void a_child_of_a_fork_does_not_wait(void **state)
{
    (void)state;
    clv_context *c = asynchronous();
    clv_array *a = ramp(c);
    hold(a);
    clv_array *b = clv_array_compute(CLV_OP_ADD, a, NULL, 1);
    const pid_t child = fork();
    if (!child) {
        float x[N];
        alarm(20);
        const bool fails = clv_array_get(b, x) == CLV_E_UNSUPPORTED &&
                           strstr(clv_error_message(), "spawn") &&
                           clv_array_synchronize(c) == CLV_E_UNSUPPORTED;
        clv_array_free(b);
        clv_context_free(c);
        _exit(fails ? 0 : 1);
    }
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    let_go(a);
    assert_true(first_of(b) == 1);
    clv_array_free(a), clv_array_free(b);
    clv_context_free(c);
}

/* ---- on devices ---------------------------------------------------------------------------------- */

/* Computes something with every asynchronous function. */
static void compute_all(clv_context *c, float *result)
{
    static const size_t square[] = { ROWS, ROWS }, line[] = { COLUMNS }, one[] = { ROWS };
    clv_array *a = ramp(c), *b = clv_array_compute(CLV_OP_SQRT, a, NULL, 0), *d, *p, *s, *m, *r;
    EXPECT_OK(clv_array_create(c, 2, square, &p));
    EXPECT_OK(clv_array_create(c, 1, line, &s));
    EXPECT_OK(clv_array_create(c, 1, one, &r));
    EXPECT_OK(clv_array_create(c, 2, clv_array_shape(a), &m));
    const clv_map_input in[] = { { "first", a, 0 }, { "y", b, 0 }, { "k", NULL, 0.5f } };
    EXPECT_OK(clv_map(c, "first * k + y", in, 3, m));
    EXPECT_OK(clv_array_cast(m, CLV_I32, &d));
    const clv_product_options o = { .size = sizeof o, .b_transposed = true };
    EXPECT_OK(clv_product(c, m, b, &o, p));
    EXPECT_OK(clv_array_fold(c, CLV_FOLD_SUM, d, 1, s));
    EXPECT_OK(clv_reduce(c, CLV_REDUCE_MAX, p, 1, r));
    clv_array *all[] = { p, s, r };
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        EXPECT_OK(clv_array_get(all[i], result));
        result += clv_array_elements(all[i]);
    }
    clv_array *made[] = { a, b, d, p, s, m, r };
    for (size_t i = 0; i < CLV_LEN(made); ++i)
        clv_array_free(made[i]);
}

static void same_bits(test_device *device)
{
    enum { RESULTS = ROWS * ROWS + COLUMNS + ROWS };
    static float expected[RESULTS], result[RESULTS];
    if (!device->slow) test_device_as_card(device);
    clv_offload_force(CLV_SIDE_DEVICE);
    compute_all(device->context, expected);
    EXPECT_OK(clv_array_set_asynchronous(device->context, true));
    memset(result, 0, sizeof result);
    compute_all(device->context, result);
    clv_offload_force(CLV_SIDE_AUTO);
    assert_memory_equal(result, expected, sizeof result);
    EXPECT_OK(clv_array_synchronize(device->context));
}

static void devices_compute_the_same_bits(void **state)
{
    (void)state;
    test_each_device(same_bits);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_return_before_they_run),
        cmocka_unit_test(views_are_written_in_order),
        cmocka_unit_test(failures_come_at_the_wait),
        cmocka_unit_test(a_freed_context_runs_its_calls),
        cmocka_unit_test(your_memory_is_not_used_later),
        cmocka_unit_test(threads_share_an_operand),
        cmocka_unit_test(the_list_has_an_end),
        cmocka_unit_test(a_child_of_a_fork_does_not_wait),
        cmocka_unit_test(devices_compute_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

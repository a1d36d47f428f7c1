/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the choice between host and device with made-up calls, whose times come from a simulated clock: what is timed
 * when, what is recorded, what a caller may order, and what happens when a side fails. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/offload/call.h"
#include "runtime/offload/measure.h"
#include "runtime/offload/rates.h"
#include "runtime/offload/table.h"

#include <cleave/blas.h>

#include <math.h>
#include <string.h>

/* ---- calls that a test makes up ------------------------------------------------------------------ */

static double fake_now;

static double fake_clock(void)
{
    return fake_now;
}

typedef struct made {
    clv_call call;
    double amount;
    int *trials; /* samples so far */
    double slow; /* the amount that takes three times as long on the device */
    int compilations, compiles, sizes;
    double begun;
    float result, off; /* what both compute, and what the device adds to it */
} made;

/* The host does 1e9 of work a second, the device ten times that after 100 us. */
static clv_status on_host(void *user)
{
    made *m = user;
    fake_now += m->amount / 1e9;
    m->result = 2;
    return CLV_OK;
}

static clv_status on_device(clv_engine *engine, void *user)
{
    made *m = user;
    (void)engine;
    const double takes = 100e-6 + m->amount / 1e10;
    fake_now += m->amount == m->slow ? 3 * takes : takes;
    m->result = 2 + m->off;
    return CLV_OK;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    const made *m = like->user;
    made *mine = clv_zalloc(1, sizeof *mine);
    (void)context;
    assert_non_null(mine);
    *mine = *m;
    mine->amount = mine->call.work.amount = amount;
    mine->call.user = mine;
    ++*m->trials;
    *out = (clv_sample){ .call = &mine->call,
                         .result = &mine->result,
                         .results = 1,
                         .tolerance = 1e-3,
                         .memory = mine,
                         .end = clv_free };
    return CLV_OK;
}

static made make(const char *kind, double amount, int *trials)
{
    return (made){ .call = { .operation = "test",
                             .work = { .kind = kind,
                                       .amount = amount,
                                       .flops = 1e9,
                                       .least = 1e3,
                                       .most = 1e8 },
                             .host = on_host,
                             .device = on_device,
                             .sample = sample },
                   .amount = amount,
                   .trials = trials };
}

static const clv_offload *decide(clv_context *context, made *m)
{
    m->call.user = m;
    EXPECT_OK(clv_offload_decide(context, &m->call));
    clv_decision_explain(&m->call.told);
    return &m->call.told.of;
}

static void learn(clv_context *context, made *m, clv_side side, double seconds)
{
    m->call.told.of.forced = false;
    clv_offload_learn(context, &m->call, side, seconds);
}

/* A context that may time, with notes in the device's directory. */
static clv_context *tuned(const test_device *device)
{
    clv_context *context;
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .cache_dir = device->cache_dir,
                                          .no_qualification = true };
    EXPECT_OK(clv_context_create(&options, &context));
    clv_measure_clock = fake_clock;
    return context;
}

static void open_first(test_device *device)
{
    if (!test_device_count()) test_skip_without_device();
    test_device_open(0, NULL, device);
}

/* ---- the choice ---------------------------------------------------------------------------------- */

static void the_faster_side_is_taken(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    int trials = 0, wrong = 0;
    clv_context *context = tuned(&device);
    for (double work = 1e3; work < 1e8; work *= 1.1) {
        made m = make("test kind", work, &trials);
        m.call.work.bytes = work * 100;
        const clv_offload *plan = decide(context, &m);
        const double host = work / 1e9, there = 100e-6 + work / 1e10;
        if (!plan->measured) continue;
        const bool right = (plan->side == CLV_SIDE_HOST) == (host < there);
        wrong += !right;
        if (!right) assert_true(host / there < 1.1 && there / host < 1.1);
    }
    assert_true(wrong <= 1 && trials > 6 && trials < 90);
    clv_context_free(context); /* and the figures stay */
    const int before = trials;
    context = tuned(&device);
    made m = make("test kind", 1e7, &trials);
    const clv_offload *plan = decide(context, &m);
    assert_int_equal(trials, before);
    assert_int_equal(plan->side, CLV_SIDE_DEVICE);
    assert_true(plan->measured && !plan->forced && plan->device_s < plan->host_s);
    assert_non_null(strstr(plan->reason, "predicted on the host"));
    m.call.forced = CLV_SIDE_HOST;
    plan = decide(context, &m);
    assert_true(plan->side == CLV_SIDE_HOST && plan->forced);
    clv_context_free(context);
    test_device_close(&device);
}

static void orders_are_of_the_thread(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    clv_context *context = tuned(&device);
    clv_offload plan;
    int trials = 0;
    made m = make("ordered kind", 1e7, &trials);
    assert_int_equal(clv_offload_force(CLV_SIDE_HOST), CLV_SIDE_AUTO);
    clv_call_take_orders(&m.call);
    m.call.user = &m;
    EXPECT_OK(clv_call_run(context, &m.call));
    EXPECT_OK(clv_offload_last(&plan));
    assert_true(plan.side == CLV_SIDE_HOST && plan.forced);
    assert_string_equal(plan.reason, "host: this thread forces it");
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

/* One size is slow on the device, which no curve tells: calls show it, a plan times it. */
static void a_close_size_has_times_of_its_own(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    int trials = 0;
    clv_context *context = tuned(&device);
    made m = make("odd kind", 150001, &trials);
    m.slow = 150001;
    const clv_offload *plan = decide(context, &m);
    assert_true(plan->measured && plan->side == CLV_SIDE_DEVICE); /* 150 us, 115 there */
    assert_non_null(strstr(plan->reason, "measured rates"));
    const int before = trials;
    for (int i = 0; i < 10; ++i) /* 3 ms of calls: its threads are waking up */
        learn(context, &m, CLV_SIDE_DEVICE, 345e-6);
    assert_int_equal(decide(context, &m)->side, CLV_SIDE_DEVICE);
    for (int i = 0; i < 200; ++i)
        learn(context, &m, CLV_SIDE_DEVICE, 345e-6);
    plan = decide(context, &m);
    assert_true(plan->side == CLV_SIDE_HOST && plan->device_s > 250e-6);
    assert_non_null(strstr(plan->reason, "measured at this size"));
    assert_int_equal(trials, before);
    made planned = make("odd kind", 150003, &trials); /* not to others */
    planned.slow = 150003;
    planned.call.plan = true; /* who asks for a plan waits for nothing */
    plan = decide(context, &planned);
    assert_true(trials > before && plan->side == CLV_SIDE_HOST && plan->device_s > 200e-6);
    assert_non_null(strstr(plan->reason, "measured at this size"));
    clv_context_free(context); /* and it is noted */
    const int then = trials;
    context = tuned(&device);
    for (int i = 0; i < 2; ++i) {
        plan = decide(context, i ? &planned : &m);
        assert_int_equal(plan->side, CLV_SIDE_HOST);
        assert_non_null(strstr(plan->reason, "measured at this size"));
    }
    assert_int_equal(trials, then);
    clv_context_free(context);
    test_device_close(&device);
}

/* ---- sides that fail ----------------------------------------------------------------------------- */

static clv_status fails(clv_engine *engine, void *user)
{
    (void)engine, (void)user;
    return clv_fail(CLV_E_DEVICE_MEMORY, "no room");
}

static void the_host_does_what_the_device_could_not(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    int trials = 0;
    clv_context *context = tuned(&device);
    made m = make("failing kind", 1e7, &trials);
    (void)decide(context, &m); /* timed, and 10 ms there are more than 1.1 */
    m.call.device = fails;
    EXPECT_OK(clv_call_run(context, &m.call));
    assert_true(m.result == 2 && m.call.fell_back && m.call.told.of.side == CLV_SIDE_HOST);
    assert_non_null(strstr(m.call.told.of.reason, "no room"));
    m.result = 0;
    m.call.spent = true; /* an operand may have been changed */
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "no room", clv_call_run(context, &m.call));
    m.call.spent = false;
    m.call.forced = CLV_SIDE_DEVICE;
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "no room", clv_call_run(context, &m.call));
    assert_true(m.result == 0);
    clv_context_free(context);
    test_device_close(&device);
}

/* Both compute on the same numbers before any time counts. */
static void a_device_that_computes_something_else_is_not_used(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    int trials = 0;
    clv_context *context = tuned(&device);
    made m = make("wrong kind", 1e7, &trials);
    m.off = 0.1f;
    const clv_offload *plan = decide(context, &m);
    assert_int_equal(plan->side, CLV_SIDE_HOST);
    assert_non_null(strstr(plan->reason, "computed something else"));
    made other = make("right kind", 1e7, &trials);
    other.off = 1e-4f;
    assert_int_equal(decide(context, &other)->side, CLV_SIDE_DEVICE);
    clv_context_free(context);
    test_device_close(&device);
}

/* ---- what timing must not be disturbed by, nor disturb --------------------------------------------- */

/* A program that is compiled at its first call and, for another size, at a later one. */
static clv_status compiled(clv_engine *engine, void *user)
{
    made *m = user;
    static const double later_s = 12e-3; /* a turn's calls settle in 10 ms: this one is counted */
    (void)engine;
    const double before = fake_now;
    if (!m->compilations) m->begun = before;
    if (m->compiles &&
        (!m->compilations || (m->compilations == 1 && before > m->begun + later_s))) {
        ++m->compilations;
        fake_now += 0.25;
        m->begun = fake_now;
    }
    fake_now += 50e-6 + m->amount * 4e-9;
    return CLV_OK;
}

static clv_status compiled_sample(clv_context *context, const clv_call *like, double amount,
                                  clv_sample *out)
{
    made *m = like->user;
    CLV_TRY(sample(context, like, amount, out));
    made *mine = out->memory;
    mine->compilations = 0;
    mine->compiles = m->sizes++ < 2;
    out->results = 0;
    return CLV_OK;
}

static void compilers_do_not_end_a_curve(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    int trials = 0;
    clv_context *context = tuned(&device);
    clv_curve curve;
    made m = make("compiled kind", 1e3, &trials);
    m.call.work.most = 1.1e6;
    m.call.device = compiled;
    m.call.sample = compiled_sample;
    m.call.user = &m;
    EXPECT_OK(clv_measure_curve(context, &m.call, &curve));
    assert_true(curve.at[curve.count - 1].work > 1e6); /* 1.024e6, the sixth size */
    clv_context_free(context);
    test_device_close(&device);
}

/* A kind that is being timed: its sample waits until another thread's calls were decided. */
typedef struct slow_kind {
    made made; /* first */
    clv_context *context;
    clv_mutex lock;
    clv_cond changed;
    bool begun, decided, waited_in_vain;
} slow_kind;

static clv_status held_up(clv_context *context, const clv_call *like, double amount,
                          clv_sample *out)
{
    slow_kind *k = like->user;
    pthread_mutex_lock(&k->lock);
    k->begun = true;
    pthread_cond_broadcast(&k->changed);
    for (const double until = clv_now() + 30; !k->decided && clv_now() < until;)
        clv_cond_wait_until(&k->changed, &k->lock, until);
    k->waited_in_vain |= !k->decided;
    k->decided = true;
    pthread_mutex_unlock(&k->lock);
    return sample(context, like, amount, out);
}

static void *call_slow_kind(void *user)
{
    slow_kind *k = user;
    clv_call mine = k->made.call;
    return clv_offload_decide(k->context, &mine) || !mine.told.of.measured ? k : NULL;
}

static void others_go_on_while_a_kind_is_timed(void **state)
{
    (void)state;
    test_device device;
    open_first(&device);
    slow_kind k = { 0 };
    int trials = 0;
    k.context = tuned(&device);
    k.made = make("slow kind", 1e7, &trials);
    k.made.call.sample = held_up;
    k.made.call.user = &k;
    clv_mutex_init(&k.lock), clv_cond_init(&k.changed);
    clv_thread other;
    assert_true(clv_thread_start(&other, "slow kind", call_slow_kind, &k));
    pthread_mutex_lock(&k.lock);
    while (!k.begun)
        clv_cond_wait_until(&k.changed, &k.lock, clv_now() + 1);
    pthread_mutex_unlock(&k.lock);
    clv_call mine = k.made.call;
    EXPECT_OK(clv_offload_decide(k.context, &mine));
    assert_true(mine.told.of.side == CLV_SIDE_HOST && !mine.told.of.measured);
    mine.work.kind = "another kind";
    EXPECT_OK(clv_offload_decide(k.context, &mine));
    assert_false(mine.told.of.measured);
    pthread_mutex_lock(&k.lock);
    k.decided = true;
    pthread_cond_broadcast(&k.changed);
    pthread_mutex_unlock(&k.lock);
    void *failed;
    pthread_join(other, &failed);
    assert_null(failed);
    assert_false(k.waited_in_vain);
    mine.work.kind = "slow kind";
    EXPECT_OK(clv_offload_decide(k.context, &mine));
    assert_true(mine.told.of.measured && mine.told.of.side == CLV_SIDE_DEVICE);
    clv_context_free(k.context);
    test_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_side_is_taken),
        cmocka_unit_test(orders_are_of_the_thread),
        cmocka_unit_test(a_close_size_has_times_of_its_own),
        cmocka_unit_test(the_host_does_what_the_device_could_not),
        cmocka_unit_test(a_device_that_computes_something_else_is_not_used),
        cmocka_unit_test(compilers_do_not_end_a_curve),
        cmocka_unit_test(others_go_on_while_a_kind_is_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

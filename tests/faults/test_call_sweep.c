/* SPDX-License-Identifier: Apache-2.0 */
/* Tests operations on drivers that fail: the k-th call, the event of the k-th kernel, or everything after k commands,
 * for k = 1, 3, 7, 15, ... until the operation makes fewer calls. Each time the operation gives the right result or a
 * status with its message, leaves nothing behind, and works when it is repeated. */
#include "job_test.h"

#include "data.h"

#include "base/alloc.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/blas.h>
#include <cleave/generate.h>
#include <cleave/train.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 4096, ENOUGH = 20000 };

/* An operation from its inputs to `out`; *count results. */
typedef struct operation {
    const char *name;
    clv_status (*run)(clv_context *context, float *out, size_t *count);
    double tolerance; /* relative, of what the host computes in the device's place */
    bool forced;      /* to a device: what fails there fails */
    bool goes_on;     /* somewhere else; nothing of OpenCL ends it */
} operation;

static void fill(float *x, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; ++i)
        x[i] = (float)test_uniform(&seed, -1, 1);
}

/* ---- operations ------------------------------------------------------------------------------------ */

static clv_status multiply(clv_context *context, float *out, size_t *count)
{
    enum { M = 33, N = 17, K = 29 };
    float a[M * K], b[K * N];
    fill(a, M * K, 1);
    fill(b, K * N, 2);
    *count = M * N;
    return clv_matmul(context, M, N, K, a, b, NULL, out);
}

static clv_status convolve(clv_context *context, float *out, size_t *count)
{
    enum { H = 40, W = 30 };
    float in[H * W], kernel[25];
    fill(in, H * W, 3);
    fill(kernel, 25, 4);
    *count = H * W;
    return clv_convolve_2d(context, in, H, W, kernel, 5, 5, NULL, out, NULL);
}

static clv_status attend(clv_context *context, float *out, size_t *count)
{
    const clv_attention_shape shape = { .size = sizeof(clv_attention_shape),
                                        .batch = 2,
                                        .heads = 2,
                                        .queries = 7,
                                        .keys = 9,
                                        .width = 16 };
    float q[2 * 2 * 7 * 16], k[2 * 2 * 9 * 16], v[2 * 2 * 9 * 16];
    fill(q, CLV_LEN(q), 5);
    fill(k, CLV_LEN(k), 6);
    fill(v, CLV_LEN(v), 7);
    *count = CLV_LEN(q);
    return clv_attention_f32(context, &shape, q, k, v, NULL, out);
}

/* Arrays that stay on the device from one step to the next. */
static clv_status compute(clv_context *context, float *out, size_t *count)
{
    static float x[MOST];
    const size_t shape = MOST;
    clv_array *a = NULL, *b = NULL;
    fill(x, MOST, 8);
    *count = MOST;
    clv_status status = clv_array_from(context, x, 1, &shape, &a);
    if (!status) status = clv_array_create(context, 1, &shape, &b);
    const clv_map_input first[] = { { "x", a, 0 } }, second[] = { { "y", b, 0 } };
    if (!status) status = clv_map(context, "2 * x + 1", first, 1, b);
    if (!status) status = clv_map(context, "y * y", second, 1, a);
    if (!status) status = clv_array_get(a, out);
    clv_array_free(a), clv_array_free(b);
    return status;
}

static const int32_t labels[JOB_TEXTS] = { 1, 0, 1 };
static clv_model *model;

static clv_status encode(clv_context *context, float *out, size_t *count)
{
    *count = (size_t)JOB_TEXTS * JOB_WIDTH;
    return job_test_encode(context, model, out);
}

static clv_status generate(clv_context *context, float *out, size_t *count)
{
    clv_decoder *d;
    CLV_TRY(clv_decoder_open(context, test_data("decoder"), 12, &d));
    *count = clv_decoder_get_config(d)->vocabulary;
    clv_status status = clv_decoder_feed(d, 0, job_test_ids, 5, out);
    if (!status) status = clv_decoder_feed(d, 5, job_test_ids + 5, 1, out);
    clv_decoder_close(d);
    return status;
}

static clv_status train(clv_context *context, float *out, size_t *count)
{
    const clv_trainer_options options = { .size = sizeof options, .classes = 2, .clip = 1 };
    clv_trainer *t;
    clv_train_result r = { 0 };
    CLV_TRY(clv_trainer_open(context, model, &options, &t));
    clv_status status = CLV_OK;
    *count = 2;
    if (!status)
        status = clv_trainer_step(t, job_test_ids, job_test_offsets, JOB_TEXTS, labels, 1e-3, &r);
    out[0] = (float)r.loss;
    if (!status)
        status = clv_trainer_evaluate(t, job_test_ids, job_test_offsets, JOB_TEXTS, labels, &r);
    out[1] = (float)r.loss;
    clv_trainer_close(t);
    return status;
}

static const operation operations[] = {
    { "matmul", multiply, 2e-6, true, false },   { "convolve", convolve, 0, true, false },
    { "attention", attend, 3e-6, false, false }, { "arrays", compute, 1e-6, true, false },
    { "encode", encode, 2e-6, false, true },     { "generate", generate, 0, false, false },
    { "train", train, 1e-4, false, false },
};

/* ---- sweeps ---------------------------------------------------------------------------------------- */

static clv_context *context_of(bool as_card)
{
    clv_context *context = job_test_context(NULL);
    if (as_card) job_test_as_cards(context);
    return context;
}

static void expect_right(const operation *o, const char *faults, const float *got,
                         const float *want, size_t count)
{
    float largest = 0;
    for (size_t i = 0; i < count; ++i)
        largest = fmaxf(largest, fabsf(want[i]));
    for (size_t i = 0; i < count; ++i)
        if (!(fabsf(got[i] - want[i]) <= (float)o->tolerance * largest))
            fail_msg("%s, %s: result %zu is %.9g, expected %.9g", o->name, faults, i,
                     (double)got[i], (double)want[i]);
}

static void expect_proper(const operation *o, const char *faults, clv_status status)
{
    const bool device = status == CLV_E_DEVICE || status == CLV_E_DEVICE_MEMORY ||
                        status == CLV_E_BUILD || status == CLV_E_NO_DEVICE;
    if (o->goes_on || !device || !*clv_error_message())
        fail_msg("%s, %s: %s \"%s\"", o->name, faults, clv_status_name(status),
                 clv_error_message());
}

/* Tells whether the fault was met. */
static bool try_once(const operation *o, const char *faults, bool as_card, const float *want,
                     unsigned long *failed)
{
    static float got[MOST];
    size_t count;
    clv_context *context = context_of(as_card);
    memset(got, 0, sizeof got);
    job_test_faults(faults);
    clv_status status = o->run(context, got, &count);
    const bool met = job_test_stats().injected > 0;
    *failed += status != CLV_OK;
    if (status)
        expect_proper(o, faults, status);
    else
        expect_right(o, faults, got, want, count);

    job_test_faults("");
    memset(got, 0, sizeof got);
    status = o->run(context, got, &count);
    if (!status)
        expect_right(o, faults, got, want, count);
    else if (context->devices[0].state == CLV_DEVICE_QUARANTINED)
        expect_proper(o, faults, status);
    else
        fail_msg("%s after %s: %s \"%s\"", o->name, faults, clv_status_name(status),
                 clv_error_message());
    job_test_close(context);
    return met;
}

static void sweep(const operation *o, const char *fault, int code, bool as_card)
{
    static float want[MOST];
    size_t count;
    unsigned long k = 1, tries = 0, failed = 0;
    (void)clv_offload_force(o->forced ? CLV_SIDE_DEVICE : CLV_SIDE_AUTO);
    clv_context *context = context_of(as_card);
    EXPECT_OK(o->run(context, want, &count));
    job_test_close(context);
    assert_true(count && count <= MOST);
    for (bool met = true; met; k += 1 + k, ++tries) {
        char faults[64];
        snprintf(faults, sizeof faults, "%s=%lu;code=%d", fault, k, code);
        met = try_once(o, faults, as_card, want, &failed);
        if (k > ENOUGH) fail_msg("%s: no end after %lu", o->name, k);
    }
    (void)clv_offload_force(CLV_SIDE_AUTO);
    printf("%-10s %s%s: %lu tries up to %lu, %lu failed\n", o->name, fault,
           as_card ? " of a card" : "", tries, k, failed);
    assert_true(tries > 1);
    assert_true(!o->goes_on || !failed);
}

static void every_call_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        sweep(&operations[i], "call", i % 3 ? -5 : -14, i % 2 == 0);
}

static void every_kernel_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        sweep(&operations[i], "event", -14, i % 2 > 0);
}

static void a_device_may_go_at_any_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        sweep(&operations[i], "lost", -36, i % 2 == 0);
}

/* ---- what was opened before ------------------------------------------------------------------------- */

typedef struct opened {
    clv_decoder *decoder;
    clv_trainer *trainer;
} opened;

static clv_status feed(const opened *o, float *out)
{
    return clv_decoder_feed(o->decoder, 0, job_test_ids, 5, out);
}

static clv_status evaluate(const opened *o, float *out)
{
    clv_train_result r;
    CLV_TRY(
        clv_trainer_evaluate(o->trainer, job_test_ids, job_test_offsets, JOB_TEXTS, labels, &r));
    out[0] = (float)r.loss;
    return CLV_OK;
}

/* A call that failed leaves nothing behind that the next one would trip over. */
static void go_on(clv_status (*call)(const opened *, float *), const char *fault)
{
    const clv_trainer_options options = { .size = sizeof options, .classes = 2 };
    float want[64] = { 0 }, got[64] = { 0 };
    opened o;
    clv_context *context = context_of(true);
    EXPECT_OK(clv_decoder_open(context, test_data("decoder"), 12, &o.decoder));
    EXPECT_OK(clv_trainer_open(context, model, &options, &o.trainer));
    EXPECT_OK(call(&o, want));
    unsigned long failed = 0;
    bool met = true;
    for (unsigned long k = 1; met; k += 1 + k / 3) {
        char faults[64];
        snprintf(faults, sizeof faults, "%s=%lu;code=-14", fault, k);
        job_test_faults(faults);
        const clv_status status = call(&o, got);
        met = job_test_stats().injected > 0 && k < 200;
        failed += status != CLV_OK;
        assert_true(status == CLV_OK || *clv_error_message());
        job_test_faults("");
        memset(got, 0, sizeof got);
        EXPECT_OK(call(&o, got));
        assert_memory_equal(got, want, sizeof want);
    }
    assert_true(failed > 2);
    clv_trainer_close(o.trainer);
    clv_decoder_close(o.decoder);
    job_test_close(context);
}

static void a_call_after_a_failed_one_works(void **state)
{
    (void)state;
    go_on(feed, "enqueue");
    go_on(feed, "event");
    go_on(feed, "lost");
    go_on(feed, "event=1;enqueue"); /* two failures, of which the second is met first */
    go_on(evaluate, "enqueue");
    go_on(evaluate, "event");
    go_on(evaluate, "lost");
    go_on(evaluate, "event=1;enqueue");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(every_kernel_may_fail),
        cmocka_unit_test(a_device_may_go_at_any_time),
        cmocka_unit_test(a_call_after_a_failed_one_works),
    };
    job_test_begin();
    model = job_test_model(1);
    const int failed = cmocka_run_group_tests_name("call_sweep", tests, NULL, NULL);
    clv_model_close(model);
    return failed;
}

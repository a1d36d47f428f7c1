/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the k-th call fail, for k = 1, 2, ... until the job makes fewer calls. Each time the job gives the right result
 * or a proper status, leaves nothing behind, and the next job works. */
#include "job_test.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

enum { ENOUGH = 400 };

typedef struct sweep {
    bool as_card, no_reference;
    const clv_context_options *options;
    int code; /* of commands */
} sweep;

static void expect_proper(clv_status status, test_job *job, unsigned long k)
{
    if (status == CLV_OK) {
        job_test_expect_right(job);
        return;
    }
    if (!job->no_reference || !*clv_error_message() ||
        (status != CLV_E_DEVICE && status != CLV_E_DEVICE_MEMORY && status != CLV_E_BUILD))
        fail_msg("call %lu: %s \"%s\"", k, clv_status_name(status), clv_error_message());
    for (size_t u = 0; u < job->units; ++u)
        if (job->commits[u] > 1) fail_msg("call %lu: unit %zu committed twice", k, u);
    job_test_free(job);
}

static void go(const sweep *s)
{
    unsigned long k = 1, failed = 0;
    for (bool met = true; met; ++k) {
        char faults[48];
        test_job job = { .units = 200, .no_reference = s->no_reference };
        clv_context *context = job_test_context(s->options);
        if (s->as_card) job_test_as_cards(context);
        snprintf(faults, sizeof faults, "call=%lu;code=%d", k, s->code);
        job_test_faults(faults);
        const clv_status status = job_test_run(context, &job, NULL);
        met = job_test_stats().injected > 0;
        failed += status != CLV_OK;
        expect_proper(status, &job, k);
        job_test_faults("");
        job_test_expect_ok(context); /* quarantined or not */
        job_test_close(context);
        if (k > ENOUGH) fail_msg("no end after %lu calls", k);
    }
    printf("%lu calls, %lu of them end a job\n", k - 1, failed);
    assert_true(k > 10);
    assert_true(s->no_reference == (failed > 0)); /* opening fails, and there is nobody else */
}

static void every_call_may_fail(void **state)
{
    (void)state;
    go(&(sweep){ .code = -5 });
}

static void every_call_of_a_card_may_fail(void **state)
{
    (void)state;
    go(&(sweep){ .as_card = true, .code = -14 });
}

static void every_call_may_fail_without_reference(void **state)
{
    (void)state;
    go(&(sweep){ .no_reference = true, .code = -5 });
}

static void every_call_of_the_qualification_may_fail(void **state)
{
    (void)state;
    setenv("CLEAVE_CACHE", "0", 1); /* else it is made only once */
    go(&(sweep){ .options = &(clv_context_options){ .size = sizeof(clv_context_options),
                                                    .cache_dir = "",
                                                    .no_tuning = true },
                 .code = -5 });
    unsetenv("CLEAVE_CACHE");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Every one at first, then some of many: a context makes the whole probe. */
static unsigned long next_of(unsigned long k)
{
    return k < 40 ? k + 1 : k + 1 + k / 12;
}

static void every_allocation_of_a_context_may_fail(void **state)
{
    (void)state;
    unsigned long k = 1, failures = 0;
    for (;; k = next_of(k)) {
        clv_context *context;
        clv_alloc_fail_at(k);
        const clv_status status = clv_context_create(
            &(clv_context_options){
                .size = sizeof(clv_context_options), .cache_dir = "", .no_qualification = true },
            &context);
        const bool met = clv_alloc_calls() >= k;
        clv_alloc_fail_at(0);
        failures += status != CLV_OK;
        if (status) {
            assert_int_equal(status, CLV_E_MEMORY);
            assert_null(context);
        }
        clv_context_free(context);
        if (!met) break;
    }
    printf("%lu allocations, %lu failures\n", k, failures);
    assert_true(failures > 10);
    clv_context *context = job_test_context(NULL);
    job_test_expect_ok(context);
    job_test_close(context);
}

static void every_allocation_of_a_job_may_fail(void **state)
{
    (void)state;
    unsigned long k = 1, failures = 0;
    for (;; k = next_of(k)) {
        test_job job = { .units = 200 };
        clv_context *context = job_test_context(NULL);
        job_test_as_cards(context);
        clv_alloc_fail_at(k);
        const clv_status status = job_test_run(context, &job, NULL);
        const bool met = clv_alloc_calls() >= k;
        clv_alloc_fail_at(0);
        failures += status != CLV_OK;
        if (status) {
            assert_int_equal(status, CLV_E_MEMORY);
            job_test_free(&job);
        } else {
            job_test_expect_right(&job);
        }
        job_test_expect_ok(context);
        job_test_close(context);
        if (!met) break;
    }
    printf("%lu allocations, %lu failures\n", k, failures);
    assert_true(failures > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(every_call_of_a_card_may_fail),
        cmocka_unit_test(every_call_may_fail_without_reference),
        cmocka_unit_test(every_call_of_the_qualification_may_fail),
        cmocka_unit_test(every_allocation_of_a_context_may_fail),
        cmocka_unit_test(every_allocation_of_a_job_may_fail),
    };
    job_test_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

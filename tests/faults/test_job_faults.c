/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers that fail in every known way: a job has the right result all the same, or says why not. */
#include "job_test.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct outcome {
    clv_context *context;
    test_job job;
    clv_report *report;
    clv_status status;
} outcome;

static void run_in(outcome *o, clv_context *context, const char *faults)
{
    o->context = context;
    job_test_faults(faults);
    EXPECT_OK(clv_report_create(&o->report));
    o->status = job_test_run(context, &o->job, o->report);
}

static void run(outcome *o, const char *faults)
{
    run_in(o, job_test_context(NULL), faults);
}

/* The next job of the context works, and nothing is left behind. */
static void end(outcome *o)
{
    job_test_faults("");
    job_test_expect_ok(o->context);
    clv_report_free(o->report);
    job_test_close(o->context);
    job_test_free(&o->job);
}

static clv_share share_of_device(const outcome *o, size_t device)
{
    return clv_report_share(o->report, device);
}

static void a_failed_buffer_is_asked_for_again(void **state)
{
    (void)state;
    outcome o = { 0 };
    run(&o, "buffer=2");
    EXPECT_OK(o.status);
    assert_int_equal(job_test_stats().injected, 1);
    assert_int_equal(o.job.by_reference, 0);
    job_test_expect_right(&o.job);
    end(&o);
}

/* Buffers are given freely, kernels fail while there are too many bytes. */
static void chunks_shrink_to_what_the_memory_holds(void **state)
{
    (void)state;
    outcome o = { .job = { .units = 4096, .min_chunk = 64 } };
    clv_context *context = job_test_context(NULL);
    context->schedule = CLV_SCHEDULE_STATIC; /* begins with one chunk of everything */
    run_in(&o, context, "budget=400000");
    EXPECT_OK(o.status);
    assert_true(job_test_stats().injected > 0);
    assert_int_equal(o.job.by_reference, 0);
    assert_true(share_of_device(&o, 0).chunks >= 3);
    assert_true(share_of_device(&o, 0).failed >= 1);
    job_test_expect_right(&o.job);
    end(&o);
}

static void no_room_at_all_says_what_is_needed(void **state)
{
    (void)state;
    outcome o = { .job = { .no_reference = true, .min_chunk = 50 } };
    run(&o, "budget=100");
    assert_int_equal(o.status, CLV_E_DEVICE_MEMORY);
    assert_non_null(strstr(clv_error_message(), "smallest chunk, 50 units, needs about 25.6 kB"));
    job_test_free(&o.job);
    end(&o);

    outcome with = { 0 };
    run(&with, "budget=100");
    EXPECT_OK(with.status);
    assert_int_equal(with.job.by_reference, 600);
    job_test_expect_right(&with.job);
    end(&with);
}

static void a_failed_command_is_retried(void **state)
{
    (void)state;
    outcome o = { 0 };
    run(&o, "enqueue=4;code=-36");
    EXPECT_OK(o.status);
    assert_int_equal(share_of_device(&o, 0).failed, 1);
    assert_int_equal(o.job.by_reference, 0);
    job_test_expect_right(&o.job);
    end(&o);
}

/* The driver accepts the kernel and only its event tells. */
static void a_failed_event_is_seen(void **state)
{
    (void)state;
    outcome o = { 0 };
    run(&o, "event=2;code=-14");
    EXPECT_OK(o.status);
    assert_int_equal(job_test_stats().injected, 1);
    assert_int_equal(share_of_device(&o, 0).failed, 1);
    job_test_expect_right(&o.job);
    end(&o);
}

/* Once lost, a device answers "out of resources": that is no reason to try ever smaller chunks. */
static void a_lost_device_is_not_short_of_memory(void **state)
{
    (void)state;
    outcome o = { 0 };
    clv_context *context = job_test_context(NULL);
    const uint64_t budget = context->devices[0].budget;
    run_in(&o, context, "lost=7;code=-5");
    EXPECT_OK(o.status);
    assert_true(o.job.by_reference > 0);
    assert_true(job_test_stats().injected < 12);
    assert_int_equal(context->devices[0].state, CLV_DEVICE_QUARANTINED);
    assert_int_equal(context->devices[0].budget, budget);
    job_test_expect_right(&o.job);
    end(&o);
}

static void without_a_way_out_the_error_is_the_devices(void **state)
{
    (void)state;
    outcome o = { .job = { .no_reference = true } };
    run(&o, "lost=7;code=-2");
    assert_int_equal(o.status, CLV_E_DEVICE);
    assert_non_null(strstr(clv_error_message(), "CL_DEVICE_NOT_AVAILABLE"));
    job_test_faults("");
    clv_report_free(o.report);
    job_test_close(o.context);
    job_test_free(&o.job);
}

static void a_lost_part_leaves_its_units_to_the_other(void **state)
{
    (void)state;
    outcome o = { .job = { .units = 5000, .no_reference = true } };
    run_in(&o, job_test_two_parts(CLV_SCHEDULE_DYNAMIC), "on=2;lost=20;code=-5");
    EXPECT_OK(o.status);
    assert_true(share_of_device(&o, 0).units > 0);
    job_test_expect_right(&o.job);
    end(&o);
}

static void a_build_failure_brings_its_log(void **state)
{
    (void)state;
    outcome o = { .job = { .no_reference = true } };
    run(&o, "build=1");
    assert_int_equal(o.status, CLV_E_BUILD);
    assert_non_null(strstr(clv_error_message(), "job_test.cl does not build"));
    assert_non_null(strstr(clv_error_detail(), "this is the build log"));
    end(&o);

    outcome with = { 0 };
    run(&with, "build=1");
    EXPECT_OK(with.status);
    assert_int_equal(with.job.by_reference, 600);
    job_test_expect_right(&with.job);
    end(&with);
}

static void a_refused_binary_is_built_again(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/programs-of-this-test", test_temp_dir());
    const clv_context_options options = { .cache_dir = folder, .no_qualification = true };
    clv_cache cache;
    for (int round = 0; round < 2; ++round) {
        outcome o = { 0 };
        run_in(&o, job_test_context(&options), round ? "binary=1" : "");
        EXPECT_OK(o.status);
        assert_int_equal(job_test_stats().injected, round);
        assert_int_equal(o.job.by_reference, 0);
        job_test_expect_right(&o.job);
        end(&o);
        clv_cache_open(&cache, folder);
        assert_int_equal(clv_cache_measure(&cache).entries, 1);
    }
}

/* What the device computes is wrong, and no call says so: the qualification finds out. */
static void a_liar_does_not_qualify(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/records-of-this-test", test_temp_dir());
    char *before = strdup(getenv("CLEAVE_CACHE_DIR"));
    setenv("CLEAVE_CACHE_DIR", folder, 1);
    outcome o = { 0 };
    run_in(&o, job_test_context(&(clv_context_options){ .cache_dir = "" }), "wrong=0");
    EXPECT_OK(o.status);
    assert_true(job_test_stats().injected > 0);
    assert_int_equal(job_test_stats().kernels, 1); /* of the check, none of the job */
    assert_int_equal(o.job.by_reference, 600);
    job_test_expect_right(&o.job);
    EXPECT_FAIL(CLV_E_WRONG_RESULT, "failed its qualification",
                clv_device_open(clv_context_device(o.context, 0)));
    char *report = clv_report_json(o.report);
    assert_non_null(strstr(report, "failed its qualification"));
    free(report);
    end(&o);

    setenv("CLEAVE_CACHE_DIR", before, 1); /* where it is not on record: now it tells the truth */
    free(before);
    clv_context *honest = job_test_context(&(clv_context_options){ .cache_dir = "" });
    EXPECT_OK(clv_device_open(clv_context_device(honest, 0)));
    job_test_close(honest);
}

static void rare_failures_anywhere_do_no_harm(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 8; ++seed) {
        char faults[64];
        outcome o = { .job = { .units = 3000 } };
        snprintf(faults, sizeof faults, "chance=0.03;seed=%d;code=%d", seed, seed % 2 ? -5 : -4);
        clv_context *context = job_test_two_parts(CLV_SCHEDULE_DYNAMIC);
        if (seed % 2) job_test_as_cards(context);
        run_in(&o, context, faults);
        EXPECT_OK(o.status);
        assert_true(job_test_stats().injected > 0);
        job_test_expect_right(&o.job);
        end(&o);
    }
}

/* A slow part gets less, also where its speed has to be found out. */
static void a_throttled_part_gets_less(void **state)
{
    (void)state;
    outcome o = { .job = { .units = 20000 } };
    run_in(&o, job_test_two_parts(CLV_SCHEDULE_ADAPTIVE), "on=2;throttle=1e-6");
    EXPECT_OK(o.status);
    assert_true(share_of_device(&o, 0).units > 2 * share_of_device(&o, 1).units);
    job_test_expect_right(&o.job);
    end(&o);
}

/* Shares of the static schedule are fixed before the start: who comes late finds his own. */
static void static_shares_wait_for_their_owner(void **state)
{
    (void)state;
    outcome o = { .job = { .units = 1000 } };
    run_in(&o, job_test_two_parts(CLV_SCHEDULE_STATIC), "on=2;throttle=1e-5");
    EXPECT_OK(o.status);
    assert_int_equal(share_of_device(&o, 0).units, 500);
    assert_int_equal(share_of_device(&o, 1).units, 500);
    job_test_expect_right(&o.job);
    end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_buffer_is_asked_for_again),
        cmocka_unit_test(chunks_shrink_to_what_the_memory_holds),
        cmocka_unit_test(no_room_at_all_says_what_is_needed),
        cmocka_unit_test(a_failed_command_is_retried),
        cmocka_unit_test(a_failed_event_is_seen),
        cmocka_unit_test(a_lost_device_is_not_short_of_memory),
        cmocka_unit_test(without_a_way_out_the_error_is_the_devices),
        cmocka_unit_test(a_build_failure_brings_its_log),
        cmocka_unit_test(a_refused_binary_is_built_again),
        cmocka_unit_test(a_liar_does_not_qualify),
        cmocka_unit_test(a_lost_part_leaves_its_units_to_the_other),
        cmocka_unit_test(rare_failures_anywhere_do_no_harm),
        cmocka_unit_test(a_throttled_part_gets_less),
        cmocka_unit_test(static_shares_wait_for_their_owner),
    };
    job_test_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

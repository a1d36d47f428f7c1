/* SPDX-License-Identifier: Apache-2.0 */
/* Tests jobs on drivers that fail in every known way: the job has the right result, or reports why it has none. */
#include "job_test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "runtime/program/cache.h"

#include <math.h>
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
    assert_non_null(strstr(clv_error_message(), "smallest chunk of 50 units needs about 25.6 kB"));
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
    setenv("POCL_KERNEL_CACHE", "0", 1); /* else PoCL's binaries are not asked for */
    snprintf(folder, sizeof folder, "%s/programs-of-this-test", test_temp_dir());
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .cache_dir = folder,
                                          .no_qualification = true };
    clv_cache cache;
    for (int round = 0; round < 2; ++round) {
        outcome o = { 0 };
        run_in(&o, job_test_context(&options), round ? "binary=1" : "");
        EXPECT_OK(o.status);
        assert_int_equal(job_test_stats().injected, round);
        assert_int_equal(o.job.by_reference, 0);
        job_test_expect_right(&o.job);
        clv_cache_open(&cache, folder);
        if (!round) assert_int_equal(clv_cache_measure(&cache).entries, 0); /* results come first */
        end(&o);
        assert_int_equal(clv_cache_measure(&cache).entries, 1);
    }
    unsetenv("POCL_KERNEL_CACHE");
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
    run_in(&o,
           job_test_context(
               &(clv_context_options){ .size = sizeof(clv_context_options), .cache_dir = "" }),
           "wrong=0");
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
    clv_context *honest = job_test_context(
        &(clv_context_options){ .size = sizeof(clv_context_options), .cache_dir = "" });
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
    run_in(&o, job_test_two_parts(CLV_SCHEDULE_ADAPTIVE), "on=2;throttle=1e-5");
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

/* That one part waited for a core once does not make it a slower one: parts are equal. */
static void parts_share_what_is_known_of_their_speed(void **state)
{
    (void)state;
    outcome slow = { .job = { .units = 1000 } }, o = { .job = { .units = 1000 } };
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_STATIC);
    job_test_expect_ok(context); /* compiles: from now on times tell speeds */
    run_in(&slow, context, "on=2;throttle=1e-4");
    EXPECT_OK(slow.status);
    run_in(&o, context, "");
    EXPECT_OK(o.status);
    assert_int_equal(share_of_device(&o, 0).units, 500);
    assert_int_equal(share_of_device(&o, 1).units, 500);
    clv_report_free(slow.report);
    job_test_free(&slow.job);
    end(&o);
}

/* ---- what is told about it -------------------------------------------------------------------- */

static double number(const clv_json *object, const char *key)
{
    const clv_json *value = clv_json_get(object, key);
    if (!clv_json_is_number(value)) fail_msg("the report has no number \"%s\"", key);
    return clv_json_number(value, 0);
}

static void the_report_tells_what_happened(void **state)
{
    (void)state;
    outcome o = { .job = { .units = 3000 } };
    clv_context *context = job_test_two_parts(CLV_SCHEDULE_STATIC);
    job_test_as_cards(context);
    job_test_expect_ok(context); /* compiles: from now on times tell speeds */
    /* A kernel, because a command is chosen by its number, and two threads enqueue in any order:
     * the fifth may be the mapping of staging memory, without which an upload works as well. */
    run_in(&o, context, "event=1;code=-14");
    EXPECT_OK(o.status);
    job_test_expect_right(&o.job);
    char *text = clv_report_json(o.report);
    clv_json *root;
    EXPECT_OK(clv_json_parse("report", text, strlen(text), &root));
    assert_string_equal(clv_json_string(clv_json_get(root, "schema"), ""), "cleave.report/1");
    const clv_json *job = clv_json_at(clv_json_get(root, "jobs"), 0);
    assert_true(number(job, "imbalance") >= 0);
    assert_true(number(job, "efficiency") > 0 && number(job, "efficiency") <= 1);
    const clv_json *shares = clv_json_get(job, "shares");
    assert_int_equal(clv_json_count(shares), 2);
    double units = 0, share = 0, failed = 0, up = 0, down = 0;
    for (size_t i = 0; i < 2; ++i) {
        const clv_json *s = clv_json_at(shares, i);
        units += number(s, "units"), share += number(s, "share"), failed += number(s, "failed");
        up += number(s, "bytes_to_device"), down += number(s, "bytes_from_device");
        assert_true(number(s, "memory_peak_bytes") > 0);
        assert_true(number(s, "busy_s") > 0 && number(s, "kernel_s") > 0);
        assert_non_null(strstr(clv_json_string(clv_json_get(s, "why"), ""), "units/s"));
    }
    if (!(units == 3000 && fabs(share - 1) < 1e-9 && failed == 1))
        fail_msg("units %g, shares %.9g, failed %g, injected %u: %s", units, share, failed,
                 (unsigned)job_test_stats().injected, text);
    const double least = 3000.0 * JOB_UNIT * sizeof(uint32_t);
    assert_true(up >= least && down >= least);
    free(text);
    clv_json_free(root);
    end(&o);
}

/* One driver's profiling says 1 ns for everything: then the report says that it does not know. */
static void false_times_are_not_reported(void **state)
{
    (void)state;
    for (int lies = 0; lies < 2; ++lies) {
        outcome o = { 0 };
        char path[300], *text;
        size_t length;
        clv_json *root;
        clv_context *context =
            job_test_context(&(clv_context_options){ .size = sizeof(clv_context_options),
                                                     .cache_dir = "",
                                                     .no_tuning = true,
                                                     .no_qualification = true,
                                                     .trace = true });
        run_in(&o, context, lies ? "times=1" : "");
        EXPECT_OK(o.status);
        job_test_expect_right(&o.job);
        assert_true(lies ? share_of_device(&o, 0).kernel_s < 0
                         : share_of_device(&o, 0).kernel_s > 0);
        snprintf(path, sizeof path, "%s/trace.json", test_temp_dir());
        EXPECT_OK(clv_context_write_trace(context, path));
        EXPECT_OK(clv_file_read(path, 1 << 24, &text, &length));
        EXPECT_OK(clv_json_parse("trace", text, length, &root));
        const clv_json *events = clv_json_get(root, "traceEvents");
        size_t kernels = 0, chunks = 0;
        for (size_t i = 0; i < clv_json_count(events); ++i) {
            const clv_json *e = clv_json_at(events, i);
            const char *name = clv_json_string(clv_json_get(e, "name"), "");
            kernels += strcmp(name, "stir") == 0;
            chunks += strncmp(name, "stir [", 6) == 0;
            if (strcmp(clv_json_string(clv_json_get(e, "ph"), ""), "X") == 0)
                assert_true(number(e, "dur") >= 0 && number(e, "ts") >= 0);
        }
        assert_int_equal(chunks, share_of_device(&o, 0).chunks);
        assert_int_equal(kernels, lies ? 0 : chunks);
        clv_json_free(root);
        clv_free(text);
        end(&o);
    }
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
        cmocka_unit_test(parts_share_what_is_known_of_their_speed),
        cmocka_unit_test(the_report_tells_what_happened),
        cmocka_unit_test(false_times_are_not_reported),
    };
    job_test_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plain C path of a job: it uses all cores, gives the same bits for any number of threads, and reports
 * progress and can be cancelled like any other. */
#include "cube.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/job.h>
#include <cleave/patch.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 1000, RESULT = 3 };

typedef struct task {
    double seconds;      /* of a chunk */
    atomic_int together; /* chunks wait until so many run at the same time; 0: they do not wait */
    size_t fails_at, cancel_at;
    pthread_t caller;
    atomic_size_t done;
    atomic_int active, most_active;
    size_t told, calls, chunks;
    bool misaligned, backwards, from_elsewhere;
    unsigned char commits[UNITS];
} task;

static clv_context *reference_context(unsigned threads)
{
    clv_context *context = test_plain_context();
    context->plain_threads = threads;
    return context;
}

static clv_cost cost(size_t first, size_t count, void *user)
{
    (void)first, (void)user;
    return (clv_cost){ .flops = (double)count };
}

static clv_status no_device(clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return clv_fail(CLV_E_INTERNAL, "no device was asked for");
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    task *t = user;
    void *result;
    CLV_TRY(clv_slot_result_create(slot, RESULT, count, &result));
    const int active = atomic_fetch_add(&t->active, 1) + 1;
    for (int most = t->most_active;
         active > most && !atomic_compare_exchange_weak(&t->most_active, &most, active);)
        continue;
    clv_sleep(t->seconds);
    const double end = clv_now() + 20;
    while (t->most_active < t->together)
        if (clv_now() > end)
            t->together = 0; /* they never do: the test will see it in most_active */
        else
            clv_sleep(1e-4);
    memset(result, (int)(first % 251), count);
    atomic_fetch_add(&t->done, count);
    atomic_fetch_sub(&t->active, 1);
    if (t->fails_at && first <= t->fails_at && t->fails_at < first + count)
        return clv_fail_detail(CLV_E_FORMAT, "its detail", "unit %zu is bad", t->fails_at);
    return CLV_OK;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    task *t = user;
    const unsigned char *result = clv_slot_result(slot, RESULT);
    for (size_t i = 0; i < count; ++i)
        t->commits[first + i] += result[i] == first % 251;
    t->misaligned |= first % 6 != 0;
    ++t->chunks;
    return CLV_OK;
}

static int progress(const char *job, size_t done, size_t total, void *user)
{
    task *t = user;
    assert_string_equal(job, "plain");
    assert_int_equal(total, UNITS);
    t->backwards |= done < t->told;
    t->told = done;
    t->from_elsewhere |= !pthread_equal(pthread_self(), t->caller);
    ++t->calls;
    return t->cancel_at && t->calls >= t->cancel_at;
}

static clv_status run(unsigned threads, size_t batch, task *t)
{
    clv_context *context = reference_context(threads);
    context->batch = batch;
    t->caller = pthread_self();
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "plain",
                          .units = UNITS,
                          .align = 6,
                          .min_chunk = 6,
                          .cost = cost,
                          .enqueue = no_device,
                          .commit = commit,
                          .reference = reference,
                          .progress = progress,
                          .progress_user = t };
    const clv_status status = clv_job_run(context, &job, t, NULL);
    clv_context_free(context);
    return status;
}

static void every_unit_once_on_all_threads(void **state)
{
    (void)state;
    task t = { .together = 4 };
    EXPECT_OK(run(4, 0, &t));
    for (size_t i = 0; i < UNITS; ++i)
        assert_int_equal(t.commits[i], 1);
    assert_int_equal(t.most_active, 4);
    assert_false(t.misaligned);
    assert_false(t.backwards);
    assert_false(t.from_elsewhere);
    assert_int_equal(t.told, UNITS);
    task one = { 0 };
    EXPECT_OK(run(1, 0, &one));
    assert_int_equal(one.most_active, 1);
    assert_int_equal(one.chunks, t.chunks); /* the same ones */
}

static void a_batch_is_heeded(void **state)
{
    (void)state;
    task t = { 0 };
    EXPECT_OK(run(2, 1, &t)); /* not less than the smallest chunk */
    assert_int_equal(t.chunks, (UNITS + 5) / 6);
}

static void it_stops_when_told(void **state)
{
    (void)state;
    task t = { .seconds = 20e-3, .cancel_at = 2 };
    const double start = clv_now();
    EXPECT_FAIL(CLV_E_CANCELLED, "cancelled after", run(2, 0, &t));
    assert_true(clv_now() - start < 1.5); /* all of it: 1.7 s at least, on two threads */
    assert_true(t.done < UNITS / 2);
    assert_int_equal(t.active, 0);
}

static void an_error_comes_through_with_its_words(void **state)
{
    (void)state;
    task t = { .fails_at = 500 };
    EXPECT_FAIL(CLV_E_FORMAT, "unit 500 is bad", run(3, 0, &t));
    assert_string_equal(clv_error_detail(), "its detail");
}

static void the_report_says_so(void **state)
{
    (void)state;
    clv_context *context = reference_context(2);
    clv_report *report;
    task t = { .seconds = 1e-3, .caller = pthread_self() };
    EXPECT_OK(clv_report_create(&report));
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "plain",
                          .units = UNITS,
                          .align = 6,
                          .cost = cost,
                          .enqueue = no_device,
                          .commit = commit,
                          .reference = reference };
    EXPECT_OK(clv_job_run(context, &job, &t, report));
    assert_int_equal(clv_report_share_count(report), 1);
    const clv_share share = clv_report_share(report, 0);
    assert_string_equal(share.device, "host (reference)");
    assert_int_equal(share.units, UNITS);
    assert_true(share.busy_s > 0 && share.busy_s <= clv_report_seconds(report));
    char *text = clv_report_json(report);
    assert_non_null(strstr(text, "the plain C path on 2 threads"));
    free(text);
    clv_report_free(report);
    clv_context_free(context);
}

static void paco_has_the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    test_cube cube = test_cube_make(
        &(test_cube_shape){ .seed = 5, .frames = 12, .height = 29, .width = 31, .level = 3 });
    const size_t count = cube.in.height * cube.in.width;
    double *a = clv_alloc(2 * count, sizeof *a), *first = clv_alloc(2 * count, sizeof *first);
    const clv_paco_options options = { .size = sizeof(clv_paco_options), .radius = 2 };
    const unsigned threads[] = { 1, 2, 5 };
    for (size_t i = 0; i < CLV_LEN(threads); ++i) {
        clv_context *context = reference_context(threads[i]);
        EXPECT_OK(clv_paco(context, &cube.in, &options, a, a + count, NULL, NULL));
        clv_context_free(context);
        if (i) assert_memory_equal(a, first, 2 * count * sizeof *a);
        memcpy(first, a, 2 * count * sizeof *a);
    }
    clv_free(a), clv_free(first);
    test_cube_free(&cube);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_once_on_all_threads),
        cmocka_unit_test(a_batch_is_heeded),
        cmocka_unit_test(it_stops_when_told),
        cmocka_unit_test(an_error_comes_through_with_its_words),
        cmocka_unit_test(the_report_says_so),
        cmocka_unit_test(paco_has_the_same_bits_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

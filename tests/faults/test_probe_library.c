/* SPDX-License-Identifier: Apache-2.0 */
/* Tests clv_probe_run as an application calls it: in-process and isolated reports agree, the environment does not
 * change, nothing is printed, and several threads may call it at the same time. */
#define _GNU_SOURCE
#include "run.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/probe.h>
#include <cleave/runtime.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static const char *helper(void)
{
    const char *path = getenv("CLEAVE_HELPER");
    if (!path) test_skip_all("CLEAVE_HELPER does not name the helper program");
    return path;
}

static clv_probe_report *run(bool isolate)
{
    const clv_probe_options options = { .size = sizeof(clv_probe_options),
                                        .isolate = isolate,
                                        .helper = isolate ? helper() : NULL };
    clv_probe_report *report;
    EXPECT_OK(clv_probe_run(&options, &report));
    assert_int_equal(report->isolated, isolate);
    return report;
}

static void both_ways_find_the_same(void **state)
{
    (void)state;
    clv_probe_report *a = run(true), *b = run(false);
    assert_int_equal(a->device_count, b->device_count);
    assert_int_equal(a->platform_count, b->platform_count);
    assert_string_equal(a->mode.reason, b->mode.reason);
    for (size_t i = 0; i < a->device_count; ++i) {
        assert_string_equal(a->devices[i].id, b->devices[i].id);
        assert_string_equal(a->devices[i].name, b->devices[i].name);
        assert_int_equal(a->devices[i].global_bytes, b->devices[i].global_bytes);
        assert_null(a->devices[i].native_device);
        assert_non_null(b->devices[i].native_device);
    }
    clv_probe_free(a), clv_probe_free(b);
}

static char *environment(void)
{
    char *all = NULL;
    size_t length;
    FILE *stream = open_memstream(&all, &length);
    for (char **entry = environ; *entry; ++entry)
        fprintf(stream, "%s\n", *entry);
    fclose(stream);
    return all;
}

/* What the process writes on stdout and stderr while `isolate` rules. */
static off_t bytes_printed(bool isolate)
{
    struct stat info;
    char path[4096];
    snprintf(path, sizeof path, "%s/printed-%d", test_temp_dir(), isolate);
    FILE *file = fopen(path, "w+");
    fflush(stdout), fflush(stderr);
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(file), STDOUT_FILENO), dup2(fileno(file), STDERR_FILENO);
    clv_probe_free(run(isolate));
    fflush(stdout), fflush(stderr);
    dup2(out, STDOUT_FILENO), dup2(err, STDERR_FILENO);
    close(out), close(err);
    assert_int_equal(fstat(fileno(file), &info), 0);
    fclose(file);
    return info.st_size;
}

static void the_application_is_left_alone(void **state)
{
    (void)state;
    char *before = environment();
    assert_int_equal(bytes_printed(true), 0);
    char *after = environment();
    assert_string_equal(before, after);
    free(after);
    clv_probe_free(run(false)); /* a driver in the process may print: that is its own */
    after = environment();
    assert_string_equal(before, after);
    free(before), free(after);
}

static void *ask(void *reason)
{
    clv_probe_report *report = run(true);
    snprintf(reason, 512, "%s", report->mode.reason);
    clv_probe_free(report);
    return NULL;
}

static void threads_may_ask_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    static char reasons[4][512];
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, reasons[i]), 0);
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 4; ++i)
        assert_string_equal(reasons[0], reasons[i]);
}

/* An application that holds memory on a device sees how much, by whichever way it asks. */
static void what_the_process_holds_is_counted(void **state)
{
    (void)state;
    const clv_context_options options = { .size = sizeof options, .no_qualification = true };
    clv_context *context;
    clv_buffer *buffer;
    EXPECT_OK(clv_context_create(&options, &context));
    clv_device *device = clv_context_device(context, 0);
    if (!device) test_skip_without_device();
    const char *id = clv_device_facts(device)->id;
    EXPECT_OK(clv_buffer_create(device, 1 << 20, CLV_BUFFER_DEVICE, &buffer));
    for (int isolate = 0; isolate < 2; ++isolate) {
        clv_probe_report *report = run(isolate);
        bool found = false;
        for (size_t i = 0; i < report->device_count; ++i) {
            const bool mine = strcmp(report->devices[i].id, id) == 0;
            assert_int_equal(report->devices[i].own_bytes, mine ? 1 << 20 : 0);
            found |= mine;
        }
        assert_true(found);
        clv_probe_free(report);
    }
    clv_buffer_free(buffer);
    clv_context_free(context);
    clv_probe_report *report = run(false);
    for (size_t i = 0; i < report->device_count; ++i)
        assert_int_equal(report->devices[i].own_bytes, 0);
    clv_probe_free(report);
}

static int give_up(const char *doing, void *user)
{
    assert_non_null(doing);
    ++*(int *)user;
    return 1;
}

static void the_application_may_give_up(void **state)
{
    (void)state;
    int calls = 0;
    char line[4096];
    clv_probe_report *report = (clv_probe_report *)&line;
    const clv_probe_options options = { .size = sizeof(clv_probe_options),
                                        .isolate = true,
                                        .helper = helper(),
                                        .timeout_s = 30,
                                        .progress = give_up,
                                        .progress_user = &calls };
    snprintf(line, sizeof line, "%s\n", HANGING_ICD);
    test_write(line, "hanging/a.icd");
    char *old = getenv("OCL_ICD_VENDORS") ? strdup(getenv("OCL_ICD_VENDORS")) : NULL;
    snprintf(line, sizeof line, "%s/hanging", test_temp_dir());
    setenv("OCL_ICD_VENDORS", line, 1);
    EXPECT_FAIL(CLV_E_CANCELLED, "stopped early", clv_probe_run(&options, &report));
    assert_null(report);
    assert_int_equal(calls, 1);
    if (old)
        setenv("OCL_ICD_VENDORS", old, 1);
    else
        unsetenv("OCL_ICD_VENDORS");
    free(old);
}

static void a_missing_helper_is_named(void **state)
{
    (void)state;
    clv_probe_report *report;
    const clv_probe_options options = { .size = sizeof(clv_probe_options),
                                        .isolate = true,
                                        .helper = "/nonexistent/helper" };
    EXPECT_FAIL(CLV_E_IO, "/nonexistent/helper", clv_probe_run(&options, &report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_find_the_same),
        cmocka_unit_test(the_application_is_left_alone),
        cmocka_unit_test(threads_may_ask_at_once),
        cmocka_unit_test(what_the_process_holds_is_counted),
        cmocka_unit_test(the_application_may_give_up),
        cmocka_unit_test(a_missing_helper_is_named),
    };
    setenv("CLEAVE_CACHE", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests probe/drivers.c: drivers that crash when they are loaded or checked are left out, good ones are kept, and each
 * verdict is remembered. The drivers are those of tests/faults; the helper is the command. */
#include "data.h"
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "probe/drivers.h"
#include "probe/verdict.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void install(const char *name, const char *library)
{
    char line[4400];
    snprintf(line, sizeof line, "%s\n", library);
    test_write(line, "vendors/%s.icd", name);
}

static clv_status vet_with(const char *helper, char *folder, clv_text *left_out)
{
    const clv_probe_options options = { .size = sizeof(clv_probe_options), .helper = helper };
    clv_text_clear(left_out);
    return clv_drivers_vet(&options, false, folder, 4096, left_out);
}

static clv_status vet(char *folder, clv_text *left_out)
{
    return vet_with(test_command(), folder, left_out);
}

static bool is_in(const char *folder, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void the_good_ones_stay(void **state)
{
    (void)state;
    char folder[4096], path[4200], *text;
    size_t length;
    clv_text left_out = { 0 };
    install("a-good", GOOD_ICD);
    EXPECT_OK(vet(folder, &left_out));
    assert_string_equal(folder, "");

    install("b-crash", CRASHING_ICD);
    install("c-missing", "libthere-is-no-such-library.so");
    install("d-check", CRASHING_CHECK_ICD);
    EXPECT_OK(vet(folder, &left_out));
    const char *said = clv_text_get(&left_out);
    assert_non_null(strstr(said, "b-crash.icd: the driver crashed (signal 11"));
    assert_non_null(strstr(said, "d-check.icd: the driver crashed (signal 6, abort): linking "
                                 "failed (while checking Fake GPU)"));
    assert_null(strstr(said, "missing"));
    assert_null(strstr(said, "good"));
    snprintf(path, sizeof path, "%s/000-a-good.icd", folder);
    EXPECT_OK(clv_file_read(path, 4096, &text, &length));
    assert_string_equal(text, GOOD_ICD "\n");
    clv_free(text);
    assert_false(is_in(folder, "001-b-crash.icd"));
    assert_false(is_in(folder, "003-d-check.icd"));
    clv_text_clear(&left_out);
}

/* Formerly a driver had a second file, so that it was loaded twice, when another broken driver stood before it. */
static void another_broken_one_does_not_load_a_good_one_twice(void **state)
{
    (void)state;
    char first[4096], second[4096], path[4200];
    clv_text left_out = { 0 };
    EXPECT_OK(vet(first, &left_out));
    install("0-crash", CRASHING_ICD);
    EXPECT_OK(vet(second, &left_out));
    assert_non_null(strstr(clv_text_get(&left_out), "0-crash.icd: the driver crashed"));
    assert_string_equal(first, second);
    assert_true(is_in(second, "000-a-good.icd"));
    assert_false(is_in(second, "001-a-good.icd"));
    snprintf(path, sizeof path, "%s/vendors/0-crash.icd", test_temp_dir());
    assert_int_equal(unlink(path), 0);
    clv_text_clear(&left_out);
}

/* If the helper does not exist, only a remembered verdict can be given. */
static void a_verdict_is_remembered_until_something_changes(void **state)
{
    (void)state;
    static const char nobody[] = "/nonexistent/helper";
    char first[4096], again[4096], path[4200], *text;
    size_t length;
    clv_text left_out = { 0 };
    EXPECT_OK(vet(first, &left_out));
    EXPECT_OK(vet_with(nobody, again, &left_out));
    assert_string_equal(first, again);
    assert_true(left_out.length > 0);

    setenv("RUSTICL_ENABLE", "a-test", 1);
    EXPECT_FAIL(CLV_E_IO, nobody, vet_with(nobody, again, &left_out));
    unsetenv("RUSTICL_ENABLE");
    EXPECT_OK(vet_with(nobody, again, &left_out));

    /* another library under the same name: the old verdict says nothing about it */
    EXPECT_OK(clv_file_read(GOOD_ICD, 16 << 20, &text, &length));
    snprintf(path, sizeof path, "%s/libcopy.so", test_temp_dir());
    EXPECT_OK(clv_file_write(path, text, length));
    install("e-copy", path);
    EXPECT_FAIL(CLV_E_IO, nobody, vet_with(nobody, again, &left_out));
    EXPECT_OK(vet(again, &left_out));
    EXPECT_OK(vet_with(nobody, again, &left_out));
    const struct timespec times[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    EXPECT_FAIL(CLV_E_IO, nobody, vet_with(nobody, again, &left_out));
    clv_free(text);
    clv_text_clear(&left_out);
}

/* The others are not asked again: a helper is needed for the new driver alone. */
static void a_new_driver_is_the_only_one_asked(void **state)
{
    (void)state;
    char folder[4096], counted[4200], helper[4200], line[9000], *text;
    size_t length;
    clv_text left_out = { 0 };
    EXPECT_OK(vet(folder, &left_out));
    snprintf(counted, sizeof counted, "%s/counted", test_temp_dir());
    snprintf(line, sizeof line, "#!/bin/sh\necho \"$4\" >> '%s'\nexec '%s' \"$@\"\n", counted,
             test_command());
    snprintf(helper, sizeof helper, "%s", test_write(line, "helper"));
    assert_int_equal(chmod(helper, 0700), 0);
    install("f-new", GOOD_ICD);
    EXPECT_OK(vet_with(helper, folder, &left_out));
    EXPECT_OK(clv_file_read(counted, 4096, &text, &length));
    assert_string_equal(text, "enumerate\ncheck\n");
    clv_free(text);
    clv_text_clear(&left_out);
}

static void without_a_cache_the_folder_is_temporary(void **state)
{
    (void)state;
    char folder[4096];
    clv_text left_out = { 0 };
    setenv("CLEAVE_CACHE", "0", 1);
    EXPECT_OK(vet(folder, &left_out));
    assert_int_equal(access(folder, F_OK), 0);
    clv_drivers_forget(folder);
    assert_int_equal(access(folder, F_OK), -1);
    unsetenv("CLEAVE_CACHE");
    clv_text_clear(&left_out);
}

static int lines_with(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        ++count;
    return count;
}

/* Loaded into its own process, either driver would end it. */
static void a_job_goes_on_without_them(void **state)
{
    (void)state;
    char line[4400], vendors[4200], output[4200];
    snprintf(line, sizeof line, "%s\n", CRASHING_ICD);
    test_write(line, "broken/a-crash.icd");
    snprintf(line, sizeof line, "%s\n", CRASHING_CHECK_ICD);
    test_write(line, "broken/b-check.icd");
    snprintf(vendors, sizeof vendors, "OCL_ICD_VENDORS=%s/broken", test_temp_dir());
    snprintf(output, sizeof output, "%s/spots.csv", test_temp_dir());
    const char *const changes[] = { vendors, "CLEAVE_MODE", "CLEAVE_DEVICE", NULL };
    const char *const argv[] = { test_command(), "blobs", test_data("blobs/e_border_u16.npy"),
                                 "-o",           output,  NULL };
    test_outcome outcome = test_run(argv, changes);
    if (outcome.code) fail_msg("exit code %d: %s", outcome.code, outcome.err);
    assert_int_equal(lines_with(outcome.err, "left out"), 2);
    assert_int_equal(lines_with(outcome.err, "a-crash.icd: the driver crashed (signal 11"), 1);
    assert_int_equal(lines_with(outcome.err, "b-check.icd: the driver crashed (signal 6"), 1);
    test_outcome_clear(&outcome);
}

/* A card that hangs must not cost its healthy neighbour. */
static void one_working_device_keeps_its_driver(void **state)
{
    (void)state;
    char reason[CLV_VERDICT_REASON];
    const clv_probe_icd icds[] = { { .status = "ok" } };
    const clv_probe_platform platforms[] = { { .icd = 0 } };
    clv_probe_device devices[] = { { .check = { .done = true, .crashed = true, .message = "M" } },
                                   { .check = { .done = true } } };
    clv_probe_report report = { .icds = icds,
                                .icd_count = 1,
                                .platforms = platforms,
                                .platform_count = 1,
                                .devices = devices,
                                .device_count = 2 };
    assert_int_equal(clv_verdict_judge(&report, 0, reason), CLV_VERDICT_GOOD);
    report.device_count = 1;
    assert_int_equal(clv_verdict_judge(&report, 0, reason), CLV_VERDICT_BAD);
    assert_string_equal(reason, "M (while checking a device)");
    devices[0].check.done = false;
    assert_int_equal(clv_verdict_judge(&report, 0, reason), CLV_VERDICT_GOOD);
}

/* Cores that two drivers offer: the better one makes the other superfluous, unless that has more to offer. */
static void a_driver_of_the_same_cores_is_superfluous(void **state)
{
    (void)state;
    const clv_probe_icd icds[] = { { .status = "ok", .library = "libbest.so" },
                                   { .status = "ok", .library = "libother.so" } };
    const clv_probe_platform platforms[] = { { .icd = 0 }, { .icd = 1 } };
    clv_probe_device devices[] = {
        { .device_class = CLV_CLASS_CPU,
          .duplicate_of = SIZE_MAX,
          .primary = true,
          .usable = true,
          .check = { .done = true, .ok = true } },
        { .platform = 1, .device_class = CLV_CLASS_SOFTWARE, .duplicate_of = 0, .usable = true },
        { .platform = 1, .device_class = CLV_CLASS_DISCRETE_GPU, .duplicate_of = SIZE_MAX },
    };
    clv_probe_report report = { .icds = icds,
                                .icd_count = 2,
                                .platforms = platforms,
                                .platform_count = 2,
                                .devices = devices,
                                .device_count = 2 };
    assert_null(clv_verdict_repeats(&report, 0));
    assert_string_equal(clv_verdict_repeats(&report, 1), "libbest.so");
    report.device_count = 3; /* a card, too */
    assert_null(clv_verdict_repeats(&report, 1));
    report.device_count = 2;
    devices[0].check.ok = false; /* the better one computes nonsense */
    assert_null(clv_verdict_repeats(&report, 1));
    devices[0].check.ok = true;
    devices[0].usable = false;
    assert_null(clv_verdict_repeats(&report, 1));
    report.device_count = 0; /* no device at all may change at any time */
    assert_null(clv_verdict_repeats(&report, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_good_ones_stay),
        cmocka_unit_test(another_broken_one_does_not_load_a_good_one_twice),
        cmocka_unit_test(a_verdict_is_remembered_until_something_changes),
        cmocka_unit_test(a_new_driver_is_the_only_one_asked),
        cmocka_unit_test(without_a_cache_the_folder_is_temporary),
        cmocka_unit_test(a_job_goes_on_without_them),
        cmocka_unit_test(one_working_device_keeps_its_driver),
        cmocka_unit_test(a_driver_of_the_same_cores_is_superfluous),
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/vendors", test_temp_dir());
    setenv("OCL_ICD_VENDORS", path, 1);
    snprintf(path, sizeof path, "%s/cache", test_temp_dir());
    setenv("CLEAVE_CACHE_DIR", path, 1);
    setenv("TMPDIR", test_temp_dir(), 1);
    unsetenv("RUSTICL_ENABLE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

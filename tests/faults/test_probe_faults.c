/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the probe with broken drivers beside good ones: it names what each broken driver does, reports the good ones,
 * and answers in time. It runs under the system's loader, and again under the one that CLEAVE_TEST_KHRONOS names
 * (argument "khronos"; the libraries that this loader needs must be found). */
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time limits for drivers that hang and for all others; an answer to the first is promised within the
 * limit and `spare_s`. An instrumented probe is late for reasons of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double short_s = 10, long_s = 60, spare_s = 10;
#else
static const double short_s = 2, long_s = 10, spare_s = 1;
#endif

static char preload[4096]; /* "LD_PRELOAD=..." of another loader, or "" */
static char pocl[4096];    /* the library in the system's pocl.icd, or "" */

typedef struct fault {
    const char *name;    /* of fake_icd_NAME; NULL: `text` is the file */
    const char *text;    /* of the .icd file */
    const char *status;  /* expected; NULL: the file is not listed */
    const char *message; /* part of it */
    bool late;           /* takes the whole time limit */
} fault;

static const fault faults[] = {
    { NULL, "libthere-is-no-such-library.so\n", "missing", "cannot open shared object", false },
    { NULL,
      "\x7f"
      "ELF garbage \x01\x02",
      "missing", "no library name", false },
    { NULL, "\n", "missing", "empty", false },
    { NULL, "libm.so.6\n", "missing", "no OpenCL driver", false },
    { "crash_constructor", NULL, "crashed", "signal 11", false },
    { "hang_constructor", NULL, "timeout", "did not answer within", true },
    { "hang_deaf", NULL, "timeout", "did not answer within", true },
    { "exit_loader", NULL, "crashed", "exit code 3", false },
    { "exit_devices", NULL, "crashed", "before it answered", false },
    { "abort_devices", NULL, "crashed", "abort", false },
    { "scribble", NULL, "bad_output", "not valid JSON", false },
    { "banner", NULL, "ok", NULL, false },
    { "flood", NULL, "ok", NULL, false },
    { "orphan", NULL, "ok", NULL, false },
    { "no_devices", NULL, "ok", NULL, false },
    { "bad_devices", NULL, "ok", NULL, false },
    { "failing_queries", NULL, "ok", NULL, false },
    { "long_strings", NULL, "ok", NULL, false },
    { "no_terminator", NULL, "ok", NULL, false },
    { "overrun", NULL, "ok", NULL, false },
    { "size_zero", NULL, NULL, NULL, false }, /* "ok" or "no_platform": loaders differ */
    { "65_platforms", NULL, "ok", NULL, false },
};

/* A folder with the fault, a good driver, and PoCL where it is installed. */
static const char *vendors_folder(const fault *f, size_t index)
{
    static char folder[4096];
    char line[4096];
    snprintf(folder, sizeof folder, "%s/vendors-%zu", test_temp_dir(), index);
    snprintf(line, sizeof line, "%s/libfake_icd_%s.so\n", FAKE_ICDS, f && f->name ? f->name : "");
    if (f) test_write(f->name ? line : f->text, "vendors-%zu/fault.icd", index);
    snprintf(line, sizeof line, "%s/libfake_icd_good.so\n", FAKE_ICDS);
    test_write(line, "vendors-%zu/good.icd", index);
    if (*pocl) test_write(pocl, "vendors-%zu/pocl.icd", index);
    return folder;
}

static test_outcome probe_within(double timeout_s, const char *folder, const char *option)
{
    char vendors[4200], timeout[32];
    snprintf(vendors, sizeof vendors, "OCL_ICD_VENDORS=%s", folder);
    snprintf(timeout, sizeof timeout, "--timeout=%g", timeout_s);
    const char *const changes[] = { vendors, "CLEAVE_CACHE=0", *preload ? preload : "CLEAVE_NONE",
                                    NULL };
    const char *const argv[] = { test_command(), "probe", "--json", timeout, option, NULL };
    return test_run(argv, changes);
}

static test_outcome probe(const char *folder, const char *option)
{
    return probe_within(long_s, folder, option);
}

static const clv_json *icd_of(const clv_json *root, const char *file)
{
    const clv_json *icds = clv_json_get(clv_json_get(root, "opencl"), "icds");
    for (size_t i = 0; i < clv_json_count(icds); ++i) {
        const clv_json *icd = clv_json_at(icds, i);
        if (clv_ends_with(clv_json_string(clv_json_get(icd, "file"), ""), file)) return icd;
    }
    return NULL;
}

static bool has_device(const clv_json *root, const char *part)
{
    const clv_json *devices = clv_json_get(root, "devices");
    for (size_t i = 0; i < clv_json_count(devices); ++i)
        if (strstr(clv_json_string(clv_json_get(clv_json_at(devices, i), "name"), ""), part))
            return true;
    return false;
}

static clv_json *parse(const test_outcome *outcome)
{
    clv_json *root;
    if (clv_json_parse("stdout", outcome->out, strlen(outcome->out), &root))
        fail_msg("%s\n%s", clv_error_message(), outcome->err);
    return root;
}

static void expect_good_drivers(const clv_json *root, const char *name)
{
    const clv_json *good = icd_of(root, "good.icd");
    if (strcmp(clv_json_string(clv_json_get(good, "status"), ""), "ok") != 0)
        fail_msg("%s spoils the good driver", name);
    assert_true(has_device(root, "Fake GPU"));
    if (*pocl && !has_device(root, "pthread") && !has_device(root, "cpu"))
        fail_msg("%s spoils PoCL", name);
}

static void no_driver_spoils_the_report(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(faults); ++i) {
        const fault *f = &faults[i];
        const char *name = f->name ? f->name : f->text;
        const double limit_s = f->late ? short_s : long_s;
        test_outcome outcome = probe_within(limit_s, vendors_folder(f, i), NULL);
        if (outcome.code != 0) fail_msg("%s: exit code %d: %s", name, outcome.code, outcome.err);
        if (outcome.seconds > (f->late ? limit_s + spare_s : limit_s))
            fail_msg("%s: took %.2f s", name, outcome.seconds);
        clv_json *root = parse(&outcome);
        const clv_json *icd = icd_of(root, "fault.icd");
        const char *status = clv_json_string(clv_json_get(icd, "status"), "not listed");
        const char *message = clv_json_string(clv_json_get(icd, "message"), "");
        if (f->status && strcmp(status, f->status) != 0)
            fail_msg("%s: %s (%s), expected %s", name, status, message, f->status);
        if (f->message && !strstr(message, f->message)) fail_msg("%s says \"%s\"", name, message);
        expect_good_drivers(root, name);
        print_message("%-24s %-10s %.2f s\n", f->name ? f->name : "(file)", status,
                      outcome.seconds);
        clv_json_free(root);
        test_outcome_clear(&outcome);
    }
}

static void strict_turns_a_broken_driver_into_exit_code_4(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(faults); ++i) {
        const fault *f = &faults[i];
        if (!f->name || f->late || !f->status) continue;
        test_outcome outcome = probe(vendors_folder(f, 100 + i), "--strict");
        const bool broken =
            strcmp(f->status, "crashed") == 0 || strcmp(f->status, "bad_output") == 0;
        if (outcome.code != (broken ? 4 : 0)) fail_msg("%s: exit code %d", f->name, outcome.code);
        test_outcome_clear(&outcome);
    }
}

static const fault *find(const char *name)
{
    for (size_t i = 0; i < CLV_LEN(faults); ++i)
        if (faults[i].name && strcmp(faults[i].name, name) == 0) return &faults[i];
    return NULL;
}

static void what_drivers_print_stays_theirs(void **state)
{
    (void)state;
    test_outcome outcome = probe(vendors_folder(find("banner"), 200), NULL);
    clv_json *root = parse(&outcome);
    const char *said =
        clv_json_string(clv_json_get(icd_of(root, "fault.icd"), "driver_output"), "");
    assert_non_null(strstr(said, "Welcome to the fake driver!"));
    assert_non_null(strstr(said, "and its warning"));
    assert_string_equal(outcome.err, "");
    clv_json_free(root);
    test_outcome_clear(&outcome);

    outcome = probe(vendors_folder(find("flood"), 201), NULL);
    root = parse(&outcome);
    said = clv_json_string(clv_json_get(icd_of(root, "fault.icd"), "driver_output"), "");
    assert_true(strlen(said) == 65536);
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static void texts_of_drivers_are_cut_and_cleaned(void **state)
{
    (void)state;
    test_outcome outcome = probe(vendors_folder(find("long_strings"), 202), NULL);
    clv_json *root = parse(&outcome);
    const clv_json *devices = clv_json_get(root, "devices");
    bool found = false;
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const char *name = clv_json_string(clv_json_get(clv_json_at(devices, i), "name"), "");
        if (!clv_starts_with(name, "Fake GPU?")) continue;
        found = true;
        assert_int_equal(strlen(name), 65536);
    }
    assert_true(found);
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static void many_platforms_are_all_shown(void **state)
{
    (void)state;
    test_outcome outcome = probe(vendors_folder(find("65_platforms"), 203), NULL);
    clv_json *root = parse(&outcome);
    const size_t count = clv_json_count(clv_json_get(clv_json_get(root, "opencl"), "platforms"));
    assert_int_equal(count, 66 + (*pocl ? 1 : 0));
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static void an_empty_folder_is_a_machine_without_opencl(void **state)
{
    (void)state;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/empty", test_temp_dir());
    EXPECT_OK(clv_dir_make(folder));
    test_outcome outcome = probe(folder, NULL);
    assert_int_equal(outcome.code, 0);
    clv_json *root = parse(&outcome);
    const clv_json *mode = clv_json_get(root, "mode");
    assert_string_equal(clv_json_string(clv_json_get(mode, "recommended"), ""), "cpu");
    assert_int_equal(clv_json_count(clv_json_get(clv_json_get(root, "opencl"), "icds")), 0);
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static void a_device_that_cannot_compute_fails_its_check(void **state)
{
    (void)state;
    char vendors[4200];
    snprintf(vendors, sizeof vendors, "OCL_ICD_VENDORS=%s", vendors_folder(NULL, 204));
    const char *const changes[] = { vendors, "CLEAVE_CACHE=0", *preload ? preload : "CLEAVE_NONE",
                                    NULL };
    const char *const argv[] = { test_command(), "probe",  "--check", "--device=gpu",
                                 "--mode=gpu",   "--json", NULL };
    test_outcome outcome = test_run(argv, changes);
    /* its driver refuses to make a context, and then there is no GPU */
    assert_int_equal(outcome.code, 3);
    assert_non_null(strstr(outcome.err, "cannot be used"));
    test_outcome_clear(&outcome);
    const char *const argv2[] = { test_command(), "probe", "--check", "--json", NULL };
    outcome = test_run(argv2, changes);
    assert_int_equal(outcome.code, 5);
    clv_json *root = parse(&outcome);
    assert_non_null(strstr(outcome.out, "failed its check: clCreateContext gave -5"));
    assert_string_equal(
        clv_json_string(clv_json_get(clv_json_get(root, "mode"), "recommended"), ""), "cpu");
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

/* The fake GPU under fault.icd. */
static const clv_json *device_of_fault(const clv_json *root)
{
    const clv_json *platforms = clv_json_get(clv_json_get(root, "opencl"), "platforms");
    const clv_json *devices = clv_json_get(root, "devices");
    const clv_json *icds = clv_json_get(clv_json_get(root, "opencl"), "icds");
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const clv_json *device = clv_json_at(devices, i);
        const int64_t at = clv_json_int(clv_json_get(device, "platform"), 0);
        const int64_t icd =
            clv_json_int(clv_json_get(clv_json_at(platforms, (size_t)at), "icd"), 0);
        if (clv_json_at(icds, (size_t)icd) == icd_of(root, "fault.icd")) return device;
    }
    return NULL;
}

static void a_driver_that_dies_in_its_check_is_named(void **state)
{
    (void)state;
    const struct {
        const char *name, *message;
        double timeout_s;
    } cases[] = { { "crash_check", "the driver crashed (signal 6, abort): linking failed", 60 },
                  { "hang_check", "did not answer within", 1.5 * short_s } };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        const fault f = { .name = cases[i].name };
        test_outcome outcome =
            probe_within(cases[i].timeout_s, vendors_folder(&f, 300 + i), "--check");
        clv_json *root = parse(&outcome);
        const clv_json *check = clv_json_get(device_of_fault(root), "check");
        const char *message = clv_json_string(clv_json_get(check, "message"), "");
        assert_int_equal(outcome.code, 5);
        assert_true(clv_json_bool(clv_json_get(check, "crashed"), false));
        if (!strstr(message, cases[i].message)) fail_msg("%s: \"%s\"", f.name, message);
        expect_good_drivers(root, f.name);
        clv_json_free(root);
        test_outcome_clear(&outcome);
    }
}

/* Nothing can be done about such a process, but the report comes in time. */
static void what_cannot_be_killed_is_left_behind(void **state)
{
    (void)state;
    const fault f = { .name = "hang_unkillable" };
    test_outcome outcome = probe_within(short_s, vendors_folder(&f, 400), "--strict");
    clv_json *root = parse(&outcome);
    const clv_json *icd = icd_of(root, "fault.icd");
    const char *said = clv_json_string(clv_json_get(icd, "driver_output"), "");
    if (strstr(said, "not allowed to trace")) test_skip("ptrace is forbidden, as in a container");
    assert_string_equal(clv_json_string(clv_json_get(icd, "status"), ""), "hung_unkillable");
    assert_non_null(
        strstr(clv_json_string(clv_json_get(icd, "message"), ""), "and cannot be killed"));
    assert_non_null(strstr(outcome.out, "\"driver_broken\""));
    assert_int_equal(outcome.code, 4);
    if (outcome.seconds > short_s + spare_s) fail_msg("took %.2f s", outcome.seconds);
    expect_good_drivers(root, f.name);
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static const clv_json *memory_of_fault(const clv_json *root)
{
    return clv_json_get(device_of_fault(root), "memory");
}

/* Only 3 of 8 GB are free, which only writing shows; the mode follows from it. */
static void free_memory_is_found_by_filling_it(void **state)
{
    (void)state;
    const fault f = { .name = "card" };
    const char *folder = vendors_folder(&f, 500);
    test_outcome outcome = probe(folder, NULL);
    clv_json *root = parse(&outcome);
    assert_false(clv_json_is_int(clv_json_get(memory_of_fault(root), "free_bytes")));
    assert_string_equal(clv_json_string(clv_json_get(clv_json_get(root, "mode"), "rule"), ""),
                        "R5");
    clv_json_free(root);
    test_outcome_clear(&outcome);

    outcome = probe(folder, "--measure-free");
    root = parse(&outcome);
    const clv_json *memory = memory_of_fault(root);
    const int64_t found = clv_json_int(clv_json_get(memory, "free_bytes"), -1);
    if (found > 3000000000 || found < 3000000000 - (16 << 20)) fail_msg("%lld", (long long)found);
    assert_string_equal(clv_json_string(clv_json_get(memory, "free_source"), ""),
                        "trial allocation");
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

/* The good driver makes no context: what is not learned stays unknown, and the report says why. */
static void a_trial_that_fails_says_why(void **state)
{
    (void)state;
    const fault f = { .name = "failing_queries" };
    test_outcome outcome = probe(vendors_folder(&f, 501), "--measure-free");
    clv_json *root = parse(&outcome);
    assert_int_equal(outcome.code, 0);
    assert_non_null(strstr(outcome.out, "unknown, the trial failed: clCreateContext gave -5"));
    assert_false(clv_json_is_string(clv_json_get(memory_of_fault(root), "free_source")));
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static void find_pocl(void)
{
    char *text;
    size_t length;
    const char *folder = getenv("CLEAVE_TEST_ICDS");
    char path[4096];
    snprintf(path, sizeof path, "%s/pocl.icd", folder ? folder : "/etc/OpenCL/vendors");
    if (clv_file_read(path, sizeof pocl - 1, &text, &length)) return;
    snprintf(pocl, sizeof pocl, "%s", text);
    clv_free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_driver_spoils_the_report),
        cmocka_unit_test(strict_turns_a_broken_driver_into_exit_code_4),
        cmocka_unit_test(what_drivers_print_stays_theirs),
        cmocka_unit_test(texts_of_drivers_are_cut_and_cleaned),
        cmocka_unit_test(many_platforms_are_all_shown),
        cmocka_unit_test(an_empty_folder_is_a_machine_without_opencl),
        cmocka_unit_test(a_device_that_cannot_compute_fails_its_check),
        cmocka_unit_test(a_driver_that_dies_in_its_check_is_named),
        cmocka_unit_test(what_cannot_be_killed_is_left_behind),
        cmocka_unit_test(free_memory_is_found_by_filling_it),
        cmocka_unit_test(a_trial_that_fails_says_why),
    };
    if (argc > 1 && strcmp(argv[1], "khronos") == 0) {
        const char *loader = getenv("CLEAVE_TEST_KHRONOS");
        if (!loader) test_skip_all("CLEAVE_TEST_KHRONOS does not name a Khronos loader");
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", loader);
    }
    find_pocl();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

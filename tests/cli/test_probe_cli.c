/* SPDX-License-Identifier: Apache-2.0 */
/* Tests `cleave probe` as its users and scripts see it: streams, exit codes, interrupts. */
#define _GNU_SOURCE
#include "data.h"
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char devices_json[4096], no_drivers[4096];

/* Up to six arguments after "probe"; no driver, no cache, no order from outside. */
static test_outcome probe(const char *const *arguments, const char *change)
{
    const char *argv[12] = { test_command(), "probe" };
    const char *const changes[] = { no_drivers,
                                    "CLEAVE_CACHE=0",
                                    "CLEAVE_MODE",
                                    "CLEAVE_DEVICE",
                                    change ? change : "CLEAVE_NONE",
                                    NULL };
    for (int i = 0; arguments[i]; ++i)
        argv[i + 2] = arguments[i];
    return test_run(argv, changes);
}

#define PROBE(...) probe((const char *const[]){ __VA_ARGS__, NULL }, NULL)
#define SIMULATE(scenario, ...) \
    PROBE("--simulate", devices_json, "--scenario", scenario, __VA_ARGS__)

static void expect(test_outcome outcome, int code, const char *out, const char *err)
{
    if (outcome.code != code || (out && !strstr(outcome.out, out)) ||
        (err && !strstr(outcome.err, err)) || (!err && *outcome.err))
        fail_msg("exit code %d, expected %d\nstdout: %s\nstderr: %s", outcome.code, code,
                 outcome.out, outcome.err);
    test_outcome_clear(&outcome);
}

static void help_is_a_result(void **state)
{
    (void)state;
    expect(PROBE("--help"), 0, "--print-mode", NULL);
    expect(PROBE("-h"), 0, "Exit codes", NULL);
}

static void wrong_usage_is_named(void **state)
{
    (void)state;
    expect(PROBE("--nonsense"), 2, "", "--nonsense");
    expect(PROBE("file"), 2, "", "file\" is an unexpected argument");
    expect(PROBE("--timeout=soon"), 2, "", "soon\", but it must be a number");
    expect(PROBE("--timeout=-1"), 2, "", "--timeout");
    expect(PROBE("--bench=slow"), 2, "", "must be quick or full");
    expect(PROBE("--mode=fast"), 2, "", "must be auto, cpu, gpu, hybrid or reference");
    expect(PROBE("--device=graphics"), 2, "", "the list of devices \"graphics\" is not valid");
    expect(PROBE("--scenario=x"), 2, "", "--scenario needs --simulate");
    expect(PROBE("--json", "--list"), 2, "", "cannot be used together");
    expect(SIMULATE("two-gb", "--check"), 2, "", "cannot be checked");
    expect(SIMULATE("two-gb", "--measure-free"), 2, "", "cannot be checked or measured");
    expect(SIMULATE("nowhere", "--json"), 2, "", "no scenario or device \"nowhere\"");
    expect(PROBE("--simulate", "/nonexistent.json"), 2, "", "No such file");
    expect(probe((const char *const[]){ "--json", NULL }, "CLEAVE_MODE=fast"), 2, "", "\"fast\"");
}

static void a_machine_without_opencl_is_a_good_report(void **state)
{
    (void)state;
    expect(PROBE("--print-mode"), 0, "cpu\n", NULL);
    expect(PROBE("--list"), 0, "", NULL);
    expect(PROBE("--quiet"), 0, "apt install pocl-opencl-icd", NULL);
    expect(PROBE("--verbose"), 0, "apt install pocl-opencl-icd", "cleave probe: warning: ");
}

static void what_is_not_there_is_exit_code_3(void **state)
{
    (void)state;
    expect(PROBE("--mode=gpu"), 3, "", "mode \"gpu\" (set by --mode) needs a usable GPU");
    expect(PROBE("--device=gpu"), 3, "", "no OpenCL device at all");
    expect(probe((const char *const[]){ "--list", NULL }, "CLEAVE_DEVICE=0"), 3, "", "\"0\"");
    expect(probe((const char *const[]){ "--list", NULL }, "CLEAVE_MODE=hybrid"), 3, "",
           "by CLEAVE_MODE");
    expect(SIMULATE("old", "--device=0"), 3, "", "OpenCL 1.0, at least 1.2 needed");
    expect(PROBE("--mode=reference", "--print-mode"), 0, "reference\n", NULL);
}

static void modes_are_printed_for_scripts(void **state)
{
    (void)state;
    expect(SIMULATE("two-gb", "--print-mode"), 0, "hybrid\n", NULL);
    expect(SIMULATE("four-gb", "--print-mode"), 0, "gpu\n", NULL);
    expect(SIMULATE("two-gb", "--print-mode", "--mode=cpu"), 0, "cpu\n", NULL);
    expect(SIMULATE("two-gb", "--print-mode", "--device=gpu"), 0, "gpu\n", NULL);
}

static void usable_devices_are_listed(void **state)
{
    (void)state;
    test_outcome outcome = SIMULATE("two-gb", "--list");
    assert_string_equal(
        outcome.out,
        "0  discrete_gpu    Radeon RX 460                2.13 GB  AMD Accelerated Parallel "
        "Processing, driver unknown\n"
        "1  cpu             AMD EPYC                     10.6 GB  Portable Computing Language, "
        "driver 3.1+debian\n");
    test_outcome_clear(&outcome);
    expect(SIMULATE("old", "--list"), 0, "", NULL);
}

static void a_simulation_says_so(void **state)
{
    (void)state;
    expect(SIMULATE("two-gb", "--quiet"), 0, "devices.json, scenario two-gb; no driver was touched",
           NULL);
    expect(SIMULATE("two-gb", "--json"), 0, "\"simulated\": \"devices.json, scenario two-gb\"",
           NULL);
}

static void reproducible_is_the_same_twice(void **state)
{
    (void)state;
    test_outcome a = SIMULATE("igpu-plus-dgpu", "--json", "--reproducible");
    clv_sleep(1.1); /* another second on the clock */
    test_outcome b = SIMULATE("igpu-plus-dgpu", "--json", "--reproducible");
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, b.out);
    test_outcome_clear(&a), test_outcome_clear(&b);
    a = PROBE("--json", "--reproducible");
    b = PROBE("--json", "--reproducible");
    assert_string_equal(a.out, b.out);
    test_outcome_clear(&a), test_outcome_clear(&b);
}

static void the_real_machine_is_the_same_twice(void **state)
{
    (void)state;
    const char *const argv[] = { test_command(), "probe", "--json", "--reproducible", NULL };
    const char *const changes[] = { "CLEAVE_CACHE=0", NULL };
    test_outcome a = test_run(argv, changes), b = test_run(argv, changes);
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, b.out);
    test_outcome_clear(&a), test_outcome_clear(&b);
}

static void a_saved_report_can_be_replayed(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/saved.json", test_temp_dir());
    expect(SIMULATE("two-gb", "--save", path), 0, "hybrid", NULL);
    expect(PROBE("--simulate", path, "--print-mode"), 0, "hybrid\n", NULL);
    expect(PROBE("--simulate", path), 0, "saved.json; no driver was touched", NULL);
    test_write("{\"schema\":\"cleave.probe/1\",\"opencl\":{}}", "bad.json");
    snprintf(path, sizeof path, "%s/bad.json", test_temp_dir());
    expect(PROBE("--simulate", path), 2, "", "bad.json is not a report");
    expect(PROBE("--save", "/nonexistent/x.json"), 1, NULL, "/nonexistent/x.json");
}

static void a_full_disk_is_noticed(void **state)
{
    (void)state;
    char line[4300];
    if (access("/dev/full", W_OK)) test_skip("no /dev/full");
    snprintf(line, sizeof line, "%s probe --print-mode > /dev/full", test_command());
    const char *const argv[] = { "sh", "-c", line, NULL };
    const char *const changes[] = { no_drivers, NULL };
    expect(test_run(argv, changes), 1, "", "cannot write the report");
}

static void colour_is_for_terminals(void **state)
{
    (void)state;
    test_outcome outcome = SIMULATE("two-gb", "--verbose");
    assert_null(strstr(outcome.out, "\033["));
    test_outcome_clear(&outcome);
}

/* Runs the command on a terminal of its own: does it colour its text? */
static bool colours(const char *term, const char *no_colour)
{
    char bytes[65536];
    size_t length = 0;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
        test_skip("no pseudo-terminal can be opened");
    const pid_t pid = fork();
    if (pid == 0) {
        const int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
        dup2(slave, STDOUT_FILENO);
        setenv("TERM", term, 1);
        setenv("NO_COLOR", no_colour, 1);
        execl(test_command(), test_command(), "probe", "--quiet", "--simulate", devices_json,
              "--scenario", "two-gb", NULL);
        _exit(127);
    }
    struct pollfd news = { .fd = terminal, .events = POLLIN };
    while (length < sizeof bytes - 1 && poll(&news, 1, 30000) > 0) {
        const ssize_t got = read(terminal, bytes + length, sizeof bytes - 1 - length);
        if (got <= 0) break; /* the other end is closed */
        length += (size_t)got;
        bytes[length] = '\0';
        if (strstr(bytes, "3.1+debian")) break; /* the last line: it may sit until it is read */
    }
    bytes[length] = '\0';
    close(terminal);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_non_null(strstr(bytes, "two-gb"));
    return strstr(bytes, "\033[") != NULL;
}

static void colour_can_be_refused(void **state)
{
    (void)state;
    assert_true(colours("xterm", ""));
    assert_false(colours("xterm", "1"));
    assert_false(colours("dumb", ""));
}

static size_t leftovers(void)
{
    size_t count = 0;
    DIR *folder = opendir(test_temp_dir());
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += strncmp(entry->d_name, "cleave-probe-", 13) == 0;
    if (folder) closedir(folder);
    return count;
}

/* A driver that hangs: after SIGINT the helper is gone, its folder too, and the code is 130. */
static void an_interrupt_leaves_nothing_behind(void **state)
{
    (void)state;
    char line[4300];
    int status;
    const char *hanging = getenv("CLEAVE_HANGING_ICD");
    if (!hanging) test_skip("CLEAVE_HANGING_ICD is not set");
    snprintf(line, sizeof line, "%s\n", hanging);
    test_write(line, "hanging/a.icd");
    const pid_t pid = fork();
    if (pid == 0) {
        char vendors[4300];
        snprintf(vendors, sizeof vendors, "%s/hanging", test_temp_dir());
        setenv("OCL_ICD_VENDORS", vendors, 1);
        setenv("TMPDIR", test_temp_dir(), 1);
        execl(test_command(), test_command(), "probe", "--quiet", "--timeout=30", NULL);
        _exit(127);
    }
    for (int i = 0; i < 300 && !leftovers(); ++i)
        clv_sleep(0.01);
    assert_int_equal(leftovers(), 1);
    clv_sleep(0.2);
    const double start = clv_now();
    kill(pid, SIGINT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 130);
    assert_true(clv_now() - start < 1);
    assert_int_equal(leftovers(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_a_result),
        cmocka_unit_test(wrong_usage_is_named),
        cmocka_unit_test(a_machine_without_opencl_is_a_good_report),
        cmocka_unit_test(what_is_not_there_is_exit_code_3),
        cmocka_unit_test(modes_are_printed_for_scripts),
        cmocka_unit_test(usable_devices_are_listed),
        cmocka_unit_test(a_simulation_says_so),
        cmocka_unit_test(reproducible_is_the_same_twice),
        cmocka_unit_test(the_real_machine_is_the_same_twice),
        cmocka_unit_test(a_saved_report_can_be_replayed),
        cmocka_unit_test(a_full_disk_is_noticed),
        cmocka_unit_test(colour_is_for_terminals),
        cmocka_unit_test(colour_can_be_refused),
        cmocka_unit_test(an_interrupt_leaves_nothing_behind),
    };
    snprintf(devices_json, sizeof devices_json, "%s", test_data("probe/devices.json"));
    snprintf(no_drivers, sizeof no_drivers, "OCL_ICD_VENDORS=%s/none", test_temp_dir());
    test_write("", "none/empty");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

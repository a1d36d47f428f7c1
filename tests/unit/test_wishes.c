/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/context/choose.c and wishes.c: which devices a context gets from made-up machines, what environment variables
 * ask for, and how each wish is refused that cannot be met. */
#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include "base/alloc.h"
#include "runtime/context/devices.h"
#include "runtime/context/wishes.h"

#include <cleave/init.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

/* A machine with every class of device; the faster of its two cards is listed last. */
static clv_probe_platform platform = { .name = "made up" };
static clv_probe_device all_classes[] = {
    { .device_class = CLV_CLASS_SOFTWARE, .measured.fp32_gflops = 9e4 },
    { .device_class = CLV_CLASS_CPU, .measured.fp32_gflops = 100 },
    { .device_class = CLV_CLASS_ACCELERATOR, .measured.fp32_gflops = 1 },
    { .device_class = CLV_CLASS_INTEGRATED_GPU, .measured.fp32_gflops = 500 },
    { .device_class = CLV_CLASS_DISCRETE_GPU, .measured.fp32_gflops = 4000 },
    { .device_class = CLV_CLASS_DISCRETE_GPU, .measured.fp32_gflops = 9000 },
};
static clv_probe_device one_cpu = { .device_class = CLV_CLASS_CPU };

static clv_probe_report machine(clv_probe_device *devices, size_t count, clv_mode recommended)
{
    for (size_t i = 0; i < count; ++i)
        devices[i].usable = true, devices[i].duplicate_of = SIZE_MAX;
    return (clv_probe_report){ .platforms = &platform,
                               .platform_count = 1,
                               .devices = devices,
                               .device_count = count,
                               .mode.recommended = recommended };
}

/* The digits of the chosen devices, in the order of use. */
static const char *chosen_by(const clv_probe_report *report, clv_mode mode, const char *selection)
{
    static char text[MOST + 1];
    size_t chosen[MOST], count;
    EXPECT_OK(clv_choose_devices(report, mode, selection, chosen, &count));
    for (size_t i = 0; i < count; ++i)
        text[i] = (char)('0' + chosen[i]);
    text[count] = '\0';
    return text;
}

static void devices_are_chosen_in_the_order_of_use(void **state)
{
    (void)state;
    static const struct {
        clv_mode mode, recommended;
        const char *selection, *want;
    } cases[] = {
        { CLV_MODE_REFERENCE, CLV_MODE_GPU, "all", "" },
        { CLV_MODE_CPU, CLV_MODE_GPU, NULL, "10" },
        { CLV_MODE_GPU, CLV_MODE_CPU, NULL, "543" },
        { CLV_MODE_HYBRID, CLV_MODE_CPU, NULL, "54310" },
        { CLV_MODE_AUTO, CLV_MODE_CPU, NULL, "10" },
        { CLV_MODE_AUTO, CLV_MODE_GPU, NULL, "543" },
        { CLV_MODE_AUTO, CLV_MODE_HYBRID, NULL, "54310" },
        { CLV_MODE_AUTO, CLV_MODE_REFERENCE, NULL, "" },
        { CLV_MODE_AUTO, CLV_MODE_CPU, "all", "543120" },
        { CLV_MODE_AUTO, CLV_MODE_CPU, "0,4", "40" },
        { CLV_MODE_AUTO, CLV_MODE_CPU, "! gpu", "120" },
        { CLV_MODE_GPU, CLV_MODE_CPU, "all", "543" },
        { CLV_MODE_GPU, CLV_MODE_CPU, "1,4", "4" },
        { CLV_MODE_CPU, CLV_MODE_CPU, "all", "120" },
        { CLV_MODE_HYBRID, CLV_MODE_CPU, "1,3", "31" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        const clv_probe_report report =
            machine(all_classes, CLV_LEN(all_classes), cases[i].recommended);
        assert_string_equal(chosen_by(&report, cases[i].mode, cases[i].selection), cases[i].want);
    }
    const clv_probe_report empty = machine(NULL, 0, CLV_MODE_CPU);
    assert_string_equal(chosen_by(&empty, CLV_MODE_AUTO, NULL), ""); /* plain C computes */
}

static void modes_that_a_machine_cannot_have_are_refused(void **state)
{
    (void)state;
    const clv_probe_report full = machine(all_classes, CLV_LEN(all_classes), CLV_MODE_CPU),
                           small = machine(&one_cpu, 1, CLV_MODE_CPU),
                           empty = machine(NULL, 0, CLV_MODE_CPU);
    const struct {
        const clv_probe_report *report;
        clv_mode mode;
        const char *selection, *part;
    } cases[] = {
        { &small, CLV_MODE_GPU, NULL,
          "mode gpu needs a GPU that OpenCL shows, but this machine has 0 cpu" },
        { &small, CLV_MODE_HYBRID, NULL, "mode hybrid needs a GPU and a CPU device, but this" },
        { &small, CLV_MODE_GPU, "0", "mode gpu needs a GPU that OpenCL shows, but this" },
        { &full, CLV_MODE_CPU, "4", "mode cpu needs an OpenCL CPU device, but this machine has 0" },
        { &full, CLV_MODE_HYBRID, "4", "mode hybrid needs a GPU and a CPU device, but this" },
        { &full, CLV_MODE_HYBRID, "1", "mode hybrid needs a GPU and a CPU device, but this" },
        { &full, CLV_MODE_AUTO, "6", "device \"6\": nothing on this machine matches" },
        { &empty, CLV_MODE_CPU, NULL, "but this machine has no OpenCL device at all" },
    };
    size_t chosen[MOST], count = 1;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        EXPECT_FAIL(
            CLV_E_NO_DEVICE, cases[i].part,
            clv_choose_devices(cases[i].report, cases[i].mode, cases[i].selection, chosen, &count));
        assert_int_equal(count, 0);
    }
    clv_alloc_fail_at(1);
    EXPECT_FAIL(CLV_E_MEMORY, "not enough memory",
                clv_choose_devices(&full, CLV_MODE_CPU, NULL, chosen, &count));
    clv_alloc_fail_at(0);
}

/* Reads the wishes with one variable set. */
static clv_status read_with(const char *name, const char *value, const clv_context_options *options,
                            clv_wishes *wishes)
{
    assert_int_equal(setenv(name, value, 1), 0);
    const clv_status status = clv_wishes_read(options, wishes);
    assert_int_equal(unsetenv(name), 0);
    return status;
}

static void variables_hold_where_no_option_is_given(void **state)
{
    (void)state;
    const clv_context_options none = CLV_INIT(clv_context_options);
    clv_context_options o = none;
    clv_wishes w;
    EXPECT_OK(clv_wishes_read(&none, &w));
    assert_true(w.mode == CLV_MODE_AUTO && !w.devices && w.schedule == CLV_SCHEDULE_ADAPTIVE);
    assert_true(!w.memory_bytes && w.memory_fraction == 0 && w.compilers == UINT_MAX);

    EXPECT_OK(read_with("CLEAVE_MODE", "gpu", &none, &w));
    assert_true(w.mode == CLV_MODE_GPU && w.mode_is_set && !w.device_is_set);
    EXPECT_OK(read_with("CLEAVE_MODE", "auto", &none, &w));
    assert_false(w.mode_is_set);
    o.mode = CLV_MODE_CPU;
    EXPECT_OK(read_with("CLEAVE_MODE", "gpu", &o, &w));
    assert_true(w.mode == CLV_MODE_CPU && !w.mode_is_set);
    o = none, o.mode_given = true;
    EXPECT_OK(read_with("CLEAVE_MODE", "gpu", &o, &w));
    assert_int_equal(w.mode, CLV_MODE_AUTO);

    EXPECT_OK(read_with("CLEAVE_DEVICE", "gpu, !0", &none, &w));
    assert_true(w.device_is_set && strcmp(w.devices, "gpu, !0") == 0);
    o = none, o.devices = "cpu";
    EXPECT_OK(read_with("CLEAVE_DEVICE", "gpu", &o, &w));
    assert_true(!w.device_is_set && strcmp(w.devices, "cpu") == 0);
    o.devices = ""; /* any device */
    EXPECT_OK(read_with("CLEAVE_DEVICE", "gpu", &o, &w));
    assert_null(w.devices);

    EXPECT_OK(read_with("CLEAVE_SCHED", "hguided", &none, &w));
    assert_int_equal(w.schedule, CLV_SCHEDULE_HGUIDED);
    o = none, o.schedule = CLV_SCHEDULE_STATIC;
    EXPECT_OK(read_with("CLEAVE_SCHED", "hguided", &o, &w));
    assert_int_equal(w.schedule, CLV_SCHEDULE_STATIC);

    EXPECT_OK(read_with("CLEAVE_MEM_LIMIT", "50%", &none, &w));
    assert_true(w.memory_fraction == 0.5 && !w.memory_bytes);
    EXPECT_OK(read_with("CLEAVE_MEM_LIMIT", "2G", &none, &w));
    assert_true(w.memory_fraction == 0 && w.memory_bytes >= 2000000000u);
    o = none, o.memory_bytes = 7;
    EXPECT_OK(read_with("CLEAVE_MEM_LIMIT", "50%", &o, &w));
    assert_true(w.memory_fraction == 0 && w.memory_bytes == 7);

    EXPECT_OK(read_with("CLEAVE_COMPILERS", "3", &none, &w));
    assert_int_equal(w.compilers, 3);
    o = none, o.compilers = 2;
    EXPECT_OK(read_with("CLEAVE_COMPILERS", "3", &o, &w));
    assert_int_equal(w.compilers, 2);
}

static void values_that_cannot_be_used_are_quoted(void **state)
{
    (void)state;
    char file[300], long_name[CLV_PATH_MOST + 1];
    snprintf(file, sizeof file, "%s/file", test_temp_dir());
    FILE *f = fopen(file, "w");
    assert_true(f && fclose(f) == 0);
    memset(long_name, 'a', CLV_PATH_MOST), long_name[CLV_PATH_MOST] = '\0';
    const struct {
        const char *name, *value, *part;
    } cases[] = {
        { "CLEAVE_MODE", "fast", "auto" },
        { "CLEAVE_DEVICE", "fast", "\"fast\" is not valid" },
        { "CLEAVE_DEVICE", "0:", "(asked for by CLEAVE_DEVICE)" },
        { "CLEAVE_SCHED", "fast", "hguided" },
        { "CLEAVE_MEM_LIMIT", "fast", "a size such as 2G or a share such as 50%" },
        { "CLEAVE_MEM_LIMIT", "0", "a size such as 2G or a share such as 50%" },
        { "CLEAVE_COMPILERS", "0", "a number of processes from 1 up" },
        { "CLEAVE_COMPILERS", "4294967296", "a number of processes from 1 up" },
        { "CLEAVE_COMPILERS", "many", "a number of processes from 1 up" },
        { "CLEAVE_TRACE", test_temp_dir(), "a file that can be written" },
        { "CLEAVE_TRACE", long_name, "a name of at most" },
        { "CLEAVE_CL_DIR", file, "a folder with Cleave's kernels" },
        { "CLEAVE_CACHE_DIR", file, "a folder" },
        { "CLEAVE_LOG", "loud", "debug" },
    };
    const clv_context_options none = CLV_INIT(clv_context_options);
    clv_wishes w;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        EXPECT_FAIL(CLV_E_ARGUMENT, cases[i].part,
                    read_with(cases[i].name, cases[i].value, &none, &w));
        EXPECT_FAIL(CLV_E_ARGUMENT, cases[i].name,
                    read_with(cases[i].name, cases[i].value, &none, &w));
    }
    static const double fractions[] = { -0.1, 1.1, NAN };
    for (size_t i = 0; i < CLV_LEN(fractions); ++i) {
        clv_context_options o = none;
        o.memory_fraction = fractions[i];
        EXPECT_FAIL(CLV_E_ARGUMENT, "expected more than 0 and at most 1", clv_wishes_read(&o, &w));
    }
    clv_context_options o = none;
    o.schedule = (clv_schedule)99;
    EXPECT_FAIL(CLV_E_ARGUMENT, "the schedule is 99; expected", clv_wishes_read(&o, &w));
    o = none;
    o.mode = (clv_mode)99;
    EXPECT_FAIL(CLV_E_ARGUMENT, "the mode is 99; expected", clv_wishes_read(&o, &w));
}

static void an_error_names_the_variable_behind_it(void **state)
{
    (void)state;
    const clv_probe_report small = machine(&one_cpu, 1, CLV_MODE_CPU);
    static const struct {
        clv_wishes wishes;
        const char *part;
    } cases[] = {
        { { .mode = CLV_MODE_GPU, .mode_is_set = true }, "(asked for by CLEAVE_MODE)" },
        { { .devices = "7", .device_is_set = true }, "(asked for by CLEAVE_DEVICE)" },
        { { .mode = CLV_MODE_GPU, .devices = "0", .mode_is_set = true, .device_is_set = true },
          "(asked for by CLEAVE_MODE and CLEAVE_DEVICE)" },
        { { .devices = "7" }, "this machine has 0 cpu" },
    };
    size_t chosen[MOST], count;
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        EXPECT_FAIL(CLV_E_NO_DEVICE, cases[i].part,
                    clv_wishes_choose(&cases[i].wishes, &small, chosen, &count));
    assert_null(strstr(clv_error_message(), "asked for"));
    EXPECT_OK(clv_wishes_choose(&(clv_wishes){ .devices = "0" }, &small, chosen, &count));
    assert_true(count == 1 && chosen[0] == 0);
}

int main(void)
{
    static const char *const variables[] = { "MODE",      "DEVICE", "SCHED",  "MEM_LIMIT",
                                             "COMPILERS", "TRACE",  "CL_DIR", "CACHE_DIR",
                                             "LOG",       "CACHE",  "BIND",   "TUNE" };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_chosen_in_the_order_of_use),
        cmocka_unit_test(modes_that_a_machine_cannot_have_are_refused),
        cmocka_unit_test(variables_hold_where_no_option_is_given),
        cmocka_unit_test(values_that_cannot_be_used_are_quoted),
        cmocka_unit_test(an_error_names_the_variable_behind_it),
    };
    for (size_t i = 0; i < CLV_LEN(variables); ++i) {
        char name[40];
        snprintf(name, sizeof name, "CLEAVE_%s", variables[i]);
        unsetenv(name);
    }
    return cmocka_run_group_tests_name("wishes", tests, NULL, NULL);
}

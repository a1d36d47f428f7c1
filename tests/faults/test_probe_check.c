/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave probe --check` and --bench on every installed device, those of the folder that
 * CLEAVE_TEST_ICDS names where it is set; and on devices that lie. */
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char vendors[4096] = "CLEAVE_NONE", cache[4200];

static test_outcome probe(const char *first, const char *second, const char *change)
{
    const char *const changes[] = { vendors, cache, "RUSTICL_ENABLE=llvmpipe",
                                    change ? change : "CLEAVE_NONE", NULL };
    const char *const argv[] = { test_command(), "probe", "--json", first, second, NULL };
    return test_run(argv, changes);
}

static clv_json *parse(const test_outcome *outcome)
{
    clv_json *root;
    if (clv_json_parse("stdout", outcome->out, strlen(outcome->out), &root))
        fail_msg("%s\n%s", clv_error_message(), outcome->err);
    if (!clv_json_count(clv_json_get(root, "devices"))) test_skip_all("no OpenCL device here");
    return root;
}

static void good_devices_pass(void **state)
{
    (void)state;
    test_outcome outcome = probe("--check", NULL, NULL);
    clv_json *root = parse(&outcome);
    const clv_json *devices = clv_json_get(root, "devices");
    assert_int_equal(outcome.code, 0);
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const clv_json *device = clv_json_at(devices, i), *check = clv_json_get(device, "check");
        const char *name = clv_json_string(clv_json_get(device, "name"), "");
        assert_true(clv_json_bool(clv_json_get(check, "ok"), false));
        assert_true(clv_json_number(clv_json_get(check, "max_error"), 1) < 1e-6);
        /* the one known defect is found, and its limit becomes a flag */
        if (!strstr(name, "llvmpipe")) continue;
        assert_int_equal(clv_json_int(clv_json_get(check, "loop_limit"), 0), 65535);
        assert_int_equal(clv_json_int(clv_json_get(clv_json_get(device, "flags"), "loop_limit"), 0),
                         65535);
    }
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

/* After `good_devices_pass` the findings are on record. */
static void findings_are_kept_on_disk(void **state)
{
    (void)state;
    test_outcome outcome = probe(NULL, NULL, NULL), fresh = probe(NULL, NULL, "CLEAVE_CACHE=0");
    clv_json *root = parse(&outcome), *without = parse(&fresh);
    const clv_json *devices = clv_json_get(root, "devices");
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const clv_json *none = clv_json_at(clv_json_get(without, "devices"), i);
        assert_true(clv_json_is_object(clv_json_get(clv_json_at(devices, i), "check")));
        assert_false(clv_json_is_object(clv_json_get(none, "check")));
    }
    clv_json_free(root), clv_json_free(without);
    test_outcome_clear(&outcome), test_outcome_clear(&fresh);
}

static void every_device_is_measured(void **state)
{
    (void)state;
    static const char *const rates[] = { "fp32_gflops", "global_gb_s", "h2d_gb_s",
                                         "d2h_gb_s",    "launch_us",   "int8_gops" };
    test_outcome outcome = probe("--bench=quick", "--quiet", NULL);
    clv_json *root = parse(&outcome);
    const clv_json *devices = clv_json_get(root, "devices");
    assert_int_equal(outcome.code, 0);
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const clv_json *device = clv_json_at(devices, i);
        const clv_json *measured = clv_json_get(device, "measured");
        const bool fp64 =
            clv_json_bool(clv_json_get(clv_json_get(device, "features"), "fp64"), false);
        for (size_t k = 0; k < CLV_LEN(rates); ++k)
            if (!(clv_json_number(clv_json_get(measured, rates[k]), -1) > 0))
                fail_msg("device %zu: no %s", i, rates[k]);
        assert_true((clv_json_number(clv_json_get(measured, "fp64_gflops"), -1) > 0) == fp64);
    }
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

static void lying_devices_are_found_out(void **state)
{
    (void)state;
    test_outcome outcome = probe("--check", NULL, "OPENCL_LAYERS=" LYING_LAYER);
    clv_json *root = parse(&outcome);
    if (!strstr(outcome.out, "lying layer at work"))
        test_skip_all("this loader knows no OPENCL_LAYERS");
    assert_int_equal(outcome.code, 5);
    const clv_json *devices = clv_json_get(root, "devices");
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const clv_json *device = clv_json_at(devices, i);
        const char *why = clv_json_string(clv_json_get(device, "unusable_reason"), "");
        assert_false(clv_json_bool(clv_json_get(device, "usable"), true));
        if (!strstr(why, "failed its check: work-item ids: item 0 is")) fail_msg("%s", why);
    }
    assert_non_null(strstr(outcome.out, "no OpenCL device can be used"));
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

/* Formerly a loop without any turn was found, and the limit of 0 turns was taken for none. */
static void a_loop_that_does_nothing_is_found_out(void **state)
{
    (void)state;
    setenv("LYING_LAYER_SKIPS", "clv_check_loop", 1);
    test_outcome outcome = probe("--check", NULL, "OPENCL_LAYERS=" LYING_LAYER);
    unsetenv("LYING_LAYER_SKIPS");
    clv_json *root = parse(&outcome);
    if (!strstr(outcome.out, "lying layer at work"))
        test_skip_all("this loader knows no OPENCL_LAYERS");
    assert_int_equal(outcome.code, 5);
    const clv_json *devices = clv_json_get(root, "devices");
    for (size_t i = 0; i < clv_json_count(devices); ++i) {
        const clv_json *device = clv_json_at(devices, i);
        const char *why = clv_json_string(clv_json_get(device, "unusable_reason"), "");
        assert_false(clv_json_bool(clv_json_get(device, "usable"), true));
        if (!strstr(why, "a loop of 100000 iterations gave a wrong result")) fail_msg("%s", why);
    }
    clv_json_free(root);
    test_outcome_clear(&outcome);
}

/* Left alone, jobs go round such a device; an order for it is refused, and nothing is written. */
static void orders_for_liars_are_refused(void **state)
{
    (void)state;
    char folder[4200];
    snprintf(folder, sizeof folder, "%s/demo", test_temp_dir());
    const char *const changes[] = { vendors, cache, "OPENCL_LAYERS=" LYING_LAYER, NULL };
    const char *const argv[] = {
        test_command(), "demo", "-q", "-o", folder, "--device", "0", NULL
    };
    test_outcome outcome = test_run(argv, changes);
    if (!strstr(outcome.err, "lying layer at work"))
        test_skip_all("this loader knows no OPENCL_LAYERS");
    assert_int_equal(outcome.code, 3);
    if (!strstr(outcome.err, "failed its check")) fail_msg("%s", outcome.err);
    test_outcome_clear(&outcome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_devices_pass),
        cmocka_unit_test(findings_are_kept_on_disk),
        cmocka_unit_test(every_device_is_measured),
        cmocka_unit_test(lying_devices_are_found_out),
        cmocka_unit_test(a_loop_that_does_nothing_is_found_out),
        cmocka_unit_test(orders_for_liars_are_refused),
    };
    const char *folder = getenv("CLEAVE_TEST_ICDS");
    if (folder) snprintf(vendors, sizeof vendors, "OCL_ICD_VENDORS=%s", folder);
    snprintf(cache, sizeof cache, "CLEAVE_CACHE_DIR=%s/cache", test_temp_dir());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

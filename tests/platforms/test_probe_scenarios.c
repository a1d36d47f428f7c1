/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that the decision about every scenario and every device profile of data/probe/devices.json is the one in its
 * row. */
#include "data.h"
#include "test.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "probe/judge/classify.h"
#include "probe/judge/decide.h"
#include "probe/report/report_text.h"
#include "probe/report/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCENARIOS = 14, PROFILES = 29 };

static char *text;
static size_t length;
static clv_json *root;

static int read_file(void **state)
{
    (void)state;
    text = test_data_read("probe/devices.json", &length);
    return clv_json_parse("devices.json", text, length, &root) != CLV_OK;
}

static int forget_file(void **state)
{
    (void)state;
    clv_json_free(root);
    clv_free(text);
    return 0;
}

static clv_machine *simulate(const char *scenario)
{
    const clv_orders none = { 0 };
    clv_machine *m = clv_machine_create();
    EXPECT_OK(clv_snapshot_read(m, "devices.json", text, length, scenario));
    EXPECT_OK(clv_decide(m, &none));
    return m;
}

static const clv_json *profile(const char *id)
{
    const clv_json *list = clv_json_get(root, "devices");
    for (size_t i = 0; i < clv_json_count(list); ++i)
        if (strcmp(clv_json_string(clv_json_get(clv_json_at(list, i), "id"), ""), id) == 0)
            return clv_json_at(list, i);
    return NULL;
}

/* Devices carry no profile id: name and platform tell which one it is. */
static bool is_profile(const clv_machine *m, size_t index, const clv_json *wanted)
{
    const clv_probe_device *d = &m->devices[index];
    const char *platform = m->platforms[d->platform].name;
    const char *name = clv_json_string(clv_json_get(wanted, "name"), NULL);
    const char *on = clv_json_string(clv_json_get(wanted, "platform_name"), NULL);
    return (name ? d->name && strcmp(d->name, name) == 0 : !d->name) &&
           (on ? platform && strcmp(platform, on) == 0 : !platform);
}

static void every_scenario_is_decided_as_expected(void **state)
{
    (void)state;
    const clv_json *list = clv_json_get(root, "scenarios");
    assert_int_equal(clv_json_count(list), SCENARIOS);
    for (size_t i = 0; i < SCENARIOS; ++i) {
        const clv_json *s = clv_json_at(list, i);
        const char *id = clv_json_string(clv_json_get(s, "id"), "");
        const char *mode = clv_json_string(clv_json_get(s, "expect_mode"), "");
        const char *primary = clv_json_string(clv_json_get(s, "expect_primary"), NULL);
        clv_machine *m = simulate(id);
        int64_t gpus = 0;
        for (size_t d = 0; d < m->report.device_count; ++d)
            gpus += clv_is_gpu(&m->devices[d]) && m->devices[d].primary;
        if (strcmp(clv_mode_name(m->report.mode.recommended), mode) != 0)
            fail_msg("%s: %s, expected %s", id, m->report.mode.reason, mode);
        if (gpus != clv_json_int(clv_json_get(s, "expect_gpus"), -1))
            fail_msg("%s: %d GPUs", id, (int)gpus);
        if (primary && !is_profile(m, m->report.mode.primary_device, profile(primary)))
            fail_msg("%s: the best GPU is %s", id, m->devices[m->report.mode.primary_device].name);
        clv_machine_free(m);
    }
}

static void every_profile_is_classified_as_expected(void **state)
{
    (void)state;
    const clv_json *list = clv_json_get(root, "devices");
    assert_int_equal(clv_json_count(list), PROFILES);
    for (size_t i = 0; i < PROFILES; ++i) {
        const clv_json *p = clv_json_at(list, i), *expect = clv_json_get(p, "expect");
        const char *id = clv_json_string(clv_json_get(p, "id"), "");
        const char *vendor = clv_json_string(clv_json_get(expect, "vendor_norm"), NULL);
        const char *class_name = clv_json_string(clv_json_get(expect, "class"), NULL);
        const char *mode = clv_json_string(clv_json_get(expect, "mode"), NULL);
        clv_machine *m = simulate(id);
        const clv_probe_device *d = NULL;
        for (size_t k = 0; k < m->report.device_count; ++k)
            if (is_profile(m, k, p)) d = &m->devices[k];
        if (!d) fail_msg("%s is not there", id);
        if (vendor && strcmp(clv_vendor_name(d->vendor_norm), vendor) != 0)
            fail_msg("%s: vendor %s, expected %s", id, clv_vendor_name(d->vendor_norm), vendor);
        if (class_name && strcmp(clv_device_class_name(d->device_class), class_name) != 0)
            fail_msg("%s: class %s, expected %s", id, clv_device_class_name(d->device_class),
                     class_name);
        if (mode && strcmp(clv_mode_name(m->report.mode.recommended), mode) != 0)
            fail_msg("%s: %s, expected %s", id, m->report.mode.reason, mode);
        clv_machine_free(m);
    }
}

/* What single rows say beside class and mode. */
static void special_rows_keep_their_promises(void **state)
{
    (void)state;
    clv_machine *m = simulate("intel-arc-a770-nobar");
    assert_non_null(strstr(m->report.mode.reason, "resizable BAR"));
    clv_machine_free(m);

    m = simulate("nv-tegra-x1");
    for (size_t i = 0; i < m->report.device_count; ++i)
        assert_null(m->devices[i].pci_address);
    clv_machine_free(m);

    m = simulate("amd-rx570-8gb"); /* free memory in KiB; a largest block of 0 is ignored */
    assert_int_equal(m->devices[0].free_bytes, UINT64_C(8321000) * 1024);
    clv_machine_free(m);

    m = simulate("amd-rx6700xt-rusticl");
    assert_string_equal(m->devices[0].name_clean, "AMD Radeon RX 6700 XT");
    assert_true(clv_probe_has_word(m->devices[0].quirks, "embedded_profile"));
    assert_true(clv_probe_has_word(m->devices[0].quirks, "max_alloc_2gib"));
    clv_machine_free(m);

    m = simulate("nv-2080ti");
    assert_true(clv_probe_has_word(m->devices[0].quirks, "max_alloc_quarter"));
    assert_true(clv_probe_has_word(m->devices[0].quirks, "watchdog"));
    assert_string_equal(m->devices[0].arch, "sm_75");
    clv_machine_free(m);

    m = simulate("amd-rx5500xt-x5");
    assert_string_equal(m->devices[0].arch, "gfx1012");
    assert_string_equal(m->devices[0].units_kind, "wgp");
    clv_machine_free(m);

    m = simulate("intel-hd4600-clvk");
    assert_string_equal(m->devices[0].type, "GPU");
    assert_true(m->devices[0].clock_mhz < 0);
    clv_machine_free(m);

    m = simulate("same-card-two-drivers"); /* the name of the entry that knows one */
    assert_string_equal(m->devices[0].name_clean, "AMD Radeon RX 6700 XT");
    clv_machine_free(m);
}

static void an_unknown_scenario_is_refused(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    EXPECT_FAIL(CLV_E_ARGUMENT, "the scenarios are: none, pocl-only",
                clv_snapshot_read(m, "devices.json", text, length, "nowhere"));
    EXPECT_FAIL(CLV_E_ARGUMENT, "choose one of its scenarios",
                clv_snapshot_read(m, "devices.json", text, length, NULL));
    clv_machine_free(m);
}

static void json_is_the_same_twice(void **state)
{
    (void)state;
    const clv_json *list = clv_json_get(root, "scenarios");
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const char *id = clv_json_string(clv_json_get(clv_json_at(list, i), "id"), "");
        clv_machine *a = simulate(id), *b = simulate(id);
        char *first = clv_probe_json(&a->report), *second = clv_probe_json(&b->report);
        assert_string_equal(first, second);
        free(first), free(second);
        clv_machine_free(a), clv_machine_free(b);
    }
}

/* From reading to the last line of the text: each allocation fails once. */
static void no_memory_is_an_error_and_no_leak(void **state)
{
    (void)state;
    const clv_orders none = { 0 };
    const clv_report_style style = { .more = true };
    unsigned long k = 1;
    for (bool all_done = false; !all_done; ++k) {
        clv_alloc_fail_at(k);
        clv_machine *m = clv_machine_create();
        clv_status status = m ? CLV_OK : CLV_E_MEMORY;
        if (!status)
            status = clv_snapshot_read(m, "devices.json", text, length, "same-card-two-drivers");
        if (!status) status = clv_decide(m, &none);
        char *page = status ? NULL : clv_report_text(&m->report, &style);
        all_done = clv_alloc_calls() < k;
        clv_alloc_fail_at(0);
        if (!all_done && status != CLV_E_MEMORY && page)
            fail_msg("allocation %lu failed and nobody noticed", k);
        if (all_done) assert_non_null(page);
        clv_free(page);
        clv_machine_free(m);
    }
    assert_true(k > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scenario_is_decided_as_expected),
        cmocka_unit_test(every_profile_is_classified_as_expected),
        cmocka_unit_test(special_rows_keep_their_promises),
        cmocka_unit_test(an_unknown_scenario_is_refused),
        cmocka_unit_test(json_is_the_same_twice),
        cmocka_unit_test(no_memory_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, read_file, forget_file);
}

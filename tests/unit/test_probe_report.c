/* SPDX-License-Identifier: Apache-2.0 */
/* probe/: reports as JSON and back, reports as text, records on disk. */
#include "test.h"

#include "base/alloc.h"
#include "base/json.h"
#include "probe/report/build.h"
#include "probe/judge/decide.h"
#include "probe/helper/isolate.h"
#include "probe/measure/record.h"
#include "probe/report/report.h"
#include "probe/report/report_text.h"
#include "probe/report/snapshot.h"
#include "probe/report/wrap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static clv_machine *full_machine(void)
{
    clv_machine *m = clv_machine_create();
    clv_probe_host *host = &m->report.host;
    host->os_name = "Debian GNU/Linux", host->cpu_model = "A Chip", host->isa = "avx2 fma";
    host->cores = 8, host->threads = 16, host->memory_total_bytes = UINT64_C(64000000000);
    host->memory_available_bytes = UINT64_C(32000000000), host->container = CLV_NO;
    host->lapack = CLV_YES, host->lapack_library = "liblapack.so.3";
    *clv_machine_add_cache(m) = (clv_probe_cache){ 3, 'u', 1, 64, 33554432 };
    clv_probe_pci_gpu *gpu = clv_machine_add_pci_gpu(m);
    gpu->address = "0000:03:00.0", gpu->vendor_id = 0x1002, gpu->device_id = 0x73BF;
    clv_probe_icd *icd = clv_machine_add_icd(m);
    icd->file = "/etc/a.icd", icd->library = "liba.so", icd->status = "ok", icd->duration_s = 0.02;
    icd = clv_machine_add_icd(m);
    icd->file = "/etc/b.icd", icd->status = "crashed", icd->signal = 11, icd->message = "it fell";
    clv_probe_platform *p = clv_machine_add_platform(m);
    p->icd = 0, p->name = "AMD Accelerated", p->version = "OpenCL 2.1 x", p->ordinal = 2;
    p->extensions = "cl_khr_icd cl_b";
    clv_probe_device *d = clv_machine_add_device(m);
    d->name = "gfx1030", d->board_name = "Radeon", d->vendor = "AMD", d->vendor_id = 4098;
    d->type = "GPU", d->pci_address = "0000:03:00.0", d->pci_source = "khr";
    d->pci_link_gen = 4, d->pci_link_width = 16, d->numa_node = 1;
    d->version = "OpenCL 2.0", d->driver_version = "3452.0", d->compute_units = 36;
    d->clock_mhz = 2575, d->subgroup_sizes = "32 64", d->max_work_group = 256;
    d->max_work_item_sizes[0] = 1024, d->global_bytes = UINT64_C(17163091968);
    d->free_bytes = UINT64_C(16000000000), d->own_bytes = 4096, d->fp64 = true, d->dot8 = CLV_YES;
    d->extensions = "cl_khr_fp64", d->svm = "", d->timer_resolution_ns = 1;
    d->check = (clv_probe_check){ .done = true,
                                  .ok = true,
                                  .build_s = 0.5,
                                  .run_s = 0.1,
                                  .max_error = 1e-7,
                                  .loop_limit = CLV_UNKNOWN,
                                  .finish_waits = CLV_YES };
    d->measured = (clv_probe_rates){ 20000, 1250, -1, -1, 500, 12, 12.5, 8, "2026-01-31", "quick" };
    return m;
}

static clv_machine *decided(clv_machine *m)
{
    const clv_orders none = { 0 };
    EXPECT_OK(clv_decide(m, &none));
    return m;
}

static void json_comes_back_the_same(void **state)
{
    (void)state;
    clv_machine *m = decided(full_machine()), *again = clv_machine_create();
    char *text = clv_probe_json(&m->report);
    assert_non_null(text);
    EXPECT_OK(clv_snapshot_read(again, "saved.json", text, strlen(text), NULL));
    assert_string_equal(again->report.simulated, "saved.json");
    again->report.simulated = NULL;
    decided(again);
    char *twice = clv_probe_json(&again->report);
    assert_string_equal(text, twice);
    free(text), free(twice);
    clv_machine_free(m), clv_machine_free(again);
}

static void json_says_null_for_unknown(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_machine_add_platform(m);
    clv_machine_add_device(m);
    clv_json *root = clv_report_to_json(&decided(m)->report);
    const clv_json *device = clv_json_at(clv_json_get(root, "devices"), 0);
    static const char *const nulls[][2] = {
        { "memory", "global_bytes" }, { "memory", "free_bytes" }, { "compute", "units" },
        { "compute", "clock_mhz" },   { "features", "dot8" },     { "pci", "address" },
    };
    for (size_t i = 0; i < CLV_LEN(nulls); ++i) {
        const clv_json *value = clv_json_get(clv_json_get(device, nulls[i][0]), nulls[i][1]);
        assert_non_null(value);
        assert_false(clv_json_is_int(value) || clv_json_is_number(value) ||
                     clv_json_is_string(value) || clv_json_is_bool(value));
    }
    assert_string_equal(clv_json_string(clv_json_get(root, "schema"), ""), "cleave.probe/1");
    clv_json_free(root);
    clv_machine_free(m);
}

/* Formerly the bus of such an address was 4294967295. */
static void numbers_of_addresses_have_no_signs(void **state)
{
    (void)state;
    clv_machine *m = full_machine();
    m->devices[0].pci_address = "0000:-1:00.0";
    clv_json *root = clv_report_to_json(&decided(m)->report);
    const clv_json *pci = clv_json_get(clv_json_at(clv_json_get(root, "devices"), 0), "pci");
    assert_string_equal(clv_json_string(clv_json_get(pci, "address"), ""), "0000:-1:00.0");
    assert_non_null(clv_json_get(pci, "bus"));
    assert_false(clv_json_is_int(clv_json_get(pci, "bus")));
    clv_json_free(root);
    clv_machine_free(m);
}

static void tells_whether_there_is_a_lapack(void **state)
{
    (void)state;
    clv_machine *m = full_machine(), *again = clv_machine_create();
    char *json = clv_probe_json(&decided(m)->report), *text = clv_probe_text(&m->report);
    EXPECT_OK(clv_snapshot_read(again, "x", json, strlen(json), NULL));
    assert_int_equal(again->report.host.lapack, CLV_YES);
    assert_string_equal(again->report.host.lapack_library, "liblapack.so.3");
    assert_non_null(strstr(text, "LAPACK     liblapack.so.3"));
    free(text);
    m->report.host.lapack = CLV_NO, m->report.host.lapack_library = NULL;
    text = clv_probe_text(&m->report);
    assert_non_null(strstr(text, "LAPACK     not found"));
    assert_non_null(strstr(text, "libopenblas0"));
    free(text);
    m->report.host.lapack = CLV_MAYBE; /* nobody looked */
    text = clv_probe_text(&m->report);
    assert_null(strstr(text, "LAPACK"));
    free(text), free(json);
    clv_machine_free(m), clv_machine_free(again);
}

static void large_numbers_are_texts(void **state)
{
    (void)state;
    clv_machine *m = full_machine(), *again = clv_machine_create();
    m->devices[0].global_bytes = UINT64_C(1) << 60;
    char *text = clv_probe_json(&decided(m)->report);
    assert_non_null(strstr(text, "\"global_bytes\": \"1152921504606846976\""));
    EXPECT_OK(clv_snapshot_read(again, "x", text, strlen(text), NULL));
    assert_int_equal(again->devices[0].global_bytes, UINT64_C(1) << 60);
    free(text);
    clv_machine_free(m), clv_machine_free(again);
}

static void foreign_texts_are_made_harmless(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    static char long_text[1 << 20];
    memset(long_text, 'x', sizeof long_text);
    assert_string_equal(clv_machine_foreign(m, "  a\tb\x01\xff\xc3\xa9\xed\xa0\x80 ", 13),
                        "a b??\xc3\xa9???");
    assert_null(clv_machine_foreign(m, "", 0));
    assert_null(clv_machine_foreign(m, "   ", 3));
    assert_null(clv_machine_foreign(m, NULL, 5));
    assert_string_equal(clv_machine_foreign(m, "ab\0cd", 5), "ab");
    assert_string_equal(clv_machine_foreign(m, "abcd", 2), "ab");     /* no terminator */
    assert_string_equal(clv_machine_foreign(m, "\xf0\x9f", 2), "??"); /* cut in a character */
    assert_string_equal(clv_machine_foreign(m, "\xc0\xaf", 2), "??"); /* overlong */
    /* CSI as one character, and a mark of direction; formerly they reached the terminal */
    assert_string_equal(clv_machine_foreign(m, "a\xc2\x9b\x32J\xe2\x80\xae.", 9), "a??2J???.");
    assert_int_equal(strlen(clv_machine_foreign(m, long_text, sizeof long_text)), CLV_TEXT_LIMIT);
    clv_machine_free(m);
}

static void wrong_answers_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "not valid JSON" },
        { "{\"opencl\":{}", "not valid JSON" },
        { "[]", "lacks \"opencl\" or \"devices\"" },
        { "{\"opencl\":{},\"devices\":{}}", "lacks \"opencl\" or \"devices\"" },
        { "{\"opencl\":{\"platforms\":3},\"devices\":[]}", "platforms: expected a list" },
        { "{\"opencl\":{\"platforms\":[1]},\"devices\":[]}", "platforms[0]: expected an object" },
        { "{\"opencl\":{\"platforms\":[{\"name\":1}]},\"devices\":[]}", "name: expected a text" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{}]}", "platform: expected the index" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":1}]}", "the index of" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":0,\"vendor_id\":-1}]}",
          "devices[0].vendor_id: expected a whole number" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":0,\"memory\":{"
          "\"global_bytes\":1.5}}]}",
          "memory.global_bytes: expected a whole number" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":0,\"compute\":{"
          "\"max_work_item_sizes\":[1,2]}}]}",
          "three numbers" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":0,\"features\":{"
          "\"fp64\":1}}]}",
          "features.fp64: expected true or false" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":0,\"extensions\":[1]}]}",
          "a list of texts" },
        { "{\"opencl\":{\"platforms\":[{}]},\"devices\":[{\"platform\":0},{\"platform\":0}]}",
          "devices[1].ordinal: its platform already has a device 0" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_machine *m = clv_machine_create();
        clv_machine_add_icd(m);
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].message,
                    clv_isolated_read(m, cases[i].text, strlen(cases[i].text), 0));
        assert_int_equal(m->report.platform_count, 0);
        assert_int_equal(m->report.device_count, 0);
        clv_machine_free(m);
    }
}

static void an_answer_cannot_speak_for_another_driver(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_machine_add_icd(m), clv_machine_add_icd(m);
    const char *text = "{\"opencl\":{\"platforms\":[{\"icd\":0,\"name\":\"n\"}]},\"devices\":[{"
                       "\"platform\":0,\"duplicate_of\":7,\"usable\":true,\"class\":\"cpu\"}]}";
    EXPECT_OK(clv_isolated_read(m, text, strlen(text), 1));
    assert_int_equal(m->platforms[0].icd, 1);
    assert_int_equal(m->devices[0].duplicate_of, SIZE_MAX); /* judgements are not taken over */
    clv_machine_free(m);
}

static void only_known_schemas_are_replayed(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    EXPECT_FAIL(CLV_E_FORMAT, "the schema is \"other/1\"",
                clv_snapshot_read(m, "f", "{\"schema\":\"other/1\"}", 20, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "not valid JSON", clv_snapshot_read(m, "f", "{", 1, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no scenarios",
                clv_snapshot_read(m, "f", "{\"schema\":\"cleave.probe/1\"}", 27, "x"));
    clv_machine_free(m);
}

static void no_line_is_longer_than_80_columns(void **state)
{
    (void)state;
    clv_machine *m = full_machine();
    m->devices[0].name = m->devices[0].board_name =
        "A card with an uncommonly long name that nobody would print on a box, Ωμέγα edition";
    m->devices[0].driver_version =
        "a-driver-version-without-any-blank-that-goes-on-and-on-and-on-and-"
        "on-and-on-and-on-and-on";
    m->platforms[0].message = "clGetDeviceIDs gave -30 (CL_INVALID_VALUE) and some more words";
    decided(m);
    for (int bits = 0; bits < 4; ++bits) {
        const clv_report_style style = { .lines = bits & 1, .more = bits & 2 };
        char *text = clv_report_text(&m->report, &style);
        for (const char *line = text; *line;) {
            const size_t length = strcspn(line, "\n");
            if (clv_columns(line, length) > 80) fail_msg("%.*s", (int)length, line);
            if (length) assert_true(line[length - 1] != ' ');
            line += length + 1;
        }
        assert_non_null(strstr(text, "17.2 GB"));
        assert_non_null(strstr(text, "it fell"));
        assert_null(strstr(text, "\033["));
        clv_free(text);
    }
    clv_machine_free(m);
}

static void a_report_about_nothing_is_a_report(void **state)
{
    (void)state;
    clv_machine *m = decided(clv_machine_create());
    char *text = clv_probe_text(&m->report);
    assert_non_null(strstr(text, "cpu (rule R1): no OpenCL device"));
    assert_non_null(strstr(text, "apt install pocl-opencl-icd"));
    char *list = clv_report_list(&m->report);
    assert_string_equal(list, "");
    assert_true((strstr(text, "built without") != NULL) == (*clv_build_without() != '\0'));
    free(text);
    clv_free(list);
    clv_machine_free(m);
}

/* Every record of the cache is from two days ago, or with -1 from two days ahead, before the clock was set back. */
static void make_old(const char *cache, int sign)
{
    char path[700];
    const struct timespec then = { .tv_sec = time(NULL) - sign * 2 * 24 * 3600 };
    const struct timespec times[2] = { then, then };
    snprintf(path, sizeof path, "%s/devices", cache);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/devices/%s", cache, entry->d_name);
        if (strstr(path, ".json")) assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    closedir(folder);
}

static void records_are_kept_and_found(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/cache", test_temp_dir());
    setenv("CLEAVE_CACHE_DIR", folder, 1);
    clv_machine *m = full_machine();
    EXPECT_OK(clv_record_save(&m->report.host, &m->platforms[0], &m->devices[0]));
    const clv_probe_check none = clv_device_unknown().check;
    m->devices[0].check = none, m->devices[0].measured.date = NULL;
    clv_records_load(m);
    assert_true(m->devices[0].check.done && m->devices[0].check.ok);
    assert_int_equal(m->devices[0].check.finish_waits, CLV_YES);
    assert_true(m->devices[0].measured.fp64_gflops == 1250);

    m->devices[0].check = none;
    m->devices[0].driver_version = "3452.1"; /* another driver is another device */
    clv_records_load(m);
    assert_false(m->devices[0].check.done);

    m->devices[0].driver_version = "3452.0";
    for (int crashed = 0; crashed < 2; ++crashed) { /* failures of the moment are forgotten */
        m->devices[0].check = (clv_probe_check){ .done = true, .crashed = crashed };
        EXPECT_OK(clv_record_save(&m->report.host, &m->platforms[0], &m->devices[0]));
        for (int old = 0; old < 3; ++old) {
            if (old) make_old(folder, old == 1 ? 1 : -1);
            m->devices[0].check = none;
            clv_records_load(m);
            assert_true(m->devices[0].check.done == (crashed || !old));
            assert_false(m->devices[0].check.ok);
        }
    }
    m->devices[0].check = none;
    snprintf(folder, sizeof folder, "%s/cache/devices", test_temp_dir());
    assert_int_equal(chmod(folder, 0777), 0); /* anybody may have written it */
    clv_records_load(m);
    assert_false(m->devices[0].check.done);
    clv_machine_free(m);
    unsetenv("CLEAVE_CACHE_DIR");
}

static void the_commit_is_a_hash_or_unknown(void **state)
{
    (void)state;
    const char *commit = clv_build_commit();
    clv_machine *m = decided(clv_machine_create());
    clv_json *root = clv_report_to_json(&m->report);
    const clv_json *git = clv_json_get(clv_json_get(root, "tool"), "git");
    assert_non_null(git);
    assert_true(clv_json_is_string(git) == (commit != NULL));
    if (commit) assert_string_equal(clv_json_string(git, ""), commit);
    if (commit) assert_true(strspn(commit, "0123456789abcdef") == strlen(commit));
    clv_json_free(root);
    clv_machine_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_comes_back_the_same),
        cmocka_unit_test(json_says_null_for_unknown),
        cmocka_unit_test(numbers_of_addresses_have_no_signs),
        cmocka_unit_test(tells_whether_there_is_a_lapack),
        cmocka_unit_test(large_numbers_are_texts),
        cmocka_unit_test(foreign_texts_are_made_harmless),
        cmocka_unit_test(wrong_answers_change_nothing),
        cmocka_unit_test(an_answer_cannot_speak_for_another_driver),
        cmocka_unit_test(only_known_schemas_are_replayed),
        cmocka_unit_test(no_line_is_longer_than_80_columns),
        cmocka_unit_test(a_report_about_nothing_is_a_report),
        cmocka_unit_test(the_commit_is_a_hash_or_unknown),
        cmocka_unit_test(records_are_kept_and_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

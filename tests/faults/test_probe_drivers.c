/* SPDX-License-Identifier: Apache-2.0 */
/* probe/drivers.c: broken drivers are left out, good ones stay, and the verdict is remembered. The
 * drivers are those of tests/faults; the helper is the command. */
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "probe/drivers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void install(const char *name, const char *library)
{
    char line[4096];
    snprintf(line, sizeof line, "%s\n", library);
    test_write(line, "vendors/%s.icd", name);
}

static clv_status vet(char *folder, clv_text *left_out)
{
    const clv_probe_options options = { .helper = test_command(), .timeout_s = 5 };
    clv_text_clear(left_out);
    return clv_drivers_vet(&options, folder, 4096, left_out);
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
    EXPECT_OK(vet(folder, &left_out));
    assert_non_null(strstr(clv_text_get(&left_out), "b-crash.icd: the driver crashed (signal 11"));
    assert_null(strstr(clv_text_get(&left_out), "missing"));
    snprintf(path, sizeof path, "%s/000.icd", folder);
    EXPECT_OK(clv_file_read(path, 4096, &text, &length));
    assert_string_equal(text, GOOD_ICD "\n");
    clv_free(text);
    snprintf(path, sizeof path, "%s/001.icd", folder);
    assert_int_equal(access(path, F_OK), -1);
    clv_text_clear(&left_out);
}

/* With a helper that does not exist only a remembered verdict can be given. */
static void the_verdict_is_remembered_until_something_changes(void **state)
{
    (void)state;
    char first[4096], again[4096];
    clv_text left_out = { 0 };
    EXPECT_OK(vet(first, &left_out));
    clv_text_clear(&left_out);
    const clv_probe_options no_helper = { .helper = "/nonexistent/helper" };
    EXPECT_OK(clv_drivers_vet(&no_helper, again, sizeof again, &left_out));
    assert_string_equal(first, again);
    assert_true(left_out.length > 0);
    install("d-good", GOOD_ICD);
    EXPECT_FAIL(CLV_E_IO, "/nonexistent/helper",
                clv_drivers_vet(&no_helper, again, sizeof again, &left_out));
    setenv("RUSTICL_ENABLE", "a-test", 1);
    EXPECT_FAIL(CLV_E_IO, "/nonexistent/helper",
                clv_drivers_vet(&no_helper, again, sizeof again, &left_out));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_good_ones_stay),
        cmocka_unit_test(the_verdict_is_remembered_until_something_changes),
        cmocka_unit_test(without_a_cache_the_folder_is_temporary),
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/vendors", test_temp_dir());
    setenv("OCL_ICD_VENDORS", path, 1);
    snprintf(path, sizeof path, "%s/cache", test_temp_dir());
    setenv("CLEAVE_CACHE_DIR", path, 1);
    setenv("TMPDIR", test_temp_dir(), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

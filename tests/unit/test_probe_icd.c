/* SPDX-License-Identifier: Apache-2.0 */
/* probe/opencl/icd.c: the drivers that a loader would load, by the variables that this loader reads. */
#define _GNU_SOURCE
#include "run.h"
#include "test.h"

#include "base/text.h"
#include "probe/opencl/icd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OCL_ICD, KHRONOS, LOADERS };

static char folder[2][4096], loaders[LOADERS][4096];

static void set(const char *vendors, const char *files, const char *old)
{
    const char *const names[] = { "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH" };
    const char *const values[] = { vendors, files, old };
    for (int i = 0; i < 3; ++i) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
}

/* "file:library:status" of each driver that the loader would see, by blanks. */
static void expect(int loader, const char *wanted)
{
    clv_text found = { 0 };
    clv_machine *m = clv_machine_create();
    m->report.loader_path = loaders[loader];
    clv_icds_list(m);
    for (size_t i = 0; i < m->report.icd_count; ++i) {
        const clv_probe_icd *icd = &m->icds[i];
        const char *slash = icd->file ? strrchr(icd->file, '/') : NULL;
        clv_text_add(&found, "%s%s:%s:%s", i ? " " : "", slash ? slash + 1 : "",
                     icd->library ? icd->library : "", icd->status);
    }
    assert_string_equal(clv_text_get(&found), wanted);
    clv_text_clear(&found);
    clv_machine_free(m);
}

static void a_folder_works_with_both_loaders(void **state)
{
    (void)state;
    set(folder[0], NULL, NULL);
    for (int loader = 0; loader < LOADERS; ++loader)
        expect(loader, "a.icd:liba.so:unchecked b.icd::missing");
    set(folder[0], NULL, folder[1]); /* the new variable stands above the old one */
    expect(OCL_ICD, "a.icd:liba.so:unchecked b.icd::missing");
}

static void a_file_or_a_name_works_with_ocl_icd_only(void **state)
{
    (void)state;
    char file[4200];
    snprintf(file, sizeof file, "%s/a.icd", folder[0]);
    set("libalone.so", NULL, NULL);
    expect(OCL_ICD, ":libalone.so:unchecked");
    expect(KHRONOS, "");
    set(file, NULL, NULL);
    expect(OCL_ICD, "a.icd:liba.so:unchecked");
}

/* Formerly the bytes of such a name were copied from beyond a buffer for 4096, or its end was cut off. */
static void names_that_are_too_long_are_missing(void **state)
{
    (void)state;
    static char longest[CLV_ICD_NAME], list[3 * CLV_ICD_NAME], wanted[2 * CLV_ICD_NAME];
    memset(longest, 'x', sizeof longest - 1);
    snprintf(wanted, sizeof wanted, ":%s:unchecked", longest);
    set(longest, NULL, NULL);
    expect(OCL_ICD, wanted);
    snprintf(list, sizeof list, "%sy", longest);
    set(list, NULL, NULL);
    expect(OCL_ICD, "::missing");
    snprintf(list, sizeof list, "%sy:libz.so", longest);
    set(folder[1], list, NULL);
    expect(KHRONOS, "::missing :libz.so:unchecked c.icd:libc-one.so:unchecked");
}

static void each_loader_has_a_variable_of_its_own(void **state)
{
    (void)state;
    set(folder[1], "libx.so:/y/liby.so", NULL);
    expect(KHRONOS, ":libx.so:unchecked :/y/liby.so:unchecked c.icd:libc-one.so:unchecked");
    expect(OCL_ICD, "c.icd:libc-one.so:unchecked");
    set(NULL, NULL, folder[1]);
    expect(OCL_ICD, "c.icd:libc-one.so:unchecked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_works_with_both_loaders),
        cmocka_unit_test(a_file_or_a_name_works_with_ocl_icd_only),
        cmocka_unit_test(names_that_are_too_long_are_missing),
        cmocka_unit_test(each_loader_has_a_variable_of_its_own),
    };
    test_write("liba.so\n", "one/a.icd");
    test_write("\n", "one/b.icd");
    test_write("ignored", "one/.hidden.icd");
    test_write("ignored", "one/readme.txt");
    test_write("  libc-one.so  \nsecond line\n", "two/c.icd");
    test_write("...OCL_ICD_VENDORS...OPENCL_VENDOR_PATH...", "ocl-icd.so");
    test_write("...OCL_ICD_FILENAMES...OCL_ICD_VENDORS...", "khronos.so");
    snprintf(folder[0], sizeof folder[0], "%s/one", test_temp_dir());
    snprintf(folder[1], sizeof folder[1], "%s/two", test_temp_dir());
    snprintf(loaders[OCL_ICD], sizeof loaders[0], "%s/ocl-icd.so", test_temp_dir());
    snprintf(loaders[KHRONOS], sizeof loaders[0], "%s/khronos.so", test_temp_dir());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests `cleave --icd`: which drivers the command loads, and where their caches lie. */
#define _GNU_SOURCE
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fake[4096], cache[4096], cache_variable[4200], empty[4096];

/* Up to eight arguments of `cleave`; a cache of our own, nothing of the outside. */
static test_outcome cleave(const char *const *arguments, const char *change)
{
    const char *argv[12] = { test_command() };
    const char *const changes[] = { cache_variable,   "CLEAVE_CACHE",
                                    "CLEAVE_MODE",    "CLEAVE_DEVICE",
                                    "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR",
                                    change,           NULL };
    for (int i = 0; arguments[i]; ++i)
        argv[i + 1] = arguments[i];
    return test_run(argv, changes);
}

static void expect(test_outcome outcome, int code, const char *out, const char *err)
{
    if (outcome.code != code || !strstr(outcome.out, out) || !strstr(outcome.err, err))
        fail_msg("exit code %d, expected %d\nstdout: %s\nstderr: %s", outcome.code, code,
                 outcome.out, outcome.err);
    test_outcome_clear(&outcome);
}

#define CLEAVE(...) cleave((const char *const[]){ __VA_ARGS__, NULL }, NULL)

/* How many lines of the output hold the word. */
static int lines_with(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        ++count;
    return count;
}

static void loads_what_is_named_and_nothing_else(void **state)
{
    (void)state;
    char joined[8300];
    test_outcome outcome = CLEAVE("--icd", fake, "probe", "--json");
    assert_int_equal(lines_with(outcome.out, ".icd\","), 1);
    expect(outcome, 0, "Fake platform", "");
    expect(CLEAVE("probe", "--list", "--icd", fake), 0, "", "");

    snprintf(joined, sizeof joined, "--icd=%s,libcleave-is-not-here.so", fake);
    outcome = CLEAVE("probe", joined, "--icd", fake, "--json"); /* once more is still one driver */
    assert_int_equal(lines_with(outcome.out, ".icd\","), 2);
    expect(outcome, 0, "libcleave-is-not-here.so", "");
}

static void an_order_wins_over_the_environment(void **state)
{
    (void)state;
    char change[4200];
    snprintf(change, sizeof change, "OCL_ICD_VENDORS=%s", empty);
    const char *const arguments[] = { "--icd", fake, "probe", "--json", NULL };
    expect(cleave(arguments, change), 0, "Fake platform", "");
}

static void takes_folders_and_icd_files(void **state)
{
    (void)state;
    char folder[4096], file[4200];
    snprintf(folder, sizeof folder, "%s", test_write(fake, "vendors/fake.icd"));
    snprintf(file, sizeof file, "%s", folder);
    *strrchr(folder, '/') = '\0';
    expect(CLEAVE("--icd", folder, "probe", "--json"), 0, "Fake platform", "");
    expect(CLEAVE("--icd", file, "probe", "--json"), 0, "Fake platform", "");

    /* a folder with a driver that is known by its name; links stay links */
    snprintf(folder, sizeof folder, "%s", test_write("", "drivers/x"));
    *strrchr(folder, '/') = '\0';
    snprintf(file, sizeof file, "%s/libpocl.so.2", folder);
    assert_int_equal(symlink(fake, file), 0);
    expect(CLEAVE("--icd", folder, "probe", "--json"), 0, file, "");
}

static void a_path_may_be_relative(void **state)
{
    (void)state;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", fake);
    char *name = strrchr(folder, '/');
    *name++ = '\0';
    assert_int_equal(chdir(folder), 0);
    char relative[4100];
    snprintf(relative, sizeof relative, "./%s", name);
    expect(CLEAVE("--icd", relative, "probe", "--json"), 0, "Fake platform", "");
    assert_int_equal(chdir("/"), 0);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect(CLEAVE("probe", "--icd"), 2, "", "needs a value");
    expect(CLEAVE("--icd", "/not/there", "probe"), 2, "", "/not/there");
    expect(CLEAVE("--icd", empty, "probe"), 2, "", "no .icd file");
    expect(CLEAVE("--icd", test_write("\n", "blank.icd"), "probe"), 2, "", "is neither a driver");
    expect(CLEAVE("probe", "--", "--icd"), 2, "", "\"--icd\" is an unexpected argument");
    /* formerly the installed drivers were used */
    expect(CLEAVE("--icd", ",", "probe"), 2, "", "--icd is \",\", but");
}

/* Formerly the command ended with 1 or 2 and without a word, or left out the drivers of a folder that had no room. */
static void too_many_and_too_long_names_are_told(void **state)
{
    (void)state;
    char list[1024], folder[4096], longest[4096];
    size_t used = 0;
    for (int i = 0; i < 33; ++i)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%slibnone-%d.so", i ? "," : "", i);
    expect(CLEAVE("--icd", list, "probe"), 2, "", "more than 32 drivers are given");
    for (int i = 0; i < 33; ++i) {
        char line[32];
        snprintf(line, sizeof line, "libnone-%d.so\n", i);
        snprintf(folder, sizeof folder, "%s", test_write(line, "many/%02d.icd", i));
    }
    *strrchr(folder, '/') = '\0';
    expect(CLEAVE("--icd", folder, "probe"), 2, "", "more than 32 drivers are given");

    /* a path that the system accepts, but that is too long behind the working folder */
    used = 0;
    while (used + 3 < sizeof longest - 10)
        used += (size_t)snprintf(longest + used, sizeof longest - used, "./");
    snprintf(longest + used, sizeof longest - used, "00.icd");
    assert_int_equal(chdir(folder), 0);
    expect(CLEAVE("--icd", longest, "probe"), 2, "", "has more than 4095 bytes");
    assert_int_equal(chdir("/"), 0);
}

static void a_folder_may_be_named_twice(void **state)
{
    (void)state;
    char twice[8300], folder[4096];
    snprintf(folder, sizeof folder, "%s", test_write(fake, "again/fake.icd"));
    *strrchr(folder, '/') = '\0';
    snprintf(twice, sizeof twice, "%s,%s", folder, folder);
    test_outcome outcome = CLEAVE("--icd", twice, "probe", "--json");
    assert_int_equal(lines_with(outcome.out, ".icd\","), 1);
    expect(outcome, 0, "Fake platform", "");
}

static void caches_of_drivers_are_private(void **state)
{
    (void)state;
    static const char *const names[] = { "pocl", "mesa" };
    test_outcome outcome = CLEAVE("probe", "--icd", fake, "--list");
    test_outcome_clear(&outcome);
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        char path[4200];
        struct stat info;
        snprintf(path, sizeof path, "%s/drivers/%s", cache, names[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0700);
    }
}

static void nothing_is_left_without_a_cache(void **state)
{
    (void)state;
    char here[4096], temporary[4200];
    snprintf(here, sizeof here, "%s", test_write("", "temporary/x"));
    *strrchr(here, '/') = '\0';
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", here);
    const char *const argv[] = { test_command(), "--icd", fake, "probe", "--json", NULL };
    const char *const changes[] = { "CLEAVE_CACHE=0", "HOME",    "XDG_CACHE_HOME",
                                    "POCL_CACHE_DIR", temporary, NULL };
    expect(test_run(argv, changes), 0, here, "");
    DIR *folder = opendir(here);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (*entry->d_name != '.' && *entry->d_name != 'x') fail_msg("left: %s", entry->d_name);
    closedir(folder);
}

static void help_makes_no_folders(void **state)
{
    (void)state;
    char path[4096], change[4200];
    snprintf(path, sizeof path, "%s/untouched", test_temp_dir());
    snprintf(change, sizeof change, "CLEAVE_CACHE_DIR=%s", path);
    const char *const arguments[] = { "probe", "--help", NULL };
    expect(cleave(arguments, change), 0, "--icd=PATH", "");
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_what_is_named_and_nothing_else),
        cmocka_unit_test(an_order_wins_over_the_environment),
        cmocka_unit_test(takes_folders_and_icd_files),
        cmocka_unit_test(a_path_may_be_relative),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(too_many_and_too_long_names_are_told),
        cmocka_unit_test(a_folder_may_be_named_twice),
        cmocka_unit_test(caches_of_drivers_are_private),
        cmocka_unit_test(nothing_is_left_without_a_cache),
        cmocka_unit_test(help_makes_no_folders),
    };
    const char *driver = getenv("CLEAVE_FAKE_ICD");
    if (!driver) test_skip_all("CLEAVE_FAKE_ICD does not name the driver for tests");
    snprintf(fake, sizeof fake, "%s", driver);
    snprintf(cache, sizeof cache, "%s/cache", test_temp_dir());
    snprintf(cache_variable, sizeof cache_variable, "CLEAVE_CACHE_DIR=%s", cache);
    snprintf(empty, sizeof empty, "%s", test_write("", "empty/x"));
    *strrchr(empty, '/') = '\0';
    return cmocka_run_group_tests(tests, NULL, NULL);
}

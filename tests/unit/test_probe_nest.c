/* SPDX-License-Identifier: Apache-2.0 */
/* probe/helper/nest.c: what a helper sees of the environment, and that nothing of it stays behind. */
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "probe/helper/nest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The value of the only entry NAME=...; NULL when there is none or more than one. */
static const char *value_of(char **environment, const char *name)
{
    const char *found = NULL;
    const size_t length = strlen(name);
    for (size_t i = 0; environment[i]; ++i) {
        if (strncmp(environment[i], name, length) != 0 || environment[i][length] != '=') continue;
        if (found) return NULL;
        found = environment[i] + length + 1;
    }
    return found;
}

static void a_helper_sees_one_driver(void **state)
{
    (void)state;
    clv_nest nest = { 0 };
    char **environment, path[PATH_MAX], *text;
    size_t length;
    EXPECT_OK(clv_nest_open(&nest));
    EXPECT_OK(clv_nest_environment(&nest, "libone.so", false, &environment));
    assert_string_equal(value_of(environment, "KEPT"), "yes");
    assert_string_equal(value_of(environment, "POCL_CACHE_DIR"), "/elsewhere");
    assert_null(value_of(environment, "OCL_ICD_FILENAMES"));
    snprintf(path, sizeof path, "%s/driver.icd", value_of(environment, "OCL_ICD_VENDORS"));
    EXPECT_OK(clv_file_read(path, 100, &text, &length));
    assert_string_equal(text, "libone.so\n");
    clv_free(text);
    clv_nest_free_environment(environment);

    EXPECT_OK(clv_nest_environment(&nest, NULL, false, &environment)); /* the loader as it is */
    assert_string_equal(value_of(environment, "OCL_ICD_VENDORS"), "/vendors");
    assert_string_equal(value_of(environment, "OCL_ICD_FILENAMES"), "libtwo.so");
    clv_nest_free_environment(environment);
    clv_nest_close(&nest);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_fresh_one_has_empty_caches_that_go_away(void **state)
{
    (void)state;
    static const char *const variables[] = { "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR",
                                             "CUDA_CACHE_PATH", "NEO_CACHE_DIR" };
    clv_nest nest = { 0 };
    char **environment, path[PATH_MAX], base[PATH_MAX];
    EXPECT_OK(clv_nest_open(&nest));
    snprintf(base, sizeof base, "%s", nest.base);
    EXPECT_OK(clv_nest_environment(&nest, "libone.so", true, &environment));
    for (size_t i = 0; i < CLV_LEN(variables); ++i) {
        const char *value = value_of(environment, variables[i]);
        assert_non_null(value);
        assert_true(clv_starts_with(value, nest.base));
        snprintf(path, sizeof path, "%s/deep/%zu", value, i);
        EXPECT_OK(clv_dir_make(path));
        snprintf(path, sizeof path, "%s/deep/%zu/kernel.so", value, i);
        EXPECT_OK(clv_file_write(path, "x", 1));
    }
    clv_nest_free_environment(environment);

    EXPECT_OK(clv_nest_environment(&nest, NULL, true, &environment));
    assert_string_equal(value_of(environment, "OCL_ICD_VENDORS"), "/vendors");
    assert_true(clv_starts_with(value_of(environment, "POCL_CACHE_DIR"), nest.base));
    clv_nest_free_environment(environment);
    clv_nest_close(&nest);
    assert_int_equal(access(base, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_helper_sees_one_driver),
        cmocka_unit_test(a_fresh_one_has_empty_caches_that_go_away),
    };
    setenv("TMPDIR", test_temp_dir(), 1);
    setenv("KEPT", "yes", 1);
    setenv("POCL_CACHE_DIR", "/elsewhere", 1);
    setenv("OCL_ICD_VENDORS", "/vendors", 1);
    setenv("OCL_ICD_FILENAMES", "libtwo.so", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment variables CLEAVE_...; if a value cannot be used, the error always has the same form. */
#define _GNU_SOURCE /* secure_getenv */
#include "base/environment.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *clv_environment(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

clv_status clv_environment_refuse(const char *name, const char *expected)
{
    return clv_fail(
        CLV_E_ARGUMENT,
        "the environment variable %s is \"%.200s\", but it must be %s; unset it to get the "
        "default",
        name, clv_environment(name), expected);
}

clv_status clv_environment_choice(const char *name, const char *values, int *index)
{
    const char *value = clv_environment(name);
    *index = value ? clv_find_word(values, value) : -1;
    if (!value || *index >= 0) return CLV_OK;
    char words[160];
    clv_list_words(values, "or", words, sizeof words);
    return clv_environment_refuse(name, words);
}

bool clv_environment_is_off(const char *name)
{
    const char *value = clv_environment(name);
    return value && strcmp(value, "0") == 0;
}

clv_status clv_environment_check(void)
{
    static const struct {
        const char *name, *values;
    } choices[] = {
        { "CLEAVE_BIND", "0,1" },
        { "CLEAVE_CACHE", "0,1" },
        { "CLEAVE_LOG", CLV_LOG_LEVELS },
        { "CLEAVE_TUNE", "0,1" },
    };
    const char *kernels = clv_environment("CLEAVE_CL_DIR"),
               *cache = clv_environment("CLEAVE_CACHE_DIR");
    struct stat info;
    int index;
    for (size_t i = 0; i < CLV_LEN(choices); ++i)
        CLV_TRY(clv_environment_choice(choices[i].name, choices[i].values, &index));
    if (kernels && (stat(kernels, &info) || !S_ISDIR(info.st_mode)))
        return clv_environment_refuse("CLEAVE_CL_DIR", "a folder with Cleave's kernels");
    /* only a warning comes later for a folder that cannot be made or written to: the work goes on without a cache */
    if (cache && stat(cache, &info) == 0 && !S_ISDIR(info.st_mode))
        return clv_environment_refuse("CLEAVE_CACHE_DIR", "a folder");
    if (cache && strlen(cache) >= CLV_PATH_MOST) {
        char expected[80];
        snprintf(expected, sizeof expected, "a folder whose name has at most %d bytes",
                 CLV_PATH_MOST - 1);
        return clv_environment_refuse("CLEAVE_CACHE_DIR", expected);
    }
    return CLV_OK;
}

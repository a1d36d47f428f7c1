/* SPDX-License-Identifier: Apache-2.0 */
/* Makes private folders in which the loader finds a single driver, and environments that point to these folders. */
#define _GNU_SOURCE
#include "probe/helper/nest.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"
#include "probe/opencl/driver_cache.h"
#include "probe/opencl/icd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

clv_status clv_nest_open(clv_nest *nest)
{
    const char *places[] = { secure_getenv("TMPDIR"), "/tmp", "/dev/shm" };
    for (size_t i = 0; i < CLV_LEN(places); ++i)
        if (places[i] && *places[i] == '/' &&
            clv_temporary_folder_in(places[i], "probe", nest->base, sizeof nest->base))
            return CLV_OK;
    return clv_fail(CLV_E_IO, "probe: cannot make a temporary folder: %s", strerror(errno));
}

void clv_nest_close(clv_nest *nest)
{
    if (*nest->base) clv_temporary_remove(nest->base);
    nest->base[0] = '\0';
}

/* Makes a folder for one helper, with an .icd file for its driver unless `library` is NULL. */
static clv_status make_folder(clv_nest *nest, const char *library, char *folder, size_t capacity)
{
    char path[PATH_MAX], line[CLV_ICD_NAME + 2];
    snprintf(folder, capacity, "%s/%zu", nest->base, nest->folders);
    if (mkdir(folder, 0700))
        return clv_fail(CLV_E_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
    ++nest->folders;
    if (!library) return CLV_OK;
    snprintf(path, sizeof path, "%s/%zu/driver.icd", nest->base, nest->folders - 1);
    const int length = snprintf(line, sizeof line, "%s\n", library);
    return clv_file_write_private(path, line, (size_t)length);
}

/* ---- environments ---------------------------------------------------------------------------- */

static const char *const loader_variables[] = { "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES",
                                                "OPENCL_VENDOR_PATH", NULL };

static bool sets_one_of(const char *entry, const char *const *names)
{
    for (size_t i = 0; names[i]; ++i) {
        const size_t length = strlen(names[i]);
        if (strncmp(entry, names[i], length) == 0 && entry[length] == '=') return true;
    }
    return false;
}

/* Adds the environment settings of a helper, one string after the other; returns their number. */
static size_t add_settings(clv_text *out, const char *folder, bool library, bool fresh)
{
    size_t count = 1;
    if (library)
        clv_text_add(out, "OCL_ICD_VENDORS=%s", folder);
    else
        clv_text_add(out, "CLEAVE_HELPER=1");
    for (const char *const *name = clv_driver_cache_variables; fresh && *name; ++name, ++count) {
        clv_text_bytes(out, "", 1);
        clv_text_add(out, "%s=%s/cache", *name, folder);
    }
    return count;
}

clv_status clv_nest_environment(clv_nest *nest, const char *library, bool fresh,
                                char ***environment)
{
    char folder[PATH_MAX - 16] = "";
    size_t count = 0, used = 0;
    *environment = NULL;
    if (library || fresh) CLV_TRY(make_folder(nest, library, folder, sizeof folder));
    while (environ && environ[count])
        ++count;
    clv_text settings = { 0 }; /* memory of all settings, owned by entry [0] of the environment */
    const size_t set = add_settings(&settings, folder, library != NULL, fresh);
    char **copy = clv_zalloc(count + set + 1, sizeof *copy);
    if (!copy || settings.failed) {
        clv_free(copy);
        clv_text_clear(&settings);
        return clv_fail(CLV_E_MEMORY,
                        "probe: not enough memory for the environment of a helper process");
    }
    for (char *at = settings.data; used < set; at += strlen(at) + 1)
        copy[used++] = at;
    for (size_t i = 0; i < count; ++i)
        if (!(library && sets_one_of(environ[i], loader_variables)) &&
            !(fresh && sets_one_of(environ[i], clv_driver_cache_variables)))
            copy[used++] = environ[i];
    *environment = copy;
    return CLV_OK;
}

void clv_nest_free_environment(char **environment)
{
    if (environment) clv_free(environment[0]);
    clv_free(environment);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Private folders that show a loader one driver only, and the environments that point there. */
#define _GNU_SOURCE
#include "probe/nest.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "probe/icd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

clv_status clv_nest_open(clv_nest *nest)
{
    const char *places[] = { getenv("TMPDIR"), "/tmp", "/dev/shm" };
    for (size_t i = 0; i < CLV_LEN(places); ++i) {
        if (!places[i] || *places[i] != '/') continue;
        const int length =
            snprintf(nest->base, sizeof nest->base, "%s/cleave-probe-XXXXXX", places[i]);
        if (length > 0 && (size_t)length < sizeof nest->base && mkdtemp(nest->base)) return CLV_OK;
    }
    nest->base[0] = '\0';
    return clv_fail(CLV_E_IO, "probe: no place for a temporary folder: %s", strerror(errno));
}

void clv_nest_close(clv_nest *nest)
{
    char path[PATH_MAX];
    if (!*nest->base) return;
    for (size_t i = 0; i < nest->folders; ++i) {
        snprintf(path, sizeof path, "%s/%zu/driver.icd", nest->base, i);
        unlink(path);
        snprintf(path, sizeof path, "%s/%zu", nest->base, i);
        rmdir(path);
    }
    rmdir(nest->base);
    nest->base[0] = '\0';
}

static clv_status make_folder(clv_nest *nest, const char *library, char *folder, size_t capacity)
{
    char path[PATH_MAX], line[CLV_ICD_NAME + 2];
    snprintf(folder, capacity, "%s/%zu", nest->base, nest->folders);
    if (mkdir(folder, 0700))
        return clv_fail(CLV_E_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
    ++nest->folders;
    snprintf(path, sizeof path, "%s/%zu/driver.icd", nest->base, nest->folders - 1);
    const int length = snprintf(line, sizeof line, "%s\n", library);
    return clv_file_write_private(path, line, (size_t)length);
}

static bool is_loader_variable(const char *entry)
{
    static const char *const names[] = { "OCL_ICD_VENDORS=", "OCL_ICD_FILENAMES=",
                                         "OPENCL_VENDOR_PATH=" };
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (clv_starts_with(entry, names[i])) return true;
    return false;
}

clv_status clv_nest_environment(clv_nest *nest, const char *library, char ***environment)
{
    char folder[PATH_MAX - 16];
    size_t count = 0, used = 0;
    *environment = NULL;
    if (library) CLV_TRY(make_folder(nest, library, folder, sizeof folder));
    while (environ && environ[count])
        ++count;
    char **copy = clv_zalloc(count + 2, sizeof *copy);
    clv_text vendors = { 0 }; /* [0] is owned; the rest is borrowed from this process */
    clv_text_add(&vendors, "%s%s", library ? "OCL_ICD_VENDORS=" : "CLEAVE_HELPER=1",
                 library ? folder : "");
    if (!copy || vendors.failed) {
        clv_free(copy);
        clv_text_clear(&vendors);
        return clv_fail(CLV_E_MEMORY, "probe: no memory for an environment");
    }
    copy[used++] = vendors.data;
    for (size_t i = 0; i < count; ++i)
        if (!library || !is_loader_variable(environ[i])) copy[used++] = environ[i];
    *environment = copy;
    return CLV_OK;
}

void clv_nest_free_environment(char **environment)
{
    if (environment) clv_free(environment[0]);
    clv_free(environment);
}

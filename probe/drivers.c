/* SPDX-License-Identifier: Apache-2.0 */
/* Which drivers are fit to be loaded into a process of ours. */
#define _GNU_SOURCE
#include "probe/drivers.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "probe/host.h"
#include "probe/icd.h"
#include "probe/machine.h"
#include "probe/opencl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { VERDICT_LIMIT = 1 << 20 };

/* What changes which drivers load, and how they behave while they do. */
static const char *const variables[] = {
    "OCL_ICD_VENDORS",    "OCL_ICD_FILENAMES",    "OPENCL_VENDOR_PATH",   "OPENCL_LAYERS",
    "RUSTICL_ENABLE",     "RUSTICL_FEATURES",     "POCL_DEVICES",         "LD_LIBRARY_PATH",
    "LD_PRELOAD",         "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",     "NEOReadDebugKeys",
};

static void add_file(clv_json *key, const char *path)
{
    struct stat info;
    clv_json *entry = clv_json_add_array(key, NULL);
    clv_json_add_string(entry, NULL, path);
    if (!path || stat(path, &info)) return;
    clv_json_add_int(entry, NULL, (int64_t)info.st_size);
    clv_json_add_int(entry, NULL, (int64_t)info.st_mtim.tv_sec);
    clv_json_add_int(entry, NULL, info.st_mtim.tv_nsec);
}

/* Equal keys: the same drivers, on the same kernel since the same start, in the same environment. */
static char *make_key(const clv_machine *machine)
{
    char boot[64];
    struct utsname name = { .release = "" };
    clv_json *key = clv_json_array();
    uname(&name);
    clv_small_read("", boot, sizeof boot, "/proc/sys/kernel/random/boot_id");
    clv_json_add_string(key, NULL, "1"); /* of this key's own form */
    clv_json_add_string(key, NULL, name.release);
    clv_json_add_string(key, NULL, boot);
    add_file(key, machine->report.loader_path);
    for (size_t i = 0; i < machine->report.icd_count; ++i) {
        const clv_probe_icd *icd = &machine->icds[i];
        add_file(key, icd->file);
        clv_json_add_string(key, NULL, icd->library);
        if (icd->library && *icd->library == '/') add_file(key, icd->library);
    }
    for (size_t i = 0; i < CLV_LEN(variables); ++i)
        clv_json_add_string(key, NULL, getenv(variables[i]));
    char *text = clv_json_text(key, true);
    clv_json_free(key);
    return text;
}

/* Where a verdict and its folder lie: <cache>/drivers/HASH.json and HASH.d. Each key has its own,
 * so that programs in different environments do not disturb each other. False without a cache. */
static bool verdict_path(const char *key, const char *ending, char *path, size_t capacity)
{
    char cache[PATH_MAX - 96], folder[PATH_MAX - 64], hex[65];
    clv_cache_dir(cache, sizeof cache);
    snprintf(folder, sizeof folder, "%s/drivers", cache);
    if (!*cache || clv_dir_make_private(folder)) return false;
    const clv_digest digest = clv_sha256(key, strlen(key));
    clv_digest_hex(&digest, hex);
    const int length = snprintf(path, capacity, "%s/%.24s%s", folder, hex, ending);
    return length > 0 && (size_t)length < capacity;
}

/* The verdicts that are on record for `key`; NULL when there are none. */
static clv_json *recall(const char *key)
{
    char path[PATH_MAX], *text;
    size_t length;
    clv_json *root = NULL;
    if (!verdict_path(key, ".json", path, sizeof path) || access(path, R_OK) ||
        clv_file_read(path, VERDICT_LIMIT, &text, &length))
        return NULL;
    if (clv_json_parse(path, text, length, &root)) root = NULL;
    clv_free(text);
    if (root && strcmp(clv_json_string(clv_json_get(root, "key"), ""), key) == 0) return root;
    clv_json_free(root);
    return NULL;
}

static void remember(const char *key, const clv_json *root)
{
    char path[PATH_MAX];
    char *text = clv_json_text(root, false);
    if (text && verdict_path(key, ".json", path, sizeof path) &&
        clv_file_write_private(path, text, strlen(text)))
        clv_log(CLV_LOG_WARN, "what was found about drivers is not kept: %s", clv_error_message());
    clv_json_text_free(text);
}

static clv_status find_out(const clv_probe_options *options, const char *key, clv_json **verdicts)
{
    clv_probe_report *report;
    const clv_probe_options isolated = {
        .size = sizeof isolated,
        .isolate = true,
        .mode = CLV_MODE_REFERENCE, /* an order of the user must not end the search for drivers */
        .devices = "",
        .helper = options->helper,
        .timeout_s = options->timeout_s,
        .progress = options->progress,
        .progress_user = options->progress_user,
    };
    CLV_TRY(clv_probe_run(&isolated, &report));
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "key", key);
    clv_json *list = clv_json_add_array(root, "drivers");
    for (size_t i = 0; i < report->icd_count; ++i) {
        const clv_probe_icd *icd = &report->icds[i];
        clv_json *entry = clv_json_add_object(list, NULL);
        clv_json_add_string(entry, "file", icd->file);
        clv_json_add_string(entry, "library", icd->library);
        clv_json_add_string(entry, "status", icd->status);
        clv_json_add_string(entry, "message", icd->message);
    }
    clv_probe_free(report);
    remember(key, root);
    *verdicts = root;
    return root ? CLV_OK : clv_fail(CLV_E_MEMORY, "drivers: no memory");
}

static bool is_broken(const clv_json *driver)
{
    static const char *const broken[] = { "crashed", "timeout", "hung_unkillable", "bad_output" };
    const char *status = clv_json_string(clv_json_get(driver, "status"), "");
    for (size_t i = 0; i < CLV_LEN(broken); ++i)
        if (strcmp(status, broken[i]) == 0) return true;
    return false;
}

static clv_status make_folder(const char *key, char *folder, size_t capacity)
{
    const char *tmp = getenv("TMPDIR");
    if (verdict_path(key, ".d", folder, capacity)) return clv_dir_make_private(folder);
    snprintf(folder, capacity, "%s/cleave-vendors-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (mkdtemp(folder)) return CLV_OK;
    return clv_fail(CLV_E_IO, "drivers: no place for a folder: %s", strerror(errno));
}

static clv_status write_good(const clv_json *drivers, const char *folder)
{
    for (size_t i = 0; i < clv_json_count(drivers); ++i) {
        const clv_json *driver = clv_json_at(drivers, i);
        const char *library = clv_json_string(clv_json_get(driver, "library"), NULL);
        char path[PATH_MAX], line[CLV_ICD_NAME + 2];
        if (is_broken(driver) || !library) continue;
        const int length = snprintf(line, sizeof line, "%s\n", library);
        snprintf(path, sizeof path, "%s/%03zu.icd", folder, i); /* in the order of the list */
        CLV_TRY(clv_file_write_private(path, line, (size_t)length));
    }
    return CLV_OK;
}

clv_status clv_drivers_vet(const clv_probe_options *options, char *folder, size_t capacity,
                           clv_text *left_out)
{
    folder[0] = '\0';
    clv_machine *machine = clv_machine_create();
    if (!machine) return clv_fail(CLV_E_MEMORY, "drivers: no memory");
    clv_loader_facts(machine, false);
    clv_icds_list(machine);
    char *key = make_key(machine);
    const bool none = machine->report.icd_count == 0; /* nothing that could be left out */
    clv_machine_free(machine);
    if (!key) return clv_fail(CLV_E_MEMORY, "drivers: no memory");

    clv_status status = CLV_OK;
    clv_json *verdicts = none ? NULL : recall(key);
    if (!none && !verdicts) status = find_out(options, key, &verdicts);
    const clv_json *drivers = clv_json_get(verdicts, "drivers");
    size_t broken = 0;
    for (size_t i = 0; !status && i < clv_json_count(drivers); ++i) {
        const clv_json *driver = clv_json_at(drivers, i);
        const char *file = clv_json_string(clv_json_get(driver, "file"), "a driver");
        if (!is_broken(driver)) continue;
        clv_text_add(left_out, "%s%s: %s", broken++ ? "\n" : "", file,
                     clv_json_string(clv_json_get(driver, "message"), "broken"));
    }
    if (!status && broken) status = make_folder(key, folder, capacity);
    if (!status && broken) status = write_good(drivers, folder);
    if (status) folder[0] = '\0';
    clv_json_text_free(key);
    clv_json_free(verdicts);
    return status;
}

void clv_drivers_forget(const char *folder)
{
    char cache[PATH_MAX - 96], path[PATH_MAX];
    clv_cache_dir(cache, sizeof cache);
    if (!*folder || (*cache && clv_starts_with(folder, cache))) return;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        if (!clv_ends_with(entry->d_name, ".icd")) continue;
        const int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length > 0 && (size_t)length < sizeof path) unlink(path);
    }
    if (open) closedir(open);
    rmdir(folder);
}

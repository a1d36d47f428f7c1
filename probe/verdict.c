/* SPDX-License-Identifier: Apache-2.0 */
/* Records whether the jobs of a command may load a driver: one small file per driver in <cache>/drivers. The file's
 * name is a hash of everything on which the driver's behaviour depends. */
#include "probe/verdict.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "probe/host/small_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { VERDICT_LIMIT = 1 << 16, BAD_HOLDS_S = 3600 };

/* Variables that change the behaviour of drivers. Variables that select drivers do not matter for a single driver. */
static const char *const variables[] = {
    "OPENCL_LAYERS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "RUSTICL_ENABLE",
    "RUSTICL_FEATURES",
    "POCL_DEVICES",
    "POCL_DEBUG",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "GPU_DEVICE_ORDINAL",
    "CL_CONFIG_CPU_TARGET_ARCH",
    "NEOReadDebugKeys",
};

/* ---- judging --------------------------------------------------------------------------------- */

static bool ended_badly(const char *status)
{
    static const char *const bad[] = { "crashed", "timeout", "hung_unkillable", "bad_output" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i)
        if (strcmp(status, bad[i]) == 0) return true;
    return false;
}

clv_verdict clv_verdict_judge(const clv_probe_report *report, size_t icd,
                              char reason[CLV_VERDICT_REASON])
{
    const clv_probe_icd *driver = &report->icds[icd];
    const clv_probe_device *crashed = NULL;
    reason[0] = '\0';
    if (ended_badly(driver->status)) {
        clv_copy_string(reason, CLV_VERDICT_REASON, driver->message ? driver->message : "broken");
        return CLV_VERDICT_BAD;
    }
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        if (report->platforms[device->platform].icd != icd || !device->check.done) continue;
        /* at least one device of the driver works */
        if (!device->check.crashed) return CLV_VERDICT_GOOD;
        crashed = device;
    }
    if (!crashed) return CLV_VERDICT_GOOD;
    snprintf(reason, CLV_VERDICT_REASON, "%.190s (while checking %.80s)",
             crashed->check.message ? crashed->check.message : "it crashed",
             crashed->name_clean ? crashed->name_clean : "a device");
    return CLV_VERDICT_BAD;
}

static bool is_cores(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_CPU || device->device_class == CLV_CLASS_SOFTWARE;
}

const char *clv_verdict_repeats(const clv_probe_report *report, size_t icd)
{
    const char *library = NULL;
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i], *first;
        if (report->platforms[device->platform].icd != icd) continue;
        if (!is_cores(device) || device->duplicate_of >= report->device_count) return NULL;
        first = &report->devices[device->duplicate_of];
        const size_t other = report->platforms[first->platform].icd;
        if (!first->usable || !first->check.ok || other == icd || other >= report->icd_count)
            return NULL;
        const char *name = report->icds[other].library;
        if (!name || (library && strcmp(library, name) != 0)) return NULL;
        library = name;
    }
    return library && strlen(library) < CLV_VERDICT_LIBRARY ? library : NULL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Adds the file's identity: [path, bytes, seconds, nanoseconds]; only the path if the file does not exist. */
static void add_file(clv_json *parent, const char *name, const char *path)
{
    struct stat info;
    clv_json *entry = clv_json_add_array(parent, name);
    clv_json_add_string(entry, NULL, path);
    if (!path || stat(path, &info)) return;
    clv_json_add_int(entry, NULL, (int64_t)info.st_size);
    clv_json_add_int(entry, NULL, (int64_t)info.st_mtim.tv_sec);
    clv_json_add_int(entry, NULL, info.st_mtim.tv_nsec);
}

static char *make_key(const clv_probe_report *report, const clv_probe_icd *driver)
{
    char boot[64];
    struct utsname name = { .release = "" };
    clv_json *key = clv_json_array();
    uname(&name);
    clv_small_read("", boot, sizeof boot, "/proc/sys/kernel/random/boot_id");
    clv_json_add_string(key, NULL, "3"); /* version of the key's format and of the check */
    clv_json_add_string(key, NULL, name.release);
    clv_json_add_string(key, NULL, boot);
    add_file(key, NULL, report->loader_path);
    add_file(key, NULL, driver->file);
    clv_json_add_string(key, NULL, driver->library);
    for (size_t i = 0; i < CLV_LEN(variables); ++i)
        clv_json_add_string(key, NULL, getenv(variables[i]));
    char *text = clv_json_text(key, true);
    clv_json_free(key);
    return text;
}

static bool make_path(const char *key, char *path, size_t capacity)
{
    char cache[PATH_MAX - 96], folder[PATH_MAX - 64], hex[65];
    clv_cache_dir(cache, sizeof cache);
    snprintf(folder, sizeof folder, "%s/drivers", cache);
    if (!*cache || clv_dir_make_private(folder)) return false;
    const clv_digest digest = clv_sha256(key, strlen(key));
    clv_digest_hex(&digest, hex);
    const int length = snprintf(path, capacity, "%s/%.24s.json", folder, hex);
    return length > 0 && (size_t)length < capacity;
}

/* ---- on disk --------------------------------------------------------------------------------- */

/* Returns whether the library that was judged is still in its place and unchanged. */
static bool is_the_same_file(const clv_json *recorded)
{
    clv_json *now = clv_json_array();
    add_file(now, NULL, clv_json_string(clv_json_at(recorded, 0), NULL));
    char *a = clv_json_text(recorded, true), *b = clv_json_text(clv_json_at(now, 0), true);
    const bool same = a && b && strcmp(a, b) == 0;
    clv_json_text_free(a), clv_json_text_free(b);
    clv_json_free(now);
    return same;
}

static clv_verdict read_verdict(const clv_json *root, const char *key, char *reason, char *repeats)
{
    const bool good = clv_json_bool(clv_json_get(root, "good"), false);
    const bool for_good = clv_json_bool(clv_json_get(root, "for_good"), false);
    const int64_t age = (int64_t)time(NULL) - clv_json_int(clv_json_get(root, "time"), 0);
    if (strcmp(clv_json_string(clv_json_get(root, "key"), ""), key) != 0 ||
        !is_the_same_file(clv_json_get(root, "library")) ||
        (!for_good && (age < 0 || age > BAD_HOLDS_S)))
        return CLV_VERDICT_NONE;
    if (!good)
        clv_copy_string(reason, CLV_VERDICT_REASON,
                        clv_json_string(clv_json_get(root, "reason"), "broken"));
    clv_copy_string(repeats, CLV_VERDICT_LIBRARY,
                    clv_json_string(clv_json_get(root, "repeats"), ""));
    return good ? CLV_VERDICT_GOOD : CLV_VERDICT_BAD;
}

clv_verdict clv_verdict_recall(const clv_probe_report *report, size_t icd,
                               char reason[CLV_VERDICT_REASON], char repeats[CLV_VERDICT_LIBRARY])
{
    char path[PATH_MAX], *text = NULL, *key = make_key(report, &report->icds[icd]);
    clv_verdict verdict = CLV_VERDICT_NONE;
    clv_json *root = NULL;
    size_t length;
    reason[0] = repeats[0] = '\0';
    if (key && make_path(key, path, sizeof path) && access(path, R_OK) == 0 &&
        clv_file_read_plain(path, VERDICT_LIMIT, &text, &length) == CLV_OK &&
        clv_json_parse(path, text, length, &root) == CLV_OK)
        verdict = read_verdict(root, key, reason, repeats);
    clv_json_free(root);
    clv_free(text);
    clv_json_text_free(key);
    return verdict;
}

static void keep(const clv_machine *machine, size_t icd)
{
    const clv_probe_report *report = &machine->report;
    const clv_probe_icd *driver = &report->icds[icd];
    char path[PATH_MAX], reason[CLV_VERDICT_REASON];
    const bool good = clv_verdict_judge(report, icd, reason) == CLV_VERDICT_GOOD;
    /* the failure may be temporary, so the next run tries again */
    if (!good && machine->hindered) return;
    char *text = NULL, *key = make_key(report, driver);
    if (!key || !make_path(key, path, sizeof path)) {
        clv_json_text_free(key);
        return;
    }
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.driver-verdict/1");
    clv_json_add_string(root, "key", key);
    add_file(root, "library", driver->library_path ? driver->library_path : driver->library);
    clv_json_add_bool(root, "good", good);
    /* a missing library may be installed at any time, so that verdict expires */
    clv_json_add_bool(root, "for_good", good && strcmp(driver->status, "missing") != 0);
    clv_json_add_string(root, "reason", reason);
    clv_json_add_string(root, "repeats", clv_verdict_repeats(report, icd));
    clv_json_add_int(root, "time", (int64_t)time(NULL));
    text = clv_json_text(root, false);
    if (text && clv_file_write_private(path, text, strlen(text))) clv_cache_lost();
    clv_json_text_free(text), clv_json_text_free(key);
    clv_json_free(root);
}

void clv_verdicts_keep(const clv_machine *machine, const bool *wanted)
{
    const clv_probe_report *report = &machine->report;
    for (size_t i = 0; i < report->icd_count; ++i)
        if ((!wanted || wanted[i]) && report->icds[i].library) keep(machine, i);
}

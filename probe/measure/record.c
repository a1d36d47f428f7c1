/* SPDX-License-Identifier: Apache-2.0 */
/* Records the results of checks and measurements on disk, one file per device and driver. */
#include "probe/measure/record.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "probe/report/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_LIMIT = 1 << 20, FAILURE_HOLDS_S = 3600 };

/* Must be increased whenever results of the check or the bench change their meaning. */
static const char protocol_version[] = "1";

/* Makes the key of a record from every fact that differs between drivers, cards or processors. */
static clv_json *make_key(const clv_probe_host *host, const clv_probe_platform *platform,
                          const clv_probe_device *device)
{
    clv_json *key = clv_json_object();
    clv_json_add_string(key, "protocol", protocol_version);
    clv_json_add_string(key, "platform", platform->name);
    clv_json_add_string(key, "platform_version", platform->version);
    clv_json_add_string(key, "device", device->name);
    clv_json_add_string(key, "vendor", device->vendor);
    clv_json_add_string(key, "version", device->version);
    clv_json_add_string(key, "driver", device->driver_version);
    clv_json_add_string(key, "pci", device->pci_address);
    clv_json_add_int(key, "ordinal", device->ordinal);
    clv_json_add_string(key, "kernel", host->kernel);
    clv_json_add_string(key, "cpu", host->cpu_model);
    clv_json_add_int(key, "threads", host->threads_allowed);
    /* OpenCL layers may change results */
    clv_json_add_string(key, "layers", getenv("OPENCL_LAYERS"));
    return key;
}

/* Writes the record's path, or "" if there is no cache directory. */
static void record_path(const char *key, char *folder, size_t folder_capacity, char *path,
                        size_t capacity)
{
    char cache[PATH_MAX - 16], hex[65];
    folder[0] = path[0] = '\0';
    clv_cache_dir(cache, sizeof cache);
    if (!*cache) return;
    const clv_digest digest = clv_sha256(key, strlen(key));
    clv_digest_hex(&digest, hex);
    const int length = snprintf(folder, folder_capacity, "%s/devices", cache);
    if (length < 0 || (size_t)length >= folder_capacity)
        folder[0] = '\0';
    else
        snprintf(path, capacity, "%s/%.32s.json", folder, hex);
}

/* Returns whether a record is out of date. A failed check counts for an hour only, because its cause may have been
 * temporary, such as other processes holding the memory; one from the future, before the clock was set back, does not
 * count. A crash counts until something changes, because another check would crash the process again. */
static bool is_stale(const clv_probe_check *check, const char *path)
{
    struct stat info;
    if (!check->done || check->ok || check->crashed) return false;
    if (stat(path, &info)) return true;
    const time_t age = time(NULL) - info.st_mtime;
    return age < 0 || age > FAILURE_HOLDS_S;
}

static void load(clv_machine *machine, clv_probe_device *device)
{
    char folder[PATH_MAX], path[PATH_MAX + 64], *text = NULL, *found = NULL;
    clv_json *root = NULL;
    size_t length;
    clv_json *key = make_key(&machine->report.host, &machine->platforms[device->platform], device);
    char *wanted = clv_json_text(key, true);
    if (wanted) record_path(wanted, folder, sizeof folder, path, sizeof path);
    if (!wanted || !*path || access(path, R_OK) || clv_dir_make_private(folder) ||
        clv_file_read_plain(path, RECORD_LIMIT, &text, &length) ||
        clv_json_parse(path, text, length, &root))
        goto cleanup;
    found = clv_json_text(clv_json_get(root, "key"), true);
    if (!found || strcmp(found, wanted) != 0) goto cleanup;
    if (!device->check.done)
        (void)clv_report_read_check(machine, clv_json_get(root, "check"), &device->check);
    if (is_stale(&device->check, path)) device->check = clv_device_unknown().check;
    if (!device->measured.date)
        (void)clv_report_read_rates(machine, clv_json_get(root, "measured"), &device->measured);
cleanup:
    clv_json_text_free(found), clv_json_text_free(wanted);
    clv_json_free(root), clv_json_free(key);
    clv_free(text);
}

void clv_records_load(clv_machine *machine)
{
    for (size_t i = 0; i < machine->report.device_count; ++i)
        load(machine, &machine->devices[i]);
}

clv_status clv_record_save(const clv_probe_host *host, const clv_probe_platform *platform,
                           const clv_probe_device *device)
{
    char folder[PATH_MAX], path[PATH_MAX + 64];
    clv_json *root = clv_json_object(), *key = make_key(host, platform, device);
    char *name = clv_json_text(key, true), *text = NULL;
    clv_status status = CLV_OK;
    if (!name)
        status = clv_fail(CLV_E_MEMORY, "record: out of memory");
    else
        record_path(name, folder, sizeof folder, path, sizeof path);
    if (status || !*path) {
        clv_json_free(key);
        goto cleanup;
    }
    clv_json_add_string(root, "schema", "cleave.device-record/1");
    clv_json_add(root, "key", key);
    clv_report_write_check(root, &device->check);
    clv_report_write_rates(root, &device->measured);
    text = clv_json_text(root, false);
    if (!text) status = clv_fail(CLV_E_MEMORY, "record: out of memory");
    if (!status) status = clv_dir_make_private(folder);
    if (!status) status = clv_file_write_private(path, text, strlen(text));
cleanup:
    clv_json_text_free(name), clv_json_text_free(text);
    clv_json_free(root);
    return status;
}

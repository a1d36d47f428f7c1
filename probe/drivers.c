/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which OpenCL drivers may be loaded into this process. */
#define _GNU_SOURCE
#include "probe/drivers.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temporary.h"
#include "probe/judge/decide.h"
#include "probe/host/host.h"
#include "probe/opencl/icd.h"
#include "probe/helper/isolate.h"
#include "probe/measure/measure.h"
#include "probe/verdict.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_NAME = 240 }; /* bytes of the name of an .icd file */

/* An installed driver, and the decision about it. */
typedef struct suspect {
    clv_verdict verdict;
    char reason[CLV_VERDICT_REASON];
    /* library of the better driver for the same devices; "": the driver has devices of its own */
    char repeats[CLV_VERDICT_LIBRARY];
    bool idle; /* superfluous, because the driver `repeats` offers its devices */
} suspect;

/* Returns whether the driver can be left out. It cannot if the loader is itself a driver or finds drivers on its
 * own. */
static bool can_be_left_out(const clv_probe_icd *icd)
{
    return icd->library != NULL;
}

/* Enumerates and checks the drivers in `unknown`, and records the results. */
static clv_status find_out(clv_machine *machine, const clv_probe_options *options,
                           const bool *unknown, suspect *suspects)
{
    const clv_orders none = { 0 };
    const clv_probe_options check = {
        .size = sizeof check,
        .isolate = true,
        .check = true,
        .helper = options->helper,
        .timeout_s = options->timeout_s,
        .progress = options->progress,
        .progress_user = options->progress_user,
    };
    clv_host_facts(machine, ""); /* the key of a record contains the processor's name */
    CLV_TRY(clv_isolated_ask(machine, &check, unknown));
    CLV_TRY(clv_decide(machine, &none));
    CLV_TRY(clv_measure_devices(machine, &check, NULL));
    /* decides again, now that the checks have shown which devices work */
    CLV_TRY(clv_decide(machine, &none));
    for (size_t i = 0; i < machine->report.icd_count; ++i) {
        if (!unknown[i]) continue;
        const char *repeats = clv_verdict_repeats(&machine->report, i);
        suspects[i].verdict = clv_verdict_judge(&machine->report, i, suspects[i].reason);
        clv_copy_string(suspects[i].repeats, sizeof suspects[i].repeats, repeats ? repeats : "");
    }
    clv_verdicts_keep(machine, unknown);
    return CLV_OK;
}

/* Judges all drivers. Whether one driver makes another superfluous can only be decided after both have been checked, so
 * with `lean` either all drivers are checked or none. */
static clv_status judge_all(clv_machine *machine, const clv_probe_options *options, bool lean,
                            suspect *suspects)
{
    bool any = false;
    const size_t count = machine->report.icd_count;
    bool *unknown = clv_zalloc(count, sizeof *unknown);
    if (!unknown) return clv_fail(CLV_E_MEMORY, "drivers: out of memory");
    for (size_t i = 0; i < count; ++i) {
        if (!can_be_left_out(&machine->icds[i])) continue;
        suspects[i].verdict =
            clv_verdict_recall(&machine->report, i, suspects[i].reason, suspects[i].repeats);
        unknown[i] = suspects[i].verdict == CLV_VERDICT_NONE;
        any = any || unknown[i];
    }
    for (size_t i = 0; i < count && any && lean; ++i)
        unknown[i] = can_be_left_out(&machine->icds[i]);
    const clv_status status = any ? find_out(machine, options, unknown, suspects) : CLV_OK;
    clv_free(unknown);
    return status;
}

/* Marks the drivers whose devices are all offered by a driver that stays; returns the number of marked drivers. */
static size_t find_idle(const clv_machine *machine, suspect *suspects)
{
    size_t idle = 0;
    for (size_t i = 0; i < machine->report.icd_count; ++i)
        for (size_t j = 0; j < machine->report.icd_count && *suspects[i].repeats; ++j) {
            const char *library = machine->icds[j].library;
            if (suspects[i].verdict != CLV_VERDICT_GOOD ||
                suspects[j].verdict != CLV_VERDICT_GOOD || *suspects[j].repeats || !library ||
                strcmp(library, suspects[i].repeats) != 0)
                continue;
            clv_log(CLV_LOG_INFO,
                    "%s is not loaded: it offers only the processor cores that %s offers, too",
                    machine->icds[i].library, library);
            suspects[i].idle = true;
            ++idle;
            break;
        }
    return idle;
}

static bool stays(const clv_machine *machine, const suspect *suspects, size_t i)
{
    return suspects[i].verdict != CLV_VERDICT_BAD && !suspects[i].idle && machine->icds[i].library;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Writes the name of the .icd file of a driver that stays: 001-pocl.icd. `number` counts the drivers that stay. */
static void file_name(const clv_probe_icd *icd, size_t number, char name[FILE_NAME])
{
    const char *from = icd->file ? icd->file : icd->library, *slash = strrchr(from, '/');
    snprintf(name, FILE_NAME, "%03zu-%.200s%s", number, slash ? slash + 1 : from,
             icd->file ? "" : ".icd");
}

/* Derives the folder's name from the names and contents of its files, so that no two programs want other files in one
 * folder. */
static void folder_name(const clv_machine *machine, const suspect *suspects, char *name,
                        size_t capacity)
{
    char hex[65], file[FILE_NAME];
    clv_text all = { 0 };
    for (size_t i = 0, number = 0; i < machine->report.icd_count; ++i) {
        if (!stays(machine, suspects, i)) continue;
        file_name(&machine->icds[i], number++, file);
        clv_text_add(&all, "%s\n%s\n", file, machine->icds[i].library);
    }
    const clv_digest digest = clv_sha256(clv_text_get(&all), all.length);
    clv_text_clear(&all);
    clv_digest_hex(&digest, hex);
    clv_copy_string(name, CLV_MIN(capacity, (size_t)25), hex);
}

static clv_status make_folder(const char *name, char *folder, size_t capacity)
{
    char cache[PATH_MAX - 96];
    clv_cache_dir(cache, sizeof cache);
    snprintf(folder, capacity, "%s/drivers/%s.d", cache, name);
    if (*cache && clv_dir_make_private(folder) == CLV_OK) return CLV_OK;
    if (clv_temporary_folder("vendors", folder, capacity)) return CLV_OK;
    return clv_fail(CLV_E_IO, "drivers: cannot make a temporary folder: %s", strerror(errno));
}

/* Writes one .icd file per driver that stays, in the order of the list and under the driver's own name. */
static clv_status write_good(const clv_machine *machine, const suspect *suspects,
                             const char *folder)
{
    for (size_t i = 0, number = 0; i < machine->report.icd_count; ++i) {
        const clv_probe_icd *icd = &machine->icds[i];
        char path[PATH_MAX], name[FILE_NAME], line[CLV_ICD_NAME + 2];
        if (!stays(machine, suspects, i)) continue;
        const int length = snprintf(line, sizeof line, "%s\n", icd->library);
        file_name(icd, number++, name);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        CLV_TRY(clv_file_write_private(path, line, (size_t)length));
    }
    return CLV_OK;
}

/* Returns the driver's name for messages. If the command itself made the .icd file, which users do not know, this is
 * the library's name. */
static const char *name_of(const clv_probe_icd *icd)
{
    char cache[PATH_MAX];
    clv_cache_dir(cache, sizeof cache);
    return icd->file && !(*cache && clv_starts_with(icd->file, cache)) ? icd->file : icd->library;
}

clv_status clv_drivers_vet(const clv_probe_options *options, bool lean, char *folder,
                           size_t capacity, clv_text *left_out)
{
    char name[32];
    folder[0] = '\0';
    clv_machine *machine = clv_machine_create();
    if (!machine) return clv_fail(CLV_E_MEMORY, "drivers: out of memory");
    clv_isolated_list(machine);
    const size_t count = machine->report.icd_count;
    suspect *suspects = clv_zalloc(count, sizeof *suspects);
    clv_status status = suspects ? judge_all(machine, options, lean, suspects)
                                 : clv_fail(CLV_E_MEMORY, "drivers: out of memory");
    size_t bad = 0;
    for (size_t i = 0; !status && i < count; ++i) {
        if (suspects[i].verdict == CLV_VERDICT_BAD)
            clv_text_add(left_out, "%s%s: %s", bad++ ? "\n" : "", name_of(&machine->icds[i]),
                         suspects[i].reason);
    }
    if (!status && lean) bad += find_idle(machine, suspects);
    if (bad) {
        folder_name(machine, suspects, name, sizeof name);
        status = make_folder(name, folder, capacity);
        if (!status) status = write_good(machine, suspects, folder);
    }
    if (status) folder[0] = '\0';
    clv_free(suspects);
    clv_machine_free(machine);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of a new context: its options, and environment variables where an option is not given. */
#include "runtime/context/wishes.h"

#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "probe/judge/select.h"
#include "runtime/context/devices.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static clv_status read_mode(const clv_context_options *options, clv_wishes *w)
{
    const char *name = clv_environment("CLEAVE_MODE");
    int index;
    w->mode = options->mode;
    if ((unsigned)w->mode > CLV_MODE_REFERENCE)
        return clv_fail(CLV_E_ARGUMENT, "the mode is %d; expected a clv_mode from 0 to %d",
                        (int)w->mode, CLV_MODE_REFERENCE);
    if (w->mode != CLV_MODE_AUTO || options->mode_given || !name) return CLV_OK;
    CLV_TRY(clv_environment_choice("CLEAVE_MODE", CLV_MODES, &index));
    CLV_TRY(clv_mode_parse(name, &w->mode));
    w->mode_is_set = w->mode != CLV_MODE_AUTO;
    return CLV_OK;
}

static clv_status blame(clv_status status, const char *variables)
{
    clv_error why = { 0 };
    clv_error_take(&why, status);
    const clv_status told = clv_fail(status, "%s (asked for by %s)", why.message, variables);
    clv_error_clear(&why);
    return told;
}

static clv_status read_devices(const clv_context_options *options, clv_wishes *w)
{
    w->devices = options->devices && *options->devices ? options->devices : NULL;
    if (w->devices) return clv_check_selection(w->devices);
    if (options->devices || options->devices_given) return CLV_OK;
    w->devices = clv_environment("CLEAVE_DEVICE");
    if (!w->devices) return CLV_OK;
    w->device_is_set = true;
    const clv_status status = clv_check_selection(w->devices);
    return status ? blame(status, "CLEAVE_DEVICE") : CLV_OK;
}

static clv_status read_schedule(const clv_context_options *options, clv_wishes *w)
{
    int index;
    w->schedule = options->schedule;
    if ((unsigned)w->schedule > CLV_SCHEDULE_HGUIDED)
        return clv_fail(CLV_E_ARGUMENT, "the schedule is %d; expected a clv_schedule from 0 to %d",
                        (int)w->schedule, CLV_SCHEDULE_HGUIDED);
    if (w->schedule != CLV_SCHEDULE_ADAPTIVE || options->schedule_given) return CLV_OK;
    CLV_TRY(clv_environment_choice("CLEAVE_SCHED", CLV_SCHEDULES, &index));
    if (index >= 0) w->schedule = (clv_schedule)index;
    return CLV_OK;
}

static clv_status read_memory(const clv_context_options *options, clv_wishes *w)
{
    const char *text = clv_environment("CLEAVE_MEM_LIMIT");
    const double fraction = options->memory_fraction;
    w->memory_bytes = options->memory_bytes;
    w->memory_fraction = fraction;
    if (fraction < 0 || fraction > 1 || fraction != fraction)
        return clv_fail(CLV_E_ARGUMENT,
                        "the memory fraction is %g; expected more than 0 and at most 1", fraction);
    if (w->memory_bytes || fraction > 0 || options->memory_given || !text) return CLV_OK;
    if (clv_parse_percent(text, &w->memory_fraction)) return CLV_OK;
    if (clv_parse_bytes(text, &w->memory_bytes) && w->memory_bytes) return CLV_OK;
    return clv_environment_refuse("CLEAVE_MEM_LIMIT", "a size such as 2G or a share such as 50%");
}

static clv_status read_compilers(const clv_context_options *options, clv_wishes *w)
{
    const char *text = clv_environment("CLEAVE_COMPILERS");
    uint64_t number = UINT_MAX;
    w->compilers = options->compilers ? options->compilers : UINT_MAX;
    if (options->compilers || !text) return CLV_OK;
    if (!clv_parse_u64(text, &number) || !number || number > UINT_MAX)
        return clv_environment_refuse("CLEAVE_COMPILERS", "a number of processes from 1 up");
    w->compilers = (unsigned)number;
    return CLV_OK;
}

/* Fails before the work starts if the trace file cannot be written, instead of after it. */
static clv_status check_trace(void)
{
    const char *path = clv_environment("CLEAVE_TRACE");
    char expected[300];
    if (!path || (strlen(path) < CLV_PATH_MOST && clv_file_check(path) == CLV_OK)) return CLV_OK;
    if (strlen(path) < CLV_PATH_MOST)
        snprintf(expected, sizeof expected, "a file that can be written (%.200s)",
                 clv_error_message());
    else
        snprintf(expected, sizeof expected, "a name of at most %d bytes", CLV_PATH_MOST - 1);
    return clv_environment_refuse("CLEAVE_TRACE", expected);
}

clv_status clv_wishes_read(const clv_context_options *options, clv_wishes *w)
{
    *w = (clv_wishes){ .mode = CLV_MODE_AUTO };
    CLV_TRY(clv_environment_check());
    CLV_TRY(read_mode(options, w));
    CLV_TRY(read_devices(options, w));
    CLV_TRY(read_schedule(options, w));
    CLV_TRY(read_compilers(options, w));
    CLV_TRY(check_trace());
    return read_memory(options, w);
}

clv_status clv_wishes_choose(const clv_wishes *w, const clv_probe_report *report, size_t *chosen,
                             size_t *count)
{
    const clv_status status = clv_choose_devices(report, w->mode, w->devices, chosen, count);
    if (!status || (!w->mode_is_set && !w->device_is_set)) return status;
    return blame(status, !w->mode_is_set     ? "CLEAVE_DEVICE"
                         : !w->device_is_set ? "CLEAVE_MODE"
                                             : "CLEAVE_MODE and CLEAVE_DEVICE");
}

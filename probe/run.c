/* SPDX-License-Identifier: Apache-2.0 */
/* clv_probe_run: collects the facts, then makes the decisions. */
#include <cleave/probe.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/options.h"
#include "probe/judge/decide.h"
#include "probe/memory/free_memory.h"
#include "probe/host/host.h"
#include "probe/opencl/icd.h"
#include "probe/helper/isolate.h"
#include "probe/machine.h"
#include "probe/measure/measure.h"
#include "probe/opencl/opencl.h"
#include "probe/memory/own.h"
#include "probe/measure/record.h"
#include "probe/judge/select.h"
#include "probe/report/snapshot.h"
#include "probe/verdict.h"

#include <stdlib.h>
#include <string.h>

/* Reads from the environment the orders that the caller left open. */
static clv_status read_orders(const clv_probe_options *options, clv_orders *orders)
{
    const char *mode = clv_environment("CLEAVE_MODE"), *devices = clv_environment("CLEAVE_DEVICE");
    int index;
    *orders = (clv_orders){
        .mode = options->mode,
        .mode_by = options->mode_by ? options->mode_by : "the caller",
        .devices = options->devices,
        .devices_by = options->devices_by ? options->devices_by : "the caller",
    };
    if (orders->mode == CLV_MODE_AUTO && mode && !options->mode_given) {
        CLV_TRY(clv_environment_choice("CLEAVE_MODE", CLV_MODES, &index));
        CLV_TRY(clv_mode_parse(mode, &orders->mode));
        orders->mode_by = "CLEAVE_MODE";
    }
    if (!orders->devices && devices && !options->devices_given) {
        orders->devices = devices;
        orders->devices_by = "CLEAVE_DEVICE";
    }
    if (orders->devices && !*orders->devices) orders->devices = NULL;
    return orders->devices ? clv_check_selection(orders->devices) : CLV_OK;
}

static void look_in_process(clv_machine *machine)
{
    clv_opencl_begin();
    clv_loader_facts(machine, true);
    clv_icds_list(machine);
    clv_opencl_enumerate(machine);
    clv_opencl_end();
    clv_free_memory_facts(machine, 0, "");
}

static clv_status find_facts(clv_machine *machine, const clv_probe_options *options)
{
    if (options->simulate) return clv_snapshot_load(machine, options->simulate, options->scenario);
    if (options->isolate) return clv_isolated_enumerate(machine, options);
    const bool plain = options->mode_given && options->mode == CLV_MODE_REFERENCE;
    if (plain && clv_is_forked(clv_opencl_born())) { /* plain C works even if drivers do not */
        clv_host_facts(machine, "");
        return CLV_OK;
    }
    CLV_TRY(clv_fork_check(clv_opencl_born(), "probe"));
    clv_host_facts(machine, "");
    look_in_process(machine);
    return CLV_OK;
}

/* Clears every fact that differs between two runs on an unchanged machine. */
static void forget_moment(clv_machine *machine)
{
    clv_probe_report *report = &machine->report;
    report->time_utc = NULL;
    report->duration_s = -1;
    report->host.memory_available_bytes = CLV_UNKNOWN;
    for (size_t i = 0; i < report->icd_count; ++i)
        machine->icds[i].duration_s = -1;
    for (size_t i = 0; i < report->device_count; ++i) {
        clv_probe_device *device = &machine->devices[i];
        device->free_bytes = device->own_bytes = CLV_UNKNOWN;
        device->free_source = device->free_time = device->utilisation_source = NULL;
        device->utilisation_percent = -1;
        device->check.build_s = device->check.run_s = -1;
    }
}

/* Counts the memory that this process's contexts hold. They register it under the devices' ids, which have been
 * assigned by now. */
static void count_own(clv_machine *machine)
{
    for (size_t i = 0; i < machine->report.device_count; ++i)
        machine->devices[i].own_bytes = clv_own_bytes(machine->devices[i].id);
}

/* Checks and measures the devices; if the user named devices, only these. */
static clv_status measure(clv_machine *machine, const clv_probe_options *options,
                          const clv_orders *orders)
{
    bool *wanted = NULL;
    clv_status status = CLV_OK;
    if (!options->check && !options->bench && !options->measure_free) return CLV_OK;
    if (orders->devices) {
        wanted = clv_zalloc(machine->report.device_count, sizeof *wanted);
        if (!wanted) return clv_fail(CLV_E_MEMORY, "probe: not enough memory for the report");
        status = clv_select_devices(&machine->report, orders->devices, wanted);
    }
    if (!status) status = clv_measure_devices(machine, options, wanted);
    clv_free(wanted);
    if (!status) status = clv_decide(machine, orders);
    if (!status && options->check && options->isolate && !orders->devices)
        clv_verdicts_keep(machine, NULL);
    return status;
}

clv_status clv_probe_run(const clv_probe_options *given, clv_probe_report **report)
{
    const double start = clv_now();
    clv_probe_options options;
    clv_orders orders;
    char now[32];
    *report = NULL;
    CLV_TRY(clv_take_struct(&options, sizeof options, given, "clv_probe_run", "clv_probe_options"));
    CLV_TRY(read_orders(&options, &orders));

    clv_machine *machine = clv_machine_create();
    if (!machine) return clv_fail(CLV_E_MEMORY, "probe: not enough memory for the report");
    clv_utc(now, sizeof now);
    machine->report.time_utc = clv_machine_keep(machine, now);
    clv_status status = find_facts(machine, &options);
    if (!status && !options.simulate && !options.forget) clv_records_load(machine);
    if (!status) status = clv_decide(machine, &orders);
    if (!status) status = measure(machine, &options, &orders);
    if (!options.simulate) count_own(machine);
    machine->report.duration_s = clv_now() - start;
    if (options.reproducible) forget_moment(machine);
    if (status)
        clv_machine_free(machine);
    else
        *report = &machine->report;
    return status;
}

const clv_probe_device *clv_probe_report_device(const clv_probe_report *report, size_t index)
{
    return report && index < report->device_count ? &report->devices[index] : NULL;
}

const clv_probe_platform *clv_probe_report_platform(const clv_probe_report *report, size_t index)
{
    return report && index < report->platform_count ? &report->platforms[index] : NULL;
}

const clv_probe_icd *clv_probe_report_icd(const clv_probe_report *report, size_t index)
{
    return report && index < report->icd_count ? &report->icds[index] : NULL;
}

const clv_probe_warning *clv_probe_report_warning(const clv_probe_report *report, size_t index)
{
    return report && index < report->warning_count ? &report->warnings[index] : NULL;
}

void clv_probe_free(clv_probe_report *report)
{
    clv_machine_free((clv_machine *)report); /* the report is the machine's first member */
}

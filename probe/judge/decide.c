/* SPDX-License-Identifier: Apache-2.0 */
/* Turns raw facts into the finished report. */
#include "probe/judge/decide.h"

#include "base/alloc.h"
#include "base/error.h"
#include "probe/judge/classify.h"
#include "probe/judge/duplicates.h"
#include "probe/judge/mode.h"
#include "probe/judge/quirks.h"
#include "probe/judge/select.h"

/* Fills in the free memory of devices that use the host's memory: what the host has available. */
static void share_host_memory(const clv_probe_host *host, clv_probe_device *device)
{
    if (device->device_class == CLV_CLASS_DISCRETE_GPU ||
        device->device_class == CLV_CLASS_ACCELERATOR || device->free_bytes != CLV_UNKNOWN ||
        device->global_bytes == CLV_UNKNOWN || host->memory_available_bytes == CLV_UNKNOWN)
        return;
    device->free_bytes = CLV_MIN(host->memory_available_bytes, device->global_bytes);
    device->free_source = "the host's available memory";
}

static clv_status select_devices(const clv_machine *machine, const clv_orders *orders, bool *chosen)
{
    const clv_status status = clv_select_devices(&machine->report, orders->devices, chosen);
    if (!status) return CLV_OK;
    clv_error why = { 0 };
    clv_error_take(&why, status);
    const clv_status told =
        clv_fail(status, "%s (asked for by %s)", why.message, orders->devices_by);
    clv_error_clear(&why);
    return told;
}

static clv_status decide_mode(clv_machine *machine, const clv_orders *orders, bool *chosen)
{
    const clv_mode_order order = {
        .mode = orders->mode,
        .mode_by = orders->mode_by,
        .chosen = orders->devices ? chosen : NULL,
        .devices = orders->devices,
        .devices_by = orders->devices_by,
    };
    if (orders->devices) CLV_TRY(select_devices(machine, orders, chosen));
    return clv_decide_mode(machine, &order);
}

clv_status clv_decide(clv_machine *machine, const clv_orders *orders)
{
    clv_probe_report *report = &machine->report;
    clv_machine_clear_warnings(machine);
    for (size_t i = 0; i < report->platform_count; ++i)
        clv_classify_platform(&machine->platforms[i]);
    for (size_t i = 0; i < report->device_count; ++i) {
        clv_probe_device *device = &machine->devices[i];
        const clv_probe_platform *platform = &machine->platforms[device->platform];
        clv_classify_device(machine, platform, device);
        clv_judge_usable(machine, device);
        clv_apply_quirks(machine, platform, device);
        share_host_memory(&report->host, device);
    }
    clv_merge_duplicates(machine);
    if (machine->failed) return clv_fail(CLV_E_MEMORY, "probe: not enough memory for the report");

    bool *chosen = clv_zalloc(report->device_count, sizeof *chosen);
    if (!chosen) return clv_fail(CLV_E_MEMORY, "probe: not enough memory for the report");
    clv_status status = decide_mode(machine, orders, chosen);
    clv_free(chosen);
    if (!status) clv_warn_all(machine);
    if (!status && machine->failed)
        status = clv_fail(CLV_E_MEMORY, "probe: not enough memory for the report");
    return status;
}

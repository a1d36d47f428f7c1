/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the devices of a context from the probe's report and the caller's wishes, without touching a device. */
#include "runtime/context/devices.h"

#include "base/alloc.h"
#include "base/error.h"
#include "probe/judge/select.h"

#include <stdint.h>

static bool is_gpu(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_DISCRETE_GPU ||
           device->device_class == CLV_CLASS_INTEGRATED_GPU;
}

/* Returns whether device `a` is used before device `b`: discrete GPUs first, then integrated GPUs, CPUs and the rest.
 * Within a class the device with the higher measured rate comes first. */
static bool comes_before(const clv_probe_device *a, const clv_probe_device *b)
{
    static const int rank[] = { [CLV_CLASS_DISCRETE_GPU] = 0,
                                [CLV_CLASS_INTEGRATED_GPU] = 1,
                                [CLV_CLASS_CPU] = 2,
                                [CLV_CLASS_ACCELERATOR] = 3,
                                [CLV_CLASS_SOFTWARE] = 4 };
    if (rank[a->device_class] != rank[b->device_class])
        return rank[a->device_class] < rank[b->device_class];
    return a->measured.fp32_gflops > b->measured.fp32_gflops;
}

static void sort_in_order_of_use(const clv_probe_report *report, size_t *chosen, size_t count)
{
    for (size_t i = 1; i < count; ++i) /* insertion sort: few items, stable */
        for (size_t j = i;
             j && comes_before(&report->devices[chosen[j]], &report->devices[chosen[j - 1]]); --j) {
            const size_t swap = chosen[j];
            chosen[j] = chosen[j - 1];
            chosen[j - 1] = swap;
        }
}

static bool any_of_class(const clv_probe_report *report, const bool *picked, bool gpu)
{
    for (size_t i = 0; i < report->device_count; ++i)
        if (picked[i] && is_gpu(&report->devices[i]) == gpu) return true;
    return false;
}

/* Checks a mode that the caller ordered. Fails if none of the picked devices is of a kind that the mode needs. */
static clv_status check_mode(const clv_probe_report *report, clv_mode mode, const bool *picked)
{
    const bool gpu = any_of_class(report, picked, true),
               other = any_of_class(report, picked, false);
    if (((mode == CLV_MODE_GPU || mode == CLV_MODE_HYBRID) && !gpu) ||
        ((mode == CLV_MODE_CPU || mode == CLV_MODE_HYBRID) && !other)) {
        char *here = clv_devices_summary(report);
        const clv_status status = clv_fail(CLV_E_NO_DEVICE,
                                           "mode %s needs %s, but this machine has %s; mode auto "
                                           "uses what is there, and mode reference needs no OpenCL",
                                           clv_mode_name(mode),
                                           mode == CLV_MODE_HYBRID ? "a GPU and a CPU device"
                                           : mode == CLV_MODE_GPU  ? "a GPU that OpenCL shows"
                                                                   : "an OpenCL CPU device",
                                           here && *here ? here : "no device");
        clv_free(here);
        return status;
    }
    return CLV_OK;
}

clv_status clv_choose_devices(const clv_probe_report *report, clv_mode mode, const char *selection,
                              size_t *chosen, size_t *count)
{
    *count = 0;
    if (mode == CLV_MODE_REFERENCE) return CLV_OK;
    bool *picked = clv_zalloc(report->device_count, sizeof *picked);
    if (!picked) return clv_fail(CLV_E_MEMORY, "not enough memory to choose devices");

    static const char *const by_mode[] = {
        [CLV_MODE_CPU] = "cpu", [CLV_MODE_GPU] = "gpu", [CLV_MODE_HYBRID] = "gpu,cpu"
    };
    const bool ordered = mode != CLV_MODE_AUTO;
    clv_status status = CLV_OK;
    if (selection) {
        status = clv_select_devices(report, selection, picked);
        if (!status && ordered) { /* both were given: keep devices that match both */
            for (size_t i = 0; i < report->device_count; ++i)
                if ((mode == CLV_MODE_GPU && !is_gpu(&report->devices[i])) ||
                    (mode == CLV_MODE_CPU && is_gpu(&report->devices[i])))
                    picked[i] = false;
            status = check_mode(report, mode, picked);
        }
    } else {
        const clv_mode effective = ordered ? mode : report->mode.recommended;
        if (effective <= CLV_MODE_HYBRID && effective != CLV_MODE_AUTO) {
            status = clv_select_devices(report, by_mode[effective], picked);
            if (status && !ordered)
                status = CLV_OK; /* no device at all: the plain C path computes */
            else if (ordered) {
                const clv_status kinds = check_mode(report, mode, picked);
                if (kinds) status = kinds; /* the message of check_mode is clearer */
            }
        }
    }
    for (size_t i = 0; i < report->device_count && !status; ++i)
        if (picked[i]) chosen[(*count)++] = i;
    sort_in_order_of_use(report, chosen, *count);
    clv_free(picked);
    return status;
}

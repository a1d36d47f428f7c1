/* SPDX-License-Identifier: Apache-2.0 */
/* Decides between the modes cpu, hybrid and gpu from the facts and the user's wishes, and states the reason in one
 * sentence. */
#include "probe/judge/mode.h"

#include "base/alloc.h"
#include "base/error.h"
#include "probe/judge/classify.h"
#include "probe/judge/select.h"

#include <string.h>

/* Rule R6: a CPU with at least this share of the GPU's speed still shortens a job. */
static const double worthwhile_share = 0.2;

uint64_t clv_room_bytes(const clv_probe_device *device, uint64_t host_available_bytes)
{
    const uint64_t all = device->global_bytes, left = device->free_bytes;
    if (all == CLV_UNKNOWN) return CLV_UNKNOWN;
    if (device->device_class == CLV_CLASS_INTEGRATED_GPU)
        return host_available_bytes == CLV_UNKNOWN ? all : CLV_MIN(all, host_available_bytes / 2);
    return left != CLV_UNKNOWN && left / 9 < all / 10 ? left : all;
}

typedef struct choice {
    const clv_machine *machine;
    const clv_mode_order *order;
    size_t gpu, cpu; /* device indices; SIZE_MAX: no such device */
    uint64_t room;   /* memory of the GPU that a job may count on */
} choice;

static bool counts(const choice *c, size_t index)
{
    const clv_probe_device *device = &c->machine->devices[index];
    if (!device->usable) return false;
    return c->order->chosen ? c->order->chosen[index] : device->primary;
}

static int order_of(double a, double b)
{
    return (a > b) - (a < b);
}

/* Compares GPUs: discrete before integrated, then by memory, by precision and by measured rate. Never compares compute
 * units times clock, because these mean something else in every driver. Returns a positive number if a is better. */
static int compare_gpus(const choice *c, const clv_probe_device *a, const clv_probe_device *b)
{
    const uint64_t available = c->machine->report.host.memory_available_bytes;
    const int rules[] = {
        order_of(a->device_class == CLV_CLASS_DISCRETE_GPU,
                 b->device_class == CLV_CLASS_DISCRETE_GPU),
        order_of((double)(clv_room_bytes(a, available) + 1),
                 (double)(clv_room_bytes(b, available) + 1)),
        order_of(a->fp64 * 2 + a->fp16, b->fp64 * 2 + b->fp16),
        order_of(a->measured.fp32_gflops, b->measured.fp32_gflops),
    };
    for (size_t i = 0; i < CLV_LEN(rules); ++i)
        if (rules[i]) return rules[i];
    return 0;
}

static void find_best(choice *c)
{
    const clv_probe_device *devices = c->machine->devices;
    for (size_t i = 0; i < c->machine->report.device_count; ++i) {
        if (!counts(c, i)) continue;
        if (clv_is_gpu(&devices[i])) {
            if (c->gpu == SIZE_MAX || compare_gpus(c, &devices[i], &devices[c->gpu]) > 0)
                c->gpu = i;
        } else if (devices[i].device_class == CLV_CLASS_CPU ||
                   devices[i].device_class == CLV_CLASS_SOFTWARE) {
            if (c->cpu == SIZE_MAX || (devices[c->cpu].device_class == CLV_CLASS_SOFTWARE &&
                                       devices[i].device_class == CLV_CLASS_CPU))
                c->cpu = i;
        }
    }
    c->room = c->gpu == SIZE_MAX ? CLV_UNKNOWN
                                 : clv_room_bytes(&devices[c->gpu],
                                                  c->machine->report.host.memory_available_bytes);
}

static const char *name_of(const choice *c, size_t index)
{
    const char *name = c->machine->devices[index].name_clean;
    return name ? name : "the device";
}

static const char *platform_of(const choice *c, size_t index)
{
    const clv_probe_device *device = &c->machine->devices[index];
    const clv_probe_platform *platform = &c->machine->platforms[device->platform];
    if (platform->vendor_norm == CLV_VENDOR_POCL) return "PoCL";
    return platform->name ? platform->name : "an unnamed platform";
}

/* Writes "GeForce 310M is not usable (OpenCL 1.0, at least 1.2 needed)" for the first GPU that is not usable. */
static bool explain_unusable(const choice *c, clv_text *reason)
{
    for (size_t i = 0; i < c->machine->report.device_count; ++i) {
        const clv_probe_device *device = &c->machine->devices[i];
        if (!clv_is_gpu(device) || device->usable) continue;
        clv_text_add(reason, "%s cannot be used (%s)", name_of(c, i), device->unusable_reason);
        return true;
    }
    return false;
}

static void explain_no_gpu(const choice *c, clv_text *reason)
{
    const bool named = explain_unusable(c, reason);
    if (!named && c->cpu != SIZE_MAX) clv_text_add(reason, "no GPU with OpenCL");
    if (c->cpu == SIZE_MAX)
        clv_text_add(reason, "%sno OpenCL device, so the built-in C code computes",
                     named ? "; there is " : "");
    else
        clv_text_add(reason, "; %s computes through %s", name_of(c, c->cpu),
                     platform_of(c, c->cpu));
}

/* Writes the GPU's memory: "X has 11.6 GB", "X has 3.1 GB free of 11.6 GB" or "X may use 8 GB (half of ...)". */
static void explain_room(const choice *c, clv_text *reason)
{
    const clv_probe_device *device = &c->machine->devices[c->gpu];
    const uint64_t available = c->machine->report.host.memory_available_bytes;
    char room[16], all[16];
    if (c->room == CLV_UNKNOWN) {
        clv_text_add(reason, "%s does not tell how much memory it has", name_of(c, c->gpu));
        return;
    }
    clv_format_bytes(c->room, room);
    clv_text_add(reason, "%s", name_of(c, c->gpu));
    if (c->room == device->global_bytes)
        clv_text_add(reason, " has %s%s", room,
                     device->device_class == CLV_CLASS_INTEGRATED_GPU ? " of the host's memory"
                                                                      : "");
    else if (device->device_class == CLV_CLASS_INTEGRATED_GPU)
        clv_text_add(reason, " may use %s, half of the host's %s available", room,
                     clv_format_bytes(available, all));
    else
        clv_text_add(reason, " has %s free of %s", room,
                     clv_format_bytes(device->global_bytes, all));
}

static bool measured_share(const choice *c, double *share)
{
    if (c->cpu == SIZE_MAX || c->gpu == SIZE_MAX) return false;
    const double cpu = c->machine->devices[c->cpu].measured.fp32_gflops;
    const double gpu = c->machine->devices[c->gpu].measured.fp32_gflops;
    if (cpu <= 0 || gpu <= 0) return false;
    *share = cpu / gpu;
    return true;
}

static void warn_no_cpu(clv_machine *machine)
{
    clv_machine_warn(machine, "no_cpu_device", "apt install pocl-opencl-icd",
                     "no CPU device: the GPU works alone where both would work together");
}

/* Applies rules R1 to R6; writes the sentence of the reason without its full stop. */
static void decide_by_rules(clv_machine *machine, const choice *c, clv_probe_mode *mode,
                            clv_text *reason)
{
    double share = 0;
    const bool integrated =
        c->gpu != SIZE_MAX && machine->devices[c->gpu].device_class == CLV_CLASS_INTEGRATED_GPU;
    mode->recommended = CLV_MODE_CPU;
    mode->rule = "R1";
    if (c->gpu == SIZE_MAX) {
        explain_no_gpu(c, reason);
        return;
    }
    explain_room(c, reason);
    mode->rule = "R2";
    if (c->room == CLV_UNKNOWN) return;
    if (c->room < CLV_HYBRID_BYTES) {
        clv_text_add(reason, " (less than 2 GB)");
        if (clv_probe_has_word(machine->devices[c->gpu].quirks, "no_resizable_bar"))
            clv_text_add(reason, "; without resizable BAR the driver shows no more");
        return;
    }
    mode->rule = integrated ? "R3" : c->room < CLV_GPU_BYTES ? "R4" : "R5";
    clv_text_add(reason, integrated                ? " (integrated, at least 2 GB)"
                         : c->room < CLV_GPU_BYTES ? " (2 to 4 GB)"
                                                   : " (at least 4 GB)");
    mode->recommended = !integrated && c->room >= CLV_GPU_BYTES ? CLV_MODE_GPU : CLV_MODE_HYBRID;
    if (mode->recommended == CLV_MODE_HYBRID && c->cpu == SIZE_MAX) {
        mode->recommended = CLV_MODE_GPU;
        clv_text_add(reason, " and there is no CPU device");
        warn_no_cpu(machine);
    }
    if (mode->recommended == CLV_MODE_GPU && measured_share(c, &share) &&
        share > worthwhile_share) {
        mode->rule = "R6";
        mode->recommended = CLV_MODE_HYBRID;
        clv_text_add(reason, ", but %s reaches %.0f %% of its measured rate (over 20 %%)",
                     name_of(c, c->cpu), share * 100);
    }
}

static clv_status refuse(const choice *c, const char *needs)
{
    const clv_mode_order *order = c->order;
    char *summary = clv_devices_summary(&c->machine->report);
    const clv_status status =
        clv_fail(CLV_E_NO_DEVICE, "mode \"%s\" (set by %s) needs %s%s%s; this machine has %s",
                 clv_mode_name(order->mode), order->mode_by, needs, order->chosen ? " among " : "",
                 order->chosen ? order->devices : "", summary ? summary : "");
    clv_free(summary);
    return status;
}

/* Applies rule R0: the user's order. */
static clv_status obey(const choice *c, clv_probe_mode *mode, clv_text *reason)
{
    const clv_mode_order *order = c->order;
    const bool gpu = c->gpu != SIZE_MAX, cpu = c->cpu != SIZE_MAX;
    mode->rule = "R0";
    mode->forced_by = order->mode != CLV_MODE_AUTO ? order->mode_by : order->devices_by;
    mode->recommended = order->mode;
    switch (order->mode) {
    case CLV_MODE_AUTO: /* the user ordered devices but no mode */
        mode->recommended = gpu && cpu ? CLV_MODE_HYBRID : gpu ? CLV_MODE_GPU : CLV_MODE_CPU;
        clv_text_add(reason, "%s chose \"%s\"", order->devices_by, order->devices);
        return CLV_OK;
    case CLV_MODE_CPU:
        if (!cpu) return refuse(c, "an OpenCL CPU device");
        break;
    case CLV_MODE_GPU:
        if (!gpu) return refuse(c, "a usable GPU");
        break;
    case CLV_MODE_HYBRID:
        if (!gpu || !cpu) return refuse(c, gpu ? "an OpenCL CPU device" : "a usable GPU");
        break;
    case CLV_MODE_REFERENCE:
        break;
    }
    clv_text_add(reason, "ordered by %s", order->mode_by);
    if (order->chosen) clv_text_add(reason, " for \"%s\"", order->devices);
    return CLV_OK;
}

clv_status clv_decide_mode(clv_machine *machine, const clv_mode_order *order)
{
    clv_probe_mode *mode = &machine->report.mode;
    clv_text reason = { 0 };
    choice c = { .machine = machine, .order = order, .gpu = SIZE_MAX, .cpu = SIZE_MAX };
    find_best(&c);
    *mode = (clv_probe_mode){
        .primary_device = c.gpu,
        .cpu_device = c.cpu,
        .hybrid_bytes = CLV_HYBRID_BYTES,
        .gpu_bytes = CLV_GPU_BYTES,
    };
    clv_status status = CLV_OK;
    if (order->mode != CLV_MODE_AUTO || order->chosen)
        status = obey(&c, mode, &reason);
    else
        decide_by_rules(machine, &c, mode, &reason);
    mode->forced_by = clv_machine_keep(machine, mode->forced_by);
    mode->reason = clv_machine_text(machine, "%s: %s", clv_text_get(&reason),
                                    clv_mode_name(mode->recommended));
    if (reason.failed) machine->failed = true;
    clv_text_clear(&reason);
    return status;
}

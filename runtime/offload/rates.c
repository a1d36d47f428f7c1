/* SPDX-License-Identifier: Apache-2.0 */
/* Uses built-in rates to predict calls that were not timed, and writes the text of decisions. Pure functions. */
#include "runtime/offload/rates.h"

#include "base/alloc.h"
#include "base/text.h"
#include "runtime/record/device.h"

#include <stdio.h>
#include <string.h>

/* Built-in rates, as orders of magnitude. They decide until a kind of call is timed, and where no call can be timed. */
static const struct {
    double call_s, host_flops, host_bytes;        /* one core in plain C; rates per second */
    double cpu_launch_s, cpu_times, cpu_bytes;    /* a CPU driver: cpu_times core flops */
    double card_launch_s, card_flops, card_bytes; /* any other device */
    double bus_bytes, short_s;
} rates = {
    .call_s = 3e-7,
    .host_flops = 3e9,
    .host_bytes = 8e9,
    .cpu_launch_s = 60e-6,
    .cpu_times = 4,
    .cpu_bytes = 10e9,
    .card_launch_s = 30e-6,
    .card_flops = 1e12,
    .card_bytes = 1e11,
    .bus_bytes = 6e9,
    .short_s = 2e-6, /* the shortest launch ever seen took 8 us (PoCL) */
};

static double core_flops(const clv_work *w)
{
    return w->host_flops > 0 ? w->host_flops : rates.host_flops;
}

static double host_s(const clv_work *w)
{
    return rates.call_s + CLV_MAX(w->flops / core_flops(w), w->bytes / rates.host_bytes);
}

bool clv_work_is_short(const clv_work *w)
{
    return !(w->resident_bytes > 0) && host_s(w) < rates.short_s;
}

static void copy_text(char *to, size_t room, const char *from)
{
    const size_t length = strnlen(from, room - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

void clv_decision_guess(const clv_device *device, const char *operation, const clv_work *w,
                        clv_decision *out)
{
    clv_offload *of = &out->of;
    const bool cpu = device && device->facts->device_class == CLV_CLASS_CPU;
    of->forced = of->measured = false;
    of->flops = w->flops, of->bytes = w->bytes;
    of->transfer_bytes = w->transfer_bytes, of->resident_bytes = w->resident_bytes;
    of->host_rate = of->kernel_rate = of->transfer_rate = of->first_s = 0;
    of->host_s = host_s(w);
    of->launch_s = cpu ? rates.cpu_launch_s : rates.card_launch_s;
    of->device_s =
        of->launch_s +
        (cpu ? CLV_MAX(w->flops / (rates.cpu_times * core_flops(w)), w->bytes / rates.cpu_bytes)
             : CLV_MAX(w->flops / rates.card_flops, w->bytes / rates.card_bytes));
    if (device && !device->zero_copy) of->device_s += w->transfer_bytes / rates.bus_bytes;
    of->side = of->device_s < of->host_s ? CLV_SIDE_DEVICE : CLV_SIDE_HOST;
    out->basis = "built-in rates";
    copy_text(of->operation, sizeof of->operation, operation);
    copy_text(of->device, sizeof of->device, device ? device->label : "");
    *of->reason = '\0';
}

void clv_decision_because(clv_decision *decision, const char *why)
{
    copy_text(decision->of.reason, sizeof decision->of.reason, why);
}

void clv_decision_explain(clv_decision *decision)
{
    clv_offload *of = &decision->of;
    const double moved = of->transfer_rate > 0 ? of->transfer_bytes / of->transfer_rate : 0;
    const double kernel = of->device_s - of->launch_s - moved;
    if (of->host_s > 0) of->host_rate = of->flops / of->host_s;
    if (kernel > 0) of->kernel_rate = of->flops / kernel;
    if (*of->reason) return;
    char first[48] = "";
    if (of->first_s > 0)
        clv_format(first, sizeof first, " and %.3g ms to get ready", of->first_s * 1e3);
    snprintf(of->reason, sizeof of->reason,
             "%s: %.3g ms predicted on the host, %.3g ms on the device (%.3g ms of it launch and "
             "wait, %.3g MB to move)%s; %s",
             clv_side_name(of->side), of->host_s * 1e3, of->device_s * 1e3, of->launch_s * 1e3,
             of->transfer_bytes / 1e6, first, decision->basis);
}

const char *clv_side_name(clv_side side)
{
    return side == CLV_SIDE_HOST ? "host" : side == CLV_SIDE_DEVICE ? "device" : "auto";
}

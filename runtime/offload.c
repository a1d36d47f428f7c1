/* SPDX-License-Identifier: Apache-2.0 */
/* Host or device for one call: forced, bound to where the data lies, or the faster one. */
#include "runtime/offload.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/engine.h"
#include "runtime/offload_measure.h"

#include <stdio.h>
#include <string.h>

/* Curves of a context, as calls need them. */
typedef struct entry {
    struct entry *next;
    char kind[64];
    const clv_device *device;
    clv_curve curve; /* count 0: it could not be measured */
} entry;

struct clv_offload_table {
    entry *first;
    clv_device *device; /* that flat calls use */
    double transfer_rate;
};

static _Thread_local clv_side forced;
static _Thread_local bool dry;
static _Thread_local bool measuring; /* inside a trial: offload_lock is held by this thread */
static _Thread_local clv_offload latest;

clv_side clv_offload_force(clv_side side)
{
    const clv_side before = forced;
    forced = side;
    return before;
}

bool clv_offload_dry(bool on)
{
    const bool before = dry;
    dry = on;
    return before;
}

bool clv_offload_is_dry(void)
{
    return dry;
}

clv_status clv_offload_last(clv_offload *decision)
{
    if (!decision) return clv_fail(CLV_E_ARGUMENT, "offload: a NULL decision");
    *decision = latest;
    return latest.side ? CLV_OK
                       : clv_fail(CLV_E_ARGUMENT, "offload: this thread made no decision yet");
}

const char *clv_side_name(clv_side side)
{
    return side == CLV_SIDE_HOST ? "host" : side == CLV_SIDE_DEVICE ? "device" : "auto";
}

void clv_offload_fell_back(void)
{
    latest.side = CLV_SIDE_HOST;
    snprintf(latest.reason, sizeof latest.reason, "host, since the device could not: %.140s",
             clv_error_message());
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* The device of flat calls; the engine opens it. NULL: none works. offload_lock is held. */
static clv_device *device_of(clv_context *context)
{
    struct clv_offload_table *table = context->offload;
    if (table->device && table->device->state == CLV_DEVICE_READY) return table->device;
    clv_engine *engine = clv_engine_lock(context);
    table->device = engine ? clv_queue_device(engine->queue) : NULL;
    clv_engine_unlock(engine);
    table->transfer_rate = -1;
    return table->device;
}

static void note_curve(clv_context *context, const clv_device *device, const clv_offload_request *r,
                       const clv_curve *curve)
{
    char key[300], note[CLV_CURVE_POINTS * 40];
    snprintf(key, sizeof key, "offload %s on %s", r->kind, device->key);
    clv_curve_write(curve, note, sizeof note);
    clv_notes_set(&context->tuned, key, note);
    clv_log(CLV_LOG_INFO, "%s: %s: %s", device->label, key, note);
}

static bool noted_curve(clv_context *context, const clv_device *device,
                        const clv_offload_request *r, clv_curve *curve)
{
    char key[300], note[CLV_CURVE_POINTS * 40];
    snprintf(key, sizeof key, "offload %s on %s", r->kind, device->key);
    return clv_notes_get(&context->tuned, key, note, sizeof note) && clv_curve_read(note, curve);
}

/* The curve of a kind, measured if need be; NULL: built-in rates. offload_lock is held: a second
 * caller waits for the figures. */
static const clv_curve *curve_of(clv_context *context, clv_device *device,
                                 const clv_offload_request *r)
{
    struct clv_offload_table *table = context->offload;
    for (entry *e = table->first; e; e = e->next)
        if (e->device == device && strcmp(e->kind, r->kind) == 0)
            return e->curve.count ? &e->curve : NULL;
    entry *e = clv_zalloc(1, sizeof *e);
    if (!e) return NULL;
    snprintf(e->kind, sizeof e->kind, "%s", r->kind);
    e->device = device;
    if (!noted_curve(context, device, r, &e->curve)) {
        const bool may = context->tuning && clv_notes_are_kept(&context->tuned) && r->trial;
        measuring = true;
        const clv_status status = may ? clv_offload_measure(context, r, &e->curve) : CLV_OK;
        measuring = false;
        if (may && !status) {
            note_curve(context, device, r, &e->curve);
            clv_notes_save(&context->tuned);
        } else {
            if (may) clv_log(CLV_LOG_WARN, "%s is not timed: %s", r->kind, clv_error_message());
            e->curve.count = 0;
        }
    }
    e->next = table->first;
    table->first = e;
    return e->curve.count ? &e->curve : NULL;
}

void clv_offload_free(struct clv_offload_table *table)
{
    while (table && table->first) {
        entry *e = table->first;
        table->first = e->next;
        clv_free(e);
    }
    clv_free(table);
}

/* ---- the choice ---------------------------------------------------------------------------------- */

static void predict(clv_context *context, clv_device *device, const clv_offload_request *r,
                    clv_offload *out)
{
    struct clv_offload_table *table = context->offload;
    clv_offload_guess(device, r, &out->host_s, &out->device_s, &out->launch_s);
    if (out->host_s < 2e-6 && !r->resident_bytes) return; /* no launch is as short */
    const clv_curve *curve = curve_of(context, device, r);
    if (!curve) return;
    if (table->transfer_rate < 0) table->transfer_rate = clv_offload_transfer_rate(context, device);
    clv_curve_at(curve, r->work, &out->host_s, &out->device_s);
    out->launch_s = CLV_MIN(curve->at[0].device_s, out->device_s);
    out->transfer_rate = table->transfer_rate;
    out->measured = true;
    if (out->transfer_rate > 0) /* the curve is of operands that all lie with the host */
        out->device_s =
            CLV_MAX(out->device_s - r->resident_bytes / out->transfer_rate, out->launch_s);
}

static void explain(const clv_offload_request *r, clv_offload *out)
{
    const double moved = out->transfer_rate > 0 ? r->transfer_bytes / out->transfer_rate : 0;
    const double kernel = out->device_s - out->launch_s - moved;
    if (out->host_s > 0) out->host_rate = r->flops / out->host_s;
    if (kernel > 0) out->kernel_rate = r->flops / kernel;
    if (*out->reason) return;
    snprintf(out->reason, sizeof out->reason,
             "%s: %.3g ms predicted on the host, %.3g ms on the device (%.3g ms of it launch and "
             "wait, %.3g MB to move); %s",
             clv_side_name(out->side), out->host_s * 1e3, out->device_s * 1e3, out->launch_s * 1e3,
             r->transfer_bytes / 1e6, out->measured ? "measured rates" : "built-in rates");
}

static clv_status choose(clv_context *context, const clv_offload_request *r, clv_offload *out)
{
    const char *why = NULL;
    if (forced == CLV_SIDE_HOST) {
        out->side = CLV_SIDE_HOST, out->forced = true;
        why = "host: this thread forces it";
    } else if (!context->device_count) {
        out->side = CLV_SIDE_HOST, out->forced = true;
        why = "host: the context has no device";
    }
    clv_device *device = measuring ? context->offload->device : NULL;
    if (!measuring && (!why || (forced == CLV_SIDE_DEVICE && context->device_count))) {
        pthread_mutex_lock(&context->offload_lock);
        if (!context->offload) context->offload = clv_zalloc(1, sizeof *context->offload);
        device = context->offload ? device_of(context) : NULL;
        if (device) snprintf(out->device, sizeof out->device, "%s", device->label);
        if (device && forced == CLV_SIDE_AUTO && !r->stays) predict(context, device, r, out);
        pthread_mutex_unlock(&context->offload_lock);
    }
    if (forced == CLV_SIDE_DEVICE) {
        if (!device)
            return clv_fail(CLV_E_NO_DEVICE, "%s: forced to a device, and none works",
                            r->operation);
        out->side = CLV_SIDE_DEVICE, out->forced = true;
        why = "device: this thread forces it";
    } else if (!why && !device) {
        out->side = CLV_SIDE_HOST, out->forced = true;
        why = "host: no device of the context works";
    } else if (!why && r->stays) {
        out->side = CLV_SIDE_DEVICE;
        why = "device: an operand lies only there";
    } else if (!why) {
        out->side = out->device_s < out->host_s ? CLV_SIDE_DEVICE : CLV_SIDE_HOST;
    }
    if (why) snprintf(out->reason, sizeof out->reason, "%s", why);
    return CLV_OK;
}

clv_status clv_offload_decide(clv_context *context, const clv_offload_request *r, clv_offload *out)
{
    *out = (clv_offload){ .flops = r->flops,
                          .bytes = r->bytes,
                          .transfer_bytes = r->transfer_bytes,
                          .resident_bytes = r->resident_bytes };
    snprintf(out->operation, sizeof out->operation, "%s", r->operation);
    CLV_TRY(choose(context, r, out));
    explain(r, out);
    latest = *out;
    return CLV_OK;
}

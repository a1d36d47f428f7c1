/* SPDX-License-Identifier: Apache-2.0 */
/* Host or device for one call: forced, bound to where the data lies, or the faster one. */
#include "runtime/offload/offload.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/job/turn.h"
#include "runtime/offload/engine.h"
#include "runtime/offload/exact.h"
#include "runtime/offload/kind.h"
#include "runtime/offload/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a context knows, as calls need it. */
typedef struct entry {
    struct entry *next;
    char name[64];
    const clv_device *device;
    bool looked; /* for notes, or timed: the curve is what it is */
    clv_offload_kind kind;
    clv_exacts exacts; /* shapes of the kind that were timed themselves */
} entry;

struct clv_offload_table {
    entry *first;
    clv_device *device; /* that flat calls use */
    double transfer_rate;
    double first_s; /* what first calls of other kinds added on it; 0: unknown */
    bool timing;    /* a thread times a kind or a shape, without the lock; one at a time */
    clv_cond timed;
};

static _Thread_local clv_side forced;
static _Thread_local bool dry;
static _Thread_local bool measuring; /* inside a trial */
static _Thread_local bool muted;
static _Thread_local clv_offload latest;
static _Thread_local bool at_this_size; /* the prediction in the making, and so the latest one */

clv_side clv_offload_force(clv_side side)
{
    const clv_side before = forced;
    forced = side;
    return before;
}

bool clv_offload_dry(bool on)
{
    const bool before = dry;
    if (on && !before) latest.side = CLV_SIDE_AUTO; /* of no call that was made meanwhile */
    dry = on;
    return before;
}

void clv_offload_mute(bool on)
{
    muted = on;
}

bool clv_offload_is_dry(void)
{
    return dry;
}

const char *clv_side_name(clv_side side)
{
    return side == CLV_SIDE_HOST ? "host" : side == CLV_SIDE_DEVICE ? "device" : "auto";
}

/* In words; of small calls when somebody asks, since it takes longer than they do. */
static void explain(clv_offload *of)
{
    const double moved = of->transfer_rate > 0 ? of->transfer_bytes / of->transfer_rate : 0;
    const double kernel = of->device_s - of->launch_s - moved;
    if (of->host_s > 0) of->host_rate = of->flops / of->host_s;
    if (kernel > 0) of->kernel_rate = of->flops / kernel;
    if (*of->reason) return;
    char first[48] = "";
    if (of->first_s > 0)
        snprintf(first, sizeof first, " and %.3g ms to get ready", of->first_s * 1e3);
    snprintf(of->reason, sizeof of->reason,
             "%s: %.3g ms predicted on the host, %.3g ms on the device (%.3g ms of it launch and "
             "wait, %.3g MB to move)%s; %s",
             clv_side_name(of->side), of->host_s * 1e3, of->device_s * 1e3, of->launch_s * 1e3,
             of->transfer_bytes / 1e6, first,
             !of->measured  ? "built-in rates"
             : at_this_size ? "measured at this size"
                            : "measured rates");
}

static void copy_text(char *to, size_t room, const char *from)
{
    const size_t length = strnlen(from, room - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

clv_status clv_offload_last(clv_offload *decision)
{
    if (!decision) return clv_fail(CLV_E_ARGUMENT, "offload: a NULL decision");
    if (latest.side) explain(&latest);
    *decision = latest;
    return latest.side
               ? CLV_OK
               : clv_fail(CLV_E_ARGUMENT, "offload: no call of this thread made a decision");
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

static void name_note(const clv_device *device, const char *what, const char *kind, char key[300])
{
    snprintf(key, 300, "offload %s%s on %s", what, kind, device->key);
}

static void note_curve(clv_context *context, const entry *e)
{
    char key[300], note[CLV_CURVE_POINTS * 40];
    name_note(e->device, "", e->name, key);
    clv_curve_write(&e->kind.curve, note, sizeof note);
    clv_notes_set(&context->tuned, key, note);
    clv_log(CLV_LOG_INFO, "%s: %s: %s", e->device->label, key, note);
}

static void note_exacts(clv_context *context, const entry *e)
{
    char key[300], note[CLV_EXACT_TEXT];
    name_note(e->device, "exact ", e->name, key);
    clv_exact_write(&e->exacts, note, sizeof note);
    clv_notes_set(&context->tuned, key, note);
}

static void read_notes(clv_context *context, entry *e)
{
    char key[300], note[CLV_MAX((int)CLV_EXACT_TEXT, CLV_CURVE_POINTS * 40)];
    name_note(e->device, "", e->name, key);
    if (clv_notes_get(&context->tuned, key, note, sizeof note))
        e->looked = clv_curve_read(note, &e->kind.curve);
    if (!e->looked) e->kind.curve.count = 0;
    name_note(e->device, "first ", e->name, key);
    if (!clv_notes_get(&context->tuned, key, note, sizeof note) ||
        !clv_parse_double(note, &e->kind.first_s))
        e->kind.first_s = -1;
    name_note(e->device, "exact ", e->name, key);
    if (e->looked && clv_notes_get(&context->tuned, key, note, sizeof note))
        clv_exact_read(note, &e->exacts);
}

static entry *find(struct clv_offload_table *table, const clv_device *device, const char *name)
{
    entry *e = table->first;
    while (e && (e->device != device || strcmp(e->name, name) != 0))
        e = e->next;
    return e;
}

/* The lock is left while a thread times: calls of other threads go by what is known. */
static void leave_to_time(clv_context *context)
{
    context->offload->timing = measuring = true;
    pthread_mutex_unlock(&context->offload_lock);
}

static void come_back(clv_context *context)
{
    pthread_mutex_lock(&context->offload_lock);
    context->offload->timing = measuring = false;
    pthread_cond_broadcast(&context->offload->timed);
}

static void measure(clv_context *context, const clv_offload_request *r, entry *e)
{
    clv_curve curve;
    leave_to_time(context);
    const clv_status status = clv_offload_measure(context, r, &curve);
    come_back(context);
    e->looked = true;
    if (status) {
        clv_log(CLV_LOG_WARN, "%s is not timed: %s", r->kind, clv_error_message());
        return;
    }
    e->kind.curve = curve;
    e->kind.built = true;
    note_curve(context, e);
    clv_notes_save(&context->tuned);
}

/* Only who asks for a plan waits for another thread's timing. */
static void wait_for_timing(clv_context *context)
{
    while (dry && context->offload->timing)
        clv_cond_wait_until(&context->offload->timed, &context->offload_lock, clv_now() + 1);
}

static bool can_time(const clv_context *context, const clv_offload_request *r)
{
    return context->tuning && clv_notes_are_kept(&context->tuned) && r->trial;
}

/* What is known of a kind, timed once that is worth it; `later`: it may still be. NULL: no memory.
 * offload_lock is held, and left while the kind is timed. */
static entry *entry_of(clv_context *context, clv_device *device, const clv_offload_request *r,
                       double host_s, bool *later)
{
    struct clv_offload_table *table = context->offload;
    entry *e = find(table, device, r->kind);
    if (!e) {
        e = clv_zalloc(1, sizeof *e);
        if (!e) return NULL;
        snprintf(e->name, sizeof e->name, "%s", r->kind);
        e->device = device;
        read_notes(context, e);
        e->next = table->first;
        table->first = e;
    }
    if (!e->looked) wait_for_timing(context);
    *later = !e->looked && can_time(context, r);
    if (*later && !table->timing && (dry || clv_kind_is_due(&e->kind, host_s))) {
        measure(context, r, e);
        *later = false;
    }
    return e;
}

/* What the first call of a process adds on the device; and what of it the host did not lose yet. */
static double first_of(const clv_offload_kind *kind, const struct clv_offload_table *table)
{
    return kind->first_s >= 0 ? kind->first_s : table->first_s;
}

static double wait_s(const clv_offload_kind *kind, const struct clv_offload_table *table)
{
    return kind->built ? 0 : fmax(first_of(kind, table) - kind->lost_s, 0);
}

/* Both sides at just this shape, where the curve is in doubt and that is worth it. NULL: by the curve. */
static clv_exact *exact_of(clv_context *context, const clv_offload_request *r, entry *e,
                           const clv_offload *by_curve)
{
    struct clv_offload_table *table = context->offload;
    const uint64_t name = clv_exact_name(r);
    clv_exact *exact = clv_exact_find(&e->exacts, name);
    if (exact) clv_exact_fade(exact, clv_now());
    if (!exact && !dry && clv_exact_follows(by_curve->host_s, by_curve->device_s))
        return clv_exact_put(&e->exacts, name, by_curve->host_s, by_curve->device_s);
    if (exact || !clv_exact_doubts(by_curve->host_s, by_curve->device_s) || !can_time(context, r) ||
        !clv_exact_is_due(&e->exacts, name, by_curve->host_s - wait_s(&e->kind, table), dry))
        return exact;
    wait_for_timing(context);
    if (table->timing || (exact = clv_exact_find(&e->exacts, name))) return exact;
    double host_s, device_s, lasted_s;
    leave_to_time(context);
    const clv_status status = clv_offload_measure_exact(context, r, &host_s, &device_s, &lasted_s);
    come_back(context);
    e->exacts.timed_s += status ? INFINITY : lasted_s; /* what failed is not tried again */
    if (status) {
        clv_log(CLV_LOG_WARN, "%s is not timed: %s", r->kind, clv_error_message());
        return NULL;
    }
    double curve_host_s, curve_device_s;
    clv_kind_predict(&e->kind, r->work, &curve_host_s, &curve_device_s);
    e->kind.built = true;
    exact = clv_exact_put(&e->exacts, name, clv_exact_between(curve_host_s, host_s),
                          clv_exact_between(curve_device_s, device_s));
    note_exacts(context, e);
    clv_notes_save(&context->tuned);
    return exact;
}

static struct clv_offload_table *make_table(void)
{
    struct clv_offload_table *table = clv_zalloc(1, sizeof *table);
    if (table && clv_cond_init(&table->timed)) return table;
    clv_free(table);
    return NULL;
}

void clv_offload_free(clv_context *context)
{
    struct clv_offload_table *table = context->offload;
    if (!table) return;
    while (table->first) {
        entry *e = table->first;
        if (context->tuning && clv_exact_settle(&e->exacts)) note_exacts(context, e);
        table->first = e->next;
        clv_free(e);
    }
    pthread_cond_destroy(&table->timed);
    clv_free(table);
}

/* ---- the choice ---------------------------------------------------------------------------------- */

bool clv_offload_at_once(clv_context *context, const char *operation, double flops,
                         double host_flops, double bytes)
{
    if (forced != CLV_SIDE_AUTO || dry || measuring || !context->device_count) return false;
    const clv_device *device = &context->devices[0];
    const clv_offload_request r = {
        .flops = flops, .host_flops = host_flops, .bytes = bytes, .transfer_bytes = bytes
    };
    latest.forced = latest.measured = false;
    latest.flops = flops;
    latest.bytes = latest.transfer_bytes = bytes;
    latest.resident_bytes = latest.host_rate = latest.kernel_rate = 0;
    latest.transfer_rate = latest.first_s = 0;
    clv_offload_guess(device, &r, &latest.host_s, &latest.device_s, &latest.launch_s);
    copy_text(latest.operation, sizeof latest.operation, operation);
    copy_text(latest.device, sizeof latest.device, device->label);
    *latest.reason = '\0';
    latest.side = CLV_SIDE_HOST;
    return true;
}

/* Seconds by what is known of the shape (NULL: it was not timed) or the kind; both are of operands
 * that all lie with the host. */
static void settle(const struct clv_offload_table *table, const clv_offload_kind *kind,
                   const clv_exact *exact, const clv_offload_request *r, clv_offload *out)
{
    if (exact)
        clv_exact_predict(exact, &out->host_s, &out->device_s);
    else
        clv_kind_predict(kind, r->work, &out->host_s, &out->device_s);
    out->launch_s = CLV_MIN(kind->curve.at[0].device_s, out->device_s);
    out->transfer_rate = table->transfer_rate;
    out->measured = true;
    if (out->transfer_rate > 0)
        out->device_s =
            CLV_MAX(out->device_s - r->resident_bytes / out->transfer_rate, out->launch_s);
}

/* Predicts, and chooses; NULL: by the prediction, else why. */
static const char *predict(clv_context *context, clv_device *device, const clv_offload_request *r,
                           clv_offload *out)
{
    struct clv_offload_table *table = context->offload;
    bool later = false;
    clv_offload_guess(device, r, &out->host_s, &out->device_s, &out->launch_s);
    out->side = out->device_s < out->host_s ? CLV_SIDE_DEVICE : CLV_SIDE_HOST;
    if (clv_offload_is_short(r)) return NULL;
    entry *e = entry_of(context, device, r, out->host_s, &later);
    if (!e) return NULL;
    if (later) {
        out->side = CLV_SIDE_HOST;
        return "host: such calls are timed on both sides once they add up to what that takes";
    }
    clv_offload_kind *kind = &e->kind;
    clv_exact *exact = NULL;
    if (kind->curve.count) {
        if (table->transfer_rate < 0)
            table->transfer_rate = clv_offload_transfer_rate(context, device);
        settle(table, kind, NULL, r, out);
        exact = exact_of(context, r, e, out);
        if (exact) settle(table, kind, exact, r, out);
        at_this_size = exact;
    }
    const double first = first_of(kind, table);
    out->first_s = wait_s(kind, table);
    out->side = exact ? clv_kind_weigh(kind, exact->last, out->host_s, out->device_s, first)
                      : clv_kind_choose(kind, r->work, out->host_s, out->device_s, first);
    if (dry) return NULL;
    clv_kind_went(kind, r->work, out->side, out->host_s, out->device_s);
    if (!exact || !kind->built) return NULL;
    const clv_side chosen = out->side;
    if (r->resident_bytes > 0) { /* not to be moved for that */
        if (!exact->trying) exact->last = chosen;
        return NULL;
    }
    out->side = clv_exact_turn(exact, chosen, clv_now());
    if (out->side == chosen) return NULL;
    return out->side == CLV_SIDE_HOST ? "host: to hear of it again" : "device: to hear of it again";
}

/* What a call of a shape that is in doubt showed; false: it is no lesson. `said`: by the curve. */
static bool teach_exact(const struct clv_offload_table *table, const clv_offload_request *r,
                        entry *e, const clv_offload *said, clv_side side, double seconds)
{
    const uint64_t name = clv_exact_name(r);
    clv_exact *exact = clv_exact_find(&e->exacts, name);
    clv_offload now;
    if (exact) {
        settle(table, &e->kind, exact, r, &now);
        return clv_exact_saw(exact, side, side == CLV_SIDE_DEVICE ? now.device_s : now.host_s,
                             seconds, clv_now());
    }
    if (clv_exact_doubts(said->host_s, said->device_s)) clv_exact_waits(&e->exacts, name, seconds);
    return true;
}

void clv_offload_took(clv_context *context, const clv_offload_request *r, clv_side side,
                      double seconds)
{
    if (measuring || muted) return;
    if (pthread_mutex_trylock(&context->offload_lock)) return; /* not to wait for */
    struct clv_offload_table *table = context->offload;
    entry *e = table && table->device ? find(table, table->device, r->kind) : NULL;
    clv_offload_kind *kind = e ? &e->kind : NULL;
    clv_offload said = { 0 };
    if (kind && kind->curve.count && table->transfer_rate >= 0)
        settle(table, kind, NULL, r, &said);
    else
        clv_offload_guess(table ? table->device : NULL, r, &said.host_s, &said.device_s,
                          &said.launch_s);
    if (kind && side == CLV_SIDE_DEVICE && !kind->built) {
        char key[300], note[64];
        kind->built = true;
        kind->first_s = fmax(seconds - said.device_s, 0);
        table->first_s = table->first_s > 0 ? (table->first_s + kind->first_s) / 2 : kind->first_s;
        name_note(e->device, "first ", e->name, key);
        snprintf(note, sizeof note, "%.3g", kind->first_s);
        if (kind->curve.count) clv_notes_set(&context->tuned, key, note);
    } else if (kind && said.measured) {
        if (teach_exact(table, r, e, &said, side, seconds))
            clv_kind_saw(kind, r->work, side, side == CLV_SIDE_DEVICE ? said.device_s : said.host_s,
                         seconds);
    } else if (kind && side == CLV_SIDE_HOST) {
        kind->spent_s += seconds;
    }
    pthread_mutex_unlock(&context->offload_lock);
}

void clv_offload_fell_back(clv_context *context, const clv_offload_request *r, const char *why)
{
    latest.side = CLV_SIDE_HOST;
    snprintf(latest.reason, sizeof latest.reason, "host, since the device could not: %.140s", why);
    if (!r || measuring) return;
    pthread_mutex_lock(&context->offload_lock);
    struct clv_offload_table *table = context->offload;
    entry *e = table && table->device ? find(table, table->device, r->kind) : NULL;
    clv_exact *exact = e ? clv_exact_find(&e->exacts, clv_exact_name(r)) : NULL;
    if (exact) clv_exact_failed(exact);
    pthread_mutex_unlock(&context->offload_lock);
}

static clv_status choose(clv_context *context, const clv_offload_request *r, clv_offload *out)
{
    const char *why = NULL;
    const bool held = clv_jobs_held(context);
    if (held && (forced == CLV_SIDE_DEVICE || r->stays)) return clv_jobs_refuse(r->operation);
    if (forced == CLV_SIDE_HOST) {
        out->side = CLV_SIDE_HOST, out->forced = true;
        why = "host: this thread forces it";
    } else if (!context->device_count) {
        out->side = CLV_SIDE_HOST, out->forced = true;
        why = "host: the context has no device";
    } else if (held) {
        out->side = CLV_SIDE_HOST, out->forced = true;
        why = "host: called by a function of another call, which has the devices";
    }
    clv_device *device = NULL;
    if (!why || (forced == CLV_SIDE_DEVICE && context->device_count)) {
        pthread_mutex_lock(&context->offload_lock);
        if (!context->offload) context->offload = make_table();
        device = context->offload ? device_of(context) : NULL;
        if (device) copy_text(out->device, sizeof out->device, device->label);
        if (device && forced == CLV_SIDE_AUTO && !r->stays) why = predict(context, device, r, out);
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
    }
    if (why) copy_text(out->reason, sizeof out->reason, why);
    return CLV_OK;
}

clv_status clv_offload_decide(clv_context *context, const clv_offload_request *r, clv_offload *out)
{
    at_this_size = false;
    *out = (clv_offload){ .flops = r->flops,
                          .bytes = r->bytes,
                          .transfer_bytes = r->transfer_bytes,
                          .resident_bytes = r->resident_bytes };
    copy_text(out->operation, sizeof out->operation, r->operation);
    CLV_TRY(choose(context, r, out));
    if (!r->brief && !clv_offload_is_short(r)) explain(out);
    latest = *out;
    return CLV_OK;
}

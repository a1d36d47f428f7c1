/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what a context has learnt about the speed of each kind of call. The times are read from tuning.txt, measured
 * as soon as a measurement pays off, corrected after each call, and saved. */
#include "runtime/offload/table.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/job/turn.h"
#include "runtime/offload/decide.h"
#include "runtime/offload/measure.h"
#include "runtime/offload/rates.h"
#include "runtime/record/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    char name[64];
    const clv_device *device;
    bool looked;    /* its notes were read or it was timed: the curve is final */
    bool wrong;     /* the device's result differed from the host's */
    double timed_s; /* seconds spent in this process on timing its shapes */
    clv_kind kind;
} entry;

struct clv_offload_table {
    clv_mutex lock; /* taken before job_lock */
    entry *first;
    clv_device *device;   /* the device that flat calls use */
    double transfer_rate; /* negative: unknown */
    double first_s;       /* seconds that first calls of other kinds added on it; 0: unknown */
    bool timing;          /* a thread times a kind or a shape, without the lock; one at a time */
    clv_cond timed;
};

static const double most_timed_s = 1.5; /* seconds for timing a kind's shapes, per process */

/* ---- notes --------------------------------------------------------------------------------------- */

static void name_note(const entry *e, const char *what, char key[300])
{
    snprintf(key, 300, "offload %s%s on %s", what, e->name, e->device->key);
}

static void note_curve(clv_context *context, const entry *e)
{
    char key[300], note[CLV_CURVE_TEXT];
    name_note(e, "", key);
    clv_curve_write(&e->kind.curve, note, sizeof note);
    clv_notes_set(&context->tuned, key, note);
    clv_log(CLV_LOG_INFO, "%s: %s: %s", e->device->label, key, note);
}

static void note_shapes(clv_context *context, entry *e)
{
    char key[300], note[CLV_SHAPES_TEXT];
    name_note(e, "exact ", key);
    clv_shapes_write(&e->kind, note, sizeof note);
    clv_notes_set(&context->tuned, key, note);
    for (size_t i = 0; i < CLV_SHAPES; ++i)
        e->kind.shape[i].taught = false;
}

static void note_first(clv_context *context, const entry *e)
{
    char key[300], note[64];
    name_note(e, "first ", key);
    clv_format(note, sizeof note, "%.3g", e->kind.first_s);
    clv_notes_set(&context->tuned, key, note);
}

static void read_notes(clv_context *context, entry *e)
{
    char key[300], note[CLV_MAX((int)CLV_SHAPES_TEXT, (int)CLV_CURVE_TEXT)];
    name_note(e, "", key);
    if (clv_notes_get(&context->tuned, key, note, sizeof note))
        e->looked = clv_curve_read(note, &e->kind.curve);
    if (!e->looked) e->kind.curve.count = 0;
    name_note(e, "first ", key);
    if (!clv_notes_get(&context->tuned, key, note, sizeof note) ||
        !clv_parse_double(note, &e->kind.first_s))
        e->kind.first_s = -1;
    name_note(e, "exact ", key);
    if (e->looked && clv_notes_get(&context->tuned, key, note, sizeof note))
        clv_shapes_read(note, &e->kind);
}

/* ---- entries: the lock is held ------------------------------------------------------------------- */

static entry *find(const struct clv_offload_table *table, const char *name)
{
    entry *e = table->first;
    while (e && (e->device != table->device || strcmp(e->name, name) != 0))
        e = e->next;
    return e;
}

/* Returns NULL if out of memory. */
static entry *find_or_add(clv_context *context, const char *name)
{
    struct clv_offload_table *table = context->offload;
    entry *e = find(table, name);
    if (e || !(e = clv_zalloc(1, sizeof *e))) return e;
    snprintf(e->name, sizeof e->name, "%s", name);
    e->device = table->device;
    read_notes(context, e);
    e->next = table->first;
    table->first = e;
    return e;
}

/* Returns the device of flat calls, which the engine opens, or NULL if no device works. */
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

/* ---- timing -------------------------------------------------------------------------------------- */

/* Releases the lock while a thread times, so that other threads' calls can use what is known. */
static void leave_to_time(struct clv_offload_table *table)
{
    table->timing = true;
    pthread_mutex_unlock(&table->lock);
}

static void come_back(struct clv_offload_table *table)
{
    pthread_mutex_lock(&table->lock);
    table->timing = false;
    pthread_cond_broadcast(&table->timed);
}

/* Waits for another thread's timing, but only if the call asks for a plan. */
static void wait_for_timing(struct clv_offload_table *table, const clv_call *call)
{
    while (call->plan && table->timing)
        clv_cond_wait_until(&table->timed, &table->lock, clv_now() + 1);
}

static bool can_time(const clv_context *context, const clv_call *call)
{
    return context->tuning && clv_notes_are_kept(&context->tuned) && call->sample;
}

static void time_kind(clv_context *context, const clv_call *call, entry *e)
{
    clv_curve curve;
    leave_to_time(context->offload);
    const clv_status status = clv_measure_curve(context, call, &curve);
    come_back(context->offload);
    e->looked = true;
    e->wrong = status == CLV_E_WRONG_RESULT;
    if (status) {
        clv_log(CLV_LOG_WARN, "%s is not timed: %s", e->name, clv_error_message());
        return;
    }
    e->kind.curve = curve;
    e->kind.built = true;
    note_curve(context, e);
    clv_notes_save(&context->tuned);
}

/* Times the kind as soon as that pays off. Returns true when it may still be timed later. */
static bool look_at_kind(clv_context *context, const clv_call *call, entry *e, double host_s)
{
    struct clv_offload_table *table = context->offload;
    if (!e->looked) wait_for_timing(table, call);
    if (e->looked || !can_time(context, call)) return false;
    if (table->timing || !(call->plan || clv_kind_is_due(&e->kind, host_s))) return true;
    time_kind(context, call, e);
    return false;
}

/* Times exactly this shape for a caller who asks for a plan. Returns NULL when the curve's times have to do. */
static clv_shape *time_shape(clv_context *context, const clv_call *call, entry *e, uint64_t name)
{
    struct clv_offload_table *table = context->offload;
    double by_curve[CLV_SIDES], timed[CLV_SIDES];
    wait_for_timing(table, call);
    clv_shape *there = clv_shape_find(&e->kind, name);
    if (there || e->timed_s >= most_timed_s) return there;
    const double started = clv_now();
    leave_to_time(table);
    const clv_status status = clv_measure_shape(context, call, timed);
    come_back(table);
    e->timed_s += status ? INFINITY : clv_now() - started; /* not again after a failure */
    if (status) {
        clv_log(CLV_LOG_WARN, "%s is not timed: %s", e->name, clv_error_message());
        return NULL;
    }
    e->kind.built = true;
    clv_kind_predict(&e->kind, NULL, call->work.amount, by_curve);
    for (int side = 0; side < CLV_SIDES; ++side)
        timed[side] = clv_shape_between(by_curve[side], timed[side]);
    there = clv_shape_keep(&e->kind, name, timed);
    there->timed = true;
    note_shapes(context, e);
    clv_notes_save(&context->tuned);
    return there;
}

/* ---- the decision -------------------------------------------------------------------------------- */

/* Names the call's shape by a number that is never 0. */
static uint64_t name_of(const clv_work *work)
{
    uint64_t amount;
    memcpy(&amount, &work->amount, sizeof amount);
    const uint64_t name = clv_call_shape(work->shape, amount);
    return name ? name : 1;
}

/* Returns the seconds that the first call of a process adds on the device, or, if unknown, those that first calls of
 * other kinds added. */
static double first_of(const clv_kind *kind, const struct clv_offload_table *table)
{
    return kind->first_s >= 0 ? kind->first_s : table->first_s;
}

/* Corrects `seconds`, which hold for calls whose operands all lie in host memory, for a call with some operands on
 * the device. */
static void allow_for_residents(const struct clv_offload_table *table, const clv_kind *kind,
                                const clv_work *work, double seconds[CLV_SIDES], double *launch_s)
{
    *launch_s = CLV_MIN(kind->curve.at[0].seconds[CLV_DEVICE], seconds[CLV_DEVICE]);
    if (table->transfer_rate > 0)
        seconds[CLV_DEVICE] =
            CLV_MAX(seconds[CLV_DEVICE] - work->resident_bytes / table->transfer_rate, *launch_s);
}

/* Returns the call's shape if it has, or is to have, times of its own; else NULL. */
static clv_shape *shape_of(clv_context *context, const clv_call *call, entry *e)
{
    const uint64_t name = name_of(&call->work);
    double seconds[CLV_SIDES];
    clv_shape *shape = clv_shape_find(&e->kind, name);
    if (shape) return shape;
    clv_kind_predict(&e->kind, NULL, call->work.amount, seconds);
    if (!clv_shape_is_close(seconds)) return NULL;
    if (call->plan)
        return clv_shape_is_brief(seconds) && can_time(context, call)
                   ? time_shape(context, call, e, name)
                   : NULL;
    return clv_shape_keep(&e->kind, name, seconds);
}

/* Decides by the known times of the kind. */
static void by_kind(clv_context *context, clv_call *call, entry *e)
{
    struct clv_offload_table *table = context->offload;
    clv_kind *kind = &e->kind;
    clv_offload *of = &call->told.of;
    double seconds[CLV_SIDES] = { of->host_s, of->device_s };
    clv_shape *shape = NULL;
    if (kind->curve.count) {
        if (table->transfer_rate < 0)
            table->transfer_rate = clv_measure_transfer(context, table->device);
        shape = shape_of(context, call, e);
        clv_kind_predict(kind, shape, call->work.amount, seconds);
        allow_for_residents(table, kind, &call->work, seconds, &of->launch_s);
        of->host_s = seconds[CLV_HOST], of->device_s = seconds[CLV_DEVICE];
        of->transfer_rate = table->transfer_rate;
        of->measured = true;
        call->told.basis = shape && shape->timed ? "measured at this size" : "measured rates";
    }
    const double first_s = first_of(kind, table);
    of->first_s = kind->built ? 0 : fmax(first_s - kind->lost_s, 0);
    of->side = clv_kind_choose(kind, shape, call->work.amount, seconds, first_s);
    if (call->plan) return;
    clv_kind_went(kind, shape, call->work.amount, of->side, seconds);
    if (!shape || !kind->built || call->work.resident_bytes > 0) return;
    const clv_side chosen = of->side;
    of->side = clv_shape_turn(shape, chosen, clv_now());
    if (of->side != chosen)
        clv_decision_because(&call->told, of->side == CLV_SIDE_HOST
                                              ? "host: to hear of it again"
                                              : "device: to hear of it again");
}

static void by_times(clv_context *context, clv_call *call)
{
    clv_decision *told = &call->told;
    entry *e = find_or_add(context, call->work.kind);
    if (!e) return;
    const bool later = look_at_kind(context, call, e, told->of.host_s);
    if (!later && !e->wrong) {
        by_kind(context, call, e);
        return;
    }
    told->of.side = CLV_SIDE_HOST;
    clv_decision_because(
        told, later ? "host: such calls are timed on both sides once they add up to "
                      "what that takes"
                    : "host: the device computed something else when both were compared");
}

static void settle(clv_call *call, clv_side side, bool forced, const char *why)
{
    call->told.of.side = side;
    call->told.of.forced = forced;
    call->told.of.host_s = call->told.of.device_s = call->told.of.launch_s = 0;
    clv_decision_because(&call->told, why);
}

/* Returns the reason when a rule, and not the times, decides who does the call; NULL: the times decide. */
static const char *by_rule(clv_context *context, const clv_call *call, clv_side *side)
{
    *side = CLV_SIDE_HOST;
    if (call->host_only) return call->host_only;
    if (call->forced == CLV_SIDE_HOST) return "host: this thread forces it";
    if (call->forced == CLV_SIDE_DEVICE) {
        *side = CLV_SIDE_DEVICE;
        return "device: this thread forces it";
    }
    if (!context->device_count) return "host: the context has no device";
    if (clv_jobs_held(context))
        return "host: called by a function of another call, which has the devices";
    return NULL;
}

clv_status clv_offload_decide(clv_context *context, clv_call *call)
{
    struct clv_offload_table *table = context->offload;
    clv_side side;
    if ((call->forced == CLV_SIDE_DEVICE || call->stays) && !call->host_only &&
        clv_jobs_held(context))
        return clv_jobs_refuse(call->operation);
    const char *why = by_rule(context, call, &side);
    clv_device *device = NULL;
    if (!why || side == CLV_SIDE_DEVICE) {
        pthread_mutex_lock(&table->lock);
        device = context->device_count ? device_of(context) : NULL;
        clv_decision_guess(device, call->operation, &call->work, &call->told);
        const bool timed = !why && device && !call->stays && !call->untimed;
        if (timed && !clv_work_is_short(&call->work)) by_times(context, call);
        pthread_mutex_unlock(&table->lock);
        if (timed) return CLV_OK;
    } else {
        clv_decision_guess(NULL, call->operation, &call->work, &call->told);
    }
    if (side == CLV_SIDE_DEVICE && !device)
        return clv_fail(CLV_E_NO_DEVICE, "%s: a device was demanded, but none works",
                        call->operation);
    if (why)
        settle(call, side, true, why);
    else if (!device)
        settle(call, CLV_SIDE_HOST, true, "host: no device of the context works");
    else
        settle(call, CLV_SIDE_DEVICE, false,
               call->stays ? "device: an operand lies only there" : "device: where one works");
    return CLV_OK;
}

/* ---- what calls teach ---------------------------------------------------------------------------- */

/* Learns from the device's first call of this kind in this process: the time beyond the expected one is the time of
 * getting ready. */
static void learn_first(clv_context *context, entry *e, double more_s)
{
    struct clv_offload_table *table = context->offload;
    e->kind.built = true;
    e->kind.first_s = fmax(more_s, 0);
    table->first_s = table->first_s > 0 ? (table->first_s + e->kind.first_s) / 2 : e->kind.first_s;
    if (e->kind.curve.count) note_first(context, e);
}

static void learn(clv_context *context, const clv_call *call, entry *e, clv_side side,
                  double seconds)
{
    struct clv_offload_table *table = context->offload;
    clv_kind *kind = &e->kind;
    const bool known = kind->curve.count && table->transfer_rate >= 0;
    clv_shape *shape = known ? clv_shape_find(kind, name_of(&call->work)) : NULL;
    double said[CLV_SIDES], launch_s;
    if (known) {
        clv_kind_predict(kind, shape, call->work.amount, said);
        allow_for_residents(table, kind, &call->work, said, &launch_s);
    } else {
        clv_decision guess;
        clv_decision_guess(table->device, call->operation, &call->work, &guess);
        said[CLV_HOST] = guess.of.host_s, said[CLV_DEVICE] = guess.of.device_s;
    }
    if (side == CLV_SIDE_DEVICE && !kind->built)
        learn_first(context, e, seconds - said[CLV_DEVICE]);
    else if (call->told.of.forced)
        return; /* forced calls do not show the usual times */
    else if (known)
        clv_kind_saw(kind, shape, call->work.amount, side,
                     said[side == CLV_SIDE_DEVICE ? CLV_DEVICE : CLV_HOST], seconds, clv_now());
    else if (side == CLV_SIDE_HOST)
        kind->spent_s += seconds;
}

void clv_offload_learn(clv_context *context, const clv_call *call, clv_side side, double seconds)
{
    struct clv_offload_table *table = context->offload;
    if (!call->work.kind || call->untimed) return;
    if (pthread_mutex_trylock(&table->lock)) return; /* learning is not worth a wait */
    entry *e = table->device ? find(table, call->work.kind) : NULL;
    if (e) learn(context, call, e, side, seconds);
    pthread_mutex_unlock(&table->lock);
}

void clv_offload_failed(clv_context *context, const clv_call *call)
{
    struct clv_offload_table *table = context->offload;
    if (!call->work.kind || call->untimed) return;
    pthread_mutex_lock(&table->lock);
    entry *e = table->device ? find(table, call->work.kind) : NULL;
    clv_shape *shape = e ? clv_shape_find(&e->kind, name_of(&call->work)) : NULL;
    if (shape) clv_shape_failed(shape);
    pthread_mutex_unlock(&table->lock);
}

/* ---- for the context ----------------------------------------------------------------------------- */

clv_status clv_offload_make(clv_context *context)
{
    struct clv_offload_table *table = context->offload = clv_zalloc(1, sizeof *table);
    if (!table) return clv_fail(CLV_E_MEMORY, "not enough memory for a context");
    clv_mutex_init(&table->lock);
    clv_cond_init(&table->timed);
    return CLV_OK;
}

static bool is_taught(const clv_kind *kind)
{
    for (size_t i = 0; i < CLV_SHAPES; ++i)
        if (kind->shape[i].taught) return true;
    return false;
}

void clv_offload_free(clv_context *context)
{
    struct clv_offload_table *table = context->offload;
    if (!table) return;
    while (table->first) {
        entry *e = table->first;
        if (context->tuning && is_taught(&e->kind)) note_shapes(context, e);
        table->first = e->next;
        clv_free(e);
    }
    pthread_cond_destroy(&table->timed);
    pthread_mutex_destroy(&table->lock);
    clv_free(table);
    context->offload = NULL;
}

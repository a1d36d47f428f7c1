/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest variant of a kernel on a device. */
#include "runtime/job/tune.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/device/queue.h"
#include "runtime/job/run.h"
#include "runtime/record/context.h"

#include <stdio.h>
#include <string.h>

static const double budget_s = 0.2; /* seconds per variant, not counting its build */

/* Runs one trial and returns its seconds, or a negative number if it failed. On a card this is the time of
 * the kernels alone, because in a job the gaps between them overlap with other work. */
static double once(clv_slot *slot, clv_tune_trial *trial, void *user)
{
    clv_queue *queue = slot->queue;
    const double started = clv_now(), before = queue->stats.kernel_s;
    clv_slot_begin(slot);
    clv_status status = trial(slot, user);
    const clv_status waited = clv_queue_wait(queue);
    const double seconds = clv_now() - started, kernels = queue->stats.kernel_s - before;
    clv_slot_done(slot);
    if (status || waited) return -1;
    const bool by_events = queue->timed && slot->worker->device->nap && before >= 0 && kernels > 0;
    return by_events ? kernels : seconds;
}

/* Returns the median of three runs, not counting a first run (which builds), or a negative number on
 * failure. */
static double measure(clv_slot *slot, double best, clv_tune_trial *trial, void *user)
{
    double times[3];
    if (once(slot, trial, user) < 0) return -1;
    const double started = clv_now();
    for (int i = 0; i < 3; ++i) {
        const double t = once(slot, trial, user);
        if (t < 0) return -1;
        int at = i;
        for (; at && times[at - 1] > t; --at)
            times[at] = times[at - 1];
        times[at] = t;
        if (best > 0 && times[0] > 2 * best) return times[0]; /* it will not win */
        if (clv_now() - started > budget_s) return times[i / 2];
    }
    return times[1];
}

static size_t index_of(const char *const *names, const char *name)
{
    for (size_t i = 0; names[i]; ++i)
        if (strcmp(names[i], name) == 0) return i;
    return SIZE_MAX;
}

/* Notes the kernels of all variants. The first variant is used for all of them until they are timed. */
static size_t rehearse(clv_worker *worker, const char *const *names, clv_tune_trial *trial,
                       void *user)
{
    for (size_t i = 0; names[i]; ++i) {
        worker->variant = i;
        clv_slot_begin(&worker->slots[0]);
        (void)trial(&worker->slots[0], user);
        clv_slot_done(&worker->slots[0]);
    }
    return 0;
}

enum { NOTE = 300 };

/* Looks up the noted variant. `key` receives its key in the notes, even if there is no such note. */
static bool find_noted(const clv_worker *worker, const char *kernel, const char *problem,
                       const char *const *names, char key[NOTE], size_t *variant)
{
    char value[NOTE];
    snprintf(key, NOTE, "%s %s on %s", kernel, problem, worker->device->key);
    if (!clv_notes_get(&worker->run->context->tuned, key, value, sizeof value)) return false;
    value[strcspn(value, " ")] = '\0'; /* the figures after the name are for human readers */
    *variant = index_of(names, value);
    return *variant != SIZE_MAX;
}

static size_t choose(clv_worker *worker, const char *kernel, const char *problem,
                     const char *const *names, clv_tune_trial *trial, void *user)
{
    clv_context *context = worker->run->context;
    char key[NOTE], value[NOTE];
    size_t noted;
    if (find_noted(worker, kernel, problem, names, key, &noted)) return noted;
    if (!names[1] || !context->tuning || !clv_notes_are_kept(&context->tuned)) return 0;
    if (worker->queue->rehearsing) return rehearse(worker, names, trial, user);

    clv_text figures = { 0 };
    size_t best = 0;
    double best_s = -1;
    clv_queue *const own = worker->slots[0].queue;
    clv_queue *timed_queue = NULL;
    if (!own->timed && clv_queue_create_timed(worker->device, &timed_queue) == CLV_OK)
        worker->slots[0].queue = worker->queue = timed_queue;
    for (size_t i = 0; names[i]; ++i) {
        worker->variant = i;
        const double seconds = measure(&worker->slots[0], best_s, trial, user);
        if (seconds < 0)
            clv_text_add(&figures, " %s: failed", names[i]);
        else
            clv_text_add(&figures, " %s: %.3g ms", names[i], seconds * 1e3);
        if (seconds > 0 && (best_s < 0 || seconds < 0.97 * best_s))
            best = i, best_s = seconds; /* the default wins ties */
    }
    worker->slots[0].queue = worker->queue = own;
    clv_queue_free(timed_queue);
    snprintf(value, sizeof value, "%s  #%s", names[best], clv_text_get(&figures));
    clv_text_clear(&figures);
    clv_notes_set(&context->tuned, key, value);
    clv_notes_save(&context->tuned);
    clv_log(CLV_LOG_INFO, "%s: %s: %s", worker->device->label, kernel, value);
    return best;
}

void clv_tune(clv_worker *worker, const char *kernel, const char *problem, const char *const *names,
              clv_tune_trial *trial, void *user)
{
    worker->variant = choose(worker, kernel, problem, names, trial, user);
}

void clv_tune_unmeasured(clv_worker *worker, const char *kernel, const char *problem,
                         const char *const *names, size_t usual)
{
    char key[NOTE];
    if (!find_noted(worker, kernel, problem, names, key, &worker->variant)) worker->variant = usual;
}

const char *const *clv_variants_for(const clv_device *device, const char *const *cores,
                                    const char *const *rasterisers, const char *const *gpus)
{
    switch (clv_device_facts(device)->device_class) {
    case CLV_CLASS_CPU:
        return cores;
    case CLV_CLASS_SOFTWARE:
        return rasterisers;
    default:
        return gpus;
    }
}

size_t clv_worker_variant(const clv_worker *worker)
{
    return worker->variant;
}

void clv_worker_use_variant(clv_worker *worker, size_t variant)
{
    worker->variant = variant;
}

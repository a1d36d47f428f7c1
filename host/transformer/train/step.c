/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps and evaluations of a trainer, and repeats a step that a check finds wrong. */
#include "host/transformer/train/bits.h"
#include "host/transformer/train/check.h"
#include "host/transformer/train/share.h"
#include "host/transformer/train/watch.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "host/transformer/encoder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MOST_RATE 1e30 /* as float32 it is not infinite, even times the greatest decay */

/* A batch as the caller passed it. */
typedef struct batch {
    const int32_t *ids, *labels;
    const size_t *offsets;
    size_t texts;
} batch;

/* Reorders pairs so that all first texts come before all second ones and both form matrices. */
static clv_status arrange(clv_trainer *t, const int32_t **ids, const size_t **offsets, size_t texts)
{
    const size_t tokens = (*offsets)[texts] - (*offsets)[0];
    size_t used = 0;
    if (!clv_reserve(&t->ids, &t->id_room, tokens + 1, sizeof *t->ids) ||
        !clv_reserve(&t->offsets, &t->offset_room, texts + 1, sizeof *t->offsets))
        return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu tokens", tokens);
    for (size_t i = 0; i < texts; ++i) {
        const size_t from = i < texts / 2 ? 2 * i : 2 * (i - texts / 2) + 1;
        const size_t count = (*offsets)[from + 1] - (*offsets)[from];
        t->offsets[i] = used;
        if (count) memcpy(t->ids + used, *ids + (*offsets)[from], count * sizeof *t->ids);
        used += count;
    }
    t->offsets[texts] = used;
    *ids = t->ids;
    *offsets = t->offsets;
    return CLV_OK;
}

static clv_status read_labels(clv_trainer *t, const int32_t *labels, size_t texts)
{
    const bool pairs = t->options.task == CLV_TRAIN_PAIRS;
    const size_t count = pairs ? texts / 2 : texts;
    if (!clv_reserve(&t->label_list, &t->label_room, count + 1, sizeof *t->label_list))
        return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu labels", count);
    for (size_t i = 0; i < count; ++i) {
        t->label_list[i] = pairs ? (int32_t)i : labels[i];
        if (!pairs && labels[i] != CLV_LABEL_IGNORED &&
            (labels[i] < 0 || (size_t)labels[i] >= t->options.classes))
            return clv_fail(CLV_E_ARGUMENT, "training: label %zu is %d, expected 0 to %zu or %d", i,
                            (int)labels[i], t->options.classes - 1, CLV_LABEL_IGNORED);
    }
    return CLV_OK;
}

/* Checks the whole batch before the step changes anything. */
static clv_status check_batch(clv_trainer *t, const batch *b)
{
    const bool pairs = t->options.task == CLV_TRAIN_PAIRS;
    if (!b->offsets || !b->texts || (!b->labels && !pairs) ||
        (b->offsets[b->texts] > b->offsets[0] && !b->ids))
        return clv_fail(CLV_E_ARGUMENT, "training: an argument is NULL, or there is no text");
    if (pairs && b->texts % 2)
        return clv_fail(CLV_E_SHAPE, "training: got %zu texts, but pairs need an even number",
                        b->texts);
    CLV_TRY(clv_texts_check("training", &t->net.config, b->ids, b->offsets, b->texts));
    if (b->offsets[b->texts] == b->offsets[0])
        return clv_fail(CLV_E_ARGUMENT, "training: the batch has no tokens");
    return CLV_OK;
}

/* Passes a batch to the ops and runs it through the net and its head. */
static clv_status run_for(clv_trainer *t, const batch *b, bool learns, float *scores,
                          clv_train_result *result)
{
    const int32_t *ids = b->ids;
    const size_t *offsets = b->offsets;
    *result = (clv_train_result){ 0 };
    CLV_TRY(read_labels(t, b->labels, b->texts));
    if (t->options.task == CLV_TRAIN_PAIRS) CLV_TRY(arrange(t, &ids, &offsets, b->texts));
    CLV_TRY(clv_batch_fill(t->ops, &t->batch, ids, offsets, b->texts, NULL));
    CLV_TRY(clv_share_cut(t, ids, offsets, b->texts));
    return clv_head_run(t, t->label_list, learns, scores, result);
}

static clv_status run(clv_trainer *t, const batch *b, bool learns, clv_train_result *result)
{
    return run_for(t, b, learns, NULL, result);
}

/* Clears the whole gradient after a failed step: a step expects the gradients of all words outside its texts to be 0,
 * and a failed step may have left other values. */
static clv_status forget_all(clv_trainer *t)
{
    if (!t || !t->stale) return CLV_OK;
    CLV_TRY(t->ops->clear(t->ops, (clv_mem){ t->net.gradient, 0 }, t->count));
    t->stale = false;
    return CLV_OK;
}

static void tell_repeat(clv_trainer *t, const char *what)
{
    ++t->repeated;
    clv_log(CLV_LOG_WARN,
            "%s: the %s of step %" PRIu64 " differ from those of plain C; the step is repeated",
            t->device, what, t->steps + 1);
}

static clv_status give_up(const clv_trainer *t, const char *what)
{
    return clv_fail(CLV_E_DEVICE,
                    "%s: the %s of step %" PRIu64
                    " differ from those of plain C, and do so when the step is repeated; the "
                    "weights are those of the step before. Check the device with `cleave probe "
                    "--check`, or compute without it (--mode=reference)",
                    t->device, what, t->steps + 1);
}

/* Computes the gradient and compares it with that of plain C from the same weights; if they differ, computes it once
 * more. */
static clv_status checked_gradient(clv_trainer *t, const batch *b, clv_train_result *found)
{
    clv_train_result expected;
    bool same;
    CLV_TRY(run(t->twin, b, true, &expected));
    CLV_TRY(clv_check_gradient(t, found, &expected, &same));
    if (same) return CLV_OK;
    tell_repeat(t, "gradients");
    CLV_TRY(t->ops->clear(t->ops, (clv_mem){ t->net.gradient, 0 }, t->count));
    CLV_TRY(run(t, b, true, found));
    CLV_TRY(clv_check_gradient(t, found, &expected, &same));
    return same ? CLV_OK : give_up(t, "gradients");
}

/* Updates the weights with the gradient times `scale`. */
static clv_status apply(clv_trainer *t, double rate, float scale)
{
    bool same;
    CLV_TRY(clv_bits_begin(t));
    CLV_TRY(clv_trainer_apply(t, rate, scale));
    CLV_TRY(clv_bits_compare(t, &same));
    return same ? CLV_OK : clv_check_flipped(t, t->steps - 1);
}

static clv_status update(clv_trainer *t, double rate, clv_train_result *found)
{
    float scale;
    CLV_TRY(clv_trainer_shorten(t, found, &scale));
    return apply(t, rate, scale);
}

/* Updates the weights and compares them with the weights that plain C computes from the same gradient; if they differ,
 * repeats the update once. */
static clv_status checked_update(clv_trainer *t, double rate, clv_train_result *found)
{
    bool same;
    CLV_TRY(update(t, rate, found));
    CLV_TRY(clv_check_update(t, rate, &same));
    if (same) return CLV_OK;
    CLV_TRY(clv_check_undo(t));
    tell_repeat(t, "new weights");
    CLV_TRY(update(t, rate, found));
    CLV_TRY(clv_check_update(t, rate, &same));
    if (same) return CLV_OK;
    CLV_TRY(clv_check_undo(t));
    return give_up(t, "new weights");
}

static clv_status learn(clv_trainer *t, const batch *b, double rate, clv_train_result *found)
{
    bool due = clv_check_due(t);
    if (due) CLV_TRY(clv_check_begin(t, &due));
    CLV_TRY(run(t, b, true, found));
    if (!due) {
        float scale;
        CLV_TRY(clv_trainer_shorten(t, found, &scale));
        due = clv_watch_odd(t, found);
        if (due) CLV_TRY(clv_check_begin(t, &due));
        if (!due) {
            CLV_TRY(apply(t, rate, scale));
            return clv_net_forget(&t->net, &t->batch.batch);
        }
    }
    CLV_TRY(checked_gradient(t, b, found));
    CLV_TRY(checked_update(t, rate, found));
    ++t->checked;
    CLV_TRY(clv_net_forget(&t->twin->net, &t->twin->batch.batch));
    return clv_net_forget(&t->net, &t->batch.batch);
}

clv_status clv_trainer_step(clv_trainer *t, const int32_t *ids, const size_t *offsets, size_t texts,
                            const int32_t *labels, double rate, clv_train_result *result)
{
    clv_train_result found;
    const batch b = { ids, labels, offsets, texts };
    if (result) *result = (clv_train_result){ 0 };
    if (!(rate >= 0 && rate <= MOST_RATE))
        return clv_fail(CLV_E_ARGUMENT, "training: the rate is %g, but it must be from 0 to %g",
                        rate, MOST_RATE);
    if (!t) return clv_fail(CLV_E_ARGUMENT, "training: an argument is NULL, or there is no text");
    clv_status status = check_batch(t, &b);
    if (!status) status = forget_all(t);
    if (!status) status = learn(t, &b, rate, &found);
    if (!status) clv_watch_result(t, &found);
    if (status) {
        t->stale = true;
        clv_check_end(t);
        return t->ops->fail(t->ops, status);
    }
    if (result) *result = found;
    return CLV_OK;
}

/* Runs a batch forward; `scores` may be NULL. */
static clv_status look(clv_trainer *t, const int32_t *ids, const size_t *offsets, size_t texts,
                       const int32_t *labels, float *scores, clv_train_result *result)
{
    clv_train_result found = { 0 };
    const batch b = { ids, labels, offsets, texts };
    if (result) *result = found;
    if (!t) return clv_fail(CLV_E_ARGUMENT, "training: an argument is NULL, or there is no text");
    clv_status status = check_batch(t, &b);
    if (!status) status = run_for(t, &b, false, scores, &found);
    if (status) return t->ops->fail(t->ops, status);
    if (result) *result = found;
    return CLV_OK;
}

clv_status clv_trainer_evaluate(clv_trainer *t, const int32_t *ids, const size_t *offsets,
                                size_t texts, const int32_t *labels, clv_train_result *result)
{
    return look(t, ids, offsets, texts, labels, NULL, result);
}

clv_status clv_trainer_scores(clv_trainer *t, const int32_t *ids, const size_t *offsets,
                              size_t texts, const int32_t *labels, float *scores,
                              clv_train_result *result)
{
    if (!scores) return clv_fail(CLV_E_ARGUMENT, "clv_trainer_scores: scores is NULL");
    return look(t, ids, offsets, texts, labels, scores, result);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* clv_trainer: opened, a step, an evaluation, closed. */
#include "host/transformer/train/trainer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "host/transformer/encoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_HEAD_WIDTH = 256, MOST_CLASSES = 1 << 20 };

/* All from 0 to less than something. */
static clv_status check_numbers(const clv_trainer_options *o)
{
    const struct {
        const char *name;
        double given, below;
    } rules[] = { { "beta1", o->beta1, 1 },       { "beta2", o->beta2, 1 },
                  { "momentum", o->momentum, 1 }, { "eps", o->eps, 1 },
                  { "decay", o->decay, 1e6 },     { "clip", o->clip, (double)INFINITY },
                  { "scale", o->scale, 1e6 } };
    for (size_t i = 0; i < CLV_LEN(rules); ++i)
        if (!(rules[i].given >= 0 && rules[i].given < rules[i].below))
            return clv_fail(CLV_E_ARGUMENT, "trainer: %s %g given, expected 0 to less than %g",
                            rules[i].name, rules[i].given, rules[i].below);
    return CLV_OK;
}

static clv_status read_options(const clv_trainer_options *given, const clv_model_config *c,
                               clv_trainer_options *o)
{
    CLV_TRY(clv_take_struct(o, sizeof *o, given, "clv_trainer_open", "clv_trainer_options"));
    if (o->beta1 == 0) o->beta1 = 0.9;
    if (o->beta2 == 0) o->beta2 = 0.999;
    if (o->eps == 0) o->eps = 1e-8;
    if (o->scale == 0) o->scale = 20;
    if (o->task > CLV_TRAIN_PAIRS || o->optimizer > CLV_OPTIMIZER_SGD)
        return clv_fail(CLV_E_ARGUMENT, "trainer: task %d, optimizer %d are not known",
                        (int)o->task, (int)o->optimizer);
    if (o->task == CLV_TRAIN_CLASSES && (o->classes < 2 || o->classes > MOST_CLASSES))
        return clv_fail(CLV_E_ARGUMENT, "trainer: %zu classes given, expected 2 to %d", o->classes,
                        MOST_CLASSES);
    if (o->task == CLV_TRAIN_PAIRS) o->classes = 0;
    CLV_TRY(check_numbers(o));
    if (o->frozen_layers > c->layers)
        return clv_fail(CLV_E_ARGUMENT, "trainer: %zu layers stay, the model has %zu",
                        o->frozen_layers, c->layers);
    const bool stays = c->layers ? o->frozen_layers == c->layers : o->frozen_embedding;
    if (stays && o->task == CLV_TRAIN_PAIRS)
        return clv_fail(
            CLV_E_ARGUMENT,
            "trainer: %zu layers stay, the model has %zu, and pairs add no layer: nothing "
            "would learn",
            o->frozen_layers, c->layers);
    if (!c->heads || c->width % c->heads || c->width / c->heads > MOST_HEAD_WIDTH)
        return clv_fail(CLV_E_SHAPE,
                        "trainer: %zu heads of a width of %zu, expected heads that divide it and "
                        "are %d wide at most",
                        c->heads, c->width, MOST_HEAD_WIDTH);
    return CLV_OK;
}

/* Uniform in +-sqrt(1 / D), as PyTorch begins a linear layer; SplitMix64. */
static float first_weight(uint64_t *state, size_t width)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    const double u = (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
    return (float)(u / sqrt((double)width));
}

static clv_status bring_head(clv_trainer *t)
{
    const size_t count = t->count - t->head;
    uint64_t state = t->options.seed;
    if (!count) return CLV_OK;
    float *head = clv_alloc(count, sizeof *head);
    if (!head) return clv_fail(CLV_E_MEMORY, "trainer: no memory for %zu weights", count);
    for (size_t i = 0; i < count; ++i)
        head[i] = first_weight(&state, t->net.config.width);
    const clv_status status =
        t->ops->put(t->ops, (clv_mem){ t->net.weights, t->head }, head, count);
    clv_free(head);
    return status;
}

static clv_status bring(clv_trainer *t)
{
    clv_train_ops *ops = t->ops;
    const float *values;
    const size_t classes = t->options.classes, width = t->net.config.width;
    void **const blocks[] = { &t->net.weights, &t->net.gradient, &t->first, &t->second };
    t->head = clv_model_parameters(t->model, &values) - t->net.base;
    t->head_bias = t->head + classes * width;
    t->count = t->head_bias + classes;
    for (size_t i = 0; i < CLV_LEN(blocks); ++i) {
        const bool unused = t->options.optimizer == CLV_OPTIMIZER_SGD &&
                            (i == 3 || (i == 2 && t->options.momentum == 0));
        if (unused) continue;
        CLV_TRY(ops->take(ops, t->count, blocks[i]));
        if (i) CLV_TRY(ops->clear(ops, (clv_mem){ *blocks[i], 0 }, t->count));
    }
    CLV_TRY(ops->put(ops, (clv_mem){ t->net.weights, 0 }, values + t->net.base, t->head));
    CLV_TRY(bring_head(t));
    return clv_trainer_choose_parts(t);
}

clv_status clv_trainer_open(clv_context *context, const clv_model *model,
                            const clv_trainer_options *options, clv_trainer **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "trainer: nowhere to put it");
    *out = NULL;
    if (!context || !model) return clv_fail(CLV_E_ARGUMENT, "trainer: context or model is NULL");
    clv_trainer *t = clv_zalloc(1, sizeof *t);
    if (!t) return clv_fail(CLV_E_MEMORY, "trainer: no memory");
    t->model = model;
    const clv_model_config *config = clv_model_get_config(model);
    clv_status status = read_options(options, config, &t->options);
    if (!status) status = clv_train_ops_open(context, t->device, sizeof t->device, &t->ops);
    if (!status)
        status = clv_net_open(t->ops, model, t->options.frozen_layers, t->options.frozen_embedding,
                              &t->net);
    if (!status) status = bring(t);
    if (status)
        clv_trainer_close(t);
    else
        *out = t;
    return status;
}

void clv_trainer_close(clv_trainer *t)
{
    if (!t) return;
    if (t->ops) {
        void *const blocks[] = { t->net.weights, t->net.gradient, t->first, t->second };
        clv_room *const rooms[] = { &t->pooled,   &t->unit,   &t->g_pooled, &t->scores,
                                    &t->g_scores, &t->labels, &t->losses,   &t->g };
        for (size_t i = 0; i < CLV_LEN(blocks); ++i)
            if (blocks[i]) t->ops->drop(t->ops, blocks[i]);
        for (size_t i = 0; i < CLV_LEN(rooms); ++i)
            clv_room_free(t->ops, rooms[i]);
        clv_batch_free(t->ops, &t->batch);
        clv_net_close(&t->net);
        t->ops->close(t->ops);
    }
    clv_free(t->parts), clv_free(t->ids), clv_free(t->offsets), clv_free(t->label_list);
    clv_free(t);
}

uint64_t clv_trainer_steps(const clv_trainer *t)
{
    return t->steps;
}

const char *clv_trainer_device(const clv_trainer *t)
{
    return t->device;
}

/* Pairs with all firsts before all seconds, so that both are matrices. */
static clv_status arrange(clv_trainer *t, const int32_t **ids, const size_t **offsets, size_t texts)
{
    const size_t tokens = (*offsets)[texts] - (*offsets)[0];
    size_t used = 0;
    if (!clv_reserve(&t->ids, &t->id_room, tokens + 1, sizeof *t->ids) ||
        !clv_reserve(&t->offsets, &t->offset_room, texts + 1, sizeof *t->offsets))
        return clv_fail(CLV_E_MEMORY, "training: no memory for %zu tokens", tokens);
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
        return clv_fail(CLV_E_MEMORY, "training: no memory for %zu labels", count);
    for (size_t i = 0; i < count; ++i) {
        t->label_list[i] = pairs ? (int32_t)i : labels[i];
        if (!pairs && labels[i] != CLV_LABEL_IGNORED &&
            (labels[i] < 0 || (size_t)labels[i] >= t->options.classes))
            return clv_fail(CLV_E_ARGUMENT, "training: label %zu is %d, expected 0 to %zu or %d", i,
                            (int)labels[i], t->options.classes - 1, CLV_LABEL_IGNORED);
    }
    return CLV_OK;
}

/* A batch on its way: checked, brought, through the net and its head. */
static clv_status run(clv_trainer *t, const int32_t *ids, const size_t *offsets, size_t texts,
                      const int32_t *labels, bool learns, clv_train_result *result)
{
    *result = (clv_train_result){ 0 };
    const bool pairs = t && t->options.task == CLV_TRAIN_PAIRS;
    if (!t || !offsets || !texts || (!labels && !pairs) || (offsets[texts] > offsets[0] && !ids))
        return clv_fail(CLV_E_ARGUMENT, "training: a NULL, or no text");
    if (pairs && texts % 2)
        return clv_fail(CLV_E_SHAPE, "training: %zu texts given, pairs are even", texts);
    CLV_TRY(clv_texts_check("training", &t->net.config, ids, offsets, texts));
    if (offsets[texts] == offsets[0])
        return clv_fail(CLV_E_ARGUMENT, "training: a batch without tokens");
    CLV_TRY(read_labels(t, labels, texts));
    if (pairs) CLV_TRY(arrange(t, &ids, &offsets, texts));
    CLV_TRY(clv_batch_fill(t->ops, &t->batch, ids, offsets, texts, NULL));
    return clv_head_run(t, t->label_list, learns, result);
}

/* Slopes of words are 0 but for those of a step's texts; after one that failed they may not be. */
static clv_status forget_all(clv_trainer *t)
{
    if (!t || !t->stale) return CLV_OK;
    CLV_TRY(t->ops->clear(t->ops, (clv_mem){ t->net.gradient, 0 }, t->count));
    t->stale = false;
    return CLV_OK;
}

clv_status clv_trainer_step(clv_trainer *t, const int32_t *ids, const size_t *offsets, size_t texts,
                            const int32_t *labels, double rate, clv_train_result *result)
{
    clv_train_result found;
    if (result) *result = (clv_train_result){ 0 };
    if (!(rate >= 0) || isinf(rate))
        return clv_fail(CLV_E_ARGUMENT, "training: a rate of %g, expected 0 or more", rate);
    clv_status status = forget_all(t);
    if (!status) status = run(t, ids, offsets, texts, labels, true, &found);
    if (!status) status = clv_trainer_update(t, rate, &found);
    if (!status) status = clv_net_forget(&t->net, &t->batch.batch);
    if (status && t) {
        t->stale = true;
        return t->ops->fail(t->ops, status);
    }
    if (status) return status;
    if (result) *result = found;
    return CLV_OK;
}

clv_status clv_trainer_evaluate(clv_trainer *t, const int32_t *ids, const size_t *offsets,
                                size_t texts, const int32_t *labels, clv_train_result *result)
{
    clv_train_result found;
    const clv_status status = run(t, ids, offsets, texts, labels, false, &found);
    if (result) *result = found;
    return status && t ? t->ops->fail(t->ops, status) : status;
}

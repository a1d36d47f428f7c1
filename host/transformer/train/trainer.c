/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_trainer except its steps: opens and closes a trainer, and answers queries about it. */
#include "host/transformer/train/bits.h"
#include "host/transformer/train/share.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_HEAD_WIDTH = 256, MOST_CLASSES = 1 << 20 };

#define LEAST_EPS 1e-20 /* a number of float32, and even its square is one */

/* Checks that each number in the options is at least 0 and below its limit. */
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
            return clv_fail(CLV_E_ARGUMENT,
                            "trainer: %s is %g, but it must be from 0 to less than %g",
                            rules[i].name, rules[i].given, rules[i].below);
    if (o->eps < LEAST_EPS)
        return clv_fail(CLV_E_ARGUMENT,
                        "trainer: eps is %g, but it must be at least %g, because weights without a "
                        "gradient divide 0 by it; 0 means 1e-8",
                        o->eps, LEAST_EPS);
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
    if (!o->check_every && !o->check_every_given) o->check_every = CLV_TRAINER_CHECK_EVERY;
    if (o->task > CLV_TRAIN_PAIRS || o->optimizer > CLV_OPTIMIZER_SGD)
        return clv_fail(CLV_E_ARGUMENT,
                        "trainer: task %d or optimizer %d is not one of the enumerators",
                        (int)o->task, (int)o->optimizer);
    if (o->task == CLV_TRAIN_CLASSES && (o->classes < 2 || o->classes > MOST_CLASSES))
        return clv_fail(CLV_E_ARGUMENT, "trainer: got %zu classes, expected 2 to %d", o->classes,
                        MOST_CLASSES);
    if (o->head != CLV_TRAIN_HEAD_LINEAR && o->head != CLV_TRAIN_HEAD_POOLER)
        return clv_fail(CLV_E_ARGUMENT, "trainer: head %d is not one of the enumerators",
                        (int)o->head);
    if (o->task == CLV_TRAIN_PAIRS) o->classes = 0, o->head = CLV_TRAIN_HEAD_LINEAR;
    CLV_TRY(check_numbers(o));
    if (o->frozen_layers > c->layers)
        return clv_fail(CLV_E_ARGUMENT,
                        "trainer: %zu layers are to be frozen, but the model has only %zu",
                        o->frozen_layers, c->layers);
    const bool stays = c->layers ? o->frozen_layers == c->layers : o->frozen_embedding;
    if (stays && o->task == CLV_TRAIN_PAIRS)
        return clv_fail(
            CLV_E_ARGUMENT,
            "trainer: all %zu layers of the model are frozen, and pairs add no layer, so "
            "that there is nothing to train",
            c->layers);
    const bool pools = c->pooling <= CLV_MODEL_MAX || o->head == CLV_TRAIN_HEAD_POOLER;
    if (c->family != CLV_MODEL_BERT || !pools || c->joined_count || c->step_count)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "trainer: only models of the BERT family can be trained, with mean, cls or "
                        "max pooling and no Dense or LayerNorm after it");
    if (!c->heads || c->width % c->heads || c->width / c->heads > MOST_HEAD_WIDTH)
        return clv_fail(CLV_E_SHAPE,
                        "trainer: %zu heads for a width of %zu are not supported: the heads must "
                        "divide the width and be at most %d wide",
                        c->heads, c->width, MOST_HEAD_WIDTH);
    return CLV_OK;
}

/* Returns a random number (SplitMix64), uniform between -sqrt(1 / width) and sqrt(1 / width), like the initial weights
 * of a linear layer in PyTorch. */
static float first_weight(uint64_t *state, size_t width)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    const double u = (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
    return (float)(u / sqrt((double)width));
}

/* Fills in the initial weights of the pooler: those of the model, or the identity if the model has no pooler. */
static void first_pooler(const clv_trainer *t, float *weight, float *bias)
{
    const clv_model_weights *w = clv_model_get_weights(t->model);
    const size_t d = t->net.config.width;
    const bool given = w->pooler_weight && w->pooler_bias;
    for (size_t i = 0; i < d * d; ++i)
        weight[i] = given ? w->pooler_weight[i] : i % (d + 1) == 0;
    for (size_t i = 0; i < d; ++i)
        bias[i] = given ? w->pooler_bias[i] : 0;
}

static clv_status bring_head(clv_trainer *t)
{
    const size_t count = t->count - t->head;
    uint64_t state = t->options.seed;
    if (!count) return CLV_OK;
    float *head = clv_alloc(count, sizeof *head);
    if (!head) return clv_fail(CLV_E_MEMORY, "trainer: not enough memory for %zu weights", count);
    for (size_t i = 0; i < t->pooler - t->head; ++i)
        head[i] = first_weight(&state, t->net.config.width);
    if (clv_head_has_pooler(t))
        first_pooler(t, head + (t->pooler - t->head), head + (t->pooler_bias - t->head));
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
    t->pooler = t->head_bias + classes;
    t->pooler_bias = t->pooler + (clv_head_has_pooler(t) ? width * width : 0);
    t->count = t->pooler_bias + (clv_head_has_pooler(t) ? width : 0);
    for (size_t i = 0; i < CLV_LEN(blocks); ++i) {
        const bool unused = t->options.optimizer == CLV_OPTIMIZER_SGD &&
                            (i == 3 || (i == 2 && t->options.momentum == 0));
        if (unused) continue;
        CLV_TRY(ops->take(ops, t->count, blocks[i]));
        if (i) CLV_TRY(ops->clear(ops, (clv_mem){ *blocks[i], 0 }, t->count));
    }
    CLV_TRY(clv_room_fit(ops, &t->bits, CLV_BITS_ROOM));
    CLV_TRY(ops->put(ops, (clv_mem){ t->net.weights, 0 }, values + t->net.base, t->head));
    CLV_TRY(bring_head(t));
    return clv_trainer_choose_parts(t);
}

/* Opens a trainer with complete options; the trainer takes ownership of the ops. */
static clv_status open_on(const clv_model *model, const clv_trainer_options *options,
                          clv_train_ops *ops, clv_trainer **out)
{
    clv_trainer *t = clv_zalloc(1, sizeof *t);
    *out = t;
    if (!t) {
        ops->close(ops);
        return clv_fail(CLV_E_MEMORY, "trainer: out of memory");
    }
    t->model = model;
    t->options = *options;
    t->ops = ops;
    CLV_TRY(clv_net_open(ops, model, options->frozen_layers, options->frozen_embedding, &t->net));
    if (clv_head_has_pooler(t)) t->net.config.pooling = CLV_MODEL_CLS;
    return bring(t);
}

clv_status clv_trainer_open(clv_context *context, const clv_model *model,
                            const clv_trainer_options *options, clv_trainer **out)
{
    clv_trainer_options all;
    clv_train_ops *ops;
    char device[sizeof(((clv_trainer *)0)->device)];
    if (!out) return clv_fail(CLV_E_ARGUMENT, "trainer: out is NULL");
    *out = NULL;
    if (!context || !model) return clv_fail(CLV_E_ARGUMENT, "trainer: context or model is NULL");
    CLV_TRY(read_options(options, clv_model_get_config(model), &all));
    CLV_TRY(clv_train_ops_open(context, device, sizeof device, &ops));
    const clv_status status = open_on(model, &all, ops, out);
    if (status) {
        clv_trainer_close(*out);
        *out = NULL;
        return status;
    }
    (*out)->context = context;
    memcpy((*out)->device, device, sizeof device);
    (*out)->is_reference = strcmp(device, "host") == 0;
    return CLV_OK;
}

clv_status clv_trainer_open_twin(clv_trainer *t)
{
    clv_train_ops *ops;
    CLV_TRY(clv_train_ops_plain(&ops));
    clv_status status = open_on(t->model, &t->options, ops, &t->twin);
    if (!status && t->net.bare_embed) { /* a test sets it after the trainer is opened */
        t->twin->net.bare_embed = true;
        status = clv_trainer_choose_parts(t->twin);
    }
    if (!status) return CLV_OK;
    clv_trainer_close(t->twin);
    t->twin = NULL;
    return status;
}

void clv_trainer_close(clv_trainer *t)
{
    if (!t) return;
    clv_trainer_close(t->twin);
    clv_share_free(t);
    if (t->ops) {
        void *const blocks[] = { t->net.weights, t->net.gradient, t->first, t->second };
        clv_room *const rooms[] = { &t->pooled,   &t->unit,    &t->g_pooled, &t->scores,
                                    &t->g_scores, &t->labels,  &t->losses,   &t->g,
                                    &t->dense,    &t->g_dense, &t->bits };
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

uint64_t clv_trainer_checked(const clv_trainer *t, uint64_t *repeated)
{
    if (repeated) *repeated = t->repeated;
    return t->checked;
}

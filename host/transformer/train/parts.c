/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the trainable parameters in parts with and without weight decay, and updates them. */
#include "host/transformer/train/trainer.h"
#include "host/transformer/train/watch.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

/* Adds parameters to the list; adjacent parameters with the same decay become one part. */
static void add(clv_trainer *t, size_t at, size_t count, bool matrix)
{
    const bool decays = matrix || t->options.decay_all;
    clv_trainable *last = t->part_count ? &t->parts[t->part_count - 1] : NULL;
    if (last && last->decays == decays && last->at + last->count == at)
        last->count += count;
    else
        t->parts[t->part_count++] = (clv_trainable){ at, count, decays };
}

clv_status clv_trainer_choose_parts(clv_trainer *t)
{
    enum { PARTS_A_LAYER = 12, FIXED = 9 };
    const clv_net *n = &t->net;
    const clv_model_config *c = &n->config;
    const size_t d = c->width, f = c->ffn;
    clv_free(t->parts);
    t->part_count = 0;
    t->parts = clv_alloc(c->layers * PARTS_A_LAYER + FIXED, sizeof *t->parts);
    if (!t->parts) return clv_fail(CLV_E_MEMORY, "training: out of memory");
    if (!n->frozen_embed) {
        add(t, n->word, c->vocabulary * d, true);
        add(t, n->position, c->positions * d, true);
        if (!n->bare_embed) {
            add(t, n->type, c->types * d, true);
            add(t, n->norm, d, false);
            add(t, n->norm_bias, d, false);
        }
    }
    for (size_t i = 0; i < c->layers - n->frozen; ++i) {
        const clv_net_layer *l = &n->layers[i];
        add(t, l->qkv, 3 * d * d, true);
        add(t, l->qkv_bias, 3 * d, false);
        add(t, l->out, d * d, true);
        add(t, l->out_bias, d, false);
        add(t, l->norm1, d, false);
        add(t, l->norm1_bias, d, false);
        add(t, l->up, f * d, true);
        add(t, l->up_bias, f, false);
        add(t, l->down, d * f, true);
        add(t, l->down_bias, d, false);
        add(t, l->norm2, d, false);
        add(t, l->norm2_bias, d, false);
    }
    if (t->options.task == CLV_TRAIN_CLASSES) {
        add(t, t->head, t->options.classes * d, true);
        add(t, t->head_bias, t->options.classes, false);
        if (clv_head_has_pooler(t)) {
            add(t, t->pooler, d * d, true);
            add(t, t->pooler_bias, d, false);
        }
    }
    return CLV_OK;
}

clv_status clv_trainer_shorten(clv_trainer *t, clv_train_result *result, float *scale)
{
    double squares = 0;
    *scale = 1;
    if (!(t->options.clip > 0)) return CLV_OK;
    for (size_t i = 0; i < t->part_count; ++i) {
        double sum;
        CLV_TRY(t->ops->squares(t->ops, (clv_mem){ t->net.gradient, t->parts[i].at },
                                t->parts[i].count, &sum));
        squares += sum;
    }
    result->gradient_length = sqrt(squares);
    if (result->gradient_length > t->options.clip)
        *scale = (float)(t->options.clip / (result->gradient_length + 1e-6));
    return CLV_OK;
}

clv_train_rule clv_trainer_rule(const clv_trainer *t)
{
    const clv_trainer_options *o = &t->options;
    return (clv_train_rule){ o->optimizer, o->beta1, o->beta2, o->eps, o->momentum };
}

clv_train_update clv_trainer_update_of(const clv_trainer *t, const clv_trainable *part, float scale,
                                       double rate)
{
    return (clv_train_update){ .weights = t->net.weights,
                               .gradient = t->net.gradient,
                               .first = t->first,
                               .second = t->second,
                               .bits = t->bits.memory,
                               .at = part->at,
                               .count = part->count,
                               .scale = scale,
                               .rate = rate,
                               .decay = part->decays ? t->options.decay : 0,
                               .step = t->steps };
}

clv_status clv_trainer_apply(clv_trainer *t, double rate, float scale)
{
    const clv_train_rule rule = clv_trainer_rule(t);
    ++t->steps;
    clv_watch_move(t, rate);
    for (size_t i = 0; i < t->part_count; ++i) {
        const clv_train_update u = clv_trainer_update_of(t, &t->parts[i], scale, rate);
        CLV_TRY(t->ops->update(t->ops, &rule, &u));
    }
    return CLV_OK;
}

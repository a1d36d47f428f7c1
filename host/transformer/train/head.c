/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the head, forward from pooled vectors to a loss and backward: a linear layer for classes, cosines for
 * pairs. */
#include "host/transformer/train/share.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static clv_mem all_of(const clv_room *room)
{
    return (clv_mem){ room->memory, 0 };
}

bool clv_head_has_pooler(const clv_trainer *t)
{
    return t->options.task == CLV_TRAIN_CLASSES && t->options.head == CLV_TRAIN_HEAD_POOLER;
}

/* Describes the dense layer that converts the first tokens' vectors to the input of the classes' layer. */
static clv_train_linear pooler_of(const clv_trainer *t, size_t texts)
{
    const size_t d = t->net.config.width;
    return (clv_train_linear){ .rows = texts,
                               .n = d,
                               .k = d,
                               .alpha = 1,
                               .x = all_of(&t->pooled),
                               .w = { t->net.weights, t->pooler },
                               .b = { t->net.weights, t->pooler_bias },
                               .y = all_of(&t->dense),
                               .g = all_of(&t->g_pooled),
                               .dx = all_of(&t->g_dense),
                               .dw = { t->net.gradient, t->pooler },
                               .db = { t->net.gradient, t->pooler_bias } };
}

/* Describes the product that computes scores from vectors, for classes and for pairs. */
static clv_train_linear scores_of(const clv_trainer *t, size_t texts)
{
    const size_t d = t->net.config.width, classes = t->options.classes;
    clv_train_linear l = { .k = d, .y = all_of(&t->scores), .g = all_of(&t->g_scores) };
    if (t->options.task == CLV_TRAIN_CLASSES) {
        l.rows = texts, l.n = classes, l.alpha = 1;
        l.x = all_of(clv_head_has_pooler(t) ? &t->unit : &t->pooled);
        l.w = (clv_mem){ t->net.weights, t->head };
        l.b = (clv_mem){ t->net.weights, t->head_bias };
        l.dx = all_of(&t->g_pooled);
        l.dw = (clv_mem){ t->net.gradient, t->head };
        l.db = (clv_mem){ t->net.gradient, t->head_bias };
        return l;
    }
    l.rows = l.n = texts / 2, l.alpha = (float)t->options.scale;
    l.x = all_of(&t->unit);
    l.w = (clv_mem){ t->unit.memory, l.rows * d };
    l.dx = all_of(&t->g_pooled);
    l.dw = (clv_mem){ t->g_pooled.memory, l.rows * d };
    return l;
}

static clv_status fit(clv_trainer *t, size_t texts, size_t scores)
{
    const size_t d = t->net.config.width;
    CLV_TRY(clv_room_fit(t->ops, &t->pooled, texts * d));
    CLV_TRY(clv_room_fit(t->ops, &t->unit, texts * d));
    CLV_TRY(clv_room_fit(t->ops, &t->g_pooled, texts * d));
    if (clv_head_has_pooler(t)) {
        CLV_TRY(clv_room_fit(t->ops, &t->dense, texts * d));
        CLV_TRY(clv_room_fit(t->ops, &t->g_dense, texts * d));
    }
    CLV_TRY(clv_room_fit(t->ops, &t->scores, scores));
    CLV_TRY(clv_room_fit(t->ops, &t->g_scores, scores));
    CLV_TRY(clv_room_fit(t->ops, &t->labels, texts));
    return clv_room_fit(t->ops, &t->losses, texts);
}

/* Counts the labelled rows and, among these, the correctly classified ones, and averages the losses of the labelled
 * rows. */
static void count(const int32_t *labels, const float *losses, const float *scores, size_t rows,
                  size_t classes, clv_train_result *result)
{
    double sum = 0;
    *result = (clv_train_result){ 0 };
    for (size_t r = 0; r < rows; ++r) {
        size_t best = 0;
        if (labels[r] == CLV_LABEL_IGNORED) continue;
        for (size_t c = 1; c < classes; ++c)
            if (scores[r * classes + c] > scores[r * classes + best]) best = c;
        ++result->counted;
        result->right += best == (size_t)labels[r];
        sum += (double)losses[r];
    }
    result->loss = result->counted ? sum / (double)result->counted : 0;
}

static clv_status bring_back(clv_trainer *t, const int32_t *labels, size_t rows, size_t classes,
                             float *scores, clv_train_result *result)
{
    float *host = clv_alloc(rows * (classes + 1) + 1, sizeof *host);
    if (!host)
        return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu scores", rows * classes);
    clv_status status = t->ops->get(t->ops, all_of(&t->losses), host, rows);
    if (!status) status = t->ops->get(t->ops, all_of(&t->scores), host + rows, rows * classes);
    if (!status) count(labels, host, host + rows, rows, classes, result);
    if (!status && scores && rows) memcpy(scores, host + rows, rows * classes * sizeof *scores);
    clv_free(host);
    return status;
}

/* Runs the backward pass from scores to pooled vectors; *g is dL/d(pooled). */
static clv_status back(clv_trainer *t, const clv_train_linear *scores, size_t texts, clv_mem *g)
{
    CLV_TRY(t->ops->linear_back(t->ops, scores));
    *g = all_of(&t->g_pooled);
    if (clv_head_has_pooler(t)) {
        const clv_train_linear pooler = pooler_of(t, texts);
        CLV_TRY(t->ops->activate(t->ops, pooler.y, *g, *g, texts * pooler.n, CLV_ACTIVATION_TANH));
        *g = pooler.dx;
        return t->ops->linear_back(t->ops, &pooler);
    }
    if (t->options.task == CLV_TRAIN_CLASSES) return CLV_OK;
    return t->ops->unit(t->ops, all_of(&t->pooled), *g, *g, texts, t->net.config.width);
}

/* Converts pooled vectors to the vectors from which the scores are computed. */
static clv_status prepare(clv_trainer *t, size_t texts)
{
    const clv_mem none = { 0 };
    if (clv_head_has_pooler(t)) {
        const clv_train_linear pooler = pooler_of(t, texts);
        CLV_TRY(t->ops->linear(t->ops, &pooler));
        return t->ops->activate(t->ops, pooler.y, none, all_of(&t->unit), texts * pooler.n,
                                CLV_ACTIVATION_TANH);
    }
    if (t->options.task == CLV_TRAIN_CLASSES) return CLV_OK;
    return t->ops->unit(t->ops, all_of(&t->pooled), none, all_of(&t->unit), texts,
                        t->net.config.width);
}

clv_status clv_head_run(clv_trainer *t, const int32_t *labels, bool learns, float *all_scores,
                        clv_train_result *result)
{
    clv_train_ops *ops = t->ops;
    const size_t texts = t->batch.batch.texts, d = t->net.config.width;
    const bool pairs = t->options.task == CLV_TRAIN_PAIRS;
    const size_t rows = pairs ? texts / 2 : texts, classes = pairs ? rows : t->options.classes;
    size_t counted = 0;
    CLV_TRY(fit(t, texts, rows * classes));
    for (size_t r = 0; r < rows; ++r)
        counted += labels[r] != CLV_LABEL_IGNORED;
    clv_mem hidden;
    const bool shared = clv_share_is_cut(t);
    CLV_TRY(shared ? clv_share_forward(t, &hidden)
                   : clv_net_forward(&t->net, &t->batch.batch, &hidden));
    clv_train_pool pool = { .batch = &t->batch.batch,
                            .width = d,
                            .kind = t->net.config.pooling,
                            .x = hidden,
                            .y = all_of(&t->pooled),
                            .g = all_of(&t->g_pooled) };
    CLV_TRY(ops->pool(ops, &pool));
    CLV_TRY(prepare(t, texts));
    const clv_train_linear scores = scores_of(t, texts);
    const clv_train_loss loss = { .rows = rows,
                                  .classes = classes,
                                  .x = all_of(&t->scores),
                                  .g = all_of(&t->g_scores),
                                  .labels = all_of(&t->labels),
                                  .loss = all_of(&t->losses),
                                  .scale = counted ? (float)(1 / (double)counted) : 0 };
    CLV_TRY(ops->linear(ops, &scores));
    CLV_TRY(ops->put(ops, loss.labels, labels, rows));
    CLV_TRY(ops->loss(ops, &loss));
    if (learns) {
        CLV_TRY(clv_room_fit(ops, &t->g, t->batch.batch.tokens * d));
        pool.dx = all_of(&t->g);
        CLV_TRY(back(t, &scores, texts, &pool.g));
        CLV_TRY(ops->pool_back(ops, &pool));
        CLV_TRY(shared ? clv_share_backward(t, pool.dx)
                       : clv_net_backward(&t->net, &t->batch.batch, pool.dx));
    }
    return bring_back(t, labels, rows, classes, all_scores, result);
}

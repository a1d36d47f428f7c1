/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the forward and backward passes of an encoder with the ops of training. */
#include "host/transformer/train/net.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static clv_mem all_of(const clv_room *room)
{
    return (clv_mem){ room->memory, 0 };
}

static clv_mem weight(const clv_net *net, const clv_net_layer *l, size_t at)
{
    return l->held ? (clv_mem){ l->held, at } : (clv_mem){ net->weights, at - net->weights_from };
}

static clv_mem slope(const clv_net *net, size_t at)
{
    return (clv_mem){ net->gradient, at - net->gradient_from };
}

/* ---- frozen weights ------------------------------------------------------------------------------------ */

enum { LAYER_PIECES = 12 };

/* Lists a layer's weights in the order of the model's block. */
static void list_pieces(const clv_model_config *c, const clv_model_layer *l,
                        clv_weight_piece pieces[LAYER_PIECES])
{
    const size_t d = c->width, f = c->ffn;
    const clv_weight_piece all[LAYER_PIECES] = {
        { l->q_weight, 3 * d, d }, { l->q_bias, 3 * d, 0 },   { l->out_weight, d, d },
        { l->out_bias, d, 0 },     { l->norm1_weight, d, 0 }, { l->norm1_bias, d, 0 },
        { l->up_weight, f, d },    { l->up_bias, f, 0 },      { l->down_weight, d, f },
        { l->down_bias, d, 0 },    { l->norm2_weight, d, 0 }, { l->norm2_bias, d, 0 }
    };
    memcpy(pieces, all, sizeof all);
}

static clv_net_layer layer_at(const size_t at[LAYER_PIECES], void *held)
{
    return (clv_net_layer){ .qkv = at[0],
                            .qkv_bias = at[1],
                            .out = at[2],
                            .out_bias = at[3],
                            .norm1 = at[4],
                            .norm1_bias = at[5],
                            .up = at[6],
                            .up_bias = at[7],
                            .down = at[8],
                            .down_bias = at[9],
                            .norm2 = at[10],
                            .norm2_bias = at[11],
                            .held = held };
}

/* The numbers under which the ops hold frozen weights: the embeddings, then the layers. */
enum { EMBED, LAYERS };

static clv_status hold_layer(const clv_net *net, size_t i, clv_net_layer *layer,
                             clv_train_held *held)
{
    clv_weight_piece pieces[LAYER_PIECES];
    size_t at[LAYER_PIECES];
    list_pieces(&net->config, &clv_model_get_weights(net->model)->layer[i], pieces);
    CLV_TRY(net->ops->hold(net->ops, LAYERS + i, pieces, LAYER_PIECES, at, held));
    *layer = layer_at(at, held->memory);
    return CLV_OK;
}

static clv_status hold_embed(const clv_net *net, clv_train_held *held)
{
    const clv_weight_piece all = { clv_model_get_weights(net->model)->word,
                                   net->norm_bias + net->config.width, 0 };
    size_t at;
    return net->ops->hold(net->ops, EMBED, &all, 1, &at, held);
}

/* Uploads the frozen weights to the device before the first step, which then finds them in the cache. */
static clv_status bring(const clv_net *net)
{
    clv_net_layer layer;
    clv_train_held held;
    if (net->frozen_embed) {
        CLV_TRY(hold_embed(net, &held));
        net->ops->let_go(net->ops, &held);
    }
    for (size_t i = 0; i < net->frozen; ++i) {
        CLV_TRY(hold_layer(net, i, &layer, &held));
        net->ops->let_go(net->ops, &held);
    }
    return CLV_OK;
}

/* ---- forward ---------------------------------------------------------------------------------------- */

static clv_status fit_layer(clv_net *net, clv_net_trace *t, size_t tokens)
{
    const size_t d = net->config.width, f = net->config.ffn;
    struct {
        clv_room *room;
        size_t count;
    } const rooms[] = { { &t->x, d },
                        { &t->qkv, 3 * d },
                        { &t->seen, d },
                        { &t->sum1, d },
                        { &t->moments1, 2 },
                        { &t->x1, d },
                        { &t->up, f },
                        { &t->inner, f },
                        { &t->sum2, d },
                        { &t->moments2, 2 },
                        { &t->tops, 2 * net->config.heads } };
    for (size_t i = 0; i < CLV_LEN(rooms); ++i)
        CLV_TRY(clv_room_fit(net->ops, rooms[i].room, tokens * rooms[i].count));
    return CLV_OK;
}

static clv_status linear(clv_net *net, const clv_net_layer *l, size_t rows, size_t n, size_t k,
                         const clv_room *x, size_t w, size_t b, const clv_room *add,
                         const clv_room *y)
{
    const clv_train_linear call = { .rows = rows,
                                    .n = n,
                                    .k = k,
                                    .alpha = 1,
                                    .held = l->held != NULL,
                                    .x = all_of(x),
                                    .w = weight(net, l, w),
                                    .b = weight(net, l, b),
                                    .add = add ? all_of(add) : (clv_mem){ 0 },
                                    .y = all_of(y) };
    return net->ops->linear(net->ops, &call);
}

static clv_train_norm norm_of(const clv_net *net, size_t rows, const clv_room *x, clv_mem w,
                              clv_mem b, const clv_room *moments)
{
    return (clv_train_norm){ .rows = rows,
                             .width = net->config.width,
                             .eps = net->config.eps,
                             .x = all_of(x),
                             .weight = w,
                             .bias = b,
                             .moments = all_of(moments) };
}

static clv_train_norm first_norm(const clv_net *net, const clv_net_layer *l, const clv_net_trace *t,
                                 size_t rows)
{
    return norm_of(net, rows, &t->sum1, weight(net, l, l->norm1), weight(net, l, l->norm1_bias),
                   &t->moments1);
}

static clv_train_norm second_norm(const clv_net *net, const clv_net_layer *l,
                                  const clv_net_trace *t, size_t rows)
{
    return norm_of(net, rows, &t->sum2, weight(net, l, l->norm2), weight(net, l, l->norm2_bias),
                   &t->moments2);
}

clv_status clv_net_layer_forward(clv_net *net, const clv_net_layer *l, clv_net_trace *t,
                                 const clv_train_batch *batch, clv_mem y)
{
    clv_train_ops *ops = net->ops;
    const size_t rows = batch->tokens, d = net->config.width, f = net->config.ffn;
    CLV_TRY(fit_layer(net, t, rows));
    CLV_TRY(linear(net, l, rows, 3 * d, d, &t->x, l->qkv, l->qkv_bias, NULL, &t->qkv));
    const clv_train_attention a = { .batch = batch,
                                    .heads = net->config.heads,
                                    .width = d,
                                    .qkv = all_of(&t->qkv),
                                    .o = all_of(&t->seen),
                                    .tops = all_of(&t->tops) };
    CLV_TRY(ops->attend(ops, &a));
    CLV_TRY(linear(net, l, rows, d, d, &t->seen, l->out, l->out_bias, &t->x, &t->sum1));
    clv_train_norm n = first_norm(net, l, t, rows);
    n.y = all_of(&t->x1);
    CLV_TRY(ops->norm(ops, &n));
    CLV_TRY(linear(net, l, rows, f, d, &t->x1, l->up, l->up_bias, NULL, &t->up));
    CLV_TRY(ops->activate(ops, all_of(&t->up), (clv_mem){ 0 }, all_of(&t->inner), rows * f,
                          net->config.act));
    CLV_TRY(linear(net, l, rows, d, f, &t->inner, l->down, l->down_bias, &t->x1, &t->sum2));
    n = second_norm(net, l, t, rows);
    n.y = y;
    return ops->norm(ops, &n);
}

/* Returns the trace of layer i; all frozen layers share one trace. For i = config.layers, returns the trace after that
 * of the last layer, whose `x` is the net's output. */
static clv_net_trace *trace_of(const clv_net *net, size_t i)
{
    return &net->traces[i < net->frozen ? 0 : i - net->frozen + (net->frozen > 0)];
}

/* Describes the norm of the embeddings, whose weights lie in `tables`. */
static clv_train_norm embed_norm(const clv_net *net, const clv_train_batch *batch, void *tables)
{
    return norm_of(net, batch->tokens, &net->embedded, (clv_mem){ tables, net->norm },
                   (clv_mem){ tables, net->norm_bias }, &net->embed_moments);
}

static clv_status embed_from(clv_net *net, void *tables, const clv_train_batch *batch, clv_mem y)
{
    clv_train_ops *ops = net->ops;
    const size_t d = net->config.width;
    CLV_TRY(clv_room_fit(ops, &net->embedded, batch->tokens * d));
    CLV_TRY(clv_room_fit(ops, &net->embed_moments, batch->tokens * 2));
    const clv_train_embed e = { .batch = batch,
                                .width = d,
                                .word = { tables, net->word },
                                .position = { tables, net->position },
                                .type = { tables, net->type },
                                .y = net->bare_embed ? y : all_of(&net->embedded) };
    CLV_TRY(ops->embed(ops, &e));
    if (net->bare_embed) return CLV_OK;
    clv_train_norm n = embed_norm(net, batch, tables);
    n.y = y;
    return ops->norm(ops, &n);
}

static clv_status embed(clv_net *net, const clv_train_batch *batch, clv_mem y)
{
    clv_train_held held;
    if (!net->frozen_embed) return embed_from(net, net->weights, batch, y);
    CLV_TRY(hold_embed(net, &held));
    const clv_status status = embed_from(net, held.memory, batch, y);
    net->ops->let_go(net->ops, &held);
    return status;
}

/* Runs a layer; a frozen layer's weights are held while it is enqueued. */
static clv_status run_layer(clv_net *net, size_t i, const clv_train_batch *batch)
{
    clv_net_layer layer;
    clv_train_held held;
    clv_net_trace *const trace = trace_of(net, i);
    const clv_mem y = all_of(&trace_of(net, i + 1)->x);
    if (i >= net->frozen)
        return clv_net_layer_forward(net, &net->layers[i - net->frozen], trace, batch, y);
    CLV_TRY(hold_layer(net, i, &layer, &held));
    const clv_status status = clv_net_layer_forward(net, &layer, trace, batch, y);
    net->ops->let_go(net->ops, &held);
    return status;
}

clv_room *clv_net_rows(const clv_net *net, size_t layer)
{
    return &trace_of(net, layer)->x;
}

size_t clv_net_layers_at(const clv_net *net)
{
    return net->layers[0].qkv;
}

clv_status clv_net_embed(clv_net *net, const clv_train_batch *batch)
{
    CLV_TRY(clv_room_fit(net->ops, clv_net_rows(net, 0), batch->tokens * net->config.width));
    return embed(net, batch, all_of(clv_net_rows(net, 0)));
}

clv_status clv_net_layers(clv_net *net, const clv_train_batch *batch)
{
    const size_t count = batch->tokens * net->config.width;
    for (size_t i = 1; i <= net->config.layers; ++i)
        CLV_TRY(clv_room_fit(net->ops, clv_net_rows(net, i), count));
    for (size_t i = 0; i < net->config.layers; ++i)
        CLV_TRY(run_layer(net, i, batch));
    return CLV_OK;
}

clv_status clv_net_forward(clv_net *net, const clv_train_batch *batch, clv_mem *rows)
{
    CLV_TRY(clv_net_embed(net, batch));
    CLV_TRY(clv_net_layers(net, batch));
    *rows = all_of(clv_net_rows(net, net->config.layers));
    return CLV_OK;
}

/* ---- backward --------------------------------------------------------------------------------------- */

/* Computes the gradients of W and its bias from g and, unless its memory is NULL, the gradient dx. */
static clv_status linear_back(clv_net *net, size_t rows, size_t n, size_t k, clv_mem g,
                              const clv_room *x, size_t w, size_t b, clv_mem dx, clv_mem dx_add)
{
    const clv_train_linear call = { .rows = rows,
                                    .n = n,
                                    .k = k,
                                    .alpha = 1,
                                    .x = all_of(x),
                                    .w = { net->weights, w - net->weights_from },
                                    .g = g,
                                    .dx = dx,
                                    .dx_add = dx_add,
                                    .dw = slope(net, w),
                                    .db = slope(net, b) };
    return net->ops->linear_back(net->ops, &call);
}

static clv_status norm_back(clv_net *net, clv_train_norm n, size_t w, size_t b, clv_mem g)
{
    n.g = n.dx = g;
    n.dweight = slope(net, w);
    n.dbias = slope(net, b);
    return net->ops->norm_back(net->ops, &n);
}

clv_status clv_net_layer_backward(clv_net *net, const clv_net_layer *l, clv_net_trace *t,
                                  const clv_train_batch *batch, clv_mem g, bool last)
{
    clv_train_ops *ops = net->ops;
    const size_t rows = batch->tokens, d = net->config.width, f = net->config.ffn;
    const clv_mem none = { 0 };
    CLV_TRY(clv_room_fit(ops, &net->g2, rows * d));
    CLV_TRY(clv_room_fit(ops, &net->wide, rows * CLV_MAX(3 * d, f)));
    CLV_TRY(clv_room_fit(ops, &net->delta, rows * net->config.heads));
    const clv_mem g2 = all_of(&net->g2), wide = all_of(&net->wide);
    CLV_TRY(norm_back(net, second_norm(net, l, t, rows), l->norm2, l->norm2_bias, g));
    CLV_TRY(linear_back(net, rows, d, f, g, &t->inner, l->down, l->down_bias, wide, none));
    CLV_TRY(ops->activate(ops, all_of(&t->up), wide, wide, rows * f, net->config.act));
    CLV_TRY(linear_back(net, rows, f, d, wide, &t->x1, l->up, l->up_bias, g, g));
    CLV_TRY(norm_back(net, first_norm(net, l, t, rows), l->norm1, l->norm1_bias, g));
    CLV_TRY(linear_back(net, rows, d, d, g, &t->seen, l->out, l->out_bias, g2, none));
    const clv_train_attention a = { .batch = batch,
                                    .heads = net->config.heads,
                                    .width = d,
                                    .qkv = all_of(&t->qkv),
                                    .o = all_of(&t->seen),
                                    .tops = all_of(&t->tops),
                                    .g = g2,
                                    .dqkv = wide,
                                    .delta = all_of(&net->delta) };
    CLV_TRY(ops->attend_back(ops, &a));
    return linear_back(net, rows, 3 * d, d, wide, &t->x, l->qkv, l->qkv_bias, last ? none : g,
                       last ? none : g);
}

static clv_train_embed lookups(const clv_net *net, const clv_train_batch *batch, clv_mem g)
{
    return (clv_train_embed){ .batch = batch,
                              .width = net->config.width,
                              .g = g,
                              .dword = slope(net, net->word),
                              .dposition = slope(net, net->position),
                              .dtype = net->bare_embed ? (clv_mem){ 0 } : slope(net, net->type) };
}

clv_status clv_net_embed_back(clv_net *net, const clv_train_batch *batch, clv_mem g)
{
    clv_train_ops *ops = net->ops;
    if (net->frozen_embed) return CLV_OK;
    if (!net->bare_embed)
        CLV_TRY(norm_back(net, embed_norm(net, batch, net->weights), net->norm, net->norm_bias, g));
    const clv_train_embed e = lookups(net, batch, g);
    return ops->embed_back(ops, &e);
}

clv_status clv_net_forget(clv_net *net, const clv_train_batch *batch)
{
    const clv_train_embed e = lookups(net, batch, (clv_mem){ 0 });
    return net->frozen_embed ? CLV_OK : net->ops->embed_back(net->ops, &e);
}

clv_status clv_net_layers_back(clv_net *net, const clv_train_batch *batch, clv_mem g)
{
    for (size_t i = net->config.layers; i-- > net->frozen;)
        CLV_TRY(clv_net_layer_backward(net, &net->layers[i - net->frozen], trace_of(net, i), batch,
                                       g, i == net->frozen && net->frozen_embed));
    return CLV_OK;
}

clv_status clv_net_backward(clv_net *net, const clv_train_batch *batch, clv_mem g)
{
    CLV_TRY(clv_net_layers_back(net, batch, g));
    return clv_net_embed_back(net, batch, g);
}

/* ---- opening and closing ----------------------------------------------------------------------------- */

clv_status clv_net_open(clv_train_ops *ops, const clv_model *model, size_t frozen,
                        bool frozen_embed, clv_net *net)
{
    *net = (clv_net){ .ops = ops,
                      .config = *clv_model_get_config(model),
                      .frozen = frozen,
                      .frozen_embed = frozen_embed || frozen,
                      .model = model };
    const clv_model_config *c = &net->config;
    const clv_model_weights *w = clv_model_get_weights(model);
    const float *first = w->word;
    net->layers = clv_zalloc(c->layers - frozen + 1, sizeof *net->layers);
    net->traces = clv_zalloc(c->layers + 2, sizeof *net->traces);
    if (!net->layers || !net->traces)
        return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu layers", c->layers);
    net->position = (size_t)(w->position - first), net->type = (size_t)(w->type - first);
    net->norm = (size_t)(w->norm_weight - first), net->norm_bias = (size_t)(w->norm_bias - first);
    if (net->frozen_embed)
        net->base = frozen < c->layers ? (size_t)(w->layer[frozen].q_weight - first)
                                       : clv_model_parameters(model, NULL);
    for (size_t i = frozen; i < c->layers; ++i) {
        clv_weight_piece pieces[LAYER_PIECES];
        size_t at[LAYER_PIECES];
        list_pieces(c, &w->layer[i], pieces);
        for (size_t k = 0; k < LAYER_PIECES; ++k)
            at[k] = (size_t)(pieces[k].host - first) - net->base;
        net->layers[i - frozen] = layer_at(at, NULL);
    }
    return bring(net);
}

void clv_net_trace_free(clv_train_ops *ops, clv_net_trace *t)
{
    clv_room *const rooms[] = { &t->x,  &t->qkv, &t->tops,  &t->seen, &t->sum1,    &t->moments1,
                                &t->x1, &t->up,  &t->inner, &t->sum2, &t->moments2 };
    for (size_t k = 0; k < CLV_LEN(rooms); ++k)
        clv_room_free(ops, rooms[k]);
}

void clv_net_close(clv_net *net)
{
    if (!net->ops) return;
    for (size_t i = 0; net->traces && i < net->config.layers + 2; ++i)
        clv_net_trace_free(net->ops, &net->traces[i]);
    clv_room *const rooms[] = { &net->embedded, &net->embed_moments, &net->g2, &net->wide,
                                &net->delta };
    for (size_t k = 0; k < CLV_LEN(rooms); ++k)
        clv_room_free(net->ops, rooms[k]);
    clv_free(net->layers), clv_free(net->traces);
    net->layers = NULL, net->traces = NULL;
}

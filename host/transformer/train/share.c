/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the blocks of a batch on the trainer's device and on further devices (the "helpers"). Helpers only run the
 * layers: they hold no other trainable weights, and receive these before every step. The embeddings, pooling, head and
 * optimiser run on the trainer's device. */
#include "host/transformer/train/share.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

#include <string.h>

/* BLOCK_TOKENS: least tokens of a block on average, enough to make the addition of a block's gradient little work
 * compared with its computation. */
enum { BLOCK_TOKENS = 4096, MOST_BLOCKS = 64, MOST_HELPERS = 7 };

/* The memory of a device for one of its blocks. */
typedef struct seat {
    clv_net net;
    clv_batch_rooms batch;
    clv_room g, gradient; /* helpers: rows of gradients, and the gradient of the layers' weights */
    bool open;
} seat;

typedef struct helper {
    clv_train_ops *ops; /* NULL: failed */
    clv_room weights;   /* weights of the trainable layers */
    seat seats[MOST_BLOCKS];
    char label[160];
} helper;

typedef struct block {
    size_t first, texts, token, tokens; /* first text and number, first token and number */
    size_t on, seat; /* on: 0 for the trainer's device, or 1 + number of the helper */
} block;

struct clv_train_share {
    helper *helpers[MOST_HELPERS];
    size_t helper_count;
    bool looked;             /* look_for_helpers has run */
    seat seats[MOST_BLOCKS]; /* of the trainer's device; block 0 uses the trainer's own net */
    clv_room gradient;       /* gradient of one block, on the trainer's device */
    block blocks[MOST_BLOCKS];
    size_t block_count;
    const int32_t *ids;
    const size_t *offsets;
    float *host; /* buffer for transfers between devices */
    size_t host_room;
};

static size_t layers_at(const clv_trainer *t)
{
    return clv_net_layers_at(&t->net);
}

static size_t layers_size(const clv_trainer *t)
{
    return t->head - layers_at(t);
}

static size_t width(const clv_trainer *t)
{
    return t->net.config.width;
}

static helper *helper_of(clv_trainer *t, const block *b)
{
    return b->on ? t->share->helpers[b->on - 1] : NULL;
}

static clv_train_ops *ops_of(clv_trainer *t, const block *b)
{
    return b->on ? helper_of(t, b)->ops : t->ops;
}

static seat *seat_of(clv_trainer *t, const block *b)
{
    return b->on ? &helper_of(t, b)->seats[b->seat] : &t->share->seats[b->seat];
}

/* Returns whether this is block 0, which always runs on the trainer's device. */
static bool is_first(const clv_trainer *t, const block *b)
{
    return b == t->share->blocks;
}

static clv_net *net_of(clv_trainer *t, const block *b)
{
    return is_first(t, b) ? &t->net : &seat_of(t, b)->net;
}

/* ---- helpers ------------------------------------------------------------------------------------ */

static void free_seat(clv_train_ops *ops, seat *s)
{
    clv_batch_free(ops, &s->batch);
    clv_room_free(ops, &s->g);
    clv_room_free(ops, &s->gradient);
    if (s->open) clv_net_close(&s->net);
    s->open = false;
}

static void free_helper(helper *h)
{
    for (size_t i = 0; h->ops && i < MOST_BLOCKS; ++i)
        free_seat(h->ops, &h->seats[i]);
    if (h->ops) clv_room_free(h->ops, &h->weights), h->ops->close(h->ops);
    h->ops = NULL;
}

static void lose(helper *h, clv_status status)
{
    clv_log(
        CLV_LOG_WARN,
        "%s fails and is not used any more: %s; the other devices compute its part of the batch",
        h->label, clv_error_message());
    h->ops->fail(h->ops, status);
    free_helper(h);
}

/* Opens as helpers the devices of the context that compute the same bits as the trainer's device. */
static void look_for_helpers(clv_trainer *t)
{
    clv_train_share *s = t->share;
    s->looked = true;
    for (size_t i = 0; i < clv_context_device_count(t->context); ++i) {
        clv_train_ops *ops = NULL;
        if (s->helper_count == MOST_HELPERS) break;
        if (clv_train_ops_alike(t->context, i, t->ops, &ops)) {
            clv_log(CLV_LOG_WARN, "%s cannot be used for training: %s",
                    clv_device_label(clv_context_device(t->context, i)), clv_error_message());
            continue;
        }
        if (!ops) continue;
        helper *h = clv_zalloc(1, sizeof *h);
        if (!h) {
            ops->close(ops);
            break;
        }
        h->ops = ops;
        clv_copy_string(h->label, sizeof h->label,
                        clv_device_label(clv_context_device(t->context, i)));
        clv_log(CLV_LOG_INFO, "%s shares the batches with %s", h->label, t->device);
        s->helpers[s->helper_count++] = h;
    }
}

size_t clv_share_helpers(const clv_trainer *t)
{
    size_t count = 0;
    for (size_t i = 0; t->share && i < t->share->helper_count; ++i)
        count += t->share->helpers[i]->ops != NULL;
    return count;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

bool clv_share_is_cut(const clv_trainer *t)
{
    return t->share && t->share->block_count > 1;
}

/* Returns the number of blocks. It must not depend on the devices: it follows from the batch, the options and the
 * model. */
static size_t count_blocks(const clv_trainer *t, size_t texts, size_t tokens)
{
    const size_t most = t->options.block_tokens ? t->options.block_tokens : BLOCK_TOKENS;
    const bool learns = t->net.frozen < t->net.config.layers && !t->net.bare_embed;
    return t->is_reference || !t->context || !learns
               ? 1
               : CLV_MIN(CLV_MIN(tokens / most, texts), MOST_BLOCKS);
}

/* Cuts the batch into at most `blocks` blocks of nearly equal numbers of tokens: each block ends with the text that
 * contains the last token of an equal share. Every block has tokens, also where some texts have none. */
static void cut(clv_train_share *s, size_t blocks, const size_t *offsets, size_t texts)
{
    const size_t base = offsets[0], tokens = offsets[texts] - base;
    s->block_count = 0;
    for (size_t i = 0, first = 0; i < texts; ++i) {
        const size_t start = offsets[first] - base, end = offsets[i + 1] - base;
        const bool full = end * blocks >= tokens * (s->block_count + 1) && end > start;
        if (i + 1 < texts && (!full || end == tokens)) continue;
        s->blocks[s->block_count++] = (block){
            .first = first, .texts = i + 1 - first, .token = start, .tokens = end - start
        };
        first = i + 1;
    }
}

/* Assigns the blocks to the devices; each device gets consecutive blocks. */
static void distribute(clv_trainer *t)
{
    clv_train_share *s = t->share;
    size_t on[MOST_HELPERS + 1] = { 0 }, seats[MOST_HELPERS + 1] = { 0 }, devices = 1;
    for (size_t i = 0; i < s->helper_count; ++i)
        if (s->helpers[i]->ops) on[devices++] = 1 + i;
    for (size_t i = 0; i < s->block_count; ++i) {
        const size_t device = i * devices / s->block_count;
        s->blocks[i].on = on[device];
        s->blocks[i].seat = seats[device]++;
    }
}

static clv_status open_seat(clv_trainer *t, const block *b, seat *s)
{
    clv_train_share *share = t->share;
    clv_train_ops *ops = ops_of(t, b);
    if (!s->open) CLV_TRY(clv_net_open(ops, t->model, t->net.frozen, t->net.frozen_embed, &s->net));
    s->open = true;
    s->net.config = t->net.config;
    clv_room *gradient = b->on ? &s->gradient : &share->gradient;
    CLV_TRY(clv_room_fit(ops, gradient, layers_size(t)));
    s->net.gradient = gradient->memory;
    s->net.gradient_from = layers_at(t);
    s->net.weights = b->on ? helper_of(t, b)->weights.memory : t->net.weights;
    s->net.weights_from = b->on ? layers_at(t) : 0;
    return CLV_OK;
}

/* Uploads a block's texts to its device. */
static clv_status bring(clv_trainer *t, const block *b)
{
    clv_train_share *s = t->share;
    clv_train_ops *ops = ops_of(t, b);
    seat *at = seat_of(t, b);
    if (!is_first(t, b)) CLV_TRY(open_seat(t, b, at));
    if (b->on) CLV_TRY(clv_room_fit(ops, &at->g, b->tokens * width(t)));
    CLV_TRY(clv_room_fit(ops, clv_net_rows(net_of(t, b), 0), b->tokens * width(t)));
    return clv_batch_fill(ops, &at->batch, s->ids, s->offsets + b->first, b->texts, NULL);
}

clv_status clv_share_cut(clv_trainer *t, const int32_t *ids, const size_t *offsets, size_t texts)
{
    const size_t blocks = count_blocks(t, texts, offsets[texts] - offsets[0]);
    if (t->share) t->share->block_count = 0;
    if (blocks < 2) return CLV_OK;
    if (!t->share) t->share = clv_zalloc(1, sizeof *t->share);
    clv_train_share *s = t->share;
    if (!s) return clv_fail(CLV_E_MEMORY, "training: out of memory");
    if (!s->looked) look_for_helpers(t);
    const size_t most = CLV_MAX(layers_size(t), (offsets[texts] - offsets[0]) * width(t));
    if (clv_share_helpers(t) && !clv_reserve(&s->host, &s->host_room, most, sizeof *s->host))
        return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu numbers", most);
    s->ids = ids, s->offsets = offsets;
    cut(s, blocks, offsets, texts);
    distribute(t);
    return CLV_OK;
}

/* ---- forward ----------------------------------------------------------------------------------- */

static clv_mem rows_at(const clv_trainer *t, size_t layer, const block *b)
{
    return (clv_mem){ clv_net_rows(&t->net, layer)->memory, b->token * width(t) };
}

static clv_status send_weights(clv_trainer *t, helper *h)
{
    CLV_TRY(clv_room_fit(h->ops, &h->weights, layers_size(t)));
    return h->ops->put(h->ops, (clv_mem){ h->weights.memory, 0 }, t->share->host, layers_size(t));
}

/* Starts a block's layers on a helper; their input is in share->host. */
static clv_status start(clv_trainer *t, const block *b)
{
    clv_train_ops *ops = ops_of(t, b);
    CLV_TRY(bring(t, b));
    const clv_mem x = { clv_net_rows(net_of(t, b), 0)->memory, 0 };
    CLV_TRY(ops->put(ops, x, t->share->host, b->tokens * width(t)));
    CLV_TRY(clv_net_layers(net_of(t, b), &seat_of(t, b)->batch.batch));
    ops->flush(ops);
    return CLV_OK;
}

/* Starts the blocks of all helpers. Returns failures of the trainer's device only; a helper that fails is left out. */
static clv_status start_helpers(clv_trainer *t)
{
    clv_train_share *s = t->share;
    if (clv_share_helpers(t))
        CLV_TRY(t->ops->get(t->ops, (clv_mem){ t->net.weights, layers_at(t) }, s->host,
                            layers_size(t)));
    for (size_t i = 0; i < s->helper_count; ++i) {
        helper *h = s->helpers[i];
        const clv_status status = h->ops ? send_weights(t, h) : CLV_OK;
        if (status) lose(h, status);
    }
    for (size_t i = 0; i < s->block_count; ++i) {
        block *b = &s->blocks[i];
        if (!b->on || !ops_of(t, b)) continue;
        CLV_TRY(t->ops->get(t->ops, rows_at(t, 0, b), s->host, b->tokens * width(t)));
        const clv_status status = start(t, b);
        if (status) lose(helper_of(t, b), status);
    }
    return CLV_OK;
}

/* Copies the input of a block on the trainer's device, and computes the block's output. */
static clv_status take_input(clv_trainer *t, const block *b)
{
    const clv_mem x = { clv_net_rows(net_of(t, b), 0)->memory, 0 };
    return is_first(t, b) ? CLV_OK
                          : t->ops->copy(t->ops, rows_at(t, 0, b), x, b->tokens * width(t));
}

static clv_status run_layers(clv_trainer *t, const block *b)
{
    const size_t layers = t->net.config.layers;
    clv_net *net = net_of(t, b);
    CLV_TRY(clv_net_layers(net, &seat_of(t, b)->batch.batch));
    const clv_mem y = { clv_net_rows(net, layers)->memory, 0 };
    return is_first(t, b) ? CLV_OK
                          : t->ops->copy(t->ops, y, rows_at(t, layers, b), b->tokens * width(t));
}

/* Moves a block from a helper that failed to the trainer's device, and computes the output of the block's layers. */
static clv_status take_over(clv_trainer *t, block *b)
{
    size_t own = 0;
    for (size_t i = 0; i < t->share->block_count; ++i)
        own += !t->share->blocks[i].on;
    b->on = 0, b->seat = own;
    CLV_TRY(clv_net_embed(&t->net, &t->batch.batch)); /* frozen layers overwrite these rows */
    CLV_TRY(bring(t, b));
    CLV_TRY(take_input(t, b));
    return run_layers(t, b);
}

static clv_status finish(clv_trainer *t, block *b)
{
    const size_t layers = t->net.config.layers, count = b->tokens * width(t);
    clv_train_ops *ops = ops_of(t, b);
    if (!ops) return take_over(t, b);
    const clv_mem y = { clv_net_rows(net_of(t, b), layers)->memory, 0 };
    const clv_status status = ops->get(ops, y, t->share->host, count);
    if (!status) return t->ops->put(t->ops, rows_at(t, layers, b), t->share->host, count);
    lose(helper_of(t, b), status);
    return take_over(t, b);
}

clv_status clv_share_forward(clv_trainer *t, clv_mem *rows)
{
    clv_train_share *s = t->share;
    clv_room *out = clv_net_rows(&t->net, t->net.config.layers);
    CLV_TRY(clv_net_embed(&t->net, &t->batch.batch));
    CLV_TRY(clv_room_fit(t->ops, out, t->batch.batch.tokens * width(t)));
    CLV_TRY(start_helpers(t));
    for (size_t i = 0; i < s->block_count; ++i) {
        if (s->blocks[i].on) continue;
        CLV_TRY(bring(t, &s->blocks[i]));
        CLV_TRY(take_input(t, &s->blocks[i]));
    }
    for (size_t i = 0; i < s->block_count; ++i)
        if (!s->blocks[i].on) CLV_TRY(run_layers(t, &s->blocks[i]));
    t->ops->flush(t->ops);
    for (size_t i = 0; i < s->block_count; ++i)
        if (s->blocks[i].on) CLV_TRY(finish(t, &s->blocks[i]));
    *rows = (clv_mem){ out->memory, 0 };
    return CLV_OK;
}

/* ---- backward ---------------------------------------------------------------------------------- */

static clv_mem part_of(const clv_trainer *t, clv_mem g, const block *b)
{
    return (clv_mem){ g.memory, g.at + b->token * width(t) };
}

static clv_status start_back(clv_trainer *t, const block *b)
{
    clv_train_ops *ops = ops_of(t, b);
    seat *at = seat_of(t, b);
    const clv_mem g = { at->g.memory, 0 };
    CLV_TRY(ops->put(ops, g, t->share->host, b->tokens * width(t)));
    CLV_TRY(clv_net_layers_back(&at->net, &at->batch.batch, g));
    ops->flush(ops);
    return CLV_OK;
}

static clv_status start_helpers_back(clv_trainer *t, clv_mem g)
{
    clv_train_share *s = t->share;
    for (size_t i = 0; i < s->block_count; ++i) {
        const block *b = &s->blocks[i];
        if (!b->on || !ops_of(t, b)) continue;
        CLV_TRY(t->ops->get(t->ops, part_of(t, g, b), s->host, b->tokens * width(t)));
        const clv_status status = start_back(t, b);
        if (status) lose(helper_of(t, b), status);
    }
    return CLV_OK;
}

/* Adds the gradient of one block, in share->gradient, to the batch's gradient. */
static clv_status add_up(clv_trainer *t)
{
    const clv_mem from = { t->share->gradient.memory, 0 };
    return t->ops->add(t->ops, from, (clv_mem){ t->net.gradient, layers_at(t) }, layers_size(t));
}

static clv_status run_back(clv_trainer *t, const block *b, clv_mem g)
{
    CLV_TRY(clv_net_layers_back(net_of(t, b), &seat_of(t, b)->batch.batch, part_of(t, g, b)));
    return is_first(t, b) ? CLV_OK : add_up(t);
}

/* Copies a helper's gradients to the trainer's device: first those of the rows, then those of the weights. *helped
 * receives the helper's status. */
static clv_status fetch(clv_trainer *t, const block *b, clv_mem g, clv_status *helped)
{
    clv_train_ops *ops = ops_of(t, b);
    const seat *at = seat_of(t, b);
    const size_t count = b->tokens * width(t);
    float *host = t->share->host;
    if ((*helped = ops->get(ops, (clv_mem){ at->g.memory, 0 }, host, count))) return CLV_OK;
    /* `g` is overwritten only after the weights' gradient has arrived, too */
    float *kept = clv_alloc(count, sizeof *kept);
    if (!kept) return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu numbers", count);
    memcpy(kept, host, count * sizeof *kept);
    clv_status status = CLV_OK;
    *helped = ops->get(ops, (clv_mem){ at->gradient.memory, 0 }, host, layers_size(t));
    if (!*helped) status = t->ops->put(t->ops, part_of(t, g, b), kept, count);
    clv_free(kept);
    if (*helped || status) return status;
    CLV_TRY(clv_room_fit(t->ops, &t->share->gradient, layers_size(t)));
    CLV_TRY(t->ops->put(t->ops, (clv_mem){ t->share->gradient.memory, 0 }, host, layers_size(t)));
    return add_up(t);
}

static clv_status finish_back(clv_trainer *t, block *b, clv_mem g)
{
    clv_status helped = CLV_E_DEVICE;
    if (b->on && ops_of(t, b)) {
        CLV_TRY(fetch(t, b, g, &helped));
        if (!helped) return CLV_OK;
        lose(helper_of(t, b), helped);
    }
    CLV_TRY(take_over(t, b));
    return run_back(t, b, g);
}

clv_status clv_share_backward(clv_trainer *t, clv_mem g)
{
    clv_train_share *s = t->share;
    CLV_TRY(start_helpers_back(t, g));
    for (size_t i = 0; i < s->block_count; ++i)
        CLV_TRY(s->blocks[i].on ? finish_back(t, &s->blocks[i], g) : run_back(t, &s->blocks[i], g));
    return clv_net_embed_back(&t->net, &t->batch.batch, g);
}

void clv_share_free(clv_trainer *t)
{
    clv_train_share *s = t->share;
    if (!s) return;
    for (size_t i = 0; i < s->helper_count; ++i) {
        free_helper(s->helpers[i]);
        clv_free(s->helpers[i]);
    }
    for (size_t i = 0; i < MOST_BLOCKS; ++i)
        free_seat(t->ops, &s->seats[i]);
    clv_room_free(t->ops, &s->gradient);
    clv_free(s->host);
    clv_free(s);
    t->share = NULL;
}

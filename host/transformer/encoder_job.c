/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a chunk of texts on a device, in batches of tokens without padding. */
#include "host/transformer/encoder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/results.h"

#include <math.h>
#include <string.h>

/* Keys of a chunk's buffers. */
enum { OUT = CLV_ENCODE_OUT, TOKENS, ROWS, BLOCKS, X, QKV, SEEN, H, INNER, SCRATCH, NARROW };

/* A batch of texts [first, last), which run together. */
typedef struct batch {
    const clv_encode_plan *plan;
    const clv_encoder_device *model;
    clv_queue *queue;
    clv_slot *slot;
    size_t chunk_first; /* the text with which the chunk's inputs and outputs begin */
    size_t chunk_texts;
    size_t first, last;
    size_t base, tokens; /* the batch's first token, and its number of tokens */
    size_t side;
    clv_place token_place, row_place, block_place;
    clv_buffer *x, *qkv, *seen, *h, *inner, *scratch, *out;
    clv_buffer *weights; /* of the current layer */
} batch;

size_t clv_encode_out(const clv_encode_plan *plan, size_t text)
{
    const clv_model_config *c = &plan->encoder->config;
    if (plan->encoder->hidden) return plan->offsets[text] * c->width;
    return text * (c->output ? c->output : c->width);
}

size_t clv_encode_result(const clv_encode_plan *plan, size_t first, size_t count)
{
    const clv_model_config *c = &plan->encoder->config;
    if (plan->encoder->hidden)
        return (plan->offsets[first + count] - plan->offsets[first]) * c->width;
    return count * c->width * CLV_MAX(c->joined_count, (size_t)1);
}

/* Returns the end of the batch that begins with text `first`; a batch has at least one text. The batches of a chunk are
 * about equally long, because a short one does not use the device well. */
static size_t batch_end(const clv_encode_plan *plan, size_t first, size_t end)
{
    const size_t most = plan->encoder->batch_tokens, from = plan->offsets[first];
    const size_t left = plan->offsets[end] - from, batches = (left + most - 1) / most;
    const size_t share = batches ? (left + batches - 1) / batches : 0;
    size_t last = first + 1;
    while (last < end && plan->offsets[last] - from < share &&
           plan->offsets[last + 1] - from <= most)
        ++last;
    return last;
}

clv_cost clv_encode_cost(size_t first, size_t count, void *user)
{
    const clv_encode_plan *p = user;
    const clv_model_config *c = &p->encoder->config;
    const double d = (double)c->width, f = (double)c->ffn, layers = (double)c->layers;
    const size_t some = p->offsets[first + count] - p->offsets[first];
    const double tokens = (double)some;
    const double squares = p->squares[first + count] - p->squares[first];
    const size_t at_once = CLV_MIN(some, p->encoder->batch_tokens + c->positions);
    const double row = (6 * d + f) * sizeof(float);
    const size_t out = clv_encode_result(p, first, count) * sizeof(float);
    return (clv_cost){ .flops = layers * (2 * tokens * (4 * d * d + 2 * d * f) + 4 * d * squares),
                       .traffic_bytes = layers * (4 * (4 * d * d + 2 * d * f) + 2 * tokens * row),
                       .transfer_bytes = 8 * tokens + (double)out,
                       .memory_bytes = (uint64_t)((double)at_once * row * 1.5) + out,
                       .buffer_bytes = CLV_MAX((uint64_t)at_once * c->ffn * sizeof(float), out) };
}

clv_status clv_encode_setup(clv_worker *worker, void *user)
{
    const clv_encode_plan *plan = user;
    const clv_model_config *c = &plan->encoder->config;
    size_t longest = 0;
    clv_encoder_device *model;
    for (size_t i = 0; i < plan->texts; ++i)
        longest = CLV_MAX(longest, plan->offsets[i + 1] - plan->offsets[i]);
    CLV_TRY(clv_attention_check(clv_queue_device(clv_worker_queue(worker)), longest,
                                c->width / c->heads));
    return clv_encoder_on_device(plan->encoder, clv_worker_queue(worker), &model);
}

/* Enqueues C = act(A W^T + bias) + add, with A [tokens, k], and with W [n, k] from element `weight` of the layer's
 * tensor on. */
static clv_status linear(const batch *b, size_t n, size_t k, clv_buffer *a, size_t weight,
                         size_t bias, clv_activation activation, clv_buffer *add, clv_buffer *c)
{
    const clv_encoder_device *m = b->model;
    const bool packed = clv_gemm_packed_b(&m->form, n, k) > 0;
    clv_buffer *scratch;
    const clv_gemm g = { .m = b->tokens,
                         .n = n,
                         .k = k,
                         .a = { a, 0, k, 1, 0 },
                         .b = { b->weights, weight, 1, k, 0 },
                         .c = { c, 0, n, 1, 0 },
                         .b_packed = packed,
                         .b_half = b->plan->encoder->half,
                         .alpha = 1,
                         .beta = add ? 1 : 0,
                         .add = { add, 0, n, 1, 0 },
                         .bias = m->parameters,
                         .bias_offset = bias,
                         .activation = activation };
    CLV_TRY(clv_slot_buffer(b->slot, SCRATCH, clv_gemm_scratch(&m->form, &g) * sizeof(float),
                            &scratch));
    return clv_gemm_enqueue(b->queue, &m->form, &g, scratch, NULL);
}

static clv_status normalise(const batch *b, clv_buffer *x, size_t weight, size_t bias)
{
    const size_t width = b->plan->encoder->config.width;
    const clv_norm n = { .x = { x, 0, width },
                         .y = { x, 0, width },
                         .parameters = b->model->parameters,
                         .weight = weight,
                         .bias = bias,
                         .rows = b->tokens,
                         .width = width,
                         .eps = b->plan->encoder->config.eps };
    return clv_norm_enqueue(b->queue, &n);
}

static size_t longest_of(const batch *b)
{
    const size_t *offsets = b->plan->offsets;
    size_t longest = 0;
    for (size_t i = b->first; i < b->last; ++i)
        longest = CLV_MAX(longest, offsets[i + 1] - offsets[i]);
    return longest;
}

static clv_status attend(const batch *b)
{
    const clv_model_config *c = &b->plan->encoder->config;
    const size_t width = c->width, head = width / c->heads;
    const size_t *first = b->plan->sides[b->side].first;
    const clv_attention_call a = {
        .q = { b->qkv, 0, 3 * width, head },
        .k = { b->qkv, width, 3 * width, head },
        .v = { b->qkv, 2 * width, 3 * width, head },
        .o = { b->seen, 0, width, head },
        .blocks = b->block_place.buffer,
        .first_block = first[b->first] - first[b->chunk_first],
        .block_count = first[b->last] - first[b->first],
        .base = b->base,
        .heads = c->heads,
        .kv_heads = c->heads,
        .width = head,
        .scale = (float)(1 / sqrt((double)head)),
        .longest = longest_of(b),
        .bias = c->buckets ? b->model->parameters : NULL,
        .bias_at = b->model->relative + clv_relative_reach(c),
        .bias_head = 2 * clv_relative_reach(c),
    };
    return clv_attention_enqueue(b->queue, &a);
}

static clv_status run_layer(const batch *b, const clv_layer_place *l)
{
    const clv_model_config *c = &b->plan->encoder->config;
    const size_t d = c->width;
    CLV_TRY(linear(b, 3 * d, d, b->x, l->qkv, l->qkv_bias, CLV_ACTIVATION_NONE, NULL, b->qkv));
    CLV_TRY(attend(b));
    CLV_TRY(linear(b, d, d, b->seen, l->out, l->out_bias, CLV_ACTIVATION_NONE, b->x, b->h));
    CLV_TRY(normalise(b, b->h, l->norm1_weight, l->norm1_bias));
    CLV_TRY(linear(b, c->ffn, d, b->h, l->up, l->up_bias, c->act, NULL, b->inner));
    CLV_TRY(linear(b, d, c->ffn, b->inner, l->down, l->down_bias, CLV_ACTIVATION_NONE, b->h, b->x));
    return normalise(b, b->x, l->norm2_weight, l->norm2_bias);
}

/* Enqueues a layer while its weights are pinned in the tensor cache; afterwards only the enqueued commands hold the
 * weights. */
static clv_status run_layer_of(batch *b, size_t i)
{
    clv_kept_tensor *tensor;
    CLV_TRY(clv_encoder_layer(b->plan->encoder, b->model, b->queue, i, &tensor));
    b->weights = clv_tensor_buffer(tensor);
    const clv_status status = run_layer(b, &b->model->layers[i]);
    clv_tensor_put(tensor);
    return status;
}

/* Looks up the tables' rows and normalises them. */
static clv_status embed(const batch *b, clv_buffer *y)
{
    const clv_encoder_device *m = b->model;
    clv_kept_tensor *word;
    CLV_TRY(clv_encoder_word(b->plan->encoder, m, b->queue, &word));
    const clv_embed_rows e = { .tokens = b->token_place.buffer,
                               .first = b->base - b->plan->offsets[b->chunk_first],
                               .word = word ? clv_tensor_buffer(word) : m->word,
                               .parameters = m->parameters,
                               .position = m->position,
                               .type = m->type,
                               .weight = m->norm_weight,
                               .bias = m->norm_bias,
                               .y = y,
                               .rows = b->tokens,
                               .width = clv_table_width(&b->plan->encoder->config),
                               .eps = b->plan->encoder->config.eps,
                               .norm = true };
    const clv_status status = clv_embed_rows_enqueue(b->queue, &e);
    clv_tensor_put(word);
    return status;
}

/* Converts the rows of narrow tables to the width of the layers. */
static clv_status project(batch *b, clv_buffer *narrow)
{
    const clv_model_config *c = &b->plan->encoder->config;
    clv_kept_tensor *tensor;
    CLV_TRY(clv_encoder_project(b->plan->encoder, b->model, b->queue, &tensor));
    b->weights = clv_tensor_buffer(tensor);
    const clv_status status = linear(b, c->width, c->embedding, narrow, 0, b->model->project_bias,
                                     CLV_ACTIVATION_NONE, NULL, b->x);
    clv_tensor_put(tensor);
    return status;
}

static clv_status give(const batch *b)
{
    const clv_encode_plan *p = b->plan;
    const clv_model_config *c = &p->encoder->config;
    const size_t at = p->encoder->hidden
                          ? (p->offsets[b->first] - p->offsets[b->chunk_first]) * c->width
                          : (b->first - b->chunk_first) * c->width;
    if (p->encoder->hidden) /* OpenCL treats a copy of 0 bytes as an error */
        return b->tokens ? clv_copy_enqueue(b->queue, b->x, 0, b->out, at * sizeof(float),
                                            b->tokens * c->width * sizeof(float), NULL)
                         : CLV_OK;
    clv_pool_call pool = { .x = b->x,
                           .rows = b->row_place.buffer,
                           .first_row = b->first - b->chunk_first,
                           .base = b->base,
                           .out = b->out,
                           .out_offset = at,
                           .sequences = b->last - b->first,
                           .width = c->width,
                           .kind = c->pooling,
                           .before = p->encoder->skipped,
                           .divide = c->normalize && !clv_encode_has_tail(c) };
    for (size_t i = 0; i < c->joined_count; ++i) {
        /* tail.c computes CLV_MODEL_MEAN_SQRT from the mean */
        pool.kind = c->joined[i] == CLV_MODEL_MEAN_SQRT ? CLV_MODEL_MEAN : c->joined[i];
        pool.out_offset = i * b->chunk_texts * c->width + at;
        CLV_TRY(clv_pool_enqueue(b->queue, &pool));
    }
    return c->joined_count ? CLV_OK : clv_pool_enqueue(b->queue, &pool);
}

static clv_status run_batch(batch *b)
{
    const clv_model_config *c = &b->plan->encoder->config;
    const size_t row = CLV_MAX(b->tokens, (size_t)1) * sizeof(float);
    b->base = b->plan->offsets[b->first];
    CLV_TRY(clv_slot_buffer(b->slot, X, row * c->width, &b->x));
    CLV_TRY(clv_slot_buffer(b->slot, QKV, row * 3 * c->width, &b->qkv));
    CLV_TRY(clv_slot_buffer(b->slot, SEEN, row * c->width, &b->seen));
    CLV_TRY(clv_slot_buffer(b->slot, H, row * c->width, &b->h));
    CLV_TRY(clv_slot_buffer(b->slot, INNER, row * c->ffn, &b->inner));
    clv_buffer *table_rows = b->x;
    if (c->embedding) CLV_TRY(clv_slot_buffer(b->slot, NARROW, row * c->embedding, &table_rows));
    CLV_TRY(embed(b, table_rows));
    if (c->embedding && b->tokens) CLV_TRY(project(b, table_rows));
    for (size_t i = 0; i < c->layers && b->tokens; ++i)
        CLV_TRY(run_layer_of(b, i));
    return give(b);
}

/* Uploads elements [from, to) of one of the plan's lists, or one element if the range is empty: a driver accepts no
 * empty input. */
static clv_status bring(clv_slot *slot, unsigned key, const void *list, size_t bytes_each,
                        size_t from, size_t to, clv_place *place)
{
    const clv_box box = { .host = (const char *)list + from * bytes_each,
                          .element_bytes = bytes_each,
                          .extent = { 1, 1, CLV_MAX(to - from, (size_t)1) },
                          .stride = { CLV_MAX(to - from, (size_t)1), CLV_MAX(to - from, (size_t)1),
                                      1 } };
    return clv_slot_input(slot, key, &box, place);
}

clv_status clv_encode_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_encode_plan *p = user;
    const size_t end = first + count;
    const clv_block_form form = clv_block_form_of(clv_worker_device(clv_slot_worker(slot)));
    clv_encoder_device *model;
    batch b = { .plan = p,
                .slot = slot,
                .queue = clv_slot_queue(slot),
                .chunk_first = first,
                .chunk_texts = count,
                .side = form.queries == 64 };
    CLV_TRY(clv_encoder_on_device(p->encoder, b.queue, &model));
    b.model = model;
    const size_t floats = clv_encode_result(p, first, count);
    CLV_TRY(clv_slot_output(slot, OUT, CLV_MAX(floats, (size_t)1) * sizeof(float), &b.out));
    CLV_TRY(bring(slot, TOKENS, p->tokens, 2 * sizeof(int32_t), p->offsets[first], p->offsets[end],
                  &b.token_place));
    CLV_TRY(bring(slot, ROWS, p->rows, 2 * sizeof(int32_t), first, end, &b.row_place));
    CLV_TRY(bring(slot, BLOCKS, p->sides[b.side].blocks, sizeof(clv_attention_block),
                  p->sides[b.side].first[first], p->sides[b.side].first[end], &b.block_place));
    for (b.first = first; b.first < end; b.first = b.last) {
        b.last = batch_end(p, b.first, end);
        b.tokens = p->offsets[b.last] - p->offsets[b.first];
        CLV_TRY(run_batch(&b));
    }
    return CLV_OK;
}

clv_status clv_encode_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_encode_plan *p = user;
    const size_t at = clv_encode_out(p, first);
    const bool tail = !p->encoder->hidden && clv_encode_has_tail(&p->encoder->config);
    const size_t floats =
        tail ? clv_encode_result(p, first, count) : clv_encode_out(p, first + count) - at;
    const float *out;
    CLV_TRY(clv_slot_take(slot, OUT, floats * sizeof *out, &out));
    if (tail) return clv_encode_tail(p, first, count, out, p->out + at);
    memcpy(p->out + at, out, floats * sizeof *out);
    return CLV_OK;
}

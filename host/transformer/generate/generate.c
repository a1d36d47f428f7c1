/* SPDX-License-Identifier: Apache-2.0 */
/* clv_decoder: opened, fed, and asked for the next tokens. */
#include "host/transformer/generate/generate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/philox.h"
#include "runtime/device/queue.h"
#include "runtime/device/tensor_cache.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static clv_status take(clv_decoder *d, size_t floats, clv_buffer **out)
{
    clv_buffer_free(*out);
    *out = NULL;
    return clv_buffer_create(clv_queue_device(d->queue), floats * sizeof(float), CLV_BUFFER_DEVICE,
                             out);
}

static clv_status open_queue(clv_context *context, clv_decoder *d)
{
    for (size_t i = 0; i < clv_context_device_count(context); ++i) {
        clv_device *device = clv_context_device(context, i);
        clv_status status = clv_queue_create(device, &d->queue);
        const bool locked = clv_jobs_lock(context); /* choosing measures, and writes notes */
        if (!status) status = clv_gemm_choose(context, d->queue, 1, &d->form);
        if (locked) clv_jobs_unlock(context);
        if (!status) return CLV_OK;
        clv_log(CLV_LOG_WARN, "%s takes no decoder: %s", clv_device_label(device),
                clv_error_message());
        clv_queue_free(d->queue);
        d->queue = NULL;
    }
    return clv_fail(CLV_E_NO_DEVICE, "decoder: no device of the context works");
}

/* Keys, values and angles of every position. */
static clv_status make_room(clv_decoder *d)
{
    const clv_decoder_config *c = &d->config;
    const size_t head = c->width / c->heads, kv = head * c->kv_heads;
    float *turns = clv_alloc(c->positions * head, sizeof *turns);
    if (!turns) return clv_fail(CLV_E_MEMORY, "decoder: no memory for %zu positions", c->positions);
    clv_rope_turns(c->positions, head / 2, c->rope_base, turns);
    clv_status status = take(d, c->positions * head, &d->turns);
    if (!status)
        status = clv_write(d->queue, d->turns, 0, turns, c->positions * head * sizeof *turns);
    clv_free(turns);
    for (size_t i = 0; i < c->layers && !status; ++i) {
        clv_decoder_layer *l = &d->layers[i];
        l->turns = d->turns;
        l->packed = clv_gemm_packed_b(&d->form, c->width, c->width) > 0;
        status = take(d, c->positions * kv, &l->keys);
        if (!status) status = take(d, c->positions * kv, &l->values);
    }
    if (!status) status = take(d, c->vocabulary, &d->out);
    return status;
}

clv_status clv_decoder_open(clv_context *context, const char *folder, size_t positions,
                            clv_decoder **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "decoder: nowhere to put it");
    *out = NULL;
    if (!context || !folder) return clv_fail(CLV_E_ARGUMENT, "decoder: context or folder is NULL");
    clv_decoder *d = clv_zalloc(1, sizeof *d);
    if (!d) return clv_fail(CLV_E_MEMORY, "decoder: no memory");
    clv_decoder_config *c = &d->config;
    clv_status status = clv_decoder_config_read(folder, c);
    if (!status && positions > c->positions)
        status = clv_fail(CLV_E_ARGUMENT, "decoder: %zu positions given, the model has %zu",
                          positions, c->positions);
    if (!status && positions) c->positions = positions;
    if (!status) {
        d->layers = clv_zalloc(c->layers, sizeof *d->layers);
        if (!d->layers) status = clv_fail(CLV_E_MEMORY, "decoder: no memory");
    }
    for (size_t i = 0; d->layers && i < c->layers; ++i)
        d->layers[i] = (clv_decoder_layer){ .width = c->width,
                                            .heads = c->heads,
                                            .kv_heads = c->kv_heads,
                                            .ffn = c->ffn,
                                            .eps = c->eps,
                                            .form = &d->form };
    if (!status) status = open_queue(context, d);
    if (!status) status = clv_decoder_bring(d, folder);
    if (!status) status = make_room(d);
    if (status)
        clv_decoder_close(d);
    else
        *out = d;
    return status;
}

void clv_decoder_close(clv_decoder *d)
{
    if (!d) return;
    if (d->queue) clv_queue_drain(d->queue);
    for (size_t i = 0; d->layers && i < d->config.layers; ++i)
        clv_buffer_free(d->layers[i].keys), clv_buffer_free(d->layers[i].values);
    if (d->queue) clv_tensors_drop(clv_queue_device(d->queue), d);
    clv_buffer *const all[] = { d->turns,      d->x,          d->ids,         d->blocks,
                                d->out,        d->room.h,     d->room.q,      d->room.seen,
                                d->room.inner, d->room.gated, d->room.scratch };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_buffer_free(all[i]);
    clv_queue_free(d->queue);
    clv_tensors_close(d->file);
    clv_free(d->path);
    clv_free(d->layers);
    clv_free(d);
}

const clv_decoder_config *clv_decoder_get_config(const clv_decoder *d)
{
    return &d->config;
}

/* ---- tokens in, scores out -------------------------------------------------------------------------- */

/* C = the last row's scores: [1, D] times the transposed table. */
static clv_gemm scores_of(const clv_decoder *d, clv_buffer *weights)
{
    const clv_decoder_config *c = &d->config;
    return (clv_gemm){ .m = 1,
                       .n = c->vocabulary,
                       .k = c->width,
                       .a = { d->room.h, 0, c->width, 1, 0 },
                       .b = { weights, d->scores, 1, c->width, 0 },
                       .b_packed = clv_gemm_packed_b(&d->form, c->vocabulary, c->width) > 0,
                       .c = { d->out, 0, c->vocabulary, 1, 0 },
                       .alpha = 1 };
}

static clv_status fit_rows(clv_decoder *d, size_t rows)
{
    const clv_decoder_config *c = &d->config;
    if (d->room_rows >= rows) return CLV_OK;
    const clv_block_form form = clv_block_form_of(clv_queue_device(d->queue));
    const size_t blocks = clv_attention_block_count(&form, rows);
    const clv_gemm last = scores_of(d, NULL);
    const size_t scratch =
        CLV_MAX(clv_decoder_scratch(&d->layers[0], rows), clv_gemm_scratch(&d->form, &last));
    const struct {
        clv_buffer **buffer;
        size_t floats;
    } all[] = { { &d->x, rows * c->width },
                { &d->ids, 2 * rows },
                { &d->blocks, blocks * sizeof(clv_attention_block) / sizeof(float) },
                { &d->room.h, rows * c->width },
                { &d->room.q, rows * c->width },
                { &d->room.seen, rows * c->width },
                { &d->room.inner, rows * 2 * c->ffn },
                { &d->room.gated, rows * c->ffn },
                { &d->room.scratch, scratch } };
    d->room_rows = 0;
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        CLV_TRY(take(d, all[i].floats, all[i].buffer));
    d->room_rows = rows;
    return CLV_OK;
}

/* Words, and the blocks of queries that attention works on. */
static clv_status bring_tokens(clv_decoder *d, size_t first, const int32_t *ids, size_t rows)
{
    const clv_block_form form = clv_block_form_of(clv_queue_device(d->queue));
    const size_t count = clv_attention_block_count(&form, rows);
    const clv_attention_block text = { .queries = (int32_t)rows, .keys = (int32_t)(first + rows) };
    clv_attention_block *blocks = clv_alloc(count, sizeof *blocks);
    int32_t *pairs = clv_zalloc(rows, 2 * sizeof *pairs);
    clv_status status = blocks && pairs
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "decoder: no memory for %zu tokens", rows);
    if (!status) {
        clv_attention_fill(&form, text, blocks);
        for (size_t i = 0; i < rows; ++i)
            pairs[2 * i] = ids[i]; /* no table of positions: row 0 of zeros */
        status = clv_write(d->queue, d->blocks, 0, blocks, count * sizeof *blocks);
    }
    if (!status) status = clv_write(d->queue, d->ids, 0, pairs, rows * 2 * sizeof *pairs);
    clv_free(blocks), clv_free(pairs);
    return status;
}

static clv_status run_words(const clv_decoder *d, size_t rows)
{
    clv_kept_tensor *words;
    CLV_TRY(clv_decoder_part(d, CLV_DECODER_WORDS, &words));
    const clv_embed_rows e = { .tokens = d->ids,
                               .word = clv_tensor_buffer(words),
                               .parameters = clv_tensor_buffer(words),
                               .position = d->zeros,
                               .type = d->zeros,
                               .y = d->x,
                               .rows = rows,
                               .width = d->config.width };
    const clv_status status = clv_embed_rows_enqueue(d->queue, &e);
    clv_tensor_put(words);
    return status;
}

static clv_status run_layer(const clv_decoder *d, size_t layer, size_t first, size_t rows)
{
    clv_kept_tensor *tensor;
    CLV_TRY(clv_decoder_part(d, CLV_DECODER_LAYERS + layer, &tensor));
    clv_decoder_layer l = d->layers[layer];
    l.weights = clv_tensor_buffer(tensor);
    const clv_status status =
        clv_decoder_layer_enqueue(d->queue, &l, &d->room, d->blocks, first, rows, d->x);
    clv_tensor_put(tensor);
    return status;
}

static clv_status run_scores(const clv_decoder *d, size_t rows)
{
    const clv_decoder_config *c = &d->config;
    clv_kept_tensor *tensor;
    CLV_TRY(clv_decoder_part(d, CLV_DECODER_SCORES, &tensor));
    const clv_norm last = { .x = { d->x, (rows - 1) * c->width, c->width },
                            .y = { d->room.h, 0, c->width },
                            .parameters = clv_tensor_buffer(tensor),
                            .weight = d->norm,
                            .bias = d->norm,
                            .rows = 1,
                            .width = c->width,
                            .eps = c->eps,
                            .rms = true };
    const clv_gemm product = scores_of(d, clv_tensor_buffer(tensor));
    clv_status status = clv_norm_enqueue(d->queue, &last);
    if (!status) status = clv_gemm_enqueue(d->queue, &d->form, &product, d->room.scratch, NULL);
    clv_tensor_put(tensor);
    return status;
}

static clv_status run(const clv_decoder *d, size_t first, size_t rows, float *scores)
{
    CLV_TRY(run_words(d, rows));
    for (size_t i = 0; i < d->config.layers; ++i)
        CLV_TRY(run_layer(d, i, first, rows));
    CLV_TRY(run_scores(d, rows));
    return clv_read(d->queue, d->out, 0, scores, d->config.vocabulary * sizeof *scores);
}

clv_status clv_decoder_feed(clv_decoder *d, size_t first, const int32_t *ids, size_t count,
                            float *scores)
{
    if (!d || !ids || !scores || !count)
        return clv_fail(CLV_E_ARGUMENT, "decoder: a NULL, or no token");
    if (first > d->kept)
        return clv_fail(CLV_E_ARGUMENT, "decoder: tokens behind the first %zu, %zu are kept", first,
                        d->kept);
    if (count > d->config.positions || first > d->config.positions - count)
        return clv_fail(CLV_E_SHAPE, "decoder: %zu tokens, there is room for %zu", first + count,
                        d->config.positions);
    CLV_TRY(clv_attention_check(clv_queue_device(d->queue), first + count,
                                d->config.width / d->config.heads));
    for (size_t i = 0; i < count; ++i)
        if (ids[i] < 0 || (size_t)ids[i] >= d->config.vocabulary)
            return clv_fail(CLV_E_ARGUMENT, "decoder: token %zu is %d, the vocabulary has %zu", i,
                            (int)ids[i], d->config.vocabulary);
    d->kept = first;
    clv_status status = fit_rows(d, count);
    if (!status) status = bring_tokens(d, first, ids, count);
    if (!status) status = run(d, first, count, scores);
    if (status) return clv_queue_finish(d->queue, status); /* the next call meets nothing of it */
    d->kept = first + count;
    return CLV_OK;
}

/* ---- the next token ---------------------------------------------------------------------------------- */

typedef struct candidate {
    float score;
    int32_t id;
} candidate;

/* Highest first; of equal ones the lower number. */
static int by_score(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* A number in [0,1) that belongs to the position. */
static double draw(uint64_t seed, uint64_t position)
{
    const clv_philox counter = { { (uint32_t)position, (uint32_t)(position >> 32), 0, 0 } };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const clv_philox r = clv_philox_make(counter, key);
    return (double)(((uint64_t)r.word[0] << 32 | r.word[1]) >> 11) * 0x1p-53;
}

static int32_t choose(const clv_generate_options *o, const float *scores, size_t count,
                      candidate *list, uint64_t position)
{
    double sum = 0, reached = 0;
    for (size_t i = 0; i < count; ++i)
        list[i] = (candidate){ scores[i], (int32_t)i };
    if (o->temperature == 0) {
        size_t best = 0;
        for (size_t i = 1; i < count; ++i)
            if (scores[i] > scores[best]) best = i;
        return (int32_t)best;
    }
    qsort(list, count, sizeof *list, by_score);
    const size_t among = o->top_k ? CLV_MIN(o->top_k, count) : count;
    const double top = (double)list[0].score;
    for (size_t i = 0; i < among; ++i)
        sum += exp(((double)list[i].score - top) / o->temperature);
    const double at = draw(o->seed, position) * sum;
    for (size_t i = 0; i < among; ++i) {
        reached += exp(((double)list[i].score - top) / o->temperature);
        if (at < reached) return list[i].id;
    }
    return list[among - 1].id;
}

clv_status clv_generate(clv_decoder *d, const int32_t *prompt, size_t prompt_count,
                        const clv_generate_options *given, int32_t *made, size_t *count)
{
    clv_generate_options o = { 0 };
    if (!d || !given || !made || !count)
        return clv_fail(CLV_E_ARGUMENT, "generate: decoder, options, made or count is NULL");
    *count = 0;
    clv_take_options(&o, sizeof o, given);
    if (!(o.temperature >= 0) || isinf(o.temperature))
        return clv_fail(CLV_E_ARGUMENT, "generate: a temperature of %g, expected 0 or more",
                        o.temperature);
    const size_t words = d->config.vocabulary;
    float *scores = clv_alloc(words, sizeof *scores);
    candidate *list = clv_alloc(words, sizeof *list);
    clv_status status = scores && list
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "generate: no memory for %zu words", words);
    if (!status) status = clv_decoder_feed(d, 0, prompt, prompt_count, scores);
    size_t at = prompt_count;
    for (size_t i = 0; i < o.tokens && !status; ++i, ++at) {
        made[i] = choose(&o, scores, words, list, at);
        *count = i + 1;
        if ((o.stops && made[i] == o.stop) || at >= d->config.positions || i + 1 == o.tokens) break;
        status = clv_decoder_feed(d, at, &made[i], 1, scores);
    }
    clv_free(scores), clv_free(list);
    if (status) *count = 0;
    return status;
}

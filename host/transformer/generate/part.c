/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates the memory of a language model's part on a device, and runs steps through the part's layers. */
#include "host/transformer/generate/part.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/transformer/blocks.h"
#include "runtime/device/device.h"
#include "runtime/device/queue.h"

#include <math.h>
#include <string.h>

/* ---- memory --------------------------------------------------------------------------------------- */

static clv_status take(const clv_lm_part *p, uint64_t bytes, clv_buffer **out)
{
    clv_buffer_free(*out);
    *out = NULL;
    return clv_buffer_create(clv_queue_device(p->queue), (size_t)bytes, CLV_BUFFER_DEVICE, out);
}

static clv_status take_floats(const clv_lm_part *p, size_t floats, clv_buffer **out)
{
    return take(p, CLV_MAX(floats, (size_t)16) * sizeof(float), out);
}

/* Uploads the cosine and sine of each pair's angle at every position below `positions`, computed in double
 * precision. */
static clv_status make_angles(clv_lm_part *p, size_t positions)
{
    const clv_lm_config *c = &p->model->config;
    const size_t half = c->turned / 2, floats = positions * c->turned;
    float *angles = clv_alloc(floats, sizeof *angles);
    if (!angles) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu positions", positions);
    for (size_t t = 0; t < half; ++t) {
        const double speed = clv_lm_speed(p->model, t);
        for (size_t i = 0; i < positions; ++i) {
            const double angle = (double)i * speed;
            angles[i * c->turned + 2 * t] = (float)(c->swell * cos(angle));
            angles[i * c->turned + 2 * t + 1] = (float)(c->swell * sin(angle));
        }
    }
    clv_status status = take_floats(p, floats, &p->angles);
    if (!status) status = clv_write(p->queue, p->angles, 0, angles, floats * sizeof *angles);
    clv_free(angles);
    p->angle_room = status ? 0 : positions;
    return status;
}

static clv_status fit_rows(clv_lm_part *p, size_t rows)
{
    const clv_lm_widths w = clv_lm_widths_of(&p->model->config);
    const bool last = p->scored;
    p->rows_room = 0;
    CLV_TRY(take_floats(p, rows, &p->ids));
    CLV_TRY(take_floats(p, rows * w.x, &p->x));
    CLV_TRY(take_floats(p, rows * w.x, &p->h));
    CLV_TRY(take_floats(p, rows * w.qkv, &p->qkv));
    CLV_TRY(take_floats(p, rows * w.seen, &p->seen));
    CLV_TRY(take_floats(p, rows * 2 * w.ffn, &p->inner));
    CLV_TRY(take_floats(p, rows * w.ffn, &p->gated));
    size_t scratch = 0, wide = 0;
    if (p->family == CLV_LM_CORES)
        scratch = clv_lm_cores_scratch(p, rows);
    else
        clv_lm_items_scratch(p, rows, &scratch, &wide);
    CLV_TRY(take_floats(p, scratch, &p->scratch));
    if (wide) CLV_TRY(take_floats(p, wide, &p->wide));
    const size_t few = CLV_MIN(rows, (size_t)CLV_LM_FEW);
    CLV_TRY(take_floats(p, few * clv_lm_parts_floats(&p->model->config), &p->parts));
    CLV_TRY(take_floats(p, CLV_LM_FEW, &p->row_parts));
    if (last) CLV_TRY(take_floats(p, few * w.vocabulary, &p->out));
    if (p->family == CLV_LM_CORES) CLV_TRY(take_floats(p, p->count * CLV_LM_TURNS, &p->turns));
    /* kernels read rows in whole groups of 16 floats, so that the padding must hold finite numbers */
    CLV_TRY(clv_fill_enqueue(p->queue, p->x, 0, rows * w.x * sizeof(float), 0, NULL));
    CLV_TRY(clv_fill_enqueue(p->queue, p->seen, 0, rows * w.seen * sizeof(float), 0, NULL));
    CLV_TRY(clv_queue_wait(p->queue));
    p->rows_room = rows;
    return CLV_OK;
}

clv_status clv_lm_part_fit(clv_lm_part *p, size_t rows, size_t positions)
{
    if (positions > p->angle_room) CLV_TRY(make_angles(p, positions));
    return rows > p->rows_room ? fit_rows(p, rows) : CLV_OK;
}

void clv_lm_cache_free(const clv_lm_part *p, clv_lm_cache *cache)
{
    for (size_t i = 0; cache->keys && cache->values && i < p->count; ++i)
        clv_buffer_free(cache->keys[i]), clv_buffer_free(cache->values[i]);
    clv_free(cache->keys), clv_free(cache->values), clv_free(cache->rooms);
    *cache = (clv_lm_cache){ 0 };
}

/* Returns in *out a cache buffer for `room` tokens with the first `used` tokens of `buffer`. In the kernels for CORES,
 * each head has an area of its own with `room` tokens. */
static clv_status grown(const clv_lm_part *p, const clv_buffer *buffer, size_t width, size_t used,
                        size_t old_room, size_t room, clv_buffer **out)
{
    const clv_lm_config *c = &p->model->config;
    const size_t row = width * (p->half ? 2 : 4);
    const size_t heads = p->family == CLV_LM_CORES ? c->kv_heads : 1;
    const size_t wide = row * (p->family == CLV_LM_CORES ? 1 : c->kv_heads);
    CLV_TRY(take(p, (uint64_t)room * wide * heads, out));
    clv_status status = CLV_OK;
    const size_t kept = clv_round_up(used, 16) * wide; /* keys lie in tiles of 16 tokens */
    for (size_t h = 0; h < heads && used && !status; ++h)
        status = clv_copy_enqueue(p->queue, buffer, h * old_room * wide, *out, h * room * wide,
                                  kept, NULL);
    return clv_queue_finish(p->queue, status);
}

/* Replaces a layer's keys and values together, or, after a failure, neither of them. */
static clv_status grow_layer(const clv_lm_part *p, clv_lm_cache *cache, size_t layer, size_t used,
                             size_t room)
{
    const size_t head = p->model->config.head, old = cache->rooms[layer];
    const size_t wide = p->family == CLV_LM_CORES ? clv_round_up(head, 16) : head;
    clv_buffer *keys = NULL, *values = NULL;
    clv_status status = grown(p, cache->keys[layer], head, used, old, room, &keys);
    if (!status) status = grown(p, cache->values[layer], wide, used, old, room, &values);
    if (status) {
        clv_buffer_free(keys), clv_buffer_free(values);
        return status;
    }
    clv_buffer_free(cache->keys[layer]), clv_buffer_free(cache->values[layer]);
    cache->keys[layer] = keys, cache->values[layer] = values;
    cache->rooms[layer] = room;
    return CLV_OK;
}

clv_status clv_lm_cache_grow(clv_lm_part *p, clv_lm_cache *cache, size_t used, size_t room)
{
    room = clv_round_up(room, 32);
    if (!cache->keys) cache->keys = clv_zalloc(p->count + 1, sizeof *cache->keys);
    if (!cache->values) cache->values = clv_zalloc(p->count + 1, sizeof *cache->values);
    if (!cache->rooms) cache->rooms = clv_zalloc(p->count + 1, sizeof *cache->rooms);
    if (!cache->keys || !cache->values || !cache->rooms)
        return clv_fail(CLV_E_MEMORY, "not enough memory for the cache of keys and values");
    for (size_t i = 0; i < p->count; ++i)
        if (cache->rooms[i] < room) CLV_TRY(grow_layer(p, cache, i, used, room));
    cache->room = room;
    return CLV_OK;
}

/* ---- a step --------------------------------------------------------------------------------------- */

clv_status clv_lm_part_words(clv_lm_part *p, const int32_t *ids, size_t rows)
{
    clv_kept_tensor *words;
    CLV_TRY(clv_write_enqueue(p->queue, p->ids, 0, ids, rows * sizeof *ids, NULL));
    CLV_TRY(clv_lm_part_hold(p, CLV_LM_KEPT_WORDS, &words));
    const clv_status status = p->family == CLV_LM_CORES
                                  ? clv_lm_cores_embed(p, clv_tensor_buffer(words), rows)
                                  : clv_lm_items_embed(p, clv_tensor_buffer(words), rows);
    clv_tensor_put(words);
    return status;
}

static clv_status product(clv_lm_part *p, const clv_lm_product *call)
{
    return p->family == CLV_LM_CORES ? clv_lm_cores_product(p, call)
                                     : clv_lm_items_product(p, call);
}

/* A step for `rows` tokens of one text, or for a few tokens that each have a cache and a position of their own. */
typedef struct step {
    const clv_lm_cache *cache;
    size_t first, rows;
    const clv_lm_row *few; /* [rows]; NULL: one text in `cache`, from position `first` on */
} step;

static size_t splits_of(const clv_lm_part *p, size_t keys, size_t rows)
{
    return p->family == CLV_LM_CORES ? clv_lm_cores_splits(p, keys, rows)
                                     : clv_lm_items_splits(p, keys, rows);
}

static clv_lm_attend attend_of(const clv_lm_part *p, const clv_lm_cache *cache, size_t layer,
                               size_t first, size_t rows)
{
    return (clv_lm_attend){ .layer = &p->layers[layer],
                            .keys = cache->keys[layer],
                            .values = cache->values[layer],
                            .room = cache->rooms[layer],
                            .first = first,
                            .rows = rows,
                            .splits = splits_of(p, first + rows, rows) };
}

static clv_status attention(clv_lm_part *p, size_t layer, const step *s)
{
    const size_t turns = s->few ? s->rows : 1;
    for (size_t i = 0; i < turns; ++i) {
        clv_lm_attend a = s->few ? attend_of(p, s->few[i].cache, layer, s->few[i].position, 1)
                                 : attend_of(p, s->cache, layer, s->first, s->rows);
        a.row = i;
        CLV_TRY(p->family == CLV_LM_CORES ? clv_lm_cores_attend(p, &a)
                                          : clv_lm_items_attend(p, &a));
    }
    return CLV_OK;
}

/* Prepares the RMSNorm of part->x for a product. On CORES, the product of one token or of a few computes the norm
 * itself; otherwise this function enqueues the norm. */
static clv_status norm(clv_lm_part *p, const clv_buffer *weights, size_t at, size_t row,
                       size_t rows, clv_lm_product *call)
{
    const clv_lm_config *c = &p->model->config;
    const size_t stride = clv_lm_widths_of(c).x;
    call->rows = rows, call->x_stride = stride;
    call->norms = weights, call->norm = at;
    if (p->family == CLV_LM_CORES && (rows == 1 || call->few)) {
        call->x = p->x, call->x_offset = row * stride, call->kind = CLV_LM_NORM;
        return CLV_OK;
    }
    const clv_norm n = { .x = { p->x, row * stride, stride },
                         .y = { p->h, 0, stride },
                         .parameters = weights,
                         .weight = at,
                         .rows = rows,
                         .width = c->width,
                         .eps = c->eps,
                         .rms = true };
    call->x = p->h, call->x_offset = 0, call->kind = CLV_LM_PLAIN;
    return clv_norm_enqueue(p->queue, &n);
}

/* Computes silu(gate x) * (up x) by one product with both matrices side by side, or by two products. */
static clv_status gates(clv_lm_part *p, const clv_lm_layer *l, clv_lm_product call)
{
    const clv_lm_widths w = clv_lm_widths_of(&p->model->config);
    call.w = &l->gate, call.y = p->gated, call.y_stride = w.ffn;
    call.second = l->up.offset - l->gate.offset;
    const bool both = l->paired && p->family == CLV_LM_CORES;
    call.finish = both ? CLV_LM_GATES : CLV_LM_PLUS;
    CLV_TRY(product(p, &call));
    if (both) return CLV_OK;
    call.w = &l->up, call.finish = CLV_LM_GATED;
    return product(p, &call);
}

static clv_status run_layer(clv_lm_part *p, size_t layer, const step *s)
{
    const clv_lm_layer *l = &p->layers[layer];
    const clv_lm_widths w = clv_lm_widths_of(&p->model->config);
    const bool cores = p->family == CLV_LM_CORES, few = s->few != NULL;
    const size_t rows = s->rows, splits = few ? 1 : splits_of(p, s->first + rows, rows);
    /* whether the output product joins the results of the parts of the keys */
    const bool joins = cores && splits > 1, may_join = joins || (cores && few);
    clv_lm_product normed = {
        .weights = l->weights, .biases = l->weights, .y = p->qkv, .y_stride = w.qkv, .few = few
    };
    clv_lm_product adds = { .weights = l->weights,
                            .w = &l->out,
                            .x = joins ? p->parts : p->seen,
                            .x_stride = w.seen,
                            .rows = rows,
                            .few = few,
                            .kind = may_join ? CLV_LM_PARTS : CLV_LM_PLAIN,
                            .splits = splits,
                            .biases = l->weights,
                            .y = p->x,
                            .y_stride = w.x,
                            .finish = CLV_LM_ADDS };
    if (rows == 1 && cores && !few && clv_lm_cores_joined(p, l)) {
        const clv_lm_attend a = attend_of(p, s->cache, layer, s->first, 1);
        return clv_lm_cores_layer(p, &a, layer);
    }
    CLV_TRY(norm(p, l->weights, l->attn_norm, 0, rows, &normed));
    for (size_t i = 0; i < l->qkv_count; ++i) {
        normed.w = &l->qkv[i];
        CLV_TRY(product(p, &normed));
    }
    CLV_TRY(attention(p, layer, s));
    CLV_TRY(product(p, &adds));
    CLV_TRY(norm(p, l->weights, l->ffn_norm, 0, rows, &normed));
    CLV_TRY(gates(p, l, normed));
    adds.w = &l->down, adds.x = p->gated, adds.x_stride = w.ffn, adds.kind = CLV_LM_PLAIN;
    return product(p, &adds);
}

static clv_status run_layers(clv_lm_part *p, const step *s)
{
    clv_status status = CLV_OK;
    for (size_t i = 0; i < p->count && !status; ++i) {
        clv_kept_tensor *weights;
        CLV_TRY(clv_lm_part_hold(p, CLV_LM_KEPT_LAYERS + i, &weights));
        p->layers[i].weights = clv_tensor_buffer(weights);
        status = run_layer(p, i, s);
        p->layers[i].weights = NULL;
        clv_tensor_put(weights);
    }
    return status;
}

clv_status clv_lm_part_layers(clv_lm_part *p, const clv_lm_cache *cache, size_t first, size_t rows)
{
    const step s = { .cache = cache, .first = first, .rows = rows };
    if (rows == 1 && p->family == CLV_LM_CORES)
        CLV_TRY(clv_fill_enqueue(p->queue, p->turns, 0, p->count * CLV_LM_TURNS * sizeof(float), 0,
                                 NULL));
    return run_layers(p, &s);
}

clv_status clv_lm_part_few(clv_lm_part *p, const clv_lm_row *rows, size_t count)
{
    const step s = { .rows = count, .few = rows };
    for (size_t i = 0; i < count; ++i)
        p->parts_of_rows[i] = (uint32_t)splits_of(p, rows[i].position + 1, 1);
    CLV_TRY(clv_write_enqueue(p->queue, p->row_parts, 0, p->parts_of_rows,
                              count * sizeof *p->parts_of_rows, NULL));
    return run_layers(p, &s);
}

static clv_status scores(clv_lm_part *p, size_t row, size_t count, bool few)
{
    const clv_lm_widths w = clv_lm_widths_of(&p->model->config);
    clv_kept_tensor *head;
    CLV_TRY(clv_lm_part_hold(p, p->scores_in, &head));
    clv_lm_product call = { .weights = clv_tensor_buffer(head),
                            .w = &p->scores,
                            .few = few,
                            .biases = p->out_norm,
                            .y = p->out,
                            .y_stride = w.vocabulary };
    clv_status status = norm(p, p->out_norm, 0, row, count, &call);
    if (!status) status = product(p, &call);
    clv_tensor_put(head);
    return status;
}

clv_status clv_lm_part_scores(clv_lm_part *p, size_t row)
{
    return scores(p, row, 1, false);
}

clv_status clv_lm_part_scores_few(clv_lm_part *p, size_t count)
{
    return scores(p, 0, count, true);
}

void clv_lm_part_close(clv_lm_part *p)
{
    if (!p->queue) return;
    clv_queue_drain(p->queue);
    clv_tensors_drop(clv_queue_device(p->queue), p);
    clv_buffer *const all[] = { p->out_norm, p->ids,   p->x,     p->h,     p->qkv,
                                p->seen,     p->inner, p->gated, p->parts, p->scratch,
                                p->angles,   p->out,   p->wide,  p->turns, p->row_parts };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_buffer_free(all[i]);
    clv_free(p->layers);
    clv_queue_free(p->queue);
    *p = (clv_lm_part){ 0 };
}

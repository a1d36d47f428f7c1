/* SPDX-License-Identifier: Apache-2.0 */
/* clv_sequence: tokens through the model's parts, from device to device. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/queue.h"

#include <string.h>

enum { FIRST_ROOM = 512 }; /* tokens; then twice as many */

clv_status clv_sequence_create(clv_language *language, clv_sequence **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_create: out is NULL");
    *out = NULL;
    if (!language) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_create: language is NULL");
    clv_sequence *s = clv_zalloc(1, sizeof *s);
    if (s) {
        s->language = language;
        s->caches = clv_zalloc(CLV_MAX(language->part_count, (size_t)1), sizeof *s->caches);
        s->scores = clv_alloc(language->model->config.vocabulary, sizeof *s->scores);
    }
    if (!s || !s->caches || !s->scores) {
        clv_sequence_free(s);
        return clv_fail(CLV_E_MEMORY, "clv_sequence_create: no memory");
    }
    *out = s;
    return CLV_OK;
}

void clv_sequence_free(clv_sequence *s)
{
    if (!s) return;
    for (size_t i = 0; s->caches && i < s->language->part_count; ++i)
        clv_lm_cache_free(&s->language->parts[i], &s->caches[i]);
    clv_free(s->caches), clv_free(s->scores), clv_free(s->tokens);
    clv_free(s->keys), clv_free(s->values);
    clv_free(s);
}

const int32_t *clv_sequence_tokens(const clv_sequence *s, size_t *count)
{
    if (count) *count = s ? s->count : 0;
    return s ? s->tokens : NULL;
}

clv_status clv_sequence_rewind(clv_sequence *s, size_t count)
{
    if (!s) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_rewind: sequence is NULL");
    if (count > s->count)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_rewind: to %zu tokens, there are %zu", count,
                        s->count);
    s->scored = s->scored && count == s->count;
    s->count = count;
    return CLV_OK;
}

clv_status clv_sequence_scores(clv_sequence *s, const float **scores)
{
    if (!s || !scores) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_scores: a NULL");
    *scores = NULL;
    if (!s->scored)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_scores: nothing was fed behind token %zu",
                        s->count);
    *scores = s->scores;
    return CLV_OK;
}

/* ---- feeding -------------------------------------------------------------------------------------- */

/* Room for `rows` tokens behind the first `used`. */
static clv_status fit(clv_sequence *s, size_t used, size_t rows)
{
    const clv_language *l = s->language;
    const size_t positions = used + rows;
    for (size_t i = 0; i < l->part_count; ++i) {
        clv_lm_cache *cache = &s->caches[i];
        if (positions > cache->room) {
            size_t room = CLV_MAX(2 * cache->room, (size_t)FIRST_ROOM);
            room = CLV_MIN(CLV_MAX(room, positions), CLV_MAX(l->room, positions));
            CLV_TRY(clv_lm_cache_grow(&l->parts[i], cache, used, room));
        }
        CLV_TRY(clv_lm_part_fit(&l->parts[i], rows, cache->room));
    }
    return CLV_OK;
}

/* What one device made goes to the next, by way of the host. */
static clv_status hand_over(const clv_lm_part *from, const clv_lm_part *to, size_t rows)
{
    const size_t bytes = rows * clv_lm_widths_of(&from->model->config).x * sizeof(float);
    float *host = clv_alloc(bytes, 1);
    if (!host) return clv_fail(CLV_E_MEMORY, "no memory for %zu rows", rows);
    clv_status status = clv_read(from->queue, from->x, 0, host, bytes);
    if (!status) status = clv_write(to->queue, to->x, 0, host, bytes);
    clv_free(host);
    return status;
}

/* `rows` tokens from position `first` on; scores of the last where they are wanted. */
static clv_status step(clv_sequence *s, size_t first, const int32_t *ids, size_t rows, bool scored)
{
    const clv_language *l = s->language;
    const size_t words = l->model->config.vocabulary;
    CLV_TRY(fit(s, first, rows));
    CLV_TRY(clv_lm_part_words(&l->parts[0], ids, rows));
    for (size_t i = 0; i < l->part_count; ++i) {
        if (i) CLV_TRY(hand_over(&l->parts[i - 1], &l->parts[i], rows));
        CLV_TRY(clv_lm_part_layers(&l->parts[i], &s->caches[i], first, rows));
    }
    clv_lm_part *last = &l->parts[l->part_count - 1];
    if (!scored) return clv_queue_wait(last->queue);
    CLV_TRY(clv_lm_part_scores(last, rows - 1));
    return clv_read(last->queue, last->out, 0, s->scores, words * sizeof *s->scores);
}

static clv_status run(clv_sequence *s, const int32_t *ids, size_t count)
{
    clv_language *l = s->language;
    if (!l->part_count) return clv_lm_plain_feed(s, s->count, ids, count, s->scores);
    clv_status status = CLV_OK;
    for (size_t done = 0; done < count && !status;) {
        const size_t rows = CLV_MIN(l->chunk, count - done);
        status = step(s, s->count + done, ids + done, rows, done + rows == count);
        done += rows;
    }
    for (size_t i = 0; status && i < l->part_count; ++i) /* the next call meets nothing of it */
        clv_queue_drain(l->parts[i].queue);
    return status;
}

static clv_status check_ids(const clv_sequence *s, const int32_t *ids, size_t count)
{
    const clv_language *l = s->language;
    const size_t words = l->model->config.vocabulary;
    if (count > l->room || s->count > l->room - count)
        return clv_fail(CLV_E_SHAPE, "%zu tokens, but the context has room for %zu",
                        s->count + count, l->room);
    for (size_t i = 0; i < count; ++i)
        if (ids[i] < 0 || (size_t)ids[i] >= words)
            return clv_fail(CLV_E_ARGUMENT, "token %zu is %d, expected an id below %zu", i,
                            (int)ids[i], words);
    return CLV_OK;
}

clv_status clv_sequence_feed(clv_sequence *s, const int32_t *ids, size_t count, float *scores)
{
    if (!s || !ids || !count)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_feed: a NULL, or no token");
    CLV_TRY(check_ids(s, ids, count));
    if (!clv_reserve(&s->tokens, &s->token_room, s->count + count, sizeof *s->tokens))
        return clv_fail(CLV_E_MEMORY, "clv_sequence_feed: no memory");
    pthread_mutex_lock(&s->language->lock);
    s->scored = false;
    const clv_status status = run(s, ids, count);
    pthread_mutex_unlock(&s->language->lock);
    if (status) return status;
    memcpy(s->tokens + s->count, ids, count * sizeof *ids);
    s->count += count;
    s->scored = true;
    if (scores) memcpy(scores, s->scores, s->language->model->config.vocabulary * sizeof *scores);
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_sequence: passes tokens through the model's parts, from device to device. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/queue.h"

#include <string.h>

enum { FIRST_ROOM = 512 }; /* room for tokens at first; doubled whenever it is full */

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
        return clv_fail(CLV_E_MEMORY, "clv_sequence_create: out of memory");
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
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_sequence_rewind: asked to rewind to %zu tokens, but there are %zu",
                        count, s->count);
    s->scored = s->scored && count == s->count;
    s->count = count;
    return CLV_OK;
}

clv_status clv_sequence_scores(clv_sequence *s, const float **scores)
{
    if (!s || !scores) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_scores: an argument is NULL");
    *scores = NULL;
    if (!s->scored)
        return clv_fail(
            CLV_E_ARGUMENT,
            "clv_sequence_scores: there are no scores after the first %zu tokens; feed a "
            "token first (a rewind or a failed feed discards the scores)",
            s->count);
    *scores = s->scores;
    return CLV_OK;
}

/* ---- feeding -------------------------------------------------------------------------------------- */

/* Makes room in the caches for `rows` tokens after the first `used`, and in the parts' scratch memory for steps of
 * `at_once` tokens. */
static clv_status fit(clv_sequence *s, size_t used, size_t rows, size_t at_once)
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
        CLV_TRY(clv_lm_part_fit(&l->parts[i], at_once, cache->room));
    }
    return CLV_OK;
}

/* Copies the output of one part's device to the device of the next part, through the host's memory. */
static clv_status hand_over(const clv_lm_part *from, const clv_lm_part *to, size_t rows)
{
    const size_t bytes = rows * clv_lm_widths_of(&from->model->config).x * sizeof(float);
    float *host = clv_alloc(bytes, 1);
    if (!host) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu rows", rows);
    clv_status status = clv_read(from->queue, from->x, 0, host, bytes);
    if (!status) status = clv_write(to->queue, to->x, 0, host, bytes);
    clv_free(host);
    return status;
}

/* Runs `rows` tokens from position `first` on; with `scored`, also computes the scores of the last token. */
static clv_status step(clv_sequence *s, size_t first, const int32_t *ids, size_t rows, bool scored)
{
    const clv_language *l = s->language;
    const size_t words = l->model->config.vocabulary;
    CLV_TRY(fit(s, first, rows, rows));
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

/* Waits for all commands in the queues after a failure, so that none of them disturbs the next call. Returns
 * `status`. */
static clv_status drain(clv_language *l, clv_status status)
{
    for (size_t i = 0; status && i < l->part_count; ++i)
        clv_queue_drain(l->parts[i].queue);
    return status;
}

/* Feeds up to CLV_LM_FEW tokens, ids[i] to the text of[i], and computes the scores after each: either one token for
 * each of several texts, or consecutive tokens of one text. */
static clv_status step_few(clv_sequence *const *of, const int32_t *ids, size_t count,
                           float *const *scores)
{
    clv_language *l = of[0]->language;
    const size_t words = l->model->config.vocabulary;
    const size_t stride = clv_lm_widths_of(&l->model->config).vocabulary;
    size_t positions[CLV_LM_FEW];
    for (size_t k = 0; k < count; ++k) {
        positions[k] = of[k]->count + (k && of[k] == of[k - 1] ? k : 0);
        CLV_TRY(fit(of[k], of[k]->count, positions[k] + 1 - of[k]->count, count));
    }
    CLV_TRY(clv_lm_part_words(&l->parts[0], ids, count));
    for (size_t i = 0; i < l->part_count; ++i) {
        clv_lm_row rows[CLV_LM_FEW];
        for (size_t k = 0; k < count; ++k)
            rows[k] = (clv_lm_row){ &of[k]->caches[i], positions[k] };
        if (i) CLV_TRY(hand_over(&l->parts[i - 1], &l->parts[i], count));
        CLV_TRY(clv_lm_part_few(&l->parts[i], rows, count));
    }
    clv_lm_part *last = &l->parts[l->part_count - 1];
    CLV_TRY(clv_lm_part_scores_few(last, count));
    for (size_t k = 0; k < count; ++k)
        CLV_TRY(clv_read(last->queue, last->out, k * stride * sizeof(float), scores[k],
                         words * sizeof(float)));
    return CLV_OK;
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
    return drain(l, status);
}

static clv_status check_ids(const clv_sequence *s, const int32_t *ids, size_t count)
{
    const clv_language *l = s->language;
    const size_t words = l->model->config.vocabulary;
    if (count > l->room || s->count > l->room - count)
        return clv_fail(CLV_E_SHAPE, "got %zu tokens, but the context has room for %zu",
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
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_sequence_feed: an argument is NULL, or there is no token");
    CLV_TRY(check_ids(s, ids, count));
    if (!clv_reserve(&s->tokens, &s->token_room, s->count + count, sizeof *s->tokens))
        return clv_fail(CLV_E_MEMORY, "clv_sequence_feed: out of memory");
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

clv_status clv_lm_feed_few(clv_sequence *s, const int32_t *ids, size_t count, float *scores)
{
    clv_language *l = s->language;
    const size_t words = l->model->config.vocabulary;
    clv_sequence *of[CLV_LM_FEW];
    float *to[CLV_LM_FEW];
    clv_status status = CLV_OK;
    if (count == 1 || !l->part_count) { /* plain C gains nothing from joint steps */
        for (size_t i = 0; i < count && !status; ++i)
            status = clv_sequence_feed(s, &ids[i], 1, scores + i * words);
        return status;
    }
    CLV_TRY(check_ids(s, ids, count));
    if (!clv_reserve(&s->tokens, &s->token_room, s->count + count, sizeof *s->tokens))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu tokens", s->count + count);
    for (size_t i = 0; i < count; ++i)
        of[i] = s, to[i] = scores + i * words;
    pthread_mutex_lock(&l->lock);
    s->scored = false;
    status = drain(l, step_few(of, ids, count, to));
    pthread_mutex_unlock(&l->lock);
    if (status) return status;
    memcpy(s->tokens + s->count, ids, count * sizeof *ids);
    s->count += count;
    memcpy(s->scores, to[count - 1], words * sizeof *scores);
    s->scored = true;
    return CLV_OK;
}

/* ---- several texts --------------------------------------------------------------------------------- */

static clv_status check_together(clv_sequence *const *all, size_t count, const int32_t *ids)
{
    for (size_t i = 0; i < count; ++i) {
        if (!all[i]) return clv_fail(CLV_E_ARGUMENT, "clv_sequences_feed: text %zu is NULL", i);
        if (all[i]->language != all[0]->language)
            return clv_fail(CLV_E_ARGUMENT,
                            "clv_sequences_feed: text %zu belongs to another model than text 0", i);
        for (size_t k = 0; k < i; ++k)
            if (all[k] == all[i])
                return clv_fail(CLV_E_ARGUMENT,
                                "clv_sequences_feed: texts %zu and %zu are the same", k, i);
        CLV_TRY(check_ids(all[i], &ids[i], 1));
        if (!clv_reserve(&all[i]->tokens, &all[i]->token_room, all[i]->count + 1,
                         sizeof *all[i]->tokens))
            return clv_fail(CLV_E_MEMORY, "clv_sequences_feed: out of memory");
    }
    return CLV_OK;
}

static clv_status run_together(clv_sequence *const *all, size_t count, const int32_t *ids)
{
    clv_language *l = all[0]->language;
    float *scores[CLV_LM_FEW];
    for (size_t at = 0, now; at < count; at += now) {
        now = l->part_count ? CLV_MIN(count - at, (size_t)CLV_LM_FEW) : 1;
        for (size_t i = 0; i < now; ++i)
            scores[i] = all[at + i]->scores;
        CLV_TRY(now == 1 ? run(all[at], &ids[at], 1)
                         : drain(l, step_few(all + at, ids + at, now, scores)));
    }
    return CLV_OK;
}

clv_status clv_sequences_feed(clv_sequence *const *all, size_t count, const int32_t *ids)
{
    if (!all || !ids || !count)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_sequences_feed: an argument is NULL, or there is no text");
    CLV_TRY(check_together(all, count, ids));
    pthread_mutex_lock(&all[0]->language->lock);
    for (size_t i = 0; i < count; ++i)
        all[i]->scored = false;
    const clv_status status = run_together(all, count, ids);
    pthread_mutex_unlock(&all[0]->language->lock);
    for (size_t i = 0; i < count && !status; ++i) {
        all[i]->tokens[all[i]->count++] = ids[i];
        all[i]->scored = true;
    }
    return status;
}

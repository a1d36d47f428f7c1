/* SPDX-License-Identifier: Apache-2.0 */
/* Continues a text: draws token after token and passes the new text to the caller piece by piece, until an end token, a
 * stop text or a limit ends the text. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

typedef struct writer {
    clv_sequence *s;
    clv_writing o;
    clv_detokenizer *detokenizer;
    clv_text text; /* everything written so far */
    size_t told;   /* bytes of `text` that the caller has received */
    int32_t *tokens;
    size_t count, room;
    bool ends;
    clv_stop stop;
    double started, first_s;
    size_t guessed, hits;
} writer;

static void end(writer *w, clv_stop why)
{
    if (!w->ends) w->stop = why;
    w->ends = true;
}

/* Reports a token to the caller, with the new text up to byte `to`. */
static void tell(writer *w, size_t to, int32_t id)
{
    const size_t from = w->told;
    w->told = CLV_MAX(to, from);
    if (w->o.piece && w->o.piece(clv_text_get(&w->text) + from, w->told - from, id, w->o.user))
        end(w, CLV_STOP_CALLER);
}

/* Returns the position of the first stop text from `from` on; SIZE_MAX if there is none. */
static size_t find_stop(const writer *w, size_t from)
{
    size_t first = SIZE_MAX;
    const char *text = clv_text_get(&w->text);
    for (const char *const *stop = w->o.stops; stop && *stop; ++stop) {
        const size_t length = strlen(*stop);
        for (size_t at = from; length && at + length <= w->text.length && at < first; ++at)
            if (memcmp(text + at, *stop, length) == 0) first = at;
    }
    return first;
}

/* Returns the number of bytes at the end of the text that may be the beginning of a stop text. */
static size_t held_back(const writer *w)
{
    size_t most = 0;
    const char *text = clv_text_get(&w->text);
    for (const char *const *stop = w->o.stops; stop && *stop; ++stop)
        for (size_t n = CLV_MIN(strlen(*stop), w->text.length - w->told); n > most; --n)
            if (memcmp(text + w->text.length - n, *stop, n) == 0) most = n;
    return most;
}

static clv_status add_text(writer *w, const char *piece, size_t length, int32_t id)
{
    clv_text_bytes(&w->text, piece, length);
    if (w->text.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for a text");
    const size_t stop = find_stop(w, w->told);
    if (stop != SIZE_MAX) {
        w->text.length = stop;
        w->text.data[stop] = '\0';
        end(w, CLV_STOP_TEXT);
        tell(w, stop, id);
        return CLV_OK;
    }
    tell(w, w->text.length - held_back(w), id);
    return CLV_OK;
}

static bool is_end(const writer *w, int32_t id)
{
    const clv_lm_model *m = w->s->language->model;
    for (size_t i = 0; !w->o.ignore_end && i < m->end_count; ++i)
        if (m->ends[i] == id) return true;
    return false;
}

/* Draws the next token from `scores`, which follow the text's last token, and appends its text. */
static clv_status take_token(writer *w, const float *scores)
{
    const clv_lm_model *m = w->s->language->model;
    static const clv_sampling highest = { .size = sizeof highest };
    const clv_sampling *sampling = w->o.sampling ? w->o.sampling : &highest;
    const char *piece;
    size_t length;
    int32_t id;
    if (!clv_reserve(&w->tokens, &w->room, w->count + 1, sizeof *w->tokens))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu tokens", w->count);
    CLV_TRY(clv_lm_blame(m, clv_sample(scores, m->config.vocabulary, sampling, w->s->tokens,
                                       w->s->count, w->s->count, &id)));
    w->tokens[w->count++] = id;
    if (is_end(w, id)) {
        end(w, CLV_STOP_END);
        return CLV_OK;
    }
    if (clv_tokenizer_piece(m->tokenizer, id)) { /* other ids have no text */
        CLV_TRY(clv_detokenizer_add(w->detokenizer, id, &piece, &length));
        CLV_TRY(add_text(w, piece, length, id));
    } else {
        tell(w, w->told, id);
    }
    if (w->count == w->o.tokens) end(w, CLV_STOP_LENGTH);
    if (w->s->count >= w->s->language->room) end(w, CLV_STOP_CONTEXT);
    return CLV_OK;
}

static clv_status begin(writer *w)
{
    w->started = clv_now();
    CLV_TRY(take_token(w, w->s->scores));
    w->first_s = clv_now() - w->started;
    return CLV_OK;
}

/* Adds the text that the detokenizer still holds back, and passes it to the caller. */
static clv_status finish(writer *w)
{
    const char *piece;
    size_t length;
    if (w->stop == CLV_STOP_TEXT) return CLV_OK;
    CLV_TRY(clv_detokenizer_finish(w->detokenizer, &piece, &length));
    clv_text_bytes(&w->text, piece, length);
    if (w->text.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for a text");
    if (w->told < w->text.length) tell(w, w->text.length, w->tokens[w->count - 1]);
    return CLV_OK;
}

/* ---- guessing ahead -------------------------------------------------------------------------------- */

/* Feeds the last token and guesses of the following ones in one step. Then takes as many tokens as there are correct
 * guesses, and one more. Each token is drawn as usual, from the scores after the tokens before it, so that no token
 * depends on the guesses. *came receives the number of correct guesses. */
static clv_status take_guessed(writer *w, size_t most, float *scores, size_t *came)
{
    clv_sequence *s = w->s;
    const size_t words = s->language->model->config.vocabulary, before = s->count;
    int32_t ids[CLV_LM_FEW];
    size_t guessed = 0, taken = 0;
    ids[0] = w->tokens[w->count - 1];
    if (clv_reserve(&s->tokens, &s->token_room, before + 1, sizeof *s->tokens)) {
        s->tokens[before] = ids[0];
        guessed = clv_lm_guess(s->tokens, before + 1, CLV_MIN(most, s->language->room - before - 1),
                               ids + 1);
    }
    CLV_TRY(clv_lm_feed_few(s, ids, 1 + guessed, scores));
    for (; taken <= guessed && !w->ends; ++taken) {
        s->count = before + 1 + taken; /* excludes the tokens after those that are taken */
        CLV_TRY(take_token(w, scores + taken * words));
        if (taken < guessed && w->tokens[w->count - 1] != ids[1 + taken]) {
            ++taken;
            break;
        }
    }
    memcpy(s->scores, scores + (taken - 1) * words, words * sizeof *scores);
    w->guessed += guessed, w->hits += taken - 1;
    *came = guessed ? taken - 1 : SIZE_MAX;
    return CLV_OK;
}

/* Writes the text with guesses, whose number of tokens grows as long as the guesses are correct. */
static clv_status write_guessing(writer *w)
{
    const size_t most = w->o.lookup, words = w->s->language->model->config.vocabulary;
    float *scores = clv_alloc((most + 1) * words, sizeof *scores);
    if (!scores) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu scores", words);
    clv_status status = CLV_OK;
    for (size_t now = CLV_MIN(most, (size_t)3); !w->ends && !status;) {
        size_t came = 0;
        status = take_guessed(w, now, scores, &came);
        if (came == SIZE_MAX) continue;
        now = came >= now ? CLV_MIN(2 * now + 1, most) : CLV_MAX(came, (size_t)1);
    }
    clv_free(scores);
    return status;
}

static clv_status write_all(writer *w)
{
    CLV_TRY(begin(w));
    if (w->o.lookup && !w->ends) CLV_TRY(write_guessing(w));
    while (!w->ends) {
        CLV_TRY(clv_sequence_feed(w->s, &w->tokens[w->count - 1], 1, NULL));
        CLV_TRY(take_token(w, w->s->scores));
    }
    return finish(w);
}

/* ---- public functions ------------------------------------------------------------------------------ */

/* Passes the written text and tokens to the caller, even after a failure; returns the status. */
static clv_status hand_out(writer *w, clv_status status, clv_written *written)
{
    if (!status && w->text.failed) status = clv_fail(CLV_E_MEMORY, "not enough memory for a text");
    clv_written all = { .size = written->size,
                        .tokens = w->tokens,
                        .count = w->count,
                        .text = w->text.data,
                        .length = w->text.length,
                        .stop = w->stop,
                        .first_s = w->first_s,
                        .guessed = w->guessed,
                        .hits = w->hits };
    if (w->count && !status) all.rest_s = clv_now() - w->started - w->first_s;
    memcpy(written, &all, CLV_MIN(written->size, sizeof all));
    clv_detokenizer_free(w->detokenizer);
    return status;
}

static clv_status prepare(writer *w, clv_sequence *s, const clv_writing *writing,
                          clv_written *written)
{
    enum { FIRST_SIZE = offsetof(clv_written, guessed) }; /* size of the struct's first version */
    *w = (writer){ .s = s };
    if (!s || !written) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: an argument is NULL");
    if (written->size < FIRST_SIZE)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: start clv_written with CLV_INIT");
    const clv_written none = { .size = written->size };
    memcpy(written, &none, CLV_MIN(written->size, sizeof none));
    CLV_TRY(clv_take_struct(&w->o, sizeof w->o, writing, "clv_sequence_write", "clv_writing"));
    if (w->o.lookup >= CLV_LM_FEW)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: lookup is %zu, expected 0 to %d",
                        w->o.lookup, CLV_LM_FEW - 1);
    if (!s->scored)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: feed the text's tokens first");
    CLV_TRY(clv_detokenizer_create(s->language->model->tokenizer, false, &w->detokenizer));
    clv_text_bytes(&w->text, "", 0);
    return CLV_OK;
}

clv_status clv_sequence_write(clv_sequence *s, const clv_writing *writing, clv_written *written)
{
    writer w;
    CLV_TRY(prepare(&w, s, writing, written));
    return hand_out(&w, write_all(&w), written);
}

/* Draws one token for every text that has not ended, until all have ended. */
static clv_status write_together(writer *all, size_t count, clv_sequence **going, int32_t *ids)
{
    for (size_t i = 0; i < count; ++i) {
        CLV_TRY(begin(&all[i]));
        if (all[i].ends) CLV_TRY(finish(&all[i]));
    }
    for (;;) {
        size_t live = 0;
        for (size_t i = 0; i < count; ++i)
            if (!all[i].ends) going[live] = all[i].s, ids[live++] = all[i].tokens[all[i].count - 1];
        if (!live) return CLV_OK;
        CLV_TRY(clv_sequences_feed(going, live, ids));
        for (size_t i = 0; i < count; ++i) {
            if (all[i].ends) continue;
            CLV_TRY(take_token(&all[i], all[i].s->scores));
            if (all[i].ends) CLV_TRY(finish(&all[i]));
        }
    }
}

clv_status clv_sequences_write(clv_sequence *const *sequences, size_t count,
                               const clv_writing *const *writings, clv_written *const *written)
{
    if (!sequences || !count || !writings || !written)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_sequences_write: an argument is NULL, or there is no text");
    writer *all = clv_zalloc(count, sizeof *all);
    clv_sequence **going = clv_alloc(count, sizeof(clv_sequence *));
    int32_t *ids = clv_alloc(count, sizeof *ids);
    clv_status status = CLV_OK;
    size_t ready = 0;
    if (!all || !going || !ids)
        status =
            clv_fail(CLV_E_MEMORY, "clv_sequences_write: not enough memory for %zu texts", count);
    for (; ready < count && !status; ++ready)
        status = prepare(&all[ready], sequences[ready], writings[ready], written[ready]);
    if (!status) status = write_together(all, count, going, ids);
    for (size_t i = 0; i < ready; ++i)
        if (all[i].detokenizer) (void)hand_out(&all[i], status, written[i]);
    clv_free(all), clv_free(going), clv_free(ids);
    return status;
}

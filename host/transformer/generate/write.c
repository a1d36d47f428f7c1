/* SPDX-License-Identifier: Apache-2.0 */
/* A text that goes on: token after token, its text piece by piece, until something ends it. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"

#include <string.h>

typedef struct writer {
    clv_sequence *s;
    clv_writing o;
    clv_detokenizer *detokenizer;
    clv_text text; /* all of it */
    size_t told;   /* bytes that the caller knows */
    int32_t *tokens;
    size_t count, room;
    bool ends;
    clv_stop stop;
} writer;

static void end(writer *w, clv_stop why)
{
    if (!w->ends) w->stop = why;
    w->ends = true;
}

/* Tells the caller of a token, and of what is there up to `to`. */
static void tell(writer *w, size_t to, int32_t id)
{
    const size_t from = w->told;
    w->told = CLV_MAX(to, from);
    if (w->o.piece && w->o.piece(clv_text_get(&w->text) + from, w->told - from, id, w->o.user))
        end(w, CLV_STOP_CALLER);
}

/* The first stop text from `from` on; SIZE_MAX: none. */
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

/* Bytes at the end of the text with which a stop text may begin. */
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
    if (w->text.failed) return clv_fail(CLV_E_MEMORY, "no memory for a text");
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

/* Draws the next token, and adds what it says. */
static clv_status take_token(writer *w)
{
    const clv_lm_model *m = w->s->language->model;
    static const clv_sampling highest = { .size = sizeof highest };
    const clv_sampling *sampling = w->o.sampling ? w->o.sampling : &highest;
    const char *piece;
    size_t length;
    int32_t id;
    if (!clv_reserve(&w->tokens, &w->room, w->count + 1, sizeof *w->tokens))
        return clv_fail(CLV_E_MEMORY, "no memory for %zu tokens", w->count);
    CLV_TRY(clv_sample(w->s->scores, m->config.vocabulary, sampling, w->s->tokens, w->s->count,
                       w->s->count, &id));
    w->tokens[w->count++] = id;
    if (is_end(w, id)) {
        end(w, CLV_STOP_END);
        return CLV_OK;
    }
    if (clv_tokenizer_piece(m->tokenizer, id)) { /* rows beyond the vocabulary have no text */
        CLV_TRY(clv_detokenizer_add(w->detokenizer, id, &piece, &length));
        CLV_TRY(add_text(w, piece, length, id));
    } else {
        tell(w, w->told, id);
    }
    if (w->count == w->o.tokens) end(w, CLV_STOP_LENGTH);
    if (w->s->count >= w->s->language->room) end(w, CLV_STOP_CONTEXT);
    return CLV_OK;
}

static clv_status write_all(writer *w, double *first_s, double *rest_s)
{
    const double started = clv_now();
    const char *piece;
    size_t length;
    CLV_TRY(take_token(w));
    *first_s = clv_now() - started;
    while (!w->ends) {
        CLV_TRY(clv_sequence_feed(w->s, &w->tokens[w->count - 1], 1, NULL));
        CLV_TRY(take_token(w));
    }
    *rest_s = clv_now() - started - *first_s;
    if (w->stop == CLV_STOP_TEXT) return CLV_OK;
    const int32_t last = w->tokens[w->count - 1];
    CLV_TRY(clv_detokenizer_finish(w->detokenizer, &piece, &length));
    clv_text_bytes(&w->text, piece, length);
    if (w->text.failed) return clv_fail(CLV_E_MEMORY, "no memory for a text");
    if (w->told < w->text.length) tell(w, w->text.length, last);
    return CLV_OK;
}

/* Hands out what was made, also after a failure. */
static clv_status hand_out(writer *w, clv_status status, clv_written *out)
{
    if (!status && w->text.failed) status = clv_fail(CLV_E_MEMORY, "no memory for a text");
    out->tokens = w->tokens, out->count = w->count;
    out->text = w->text.data, out->length = w->text.length;
    out->stop = w->stop;
    clv_detokenizer_free(w->detokenizer);
    return status;
}

clv_status clv_sequence_write(clv_sequence *s, const clv_writing *writing, clv_written *written)
{
    writer w = { .s = s };
    if (!s || !written) return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: a NULL");
    if (written->size < sizeof *written)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: start clv_written with CLV_INIT");
    *written = (clv_written){ .size = sizeof *written };
    CLV_TRY(clv_take_struct(&w.o, sizeof w.o, writing, "clv_sequence_write", "clv_writing"));
    if (!s->scored)
        return clv_fail(CLV_E_ARGUMENT, "clv_sequence_write: feed the text's tokens first");
    CLV_TRY(clv_detokenizer_create(s->language->model->tokenizer, false, &w.detokenizer));
    clv_text_bytes(&w.text, "", 0);
    const clv_status status = write_all(&w, &written->first_s, &written->rest_s);
    return hand_out(&w, status, written);
}

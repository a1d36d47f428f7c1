/* SPDX-License-Identifier: Apache-2.0 */
/* Converts many texts to tokens in ragged rows, with the work shared among threads. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/thread.h"
#include "probe/host/host.h"

#include <string.h>

/* LEAST_BYTES: a thread for fewer bytes is not worth starting */
enum { MAX_THREADS = 64, LEAST_BYTES = 16384 };

typedef struct share {
    const clv_tokenizer *t;
    const char *const *texts;
    const size_t *lengths;
    const unsigned char *marks; /* marks of the bytes of the only text; NULL: none */
    size_t first, last;         /* texts of this share: [first, last) */
    const clv_tokenize_options *options;
    clv_token_rows rows;
    clv_error error;
    bool threaded;
} share;

static size_t length_of(const share *s, size_t i)
{
    return s->lengths ? s->lengths[i] : strlen(s->texts[i]);
}

static bool put_frame(clv_token_rows *rows, const int32_t *ids, size_t count)
{
    bool fits = true;
    for (size_t i = 0; i < count; ++i)
        fits = fits && clv_token_push(rows, ids[i]);
    return fits;
}

/* Removes all but the last `most` of the tokens from number `start` on. */
static void drop_first(clv_token_rows *rows, size_t start, size_t most)
{
    const size_t count = rows->tokens - start;
    if (count <= most) return;
    memmove(rows->ids + start, rows->ids + rows->tokens - most, most * sizeof *rows->ids);
    rows->tokens = start + most;
    rows->truncated += 1;
}

/* Appends the tokens of one text, with the tokens that are put around it. */
static clv_status add_text(const clv_tokenizer *t, const clv_tokenize_options *o, const char *text,
                           const unsigned char *marks, size_t length, clv_token_rows *rows,
                           size_t *bad)
{
    const size_t around = o->bare ? 0 : t->before_count + t->after_count;
    const size_t most = t->max_length == SIZE_MAX ? SIZE_MAX
                        : t->max_length > around  ? t->max_length - around
                                                  : 0;
    if (!o->bare && !put_frame(rows, t->before, t->before_count)) return CLV_E_MEMORY;
    const size_t start = rows->tokens;
    if (t->kind == CLV_TOKENIZER_WORDPIECE) {
        CLV_TRY(clv_wordpiece(t, text, length, t->keep_end ? SIZE_MAX : most, rows, bad));
        drop_first(rows, start, most);
    } else {
        CLV_TRY(clv_bpe_encode(t, text, length, o->literal, marks, rows, bad));
        if (rows->tokens - start > most && !t->keep_end) {
            rows->tokens = start + most;
            ++rows->truncated;
        }
        drop_first(rows, start, most);
    }
    return !o->bare && !put_frame(rows, t->after, t->after_count) ? CLV_E_MEMORY : CLV_OK;
}

static void restart(clv_token_rows *rows)
{
    rows->rows = rows->tokens = rows->truncated = rows->unknown = rows->replaced = 0;
}

static clv_status tokenize_share(share *s)
{
    clv_token_rows *rows = &s->rows;
    const size_t count = s->last - s->first;
    const char *what = s->options->what ? s->options->what : "text";
    if (!clv_reserve(&rows->offsets, &rows->row_room, count + 1, sizeof *rows->offsets))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu rows of tokens", count);
    restart(rows);
    rows->offsets[0] = 0;
    for (size_t i = s->first; i < s->last; ++i) {
        size_t bad = 0;
        const clv_status status =
            add_text(s->t, s->options, s->texts[i], s->marks, length_of(s, i), rows, &bad);
        if (status == CLV_E_FORMAT && bad != SIZE_MAX)
            return clv_fail(status, "%s %zu: byte %zu (0x%02X) is not UTF-8", what,
                            s->options->first + i, bad, (unsigned char)s->texts[i][bad]);
        if (status == CLV_E_FORMAT) return status;
        if (status) return clv_fail(status, "not enough memory for %zu tokens", rows->tokens);
        rows->offsets[++rows->rows] = rows->tokens;
    }
    return CLV_OK;
}

static void *thread_body(void *argument)
{
    share *s = argument;
    const clv_status status = tokenize_share(s);
    if (status) clv_error_take(&s->error, status);
    return NULL;
}

/* Splits the texts into shares of about the same number of bytes. */
static size_t make_shares(const clv_tokenizer *t, const char *const *texts, const size_t *lengths,
                          size_t count, const clv_tokenize_options *options, share *shares)
{
    const share all = {
        .t = t, .texts = texts, .lengths = lengths, .last = count, .options = options
    };
    const size_t threads = options->threads ? options->threads : clv_host_threads("");
    size_t bytes = 0, parts = CLV_MIN(threads, (size_t)MAX_THREADS);
    shares[0] = all;
    if (parts == 1 || count < 2) return 1;
    for (size_t i = 0; i < count; ++i)
        bytes += length_of(&all, i) + 1;
    parts = CLV_MIN(parts, bytes / LEAST_BYTES + 1);
    size_t used = 0, part = 0;
    for (size_t i = 0; i < count; ++i) {
        used += length_of(&all, i) + 1;
        if (part + 1 < parts && used >= bytes / parts * (part + 1)) {
            shares[part].last = i + 1;
            shares[++part] = all;
            shares[part].first = i + 1;
        }
    }
    return part + 1;
}

/* Appends the rows of all other shares to those of the first. */
static clv_status join(share *shares, size_t parts, clv_token_rows *rows)
{
    size_t tokens = 0, count = 0;
    for (size_t i = 0; i < parts; ++i) {
        tokens += shares[i].rows.tokens;
        count += shares[i].rows.rows;
    }
    if (!clv_reserve(&rows->ids, &rows->id_room, tokens, sizeof *rows->ids) ||
        !clv_reserve(&rows->offsets, &rows->row_room, count + 1, sizeof *rows->offsets))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu tokens", tokens);
    for (size_t i = 1; i < parts; ++i) {
        const clv_token_rows *more = &shares[i].rows;
        if (more->tokens)
            memcpy(rows->ids + rows->tokens, more->ids, more->tokens * sizeof *more->ids);
        for (size_t k = 1; k <= more->rows; ++k)
            rows->offsets[rows->rows + k] = rows->tokens + more->offsets[k];
        rows->rows += more->rows;
        rows->tokens += more->tokens;
        rows->truncated += more->truncated;
        rows->unknown += more->unknown;
        rows->replaced += more->replaced;
    }
    return CLV_OK;
}

clv_status clv_tokenize(const clv_tokenizer *t, const char *const *texts, const size_t *lengths,
                        size_t count, const clv_tokenize_options *options, clv_token_rows *rows)
{
    clv_tokenize_options o;
    share shares[MAX_THREADS];
    clv_thread threads[MAX_THREADS];
    if (!rows) return clv_fail(CLV_E_ARGUMENT, "clv_tokenize: rows is NULL");
    restart(rows);
    if (!t || (!texts && count))
        return clv_fail(CLV_E_ARGUMENT, "clv_tokenize: an argument is NULL");
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_tokenize", "clv_tokenize_options"));
    const size_t parts = make_shares(t, texts, lengths, count, &o, shares);
    shares[0].rows = *rows;
    for (size_t i = 1; i < parts; ++i) {
        shares[i].threaded = clv_thread_start(&threads[i], "clv-tokenize", thread_body, &shares[i]);
    }
    thread_body(&shares[0]);
    clv_status status = shares[0].error.status;
    if (status) clv_error_give(&shares[0].error);
    *rows = shares[0].rows;
    /* as without threads, the failure of the first share counts */
    for (size_t i = 1; i < parts; ++i) {
        if (shares[i].threaded)
            pthread_join(threads[i], NULL);
        else
            thread_body(&shares[i]);
        if (!status && shares[i].error.status) status = clv_error_give(&shares[i].error);
    }
    if (!status && parts > 1) status = join(shares, parts, rows);
    for (size_t i = 0; i < parts; ++i) {
        clv_error_clear(&shares[i].error);
        if (i) clv_token_rows_clear(&shares[i].rows);
    }
    if (status) restart(rows);
    return status;
}

clv_status clv_tokenize_marked(const clv_tokenizer *t, const char *text, const unsigned char *marks,
                               size_t length, const clv_tokenize_options *options,
                               clv_token_rows *rows)
{
    clv_tokenize_options o;
    if (!rows) return clv_fail(CLV_E_ARGUMENT, "clv_tokenize_marked: rows is NULL");
    restart(rows);
    if (!t || !text || (!marks && length))
        return clv_fail(CLV_E_ARGUMENT, "clv_tokenize_marked: an argument is NULL");
    if (t->kind == CLV_TOKENIZER_WORDPIECE)
        return clv_fail(CLV_E_ARGUMENT, "clv_tokenize_marked: WordPiece tokenizers have no marks");
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_tokenize_marked", "clv_tokenize_options"));
    share s = { .t = t,
                .texts = &text,
                .lengths = &length,
                .marks = marks,
                .last = 1,
                .options = &o,
                .rows = *rows };
    const clv_status status = tokenize_share(&s);
    *rows = s.rows;
    if (status) restart(rows);
    return status;
}

void clv_token_rows_clear(clv_token_rows *rows)
{
    if (!rows) return;
    clv_free(rows->ids);
    clv_free(rows->offsets);
    *rows = (clv_token_rows){ 0 };
}

void clv_tokenizer_get_info(const clv_tokenizer *t, clv_tokenizer_info *info)
{
    const clv_tokenizer_info all = { .size = sizeof all,
                                     .vocabulary = t->pieces.ids,
                                     .max_length = t->max_length,
                                     .unk = t->unk,
                                     .cls = t->cls,
                                     .sep = t->sep,
                                     .pad = t->pad,
                                     .mask = t->mask,
                                     .lower_case = t->flags.lower,
                                     .kind = t->kind,
                                     .bos = t->bos,
                                     .eos = t->eos,
                                     .adds_bos = t->before_count && t->before[0] == t->bos,
                                     .keeps_end = t->keep_end,
                                     .pairs = t->pairs,
                                     .pair_types = t->pair_types,
                                     .double_pairs = t->double_pairs };
    /* the size of clv_tokenizer_info in version 1 */
    const size_t old = offsetof(clv_tokenizer_info, kind);
    const size_t size = info->size >= sizeof all ? sizeof all : old;
    memcpy(info, &all, size);
    info->size = size;
}

const char *clv_tokenizer_piece(const clv_tokenizer *t, int32_t id)
{
    return t ? clv_pieces_text(&t->pieces, id) : NULL;
}

int32_t clv_tokenizer_find(const clv_tokenizer *t, const char *piece)
{
    return t && piece ? clv_pieces_find(&t->pieces, piece, strlen(piece)) : -1;
}

void clv_tokenizer_discard(clv_tokenizer *t)
{
    clv_pieces_clear(&t->pieces);
    for (size_t i = 0; i < t->special_count; ++i)
        clv_free(t->specials[i].text);
    clv_free(t->specials), clv_free(t->types), clv_free(t->scores), clv_free(t->merges);
    clv_free(t->weights), clv_charsmap_clear(&t->charsmap);
    t->weights = NULL;
    t->specials = NULL, t->types = NULL, t->scores = NULL, t->merges = NULL;
    t->special_count = t->special_room = 0;
}

void clv_tokenizer_close(clv_tokenizer *t)
{
    if (t) clv_tokenizer_discard(t);
    clv_free(t);
}

clv_status clv_tokenizer_prompt_length(const clv_tokenizer *t, const char *prompt, size_t *tokens)
{
    clv_token_rows rows = { 0 };
    if (!t || !prompt || !tokens)
        return clv_fail(CLV_E_ARGUMENT, "clv_tokenizer_prompt_length: an argument is NULL");
    const clv_status status = clv_tokenize(t, &prompt, NULL, 1, NULL, &rows);
    *tokens = rows.tokens > t->after_count ? rows.tokens - t->after_count : 0;
    clv_token_rows_clear(&rows);
    return status;
}

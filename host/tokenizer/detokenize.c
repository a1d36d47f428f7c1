/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tokens to text, token by token. Never returns a part of a character: its bytes are held until it is
 * complete. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

struct clv_detokenizer {
    const clv_tokenizer *t;
    bool keep_control;
    bool begun;    /* some text was appended */
    clv_text held; /* bytes of a character that is not complete yet */
    clv_text out;
};

clv_status clv_detokenizer_create(const clv_tokenizer *t, bool keep_control, clv_detokenizer **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_detokenizer_create: out is NULL");
    *out = NULL;
    if (!t) return clv_fail(CLV_E_ARGUMENT, "clv_detokenizer_create: tokenizer is NULL");
    clv_detokenizer *d = clv_zalloc(1, sizeof *d);
    if (!d) return clv_fail(CLV_E_MEMORY, "clv_detokenizer_create: out of memory");
    d->t = t, d->keep_control = keep_control;
    *out = d;
    return CLV_OK;
}

void clv_detokenizer_free(clv_detokenizer *d)
{
    if (!d) return;
    clv_text_clear(&d->held), clv_text_clear(&d->out);
    clv_free(d);
}

/* ---- the bytes of a token ------------------------------------------------------------------------ */

/* Appends the bytes for which the characters of a piece stand; a piece with any other character is appended
 * unchanged. */
static void add_byte_level(const char *piece, clv_text *out)
{
    const size_t length = strlen(piece), start = out->length;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t c = 0;
        bytes = clv_utf8_decode(piece + at, length - at, &c);
        const int byte = bytes ? clv_char_byte(c) : -1;
        if (byte < 0) {
            out->length = start;
            clv_text_bytes(out, piece, length);
            return;
        }
        const char written = (char)byte;
        clv_text_bytes(out, &written, 1);
    }
}

static void add_marked(const char *piece, bool skip_space, clv_text *out)
{
    const bool space = strncmp(piece, "\xE2\x96\x81", 3) == 0;
    if (skip_space && space) piece += 3;
    while (*piece) {
        const bool mark = strncmp(piece, "\xE2\x96\x81", 3) == 0;
        clv_text_bytes(out, mark ? " " : piece, 1);
        piece += mark ? 3 : 1;
    }
}

/* Appends a piece of WordPiece: "##ing" joins the text before it, other pieces get a space before them. */
static void add_wordpiece(const clv_detokenizer *d, const char *piece, clv_text *out)
{
    const char *mark = d->t->pieces.tail_mark;
    const size_t length = strlen(mark);
    const bool joins = length && strncmp(piece, mark, length) == 0;
    if (d->begun && !joins) clv_text_bytes(out, " ", 1);
    clv_text_bytes(out, piece + (joins ? length : 0), strlen(piece) - (joins ? length : 0));
}

static void add_bytes(clv_detokenizer *d, int32_t id, const char *piece, clv_token_type type)
{
    const clv_tokenizer *t = d->t;
    const size_t before = d->held.length;
    if (type == CLV_TOKEN_CONTROL || type == CLV_TOKEN_UNKNOWN) {
        if (d->keep_control) clv_text_bytes(&d->held, piece, strlen(piece));
    } else if (type == CLV_TOKEN_USER) {
        clv_text_bytes(&d->held, piece, strlen(piece));
    } else if (t->kind == CLV_TOKENIZER_WORDPIECE) {
        add_wordpiece(d, piece, &d->held);
    } else if (t->byte_level) {
        add_byte_level(piece, &d->held);
    } else if (type == CLV_TOKEN_BYTE && strlen(piece) == 6 && id >= 0) {
        const char byte = (char)strtoul(piece + 3, NULL, 16);
        clv_text_bytes(&d->held, &byte, 1);
    } else {
        add_marked(piece, t->strip_first && !d->begun, &d->held);
    }
    if (d->held.length > before || type == CLV_TOKEN_NORMAL) d->begun = true;
}

/* ---- whole characters ---------------------------------------------------------------------------- */

/* Returns whether `text`, which is not a complete character, may be the beginning of one. */
static bool is_beginning(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    return first >= 0xC2 && first <= 0xF4 && length < wanted &&
           clv_utf8_bad(text, length) == length;
}

/* Moves complete characters from `held` to `out`; with `end`, at the end of the text, moves all bytes. */
static void release(clv_detokenizer *d, bool end)
{
    const char *text = clv_text_get(&d->held);
    const size_t length = d->held.length;
    size_t at = 0;
    while (at < length) {
        uint32_t c;
        const size_t bytes = clv_utf8_decode(text + at, length - at, &c);
        if (bytes) {
            clv_text_bytes(&d->out, text + at, bytes);
            at += bytes;
            continue;
        }
        if (!end && is_beginning(text + at, length - at)) break;
        clv_text_bytes(&d->out, "\xEF\xBF\xBD", 3);
        at += clv_utf8_bad(text + at, length - at);
    }
    if (at) memmove(d->held.data, d->held.data + at, length - at);
    d->held.length = length - at;
}

static clv_status give(clv_detokenizer *d, const char **text, size_t *length)
{
    if (d->held.failed || d->out.failed)
        return clv_fail(CLV_E_MEMORY, "clv_detokenizer_add: out of memory");
    *text = clv_text_get(&d->out);
    *length = d->out.length;
    return CLV_OK;
}

clv_status clv_detokenizer_add(clv_detokenizer *d, int32_t id, const char **text, size_t *length)
{
    if (!d || !text || !length)
        return clv_fail(CLV_E_ARGUMENT, "clv_detokenizer_add: an argument is NULL");
    const char *piece = clv_tokenizer_piece(d->t, id);
    clv_text_restart(&d->out);
    *text = "", *length = 0;
    if (!piece)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_detokenizer_add: id %d is not in the vocabulary (0 to %zu)", (int)id,
                        d->t->pieces.ids - 1);
    add_bytes(d, id, piece, clv_tokenizer_type(d->t, id));
    release(d, false);
    return give(d, text, length);
}

clv_status clv_detokenizer_finish(clv_detokenizer *d, const char **text, size_t *length)
{
    if (!d || !text || !length)
        return clv_fail(CLV_E_ARGUMENT, "clv_detokenizer_finish: an argument is NULL");
    clv_text_restart(&d->out);
    release(d, true);
    d->begun = false;
    return give(d, text, length);
}

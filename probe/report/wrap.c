/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lines of at most 80 columns with a hanging indent. Colour sequences do not count as columns. */
#include "probe/report/wrap.h"

#include "base/alloc.h"

#include <string.h>

unsigned clv_columns(const char *text, size_t length)
{
    unsigned columns = 0;
    for (size_t i = 0; i < length; ++i)
        if (((unsigned char)text[i] & 0xC0) != 0x80) ++columns;
    return columns;
}

static void new_line(clv_wrap *wrap, const char *prefix)
{
    clv_text_add(wrap->out, "%s", prefix);
    wrap->column = clv_columns(prefix, strlen(prefix));
    wrap->fresh = true;
}

void clv_wrap_begin(clv_wrap *wrap, clv_text *out, bool colour, const char *first, const char *next)
{
    *wrap = (clv_wrap){ .out = out, .next = next, .colour = colour };
    new_line(wrap, first);
}

static void drop_blanks(clv_text *text)
{
    while (text->length && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
}

static void break_line(clv_wrap *wrap)
{
    drop_blanks(wrap->out);
    clv_text_bytes(wrap->out, "\n", 1);
    new_line(wrap, wrap->next);
}

static void put(clv_wrap *wrap, clv_tint tint, const char *bytes, size_t length)
{
    static const char *const codes[] = { [CLV_BOLD] = "\033[1m",
                                         [CLV_DIM] = "\033[2m",
                                         [CLV_GREEN] = "\033[32m",
                                         [CLV_YELLOW] = "\033[33m",
                                         [CLV_RED] = "\033[31m" };
    const bool tinted = wrap->colour && tint != CLV_PLAIN;
    if (tinted) clv_text_add(wrap->out, "%s", codes[tint]);
    clv_text_bytes(wrap->out, bytes, length);
    if (tinted) clv_text_add(wrap->out, "\033[0m");
    wrap->column += clv_columns(bytes, length);
    wrap->fresh = false;
}

/* Writes one word, preceded by a blank unless it begins the line. */
static void put_word(clv_wrap *wrap, clv_tint tint, const char *word, size_t length)
{
    const unsigned columns = clv_columns(word, length);
    if (!wrap->fresh && wrap->column + 1 + columns > CLV_WRAP_COLUMNS) break_line(wrap);
    if (!wrap->fresh) {
        clv_text_bytes(wrap->out, " ", 1);
        ++wrap->column;
    }
    while (length && wrap->column + clv_columns(word, length) > CLV_WRAP_COLUMNS) {
        size_t part = 0; /* a word longer than a line is cut between characters */
        for (unsigned room = CLV_WRAP_COLUMNS - wrap->column; room > 0 && part < length; --room)
            for (++part; part < length && ((unsigned char)word[part] & 0xC0) == 0x80;)
                ++part;
        put(wrap, tint, word, part);
        break_line(wrap);
        word += part;
        length -= part;
    }
    if (length) put(wrap, tint, word, length);
}

void clv_wrap_words(clv_wrap *wrap, clv_tint tint, const char *format, ...)
{
    clv_text text = { 0 };
    va_list args;
    va_start(args, format);
    clv_text_vadd(&text, format, args);
    va_end(args);
    for (const char *at = clv_text_get(&text); *at;) {
        const size_t blanks = strspn(at, " ");
        const size_t length = strcspn(at + blanks, " ");
        if (length) put_word(wrap, tint, at + blanks, length);
        at += blanks + length;
    }
    if (text.failed) wrap->out->failed = true;
    clv_text_clear(&text);
}

void clv_wrap_piece(clv_wrap *wrap, clv_tint tint, const char *format, ...)
{
    clv_text text = { 0 };
    va_list args;
    va_start(args, format);
    clv_text_vadd(&text, format, args);
    va_end(args);
    if (text.length) put_word(wrap, tint, text.data, text.length);
    if (text.failed) wrap->out->failed = true;
    clv_text_clear(&text);
}

void clv_wrap_column(clv_wrap *wrap, unsigned column)
{
    while (wrap->column + 1 < column) {
        clv_text_bytes(wrap->out, " ", 1);
        ++wrap->column;
    }
}

void clv_wrap_end(clv_wrap *wrap)
{
    drop_blanks(wrap->out);
    clv_text_bytes(wrap->out, "\n", 1);
}

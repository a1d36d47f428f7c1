/* SPDX-License-Identifier: Apache-2.0 */
/* Writes values as text, for {{ }} and as JSON. */
#include "host/chat/value.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTING = 40 };

/* Writes the shortest digits that read back as the same number, as Python does: with a point, and with an exponent only
 * if the number is below 1e-4 or at least 1e16. */
static void put_float(chat_run *run, chat_out *out, double number)
{
    char digits[40];
    int behind = 0; /* digits after the first */
    if (isnan(number) || isinf(number)) {
        chat_put_text(run, out, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
        return;
    }
    for (; behind <= 16; ++behind) {
        double back;
        clv_format(digits, sizeof digits, "%.*e", behind, number);
        if (clv_parse_double(digits, &back) && back == number) break;
    }
    const int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16)
        clv_format(digits, sizeof digits, "%.*f", CLV_MAX(behind - exponent, 1), number);
    chat_put_text(run, out, digits);
}

/* Writes the digits of a whole number; chat_put_text must copy them, since their buffer is local. */
static void put_digits(chat_run *run, chat_out *out, int64_t whole)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, whole);
    chat_put_text(run, out, digits);
}

static void put_quoted(chat_run *run, chat_out *out, chat_string text, bool json)
{
    const bool marked = text.marks != NULL;
    const char *quote =
        json || (memchr(text.data, '\'', text.length) && !memchr(text.data, '"', text.length))
            ? "\""
            : "'";
    chat_put_text(run, out, quote);
    size_t kept = 0;
    for (size_t i = 0; i < text.length; ++i) {
        const unsigned char c = (unsigned char)text.data[i];
        static const char from[] = "\n\r\t\\\b\f", to[] = "nrt\\bf";
        const char *known = c ? memchr(from, c, json ? 6 : 4) : NULL;
        char escape[8] = { '\\', 0 };
        if (c == (unsigned char)*quote)
            escape[1] = *quote;
        else if (known)
            escape[1] = to[known - from];
        else if (c < 32)
            snprintf(escape, sizeof escape, json ? "\\u%04x" : "\\x%02x", c);
        else
            continue;
        chat_put(run, out, chat_part(text, kept, i));
        const unsigned char mark[8] = { marked, marked, marked, marked, marked, marked, marked };
        chat_put(run, out, (chat_string){ escape, mark, strlen(escape) });
        kept = i + 1;
    }
    chat_put(run, out, chat_part(text, kept, text.length));
    chat_put_text(run, out, quote);
}

typedef struct writer {
    chat_run *run;
    chat_out *out;
    bool json;
    int indent, depth; /* indent: spaces per level; < 0: all on one line */
} writer;

static void put_value(writer *w, chat_value v);

static void put_break(writer *w)
{
    if (w->indent < 0) return;
    chat_put_text(w->run, w->out, "\n");
    for (int i = 0; i < w->indent * w->depth; ++i)
        chat_put_text(w->run, w->out, " ");
}

static void put_items(writer *w, const chat_value *items, const chat_pair *pairs, size_t count)
{
    chat_put_text(w->run, w->out, pairs ? "{" : "[");
    ++w->depth;
    for (size_t i = 0; i < count && !w->run->status; ++i) {
        if (i) chat_put_text(w->run, w->out, w->indent < 0 ? ", " : ",");
        put_break(w);
        if (pairs) {
            put_value(w, pairs[i].key);
            chat_put_text(w->run, w->out, ": ");
        }
        put_value(w, pairs ? pairs[i].value : items[i]);
    }
    --w->depth;
    if (count) put_break(w);
    chat_put_text(w->run, w->out, pairs ? "}" : "]");
}

static void put_value(writer *w, chat_value v)
{
    static const chat_pair no_pair;
    const char *const names[2][3] = { { "None", "False", "True" }, { "null", "false", "true" } };
    if (!chat_step(w->run, 0)) return;
    if (w->depth > MOST_NESTING) {
        chat_fail(w->run, CLV_E_SHAPE, "lists nested more than %d deep", MOST_NESTING);
        return;
    }
    switch (v.kind) {
    case CHAT_NONE:
        chat_put_text(w->run, w->out, names[w->json][0]);
        break;
    case CHAT_BOOL:
        chat_put_text(w->run, w->out, names[w->json][1 + v.as.truth]);
        break;
    case CHAT_INT:
        put_digits(w->run, w->out, v.as.whole);
        break;
    case CHAT_FLOAT:
        put_float(w->run, w->out, v.as.number);
        break;
    case CHAT_STRING:
        put_quoted(w->run, w->out, v.as.text, w->json);
        break;
    case CHAT_LIST:
        put_items(w, v.as.list->items, NULL, v.as.list->count);
        break;
    case CHAT_DICT:
        if (!v.as.dict->changes) {
            put_items(w, NULL, v.as.dict->pairs ? v.as.dict->pairs : &no_pair, v.as.dict->count);
            break;
        }
        /* fall through */
    default:
        chat_fail(w->run, CLV_E_UNSUPPORTED, "%s cannot be written", chat_kind_name(v));
    }
}

chat_string chat_written(chat_run *run, chat_value v)
{
    chat_out out = { 0 };
    writer w = { .run = run, .out = &out, .indent = -1 };
    if (v.kind == CHAT_STRING) return v.as.text;
    if (v.kind != CHAT_UNDEFINED) put_value(&w, v);
    return chat_put_end(&out);
}

chat_string chat_json(chat_run *run, chat_value v, int indent)
{
    chat_out out = { 0 };
    writer w = { .run = run, .out = &out, .json = true, .indent = indent };
    put_value(&w, v);
    return chat_put_end(&out);
}

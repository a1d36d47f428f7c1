/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a template into tokens: the text between tags, without the white space that the tags remove, and the names,
 * numbers, strings and operators inside them. Works like Jinja with trim_blocks and lstrip_blocks, the options that
 * transformers uses. */
#include "host/chat/template.h"

#include "base/alloc.h"
#include "base/text.h"
#include "base/unicode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    chat_run *run;
    const char *at, *end;
    chat_token *tokens;
    size_t count, room;
    bool strip_next; /* the last tag, which ends with -%}, removes the white space after it */
    bool trim_next;  /* the last tag removes one line end after it */
} lexer;

static chat_token *add(lexer *x, chat_token_kind kind, const char *start, size_t length)
{
    if (x->count == x->room) {
        const size_t room = CLV_MAX(2 * x->room, (size_t)256);
        chat_token *tokens = chat_take(x->run, room * sizeof *tokens);
        if (!tokens) return NULL;
        if (x->count) memcpy(tokens, x->tokens, x->count * sizeof *tokens);
        x->tokens = tokens, x->room = room;
    }
    x->tokens[x->count] = (chat_token){ kind, x->run->line, start, length, { 0 } };
    return &x->tokens[x->count++];
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void count_lines(lexer *x, const char *from, const char *to)
{
    for (; from < to; ++from)
        x->run->line += *from == '\n';
}

/* ---- text ---------------------------------------------------------------------------------------- */

static bool opens(const char *at, const char *end)
{
    return end - at > 1 && at[0] == '{' && (at[1] == '%' || at[1] == '{' || at[1] == '#');
}

/* Returns the end of the text [from, to) without the blanks before a tag that is the first thing on its line. */
static const char *without_indent(const char *from, const char *to, bool at_start)
{
    const char *p = to;
    while (p > from && (p[-1] == ' ' || p[-1] == '\t'))
        --p;
    return (p == from && at_start) || (p > from && p[-1] == '\n') ? p : to;
}

/* Makes a token of the text up to the next tag, or to the end. */
static void take_text(lexer *x, const char *source)
{
    const char *from = x->at, *to = from;
    while (to < x->end && !opens(to, x->end))
        ++to;
    const char *tag = to;
    count_lines(x, from, tag);
    if (x->strip_next)
        while (from < to && is_space(*from))
            ++from;
    else if (x->trim_next && from < to && *from == '\n')
        ++from;
    const bool moved = from > x->at;
    x->strip_next = x->trim_next = false;
    if (tag < x->end) {
        const char sign = tag + 2 < x->end ? tag[2] : '\0';
        const bool at_start = x->at == source || (moved && from[-1] == '\n');
        if (sign == '-')
            while (to > from && is_space(to[-1]))
                --to;
        else if (tag[1] != '{' && sign != '+')
            to = without_indent(from, to, at_start);
    }
    if (to > from) add(x, CHAT_T_TEXT, from, (size_t)(to - from));
    x->at = tag;
}

/* Sets what the tag that has just ended removes from the text after it. `sign` is the dash or plus before its end, if
 * any; `block` is false for a {{ }} tag. */
static void leave(lexer *x, bool block, char sign)
{
    x->strip_next = sign == '-';
    x->trim_next = block && sign != '-' && sign != '+';
}

static void take_comment(lexer *x)
{
    const char *p = x->at + 2;
    while (x->end - p > 1 && !(p[0] == '#' && p[1] == '}'))
        ++p;
    if (x->end - p < 2) {
        chat_fail(x->run, CLV_E_FORMAT, "a comment without an end");
        return;
    }
    count_lines(x, x->at, p);
    const char sign = p > x->at + 2 ? p[-1] : '\0';
    x->at = p + 2;
    leave(x, true, sign);
}

/* ---- inside tags --------------------------------------------------------------------------------- */

static void take_escape(chat_run *run, chat_out *out, const char **at, const char *end)
{
    static const char from[] = "nrtbfv'\"\\a0", to[] = "\n\r\t\b\f\v'\"\\\a";
    const char c = **at;
    const char *known = c && c != '0' ? strchr(from, c) : NULL;
    char bytes[4];
    if (known) {
        const char byte = to[known - from];
        chat_put(run, out, (chat_string){ &byte, NULL, 1 });
        ++*at;
        return;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits && (size_t)(end - *at) > digits) {
        char hex[9] = { 0 }, *stop;
        memcpy(hex, *at + 1, digits);
        const unsigned long code = strtoul(hex, &stop, 16);
        if (!*stop && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF)) {
            chat_put(run, out,
                     (chat_string){ bytes, NULL, clv_utf8_encode((uint32_t)code, bytes) });
            *at += 1 + digits;
            return;
        }
    }
    chat_put_text(run, out, "\\"); /* keeps an unknown escape, as Python does */
}

static void take_string(lexer *x)
{
    const char quote = *x->at;
    const char *p = x->at + 1, *kept = p;
    chat_out out = { 0 };
    while (p < x->end && *p != quote && !x->run->status) {
        if (*p != '\\' || p + 1 == x->end) {
            ++p;
            continue;
        }
        chat_put(x->run, &out, (chat_string){ kept, NULL, (size_t)(p - kept) });
        ++p;
        take_escape(x->run, &out, &p, x->end);
        kept = p;
    }
    if (p >= x->end) {
        chat_fail(x->run, CLV_E_FORMAT, "a text without an end");
        return;
    }
    chat_put(x->run, &out, (chat_string){ kept, NULL, (size_t)(p - kept) });
    chat_token *t = add(x, CHAT_T_STRING, x->at, (size_t)(p + 1 - x->at));
    if (t) t->value = chat_string_of(chat_put_end(&out));
    count_lines(x, x->at, p);
    x->at = p + 1;
}

static void take_number(lexer *x)
{
    const char *p = x->at;
    char digits[40] = { 0 };
    bool whole = true;
    while (p < x->end && ((*p >= '0' && *p <= '9') || *p == '_'))
        ++p;
    if (x->end - p > 1 && *p == '.' && p[1] >= '0' && p[1] <= '9') {
        whole = false;
        for (++p; p < x->end && *p >= '0' && *p <= '9';)
            ++p;
    }
    if (x->end - p > 1 && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1 + (p[1] == '-' || p[1] == '+');
        if (q < x->end && *q >= '0' && *q <= '9') {
            whole = false;
            for (p = q; p < x->end && *p >= '0' && *p <= '9';)
                ++p;
        }
    }
    size_t used = 0;
    for (const char *q = x->at; q < p && used + 1 < sizeof digits; ++q)
        if (*q != '_') digits[used++] = *q;
    chat_token *t = add(x, CHAT_T_NUMBER, x->at, (size_t)(p - x->at));
    double real = HUGE_VAL; /* the form is right, so a number that cannot be read is too large */
    if (t && !whole) (void)clv_parse_double(digits, &real);
    if (t) t->value = whole ? chat_int(strtoll(digits, NULL, 10)) : chat_float(real);
    x->at = p;
}

static bool is_name(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static void take_sign(lexer *x)
{
    static const char *const twos[] = { "==", "!=", "<=", ">=", "//", "**" };
    for (size_t i = 0; i < CLV_LEN(twos); ++i)
        if (x->end - x->at > 1 && memcmp(x->at, twos[i], 2) == 0) {
            add(x, CHAT_T_SIGN, x->at, 2);
            x->at += 2;
            return;
        }
    if (!*x->at || !strchr("+-*/%~<>=()[]{},:.|", *x->at)) {
        chat_fail(x->run, CLV_E_FORMAT, "the character \"%.1s\" inside a tag", x->at);
        return;
    }
    add(x, CHAT_T_SIGN, x->at++, 1);
}

/* Returns the length of the tag's end if the tag ends here, else 0. *sign is the dash or plus before the end. */
static size_t closes(const lexer *x, char close, char *sign)
{
    const char *p = x->at;
    *sign = p < x->end && (*p == '-' || *p == '+') ? *p++ : '\0';
    return x->end - p > 1 && p[0] == close && p[1] == '}' ? (size_t)(p - x->at) + 2 : 0;
}

/* Makes the tokens inside a tag. Counts open braces, because a dictionary in {{ }} may itself end with "}}". */
static void take_inside(lexer *x, char close)
{
    size_t braces = 0;
    for (;;) {
        char sign;
        while (x->at < x->end && is_space(*x->at))
            x->run->line += *x->at++ == '\n';
        if (x->run->status) return;
        if (x->at >= x->end) {
            chat_fail(x->run, CLV_E_FORMAT, "a tag without an end");
            return;
        }
        const size_t length = braces && close == '}' ? 0 : closes(x, close, &sign);
        if (length) {
            add(x, CHAT_T_END, x->at, length);
            x->at += length;
            leave(x, close == '%', sign);
            return;
        }
        const char c = *x->at;
        if (c == '{') ++braces;
        if (c == '}' && braces) --braces;
        if (c == '\'' || c == '"') {
            take_string(x);
        } else if (c >= '0' && c <= '9') {
            take_number(x);
        } else if (is_name(c)) {
            const char *from = x->at;
            while (x->at < x->end && is_name(*x->at))
                ++x->at;
            add(x, CHAT_T_NAME, from, (size_t)(x->at - from));
        } else {
            take_sign(x);
        }
    }
}

/* Makes a text token of {% raw %} ... {% endraw %}; returns false if the template does not continue with it. */
static bool take_raw(lexer *x)
{
    const chat_token *last = x->count ? &x->tokens[x->count - 1] : NULL;
    if (x->count < 3 || last[-1].kind != CHAT_T_NAME || last[-2].kind != CHAT_T_BEGIN ||
        last[-1].length != 3 || memcmp(last[-1].start, "raw", 3) != 0)
        return false;
    chat_fail(x->run, CLV_E_UNSUPPORTED, "{%% raw %%} is not supported");
    return true;
}

chat_token *chat_tokens(chat_run *run, const char *source)
{
    size_t length = strlen(source);
    /* one line end at the end of the template is dropped */
    if (length && source[length - 1] == '\n') --length;
    lexer x = { .run = run, .at = source, .end = source + length };
    run->line = 1;
    while (x.at < x.end && !run->status) {
        if (!opens(x.at, x.end)) {
            take_text(&x, source);
            continue;
        }
        const char kind = x.at[1];
        x.strip_next = x.trim_next = false;
        if (kind == '#') {
            take_comment(&x);
            continue;
        }
        add(&x, kind == '%' ? CHAT_T_BEGIN : CHAT_T_PRINT, x.at, 2);
        x.at += 2;
        if (x.at < x.end && (*x.at == '-' || *x.at == '+')) ++x.at;
        take_inside(&x, kind == '%' ? '%' : '}');
        if (!run->status && take_raw(&x)) break;
    }
    add(&x, CHAT_T_LAST, x.end, 0);
    return run->status ? NULL : x.tokens;
}

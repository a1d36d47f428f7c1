/* SPDX-License-Identifier: Apache-2.0 */
/* Implements functions on texts, character by character. */
#include "host/chat/calls.h"

#include "base/alloc.h"
#include "base/unicode.h"

#include <string.h>

size_t chat_character_at(chat_string text, size_t at, uint32_t *c)
{
    const size_t bytes = clv_utf8_decode(text.data + at, text.length - at, c);
    if (!bytes) *c = (unsigned char)text.data[at];
    return bytes ? bytes : 1;
}

size_t chat_characters(chat_string text)
{
    size_t count = 0;
    uint32_t c;
    for (size_t at = 0; at < text.length; ++count)
        at += chat_character_at(text, at, &c);
    return count;
}

chat_string chat_character(chat_string text, size_t at, size_t count)
{
    size_t from = 0;
    uint32_t c;
    for (; at && from < text.length; --at)
        from += chat_character_at(text, from, &c);
    size_t to = from;
    for (; count && to < text.length; --count)
        to += chat_character_at(text, to, &c);
    return chat_part(text, from, to);
}

static bool is_stripped(chat_run *run, chat_string character, uint32_t c, chat_value set)
{
    if (set.kind == CHAT_STRING) return chat_contains(run, set, chat_string_of(character));
    return clv_char_is_space(c) || (c >= 0x1C && c <= 0x1F);
}

chat_string chat_strip(chat_run *run, chat_string text, chat_value set, bool left, bool right)
{
    size_t from = 0, to = text.length;
    uint32_t c;
    while (left && from < to) {
        const size_t bytes = chat_character_at(text, from, &c);
        if (!is_stripped(run, chat_part(text, from, from + bytes), c, set)) break;
        from += bytes;
    }
    while (right && to > from) {
        size_t at = to - 1;
        while (at > from && ((unsigned char)text.data[at] & 0xC0) == 0x80)
            --at;
        chat_character_at(text, at, &c);
        if (!is_stripped(run, chat_part(text, at, to), c, set)) break;
        to = at;
    }
    return chat_part(text, from, to);
}

size_t chat_find(chat_string text, size_t at, chat_string part)
{
    for (; at + part.length <= text.length; ++at) {
        const char *first = memchr(text.data + at, part.data[0], text.length - at);
        if (!first) break;
        at = (size_t)(first - text.data);
        if (at + part.length <= text.length && memcmp(first, part.data, part.length) == 0)
            return at;
    }
    return text.length;
}

/* Puts `between` before each character of a text and at its end, `most` times. */
static chat_string spread(chat_run *run, chat_string text, chat_string between, int64_t most)
{
    chat_out out = { 0 };
    uint32_t c;
    for (size_t at = 0; at <= text.length && !run->status; --most) {
        if (!most) {
            chat_put(run, &out, chat_part(text, at, text.length));
            break;
        }
        chat_put(run, &out, between);
        if (at == text.length || !chat_step(run, between.length)) break;
        const size_t bytes = chat_character_at(text, at, &c);
        chat_put(run, &out, chat_part(text, at, at + bytes));
        at += bytes;
    }
    return chat_put_end(&out);
}

chat_string chat_replace(chat_run *run, chat_string text, chat_string from, chat_string to,
                         int64_t most)
{
    chat_out out = { 0 };
    size_t kept = 0;
    if (!chat_step(run, text.length * (1 + from.length / 16))) return text;
    if (!from.length) return spread(run, text, to, most);
    for (size_t at = chat_find(text, 0, from); at < text.length && most && !run->status; --most) {
        chat_put(run, &out, chat_part(text, kept, at));
        chat_put(run, &out, to);
        kept = at + from.length;
        at = chat_find(text, kept, from);
    }
    chat_put(run, &out, chat_part(text, kept, text.length));
    return chat_put_end(&out);
}

/* Changes the case letter by letter, with Unicode's simple case mapping. */
chat_string chat_case(chat_run *run, chat_string text, char to)
{
    chat_out out = { 0 };
    bool begins = true;
    for (size_t at = 0; at < text.length && !run->status;) {
        char bytes[4];
        unsigned char marks[4];
        uint32_t c;
        const size_t step = chat_character_at(text, at, &c);
        const bool upper = to == 'u' || (begins && to != 'l');
        const size_t length = clv_utf8_encode(upper ? clv_char_upper(c) : clv_char_lower(c), bytes);
        memset(marks, text.marks ? text.marks[at] : 0, sizeof marks);
        chat_put(run, &out, (chat_string){ bytes, marks, length });
        if (to == 't') begins = !clv_char_is_letter(c);
        if (to == 'w') begins = clv_char_is_space(c) || (c && c < 128 && strchr("-({[<", (int)c));
        if (to == 'c') begins = false;
        at += step;
    }
    return chat_put_end(&out);
}

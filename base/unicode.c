/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 is coded here; facts come from utf8proc, which only this file includes. */
#include "base/unicode.h"

#include "base/alloc.h"

#include <utf8proc.h>

enum { CLASSES = 256 }; /* canonical combining classes are smaller */

clv_char_class clv_char_classify(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_MN:
        return CLV_CHAR_MARK;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return CLV_CHAR_PUNCTUATION;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
        return CLV_CHAR_CONTROL;
    default:
        return CLV_CHAR_OTHER;
    }
}

bool clv_char_is_letter(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool clv_char_is_number(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool clv_char_is_mark(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool clv_char_is_space(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

size_t clv_char_decompose(uint32_t c, uint32_t out[CLV_DECOMPOSED_MAX])
{
    utf8proc_int32_t parts[CLV_DECOMPOSED_MAX];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)c, parts, CLV_DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > CLV_DECOMPOSED_MAX) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i)
        out[i] = (uint32_t)parts[i];
    return (size_t)count;
}

size_t clv_char_decompose_compat(uint32_t c, uint32_t *out, size_t room)
{
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)c, (utf8proc_int32_t *)out, (utf8proc_ssize_t)room,
        (utf8proc_option_t)(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), &boundary);
    if (count >= 1 && (size_t)count <= room) return (size_t)count;
    out[0] = c;
    return 1;
}

unsigned clv_char_combining(uint32_t c)
{
    return (unsigned)utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

uint32_t clv_char_lower(uint32_t c)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

uint32_t clv_char_upper(uint32_t c)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
}

static int follows(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t clv_utf8_decode(const char *text, size_t length, uint32_t *c)
{
    const unsigned char *t = (const unsigned char *)text;
    if (!length) return 0;
    if (t[0] < 0x80) {
        *c = t[0];
        return 1;
    }
    if (t[0] < 0xC2) return 0; /* a continuation byte, or overlong */
    if (t[0] < 0xE0) {
        if (length < 2 || !follows(t[1])) return 0;
        *c = (uint32_t)(t[0] & 0x1F) << 6 | (t[1] & 0x3F);
        return 2;
    }
    if (t[0] < 0xF0) {
        if (length < 3 || !follows(t[1]) || !follows(t[2])) return 0;
        *c = (uint32_t)(t[0] & 0x0F) << 12 | (uint32_t)(t[1] & 0x3F) << 6 | (t[2] & 0x3F);
        return *c < 0x800 || (*c >= 0xD800 && *c < 0xE000) ? 0 : 3;
    }
    if (t[0] > 0xF4 || length < 4 || !follows(t[1]) || !follows(t[2]) || !follows(t[3])) return 0;
    *c = (uint32_t)(t[0] & 0x07) << 18 | (uint32_t)(t[1] & 0x3F) << 12 |
         (uint32_t)(t[2] & 0x3F) << 6 | (t[3] & 0x3F);
    return *c < 0x10000 || *c > 0x10FFFF ? 0 : 4;
}

size_t clv_utf8_encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

size_t clv_utf8_bad(const char *text, size_t length)
{
    const unsigned char *t = (const unsigned char *)text;
    const unsigned char first = t[0];
    if (first < 0xC2 || first > 0xF4 || length < 2 || !follows(t[1])) return 1;
    if (first < 0xE0) return 1; /* two bytes that fit together are a character */
    if (first < 0xF0) {
        const bool overlong = first == 0xE0 && t[1] < 0xA0;
        return overlong || (first == 0xED && t[1] >= 0xA0) ? 1 : 2;
    }
    if ((first == 0xF0 && t[1] < 0x90) || (first == 0xF4 && t[1] >= 0x90)) return 1;
    return length > 2 && follows(t[2]) ? 3 : 2;
}

/* Sorts a run of combining marks by their class, and keeps the order within a class. It goes class by class, of which
 * there are a few dozen, because runs can be long: utf8proc_map takes time that grows with the square of the length.
 * `sorted` has room for the run. */
static void sort_marks(utf8proc_int32_t *run, size_t count, utf8proc_int32_t *sorted)
{
    unsigned next = CLASSES;
    size_t done = 0;
    for (size_t i = 0; i < count; ++i) {
        const unsigned combining = clv_char_combining((uint32_t)run[i]);
        if (combining < next) next = combining;
    }
    while (next < CLASSES) {
        const unsigned now = next;
        next = CLASSES;
        for (size_t i = 0; i < count; ++i) {
            const unsigned combining = clv_char_combining((uint32_t)run[i]);
            if (combining == now) sorted[done++] = run[i];
            if (combining > now && combining < next) next = combining;
        }
    }
    for (size_t i = 0; i < count; ++i)
        run[i] = sorted[i];
}

static void sort_all_marks(utf8proc_int32_t *c, size_t count, utf8proc_int32_t *sorted)
{
    for (size_t from = 0, to; from < count; from = to) {
        unsigned last = 0, combining;
        bool ordered = true;
        for (to = from; to < count; ++to, last = combining) {
            combining = clv_char_combining((uint32_t)c[to]);
            if (!combining) break;
            ordered = ordered && combining >= last;
        }
        if (!ordered) sort_marks(c + from, to - from, sorted);
        if (to == from) ++to; /* a starter */
    }
}

void clv_utf8_compose(const char *text, size_t length, bool compat, clv_text *out)
{
    const utf8proc_option_t form =
        (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0));
    utf8proc_int32_t *parts = NULL, *sorted = NULL;
    size_t count = 0, room = 0;
    int boundary = 0;
    bool good = true;
    for (size_t at = 0, step; good && at < length; at += step) {
        uint32_t c = 0;
        step = clv_utf8_decode(text + at, length - at, &c);
        good = step && clv_reserve(&parts, &room, count + CLV_COMPAT_MAX, sizeof *parts);
        const utf8proc_ssize_t more =
            good ? utf8proc_decompose_char((utf8proc_int32_t)c, parts + count, CLV_COMPAT_MAX, form,
                                           &boundary)
                 : 0;
        good = good && more >= 0 && more <= CLV_COMPAT_MAX;
        count += good ? (size_t)more : 0;
    }
    if (good && count) good = (sorted = clv_alloc(count, sizeof *sorted)) != NULL;
    if (good && count) {
        sort_all_marks(parts, count, sorted);
        const utf8proc_ssize_t left =
            utf8proc_normalize_utf32(parts, (utf8proc_ssize_t)count, form);
        for (utf8proc_ssize_t i = 0; i < left; ++i) {
            char bytes[4];
            clv_text_bytes(out, bytes, clv_utf8_encode((uint32_t)parts[i], bytes));
        }
        good = left >= 0;
    }
    clv_free(parts), clv_free(sorted);
    out->failed = out->failed || !good;
}

size_t clv_grapheme_length(const char *text, size_t length)
{
    uint32_t left = 0, right = 0;
    utf8proc_int32_t state = 0;
    size_t at = clv_utf8_decode(text, length, &left);
    if (!at) return 1;
    for (size_t bytes; at < length; at += bytes, left = right) {
        bytes = clv_utf8_decode(text + at, length - at, &right);
        if (!bytes || utf8proc_grapheme_break_stateful((utf8proc_int32_t)left,
                                                       (utf8proc_int32_t)right, &state))
            break;
    }
    return at;
}

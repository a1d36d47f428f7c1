/* SPDX-License-Identifier: Apache-2.0 */
/* Makes text from outside (files, names of folders, drivers) fit for a terminal. */
#include "base/visible.h"

#include "base/alloc.h"
#include "base/unicode.h"

#include <string.h>

static bool turns_direction(uint32_t c)
{
    return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

/* Returns the length in bytes of the character at `text`, or 1 if no valid character begins there. *good says whether
 * the bytes may be shown. */
static size_t step(const char *text, size_t length, bool *good)
{
    uint32_t c = 0;
    const size_t bytes = clv_utf8_decode(text, length, &c);
    const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0) ||
                         c == 0x2028 || c == 0x2029;
    *good = bytes && !control && !turns_direction(c);
    return CLV_MAX(bytes, (size_t)1);
}

/* Returns the position of the first byte that may not be shown, or `length` if there is none. */
static size_t first_bad(const char *text, size_t length)
{
    bool good = true;
    for (size_t i = 0, bytes; i < length; i += bytes) {
        bytes = step(text + i, length - i, &good);
        if (!good) return i;
    }
    return length;
}

bool clv_is_visible(const char *text, size_t length)
{
    return first_bad(text, length) == length;
}

void clv_text_visible(clv_text *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        const size_t plain = first_bad(text + i, length - i);
        bool good;
        clv_text_bytes(out, text + i, plain);
        i += plain;
        if (i == length) return;
        for (size_t bytes = step(text + i, length - i, &good); bytes; --bytes, ++i)
            clv_text_add(out, "\\x%02X", (unsigned char)text[i]);
    }
}

void clv_make_visible(char *text, size_t capacity)
{
    const size_t length = strnlen(text, capacity);
    if (clv_is_visible(text, length)) return;
    clv_text copy = { 0 };
    clv_text_visible(&copy, text, length);
    if (copy.failed) { /* no memory for escapes: '?' is shorter, and just as safe */
        for (size_t i = 0; i < length; ++i)
            if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] > 0x7E) text[i] = '?';
    } else {
        clv_copy_string(text, capacity, clv_text_get(&copy));
    }
    clv_text_clear(&copy);
}

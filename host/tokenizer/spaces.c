/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the white space around a position in a text. */
#include "host/tokenizer/tokenizer.h"

#include "base/unicode.h"

size_t clv_spaces_before(const char *text, size_t from, size_t to)
{
    while (to > from) {
        uint32_t c = 0;
        size_t at = to - 1;
        while (at > from && ((unsigned char)text[at] & 0xC0) == 0x80)
            --at;
        if (!clv_utf8_decode(text + at, to - at, &c) || !clv_char_is_space(c)) break;
        to = at;
    }
    return to;
}

size_t clv_spaces_behind(const char *text, size_t at, size_t length)
{
    uint32_t c = 0;
    for (size_t bytes; at < length; at += bytes) {
        bytes = clv_utf8_decode(text + at, length - at, &c);
        if (!bytes || !clv_char_is_space(c)) break;
    }
    return at;
}

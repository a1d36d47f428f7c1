/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the compiled character map of SentencePiece, which tokenizer.json holds as base64. The map consists of the
 * size of a trie in bytes (4 bytes, little endian), the trie, and texts that end with NUL.
 *
 * The trie is a double array (Aoe 1989) of 32-bit units, as Darts-clone writes it. Bits 0 to 7 and 31 are a label. Bit
 * 8 means that a text ends here. Bits 10 to 30 (shifted by 8 if bit 9 is set) lead to the next unit. Where a text ends,
 * bits 0 to 30 of the following unit hold its value, an offset into the texts.
 *
 * The reference implementation first looks up grapheme clusters of fewer than 6 bytes as a whole, and then single
 * characters. It takes the shortest text of the trie with which the cluster begins, and replaces the whole cluster by
 * that text's value. Token ids depend on this, so Cleave does the same. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

enum { SMALL_CLUSTER = 6 };

/* ---- reading -------------------------------------------------------------------------------------- */

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 and sets *bytes to the number of bytes written. Returns false for text that is not base64. */
static bool decode(const char *text, unsigned char *out, size_t *bytes)
{
    const size_t length = strlen(text);
    size_t end = length;
    *bytes = 0;
    if (length % 4) return false;
    while (end && length - end < 2 && text[end - 1] == '=')
        --end;
    uint32_t held = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < end; ++i) {
        const int digit = digit_of(text[i]);
        if (digit < 0) return false;
        held = held << 6 | (uint32_t)digit, bits += 6;
        if (bits >= 8) out[(*bytes)++] = (unsigned char)(held >> (bits -= 8));
    }
    return true;
}

static uint32_t word_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Checks that the map's texts are UTF-8, because replacements are not checked when they are inserted. */
static clv_status check_texts(const clv_charsmap *map, const char *what)
{
    for (size_t at = 0, step; at < map->length; at += step) {
        uint32_t c;
        step = clv_utf8_decode(map->texts + at, map->length - at, &c);
        if (!step)
            return clv_fail(CLV_E_FORMAT,
                            "%s: byte %zu (0x%02X) of the texts of precompiled_charsmap is not "
                            "UTF-8",
                            what, at, (unsigned)(unsigned char)map->texts[at]);
    }
    return CLV_OK;
}

clv_status clv_charsmap_open(clv_charsmap *map, const char *what, const char *base64)
{
    size_t bytes = 0;
    unsigned char *all = clv_alloc(strlen(base64) / 4 * 3 + 4, 1);
    if (!all)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the precompiled_charsmap", what);
    const bool good = decode(base64, all, &bytes);
    const size_t trie = good && bytes >= 4 ? word_at(all) : 0;
    if (!trie || trie % 4 || trie > bytes - 4) {
        clv_free(all);
        return clv_fail(CLV_E_FORMAT,
                        "%s: precompiled_charsmap is %s; expected base64 of a trie and texts", what,
                        good ? "too short for its trie" : "not base64");
    }
    map->count = trie / 4;
    map->length = bytes - 4 - trie;
    map->units = clv_alloc(map->count, sizeof *map->units);
    map->texts = clv_alloc(map->length + 1, 1);
    if (map->units && map->texts) {
        for (size_t i = 0; i < map->count; ++i)
            map->units[i] = word_at(all + 4 + 4 * i);
        memcpy(map->texts, all + 4 + trie, map->length);
        map->texts[map->length] = '\0';
    }
    clv_free(all);
    return map->units && map->texts
               ? check_texts(map, what)
               : clv_fail(CLV_E_MEMORY, "%s: not enough memory for the precompiled_charsmap", what);
}

void clv_charsmap_clear(clv_charsmap *map)
{
    clv_free(map->units), clv_free(map->texts);
    *map = (clv_charsmap){ 0 };
}

/* ---- lookup --------------------------------------------------------------------------------------- */

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* Returns the replacement of the shortest text of the trie with which `text` begins; NULL if there is none. */
static const char *find(const clv_charsmap *map, const char *text, size_t length)
{
    size_t at = offset_of(map->units[0]);
    for (size_t i = 0; i < length && text[i]; ++i) {
        const unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        if (at >= map->count) return NULL;
        const uint32_t unit = map->units[at];
        if ((unit & (1u << 31 | 0xFF)) != byte) return NULL;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        const size_t value = at < map->count ? map->units[at] & 0x7FFFFFFF : SIZE_MAX;
        /* a value that points into the middle of a character would give half of it */
        const bool begins =
            value < map->length && ((unsigned char)map->texts[value] & 0xC0) != 0x80;
        return begins ? map->texts + value : NULL;
    }
    return NULL;
}

void clv_charsmap_apply(const clv_charsmap *map, const char *text, size_t length, clv_text *out)
{
    for (size_t at = 0; at < length;) {
        /* two ASCII characters are a cluster only if they are CR and LF */
        const bool alone = (unsigned char)text[at] < 0x80 && text[at] != '\r' && at + 1 < length &&
                           (unsigned char)text[at + 1] < 0x80;
        const size_t cluster = alone ? 1 : clv_grapheme_length(text + at, length - at);
        const char *whole = cluster < SMALL_CLUSTER ? find(map, text + at, cluster) : NULL;
        if (whole) {
            clv_text_bytes(out, whole, strlen(whole));
            at += cluster;
            continue;
        }
        for (const size_t end = at + cluster; at < end;) {
            uint32_t c;
            size_t bytes = clv_utf8_decode(text + at, end - at, &c);
            if (!bytes) bytes = 1;
            const char *part = find(map, text + at, bytes);
            clv_text_bytes(out, part ? part : text + at, part ? strlen(part) : bytes);
            at += bytes;
        }
    }
}

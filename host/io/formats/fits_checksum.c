/* SPDX-License-Identifier: Apache-2.0 */
/* Computes DATASUM and CHECKSUM of every HDU of a file in memory, according to section 4.4.2.7 and appendix J of the
 * FITS standard: one's-complement sums of big-endian 32-bit words. */
#include "host/io/formats/fits_table.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 2880, CARD = 80, KEY = 10, CODE = 16, CODE_AT = 11 };

static uint32_t add_words(uint32_t sum, const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    uint64_t all = sum;
    for (size_t i = 0; i + 4 <= length; i += 4)
        all += (uint32_t)b[i] << 24 | (uint32_t)b[i + 1] << 16 | (uint32_t)b[i + 2] << 8 | b[i + 3];
    while (all >> 32)
        all = (all & 0xFFFFFFFF) + (all >> 32);
    return (uint32_t)all;
}

/* Writes sixteen letters and digits whose words, rotated by one byte, add up to the complement of the sum. */
static void encode(uint32_t sum, char out[CODE])
{
    const uint32_t value = ~sum;
    char letters[CODE];
    for (int byte = 0; byte < 4; ++byte) {
        const int whole = (int)(value >> (24 - 8 * byte) & 0xFF), quarter = whole / 4 + '0';
        int four[4] = { quarter + whole % 4, quarter, quarter, quarter };
        for (bool again = true; again;) {
            again = false;
            for (int i = 0; i < 4;
                 i += 2) /* punctuation between digits and letters is not allowed */
                while ((four[i] > '9' && four[i] < 'A') || (four[i] > 'Z' && four[i] < 'a') ||
                       (four[i + 1] > '9' && four[i + 1] < 'A') ||
                       (four[i + 1] > 'Z' && four[i + 1] < 'a'))
                    ++four[i], --four[i + 1], again = true;
        }
        for (int i = 0; i < 4; ++i)
            letters[4 * i + byte] = (char)four[i];
    }
    for (int i = 0; i < CODE; ++i)
        out[(i + 1) % CODE] = letters[i];
}

static bool is_key(const char *card, const char *key)
{
    char padded[9];
    snprintf(padded, sizeof padded, "%-8s", key);
    return memcmp(card, padded, 8) == 0;
}

/* Measures a header that this program wrote, at `at`. Returns its length in bytes; *cards is the number of cards before
 * END, *data the length of its data in bytes. Both lengths are whole blocks. */
static size_t measure(const char *at, size_t left, size_t *cards, size_t *data)
{
    size_t bytes = 1, n = 0;
    long bits = 8, axes = 0;
    for (; (n + 1) * CARD <= left && !is_key(at + n * CARD, "END"); ++n) {
        const char *card = at + n * CARD;
        const long value = strtol(card + KEY, NULL, 10);
        if (is_key(card, "BITPIX")) bits = value < 0 ? -value : value;
        if (is_key(card, "NAXIS"))
            axes = value;
        else if (strncmp(card, "NAXIS", 5) == 0)
            bytes *= (size_t)value;
    }
    *cards = n;
    *data = axes ? bytes * (size_t)bits / 8 : 0;
    *data = (*data + BLOCK - 1) / BLOCK * BLOCK;
    return ((n + 1) * CARD + BLOCK - 1) / BLOCK * BLOCK;
}

clv_status clv_fits_table_seal(clv_fits_table *table)
{
    clv_text out = { 0 };
    clv_fits_table_finish(table);
    const char *bytes = clv_text_get(&table->bytes);
    const size_t length = table->bytes.length;
    for (size_t at = 0, cards, data; at < length && !out.failed;) {
        const size_t head = measure(bytes + at, length - at, &cards, &data), start = out.length;
        if (data > length - at - head) data = length - at - head;
        const uint32_t sum = add_words(0, bytes + at + head, data);
        char code[CODE];
        clv_text_bytes(&out, bytes + at, cards * CARD);
        char number[24];
        snprintf(number, sizeof number, "'%lu'", (unsigned long)sum);
        clv_text_add(&out, "DATASUM = %-20s / %-47s", number, "sum of the data unit");
        const size_t place = out.length;
        clv_text_add(&out, "CHECKSUM= '0000000000000000'   / %-47s", "sum of the HDU is -0");
        clv_text_add(&out, "%-80s", "END");
        while ((out.length - start) % BLOCK && !out.failed)
            clv_text_bytes(&out, " ", 1);
        if (out.failed) break;
        encode(add_words(sum, out.data + start, out.length - start), code);
        memcpy(out.data + place + CODE_AT, code, CODE);
        clv_text_bytes(&out, bytes + at + head, data);
        at += head + data;
    }
    if (out.failed) {
        clv_text_clear(&out);
        return clv_fail(CLV_E_MEMORY, "not enough memory for checksums");
    }
    clv_text_clear(&table->bytes);
    table->bytes = out;
    return CLV_OK;
}

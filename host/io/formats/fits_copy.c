/* SPDX-License-Identifier: Apache-2.0 */
/* Copies selected rows of a table from one file into a table of another. */
#include "host/io/formats/fits_copy.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* VALUE: column, from 0, at which the text of a string value begins */
enum { CARD = 80, VALUE = 11 };

void clv_fits_raw_clear(clv_fits_raw *raw)
{
    clv_text_clear(&raw->cards);
    clv_free(raw->bytes);
    *raw = (clv_fits_raw){ 0 };
}

/* Copies the value of a string card, without its quotes and trailing blanks. */
static void value_of(const char *card, char out[CARD])
{
    size_t n = 0;
    if (card[VALUE - 1] == '\'')
        for (const char *c = card + VALUE; c < card + CARD && *c != '\''; ++c)
            out[n++] = *c;
    while (n && out[n - 1] == ' ')
        --n;
    out[n] = '\0';
}

/* Finds the value of the card `key` followed by `number`, such as TFORM3; returns false if there is none. */
static bool find(const clv_fits_raw *raw, const char *key, size_t number, char out[CARD])
{
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%s%zu", key, number);
    const size_t length = strlen(wanted);
    for (size_t at = 0; at + CARD <= raw->cards.length; at += CARD) {
        const char *card = raw->cards.data + at;
        if (strncmp(card, wanted, length) != 0 || (card[length] != ' ' && card[length] != '='))
            continue;
        value_of(card, out);
        return true;
    }
    return false;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && toupper((unsigned char)*a) == toupper((unsigned char)*b))
        ++a, ++b;
    return !*a && !*b;
}

bool clv_fits_raw_column(const clv_fits_raw *raw, const char *name, char *type, unsigned *repeat)
{
    char text[CARD];
    for (size_t i = 1; i <= raw->columns; ++i) {
        if (!find(raw, "TTYPE", i, text) || !same_name(text, name)) continue;
        if (!find(raw, "TFORM", i, text)) return false;
        char *letter = text;
        *repeat = isdigit((unsigned char)*text) ? (unsigned)strtoul(text, &letter, 10) : 1;
        *type = (char)toupper((unsigned char)*letter);
        return true;
    }
    return false;
}

void clv_fits_raw_write(const clv_fits_raw *raw, const char *name, const size_t *rows, size_t count,
                        clv_fits_table *table)
{
    clv_fits_table_head(table, name, raw->width, count, raw->columns, raw->cards.data,
                        raw->cards.length / CARD);
    for (size_t i = 0; i < count; ++i)
        clv_text_bytes(&table->bytes, raw->bytes + rows[i] * raw->width, raw->width);
}

/* ---- cards ------------------------------------------------------------------------------------- */

void clv_fits_hdus_clear(clv_fits_hdus *hdus)
{
    for (size_t i = 0; i < hdus->count; ++i)
        clv_text_clear(&hdus->item[i].cards);
    *hdus = (clv_fits_hdus){ 0 };
}

bool clv_fits_hdu_text(const clv_fits_hdu *hdu, const char *key, char *out, size_t capacity)
{
    char padded[9], value[CARD];
    snprintf(padded, sizeof padded, "%-8.8s", key);
    for (size_t at = 0; at + CARD <= hdu->cards.length; at += CARD) {
        const char *card = hdu->cards.data + at;
        if (memcmp(card, padded, 8) != 0 || card[8] != '=') continue;
        size_t n = 0;
        if (card[VALUE - 1] == '\'') {
            value_of(card, value);
        } else {
            const char *c = card + 9, *const end = card + CARD;
            while (c < end && *c == ' ')
                ++c;
            while (c < end && *c != ' ' && *c != '/')
                value[n++] = *c++;
            value[n] = '\0';
        }
        clv_copy_string(out, capacity, value);
        return value[0] != '\0';
    }
    return false;
}

bool clv_fits_hdu_number(const clv_fits_hdu *hdu, const char *key, double *out)
{
    char text[CARD];
    if (!clv_fits_hdu_text(hdu, key, text, sizeof text)) return false;
    for (char *c = text; *c; ++c)
        if (*c == 'D' || *c == 'd') *c = 'E'; /* Fortran writes the exponent of doubles with D */
    return clv_parse_double(text, out);
}

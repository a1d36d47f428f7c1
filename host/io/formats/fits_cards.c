/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the header cards of a FITS file: copies of an input's cards, and the program's own.
 *
 * The form of a card follows sections 4.1 and 4.2 (fixed format) of the FITS standard 4.0. */
#include "host/io/formats/fits_cards.h"

#include "base/alloc.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARD = 80, KEY = 8, STRING = 68, COMMENT = 72 };

/* Copies the key of a record, which is in its first eight columns. */
static void key_of(const char *record, char out[KEY + 1])
{
    size_t length = strnlen(record, KEY);
    while (length && record[length - 1] == ' ')
        --length;
    memcpy(out, record, length);
    out[length] = '\0';
}

static bool valid_key(const char *key)
{
    const size_t length = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return length > 0 && length <= KEY && key[length] == '\0';
}

static clv_fits_card *find(const clv_fits_cards *cards, const char *key)
{
    char other[KEY + 1];
    for (size_t i = 0; i < cards->count; ++i) {
        key_of(cards->items[i].text, other);
        if (strcmp(key, other) == 0) return &cards->items[i];
    }
    return NULL;
}

static clv_fits_card *append(clv_fits_cards *cards)
{
    if (!clv_reserve(&cards->items, &cards->capacity, cards->count + 1, sizeof *cards->items)) {
        cards->failed = true;
        return NULL;
    }
    return &cards->items[cards->count++];
}

static void fill(clv_fits_card *card, const char *record, unsigned char axis)
{
    size_t length = strnlen(record, CARD);
    while (length && record[length - 1] == ' ')
        --length;
    for (size_t i = 0; i < length; ++i) {
        const unsigned char c = (unsigned char)record[i];
        card->text[i] = c >= 0x20 && c < 0x7F ? (char)c : '?';
    }
    card->text[length] = '\0';
    card->axis = axis;
}

static void set(clv_fits_cards *cards, const char *key, const char *record, unsigned char axis)
{
    clv_fits_card *card = find(cards, key);
    if (!card) card = append(cards);
    if (card) fill(card, record, axis);
}

static void set_value(clv_fits_cards *cards, const char *key, const char *value,
                      const char *comment)
{
    char record[2 * CARD + 1];
    const bool valid = valid_key(key);
    assert(valid);
    (void)valid;
    const int used = snprintf(record, sizeof record, "%-8s= %s", key, value);
    if (comment) snprintf(record + used, sizeof record - (size_t)used, " / %.*s", CARD, comment);
    record[CARD] = '\0';
    set(cards, key, record, 0);
}

void clv_fits_card_int(clv_fits_cards *cards, const char *key, int64_t value, const char *comment)
{
    char text[32];
    snprintf(text, sizeof text, "%20lld", (long long)value);
    set_value(cards, key, text, comment);
}

void clv_fits_card_bool(clv_fits_cards *cards, const char *key, bool value, const char *comment)
{
    char text[32];
    snprintf(text, sizeof text, "%20c", value ? 'T' : 'F');
    set_value(cards, key, text, comment);
}

/* Adds a card with the fewest digits that read back as the same number, with a point or an exponent, in any locale. */
void clv_fits_card_double(clv_fits_cards *cards, const char *key, double value, const char *comment)
{
    char digits[40], text[48] = "                    ";
    if (isfinite(value)) {
        for (int precision = 15; precision <= 17; ++precision) {
            snprintf(digits, sizeof digits, "%.*G", precision, value);
            if (strtod(digits, NULL) == value) break;
        }
        const size_t whole = strspn(digits, "+-0123456789");
        if (digits[whole] == '\0')
            memcpy(digits + whole, ".0", 3);
        else if (digits[whole] != 'E')
            digits[whole] = '.';
        snprintf(text, sizeof text, "%20s", digits);
    }
    set_value(cards, key, text, comment);
}

void clv_fits_card_string(clv_fits_cards *cards, const char *key, const char *value,
                          const char *comment)
{
    char quoted[STRING + 3], text[STRING + 3];
    size_t used = 0;
    quoted[used++] = '\'';
    for (const char *c = value; *c; ++c) {
        /* a quote is written twice, and the two must not be separated */
        const size_t need = *c == '\'' ? 2 : 1;
        if (used + need > STRING + 1) break;
        quoted[used++] = *c;
        if (need == 2) quoted[used++] = '\'';
    }
    while (used < 9)
        quoted[used++] = ' '; /* the closing quote must be in column 20 or later */
    quoted[used++] = '\'';
    quoted[used] = '\0';
    snprintf(text, sizeof text, "%-20s", quoted);
    set_value(cards, key, text, comment);
}

void clv_fits_card_history(clv_fits_cards *cards, const char *text)
{
    char record[CARD + 1];
    do {
        size_t length = strlen(text);
        if (length > COMMENT) { /* breaks the line at a space if there is one */
            length = COMMENT;
            while (length && text[length] != ' ')
                --length;
            if (!length) length = COMMENT;
        }
        snprintf(record, sizeof record, "HISTORY %.*s", (int)length, text);
        clv_fits_card *card = append(cards);
        if (card) fill(card, record, 0);
        text += length;
        while (*text == ' ')
            ++text;
    } while (*text);
}

/* The keys of cards to copy. '#' stands for the number of an axis, '*' for any number. */
static const char *const carried[] = {
    "OBJECT", "TELESCOP", "INSTRUME", "FILTER",  "DATE-OBS", "MJD-OBS", "TIMESYS",  "EQUINOX",
    "EPOCH",  "RADESYS",  "RADECSYS", "LONPOLE", "LATPOLE",  "CTYPE#",  "CRPIX#",   "CRVAL#",
    "CDELT#", "CUNIT#",   "CROTA#",   "CD#_#",   "PC#_#",    "PV#_*",   "PIXSCALE", "BUNIT",
};

static bool matches(const char *key, const char *pattern, unsigned char *axis)
{
    *axis = 0;
    for (; *pattern; ++pattern) {
        if (*pattern != '#' && *pattern != '*') {
            if (*key++ != *pattern) return false;
            continue;
        }
        unsigned number = 0;
        if (!isdigit((unsigned char)*key)) return false;
        for (; isdigit((unsigned char)*key); ++key)
            number = CLV_MIN(number * 10 + (unsigned)(*key - '0'), 255u);
        if (*pattern == '#') *axis = (unsigned char)CLV_MAX(*axis, number);
    }
    return *key == '\0';
}

/* Finds the card whose keyword, everything before the equals sign, is that of `record`. */
static clv_fits_card *find_hierarch(const clv_fits_cards *cards, const char *record)
{
    const size_t length = strcspn(record, "=");
    for (size_t i = 0; i < cards->count; ++i)
        if (strncmp(cards->items[i].text, record, length) == 0) return &cards->items[i];
    return NULL;
}

void clv_fits_card_carry(clv_fits_cards *cards, const char *record)
{
    char key[KEY + 1];
    key_of(record, key);
    if (strncmp(record, "HIERARCH ESO ", 13) ==
        0) { /* ESO's own keywords are longer than eight columns */
        clv_fits_card *card = find_hierarch(cards, record);
        if (!card) card = append(cards);
        if (card) fill(card, record, 0);
        return;
    }
    for (size_t i = 0; i < CLV_LEN(carried); ++i) {
        unsigned char axis;
        if (!matches(key, carried[i], &axis)) continue;
        set(cards, key, record, axis);
        return;
    }
}

void clv_fits_cards_drop_axes(clv_fits_cards *cards)
{
    size_t kept = 0;
    for (size_t i = 0; i < cards->count; ++i)
        if (cards->items[i].axis == 0) cards->items[kept++] = cards->items[i];
    cards->count = kept;
}

bool clv_fits_card_fits(const clv_fits_cards *cards, const clv_fits_card *card, size_t rank)
{
    if (card->axis <= 2) return card->axis <= rank;
    return card->axis == 3 && rank == 3 && cards->rank == 3;
}

const char *clv_fits_card_find(const clv_fits_cards *cards, const char *key)
{
    const clv_fits_card *card = find(cards, key);
    return card ? card->text : NULL;
}

void clv_fits_cards_clear(clv_fits_cards *cards)
{
    clv_free(cards->items);
    *cards = (clv_fits_cards){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks headers before CFITSIO reads them: refuses values that CFITSIO uses without a check, and hides tile-compressed
 * images from it. */
#include "host/io/formats/fits/library.h"

#include "base/error.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum {
    CARD = 80, /* characters */
    KEY = 8,
    VALUE = 10,        /* position of the value in a card of the fixed format */
    MOST_AXES = 99,    /* with more axes CFITSIO 4.2 writes past the end of an array */
    MOST_COLUMNS = 999 /* limit of the FITS standard */
};

/* Copies a card's key as CFITSIO reads it: "HIERARCH NAXIS = 1" has the key NAXIS. Returns the position after the
 * key. */
static const char *name_of(const char *card, char out[KEY + 1])
{
    static const char hierarch[] = "HIERARCH ";
    const char *end = card + CARD, *at = card;
    size_t used = 0;
    if (memcmp(card, hierarch, sizeof hierarch - 1) == 0)
        for (at += sizeof hierarch - 1; at < end && *at == ' ';)
            ++at;
    while (at < end && *at != '=' && *at != ' ' && used < KEY)
        out[used++] = (char)toupper((unsigned char)*at++);
    out[used] = '\0';
    return at;
}

/* Returns the whole number that follows the equals sign at `at`; -1 if the value is not a whole number or has more than
 * 18 digits. */
static int64_t number_of(const char *card, const char *at)
{
    const char *end = card + CARD;
    char digits[20];
    size_t used = 0;
    while (at < end && *at == ' ')
        ++at;
    if (at == end || *at++ != '=') return -1;
    while (at < end && *at == ' ')
        ++at;
    if (at < end && *at == '+') ++at;
    while (at < end && isdigit((unsigned char)*at) && used + 1 < sizeof digits)
        digits[used++] = *at++;
    digits[used] = '\0';
    uint64_t value = 0;
    if ((at < end && *at != ' ' && *at != '/') || !clv_parse_u64(digits, &value)) return -1;
    return used < sizeof digits - 1 ? (int64_t)value : -1;
}

static bool is_true(const char *card, const char *at)
{
    const char *end = card + CARD;
    while (at < end && (*at == ' ' || *at == '='))
        ++at;
    return at < end && *at == 'T';
}

/* Returns whether a card's text value is quoted or missing. Without quotes, CFITSIO 4.2 copies a column's name of 70
 * characters into room for 69. */
static bool has_quotes(const char *card)
{
    for (int i = VALUE - 1; i < CARD; ++i)
        if (card[i] != ' ') return card[i] == '\'' || card[i] == '/';
    return true;
}

static clv_status check_count(const char *path, const char *name, int64_t value, int64_t most)
{
    if (value >= 0 && value <= most) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: a header's %s is %s, but it must be a whole number from 0 to %lld", path,
                    name, value < 0 ? "none" : "larger", (long long)most);
}

/* Records the rank and the first CLV_MAX_RANK axis lengths of a compressed image. */
static void note_tiles(clv_fits_tiles *tiles, const char *name, int64_t value)
{
    if (strcmp(name, "ZNAXIS") == 0) tiles->rank = value;
    if (!clv_starts_with(name, "ZNAXIS") || strlen(name) != 7) return;
    const int axis = name[6] - '1';
    if (axis >= 0 && axis < CLV_MAX_RANK) tiles->axis[axis] = value;
}

clv_status clv_fits_screen_card(const char *path, char *card, clv_fits_tiles *tiles)
{
    char name[KEY + 1];
    const char *behind = name_of(card, name);
    if (strcmp(name, "NAXIS") == 0)
        return check_count(path, name, number_of(card, behind), MOST_AXES);
    if (strcmp(name, "TFIELDS") == 0)
        return check_count(path, name, number_of(card, behind), MOST_COLUMNS);
    if (clv_starts_with(name, "TTYPE") && !has_quotes(card))
        return clv_fail(CLV_E_FORMAT, "%s: the name of a table column is not in quotes", path);
    if (clv_fits_mentions_tiles(card)) tiles->mentioned = true;
    if (strncmp(card, "ZIMAGE ", 7) == 0 && is_true(card, behind)) tiles->found = true;
    if (*name == 'Z') note_tiles(tiles, name, number_of(card, behind));
    return CLV_OK;
}

/* Returns the first ZIMAGE in the card; NULL if there is none. Searches the whole card, because CFITSIO must not find
 * the word as a key in any form. */
static char *find_word(char *card)
{
    static const char word[] = "ZIMAGE";
    for (char *at = card; at + sizeof word - 1 <= card + CARD; ++at) {
        size_t same = 0;
        while (same < sizeof word - 1 && toupper((unsigned char)at[same]) == word[same])
            ++same;
        if (same == sizeof word - 1) return at;
    }
    return NULL;
}

bool clv_fits_mentions_tiles(char *card)
{
    return find_word(card) != NULL;
}

char *clv_fits_hide_tiles(char *card)
{
    char *first = NULL;
    for (char *at; (at = find_word(card)) != NULL; *at = '_')
        if (!first) first = at;
    return first;
}

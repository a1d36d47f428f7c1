/* SPDX-License-Identifier: Apache-2.0 */
/* Header cards of a FITS file: those copied from an input to a result, and a program's own. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_CARDS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv_fits_card {
    char text[81];      /* as in the file, without trailing blanks */
    unsigned char axis; /* largest axis to which a carried card refers (CD1_2: 2), else 0 */
} clv_fits_card;

/* Zero-initialise, add, write, clear. After a failed add `failed` stays true, and clv_fits_write reports it. A key
 * occurs once: adding it again replaces the card. */
typedef struct clv_fits_cards {
    clv_fits_card *items;
    size_t count, capacity;
    size_t rank; /* of the image that the carried cards describe; 0 when there is none */
    bool failed; /* out of memory */
} clv_fits_cards;

/* Adds a card. `key` is up to 8 of A-Z 0-9 - _; `comment` may be NULL. What does not fit 80 columns is cut, what is not
 * ASCII becomes '?'; a number that is not finite becomes a key without a value. */
void clv_fits_card_int(clv_fits_cards *cards, const char *key, int64_t value, const char *comment);
void clv_fits_card_double(clv_fits_cards *cards, const char *key, double value,
                          const char *comment);
void clv_fits_card_bool(clv_fits_cards *cards, const char *key, bool value, const char *comment);
void clv_fits_card_string(clv_fits_cards *cards, const char *key, const char *value,
                          const char *comment);
void clv_fits_card_comment(clv_fits_cards *cards, const char *text); /* as many cards as needed */

void clv_fits_card_history(clv_fits_cards *cards, const char *text);

/* Copies an input's card if it still holds for a result: target, telescope, instrument, time, pixel scale, world
 * coordinates, ESO's HIERARCH keywords, and the unit of the values, which is not that of every result. Others are left
 * out. */
void clv_fits_card_carry(clv_fits_cards *cards, const char *record);

/* Drops the world coordinates: those of another HDU do not hold for the image. */
void clv_fits_cards_drop_axes(clv_fits_cards *cards);

/* Returns whether a card belongs into an image of this rank: world coordinates of axes 1 and 2 always do, those of axis
 * 3 only if they go from a cube to a cube. */
bool clv_fits_card_fits(const clv_fits_cards *cards, const clv_fits_card *card, size_t rank);

/* Returns the card's text, or NULL. */
const char *clv_fits_card_find(const clv_fits_cards *cards, const char *key);

void clv_fits_cards_clear(clv_fits_cards *cards);

#endif

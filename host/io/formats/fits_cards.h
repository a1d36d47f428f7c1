/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the header cards of a FITS file: copies of an input's cards, and the program's own. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_CARDS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv_fits_card {
    char text[81];      /* the card as in the file, without trailing blanks */
    unsigned char axis; /* highest axis that a copied card describes (CD1_2: 2), else 0 */
} clv_fits_card;

/* A list of cards. Zero-initialise; free with clv_fits_cards_clear. If adding a card fails, `failed` stays true, and
 * clv_fits_write reports it. A key occurs once: adding it again replaces the card. */
typedef struct clv_fits_cards {
    clv_fits_card *items;
    size_t count, capacity;
    size_t rank; /* rank of the image that the copied cards describe; 0 if none */
    bool failed; /* out of memory */
} clv_fits_cards;

/* Adds a card. `key` has up to 8 of the characters A-Z 0-9 - _; `comment` may be NULL. Text beyond column 80 is cut,
 * and characters outside ASCII become '?'. A number that is not finite gives a key without a value. */
void clv_fits_card_int(clv_fits_cards *cards, const char *key, int64_t value, const char *comment);
void clv_fits_card_double(clv_fits_cards *cards, const char *key, double value,
                          const char *comment);
void clv_fits_card_bool(clv_fits_cards *cards, const char *key, bool value, const char *comment);
void clv_fits_card_string(clv_fits_cards *cards, const char *key, const char *value,
                          const char *comment);
void clv_fits_card_history(clv_fits_cards *cards, const char *text); /* as many cards as needed */

/* Copies an input's card if it may also hold for a result: target, telescope, instrument, time, pixel scale, world
 * coordinates, ESO's HIERARCH keywords, and the unit of the values (BUNIT), although a result may have another unit.
 * Ignores other cards. */
void clv_fits_card_carry(clv_fits_cards *cards, const char *record);

/* Removes the world coordinates, for instance if they come from another HDU than the image. */
void clv_fits_cards_drop_axes(clv_fits_cards *cards);

/* Returns whether a card belongs into an image of this rank. A card of no axis always does, a card of axis 1 or 2 if
 * the image has that axis, and a card of axis 3 only if the copied cards and this image are both of rank 3. */
bool clv_fits_card_fits(const clv_fits_cards *cards, const clv_fits_card *card, size_t rank);

/* Returns the text of the card with this key; NULL if there is none. */
const char *clv_fits_card_find(const clv_fits_cards *cards, const char *key);

void clv_fits_cards_clear(clv_fits_cards *cards);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a font of 5 x 7 dots. */
#ifndef CLEAVE_HOST_IO_PICTURES_FONT_H
#define CLEAVE_HOST_IO_PICTURES_FONT_H

enum { CLV_FONT_WIDTH = 5, CLV_FONT_HEIGHT = 7, CLV_FONT_FIRST = ' ', CLV_FONT_LAST = '~' };

/* The glyphs of ASCII characters: one byte per row, from the top; the highest of its 5 bits is the left dot. */
extern const unsigned char clv_font[CLV_FONT_LAST - CLV_FONT_FIRST + 1][CLV_FONT_HEIGHT];

#endif

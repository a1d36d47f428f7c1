/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a picture in memory, and functions that draw rectangles, rings and text on it. */
#ifndef CLEAVE_HOST_IO_PICTURES_IMAGE_H
#define CLEAVE_HOST_IO_PICTURES_IMAGE_H

#include <cleave/status.h>

#include <stddef.h>

typedef struct clv_colour {
    unsigned char red, green, blue;
} clv_colour;

/* A picture. Zero-initialise; clv_image_clear frees it. Pixel (x, y) is rgb[3 * (y * width + x)], with y counted from
 * the top; its centre has the coordinates (x, y). Drawing outside the picture has no effect. */
typedef struct clv_image {
    size_t width, height;
    unsigned char *rgb;
} clv_image;

/* Creates a picture filled with `background`. Returns CLV_E_MEMORY, also for sizes beyond any memory; `image` is zero
 * then. */
clv_status clv_image_create(clv_image *image, size_t width, size_t height, clv_colour background);
void clv_image_clear(clv_image *image);

void clv_image_set(clv_image *image, long x, long y, clv_colour colour);
void clv_image_fill(clv_image *image, long x, long y, long width, long height, clv_colour colour);

/* Draws a ring with smooth edges: all pixels within thickness/2 of the circle around (x, y). */
void clv_image_ring(clv_image *image, double x, double y, double radius, double thickness,
                    clv_colour colour);

/* Draws ASCII text. (x, y) is the top left pixel of the first glyph, and `scale` is the size of a dot in pixels. Other
 * bytes appear as '?'. Unless `halo` is NULL, the letters get an outline of this colour. */
void clv_image_text(clv_image *image, long x, long y, int scale, const char *text,
                    clv_colour colour, const clv_colour *halo);
/* in pixels, without a gap after the last glyph */
long clv_text_width(const char *text, int scale);
long clv_text_height(int scale);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A picture in memory, and a few functions that draw on it. */
#ifndef CLEAVE_HOST_IO_PICTURES_IMAGE_H
#define CLEAVE_HOST_IO_PICTURES_IMAGE_H

#include <cleave/status.h>

#include <stddef.h>

typedef struct clv_colour {
    unsigned char red, green, blue;
} clv_colour;

/* Zero-initialise; clear frees it. Pixel (x, y) is rgb[3 * (y * width + x)], y from the top; its centre has the
 * coordinates (x, y). Whatever is drawn outside the picture is clipped. */
typedef struct clv_image {
    size_t width, height;
    unsigned char *rgb;
} clv_image;

/* Creates a picture. Returns CLV_E_MEMORY, also for sizes beyond any memory; `image` is zero then. */
clv_status clv_image_create(clv_image *image, size_t width, size_t height, clv_colour background);
void clv_image_clear(clv_image *image);

void clv_image_set(clv_image *image, long x, long y, clv_colour colour);
void clv_image_fill(clv_image *image, long x, long y, long width, long height, clv_colour colour);

/* Draws a ring with smooth edges: all pixels within thickness/2 of the circle. */
void clv_image_ring(clv_image *image, double x, double y, double radius, double thickness,
                    clv_colour colour);

/* Draws ASCII text; (x, y) is the top left pixel of the first glyph, `scale` the size of a dot. Other bytes show as
 * '?'. `halo`, unless NULL, is first drawn around the letters. */
void clv_image_text(clv_image *image, long x, long y, int scale, const char *text,
                    clv_colour colour, const clv_colour *halo);
long clv_text_width(const char *text, int scale); /* in pixels, without a gap after the last */
long clv_text_height(int scale);

#endif

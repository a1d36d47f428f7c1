/* SPDX-License-Identifier: Apache-2.0 */
/* PNG: the only files that know libpng. Writes pictures and reads frames of movies. */
#ifndef CLEAVE_HOST_IO_PNG_H
#define CLEAVE_HOST_IO_PNG_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes rgb [height][width][3]; the file is complete or absent. Returns CLV_OK, CLV_E_FORMAT (invalid size, built
 * without PNG), CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_png_write_rgb(const char *path, const uint8_t *rgb, size_t width, size_t height);

/* A picture's numbers as they are in the file, without any correction for display. */
typedef struct clv_png_pixels {
    size_t height, width, samples; /* samples: 1 grey, 3 colour; an alpha channel is dropped */
    bool wide;                     /* uint16 in place of uint8 */
    void *data; /* [height][width][samples]; clv_free; NULL: only the sizes were read */
} clv_png_pixels;

/* Reads a picture. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT if it is damaged or uses a palette, whose numbers are not
 * brightness; CLV_E_MEMORY. */
clv_status clv_png_read(const char *path, bool only_sizes, clv_png_pixels *pixels);

#endif

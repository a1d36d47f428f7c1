/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pictures to PNG files and reads frames of movies from them. Only png.c calls libpng. */
#ifndef CLEAVE_HOST_IO_PNG_H
#define CLEAVE_HOST_IO_PNG_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes `rgb` [height][width][3] to a PNG file, which is complete or absent. Returns CLV_OK, CLV_E_FORMAT (invalid
 * size, or Cleave was built without PNG), CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_png_write_rgb(const char *path, const uint8_t *rgb, size_t width, size_t height);

/* A picture's numbers as the file stores them, without any correction for display. */
typedef struct clv_png_pixels {
    /* samples: 1 for grey, 3 for colour; an alpha channel is dropped */
    size_t height, width, samples;
    bool wide; /* the numbers are uint16, else uint8 */
    /* [height][width][samples], freed with clv_free; NULL if only the sizes were read */
    void *data;
} clv_png_pixels;

/* Reads a picture, or with `only_sizes` only its sizes. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT if the file is damaged
 * or uses a palette, whose numbers are not brightness; CLV_E_MEMORY. */
clv_status clv_png_read(const char *path, bool only_sizes, clv_png_pixels *pixels);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* PNG: the one place that knows libpng. Pictures are written, frames of movies are read. */
#ifndef CLEAVE_HOST_IO_PNG_H
#define CLEAVE_HOST_IO_PNG_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* rgb [height][width][3], complete or absent. CLV_E_FORMAT (no such size, built without PNG), CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_png_write_rgb(const char *path, const uint8_t *rgb, size_t width, size_t height);

/* A picture's numbers as they are in the file, without any correction for a screen. */
typedef struct clv_png_pixels {
    size_t height, width, samples; /* samples: 1 grey, 3 colour; what is transparent is left out */
    bool wide;                     /* uint16 in place of uint8 */
    void *data; /* [height][width][samples]; clv_free; NULL: only the sizes were asked for */
} clv_png_pixels;

/* CLV_E_IO; CLV_E_FORMAT: damaged, or a palette, whose numbers are no brightness; CLV_E_MEMORY. */
clv_status clv_png_read(const char *path, bool only_sizes, clv_png_pixels *pixels);

#endif

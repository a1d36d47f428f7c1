/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a map of numbers as a picture: values stretched between robust limits, a colour bar, and marked positions. */
#ifndef CLEAVE_HOST_IO_PICTURES_MAP_H
#define CLEAVE_HOST_IO_PICTURES_MAP_H

#include "host/io/pictures/image.h"

#include <stdbool.h>

/* A circled position. */
typedef struct clv_map_mark {
    double x, y;       /* column and row in the map, (0, 0) is the centre of its first pixel */
    double radius;     /* in pixels of the map; drawn at least large enough to be visible */
    const char *label; /* label beside the circle; may be NULL */
} clv_map_mark;

/* The look of a map. Zero-initialise for the defaults. */
typedef struct clv_map_style {
    const char *title, *unit; /* above the map and above the colour bar; may be NULL */
    /* values at the ends of the colour bar; both 0: percentiles 0.5 and 99.9 */
    double low, high;
    bool up_to_peak;      /* the bar ends at the largest value, not at percentile 99.9 */
    bool first_row_below; /* the first row is at the bottom, as astronomers show images */
    const clv_map_mark *marks;
    size_t mark_count;
    /* draws a cross with an open centre at (star_x, star_y), in pixels of the map like a clv_map_mark */
    bool star;
    double star_x, star_y;
    double ruler; /* length of a bar in the lower left corner, in pixels of the map; 0: none */
    const char *ruler_label; /* label above that bar; may be NULL */
} clv_map_style;

/* Draws `values` [height, width], float32 in C order. Each value becomes a square of whole pixels, so that the
 * picture's longer side has at least 600 pixels. NaN is grey; infinities get the colours at the ends of the colour bar.
 * Returns CLV_OK, CLV_E_MEMORY or CLV_E_ARGUMENT (a side of 0 or more than 30000). Free the image with
 * clv_image_clear. */
clv_status clv_map_draw(const float *values, size_t height, size_t width,
                        const clv_map_style *style, clv_image *image);

/* Returns the colour of a number from 0 to 1 (viridis); other numbers are clamped, NaN is grey. */
clv_colour clv_map_colour(double value);

#endif

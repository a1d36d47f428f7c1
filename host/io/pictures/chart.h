/* SPDX-License-Identifier: Apache-2.0 */
/* Draws curves over two numbered axes as a picture. */
#ifndef CLEAVE_HOST_IO_PICTURES_CHART_H
#define CLEAVE_HOST_IO_PICTURES_CHART_H

#include "host/io/pictures/image.h"

#include <stdbool.h>

/* A curve: points in ascending order of x. Values that are not finite, or beyond 1e300, leave a gap. */
typedef struct clv_chart_curve {
    const double *x, *y;
    const double *low, *high; /* limits of the shaded band or the error bars; NULL: none */
    size_t count;
    const char *name; /* the curve's name in the legend; NULL: none */
    clv_colour colour;
    bool points; /* draws rings with error bars in place of a line with a band */
} clv_chart_curve;

/* The look of a chart. Zero-initialise for the defaults. */
typedef struct clv_chart_style {
    const char *title, *x_name, *y_name; /* with their units; may be NULL */
    bool y_down;                         /* y grows downwards, as for magnitudes */
    bool y_powers;    /* y values are base-10 logarithms: the axis labels are powers of ten */
    bool x_powers;    /* the same for x */
    bool legend_left; /* the legend is on the left, not on the right */
} clv_chart_style;

/* Draws at most 16 curves in a picture of 1000 x 640 pixels. Returns CLV_OK, CLV_E_MEMORY or CLV_E_ARGUMENT (more
 * curves). Free the image with clv_image_clear. */
clv_status clv_chart_draw(const clv_chart_curve *curves, size_t count, const clv_chart_style *style,
                          clv_image *image);

#endif

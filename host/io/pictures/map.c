/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a map of numbers as a picture: values stretched between robust limits, a colour bar, and marked positions. */
#include "host/io/pictures/map.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_SIDE = 600,   /* pixels of the map's longer side in the picture */
    MAX_SIDE = 30000, /* pixels; a map of this side is a picture of 2.7 GB */
    MARGIN = 16,
    BAR_WIDTH = 20,
    TICK = 6, /* the dash beside a number */
    MAX_TICKS = 12,
    TEXT = 2,              /* pixels per dot */
    MAX_SAMPLES = 1 << 20, /* values from which percentiles are computed */
};

static const clv_colour paper = { 255, 255, 255 }, ink = { 32, 32, 32 };
static const clv_colour ring_colour = { 255, 255, 255 }, ring_halo = { 0, 0, 0 };
static const clv_colour no_value = { 150, 150, 150 }; /* grey, a colour that no number has */

/* Every eighth of the 256 values of "viridis" by N. Smith and S. van der Walt, published with Matplotlib 1.5 under CC0.
 * Linear interpolation between these values is within 2 of 255 of the original. */
static const clv_colour viridis[] = {
    { 68, 1, 84 },    { 71, 13, 96 },   { 72, 24, 106 },  { 72, 35, 116 },  { 71, 45, 123 },
    { 69, 54, 129 },  { 66, 64, 134 },  { 63, 73, 137 },  { 59, 82, 139 },  { 55, 90, 141 },
    { 51, 99, 141 },  { 47, 106, 142 }, { 44, 114, 142 }, { 41, 122, 142 }, { 38, 129, 142 },
    { 35, 137, 142 }, { 33, 144, 140 }, { 31, 152, 139 }, { 31, 159, 136 }, { 33, 166, 133 },
    { 40, 174, 128 }, { 49, 181, 123 }, { 62, 188, 116 }, { 76, 194, 108 }, { 93, 201, 99 },
    { 110, 206, 88 }, { 130, 211, 76 }, { 150, 216, 63 }, { 171, 220, 50 }, { 192, 223, 36 },
    { 213, 226, 26 }, { 234, 229, 26 }, { 253, 231, 37 },
};

clv_colour clv_map_colour(double value)
{
    if (isnan(value)) return no_value;
    const double at = fmin(fmax(value, 0), 1) * (double)(CLV_LEN(viridis) - 1);
    const size_t below = CLV_MIN((size_t)at, CLV_LEN(viridis) - 2);
    const double part = at - (double)below;
    const clv_colour a = viridis[below], b = viridis[below + 1];
    return (clv_colour){ (unsigned char)lround(a.red + part * (b.red - a.red)),
                         (unsigned char)lround(a.green + part * (b.green - a.green)),
                         (unsigned char)lround(a.blue + part * (b.blue - a.blue)) };
}

/* ---- stretch ------------------------------------------------------------------------------- */

typedef struct interval {
    double low, high;
} interval;

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Collects at most MAX_SAMPLES finite values, equally spaced in `values`, and sorts them in ascending order. */
static clv_status sorted_sample(const float *values, size_t count, float **sample, size_t *used)
{
    const size_t step = (count + MAX_SAMPLES - 1) / MAX_SAMPLES;
    *used = 0;
    *sample = clv_alloc(count / step + 1, sizeof **sample);
    if (!*sample) return clv_fail(CLV_E_MEMORY, "not enough memory for the percentiles of a map");
    for (size_t i = 0; i < count; i += step)
        if (isfinite(values[i])) (*sample)[(*used)++] = values[i];
    qsort(*sample, *used, sizeof **sample, ascending);
    return CLV_OK;
}

/* Returns the largest finite value, but at least `floor`. */
static double peak_of(const float *values, size_t count, double floor)
{
    double peak = floor;
    for (size_t i = 0; i < count; ++i)
        if (isfinite(values[i])) peak = fmax(peak, (double)values[i]);
    return peak;
}

static clv_status find_range(const float *values, size_t count, const clv_map_style *style,
                             interval *out)
{
    *out = (interval){ style->low, style->high };
    if (style->low == 0 && style->high == 0) {
        float *sample;
        size_t used;
        CLV_TRY(sorted_sample(values, count, &sample, &used));
        if (used) {
            out->low = sample[(size_t)(0.005 * (double)(used - 1))];
            out->high = sample[(size_t)ceil(0.999 * (double)(used - 1))];
            if (style->up_to_peak) out->high = peak_of(values, count, out->high);
        }
        clv_free(sample);
    }
    if (!(out->high > out->low)) { /* all values are equal, or none is finite */
        const double half = fmax(fabs(out->low) * 0.01, 0.5);
        *out = (interval){ out->low - half, out->low + half };
    }
    return CLV_OK;
}

/* ---- parts of the picture ------------------------------------------------------------------ */

typedef struct layout {
    long left, top, width, height; /* the map's rectangle in the picture, in pixels */
    long zoom;                     /* picture pixels per map pixel */
} layout;

static void draw_pixels(clv_image *image, const layout *at, const float *values, size_t height,
                        size_t width, const clv_map_style *style, interval range)
{
    for (size_t y = 0; y < height; ++y) {
        const size_t row = style->first_row_below ? height - 1 - y : y;
        for (size_t x = 0; x < width; ++x) {
            const double value = values[row * width + x];
            const clv_colour colour =
                clv_map_colour((value - range.low) / (range.high - range.low));
            clv_image_fill(image, at->left + (long)x * at->zoom, at->top + (long)y * at->zoom,
                           at->zoom, at->zoom, colour);
        }
    }
}

static void draw_frame(clv_image *image, long x, long y, long width, long height)
{
    clv_image_fill(image, x - 1, y - 1, width + 2, 1, ink);
    clv_image_fill(image, x - 1, y + height, width + 2, 1, ink);
    clv_image_fill(image, x - 1, y, 1, height, ink);
    clv_image_fill(image, x + width, y, 1, height, ink);
}

/* The labels beside the colour bar. */
typedef struct bar_scale {
    struct {
        double value;
        char text[24];
    } ticks[MAX_TICKS];
    size_t count;
    long width; /* width of the widest text, in pixels */
} bar_scale;

/* Returns a step of 1, 2 or 5 times a power of ten that divides `span` into 4 to 10 parts. */
static double nice_step(double span)
{
    const double power = pow(10, floor(log10(span / 4)));
    const double times = span / 4 / power;
    return power * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}

static void find_ticks(interval range, bar_scale *out)
{
    const double span = range.high - range.low, step = nice_step(span);
    const double most = fmax(fabs(range.low), fabs(range.high));
    const int fine = (int)floor(log10(step) + 1e-9), coarse = (int)floor(log10(most));
    const bool plain = most < 1e6 && fine >= -4;
    *out = (bar_scale){ 0 };
    for (double tick = ceil(range.low / step - 1e-9); out->count < MAX_TICKS; ++tick) {
        const double value = fabs(tick) < 0.5 ? 0 : tick * step; /* avoids "-0" */
        if (value > range.high + span * 1e-9) break;
        char *text = out->ticks[out->count].text;
        /* Chooses as many digits as neighbouring ticks require to differ. */
        if (value == 0)
            snprintf(text, 24, "0");
        else if (plain)
            clv_format(text, 24, "%.*f", CLV_MAX(-fine, 0), value);
        else
            clv_format(text, 24, "%.*e", CLV_MIN(CLV_MAX(coarse - fine, 0), 12), value);
        out->ticks[out->count++].value = value;
        out->width = CLV_MAX(out->width, clv_text_width(text, TEXT));
    }
}

static void draw_bar(clv_image *image, long x, const layout *at, interval range,
                     const bar_scale *scale, const char *unit)
{
    const double height = (double)at->height;
    for (long y = 0; y < at->height; ++y)
        clv_image_fill(image, x, at->top + y, BAR_WIDTH, 1,
                       clv_map_colour(1 - ((double)y + 0.5) / height));
    draw_frame(image, x, at->top, BAR_WIDTH, at->height);
    for (size_t i = 0; i < scale->count; ++i) {
        const double part = (scale->ticks[i].value - range.low) / (range.high - range.low);
        const long y = at->top + lround((1 - part) * (height - 1));
        clv_image_fill(image, x + BAR_WIDTH, y, TICK, 1, ink);
        clv_image_text(image, x + BAR_WIDTH + TICK + 5, y - clv_text_height(TEXT) / 2, TEXT,
                       scale->ticks[i].text, ink, NULL);
    }
    if (unit) clv_image_text(image, x, at->top - clv_text_height(TEXT) - 8, TEXT, unit, ink, NULL);
}

/* Draws the title, cut where it would run into the unit above the colour bar. */
static void draw_title(clv_image *image, const layout *at, const char *title)
{
    char text[256];
    clv_copy_string(text, sizeof text, title);
    while (*text && clv_text_width(text, TEXT) > at->width)
        text[strlen(text) - 1] = '\0';
    clv_image_text(image, at->left, at->top - clv_text_height(TEXT) - 8, TEXT, text, ink, NULL);
}

static void draw_mark(clv_image *image, const layout *at, size_t rows, const clv_map_mark *mark,
                      bool first_row_below)
{
    const double zoom = (double)at->zoom, half = (zoom - 1) / 2;
    const double row = first_row_below ? (double)rows - 1 - mark->y : mark->y;
    const double x = (double)at->left + mark->x * zoom + half;
    const double y = (double)at->top + row * zoom + half;
    const double radius = fmax(mark->radius * zoom, 7);
    if (!(x > -1e6 && x < 1e6 && y > -1e6 && y < 1e6)) return;
    clv_image_ring(image, x, y, radius, 4, ring_halo);
    clv_image_ring(image, x, y, radius, 2, ring_colour);
    if (!mark->label) return;

    /* The label is right of the circle, or left of it if the map ends there. */
    const long gap = lround(radius) + 7, width = clv_text_width(mark->label, TEXT);
    long text = lround(x) + gap;
    if (text + width > at->left + at->width - 3) text = lround(x) - gap - width;
    clv_image_text(image, text, lround(y) - clv_text_height(TEXT) / 2, TEXT, mark->label,
                   ring_colour, &ring_halo);
}

/* Draws four arms around the star, so that its own pixel stays visible: a dark outline below, bright lines above. */
static void draw_star(clv_image *image, const layout *at, size_t rows, const clv_map_style *style)
{
    enum { GAP = 4, ARM = 9 };
    const double zoom = (double)at->zoom, half = (zoom - 1) / 2;
    const double row = style->first_row_below ? (double)rows - 1 - style->star_y : style->star_y;
    const double px = (double)at->left + style->star_x * zoom + half,
                 py = (double)at->top + row * zoom + half;
    if (!(px > -1e6 && px < 1e6 && py > -1e6 && py < 1e6)) return;
    const long x = lround(px), y = lround(py);
    for (int edge = 1; edge >= 0; --edge) { /* draws the outline first */
        const clv_colour colour = edge ? ring_halo : ring_colour;
        const long thick = 2 + 2 * edge, longer = ARM + 2 * edge;
        clv_image_fill(image, x + GAP - edge, y - thick / 2, longer, thick, colour);
        clv_image_fill(image, x - GAP + edge - longer, y - thick / 2, longer, thick, colour);
        clv_image_fill(image, x - thick / 2, y + GAP - edge, thick, longer, colour);
        clv_image_fill(image, x - thick / 2, y - GAP + edge - longer, thick, longer, colour);
    }
}

static void draw_ruler(clv_image *image, const layout *at, const clv_map_style *style)
{
    enum { INSET = 14, THICK = 3 };
    const double length = style->ruler * (double)at->zoom;
    if (!(length >= 1 && length <= (double)(at->width - 2 * INSET))) return;
    const long x = at->left + INSET, y = at->top + at->height - INSET - THICK;
    clv_image_fill(image, x - 1, y - 1, lround(length) + 2, THICK + 2, ring_halo);
    clv_image_fill(image, x, y, lround(length), THICK, ring_colour);
    if (style->ruler_label)
        clv_image_text(image, x, y - clv_text_height(TEXT) - 6, TEXT, style->ruler_label,
                       ring_colour, &ring_halo);
}

clv_status clv_map_draw(const float *values, size_t height, size_t width,
                        const clv_map_style *style, clv_image *image)
{
    interval range;
    *image = (clv_image){ 0 };
    if (!height || !width || height > MAX_SIDE || width > MAX_SIDE)
        return clv_fail(CLV_E_ARGUMENT,
                        "a map of %zu x %zu pixels cannot be drawn; its sides must be 1 to %d",
                        height, width, MAX_SIDE);
    CLV_TRY(find_range(values, height * width, style, &range));

    bar_scale scale;
    find_ticks(range, &scale);
    const size_t side = CLV_MAX(height, width);
    const long zoom = side < MIN_SIDE ? (long)((MIN_SIDE + side - 1) / side) : 1;
    const long top = style->title || style->unit ? clv_text_height(TEXT) + 18 : MARGIN;
    const layout at = { MARGIN, top, (long)width * zoom, (long)height * zoom, zoom };
    const long bar = at.left + at.width + MARGIN;
    const long unit = style->unit ? clv_text_width(style->unit, TEXT) : 0;
    const long right = bar + CLV_MAX(BAR_WIDTH + TICK + 5 + scale.width, unit) + MARGIN;
    CLV_TRY(clv_image_create(image, (size_t)right, (size_t)(at.top + at.height + MARGIN), paper));

    draw_pixels(image, &at, values, height, width, style, range);
    draw_frame(image, at.left, at.top, at.width, at.height);
    draw_bar(image, bar, &at, range, &scale, style->unit);
    if (style->title) draw_title(image, &at, style->title);
    for (size_t i = 0; i < style->mark_count; ++i)
        draw_mark(image, &at, height, &style->marks[i], style->first_row_below);
    if (style->star) draw_star(image, &at, height, style);
    if (style->ruler > 0) draw_ruler(image, &at, style);
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Plots how many spots of a frame lie how far above the noise, which shows whether the threshold lies in
 * the valley between noise and spots. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/pictures/png.h"

#include <math.h>
#include <stdio.h>

static const clv_colour ink = { 40, 40, 40 }, paper = { 255, 255, 255 }, grid = { 225, 225, 225 };
static const clv_colour below = { 170, 170, 170 }, above = { 230, 120, 40 }, line = { 200, 30, 30 };

enum { WIDTH = 760, HEIGHT = 440, LEFT = 70, RIGHT = 20, TOP = 50, BOTTOM = 60 };

/* The bins have equal ratios, from BLOBS_FAINTEST to BLOBS_BRIGHTEST times the noise. */
double blobs_histogram_edge(size_t i)
{
    return BLOBS_FAINTEST * pow((double)BLOBS_BRIGHTEST / BLOBS_FAINTEST, (double)i / BLOBS_BINS);
}

static long column_of(double times)
{
    const double part = log(times / BLOBS_FAINTEST) / log((double)BLOBS_BRIGHTEST / BLOBS_FAINTEST);
    return LEFT + lround(fmin(fmax(part, 0), 1) * (WIDTH - LEFT - RIGHT));
}

static long row_of(double count, double most)
{
    const double part = log10(1 + count) / log10(1 + most);
    return HEIGHT - BOTTOM - lround(part * (HEIGHT - TOP - BOTTOM));
}

static void draw_axes(clv_image *image, double most)
{
    static const double ticks[] = { 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 70, 100 };
    char text[40];
    for (double n = 1; n <= most; n *= 10) {
        const long y = row_of(n, most);
        clv_image_fill(image, LEFT, y, WIDTH - LEFT - RIGHT, 1, grid);
        snprintf(text, sizeof text, "%.0f", n);
        clv_image_text(image, LEFT - 8 - clv_text_width(text, 1), y - clv_text_height(1) / 2, 1,
                       text, ink, NULL);
    }
    for (size_t i = 0; i < CLV_LEN(ticks); ++i) {
        const long x = column_of(ticks[i]);
        clv_image_fill(image, x, HEIGHT - BOTTOM, 1, 5, ink);
        snprintf(text, sizeof text, "%g", ticks[i]);
        clv_image_text(image, x - clv_text_width(text, 1) / 2, HEIGHT - BOTTOM + 10, 1, text, ink,
                       NULL);
    }
    clv_image_fill(image, LEFT, HEIGHT - BOTTOM, WIDTH - LEFT - RIGHT, 1, ink);
    static const char name[] = "response, in times the noise";
    clv_image_text(image, (WIDTH - clv_text_width(name, 1)) / 2, HEIGHT - 24, 1, name, ink, NULL);
    clv_image_text(image, 12, TOP - 20, 1, "spots", ink, NULL);
}

clv_status blobs_histogram_draw(const size_t *counts, double threshold, const char *title,
                                const char *path)
{
    clv_image image = { 0 };
    double most = 9;
    char text[40];
    for (size_t i = 0; i < BLOBS_BINS; ++i)
        most = fmax(most, (double)counts[i]);
    CLV_TRY(clv_image_create(&image, WIDTH, HEIGHT, paper));
    draw_axes(&image, most);
    for (size_t i = 0; i < BLOBS_BINS; ++i) {
        const double from = blobs_histogram_edge(i), to = blobs_histogram_edge(i + 1);
        const long x = column_of(from), y = row_of((double)counts[i], most);
        clv_image_fill(&image, x + 1, y, column_of(to) - x - 1, HEIGHT - BOTTOM - y,
                       sqrt(from * to) > threshold ? above : below);
    }
    const long at = column_of(threshold);
    clv_image_fill(&image, at - 1, TOP - 6, 2, HEIGHT - TOP - BOTTOM + 6, line);
    snprintf(text, sizeof text, "threshold %g", threshold);
    clv_image_text(&image, at + 6, TOP - 6, 1, text, line, &paper);
    clv_image_text(&image, LEFT, 12, 2, title, ink, NULL);
    const clv_status status = clv_png_write(path, &image);
    clv_image_clear(&image);
    return status;
}

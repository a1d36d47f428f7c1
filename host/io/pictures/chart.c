/* SPDX-License-Identifier: Apache-2.0 */
/* Draws curves over two axes as a picture: axes with round numbers, a grid, bands, points with error bars, a legend. */
#include "host/io/pictures/chart.h"

#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 1000,
    HEIGHT = 640,
    LEFT = 110,
    RIGHT = 30,
    TOP = 50,
    BOTTOM = 70,
    SCALE = 2,
    MOST_CURVES = 16
};

static const clv_colour white = { 255, 255, 255 }, ink = { 40, 40, 40 },
                        grid_colour = { 225, 225, 225 };

typedef struct axis {
    double low, high, step;
} axis;

typedef struct plot {
    clv_image *image;
    axis x, y;
    bool down;
} plot;

/* Makes an axis with round numbers that spans the data from `low` to `high`: about six steps of 1, 2 or 5 times a power
 * of ten, each of at least `least_step`. */
static axis make_axis(double low, double high, double least_step)
{
    if (!(low <= high)) low = 0, high = 1;
    if (!(high - low > 1e-300)) {
        const double half = fmax(0.5, 1e-6 * fabs(low)); /* 0.5 beside 1e17 is the same number */
        low -= half, high += half;
    }
    const double rough = fmax((high - low) / 6, least_step), power = pow(10, floor(log10(rough))),
                 digit = rough / power;
    axis a = { .step = power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10) };
    a.low = floor(low / a.step + 1e-9) * a.step, a.high = ceil(high / a.step - 1e-9) * a.step;
    return a;
}

/* Returns whether a value has a place on its axis; beyond 1e300 the length of an axis would overflow. */
static bool is_shown(double value)
{
    return fabs(value) <= 1e300;
}

static double across(const plot *p, double x)
{
    return LEFT + (x - p->x.low) / (p->x.high - p->x.low) * (WIDTH - LEFT - RIGHT);
}

static double along(const plot *p, double y)
{
    const double t = (y - p->y.low) / (p->y.high - p->y.low);
    return TOP + (p->down ? t : 1 - t) * (HEIGHT - TOP - BOTTOM);
}

static clv_colour mixed(clv_colour a, clv_colour b, double t)
{
    return (clv_colour){ (unsigned char)(a.red + t * (b.red - a.red)),
                         (unsigned char)(a.green + t * (b.green - a.green)),
                         (unsigned char)(a.blue + t * (b.blue - a.blue)) };
}

/* Draws a line two pixels thick. */
static void segment(clv_image *image, double x0, double y0, double x1, double y1, clv_colour colour)
{
    const int steps = (int)ceil(2 * fmax(fabs(x1 - x0), fabs(y1 - y0))) + 1;
    for (int i = 0; i <= steps; ++i) {
        const double t = (double)i / steps;
        clv_image_fill(image, lround(x0 + t * (x1 - x0)), lround(y0 + t * (y1 - y0)), 2, 2, colour);
    }
}

static void number(double value, bool powers, char *text, size_t size)
{
    if (powers)
        clv_format(text, size, "%.3g", pow(10, value));
    else
        clv_format(text, size, "%.5g", fabs(value) < 1e-12 ? 0 : value);
}

static void draw_axes(const plot *p, const clv_chart_style *s)
{
    char text[32];
    const long bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    const int columns = (int)lround((p->x.high - p->x.low) / p->x.step),
              rows = (int)lround((p->y.high - p->y.low) / p->y.step);
    for (int i = 0; i <= columns; ++i) {
        const double value = p->x.low + i * p->x.step;
        const long x = lround(across(p, value));
        clv_image_fill(p->image, x, TOP, 1, bottom - TOP, grid_colour);
        number(value, s->x_powers, text, sizeof text);
        clv_image_text(p->image, x - clv_text_width(text, SCALE) / 2, bottom + 8, SCALE, text, ink,
                       NULL);
    }
    for (int i = 0; i <= rows; ++i) {
        const double value = p->y.low + i * p->y.step;
        const long y = lround(along(p, value));
        clv_image_fill(p->image, LEFT, y, right - LEFT, 1, grid_colour);
        number(value, s->y_powers, text, sizeof text);
        clv_image_text(p->image, LEFT - 8 - clv_text_width(text, SCALE),
                       y - clv_text_height(SCALE) / 2, SCALE, text, ink, NULL);
    }
    clv_image_fill(p->image, LEFT, TOP, 1, bottom - TOP, ink);
    clv_image_fill(p->image, LEFT, bottom, right - LEFT, 1, ink);
    if (s->x_name)
        clv_image_text(p->image, (LEFT + right - clv_text_width(s->x_name, SCALE)) / 2, HEIGHT - 28,
                       SCALE, s->x_name, ink, NULL);
    if (s->y_name) clv_image_text(p->image, 12, TOP - 24, SCALE, s->y_name, ink, NULL);
    if (s->title)
        clv_image_text(p->image, right - clv_text_width(s->title, SCALE), 8, SCALE, s->title, ink,
                       NULL);
}

static bool has_point(const clv_chart_curve *c, size_t i)
{
    return is_shown(c->x[i]) && is_shown(c->y[i]);
}

static bool has_band(const clv_chart_curve *c, size_t i)
{
    return is_shown(c->x[i]) && is_shown(c->low[i]) && is_shown(c->high[i]);
}

/* Draws the shaded band of a curve, column by column, between neighbouring points that both have one. */
static void draw_band(const plot *p, const clv_chart_curve *c)
{
    const clv_colour pale = mixed(c->colour, white, 0.75);
    for (size_t i = 1; i < c->count; ++i) {
        const double x0 = across(p, c->x[i - 1]), x1 = across(p, c->x[i]);
        const double a = along(p, c->low[i - 1]), b = along(p, c->low[i]),
                     d = along(p, c->high[i - 1]), e = along(p, c->high[i]);
        if (!has_band(c, i - 1) || !has_band(c, i) || !(x1 > x0)) continue;
        for (long x = lround(x0); x < lround(x1); ++x) {
            const double t = fmin(fmax(((double)x - x0) / (x1 - x0), 0), 1), from = a + t * (b - a),
                         to = d + t * (e - d);
            clv_image_fill(p->image, x, lround(fmin(from, to)), 1, lround(fabs(to - from)), pale);
        }
    }
}

static void draw_curve(const plot *p, const clv_chart_curve *c)
{
    for (size_t i = 0; i < c->count; ++i) {
        const double x = across(p, c->x[i]), y = along(p, c->y[i]);
        if (!has_point(c, i)) continue;
        if (c->points) {
            clv_image_ring(p->image, x, y, 4, 3, c->colour);
            if (c->low && has_band(c, i))
                segment(p->image, x, along(p, c->low[i]), x, along(p, c->high[i]), c->colour);
        }
        if (i && !c->points && has_point(c, i - 1))
            segment(p->image, across(p, c->x[i - 1]), along(p, c->y[i - 1]), x, y, c->colour);
    }
}

static void draw_legend(const plot *p, const clv_chart_curve *curves, size_t count, bool left)
{
    long wide = 0, y = TOP + 10;
    for (size_t i = 0; i < count; ++i)
        if (curves[i].name && clv_text_width(curves[i].name, SCALE) > wide)
            wide = clv_text_width(curves[i].name, SCALE);
    for (size_t i = 0; i < count; ++i) {
        if (!curves[i].name) continue;
        const long x = left ? LEFT + 50 : WIDTH - RIGHT - 10 - wide;
        clv_image_fill(p->image, x - 36, y + 5, 28, 4, curves[i].colour);
        clv_image_text(p->image, x, y, SCALE, curves[i].name, ink, &white);
        y += 22;
    }
}

static void widen(double value, double *low, double *high)
{
    if (is_shown(value)) *low = fmin(*low, value), *high = fmax(*high, value);
}

clv_status clv_chart_draw(const clv_chart_curve *curves, size_t count, const clv_chart_style *style,
                          clv_image *image)
{
    if (count > MOST_CURVES)
        return clv_fail(CLV_E_ARGUMENT, "chart: got %zu curves, but at most %d are possible", count,
                        MOST_CURVES);
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    for (size_t k = 0; k < count; ++k)
        for (size_t i = 0; i < curves[k].count; ++i) {
            const clv_chart_curve *c = &curves[k];
            widen(c->x[i], &x0, &x1), widen(c->y[i], &y0, &y1);
            if (c->low) widen(c->low[i], &y0, &y1), widen(c->high[i], &y0, &y1);
        }
    bool points = false;
    for (size_t k = 0; k < count; ++k)
        points = points || curves[k].points;
    if (points && x1 > x0 && y1 > y0) { /* draws only complete rings, and none under the legend */
        const double aside = 0.03 * (x1 - x0);
        x0 -= aside, x1 += aside;
        y1 += (y1 - y0) * 22 * (double)(count + 1) / (HEIGHT - TOP - BOTTOM);
    }
    plot p = { image, make_axis(x0, x1, style->x_powers ? 0.5 : 0),
               make_axis(y0, y1, style->y_powers ? 0.5 : 0), style->y_down };
    if (style->y_powers) p.y = (axis){ floor(p.y.low), ceil(p.y.high), 1 };
    if (style->x_powers) p.x = (axis){ floor(p.x.low), ceil(p.x.high), 1 };
    CLV_TRY(clv_image_create(image, WIDTH, HEIGHT, white));
    for (size_t k = 0; k < count; ++k)
        if (curves[k].low && !curves[k].points) draw_band(&p, &curves[k]);
    draw_axes(&p, style);
    for (size_t k = 0; k < count; ++k)
        draw_curve(&p, &curves[k]);
    draw_legend(&p, curves, count, style->legend_left);
    return CLV_OK;
}

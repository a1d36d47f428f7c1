/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the shift between two spectra: correlates them, weighted by their coherence, looks for the largest value on
 * a grid, and refines it by Newton's method. clv_stage_open in stage.h has the formulas. */
#include "host/stage/shift.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586
#define MOST_COHERENCE 0.95 /* more would let few bright frequencies decide alone */
#define NOISE_FROM 0.42     /* cycles per pixel: optics pass nothing there */
#define WIDEST 32.0         /* pixels: slower changes of brightness are light, not structure */
#define LEAST_COHERENCE 0.1 /* less is not worth the time */
#define FAINTEST 1e-3       /* of the strongest ring: fainter ones hold what the window cuts off */
#define LEAST_SIGNIFICANCE 6.0
enum { STEPS = 6 };

static double frequency(size_t i, size_t size)
{
    return (i <= size / 2 ? (double)i : (double)i - (double)size) / (double)size;
}

/* Most frequencies stand for themselves and for their mirror images, which the spectrum of a real image leaves out. */
static double times(const stage_shifter *s, size_t x)
{
    return x == 0 || 2 * x == s->width ? 1 : 2;
}

clv_status stage_shifter_open(stage_shifter *s, size_t height, size_t width)
{
    *s = (stage_shifter){ .height = height, .width = width, .columns = width / 2 + 1 };
    const size_t waves = height * s->columns, h = height / 2, w = width / 2;
    s->rings = CLV_MIN(CLV_MIN(height, width) / 4, (size_t)STAGE_RINGS);
    s->ring = clv_alloc(waves, 1);
    s->product = clv_alloc(waves, sizeof *s->product);
    s->coarse = clv_alloc(h * (w / 2 + 1), sizeof *s->coarse);
    s->correlation = clv_alloc(h * w, sizeof *s->correlation);
    s->cosine_y = clv_alloc(2 * (height + s->columns), sizeof *s->cosine_y);
    if (!s->ring || !s->product || !s->coarse || !s->correlation || !s->cosine_y)
        return clv_fail(CLV_E_MEMORY, "stage: not enough memory for frames of [%zu,%zu]", height,
                        width);
    s->sine_y = s->cosine_y + height;
    s->cosine_x = s->sine_y + height, s->sine_x = s->cosine_x + s->columns;
    for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < s->columns; ++x) {
            const double k = hypot(frequency(y, height), frequency(x, width));
            s->ring[y * s->columns + x] =
                (unsigned char)CLV_MIN((size_t)(2 * k * (double)s->rings), s->rings);
        }
    return clv_transform_create(h, w, true, &s->back);
}

void stage_shifter_close(stage_shifter *s)
{
    clv_free(s->ring), clv_free(s->product), clv_free(s->coarse), clv_free(s->correlation);
    clv_free(s->cosine_y);
    clv_transform_free(s->back);
}

void stage_measure_rings(const stage_shifter *s, const clv_wave *spectrum, stage_rings *r)
{
    double count[STAGE_RINGS + 1] = { 0 }, sum[STAGE_RINGS + 1] = { 0 };
    for (size_t y = 0; y < s->height; ++y)
        for (size_t x = 0; x < s->columns; ++x) {
            const size_t at = y * s->columns + x;
            const clv_wave v = spectrum[at];
            sum[s->ring[at]] += times(s, x) * (double)(v.re * v.re + v.im * v.im);
            count[s->ring[at]] += times(s, x);
        }
    double noise = sum[s->rings], noises = count[s->rings];
    for (size_t i = 0; i < s->rings; ++i) {
        r->power[i] = sum[i] / fmax(count[i], 1);
        if ((double)i / (2 * (double)s->rings) < NOISE_FROM) continue;
        noise += sum[i], noises += count[i];
    }
    r->noise = noise / fmax(noises, 1);
}

/* Leaves out the slowest changes, along which light is uneven. */
static double passes(const stage_shifter *s, size_t ring)
{
    const double k = ((double)ring + 0.5) / (2 * (double)s->rings) * WIDEST;
    return 1 - exp(-k * k);
}

/* Computes weights from the squared coherence and the mean cross power of each ring. */
static void weigh(const stage_shifter *s, const double *g2, const double *cross, double *weight)
{
    const double most = MOST_COHERENCE * MOST_COHERENCE, least = LEAST_COHERENCE * LEAST_COHERENCE;
    double strongest = 0;
    for (size_t i = 0; i < s->rings; ++i)
        if (g2[i] > least) strongest = fmax(strongest, cross[i] * passes(s, i));
    for (size_t i = 0; i < s->rings; ++i) {
        const double g = fmin(g2[i], most);
        weight[i] =
            g > least ? g / (1 - g) / fmax(cross[i], FAINTEST * strongest) * passes(s, i) : 0;
    }
    weight[s->rings] = 0;
}

static void expect_weights(const stage_shifter *s, const stage_rings *f, const stage_rings *r,
                           double *weight)
{
    double g2[STAGE_RINGS], cross[STAGE_RINGS];
    for (size_t i = 0; i < s->rings; ++i) {
        const double signal = fmax(f->power[i] - f->noise, 0) * fmax(r->power[i] - r->noise, 0);
        const double all = f->power[i] * r->power[i];
        g2[i] = all > 0 ? signal / all : 0, cross[i] = sqrt(signal);
    }
    weigh(s, g2, cross, weight);
}

/* Sets the tables for a shift. */
static void turn(stage_shifter *s, double dy, double dx)
{
    for (size_t y = 0; y < s->height; ++y) {
        const double angle = TWO_PI * frequency(y, s->height) * dy;
        s->cosine_y[y] = cos(angle), s->sine_y[y] = sin(angle);
    }
    for (size_t x = 0; x < s->columns; ++x) {
        const double angle = TWO_PI * frequency(x, s->width) * dx;
        s->cosine_x[x] = cos(angle), s->sine_x[x] = sin(angle);
    }
}

/* Returns how many columns of the spectrum have a weight, at this row; the first of them is column 0. */
static size_t columns_of(const stage_shifter *s, const double *weight, size_t y)
{
    size_t rings = s->rings;
    while (rings && weight[rings - 1] == 0)
        --rings;
    const double reach = (double)rings / (2 * (double)s->rings), ky = frequency(y, s->height);
    if (!(fabs(ky) < reach)) return 0;
    const double columns = sqrt(reach * reach - ky * ky) * (double)s->width + 1;
    return CLV_MIN((size_t)columns, s->columns);
}

/* The correlation at one shift, its derivatives, and how its gradient scatters. */
typedef struct slope {
    double value,
        spread; /* `spread`: sum of squares of what is summed to `value`, for phases by chance */
    double gradient[2], curvature[3], scatter[3]; /* y, x; yy, yx, xx */
} slope;

static slope measure_slope(stage_shifter *s, const double *weight, double dy, double dx)
{
    slope all = { 0 };
    turn(s, dy, dx);
    for (size_t y = 0; y < s->height; ++y) {
        const double ky = TWO_PI * frequency(y, s->height), cy = s->cosine_y[y], sy = s->sine_y[y];
        const size_t columns = columns_of(s, weight, y);
        for (size_t x = 0; x < columns; ++x) {
            const size_t at = y * s->columns + x;
            const double w = weight[s->ring[at]] * times(s, x);
            const double kx = TWO_PI * (double)x / (double)s->width;
            const double c = cy * s->cosine_x[x] - sy * s->sine_x[x],
                         n = sy * s->cosine_x[x] + cy * s->sine_x[x];
            const double re = w * ((double)s->product[at].re * c - (double)s->product[at].im * n),
                         im = w * ((double)s->product[at].re * n + (double)s->product[at].im * c);
            all.value += re, all.spread += (re * re + im * im) / 2;
            all.gradient[0] -= ky * im, all.gradient[1] -= kx * im;
            all.curvature[0] -= ky * ky * re, all.curvature[1] -= ky * kx * re,
                all.curvature[2] -= kx * kx * re;
            all.scatter[0] += ky * ky * im * im, all.scatter[1] += ky * kx * im * im,
                all.scatter[2] += kx * kx * im * im;
        }
    }
    return all;
}

/* Climbs from `d` to the maximum. Returns the slope there. */
static slope climb(stage_shifter *s, const double *weight, double d[2])
{
    slope at = measure_slope(s, weight, d[0], d[1]);
    for (int i = 0; i < STEPS; ++i) {
        const double *h = at.curvature, det = h[0] * h[2] - h[1] * h[1];
        if (!(h[0] < 0 && det > 0)) break; /* no maximum is near */
        double step[2] = { -(h[2] * at.gradient[0] - h[1] * at.gradient[1]) / det,
                           -(h[0] * at.gradient[1] - h[1] * at.gradient[0]) / det };
        const double longest = fmax(fabs(step[0]), fabs(step[1]));
        if (longest > 0.5) step[0] *= 0.5 / longest, step[1] *= 0.5 / longest;
        d[0] += step[0], d[1] += step[1];
        at = measure_slope(s, weight, d[0], d[1]);
        if (longest < 1e-4) break;
    }
    return at;
}

/* Finds the largest value of the correlation on a grid of two pixels, from the frequencies that the grid can hold. */
static void find_on_grid(stage_shifter *s, const double *weight, double d[2])
{
    const size_t h = s->height / 2, w = s->width / 2, columns = w / 2 + 1;
    for (size_t y = 0; y < h; ++y) {
        const size_t from = y <= h / 2 ? y : s->height - (h - y);
        for (size_t x = 0; x < columns; ++x) {
            const size_t at = from * s->columns + x;
            const float by = 2 * y == h || 2 * x == w ? 0 : (float)weight[s->ring[at]];
            s->coarse[y * columns + x] =
                (clv_wave){ by * s->product[at].re, by * s->product[at].im };
        }
    }
    clv_transform_back(s->back, s->coarse, s->correlation);
    size_t best = 0;
    for (size_t i = 1; i < h * w; ++i)
        if (s->correlation[i] > s->correlation[best]) best = i;
    /* exp(2 pi i k d) grows with d where the inverse transform's exponent grows with its index */
    const size_t y = best / w, x = best % w;
    d[0] = 2 * ((double)y - (2 * y > h ? (double)h : 0));
    d[1] = 2 * ((double)x - (2 * x > w ? (double)w : 0));
    /* a parabola through the neighbours, along each axis */
    const float *c = s->correlation;
    const double here = (double)c[best];
    const double up = (double)c[(y + h - 1) % h * w + x], down = (double)c[(y + 1) % h * w + x];
    const double left = (double)c[y * w + (x + w - 1) % w], right = (double)c[y * w + (x + 1) % w];
    if (2 * here > up + down) d[0] += (down - up) / (2 * here - up - down);
    if (2 * here > left + right) d[1] += (right - left) / (2 * here - left - right);
}

/* Computes weights from the coherence that the two spectra have at this shift. */
static void measure_weights(stage_shifter *s, const stage_rings *f, const stage_rings *r,
                            const double d[2], double *weight)
{
    double cross[STAGE_RINGS + 1] = { 0 }, count[STAGE_RINGS + 1] = { 0 }, g2[STAGE_RINGS];
    turn(s, d[0], d[1]);
    for (size_t y = 0; y < s->height; ++y)
        for (size_t x = 0; x < s->columns; ++x) {
            const size_t at = y * s->columns + x;
            const double c = s->cosine_y[y] * s->cosine_x[x] - s->sine_y[y] * s->sine_x[x],
                         n = s->sine_y[y] * s->cosine_x[x] + s->cosine_y[y] * s->sine_x[x];
            cross[s->ring[at]] +=
                times(s, x) * ((double)s->product[at].re * c - (double)s->product[at].im * n);
            count[s->ring[at]] += times(s, x);
        }
    for (size_t i = 0; i < s->rings; ++i) {
        const double all = f->power[i] * r->power[i], counted = fmax(count[i], 1);
        cross[i] = fmax(cross[i] / counted, 0);
        /* chance alone makes a squared coherence of 1 / count */
        g2[i] = all > 0 ? cross[i] * cross[i] / all - 2 / counted : 0;
    }
    weigh(s, g2, cross, weight);
}

/* The errors of the place of the maximum: the scatter of the gradient, carried over by the curvature. */
static void find_errors(const slope *at, clv_stage_shift *shift)
{
    const double *h = at->curvature, *j = at->scatter, det = h[0] * h[2] - h[1] * h[1];
    const double a = h[2] / det, b = -h[1] / det, c = h[0] / det; /* the inverse */
    shift->y_err = sqrt(fmax(a * a * j[0] + 2 * a * b * j[1] + b * b * j[2], 0));
    shift->x_err = sqrt(fmax(b * b * j[0] + 2 * b * c * j[1] + c * c * j[2], 0));
}

void stage_find_shift(stage_shifter *s, const clv_wave *frame, const stage_rings *f,
                      const clv_wave *reference, const stage_rings *r, clv_stage_shift *shift)
{
    double weight[STAGE_RINGS + 1], d[2];
    *shift = (clv_stage_shift){ .y_err = NAN, .x_err = NAN };
    for (size_t i = 0; i < s->height * s->columns; ++i)
        s->product[i] = (clv_wave){ frame[i].re * reference[i].re + frame[i].im * reference[i].im,
                                    frame[i].im * reference[i].re - frame[i].re * reference[i].im };
    expect_weights(s, f, r, weight);
    find_on_grid(s, weight, d);
    slope at = climb(s, weight, d);
    measure_weights(s, f, r, d, weight);
    at = climb(s, weight, d);
    const double *h = at.curvature;
    if (!(at.value > LEAST_SIGNIFICANCE * sqrt(at.spread)) || !(h[0] < 0) ||
        !(h[0] * h[2] > h[1] * h[1]))
        return;
    shift->found = true;
    shift->y = d[0] - (double)s->height * rint(d[0] / (double)s->height);
    shift->x = d[1] - (double)s->width * rint(d[1] / (double)s->width);
    find_errors(&at, shift);
}

void stage_follow(stage_shifter *s, const clv_wave *frame, double dy, double dx, float part,
                  clv_wave *reference)
{
    turn(s, -dy, -dx);
    for (size_t y = 0; y < s->height; ++y)
        for (size_t x = 0; x < s->columns; ++x) {
            const size_t at = y * s->columns + x;
            const float c = (float)(s->cosine_y[y] * s->cosine_x[x] - s->sine_y[y] * s->sine_x[x]),
                        n = (float)(s->sine_y[y] * s->cosine_x[x] + s->cosine_y[y] * s->sine_x[x]);
            const clv_wave r = reference[at];
            reference[at].re = (1 - part) * (r.re * c - r.im * n) + part * frame[at].re;
            reference[at].im = (1 - part) * (r.re * n + r.im * c) + part * frame[at].im;
        }
}

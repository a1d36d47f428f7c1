/* SPDX-License-Identifier: Apache-2.0 */
/* Creates ADI sequences with planets at known positions. */
#define _XOPEN_SOURCE 700 /* j1 */
#include "host/synthetic/adi.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { PSF_SIZE = 21, MODES = 6, LEAST_SIDE = 30 };

static const double fwhm_px = 4.2, rotation_deg = 80;

/* Returns the next number of the SplitMix64 generator. */
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Returns the sum of four 16-bit random numbers, scaled to mean 0 and variance 1. The sum is close enough to a normal
 * distribution, and computing a hundred million such sums takes half a second. */
static float next_noise(uint64_t *state)
{
    const uint64_t z = next_bits(state);
    const int32_t sum =
        (int32_t)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    return (float)(sum - 131070) * (1.0f / 37837.0f);
}

/* Returns the star's image at a distance from its centre, in units of the peak: an Airy pattern whose outer rings
 * fade. */
static double psf_at(double radius)
{
    const double x = 1.0290 * PI * radius / fwhm_px, fade = radius / (2.2 * fwhm_px);
    const double airy = x > 1e-6 ? 2 * j1(x) / x : 1;
    return airy * airy * exp(-fade * fade * fade * fade);
}

/* ---- fields that are smooth over a speckle's width ---------------------------------------------- */

/* Replaces each value by the mean over five neighbours, `step` elements apart; the ends are repeated. */
static void blur_line(float *line, size_t count, size_t step, float *copy)
{
    for (size_t i = 0; i < count; ++i)
        copy[i + 2] = line[i * step];
    copy[0] = copy[1] = copy[2];
    copy[count + 2] = copy[count + 3] = copy[count + 1];
    for (size_t i = 0; i < count; ++i)
        line[i * step] = 0.2f * (copy[i] + copy[i + 1] + copy[i + 2] + copy[i + 3] + copy[i + 4]);
}

/* Blurs the columns in place, five rows at once: column by column, every step would miss the cache. */
static void blur_columns(float *field, size_t height, size_t width, float *copy)
{
    memcpy(copy, field, height * width * sizeof *field);
    for (size_t y = 0; y < height; ++y) {
        const float *rows[5];
        for (size_t k = 0; k < 5; ++k) {
            const size_t at = y + k < 2 ? 0 : CLV_MIN(y + k - 2, height - 1);
            rows[k] = copy + at * width;
        }
        for (size_t x = 0; x < width; ++x)
            field[y * width + x] =
                0.2f * (rows[0][x] + rows[1][x] + rows[2][x] + rows[3][x] + rows[4][x]);
    }
}

/* Makes speckles of mean 0 and variance 1. `scratch` has room for the field and one extra row as a margin. */
static void make_speckles(float *field, size_t height, size_t width, uint64_t seed, float *scratch)
{
    const size_t count = height * width;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; ++i)
        field[i] = next_noise(&seed);
    for (int pass = 0; pass < 2; ++pass) {
        for (size_t y = 0; y < height; ++y)
            blur_line(field + y * width, width, 1, scratch);
        blur_columns(field, height, width, scratch);
    }
    for (size_t i = 0; i < count; ++i)
        sum += field[i], squares += (double)field[i] * field[i];
    const double mean = sum / (double)count,
                 scale = 1 / sqrt(squares / (double)count - mean * mean);
    for (size_t i = 0; i < count; ++i)
        field[i] = (float)((field[i] - mean) * scale);
}

/* ---- the sequence ---------------------------------------------------------------------------------- */

typedef struct scene {
    float *base;        /* [height,width]: the halo and the speckles that stay */
    float *mode[MODES]; /* [height,width]: speckles of one mode, which brighten and fade together */
    float *sigma;       /* [height,width]: sigma of the white noise */
    float *weight;      /* [frames,MODES]: weights of the modes */
    float *scratch;
} scene;

static void free_scene(scene *s)
{
    clv_free(s->base), clv_free(s->sigma), clv_free(s->weight), clv_free(s->scratch);
    for (size_t k = 0; k < MODES; ++k)
        clv_free(s->mode[k]);
}

static bool alloc_scene(const synthetic_adi *adi, scene *s)
{
    const size_t count = adi->height * adi->width;
    bool there = (s->base = clv_alloc(count, sizeof(float))) != NULL;
    there = (s->sigma = clv_alloc(count, sizeof(float))) && there;
    there = (s->weight = clv_alloc(adi->frames, MODES * sizeof(float))) && there;
    there = (s->scratch = clv_alloc(count + adi->width + 4, sizeof(float))) && there;
    for (size_t k = 0; k < MODES; ++k)
        there = (s->mode[k] = clv_alloc(count, sizeof(float))) && there;
    return there;
}

/* Makes a halo that falls off with the distance from the star, and speckles in proportion to the halo. */
static void make_scene(const synthetic_adi *adi, uint64_t seed, scene *s)
{
    const double cy = (double)(adi->height / 2), cx = (double)(adi->width / 2);
    make_speckles(s->base, adi->height, adi->width, seed + 1, s->scratch);
    for (size_t k = 0; k < MODES; ++k)
        make_speckles(s->mode[k], adi->height, adi->width, seed + 2 + k, s->scratch);
    for (size_t y = 0; y < adi->height; ++y)
        for (size_t x = 0; x < adi->width; ++x) {
            const size_t i = y * adi->width + x;
            const double r2 =
                ((double)y - cy) * ((double)y - cy) + ((double)x - cx) * ((double)x - cx);
            const double halo = 300 / (1 + r2 / 60) + 3;
            s->base[i] = (float)(halo * (1 + 0.3 * s->base[i]));
            s->sigma[i] = (float)sqrt(0.9 + 0.03 * halo);
            for (size_t k = 0; k < MODES; ++k)
                s->mode[k][i] *= (float)(0.2 + 0.012 * halo);
        }
    /* the weight in each frame depends mostly on the weight in the previous frame */
    for (size_t k = 0; k < MODES; ++k) {
        const float keep = 0.5f + 0.07f * (float)k, renew = sqrtf(1 - keep * keep);
        uint64_t state = seed + 100 + k;
        float value = next_noise(&state);
        for (size_t t = 0; t < adi->frames; ++t) {
            s->weight[t * MODES + k] = value;
            value = keep * value + renew * next_noise(&state);
        }
    }
}

static void add_modes(float *out, const scene *s, size_t from, size_t width, const float *weight)
{
    const float *m0 = s->mode[0] + from, *m1 = s->mode[1] + from, *m2 = s->mode[2] + from,
                *m3 = s->mode[3] + from, *m4 = s->mode[4] + from, *m5 = s->mode[5] + from,
                *base = s->base + from;
    for (size_t x = 0; x < width; ++x)
        out[x] = base[x] + (weight[0] * m0[x] + weight[1] * m1[x] + weight[2] * m2[x]) +
                 (weight[3] * m3[x] + weight[4] * m4[x] + weight[5] * m5[x]);
}

/* Fills the cube row by row, each row through all frames, so that the scene's row stays in the cache. */
static void fill_cube(const synthetic_adi *adi, const scene *s, uint64_t seed)
{
    const size_t plane = adi->height * adi->width;
    for (size_t y = 0; y < adi->height; ++y) {
        const size_t from = y * adi->width;
        for (size_t t = 0; t < adi->frames; ++t) {
            float *out = adi->cube + t * plane + from;
            uint64_t state = seed ^ ((y << 32 | t) * 0xD1342543DE82EF95u);
            add_modes(out, s, from, adi->width, s->weight + t * MODES);
            for (size_t x = 0; x < adi->width; ++x)
                out[x] += s->sigma[from + x] * next_noise(&state);
        }
    }
}

/* Makes the field angles of an hour around the meridian, where the field first rotates slowly, then fast, then
 * slowly. */
static void make_angles(synthetic_adi *adi)
{
    for (size_t t = 0; t < adi->frames; ++t) {
        const double at = adi->frames > 1 ? 2 * (double)t / (double)(adi->frames - 1) - 1 : 0;
        adi->angles[t] = 0.5 * rotation_deg * sin(0.5 * PI * at) / sin(0.5 * PI);
    }
}

/* Spreads planets over separations and position angles, away from the edge. Their S/N is 7 to 15 in 50 frames. */
static void place_planets(synthetic_adi *adi)
{
    static const struct {
        double reach, angle;
    } where[SYNTHETIC_MAX_PLANETS] = { { 0.90, 349 }, { 0.60, 131 }, { 0.75, 243 }, { 0.40, 40 } };
    const size_t side = CLV_MIN(adi->height, adi->width);
    const double room = 0.5 * (double)side - 7;
    if (side < LEAST_SIDE) return;
    adi->planet_count = side < 60 ? 2 : side < 120 ? 3 : SYNTHETIC_MAX_PLANETS;
    for (size_t i = 0; i < adi->planet_count; ++i) {
        const double radius = where[i].reach * room, angle = where[i].angle * (PI / 180);
        adi->planets[i] = (synthetic_planet){
            .x = round((double)(adi->width / 2) - radius * sin(angle)),
            .y = round((double)(adi->height / 2) + radius * cos(angle)),
            .flux = 0.9 + 60 / radius, /* near the star, a planet adds to its noise */
        };
    }
}

static void add_planet(const synthetic_adi *adi, const synthetic_planet *p, size_t t)
{
    const double cy = (double)(adi->height / 2), cx = (double)(adi->width / 2);
    const double dy = p->y - cy, dx = p->x - cx, angle = adi->angles[t] * (PI / 180);
    const double row = cy + dy * cos(angle) - dx * sin(angle),
                 col = cx + dx * cos(angle) + dy * sin(angle);
    float *frame = adi->cube + t * adi->height * adi->width;
    const long top = lround(row), left = lround(col), reach = PSF_SIZE / 2;
    for (long y = top - reach; y <= top + reach; ++y)
        for (long x = left - reach; x <= left + reach; ++x)
            if (y >= 0 && x >= 0 && y < (long)adi->height && x < (long)adi->width)
                frame[(size_t)y * adi->width + (size_t)x] +=
                    (float)(p->flux * psf_at(hypot((double)y - row, (double)x - col)));
}

static void make_psf(synthetic_adi *adi)
{
    const long middle = PSF_SIZE / 2;
    for (long y = 0; y < PSF_SIZE; ++y)
        for (long x = 0; x < PSF_SIZE; ++x)
            adi->psf[y * PSF_SIZE + x] =
                (float)psf_at(hypot((double)(y - middle), (double)(x - middle)));
}

clv_status synthetic_adi_create(size_t frames, size_t height, size_t width, uint64_t seed,
                                synthetic_adi *adi)
{
    size_t plane, count;
    scene s = { 0 };
    *adi = (synthetic_adi){
        .frames = frames, .height = height, .width = width, .psf_size = PSF_SIZE, .fwhm = fwhm_px
    };
    if (!clv_size_mul(height, width, &plane) || !clv_size_mul(plane, frames, &count) ||
        !clv_size_mul(count, sizeof(float), &count) || !count)
        return clv_fail(CLV_E_SHAPE, "a sequence of [%zu,%zu,%zu] cannot be made", frames, height,
                        width);
    adi->cube = clv_alloc_pages(count);
    adi->angles = clv_alloc(frames, sizeof *adi->angles);
    adi->psf = clv_alloc(PSF_SIZE * PSF_SIZE, sizeof *adi->psf);
    if (!adi->cube || !adi->angles || !adi->psf || !alloc_scene(adi, &s)) {
        free_scene(&s);
        synthetic_adi_clear(adi);
        return clv_fail(CLV_E_MEMORY, "not enough memory for a sequence of [%zu,%zu,%zu]", frames,
                        height, width);
    }
    make_scene(adi, seed, &s);
    make_angles(adi);
    make_psf(adi);
    place_planets(adi);
    fill_cube(adi, &s, seed);
    for (size_t t = 0; t < frames; ++t)
        for (size_t i = 0; i < adi->planet_count; ++i)
            add_planet(adi, &adi->planets[i], t);
    free_scene(&s);
    return CLV_OK;
}

void synthetic_adi_clear(synthetic_adi *adi)
{
    clv_free(adi->cube), clv_free(adi->angles), clv_free(adi->psf);
    *adi = (synthetic_adi){ 0 };
}

void synthetic_adi_damage(synthetic_adi *adi)
{
    const size_t plane = adi->height * adi->width, h = adi->height, w = adi->width;
    for (size_t t = 0; t < adi->frames; ++t) {
        float *frame = adi->cube + t * plane;
        for (size_t y = 0; y < 3; ++y)
            for (size_t x = 0; x < 5; ++x)
                frame[y * w + x] = NAN;
        frame[(h / 3) * w + w / 4] = 7; /* a dead pixel, which never changes */
        for (size_t y = 0; y < h; ++y)
            frame[y * w + w - 1] = 0;
    }
    adi->cube[(adi->frames / 2) * plane + (2 * h / 3) * w + 2 * w / 3] = NAN;
}

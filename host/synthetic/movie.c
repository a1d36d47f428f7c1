/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a synthetic movie: particles of one size that drift over a noisy background. */
#include "host/synthetic/movie.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Returns the next number of the SplitMix64 generator. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next(state) >> 11) * 0x1p-53;
}

/* Returns a random number of mean 0 and variance 1: the scaled sum of the bytes of one 64-bit number. */
static double normal(uint64_t *state)
{
    uint64_t bits = next(state);
    int sum = 0;
    for (int i = 0; i < 8; ++i, bits >>= 8)
        sum += (int)(bits & 255);
    return (sum - 1020) / 209.02;
}

/* Returns the fraction of a spot's light that falls into a pixel's extent along one axis. */
static double part(double from, double centre, double sigma)
{
    return 0.5 * (erf((from + 0.5 - centre) / (sigma * sqrt(2))) -
                  erf((from - 0.5 - centre) / (sigma * sqrt(2))));
}

static void add_spot(float *frame, size_t height, size_t width, double y, double x)
{
    enum { REACH = 8, LIGHT = 1500 };
    const double sigma = SYNTHETIC_SIGMA_TENTHS / 10.0;
    double across[2 * REACH + 1];
    for (int i = -REACH; i <= REACH; ++i)
        across[i + REACH] = part(round(x) + i, x, sigma);
    for (int j = -REACH; j <= REACH; ++j) {
        const double row = round(y) + j, down = LIGHT * part(row, y, sigma);
        if (row < 0 || row >= (double)height) continue;
        for (int i = -REACH; i <= REACH; ++i) {
            const double column = round(x) + i;
            if (column >= 0 && column < (double)width)
                frame[(size_t)row * width + (size_t)column] += (float)(down * across[i + REACH]);
        }
    }
}

static double bounce(double at, double size)
{
    const double low = 5, high = fmax(size - 6, low);
    return at < low ? 2 * low - at : at > high ? fmax(2 * high - at, low) : at;
}

clv_status synthetic_movie_create(size_t frames, size_t height, size_t width, size_t particles,
                                  uint64_t seed, synthetic_movie *m)
{
    static const double background = 20, read_noise = 1.6, gain = 2, offset = 100;
    const size_t plane = height * width;
    *m = (synthetic_movie){
        .shape = { sizeof(clv_blob_frames), CLV_BLOB_U16, frames, height, width, plane, width },
        .particles = particles,
    };
    m->pixels = clv_alloc_pages(frames * plane * sizeof *m->pixels);
    m->y = clv_alloc(frames * particles + 1, sizeof *m->y);
    m->x = clv_alloc(frames * particles + 1, sizeof *m->x);
    float *frame = clv_alloc(plane, sizeof *frame);
    if (!m->pixels || !m->y || !m->x || !frame) {
        clv_free(frame);
        synthetic_movie_clear(m);
        return clv_fail(CLV_E_MEMORY, "not enough memory for a movie of %zu frames", frames);
    }
    for (size_t t = 0; t < frames; ++t) {
        float *y = m->y + t * particles, *x = m->x + t * particles;
        for (size_t i = 0; i < plane; ++i)
            frame[i] = (float)background;
        for (size_t p = 0; p < particles; ++p) {
            const double walk = 0.4;
            y[p] = (float)(t ? bounce((double)y[(ptrdiff_t)p - (ptrdiff_t)particles] +
                                          walk * normal(&seed),
                                      (double)height)
                             : 5 + uniform(&seed) * ((double)height - 11));
            x[p] = (float)(t ? bounce((double)x[(ptrdiff_t)p - (ptrdiff_t)particles] +
                                          walk * normal(&seed),
                                      (double)width)
                             : 5 + uniform(&seed) * ((double)width - 11));
            add_spot(frame, height, width, (double)y[p], (double)x[p]);
        }
        /* shot noise: a normal number with the variance of the light */
        for (size_t i = 0; i < plane; ++i) {
            const double light = (double)frame[i];
            const double v = light + sqrt(light + read_noise * read_noise) * normal(&seed);
            m->pixels[t * plane + i] = (uint16_t)fmin(fmax(round(v * gain + offset), 0), 65535);
        }
    }
    clv_free(frame);
    return CLV_OK;
}

void synthetic_movie_clear(synthetic_movie *m)
{
    clv_free(m->pixels), clv_free(m->y), clv_free(m->x);
    *m = (synthetic_movie){ 0 };
}

synthetic_score synthetic_movie_judge(const synthetic_movie *m, const clv_spot *spots, size_t count,
                                      double near_px)
{
    synthetic_score score = { 0 };
    double sum = 0;
    size_t at = 0;
    for (size_t t = 0; t < m->shape.frames; ++t) {
        size_t end = at, found = 0;
        while (end < count && spots[end].frame == t)
            ++end;
        for (size_t p = 0; p < m->particles; ++p) {
            double best = near_px * near_px;
            bool any = false;
            for (size_t s = at; s < end; ++s) {
                const double dy = (double)spots[s].y - (double)m->y[t * m->particles + p],
                             dx = (double)spots[s].x - (double)m->x[t * m->particles + p];
                if (dy * dy + dx * dx <= best) best = dy * dy + dx * dx, any = true;
            }
            if (any) sum += best, ++found;
        }
        score.found += found, score.missed += m->particles - found;
        score.extra += end - at > found ? end - at - found : 0;
        at = end;
    }
    score.rms_px = score.found ? sqrt(sum / (double)score.found) : 0;
    return score;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Computes Fourier transforms with KISS FFT: of rows as real numbers, then of columns. Only this file includes the
 * library. */
#include "host/stage/transform.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

size_t clv_transform_size(size_t least)
{
    for (size_t size = clv_round_up(CLV_MAX(least, (size_t)4), 4);; size += 4) {
        size_t rest = size;
        while (rest % 2 == 0)
            rest /= 2;
        while (rest % 3 == 0)
            rest /= 3;
        while (rest % 5 == 0)
            rest /= 5;
        if (rest == 1) return size;
    }
}

#ifdef CLEAVE_HAVE_KISSFFT

#include <kiss_fftr.h>

_Static_assert(sizeof(kiss_fft_cpx) == sizeof(clv_wave), "both are two floats");

enum { TOGETHER = 8 }; /* columns that are gathered at once: a cache line of them */

struct clv_transform {
    size_t height, width;
    kiss_fftr_cfg row;
    kiss_fft_cfg column;
    kiss_fft_cpx *line, *in, *out; /* one row; TOGETHER columns before and after */
};

bool clv_transform_available(void)
{
    return true;
}

clv_status clv_transform_create(size_t height, size_t width, bool inverse, clv_transform **out)
{
    *out = NULL;
    clv_transform *t = clv_zalloc(1, sizeof *t);
    if (t) {
        t->height = height, t->width = width;
        t->row = kiss_fftr_alloc((int)width, inverse, NULL, NULL);
        t->column = kiss_fft_alloc((int)height, inverse, NULL, NULL);
        t->line = clv_alloc(width / 2 + 1, sizeof *t->line);
        t->in = clv_alloc(TOGETHER * height, sizeof *t->in);
        t->out = clv_alloc(height, sizeof *t->out);
    }
    if (!t || !t->row || !t->column || !t->line || !t->in || !t->out) {
        clv_transform_free(t);
        return clv_fail(CLV_E_MEMORY, "not enough memory for Fourier transforms of [%zu,%zu]",
                        height, width);
    }
    *out = t;
    return CLV_OK;
}

void clv_transform_free(clv_transform *t)
{
    if (!t) return;
    kiss_fftr_free(t->row), kiss_fft_free(t->column);
    clv_free(t->line), clv_free(t->in), clv_free(t->out);
    clv_free(t);
}

static void transform_columns(clv_transform *t, clv_wave *spectrum)
{
    const size_t columns = t->width / 2 + 1, height = t->height;
    for (size_t first = 0; first < columns; first += TOGETHER) {
        const size_t count = CLV_MIN((size_t)TOGETHER, columns - first);
        for (size_t y = 0; y < height; ++y)
            for (size_t i = 0; i < count; ++i)
                memcpy(&t->in[i * height + y], &spectrum[y * columns + first + i], sizeof *t->in);
        for (size_t i = 0; i < count; ++i) {
            kiss_fft(t->column, t->in + i * height, t->out);
            memcpy(t->in + i * height, t->out, height * sizeof *t->in);
        }
        for (size_t y = 0; y < height; ++y)
            for (size_t i = 0; i < count; ++i)
                memcpy(&spectrum[y * columns + first + i], &t->in[i * height + y], sizeof *t->in);
    }
}

void clv_transform_forward(clv_transform *t, const float *image, clv_wave *spectrum)
{
    const size_t columns = t->width / 2 + 1;
    for (size_t y = 0; y < t->height; ++y) {
        kiss_fftr(t->row, image + y * t->width, t->line);
        memcpy(spectrum + y * columns, t->line, columns * sizeof *spectrum);
    }
    transform_columns(t, spectrum);
}

void clv_transform_back(clv_transform *t, clv_wave *spectrum, float *image)
{
    const size_t columns = t->width / 2 + 1;
    transform_columns(t, spectrum);
    for (size_t y = 0; y < t->height; ++y) {
        memcpy(t->line, spectrum + y * columns, columns * sizeof *spectrum);
        kiss_fftri(t->row, t->line, image + y * t->width);
    }
}

#else

bool clv_transform_available(void)
{
    return false;
}

clv_status clv_transform_create(size_t height, size_t width, bool inverse, clv_transform **out)
{
    (void)height, (void)width, (void)inverse;
    *out = NULL;
    return clv_fail(CLV_E_UNSUPPORTED,
                    "this Cleave was built without KISS FFT (Debian: libkissfft-dev), which is "
                    "needed to measure the drift of the stage");
}

void clv_transform_free(clv_transform *t)
{
    (void)t;
}

void clv_transform_forward(clv_transform *t, const float *image, clv_wave *spectrum)
{
    (void)t, (void)image, (void)spectrum;
}

void clv_transform_back(clv_transform *t, clv_wave *spectrum, float *image)
{
    (void)t, (void)spectrum, (void)image;
}

#endif

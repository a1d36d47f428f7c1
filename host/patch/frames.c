/* SPDX-License-Identifier: Apache-2.0 */
/* Finds frames that differ from the other frames, and repairs pixels that are not finite. */
#include "base/alloc.h"
#include "base/error.h"

#include <cleave/patch.h>

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 4096, REACH = 3, UNUSUAL = 4 };

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float median(float *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : 0.5f * values[count / 2 - 1] + 0.5f * values[count / 2];
}

/* Writes |value - median| / MAD over time of a pixel, one value per frame; NaN where the pixel is NaN. Returns false if
 * the pixel cannot be used. */
static bool deviations(const float *series, size_t frames, float *work, float *out)
{
    size_t count = 0;
    for (size_t l = 0; l < frames; ++l)
        if (isfinite(series[l])) work[count++] = series[l];
    if (count < 3) return false;
    const float middle = median(work, count);
    for (size_t l = 0; l < count; ++l)
        work[l] = fabsf(work[l] - middle);
    const float spread = median(work, count);
    if (!(spread > 0)) return false;
    for (size_t l = 0; l < frames; ++l)
        out[l] = isfinite(series[l]) ? fabsf(series[l] - middle) / spread : NAN;
    return true;
}

clv_status clv_paco_frames(const clv_paco_input *in, double limit, clv_paco_frame *frames,
                           size_t *kept)
{
    if (!in || !in->cube || !frames || !kept)
        return clv_fail(CLV_E_ARGUMENT, "frames: input, cube or result is NULL");
    const size_t row = in->row_stride ? in->row_stride : in->width,
                 plane = in->frame_stride ? in->frame_stride : row * in->height,
                 pixels = in->height * in->width;
    size_t step = pixels / SAMPLES + 1, used = 0;
    /* avoids sampling the same columns in every row */
    if (step > 1 && in->width % step == 0) ++step;
    const size_t most = pixels / step + 1;
    float *series = clv_alloc(2 * in->frames + 1, sizeof *series),
          *all = clv_alloc(most * in->frames + 1, sizeof *all),
          *column = clv_alloc(most + 1, sizeof *column);
    clv_status status = CLV_OK;
    if (!series || !all || !column) {
        status = clv_fail(CLV_E_MEMORY, "frames: not enough memory for %zu frames", in->frames);
        goto cleanup;
    }
    for (size_t p = step / 2; p < pixels; p += step) {
        const float *pixel = in->cube + p / in->width * row + p % in->width;
        for (size_t l = 0; l < in->frames; ++l)
            series[l] = pixel[l * plane];
        used += deviations(series, in->frames, series + in->frames, all + used * in->frames);
    }
    *kept = 0;
    for (size_t l = 0; l < in->frames; ++l) {
        size_t missing = 0, count = 0;
        for (size_t y = 0; y < in->height; ++y)
            for (size_t x = 0; x < in->width; ++x)
                missing += !isfinite(in->cube[l * plane + y * row + x]);
        for (size_t k = 0; k < used; ++k)
            if (!isnan(all[k * in->frames + l])) column[count++] = all[k * in->frames + l];
        clv_paco_frame *f = &frames[l];
        f->missing = (double)missing / (double)pixels;
        f->scale = count ? median(column, count) : NAN;
        f->rejected = f->missing > 0.5 || f->scale > limit;
        *kept += !f->rejected;
    }
cleanup:
    clv_free(series), clv_free(all), clv_free(column);
    return status;
}

clv_status clv_paco_frame_weights(const clv_paco_frame *frames, size_t count,
                                  clv_frame_weighting weighting, double *weights)
{
    if (!frames || !weights) return clv_fail(CLV_E_ARGUMENT, "frames: frames or weights is NULL");
    if (weighting != CLV_WEIGHTS_ROBUST && weighting != CLV_WEIGHTS_VARIANCE)
        return clv_fail(CLV_E_ARGUMENT,
                        "frames: the weighting is %d; expected robust (0) or variance (1)",
                        (int)weighting);
    const bool robust = weighting == CLV_WEIGHTS_ROBUST;
    for (size_t l = 0; l < count; ++l) {
        const double ratio = (robust ? 2 : 1) / fmax(frames[l].scale, robust ? 2 : 0.1);
        weights[l] = isfinite(frames[l].scale) ? fmax(ratio * ratio, 1e-12) : 1;
    }
    return CLV_OK;
}

/* Computes a pixel's mean and standard deviation over time from the frames that are not rejected; NaN if fewer than
 * half of these frames have the pixel. */
static void measure(const float *cube, const clv_paco_frame *judged, size_t frames, size_t plane,
                    size_t p, float *mean, float *deviation)
{
    double sum = 0, squares = 0;
    size_t count = 0, usual = 0;
    for (size_t l = 0; l < frames; ++l) {
        usual += !judged[l].rejected;
        if (!judged[l].rejected && isfinite(cube[l * plane + p]))
            sum += cube[l * plane + p], ++count;
    }
    *mean = *deviation = NAN;
    if (2 * count < usual || count < 2) return;
    sum /= (double)count;
    for (size_t l = 0; l < frames; ++l)
        if (!judged[l].rejected && isfinite(cube[l * plane + p])) {
            const double d = cube[l * plane + p] - sum;
            squares += d * d;
        }
    *mean = (float)sum, *deviation = (float)sqrt(squares / (double)count);
}

typedef struct mender {
    const float *frame, *mean, *deviation;
    size_t height, width;
    float weight[2 * REACH + 1][2 * REACH + 1];
} mender;

/* Estimates a pixel from its neighbours: averages their deviations in units of each neighbour's own mean and spread,
 * and applies the result to the pixel's mean and spread. */
static float estimate(const mender *m, size_t y, size_t x)
{
    const size_t p = y * m->width + x;
    double sum = 0, weights = 0;
    for (int dy = -REACH; dy <= REACH; ++dy)
        for (int dx = -REACH; dx <= REACH; ++dx) {
            const ptrdiff_t v = (ptrdiff_t)y + dy, u = (ptrdiff_t)x + dx;
            if (v < 0 || u < 0 || v >= (ptrdiff_t)m->height || u >= (ptrdiff_t)m->width) continue;
            const size_t q = (size_t)v * m->width + (size_t)u;
            const float z = (m->frame[q] - m->mean[q]) / m->deviation[q];
            if (!isfinite(z)) continue;
            sum += m->weight[dy + REACH][dx + REACH] * z;
            weights += m->weight[dy + REACH][dx + REACH];
        }
    return weights > 0 ? m->mean[p] + m->deviation[p] * (float)(sum / weights) : m->mean[p];
}

clv_status clv_paco_mend(float *cube, size_t frames, size_t height, size_t width, double fwhm_px,
                         size_t *mended)
{
    if (!cube || !mended) return clv_fail(CLV_E_ARGUMENT, "mend: cube or result is NULL");
    if (!(fwhm_px > 0) || !isfinite(fwhm_px))
        return clv_fail(CLV_E_ARGUMENT, "mend: the FWHM is %g; expected a positive number",
                        fwhm_px);
    const size_t plane = height * width;
    size_t wrong = 0;
    *mended = 0;
    for (size_t i = 0; i < frames * plane; ++i)
        wrong += !isfinite(cube[i]);
    if (!wrong) return CLV_OK;
    const clv_paco_input in = {
        .size = sizeof in, .cube = cube, .frames = frames, .height = height, .width = width
    };
    size_t kept = 0;
    float *mean = clv_alloc(3 * plane, sizeof *mean);
    clv_paco_frame *judged = clv_alloc(frames, sizeof *judged);
    clv_status status = CLV_OK;
    if (!mean || !judged) {
        status =
            clv_fail(CLV_E_MEMORY, "mend: not enough memory for a frame of %zux%zu", width, height);
        goto cleanup;
    }
    if ((status = clv_paco_frames(&in, UNUSUAL, judged, &kept))) goto cleanup;
    for (size_t l = 0; l < frames && kept < 2; ++l)
        judged[l].rejected = false;
    float *deviation = mean + plane, *whole = deviation + plane;
    for (size_t p = 0; p < plane; ++p)
        measure(cube, judged, frames, plane, p, &mean[p], &deviation[p]);
    mender m = { .mean = mean, .deviation = deviation, .height = height, .width = width };
    const double sigma = 0.5 * fwhm_px / 2.3548;
    for (int dy = -REACH; dy <= REACH; ++dy)
        for (int dx = -REACH; dx <= REACH; ++dx)
            m.weight[dy + REACH][dx + REACH] =
                (float)exp(-0.5 * (dy * dy + dx * dx) / (sigma * sigma));
    for (size_t l = 0; l < frames; ++l) {
        float *frame = cube + l * plane;
        m.frame = frame;
        for (size_t p = 0; p < plane; ++p) {
            whole[p] = frame[p];
            if (isfinite(frame[p]) || !isfinite(mean[p])) continue;
            whole[p] = estimate(&m, p / width, p % width);
            ++*mended;
        }
        for (size_t p = 0; p < plane; ++p)
            frame[p] = whole[p];
    }
cleanup:
    clv_free(mean), clv_free(judged);
    return status;
}

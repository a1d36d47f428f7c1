/* SPDX-License-Identifier: Apache-2.0 */
/* Computes trials in plain C and float64: the reference for the kernels, and the fallback if no device works. The
 * planets' images come from Fourier shifts, not from polynomials, and the derivatives from differences of images. */
#include "host/patch/trial.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"
#include "cl/patch/shared.clh"

#include <math.h>
#include <string.h>

typedef struct workspace {
    float *out;         /* [frames][size][size]: images of the subtracted planet */
    float *in;          /* [frames][size][size]: images of the injected planet */
    float *image[3];    /* [size][size]: the planet in one frame, and its derivatives */
    double *q, *matrix; /* [frames][pixels], [pixels][pixels] */
    double right[4][CLV_PACO_MAX_PIXELS];
} workspace;

static double pixel_of(const float *spot, int size, int row, int col)
{
    if (row < 0 || col < 0 || row >= size || col >= size) return 0;
    return (double)spot[(size_t)row * (size_t)size + (size_t)col];
}

static clv_status image_at(const clv_trials *b, double fy, double fx, float *image)
{
    const size_t size = b->plan->in.psf_size;
    for (size_t i = 0; i < size * size; ++i)
        image[i] = (float)b->plan->psf[i];
    return clv_psf_move(image, size, fy, fx);
}

/* Computes (image at f + step - image at f - step) / (2 step). */
static clv_status derivative_at(const clv_trials *b, double fy, double fx, double step_y,
                                double step_x, float *work, float *image)
{
    const size_t size = b->plan->in.psf_size;
    CLV_TRY(image_at(b, fy + step_y, fx + step_x, image));
    CLV_TRY(image_at(b, fy - step_y, fx - step_x, work));
    for (size_t i = 0; i < size * size; ++i)
        image[i] = (float)(((double)image[i] - (double)work[i]) / (2 * (step_y + step_x)));
    return CLV_OK;
}

static void gather(const clv_trials *b, size_t k, size_t l, workspace *w)
{
    const size_t p = b->plan->pixels, frames = b->plan->in.frames;
    const int size = (int)b->plan->in.psf_size, middle = size / 2;
    const clv_trial_place *places = b->places + k * frames, *origins = b->origins + k * frames;
    const clv_trial_place here = places[l];
    for (size_t i = 0; i < p; ++i) {
        const clv_offset o = b->plan->offset[i];
        const int row = here.row + o.dy, col = here.col + o.dx;
        double mean = 0, weights = 0;
        for (size_t t = 0; t < frames; ++t) {
            const size_t at = (t * b->height + (size_t)row) * b->width + (size_t)col,
                         image = t * (size_t)size * (size_t)size;
            const double out = pixel_of(w->out + image, size, row - places[t].row + middle,
                                        col - places[t].col + middle),
                         in = pixel_of(w->in + image, size, row - origins[t].row + middle,
                                       col - origins[t].col + middle);
            w->q[t * p + i] =
                (double)b->data[at] - (double)b->flux[k] * out + (double)b->injected[k] * in;
            mean += (double)places[t].weight * w->q[t * p + i];
            weights += (double)places[t].weight;
        }
        mean /= weights;
        for (size_t t = 0; t < frames; ++t)
            w->q[t * p + i] = (double)places[t].gain * (w->q[t * p + i] - mean);
        for (int j = 0; j < 3; ++j)
            w->right[j][i] = pixel_of(w->image[j], size, o.dy + middle, o.dx + middle);
        w->right[3][i] = w->q[l * p + i];
    }
}

/* Computes the sums of frame l after the frame's patch has been gathered. */
static void one_frame(const clv_trials *b, workspace *w, float *sums)
{
    const size_t p = b->plan->pixels, frames = b->plan->in.frames;
    double all = 0, trace = 0, squares = 0;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double s = 0;
            for (size_t t = 0; t < frames; ++t)
                s += w->q[t * p + i] * w->q[t * p + j];
            s /= (double)frames;
            w->matrix[i * p + j] = s;
            all += (i == j ? 1 : 2) * s * s;
            if (i == j) trace += s, squares += s * s;
        }
    const double bottom = ((double)frames + 1) * (all - squares);
    const double rho =
        bottom > 0 ? fmin(fmax((all + trace * trace - 2 * squares) / bottom, 0), 1) : 1;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j < i; ++j)
            w->matrix[i * p + j] *= 1 - rho;
    const bool good = clv_cholesky(w->matrix, p);
    for (int i = 0; i < 4 && good; ++i)
        clv_forward_substitute(w->matrix, p, w->right[i]);
    static const int pairs[CLV_TRIAL_SUMS][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 1 }, { 1, 2 },
                                                  { 2, 2 }, { 0, 3 }, { 1, 3 }, { 2, 3 } };
    for (int n = 0; n < CLV_TRIAL_SUMS; ++n) {
        double sum = 0;
        for (size_t i = 0; i < p; ++i)
            sum += w->right[pairs[n][0]][i] * w->right[pairs[n][1]][i];
        sums[n] = good ? (float)sum : NAN;
    }
}

static clv_status one_trial(const clv_trials *b, size_t k, workspace *w, float *sums)
{
    const double step = 0.02;
    const size_t frames = b->plan->in.frames, size = b->plan->in.psf_size;
    const clv_trial_place *places = b->places + k * frames, *origins = b->origins + k * frames;
    for (size_t t = 0; t < frames; ++t) {
        CLV_TRY(image_at(b, places[t].fy, places[t].fx, w->out + t * size * size));
        CLV_TRY(image_at(b, origins[t].fy, origins[t].fx, w->in + t * size * size));
    }
    for (size_t l = 0; l < frames; ++l) {
        const double fy = places[l].fy, fx = places[l].fx;
        CLV_TRY(derivative_at(b, fy, fx, step, 0, w->image[0], w->image[1]));
        CLV_TRY(derivative_at(b, fy, fx, 0, step, w->image[0], w->image[2]));
        memcpy(w->image[0], w->out + l * size * size, size * size * sizeof(float));
        gather(b, k, l, w);
        one_frame(b, w, sums + l * CLV_TRIAL_SUMS);
    }
    return CLV_OK;
}

clv_status clv_trial_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_trials *b = user;
    const size_t frames = b->plan->in.frames, p = b->plan->pixels, size = b->plan->in.psf_size,
                 numbers = frames * CLV_TRIAL_SUMS, square = size * size;
    void *results;
    CLV_TRY(
        clv_slot_result_create(slot, CLV_TRIAL_RESULT, count * numbers * sizeof(float), &results));
    workspace w = { .out = clv_alloc(2 * frames * square + 3 * square, sizeof(float)),
                    .q = clv_alloc(frames * p, sizeof(double)),
                    .matrix = clv_alloc(p * p, sizeof(double)) };
    clv_status status = CLV_OK;
    if (!w.out || !w.q || !w.matrix)
        status = clv_fail(CLV_E_MEMORY, "paco: not enough memory for a trial run");
    if (!status) {
        w.in = w.out + frames * square;
        for (int i = 0; i < 3; ++i)
            w.image[i] = w.in + (frames + (size_t)i) * square;
    }
    for (size_t k = 0; k < count && !status; ++k)
        status = one_trial(b, first + k, &w, (float *)results + k * numbers);
    clv_free(w.out), clv_free(w.q), clv_free(w.matrix);
    return status;
}

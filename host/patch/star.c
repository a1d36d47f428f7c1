/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the star: the point around which the mean frame is symmetric. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <cleave/patch.h>

#include <math.h>

typedef struct image {
    double *at;
    size_t height, width;
} image;

/* Computes the weighted mean of each pixel over the frames in which it is valid; 0 if it is valid in none. */
static clv_status mean_frame(const clv_paco_input *in, image *mean)
{
    const size_t row = in->row_stride ? in->row_stride : in->width,
                 plane = in->frame_stride ? in->frame_stride : row * in->height;
    mean->height = in->height, mean->width = in->width;
    mean->at = clv_zalloc(in->height * in->width, sizeof *mean->at);
    if (!mean->at) return clv_fail(CLV_E_MEMORY, "paco: not enough memory for the mean frame");
    for (size_t y = 0; y < in->height; ++y)
        for (size_t x = 0; x < in->width; ++x) {
            double sum = 0, weights = 0;
            for (size_t l = 0; l < in->frames; ++l) {
                const float value = in->cube[l * plane + y * row + x];
                const double weight = in->weights ? in->weights[l] : 1;
                if (isfinite(value)) sum += weight * (double)value, weights += weight;
            }
            if (weights > 0) mean->at[y * in->width + x] = sum / weights;
        }
    return CLV_OK;
}

/* Computes the weights of cubic convolution (Keys 1981) at distance t from the previous pixel. */
static void cubic(double t, double *weight)
{
    weight[0] = ((-0.5 * t + 1) * t - 0.5) * t;
    weight[1] = (1.5 * t - 2.5) * t * t + 1;
    weight[2] = ((-1.5 * t + 2) * t + 0.5) * t;
    weight[3] = (0.5 * t - 0.5) * t * t;
}

static double value_at(const image *m, double y, double x)
{
    const double y0 = floor(y), x0 = floor(x);
    double wy[4], wx[4], sum = 0;
    cubic(y - y0, wy), cubic(x - x0, wx);
    for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i) {
            const double v = fmin(fmax(y0 + j - 1, 0), (double)m->height - 1),
                         u = fmin(fmax(x0 + i - 1, 0), (double)m->width - 1);
            sum += wy[j] * wx[i] * m->at[(size_t)v * m->width + (size_t)u];
        }
    return sum;
}

/* Returns sum w (I(c + d) - I(c - d))^2 over half a disc, divided by the variance of both halves: 0 for perfect
 * symmetry, about 1 for no symmetry. The weights w = 1 / (1 + |d|) favour the core over the halo, whose shape changes
 * with the wind. */
static double asymmetry(const image *m, double cy, double cx, int radius, bool favour_core)
{
    double difference = 0, sum = 0, squares = 0, weights = 0;
    for (int dy = 0; dy <= radius; ++dy)
        for (int dx = dy ? -radius : 1; dx <= radius; ++dx) {
            if (dy * dy + dx * dx > radius * radius) continue;
            const double w = favour_core ? 1 / (1 + hypot(dy, dx)) : 1;
            const double a = value_at(m, cy + dy, cx + dx), b = value_at(m, cy - dy, cx - dx);
            difference += w * (a - b) * (a - b);
            sum += w * (a + b), squares += w * (a * a + b * b), weights += 2 * w;
        }
    const double variance = squares - sum * sum / weights;
    return variance > 0 ? difference / variance : 2;
}

/* Finds the best point of a square grid around (cy, cx) that stays at least a margin away from the edges. */
static double search(const image *m, double *cy, double *cx, double reach, double step, int radius,
                     bool favour_core)
{
    const double y0 = *cy, x0 = *cx;
    double best = INFINITY;
    for (double y = y0 - reach; y <= y0 + reach + 1e-9; y += step)
        for (double x = x0 - reach; x <= x0 + reach + 1e-9; x += step) {
            if (y < radius || x < radius || y > (double)m->height - 1 - radius ||
                x > (double)m->width - 1 - radius)
                continue;
            const double value = asymmetry(m, y, x, radius, favour_core);
            if (value < best) best = value, *cy = y, *cx = x;
        }
    return best;
}

clv_status clv_paco_star(const clv_paco_input *given, double fwhm_px, clv_star *star)
{
    /* 0.02 to 0.04 for a real star behind a coronagraph, 0.08 to 0.25 where static speckles dominate, 1 for noise */
    const double most = 0.06;
    clv_paco_input in;
    const clv_paco_input *const input = &in;
    if (!given || !star) return clv_fail(CLV_E_ARGUMENT, "star: input or result is NULL");
    CLV_TRY(clv_take_struct(&in, sizeof in, given, "clv_paco_star", "clv_paco_input"));
    if (!in.cube) return clv_fail(CLV_E_ARGUMENT, "star: the cube is NULL");
    if (!(fwhm_px > 0) || !isfinite(fwhm_px))
        return clv_fail(CLV_E_ARGUMENT, "star: the FWHM is %g; expected a positive number",
                        fwhm_px);
    *star = (clv_star){ .x = (double)(input->width / 2),
                        .y = (double)(input->height / 2),
                        .asymmetry = 2 };
    const size_t side = CLV_MIN(input->height, input->width);
    const int wide = (int)fmin(fmax(ceil(3.5 * fwhm_px), 8), (double)side / 4),
              core = (int)fmin(fmax(round(1.1 * fwhm_px), 4), (double)wide);
    if (side < 16 || !input->frames) return CLV_OK;
    image mean = { 0 };
    CLV_TRY(mean_frame(input, &mean));
    double y = star->y, x = star->x;
    const double reach = fmin((double)side / 8, 12);
    (void)search(&mean, &y, &x, floor(reach), 1, wide, false);
    star->asymmetry = search(&mean, &y, &x, 1, 0.25, wide, false);
    if (star->asymmetry <= most) {
        (void)search(&mean, &y, &x, 0.5, 0.125, core, true);
        (void)search(&mean, &y, &x, 0.1, 0.025, core, true);
        (void)search(&mean, &y, &x, 0.02, 0.005, core, true);
        star->found = true;
        star->x = x, star->y = y;
    }
    clv_free(mean.at);
    return CLV_OK;
}

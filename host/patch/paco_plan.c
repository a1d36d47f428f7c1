/* SPDX-License-Identifier: Apache-2.0 */
/* Computes everything that a PACO run has to compute before its chunks: geometry, scales, PSF basis. */
#include "host/patch/paco_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static clv_status check_input(const clv_paco_input *in, unsigned radius)
{
    const size_t patch = 2 * radius + 1;
    if (!in->cube || !in->angles || !in->psf)
        return clv_fail(CLV_E_ARGUMENT, "paco: cube, angles or PSF is NULL");
    if (radius < 2 || radius > CLV_PACO_MAX_RADIUS)
        return clv_fail(CLV_E_ARGUMENT, "paco: the radius is %u; expected 2 to %d", radius,
                        CLV_PACO_MAX_RADIUS);
    if (in->frames < 2)
        return clv_fail(CLV_E_SHAPE,
                        "paco: got %zu frame%s, but statistics over time need at least 2",
                        in->frames, in->frames == 1 ? "" : "s");
    if (in->height < patch || in->width < patch)
        return clv_fail(CLV_E_SHAPE,
                        "paco: the frames of %zux%zu are smaller than a patch of %zux%zu",
                        in->width, in->height, patch, patch);
    if (in->psf_size < patch)
        return clv_fail(CLV_E_SHAPE,
                        "paco: the PSF of %zux%zu is smaller than a patch of %zux%zu (radius %u)",
                        in->psf_size, in->psf_size, patch, patch, radius);
    if (in->psf_size > CLV_PACO_MAX_PSF)
        return clv_fail(CLV_E_SHAPE,
                        "paco: the PSF has %zux%zu pixels; expected at most %d per side",
                        in->psf_size, in->psf_size, CLV_PACO_MAX_PSF);
    if (in->width > 32768 || in->height > 32768)
        return clv_fail(CLV_E_SHAPE,
                        "paco: the frames have %zux%zu pixels; expected at most 32768 per side",
                        in->width, in->height);
    /* the kernels use 32-bit offsets inside a chunk */
    if ((in->width + 128) > (size_t)INT32_MAX / 16 / in->frames)
        return clv_fail(CLV_E_SHAPE, "paco: %zu frames of width %zu are more than can be addressed",
                        in->frames, in->width);
    for (size_t l = 0; l < in->frames; ++l)
        if (!isfinite(in->angles[l]))
            return clv_fail(CLV_E_ARGUMENT, "paco: angle %zu is not finite", l);
    for (size_t l = 0; in->weights && l < in->frames; ++l)
        if (!(in->weights[l] > 0) || !isfinite(in->weights[l]))
            return clv_fail(CLV_E_ARGUMENT,
                            "paco: weight %zu is %g; expected a number above 0 (to ignore a frame, "
                            "leave it out)",
                            l, in->weights[l]);
    return CLV_OK;
}

static clv_status resolve(clv_paco_plan *plan, const clv_paco_input *input,
                          const clv_paco_options *o)
{
    clv_paco_input *in = &plan->in;
    *in = *input;
    plan->radius = o->radius ? o->radius : 4;
    CLV_TRY(check_input(in, plan->radius));
    size_t frame, all;
    if (!in->row_stride) in->row_stride = in->width;
    if (!clv_size_mul(in->height, in->row_stride, &frame) ||
        !clv_size_mul(in->frames, in->frame_stride ? in->frame_stride : frame, &all) ||
        all > SIZE_MAX / sizeof(float))
        return clv_fail(CLV_E_SHAPE,
                        "paco: %zu frames with strides of %zu and %zu elements reach beyond what "
                        "can be addressed",
                        in->frames, in->frame_stride, in->row_stride);
    if (!in->frame_stride) in->frame_stride = frame;
    if (in->row_stride < in->width ||
        in->frame_stride < in->row_stride * (in->height - 1) + in->width)
        return clv_fail(CLV_E_SHAPE,
                        "paco: strides %zu and %zu are too short for frames of %zux%zu",
                        in->frame_stride, in->row_stride, in->width, in->height);
    plan->shifted = o->psf_mode == CLV_PSF_SHIFT;
    plan->vip = o->convention == CLV_PACO_VIP;
    plan->part_bytes = 32 << 20;
    plan->margin = plan->radius + (plan->vip ? 1 : 0);
    if (in->height <= 2 * plan->margin || in->width <= 2 * plan->margin)
        return clv_fail(CLV_E_SHAPE,
                        "paco: the frames of %zux%zu have no room for a patch with a margin of %zu",
                        in->width, in->height, plan->margin);
    const bool truncate =
        o->rounding == CLV_ROUND_TRUNC || (o->rounding == CLV_ROUND_DEFAULT && plan->vip);
    plan->half = truncate ? 0 : INT64_C(1) << 31;
    plan->centre_x = o->centre_given ? o->centre_x : (double)(in->width / 2);
    plan->centre_y = o->centre_given ? o->centre_y : (double)(in->height / 2);
    if (!(plan->centre_x >= 0 && plan->centre_x <= (double)(in->width - 1) && plan->centre_y >= 0 &&
          plan->centre_y <= (double)(in->height - 1)))
        return clv_fail(CLV_E_ARGUMENT,
                        "paco: the centre (%g, %g) is outside the frames of %zux%zu",
                        plan->centre_x, plan->centre_y, in->width, in->height);
    return CLV_OK;
}

static void make_disc(clv_paco_plan *plan)
{
    const int r = (int)plan->radius;
    for (int dy = -r; dy <= r; ++dy)
        for (int dx = -r; dx <= r; ++dx)
            if (dy * dy + dx * dx <= r * r) plan->offset[plan->pixels++] = (clv_offset){ dy, dx };
}

/* Lists the differences between the positions of any two pixels of the disc, each once, and records the difference of
 * each pair. */
static clv_status make_lags(clv_paco_plan *plan)
{
    enum { SIDE = 4 * CLV_PACO_MAX_RADIUS + 1 };
    int id[SIDE][SIDE];
    const size_t pairs = plan->pixels * (plan->pixels + 1) / 2;
    memset(id, -1, sizeof id);
    plan->lag = clv_alloc(SIDE * SIDE, sizeof *plan->lag);
    plan->entry_lag = clv_alloc(pairs, sizeof *plan->entry_lag);
    if (!plan->lag || !plan->entry_lag)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for tables");
    for (size_t i = 0, e = 0; i < plan->pixels; ++i)
        for (size_t j = 0; j <= i; ++j, ++e) {
            const int dy = plan->offset[i].dy - plan->offset[j].dy,
                      dx = plan->offset[i].dx - plan->offset[j].dx;
            int *at = &id[dy][dx + SIDE / 2]; /* row-major order makes dy >= 0 */
            if (*at < 0) {
                *at = (int)plan->lags;
                plan->lag[plan->lags++] = (clv_offset){ dy, dx };
            }
            plan->entry_lag[e] = (uint16_t)*at;
        }
    return CLV_OK;
}

static int64_t q32(double v)
{
    return (int64_t)llrint(v * 0x1p32);
}

static clv_status make_rotations(clv_paco_plan *plan, bool reverse)
{
    const double cy = plan->centre_y, cx = plan->centre_x, middle = plan->half ? 0 : 0.5;
    plan->turn = clv_alloc(plan->in.frames, sizeof *plan->turn);
    if (!plan->turn)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for %zu angles", plan->in.frames);
    double most = 0;
    for (size_t l = 0; l < plan->in.frames && plan->in.weights; ++l)
        most = fmax(most, plan->in.weights[l]);
    for (size_t l = 0; l < plan->in.frames; ++l) {
        const double weight = plan->in.weights ? fmax(plan->in.weights[l] / most, 1e-12) : 1;
        const double t = (reverse ? -1 : 1) * fmod(plan->in.angles[l], 360) * (PI / 180),
                     c = cos(t), s = sin(t);
        const double my = middle - cy, mx = middle - cx;
        plan->turn[l] = (clv_rotation){
            .c = q32(c),
            .s = q32(s),
            .row0 = q32(cy - cy * c + cx * s) + plan->half,
            .col0 = q32(cx - cx * c - cy * s) + plan->half,
            .back_row0 = q32(cy + my * c + mx * s),
            .back_col0 = q32(cx - my * s + mx * c),
            .weight = (float)weight,
            .gain = (float)sqrt(weight),
        };
    }
    return CLV_OK;
}

/* Returns whether the patch of a map position is within the frame in every step-th frame. */
static bool stays_inside(const clv_paco_plan *plan, size_t y, size_t x, size_t step)
{
    const int64_t margin = (int64_t)plan->margin;
    const int64_t rows = (int64_t)plan->in.height - margin,
                  columns = (int64_t)plan->in.width - margin;
    for (size_t l = 0; l < plan->in.frames; l += step) {
        const clv_paco_place p = clv_paco_locate(plan, l, y, x);
        if (p.row < margin || p.row >= rows || p.col < margin || p.col >= columns) return false;
    }
    return true;
}

/* Finds how far from the centre the patches of valid positions are. With angles that span 90 degrees, a fifth of a
 * square frame's patches are farther away, in its corners. */
static void find_reach(clv_paco_plan *plan)
{
    enum { FEW = 16, ROUNDING = 2 };
    const clv_paco_input *in = &plan->in;
    double most = 0;
    for (size_t y = 0; y < in->height; ++y) {
        const double dy = (double)y - plan->centre_y;
        for (size_t x = 0; x < in->width; ++x) {
            const double dx = (double)x - plan->centre_x, square = dy * dy + dx * dx;
            /* few frames decide for most positions */
            if (square > most && stays_inside(plan, y, x, FEW) && stays_inside(plan, y, x, 1))
                most = square;
        }
    }
    plan->reach = sqrt(most) + ROUNDING;
}

/* Chooses the scale 2^-k, where 2^k is the median change of a pixel against frame 0. With this scale, squares stay
 * within float32's range, whatever the unit of the cube. Samples a fixed pattern of pixels, so that the same cube
 * always has the same scale. */
static void choose_scale(clv_paco_plan *plan)
{
    enum { MOST = 65536, EXPONENTS = 256 };
    const clv_paco_input *in = &plan->in;
    const size_t total = (in->frames - 1) * in->height * in->width;
    size_t step = total / MOST | 1, count = 0, of_exponent[EXPONENTS] = { 0 };
    if (step % in->width == 0) step += 2; /* avoids sampling the same column in every row */
    for (size_t n = 0; n < total; n += step) {
        const size_t l = 1 + n / (in->height * in->width), p = n % (in->height * in->width);
        const float *pixel = in->cube + p / in->width * in->row_stride + p % in->width;
        const float change = fabsf(pixel[l * in->frame_stride] - pixel[0]);
        if (!isfinite(change) || change == 0) continue;
        uint32_t bits;
        memcpy(&bits, &change, sizeof bits);
        ++of_exponent[bits >> 23];
        ++count;
    }
    plan->scale = 1;
    if (!count) return;
    /* biased exponent of the median, value < 2^(biased - 126): the scale depends on nothing else */
    int biased = 0;
    for (size_t below = of_exponent[0]; below <= count / 2; below += of_exponent[biased])
        ++biased;
    const int exponent = biased - 126;
    plan->scale = ldexpf(1, exponent > 126 ? -125 : exponent < -124 ? 125 : 1 - exponent);
}

static clv_status scale_psf(clv_paco_plan *plan)
{
    const size_t count = plan->in.psf_size * plan->in.psf_size;
    double norm2 = 0, peak = 0;
    plan->psf = clv_alloc(count, sizeof *plan->psf);
    if (!plan->psf) return clv_fail(CLV_E_MEMORY, "paco: not enough memory for the PSF");
    for (size_t i = 0; i < count; ++i) {
        plan->psf[i] = plan->in.psf[i];
        if (!isfinite(plan->psf[i]))
            return clv_fail(CLV_E_ARGUMENT, "paco: the PSF holds a value that is not finite");
        peak = fmax(peak, fabs(plan->psf[i]));
    }
    if (peak == 0) return clv_fail(CLV_E_ARGUMENT, "paco: the PSF is zero everywhere");
    for (size_t i = 0; i < count; ++i)
        norm2 += (plan->psf[i] / peak) * (plan->psf[i] / peak);
    int exponent;
    (void)frexp(peak * sqrt(norm2), &exponent);
    plan->psf_scale = ldexp(1, 1 - exponent);
    for (size_t i = 0; i < count; ++i)
        plan->psf[i] *= plan->psf_scale;
    return CLV_OK;
}

static clv_status make_sums(clv_paco_plan *plan)
{
    const size_t positions = plan->in.height * plan->in.width;
    plan->sums = clv_zalloc(4 * positions, sizeof *plan->sums);
    plan->found = clv_zalloc(positions, sizeof *plan->found);
    plan->state = clv_zalloc(positions, sizeof *plan->state);
    if (!plan->sums || !plan->found || !plan->state)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for maps of %zux%zu", plan->in.width,
                        plan->in.height);
    return CLV_OK;
}

clv_status clv_paco_plan_create(const clv_paco_input *input, const clv_paco_options *options,
                                clv_paco_plan **out)
{
    *out = NULL;
    if (!input) return clv_fail(CLV_E_ARGUMENT, "paco: input is NULL");
    clv_paco_options o;
    clv_paco_input in;
    CLV_TRY(clv_take_struct(&in, sizeof in, input, "clv_paco", "clv_paco_input"));
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_paco", "clv_paco_options"));
    const size_t vectors = o.psf_vectors ? o.psf_vectors : 10;
    if (vectors != 5 && vectors != 10 && vectors != 15)
        return clv_fail(CLV_E_ARGUMENT, "paco: got %zu PSF vectors; expected 5, 10 or 15", vectors);

    clv_paco_plan *plan = clv_zalloc(1, sizeof *plan);
    if (!plan) return clv_fail(CLV_E_MEMORY, "paco: out of memory");
    clv_status status = resolve(plan, &in, &o);
    if (!status) make_disc(plan);
    if (!status) status = make_lags(plan);
    if (!status) status = make_rotations(plan, o.reverse_angles);
    if (!status) find_reach(plan), choose_scale(plan);
    if (!status) status = scale_psf(plan);
    if (!status) status = clv_psf_basis_create(plan, vectors, &plan->basis);
    if (!status) status = make_sums(plan);
    if (status)
        clv_paco_plan_free(plan);
    else
        *out = plan;
    return status;
}

void clv_paco_plan_free(clv_paco_plan *plan)
{
    if (!plan) return;
    clv_psf_basis_clear(&plan->basis);
    clv_free(plan->lag), clv_free(plan->entry_lag), clv_free(plan->turn), clv_free(plan->psf);
    clv_free(plan->sums), clv_free(plan->found), clv_free(plan->state);
    clv_free(plan);
}

clv_paco_place clv_paco_locate(const clv_paco_plan *plan, size_t frame, size_t y, size_t x)
{
    const clv_rotation *r = &plan->turn[frame];
    const int64_t row = (int64_t)y * r->c - (int64_t)x * r->s + r->row0;
    const int64_t col = (int64_t)x * r->c + (int64_t)y * r->s + r->col0;
    const int64_t low = 0xffffffff,
                  zero = plan->half; /* `half` states where the centre of a pixel lies */
    return (clv_paco_place){ .row = row >> 32,
                             .col = col >> 32,
                             .fy = (double)((row & low) - zero) * 0x1p-32,
                             .fx = (double)((col & low) - zero) * 0x1p-32 };
}

void clv_paco_map_rows(const clv_paco_plan *plan, size_t first, size_t count, size_t *map_first,
                       size_t *map_count)
{
    /* one row of tolerance on either side */
    const double top = (double)first - 1, bottom = (double)(first + count);
    double low = (double)plan->in.height, high = -1;
    for (size_t l = 0; l < plan->in.frames; ++l) {
        const double c = (double)plan->turn[l].c * 0x1p-32, s = (double)plan->turn[l].s * 0x1p-32;
        for (int corner = 0; corner < 4; ++corner) {
            const double dy = (corner & 1 ? bottom : top) - plan->centre_y;
            const double dx = (corner & 2 ? (double)plan->in.width : -1) - plan->centre_x;
            const double y = plan->centre_y + dy * c + dx * s;
            low = fmin(low, y);
            high = fmax(high, y);
        }
    }
    low = fmax(floor(low) - 1, 0);
    high = fmin(ceil(high) + 1, (double)plan->in.height - 1);
    *map_first = high < low ? 0 : (size_t)low;
    *map_count = high < low ? 0 : (size_t)(high - low) + 1;
}

void clv_paco_add(int64_t *high, int64_t *low, double value)
{
    const double coarse = rint(value * 0x1p10);
    *high += (int64_t)coarse;
    *low += (int64_t)rint((value - coarse * 0x1p-10) * 0x1p62);
}

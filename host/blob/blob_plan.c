/* SPDX-License-Identifier: Apache-2.0 */
/* Turns options into the scales, filter coefficients and thresholds of a detection. */
#include "host/blob/blob_plan.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(clv_blob_peak) == CLV_BLOB_PEAK_WORDS * sizeof(uint32_t),
               "a maximum as kernels write it");
_Static_assert((int)CLV_BLOB_U8 == CLV_BLOB_PIXEL_U8 && (int)CLV_BLOB_U16 == CLV_BLOB_PIXEL_U16 &&
                   (int)CLV_BLOB_I16 == CLV_BLOB_PIXEL_I16 &&
                   (int)CLV_BLOB_F32 == CLV_BLOB_PIXEL_F32,
               "kernels count types of pixels as cleave/blob.h does");

/* Much smaller sigmas, whose squares a float64 cannot hold, have no filter coefficients, and a table of widths that
 * begins near 0 has no room for those of spots. */
static const double least_sigma = 0.01;

static clv_status check_options(const clv_blob_options *o)
{
    if (!(o->min_sigma_px >= least_sigma) || !(o->max_sigma_px >= o->min_sigma_px) ||
        !isfinite(o->max_sigma_px))
        return clv_fail(CLV_E_ARGUMENT,
                        "blobs: the sigmas go from %g to %g pixels, but they must satisfy %g <= "
                        "smallest <= largest (typical: 1 and 3)",
                        o->min_sigma_px, o->max_sigma_px, least_sigma);
    if (o->num_sigma > CLV_BLOB_MAX_SCALES)
        return clv_fail(CLV_E_ARGUMENT, "blobs: got %u sigmas, expected 1 to %d", o->num_sigma,
                        CLV_BLOB_MAX_SCALES);
    if (o->dog && !(o->sigma_ratio > 1 && isfinite(o->sigma_ratio)))
        return clv_fail(CLV_E_ARGUMENT, "blobs: the sigma ratio is %g, but it must be more than 1",
                        o->sigma_ratio);
    if (!(o->threshold >= 0) || !isfinite(o->threshold))
        return clv_fail(CLV_E_ARGUMENT, "blobs: the threshold is %g, but it must be 0 or more",
                        o->threshold);
    if (!(o->threshold_rel >= 0 && o->threshold_rel <= 1))
        return clv_fail(CLV_E_ARGUMENT,
                        "blobs: the relative threshold is %g, but it must be 0 to 1",
                        o->threshold_rel);
    if (!(o->threshold_sigma >= 0) || !isfinite(o->threshold_sigma) ||
        (o->threshold_sigma_given && o->threshold_sigma == 0))
        return clv_fail(CLV_E_ARGUMENT,
                        "blobs: the threshold is %g standard deviations of the noise, but it must "
                        "be more than 0 "
                        "(typical: 5)",
                        o->threshold_sigma);
    if (o->threshold_sigma_given && (o->threshold_given || o->threshold_rel_given))
        return clv_fail(CLV_E_ARGUMENT, "blobs: a threshold in standard deviations of the noise "
                                        "cannot be combined with another threshold");
    if (!(o->overlap >= 0 && o->overlap <= 1))
        return clv_fail(CLV_E_ARGUMENT, "blobs: the overlap is %g, but it must be 0 to 1",
                        o->overlap);
    if ((unsigned)o->taps > CLV_BLOB_TAPS_SCIPY || (unsigned)o->subpixel > CLV_BLOB_SUBPIXEL_NONE)
        return clv_fail(CLV_E_ARGUMENT, "blobs: the set of filter coefficients or the sub-pixel "
                                        "method is not one of the enumerators");
    return CLV_OK;
}

static clv_status read_options(const clv_blob_options *given, clv_blob_options *out)
{
    clv_blob_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, given, "clv_blobs", "clv_blob_options"));
    if (o.min_sigma_px == 0) o.min_sigma_px = 1;
    if (o.max_sigma_px == 0) o.max_sigma_px = CLV_MAX(3.0, o.min_sigma_px);
    if (!o.num_sigma) o.num_sigma = 5;
    if (o.sigma_ratio == 0) o.sigma_ratio = 1.6;
    if (!o.overlap_given) o.overlap = 0.5;
    if (!o.threshold_given) o.threshold = 0;
    if (!o.threshold_rel_given) o.threshold_rel = 0;
    if (!o.threshold_sigma_given) o.threshold_sigma = 0;
    if (!o.threshold_given && !o.threshold_rel_given && !o.threshold_sigma_given)
        o.threshold_sigma = CLV_BLOB_USUAL_SIGMAS, o.threshold_sigma_given = true;
    *out = o;
    return check_options(out);
}

static clv_status make_ladder(const clv_blob_options *o, double *sigma, size_t *levels,
                              size_t *scales)
{
    if (o->dog) {
        const double k = floor(log(o->max_sigma_px / o->min_sigma_px) / log(o->sigma_ratio) + 1);
        if (!(k <= CLV_BLOB_MAX_SCALES))
            return clv_fail(CLV_E_ARGUMENT,
                            "blobs: the options ask for %.0f differences of Gaussians, but at most "
                            "%d are possible; a larger sigma ratio gives fewer",
                            k, CLV_BLOB_MAX_SCALES);
        *scales = (size_t)k;
        *levels = *scales + 1;
        for (size_t i = 0; i < *levels; ++i)
            sigma[i] = o->min_sigma_px * pow(o->sigma_ratio, (double)i);
        return CLV_OK;
    }
    *scales = *levels = o->num_sigma;
    for (size_t i = 0; i < *levels; ++i) {
        const double part = *levels > 1 ? (double)i / (double)(*levels - 1) : 0;
        sigma[i] = o->log_scale ? o->min_sigma_px * pow(o->max_sigma_px / o->min_sigma_px, part)
                                : o->min_sigma_px + (o->max_sigma_px - o->min_sigma_px) * part;
    }
    return CLV_OK;
}

clv_status clv_blobs_ladder(const clv_blob_options *options, double *sigma_px, size_t *count)
{
    double sigma[CLV_BLOB_MAX_LEVELS];
    size_t levels;
    if (!sigma_px || !count) return clv_fail(CLV_E_ARGUMENT, "blobs: an output is NULL");
    *count = 0;
    clv_blob_options o;
    CLV_TRY(read_options(options, &o));
    CLV_TRY(make_ladder(&o, sigma, &levels, count));
    memcpy(sigma_px, sigma, *count * sizeof *sigma);
    return CLV_OK;
}

static clv_status make_taps(clv_blob_plan *plan)
{
    for (size_t l = 0; l < plan->levels; ++l) {
        const double reach = floor(4 * plan->sigma[l] + 0.5);
        if (reach > CLV_BLOB_MAX_RADIUS)
            return clv_fail(CLV_E_ARGUMENT, "blobs: sigma is %g, but it must be at most %d",
                            plan->sigma[l], CLV_BLOB_MAX_RADIUS / 4);
        plan->radius[l] = (uint32_t)reach;
        plan->first_tap[l] = (uint32_t)plan->taps;
        plan->taps += plan->radius[l] + 1;
        plan->max_radius = CLV_MAX(plan->max_radius, (size_t)plan->radius[l]);
    }
    plan->tap = clv_alloc(plan->taps, 2 * sizeof *plan->tap);
    plan->tap_f32 = clv_alloc(plan->taps, 2 * sizeof *plan->tap_f32);
    if (!plan->tap || !plan->tap_f32)
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for filter coefficients");
    for (size_t l = 0; l < plan->levels; ++l) {
        const double s2 = plan->sigma[l] * plan->sigma[l];
        double *t = plan->tap + 2 * plan->first_tap[l], sum = 0, leak = 0;
        for (size_t j = 0; j <= plan->radius[l]; ++j)
            sum += (j ? 2 : 1) * exp(-(double)(j * j) / (2 * s2));
        for (size_t j = 0; j <= plan->radius[l]; ++j) {
            t[2 * j] = exp(-(double)(j * j) / (2 * s2)) / sum;
            t[2 * j + 1] = t[2 * j] * ((double)(j * j) / (s2 * s2) - 1 / s2) * -s2;
            leak += (j ? 2 : 1) * t[2 * j + 1];
        }
        if (plan->options.taps == CLV_BLOB_TAPS_ZERO_SUM)
            for (size_t j = 0; j <= plan->radius[l]; ++j)
                t[2 * j + 1] -= leak * t[2 * j];
        else if (!plan->options.dog)
            plan->leak[l] = (float)(2 * leak);
        for (size_t j = 0; j < 2 * (plan->radius[l] + 1u); ++j)
            plan->tap_f32[2 * plan->first_tap[l] + j] = (float)t[j];
    }
    return CLV_OK;
}

static clv_status check_shape(clv_blob_frames *shape)
{
    if ((unsigned)shape->type > CLV_BLOB_F32)
        return clv_fail(CLV_E_ARGUMENT, "blobs: the pixel type is not one of clv_blob_pixel");
    if (!shape->frames || !shape->height || !shape->width || shape->height > 65535 ||
        shape->width > 65535)
        return clv_fail(CLV_E_SHAPE,
                        "blobs: the frames are [%zu,%zu,%zu], but every extent must be 1 to 65535",
                        shape->frames, shape->height, shape->width);
    size_t frame, all;
    if (!shape->row_stride) shape->row_stride = shape->width;
    if (!clv_size_mul(shape->height, shape->row_stride, &frame) ||
        !clv_size_mul(shape->frames, shape->frame_stride ? shape->frame_stride : frame, &all) ||
        all > SIZE_MAX / sizeof(float))
        return clv_fail(CLV_E_SHAPE,
                        "blobs: %zu frames with strides of %zu and %zu elements reach beyond what "
                        "can be addressed",
                        shape->frames, shape->frame_stride, shape->row_stride);
    if (!shape->frame_stride) shape->frame_stride = frame;
    if (shape->row_stride < shape->width ||
        shape->frame_stride < (shape->height - 1) * shape->row_stride + shape->width)
        return clv_fail(CLV_E_SHAPE,
                        "blobs: with strides of %zu and %zu elements, frames or rows overlap",
                        shape->frame_stride, shape->row_stride);
    return CLV_OK;
}

static clv_status make_results(clv_blob_plan *plan)
{
    const size_t n = plan->shape.frames;
    plan->pedestal = clv_zalloc(n, sizeof *plan->pedestal);
    plan->bad_pixels = clv_zalloc(n, sizeof *plan->bad_pixels);
    plan->peaks = clv_zalloc(n, sizeof *plan->peaks);
    plan->room = clv_zalloc(n, sizeof *plan->room);
    plan->found = clv_zalloc(n, sizeof *plan->found);
    plan->max_response = clv_zalloc(n, sizeof *plan->max_response);
    plan->spread = clv_zalloc(n, plan->scales * sizeof *plan->spread);
    plan->map = clv_alloc(n, plan->cells * sizeof *plan->map);
    plan->noiseless = clv_zalloc(n, sizeof *plan->noiseless);
    plan->seed = clv_zalloc(n, 2 * sizeof *plan->seed);
    if (!plan->seed || !plan->pedestal || !plan->bad_pixels || !plan->peaks || !plan->room ||
        !plan->found || !plan->max_response || !plan->spread || !plan->map || !plan->noiseless)
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu frames", n);
    for (size_t i = 0; i < n * plan->cells; ++i)
        plan->map[i] = 1;
    for (size_t i = 0; i < CLV_MIN(n, (size_t)CLV_BLOB_USUAL_FRAMES); ++i)
        if (!clv_reserve(&plan->peaks[i], &plan->room[i], CLV_BLOB_USUAL_SPOTS,
                         sizeof **plan->peaks))
            return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for the maxima of %zu frames",
                            n);
    return CLV_OK;
}

clv_status clv_blob_plan_create(const clv_blob_frames *shape, const clv_blob_options *options,
                                clv_blob_plan **out)
{
    static const size_t bytes[] = { 1, 2, 2, 4 };
    static const double largest[] = { 255, 65535, 32767, INFINITY };
    *out = NULL;
    clv_blob_plan *plan = clv_zalloc(1, sizeof *plan);
    if (!plan) return clv_fail(CLV_E_MEMORY, "blobs: out of memory");
    clv_status status = read_options(options, &plan->options);
    if (!status)
        status = clv_take_struct(&plan->shape, sizeof plan->shape, shape, "clv_blobs_open",
                                 "clv_blob_frames");
    if (!status) status = check_shape(&plan->shape);
    if (!status) status = make_ladder(&plan->options, plan->sigma, &plan->levels, &plan->scales);
    if (!status) status = make_taps(plan);
    if (!status) status = clv_blob_sizes_create(plan, &plan->sizes);
    if (status) {
        clv_blob_plan_free(plan);
        return status;
    }
    plan->pixel_bytes = bytes[plan->shape.type];
    plan->largest = largest[plan->shape.type];
    plan->gain = plan->options.invert ? -1 : 1;
    if (plan->options.normalize && plan->shape.type != CLV_BLOB_F32)
        plan->options.threshold *= plan->largest;
    plan->by_noise = plan->options.threshold_sigma_given;
    plan->floor = (float)(plan->by_noise ? 0 : plan->options.threshold);
    plan->relative = plan->by_noise ? 0 : (float)plan->options.threshold_rel;
    clv_blob_noise_plan(plan);
    clv_blob_edge_plan(plan);
    status = make_results(plan);
    if (!status && clv_blob_waves_pay(plan)) {
        status = clv_blob_waves_create(plan, &plan->waves);
        /* where the image is empty, sums of cosines leave rounding errors, which must not count as maxima */
        plan->relative = fmaxf(plan->relative, 1e-6f);
    }
    if (status) {
        clv_blob_plan_free(plan);
        return status;
    }
    /* few frames have more than one maximum per 1024 pixels */
    plan->capacity = clv_round_up(plan->shape.height * plan->shape.width / 1024 + 1, 1024);
    *out = plan;
    return CLV_OK;
}

void clv_blob_plan_free(clv_blob_plan *plan)
{
    if (!plan) return;
    if (plan->peaks)
        for (size_t i = 0; i < plan->shape.frames; ++i)
            clv_free(plan->peaks[i]);
    clv_blob_waves_clear(&plan->waves);
    clv_free(plan->tap), clv_free(plan->tap_f32), clv_free(plan->pedestal);
    clv_free(plan->seed), clv_free(plan->bad_pixels), clv_free(plan->peaks), clv_free(plan->room);
    clv_free(plan->found), clv_free(plan->max_response), clv_free(plan->spread);
    clv_free(plan->map), clv_free(plan->noiseless);
    clv_blob_sizes_clear(&plan->sizes);
    clv_free(plan);
}

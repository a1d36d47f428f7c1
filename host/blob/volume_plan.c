/* SPDX-License-Identifier: Apache-2.0 */
/* Turns options into scales, filter coefficients along three axes, thresholds, and slabs. */
#include "host/blob/volume_plan.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(clv_volume_peak) == CLV_VOLUME_PEAK_WORDS * sizeof(uint32_t),
               "a maximum as kernels write it");

enum { SAMPLES = 65536 }; /* most voxels whose responses are sampled for the noise */
static const size_t usual_scratch = 512u << 20; /* bytes of scratch memory per slab */

static clv_status check_stacks(clv_volume_stacks *s)
{
    if (!s->stacks || !s->depth || !s->height || !s->width || s->depth > 65535 ||
        s->height > 65535 || s->width > 65535)
        return clv_fail(
            CLV_E_SHAPE,
            "volumes: the stacks are [%zu,%zu,%zu,%zu], but every extent must be 1 to 65535",
            s->stacks, s->depth, s->height, s->width);
    size_t plane, stack, all;
    if (!s->row_stride) s->row_stride = s->width;
    if (!clv_size_mul(s->height, s->row_stride, &plane) ||
        !clv_size_mul(s->depth, s->plane_stride ? s->plane_stride : plane, &stack) ||
        !clv_size_mul(s->stacks, s->stack_stride ? s->stack_stride : stack, &all) ||
        all > SIZE_MAX / sizeof(float))
        return clv_fail(CLV_E_SHAPE,
                        "volumes: %zu stacks with strides of %zu, %zu and %zu elements reach "
                        "beyond what can be addressed",
                        s->stacks, s->stack_stride, s->plane_stride, s->row_stride);
    if (!s->plane_stride) s->plane_stride = plane;
    if (!s->stack_stride) s->stack_stride = stack;
    if (s->stack_stride < (s->depth - 1) * s->plane_stride)
        return clv_fail(CLV_E_SHAPE,
                        "volumes: with strides of %zu and %zu elements, planes or rows overlap",
                        s->stack_stride, s->plane_stride);
    return CLV_OK;
}

static clv_status read_voxel_size(clv_volume_plan *plan, const double *size)
{
    const bool given = size[CLV_Z] != 0 || size[CLV_Y] != 0 || size[CLV_X] != 0;
    for (int a = 0; a < CLV_AXES; ++a) {
        if (given && !(size[a] > 0 && isfinite(size[a])))
            return clv_fail(CLV_E_ARGUMENT,
                            "volumes: the voxel is %g x %g x %g (z, y, x), but its three sides "
                            "must be more than 0",
                            size[CLV_Z], size[CLV_Y], size[CLV_X]);
        plan->ratio[a] = given ? size[CLV_X] / size[a] : 1;
        if (!(plan->ratio[a] >= 1e-3 && plan->ratio[a] <= 1e3))
            return clv_fail(CLV_E_ARGUMENT,
                            "volumes: the voxel is %g x %g x %g (z, y, x), but its sides must be "
                            "within a factor of 1000",
                            size[CLV_Z], size[CLV_Y], size[CLV_X]);
    }
    return CLV_OK;
}

static clv_status place_taps(clv_volume_plan *plan)
{
    for (size_t l = 0; l < plan->levels; ++l)
        for (int a = 0; a < CLV_AXES; ++a) {
            clv_volume_taps *t = &plan->along[l][a];
            t->sigma = plan->sigma[l] * plan->ratio[a];
            const double reach = floor(4 * t->sigma + 0.5);
            if (reach > CLV_BLOB_MAX_RADIUS)
                return clv_fail(CLV_E_ARGUMENT,
                                "volumes: sigma is %g voxels along %c, but it must be at most %d",
                                t->sigma, "zyx"[a], CLV_BLOB_MAX_RADIUS / 4);
            t->radius = (uint32_t)reach, t->first = (uint32_t)plan->taps;
            plan->taps += t->radius + 1;
            plan->reach[a] = CLV_MAX(plan->reach[a], (size_t)t->radius);
        }
    return CLV_OK;
}

/* Returns the weight of the second derivatives: sigma^2 along the axis, or sigma^2 of the mean sigma as in
 * scikit-image. */
static double weight_of(const clv_volume_plan *plan, size_t level, int axis)
{
    const clv_volume_taps *t = plan->along[level];
    if (plan->flat->options.taps == CLV_BLOB_TAPS_ZERO_SUM) return t[axis].sigma * t[axis].sigma;
    const double mean = (t[CLV_Z].sigma + t[CLV_Y].sigma + t[CLV_X].sigma) / 3;
    return mean * mean;
}

static void make_axis(clv_volume_plan *plan, size_t level, int axis)
{
    const clv_volume_taps *along = &plan->along[level][axis];
    const double s2 = along->sigma * along->sigma, weight = weight_of(plan, level, axis);
    double *t = plan->tap + 2 * along->first, sum = 0, leak = 0;
    for (size_t j = 0; j <= along->radius; ++j)
        sum += (j ? 2 : 1) * exp(-(double)(j * j) / (2 * s2));
    for (size_t j = 0; j <= along->radius; ++j) {
        t[2 * j] = exp(-(double)(j * j) / (2 * s2)) / sum;
        t[2 * j + 1] = t[2 * j] * ((double)(j * j) / (s2 * s2) - 1 / s2) * -weight;
        leak += (j ? 2 : 1) * t[2 * j + 1];
    }
    if (plan->flat->options.taps == CLV_BLOB_TAPS_ZERO_SUM)
        for (size_t j = 0; j <= along->radius; ++j)
            t[2 * j + 1] -= leak * t[2 * j];
    else if (!plan->flat->options.dog)
        plan->leak[level] += (float)leak;
}

static clv_status make_taps(clv_volume_plan *plan)
{
    CLV_TRY(place_taps(plan));
    plan->tap = clv_alloc(plan->taps, 2 * sizeof *plan->tap);
    plan->tap_f32 = clv_alloc(plan->taps, 2 * sizeof *plan->tap_f32);
    if (!plan->tap || !plan->tap_f32)
        return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for filter coefficients");
    for (size_t l = 0; l < plan->levels; ++l)
        for (int a = 0; a < CLV_AXES; ++a)
            make_axis(plan, l, a);
    for (size_t i = 0; i < 2 * plan->taps; ++i)
        plan->tap_f32[i] = (float)plan->tap[i];
    return CLV_OK;
}

/* Computes what independent voxels of standard deviation 1 contribute to the responses of scale k. */
static void norm_of(clv_volume_plan *plan, size_t k)
{
    clv_blob_sums s[CLV_AXES];
    const bool dog = plan->flat->options.dog;
    for (int a = 0; a < CLV_AXES; ++a) {
        const clv_volume_taps *own = &plan->along[k][a], *next = &plan->along[dog ? k + 1 : k][a];
        s[a] = clv_blob_sums_of(plan->tap + 2 * own->first, own->radius,
                                plan->tap + 2 * next->first + (dog ? 0 : 1), next->radius);
    }
    const clv_blob_sums *z = &s[CLV_Z], *y = &s[CLV_Y], *x = &s[CLV_X];
    if (dog) {
        const double c = 1 / (plan->flat->options.sigma_ratio - 1);
        plan->norm[k] =
            c * sqrt(z->gg * y->gg * x->gg - 2 * z->gq * y->gq * x->gq + z->qq * y->qq * x->qq);
        plan->cubes[k] = c * c * c *
                         (z->ggg * y->ggg * x->ggg - 3 * z->ggq * y->ggq * x->ggq +
                          3 * z->qqg * y->qqg * x->qqg - z->qqq * y->qqq * x->qqq);
        return;
    }
    double squares = 0, cubes = 6 * z->ggq * y->ggq * x->ggq;
    for (int a = 0; a < CLV_AXES; ++a) {
        const clv_blob_sums *p = &s[a], *q = &s[(a + 1) % CLV_AXES], *r = &s[(a + 2) % CLV_AXES];
        squares += p->qq * q->gg * r->gg + 2 * p->gq * q->gq * r->gg;
        cubes +=
            p->qqq * q->ggg * r->ggg + 3 * (p->qqg * q->ggq * r->ggg + p->qqg * q->ggg * r->ggq);
    }
    plan->norm[k] = sqrt(squares), plan->cubes[k] = cubes;
}

/* Cuts the stack into slabs of the usual scratch memory. A slab also computes sums of the planes around it, which is
 * most of its work if it is thinner than these planes are many. Slabs of large planes therefore take more memory, up to
 * `scratch` bytes. */
static void make_slabs(clv_volume_plan *plan, size_t wanted, size_t scratch)
{
    plan->pitch = clv_round_up(plan->width, 32);
    /* keeps neighbouring rows off the same sets of cache lines */
    if (plan->pitch % 256 == 0) plan->pitch += 32;
    const size_t plane = plan->height * plan->pitch * sizeof(float);
    const size_t halo = 2 * plan->reach[CLV_Z] + 2, inputs = plan->flat->options.dog ? 1 : 2,
                 all = inputs + CLV_VOLUME_KEPT + 1;
    const size_t fixed = plane * (inputs * halo + 2 * all);
    const size_t thick = fixed + 2 * halo * plane * all;
    const size_t bytes = CLV_MAX(CLV_MIN(thick, scratch), usual_scratch);
    size_t most = bytes > fixed ? (bytes - fixed) / (plane * all) : 1;
    most = CLV_MAX(CLV_MIN(most, plan->depth), (size_t)1);
    const size_t even = (plan->depth + wanted - 1) / wanted;
    if (wanted > 1) most = CLV_MIN(most, CLV_MAX(even, halo / 2));
    plan->slabs = (plan->depth + most - 1) / most;
    plan->slab = (plan->depth + plan->slabs - 1) / plan->slabs;
    plan->slabs = (plan->depth + plan->slab - 1) / plan->slab;
    /* few slabs have more than one maximum per 512 voxels: noise alone has one per some 2500 */
    plan->capacity = clv_round_up(plan->slab * plan->height * plan->width / 512 + 1, 1024);
}

clv_volume_slab clv_volume_slab_of(const clv_volume_plan *plan, size_t unit)
{
    clv_volume_slab s = { .z0 = unit * plan->slab };
    const size_t reach = plan->reach[CLV_Z] + 1;
    s.z1 = CLV_MIN(s.z0 + plan->slab, plan->depth);
    s.low = s.z0 > reach ? s.z0 - reach : 0;
    s.high = CLV_MIN(s.z1 + reach, plan->depth);
    return s;
}

static clv_status fill(clv_volume_plan *plan, const clv_volume_stacks *stacks,
                       const clv_blob_options *options, size_t slabs_wanted, size_t scratch)
{
    clv_volume_stacks s;
    clv_blob_options o;
    CLV_TRY(clv_take_struct(&s, sizeof s, stacks, "clv_volumes", "clv_volume_stacks"));
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_volumes", "clv_blob_options"));
    CLV_TRY(check_stacks(&s));
    CLV_TRY(read_voxel_size(plan, o.voxel_size));
    const clv_blob_frames frames = { sizeof frames, s.type,         s.depth,     s.height,
                                     s.width,       s.plane_stride, s.row_stride };
    CLV_TRY(clv_blob_plan_create(&frames, &o, &plan->flat));
    const clv_blob_plan *flat = plan->flat;
    plan->depth = s.depth, plan->height = s.height, plan->width = s.width;
    plan->scales = flat->scales, plan->levels = flat->levels;
    memcpy(plan->sigma, flat->sigma, sizeof plan->sigma);
    CLV_TRY(make_taps(plan));
    const double voxels = (double)s.depth * (double)s.height * (double)s.width;
    plan->noise_step = CLV_MAX((size_t)cbrt(voxels / SAMPLES), (size_t)1);
    for (size_t k = 0; k < plan->scales; ++k) {
        norm_of(plan, k);
        plan->factor[k] =
            flat->by_noise
                ? (float)(CLV_BLOB_LISTED * flat->options.threshold_sigma * plan->norm[k])
                : flat->floor;
    }
    make_slabs(plan, CLV_MAX(slabs_wanted, (size_t)1), scratch);
    plan->bins = clv_zalloc(plan->scales * CLV_BLOB_NOISE_BINS, sizeof *plan->bins);
    if (!plan->bins) return clv_fail(CLV_E_MEMORY, "volumes: out of memory");
    return CLV_OK;
}

clv_status clv_volume_plan_create(const clv_volume_stacks *stacks, const clv_blob_options *options,
                                  size_t slabs_wanted, size_t scratch, clv_volume_plan **out)
{
    *out = NULL;
    clv_volume_plan *plan = clv_zalloc(1, sizeof *plan);
    if (!plan) return clv_fail(CLV_E_MEMORY, "volumes: out of memory");
    const clv_status status = fill(plan, stacks, options, slabs_wanted, scratch);
    if (status) {
        clv_volume_plan_free(plan);
        return status;
    }
    *out = plan;
    return CLV_OK;
}

void clv_volume_plan_free(clv_volume_plan *plan)
{
    if (!plan) return;
    clv_blob_plan_free(plan->flat);
    clv_free(plan->tap), clv_free(plan->tap_f32), clv_free(plan->peaks), clv_free(plan->bins);
    clv_free(plan);
}

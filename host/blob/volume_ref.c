/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the responses of a stack and their maxima in plain C and float64: the reference for the kernels, and the
 * fallback if no device works. */
#include "host/blob/volume_plan.h"

#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* A dense box of numbers [extent z, y, x]. */
typedef struct box {
    size_t extent[CLV_AXES];
} box;

static size_t step_of(const box *b, int axis)
{
    size_t step = 1;
    for (int a = CLV_X; a > axis; --a)
        step *= b->extent[a];
    return step;
}

/* Sets `out`, or if `add` adds to it, the sum over j of taps[|j|] in[at + j] along an axis, mirrored at the ends.
 * `which`: 0 for the Gaussian, 1 for the curvature. */
static void convolve(const clv_volume_plan *plan, const box *b, size_t level, int axis, int which,
                     bool add, const double *in, double *out)
{
    const clv_volume_taps *t = &plan->along[level][axis];
    const double *tap = plan->tap + 2 * t->first + which;
    const size_t size = b->extent[axis], step = step_of(b, axis),
                 all = b->extent[CLV_Z] * b->extent[CLV_Y] * b->extent[CLV_X];
    for (size_t i = 0; i < all; ++i) {
        const int64_t at = (int64_t)(i / step % size);
        const double *line = in + (i - (size_t)at * step);
        double sum = tap[0] * in[i];
        for (int64_t j = 1; j <= (int64_t)t->radius; ++j)
            sum += tap[2 * j] * (line[clv_blob_mirror(at - j, size) * step] +
                                 line[clv_blob_mirror(at + j, size) * step]);
        out[i] = add ? out[i] + sum : sum;
    }
}

/* Computes the responses of one level, or for the DoG the level's Gaussian, into `out`; `a` and `b` are scratch
 * memory. */
static void respond(const clv_volume_plan *plan, const box *s, size_t l, const double *voxels,
                    double *a, double *b, double *out)
{
    convolve(plan, s, l, CLV_X, 0, false, voxels, a); /* g_x */
    convolve(plan, s, l, CLV_Y, 0, false, a, b);      /* g_y g_x */
    if (plan->flat->options.dog) {
        convolve(plan, s, l, CLV_Z, 0, false, b, out);
        return;
    }
    convolve(plan, s, l, CLV_Z, 1, false, b, out); /* q_z g_y g_x */
    convolve(plan, s, l, CLV_Y, 1, false, a, b);   /* q_y g_x */
    convolve(plan, s, l, CLV_Z, 0, true, b, out);
    convolve(plan, s, l, CLV_X, 1, false, voxels, a); /* q_x */
    convolve(plan, s, l, CLV_Y, 0, false, a, b);
    convolve(plan, s, l, CLV_Z, 0, true, b, out);
}

clv_status clv_volume_responses(const clv_volume_plan *plan, double *responses)
{
    const box s = { { plan->depth, plan->height, plan->width } };
    const size_t all = plan->depth * plan->height * plan->width;
    double *memory = clv_alloc(all, 4 * sizeof *memory);
    if (!memory) return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for a stack");
    double *voxels = memory, *a = voxels + all, *b = a + all, *before = b + all;
    const bool dog = plan->flat->options.dog;
    const double pedestal = (double)plan->pedestal, gain = (double)plan->flat->gain;
    for (size_t i = 0; i < all; ++i) {
        const double v = clv_volume_voxel(plan, i / (plan->height * plan->width),
                                          i / plan->width % plan->height, i % plan->width);
        voxels[i] = isfinite(v) ? (v - pedestal) * gain : 0;
    }
    const double c = 1 / (plan->flat->options.sigma_ratio - 1);
    for (size_t l = 0; l < plan->levels; ++l) {
        double *out = responses + (dog ? (l ? l - 1 : 0) : l) * all;
        if (!dog) {
            respond(plan, &s, l, voxels, a, b, out);
            for (size_t i = 0; i < all; ++i)
                out[i] += (double)plan->leak[l] * pedestal * gain;
            continue;
        }
        /* DoG: the response is the previous level's Gaussian minus this level's */
        double *next = clv_alloc(all, sizeof *next);
        if (!next) {
            clv_free(memory);
            return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for a stack");
        }
        respond(plan, &s, l, voxels, a, b, next);
        for (size_t i = 0; l && i < all; ++i)
            out[i] = (before[i] - next[i]) * c;
        memcpy(before, next, all * sizeof *next);
        clv_free(next);
    }
    clv_free(memory);
    return CLV_OK;
}

/* The list of a slab's maxima. */
typedef struct list {
    const clv_volume_plan *plan;
    const double *L; /* [scales][depth][height][width] */
    clv_volume_peak *peaks;
    uint32_t *counts;
} list;

static double at_place(const list *v, int64_t k, int64_t z, int64_t y, int64_t x)
{
    const clv_volume_plan *p = v->plan;
    if (k < 0 || z < 0 || y < 0 || x < 0 || k >= (int64_t)p->scales || z >= (int64_t)p->depth ||
        y >= (int64_t)p->height || x >= (int64_t)p->width)
        return -INFINITY;
    return v
        ->L[(((size_t)k * p->depth + (size_t)z) * p->height + (size_t)y) * p->width + (size_t)x];
}

/* Lists a voxel if it is larger than all neighbours before it in the order (k, z, y, x) and not smaller than all
 * neighbours after it. */
static void consider(const list *v, int64_t k, int64_t z, int64_t y, int64_t x)
{
    const double value = at_place(v, k, z, y, x);
    for (int64_t i = 0; i < 81; ++i) {
        if (i == 40) continue;
        const double other =
            at_place(v, k + i / 27 - 1, z + i / 9 % 3 - 1, y + i / 3 % 3 - 1, x + i % 3 - 1);
        if (i < 40 ? !(value > other) : !(value >= other)) return;
    }
    const float own = (float)value;
    uint32_t bits;
    memcpy(&bits, &own, sizeof bits);
    v->counts[1] = CLV_MAX(v->counts[1], bits);
    if (v->counts[0]++ >= v->plan->capacity) return;
    clv_volume_peak *peak = &v->peaks[v->counts[0] - 1];
    *peak =
        (clv_volume_peak){ .z = (uint32_t)z, .y = (uint32_t)y, .x = (uint32_t)x, .k = (uint32_t)k };
    for (int64_t i = 0; i < 27; ++i)
        peak->around[i] = (float)at_place(v, k, z + i / 9 - 1, y + i / 3 % 3 - 1, x + i % 3 - 1);
    peak->below = (float)at_place(v, k - 1, z, y, x);
    peak->above = (float)at_place(v, k + 1, z, y, x);
    peak->own = own;
}

static void look(const list *v, const clv_volume_slab *s, uint32_t *bins)
{
    const clv_volume_plan *plan = v->plan;
    const clv_blob_plan *flat = plan->flat;
    const size_t step = flat->by_noise ? plan->noise_step : 0;
    const float relative = flat->by_noise ? 0 : (float)flat->options.threshold_rel;
    for (size_t k = 0; k < plan->scales; ++k)
        for (size_t z = s->z0; z < s->z1; ++z)
            for (size_t y = 0; y < plan->height; ++y)
                for (size_t x = 0; x < plan->width; ++x) {
                    const float *map = flat->map + z * flat->cells +
                                       (y >> flat->cell_shift) * flat->cells_across +
                                       (x >> flat->cell_shift);
                    const float floor = plan->factor[k] * *map;
                    const float value =
                        (float)at_place(v, (int64_t)k, (int64_t)z, (int64_t)y, (int64_t)x);
                    float largest;
                    memcpy(&largest, &v->counts[1], sizeof largest);
                    if (value > floor && value > relative * largest)
                        consider(v, (int64_t)k, (int64_t)z, (int64_t)y, (int64_t)x);
                    if (!step || z % step || y % step || x % step) continue;
                    const float size = fabsf(value / floor);
                    uint32_t bits;
                    memcpy(&bits, &size, sizeof bits);
                    const int64_t bin =
                        (int64_t)(bits >> CLV_BLOB_NOISE_SHIFT) - CLV_BLOB_NOISE_FIRST;
                    ++bins[k * CLV_BLOB_NOISE_BINS +
                           (size_t)(bin < 0 ? 0 : CLV_MIN(bin, (int64_t)CLV_BLOB_NOISE_BINS - 1))];
                }
}

clv_status clv_volume_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_volume_plan *plan = user;
    void *counts, *peaks, *bins;
    const size_t bin_bytes = plan->scales * CLV_BLOB_NOISE_BINS * sizeof(uint32_t);
    CLV_TRY(clv_slot_result_create(slot, CLV_VOLUME_COUNTS, count * 2 * sizeof(uint32_t), &counts));
    CLV_TRY(clv_slot_result_create(slot, CLV_VOLUME_PEAKS,
                                   count * plan->capacity * sizeof(clv_volume_peak), &peaks));
    CLV_TRY(clv_slot_result_create(slot, CLV_VOLUME_BINS, bin_bytes, &bins));
    memset(counts, 0, count * 2 * sizeof(uint32_t));
    memset(bins, 0, bin_bytes);
    double *L = clv_alloc(plan->scales * plan->depth * plan->height, plan->width * sizeof *L);
    if (!L)
        return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for the responses of a stack");
    const clv_status status = clv_volume_responses(plan, L);
    for (size_t i = 0; i < count && !status; ++i) {
        const clv_volume_slab s = clv_volume_slab_of(plan, first + i);
        const list v = { plan, L, (clv_volume_peak *)peaks + i * plan->capacity,
                         (uint32_t *)counts + 2 * i };
        look(&v, &s, bins);
    }
    clv_free(L);
    return status;
}

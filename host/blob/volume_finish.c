/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a stack's maxima into spots: judges, prunes, refines, measures and sorts them. */
#include "host/blob/blob_noise.h"
#include "host/blob/volume_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sort.h"
#include "base/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 16, SPOTS_A_THREAD = 32 };

/* ---- thresholds ------------------------------------------------------------------------------------ */

/* Returns the noise of scale k's responses where the voxels have noise `voxel`. */
static double noise_of(const clv_volume_plan *plan, size_t k, double voxel)
{
    const double least =
        plan->flat->shape.type == CLV_BLOB_F32 ? 0 : CLV_BLOB_ROUNDING * plan->norm[k];
    return fmax(plan->spread[k] * (double)plan->factor[k] * voxel, least);
}

/* Returns a response of scale k at the peak, divided by its threshold. */
static double times_threshold(const clv_volume_plan *plan, const clv_volume_peak *p, size_t k,
                              double response, double voxel, const clv_blob_skew *skew)
{
    const double noise = noise_of(plan, k, voxel) * clv_volume_edge(plan, k, p->z, p->y, p->x);
    const double third = skew->third * skew->variance * voxel * voxel * plan->cubes[k];
    return response /
           (noise * clv_blob_tail_at(&plan->flat->tail, third / (noise * noise * noise)));
}

static bool in_border(const clv_volume_plan *plan, const clv_volume_peak *p)
{
    const size_t border = plan->flat->options.exclude_border;
    return p->z < border || p->y < border || p->x < border || p->z + border >= plan->depth ||
           p->y + border >= plan->height || p->x + border >= plan->width;
}

/* Returns whether a voxel within `sigmas` times the peak's sigma is not finite. */
static bool bad_within(const clv_volume_plan *plan, const clv_volume_peak *p, double sigmas)
{
    size_t low[CLV_AXES], high[CLV_AXES];
    const size_t centre[CLV_AXES] = { p->z, p->y, p->x },
                 size[CLV_AXES] = { plan->depth, plan->height, plan->width };
    for (int a = 0; a < CLV_AXES; ++a) {
        const size_t reach = (size_t)(sigmas * plan->along[p->k][a].sigma);
        low[a] = centre[a] > reach ? centre[a] - reach : 0;
        high[a] = CLV_MIN(centre[a] + reach, size[a] - 1);
    }
    for (size_t z = low[CLV_Z]; z <= high[CLV_Z]; ++z) {
        if (!plan->flat->bad_pixels[z]) continue;
        for (size_t y = low[CLV_Y]; y <= high[CLV_Y]; ++y)
            for (size_t x = low[CLV_X]; x <= high[CLV_X]; ++x)
                if (!isfinite(clv_volume_voxel(plan, z, y, x))) return true;
    }
    return false;
}

/* Reads a voxel near the peak in the peak's plane; returns false outside the plane. */
static bool beside(const clv_volume_plan *plan, const clv_volume_peak *p, int64_t dy, int64_t dx,
                   double *value)
{
    const int64_t y = (int64_t)p->y + dy, x = (int64_t)p->x + dx;
    if (y < 0 || x < 0 || y >= (int64_t)plan->height || x >= (int64_t)plan->width) return false;
    *value = (double)plan->flat->gain * clv_volume_voxel(plan, p->z, (size_t)y, (size_t)x);
    return isfinite(*value);
}

/* Returns true for a pixel that is hot in its plane, by the rule for frames. In a spot of the smallest sigma, the four
 * neighbours have a known fraction of the centre's light. A peak counts as a spot if they have at least half of that
 * fraction, less one standard deviation of their noise. */
static bool is_hot(const clv_volume_plan *plan, const clv_volume_peak *p, double noise, double gain)
{
    enum { REACH = 3 };
    const double sigma = plan->along[0][CLV_X].sigma * sqrt(2);
    const double asked = 0.5 * (erf(1.5 / sigma) - erf(0.5 / sigma)) / 2 / erf(0.5 / sigma);
    float ring[8 * REACH];
    double v, middle, sum = 0;
    size_t count = 0, near_count = 0;
    if (!beside(plan, p, 0, 0, &middle)) return false;
    for (int64_t dy = -REACH; dy <= REACH; ++dy)
        for (int64_t dx = -REACH; dx <= REACH; ++dx) {
            const bool near = llabs(dy) + llabs(dx) == 1,
                       rim = llabs(dy) == REACH || llabs(dx) == REACH;
            if (!(near || rim) || !beside(plan, p, dy, dx, &v)) continue;
            if (near)
                sum += v, ++near_count;
            else
                ring[count++] = (float)v;
        }
    if (!count || !near_count) return false;
    const double ground = (double)clv_nth_float(ring, count, count / 2);
    const double light = middle - ground, neighbours = sum / (double)near_count - ground;
    const double own = noise * noise + gain * fmax(light, 0),
                 others = (noise * noise + gain * fmax(neighbours, 0)) / (double)near_count;
    return neighbours + sqrt(others + asked * asked * own) < asked * light;
}

/* The skewness and variance of each plane's noise, each computed once. The first estimate leaves out bright spots. */
typedef struct skews {
    clv_blob_skew *of; /* [depth] */
    bool *known;
    uint8_t *mask;
} skews;

static const clv_blob_skew *skew_of(const clv_volume_plan *plan, skews *s,
                                    const clv_volume_peak *peaks, size_t count, size_t z)
{
    static const double bright = 1.5;
    static const clv_blob_skew none = { 0, 1 };
    if (s->known[z]) return &s->of[z];
    const size_t across = (plan->width >> CLV_BLOB_MASK_SHIFT) + 1;
    memset(s->mask, 0, ((plan->height >> CLV_BLOB_MASK_SHIFT) + 1) * across);
    for (size_t i = 0; i < count; ++i) {
        const clv_volume_peak *p = &peaks[i];
        const double reach_z = 3 * plan->along[p->k][CLV_Z].sigma + 1;
        if (fabs((double)p->z - (double)z) > reach_z) continue;
        const double voxel = clv_blob_pixel_noise(plan->flat, p->z, p->y, p->x);
        if (times_threshold(plan, p, p->k, (double)p->own, voxel, &none) <= bright) continue;
        const size_t ry = (size_t)ceil(3 * plan->along[p->k][CLV_Y].sigma) + 1,
                     rx = (size_t)ceil(3 * plan->along[p->k][CLV_X].sigma) + 1;
        const size_t y0 = (p->y > ry ? p->y - ry : 0) >> CLV_BLOB_MASK_SHIFT,
                     x0 = (p->x > rx ? p->x - rx : 0) >> CLV_BLOB_MASK_SHIFT;
        const size_t y1 = CLV_MIN(p->y + ry, plan->height - 1) >> CLV_BLOB_MASK_SHIFT,
                     x1 = CLV_MIN(p->x + rx, plan->width - 1) >> CLV_BLOB_MASK_SHIFT;
        for (size_t y = y0; y <= y1; ++y)
            memset(s->mask + y * across + x0, 1, x1 - x0 + 1);
    }
    s->of[z] = clv_blob_find_skew(plan->flat, z, s->mask);
    s->known[z] = true;
    return &s->of[z];
}

/* Keeps peaks above the threshold for the local noise. The next larger scale gathers more of a spot's light and has
 * less noise, so a faint spot also counts if that scale's response is above its threshold. */
static clv_status above_noise(const clv_volume_plan *plan, clv_volume_peak *peaks, size_t *count,
                              clv_volume_found *found)
{
    static const clv_blob_skew none = { 0, 1 };
    skews s = { clv_alloc(plan->depth, sizeof *s.of), clv_zalloc(plan->depth, sizeof *s.known),
                clv_alloc((plan->height >> CLV_BLOB_MASK_SHIFT) + 1,
                          (plan->width >> CLV_BLOB_MASK_SHIFT) + 1) };
    const bool ok = s.of && s.known && s.mask;
    size_t kept = 0, likely = 0;
    for (size_t i = 0; i < *count && ok; ++i) {
        const clv_volume_peak *p = &peaks[i];
        const double voxel = clv_blob_pixel_noise(plan->flat, p->z, p->y, p->x);
        const double above =
            p->above > 0 ? times_threshold(plan, p, p->k + 1, (double)p->above, voxel, &none) : 0;
        if (fmax(above, times_threshold(plan, p, p->k, (double)p->own, voxel, &none)) > 1)
            peaks[likely++] = *p;
    }
    /* the masks use all `likely` peaks, so the peaks stay in place until the masks are made */
    for (size_t i = 0; i < likely && ok; ++i) {
        clv_volume_peak *p = &peaks[i];
        const clv_blob_skew *skew = skew_of(plan, &s, peaks, likely, p->z);
        const double voxel = clv_blob_pixel_noise(plan->flat, p->z, p->y, p->x);
        const double own = times_threshold(plan, p, p->k, (double)p->own, voxel, skew);
        const double above =
            p->above > 0 ? times_threshold(plan, p, p->k + 1, (double)p->above, voxel, skew) : 0;
        const bool hot = p->k == 0 && own > 1 && !plan->flat->options.keep_hot_pixels &&
                         is_hot(plan, p, voxel * sqrt(skew->variance), skew->third);
        found->hot += hot;
        p->zero[0] = !hot && fmax(own, above) > 1;
    }
    for (size_t i = 0; i < likely && ok; ++i)
        if (peaks[i].zero[0]) peaks[kept++] = peaks[i];
    *count = kept;
    clv_free(s.of), clv_free(s.known), clv_free(s.mask);
    return ok ? CLV_OK
              : clv_fail(CLV_E_MEMORY, "volumes: not enough memory to test %zu maxima", likely);
}

static clv_status judge(clv_volume_plan *plan, clv_volume_found *found)
{
    /* fraction of the largest response, for stacks without any noise */
    static const float usual_part = 0.2f;
    const clv_blob_plan *flat = plan->flat;
    bool noiseless = flat->by_noise;
    for (size_t z = 0; z < plan->depth; ++z)
        noiseless = noiseless && clv_blob_noiseless(flat, z);
    const bool noise = flat->by_noise && !noiseless;
    const float part = noiseless        ? usual_part
                       : flat->by_noise ? 0
                                        : (float)flat->options.threshold_rel;
    const float low = fmaxf(flat->floor, part * plan->max_response);
    for (size_t k = 0; k < plan->scales && flat->by_noise; ++k)
        plan->spread[k] = (double)clv_blob_spread(plan->bins + k * CLV_BLOB_NOISE_BINS);
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; ++i) {
        const clv_volume_peak *p = &plan->peaks[i];
        if (!(p->own > low) || in_border(plan, p)) continue;
        if (bad_within(plan, p, 2)) {
            ++found->dropped_bad;
            continue;
        }
        plan->peaks[kept++] = *p;
    }
    plan->count = kept;
    return noise ? above_noise(plan, plan->peaks, &plan->count, found) : CLV_OK;
}

/* ---- pruning --------------------------------------------------------------------------------------- */

static int by_place(const clv_volume_peak *a, const clv_volume_peak *b)
{
    if (a->z != b->z) return a->z < b->z ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    return (a->x > b->x) - (a->x < b->x);
}

/* Orders by larger sigma, larger response, then position: of overlapping peaks, the first in this order stays. */
static int by_rank(const void *left, const void *right)
{
    const clv_volume_peak *a = left, *b = right;
    if (a->k != b->k) return a->k > b->k ? -1 : 1;
    if (a->own != b->own) return a->own > b->own ? -1 : 1;
    return by_place(a, b);
}

static int by_response(const void *left, const void *right)
{
    const clv_volume_peak *a = left, *b = right;
    return a->own != b->own ? (a->own > b->own ? -1 : 1) : by_rank(left, right);
}

/* Returns the volume that two balls share, divided by the volume of the smaller ball. */
static double overlap_of(double d, double r1, double r2)
{
    if (d >= r1 + r2) return 0;
    if (d <= fabs(r1 - r2)) return 1;
    const double shared = (r1 + r2 - d) * (r1 + r2 - d) *
                          (d * d + 2 * d * (r1 + r2) - 3 * (r1 - r2) * (r1 - r2)) / (12 * d);
    const double smaller = fmin(r1, r2);
    return shared / (4.0 / 3 * smaller * smaller * smaller);
}

/* Cells at least as wide as the largest distance at which two balls touch. */
typedef struct cells {
    double side[CLV_AXES];
    size_t count[CLV_AXES];
    int32_t *head, *next;
} cells;

static clv_status make_cells(const clv_volume_plan *plan, size_t peaks, cells *c)
{
    enum { MOST = 128 }; /* most cells along an axis */
    const size_t size[CLV_AXES] = { plan->depth, plan->height, plan->width };
    size_t all = 1;
    for (int a = 0; a < CLV_AXES; ++a) {
        const double widest = plan->sigma[plan->scales - 1] * plan->ratio[a];
        c->side[a] = fmax(2 * sqrt(3) * widest, (double)size[a] / MOST);
        c->count[a] = (size_t)((double)size[a] / c->side[a]) + 1;
        all *= c->count[a];
    }
    c->head = clv_alloc(all, sizeof *c->head), c->next = clv_alloc(peaks + 1, sizeof *c->next);
    if (!c->head || !c->next)
        return clv_fail(CLV_E_MEMORY, "volumes: not enough memory to prune %zu spots", peaks);
    memset(c->head, -1, all * sizeof *c->head);
    return CLV_OK;
}

static bool overlaps_kept(const clv_volume_plan *plan, const cells *c, const clv_volume_peak *peaks,
                          size_t own)
{
    const clv_volume_peak *p = &peaks[own];
    const double place[CLV_AXES] = { p->z, p->y, p->x };
    size_t low[CLV_AXES], high[CLV_AXES];
    for (int a = 0; a < CLV_AXES; ++a) {
        const size_t at = (size_t)(place[a] / c->side[a]);
        low[a] = at ? at - 1 : 0, high[a] = CLV_MIN(at + 1, c->count[a] - 1);
    }
    for (size_t z = low[CLV_Z]; z <= high[CLV_Z]; ++z)
        for (size_t y = low[CLV_Y]; y <= high[CLV_Y]; ++y)
            for (size_t x = low[CLV_X]; x <= high[CLV_X]; ++x) {
                int32_t j = c->head[(z * c->count[CLV_Y] + y) * c->count[CLV_X] + x];
                for (; j >= 0; j = c->next[j]) {
                    const clv_volume_peak *q = &peaks[j];
                    const double dz = (place[CLV_Z] - q->z) / plan->ratio[CLV_Z],
                                 dy = (place[CLV_Y] - q->y) / plan->ratio[CLV_Y],
                                 dx = place[CLV_X] - q->x;
                    if (overlap_of(sqrt(dz * dz + dy * dy + dx * dx), sqrt(3) * plan->sigma[p->k],
                                   sqrt(3) * plan->sigma[q->k]) > plan->flat->options.overlap)
                        return true;
                }
            }
    return false;
}

static clv_status prune(clv_volume_plan *plan)
{
    clv_volume_peak *peaks = plan->peaks;
    cells c = { .head = NULL };
    /* not clv_sort, which takes only small items */
    if (plan->count)
        qsort(peaks, plan->count, sizeof *peaks, plan->flat->by_noise ? by_response : by_rank);
    if (plan->flat->options.keep_overlapping || !plan->count) return CLV_OK;
    const clv_status status = make_cells(plan, plan->count, &c);
    size_t kept = 0;
    for (size_t i = 0; i < plan->count && !status; ++i) {
        peaks[kept] = peaks[i];
        if (overlaps_kept(plan, &c, peaks, kept)) continue;
        const clv_volume_peak *p = &peaks[kept];
        int32_t *head = &c.head[((size_t)(p->z / c.side[CLV_Z]) * c.count[CLV_Y] +
                                 (size_t)(p->y / c.side[CLV_Y])) *
                                    c.count[CLV_X] +
                                (size_t)(p->x / c.side[CLV_X])];
        c.next[kept] = *head;
        *head = (int32_t)kept++;
    }
    if (!status) plan->count = kept;
    clv_free(c.head), clv_free(c.next);
    return status;
}

/* ---- spots ----------------------------------------------------------------------------------------- */

/* One thread's share of the spots: [first, last). */
typedef struct share {
    const clv_volume_plan *plan;
    const clv_volume_spot *guess, *before;
    clv_volume_spot *spots;
    size_t frame, count, first, last;
    bool failed; /* out: there was no memory for it */
} share;

static void *measure_some(void *argument)
{
    const share *s = argument;
    for (size_t i = s->first; i < s->last; ++i) {
        const clv_volume_peak *p = &s->plan->peaks[i];
        s->spots[i] = (clv_volume_spot){ .frame = (uint32_t)s->frame };
        clv_volume_refine(s->plan, p, &s->spots[i]);
        if (bad_within(s->plan, p, 4)) s->spots[i].flags |= CLV_SPOT_BAD_PIXEL;
        clv_volume_measure(s->plan, p, &s->spots[i]);
    }
    return NULL;
}

static void *fit_some(void *argument)
{
    share *s = argument;
    s->failed =
        !clv_volume_fit(s->plan, s->guess, s->before, s->spots, s->count, s->first, s->last);
    return NULL;
}

/* Returns whether no share failed. */
static bool in_shares(const share *all, size_t threads, void *(*work)(void *))
{
    share shares[MOST_THREADS];
    clv_thread started[MOST_THREADS];
    bool running[MOST_THREADS] = { false };
    const size_t wanted =
        CLV_MIN(CLV_MIN(threads, (size_t)MOST_THREADS), all->count / SPOTS_A_THREAD + 1);
    for (size_t i = 0; i < wanted; ++i) {
        shares[i] = *all;
        shares[i].first = all->count * i / wanted, shares[i].last = all->count * (i + 1) / wanted;
        if (i) running[i] = clv_thread_start(&started[i], "cleave-volume", work, &shares[i]);
    }
    for (size_t i = 0; i < wanted; ++i)
        if (!running[i]) work(&shares[i]);
    bool good = true;
    for (size_t i = 0; i < wanted; ++i) {
        if (running[i]) pthread_join(started[i], NULL);
        good = good && !shares[i].failed;
    }
    return good;
}

static int by_spot(const void *left, const void *right)
{
    const clv_volume_spot *a = left, *b = right;
    if (a->z != b->z) return a->z < b->z ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return (a->sigma > b->sigma) - (a->sigma < b->sigma);
}

/* Fits all spots twice: the second sweep subtracts the light of neighbours as fitted by the first sweep. */
static clv_status fit(const clv_volume_plan *plan, size_t threads, clv_volume_spot *spots,
                      size_t count)
{
    clv_volume_spot *guess = clv_alloc(count, 2 * sizeof *guess);
    if (!guess) return clv_fail(CLV_E_MEMORY, "volumes: not enough memory to fit %zu spots", count);
    clv_volume_spot *first = guess + count;
    memcpy(guess, spots, count * sizeof *guess);
    share all = { .plan = plan, .guess = guess, .spots = first, .count = count };
    bool good = in_shares(&all, threads, fit_some);
    all.before = first, all.spots = spots;
    good = good && in_shares(&all, threads, fit_some);
    if (good) qsort(spots, count, sizeof *spots, by_spot);
    clv_free(guess);
    return good ? CLV_OK
                : clv_fail(CLV_E_MEMORY, "volumes: not enough memory to fit %zu spots", count);
}

clv_status clv_volume_finish(clv_volume_plan *plan, size_t frame, size_t threads,
                             clv_volume_found *found)
{
    CLV_TRY(judge(plan, found));
    CLV_TRY(prune(plan));
    const size_t count = plan->count;
    if (!count) return CLV_OK;
    if (!clv_reserve(&found->spots, &found->room, found->count + count, sizeof *found->spots))
        return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for %zu spots",
                        found->count + count);
    clv_volume_spot *spots = found->spots + found->count;
    (void)in_shares(&(share){ .plan = plan, .spots = spots, .frame = frame, .count = count },
                    threads, measure_some);
    qsort(spots, count, sizeof *spots, by_spot);
    if (plan->flat->options.subpixel == CLV_BLOB_SUBPIXEL_FIT)
        CLV_TRY(fit(plan, threads, spots, count));
    found->count += count;
    return CLV_OK;
}

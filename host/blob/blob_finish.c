/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame's maxima to its spots: final thresholds, bad pixels, pruning, order. */
#include "host/blob/blob_job.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Larger sigma, larger response, smaller y, smaller x: who is visited first stays. */
static int by_rank(const void *left, const void *right)
{
    const clv_blob_peak *a = left, *b = right;
    if (a->k != b->k) return a->k > b->k ? -1 : 1;
    if (a->around[4] != b->around[4]) return a->around[4] > b->around[4] ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    return (a->x > b->x) - (a->x < b->x);
}

static int by_place(const void *left, const void *right)
{
    const clv_spot *a = left, *b = right;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return (a->sigma > b->sigma) - (a->sigma < b->sigma);
}

/* Shared area of two discs over the area of the smaller one. */
static double overlap_of(double distance, double r1, double r2)
{
    if (distance > r1 + r2) return 0;
    if (distance <= fabs(r1 - r2)) return 1;
    const double d = distance, d2 = d * d;
    const double c1 = fmin(fmax((d2 + r1 * r1 - r2 * r2) / (2 * d * r1), -1), 1);
    const double c2 = fmin(fmax((d2 + r2 * r2 - r1 * r1) / (2 * d * r2), -1), 1);
    const double k = fabs((-d + r1 + r2) * (d - r2 + r1) * (d + r2 - r1) * (d + r1 + r2));
    const double shared = r1 * r1 * acos(c1) + r2 * r2 * acos(c2) - 0.5 * sqrt(k);
    const double smaller = fmin(r1, r2);
    return shared / (pi * smaller * smaller);
}

clv_status clv_blob_finisher_create(const clv_blob_plan *plan, clv_blob_finisher *f)
{
    enum { MOST_CELLS = 1024 }; /* along a side */
    const size_t height = plan->shape.height, width = plan->shape.width;
    *f = (clv_blob_finisher){ 0 };
    f->side = fmax(2 * sqrt(2) * plan->sigma[plan->scales - 1],
                   (double)CLV_MAX(height, width) / MOST_CELLS);
    f->rows = (size_t)((double)height / f->side) + 1;
    f->columns = (size_t)((double)width / f->side) + 1;
    f->head = clv_alloc(f->rows * f->columns, sizeof *f->head);
    if (f->head && clv_reserve(&f->next, &f->next_room, CLV_BLOB_USUAL_SPOTS, sizeof *f->next) &&
        clv_reserve(&f->spots, &f->room, 3 * CLV_BLOB_USUAL_SPOTS, sizeof *f->spots))
        return CLV_OK;
    clv_blob_finisher_clear(f);
    return clv_fail(CLV_E_MEMORY, "blobs: no memory for spots");
}

void clv_blob_finisher_clear(clv_blob_finisher *f)
{
    clv_free(f->spots), clv_free(f->head), clv_free(f->next);
    *f = (clv_blob_finisher){ 0 };
}

/* Only spots in the same cell and those around it are compared. */
static bool overlaps_kept(const clv_blob_plan *plan, const clv_blob_finisher *f,
                          const clv_blob_peak *peaks, size_t i)
{
    const size_t row = (size_t)(peaks[i].y / f->side), column = (size_t)(peaks[i].x / f->side);
    const double r1 = sqrt(2) * plan->sigma[peaks[i].k];
    for (size_t y = row ? row - 1 : 0; y <= row + 1 && y < f->rows; ++y)
        for (size_t x = column ? column - 1 : 0; x <= column + 1 && x < f->columns; ++x)
            for (int32_t j = f->head[y * f->columns + x]; j >= 0; j = f->next[j]) {
                const double dy = (double)peaks[i].y - peaks[j].y,
                             dx = (double)peaks[i].x - peaks[j].x;
                if (overlap_of(sqrt(dy * dy + dx * dx), r1, sqrt(2) * plan->sigma[peaks[j].k]) >
                    plan->options.overlap)
                    return true;
            }
    return false;
}

/* Keeps a peak unless it overlaps one that was kept before. `peaks` are sorted by rank. */
static clv_status prune(const clv_blob_plan *plan, clv_blob_finisher *f, clv_blob_peak *peaks,
                        size_t *count)
{
    if (!clv_reserve(&f->next, &f->next_room, *count, sizeof *f->next))
        return clv_fail(CLV_E_MEMORY, "blobs: no memory to prune %zu spots", *count);
    size_t kept = 0;
    memset(f->head, -1, f->rows * f->columns * sizeof *f->head);
    for (size_t i = 0; i < *count; ++i) {
        peaks[kept] = peaks[i];
        if (overlaps_kept(plan, f, peaks, kept)) continue;
        int32_t *head = &f->head[(size_t)(peaks[kept].y / f->side) * f->columns +
                                 (size_t)(peaks[kept].x / f->side)];
        f->next[kept] = *head;
        *head = (int32_t)kept++;
    }
    *count = kept;
    return CLV_OK;
}

/* Whether a pixel within `radius` of (y, x) is not finite. */
static bool bad_within(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *peak,
                       double radius)
{
    const int64_t reach = (int64_t)ceil(radius);
    for (int64_t dy = -reach; dy <= reach; ++dy)
        for (int64_t dx = -reach; dx <= reach; ++dx) {
            const int64_t y = (int64_t)peak->y + dy, x = (int64_t)peak->x + dx;
            if (y < 0 || x < 0 || y >= (int64_t)plan->shape.height ||
                x >= (int64_t)plan->shape.width || (double)(dy * dy + dx * dx) > radius * radius)
                continue;
            if (!isfinite(clv_blob_pixel_at(plan, frame, (size_t)y, (size_t)x))) return true;
        }
    return false;
}

static size_t filter(const clv_blob_plan *plan, size_t frame, clv_blob_peak *peaks, size_t count,
                     size_t *dropped_bad)
{
    const float low = fmaxf(plan->floor, plan->relative * plan->max_response[frame]);
    const size_t border = plan->options.exclude_border;
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        const clv_blob_peak *p = &peaks[i];
        if (!(p->around[4] > low)) continue;
        if (p->y < border || p->x < border || p->y + border >= plan->shape.height ||
            p->x + border >= plan->shape.width)
            continue;
        if (plan->bad_pixels[frame] && bad_within(plan, frame, p, 2 * plan->sigma[p->k])) {
            ++*dropped_bad;
            continue;
        }
        peaks[kept++] = *p;
    }
    return kept;
}

clv_status clv_blob_finish(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *finisher,
                           size_t *count, size_t *dropped_bad)
{
    clv_blob_peak *peaks = plan->peaks[frame];
    const float *inverse = plan->inverse_noise + frame * plan->scales;
    *dropped_bad = 0;
    *count = filter(plan, frame, peaks, plan->found[frame], dropped_bad);
    if (!*count) return CLV_OK;
    clv_sort(peaks, *count, sizeof *peaks, by_rank);
    if (!plan->options.keep_overlapping) CLV_TRY(prune(plan, finisher, peaks, count));
    /* the fit wants two more copies */
    if (!clv_reserve(&finisher->spots, &finisher->room, 3 * *count, sizeof *finisher->spots))
        return clv_fail(CLV_E_MEMORY, "blobs: no memory for %zu spots", *count);
    clv_spot *spots = finisher->spots;
    for (size_t i = 0; i < *count; ++i) {
        clv_spot *spot = spots + i;
        *spot = (clv_spot){ .frame = (uint32_t)frame };
        clv_blob_refine(plan, &peaks[i], inverse, spot);
        if (plan->bad_pixels[frame] &&
            bad_within(plan, frame, &peaks[i], 4 * plan->sigma[peaks[i].k]))
            spot->flags |= CLV_SPOT_BAD_PIXEL;
        clv_blob_measure(plan, frame, &peaks[i], spot);
    }
    clv_sort(spots, *count, sizeof *spots, by_place);
    if (plan->options.subpixel == CLV_BLOB_SUBPIXEL_FIT) {
        clv_spot *guess = spots + 2 * *count;
        memcpy(guess, spots, *count * sizeof *guess);
        clv_blob_fit(plan, frame, guess, spots + *count, spots, *count);
        clv_sort(spots, *count, sizeof *spots, by_place);
    }
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one of several maxima whose discs overlap. */
#include "host/blob/blob_job.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Orders by larger sigma, larger response, smaller y, smaller x: of overlapping peaks, the first in this order stays. A
 * maximum from the device and a part of a split peak at the same place may differ in the last digit of a neighbouring
 * response, and the device's maxima come in any order. */
static int by_rank(const void *left, const void *right)
{
    const clv_blob_peak *a = left, *b = right;
    if (a->k != b->k) return a->k > b->k ? -1 : 1;
    if (a->own != b->own) return a->own > b->own ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    if (a->below != b->below) return a->below > b->below ? -1 : 1;
    if (a->above != b->above) return a->above > b->above ? -1 : 1;
    return memcmp(a->around, b->around, sizeof a->around);
}

/* Orders by larger response first, then as by_rank does. Responses are normalised, so a spot has its largest response
 * at its own scale. */
static int by_response(const void *left, const void *right)
{
    const clv_blob_peak *a = left, *b = right;
    if (a->own != b->own) return a->own > b->own ? -1 : 1;
    return by_rank(left, right);
}

double clv_blob_overlap(double distance, double r1, double r2)
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

/* Returns whether peak i overlaps a kept peak. Compares it only with peaks in the same cell and the cells around it. */
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
                if (clv_blob_overlap(sqrt(dy * dy + dx * dx), r1,
                                     sqrt(2) * plan->sigma[peaks[j].k]) > plan->options.overlap)
                    return true;
            }
    return false;
}

/* Keeps each peak unless it overlaps one that has already been kept. `peaks` are sorted by rank. */
static clv_status keep_apart(const clv_blob_plan *plan, clv_blob_finisher *f, clv_blob_peak *peaks,
                             size_t *count)
{
    if (!clv_reserve(&f->next, &f->next_room, *count, sizeof *f->next))
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory to prune %zu spots", *count);
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

/* Returns whether a peak lies on several spots. Two close spots cause a third maximum between them at a larger scale,
 * and it can be the strongest. So a peak is dropped in favour of two or more peaks of smaller scales within its disc
 * that do not overlap each other. */
static bool is_of_several(const clv_blob_plan *plan, const clv_blob_finisher *f,
                          const clv_blob_peak *peaks, size_t own)
{
    enum { MOST = 8 };
    static const double least = 0.5; /* fraction of the peak's response */
    const clv_blob_peak *p = &peaks[own], *parts[MOST];
    const size_t row = (size_t)(p->y / f->side), column = (size_t)(p->x / f->side);
    const double radius = sqrt(2) * plan->sigma[p->k];
    size_t count = 0;
    for (size_t y = row ? row - 1 : 0; y <= row + 1 && y < f->rows; ++y)
        for (size_t x = column ? column - 1 : 0; x <= column + 1 && x < f->columns; ++x)
            for (int32_t j = f->head[y * f->columns + x]; j >= 0; j = f->next[j]) {
                const clv_blob_peak *q = &peaks[j];
                const double dy = (double)q->y - p->y, dx = (double)q->x - p->x;
                if (q->k >= p->k || dy * dy + dx * dx > radius * radius ||
                    (double)q->own < least * (double)p->own)
                    continue;
                bool apart = true;
                for (size_t i = 0; i < count; ++i) {
                    const double ey = (double)q->y - parts[i]->y, ex = (double)q->x - parts[i]->x;
                    apart = apart &&
                            !(clv_blob_overlap(sqrt(ey * ey + ex * ex), sqrt(2) * plan->sigma[q->k],
                                               sqrt(2) * plan->sigma[parts[i]->k]) >
                              plan->options.overlap);
                }
                if (apart && count < MOST) parts[count++] = q;
            }
    return count > 1;
}

static clv_status drop_those_of_several(const clv_blob_plan *plan, clv_blob_finisher *f,
                                        clv_blob_peak *peaks, size_t *count)
{
    if (!clv_reserve(&f->next, &f->next_room, *count, sizeof *f->next))
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory to prune %zu spots", *count);
    memset(f->head, -1, f->rows * f->columns * sizeof *f->head);
    for (size_t i = 0; i < *count; ++i) {
        int32_t *head =
            &f->head[(size_t)(peaks[i].y / f->side) * f->columns + (size_t)(peaks[i].x / f->side)];
        f->next[i] = *head;
        *head = (int32_t)i;
    }
    for (size_t i = 0; i < *count; ++i)
        peaks[i].state = peaks[i].k > 0 && is_of_several(plan, f, peaks, i);
    size_t kept = 0;
    for (size_t i = 0; i < *count; ++i)
        if (!peaks[i].state) peaks[kept++] = peaks[i];
    *count = kept;
    return CLV_OK;
}

clv_status clv_blob_prune(const clv_blob_plan *plan, clv_blob_finisher *f, clv_blob_peak *peaks,
                          size_t *count)
{
    clv_sort(peaks, *count, sizeof *peaks, plan->by_noise ? by_response : by_rank);
    if (plan->options.keep_overlapping) return CLV_OK;
    if (plan->by_noise) CLV_TRY(drop_those_of_several(plan, f, peaks, count));
    return keep_apart(plan, f, peaks, count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a frame's maxima into spots: judges, prunes, refines, measures and sorts them. */
#include "host/blob/blob_job.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

static int by_place(const void *left, const void *right)
{
    const clv_spot *a = &((const clv_blob_found *)left)->spot,
                   *b = &((const clv_blob_found *)right)->spot;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return (a->sigma > b->sigma) - (a->sigma < b->sigma);
}

clv_status clv_blob_finisher_create(const clv_blob_plan *plan, clv_blob_finisher *f)
{
    enum { MOST_CELLS = 1024 }; /* most cells along a side */
    const size_t height = plan->shape.height, width = plan->shape.width;
    *f = (clv_blob_finisher){ 0 };
    f->side = fmax(2 * sqrt(2) * plan->sigma[plan->scales - 1],
                   (double)CLV_MAX(height, width) / MOST_CELLS);
    f->rows = (size_t)((double)height / f->side) + 1;
    f->columns = (size_t)((double)width / f->side) + 1;
    f->head = clv_alloc(f->rows * f->columns, sizeof *f->head);
    f->mask = clv_alloc((height >> CLV_BLOB_MASK_SHIFT) + 1, (width >> CLV_BLOB_MASK_SHIFT) + 1);
    if (f->head && f->mask &&
        clv_reserve(&f->next, &f->next_room, 2 * CLV_BLOB_USUAL_SPOTS, sizeof *f->next) &&
        clv_reserve(&f->peaks, &f->peaks_room, 2 * CLV_BLOB_USUAL_SPOTS, sizeof *f->peaks) &&
        clv_reserve(&f->spots, &f->room, 3 * CLV_BLOB_USUAL_SPOTS, sizeof *f->spots))
        return CLV_OK;
    clv_blob_finisher_clear(f);
    return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for spots");
}

void clv_blob_finisher_clear(clv_blob_finisher *f)
{
    clv_free(f->spots), clv_free(f->head), clv_free(f->next), clv_free(f->mask);
    clv_free(f->peaks);
    *f = (clv_blob_finisher){ 0 };
}

clv_status clv_blob_finish(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *finisher,
                           size_t *count)
{
    clv_blob_peak *peaks = plan->peaks[frame];
    *count = clv_blob_judge(plan, frame, finisher, peaks, plan->found[frame]);
    if (!*count) return CLV_OK;
    if (finisher->skew.variance > 0 && !plan->options.keep_overlapping)
        CLV_TRY(clv_blob_split(plan, frame, finisher, &peaks, count));
    CLV_TRY(clv_blob_prune(plan, finisher, peaks, count));
    /* the fit uses two more copies */
    if (!clv_reserve(&finisher->spots, &finisher->room, 3 * *count, sizeof *finisher->spots))
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu spots", *count);
    clv_blob_found *spots = finisher->spots;
    for (size_t i = 0; i < *count; ++i) {
        clv_spot *spot = &spots[i].spot;
        spots[i] = (clv_blob_found){ { .frame = (uint32_t)frame }, { NAN, NAN } };
        clv_blob_refine(plan, &peaks[i], spot);
        if (plan->bad_pixels[frame] &&
            clv_blob_bad_within(plan, frame, &peaks[i], 4 * plan->sigma[peaks[i].k]))
            spot->flags |= CLV_SPOT_BAD_PIXEL;
        clv_blob_measure(plan, frame, &peaks[i], spot);
    }
    clv_sort(spots, *count, sizeof *spots, by_place);
    if (plan->options.subpixel == CLV_BLOB_SUBPIXEL_FIT) {
        clv_blob_found *guess = spots + 2 * *count;
        memcpy(guess, spots, *count * sizeof *guess);
        clv_blob_fit(plan, frame, guess, spots + *count, spots, *count);
        clv_sort(spots, *count, sizeof *spots, by_place);
    }
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A fit whose inner arrays come back, on one device. */
#include "spectra_watch.h"

#include "test.h"

#include "base/alloc.h"

#include <string.h>

struct watched watched;

static clv_status keep(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_spectra_plan *plan = user;
    const size_t state = plan->options.starts * CLV_SPECTRA_STATE;
    if (plan->wish.watch)
        memcpy(watched.watched + first * watched.per_star,
               clv_slot_result(slot, CLV_SPECTRA_WATCHED),
               count * watched.per_star * sizeof(float));
    memcpy(watched.states + first * state, clv_slot_result(slot, CLV_SPECTRA_STATES),
           count * state * sizeof(float));
    memcpy(watched.found + CLV_SPECTRA_FOUND_BY_STAR * first,
           clv_slot_result(slot, CLV_SPECTRA_FOUND),
           count * CLV_SPECTRA_FOUND_BY_STAR * sizeof(float));
    return CLV_OK;
}

void watch_run(test_device *device, clv_spectra_plan *plan, const double *points, size_t count,
               clv_spectra_watch watch, size_t per_star)
{
    clv_job job = clv_spectra_job("stages", plan->stars.count);
    job.commit = keep;
    plan->wish.points = points, plan->wish.watch = watch, watched.per_star = per_star;
    if (points) plan->options.starts = (unsigned)count;
    watched.watched = clv_zalloc(plan->stars.count * per_star + 1, sizeof(float));
    watched.states =
        clv_zalloc(plan->stars.count * plan->options.starts * CLV_SPECTRA_STATE, sizeof(float));
    watched.found = clv_zalloc(plan->stars.count * CLV_SPECTRA_FOUND_BY_STAR, sizeof(float));
    assert_true(watched.watched && watched.states && watched.found);
    EXPECT_OK(clv_job_run(device->context, &job, plan, NULL));
}

void watch_forget(clv_spectra_plan *plan)
{
    clv_free(watched.watched), clv_free(watched.states), clv_free(watched.found);
    clv_spectra_plan_free(plan);
}

void watch_lane(size_t item, size_t pitch, size_t from, size_t n, size_t lane, double *out)
{
    for (size_t i = 0; i < n; ++i)
        out[i] = (double)watched.watched[(item * pitch + from + i) * 8 + lane];
}

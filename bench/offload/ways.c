/* SPDX-License-Identifier: Apache-2.0 */
/* Times the calls of a point on the host, on the device, and on the side that they choose. */
#include "bench/offload/ways.h"

#include "base/clock.h"
#include "base/error.h"
#include "runtime/offload/call.h"

enum { AGAIN = 2, CALLS = 100 };

clv_status ways_turn(grid_point *p, int way, double *seconds, bool *picked)
{
    static const double wakes_s = 10e-3, turn_s = 20e-3;
    static const clv_side forced[JUDGE_WAYS] = { CLV_SIDE_HOST, CLV_SIDE_DEVICE, CLV_SIDE_AUTO };
    double took[CALLS];
    clv_status status = CLV_OK;
    int count = 0, device = 0;
    const double started = clv_now();
    clv_offload_force(forced[way]);
    while (count < CALLS && !status) {
        clv_offload done;
        const double before = clv_now();
        status = grid_call(p);
        const double after = clv_now();
        if (before - started > wakes_s) {
            took[count++] = after - before;
            device += !clv_offload_last(&done) && done.side == CLV_SIDE_DEVICE;
        }
        if (after - started > turn_s && count) break;
    }
    clv_offload_force(CLV_SIDE_AUTO);
    if (count) *seconds = judge_median(took, count);
    *picked = 2 * device > count;
    return status;
}

/* Takes a turn, and repeats it, at most twice, if another program used the core. The library learns nothing from
 * forced calls. */
static clv_status calm_turn(grid_point *p, int way, double *seconds, bool *picked,
                            ways_count *count)
{
    for (int i = 0; i <= AGAIN; ++i) {
        const double before = judge_probe();
        const clv_status status = ways_turn(p, way, seconds, picked);
        CLV_TRY(status);
        ++count->all;
        if (!judge_disturbed(before, judge_probe())) break;
        ++count->disturbed;
    }
    return CLV_OK;
}

clv_status ways_round(grid_point *p, judge_rounds *r, ways_count *count)
{
    static const int orders[6][JUDGE_WAYS] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 },
                                               { 0, 2, 1 }, { 2, 0, 1 }, { 1, 0, 2 } };
    const int *order = orders[r->count % 6];
    for (int i = 0; i < JUDGE_WAYS; ++i) {
        bool picked;
        CLV_TRY(calm_turn(p, order[i], &r->took[order[i]][r->count], &picked, count));
        if (order[i] == JUDGE_AUTO) r->picked[r->count] = picked;
    }
    ++r->count;
    return CLV_OK;
}

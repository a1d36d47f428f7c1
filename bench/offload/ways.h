/* SPDX-License-Identifier: Apache-2.0 */
/* Declares how the calls of a point are timed. */
#ifndef CLEAVE_BENCH_OFFLOAD_WAYS_H
#define CLEAVE_BENCH_OFFLOAD_WAYS_H

#include "bench/offload/grid.h"
#include "bench/offload/judge.h"

typedef struct ways_count {
    int all, disturbed; /* turns */
} ways_count;

/* Makes calls in a row, as programs do, and returns their median in *seconds; calls in which the side wakes up do not
 * count. *picked: most of the counted calls ran on the device. */
clv_status ways_turn(grid_point *p, int way, double *seconds, bool *picked);

/* Does one round: each way once, in a different order each time. */
clv_status ways_round(grid_point *p, judge_rounds *r, ways_count *count);

#endif

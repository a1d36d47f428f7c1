/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two sides is the faster one, by rounds of timings, and how sure that is. */
#ifndef CLEAVE_BENCH_OFFLOAD_JUDGE_H
#define CLEAVE_BENCH_OFFLOAD_JUDGE_H

#include <stdbool.h>

enum { JUDGE_ROUNDS = 16, JUDGE_HOST = 0, JUDGE_DEVICE, JUDGE_AUTO, JUDGE_WAYS };

/* A round is one sample, however many calls it is of: a machine stays as it is for longer than a turn,
 * so that the calls of one are alike and the error by their number would be far too small. */
typedef struct judge_rounds {
    double took[JUDGE_WAYS][JUDGE_ROUNDS]; /* seconds of a call each way, in turns */
    bool picked[JUDGE_ROUNDS]; /* where nobody forced a side most calls went to the device */
    int count;
} judge_rounds;

/* Of one way's time to another's in the same round: the median, and where it lies in 94 to 98 %. */
typedef struct judge_ratio {
    double median, low, high;
} judge_ratio;

double judge_median(double *values, int count);
double judge_usual(const judge_rounds *rounds, int way); /* seconds: the median */
judge_ratio judge_compare(const judge_rounds *rounds, int way, int other);
/* More rounds would not change what is said of either side: the one is the faster one by more than 10
 * %, or neither is. */
bool judge_is_sure(const judge_rounds *rounds);

/* Seconds of a small sum that never changes. Longer than usual: somebody else has the core. */
double judge_probe(void);
/* Such times, before and after a turn, tell that it was disturbed. */
bool judge_disturbed(double before, double after);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Decides from rounds of timings which of two sides is faster, and how sure that verdict is. */
#ifndef CLEAVE_BENCH_OFFLOAD_JUDGE_H
#define CLEAVE_BENCH_OFFLOAD_JUDGE_H

#include <stdbool.h>

enum { JUDGE_ROUNDS = 16, JUDGE_HOST = 0, JUDGE_DEVICE, JUDGE_AUTO, JUDGE_WAYS };

/* A round is one sample, however many calls it consists of. A machine's state lasts longer than a turn, so the calls
 * of a turn are alike, and an error estimate from their number would be far too small. */
typedef struct judge_rounds {
    double took[JUDGE_WAYS][JUDGE_ROUNDS]; /* seconds per call each way, in turns */
    bool picked[JUDGE_ROUNDS]; /* if no side was forced: most calls went to the device */
    int count;
} judge_rounds;

/* The ratio of one way's time to another's in the same round: the median, and its confidence interval of 94 to
 * 98 %. */
typedef struct judge_ratio {
    double median, low, high;
} judge_ratio;

double judge_median(double *values, int count);
double judge_usual(const judge_rounds *rounds, int way); /* the median of the rounds, in seconds */
judge_ratio judge_compare(const judge_rounds *rounds, int way, int other);
/* Returns whether more rounds would not change the verdict: one side is faster by more than 10 %, or neither is. */
bool judge_is_sure(const judge_rounds *rounds);

/* Returns the seconds of a small fixed sum; if they are longer than usual, another program uses the core. */
double judge_probe(void);
/* Returns whether a turn was disturbed, judged by judge_probe's seconds before and after the turn. */
bool judge_disturbed(double before, double after);

#endif

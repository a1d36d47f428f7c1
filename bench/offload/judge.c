/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which of two sides is faster, by rounds of timings. */
#include "bench/offload/judge.h"

#include "base/clock.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double judge_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double judge_usual(const judge_rounds *r, int way)
{
    double sorted[JUDGE_ROUNDS];
    memcpy(sorted, r->took[way], sizeof sorted);
    return r->count ? judge_median(sorted, r->count) : 0;
}

/* Returns the ratio of two ways' times. The interval is that of the sign test, which assumes nothing about the
 * distribution of the ratios. */
judge_ratio judge_compare(const judge_rounds *r, int way, int other)
{
    double sorted[JUDGE_ROUNDS];
    if (!r->count) return (judge_ratio){ 0 };
    for (int i = 0; i < r->count; ++i)
        sorted[i] = r->took[way][i] / r->took[other][i];
    const double median = judge_median(sorted, r->count);
    const double outside = (r->count - 1.96 * sqrt(r->count)) / 2;
    const int first = outside > 0 ? (int)outside : 0;
    return (judge_ratio){ median, sorted[first], sorted[r->count - 1 - first] };
}

bool judge_is_sure(const judge_rounds *rounds)
{
    static const double bad = 1.1;
    const judge_ratio r = judge_compare(rounds, JUDGE_DEVICE, JUDGE_HOST);
    return r.low > bad || r.high < 1 / bad || (r.low > 1 / bad && r.high < bad);
}

double judge_probe(void)
{
    static volatile uint64_t kept = 1;
    const double before = clv_now();
    uint64_t x = kept;
    for (int i = 0; i < 100000; ++i)
        x = x * 0x9E3779B97F4A7C15u + 1;
    kept = x;
    return clv_now() - before;
}

bool judge_disturbed(double before, double after)
{
    static const double most = 1.3;
    static double least;
    const double low = fmin(before, after);
    if (!(least > 0) || low < least) least = low;
    return fmax(before, after) > most * least;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the median and the range of a list of times. */
#include "bench/command/bench.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_stat bench_stat_of(double *values, size_t count)
{
    if (!count) return (bench_stat){ 0 };
    qsort(values, count, sizeof *values, by_size);
    return (bench_stat){ .count = count,
                         .median = 0.5 * (values[(count - 1) / 2] + values[count / 2]),
                         .minimum = values[0],
                         .maximum = values[count - 1] };
}

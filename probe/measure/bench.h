/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the speed of a device: arithmetic, memory, transfers, launches. */
#ifndef CLEAVE_PROBE_BENCH_H
#define CLEAVE_PROBE_BENCH_H

#include <cleave/probe.h>

typedef struct clv_bench_result {
    clv_probe_rates rates; /* `date` and `protocol` in it point into this structure */
    char date[32], protocol[160];
} clv_bench_result;

/**
 * Measures a device with native ids. Rates are the best of several kernels and repeats, because
 * every disturbance makes a measurement slower. Rates that cannot be measured stay negative; the
 * protocol then says why.
 *
 * Blocking: QUICK under 3 s, FULL about 10 s, plus what the driver's compiler takes.
 */
void clv_bench_device(const clv_probe_device *device, clv_bench level, clv_bench_result *result);

#endif

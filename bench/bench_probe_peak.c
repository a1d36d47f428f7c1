/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how much of this processor's FMA rate the probe's bench reaches, in rounds of native code and every
 * OpenCL CPU device, so that a busy machine disturbs both alike. x86-64 only.
 *
 * usage: bench_probe_peak [ROUNDS]   prints medians and the ratio of each device to native code */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/clock.h"
#include "probe/measure/bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { CHAINS = 12, MOST_THREADS = 256, MOST_ROUNDS = 99, TURNS = 8000000 };

static volatile float sink;

__attribute__((target("avx512f"))) static void fma_512(long turns)
{
    const __m512 a = _mm512_set1_ps(0.9f), b = _mm512_set1_ps(0.1f);
    __m512 x[CHAINS];
    for (int i = 0; i < CHAINS; ++i)
        x[i] = _mm512_set1_ps((float)i);
    for (long t = 0; t < turns; ++t)
        for (int i = 0; i < CHAINS; ++i)
            x[i] = _mm512_fmadd_ps(x[i], a, b);
    for (int i = 1; i < CHAINS; ++i)
        x[0] = _mm512_add_ps(x[0], x[i]);
    sink = _mm512_reduce_add_ps(x[0]);
}

__attribute__((target("avx2,fma"))) static void fma_256(long turns)
{
    const __m256 a = _mm256_set1_ps(0.9f), b = _mm256_set1_ps(0.1f);
    __m256 x[CHAINS];
    for (int i = 0; i < CHAINS; ++i)
        x[i] = _mm256_set1_ps((float)i);
    for (long t = 0; t < turns; ++t)
        for (int i = 0; i < CHAINS; ++i)
            x[i] = _mm256_fmadd_ps(x[i], a, b);
    for (int i = 1; i < CHAINS; ++i)
        x[0] = _mm256_add_ps(x[0], x[i]);
    sink = _mm256_cvtss_f32(x[0]);
}

/* Runs on the `place`-th processor that this program may use: on a busy machine, the system might leave two new
 * threads on one. */
static void *one_thread(void *place)
{
    cpu_set_t allowed, mine;
    size_t left = (size_t)(uintptr_t)place;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &allowed) && left-- == 0) CPU_SET(cpu, &mine);
        pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
    }
    if (__builtin_cpu_supports("avx512f"))
        fma_512(TURNS);
    else
        fma_256(TURNS);
    return NULL;
}

/* Returns the GFLOP/s of all threads together, the best of a few runs, since disturbances only make it slower. */
static double native_gflops(unsigned threads)
{
    const bool wide = __builtin_cpu_supports("avx512f");
    const double flops = 2.0 * CHAINS * (wide ? 16 : 8) * TURNS * threads;
    double best = 0;
    for (int repeat = 0; repeat < 12; ++repeat) {
        pthread_t ids[MOST_THREADS];
        const double start = clv_now();
        for (unsigned i = 0; i < threads; ++i)
            pthread_create(&ids[i], NULL, one_thread, (void *)(uintptr_t)i);
        for (unsigned i = 0; i < threads; ++i)
            pthread_join(ids[i], NULL);
        best = CLV_MAX(best, flops / (clv_now() - start) * 1e-9);
    }
    return best;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    static double native[MOST_ROUNDS], rates[16][MOST_ROUNDS], ratios[16][MOST_ROUNDS];
    const int rounds = CLV_MIN(argc > 1 ? CLV_MAX(atoi(argv[1]), 1) : 5, MOST_ROUNDS);
    clv_probe_report *report;
    if (!__builtin_cpu_supports("fma") || clv_probe_run(NULL, &report)) {
        printf("SKIPPED: no FMA, or no probe: %s\n", clv_error_message());
        return 77;
    }
    const unsigned threads = CLV_MIN(report->host.threads_allowed, (unsigned)MOST_THREADS);
    const size_t devices = CLV_MIN(report->device_count, CLV_LEN(rates));
    for (int r = 0; r < rounds; ++r) {
        native[r] = native_gflops(threads);
        for (size_t i = 0; i < devices; ++i) {
            clv_bench_result result;
            if (report->devices[i].device_class != CLV_CLASS_CPU) continue;
            clv_bench_device(&report->devices[i], CLV_BENCH_QUICK, &result);
            rates[i][r] = result.rates.fp32_gflops;
            ratios[i][r] = result.rates.fp32_gflops / native[r];
        }
    }
    printf("native code, %u threads: %.1f GFLOP/s (median of %d)\n", threads,
           median(native, rounds), rounds);
    for (size_t i = 0; i < devices; ++i)
        if (report->devices[i].device_class == CLV_CLASS_CPU)
            printf("%s: %.1f GFLOP/s, %.0f %% of native (median of paired ratios)\n",
                   report->platforms[report->devices[i].platform].name, median(rates[i], rounds),
                   100 * median(ratios[i], rounds));
    clv_probe_free(report);
    return 0;
}
#else
int main(void)
{
    printf("SKIPPED: written for x86-64\n");
    return 77;
}
#endif

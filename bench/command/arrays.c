/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on plain arrays in `cleave bench`, from memory to memory: sizes and costs. */
#include "bench/command/arrays.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/offload.h>

#include <stdio.h>
#include <string.h>

enum { ALWAYS, QUICK, FULL };

static const struct {
    const char *name;
    arrays_kind kind;
    size_t size[3];
    int when;
} rows[] = {
    { "matmul 512x512", ARRAYS_MATMUL, { 512, 512, 512 }, ALWAYS },
    { "matmul 1024x1024", ARRAYS_MATMUL, { 1024, 1024, 1024 }, ALWAYS },
    { "matmul 2048x2048", ARRAYS_MATMUL, { 2048, 2048, 2048 }, FULL },
    { "matmul 5000x5000", ARRAYS_MATMUL, { 5000, 5000, 5000 }, FULL },
    { "500 products of 64x64", ARRAYS_BATCHED, { 500, 64, 1 }, ALWAYS },
    { "200 products of 256x256", ARRAYS_BATCHED, { 200, 256, 1 }, FULL },
    { "filter 1024x1024 by 9x9", ARRAYS_CONVOLVE, { 1024, 1024, 9 }, QUICK },
    { "filter 2048x2048 by 9x9", ARRAYS_CONVOLVE, { 2048, 2048, 9 }, FULL },
    { "gaussian 1024x1024, sigma 2", ARRAYS_GAUSSIAN, { 1024, 1024, 8 }, QUICK },
    { "gaussian 2048x2048, sigma 2", ARRAYS_GAUSSIAN, { 2048, 2048, 8 }, FULL },
    { "normalise 512x256, and z z^T", ARRAYS_NORMALIZE, { 512, 256, 1 }, QUICK },
    { "normalise 2048x512, and z z^T", ARRAYS_NORMALIZE, { 2048, 512, 1 }, FULL },
    { "train step 20000x64", ARRAYS_STEP, { 20000, 64, 1 }, QUICK },
    { "train step 200000x64", ARRAYS_STEP, { 200000, 64, 1 }, FULL },
    { "100 train steps 20000x64", ARRAYS_LOOP, { 20000, 64, 100 }, ALWAYS },
    { "pi by 10 million samples", ARRAYS_PI, { 10000, 1, 1 }, QUICK },
    { "pi by 1000 million samples", ARRAYS_PI, { 1000000, 1, 1 }, FULL },
    { "eigenvalues, 2000 symmetric 12x12", ARRAYS_EIGVALSH, { 2000, 12, 1 }, ALWAYS },
    { "eigenvalues, 500 symmetric 32x32", ARRAYS_EIGVALSH, { 500, 32, 1 }, ALWAYS },
    { "eigenvalues, 100 symmetric 64x64", ARRAYS_EIGVALSH, { 100, 64, 1 }, ALWAYS },
    { "eigenvalues, 10000 symmetric 32x32", ARRAYS_EIGVALSH, { 10000, 32, 1 }, FULL },
    { "eigenvalues, 100 general 64x64", ARRAYS_EIGVALS, { 100, 64, 1 }, ALWAYS },
    { "eigenvalues, 8 general 500x500", ARRAYS_EIGVALS, { 8, 500, 1 }, FULL },
    { "expression of 1 million elements", ARRAYS_MAP, { 1000000, 1, 1 }, ALWAYS },
    { "expression of 20 million elements", ARRAYS_MAP, { 20000000, 1, 1 }, FULL },
    { "sum of 1 million elements", ARRAYS_SUM, { 1000, 1000, 1 }, ALWAYS },
    { "sum of 16 million elements", ARRAYS_SUM, { 4000, 4000, 1 }, FULL },
    { "variance of 1000 columns of 1000", ARRAYS_VAR, { 1000, 1000, 1 }, ALWAYS },
    { "variance of 4000 columns of 4000", ARRAYS_VAR, { 4000, 4000, 1 }, FULL },
};

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    size_t count = 0;
    if (sizes->given_count) return 0;
    for (size_t i = 0; i < CLV_LEN(rows) && count < room; ++i) {
        if (rows[i].when != ALWAYS && (rows[i].when == FULL) != sizes->full) continue;
        bench_case *c = &cases[count++];
        *c = (bench_case){ .workload = &bench_arrays, .variant = rows[i].kind };
        memcpy(c->size, rows[i].size, sizeof c->size);
        snprintf(c->name, sizeof c->name, "%s", rows[i].name);
    }
    return count;
}

/* Computes the arithmetic of a case and the bytes that must move at least. Eigenvalues count as in LAPACK: 4/3 n^3,
 * and 10 n^3 for general matrices. Random points use integers, so they have no flops. */
static void cost_of(const bench_case *c, double *flops, double *bytes)
{
    const double a = (double)c->size[0], b = (double)c->size[1], k = (double)c->size[2];
    const double side = 2 * k + 1, n3 = a * b * b * b;
    double floats = a * b;
    *flops = 0;
    switch ((arrays_kind)c->variant) {
    case ARRAYS_MATMUL:
        *flops = 2 * a * b * k, floats = a * k + k * b + a * b;
        break;
    case ARRAYS_BATCHED:
        *flops = 2 * n3, floats = 3 * a * b * b;
        break;
    case ARRAYS_CONVOLVE:
        *flops = 2 * a * b * k * k, floats = 2 * a * b;
        break;
    case ARRAYS_GAUSSIAN:
        *flops = 2 * a * b * side * side, floats = 2 * a * b;
        break;
    case ARRAYS_NORMALIZE:
        *flops = 2 * a * a * b + 8 * a * b, floats = 2 * a * b + a * a;
        break;
    case ARRAYS_STEP:
        *flops = 4 * a * b;
        break;
    case ARRAYS_LOOP:
        *flops = 4 * a * b * k, floats = a * b * k;
        break;
    case ARRAYS_PI:
        floats = 0;
        break;
    case ARRAYS_EIGVALSH:
        *flops = 4 * n3 / 3, floats = a * b * b;
        break;
    case ARRAYS_EIGVALS:
        *flops = 10 * n3, floats = a * b * b;
        break;
    case ARRAYS_MAP:
        *flops = 9 * a, floats = 3 * a;
        break;
    case ARRAYS_SUM:
        *flops = a * b;
        break;
    case ARRAYS_VAR:
        *flops = 4 * a * b;
    }
    *bytes = floats * sizeof(float);
}

static double effort_of(const bench_case *c)
{
    double flops, bytes;
    cost_of(c, &flops, &bytes);
    return flops > 0 ? flops : (double)c->size[0];
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    const bench_party *party = &run->bench->parties[run->party];
    const bool same = case_index && c[-1].workload == c->workload && c[-1].variant == c->variant;
    double values[BENCH_MOST_SAMPLES], seconds, flops, bytes;
    size_t count = 0;
    if (!same) run->seconds_per_effort = 0; /* one operation predicts nothing about another */
    if (bench_is_too_long(run, case_index)) return CLV_OK;
    if (c->variant == ARRAYS_EIGVALS && party->kind == BENCH_REFERENCE)
        return CLV_OK; /* this is the host's LAPACK, the same on every device */
    arrays_trial t = { .context = run->context, .c = c };
    const clv_side before =
        clv_offload_force(party->kind == BENCH_REFERENCE ? CLV_SIDE_HOST : CLV_SIDE_DEVICE);
    clv_status status = arrays_open(&t);
    clv_offload_dry(true); /* asking for a plan times both sides now */
    if (!status) status = arrays_once(&t, &seconds);
    clv_offload_dry(false);
    if (!status) status = arrays_once(&t, &seconds); /* compiles, touches memory, learns speeds */
    if (!status) status = bench_repeat(&run->bench->plan, arrays_once, &t, values, &count);
    clv_offload_force(before);
    arrays_close(&t);
    CLV_TRY(status);
    cost_of(c, &flops, &bytes);
    bench_send(run, case_index, BENCH_COMPUTE, values, count);
    bench_send_cost(run, case_index, flops, bytes);
    run->seconds_per_effort = bench_stat_of(values, count).median / effort_of(c);
    return CLV_OK;
}

const bench_workload bench_arrays = {
    .name = "arrays",
    .title = "Arrays: products, filters, statistics, regression, eigenvalues, expressions",
    .cases = list_cases,
    .effort = effort_of,
    .measure = measure,
};

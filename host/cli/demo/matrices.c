/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: two rows that are alike among a thousand, by normalisation and all products of rows;
 * eigenvalues that many matrices were made of. */
#include "host/cli/demo/demo.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/offload.h>

#include <math.h>
#include <stdio.h>

enum { ROWS = 1000, WIDTH = 256, FIRST = 123, SECOND = 854, COUNT = 500, N = 24 };

typedef struct tables {
    float *x, *gram;          /* [ROWS,WIDTH], [ROWS,ROWS] */
    float *matrices, *values; /* [COUNT,N,N], [COUNT,N] */
    double eigen_error;       /* worst, of known values up to N */
    size_t pair[2];
} tables;

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

/* A matrix of the eigenvalues 1 to N: their diagonal, reflected at a random plane: (1 - 2 v v^T) D
 * (1 - 2 v v^T). */
static void make_matrix(float *out, uint32_t *state)
{
    double v[N], length = 0, weighted = 0;
    for (size_t i = 0; i < N; ++i) {
        v[i] = number(state);
        length += v[i] * v[i];
    }
    for (size_t i = 0; i < N; ++i) {
        v[i] /= sqrt(length);
        weighted += v[i] * v[i] * (double)(i + 1);
    }
    for (size_t i = 0; i < N; ++i)
        for (size_t j = 0; j < N; ++j)
            out[i * N + j] = (float)((i == j) * (double)(i + 1) +
                                     v[i] * v[j] * (4 * weighted - 2 * (double)(i + j + 2)));
}

static clv_status make_tables(tables *t)
{
    uint32_t state = 5;
    t->x = clv_alloc((size_t)ROWS * WIDTH, sizeof *t->x);
    t->gram = clv_alloc((size_t)ROWS * ROWS, sizeof *t->gram);
    t->matrices = clv_alloc((size_t)COUNT * N * N, sizeof *t->matrices);
    t->values = clv_alloc((size_t)COUNT * N, sizeof *t->values);
    if (!t->x || !t->gram || !t->matrices || !t->values)
        return clv_fail(CLV_E_MEMORY, "no memory for matrices");
    for (size_t i = 0; i < (size_t)ROWS * WIDTH; ++i)
        t->x[i] = number(&state);
    for (size_t j = 0; j < WIDTH; ++j) /* half of it is the other's */
        t->x[SECOND * WIDTH + j] = 0.5f * (t->x[SECOND * WIDTH + j] + t->x[FIRST * WIDTH + j]);
    for (size_t i = 0; i < COUNT; ++i)
        make_matrix(t->matrices + i * N * N, &state);
    return CLV_OK;
}

static clv_status solve(clv_context *context, tables *t, double *seconds)
{
    const size_t shape[] = { ROWS, WIDTH }, square[] = { ROWS, ROWS };
    clv_array *x = NULL, *z = NULL, *gram = NULL;
    const double started = clv_now();
    clv_status status = clv_array_wrap(context, t->x, 2, shape, &x);
    if (!status) status = clv_array_create(context, 2, shape, &z);
    if (!status) status = clv_array_wrap(context, t->gram, 2, square, &gram);
    if (!status) status = clv_normalize(context, x, z, gram, NULL, NULL);
    clv_array_free(x), clv_array_free(z), clv_array_free(gram);
    if (!status) status = clv_eigvalsh(context, t->matrices, COUNT, N, NULL, t->values, NULL);
    *seconds = clv_now() - started;
    t->eigen_error = 0;
    for (size_t i = 0; i < (size_t)COUNT * N; ++i)
        t->eigen_error = fmax(t->eigen_error, fabs((double)t->values[i] - (double)(i % N + 1)));
    float best = 0;
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t j = i + 1; j < ROWS; ++j)
            if (t->gram[i * ROWS + j] > best) {
                best = t->gram[i * ROWS + j];
                t->pair[0] = i, t->pair[1] = j;
            }
    return status;
}

/* On the devices, as that is what the table is about; by whoever can where they fail. */
static clv_status solve_there(clv_context *context, tables *t, double *seconds)
{
    const bool devices = clv_context_device_count(context) > 0;
    const clv_side before = clv_offload_force(devices ? CLV_SIDE_DEVICE : CLV_SIDE_AUTO);
    const clv_status status = solve(context, t, seconds);
    clv_offload_force(before);
    return status ? solve(context, t, seconds) : CLV_OK;
}

/* Plain C's sum of squares over all rows, and ours: one number for a million products. */
static double size_of(const tables *t)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)ROWS * ROWS; ++i)
        sum += (double)t->gram[i] * (double)t->gram[i];
    return sqrt(sum);
}

static clv_status run(clv_context *context, tables *t, demo_row *row)
{
    const clv_context_options options = { .mode = CLV_MODE_REFERENCE, .cache_dir = "" };
    clv_context *plain = NULL;
    clv_offload where;
    CLV_TRY(clv_context_create(&options, &plain));
    clv_status status = solve(plain, t, &row->reference_s);
    clv_context_free(plain);
    CLV_TRY(status);
    const double want = size_of(t);
    CLV_TRY(solve_there(context, t, &row->first_s));
    row->seconds = INFINITY;
    for (int turn = 1; turn < DEMO_TURNS; ++turn) {
        double took;
        CLV_TRY(solve_there(context, t, &took));
        row->seconds = fmin(row->seconds, took);
    }
    CLV_TRY(clv_offload_last(&where));
    snprintf(row->by, sizeof row->by, "%s",
             where.side == CLV_SIDE_DEVICE ? where.device : "the host");
    snprintf(row->found, sizeof row->found, "rows %zu and %zu are alike", t->pair[0], t->pair[1]);
    const bool same = fabs(size_of(t) - want) < 1e-5 * want && t->eigen_error < 2e-4;
    clv_text_add(&row->notes, "%s plain C: products to %.0e; %d eigenvalues to %.0e\n",
                 same ? "agrees with" : "DIFFERS FROM", fabs(size_of(t) - want) / want, COUNT * N,
                 t->eigen_error / N);
    row->ok = same && t->pair[0] == FIRST && t->pair[1] == SECOND;
    return CLV_OK;
}

clv_status demo_matrices(clv_context *context, const char *folder, clv_report *report,
                         demo_row *row)
{
    tables t = { 0 };
    (void)folder, (void)report;
    snprintf(row->input, sizeof row->input, "%d rows, %d matrices", ROWS, COUNT);
    clv_status status = make_tables(&t);
    if (!status) status = run(context, &t, row);
    clv_free(t.x), clv_free(t.gram), clv_free(t.matrices), clv_free(t.values);
    return status;
}

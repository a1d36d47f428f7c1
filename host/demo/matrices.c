/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: finds two similar rows among a thousand by normalising them and multiplying all pairs, and computes
 * the known eigenvalues of many matrices. */
#include "host/demo/demo.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/array.h>
#include <cleave/array_math.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 1000, WIDTH = 256, FIRST = 123, SECOND = 854, COUNT = 500, N = 24 };

typedef struct tables {
    float *x, *gram, *plain;  /* [ROWS,WIDTH], [ROWS,ROWS]; `plain`: gram from plain C */
    float *matrices, *values; /* [COUNT,N,N], [COUNT,N] */
    double eigen_error;       /* largest error of the eigenvalues, which are 1 to N */
    double gram_error;        /* largest error of `gram`, whose values are at most WIDTH */
    size_t pair[2];
} tables;

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

/* Makes a matrix with the eigenvalues 1 to N: their diagonal matrix D, reflected at a random plane: (1 - 2 v v^T) D
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
    t->plain = clv_alloc((size_t)ROWS * ROWS, sizeof *t->plain);
    t->matrices = clv_alloc((size_t)COUNT * N * N, sizeof *t->matrices);
    t->values = clv_alloc((size_t)COUNT * N, sizeof *t->values);
    if (!t->x || !t->gram || !t->plain || !t->matrices || !t->values)
        return clv_fail(CLV_E_MEMORY, "not enough memory for matrices");
    for (size_t i = 0; i < (size_t)ROWS * WIDTH; ++i)
        t->x[i] = number(&state);
    for (size_t j = 0; j < WIDTH; ++j) /* makes the second row resemble the first */
        t->x[SECOND * WIDTH + j] = 0.5f * (t->x[SECOND * WIDTH + j] + t->x[FIRST * WIDTH + j]);
    for (size_t i = 0; i < COUNT; ++i)
        make_matrix(t->matrices + i * N * N, &state);
    return CLV_OK;
}

static clv_status solve(clv_context *context, void *user)
{
    tables *t = user;
    const size_t shape[] = { ROWS, WIDTH }, square[] = { ROWS, ROWS };
    clv_array *x = NULL, *z = NULL, *gram = NULL;
    clv_status status = clv_array_wrap(context, t->x, 2, shape, &x);
    if (!status) status = clv_array_create(context, 2, shape, &z);
    if (!status) status = clv_array_wrap(context, t->gram, 2, square, &gram);
    if (!status) status = clv_normalize(context, x, z, gram, NULL, NULL);
    clv_array_free(x), clv_array_free(z), clv_array_free(gram);
    if (!status) status = clv_eigvalsh(context, t->matrices, COUNT, N, NULL, t->values, NULL);
    return status;
}

static void judge(tables *t)
{
    float best = 0;
    t->eigen_error = t->gram_error = 0;
    for (size_t i = 0; i < (size_t)COUNT * N; ++i)
        t->eigen_error =
            cli_worse(t->eigen_error, fabs((double)t->values[i] - (double)(i % N + 1)));
    for (size_t i = 0; i < (size_t)ROWS * ROWS; ++i)
        t->gram_error = cli_worse(t->gram_error, fabs((double)t->gram[i] - (double)t->plain[i]));
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t j = i + 1; j < ROWS; ++j)
            if (t->gram[i * ROWS + j] > best) {
                best = t->gram[i * ROWS + j];
                t->pair[0] = i, t->pair[1] = j;
            }
}

static clv_status run(const demo_stage *stage, tables *t, demo_row *row)
{
    CLV_TRY(demo_plain(solve, t));
    memcpy(t->plain, t->gram, (size_t)ROWS * ROWS * sizeof *t->plain);
    memset(t->gram, 0, (size_t)ROWS * ROWS * sizeof *t->gram);
    memset(t->values, 0, (size_t)COUNT * N * sizeof *t->values);
    CLV_TRY(demo_both_sides(stage, solve, t, row));
    judge(t);
    snprintf(row->found, sizeof row->found, "rows %zu and %zu are alike", t->pair[0], t->pair[1]);
    const bool same = t->gram_error < 1e-5 * WIDTH && t->eigen_error < 2e-4;
    clv_text_add(&row->notes, "%s plain C: products to %.0e; %d eigenvalues to %.0e\n",
                 same ? "agrees with" : "DIFFERS FROM", t->gram_error / WIDTH, COUNT * N,
                 t->eigen_error / N);
    row->ok = same && t->pair[0] == FIRST && t->pair[1] == SECOND;
    return CLV_OK;
}

clv_status demo_matrices(const demo_stage *stage, demo_row *row)
{
    tables t = { 0 };
    snprintf(row->input, sizeof row->input, "%d rows, %d matrices", ROWS, COUNT);
    clv_status status = make_tables(&t);
    if (!status)
        status = stage->preparing ? demo_both_sides(stage, solve, &t, row) : run(stage, &t, row);
    clv_free(t.x), clv_free(t.gram), clv_free(t.plain), clv_free(t.matrices), clv_free(t.values);
    return status;
}

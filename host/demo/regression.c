/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: finds slopes hidden in a table by gradient descent on arrays that stay on the host or a device. */
#include "host/demo/demo.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/array_math.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 50000, WIDTH = 64, STEPS = 100 };

static const float RATE = 0.2f;

typedef struct table {
    float *x, *y; /* [ROWS,WIDTH], [ROWS]: y = x slopes + noise */
    float slopes[WIDTH], found[WIDTH];
} table;

/* Returns a uniform number of mean 0 and deviation 1. */
static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return ((float)(*state >> 8) * 0x1p-24f - 0.5f) * 3.4641016f;
}

static clv_status make_table(table *t)
{
    uint32_t state = 7;
    t->x = clv_alloc((size_t)ROWS * WIDTH, sizeof *t->x);
    t->y = clv_alloc(ROWS, sizeof *t->y);
    if (!t->x || !t->y) return clv_fail(CLV_E_MEMORY, "not enough memory for a table");
    for (size_t j = 0; j < WIDTH; ++j)
        t->slopes[j] = number(&state);
    for (size_t i = 0; i < ROWS; ++i) {
        t->y[i] = number(&state);
        for (size_t j = 0; j < WIDTH; ++j) {
            t->x[i * WIDTH + j] = number(&state);
            t->y[i] += t->x[i * WIDTH + j] * t->slopes[j];
        }
    }
    return CLV_OK;
}

static clv_status descend(clv_context *context, void *user)
{
    table *t = user;
    float *slopes = t->found;
    const size_t whole[] = { ROWS, WIDTH }, columns = WIDTH, rows = ROWS;
    clv_array *x = NULL, *y = NULL, *w = NULL;
    memset(slopes, 0, WIDTH * sizeof *slopes);
    clv_status status = clv_array_wrap(context, t->x, 2, whole, &x);
    if (!status) status = clv_array_wrap(context, t->y, 1, &rows, &y);
    if (!status) status = clv_array_wrap(context, slopes, 1, &columns, &w);
    if (!status) status = clv_linear_train(context, x, y, w, RATE, STEPS, NULL);
    clv_array_free(x), clv_array_free(y), clv_array_free(w);
    return status;
}

static clv_status run(const demo_stage *stage, table *t, demo_row *row)
{
    float plain[WIDTH];
    double worst = 0;
    CLV_TRY(demo_plain(descend, t));
    memcpy(plain, t->found, sizeof plain);
    CLV_TRY(demo_both_sides(stage, descend, t, row));
    for (size_t j = 0; j < WIDTH; ++j)
        worst = cli_worse(worst, fabs((double)t->found[j] - (double)t->slopes[j]));
    const bool same = memcmp(plain, t->found, sizeof plain) == 0;
    snprintf(row->found, sizeof row->found, "%d slopes to %.3f", WIDTH, worst);
    clv_text_add(&row->notes, "%s plain C: %d steps, %s\n", same ? "agrees with" : "DIFFERS FROM",
                 STEPS, same ? "the same bits" : "other bits");
    row->ok = same && worst < 0.03; /* noise of 1 over 50000 rows: 6 deviations */
    return CLV_OK;
}

clv_status demo_regression(const demo_stage *stage, demo_row *row)
{
    table t = { 0 };
    snprintf(row->input, sizeof row->input, "%d rows of %d", ROWS, WIDTH);
    clv_status status = make_table(&t);
    if (!status)
        status = stage->preparing ? demo_both_sides(stage, descend, &t, row) : run(stage, &t, row);
    clv_free(t.x), clv_free(t.y);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a linear regression on one side, host or device, and prints why the library chose that side.
 * usage: regression */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4000, WIDTH = 8, STEPS = 60 };

int main(void)
{
    const size_t shape[2] = { ROWS, WIDTH }, rows = ROWS, width = WIDTH, steps = STEPS;
    float *x = malloc((ROWS * WIDTH + ROWS) * sizeof *x), w[WIDTH] = { 0 }, losses[STEPS];
    if (!x) return 1;
    float *y = x + ROWS * WIDTH;
    unsigned state = 1;
    for (int i = 0; i < ROWS; ++i) {
        y[i] = 0;
        for (int j = 0; j < WIDTH; ++j) {
            state = state * 1664525u + 1013904223u;
            x[i * WIDTH + j] = (float)(state >> 8) * 0x1p-23f - 1;
            y[i] += (float)(j + 1) * x[i * WIDTH + j]; /* the weights to find: 1, 2, 3, ... */
        }
    }
    clv_context *context = NULL;
    clv_array *ax = NULL, *ay = NULL, *aw = NULL, *al = NULL;
    clv_offload plan;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_array_wrap(context, x, 2, shape, &ax); /* ax uses the memory of x */
    if (!status) status = clv_array_wrap(context, y, 1, &rows, &ay);
    if (!status) status = clv_array_wrap(context, w, 1, &width, &aw);
    if (!status) status = clv_array_wrap(context, losses, 1, &steps, &al);
    if (!status) status = clv_linear_train(context, ax, ay, aw, 0.5f, steps, al);
    if (!status) status = clv_offload_last(&plan);
    int bad = status != CLV_OK;
    if (bad) {
        fprintf(stderr, "regression: %s\n", clv_error_message());
    } else {
        printf("%s\nloss %.4f to %.2g; weights", plan.reason, (double)losses[0],
               (double)losses[STEPS - 1]);
        for (int j = 0; j < WIDTH; ++j) {
            printf(" %.3f", (double)w[j]);
            bad |= !(fabsf(w[j] - (float)(j + 1)) < 0.01f);
        }
        printf("\n");
    }
    clv_array_free(ax), clv_array_free(ay), clv_array_free(aw), clv_array_free(al);
    clv_context_free(context);
    free(x);
    return bad;
}

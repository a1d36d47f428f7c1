/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps an array on the device, computes an expression (as one kernel) and reductions of it, and prints which side,
 * host or device, computed.
 * usage: expression */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 400, COLUMNS = 300 };

static int failed(clv_status status)
{
    if (status) fprintf(stderr, "expression: %s\n", clv_error_message());
    return status != CLV_OK;
}

int main(void)
{
    const size_t shape[2] = { ROWS, COLUMNS }, width = COLUMNS;
    clv_context *context = NULL;
    clv_array *x = NULL, *mean = NULL, *y = NULL, *largest = NULL;
    float *host = malloc(ROWS * COLUMNS * sizeof *host), found = 0;
    if (!host) return 1;
    for (int i = 0; i < ROWS * COLUMNS; ++i)
        host[i] = (float)(i % 97);
    int bad = failed(clv_context_create(NULL, &context)) ||
              failed(clv_array_from(context, host, 2, shape, &x)) || /* the only upload */
              failed(clv_array_create(context, 1, &width, &mean)) ||
              failed(clv_array_create(context, 2, shape, &y)) ||
              failed(clv_array_create(context, 0, NULL, &largest));
    if (!bad) { /* from here on nothing is transferred */
        const clv_map_input in[] = { { "x", x, 0 }, { "mean", mean, 0 }, { "k", NULL, 0.5f } };
        bad = failed(clv_reduce(context, CLV_REDUCE_MEAN, x, 0, mean)) ||
              failed(clv_map(context, "exp(-k * abs(x - mean))", in, 3, y)) ||
              failed(clv_reduce(context, CLV_REDUCE_MAX, y, -1, largest));
    }
    clv_offload plan;
    if (!bad) bad = failed(clv_offload_last(&plan));
    if (!bad) bad = failed(clv_array_get(largest, &found));
    if (!bad) {
        const clv_array_stats stats = clv_array_statistics(context);
        printf("largest %.6f; %s; %llu transfers there, %llu back\n", (double)found, plan.reason,
               (unsigned long long)stats.uploads, (unsigned long long)stats.downloads);
        bad = !(found > 0 && found <= 1);
    }
    clv_array_free(x), clv_array_free(mean), clv_array_free(y), clv_array_free(largest);
    clv_context_free(context);
    free(host);
    return bad;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices, filters and points: plain calls on plain memory. usage: matrices */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>

enum { N = 64, COUNT = 50 };

int main(void)
{
    static float a[COUNT * N * N], b[COUNT * N * N], values[COUNT * N], kernel[49];
    clv_context *context = NULL;
    uint64_t inside = 0;
    for (int i = 0; i < COUNT * N * N; ++i)
        a[i] = (float)(i * 37 % 101) / 101;
    /* b = a a^T of every matrix of the stack, its eigenvalues, and the first one smoothed */
    const clv_matmul_options stack = { .a_row = N,
                                       .a_col = 1,
                                       .b_row = 1,
                                       .b_col = N,
                                       .batch = COUNT,
                                       .a_batch = N * N,
                                       .b_batch = N * N };
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_matmul(context, N, N, N, a, a, &stack, b);
    if (!status) status = clv_eigvalsh(context, b, COUNT, N, NULL, values, NULL);
    if (!status) status = clv_gaussian_2d(1.5, 3, kernel);
    if (!status) status = clv_convolve_2d(context, b, N, N, kernel, 7, 7, NULL, a, NULL);
    if (!status) status = clv_monte_carlo_pi(context, 10000000, NULL, &inside, NULL);
    if (status) fprintf(stderr, "matrices: %s\n", clv_error_message());
    double trace = 0, sum = 0;
    for (int i = 0; i < N; ++i)
        trace += (double)b[i * N + i], sum += (double)values[i];
    const double pi = 4.0 * (double)inside / 1e7;
    if (!status) printf("trace %.3f, sum of eigenvalues %.3f, pi is about %.4f\n", trace, sum, pi);
    clv_context_free(context);
    return status || !(fabs(trace - sum) < 1e-3 * trace) || !(fabs(pi - 3.14159) < 3e-3);
}

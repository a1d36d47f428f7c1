/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies a stack of matrices by their transposes, computes the eigenvalues of the products, scales columns to mean
 * 0 and standard deviation 1, and computes the eigenvalues of a matrix that is not symmetric. usage: matrices */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>

enum { N = 64, COUNT = 50 };

int main(void)
{
    static float a[COUNT * N * N], b[COUNT * N * N], values[COUNT * N], z[N * N], gram[N * N];
    static float real[N], imaginary[N];
    const size_t shape[2] = { N, N };
    clv_context *context = NULL;
    clv_array *ax = NULL, *az = NULL, *ag = NULL;
    for (int i = 0; i < COUNT * N * N; ++i)
        a[i] = (float)(i * 37 % 101) / 101;
    /* b = a a^T of every matrix of the stack */
    const clv_matmul_options stack = { .size = sizeof(clv_matmul_options),
                                       .a_row = N,
                                       .a_col = 1,
                                       .b_row = 1,
                                       .b_col = N,
                                       .batch = COUNT,
                                       .a_batch = N * N,
                                       .b_batch = N * N };
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_matmul(context, N, N, N, a, a, &stack, b);
    if (!status) status = clv_eigvalsh(context, b, COUNT, N, NULL, values, NULL);
    /* z = (a - mean) / deviation of the first matrix's columns, and z z^T */
    if (!status) status = clv_array_wrap(context, a, 2, shape, &ax);
    if (!status) status = clv_array_wrap(context, z, 2, shape, &az);
    if (!status) status = clv_array_wrap(context, gram, 2, shape, &ag);
    if (!status) status = clv_normalize(context, ax, az, ag, NULL, NULL);
    const bool general = clv_eigvals_provider() != NULL; /* true if there is a LAPACK */
    if (!status && general) status = clv_eigvals(context, a, 1, N, NULL, real, imaginary, NULL);
    if (status) fprintf(stderr, "matrices: %s\n", clv_error_message());
    double trace = 0, sum = 0, spread = 0, first = 0, found = 0;
    for (int i = 0; i < N; ++i) {
        trace += (double)b[i * N + i], sum += (double)values[i]; /* trace of b, in two ways */
        first += (double)a[i * N + i], found += (double)real[i]; /* trace of a, in two ways */
        spread += (double)gram[i * N + i]; /* N columns of N numbers with mean square 1: N * N */
    }
    if (!status) printf("trace %.3f, sum of eigenvalues %.3f; of a, %.4f\n", trace, sum, found);
    clv_array_free(ax), clv_array_free(az), clv_array_free(ag);
    clv_context_free(context);
    return status || !(fabs(trace - sum) < 1e-3 * trace) || !(fabs(spread - N * N) < 1) ||
           (general && !(fabs(first - found) < 1e-3));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operations on plain memory, split over all devices: filters an image, computes eigenvalues, and estimates pi by
 * a Monte Carlo method. */
#include <cleave/array.h>
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 256, RADIUS = 4, MATRICES = 1000, N = 2 };

int main(void)
{
    static float image[SIDE * SIDE], soft[SIDE * SIDE], matrices[MATRICES][N][N],
        values[MATRICES][N];
    float kernel[(2 * RADIUS + 1) * (2 * RADIUS + 1)];
    const clv_convolve_options wrapped = { .size = sizeof(clv_convolve_options),
                                           .edge = CLV_EDGE_WRAP };
    const uint64_t samples = 20000000;
    uint64_t inside = 0;
    double before = 0, after = 0;
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        before += image[i] = (float)(i * 7919 % 1009);
    for (size_t m = 0; m < MATRICES; ++m) /* [[2, m], [m, 2]]: eigenvalues 2 - m and 2 + m */
        matrices[m][0][0] = matrices[m][1][1] = 2, matrices[m][1][0] = (float)m;

    clv_context *context = NULL;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_gaussian_2d(1.5, RADIUS, kernel);
    if (!status)
        status = clv_convolve_2d(context, image, SIDE, SIDE, kernel, 2 * RADIUS + 1, 2 * RADIUS + 1,
                                 &wrapped, soft, NULL);
    if (!status)
        status = clv_eigvalsh(context, &matrices[0][0][0], MATRICES, N, NULL, values[0], NULL);
    if (!status) status = clv_monte_carlo_pi(context, samples, NULL, &inside, NULL);
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        after += soft[i];

    bool right = !status && fabs(after / before - 1) < 1e-5; /* a kernel of sum 1 keeps the mean */
    for (size_t m = 0; right && m < MATRICES; ++m)
        right = fabsf(values[m][0] - (2 - (float)m)) < 1e-3f &&
                fabsf(values[m][1] - (2 + (float)m)) < 1e-3f;
    const double pi = 4.0 * (double)inside / (double)samples;
    printf("mean %.2f, then %.2f; largest eigenvalue %.1f; pi is about %.4f\n",
           before / (SIDE * SIDE), after / (SIDE * SIDE), (double)values[MATRICES - 1][1], pi);
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    clv_context_free(context);
    return right && fabs(pi - 3.14159265) < 2e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}

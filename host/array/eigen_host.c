/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the eigenvalues of a symmetric matrix on the host, in float64: Householder reflections to tridiagonal form,
 * then implicit QR steps with Wilkinson's shift (Golub and Van Loan, Matrix Computations, 8.3). */
#include "host/array/eigen_host.h"

#include <math.h>

#define ALWAYS __attribute__((always_inline))

/* a = a - v w^T - w v^T for rows and columns [from, n), row by row so that neighbours form vectors. */
static inline ALWAYS void reflect(double *a, size_t n, size_t from, const double *v,
                                  const double *w)
{
    for (size_t i = from; i < n; ++i) {
        double *row = a + i * n;
        for (size_t j = from; j < n; ++j)
            row[j] -= v[i] * w[j] + w[i] * v[j];
    }
}

/* Reduces `a`, which is destroyed, to a tridiagonal matrix with the diagonal d and the off-diagonal e. `v` and `w` have
 * room for n numbers each. */
static inline ALWAYS void to_three_diagonals(double *a, size_t n, double *d, double *e, double *v,
                                             double *w)
{
    for (size_t k = 0; k + 2 < n; ++k) {
        const size_t from = k + 1;
        double square = 0, rest = 0, dot = 0;
        for (size_t i = from; i < n; ++i) {
            v[i] = a[k * n + i];
            w[i] = 0;
            if (i > from) rest += v[i] * v[i];
        }
        d[k] = a[k * n + k];
        e[k] = v[from];
        if (rest == 0) continue; /* this column is tridiagonal already */
        e[k] = v[from] > 0 ? -sqrt(v[from] * v[from] + rest) : sqrt(v[from] * v[from] + rest);
        v[from] -= e[k];
        square = v[from] * v[from] + rest;
        for (size_t i = from; i < n; ++i) { /* w = A v; row by row, because A is symmetric */
            const double *row = a + i * n, factor = v[i];
            for (size_t j = from; j < n; ++j)
                w[j] += factor * row[j];
        }
        for (size_t i = from; i < n; ++i)
            dot += v[i] * w[i];
        const double scale = 2 / square, share = dot / square; /* w = 2/v.v (A v - v (v.Av)/v.v) */
        for (size_t i = from; i < n; ++i)
            w[i] = scale * (w[i] - share * v[i]);
        reflect(a, n, from, v, w);
    }
    for (size_t k = n < 2 ? 0 : n - 2; k < n; ++k)
        d[k] = a[k * n + k];
    if (n > 1) e[n - 2] = a[(n - 2) * n + n - 1];
}

/* Does one implicit QR step on rows [low, high], an unreduced block. */
static void step(double *d, double *e, size_t low, size_t high)
{
    const double half = (d[high - 1] - d[high]) / 2, last = e[high - 1];
    const double root = sqrt(half * half + last * last);
    const double shift = d[high] - last * last / (half + (half < 0 ? -root : root));
    double x = d[low] - shift, z = e[low];
    for (size_t k = low; k < high; ++k) {
        const double r = sqrt(x * x + z * z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
        const double a = d[k], b = d[k + 1], f = e[k];
        if (k > low) e[k - 1] = r;
        const double mixed = 2 * c * s * f;
        d[k] = c * c * a + mixed + s * s * b;
        d[k + 1] = s * s * a - mixed + c * c * b;
        e[k] = c * s * (b - a) + (c * c - s * s) * f;
        if (k + 1 == high) break;
        x = e[k];
        z = s * e[k + 1];
        e[k + 1] *= c;
    }
}

/* Iterates until every off-diagonal element is below the last bit of the norm. */
static void diagonalise(double *d, double *e, size_t n, double norm)
{
    const double nothing = 0x1p-53 * norm;
    size_t high = n - 1;
    for (size_t steps = 0; high > 0 && steps < 40 * n;) {
        if (!(fabs(e[high - 1]) > nothing)) {
            --high;
            continue;
        }
        size_t low = high - 1;
        while (low > 0 && fabs(e[low - 1]) > nothing)
            --low;
        step(d, e, low, high);
        ++steps;
    }
}

static inline ALWAYS void solve(const float *matrix, size_t n, double *room, float *values)
{
    double *a = room, *d = a + n * n, *e = d + n, *v = e + n, *w = v + n, square = 0;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const double x = (double)matrix[i * n + j];
            a[i * n + j] = a[j * n + i] = x;
            square += (i == j ? 1 : 2) * x * x;
        }
    if (isfinite(square)) {
        to_three_diagonals(a, n, d, e, v, w);
        diagonalise(d, e, n, sqrt(square));
    }
    for (size_t i = 0; i < n; ++i)
        values[i] = isfinite(square) ? (float)d[i] : NAN;
}

static void plain(const float *matrix, size_t n, double *room, float *values)
{
    solve(matrix, n, room, values);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void wide(const float *matrix, size_t n, double *room,
                                                 float *values)
{
    solve(matrix, n, room, values);
}
#endif

size_t clv_eigen_room(size_t n)
{
    return n * n + 4 * n;
}

void clv_eigen_host(const float *matrix, size_t n, double *room, float *values)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        wide(matrix, n, room, values);
        return;
    }
#endif
    plain(matrix, n, room, values);
}

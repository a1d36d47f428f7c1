/* SPDX-License-Identifier: Apache-2.0 */
/* Solves small dense problems on the host, in float64. Matrices are row-major. */
#include "base/linalg.h"

#include <math.h>
#include <string.h>

static double off_diagonal(const double *m, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < i; ++j)
            sum += m[i * n + j] * m[i * n + j];
    return sum;
}

/* Rotates rows and columns p and q so that entry (p,q) vanishes. */
static void rotate(double *m, double *v, size_t n, size_t p, size_t q)
{
    const double apq = m[p * n + q];
    if (apq == 0) return;
    const double theta = (m[q * n + q] - m[p * n + p]) / (2 * apq);
    const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + hypot(theta, 1));
    const double c = 1 / hypot(t, 1), s = t * c;
    for (size_t k = 0; k < n; ++k) {
        const double mp = m[k * n + p], mq = m[k * n + q];
        m[k * n + p] = c * mp - s * mq;
        m[k * n + q] = s * mp + c * mq;
    }
    for (size_t k = 0; k < n; ++k) {
        const double mp = m[p * n + k], mq = m[q * n + k], vp = v[p * n + k], vq = v[q * n + k];
        m[p * n + k] = c * mp - s * mq;
        m[q * n + k] = s * mp + c * mq;
        v[p * n + k] = c * vp - s * vq;
        v[q * n + k] = s * vp + c * vq;
    }
}

static void swap_rows(double *v, size_t n, size_t a, size_t b)
{
    for (size_t k = 0; k < n; ++k) {
        const double keep = v[a * n + k];
        v[a * n + k] = v[b * n + k];
        v[b * n + k] = keep;
    }
}

void clv_eigen_symmetric(double *matrix, size_t n, double *values, double *vectors)
{
    double total = 0;
    memset(vectors, 0, n * n * sizeof *vectors);
    for (size_t i = 0; i < n; ++i)
        vectors[i * n + i] = 1;
    for (size_t i = 0; i < n * n; ++i)
        total += matrix[i] * matrix[i];
    const double all = 1e-34 * total, one = all / (double)(n * n); /* squares that count as 0 */
    for (int sweep = 0; sweep < 40 && off_diagonal(matrix, n) > all; ++sweep)
        for (size_t p = 0; p + 1 < n; ++p)
            for (size_t q = p + 1; q < n; ++q)
                if (matrix[p * n + q] * matrix[p * n + q] > one) rotate(matrix, vectors, n, p, q);
    for (size_t i = 0; i < n; ++i)
        values[i] = matrix[i * n + i];
    for (size_t i = 0; i + 1 < n; ++i) {
        size_t best = i;
        for (size_t j = i + 1; j < n; ++j)
            if (values[j] > values[best]) best = j;
        if (best == i) continue;
        const double keep = values[i];
        values[i] = values[best];
        values[best] = keep;
        swap_rows(vectors, n, i, best);
    }
}

/* Applies I - 2 v v' / |v|^2 to column `col` of m [rows, columns]; v lies in rows from..rows. */
static void reflect(double *m, size_t rows, size_t columns, size_t from, size_t col,
                    const double *v, size_t v_stride, double norm2)
{
    double dot = 0;
    for (size_t i = from; i < rows; ++i)
        dot += v[i * v_stride] * m[i * columns + col];
    const double factor = 2 * dot / norm2;
    for (size_t i = from; i < rows; ++i)
        m[i * columns + col] -= factor * v[i * v_stride];
}

bool clv_least_squares(double *a, size_t rows, size_t n, double *b, size_t k, double *x)
{
    if (rows < n) return false;
    double largest = 0;
    for (size_t j = 0; j < n; ++j) {
        double norm = 0;
        for (size_t i = j; i < rows; ++i)
            norm += a[i * n + j] * a[i * n + j];
        norm = sqrt(norm);
        if (!(norm > 1e-13 * largest)) return false;
        if (norm > largest) largest = norm;
        const double diagonal = a[j * n + j] > 0 ? -norm : norm;
        a[j * n + j] -= diagonal;
        double norm2 = 0;
        for (size_t i = j; i < rows; ++i)
            norm2 += a[i * n + j] * a[i * n + j];
        for (size_t c = j + 1; c < n; ++c)
            reflect(a, rows, n, j, c, a + j, n, norm2);
        for (size_t c = 0; c < k; ++c)
            reflect(b, rows, k, j, c, a + j, n, norm2);
        a[j * n + j] = diagonal;
    }
    for (size_t c = 0; c < k; ++c)
        for (size_t j = n; j-- > 0;) {
            double sum = b[j * k + c];
            for (size_t i = j + 1; i < n; ++i)
                sum -= a[j * n + i] * x[i * k + c];
            x[j * k + c] = sum / a[j * n + j];
        }
    return true;
}

bool clv_cholesky(double *m, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double sum = m[i * n + j];
            for (size_t k = 0; k < j; ++k)
                sum -= m[i * n + k] * m[j * n + k];
            if (i == j) {
                if (!(sum > 0)) return false;
                m[i * n + i] = sqrt(sum);
            } else {
                m[i * n + j] = sum / m[j * n + j];
            }
        }
    return true;
}

void clv_forward_substitute(const double *l, size_t n, double *b)
{
    for (size_t i = 0; i < n; ++i) {
        double sum = b[i];
        for (size_t k = 0; k < i; ++k)
            sum -= l[i * n + k] * b[k];
        b[i] = sum / l[i * n + i];
    }
}

void clv_back_substitute(const double *l, size_t n, double *b)
{
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; ++k)
            b[i] -= l[k * n + i] * b[k];
        b[i] /= l[i * n + i];
    }
}

bool clv_damped_step(const double *normal, size_t n, double damping, const double *right, double *l,
                     double *step)
{
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j)
            l[i * n + j] = normal[i * n + j] * (i == j ? 1 + damping : 1);
    if (!clv_cholesky(l, n)) return false;
    memcpy(step, right, n * sizeof *step);
    clv_forward_substitute(l, n, step);
    clv_back_substitute(l, n, step);
    return true;
}

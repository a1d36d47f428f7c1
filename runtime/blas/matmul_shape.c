/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts products into kinds, so that those of a kind take equally long, and scales a product to a larger or smaller one
 * of its kind. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"

#include <math.h>

enum { FIXED = 16 }; /* extents up to this stay as they are, larger ones grow together */

static double product(const clv_matmul_shape *t)
{
    return 2.0 * (double)t->m * (double)t->n * (double)t->k * (double)t->batch;
}

static int octave(double x)
{
    return (int)lrint(floor(log2(x)));
}

/* The two functions below return where the text ends. They format by hand because printf would take longer than a
 * small product. */
static char *add_text(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    *at = '\0';
    return at;
}

static char *add_number(char *at, long number)
{
    if (number > 9) at = add_number(at, number / 10);
    *at++ = (char)('0' + CLV_MAX(number, 0L) % 10);
    *at = '\0';
    return at;
}

/* Adds " f" and the binary logarithm, rounded down, of a small extent. For a larger one adds the rounded logarithm to
 * base 4 of largest / extent. */
static char *add_extent(char *at, size_t extent, double largest)
{
    return extent <= FIXED
               ? add_number(add_text(at, " f"), octave((double)extent))
               : add_number(add_text(at, " "), lrint(log2(largest / (double)extent) / 2));
}

void clv_matmul_kind(const clv_matmul_shape *t, char kind[64], double *least, double *most)
{
    const double largest = (double)CLV_MAX(CLV_MAX(t->m, t->n), t->k);
    char *at = add_text(kind, "matmul");
    at = add_extent(at, t->m, largest);
    at = add_extent(at, t->n, largest);
    at = add_extent(at, t->k, largest);
    if (t->a_columns) at = add_text(at, " ta");
    if (t->b_columns) at = add_text(at, " tb");
    const double one = product(t) / (double)t->batch;
    if (t->batch > 1) add_number(add_text(at, " batch "), octave(one));
    *least = 2e4;
    *most = 1e9;
    if (t->batch > 1) *least = CLV_MAX(*least, one);
}

static void scale(size_t *extent, double times)
{
    if (*extent > FIXED) *extent = (size_t)CLV_MAX(lrint((double)*extent * times), 1L);
}

double clv_matmul_scale(clv_matmul_shape *t, double flops)
{
    const double wanted = flops / product(t);
    const int free = (t->m > FIXED) + (t->n > FIXED) + (t->k > FIXED);
    if (t->batch > 1 || !free) {
        t->batch = (size_t)CLV_MAX(lrint((double)t->batch * wanted), 1L);
    } else {
        const double times = pow(wanted, 1.0 / free);
        scale(&t->m, times), scale(&t->n, times), scale(&t->k, times);
    }
    return product(t) > 0 ? flops / product(t) : 1;
}

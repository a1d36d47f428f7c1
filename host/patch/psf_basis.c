/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the PSF at sub-pixel positions: exact shifts, and a small basis that represents all shifts. */
#include "host/patch/paco_plan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum {
    NODES = 25, /* samples per direction for the fits: many more than the polynomials have terms */
    SAMPLES = NODES * NODES,
    REACH = CLV_PACO_MAX_PSF + 2 * CLV_PACO_MAX_RADIUS + 1,
    SPAN = 2 * CLV_PACO_MAX_RADIUS + 1,
};

/* Writes the kernel K of the Fourier shift by s along one direction of n (even) points. The shift is out[i] = sum_j K(i
 * - j) in[j] with, for u = d - s,
 * Re K(d) = sin(pi u) / (n tan(pi u / n)), Im K(d) = (-1)^d sin(pi s) / n.
 * The imaginary part comes from the Nyquist frequency alone. Of the 2-D product only the real part is used: Re Ky Re Kx
 * - Im Ky Im Kx. */
static void shift_kernel(int n, double s, int first, int count, double *re, double *im)
{
    const double sine = sin(PI * s);
    for (int i = 0; i < count; ++i) {
        const int d = first + i;
        const double sign = d & 1 ? -1 : 1, u = d - s, t = tan(PI * u / n);
        re[i] = fabs(u) < 1e-12 ? 1 : t == 0 ? 0 : -sign * sine / (n * t); /* sin(pi d - pi s) */
        im[i] = sign * sine / n;
    }
}

/* Re K and Im K at all distances between a row of the PSF and a row of the patch. */
typedef struct patch_kernel {
    double re[REACH], im[REACH];
} patch_kernel;

static void make_kernel(const clv_paco_plan *plan, double s, patch_kernel *k)
{
    const int size = (int)plan->in.psf_size, r = (int)plan->radius;
    /* a ring of zeros, and one more row to make the side even */
    const int n = size + 2 + (size & 1), first = size / 2 - r - (size - 1);
    shift_kernel(n, s, first, size + 2 * r, k->re, k->im);
}

/* Shifts column x of the PSF vertically and samples it at the patch's rows: re and im [SPAN]. */
static void move_column(const clv_paco_plan *plan, const patch_kernel *ky, int x, double *re,
                        double *im)
{
    const int size = (int)plan->in.psf_size, rows = 2 * (int)plan->radius + 1;
    for (int k = 0; k < rows; ++k)
        re[k] = im[k] = 0;
    for (int y = 0; y < size; ++y) {
        const double value = plan->psf[y * size + x];
        if (value == 0) continue;    /* PSFs are often padded with zeros, which add nothing */
        const int at = size - 1 - y; /* distance from pixel y to the patch's first row */
        for (int k = 0; k < rows; ++k) {
            re[k] += ky->re[at + k] * value;
            im[k] += ky->im[at + k] * value;
        }
    }
}

/* Adds the contribution of the shifted column x to the patch's pixels h. */
static void add_column(const clv_paco_plan *plan, const patch_kernel *kx, int x, const double *re,
                       const double *im, double *h)
{
    const int at = (int)plan->in.psf_size - 1 - x, r = (int)plan->radius;
    for (size_t i = 0; i < plan->pixels; ++i) {
        const int row = plan->offset[i].dy + r, column = plan->offset[i].dx + r;
        h[i] += re[row] * kx->re[at + column] - im[row] * kx->im[at + column];
    }
}

void clv_psf_shifted(const clv_paco_plan *plan, double fy, double fx, double *h)
{
    const int size = (int)plan->in.psf_size, centre = size / 2;
    if (fy == 0 && fx == 0) {
        for (size_t i = 0; i < plan->pixels; ++i)
            h[i] = plan->psf[(centre + plan->offset[i].dy) * size + centre + plan->offset[i].dx];
        return;
    }
    patch_kernel ky, kx;
    double re[SPAN], im[SPAN];
    make_kernel(plan, fy, &ky), make_kernel(plan, fx, &kx);
    for (size_t i = 0; i < plan->pixels; ++i)
        h[i] = 0;
    for (int x = 0; x < size; ++x) {
        move_column(plan, &ky, x, re, im);
        add_column(plan, &kx, x, re, im, h);
    }
}

/* Computes out[k] = sum_j K(k + whole - j - s) in[j], with `in` zero outside: a shift by s pixels after a copy by the
 * `whole` pixels. `kernel` [2 size - 1] is Re K at the distances from 1 - size on. */
static void move_line(const double *in, size_t size, size_t step, int whole, const double *kernel,
                      double *out)
{
    const int count = (int)size;
    for (int k = 0; k < count; ++k) {
        double sum = 0;
        for (int j = 0; j < count; ++j) {
            const int d = k - whole - j + count - 1;
            if (d >= 0 && d < 2 * count - 1) sum += kernel[d] * in[(size_t)j * step];
        }
        out[k] = sum;
    }
}

clv_status clv_psf_move(float *psf, size_t size, double fy, double fx)
{
    double *work = clv_alloc(size * size + size, sizeof *work), *line;
    if (size > CLV_PACO_MAX_PSF || !work) {
        clv_free(work);
        return work ? clv_fail(CLV_E_SHAPE,
                               "psf: the image has %zux%zu pixels; expected at most %d per side",
                               size, size, CLV_PACO_MAX_PSF)
                    : clv_fail(CLV_E_MEMORY, "psf: out of memory");
    }
    double kernel[2 * CLV_PACO_MAX_PSF], unused[2 * CLV_PACO_MAX_PSF];
    const int count = (int)size, n = count + 2 + (count & 1), down = (int)lrint(fy),
              right = (int)lrint(fx);
    line = work + size * size;
    for (size_t i = 0; i < size * size; ++i)
        work[i] = psf[i];
    shift_kernel(n, fy - down, 1 - count, 2 * count - 1, kernel, unused);
    for (size_t x = 0; x < size; ++x) {
        move_line(work + x, size, size, down, kernel, line);
        for (size_t y = 0; y < size; ++y)
            work[y * size + x] = line[y];
    }
    shift_kernel(n, fx - right, 1 - count, 2 * count - 1, kernel, unused);
    for (size_t y = 0; y < size; ++y) {
        move_line(work + y * size, size, 1, right, kernel, line);
        for (size_t x = 0; x < size; ++x)
            psf[y * size + x] = (float)line[x];
    }
    clv_free(work);
    return CLV_OK;
}

/* Evaluates the monomials y^j x^k in the order of cl/patch/project.cl, by total degree: 1, y, x, yy, yx, xx, ... */
static void monomials(double y, double x, size_t terms, double *phi)
{
    /* index of the first monomial of this degree, and of the degree below */
    size_t next = 0, before = 0;
    for (int degree = 0; next < terms; ++degree) {
        const size_t first = next;
        for (int k = 0; k <= degree && next < terms; ++k)
            phi[next++] = degree == 0   ? 1
                          : k == degree ? x * phi[before + (size_t)k - 1]
                                        : y * phi[before + (size_t)k];
        before = first;
    }
}

/* Returns a Chebyshev node on [-0.5, 0.5]; fits at these nodes have even errors up to the ends. */
static double node(int i)
{
    return -0.5 * cos(PI * (i + 0.5) / NODES);
}

/* Samples the PSF at all nodes [NODES][NODES][pixels]. `columns` [2][psf_size][SPAN] is scratch memory for all nodes of
 * one row. */
static void sample_shifts(const clv_paco_plan *plan, double *columns, double *samples)
{
    /* truncation leaves sub-pixel positions in [0, 1) */
    const double to_centre = plan->half ? 0 : 0.5;
    const int size = (int)plan->in.psf_size;
    double *re = columns, *im = columns + (size_t)size * SPAN;
    patch_kernel k;
    for (int i = 0; i < NODES; ++i) {
        make_kernel(plan, node(i) + to_centre, &k);
        for (int x = 0; x < size; ++x)
            move_column(plan, &k, x, re + (size_t)x * SPAN, im + (size_t)x * SPAN);
        for (int j = 0; j < NODES; ++j) {
            double *h = samples + ((size_t)i * NODES + (size_t)j) * plan->pixels;
            make_kernel(plan, node(j) + to_centre, &k);
            for (size_t n = 0; n < plan->pixels; ++n)
                h[n] = 0;
            for (int x = 0; x < size; ++x)
                add_column(plan, &k, x, re + (size_t)x * SPAN, im + (size_t)x * SPAN, h);
        }
    }
}

/* Finds the strongest directions of the samples: the eigenvectors of their Gram matrix. */
static size_t strongest(const double *samples, size_t pixels, size_t most, double *gram,
                        double *values, double *vectors)
{
    memset(gram, 0, pixels * pixels * sizeof *gram);
    for (size_t s = 0; s < SAMPLES; ++s)
        for (size_t i = 0; i < pixels; ++i)
            for (size_t j = 0; j <= i; ++j)
                gram[i * pixels + j] += samples[s * pixels + i] * samples[s * pixels + j];
    for (size_t i = 0; i < pixels; ++i)
        for (size_t j = 0; j < i; ++j)
            gram[j * pixels + i] = gram[i * pixels + j];
    clv_eigen_symmetric(gram, pixels, values, vectors);
    size_t enough = 1; /* singular values are the square roots of `values` */
    while (enough < most && values[enough] > 1e-10 * values[0])
        ++enough;
    const size_t rounded = clv_round_up(enough, 5); /* kernels compute five vectors at a time */
    return rounded < most ? rounded : most;
}

/* Computes the least-squares coefficients [terms][columns] of `targets` [SAMPLES][columns]. */
static bool fit(size_t terms, double *targets, size_t columns, double *work, double *out)
{
    for (int s = 0; s < SAMPLES; ++s)
        monomials(node(s / NODES), node(s % NODES), terms, work + (size_t)s * terms);
    return clv_least_squares(work, SAMPLES, terms, targets, columns, out);
}

typedef struct scratch {
    double *columns, *samples, *gram, *values, *vectors, *targets, *work, *out, *coefficients;
} scratch;

static bool allocate(scratch *s, size_t pixels, size_t psf_size)
{
    enum { PAIRS = CLV_PACO_MAX_VECTORS * (CLV_PACO_MAX_VECTORS + 1) / 2 };
    s->columns = clv_alloc(psf_size, 2 * SPAN * sizeof(double));
    s->samples = clv_alloc(SAMPLES, pixels * sizeof(double));
    s->gram = clv_alloc(pixels * pixels, sizeof(double));
    s->values = clv_alloc(pixels, sizeof(double));
    s->vectors = clv_alloc(pixels * pixels, sizeof(double));
    s->targets = clv_alloc(SAMPLES, PAIRS * sizeof(double));
    s->coefficients = clv_alloc(SAMPLES, CLV_PACO_MAX_VECTORS * sizeof(double));
    s->work = clv_alloc(SAMPLES, CLV_PACO_TERMS_A * sizeof(double));
    s->out = clv_alloc(CLV_PACO_TERMS_A, PAIRS * sizeof(double));
    return s->columns && s->samples && s->gram && s->values && s->vectors && s->targets &&
           s->coefficients && s->work && s->out;
}

static void release(scratch *s)
{
    clv_free(s->columns), clv_free(s->samples), clv_free(s->gram), clv_free(s->values),
        clv_free(s->vectors);
    clv_free(s->targets), clv_free(s->coefficients), clv_free(s->work), clv_free(s->out);
}

/* Builds the basis of a PSF that is not shifted: the PSF itself, with constants as polynomials. */
static clv_status fixed_basis(const clv_paco_plan *plan, clv_psf_basis *basis)
{
    double h[CLV_PACO_MAX_PIXELS];
    basis->vectors = basis->terms_a = basis->terms_b = 1;
    basis->B = clv_alloc(plan->pixels, sizeof *basis->B);
    basis->X = clv_alloc(1, sizeof *basis->X);
    basis->F = clv_alloc(1, sizeof *basis->F);
    if (!basis->B || !basis->X || !basis->F)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for the PSF");
    clv_psf_shifted(plan, 0, 0, h);
    for (size_t i = 0; i < plan->pixels; ++i)
        basis->B[i] = (float)h[i];
    basis->X[0] = basis->F[0] = 1;
    return CLV_OK;
}

static clv_status moving_basis(const clv_paco_plan *plan, size_t most, scratch *s,
                               clv_psf_basis *basis)
{
    const size_t pixels = plan->pixels;
    if (!allocate(s, pixels, plan->in.psf_size))
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for the PSF basis");
    sample_shifts(plan, s->columns, s->samples);
    const size_t q = strongest(s->samples, pixels, CLV_MIN(most, pixels / 5 * 5), s->gram,
                               s->values, s->vectors);
    const size_t pairs = q * (q + 1) / 2;
    basis->vectors = q, basis->terms_a = CLV_PACO_TERMS_A, basis->terms_b = CLV_PACO_TERMS_B;
    basis->B = clv_alloc(pixels * q, sizeof *basis->B);
    basis->X = clv_alloc(basis->terms_b * q, sizeof *basis->X);
    basis->F = clv_alloc(pairs * basis->terms_a, sizeof *basis->F);
    if (!basis->B || !basis->X || !basis->F)
        return clv_fail(CLV_E_MEMORY, "paco: not enough memory for the PSF basis");
    for (size_t i = 0; i < pixels; ++i)
        for (size_t k = 0; k < q; ++k)
            basis->B[i * q + k] = (float)s->vectors[k * pixels + i];

    /* c_q(f): projections of the shifted PSFs on the basis, fitted by polynomials */
    for (size_t n = 0; n < SAMPLES; ++n)
        for (size_t k = 0; k < q; ++k) {
            double sum = 0;
            for (size_t i = 0; i < pixels; ++i)
                sum += s->samples[n * pixels + i] * s->vectors[k * pixels + i];
            s->targets[n * q + k] = sum;
        }
    bool good = fit(basis->terms_b, s->targets, q, s->work, s->out);
    for (size_t m = 0; m < basis->terms_b * q; ++m)
        basis->X[m] = (float)s->out[m];

    /* products c_p c_q of those polynomials, fitted by polynomials of a degree below that of the product */
    for (size_t n = 0; n < SAMPLES; ++n) {
        double phi[CLV_PACO_TERMS_B], c[CLV_PACO_MAX_VECTORS], *target = s->targets + n * pairs;
        monomials(node((int)n / NODES), node((int)n % NODES), basis->terms_b, phi);
        for (size_t k = 0; k < q; ++k) {
            c[k] = 0;
            for (size_t m = 0; m < basis->terms_b; ++m)
                c[k] += s->out[m * q + k] * phi[m];
        }
        for (size_t i = 0; i < q; ++i)
            for (size_t j = i; j < q; ++j)
                *target++ = c[i] * c[j] * (i == j ? 1 : 2);
    }
    good = good && fit(basis->terms_a, s->targets, pairs, s->work, s->out);
    for (size_t n = 0; n < pairs; ++n)
        for (size_t m = 0; m < basis->terms_a; ++m)
            basis->F[n * basis->terms_a + m] = (float)s->out[m * pairs + n];
    return good ? CLV_OK : clv_fail(CLV_E_INTERNAL, "paco: the PSF basis cannot be fitted");
}

clv_status clv_psf_basis_create(const clv_paco_plan *plan, size_t vectors, clv_psf_basis *basis)
{
    *basis = (clv_psf_basis){ 0 };
    if (!plan->shifted) return fixed_basis(plan, basis);
    scratch s = { 0 };
    const clv_status status = moving_basis(plan, vectors, &s, basis);
    release(&s);
    return status;
}

void clv_psf_basis_clear(clv_psf_basis *basis)
{
    clv_free(basis->B), clv_free(basis->X), clv_free(basis->F);
    *basis = (clv_psf_basis){ 0 };
}

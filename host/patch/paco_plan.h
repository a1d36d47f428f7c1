/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the plan of a PACO run, which holds everything outside the chunks: geometry, scales, PSF basis, sums. */
#ifndef CLEAVE_HOST_PATCH_PACO_PLAN_H
#define CLEAVE_HOST_PATCH_PACO_PLAN_H

#include <cleave/patch.h>

enum {
    CLV_PACO_MAX_RADIUS = 6,
    CLV_PACO_MAX_PIXELS = 113, /* pixels of the disc of radius 6 */
    CLV_PACO_MAX_VECTORS = 15,
    CLV_PACO_MAX_PSF = 1024, /* largest side of the PSF image */
    CLV_PACO_TERMS_A = 21,   /* terms of a(f), a polynomial of degree 5 in two variables */
    CLV_PACO_TERMS_B = 15,   /* terms of the basis's coefficients, polynomials of degree 4 */
};

typedef struct clv_offset {
    int dy, dx;
} clv_offset;

/* Rotation of one frame in Q32 fixed point, like `rotation` in cl/patch/paco.clh. */
typedef struct clv_rotation {
    int64_t c, s, row0, col0, back_row0, back_col0;
    float weight, gain; /* frame weight divided by the largest frame weight, and its square root */
} clv_rotation;

/* State of a pixel, as cl/patch/centre.cl writes it. */
enum { CLV_PIXEL_GOOD = 0, CLV_PIXEL_NOT_FINITE = 1, CLV_PIXEL_CONSTANT = 2 };

/* The vector h of a patch at sub-pixel position f = (fy, fx), each in [-0.5, 0.5), is sum_q c_q(f) B[.][q] with
 * c_q(f) = sum_m X[m][q] phi_m(f). With the symmetric matrix G = B' C^-1 B, a(f) = c' G c = sum_m phi_m(f) sum_n
 * F[n][m] G_n, where n counts the upper triangle by rows. */
typedef struct clv_psf_basis {
    size_t vectors, terms_a, terms_b;
    float *B; /* [pixels][vectors] */
    float *X; /* [terms_b][vectors] */
    float *F; /* [vectors (vectors + 1) / 2][terms_a] */
} clv_psf_basis;

typedef struct clv_paco_plan {
    clv_paco_input in; /* strides filled in */
    unsigned radius;
    size_t margin; /* pixels from the frame's edge to the first patch centre */
    bool shifted, vip;
    double centre_x, centre_y;
    double reach; /* no patch farther from the centre contributes to a position that has a value */
    /* added before the shift that rounds: 1/2 to round to nearest, or 0 to truncate */
    int64_t half;

    size_t pixels;
    clv_offset offset[CLV_PACO_MAX_PIXELS]; /* pixels of the disc, row-major */
    size_t lags;
    /* differences of pixel positions in a half plane: dy > 0, or dy = 0 and dx >= 0 */
    clv_offset *lag;
    uint16_t
        *entry_lag; /* [pixels (pixels + 1) / 2]: lag o_i - o_j of the pair (i, j <= i), by rows */

    float scale;        /* power of two that brings typical pixel changes near 1 */
    double psf_scale;   /* power of two that brings the PSF's norm near 1 */
    clv_rotation *turn; /* [frames] */
    clv_psf_basis basis;
    double *psf; /* [psf_size,psf_size] scaled PSF, for the reference */
    /* On CPUs, a chunk's rows are solved and projected in parts whose results take about this many bytes. The results
     * of all rows, for every chunk in flight, would take most of the memory. */
    size_t part_bytes;

    /* sums over all chunks; see cl/patch/accumulate.cl */
    int64_t *sums;   /* [4][height][width]: a high, a low, b high, b low */
    uint32_t *found; /* [height][width]: number of frames whose patch is usable */
    uint8_t *state;  /* [height][width]: CLV_PIXEL_... */
} clv_paco_plan;

/* Checks the input, computes the tables and allocates the sums. Free the plan with clv_paco_plan_free. */
clv_status clv_paco_plan_create(const clv_paco_input *input, const clv_paco_options *options,
                                clv_paco_plan **plan);
void clv_paco_plan_free(clv_paco_plan *plan); /* accepts NULL */

/* Finds the map rows to which patch centres in rows [first, first + count) can contribute in any frame. */
void clv_paco_map_rows(const clv_paco_plan *plan, size_t first, size_t count, size_t *map_first,
                       size_t *map_count);

/* The patch centre of a map position in a frame, and the sub-pixel position within its pixel. */
typedef struct clv_paco_place {
    int64_t row, col;
    double fy, fx; /* shift of the PSF: from the patch centre to the planet */
} clv_paco_place;
clv_paco_place clv_paco_locate(const clv_paco_plan *plan, size_t frame, size_t y, size_t x);

/* Converts the sums to maps in the caller's units, and counts positions by the reason why they have no value. Call it
 * after all chunks. */
void clv_paco_finish(const clv_paco_plan *plan, double *a, double *b, clv_paco_counts *counts);

/* Adds a value exactly, as the kernels do: split into a multiple of 2^-10 (`high`) and a multiple of 2^-62 (`low`). */
void clv_paco_add(int64_t *high, int64_t *low, double value);

/* ---- paco.c ---- */

/* Does the work of clv_paco with an existing plan. It can be called repeatedly; each call uses the contents of
 * plan->in.cube at the time of the call. */
clv_status clv_paco_run(clv_context *context, clv_paco_plan *plan, clv_progress *progress,
                        void *user, double *a, double *b, clv_paco_counts *counts,
                        clv_report *report);

/* ---- psf_basis.c ---- */

/* Writes h [pixels]: the PSF moved by (fy, fx) and sampled on the patch. Uses the Fourier shift of the zero-padded
 * image, which is also what the reference uses. */
void clv_psf_shifted(const clv_paco_plan *plan, double fy, double fx, double *h);
/* Moves a PSF image by (fy, fx) pixels, of any size, by a Fourier shift; outside the image, the PSF is zero. */
clv_status clv_psf_move(float *psf, size_t size, double fy, double fx);
/* Builds the basis from an SVD of the shifted PSFs. It has at most `vectors` vectors, fewer where singular values fall
 * below 1e-5 of the first. */
clv_status clv_psf_basis_create(const clv_paco_plan *plan, size_t vectors, clv_psf_basis *basis);
void clv_psf_basis_clear(clv_psf_basis *basis);

#endif

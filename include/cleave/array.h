/* SPDX-License-Identifier: Apache-2.0 */
/* Computes Monte Carlo estimates, image filters and eigenvalues on plain C arrays, on the host's cores or split over
 * the context's devices.
 *
 * The side that is predicted to finish first computes clv_monte_carlo_pi, clv_convolve_2d and clv_eigvalsh (see
 * cleave/offload.h: clv_offload_force, clv_offload_dry and clv_offload_last apply to them too). On devices, such a call
 * is one job, which the balancer splits. If you force the devices and they fail, the host does not take over: you get
 * CLV_E_NO_DEVICE if no device works, else the error of the first one that failed. */
#ifndef CLEAVE_ARRAY_H
#define CLEAVE_ARRAY_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

/* ---- Monte Carlo ----------------------------------------------------------------------------- */

/** Options of clv_monte_carlo_pi. Zero fields mean the key (0, 0) and no progress function. */
typedef struct clv_monte_carlo_options {
    size_t size;            /**< sizeof(clv_monte_carlo_options) */
    uint32_t key[2];        /**< different keys give independent random points */
    clv_progress *progress; /**< NULL: none; counts blocks of 131,072 samples */
    void *progress_user;
} clv_monte_carlo_options;

/**
 * Counts how many of `samples` random points of the unit square lie in the quarter of the unit
 * circle: 4 * inside / samples estimates pi with a standard error of 1.64 / sqrt(samples).
 *
 * Philox4x32-10 (Salmon et al. 2011) makes the points: the words (0,1) and (2,3) of counter
 * (i mod 2^32, i / 2^32, 0, 0) give points 2i and 2i + 1. A coordinate is the upper 24 bits of a word. A point is
 * inside if ux^2 + uy^2 <= 2^48, in integers. The count is therefore exact, and the same on every device, in every
 * split, and on the host. The calling thread computes the samples after the last whole block of 131,072.
 *
 * @param samples  at most 2^63.
 * @param report   NULL, or the report to which the run is added.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_CANCELLED; the statuses of clv_job_run.
 */
CLV_API clv_status clv_monte_carlo_pi(clv_context *context, uint64_t samples,
                                      const clv_monte_carlo_options *options, uint64_t *inside,
                                      clv_report *report);

/* ---- filters --------------------------------------------------------------------------------- */

/** How a filter continues an image beyond its border: the modes of scipy.ndimage, shown for a row (a b c d). */
typedef enum clv_edge {
    CLV_EDGE_REFLECT = 0, /**< (d c b a | a b c d | d c b a) */
    CLV_EDGE_CONSTANT,    /**< (k k k k | a b c d | k k k k) */
    CLV_EDGE_NEAREST,     /**< (a a a a | a b c d | d d d d) */
    CLV_EDGE_MIRROR,      /**< (d c b | a b c d | c b a) */
    CLV_EDGE_WRAP,        /**< (a b c d | a b c d | a b c d) */
} clv_edge;

/** Options of clv_convolve_2d. Zero fields mean reflected borders, dense rows and no progress function. */
typedef struct clv_convolve_options {
    size_t size; /**< sizeof(clv_convolve_options) */
    clv_edge edge;
    float constant;         /**< the value k beyond the border for CLV_EDGE_CONSTANT */
    size_t input_stride;    /**< elements from one row of the input to the next; 0: width */
    size_t output_stride;   /**< elements from one row of the output to the next; 0: width */
    clv_progress *progress; /**< NULL: none; counts rows */
    void *progress_user;
} clv_convolve_options;

/**
 * Convolves an image [height,width] with a kernel [kernel_height,kernel_width], which is mirrored as in a true
 * convolution:
 * out[r,c] = sum over i,j of kernel[i,j] * in[r + kernel_height/2 - i, c + kernel_width/2 - j]
 * The kernel's centre is its element [kernel_height/2, kernel_width/2], for even extents too, as in
 * scipy.ndimage.convolve.
 *
 * The convolution is computed in float32 with fused multiply-add. Every device sums the terms in the same order, so
 * that all devices with an exact fma give the same bits. The error is at most kernel_height * kernel_width * 2^-24
 * times the sum of the terms' magnitudes. A NaN or infinity affects every output that the kernel reaches from it. `in`
 * and `kernel` are copied before anything is written, so `out` may be either of them.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an unknown edge); CLV_E_SHAPE (an extent of 0, a stride below the width, a
 *         kernel larger than 4096 elements or than 2 * extent + 1 in an axis); CLV_E_MEMORY; the statuses of
 *         clv_job_run.
 */
CLV_API clv_status clv_convolve_2d(clv_context *context, const float *in, size_t height,
                                   size_t width, const float *kernel, size_t kernel_height,
                                   size_t kernel_width, const clv_convolve_options *options,
                                   float *out, clv_report *report);

/** Fills `kernel` [2r+1,2r+1] with a Gaussian that is cut off at r = `radius` along both axes and whose sum is 1. */
CLV_API clv_status clv_gaussian_2d(double sigma, size_t radius, float *kernel);

CLV_API const char *clv_edge_name(clv_edge edge);                    /**< "reflect", ... */
CLV_API clv_status clv_edge_parse(const char *name, clv_edge *edge); /**< CLV_E_ARGUMENT */

/* ---- matrices -------------------------------------------------------------------------------- */

/** Options of clv_eigvalsh and clv_eigvals. Zero fields mean no progress function. */
typedef struct clv_eigen_options {
    size_t size;            /**< sizeof(clv_eigen_options) */
    clv_progress *progress; /**< NULL: none; counts matrices; at most 10 calls per second */
    void *progress_user;
} clv_eigen_options;

/**
 * Computes the eigenvalues of `count` symmetric matrices [count,n,n] as `values` [count,n], in ascending order. Only
 * the lower triangles are read. Devices use cyclic Jacobi rotations in float32; the host uses Householder reflections
 * and implicit QR steps in float64.
 *
 * `values` must not share memory with `matrices`.
 *
 * Accuracy: 4 n 2^-24 times the matrix's Frobenius norm. The eigenvalues of a matrix do not depend on the other
 * matrices of the call. A matrix that holds NaN or infinity has NaN values.
 *
 * @param n  1 to 128.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE; CLV_E_MEMORY; the statuses of clv_job_run.
 */
CLV_API clv_status clv_eigvalsh(clv_context *context, const float *matrices, size_t count, size_t n,
                                const clv_eigen_options *options, float *values,
                                clv_report *report);

/**
 * Computes the eigenvalues of `count` general real matrices [count,n,n] as real and imaginary parts [count,n], in
 * ascending order of the real part, then of the imaginary part. The two values of a conjugate pair stay next to each
 * other. LAPACK's dgeev (Hessenberg form, QR) computes in float64 on the host, which spreads the matrices over its
 * cores; devices do not take part. A matrix that holds NaN or infinity has NaN values. No two of the three arrays may
 * share memory.
 *
 * The first call looks for liblapack.so.3 (or libopenblas.so.0).
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE (n is 0 or above 32767); CLV_E_MEMORY; CLV_E_CANCELLED;
 *         CLV_E_UNSUPPORTED (this machine has no LAPACK; the message names the package to install);
 *         CLV_E_INTERNAL (QR did not converge; the message names the matrix).
 * Threads: any. During the call, OpenBLAS is limited to 1 thread.
 */
CLV_API clv_status clv_eigvals(clv_context *context, const float *matrices, size_t count, size_t n,
                               const clv_eigen_options *options, float *real, float *imaginary,
                               clv_report *report);
/** Returns the name of the LAPACK that clv_eigvals uses, or NULL if it finds none. Static. */
CLV_API const char *clv_eigvals_provider(void);

CLV_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on plain arrays: by the host's cores, or split over the context's devices.
 *
 * Whoever is predicted to be done first does clv_monte_carlo_pi, clv_convolve_2d and clv_eigvalsh
 * (cleave/offload.h; clv_offload_force, clv_offload_dry and clv_offload_last hold for them too).
 * Devices do them as one job under the balancer; where they are forced and fail, the host does not
 * help out (CLV_E_NO_DEVICE without one that works, else what the first one failed with). */
#ifndef CLEAVE_ARRAY_H
#define CLEAVE_ARRAY_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

/* ---- Monte Carlo ----------------------------------------------------------------------------- */

/** All-zero: key (0, 0), no progress. */
typedef struct clv_monte_carlo_options {
    size_t size;            /**< sizeof(clv_monte_carlo_options) */
    uint32_t key[2];        /**< another key is another, independent, experiment */
    clv_progress *progress; /**< NULL: none; units are blocks of 131,072 samples */
    void *progress_user;
} clv_monte_carlo_options;

/**
 * Counts how many of `samples` random points of the unit square lie in the quarter of the unit
 * circle: 4 * inside / samples estimates pi with a standard error of 1.64 / sqrt(samples).
 *
 * Points come from Philox4x32-10 (Salmon et al. 2011): point 2i and 2i + 1 from the words (0,1)
 * and (2,3) of counter (i mod 2^32, i / 2^32, 0, 0); a coordinate is the upper 24 bits of a word;
 * ux^2 + uy^2 <= 2^48 is inside, in integers. The count is exact, and equal on every device, in
 * every split, and on the host. Samples behind the last block of 131,072 are the calling thread's.
 *
 * @param samples  at most 2^63.
 * @param report   NULL, or what the run is added to.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_CANCELLED; as clv_job_run.
 */
CLV_API clv_status clv_monte_carlo_pi(clv_context *context, uint64_t samples,
                                      const clv_monte_carlo_options *options, uint64_t *inside,
                                      clv_report *report);

/* ---- filters --------------------------------------------------------------------------------- */

/** What lies beyond the border, by the names of scipy.ndimage; (a b c d) is the row. */
typedef enum clv_edge {
    CLV_EDGE_REFLECT = 0, /**< (d c b a | a b c d | d c b a) */
    CLV_EDGE_CONSTANT,    /**< (k k k k | a b c d | k k k k) */
    CLV_EDGE_NEAREST,     /**< (a a a a | a b c d | d d d d) */
    CLV_EDGE_MIRROR,      /**< (d c b | a b c d | c b a) */
    CLV_EDGE_WRAP,        /**< (a b c d | a b c d | a b c d) */
} clv_edge;

/** All-zero: reflected borders, no progress. */
typedef struct clv_convolve_options {
    size_t size; /**< sizeof(clv_convolve_options) */
    clv_edge edge;
    float constant;         /**< k of CLV_EDGE_CONSTANT */
    size_t input_stride;    /**< elements from row to row; 0: width */
    size_t output_stride;   /**< likewise */
    clv_progress *progress; /**< NULL: none; units are rows */
    void *progress_user;
} clv_convolve_options;

/**
 * True convolution of an image [height,width] with a kernel [kernel_height,kernel_width]:
 * out[r,c] = sum over i,j of kernel[i,j] * in[r + kernel_height/2 - i, c + kernel_width/2 - j]
 * (the centre is at size/2, for even sizes too, as scipy.ndimage.convolve has it).
 *
 * Float32 with fused multiply-add, terms summed in the same order on every device: the same bits
 * wherever fma is exact. Error at most kernel_height * kernel_width * 2^-24 of the sum of the
 * magnitudes. NaN and infinity spread as far as the kernel reaches. `in` and `kernel` are copied
 * before anything is written: `out` may be either.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, edge); CLV_E_SHAPE (extents 0, a stride below the width, a
 *         kernel larger than 4096 elements or than 2 * extent + 1 in an axis); CLV_E_MEMORY; as
 *         clv_job_run.
 */
CLV_API clv_status clv_convolve_2d(clv_context *context, const float *in, size_t height,
                                   size_t width, const float *kernel, size_t kernel_height,
                                   size_t kernel_width, const clv_convolve_options *options,
                                   float *out, clv_report *report);

/** Kernel of a Gaussian, cut at `radius` in both axes, its elements' sum 1: float [2r+1,2r+1]. */
CLV_API clv_status clv_gaussian_2d(double sigma, size_t radius, float *kernel);

CLV_API const char *clv_edge_name(clv_edge edge);                    /**< "reflect" */
CLV_API clv_status clv_edge_parse(const char *name, clv_edge *edge); /**< CLV_E_ARGUMENT */

/* ---- matrices -------------------------------------------------------------------------------- */

/** All-zero: no progress. */
typedef struct clv_eigen_options {
    size_t size;            /**< sizeof(clv_eigen_options) */
    clv_progress *progress; /**< NULL: none; units are matrices; at most 10 calls a second */
    void *progress_user;
} clv_eigen_options;

/**
 * Eigenvalues of `count` symmetric matrices [count,n,n], of which the lower triangle is read, as
 * `values` [count,n] in ascending order: on devices by cyclic Jacobi rotations in float32, on the
 * host by Householder reflections and implicit QR steps in float64.
 *
 * `values` may not share memory with `matrices`.
 *
 * Accuracy: 4 n 2^-24 of the matrix's Frobenius norm. On either side the values of a matrix do not
 * depend on its neighbours. A matrix with NaN or infinity has NaN values.
 *
 * @param n  1 to 128.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE; CLV_E_MEMORY; as clv_job_run.
 */
CLV_API clv_status clv_eigvalsh(clv_context *context, const float *matrices, size_t count, size_t n,
                                const clv_eigen_options *options, float *values,
                                clv_report *report);

/**
 * Eigenvalues of `count` general real matrices [count,n,n], as real and imaginary parts [count,n],
 * ascending by real, then imaginary part; conjugates stand together. Done in float64 by LAPACK's
 * dgeev (Hessenberg form, QR) on the host, the matrices spread over its cores: there is no device path.
 * A matrix with NaN or infinity has NaN values. No two of the three may share memory.
 *
 * liblapack.so.3 (or libopenblas.so.0) is looked for at the first call.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE (n is 0 or above 32767); CLV_E_MEMORY; CLV_E_CANCELLED;
 *         CLV_E_UNSUPPORTED (there is no LAPACK on this machine: says which package has it);
 *         CLV_E_INTERNAL (QR did not converge: names the matrix).
 * Threads: any; the number of threads of OpenBLAS is set to 1 meanwhile.
 */
CLV_API clv_status clv_eigvals(clv_context *context, const float *matrices, size_t count, size_t n,
                               const clv_eigen_options *options, float *real, float *imaginary,
                               clv_report *report);
/** Whether clv_eigvals finds a LAPACK; its name, or NULL. Static. */
CLV_API const char *clv_eigvals_provider(void);

CLV_END_DECLS

#endif

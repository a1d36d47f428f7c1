/* SPDX-License-Identifier: Apache-2.0 */
/* Computes matrix products on plain memory, through functions with plain arguments (flat calls) that a code generator
 * can emit. */
#ifndef CLEAVE_BLAS_H
#define CLEAVE_BLAS_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

/** The activation after a linear layer. GELU is x * Phi(x), where Phi is the normal distribution function. */
typedef enum clv_activation {
    CLV_ACTIVATION_NONE = 0,
    CLV_ACTIVATION_GELU,      /**< exact (erf) */
    CLV_ACTIVATION_GELU_TANH, /**< 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    CLV_ACTIVATION_SILU,      /**< x / (1 + exp(-x)) */
    CLV_ACTIVATION_TANH,      /**< the hyperbolic tangent */
    CLV_ACTIVATION_RELU,      /**< x, but 0 for negative x */
} clv_activation;

/** Options of clv_matmul. Zero fields mean C = A B of dense, row-major matrices. */
typedef struct clv_matmul_options {
    size_t size; /**< sizeof(clv_matmul_options) */
    /** Strides of A from row to row and from column to column, in elements; if both are 0, A is dense: k and 1. */
    size_t a_row, a_col;
    /** Strides of B; if both are 0, B is dense: n and 1. For B = W^T, where W [n,k] is dense, give 1 and k. */
    size_t b_row, b_col;
    /** Strides of C, of which one must be 1; if both are 0, C is dense: n and 1. */
    size_t c_row, c_col;
    size_t batch;            /**< number of products; 0: one */
    size_t a_batch, b_batch; /**< elements from one matrix to the next; 0: all share one matrix */
    size_t c_batch;          /**< elements from one result to the next; 0: m * n */
    bool scale_given;        /**< use alpha and beta; else C = A B */
    float alpha, beta;       /**< C = alpha A B + beta C; with beta 0 C is not read */
    /** NULL: none. It counts the rows of C over all products, or the columns if those are contiguous. */
    clv_progress *progress;
    void *progress_user;
} clv_matmul_options;

/**
 * Computes C = alpha A B + beta C of A [m,k], B [k,n], C [m,n] in float32, with float32 sums.
 *
 * The product is computed on the context's first device that works. Small products are computed on the host, which
 * finishes them before a device would have started. A sum of 0 terms is 0. All devices and the host sum over ascending
 * k by fused multiply-add (a device that lacks it rounds each product first), so the bits of a row do not depend on the
 * other rows. If CLBlast is the provider, the error is up to 2e-6 of the sum of |a b| instead.
 *
 * @param context  the product runs on its first device that works, or on the host if none works.
 * @param options  NULL means all-zero.
 * @param c        out; must not overlap a or b (a and b may be the same matrix).
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_SHAPE (strides that do not fit, an extent of 2^32 or
 *         more); CLV_E_MEMORY; CLV_E_CANCELLED (some rows of C may be written). If the device fails, the host computes,
 *         with a warning. If beta is not 0 or the thread forces the device (clv_offload_force), the host does not take
 *         over, and you get CLV_E_DEVICE, CLV_E_DEVICE_MEMORY, CLV_E_BUILD or CLV_E_NO_DEVICE.
 * Threads: any. Calls with the same context wait for each other.
 */
CLV_API clv_status clv_matmul(clv_context *context, size_t m, size_t n, size_t k, const float *a,
                              const float *b, const clv_matmul_options *options, float *c);

/** Computes C = A B of dense, row-major matrices: clv_matmul without options. */
CLV_API clv_status clv_matmul_f32(clv_context *context, size_t m, size_t n, size_t k,
                                  const float *a, const float *b, float *c);

/** Waits until the context's flat calls, such as clv_matmul, are complete on all its devices. Flat calls block at
 *  present, so clv_sync returns at once. Code generators should emit a clv_sync before results are read. */
CLV_API clv_status clv_sync(clv_context *context);

/** Any function, to be cast to its own type. */
typedef void clv_function(void);
/**
 * Lets the host compute products of arrays (clv_product) of 4096 terms or more by your BLAS: `sgemm` is its function
 * cblas_sgemm, whose integers have 32 or 64 bits. NULL: by the library itself again. The sums of such products are
 * added in the BLAS's order. Products that the library's own kernel computes in less time (on processors with AVX2 and
 * without AVX-512, up to 406^3 terms) do not use it. It holds for the whole process.
 *
 * @return CLV_OK; CLV_E_ARGUMENT.
 */
CLV_API clv_status clv_blas_use(clv_function *sgemm, unsigned integer_bits);

CLV_END_DECLS

#endif

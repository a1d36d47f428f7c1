/* SPDX-License-Identifier: Apache-2.0 */
/* Computes Fourier transforms of arrays on the host, by a library of yours for short transforms, such as FFTW. Long
 * transforms and stacks of short ones are divided among the cores. */
#ifndef CLEAVE_ARRAY_FOURIER_H
#define CLEAVE_ARRAY_FOURIER_H

#include <cleave/array_typed.h>

CLV_BEGIN_DECLS

/** Transforms `in` to `out` as `plan` says: fftwf_execute_dft, for example. Several threads call it at the same time.
 */
typedef void clv_fourier_function(void *plan, void *in, void *out);

enum {
    CLV_FOURIER_ROWS = 8,   /**< rows that a plan of the forms ROWS and STEPS transforms at once */
    CLV_FOURIER_GAP = 8,    /**< elements between one row and the next, in the form STEPS */
    CLV_FOURIER_SHORT = 64, /**< the longest columns that the form AXES transforms side by side, */
    CLV_FOURIER_COLUMNS = 64, /**< so many at once */
    CLV_FOURIER_ALIGN = 64    /**< bytes to which the memory of every call is aligned */
};

/** How a transform of an array is divided into calls of your function. */
typedef enum clv_fourier_form {
    /** plan[0] transforms the whole array. */
    CLV_FOURIER_BY_WHOLE = 0,
    /** plan[0] transforms CLV_FOURIER_ROWS rows of the array, which follow each other without gaps. The array has a
     *  multiple of so many rows. */
    CLV_FOURIER_BY_ROWS = 1,
    /** One transform of length[0] * length[1] complex64 elements in two steps: plan[0] transforms CLV_FOURIER_ROWS
     *  rows of length[0] elements, plan[1] as many rows of length[1] elements; CLV_FOURIER_GAP elements lie between
     *  one row and the next. Input and output of a plan never overlap. */
    CLV_FOURIER_BY_STEPS = 2,
    /** Transforms to complex64 along several axes up to the last one, in two steps. plan[0] transforms `block` elements
     *  of the array along all of these axes but the first. plan[1] transforms columns of the result along that axis,
     *  which has length[0] places, length[1] elements of the result apart: if length[0] is at most CLV_FOURIER_SHORT,
     *  in place, CLV_FOURIER_COLUMNS columns side by side, so that the elements of each are that many apart; if it is
     *  longer, CLV_FOURIER_ROWS rows with gaps, as in BY_STEPS. */
    CLV_FOURIER_BY_AXES = 3,
    /** One transform of a prime number p of complex64 elements, as a cyclic convolution of p - 1 elements, whose
     *  transforms take two steps as in BY_STEPS, always with the exponent -1; length[0] * length[1] is p - 1. order[s]
     *  is the power s of a primitive root modulo p. With w = exp(-2 pi i / p), or the inverse of that for an inverse
     *  transform, `factors` are the transform, with the exponent -1, of w^order[(p - 1 - s) % (p - 1)], divided by
     *  p - 1. */
    CLV_FOURIER_BY_PRIME = 4,
} clv_fourier_form;

/** Describes a transform. */
typedef struct clv_fourier_options {
    size_t size; /**< sizeof(clv_fourier_options) */
    clv_fourier_function *run;
    void *plan[2]; /**< must live as long as the transform */
    clv_fourier_form form;
    clv_dtype from, to;                               /**< types of input and result */
    size_t rank, shape[CLV_ARRAY_RANK];               /**< of the input */
    size_t result_rank, result_shape[CLV_ARRAY_RANK]; /**< of the result */
    /** BY_STEPS and BY_PRIME: of the steps; BY_AXES: of columns, and how far the elements of one are apart. */
    size_t length[2];
    bool inverse; /**< BY_STEPS: the plans have the exponent +1 */
    double scale; /**< the result is multiplied by it; 0: it is not */
    /** BY_AXES: elements of the array that plan[0] transforms; they, and what it makes of them, have a multiple of
     *  CLV_FOURIER_ALIGN bytes. */
    size_t block;
    clv_fourier_function *run_second; /**< for plan[1], if it is not `run`; or NULL */
    const uint32_t *order; /**< BY_PRIME: p - 1 numbers, which must live as long as the transform */
    const float *factors;  /**< BY_PRIME: p - 1 complex numbers, which must live as long, too */
} clv_fourier_options;

typedef struct clv_fourier clv_fourier;

/** Prepares a transform, which any number of threads may use at the same time. Errors: CLV_E_ARGUMENT (NULL; types
 *  other than complex64, except for BY_WHOLE, BY_ROWS and the input of BY_AXES; a number in `order` that is no place);
 *  CLV_E_SHAPE (the rows, lengths or blocks do not fit the shape); CLV_E_MEMORY. */
CLV_API clv_status clv_fourier_create(const clv_fourier_options *options, clv_fourier **transform);
CLV_API void clv_fourier_free(clv_fourier *transform); /**< accepts NULL */

/**
 * Creates an array with the transform of `x`, computed on the host. `x` has the transform's type and shape, is dense,
 * and is only read. BY_STEPS needs memory for another array of that size during the call, BY_PRIME for two, and BY_AXES
 * for some columns.
 *
 * Returns NULL if it fails; clv_error_message says why: arguments or shapes that do not fit, no memory, or the elements
 * of `x` are not aligned to CLV_FOURIER_ALIGN (BY_STEPS and BY_PRIME need no alignment).
 */
CLV_API clv_array *clv_array_fourier(clv_array *x, const clv_fourier *transform);

CLV_END_DECLS

#endif

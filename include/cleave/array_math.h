/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on clv_array: expressions, reductions, products, normalisation, linear regression.
 *
 * The side that is predicted to finish first, host or device, computes each call (cleave/offload.h). If an operand is
 * only on the device, the device computes and the results stay there. A result must not share memory with an operand or
 * another result, unless the function's comment allows it; operands may share memory with each other. A call
 * returns when its result is there, unless you have made calls asynchronous (cleave/array_async.h).
 *
 * All of them can return CLV_E_ARGUMENT (NULL, arrays of different contexts, a result that shares memory with an
 * operand); CLV_E_SHAPE; CLV_E_MEMORY; CLV_E_NO_DEVICE (you forced a device and there is none). If the device cannot do
 * a call (it has no room, is lost, or does not compile the kernel), the host does it, with a warning, as long as it can
 * get the operands. */
#ifndef CLEAVE_ARRAY_MATH_H
#define CLEAVE_ARRAY_MATH_H

#include <cleave/array_data.h>
#include <cleave/offload.h>

CLV_BEGIN_DECLS

/* ---- expressions --------------------------------------------------------------------------------- */

enum { CLV_MAP_INPUTS = 12 };

/** What a name in an expression stands for: an array, or the number `value` if `array` is NULL. Frozen. */
typedef struct clv_map_input {
    const char *name; /**< letters, digits, '_'; not the name of a function */
    clv_array *array;
    float value;
} clv_map_input;

/**
 * Computes an expression for every element i, out[i] = expression of the inputs' elements at i, in one kernel:
 * clv_map(c, "a * x + b", ...).
 *
 * Inputs broadcast against `out` as in NumPy: shapes are aligned at their last axes, and an axis that is missing or has
 * extent 1 repeats. An input that has the shape of `out` may be `out` itself.
 *
 * Grammar, from the tightest binding to the loosest: numbers (1, .5, 1e-3), names, pi, e, inf, nan, f(...), (...); `**`
 * (right-associative; -x**2 is -(x**2)); unary - + !; * / % (x % y is x - y*floor(x/y), with the sign of y); + -; < <=
 * > >=; == !=; &&; ||; c ? a : b. A comparison gives 1 or 0; any number but 0 is true; both branches of ?: are
 * computed. Functions: abs acos asin atan atan2 ceil clamp(x,low,high) cos cosh erf exp exp2 expm1 floor fma hypot
 * isfinite isinf isnan log log10 log1p log2 max min pow round (halves to even) rsqrt sign sin sinh sqrt tan tanh trunc
 * where(c,a,b). If one argument of min or max is NaN and the other a number, the result is the number. Text outside
 * this grammar never reaches a compiler.
 *
 * An expression is compiled once per context. Expressions that differ only in names or numbers share one kernel (except
 * for powers and divisors such as 2 and 0.25), so you may pass a number that changes from call to call as an input or
 * write it in the text.
 *
 * Accuracy: + - * fma floor ceil min max and comparisons give the correctly rounded float32 result everywhere, except
 * that a device without subnormal numbers replaces them by 0. The error is at most 2.5 ulp for division, 3 ulp for
 * sqrt, 4 ulp for sin, cos, exp, log and similar functions, and 16 ulp for pow. These are OpenCL's bounds; the host's
 * are smaller. Integer powers up to 4 are computed as products. Operations are not contracted or reassociated.
 *
 * @return in addition CLV_E_FORMAT (the message has the position and what was expected there); CLV_E_SHAPE (an input
 *         does not broadcast); CLV_E_ARGUMENT (two inputs of the same name; an unused input is fine).
 */
CLV_API clv_status clv_map(clv_context *context, const char *expression,
                           const clv_map_input *inputs, size_t count, clv_array *out);

/** Checks whether an expression is valid with inputs of these names. `position` (may be NULL) receives the byte offset
 *  of the first error in the expression. No device is needed. Errors: CLV_E_FORMAT; CLV_E_ARGUMENT; CLV_E_MEMORY. */
CLV_API clv_status clv_map_check(const char *expression, const char *const *names, size_t count,
                                 size_t *position);

/* ---- reductions ---------------------------------------------------------------------------------- */

typedef enum clv_reduction {
    CLV_REDUCE_SUM = 0,
    CLV_REDUCE_MEAN,
    CLV_REDUCE_VAR, /**< population variance: mean of (x - mean)^2 */
    CLV_REDUCE_STD, /**< square root of the population variance */
    CLV_REDUCE_MIN,
    CLV_REDUCE_MAX,
    CLV_REDUCE_ARGMIN, /**< index of the first smallest element, as float32: exact below 2^24 */
    CLV_REDUCE_ARGMAX,
} clv_reduction;

/**
 * Reduces `in` along `axis`, or over all elements if axis is -1. `out` has the shape of `in` without the reduced axis
 * (rank 0 for -1), or with extent 1 in each reduced axis.
 *
 * Sums are compensated and added in one fixed order, so the bits are the same on every device, on the host, and in
 * every run. The error is at most 2^-23 of the result plus 2^-40 of the sum of magnitudes. With a NaN among the
 * elements, min and max are NaN, and argmin and argmax give the index of the first NaN.
 *
 * @return in addition CLV_E_SHAPE (a bad axis or shape of `out`; argmin or argmax over 2^24 elements or more).
 */
CLV_API clv_status clv_reduce(clv_context *context, clv_reduction what, clv_array *in, int axis,
                              clv_array *out);
CLV_API const char *clv_reduction_name(clv_reduction what); /**< "argmin", ... */
CLV_API clv_status clv_reduction_parse(const char *name, clv_reduction *what);

/** Creates an array with a reduction, without the reduced axis: clv_array_create and clv_reduce in one, the short way
 *  to a small reduction. Returns NULL if it fails; clv_error_message says why. */
CLV_API clv_array *clv_array_reduce(clv_reduction what, clv_array *in, int axis);

/* ---- products ------------------------------------------------------------------------------------ */

typedef struct clv_product_options {
    size_t size;                     /**< sizeof(clv_product_options) */
    bool a_transposed, b_transposed; /**< the last two axes are swapped */
} clv_product_options;

/** Computes C = A B of matrices [m,k] and [k,n], or of stacks [s,m,k] and [s,k,n]; an operand of two axes is used for
 *  the whole stack. The accuracy is that of clv_matmul. */
CLV_API clv_status clv_product(clv_context *context, clv_array *a, clv_array *b,
                               const clv_product_options *options, clv_array *c);

/** Creates an array with the product of two matrices: clv_array_create and clv_product in one, the short way to a small
 *  product. Returns NULL if it fails; clv_error_message says why. */
CLV_API clv_array *clv_array_multiply(clv_array *a, clv_array *b);

/* ---- statistics and learning --------------------------------------------------------------------- */

/**
 * Standardises every column of x [n,d]: z = (x - mean) / std, with the population's std. `gram`, unless NULL, gets
 * z z^T [n,n]; `mean` and `std`, unless NULL, get [d] each. A column whose elements are all equal has std 0 and gives
 * NaN, as IEEE division does. Sums are computed as in clv_reduce.
 */
CLV_API clv_status clv_normalize(clv_context *context, clv_array *x, clv_array *z, clv_array *gram,
                                 clv_array *mean, clv_array *std);

/**
 * Computes loss and gradient of a linear regression. With the residual r = x w - y of x [n,d], w [d], y [n], the loss
 * [] is the mean of r^2 and the gradient [d] is 2 x^T r / n. All sums run in a fixed order, by fma.
 *
 * Accuracy, relative to the sum of the terms' magnitudes: 2^-22 * sqrt(d) for a residual, 2^-22 for loss and gradient.
 */
CLV_API clv_status clv_linear_step(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                                   clv_array *loss, clv_array *gradient);

/**
 * Takes `steps` steps of gradient descent: each computes what clv_linear_step computes, then w -= rate * gradient. All
 * steps run on one side, so nothing is transferred between them. `losses` [steps], unless NULL, gets the loss before
 * each step.
 */
CLV_API clv_status clv_linear_train(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                                    float rate, size_t steps, clv_array *losses);

CLV_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on clv_array: expressions, reductions, products, normalisation, linear regression.
 *
 * Each is done by the host or by the device, whoever is predicted to be done first (cleave/offload.h);
 * where an operand lies only on the device, the device does it and results stay there. A result may
 * not share memory with an operand or another result unless said; operands may with each other. All
 * block. Errors that they share: CLV_E_ARGUMENT
 * (NULL, arrays of different contexts, a result that shares memory with an operand); CLV_E_SHAPE;
 * CLV_E_MEMORY; CLV_E_NO_DEVICE (forced to a device). What a device cannot do (no room, lost, a
 * build error) the host does, with a warning, as long as the operands can be had. */
#ifndef CLEAVE_ARRAY_MATH_H
#define CLEAVE_ARRAY_MATH_H

#include <cleave/array_data.h>
#include <cleave/offload.h>

CLV_BEGIN_DECLS

/* ---- expressions --------------------------------------------------------------------------------- */

enum { CLV_MAP_INPUTS = 12 };

/** A name of an expression: an array, or a number where `array` is NULL. Frozen. */
typedef struct clv_map_input {
    const char *name; /**< letters, digits, '_'; not a function's */
    clv_array *array;
    float value;
} clv_map_input;

/**
 * out[i] = expression of the inputs' elements at i, as one kernel: clv_map(c, "a * x + b", ...).
 *
 * Inputs broadcast against `out` as NumPy has it: shapes are aligned at their last axes, and an axis
 * that is missing or 1 repeats. An input of out's very shape may be `out` itself.
 *
 * Grammar, tightest first: numbers (1, .5, 1e-3), names, pi, e, inf, nan, f(...), (...); `**` (to the
 * right; -x**2 is -(x**2)); unary - + !; * / % (x - y*floor(x/y), the divisor's sign); + -;
 * < <= > >=; == !=; &&; ||; c ? a : b. A comparison gives 1 or 0, any number but 0 is true; both
 * branches are computed. Functions: abs acos asin atan atan2 ceil clamp(x,low,high) cos cosh erf exp
 * exp2 expm1 floor fma hypot isfinite isinf isnan log log10 log1p log2 max min pow round (halves to
 * even) rsqrt sign sin sinh sqrt tan tanh trunc where(c,a,b). min and max ignore a NaN beside a
 * number. Nothing but what this names reaches a compiler.
 *
 * An expression is compiled once a context; another one that differs in names or in numbers is the
 * same kernel (but for powers and divisors such as 2 and 0.25). A number that changes from call to
 * call may so be an input or stand in the text.
 *
 * Accuracy: + - * fma floor ceil min max comparisons as float32 everywhere; division within 2.5 ulp,
 * sqrt 3, sin cos exp log and the like 4, pow 16 (OpenCL's bounds; the host's are smaller), whole
 * powers up to 4 by products. Nothing is contracted or reassociated.
 *
 * @return also CLV_E_FORMAT (the message has the position and what was expected there); CLV_E_SHAPE
 *         (an input does not broadcast); CLV_E_ARGUMENT (a name twice, unused is fine).
 */
CLV_API clv_status clv_map(clv_context *context, const char *expression,
                           const clv_map_input *inputs, size_t count, clv_array *out);

/** Checks an expression against names; `position` (may be NULL): bytes from its beginning to the
 *  fault. No device is needed. CLV_E_FORMAT, CLV_E_ARGUMENT, CLV_E_MEMORY. */
CLV_API clv_status clv_map_check(const char *expression, const char *const *names, size_t count,
                                 size_t *position);

/* ---- reductions ---------------------------------------------------------------------------------- */

typedef enum clv_reduction {
    CLV_REDUCE_SUM = 0,
    CLV_REDUCE_MEAN,
    CLV_REDUCE_VAR, /**< population variance: mean of (x - mean)^2 */
    CLV_REDUCE_STD, /**< its root */
    CLV_REDUCE_MIN,
    CLV_REDUCE_MAX,
    CLV_REDUCE_ARGMIN, /**< index of the first smallest element, as float32: exact below 2^24 */
    CLV_REDUCE_ARGMAX,
} clv_reduction;

/**
 * Reduces `in` along `axis`, or all of it where axis is -1. `out` has in's shape without the axis
 * (rank 0 for -1), or with extent 1 there.
 *
 * Sums are compensated and added in one fixed order: the same bits on every device, on the host, and
 * run after run; error at most 2^-23 of the result plus 2^-40 of the sum of magnitudes. A NaN makes
 * min and max NaN; argmin and argmax give the first NaN's place then.
 *
 * @return also CLV_E_SHAPE (axis, out's shape, 2^24 elements or more for an argument's place).
 */
CLV_API clv_status clv_reduce(clv_context *context, clv_reduction what, clv_array *in, int axis,
                              clv_array *out);
CLV_API const char *clv_reduction_name(clv_reduction what); /**< "argmin" */
CLV_API clv_status clv_reduction_parse(const char *name, clv_reduction *what);

/* ---- products ------------------------------------------------------------------------------------ */

typedef struct clv_product_options {
    size_t size;                     /**< sizeof(clv_product_options) */
    bool a_transposed, b_transposed; /**< of the last two axes */
} clv_product_options;

/** C = A B of [m,k] and [k,n], or of stacks [s,m,k] and [s,k,n]; one without the first axis serves
 *  the whole stack. As clv_matmul. */
CLV_API clv_status clv_product(clv_context *context, clv_array *a, clv_array *b,
                               const clv_product_options *options, clv_array *c);

/* ---- statistics and learning --------------------------------------------------------------------- */

/**
 * z = (x - mean) / std of every column of x [n,d], std of the population; `gram`, unless NULL, is
 * z z^T [n,n]; `mean` and `std`, unless NULL, are [d]. A column of one value has std 0 and gives NaN,
 * as IEEE division does. Sums as in clv_reduce.
 */
CLV_API clv_status clv_normalize(clv_context *context, clv_array *x, clv_array *z, clv_array *gram,
                                 clv_array *mean, clv_array *std);

/**
 * One step of linear regression: r = x w - y of x [n,d], w [d], y [n]; loss [] = mean of r^2,
 * gradient [d] = 2 x^T r / n. Fixed order of all sums, by fma.
 *
 * Accuracy: 2^-22 * sqrt(d) of the magnitudes in a residual, 2^-22 of those in loss and gradient.
 */
CLV_API clv_status clv_linear_step(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                                   clv_array *loss, clv_array *gradient);

/**
 * `steps` such steps with w -= rate * gradient after each, all on one side: nothing is transferred
 * between them. `losses` [steps], unless NULL, has the loss before each step.
 */
CLV_API clv_status clv_linear_train(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                                    float rate, size_t steps, clv_array *losses);

CLV_END_DECLS

#endif

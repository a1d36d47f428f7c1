/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces arrays of every type along their axes (sums, products, extremes), computes running sums and products, and
 * sorts. */
#ifndef CLEAVE_ARRAY_FOLD_H
#define CLEAVE_ARRAY_FOLD_H

#include <cleave/array_typed.h>

CLV_BEGIN_DECLS

/** What clv_array_fold computes. The numbers of the constants never change; new constants come at the end. */
typedef enum clv_fold {
    CLV_FOLD_SUM = 0, /**< the sum, in the type of the result; integers wrap */
    CLV_FOLD_PROD,    /**< the product; its type is as for the sum, and integers wrap */
    CLV_FOLD_MIN, /**< the smallest element, in the type of the operand; NaN if an element is NaN */
    CLV_FOLD_MAX,
    CLV_FOLD_ANY, /**< true if at least one element is not 0 */
    CLV_FOLD_ALL, /**< true if no element is 0 */
} clv_fold;

enum { CLV_FOLDS = CLV_FOLD_ALL + 1 };

CLV_API const char *clv_fold_name(clv_fold what); /**< "sum", ...; "unknown" */

/**
 * Reduces `in` along some of its axes. `out` has the shape of `in` without these axes, or with extent 1 in each of
 * them; it must not share memory with `in`. The result is converted to the type of `out` as clv_array_cast does.
 *
 * The shape alone determines the order in which elements are combined, so that the host and all devices give the same
 * bits if their arithmetic is exact or correctly rounded. Sums are computed in levels, each of which adds groups of at
 * most 256 numbers; every factor of 256 in the number of elements needs one level. The error is at most 256 ulp of the
 * sum of the magnitudes for each level. For compensated sums of float32, use clv_reduce.
 *
 * Over no elements, the sum is 0, the product is 1, ANY is false and ALL is true; MIN and MAX are refused.
 *
 * @param axes  bit k stands for axis k; with 0, nothing is reduced.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE; CLV_E_UNSUPPORTED (MIN or MAX of complex numbers); CLV_E_MEMORY;
 *         CLV_E_NO_DEVICE (you forced a device and there is none).
 */
CLV_API clv_status clv_array_fold(clv_context *context, clv_fold what, clv_array *in, uint32_t axes,
                                  clv_array *out);

/** Computes running sums (CLV_FOLD_SUM) or products (CLV_FOLD_PROD) along `axis`, on the host, in the type of `out`,
 *  which has the shape of `in`. Errors: those of clv_array_fold; CLV_E_ARGUMENT for another fold. */
CLV_API clv_status clv_array_scan(clv_context *context, clv_fold what, clv_array *in, size_t axis,
                                  clv_array *out);

/** Flags of clv_array_order. */
enum { CLV_ORDER_DESCENDING = 1 };

/**
 * Finds, on the host, the order that sorts `in` along `axis`. `places`, of type int64 and the shape of `in`, receives
 * for each position of that order the place (index along `axis`) of the element that belongs there. Equal elements keep
 * their order in both directions; -0 and 0 are equal. NaN counts as larger than every number. For an array of one axis,
 * clv_array_take with `places` gives the sorted elements.
 *
 * @return the statuses of clv_array_fold; CLV_E_UNSUPPORTED (complex numbers).
 */
CLV_API clv_status clv_array_order(clv_context *context, clv_array *in, size_t axis,
                                   unsigned options, clv_array *places);

/**
 * Finds, on the host, the places at which `values` can be inserted into the ascending row `sorted` [n] so that it stays
 * ascending: for each value the first such place (`right` false) or the last one (`right` true). `places` has type
 * int64 and the shape of `values`. Numbers are compared in the type to which the types of `sorted` and `values`
 * promote; NaN counts as larger than every number.
 *
 * @return the statuses of clv_array_order.
 */
CLV_API clv_status clv_array_locate(clv_context *context, clv_array *sorted, clv_array *values,
                                    bool right, clv_array *places);

CLV_END_DECLS

#endif

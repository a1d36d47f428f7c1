/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of arrays by their places. */
#ifndef CLEAVE_ARRAY_TAKE_H
#define CLEAVE_ARRAY_TAKE_H

#include <cleave/array_typed.h>

CLV_BEGIN_DECLS

/**
 * Takes slices of `in` along `axis`: slice j of `out` is slice places[j] of `in`. `places` holds integers of any type
 * and any shape, whose elements count row by row; negative ones count from the end. `out` has as many elements as `in`
 * has for that many slices, in that order: its shape is that of `in` with the shape of `places` instead of `axis`, or
 * any other of as many elements, if it is dense. It must not share memory with the operands.
 *
 * The places are read by the host, which checks them; the elements stay where they are.
 *
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE (a place outside of the axis, which the message names; another number of
 *         elements); CLV_E_MEMORY; CLV_E_NO_DEVICE (you forced a device and there is none).
 */
CLV_API clv_status clv_array_take(clv_context *context, clv_array *in, size_t axis,
                                  clv_array *places, clv_array *out);

/**
 * Writes slices into `out` along `axis`: slice places[j] of `out` becomes slice j of `values`, which has as many
 * elements as that takes, in that order, and is converted to the type of `out`. If a place comes twice, its last slice
 * stays. What no place names is not changed. `values` and `places` may share memory with `out`. Errors as
 * clv_array_take.
 */
CLV_API clv_status clv_array_put_at(clv_context *context, clv_array *out, size_t axis,
                                    clv_array *places, clv_array *values);

/** Makes an array [n] of int64 of the places of the n elements of `in` that are not 0, row by row. The host counts them:
 *  one byte per element comes from a device. */
CLV_API clv_status clv_array_find(clv_context *context, clv_array *in, clv_array **places);

CLV_END_DECLS

#endif

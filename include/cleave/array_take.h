/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes slices of arrays by their places (indices along an axis), and finds the elements that are not 0. */
#ifndef CLEAVE_ARRAY_TAKE_H
#define CLEAVE_ARRAY_TAKE_H

#include <cleave/array_typed.h>

CLV_BEGIN_DECLS

/**
 * Takes slices of `in` along `axis`: slice j of `out` is slice places[j] of `in`. `places` is an array of integers of
 * any type and any shape, which is read row by row; negative places count from the end. The shape of `out` is that of
 * `in` with the shape of `places` instead of `axis`. A dense `out` may have any other shape with as many elements.
 * `out` must not share memory with the operands.
 *
 * The host reads and checks the places; the elements stay where they are.
 *
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_SHAPE (a place outside of the axis, which the message names; another number of
 *         elements); CLV_E_MEMORY; CLV_E_NO_DEVICE (you forced a device and there is none).
 */
CLV_API clv_status clv_array_take(clv_context *context, clv_array *in, size_t axis,
                                  clv_array *places, clv_array *out);

/**
 * Writes slices into `out` along `axis`: slice places[j] of `out` becomes slice j of `values`, converted to the type of
 * `out`. `values` must have exactly as many elements as these slices together, in the order of `places`. If a place
 * occurs several times, the last slice for it is kept. Slices of `out` that no place names do not change. `values` and
 * `places` may share memory with `out`. Errors: those of clv_array_take.
 */
CLV_API clv_status clv_array_put_at(clv_context *context, clv_array *out, size_t axis,
                                    clv_array *places, clv_array *values);

/** Makes an array [n] of int64 with the places of the n elements of `in` that are not 0, counted row by row. The host
 *  searches for these elements: if `in` is on a device, one byte per element is transferred. */
CLV_API clv_status clv_array_find(clv_context *context, clv_array *in, clv_array **places);

CLV_END_DECLS

#endif

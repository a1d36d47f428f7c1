/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of float32 that wrap your memory or stay on a device between calls. cleave/array_typed.h has arrays of every
 * other type, views that share memory with another array, and up to 8 axes: all of them are clv_array. */
#ifndef CLEAVE_ARRAY_DATA_H
#define CLEAVE_ARRAY_DATA_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

enum { CLV_ARRAY_AXES = 4 };

/**
 * An array. The functions of this header make dense, row-major arrays of float32. There are two kinds. A *wrapping*
 * array is your own memory, which every operation reads and writes. An *owned* array stays on the side, host or device,
 * that used it last. Its elements are transferred only when you ask for it (clv_array_get, clv_array_put) or when a
 * call is forced to the other side.
 *
 * An array belongs to its context, and keeps it: a context that is freed before its arrays lives until the last of them
 * is freed.
 *
 * Threads: any thread may use any array. Calls that use the same elements, through one array or through views of it,
 * run one after another, in an order that only you can decide: wait for the thread that fills an array before another
 * thread reads it. Free an array, or change its shape, when no other thread uses it. The memory of a wrapping array and
 * the address from clv_array_host() are yours: the library does not keep other threads of yours from them. A function
 * of yours that the library calls during a call (progress) gets CLV_E_BUSY for an array that another thread uses.
 */
typedef struct clv_array clv_array;

/** Creates an owned array with undefined contents; its memory is allocated at its first use. `rank` 0 means a single
 *  number. Errors: CLV_E_ARGUMENT; CLV_E_SHAPE (more than 4 axes, an extent of 0, 2^31 elements or more in all);
 *  CLV_E_MEMORY. */
CLV_API clv_status clv_array_create(clv_context *context, size_t rank, const size_t *shape,
                                    clv_array **array);

/** Creates an owned array with the elements of `host` and copies them to the device at once, or to host memory if no
 *  device works or has room. Errors: those of clv_array_create. */
CLV_API clv_status clv_array_from(clv_context *context, const float *host, size_t rank,
                                  const size_t *shape, clv_array **array);

/** Makes an array that uses your memory without copying it. The memory must outlive the array. */
CLV_API clv_status clv_array_wrap(clv_context *context, float *host, size_t rank,
                                  const size_t *shape, clv_array **array);

CLV_API void clv_array_free(clv_array *array); /**< accepts NULL */

/** Copies all elements of the array to `host`, with a transfer if they are on a device. */
CLV_API clv_status clv_array_get(clv_array *array, float *host);
/** Copies all elements from `host` to the side, host or device, that holds the array. */
CLV_API clv_status clv_array_put(clv_array *array, const float *host);

CLV_API size_t clv_array_rank(const clv_array *array);
CLV_API const size_t *
clv_array_shape(const clv_array *array); /**< borrowed, 4 numbers; 1 beyond the rank */
CLV_API size_t clv_array_elements(const clv_array *array);
/** Returns whether the array's latest contents are on a device. */
CLV_API bool clv_array_is_on_device(const clv_array *array);

/** Changes the shape and keeps the elements. Returns CLV_E_SHAPE if the new shape has another number of elements. */
CLV_API clv_status clv_array_reshape(clv_array *array, size_t rank, const size_t *shape);

/** Creates an owned copy on the side that holds the elements, or on the host if the device has no room. If the contents
 *  of `array` are undefined, so are those of the copy. `shape` [rank] must give as many elements as `array` has; if it
 *  is NULL, the copy keeps the shape of `array`, and `rank` is ignored. Errors: CLV_E_ARGUMENT; CLV_E_SHAPE;
 *  CLV_E_MEMORY; CLV_E_DEVICE. */
CLV_API clv_status clv_array_copy(clv_array *array, size_t rank, const size_t *shape,
                                  clv_array **copy);

/** Counts the operations and transfers of a context's arrays since the context was created. Frozen. */
typedef struct clv_array_stats {
    uint64_t calls_host, calls_device; /**< operations computed on the host, on the device */
    uint64_t fallbacks;          /**< operations that a device could not do, so the host did */
    uint64_t uploads, downloads; /**< transfers of whole arrays */
    uint64_t bytes_to_device, bytes_from_device;
} clv_array_stats;
CLV_API clv_array_stats clv_array_statistics(clv_context *context);

CLV_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of float32 that lie in the caller's memory or stay on a device between calls. */
#ifndef CLEAVE_ARRAY_DATA_H
#define CLEAVE_ARRAY_DATA_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

enum { CLV_ARRAY_AXES = 4 };

/**
 * A dense, row-major array of float32. Two kinds: one *wraps* memory of the caller, which every
 * operation reads and writes; one is *owned*, lies where it was used last, and moves only when asked
 * (clv_array_get, clv_array_put) or when a call is forced to the other side.
 *
 * An array belongs to its context, is freed before it, and is used by one thread at a time.
 */
typedef struct clv_array clv_array;

/** An owned array, its contents undefined; its memory comes with its first use. `rank` 0 is one
 *  number. CLV_E_ARGUMENT; CLV_E_SHAPE (more than 4 axes, an extent of 0, or of 2^31 elements or
 *  more in all); CLV_E_MEMORY. */
CLV_API clv_status clv_array_create(clv_context *context, size_t rank, const size_t *shape,
                                    clv_array **array);

/** The same, filled from `host` and brought to the device at once (to the host's memory where no
 *  device works or has room). As clv_array_create. */
CLV_API clv_status clv_array_from(clv_context *context, const float *host, size_t rank,
                                  const size_t *shape, clv_array **array);

/** The caller's memory as an array, without a copy: it must outlive the array. */
CLV_API clv_status clv_array_wrap(clv_context *context, float *host, size_t rank,
                                  const size_t *shape, clv_array **array);

CLV_API void clv_array_free(clv_array *array); /**< accepts NULL */

/** Copies all elements to `host`; a transfer where the array lies on a device. */
CLV_API clv_status clv_array_get(clv_array *array, float *host);
/** Copies all elements from `host`, to where the array lies. */
CLV_API clv_status clv_array_put(clv_array *array, const float *host);

CLV_API size_t clv_array_rank(const clv_array *array);
CLV_API const size_t *
clv_array_shape(const clv_array *array); /**< borrowed, 4 numbers, last ones 1 */
CLV_API size_t clv_array_elements(const clv_array *array);
CLV_API bool clv_array_is_on_device(const clv_array *array); /**< its latest contents are */

/** The same elements under another shape of as many. CLV_E_SHAPE. */
CLV_API clv_status clv_array_reshape(clv_array *array, size_t rank, const size_t *shape);

/** An owned array with the same elements, where they lie at present (with the host when the device has no
 *  room); of an array without contents, one without. `shape` [rank] is of as many elements; NULL: as it is,
 *  `rank` counts for nothing. CLV_E_ARGUMENT; CLV_E_SHAPE; CLV_E_MEMORY; CLV_E_DEVICE. */
CLV_API clv_status clv_array_copy(clv_array *array, size_t rank, const size_t *shape,
                                  clv_array **copy);

/** What arrays and their operations did in a context since it was created. Frozen. */
typedef struct clv_array_stats {
    uint64_t calls_host, calls_device; /**< operations by the side that did them */
    uint64_t fallbacks;                /**< that the host did since a device could not */
    uint64_t uploads, downloads;       /**< transfers of whole arrays */
    uint64_t bytes_to_device, bytes_from_device;
} clv_array_stats;
CLV_API clv_array_stats clv_array_statistics(clv_context *context);

CLV_END_DECLS

#endif

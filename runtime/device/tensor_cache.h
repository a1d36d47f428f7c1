/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that one job after the other reads, packed weights above all: filled once and kept on
 * their device while there is room, least recently used ones given up first.
 *
 * A tensor is known by its owner (any address that is the owner's own) and a number. Whoever gets
 * it pins it; without a pin it may go at any time, to be filled anew when it is asked for again. The
 * limit is soft: what is pinned stays. Memory that is wanted and not there takes tensors before it
 * fails (clv_buffer_create). */
#ifndef CLEAVE_RUNTIME_DEVICE_TENSOR_CACHE_H
#define CLEAVE_RUNTIME_DEVICE_TENSOR_CACHE_H

#include <cleave/runtime.h>

typedef struct clv_kept_tensor clv_kept_tensor;

/* Of one device, whose lock guards it. */
typedef struct clv_tensor_cache {
    clv_kept_tensor *latest; /* then the others, by their last use */
    uint64_t wish;           /* bytes at most; 0: the device's budget */
    uint64_t bytes, pinned_bytes, hits, fills, evictions;
} clv_tensor_cache;

/* The device's, empty; keeps `wish` bytes at most, 0: the budget. CLV_E_MEMORY. */
clv_status clv_tensors_make(clv_device *device, uint64_t wish);
/* At the device's end, before its pool goes; accepts a device that has none. */
void clv_tensors_free(clv_device *device);

/* Fills a tensor's fresh buffer; commands need not be complete when it returns. */
typedef clv_status (*clv_tensor_fill)(clv_queue *queue, clv_buffer *buffer, const void *user);

/* The owner's tensor `part` of `bytes` on the queue's device, pinned; `fill` is called when it is not
 * there. As clv_buffer_create, and what `fill` returns. */
clv_status clv_tensor_get(clv_queue *queue, const void *owner, size_t part, size_t bytes,
                          clv_tensor_fill fill, const void *user, clv_kept_tensor **out);
clv_buffer *clv_tensor_buffer(const clv_kept_tensor *tensor);
/* Commands that read it need only be enqueued; accepts NULL. */
void clv_tensor_put(clv_kept_tensor *tensor);

/* A buffer of the open device, for which tensors that nobody has pinned are given up where there is no
 * room: they can be filled again. */
clv_status clv_tensors_make_room(clv_device *device, size_t bytes, clv_buffer_kind kind,
                                 clv_buffer **out);
/* All of an owner's, whose address means nothing from now on; pinned ones go when they are put. */
void clv_tensors_drop(clv_device *device, const void *owner);
/* Gives the least recently used one up after its last command; false: all that are left are
 * pinned. The device's lock is not held. */
bool clv_tensors_evict(clv_device *device);

#endif

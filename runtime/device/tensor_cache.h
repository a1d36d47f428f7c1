/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps tensors that many jobs read, above all packed weights. They are filled once and stay on their device while
 * there is room; the least recently used ones are given up first.
 *
 * A tensor is identified by its owner (any address that belongs to the owner) and a number. A caller that gets a
 * tensor pins it. Without a pin a tensor may be given up at any time, and is filled again when a caller next asks for
 * it. The limit is soft, because pinned tensors stay. A buffer for which there is no room (clv_buffer_create) takes
 * the room of tensors before its creation fails. */
#ifndef CLEAVE_RUNTIME_DEVICE_TENSOR_CACHE_H
#define CLEAVE_RUNTIME_DEVICE_TENSOR_CACHE_H

#include <cleave/runtime.h>

typedef struct clv_kept_tensor clv_kept_tensor;

/* The tensors of one device, guarded by the device's lock. */
typedef struct clv_tensor_cache {
    clv_kept_tensor *latest; /* list of tensors, the last used one first */
    uint64_t wish;           /* most bytes to keep; 0: the device's budget */
    uint64_t bytes, pinned_bytes, hits, fills, evictions;
} clv_tensor_cache;

/* Creates the device's cache, empty. The cache keeps at most `wish` bytes; 0 means the device's budget. Error:
 * CLV_E_MEMORY. */
clv_status clv_tensors_make(clv_device *device, uint64_t wish);
/* Frees the tensors when the device is closed, before its pool; accepts a device without a cache. */
void clv_tensors_free(clv_device *device);

/* Fills a tensor's fresh buffer. The commands need not be complete when the function returns. */
typedef clv_status (*clv_tensor_fill)(clv_queue *queue, clv_buffer *buffer, const void *user);

/* Pins the owner's tensor `part` of `bytes` bytes on the queue's device; calls `fill` if the tensor is not there.
 * Returns the errors of clv_buffer_create and of `fill`. */
clv_status clv_tensor_get(clv_queue *queue, const void *owner, size_t part, size_t bytes,
                          clv_tensor_fill fill, const void *user, clv_kept_tensor **out);
clv_buffer *clv_tensor_buffer(const clv_kept_tensor *tensor);
/* Unpins a tensor; commands that read it need only be enqueued. Accepts NULL. */
void clv_tensor_put(clv_kept_tensor *tensor);

/* Creates a buffer on the open device. If there is no room, gives up tensors that are not pinned, because they can be
 * filled again. */
clv_status clv_tensors_make_room(clv_device *device, size_t bytes, clv_buffer_kind kind,
                                 clv_buffer **out);
/* Drops all tensors of an owner, whose address means nothing from now on. Pinned tensors are freed when they are
 * unpinned. */
void clv_tensors_drop(clv_device *device, const void *owner);
/* Gives up the least recently used tensor after its last command. Returns false when only pinned tensors are left.
 * The device's lock is not held. */
bool clv_tensors_evict(clv_device *device);

#endif

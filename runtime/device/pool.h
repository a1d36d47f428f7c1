/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the buffers of one device: keeps to a memory budget, and keeps freed memory for later requests. */
#ifndef CLEAVE_RUNTIME_DEVICE_POOL_H
#define CLEAVE_RUNTIME_DEVICE_POOL_H

#include "probe/memory/own.h"
#include "runtime/record/device.h"

typedef struct clv_pool {
    size_t max_alloc; /* most bytes of one buffer */
    clv_memory_stats stats;
    clv_own own;               /* bytes used and cached, which the probe reports */
    struct clv_buffer *cached; /* free buffers, latest first */
    struct clv_buffer *shells; /* empty records of wrapped memory, for reuse */
    uint64_t
        staging_cached;    /* bytes of free staging memory that are the host's, not the device's */
    cl_command_queue maps; /* queue that maps staging memory; NULL before its first use */
} clv_pool;

/* The latest command of a queue that uses a buffer. Queues are in order, so this command ends after the queue's
 * earlier ones. */
typedef struct clv_use {
    const void *queue;
    cl_event event; /* NULL: none */
} clv_use;

enum { CLV_BUFFER_USES = 3 }; /* a device's two queues and one of the caller's own */

struct clv_buffer {
    clv_device *device;
    struct clv_buffer *next; /* in the pool's list */
    cl_mem mem;
    uint64_t serial; /* of `mem`; unique in this process */
    size_t bytes;    /* as requested */
    size_t capacity; /* as allocated */
    clv_buffer_kind kind;
    bool pooled; /* false: wraps the caller's memory */
    /* SHARED: our own memory, which the driver gets when the buffer is first lent; NULL: the driver allocated it */
    void *memory;
    void *mapped;                  /* STAGING, SHARED: its address while the host may use it */
    clv_use uses[CLV_BUFFER_USES]; /* guarded by the device's `use_lock` */
    bool shared; /* more queues used it than `uses` can hold: `uses` is incomplete */
};

/* Creates the device's pool, empty. The device's budget must be set before. Error: CLV_E_MEMORY. */
clv_status clv_pool_make(clv_device *device);
/* Frees the pool when the device is closed; accepts a device without a pool. */
void clv_pool_free(clv_device *device);

/* Takes memory from the pool, or from the driver if the pool has none of that size. The device must be open. Returns
 * CLV_E_DEVICE_MEMORY when the budget or the driver has no room. */
clv_status clv_pool_take(clv_device *device, size_t bytes, clv_buffer_kind kind, clv_buffer **out);
/* Gives all cached buffers back to the driver. The device's lock is held. */
void clv_pool_clear(clv_device *device);
/* Frees a buffer as clv_buffer_free does, but gives its memory back to the driver. Accepts NULL. */
void clv_buffer_discard(clv_buffer *buffer);

/* A SHARED buffer belongs to the host until clv_buffer_lend gives it to the queue's device; clv_buffer_reclaim waits
 * for the queue and takes it back. Nothing is copied. Neither does anything if that side has the buffer already. */
clv_status clv_buffer_lend(clv_queue *queue, clv_buffer *buffer);
clv_status clv_buffer_reclaim(clv_queue *queue, clv_buffer *buffer);

/* Notes a command as the latest user of the buffer and retains `event`. Queues of several threads may use a
 * buffer at once. */
void clv_buffer_used(const clv_buffer *buffer, const void *queue, cl_event event);
/* clv_buffers_used notes a command as clv_buffer_used does, for several buffers of one device. */
enum { CLV_USED_AT_ONCE = 16 };
void clv_buffers_used(const clv_buffer *const *buffers, size_t count, const void *queue,
                      cl_event event);
/* Waits for the commands that are noted as the buffer's users. */
void clv_buffer_wait(clv_buffer *buffer);
/* Forgets the commands that are noted as the buffer's users, without waiting for them. */
void clv_buffer_unused(clv_buffer *buffer);

#endif

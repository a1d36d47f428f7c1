/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of one device: a budget, and memory kept for the next one who asks. */
#ifndef CLEAVE_RUNTIME_DEVICE_POOL_H
#define CLEAVE_RUNTIME_DEVICE_POOL_H

#include "probe/memory/own.h"
#include "runtime/record/device.h"

typedef struct clv_pool {
    size_t max_alloc; /* bytes of one buffer, at most */
    clv_memory_stats stats;
    clv_own own;               /* used and cached, for reports of the probe */
    struct clv_buffer *cached; /* free ones, latest first */
    struct clv_buffer *shells; /* of wrapped memory that was given back: bookkeeping alone */
    uint64_t
        staging_cached;    /* bytes of free staging memory that are the host's, not the device's */
    cl_command_queue maps; /* maps staging memory; NULL before the first of it */
} clv_pool;

/* The latest command of a queue that touches a buffer; in order, so that it ends last. */
typedef struct clv_use {
    const void *queue;
    cl_event event; /* NULL: none */
} clv_use;

enum { CLV_BUFFER_USES = 3 }; /* a device's two queues and one of a caller's own */

struct clv_buffer {
    clv_device *device;
    struct clv_buffer *next; /* in the pool's list */
    cl_mem mem;
    uint64_t serial; /* of `mem`: no other one of this process has it */
    size_t bytes;    /* as asked */
    size_t capacity; /* as allocated */
    clv_buffer_kind kind;
    bool pooled;                   /* false: wraps memory of the caller */
    void *mapped;                  /* STAGING: where the host sees it */
    clv_use uses[CLV_BUFFER_USES]; /* the device's `use_lock` guards them */
    bool shared; /* used by more queues than that: `uses` do not tell everything */
};

/* The device's pool, empty; its budget is known. CLV_E_MEMORY. */
clv_status clv_pool_make(clv_device *device);
/* At the device's end; accepts a device that has none. */
void clv_pool_free(clv_device *device);

/* Memory from the pool, or from the driver where the pool has none of that size. The device is open.
 * CLV_E_DEVICE_MEMORY: the budget, or the driver, has no room. */
clv_status clv_pool_take(clv_device *device, size_t bytes, clv_buffer_kind kind, clv_buffer **out);
/* Gives all cached buffers back. The device's lock is held. */
void clv_pool_clear(clv_device *device);

/* Notes a command as the buffer's latest user; `event` is retained. Queues of several threads may
 * use a buffer at once. */
void clv_buffer_used(const clv_buffer *buffer, const void *queue, cl_event event);
/* The same of several buffers of one device. */
enum { CLV_USED_AT_ONCE = 16 };
void clv_buffers_used(const clv_buffer *const *buffers, size_t count, const void *queue,
                      cl_event event);
/* Waits for the commands that were noted. */
void clv_buffer_wait(clv_buffer *buffer);
/* Forgets them. */
void clv_buffer_unused(clv_buffer *buffer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a storage: bytes that arrays share. They are in the caller's memory, or on the host or device that used them
 * last. */
#ifndef CLEAVE_HOST_ARRAY_STORAGE_H
#define CLEAVE_HOST_ARRAY_STORAGE_H

#include "base/thread.h"
#include "runtime/offload/engine.h"

#include <cleave/offload.h>

#include <stdatomic.h>

/* A block of bytes with a count of the arrays that use it. The last array frees it. Where the device shares the host's
 * memory, an owned storage is one block for both, a SHARED buffer: each side gets it in turn, and nothing is copied. */
typedef struct clv_storage {
    clv_context *context;
    atomic_size_t users;
    clv_mutex lock; /* recursive; see clv_storages_lock */
    size_t bytes;
    /* `host` always has the latest bytes; it is the caller's memory, or `exposed` */
    atomic_bool wraps;
    atomic_bool
        exposed; /* the caller uses `host`, which must stay where it is; the storage owns it */
    void *host;  /* owned storage: allocated on first use; a SHARED buffer's memory */
    clv_buffer *buffer; /* owned storage only; allocated on first use */
    /* where the latest bytes are; both false: the contents are undefined */
    atomic_bool on_host, on_device;
    clv_buffer *at; /* during a call on a device: the buffer that kernels use */
    /* how many asynchronous calls use the storage, and why the call that should have written it failed: pending.h */
    atomic_size_t pending;
    _Atomic(struct clv_pending_failure *) failure;
    clv_side planned; /* the side on which the latest plan writes the storage; AUTO: no plan */
} clv_storage;

/* Makes a storage with one user. `wrapped` is the caller's memory, or NULL. Returns NULL without memory. */
clv_storage *clv_storage_make(clv_context *context, size_t bytes, void *wrapped);
void clv_storage_retain(clv_storage *storage);
void clv_storage_release(clv_storage *storage);
/* returns whether the contents are undefined */
bool clv_storage_is_empty(const clv_storage *storage);
/* Returns whether host and device have the bytes in one memory, or will have them there once there are any. */
bool clv_storage_is_shared(const clv_storage *storage);
/* Returns whether the host can use the bytes at once, without a copy and without asking the device for them. */
bool clv_storage_is_here(const clv_storage *storage);
/* the same storage, or shared memory */
bool clv_storage_overlap(const clv_storage *a, const clv_storage *b);

/* Waits until no other thread uses the storages, and keeps other threads from using them until clv_storages_unlock. A
 * storage may be named twice, and a thread may lock it again. Sorts `storages`. Waits first for the asynchronous calls
 * that use them, and returns the failure of such a call. Returns CLV_E_BUSY if this thread is
 * inside another call on the context and another thread uses a storage: that thread may be waiting for this call. */
clv_status clv_storages_lock(clv_storage **storages, size_t count);
void clv_storages_unlock(clv_storage *const *storages, size_t count);

/* The next two functions copy the bytes to the side that executes a call. `input`: the call reads the bytes; `output`:
 * the call writes them. The caller holds the storage's lock and, for clv_storage_to_device, the engine's. */
clv_status clv_storage_to_device(clv_storage *storage, clv_engine *engine, unsigned key, bool input,
                                 bool output);
clv_status clv_storage_to_host(clv_storage *storage, bool input);
/* Records that a call on that side has written the storage. */
void clv_storage_written(clv_storage *storage, bool on_device);

/* The remaining functions lock the storage themselves. */

/* Copies `bytes` bytes from `offset` on to `host`. Returns CLV_E_ARGUMENT if the storage has no contents yet. */
clv_status clv_storage_read(clv_storage *storage, size_t offset, void *host, size_t bytes);
/* Replaces the contents of a storage: on a device if one works and `stay_on_host` is false, otherwise on the host. */
clv_status clv_storage_put(clv_storage *storage, const void *host, bool stay_on_host);
/* Gives the caller the address of the bytes, for as long as the storage lives. Returns CLV_E_UNSUPPORTED if only a
 * device's own memory has the bytes. */
clv_status clv_storage_expose(clv_storage *storage, void **host);
/* Fills `to` with the bytes of `from` that begin at `offset`, on the side that has the bytes. */
clv_status clv_storage_copy(clv_storage *from, size_t offset, clv_storage *to);

#endif

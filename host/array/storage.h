/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that arrays share: they lie in the caller's memory, or on the host or a device, whichever used them last. */
#ifndef CLEAVE_HOST_ARRAY_STORAGE_H
#define CLEAVE_HOST_ARRAY_STORAGE_H

#include "runtime/offload/engine.h"

#include <cleave/offload.h>

#include <stdatomic.h>

/* The last array that uses a storage frees it. */
typedef struct clv_storage {
    clv_context *context;
    atomic_size_t users;
    size_t bytes;
    bool wraps;              /* `host` belongs to the caller and always has the latest bytes */
    void *host;              /* owned storage: allocated when needed */
    clv_buffer *buffer;      /* owned storage only; allocated when needed */
    bool on_host, on_device; /* where the latest bytes are; neither: undefined contents */
    clv_buffer *at;          /* during a call on the device: the kernels' argument */
    clv_side planned;        /* the side that the latest plan wrote it on; AUTO: none */
} clv_storage;

/* Makes a storage with one user. `wrapped` is the caller's memory, or NULL. Returns NULL without memory. */
clv_storage *clv_storage_make(clv_context *context, size_t bytes, void *wrapped);
void clv_storage_retain(clv_storage *storage);
void clv_storage_release(clv_storage *storage);
bool clv_storage_is_empty(const clv_storage *storage); /* whether its contents are undefined */
bool clv_storage_overlap(const clv_storage *a, const clv_storage *b); /* one, or shared memory */

/* Bring the bytes to where a call needs them. For the device, the engine must be locked. */
clv_status clv_storage_to_device(clv_storage *storage, clv_engine *engine, unsigned key, bool input,
                                 bool output);
clv_status clv_storage_to_host(clv_storage *storage, bool input);
/* Marks the storage as written by a call on that side. */
void clv_storage_written(clv_storage *storage, bool on_device);

/* Copies `bytes` from `offset` on to `host`. CLV_E_ARGUMENT: it has no contents yet. */
clv_status clv_storage_read(clv_storage *storage, size_t offset, void *host, size_t bytes);
/* Gives all of a storage new bytes: on the device if one works and `stay_on_host` is false. */
clv_status clv_storage_put(clv_storage *storage, const void *host, bool stay_on_host);
/* Gives `to` the bytes of `from` that begin at `offset`, on the side where they lie. */
clv_status clv_storage_copy(clv_storage *from, size_t offset, clv_storage *to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the bytes of a storage to the host or the device. If the device shares the host's memory, it gets the memory
 * itself; otherwise one side has the latest bytes, and they are copied only when the other side uses them. */
#include "host/array/storage.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "host/array/pending.h"
#include "runtime/context/free.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <cleave/array_data.h>

#include <string.h>

static bool is_shared(const clv_storage *storage)
{
    return storage->buffer && storage->buffer->kind == CLV_BUFFER_SHARED;
}

/* Returns the device that computes single calls, if it is open and shares the host's memory; else NULL. */
static clv_device *sharer(const clv_context *context)
{
    for (size_t i = 0; i < context->device_count; ++i)
        if (context->devices[i].state == CLV_DEVICE_READY)
            return context->devices[i].zero_copy ? &context->devices[i] : NULL;
    return NULL;
}

bool clv_storage_is_shared(const clv_storage *storage)
{
    if (storage->wraps || storage->buffer || storage->host) return is_shared(storage);
    return storage->context->device_count && storage->context->devices[0].zero_copy;
}

bool clv_storage_is_here(const clv_storage *storage)
{
    if (is_shared(storage)) return storage->buffer->mapped;
    return storage->on_host || clv_storage_is_empty(storage);
}

clv_storage *clv_storage_make(clv_context *context, size_t bytes, void *wrapped)
{
    clv_storage *made = clv_zalloc(1, sizeof *made);
    if (!made || !clv_mutex_init_recursive(&made->lock)) {
        clv_free(made);
        return NULL;
    }
    made->context = context;
    made->bytes = bytes;
    made->host = wrapped;
    made->wraps = wrapped != NULL;
    made->on_host = made->wraps || !bytes; /* an array without elements needs no copy */
    atomic_init(&made->users, 1);
    clv_context_hold(context);
    return made;
}

void clv_storage_retain(clv_storage *storage)
{
    atomic_fetch_add(&storage->users, 1);
}

void clv_storage_release(clv_storage *storage)
{
    if (!storage || atomic_fetch_sub(&storage->users, 1) > 1) return;
    const bool shared = is_shared(storage);
    clv_pending_forgive(storage);
    clv_buffer_free(storage->buffer);
    if ((!storage->wraps || storage->exposed) && !shared) clv_free(storage->host);
    clv_context_release(storage->context);
    pthread_mutex_destroy(&storage->lock);
    clv_free(storage);
}

clv_status clv_storages_lock(clv_storage **storages, size_t count)
{
    CLV_TRY(clv_pending_settle(storages, count));
    for (size_t i = 1; i < count; ++i) /* every thread locks them in the same order */
        for (size_t k = i; k && storages[k - 1] > storages[k]; --k) {
            clv_storage *later = storages[k - 1];
            storages[k - 1] = storages[k];
            storages[k] = later;
        }
    for (size_t i = 0; i < count; ++i) {
        if (!pthread_mutex_trylock(&storages[i]->lock)) continue;
        if (clv_jobs_held(storages[i]->context)) {
            clv_storages_unlock(storages, i);
            return clv_jobs_refuse("an array that another thread uses");
        }
        pthread_mutex_lock(&storages[i]->lock);
    }
    const clv_status status = clv_pending_check(storages, count);
    if (status) clv_storages_unlock(storages, count);
    return status;
}

void clv_storages_unlock(clv_storage *const *storages, size_t count)
{
    while (count)
        pthread_mutex_unlock(&storages[--count]->lock);
}

bool clv_storage_is_empty(const clv_storage *storage)
{
    return !storage->on_host && !storage->on_device;
}

bool clv_storage_overlap(const clv_storage *a, const clv_storage *b)
{
    if (a == b) return true;
    return a->wraps && b->wraps && clv_shares(a->host, a->bytes, b->host, b->bytes);
}

/* ---- copies between host and device ---------------------------------------------------------- */

static void count(clv_context *context, bool up, size_t bytes)
{
    pthread_mutex_lock(&context->array_lock);
    clv_array_stats *s = &context->array_stats;
    if (up)
        ++s->uploads, s->bytes_to_device += bytes;
    else
        ++s->downloads, s->bytes_from_device += bytes;
    pthread_mutex_unlock(&context->array_lock);
}

clv_array_stats clv_array_statistics(clv_context *context)
{
    clv_pending_settle_all(context);
    pthread_mutex_lock(&context->array_lock);
    const clv_array_stats stats = context->array_stats;
    pthread_mutex_unlock(&context->array_lock);
    return stats;
}

static clv_status is_lost(const clv_storage *storage)
{
    return clv_fail(CLV_E_DEVICE, "an array is stored on %s, which no longer works",
                    storage->buffer->device->label);
}

/* Frees the buffer of a device that is no longer used; the bytes must be in the host's memory, which is kept. */
static clv_status leave_device(clv_storage *storage)
{
    const bool only_there = is_shared(storage) ? !storage->buffer->mapped || storage->exposed
                                               : storage->on_device && !storage->on_host;
    if (only_there) return is_lost(storage);
    if (is_shared(storage)) {
        void *host = clv_alloc_lines(storage->bytes);
        if (!host) return clv_fail(CLV_E_MEMORY, "not enough memory for an array");
        storage->host = memcpy(host, storage->host, storage->bytes);
    }
    clv_buffer_free(storage->buffer);
    storage->buffer = NULL;
    storage->on_device = false;
    return CLV_OK;
}

/* Takes memory that the device shares; it belongs to the host at first. */
static clv_status own_shared(clv_storage *storage, clv_device *device)
{
    CLV_TRY(clv_buffer_create(device, storage->bytes, CLV_BUFFER_SHARED, &storage->buffer));
    void *memory = storage->buffer->mapped;
    if (storage->on_host) {
        memcpy(memory, storage->host, storage->bytes);
        storage->on_device = true;
    }
    clv_free(storage->host);
    storage->host = memory;
    return CLV_OK;
}

/* Allocates device memory for an owned storage. */
static clv_status own_buffer(clv_storage *storage, clv_engine *engine)
{
    clv_device *device = clv_queue_device(engine->queue);
    if (storage->buffer && storage->buffer->device != device) CLV_TRY(leave_device(storage));
    if (storage->buffer) return CLV_OK;
    if (device->zero_copy) return own_shared(storage, device);
    return clv_buffer_create(device, storage->bytes, CLV_BUFFER_DEVICE, &storage->buffer);
}

clv_status clv_storage_to_device(clv_storage *storage, clv_engine *engine, unsigned key, bool input,
                                 bool output)
{
    const size_t bytes = storage->bytes;
    /* during a rehearsal nothing is copied or read */
    const bool rehearsing = engine->queue->rehearsing;
    if (storage->wraps) {
        const bool copies = !rehearsing && !clv_queue_device(engine->queue)->zero_copy;
        CLV_TRY(clv_engine_bring(engine, key, storage->host, bytes, input, output, &storage->at));
        if (input && copies) count(storage->context, true, bytes);
        if (output && copies) count(storage->context, false, bytes);
        return CLV_OK;
    }
    CLV_TRY(own_buffer(storage, engine));
    storage->at = storage->buffer;
    if (input && !rehearsing && clv_storage_is_empty(storage))
        return clv_fail(CLV_E_ARGUMENT, "an operand has no values yet; fill it first");
    if (is_shared(storage)) return clv_buffer_lend(engine->queue, storage->buffer);
    if (!input || storage->on_device || rehearsing) return CLV_OK;
    CLV_TRY(clv_write(engine->queue, storage->buffer, 0, storage->host, bytes));
    count(storage->context, true, bytes);
    storage->on_device = true;
    return CLV_OK;
}

static clv_status own_host(clv_storage *storage)
{
    clv_device *device =
        storage->host || storage->buffer || !storage->bytes ? NULL : sharer(storage->context);
    if (device)
        (void)own_shared(storage,
                         device); /* beyond the device's budget, the host's memory will do */
    if (!storage->host && storage->bytes) storage->host = clv_alloc_lines(storage->bytes);
    return storage->host || !storage->bytes
               ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "not enough memory for an array of %zu bytes",
                          storage->bytes);
}

/* Reads from the device that has the latest bytes, through that device's engine. Shared memory is taken back, and
 * nothing is read. */
static clv_status fetch(clv_storage *storage, size_t offset, void *host, size_t bytes)
{
    const bool shared = is_shared(storage);
    clv_engine *engine = clv_engine_lock(storage->context);
    if (!engine && clv_jobs_held(storage->context)) return clv_jobs_refuse("an array's contents");
    clv_status status;
    if (!engine || clv_queue_device(engine->queue) != storage->buffer->device)
        status = is_lost(storage);
    else
        status = shared ? clv_buffer_reclaim(engine->queue, storage->buffer)
                        : clv_read(engine->queue, storage->buffer, offset, host, bytes);
    clv_engine_unlock(engine);
    if (!status && !shared) count(storage->context, false, bytes);
    return status;
}

/* Takes shared memory back from the device, if the device has it. */
static clv_status take_back(clv_storage *storage)
{
    if (!storage->buffer->mapped) CLV_TRY(fetch(storage, 0, NULL, 0));
    storage->host = storage->buffer->mapped;
    return CLV_OK;
}

clv_status clv_storage_to_host(clv_storage *storage, bool input)
{
    if (storage->wraps) return CLV_OK;
    CLV_TRY(own_host(storage));
    if (input && clv_storage_is_empty(storage))
        return clv_fail(CLV_E_ARGUMENT, "an operand has no values yet; fill it first");
    if (is_shared(storage)) return take_back(storage);
    if (!input || storage->on_host) return CLV_OK;
    CLV_TRY(fetch(storage, 0, storage->host, storage->bytes));
    storage->on_host = true;
    return CLV_OK;
}

void clv_storage_written(clv_storage *storage, bool on_device)
{
    if (storage->wraps) return;
    storage->on_device = on_device || is_shared(storage);
    storage->on_host = !on_device || is_shared(storage);
}

/* ---- contents ---------------------------------------------------------------------------------- */

static clv_status read_locked(clv_storage *storage, size_t offset, void *host, size_t bytes)
{
    if (is_shared(storage) && !clv_storage_is_empty(storage)) CLV_TRY(take_back(storage));
    if (storage->on_host) {
        const char *from = (const char *)storage->host + offset;
        if (host != from) memmove(host, from, bytes);
        return CLV_OK;
    }
    if (!storage->on_device)
        return clv_fail(CLV_E_ARGUMENT, "array get: the array has no values yet; fill it first");
    return fetch(storage, offset, host, bytes);
}

clv_status clv_storage_read(clv_storage *storage, size_t offset, void *host, size_t bytes)
{
    if (!bytes) return CLV_OK;
    CLV_TRY(clv_storages_lock(&storage, 1));
    const clv_status status = read_locked(storage, offset, host, bytes);
    clv_storages_unlock(&storage, 1);
    return status;
}

static clv_status put_locked(clv_storage *storage, const void *host, bool stay_on_host)
{
    if (storage->wraps) {
        if (host != storage->host) memmove(storage->host, host, storage->bytes);
        return CLV_OK;
    }
    clv_engine *engine = stay_on_host ? NULL : clv_engine_lock(storage->context);
    clv_status status = CLV_OK;
    if (engine) {
        storage->on_host = storage->on_device = false;
        status = own_buffer(storage, engine);
        if (!status && is_shared(storage)) {
            status = clv_buffer_reclaim(engine->queue, storage->buffer);
            if (!status) storage->host = storage->buffer->mapped;
            if (!status) memcpy(storage->host, host, storage->bytes);
        } else if (!status) {
            status = clv_write(engine->queue, storage->buffer, 0, host, storage->bytes);
        }
        clv_engine_unlock(engine);
        if (!status && is_shared(storage)) {
            clv_storage_written(storage, true);
            return CLV_OK;
        }
        if (!status) {
            count(storage->context, true, storage->bytes);
            clv_storage_written(storage, true);
            return CLV_OK;
        }
        clv_log(CLV_LOG_WARN, "an array stays in host memory: %s", clv_error_message());
    }
    CLV_TRY(clv_storage_to_host(storage, false));
    memcpy(storage->host, host, storage->bytes);
    clv_storage_written(storage, false);
    return CLV_OK;
}

clv_status clv_storage_put(clv_storage *storage, const void *host, bool stay_on_host)
{
    if (!storage->bytes) return CLV_OK;
    CLV_TRY(clv_storages_lock(&storage, 1));
    const clv_status status = put_locked(storage, host, stay_on_host);
    clv_storages_unlock(&storage, 1);
    return status;
}

/* Copies between two buffers of a device; after a failure, the contents of `to` are undefined. */
static clv_status copy_there(const clv_storage *from, size_t offset, clv_storage *to)
{
    clv_engine *engine = clv_engine_lock(from->context);
    if (!engine && clv_jobs_held(from->context)) return clv_jobs_refuse("an array's contents");
    clv_status status = engine && clv_queue_device(engine->queue) == from->buffer->device
                            ? own_buffer(to, engine)
                            : CLV_E_DEVICE;
    if (!status && is_shared(from)) status = clv_buffer_lend(engine->queue, from->buffer);
    if (!status && is_shared(to)) status = clv_buffer_lend(engine->queue, to->buffer);
    if (!status)
        status =
            clv_copy_enqueue(engine->queue, from->buffer, offset, to->buffer, 0, to->bytes, NULL);
    if (!status) status = clv_queue_wait(engine->queue);
    clv_engine_unlock(engine);
    if (!status) clv_storage_written(to, true);
    return status;
}

static clv_status copy_locked(clv_storage *from, size_t offset, clv_storage *to)
{
    if (clv_storage_is_empty(from)) return CLV_OK;
    const bool here = is_shared(from) && from->buffer->mapped;
    if (from->on_device && !here && !copy_there(from, offset, to)) return CLV_OK;
    CLV_TRY(clv_storage_to_host(to, false));
    CLV_TRY(read_locked(from, offset, to->host, to->bytes));
    clv_storage_written(to, false);
    return CLV_OK;
}

clv_status clv_storage_copy(clv_storage *from, size_t offset, clv_storage *to)
{
    if (!to->bytes) return CLV_OK;
    clv_storage *both[] = { from, to };
    CLV_TRY(clv_storages_lock(both, CLV_LEN(both)));
    const clv_status status = copy_locked(from, offset, to);
    clv_storages_unlock(both, CLV_LEN(both));
    return status;
}

static clv_status expose_locked(clv_storage *storage, void **host)
{
    const bool empty = clv_storage_is_empty(storage);
    if (!storage->wraps && !is_shared(storage) && storage->on_device && !storage->on_host)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "array: the elements are in the memory of %s, which the host does not "
                        "share; copy them instead",
                        storage->buffer->device->label);
    CLV_TRY(clv_storage_to_host(storage, false));
    if (empty) clv_storage_written(storage, false);
    if (!storage->wraps) storage->exposed = true;
    if (!is_shared(storage) && !storage->wraps) { /* devices use it as they use the caller's */
        clv_buffer_free(storage->buffer);
        storage->buffer = NULL;
        storage->wraps = true;
        storage->on_device = false;
    }
    *host = storage->host;
    return CLV_OK;
}

clv_status clv_storage_expose(clv_storage *storage, void **host)
{
    CLV_TRY(clv_storages_lock(&storage, 1));
    const clv_status status = expose_locked(storage, host);
    clv_storages_unlock(&storage, 1);
    return status;
}

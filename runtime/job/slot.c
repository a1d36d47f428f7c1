/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the memory of workers and slots: device buffers by key, the caller's inputs, results on the host. */
#include "runtime/job/results.h"
#include "runtime/job/run.h"

#include "base/alloc.h"
#include "runtime/device/pool.h"

#include <string.h>

static clv_keyed *find(clv_keyed *keyed, size_t count, unsigned key)
{
    for (size_t i = 0; i < count; ++i)
        if (keyed[i].key == key) return &keyed[i];
    return NULL;
}

static clv_status find_or_add(clv_keyed *keyed, size_t *count, unsigned key, clv_keyed **out)
{
    *out = find(keyed, *count, key);
    if (*out) return CLV_OK;
    if (*count == CLV_MAX_KEYS)
        return clv_fail(CLV_E_ARGUMENT,
                        "job memory: key %u is one key too many (at most %d are possible)", key,
                        CLV_MAX_KEYS);
    *out = &keyed[(*count)++];
    **out = (clv_keyed){ .key = key };
    return CLV_OK;
}

static void drop(clv_keyed *k)
{
    clv_buffer_free(k->buffer);
    clv_buffer_free(k->staging);
    if (!k->buffer && !k->staging) clv_free(k->host); /* results of the plain C path */
    *k = (clv_keyed){ .key = k->key };
}

void clv_keyed_free(clv_keyed *keyed, size_t *count)
{
    while (*count)
        drop(&keyed[--*count]);
}

/* Provides device memory of at least `bytes`. If the buffer has to grow, its old contents are lost and its memory
 * goes back to the driver: chunks grow step by step, so no later chunk asks for the old sizes. */
static clv_status need(clv_device *device, clv_keyed *k, size_t bytes)
{
    if (k->buffer && (k->wraps || clv_buffer_bytes(k->buffer) < bytes)) {
        if (!k->wraps) clv_buffer_discard(k->buffer), k->buffer = NULL;
        drop(k);
    }
    if (!k->buffer) CLV_TRY(clv_buffer_create(device, bytes, CLV_BUFFER_DEVICE, &k->buffer));
    k->bytes = bytes;
    return CLV_OK;
}

static clv_status lookup(clv_keyed *k, unsigned key, clv_buffer **buffer)
{
    if (!k || !k->buffer)
        return clv_fail(CLV_E_ARGUMENT, "job memory: there is no memory with the key %u", key);
    *buffer = k->buffer;
    return CLV_OK;
}

clv_status clv_worker_buffer(clv_worker *worker, unsigned key, size_t bytes, clv_buffer **buffer)
{
    clv_keyed *k;
    *buffer = NULL;
    if (!bytes) return lookup(find(worker->keyed, worker->keyed_count, key), key, buffer);
    CLV_TRY(find_or_add(worker->keyed, &worker->keyed_count, key, &k));
    CLV_TRY(need(worker->device, k, bytes));
    *buffer = k->buffer;
    return CLV_OK;
}

clv_status clv_slot_buffer(clv_slot *slot, unsigned key, size_t bytes, clv_buffer **buffer)
{
    clv_keyed *k;
    *buffer = NULL;
    if (!bytes) return lookup(find(slot->keyed, slot->keyed_count, key), key, buffer);
    CLV_TRY(find_or_add(slot->keyed, &slot->keyed_count, key, &k));
    CLV_TRY(need(slot->worker->device, k, bytes));
    *buffer = k->buffer;
    return CLV_OK;
}

/* Counts the elements from the first to one past the last of a strided box. Returns false on overflow or an
 * empty box. */
static bool box_span(const clv_box *box, size_t *elements)
{
    size_t span = 0, step;
    for (int d = 0; d < 3; ++d)
        if (!box->extent[d] || !clv_size_mul(box->extent[d] - 1, box->stride[d], &step) ||
            !clv_size_add(span, step, &span))
            return false;
    return clv_size_add(span, 1, elements);
}

static clv_status staging_for(clv_device *device, clv_keyed *k, size_t bytes)
{
    if (k->staging && clv_buffer_bytes(k->staging) < bytes) {
        clv_buffer_free(k->staging);
        k->staging = NULL;
    }
    return k->staging ? CLV_OK : clv_buffer_create(device, bytes, CLV_BUFFER_STAGING, &k->staging);
}

/* Copies the box into staging memory, which cards read by themselves at full rate while this thread goes on. If
 * drivers have to copy pageable memory of the caller, they use staging memory of their own and block the thread
 * meanwhile. */
static void pack(const clv_box *box, char *to)
{
    const size_t row = box->extent[2] * box->element_bytes;
    const char *from = box->host;
    for (size_t z = 0; z < box->extent[0]; ++z) {
        const char *plane = from + z * box->stride[0] * box->element_bytes;
        if (box->extent[1] == 1 || box->stride[1] == box->extent[2]) {
            memcpy(to, plane, box->extent[1] * row), to += box->extent[1] * row;
            continue;
        }
        for (size_t y = 0; y < box->extent[1]; ++y, to += row)
            memcpy(to, plane + y * box->stride[1] * box->element_bytes, row);
    }
}

clv_status clv_slot_input(clv_slot *slot, unsigned key, const clv_box *box, clv_place *place)
{
    clv_device *device = slot->worker->device;
    size_t span, bytes;
    clv_keyed *k;
    *place = (clv_place){ 0 };
    const bool repeats = (box->extent[0] > 1 && !box->stride[0]) ||
                         (box->extent[1] > 1 && box->stride[1] < box->extent[2]);
    if (!box->host || !box->element_bytes || box->stride[2] != 1 || repeats ||
        !box_span(box, &span) || !clv_size_mul(span, box->element_bytes, &bytes))
        return clv_fail(CLV_E_SHAPE, "job input: the data are NULL, the box is empty, rows "
                                     "overlap, or columns are not contiguous");
    CLV_TRY(find_or_add(slot->keyed, &slot->keyed_count, key, &k));
    if (device->zero_copy) {
        drop(k);
        CLV_TRY(clv_buffer_wrap(device, (void *)(uintptr_t)box->host, bytes, &k->buffer));
        k->wraps = k->used = true;
        *place =
            (clv_place){ .buffer = k->buffer, .stride = { box->stride[0], box->stride[1], 1 } };
        return CLV_OK;
    }
    const size_t rows = box->extent[1] * box->extent[2]; /* cannot overflow: the span did not */
    const size_t dense = box->extent[0] * rows * box->element_bytes;
    const bool again = k->used; /* a transfer may still read its staging memory */
    CLV_TRY(need(device, k, dense));
    k->used = true;
    if (!again && !slot->queue->rehearsing && staging_for(device, k, dense) == CLV_OK) {
        pack(box, k->staging->mapped);
        CLV_TRY(clv_write_enqueue(slot->queue, k->buffer, 0, k->staging->mapped, dense, NULL));
        clv_queue_flush(slot->queue);
        *place = (clv_place){ .buffer = k->buffer, .stride = { rows, box->extent[2], 1 } };
        return CLV_OK;
    }
    CLV_TRY(clv_write_box_enqueue(slot->queue, k->buffer, box->host, box->element_bytes,
                                  box->extent, box->stride));
    *place = (clv_place){ .buffer = k->buffer, .stride = { rows, box->extent[2], 1 } };
    if (slot->queue->rehearsing) return CLV_OK;
    cl_event last = slot->queue->pending[slot->queue->pending_count - 1].event;
    clRetainEvent(last);
    clv_run *run = slot->worker->run;
    pthread_mutex_lock(&run->lock);
    if (slot->upload) clReleaseEvent(slot->upload);
    slot->upload = last;
    pthread_mutex_unlock(&run->lock);
    return CLV_OK;
}

clv_status clv_slot_output(clv_slot *slot, unsigned key, size_t bytes, clv_buffer **buffer)
{
    clv_keyed *k;
    *buffer = NULL;
    CLV_TRY(find_or_add(slot->keyed, &slot->keyed_count, key, &k));
    CLV_TRY(need(slot->worker->device, k, bytes));
    k->asked = bytes;
    k->used = k->output = true;
    *buffer = k->buffer;
    return CLV_OK;
}

clv_status clv_slot_result_create(clv_slot *slot, unsigned key, size_t bytes, void **result)
{
    clv_keyed *k;
    *result = NULL;
    CLV_TRY(find_or_add(slot->keyed, &slot->keyed_count, key, &k));
    if (k->bytes < bytes) {
        drop(k);
        k->host = clv_alloc_pages(bytes);
        if (!k->host)
            return clv_fail(CLV_E_MEMORY, "job result: not enough host memory for %zu bytes",
                            bytes);
        k->bytes = bytes;
    }
    k->asked = bytes;
    *result = k->host;
    return CLV_OK;
}

void *clv_slot_result(const clv_slot *slot, unsigned key)
{
    clv_slot *mine = (clv_slot *)(uintptr_t)slot; /* the slot is const, its result is not */
    clv_keyed *k = find(mine->keyed, mine->keyed_count, key);
    return k ? k->host : NULL;
}

clv_status clv_slot_take(const clv_slot *slot, unsigned key, size_t bytes, void *pointer)
{
    clv_slot *mine = (clv_slot *)(uintptr_t)slot;
    const clv_keyed *k = find(mine->keyed, mine->keyed_count, key);
    const bool fits = !bytes || (k && k->host && k->asked >= bytes);
    const void *host = fits && k ? k->host : NULL;
    memcpy(pointer, &host, sizeof host);
    if (fits) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "job: a chunk's result %u has %zu bytes, but needs %zu", key,
                    k ? k->asked : 0, bytes);
}

void clv_slot_begin(clv_slot *slot)
{
    for (size_t i = 0; i < slot->keyed_count; ++i)
        slot->keyed[i].used = slot->keyed[i].output = false;
}

clv_status clv_slot_finish(clv_slot *slot)
{
    clv_device *device = slot->worker->device;
    for (size_t i = 0; i < slot->keyed_count; ++i) {
        clv_keyed *k = &slot->keyed[i];
        if (!k->output) continue;
        if (device->zero_copy) {
            CLV_TRY(clv_map_enqueue(slot->queue, k->buffer, false, &k->host));
            continue;
        }
        CLV_TRY(staging_for(device, k, clv_buffer_bytes(k->buffer)));
        k->host = k->staging->mapped;
        CLV_TRY(clv_read_enqueue(slot->queue, k->buffer, 0, k->host, k->bytes, NULL));
    }
    clv_queue_flush(slot->queue);
    return CLV_OK;
}

void clv_slot_done(clv_slot *slot)
{
    for (size_t i = 0; i < slot->keyed_count; ++i) {
        clv_keyed *k = &slot->keyed[i];
        if (k->output && k->host && !k->staging && k->buffer) {
            if (clv_unmap_enqueue(slot->queue, k->buffer, k->host) == CLV_OK)
                (void)clv_queue_wait(slot->queue);
            k->host = NULL;
        }
        if (k->wraps) drop(k); /* the caller may use this memory again */
        k->output = k->used = false;
    }
}

clv_device *clv_worker_device(const clv_worker *worker)
{
    return worker->device;
}

size_t clv_worker_index(const clv_worker *worker)
{
    return worker->index;
}

clv_queue *clv_worker_queue(const clv_worker *worker)
{
    return worker->queue;
}

clv_worker *clv_slot_worker(const clv_slot *slot)
{
    return slot->worker;
}

clv_queue *clv_slot_queue(const clv_slot *slot)
{
    return slot->queue;
}

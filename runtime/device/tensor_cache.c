/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps tensors on a device, in a list ordered by last use, with pins and a limit. */
#include "runtime/device/tensor_cache.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"

struct clv_kept_tensor {
    clv_kept_tensor *next;
    const void *owner; /* NULL: the tensor was dropped, and the last clv_tensor_put frees it */
    size_t part;
    clv_buffer *buffer;
    unsigned pins;
};

/* ---- the device's lock is held ---------------------------------------------------------------- */

static clv_kept_tensor **find(clv_tensor_cache *cache, const void *owner, size_t part)
{
    clv_kept_tensor **link = &cache->latest;
    while (*link && ((*link)->owner != owner || (*link)->part != part))
        link = &(*link)->next;
    return link;
}

static void pin(clv_tensor_cache *cache, clv_kept_tensor *tensor)
{
    if (!tensor->pins++) cache->pinned_bytes += tensor->buffer->capacity;
}

/* Takes a tensor out of the list; the caller frees it. */
static clv_kept_tensor *unlink_at(clv_tensor_cache *cache, clv_kept_tensor **link)
{
    clv_kept_tensor *tensor = *link;
    *link = tensor->next;
    tensor->next = NULL;
    cache->bytes -= tensor->buffer->capacity;
    return tensor;
}

static void link_first(clv_tensor_cache *cache, clv_kept_tensor *tensor)
{
    tensor->next = cache->latest;
    cache->latest = tensor;
    cache->bytes += tensor->buffer->capacity;
}

/* Unlinks and returns the least recently used tensor that is not pinned; NULL if there is none. */
static clv_kept_tensor *take_oldest(clv_tensor_cache *cache)
{
    clv_kept_tensor **oldest = NULL;
    for (clv_kept_tensor **link = &cache->latest; *link; link = &(*link)->next)
        if (!(*link)->pins) oldest = link;
    return oldest ? unlink_at(cache, oldest) : NULL;
}

/* ---- the device's lock is not held -------------------------------------------------------------- */

static void release(clv_kept_tensor *tensor)
{
    if (!tensor) return;
    clv_buffer_free(tensor->buffer);
    clv_free(tensor);
}

/* Frees a tensor after its last command. Only then is its memory free, although drivers would let us allocate more. */
static void give_up(clv_kept_tensor *tensor)
{
    if (!tensor->buffer->device->hung) clv_buffer_wait(tensor->buffer);
    release(tensor);
}

bool clv_tensors_evict(clv_device *device)
{
    pthread_mutex_lock(&device->lock);
    clv_kept_tensor *tensor = take_oldest(device->tensors);
    if (tensor) ++device->tensors->evictions;
    pthread_mutex_unlock(&device->lock);
    if (!tensor) return false;
    give_up(tensor);
    return true;
}

clv_status clv_tensors_make_room(clv_device *device, size_t bytes, clv_buffer_kind kind,
                                 clv_buffer **out)
{
    clv_status status;
    while ((status = clv_pool_take(device, bytes, kind, out)) == CLV_E_DEVICE_MEMORY)
        if (bytes > device->pool->max_alloc || !clv_tensors_evict(device)) break;
    if (!status) return CLV_OK;
    pthread_mutex_lock(&device->lock);
    ++device->pool->stats.failures;
    pthread_mutex_unlock(&device->lock);
    return status;
}

clv_status clv_tensors_make(clv_device *device, uint64_t wish)
{
    device->tensors = clv_zalloc(1, sizeof *device->tensors);
    if (!device->tensors)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for tensors", device->label);
    device->tensors->wish = wish;
    return CLV_OK;
}

void clv_tensors_free(clv_device *device)
{
    if (!device->tensors) return;
    while (clv_tensors_evict(device)) {
    }
    clv_free(device->tensors);
    device->tensors = NULL;
}

static clv_kept_tensor *look_up(clv_device *device, const void *owner, size_t part)
{
    clv_tensor_cache *cache = device->tensors;
    pthread_mutex_lock(&device->lock);
    clv_kept_tensor **link = find(cache, owner, part), *tensor = *link;
    if (tensor) {
        link_first(cache, unlink_at(cache, link));
        pin(cache, tensor);
        ++cache->hits;
    }
    pthread_mutex_unlock(&device->lock);
    return tensor;
}

/* Returns whether `bytes` more would exceed the limit and there is a tensor that can be given up. */
static bool is_over(clv_device *device, size_t bytes)
{
    pthread_mutex_lock(&device->lock);
    const clv_tensor_cache *cache = device->tensors;
    const uint64_t budget = device->budget;
    const uint64_t limit = cache->wish ? CLV_MIN(cache->wish, budget) : budget;
    const bool over = cache->bytes + bytes > limit && cache->bytes > cache->pinned_bytes;
    pthread_mutex_unlock(&device->lock);
    return over;
}

static clv_status fill_new(clv_queue *queue, clv_kept_tensor *tensor, size_t bytes,
                           clv_tensor_fill fill, const void *user)
{
    clv_device *device = clv_queue_device(queue);
    CLV_TRY(clv_device_open(device));
    while (is_over(device, bytes) && clv_tensors_evict(device)) {
    }
    CLV_TRY(clv_tensors_make_room(device, bytes, CLV_BUFFER_DEVICE, &tensor->buffer));
    /* wait, because other queues may read it at once */
    return clv_queue_finish(queue, fill(queue, tensor->buffer, user));
}

/* Only notes the launches of `fill`, with very little memory for the tensor. */
static clv_status rehearse(clv_queue *queue, clv_kept_tensor *tensor, size_t bytes,
                           clv_tensor_fill fill, const void *user)
{
    enum { LITTLE = 64 };
    CLV_TRY(clv_tensors_make_room(clv_queue_device(queue), CLV_MIN(bytes, (size_t)LITTLE),
                                  CLV_BUFFER_DEVICE, &tensor->buffer));
    return fill(queue, tensor->buffer, user);
}

clv_status clv_tensor_get(clv_queue *queue, const void *owner, size_t part, size_t bytes,
                          clv_tensor_fill fill, const void *user, clv_kept_tensor **out)
{
    clv_device *device = clv_queue_device(queue);
    *out = look_up(device, owner, part);
    if (*out) return CLV_OK;
    clv_kept_tensor *tensor = clv_zalloc(1, sizeof *tensor), *sooner;
    if (!tensor) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a tensor", device->label);
    /* a rehearsed tensor has no owner: it was not filled, and is freed when it is unpinned */
    tensor->owner = queue->rehearsing ? NULL : owner;
    tensor->part = part;
    const clv_status status =
        (queue->rehearsing ? rehearse : fill_new)(queue, tensor, bytes, fill, user);
    if (status) {
        release(tensor);
        return status;
    }
    pthread_mutex_lock(&device->lock);
    clv_tensor_cache *cache = device->tensors;
    sooner = *find(cache, tensor->owner, part); /* another thread may have been faster */
    if (!sooner) link_first(cache, tensor);
    *out = sooner ? sooner : tensor;
    pin(cache, *out);
    cache->fills += !queue->rehearsing;
    pthread_mutex_unlock(&device->lock);
    if (sooner) release(tensor);
    return CLV_OK;
}

clv_buffer *clv_tensor_buffer(const clv_kept_tensor *tensor)
{
    return tensor->buffer;
}

void clv_tensor_put(clv_kept_tensor *tensor)
{
    if (!tensor) return;
    clv_device *device = tensor->buffer->device;
    clv_tensor_cache *cache = device->tensors;
    clv_kept_tensor *orphan = NULL;
    pthread_mutex_lock(&device->lock);
    if (!--tensor->pins) {
        cache->pinned_bytes -= tensor->buffer->capacity;
        if (!tensor->owner) {
            clv_kept_tensor **link = &cache->latest;
            while (*link != tensor)
                link = &(*link)->next;
            orphan = unlink_at(cache, link);
        }
    }
    pthread_mutex_unlock(&device->lock);
    release(orphan);
}

void clv_tensors_drop(clv_device *device, const void *owner)
{
    clv_kept_tensor *gone = NULL;
    pthread_mutex_lock(&device->lock);
    clv_tensor_cache *cache = device->tensors;
    for (clv_kept_tensor **link = &cache->latest; *link;) {
        if ((*link)->owner != owner) {
            link = &(*link)->next;
        } else if ((*link)->pins) {
            (*link)->owner = NULL;
            link = &(*link)->next;
        } else {
            clv_kept_tensor *tensor = unlink_at(cache, link);
            tensor->next = gone;
            gone = tensor;
        }
    }
    pthread_mutex_unlock(&device->lock);
    while (gone) {
        clv_kept_tensor *tensor = gone;
        gone = tensor->next;
        release(tensor);
    }
}

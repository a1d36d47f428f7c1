/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the buffers of one device: keeps to a memory budget, and keeps freed memory for later requests.
 *
 * Drivers allocate lazily and then fail anywhere, so that a successful allocation proves nothing: only our own
 * accounting counts. The first touch is most of a buffer's cost, also on CPUs, so freed buffers are kept by size
 * class. A kernel may still use a freed buffer, so the buffer is handed out again only when its last command is
 * complete. */
#include "runtime/device/pool.h"

#include "base/alloc.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/device/device.h"
#include "runtime/record/cl_status.h"

#include <string.h>

static _Atomic uint64_t last_serial;

enum { LEAST_TURNED = 64 << 10 }; /* mapping a smaller buffer costs more than a new one */
enum { SMALLEST = 256, KEEP_LIMIT_SHARE = 4 }; /* buffers above 1/4 of the budget are not kept */
static const uint64_t most_staging = (uint64_t)1
                                     << 30; /* most host memory kept for reuse, in bytes */

/* Returns how many bytes of the device's own memory a buffer takes: 0 for a card's staging memory, which is host
 * memory. */
static size_t weight(const clv_device *device, clv_buffer_kind kind, size_t capacity)
{
    return kind == CLV_BUFFER_STAGING && !device->zero_copy ? 0 : capacity;
}

static size_t weight_of(const clv_buffer *buffer)
{
    return weight(buffer->device, buffer->kind, buffer->capacity);
}

/* Counts a buffer that enters or leaves the list of cached ones. The lock is held. */
static void count_cached(clv_pool *pool, const clv_buffer *buffer, bool enters)
{
    const size_t own = weight_of(buffer), staging = buffer->capacity - own;
    pool->stats.cached_bytes += enters ? own : -own;
    pool->staging_cached += enters ? staging : -staging;
}

clv_status clv_pool_make(clv_device *device)
{
    uint64_t largest = device->facts->max_alloc_bytes;
    if (largest == CLV_UNKNOWN) largest = device->budget / 4;
    clv_pool *pool = device->pool = clv_zalloc(1, sizeof *pool);
    if (!pool) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its pool", device->label);
    pool->max_alloc = (size_t)CLV_MIN(largest, (uint64_t)SIZE_MAX / 2);
    clv_own_join(&pool->own, device->facts->id);
    return CLV_OK;
}

/* Rounds up to a size class, so that different sizes can share a buffer: 8 per power of two, but classes are at most
 * 1/1024 of the budget apart. A chunk has up to CLV_MAX_KEYS buffers in each of two slots, so that rounding takes at
 * most 1/16 of the budget, and half of that on average. */
static size_t size_class(size_t bytes, uint64_t budget)
{
    if (bytes <= SMALLEST) return SMALLEST;
    size_t step = SMALLEST / 8;
    while (step <= bytes / 16 && step <= budget / 2048)
        step *= 2;
    return clv_round_up(bytes, step);
}

/* Returns the queue that maps buffers and ends their mappings, or NULL if the driver makes none. */
static cl_command_queue maps_of(clv_device *device, cl_int *code)
{
    clv_pool *pool = device->pool;
    *code = CL_SUCCESS;
    if (!pool->maps) pool->maps = clCreateCommandQueue(device->cl, device->id, 0, code);
    return pool->maps;
}

/* Frees everything that belongs to a buffer except its record. */
static void hollow(clv_buffer *buffer)
{
    cl_int code;
    cl_command_queue maps = buffer->mem && buffer->mapped ? maps_of(buffer->device, &code) : NULL;
    if (maps) {
        cl_event done = NULL;
        if (clEnqueueUnmapMemObject(maps, buffer->mem, buffer->mapped, 0, NULL, &done) ==
            CL_SUCCESS) {
            clWaitForEvents(1, &done);
            clReleaseEvent(done);
        }
    }
    clv_buffer_unused(buffer);
    if (buffer->mem) clReleaseMemObject(buffer->mem); /* drivers wait for commands that use it */
    clv_free(buffer->memory);
}

static void release(clv_buffer *buffer)
{
    hollow(buffer);
    clv_free(buffer);
}

static bool is_over(cl_event event)
{
    cl_int state;
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) ==
               CL_SUCCESS &&
           state <= CL_COMPLETE;
}

/* Returns whether all commands that used a freed buffer have ended. */
static bool is_idle(clv_buffer *buffer)
{
    for (size_t i = 0; i < CLV_BUFFER_USES; ++i)
        if (buffer->uses[i].event && !is_over(buffer->uses[i].event)) return false;
    clv_buffer_unused(buffer);
    return true;
}

static void tell_probe(clv_pool *pool)
{
    atomic_store(&pool->own.bytes, pool->stats.used_bytes + pool->stats.cached_bytes);
}

/* Gives cached buffers back to the driver until at least `bytes` fit the budget; UINT64_MAX gives back all. */
static void trim(clv_device *device, uint64_t bytes)
{
    clv_pool *pool = device->pool;
    while (pool->cached &&
           (bytes == UINT64_MAX ||
            pool->stats.used_bytes + pool->stats.cached_bytes + bytes > device->budget)) {
        clv_buffer *oldest = pool->cached, **link = &pool->cached;
        while (oldest->next)
            link = &oldest->next, oldest = oldest->next;
        *link = NULL;
        count_cached(pool, oldest, false);
        release(oldest);
    }
    tell_probe(pool);
}

void clv_pool_clear(clv_device *device)
{
    clv_pool *pool = device->pool;
    trim(device, UINT64_MAX);
    while (pool->shells) {
        clv_buffer *shell = pool->shells;
        pool->shells = shell->next;
        clv_free(shell);
    }
}

void clv_pool_free(clv_device *device)
{
    if (!device->pool) return;
    clv_pool_clear(device);
    if (device->pool->maps) clReleaseCommandQueue(device->pool->maps);
    clv_own_leave(&device->pool->own);
    clv_free(device->pool);
    device->pool = NULL;
}

static clv_buffer *take_shell(clv_device *device)
{
    pthread_mutex_lock(&device->lock);
    clv_buffer *shell = device->pool->shells;
    if (shell) device->pool->shells = shell->next;
    pthread_mutex_unlock(&device->lock);
    return shell ? shell : clv_alloc(1, sizeof *shell);
}

static void put_shell(clv_device *device, clv_buffer *shell)
{
    pthread_mutex_lock(&device->lock);
    shell->next = device->pool->shells;
    device->pool->shells = shell;
    pthread_mutex_unlock(&device->lock);
}

static clv_buffer *take_cached(clv_pool *pool, size_t capacity, clv_buffer_kind kind)
{
    for (clv_buffer **link = &pool->cached; *link; link = &(*link)->next) {
        clv_buffer *buffer = *link;
        if (buffer->capacity != capacity || buffer->kind != kind || !is_idle(buffer)) continue;
        *link = buffer->next;
        count_cached(pool, buffer, false);
        ++pool->stats.pool_hits;
        return buffer;
    }
    return NULL;
}

static clv_status map_staging(clv_buffer *buffer)
{
    clv_device *device = buffer->device;
    cl_int code;
    cl_event done = NULL;
    cl_command_queue maps = maps_of(device, &code);
    if (!maps) return clv_cl_fail(device, "clCreateCommandQueue", NULL, code);
    buffer->mapped = clEnqueueMapBuffer(maps, buffer->mem, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                        buffer->capacity, 0, NULL, &done, &code);
    if (code == CL_SUCCESS) code = clWaitForEvents(1, &done);
    if (done) clReleaseEvent(done);
    return code == CL_SUCCESS ? CLV_OK : clv_cl_fail(device, "clEnqueueMapBuffer", NULL, code);
}

static clv_status allocate(clv_device *device, clv_buffer *buffer)
{
    if (buffer->kind == CLV_BUFFER_SHARED) {
        buffer->memory = buffer->mapped = clv_alloc_pages(buffer->capacity);
        buffer->serial = ++last_serial;
        ++device->pool->stats.raw_allocations;
        return buffer->memory ? CLV_OK
                              : clv_fail(CLV_E_MEMORY, "%s: not enough host memory for a buffer",
                                         device->label);
    }
    const cl_mem_flags flags =
        CL_MEM_READ_WRITE | (buffer->kind == CLV_BUFFER_STAGING ? CL_MEM_ALLOC_HOST_PTR : 0);
    cl_int code;
    buffer->mem = clCreateBuffer(device->cl, flags, buffer->capacity, NULL, &code);
    buffer->serial = ++last_serial;
    ++device->pool->stats.raw_allocations;
    if (code != CL_SUCCESS) {
        char size[16];
        return clv_cl_fail(device, "clCreateBuffer", clv_format_bytes(buffer->capacity, size),
                           code);
    }
    return buffer->kind == CLV_BUFFER_STAGING ? map_staging(buffer) : CLV_OK;
}

/* Gives the host a cached buffer that the device has; it stays mapped until it is lent. On failure the buffer is freed
 * and *buffer is NULL. */
static clv_status turn_shared(clv_buffer **buffer)
{
    const clv_status status = map_staging(*buffer);
    (*buffer)->kind = CLV_BUFFER_SHARED;
    if (status) release(*buffer), *buffer = NULL;
    return status;
}

static clv_status no_room(const clv_device *device, size_t capacity)
{
    const clv_pool *pool = device->pool;
    char wanted[16], used[16], budget[16], largest[16];
    if (capacity > pool->max_alloc)
        return clv_fail(CLV_E_DEVICE_MEMORY,
                        "%s: a buffer of %s was asked for, but the largest possible is %s",
                        device->label, clv_format_bytes(capacity, wanted),
                        clv_format_bytes(pool->max_alloc, largest));
    return clv_fail(
        CLV_E_DEVICE_MEMORY, "%s: %s were asked for, but %s of the budget of %s are in use",
        device->label, clv_format_bytes(capacity, wanted),
        clv_format_bytes(pool->stats.used_bytes, used), clv_format_bytes(device->budget, budget));
}

static void count_peak(clv_pool *pool)
{
    const uint64_t held = pool->stats.used_bytes + pool->stats.cached_bytes;
    if (held > pool->stats.peak_bytes) pool->stats.peak_bytes = held;
}

/* Takes a cached buffer or allocates one. On failure *out is NULL and the status says what is missing. The
 * lock is held. */
static clv_status create(clv_device *device, size_t capacity, clv_buffer_kind kind,
                         clv_buffer **out)
{
    clv_pool *pool = device->pool;
    *out = take_cached(pool, capacity, kind);
    /* a shared buffer may have been freed while the device had it */
    if (*out) return kind == CLV_BUFFER_SHARED && !(*out)->mapped ? turn_shared(out) : CLV_OK;
    if (kind == CLV_BUFFER_SHARED && capacity >= LEAST_TURNED)
        *out = take_cached(pool, capacity, CLV_BUFFER_DEVICE);
    if (*out) return turn_shared(out);
    const size_t own = weight(device, kind, capacity);
    if (own) trim(device, own);
    if (capacity > pool->max_alloc || pool->stats.used_bytes + own > device->budget)
        return no_room(device, capacity);
    clv_buffer *buffer = clv_zalloc(1, sizeof *buffer);
    if (!buffer)
        return clv_fail(CLV_E_MEMORY, "%s: not enough host memory for a buffer", device->label);
    *buffer = (clv_buffer){ .device = device, .capacity = capacity, .kind = kind, .pooled = true };
    clv_status status = allocate(device, buffer);
    if (status == CLV_E_DEVICE_MEMORY && pool->cached) { /* our own cache may take the room */
        if (buffer->mem) clReleaseMemObject(buffer->mem), buffer->mem = NULL;
        clv_pool_clear(device);
        status = allocate(device, buffer);
    }
    if (status)
        release(buffer);
    else
        *out = buffer;
    return status;
}

clv_status clv_pool_take(clv_device *device, size_t bytes, clv_buffer_kind kind, clv_buffer **out)
{
    clv_pool *pool = device->pool;
    size_t capacity = size_class(bytes, device->budget);
    clv_buffer *buffer;
    *out = NULL;
    CLV_TRY(clv_fork_check(device->born, device->label));
    pthread_mutex_lock(&device->lock);
    if (capacity > pool->max_alloc && bytes <= pool->max_alloc) capacity = bytes;
    const clv_status status = create(device, capacity, kind, &buffer);
    if (!status) {
        buffer->bytes = bytes;
        buffer->next = NULL;
        buffer->shared = false;
        pool->stats.used_bytes += weight_of(buffer);
        count_peak(pool);
        *out = buffer;
    }
    tell_probe(pool);
    pthread_mutex_unlock(&device->lock);
    return status;
}

clv_status clv_buffer_wrap(clv_device *device, void *host, size_t bytes, clv_buffer **out)
{
    *out = NULL;
    CLV_TRY(clv_device_open(device));
    if (!host || !bytes)
        return clv_fail(CLV_E_ARGUMENT, "%s: the memory to wrap is NULL or empty", device->label);
    if (!device->zero_copy)
        return clv_fail(CLV_E_DEVICE, "%s does not share memory with the host", device->label);
    clv_buffer *buffer = take_shell(device);
    if (!buffer)
        return clv_fail(CLV_E_MEMORY, "%s: not enough host memory for a buffer", device->label);
    cl_int code;
    *buffer = (clv_buffer){
        .device = device, .bytes = bytes, .capacity = bytes, .serial = ++last_serial
    };
    buffer->mem =
        clCreateBuffer(device->cl, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, host, &code);
    if (code != CL_SUCCESS) {
        put_shell(device, buffer);
        return clv_cl_fail(device, "clCreateBuffer", "host memory", code);
    }
    *out = buffer;
    return CLV_OK;
}

/* Frees a buffer; keeps its memory for later requests only with `may_keep`. */
static void give_back(clv_buffer *buffer, bool may_keep)
{
    if (!buffer || clv_is_forked(buffer->device->born)) return;
    clv_device *device = buffer->device;
    if (!buffer->pooled) {
        hollow(buffer);
        put_shell(device, buffer);
        return;
    }
    pthread_mutex_lock(&device->lock);
    clv_pool *pool = device->pool;
    const size_t own = weight_of(buffer), staging = buffer->capacity - own;
    pool->stats.used_bytes -= own;
    const bool keep = may_keep && device->state == CLV_DEVICE_READY && !buffer->shared &&
                      buffer->capacity <= device->budget / KEEP_LIMIT_SHARE &&
                      pool->stats.used_bytes + pool->stats.cached_bytes + own <= device->budget &&
                      pool->staging_cached + staging <= most_staging;
    if (keep) {
        buffer->next = pool->cached;
        pool->cached = buffer;
        count_cached(pool, buffer, true);
    }
    tell_probe(pool);
    pthread_mutex_unlock(&device->lock);
    if (!keep) release(buffer);
}

void clv_buffer_free(clv_buffer *buffer)
{
    give_back(buffer, true);
}

void clv_buffer_discard(clv_buffer *buffer)
{
    give_back(buffer, false);
}

size_t clv_buffer_bytes(const clv_buffer *buffer)
{
    return buffer ? buffer->bytes : 0;
}

/* Returns the entry in which to note the queue's latest command: the queue's own entry, a free one, or another
 * queue's. */
static clv_use *place_of(clv_buffer *buffer, const void *queue)
{
    clv_use *free = NULL;
    for (size_t i = 0; i < CLV_BUFFER_USES; ++i) {
        clv_use *use = &buffer->uses[i];
        if (use->event && use->queue == queue) return use;
        if (!use->event && !free) free = use;
    }
    if (free) return free;
    for (size_t i = 0; i < CLV_BUFFER_USES; ++i)
        if (is_over(buffer->uses[i].event)) return &buffer->uses[i];
    buffer->shared = true;
    return &buffer->uses[0];
}

void clv_buffers_used(const clv_buffer *const *buffers, size_t count, const void *queue,
                      cl_event event)
{
    cl_event over[CLV_USED_AT_ONCE];
    size_t left = 0;
    if (!count) return;
    pthread_mutex_lock(&buffers[0]->device->use_lock);
    for (size_t i = 0; i < count; ++i) {
        clv_use *use = place_of((clv_buffer *)(uintptr_t)buffers[i], queue); /* its contents stay */
        if (use->event == event) continue; /* the same buffer was given twice */
        if (use->event) over[left++] = use->event;
        clRetainEvent(event);
        *use = (clv_use){ queue, event };
    }
    pthread_mutex_unlock(&buffers[0]->device->use_lock);
    for (size_t i = 0; i < left; ++i)
        clReleaseEvent(over[i]);
}

void clv_buffer_used(const clv_buffer *buffer, const void *queue, cl_event event)
{
    clv_buffers_used(&buffer, 1, queue, event);
}

void clv_buffer_wait(clv_buffer *buffer)
{
    for (size_t i = 0; i < CLV_BUFFER_USES; ++i)
        if (buffer->uses[i].event) (void)clWaitForEvents(1, &buffer->uses[i].event);
}

void clv_buffer_unused(clv_buffer *buffer)
{
    for (size_t i = 0; i < CLV_BUFFER_USES; ++i) {
        if (buffer->uses[i].event) clReleaseEvent(buffer->uses[i].event);
        buffer->uses[i] = (clv_use){ 0 };
    }
}

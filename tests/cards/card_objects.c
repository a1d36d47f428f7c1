/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, queues and buffers of the card: which objects are its own, how much memory they hold, and
 * which host memory the driver allocated. */
#include "card.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { CONTEXT, QUEUE, BUFFER, PINNED } kind;

typedef struct object {
    const void *handle;
    kind kind;
    size_t bytes; /* BUFFER: of the card's memory; PINNED: from the handle on */
    bool host;    /* BUFFER: in host memory that the driver allocates */
} object;

static struct {
    pthread_mutex_t lock;
    object *items;
    size_t count, room;
    uint64_t held; /* bytes in buffers of the card */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The lock is held in these three. */
static object *find(const void *handle, kind wanted)
{
    for (size_t i = all.count; i-- > 0;)
        if (all.items[i].handle == handle && all.items[i].kind == wanted) return &all.items[i];
    return NULL;
}

static void add(object item)
{
    if (all.count == all.room) {
        all.room = all.room ? 2 * all.room : 256;
        all.items = realloc(all.items, all.room * sizeof *all.items);
        if (!all.items) abort();
    }
    all.items[all.count++] = item;
}

static object take_out(const void *handle, kind wanted)
{
    object *found = find(handle, wanted), was = { 0 };
    if (!found) return was;
    was = *found;
    *found = all.items[--all.count];
    return was;
}

static bool has(const void *handle, kind wanted)
{
    pthread_mutex_lock(&all.lock);
    const bool found = find(handle, wanted) != NULL;
    pthread_mutex_unlock(&all.lock);
    return found;
}

static void note(object item)
{
    pthread_mutex_lock(&all.lock);
    add(item);
    if (item.kind == BUFFER) all.held += item.bytes;
    pthread_mutex_unlock(&all.lock);
}

bool card_plays_context(cl_context context)
{
    return has(context, CONTEXT);
}

bool card_plays_queue(cl_command_queue queue)
{
    return has(queue, QUEUE);
}

bool card_is_full(void)
{
    pthread_mutex_lock(&all.lock);
    const bool full = all.held > card.facts.global_bytes;
    pthread_mutex_unlock(&all.lock);
    return full;
}

void card_pinned(void *host, size_t bytes)
{
    note((object){ .handle = host, .kind = PINNED, .bytes = bytes });
}

void card_unpinned(const void *host)
{
    pthread_mutex_lock(&all.lock);
    take_out(host, PINNED);
    pthread_mutex_unlock(&all.lock);
}

bool card_is_pinned(const void *host, size_t bytes)
{
    const char *from = host;
    bool found = false;
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < all.count && !found; ++i) {
        const object *o = &all.items[i];
        const char *begin = o->handle;
        found = o->kind == PINNED && from >= begin && from + bytes <= begin + o->bytes;
    }
    pthread_mutex_unlock(&all.lock);
    return found;
}

bool card_is_host_buffer(cl_mem buffer)
{
    pthread_mutex_lock(&all.lock);
    const object *found = find(buffer, BUFFER);
    const bool host = found && found->host;
    pthread_mutex_unlock(&all.lock);
    return host;
}

static cl_context CL_API_CALL create_context(
    const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code)
{
    cl_context context =
        layer_below->clCreateContext(properties, count, devices, notify, user, code);
    if (context && card_plays(devices[0])) note((object){ .handle = context, .kind = CONTEXT });
    return context;
}

static void forget(const void *handle, kind which)
{
    pthread_mutex_lock(&all.lock);
    const object was = take_out(handle, which);
    if (which == BUFFER) all.held -= was.bytes;
    pthread_mutex_unlock(&all.lock);
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    forget(context, CONTEXT);
    return layer_below->clReleaseContext(context);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *code)
{
    cl_command_queue queue = layer_below->clCreateCommandQueue(context, device, properties, code);
    if (queue && card_plays_context(context)) note((object){ .handle = queue, .kind = QUEUE });
    return queue;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue)
{
    forget(queue, QUEUE);
    return layer_below->clReleaseCommandQueue(queue);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *code)
{
    const bool ours = card_plays_context(context);
    if (ours && bytes > card.facts.max_alloc_bytes) {
        if (code) *code = CL_INVALID_BUFFER_SIZE;
        return NULL;
    }
    const size_t made = ours && card.hollow ? 64 : bytes;
    cl_mem buffer = layer_below->clCreateBuffer(context, flags, made, host, code);
    const bool of_host = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
    if (buffer && ours)
        note((object){ .handle = buffer,
                       .kind = BUFFER,
                       .bytes = of_host ? 0 : bytes,
                       .host = flags & CL_MEM_ALLOC_HOST_PTR });
    return buffer;
}

static cl_int CL_API_CALL release_buffer(cl_mem buffer)
{
    cl_uint users = 0;
    layer_below->clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof users, &users, NULL);
    if (users <= 1) forget(buffer, BUFFER);
    return layer_below->clReleaseMemObject(buffer);
}

void card_objects_install(cl_icd_dispatch *layer)
{
    layer->clCreateContext = create_context;
    layer->clReleaseContext = release_context;
    layer->clCreateCommandQueue = create_queue;
    layer->clReleaseCommandQueue = release_queue;
    layer->clCreateBuffer = create_buffer;
    layer->clReleaseMemObject = release_buffer;
}

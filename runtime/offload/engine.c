/* SPDX-License-Identifier: Apache-2.0 */
/* Runs calls on one device immediately, without a job. */
#include "runtime/offload/engine.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/device/queue.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <string.h>

/* Results of at most this many bytes are copied back even from shared memory: a copy takes one command and one wait,
 * a map and its end take two of each. */
enum { COPIED = 8 << 10 };
/* Buffers larger than this go back to the pool after every call. The next call finds them there, and other work can
 * use the room meanwhile. */
enum { KEPT = 1 << 20 };

static bool is_broken(const clv_engine *engine)
{
    return engine->queue && clv_queue_device(engine->queue)->state != CLV_DEVICE_READY;
}

static void close_queue(clv_engine *engine)
{
    for (size_t i = 0; i < CLV_ENGINE_KEYS; ++i) {
        clv_buffer_free(engine->held[i].buffer);
        engine->held[i].buffer = NULL;
    }
    clv_queue_free(engine->queue);
    engine->queue = NULL;
}

static void open_queue(clv_engine *engine)
{
    clv_context *context = engine->context;
    for (size_t i = 0; i < context->device_count && !engine->queue; ++i) {
        clv_device *device = &context->devices[i];
        if (clv_queue_create(device, &engine->queue))
            clv_log(CLV_LOG_WARN, "%s cannot be used for single calls: %s",
                    clv_device_label(device), clv_error_message());
    }
}

clv_engine *clv_engine_lock(clv_context *context)
{
    if (!context->device_count || !clv_jobs_lock(context)) return NULL;
    clv_engine *engine = context->engine;
    if (!engine) {
        engine = context->engine = clv_zalloc(1, sizeof *engine);
        if (engine) engine->context = context;
    }
    if (engine && is_broken(engine)) close_queue(engine);
    if (engine && !engine->queue) open_queue(engine);
    if (engine && engine->queue) return engine;
    clv_jobs_unlock(context);
    return NULL;
}

void clv_engine_unlock(clv_engine *engine)
{
    if (engine) clv_jobs_unlock(engine->context);
}

void clv_engine_free(clv_engine *engine)
{
    if (!engine) return;
    close_queue(engine);
    clv_free(engine);
}

clv_status clv_engine_scratch(clv_engine *engine, unsigned key, size_t bytes, clv_buffer **buffer)
{
    clv_buffer **held = &engine->held[key].buffer;
    if (*held && (engine->held[key].wraps || clv_buffer_bytes(*held) < bytes)) {
        clv_buffer_free(*held);
        *held = NULL;
    }
    engine->held[key].wraps = engine->held[key].output = engine->held[key].boxed = false;
    if (!*held)
        CLV_TRY(clv_buffer_create(clv_queue_device(engine->queue), bytes, CLV_BUFFER_DEVICE, held));
    *buffer = *held;
    return CLV_OK;
}

clv_status clv_engine_bring(clv_engine *engine, unsigned key, const void *host, size_t bytes,
                            bool input, bool output, clv_buffer **buffer)
{
    clv_device *device = clv_queue_device(engine->queue);
    if (device->zero_copy && (input || bytes > COPIED)) {
        clv_buffer_free(engine->held[key].buffer);
        engine->held[key].buffer = NULL;
        engine->held[key].wraps = true;
        engine->held[key].boxed = false;
        CLV_TRY(clv_buffer_wrap(device, (void *)(uintptr_t)host, bytes, &engine->held[key].buffer));
        *buffer = engine->held[key].buffer;
    } else {
        CLV_TRY(clv_engine_scratch(engine, key, bytes, buffer));
        if (input) CLV_TRY(clv_write_enqueue(engine->queue, *buffer, 0, host, bytes, NULL));
    }
    engine->held[key].host = (void *)(uintptr_t)host;
    engine->held[key].bytes = bytes;
    engine->held[key].output = output;
    return CLV_OK;
}

clv_status clv_engine_bring_box(clv_engine *engine, unsigned key, const float *host,
                                const size_t extent[3], size_t stride[3], size_t span, bool input,
                                bool output, clv_buffer **buffer)
{
    const size_t row = extent[2], plane = extent[1] * row;
    const bool dense = (extent[1] < 2 || stride[1] == row) && (extent[0] < 2 || stride[0] == plane);
    if (dense || clv_queue_device(engine->queue)->zero_copy) /* gaps do not prevent use in place */
        return clv_engine_bring(engine, key, host, span * sizeof *host, input || !dense, output,
                                buffer);
    const size_t bytes = extent[0] * plane * sizeof *host;
    CLV_TRY(clv_engine_scratch(engine, key, bytes, buffer));
    if (input)
        CLV_TRY(clv_write_box_enqueue(engine->queue, *buffer, host, sizeof *host, extent, stride));
    memcpy(engine->held[key].extent, extent, sizeof engine->held[key].extent);
    memcpy(engine->held[key].stride, stride, sizeof engine->held[key].stride);
    engine->held[key].host = (void *)(uintptr_t)host;
    engine->held[key].bytes = bytes;
    engine->held[key].output = output;
    engine->held[key].boxed = true;
    stride[0] = plane, stride[1] = row;
    return CLV_OK;
}

/* Makes results visible to the caller: by a map where kernels wrote in place, else by a copy. */
static clv_status give_back(clv_engine *engine, size_t key)
{
    clv_buffer *buffer = engine->held[key].buffer;
    void *host = NULL;
    if (engine->held[key].boxed)
        return clv_read_box_enqueue(engine->queue, buffer, engine->held[key].host, sizeof(float),
                                    engine->held[key].extent, engine->held[key].stride);
    if (!engine->held[key].wraps)
        return clv_read_enqueue(engine->queue, buffer, 0, engine->held[key].host,
                                engine->held[key].bytes, NULL);
    CLV_TRY(clv_map_enqueue(engine->queue, buffer, false, &host));
    CLV_TRY(clv_queue_wait(engine->queue)); /* some drivers set the address only then */
    return clv_unmap_enqueue(engine->queue, buffer, host);
}

static void let_go(clv_engine *engine)
{
    for (size_t i = 0; i < CLV_ENGINE_KEYS; ++i) {
        engine->held[i].output = false;
        const clv_buffer *buffer = engine->held[i].buffer;
        if (!buffer || (!engine->held[i].wraps && clv_buffer_bytes(buffer) <= KEPT)) continue;
        clv_buffer_free(engine->held[i].buffer);
        engine->held[i].buffer = NULL;
        engine->held[i].wraps = false;
    }
}

clv_status clv_engine_finish(clv_engine *engine, clv_status status)
{
    for (size_t i = 0; i < CLV_ENGINE_KEYS && !status; ++i)
        if (engine->held[i].output) status = give_back(engine, i);
    status = clv_queue_finish(engine->queue, status);
    let_go(engine);
    return status;
}

clv_status clv_engine_rehearse(clv_context *context,
                               clv_status (*enqueue)(clv_engine *engine, void *user), void *user)
{
    clv_engine *engine = clv_engine_lock(context);
    if (!engine) return CLV_OK;
    engine->queue->rehearsing = true;
    const clv_status status = enqueue(engine, user);
    engine->queue->rehearsing = false;
    let_go(engine);
    clv_engine_unlock(engine);
    return status;
}

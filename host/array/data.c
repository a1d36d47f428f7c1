/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that lie in the caller's memory or stay on a device. One side has the latest elements at a time, and they
 * are only copied when the other side needs them. */
#include "host/array/data.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/job/turn.h"
#include "runtime/record/context.h"

#include <string.h>

static const size_t most_elements = (size_t)1 << 31;

static clv_status read_shape(const char *what, size_t rank, const size_t *shape, clv_array *array)
{
    if (rank > CLV_ARRAY_AXES)
        return clv_fail(CLV_E_SHAPE, "%s: %zu axes, at most %d expected", what, rank,
                        CLV_ARRAY_AXES);
    if (rank && !shape) return clv_fail(CLV_E_ARGUMENT, "%s: a NULL shape", what);
    size_t elements = 1, extent[CLV_ARRAY_AXES] = { 1, 1, 1, 1 };
    for (size_t i = 0; i < rank; ++i) {
        extent[i] = shape[i];
        if (!shape[i]) return clv_fail(CLV_E_SHAPE, "%s: axis %zu has extent 0", what, i);
        if (!clv_size_mul(elements, shape[i], &elements) || elements >= most_elements)
            return clv_fail(CLV_E_SHAPE, "%s: 2^31 elements or more", what);
    }
    array->rank = rank;
    array->elements = elements;
    memcpy(array->shape, extent, sizeof extent);
    return CLV_OK;
}

static clv_status make(const char *what, clv_context *context, size_t rank, const size_t *shape,
                       clv_array **out)
{
    clv_array made = { .context = context };
    if (!out) return clv_fail(CLV_E_ARGUMENT, "%s: nowhere to put the array", what);
    *out = NULL;
    if (!context) return clv_fail(CLV_E_ARGUMENT, "%s: a NULL context", what);
    CLV_TRY(read_shape(what, rank, shape, &made));
    clv_array *array = clv_zalloc(1, sizeof *array);
    if (!array) return clv_fail(CLV_E_MEMORY, "%s: no memory", what);
    *array = made;
    *out = array;
    return CLV_OK;
}

clv_status clv_array_create(clv_context *context, size_t rank, const size_t *shape, clv_array **out)
{
    return make("array", context, rank, shape, out);
}

clv_status clv_array_wrap(clv_context *context, float *host, size_t rank, const size_t *shape,
                          clv_array **out)
{
    if (out) *out = NULL;
    if (!host) return clv_fail(CLV_E_ARGUMENT, "array: NULL memory to wrap");
    CLV_TRY(make("array", context, rank, shape, out));
    (*out)->wraps = (*out)->on_host = true;
    (*out)->host = host;
    return CLV_OK;
}

clv_status clv_array_from(clv_context *context, const float *host, size_t rank, const size_t *shape,
                          clv_array **out)
{
    if (out) *out = NULL;
    if (!host) return clv_fail(CLV_E_ARGUMENT, "array: NULL memory to copy from");
    CLV_TRY(make("array", context, rank, shape, out));
    const clv_status status = clv_array_put(*out, host);
    if (status) {
        clv_array_free(*out);
        *out = NULL;
    }
    return status;
}

void clv_array_free(clv_array *array)
{
    if (!array) return;
    clv_buffer_free(array->buffer);
    if (!array->wraps) clv_free(array->host);
    clv_free(array);
}

size_t clv_array_rank(const clv_array *array)
{
    return array->rank;
}

const size_t *clv_array_shape(const clv_array *array)
{
    return array->shape;
}

size_t clv_array_elements(const clv_array *array)
{
    return array->elements;
}

size_t clv_array_bytes(const clv_array *array)
{
    return array->elements * sizeof(float);
}

bool clv_array_is_on_device(const clv_array *array)
{
    return array->on_device;
}

clv_status clv_array_reshape(clv_array *array, size_t rank, const size_t *shape)
{
    clv_array other = { 0 };
    if (!array) return clv_fail(CLV_E_ARGUMENT, "reshape: a NULL array");
    CLV_TRY(read_shape("reshape", rank, shape, &other));
    if (other.elements != array->elements)
        return clv_fail(CLV_E_SHAPE, "reshape: %zu elements given, the array has %zu",
                        other.elements, array->elements);
    array->rank = other.rank;
    memcpy(array->shape, other.shape, sizeof array->shape);
    return CLV_OK;
}

clv_status clv_array_check(const char *what, const clv_context *context, const clv_array *array)
{
    if (!context || !array) return clv_fail(CLV_E_ARGUMENT, "%s: a NULL context or array", what);
    if (array->context != context)
        return clv_fail(CLV_E_ARGUMENT, "%s: an array of another context", what);
    return CLV_OK;
}

bool clv_array_overlap(const clv_array *a, const clv_array *b)
{
    if (a == b) return false;
    if (!a->wraps || !b->wraps) return false;
    return clv_shares(a->host, clv_array_bytes(a), b->host, clv_array_bytes(b));
}

/* ---- moving ---------------------------------------------------------------------------------- */

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
    pthread_mutex_lock(&context->array_lock);
    const clv_array_stats stats = context->array_stats;
    pthread_mutex_unlock(&context->array_lock);
    return stats;
}

/* Gives an owned array memory on the engine's device. */
static clv_status own_buffer(clv_array *array, clv_engine *engine)
{
    clv_device *device = clv_queue_device(engine->queue);
    if (array->buffer && array->buffer->device != device) {
        if (array->on_device && !array->on_host)
            return clv_fail(CLV_E_DEVICE, "an array lies on %s, which does not work any more",
                            array->buffer->device->label);
        clv_buffer_free(array->buffer);
        array->buffer = NULL;
        array->on_device = false;
    }
    return array->buffer ? CLV_OK
                         : clv_buffer_create(device, clv_array_bytes(array), CLV_BUFFER_DEVICE,
                                             &array->buffer);
}

clv_status clv_array_to_device(clv_array *array, clv_engine *engine, unsigned key, bool input,
                               bool output)
{
    const size_t bytes = clv_array_bytes(array);
    const bool rehearsing = engine->queue->rehearsing; /* then nothing is copied or read */
    if (array->wraps) {
        const bool copies = !rehearsing && !clv_queue_device(engine->queue)->zero_copy;
        CLV_TRY(clv_engine_bring(engine, key, array->host, bytes, input, output, &array->at));
        if (input && copies) count(array->context, true, bytes);
        if (output && copies) count(array->context, false, bytes);
        return CLV_OK;
    }
    CLV_TRY(own_buffer(array, engine));
    array->at = array->buffer;
    if (!input || array->on_device || rehearsing) return CLV_OK;
    if (!array->on_host) return clv_fail(CLV_E_ARGUMENT, "an array without contents is an operand");
    CLV_TRY(clv_write(engine->queue, array->buffer, 0, array->host, bytes));
    count(array->context, true, bytes);
    array->on_device = true;
    return CLV_OK;
}

static clv_status own_host(clv_array *array)
{
    if (!array->host) array->host = clv_alloc_pages(clv_array_bytes(array));
    return array->host ? CLV_OK
                       : clv_fail(CLV_E_MEMORY, "no memory for an array of %zu", array->elements);
}

/* Reads an array from the device that has it, through its engine. */
static clv_status fetch(clv_array *array, float *host)
{
    clv_engine *engine = clv_engine_lock(array->context);
    if (!engine && clv_jobs_held(array->context)) return clv_jobs_refuse("an array's contents");
    clv_status status =
        engine && clv_queue_device(engine->queue) == array->buffer->device
            ? clv_read(engine->queue, array->buffer, 0, host, clv_array_bytes(array))
            : clv_fail(CLV_E_DEVICE, "an array lies on %s, which does not work any more",
                       array->buffer->device->label);
    clv_engine_unlock(engine);
    if (!status) count(array->context, false, clv_array_bytes(array));
    return status;
}

clv_status clv_array_to_host(clv_array *array, bool input)
{
    if (array->wraps) return CLV_OK;
    CLV_TRY(own_host(array));
    if (!input || array->on_host) return CLV_OK;
    if (!array->on_device)
        return clv_fail(CLV_E_ARGUMENT, "an array without contents is an operand");
    CLV_TRY(fetch(array, array->host));
    array->on_host = true;
    return CLV_OK;
}

void clv_array_written(clv_array *array, bool on_device)
{
    if (array->wraps) return;
    array->on_device = on_device;
    array->on_host = !on_device;
}

clv_status clv_array_get(clv_array *array, float *host)
{
    if (!array || !host) return clv_fail(CLV_E_ARGUMENT, "array get: a NULL array or memory");
    if (array->on_host) {
        if (host != array->host) memmove(host, array->host, clv_array_bytes(array));
        return CLV_OK;
    }
    if (!array->on_device) return clv_fail(CLV_E_ARGUMENT, "array get: it has no contents yet");
    return fetch(array, host);
}

/* Copies from buffer to buffer; after a failure, the contents of `to` are undefined. */
static clv_status copy_there(const clv_array *from, clv_array *to)
{
    clv_engine *engine = clv_engine_lock(from->context);
    if (!engine && clv_jobs_held(from->context)) return clv_jobs_refuse("an array's contents");
    clv_status status = engine && clv_queue_device(engine->queue) == from->buffer->device
                            ? own_buffer(to, engine)
                            : CLV_E_DEVICE;
    if (!status)
        status = clv_copy_enqueue(engine->queue, from->buffer, 0, to->buffer, 0,
                                  clv_array_bytes(from), NULL);
    if (!status) status = clv_queue_wait(engine->queue);
    clv_engine_unlock(engine);
    if (!status) clv_array_written(to, true);
    return status;
}

static clv_status copy_contents(clv_array *from, clv_array *to)
{
    if (!from->on_host && !from->on_device) return CLV_OK;
    if (from->on_device && !copy_there(from, to)) return CLV_OK;
    CLV_TRY(own_host(to));
    CLV_TRY(clv_array_get(from, to->host));
    clv_array_written(to, false);
    return CLV_OK;
}

clv_status clv_array_copy(clv_array *array, size_t rank, const size_t *shape, clv_array **out)
{
    if (out) *out = NULL;
    if (!array) return clv_fail(CLV_E_ARGUMENT, "array copy: a NULL array");
    CLV_TRY(make("array copy", array->context, array->rank, array->shape, out));
    clv_status status = shape ? clv_array_reshape(*out, rank, shape) : CLV_OK;
    if (!status) status = copy_contents(array, *out);
    if (status) {
        clv_array_free(*out);
        *out = NULL;
    }
    return status;
}

clv_status clv_array_put(clv_array *array, const float *host)
{
    if (!array || !host) return clv_fail(CLV_E_ARGUMENT, "array put: a NULL array or memory");
    if (array->wraps) {
        if (host != array->host) memmove(array->host, host, clv_array_bytes(array));
        return CLV_OK;
    }
    clv_engine *engine = clv_engine_lock(array->context);
    clv_status status = CLV_OK;
    if (engine) {
        array->on_host = array->on_device = false;
        status = own_buffer(array, engine);
        if (!status)
            status = clv_write(engine->queue, array->buffer, 0, host, clv_array_bytes(array));
        clv_engine_unlock(engine);
        if (!status) {
            count(array->context, true, clv_array_bytes(array));
            clv_array_written(array, true);
            return CLV_OK;
        }
        clv_log(CLV_LOG_WARN, "an array stays with the host, since: %s", clv_error_message());
    }
    CLV_TRY(own_host(array));
    memcpy(array->host, host, clv_array_bytes(array));
    clv_array_written(array, false);
    return CLV_OK;
}

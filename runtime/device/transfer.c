/* SPDX-License-Identifier: Apache-2.0 */
/* Copies data between host and device, and fills device memory. */
#include "runtime/device/queue.h"

#include "base/alloc.h"
#include "base/fork.h"
#include "runtime/device/pool.h"
#include "runtime/record/cl_status.h"

#include <string.h>

static clv_status check_range(const char *what, const clv_queue *queue, const clv_buffer *buffer,
                              size_t offset, size_t bytes)
{
    if (!queue || !buffer) return clv_fail(CLV_E_ARGUMENT, "%s: queue or buffer is NULL", what);
    CLV_TRY(clv_fork_check(queue->device->born, what));
    if (buffer->device != queue->device)
        return clv_fail(CLV_E_ARGUMENT, "%s: the buffer belongs to %s, but the queue to %s", what,
                        buffer->device->label, queue->device->label);
    size_t end;
    if (!clv_size_add(offset, bytes, &end) || end > buffer->bytes)
        return clv_fail(CLV_E_SHAPE,
                        "%s: %zu bytes at byte %zu do not fit into a buffer of %zu bytes", what,
                        bytes, offset, buffer->bytes);
    return CLV_OK;
}

static clv_status noted(clv_queue *queue, const char *call, cl_int code, cl_event event,
                        clv_command command, const char *name, const clv_buffer *buffer,
                        size_t bytes, clv_event **done)
{
    if (code != CL_SUCCESS) return clv_cl_fail(queue->device, call, NULL, code);
    clv_buffer_used(buffer, queue, event);
    return clv_queue_note(queue, event, command, name, bytes, done);
}

clv_status clv_write_enqueue(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                             const void *host, size_t bytes, clv_event **done)
{
    if (done) *done = NULL;
    if (queue && queue->rehearsing) return CLV_OK;
    CLV_TRY(check_range("write", queue, buffer, offset_bytes, bytes));
    cl_event event = NULL;
    const cl_int code = clEnqueueWriteBuffer(queue->cl, buffer->mem, CL_FALSE, offset_bytes, bytes,
                                             host, 0, NULL, &event);
    return noted(queue, "clEnqueueWriteBuffer", code, event, CLV_COMMAND_UPLOAD, "write", buffer,
                 bytes, done);
}

clv_status clv_read_enqueue(clv_queue *queue, const clv_buffer *buffer, size_t offset_bytes,
                            void *host, size_t bytes, clv_event **done)
{
    if (done) *done = NULL;
    if (queue && queue->rehearsing) {
        memset(host, 0, bytes);
        return CLV_OK;
    }
    CLV_TRY(check_range("read", queue, buffer, offset_bytes, bytes));
    cl_event event = NULL;
    const cl_int code = clEnqueueReadBuffer(queue->cl, buffer->mem, CL_FALSE, offset_bytes, bytes,
                                            host, 0, NULL, &event);
    return noted(queue, "clEnqueueReadBuffer", code, event, CLV_COMMAND_DOWNLOAD, "read", buffer,
                 bytes, done);
}

clv_status clv_fill_enqueue(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes, size_t bytes,
                            uint32_t pattern, clv_event **done)
{
    if (done) *done = NULL;
    if (queue && queue->rehearsing) return CLV_OK;
    CLV_TRY(check_range("fill", queue, buffer, offset_bytes, bytes));
    if (offset_bytes % sizeof pattern || bytes % sizeof pattern)
        return clv_fail(
            CLV_E_ARGUMENT,
            "fill: the number of bytes, %zu, and their offset, %zu, must be multiples of 4", bytes,
            offset_bytes);
    cl_event event = NULL;
    const cl_int code = clEnqueueFillBuffer(queue->cl, buffer->mem, &pattern, sizeof pattern,
                                            offset_bytes, bytes, 0, NULL, &event);
    return noted(queue, "clEnqueueFillBuffer", code, event, CLV_COMMAND_OTHER, "fill", buffer,
                 bytes, done);
}

clv_status clv_copy_enqueue(clv_queue *queue, const clv_buffer *from, size_t from_bytes,
                            clv_buffer *to, size_t to_bytes, size_t bytes, clv_event **done)
{
    if (done) *done = NULL;
    if (queue && queue->rehearsing) return CLV_OK;
    CLV_TRY(check_range("copy from", queue, from, from_bytes, bytes));
    CLV_TRY(check_range("copy to", queue, to, to_bytes, bytes));
    cl_event event = NULL;
    const cl_int code = clEnqueueCopyBuffer(queue->cl, from->mem, to->mem, from_bytes, to_bytes,
                                            bytes, 0, NULL, &event);
    if (code == CL_SUCCESS) clv_buffer_used(from, queue, event);
    return noted(queue, "clEnqueueCopyBuffer", code, event, CLV_COMMAND_OTHER, "copy", to, bytes,
                 done);
}

clv_status clv_write(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes, const void *host,
                     size_t bytes)
{
    CLV_TRY(clv_write_enqueue(queue, buffer, offset_bytes, host, bytes, NULL));
    return clv_queue_wait(queue);
}

clv_status clv_read(clv_queue *queue, const clv_buffer *buffer, size_t offset_bytes, void *host,
                    size_t bytes)
{
    CLV_TRY(clv_read_enqueue(queue, buffer, offset_bytes, host, bytes, NULL));
    return clv_queue_wait(queue);
}

/* A box of host memory, and where its rows and planes begin. */
typedef struct host_box {
    char *host; /* only read when data goes to the device */
    size_t row, bytes, rows, planes;
    size_t next_row, next_plane; /* bytes */
    bool dense;
} host_box;

static host_box box_of(const void *host, size_t element_bytes, const size_t extent[3],
                       const size_t stride[3])
{
    /* the distance to the next row or plane does not matter if there is only one, and may be 0 */
    const size_t row = extent[1] > 1 ? stride[1] : extent[2];
    const size_t plane = extent[0] > 1 ? stride[0] : extent[1] * row;
    if (row == extent[2] && extent[1] > 1) /* rows without gaps: a plane is one long row */
        return box_of(host, element_bytes, (size_t[3]){ 1, extent[0], extent[1] * extent[2] },
                      (size_t[3]){ 0, plane, 1 });
    return (host_box){ .host = (char *)(uintptr_t)host,
                       .row = extent[2] * element_bytes,
                       .bytes = extent[0] * extent[1] * extent[2] * element_bytes,
                       .rows = extent[1],
                       .planes = extent[0],
                       .next_row = row * element_bytes,
                       .next_plane = plane * element_bytes,
                       .dense = row == extent[2] && plane == extent[1] * extent[2] };
}

/* Copies planes [first, first + count) of a box with one command. */
static cl_int copy_planes(clv_queue *queue, const clv_buffer *buffer, const host_box *b,
                          size_t first, size_t count, bool back, cl_event *event)
{
    static const size_t origin[3] = { 0, 0, 0 };
    const size_t there[3] = { 0, first * b->rows, 0 }, region[3] = { b->row, b->rows, count };
    const size_t slice = count > 1 ? b->row * b->rows : 0, far = count > 1 ? b->next_plane : 0;
    char *host = b->host + first * b->next_plane;
    return back ? clEnqueueReadBufferRect(queue->cl, buffer->mem, CL_FALSE, there, origin, region,
                                          b->row, slice, b->next_row, far, host, 0, NULL, event)
                : clEnqueueWriteBufferRect(queue->cl, buffer->mem, CL_FALSE, there, origin, region,
                                           b->row, slice, b->next_row, far, host, 0, NULL, event);
}

static clv_status copy_box(clv_queue *queue, const clv_buffer *buffer, const host_box *b, bool back)
{
    const clv_command command = back ? CLV_COMMAND_DOWNLOAD : CLV_COMMAND_UPLOAD;
    const char *call = back ? "clEnqueueReadBufferRect" : "clEnqueueWriteBufferRect";
    const char *name = back ? "read box" : "write box";
    if (queue->rehearsing) return CLV_OK;
    CLV_TRY(check_range(name, queue, buffer, 0, b->bytes));
    cl_event event = NULL;
    /* OpenCL requires slices of whole rows: boxes with other strides are copied plane by plane */
    if (b->next_plane % b->next_row == 0 && b->next_plane >= b->next_row * b->rows &&
        copy_planes(queue, buffer, b, 0, b->planes, back, &event) == CL_SUCCESS)
        return noted(queue, call, CL_SUCCESS, event, command, name, buffer, b->bytes, NULL);
    for (size_t i = 0; i < b->planes; ++i) {
        const cl_int code = copy_planes(queue, buffer, b, i, 1, back, &event);
        CLV_TRY(noted(queue, call, code, event, command, name, buffer, b->row * b->rows, NULL));
    }
    return CLV_OK;
}

clv_status clv_write_box_enqueue(clv_queue *queue, clv_buffer *buffer, const void *host,
                                 size_t element_bytes, const size_t extent[3],
                                 const size_t stride[3])
{
    const host_box b = box_of(host, element_bytes, extent, stride);
    return b.dense ? clv_write_enqueue(queue, buffer, 0, host, b.bytes, NULL)
                   : copy_box(queue, buffer, &b, false);
}

clv_status clv_read_box_enqueue(clv_queue *queue, const clv_buffer *buffer, void *host,
                                size_t element_bytes, const size_t extent[3],
                                const size_t stride[3])
{
    const host_box b = box_of(host, element_bytes, extent, stride);
    return b.dense ? clv_read_enqueue(queue, buffer, 0, host, b.bytes, NULL)
                   : copy_box(queue, buffer, &b, true);
}

clv_status clv_map_enqueue(clv_queue *queue, clv_buffer *buffer, bool write, void **host)
{
    cl_int code;
    cl_event event = NULL;
    *host = clEnqueueMapBuffer(queue->cl, buffer->mem, CL_FALSE,
                               write ? CL_MAP_WRITE | CL_MAP_READ : CL_MAP_READ, 0, buffer->bytes,
                               0, NULL, &event, &code);
    return noted(queue, "clEnqueueMapBuffer", code, event, CLV_COMMAND_OTHER, "map", buffer, 0,
                 NULL);
}

clv_status clv_unmap_enqueue(clv_queue *queue, clv_buffer *buffer, void *host)
{
    cl_event event = NULL;
    const cl_int code = clEnqueueUnmapMemObject(queue->cl, buffer->mem, host, 0, NULL, &event);
    return noted(queue, "clEnqueueUnmapMemObject", code, event, CLV_COMMAND_OTHER, "unmap", buffer,
                 0, NULL);
}

/* ---- memory that host and device use in turns --------------------------------------------------- */

clv_status clv_buffer_lend(clv_queue *queue, clv_buffer *buffer)
{
    cl_int code = CL_SUCCESS;
    if (!buffer->mapped || queue->rehearsing) return CLV_OK;
    if (buffer->mem) {
        CLV_TRY(clv_unmap_enqueue(queue, buffer, buffer->mapped));
    } else {
        buffer->mem = clCreateBuffer(queue->device->cl, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                     buffer->capacity, buffer->memory, &code);
        if (code != CL_SUCCESS)
            return clv_cl_fail(queue->device, "clCreateBuffer", "shared memory", code);
    }
    buffer->mapped = NULL;
    return CLV_OK;
}

clv_status clv_buffer_reclaim(clv_queue *queue, clv_buffer *buffer)
{
    void *host = NULL;
    if (buffer->mapped) return CLV_OK;
    CLV_TRY(clv_map_enqueue(queue, buffer, true, &host));
    CLV_TRY(clv_queue_wait(queue)); /* some drivers set the address only then */
    buffer->mapped = host;
    return CLV_OK;
}

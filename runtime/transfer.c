/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between host and device, and fills. */
#include "runtime/queue.h"

#include "base/alloc.h"
#include "runtime/cl_status.h"

static clv_status check_range(const char *what, const clv_queue *queue, const clv_buffer *buffer,
                              size_t offset, size_t bytes)
{
    if (!queue || !buffer) return clv_fail(CLV_E_ARGUMENT, "%s: a NULL queue or buffer", what);
    if (buffer->device != queue->device)
        return clv_fail(CLV_E_ARGUMENT, "%s: the buffer is of %s, the queue of %s", what,
                        buffer->device->label, queue->device->label);
    size_t end;
    if (!clv_size_add(offset, bytes, &end) || end > buffer->bytes)
        return clv_fail(CLV_E_SHAPE, "%s: %zu bytes at %zu of a buffer of %zu", what, bytes, offset,
                        buffer->bytes);
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
    CLV_TRY(check_range("fill", queue, buffer, offset_bytes, bytes));
    if (offset_bytes % sizeof pattern || bytes % sizeof pattern)
        return clv_fail(CLV_E_ARGUMENT, "fill: %zu bytes at %zu are not multiples of 4", bytes,
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

clv_status clv_write_box_enqueue(clv_queue *queue, clv_buffer *buffer, const void *host,
                                 size_t element_bytes, const size_t extent[3],
                                 const size_t stride[3])
{
    const size_t row = extent[2] * element_bytes, bytes = row * extent[1] * extent[0];
    CLV_TRY(check_range("write box", queue, buffer, 0, bytes));
    /* how far apart the only row or plane is from none does not matter, and may be 0 */
    const size_t next_row = extent[1] > 1 ? stride[1] : extent[2];
    const size_t next_plane = extent[0] > 1 ? stride[0] : extent[1] * next_row;
    if (next_row == extent[2] && next_plane == extent[1] * extent[2])
        return clv_write_enqueue(queue, buffer, 0, host, bytes, NULL);

    static const size_t origin[3] = { 0, 0, 0 };
    const size_t region[3] = { row, extent[1], extent[0] };
    const size_t host_row = next_row * element_bytes, host_slice = next_plane * element_bytes;
    cl_event event = NULL;
    cl_int code = CL_INVALID_VALUE;
    /* OpenCL wants whole rows in a slice; [planes, rows] with other strides goes plane by plane */
    if (host_slice % host_row == 0 && host_slice >= host_row * extent[1])
        code =
            clEnqueueWriteBufferRect(queue->cl, buffer->mem, CL_FALSE, origin, origin, region, row,
                                     row * extent[1], host_row, host_slice, host, 0, NULL, &event);
    if (code == CL_SUCCESS)
        return noted(queue, "clEnqueueWriteBufferRect", code, event, CLV_COMMAND_UPLOAD,
                     "write box", buffer, bytes, NULL);
    const size_t plane[3] = { row, extent[1], 1 };
    for (size_t i = 0; i < extent[0]; ++i) {
        const size_t to[3] = { 0, i * extent[1], 0 };
        code = clEnqueueWriteBufferRect(queue->cl, buffer->mem, CL_FALSE, to, origin, plane, row, 0,
                                        host_row, 0, (const char *)host + i * host_slice, 0, NULL,
                                        &event);
        CLV_TRY(noted(queue, "clEnqueueWriteBufferRect", code, event, CLV_COMMAND_UPLOAD,
                      "write box", buffer, row * extent[1], NULL));
    }
    return CLV_OK;
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

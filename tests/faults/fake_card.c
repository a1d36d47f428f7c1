/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the fake driver "card": 3 GB of it are free. This shows only when memory is written: as an error of
 * the call, or as the error with which the command ends. */
#include "fake_card.h"

#include <stdbool.h>
#include <stdlib.h>

static const size_t free_bytes = 3000000000;
static size_t written_bytes;
static unsigned refusals;

/* Whatever the loader asks for begins with the table. */
typedef struct object {
    const cl_icd_dispatch *dispatch;
    size_t bytes, written;
    cl_int status;
} object;

static const cl_icd_dispatch *table;

static object *make(size_t bytes, cl_int status)
{
    object *o = malloc(sizeof *o);
    if (!o) abort();
    *o = (object){ .dispatch = table, .bytes = bytes, .status = status };
    return o;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user, cl_int *error)
{
    (void)properties, (void)count, (void)devices, (void)notify, (void)user;
    if (error) *error = CL_SUCCESS;
    return (cl_context)make(0, CL_SUCCESS);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *error)
{
    (void)context, (void)device, (void)properties;
    if (error) *error = CL_SUCCESS;
    return (cl_command_queue)make(0, CL_SUCCESS);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *error)
{
    (void)context, (void)flags, (void)host;
    if (error) *error = CL_SUCCESS;
    return (cl_mem)make(bytes, CL_SUCCESS); /* lazily: nothing is taken yet */
}

static cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem buffer, const void *pattern,
                               size_t pattern_bytes, size_t offset, size_t bytes, cl_uint count,
                               const cl_event *events, cl_event *event)
{
    object *memory = (object *)buffer;
    (void)queue, (void)pattern, (void)pattern_bytes, (void)offset, (void)count, (void)events;
    const bool room = written_bytes + bytes <= free_bytes;
    if (!room && ++refusals % 2) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    *event = (cl_event)make(0, room ? CL_COMPLETE : CL_OUT_OF_RESOURCES);
    if (room) memory->written += bytes, written_bytes += bytes;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL wait_for(cl_uint count, const cl_event *events)
{
    (void)count, (void)events;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t bytes, void *out,
                                     size_t *length)
{
    (void)what, (void)length;
    if (bytes < sizeof(cl_int)) return CL_INVALID_VALUE;
    *(cl_int *)out = ((object *)event)->status;
    return CL_SUCCESS;
}

static cl_int release(void *any)
{
    object *o = any;
    written_bytes -= o->written;
    free(o);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_context(cl_context o)
{
    if (written_bytes) abort(); /* something was kept */
    return release(o);
}

static cl_int CL_API_CALL release_queue(cl_command_queue o)
{
    return release(o);
}

static cl_int CL_API_CALL release_buffer(cl_mem o)
{
    return release(o);
}

static cl_int CL_API_CALL release_event(cl_event o)
{
    return release(o);
}

void fake_card(cl_icd_dispatch *dispatch)
{
    table = dispatch;
    dispatch->clCreateContext = create_context;
    dispatch->clCreateCommandQueue = create_queue;
    dispatch->clCreateBuffer = create_buffer;
    dispatch->clEnqueueFillBuffer = fill;
    dispatch->clWaitForEvents = wait_for;
    dispatch->clGetEventInfo = event_info;
    dispatch->clReleaseContext = release_context;
    dispatch->clReleaseCommandQueue = release_queue;
    dispatch->clReleaseMemObject = release_buffer;
    dispatch->clReleaseEvent = release_event;
}

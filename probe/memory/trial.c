/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a card's memory to find out how much of it is free. */
#include "probe/memory/trial.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/opencl/rig.h"

enum { LARGEST = 1 << 30, SMALLEST = 16 << 20 }; /* sizes of buffers in bytes */

bool clv_trial_makes_sense(const clv_probe_device *device)
{
    return device->usable && !device->unified && !device->flags.no_device_memory &&
           device->global_bytes != CLV_UNKNOWN &&
           (device->device_class == CLV_CLASS_DISCRETE_GPU ||
            device->device_class == CLV_CLASS_ACCELERATOR);
}

/* Writes every byte of a buffer. Any of the calls may fail for lack of memory, and so may the command when it
 * completes. */
static bool write_all(const clv_rig *rig, cl_mem buffer, size_t bytes)
{
    const cl_uint pattern = 0xA5C3A5C3u; /* not zero, because a driver might not store zeros */
    cl_event event = NULL;
    cl_int ended = CL_QUEUED;
    if (clEnqueueFillBuffer(rig->queue, buffer, &pattern, sizeof pattern, 0, bytes, 0, NULL,
                            &event) != CL_SUCCESS)
        return false;
    const bool good = clWaitForEvents(1, &event) == CL_SUCCESS &&
                      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended,
                                     NULL) == CL_SUCCESS &&
                      ended == CL_COMPLETE;
    clReleaseEvent(event);
    return good;
}

static cl_mem take(const clv_rig *rig, size_t bytes)
{
    cl_int code;
    cl_mem buffer = clCreateBuffer(rig->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (!buffer || write_all(rig, buffer, bytes)) return buffer;
    clReleaseMemObject(buffer);
    return NULL;
}

static uint64_t fill(const clv_rig *rig, const clv_probe_device *device, cl_mem *buffers,
                     size_t capacity)
{
    uint64_t taken = 0;
    size_t count = 0;
    uint64_t size = CLV_MIN((uint64_t)LARGEST, device->max_alloc_bytes);
    while (size >= SMALLEST && count < capacity && taken < device->global_bytes) {
        size = CLV_MIN(size, device->global_bytes - taken);
        if ((buffers[count] = take(rig, (size_t)size))) {
            ++count;
            taken += size;
        } else {
            size /= 2;
        }
    }
    while (count)
        clReleaseMemObject(buffers[--count]);
    return taken;
}

void clv_trial_device(const clv_probe_device *device, clv_trial *trial)
{
    clv_rig rig = { 0 };
    *trial = (clv_trial){ .free_bytes = CLV_UNKNOWN };
    const size_t capacity = (size_t)CLV_MIN(device->global_bytes / SMALLEST + 64, 65536u);
    cl_mem *buffers = clv_zalloc(capacity, sizeof(cl_mem));
    clv_status status =
        buffers ? clv_rig_open(&rig, device) : clv_fail(CLV_E_MEMORY, "out of memory");
    if (!status) trial->free_bytes = fill(&rig, device, buffers, capacity);
    clv_rig_close(&rig);
    clv_free(buffers);
    if (status) clv_copy_string(trial->message, sizeof trial->message, clv_error_message());
}

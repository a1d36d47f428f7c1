/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a device at its first use, and stops using it for good when it fails. */
#include "runtime/device/device.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/device/bind.h"
#include "runtime/record/cl_status.h"

#include <stdio.h>
#include <string.h>

void clv_device_heed(clv_device *device, const clv_probe_flags *flags)
{
    if (flags->no_event_times) device->trust_profiling = false;
    if (flags->loop_limit) device->loop_limit = CLV_MIN(device->loop_limit, flags->loop_limit);
}

const clv_probe_device *clv_device_facts(const clv_device *device)
{
    return device->facts;
}

const char *clv_device_label(const clv_device *device)
{
    return device->label;
}

/* Splits the device into `parts` parts with equal numbers of compute units, and keeps the part with number `part`. */
static clv_status split(clv_device *device)
{
    const cl_uint units = device->facts->compute_units, share = units / device->parts;
    if (!share || device->facts->flags.no_sub_devices || !device->facts->partition_by_counts)
        return clv_fail(CLV_E_ARGUMENT, "%s: cannot be split into %u parts", device->label,
                        device->parts);
    cl_device_partition_property counts[2 + 64 + 1] = { CL_DEVICE_PARTITION_BY_COUNTS };
    if (device->parts > 64)
        return clv_fail(CLV_E_ARGUMENT, "%s: it would be split into more than 64 parts",
                        device->label);
    for (unsigned i = 0; i < device->parts; ++i)
        counts[1 + i] = (cl_device_partition_property)share;
    counts[1 + device->parts] = CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
    cl_device_id parts[64];
    cl_uint made = 0;
    const cl_int code = clCreateSubDevices(device->id, counts, device->parts, parts, &made);
    if (code != CL_SUCCESS) return clv_cl_fail(device, "clCreateSubDevices", NULL, code);
    for (cl_uint i = 0; i < made; ++i)
        if (i + 1 != device->part) clReleaseDevice(parts[i]);
    device->id = parts[device->part - 1];
    return CLV_OK;
}

/* Checks that the device computes correct results. One check serves all parts of a device, and its result is kept on
 * record. */
static clv_status qualify(clv_device *device)
{
    clv_device *first = device - (device->part ? device->part - 1 : 0);
    pthread_mutex_lock(&first->check_lock);
    clv_status status = CLV_OK;
    if (!first->checked) {
        status = clv_qualify_device(device->probe, device->probe_index, &first->found);
        first->checked = !status;
        if (!status && !first->found.from_disk) device->check_s = first->found.seconds;
    }
    const clv_qualification found = first->found;
    pthread_mutex_unlock(&first->check_lock);
    if (status) return status;
    if (!found.ok)
        return clv_fail(CLV_E_WRONG_RESULT, "%s: failed its qualification: %s", device->label,
                        found.message);
    clv_device_heed(device, &found.flags);
    if (device->loop_limit != CLV_UNKNOWN)
        clv_log(CLV_LOG_INFO,
                "%s: restricted, because its work-items stop after %llu loop iterations",
                device->label, (unsigned long long)device->loop_limit);
    return CLV_OK;
}

/* Binds the threads of a whole CPU device to cores. The threads of parts are not bound: parts get shares of the work
 * by their speeds, so a thread that cannot leave a core used by other programs would hold its part up. */
static void bind(clv_device *device)
{
    if (!device->bind || device->parts || device->facts->device_class != CLV_CLASS_CPU) return;
    const clv_bind_result result = clv_bind_threads(device->facts->native_device, &device->home);
    device->bound = result == CLV_BIND_DONE;
    clv_log(CLV_LOG_INFO, "%s: %s", device->label, clv_bind_reason(result));
}

static clv_status open_now(clv_device *device)
{
    cl_int code;
    if (!device->id)
        return clv_fail(CLV_E_NO_DEVICE,
                        "%s is only known from a recorded report, so it cannot be used",
                        device->label);
    if (device->check) CLV_TRY(qualify(device));
    if (device->part) CLV_TRY(split(device));
    device->cl = clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    if (code != CL_SUCCESS) return clv_cl_fail(device, "clCreateContext", NULL, code);
    bind(device);
    char size[16];
    clv_log(CLV_LOG_INFO, "%s: opened, budget %s, %s", device->label,
            clv_format_bytes(device->budget, size), device->zero_copy ? "zero-copy" : "two queues");
    return CLV_OK;
}

clv_status clv_device_open(clv_device *device)
{
    if (!device) return clv_fail(CLV_E_ARGUMENT, "a NULL device");
    CLV_TRY(clv_fork_check(device->born, device->label));
    pthread_mutex_lock(&device->lock);
    if (device->state == CLV_DEVICE_CLOSED) {
        const clv_status status = open_now(device);
        if (status) clv_error_take(&device->trouble, status); /* before `state` shows it */
        device->state = status ? CLV_DEVICE_QUARANTINED : CLV_DEVICE_READY;
    }
    const clv_status status =
        device->state == CLV_DEVICE_READY ? CLV_OK : clv_error_give(&device->trouble);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void clv_device_quarantine(clv_device *device, clv_status status)
{
    pthread_mutex_lock(&device->lock);
    if (device->state != CLV_DEVICE_QUARANTINED) {
        clv_error_take(&device->trouble, status);
        device->state = CLV_DEVICE_QUARANTINED;
        clv_log(CLV_LOG_ERROR, "%s is no longer used: %s", device->label, device->trouble.message);
    }
    pthread_mutex_unlock(&device->lock);
}

static clv_status echo(clv_device *device, cl_command_queue queue, cl_mem memory)
{
    const uint32_t sent = 0x5EED1234;
    uint32_t got = 0;
    cl_int code =
        clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof sent, &sent, 0, NULL, NULL);
    if (code != CL_SUCCESS) return clv_cl_fail(device, "clEnqueueWriteBuffer", "4 bytes", code);
    code = clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof got, &got, 0, NULL, NULL);
    if (code != CL_SUCCESS) return clv_cl_fail(device, "clEnqueueReadBuffer", "4 bytes", code);
    return got == sent ? CLV_OK
                       : clv_fail(CLV_E_DEVICE,
                                  "%s: the 4 bytes read from it differ from those written to it",
                                  device->label);
}

clv_status clv_device_still_works(clv_device *device)
{
    cl_int code;
    cl_mem memory = NULL;
    clv_status status = CLV_OK;
    cl_command_queue queue = clCreateCommandQueue(device->cl, device->id, 0, &code);
    if (!queue) status = clv_cl_fail(device, "clCreateCommandQueue", NULL, code);
    if (!status) memory = clCreateBuffer(device->cl, CL_MEM_READ_WRITE, 64, NULL, &code);
    if (!status && !memory) status = clv_cl_fail(device, "clCreateBuffer", "64 bytes", code);
    if (!status) status = echo(device, queue, memory);
    if (memory) clReleaseMemObject(memory);
    if (queue) clReleaseCommandQueue(queue);
    if (status) clv_device_quarantine(device, status);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sends single queries to a driver, and does not trust the answers. */
#include "probe/opencl/query.h"

#include "base/alloc.h"

#include <string.h>

/* A driver that claims a longer text is treated as broken. */
enum { LARGEST_TEXT = 16 * 1024 * 1024, SCALAR_ROOM = 512 };

bool clv_query_device(cl_device_id device, cl_device_info what, void *out, size_t bytes,
                      size_t *got)
{
    /* larger than any answer, so that a driver that ignores the size overwrites nothing else */
    union {
        cl_ulong align;
        unsigned char bytes[SCALAR_ROOM];
    } room = { 0 };
    size_t length = 0;
    if (bytes > sizeof room / 2) return false;
    if (clGetDeviceInfo(device, what, bytes, room.bytes, &length) != CL_SUCCESS) return false;
    if (length == 0 || length > bytes) return false;
    memcpy(out, room.bytes, bytes);
    memset((unsigned char *)out + length, 0, bytes - length);
    if (got) *got = length;
    return true;
}

typedef cl_int ask_text(const void *whom, cl_uint what, size_t bytes, void *out, size_t *length);

static cl_int ask_device(const void *whom, cl_uint what, size_t bytes, void *out, size_t *length)
{
    return clGetDeviceInfo((cl_device_id)(uintptr_t)whom, what, bytes, out, length);
}

static cl_int ask_platform(const void *whom, cl_uint what, size_t bytes, void *out, size_t *length)
{
    return clGetPlatformInfo((cl_platform_id)(uintptr_t)whom, what, bytes, out, length);
}

static const char *text_of(clv_machine *machine, ask_text *ask, const void *whom, cl_uint what)
{
    size_t length = 0;
    if (ask(whom, what, 0, NULL, &length) != CL_SUCCESS) return NULL;
    if (length == 0 || length > LARGEST_TEXT) return NULL;
    /* one byte more, so that the text is terminated even if the driver does not do so */
    char *bytes = clv_zalloc(length + 1, 1);
    if (!bytes) {
        machine->failed = true;
        return NULL;
    }
    const char *text = NULL;
    if (ask(whom, what, length, bytes, NULL) == CL_SUCCESS)
        text = clv_machine_foreign(machine, bytes, length);
    clv_free(bytes);
    return text;
}

const char *clv_query_device_text(clv_machine *machine, cl_device_id device, cl_device_info what)
{
    return text_of(machine, ask_device, device, what);
}

const char *clv_query_platform_text(clv_machine *machine, cl_platform_id platform,
                                    cl_platform_info what)
{
    return text_of(machine, ask_platform, platform, what);
}

static const char *version_text(clv_machine *machine, cl_uint packed)
{
    return clv_machine_text(machine, "%u.%u.%u", packed >> 22, packed >> 12 & 0x3FF,
                            packed & 0xFFF);
}

const char *clv_query_platform_version(clv_machine *machine, cl_platform_id platform,
                                       cl_platform_info what)
{
    cl_uint packed = 0;
    size_t length = 0;
    if (clGetPlatformInfo(platform, what, sizeof packed, &packed, &length) != CL_SUCCESS ||
        length != sizeof packed)
        return NULL;
    return version_text(machine, packed);
}

const char *clv_query_device_version(clv_machine *machine, cl_device_id device, cl_device_info what)
{
    cl_uint packed;
    return clv_query_device(device, what, &packed, sizeof packed, NULL)
               ? version_text(machine, packed)
               : NULL;
}

const char *clv_cl_status_name(cl_int status)
{
    static const struct {
        cl_int status;
        const char *name;
    } names[] = {
#define NAME(status) { status, #status }
        NAME(CL_SUCCESS),
        NAME(CL_DEVICE_NOT_FOUND),
        NAME(CL_DEVICE_NOT_AVAILABLE),
        NAME(CL_COMPILER_NOT_AVAILABLE),
        NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        NAME(CL_OUT_OF_RESOURCES),
        NAME(CL_OUT_OF_HOST_MEMORY),
        NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
        NAME(CL_MEM_COPY_OVERLAP),
        NAME(CL_BUILD_PROGRAM_FAILURE),
        NAME(CL_MAP_FAILURE),
        NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET),
        NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        NAME(CL_COMPILE_PROGRAM_FAILURE),
        NAME(CL_LINKER_NOT_AVAILABLE),
        NAME(CL_LINK_PROGRAM_FAILURE),
        NAME(CL_DEVICE_PARTITION_FAILED),
        NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
        NAME(CL_INVALID_VALUE),
        NAME(CL_INVALID_DEVICE_TYPE),
        NAME(CL_INVALID_PLATFORM),
        NAME(CL_INVALID_DEVICE),
        NAME(CL_INVALID_CONTEXT),
        NAME(CL_INVALID_QUEUE_PROPERTIES),
        NAME(CL_INVALID_COMMAND_QUEUE),
        NAME(CL_INVALID_HOST_PTR),
        NAME(CL_INVALID_MEM_OBJECT),
        NAME(CL_INVALID_BINARY),
        NAME(CL_INVALID_BUILD_OPTIONS),
        NAME(CL_INVALID_PROGRAM),
        NAME(CL_INVALID_PROGRAM_EXECUTABLE),
        NAME(CL_INVALID_KERNEL_NAME),
        NAME(CL_INVALID_KERNEL_DEFINITION),
        NAME(CL_INVALID_KERNEL),
        NAME(CL_INVALID_ARG_INDEX),
        NAME(CL_INVALID_ARG_VALUE),
        NAME(CL_INVALID_ARG_SIZE),
        NAME(CL_INVALID_KERNEL_ARGS),
        NAME(CL_INVALID_WORK_DIMENSION),
        NAME(CL_INVALID_WORK_GROUP_SIZE),
        NAME(CL_INVALID_WORK_ITEM_SIZE),
        NAME(CL_INVALID_GLOBAL_OFFSET),
        NAME(CL_INVALID_EVENT_WAIT_LIST),
        NAME(CL_INVALID_EVENT),
        NAME(CL_INVALID_OPERATION),
        NAME(CL_INVALID_BUFFER_SIZE),
        NAME(CL_INVALID_GLOBAL_WORK_SIZE),
        NAME(CL_INVALID_PROPERTY),
        NAME(CL_INVALID_DEVICE_PARTITION_COUNT),
#undef NAME
        { -1001, "CL_PLATFORM_NOT_FOUND_KHR" },
    };
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (names[i].status == status) return names[i].name;
    return "unknown status";
}

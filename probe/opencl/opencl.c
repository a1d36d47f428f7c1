/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what OpenCL reports: the raw facts of every platform and device, without judgement. */
#include "probe/opencl/opencl.h"

#include "base/alloc.h"
#include "base/fork.h"
#include "base/thread.h"
#include "probe/opencl/query.h"

#include <stdatomic.h>
#include <string.h>

/* A driver that claims more entries is treated as broken. */
enum { MOST_PLATFORMS = 4096, MOST_DEVICES = 4096 };

/* Queries of OpenCL versions after 1.2 and of extensions: tried, but never relied on. */
enum {
    DEVICE_SVM_CAPABILITIES = 0x1053,
    DEVICE_IL_VERSION = 0x105B,
    DEVICE_MAX_NUM_SUB_GROUPS = 0x105C,
    DEVICE_NUMERIC_VERSION = 0x105E,
    DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE = 0x1067,
    DEVICE_UUID = 0x106A,
    DRIVER_UUID = 0x106B,
    DEVICE_SUB_GROUP_SIZES_INTEL = 0x4108,
    PLATFORM_NUMERIC_VERSION = 0x0906,
};

/* SIZE: the answer is a size_t */
typedef enum kind { UNSIGNED, SIZE, BYTES, BYTES_SIZE, BOOLEAN } kind;

/* Queries whose answers are stored in a field unchanged. */
static const struct {
    cl_device_info what;
    kind kind;
    size_t offset;
} numbers[] = {
#define FIELD(member) offsetof(clv_probe_device, member)
    { CL_DEVICE_VENDOR_ID, UNSIGNED, FIELD(vendor_id) },
    { CL_DEVICE_MAX_COMPUTE_UNITS, UNSIGNED, FIELD(compute_units) },
    { CL_DEVICE_ADDRESS_BITS, UNSIGNED, FIELD(address_bits) },
    { CL_DEVICE_MEM_BASE_ADDR_ALIGN, UNSIGNED, FIELD(base_align_bits) },
    { CL_DEVICE_PARTITION_MAX_SUB_DEVICES, UNSIGNED, FIELD(partition_max) },
    { CL_DEVICE_MAX_WORK_GROUP_SIZE, SIZE, FIELD(max_work_group) },
    { DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, SIZE, FIELD(preferred_multiple) },
    { CL_DEVICE_GLOBAL_MEM_SIZE, BYTES, FIELD(global_bytes) },
    { CL_DEVICE_MAX_MEM_ALLOC_SIZE, BYTES, FIELD(max_alloc_bytes) },
    { CL_DEVICE_LOCAL_MEM_SIZE, BYTES, FIELD(local_bytes) },
    { CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, BYTES, FIELD(constant_bytes) },
    { CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, BYTES, FIELD(cache_bytes) },
    { CL_DEVICE_PROFILING_TIMER_RESOLUTION, BYTES_SIZE, FIELD(timer_resolution_ns) },
    { CL_DEVICE_PRINTF_BUFFER_SIZE, BYTES_SIZE, FIELD(printf_bytes) },
    { CL_DEVICE_HOST_UNIFIED_MEMORY, BOOLEAN, FIELD(unified) },
    { CL_DEVICE_IMAGE_SUPPORT, BOOLEAN, FIELD(images) },
    { CL_DEVICE_AVAILABLE, BOOLEAN, FIELD(available) },
    { CL_DEVICE_COMPILER_AVAILABLE, BOOLEAN, FIELD(compiler_available) },
};

static const struct {
    cl_device_info what;
    size_t offset;
} texts[] = {
    { CL_DEVICE_NAME, FIELD(name) },
    { CL_DEVICE_VENDOR, FIELD(vendor) },
    { CL_DEVICE_VERSION, FIELD(version) },
    { CL_DEVICE_OPENCL_C_VERSION, FIELD(c_version) },
    { CL_DEVICE_PROFILE, FIELD(profile) },
    { CL_DRIVER_VERSION, FIELD(driver_version) },
    { CL_DEVICE_EXTENSIONS, FIELD(extensions) },
    { DEVICE_IL_VERSION, FIELD(il_versions) },
#undef FIELD
};

static void read_number(cl_device_id id, clv_probe_device *device, size_t row)
{
    void *field = (char *)device + numbers[row].offset;
    cl_uint word;
    size_t size;
    cl_ulong bytes;
    switch (numbers[row].kind) {
    case UNSIGNED:
        if (clv_query_device(id, numbers[row].what, &word, sizeof word, NULL))
            *(unsigned *)field = word;
        break;
    case SIZE:
        if (clv_query_device(id, numbers[row].what, &size, sizeof size, NULL))
            *(size_t *)field = size;
        break;
    case BYTES:
        if (clv_query_device(id, numbers[row].what, &bytes, sizeof bytes, NULL))
            *(uint64_t *)field = bytes;
        break;
    case BYTES_SIZE:
        if (clv_query_device(id, numbers[row].what, &size, sizeof size, NULL))
            *(uint64_t *)field = size;
        break;
    case BOOLEAN:
        if (clv_query_device(id, numbers[row].what, &word, sizeof word, NULL))
            *(bool *)field = word != 0;
        break;
    }
}

static const char *type_text(clv_machine *machine, cl_device_id id)
{
    static const struct {
        cl_device_type bit;
        const char *name;
    } bits[] = {
        { CL_DEVICE_TYPE_GPU, "GPU" },
        { CL_DEVICE_TYPE_CPU, "CPU" },
        { CL_DEVICE_TYPE_ACCELERATOR, "ACCELERATOR" },
        { CL_DEVICE_TYPE_CUSTOM, "CUSTOM" },
    }; /* the DEFAULT bit says nothing about the device */
    cl_device_type type;
    if (!clv_query_device(id, CL_DEVICE_TYPE, &type, sizeof type, NULL)) return NULL;
    clv_text joined = { 0 };
    for (size_t i = 0; i < CLV_LEN(bits); ++i)
        if (type & bits[i].bit)
            clv_text_add(&joined, "%s%s", joined.length ? "|" : "", bits[i].name);
    const char *text = joined.length ? clv_machine_keep(machine, joined.data) : NULL;
    clv_text_clear(&joined);
    return text;
}

static const char *uuid_text(clv_machine *machine, cl_device_id id, cl_device_info what)
{
    unsigned char u[16];
    size_t length;
    if (!clv_query_device(id, what, u, sizeof u, &length) || length != sizeof u) return NULL;
    unsigned any = 0;
    for (size_t i = 0; i < sizeof u; ++i)
        any |= u[i];
    if (!any) return NULL; /* all zeros: a placeholder */
    return clv_machine_text(
        machine, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
        u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

static void read_arithmetic(cl_device_id id, clv_probe_device *device)
{
    cl_device_fp_config single = 0, dbl = 0;
    if (clv_query_device(id, CL_DEVICE_SINGLE_FP_CONFIG, &single, sizeof single, NULL)) {
        device->fma = single & CL_FP_FMA;
        device->denorms_fp32 = single & CL_FP_DENORM;
        device->correctly_rounded_div = single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    }
    clv_query_device(id, CL_DEVICE_DOUBLE_FP_CONFIG, &dbl, sizeof dbl, NULL);
    device->fp64 = dbl || clv_probe_has_word(device->extensions, "cl_khr_fp64");
    if (device->fp64) device->fp64_emulated = dbl & CL_FP_SOFT_FLOAT ? CLV_YES : CLV_NO;
    device->fp16 = clv_probe_has_word(device->extensions, "cl_khr_fp16");
    device->int64_atomics = clv_probe_has_word(device->extensions, "cl_khr_int64_base_atomics");
    if (device->extensions) {
        device->float_atomics =
            clv_probe_has_word(device->extensions, "cl_ext_float_atomics") ? CLV_YES : CLV_NO;
        device->dot8 =
            clv_probe_has_word(device->extensions, "cl_khr_integer_dot_product") ? CLV_YES : CLV_NO;
    }
}

static void read_clock(cl_device_id id, clv_probe_device *device)
{
    cl_uint mhz;
    if (clv_query_device(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, &mhz, sizeof mhz, NULL) && mhz)
        device->clock_mhz =
            mhz; /* Intel's CPU runtime and clvk return 0 if they cannot find the clock frequency */
}

static void read_queues(cl_device_id id, clv_probe_device *device)
{
    cl_command_queue_properties queue;
    if (!clv_query_device(id, CL_DEVICE_QUEUE_PROPERTIES, &queue, sizeof queue, NULL)) return;
    device->out_of_order = queue & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    device->profiling = queue & CL_QUEUE_PROFILING_ENABLE;
}

static void read_geometry(cl_device_id id, clv_probe_device *device)
{
    size_t sizes[8] = { 0 };
    if (clv_query_device(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes, sizeof sizes, NULL))
        memcpy(device->max_work_item_sizes, sizes, sizeof device->max_work_item_sizes);

    cl_device_partition_property offered[16];
    size_t length = 0;
    if (clv_query_device(id, CL_DEVICE_PARTITION_PROPERTIES, offered, sizeof offered, &length))
        for (size_t i = 0; i < length / sizeof *offered; ++i)
            if (offered[i] == CL_DEVICE_PARTITION_BY_COUNTS) device->partition_by_counts = true;
}

static void read_memory(cl_device_id id, clv_probe_device *device)
{
    cl_device_local_mem_type local;
    if (clv_query_device(id, CL_DEVICE_LOCAL_MEM_TYPE, &local, sizeof local, NULL))
        device->local_is_global = local == CL_GLOBAL;
    cl_bool ecc;
    if (clv_query_device(id, CL_DEVICE_ERROR_CORRECTION_SUPPORT, &ecc, sizeof ecc, NULL))
        device->ecc = ecc ? CLV_YES : CLV_NO;
}

static void read_subgroups(clv_machine *machine, cl_device_id id, clv_probe_device *device)
{
    cl_uint most = 0;
    clv_query_device(id, DEVICE_MAX_NUM_SUB_GROUPS, &most, sizeof most, NULL);
    device->subgroups = most || clv_probe_has_word(device->extensions, "cl_khr_subgroups") ||
                        clv_probe_has_word(device->extensions, "cl_intel_subgroups");
    size_t sizes[16], length = 0;
    if (!clv_probe_has_word(device->extensions, "cl_intel_required_subgroup_size") ||
        !clv_query_device(id, DEVICE_SUB_GROUP_SIZES_INTEL, sizes, sizeof sizes, &length))
        return;
    clv_text joined = { 0 };
    for (size_t i = 0; i < length / sizeof *sizes; ++i)
        clv_text_add(&joined, "%s%zu", i ? " " : "", sizes[i]);
    device->subgroup_sizes = clv_machine_keep(machine, joined.data);
    clv_text_clear(&joined);
}

static void read_svm(clv_machine *machine, cl_device_id id, clv_probe_device *device)
{
    static const char *const names[] = { "coarse", "fine", "fine_system", "atomics" };
    cl_ulong bits;
    if (!clv_query_device(id, DEVICE_SVM_CAPABILITIES, &bits, sizeof bits, NULL)) return;
    clv_text joined = { 0 };
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (bits >> i & 1) clv_text_add(&joined, "%s%s", joined.length ? " " : "", names[i]);
    device->svm = clv_machine_keep(machine, clv_text_get(&joined));
    clv_text_clear(&joined);
}

static void add_device(clv_machine *machine, size_t platform, unsigned ordinal,
                       cl_platform_id native_platform, cl_device_id id)
{
    clv_probe_device *device = clv_machine_add_device(machine);
    if (!device) return;
    device->platform = platform;
    device->ordinal = ordinal;
    device->native_platform = native_platform;
    device->native_device = id;
    for (size_t i = 0; i < CLV_LEN(texts); ++i)
        *(const char **)((char *)device + texts[i].offset) =
            clv_query_device_text(machine, id, texts[i].what);
    for (size_t i = 0; i < CLV_LEN(numbers); ++i)
        read_number(id, device, i);
    device->type = type_text(machine, id);
    device->numeric_version = clv_query_device_version(machine, id, DEVICE_NUMERIC_VERSION);
    read_clock(id, device);
    read_arithmetic(id, device);
    read_queues(id, device);
    read_geometry(id, device);
    read_memory(id, device);
    read_subgroups(machine, id, device);
    read_svm(machine, id, device);
    if (clv_probe_has_word(device->extensions, "cl_khr_device_uuid")) {
        device->uuid = uuid_text(machine, id, DEVICE_UUID);
        device->driver_uuid = uuid_text(machine, id, DRIVER_UUID);
    }
    clv_opencl_vendor_facts(machine, device);
}

static void add_devices(clv_machine *machine, size_t platform, cl_platform_id id)
{
    cl_uint count = 0;
    cl_int status = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (status != CL_SUCCESS || count == 0) {
        if (status != CL_SUCCESS && status != CL_DEVICE_NOT_FOUND)
            machine->platforms[platform].message = clv_machine_text(
                machine, "clGetDeviceIDs gave %d (%s)", status, clv_cl_status_name(status));
        return;
    }
    if (count > MOST_DEVICES) count = MOST_DEVICES;
    cl_device_id *ids = clv_zalloc(count, sizeof *ids);
    if (!ids) {
        machine->failed = true;
        return;
    }
    status = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, count, ids, NULL);
    for (cl_uint i = 0; status == CL_SUCCESS && i < count; ++i)
        if (ids[i]) add_device(machine, platform, i, id, ids[i]);
    clv_free(ids);
}

static void add_platform(clv_machine *machine, unsigned ordinal, cl_platform_id id)
{
    clv_probe_platform *platform = clv_machine_add_platform(machine);
    if (!platform) return;
    platform->ordinal = ordinal;
    platform->name = clv_query_platform_text(machine, id, CL_PLATFORM_NAME);
    platform->vendor = clv_query_platform_text(machine, id, CL_PLATFORM_VENDOR);
    platform->version = clv_query_platform_text(machine, id, CL_PLATFORM_VERSION);
    platform->profile = clv_query_platform_text(machine, id, CL_PLATFORM_PROFILE);
    platform->extensions = clv_query_platform_text(machine, id, CL_PLATFORM_EXTENSIONS);
    platform->numeric_version = clv_query_platform_version(machine, id, PLATFORM_NUMERIC_VERSION);
    add_devices(machine, machine->report.platform_count - 1, id);
}

static atomic_uint born;

unsigned clv_opencl_born(void)
{
    return atomic_load(&born);
}

static clv_mutex starting = PTHREAD_MUTEX_INITIALIZER;

void clv_opencl_begin(void)
{
    /* a child of a fork is refused before it would wait for this lock */
    atomic_store(&born, clv_fork_generation());
    pthread_mutex_lock(&starting);
}

void clv_opencl_end(void)
{
    pthread_mutex_unlock(&starting);
}

void clv_opencl_enumerate(clv_machine *machine)
{
    cl_uint count = 0;
    if (clGetPlatformIDs(0, NULL, &count) != CL_SUCCESS || count == 0) return;
    if (count > MOST_PLATFORMS) count = MOST_PLATFORMS;
    cl_platform_id *ids = clv_zalloc(count, sizeof *ids);
    if (!ids) {
        machine->failed = true;
        return;
    }
    if (clGetPlatformIDs(count, ids, NULL) == CL_SUCCESS)
        for (cl_uint i = 0; i < count; ++i)
            if (ids[i]) add_platform(machine, i, ids[i]);
    clv_free(ids);
}

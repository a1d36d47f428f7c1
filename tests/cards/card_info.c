/* SPDX-License-Identifier: Apache-2.0 */
/* What the card answers when it is asked about itself. */
#include "card.h"

#include <stdlib.h>
#include <string.h>

/* Queries that OpenCL 1.2 does not name. */
enum {
    NUMERIC_VERSION = 0x105E,
    PCI_BUS_INFO = 0x410F,
    NV_MAJOR = 0x4000,
    NV_MINOR = 0x4001,
    NV_WARP = 0x4003,
    NV_TIMEOUT = 0x4005,
    NV_INTEGRATED = 0x4006,
    NV_BUS = 0x4008,
    NV_SLOT = 0x4009,
    NV_DOMAIN = 0x400A,
    AMD_TOPOLOGY = 0x4037,
    AMD_BOARD_NAME = 0x4038,
    AMD_FREE_MEMORY = 0x4039,
    AMD_WAVEFRONT = 0x4043,
    INTEL_FIRST = 0x4250,
    INTEL_LAST = 0x4256,
    SUB_GROUPS = 0x105C,
    SUB_GROUP_SIZES_INTEL = 0x4108,
};

typedef struct answer {
    size_t room;
    void *out;
    size_t *length;
} answer;

static cl_int give(const answer *a, const void *value, size_t bytes)
{
    if (a->length) *a->length = bytes;
    if (!a->out) return CL_SUCCESS;
    if (a->room < bytes) return CL_INVALID_VALUE;
    memcpy(a->out, value, bytes);
    return CL_SUCCESS;
}

static cl_int give_text(const answer *a, const char *text)
{
    return text ? give(a, text, strlen(text) + 1) : CL_INVALID_VALUE;
}

static cl_int give_uint(const answer *a, cl_uint value)
{
    return give(a, &value, sizeof value);
}

static cl_int give_ulong(const answer *a, cl_ulong value)
{
    return give(a, &value, sizeof value);
}

static cl_int give_size(const answer *a, size_t value)
{
    return give(a, &value, sizeof value);
}

static bool has_word(const char *word)
{
    return strstr(card.facts.extensions, word) != NULL;
}

/* Of one vendor alone; CL_INVALID_VALUE: nobody asked, or this is another vendor's card. */
static cl_int vendor_answer(cl_device_info what, const answer *a)
{
    const card_facts *f = &card.facts;
    const bool nvidia = has_word("cl_nv_device_attribute_query");
    const bool amd = has_word("cl_amd_device_attribute_query");
    if (what == PCI_BUS_INFO && has_word("cl_khr_pci_bus_info"))
        return give(a, f->pci, sizeof f->pci);
    if (nvidia) switch (what) {
        case NV_MAJOR:
            return give_uint(a, f->capability[0]);
        case NV_MINOR:
            return give_uint(a, f->capability[1]);
        case NV_WARP:
            return give_uint(a, 32);
        case NV_TIMEOUT:
            return give_uint(a, f->kernel_timeout);
        case NV_INTEGRATED:
            return give_uint(a, f->integrated);
        case NV_BUS:
            return give_uint(a, f->pci[1]);
        case NV_SLOT:
            return give_uint(a, f->pci[2] << 3 | f->pci[3]);
        case NV_DOMAIN:
            return give_uint(a, f->pci[0]);
        default:
            break;
        }
    if (amd) switch (what) {
        case AMD_BOARD_NAME:
            return give_text(a, f->board_name);
        case AMD_WAVEFRONT:
            return give_uint(a, f->wavefront);
        case AMD_FREE_MEMORY: {
            const size_t kib = (size_t)(f->free_bytes / 1024);
            return give(a, &kib, sizeof kib);
        }
        default:
            break;
        }
    return CL_INVALID_VALUE;
}

static cl_int number_answer(cl_device_info what, const answer *a)
{
    const card_facts *f = &card.facts;
    const cl_device_fp_config none = 0;
    const size_t sides[3] = { f->max_work_group, f->max_work_group, 64 };
    switch (what) {
    case CL_DEVICE_TYPE:
        return give_ulong(a, CL_DEVICE_TYPE_GPU);
    case CL_DEVICE_VENDOR_ID:
        return give_uint(a, f->vendor_id);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return give_uint(a, f->compute_units);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return give_uint(a, f->clock_mhz);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return give_ulong(a, f->global_bytes);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return give_ulong(a, f->max_alloc_bytes);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return give_ulong(a, f->local_bytes);
    case CL_DEVICE_LOCAL_MEM_TYPE:
        return give_uint(a, f->local_is_global ? CL_GLOBAL : CL_LOCAL);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return give_size(a, f->max_work_group);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return give(a, sides, sizeof sides);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return give_uint(a, f->unified);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return give_size(a, (size_t)f->timer_ns);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
        return give_uint(a, 1);
    case CL_DEVICE_PARTITION_PROPERTIES:
        return give(a, sides, 0);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        return f->fp64 ? CL_INVALID_VALUE : give(a, &none, sizeof none);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        return give_uint(a, 1);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
        return give_uint(a, f->fp64);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int text_answer(cl_device_info what, const answer *a)
{
    const card_facts *f = &card.facts;
    switch (what) {
    case CL_DEVICE_NAME:
        return give_text(a, f->name);
    case CL_DEVICE_VENDOR:
        return give_text(a, f->vendor);
    case CL_DEVICE_VERSION:
        return give_text(a, f->version);
    case CL_DRIVER_VERSION:
        return give_text(a, f->driver);
    case CL_DEVICE_EXTENSIONS:
        return give_text(a, f->extensions);
    case CL_DEVICE_PROFILE:
        return give_text(a, f->profile ? f->profile : "FULL_PROFILE");
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t room,
                                      void *out, size_t *length)
{
    const answer a = { room, out, length };
    if (!card_plays(device)) return layer_below->clGetDeviceInfo(device, what, room, out, length);
    if (text_answer(what, &a) == CL_SUCCESS || number_answer(what, &a) == CL_SUCCESS ||
        vendor_answer(what, &a) == CL_SUCCESS)
        return CL_SUCCESS;
    /* versions, UUIDs and sub-groups of the device below are not the card's */
    const bool others =
        what == NUMERIC_VERSION || what == SUB_GROUPS || what == SUB_GROUP_SIZES_INTEL ||
        (what >= NV_MAJOR && what <= PCI_BUS_INFO) || (what >= INTEL_FIRST && what <= INTEL_LAST);
    if (others) return CL_INVALID_VALUE;
    return layer_below->clGetDeviceInfo(device, what, room, out, length);
}

static bool is_stage(cl_platform_id platform)
{
    char name[80] = "";
    layer_below->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    return strcmp(name, "Portable Computing Language") == 0;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t room,
                                        void *out, size_t *length)
{
    const answer a = { room, out, length };
    if (is_stage(platform)) {
        if (what == CL_PLATFORM_NAME) return give_text(&a, card.facts.platform);
        if (what == CL_PLATFORM_VENDOR) return give_text(&a, card.facts.vendor);
        if (what == CL_PLATFORM_VERSION && card.facts.platform_version)
            return give_text(&a, card.facts.platform_version);
    }
    return layer_below->clGetPlatformInfo(platform, what, room, out, length);
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint room,
                                     cl_device_id *devices, cl_uint *count)
{
    if (!is_stage(platform))
        return layer_below->clGetDeviceIDs(platform, type, room, devices, count);
    if (!(type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT))) return CL_DEVICE_NOT_FOUND;
    if (count) *count = 1;
    if (!devices) return CL_SUCCESS;
    return layer_below->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, room ? 1 : 0, devices, NULL);
}

bool card_plays(cl_device_id device)
{
    cl_platform_id platform = NULL;
    if (layer_below->clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL))
        return false;
    return is_stage(platform);
}

static cl_int CL_API_CALL group_info(cl_kernel kernel, cl_device_id device,
                                     cl_kernel_work_group_info what, size_t room, void *out,
                                     size_t *length)
{
    const answer a = { room, out, length };
    cl_context context = NULL;
    layer_below->clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
    if (card_plays_context(context)) {
        if (what == CL_KERNEL_WORK_GROUP_SIZE) return give_size(&a, card.facts.max_work_group);
        if (what == CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)
            return give_size(&a, card.facts.preferred_multiple);
    }
    return layer_below->clGetKernelWorkGroupInfo(kernel, device, what, room, out, length);
}

/* Asked for a binary, PoCL compiles every kernel of the program once more, for work-groups of any size, which takes
 * longer than all that a test of a card computes. So Cleave gets no binaries of its programs, and CLBlast, which needs
 * binaries of its own ones, gets their source as the binary. */
static cl_int program_info(cl_program program, cl_program_info what, size_t room, void *out,
                           size_t *length)
{
    cl_context context = NULL;
    char names[4096] = "";
    const bool sizes = what == CL_PROGRAM_BINARY_SIZES, bytes = what == CL_PROGRAM_BINARIES;
    layer_below->clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL);
    if ((!sizes && !bytes) || !card_plays_context(context))
        return layer_below->clGetProgramInfo(program, what, room, out, length);
    size_t text = 0;
    layer_below->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof names, names, NULL);
    if (strstr(names, "clv_") == NULL)
        layer_below->clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &text);
    if (sizes) return give_size(&(answer){ room, out, length }, text);
    if (length) *length = sizeof(char *);
    char *to = out ? *(char **)out : NULL;
    if (!text || !to) return CL_SUCCESS;
    return layer_below->clGetProgramInfo(program, CL_PROGRAM_SOURCE, text, to, NULL);
}

static cl_program CL_API_CALL with_binary(cl_context context, cl_uint count,
                                          const cl_device_id *devices, const size_t *lengths,
                                          const unsigned char **binaries, cl_int *status,
                                          cl_int *code)
{
    if (!card_plays_context(context) || count != 1)
        return layer_below->clCreateProgramWithBinary(context, count, devices, lengths, binaries,
                                                      status, code);
    const char *text = (const char *)binaries[0];
    const size_t length = strnlen(text, lengths[0]);
    if (status) *status = CL_SUCCESS;
    return layer_below->clCreateProgramWithSource(context, 1, &text, &length, code);
}

void card_info_install(cl_icd_dispatch *layer)
{
    layer->clGetDeviceInfo = device_info;
    layer->clGetPlatformInfo = platform_info;
    layer->clGetDeviceIDs = device_ids;
    layer->clGetKernelWorkGroupInfo = group_info;
    layer->clGetProgramInfo = program_info;
    layer->clCreateProgramWithBinary = with_binary;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the records of a context's devices and their parts, and closes the devices. */
#include "runtime/context/devices.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/opencl/driver_cache.h"
#include "runtime/device/device.h"
#include "runtime/device/feeder.h"
#include "runtime/device/pool.h"
#include "runtime/device/tensor_cache.h"
#include "runtime/job/balance/balance.h"
#include "runtime/program/program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Tells whether fma() is an instruction of these cores. Drivers of CPUs use it then, even those that do not
 * report CL_FP_FMA (Intel's). */
static bool cores_fuse(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("fma");
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static void fill_in(clv_device *device, const clv_probe_report *probe, size_t index)
{
    const clv_probe_device *facts = &probe->devices[index];
    *device = (clv_device){ .probe = probe,
                            .probe_index = index,
                            .facts = facts,
                            .id = facts->native_device,
                            .pool_group = -1,
                            .home = -1,
                            .trust_profiling = facts->profiling,
                            .loop_limit = CLV_UNKNOWN };
    clv_mutex_init(&device->lock);
    clv_mutex_init(&device->use_lock);
    clv_mutex_init(&device->check_lock);
    clv_mutex_init(&device->program_lock);
    clv_mutex_init(&device->ahead_lock);
    const bool shares_memory = facts->unified || facts->flags.no_device_memory;
    device->zero_copy = shares_memory && facts->device_class != CLV_CLASS_DISCRETE_GPU;
    device->depth = device->zero_copy ? 1 : 2;
    device->nap = facts->device_class == CLV_CLASS_DISCRETE_GPU;
    device->slow_fma = !facts->fma && !(facts->device_class == CLV_CLASS_CPU && cores_fuse());
    clv_device_heed(device, &facts->flags);
}

/* Returns the most bytes that we use on a device: the caller's wish, or else a part of its memory. */
static uint64_t budget_of(const clv_context *context, const clv_device *device)
{
    const clv_probe_device *facts = device->facts;
    const clv_probe_host *host = &context->probe->host;
    uint64_t there = facts->global_bytes, room;
    if (device->zero_copy) { /* the device uses the host's memory */
        uint64_t free_bytes = host->memory_available_bytes;
        if (host->memory_limit_bytes != CLV_UNKNOWN)
            free_bytes = CLV_MIN(free_bytes, host->memory_limit_bytes);
        if (free_bytes == CLV_UNKNOWN) free_bytes = there;
        if (there == CLV_UNKNOWN || there < free_bytes / 8)
            there = free_bytes; /* the driver's figure is made up */
        room = CLV_MIN(there, free_bytes) / 2;
    } else {
        if (there == CLV_UNKNOWN) there = (uint64_t)1 << 30;
        room = (uint64_t)(0.85 * (double)there);
        const uint64_t for_displays = 400000000;
        if (room > 4 * for_displays) room -= for_displays;
        if (facts->free_bytes != CLV_UNKNOWN)
            room = CLV_MIN(room, (uint64_t)(0.95 * (double)facts->free_bytes));
    }
    if (context->memory_fraction > 0) room = (uint64_t)(context->memory_fraction * (double)there);
    if (context->memory_bytes) room = context->memory_bytes;
    return device->parts > 1 ? room / device->parts : room;
}

/* Adds the size and time stamp of the driver's file, because not every update changes the version string. */
static void add_driver_file(const clv_probe_report *probe, const clv_probe_device *facts,
                            clv_text *text)
{
    const size_t icd = probe->platforms[facts->platform].icd;
    struct stat info;
    if (icd < probe->icd_count && probe->icds[icd].library_path &&
        stat(probe->icds[icd].library_path, &info) == 0)
        clv_text_add(text, "; library %s %lld bytes of %lld", probe->icds[icd].library_path,
                     (long long)info.st_size, (long long)info.st_mtime);
}

static char *make_identity(const clv_probe_report *probe, const clv_device *device)
{
    const clv_probe_device *d = device->facts;
    const clv_probe_platform *p = &probe->platforms[d->platform];
    clv_text text = { 0 };
#define OR_EMPTY(s) ((s) ? (s) : "")
    clv_text_add(&text, "%s; %s; %s; %s; %s; driver %s; %s; %s", OR_EMPTY(p->name),
                 OR_EMPTY(p->version), OR_EMPTY(d->name), OR_EMPTY(d->vendor), OR_EMPTY(d->version),
                 OR_EMPTY(d->driver_version), OR_EMPTY(d->uuid), OR_EMPTY(d->pci_address));
    if (device->zero_copy)
        clv_text_add(&text, "; cpu %s; isa %s", OR_EMPTY(probe->host.cpu_model),
                     OR_EMPTY(probe->host.isa));
#undef OR_EMPTY
    add_driver_file(probe, d, &text);
    for (char *c = text.data; c && *c; ++c)
        if (*c == '\n') *c = ' ';
    if (text.failed) clv_text_clear(&text);
    return text.data;
}

/* Makes a label, and a short, stable key for notes that people read: "AMD EPYC [pocl] 1/2 1a2b3c4d". */
static void make_names(const clv_probe_report *probe, clv_device *device)
{
    const clv_probe_device *d = device->facts;
    const char *name = d->name_clean ? d->name_clean : d->name ? d->name : "device";
    const char *platform = clv_vendor_name(probe->platforms[d->platform].vendor_norm);
    char part[24] = "", parts[24] = "", hex[65];
    if (device->part) snprintf(part, sizeof part, " %u/%u", device->part, device->parts);
    if (device->part) snprintf(parts, sizeof parts, " 1/%u", device->parts);
    snprintf(device->label, sizeof device->label, "%.60s [%s]%s", name, platform, part);
    const clv_digest digest = clv_sha256(device->identity, strlen(device->identity));
    clv_digest_hex(&digest, hex);
    snprintf(device->key, sizeof device->key, "%.60s [%s]%s %.8s", name, platform, parts, hex);
    for (char *c = device->key; *c; ++c)
        if (*c == '=' || *c == '\n') *c = ' ';
}

bool clv_is_on_the_cpu(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_CPU || device->device_class == CLV_CLASS_SOFTWARE;
}

/* Returns how many compilers may run at once for the device. Only devices that compute on the host's cores have
 * helpers: compilers run on those cores, and the cost of opening a card in another process is unknown. */
static unsigned compilers_of(const clv_context *context, const clv_device *device)
{
    enum { MOST = 16 };
    if (!clv_is_on_the_cpu(device->facts)) return 0;
    return CLV_MIN(CLV_MIN(context->compilers, context->probe->host.threads_allowed),
                   (unsigned)MOST);
}

static clv_status make_device(const clv_context *context, clv_device *device)
{
    clv_text place = { 0 };
    if (device->facts->flags.costly_binaries && clv_driver_keeps_kernels(&place))
        device->driver_cache = place.data;
    if (place.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for a device's name");
    device->declares =
        context->probe->platforms[device->facts->platform].vendor_norm == CLV_VENDOR_POCL;
    device->helper = context->helper;
    device->born = context->born;
    device->compilers = compilers_of(context, device);
    device->cache = context->cache;
    device->trace = context->trace;
    device->event_times = context->event_times || context->trace ||
                          device->facts->device_class != CLV_CLASS_DISCRETE_GPU;
    device->check = context->checks;
    device->bind = context->binding;
    device->identity = make_identity(context->probe, device);
    if (!device->identity) return clv_fail(CLV_E_MEMORY, "not enough memory for a device's name");
    make_names(context->probe, device);
    device->budget = budget_of(context, device);
    CLV_TRY(clv_pool_make(device));
    return clv_tensors_make(device, context->tensor_bytes);
}

clv_status clv_devices_make(clv_context *context, const size_t *chosen, size_t count,
                            unsigned sub_devices)
{
    const clv_probe_report *probe = context->probe;
    size_t total = 0;
    for (size_t i = 0; i < count; ++i)
        total += sub_devices > 1 && clv_is_on_the_cpu(&probe->devices[chosen[i]]) ? sub_devices : 1;
    if (total > CLV_BALANCE_MAX_DEVICES)
        return clv_fail(CLV_E_ARGUMENT, "there are %zu devices, but at most %d can share a job",
                        total, CLV_BALANCE_MAX_DEVICES);
    context->devices = clv_zalloc(total, sizeof *context->devices);
    if (!context->devices)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu devices", total);
    for (size_t i = 0; i < count; ++i) {
        const clv_probe_device *facts = &probe->devices[chosen[i]];
        const bool on_cpu = clv_is_on_the_cpu(facts);
        const unsigned parts = sub_devices > 1 && on_cpu ? sub_devices : 0;
        for (unsigned part = 0; part < (parts ? parts : 1); ++part) {
            clv_device *device = &context->devices[context->device_count++];
            fill_in(device, probe, chosen[i]);
            device->part = parts ? part + 1 : 0;
            device->parts = parts;
            device->pool_group = on_cpu && !parts ? 0 : -1; /* parts have cores of their own */
            CLV_TRY(make_device(context, device));
        }
    }
    return CLV_OK;
}

/* Returns false when the device's thread hangs in the driver. Then nothing of the device is freed. */
static bool close_device(clv_device *device, double patience)
{
    if (device->closed) return true;
    if (device->feeder && !clv_feeder_stop(device, patience)) return false;
    device->closed = true;
    if (device->cl) clv_programs_save(device, true);
    clv_tensors_free(device);
    clv_pool_free(device);
    clv_programs_clear(device);
    if (device->cl) clReleaseContext(device->cl);
    if (device->part && device->id != device->facts->native_device) clReleaseDevice(device->id);
    return true;
}

static void clear_device(clv_device *device)
{
    clv_error_clear(&device->trouble);
    clv_free(device->identity);
    clv_free(device->driver_cache);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->use_lock);
    pthread_mutex_destroy(&device->check_lock);
    pthread_mutex_destroy(&device->program_lock);
    pthread_mutex_destroy(&device->ahead_lock);
}

bool clv_devices_close(clv_context *context, double patience)
{
    bool all = true;
    for (size_t i = 0; i < context->device_count; ++i)
        all &= close_device(&context->devices[i], patience);
    return all;
}

void clv_devices_clear(clv_context *context)
{
    for (size_t i = 0; i < context->device_count; ++i)
        clear_device(&context->devices[i]);
    clv_free(context->devices);
    context->devices = NULL;
    context->device_count = 0;
}

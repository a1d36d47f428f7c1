/* SPDX-License-Identifier: Apache-2.0 */
/* Whose device it is, what kind, what to call it: pure judgement of the raw facts. */
#ifndef CLEAVE_PROBE_CLASSIFY_H
#define CLEAVE_PROBE_CLASSIFY_H

#include "probe/machine.h"

/* From texts only, never from vendor ids: CPU runtimes report those of other companies. Any text
 * may be NULL; `type` is the device's ("CPU", "GPU", NULL for a platform). */
clv_vendor clv_vendor_of(const char *platform_name, const char *vendor, const char *type);

/* The name for people and for comparisons: without driver, compiler and kernel versions. `board`
 * is preferred where the vendor gives one. Writes at most `capacity` bytes. */
void clv_clean_name(const char *name, const char *board, char *out, size_t capacity);

/* Fills vendor_norm, name_clean, device_class, class_reason, units_kind of a device, and the
 * platform's vendor_norm. */
void clv_classify_platform(clv_probe_platform *platform);
void clv_classify_device(clv_machine *machine, const clv_probe_platform *platform,
                         clv_probe_device *device);

static inline bool clv_is_gpu(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_DISCRETE_GPU ||
           device->device_class == CLV_CLASS_INTEGRATED_GPU;
}

/* OpenCL version as 100 * major + minor ("OpenCL 1.2 NEO" is 102); 0 when it cannot be read. */
unsigned clv_opencl_version(const char *version);

/* Fills usable and unusable_reason: can our kernels be built and run there at all? */
void clv_judge_usable(clv_machine *machine, clv_probe_device *device);

#endif

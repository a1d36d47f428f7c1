/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a device's vendor, kind and name: a pure judgement of the raw facts. */
#ifndef CLEAVE_PROBE_CLASSIFY_H
#define CLEAVE_PROBE_CLASSIFY_H

#include "probe/machine.h"

/* Returns the vendor, from texts only: CPU runtimes report vendor ids of other companies. Any text may be NULL; `type`
 * is the device's type ("CPU", "GPU", NULL for a platform). */
clv_vendor clv_vendor_of(const char *platform_name, const char *vendor, const char *type);

/* Makes the name for users and for comparisons: without versions of driver, compiler and kernel. `board` is preferred
 * if the vendor gives one. Writes at most `capacity` bytes. */
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

/* Returns the OpenCL version as 100 * major + minor ("OpenCL 1.2 NEO" is 102); 0 if it cannot be read. */
unsigned clv_opencl_version(const char *version);

/* Fills usable and unusable_reason: whether our kernels can be built and run there at all. */
void clv_judge_usable(clv_machine *machine, clv_probe_device *device);

#endif

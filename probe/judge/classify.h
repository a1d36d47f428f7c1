/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a device's vendor, class and clean name, from the raw facts alone. */
#ifndef CLEAVE_PROBE_CLASSIFY_H
#define CLEAVE_PROBE_CLASSIFY_H

#include "probe/machine.h"

/* Returns the vendor, from texts only, because CPU runtimes report vendor ids of other companies. Any text may be NULL;
 * `type` is the device's type ("CPU", "GPU"; NULL for a platform). */
clv_vendor clv_vendor_of(const char *platform_name, const char *vendor, const char *type);

/* Makes the name that users see and comparisons use: without the versions of driver, compiler and kernel. Prefers
 * `board` if the vendor reports it. Writes at most `capacity` bytes. */
void clv_clean_name(const char *name, const char *board, char *out, size_t capacity);

/* Fills in vendor_norm, name_clean, device_class, class_reason and units_kind of each device, and the platform's
 * vendor_norm. */
void clv_classify_platform(clv_probe_platform *platform);
void clv_classify_device(clv_machine *machine, const clv_probe_platform *platform,
                         clv_probe_device *device);

static inline bool clv_is_gpu(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_DISCRETE_GPU ||
           device->device_class == CLV_CLASS_INTEGRATED_GPU;
}

/* Returns the OpenCL version as 100 * major + minor ("OpenCL 1.2 NEO" is 102); 0 if the text cannot be parsed. */
unsigned clv_opencl_version(const char *version);

/* Fills in usable and unusable_reason: whether Cleave's kernels can be built and run on the device at all. */
void clv_judge_usable(clv_machine *machine, clv_probe_device *device);

#endif

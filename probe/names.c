/* SPDX-License-Identifier: Apache-2.0 */
/* Names of modes, classes and vendors as used in reports and options. */
#include <cleave/probe.h>

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static const char *const modes[] = {
    [CLV_MODE_AUTO] = "auto",
    [CLV_MODE_CPU] = "cpu",
    [CLV_MODE_GPU] = "gpu",
    [CLV_MODE_HYBRID] = "hybrid",
    [CLV_MODE_REFERENCE] = "reference",
};

static const char *const classes[] = {
    [CLV_CLASS_DISCRETE_GPU] = "discrete_gpu",
    [CLV_CLASS_INTEGRATED_GPU] = "integrated_gpu",
    [CLV_CLASS_CPU] = "cpu",
    [CLV_CLASS_ACCELERATOR] = "accelerator",
    [CLV_CLASS_SOFTWARE] = "software",
};

static const char *const vendors[] = {
    [CLV_VENDOR_OTHER] = "other", [CLV_VENDOR_NVIDIA] = "nvidia",
    [CLV_VENDOR_AMD] = "amd",     [CLV_VENDOR_INTEL] = "intel",
    [CLV_VENDOR_ARM] = "arm",     [CLV_VENDOR_QUALCOMM] = "qualcomm",
    [CLV_VENDOR_APPLE] = "apple", [CLV_VENDOR_POCL] = "pocl",
    [CLV_VENDOR_MESA] = "mesa",
};

const char *clv_mode_name(clv_mode mode)
{
    return (size_t)mode < CLV_LEN(modes) ? modes[mode] : "unknown";
}

clv_status clv_mode_parse(const char *name, clv_mode *mode)
{
    for (size_t i = 0; name && i < CLV_LEN(modes); ++i)
        if (strcmp(name, modes[i]) == 0) {
            *mode = (clv_mode)i;
            return CLV_OK;
        }
    return clv_fail(CLV_E_ARGUMENT,
                    "mode is \"%s\", but it must be auto, cpu, gpu, hybrid or reference",
                    name ? name : "");
}

const char *clv_device_class_name(clv_device_class device_class)
{
    return (size_t)device_class < CLV_LEN(classes) ? classes[device_class] : "unknown";
}

const char *clv_vendor_name(clv_vendor vendor)
{
    return (size_t)vendor < CLV_LEN(vendors) ? vendors[vendor] : "unknown";
}

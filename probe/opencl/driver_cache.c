/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the settings for the folders in which drivers keep compiled kernels on disk. */
#include "probe/opencl/driver_cache.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* The variables of PoCL, Mesa, NVIDIA, Intel (two) and AMD. */
const char *const clv_driver_cache_variables[] = { "POCL_CACHE_DIR",
                                                   "MESA_SHADER_CACHE_DIR",
                                                   "CUDA_CACHE_PATH",
                                                   "NEO_CACHE_DIR",
                                                   "cl_cache_dir",
                                                   "AMD_COMGR_CACHE_DIR",
                                                   NULL };

bool clv_driver_keeps_kernels(clv_text *place)
{
    static const char *const defaults[] = { "XDG_CACHE_HOME", "HOME" };
    const char *pocl = getenv("POCL_KERNEL_CACHE");
    if (pocl && strcmp(pocl, "0") == 0) return false;
    const char *folder = getenv("POCL_CACHE_DIR");
    for (size_t i = 0; i < CLV_LEN(defaults) && !(folder && *folder); ++i)
        folder = getenv(defaults[i]);
    clv_text_add(place, "%s.", folder ? folder : "");
    return true;
}

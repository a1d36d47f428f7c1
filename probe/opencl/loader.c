/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which libOpenCL this process uses: different loaders have the same file name. */
#define _GNU_SOURCE
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS /* clGetExtensionFunctionAddress */
#include "probe/opencl/opencl.h"

#include <CL/cl.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Queries of clGetICDLoaderInfoOCLICD, from the extension cl_loader_info; both loaders implement it. */
enum { LOADER_VERSION = 2, LOADER_NAME = 3 };
typedef cl_int loader_info(cl_uint what, size_t bytes, void *out, size_t *length);

static const char *loader_text(clv_machine *machine, loader_info *ask, cl_uint what)
{
    char text[256];
    size_t length = 0;
    if (ask(what, sizeof text, text, &length) != CL_SUCCESS || length > sizeof text) return NULL;
    return clv_machine_foreign(machine, text, length);
}

void clv_loader_facts(clv_machine *machine, bool ask)
{
    clv_probe_report *report = &machine->report;
    Dl_info where;
    void *entry = dlsym(RTLD_DEFAULT, "clGetPlatformIDs");
    if (entry && dladdr(entry, &where) && where.dli_fname) {
        char path[PATH_MAX];
        report->loader_path =
            clv_machine_keep(machine, realpath(where.dli_fname, path) ? path : where.dli_fname);
    }
    const char *layers = getenv("OPENCL_LAYERS");
    report->layers =
        layers && *layers ? clv_machine_foreign(machine, layers, strlen(layers)) : NULL;
    if (!ask) return;
    void *function = clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD");
    if (!function) return;
    loader_info *info;
    /* ISO C has no cast from an object pointer to a function pointer */
    memcpy(&info, &function, sizeof info);
    report->loader_name = loader_text(machine, info, LOADER_NAME);
    report->loader_version = loader_text(machine, info, LOADER_VERSION);
}

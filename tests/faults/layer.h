/* SPDX-License-Identifier: Apache-2.0 */
/* What every OpenCL layer (OPENCL_LAYERS) of the tests answers to the loader. A layer defines its
 * name and what it puts before the driver's calls. */
#ifndef CLEAVE_TESTS_LAYER_H
#define CLEAVE_TESTS_LAYER_H

#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl_layer.h>

#include <stdbool.h>

extern const char layer_name[];
extern const cl_icd_dispatch *layer_below; /* the driver's calls, or the next layer's */

/* `own` is a copy of the calls below; false when the layer cannot work. */
bool layer_install(cl_icd_dispatch *own);

#endif

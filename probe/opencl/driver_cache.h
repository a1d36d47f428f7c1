/* SPDX-License-Identifier: Apache-2.0 */
/* The folders in which drivers keep compiled kernels on disk. */
#ifndef CLEAVE_PROBE_DRIVER_CACHE_H
#define CLEAVE_PROBE_DRIVER_CACHE_H

#include "base/text.h"

#include <stdbool.h>

/* The environment variables that name these folders; ends with NULL. */
extern const char *const clv_driver_cache_variables[];

/* Returns whether a driver with the flag `costly_binaries` keeps its compiled kernels. If so, appends everything that
 * identifies its folder: another process finds the kernels only with the same settings. */
bool clv_driver_keeps_kernels(clv_text *place);

#endif

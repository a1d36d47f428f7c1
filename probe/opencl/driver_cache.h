/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the settings for the folders in which drivers keep compiled kernels on disk. */
#ifndef CLEAVE_PROBE_DRIVER_CACHE_H
#define CLEAVE_PROBE_DRIVER_CACHE_H

#include "base/text.h"

#include <stdbool.h>

/* The environment variables that name the drivers' cache folders; ends with NULL. */
extern const char *const clv_driver_cache_variables[];

/* Returns whether drivers with the flag `costly_binaries` keep their compiled kernels on disk. If so, appends
 * everything that identifies their folder: another process finds the kernels only with the same settings. */
bool clv_driver_keeps_kernels(clv_text *place);

#endif

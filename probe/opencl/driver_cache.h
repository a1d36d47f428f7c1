/* SPDX-License-Identifier: Apache-2.0 */
/* Where drivers keep on disk what they compiled. */
#ifndef CLEAVE_PROBE_DRIVER_CACHE_H
#define CLEAVE_PROBE_DRIVER_CACHE_H

#include "base/text.h"

#include <stdbool.h>

/* The environment variables that name these folders, ends with NULL. */
extern const char *const clv_driver_cache_variables[];

/* Whether a driver with the flag `costly_binaries` keeps what it compiles. If so, appends all that tells its
 * folder from another: what another process finds there it finds only with the same settings. */
bool clv_driver_keeps_kernels(clv_text *place);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Excludes broken OpenCL drivers from the command. */
#ifndef CLEAVE_HOST_CLI_DRIVERS_H
#define CLEAVE_HOST_CLI_DRIVERS_H

#include "host/cli/cli.h"

/* Tests the drivers; call it before the first OpenCL call of a job command. Only the first call has an effect. Drivers
 * that crashed or hung in a helper process, or whose devices did so in their check, are excluded through
 * OCL_ICD_VENDORS, with a warning for each. This takes some seconds when the drivers are new. If anything goes wrong
 * here, the command continues with all drivers. With `lean`, drivers that only offer again what a better one has are
 * excluded as well (clv_drivers_vet). */
void cli_vet_drivers(const cli_command *command, bool lean);

#endif

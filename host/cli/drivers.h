/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps broken OpenCL drivers out of the command. */
#ifndef CLEAVE_HOST_CLI_DRIVERS_H
#define CLEAVE_HOST_CLI_DRIVERS_H

#include "host/cli/cli.h"

/* Before the first OpenCL call of a job command, the first time it is called: drivers that crashed or
 * hung in a helper, or whose devices did when they were checked, are left out by OCL_ICD_VENDORS,
 * with a warning for each. Takes some seconds when the drivers are new. Whatever goes wrong here,
 * the command goes on with all drivers.
 * `lean`: drivers are left out, too, that only offer again what a better one has (clv_drivers_vet). */
void cli_vet_drivers(const cli_command *command, bool lean);

#endif

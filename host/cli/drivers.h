/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps broken OpenCL drivers out of the command. */
#ifndef CLEAVE_HOST_CLI_DRIVERS_H
#define CLEAVE_HOST_CLI_DRIVERS_H

#include "host/cli/cli.h"

/* Before the first OpenCL call of a job command: drivers that crashed or hung in a helper are left
 * out by OCL_ICD_VENDORS, with a warning for each. Whatever goes wrong here, the command goes on
 * with all drivers. */
void cli_vet_drivers(const cli_command *command);

#endif

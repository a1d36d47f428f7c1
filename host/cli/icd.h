/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the environment for OpenCL drivers. */
#ifndef CLEAVE_HOST_CLI_ICD_H
#define CLEAVE_HOST_CLI_ICD_H

#include <stddef.h>

/* Chooses the OpenCL drivers and points their kernel caches to private folders; call it before the first thread and the
 * first OpenCL call. `given` holds the values of --icd, each a comma list of driver libraries, .icd files and folders.
 * Without any, and if neither a vendors folder nor a variable of the loader names a driver, the drivers in the usual
 * places are used. Returns -1 to continue, else the exit code. */
int cli_ready_drivers(const char *const *given, size_t count);

#endif

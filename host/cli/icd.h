/* SPDX-License-Identifier: Apache-2.0 */
/* Readies the environment for OpenCL drivers. */
#ifndef CLEAVE_HOST_CLI_ICD_H
#define CLEAVE_HOST_CLI_ICD_H

#include <stddef.h>

/* Before the first thread and the first OpenCL call. `given` are the values of --icd, each a comma
 * list of driver libraries, .icd files and folders; without any, and where no vendors folder and no
 * variable of the loader names a driver, those in the usual places are taken. Also points the
 * drivers' kernel caches to private folders. Returns -1 to go on, else the exit code. */
int cli_ready_drivers(const char *const *given, size_t count);

#endif

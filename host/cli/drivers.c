/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps broken OpenCL drivers out of the command. */
#define _GNU_SOURCE
#include "host/cli/drivers.h"

#include "base/text.h"
#include "probe/drivers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX];
static pid_t owner;

static void forget(void)
{
    if (getpid() == owner) clv_drivers_forget(folder);
}

void cli_vet_drivers(const cli_command *command)
{
    const clv_probe_options options = { .size = sizeof options, .helper = "/proc/self/exe" };
    clv_text left_out = { 0 };
    if (clv_drivers_vet(&options, folder, sizeof folder, &left_out)) {
        cli_warn(command, "drivers are loaded without a test: %s", clv_error_message());
    } else if (*folder) {
        for (const char *at = clv_text_get(&left_out); *at;) {
            const size_t length = strcspn(at, "\n");
            cli_warn(command, "%.*s; left out", (int)length, at);
            at += length + (at[length] == '\n');
        }
        owner = getpid();
        atexit(forget);
        setenv("OCL_ICD_VENDORS", folder, 1);
        unsetenv("OCL_ICD_FILENAMES");
        unsetenv("OPENCL_VENDOR_PATH");
    }
    clv_text_clear(&left_out);
}

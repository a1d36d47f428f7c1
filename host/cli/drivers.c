/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps broken OpenCL drivers out of the command. */
#define _GNU_SOURCE
#include "host/cli/drivers.h"

#include "base/text.h"
#include "probe/drivers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char folder[PATH_MAX];
static pid_t owner;

static void forget(void)
{
    if (getpid() == owner) clv_drivers_forget(folder);
}

static int progress(const char *doing, void *user)
{
    bool *shown = user;
    *shown = cli_has_status_line();
    if (*shown) cli_status_line(doing);
    return cli_interrupted();
}

static void leave_out(const cli_command *command, const char *lines)
{
    for (const char *at = lines; *at;) {
        const size_t length = strcspn(at, "\n");
        cli_warn(command, "%.*s; left out, `cleave probe --check` tries it again", (int)length, at);
        at += length + (at[length] == '\n');
    }
    owner = getpid();
    atexit(forget);
    setenv("OCL_ICD_VENDORS", folder, 1);
    unsetenv("OCL_ICD_FILENAMES");
    unsetenv("OPENCL_VENDOR_PATH");
}

void cli_vet_drivers(const cli_command *command)
{
    static bool done;
    bool shown = false;
    const clv_probe_options options = { .size = sizeof options,
                                        .helper = "/proc/self/exe",
                                        .progress = progress,
                                        .progress_user = &shown };
    clv_text left_out = { 0 };
    if (done || getauxval(AT_SECURE)) return; /* then the environment is not ours to shape */
    done = true;
    const clv_status status = clv_drivers_vet(&options, folder, sizeof folder, &left_out);
    if (shown) cli_status_line(NULL);
    if (status && status != CLV_E_CANCELLED)
        cli_warn(command, "drivers are loaded without a test: %s", clv_error_message());
    else if (!status && *folder)
        leave_out(command, clv_text_get(&left_out));
    clv_text_clear(&left_out);
}

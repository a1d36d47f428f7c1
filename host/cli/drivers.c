/* SPDX-License-Identifier: Apache-2.0 */
/* Excludes broken OpenCL drivers from the command. */
#define _GNU_SOURCE
#include "host/cli/drivers.h"

#include "base/text.h"
#include "probe/drivers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LEAST_SPACE_MB = 1536 };

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
        cli_warn(command, "%.*s; the driver is left out, and `cleave probe --check` tests it again",
                 (int)length, at);
        at += length + (at[length] == '\n');
    }
    owner = getpid();
    atexit(forget);
    setenv("OCL_ICD_VENDORS", folder, 1);
    unsetenv("OCL_ICD_FILENAMES");
    unsetenv("OPENCL_VENDOR_PATH");
}

/* Warns about a small address-space limit: compilers of CPU drivers end the process when they reach it (PoCL 3.1 from
 * 400 to 900 MB). */
static void warn_of_little_space(const cli_command *command)
{
    struct rlimit limit;
    char bytes[16];
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= (rlim_t)LEAST_SPACE_MB << 20)
        return;
    cli_warn(command,
             "this process is limited to %s of address space (ulimit -v), but OpenCL drivers need "
             "about %d MB to compile and may crash with less; raise the limit, or compute without "
             "drivers (--mode reference)",
             clv_format_bytes(limit.rlim_cur, bytes), LEAST_SPACE_MB);
}

void cli_vet_drivers(const cli_command *command, bool lean)
{
    static bool done;
    bool shown = false;
    const clv_probe_options options = { .size = sizeof options,
                                        .helper = "/proc/self/exe",
                                        .progress = progress,
                                        .progress_user = &shown };
    clv_text left_out = { 0 };
    if (done || getauxval(AT_SECURE)) return; /* set-user-ID: leave the environment as it is */
    done = true;
    warn_of_little_space(command);
    const clv_status status = clv_drivers_vet(&options, lean, folder, sizeof folder, &left_out);
    if (shown) cli_status_line(NULL);
    if (status && status != CLV_E_CANCELLED)
        cli_warn(command, "OpenCL drivers are loaded untested: %s", clv_error_message());
    else if (!status && *folder)
        leave_out(command, clv_text_get(&left_out));
    clv_text_clear(&left_out);
}

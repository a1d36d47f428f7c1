/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the command's messages in fuzzers of the files that its options name. */
#include "host/cli/cli.h"

#include "base/error.h"

int cli_error(const cli_command *command, int code, const char *format, ...)
{
    (void)command, (void)format;
    return code;
}

int cli_input_status(const cli_command *command, clv_status status)
{
    (void)command;
    return status ? CLI_USAGE : CLI_OK;
}

const cli_command *cli_running(void)
{
    return NULL;
}

void cli_say(FILE *out, const char *format, ...)
{
    (void)out, (void)format;
}

bool cli_interrupted(void)
{
    return false;
}

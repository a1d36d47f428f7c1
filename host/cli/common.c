/* SPDX-License-Identifier: Apache-2.0 */
/* The options that every job command takes, and the context made from them. */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cli/clash.h"
#include "host/cli/drivers.h"

#include <cleave/log.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const schedules[] = { "adaptive", "static", "dynamic", "hguided" };

void cli_common_table(cli_common *c, cli_option *table)
{
    const cli_option rows[] = {
        { "mode", CLI_TEXT, &c->mode, "MODE",
          "auto, cpu, gpu, hybrid or reference [auto: the probe's choice]" },
        { "device", CLI_TEXT, &c->device, "SEL",
          "these devices: gpu, cpu, all, N, P:D, name~TEXT, ... ('!' excludes)" },
        { "mem-limit", CLI_TEXT, &c->mem_limit, "SIZE|%",
          "memory on each device, such as 2G or 50%" },
        { "batch", CLI_TEXT, &c->batch, "N|auto", "units a device takes at once, at most [auto]" },
        { "sched", CLI_TEXT, &c->sched, "NAME", "adaptive, static, dynamic or hguided [adaptive]" },
        { "sub-devices", CLI_UINT, &c->sub_devices, "N", "split every CPU device into N parts" },
        { "report", CLI_TEXT, &c->report, "FILE", "write what ran where, and why, as JSON" },
        { "trace", CLI_TEXT, &c->trace, "FILE", "write what ran when, for chrome://tracing" },
        { "q,quiet", CLI_FLAG, &c->quiet, NULL, "no messages but errors" },
        { "v,verbose", CLI_FLAG, &c->verbose, NULL, "decisions with their numbers" },
        { "no-progress", CLI_FLAG, &c->no_progress, NULL, "no progress bar" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == CLI_COMMON_OPTIONS + 1, "CLI_COMMON_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

static void log_line(clv_log_level level, const char *line, void *user)
{
    (void)user;
    fprintf(stderr, "%s%s\n", level <= CLV_LOG_WARN ? "cleave: " : "  ", line);
}

void cli_listen(bool quiet, bool verbose)
{
    if (verbose)
        clv_log_set(CLV_LOG_INFO, log_line, NULL);
    else if (!quiet && !getenv("CLEAVE_LOG"))
        clv_log_set(CLV_LOG_WARN, log_line, NULL);
}

int cli_check_output(const cli_command *command, const char *option, const char *path)
{
    struct stat info;
    char *temporary = NULL;
    if (!path || strcmp(path, "-") == 0) return -1;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return S_ISDIR(info.st_mode)
                   ? cli_error(command, CLI_FAILED, "%s: %s is a directory, expected a file's name",
                               option, path)
                   : -1;
    if (clv_file_begin(path, &temporary))
        return cli_error(command, CLI_FAILED, "%s: %s", option, clv_error_message());
    clv_file_abandon(temporary);
    return -1;
}

/* In the folder that the command will have made by then. */
static bool is_to_come(const char *path, const char *folder)
{
    char parent[4096];
    const char *name = path ? strrchr(path, '/') : NULL;
    if (!folder || !name || (size_t)(name - path) >= sizeof parent) return false;
    memcpy(parent, path, (size_t)(name - path));
    parent[name - path] = '\0';
    return access(parent, F_OK) && cli_same_file(parent, folder);
}

int cli_common_context(const cli_command *command, const cli_common *c, clv_context **context)
{
    clv_context_options options = { .size = sizeof options,
                                    .devices = c->device,
                                    .trace = c->trace != NULL };
    uint64_t number;
    *context = NULL;
    cli_listen(c->quiet, c->verbose);
    if (c->mode && clv_mode_parse(c->mode, &options.mode))
        return cli_error(command, CLI_USAGE,
                         "--mode: \"%s\" given, expected auto, cpu, gpu, hybrid or reference",
                         c->mode);
    if (c->mem_limit && !clv_parse_percent(c->mem_limit, &options.memory_fraction) &&
        (!clv_parse_bytes(c->mem_limit, &options.memory_bytes) || !options.memory_bytes))
        return cli_error(
            command, CLI_USAGE,
            "--mem-limit: \"%s\" given, expected a size such as 2G or a part such as 50%%",
            c->mem_limit);
    if (c->batch && strcmp(c->batch, "auto") != 0) {
        if (!clv_parse_u64(c->batch, &number) || !number || number > SIZE_MAX)
            return cli_error(command, CLI_USAGE,
                             "--batch: \"%s\" given, expected a whole number from 1 up or auto",
                             c->batch);
        options.batch = (size_t)number;
    }
    if (c->sched) {
        int found = -1;
        for (int i = 0; i < 4; ++i)
            if (strcmp(schedules[i], c->sched) == 0) found = i;
        if (found < 0)
            return cli_error(command, CLI_USAGE,
                             "--sched: \"%s\" given, expected adaptive, static, dynamic or hguided",
                             c->sched);
        options.schedule = (clv_schedule)found;
    }
    if (c->sub_devices > 64)
        return cli_error(command, CLI_USAGE, "--sub-devices: %llu given, expected at most 64",
                         (unsigned long long)c->sub_devices);
    options.sub_devices = (unsigned)c->sub_devices;
    const char *const files[][2] = { { "--report", c->report }, { "--trace", c->trace } };
    for (size_t i = 0; i < CLV_LEN(files); ++i) {
        const int code = is_to_come(files[i][1], c->folder)
                             ? -1
                             : cli_check_output(command, files[i][0], files[i][1]);
        if (code >= 0) return code;
    }
    if (options.mode != CLV_MODE_REFERENCE) cli_vet_drivers(command);
    const clv_status status = clv_context_create(&options, context);
    return status ? cli_status(command, status) : -1;
}

int cli_write_report(const cli_command *command, const cli_common *c, clv_context *context,
                     const clv_report *report)
{
    clv_status status = CLV_OK;
    if (c->report) {
        char *text = clv_report_json(report);
        if (!text) return cli_error(command, CLI_FAILED, "%s: no memory for the report", c->report);
        status = clv_file_write(c->report, text, strlen(text));
        free(text);
    }
    if (!status && c->trace) status = clv_context_write_trace(context, c->trace);
    return cli_status(command, status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the options that every job command takes, and creates the context from their values. */
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "host/cli/cluster.h"
#include "host/cli/drivers.h"
#include "host/cli/share.h"
#include "host/io/room.h"
#include "runtime/context/wishes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LIST = 1024 }; /* bytes of a list of devices */

void cli_common_table(cli_common *c, cli_option *table)
{
    const cli_option rows[] = {
        { "mode", CLI_TEXT, &c->mode, "MODE",
          "auto, cpu, gpu, hybrid or reference [$CLEAVE_MODE, else auto]", NULL, "CLEAVE_MODE" },
        { "device", CLI_TEXT, &c->device, "SEL",
          "use these devices: gpu, cpu, all, N, P:D, name~TEXT, ... ('!' excludes)", NULL,
          "CLEAVE_DEVICE" },
        { "mem-limit", CLI_TEXT, &c->mem_limit, "SIZE|%",
          "most memory to use on each device, such as 2G or 50%", NULL, "CLEAVE_MEM_LIMIT" },
        { "batch", CLI_TEXT, &c->batch, "N|auto",
          "largest number of units that a device computes at once [auto]" },
        { "sched", CLI_TEXT, &c->sched, "NAME",
          "how devices share the work: adaptive, static, dynamic or hguided [adaptive]", NULL,
          "CLEAVE_SCHED" },
        { "sub-devices", CLI_UINT, &c->sub_devices, "N", "split every CPU device into N parts" },
        { "report", CLI_TEXT, &c->report, "FILE", "write what ran where, and why, as JSON" },
        { "trace", CLI_TEXT, &c->trace, "FILE", "write what ran when, for chrome://tracing", NULL,
          "CLEAVE_TRACE" },
        { "q,quiet", CLI_FLAG, &c->quiet, NULL, "print no messages except errors", NULL,
          "CLEAVE_LOG" },
        { "v,verbose", CLI_FLAG, &c->verbose, NULL, "show each decision with its numbers", NULL,
          "CLEAVE_LOG" },
        { "no-progress", CLI_FLAG, &c->no_progress, NULL, "show no progress bar" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == CLI_COMMON_OPTIONS + 1, "CLI_COMMON_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

static void log_line(clv_log_level level, const char *line, void *user)
{
    (void)user;
    cli_say_always(stderr, "%s%s%s\n", cli_speaker(), level <= CLV_LOG_WARN ? "cleave: " : "  ",
                   line);
}

void cli_listen(bool quiet, bool verbose)
{
    if (verbose) /* on every rank, because ranks may have different devices */
        clv_log_set(CLV_LOG_INFO, log_line, NULL);
    else if (quiet || *cli_speaker())
        clv_log_set(CLV_LOG_ERROR, log_line, NULL);
    else if (!clv_environment("CLEAVE_LOG"))
        clv_log_set(CLV_LOG_WARN, log_line, NULL);
}

static int refuse_word(const cli_command *command, const char *option, const char *given,
                       const char *list)
{
    char words[120];
    return cli_error(command, CLI_USAGE, "%s is \"%s\", but it must be %s", option, given,
                     clv_list_words(list, "or", words, sizeof words));
}

/* Converts the options for clv_context_create. Returns -1 to continue, else the exit code. */
static int read_options(const cli_command *command, const cli_common *c,
                        clv_context_options *options)
{
    uint64_t number;
    *options = (clv_context_options){ .size = sizeof *options,
                                      .devices = c->device,
                                      .helper = "/proc/self/exe",
                                      .trace = c->trace != NULL,
                                      .event_times = c->report != NULL,
                                      .bind_threads = true };
    if (c->mode && clv_mode_parse(c->mode, &options->mode))
        return refuse_word(command, "--mode", c->mode, CLV_MODES);
    if (c->mem_limit && !clv_parse_percent(c->mem_limit, &options->memory_fraction) &&
        (!clv_parse_bytes(c->mem_limit, &options->memory_bytes) || !options->memory_bytes))
        return cli_error(
            command, CLI_USAGE,
            "--mem-limit is \"%s\", but it must be a size such as 2G or a share such as 50%%",
            c->mem_limit);
    if (c->batch && strcmp(c->batch, "auto") != 0) {
        if (!clv_parse_u64(c->batch, &number) || !number || number > SIZE_MAX)
            return cli_error(command, CLI_USAGE,
                             "--batch is \"%s\", but it must be a whole number, 1 or more, or auto",
                             c->batch);
        options->batch = (size_t)number;
    }
    if (c->sched) {
        const int found = clv_find_word(CLV_SCHEDULES, c->sched);
        if (found < 0) return refuse_word(command, "--sched", c->sched, CLV_SCHEDULES);
        options->schedule = (clv_schedule)found;
    }
    if (c->sub_devices > 64)
        return cli_error(command, CLI_USAGE, "--sub-devices is %llu, but at most 64 are possible",
                         (unsigned long long)c->sub_devices);
    options->sub_devices = (unsigned)c->sub_devices;
    return -1;
}

int cli_common_check(const cli_command *command, const cli_common *c)
{
    clv_context_options options;
    clv_wishes wishes;
    int code = cli_share_check(command, c);
    if (code < 0) code = read_options(command, c, &options);
    if (code >= 0) return code;
    if (clv_wishes_read(&options, &wishes)) return cli_status(command, CLV_E_ARGUMENT);
    const double physical = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    clv_io_set_room(wishes.memory_bytes ? wishes.memory_bytes
                                        : (uint64_t)(wishes.memory_fraction * physical));
    return -1;
}

/* Limits the devices to those of this rank: each of the ranks on this machine, in turn, gets N of the chosen devices
 * (--devices-per-rank). */
static clv_status choose_devices(const cli_common *c, clv_context_options *options,
                                 char list[MOST_LIST])
{
    clv_context *all = NULL;
    clv_text chosen = { 0 };
    CLV_TRY(clv_context_create(options, &all));
    const size_t count = clv_context_device_count(all), most = (size_t)c->devices_per_rank;
    for (size_t i = 0; i < CLV_MIN(most, count); ++i) {
        const size_t number = ((size_t)cli_cluster_local() * most + i) % count;
        const clv_probe_device *facts = clv_device_facts(clv_context_device(all, number));
        clv_text_add(&chosen, "%s%zu:%u", i ? "," : "", facts->platform, facts->ordinal);
    }
    clv_context_free(all);
    clv_copy_string(list, MOST_LIST, clv_text_get(&chosen));
    const bool failed = chosen.failed;
    clv_text_clear(&chosen);
    if (failed) return clv_fail(CLV_E_MEMORY, "not enough memory for the list of devices");
    if (*list) options->devices = list;
    if (*list) clv_log(CLV_LOG_INFO, "this rank takes the devices %s", list);
    return CLV_OK;
}

int cli_common_context(const cli_command *command, const cli_common *c, clv_context **context)
{
    clv_context_options options;
    *context = NULL;
    cli_listen(c->quiet, c->verbose);
    const int code = read_options(command, c, &options);
    if (code >= 0) return code;
    const bool chosen =
        c->device || c->mode || clv_environment("CLEAVE_DEVICE") || clv_environment("CLEAVE_MODE");
    if (options.mode != CLV_MODE_REFERENCE) cli_vet_drivers(command, c->lean && !chosen);
    char list[MOST_LIST];
    clv_status status = CLV_OK;
    if (c->devices_per_rank) status = choose_devices(c, &options, list);
    if (!status) status = clv_context_create(&options, context);
    return status ? cli_status(command, status) : cli_share_open(command, *context);
}

int cli_write_report(const cli_command *command, const cli_common *c, clv_context *context,
                     const clv_report *report)
{
    clv_status status = CLV_OK;
    if (c->report) {
        char *text = clv_report_json(report);
        if (!text)
            return cli_error(command, CLI_FAILED, "%s: not enough memory for the report",
                             c->report);
        status = clv_file_write(c->report, text, strlen(text));
        clv_free(text);
    }
    if (!status && c->trace) status = clv_context_write_trace(context, c->trace);
    return cli_status(command, status);
}

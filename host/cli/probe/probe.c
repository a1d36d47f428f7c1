/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave probe`: reports what this machine can compute with and which mode to use. */
#include "host/cli/cli.h"
#include "host/cli/clash.h"
#include "host/cli/kernels.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "probe/helper/child.h"
#include "probe/report/report_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct probe_args {
    bool json, check, list, print_mode, in_process, reproducible, measure_free, strict, quiet,
        verbose;
    const char *bench, *device, *mode, *simulate, *scenario, *save;
    double timeout_s;
} probe_args;

static void make_table(probe_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "json", CLI_FLAG, &a->json, NULL, "print one JSON document (schema cleave.probe/1)" },
        { "list", CLI_FLAG, &a->list, NULL, "print one line for each usable device" },
        { "print-mode", CLI_FLAG, &a->print_mode, NULL,
          "print only the mode: cpu, hybrid, gpu or reference" },
        { "check", CLI_FLAG, &a->check, NULL,
          "build and run kernels on every device, and compare the results" },
        { "bench", CLI_OPTIONAL, &a->bench, "LEVEL",
          "measure every device: quick (3 s each) or full" },
        { "measure-free", CLI_FLAG, &a->measure_free, NULL,
          "fill the memory of each card to measure how much is free" },
        { "device", CLI_TEXT, &a->device, "SEL",
          "use these devices: gpu, cpu, all, N, P:D, name~TEXT...", NULL, "CLEAVE_DEVICE" },
        { "mode", CLI_TEXT, &a->mode, "MODE",
          "auto, cpu, gpu, hybrid or reference [$CLEAVE_MODE, else auto]", NULL, "CLEAVE_MODE" },
        { "timeout", CLI_DOUBLE, &a->timeout_s, "SECONDS",
          "time limit for each driver [10; with --check 60; with --bench 120]" },
        { "strict", CLI_FLAG, &a->strict, NULL,
          "end with exit code 4 if a driver crashed or hung" },
        { "simulate", CLI_TEXT, &a->simulate, "FILE",
          "simulate the machine of a saved report or device profiles" },
        { "scenario", CLI_TEXT, &a->scenario, "ID", "the scenario of the profiles to simulate" },
        { "save", CLI_TEXT, &a->save, "FILE", "write the JSON report to a file as well" },
        { "reproducible", CLI_FLAG, &a->reproducible, NULL, "leave out times and free memory" },
        { "in-process", CLI_FLAG, &a->in_process, NULL,
          "load the drivers in this process, for debugging" },
        { "v,verbose", CLI_FLAG, &a->verbose, NULL,
          "show quirks with their reasons, and full paths" },
        { "q,quiet", CLI_FLAG, &a->quiet, NULL, "show no progress and no warnings" },
        { NULL },
    };
    memcpy(table, rows, sizeof rows);
}

enum { OPTION_ROWS = 18 };

static int progress(const char *doing, void *user)
{
    const probe_args *args = user;
    if (!args->quiet && cli_has_status_line()) cli_status_line(doing);
    return cli_interrupted();
}

static void end_progress(const probe_args *args)
{
    if (!args->quiet && cli_has_status_line()) cli_status_line(NULL);
}

static bool speaks_utf8(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < CLV_LEN(variables); ++i) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return clv_contains_nocase(value, "utf-8") || clv_contains_nocase(value, "utf8");
    }
    return false;
}

static clv_report_style style_of(const probe_args *args)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    return (clv_report_style){
        .colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && term &&
                  strcmp(term, "dumb") != 0,
        .lines = speaks_utf8(),
        .more = args->verbose,
    };
}

/* Writes to stdout and checks that everything arrived (a full disk, a closed pipe). */
static int print(const char *text)
{
    if (!text) return cli_error(&cli_probe, CLI_FAILED, "not enough memory for the report");
    if (fputs(text, stdout) == EOF || fflush(stdout))
        return cli_error(&cli_probe, CLI_FAILED, "cannot write the report: %s", strerror(errno));
    return CLI_OK;
}

static int save(const probe_args *args, const clv_probe_report *report)
{
    char *json = clv_probe_json(report);
    if (!json) return cli_error(&cli_probe, CLI_FAILED, "not enough memory for the report");
    const clv_status status = clv_file_write(args->save, json, strlen(json));
    clv_free(json);
    return cli_status(&cli_probe, status);
}

/* Prints the report's warnings to stderr unless stdout is a terminal: the report contains the warnings too, but a
 * user does not see a report that goes to a file or a pipe. */
static void warn(const probe_args *args, const clv_probe_report *report)
{
    if (args->quiet || isatty(STDOUT_FILENO)) return;
    for (size_t i = 0; i < report->warning_count; ++i)
        cli_say(stderr, "cleave probe: warning: %s\n", report->warnings[i].message);
}

static int show(const probe_args *args, const clv_probe_report *report)
{
    const clv_report_style style = style_of(args);
    char *text;
    int code;
    if (args->print_mode) {
        cli_say(stdout, "%s\n", clv_mode_name(report->mode.recommended));
        return print("");
    }
    if (args->json) {
        text = clv_probe_json(report);
        code = print(text);
        clv_free(text);
        return code;
    }
    text = args->list ? clv_report_list(report) : clv_report_text(report, &style);
    code = print(text);
    clv_free(text);
    if (!args->list) warn(args, report);
    return code;
}

/* Returns the exit code. 5 takes precedence over 4: a wrong result is worse than a driver that is left out. */
static int judge(const probe_args *args, const clv_probe_report *report)
{
    static const char *const broken[] = { "crashed", "timeout", "hung_unkillable", "bad_output" };
    for (size_t i = 0; args->check && i < report->device_count; ++i)
        if (report->devices[i].check.done && !report->devices[i].check.ok) return CLI_WRONG;
    for (size_t i = 0; args->strict && i < report->icd_count; ++i)
        for (size_t k = 0; k < CLV_LEN(broken); ++k)
            if (strcmp(report->icds[i].status, broken[k]) == 0) return CLI_ICD_BROKEN;
    return CLI_OK;
}

static int read_options(const probe_args *args, clv_probe_options *options)
{
    *options = (clv_probe_options){
        .size = sizeof *options,
        .devices = args->device,
        .devices_by = "--device",
        .mode_by = "--mode",
        .isolate = !args->in_process,
        .timeout_s = args->timeout_s,
        .check = args->check,
        .measure_free = args->measure_free,
        .reproducible = args->reproducible,
        .simulate = args->simulate,
        .scenario = args->scenario,
        .helper = "/proc/self/exe",
        .progress = progress,
        .progress_user = (void *)(uintptr_t)args,
    };
    if (args->mode && clv_mode_parse(args->mode, &options->mode))
        return cli_status(&cli_probe, CLV_E_ARGUMENT);
    if (args->bench) {
        if (!*args->bench || strcmp(args->bench, "quick") == 0)
            options->bench = CLV_BENCH_QUICK;
        else if (strcmp(args->bench, "full") == 0)
            options->bench = CLV_BENCH_FULL;
        else
            return cli_error(&cli_probe, CLI_USAGE,
                             "--bench is \"%s\", but it must be quick or full", args->bench);
    }
    if (args->timeout_s < 0 || args->timeout_s > 86400)
        return cli_error(&cli_probe, CLI_USAGE,
                         "--timeout is %g, but it must be 0 (the default) to 86400 seconds",
                         args->timeout_s);
    if (args->scenario && !args->simulate)
        return cli_error(&cli_probe, CLI_USAGE, "--scenario needs --simulate FILE");
    if (args->simulate && (args->check || args->bench || args->measure_free))
        return cli_error(
            &cli_probe, CLI_USAGE,
            "a simulated machine cannot be checked or measured; leave out --check and --bench");
    if (args->json + args->list + args->print_mode > 1)
        return cli_error(&cli_probe, CLI_USAGE,
                         "--json, --list and --print-mode cannot be used together");
    return -1;
}

static int run(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], CLV_HELPER_MARK) == 0) {
        clv_child_main(argc - 1, argv + 1);
        return CLI_USAGE;
    }
    probe_args args = { 0 };
    cli_option table[OPTION_ROWS];
    const cli_option *tables[] = { table, NULL };
    int operands;
    make_table(&args, table);
    int code = cli_parse(&cli_probe, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_probe, "", operands, argv + 1)) >= 0) return code;
    clv_probe_options options;
    if ((code = read_options(&args, &options)) >= 0) return code;
    const cli_file input = { "--simulate", args.simulate, NULL, 0 },
                   output = { "--save", args.save, NULL, CLI_JSON | CLI_NO_STREAM };
    if ((code = cli_check_files(&cli_probe, NULL, &input, 1, &output, 1)) >= 0) return code;
    if (args.check) cli_kernels_forget(); /* a device's errors may come from its kept kernels */

    cli_catch_interrupts();
    clv_probe_report *report;
    const clv_status status = clv_probe_run(&options, &report);
    end_progress(&args);
    if (status)
        return args.simulate ? cli_input_status(&cli_probe, status)
                             : cli_status(&cli_probe, status);
    code = show(&args, report);
    if (!code && args.save) code = save(&args, report);
    if (!code) code = judge(&args, report);
    clv_probe_free(report);
    return code;
}

const cli_command cli_probe = {
    .name = "probe",
    .summary = "show what this machine can compute with, and recommend a mode",
    .operands = "[OPTION...]",
    .description =
        "Lists processors, memory and OpenCL devices, merges those that several drivers\nshow, and "
        "recommends a mode: cpu, hybrid or gpu. Every driver is loaded in a\nprocess of its own: "
        "one that crashes or hangs is reported and left out.\n\nExit codes: 0 report made, also "
        "without any OpenCL; 1 failed; 2 wrong usage;\n3 a device or mode that was asked for is "
        "missing; 4 a driver crashed or hung\n(with --strict); 5 a device gave wrong results (with "
        "--check).",
    .run = run,
};

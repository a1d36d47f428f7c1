/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: describes this machine and runs every workload on a small synthetic input. */
#include "host/demo/demo.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "host/cli/clash.h"
#include "host/cli/cli.h"
#include "host/cli/grid.h"
#include "runtime/context/prepare.h"

#include <cleave/version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    demo_workload *run;
    bool (*wanted)(void); /* NULL: always */
} workloads[] = {
    { "paco", demo_paco },
    { "blobs", demo_blobs },
    { "specfit", demo_specfit },
    { "transformer", demo_transformer },
    { "search", demo_search },
    { "arrays", demo_arrays },
    { "filter", demo_filter },
    { "matrices", demo_matrices },
    { "regression", demo_regression },
    { "generate", demo_generate, demo_has_model },
};

typedef struct demo_args {
    const char *output, *only;
    bool chosen[CLV_LEN(workloads)];
    cli_common common;
} demo_args;

enum { OWN_OPTIONS = 2 };

static void make_table(demo_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "o,output", CLI_TEXT, &a->output, "DIR",
          "folder for pictures and inputs (created if missing) [cleave-demo]" },
        { "only", CLI_TEXT, &a->only, "NAME,...",
          "run only these workloads, such as paco,blobs [all; generate if $CLEAVE_MODEL is set]" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == OWN_OPTIONS + 1, "OWN_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

static bool is_among(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && memcmp(at, name, length) == 0) return true;
    return false;
}

/* Returns the number of names in a list with commas between them. */
static size_t count_names(const char *list)
{
    size_t count = 1;
    for (; *list; ++list)
        count += *list == ',';
    return count;
}

/* Chooses the workloads to run. Returns an exit code, or -1 to go on. */
static int choose(demo_args *a)
{
    size_t found = 0;
    for (size_t i = 0; i < CLV_LEN(workloads); ++i) {
        const bool able = !workloads[i].wanted || workloads[i].wanted();
        a->chosen[i] = a->only ? is_among(a->only, workloads[i].name) : able;
        found += a->chosen[i];
        if (a->chosen[i] && !able)
            return cli_error(&cli_demo, CLI_USAGE,
                             "--only has %s, which needs a language model: set CLEAVE_MODEL to a "
                             "GGUF file or a folder",
                             workloads[i].name);
        const char *lost = a->chosen[i] && workloads[i].wanted ? demo_lost_model() : NULL;
        if (lost)
            return cli_error(&cli_demo, CLI_USAGE,
                             "%s: cannot open the language model: %s; set CLEAVE_MODEL to a GGUF "
                             "file or a folder, or name other workloads with --only",
                             lost, strerror(errno));
    }
    if (!a->only || found == count_names(a->only)) return -1;
    clv_text names = { 0 };
    for (size_t i = 0; i < CLV_LEN(workloads); ++i)
        clv_text_add(&names, "%s%s", i ? ", " : "", workloads[i].name);
    const int code = cli_error(&cli_demo, CLI_USAGE,
                               "--only is \"%s\", but it must be different names of workloads with "
                               "commas between them: %s",
                               a->only, clv_text_get(&names));
    clv_text_clear(&names);
    return code;
}

/* ---- the machine ---------------------------------------------------------------------------------- */

static void tell_device(const clv_device *device)
{
    const clv_probe_device *d = clv_device_facts(device);
    char size[16];
    cli_say(stdout, "%s, %s", clv_device_label(device), clv_device_class_name(d->device_class));
    if (d->compute_units)
        cli_say(stdout, ", %u %s", d->compute_units, d->units_kind ? d->units_kind : "units");
    if (d->compute_units && d->units_kind && d->compute_units != 1) cli_say(stdout, "s");
    if (d->global_bytes != CLV_UNKNOWN)
        cli_say(stdout, ", %s", clv_format_bytes(d->global_bytes, size));
    cli_say(stdout, "\n");
}

/* Prints the mode first, since the reason ends with it. */
static void tell_mode(const clv_context *context)
{
    char ending[24];
    const char *mode = clv_mode_name(clv_context_mode(context)),
               *reason = clv_context_reason(context);
    snprintf(ending, sizeof ending, ": %s", mode);
    const size_t length = strlen(reason) - (clv_ends_with(reason, ending) ? strlen(ending) : 0);
    cli_say(stdout, "Mode      %s: %.*s\n", mode, (int)length, reason);
}

static void tell_machine(const clv_context *context)
{
    const clv_probe_host *host = &clv_context_probe(context)->host;
    char size[16];
    cli_say(stdout, "Cleave %s\n", clv_version());
    cli_say(stdout, "Machine   %s, %u core%s",
            host->cpu_model ? host->cpu_model : "unknown processor", host->cores,
            host->cores == 1 ? "" : "s");
    if (host->memory_total_bytes != CLV_UNKNOWN)
        cli_say(stdout, ", %s", clv_format_bytes(host->memory_total_bytes, size));
    if (host->os_name)
        cli_say(stdout, ", %s %s", host->os_name, host->os_version ? host->os_version : "");
    cli_say(stdout, "\n");
    const size_t count = clv_context_device_count(context);
    for (size_t i = 0; i < count; ++i) {
        cli_say(stdout, "%s", i ? "          " : "Devices   ");
        tell_device(clv_context_device(context, i));
    }
    if (!count)
        cli_say(stdout, "Devices   OpenCL shows none; the plain C path computes everything\n");
    tell_mode(context);
    fflush(stdout);
}

/* ---- the table --------------------------------------------------------------------------------------- */

/* Writes shares like "AMD Radeon [amd] 81 %, AMD EPYC [pocl] 19 %". */
static void write_shares(const clv_report *report, clv_text *out)
{
    size_t units = 0;
    for (size_t i = 0; i < clv_report_share_count(report); ++i)
        units += clv_report_share(report, i).units;
    for (size_t i = 0, shown = 0; i < clv_report_share_count(report); ++i) {
        const clv_share share = clv_report_share(report, i);
        if (share.units)
            clv_text_add(out, "%s%s %.0f %%", shown++ ? ", " : "", share.device,
                         100.0 * (double)share.units / (double)units);
    }
}

static void add_row(cli_grid *grid, const char *name, const clv_report *report, const demo_row *row)
{
    char took[24], plain[24];
    clv_text shares = { 0 };
    write_shares(report, &shares);
    cli_grid_cell(grid, CLI_PLAIN, "%s", name);
    cli_grid_cell(grid, CLI_PLAIN, "%s", row->input);
    cli_grid_cell(grid, CLI_PLAIN, "%s", *row->by ? row->by : clv_text_get(&shares));
    cli_grid_cell(grid, CLI_PLAIN, "%s", clv_format_seconds(row->seconds, took));
    cli_grid_cell(grid, CLI_PLAIN, "%s", clv_format_seconds(row->reference_s, plain));
    cli_grid_cell(grid, CLI_PLAIN, "%s", row->found);
    cli_grid_cell(grid, row->ok ? CLI_GOOD : CLI_BAD, "%s", row->ok ? "ok" : "WRONG");
    clv_text_clear(&shares);
}

/* Adds notes: the name stands before the first line, the other lines follow below. */
static void add_notes(clv_text *notes, const char *name, const char *lines)
{
    for (const char *at = lines; *at; name = "") {
        const size_t length = strcspn(at, "\n");
        clv_text_add(notes, "%-11s %.*s\n", name, (int)length, at);
        at += length + (at[length] == '\n');
    }
}

/* Adds a note if the device was slower than plain C. The jobs of a workload always run on the devices, unless the
 * user turns that off. */
static void tell_slower(demo_row *row)
{
    if (!*row->by && row->seconds > row->reference_s)
        clv_text_add(&row->notes, "slower here than plain C: --mode reference works without the "
                                  "device\n");
}

/* Runs all workloads; `notes` gets the lines below the table. */
static int run_workloads(const demo_args *a, const demo_stage *stage, cli_grid *grid,
                         clv_text *notes, bool *good)
{
    int code = CLI_OK;
    *good = true;
    for (size_t i = 0; i < CLV_LEN(workloads) && !code; ++i) {
        demo_row row = { .ok = true };
        if (!a->chosen[i]) continue;
        if (cli_interrupted())
            return cli_error(&cli_demo, CLI_INTERRUPTED,
                             "cancelled before %s; the finished parts are in %s", workloads[i].name,
                             a->output);
        cli_doing(&a->common, workloads[i].name);
        const clv_status status = workloads[i].run(stage, &row);
        cli_doing(&a->common, NULL);
        code = cli_status(&cli_demo, status);
        if (!code) {
            tell_slower(&row);
            add_row(grid, workloads[i].name, stage->report, &row);
            add_notes(notes, workloads[i].name, clv_text_get(&row.notes));
            *good = *good && row.ok;
        }
        clv_text_clear(&row.notes);
    }
    return code;
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

static int draw_kernels(size_t done, size_t all, void *bar)
{
    return cli_progress("compiling kernels for this machine, once", done, all, bar);
}

/* Compiles all kernels that the workloads will launch, on all cores. */
static int compile_kernels(const demo_args *a, const demo_stage *stage)
{
    const demo_stage preparing = { stage->context, stage->folder, stage->report, true };
    clv_status status = CLV_OK;
    char took[24];
    cli_bar bar;
    clv_prepare_begin(stage->context);
    for (size_t i = 0; i < CLV_LEN(workloads) && !status; ++i) {
        demo_row row = { .ok = true };
        if (!a->chosen[i]) continue;
        status = workloads[i].run(&preparing, &row);
        clv_text_clear(&row.notes);
    }
    cli_bar_start(&bar, &a->common, "kernels");
    clv_prepare_end(stage->context, draw_kernels, &bar);
    cli_bar_end(&bar);
    const clv_compile_cost cost = clv_context_compiled(stage->context);
    if (cost.kernels)
        cli_say(stdout, "Kernels   %zu compiled for this machine, which is needed only once: %s\n",
                cost.kernels, clv_format_seconds(cost.seconds, took));
    else if (clv_context_device_count(stage->context))
        cli_say(stdout, "Kernels   already compiled and cached\n");
    cli_say(stdout, "\n");
    fflush(stdout);
    return cli_status(&cli_demo, status);
}

/* Adds a note about kernels that were not prepared and were compiled at their first launch. */
static void tell_compilers(const clv_context *context, clv_text *notes)
{
    char took[24];
    const clv_compile_cost cost = clv_context_compiled(context);
    if (cost.programs && cost.seconds > 0.05)
        clv_text_add(notes, "Compilers took %s in all; what they made is kept for the next time.\n",
                     clv_format_seconds(cost.seconds, took));
}

static int show(const demo_args *a, clv_context *context, double started)
{
    static const cli_column columns[] = {
        { "workload", false }, { "input", false },  { "devices and shares", false },
        { "time", true },      { "plain C", true }, { "found", false },
        { "check", false }
    };
    cli_grid grid = { .columns = columns, .column_count = CLV_LEN(columns) };
    clv_text notes = { 0 };
    char took[24];
    bool good = true;
    clv_report *report = NULL; /* of all workloads */
    int code = cli_status(&cli_demo, clv_report_create(&report));
    const demo_stage stage = { context, a->output, report, false };
    if (!code) code = compile_kernels(a, &stage);
    if (!code) code = run_workloads(a, &stage, &grid, &notes, &good);
    tell_compilers(context, &notes);
    if (!code) code = cli_write_report(&cli_demo, &a->common, context, report);
    if (!code) {
        cli_grid_print(&grid, stdout);
        cli_say(stdout, "\n%s\n%s in %s.\n", clv_text_get(&notes),
                good ? "All results are correct; done" : "SOMETHING IS WRONG (see above); done",
                clv_format_seconds(clv_now() - started, took));
        if (!good) code = CLI_WRONG;
    }
    cli_grid_clear(&grid);
    clv_text_clear(&notes);
    clv_report_free(report);
    return code;
}

static int run(int argc, char **argv)
{
    demo_args a = { .output = "cleave-demo" };
    cli_option own[OWN_OPTIONS + 1], common[CLI_COMMON_OPTIONS + 1];
    make_table(&a, own);
    cli_common_table(&a.common, common);
    const cli_option *const tables[] = { own, common, NULL };
    clv_context *context = NULL;
    int operands, code = cli_parse(&cli_demo, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_demo, "", operands, argv + 1)) >= 0) return code;
    if ((code = choose(&a)) >= 0) return code;
    if (strlen(a.output) > 3000)
        return cli_error(&cli_demo, CLI_USAGE, "-o: the folder's name is too long");
    const cli_file outputs[] = { { "-o", "paco-frame.png", a.output, 0 },
                                 { "the table", "-", NULL, 0 } };
    code = cli_check_files(&cli_demo, &a.common, NULL, 0, outputs, CLV_LEN(outputs));
    if (code >= 0) return code;
    const double started = clv_now();
    cli_catch_interrupts();
    /* uses the built-in choice among kernels: measuring all of them would take longer than the rest */
    setenv("CLEAVE_TUNE", "0", 0);
    if ((code = cli_common_context(&cli_demo, &a.common, &context)) >= 0) return code;
    tell_machine(context);
    code = cli_status(&cli_demo, clv_dir_make(a.output));
    if (!code) code = show(&a, context, started);
    clv_context_free(context);
    return code;
}

const cli_command cli_demo = {
    .name = "demo",
    .summary = "run every workload on a small input, and make pictures",
    .operands = "[OPTION...]",
    .description =
        "Shows the devices and the mode. Then it runs every workload on a small synthetic input "
        "on\n"
        "all devices of the mode, finds what was hidden in the input, and compares the results\n"
        "with the plain C reference. Pictures and inputs go into DIR.\n\nExit codes: 0 all results "
        "are correct; 1 failed while running; 2 wrong usage; 3 a device or\nmode that was asked "
        "for "
        "is missing; 5 a result is wrong, or something was not found.",
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave selftest`: checks every operation on every device against its reference, each device in a process of its
 * own. */
#include "host/selftest/selftest.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "host/cli/apart.h"
#include "host/cli/clash.h"
#include "host/cli/cli.h"
#include "host/cli/drivers.h"
#include "host/cli/grid.h"
#include "probe/judge/select.h"

#include <cleave/version.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void (*const groups[])(selftest *) = {
    selftest_runtime,  selftest_paco,   selftest_blobs,  selftest_specfit, selftest_transformer,
    selftest_training, selftest_arrays, selftest_search, selftest_generate
};

/* ---- in the main process ------------------------------------------------------------------------------ */

typedef struct selftest_args {
    const char *device, *json;
    double timeout_s;
} selftest_args;

typedef struct session {
    const selftest_args *args;
    const clv_probe_report *report;
    size_t index;   /* index of the device under test */
    char label[64]; /* its name in the table */
    cli_grid grid;
    clv_json *checks; /* checks of the device */
    char doing[80];   /* the check that has begun; "" between two checks */
    double began;
    size_t done, failed;
    clv_text troubles; /* a line for every failed check that has a message */
} session;

static void make_table(selftest_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "device", CLI_TEXT, &a->device, "SEL",
          "use these devices: gpu, cpu, all, N, P:D, name~TEXT, ... [each one once]", NULL,
          "CLEAVE_DEVICE" },
        { "json", CLI_TEXT, &a->json, "FILE", "write the results (schema cleave.selftest/1)" },
        { "timeout", CLI_DOUBLE, &a->timeout_s, "SECONDS", "limit for one check [300]" },
        { NULL },
    };
    memcpy(table, rows, sizeof rows);
}

enum { OPTION_ROWS = 4 };

/* Opens a context with the device under test. The mode is set explicitly, so that $CLEAVE_MODE has no effect. */
static clv_status open_context(const session *s, char *selection, size_t room, selftest *test)
{
    const clv_probe_device *device = &s->report->devices[s->index];
    const bool gpu = device->device_class == CLV_CLASS_DISCRETE_GPU ||
                     device->device_class == CLV_CLASS_INTEGRATED_GPU;
    snprintf(selection, room, "%zu", s->index);
    test->options = (clv_context_options){ .size = sizeof test->options,
                                           .mode = gpu ? CLV_MODE_GPU : CLV_MODE_CPU,
                                           .devices = selection,
                                           .bind_threads = true };
    CLV_TRY(clv_context_create(&test->options, &test->context));
    test->device = clv_context_device(test->context, 0);
    const clv_probe_device *found = clv_device_facts(test->device);
    if (!found->name || !device->name || strcmp(found->name, device->name) != 0)
        return clv_fail(CLV_E_DEVICE, "device %zu is now \"%s\", but it was \"%s\" before",
                        s->index, found->name ? found->name : "", device->name ? device->name : "");
    return CLV_OK;
}

static int test_device(FILE *out, void *user)
{
    const session *s = user;
    char selection[24];
    selftest test = { .out = out };
    selftest_begin(&test, "find the device");
    const clv_status status = open_context(s, selection, sizeof selection, &test);
    selftest_end(&test, status, 0, 0);
    for (size_t i = 0; i < CLV_LEN(groups) && !status; ++i)
        groups[i](&test);
    clv_context_free(test.context);
    return CLI_OK;
}

static void show_row(session *s, const char *check, const clv_json *event, double seconds)
{
    char took[24] = "";
    const bool ok = clv_json_bool(clv_json_get(event, "ok"), false),
               skipped = clv_json_get(event, "skipped") != NULL;
    const clv_json *error = clv_json_get(event, "error"), *limit = clv_json_get(event, "limit");
    cli_grid_cell(&s->grid, CLI_PLAIN, "%s", s->done ? "" : s->label);
    cli_grid_cell(&s->grid, CLI_PLAIN, "%s", check);
    if (clv_json_is_number(error))
        cli_grid_cell(&s->grid, CLI_PLAIN, "%.3g", clv_json_number(error, 0));
    else
        cli_grid_cell(&s->grid, CLI_PLAIN, "%s", skipped ? "" : "-");
    if (clv_json_number(limit, 0) > 0)
        cli_grid_cell(&s->grid, CLI_PLAIN, "%.3g", clv_json_number(limit, 0));
    else
        cli_grid_cell(&s->grid, CLI_PLAIN, "%s", skipped ? "" : "exact");
    if (seconds >= 0) clv_format_seconds(seconds, took);
    cli_grid_cell(&s->grid, CLI_PLAIN, "%s", took);
    cli_grid_cell(&s->grid,
                  skipped ? CLI_DIM
                  : ok    ? CLI_GOOD
                          : CLI_BAD,
                  "%s",
                  skipped ? "skipped"
                  : ok    ? "ok"
                          : "FAILED");
    cli_grid_print(&s->grid, stdout);
    fflush(stdout);
}

/* Records a finished check: a row of the table, an object of the report. */
static void note_check(session *s, const clv_json *event, double seconds)
{
    const char *message = clv_json_string(clv_json_get(event, "message"), NULL),
               *skipped = clv_json_string(clv_json_get(event, "skipped"), NULL);
    const bool ok = clv_json_bool(clv_json_get(event, "ok"), false);
    clv_json *check = clv_json_add_object(s->checks, NULL);
    clv_json_add_string(check, "check", s->doing);
    clv_json_add_bool(check, "ok", ok);
    clv_json_add_copy(check, "error", clv_json_get(event, "error"));
    clv_json_add_copy(check, "limit", clv_json_get(event, "limit"));
    if (seconds >= 0) clv_json_add_number(check, "seconds", seconds);
    if (skipped) clv_json_add_string(check, "skipped", skipped);
    if (message) clv_json_add_string(check, "message", message);
    show_row(s, s->doing, event, seconds);
    if (!ok) ++s->failed;
    ++s->done;
    if (message || skipped)
        clv_text_add(&s->troubles, "%s, %s: %s\n", s->label, s->doing, message ? message : skipped);
    *s->doing = '\0';
}

static void on_line(const char *line, void *user)
{
    session *s = user;
    clv_json *event;
    if (clv_json_parse("a check", line, strlen(line), &event)) return;
    const char *begin = clv_json_string(clv_json_get(event, "begin"), NULL);
    if (begin) {
        clv_copy_string(s->doing, sizeof s->doing, begin);
        s->began = clv_now();
    } else {
        note_check(s, event, clv_json_number(clv_json_get(event, "seconds"), -1));
    }
    clv_json_free(event);
}

/* Records that the process ended inside a check, or between two. */
static void note_end(session *s)
{
    clv_json *event = clv_json_object();
    clv_json_add_bool(event, "ok", false);
    clv_json_add_string(event, "message", clv_error_message());
    if (!*s->doing) clv_copy_string(s->doing, sizeof s->doing, "end of the process");
    note_check(s, event, s->began > 0 ? clv_now() - s->began : 0);
    clv_json_free(event);
}

static void name_device(session *s)
{
    const clv_probe_device *device = &s->report->devices[s->index];
    snprintf(s->label, sizeof s->label, "%zu %.32s [%s]", s->index,
             device->name_clean ? device->name_clean : "device",
             clv_vendor_name(s->report->platforms[device->platform].vendor_norm));
}

/* Tests a device. One that failed its qualification is never used; a single failed row says so. */
static clv_status run_device(session *s, size_t *failed, size_t *done, clv_json *list)
{
    const cli_apart apart = {
        .body = test_device, .line = on_line, .user = s, .patience_s = s->args->timeout_s
    };
    const clv_probe_device *device = &s->report->devices[s->index];
    clv_json *entry = clv_json_add_object(list, NULL);
    s->done = s->failed = 0;
    s->began = 0;
    *s->doing = '\0';
    name_device(s);
    clv_json_add_int(entry, "index", (int64_t)s->index);
    clv_json_add_string(entry, "name", device->name);
    clv_json_add_string(entry, "platform", s->report->platforms[device->platform].name);
    clv_json_add_string(entry, "driver", device->driver_version);
    s->checks = clv_json_add_array(entry, "checks");
    clv_status status = CLV_OK;
    if (device->usable) {
        status = cli_apart_run(&apart);
        if (status && status != CLV_E_CANCELLED) note_end(s);
    } else {
        clv_copy_string(s->doing, sizeof s->doing, "qualification");
        (void)clv_fail(CLV_E_WRONG_RESULT, "%s", device->unusable_reason);
        note_end(s);
    }
    clv_json_add_bool(entry, "ok", !s->failed && !status);
    *failed += s->failed, *done += s->done;
    return status == CLV_E_CANCELLED ? status : CLV_OK;
}

/* Chooses the devices. Without an explicit selection: every piece of hardware once, and devices known to compute
 * wrongly. */
static clv_status choose(const session *s, bool *chosen)
{
    const char *order = s->args->device ? s->args->device : clv_environment("CLEAVE_DEVICE");
    if (order) return clv_select_devices(s->report, order, chosen);
    for (size_t i = 0; i < s->report->device_count; ++i) {
        const clv_probe_device *d = &s->report->devices[i];
        chosen[i] = (d->usable && d->duplicate_of == SIZE_MAX) || (d->check.done && !d->check.ok);
    }
    return CLV_OK;
}

static int write_results(const session *s, clv_json *root, bool ok, bool complete)
{
    clv_json_add_bool(root, "ok", ok);
    clv_json_add_bool(root, "complete", complete);
    return s->args->json ? cli_status(&cli_selftest, clv_json_write(root, s->args->json)) : CLI_OK;
}

static clv_json *start_results(const clv_probe_report *report)
{
    char now[32];
    clv_utc(now, sizeof now);
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.selftest/1");
    clv_json_add_string(root, "version", clv_version());
    clv_json_add_string(root, "time_utc", now);
    clv_json_add_string(root, "cpu", report->host.cpu_model);
    return root;
}

static int run_all(session *s, const bool *chosen)
{
    assert(chosen);
    size_t failed = 0, done = 0, devices = 0;
    char took[24];
    const double started = clv_now();
    clv_status status = CLV_OK;
    clv_json *root = start_results(s->report), *list = clv_json_add_array(root, "devices");
    for (size_t i = 0; i < s->report->device_count && !status; ++i) {
        if (!chosen[i]) continue;
        s->index = i;
        ++devices;
        status = run_device(s, &failed, &done, list);
    }
    cli_say(stdout, "%s", clv_text_get(&s->troubles));
    int code = cli_status(&cli_selftest, status);
    const int written = write_results(s, root, !failed && !status, !status);
    if (!code) code = written;
    clv_json_free(root);
    if (code) return code;
    clv_format_seconds(clv_now() - started, took);
    if (!devices)
        cli_say(stdout, "No OpenCL device on this machine: the plain C path, which devices are "
                        "compared with, computes everything. `cleave probe` shows more.\n");
    else if (failed)
        cli_say(stdout, "%zu of %zu checks on %zu device%s failed; %s\n", failed, done, devices,
                devices == 1 ? "" : "s", took);
    else
        cli_say(stdout, "%zu checks on %zu device%s passed; %s\n", done, devices,
                devices == 1 ? "" : "s", took);
    return failed ? CLI_WRONG : CLI_OK;
}

static int run(int argc, char **argv)
{
    static const cli_column columns[] = { { "device", false, 22 }, { "check", false, 47 },
                                          { "worst error", true }, { "limit", true },
                                          { "time", true, 7 },     { "", false } };
    selftest_args args = { .timeout_s = 300 };
    cli_option table[OPTION_ROWS];
    const cli_option *const tables[] = { table, NULL };
    int operands;
    make_table(&args, table);
    int code = cli_parse(&cli_selftest, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_selftest, "", operands, argv + 1)) >= 0) return code;
    if (!(args.timeout_s > 0))
        return cli_error(&cli_selftest, CLI_USAGE,
                         "--timeout is %g, but it must be a number of seconds above 0",
                         args.timeout_s);
    const cli_file output = { "--json", args.json, NULL, CLI_JSON | CLI_NO_STREAM };
    if ((code = cli_check_files(&cli_selftest, NULL, NULL, 0, &output, 1)) >= 0) return code;

    cli_catch_interrupts();
    unsetenv("CLEAVE_MODE"); /* every device is tested alone */
    const clv_probe_options options = { .size = sizeof options,
                                        .devices = args.device,
                                        .devices_by = "--device",
                                        .isolate = true,
                                        .helper = "/proc/self/exe" };
    clv_probe_report *report;
    cli_vet_drivers(&cli_selftest, false);
    const clv_status status = clv_probe_run(&options, &report);
    if (status) return cli_status(&cli_selftest, status);
    session s = { .args = &args,
                  .report = report,
                  .grid = { .columns = columns, .column_count = CLV_LEN(columns) } };
    bool *chosen = clv_zalloc(report->device_count + 1, sizeof *chosen);
    code = chosen ? cli_status(&cli_selftest, choose(&s, chosen))
                  : cli_error(&cli_selftest, CLI_FAILED, "out of memory");
    if (!code) code = run_all(&s, chosen);
    clv_text_clear(&s.troubles);
    cli_grid_clear(&s.grid);
    clv_free(chosen);
    clv_probe_free(report);
    return code;
}

const cli_command cli_selftest = {
    .name = "selftest",
    .summary = "check every operation on every device against its reference",
    .operands = "[OPTION...]",
    .description =
        "Runs transfers, kernels, jobs and every operation on each device alone and compares the\n"
        "results with the plain C reference. Each device has a process of its own: a driver that\n"
        "crashes or hangs is a failed check. Entries that show the same hardware again are tested\n"
        "only if --device names them.\n\n"
        "Exit codes: 0 all checks passed; 1 the checks could not run; 2 wrong usage; 3 a device\n"
        "that was asked for is missing; 5 a check failed.",
    .run = run,
};

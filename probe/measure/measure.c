/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and measures the devices of a report, in helper processes or in this process. */
#include "probe/measure/measure.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "probe/measure/bench.h"
#include "probe/measure/check.h"
#include "probe/helper/isolate.h"
#include "probe/judge/quirks.h"
#include "probe/measure/record.h"
#include "probe/report/report.h"
#include "probe/memory/trial.h"

#include <stdio.h>
#include <string.h>

enum { CHECK_S = 60, BENCH_S = 120 }; /* default time limits per device, in seconds */

typedef enum errand { CHECK, BENCH, TRIAL } errand;

static const double patience_s[] = { [CHECK] = CHECK_S, [BENCH] = BENCH_S, [TRIAL] = BENCH_S };

typedef struct campaign {
    clv_machine *machine;
    const clv_probe_options *options;
    const bool *wanted;
} campaign;

static bool is_due(const campaign *c, size_t index)
{
    const clv_probe_device *device = &c->machine->devices[index];
    if (c->wanted && !c->wanted[index]) return false;
    /* checks also devices that failed earlier, because the cause may have been fixed */
    return device->usable || device->check.done;
}

static bool is_due_for_bench(const campaign *c, size_t index)
{
    const clv_probe_check *check = &c->machine->devices[index].check;
    return is_due(c, index) && (!check->done || check->ok);
}

/* Returns whether the device's memory is to be filled for the free-memory trial. If several entries are one card, only
 * the first is used, unless the user named another. */
static bool is_due_for_trial(const campaign *c, size_t index)
{
    const clv_probe_device *device = &c->machine->devices[index];
    return c->options->measure_free && clv_trial_makes_sense(device) &&
           (c->wanted ? c->wanted[index] : device->primary);
}

static void keep(const campaign *c, size_t index)
{
    const clv_probe_report *report = &c->machine->report;
    const clv_probe_device *device = &report->devices[index];
    if (clv_record_save(&report->host, &report->platforms[device->platform], device))
        clv_cache_lost();
}

static clv_probe_rates no_rates(void)
{
    return (clv_probe_rates){ -1, -1, -1, -1, -1, -1, -1, -1, NULL, NULL };
}

/* Stores the result of a free-memory trial. If the trial failed, the value from the vendor's library stays. */
static void note_trial(clv_machine *machine, clv_probe_device *device, const clv_trial *trial)
{
    char why[sizeof trial->message + 40];
    if (trial->free_bytes != CLV_UNKNOWN) {
        clv_machine_set_free(machine, device, trial->free_bytes, "trial allocation");
    } else if (device->free_bytes == CLV_UNKNOWN) {
        snprintf(why, sizeof why, "unknown, the trial failed: %s", trial->message);
        device->free_source = clv_machine_foreign(machine, why, sizeof why);
    }
}

/* ---- in this process ------------------------------------------------------------------------- */

static void keep_texts(clv_machine *machine, clv_probe_device *device)
{
    device->check.message = clv_machine_keep(machine, device->check.message);
    device->measured.date = clv_machine_keep(machine, device->measured.date);
    device->measured.protocol = clv_machine_keep(machine, device->measured.protocol);
}

static clv_status look_around(const campaign *c, const char *doing, size_t index)
{
    char line[160];
    const char *name = c->machine->devices[index].name_clean;
    snprintf(line, sizeof line, "%s %zu (%.80s)", doing, index, name ? name : "");
    if (c->options->progress && c->options->progress(line, c->options->progress_user))
        return clv_fail(CLV_E_CANCELLED, "probe: stopped early (%s)", line);
    return CLV_OK;
}

static clv_status measure_here(const campaign *c)
{
    for (size_t i = 0; i < c->machine->report.device_count; ++i) {
        clv_probe_device *device = &c->machine->devices[i];
        clv_check found;
        clv_bench_result result;
        if (c->options->check && is_due(c, i)) {
            CLV_TRY(look_around(c, "checking", i));
            clv_check_device(device, &found);
            device->check = found.check;
            keep_texts(c->machine, device);
        }
        if (c->options->bench && is_due_for_bench(c, i)) {
            CLV_TRY(look_around(c, "measuring", i));
            clv_bench_device(device, c->options->bench, &result);
            device->measured = result.rates;
            keep_texts(c->machine, device);
        }
        if (is_due(c, i) && (c->options->check || c->options->bench)) keep(c, i);
        if (is_due_for_trial(c, i)) {
            clv_trial trial;
            CLV_TRY(look_around(c, "filling the memory of", i));
            clv_trial_device(device, &trial);
            note_trial(c->machine, device, &trial);
        }
    }
    return CLV_OK;
}

/* ---- in helpers ------------------------------------------------------------------------------ */

/* Parses an answer to "trial"; returns false if the answer is invalid. */
static bool read_trial(const clv_json *root, clv_trial *trial)
{
    const clv_json *object = clv_json_get(root, "trial");
    const clv_json *bytes = clv_json_get(object, "free_bytes");
    *trial = (clv_trial){ .free_bytes = CLV_UNKNOWN };
    if (!clv_json_is_object(object)) return false;
    /* -1 also stands for a number larger than any real memory */
    const int64_t number = clv_json_int(bytes, -1);
    if (number >= 0) trial->free_bytes = (uint64_t)number;
    clv_copy_string(trial->message, sizeof trial->message,
                    clv_json_string(clv_json_get(object, "message"), "no details"));
    return true;
}

clv_status clv_measure_read(clv_machine *machine, const char *text, size_t length,
                            clv_probe_device *device)
{
    clv_json *root = NULL;
    clv_probe_check check = clv_device_unknown().check;
    clv_probe_rates rates = no_rates();
    CLV_TRY(clv_json_parse("answer", text, length, &root));
    clv_status status = clv_report_read_check(machine, clv_json_get(root, "check"), &check);
    if (!status) status = clv_report_read_rates(machine, clv_json_get(root, "measured"), &rates);
    clv_trial trial;
    const bool tried = read_trial(root, &trial);
    if (!status && !check.done && !rates.date && !tried)
        status = clv_fail(CLV_E_FORMAT, "the helper's answer is neither a check nor a measurement");
    if (!status && tried) note_trial(machine, device, &trial);
    if (!status && check.done) device->check = check;
    if (!status && rates.date) device->measured = rates;
    clv_json_free(root);
    return status;
}

static void note_failure(const campaign *c, clv_probe_device *device, errand job,
                         const char *message)
{
    char now[32];
    if (job == TRIAL) {
        clv_trial trial = { .free_bytes = CLV_UNKNOWN };
        clv_copy_string(trial.message, sizeof trial.message, message);
        note_trial(c->machine, device, &trial);
        return;
    }
    if (job == CHECK) {
        device->check = clv_device_unknown().check;
        device->check.done = device->check.crashed = true;
        device->check.message = clv_machine_foreign(c->machine, message, strlen(message));
        return;
    }
    clv_utc(now, sizeof now);
    device->measured = no_rates();
    device->measured.date = clv_machine_keep(c->machine, now);
    device->measured.protocol = clv_machine_text(c->machine, "failed: %s", message);
}

/* Appends the last line that the driver printed before it ended, because this line often says what was missing. */
static void add_last_words(const clv_child *child, char *message, size_t capacity)
{
    const clv_text *said = &child->output[child->output[1].length ? 1 : 0];
    const char *text = clv_text_get(said);
    size_t end = said->length, start, used = strlen(message);
    while (end && ((unsigned char)text[end - 1] <= ' ' || text[end - 1] == '.'))
        --end;
    for (start = end; start && text[start - 1] != '\n';)
        --start;
    if (end == start) return;
    snprintf(message + used, capacity - used, ": %.*s", (int)CLV_MIN(end - start, (size_t)120),
             text + start);
}

static bool task_was_hurried(const clv_task *task, errand job, double timeout_s)
{
    const bool late =
        task->child.end == CLV_CHILD_TIMEOUT || task->child.end == CLV_CHILD_UNKILLABLE;
    return late && timeout_s < patience_s[job];
}

static void read_answer(const campaign *c, const clv_task *task, errand job, double timeout_s)
{
    clv_probe_device *device = &c->machine->devices[task->about];
    char message[400];
    const char *failure = clv_child_failure(&task->child, timeout_s, message, sizeof message);
    if (failure) add_last_words(&task->child, message, sizeof message);
    const clv_status read = failure ? CLV_OK
                                    : clv_measure_read(c->machine, task->child.result.data,
                                                       task->child.result.length, device);
    if (read) {
        failure = "bad_output";
        clv_copy_string(message, sizeof message, clv_error_message());
    }
    const bool hindered = failure ? read == CLV_E_MEMORY || clv_child_was_hindered(&task->child)
                          : device->check.ok ? false
                                             : clv_has_tight_limits();
    if (hindered) c->machine->hindered = true;
    if (failure) note_failure(c, device, job, message);
    /* a short timeout or a helper killed from outside says nothing about the driver, so it is not recorded */
    if (job != TRIAL && !hindered && !task_was_hurried(task, job, timeout_s)) keep(c, task->about);
}

static clv_status prepare(const campaign *c, clv_nest *nest, const char *helper, const char *job,
                          size_t index, clv_task *task)
{
    const clv_probe_report *report = &c->machine->report;
    const clv_probe_device *device = &report->devices[index];
    const clv_probe_platform *platform = &report->platforms[device->platform];
    const char *library =
        platform->icd < report->icd_count ? report->icds[platform->icd].library : NULL;
    snprintf(task->numbers[1], sizeof task->numbers[1], "%u", platform->ordinal);
    snprintf(task->numbers[2], sizeof task->numbers[2], "%u", device->ordinal);
    task->about = index;
    return clv_task_prepare(task, nest, helper, library, job, task->numbers[1], task->numbers[2]);
}

static clv_status check_in_helpers(const campaign *c, clv_nest *nest, const char *helper)
{
    const clv_patience patience = {
        .timeout_s = c->options->timeout_s > 0 ? c->options->timeout_s : CHECK_S,
        .progress = c->options->progress,
        .user = c->options->progress_user,
        .doing = "checking the devices",
    };
    size_t count = 0;
    clv_task *tasks = clv_zalloc(c->machine->report.device_count, sizeof *tasks);
    clv_status status =
        tasks ? CLV_OK : clv_fail(CLV_E_MEMORY, "probe: not enough memory for helpers");
    for (size_t i = 0; !status && i < c->machine->report.device_count; ++i) {
        if (!is_due(c, i)) continue;
        status = prepare(c, nest, helper, "check", i, &tasks[count]);
        if (!status) ++count;
    }
    if (!status) status = clv_tasks_run(tasks, count, &patience);
    for (size_t i = 0; i < count; ++i) {
        if (!status) read_answer(c, &tasks[i], CHECK, patience.timeout_s);
        clv_task_clear(&tasks[i]);
    }
    clv_free(tasks);
    return status;
}

/* Runs a helper for one device while no other helper runs. */
static clv_status run_alone(const campaign *c, clv_nest *nest, const char *helper, errand job,
                            size_t index)
{
    const char *const words[] = { [BENCH] = "measuring", [TRIAL] = "filling the memory of" };
    const char *const orders[] = {
        [BENCH] = c->options->bench == CLV_BENCH_FULL ? "bench-full" : "bench-quick",
        [TRIAL] = "trial",
    };
    char doing[160];
    const char *name = c->machine->devices[index].name_clean;
    snprintf(doing, sizeof doing, "%s %zu (%.80s)", words[job], index, name ? name : "");
    const clv_patience patience = {
        .timeout_s = c->options->timeout_s > 0 ? c->options->timeout_s : patience_s[job],
        .progress = c->options->progress,
        .user = c->options->progress_user,
        .doing = doing,
    };
    clv_task task = { 0 };
    clv_status status = prepare(c, nest, helper, orders[job], index, &task);
    if (!status) status = clv_tasks_run(&task, 1, &patience);
    if (!status) read_answer(c, &task, job, patience.timeout_s);
    clv_task_clear(&task);
    return status;
}

static clv_status measure_in_helpers(const campaign *c)
{
    char helper[PATH_MAX];
    clv_nest nest = { 0 };
    CLV_TRY(clv_helper_find(c->options->helper, helper, sizeof helper));
    clv_status status = clv_nest_open(&nest);
    if (!status && c->options->check) status = check_in_helpers(c, &nest, helper);
    for (size_t i = 0; !status && i < c->machine->report.device_count; ++i)
        if (c->options->bench && is_due_for_bench(c, i))
            status = run_alone(c, &nest, helper, BENCH, i);
    for (size_t i = 0; !status && i < c->machine->report.device_count; ++i)
        if (is_due_for_trial(c, i)) status = run_alone(c, &nest, helper, TRIAL, i);
    clv_nest_close(&nest);
    return status;
}

clv_status clv_measure_devices(clv_machine *machine, const clv_probe_options *options,
                               const bool *wanted)
{
    const campaign c = { .machine = machine, .options = options, .wanted = wanted };
    if (!options->check && !options->bench && !options->measure_free) return CLV_OK;
    return options->isolate ? measure_in_helpers(&c) : measure_here(&c);
}

/* ---- for the runtime ------------------------------------------------------------------------- */

clv_status clv_qualify_device(const clv_probe_report *report, size_t index,
                              clv_qualification *qualification)
{
    clv_probe_device device = report->devices[index];
    const double start = clv_now();
    clv_check found;
    *qualification = (clv_qualification){ .from_disk = device.check.done };
    if (!device.check.done) {
        if (!device.native_device)
            return clv_fail(CLV_E_ARGUMENT, "qualify: the report was not made in this process");
        clv_check_device(&device, &found);
        device.check = found.check;
        if (clv_record_save(&report->host, &report->platforms[device.platform], &device))
            clv_cache_lost();
        clv_quirk_findings(&device.check, &device.flags);
    }
    qualification->ok = device.check.ok;
    qualification->flags = device.flags;
    qualification->seconds = clv_now() - start;
    clv_copy_string(qualification->message, sizeof qualification->message,
                    device.check.message ? device.check.message : "");
    return CLV_OK;
}

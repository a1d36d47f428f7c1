/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one helper process per driver, and reads its answer and the way in which it ended. */
#define _GNU_SOURCE
#include "probe/helper/isolate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "probe/helper/child.h"
#include "probe/host/host.h"
#include "probe/opencl/icd.h"
#include "probe/opencl/opencl.h"
#include "probe/report/report.h"
#include "probe/helper/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the helper's path ----------------------------------------------------------------------- */

clv_status clv_helper_find(const char *wanted, char *path, size_t capacity)
{
    Dl_info here;
    if (wanted) {
        clv_copy_string(path, capacity, wanted);
        if (access(path, X_OK) == 0) return CLV_OK;
        return clv_fail(CLV_E_IO, "probe: the helper program %s cannot be started: %s", wanted,
                        strerror(errno));
    }
    clv_copy_string(path, capacity, CLEAVE_HELPER_PATH);
    if (access(path, X_OK) == 0) return CLV_OK;
    /* if the installation was moved, searches beside the library, which is in lib or in lib/ARCHITECTURE */
    static const char *const up[] = { "..", "../.." };
    const bool found = dladdr((void *)(uintptr_t)clv_helper_find, &here) && here.dli_fname;
    const char *slash = found ? strrchr(here.dli_fname, '/') : NULL;
    for (size_t i = 0; slash && i < CLV_LEN(up); ++i) {
        snprintf(path, capacity, "%.*s/%s/libexec/cleave/%s", (int)(slash - here.dli_fname),
                 here.dli_fname, up[i], strrchr(CLEAVE_HELPER_PATH, '/') + 1);
        if (access(path, X_OK) == 0) return CLV_OK;
    }
    return clv_fail(CLV_E_IO,
                    "probe: there is no helper program at %s; give its path (helper), or do not "
                    "isolate the drivers",
                    CLEAVE_HELPER_PATH);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

clv_status clv_task_prepare(clv_task *task, clv_nest *nest, const char *helper, const char *library,
                            const char *job, const char *first, const char *second)
{
    char cache[PATH_MAX];
    clv_cache_dir(cache, sizeof cache);
    const bool fresh = *cache && strcmp(job, "check") == 0;
    snprintf(task->numbers[0], sizeof task->numbers[0], "%ld", (long)getpid());
    CLV_TRY(clv_nest_environment(nest, library, fresh, &task->environment));
    const char *const argv[] = { helper, "probe", CLV_HELPER_MARK, task->numbers[0],
                                 job,    first,   second };
    memcpy(task->argv, argv, sizeof argv);
    task->child = (clv_child){ .argv = task->argv, .envp = task->environment };
    return CLV_OK;
}

void clv_task_clear(clv_task *task)
{
    clv_child_clear(&task->child);
    clv_nest_free_environment(task->environment);
    task->environment = NULL;
}

static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "segmentation fault";
    case SIGABRT:
        return "abort";
    case SIGBUS:
        return "bus error";
    case SIGILL:
        return "illegal instruction";
    case SIGFPE:
        return "arithmetic exception";
    case SIGKILL:
        return "killed";
    default:
        return "signal";
    }
}

bool clv_has_tight_limits(void)
{
    static const struct {
        int what;
        rlim_t roomy; /* value that has been enough for every driver seen so far */
    } limits[] = {
        { RLIMIT_AS, (rlim_t)1 << 40 }, { RLIMIT_DATA, (rlim_t)1 << 40 },
        { RLIMIT_CPU, 86400 },          { RLIMIT_FSIZE, (rlim_t)1 << 30 },
        { RLIMIT_NOFILE, 256 },         { RLIMIT_STACK, 1 << 20 },
        { RLIMIT_NPROC, 512 },
    };
    for (size_t i = 0; i < CLV_LEN(limits); ++i) {
        struct rlimit limit;
        if (getrlimit(limits[i].what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
            limit.rlim_cur < limits[i].roomy)
            return true;
    }
    return false;
}

bool clv_child_was_hindered(const clv_child *child)
{
    static const int outside[] = { SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ };
    if (child->end == CLV_CHILD_NOT_STARTED || clv_has_tight_limits()) return true;
    if (child->end == CLV_CHILD_EXITED &&
        (child->code == CLV_CHILD_NO_MEMORY || child->result.failed))
        return true;
    if (child->starved && (child->end == CLV_CHILD_TIMEOUT || child->end == CLV_CHILD_UNKILLABLE))
        return true;
    for (size_t i = 0; i < CLV_LEN(outside); ++i)
        if (child->end == CLV_CHILD_SIGNALED && child->code == outside[i]) return true;
    return false;
}

const char *clv_child_failure(const clv_child *child, double timeout_s, char *message,
                              size_t capacity)
{
    const char *busy = child->starved ? "; it waited for a busy processor for most of that" : "";
    switch (child->end) {
    case CLV_CHILD_EXITED:
        if (child->result_too_long) {
            snprintf(message, capacity, "the driver answers more than 4 MiB");
            return "bad_output";
        }
        if (child->code == 0 && child->result.length && !child->result.failed) return NULL;
        if (child->code == CLV_CHILD_NO_MEMORY || (child->code == 0 && child->result.failed))
            snprintf(message, capacity, "there was not enough memory to ask the driver");
        else
            snprintf(message, capacity,
                     "the driver ended the process (exit code %d) before it answered", child->code);
        return "crashed";
    case CLV_CHILD_SIGNALED:
        snprintf(message, capacity, "the driver crashed (signal %d, %s)", child->code,
                 signal_name(child->code));
        return "crashed";
    case CLV_CHILD_TIMEOUT:
        clv_format(message, capacity, "the driver did not answer within %.3g s%s", timeout_s, busy);
        return "timeout";
    case CLV_CHILD_UNKILLABLE:
        snprintf(message, capacity,
                 "the driver did not answer within %.3g s and cannot be killed%s", timeout_s, busy);
        return "hung_unkillable";
    case CLV_CHILD_NOT_STARTED:
        break;
    }
    snprintf(message, capacity, "its helper could not be started: %s", strerror(child->code));
    return "crashed";
}

/* ---- answers --------------------------------------------------------------------------------- */

clv_status clv_isolated_read(clv_machine *machine, const char *text, size_t length, size_t icd)
{
    clv_json *root = NULL;
    const size_t platforms = machine->report.platform_count, devices = machine->report.device_count;
    clv_status status = clv_json_parse("answer", text, length, &root);
    if (!status) status = clv_report_read_facts(machine, root, icd, "answer");
    if (!status) {
        const char *path = clv_json_string(clv_json_get(root, "library_path"), NULL);
        const char *problem = clv_json_string(clv_json_get(root, "problem"), NULL);
        if (path) machine->icds[icd].library_path = clv_machine_foreign(machine, path, PATH_MAX);
        if (problem) {
            machine->icds[icd].status = "missing";
            machine->icds[icd].message = clv_machine_foreign(machine, problem, 4096);
        }
    } else {
        machine->report.platform_count = platforms;
        machine->report.device_count = devices;
    }
    clv_json_free(root);
    return status;
}

static void judge(clv_machine *machine, size_t index, const clv_child *child, double timeout_s)
{
    clv_probe_icd *icd = &machine->icds[index];
    const size_t platforms = machine->report.platform_count;
    clv_text output = { 0 };
    char message[160] = "";
    icd->duration_s = child->duration_s;
    clv_text_bytes(&output, child->output[0].data, child->output[0].length);
    clv_text_bytes(&output, child->output[1].data, child->output[1].length);
    icd->driver_output = clv_machine_foreign(machine, output.data, output.length);
    clv_text_clear(&output);

    const char *status = clv_child_failure(child, timeout_s, message, sizeof message);
    if (child->end == CLV_CHILD_SIGNALED) icd->signal = child->code;
    const clv_status read =
        status ? CLV_OK
               : clv_isolated_read(machine, child->result.data, child->result.length, index);
    if (read) {
        status = "bad_output";
        clv_copy_string(message, sizeof message, clv_error_message());
    }
    /* the helper's answer states the reason */
    if (!status && strcmp(icd->status, "missing") == 0) return;
    if (!status && machine->report.platform_count == platforms) {
        status = "no_platform";
        clv_copy_string(message, sizeof message, "the driver loads but offers no platform");
    }
    if (status && (read == CLV_E_MEMORY || clv_child_was_hindered(child))) machine->hindered = true;
    icd->status = status ? status : "ok";
    icd->message = status ? clv_machine_keep(machine, message) : NULL;
}

/* ---- all drivers ----------------------------------------------------------------------------- */

/* Lists the drivers. A libOpenCL that is itself a driver (oclgrind, a vendor's own) has no list of drivers, and a
 * loader may find drivers in unknown places. In these cases, one helper enumerates whatever the loader finds. */
void clv_isolated_list(clv_machine *machine)
{
    clv_loader_facts(machine, false);
    const char *loader = machine->report.loader_path;
    const char *slash = loader ? strrchr(loader, '/') : NULL;
    const bool direct = loader && !clv_starts_with(slash ? slash + 1 : loader, "libOpenCL");
    if (!direct) clv_icds_list(machine);
    if (machine->report.icd_count) return;
    clv_probe_icd *icd = clv_machine_add_icd(machine);
    if (icd && direct) icd->library_path = loader;
}

static void drop_empty_guess(clv_machine *machine)
{
    clv_probe_report *report = &machine->report;
    if (report->icd_count == 1 && !report->icds[0].file && !report->icds[0].library &&
        !report->platform_count && strcmp(report->icds[0].status, "no_platform") == 0)
        report->icd_count = 0;
}

/* Reads the helper's answer about LAPACK; without a valid answer the facts stay unknown. */
static void read_lapack(clv_machine *machine, const clv_child *child)
{
    clv_probe_host *host = &machine->report.host;
    clv_json *root;
    if (child->end != CLV_CHILD_EXITED || child->code ||
        clv_json_parse("answer", child->result.data, child->result.length, &root))
        return;
    const char *library = clv_json_string(clv_json_get(root, "library"), NULL);
    host->lapack = library ? CLV_YES : CLV_NO;
    if (library) host->lapack_library = clv_machine_foreign(machine, library, 64);
    clv_json_free(root);
}

static clv_status prepare(clv_machine *machine, clv_nest *nest, const char *helper,
                          const bool *wanted, clv_task *tasks, size_t *count)
{
    for (size_t i = 0; i < machine->report.icd_count; ++i) {
        const clv_probe_icd *icd = &machine->icds[i];
        if (strcmp(icd->status, "missing") == 0) continue; /* there is no library to load */
        if (wanted && !wanted[i]) continue;
        tasks[*count].about = i;
        CLV_TRY(clv_task_prepare(&tasks[*count], nest, helper, icd->library, "enumerate",
                                 icd->library, NULL));
        ++*count;
    }
    if (wanted) return CLV_OK;
    tasks[*count].about = SIZE_MAX; /* this task has no driver: it finds the host's LAPACK */
    CLV_TRY(clv_task_prepare(&tasks[*count], nest, helper, NULL, "lapack", NULL, NULL));
    ++*count;
    return CLV_OK;
}

clv_status clv_tasks_run(clv_task *tasks, size_t count, const clv_patience *patience)
{
    clv_child **children = clv_zalloc(count, sizeof(clv_child *));
    if (!children) return clv_fail(CLV_E_MEMORY, "probe: not enough memory for helpers");
    for (size_t i = 0; i < count; ++i)
        children[i] = &tasks[i].child;
    const bool finished = clv_children_run(children, count, patience);
    clv_free(children);
    return finished ? CLV_OK
                    : clv_fail(CLV_E_CANCELLED, "probe: stopped early (%s)", patience->doing);
}

static clv_status ask(clv_machine *machine, const clv_probe_options *options, const bool *wanted,
                      void (*meanwhile)(void *machine))
{
    const clv_patience patience = {
        .timeout_s = options->timeout_s > 0 ? options->timeout_s : 10,
        .progress = options->progress,
        .user = options->progress_user,
        .doing = "waiting for OpenCL drivers",
        .meanwhile = meanwhile,
        .meanwhile_with = machine,
    };
    char helper[PATH_MAX];
    clv_nest nest = { 0 };
    size_t count = 0;
    CLV_TRY(clv_helper_find(options->helper, helper, sizeof helper));

    clv_task *tasks = clv_zalloc(machine->report.icd_count + 1, sizeof *tasks);
    clv_status status = tasks ? clv_nest_open(&nest)
                              : clv_fail(CLV_E_MEMORY, "probe: not enough memory for helpers");
    if (!status) status = prepare(machine, &nest, helper, wanted, tasks, &count);
    if (!status) status = clv_tasks_run(tasks, count, &patience);
    for (size_t i = 0; !status && i < count; ++i)
        if (tasks[i].about == SIZE_MAX)
            read_lapack(machine, &tasks[i].child);
        else
            judge(machine, tasks[i].about, &tasks[i].child, patience.timeout_s);
    if (!status) drop_empty_guess(machine);
    machine->report.isolated = true;
    for (size_t i = 0; i < count; ++i)
        clv_task_clear(&tasks[i]);
    clv_nest_close(&nest);
    clv_free(tasks);
    return status;
}

clv_status clv_isolated_ask(clv_machine *machine, const clv_probe_options *options,
                            const bool *wanted)
{
    return ask(machine, options, wanted, NULL);
}

static void look_at_host(void *machine)
{
    clv_host_facts(machine, "");
}

clv_status clv_isolated_enumerate(clv_machine *machine, const clv_probe_options *options)
{
    clv_isolated_list(machine);
    return ask(machine, options, NULL, look_at_host);
}

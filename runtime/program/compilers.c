/* SPDX-License-Identifier: Apache-2.0 */
/* Starts helper processes that compile programs, watches them, and takes their results. */
#include "runtime/program/compilers.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "probe/helper/compile.h"
#include "probe/helper/isolate.h"
#include "runtime/program/cache.h"
#include "runtime/program/program.h"
#include "runtime/record/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double patience_s = 300; /* seconds for all helpers; then launches compile the rest */

typedef struct campaign {
    clv_device *device;
    clv_compile_item *items;
    size_t count, kernels;
    clv_nest nest;
    char helper[PATH_MAX], folder[PATH_MAX], place[48];
    clv_task *tasks;
    size_t task_count;
    clv_ahead_progress *progress;
    void *user;
} campaign;

/* ---- the list -------------------------------------------------------------------------------- */

static void add_kernel(clv_json *kernels, const clv_kernel_use *use)
{
    clv_json *kernel = clv_json_add_object(kernels, NULL);
    clv_json_add_string(kernel, "name", use->name);
    clv_json_add_string(kernel, "args", use->args);
    clv_json *local = clv_json_add_array(kernel, "local");
    for (size_t i = 0; i < CLV_LEN(use->local) && use->local[i]; ++i)
        clv_json_add_int(local, NULL, (int64_t)use->local[i]);
}

/* Writes the list of programs for the helpers. The lock is held, because another thread may build one of the
 * programs, which frees its source text. */
static char *make_list(const campaign *c)
{
    const clv_device *device = c->device;
    clv_json *root = clv_json_object();
    clv_json_add_bool(root, "launch", device->facts->flags.slow_first_launch);
    clv_json_add_bool(root, "binaries", !device->driver_cache);
    clv_json *programs = clv_json_add_array(root, "programs");
    for (size_t i = 0; i < c->count; ++i) {
        const clv_program *p = c->items[i].program;
        clv_json *program = clv_json_add_object(programs, NULL);
        clv_json_add_string(program, "source", p->text.data);
        clv_json_add_string(program, "options", p->options);
        clv_json *kernels = clv_json_add_array(program, "kernels");
        for (const clv_kernel_use *u = p->uses; u; u = u->next)
            if (u->args && !u->compiled) add_kernel(kernels, u);
    }
    char *text = clv_json_text(root, true);
    clv_json_free(root);
    return text;
}

static clv_status write_list(const campaign *c)
{
    char path[PATH_MAX + 16];
    pthread_mutex_lock(&c->device->program_lock);
    char *text = make_list(c);
    pthread_mutex_unlock(&c->device->program_lock);
    if (!text) return clv_fail(CLV_E_MEMORY, "not enough memory for a list of kernels");
    snprintf(path, sizeof path, "%s/%s", c->folder, CLV_COMPILE_LIST);
    const clv_status status = clv_file_write_private(path, text, strlen(text));
    clv_json_text_free(text);
    return status;
}

static clv_status write_files(const campaign *c)
{
    static const unsigned first = 0;
    char path[PATH_MAX + 16];
    CLV_TRY(write_list(c));
    snprintf(path, sizeof path, "%s/%s", c->folder, CLV_COMPILE_NEXT);
    return clv_file_write_private(path, &first, sizeof first);
}

/* ---- helpers --------------------------------------------------------------------------------- */

static clv_status prepare(campaign *c)
{
    const clv_device *device = c->device;
    const clv_probe_report *probe = device->probe;
    const clv_probe_platform *platform = &probe->platforms[device->facts->platform];
    const char *library =
        platform->icd < probe->icd_count ? probe->icds[platform->icd].library : NULL;
    CLV_TRY(clv_helper_find(device->helper, c->helper, sizeof c->helper));
    CLV_TRY(clv_nest_open(&c->nest));
    if ((size_t)snprintf(c->folder, sizeof c->folder, "%s", c->nest.base) >= sizeof c->folder)
        return clv_fail(CLV_E_IO, "%s: the name is too long", c->nest.base);
    CLV_TRY(write_files(c));
    snprintf(c->place, sizeof c->place, "%u:%u", platform->ordinal, device->facts->ordinal);
    const size_t most = CLV_MIN((size_t)device->compilers, c->count);
    c->tasks = clv_zalloc(most, sizeof *c->tasks);
    if (!c->tasks) return clv_fail(CLV_E_MEMORY, "not enough memory for helpers");
    for (; c->task_count < most; ++c->task_count)
        CLV_TRY(clv_task_prepare(&c->tasks[c->task_count], &c->nest, c->helper, library, "compile",
                                 c->place, c->folder));
    return CLV_OK;
}

/* Reads the complete lines "N SECONDS" of a helper; each says that program N is done. */
static void read_lines(campaign *c, const clv_text *said)
{
    const char *text = clv_text_get(said);
    for (const char *newline; (newline = strchr(text, '\n')); text = newline + 1) {
        char *end;
        const unsigned long index = strtoul(text, &end, 10);
        if (end != text && *end == ' ' && index < c->count) c->items[index].done = true;
    }
}

static size_t count_done(campaign *c)
{
    size_t done = 0;
    for (size_t i = 0; i < c->task_count; ++i)
        read_lines(c, &c->tasks[i].child.result);
    for (size_t i = 0; i < c->count; ++i)
        done += c->items[i].done ? c->items[i].kernels : 0;
    return done;
}

static int look(const char *doing, void *user)
{
    campaign *c = user;
    (void)doing;
    return c->progress ? c->progress(count_done(c), c->kernels, c->user) : 0;
}

/* Puts a helper's binary into the cache untested: a driver that takes its own binary for damaged reports that when
 * the binary is loaded. */
static bool keep_binary(const campaign *c, size_t index)
{
    enum { MOST_BYTES = 256 << 20 };
    char path[PATH_MAX + 32], *binary;
    size_t length;
    snprintf(path, sizeof path, "%s/%zu.bin", c->folder, index);
    if (clv_file_read_plain(path, MOST_BYTES, &binary, &length)) return false;
    clv_cache_store(c->device->cache, c->items[index].program->key, binary, length);
    clv_free(binary);
    return true;
}

static void tell_failures(const campaign *c)
{
    char message[200];
    for (size_t i = 0; i < c->task_count; ++i) {
        const clv_child *child = &c->tasks[i].child;
        if (child->end != CLV_CHILD_EXITED || child->code)
            if (clv_child_failure(child, patience_s, message, sizeof message))
                clv_log(CLV_LOG_INFO, "%s: a helper process failed to compile: %s",
                        c->device->label, message);
    }
}

static clv_status run(campaign *c)
{
    const clv_patience patience = {
        .timeout_s = patience_s, .progress = look, .user = c, .doing = "compiling kernels"
    };
    const clv_status status = clv_tasks_run(c->tasks, c->task_count, &patience);
    (void)look(NULL, c);
    tell_failures(c);
    return status == CLV_E_CANCELLED ? CLV_OK : status;
}

clv_status clv_compilers_run(clv_device *device, clv_compile_item *items, size_t count,
                             clv_ahead_progress *progress, void *user)
{
    campaign c = {
        .device = device, .items = items, .count = count, .progress = progress, .user = user
    };
    for (size_t i = 0; i < count; ++i)
        c.kernels += items[i].kernels;
    clv_status status = prepare(&c);
    if (!status) status = run(&c);
    (void)count_done(&c);
    for (size_t i = 0; i < count && !device->driver_cache; ++i)
        items[i].done = items[i].done && keep_binary(&c, i);
    for (size_t i = 0; i < c.task_count; ++i)
        clv_task_clear(&c.tasks[i]);
    clv_free(c.tasks);
    clv_nest_close(&c.nest);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a context: reads the settings, probes the machine, chooses the devices and opens the caches. */
#include "runtime/context/devices.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/options.h"
#include "probe/helper/isolate.h"
#include "probe/opencl/opencl.h"
#include "runtime/context/wishes.h"
#include "runtime/job/plain.h"
#include "runtime/job/run.h"
#include "runtime/offload/engine.h"
#include "runtime/offload/table.h"
#include "runtime/program/cache.h"
#include "runtime/program/texts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Returns the mode that matches the chosen devices, for a caller who named devices but no mode. */
static clv_mode mode_of_devices(const clv_context *context)
{
    bool gpu = false, other = false;
    for (size_t i = 0; i < context->device_count; ++i) {
        if (clv_is_on_the_cpu(context->devices[i].facts))
            other = true;
        else
            gpu = true;
    }
    return gpu && other ? CLV_MODE_HYBRID
           : gpu        ? CLV_MODE_GPU
           : other      ? CLV_MODE_CPU
                        : CLV_MODE_REFERENCE;
}

/* Copies a path. Returns false, and "" in `out`, when it is too long. */
static bool copy_path(const char *path, char *out, size_t capacity)
{
    const size_t length = strlen(path);
    *out = '\0';
    if (length >= capacity) return false;
    memcpy(out, path, length + 1);
    return true;
}

static clv_status too_long(const char *what, const char *path)
{
    return clv_fail(CLV_E_ARGUMENT, "%s: the name has %zu bytes, but it may have at most %d", what,
                    strlen(path), CLV_PATH_MOST - 1);
}

static clv_status open_caches(clv_context *context, const clv_context_options *options)
{
    const char *trace = clv_environment("CLEAVE_TRACE"), *own = options->cache_dir;
    char directory[CLV_PATH_MOST];
    clv_cache_dir(directory, sizeof directory);
    const bool fits = !own || copy_path(own, directory, sizeof directory);
    context->cache = clv_alloc(1, sizeof *context->cache);
    if (!context->cache) return clv_fail(CLV_E_MEMORY, "not enough memory for a context");
    clv_cache_open(context->cache, directory);
    clv_notes_open(&context->speeds, context->cache->directory, "speeds.txt",
                   "cleave: how fast jobs ran on this machine; delete a line to forget it");
    clv_notes_open(&context->tuned, context->cache->directory, "tuning.txt",
                   "cleave: which kernel variant was fastest; edit to force another");
    context->binding = options->bind_threads && !clv_environment_is_off("CLEAVE_BIND");
    context->event_times = options->event_times;
    context->tuning = !options->no_tuning && !clv_environment_is_off("CLEAVE_TUNE");
    if (!fits) return too_long("cache_dir", own);
    if (trace) (void)copy_path(trace, context->trace_path, sizeof context->trace_path);
    if (trace || options->trace) context->trace = clv_trace_create();
    return CLV_OK;
}

/* Notes the helper program and the most helpers that may run at once; without the program there are no helpers. */
static clv_status note_helper(clv_context *context, const char *helper, unsigned compilers)
{
    char path[PATH_MAX];
    context->compilers = clv_helper_find(helper, path, sizeof path) ? 1 : compilers;
    if (!helper || context->compilers == 1) return CLV_OK;
    const size_t bytes = strlen(helper) + 1;
    context->helper = clv_alloc(bytes, 1);
    if (!context->helper) return clv_fail(CLV_E_MEMORY, "not enough memory for a context");
    memcpy(context->helper, helper, bytes);
    return CLV_OK;
}

static clv_status choose(clv_context *context, const clv_wishes *wishes, unsigned sub_devices)
{
    const char *selection = wishes->devices;
    const clv_mode mode = wishes->mode;
    size_t *chosen = clv_alloc(context->probe->device_count, sizeof *chosen), count = 0;
    if (!chosen) return clv_fail(CLV_E_MEMORY, "not enough memory to choose devices");
    clv_status status = clv_wishes_choose(wishes, context->probe, chosen, &count);
    if (!status) status = clv_devices_make(context, chosen, count, sub_devices);
    clv_free(chosen);
    if (status) return status;
    context->ordered = context->device_count && (selection || mode != CLV_MODE_AUTO);
    context->mode = mode != CLV_MODE_AUTO ? mode : mode_of_devices(context);
    if (mode != CLV_MODE_AUTO || selection)
        snprintf(context->reason, sizeof context->reason, "%s was asked for: %s",
                 selection ? "this device" : "this mode", clv_mode_name(context->mode));
    else if (context->device_count)
        clv_copy_string(context->reason, sizeof context->reason,
                        context->probe->mode.reason ? context->probe->mode.reason : "");
    else
        clv_copy_string(context->reason, sizeof context->reason,
                        "no OpenCL device can be used: the plain C path works alone");
    return CLV_OK;
}

clv_status clv_context_create(const clv_context_options *given, clv_context **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "context: out is NULL");
    *out = NULL;
    clv_context_options options;
    CLV_TRY(clv_take_struct(&options, sizeof options, given, "clv_context_create",
                            "clv_context_options"));
    clv_wishes wishes;
    CLV_TRY(clv_wishes_read(&options, &wishes));
    const bool plain = wishes.mode == CLV_MODE_REFERENCE;
    if (!plain) CLV_TRY(clv_fork_check(clv_opencl_born(), "context"));
    clv_context_free(NULL); /* frees earlier contexts whose hung devices have come back */
    clv_context *context = clv_zalloc(1, sizeof *context);
    if (!context) return clv_fail(CLV_E_MEMORY, "not enough memory for a context");
    context->born = clv_fork_generation();
    atomic_init(&context->holds, 1);
    clv_mutex_init(&context->job_lock);
    clv_mutex_init(&context->array_lock);
    clv_mutex_init(&context->shelf_lock);
    clv_status status = clv_texts_make(context);
    if (!status) status = clv_offload_make(context);
    if (!status) status = open_caches(context, &options);
    context->batch = options.batch;
    context->tensor_bytes = options.tensor_bytes;
    context->checks = !options.no_qualification;
    context->schedule = wishes.schedule;
    context->memory_bytes = wishes.memory_bytes;
    context->memory_fraction = wishes.memory_fraction;
    if (!status) status = note_helper(context, options.helper, wishes.compilers);
    /* lets the probe ignore the variables for mode and devices, since options may overrule bad values of them */
    const clv_probe_options look = { .size = sizeof look,
                                     .mode_given = true,
                                     .mode = plain ? CLV_MODE_REFERENCE : CLV_MODE_AUTO,
                                     .devices_given = true };
    if (!status) status = clv_probe_run(&look, &context->probe);
    if (!status) status = choose(context, &wishes, options.sub_devices);
    if (status) {
        clv_trace_free(context->trace); /* there is nothing to write */
        context->trace = NULL;
        clv_context_free(context);
        return status;
    }
    clv_log(CLV_LOG_INFO, "mode %s: %s", clv_mode_name(context->mode), context->reason);
    *out = context;
    return CLV_OK;
}

clv_mode clv_context_mode(const clv_context *context)
{
    return context->mode;
}

const char *clv_context_reason(const clv_context *context)
{
    return context->reason;
}

const clv_probe_report *clv_context_probe(const clv_context *context)
{
    return context->probe;
}

size_t clv_context_device_count(const clv_context *context)
{
    return context->device_count;
}

clv_device *clv_context_device(const clv_context *context, size_t index)
{
    return index < context->device_count ? &context->devices[index] : NULL;
}

clv_status clv_context_write_trace(clv_context *context, const char *path)
{
    if (!context->trace)
        return clv_fail(CLV_E_ARGUMENT, "the context records no trace; set options.trace");
    return clv_trace_write(context->trace, path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels ahead of time, so that no launch has to wait for them. */
#include "runtime/program/ahead.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/program/cache.h"
#include "runtime/program/compilers.h"
#include "runtime/program/program.h"
#include "runtime/record/device.h"

#include <string.h>

bool clv_ahead_helps(const clv_device *device)
{
    return device->compilers > 1 && *device->cache->directory;
}

/* Describes the kinds of the arguments, such as "b v4 l256". */
static char *describe(const clv_arg *args, size_t count)
{
    clv_text text = { 0 };
    for (size_t i = 0; i < count; ++i) {
        if (i) clv_text_add(&text, " ");
        if (args[i].kind == CLV_ARG_BUFFER)
            clv_text_add(&text, "b");
        else
            clv_text_add(&text, "%c%zu", args[i].kind == CLV_ARG_VALUE ? 'v' : 'l', args[i].bytes);
    }
    if (!count) return clv_zalloc(1, 1);
    if (text.failed) clv_text_clear(&text);
    return text.data;
}

clv_status clv_ahead_note(clv_device *device, const clv_launch *launch, const clv_arg *args,
                          size_t count)
{
    clv_program *program;
    pthread_mutex_lock(&device->program_lock);
    clv_status status = clv_program_find(device, launch->source, launch->defines, &program);
    if (!status) {
        clv_kernel_use *use = clv_program_use(program, launch->kernel, launch->local);
        if (use && !use->args) use->args = describe(args, count);
        if (!use || !use->args)
            status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for a kernel", launch->kernel);
    }
    pthread_mutex_unlock(&device->program_lock);
    return status;
}

/* Counts the program's kernels that still have to be compiled; 0 if another process has compiled them. Kernels that
 * are missing in a program that is built already are left to their launch, because the source text is freed by then.
 * The lock is held. */
static size_t missing(clv_device *device, clv_program *p)
{
    size_t count = 0;
    if (p->program || !p->uses) return 0;
    const bool there = clv_program_on_disk(device, p);
    if (there && !device->driver_cache) return 0;
    for (const clv_kernel_use *u = p->uses; u; u = u->next)
        count += u->args && !u->compiled;
    return count;
}

size_t clv_ahead_missing(clv_device *device)
{
    size_t count = 0;
    pthread_mutex_lock(&device->program_lock);
    for (clv_program *p = device->programs; p; p = p->next)
        count += missing(device, p);
    pthread_mutex_unlock(&device->program_lock);
    return count;
}

/* Inserts a program by length of source: long sources take longest and come first, so that no helper begins one when
 * the other helpers are done. */
static void insert(clv_compile_item *items, size_t count, clv_program *p, size_t kernels)
{
    size_t at = count;
    for (; at && items[at - 1].program->text.length < p->text.length; --at)
        items[at] = items[at - 1];
    items[at] = (clv_compile_item){ .program = p, .kernels = kernels };
}

/* Collects the programs with missing kernels. Returns NULL without memory. The lock is held. */
static clv_compile_item *collect(clv_device *device, size_t *count)
{
    size_t programs = 0;
    *count = 0;
    for (const clv_program *p = device->programs; p; p = p->next)
        ++programs;
    clv_compile_item *items = clv_alloc(programs, sizeof *items);
    for (clv_program *p = device->programs; items && p; p = p->next) {
        const size_t kernels = missing(device, p);
        if (kernels) insert(items, (*count)++, p, kernels);
    }
    return items;
}

/* Builds the programs in this process, one after the other. Kernels that a build does not compile are left to their
 * launch. */
static void build_alone(clv_device *device, const clv_compile_item *items, size_t count,
                        clv_ahead_progress *progress, void *user)
{
    size_t done = 0, all = 0;
    for (size_t i = 0; i < count; ++i)
        all += items[i].kernels;
    for (size_t i = 0; i < count; ++i) {
        if (progress && progress(done, all, user)) return;
        pthread_mutex_lock(&device->program_lock);
        (void)clv_program_build(device, items[i].program);
        pthread_mutex_unlock(&device->program_lock);
        done += items[i].kernels;
    }
    if (progress) (void)progress(all, all, user);
}

/* Takes over the helpers' results. The lock is held. */
static void take(clv_device *device, const clv_compile_item *items, size_t count, double seconds)
{
    size_t programs = 0, kernels = 0;
    for (size_t i = 0; i < count; ++i) {
        clv_program *p = items[i].program;
        if (!items[i].done) continue;
        ++programs;
        kernels += items[i].kernels;
        if (!device->driver_cache) {
            p->from_disk = p->looked = true;
            continue;
        }
        for (clv_kernel_use *u = p->uses; u; u = u->next)
            u->compiled |= u->args != NULL;
        p->news = true;
    }
    device->compiled.programs += programs;
    device->compiled.kernels += kernels;
    device->compiled.seconds += seconds;
    clv_log(CLV_LOG_INFO, "%s: %zu kernels of %zu programs compiled ahead in %.2f s", device->label,
            kernels, programs, seconds);
}

void clv_ahead_compile(clv_device *device, bool alone, clv_ahead_progress *progress, void *user)
{
    clv_device *first = device - (device->part ? device->part - 1 : 0);
    size_t count;
    pthread_mutex_lock(&first->ahead_lock); /* equal parts of a device compile for each other */
    pthread_mutex_lock(&device->program_lock);
    clv_compile_item *items = collect(device, &count);
    pthread_mutex_unlock(&device->program_lock);
    atomic_store(&device->compiling, true);
    if (items && count > 1 && clv_ahead_helps(device)) {
        const double started = clv_now();
        if (clv_compilers_run(device, items, count, progress, user))
            clv_log(CLV_LOG_WARN, "%s: kernels are compiled only when they are first used: %s",
                    device->label, clv_error_message());
        pthread_mutex_lock(&device->program_lock);
        take(device, items, count, clv_now() - started);
        pthread_mutex_unlock(&device->program_lock);
        clv_programs_save(device, false);
    } else if (items && count && alone) {
        build_alone(device, items, count, progress, user);
    }
    atomic_store(&device->compiling, false);
    pthread_mutex_unlock(&first->ahead_lock);
    clv_free(items);
}

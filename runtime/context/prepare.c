/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the kernels of future calls ahead of time, all at once. */
#include "runtime/context/prepare.h"

#include "runtime/record/context.h"

#include <cleave/offload.h>

bool clv_prepare_helps(const clv_context *context)
{
    for (size_t i = 0; i < context->device_count; ++i)
        if (clv_ahead_helps(&context->devices[i])) return true;
    return false;
}

void clv_prepare_begin(clv_context *context)
{
    atomic_store(&context->preparing, true);
    clv_offload_dry(true);
}

typedef struct sum {
    clv_ahead_progress *progress;
    void *user;
    size_t before, all;
    bool stopped;
} sum;

static int add_up(size_t done, size_t all, void *user)
{
    sum *s = user;
    (void)all;
    s->stopped = s->progress && s->progress(s->before + done, s->all, s->user);
    return s->stopped;
}

void clv_prepare_leave(clv_context *context)
{
    clv_offload_dry(false);
    atomic_store(&context->preparing, false);
}

void clv_prepare_end(clv_context *context, clv_ahead_progress *progress, void *user)
{
    sum s = { .progress = progress, .user = user };
    clv_prepare_leave(context);
    for (size_t i = 0; i < context->device_count; ++i)
        s.all += clv_ahead_missing(&context->devices[i]);
    for (size_t i = 0; i < context->device_count && !s.stopped; ++i) {
        const size_t kernels = clv_ahead_missing(&context->devices[i]);
        if (kernels) clv_ahead_compile(&context->devices[i], true, add_up, &s);
        s.before += kernels;
    }
}

clv_compile_cost clv_context_compiled(const clv_context *context)
{
    clv_compile_cost all = { 0 };
    for (size_t i = 0; i < context->device_count; ++i) {
        clv_device *device = &context->devices[i];
        pthread_mutex_lock(&device->program_lock);
        all.programs += device->compiled.programs;
        all.kernels += device->compiled.kernels;
        all.seconds += device->compiled.seconds;
        pthread_mutex_unlock(&device->program_lock);
    }
    return all;
}

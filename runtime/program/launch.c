/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a launch description into a running kernel: looks up the kernel, checks it, sets its arguments, enqueues it. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/options.h"
#include "runtime/device/kernel.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/program/ahead.h"
#include "runtime/program/program.h"
#include "runtime/record/cl_status.h"

#include <string.h>

#define VALUE_ARG(type_name, type)                                      \
    clv_arg clv_arg_##type_name(type value)                             \
    {                                                                   \
        clv_arg arg = { .kind = CLV_ARG_VALUE, .bytes = sizeof value }; \
        memcpy(arg.value, &value, sizeof value);                        \
        return arg;                                                     \
    }
VALUE_ARG(u32, uint32_t)
VALUE_ARG(i32, int32_t)
VALUE_ARG(u64, uint64_t)
VALUE_ARG(i64, int64_t)
VALUE_ARG(f32, float)
VALUE_ARG(f64, double)

clv_arg clv_arg_buffer(const clv_buffer *buffer)
{
    return (clv_arg){ .kind = CLV_ARG_BUFFER, .buffer = buffer, .bytes = sizeof(cl_mem) };
}

clv_arg clv_arg_local(size_t bytes)
{
    return (clv_arg){ .kind = CLV_ARG_LOCAL, .bytes = bytes };
}

static bool same_defines(const clv_define *a, const clv_define *b)
{
    for (int i = 0; i < CLV_MAX_DEFINES; ++i) {
        if (!a[i].name || !b[i].name) return !a[i].name && !b[i].name;
        if (a[i].value != b[i].value || strcmp(a[i].name, b[i].name) != 0) return false;
    }
    return true;
}

static clv_status make_kernel(clv_queue *queue, const clv_launch *launch, clv_kernel **out)
{
    clv_device *device = queue->device;
    clv_program *program;
    CLV_TRY(clv_program_get(device, launch->source, launch->defines, &program));
    clv_kernel *kernel = clv_zalloc(1, sizeof *kernel);
    if (!kernel)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a kernel", launch->kernel);
    cl_int code;
    *kernel = (clv_kernel){ .program = program, .source = launch->source, .name = launch->kernel };
    memcpy(kernel->defines, launch->defines, sizeof kernel->defines);
    kernel->cl = clCreateKernel(program->program, launch->kernel, &code);
    if (code != CL_SUCCESS) {
        clv_free(kernel);
        return code == CL_INVALID_KERNEL_NAME
                   ? clv_fail(CLV_E_ARGUMENT, "%s has no kernel %s", launch->source->name,
                              launch->kernel)
                   : clv_cl_fail(device, "clCreateKernel", launch->kernel, code);
    }
    clGetKernelInfo(kernel->cl, CL_KERNEL_NUM_ARGS, sizeof kernel->arg_count, &kernel->arg_count,
                    NULL);
    kernel->set = clv_zalloc(CLV_MAX(kernel->arg_count, 1u), sizeof *kernel->set);
    if (!kernel->set) {
        clReleaseKernel(kernel->cl);
        clv_free(kernel);
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a kernel", launch->kernel);
    }
    if (clGetKernelWorkGroupInfo(kernel->cl, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                 sizeof kernel->max_group, &kernel->max_group, NULL) != CL_SUCCESS)
        kernel->max_group = device->facts->max_work_group;
    if (clGetKernelWorkGroupInfo(kernel->cl, device->id, CL_KERNEL_LOCAL_MEM_SIZE,
                                 sizeof kernel->local_bytes, &kernel->local_bytes,
                                 NULL) != CL_SUCCESS)
        kernel->local_bytes = 0;
    kernel->next = queue->kernels;
    queue->kernels = kernel;
    *out = kernel;
    return CLV_OK;
}

static clv_status get_kernel(clv_queue *queue, const clv_launch *launch, clv_kernel **out)
{
    for (clv_kernel **at = &queue->kernels; *at; at = &(*at)->next) {
        clv_kernel *k = *at;
        if (k->source != launch->source || strcmp(k->name, launch->kernel) != 0 ||
            !same_defines(k->defines, launch->defines))
            continue;
        *at = k->next; /* move it to the front: the next launch is often the same */
        k->next = queue->kernels;
        *out = queue->kernels = k;
        return CLV_OK;
    }
    return make_kernel(queue, launch, out);
}

static clv_status check_geometry(const clv_launch *launch, const clv_kernel *kernel,
                                 cl_uint *dimensions)
{
    size_t group = 1;
    *dimensions = 0;
    while (*dimensions < 3 && launch->global[*dimensions])
        ++*dimensions;
    for (cl_uint d = 0; d < *dimensions; ++d) {
        const size_t local = launch->local[d];
        if (!local || launch->global[d] % local)
            return clv_fail(
                CLV_E_ARGUMENT,
                "%s: global size %zu is not a multiple of local size %zu (dimension %u)",
                launch->kernel, launch->global[d], local, d);
        group *= local;
    }
    if (!*dimensions) return clv_fail(CLV_E_ARGUMENT, "%s: global size 0", launch->kernel);
    if (group > kernel->max_group)
        return clv_fail(
            CLV_E_ARGUMENT,
            "%s: a work-group would have %zu work-items, but the device allows at most %zu",
            launch->kernel, group, kernel->max_group);
    return CLV_OK;
}

static bool is_set(const clv_argument *was, const clv_arg *arg)
{
    if (!was->bytes || was->kind != arg->kind || was->bytes != arg->bytes) return false;
    if (arg->kind == CLV_ARG_BUFFER)
        return was->serial == arg->buffer->serial && was->mem == arg->buffer->mem;
    /* compare the whole array: that is fast, and the bytes behind a shorter value are 0 */
    return arg->kind == CLV_ARG_LOCAL || memcmp(was->value, arg->value, sizeof arg->value) == 0;
}

static clv_status set_argument(clv_queue *queue, clv_kernel *kernel, size_t nth, const clv_arg *arg)
{
    clv_argument *set = &kernel->set[nth];
    if (is_set(set, arg)) return CLV_OK;
    const void *value = arg->kind == CLV_ARG_BUFFER  ? (const void *)&arg->buffer->mem
                        : arg->kind == CLV_ARG_VALUE ? (const void *)arg->value
                                                     : NULL;
    set->bytes = 0;
    const cl_int code = clSetKernelArg(kernel->cl, (cl_uint)nth, arg->bytes, value);
    if (code == CL_INVALID_ARG_SIZE)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: argument %zu has %zu bytes, but the kernel expects a different size",
                        kernel->name, nth, arg->bytes);
    if (code != CL_SUCCESS) return clv_cl_fail(queue->device, "clSetKernelArg", kernel->name, code);
    *set = (clv_argument){ .kind = arg->kind, .bytes = arg->bytes };
    if (arg->kind == CLV_ARG_BUFFER)
        set->mem = arg->buffer->mem, set->serial = arg->buffer->serial;
    else if (arg->kind == CLV_ARG_VALUE)
        memcpy(set->value, arg->value, sizeof arg->value);
    return CLV_OK;
}

static clv_status set_arguments(clv_queue *queue, const clv_launch *launch, clv_kernel *kernel,
                                const clv_arg *args, size_t count)
{
    if (count != kernel->arg_count)
        return clv_fail(CLV_E_ARGUMENT, "%s: got %zu arguments, expected %u", launch->kernel, count,
                        (unsigned)kernel->arg_count);
    uint64_t local = kernel->local_bytes;
    for (size_t i = 0; i < count; ++i)
        if (args[i].kind == CLV_ARG_LOCAL) local += args[i].bytes;
    if (local > queue->device->facts->local_bytes) /* some drivers end the process in this case */
        return clv_fail(CLV_E_ARGUMENT, "%s: needs %llu bytes of local memory, but %s has %llu",
                        launch->kernel, (unsigned long long)local, queue->device->label,
                        (unsigned long long)queue->device->facts->local_bytes);
    for (size_t i = 0; i < count; ++i) {
        const clv_arg *arg = &args[i];
        if (arg->kind == CLV_ARG_BUFFER && (!arg->buffer || arg->buffer->device != queue->device))
            return clv_fail(CLV_E_ARGUMENT, "%s: argument %zu is %s", launch->kernel, i,
                            arg->buffer ? "a buffer of another device" : "a NULL buffer");
        CLV_TRY(set_argument(queue, kernel, i, arg));
    }
    return CLV_OK;
}

static void note_buffers(clv_queue *queue, const clv_arg *args, size_t count, cl_event event)
{
    const clv_buffer *used[CLV_USED_AT_ONCE];
    size_t uses = 0;
    for (size_t i = 0; i < count; ++i) {
        if (args[i].kind != CLV_ARG_BUFFER) continue;
        used[uses++] = args[i].buffer;
        if (uses < CLV_USED_AT_ONCE) continue;
        clv_buffers_used(used, uses, queue, event);
        uses = 0;
    }
    clv_buffers_used(used, uses, queue, event);
}

/* ---- launches that compile ----------------------------------------------------------------------- */

/* Tells whether the driver will compile the kernel for this work-group size now. */
static bool compiles(clv_device *device, clv_kernel *kernel, const clv_launch *launch)
{
    if (!device->facts->flags.slow_first_launch ||
        memcmp(kernel->compiled, launch->local, sizeof kernel->compiled) == 0)
        return false;
    pthread_mutex_lock(&device->program_lock);
    const clv_program *p = kernel->program;
    const clv_kernel_use *use = clv_program_use(kernel->program, kernel->name, launch->local);
    const bool done = (use && use->compiled) || (p->from_disk && !device->driver_cache);
    pthread_mutex_unlock(&device->program_lock);
    if (done) memcpy(kernel->compiled, launch->local, sizeof kernel->compiled);
    return !done;
}

static void was_compiled(clv_device *device, clv_kernel *kernel, const clv_launch *launch,
                         double seconds)
{
    pthread_mutex_lock(&device->program_lock);
    clv_kernel_use *use = clv_program_use(kernel->program, kernel->name, launch->local);
    if (use) use->compiled = kernel->program->news = true;
    device->compiled.kernels += 1;
    device->compiled.seconds += seconds;
    pthread_mutex_unlock(&device->program_lock);
    memcpy(kernel->compiled, launch->local, sizeof kernel->compiled);
    clv_log(CLV_LOG_DEBUG, "%s: %s compiled at its launch in %.1f ms", device->label, kernel->name,
            seconds * 1e3);
}

static clv_status enqueue(clv_queue *queue, const clv_launch *launch, clv_kernel *kernel,
                          cl_uint dimensions, const clv_arg *args, size_t arg_count,
                          clv_event **done)
{
    cl_event event = NULL;
    const cl_int code = clEnqueueNDRangeKernel(queue->cl, kernel->cl, dimensions, NULL,
                                               launch->global, launch->local, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return clv_cl_fail(queue->device, "clEnqueueNDRangeKernel", launch->kernel, code);
    note_buffers(queue, args, arg_count, event);
    return clv_queue_note(queue, event, CLV_COMMAND_KERNEL, kernel->name, 0, done);
}

/* Enqueues a launch that compiles. Waits before and after it to time the compilation. The kernel's own time is
 * subtracted where the driver's event times can be trusted. */
static clv_status enqueue_and_time(clv_queue *queue, const clv_launch *launch, clv_kernel *kernel,
                                   cl_uint dimensions, const clv_arg *args, size_t arg_count,
                                   clv_event **done)
{
    clv_device *device = queue->device;
    CLV_TRY(clv_queue_wait(queue));
    const double before = queue->stats.kernel_s, started = clv_now();
    atomic_store(&device->compiling, true);
    clv_status status = enqueue(queue, launch, kernel, dimensions, args, arg_count, done);
    if (!status) status = clv_queue_wait(queue);
    atomic_store(&device->compiling, false);
    const double took = clv_now() - started, ran = queue->stats.kernel_s - before;
    ++queue->stats.cold_launches;
    if (!status)
        was_compiled(device, kernel, launch,
                     before >= 0 && ran > 0 && ran < took ? took - ran : took);
    return status;
}

clv_status clv_launch_enqueue(clv_queue *queue, const clv_launch *launch, const clv_arg *args,
                              size_t arg_count, clv_event **done)
{
    clv_launch own;
    if (done) *done = NULL;
    if (launch && launch->size != sizeof own) { /* from a caller built with another version */
        CLV_TRY(clv_take_struct(&own, sizeof own, launch, "clv_launch_enqueue", "clv_launch"));
        launch = &own;
    }
    if (!queue || !launch || !launch->source || !launch->kernel)
        return clv_fail(CLV_E_ARGUMENT, "launch: queue, source or kernel name is NULL");
    CLV_TRY(clv_fork_check(queue->device->born, launch->kernel));
    if (queue->rehearsing) return clv_ahead_note(queue->device, launch, args, arg_count);
    clv_kernel *kernel = NULL;
    cl_uint dimensions;
    CLV_TRY(get_kernel(queue, launch, &kernel));
    CLV_TRY(check_geometry(launch, kernel, &dimensions));
    CLV_TRY(set_arguments(queue, launch, kernel, args, arg_count));

    CLV_TRY((compiles(queue->device, kernel, launch) ? enqueue_and_time : enqueue)(
        queue, launch, kernel, dimensions, args, arg_count, done));
    if (!atomic_exchange(&kernel->program->ran, true)) ++queue->stats.cold_launches;
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the speed of a device: arithmetic, memory, transfers, launches. The host's clock measures kernels that are
 * long enough for the launch to be negligible. */
#include "probe/measure/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/opencl/rig.h"

#include "cl_embedded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 16000, LAUNCHES = 200, LASTING = 10 };

/* The time and memory that a level of the bench uses. */
typedef struct effort {
    /* intended run time of an arithmetic kernel: short, so that some of many kernels run while a busy machine is
     * quiet */
    double kernel_s;
    int samples;     /* number of arithmetic kernels, of which the fastest counts */
    int passes;      /* passes over the memory, and transfers per direction */
    double budget_s; /* longest time for the samples or passes of one variant */
    size_t read_bytes, transfer_bytes;
} effort;

static const effort efforts[] = {
    [CLV_BENCH_QUICK] = { 0.004, 30, 24, 0.4, (size_t)256 << 20, (size_t)64 << 20 },
    [CLV_BENCH_FULL] = { 0.012, 100, 40, 1.2, (size_t)1 << 30, (size_t)256 << 20 },
};

typedef struct meter {
    clv_rig rig;
    const clv_probe_device *device;
    const effort *effort;
    clv_probe_rates *rates;
    size_t items, local; /* work-items and work-group size that fill the device */
    double kernel_s;     /* run time of a kernel for which the launch is negligible */
} meter;

/* A variant of the arithmetic kernel: the work of one work-item per loop iteration. */
typedef struct variant {
    const char *type; /* element type in OpenCL C */
    size_t type_bytes;
    unsigned lanes, chains;
} variant;

/* Returns whether the device is a CPU device. Compilers for CPUs produce fast code for wide vectors and few work-items.
 * All others, including those of software renderers, form vectors from neighbouring work-items. */
static bool on_host_cores(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_CPU;
}

static void choose_geometry(meter *m)
{
    const size_t units = m->device->compute_units ? m->device->compute_units : 1;
    /* few work-items per core, with vectors and in work-groups of one */
    if (on_host_cores(m->device)) {
        m->local = 1;
        m->items = units * 8;
    } else {
        m->local = CLV_MAX(CLV_MIN(m->device->max_work_group, (size_t)256), (size_t)1);
        m->items = clv_round_up(units * 2048, m->local);
    }
}

/* Finds the shortest time of `count` launches. Stops early if the device is far slower than planned. */
static clv_status best_time(meter *m, const clv_rig_launch *launch, cl_kernel kernel, int count,
                            double *best)
{
    double spent = 0;
    *best = INFINITY;
    for (int i = 0; i < count && spent < m->effort->budget_s; ++i) {
        double seconds;
        CLV_TRY(clv_rig_time(&m->rig, launch, kernel, &seconds));
        *best = fmin(*best, seconds);
        spent += seconds;
    }
    return CLV_OK;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Increases `turns`, then the number of work-items, until a launch takes the intended time. The first launch is not
 * timed, because some drivers compile during it. */
static clv_status calibrate(meter *m, clv_rig_launch *launch, cl_kernel kernel, cl_uint turn_arg,
                            cl_uint *turns)
{
    *turns = 64;
    for (int attempt = 0; attempt < 12; ++attempt) {
        double seconds;
        const cl_int code = clSetKernelArg(kernel, turn_arg, sizeof *turns, turns);
        if (code != CL_SUCCESS) return clv_rig_fail("clSetKernelArg", code);
        CLV_TRY(clv_rig_time(&m->rig, launch, kernel, &seconds));
        if (attempt == 0) continue;
        if (seconds > 0.5 * m->kernel_s) return CLV_OK;
        const double factor = CLV_MIN(m->kernel_s / fmax(seconds, 1e-6), 64.0);
        const double wanted = *turns * factor;
        if (wanted <= MOST_TURNS) {
            *turns = (cl_uint)wanted;
        } else if (*turns < MOST_TURNS) {
            *turns = MOST_TURNS;
        } else if (launch->global[0] * 2 <= m->items * 64) {
            launch->global[0] *= 2;
        } else {
            return CLV_OK;
        }
    }
    return CLV_OK;
}

/* Measures the operations per second of a kernel; `ops` is the number of operations per loop iteration and
 * work-item. */
static clv_status measure_ops(meter *m, const char *name, const clv_rig_arg *args, size_t arg_count,
                              size_t out_bytes, double ops, double *rate)
{
    clv_rig_launch launch = { .kernel = name,
                              .buffer_count = 1,
                              .args = args,
                              .arg_count = arg_count,
                              .dimensions = 1,
                              .global = { m->items },
                              .local = { m->local } };
    cl_kernel kernel = NULL;
    cl_uint turns = 0;
    double seconds = 0;
    CLV_TRY(clv_rig_buffer(&m->rig, 0, m->items * 64 * out_bytes, NULL));
    CLV_TRY(clv_rig_kernel(&m->rig, &launch, &kernel));
    clv_status status = calibrate(m, &launch, kernel, (cl_uint)arg_count, &turns);
    if (!status) status = best_time(m, &launch, kernel, m->effort->samples, &seconds);
    clReleaseKernel(kernel);
    if (!status) *rate = ops * turns * (double)launch.global[0] / seconds;
    return status;
}

static clv_status build_peak(meter *m, const variant *v)
{
    char options[160];
    const bool fused = m->device->fma || strcmp(v->type, "double") == 0;
    snprintf(options, sizeof options, "-DPEAK -DREAL=%s -DLANES=%u -DCHAINS=%u%s%s%s%s", v->type,
             v->lanes, v->chains, strcmp(v->type, "char") == 0 ? " -DINT8" : "",
             fused ? " -DFUSED" : "", strcmp(v->type, "double") == 0 ? " -DFP64" : "",
             strcmp(v->type, "half") == 0 ? " -DFP16" : "");
    return clv_rig_build(&m->rig, &clv_cl_probe_bench, options);
}

/* Measures the peak rate of x = x * factor + term. The value of x stays near 1, so that neither denormals nor
 * infinities occur. */
static clv_status measure_peak(meter *m, const variant *v, double *rate)
{
    static const float f32[] = { 0.9f, 0.1f };
    static const double f64[] = { 0.9, 0.1 };
    static const cl_half f16[] = { 0x3B33, 0x2E66 };
    static const cl_char i8[] = { 3, 1 };
    const cl_uint turns = 1;
    const void *values = v->type_bytes == 8   ? (const void *)f64
                         : v->type_bytes == 4 ? (const void *)f32
                         : v->type_bytes == 2 ? (const void *)f16
                                              : (const void *)i8;
    const clv_rig_arg args[] = { { values, v->type_bytes },
                                 { (const char *)values + v->type_bytes, v->type_bytes },
                                 { &turns, sizeof turns } };
    return measure_ops(m, "clv_bench_peak", args, CLV_LEN(args), v->type_bytes,
                       2.0 * v->lanes * v->chains * 4, rate);
}

/* Returns the best rate of all variants. Variants that do not build or run are skipped. */
static double best_peak(meter *m, const char *type, size_t type_bytes, const unsigned (*shapes)[2],
                        size_t count)
{
    double best = -1, rate;
    for (size_t i = 0; i < count; ++i) {
        const variant v = { type, type_bytes, shapes[i][0], shapes[i][1] };
        if (build_peak(m, &v) || measure_peak(m, &v, &rate)) continue;
        best = fmax(best, rate);
    }
    return best > 0 ? best * 1e-9 : -1;
}

/* Shapes {lanes, chains}: for CPUs, vectors as wide as the registers of current processors; for GPUs, scalars and short
 * vectors. 12 chains of the widest vectors use 12 to 24 registers. */
static const unsigned gpu32[][2] = { { 1, 12 }, { 2, 12 }, { 4, 12 } };

/* Measures fp32. CPU runtimes are measured twice, the second time at the end and with long launches: on a busy machine,
 * two threads may run on one core until the system moves one of them. */
static void measure_fp32(meter *m)
{
    static const unsigned cpu[][2] = { { 16, 12 }, { 8, 12 } };
    const double rate = on_host_cores(m->device) ? best_peak(m, "float", 4, cpu, CLV_LEN(cpu))
                                                 : best_peak(m, "float", 4, gpu32, CLV_LEN(gpu32));
    m->rates->fp32_gflops = fmax(m->rates->fp32_gflops, rate);
}

static void measure_others(meter *m)
{
    static const unsigned cpu64[][2] = { { 8, 12 }, { 4, 12 } };
    static const unsigned cpu16[][2] = { { 16, 12 } };
    static const unsigned gpu16[][2] = { { 2, 12 }, { 4, 12 } };
    const bool cpu = on_host_cores(m->device);
    clv_probe_rates *rates = m->rates;
    if (m->device->fp64)
        rates->fp64_gflops = cpu ? best_peak(m, "double", 8, cpu64, CLV_LEN(cpu64))
                                 : best_peak(m, "double", 8, gpu32, 1);
    if (m->device->fp16)
        rates->fp16_gflops = cpu ? best_peak(m, "half", 2, cpu16, CLV_LEN(cpu16))
                                 : best_peak(m, "half", 2, gpu16, CLV_LEN(gpu16));
    rates->int8_gops = cpu ? best_peak(m, "char", 1, cpu16, CLV_LEN(cpu16))
                           : best_peak(m, "char", 1, gpu16 + 1, 1);
}

static void measure_dot8(meter *m)
{
    const cl_uint factor = 0x01020304, turns = 1;
    const clv_rig_arg args[] = { { &factor, sizeof factor }, { &turns, sizeof turns } };
    double rate;
    if (m->device->dot8 != CLV_YES) return;
    if (clv_rig_build(&m->rig, &clv_cl_probe_bench, "-DDOT8 -DREAL=float -DLANES=1") ||
        measure_ops(m, "clv_bench_dot8", args, CLV_LEN(args), 4, 8.0 * 6 * 4, &rate))
        return;
    m->rates->int8_gops = fmax(m->rates->int8_gops, rate * 1e-9);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns the wanted size, limited to the device's largest buffer size and a quarter of its memory. */
static size_t affordable(const meter *m, size_t wanted)
{
    uint64_t bytes = CLV_MIN((uint64_t)wanted, m->device->max_alloc_bytes);
    bytes = CLV_MIN(bytes, m->device->global_bytes / 4);
    if (m->device->free_bytes != CLV_UNKNOWN) bytes = CLV_MIN(bytes, m->device->free_bytes / 4);
    return (size_t)bytes;
}

static clv_status measure_read(meter *m, unsigned lanes, double *rate)
{
    char options[64];
    const bool cpu = on_host_cores(m->device);
    const size_t vector = lanes * sizeof(float), items = cpu ? m->items * 4 : m->items;
    const cl_uint turns = (cl_uint)(affordable(m, m->effort->read_bytes) / vector / items / 4);
    const cl_uint step = cpu ? 1 : (cl_uint)items, skip = cpu ? turns * 4 : 1;
    const size_t bytes = (size_t)turns * 4 * items * vector;
    const clv_rig_arg args[] = { { &turns, sizeof turns },
                                 { &step, sizeof step },
                                 { &skip, sizeof skip } };
    clv_rig_launch launch = { .kernel = "clv_bench_fill",
                              .buffer_count = 2,
                              .args = args,
                              .arg_count = CLV_LEN(args),
                              .dimensions = 1,
                              .global = { items },
                              .local = { m->local } };
    cl_kernel kernel = NULL;
    double seconds = 0;
    if (!turns || turns > 4 * MOST_TURNS)
        return clv_fail(CLV_E_SHAPE, "not enough memory to measure the memory bandwidth");
    snprintf(options, sizeof options, "-DREAD -DREAL=float -DLANES=%u", lanes);
    CLV_TRY(clv_rig_build(&m->rig, &clv_cl_probe_bench, options));
    CLV_TRY(clv_rig_buffer(&m->rig, 0, bytes, NULL));
    CLV_TRY(clv_rig_buffer(&m->rig, 1, items * sizeof(float), NULL));
    CLV_TRY(clv_rig_run(&m->rig, &launch));
    launch.kernel = "clv_bench_read";
    CLV_TRY(clv_rig_kernel(&m->rig, &launch, &kernel));
    /* compiles the kernel and warms the caches */
    clv_status status = clv_rig_time(&m->rig, &launch, kernel, NULL);
    if (!status) status = best_time(m, &launch, kernel, m->effort->passes, &seconds);
    clReleaseKernel(kernel);
    if (!status) *rate = (double)bytes / seconds * 1e-9;
    return status;
}

static void measure_memory(meter *m)
{
    static const unsigned cpu[] = { 16, 8 }, gpu[] = { 4, 1 };
    const unsigned *lanes = on_host_cores(m->device) ? cpu : gpu;
    for (size_t i = 0; i < 2; ++i) {
        double rate = -1;
        if (measure_read(m, lanes[i], &rate) == CLV_OK)
            m->rates->global_gb_s = fmax(m->rates->global_gb_s, rate);
    }
    for (unsigned slot = 0; slot < 2; ++slot)
        (void)clv_rig_buffer(&m->rig, slot, 4, NULL);
}

/* Copies from and to `host` by blocking transfers and measures the rates. */
static clv_status copy_both_ways(meter *m, void *host, size_t bytes)
{
    for (int i = 0; i <= m->effort->passes; ++i) {
        const double start = clv_now();
        cl_int code = clEnqueueWriteBuffer(m->rig.queue, m->rig.buffers[0], CL_TRUE, 0, bytes, host,
                                           0, NULL, NULL);
        const double middle = clv_now();
        if (code == CL_SUCCESS)
            code = clEnqueueReadBuffer(m->rig.queue, m->rig.buffers[0], CL_TRUE, 0, bytes, host, 0,
                                       NULL, NULL);
        const double end = clv_now();
        if (code != CL_SUCCESS) return clv_rig_fail("a transfer", code);
        if (!i) continue; /* the first pass, which only touches the pages, is not timed */
        m->rates->h2d_gb_s = fmax(m->rates->h2d_gb_s, (double)bytes / (middle - start) * 1e-9);
        m->rates->d2h_gb_s = fmax(m->rates->d2h_gb_s, (double)bytes / (end - middle) * 1e-9);
    }
    return CLV_OK;
}

/* Measures transfers from ordinary memory, and for devices with their own memory also from memory pinned by the
 * driver. */
static clv_status measure_transfers(meter *m)
{
    const size_t bytes = affordable(m, m->effort->transfer_bytes);
    CLV_TRY(clv_rig_buffer(&m->rig, 0, bytes, NULL));
    void *host = clv_alloc_pages(bytes);
    if (!host) return clv_fail(CLV_E_MEMORY, "not enough memory to measure transfers");
    memset(host, 1, bytes);
    clv_status status = copy_both_ways(m, host, bytes);
    clv_free(host);
    if (status || m->device->device_class != CLV_CLASS_DISCRETE_GPU) return status;

    cl_int code;
    cl_mem pinned = clCreateBuffer(m->rig.context, CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
    if (!pinned) return CLV_OK;
    host = clEnqueueMapBuffer(m->rig.queue, pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                              0, NULL, NULL, &code);
    if (host) {
        memset(host, 1, bytes);
        status = copy_both_ways(m, host, bytes);
        clEnqueueUnmapMemObject(m->rig.queue, pinned, host, 0, NULL, NULL);
        clFinish(m->rig.queue);
    }
    clReleaseMemObject(pinned);
    return status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Measures the median time from the launch of an empty kernel to its end. */
static clv_status measure_launch(meter *m)
{
    double times[LAUNCHES];
    const clv_rig_launch launch = { .kernel = "clv_bench_nothing",
                                    .buffer_count = 1,
                                    .dimensions = 1,
                                    .global = { 1 },
                                    .local = { 1 } };
    cl_kernel kernel = NULL;
    CLV_TRY(clv_rig_build(&m->rig, &clv_cl_probe_bench, "-DNOTHING -DREAL=float -DLANES=1"));
    CLV_TRY(clv_rig_buffer(&m->rig, 0, 64, NULL));
    CLV_TRY(clv_rig_kernel(&m->rig, &launch, &kernel));
    clv_status status = CLV_OK;
    for (int i = -10; i < LAUNCHES && !status; ++i)
        status = clv_rig_time(&m->rig, &launch, kernel, &times[CLV_MAX(i, 0)]);
    clReleaseKernel(kernel);
    if (status) return status;
    qsort(times, LAUNCHES, sizeof *times, by_size);
    m->rates->launch_us = times[LAUNCHES / 2] * 1e6;
    return CLV_OK;
}

void clv_bench_device(const clv_probe_device *device, clv_bench level, clv_bench_result *result)
{
    meter m = { .device = device, .effort = &efforts[level], .rates = &result->rates };
    *result = (clv_bench_result){ .rates = { -1, -1, -1, -1, -1, -1, -1, -1, NULL, NULL } };
    clv_utc(result->date, sizeof result->date);
    snprintf(result->protocol, sizeof result->protocol, "%s, best of %d",
             level == CLV_BENCH_FULL ? "full" : "quick", m.effort->samples);
    result->rates.date = result->date;
    result->rates.protocol = result->protocol;
    choose_geometry(&m);
    clv_status status = clv_rig_open(&m.rig, device);
    if (!status) status = measure_launch(&m);
    if (!status) {
        m.kernel_s = fmax(m.effort->kernel_s, 50e-6 * m.rates->launch_us);
        measure_fp32(&m);
        measure_others(&m);
        measure_dot8(&m);
        measure_memory(&m);
        status = measure_transfers(&m);
        m.kernel_s *= LASTING;
        if (on_host_cores(device)) measure_fp32(&m);
    }
    clv_rig_close(&m.rig);
    if (status)
        snprintf(result->protocol, sizeof result->protocol, "%.40s; failed: %.100s",
                 level == CLV_BENCH_FULL ? "full" : "quick", clv_error_message());
}

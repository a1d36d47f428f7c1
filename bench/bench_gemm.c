/* SPDX-License-Identifier: Apache-2.0 */
/* Measures matrix products on every OpenCL CPU device, and OpenBLAS if it is installed, as fractions of the
 * device's own FMA peak.
 *
 * usage: bench_gemm [ROUNDS [LARGEST [LEAST]]]   prints the best of the rounds, in which all candidates take
 * turns; only shapes of LEAST to LARGEST rows. Short products are repeated within a round. */
#include "base/alloc.h"
#include "base/clock.h"
#include "probe/measure/bench.h"
#include "runtime/blas/gemm.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/record/context.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                   int lda, const float *b, int ldb, float beta, float *c, int ldc);

static const size_t shapes[][3] = { { 512, 512, 512 },  { 1024, 1024, 1024 }, { 2048, 2048, 2048 },
                                    { 100, 1536, 384 }, { 4096, 1152, 384 },  { 4096, 384, 1536 },
                                    { 7, 7, 64 },       { 33, 17, 1000 },     { 8, 8, 8 },
                                    { 16, 16, 16 },     { 32, 32, 32 },       { 64, 64, 64 } };

enum { LAUNCH, OURS, KERNEL, WEIGHTS, LAID, WHOLE, FORCED, OPENBLAS, WAYS };
static const char *const ways[] = { "launch",          "by the library", "both packed",
                                    "B packed before", "as it lies",     "clv_matmul",
                                    "on the device",   "OpenBLAS" };

static const char nothing[] = "__kernel void nothing(__global float *x) {}";

typedef struct rig {
    clv_context *context;
    clv_queue *queue;
    clv_gemm_form form, once;
    size_t m, n, k;
    float *host[3];
    clv_buffer *a, *b, *c, *pa, *pb, *scratch;
    sgemm *blas;
    cl_program program;
    cl_kernel nothing;
} rig;

static void must(clv_status status)
{
    if (!status) return;
    printf("%s\n", clv_error_message());
    exit(1);
}

static clv_buffer *buffer(rig *r, size_t floats)
{
    clv_buffer *b;
    must(clv_buffer_create(clv_queue_device(r->queue), CLV_MAX(floats, (size_t)1) * sizeof(float),
                           CLV_BUFFER_DEVICE, &b));
    return b;
}

static void open_shape(rig *r, const size_t shape[3])
{
    uint32_t state = 1;
    r->m = shape[0], r->n = shape[1], r->k = shape[2];
    const size_t sizes[] = { r->m * r->k, r->k * r->n, r->m * r->n };
    for (int i = 0; i < 3; ++i) {
        r->host[i] = clv_alloc_pages(sizes[i] * sizeof(float));
        for (size_t e = 0; e < sizes[i]; ++e) {
            state = state * 1664525u + 1013904223u;
            r->host[i][e] = (float)(state >> 8) * 0x1p-23f - 1;
        }
    }
    must(clv_gemm_choose(r->context, r->queue, r->m, &r->form));
    r->a = buffer(r, sizes[0]), r->b = buffer(r, sizes[1]), r->c = buffer(r, sizes[2]);
    must(clv_write(r->queue, r->a, 0, r->host[0], sizes[0] * sizeof(float)));
    must(clv_write(r->queue, r->b, 0, r->host[1], sizes[1] * sizeof(float)));
    r->pa = buffer(r, clv_gemm_packed_a(&r->form, r->m, r->k));
    r->pb = buffer(r, clv_gemm_packed_b(&r->form, r->n, r->k));
    if (clv_gemm_packed_b(&r->form, r->n, r->k)) {
        const clv_matrix a = { r->a, 0, r->k, 1, 0 }, b = { r->b, 0, r->n, 1, 0 };
        must(clv_gemm_pack_a_enqueue(r->queue, &r->form, r->m, r->k, 1, &a, r->pa));
        must(clv_gemm_pack_b_enqueue(r->queue, &r->form, r->n, r->k, 1, &b, r->pb, 0));
    }
    const clv_gemm g = { .m = r->m, .n = r->n, .k = r->k, .b.col = 1 };
    must(clv_gemm_choose_once(r->context, r->queue, &g, &r->once));
    r->scratch = buffer(r, clv_gemm_scratch(&r->form, &g));
}

static void close_shape(rig *r)
{
    clv_buffer *all[] = { r->a, r->b, r->c, r->pa, r->pb, r->scratch };
    (void)clv_queue_wait(r->queue);
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_buffer_free(all[i]);
    for (int i = 0; i < 3; ++i)
        clv_free(r->host[i]);
}

static void once(rig *r, int way)
{
    const bool packs = way != LAID && clv_gemm_packed_b(&r->form, r->n, r->k) > 0;
    const clv_gemm g = { .m = r->m,
                         .n = r->n,
                         .k = r->k,
                         .a = { way == KERNEL && packs ? r->pa : r->a, 0, r->k, 1, 0 },
                         .b = { packs ? r->pb : r->b, 0, r->n, 1, 0 },
                         .c = { r->c, 0, r->n, 1, 0 },
                         .a_packed = way == KERNEL && packs,
                         .b_packed = packs,
                         .alpha = 1 };
    if (way == LAUNCH) { /* by OpenCL alone, including the wait */
        const size_t one = 1;
        cl_event done;
        clEnqueueNDRangeKernel(r->queue->cl, r->nothing, 1, NULL, &one, &one, 0, NULL, &done);
        clWaitForEvents(1, &done);
        clReleaseEvent(done);
    } else if (way == OURS) { /* checked, timed and counted */
        static const clv_cl_source source = { "nothing.cl", nothing, sizeof nothing - 1 };
        const clv_launch launch = { .size = sizeof(clv_launch),
                                    .source = &source,
                                    .kernel = "nothing",
                                    .global = { 1 },
                                    .local = { 1 } };
        const clv_arg args[] = { clv_arg_buffer(r->c) };
        must(clv_launch_enqueue(r->queue, &launch, args, CLV_LEN(args), NULL));
        must(clv_queue_wait(r->queue));
    } else if (way == OPENBLAS) {
        r->blas(101, 111, 111, (int)r->m, (int)r->n, (int)r->k, 1, r->host[0], (int)r->k,
                r->host[1], (int)r->n, 0, r->host[2], (int)r->n);
    } else if (way == WHOLE || way == FORCED) {
        const clv_side was = clv_offload_force(way == WHOLE ? CLV_SIDE_AUTO : CLV_SIDE_DEVICE);
        must(clv_matmul_f32(r->context, r->m, r->n, r->k, r->host[0], r->host[1], r->host[2]));
        clv_offload_force(was);
    } else {
        must(clv_gemm_enqueue(r->queue, way == LAID ? &r->once : &r->form, &g, r->scratch, NULL));
        must(clv_queue_wait(r->queue));
    }
}

/* Returns the seconds of one call: the mean of many if one is too short for the clock, else the best of some. */
static double seconds(rig *r, int way)
{
    const double flops = 2.0 * (double)r->m * (double)r->n * (double)r->k;
    const int many = (int)CLV_MIN(CLV_MAX(4e7 / flops, 1.0), 2000.0);
    const int some = (int)CLV_MIN(CLV_MAX(2e9 / flops, 1.0), 8.0);
    double best = HUGE_VAL;
    for (int i = 0; i < (many > 1 ? 1 : some); ++i) {
        const double started = clv_now();
        for (int j = 0; j < many; ++j)
            once(r, way);
        best = fmin(best, (clv_now() - started) / many);
    }
    return best;
}

/* Waits until OpenBLAS's threads sleep: they poll for work after a call, and would take a core from the next
 * candidate. */
static void let_threads_sleep(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 60000000 }, NULL);
}

static double peak(const clv_device *device)
{
    clv_bench_result result;
    clv_bench_device(clv_device_facts(device), CLV_BENCH_QUICK, &result);
    return result.rates.fp32_gflops;
}

/* Opens an empty kernel, whose launch time is the minimum for anything on a device. */
static void open_nothing(rig *r)
{
    const clv_device *device = clv_queue_device(r->queue);
    const char *text = nothing;
    r->program = clCreateProgramWithSource(device->cl, 1, &text, NULL, NULL);
    clBuildProgram(r->program, 1, &device->id, NULL, NULL, NULL);
    r->nothing = clCreateKernel(r->program, "nothing", NULL);
}

static void close_nothing(rig *r)
{
    clReleaseKernel(r->nothing), clReleaseProgram(r->program);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Alternates launches and products call by call, so that the device's threads fall asleep and wake up in the same
 * way for all. */
static void in_turns(rig *r)
{
    enum { CALLS = 20000 };
    static double took[4][CALLS];
    const int which[] = { LAUNCH, OURS, LAID, FORCED };
    for (int i = 0; i < CALLS; ++i)
        for (int w = 0; w < 4; ++w) {
            const int turn = (w + i) % 4;
            const double started = clv_now();
            once(r, which[turn]);
            took[turn][i] = clv_now() - started;
        }
    printf("   ");
    for (int w = 0; w < 4; ++w) {
        qsort(took[w], CALLS, sizeof **took, compare);
        printf(" %s %.2f us", ways[which[w]], took[w][CALLS / 2] * 1e6);
    }
    printf(" (medians, call by call in turns)\n");
}

static void measure(rig *r, int rounds, size_t least, size_t largest)
{
    const double before = peak(clv_queue_device(r->queue));
    printf("%s, FMA peak before %.0f GFLOP/s\n", clv_device_label(clv_queue_device(r->queue)),
           before);
    open_nothing(r);
    for (size_t s = 0; s < CLV_LEN(shapes); ++s) {
        double best[WAYS] = { 0 };
        if (shapes[s][0] < least || shapes[s][0] > largest) continue;
        open_shape(r, shapes[s]);
        clSetKernelArg(r->nothing, 0, sizeof(cl_mem), &r->c->mem);
        clv_offload_dry(true); /* asking for a plan times both sides now */
        once(r, WHOLE);
        clv_offload_dry(false);
        const double flops = 2.0 * (double)r->m * (double)r->n * (double)r->k;
        const int all = flops < 1e7 ? 5 * rounds : rounds;
        for (int round = -1; round < all; ++round)
            for (int way = 0; way < WAYS - (r->blas ? 0 : 1); ++way) {
                const double took = seconds(r, way);
                if (way == OPENBLAS) let_threads_sleep();
                if (round >= 0 && (!best[way] || took < best[way])) best[way] = took;
            }
        printf("  %4zu x %4zu x %4zu [%s]", r->m, r->n, r->k, r->form.name);
        for (int way = 0; way < WAYS; ++way)
            if (way == LAUNCH || way == OURS)
                printf("  %s %.2f us", ways[way], best[way] * 1e6);
            else if (best[way] > 0)
                printf("  %s %.4f ms %.0f (%.0f %%)", ways[way], best[way] * 1e3,
                       flops / best[way] * 1e-9, 100 * flops / best[way] * 1e-9 / before);
        printf("\n");
        if (flops < 1e5) in_turns(r);
        fflush(stdout);
        close_shape(r);
    }
    close_nothing(r);
    printf("  FMA peak after %.0f GFLOP/s\n", peak(clv_queue_device(r->queue)));
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? CLV_MAX(atoi(argv[1]), 1) : 10;
    const size_t largest = argc > 2 ? (size_t)CLV_MAX(atoi(argv[2]), 1) : SIZE_MAX;
    const size_t least = argc > 3 ? (size_t)CLV_MAX(atoi(argv[3]), 1) : 1;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    rig r = { .blas = NULL };
    if (library) *(void **)&r.blas = dlsym(library, "cblas_sgemm");
    clv_probe_report *report;
    must(clv_probe_run(NULL, &report));
    for (size_t i = 0; i < report->device_count; ++i) {
        char selection[24];
        const clv_context_options options = { .size = sizeof options,
                                              .devices = selection,
                                              .bind_threads = true };
        if (report->devices[i].device_class != CLV_CLASS_CPU || !report->devices[i].usable)
            continue;
        snprintf(selection, sizeof selection, "%zu", i);
        must(clv_context_create(&options, &r.context));
        must(clv_queue_create(clv_context_device(r.context, 0), &r.queue));
        measure(&r, rounds, least, largest);
        clv_queue_free(r.queue);
        clv_context_free(r.context);
    }
    clv_probe_free(report);
    return 0;
}

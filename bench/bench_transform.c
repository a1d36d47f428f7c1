/* SPDX-License-Identifier: Apache-2.0 */
/* Compares Fourier transforms of frames by clFFT on every OpenCL device with those of KISS FFT on one core, which
 * clv_stage_push uses. The choice of KISS FFT is based on these times.
 *
 * usage: bench_transform [SIZE...]   prints the best of several rounds, for square frames of 256 and 512 pixels unless
 *                                    sizes are given. Frames are on the device before the timing, and results stay
 *                                    there. */
#include "base/alloc.h"
#include "base/clock.h"
#include "host/stage/transform.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/record/context.h"

#include <cleave/probe.h>

#include <clFFT.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15 };

static void must(clv_status status)
{
    if (!status) return;
    printf("%s\n", clv_error_message());
    exit(1);
}

static void on_a_core(size_t size)
{
    clv_transform *t;
    float *image = clv_zalloc(size * size, sizeof *image);
    clv_wave *waves = clv_zalloc(size * (size / 2 + 1), sizeof *waves);
    double best = INFINITY;
    must(clv_transform_create(size, size, false, &t));
    if (!image || !waves) exit(1);
    for (int i = 0; i < ROUNDS; ++i) {
        const double started = clv_now();
        clv_transform_forward(t, image, waves);
        best = fmin(best, clv_now() - started);
    }
    printf("%4zu x %-4zu  KISS FFT on one core: %.2f ms\n", size, size, best * 1e3);
    clv_transform_free(t), clv_free(image), clv_free(waves);
}

/* Returns NULL, or what went wrong. */
static const char *on_device(clv_device *device, size_t size)
{
    const size_t lengths[] = { size, size };
    size_t in_strides[] = { 1, size }, out_strides[] = { 1, size / 2 + 1 };
    clfftPlanHandle plan;
    clv_buffer *in, *out;
    clv_queue *queue;
    double best = INFINITY;
    must(clv_queue_create(device, &queue));
    must(clv_buffer_create(device, size * size * 4, CLV_BUFFER_DEVICE, &in));
    must(clv_buffer_create(device, size * (size / 2 + 1) * 8, CLV_BUFFER_DEVICE, &out));
    must(clv_fill_enqueue(queue, in, 0, size * size * 4, 0, NULL));
    must(clv_queue_wait(queue));
    const double started = clv_now();
    const char *wrong = NULL;
    if (clfftCreateDefaultPlan(&plan, device->cl, CLFFT_2D, lengths))
        wrong = "no plan";
    else if (clfftSetPlanPrecision(plan, CLFFT_SINGLE) ||
             clfftSetLayout(plan, CLFFT_REAL, CLFFT_HERMITIAN_INTERLEAVED) ||
             clfftSetResultLocation(plan, CLFFT_OUTOFPLACE) ||
             clfftSetPlanInStride(plan, CLFFT_2D, in_strides) ||
             clfftSetPlanOutStride(plan, CLFFT_2D, out_strides) ||
             clfftBakePlan(plan, 1, &queue->cl, NULL, NULL))
        wrong = "the plan cannot be made";
    const double baked = clv_now() - started;
    for (int i = 0; i < ROUNDS && !wrong; ++i) {
        const double from = clv_now();
        cl_event done;
        if (clfftEnqueueTransform(plan, CLFFT_FORWARD, 1, &queue->cl, 0, NULL, &done, &in->mem,
                                  &out->mem, NULL)) {
            wrong = "clFFT's kernels do not compile there";
            break;
        }
        must(clv_queue_note(queue, done, CLV_COMMAND_OTHER, "transform", 0, NULL));
        must(clv_queue_wait(queue));
        best = fmin(best, clv_now() - from);
    }
    if (!wrong)
        printf("%4zu x %-4zu  clFFT on %s: %.2f ms, after %.1f s in compilers\n", size, size,
               clv_device_label(device), best * 1e3, baked);
    clfftDestroyPlan(&plan);
    clv_buffer_free(in), clv_buffer_free(out);
    clv_queue_free(queue);
    return wrong;
}

static void measure(const char *selection, const size_t *sizes, size_t count)
{
    const clv_context_options options = { .size = sizeof options,
                                          .devices = selection,
                                          .bind_threads = true };
    clv_context *context;
    must(clv_context_create(&options, &context));
    clv_device *device = clv_context_device(context, 0);
    for (size_t i = 0; i < count; ++i) {
        const char *wrong = on_device(device, sizes[i]);
        if (wrong)
            printf("%4zu x %-4zu  clFFT on %s: %s\n", sizes[i], sizes[i], clv_device_label(device),
                   wrong);
        fflush(stdout);
    }
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    enum { MOST = 8 };
    size_t sizes[MOST] = { 256, 512 }, count = 2;
    clv_context *all;
    clfftSetupData data;
    const clv_context_options options = { .size = sizeof options, .devices = "all" };
    for (int i = 1; i < argc && i <= MOST; ++i)
        sizes[i - 1] = strtoul(argv[i], NULL, 10), count = (size_t)i;
    for (size_t i = 0; i < count; ++i)
        on_a_core(sizes[i]);
    must(clv_context_create(&options, &all));
    if (clfftInitSetupData(&data) || clfftSetup(&data)) return 1;
    const clv_probe_report *probe = clv_context_probe(all);
    for (size_t i = 0; i < probe->device_count; ++i) {
        char selection[32];
        snprintf(selection, sizeof selection, "%zu:%u", probe->devices[i].platform,
                 probe->devices[i].ordinal);
        measure(selection, sizes, count);
    }
    clv_context_free(all);
    clfftTeardown();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two methods for start values on every OpenCL device: direct lags, which clv_specfit uses, and Fourier
 * transforms by clFFT. The choice of direct lags is based on these times.
 *
 * chi2[lag] = sum_n w[n] T[n + lag]^2 - 2 q[n] T[n + lag] is linear, so the Fourier method needs one inverse
 * transform per template and arm. Only these transforms are timed: the Fourier method would also need
 * the product before them and the transforms of the star.
 *
 * usage: bench_lags [ROUNDS]   prints the best of the rounds for a star of three arms; both methods take turns in
 *                            each round */
#include "base/alloc.h"
#include "base/clock.h"
#include "host/spectra/spectra_job.h"
#include "runtime/device/pool.h"
#include "runtime/device/queue.h"
#include "runtime/record/context.h"

#include <clFFT.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STARS = 32, ARMS = 3, REPEATS = 5, PIXELS = 2881, POINTS = 6000, TEMPLATES = 300 };
enum { START_POINTS = 8192 };

static const struct {
    double first;
    size_t pixels;
} grids[ARMS] = { { 3600, 2751 }, { 5760, 2326 }, { 7520, 2881 } };

static void must(clv_status status)
{
    if (!status) return;
    printf("%s\n", clv_error_message());
    exit(1);
}

/* ---- stars without features, on DESI's grids: the time does not depend on what is in them ------- */

typedef struct setting {
    clv_spectra_library library;
    clv_spectra_stars stars;
    clv_spectra_arm arms[ARMS];
    clv_spectrum spectra[STARS * ARMS];
    double wave[ARMS][PIXELS], parameters[TEMPLATES * 4];
    float ones[PIXELS], *weights, *starts;
} setting;

static setting *make_setting(void)
{
    setting *s = clv_zalloc(1, sizeof *s);
    if (s) s->weights = clv_zalloc(5 * POINTS, sizeof(float));
    if (s) s->starts = clv_zalloc((size_t)TEMPLATES * START_POINTS, sizeof(float));
    if (!s || !s->weights || !s->starts) exit(1);
    for (size_t i = 0; i < (size_t)TEMPLATES * START_POINTS; ++i)
        s->starts[i] = 1 + 0.1f * (float)(i * 2654435761u % 1000) / 1000;
    for (size_t i = 0; i < TEMPLATES; ++i)
        s->parameters[4 * i] = 5000;
    for (size_t a = 0; a < ARMS; ++a) {
        const double first = grids[a].first;
        const size_t pixels = grids[a].pixels;
        for (size_t k = 0; k < pixels; ++k)
            s->wave[a][k] = first + 0.8 * (double)k, s->ones[k] = 1;
        const double last = s->wave[a][pixels - 1];
        s->arms[a] = (clv_spectra_arm){ .name = "arm",
                                        .points = POINTS,
                                        .first = first * 0.99,
                                        .last = last * 1.01,
                                        .layers = 1,
                                        .width = { 4, POINTS },
                                        .weight = { s->weights },
                                        .bias = { s->weights + 4 * POINTS },
                                        .mean = { 3.7, 3, 0, 0 },
                                        .std = { 0.2, 1, 1, 1 },
                                        .ccf = s->starts,
                                        .ccf_points = START_POINTS,
                                        .ccf_log0 = log(first),
                                        .ccf_log1 = log(last),
                                        .ccf_spline_kms = 1000 };
        for (size_t i = 0; i < STARS; ++i)
            s->spectra[i * ARMS + a] = (clv_spectrum){ .arm = a,
                                                       .pixels = pixels,
                                                       .wavelength = s->wave[a],
                                                       .flux = s->ones,
                                                       .ivar = s->ones };
    }
    s->library = (clv_spectra_library){ sizeof(clv_spectra_library), ARMS, s->arms, TEMPLATES,
                                        s->parameters };
    s->stars = (clv_spectra_stars){ sizeof(clv_spectra_stars), STARS, ARMS, s->spectra };
    return s;
}

/* ---- direct lags: a job that repeats the stage ------------------------------------------------- */

static clv_status drop(const clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return CLV_OK;
}

/* Returns the seconds of a job, or of its kernels alone if the device's clock can be trusted. */
static double seconds_of(clv_context *context, const setting *s, size_t repeats)
{
    clv_job job = clv_spectra_job("lags", STARS);
    job.min_chunk = STARS, job.commit = drop;
    clv_spectra_plan *plan;
    clv_report *report;
    must(clv_report_create(&report));
    must(clv_spectra_plan_create(&s->library, &s->stars, NULL, &plan));
    plan->wish.stages = CLV_SPECTRA_STAGE_START, plan->wish.repeats = repeats;
    const double started = clv_now();
    must(clv_job_run(context, &job, plan, report));
    const double wall = clv_now() - started, kernels = clv_report_share(report, 0).kernel_s;
    const double seconds = kernels > 0 ? kernels : wall;
    clv_report_free(report);
    clv_spectra_plan_free(plan);
    return seconds;
}

static double direct(clv_context *context, const setting *s)
{
    const double one = seconds_of(context, s, 1);
    return (seconds_of(context, s, 1 + REPEATS) - one) / REPEATS / STARS;
}

/* ---- clFFT ------------------------------------------------------------------------------------- */

typedef struct transforms {
    clfftPlanHandle plan;
    clv_buffer *in, *out;
    clv_queue *queue;
    size_t batch;
} transforms;

static void must_fft(clfftStatus status, const char *what)
{
    if (status == CLFFT_SUCCESS) return;
    printf("clFFT: %s: status %d\n", what, (int)status);
    exit(1);
}

static void open_transforms(transforms *t, clv_device *device, size_t length, size_t batch)
{
    size_t one = 1;
    t->batch = batch;
    must(clv_queue_create(device, &t->queue));
    must(clv_buffer_create(device, batch * (length / 2 + 1) * 8, CLV_BUFFER_DEVICE, &t->in));
    must(clv_buffer_create(device, batch * length * 4, CLV_BUFFER_DEVICE, &t->out));
    must(clv_fill_enqueue(t->queue, t->in, 0, batch * (length / 2 + 1) * 8, 0, NULL));
    must(clv_queue_wait(t->queue));
    must_fft(clfftCreateDefaultPlan(&t->plan, device->cl, CLFFT_1D, &length), "plan");
    must_fft(clfftSetPlanPrecision(t->plan, CLFFT_SINGLE), "precision");
    must_fft(clfftSetLayout(t->plan, CLFFT_HERMITIAN_INTERLEAVED, CLFFT_REAL), "layout");
    must_fft(clfftSetResultLocation(t->plan, CLFFT_OUTOFPLACE), "place");
    must_fft(clfftSetPlanInStride(t->plan, CLFFT_1D, &one), "stride");
    must_fft(clfftSetPlanOutStride(t->plan, CLFFT_1D, &one), "stride");
    must_fft(clfftSetPlanDistance(t->plan, length / 2 + 1, length), "distance");
    must_fft(clfftSetPlanBatchSize(t->plan, batch), "batch");
    must_fft(clfftBakePlan(t->plan, 1, &t->queue->cl, NULL, NULL), "bake");
}

/* Runs a batch of transforms; returns the seconds for one arm. */
static double transform(transforms *t)
{
    const double started = clv_now();
    cl_event done;
    must_fft(clfftEnqueueTransform(t->plan, CLFFT_BACKWARD, 1, &t->queue->cl, 0, NULL, &done,
                                   &t->in->mem, &t->out->mem, NULL),
             "transform");
    must(clv_queue_note(t->queue, done, CLV_COMMAND_OTHER, "transform", 0, NULL));
    must(clv_queue_wait(t->queue));
    return (clv_now() - started) / (double)t->batch * TEMPLATES;
}

static void close_transforms(transforms *t)
{
    clfftDestroyPlan(&t->plan);
    clv_buffer_free(t->in), clv_buffer_free(t->out);
    clv_queue_free(t->queue);
}

/* Finds how many points of the start templates a fit uses in each arm, which are no finer than lines are wide. */
static void fold(const setting *s, size_t points[ARMS])
{
    clv_spectra_plan *plan;
    must(clv_spectra_plan_create(&s->library, &s->stars, NULL, &plan));
    for (size_t a = 0; a < ARMS; ++a)
        points[a] = plan->grid[a].ccf_points;
    clv_spectra_plan_free(plan);
}

static void measure(const setting *s, const char *selection, int rounds)
{
    const clv_context_options options = { .size = sizeof options,
                                          .devices = selection,
                                          .bind_threads = true };
    transforms folded[ARMS], whole;
    size_t points[ARMS];
    clv_context *context;
    double best[3] = { INFINITY, INFINITY, INFINITY };
    must(clv_context_create(&options, &context));
    clv_device *device = clv_context_device(context, 0);
    (void)seconds_of(context, s, 1); /* opens the device, compiles */
    fold(s, points);
    for (size_t a = 0; a < ARMS; ++a)
        open_transforms(&folded[a], device, points[a], 4 * TEMPLATES);
    open_transforms(&whole, device, START_POINTS, TEMPLATES);
    for (int i = 0; i < rounds; ++i) {
        double all = 0;
        best[0] = fmin(best[0], direct(context, s));
        for (size_t a = 0; a < ARMS; ++a)
            all += transform(&folded[a]);
        best[1] = fmin(best[1], all);
        best[2] = fmin(best[2], ARMS * transform(&whole));
    }
    printf("%s: a star's start values by direct lags %.2f ms; clFFT's inverse transforms alone "
           "%.2f ms (%zu, %zu, %zu points), %.2f ms (%d points)\n",
           clv_device_label(device), best[0] * 1e3, best[1] * 1e3, points[0], points[1], points[2],
           best[2] * 1e3, START_POINTS);
    for (size_t a = 0; a < ARMS; ++a)
        close_transforms(&folded[a]);
    close_transforms(&whole);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 5;
    clv_context *all;
    clfftSetupData data;
    const clv_context_options options = { .size = sizeof options,
                                          .devices = "all",
                                          .bind_threads = true };
    must(clv_context_create(&options, &all));
    must_fft(clfftInitSetupData(&data), "set up"), must_fft(clfftSetup(&data), "set up");
    setting *s = make_setting();
    const clv_probe_report *probe = clv_context_probe(all);
    for (size_t i = 0; i < probe->device_count; ++i) {
        char selection[32];
        snprintf(selection, sizeof selection, "%zu:%u", probe->devices[i].platform,
                 probe->devices[i].ordinal);
        if (probe->devices[i].device_class != CLV_CLASS_SOFTWARE) measure(s, selection, rounds);
    }
    clv_free(s->weights), clv_free(s->starts), clv_free(s);
    clv_context_free(all);
    clfftTeardown();
    return 0;
}

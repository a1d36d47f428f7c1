/* SPDX-License-Identifier: Apache-2.0 */
/* PACO in `cleave bench`: four small sizes that outside programs can do too, and series of growing images and
 * sequences. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/io/formats/npy.h"
#include "host/patch/paco_job.h"
#include "host/synthetic/paco_pair.h"

#include <stdio.h>
#include <string.h>

enum { SEED = 1, PATCH_SIDE = 9, RADIUS = 4 };

/* height, width, frames */
static const size_t small[][3] = {
    { 50, 50, 50 }, { 50, 50, 100 }, { 100, 100, 50 }, { 100, 100, 100 }
};
static const size_t growth[][3] = { { 100, 100, 25 }, { 100, 100, 200 }, { 200, 200, 100 } };
static const size_t more[][3] = {
    { 200, 200, 50 }, { 200, 200, 200 }, { 400, 400, 100 }, { 1024, 1024, 100 }
};

static void add_case(size_t height, size_t width, size_t frames, int fixed, bench_case *cases,
                     size_t room, size_t *count)
{
    if (*count == room) return;
    bench_case *c = &cases[(*count)++];
    *c = (bench_case){ .workload = &bench_paco,
                       .size = { height, width, frames },
                       .variant = fixed,
                       .cold = height == 100 && width == 100 && frames == 50 };
    snprintf(c->name, sizeof c->name, "%zux%zu, T=%zu, %s", width, height, frames,
             fixed ? "fixed" : "shift");
}

static void add_both(const size_t (*sizes)[3], size_t size_count, bench_case *cases, size_t room,
                     size_t *count)
{
    for (size_t i = 0; i < size_count; ++i)
        for (int fixed = 1; fixed >= 0; --fixed)
            add_case(sizes[i][0], sizes[i][1], sizes[i][2], fixed, cases, room, count);
}

/* Lists smaller cases first: they predict which cases take too long for a party. */
static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    size_t count = 0;
    if (sizes->given_count) {
        add_both(sizes->given, sizes->given_count, cases, room, &count);
        return count;
    }
    /* "pixelCalc", 100 patches: an image with room for 10 x 10 patches */
    const size_t side = 10 + PATCH_SIDE - 1;
    add_case(side, side, 50, 1, cases, room, &count);
    snprintf(cases[0].name, sizeof cases[0].name, "100 patches, T=50, fixed");
    add_both(small, CLV_LEN(small), cases, room, &count);
    add_both(growth, CLV_LEN(growth), cases, room, &count);
    if (sizes->full) add_both(more, CLV_LEN(more), cases, room, &count);
    return count;
}

/* Returns the effort in frames times patches, since most of the plain C path's time grows like that. */
static double effort(const bench_case *c)
{
    const double rows = (double)c->size[0] - 2 * RADIUS, columns = (double)c->size[1] - 2 * RADIUS;
    return (c->variant ? 1 : 2) * rows * columns * ((double)c->size[2] + 16);
}

static clv_status prepare(const bench_case *c, const char *folder)
{
    synthetic_adi adi;
    char path[BENCH_PATH];
    CLV_TRY(synthetic_adi_create(c->size[2], c->size[0], c->size[1], SEED, &adi));
    const struct {
        const char *name;
        clv_file_array array;
    } files[] = {
        { "cube.npy", { CLV_F32, 3, { adi.frames, adi.height, adi.width }, adi.cube } },
        { "angles.npy", { CLV_F64, 1, { adi.frames }, adi.angles } },
        { "psf.npy", { CLV_F32, 2, { adi.psf_size, adi.psf_size }, adi.psf } },
    };
    clv_status status = CLV_OK;
    for (size_t i = 0; i < CLV_LEN(files) && !status; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        status = clv_npy_write(path, &files[i].array);
    }
    synthetic_adi_clear(&adi);
    return status;
}

static const char *const *command(const bench_case *c, const char *folder, const char *output)
{
    static char files[3][BENCH_PATH];
    static const char *const names[] = { "cube.npy", "angles.npy", "psf.npy" };
    static const char *arguments[12];
    size_t n = 0;
    arguments[n++] = "paco";
    for (size_t i = 0; i < 3; ++i) {
        snprintf(files[i], sizeof files[i], "%s/%s", folder, names[i]);
        arguments[n++] = files[i];
    }
    arguments[n++] = "--output", arguments[n++] = output;
    arguments[n++] = "--psf-mode", arguments[n++] = c->variant ? "fixed" : "shift";
    arguments[n++] = "--format", arguments[n++] = "npy"; /* outside programs compare with it */
    arguments[n] = NULL;
    return arguments;
}

/* ---- in a party's process -------------------------------------------------------------------------------- */

typedef struct trial {
    clv_context *context;
    clv_paco_input input;
    clv_paco_options options;
    double *a, *b;
    clv_report *report; /* of the last run */
    double kernel_s[BENCH_MOST_SAMPLES];
    size_t runs;
    bool has_kernel_s;
} trial;

static clv_status once(void *user, double *seconds)
{
    trial *t = user;
    double kernel_s = 0;
    clv_report_free(t->report);
    t->report = NULL;
    CLV_TRY(clv_report_create(&t->report));
    const double started = clv_now();
    CLV_TRY(clv_paco(t->context, &t->input, &t->options, t->a, t->b, NULL, t->report));
    *seconds = clv_now() - started;
    for (size_t i = 0; i < clv_report_share_count(t->report); ++i) {
        const clv_share share = clv_report_share(t->report, i);
        if (share.chunks && share.kernel_s < 0) t->has_kernel_s = false;
        kernel_s += share.kernel_s;
    }
    if (t->runs < BENCH_MOST_SAMPLES) t->kernel_s[t->runs++] = kernel_s;
    return CLV_OK;
}

static clv_status send_cost(bench_run *run, size_t case_index, const trial *t)
{
    clv_paco_plan *plan;
    CLV_TRY(clv_paco_plan_create(&t->input, &t->options, &plan));
    const clv_cost cost = clv_paco_cost(0, clv_paco_units(plan), plan);
    clv_paco_plan_free(plan);
    bench_send_cost(run, case_index, cost.flops, cost.traffic_bytes);
    return CLV_OK;
}

/* Measures a trial. The first run, which compiles, chooses variants and learns speeds, does not count. After it, some
 * devices are still busy storing their kernels, so the second run does not count either. The plain C path needs
 * neither. */
static clv_status measure_trial(bench_run *run, size_t case_index, trial *t)
{
    const bench_case *c = &run->bench->cases[case_index];
    const bool plain = run->bench->parties[run->party].kind == BENCH_REFERENCE;
    double seconds = 0, values[BENCH_MOST_SAMPLES];
    size_t count;
    if (!plain) {
        CLV_TRY(once(t, &seconds));
        CLV_TRY(once(t, &seconds));
        CLV_TRY(send_cost(run, case_index, t));
    }
    t->runs = 0;
    CLV_TRY(bench_repeat(&run->bench->plan, once, t, values, &count));
    bench_send(run, case_index, BENCH_COMPUTE, values, count);
    if (t->has_kernel_s && !plain) bench_send(run, case_index, BENCH_KERNEL, t->kernel_s, t->runs);
    if (!plain) bench_send_shares(run, case_index, t->report);
    run->seconds_per_effort = bench_stat_of(values, count).median / effort(c);
    return CLV_OK;
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    synthetic_adi adi;
    if (bench_is_too_long(run, case_index)) return CLV_OK;
    CLV_TRY(synthetic_adi_create(c->size[2], c->size[0], c->size[1], SEED, &adi));
    const size_t positions = adi.height * adi.width;
    trial t = { .context = run->context,
                .input = { .size = sizeof t.input,
                           .cube = adi.cube,
                           .frames = adi.frames,
                           .height = adi.height,
                           .width = adi.width,
                           .angles = adi.angles,
                           .psf = adi.psf,
                           .psf_size = adi.psf_size },
                .options = { .size = sizeof t.options,
                             .psf_mode = c->variant ? CLV_PSF_FIXED : CLV_PSF_SHIFT },
                .a = clv_alloc(positions, sizeof *t.a),
                .b = clv_alloc(positions, sizeof *t.b),
                .has_kernel_s = true };
    clv_status status = t.a && t.b ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for maps");
    if (!status) status = measure_trial(run, case_index, &t);
    clv_free(t.a), clv_free(t.b);
    clv_report_free(t.report);
    synthetic_adi_clear(&adi);
    return status;
}

/* ---- plots ------------------------------------------------------------------------------------------------ */

static double side_of(const bench_case *c, size_t frames, int fixed)
{
    const bool in =
        c->size[2] == frames && c->variant == fixed && c->size[0] == c->size[1] && c->size[0] >= 50;
    return in ? (double)c->size[0] : 0;
}

static double side_fixed(const bench_case *c)
{
    return side_of(c, 100, 1);
}

static double side_shift(const bench_case *c)
{
    return side_of(c, 100, 0);
}

static double frames_of(const bench_case *c, int fixed)
{
    return c->size[0] == 100 && c->size[1] == 100 && c->variant == fixed ? (double)c->size[2] : 0;
}

static double frames_fixed(const bench_case *c)
{
    return frames_of(c, 1);
}

static double frames_shift(const bench_case *c)
{
    return frames_of(c, 0);
}

static const bench_plot plots[] = {
    { "100 frames, PSF fixed", "side of the image in pixels", side_fixed },
    { "100 frames, PSF shifted", "side of the image in pixels", side_shift },
    { "Image of 100 x 100, PSF fixed", "frames", frames_fixed },
    { "Image of 100 x 100, PSF shifted", "frames", frames_shift },
};

const bench_workload bench_paco = {
    .name = "paco",
    .title = "PACO: exoplanets in ADI sequences, patches of 49 pixels",
    .cases = list_cases,
    .effort = effort,
    .prepare = prepare,
    .measure = measure,
    .command = command,
    .plots = plots,
    .plot_count = CLV_LEN(plots),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Spectral fitting in `cleave bench`: whole fits of stars in the form of DESI's, and the parts of a fit. */
#include "bench/command/specfit_stars.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/spectra/spectra_job.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 9 };

/* Lists the parts of a fit: the name, the stages that a job repeats, the number of stars and of velocities, and
 * which share of a repetition the name means. */
enum { WHOLE, LARGE, NETWORK, SPLINE, VALUES, SCAN, START, PREPARE, JUDGE };
static const struct part {
    const char *name;
    unsigned stages;
    size_t stars, velocities;
    double share; /* the part in the name, as a fraction of a repetition */
} parts[] = {
    [NETWORK] = { "network, 128 templates", CLV_SPECTRA_STAGE_NETWORK, 26, 0, 128.0 / (26 * 5) },
    [SPLINE] = { "rotation, spline, 128 templates", CLV_SPECTRA_STAGE_SPLINE, 26, 0,
                 128.0 / (26 * 6) },
    [VALUES] = { "chi-square, 128 templates", CLV_SPECTRA_STAGE_VALUES, 4, 32, 1 },
    [SCAN] = { "velocity scan of 416, a star", CLV_SPECTRA_STAGE_SHIFT | CLV_SPECTRA_STAGE_VALUES,
               8, 416, 1.0 / 8 },
    [START] = { "start values, a star", CLV_SPECTRA_STAGE_START, 32, 0, 1.0 / 32 },
    [PREPARE] = { "preparation, a star", 0, 16, 0, 1.0 / 16 }, /* host work */
    [JUDGE] = { "normal equations, step, 128 points", CLV_SPECTRA_STAGE_JUDGE, 32, 0, 128.0 / 32 },
};

static void add_case(size_t stars, int variant, bench_case *cases, size_t room, size_t *count)
{
    if (*count == room) return;
    bench_case *c = &cases[(*count)++];
    *c = (bench_case){ .workload = &bench_specfit,
                       .size = { stars, 7958, 1 },
                       .variant = variant,
                       .cold = variant == WHOLE && stars == 32,
                       .from_files = variant == LARGE,
                       .part = variant > LARGE };
    if (variant == LARGE)
        snprintf(c->name, sizeof c->name, "tile of %zu fibres, 3 arms", stars);
    else if (variant == WHOLE)
        snprintf(c->name, sizeof c->name, "%zu stars, 7958 pixels", stars);
    else
        snprintf(c->name, sizeof c->name, "%s", parts[variant].name);
}

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    size_t count = 0;
    if (sizes->given_count) return 0; /* given sizes are for images */
    const size_t given = bench_stars_given();
    if (given) {
        add_case(given, WHOLE, cases, room, &count);
    } else {
        add_case(2, WHOLE, cases, room, &count);
        add_case(32, WHOLE, cases, room, &count);
        if (sizes->full) add_case(256, WHOLE, cases, room, &count);
        /* as many as fit in memory at a time, and a whole tile: both need the same memory */
        if (sizes->full) add_case(512, LARGE, cases, room, &count);
        if (sizes->full) add_case(5000, LARGE, cases, room, &count);
    }
    for (int part = NETWORK; part <= JUDGE; ++part)
        add_case(parts[part].stars, part, cases, room, &count);
    return count;
}

static double effort(const bench_case *c)
{
    return (double)c->size[0];
}

static clv_status prepare(const bench_case *c, const char *folder)
{
    char library[BENCH_PATH];
    snprintf(library, sizeof library, "%.4000s/../specfit-library", folder);
    return bench_stars_write(c->variant <= LARGE ? c->size[0] : 2, folder, library);
}

static const char *const *command(const bench_case *c, const char *folder, const char *output)
{
    static char coadd[BENCH_PATH], library[BENCH_PATH], table[BENCH_PATH];
    static const char *arguments[8];
    size_t n = 0;
    (void)c;
    snprintf(coadd, sizeof coadd, "%.4000s/coadd.fits", folder);
    snprintf(library, sizeof library, "%.4000s/../specfit-library", folder);
    snprintf(table, sizeof table, "%.4000s.csv", output);
    arguments[n++] = "specfit", arguments[n++] = coadd;
    arguments[n++] = "--library", arguments[n++] = library;
    arguments[n++] = "--output", arguments[n++] = table;
    arguments[n] = NULL;
    return arguments;
}

/* ---- in a party's process: whole fits ------------------------------------------------------------------- */

typedef struct trial {
    clv_context *context;
    const bench_stars *s;
    clv_specfit_result *results;
    clv_report *report; /* of the last run */
    double kernel_s[BENCH_MOST_SAMPLES];
    size_t runs;
    bool has_kernel_s;
    /* of a part */
    const struct part *part;
    double *points;
    double flops, traffic;
} trial;

static double kernel_seconds(const clv_report *report)
{
    double sum = 0;
    for (size_t i = 0; i < clv_report_share_count(report); ++i) {
        const clv_share share = clv_report_share(report, i);
        if (share.chunks && share.kernel_s < 0) return -1;
        if (share.chunks) sum += share.kernel_s;
    }
    return sum;
}

static clv_status once(void *user, double *seconds)
{
    trial *t = user;
    clv_report_free(t->report);
    t->report = NULL;
    CLV_TRY(clv_report_create(&t->report));
    const double started = clv_now();
    CLV_TRY(clv_specfit(t->context, &t->s->library, &t->s->stars, NULL, t->results, t->report));
    *seconds = clv_now() - started;
    const double kernels = kernel_seconds(t->report);
    t->has_kernel_s = t->has_kernel_s && kernels >= 0;
    if (t->runs < BENCH_MOST_SAMPLES) t->kernel_s[t->runs++] = kernels;
    return CLV_OK;
}

static clv_status send_cost(bench_run *run, size_t case_index, const bench_stars *s)
{
    clv_spectra_plan *plan;
    CLV_TRY(clv_spectra_plan_create(&s->library, &s->stars, NULL, &plan));
    plan->wish.scans = true;
    const clv_cost cost = clv_spectra_cost(0, s->stars.count, plan);
    clv_spectra_plan_free(plan);
    bench_send_cost(run, case_index, cost.flops, cost.traffic_bytes);
    return CLV_OK;
}

static clv_status measure_whole(bench_run *run, size_t case_index, trial *t)
{
    const bool plain = run->bench->parties[run->party].kind == BENCH_REFERENCE;
    double seconds = 0, values[BENCH_MOST_SAMPLES];
    size_t count;
    if (!plain) { /* compiles, learns speeds */
        CLV_TRY(once(t, &seconds));
        CLV_TRY(once(t, &seconds));
        CLV_TRY(send_cost(run, case_index, t->s));
    }
    t->runs = 0, t->has_kernel_s = true;
    CLV_TRY(bench_repeat(&run->bench->plan, once, t, values, &count));
    bench_send(run, case_index, BENCH_COMPUTE, values, count);
    if (t->has_kernel_s && !plain) bench_send(run, case_index, BENCH_KERNEL, t->kernel_s, t->runs);
    if (!plain) bench_send_shares(run, case_index, t->report);
    run->seconds_per_effort =
        bench_stat_of(values, count).median / effort(&run->bench->cases[case_index]);
    return CLV_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------ */

static clv_status drop(const clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return CLV_OK;
}

/* Measures the kernels' seconds in a job that repeats the part. */
static clv_status run_part(trial *t, size_t repeats, double *seconds)
{
    clv_job job = clv_spectra_job("specfit_part", t->s->stars.count);
    job.min_chunk = job.units, job.commit = drop;
    clv_spectra_plan *plan;
    clv_report *report;
    CLV_TRY(clv_spectra_plan_create(&t->s->library, &t->s->stars, NULL, &plan));
    plan->wish.stages = t->part->stages, plan->wish.repeats = repeats;
    if (t->part->stages != CLV_SPECTRA_STAGE_START) plan->wish.points = t->points;
    plan->wish.scan_count = t->part->velocities, plan->wish.scans = plan->wish.scan_count > 0;
    plan->wish.scan_from = -400, plan->wish.scan_step = 2;
    clv_status status = clv_report_create(&report);
    const double started = clv_now();
    if (!status) status = clv_job_run(t->context, &job, plan, report);
    *seconds = clv_now() - started;
    if (!status && kernel_seconds(report) >= 0) *seconds = kernel_seconds(report);
    clv_report_free(report);
    clv_spectra_plan_free(plan);
    return status;
}

/* Measures the time of the additional repetitions: both jobs include transfers and the first round. */
static clv_status part_once(trial *t, double *seconds)
{
    double one, many;
    CLV_TRY(run_part(t, 1, &one));
    CLV_TRY(run_part(t, REPEATS, &many));
    *seconds = CLV_MAX(many - one, 1e-9) / (REPEATS - 1) * t->part->share;
    return CLV_OK;
}

/* Counts the arithmetic that the formulas need and the memory that must be read and written. */
static clv_status cost_of_part(trial *t, int which)
{
    double network = 0, weights = 0, points = 0, pixels = 0, lags = 0, starts = 0;
    clv_spectra_plan *plan;
    CLV_TRY(clv_spectra_plan_create(&t->s->library, &t->s->stars, NULL, &plan));
    for (size_t i = 0; i < t->s->stars.spectra; ++i) { /* as a fit folds the start templates */
        starts += (double)plan->grid[i].ccf_points;
        lags += (double)plan->grid[i].ccf_points * (double)(2 * plan->grid[i].ccf_reach + 1);
    }
    clv_spectra_plan_free(plan);
    for (size_t a = 0; a < t->s->library.arm_count; ++a) {
        const clv_spectra_arm *arm = &t->s->library.arms[a];
        for (size_t l = 0; l < arm->layers; ++l)
            weights += (double)arm->width[l] * (double)arm->width[l + 1];
        points += (double)arm->points, pixels += (double)t->s->stars.items[a].pixels;
    }
    network = 2 * weights;
    const double each = pixels * (2 * 65 + 2 + 2 * 10 + 5), shift = pixels * 30;
    const double velocities = (double)t->part->velocities;
    if (which == NETWORK)
        t->flops = 128 * network, t->traffic = 4 * weights + 128 * points * 32 / 5;
    if (which == SPLINE)
        t->flops = 128 * (points * 16 + pixels * 8), /* five taps, and the recursions */
            t->traffic = 128 * (3 * points + pixels) * 4;
    if (which == VALUES) t->flops = 128 * each, t->traffic = 128 * pixels * 8;
    /* 65 sums, then 55 + 21 + 60 + 10 + 12 and the continuum; both passes read eight lanes of a pixel */
    if (which == JUDGE)
        t->flops = 128 * pixels * 2 * (65 + 55 + 21 + 60 + 10 + 12 + 10),
        t->traffic = 128 * pixels * 2 * 32;
    if (which == SCAN)
        t->flops = velocities * (each + shift), t->traffic = velocities * pixels * 12;
    if (which == START)
        t->flops = 5 * lags * (double)t->s->library.ccf_count,
        t->traffic = starts * (double)t->s->library.ccf_count; /* by four */
    return CLV_OK;
}

/* Measures the host's work on a star before any device starts, on one thread. */
static clv_status prepare_all(void *user, double *seconds)
{
    trial *t = user;
    clv_spectra_plan *plan;
    clv_star_data data;
    CLV_TRY(clv_spectra_plan_create(&t->s->library, &t->s->stars, NULL, &plan));
    clv_status status = clv_star_data_create(plan, &data);
    const double started = clv_now();
    for (size_t i = 0; i < t->s->stars.count && !status; ++i)
        status = clv_star_prepare(plan, i, &data);
    *seconds = (clv_now() - started) * t->part->share;
    clv_star_data_clear(&data);
    clv_spectra_plan_free(plan);
    return status;
}

static clv_status measure_part(bench_run *run, size_t case_index, trial *t)
{
    const bench_case *c = &run->bench->cases[case_index];
    const bool plain = run->bench->parties[run->party].kind == BENCH_REFERENCE;
    double values[BENCH_MOST_SAMPLES], warm;
    size_t count;
    t->part = &parts[c->variant];
    if (plain != (c->variant == PREPARE)) {
        bench_send_note(run, case_index, plain ? "parts are measured on devices" : "host work");
        return CLV_OK;
    }
    if (plain) {
        CLV_TRY(bench_repeat(&run->bench->plan, prepare_all, t, values, &count));
        bench_send(run, case_index, BENCH_COMPUTE, values, count);
        return CLV_OK;
    }
    CLV_TRY(run_part(t, 1, &warm));
    CLV_TRY(cost_of_part(t, c->variant));
    bench_send_cost(run, case_index, t->flops, t->traffic);
    count = CLV_MIN(CLV_MAX(run->bench->plan.repeats, (size_t)5), (size_t)BENCH_MOST_SAMPLES);
    for (size_t i = 0; i < count; ++i) /* the overhead of a sample exceeds its own time */
        CLV_TRY(part_once(t, &values[i]));
    bench_send(run, case_index, BENCH_KERNEL, values, count);
    bench_send(run, case_index, BENCH_COMPUTE, values, count);
    return CLV_OK;
}

static clv_status measure(bench_run *run, size_t case_index)
{
    static const double point[CLV_SPECTRA_UNKNOWNS] = { 12, 10, 5500, 4, -0.7, 0.1 };
    const bench_case *c = &run->bench->cases[case_index];
    bench_stars s;
    if (c->variant == LARGE) return CLV_OK;
    if (c->variant == WHOLE && bench_is_too_long(run, case_index)) return CLV_OK;
    CLV_TRY(bench_stars_get(c->size[0], &s));
    trial t = { .context = run->context,
                .s = &s,
                .results = clv_zalloc(c->size[0], sizeof *t.results),
                .points = clv_zalloc(c->size[0], sizeof point) };
    clv_status status = t.results && t.points ? CLV_OK : clv_fail(CLV_E_MEMORY, "out of memory");
    for (size_t i = 0; i < c->size[0] && !status; ++i) /* the same task as for outside programs */
        memcpy(t.points + i * CLV_SPECTRA_UNKNOWNS, point, sizeof point);
    if (!status)
        status = c->variant == WHOLE ? measure_whole(run, case_index, &t)
                                     : measure_part(run, case_index, &t);
    clv_free(t.results), clv_free(t.points);
    clv_report_free(t.report);
    return status;
}

static double stars_of(const bench_case *c)
{
    return c->variant <= LARGE ? (double)c->size[0] : 0;
}

static const bench_plot plots[] = {
    { "Whole fits, 7958 pixels", "stars", stars_of },
};

const bench_workload bench_specfit = {
    .name = "specfit",
    .title = "Spectra: fits of stars with DESI's three arms, network 4-256-256-256-200-18000, 300 "
             "start templates",
    .cases = list_cases,
    .effort = effort,
    .prepare = prepare,
    .measure = measure,
    .command = command,
    .plots = plots,
    .plot_count = CLV_LEN(plots),
};

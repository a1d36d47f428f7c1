/* SPDX-License-Identifier: Apache-2.0 */
/* Spectral fitting in `cleave bench`: whole fits of stars as DESI has them, and the parts of a fit. */
#include "host/cli/bench/bench.h"
#include "host/cli/synthetic/stars.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "host/spectra/spectra_job.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SEED = 1, MOST_MADE = 64, REPEATS = 9 };

/* Parts of a fit: what a job repeats, on how many stars, and what that amounts to. */
enum { WHOLE, LARGE, NETWORK, SPLINE, VALUES, SCAN, START };
static const struct part {
    const char *name;
    unsigned stages;
    size_t stars, velocities;
    double share; /* of a repetition: what the name promises */
} parts[] = {
    [NETWORK] = { "network, 128 templates", CLV_SPECTRA_STAGE_NETWORK, 26, 0, 128.0 / (26 * 5) },
    [SPLINE] = { "rotation, spline, 128 templates", CLV_SPECTRA_STAGE_SPLINE, 26, 0,
                 128.0 / (26 * 6) },
    [VALUES] = { "chi-square, 128 templates", CLV_SPECTRA_STAGE_VALUES, 4, 32, 1 },
    [SCAN] = { "velocity scan of 416, a star", CLV_SPECTRA_STAGE_SHIFT | CLV_SPECTRA_STAGE_VALUES,
               8, 416, 1.0 / 8 },
    [START] = { "start values, a star", CLV_SPECTRA_STAGE_START, 32, 0, 1.0 / 32 },
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
    if (variant <= LARGE)
        snprintf(c->name, sizeof c->name, "%zu stars, 7958 pixels", stars);
    else
        snprintf(c->name, sizeof c->name, "%s", parts[variant].name);
}

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    size_t count = 0;
    if (sizes->given_count) return 0; /* those are of images */
    add_case(2, WHOLE, cases, room, &count);
    add_case(32, WHOLE, cases, room, &count);
    if (sizes->full) add_case(256, WHOLE, cases, room, &count);
    if (sizes->full) add_case(5000, LARGE, cases, room, &count);
    for (int part = NETWORK; part <= START; ++part)
        add_case(parts[part].stars, part, cases, room, &count);
    return count;
}

static double effort(const bench_case *c)
{
    return (double)c->size[0];
}

/* The first `count` stars; made once a process, as that takes seconds, and never freed. */
static clv_status stars_of_process(size_t count, synthetic_stars *out)
{
    static synthetic_stars made;
    if (made.stars.count < count) {
        const size_t all = CLV_MAX(count, (size_t)32);
        synthetic_stars_clear(&made);
        CLV_TRY(synthetic_stars_create_like(&synthetic_stars_desi, all, SEED, false, &made));
    }
    *out = made;
    out->stars.count = count;
    return CLV_OK;
}

/* The library lies beside the cases: it is the same for all. */
static clv_status prepare(const bench_case *c, const char *folder)
{
    char library[BENCH_PATH], described[BENCH_PATH + 16], coadd[BENCH_PATH];
    synthetic_stars s;
    const bool whole = c->variant <= LARGE;
    CLV_TRY(stars_of_process(CLV_MIN(whole ? c->size[0] : 2, (size_t)MOST_MADE), &s));
    snprintf(library, sizeof library, "%.4000s/../specfit-library", folder);
    snprintf(described, sizeof described, "%s/lib.json", library);
    snprintf(coadd, sizeof coadd, "%.4000s/coadd.fits", folder);
    clv_status status = CLV_OK;
    if (access(described, R_OK)) status = synthetic_stars_write_library(&s, library);
    return status ? status : synthetic_stars_write_coadd(&s, whole ? c->size[0] : 2, coadd);
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
    const synthetic_stars *s;
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

static clv_status send_cost(bench_run *run, size_t case_index, const synthetic_stars *s)
{
    clv_spectra_plan *plan;
    CLV_TRY(clv_spectra_plan_create(&s->library, &s->stars, NULL, &plan));
    plan->scans = true;
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

/* Seconds of the kernels of a job that repeats the part. */
static clv_status run_part(trial *t, size_t repeats, double *seconds)
{
    const clv_job job = { .name = "specfit_part",
                          .units = t->s->stars.count,
                          .min_chunk = t->s->stars.count,
                          .cost = clv_spectra_cost,
                          .setup = clv_spectra_setup,
                          .enqueue = clv_spectra_enqueue,
                          .commit = drop };
    clv_spectra_plan *plan;
    clv_report *report;
    CLV_TRY(clv_spectra_plan_create(&t->s->library, &t->s->stars, NULL, &plan));
    plan->stages = t->part->stages, plan->repeats = repeats;
    if (t->part->stages != CLV_SPECTRA_STAGE_START) plan->points = t->points;
    plan->scan_count = t->part->velocities, plan->scans = plan->scan_count > 0;
    plan->scan_from = -400, plan->scan_step = 2;
    clv_status status = clv_report_create(&report);
    const double started = clv_now();
    if (!status) status = clv_job_run(t->context, &job, plan, report);
    *seconds = clv_now() - started;
    if (!status && kernel_seconds(report) >= 0) *seconds = kernel_seconds(report);
    clv_report_free(report);
    clv_spectra_plan_free(plan);
    return status;
}

/* What the further repetitions took: transfers and the first round are in both. */
static clv_status part_once(trial *t, double *seconds)
{
    double one, many;
    CLV_TRY(run_part(t, 1, &one));
    CLV_TRY(run_part(t, REPEATS, &many));
    *seconds = CLV_MAX(many - one, 1e-9) / (REPEATS - 1) * t->part->share;
    return CLV_OK;
}

/* Arithmetic that the formulas need, and memory that has to be read and written. */
static void cost_of_part(trial *t, int which)
{
    double network = 0, weights = 0, points = 0, pixels = 0, lags = 0;
    for (size_t a = 0; a < t->s->library.arm_count; ++a) {
        const clv_spectra_arm *arm = &t->s->library.arms[a];
        for (size_t l = 0; l < arm->layers; ++l)
            weights += (double)arm->width[l] * (double)arm->width[l + 1];
        points += (double)arm->points, pixels += (double)t->s->stars.items[a].pixels;
        lags += 2048.0 * 160; /* as it is folded, +-1000 km/s */
    }
    network = 2 * weights;
    const double each = pixels * (2 * 65 + 2 + 2 * 10 + 5), shift = pixels * 30;
    const double velocities = (double)t->part->velocities, stars = (double)t->part->stars;
    if (which == NETWORK)
        t->flops = 128 * network, t->traffic = 4 * weights + 128 * points * 32 / 5;
    if (which == SPLINE)
        t->flops = 128 * (points * 16 * 3 + pixels * 8),
        t->traffic = 128 * (3 * points + pixels) * 4;
    if (which == VALUES) t->flops = 128 * each, t->traffic = 128 * pixels * 8;
    if (which == SCAN)
        t->flops = velocities * (each + shift), t->traffic = velocities * pixels * 12;
    if (which == START)
        t->flops = 5 * lags * (double)t->s->library.ccf_count, t->traffic = 4 * lags;
    (void)stars;
}

static clv_status measure_part(bench_run *run, size_t case_index, trial *t)
{
    const bench_case *c = &run->bench->cases[case_index];
    double values[BENCH_MOST_SAMPLES], warm;
    size_t count;
    if (run->bench->parties[run->party].kind == BENCH_REFERENCE) {
        bench_send_note(run, case_index, "parts are measured on devices");
        return CLV_OK;
    }
    t->part = &parts[c->variant];
    CLV_TRY(run_part(t, 1, &warm));
    cost_of_part(t, c->variant);
    bench_send_cost(run, case_index, t->flops, t->traffic);
    count = CLV_MIN(CLV_MAX(run->bench->plan.repeats, (size_t)5), (size_t)BENCH_MOST_SAMPLES);
    for (size_t i = 0; i < count; ++i) /* what surrounds a sample takes longer than it */
        CLV_TRY(part_once(t, &values[i]));
    bench_send(run, case_index, BENCH_KERNEL, values, count);
    bench_send(run, case_index, BENCH_COMPUTE, values, count);
    return CLV_OK;
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    synthetic_stars s;
    if (c->variant == LARGE) return CLV_OK;
    if (c->variant == WHOLE && bench_is_too_long(run, case_index)) return CLV_OK;
    CLV_TRY(stars_of_process(c->size[0], &s));
    trial t = { .context = run->context,
                .s = &s,
                .results = clv_zalloc(c->size[0], sizeof *t.results),
                .points = clv_zalloc(c->size[0] * CLV_SPECTRA_UNKNOWNS, sizeof *t.points) };
    clv_status status = t.results && t.points ? CLV_OK : clv_fail(CLV_E_MEMORY, "no memory");
    for (size_t i = 0; i < c->size[0] && !status; ++i) {
        memcpy(t.points + i * CLV_SPECTRA_UNKNOWNS, s.truth[i], sizeof s.truth[i]);
        t.points[i * CLV_SPECTRA_UNKNOWNS + 1] = 10; /* as the outside programs are asked */
    }
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

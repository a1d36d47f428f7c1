/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether calls choose the faster side. Every point of the grid is decided first; then its calls are timed in
 * turns on the host, on the device, and on the side that they choose themselves. The grid is measured in slices,
 * which append to one file; --sum judges the file. */
#include "bench/offload/grid.h"
#include "bench/offload/judge.h"
#include "bench/offload/ways.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/offload/call.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6, MOST_POINTS = 400 };

typedef struct verdict {
    int index;
    bool device; /* the side that the plan chose before any call */
    double predicted[2];
    judge_rounds rounds;
} verdict;

static ways_count turns;
/* ---- a slice ----------------------------------------------------------------------------------- */

static clv_status decide(grid_point *p, verdict *v)
{
    clv_offload plan;
    const bool dry = clv_offload_dry(true);
    clv_status status = grid_call(p);
    clv_offload_dry(dry);
    if (!status) status = clv_offload_last(&plan);
    if (status) return status;
    v->device = plan.side == CLV_SIDE_DEVICE;
    v->predicted[0] = plan.host_s, v->predicted[1] = plan.device_s;
    return CLV_OK;
}

static clv_status use(grid_point *p, double seconds)
{
    const double started = clv_now();
    clv_status status = CLV_OK;
    while (!status && clv_now() - started < seconds)
        status = grid_call(p);
    return status;
}

enum { BUILD, USE, DECIDE, TIME };

typedef struct job {
    clv_context *context;
    float *memory;
    double use_s;
} job;

static clv_status do_point(const job *j, verdict *v, int what)
{
    grid_point p = { .context = j->context, .memory = j->memory };
    clv_status status = CLV_E_MEMORY;
    double seconds;
    bool picked;
    grid_at(v->index, &p);
    if (grid_set_up(&p)) {
        status = what == BUILD    ? ways_turn(&p, JUDGE_DEVICE, &seconds, &picked)
                 : what == USE    ? use(&p, j->use_s)
                 : what == DECIDE ? decide(&p, v)
                                  : ways_round(&p, &v->rounds, &turns);
    }
    grid_clean_up(&p);
    return status;
}

static void print(FILE *to, const verdict *v)
{
    const judge_rounds *r = &v->rounds;
    fprintf(to, "%d %d %.4g %.4g %d", v->index, v->device, v->predicted[0], v->predicted[1],
            r->count);
    for (int i = 0; i < r->count; ++i)
        fprintf(to, "  %.4g %.4g %.4g %d", r->took[0][i], r->took[1][i], r->took[2][i],
                r->picked[i]);
    fprintf(to, "\n");
}

static bool scan(FILE *from, verdict *v)
{
    judge_rounds *r = &v->rounds;
    int device;
    *v = (verdict){ 0 };
    if (fscanf(from, "%d %d %lf %lf %d", &v->index, &device, &v->predicted[0], &v->predicted[1],
               &r->count) != 5 ||
        r->count < 1 || r->count > JUDGE_ROUNDS)
        return false;
    v->device = device;
    for (int i = 0; i < r->count; ++i) {
        if (fscanf(from, "%lf %lf %lf %d", &r->took[0][i], &r->took[1][i], &r->took[2][i],
                   &device) != 4)
            return false;
        r->picked[i] = device;
    }
    return true;
}

static int what_of(int index)
{
    grid_point p = { 0 };
    grid_at(index, &p);
    return p.what;
}

/* Measures a slice. All points are decided before any is timed, because the library learns from timings too. Timing is
 * done in rounds, because a machine's state over a few seconds is not representative. After the first rounds, only
 * points without a clear result continue, whichever side was chosen. */
static clv_status do_slice(const job *j, int first, int last, FILE *to)
{
    static verdict v[MOST_POINTS];
    clv_status status = CLV_OK;
    for (int what = BUILD; what < TIME + JUDGE_ROUNDS && !status; ++what) {
        for (int i = first; i < last && !status; ++i) {
            v[i].index = i;
            if (what == BUILD && i > first && what_of(i) == what_of(i - 1)) continue;
            if (what == USE && !(j->use_s > 0)) continue;
            if (what >= TIME + ROUNDS && judge_is_sure(&v[i].rounds)) continue;
            status = do_point(j, &v[i], what);
        }
    }
    for (int i = first; i < last && !status; ++i)
        print(to, &v[i]);
    fprintf(stderr, "%d of %d turns were disturbed\n", turns.disturbed, turns.all);
    return status;
}

/* ---- the sum ----------------------------------------------------------------------------------- */

/* The score of one way of choosing. */
typedef struct score {
    int points, right, alike, near, bad, open, on_device, heavy, heavy_long;
    double worst, total;
} score;

/* Counts a point in the score. `lost`: the time relative to the faster side's. */
static const char *count_in(score *s, bool device, bool best, bool alike, judge_ratio lost,
                            double seconds)
{
    static const double long_s = 5e-6; /* the decision is negligible in calls that are longer */
    const bool right = device == best, sure = lost.low > 1;
    const bool near = !right && !alike && lost.median < 1.02;
    const bool bad = !right && lost.median > 1.1 && sure;
    ++s->points;
    s->right += right, s->alike += !right && alike, s->near += near, s->bad += bad;
    s->open += !right && lost.median > 1.1 && !sure;
    s->heavy += right && lost.median > 1.1 && sure;
    s->heavy_long += right && lost.median > 1.1 && sure && seconds >= long_s;
    s->on_device += device;
    s->total += log(fmax(lost.median, 1));
    if (sure && !right) s->worst = fmax(s->worst, lost.median);
    return bad ? "WRONG" : right ? "" : alike ? "alike" : near ? "near" : "slower";
}

static void add(score s[2], const verdict *v, bool verbose)
{
    grid_point p = { 0 };
    const judge_rounds *r = &v->rounds;
    const judge_ratio sides = judge_compare(r, JUDGE_DEVICE, JUDGE_HOST);
    const bool best = sides.median < 1, alike = sides.low <= 1 && sides.high >= 1;
    int picked = 0;
    for (int i = 0; i < r->count; ++i)
        picked += r->picked[i];
    const bool pick = 2 * picked > r->count || (2 * picked == r->count && best);
    const judge_ratio planned = judge_compare(r, v->device, best);
    const judge_ratio lost = judge_compare(r, JUDGE_AUTO, best);
    grid_at(v->index, &p);
    const char *first = count_in(&s[0], v->device, best, alike, planned, judge_usual(r, best));
    const char *then = count_in(&s[1], pick, best, alike, lost, judge_usual(r, best));
    if (verbose || *first || *then)
        printf(
            "%3d %-30s %9zu  host %10.1f us (%10.1f)  device %10.1f us (%10.1f)  ratio %.3f, %.3f "
            "to %.3f in %2d rounds  plan: %-6s %-6s  calls: %2d on the device, %5.1f %% lost, %.1f "
            "to "
            "%.1f %s\n",
            v->index, grid_name(p.what), p.size, judge_usual(r, 0) * 1e6, v->predicted[0] * 1e6,
            judge_usual(r, 1) * 1e6, v->predicted[1] * 1e6, sides.median, sides.low, sides.high,
            r->count, v->device ? "device" : "host", first, picked, 100 * (lost.median - 1),
            100 * (lost.low - 1), 100 * (lost.high - 1), then);
}

static void print_score(const char *name, const score *s)
{
    printf(
        "%s: %d of %d points: the faster side in %d (%.1f %%), both alike to what can be timed "
        "in %d more, within 2 %% in %d more; on the slower side and more than 10 %% slower in %d, "
        "at worst %.1f %%, maybe so in %d; on the faster side and as much slower in %d (%d of "
        "them calls of 5 us and more); %.2f %% lost on average; the device in %d\n",
        name, s->points, grid_points(), s->right, 100.0 * s->right / s->points, s->alike, s->near,
        s->bad, 100 * (s->worst - 1), s->open, s->heavy, s->heavy_long,
        100 * expm1(s->total / s->points), s->on_device);
}

static int sum_up(const char *path, bool verbose)
{
    verdict v;
    score s[2] = { { .worst = 1 }, { .worst = 1 } };
    FILE *from = fopen(path, "r");
    while (from && s[0].points < MOST_POINTS && scan(from, &v))
        add(s, &v, verbose);
    if (from) fclose(from);
    if (!s[0].points) {
        fprintf(stderr, "bench_offload: no points in %s\n", path);
        return 1;
    }
    print_score("plans", &s[0]), print_score("calls", &s[1]);
    return 0;
}

static void usage(void)
{
    printf("usage: bench_offload [--device SEL] [--points FIRST:LAST] [--use S] [--out FILE]\n"
           "       bench_offload --sum FILE [--verbose]\n"
           "Points 0 to %d; a slice is appended to FILE (default: standard output). Each point is\n"
           "called for S seconds before it is decided, by whichever side is chosen (default: 0).\n",
           grid_points());
}

int main(int argc, char **argv)
{
    static const struct option names[] = { { "device", 1, NULL, 'd' }, { "points", 1, NULL, 'p' },
                                           { "use", 1, NULL, 'u' },    { "out", 1, NULL, 'o' },
                                           { "sum", 1, NULL, 's' },    { "verbose", 0, NULL, 'v' },
                                           { "help", 0, NULL, 'h' },   { NULL, 0, NULL, 0 } };
    clv_context_options options = { .size = sizeof options, .bind_threads = true };
    const char *sum = NULL;
    FILE *to = stdout;
    job j = { .memory = clv_alloc_pages(grid_room() * sizeof *j.memory) };
    int first = 0, last = grid_points(), found;
    bool verbose = false;
    while ((found = getopt_long(argc, argv, "d:p:u:o:s:vh", names, NULL)) != -1) {
        if (found == 'd') options.devices = optarg;
        if (found == 'p' && sscanf(optarg, "%d:%d", &first, &last) != 2) found = '?';
        if (found == 'u') j.use_s = atof(optarg);
        if (found == 'o' && !(to = fopen(optarg, "a"))) found = '?';
        if (found == 's') sum = optarg;
        if (found == 'v') verbose = true;
        if (found == 'h' || found == '?') {
            usage();
            return found == 'h' ? 0 : 2;
        }
    }
    if (sum) return sum_up(sum, verbose);
    first = CLV_MAX(first, 0), last = CLV_MIN(CLV_MIN(last, grid_points()), (int)MOST_POINTS);
    clv_status status = clv_context_create(&options, &j.context);
    for (size_t i = 0; j.memory && i < grid_room(); ++i)
        j.memory[i] = 1;
    if (!status && j.memory) status = do_slice(&j, first, last, to);
    if (status) fprintf(stderr, "bench_offload: %s\n", clv_error_message());
    const bool failed = status || !j.memory;
    clv_context_free(j.context);
    clv_free(j.memory);
    if (to != stdout) fclose(to);
    return failed;
}

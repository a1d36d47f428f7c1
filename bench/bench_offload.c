/* SPDX-License-Identifier: Apache-2.0 */
/* Is the side that a call chooses the faster one? Every point of the grid is decided first, then timed
 * on both sides in turns. In slices that append to one file; --sum judges the file. */
#include "bench/offload/grid.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, TURNS = 20, LEAST_TURNS = 2, CALLS = 100, MOST_POINTS = 400 };
enum { MOST_CALLS = ROUNDS * TURNS * CALLS };

/* Median of all calls; `error`: of that median, relative. */
typedef struct timing {
    double seconds, error;
} timing;

typedef struct verdict {
    int index;
    bool device;
    double predicted[2];
    timing side[2];
} verdict;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

typedef struct calls {
    double took[MOST_CALLS];
    int count;
} calls;

/* Two standard errors of a median, by the median deviation: 2 * 1.253 * 1.483 / sqrt(count). */
static timing judge(double *values, int count)
{
    double apart[MOST_CALLS];
    timing t = { .seconds = median(values, count) };
    for (int i = 0; i < count; ++i)
        apart[i] = fabs(values[i] - t.seconds);
    t.error = 3.7 * median(apart, count) / sqrt((double)count) / t.seconds;
    return t;
}

/* Calls in a row, as programs make them; those in which the side wakes up are not counted. */
static clv_status turn_of(grid_point *p, clv_side side, calls *c)
{
    static const double wakes_s = 10e-3, turn_s = 20e-3;
    clv_status status = CLV_OK;
    const double started = clv_now();
    clv_offload_force(side);
    for (int counted = 0; counted < CALLS && !status;) {
        const double before = clv_now();
        status = grid_call(p);
        const double after = clv_now();
        if (before - started > wakes_s && c && c->count < MOST_CALLS) {
            c->took[c->count++] = after - before;
            ++counted;
        }
        if (after - started > turn_s && (counted || !c)) break;
    }
    clv_offload_force(CLV_SIDE_AUTO);
    return status;
}

/* One round of turns; `of` gets their calls. */
static clv_status time_sides(grid_point *p, calls of[2])
{
    static const double enough_s = 0.06, most_s = 0.5;
    if (!of[0].count) {
        CLV_TRY(turn_of(p, CLV_SIDE_HOST, NULL));
        CLV_TRY(turn_of(p, CLV_SIDE_DEVICE, NULL));
    }
    const double started = clv_now();
    for (int turn = 0; turn < TURNS; ++turn) {
        const double spent = clv_now() - started;
        if (spent > most_s || (turn >= LEAST_TURNS && spent > enough_s)) break;
        CLV_TRY(turn_of(p, CLV_SIDE_HOST, &of[0]));
        CLV_TRY(turn_of(p, CLV_SIDE_DEVICE, &of[1]));
    }
    return CLV_OK;
}

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

static clv_status use(grid_point *p, int times)
{
    clv_status status = CLV_OK;
    for (int i = 0; i < times && !status; ++i)
        status = grid_call(p);
    return status;
}

enum { BUILD, USE, DECIDE, TIME };

static clv_status do_point(clv_context *context, float *memory, verdict *v, int job, int times,
                           calls of[2])
{
    grid_point p = { .context = context, .memory = memory };
    clv_status status = CLV_E_MEMORY;
    grid_at(v->index, &p);
    if (grid_set_up(&p)) {
        status = job == BUILD    ? turn_of(&p, CLV_SIDE_DEVICE, NULL)
                 : job == USE    ? use(&p, times)
                 : job == DECIDE ? decide(&p, v)
                                 : time_sides(&p, of);
    }
    grid_clean_up(&p);
    return status;
}

static void print(FILE *to, const verdict *v)
{
    fprintf(to, "%d %d %.4g %.4g %.5g %.3g %.5g %.3g\n", v->index, v->device, v->predicted[0],
            v->predicted[1], v->side[0].seconds, v->side[0].error, v->side[1].seconds,
            v->side[1].error);
}

static int what_of(int index)
{
    grid_point p = { 0 };
    grid_at(index, &p);
    return p.what;
}

/* Everything is decided before anything is timed: timings teach too. The slice is timed in rounds: what
 * a machine is at for some seconds is no rule. */
static clv_status do_slice(clv_context *context, float *memory, int first, int last, int times,
                           FILE *to)
{
    static verdict v[MOST_POINTS];
    calls(*of)[2] = clv_zalloc((size_t)CLV_MAX(last - first, 1), sizeof *of);
    clv_status status = of ? CLV_OK : clv_fail(CLV_E_MEMORY, "no memory for the times of calls");
    for (int job = BUILD; job < TIME + ROUNDS && !status; ++job)
        for (int i = first; i < last && !status; ++i) {
            v[i].index = i;
            if (job == BUILD && i > first && what_of(i) == what_of(i - 1)) continue;
            status = do_point(context, memory, &v[i], job, times, of[i - first]);
        }
    for (int i = first; i < last && !status; ++i) {
        for (int side = 0; side < 2; ++side)
            v[i].side[side] = judge(of[i - first][side].took, of[i - first][side].count);
        print(to, &v[i]);
    }
    clv_free(of);
    return status;
}

/* ---- the sum ----------------------------------------------------------------------------------- */

static int sum_up(const char *path, bool verbose)
{
    verdict v;
    int device, points = 0, right = 0, even = 0, unclear = 0, bad = 0, on_device = 0, best = 0;
    double worst = 1, error = 0, errors[2 * MOST_POINTS];
    FILE *from = fopen(path, "r");
    while (from && points < MOST_POINTS &&
           fscanf(from, "%d %d %lf %lf %lf %lf %lf %lf", &v.index, &device, &v.predicted[0],
                  &v.predicted[1], &v.side[0].seconds, &v.side[0].error, &v.side[1].seconds,
                  &v.side[1].error) == 8) {
        grid_point p = { 0 };
        grid_at(v.index, &p);
        const double lost = v.side[device].seconds / fmin(v.side[0].seconds, v.side[1].seconds);
        const bool open = lost > 1 && lost - 1 <= v.side[0].error + v.side[1].error;
        const char *say = lost == 1 ? "" : open ? "even" : lost < 1.02 ? "near" : "slower";
        if (lost > 1.1 && !open) say = "WRONG", ++bad;
        errors[2 * points] = v.side[0].error, errors[2 * points + 1] = v.side[1].error;
        ++points;
        on_device += device, best += v.side[1].seconds < v.side[0].seconds;
        right += lost == 1, unclear += open, even += lost > 1 && !open && lost < 1.02;
        if (lost > worst) worst = lost;
        if (verbose || *say)
            printf("%3d %-30s %9zu  %-6s  host %10.1f us +- %4.1f %% (%10.1f)  device %10.1f us "
                   "+- %4.1f %% (%10.1f)  %5.1f %% %s\n",
                   v.index, grid_name(p.what), p.size, device ? "device" : "host",
                   v.side[0].seconds * 1e6, 100 * v.side[0].error, v.predicted[0] * 1e6,
                   v.side[1].seconds * 1e6, 100 * v.side[1].error, v.predicted[1] * 1e6,
                   100 * (lost - 1), say);
    }
    if (from) fclose(from);
    if (!points) {
        fprintf(stderr, "bench_offload: no points in %s\n", path);
        return 1;
    }
    error = median(errors, 2 * points);
    printf(
        "%d of %d points: the faster side in %d (%.1f %%), both alike to what can be timed in %d "
        "more, within 2 %% in %d more; more than 10 %% slower in %d, at worst %.1f %%\n"
        "the device was chosen in %d and is faster in %d; error of a timing: median %.2f %%, "
        "worst %.1f %%\n",
        points, grid_points(), right, 100.0 * right / points, unclear, even, bad, 100 * (worst - 1),
        on_device, best, 100 * error, 100 * errors[2 * points - 1]);
    return 0;
}

static void usage(void)
{
    printf("usage: bench_offload [--device SEL] [--points FIRST:LAST] [--use N] [--out FILE]\n"
           "       bench_offload --sum FILE [--verbose]\n"
           "Points 0 to %d; a slice is appended to FILE (default: standard output). Each point is\n"
           "called N times before it is decided, by whichever side is chosen (default: 0).\n",
           grid_points());
}

int main(int argc, char **argv)
{
    static const struct option names[] = { { "device", 1, NULL, 'd' }, { "points", 1, NULL, 'p' },
                                           { "use", 1, NULL, 'u' },    { "out", 1, NULL, 'o' },
                                           { "sum", 1, NULL, 's' },    { "verbose", 0, NULL, 'v' },
                                           { "help", 0, NULL, 'h' },   { NULL, 0, NULL, 0 } };
    clv_context_options options = { 0 };
    const char *sum = NULL;
    FILE *to = stdout;
    int first = 0, last = grid_points(), times = 0, found;
    bool verbose = false;
    while ((found = getopt_long(argc, argv, "d:p:u:o:s:vh", names, NULL)) != -1) {
        if (found == 'd') options.devices = optarg;
        if (found == 'p' && sscanf(optarg, "%d:%d", &first, &last) != 2) found = '?';
        if (found == 'u') times = atoi(optarg);
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
    clv_context *context = NULL;
    clv_status status = clv_context_create(&options, &context);
    float *memory = clv_alloc_pages(grid_room() * sizeof *memory);
    for (size_t i = 0; memory && i < grid_room(); ++i)
        memory[i] = 1;
    if (!status && memory) status = do_slice(context, memory, first, last, times, to);
    if (status) fprintf(stderr, "bench_offload: %s\n", clv_error_message());
    clv_free(memory);
    clv_context_free(context);
    if (to != stdout) fclose(to);
    return status || !memory;
}

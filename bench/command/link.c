/* SPDX-License-Identifier: Apache-2.0 */
/* Linking in `cleave bench`: wandering particles, some of which are missing in some frames. Host work. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/io/tables/csv.h"

#include <cleave/track.h>

#include <stdio.h>

enum { SIDE = 512, MEMORY = 3 };
static const double search_px = 5, step_px = 0.8, seen_part = 0.95;

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    if (!room || sizes->given_count) return 0;
    cases[0] = (bench_case){ .workload = &bench_link, .size = { SIDE, 100, 1000 } };
    snprintf(cases[0].name, sizeof cases[0].name, "1000 frames of 100 spots");
    return 1;
}

static double effort(const bench_case *c)
{
    return (double)c->size[1] * (double)c->size[2];
}

/* Returns a number in [0, 1), by SplitMix64. */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Makes points frame by frame, rounded to a hundredth of a pixel, so that the file holds the same numbers. */
static clv_status make_points(const bench_case *c, clv_point **points, size_t *count)
{
    const size_t particles = c->size[1], frames = c->size[2];
    double *place = clv_alloc(2 * particles, sizeof *place);
    *points = clv_alloc(particles * frames, sizeof **points);
    *count = 0;
    if (!place || !*points) {
        clv_free(place), clv_free(*points);
        *points = NULL;
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu points", particles * frames);
    }
    uint64_t state = 1;
    for (size_t i = 0; i < 2 * particles; ++i)
        place[i] = SIDE * uniform(&state);
    for (size_t t = 0; t < frames; ++t)
        for (size_t p = 0; p < particles; ++p) {
            double *at = place + 2 * p;
            for (int axis = 0; axis < 2; ++axis) {
                at[axis] += 2 * step_px * (uniform(&state) - 0.5);
                if (at[axis] < 0) at[axis] = -at[axis];
                if (at[axis] > SIDE) at[axis] = 2 * SIDE - at[axis];
            }
            if (uniform(&state) > seen_part) continue;
            (*points)[(*count)++] = (clv_point){ (int64_t)t, (double)(int)(at[0] * 100) / 100,
                                                 (double)(int)(at[1] * 100) / 100 };
        }
    clv_free(place);
    return CLV_OK;
}

static clv_status prepare(const bench_case *c, const char *folder)
{
    static const char *const names[] = { "frame", "y", "x" };
    clv_point *points;
    size_t count;
    char path[BENCH_PATH];
    CLV_TRY(make_points(c, &points, &count));
    clv_csv csv;
    clv_csv_begin(&csv, names, CLV_LEN(names));
    for (size_t i = 0; i < count; ++i) {
        clv_csv_int(&csv, points[i].frame);
        clv_csv_number(&csv, points[i].y), clv_csv_number(&csv, points[i].x);
        clv_csv_end_row(&csv);
    }
    snprintf(path, sizeof path, "%s/spots.csv", folder);
    const clv_status status = clv_csv_write(&csv, path);
    clv_csv_clear(&csv);
    clv_free(points);
    return status;
}

static const char *const *command(const bench_case *c, const char *folder, const char *output)
{
    (void)c;
    static char spots[BENCH_PATH + 16], tracks[BENCH_PATH + 16], search[16], memory[16];
    static const char *arguments[10];
    size_t n = 0;
    snprintf(spots, sizeof spots, "%s/spots.csv", folder);
    snprintf(tracks, sizeof tracks, "%s.csv", output); /* the folder is not made */
    snprintf(search, sizeof search, "%g", search_px);
    snprintf(memory, sizeof memory, "%d", MEMORY);
    arguments[n++] = "link", arguments[n++] = spots;
    arguments[n++] = "--output", arguments[n++] = tracks;
    arguments[n++] = "--search", arguments[n++] = search;
    arguments[n++] = "--memory", arguments[n++] = memory;
    arguments[n] = NULL;
    return arguments;
}

typedef struct trial {
    const clv_point *points;
    int64_t *particle;
    size_t count;
} trial;

static clv_status once(void *user, double *seconds)
{
    const trial *t = user;
    const clv_link_options options = { .size = sizeof options,
                                       .search_range = search_px,
                                       .memory = MEMORY };
    const double started = clv_now();
    const clv_status status = clv_link(t->points, t->count, &options, t->particle, NULL);
    *seconds = clv_now() - started;
    return status;
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    double values[BENCH_MOST_SAMPLES];
    clv_point *points;
    size_t count, samples;
    if (run->bench->parties[run->party].kind == BENCH_REFERENCE) return CLV_OK;
    CLV_TRY(make_points(c, &points, &count));
    trial t = { points, clv_alloc(count, sizeof(int64_t)), count };
    clv_status status =
        t.particle ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for %zu points", count);
    if (!status) status = bench_repeat(&run->bench->plan, once, &t, values, &samples);
    if (!status) bench_send(run, case_index, BENCH_COMPUTE, values, samples);
    clv_free(points), clv_free(t.particle);
    return status;
}

const bench_workload bench_link = {
    .name = "link",
    .title = "Link: 100 wandering particles, search range 5 pixels, memory 3 frames",
    .cases = list_cases,
    .effort = effort,
    .prepare = prepare,
    .measure = measure,
    .command = command,
    .host_only = true,
};

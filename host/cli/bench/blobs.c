/* SPDX-License-Identifier: Apache-2.0 */
/* Blob detection in `cleave bench`: the founding movie by batches, and larger frames. */
#include "host/cli/bench/bench.h"
#include "host/cli/synthetic/movie.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/blob/blob_job.h"
#include "host/io/npy.h"

#include <stdio.h>
#include <string.h>

enum { SEED = 1, PARTICLES = 100, USUAL_FRAMES = 200, ALL_FRAMES = 1000 };

static void add_case(size_t height, size_t width, size_t frames, int batch, bench_case *cases,
                     size_t room, size_t *count)
{
    if (*count == room) return;
    bench_case *c = &cases[(*count)++];
    *c = (bench_case){ .workload = &bench_blobs,
                       .size = { height, width, frames },
                       .variant = batch,
                       .cold = batch == 8 && height == 512 };
    snprintf(c->name, sizeof c->name, "(%zu,%zu,%zu), batch %d", frames, height, width, batch);
}

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    static const int batches[] = { 1, 2, 4, 8 };
    size_t count = 0;
    for (size_t i = 0; i < sizes->given_count; ++i)
        add_case(sizes->given[i][0], sizes->given[i][1], sizes->given[i][2], 8, cases, room,
                 &count);
    if (sizes->given_count) return count;
    const size_t frames = sizes->full ? ALL_FRAMES : USUAL_FRAMES;
    for (size_t i = 0; i < CLV_LEN(batches); ++i)
        add_case(512, 512, frames, batches[i], cases, room, &count);
    add_case(2048, 2048, sizes->full ? 64 : 16, 8, cases, room, &count);
    return count;
}

static double effort(const bench_case *c)
{
    return (double)c->size[0] * (double)c->size[1] * (double)c->size[2];
}

/* Particles of the founding movie, as dense in other sizes. */
static clv_status make_movie(const bench_case *c, synthetic_movie *movie)
{
    const size_t particles = CLV_MAX(PARTICLES * c->size[0] * c->size[1] / (512 * 512), (size_t)1);
    return synthetic_movie_create(c->size[2], c->size[0], c->size[1], particles, SEED, movie);
}

static clv_status prepare(const bench_case *c, const char *folder)
{
    synthetic_movie movie;
    char path[BENCH_PATH];
    CLV_TRY(make_movie(c, &movie));
    const clv_array array = { CLV_U16, 3, { c->size[2], c->size[0], c->size[1] }, movie.pixels };
    snprintf(path, sizeof path, "%s/movie.npy", folder);
    const clv_status status = clv_npy_write(path, &array);
    synthetic_movie_clear(&movie);
    return status;
}

static const char *const *command(const bench_case *c, const char *folder, const char *output)
{
    static char movie[BENCH_PATH], spots[BENCH_PATH], batch[16];
    static const char *arguments[8];
    size_t n = 0;
    snprintf(movie, sizeof movie, "%s/movie.npy", folder);
    snprintf(spots, sizeof spots, "%s.csv", output); /* the folder is not made */
    snprintf(batch, sizeof batch, "%d", c->variant);
    arguments[n++] = "blobs", arguments[n++] = movie;
    arguments[n++] = "--output", arguments[n++] = spots;
    arguments[n++] = "--batch", arguments[n++] = batch;
    arguments[n] = NULL;
    return arguments;
}

/* ---- in a party's process -------------------------------------------------------------------------------- */

typedef struct trial {
    clv_context *context;
    const synthetic_movie *movie;
    size_t batch;
    clv_report *report; /* of the last run */
} trial;

/* All frames in pushes of a batch, as a camera would bring them. */
static clv_status push_all(trial *t, clv_blob_stream *stream)
{
    const clv_blob_frames *s = &t->movie->shape;
    enum { AT_ONCE = 4096 };
    static clv_spot spots[AT_ONCE];
    for (size_t at = 0; at < s->frames; at += t->batch) {
        size_t count;
        CLV_TRY(clv_blobs_push(stream, t->movie->pixels + at * s->frame_stride,
                               CLV_MIN(t->batch, s->frames - at), t->report));
        do {
            CLV_TRY(clv_blobs_pull(stream, spots, AT_ONCE, &count));
        } while (count);
    }
    return CLV_OK;
}

static clv_status once(void *user, double *seconds)
{
    trial *t = user;
    clv_blob_stream *stream;
    clv_blob_frames shape = t->movie->shape;
    shape.frames = t->batch;
    clv_report_free(t->report);
    t->report = NULL;
    CLV_TRY(clv_report_create(&t->report));
    CLV_TRY(clv_blobs_open(t->context, &shape, NULL, &stream));
    const double started = clv_now();
    const clv_status status = push_all(t, stream);
    *seconds = clv_now() - started;
    clv_blobs_close(stream);
    return status;
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    synthetic_movie movie;
    if (bench_is_too_long(run, case_index)) return CLV_OK;
    CLV_TRY(make_movie(c, &movie));
    trial t = { .context = run->context, .movie = &movie, .batch = (size_t)c->variant };
    double seconds = 0, values[BENCH_MOST_SAMPLES];
    size_t count = 0;
    const bool plain = run->bench->parties[run->party].kind == BENCH_REFERENCE;
    clv_blob_plan *plan = NULL;
    clv_status status = CLV_OK;
    if (!plain) {
        status = once(&t, &seconds); /* compiles, learns speeds */
        if (!status) status = clv_blob_plan_create(&movie.shape, NULL, &plan);
        if (!status) {
            const clv_cost cost = clv_blob_cost(0, movie.shape.frames, plan);
            bench_send_cost(run, case_index, cost.flops, cost.traffic_bytes);
        }
        clv_blob_plan_free(plan);
    }
    if (!status) status = bench_repeat(&run->bench->plan, once, &t, values, &count);
    if (!status) {
        bench_send(run, case_index, BENCH_COMPUTE, values, count);
        if (!plain) bench_send_shares(run, case_index, t.report);
        run->seconds_per_effort = bench_stat_of(values, count).median / effort(c);
    }
    clv_report_free(t.report);
    synthetic_movie_clear(&movie);
    return status;
}

static double batch_of(const bench_case *c)
{
    return c->size[0] == 512 && c->size[1] == 512 ? (double)c->variant : 0;
}

static const bench_plot plots[] = {
    { "Movie of 512 x 512, 100 particles", "frames a batch", batch_of },
};

const bench_workload bench_blobs = {
    .name = "blobs",
    .title = "Blobs: LoG of 5 sigmas from 1 to 3, spots included, 100 particles in 512 x 512",
    .cases = list_cases,
    .effort = effort,
    .prepare = prepare,
    .measure = measure,
    .command = command,
    .plots = plots,
    .plot_count = CLV_LEN(plots),
};

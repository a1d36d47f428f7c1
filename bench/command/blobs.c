/* SPDX-License-Identifier: Apache-2.0 */
/* Blob detection in `cleave bench`: a movie of 512 x 512 by batches, and larger frames. */
#include "bench/command/bench.h"
#include "host/synthetic/movie.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/blob/blob_job.h"
#include "host/io/formats/npy.h"
#include "host/io/tables/csv.h"

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

/* Makes a movie; other sizes have the same density of particles as 512 x 512. */
static clv_status make_movie(const bench_case *c, synthetic_movie *movie)
{
    const size_t particles = CLV_MAX(PARTICLES * c->size[0] * c->size[1] / (512 * 512), (size_t)1);
    return synthetic_movie_create(c->size[2], c->size[0], c->size[1], particles, SEED, movie);
}

/* Writes the true positions of the particles, by which outside programs are judged. */
static clv_status write_truth(const synthetic_movie *m, const char *path)
{
    static const char *const names[] = { "frame", "y", "x" };
    clv_csv csv;
    clv_csv_begin(&csv, names, CLV_LEN(names));
    for (size_t i = 0; i < m->shape.frames * m->particles; ++i) {
        clv_csv_int(&csv, (int64_t)(i / m->particles));
        clv_csv_float(&csv, m->y[i]), clv_csv_float(&csv, m->x[i]);
        clv_csv_end_row(&csv);
    }
    const clv_status status = clv_csv_write(&csv, path);
    clv_csv_clear(&csv);
    return status;
}

static clv_status prepare(const bench_case *c, const char *folder)
{
    synthetic_movie movie;
    char path[BENCH_PATH];
    CLV_TRY(make_movie(c, &movie));
    const clv_file_array array = {
        CLV_U16, 3, { c->size[2], c->size[0], c->size[1] }, movie.pixels
    };
    snprintf(path, sizeof path, "%s/movie.npy", folder);
    clv_status status = clv_npy_write(path, &array);
    snprintf(path, sizeof path, "%s/truth.csv", folder);
    if (!status) status = write_truth(&movie, path);
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
    clv_spot *spots; /* found by the last run; NULL: not wanted */
    size_t count, room;
    const synthetic_movie *movie;
    size_t batch;
    clv_report *report; /* of the last run */
    double kernel_s[BENCH_MOST_SAMPLES];
    size_t runs;
    bool has_kernel_s;
} trial;

/* Returns the kernels' seconds in the last push. */
static double kernels_of(trial *t)
{
    double seconds = 0;
    for (size_t i = 0; i < clv_report_share_count(t->report); ++i) {
        const clv_share share = clv_report_share(t->report, i);
        if (share.chunks && share.kernel_s < 0) t->has_kernel_s = false;
        seconds += share.kernel_s;
    }
    return seconds;
}

/* Pushes all frames batch by batch, as a camera would deliver them. */
static clv_status push_all(trial *t, clv_blob_stream *stream)
{
    const clv_blob_frames *s = &t->movie->shape;
    enum { AT_ONCE = 4096 };
    static clv_spot spots[AT_ONCE];
    double kernel_s = 0;
    t->count = 0;
    for (size_t at = 0; at < s->frames; at += t->batch) {
        size_t count;
        CLV_TRY(clv_blobs_push(stream, t->movie->pixels + at * s->frame_stride,
                               CLV_MIN(t->batch, s->frames - at), t->report));
        kernel_s += kernels_of(t);
        do {
            CLV_TRY(clv_blobs_pull(stream, spots, AT_ONCE, &count));
            if (t->room - t->count < count) continue;
            if (count) memcpy(t->spots + t->count, spots, count * sizeof *spots);
            t->count += count;
        } while (count);
    }
    if (t->runs < BENCH_MOST_SAMPLES) t->kernel_s[t->runs++] = kernel_s;
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

/* Sends a note on how good the spots are, in the words of bench/peers/truth.py; for large frames, also what a camera
 * of 100 frames/s would need of a device. */
static void send_score(bench_run *run, size_t case_index, const trial *t, double seconds,
                       const clv_cost *cost)
{
    enum { CAMERA = 100, LARGE = 1024 };
    char note[120];
    size_t used = 0;
    const clv_blob_frames *s = &t->movie->shape;
    const double frames = (double)s->frames;
    const size_t particles = t->movie->particles * s->frames;
    const synthetic_score score = synthetic_movie_judge(t->movie, t->spots, t->count, 2);
    if (s->height >= LARGE)
        used = (size_t)snprintf(note, sizeof note,
                                "%.0f frames/s; %d would need %.0f GFLOP/s, %.0f MB/s; ",
                                frames / seconds, CAMERA, CAMERA * cost->flops / frames * 1e-9,
                                CAMERA * (double)(s->height * s->width) * 2e-6);
    snprintf(note + used, sizeof note - used, "recall %.4f, %zu spots for %zu, rms %.3f px",
             (double)score.found / (double)particles, t->count, particles, score.rms_px);
    bench_send_note(run, case_index, note);
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    synthetic_movie movie;
    if (bench_is_too_long(run, case_index)) return CLV_OK;
    CLV_TRY(make_movie(c, &movie));
    trial t = { .context = run->context,
                .movie = &movie,
                .batch = (size_t)c->variant,
                .has_kernel_s = true,
                .room = 2 * movie.particles * movie.shape.frames };
    double seconds = 0, values[BENCH_MOST_SAMPLES];
    size_t count = 0;
    const bool plain = run->bench->parties[run->party].kind == BENCH_REFERENCE;
    clv_blob_plan *plan = NULL;
    clv_cost cost = { 0 };
    clv_status status = CLV_OK;
    if (c->variant != 8 || plain) t.room = 0; /* spots are the same for every batch */
    if (t.room && !(t.spots = clv_alloc(t.room, sizeof *t.spots)))
        status = clv_fail(CLV_E_MEMORY, "not enough memory for %zu spots", t.room);
    if (!plain && !status) {
        status = once(&t, &seconds); /* compiles, learns speeds */
        if (!status) status = clv_blob_plan_create(&movie.shape, NULL, &plan);
        if (!status) {
            cost = clv_blob_cost(0, movie.shape.frames, plan);
            bench_send_cost(run, case_index, cost.flops, cost.traffic_bytes);
        }
        clv_blob_plan_free(plan);
    }
    t.runs = 0;
    if (!status) status = bench_repeat(&run->bench->plan, once, &t, values, &count);
    if (!status) {
        bench_send(run, case_index, BENCH_COMPUTE, values, count);
        if (t.has_kernel_s && !plain) bench_send(run, case_index, BENCH_KERNEL, t.kernel_s, t.runs);
        if (!plain) bench_send_shares(run, case_index, t.report);
        const double median = bench_stat_of(values, count).median;
        if (t.room) send_score(run, case_index, &t, median, &cost);
        run->seconds_per_effort = median / effort(c);
    }
    clv_report_free(t.report);
    clv_free(t.spots);
    synthetic_movie_clear(&movie);
    return status;
}

static double batch_of(const bench_case *c)
{
    return c->size[0] == 512 && c->size[1] == 512 ? (double)c->variant : 0;
}

static const bench_plot plots[] = {
    { "Movie of 512 x 512, 100 particles", "frames per batch", batch_of },
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

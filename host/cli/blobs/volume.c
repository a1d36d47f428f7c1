/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave blobs` on stacks of planes: finds spots and tracks in three dimensions. */
#include "host/cli/blobs/volume.h"
#include "host/cli/share.h"
#include "host/cli/units.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <cleave/volume.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    const blobs_args *a;
    clv_movie *movie;
    const clv_movie_facts *facts;
    clv_context *context;
    clv_report *report;
    cli_bar bar;
    size_t first, last, done; /* stacks */
    double voxel[3];          /* z, y, x; relative to x if the unit is unknown */
    blobs_units units;
    blobs_extra extra;
    volume_member *members;
    size_t count, room, tracks;
    blobs_volume_views views;
    clv_blob_summary summary;
    double read_s;
    bool stopped; /* the user stopped the run and keeps what is done (--partial) */
} task;

/* ---- options ---------------------------------------------------------------------------------------- */

static int refuse(const blobs_args *a)
{
    if (a->voxel_size && a->pixel_size)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--voxel-size and --pixel-size both give the size of a pixel; leave one of them out");
    const char *what = a->scope == 1           ? "--threshold-scope movie"
                       : a->preview_given      ? "--preview"
                       : a->format == BLOBS_XY ? "--format xy"
                       : a->stage_drift        ? "--stage-drift"
                       : a->subtract_drift     ? "--subtract-drift"
                       : a->registered         ? "--registered"
                                               : NULL;
    if (!what) return -1;
    return cli_error(cli_running(), CLI_USAGE,
                     "%s is possible for frames only, but %s holds stacks of planes; --z N reads "
                     "one plane of each stack",
                     what, a->movie);
}

/* Finds the voxel's sides: from the option, else from the file, else a cube; prints the choice. */
static int find_voxel(task *t)
{
    const blobs_args *a = t->a;
    const clv_movie_facts *f = t->facts;
    const int code = blobs_units_of(a, f, &t->units);
    if (code >= 0) return code;
    t->voxel[0] = t->voxel[1] = t->voxel[2] = 1;
    if (a->voxel_size) {
        char unit[sizeof t->units.space];
        if (!cli_parse_voxel(a->voxel_size, t->voxel, unit, sizeof unit))
            return cli_error(cli_running(), CLI_USAGE,
                             "--voxel-size is \"%s\", but it must be the sides along z, y and x, "
                             "such as 0.3,0.1,0.1um",
                             a->voxel_size);
        t->units.pixel_size = unit[0] ? t->voxel[2] : 0;
        clv_copy_string(t->units.space, sizeof t->units.space, unit[0] ? unit : "pixel");
    } else if (f->pixel_size > 0 && f->plane_spacing > 0) {
        t->voxel[0] = f->plane_spacing, t->voxel[2] = f->pixel_size;
        t->voxel[1] = f->row_spacing > 0 ? f->row_spacing : f->pixel_size;
        if (!a->common.quiet)
            cli_say(stderr, "voxel size: %g x %g x %g %s (z, y, x), from the file\n", t->voxel[0],
                    t->voxel[1], t->voxel[2], f->pixel_unit);
    } else if (!a->common.quiet) {
        cli_say(stderr, "the file does not give the distance between planes: assuming cubic voxels "
                        "(--voxel-size Z,Y,X overrides this)\n");
    }
    return -1;
}

/* ---- stacks in, spots out ---------------------------------------------------------------------------- */

static int show_progress(const char *job, size_t done, size_t total, void *user)
{
    task *t = user;
    (void)done, (void)total;
    return cli_progress(job, t->done, t->last - t->first, &t->bar);
}

static clv_status keep(task *t, const clv_volume_spot *spots, size_t count, size_t stack)
{
    if (!clv_reserve(&t->members, &t->room, t->count + count, sizeof *t->members))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu spots", t->count + count);
    for (size_t i = 0; i < count; ++i) {
        t->members[t->count] = (volume_member){ spots[i], -1 };
        t->members[t->count++].spot.frame = (uint32_t)stack;
    }
    return CLV_OK;
}

static void add_summary(clv_blob_summary *all, const clv_blob_summary *s)
{
    all->frames += s->frames, all->spots += s->spots, all->empty_frames += s->empty_frames;
    all->bad_pixels += s->bad_pixels, all->dropped_bad += s->dropped_bad, all->reruns += s->reruns;
    all->max_response = fmax(all->max_response, s->max_response);
    all->job_s += s->job_s, all->finish_s += s->finish_s, all->hot_pixels += s->hot_pixels;
}

static clv_status detect(task *t)
{
    static const clv_blob_pixel kinds[] = { [CLV_U8] = CLV_BLOB_U8,
                                            [CLV_U16] = CLV_BLOB_U16,
                                            [CLV_I16] = CLV_BLOB_I16,
                                            [CLV_F32] = CLV_BLOB_F32 };
    const clv_movie_facts *f = t->facts;
    const clv_volume_stacks shape = { .size = sizeof shape,
                                      .type = kinds[f->type],
                                      .stacks = 1,
                                      .depth = f->depth,
                                      .height = f->height,
                                      .width = f->width };
    clv_blob_options options = blobs_options(t->a);
    memcpy(options.voxel_size, t->voxel, sizeof t->voxel);
    options.progress = show_progress, options.progress_user = t;
    void *voxels = clv_alloc_pages(f->depth * f->height * f->width * clv_type_size(f->type));
    clv_status status =
        voxels ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "not enough memory for a stack of %zu planes", f->depth);
    for (size_t stack = t->first; stack < t->last && !status; ++stack) {
        clv_volume_spot *spots = NULL;
        size_t count = 0;
        clv_blob_summary summary;
        if (!cli_share_step()) continue; /* another shard's stack */
        const double started = clv_now();
        status = clv_movie_read(t->movie, stack * f->depth, f->depth, voxels);
        t->read_s += clv_now() - started;
        if (status && t->a->partial && t->done) {
            cli_warn(cli_running(), "%s; the %zu stacks before it are done", clv_error_message(),
                     t->done);
            status = CLV_OK;
            break;
        }
        if (!status && cli_interrupted()) status = CLV_E_CANCELLED;
        if (!status)
            status = clv_volumes(t->context, &shape, voxels, &options, &spots, &count, &summary,
                                 t->report);
        if (!status) status = keep(t, spots, count, stack);
        if (!status && t->a->overlay)
            status = blobs_volume_project(&t->views, f, voxels, t->a->invert);
        clv_free(spots);
        if (status) break;
        add_summary(&t->summary, &summary);
        ++t->done;
    }
    clv_free(voxels);
    if (status == CLV_E_CANCELLED)
        status = blobs_stop(t->a, t->done, t->last - t->first, "stacks", &t->stopped);
    return status;
}

/* ---- tracks ------------------------------------------------------------------------------------------ */

static int by_track(const void *left, const void *right)
{
    const volume_member *a = left, *b = right;
    if (a->particle != b->particle) return a->particle < b->particle ? -1 : 1;
    return (a->spot.frame > b->spot.frame) - (a->spot.frame < b->spot.frame);
}

static int by_frame(const void *left, const void *right)
{
    const volume_member *a = left, *b = right;
    if (a->spot.frame != b->spot.frame) return a->spot.frame < b->spot.frame ? -1 : 1;
    if (a->spot.z != b->spot.z) return a->spot.z < b->spot.z ? -1 : 1;
    if (a->spot.y != b->spot.y) return a->spot.y < b->spot.y ? -1 : 1;
    if (a->spot.x != b->spot.x) return a->spot.x < b->spot.x ? -1 : 1;
    return (a->particle > b->particle) - (a->particle < b->particle);
}

static clv_volume_spot step_between(const clv_volume_spot *a, const clv_volume_spot *b,
                                    uint32_t frame)
{
    const float part = (float)(frame - a->frame) / (float)(b->frame - a->frame);
#define BETWEEN(name) .name = a->name + (b->name - a->name) * part
    return (clv_volume_spot){ .frame = frame,
                              .flags = CLV_SPOT_GAP,
                              BETWEEN(z),
                              BETWEEN(y),
                              BETWEEN(x),
                              BETWEEN(sigma),
                              BETWEEN(sigma_z),
                              BETWEEN(response),
                              BETWEEN(mass),
                              BETWEEN(background),
                              BETWEEN(snr) };
#undef BETWEEN
}

static clv_status fill_gaps(task *t)
{
    double made = 0;
    if (!t->count) return CLV_OK;
    qsort(t->members, t->count, sizeof *t->members, by_track);
    for (size_t i = 1; i < t->count; ++i)
        if (t->members[i].particle == t->members[i - 1].particle)
            made += (double)t->members[i].spot.frame - (double)t->members[i - 1].spot.frame - 1;
    CLV_TRY(blobs_check_gaps(t->a->movie, made, 2 * sizeof *t->members));
    for (size_t i = 1, seen = t->count; i < seen; ++i) {
        const volume_member a = t->members[i - 1], b = t->members[i];
        for (uint32_t f = a.spot.frame + 1; a.particle == b.particle && f < b.spot.frame; ++f) {
            if (!clv_reserve(&t->members, &t->room, t->count + 1, sizeof *t->members))
                return clv_fail(CLV_E_MEMORY, "not enough memory to fill gaps");
            t->members[t->count++] =
                (volume_member){ step_between(&a.spot, &b.spot, f), a.particle };
        }
    }
    return CLV_OK;
}

/* Links the spots by distances in space: z and y are measured in voxels along x. */
static clv_status link_spots(task *t)
{
    const size_t n = CLV_MAX(t->count, (size_t)1);
    clv_point *points = clv_alloc(n, sizeof *points);
    double *z = clv_alloc(n, sizeof *z);
    int64_t *particle = clv_alloc(n, sizeof *particle);
    clv_status status = points && z && particle
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "not enough memory to link %zu spots", n);
    for (size_t i = 0; i < t->count && !status; ++i) {
        const clv_volume_spot *s = &t->members[i].spot;
        z[i] = (double)s->z * t->voxel[0] / t->voxel[2];
        points[i] = (clv_point){ s->frame, (double)s->y * t->voxel[1] / t->voxel[2], (double)s->x };
    }
    const clv_link_options options = { .size = sizeof options,
                                       .search_range = t->a->link,
                                       .memory = (size_t)t->a->memory,
                                       .min_length = (size_t)t->a->min_length,
                                       .predict = (clv_link_predict)t->a->predict,
                                       .z = z };
    if (!status) status = clv_link(points, t->count, &options, particle, &t->tracks);
    size_t kept = 0;
    for (size_t i = 0; i < t->count && !status; ++i)
        if (particle[i] >= 0)
            t->members[kept++] = (volume_member){ t->members[i].spot, particle[i] };
    clv_free(points), clv_free(z), clv_free(particle);
    CLV_TRY(status);
    t->count = kept;
    if (t->a->fill_gaps) CLV_TRY(fill_gaps(t));
    if (t->count) qsort(t->members, t->count, sizeof *t->members, by_frame);
    return CLV_OK;
}

/* ---- outputs ----------------------------------------------------------------------------------------- */

static clv_status draw(const task *t)
{
    clv_volume_spot *spots = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *spots);
    int64_t *particle = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *particle);
    clv_status status =
        spots && particle ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
    for (size_t i = 0; i < t->count && !status; ++i)
        spots[i] = t->members[i].spot, particle[i] = t->members[i].particle;
    if (!status)
        status = blobs_volume_draw(&t->views, t->voxel, &t->units, spots,
                                   t->a->link_given ? particle : NULL, t->count, t->a->overlay);
    clv_free(spots), clv_free(particle);
    return status;
}

static clv_status finish(task *t)
{
    const blobs_args *a = t->a;
    if (a->link_given) CLV_TRY(link_spots(t));
    const volume_table table = { .units = &t->units,
                                 .extra = &t->extra,
                                 .voxel = t->voxel,
                                 .members = t->members,
                                 .count = t->count,
                                 .format = a->format };
    if (a->output) CLV_TRY(volume_write(&table, a->output, a->link_given));
    if (a->tracks) CLV_TRY(volume_write(&table, a->tracks, true));
    return a->overlay ? draw(t) : CLV_OK;
}

static void announce(const task *t)
{
    const clv_movie_facts *f = t->facts;
    if (t->a->common.quiet) return;
    const size_t stacks = f->frames / f->depth;
    cli_say(stderr,
            "%s: %s, %zu stack%s of %zu planes of %zux%zu %s: spots in three dimensions (--z N "
            "reads one plane)\n",
            t->a->movie, f->format, stacks, stacks == 1 ? "" : "s", f->depth, f->width, f->height,
            f->stored);
    if (!t->a->threshold_given && !t->a->threshold_rel_given && !t->a->threshold_sigma_given)
        cli_say(stderr,
                "no threshold given: using 6 times the local noise (--threshold-sigma 6)\n");
    for (const char *line = f->notices; *line;) {
        const size_t length = strcspn(line, "\n");
        cli_warn(cli_running(), "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void summarize(const task *t, double seconds)
{
    char took[24];
    const clv_blob_summary *s = &t->summary;
    if (t->a->common.quiet) return;
    cli_say(t->a->news, "%zu stack%s, %zu spot%s", s->frames, s->frames == 1 ? "" : "s", s->spots,
            s->spots == 1 ? "" : "s");
    if (t->a->link_given)
        cli_say(t->a->news, ", %zu track%s", t->tracks, t->tracks == 1 ? "" : "s");
    cli_say(t->a->news, "; %s (reading %.2f s, detecting %.2f s, measuring %.2f s)\n",
            clv_format_seconds(seconds, took), t->read_s, s->job_s, s->finish_s);
    if (s->bad_pixels)
        cli_warn(cli_running(),
                 "%zu voxels are NaN or infinite; %zu spots next to them are left out",
                 s->bad_pixels, s->dropped_bad);
    if (s->hot_pixels)
        cli_warn(cli_running(),
                 "%zu single bright pixels (hot pixels, cosmics) are narrower than a spot of "
                 "--min-sigma %g and are left out; --hot-pixels keep counts them as spots",
                 s->hot_pixels, t->a->min_sigma);
    if (s->empty_frames)
        cli_warn(cli_running(), "%zu of %zu stacks have no spots", s->empty_frames, s->frames);
}

static int work(task *t)
{
    const blobs_args *a = t->a;
    const double started = clv_now();
    int code = cli_status(cli_running(), clv_report_create(&t->report));
    if (code) return code;
    announce(t);
    if ((code = find_voxel(t)) >= 0) return code;
    const double side = t->units.pixel_size > 0 ? t->units.pixel_size : 1;
    t->units.row = side * t->voxel[1] / t->voxel[2],
    t->units.plane = side * t->voxel[0] / t->voxel[2];
    blobs_find_extra(&t->units, true, &t->extra);
    cli_bar_start(&t->bar, &a->common, "stacks");
    cli_saving(a->partial);
    clv_status status = detect(t);
    cli_bar_end(&t->bar);
    if (!status) status = cli_share_end();
    if (status) return cli_input_status(cli_running(), status);
    status = finish(t);
    cli_saving(false);
    if (status) return cli_status(cli_running(), status);
    clv_report_note(t->report, "stacks", (double)t->summary.frames);
    clv_report_note(t->report, "spots", (double)t->summary.spots);
    clv_report_note(t->report, "tracks", (double)t->tracks);
    clv_report_note(t->report, "read_s", t->read_s);
    clv_report_note(t->report, "detect_s", t->summary.job_s);
    clv_report_note(t->report, "measure_s", t->summary.finish_s);
    code = cli_write_report(cli_running(), &a->common, t->context, t->report);
    if (!code) summarize(t, clv_now() - started);
    return code ? code : t->stopped ? CLI_INTERRUPTED : 0;
}

int blobs_volumes(const blobs_args *a, clv_movie *movie)
{
    task t = { .a = a, .movie = movie, .facts = clv_movie_look(movie) };
    int code = refuse(a);
    if (code >= 0) return code;
    const size_t stacks = t.facts->frames / t.facts->depth;
    t.first = a->first, t.last = CLV_MIN(a->last, stacks);
    if (t.first >= t.last)
        return cli_error(cli_running(), CLI_USAGE,
                         "--frames is %s, but the file has the stacks 0 to %zu", a->frames,
                         stacks - 1);
    code = cli_common_context(cli_running(), &a->common, &t.context);
    if (code < 1 && t.context) code = work(&t);
    blobs_volume_views_clear(&t.views);
    clv_free(t.members);
    clv_report_free(t.report);
    clv_context_free(t.context);
    return code;
}

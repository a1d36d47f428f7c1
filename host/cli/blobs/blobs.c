/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave blobs`: parses the options, reads frames and writes spots. */
#include "host/cli/blobs/blobs.h"
#include "host/cli/clash.h"
#include "host/cli/share.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Watches the number of spots from frame to frame, to notice a lost focus or a flickering lamp. */
typedef struct watch {
    uint32_t frame;         /* frame that is being counted */
    size_t now, seen;       /* its spots; number of earlier frames with spots */
    double usual;           /* running mean of spots per frame */
    size_t jumps, first_of; /* number of frames that jumped; the first such frame */
    double first_usual, first_now;
} watch;

static void end_frame(watch *w)
{
    const double now = (double)w->now, usual = w->usual;
    if (!w->now) return; /* empty frames are reported separately */
    /* a factor of three, and more than chance causes in small numbers */
    const bool jumps = w->seen >= 3 && (now > 3 * usual + 10 || 3 * now + 10 < usual);
    if (jumps && !w->jumps++) w->first_of = w->frame, w->first_usual = usual, w->first_now = now;
    w->usual += (now - usual) / (double)CLV_MIN(w->seen + 1, (size_t)16);
    ++w->seen, w->now = 0;
}

static void count_spots(watch *w, const clv_spot *spots, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (spots[i].frame != w->frame) end_frame(w), w->frame = spots[i].frame;
        ++w->now;
    }
}

/* The state of a run. */
typedef struct task {
    const blobs_args *a;
    clv_movie *movie;
    const clv_movie_facts *facts;
    clv_context *context;
    clv_report *report;
    cli_bar bar;
    size_t first, last, done;
    blobs_writer writer;
    bool writing, cannot_write;
    bool stopped; /* the user stopped the run and keeps what is done (--partial) */
    blobs_units units;
    blobs_spot *spots; /* all spots, if they are linked or drawn */
    size_t count, room;
    int64_t *particle;
    size_t tracks;
    blobs_projection projection;
    clv_blob_summary summary;
    watch watch;
    double read_s;
    blobs_stage stage;
} task;

static int show_progress(const char *job, size_t done, size_t total, void *user)
{
    task *t = user;
    (void)total;
    return cli_progress(job, t->done + done, t->last - t->first, &t->bar);
}

static bool keeps_spots(const blobs_args *a)
{
    return a->link_given || a->overlay;
}

static clv_status take_spots(task *t, clv_blob_stream *stream)
{
    enum { AT_ONCE = 4096 };
    static clv_spot some[AT_ONCE];
    static clv_spot_error errors[AT_ONCE];
    static blobs_spot both[AT_ONCE];
    size_t count;
    for (;;) {
        CLV_TRY(clv_blobs_pull(stream, some, AT_ONCE, &count));
        if (!count) return CLV_OK;
        CLV_TRY(clv_blobs_errors(stream, errors, AT_ONCE));
        for (size_t i = 0; i < count; ++i) {
            if (t->a->subtract_drift) blobs_stage_move(&t->stage, &some[i]);
            some[i].frame += (uint32_t)t->first;
            both[i] = (blobs_spot){ some[i], errors[i] };
        }
        count_spots(&t->watch, some, count);
        if (t->writing && !t->a->link_given) {
            const clv_status status = blobs_writer_add(&t->writer, both, NULL, count);
            if ((t->cannot_write = status != CLV_OK)) return status;
        }
        if (!keeps_spots(t->a)) continue;
        if (!clv_reserve(&t->spots, &t->room, t->count + count, sizeof *t->spots))
            return clv_fail(CLV_E_MEMORY, "not enough memory for %zu spots", t->count + count);
        memcpy(t->spots + t->count, both, count * sizeof *both);
        t->count += count;
    }
}

static clv_status run_frames(task *t, const clv_blob_options *given, bool quiet_pass)
{
    const size_t usual = CLV_MIN(blobs_block(t->facts), t->last - t->first),
                 frames = cli_share_length(usual, t->last - t->first);
    static const clv_blob_pixel kinds[] = { [CLV_U8] = CLV_BLOB_U8,
                                            [CLV_U16] = CLV_BLOB_U16,
                                            [CLV_I16] = CLV_BLOB_I16,
                                            [CLV_F32] = CLV_BLOB_F32 };
    const clv_blob_frames shape = { .size = sizeof(clv_blob_frames),
                                    .type = kinds[t->facts->type],
                                    .frames = frames,
                                    .height = t->facts->height,
                                    .width = t->facts->width };
    clv_blob_options options = *given;
    clv_blob_stream *stream = NULL;
    blobs_reader *reader = NULL;
    options.progress = show_progress, options.progress_user = t;
    t->done = 0;
    clv_status status = clv_blobs_open(t->context, &shape, &options, &stream);
    if (!status) status = blobs_reader_start(t->movie, t->first, t->last, frames, &reader);
    while (!status) {
        const void *pixels;
        size_t count;
        status = blobs_reader_next(reader, &pixels, &count);
        if (status && t->a->partial && t->done) {
            cli_warn(&cli_blobs, "%s; the %zu frames before it are done", clv_error_message(),
                     t->done);
            status = CLV_OK;
            break;
        }
        if (status || !count) break;
        if (cli_interrupted()) { /* jobs of small blocks may end before they check */
            status = CLV_E_CANCELLED;
            break;
        }
        if (!cli_share_step()) { /* another shard's frames */
            t->done += count;
            continue;
        }
        status = clv_blobs_push(stream, pixels, count, t->report);
        if (!status && !quiet_pass && blobs_wants_stage(t->a))
            status = blobs_stage_take(&t->stage, pixels, count);
        const clv_stage_shift *moved = t->a->subtract_drift && !quiet_pass && !status
                                           ? t->stage.shifts + t->stage.count - count
                                           : NULL;
        if (!status && t->a->overlay && !quiet_pass &&
            !blobs_project(&t->projection, t->facts, pixels, count, moved, t->a->invert))
            status = clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
        if (!status && !quiet_pass) status = take_spots(t, stream);
        if (!status) t->done += count;
    }
    if (status == CLV_E_CANCELLED)
        status =
            blobs_stop(t->a, quiet_pass ? 0 : t->done, t->last - t->first, "frames", &t->stopped);
    t->summary = clv_blobs_summary(stream);
    if (reader) t->read_s += blobs_reader_seconds(reader);
    blobs_reader_stop(reader);
    clv_blobs_close(stream);
    return status;
}

/* Finds the largest response of the movie and derives an absolute threshold from it (--threshold-scope movie). */
static clv_status movie_threshold(task *t, clv_blob_options *options)
{
    clv_blob_options once = *options;
    once.threshold_rel = 1, once.threshold_rel_given = true;
    once.threshold_given = false;
    CLV_TRY(run_frames(t, &once, true));
    const double part = options->threshold_rel_given ? options->threshold_rel : 0.2;
    options->threshold =
        fmax(options->threshold_given ? options->threshold : 0, part * t->summary.max_response);
    options->threshold_given = true, options->threshold_rel_given = false;
    return CLV_OK;
}

static clv_status detect(task *t)
{
    clv_blob_options options = blobs_options(t->a);
    if (t->a->scope == 1) CLV_TRY(movie_threshold(t, &options));
    return run_frames(t, &options, false);
}

static clv_status draw(const task *t)
{
    clv_spot *spots = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *spots);
    if (!spots) return clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
    for (size_t i = 0; i < t->count; ++i)
        spots[i] = t->spots[i].is;
    const clv_status status =
        blobs_draw(&t->projection, &t->units, spots, t->particle, t->count, t->a->overlay);
    clv_free(spots);
    return status;
}

static clv_status finish(task *t)
{
    const blobs_args *a = t->a;
    if (a->link_given) CLV_TRY(blobs_link(&t->spots, &t->count, a, &t->particle, &t->tracks));
    if (t->writing) {
        if (a->link_given) CLV_TRY(blobs_writer_add(&t->writer, t->spots, t->particle, t->count));
        t->writing = false;
        CLV_TRY(blobs_writer_finish(&t->writer));
    }
    if (a->tracks) CLV_TRY(blobs_write_tracks(a, &t->units, t->spots, t->particle, t->count));
    if (blobs_wants_stage(a)) CLV_TRY(blobs_stage_finish(&t->stage, t->first, &t->units));
    return a->overlay ? draw(t) : CLV_OK;
}

static void announce(const task *t)
{
    char bytes[16];
    if (t->a->common.quiet) return;
    cli_say(stderr, "%s: %s, %zu frame%s of %zux%zu %s (%s)", t->a->movie, t->facts->format,
            t->facts->frames, t->facts->frames == 1 ? "" : "s", t->facts->width, t->facts->height,
            t->facts->stored,
            clv_format_bytes((uint64_t)t->facts->frames * t->facts->height * t->facts->width *
                                 clv_type_size(t->facts->type),
                             bytes));
    for (size_t i = 0; i < clv_context_device_count(t->context); ++i)
        cli_say(stderr, "%s %s", i ? "," : "; on",
                clv_device_label(clv_context_device(t->context, i)));
    if (!clv_context_device_count(t->context)) cli_say(stderr, "; in plain C");
    cli_say(stderr, "; blocks of %zu frames\n", blobs_block(t->facts));
    if (!t->a->threshold_given && !t->a->threshold_rel_given && !t->a->threshold_sigma_given)
        cli_say(stderr, t->a->scope == 1
                            ? "no threshold given: using 0.2 times the largest response of the "
                              "movie (--threshold-rel 0.2)\n"
                            : "no threshold given: using 6 times the local noise "
                              "(--threshold-sigma 6)\n");
    for (const char *line = t->facts->notices; *line;) {
        const size_t length = strcspn(line, "\n");
        cli_warn(&cli_blobs, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void summarize(const task *t, double seconds)
{
    char took[24];
    const clv_blob_summary *s = &t->summary;
    if (t->a->common.quiet) return;
    FILE *out = t->a->news;
    cli_say(out, "%zu frame%s, %zu spot%s, %.1f per frame", s->frames, s->frames == 1 ? "" : "s",
            s->spots, s->spots == 1 ? "" : "s",
            s->frames ? (double)s->spots / (double)s->frames : 0);
    if (t->a->link_given) cli_say(out, ", %zu track%s", t->tracks, t->tracks == 1 ? "" : "s");
    cli_say(out, "; %s, %.0f frames/s (reading %.2f s, detecting %.2f s, measuring %.2f s)\n",
            clv_format_seconds(seconds, took), seconds > 0 ? (double)s->frames / seconds : 0,
            t->read_s, s->job_s, s->finish_s);
    if (s->bad_pixels)
        cli_warn(&cli_blobs, "%zu pixels are NaN or infinite; %zu spots next to them are left out",
                 s->bad_pixels, s->dropped_bad);
    if (s->hot_pixels)
        cli_warn(&cli_blobs,
                 "%zu single bright pixels (hot pixels, cosmics) are narrower than a spot of "
                 "--min-sigma %g and are left out; --hot-pixels keep counts them as spots",
                 s->hot_pixels, t->a->min_sigma);
    if (t->watch.jumps)
        cli_warn(&cli_blobs,
                 "the number of spots jumps: frame %zu has %.0f spots, the frames before it have "
                 "about %.0f (%zu such jumps)",
                 t->watch.first_of, t->watch.first_now, t->watch.first_usual, t->watch.jumps);
    if (blobs_wants_stage(t->a)) blobs_stage_tell(&t->stage, t->a->news);
    if (s->empty_frames)
        cli_warn(&cli_blobs, "%zu of %zu frames have no spots", s->empty_frames, s->frames);
}

static int work(task *t)
{
    const blobs_args *a = t->a;
    const double started = clv_now();
    int code = cli_status(&cli_blobs, clv_report_create(&t->report));
    if (code) return code;
    announce(t);
    if ((code = blobs_units_of(a, t->facts, &t->units)) >= 0) return code;
    if (a->output) {
        code = cli_status(&cli_blobs,
                          blobs_writer_open(&t->writer, a->output, a, &t->units, a->link_given));
        if (code) return code;
        t->writing = true;
    }
    if (blobs_wants_stage(a)) {
        code = cli_status(&cli_blobs, blobs_stage_open(&t->stage, a, t->facts));
        if (code) return code;
    }
    cli_bar_start(&t->bar, &a->common, "frames");
    cli_saving(
        a->partial); /* the first interrupt ends the movie without a time limit, a second one the process */
    clv_status status = detect(t);
    cli_bar_end(&t->bar);
    end_frame(&t->watch);
    if (!status) status = cli_share_end();
    if (status && !t->cannot_write) return cli_input_status(&cli_blobs, status);
    if (!status) status = finish(t);
    cli_saving(false);
    if (status) return cli_status(&cli_blobs, status);
    clv_report_note(t->report, "frames", (double)t->summary.frames);
    clv_report_note(t->report, "spots", (double)t->summary.spots);
    clv_report_note(t->report, "tracks", (double)t->tracks);
    clv_report_note(t->report, "frames_again", (double)t->summary.reruns);
    clv_report_note(t->report, "bad_pixels", (double)t->summary.bad_pixels);
    if (blobs_wants_stage(a)) blobs_stage_note(&t->stage, t->report);
    clv_report_note(t->report, "read_s", t->read_s);
    clv_report_note(t->report, "detect_s", t->summary.job_s);
    clv_report_note(t->report, "measure_s", t->summary.finish_s);
    code = cli_write_report(&cli_blobs, &a->common, t->context, t->report);
    if (!code) summarize(t, clv_now() - started);
    return code ? code : t->stopped ? CLI_INTERRUPTED : 0;
}

/* Refuses outputs that would replace one of the files of a movie in several files. */
static int spare_inputs(const clv_movie *movie, const cli_file *outputs, size_t count)
{
    size_t files;
    char *const *path = clv_movie_files(movie, &files);
    for (size_t o = 0; o < count; ++o) {
        struct stat info;
        if (!outputs[o].path || stat(outputs[o].path, &info) != 0) continue;
        for (size_t i = 0; i < files; ++i)
            if (cli_same_file(path[i], outputs[o].path))
                return cli_error(
                    &cli_blobs, CLI_USAGE,
                    "%s: %s is a file of the movie and would be overwritten; give another file",
                    outputs[o].option, outputs[o].path);
    }
    return -1;
}

/* Returns the file that an operand names: FILE for "@FILE", unless a file has the name "@FILE" itself. */
static const char *file_of(const char *operand)
{
    struct stat info;
    return *operand == '@' && lstat(operand, &info) != 0 ? operand + 1 : operand;
}

static int run(int argc, char **argv)
{
    blobs_args a = { .min_sigma = 1,
                     .max_sigma = 3,
                     .num_sigma = 5,
                     .sigma_ratio = 1.6,
                     .overlap = 0.5,
                     .min_length = 1 };
    cli_option own[BLOBS_OPTIONS + 1], common[CLI_COMMON_OPTIONS + 1],
        shared[CLI_SHARE_OPTIONS + 1];
    blobs_table(&a, own);
    cli_common_table(&a.common, common);
    cli_share_table(&a.common, shared);
    const cli_option *const tables[] = { own, common, shared, NULL };
    int operands, code = cli_parse(&cli_blobs, tables, argc, argv, &operands);
    if (code >= 0) return code;
    const int first = CLV_MIN(operands, 1); /* all others are more files of the movie */
    if ((code = cli_check_operands(&cli_blobs, "MOVIE", first, argv + 1)) >= 0) return code;
    if ((code = blobs_check(&a)) >= 0) return code;
    a.movie = argv[1];
    const unsigned formats = a.format == BLOBS_CLEAVE      ? BLOBS_TABLES
                             : a.format == BLOBS_TRACKMATE ? CLI_CSV | CLI_TSV | CLI_XML
                             : a.format == BLOBS_NAPARI    ? CLI_CSV
                                                           : CLI_CSV | CLI_TSV | CLI_JSON;
    const cli_file movie = { "MOVIE", file_of(a.movie), NULL, 0 };
    const cli_file outputs[] = { { "-o", a.output, NULL, formats },
                                 { "--tracks", a.tracks, NULL, formats },
                                 { "--stage-drift", a.stage_drift, NULL,
                                   CLI_CSV | CLI_TSV | CLI_JSON },
                                 { "--registered", a.registered, NULL, CLI_NPY | CLI_NO_STREAM },
                                 { "--overlay", a.overlay, NULL, CLI_PNG },
                                 { "--histogram", a.histogram, NULL, CLI_PNG } };
    code = cli_check_files(&cli_blobs, &a.common, &movie, 1, outputs, CLV_LEN(outputs));
    for (int i = 2; i <= operands && code < 0; ++i) {
        const cli_file more = { "MOVIE", file_of(argv[i]), NULL, 0 };
        code = cli_check_files(&cli_blobs, &a.common, &more, 1, outputs, CLV_LEN(outputs));
    }
    if (code >= 0) return code;
    a.news = cli_news(&a.common, outputs, CLV_LEN(outputs));

    clv_raw_layout raw = { 0 };
    if (a.raw && !clv_raw_parse(a.raw, &raw))
        return cli_error(
            &cli_blobs, CLI_USAGE,
            "--raw is \"%s\", but it must be T,H,W,TYPE[,OFFSET], such as 1000,512,512,u16", a.raw);
    const clv_movie_options how = { .channel_given = a.channel_given,
                                    .channel = (size_t)a.channel,
                                    .z_given = a.z_given,
                                    .z = (size_t)a.z,
                                    .partial = a.partial,
                                    .stacks = true,
                                    .axes = (clv_movie_axes)a.axes,
                                    .raw = raw };
    task t = { .a = &a };
    code = cli_input_status(&cli_blobs, clv_movie_open_list((const char *const *)argv + 1,
                                                            (size_t)operands, &how, &t.movie));
    if (code) return code;
    code = spare_inputs(t.movie, outputs, CLV_LEN(outputs));
    if (code >= 0) {
        clv_movie_close(t.movie);
        return code;
    }
    t.facts = clv_movie_look(t.movie);
    const size_t shorter = CLV_MIN(t.facts->height, t.facts->width);
    if (a.exclude_border > (shorter - 1) / 2) {
        code = cli_error(&cli_blobs, CLI_USAGE,
                         "--exclude-border is %llu, which leaves nothing of %zux%zu pixels; it can "
                         "be at most %zu",
                         (unsigned long long)a.exclude_border, t.facts->height, t.facts->width,
                         (shorter - 1) / 2);
        clv_movie_close(t.movie);
        return code;
    }
    if (t.facts->depth > 1) {
        code = blobs_volumes(&a, t.movie);
        clv_movie_close(t.movie);
        return code;
    }
    if (a.voxel_size) {
        clv_movie_close(t.movie);
        return cli_error(&cli_blobs, CLI_USAGE,
                         "--voxel-size is for stacks of planes, but %s has none (--axes ZYX reads "
                         "its frames as one stack)",
                         a.movie);
    }
    t.first = a.first, t.last = CLV_MIN(a.last, t.facts->frames);
    if (t.first >= t.last)
        code = cli_error(&cli_blobs, CLI_USAGE,
                         "--frames is %s, but the movie has the frames 0 to %zu", a.frames,
                         t.facts->frames - 1);
    else
        code = cli_common_context(&cli_blobs, &a.common, &t.context);
    if (code < 1 && t.context)
        code = a.preview_given ? blobs_preview(&a, t.movie, t.context) : work(&t);
    if (t.writing) blobs_writer_abandon(&t.writer);
    blobs_projection_clear(&t.projection);
    blobs_stage_close(&t.stage);
    clv_free(t.spots), clv_free(t.particle);
    clv_report_free(t.report);
    clv_context_free(t.context);
    clv_movie_close(t.movie);
    return code;
}

const cli_command cli_blobs = {
    .name = "blobs",
    .summary = "find spots in a movie and link them into tracks (LoG or DoG, sub-pixel)",
    .operands = "MOVIE... -o SPOTS.csv [OPTION...]",
    .description =
        "Finds bright (--invert: dark) spots of several sizes in every frame of a movie: a TIFF, "
        "NPY,\nPNG or OME-Zarr file of any length (or several files, in order, or a list of them "
        "in a .txt\nfile), and measures their positions to a fraction of a pixel. If you give both "
        "--threshold\nand --threshold-rel, the stricter one decides; --preview N shows how many "
        "spots they give.\n--link R joins spots of successive frames into tracks.",
    .run = run,
};

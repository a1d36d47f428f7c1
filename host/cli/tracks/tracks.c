/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave tracks`: analyses the motion in a table of tracks: diffusion, mean squared displacements, drift. */
#include "host/cli/tracks/tracks.h"
#include "host/cli/clash.h"
#include "host/cli/columns.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

static clv_status filter(tracks_found *f)
{
    const tracks_args *a = f->a;
    const clv_track_filter keep = { .size = sizeof keep,
                                    .min_spots = (size_t)a->min_length,
                                    .max_spots = (size_t)a->max_length,
                                    .min_extent = a->min_extent,
                                    .max_extent = a->max_extent,
                                    .min_displacement = a->min_displacement,
                                    .max_displacement = a->max_displacement };
    f->all_tracks = clv_tracks_count(f->tracks);
    return clv_tracks_filter(f->tracks, &keep);
}

/* Returns the most frames over which a drift is computed: even a tiny file may name frames that are arbitrarily far
 * apart. */
static uint64_t most_frames(const tracks_found *f)
{
    return 1000000 + 100 * (uint64_t)clv_tracks_spots(f->tracks, NULL, NULL, NULL);
}

static clv_status find_drift(tracks_found *f)
{
    double share;
    clv_tracks_frames(f->tracks, &f->first, &f->last);
    if (f->last < f->first) return CLV_OK;
    const uint64_t frames = (uint64_t)(f->last - f->first) + 1;
    if (frames > most_frames(f)) {
        if (!f->a->drift && !f->a->subtract_drift) return CLV_OK; /* reported at the end */
        return clv_fail(
            CLV_E_ARGUMENT,
            "the frames go from %lld to %lld, but with %zu spots a drift can be measured over at "
            "most %llu frames; leave out the spots whose frame numbers are far from the other "
            "numbers",
            (long long)f->first, (long long)f->last, clv_tracks_spots(f->tracks, NULL, NULL, NULL),
            (unsigned long long)most_frames(f));
    }
    f->drift = clv_alloc((size_t)frames, 3 * sizeof *f->drift);
    if (!f->drift)
        return clv_fail(CLV_E_MEMORY, "not enough memory for the drift of %llu frames",
                        (unsigned long long)frames);
    CLV_TRY(clv_tracks_drift(f->tracks, (size_t)f->a->smooth, f->drift, &share));
    if (!f->a->subtract_drift) return CLV_OK;
    f->drift_share = share;
    return clv_tracks_subtract(f->tracks, f->drift);
}

static clv_status find_msd(tracks_found *f)
{
    uint64_t longest = 0;
    for (size_t k = 0; k < clv_tracks_count(f->tracks); ++k) {
        const clv_track t = clv_tracks_at(f->tracks, k);
        longest = CLV_MAX(longest, (uint64_t)(t.last - t.first));
    }
    f->lags = (size_t)CLV_MIN(longest, f->a->lags);
    f->msd = clv_alloc(CLV_MAX(f->lags, (size_t)1), sizeof *f->msd);
    if (!f->msd) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu lags", f->lags);
    return clv_tracks_msd(f->tracks, CLV_ALL_TRACKS, f->lags, f->msd);
}

/* Returns by how many standard errors the mean displacement between frames differs from zero. */
static double drift_in_errors(const tracks_found *f)
{
    double most = 0;
    for (size_t axis = 3 - f->axes; axis < 3 && f->lags; ++axis) {
        const clv_msd *m = &f->msd[0];
        const double variance = m->square[axis] - m->mean[axis] * m->mean[axis];
        if (m->pairs > 1 && variance > 0)
            most = fmax(most, fabs(m->mean[axis]) / sqrt(variance / (double)m->pairs));
    }
    return most;
}

static clv_status analyse(const char *path, tracks_found *f)
{
    CLV_TRY(tracks_read(path, f));
    f->axes = clv_tracks_axes(f->tracks);
    CLV_TRY(filter(f));
    CLV_TRY(find_drift(f));
    CLV_TRY(find_msd(f));
    f->drifts = f->drift && !f->a->subtract_drift && drift_in_errors(f) > 5;
    return tracks_diffusion(f, CLV_ALL_TRACKS, &f->diffusion);
}

static void tell_drift(const tracks_found *f, FILE *news)
{
    if (f->last < f->first) return;
    if (!f->drift) {
        cli_say(news,
                "drift: not measured, because the frames go from %lld to %lld, which is more than "
                "%llu frames\n",
                (long long)f->first, (long long)f->last, (unsigned long long)most_frames(f));
        return;
    }
    const double *end = f->drift + 3 * (size_t)(f->last - f->first);
    char places[100];
    if (f->axes == 3)
        snprintf(places, sizeof places, "%.4g, %.4g and %.4g %s along z, y and x", end[0], end[1],
                 end[2], f->units.space);
    else
        snprintf(places, sizeof places, "%.4g and %.4g %s along y and x", end[1], end[2],
                 f->units.space);
    if (f->a->subtract_drift)
        cli_say(news, "drift: %s from frame %lld to %lld, subtracted\n", places,
                (long long)f->first, (long long)f->last);
    else if (f->drifts)
        cli_say(news,
                "drift: %s from frame %lld to %lld, which is included in D and in the mean squared "
                "displacements (--subtract-drift removes it)\n",
                places, (long long)f->first, (long long)f->last);
}

static void tell(const tracks_found *f, FILE *news)
{
    const clv_diffusion *d = &f->diffusion;
    const size_t kept = clv_tracks_count(f->tracks);
    cli_say(news, "%zu track%s of %zu spots", kept, kept == 1 ? "" : "s",
            clv_tracks_spots(f->tracks, NULL, NULL, NULL));
    if (f->all_tracks > kept) cli_say(news, "; %zu dropped", f->all_tracks - kept);
    cli_say(news, "\n");
    tell_drift(f, news);
    if (isnan(d->d)) {
        cli_say(news, "D: not measured, because there are too few displacements (%zu)\n",
                d->displacements);
        return;
    }
    cli_say(news, "D = %.4g +- %.2g %s^2/%s along %zu axes, from %zu displacements",
            d->d / f->units.interval, d->d_error / f->units.interval, f->units.space, f->units.time,
            f->axes, d->displacements);
    if (f->a->position_error_given)
        cli_say(news, "; position errors of %.4g %s, as given\n", f->a->position_error,
                f->units.space);
    else if (d->position_variance > 0)
        cli_say(news, "; estimated position errors of %.3g %s\n", sqrt(d->position_variance),
                f->units.space);
    else
        cli_say(news, "; the position errors are too small to be estimated\n");
}

static int check(const tracks_args *a)
{
    const struct {
        const char *option;
        double value, most;
    } numbers[] = { { "--position-error", a->position_error, INFINITY },
                    { "--exposure", a->exposure, 1 },
                    { "--min-extent", a->min_extent, INFINITY },
                    { "--max-extent", a->max_extent, INFINITY },
                    { "--min-displacement", a->min_displacement, INFINITY },
                    { "--max-displacement", a->max_displacement, INFINITY } };
    for (size_t i = 0; i < CLV_LEN(numbers); ++i)
        if (!(numbers[i].value >= 0 && numbers[i].value <= numbers[i].most))
            return cli_error(&cli_tracks, CLI_USAGE, "%s is %g, but it must be %s",
                             numbers[i].option, numbers[i].value,
                             numbers[i].most == 1 ? "0 to 1" : "0 or more");
    if (!a->lags || a->lags > 1000000)
        return cli_error(&cli_tracks, CLI_USAGE, "--lags is %llu, but it must be 1 to 1000000",
                         (unsigned long long)a->lags);
    if (a->smooth_given && !a->smooth)
        return cli_error(&cli_tracks, CLI_USAGE, "--smooth is 0, but it must be 1 or more frames");
    return cli_check_columns(&cli_tracks, a->columns, true);
}

static int run(int argc, char **argv)
{
    tracks_args a = { .min_length = 1, .lags = 100 };
    const cli_option results[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE",
          "one row for each track, with its D: .csv .tsv .json; - is standard output", NULL },
        { "summary", CLI_TEXT, &a.summary, "FILE", "write one row about all tracks", NULL },
        { "msd", CLI_TEXT, &a.msd, "FILE",
          "write the mean squared displacements of all tracks, by lag", NULL },
        { "track-msd", CLI_TEXT, &a.track_msd, "FILE",
          "write the mean squared displacements of each track, by lag", NULL },
        { "drift", CLI_TEXT, &a.drift, "FILE", "write the common motion, by frame", NULL },
        { "positions", CLI_TEXT, &a.positions, "FILE",
          "write the spots of the selected tracks (after --subtract-drift, if given)", NULL },
        { "plot", CLI_TEXT, &a.plot, "FILE.png", "plot the mean squared displacements with the fit",
          NULL },
        { NULL },
    };
    const cli_option filters[] = {
        { "min-length", CLI_UINT, &a.min_length, "L", "select tracks with at least L spots [1]",
          NULL },
        { "max-length", CLI_UINT, &a.max_length, "L",
          "select tracks with at most L spots [no limit]", NULL },
        { "min-extent", CLI_DOUBLE, &a.min_extent, "R",
          "select tracks whose bounding box has a diagonal of at least R [0]", NULL },
        { "max-extent", CLI_DOUBLE, &a.max_extent, "R",
          "select tracks whose bounding box has a diagonal of at most R [no limit]", NULL },
        { "min-displacement", CLI_DOUBLE, &a.min_displacement, "R",
          "select tracks whose first and last spots are at least R apart [0]", NULL },
        { "max-displacement", CLI_DOUBLE, &a.max_displacement, "R",
          "select tracks whose first and last spots are at most R apart [no limit]", NULL },
        { NULL },
    };
    const cli_option own[] = {
        { "stage-drift", CLI_TEXT, &a.stage_drift, "FILE",
          "subtract the drift that `cleave blobs --stage-drift` wrote", NULL },
        { "subtract-drift", CLI_FLAG, &a.subtract_drift, NULL,
          "subtract the common motion of the selected tracks", NULL },
        { "smooth", CLI_UINT, &a.smooth, "N", "average the drift over N frames [1]",
          &a.smooth_given },
        { "lags", CLI_UINT, &a.lags, "N", "largest lag, in frames [100]", NULL },
        { "pixel-size", CLI_TEXT, &a.pixel_size, "S[UNIT]",
          "side of a pixel, such as 0.1um [positions stay in pixels]", NULL },
        { "voxel-size", CLI_TEXT, &a.voxel_size, "Z,Y,X[UNIT]",
          "sides of a voxel along z, y and x, such as 0.3,0.1,0.1um", NULL },
        { "interval", CLI_DOUBLE, &a.interval, "S", "seconds between frames [times stay in frames]",
          &a.interval_given },
        { "position-error", CLI_DOUBLE, &a.position_error, "S",
          "known standard deviation of y and x [estimated from the tracks]",
          &a.position_error_given },
        { "exposure", CLI_DOUBLE, &a.exposure, "SHARE",
          "share of the interval during which light is collected, 0 to 1 [0]", NULL },
        { "columns", CLI_TEXT, &a.columns, "ROLE=NAME,...",
          "names of the columns frame, y, x, z, particle [by their names]", NULL },
        { "decimal", CLI_CHOICE, &a.decimal, "auto,point,comma",
          "decimal sign of the numbers in text files [detected]", NULL },
        { "q,quiet", CLI_FLAG, &a.quiet, NULL, "print no messages except errors", NULL },
        { NULL },
    };
    const cli_option *const tables[] = { results, filters, own, NULL };
    int operands, code = cli_parse(&cli_tracks, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_tracks, "TRACKS.csv", operands, argv + 1)) >= 0)
        return code;
    a.input = argv[1];
    if ((code = check(&a)) >= 0) return code;
    const cli_file inputs[] = { { "TRACKS.csv", a.input, NULL, CLI_STREAM },
                                { "--stage-drift", a.stage_drift, NULL, 0 } };
    const cli_file outputs[] = {
        { "-o", a.output, NULL, TRACKS_TABLES },
        { "--summary", a.summary, NULL, TRACKS_TABLES },
        { "--msd", a.msd, NULL, TRACKS_TABLES },
        { "--track-msd", a.track_msd, NULL, TRACKS_TABLES },
        { "--drift", a.drift, NULL, TRACKS_TABLES },
        { "--positions", a.positions, NULL, TRACKS_TABLES },
        { "--plot", a.plot, NULL, CLI_PNG },
    };
    tracks_found f = { .a = &a };
    if ((code = tracks_find_units(&f)) >= 0) return code;
    if ((code = cli_check_files(&cli_tracks, NULL, inputs, CLV_LEN(inputs), outputs,
                                CLV_LEN(outputs))) >= 0)
        return code;
    code =
        cli_input_status(&cli_tracks, analyse(cli_is_stream(a.input) ? "/dev/stdin" : a.input, &f));
    if (!code) code = cli_status(&cli_tracks, tracks_write(&f));
    if (!code && !a.quiet) tell(&f, cli_news(NULL, outputs, CLV_LEN(outputs)));
    clv_tracks_free(f.tracks);
    clv_free(f.drift), clv_free(f.msd);
    return code;
}

const cli_command cli_tracks = {
    .name = "tracks",
    .summary = "measure diffusion, mean squared displacements and drift of tracks",
    .operands = "TRACKS.csv [-o FILE] [OPTION...]",
    .description =
        "Takes any table with the frame, y, x and particle of spots, and z if there is one (-: "
        "from\n"
        "standard input), and measures how the particles move: the diffusion coefficient D with "
        "its\n"
        "error, corrected for the errors of the positions; mean squared displacements; and the\n"
        "common drift. Positions are in pixels and times in frames, unless the table has columns\n"
        "such as y_um, x_um and t_s, or --pixel-size and --interval are given; lengths in options\n"
        "have the same unit. The names of the output columns contain the unit.",
    .run = run,
};

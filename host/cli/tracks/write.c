/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tables of `cleave tracks`. Column names contain the units. */
#include "host/cli/tracks/tracks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/tables/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 24, NAME_ROOM = 48 };

/* A table under construction: first its columns are named, then rows are added. */
typedef struct table {
    const tracks_found *f;
    clv_csv csv;
    char names[MOST_COLUMNS][NAME_ROOM];
    const char *pointers[MOST_COLUMNS];
    size_t columns;
} table;

/* Adds a column; in its name, %U stands for the unit of length and %T for that of time. */
static void name(table *t, const char *text)
{
    char *out = t->names[t->columns];
    size_t length = 0;
    for (; *text && length + 1 < NAME_ROOM; ++text) {
        const char letter[] = { *text, '\0' }, *part = letter;
        if (*text == '%' && text[1]) part = *++text == 'U' ? t->f->units.space : t->f->units.time;
        clv_copy_string(out + length, NAME_ROOM - length, part);
        length += strlen(out + length);
    }
    t->pointers[t->columns++] = out;
}

static bool has_time(const tracks_found *f)
{
    return strcmp(f->units.time, "frame") != 0;
}

static void begin(table *t, const char *path)
{
    const unsigned format = cli_formats_of(path);
    const clv_csv_kind kind = cli_is_stream(path)  ? CLV_CSV_COMMAS
                              : format == CLI_TSV  ? CLV_CSV_TABS
                              : format == CLI_JSON ? CLV_CSV_JSON
                                                   : CLV_CSV_COMMAS;
    clv_csv_begin_as(&t->csv, kind, t->pointers, t->columns);
}

static void number(table *t, double value)
{
    if (isfinite(value))
        clv_csv_number(&t->csv, value);
    else
        clv_csv_missing(&t->csv);
}

static void whole(table *t, size_t value)
{
    clv_csv_int(&t->csv, (int64_t)value);
}

/* Adds a frame number or a lag, in frames and in units of time. */
static void moment(table *t, int64_t frames)
{
    clv_csv_int(&t->csv, frames);
    if (has_time(t->f)) number(t, (double)frames * t->f->units.interval);
}

static void name_moment(table *t, const char *what)
{
    name(t, what);
    if (has_time(t->f)) name(t, "t_%T");
}

/* Adds one column per axis, z first if there is one; '#' in `pattern` becomes the axis's letter. */
static void name_axes(table *t, const char *pattern)
{
    for (size_t axis = 3 - t->f->axes; axis < 3; ++axis) {
        char text[NAME_ROOM];
        clv_copy_string(text, sizeof text, pattern);
        *strchr(text, '#') = "zyx"[axis];
        name(t, text);
    }
}

static void numbers(table *t, const double *of_axes)
{
    for (size_t axis = 3 - t->f->axes; axis < 3; ++axis)
        number(t, of_axes[axis]);
}

static clv_status end(table *t, const char *path, clv_status status)
{
    clv_csv_end(&t->csv);
    if (!status) status = clv_csv_write(&t->csv, path);
    clv_csv_clear(&t->csv);
    return status;
}

clv_status tracks_diffusion(const tracks_found *f, int64_t index, clv_diffusion *result)
{
    const clv_diffusion_options options = { .size = sizeof options,
                                            .position_error_given = f->a->position_error_given,
                                            .position_error = f->a->position_error,
                                            .exposure = f->a->exposure,
                                            .drift_share = f->drift_share };
    return clv_tracks_diffusion(f->tracks, index, &options, result);
}

static double root(double variance)
{
    return isnan(variance) ? variance : sqrt(fmax(variance, 0));
}

static void name_diffusion(table *t)
{
    name(t, "d_%U2_per_%T"), name(t, "d_error_%U2_per_%T"), name(t, "position_error_%U");
    if (t->f->axes == 3)
        name(t, "d_lateral_%U2_per_%T"), name(t, "d_axial_%U2_per_%T"),
            name(t, "position_error_z_%U");
}

static void add_diffusion(table *t, const clv_diffusion *d)
{
    const double interval = t->f->units.interval;
    number(t, d->d / interval), number(t, d->d_error / interval);
    number(t, root(d->position_variance));
    if (t->f->axes == 3)
        number(t, d->lateral / interval), number(t, d->axial / interval),
            number(t, root(d->position_variance_z));
}

static clv_status write_tracks(const tracks_found *f, const char *path)
{
    table t = { .f = f };
    clv_status status = CLV_OK;
    name(&t, "particle"), name(&t, "first_frame"), name(&t, "last_frame"), name(&t, "spots");
    name(&t, "extent_%U"), name(&t, "displacement_%U");
    name_diffusion(&t);
    begin(&t, path);
    for (size_t k = 0; k < clv_tracks_count(f->tracks) && !status; ++k) {
        const clv_track track = clv_tracks_at(f->tracks, k);
        clv_diffusion d;
        status = tracks_diffusion(f, (int64_t)k, &d);
        clv_csv_int(&t.csv, track.particle);
        clv_csv_int(&t.csv, track.first), clv_csv_int(&t.csv, track.last);
        whole(&t, track.spots);
        number(&t, track.extent), number(&t, track.displacement);
        add_diffusion(&t, &d);
        clv_csv_end_row(&t.csv);
    }
    return end(&t, path, status);
}

static clv_status write_msd(const tracks_found *f, const char *path)
{
    table t = { .f = f };
    name_moment(&t, "lag");
    name(&t, "msd_%U2"), name(&t, "msd_error_%U2"), name(&t, "fit_%U2");
    name(&t, "pairs"), name(&t, "tracks"), name(&t, "independent");
    name_axes(&t, "mean_#_%U"), name_axes(&t, "square_#_%U2");
    begin(&t, path);
    for (size_t k = 0; k < f->lags; ++k) {
        const clv_msd *m = &f->msd[k];
        moment(&t, m->lag);
        number(&t, m->msd), number(&t, m->error);
        number(&t, 2 * (double)f->axes * f->diffusion.d * (double)m->lag + f->diffusion.offset);
        whole(&t, m->pairs), whole(&t, m->tracks), number(&t, m->independent);
        numbers(&t, m->mean), numbers(&t, m->square);
        clv_csv_end_row(&t.csv);
    }
    return end(&t, path, CLV_OK);
}

static clv_status write_track_msd(const tracks_found *f, const char *path)
{
    table t = { .f = f };
    clv_status status = CLV_OK;
    clv_msd *msd = clv_alloc(CLV_MAX(f->lags, (size_t)1), sizeof *msd);
    if (!msd) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    name(&t, "particle");
    name_moment(&t, "lag");
    name(&t, "msd_%U2"), name(&t, "msd_error_%U2"), name(&t, "pairs");
    begin(&t, path);
    for (size_t k = 0; k < clv_tracks_count(f->tracks) && !status; ++k) {
        const clv_track track = clv_tracks_at(f->tracks, k);
        const uint64_t span = (uint64_t)(track.last - track.first);
        const size_t own = CLV_MIN(span, f->lags);
        status = clv_tracks_msd(f->tracks, (int64_t)k, own, msd);
        for (size_t i = 0; i < own && !status; ++i) {
            if (!msd[i].pairs) continue;
            clv_csv_int(&t.csv, track.particle);
            moment(&t, msd[i].lag);
            number(&t, msd[i].msd), number(&t, msd[i].error), whole(&t, msd[i].pairs);
            clv_csv_end_row(&t.csv);
        }
    }
    clv_free(msd);
    return end(&t, path, status);
}

static clv_status write_drift(const tracks_found *f, const char *path)
{
    table t = { .f = f };
    name_moment(&t, "frame");
    name_axes(&t, "#_%U");
    begin(&t, path);
    for (int64_t frame = f->first; frame <= f->last; ++frame) {
        moment(&t, frame);
        numbers(&t, f->drift + 3 * (size_t)(frame - f->first));
        clv_csv_end_row(&t.csv);
    }
    return end(&t, path, CLV_OK);
}

static int by_frame(const void *left, const void *right)
{
    const size_t *a = left, *b = right; /* frame, then position in the order of tracks */
    if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
    return (a[1] > b[1]) - (a[1] < b[1]);
}

static clv_status write_positions(const tracks_found *f, const char *path)
{
    table t = { .f = f };
    const size_t count = clv_tracks_spots(f->tracks, NULL, NULL, NULL),
                 room = CLV_MAX(count, (size_t)1);
    clv_point *points = clv_alloc(room, sizeof *points);
    double *z = clv_alloc(room, sizeof *z);
    int64_t *particle = clv_alloc(room, sizeof *particle);
    size_t *order = clv_alloc(room, 2 * sizeof *order);
    clv_status status = points && z && particle && order
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    name_moment(&t, "frame");
    name_axes(&t, f->units.physical ? "#_%U" : "#");
    name(&t, "particle");
    begin(&t, path);
    if (!status) clv_tracks_spots(f->tracks, points, z, particle);
    for (size_t i = 0; i < count && !status; ++i)
        order[2 * i] = (size_t)(points[i].frame - f->first), order[2 * i + 1] = i;
    if (!status && count) qsort(order, count, 2 * sizeof *order, by_frame);
    for (size_t k = 0; k < count && !status; ++k) {
        const size_t i = order[2 * k + 1];
        const double place[3] = { z[i], points[i].y, points[i].x };
        moment(&t, points[i].frame);
        numbers(&t, place);
        clv_csv_int(&t.csv, particle[i]);
        clv_csv_end_row(&t.csv);
    }
    clv_free(points), clv_free(z), clv_free(particle), clv_free(order);
    return end(&t, path, status);
}

static clv_status write_summary(const tracks_found *f, const char *path)
{
    table t = { .f = f };
    const clv_diffusion *d = &f->diffusion;
    const double *end_of = f->drift ? f->drift + 3 * (size_t)(f->last - f->first) : NULL;
    name(&t, "tracks"), name(&t, "dropped_tracks"), name(&t, "spots"), name(&t, "first_frame");
    name(&t, "last_frame"), name(&t, "displacements");
    if (has_time(f)) name(&t, "interval_%T");
    name_diffusion(&t);
    name(&t, "offset_%U2");
    name_axes(&t, "drift_#_%U");
    name(&t, "drift_subtracted");
    begin(&t, path);
    whole(&t, clv_tracks_count(f->tracks)), whole(&t, f->all_tracks - clv_tracks_count(f->tracks));
    whole(&t, clv_tracks_spots(f->tracks, NULL, NULL, NULL));
    clv_csv_int(&t.csv, f->first), clv_csv_int(&t.csv, f->last), whole(&t, d->displacements);
    if (has_time(f)) number(&t, f->units.interval);
    add_diffusion(&t, d);
    number(&t, d->offset);
    for (size_t axis = 3 - f->axes; axis < 3; ++axis)
        number(&t, end_of ? end_of[axis] : f->last < f->first ? 0 : NAN);
    whole(&t, f->a->subtract_drift);
    clv_csv_end_row(&t.csv);
    return end(&t, path, CLV_OK);
}

clv_status tracks_write(const tracks_found *f)
{
    const tracks_args *a = f->a;
    if (a->output) CLV_TRY(write_tracks(f, a->output));
    if (a->msd) CLV_TRY(write_msd(f, a->msd));
    if (a->track_msd) CLV_TRY(write_track_msd(f, a->track_msd));
    if (a->drift) CLV_TRY(write_drift(f, a->drift));
    if (a->positions) CLV_TRY(write_positions(f, a->positions));
    if (a->summary) CLV_TRY(write_summary(f, a->summary));
    if (a->plot) CLV_TRY(tracks_plot(f, a->plot));
    return CLV_OK;
}

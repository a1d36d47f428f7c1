/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a table of tracks: finds its columns and units. */
#include "host/cli/tracks/tracks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/cli/columns.h"
#include "host/cli/drift.h"
#include "host/cli/units.h"
#include "host/io/tables/any.h"

#include <math.h>
#include <string.h>

typedef struct source {
    const char *path;
    tracks_found *f;
    clv_csv_table *table;
    size_t column[COLUMN_ROLES];
    const char *unit; /* of columns such as y_um; NULL: other columns are read */
    size_t time;      /* column t_s; SIZE_MAX: none, or not wanted */
    clv_point *points;
    double *z, *values;
    int64_t *particle;
} source;

int tracks_find_units(tracks_found *f)
{
    const tracks_args *a = f->a;
    tracks_units *u = &f->units;
    char unit[sizeof u->space] = "";
    *u = (tracks_units){ .scale = { 1, 1, 1 }, .interval = 1 };
    if (a->pixel_size && a->voxel_size)
        return cli_error(
            cli_running(), CLI_USAGE,
            "--voxel-size and --pixel-size both give the size of a pixel; leave one of them out");
    if (a->pixel_size && !cli_parse_size(a->pixel_size, &u->scale[2], unit, sizeof unit))
        return cli_error(cli_running(), CLI_USAGE,
                         "--pixel-size is \"%s\", but it must be a size such as 0.1um",
                         a->pixel_size);
    if (a->pixel_size) u->scale[0] = u->scale[1] = u->scale[2];
    if (a->voxel_size && !cli_parse_voxel(a->voxel_size, u->scale, unit, sizeof unit))
        return cli_error(cli_running(), CLI_USAGE,
                         "--voxel-size is \"%s\", but it must be the sides along z, y and x, such "
                         "as 0.3,0.1,0.1um",
                         a->voxel_size);
    if (a->pixel_size || a->voxel_size) {
        cli_unit_word(unit, u->space, sizeof u->space);
        u->physical = u->space[0] != '\0';
        if (!u->physical)
            return cli_error(
                cli_running(), CLI_USAGE,
                "%s %s has no unit, but the names of columns contain it; add one, such as %sum",
                a->pixel_size ? "--pixel-size" : "--voxel-size",
                a->pixel_size ? a->pixel_size : a->voxel_size,
                a->pixel_size ? a->pixel_size : a->voxel_size);
    } else {
        clv_copy_string(u->space, sizeof u->space, "px");
    }
    if (a->interval_given && !(a->interval > 0))
        return cli_error(cli_running(), CLI_USAGE, "--interval is %g, but it must be more than 0",
                         a->interval);
    if (a->interval_given) u->interval = a->interval;
    clv_copy_string(u->time, sizeof u->time, a->interval_given ? "s" : "frame");
    return -1;
}

/* Finds columns such as y_um and x_um, which `cleave blobs` writes, unless the user gives other columns or units. */
static bool find_physical(source *s)
{
    const tracks_args *a = s->f->a;
    if (a->pixel_size || a->voxel_size || (a->columns && strpbrk(a->columns, "xyz"))) return false;
    const char *unit = cli_find_physical(s->table, s->column);
    if (!unit) return false;
    clv_copy_string(s->f->units.space, sizeof s->f->units.space, unit);
    s->f->units.physical = true;
    s->unit = unit;
    if (!a->quiet)
        cli_say(stderr,
                "positions in %s, from the columns y_%s and x_%s (--columns y=NAME,x=NAME chooses "
                "other columns)\n",
                unit, unit, unit);
    return true;
}

static clv_status find_columns(source *s)
{
    const tracks_args *a = s->f->a;
    size_t column[COLUMN_ROLES];
    unsigned wanted = (1u << COLUMN_ROLES) - 1;
    for (int role = 0; role < COLUMN_ROLES; ++role)
        s->column[role] = SIZE_MAX;
    if (find_physical(s)) wanted = 1u << COLUMN_FRAME | 1u << COLUMN_PARTICLE;
    CLV_TRY(cli_find_columns(s->table, s->path, a->columns, wanted, a->quiet, column));
    for (int role = 0; role < COLUMN_ROLES; ++role)
        if (wanted >> role & 1) s->column[role] = column[role];
    s->time = a->interval_given ? SIZE_MAX : cli_column_called(s->table, "t_s");
    return cli_drop_header_lines(s->table, s->path, s->column[COLUMN_FRAME], a->quiet);
}

static clv_status read_frames(source *s, size_t count)
{
    CLV_TRY(clv_csv_doubles(s->table, s->column[COLUMN_FRAME], s->values));
    for (size_t i = 0; i < count; ++i) {
        CLV_TRY(cli_check_whole(s->table, s->path, i, s->column[COLUMN_FRAME], "frame",
                                s->values[i], 1e15));
        s->points[i].frame = (int64_t)s->values[i];
    }
    return CLV_OK;
}

/* Reads the track numbers. A spot with an empty field or a negative number belongs to no track. */
static clv_status read_particles(source *s, size_t count)
{
    clv_csv_cell *cells = clv_alloc(clv_csv_columns(s->table), sizeof *cells);
    clv_status status = cells ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    for (size_t i = 0; i < count && !status; ++i) {
        double value = -1;
        clv_csv_cells(s->table, i, cells);
        const clv_csv_cell *cell = &cells[s->column[COLUMN_PARTICLE]];
        if (cell->length && !clv_csv_cell_double(s->table, cell, &value))
            status =
                clv_fail(CLV_E_FORMAT,
                         "%s: row %zu: the particle in column '%s' is not a number, but tracks "
                         "have whole numbers (--columns particle=NAME chooses another column)",
                         s->path, i + 1, clv_csv_name(s->table, s->column[COLUMN_PARTICLE]));
        else
            status = cli_check_whole(s->table, s->path, i, s->column[COLUMN_PARTICLE], "particle",
                                     value, 9e15);
        if (!status) s->particle[i] = value < 0 ? -1 : (int64_t)value;
    }
    clv_free(cells);
    return status;
}

/* Reads the coordinates of a role. Those of spots that belong to no track may have any size. */
static clv_status read_axis(source *s, size_t count, int role, double *values)
{
    CLV_TRY(clv_csv_doubles(s->table, s->column[role], values));
    for (size_t i = 0; i < count; ++i)
        if (s->particle[i] >= 0)
            CLV_TRY(cli_check_place(s->table, s->path, i, s->column[role], values[i]));
    return CLV_OK;
}

static clv_status read_places(source *s, size_t count)
{
    const double *scale = s->f->units.scale;
    CLV_TRY(read_axis(s, count, COLUMN_Y, s->values));
    for (size_t i = 0; i < count; ++i)
        s->points[i].y = s->values[i] * scale[1];
    CLV_TRY(read_axis(s, count, COLUMN_X, s->values));
    for (size_t i = 0; i < count; ++i)
        s->points[i].x = s->values[i] * scale[2];
    if (s->column[COLUMN_Z] == SIZE_MAX) return CLV_OK;
    s->z = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *s->z);
    if (!s->z) return clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    CLV_TRY(read_axis(s, count, COLUMN_Z, s->z));
    for (size_t i = 0; i < count; ++i)
        s->z[i] *= scale[0];
    return CLV_OK;
}

/* Subtracts the drift of the stage. Its table has the same units as the table of tracks. */
static clv_status subtract_stage(source *s, size_t count)
{
    const double *scale = s->f->units.scale;
    cli_drift drift;
    if (!s->f->a->stage_drift) return CLV_OK;
    clv_status status = cli_drift_read(s->f->a->stage_drift, s->unit, &drift);
    for (size_t i = 0; i < count && !status; ++i) {
        double yx[2];
        status = cli_drift_of(&drift, s->points[i].frame, yx);
        if (!status) s->points[i].y -= yx[0] * scale[1], s->points[i].x -= yx[1] * scale[2];
    }
    cli_drift_clear(&drift);
    return status;
}

/* Derives the time between frames from a column t_s. */
static clv_status read_interval(source *s, size_t count)
{
    if (s->time == SIZE_MAX || !count) return CLV_OK;
    size_t low = 0, high = 0;
    CLV_TRY(clv_csv_doubles(s->table, s->time, s->values));
    for (size_t i = 0; i < count; ++i) {
        if (s->points[i].frame < s->points[low].frame) low = i;
        if (s->points[i].frame > s->points[high].frame) high = i;
    }
    const double interval =
        (s->values[high] - s->values[low]) / (double)(s->points[high].frame - s->points[low].frame);
    if (!(interval > 0) || !isfinite(interval)) return CLV_OK;
    s->f->units.interval = interval;
    clv_copy_string(s->f->units.time, sizeof s->f->units.time, "s");
    if (!s->f->a->quiet)
        cli_say(stderr, "%.6g s between frames, from the column t_s (--interval overrides it)\n",
                interval);
    return CLV_OK;
}

static void tell_units(const tracks_found *f)
{
    if (f->a->quiet) return;
    if (!f->units.physical)
        cli_say(stderr, "positions are in the units of the table, usually pixels (--pixel-size "
                        "0.1um converts pixels to micrometres)\n");
    if (strcmp(f->units.time, "frame") == 0)
        cli_say(stderr, "times are in frames (--interval 0.05 gives seconds)\n");
}

/* Makes the tracks, and names the file if its spots cannot be tracks. */
static clv_status make_tracks(const source *s, size_t count, clv_tracks **tracks)
{
    static const char who[] = "tracks: ";
    const clv_status status = clv_tracks_create(s->points, s->z, s->particle, count, tracks);
    if (status != CLV_E_ARGUMENT) return status;
    const char *why = clv_error_message();
    if (clv_starts_with(why, who)) why += sizeof who - 1;
    char *copy = clv_strdup(why); /* clv_fail overwrites the message */
    if (!copy) return clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    clv_fail(status, "%s: %s", s->path, copy);
    clv_free(copy);
    return status;
}

clv_status tracks_read(const char *path, tracks_found *f)
{
    static const char decimals[] = { '\0', '.', ',' };
    const char *kind;
    source s = { .path = path, .f = f };
    clv_status status = clv_table_read(path, decimals[f->a->decimal], &s.table, &kind);
    if (!status) status = find_columns(&s);
    const size_t count = status ? 0 : clv_csv_rows(s.table), room = CLV_MAX(count, (size_t)1);
    if (!status) {
        s.points = clv_alloc(room, sizeof *s.points);
        s.values = clv_alloc(room, sizeof *s.values);
        s.particle = clv_alloc(room, sizeof *s.particle);
        if (!s.points || !s.values || !s.particle)
            status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    if (!status) status = read_frames(&s, count);
    if (!status) status = read_particles(&s, count);
    if (!status) status = read_places(&s, count);
    if (!status) status = subtract_stage(&s, count);
    if (!status) status = read_interval(&s, count);
    if (!status) status = make_tracks(&s, count, &f->tracks);
    if (!status) tell_units(f);
    clv_csv_free(s.table);
    clv_free(s.points), clv_free(s.values), clv_free(s.particle), clv_free(s.z);
    return status;
}

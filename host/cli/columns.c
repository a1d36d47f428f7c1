/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the columns of a user's table that hold the frame and the position: as the user names them, or
 * else by their usual names. */
#include "host/cli/columns.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const roles[COLUMN_ROLES] = { "frame", "y", "x", "z", "particle" };

/* The usual names of each role's column, in any case; earlier names take precedence. */
static const char *const usual[COLUMN_ROLES][9] = {
    { "frame", "frames", "t", "frame_number", "slice", "axis-0" },
    { "y", "position_y", "row", "y_px", "y [px]", "centroid-0", "axis-1" },
    { "x", "position_x", "col", "column", "x_px", "x [px]", "centroid-1", "axis-2" },
    { "z", "position_z", "plane", "z_px" },
    { "particle", "track_id", "track", "trajectory", "id" },
};
/* The columns of napari's points in four dimensions: t, z, y, x. */
static const char *const four_axes[COLUMN_ROLES] = { "axis-0", "axis-2", "axis-3", "axis-1", NULL };

static int role_of(const char *text, size_t length)
{
    for (int r = 0; r < COLUMN_ROLES; ++r)
        if (strlen(roles[r]) == length && memcmp(roles[r], text, length) == 0) return r;
    return -1;
}

/* Returns the part of "frame=t,y=row" that follows "ROLE=", or NULL if the role is not given. */
static const char *given_name(const char *given, int role, size_t *length)
{
    for (const char *at = given; at && *at;) {
        const size_t whole = strcspn(at, ","), name = strcspn(at, "=");
        if (role_of(at, name) == role) {
            *length = whole - name - 1;
            return at + name + 1;
        }
        at += whole + (at[whole] == ',');
    }
    return NULL;
}

int cli_check_columns(const cli_command *command, const char *given, bool particle)
{
    bool seen[COLUMN_ROLES] = { false };
    for (const char *at = given; at && *at;) {
        const size_t whole = strcspn(at, ","), name = strcspn(at, "=");
        const int role = name < whole ? role_of(at, name) : -1;
        if (role < 0 || (role == COLUMN_PARTICLE && !particle) || seen[role])
            return cli_error(command, CLI_USAGE,
                             "--columns is \"%s\", but it must name columns for some of %s, each "
                             "once, such as frame=t,y=row,x=col",
                             given, particle ? "frame, y, x, z and particle" : "frame, y, x and z");
        seen[role] = true;
        at += whole + (at[whole] == ',');
    }
    if (given && !*given)
        return cli_error(command, CLI_USAGE,
                         "--columns is empty, but it must have names such as frame=t,y=row,x=col");
    return -1;
}

static bool has(const clv_csv_table *table, const char *name)
{
    for (size_t c = 0; c < clv_csv_columns(table); ++c)
        if (strcmp(clv_csv_name(table, c), name) == 0) return true;
    return false;
}

/* Finds the column with that name in any case. CLV_E_FORMAT: there are several. */
static clv_status find_any_case(const clv_csv_table *table, const char *path, const char *role,
                                const char *name, size_t *column)
{
    size_t found = SIZE_MAX;
    for (size_t c = 0; c < clv_csv_columns(table); ++c) {
        if (strcasecmp(clv_csv_name(table, c), name) != 0) continue;
        if (found != SIZE_MAX && strcmp(clv_csv_name(table, found), name) == 0)
            continue; /* the column found earlier has exactly this spelling */
        if (found != SIZE_MAX && strcmp(clv_csv_name(table, c), name) != 0)
            return clv_fail(
                CLV_E_FORMAT,
                "%s: the columns '%s' and '%s' could both be %s; choose one with --columns %s=NAME",
                path, clv_csv_name(table, found), clv_csv_name(table, c), role, role);
        found = c;
    }
    *column = found;
    return CLV_OK;
}

static clv_status guess(const clv_csv_table *table, const char *path, int role, size_t *column)
{
    *column = SIZE_MAX;
    if (has(table, roles[role]))
        return clv_csv_find(table, roles[role], column); /* an error if the name occurs twice */
    if (has(table, "axis-3") && four_axes[role] && has(table, four_axes[role]))
        return clv_csv_find(table, four_axes[role], column);
    for (size_t i = 0; i < CLV_LEN(usual[role]) && usual[role][i] && *column == SIZE_MAX; ++i)
        CLV_TRY(find_any_case(table, path, roles[role], usual[role][i], column));
    return CLV_OK;
}

static clv_status not_there(const clv_csv_table *table, const char *path, int role)
{
    char there[200];
    size_t length;
    const char *header = clv_csv_header(table, &length);
    return clv_fail(
        CLV_E_FORMAT,
        "%s: there is no column '%s'; the columns are %s (--columns %s=NAME chooses one of them)",
        path, roles[role], clv_printable(header, length, there, sizeof there), roles[role]);
}

clv_status cli_find_columns(clv_csv_table *table, const char *path, const char *given,
                            unsigned wanted, bool quiet, size_t column[COLUMN_ROLES])
{
    clv_text told = { 0 };
    clv_status status = CLV_OK;
    for (int role = 0; role < COLUMN_ROLES && !status; ++role) {
        size_t length;
        const char *name = given_name(given, role, &length);
        column[role] = SIZE_MAX;
        if (!(wanted >> role & 1) || (name && !length)) continue;
        if (name) {
            char copy[256];
            if (length >= sizeof copy) length = sizeof copy - 1;
            memcpy(copy, name, length), copy[length] = '\0';
            status = clv_csv_find(table, copy, &column[role]);
            continue;
        }
        status = guess(table, path, role, &column[role]);
        if (status) break;
        if (column[role] == SIZE_MAX && role != COLUMN_Z)
            status = not_there(table, path, role);
        else if (column[role] != SIZE_MAX &&
                 strcmp(clv_csv_name(table, column[role]), roles[role]) != 0)
            clv_text_add(&told, "%s%s from '%s'", told.length ? ", " : "", roles[role],
                         clv_csv_name(table, column[role]));
    }
    for (int role = 0; role < COLUMN_ROLES && !status; ++role)
        for (int other = 0; other < role && !status; ++other)
            if (column[role] != SIZE_MAX && column[role] == column[other] && roles[role] &&
                roles[other])
                status = clv_fail(CLV_E_FORMAT, "%s: the column '%s' would be both %s and %s", path,
                                  clv_csv_name(table, column[role]), roles[other], roles[role]);
    if (!status && told.length && !quiet)
        cli_say(stderr,
                "columns recognised by their names: %s (--columns ROLE=NAME,... chooses other "
                "columns)\n",
                clv_text_get(&told));
    clv_text_clear(&told);
    return status;
}

clv_status cli_check_whole(const clv_csv_table *table, const char *path, size_t row, size_t column,
                           const char *role, double value, double most)
{
    if (value == floor(value) && fabs(value) <= most) return CLV_OK;
    if (value == floor(value))
        return clv_fail(CLV_E_FORMAT,
                        "%s: row %zu: the %s in column '%s' is %g, but at most %g is accepted; "
                        "number the %ss anew (--columns %s=NAME chooses another column)",
                        path, row + 1, role, clv_csv_name(table, column), value, most, role, role);
    return clv_fail(CLV_E_FORMAT,
                    "%s: row %zu: the %s in column '%s' is %g, which is not a whole number "
                    "(--columns %s=NAME chooses another column)",
                    path, row + 1, role, clv_csv_name(table, column), value, role);
}

clv_status cli_check_place(const clv_csv_table *table, const char *path, size_t row, size_t column,
                           double value)
{
    static const double most = 1e150; /* as in clv_link and clv_tracks_create */
    if (fabs(value) <= most) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: row %zu: the position in column '%s' is %g, but at most %g is accepted; "
                    "correct or remove the row",
                    path, row + 1, clv_csv_name(table, column), value, most);
}

size_t cli_column_called(const clv_csv_table *table, const char *name)
{
    for (size_t c = 0; c < clv_csv_columns(table); ++c)
        if (strcmp(clv_csv_name(table, c), name) == 0) return c;
    return SIZE_MAX;
}

const char *cli_find_physical(const clv_csv_table *table, size_t column[COLUMN_ROLES])
{
    static const char *const units[] = { "um", "nm", "mm", "cm", "m", "pm" };
    for (size_t i = 0; i < CLV_LEN(units); ++i) {
        char name[3][16];
        for (int axis = 0; axis < 3; ++axis)
            snprintf(name[axis], sizeof name[axis], "%c_%s", "zyx"[axis], units[i]);
        const size_t y = cli_column_called(table, name[1]), x = cli_column_called(table, name[2]);
        if (y == SIZE_MAX || x == SIZE_MAX) continue;
        column[COLUMN_Y] = y, column[COLUMN_X] = x;
        column[COLUMN_Z] = cli_column_called(table, name[0]);
        return units[i];
    }
    return NULL;
}

/* Drops the three lines that follow the header of a TrackMate table: names, short names, units. */
clv_status cli_drop_header_lines(clv_csv_table *table, const char *path, size_t frame, bool quiet)
{
    if (!has(table, "POSITION_X") || !has(table, "FRAME")) return CLV_OK;
    clv_csv_cell *cells = clv_alloc(clv_csv_columns(table), sizeof *cells);
    if (!cells) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    size_t lines = 0;
    double value;
    for (; lines < 3 && lines < clv_csv_rows(table); ++lines) {
        clv_csv_cells(table, lines, cells);
        if (clv_csv_cell_double(table, &cells[frame], &value)) break;
    }
    clv_free(cells);
    clv_csv_drop_rows(table, lines);
    if (lines && !quiet)
        cli_say(stderr,
                "TrackMate table: the %zu lines of names and units below the header are skipped\n",
                lines);
    return CLV_OK;
}

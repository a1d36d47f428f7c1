/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave link`: adds a particle number to the rows of any table with frame, y and x. */
#include "host/cli/blobs/link.h"
#include "host/cli/clash.h"
#include "host/cli/units.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct link_args {
    const char *input, *output, *columns, *particle, *pixel_size, *stage_drift;
    double search, interval, branch, bin, stop, step;
    uint64_t memory, min_length, group;
    int decimal, predict, channel;
    bool interval_given, search_given, branch_given, bin_given, axis_given, step_given, group_given;
    bool fill_gaps, replace, quiet;
} link_args;

/* Looks for an existing column with the new column's name; it is replaced only if the user says so. */
static clv_status find_old(link_rows *r, const char *path, const link_args *a)
{
    r->name = a->particle, r->old = SIZE_MAX;
    for (size_t c = 0; c < clv_csv_columns(r->table); ++c)
        if (strcmp(clv_csv_name(r->table, c), a->particle) == 0) r->old = c;
    if (r->old == SIZE_MAX) return CLV_OK;
    for (int role = 0; role < COLUMN_ROLES; ++role)
        if (r->column[role] == r->old)
            return clv_fail(CLV_E_FORMAT,
                            "%s: --particle \"%s\" names a column that positions are read from; "
                            "give another name",
                            path, a->particle);
    if (a->replace) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: there already is a column '%s'; --replace overwrites it, and --particle "
                    "NAME gives the new one another name",
                    path, a->particle);
}

static clv_status read_column(link_rows *r, const char *path, int role, double *values)
{
    const size_t column = r->column[role];
    CLV_TRY(clv_csv_doubles(r->table, column, values));
    for (size_t i = 0; i < r->count; ++i) {
        if (role == COLUMN_FRAME) {
            CLV_TRY(cli_check_whole(r->table, path, i, column, "frame", values[i], 1e15));
            r->points[i].frame = (int64_t)values[i];
            continue;
        }
        CLV_TRY(cli_check_place(r->table, path, i, column, values[i]));
        if (role != COLUMN_Z) *(role == COLUMN_Y ? &r->points[i].y : &r->points[i].x) = values[i];
    }
    return CLV_OK;
}

static clv_status read_rows(const char *path, const link_args *a, link_rows *r)
{
    static const char decimals[] = { '\0', '.', ',' };
    const char *kind;
    CLV_TRY(clv_table_read(path, decimals[a->decimal], &r->table, &kind));
    CLV_TRY(cli_find_columns(r->table, path, a->columns, (1u << COLUMN_PARTICLE) - 1, a->quiet,
                             r->column));
    CLV_TRY(find_old(r, path, a));
    CLV_TRY(cli_drop_header_lines(r->table, path, r->column[COLUMN_FRAME], a->quiet));
    r->count = clv_csv_rows(r->table);
    r->points = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *r->points);
    r->particle = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *r->particle);
    double *values = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *values);
    clv_status status = r->points && r->particle && values
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (int role = COLUMN_FRAME; role <= COLUMN_X && !status; ++role)
        status = read_column(r, path, role, values);
    if (!status && r->column[COLUMN_Z] != SIZE_MAX) {
        r->z = values, values = NULL;
        status = read_column(r, path, COLUMN_Z, r->z);
    }
    clv_free(values);
    const bool commas = clv_csv_decimal(r->table) == ',';
    if (!status && !a->quiet && (commas || strcmp(kind, "text with commas") != 0))
        cli_say(stderr, "%s: %s%s\n", path, kind,
                commas ? ", decimal commas (written as decimal points)" : "");
    return status;
}

/* Computes how much larger one column is than another, from the row with the largest value in `small`, where the ratio
 * is most precise; 0: unknown. */
static clv_status ratio_of(const link_rows *r, size_t large, size_t small, double *ratio)
{
    double *a = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *a),
           *b = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *b);
    clv_status status = a && b ? CLV_OK : clv_fail(CLV_E_MEMORY, "link: out of memory");
    size_t best = 0;
    *ratio = 0;
    if (!status) status = clv_csv_doubles(r->table, large, a);
    if (!status) status = clv_csv_doubles(r->table, small, b);
    for (size_t i = 0; i < r->count && !status; ++i)
        if (fabs(b[i]) > fabs(b[best])) best = i;
    if (!status && r->count && b[best] != 0 && isfinite(a[best] / b[best]))
        *ratio = fmax(a[best] / b[best], 0);
    clv_free(a), clv_free(b);
    return status;
}

/* Subtracts the drift of the stage from the points, and records which other columns contain the position. */
static clv_status subtract_stage(link_rows *r, const char *path)
{
    cli_drift drift;
    for (int role = 0; role < COLUMN_ROLES; ++role)
        r->physical[role] = SIZE_MAX;
    const char *unit = cli_find_physical(r->table, r->physical);
    if (unit) {
        CLV_TRY(ratio_of(r, r->physical[COLUMN_Y], r->column[COLUMN_Y], &r->side[0]));
        CLV_TRY(ratio_of(r, r->physical[COLUMN_X], r->column[COLUMN_X], &r->side[1]));
    }
    clv_status status =
        cli_drift_read(path, r->physical[COLUMN_Y] == r->column[COLUMN_Y] ? unit : NULL, &drift);
    for (size_t i = 0; i < r->count && !status; ++i) {
        double yx[2];
        status = cli_drift_of(&drift, r->points[i].frame, yx);
        if (!status) r->points[i].y -= yx[0], r->points[i].x -= yx[1];
    }
    cli_drift_clear(&drift);
    r->moved = true;
    return status;
}

/* Finds the units for TrackMate's XML: from the options, else from columns such as y_um and t_s beside the pixel
 * columns. */
static clv_status find_units(link_rows *r, const link_args *a)
{
    blobs_units *u = &r->units;
    size_t physical[COLUMN_ROLES];
    if (a->interval_given) {
        u->interval = a->interval;
        clv_copy_string(u->time, sizeof u->time, "sec");
    } else if (cli_column_called(r->table, "t_s") != SIZE_MAX) {
        CLV_TRY(
            ratio_of(r, cli_column_called(r->table, "t_s"), r->column[COLUMN_FRAME], &u->interval));
        clv_copy_string(u->time, sizeof u->time, "sec");
    }
    const char *unit = a->pixel_size ? NULL : cli_find_physical(r->table, physical);
    if (!unit) return CLV_OK;
    CLV_TRY(ratio_of(r, physical[COLUMN_X], r->column[COLUMN_X], &u->pixel_size));
    CLV_TRY(ratio_of(r, physical[COLUMN_Y], r->column[COLUMN_Y], &u->row));
    if (r->z && physical[COLUMN_Z] != SIZE_MAX)
        CLV_TRY(ratio_of(r, physical[COLUMN_Z], r->column[COLUMN_Z], &u->plane));
    clv_copy_string(u->space, sizeof u->space, unit);
    if (!a->quiet && u->pixel_size > 0)
        cli_say(stderr,
                "pixel size: %.6g %s, from the columns x and x_%s (--pixel-size overrides it)\n",
                u->pixel_size, unit, unit);
    return CLV_OK;
}

static int check_units(const link_args *a, blobs_units *u)
{
    if (!a->pixel_size && !a->interval_given) return -1;
    if (cli_formats_of(a->output) != CLI_XML)
        return cli_error(
            &cli_link, CLI_USAGE,
            "--pixel-size and --interval are for TrackMate's XML, but -o is %s; other tables keep "
            "their columns as they are (cleave tracks works in physical units)",
            a->output);
    if (a->pixel_size && !cli_parse_size(a->pixel_size, &u->pixel_size, u->space, sizeof u->space))
        return cli_error(&cli_link, CLI_USAGE,
                         "--pixel-size is \"%s\", but it must be a size such as 0.1um",
                         a->pixel_size);
    if (a->pixel_size && !u->space[0]) clv_copy_string(u->space, sizeof u->space, "pixel");
    if (a->interval_given && !(a->interval > 0))
        return cli_error(&cli_link, CLI_USAGE, "--interval is %g, but it must be more than 0",
                         a->interval);
    u->row = u->plane = u->pixel_size;
    return -1;
}

static bool add_line(link_rows *r, link_line added)
{
    if (!clv_reserve(&r->lines, &r->line_room, r->line_count + 1, sizeof *r->lines)) return false;
    r->lines[r->line_count++] = added;
    return true;
}

static int by_track(const void *left, const void *right)
{
    const link_line *a = left, *b = right;
    if (a->particle != b->particle) return a->particle < b->particle ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

static int by_frame(const void *left, const void *right)
{
    const link_line *a = left, *b = right;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    if (a->z != b->z) return a->z < b->z ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return (a->particle > b->particle) - (a->particle < b->particle);
}

enum { LINE_TEXT = 40 }; /* approximate bytes of a filled row in the file */

/* Counts the rows to be filled into gaps before any of them is made. */
static clv_status check_gaps(link_rows *r, const char *path)
{
    double made = 0;
    for (size_t i = 1; i < r->line_count; ++i)
        if (r->lines[i - 1].particle == r->lines[i].particle)
            made += (double)r->lines[i].frame - (double)r->lines[i - 1].frame - 1;
    return blobs_check_gaps(path, made, sizeof *r->lines + LINE_TEXT);
}

static clv_status make_lines(link_rows *r, const char *path, bool fill)
{
    for (size_t i = 0; i < r->count; ++i) {
        const clv_point *p = &r->points[i];
        if (r->particle[i] >= 0 && !add_line(r, (link_line){ p->frame, r->particle[i],
                                                             r->z ? r->z[i] : 0, p->y, p->x, i }))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    if (fill && r->line_count) {
        qsort(r->lines, r->line_count, sizeof *r->lines, by_track);
        CLV_TRY(check_gaps(r, path));
        for (size_t i = 1, seen = r->line_count; i < seen; ++i) {
            const link_line a = r->lines[i - 1], b = r->lines[i];
            for (int64_t f = a.frame + 1; a.particle == b.particle && f < b.frame; ++f) {
                const double part = (double)(f - a.frame) / (double)(b.frame - a.frame);
                if (!add_line(r, (link_line){ f, a.particle, a.z + (b.z - a.z) * part,
                                              a.y + (b.y - a.y) * part, a.x + (b.x - a.x) * part,
                                              SIZE_MAX }))
                    return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
            }
        }
    }
    if (r->line_count) qsort(r->lines, r->line_count, sizeof *r->lines, by_frame);
    return CLV_OK;
}

static clv_status find_branches(link_rows *r, const char *path, double range)
{
    r->branches = clv_alloc(2 * r->tracks + 1, sizeof *r->branches);
    r->parent = clv_alloc(r->tracks + 1, sizeof *r->parent);
    r->child = clv_alloc(r->tracks + 1, sizeof *r->child);
    if (!r->branches || !r->parent || !r->child)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu tracks", path, r->tracks);
    for (size_t t = 0; t < r->tracks; ++t)
        r->parent[t] = r->child[t] = -1;
    CLV_TRY(clv_link_branches(r->points, r->z, r->particle, r->count, range, r->branches,
                              &r->branch_count));
    for (size_t b = 0; b < r->branch_count; ++b) {
        const int64_t from = r->particle[r->branches[b].from], to = r->particle[r->branches[b].to];
        if (r->branches[b].kind == CLV_BRANCH_SPLIT)
            r->parent[to] = from;
        else
            r->child[from] = to;
    }
    return CLV_OK;
}

static void tell(const link_rows *r, FILE *news)
{
    size_t splits = 0;
    for (size_t b = 0; b < r->branch_count; ++b)
        splits += r->branches[b].kind == CLV_BRANCH_SPLIT;
    cli_say(news, "%zu spots, %zu tracks, %zu rows written\n", r->count, r->tracks, r->line_count);
    if (r->branches) cli_say(news, "%zu splits and %zu merges\n", splits, r->branch_count - splits);
}

/* Refuses a table that already has the new columns, because the output would have them twice. */
static int check_names(const link_rows *r, const char *path)
{
    static const char *const names[] = { "parent", "child" };
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (cli_column_called(r->table, names[i]) != SIZE_MAX)
            return cli_error(&cli_link, CLI_USAGE,
                             "%s: there already is a column '%s', which --branches would write; "
                             "rename it or leave out --branches",
                             path, names[i]);
    return 0;
}

/* Returns -1 to continue, else the exit code. */
static int check_options(const link_args *a)
{
    if (!a->output)
        return cli_error(&cli_link, CLI_USAGE,
                         "-o FILE is missing: the file for the table, such as -o tracks.csv");
    if (!a->search_given)
        return cli_error(
            &cli_link, CLI_USAGE,
            "--search R is missing: how far, in pixels, a particle may move from frame to "
            "frame");
    if (!(a->search > 0))
        return cli_error(&cli_link, CLI_USAGE, "--search is %g, but it must be more than 0",
                         a->search);
    if (a->stop != 0 && !(a->stop > 0 && a->stop <= a->search))
        return cli_error(
            &cli_link, CLI_USAGE,
            "--adaptive-stop is %g, but it must be more than 0 and at most --search, which is %g",
            a->stop, a->search);
    if (a->stop == 0 && (a->step_given || a->group_given))
        return cli_error(&cli_link, CLI_USAGE, "%s needs --adaptive-stop R, the shortest range",
                         a->step_given ? "--adaptive-step" : "--adaptive-group");
    if (a->step_given && !(a->step > 0 && a->step < 1))
        return cli_error(&cli_link, CLI_USAGE,
                         "--adaptive-step is %g, but it must be more than 0 and less than 1",
                         a->step);
    if (a->group_given && !a->group)
        return cli_error(&cli_link, CLI_USAGE, "--adaptive-group is 0, but it must be 1 or more");
    if ((a->bin_given || a->axis_given) && a->predict != CLV_PREDICT_CHANNEL)
        return cli_error(&cli_link, CLI_USAGE, "%s needs --predict channel",
                         a->bin_given ? "--channel-bin" : "--channel-axis");
    if (a->predict == CLV_PREDICT_CHANNEL && !(a->bin > 0))
        return cli_error(&cli_link, CLI_USAGE,
                         "--predict channel needs --channel-bin B, the width of the strips that "
                         "share one velocity, and B must be more than 0");
    if (a->branch_given && !(a->branch > 0))
        return cli_error(&cli_link, CLI_USAGE, "--branches is %g, but it must be more than 0",
                         a->branch);
    if (!*a->particle)
        return cli_error(&cli_link, CLI_USAGE, "--particle is empty, but it must be a column name");
    return cli_check_columns(&cli_link, a->columns, false);
}

static int run(int argc, char **argv)
{
    link_args a = { .min_length = 1, .particle = "particle" };
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE",
          "the table with particles: .csv .tsv .json .npy .parquet .xml; - is standard output",
          NULL },
        { "search", CLI_DOUBLE, &a.search, "R",
          "farthest that a particle may move from one frame to the next", &a.search_given },
        { "memory", CLI_UINT, &a.memory, "M",
          "number of frames for which a particle may disappear [0]", NULL },
        { "predict", CLI_CHOICE, &a.predict, "none,velocity,drift,channel",
          "search at the position predicted by the velocity of the nearest particle, of all, or of "
          "those at the same place across a channel [none]",
          NULL },
        { "channel-bin", CLI_DOUBLE, &a.bin, "B",
          "width of the strips of a channel that share one velocity", &a.bin_given },
        { "channel-axis", CLI_CHOICE, &a.channel, "x,y", "axis along which the channel runs [x]",
          &a.axis_given },
        { "adaptive-stop", CLI_DOUBLE, &a.stop, "R",
          "shorten the search range down to R where particles are crowded [0: never]", NULL },
        { "adaptive-step", CLI_DOUBLE, &a.step, "F",
          "factor by which each step shortens the search range [0.95]", &a.step_given },
        { "adaptive-group", CLI_UINT, &a.group, "N",
          "largest group of particles that does not count as crowded [15]", &a.group_given },
        { "branches", CLI_DOUBLE, &a.branch, "R",
          "let tracks split and merge within R; adds the columns parent and child, or edges in "
          ".xml",
          &a.branch_given },
        { "stage-drift", CLI_TEXT, &a.stage_drift, "FILE",
          "subtract the drift, in pixels, that `cleave blobs --stage-drift` wrote", NULL },
        { "min-length", CLI_UINT, &a.min_length, "L",
          "leave out tracks with fewer than L spots [1]", NULL },
        { "fill-gaps", CLI_FLAG, &a.fill_gaps, NULL,
          "add interpolated rows where a particle was not seen", NULL },
        { "pixel-size", CLI_TEXT, &a.pixel_size, "S[UNIT]",
          "side of a pixel, such as 0.1um, for .xml [from columns such as x_um]", NULL },
        { "interval", CLI_DOUBLE, &a.interval, "S",
          "seconds between frames, for .xml [from the column t_s]", &a.interval_given },
        { "columns", CLI_TEXT, &a.columns, "ROLE=NAME,...",
          "names of the columns frame, y, x, z [by their names]", NULL },
        { "decimal", CLI_CHOICE, &a.decimal, "auto,point,comma",
          "decimal sign of the numbers in text files [detected]", NULL },
        { "particle", CLI_TEXT, &a.particle, "NAME", "name of the new column [particle]", NULL },
        { "replace", CLI_FLAG, &a.replace, NULL, "overwrite a column that already has this name",
          NULL },
        { "q,quiet", CLI_FLAG, &a.quiet, NULL, "print no messages except errors", NULL },
        { NULL },
    };
    const cli_option *const tables[] = { own, NULL };
    int operands, code = cli_parse(&cli_link, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_link, "SPOTS.csv", operands, argv + 1)) >= 0) return code;
    if ((code = check_options(&a)) >= 0) return code;
    const cli_file inputs[] = { { "SPOTS.csv", argv[1], NULL, CLI_STREAM },
                                { "--stage-drift", a.stage_drift, NULL, 0 } },
                   output = { "-o", a.output, NULL, BLOBS_TABLES };
    if ((code = cli_check_files(&cli_link, NULL, inputs, CLV_LEN(inputs), &output, 1)) >= 0)
        return code;
    link_rows r = { 0 };
    if ((code = check_units(&a, &r.units)) >= 0) return code;
    code = cli_input_status(&cli_link,
                            read_rows(cli_is_stream(argv[1]) ? "/dev/stdin" : argv[1], &a, &r));
    if (!code && a.branch_given) code = check_names(&r, argv[1]);
    if (!code && a.stage_drift)
        code = cli_input_status(&cli_link, subtract_stage(&r, a.stage_drift));
    if (!code) {
        const clv_link_options options = { .size = sizeof options,
                                           .search_range = a.search,
                                           .memory = (size_t)a.memory,
                                           .min_length = (size_t)a.min_length,
                                           .z = r.z,
                                           .predict = (clv_link_predict)a.predict,
                                           .adaptive_stop = a.stop,
                                           .adaptive_step = a.step,
                                           .adaptive_group = (size_t)a.group,
                                           .channel_bin = a.bin,
                                           .channel_axis = (clv_link_channel)a.channel };
        clv_status status = clv_link(r.points, r.count, &options, r.particle, &r.tracks);
        if (!status && a.branch_given) status = find_branches(&r, argv[1], a.branch);
        if (!status && cli_formats_of(a.output) == CLI_XML) status = find_units(&r, &a);
        if (!status) status = make_lines(&r, argv[1], a.fill_gaps);
        if (!status) status = link_write(&r, a.output);
        code = cli_status(&cli_link, status);
    }
    if (!code && !a.quiet) tell(&r, cli_news(NULL, &output, 1));
    clv_csv_free(r.table);
    clv_free(r.points), clv_free(r.z), clv_free(r.particle), clv_free(r.lines);
    clv_free(r.branches), clv_free(r.parent), clv_free(r.child);
    return code;
}

const cli_command cli_link = {
    .name = "link",
    .summary = "join spots of successive frames into tracks",
    .operands = "SPOTS.csv -o TRACKS.csv --search R [OPTION...]",
    .description = "Takes any table with the frame, y and x of spots, and z if there is one (-: "
                   "from standard\ninput), finds which rows are the same particle, and writes the "
                   "table with a column\n\"particle\". Tables are text with commas, semicolons or "
                   "tabs, NumPy records, JSON, or\nTrackMate's CSV and XML. Positions share one "
                   "unit: z has the unit of y and x. The assignment\nbetween frames is the best "
                   "possible one, in every group of up to about 2000 spots.",
    .run = run,
};

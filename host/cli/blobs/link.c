/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave link`: adds a particle number to the rows of any table with frame, y and x. */
#include "host/cli/blobs/blobs.h"
#include "host/cli/clash.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct link_args {
    const char *input, *output;
    double search;
    uint64_t memory, min_length;
    bool search_given, fill_gaps, quiet;
} link_args;

/* A row of the output: of the input, or between two of its rows. */
typedef struct line {
    int64_t frame, particle;
    double z, y, x;
    size_t row; /* SIZE_MAX: filled in */
} line;

typedef struct rows {
    clv_csv_table *table;
    clv_point *points;
    double *z; /* NULL: the table has none */
    int64_t *particle;
    size_t count, tracks;
    size_t column[4]; /* frame, y, x, and z */
    line *lines;
    size_t line_count, line_room;
} rows;

static clv_status read_rows(const char *path, rows *r)
{
    static const char *const names[] = { "frame", "y", "x" };
    CLV_TRY(clv_csv_read(path, &r->table));
    r->count = clv_csv_rows(r->table);
    r->points = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *r->points);
    r->particle = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *r->particle);
    double *values = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *values);
    clv_status status =
        r->points && r->particle && values ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: no memory", path);
    for (int c = 0; c < 3 && !status; ++c) {
        status = clv_csv_find(r->table, names[c], &r->column[c]);
        if (!status) status = clv_csv_doubles(r->table, r->column[c], values);
        for (size_t i = 0; i < r->count && !status; ++i) {
            if (c == 0 && (values[i] != floor(values[i]) || fabs(values[i]) > 1e15))
                status = clv_fail(CLV_E_FORMAT, "%s: row %zu: frame %g is no whole number", path,
                                  i + 1, values[i]);
            else if (c == 0)
                r->points[i].frame = (int64_t)values[i];
            else
                *(c == 1 ? &r->points[i].y : &r->points[i].x) = values[i];
        }
    }
    for (size_t c = 0; c < clv_csv_columns(r->table) && !status && !r->z; ++c) {
        if (strcmp(clv_csv_name(r->table, c), "z") != 0) continue;
        r->column[3] = c, r->z = values, values = NULL;
        status = clv_csv_doubles(r->table, c, r->z);
    }
    clv_free(values);
    return status;
}

static bool add_line(rows *r, line added)
{
    if (!clv_reserve(&r->lines, &r->line_room, r->line_count + 1, sizeof *r->lines)) return false;
    r->lines[r->line_count++] = added;
    return true;
}

static int by_track(const void *left, const void *right)
{
    const line *a = left, *b = right;
    if (a->particle != b->particle) return a->particle < b->particle ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

static int by_frame(const void *left, const void *right)
{
    const line *a = left, *b = right;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    if (a->z != b->z) return a->z < b->z ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return (a->particle > b->particle) - (a->particle < b->particle);
}

enum { LINE_TEXT = 40 }; /* bytes of a filled row in the file, about */

/* Rows between those that were seen are counted before any is made. */
static clv_status check_gaps(rows *r, const char *path)
{
    double made = 0;
    for (size_t i = 1; i < r->line_count; ++i)
        if (r->lines[i - 1].particle == r->lines[i].particle)
            made += (double)r->lines[i].frame - (double)r->lines[i - 1].frame - 1;
    return blobs_check_gaps(path, made, sizeof *r->lines + LINE_TEXT);
}

static clv_status make_lines(rows *r, const char *path, bool fill)
{
    for (size_t i = 0; i < r->count; ++i) {
        const clv_point *p = &r->points[i];
        if (r->particle[i] >= 0 &&
            !add_line(r, (line){ p->frame, r->particle[i], r->z ? r->z[i] : 0, p->y, p->x, i }))
            return clv_fail(CLV_E_MEMORY, "%s: no memory", path);
    }
    if (fill && r->line_count) {
        qsort(r->lines, r->line_count, sizeof *r->lines, by_track);
        CLV_TRY(check_gaps(r, path));
        for (size_t i = 1, seen = r->line_count; i < seen; ++i) {
            const line a = r->lines[i - 1], b = r->lines[i];
            for (int64_t f = a.frame + 1; a.particle == b.particle && f < b.frame; ++f) {
                const double part = (double)(f - a.frame) / (double)(b.frame - a.frame);
                if (!add_line(r, (line){ f, a.particle, a.z + (b.z - a.z) * part,
                                         a.y + (b.y - a.y) * part, a.x + (b.x - a.x) * part,
                                         SIZE_MAX }))
                    return clv_fail(CLV_E_MEMORY, "%s: no memory", path);
            }
        }
    }
    if (r->line_count) qsort(r->lines, r->line_count, sizeof *r->lines, by_frame);
    return CLV_OK;
}

/* The text of a row without its field `skip`; quoted fields may hold commas. */
static void add_fields(clv_text *text, const char *row, size_t length, size_t skip)
{
    size_t field = 0, kept = 0;
    for (size_t at = 0; at <= length; ++field) {
        size_t end = at;
        for (bool quoted = false; end < length && (quoted || row[end] != ','); ++end)
            if (row[end] == '"') quoted = !quoted;
        if (field != skip) {
            if (kept++) clv_text_bytes(text, ",", 1);
            clv_text_bytes(text, row + at, end - at);
        }
        at = end + 1;
    }
}

/* A column of that name from a run before: it is replaced. SIZE_MAX: none. */
static size_t old_particles(const clv_csv_table *table)
{
    for (size_t c = 0; c < clv_csv_columns(table); ++c)
        if (strcmp(clv_csv_name(table, c), "particle") == 0) return c;
    return SIZE_MAX;
}

/* Rows as they were, "particle" behind them; filled rows hold what is known, and flag 16 where the
 * table has flags. */
static clv_status write_rows(const rows *r, const char *path)
{
    clv_text text = { 0 };
    size_t length;
    const char *header = clv_csv_header(r->table, &length);
    const size_t old = old_particles(r->table);
    add_fields(&text, header, length, old);
    clv_text_add(&text, ",particle\n");
    for (size_t i = 0; i < r->line_count; ++i) {
        const line *l = &r->lines[i];
        if (l->row != SIZE_MAX) {
            const char *row = clv_csv_row(r->table, l->row, &length);
            add_fields(&text, row, length, old);
        } else {
            for (size_t c = 0, made = 0; c < clv_csv_columns(r->table); ++c) {
                if (c == old) continue;
                if (made++) clv_text_add(&text, ",");
                if (c == r->column[0])
                    clv_text_add(&text, "%lld", (long long)l->frame);
                else if (c == r->column[1] || c == r->column[2])
                    clv_text_add(&text, "%.9g", c == r->column[1] ? l->y : l->x);
                else if (r->z && c == r->column[3])
                    clv_text_add(&text, "%.9g", l->z);
                else if (strcmp(clv_csv_name(r->table, c), "flags") == 0)
                    clv_text_add(&text, "%d", CLV_SPOT_GAP);
            }
        }
        clv_text_add(&text, ",%lld\n", (long long)l->particle);
    }
    clv_status status = text.failed ? clv_fail(CLV_E_MEMORY, "%s: no memory", path)
                                    : clv_file_write(path, text.data, text.length);
    clv_text_clear(&text);
    return status;
}

static int run(int argc, char **argv)
{
    link_args a = { .min_length = 1 };
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE", "the table with particles; - is standard output",
          NULL },
        { "search", CLI_DOUBLE, &a.search, "R", "longest way from frame to frame",
          &a.search_given },
        { "memory", CLI_UINT, &a.memory, "M", "frames that a particle may stay unseen [0]", NULL },
        { "min-length", CLI_UINT, &a.min_length, "L", "shortest track [1]", NULL },
        { "fill-gaps", CLI_FLAG, &a.fill_gaps, NULL, "rows in between where one was unseen", NULL },
        { "q,quiet", CLI_FLAG, &a.quiet, NULL, "no messages but errors", NULL },
        { NULL },
    };
    const cli_option *const tables[] = { own, NULL };
    int operands, code = cli_parse(&cli_link, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_link, "SPOTS.csv", operands, argv + 1)) >= 0) return code;
    if (!a.output)
        return cli_error(&cli_link, CLI_USAGE,
                         "-o FILE is missing: where the table goes, such as -o tracks.csv");
    if (!a.search_given)
        return cli_error(
            &cli_link, CLI_USAGE,
            "--search R is missing: how far, in pixels, a particle may move from frame to "
            "frame");
    if (!(a.search > 0))
        return cli_error(&cli_link, CLI_USAGE, "--search is %g, but it must be more than 0",
                         a.search);
    const cli_file input = { "SPOTS.csv", argv[1], NULL, CLI_STREAM },
                   output = { "-o", a.output, NULL, CLI_CSV };
    if ((code = cli_check_files(&cli_link, NULL, &input, 1, &output, 1)) >= 0) return code;
    rows r = { 0 };
    code =
        cli_input_status(&cli_link, read_rows(cli_is_stream(argv[1]) ? "/dev/stdin" : argv[1], &r));
    if (!code) {
        const clv_link_options options = { .size = sizeof options,
                                           .search_range = a.search,
                                           .memory = (size_t)a.memory,
                                           .min_length = (size_t)a.min_length,
                                           .z = r.z };
        clv_status status = clv_link(r.points, r.count, &options, r.particle, &r.tracks);
        if (!status) status = make_lines(&r, argv[1], a.fill_gaps);
        if (!status) status = write_rows(&r, a.output);
        code = cli_status(&cli_link, status);
    }
    if (!code && !a.quiet)
        cli_say(cli_news(NULL, &output, 1), "%zu spots, %zu tracks, %zu rows written\n", r.count,
                r.tracks, r.line_count);
    clv_csv_free(r.table);
    clv_free(r.points), clv_free(r.z), clv_free(r.particle), clv_free(r.lines);
    return code;
}

const cli_command cli_link = {
    .name = "link",
    .summary = "join spots of successive frames into tracks",
    .operands = "SPOTS.csv -o TRACKS.csv --search R [OPTION...]",
    .description =
        "Takes any CSV table with the columns frame, y and x, and z if there is one (-: from "
        "standard\n"
        "input), finds which rows are the same particle, and writes the table with a column\n"
        "\"particle\". Places are in one unit: z in the unit of y and x. The assignment\n"
        "between frames is the best possible one, in every group of up to some 2000 spots.",
    .run = run,
};

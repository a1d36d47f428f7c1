/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the linked table in the format of its name's ending: every column of the input, and the particle numbers. */
#include "host/cli/blobs/link.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Column numbers that stand for the new columns: the particle, the one it splits from, the one it merges into. */
#define PARTICLE SIZE_MAX
#define PARENT (SIZE_MAX - 1)
#define CHILD (SIZE_MAX - 2)

/* The type of a column according to all its fields; an empty field is a missing number. */
typedef enum kind { WHOLE, NUMBER, TEXT } kind;

typedef struct column {
    const char *name;
    size_t from; /* column of the table, or one of the new ones */
    kind kind;
    bool missing;  /* some fields are empty */
    size_t widest; /* longest text, in bytes */
    char code[24]; /* NumPy's type code */
} column;

typedef struct output {
    const link_rows *r;
    const char *path;
    column *columns;
    const char **names;
    size_t count;
    clv_csv_cell *cells; /* of one row of the table */
    clv_text text;       /* of one field */
    bool failed;         /* there was no memory for the text of an earlier field */
} output;

static clv_status no_memory(const output *o)
{
    return clv_fail(CLV_E_MEMORY, "%s: out of memory", o->path);
}

/* Whether the text of some field is incomplete. */
static bool has_failed(const output *o)
{
    return o->failed || o->text.failed;
}

/* Writes a filled row's value of a column; empty: unknown. */
static void filled_field(const link_rows *r, const link_line *l, size_t c, clv_text *out)
{
    if (c == r->column[COLUMN_FRAME])
        clv_text_add(out, "%lld", (long long)l->frame);
    else if (c == r->column[COLUMN_Y] || c == r->column[COLUMN_X] || c == r->column[COLUMN_Z])
        clv_text_add(out, "%.9g",
                     c == r->column[COLUMN_Y]   ? l->y
                     : c == r->column[COLUMN_X] ? l->x
                                                : l->z);
    else if (strcmp(clv_csv_name(r->table, c), "flags") == 0)
        clv_text_add(out, "%d", CLV_SPOT_GAP);
}

/* Returns whether a column of the table holds the position, from which the drift of the stage was subtracted, and finds
 * the value of that column. */
static bool moved_field(const link_rows *r, const link_line *l, size_t c, double *value)
{
    if (!r->moved || l->row == SIZE_MAX) return false;
    if (c == r->column[COLUMN_Y])
        *value = l->y;
    else if (c == r->column[COLUMN_X])
        *value = l->x;
    else if (c == r->physical[COLUMN_Y])
        *value = l->y * r->side[0];
    else if (c == r->physical[COLUMN_X])
        *value = l->x * r->side[1];
    else
        return false;
    return true;
}

/* Returns a field's text; numbers have a decimal point. */
static const char *field_of(output *o, const link_line *l, const column *c)
{
    double value;
    o->failed |= o->text.failed;
    clv_text_restart(&o->text);
    if (c->from >= CHILD) {
        const int64_t number = c->from == PARTICLE ? l->particle
                               : c->from == PARENT ? o->r->parent[l->particle]
                                                   : o->r->child[l->particle];
        clv_text_add(&o->text, "%lld", (long long)number);
    } else if (l->row == SIZE_MAX) {
        filled_field(o->r, l, c->from, &o->text);
    } else if (moved_field(o->r, l, c->from, &value)) {
        clv_text_add(&o->text, "%.9g", value);
    } else {
        const clv_csv_cell *cell = &o->cells[c->from];
        clv_csv_cell_text(cell, &o->text);
        if (clv_csv_decimal(o->r->table) == ',' && o->text.length &&
            clv_csv_cell_double(o->r->table, cell, &value))
            for (char *at = o->text.data; *at; ++at)
                if (*at == ',') *at = '.';
    }
    return clv_text_get(&o->text);
}

static void begin_row(output *o, const link_line *l)
{
    if (l->row != SIZE_MAX) clv_csv_cells(o->r->table, l->row, o->cells);
}

/* Parses a number, also "nan" and "inf" as NumPy and pandas write them. */
static bool number_of(const char *text, double *value)
{
    if (clv_parse_double(text, value)) return true;
    const char *word = *text == '-' || *text == '+' ? text + 1 : text;
    if (clv_find_word("nan,NaN,NAN", word) >= 0)
        *value = NAN;
    else if (clv_find_word("inf,Inf,INF", word) >= 0)
        *value = *text == '-' ? -INFINITY : INFINITY;
    else
        return false;
    return true;
}

static void find_kinds(output *o)
{
    for (size_t i = 0; i < o->r->line_count; ++i) {
        begin_row(o, &o->r->lines[i]);
        for (size_t c = 0; c < o->count; ++c) {
            const char *text = field_of(o, &o->r->lines[i], &o->columns[c]);
            double value;
            int64_t whole;
            if (!*text)
                o->columns[c].missing = true;
            else if (o->columns[c].kind == WHOLE && clv_parse_i64(text, &whole))
                continue;
            else if (o->columns[c].kind != TEXT && number_of(text, &value))
                o->columns[c].kind = NUMBER;
            else
                o->columns[c].kind = TEXT;
            o->columns[c].widest = CLV_MAX(o->columns[c].widest, strlen(text));
        }
    }
    for (size_t i = 0; i < o->r->line_count; ++i) { /* numbers that came before a text */
        begin_row(o, &o->r->lines[i]);
        for (size_t c = 0; c < o->count; ++c)
            if (o->columns[c].kind == TEXT)
                o->columns[c].widest = CLV_MAX(
                    o->columns[c].widest, strlen(field_of(o, &o->r->lines[i], &o->columns[c])));
    }
}

/* ---- text and JSON -------------------------------------------------------------------------------------- */

/* Returns whether JSON allows the number in this form; it has no "+1", "1.", ".5" and "007". */
static bool is_json_number(const char *text)
{
    text += *text == '-';
    if (*text == '0' && text[1] >= '0' && text[1] <= '9') return false;
    size_t digits = strspn(text, "0123456789");
    if (!digits) return false;
    text += digits;
    if (*text == '.') {
        digits = strspn(text + 1, "0123456789");
        if (!digits) return false;
        text += 1 + digits;
    }
    if (*text == 'e' || *text == 'E') {
        text += 1 + (text[1] == '+' || text[1] == '-');
        digits = strspn(text, "0123456789");
        if (!digits) return false;
        text += digits;
    }
    return !*text;
}

static void add_json(clv_csv *csv, const column *c, const char *text)
{
    char digits[40];
    double value;
    if (c->kind == TEXT) {
        clv_csv_string(csv, text);
    } else if (is_json_number(text)) {
        clv_csv_raw(csv, text);
    } else if (number_of(text, &value) && isfinite(value)) {
        snprintf(digits, sizeof digits, "%.17g", value);
        clv_csv_raw(csv, digits);
    } else {
        clv_csv_missing(csv);
    }
}

static clv_status write_text(output *o)
{
    const clv_csv_kind form = blobs_kind_of(o->path);
    clv_csv csv;
    if (form == CLV_CSV_JSON) find_kinds(o);
    clv_csv_begin_as(&csv, form, o->names, o->count);
    for (size_t i = 0; i < o->r->line_count; ++i) {
        begin_row(o, &o->r->lines[i]);
        for (size_t c = 0; c < o->count; ++c) {
            const char *text = field_of(o, &o->r->lines[i], &o->columns[c]);
            if (!*text)
                clv_csv_missing(&csv);
            else if (form == CLV_CSV_JSON)
                add_json(&csv, &o->columns[c], text);
            else
                clv_csv_string(&csv, text);
        }
        clv_csv_end_row(&csv);
    }
    clv_csv_end(&csv);
    const clv_status status = has_failed(o) ? no_memory(o) : clv_csv_write(&csv, o->path);
    clv_csv_clear(&csv);
    return status;
}

/* ---- NumPy records and Parquet ----------------------------------------------------------------- */

/* Finds NumPy's type code. A column keeps the type it had in the input, unless a field is missing. */
static void find_code(const output *o, column *c)
{
    const char *had = c->from >= CHILD ? "" : clv_csv_code(o->r->table, c->from);
    const bool is_float = strcmp(had, "f4") == 0;
    if (c->kind == TEXT)
        snprintf(c->code, sizeof c->code, "S%zu", CLV_MAX(c->widest, (size_t)1));
    else if (is_float)
        clv_copy_string(c->code, sizeof c->code, had);
    else if (c->kind == WHOLE && !c->missing && strcmp(had, "f8") != 0)
        clv_copy_string(c->code, sizeof c->code, strcmp(had, "u4") == 0 ? had : "i8");
    else
        clv_copy_string(c->code, sizeof c->code, "f8");
}

static void add_record(clv_text *out, const column *c, const char *text)
{
    double value = NAN;
    int64_t whole = 0;
    if (c->kind == TEXT) {
        clv_text_bytes(out, text, strlen(text));
        for (size_t i = strlen(text); i < CLV_MAX(c->widest, (size_t)1); ++i)
            clv_text_bytes(out, "", 1);
    } else if (strcmp(c->code, "i8") == 0) {
        clv_parse_i64(text, &whole);
        clv_text_bytes(out, &whole, sizeof whole);
    } else if (strcmp(c->code, "u4") == 0) {
        clv_parse_i64(text, &whole);
        const uint32_t word = (uint32_t)whole;
        clv_text_bytes(out, &word, sizeof word);
    } else if (strcmp(c->code, "f4") == 0) {
        if (!number_of(text, &value)) value = NAN;
        const float single = (float)value;
        clv_text_bytes(out, &single, sizeof single);
    } else {
        if (!number_of(text, &value)) value = NAN;
        clv_text_bytes(out, &value, sizeof value);
    }
}

static clv_status write_records(output *o)
{
    const char **codes = clv_alloc(o->count, sizeof *codes);
    const bool parquet = cli_formats_of(o->path) == CLI_PARQUET;
    clv_text out = { 0 };
    if (!codes) return no_memory(o);
    find_kinds(o);
    for (size_t c = 0; c < o->count; ++c)
        find_code(o, &o->columns[c]), codes[c] = o->columns[c].code;
    if (!parquet) clv_npy_records_begin(&out, o->names, codes, o->count, o->r->line_count);
    for (size_t i = 0; i < o->r->line_count; ++i) {
        begin_row(o, &o->r->lines[i]);
        for (size_t c = 0; c < o->count; ++c)
            add_record(&out, &o->columns[c], field_of(o, &o->r->lines[i], &o->columns[c]));
    }
    const size_t rows = o->r->line_count;
    const clv_part part = { out.data, out.length };
    const clv_status status =
        out.failed || has_failed(o) ? no_memory(o)
        : parquet ? blobs_parquet_write(o->path, o->names, codes, o->count, out.data, rows,
                                        rows ? out.length / rows : 0)
                  : clv_parts_write(o->path, &part, 1);
    clv_text_clear(&out);
    clv_free(codes);
    return status;
}

/* ---- TrackMate's XML ------------------------------------------------------------------------------------ */

/* Returns the value of the first of the columns `a` and `b` that exists and holds a number; else `otherwise`. */
static double value_of(output *o, const link_line *l, const char *a, const char *b,
                       double otherwise)
{
    double value;
    for (size_t c = 0; c < o->count; ++c)
        if (o->columns[c].from < CHILD &&
            (strcmp(o->columns[c].name, a) == 0 || strcmp(o->columns[c].name, b) == 0) &&
            clv_parse_double(field_of(o, l, &o->columns[c]), &value))
            return value;
    return otherwise;
}

static int64_t root(int64_t *of, int64_t i)
{
    while (of[i] != i)
        i = of[i] = of[of[i]];
    return i;
}

/* Joins tracks that split from or merge into each other, because TrackMate treats them as one track. */
static clv_status join_branches(const output *o, blobs_trackmate_row *rows)
{
    const link_rows *r = o->r;
    int64_t *of = clv_alloc(CLV_MAX(r->tracks, (size_t)1), sizeof *of);
    size_t *line = clv_alloc(CLV_MAX(r->count, (size_t)1), sizeof *line);
    clv_status status = of && line ? CLV_OK : no_memory(o);
    for (size_t t = 0; t < r->tracks && !status; ++t)
        of[t] = (int64_t)t;
    for (size_t i = 0; i < r->line_count && !status; ++i)
        if (r->lines[i].row != SIZE_MAX) line[r->lines[i].row] = i;
    for (size_t b = 0; b < r->branch_count && !status; ++b) {
        const clv_branch *branch = &r->branches[b];
        const int64_t x = root(of, r->particle[branch->from]),
                      y = root(of, r->particle[branch->to]);
        of[CLV_MAX(x, y)] = CLV_MIN(x, y);
        if (branch->kind == CLV_BRANCH_SPLIT)
            rows[line[branch->to]].split_from = 1 + line[branch->from];
        else
            rows[line[branch->from]].merges_into = 1 + line[branch->to];
    }
    for (size_t i = 0; i < r->line_count && !status; ++i)
        rows[i].track = root(of, rows[i].track);
    clv_free(of), clv_free(line);
    return status;
}

static clv_status write_xml(output *o)
{
    const link_rows *r = o->r;
    const blobs_units *u = &r->units;
    const double side = u->pixel_size > 0 ? u->pixel_size : 1, row = u->row > 0 ? u->row : side,
                 plane = u->plane > 0 ? u->plane : side;
    blobs_trackmate_row *rows = clv_alloc(CLV_MAX(r->line_count, (size_t)1), sizeof *rows);
    clv_status status = rows ? CLV_OK : no_memory(o);
    for (size_t i = 0; i < r->line_count && !status; ++i) {
        const link_line *l = &r->lines[i];
        if (l->frame < 0 || l->frame > INT32_MAX) {
            status = clv_fail(
                CLV_E_FORMAT,
                "%s: frame %lld cannot be stored in TrackMate's XML, which takes frames 0 to %d",
                o->path, (long long)l->frame, INT32_MAX);
            break;
        }
        begin_row(o, l);
        const double sigma = value_of(o, l, "sigma", "", 1 / sqrt(2));
        rows[i] = (blobs_trackmate_row){ .number = i,
                                         .track = l->particle,
                                         .segment = l->particle,
                                         .frame = (uint32_t)l->frame,
                                         .quality = (float)value_of(o, l, "response", "QUALITY", 1),
                                         .z = l->z * plane,
                                         .y = l->y * row,
                                         .x = l->x * side,
                                         .radius = side * value_of(o, l, "RADIUS", "radius",
                                                                   sqrt(2) * sigma) };
    }
    if (!status && r->branches) status = join_branches(o, rows);
    if (!status && has_failed(o)) status = no_memory(o);
    if (!status) status = blobs_xml_write(o->path, u, rows, r->line_count);
    clv_free(rows);
    return status;
}

static void add_column(output *o, const char *name, size_t from)
{
    o->columns[o->count] = (column){ .name = name, .from = from };
    o->names[o->count++] = name;
}

clv_status link_write(const link_rows *r, const char *path)
{
    enum { NEW = 3 };
    const size_t all = clv_csv_columns(r->table);
    output o = { .r = r, .path = path };
    o.columns = clv_zalloc(all + NEW, sizeof *o.columns);
    o.names = clv_alloc(all + NEW, sizeof *o.names);
    o.cells = clv_alloc(all, sizeof *o.cells);
    clv_status status = o.columns && o.names && o.cells ? CLV_OK : no_memory(&o);
    for (size_t c = 0; c < all && !status; ++c)
        if (c != r->old) add_column(&o, clv_csv_name(r->table, c), c);
    if (!status) {
        add_column(&o, r->name, PARTICLE);
        if (r->branches) add_column(&o, "parent", PARENT), add_column(&o, "child", CHILD);
    }
    const unsigned formats = cli_formats_of(path);
    if (!status)
        status = formats & (CLI_NPY | CLI_PARQUET) ? write_records(&o)
                 : formats & CLI_XML               ? write_xml(&o)
                                                   : write_text(&o);
    clv_text_clear(&o.text);
    clv_free(o.columns), clv_free(o.names), clv_free(o.cells);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tables from text: commas, semicolons or tabs between the fields, decimal points or commas in numbers. */
#include "host/io/tables/csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "host/io/records.h"
#include "host/io/stream.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 30, MAX_COLUMNS = 4096 };

struct clv_csv_table {
    char *path, *text;
    size_t length;
    char between;      /* separator of the fields */
    char decimal;      /* decimal mark of numbers: '.' or ',' */
    const char *doubt; /* why commas in numbers may not be decimal; NULL: no doubt */
    char **names;
    size_t columns, names_capacity;
    size_t header; /* header, rows: offsets in `text` */
    size_t *rows, count, capacity;
    char (*codes)[3]; /* NumPy's types of the columns; NULL: unknown */
};

typedef struct cursor {
    const char *path, *at, *end;
    size_t line; /* number of the current line, from 1 */
    char between;
} cursor;

typedef clv_csv_cell field;

static clv_status read_quoted(cursor *c, field *out)
{
    const size_t line = c->line;
    out->at = ++c->at;
    for (;; ++c->at) {
        if (c->at == c->end)
            return clv_fail(CLV_E_FORMAT, "%s: line %zu: a quoted field has no closing quote",
                            c->path, line);
        if (*c->at == '\n') ++c->line;
        if (*c->at != '"') continue;
        if (c->at + 1 == c->end || c->at[1] != '"') break;
        ++c->at;
    }
    out->length = (size_t)(c->at - out->at);
    ++c->at;
    return CLV_OK;
}

static clv_status read_field(cursor *c, field *out)
{
    out->quoted = c->at < c->end && *c->at == '"';
    if (out->quoted) {
        CLV_TRY(read_quoted(c, out));
    } else {
        out->at = c->at;
        while (c->at < c->end && *c->at != c->between && !strchr("\r\n\"", *c->at))
            ++c->at;
        out->length = (size_t)(c->at - out->at);
    }
    out->last = c->at == c->end || *c->at != c->between;
    if (c->at == c->end) return CLV_OK;
    if (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n') ++c->at;
    if (*c->at == '\r')
        return clv_fail(CLV_E_FORMAT, "%s: line %zu %s", c->path, c->line, CLV_LONE_RETURN);
    if (*c->at != c->between && *c->at != '\n') {
        char found[40];
        const size_t left = CLV_MIN((size_t)(c->end - c->at), (size_t)20);
        const char *end = memchr(c->at, '\n', left);
        return clv_fail(
            CLV_E_FORMAT, "%s: line %zu: \"%s\" %s", c->path, c->line,
            clv_printable(c->at, end ? (size_t)(end - c->at) : left, found, sizeof found),
            out->quoted ? "after a closing quote" : "inside a field without quotes");
    }
    if (*c->at == '\n') ++c->line;
    ++c->at;
    return CLV_OK;
}

static bool skip_empty_lines(cursor *c)
{
    while (c->at < c->end) {
        const size_t ends = *c->at == '\n' ? 1 : 0;
        if (!ends && !(*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n')) return true;
        c->at += ends ? 1 : 2;
        ++c->line;
    }
    return false;
}

static char *unquoted(const field *f)
{
    char *name = clv_alloc(f->length + 1, 1);
    size_t used = 0;
    for (size_t i = 0; name && i < f->length; ++i) {
        name[used++] = f->at[i];
        if (f->quoted && f->at[i] == '"') ++i; /* skip the first of two quotes */
    }
    if (name) name[used] = '\0';
    return name;
}

static clv_status read_header(cursor *c, clv_csv_table *table)
{
    field f;
    if (!skip_empty_lines(c))
        return clv_fail(CLV_E_FORMAT, "%s is empty; expected a line of column names", c->path);
    table->header = (size_t)(c->at - table->text);
    do {
        CLV_TRY(read_field(c, &f));
        if (table->columns == MAX_COLUMNS)
            return clv_fail(CLV_E_FORMAT, "%s: there are more than %d columns", c->path,
                            MAX_COLUMNS);
        char *name = NULL;
        if (!clv_reserve(&table->names, &table->names_capacity, table->columns + 1, sizeof name) ||
            !(name = unquoted(&f)))
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the column names", c->path);
        table->names[table->columns++] = name;
    } while (!f.last);
    return CLV_OK;
}

static clv_status read_rows(cursor *c, clv_csv_table *table)
{
    while (skip_empty_lines(c)) {
        const size_t line = c->line, begin = (size_t)(c->at - table->text);
        size_t fields = 0;
        field f;
        do {
            CLV_TRY(read_field(c, &f));
            ++fields;
        } while (!f.last);
        if (fields != table->columns)
            return clv_fail(CLV_E_FORMAT, "%s: line %zu has %zu field%s, but the header has %zu",
                            c->path, line, fields, fields == 1 ? "" : "s", table->columns);
        if (!clv_reserve(&table->rows, &table->capacity, table->count + 1, sizeof *table->rows))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory after %zu rows", c->path,
                            table->count);
        table->rows[table->count++] = begin;
    }
    return CLV_OK;
}

clv_status clv_csv_take(const char *path, char *text, size_t length, char between,
                        clv_csv_table **out)
{
    *out = NULL;
    clv_csv_table *table = clv_zalloc(1, sizeof *table);
    if (!table || !(table->path = clv_strdup(path))) {
        clv_csv_free(table);
        clv_free(text);
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    table->text = text, table->length = length, table->between = between, table->decimal = '.';
    clv_status status = CLV_OK;
    if (memchr(text, '\0', length))
        status = clv_fail(CLV_E_FORMAT, "%s has a NUL byte; expected text", path);
    if (!status) {
        cursor c = { path, text, text + length, 1, between };
        if (clv_starts_with(text, "\xEF\xBB\xBF")) c.at += 3; /* byte-order mark */
        status = read_header(&c, table);
        if (!status) status = read_rows(&c, table);
    }
    if (status) {
        clv_csv_free(table);
        return status;
    }
    *out = table;
    return CLV_OK;
}

clv_status clv_csv_read(const char *path, clv_csv_table **out)
{
    char *text;
    size_t length;
    *out = NULL;
    CLV_TRY(clv_file_read(path, MAX_FILE, &text, &length));
    return clv_csv_take(path, text, length, ',', out);
}

void clv_csv_free(clv_csv_table *table)
{
    if (!table) return;
    for (size_t i = 0; i < table->columns; ++i)
        clv_free(table->names[i]);
    clv_free(table->names);
    clv_free(table->rows), clv_free(table->codes);
    clv_free(table->text);
    clv_free(table->path);
    clv_free(table);
}

size_t clv_csv_rows(const clv_csv_table *table)
{
    return table->count;
}

size_t clv_csv_columns(const clv_csv_table *table)
{
    return table->columns;
}

const char *clv_csv_name(const clv_csv_table *table, size_t column)
{
    return table->names[column];
}

clv_status clv_csv_find(const clv_csv_table *table, const char *name, size_t *column)
{
    size_t found = 0;
    for (size_t i = 0; i < table->columns; ++i)
        if (strcmp(table->names[i], name) == 0 && ++found == 1) *column = i;
    if (found == 1) return CLV_OK;
    if (found)
        return clv_fail(CLV_E_FORMAT, "%s: %zu columns have the name '%s'", table->path, found,
                        name);

    char there[200];
    size_t length;
    const char *header = clv_csv_header(table, &length);
    const bool other =
        table->columns == 1 && (memchr(header, ';', length) || memchr(header, '\t', length));
    return clv_fail(CLV_E_FORMAT, "%s: there is no column '%s'; the columns are %s%s", table->path,
                    name, clv_printable(header, length, there, sizeof there),
                    other ? " (they must be separated by commas)" : "");
}

/* Returns the text between two offsets, without the line ends at its end. */
static const char *record(const clv_csv_table *table, size_t begin, size_t end, size_t *length)
{
    while (end > begin && (table->text[end - 1] == '\n' || table->text[end - 1] == '\r'))
        --end;
    *length = end - begin;
    return table->text + begin;
}

const char *clv_csv_row(const clv_csv_table *table, size_t row, size_t *length)
{
    const size_t end = row + 1 < table->count ? table->rows[row + 1] : table->length;
    return record(table, table->rows[row], end, length);
}

const char *clv_csv_header(const clv_csv_table *table, size_t *length)
{
    return record(table, table->header, table->count ? table->rows[0] : table->length, length);
}

static size_t line_of(const clv_csv_table *table, const char *at)
{
    size_t line = 1;
    for (const char *c = table->text; c < at; ++c)
        line += *c == '\n';
    return line;
}

/* Returns whether a text is a number with one comma, such as "12,5" or "-0,25e-3". *head is the number of digits before
 * the comma, *tail the number of digits after it. */
static bool has_comma(const char *text, size_t length, size_t *head, size_t *tail)
{
    size_t at = length && (*text == '-' || *text == '+') ? 1 : 0;
    *head = *tail = 0;
    for (; at < length && isdigit((unsigned char)text[at]); ++at)
        ++*head;
    if (at == length || text[at++] != ',') return false;
    for (; at < length && isdigit((unsigned char)text[at]); ++at)
        ++*tail;
    return *head && *tail && (at == length || text[at] == 'e' || text[at] == 'E');
}

static void trim(const field *f, const char **at, size_t *length)
{
    *at = f->at, *length = f->length;
    while (*length && **at == ' ')
        ++*at, --*length;
    while (*length && (*at)[*length - 1] == ' ')
        --*length;
}

bool clv_csv_cell_double(const clv_csv_table *table, const clv_csv_cell *cell, double *value)
{
    char text[100], *comma;
    const char *at;
    size_t length, head, tail;
    trim(cell, &at, &length);
    if (length >= sizeof text) return false;
    memcpy(text, at, length);
    text[length] = '\0';
    if (table->decimal == ',') {
        if (memchr(text, '.', length)) return false;
        if (has_comma(at, length, &head, &tail) && (comma = strchr(text, ','))) *comma = '.';
    }
    return clv_parse_double(text, value);
}

clv_status clv_csv_doubles(const clv_csv_table *table, size_t column, double *values)
{
    for (size_t row = 0; row < table->count; ++row) {
        cursor c = { table->path, table->text + table->rows[row], table->text + table->length, 0,
                     table->between };
        field f;
        for (size_t i = 0; i <= column; ++i)
            CLV_TRY(read_field(&c, &f)); /* cannot fail, since clv_csv_take read the field before */
        if (clv_csv_cell_double(table, &f, &values[row])) continue;
        char found[60];
        size_t head, tail;
        return clv_fail(CLV_E_FORMAT, "%s: line %zu, column '%s': \"%s\" is not a finite number%s",
                        table->path, line_of(table, f.at), table->names[column],
                        clv_printable(f.at, f.length, found, sizeof found),
                        table->doubt && has_comma(f.at, f.length, &head, &tail) ? table->doubt
                                                                                : "");
    }
    return CLV_OK;
}

void clv_csv_cells(const clv_csv_table *table, size_t row, clv_csv_cell *cells)
{
    cursor c = { table->path, table->text + table->rows[row], table->text + table->length, 0,
                 table->between };
    for (size_t i = 0; i < table->columns; ++i)
        if (read_field(&c, &cells[i])) cells[i] = (clv_csv_cell){ "", 0, false, true };
}

void clv_csv_cell_text(const clv_csv_cell *cell, clv_text *out)
{
    if (!cell->quoted || !memchr(cell->at, '"', cell->length)) {
        clv_text_bytes(out, cell->at, cell->length);
        return;
    }
    for (size_t i = 0; i < cell->length; ++i) {
        clv_text_bytes(out, cell->at + i, 1);
        if (cell->at[i] == '"') ++i; /* skip the first of two quotes */
    }
}

/* Returns whether a text is a number with a decimal point and digits after it, such as "1.5". */
static bool has_point(const char *text, size_t length)
{
    const char *point = memchr(text, '.', length);
    char copy[64];
    double value;
    if (!point || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return clv_parse_double(copy, &value);
}

void clv_csv_find_decimal(clv_csv_table *table)
{
    size_t commas = 0, certain = 0, points = 0;
    for (size_t row = 0; row < table->count; ++row) {
        cursor c = { table->path, table->text + table->rows[row], table->text + table->length, 0,
                     table->between };
        for (size_t i = 0; i < table->columns; ++i) {
            field f;
            const char *at;
            size_t length, head, tail;
            if (read_field(&c, &f)) return;
            trim(&f, &at, &length);
            if (has_comma(at, length, &head, &tail)) {
                const char first = isdigit((unsigned char)*at) ? *at : at[1];
                ++commas;
                certain += tail != 3 || head > 3 || first == '0'; /* not a thousands separator */
            } else if (has_point(at, length)) {
                ++points;
            }
        }
    }
    table->doubt = NULL;
    if (!commas) return;
    if (points)
        table->doubt =
            ": the table has decimal points and commas in numbers; write one of them, or say "
            "--decimal point or --decimal comma";
    else if (!certain)
        table->doubt =
            ": its comma may be a decimal comma or separate thousands, and no other number of "
            "the table tells; say --decimal comma, or write decimal points";
    else
        table->decimal = ',';
}

void clv_csv_set_decimal(clv_csv_table *table, char decimal)
{
    table->decimal = decimal, table->doubt = NULL;
}

char clv_csv_decimal(const clv_csv_table *table)
{
    return table->decimal;
}

void clv_csv_set_codes(clv_csv_table *table, char (*codes)[3])
{
    clv_free(table->codes);
    table->codes = codes;
}

const char *clv_csv_code(const clv_csv_table *table, size_t column)
{
    return table->codes ? table->codes[column] : "";
}

void clv_csv_drop_rows(clv_csv_table *table, size_t count)
{
    count = CLV_MIN(count, table->count);
    if (!count) return; /* a table without rows has no memory to move */
    table->count -= count;
    memmove(table->rows, table->rows + count, table->count * sizeof *table->rows);
}

void clv_csv_field(const clv_csv_table *t, size_t row, size_t column, char *out, size_t capacity)
{
    size_t length, n = 0, at = 0;
    const char *text = clv_csv_row(t, row, &length);
    bool quoted = false;
    for (size_t i = 0; i < length && at <= column; ++i) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == t->between && !quoted)
            ++at;
        else if (at == column && n + 1 < capacity)
            out[n++] = text[i];
    }
    while (n && (out[n - 1] == ' ' || out[n - 1] == '\r'))
        --n;
    out[n] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one column of numbers from a text file, which may be a table with a line of column names. */
#include "host/io/formats/column.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/formats/table.h"
#include "host/io/stream.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_FILE = 256 << 20, MAX_COLUMNS = 1000, MAX_CELL = 100 };

typedef struct cell {
    const char *at;
    size_t length;
} cell;

typedef struct table {
    const char *path, *at, *end;
    size_t line;    /* number of the current line, from 1 */
    char separator; /* ',', ';', '\t', or ' ' for blanks; 0: not yet determined */
    cell cells[MAX_COLUMNS], names[MAX_COLUMNS];
    size_t count, name_count; /* count: cells of this row; name_count: column names */
    size_t column;            /* the column to read */
    double *values;
    size_t value_count, capacity;
} table;

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static cell trimmed(const char *from, const char *to)
{
    while (from < to && blank(*from))
        ++from;
    while (to > from && blank(to[-1]))
        --to;
    if (to - from >= 2 && (*from == '"' || *from == '\'') && to[-1] == *from) ++from, --to;
    return (cell){ from, (size_t)(to - from) };
}

/* Splits the line into cells; returns false if there are more than MAX_COLUMNS. */
static bool cut(const char *from, const char *to, char separator, cell *cells, size_t *count)
{
    *count = 0;
    while (from <= to) {
        const char *stop = from;
        if (separator == ' ') {
            while (from < to && blank(*from))
                ++from;
            if (from == to) break;
            for (stop = from; stop < to && !blank(*stop);)
                ++stop;
        } else {
            while (stop < to && *stop != separator)
                ++stop;
        }
        if (*count == MAX_COLUMNS) return false;
        cells[(*count)++] = trimmed(from, stop);
        from = stop + 1;
    }
    return true;
}

static char separator_of(const char *from, const char *to)
{
    static const char usual[] = ",;\t";
    for (size_t i = 0; usual[i]; ++i)
        if (memchr(from, usual[i], (size_t)(to - from))) return usual[i];
    return ' ';
}

static bool number_in(const cell *c, double *value)
{
    char text[MAX_CELL + 1];
    if (!c->length || c->length > MAX_CELL) return false;
    memcpy(text, c->at, c->length);
    text[c->length] = '\0';
    for (char *at = text; *at; ++at) /* Fortran writes the exponent of doubles with D */
        if (*at == 'D' || *at == 'd') *at = 'e';
    return strlen(text) == c->length && clv_parse_double(text, value);
}

/* Returns whether the cells are names of columns: whether the first cell that is not a number begins with a letter or
 * an underscore. */
static bool are_names(const cell *cells, size_t count)
{
    double value;
    for (size_t i = 0; i < count; ++i)
        if (!number_in(&cells[i], &value))
            return cells[i].length && (isalpha((unsigned char)*cells[i].at) || *cells[i].at == '_');
    return false;
}

/* Stores the words of a comment in t->names, since they may be the names of the columns. */
static void note_comment(table *t, const char *from, const char *to)
{
    while (from < to && (*from == '#' || blank(*from)))
        ++from;
    if (from == to || !cut(from, to, separator_of(from, to), t->names, &t->name_count))
        t->name_count = 0;
}

static bool is_called(const cell *name, const char *wanted)
{
    return strlen(wanted) == name->length && strncasecmp(name->at, wanted, name->length) == 0;
}

static bool is_angle(const cell *name)
{
    return is_called(name, "PA") ||
           (name->length >= 6 && strncasecmp(name->at, "PARANG", 6) == 0) ||
           (name->length >= 5 && strncasecmp(name->at, "ANGLE", 5) == 0);
}

static clv_status no_column(const table *t, const char *wanted)
{
    char list[200], name[60];
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < t->name_count && used + sizeof name + 2 < sizeof list; ++i)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                             clv_printable(t->names[i].at, t->names[i].length, name, sizeof name));
    if (!wanted)
        return clv_fail(CLV_E_FORMAT,
                        "%s: none of the %zu columns (%s) is called PA, PARANG... or ANGLE...; "
                        "give the name of one of them",
                        t->path, t->count, used ? list : "without names");
    return clv_fail(CLV_E_FORMAT, "%s: there is no column \"%s\" among the %zu columns (%s)",
                    t->path, wanted, t->count, used ? list : "without names");
}

/* Chooses the column to read; call it when the first row of numbers has been split into cells. */
static clv_status choose(table *t, const char *wanted)
{
    uint64_t number;
    if (wanted && clv_parse_u64(wanted, &number)) {
        if (number < 1 || number > t->count) return no_column(t, wanted);
        t->column = (size_t)number - 1;
        return CLV_OK;
    }
    if (!wanted && t->count == 1) return CLV_OK;
    for (size_t i = 0; i < CLV_MIN(t->name_count, t->count); ++i)
        if (wanted ? is_called(&t->names[i], wanted) : is_angle(&t->names[i])) {
            t->column = i;
            return CLV_OK;
        }
    return no_column(t, wanted);
}

static clv_status take_row(table *t)
{
    char found[60];
    double value;
    const cell *c = &t->cells[t->column];
    if (t->column >= t->count)
        return clv_fail(CLV_E_FORMAT, "%s: line %zu has %zu cells, but column %zu was asked for",
                        t->path, t->line, t->count, t->column + 1);
    if (!number_in(c, &value))
        return clv_fail(CLV_E_FORMAT, "%s: line %zu, cell %zu: \"%s\" is not a finite number",
                        t->path, t->line, t->column + 1,
                        clv_printable(c->at, c->length, found, sizeof found));
    if (!clv_reserve(&t->values, &t->capacity, t->value_count + 1, sizeof *t->values))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory after %zu numbers", t->path,
                        t->value_count);
    t->values[t->value_count++] = value;
    return CLV_OK;
}

static clv_status take_line(table *t, const char *wanted, const char *from, const char *to)
{
    const cell whole = trimmed(from, to);
    if (!whole.length) return CLV_OK;
    if (*whole.at == '#') {
        if (!t->separator) note_comment(t, from, to);
        return CLV_OK;
    }
    const bool first = !t->separator;
    if (first) t->separator = separator_of(from, to);
    if (!cut(from, to, t->separator, t->cells, &t->count))
        return clv_fail(CLV_E_FORMAT, "%s: line %zu has more than %d cells", t->path, t->line,
                        MAX_COLUMNS);
    if (first && are_names(t->cells, t->count)) {
        memcpy(t->names, t->cells, t->count * sizeof *t->cells);
        t->name_count = t->count;
        return CLV_OK;
    }
    if (!t->value_count) CLV_TRY(choose(t, wanted));
    return take_row(t);
}

static clv_status read_table(table *t, const char *wanted)
{
    while (t->at < t->end) {
        const char *stop = memchr(t->at, '\n', (size_t)(t->end - t->at));
        if (!stop) stop = t->end;
        ++t->line;
        CLV_TRY(take_line(t, wanted, t->at, stop));
        t->at = stop + 1;
    }
    return t->value_count ? CLV_OK : clv_fail(CLV_E_FORMAT, "%s: the file has no numbers", t->path);
}

static clv_status read_file(const char *path, const char *column, table *t)
{
    char *text = NULL;
    size_t length = 0;
    CLV_TRY(clv_file_read(path, MAX_FILE, &text, &length));
    t->path = path, t->at = text, t->end = text + length;
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) t->at += 3; /* byte-order mark */
    const clv_status status = read_table(t, column);
    clv_free(text);
    return status;
}

clv_status clv_text_column_read(const char *path, const char *column, double **values,
                                size_t *count)
{
    clv_error why = { 0 }; /* why the file cannot be read as a plain list */
    clv_status status = CLV_OK;
    *values = NULL;
    *count = 0;
    if (!column) {
        status = clv_text_vector_read(path, values, count);
        if (status != CLV_E_FORMAT) return status;
        clv_error_take(&why, status);
    }
    table *t = clv_zalloc(1, sizeof *t);
    status = t ? read_file(path, column, t)
               : clv_fail(CLV_E_MEMORY, "%s: not enough memory for a table", path);
    if (!status) *values = t->values, *count = t->value_count;
    /* if the columns have no names, report the failure to read a plain list */
    if (status == CLV_E_FORMAT && !column && !t->name_count) status = clv_error_give(&why);
    if (status && t) clv_free(t->values);
    clv_free(t);
    clv_error_clear(&why);
    return status;
}

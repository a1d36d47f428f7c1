/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as comma-separated values with one header line (RFC 4180), written and read. */
#include "host/io/tables/csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "host/io/stream.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 30, MAX_COLUMNS = 4096 };

/* ---- writing ------------------------------------------------------------------------------- */

static void add_cell(clv_csv *csv, const char *text, size_t length)
{
    assert(csv->cells < csv->columns);
    if (csv->cells++) clv_text_bytes(&csv->text, ",", 1);
    clv_text_bytes(&csv->text, text, length);
}

void clv_csv_begin(clv_csv *csv, const char *const *names, size_t columns)
{
    *csv = (clv_csv){ .columns = columns };
    for (size_t i = 0; i < columns; ++i)
        clv_csv_string(csv, names[i]);
    clv_csv_end_row(csv);
}

void clv_csv_end_row(clv_csv *csv)
{
    assert(csv->cells == csv->columns);
    csv->cells = 0;
    clv_text_bytes(&csv->text, "\n", 1);
}

/* Text of a number in any locale: what is no part of a number in C is the decimal point. */
static void add_digits(clv_csv *csv, char *digits)
{
    const size_t point = strspn(digits, "+-0123456789");
    if (digits[point] && digits[point] != 'e') digits[point] = '.';
    add_cell(csv, digits, strlen(digits));
}

static bool add_not_finite(clv_csv *csv, double value)
{
    if (isfinite(value)) return false;
    const char *name = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    add_cell(csv, name, strlen(name));
    return true;
}

/* Decimal digits of `value` to `text`, most significant first; how many. */
static size_t put_digits(uint64_t value, char *text)
{
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < count; ++i)
        text[i] = reversed[count - 1 - i];
    return count;
}

static size_t put_fixed(uint64_t digits, int decimals, char *text)
{
    while (decimals > 0 && digits % 10 == 0)
        digits /= 10, --decimals;
    uint64_t one = 1;
    for (int i = 0; i < decimals; ++i)
        one *= 10;
    size_t length = put_digits(digits / one, text);
    if (!decimals) return length;
    text[length++] = '.';
    for (uint64_t rest = digits % one, unit = one / 10; unit; unit /= 10)
        text[length++] = (char)('0' + rest / unit % 10);
    return length;
}

/* What the loop in clv_csv_float would print, for sizes that printf writes without an exponent.
 * Below, value * 10^decimals is exact: 24 bits times 5^12 are 52. False: that loop must. */
static bool add_usual_float(clv_csv *csv, float value)
{
    static const double tens[] = { 1e0, 1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
                                   1e7, 1e8, 1e9, 1e10, 1e11, 1e12 };
    const double size = fabs((double)value);
    if (!(size >= 1e-4 && size < 1e5)) return false;
    int before = -3; /* digits in front of the point; 0.00x: negative */
    while (before <= 0 ? size * tens[-before] >= 1 : size >= tens[before])
        ++before;
    for (int precision = 6; precision <= 9; ++precision) {
        const int decimals = precision - before;
        const double digits = rint(size * tens[decimals]), back = digits / tens[decimals];
        uint64_t bits;
        memcpy(&bits, &back, sizeof bits);
        /* halfway between two floats, as far as a double can tell */
        if ((bits & 0x1FFFFFFF) == 0x10000000) return false;
        if ((double)(float)back != size) continue;
        char text[32];
        size_t length = 0;
        if (value < 0) text[length++] = '-';
        length += put_fixed((uint64_t)digits, decimals, text + length);
        add_cell(csv, text, length);
        return true;
    }
    return false;
}

void clv_csv_float(clv_csv *csv, float value)
{
    char digits[32];
    if (add_not_finite(csv, value) || add_usual_float(csv, value)) return;
    for (int precision = 6; precision <= 9; ++precision) { /* 9 always reads back */
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (precision == 9 || strtof(digits, NULL) == value) break;
    }
    add_digits(csv, digits);
}

void clv_csv_number(clv_csv *csv, double value)
{
    char digits[32];
    if (add_not_finite(csv, value)) return;
    snprintf(digits, sizeof digits, "%.9g", value);
    add_digits(csv, digits);
}

void clv_csv_int(clv_csv *csv, int64_t value)
{
    char text[24];
    size_t length = 0;
    if (value < 0) text[length++] = '-';
    length += put_digits(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, text + length);
    add_cell(csv, text, length);
}

void clv_csv_string(clv_csv *csv, const char *value)
{
    /* An empty first cell could be an empty line, so it is quoted too. */
    if (*value && !strpbrk(value, ",\"\r\n")) {
        add_cell(csv, value, strlen(value));
        return;
    }
    add_cell(csv, "\"", 1);
    for (const char *c = value; *c; ++c) {
        if (*c == '"') clv_text_bytes(&csv->text, "\"", 1);
        clv_text_bytes(&csv->text, c, 1);
    }
    clv_text_bytes(&csv->text, "\"", 1);
}

clv_status clv_csv_write(const clv_csv *csv, const char *path)
{
    if (csv->text.failed) return clv_fail(CLV_E_MEMORY, "%s: no memory for the table", path);
    const clv_part part = { csv->text.data, csv->text.length };
    return clv_parts_write(path, &part, 1);
}

void clv_csv_clear(clv_csv *csv)
{
    clv_text_clear(&csv->text);
    *csv = (clv_csv){ 0 };
}

/* ---- reading ------------------------------------------------------------------------------- */

struct clv_csv_table {
    char *path, *text;
    size_t length;
    char **names;
    size_t columns, names_capacity;
    size_t header; /* where the header and the rows begin in `text` */
    size_t *rows, count, capacity;
};

typedef struct cursor {
    const char *path, *at, *end;
    size_t line; /* from 1 */
} cursor;

typedef struct field {
    const char *at; /* without the quotes around it; quotes inside are still doubled */
    size_t length;
    bool quoted, last; /* last of its row; the cursor is behind the line end then */
} field;

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
        while (c->at < c->end && !strchr(",\r\n\"", *c->at))
            ++c->at;
        out->length = (size_t)(c->at - out->at);
    }
    out->last = c->at == c->end || *c->at != ',';
    if (c->at == c->end) return CLV_OK;
    if (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n') ++c->at;
    if (*c->at != ',' && *c->at != '\n') {
        char found[40];
        return clv_fail(
            CLV_E_FORMAT, "%s: line %zu: \"%s\" %s", c->path, c->line,
            clv_printable(c->at, CLV_MIN((size_t)(c->end - c->at), 20), found, sizeof found),
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
        if (f->quoted && f->at[i] == '"') ++i; /* of two quotes the first */
    }
    if (name) name[used] = '\0';
    return name;
}

static clv_status read_header(cursor *c, clv_csv_table *table)
{
    field f;
    if (!skip_empty_lines(c))
        return clv_fail(CLV_E_FORMAT, "%s: is empty; expected a line of column names", c->path);
    table->header = (size_t)(c->at - table->text);
    do {
        CLV_TRY(read_field(c, &f));
        if (table->columns == MAX_COLUMNS)
            return clv_fail(CLV_E_FORMAT, "%s: more than %d columns", c->path, MAX_COLUMNS);
        char *name = NULL;
        if (!clv_reserve(&table->names, &table->names_capacity, table->columns + 1, sizeof name) ||
            !(name = unquoted(&f)))
            return clv_fail(CLV_E_MEMORY, "%s: no memory for the column names", c->path);
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
            return clv_fail(CLV_E_FORMAT, "%s: line %zu has %zu field%s, the header has %zu",
                            c->path, line, fields, fields == 1 ? "" : "s", table->columns);
        if (!clv_reserve(&table->rows, &table->capacity, table->count + 1, sizeof *table->rows))
            return clv_fail(CLV_E_MEMORY, "%s: no memory after %zu rows", c->path, table->count);
        table->rows[table->count++] = begin;
    }
    return CLV_OK;
}

clv_status clv_csv_read(const char *path, clv_csv_table **out)
{
    *out = NULL;
    clv_csv_table *table = clv_zalloc(1, sizeof *table);
    if (!table || !(table->path = clv_strdup(path))) {
        clv_csv_free(table);
        return clv_fail(CLV_E_MEMORY, "%s: no memory", path);
    }
    clv_status status = clv_file_read(path, MAX_FILE, &table->text, &table->length);
    if (!status && memchr(table->text, '\0', table->length))
        status = clv_fail(CLV_E_FORMAT, "%s: holds a NUL byte; expected text", path);
    if (!status) {
        cursor c = { path, table->text, table->text + table->length, 1 };
        if (clv_starts_with(table->text, "\xEF\xBB\xBF")) c.at += 3; /* byte-order mark */
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

void clv_csv_free(clv_csv_table *table)
{
    if (!table) return;
    for (size_t i = 0; i < table->columns; ++i)
        clv_free(table->names[i]);
    clv_free(table->names);
    clv_free(table->rows);
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
        return clv_fail(CLV_E_FORMAT, "%s: %zu columns are called '%s'", table->path, found, name);

    char there[200];
    size_t length;
    const char *header = clv_csv_header(table, &length);
    const bool other =
        table->columns == 1 && (memchr(header, ';', length) || memchr(header, '\t', length));
    return clv_fail(CLV_E_FORMAT, "%s: no column '%s'; the columns are %s%s", table->path, name,
                    clv_printable(header, length, there, sizeof there),
                    other ? " (commas must stand between them)" : "");
}

/* What lies between two offsets, without the line ends at its end. */
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

static bool parse_field(const field *f, double *value)
{
    char text[100];
    const char *at = f->at;
    size_t length = f->length;
    while (length && *at == ' ')
        ++at, --length;
    while (length && at[length - 1] == ' ')
        --length;
    if (length >= sizeof text) return false;
    memcpy(text, at, length);
    text[length] = '\0';
    return clv_parse_double(text, value);
}

clv_status clv_csv_doubles(const clv_csv_table *table, size_t column, double *values)
{
    for (size_t row = 0; row < table->count; ++row) {
        cursor c = { table->path, table->text + table->rows[row], table->text + table->length, 0 };
        field f;
        for (size_t i = 0; i <= column; ++i)
            CLV_TRY(read_field(&c, &f)); /* cannot fail again */
        if (parse_field(&f, &values[row])) continue;
        char found[60];
        return clv_fail(CLV_E_FORMAT, "%s: line %zu, column '%s': \"%s\" is not a finite number",
                        table->path, line_of(table, f.at), table->names[column],
                        clv_printable(f.at, f.length, found, sizeof found));
    }
    return CLV_OK;
}

void clv_csv_field(const clv_csv_table *t, size_t row, size_t column, char *out, size_t capacity)
{
    size_t length, n = 0, at = 0;
    const char *text = clv_csv_row(t, row, &length);
    bool quoted = false;
    for (size_t i = 0; i < length && at <= column; ++i) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == ',' && !quoted)
            ++at;
        else if (at == column && n + 1 < capacity)
            out[n++] = text[i];
    }
    while (n && (out[n - 1] == ' ' || out[n - 1] == '\r'))
        --n;
    out[n] = '\0';
}

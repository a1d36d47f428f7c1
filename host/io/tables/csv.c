/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tables as comma-separated values (RFC 4180), tab-separated values, or JSON. */
#include "host/io/tables/csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a string as JSON, with its quotes. */
static void add_quoted(clv_text *text, const char *value, size_t length)
{
    const unsigned char *c = (const unsigned char *)value, *plain = c, *end = c + length;
    clv_text_bytes(text, "\"", 1);
    for (; c < end; ++c) {
        if (*c != '"' && *c != '\\' && *c >= 0x20) continue;
        clv_text_bytes(text, plain, (size_t)(c - plain));
        clv_text_add(text, *c < 0x20 ? "\\u%04x" : "\\%c", *c);
        plain = c + 1;
    }
    clv_text_bytes(text, plain, (size_t)(c - plain));
    clv_text_bytes(text, "\"", 1);
}

/* Appends what precedes the next cell: a separator; in JSON also the column's name. */
static void begin_cell(clv_csv *csv)
{
    assert(csv->cells < csv->columns);
    const size_t cell = csv->cells++;
    if (csv->kind != CLV_CSV_JSON) {
        if (cell) clv_text_bytes(&csv->text, csv->kind == CLV_CSV_TABS ? "\t" : ",", 1);
        return;
    }
    clv_text_add(&csv->text, "%s", cell ? ", " : csv->rows ? ",\n{" : "\n{");
    add_quoted(&csv->text, csv->names[cell], strlen(csv->names[cell]));
    clv_text_bytes(&csv->text, ": ", 2);
}

static void add_cell(clv_csv *csv, const char *text, size_t length)
{
    begin_cell(csv);
    clv_text_bytes(&csv->text, text, length);
}

void clv_csv_begin(clv_csv *csv, const char *const *names, size_t columns)
{
    clv_csv_begin_as(csv, CLV_CSV_COMMAS, names, columns);
}

void clv_csv_begin_as(clv_csv *csv, clv_csv_kind kind, const char *const *names, size_t columns)
{
    *csv = (clv_csv){ .columns = columns, .kind = kind, .names = names };
    if (kind == CLV_CSV_JSON) {
        clv_text_bytes(&csv->text, "[", 1);
        return;
    }
    for (size_t i = 0; i < columns; ++i)
        clv_csv_string(csv, names[i]);
    clv_csv_end_row(csv);
    csv->rows = 0;
}

void clv_csv_end_row(clv_csv *csv)
{
    assert(csv->cells == csv->columns);
    csv->cells = 0;
    ++csv->rows;
    clv_text_bytes(&csv->text, csv->kind == CLV_CSV_JSON ? "}" : "\n", 1);
}

void clv_csv_end(clv_csv *csv)
{
    if (csv->kind == CLV_CSV_JSON) clv_text_bytes(&csv->text, "\n]\n", 3);
}

/* Appends the text of a number so that it does not depend on the locale: a character that C numbers do not have becomes
 * the decimal point. */
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
    if (csv->kind == CLV_CSV_JSON) name = "null";
    add_cell(csv, name, strlen(name));
    return true;
}

/* Writes the decimal digits of `value` to `text`, most significant first; returns their number. */
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

/* Appends the same text as the loop in clv_csv_float, for sizes that printf writes without an exponent. The product of
 * the value and 10^decimals is exact in this function: 24 bits times 5^12 are 52 bits. Returns false if the loop is
 * required. */
static bool add_usual_float(clv_csv *csv, float value)
{
    static const double tens[] = { 1e0, 1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
                                   1e7, 1e8, 1e9, 1e10, 1e11, 1e12 };
    const double size = fabs((double)value);
    if (!(size >= 1e-4 && size < 1e5)) return false;
    int before = -3; /* digits before the point; negative for values such as 0.00x */
    while (before <= 0 ? size * tens[-before] >= 1 : size >= tens[before])
        ++before;
    for (int precision = 6; precision <= 9; ++precision) {
        const int decimals = precision - before;
        const double digits = rint(size * tens[decimals]), back = digits / tens[decimals];
        uint64_t bits;
        memcpy(&bits, &back, sizeof bits);
        /* the decimal may lie halfway between two floats, within a double's precision */
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
    /* 9 digits always read back as the same float */
    for (int precision = 6; precision <= 9; ++precision) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (precision == 9 || strtof(digits, NULL) == value) break;
    }
    add_digits(csv, digits);
}

void clv_csv_double(clv_csv *csv, double value)
{
    char digits[32];
    if (add_not_finite(csv, value)) return;
    /* 17 digits always read back as the same double */
    for (int precision = 15; precision <= 17; ++precision) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (precision == 17 || strtod(digits, NULL) == value) break;
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

void clv_csv_unsigned(clv_csv *csv, uint64_t value)
{
    char text[24];
    add_cell(csv, text, put_digits(value, text));
}

void clv_csv_missing(clv_csv *csv)
{
    if (csv->kind == CLV_CSV_JSON)
        add_cell(csv, "null", 4);
    else if (csv->columns == 1) /* an empty line would not count as a row */
        add_cell(csv, "\"\"", 2);
    else
        begin_cell(csv);
}

void clv_csv_raw(clv_csv *csv, const char *number)
{
    add_cell(csv, number, strlen(number));
}

/* Returns whether a field must be in quotes. A field that is empty or blank must be, since a blank line is not a
 * row. */
static bool needs_quotes(char between, const char *value, size_t length)
{
    size_t blanks = 0;
    for (size_t i = 0; i < length; ++i) {
        if (value[i] == between || memchr("\"\r\n", value[i], 3)) return true;
        blanks += value[i] == ' ' || value[i] == '\t';
    }
    return blanks == length;
}

void clv_csv_text(clv_csv *csv, const char *value, size_t length)
{
    if (csv->kind == CLV_CSV_JSON) {
        begin_cell(csv);
        add_quoted(&csv->text, value, length);
        return;
    }
    if (!needs_quotes(csv->kind == CLV_CSV_TABS ? '\t' : ',', value, length)) {
        add_cell(csv, value, length);
        return;
    }
    add_cell(csv, "\"", 1);
    for (size_t i = 0; i < length; ++i) {
        if (value[i] == '"') clv_text_bytes(&csv->text, "\"", 1);
        clv_text_bytes(&csv->text, value + i, 1);
    }
    clv_text_bytes(&csv->text, "\"", 1);
}

void clv_csv_string(clv_csv *csv, const char *value)
{
    clv_csv_text(csv, value, strlen(value));
}

clv_status clv_csv_write(const clv_csv *csv, const char *path)
{
    if (csv->text.failed)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the table", path);
    const clv_part part = { csv->text.data, csv->text.length };
    return clv_parts_write(path, &part, 1);
}

void clv_csv_clear(clv_csv *csv)
{
    clv_text_clear(&csv->text);
    *csv = (clv_csv){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads NumPy records (.npy files of structured arrays) as a table, and writes the header of such a file. */
#include "host/io/tables/any.h"

#include "base/alloc.h"
#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 4096, NAME_ROOM = 128 };

typedef struct field {
    char name[NAME_ROOM];
    char kind; /* b i u f S U */
    bool swap;
    size_t size; /* bytes */
} field;

typedef struct records {
    const char *path, *at, *end; /* the place in the header's text, and its end */
    field *fields;
    size_t count, room, rows, row_bytes;
} records;

static clv_status wrong(const records *r, const char *why)
{
    return clv_fail(CLV_E_FORMAT,
                    "%s: %s; a table in a .npy file must be records of numbers and text, such as "
                    "from numpy.save of a structured array or of DataFrame.to_records(index=False)",
                    r->path, why);
}

static bool accept(records *r, char wanted)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n'))
        ++r->at;
    if (r->at == r->end || *r->at != wanted) return false;
    ++r->at;
    return true;
}

static bool read_string(records *r, char *out, size_t room)
{
    const char quote = accept(r, '\'') ? '\'' : accept(r, '"') ? '"' : '\0';
    size_t length = 0;
    if (!quote) return false;
    for (; r->at < r->end && *r->at != quote; ++r->at) {
        if (length + 1 == room || *r->at == '\\') return false;
        out[length++] = *r->at;
    }
    out[length] = '\0';
    return accept(r, quote);
}

static bool take_type(const char *type, field *f)
{
    static const union {
        uint16_t value;
        char bytes[2];
    } one = { .value = 1 };
    char *end;
    if (!strchr("<>|=", *type) || !*type || !strchr("biufSU", type[1]) || !type[1]) return false;
    f->kind = type[1];
    f->size = strtoul(type + 2, &end, 10);
    /* without this check, an empty file could promise any number of rows */
    if (*end || !isdigit((unsigned char)type[2]) || !f->size || f->size > 1 << 20) return false;
    f->swap = *type == (one.bytes[0] ? '>' : '<');
    if (f->kind == 'S') return true;
    if (f->kind == 'U') f->size *= 4;
    if (f->kind == 'U') return true;
    if (f->kind == 'b') return f->size == 1;
    if (f->kind == 'f') return f->size == 4 || f->size == 8;
    return f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8;
}

static clv_status read_fields(records *r)
{
    if (!accept(r, '[')) return wrong(r, "holds a plain array, whose columns have no names");
    while (!accept(r, ']')) {
        char type[32];
        if (r->count == MOST_FIELDS ||
            !clv_reserve(&r->fields, &r->room, r->count + 1, sizeof *r->fields))
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its fields", r->path);
        field *f = &r->fields[r->count];
        if (!accept(r, '(') || !read_string(r, f->name, sizeof f->name) || !accept(r, ',') ||
            !read_string(r, type, sizeof type) || !accept(r, ')'))
            return wrong(
                r, "its records have fields of more than one value, or names that are not plain");
        if (!take_type(type, f)) {
            char why[200];
            snprintf(why, sizeof why, "its field '%.100s' is of type %s", f->name, type);
            return wrong(r, why);
        }
        r->row_bytes += f->size;
        ++r->count;
        accept(r, ',');
    }
    return r->count ? CLV_OK : wrong(r, "its records have no fields");
}

static clv_status read_header(records *r)
{
    char key[32];
    bool fields = false, shape = false;
    if (!accept(r, '{')) return wrong(r, "its header is damaged");
    while (!accept(r, '}')) {
        if (!read_string(r, key, sizeof key) || !accept(r, ':'))
            return wrong(r, "its header is damaged");
        if (strcmp(key, "descr") == 0) {
            CLV_TRY(read_fields(r));
            fields = true;
        } else if (strcmp(key, "shape") == 0) {
            char *end;
            if (!accept(r, '(') || r->at == r->end || !isdigit((unsigned char)*r->at))
                return wrong(r, "it has no axis of rows");
            r->rows = strtoul(r->at, &end, 10);
            r->at = end;
            if (!accept(r, ',') || !accept(r, ')')) return wrong(r, "it has more than one axis");
            shape = true;
        } else { /* fortran_order has no effect for one axis */
            while (r->at < r->end && *r->at != ',' && *r->at != '}')
                ++r->at;
        }
        accept(r, ',');
    }
    return fields && shape ? CLV_OK : wrong(r, "its header is damaged");
}

static uint64_t bits_of(const field *f, const unsigned char *from)
{
    unsigned char own[8] = { 0 };
    for (size_t i = 0; i < f->size; ++i)
        own[i] = from[f->swap ? f->size - 1 - i : i];
    uint8_t b8;
    uint16_t b16;
    uint32_t b32;
    uint64_t b64;
    memcpy(&b8, own, 1), memcpy(&b16, own, 2), memcpy(&b32, own, 4), memcpy(&b64, own, 8);
    return f->size == 1 ? b8 : f->size == 2 ? b16 : f->size == 4 ? b32 : b64;
}

static void add_code_point(clv_text *text, uint32_t c)
{
    char bytes[4];
    size_t n = 0;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xC0 | c >> 6), bytes[n++] = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xE0 | c >> 12), bytes[n++] = (char)(0x80 | (c >> 6 & 63));
        bytes[n++] = (char)(0x80 | (c & 63));
    } else {
        bytes[n++] = (char)(0xF0 | (c >> 18 & 7)), bytes[n++] = (char)(0x80 | (c >> 12 & 63));
        bytes[n++] = (char)(0x80 | (c >> 6 & 63)), bytes[n++] = (char)(0x80 | (c & 63));
    }
    clv_text_bytes(text, bytes, n);
}

/* Adds a text. Returns false if it contains a NUL. NULs at its end are dropped, since they only fill the field. */
static bool add_string(clv_csv *csv, const field *f, const unsigned char *from)
{
    const size_t unit = f->kind == 'U' ? 4 : 1;
    const field one = { .size = unit, .swap = f->swap };
    clv_text text = { 0 };
    size_t length = f->size;
    bool whole = true;
    while (length && !bits_of(&one, from + length - unit))
        length -= unit;
    for (size_t i = 0; i < length && unit == 4; i += unit)
        add_code_point(&text, (uint32_t)bits_of(&one, from + i));
    if (unit == 1) clv_text_bytes(&text, from, length);
    if (!text.failed) {
        whole = !memchr(clv_text_get(&text), 0, text.length);
        clv_csv_text(csv, clv_text_get(&text), text.length);
    }
    csv->text.failed |= text.failed;
    clv_text_clear(&text);
    return whole;
}

static bool add_value(clv_csv *csv, const field *f, const unsigned char *from)
{
    if (f->kind == 'S' || f->kind == 'U') return add_string(csv, f, from);
    const uint64_t bits = bits_of(f, from);
    if (f->kind == 'f' && f->size == 4) {
        const uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof value);
        clv_csv_float(csv, value);
    } else if (f->kind == 'f') {
        double value;
        memcpy(&value, &bits, sizeof value);
        clv_csv_double(csv, value);
    } else if (f->kind == 'i') {
        const int drop = (int)(64 - 8 * f->size);
        clv_csv_int(csv, (int64_t)(bits << drop) >> drop);
    } else {
        clv_csv_unsigned(csv, bits);
    }
    return true;
}

static clv_status write_rows(const records *r, const unsigned char *data, clv_text *text)
{
    const char **names = clv_alloc(r->count, sizeof *names);
    if (!names) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    for (size_t i = 0; i < r->count; ++i)
        names[i] = r->fields[i].name;
    clv_csv csv;
    clv_status status = CLV_OK;
    clv_csv_begin(&csv, names, r->count);
    for (size_t row = 0; row < r->rows && !status && !csv.text.failed; ++row) {
        for (size_t i = 0; i < r->count && !status; data += r->fields[i].size, ++i)
            if (!add_value(&csv, &r->fields[i], data) && !csv.text.failed)
                status = clv_fail(CLV_E_FORMAT,
                                  "%s: row %zu, column %s: the text has a NUL byte, which a table "
                                  "cannot hold; remove it",
                                  r->path, row + 1, r->fields[i].name);
        if (!status && !csv.text.failed) /* after a failure, cells of the row may be missing */
            clv_csv_end_row(&csv);
    }
    *text = csv.text;
    clv_free(names);
    return status;
}

clv_status clv_npy_records(const char *path, const char *data, size_t length, clv_text *text,
                           char (**codes)[3])
{
    const unsigned char *bytes = (const unsigned char *)data;
    const size_t begin = length > 6 && bytes[6] == 1 ? 10 : 12;
    records r = { .path = path };
    *codes = NULL;
    if (length < begin) return wrong(&r, "ends within its header");
    size_t header = bytes[8] | (size_t)bytes[9] << 8;
    if (begin == 12) header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (header > length - begin) return wrong(&r, "ends within its header");
    r.at = data + begin, r.end = r.at + header;
    clv_status status = read_header(&r);
    size_t need = 0;
    if (!status && (!clv_size_mul(r.rows, r.row_bytes, &need) || need != length - begin - header))
        status =
            clv_fail(CLV_E_FORMAT, "%s has %zu bytes of records, but its header says %zu times %zu",
                     path, length - begin - header, r.rows, r.row_bytes);
    if (!status) status = write_rows(&r, bytes + begin + header, text);
    if (!status && !(*codes = clv_zalloc(r.count, sizeof **codes)))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (size_t i = 0; i < r.count && !status; ++i) {
        const field *f = &r.fields[i];
        (*codes)[i][0] = f->kind == 'U' || f->kind == 'S' ? '\0' : f->kind == 'b' ? 'u' : f->kind;
        (*codes)[i][1] = (char)('0' + f->size % 10);
    }
    clv_free(r.fields);
    return status;
}

void clv_npy_records_begin(clv_text *text, const char *const *names, const char *const *codes,
                           size_t count, size_t rows)
{
    static const union {
        uint16_t value;
        char bytes[2];
    } one = { .value = 1 };
    enum { ROWS_ROOM = 20 };
    clv_text dict = { 0 };
    char shape[ROWS_ROOM + 16];
    clv_text_add(&dict, "{'descr': [");
    for (size_t i = 0; i < count; ++i) {
        clv_text_add(&dict, "%s('", i ? ", " : "");
        for (const char *c = names[i]; *c; ++c) /* escapes what a Python literal may not contain */
            clv_text_add(&dict, *c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
        clv_text_add(&dict, "', '%c%s')",
                     *codes[i] == 'S' ? '|'
                     : one.bytes[0]   ? '<'
                                      : '>',
                     codes[i]);
    }
    clv_text_add(&dict, "], 'fortran_order': False, 'shape': ");
    const int used = snprintf(shape, sizeof shape, "(%zu,), }", rows);
    clv_text_add(&dict, "%s%*s", shape, ROWS_ROOM + 8 - used, "");
    const bool wide = dict.length > 0xFF00; /* only version 2 has room for a longer header */
    const size_t front = wide ? 12 : 10, size = (front + dict.length + 1 + 63) / 64 * 64;
    unsigned char magic[12] = "\x93NUMPY";
    magic[6] = wide ? 2 : 1;
    for (size_t i = 0; i < front - 8; ++i)
        magic[8 + i] = (unsigned char)((size - front) >> 8 * i & 255);
    clv_text_bytes(text, magic, front);
    clv_text_bytes(text, clv_text_get(&dict), dict.length);
    clv_text_add(text, "%*s\n", (int)(size - front - dict.length - 1), "");
    text->failed |= dict.failed;
    clv_text_clear(&dict);
}

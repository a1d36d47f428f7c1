/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the Parquet files that parquet.c writes: finds the columns in the footer, and goes through all of them at the
 * same time, row by row. Everything in the file is checked before it is used. */
#include "host/io/tables/csv.h"
#include "host/io/tables/parquet.h"
#include "host/io/tables/parquet_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 4096, MOST_DEPTH = 16, NAME_ROOM = 128 };

/* A place in the bytes of the footer or of a page's header. `bad`: something was wrong, all else is worthless. */
typedef struct cursor {
    const unsigned char *at, *end;
    bool bad;
} cursor;

typedef struct column {
    char name[NAME_ROOM];
    unsigned type;
    bool is_unsigned;
    size_t size; /* bytes of a number */
} column;

/* How far a column has been read. */
typedef struct place {
    size_t next;         /* the chunk to be opened next */
    cursor pages, page;  /* what is left of the chunk, and of its page */
    uint64_t left, here; /* values left of the chunk, those of this page included; of the page */
} place;

typedef struct chunk {
    uint64_t offset, bytes, values;
} chunk;

typedef struct source {
    const char *path;
    const unsigned char *data;
    size_t length;
    column *columns;
    size_t count, room;
    chunk *chunks; /* `count` of each group */
    size_t chunk_count, chunk_room;
    uint64_t rows;
    const char *other; /* a form that is not read; NULL: none */
} source;

static clv_status damaged(const source *s, const char *what)
{
    return clv_fail(CLV_E_FORMAT, "%s: a damaged Parquet file: %s", s->path, what);
}

static unsigned next_byte(cursor *c)
{
    if (c->bad || c->at == c->end) {
        c->bad = true;
        return 0;
    }
    return *c->at++;
}

static uint64_t next_varint(cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned byte = next_byte(c);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return value;
    }
    c->bad = true;
    return 0;
}

static int64_t next_int(cursor *c)
{
    const uint64_t value = next_varint(c);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void skip_bytes(cursor *c, uint64_t count)
{
    if (c->bad || count > (uint64_t)(c->end - c->at))
        c->bad = true;
    else
        c->at += count;
}

/* Reads the head of a field: returns its type, and its number in *field, which holds that of the one before. */
static unsigned next_field(cursor *c, unsigned *field)
{
    const unsigned head = next_byte(c), type = head & 15;
    if (type == THRIFT_STOP || c->bad) return THRIFT_STOP;
    *field = head >> 4 ? *field + (head >> 4) : (unsigned)(next_int(c) & 0x7FFF);
    return type;
}

static size_t next_list(cursor *c, unsigned *type)
{
    const unsigned head = next_byte(c);
    *type = head & 15;
    const uint64_t count = head >> 4 == 15 ? next_varint(c) : head >> 4;
    if (count > (uint64_t)(c->end - c->at)) c->bad = true; /* each element takes a byte or more */
    return c->bad ? 0 : (size_t)count;
}

static void skip_value(cursor *c, unsigned type, int depth)
{
    unsigned inner, field = 0;
    if (depth > MOST_DEPTH) c->bad = true;
    if (c->bad) return;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        return;
    case THRIFT_BYTE:
        skip_bytes(c, 1);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        next_varint(c);
        return;
    case THRIFT_DOUBLE:
        skip_bytes(c, 8);
        return;
    case THRIFT_BINARY:
        skip_bytes(c, next_varint(c));
        return;
    case THRIFT_LIST:
    case THRIFT_SET:
        for (size_t left = next_list(c, &inner); left && !c->bad; --left)
            if (inner == THRIFT_TRUE || inner == THRIFT_FALSE) /* a byte each in lists */
                skip_bytes(c, 1);
            else
                skip_value(c, inner, depth + 1);
        return;
    case THRIFT_STRUCT:
        while ((inner = next_field(c, &field)) != THRIFT_STOP)
            skip_value(c, inner, depth + 1);
        return;
    default: /* maps: none of the structs that are read here has one */
        c->bad = true;
    }
}

static void next_name(cursor *c, char name[NAME_ROOM])
{
    const uint64_t length = next_varint(c);
    const char *from = (const char *)c->at;
    skip_bytes(c, length);
    if (c->bad || length >= NAME_ROOM || memchr(from, 0, (size_t)length)) {
        c->bad = true;
        return;
    }
    memcpy(name, from, (size_t)length);
    name[length] = '\0';
}

/* A SchemaElement. The first one is the root. */
static clv_status read_element(source *s, cursor *c, bool root)
{
    unsigned type, field = 0;
    int64_t repetition = 0, children = 0, converted = -1;
    column found = { .type = 0 };
    while ((type = next_field(c, &field)) != THRIFT_STOP)
        if (field == 1 && type == THRIFT_I32)
            found.type = (unsigned)next_int(c);
        else if (field == 3 && type == THRIFT_I32)
            repetition = next_int(c);
        else if (field == 4 && type == THRIFT_BINARY)
            next_name(c, found.name);
        else if (field == 5 && type == THRIFT_I32)
            children = next_int(c);
        else if (field == 6 && type == THRIFT_I32)
            converted = next_int(c);
        else
            skip_value(c, type, 0);
    if (c->bad) return damaged(s, "its list of columns");
    if (root) return CLV_OK;
    if (children)
        s->other = "columns within columns";
    else if (repetition)
        s->other = "columns that may have missing values";
    else if (found.type != PARQUET_INT32 && found.type != PARQUET_INT64 &&
             found.type != PARQUET_FLOAT && found.type != PARQUET_DOUBLE &&
             found.type != PARQUET_BYTE_ARRAY)
        s->other = "columns that are neither 4 or 8 bytes wide nor text";
    found.is_unsigned = converted >= 11 && converted <= 14;
    found.size = found.type == PARQUET_INT32 || found.type == PARQUET_FLOAT ? 4 : 8;
    if (s->count == MOST_COLUMNS ||
        !clv_reserve(&s->columns, &s->room, s->count + 1, sizeof *s->columns))
        return clv_fail(CLV_E_MEMORY, "%s: no memory for its columns", s->path);
    s->columns[s->count++] = found;
    return CLV_OK;
}

/* ColumnMetaData. */
static void read_meta(source *s, cursor *c, chunk *to)
{
    unsigned type, field = 0;
    while ((type = next_field(c, &field)) != THRIFT_STOP)
        if (field == 4 && type == THRIFT_I32) {
            if (next_int(c)) s->other = "compressed columns";
        } else if (field == 5 && type == THRIFT_I64)
            to->values = (uint64_t)next_int(c);
        else if (field == 7 && type == THRIFT_I64)
            to->bytes = (uint64_t)next_int(c);
        else if (field == 9 && type == THRIFT_I64)
            to->offset = (uint64_t)next_int(c);
        else if (field == 11 && type == THRIFT_I64) {
            next_int(c);
            s->other = "columns with dictionaries";
        } else
            skip_value(c, type, 0);
}

/* A RowGroup: one ColumnChunk for each column. */
static clv_status read_group(source *s, cursor *c)
{
    unsigned type, field = 0;
    size_t columns = 0;
    while ((type = next_field(c, &field)) != THRIFT_STOP) {
        unsigned inner;
        if (field != 1 || type != THRIFT_LIST) {
            skip_value(c, type, 0);
            continue;
        }
        columns = next_list(c, &inner);
        if (columns != s->count || inner != THRIFT_STRUCT)
            return damaged(s, "a group of rows with other columns");
        if (!clv_reserve(&s->chunks, &s->chunk_room, s->chunk_count + columns, sizeof *s->chunks))
            return clv_fail(CLV_E_MEMORY, "%s: no memory for its columns", s->path);
        for (size_t i = 0; i < columns && !c->bad; ++i) {
            chunk *to = &s->chunks[s->chunk_count++];
            unsigned of_chunk = 0, kind;
            *to = (chunk){ 0 };
            while ((kind = next_field(c, &of_chunk)) != THRIFT_STOP)
                if (of_chunk == 3 && kind == THRIFT_STRUCT)
                    read_meta(s, c, to);
                else
                    skip_value(c, kind, 0);
        }
    }
    return c->bad || columns != s->count ? damaged(s, "its groups of rows") : CLV_OK;
}

static clv_status read_footer(source *s, cursor *c)
{
    unsigned type, field = 0, inner;
    while ((type = next_field(c, &field)) != THRIFT_STOP) {
        if (field == 2 && type == THRIFT_LIST) {
            const size_t count = next_list(c, &inner);
            for (size_t i = 0; i < count && !c->bad; ++i)
                CLV_TRY(read_element(s, c, i == 0));
        } else if (field == 3 && type == THRIFT_I64) {
            s->rows = (uint64_t)next_int(c);
        } else if (field == 4 && type == THRIFT_LIST) {
            const size_t count = next_list(c, &inner);
            for (size_t i = 0; i < count && !c->bad; ++i)
                CLV_TRY(read_group(s, c));
        } else {
            skip_value(c, type, 0);
        }
    }
    if (c->bad || !s->count) return damaged(s, "its footer");
    return CLV_OK;
}

/* Reads a PageHeader. Returns false if the page is in another form. */
static bool read_page(source *s, cursor *c, uint64_t *bytes, uint64_t *values)
{
    unsigned type, field = 0;
    int64_t kind = -1, encoding = -1;
    *bytes = *values = 0;
    while ((type = next_field(c, &field)) != THRIFT_STOP)
        if (field == 1 && type == THRIFT_I32)
            kind = next_int(c);
        else if (field == 3 && type == THRIFT_I32)
            *bytes = (uint64_t)next_int(c);
        else if (field == 5 && type == THRIFT_STRUCT) {
            unsigned of_page = 0;
            while ((type = next_field(c, &of_page)) != THRIFT_STOP)
                if (of_page == 1 && type == THRIFT_I32)
                    *values = (uint64_t)next_int(c);
                else if (of_page == 2 && type == THRIFT_I32)
                    encoding = next_int(c);
                else
                    skip_value(c, type, 0);
        } else
            skip_value(c, type, 0);
    if (!c->bad && (kind != 0 || encoding != 0)) s->other = "pages that are not plain";
    return !c->bad && !s->other;
}

/* Moves to the next page that has values; a column without one ends with `here` = 0. `rows`: how many are missing. */
static clv_status turn_page(source *s, place *p, uint64_t rows)
{
    while (!p->left && p->next < s->chunk_count) {
        const chunk *from = &s->chunks[p->next];
        p->next += s->count;
        if (from->offset > s->length || from->bytes > s->length - from->offset)
            return damaged(s, "a column lies beyond its end");
        const unsigned char *at = s->data + from->offset;
        p->pages = (cursor){ at, at + from->bytes, false };
        p->left = from->values;
    }
    uint64_t bytes;
    if (!p->left) return CLV_OK;
    if (!read_page(s, &p->pages, &bytes, &p->here))
        return s->other ? CLV_OK : damaged(s, "the header of a page");
    if (!p->here || p->here > p->left || p->here > rows ||
        bytes > (uint64_t)(p->pages.end - p->pages.at))
        return damaged(s, "a page of another length");
    p->page = (cursor){ p->pages.at, p->pages.at + bytes, false };
    p->pages.at += bytes;
    return CLV_OK;
}

static clv_status next_value(source *s, const column *of, place *p, uint64_t rows,
                             const unsigned char **value, size_t *length)
{
    if (!p->here) CLV_TRY(turn_page(s, p, rows));
    if (s->other) return CLV_OK;
    if (!p->here) return damaged(s, "columns of different lengths");
    --p->here, --p->left;
    *length = of->size;
    if (of->type == PARQUET_BYTE_ARRAY) {
        const unsigned char *four = p->page.at;
        skip_bytes(&p->page, 4);
        if (p->page.bad) return damaged(s, "a page of another length");
        *length = four[0] | (size_t)four[1] << 8 | (size_t)four[2] << 16 | (size_t)four[3] << 24;
    }
    *value = p->page.at;
    skip_bytes(&p->page, *length);
    return p->page.bad ? damaged(s, "a page of another length") : CLV_OK;
}

static void add_number(clv_csv *csv, const column *of, const unsigned char *from)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < of->size; ++i)
        bits |= (uint64_t)from[i] << 8 * i;
    if (of->type == PARQUET_FLOAT) {
        const uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof value);
        clv_csv_float(csv, value);
    } else if (of->type == PARQUET_DOUBLE) {
        double value;
        memcpy(&value, &bits, sizeof value);
        clv_csv_double(csv, value);
    } else if (of->is_unsigned) {
        clv_csv_unsigned(csv, bits);
    } else {
        clv_csv_int(csv, of->size == 4 ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits);
    }
}

static clv_status add_row(source *s, place *places, uint64_t row, clv_csv *csv)
{
    for (size_t i = 0; i < s->count; ++i) {
        const column *of = &s->columns[i];
        const unsigned char *value = NULL;
        size_t length = 0;
        CLV_TRY(next_value(s, of, &places[i], s->rows - row, &value, &length));
        if (s->other) return CLV_OK;
        if (of->type != PARQUET_BYTE_ARRAY)
            add_number(csv, of, value);
        else if (length && memchr(value, 0, length))
            return clv_fail(CLV_E_FORMAT,
                            "%s: row %llu, column %s: the text has a NUL byte, which no table may "
                            "hold; expected text without it",
                            s->path, (unsigned long long)row + 1, of->name);
        else
            clv_csv_text(csv, (const char *)value, length);
    }
    clv_csv_end_row(csv);
    return CLV_OK;
}

static void name_code(const column *of, char code[3])
{
    const bool is_float = of->type == PARQUET_FLOAT || of->type == PARQUET_DOUBLE;
    if (of->type == PARQUET_BYTE_ARRAY) return;
    code[0] = is_float ? 'f' : of->is_unsigned ? 'u' : 'i';
    code[1] = (char)('0' + of->size);
}

static clv_status read_columns(source *s, clv_text *text, char (**codes)[3])
{
    const char **names = clv_alloc(s->count, sizeof *names);
    place *places = clv_zalloc(s->count, sizeof *places);
    clv_csv csv = { 0 };
    clv_status status = CLV_OK;
    *codes = clv_zalloc(s->count, sizeof **codes);
    if (!names || !places || !*codes) {
        status = clv_fail(CLV_E_MEMORY, "%s: no memory for its columns", s->path);
        goto cleanup;
    }
    for (size_t i = 0; i < s->count; ++i) {
        names[i] = s->columns[i].name, places[i].next = i;
        name_code(&s->columns[i], (*codes)[i]);
    }
    clv_csv_begin(&csv, names, s->count);
    for (uint64_t row = 0; row < s->rows && !status && !s->other && !csv.text.failed; ++row)
        status = add_row(s, places, row, &csv);
    if (!status && csv.text.failed)
        status = clv_fail(CLV_E_MEMORY, "%s: no memory for its table", s->path);
    for (size_t i = 0; i < s->count && !status && !s->other; ++i)
        if (places[i].here)
            status = damaged(s, "columns of different lengths");
        else /* values beyond the last row are damage, too */
            status = turn_page(s, &places[i], 0);
    if (!status && !s->other) {
        *text = csv.text;
        csv.text = (clv_text){ 0 };
    }
cleanup:
    clv_csv_clear(&csv);
    clv_free(names), clv_free(places);
    return status;
}

clv_status clv_parquet_records(const char *path, const char *data, size_t length, clv_text *text,
                               char (**codes)[3])
{
    source s = { .path = path, .data = (const unsigned char *)data, .length = length };
    *codes = NULL;
    if (length < 12 || memcmp(data + length - 4, "PAR1", 4) != 0)
        return damaged(&s, "it ends before its footer");
    const unsigned char *four = s.data + length - 8;
    const size_t footer =
        four[0] | (size_t)four[1] << 8 | (size_t)four[2] << 16 | (size_t)four[3] << 24;
    if (footer > length - 12) return damaged(&s, "its footer is longer than the file");
    cursor c = { four - footer, four, false };
    clv_status status = read_footer(&s, &c);
    if (!status && !s.other) status = read_columns(&s, text, codes);
    if (!status && s.other)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: a Parquet file with %s; Cleave reads such as it writes itself: "
                          "pandas.read_parquet(...).to_csv(..., index=False) makes a table that it "
                          "reads",
                          path, s.other);
    clv_free(s.columns), clv_free(s.chunks);
    if (status) clv_free(*codes), *codes = NULL;
    return status;
}

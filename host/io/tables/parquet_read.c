/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tables from Parquet files: finds the columns in the footer, and reads all columns at the same time, row by row.
 * Everything in the file is checked before it is used. */
#include "host/io/tables/csv.h"
#include "host/io/tables/parquet.h"
#include "host/io/tables/parquet_pages.h"
#include "host/io/tables/parquet_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#include <math.h>
#include <string.h>

enum { MOST_COLUMNS = 4096, DECIMAL = 5 };

typedef clv_parquet_column column;
typedef clv_parquet_place place;
typedef clv_parquet_chunk chunk;
typedef clv_parquet_file source;

static void next_name(clv_thrift *c, char name[CLV_PARQUET_NAME])
{
    const uint64_t length = clv_thrift_varint(c);
    const char *from = (const char *)c->at;
    clv_thrift_skip(c, length);
    if (c->bad || length >= CLV_PARQUET_NAME || memchr(from, 0, (size_t)length)) {
        c->bad = true;
        return;
    }
    memcpy(name, from, (size_t)length);
    name[length] = '\0';
}

/* Reads a SchemaElement, which describes a column. The first one is the root of the schema. */
static clv_status read_element(source *s, clv_thrift *c, bool root)
{
    unsigned type, field = 0;
    int64_t repetition = 0, children = 0, converted = -1;
    column found = { .type = 0 };
    while ((type = clv_thrift_field(c, &field)) != THRIFT_STOP)
        if (field == 1 && type == THRIFT_I32)
            found.type = (unsigned)clv_thrift_int(c);
        else if (field == 3 && type == THRIFT_I32)
            repetition = clv_thrift_int(c);
        else if (field == 4 && type == THRIFT_BINARY)
            next_name(c, found.name);
        else if (field == 5 && type == THRIFT_I32)
            children = clv_thrift_int(c);
        else if (field == 6 && type == THRIFT_I32)
            converted = clv_thrift_int(c);
        else
            clv_thrift_skip_value(c, type);
    if (c->bad) return clv_parquet_damaged(s, "its list of columns");
    if (root) return CLV_OK;
    if (children || repetition > 1) s->other = "lists, or columns within columns";
    if (children) return CLV_OK;
    found.optional = repetition == 1;
    if (converted == DECIMAL)
        s->other = "columns of decimal numbers";
    else if (found.type != PARQUET_BOOLEAN && found.type != PARQUET_INT32 &&
             found.type != PARQUET_INT64 && found.type != PARQUET_FLOAT &&
             found.type != PARQUET_DOUBLE && found.type != PARQUET_BYTE_ARRAY)
        s->other = "columns that are neither numbers of 4 or 8 bytes nor text nor truth values";
    found.is_unsigned = converted >= 11 && converted <= 14;
    found.size = found.type == PARQUET_INT32 || found.type == PARQUET_FLOAT ? 4 : 8;
    if (s->count == MOST_COLUMNS ||
        !clv_reserve(&s->columns, &s->room, s->count + 1, sizeof *s->columns))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its columns", s->path);
    s->columns[s->count++] = found;
    return CLV_OK;
}

/* Reads a chunk's ColumnMetaData. */
static void read_meta(clv_thrift *c, chunk *to)
{
    unsigned type, field = 0;
    uint64_t dictionary = 0;
    while ((type = clv_thrift_field(c, &field)) != THRIFT_STOP)
        if (field == 4 && type == THRIFT_I32) {
            to->codec = (unsigned)clv_thrift_int(c);
        } else if (field == 5 && type == THRIFT_I64)
            to->values = (uint64_t)clv_thrift_int(c);
        else if (field == 7 && type == THRIFT_I64)
            to->bytes = (uint64_t)clv_thrift_int(c);
        else if (field == 9 && type == THRIFT_I64)
            to->offset = (uint64_t)clv_thrift_int(c);
        else if (field == 11 && type == THRIFT_I64)
            dictionary = (uint64_t)clv_thrift_int(c);
        else
            clv_thrift_skip_value(c, type);
    if (dictionary && dictionary < to->offset) to->offset = dictionary;
}

/* Reads a RowGroup, which has one ColumnChunk for each column. */
static clv_status read_group(source *s, clv_thrift *c)
{
    unsigned type, field = 0;
    size_t columns = 0;
    while ((type = clv_thrift_field(c, &field)) != THRIFT_STOP) {
        unsigned inner;
        if (field != 1 || type != THRIFT_LIST) {
            clv_thrift_skip_value(c, type);
            continue;
        }
        columns = clv_thrift_list(c, &inner);
        if (columns != s->count || inner != THRIFT_STRUCT)
            return clv_parquet_damaged(s, "a group of rows with other columns");
        if (!clv_reserve(&s->chunks, &s->chunk_room, s->chunk_count + columns, sizeof *s->chunks))
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its columns", s->path);
        for (size_t i = 0; i < columns && !c->bad; ++i) {
            chunk *to = &s->chunks[s->chunk_count++];
            unsigned of_chunk = 0, kind;
            *to = (chunk){ 0 };
            while ((kind = clv_thrift_field(c, &of_chunk)) != THRIFT_STOP)
                if (of_chunk == 3 && kind == THRIFT_STRUCT)
                    read_meta(c, to);
                else
                    clv_thrift_skip_value(c, kind);
        }
    }
    return c->bad || columns != s->count ? clv_parquet_damaged(s, "its groups of rows") : CLV_OK;
}

static clv_status read_footer(source *s, clv_thrift *c)
{
    unsigned type, field = 0, inner;
    while ((type = clv_thrift_field(c, &field)) != THRIFT_STOP) {
        if (field == 2 && type == THRIFT_LIST) {
            const size_t count = clv_thrift_list(c, &inner);
            for (size_t i = 0; i < count && !c->bad; ++i)
                CLV_TRY(read_element(s, c, i == 0));
        } else if (field == 3 && type == THRIFT_I64) {
            s->rows = (uint64_t)clv_thrift_int(c);
        } else if (field == 4 && type == THRIFT_LIST) {
            const size_t count = clv_thrift_list(c, &inner);
            for (size_t i = 0; i < count && !c->bad; ++i)
                CLV_TRY(read_group(s, c));
        } else {
            clv_thrift_skip_value(c, type);
        }
    }
    if (c->bad || !s->count) return clv_parquet_damaged(s, "its footer");
    return CLV_OK;
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

static clv_status add_value(const source *s, const column *of, uint64_t row,
                            const clv_parquet_value *value, clv_csv *csv)
{
    const bool text = of->type == PARQUET_BYTE_ARRAY;
    if (text && value->length && memchr(value->at, 0, value->length))
        return clv_fail(CLV_E_FORMAT,
                        "%s: row %llu, column %s: the text has a NUL byte, which a table cannot "
                        "hold; remove it",
                        s->path, (unsigned long long)row + 1, of->name);
    /* clv_csv_text puts an empty text in quotes, so that a line with no other cell is a row */
    if (text)
        clv_csv_text(csv, value->at ? (const char *)value->at : "", value->length);
    else if (!value->at)
        clv_csv_double(csv, (double)NAN);
    else if (of->type == PARQUET_BOOLEAN)
        clv_csv_string(csv, *value->at ? "True" : "False"); /* pandas writes truth values so */
    else
        add_number(csv, of, value->at);
    return CLV_OK;
}

static clv_status add_row(source *s, place *places, uint64_t row, clv_csv *csv)
{
    for (size_t i = 0; i < s->count; ++i) {
        clv_parquet_value value;
        CLV_TRY(clv_parquet_next(s, &s->columns[i], &places[i], s->rows - row, &value));
        if (s->other) return CLV_OK;
        CLV_TRY(add_value(s, &s->columns[i], row, &value, csv));
        s->missing_texts += s->columns[i].type == PARQUET_BYTE_ARRAY && !value.at;
    }
    clv_csv_end_row(csv);
    return CLV_OK;
}

/* Returns the limit of a table's text in bytes. Without it, a run of a few bytes could stand for millions of rows. */
static size_t most_text(const source *s)
{
    enum { SMALL = 64 << 20, TIMES = 1024, MOST = INT32_MAX };
    return s->length < (MOST - SMALL) / TIMES ? SMALL + TIMES * s->length : (size_t)MOST;
}

static void name_code(const column *of, char code[3])
{
    const bool is_float = of->type == PARQUET_FLOAT || of->type == PARQUET_DOUBLE;
    if (of->type == PARQUET_BYTE_ARRAY || of->type == PARQUET_BOOLEAN) return;
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
    /* a number of 8 bytes becomes a text of 2 bytes or more */
    s->most_made = 4 * (uint64_t)most_text(s);
    if (!names || !places || !*codes) {
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for its columns", s->path);
        goto cleanup;
    }
    for (size_t i = 0; i < s->count; ++i) {
        names[i] = s->columns[i].name, places[i].next = i;
        name_code(&s->columns[i], (*codes)[i]);
    }
    clv_csv_begin(&csv, names, s->count);
    for (uint64_t row = 0; row < s->rows && !status && !s->other && !csv.text.failed; ++row) {
        status = add_row(s, places, row, &csv);
        if (!status && csv.text.length > most_text(s))
            status =
                clv_fail(CLV_E_FORMAT,
                         "%s: its table would have more than %zu bytes as text, which is more than "
                         "Cleave accepts from a file of %zu bytes; split it into several files",
                         s->path, most_text(s), s->length);
    }
    if (!status && csv.text.failed)
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for its table", s->path);
    for (size_t i = 0; i < s->count && !status && !s->other; ++i)
        if (places[i].here)
            status = clv_parquet_damaged(s, "columns of different lengths");
        else /* a page with values beyond the last row is damage, too */
            status = clv_parquet_turn(s, &s->columns[i], &places[i], 0);
    if (!status && !s->other) {
        *text = csv.text;
        csv.text = (clv_text){ 0 };
        if (s->missing_texts)
            clv_log(CLV_LOG_WARN, "%s: %llu missing texts in its columns are read as empty texts",
                    s->path, (unsigned long long)s->missing_texts);
    }
cleanup:
    clv_csv_clear(&csv);
    for (size_t i = 0; places && i < s->count; ++i)
        clv_parquet_place_clear(&places[i]);
    clv_free(names), clv_free(places);
    return status;
}

clv_status clv_parquet_records(const char *path, const char *data, size_t length, clv_text *text,
                               char (**codes)[3])
{
    source s = { .path = path, .data = (const unsigned char *)data, .length = length };
    *codes = NULL;
    if (length < 12 || memcmp(data + length - 4, "PAR1", 4) != 0)
        return clv_parquet_damaged(&s, "it ends before its footer");
    const unsigned char *four = s.data + length - 8;
    const size_t footer =
        four[0] | (size_t)four[1] << 8 | (size_t)four[2] << 16 | (size_t)four[3] << 24;
    if (footer > length - 12) return clv_parquet_damaged(&s, "its footer is longer than the file");
    clv_thrift c = { four - footer, four, false };
    clv_status status = read_footer(&s, &c);
    if (!status && !s.other) status = read_columns(&s, text, codes);
    if (!status && s.other)
        status = clv_fail(
            CLV_E_FORMAT,
            "%s: a Parquet file with %s, which is not supported; expected columns of numbers, "
            "texts or booleans, plain or with dictionaries, uncompressed or compressed with "
            "Snappy, gzip or Zstandard. pandas.read_parquet(...).to_csv(..., index=False) makes a "
            "table that can be read",
            path, s.other);
    clv_free(s.columns), clv_free(s.chunks);
    if (status) clv_free(*codes), *codes = NULL;
    return status;
}

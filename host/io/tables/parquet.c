/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Apache Parquet files: format version 1, required columns, PLAIN encoding, no compression. The footer is in
 * Thrift's compact protocol: a field's head is its type and the difference between its number and the previous field's;
 * integers are zigzag varints. Comments name the fields as parquet.thrift does. */
#include "host/io/tables/parquet.h"

#include "host/io/tables/parquet_parts.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_PAGE = 0, PLAIN = 0, RLE = 3, UNCOMPRESSED = 0, REQUIRED = 0, UTF8 = 0, UINT_32 = 13 };

static void add_byte(clv_text *out, unsigned byte)
{
    const unsigned char one = (unsigned char)byte;
    clv_text_bytes(out, &one, 1);
}

static void add_varint(clv_text *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        add_byte(out, (unsigned)(value & 0x7F) | 0x80);
    add_byte(out, (unsigned)value);
}

static void add_field(clv_text *out, unsigned step, unsigned type)
{
    add_byte(out, step << 4 | type);
}

static void add_int(clv_text *out, unsigned step, unsigned type, int64_t value)
{
    add_field(out, step, type);
    add_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void add_string(clv_text *out, const char *text)
{
    add_varint(out, strlen(text));
    clv_text_bytes(out, text, strlen(text));
}

static void add_list(clv_text *out, unsigned step, unsigned type, size_t count)
{
    add_field(out, step, THRIFT_LIST);
    add_byte(out, (count < 15 ? (unsigned)count : 15u) << 4 | type);
    if (count >= 15) add_varint(out, count);
}

static size_t size_of(const char *code)
{
    return *code == 'S' ? strtoul(code + 1, NULL, 10) : (size_t)(code[1] - '0');
}

static unsigned type_of(const char *code)
{
    if (*code == 'S') return PARQUET_BYTE_ARRAY;
    if (*code == 'f') return size_of(code) == 4 ? PARQUET_FLOAT : PARQUET_DOUBLE;
    return size_of(code) == 4 ? PARQUET_INT32 : PARQUET_INT64;
}

static void write_out(clv_parquet *p, const void *bytes, size_t count, clv_text *out)
{
    clv_text_bytes(out, bytes, count);
    p->offset += count;
}

void clv_parquet_begin(clv_parquet *p, const char *const *names, const char *const *codes,
                       size_t count, clv_text *out)
{
    *p = (clv_parquet){ .names = names, .codes = codes, .count = count };
    for (size_t i = 0; i < count; ++i)
        p->row_bytes += size_of(codes[i]);
    write_out(p, "PAR1", 4, out);
}

/* Appends the values of one column of `records`; the length of each text precedes it. */
static void add_values(const clv_parquet *p, size_t column, const char *records, size_t rows,
                       clv_text *out)
{
    size_t offset = 0;
    for (size_t i = 0; i < column; ++i)
        offset += size_of(p->codes[i]);
    const size_t size = size_of(p->codes[column]);
    const bool text = *p->codes[column] == 'S';
    for (size_t row = 0; row < rows; ++row) {
        const char *value = records + row * p->row_bytes + offset;
        const size_t length = text ? strnlen(value, size) : size;
        if (text) {
            const unsigned char four[] = { (unsigned char)length, (unsigned char)(length >> 8),
                                           (unsigned char)(length >> 16),
                                           (unsigned char)(length >> 24) };
            clv_text_bytes(out, four, sizeof four);
            clv_text_bytes(out, value, length);
            continue;
        }
        unsigned char little[8];
        for (size_t i = 0; i < size; ++i)
            little[i] = (unsigned char)value[CLV_PARQUET_BYTE(i, size)];
        clv_text_bytes(out, little, size);
    }
}

/* Appends one column of a group of rows as one page, and its ColumnChunk to the footer's list of groups. */
static void add_column(clv_parquet *p, size_t column, const char *records, size_t rows,
                       clv_text *out)
{
    clv_text values = { 0 }, header = { 0 };
    add_values(p, column, records, rows, &values);
    add_int(&header, 1, THRIFT_I32, DATA_PAGE);
    add_int(&header, 1, THRIFT_I32, (int64_t)values.length); /* uncompressed_page_size */
    add_int(&header, 1, THRIFT_I32, (int64_t)values.length); /* compressed_page_size */
    add_field(&header, 2, THRIFT_STRUCT);                    /* data_page_header */
    add_int(&header, 1, THRIFT_I32, (int64_t)rows);          /* num_values */
    add_int(&header, 1, THRIFT_I32, PLAIN);
    /* encoding of the definition levels, of which there are none */
    add_int(&header, 1, THRIFT_I32, RLE);
    /* encoding of the repetition levels, of which there are none */
    add_int(&header, 1, THRIFT_I32, RLE);
    add_byte(&header, THRIFT_STOP), add_byte(&header, THRIFT_STOP);

    clv_text *g = &p->groups;
    const int64_t bytes = (int64_t)(header.length + values.length), at = (int64_t)p->offset;
    add_int(g, 2, THRIFT_I64, at);  /* file_offset */
    add_field(g, 1, THRIFT_STRUCT); /* meta_data */
    add_int(g, 1, THRIFT_I32, type_of(p->codes[column]));
    add_list(g, 1, THRIFT_I32, 1); /* encodings */
    add_varint(g, PLAIN << 1);
    add_list(g, 1, THRIFT_BINARY, 1); /* path_in_schema */
    add_string(g, p->names[column]);
    add_int(g, 1, THRIFT_I32, UNCOMPRESSED);
    add_int(g, 1, THRIFT_I64, (int64_t)rows);
    add_int(g, 1, THRIFT_I64, bytes); /* total_uncompressed_size */
    add_int(g, 1, THRIFT_I64, bytes); /* total_compressed_size */
    add_int(g, 2, THRIFT_I64, at);    /* data_page_offset */
    add_byte(g, THRIFT_STOP), add_byte(g, THRIFT_STOP);

    write_out(p, clv_text_get(&header), header.length, out);
    write_out(p, clv_text_get(&values), values.length, out);
    out->failed |= header.failed || values.failed;
    clv_text_clear(&header), clv_text_clear(&values);
}

void clv_parquet_add(clv_parquet *p, const void *records, size_t rows, clv_text *out)
{
    if (!rows) return;
    const uint64_t before = p->offset;
    add_list(&p->groups, 1, THRIFT_STRUCT, p->count); /* columns */
    for (size_t i = 0; i < p->count; ++i)
        add_column(p, i, records, rows, out);
    add_int(&p->groups, 1, THRIFT_I64, (int64_t)(p->offset - before)); /* total_byte_size */
    add_int(&p->groups, 1, THRIFT_I64, (int64_t)rows);
    add_byte(&p->groups, THRIFT_STOP);
    p->rows += rows, ++p->group_count;
}

static void add_schema(const clv_parquet *p, clv_text *f)
{
    add_list(f, 1, THRIFT_STRUCT, p->count + 1);
    add_field(f, 4, THRIFT_BINARY), add_string(f, "schema"); /* the root of the schema */
    add_int(f, 1, THRIFT_I32, (int64_t)p->count);            /* num_children */
    add_byte(f, THRIFT_STOP);
    for (size_t i = 0; i < p->count; ++i) {
        const char *code = p->codes[i];
        add_int(f, 1, THRIFT_I32, type_of(code));
        add_int(f, 2, THRIFT_I32, REQUIRED);
        add_field(f, 1, THRIFT_BINARY), add_string(f, p->names[i]);
        if (*code == 'S' || *code == 'u')
            add_int(f, 2, THRIFT_I32, *code == 'S' ? UTF8 : UINT_32); /* converted_type */
        add_byte(f, THRIFT_STOP);
    }
}

void clv_parquet_end(clv_parquet *p, clv_text *out)
{
    clv_text f = { 0 };
    add_int(&f, 1, THRIFT_I32, 1); /* version */
    add_schema(p, &f);
    add_int(&f, 1, THRIFT_I64, (int64_t)p->rows);
    add_list(&f, 1, THRIFT_STRUCT, p->group_count);
    clv_text_bytes(&f, clv_text_get(&p->groups), p->groups.length);
    add_field(&f, 2, THRIFT_BINARY), add_string(&f, "cleave"); /* created_by */
    add_byte(&f, THRIFT_STOP);
    const size_t length = f.length;
    const unsigned char four[] = { (unsigned char)length, (unsigned char)(length >> 8),
                                   (unsigned char)(length >> 16), (unsigned char)(length >> 24) };
    clv_text_bytes(&f, four, sizeof four), clv_text_bytes(&f, "PAR1", 4);
    write_out(p, clv_text_get(&f), f.length, out);
    out->failed |= f.failed || p->groups.failed;
    clv_text_clear(&f);
    clv_parquet_clear(p);
}

void clv_parquet_clear(clv_parquet *p)
{
    clv_text_clear(&p->groups);
    *p = (clv_parquet){ 0 };
}

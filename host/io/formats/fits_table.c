/* SPDX-License-Identifier: Apache-2.0 */
/* Makes FITS headers, tables and images in memory: cards of 80 characters, blocks of 2880 bytes, big-endian numbers. */
#include "host/io/formats/fits_table.h"

#include "base/error.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { CARD = 80, BLOCK = 2880 };

static void card(clv_fits_table *t, const char *format, ...) CLV_PRINTF(2, 3);

static void card(clv_fits_table *t, const char *format, ...)
{
    char line[CARD + 1];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0) n = 0;
    for (; n < CARD; ++n)
        line[n] = ' ';
    clv_text_bytes(&t->bytes, line, CARD);
}

/* Pads the current block with the character `with`. */
static void pad(clv_fits_table *t, char with)
{
    char fill[BLOCK];
    const size_t over = t->bytes.length % BLOCK;
    memset(fill, with, sizeof fill);
    if (over) clv_text_bytes(&t->bytes, fill, BLOCK - over);
}

void clv_fits_table_finish(clv_fits_table *t)
{
    pad(t, '\0');
}

static void end_header(clv_fits_table *t)
{
    card(t, "END");
    pad(t, ' ');
}

static unsigned width_of(const clv_fits_column *column)
{
    switch (column->type) {
    case 'A':
        return column->width ? column->width : CLV_FITS_TEXT_WIDTH;
    case 'L':
        return 1;
    case 'I':
        return 2;
    case 'J':
    case 'E':
        return 4;
    default:
        return 8;
    }
}

void clv_fits_table_primary(clv_fits_table *t, const char *cards, size_t count)
{
    card(t, "SIMPLE  = %20s", "T");
    card(t, "BITPIX  = %20d", 8);
    card(t, "NAXIS   = %20d", 0);
    card(t, "EXTEND  = %20s", "T");
    if (count) clv_text_bytes(&t->bytes, cards, count * CARD);
    end_header(t);
}

void clv_fits_table_begin(clv_fits_table *t, const char *name, const clv_fits_column *columns,
                          size_t count, size_t rows)
{
    clv_fits_table_primary(t, NULL, 0);
    if (name) clv_fits_table_next(t, name, columns, count, rows);
}

void clv_fits_table_head(clv_fits_table *t, const char *name, size_t width, size_t rows,
                         size_t columns, const char *cards, size_t count)
{
    clv_fits_table_finish(t);
    card(t, "XTENSION= 'BINTABLE'");
    card(t, "BITPIX  = %20d", 8);
    card(t, "NAXIS   = %20d", 2);
    card(t, "NAXIS1  = %20zu", width);
    card(t, "NAXIS2  = %20zu", rows);
    card(t, "PCOUNT  = %20d", 0);
    card(t, "GCOUNT  = %20d", 1);
    card(t, "TFIELDS = %20zu", columns);
    card(t, "EXTNAME = '%s'", name);
    if (count) clv_text_bytes(&t->bytes, cards, count * CARD);
    end_header(t);
}

void clv_fits_table_next(clv_fits_table *t, const char *name, const clv_fits_column *columns,
                         size_t count, size_t rows)
{
    clv_fits_table described = { 0 }; /* collects the cards that describe the columns */
    size_t width = 0;
    t->count = count < sizeof t->types ? count : sizeof t->types;
    for (size_t i = 0; i < t->count; ++i) {
        const clv_fits_column *c = &columns[i];
        char form[16];
        width += t->widths[i] = width_of(c);
        t->types[i] = c->type;
        snprintf(form, sizeof form, c->type == 'A' ? "%u%c" : "%.0u%c",
                 c->type == 'A' ? t->widths[i] : 0, c->type);
        card(&described, "TTYPE%-3zu= '%s'", i + 1, c->name);
        card(&described, "TFORM%-3zu= '%s'", i + 1, form);
        if (c->unit) card(&described, "TUNIT%-3zu= '%s'", i + 1, c->unit);
        if (c->comment) card(&described, "TCOMM%-3zu= '%s'", i + 1, c->comment);
    }
    clv_fits_table_head(t, name, width, rows, t->count, described.bytes.data,
                        described.bytes.length / CARD);
    t->bytes.failed |= described.bytes.failed;
    clv_fits_table_clear(&described);
}

static void put(clv_fits_table *t, uint64_t bits, int bytes)
{
    unsigned char out[8];
    for (int i = 0; i < bytes; ++i)
        out[i] = (unsigned char)(bits >> (8 * (bytes - 1 - i)));
    clv_text_bytes(&t->bytes, out, (size_t)bytes);
}

void clv_fits_table_double(clv_fits_table *t, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(t, bits, 8);
}

void clv_fits_table_float(clv_fits_table *t, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(t, bits, 4);
}

void clv_fits_table_row(clv_fits_table *t, const clv_fits_value *values)
{
    for (size_t i = 0; i < t->count; ++i) {
        const clv_fits_value *v = &values[i];
        switch (t->types[i]) {
        case 'A':
            for (size_t k = 0, end = 0; k < t->widths[i]; ++k) {
                end = end || !v->text[k];
                put(t, end ? 0 : (unsigned char)v->text[k], 1);
            }
            break;
        case 'L':
            clv_text_bytes(&t->bytes, v->whole ? "T" : "F", 1);
            break;
        case 'E':
            clv_fits_table_float(t, (float)v->real);
            break;
        case 'I':
            put(t, (uint64_t)v->whole, 2);
            break;
        case 'J':
            put(t, (uint64_t)v->whole, 4);
            break;
        case 'K':
            put(t, (uint64_t)v->whole, 8);
            break;
        default:
            clv_fits_table_double(t, v->real);
        }
    }
}

void clv_fits_table_image(clv_fits_table *t, const char *name, int bitpix, size_t rank,
                          const size_t *shape)
{
    clv_fits_table_finish(t);
    card(t, "XTENSION= 'IMAGE   '");
    card(t, "BITPIX  = %20d", bitpix);
    card(t, "NAXIS   = %20zu", rank);
    for (size_t i = 0; i < rank; ++i)
        card(t, "NAXIS%-3zu= %20zu", i + 1, shape[rank - 1 - i]);
    card(t, "PCOUNT  = %20d", 0);
    card(t, "GCOUNT  = %20d", 1);
    card(t, "EXTNAME = '%s'", name);
    end_header(t);
}

clv_status clv_fits_table_write(clv_fits_table *t, const char *path)
{
    clv_fits_table_finish(t);
    if (t->bytes.failed) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the table", path);
    const clv_part part = { t->bytes.data, t->bytes.length };
    return clv_parts_write(path, &part, 1);
}

void clv_fits_table_clear(clv_fits_table *t)
{
    clv_text_clear(&t->bytes);
    *t = (clv_fits_table){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of 80 characters, blocks of 2880 bytes, numbers with the highest byte first. */
#include "host/io/fits_table.h"

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

/* Fills the block that was begun. */
static void pad(clv_fits_table *t, char with)
{
    char fill[BLOCK];
    const size_t over = t->bytes.length % BLOCK;
    memset(fill, with, sizeof fill);
    if (over) clv_text_bytes(&t->bytes, fill, BLOCK - over);
}

static void finish(clv_fits_table *t)
{
    pad(t, '\0');
}

static void end_header(clv_fits_table *t)
{
    card(t, "END");
    pad(t, ' ');
}

static size_t width_of(char type)
{
    return type == 'A' ? CLV_FITS_TEXT_WIDTH : type == 'L' ? 1 : type == 'J' ? 4 : 8;
}

void clv_fits_table_begin(clv_fits_table *t, const char *name, const clv_fits_column *columns,
                          size_t count, size_t rows)
{
    card(t, "SIMPLE  = %20s", "T");
    card(t, "BITPIX  = %20d", 8);
    card(t, "NAXIS   = %20d", 0);
    card(t, "EXTEND  = %20s", "T");
    end_header(t);
    if (name) clv_fits_table_next(t, name, columns, count, rows);
}

void clv_fits_table_next(clv_fits_table *t, const char *name, const clv_fits_column *columns,
                         size_t count, size_t rows)
{
    size_t width = 0;
    finish(t);
    t->count = count < sizeof t->types ? count : sizeof t->types;
    for (size_t i = 0; i < t->count; ++i)
        width += width_of(t->types[i] = columns[i].type);
    card(t, "XTENSION= 'BINTABLE'");
    card(t, "BITPIX  = %20d", 8);
    card(t, "NAXIS   = %20d", 2);
    card(t, "NAXIS1  = %20zu", width);
    card(t, "NAXIS2  = %20zu", rows);
    card(t, "PCOUNT  = %20d", 0);
    card(t, "GCOUNT  = %20d", 1);
    card(t, "TFIELDS = %20zu", t->count);
    card(t, "EXTNAME = '%s'", name);
    for (size_t i = 0; i < t->count; ++i) {
        char form[8];
        snprintf(form, sizeof form, columns[i].type == 'A' ? "%d%c" : "%.0d%c",
                 columns[i].type == 'A' ? CLV_FITS_TEXT_WIDTH : 0, columns[i].type);
        card(t, "TTYPE%-3zu= '%s'", i + 1, columns[i].name);
        card(t, "TFORM%-3zu= '%s'", i + 1, form);
        if (columns[i].unit) card(t, "TUNIT%-3zu= '%s'", i + 1, columns[i].unit);
    }
    end_header(t);
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
        char text[CLV_FITS_TEXT_WIDTH] = { 0 };
        switch (t->types[i]) {
        case 'A':
            for (size_t k = 0; k < sizeof text && v->text[k]; ++k)
                text[k] = v->text[k];
            clv_text_bytes(&t->bytes, text, sizeof text);
            break;
        case 'L':
            clv_text_bytes(&t->bytes, v->whole ? "T" : "F", 1);
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
    finish(t);
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
    finish(t);
    if (t->bytes.failed) return clv_fail(CLV_E_MEMORY, "%s: no memory for the table", path);
    const clv_part part = { t->bytes.data, t->bytes.length };
    return clv_parts_write(path, &part, 1);
}

void clv_fits_table_clear(clv_fits_table *t)
{
    clv_text_clear(&t->bytes);
    *t = (clv_fits_table){ 0 };
}

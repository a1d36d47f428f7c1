/* SPDX-License-Identifier: Apache-2.0 */
/* Reads vectors and columns of FITS tables. */
#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <strings.h>

enum { MAX_COLUMNS = 1000 };

static bool is_angle_name(const char *name)
{
    return strcasecmp(name, "PA") == 0 || strncasecmp(name, "PARANG", 6) == 0 ||
           strncasecmp(name, "ANGLE", 5) == 0;
}

/* Returns the number of elements per row of a column of real numbers; 0 for other columns. */
static size_t numbers_in(fitsfile *file, int column)
{
    int error = 0, type = 0;
    LONGLONG repeat = 0, width = 0;
    fits_get_coltypell(file, column, &type, &repeat, &width, &error);
    const bool number = type == TBYTE || type == TSHORT || type == TLONG || type == TLONGLONG ||
                        type == TFLOAT || type == TDOUBLE;
    return !error && number && repeat > 0 ? (size_t)repeat : 0;
}

enum { SEVERAL = -1 };

/* Returns the number of the column that holds the vector in the current table; 0 if there is none, SEVERAL if several
 * columns qualify. `wanted` is the column's name or number; NULL: any. */
static int find_vector_column(fitsfile *file, const char *wanted)
{
    int error = 0, columns = 0, first = 0;
    uint64_t number;
    fits_get_num_cols(file, &columns, &error);
    if (wanted) {
        char name[FLEN_VALUE];
        clv_copy_string(name, sizeof name, wanted);
        if (clv_parse_u64(wanted, &number))
            first = !error && number <= (uint64_t)columns ? (int)number : 0;
        else if (fits_get_colnum(file, CASEINSEN, name, &first, &error))
            first = 0;
        fits_clear_errmsg();
        return first && numbers_in(file, first) ? first : 0;
    }
    for (int c = 1; !error && c <= CLV_MIN(columns, MAX_COLUMNS); ++c) {
        char key[FLEN_KEYWORD], name[FLEN_VALUE] = "";
        int unnamed = 0;
        if (!numbers_in(file, c)) continue;
        first = first ? SEVERAL : c;
        fits_make_keyn("TTYPE", c, key, &unnamed);
        fits_read_key(file, TSTRING, key, name, NULL, &unnamed);
        if (!unnamed && is_angle_name(name)) return c;
    }
    return first;
}

clv_status clv_fits_count_rows(clv_fits_source *source, LONGLONG *rows)
{
    int error = 0;
    LONGLONG start = 0;
    fits_get_num_rowsll(source->file, rows, &error);
    fits_get_hduaddrll(source->file, NULL, &start, NULL, &error);
    if (error) return clv_fits_error(source->path, "read the table's header", error);
    const LONGLONG there = clv_fits_length(source) - start;
    const LONGLONG width = source->file->Fptr->rowlength;
    if (*rows < 0 || width < 0 || there < 0 || *rows > there / CLV_MAX(width, 1))
        return clv_fail(CLV_E_FORMAT, "%s: truncated inside a table of %lld rows", source->path,
                        (long long)*rows);
    return CLV_OK;
}

/* ---- vectors ------------------------------------------------------------------------------- */

typedef struct vector {
    double *values; /* NULL until a vector is found */
    size_t count;
    char unit[CLV_FITS_UNIT]; /* "": the file has none */
} vector;

/* Reads the unit in the card `key` of the current HDU; "" if there is none. */
static void read_unit(fitsfile *file, const char *key, char out[CLV_FITS_UNIT])
{
    char unit[FLEN_VALUE] = "";
    int error = 0;
    if (fits_read_key(file, TSTRING, key, unit, NULL, &error)) fits_clear_errmsg();
    clv_copy_string(out, CLV_FITS_UNIT, error ? "" : unit);
}

/* Reads the vector from the current HDU if it is an image with at most one axis longer than 1. */
static clv_status read_vector_image(clv_fits_source *source, vector *out)
{
    clv_fits_image image;
    size_t length = 1;
    CLV_TRY(clv_fits_image_describe(source, &image));
    for (size_t i = 0; i < image.rank; ++i) {
        if (image.shape[i] > 1 && length > 1) return CLV_OK;
        length *= image.shape[i];
    }
    double *read = clv_alloc(length, sizeof *read);
    if (!read)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu numbers", source->path,
                        length);
    image.type = TDOUBLE;
    const clv_status status = clv_fits_image_read(source, &image, 0, length, read);
    if (status) {
        clv_free(read);
        return status;
    }
    out->values = read, out->count = length;
    read_unit(source->file, "BUNIT", out->unit);
    return CLV_OK;
}

/* Reads the vector from the current HDU, a table: from a column of scalars, or from one row with an array. */
static clv_status read_vector_table(clv_fits_source *source, const char *wanted, vector *out)
{
    char key[FLEN_KEYWORD];
    int error = 0, any;
    LONGLONG rows = 0;
    const int column = find_vector_column(source->file, wanted);
    if (column == SEVERAL)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the table has several columns of numbers, none of which is called PA, "
                        "PARANG... or ANGLE...; give the name of one of them",
                        source->path);
    const size_t repeat = column ? numbers_in(source->file, column) : 0;
    fits_get_num_rowsll(source->file, &rows, &error);
    if (error) return clv_fits_error(source->path, "read the table's header", error);
    if (!repeat || rows < 1 || (rows > 1 && repeat > 1)) return CLV_OK;
    CLV_TRY(clv_fits_count_rows(source, &rows));

    const size_t length = repeat * (size_t)rows; /* `repeat` or `rows` is 1 */
    if (length > (uint64_t)clv_fits_length(source))
        return clv_fail(CLV_E_FORMAT, "%s: truncated inside a row of %zu numbers", source->path,
                        length);
    double nan64 = NAN, *read = clv_alloc(length, sizeof *read);
    if (!read)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu numbers", source->path,
                        length);
    if (fits_read_col(source->file, TDOUBLE, column, 1, 1, (LONGLONG)length, &nan64, read, &any,
                      &error)) {
        clv_free(read);
        return clv_fits_error(source->path, "read the table", error);
    }
    out->values = read, out->count = length;
    fits_make_keyn("TUNIT", column, key, &error);
    read_unit(source->file, key, out->unit);
    return CLV_OK;
}

/* Reads the vector of the current HDU, an image or a table; leaves `out` unchanged if the HDU has none. */
static clv_status read_vector_hdu(clv_fits_source *source, const char *column, vector *out)
{
    int kind = ANY_HDU, error = 0;
    if (clv_fits_has_image(source)) return column ? CLV_OK : read_vector_image(source, out);
    if (fits_get_hdu_type(source->file, &kind, &error) == 0 && kind != IMAGE_HDU)
        return read_vector_table(source, column, out);
    return CLV_OK;
}

static clv_status find_vector(clv_fits_source *source, const char *extension, const char *column,
                              vector *out)
{
    if (extension) CLV_TRY(clv_fits_goto_extension(source, extension));
    for (bool more = true; more;) {
        CLV_TRY(read_vector_hdu(source, column, out));
        if (out->values) return CLV_OK;
        if (extension) break;
        CLV_TRY(clv_fits_next(source, &more));
    }
    if (column)
        return clv_fail(CLV_E_FORMAT, "%s: no table%s%s%s has a numeric column %s", source->path,
                        extension ? " [" : "", extension ? extension : "", extension ? "]" : "",
                        column);
    return clv_fail(CLV_E_FORMAT,
                    "%s: there is no vector; expected an image [T], [T,1] or [1,T], or a table "
                    "with a numeric column",
                    source->path);
}

clv_status clv_fits_read_vector_of(const char *path, const char *extension, const char *column,
                                   double **values, size_t *count, char unit[CLV_FITS_UNIT])
{
    clv_fits_source source = { 0 };
    vector read = { 0 };
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = find_vector(&source, extension, column, &read);
    clv_fits_close(&source);
    *values = read.values;
    *count = read.count;
    if (unit) clv_copy_string(unit, CLV_FITS_UNIT, read.unit);
    return status;
}

clv_status clv_fits_read_vector(const char *path, double **values, size_t *count)
{
    return clv_fits_read_vector_of(path, NULL, NULL, values, count, NULL);
}

/* ---- columns ------------------------------------------------------------------------------- */

/* Reads texts of a fixed width, each with a NUL at its end. The array's memory also holds the pointers that CFITSIO
 * requires. */
static clv_status read_texts(clv_fits_source *source, int column, size_t rows,
                             clv_file_array *array)
{
    int error = 0, any, type = 0;
    LONGLONG repeat = 0, width = 0;
    char nothing[] = "";
    const char *path = source->path;
    /* fits_get_col_display_width is avoided: it copies TDISP of any length into 20 bytes. */
    fits_get_coltypell(source->file, column, &type, &repeat, &width, &error);
    if (error) return clv_fits_error(path, "read a column", error);
    if (width < 1 || width > 10000)
        return clv_fail(CLV_E_FORMAT,
                        "%s: a column has texts of %lld characters; expected 1 to 10000", path,
                        (long long)width);
    const size_t shape[] = { rows, (size_t)width + 1 };
    CLV_TRY(clv_file_array_create(array, path, CLV_U8, 2, shape));
    char **texts = clv_alloc(rows, sizeof *texts);
    if (!texts) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu texts", path, rows);
    for (size_t i = 0; i < rows; ++i)
        texts[i] = (char *)array->data + i * shape[1];
    fits_read_col(source->file, TSTRING, column, 1, 1, (LONGLONG)rows, nothing, texts, &any,
                  &error);
    clv_free(texts);
    return error ? clv_fits_error(path, "read a column", error) : CLV_OK;
}

static clv_status read_numbers(clv_fits_source *source, int column, clv_type type, size_t rows,
                               clv_file_array *array)
{
    int error = 0, any;
    double nan64 = NAN;
    const bool whole = type == CLV_I64;
    CLV_TRY(clv_file_array_create(array, source->path, type, 1, &rows));
    if (rows)
        fits_read_col(source->file, whole ? TLONGLONG : TDOUBLE, column, 1, 1, (LONGLONG)rows,
                      whole ? NULL : &nan64, array->data, &any, &error);
    return error ? clv_fits_error(source->path, "read a column", error) : CLV_OK;
}

typedef struct table_column {
    int number, of; /* number: of the column, from 1; 0 if there is none; of: CFITSIO's type */
    LONGLONG rows, repeat;
} table_column;

static clv_status find_column(clv_fits_source *source, const char *name_of_it, table_column *c)
{
    int error = 0, kind = ANY_HDU;
    char name[FLEN_VALUE];
    *c = (table_column){ 0 };
    clv_copy_string(name, sizeof name, name_of_it);
    fits_get_hdu_type(source->file, &kind, &error);
    if (kind == IMAGE_HDU || fits_get_colnum(source->file, CASEINSEN, name, &c->number, &error)) {
        fits_clear_errmsg();
        c->number = 0;
        return CLV_OK;
    }
    CLV_TRY(clv_fits_count_rows(source, &c->rows));
    fits_get_coltypell(source->file, c->number, &c->of, &c->repeat, NULL, &error);
    return error ? clv_fits_error(source->path, "read the table's header", error) : CLV_OK;
}

/* Reads a column of the current HDU; *found is false if there is no such column, or one of another kind than `type`. */
static clv_status read_column(clv_fits_source *source, const char *column, clv_type type,
                              clv_file_array *array, bool *found)
{
    table_column c;
    *found = false;
    CLV_TRY(find_column(source, column, &c));
    if (!c.number) return CLV_OK;
    if ((type == CLV_U8) != (c.of == TSTRING) || c.of < 0 || (c.of != TSTRING && c.repeat != 1))
        return CLV_OK;
    *found = true;
    return type == CLV_U8 ? read_texts(source, c.number, (size_t)c.rows, array)
                          : read_numbers(source, c.number, type, (size_t)c.rows, array);
}

/* ---- cells of any table ---------------------------------------------------------------------- */

/* Reads `count` cells of logical values as 0 and 1. */
static clv_status read_logicals(clv_fits_source *source, int column, size_t count, double *out)
{
    int error = 0, any;
    char *read = clv_zalloc(CLV_MAX(count, (size_t)1), 1), nothing = 0;
    if (!read)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu cells", source->path, count);
    if (count)
        fits_read_col(source->file, TLOGICAL, column, 1, 1, (LONGLONG)count, &nothing, read, &any,
                      &error);
    for (size_t i = 0; i < count; ++i)
        out[i] = read[i] != 0;
    clv_free(read);
    return error ? clv_fits_error(source->path, "read a column", error) : CLV_OK;
}

static clv_status read_cells(clv_fits_source *source, const char *column, clv_file_array *array,
                             bool *found)
{
    int error = 0, any;
    double nan64 = NAN;
    table_column c;
    *found = false;
    CLV_TRY(find_column(source, column, &c));
    if (!c.number) return CLV_OK;
    if ((c.of != TLOGICAL && !numbers_in(source->file, c.number)) || c.repeat < 1 ||
        (c.repeat > 1 && c.rows != 1))
        return CLV_OK;
    const size_t count = (size_t)(c.rows > 1 ? c.rows : c.rows * c.repeat);
    if (count > (uint64_t)source->file->Fptr->filesize)
        return clv_fail(CLV_E_FORMAT, "%s: truncated inside a row of %zu numbers", source->path,
                        count);
    CLV_TRY(clv_file_array_create(array, source->path, CLV_F64, 1, &count));
    *found = true;
    if (c.of == TLOGICAL) return read_logicals(source, c.number, count, array->data);
    if (count)
        fits_read_col(source->file, TDOUBLE, c.number, 1, 1, (LONGLONG)count, &nan64, array->data,
                      &any, &error);
    return error ? clv_fits_error(source->path, "read a column", error) : CLV_OK;
}

clv_status clv_fits_read_cells(const char *path, int hdu, const char *column, clv_file_array *array,
                               bool *found)
{
    clv_fits_source source = { 0 };
    *array = (clv_file_array){ 0 };
    *found = false;
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = clv_fits_goto(&source, hdu, found);
    if (!status && *found) status = read_cells(&source, column, array, found);
    if (status) clv_file_array_clear(array);
    if (status) *found = false;
    clv_fits_close(&source);
    return status;
}

clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_file_array *array, bool *found)
{
    clv_fits_source source = { 0 };
    *array = (clv_file_array){ 0 };
    *found = false;
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = clv_fits_goto_name(&source, table, found);
    if (!status && *found) status = read_column(&source, column, type, array, found);
    if (status) clv_file_array_clear(array);
    clv_fits_close(&source);
    return status;
}

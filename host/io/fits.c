/* SPDX-License-Identifier: Apache-2.0 */
/* FITS images and vectors, by CFITSIO. Sizes that a header claims are compared with the length of
 * the file before they are allocated; CFITSIO's stack of messages becomes one line. */
#include "host/io/fits.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/stream.h"

#ifdef CLEAVE_HAVE_CFITSIO

#include <fitsio.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    BLOCK = 2880,     /* bytes; a FITS file is made of them */
    MAX_HDUS = 10000, /* looked through for an image or a table */
    MAX_COLUMNS = 1000,
    MAX_COMPRESSION = 10000 /* by tiles; constant images reach about 1000 */
};

typedef struct image_facts {
    int bitpix, type; /* BITPIX and the CFITSIO type that pixels are read as */
    bool compressed, blanks;
    size_t rank, shape[CLV_MAX_RANK]; /* C order */
    clv_type array_type;
} image_facts;

/* The first message on CFITSIO's stack is the cause, later ones tell who passed it on. */
static clv_status fits_error(const char *path, const char *doing, int error)
{
    char name[FLEN_STATUS], cause[FLEN_ERRMSG] = "", rest[FLEN_ERRMSG];
    char text[2 * FLEN_ERRMSG];
    fits_get_errstatus(error, name);
    if (fits_read_errmsg(cause))
        while (fits_read_errmsg(rest))
            continue;
    /* CFITSIO 4.2 calls it a lack of memory when a damaged gzip file unpacks to nothing. */
    const bool memory = error == MEMORY_ALLOCATION && !strstr(cause, "reduce size");
    const clv_status status = memory ? CLV_E_MEMORY : CLV_E_FORMAT;
    return clv_fail(status, "%s: cannot %s: %s (CFITSIO %d)%s%s", path, doing, name, error,
                    *cause ? ": " : "", clv_printable(cause, strlen(cause), text, sizeof text));
}

enum { CARD = 80 }; /* characters */

/* Only FITS and gzip reach CFITSIO: it would also unpack zip, pack and compress by old code. */
static clv_status check_magic(const char *path)
{
    clv_input input;
    unsigned char start[9] = { 0 };
    char found[48];
    CLV_TRY(clv_input_open(&input, path));
    const size_t length = CLV_MIN(input.length, sizeof start);
    clv_status status = clv_input_read(&input, start, length);
    clv_input_close(&input);
    if (status || (length >= 9 && memcmp(start, "SIMPLE  =", 9) == 0)) return status;
    if (start[0] == 0x1F && start[1] == 0x8B) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: begins with \"%s\", expected a FITS file (\"SIMPLE  =\") or "
                    "one compressed by gzip",
                    path, clv_printable(start, length, found, sizeof found));
}

/* CFITSIO 4.2 copies a column's name of 70 characters, a text without quotes, into room for 69.
 * Seen in plain files only: inside a gzip file such a name still reaches it. */
static bool is_good_name(const char *card)
{
    enum { VALUE = 9 };
    if (memcmp(card, "TTYPE", 5) != 0) return true;
    for (int i = VALUE; i < CARD; ++i)
        if (card[i] != ' ') return card[i] == '\'' || card[i] == '/';
    return true;
}

static clv_status check_names(const char *path)
{
    enum { AT_ONCE = CARD * 512 };
    char cards[AT_ONCE];
    clv_input input;
    clv_status status = CLV_OK;
    CLV_TRY(clv_input_open(&input, path));
    for (uint64_t left = input.length; left >= CARD && !status;) {
        const size_t now = (size_t)CLV_MIN(left / CARD * CARD, (uint64_t)AT_ONCE);
        status = clv_input_read(&input, cards, now);
        for (size_t at = 0; at < now && !status; at += CARD)
            if (!is_good_name(cards + at))
                status =
                    clv_fail(CLV_E_FORMAT, "%s: the name of a table's column has no quotes", path);
        left -= now;
    }
    clv_input_close(&input);
    return status;
}

static clv_status open_file(const char *path, fitsfile **file)
{
    char name[FLEN_FILENAME];
    *file = NULL;
    CLV_TRY(check_magic(path));
    CLV_TRY(check_names(path));
    /* "./" keeps CFITSIO from reading "~user" and from dropping leading blanks. */
    const int length = snprintf(name, sizeof name, "%s%s", *path == '/' ? "" : "./", path);
    if (length < 0 || length >= FLEN_FILENAME - 16)
        return clv_fail(CLV_E_IO, "path too long for the FITS library (at most %d bytes): %s",
                        FLEN_FILENAME - 17, path);
    int error = 0;
    fits_clear_errmsg();
    if (fits_open_diskfile(file, name, READONLY, &error)) {
        *file = NULL;
        return fits_error(path, "read as FITS", error);
    }
    return CLV_OK;
}

static void close_file(fitsfile *file)
{
    int error = 0;
    if (file) fits_close_file(file, &error);
    fits_clear_errmsg();
}

/* ---- images -------------------------------------------------------------------------------- */

static bool has_image(fitsfile *file)
{
    int error = 0, kind = ANY_HDU, naxis = 0;
    LONGLONG naxes[9] = { 0 };
    fits_get_hdu_type(file, &kind, &error);
    if (kind != IMAGE_HDU && !fits_is_compressed_image(file, &error)) return false;
    fits_get_img_dim(file, &naxis, &error);
    fits_get_img_sizell(file, (int)CLV_LEN(naxes), naxes, &error);
    for (int i = 0; i < CLV_MIN(naxis, (int)CLV_LEN(naxes)); ++i)
        if (naxes[i] < 1) return false;
    return !error && naxis > 0;
}

/* To the next HDU; false at the end of the file, *error says if it was another end. */
static bool next_hdu(fitsfile *file, int *error)
{
    int number = 0;
    if (fits_get_hdu_num(file, &number) >= MAX_HDUS) return false;
    if (fits_movrel_hdu(file, 1, NULL, error) == 0) return true;
    if (*error == END_OF_FILE) *error = 0;
    fits_clear_errmsg();
    return false;
}

static clv_status find_image(const char *path, fitsfile *file, int hdu)
{
    int error = 0, number = 0;
    if (hdu != CLV_FITS_FIRST_IMAGE) {
        if (hdu < 0 || fits_movabs_hdu(file, hdu + 1, NULL, &error))
            return clv_fail(CLV_E_FORMAT, "%s: no HDU %d (0 is the primary one)", path, hdu);
        if (!has_image(file))
            return clv_fail(CLV_E_FORMAT, "%s: HDU %d is not an image with data", path, hdu);
        return CLV_OK;
    }
    do {
        if (has_image(file)) return CLV_OK;
    } while (next_hdu(file, &error));
    if (error) return fits_error(path, "look for an image", error);
    fits_get_hdu_num(file, &number);
    return clv_fail(CLV_E_FORMAT, "%s: no image with data in its %d HDU%s", path, number,
                    number == 1 ? "" : "s");
}

/* Which types hold the pixels after BSCALE and BZERO; `blank` where BLANK asks for a NaN. */
static const struct {
    int equivalent, type;
    clv_type plain;
    int type_blank;
    clv_type blank;
} pixel_types[] = {
    { BYTE_IMG, TBYTE, CLV_U8, TFLOAT, CLV_F32 },
    { SBYTE_IMG, TSHORT, CLV_I16, TFLOAT, CLV_F32 },
    { SHORT_IMG, TSHORT, CLV_I16, TFLOAT, CLV_F32 },
    { USHORT_IMG, TUSHORT, CLV_U16, TFLOAT, CLV_F32 },
    { LONG_IMG, TINT, CLV_I32, TDOUBLE, CLV_F64 },
    { ULONG_IMG, TUINT, CLV_U32, TDOUBLE, CLV_F64 },
    { LONGLONG_IMG, TLONGLONG, CLV_I64, TDOUBLE, CLV_F64 },
    { ULONGLONG_IMG, TDOUBLE, CLV_F64, TDOUBLE, CLV_F64 },
    { FLOAT_IMG, TFLOAT, CLV_F32, TFLOAT, CLV_F32 },
    { DOUBLE_IMG, TDOUBLE, CLV_F64, TDOUBLE, CLV_F64 },
};

/* Only asks whether the card is there: reading a long text as an integer writes beyond a buffer of
 * CFITSIO 4.2 (ffc2j), and Debian's build aborts then. So no card is read as an integer here. */
static bool has_card(fitsfile *file, const char *key)
{
    char card[FLEN_CARD];
    int error = 0;
    fits_read_card(file, key, card, &error);
    fits_clear_errmsg();
    return !error;
}

static clv_status find_type(const char *path, fitsfile *file, image_facts *out)
{
    int error = 0, equivalent = 0;
    fits_get_img_equivtype(file, &equivalent, &error);
    if (error) return fits_error(path, "read the pixel type", error);
    out->blanks = out->bitpix > 0 && (has_card(file, "BLANK") || has_card(file, "ZBLANK"));
    for (size_t i = 0; i < CLV_LEN(pixel_types); ++i) {
        if (pixel_types[i].equivalent != equivalent) continue;
        out->type = out->blanks ? pixel_types[i].type_blank : pixel_types[i].type;
        out->array_type = out->blanks ? pixel_types[i].blank : pixel_types[i].plain;
        return CLV_OK;
    }
    return clv_fail(CLV_E_FORMAT, "%s: BITPIX %d is not a FITS pixel type", path, out->bitpix);
}

/* Claimed sizes against the bytes that are there: nothing larger is allocated. */
static clv_status check_length(const char *path, fitsfile *file, const image_facts *image)
{
    int error = 0;
    LONGLONG start = 0, end = 0;
    char shape[CLV_SHAPE_TEXT];
    size_t count = 0, bytes = 0, pixels = 0;
    clv_shape_text(image->rank, image->shape, shape);
    if (!clv_shape_size(image->array_type, image->rank, image->shape, &count, &bytes) ||
        !clv_size_mul(count, (size_t)abs(image->bitpix) / 8, &pixels) || pixels > INT64_MAX / 2)
        return clv_fail(CLV_E_SHAPE, "%s: image %s is larger than any memory", path, shape);

    fits_get_hduaddrll(file, NULL, &start, &end, &error);
    if (error) return fits_error(path, "find the image", error);
    const LONGLONG length = file->Fptr->filesize; /* after gunzip; no function tells it */
    const uint64_t there = length > start ? (uint64_t)(length - start) : 0;
    if (!image->compressed && pixels > there)
        return clv_fail(CLV_E_FORMAT,
                        "%s: truncated: %llu bytes of data, expected %zu for image %s "
                        "with BITPIX %d",
                        path, (unsigned long long)there, pixels, shape, image->bitpix);
    if (image->compressed && pixels / MAX_COMPRESSION > there)
        return clv_fail(CLV_E_FORMAT, "%s: %llu bytes of compressed data cannot hold image %s",
                        path, (unsigned long long)there, shape);
    return CLV_OK;
}

static clv_status describe_image(const char *path, fitsfile *file, image_facts *out)
{
    int error = 0, naxis = 0;
    LONGLONG naxes[CLV_MAX_RANK] = { 0 };
    *out = (image_facts){ 0 };
    out->compressed = fits_is_compressed_image(file, &error);
    fits_get_img_paramll(file, CLV_MAX_RANK, &out->bitpix, &naxis, naxes, &error);
    if (error) return fits_error(path, "read the image's header", error);
    if (naxis > CLV_MAX_RANK)
        return clv_fail(CLV_E_SHAPE, "%s: the image has %d axes, at most %d expected", path, naxis,
                        CLV_MAX_RANK);
    out->rank = (size_t)naxis;
    for (size_t i = 0; i < out->rank; ++i)
        out->shape[i] = (size_t)naxes[out->rank - 1 - i]; /* FITS names the innermost axis first */
    CLV_TRY(find_type(path, file, out));
    return check_length(path, file, out);
}

static clv_status read_pixels(const char *path, fitsfile *file, const image_facts *image,
                              void *data, size_t count)
{
    /* Without a value for blank pixels CFITSIO reads floats straight into `data`. */
    const bool check = image->blanks || image->compressed;
    float nan32 = NAN;
    double nan64 = NAN;
    void *blank = NULL;
    if (check && image->type == TFLOAT) blank = &nan32;
    if (check && image->type == TDOUBLE) blank = &nan64;
    int error = 0, any; /* `any` is written to without a look whether it is NULL */
    if (fits_read_img(file, image->type, 1, (LONGLONG)count, blank, data, &any, &error))
        return fits_error(path, "read the image's pixels", error);
    return CLV_OK;
}

/* ---- cards --------------------------------------------------------------------------------- */

static clv_status carry_cards(const char *path, fitsfile *file, clv_fits_cards *cards)
{
    int error = 0, count = 0;
    char record[FLEN_CARD];
    fits_get_hdrspace(file, &count, NULL, &error);
    for (int i = 1; i <= count && !fits_read_record(file, i, record, &error); ++i)
        clv_fits_card_carry(cards, record);
    return error ? fits_error(path, "read the header", error) : CLV_OK;
}

/* The target is often named in the primary HDU, the coordinates beside the image. */
static clv_status read_cards(const char *path, fitsfile *file, size_t rank, clv_fits_cards *cards)
{
    int number = 1, error = 0;
    fits_get_hdu_num(file, &number);
    if (number > 1) {
        fits_movabs_hdu(file, 1, NULL, &error);
        if (error) return fits_error(path, "read the primary header", error);
        CLV_TRY(carry_cards(path, file, cards));
        clv_fits_cards_drop_axes(cards);
        fits_movabs_hdu(file, number, NULL, &error);
        if (error) return fits_error(path, "return to the image", error);
    }
    CLV_TRY(carry_cards(path, file, cards));
    cards->rank = rank;
    return cards->failed ? clv_fail(CLV_E_MEMORY, "%s: no memory for header cards", path) : CLV_OK;
}

clv_status clv_fits_read(const char *path, int hdu, clv_array *array, clv_fits_cards *cards)
{
    fitsfile *file = NULL;
    image_facts image;
    clv_array read = { 0 };
    *array = (clv_array){ 0 };
    clv_status status = open_file(path, &file);
    if (!status) status = find_image(path, file, hdu);
    if (!status) status = describe_image(path, file, &image);
    if (!status) status = clv_array_create(&read, path, image.array_type, image.rank, image.shape);
    if (!status) status = read_pixels(path, file, &image, read.data, clv_array_count(&read));
    if (!status && cards) status = read_cards(path, file, image.rank, cards);
    if (!status) {
        *array = read;
        read = (clv_array){ 0 };
    }
    if (status && cards) clv_fits_cards_clear(cards);
    clv_array_clear(&read);
    close_file(file);
    return status;
}

/* ---- vectors ------------------------------------------------------------------------------- */

static bool is_angle_name(const char *name)
{
    return strcasecmp(name, "PA") == 0 || strcasecmp(name, "PARANG") == 0 ||
           strncasecmp(name, "ANGLE", 5) == 0;
}

/* Elements in a row of a column of real numbers, else 0. */
static size_t numbers_in(fitsfile *file, int column)
{
    int error = 0, type = 0;
    LONGLONG repeat = 0, width = 0;
    fits_get_coltypell(file, column, &type, &repeat, &width, &error);
    const bool number = type == TBYTE || type == TSHORT || type == TLONG || type == TLONGLONG ||
                        type == TFLOAT || type == TDOUBLE;
    return !error && number && repeat > 0 ? (size_t)repeat : 0;
}

/* The column of the current table that holds the vector; 0 when there is none. */
static int find_column(fitsfile *file)
{
    int error = 0, columns = 0, first = 0;
    fits_get_num_cols(file, &columns, &error);
    for (int c = 1; !error && c <= CLV_MIN(columns, MAX_COLUMNS); ++c) {
        char key[FLEN_KEYWORD], name[FLEN_VALUE] = "";
        int unnamed = 0;
        if (!numbers_in(file, c)) continue;
        if (!first) first = c;
        fits_make_keyn("TTYPE", c, key, &unnamed);
        fits_read_key(file, TSTRING, key, name, NULL, &unnamed);
        if (!unnamed && is_angle_name(name)) return c;
    }
    return first;
}

/* Sets *found when the current HDU is an image with at most one axis longer than 1. */
static clv_status read_vector_image(const char *path, fitsfile *file, bool *found, double **values,
                                    size_t *count)
{
    image_facts image;
    size_t length = 1;
    CLV_TRY(describe_image(path, file, &image));
    for (size_t i = 0; i < image.rank; ++i) {
        if (image.shape[i] > 1 && length > 1) return CLV_OK;
        length *= image.shape[i];
    }
    double *read = clv_alloc(length, sizeof *read);
    if (!read) return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu numbers", path, length);
    image.type = TDOUBLE;
    const clv_status status = read_pixels(path, file, &image, read, length);
    if (status) {
        clv_free(read);
        return status;
    }
    *found = true;
    *values = read;
    *count = length;
    return CLV_OK;
}

/* As above, for a table: a column of scalars, or one row with an array. */
static clv_status read_vector_table(const char *path, fitsfile *file, bool *found, double **values,
                                    size_t *count)
{
    assert(file);
    int error = 0, any;
    LONGLONG rows = 0, start = 0;
    const int column = find_column(file);
    const size_t repeat = column ? numbers_in(file, column) : 0;
    fits_get_num_rowsll(file, &rows, &error);
    fits_get_hduaddrll(file, NULL, &start, NULL, &error);
    if (error) return fits_error(path, "read the table's header", error);
    if (!repeat || rows < 1 || (rows > 1 && repeat > 1)) return CLV_OK;

    const size_t length = repeat * (size_t)rows; /* one of them is 1 */
    const LONGLONG there = file->Fptr->filesize - start, width = file->Fptr->rowlength;
    if (there < 0 || width < 0 || rows > there / CLV_MAX(width, 1) || length > (uint64_t)there)
        return clv_fail(CLV_E_FORMAT, "%s: truncated inside a table of %lld rows", path,
                        (long long)rows);
    double nan64 = NAN, *read = clv_alloc(length, sizeof *read);
    if (!read) return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu numbers", path, length);
    if (fits_read_col(file, TDOUBLE, column, 1, 1, (LONGLONG)length, &nan64, read, &any, &error)) {
        clv_free(read);
        return fits_error(path, "read the table", error);
    }
    *found = true;
    *values = read;
    *count = length;
    return CLV_OK;
}

clv_status clv_fits_read_vector(const char *path, double **values, size_t *count)
{
    fitsfile *file = NULL;
    bool found = false;
    int error = 0;
    *values = NULL;
    *count = 0;
    CLV_TRY(open_file(path, &file));
    clv_status status = CLV_OK;
    do {
        int kind = ANY_HDU;
        if (has_image(file))
            status = read_vector_image(path, file, &found, values, count);
        else if (fits_get_hdu_type(file, &kind, &error) == 0 && kind != IMAGE_HDU)
            status = read_vector_table(path, file, &found, values, count);
    } while (!status && !found && next_hdu(file, &error));
    if (!status && error) status = fits_error(path, "look for a vector", error);
    if (!status && !found)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: no vector found; expected an image [T], [T,1] or "
                          "[1,T], or a table with a column of numbers",
                          path);
    close_file(file);
    return status;
}

/* ---- HDUs by name -------------------------------------------------------------------------- */

static clv_status open_named(const char *path, const char *name, fitsfile **file, bool *found)
{
    int error = 0;
    char copy[FLEN_VALUE];
    *found = false;
    CLV_TRY(open_file(path, file));
    clv_copy_string(copy, sizeof copy, name);
    if (fits_movnam_hdu(*file, ANY_HDU, copy, 0, &error) == 0)
        *found = true;
    else if (error != BAD_HDU_NUM)
        return fits_error(path, "look for an HDU", error);
    fits_clear_errmsg();
    return CLV_OK;
}

clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_array *array, bool *found)
{
    fitsfile *file = NULL;
    image_facts image;
    clv_array read = { 0 };
    size_t row = 1;
    int error = 0, any;
    *array = (clv_array){ 0 };
    clv_status status = open_named(path, name, &file, found);
    if (!status && *found && !has_image(file))
        status = clv_fail(CLV_E_FORMAT, "%s: %s is not an image with data", path, name);
    if (!status && *found) {
        status = describe_image(path, file, &image);
        if (!status && !rows) first = 0, rows = image.shape[0];
        if (!status && (first > image.shape[0] || rows > image.shape[0] - first))
            status = clv_fail(CLV_E_FORMAT, "%s: %s has %zu rows, %zu to %zu wanted", path, name,
                              image.shape[0], first, first + rows);
        if (!status) {
            image.shape[0] = rows;
            for (size_t i = 1; i < image.rank; ++i)
                row *= image.shape[i];
            status = clv_array_create(&read, path, image.array_type, image.rank, image.shape);
        }
        if (!status && rows &&
            fits_read_img(file, image.type, (LONGLONG)(first * row + 1), (LONGLONG)(rows * row),
                          NULL, read.data, &any, &error))
            status = fits_error(path, "read the image's pixels", error);
    }
    if (!status) {
        *array = read;
        read = (clv_array){ 0 };
    }
    clv_array_clear(&read);
    close_file(file);
    return status;
}

/* Terminated texts of a fixed width; the pointers that CFITSIO wants go with the array. */
static clv_status read_texts(const char *path, fitsfile *file, int column, size_t rows,
                             clv_array *array)
{
    int error = 0, width = 0, any;
    char nothing[] = "";
    fits_get_col_display_width(file, column, &width, &error);
    if (error || width < 1 || width > 10000) return fits_error(path, "read a column", error);
    const size_t shape[] = { rows, (size_t)width + 1 };
    CLV_TRY(clv_array_create(array, path, CLV_U8, 2, shape));
    char **texts = clv_alloc(rows, sizeof *texts);
    if (!texts) return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu texts", path, rows);
    for (size_t i = 0; i < rows; ++i)
        texts[i] = (char *)array->data + i * shape[1];
    fits_read_col(file, TSTRING, column, 1, 1, (LONGLONG)rows, nothing, texts, &any, &error);
    clv_free(texts);
    return error ? fits_error(path, "read a column", error) : CLV_OK;
}

clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_array *array, bool *found)
{
    fitsfile *file = NULL;
    clv_array read = { 0 };
    int error = 0, number = 0, kind = ANY_HDU, of = 0, any;
    LONGLONG rows = 0, repeat = 0, start = 0;
    double nan64 = NAN;
    char name[FLEN_VALUE];
    *array = (clv_array){ 0 };
    clv_copy_string(name, sizeof name, column);
    clv_status status = open_named(path, table, &file, found);
    if (!status && *found) {
        fits_get_hdu_type(file, &kind, &error);
        if (kind == IMAGE_HDU || fits_get_colnum(file, CASEINSEN, name, &number, &error)) {
            *found = false;
            fits_clear_errmsg();
        }
    }
    if (!status && *found) {
        fits_get_num_rowsll(file, &rows, &error);
        fits_get_coltypell(file, number, &of, &repeat, NULL, &error);
        fits_get_hduaddrll(file, NULL, &start, NULL, &error);
        const LONGLONG there = error ? 0 : file->Fptr->filesize - start;
        const LONGLONG width = error ? 0 : file->Fptr->rowlength;
        const size_t shape[] = { (size_t)rows };
        if (error)
            status = fits_error(path, "read the table's header", error);
        else if (rows < 0 || width < 0 || there < 0 || rows > there / CLV_MAX(width, 1))
            status = clv_fail(CLV_E_FORMAT, "%s: truncated inside the table %s", path, table);
        else if ((type == CLV_U8) != (of == TSTRING) || of < 0 || (of != TSTRING && repeat != 1))
            *found = false; /* of another kind than asked for */
        else if (type == CLV_U8)
            status = read_texts(path, file, number, shape[0], &read);
        else {
            status = clv_array_create(&read, path, type, 1, shape);
            if (!status && rows)
                fits_read_col(file, type == CLV_I64 ? TLONGLONG : TDOUBLE, number, 1, 1, rows,
                              type == CLV_I64 ? NULL : &nan64, read.data, &any, &error);
            if (!status && error) status = fits_error(path, "read a column", error);
        }
    }
    if (!status) {
        *array = read;
        read = (clv_array){ 0 };
    }
    clv_array_clear(&read);
    close_file(file);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void *grow(void *old, size_t bytes)
{
    return clv_realloc(old, bytes, 1);
}

static void write_cards(fitsfile *file, const clv_fits_cards *cards, size_t rank, int *error)
{
    for (size_t i = 0; i < cards->count; ++i)
        if (clv_fits_card_fits(cards, &cards->items[i], rank))
            fits_write_record(file, cards->items[i].text, error);
}

clv_status clv_fits_write(const char *path, const clv_array *array, const clv_fits_cards *cards)
{
    LONGLONG naxes[CLV_MAX_RANK];
    const bool wide = array->type == CLV_F64;
    if (array->type != CLV_F32 && !wide)
        return clv_fail(CLV_E_ARGUMENT, "%s: FITS images are written as float32 or float64, not %s",
                        path, clv_type_name(array->type));
    if (!array->rank || !clv_array_count(array))
        return clv_fail(CLV_E_ARGUMENT, "%s: an array without axes or elements", path);
    if (cards && cards->failed)
        return clv_fail(CLV_E_MEMORY, "%s: no memory for header cards", path);
    for (size_t i = 0; i < array->rank; ++i)
        naxes[i] = (LONGLONG)array->shape[array->rank - 1 - i];

    /* Made in memory, so that the library never sees the path and disk errors are ours to tell. */
    fitsfile *file = NULL;
    size_t capacity = BLOCK;
    void *memory = clv_zalloc(capacity, 1);
    if (!memory) return clv_fail(CLV_E_MEMORY, "%s: no memory for the file", path);
    int error = 0;
    LONGLONG end = 0;
    fits_create_memfile(&file, &memory, &capacity, clv_array_bytes(array) + 2 * BLOCK, grow,
                        &error);
    fits_create_imgll(file, wide ? DOUBLE_IMG : FLOAT_IMG, (int)array->rank, naxes, &error);
    if (cards) write_cards(file, cards, array->rank, &error);
    fits_write_img(file, wide ? TDOUBLE : TFLOAT, 1, (LONGLONG)clv_array_count(array), array->data,
                   &error);
    fits_flush_file(file, &error);
    fits_get_hduaddrll(file, NULL, NULL, &end, &error);
    clv_status status = error ? fits_error(path, "make the FITS file", error) : CLV_OK;
    if (file) {
        int close_error = 0;
        fits_close_file(file, &close_error); /* writes the padding of the last block */
        if (close_error && !status) status = fits_error(path, "make the FITS file", close_error);
    }
    const clv_part part = { memory, (size_t)end };
    if (!status) status = clv_parts_write(path, &part, 1);
    clv_free(memory);
    return status;
}

#else /* without CFITSIO */

static clv_status missing(const char *path)
{
    return clv_fail(CLV_E_FORMAT,
                    "%s: this Cleave was built without FITS; use .npy, or build it "
                    "with CFITSIO",
                    path);
}

clv_status clv_fits_read(const char *path, int hdu, clv_array *array, clv_fits_cards *cards)
{
    (void)hdu, (void)cards;
    *array = (clv_array){ 0 };
    return missing(path);
}

clv_status clv_fits_read_vector(const char *path, double **values, size_t *count)
{
    *values = NULL;
    *count = 0;
    return missing(path);
}

clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_array *array, bool *found)
{
    (void)name, (void)first, (void)rows;
    *array = (clv_array){ 0 }, *found = false;
    return missing(path);
}

clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_array *array, bool *found)
{
    (void)table, (void)column, (void)type;
    *array = (clv_array){ 0 }, *found = false;
    return missing(path);
}

clv_status clv_fits_write(const char *path, const clv_array *array, const clv_fits_cards *cards)
{
    (void)array, (void)cards;
    return missing(path);
}

#endif

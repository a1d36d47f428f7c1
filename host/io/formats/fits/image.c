/* SPDX-License-Identifier: Apache-2.0 */
/* Reads images of FITS files. Sizes that a header claims are compared with the length of the file before anything is
 * allocated. */
#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { MAX_COMPRESSION = 10000 /* pixels per byte of tiles; constant images reach about 1000 */ };

bool clv_fits_has_image(const clv_fits_source *source)
{
    if (source->tiles.found) {
        for (int i = 0; i < CLV_MIN((int)source->tiles.rank, CLV_MAX_RANK); ++i)
            if (source->tiles.axis[i] < 1) return false;
        return source->tiles.rank > 0;
    }
    fitsfile *file = source->file;
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

static clv_status find_image(clv_fits_source *source, int hdu)
{
    bool more = true;
    if (hdu != CLV_FITS_FIRST_IMAGE) {
        CLV_TRY(clv_fits_goto(source, hdu, &more));
        if (!more)
            return clv_fail(CLV_E_FORMAT, "%s: there is no HDU %d (0 is the primary one)",
                            source->path, hdu);
        if (!clv_fits_has_image(source))
            return clv_fail(CLV_E_FORMAT, "%s: HDU %d is not an image with data", source->path,
                            hdu);
        return CLV_OK;
    }
    while (more) {
        if (clv_fits_has_image(source)) return CLV_OK;
        CLV_TRY(clv_fits_next(source, &more));
    }
    int number = 0;
    fits_get_hdu_num(source->file, &number);
    return clv_fail(CLV_E_FORMAT, "%s: none of its %d HDU%s has an image with data", source->path,
                    number, number == 1 ? "" : "s");
}

/* For each type of pixels after BSCALE and BZERO (`equivalent`): the type as which CFITSIO reads them and the array's
 * type, first without BLANK, then with BLANK, whose pixels become NaN. */
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

/* Returns whether the image's types belong together. They may come from a sandbox process whose memory was damaged. */
static bool type_is_known(const clv_fits_image *image)
{
    for (size_t i = 0; i < CLV_LEN(pixel_types); ++i) {
        if (image->type == pixel_types[i].type && image->array_type == pixel_types[i].plain)
            return true;
        if (image->type == pixel_types[i].type_blank && image->array_type == pixel_types[i].blank)
            return true;
    }
    return false;
}

/* Returns whether a card exists, without reading it: if CFITSIO 4.2 reads a long text as an integer, it writes beyond a
 * buffer (ffc2j), and Debian's build then aborts. So this file reads no card as an integer. */
static bool has_card(fitsfile *file, const char *key)
{
    char card[FLEN_CARD];
    int error = 0;
    fits_read_card(file, key, card, &error);
    fits_clear_errmsg();
    return !error;
}

static clv_status find_type(clv_fits_source *source, clv_fits_image *out)
{
    int error = 0, equivalent = 0;
    fitsfile *file = source->file;
    fits_get_img_equivtype(file, &equivalent, &error);
    if (error) return clv_fits_error(source->path, "read the pixel type", error);
    out->blanks = out->bitpix > 0 && (has_card(file, "BLANK") || has_card(file, "ZBLANK"));
    for (size_t i = 0; i < CLV_LEN(pixel_types); ++i) {
        if (pixel_types[i].equivalent != equivalent) continue;
        out->type = out->blanks ? pixel_types[i].type_blank : pixel_types[i].type;
        out->array_type = out->blanks ? pixel_types[i].blank : pixel_types[i].plain;
        return CLV_OK;
    }
    return clv_fail(CLV_E_FORMAT, "%s: BITPIX %d is not a FITS pixel type", source->path,
                    out->bitpix);
}

/* Checks the image's claimed sizes against the bytes of the file, so that no more memory than they justify is
 * allocated. */
static clv_status check_length(clv_fits_source *source, const clv_fits_image *image)
{
    int error = 0;
    LONGLONG start = 0, end = 0;
    const char *path = source->path;
    char shape[CLV_SHAPE_TEXT];
    size_t count = 0, bytes = 0, pixels = 0;
    clv_shape_text(image->rank, image->shape, shape);
    if (!clv_shape_size(image->array_type, image->rank, image->shape, &count, &bytes) ||
        !clv_size_mul(count, (size_t)abs(image->bitpix) / 8, &pixels) || pixels > INT64_MAX / 2)
        return clv_fail(CLV_E_SHAPE, "%s: image %s needs more memory than can be addressed", path,
                        shape);

    fits_get_hduaddrll(source->file, NULL, &start, &end, &error);
    if (error) return clv_fits_error(path, "find the image", error);
    const LONGLONG length = clv_fits_length(source);
    const uint64_t there = length > start ? (uint64_t)(length - start) : 0;
    if (!image->compressed && pixels > there)
        return clv_fail(CLV_E_FORMAT,
                        "%s: truncated: the file has %llu bytes of data, but it must have %zu for "
                        "image %s with BITPIX %d",
                        path, (unsigned long long)there, pixels, shape, image->bitpix);
    if (image->compressed && pixels / MAX_COMPRESSION > there)
        return clv_fail(CLV_E_FORMAT,
                        "%s: %llu bytes of compressed data cannot hold an image of %s", path,
                        (unsigned long long)there, shape);
    return CLV_OK;
}

/* Reads all pixels of the image. This runs in the child process that unpacks tiles. */
static clv_status read_all(clv_fits_source *source, clv_fits_image *image, size_t pixels,
                           void *data)
{
    size_t count = 1;
    CLV_TRY(clv_fits_image_describe(source, image));
    for (size_t i = 0; i < image->rank; ++i)
        count *= image->shape[i];
    if (count != pixels)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the headers give two different sizes for a compressed image",
                        source->path);
    return clv_fits_image_read(source, image, 0, count, data);
}

static clv_status unpack(clv_fits_source *source, clv_fits_image *out)
{
    CLV_TRY(clv_fits_unpack(source, read_all));
    *out = *clv_fits_unpacked(source, NULL);
    if (type_is_known(out)) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: a compressed image is damaged", source->path);
}

clv_status clv_fits_image_describe(clv_fits_source *source, clv_fits_image *out)
{
    int error = 0, naxis = 0;
    LONGLONG naxes[CLV_MAX_RANK] = { 0 };
    *out = (clv_fits_image){ 0 };
    if (source->tiles.found) {
        return unpack(source, out);
    }
    out->compressed = fits_is_compressed_image(source->file, &error);
    fits_get_img_paramll(source->file, CLV_MAX_RANK, &out->bitpix, &naxis, naxes, &error);
    if (error) return clv_fits_error(source->path, "read the image's header", error);
    if (naxis > CLV_MAX_RANK)
        return clv_fail(CLV_E_SHAPE, "%s: the image has %d axes, but at most %d are supported",
                        source->path, naxis, CLV_MAX_RANK);
    out->rank = (size_t)naxis;
    for (size_t i = 0; i < out->rank; ++i)
        out->shape[i] = (size_t)naxes[out->rank - 1 - i]; /* FITS names the innermost axis first */
    CLV_TRY(find_type(source, out));
    return check_length(source, out);
}

clv_status clv_fits_image_read(clv_fits_source *source, const clv_fits_image *image, size_t first,
                               size_t count, void *data)
{
    if (source->tiles.found) {
        const char *pixels;
        clv_fits_image whole;
        CLV_TRY(unpack(source, &whole));
        (void)clv_fits_unpacked(source, &pixels);
        const size_t size = clv_type_size(whole.array_type);
        memcpy(data, pixels + first * size, count * size);
        return CLV_OK;
    }
    /* If no value for blank pixels is given, CFITSIO reads floats directly into `data`. */
    const bool check = image->blanks || image->compressed;
    float nan32 = NAN;
    double nan64 = NAN;
    void *blank = NULL;
    if (check && image->type == TFLOAT) blank = &nan32;
    if (check && image->type == TDOUBLE) blank = &nan64;
    int error = 0, any; /* CFITSIO writes to `any` without checking for NULL */
    if (fits_read_img(source->file, image->type, (LONGLONG)first + 1, (LONGLONG)count, blank, data,
                      &any, &error))
        return clv_fits_error(source->path, "read the image's pixels", error);
    return CLV_OK;
}

/* ---- cards --------------------------------------------------------------------------------- */

static clv_status carry_cards(clv_fits_source *source, clv_fits_cards *cards)
{
    int error = 0, count = 0;
    char record[FLEN_CARD];
    fits_get_hdrspace(source->file, &count, NULL, &error);
    for (int i = 1; i <= count && !fits_read_record(source->file, i, record, &error); ++i)
        clv_fits_card_carry(cards, record);
    return error ? clv_fits_error(source->path, "read the header", error) : CLV_OK;
}

/* Collects cards from the primary HDU, which often names the target, and from the image's HDU, which has the
 * coordinates. */
static clv_status read_cards(clv_fits_source *source, size_t rank, clv_fits_cards *cards)
{
    int number = 1, error = 0;
    const char *path = source->path;
    fits_get_hdu_num(source->file, &number);
    if (number > 1) {
        fits_movabs_hdu(source->file, 1, NULL, &error);
        clv_fits_settle(source);
        if (error) return clv_fits_error(path, "read the primary header", error);
        CLV_TRY(carry_cards(source, cards));
        clv_fits_cards_drop_axes(cards);
        fits_movabs_hdu(source->file, number, NULL, &error);
        clv_fits_settle(source);
        if (error) return clv_fits_error(path, "return to the image", error);
    }
    CLV_TRY(carry_cards(source, cards));
    cards->rank = rank;
    return cards->failed ? clv_fail(CLV_E_MEMORY, "%s: not enough memory for header cards", path)
                         : CLV_OK;
}

/* ---- what other files call ------------------------------------------------------------------- */

/* Goes to the image that `extension` names; if it is NULL, to that of HDU number `hdu`, which may be
 * CLV_FITS_FIRST_IMAGE. */
static clv_status goto_image(clv_fits_source *source, const char *extension, int hdu)
{
    if (!extension) return find_image(source, hdu);
    CLV_TRY(clv_fits_goto_extension(source, extension));
    return clv_fits_has_image(source)
               ? CLV_OK
               : clv_fail(CLV_E_FORMAT, "%s: HDU [%s] is not an image with data", source->path,
                          extension);
}

static clv_status read_whole(const char *path, const char *extension, int hdu,
                             clv_file_array *array, clv_fits_cards *cards)
{
    clv_fits_source source = { 0 };
    clv_fits_image image;
    clv_file_array read = { 0 };
    *array = (clv_file_array){ 0 };
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = goto_image(&source, extension, hdu);
    if (!status) status = clv_fits_image_describe(&source, &image);
    if (!status)
        status = clv_file_array_create(&read, path, image.array_type, image.rank, image.shape);
    if (!status)
        status = clv_fits_image_read(&source, &image, 0, clv_file_array_count(&read), read.data);
    if (!status && cards) status = read_cards(&source, image.rank, cards);
    if (!status) {
        *array = read;
        read = (clv_file_array){ 0 };
    }
    if (status && cards) clv_fits_cards_clear(cards);
    clv_file_array_clear(&read);
    clv_fits_close(&source);
    return status;
}

clv_status clv_fits_read(const char *path, int hdu, clv_file_array *array, clv_fits_cards *cards)
{
    return read_whole(path, NULL, hdu, array, cards);
}

clv_status clv_fits_read_extension(const char *path, const char *extension, clv_file_array *array,
                                   clv_fits_cards *cards)
{
    return read_whole(path, extension, CLV_FITS_FIRST_IMAGE, array, cards);
}

static clv_status read_rows(clv_fits_source *source, const char *name, size_t first, size_t rows,
                            clv_file_array *array)
{
    clv_fits_image image;
    if (!clv_fits_has_image(source))
        return clv_fail(CLV_E_FORMAT, "%s: %s is not an image with data", source->path, name);
    CLV_TRY(clv_fits_image_describe(source, &image));
    if (!rows) first = 0, rows = image.shape[0];
    if (first > image.shape[0] || rows > image.shape[0] - first)
        return clv_fail(CLV_E_FORMAT, "%s: %s has %zu rows, but rows %zu to %zu were asked for",
                        source->path, name, image.shape[0], first, first + rows);
    size_t row = 1;
    for (size_t i = 1; i < image.rank; ++i)
        row *= image.shape[i];
    image.shape[0] = rows;
    CLV_TRY(clv_file_array_create(array, source->path, image.array_type, image.rank, image.shape));
    return rows ? clv_fits_image_read(source, &image, first * row, rows * row, array->data)
                : CLV_OK;
}

clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_file_array *array, bool *found)
{
    clv_fits_source source = { 0 };
    *array = (clv_file_array){ 0 };
    *found = false;
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = clv_fits_goto_name(&source, name, found);
    if (!status && *found) status = read_rows(&source, name, first, rows, array);
    if (status) clv_file_array_clear(array);
    clv_fits_close(&source);
    return status;
}

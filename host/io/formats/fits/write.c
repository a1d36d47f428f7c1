/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an array as a FITS file. */
#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

enum { BLOCK = 2880 }; /* bytes; the length of a FITS file is a multiple of it */

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

clv_status clv_fits_write(const char *path, const clv_file_array *array,
                          const clv_fits_cards *cards)
{
    LONGLONG naxes[CLV_MAX_RANK];
    const bool wide = array->type == CLV_F64;
    if (array->type != CLV_F32 && !wide)
        return clv_fail(CLV_E_ARGUMENT, "%s: FITS images are written as float32 or float64, not %s",
                        path, clv_type_name(array->type));
    if (!array->rank || !clv_file_array_count(array))
        return clv_fail(CLV_E_ARGUMENT, "%s: the array has no axes or no elements", path);
    if (cards && cards->failed)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for header cards", path);
    for (size_t i = 0; i < array->rank; ++i)
        naxes[i] = (LONGLONG)array->shape[array->rank - 1 - i];

    /* CFITSIO makes the file in memory, so that it never sees the path, and this function reports disk errors. */
    fitsfile *file = NULL;
    size_t capacity = BLOCK;
    void *memory = clv_zalloc(capacity, 1);
    if (!memory) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the file", path);
    int error = 0;
    LONGLONG end = 0;
    fits_create_memfile(&file, &memory, &capacity, clv_file_array_bytes(array) + 2 * BLOCK, grow,
                        &error);
    fits_create_imgll(file, wide ? DOUBLE_IMG : FLOAT_IMG, (int)array->rank, naxes, &error);
    if (cards) write_cards(file, cards, array->rank, &error);
    fits_write_img(file, wide ? TDOUBLE : TFLOAT, 1, (LONGLONG)clv_file_array_count(array),
                   array->data, &error);
    fits_flush_file(file, &error);
    fits_get_hduaddrll(file, NULL, NULL, &end, &error);
    clv_status status = error ? clv_fits_error(path, "make the FITS file", error) : CLV_OK;
    if (file) {
        int close_error = 0;
        fits_close_file(file, &close_error); /* writes the padding of the last block */
        if (close_error && !status)
            status = clv_fits_error(path, "make the FITS file", close_error);
    }
    const clv_part part = { memory, (size_t)end };
    if (!status) status = clv_parts_write(path, &part, 1);
    clv_free(memory);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of FITS tables as undecoded bytes, and header cards of any HDU. */
#include "host/io/formats/fits_copy.h"

#include "host/io/formats/fits/library.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

enum { RECORD = 80, KEY = 8, MOST_CARDS = 20000 };

/* Returns whether clv_fits_table_head writes a card with this key itself, so that it must not be copied. */
static bool is_structure(const char *key)
{
    static const char *const own[] = { "XTENSION", "BITPIX", "PCOUNT",   "GCOUNT",  "TFIELDS",
                                       "EXTNAME",  "THEAP",  "CHECKSUM", "DATASUM", "END" };
    if (strncmp(key, "NAXIS", 5) == 0) return true;
    for (size_t i = 0; i < CLV_LEN(own); ++i)
        if (strcmp(key, own[i]) == 0) return true;
    return false;
}

static bool is_among(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* Appends cards of the current header to `cards`: those whose key is in `keys` [count], or, if `keys` is NULL, all that
 * is_structure does not exclude. */
static clv_status keep_cards(clv_fits_source *source, const char *const *keys, size_t count,
                             clv_text *cards)
{
    int error = 0, all = 0;
    fits_get_hdrspace(source->file, &all, NULL, &error);
    for (int i = 1; !error && i <= CLV_MIN(all, MOST_CARDS); ++i) {
        char record[FLEN_CARD] = "", key[KEY + 1] = "", padded[RECORD];
        fits_read_record(source->file, i, record, &error);
        const size_t length = strnlen(record, RECORD);
        memcpy(key, record, CLV_MIN(length, (size_t)KEY));
        for (size_t k = strlen(key); k && key[k - 1] == ' '; --k)
            key[k - 1] = '\0';
        if (keys ? !is_among(key, keys, count) : is_structure(key)) continue;
        memset(padded, ' ', sizeof padded);
        memcpy(padded, record, length);
        for (size_t k = 0; k < RECORD; ++k)
            if (padded[k] < 0x20 || padded[k] > 0x7E) padded[k] = '?';
        clv_text_bytes(cards, padded, sizeof padded);
    }
    if (error) return clv_fits_error(source->path, "read a header", error);
    return cards->failed
               ? clv_fail(CLV_E_MEMORY, "%s: not enough memory for a header", source->path)
               : CLV_OK;
}

static clv_status read_table(clv_fits_source *source, clv_fits_raw *raw, bool *found)
{
    int error = 0, kind = ANY_HDU, columns = 0;
    LONGLONG rows = 0;
    *found = false;
    fits_get_hdu_type(source->file, &kind, &error);
    if (error || kind != BINARY_TBL) return CLV_OK;
    fits_get_num_cols(source->file, &columns, &error);
    if (error) return clv_fits_error(source->path, "read the table's header", error);
    /* Detects a heap (PCOUNT) through CFITSIO's struct: if CFITSIO 4.2 reads the card and its value is not a number, it
     * ends the program. */
    if (source->file->Fptr->heapsize != 0) return CLV_OK;
    CLV_TRY(clv_fits_count_rows(source, &rows));
    raw->rows = (size_t)rows, raw->columns = (size_t)CLV_MAX(columns, 0);
    raw->width = (size_t)CLV_MAX(source->file->Fptr->rowlength, (LONGLONG)0);
    CLV_TRY(keep_cards(source, NULL, 0, &raw->cards));
    /* clv_fits_count_rows checked that the file holds that many */
    const size_t bytes = raw->rows * raw->width;
    if (!(raw->bytes = clv_alloc(CLV_MAX(bytes, (size_t)1), 1)))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu rows", source->path,
                        raw->rows);
    if (bytes) fits_read_tblbytes(source->file, 1, 1, (LONGLONG)bytes, raw->bytes, &error);
    *found = true;
    return error ? clv_fits_error(source->path, "read the table", error) : CLV_OK;
}

clv_status clv_fits_raw_read(const char *path, const char *name, clv_fits_raw *raw, bool *found)
{
    clv_fits_source source = { 0 };
    *raw = (clv_fits_raw){ 0 }, *found = false;
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = clv_fits_goto_name(&source, name, found);
    if (!status && *found) status = read_table(&source, raw, found);
    if (status || !*found) clv_fits_raw_clear(raw);
    if (status) *found = false;
    clv_fits_close(&source);
    return status;
}

clv_status clv_fits_raw_primary(const char *path, const char *const *keys, size_t count,
                                clv_fits_raw *raw)
{
    clv_fits_source source = { 0 };
    *raw = (clv_fits_raw){ 0 };
    clv_status status = clv_fits_open(&source, path);
    if (!status) status = keep_cards(&source, keys, count, &raw->cards);
    if (status) clv_fits_raw_clear(raw);
    clv_fits_close(&source);
    return status;
}

/* ---- the contents of a file ------------------------------------------------------------------ */

static clv_status describe(clv_fits_source *source, clv_fits_hdu *out)
{
    int error = 0, kind = ANY_HDU, unnamed = 0;
    char name[FLEN_VALUE] = "";
    out->has_image = clv_fits_has_image(source);
    fits_get_hdu_type(source->file, &kind, &error);
    if (error) return clv_fits_error(source->path, "read a header", error);
    out->is_table = !out->has_image && kind != IMAGE_HDU;
    fits_read_key(source->file, TSTRING, "EXTNAME", name, NULL, &unnamed);
    fits_clear_errmsg();
    clv_copy_string(out->name, sizeof out->name, name);
    return keep_cards(source, NULL, 0, &out->cards);
}

clv_status clv_fits_describe(const char *path, clv_fits_hdus *hdus)
{
    clv_fits_source source = { 0 };
    *hdus = (clv_fits_hdus){ 0 };
    clv_status status = clv_fits_open(&source, path);
    for (bool more = true; more && !status && hdus->count < CLV_FITS_MOST_HDUS;) {
        status = describe(&source, &hdus->item[hdus->count]);
        ++hdus->count;
        if (!status) status = clv_fits_next(&source, &more);
    }
    if (status) clv_fits_hdus_clear(hdus);
    clv_fits_close(&source);
    return status;
}

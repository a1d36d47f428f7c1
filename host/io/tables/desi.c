/* SPDX-License-Identifier: Apache-2.0 */
/* Reads DESI's coadd- and spectra- files (FIBERMAP, SCORES, and five images per arm), and its cframe- files (the images
 * of one arm). */
#include "host/io/tables/desi.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits.h"
#include "host/io/formats/fits_copy.h"
#include "host/io/tables/spectrum.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char clv_desi_arm_letters[CLV_DESI_ARMS + 1] = "BRZ";

static const char *hdu_name(const clv_desi *d, size_t arm, const char *what, char out[32])
{
    if (d->is_frame)
        snprintf(out, 32, "%s", what);
    else
        snprintf(out, 32, "%c_%s", clv_desi_arm_letters[arm], what);
    return out;
}

/* Reads a table's column of numbers as `type`; *found is false if there is none. Fails if the column has another number
 * of rows than FIBERMAP. */
static clv_status read_numbers(const clv_desi *d, const char *table, const char *column,
                               clv_type type, clv_file_array *out, bool *found)
{
    CLV_TRY(clv_fits_read_column(d->path, table, column, type, out, found));
    if (*found && out->shape[0] != d->rows && d->rows) {
        const size_t rows = out->shape[0];
        clv_file_array_clear(out);
        return clv_fail(CLV_E_FORMAT, "%s: %s has %zu rows, but FIBERMAP has %zu", d->path, table,
                        rows, d->rows);
    }
    return CLV_OK;
}

static clv_status read_texts(clv_desi *d, bool *is_bad)
{
    clv_file_array types = { 0 }, catalogues = { 0 };
    bool found, known;
    clv_status status =
        clv_fits_read_column(d->path, "FIBERMAP", "OBJTYPE", CLV_U8, &types, &found);
    if (!status)
        status = clv_fits_read_column(d->path, "FIBERMAP", "REF_CAT", CLV_U8, &catalogues, &known);
    for (size_t i = 0; i < d->rows && !status; ++i) {
        const char *type = found ? (const char *)types.data + i * types.shape[1] : "";
        is_bad[i] = strncmp(type, "SKY", 3) == 0 || strncmp(type, "BAD", 3) == 0;
        if (known)
            clv_copy_string(d->row[i].catalogue, CLV_DESI_CATALOGUE,
                            (const char *)catalogues.data + i * catalogues.shape[1]);
    }
    clv_file_array_clear(&types), clv_file_array_clear(&catalogues);
    return status;
}

/* Returns a number of the fibre map in 32 bits, in which DESI stores it; -1, as a status all bits, if it has more. */
static int32_t in_32_bits(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX ? (int32_t)value : -1;
}

/* Reads the integers and coordinates of the fibre map. */
static clv_status read_fibermap(clv_desi *d)
{
    static const char *const ints[] = { "FIBER", "BRICKID", "REF_ID", "EXPID" };
    static const char *const status_names[] = { "FIBERSTATUS", "COADD_FIBERSTATUS" };
    static const char *const places[] = { "TARGET_RA", "TARGET_DEC" };
    clv_file_array a = { 0 };
    bool found;
    CLV_TRY(clv_fits_read_column(d->path, "FIBERMAP", "TARGETID", CLV_I64, &a, &found));
    if (!found)
        return clv_fail(CLV_E_FORMAT, "%s: there is no table FIBERMAP with a column TARGETID",
                        d->path);
    d->rows = a.shape[0];
    d->row = clv_zalloc(CLV_MAX(d->rows, (size_t)1), sizeof *d->row);
    bool *is_bad = clv_zalloc(CLV_MAX(d->rows, (size_t)1), sizeof *is_bad);
    clv_status status =
        d->row && is_bad ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", d->path);
    for (size_t i = 0; i < d->rows && !status; ++i) {
        clv_desi_row *r = &d->row[i];
        *r = (clv_desi_row){ .target = ((int64_t *)a.data)[i],
                             .reference = -1,
                             .brick = -1,
                             .expid = -1,
                             .fiber = -1,
                             .plate = -1,
                             .mjd = -1,
                             .ra = NAN,
                             .dec = NAN };
        for (int k = 0; k < CLV_DESI_ARMS; ++k)
            r->snr[k] = NAN;
    }
    clv_file_array_clear(&a);
    for (size_t c = 0; c < CLV_LEN(ints) && !status; ++c) {
        status = read_numbers(d, "FIBERMAP", ints[c], CLV_I64, &a, &found);
        for (size_t i = 0; i < d->rows && !status && found; ++i) {
            const int64_t v = ((int64_t *)a.data)[i];
            clv_desi_row *r = &d->row[i];
            if (c == 0) r->fiber = in_32_bits(v);
            if (c == 1) r->brick = v;
            if (c == 2) r->reference = v;
            if (c == 3) r->expid = v;
        }
        clv_file_array_clear(&a);
    }
    for (size_t c = 0; c < CLV_LEN(places) && !status; ++c) {
        status = read_numbers(d, "FIBERMAP", places[c], CLV_F64, &a, &found);
        for (size_t i = 0; i < d->rows && !status && found; ++i)
            *(c ? &d->row[i].dec : &d->row[i].ra) = ((double *)a.data)[i];
        clv_file_array_clear(&a);
    }
    found = false;
    for (size_t c = 0; c < CLV_LEN(status_names) && !status && !found; ++c) {
        status = read_numbers(d, "FIBERMAP", status_names[c], CLV_I64, &a, &found);
        for (size_t i = 0; i < d->rows && !status && found; ++i)
            d->row[i].status = in_32_bits(((int64_t *)a.data)[i]);
        clv_file_array_clear(&a);
    }
    if (!status) status = read_texts(d, is_bad);
    for (size_t i = 0; i < d->rows && !status; ++i)
        d->row[i].is_star = !is_bad[i] && (d->row[i].status & ~(8 | 1 << 20)) == 0;
    clv_free(is_bad);
    return status;
}

static clv_status read_scores(clv_desi *d)
{
    static const char *const forms[] = { "MEDIAN_CALIB_SNR_%c", "MEDIAN_COADD_SNR_%c",
                                         "MEDIAN_COADD_FLUX_SNR_%c" };
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k) {
        bool found = false;
        for (size_t f = 0; f < CLV_LEN(forms) && !found; ++f) {
            clv_file_array a = { 0 };
            char column[48];
            const char *under = strchr(forms[f], '%');
            snprintf(column, sizeof column, "%.*s%c", (int)(under - forms[f]), forms[f],
                     clv_desi_arm_letters[k]);
            CLV_TRY(read_numbers(d, "SCORES", column, CLV_F64, &a, &found));
            for (size_t i = 0; i < d->rows && found; ++i)
                d->row[i].snr[k] = ((double *)a.data)[i];
            clv_file_array_clear(&a);
        }
    }
    return CLV_OK;
}

/* Converts the wavelengths of the image `name` to Angstrom if its header names another unit (BUNIT). */
static clv_status convert_wavelengths(const clv_desi *d, const char *name, clv_file_array *w)
{
    char unit[72] = "";
    clv_fits_hdus *hdus = clv_zalloc(1, sizeof *hdus);
    if (!hdus) return clv_fail(CLV_E_MEMORY, "%s: out of memory", d->path);
    const clv_status status = clv_fits_describe(d->path, hdus);
    for (size_t i = 0; !status && i < hdus->count; ++i)
        if (strcasecmp(hdus->item[i].name, name) == 0)
            (void)clv_fits_hdu_text(&hdus->item[i], "BUNIT", unit, sizeof unit);
    clv_fits_hdus_clear(hdus);
    clv_free(hdus);
    CLV_TRY(status);
    const double angstrom = *unit ? clv_angstrom_in(unit) : 1;
    if (angstrom == 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the unit of %s (BUNIT) is \"%s\"; expected Angstrom, nm, um or m",
                        d->path, name, unit);
    for (size_t k = 0; angstrom != 1 && k < clv_file_array_count(w); ++k)
        ((double *)w->data)[k] *= angstrom;
    return CLV_OK;
}

static clv_status check_wavelengths(const clv_desi *d, const char *name, const clv_file_array *w)
{
    const double *at = w->data;
    if (w->rank != 1) return clv_fail(CLV_E_FORMAT, "%s: %s is not a vector", d->path, name);
    for (size_t k = 0; k < w->shape[0]; ++k)
        if (!isfinite(at[k]) || (k && !(at[k] > at[k - 1])))
            return clv_fail(
                CLV_E_FORMAT,
                "%s: %s is %g at pixel %zu, after %g; wavelengths must be finite and rise; "
                "sort the pixels of the arm, or mask bad ones in MASK",
                d->path, name, at[k], k, k ? at[k - 1] : 0.0);
    return CLV_OK;
}

static clv_status read_wavelengths(clv_desi *d, size_t arm)
{
    char name[32];
    clv_file_array *w = &d->wavelength[arm];
    CLV_TRY(clv_fits_read_named(d->path, hdu_name(d, arm, "WAVELENGTH", name), 0, 0, w,
                                &d->present[arm]));
    if (!d->present[arm]) return CLV_OK;
    CLV_TRY(clv_file_array_convert(w, d->path, CLV_F64));
    CLV_TRY(convert_wavelengths(d, name, w));
    return check_wavelengths(d, name, w);
}

/* Reads a frame, which has one arm: the card CAMERA ("b3") names it, and EXPID is the exposure. */
static clv_status read_frame(clv_desi *d)
{
    static const char lower[] = "brz";
    clv_fits_hdus *hdus = clv_zalloc(1, sizeof *hdus);
    char camera[16] = "";
    double expid = -1;
    if (!hdus) return clv_fail(CLV_E_MEMORY, "%s: out of memory", d->path);
    clv_status status = clv_fits_describe(d->path, hdus);
    for (size_t i = hdus->count; i-- > 0;) {
        (void)clv_fits_hdu_text(&hdus->item[i], "CAMERA", camera, sizeof camera);
        (void)clv_fits_hdu_number(&hdus->item[i], "EXPID", &expid);
    }
    clv_fits_hdus_clear(hdus);
    clv_free(hdus);
    const char *letter = *camera ? strchr(lower, camera[0] | 0x20) : NULL;
    if (status || !letter || !*letter) return status;
    d->is_frame = true;
    for (size_t i = 0; i < d->rows && expid >= 0 && expid < 9e15; ++i)
        if (d->row[i].expid < 0) d->row[i].expid = (int64_t)expid;
    return read_wavelengths(d, (size_t)(letter - lower));
}

clv_status clv_desi_open(const char *path, clv_desi *d)
{
    bool any = false;
    *d = (clv_desi){ 0 };
    if (!(d->path = clv_strdup(path))) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    clv_status status = read_fibermap(d);
    if (!status) status = read_scores(d);
    for (size_t k = 0; k < CLV_DESI_ARMS && !status; ++k) {
        status = read_wavelengths(d, k);
        any |= d->present[k];
    }
    if (!status && !any) status = read_frame(d);
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
        any |= d->present[k];
    if (!status && !any)
        status = clv_fail(CLV_E_FORMAT,
                          "%s is not a file of DESI spectra: it has no B_, R_ or Z_WAVELENGTH, "
                          "nor a frame's WAVELENGTH with a card CAMERA",
                          path);
    if (status) clv_desi_clear(d);
    return status;
}

void clv_desi_clear(clv_desi *d)
{
    clv_free(d->path), clv_free(d->row);
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
        clv_file_array_clear(&d->wavelength[k]);
    *d = (clv_desi){ 0 };
}

/* Reads rows of an image as `type`. If the file lacks the image, fails unless `may_miss` is set. */
static clv_status read_image(const clv_desi *d, size_t arm, const char *what, clv_type type,
                             bool may_miss, const clv_desi_block *b, clv_file_array *out)
{
    char name[32], shape[CLV_SHAPE_TEXT];
    bool found;
    const size_t rank = strcmp(what, "RESOLUTION") == 0 ? 3 : 2;
    CLV_TRY(clv_fits_read_named(d->path, hdu_name(d, arm, what, name), b->first, b->count, out,
                                &found));
    if (!found) return may_miss ? CLV_OK : clv_fail(CLV_E_FORMAT, "%s: no image %s", d->path, name);
    if (out->rank != rank || out->shape[0] != b->count ||
        out->shape[rank - 1] != d->wavelength[arm].shape[0])
        return clv_fail(CLV_E_FORMAT, "%s: %s has the shape %s, but there are %zu wavelengths",
                        d->path, name, clv_shape_text(out->rank, out->shape, shape),
                        d->wavelength[arm].shape[0]);
    if (type == CLV_F32) return clv_file_array_convert(out, d->path, CLV_F32);
    /* 32-bit masks keep their bits, and every value other than 0 is bad */
    if (out->type == CLV_I32 || out->type == CLV_U32) return CLV_OK;
    clv_file_array read = *out;
    *out = (clv_file_array){ 0 };
    clv_status status = clv_file_array_convert(&read, d->path, CLV_F64);
    if (!status) status = clv_file_array_create(out, d->path, CLV_I32, read.rank, read.shape);
    for (size_t i = 0; !status && i < clv_file_array_count(out); ++i)
        ((int32_t *)out->data)[i] = ((double *)read.data)[i] > 0;
    clv_file_array_clear(&read);
    return status;
}

clv_status clv_desi_read(const clv_desi *d, size_t first, size_t count, bool resolution,
                         clv_desi_block *b)
{
    *b = (clv_desi_block){ .first = first, .count = count };
    if (!count) return CLV_OK;
    clv_status status = CLV_OK;
    for (size_t k = 0; k < CLV_DESI_ARMS && !status; ++k) {
        if (!d->present[k]) continue;
        status = read_image(d, k, "FLUX", CLV_F32, false, b, &b->flux[k]);
        if (!status) status = read_image(d, k, "IVAR", CLV_F32, false, b, &b->ivar[k]);
        if (!status) status = read_image(d, k, "MASK", CLV_I32, true, b, &b->mask[k]);
        if (!status && resolution)
            status = read_image(d, k, "RESOLUTION", CLV_F32, false, b, &b->resolution[k]);
    }
    if (status) clv_desi_block_clear(b);
    return status;
}

void clv_desi_block_clear(clv_desi_block *b)
{
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k) {
        clv_file_array_clear(&b->flux[k]), clv_file_array_clear(&b->ivar[k]);
        clv_file_array_clear(&b->mask[k]), clv_file_array_clear(&b->resolution[k]);
    }
    *b = (clv_desi_block){ 0 };
}

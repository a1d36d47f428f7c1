/* SPDX-License-Identifier: Apache-2.0 */
/* One SDSS spectrum (spec-PLATE-MJD-FIBER.fits): the table COADD. */
#include "host/io/tables/desi.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits.h"

#include <math.h>
#include <string.h>

/* Bits of SPPIXMASK that stand for pixels without a usable flux, from the bit mask "SPPIXMASK" of SDSS's
 * sdssMaskbits.par. Others describe how a pixel was made (bit 11 even says that its smear exposure
 * was good), or concern thousands of good pixels (BADFLAT, LOWFLAT). */
enum {
    NOPLUG = 1 << 0,      /* the fibre is not in the plug map */
    BADTRACE = 1 << 1,    /* the fibre's trace failed */
    FULLREJECT = 1 << 18, /* rejected in extraction */
    NOSKY = 1 << 22,      /* no sky level at this wavelength */
    BRIGHTSKY = 1 << 23,  /* sky far brighter than the object */
    NODATA = 1 << 24,     /* no data for the combination */
    BAD_PIXEL = NOPLUG | BADTRACE | FULLREJECT | NOSKY | BRIGHTSKY | NODATA
};

clv_status clv_sdss_open(const char *path, clv_desi *d, bool *found)
{
    static const char *const columns[] = { "flux", "ivar", "and_mask" };
    clv_file_array log_wave = { 0 };
    *found = false;
    *d = (clv_desi){ 0 };
    CLV_TRY(clv_fits_read_column(path, "COADD", "loglam", CLV_F64, &log_wave, found));
    if (!*found) return CLV_OK;
    clv_status status = CLV_OK;
    for (int i = 0; i < 3 && !status; ++i) {
        bool there;
        status = clv_fits_read_column(path, "COADD", columns[i], i < 2 ? CLV_F64 : CLV_I64,
                                      &d->one[i], &there);
        if (!status && !there && i < 2)
            status = clv_fail(CLV_E_FORMAT, "%s: table COADD has no column %s", path, columns[i]);
        if (!status && i < 2) status = clv_file_array_convert(&d->one[i], path, CLV_F32);
    }
    const size_t n = log_wave.shape[0];
    if (!status && d->one[2].data) {
        clv_file_array mask = { 0 };
        status = clv_file_array_create(&mask, path, CLV_I32, 1, &n);
        for (size_t i = 0; i < n && !status; ++i)
            ((int32_t *)mask.data)[i] = (((int64_t *)d->one[2].data)[i] & BAD_PIXEL) != 0;
        clv_file_array_clear(&d->one[2]);
        d->one[2] = mask;
    }
    if (!status) status = clv_file_array_create(&d->wavelength[0], path, CLV_F64, 1, &n);
    for (size_t i = 0; i < n && !status; ++i)
        ((double *)d->wavelength[0].data)[i] = pow(10, ((double *)log_wave.data)[i]);
    if (!status && (!(d->path = clv_strdup(path)) || !(d->row = clv_zalloc(1, sizeof *d->row))))
        status = clv_fail(CLV_E_MEMORY, "%s: no memory", path);
    clv_file_array_clear(&log_wave);
    if (status) return status;
    d->rows = 1, d->sdss = true, d->present[0] = true;
    d->row[0] = (clv_desi_row){ .reference = -1,
                                .brick = -1,
                                .expid = -1,
                                .fiber = -1,
                                .ra = NAN,
                                .dec = NAN,
                                .snr = { NAN, NAN, NAN },
                                .is_star = true };
    return CLV_OK;
}

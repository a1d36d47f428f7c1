/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one spectrum from a file: recognises the kind of file, and reads what its headers say about the star. */
#include "host/io/tables/spectrum.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/stream.h"

#include <math.h>
#include <string.h>
#include <strings.h>

double clv_vacuum_of_air(double air)
{
    double vacuum = air;
    if (air < 2000) return air;
    for (int turn = 0; turn < 4; ++turn) {
        const double s = 1e4 / vacuum, s2 = s * s;
        vacuum = air * (1 + 8.34254e-5 + 2.406147e-2 / (130 - s2) + 1.5998e-4 / (38.9 - s2));
    }
    return vacuum;
}

/* Header keys of the velocity to be added for the Sun's or the barycentre's frame. SDSS's HELIO_RV is not among them,
 * since SDSS has already added it. */
static const char *const barycentric_keys[] = { "VHELIO",  "BARYCORR", "BERV",   "VBARY",
                                                "BARYVEL", "VCORR",    "HELCORR" };

static int64_t whole(double value)
{
    return value >= 0 && value < 9e18 ? (int64_t)value : -1;
}

/* Reads what the headers say about the star; the primary header overrides the others. */
static void identify(const clv_fits_hdus *hdus, clv_one_spectrum *out)
{
    for (size_t i = hdus->count; i-- > 0;) {
        const clv_fits_hdu *h = &hdus->item[i];
        char text[40];
        double v;
        if (clv_fits_hdu_number(h, "RA", &v)) out->ra = v;
        if (clv_fits_hdu_number(h, "DEC", &v)) out->dec = v;
        if (clv_fits_hdu_number(h, "RA_TARG", &v)) out->ra = v;
        if (clv_fits_hdu_number(h, "DEC_TARG", &v)) out->dec = v;
        if (clv_fits_hdu_number(h, "TARG_RA", &v)) out->ra = v;
        if (clv_fits_hdu_number(h, "TARG_DEC", &v)) out->dec = v;
        if (clv_fits_hdu_number(h, "PLUG_RA", &v)) out->ra = v;
        if (clv_fits_hdu_number(h, "PLUG_DEC", &v)) out->dec = v;
        if (clv_fits_hdu_number(h, "PLATE", &v)) out->plate = whole(v);
        if (clv_fits_hdu_number(h, "PLATEID", &v)) out->plate = whole(v);
        if (clv_fits_hdu_number(h, "MJD", &v)) out->mjd = whole(v);
        if (clv_fits_hdu_number(h, "FIBERID", &v)) out->fiber = whole(v);
        if (clv_fits_hdu_number(h, "TARGETID", &v)) out->target = whole(v);
        for (size_t k = 0; k < CLV_LEN(barycentric_keys); ++k)
            if (clv_fits_hdu_number(h, barycentric_keys[k], &v)) out->barycentric = v;
        if (clv_fits_hdu_text(h, "TARGNAME", text, sizeof text) ||
            clv_fits_hdu_text(h, "OBJECT", text, sizeof text))
            clv_copy_string(out->object, sizeof out->object, text);
        if (clv_fits_hdu_text(h, "VACUUM", text, sizeof text))
            out->medium = strcmp(text, "T") == 0 ? CLV_MEDIUM_VACUUM : CLV_MEDIUM_AIR;
        if (clv_fits_hdu_text(h, "AIRORVAC", text, sizeof text))
            out->medium = strncasecmp(text, "vac", 3) == 0 ? CLV_MEDIUM_VACUUM : CLV_MEDIUM_AIR;
    }
}

static clv_status read_fits(const char *path, const clv_spectrum_names *names,
                            clv_one_spectrum *out)
{
    clv_fits_hdus hdus = { 0 };
    bool found = false;
    char wanted[256];
    clv_spectrum_list_names(names, wanted, sizeof wanted);
    CLV_TRY(clv_fits_describe(path, &hdus));
    clv_status status = clv_spectrum_read_table(path, &hdus, names, out, &found);
    if (!status && !found && *wanted)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: no table in it has the columns that you named (%s) together with "
                          "columns for wavelength and flux",
                          path, wanted);
    if (!status && !found) status = clv_spectrum_read_image(path, &hdus, out, &found);
    if (!status && !found)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: no spectrum found. Looked for a DESI file (FIBERMAP and B_, R_ or "
                          "Z_WAVELENGTH), a table with columns "
                          "for wavelength (WAVELENGTH, WAVE, LOGLAM, ...) and flux (FLUX, ...), "
                          "and an image with CRVAL1 and CDELT1, "
                          "or COEFF0 and COEFF1",
                          path);
    if (!status) identify(&hdus, out);
    clv_fits_hdus_clear(&hdus);
    return status;
}

/* Sets *fits to whether the file is FITS, perhaps compressed by gzip. Fails for a pipe, since it cannot be read
 * twice. */
static clv_status is_fits(const char *path, bool *fits)
{
    unsigned char head[6] = { 0 };
    clv_input input;
    CLV_TRY(clv_input_open(&input, path));
    const clv_status status =
        clv_input_read(&input, head, (size_t)CLV_MIN(input.length, (uint64_t)sizeof head));
    clv_input_close(&input);
    *fits = memcmp(head, "SIMPLE", 6) == 0 || (head[0] == 0x1F && head[1] == 0x8B);
    return status;
}

clv_status clv_one_spectrum_read(const char *path, const clv_spectrum_names *names,
                                 clv_one_spectrum *out)
{
    bool fits = false;
    *out = (clv_one_spectrum){
        .barycentric = NAN, .ra = NAN, .dec = NAN, .target = -1, .plate = -1, .mjd = -1, .fiber = -1
    };
    clv_status status = is_fits(path, &fits);
    if (!status)
        status = fits ? read_fits(path, names, out) : clv_spectrum_read_text(path, names, out);
    if (status) clv_one_spectrum_clear(out);
    return status;
}

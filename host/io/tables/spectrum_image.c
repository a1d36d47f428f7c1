/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a spectrum from a FITS image whose header states the wavelengths: IRAF's images, linear or logarithmic, SDSS's
 * spSpec- files, and images that specutils writes with a world coordinate system. */
#include "host/io/tables/spectrum.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { IRAF_BANDS = 4, SPSPEC_ROWS = 3, LAMOST_ROWS = 5 };

/* The wavelengths of an image's pixels, as its header describes them. */
typedef struct axis {
    double first, step, pixel; /* value at `pixel`, counted from 1 */
    bool log10, log_e;         /* the values are logarithms of wavelengths, to base 10 or e */
    bool no_pixel;             /* the header has no CRPIX1 */
    bool apogee;               /* the next HDU has the errors, in an image of the same shape */
    double angstrom;
    clv_medium medium;
} axis;

/* Returns whether the axis type (CTYPE) is that of a quantity other than wavelength. */
static bool is_other_quantity(const char *type)
{
    static const char *const others[] = { "FREQ", "ENER", "WAVN", "VRAD",
                                          "VOPT", "ZOPT", "VELO", "BETA" };
    for (size_t i = 0; i < CLV_LEN(others); ++i)
        if (strncasecmp(type, others[i], 4) == 0) return true;
    return false;
}

/* Reads the step of the axis per pixel: CDELT1 times PC1_1, each 1 by default, or CD1_1, which takes precedence if it
 * is there as well, as in IRAF. Returns false if there is none of them. */
static bool find_step(const clv_fits_hdu *h, double *step)
{
    double delta = 1, turned = 1, matrix = 0;
    const bool has_delta = clv_fits_hdu_number(h, "CDELT1", &delta);
    const bool has_pc = clv_fits_hdu_number(h, "PC1_1", &turned);
    const bool has_cd = clv_fits_hdu_number(h, "CD1_1", &matrix);
    *step = has_cd && (matrix != 0 || !has_delta) ? matrix : delta * turned;
    return has_delta || has_pc || has_cd;
}

/* Reads the wavelength axis from the header; *found is false if the header has none. Returns CLV_E_FORMAT if the axis
 * is of another quantity. */
static clv_status find_axis(const char *path, const clv_fits_hdu *h, axis *a, bool *found)
{
    char text[72];
    double flag = 0;
    *a = (axis){ .pixel = 1, .angstrom = 1 }; /* COEFF0 belongs to pixel 1 */
    *found = true;
    if (clv_fits_hdu_number(h, "COEFF0", &a->first) && clv_fits_hdu_number(h, "COEFF1", &a->step)) {
        a->log10 = true, a->medium = CLV_MEDIUM_VACUUM;
        return CLV_OK;
    }
    *found = false;
    if (!clv_fits_hdu_number(h, "CRVAL1", &a->first)) return CLV_OK;
    if (!find_step(h, &a->step)) return CLV_OK;
    a->no_pixel = !clv_fits_hdu_number(h, "CRPIX1", &a->pixel);
    if (a->no_pixel) a->pixel = 0; /* the default of the FITS standard */
    if (clv_fits_hdu_number(h, "DC-FLAG", &flag)) a->log10 = flag == 1;
    if (clv_fits_hdu_text(h, "CTYPE1", text, sizeof text)) {
        if (strncasecmp(text, "RA--", 4) == 0 || strncasecmp(text, "DEC-", 4) == 0) return CLV_OK;
        if (is_other_quantity(text) || clv_ends_with(text, "-TAB"))
            return clv_fail(CLV_E_FORMAT,
                            "%s: its pixel axis is \"%s\" (CTYPE1), but it must be wavelength; "
                            "make a table with columns WAVELENGTH, FLUX and ERROR",
                            path, text);
        a->apogee = strcasecmp(text, "LOG-LINEAR") == 0;
        if (strncasecmp(text, "AWAV", 4) == 0) a->medium = CLV_MEDIUM_AIR;
        if (strncasecmp(text, "WAVE", 4) == 0 && text[4] != 'L') a->medium = CLV_MEDIUM_VACUUM;
        if (strncasecmp(text, "WAVE-LOG", 8) == 0 || strncasecmp(text, "AWAV-LOG", 8) == 0)
            a->log_e = true;
        if (clv_contains_nocase(text, "log") && !a->log_e && strncasecmp(text, "WAVE", 4) != 0)
            a->log10 = true;
    }
    if (clv_fits_hdu_text(h, "CUNIT1", text, sizeof text)) {
        a->angstrom = *text ? clv_angstrom_in(text) : 1;
        if (a->angstrom == 0)
            return clv_fail(CLV_E_FORMAT,
                            "%s: the unit of its wavelengths (CUNIT1) is \"%s\"; expected "
                            "Angstrom, nm, um or m",
                            path, text);
    }
    /* a logarithm that the header does not declare: 3.0 to 4.6 are 1000 to 40000 Angstrom */
    if (!a->log10 && !a->log_e && a->angstrom == 1 && a->first > 2.5 && a->first < 5 &&
        fabs(a->step) < 0.01)
        a->log10 = true;
    *found = a->step != 0 && isfinite(a->step) && isfinite(a->first);
    return CLV_OK;
}

static double wavelength_at(const axis *a, size_t k)
{
    const double by = (double)k + 1 - a->pixel;
    if (a->log_e) return a->first * exp(a->step * by / a->first) * a->angstrom;
    const double value = a->first + a->step * by;
    return a->log10 ? pow(10, value) : value * a->angstrom;
}

/* Returns whether the numbers of a row are the axis's wavelengths, to float32 precision. */
static bool has_wavelengths(const axis *a, const double *row, size_t n)
{
    for (size_t k = 0; k < n; k += CLV_MAX(n - 1, (size_t)1)) {
        const double w = wavelength_at(a, k);
        if (!(fabs(row[k] - w) < 1e-4 * w)) return false;
    }
    return true;
}

static bool has_image(const clv_fits_hdus *hdus, const char *name)
{
    for (size_t i = 0; i < hdus->count; ++i)
        if (hdus->item[i].has_image && strcasecmp(hdus->item[i].name, name) == 0) return true;
    return false;
}

/* Reads the images of the other HDUs that have as many pixels as the flux and a role in the spectrum. Ignores roles
 * before `least`. */
static clv_status read_beside(const char *path, const clv_fits_hdus *hdus, size_t flux, bool apogee,
                              clv_spectrum_role least, clv_file_array beside[CLV_ROLES],
                              clv_spectrum_unit_texts *units, clv_spectrum_columns *c)
{
    for (size_t i = 0; i < hdus->count; ++i) {
        const clv_fits_hdu *h = &hdus->item[i];
        clv_spectrum_role role = clv_spectrum_role_of(h->name);
        const bool mask = apogee && i == flux + 2 && !*h->name;
        if (apogee && i == flux + 1 && !*h->name) role = CLV_ROLE_ERROR;
        if (mask) role = CLV_ROLE_MASK;
        if (i == flux || !h->has_image || role < least || c->value[role]) continue;
        CLV_TRY(clv_fits_read(path, (int)i, &beside[role], NULL));
        if (mask && (beside[role].type == CLV_F32 ||
                     beside[role].type == CLV_F64)) { /* the image is aspcapStar's best-fit model */
            clv_file_array_clear(&beside[role]);
            continue;
        }
        CLV_TRY(clv_file_array_convert(&beside[role], path, CLV_F64));
        /* if there are several rows, takes the first, as for the flux */
        const clv_file_array *b = &beside[role];
        if (!b->rank || b->shape[b->rank - 1] != c->count ||
            (clv_file_array_count(b) != c->count && !apogee)) {
            clv_file_array_clear(&beside[role]);
            continue;
        }
        c->value[role] = beside[role].data;
        (void)clv_fits_hdu_text(h, "BUNIT", units->of[role], sizeof units->of[role]);
        if (role == CLV_ROLE_MASK)
            c->bad_bits = mask ? clv_spectrum_apogee_bits() : clv_spectrum_mask_bits(h->name);
    }
    return CLV_OK;
}

/* Finds the flux, the errors and the mask among the rows of an image, according to the kind of file. */
static clv_status take_rows(const char *path, const clv_file_array *image, const axis *a,
                            clv_spectrum_columns *c)
{
    const size_t rank = image->rank, n = image->shape[rank - 1];
    const double *all = image->data;
    c->count = n, c->value[CLV_ROLE_FLUX] = all;
    size_t rows = 1;
    for (size_t i = 0; i + 1 < rank; ++i)
        rows *= image->shape[i];
    if (rows == LAMOST_ROWS && a->log10 && has_wavelengths(a, all + 2 * n, n)) {
        /* LAMOST's rows: flux, 1 / variance, wavelength, two masks */
        c->value[CLV_ROLE_IVAR] = all + n;
        c->value[CLV_ROLE_MASK] = all + 3 * n;
    } else if (a->apogee && rank == 2) {
        /* the first row is the mean of the visits that follow */
    } else if (rank == 2 && a->log10 && a->medium == CLV_MEDIUM_VACUUM && rows >= SPSPEC_ROWS) {
        /* spSpec-'s rows: flux, flux without continuum, error, mask */
        c->value[CLV_ROLE_ERROR] = all + 2 * n;
        if (rows > SPSPEC_ROWS) c->value[CLV_ROLE_MASK] = all + 3 * n;
        c->bad_bits = clv_spectrum_mask_bits("and_mask");
    } else if (rank == 3 && image->shape[0] == IRAF_BANDS && image->shape[1] == 1) {
        /* IRAF's rows: optimal extraction, plain sum, sky, error */
        c->value[CLV_ROLE_ERROR] = all + 3 * n;
    } else if (rows != 1) {
        return clv_fail(CLV_E_FORMAT,
                        "%s: the image has %zu rows; expected one spectrum, or one spectrum with "
                        "four bands as IRAF writes it. Put each spectrum into a file of its own",
                        path, rows);
    }
    return CLV_OK;
}

static clv_status read_one(const char *path, const clv_fits_hdus *hdus, size_t number,
                           const axis *a, clv_one_spectrum *out)
{
    clv_file_array image = { 0 }, beside[CLV_ROLES] = { { 0 } };
    clv_spectrum_unit_texts units = { { "" } };
    char *const unit = units.of[CLV_ROLE_FLUX];
    clv_spectrum_columns c = { .angstrom = 1, .bad_bits = -1 };
    (void)clv_fits_hdu_text(&hdus->item[number], "BUNIT", unit, sizeof units.of[0]);
    c.per_hertz = clv_is_per_hertz(unit);
    clv_status status = clv_spectrum_check_flux_unit(path, unit);
    if (!status) status = clv_fits_read(path, (int)number, &image, NULL);
    if (!status) status = clv_file_array_convert(&image, path, CLV_F64);
    if (!status && image.rank == 2 && a->log10 && has_image(hdus, "IVAR") &&
        has_image(hdus, "ANDMASK"))
        status = clv_fail(CLV_E_FORMAT,
                          "%s: SDSS's spPlate- files, with %zu spectra in this one, are not "
                          "supported; fit the spec- files of its fibres",
                          path, image.shape[0]);
    if (!status && !image.rank) status = clv_fail(CLV_E_FORMAT, "%s: the image has no axes", path);
    if (!status) status = take_rows(path, &image, a, &c);
    if (!status)
        status = read_beside(path, hdus, number, a->apogee, CLV_ROLE_ERROR, beside, &units, &c);
    if (!status) status = clv_spectrum_match_units(path, &units, &c);
    double *wave = status ? NULL : clv_alloc(CLV_MAX(c.count, (size_t)1), sizeof *wave);
    if (!status && !wave) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (size_t k = 0; !status && k < c.count; ++k)
        wave[k] = wavelength_at(a, k);
    c.value[CLV_ROLE_WAVE] = wave;
    if (!status) status = clv_spectrum_assemble(path, &c, out);
    out->kind = "FITS image", out->medium = a->medium, out->from_pixel_0 = a->no_pixel;
    clv_free(wave);
    clv_file_array_clear(&image);
    for (size_t role = 0; role < CLV_ROLES; ++role)
        clv_file_array_clear(&beside[role]);
    return status;
}

/* Reads a flux image whose header has no wavelengths, if another image of the same length holds them. */
static clv_status read_with_wavelengths(const char *path, const clv_fits_hdus *hdus,
                                        clv_one_spectrum *out, bool *found)
{
    clv_file_array beside[CLV_ROLES] = { { 0 } };
    clv_spectrum_unit_texts units = { { "" } };
    char unit[72] = "", *const flux_unit = units.of[CLV_ROLE_FLUX];
    size_t wave = hdus->count, flux = hdus->count;
    for (size_t i = hdus->count; i-- > 0;) {
        const clv_spectrum_role role = clv_spectrum_role_of(hdus->item[i].name);
        if (!hdus->item[i].has_image) continue;
        if (role == CLV_ROLE_WAVE || role == CLV_ROLE_LOG_WAVE) wave = i;
        if (role == CLV_ROLE_FLUX || (i == 0 && flux == hdus->count)) flux = i;
    }
    if (wave == hdus->count || flux == hdus->count || flux == wave) return CLV_OK;
    clv_file_array image = { 0 };
    clv_spectrum_columns c = { .bad_bits = -1 };
    if (clv_fits_hdu_text(&hdus->item[wave], "BUNIT", unit, sizeof unit))
        c.angstrom = clv_angstrom_in(unit);
    (void)clv_fits_hdu_text(&hdus->item[flux], "BUNIT", flux_unit, sizeof units.of[0]);
    c.per_hertz = clv_is_per_hertz(flux_unit);
    clv_status status = clv_fits_read(path, (int)flux, &image, NULL);
    if (!status) status = clv_file_array_convert(&image, path, CLV_F64);
    c.count = status || !image.rank ? 0 : image.shape[image.rank - 1];
    *found = !status && c.count && clv_file_array_count(&image) == c.count;
    if (*found) {
        c.value[CLV_ROLE_FLUX] = image.data;
        status = read_beside(path, hdus, flux, false, CLV_ROLE_WAVE, beside, &units, &c);
        if (!status) status = clv_spectrum_match_units(path, &units, &c);
        *found = c.value[CLV_ROLE_WAVE] || c.value[CLV_ROLE_LOG_WAVE];
    }
    if (!status && *found) status = clv_spectrum_assemble(path, &c, out);
    out->kind = "FITS images";
    clv_file_array_clear(&image);
    for (size_t role = 0; role < CLV_ROLES; ++role)
        clv_file_array_clear(&beside[role]);
    return status;
}

clv_status clv_spectrum_read_image(const char *path, const clv_fits_hdus *hdus,
                                   clv_one_spectrum *out, bool *found)
{
    *found = false;
    for (size_t i = 0; i < hdus->count; ++i) {
        const clv_fits_hdu *h = &hdus->item[i];
        char type[72] = "";
        axis a;
        if (!h->has_image) continue;
        if (clv_fits_hdu_text(h, "CTYPE1", type, sizeof type) &&
            strncasecmp(type, "MULTISPE", 8) == 0)
            return clv_fail(
                CLV_E_UNSUPPORTED,
                "%s: IRAF's multispec coordinates are not supported; make a file with one "
                "dispersion for all pixels, or a table with columns WAVELENGTH, FLUX and ERROR",
                path);
        CLV_TRY(find_axis(path, h, &a, found));
        if (*found) return read_one(path, hdus, i, &a, out);
    }
    return read_with_wavelengths(path, hdus, out, found);
}

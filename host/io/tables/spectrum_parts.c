/* SPDX-License-Identifier: Apache-2.0 */
/* Interprets the names, units and masks of spectra, and assembles a spectrum from columns. */
#include "host/io/tables/spectrum.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/tables/unit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LEAST_PIXELS = 16, MOST_PIXELS = 1 << 24, BLOCK = 200 };

/* Bits of SPPIXMASK that mark pixels without a usable flux, from the bit mask "SPPIXMASK" of SDSS's sdssMaskbits.par.
 * Other bits describe how a pixel was made (bit 11 even says that its smear exposure was good), or concern thousands of
 * good pixels (BADFLAT, LOWFLAT). */
enum {
    NOPLUG = 1 << 0,      /* the fibre is not in the plug map */
    BADTRACE = 1 << 1,    /* the fibre's trace failed */
    FULLREJECT = 1 << 18, /* the pixel was rejected in extraction */
    NOSKY = 1 << 22,      /* no sky level at this wavelength */
    BRIGHTSKY = 1 << 23,  /* sky far brighter than the object */
    NODATA = 1 << 24,     /* no data were available to combine */
    SDSS_BAD = NOPLUG | BADTRACE | FULLREJECT | NOSKY | BRIGHTSKY | NODATA,
    DO_NOT_USE = 1 /* JWST */
};

/* Bits of APOGEE_PIXMASK in sdssMaskbits.par that mark pixels without a usable flux: BADPIX, CRPIX, SATPIX, UNFIXABLE,
 * BADDARK, BADFLAT, BADERR and NOSKY (0 to 7), and NOT_ENOUGH_PSF (14). Other bits mark persistence and sky lines; such
 * pixels have larger errors. */
enum { APOGEE_BAD = 0xFF | 1 << 14 };

void clv_one_spectrum_clear(clv_one_spectrum *s)
{
    clv_free(s->wavelength), clv_free(s->flux), clv_free(s->error), clv_free(s->lsf);
    *s = (clv_one_spectrum){ 0 };
}

clv_spectrum_role clv_spectrum_role_of(const char *name)
{
    static const struct {
        const char *name;
        clv_spectrum_role role;
    } known[] = {
        { "wavelength", CLV_ROLE_WAVE },   { "wave", CLV_ROLE_WAVE },
        { "lambda", CLV_ROLE_WAVE },       { "lam", CLV_ROLE_WAVE },
        { "wl", CLV_ROLE_WAVE },           { "spectral_axis", CLV_ROLE_WAVE },
        { "wave_air", CLV_ROLE_WAVE },     { "wavelength_air", CLV_ROLE_WAVE },
        { "wavelengths", CLV_ROLE_WAVE },  { "wave_vac", CLV_ROLE_WAVE },
        { "loglam", CLV_ROLE_LOG_WAVE },   { "loglambda", CLV_ROLE_LOG_WAVE },
        { "logwave", CLV_ROLE_LOG_WAVE },  { "flux", CLV_ROLE_FLUX },
        { "spec", CLV_ROLE_FLUX },         { "spectrum", CLV_ROLE_FLUX },
        { "flux_density", CLV_ROLE_FLUX }, { "flux_lambda", CLV_ROLE_FLUX },
        { "intensity", CLV_ROLE_FLUX },    { "flux_reduced", CLV_ROLE_FLUX },
        { "flux_error", CLV_ROLE_ERROR },  { "flux_err", CLV_ROLE_ERROR },
        { "fluxerr", CLV_ROLE_ERROR },     { "error", CLV_ROLE_ERROR },
        { "err", CLV_ROLE_ERROR },         { "sigma", CLV_ROLE_ERROR },
        { "sig", CLV_ROLE_ERROR },         { "uncertainty", CLV_ROLE_ERROR },
        { "uncert", CLV_ROLE_ERROR },      { "unc", CLV_ROLE_ERROR },
        { "stddev", CLV_ROLE_ERROR },      { "std", CLV_ROLE_ERROR },
        { "e_flux", CLV_ROLE_ERROR },      { "noise", CLV_ROLE_ERROR },
        { "err_reduced", CLV_ROLE_ERROR }, { "errs", CLV_ROLE_ERROR },
        { "fluxerror", CLV_ROLE_ERROR },   { "flux_uncertainty", CLV_ROLE_ERROR },
        { "ivar", CLV_ROLE_IVAR },         { "invvar", CLV_ROLE_IVAR },
        { "flux_ivar", CLV_ROLE_IVAR },    { "var", CLV_ROLE_VARIANCE },
        { "variance", CLV_ROLE_VARIANCE }, { "stat", CLV_ROLE_VARIANCE },
        { "andmask", CLV_ROLE_MASK },      { "and_mask", CLV_ROLE_MASK },
        { "mask", CLV_ROLE_MASK },         { "dq", CLV_ROLE_MASK },
        { "qual", CLV_ROLE_MASK },         { "quality", CLV_ROLE_MASK },
        { "flag", CLV_ROLE_MASK },         { "bad", CLV_ROLE_MASK },
        { "wdisp", CLV_ROLE_LSF },         { "lsf_sigma_pix", CLV_ROLE_LSF },
    };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcasecmp(name, known[i].name) == 0) return known[i].role;
    return CLV_ROLE_NONE;
}

/* Returns whether two roles are forms of the same quantity. */
static bool is_same_quantity(clv_spectrum_role a, clv_spectrum_role b)
{
    static const int quantity[CLV_ROLES] = {
        [CLV_ROLE_WAVE] = 1, [CLV_ROLE_LOG_WAVE] = 1, [CLV_ROLE_FLUX] = 2, [CLV_ROLE_ERROR] = 3,
        [CLV_ROLE_IVAR] = 3, [CLV_ROLE_VARIANCE] = 3, [CLV_ROLE_MASK] = 4, [CLV_ROLE_LSF] = 5,
    };
    return quantity[a] == quantity[b];
}

clv_spectrum_role clv_spectrum_role_among(const clv_spectrum_names *names, const char *name)
{
    const clv_spectrum_role usual = clv_spectrum_role_of(name);
    bool replaced = false;
    for (int role = 1; names && role < CLV_ROLES; ++role) {
        if (!*names->of[role]) continue;
        if (strcasecmp(names->of[role], name) == 0) return (clv_spectrum_role)role;
        replaced |= is_same_quantity((clv_spectrum_role)role, usual);
    }
    return replaced ? CLV_ROLE_NONE : usual;
}

void clv_spectrum_list_names(const clv_spectrum_names *names, char *out, size_t room)
{
    size_t n = 0;
    *out = '\0';
    for (int role = 1; names && role < CLV_ROLES && n < room; ++role)
        if (*names->of[role])
            n += (size_t)snprintf(out + n, room - n, "%s%s", n ? ", " : "", names->of[role]);
}

double clv_angstrom_in(const char *unit)
{
    static const struct {
        const char *unit;
        double angstrom;
    } known[] = { { "angstrom", 1 },     { "angstroms", 1 }, { "ang", 1 },      { "a", 1 },
                  { "0.1 nm", 1 },       { "0.1nm", 1 },     { "nm", 10 },      { "nanometer", 10 },
                  { "nanometers", 10 },  { "um", 1e4 },      { "micron", 1e4 }, { "microns", 1e4 },
                  { "micrometer", 1e4 }, { "mum", 1e4 },     { "m", 1e10 },     { "\xC3\x85", 1 },
                  { "aa", 1 },           { "10**-10 m", 1 }, { "mm", 1e7 },     { "cm", 1e8 } };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcasecmp(unit, known[i].unit) == 0) return known[i].angstrom;
    return 0;
}

int64_t clv_spectrum_mask_bits(const char *name)
{
    if (strcasecmp(name, "and_mask") == 0) return SDSS_BAD;
    return strcasecmp(name, "dq") == 0 ? DO_NOT_USE : -1;
}

int64_t clv_spectrum_apogee_bits(void)
{
    return APOGEE_BAD;
}

clv_status clv_spectrum_check_flux_unit(const char *path, const char *unit)
{
    if (strncasecmp(unit, "mag", 3) != 0 && strncasecmp(unit, "dex", 3) != 0) return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the unit of its flux is \"%s\", which is logarithmic; expected a flux; compute "
        "flux = 10^(-0.4 mag) and its errors first",
        path, unit);
}

bool clv_is_per_hertz(const char *unit)
{
    return strstr(unit, "Jy") != NULL || strstr(unit, "Hz") != NULL;
}

/* Returns the unit in a text such as APOGEE's "Flux (10^-17 erg/s/cm^2/Ang)", which begins with the name of the
 * values. */
static const char *without_name(const char *unit)
{
    static const char *const names[] = { "flux", "error", "err", "uncertainty", "sigma" };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        const size_t n = strlen(names[i]);
        if (strncasecmp(unit, names[i], n) == 0 && unit[n + strspn(unit + n, " ")] == '(')
            return unit + n + strspn(unit + n, " ");
    }
    return unit;
}

clv_status clv_spectrum_match_units(const char *path, const clv_spectrum_unit_texts *units,
                                    clv_spectrum_columns *c)
{
    const clv_spectrum_role role = c->value[CLV_ROLE_IVAR]    ? CLV_ROLE_IVAR
                                   : c->value[CLV_ROLE_ERROR] ? CLV_ROLE_ERROR
                                                              : CLV_ROLE_VARIANCE;
    const int power = role == CLV_ROLE_IVAR ? -2 : role == CLV_ROLE_ERROR ? 1 : 2;
    const char *flux = units->of[CLV_ROLE_FLUX], *own = units->of[role];
    double factor = 1;
    if (!c->value[role] || !*flux || !*own || strcmp(flux, own) == 0) return CLV_OK;
    const clv_unit_match match =
        clv_unit_compare(without_name(own), without_name(flux), power, &factor);
    if (match == CLV_UNITS_EQUAL) {
        c->error_scale = factor == 1 ? 1 : pow(factor, 1.0 / power);
        return CLV_OK;
    }
    if (match == CLV_UNITS_UNKNOWN && power != 1) return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the unit of its %s is \"%s\", which cannot be converted to that of its flux, \"%s\"; "
        "expected %s; convert the values, or correct the unit in the file",
        path,
        power == 1   ? "errors"
        : power == 2 ? "variances"
                     : "inverse variances",
        own, flux,
        power == 1   ? "the same unit apart from a factor"
        : power == 2 ? "its square apart from a factor"
                     : "its inverse square apart from a factor");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Estimates the errors of each block of pixels from the fluxes' fourth differences, which smooth lines hardly affect:
 * 1.4826 times the median of their absolute values, divided by sqrt(70), their standard deviation for white noise of
 * deviation 1. */
static clv_status estimate_errors(const char *path, clv_one_spectrum *s)
{
    const size_t n = s->pixels;
    double *room = clv_alloc(BLOCK, sizeof *room);
    if (!room) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (size_t from = 0; from < n; from += BLOCK) {
        const size_t end = CLV_MIN(from + BLOCK, n);
        /* the last block begins earlier, so that it has as many pixels as the others */
        const size_t first = end - from < BLOCK && n >= BLOCK ? end - BLOCK : from;
        size_t count = 0;
        for (size_t k = CLV_MAX(first, (size_t)2); k < end && k + 2 < n; ++k) {
            const double *f = s->flux + k;
            const double d = f[-2] + f[2] - 4 * (f[-1] + f[1]) + 6 * f[0];
            if (isfinite(d)) room[count++] = fabs(d);
        }
        if (count) qsort(room, count, sizeof *room, by_value);
        const double error = count ? 1.4826 * room[count / 2] / sqrt(70) : 0;
        for (size_t k = from; k < end; ++k)
            s->error[k] = isfinite(s->flux[k]) ? error : 0;
    }
    s->estimated = true;
    clv_free(room);
    return CLV_OK;
}

/* Returns the standard error of pixel `k`; 0 if the pixel is bad. */
static double error_of(const clv_spectrum_columns *c, size_t k)
{
    double error = 0;
    if (c->value[CLV_ROLE_IVAR]) {
        const double v = c->value[CLV_ROLE_IVAR][k];
        error = v > 0 ? 1 / sqrt(v) : 0;
    } else if (c->value[CLV_ROLE_ERROR]) {
        error = c->value[CLV_ROLE_ERROR][k];
    } else if (c->value[CLV_ROLE_VARIANCE]) {
        const double v = c->value[CLV_ROLE_VARIANCE][k];
        error = v > 0 ? sqrt(v) : 0;
    }
    if (c->error_scale > 0) error *= c->error_scale;
    return error > 0 && isfinite(error) ? error : 0;
}

static bool is_masked(const clv_spectrum_columns *c, size_t k)
{
    if (!c->value[CLV_ROLE_MASK]) return false;
    const double v = c->value[CLV_ROLE_MASK][k];
    if (!(fabs(v) < 9e18)) return true;
    return c->marks_good ? v == 0 : ((int64_t)v & c->bad_bits) != 0;
}

/* Copies the widths of the line-spread function from `from`; bad values become the median of their neighbours. */
static clv_status fill_lsf(const char *path, const double *from, clv_one_spectrum *s)
{
    size_t count = 0;
    double *room = clv_alloc(s->pixels, sizeof *room);
    s->lsf = clv_alloc(s->pixels, sizeof *s->lsf);
    if (!room || !s->lsf) {
        clv_free(room);
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    for (size_t k = 0; k < s->pixels; ++k)
        if (from[k] > 0 && from[k] < 100) room[count++] = from[k];
    if (count) qsort(room, count, sizeof *room, by_value);
    for (size_t k = 0; k < s->pixels; ++k)
        s->lsf[k] = from[k] > 0 && from[k] < 100 ? from[k] : count ? room[count / 2] : 0;
    if (!count) clv_free(s->lsf), s->lsf = NULL;
    clv_free(room);
    return CLV_OK;
}

static void swap(double *a, double *b)
{
    const double c = *a;
    *a = *b, *b = c;
}

static clv_status order(const char *path, clv_one_spectrum *s)
{
    const size_t n = s->pixels;
    if (s->wavelength[0] > s->wavelength[n - 1])
        for (size_t k = 0; k < n / 2; ++k) {
            swap(&s->wavelength[k], &s->wavelength[n - 1 - k]);
            swap(&s->flux[k], &s->flux[n - 1 - k]);
            swap(&s->error[k], &s->error[n - 1 - k]);
            if (s->lsf) swap(&s->lsf[k], &s->lsf[n - 1 - k]);
        }
    for (size_t k = 0; k < n; ++k)
        if (!isfinite(s->wavelength[k]) || !(s->wavelength[k] > 0) ||
            (k && !(s->wavelength[k] > s->wavelength[k - 1])))
            return clv_fail(CLV_E_FORMAT,
                            "%s: the wavelengths neither rise nor fall throughout: pixel %zu has "
                            "%g Angstrom after %g",
                            path, k, s->wavelength[k], k ? s->wavelength[k - 1] : 0.0);
    return CLV_OK;
}

/* Removes pixels without a wavelength, such as ends that are padded with zeros, and gaps of NaN. */
static clv_status drop_unplaced(const char *path, clv_one_spectrum *s)
{
    size_t kept = 0;
    for (size_t k = 0; k < s->pixels; ++k) {
        if (!isfinite(s->wavelength[k]) || !(s->wavelength[k] > 0)) continue;
        s->wavelength[kept] = s->wavelength[k], s->flux[kept] = s->flux[k];
        s->error[kept] = s->error[k];
        if (s->lsf) s->lsf[kept] = s->lsf[k];
        ++kept;
    }
    s->unplaced = s->pixels - kept, s->pixels = kept;
    return kept < LEAST_PIXELS
               ? clv_fail(CLV_E_FORMAT,
                          "%s: only %zu of its %zu pixels have a wavelength; expected at least %d",
                          path, kept, kept + s->unplaced, LEAST_PIXELS)
               : CLV_OK;
}

clv_status clv_spectrum_assemble(const char *path, const clv_spectrum_columns *c,
                                 clv_one_spectrum *s)
{
    const size_t n = c->count;
    const double *log_wave = c->value[CLV_ROLE_LOG_WAVE], *wave = c->value[CLV_ROLE_WAVE];
    if (n < LEAST_PIXELS || n > MOST_PIXELS)
        return clv_fail(CLV_E_FORMAT, "%s: the spectrum has %zu pixels; expected %d to %d", path, n,
                        LEAST_PIXELS, MOST_PIXELS);
    s->pixels = n;
    s->wavelength = clv_alloc(n, sizeof(double)), s->flux = clv_alloc(n, sizeof(double));
    s->error = clv_alloc(n, sizeof(double));
    if (!s->wavelength || !s->flux || !s->error)
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    double scale = c->angstrom, highest = 0;
    for (size_t k = 0; k < n && !log_wave; ++k)
        highest = fmax(highest, wave[k]);
    if (scale == 0) s->guessed_um = !log_wave && highest < 100, scale = s->guessed_um ? 1e4 : 1;
    for (size_t k = 0; k < n; ++k) {
        s->wavelength[k] = !log_wave ? wave[k] * scale : log_wave[k] > 0 ? pow(10, log_wave[k]) : 0;
        s->flux[k] = c->value[CLV_ROLE_FLUX][k];
        s->error[k] = error_of(c, k);
    }
    if (!c->value[CLV_ROLE_IVAR] && !c->value[CLV_ROLE_ERROR] && !c->value[CLV_ROLE_VARIANCE])
        CLV_TRY(estimate_errors(path, s));
    for (size_t k = 0; k < n; ++k) {
        const bool masked = is_masked(c, k);
        s->masked += masked && s->error[k] > 0 && isfinite(s->flux[k]);
        if (masked || !isfinite(s->flux[k])) s->error[k] = 0;
    }
    if (c->value[CLV_ROLE_LSF]) CLV_TRY(fill_lsf(path, c->value[CLV_ROLE_LSF], s));
    CLV_TRY(drop_unplaced(path, s));
    const double middle = s->wavelength[s->pixels / 2];
    for (size_t k = 0; c->per_hertz && k < s->pixels; ++k) {
        const double by = middle / s->wavelength[k];
        s->flux[k] *= by * by, s->error[k] *= by * by;
    }
    return order(path, s);
}

static bool join(double **first, const double *second, size_t n, size_t more, bool behind)
{
    double *both = clv_alloc(n + more, sizeof *both);
    if (!both) return false;
    memcpy(both + (behind ? 0 : more), *first, n * sizeof *both);
    memcpy(both + (behind ? n : 0), second, more * sizeof *both);
    clv_free(*first);
    *first = both;
    return true;
}

clv_status clv_spectrum_append(const char *path, const clv_one_spectrum *part,
                               clv_one_spectrum *out)
{
    const size_t n = out->pixels, more = part->pixels;
    const bool behind = part->wavelength[0] > out->wavelength[n - 1];
    if (!behind && !(part->wavelength[more - 1] < out->wavelength[0])) return CLV_OK;
    if (n + more > MOST_PIXELS || !part->lsf != !out->lsf) return CLV_OK;
    if (!join(&out->wavelength, part->wavelength, n, more, behind) ||
        !join(&out->flux, part->flux, n, more, behind) ||
        !join(&out->error, part->error, n, more, behind) ||
        (out->lsf && !join(&out->lsf, part->lsf, n, more, behind)))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    out->pixels = n + more, out->unplaced += part->unplaced, out->masked += part->masked;
    out->estimated |= part->estimated;
    return CLV_OK;
}

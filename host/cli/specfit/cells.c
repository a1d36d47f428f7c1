/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the columns of a fit's table, rvspecfit's and our own, and a star's values in them. */
#include "host/cli/specfit/cells.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const unknown_names[] = { "vrad", "vsini", "teff", "logg", "feh", "alpha" };

static void add(specfit_cells *c, const char *name, char type, const char *unit,
                const char *comment, clv_fits_value value)
{
    clv_fits_column *column = &c->column[c->count];
    *column = (clv_fits_column){ .type = type, .unit = unit, .comment = comment };
    clv_copy_string(column->name, sizeof column->name, name);
    c->value[c->count++] = value;
}

static void add_real(specfit_cells *c, const char *name, const char *unit, const char *comment,
                     double value)
{
    add(c, name, 'D', unit, comment, (clv_fits_value){ .real = value });
}

static void add_whole(specfit_cells *c, const char *name, char type, const char *comment,
                      int64_t value)
{
    add(c, name, type, NULL, comment, (clv_fits_value){ .whole = value });
}

static void add_text(specfit_cells *c, const char *name, const char *comment, unsigned width,
                     const char *text)
{
    add(c, name, 'A', NULL, comment, (clv_fits_value){ .text = text });
    c->column[c->count - 1].width = CLV_MAX(width, 1u);
}

/* Adds the names of parameters that are held fixed for some stars but not all: "; held in some: logg, feh". */
static void comment_some(const specfit_table *t, const char *before, char *to, size_t room)
{
    char list[SPECFIT_COMMENT] = "";
    size_t n = 0;
    for (int b = 0; b < CLV_SPECTRA_UNKNOWNS && n < sizeof list; ++b)
        if (specfit_is_held_somewhere(t, b) && !specfit_is_held(t, b))
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
                                  unknown_names[b]);
    const size_t used = strlen(to);
    if (!n) return;
    if (used + strlen(before) + n < room)
        snprintf(to + used, room - used, "%s%s", before, list);
    else
        snprintf(to + used, room - used, "; some hold more");
}

/* Writes "error of TEFF at fixed vrad and vsini", with the names of all parameters that are fixed. */
static void comment_error(const specfit_table *t, int a, char *to, size_t room)
{
    static const char *const columns[] = { "VRAD", "VSINI", "TEFF", "LOGG", "FEH", "ALPHAFE" };
    int fixed[CLV_SPECTRA_UNKNOWNS], count = 0;
    for (int b = 0; b < CLV_SPECTRA_UNKNOWNS; ++b)
        if (a == 0 ? b > 0 : b < 2 || specfit_is_held(t, b)) fixed[count++] = b;
    size_t n = (size_t)snprintf(to, room, "error of %s at fixed", columns[a]);
    for (int k = 0; k < count && n < room; ++k)
        n += (size_t)snprintf(to + n, room - n, "%s%s",
                              !k           ? " "
                              : count == 2 ? " and "
                                           : ", ",
                              unknown_names[fixed[k]]);
    if (specfit_is_held(t, a))
        snprintf(to, room, "0, as %s is held", columns[a]);
    else
        comment_some(t, "; some stars: ", to, room);
}

/* Writes the comments of the errors and of the covariances. */
static void comment_errors(const specfit_table *t, specfit_cells *c)
{
    size_t n = 0, room = sizeof c->covariance;
    for (int a = 0; a < CLV_SPECTRA_UNKNOWNS; ++a) {
        comment_error(t, a, c->held[a], sizeof c->held[a]);
        if (specfit_is_held(t, a) && n < room)
            n += (size_t)snprintf(c->covariance + n, room - n, "%s%s",
                                  n ? ", " : "covariance, held: ", unknown_names[a]);
    }
    if (!n) snprintf(c->covariance, room, "covariance, nothing held");
    comment_some(t, "; in some stars: ", c->covariance, room);
}

static void add_fit(specfit_cells *c, const clv_specfit_result *f)
{
    static const char km[] = "km s-1";
    add_real(c, "VRAD", km, "radial velocity", f->velocity);
    add_real(c, "VRAD_ERR", km, c->held[0], f->velocity_error);
    add_real(c, "VRAD_SKEW", NULL, "skewness along velocity", f->skewness);
    add_real(c, "VRAD_KURT", NULL, "kurtosis along velocity", f->kurtosis);
    add_real(c, "VSINI", km, "rotation", f->vsini);
    add_real(c, "LOGG", NULL, "log10 of gravity, cgs", f->logg);
    add_real(c, "LOGG_ERR", NULL, c->held[3], f->logg_error);
    add_real(c, "TEFF", "K", "effective temperature", f->teff);
    add_real(c, "TEFF_ERR", "K", c->held[2], f->teff_error);
    add_real(c, "FEH", NULL, "[Fe/H]", f->feh);
    add_real(c, "FEH_ERR", NULL, c->held[4], f->feh_error);
    add_real(c, "ALPHAFE", NULL, "[alpha/Fe]", f->alpha);
    add_real(c, "ALPHAFE_ERR", NULL, c->held[5], f->alpha_error);
}

/* Sums over all spectra of one arm. */
typedef struct arm_sums {
    double chi, continuum, signal;
    size_t pixels;
} arm_sums;

static size_t sum_arms(const specfit_table *t, const specfit_row *r, arm_sums sums[SPECFIT_COLUMNS])
{
    specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
    const size_t spectra = r->count ? specfit_slots(t, r, slots) : 0;
    const clv_specfit_result *f = &r->fit;
    for (size_t c = 0; c < SPECFIT_COLUMNS; ++c)
        sums[c] = (arm_sums){ .signal = t->plain ? NAN : 0 };
    for (size_t i = 0; i < spectra; ++i) {
        arm_sums *s = &sums[slots[i].column];
        s->chi += f->chisq[i], s->continuum += f->chisq_continuum[i], s->pixels += f->pixels[i];
        const double told = slots[i].input->desi.row[slots[i].row].snr[slots[i].arm];
        const double signal =
            !slots[i].input->single && isfinite(told) ? told : f->signal_to_noise[i];
        /* several exposures: the S/N of their sum */
        s->signal =
            t->plain ? signal : sqrt(s->signal * s->signal + fmax(signal, 0) * fmax(signal, 0));
    }
    return spectra;
}

static void add_chisq(specfit_cells *c, const specfit_table *t,
                      const arm_sums sums[SPECFIT_COLUMNS])
{
    double chi = 0, continuum = 0;
    size_t pixels = 0;
    char name[40];
    for (size_t i = 0; i < t->columns; ++i)
        chi += sums[i].chi, continuum += sums[i].continuum, pixels += sums[i].pixels;
    add_real(c, "CHISQ_TOT", NULL, "chi2 of unmasked pixels", chi);
    add_real(c, "CHISQ_C_TOT", NULL, "the same of a continuum alone", continuum);
    add_whole(c, "NPIX_TOT", 'K', "unmasked pixels", (int64_t)pixels);
    for (size_t i = 0; i < t->columns; ++i) {
        snprintf(name, sizeof name, "CHISQ_%s", t->suffix[i]);
        add_real(c, name, NULL, "chi2 of one arm", sums[i].chi);
        snprintf(name, sizeof name, "CHISQ_C_%s", t->suffix[i]);
        add_real(c, name, NULL, "continuum alone, of one arm", sums[i].continuum);
    }
}

/* Adds a number of the fibre map in its original type; adds nothing if the fibre map does not have it. */
static void add_copied(specfit_cells *c, const char *name, const char *comment, int64_t whole,
                       double real)
{
    char type;
    unsigned repeat;
    if (!c->from->has_fibermap || !clv_fits_raw_column(&c->from->fibermap, name, &type, &repeat) ||
        repeat != 1)
        return;
    if (type != 'I' && type != 'J' && type != 'K' && type != 'E' && type != 'D') type = 'K';
    const clv_fits_value value = { .whole = whole, .real = real };
    add(c, name, type, NULL, comment, value);
}

static void add_fibre(specfit_cells *c, const clv_desi_row *row)
{
    char type;
    unsigned width;
    add_copied(c, "FIBER", "fibre", row->fiber, row->fiber);
    add_copied(c, "REF_ID", "number in REF_CAT", row->reference, (double)row->reference);
    if (c->from->has_fibermap &&
        clv_fits_raw_column(&c->from->fibermap, "REF_CAT", &type, &width) && type == 'A')
        add_text(c, "REF_CAT", "reference catalogue", width, row->catalogue);
    add_copied(c, "TARGET_RA", "right ascension of the target", 0, row->ra);
    add_copied(c, "TARGET_DEC", "declination of the target", 0, row->dec);
    add_whole(c, "TARGETID", 'K', "target", row->target);
    add_copied(c, "EXPID", "exposure", row->expid, (double)row->expid);
}

/* Adds what files other than a single DESI file say about a star; -1 and NaN: unknown. */
static void add_identity(specfit_cells *c, const specfit_table *t, const specfit_row *r,
                         const clv_desi_row *row)
{
    const char *path = r->count ? t->inputs[t->places[r->first].input].path : "";
    add_text(c, "FILE", "path of the first spectrum, as given", c->file_width, path);
    add_whole(c, "EXPOSURES", 'J', "spectra that were fitted together", (int64_t)r->count);
    add_text(c, "OBJECT", "by the header", CLV_DESI_OBJECT, row->object);
    add_whole(c, "PLATE", 'K', "SDSS plate", row->plate);
    add_whole(c, "MJD", 'K', "modified Julian day", row->mjd);
    add_whole(c, "FIBERID", 'J', "fibre", row->fiber);
    add_real(c, "RA", "deg", "right ascension", row->ra);
    add_real(c, "DEC", "deg", "declination", row->dec);
    add_whole(c, "TARGETID", 'K', "target", row->target);
    add_whole(c, "EXPID", 'K', "exposure", row->expid);
}

/* Returns the type of the S/N columns in SCORES. */
static char signal_type(const specfit_copies *from, const char *suffix)
{
    static const char *const forms[] = { "MEDIAN_CALIB_SNR_", "MEDIAN_COADD_SNR_",
                                         "MEDIAN_COADD_FLUX_SNR_" };
    for (size_t i = 0; from->has_scores && i < CLV_LEN(forms); ++i) {
        char name[40], type;
        unsigned repeat;
        snprintf(name, sizeof name, "%s%.16s", forms[i], suffix);
        if (clv_fits_raw_column(&from->scores, name, &type, &repeat) && type == 'D') return 'D';
    }
    return 'E';
}

/* Returns the warnings for RVS_WARN. Wide errors have their own column instead, because many good fits have wide
 * errors, and rvspecfit's RVS_WARN is 0 for such fits. */
static unsigned rvs_warnings(const specfit_row *r)
{
    return r->fit.warnings & ~(unsigned)CLV_SPECFIT_WIDE_ERROR;
}

static void add_target(specfit_cells *c, const specfit_table *t, const specfit_row *r,
                       const clv_desi_row *row, const arm_sums sums[SPECFIT_COLUMNS])
{
    add_real(c, "VRAD_CCF", "km s-1", "velocity of the start", r->fit.start_velocity);
    add_whole(c, "RVS_WARN", 'K', "warning bits", rvs_warnings(r));
    if (t->plain)
        add_fibre(c, row);
    else
        add_identity(c, t, r, row);
    for (size_t i = 0; i < t->columns; ++i) {
        char name[40];
        snprintf(name, sizeof name, "SN_%s", t->suffix[i]);
        add(c, name, signal_type(c->from, t->suffix[i]), NULL, "median S/N of one arm",
            (clv_fits_value){ .real = sums[i].signal });
    }
    add_whole(c, "SUCCESS", 'L', "no warning bit is set", rvs_warnings(r) == 0);
    if (!t->plain) return;
    static const clv_redshift none = { .z = NAN };
    const clv_redshift *all = t->inputs[0].redshifts;
    const clv_redshift *z = all && r->count ? &all[t->places[r->first].row] : &none;
    add_real(c, "RR_Z", NULL, "redshift by redrock", z->z);
    add_text(c, "RR_SPECTYPE", "class by redrock", c->type_width, z->type);
    add_text(c, "RR_SUBTYPE", "subclass by redrock", c->subtype_width, z->subtype);
}

/* Adds the columns that rvspecfit does not have. */
static void add_own(specfit_cells *c, const clv_specfit_result *f)
{
    size_t rejected = 0;
    for (size_t i = 0; i < CLV_SPECTRA_MAX_SPECTRA; ++i)
        rejected += f->rejected[i];
    static const char *const names[] = { "VRAD", "VSINI", "TEFF", "LOGG", "FEH", "ALPHAFE" };
    add_real(c, "NEG2LOGL", NULL, "-2 log L, what was minimised", f->neg2logl);
    add_whole(c, "NPIX_REJ", 'J', "pixels left out as outliers", (int64_t)rejected);
    add_whole(c, "WIDE_ERR", 'L', "an error is as large as the library's range / sqrt(12)",
              (f->warnings & CLV_SPECFIT_WIDE_ERROR) != 0);
    add_whole(c, "STARTS_AGREED", 'J', "starts and further points that ended here",
              f->starts_agreed);
    add_whole(c, "ROUNDS", 'J', "of the optimiser", f->rounds);
    for (size_t a = 0, e = 0; a < CLV_SPECTRA_UNKNOWNS; ++a)
        for (size_t b = 0; b <= a; ++b, ++e) {
            char name[32];
            snprintf(name, sizeof name, "COV_%s_%s", names[a], names[b]);
            add_real(c, name, NULL, c->covariance, f->covariance[e]);
        }
}

void specfit_make_row(const specfit_table *t, const specfit_row *r, specfit_cells *c)
{
    static const clv_desi_row nowhere;
    arm_sums sums[SPECFIT_COLUMNS];
    c->count = 0;
    sum_arms(t, r, sums);
    add_fit(c, &r->fit);
    add_chisq(c, t, sums);
    add_target(c, t, r, r->count ? specfit_about(t, r) : &nowhere, sums);
    add_own(c, &r->fit);
}

void specfit_begin_row(const specfit_table *t, const specfit_copies *from, specfit_cells *c)
{
    *c = (specfit_cells){ .from = from };
    comment_errors(t, c);
    const clv_redshift *all = t->inputs[0].redshifts;
    for (size_t i = 0; i < t->input_count; ++i)
        c->file_width = CLV_MAX(c->file_width, (unsigned)strlen(t->inputs[i].path));
    for (size_t i = 0; i < t->count && all; ++i) {
        const clv_redshift *z = &all[t->places[t->rows[i].first].row];
        c->type_width = CLV_MAX(c->type_width, (unsigned)strlen(z->type));
        c->subtype_width = CLV_MAX(c->subtype_width, (unsigned)strlen(z->subtype));
    }
}

void specfit_make_empty_row(const specfit_table *t, specfit_cells *c)
{
    static const specfit_row nothing;
    specfit_make_row(t, &nothing, c);
}

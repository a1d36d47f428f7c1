/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `cleave specfit`: rvspecfit's columns and our own, as CSV or FITS. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/io/csv.h"
#include "host/io/fits_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_COLUMNS = 96 };

/* The table's columns as numbers and texts, one row at a time. */
typedef struct cells {
    clv_fits_column column[MAX_COLUMNS];
    clv_fits_value value[MAX_COLUMNS];
    size_t count;
} cells;

static void add(cells *c, const char *name, char type, const char *unit, clv_fits_value value)
{
    clv_fits_column *column = &c->column[c->count];
    *column = (clv_fits_column){ .type = type, .unit = unit };
    clv_copy_string(column->name, sizeof column->name, name);
    c->value[c->count++] = value;
}

static void add_real(cells *c, const char *name, const char *unit, double value)
{
    add(c, name, 'D', unit, (clv_fits_value){ .real = value });
}

static void add_whole(cells *c, const char *name, char type, int64_t value)
{
    add(c, name, type, NULL, (clv_fits_value){ .whole = value });
}

static void add_fit(cells *c, const clv_specfit_result *f)
{
    add_real(c, "VRAD", "km/s", f->velocity);
    add_real(c, "VRAD_ERR", "km/s", f->velocity_error);
    add_real(c, "VRAD_SKEW", NULL, f->skewness);
    add_real(c, "VRAD_KURT", NULL, f->kurtosis);
    add_real(c, "VSINI", "km/s", f->vsini);
    add_real(c, "LOGG", NULL, f->logg);
    add_real(c, "LOGG_ERR", NULL, f->logg_error);
    add_real(c, "TEFF", "K", f->teff);
    add_real(c, "TEFF_ERR", "K", f->teff_error);
    add_real(c, "FEH", NULL, f->feh);
    add_real(c, "FEH_ERR", NULL, f->feh_error);
    add_real(c, "ALPHAFE", NULL, f->alpha);
    add_real(c, "ALPHAFE_ERR", NULL, f->alpha_error);
}

static void add_chisq(cells *c, const specfit_table *t, const clv_specfit_result *f)
{
    double chi = 0, continuum = 0;
    size_t pixels = 0;
    char name[32];
    for (size_t i = 0; i < t->slots; ++i)
        chi += f->chisq[i], continuum += f->chisq_continuum[i], pixels += f->pixels[i];
    add_real(c, "CHISQ_TOT", NULL, chi);
    add_real(c, "CHISQ_C_TOT", NULL, continuum);
    add_whole(c, "NPIX_TOT", 'K', (int64_t)pixels);
    for (size_t i = 0; i < t->slots; ++i) {
        const char letter = clv_desi_arm_letters[t->arm_of[i]];
        snprintf(name, sizeof name, "CHISQ_%c", letter);
        add_real(c, name, NULL, f->chisq[i]);
        snprintf(name, sizeof name, "CHISQ_C_%c", letter);
        add_real(c, name, NULL, f->chisq_continuum[i]);
    }
}

static void add_target(cells *c, const specfit_table *t, const specfit_row *r)
{
    const clv_desi_row *row = &t->desi->row[r->row];
    add_real(c, "VRAD_CCF", "km/s", r->fit.start_velocity);
    add_whole(c, "RVS_WARN", 'K', r->fit.warnings);
    add_whole(c, "FIBER", 'J', row->fiber);
    add_whole(c, "REF_ID", 'K', row->reference);
    add(c, "REF_CAT", 'A', NULL, (clv_fits_value){ .text = row->catalogue });
    add_real(c, "TARGET_RA", "deg", row->ra);
    add_real(c, "TARGET_DEC", "deg", row->dec);
    add_whole(c, "TARGETID", 'K', row->target);
    add_whole(c, "EXPID", 'K', row->expid);
    for (size_t i = 0; i < t->slots; ++i) {
        char name[8];
        snprintf(name, sizeof name, "SN_%c", clv_desi_arm_letters[t->arm_of[i]]);
        const double told = row->snr[t->arm_of[i]];
        add_real(c, name, NULL, isfinite(told) ? told : r->fit.signal_to_noise[i]);
    }
    add_whole(c, "SUCCESS", 'L', r->fit.warnings == 0);
}

/* What rvspecfit does not tell. */
static void add_own(cells *c, const clv_specfit_result *f)
{
    static const char *const names[] = { "VRAD", "VSINI", "TEFF", "LOGG", "FEH", "ALPHAFE" };
    add_real(c, "NEG2LOGL", NULL, f->neg2logl);
    add_whole(c, "STARTS_AGREED", 'J', f->starts_agreed);
    add_whole(c, "ROUNDS", 'J', f->rounds);
    for (size_t a = 0, e = 0; a < CLV_SPECTRA_UNKNOWNS; ++a)
        for (size_t b = 0; b <= a; ++b, ++e) {
            char name[32];
            snprintf(name, sizeof name, "COV_%s_%s", names[a], names[b]);
            add_real(c, name, NULL, f->covariance[e]);
        }
}

static void make_row(const specfit_table *t, const specfit_row *r, cells *c)
{
    c->count = 0;
    add_fit(c, &r->fit);
    add_chisq(c, t, &r->fit);
    add_target(c, t, r);
    add_own(c, &r->fit);
}

static clv_status write_csv(const char *path, const specfit_table *t)
{
    clv_csv csv = { 0 };
    cells c;
    const char *names[MAX_COLUMNS];
    static const specfit_row nothing;
    clv_desi_row nowhere = { 0 };
    const clv_desi empty = { .row = &nowhere };
    const specfit_table no_rows = { .desi = &empty,
                                    .slots = t->slots,
                                    .arm_of = { t->arm_of[0], t->arm_of[1], t->arm_of[2] } };
    make_row(t->count ? t : &no_rows, t->count ? &t->rows[0] : &nothing, &c);
    for (size_t k = 0; k < c.count; ++k)
        names[k] = c.column[k].name;
    clv_csv_begin(&csv, names, c.count);
    for (size_t i = 0; i < t->count; ++i) {
        make_row(t, &t->rows[i], &c);
        for (size_t k = 0; k < c.count; ++k) {
            if (c.column[k].type == 'D')
                clv_csv_number(&csv, c.value[k].real);
            else if (c.column[k].type == 'A')
                clv_csv_string(&csv, c.value[k].text);
            else
                clv_csv_int(&csv, c.value[k].whole);
        }
        clv_csv_end_row(&csv);
    }
    const clv_status status = clv_csv_write(&csv, path);
    clv_csv_clear(&csv);
    return status;
}

static clv_status write_fits(const char *path, const specfit_table *t)
{
    clv_fits_table table = { 0 };
    cells c;
    for (size_t i = 0; i < t->count; ++i) {
        make_row(t, &t->rows[i], &c);
        if (!i) clv_fits_table_begin(&table, "RVTAB", c.column, c.count, t->count);
        clv_fits_table_row(&table, c.value);
    }
    if (!t->count) clv_fits_table_begin(&table, "RVTAB", NULL, 0, 0);
    const clv_status status = clv_fits_table_write(&table, path);
    clv_fits_table_clear(&table);
    return status;
}

int specfit_write(const specfit_args *a, const specfit_table *t)
{
    const bool fits = clv_ends_with(a->output, ".fits");
    return cli_status(&cli_specfit, (fits ? write_fits : write_csv)(a->output, t));
}

/* Wavelengths, and a row of models for each row of the table, an image an arm. */
int specfit_models_begin(const specfit_args *a, const specfit_table *t, clv_fits_rows *file)
{
    clv_fits_image images[2 * CLV_DESI_ARMS];
    clv_fits_table head = { 0 };
    clv_fits_table_begin(&head, NULL, NULL, 0, 0);
    for (size_t s = 0; s < t->slots; ++s) {
        const size_t arm = t->arm_of[s], n = t->desi->wavelength[arm].shape[0];
        clv_fits_image *i = &images[2 * s];
        i[0] = (clv_fits_image){ .bitpix = -64, .rank = 1, .shape = { n } };
        i[1] = (clv_fits_image){ .bitpix = -32, .rank = 2, .shape = { t->count, n } };
        snprintf(i[0].name, sizeof i[0].name, "%c_WAVELENGTH", clv_desi_arm_letters[arm]);
        snprintf(i[1].name, sizeof i[1].name, "%c_MODEL", clv_desi_arm_letters[arm]);
    }
    clv_status status = clv_fits_rows_begin(a->models, &head, images, 2 * t->slots, file);
    clv_fits_table_clear(&head);
    for (size_t s = 0; s < t->slots && !status; ++s)
        status = clv_fits_rows_put(file, 2 * s, 0, t->desi->wavelength[t->arm_of[s]].data);
    return cli_status(&cli_specfit, status);
}

int specfit_models_put(const specfit_table *t, size_t from, size_t count, clv_fits_rows *file)
{
    clv_status status = CLV_OK;
    for (size_t s = 0; s < t->slots && !status; ++s) {
        const size_t n = t->desi->wavelength[t->arm_of[s]].shape[0];
        float *nothing = clv_alloc(n, sizeof *nothing);
        if (!nothing) return cli_error(&cli_specfit, CLI_FAILED, "no memory for models");
        for (size_t k = 0; k < n; ++k)
            nothing[k] = NAN;
        for (size_t i = from; i < from + count && !status; ++i) {
            const float *model = t->rows[i].fit.model[s];
            status = clv_fits_rows_put(file, 2 * s + 1, i, model ? model : nothing);
        }
        clv_free(nothing);
    }
    return cli_status(&cli_specfit, status);
}

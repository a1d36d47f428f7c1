/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the table of `cleave specfit` as CSV or FITS. */
#include "host/cli/endings.h"
#include "host/cli/specfit/cells.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/tables/csv.h"

#include <cleave/version.h>

#include <stdlib.h>
#include <string.h>

static clv_status write_csv(const char *path, const specfit_table *t, const specfit_copies *from)
{
    clv_csv csv = { 0 };
    specfit_cells c;
    const char *names[SPECFIT_MAX_CELLS];
    specfit_begin_row(t, from, &c);
    specfit_make_empty_row(t, &c);
    for (size_t k = 0; k < c.count; ++k)
        names[k] = c.column[k].name;
    clv_csv_begin(&csv, names, c.count);
    for (size_t i = 0; i < t->count; ++i) {
        specfit_make_row(t, &t->rows[i], &c);
        for (size_t k = 0; k < c.count; ++k) {
            if (c.column[k].type == 'D' || c.column[k].type == 'E')
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

/* ---- what goes along ------------------------------------------------------------------------- */

static void copies_clear(specfit_copies *c)
{
    clv_fits_raw_clear(&c->primary), clv_fits_raw_clear(&c->fibermap);
    clv_fits_raw_clear(&c->scores), clv_fits_raw_clear(&c->exposures);
    *c = (specfit_copies){ 0 };
}

static clv_status copies_read(const specfit_table *t, specfit_copies *c)
{
    static const char *const keys[] = { "SPGRP", "SPGRPVAL", "TILEID",   "SPECTRO",  "PETAL",
                                        "NIGHT", "EXPID",    "HPXPIXEL", "HPXNSIDE", "HPXNEST" };
    *c = (specfit_copies){ 0 };
    if (!t->plain) return CLV_OK;
    const char *path = t->inputs[0].path;
    clv_status status = clv_fits_raw_primary(path, keys, CLV_LEN(keys), &c->primary);
    if (!status) status = clv_fits_raw_read(path, "FIBERMAP", &c->fibermap, &c->has_fibermap);
    if (!status) status = clv_fits_raw_read(path, "SCORES", &c->scores, &c->has_scores);
    if (!status) status = clv_fits_raw_read(path, "EXP_FIBERMAP", &c->exposures, &c->has_exposures);
    if (status) copies_clear(c);
    return status;
}

/* Adds the settings that the numbers depend on. */
static void add_settings(const specfit_args *a, const specfit_table *t, clv_fits_cards *cards)
{
    static const char *const together[] = { "none", "target", "all" };
    const char *slash = strrchr(a->library, '/');
    clv_text ignored = { 0 };
    for (size_t i = 0; i < a->ignored_count; ++i)
        clv_text_add(&ignored, "%s%g:%g", i ? "," : "", a->ignored[2 * i], a->ignored[2 * i + 1]);
    clv_fits_card_string(cards, "LIBRARY", slash && slash[1] ? slash + 1 : a->library,
                         "folder of the templates");
    clv_fits_card_string(cards, "DEVICE", t->device, "that fitted");
    clv_fits_card_int(cards, "NPOLY", (int64_t)a->npoly, "terms of the continuum");
    clv_fits_card_int(cards, "STARTS", (int64_t)a->starts, "of each star");
    clv_fits_card_double(cards, "MINVEL", a->min_vel, "smallest velocity (km/s)");
    clv_fits_card_double(cards, "MAXVEL", a->max_vel, "largest velocity (km/s)");
    clv_fits_card_double(cards, "VELSTEP", a->vel_step, "of the grid for starts (km/s)");
    clv_fits_card_double(cards, "MAXVSINI", a->max_vsini, "fastest rotation (km/s)");
    clv_fits_card_bool(cards, "RESOLUT", a->resolution == 1, "resolution of the file was used");
    if (a->resolving_power > 0)
        clv_fits_card_double(cards, "RESPOWER", a->resolving_power, "wavelength / FWHM of spectra");
    clv_fits_card_double(cards, "REJECT", a->reject, "sigma of outliers; 0: none");
    clv_fits_card_string(cards, "IGNORE", ignored.length ? ignored.data : "none",
                         "Angstrom left out");
    clv_fits_card_string(cards, "COMBINE", together[a->combine], "spectra fitted together");
    if (a->prior) clv_fits_card_string(cards, "PRIOR", a->prior, "for all stars");
    if (a->fix) clv_fits_card_string(cards, "FIX", a->fix, "held in all stars");
    if (a->priors) clv_fits_card_string(cards, "PRIORS", "file", "some stars have their own");
    cards->failed |= ignored.failed;
    clv_text_clear(&ignored);
}

static clv_status begin_file(const specfit_args *a, const specfit_table *t,
                             const specfit_copies *from, clv_fits_table *table)
{
    clv_fits_cards cards = { 0 };
    clv_text text = { 0 };
    const char *slash = t->redshift_file ? strrchr(t->redshift_file, '/') : NULL;
    clv_fits_card_string(&cards, "DEPNAM00", "cleave", "Software");
    clv_fits_card_string(&cards, "DEPVER00", clv_version(), "Version");
    clv_fits_card_string(&cards, "RR_FILE",
                         slash              ? slash + 1
                         : t->redshift_file ? t->redshift_file
                                            : "",
                         "Redrock redshift file");
    add_settings(a, t, &cards);
    for (size_t i = 0; i < cards.count; ++i)
        clv_text_add(&text, "%-80.80s", cards.items[i].text);
    clv_text_bytes(&text, from->primary.cards.data, from->primary.cards.length);
    clv_status status = cards.failed || text.failed
                            ? clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a header")
                            : CLV_OK;
    if (!status) clv_fits_table_primary(table, text.data, text.length / 80);
    clv_text_clear(&text), clv_fits_cards_clear(&cards);
    return status;
}

static int by_target(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Copies the rows of the single exposures whose target is in the table. */
static clv_status add_exposures(const specfit_table *t, const specfit_copies *c,
                                clv_fits_table *table)
{
    clv_file_array targets = { 0 };
    bool found = false;
    int64_t *wanted = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *wanted);
    size_t *rows = clv_alloc(CLV_MAX(c->exposures.rows, (size_t)1), sizeof *rows), count = 0;
    clv_status status = wanted && rows ? CLV_OK : clv_fail(CLV_E_MEMORY, "specfit: out of memory");
    if (!status)
        status = clv_fits_read_column(t->inputs[0].path, "EXP_FIBERMAP", "TARGETID", CLV_I64,
                                      &targets, &found);
    for (size_t i = 0; i < t->count && !status; ++i)
        wanted[i] = specfit_about(t, &t->rows[i])->target;
    if (!status && t->count) qsort(wanted, t->count, sizeof *wanted, by_target);
    for (size_t i = 0; !status && found && t->count && i < targets.shape[0]; ++i)
        if (bsearch((const int64_t *)targets.data + i, wanted, t->count, sizeof *wanted, by_target))
            rows[count++] = i;
    if (!status && found) clv_fits_raw_write(&c->exposures, "EXP_FIBERMAP", rows, count, table);
    clv_file_array_clear(&targets), clv_free(wanted), clv_free(rows);
    return status;
}

/* Copies the fibre map of the fitted spectra; with `all` also their scores and exposures. */
static clv_status add_copies(const specfit_table *t, const specfit_copies *c, bool all,
                             clv_fits_table *table)
{
    size_t *rows = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *rows);
    if (!rows) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for the fibre map");
    for (size_t i = 0; i < t->count; ++i)
        rows[i] = t->places[t->rows[i].first].row;
    if (c->has_fibermap) clv_fits_raw_write(&c->fibermap, "FIBERMAP", rows, t->count, table);
    if (all && c->has_scores && c->scores.rows == t->inputs[0].desi.rows)
        clv_fits_raw_write(&c->scores, "SCORES", rows, t->count, table);
    clv_free(rows);
    return all && c->has_exposures ? add_exposures(t, c, table) : CLV_OK;
}

static clv_status write_fits(const specfit_args *a, const specfit_table *t,
                             const specfit_copies *from)
{
    clv_fits_table table = { 0 };
    specfit_cells c;
    specfit_begin_row(t, from, &c);
    clv_status status = begin_file(a, t, from, &table);
    specfit_make_empty_row(t, &c);
    clv_fits_table_next(&table, "RVTAB", c.column, c.count, t->count);
    for (size_t i = 0; i < t->count; ++i) {
        specfit_make_row(t, &t->rows[i], &c);
        clv_fits_table_row(&table, c.value);
    }
    if (!status) status = add_copies(t, from, true, &table);
    if (!status) status = clv_fits_table_seal(&table);
    if (!status) status = clv_fits_table_write(&table, a->output);
    clv_fits_table_clear(&table);
    return status;
}

int specfit_write(const specfit_args *a, const specfit_table *t)
{
    specfit_copies from;
    clv_status status = copies_read(t, &from);
    if (!status)
        status = cli_formats_of(a->output) == CLI_FITS ? write_fits(a, t, &from)
                                                       : write_csv(a->output, t, &from);
    copies_clear(&from);
    return cli_status(cli_running(), status);
}

/* ---- what files of models have too ----------------------------------------------------------- */

clv_status specfit_head_of_models(const specfit_args *a, const specfit_table *t,
                                  clv_fits_table *head)
{
    specfit_copies from;
    clv_status status = copies_read(t, &from);
    if (!status) status = begin_file(a, t, &from, head);
    copies_clear(&from);
    return status;
}

clv_status specfit_tail_of_models(const specfit_table *t, clv_fits_table *tail)
{
    specfit_copies from;
    clv_status status = copies_read(t, &from);
    if (!status) status = add_copies(t, &from, false, tail);
    copies_clear(&from);
    return status;
}

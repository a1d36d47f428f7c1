/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a spectrum from a FITS table: SDSS (spec-, lite), JWST (x1d), specutils, and any table with named columns. A
 * table has one pixel per row, or all pixels in one row. */
#include "host/io/tables/spectrum.h"

#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_COLUMNS = 1000, NAME = 72 };

typedef struct table {
    char name[CLV_ROLES][NAME]; /* name of the column in each role */
    clv_spectrum_unit_texts unit;
} table;

/* Returns whether the column `name` suits its role better than the column `old`; "" is no column. */
static bool is_better(const char *name, const char *old)
{
    return !*old || strcasecmp(name, "flux_error") == 0 || strcasecmp(name, "and_mask") == 0;
}

static void find_columns(const clv_fits_hdu *hdu, const clv_spectrum_names *names, table *t)
{
    char key[24], name[NAME];
    *t = (table){ 0 };
    for (int i = 1; i <= MOST_COLUMNS; ++i) {
        snprintf(key, sizeof key, "TTYPE%d", i);
        if (!clv_fits_hdu_text(hdu, key, name, sizeof name)) continue;
        const clv_spectrum_role role = clv_spectrum_role_among(names, name);
        if (!role || !is_better(name, t->name[role])) continue;
        clv_copy_string(t->name[role], NAME, name);
        snprintf(key, sizeof key, "TUNIT%d", i);
        t->unit.of[role][0] = '\0';
        clv_fits_hdu_text(hdu, key, t->unit.of[role], NAME);
    }
}

/* Returns whether the table has all columns that the user named. */
static bool has_all(const clv_spectrum_names *names, const table *t)
{
    for (int role = 1; names && role < CLV_ROLES; ++role)
        if (*names->of[role] && !*t->name[role]) return false;
    return true;
}

static const char *kind_of(const clv_fits_hdu *hdu, const table *t)
{
    if (strcasecmp(hdu->name, "COADD") == 0 && *t->name[CLV_ROLE_LOG_WAVE]) return "SDSS table";
    if (strcasecmp(hdu->name, "EXTRACT1D") == 0) return "JWST table";
    return "FITS table";
}

static clv_status read_columns(const char *path, int number, const table *t,
                               clv_file_array cells[CLV_ROLES], clv_spectrum_columns *c)
{
    for (int role = 1; role < CLV_ROLES; ++role) {
        bool found = false;
        if (!*t->name[role]) continue;
        CLV_TRY(clv_fits_read_cells(path, number, t->name[role], &cells[role], &found));
        if (!found) continue;
        const size_t n = cells[role].shape[0];
        if (!c->count) c->count = n;
        if (n != c->count)
            return clv_fail(CLV_E_FORMAT,
                            "%s: column %s has %zu values, but the other columns have %zu", path,
                            t->name[role], n, c->count);
        c->value[role] = cells[role].data;
    }
    return CLV_OK;
}

/* Reads the spectrum from the table in HDU `number`; *found is false if the table has none. */
static clv_status read_one(const char *path, const clv_fits_hdu *hdu, int number,
                           const clv_spectrum_names *names, clv_one_spectrum *out, bool *found)
{
    table t;
    *found = false;
    if (!hdu->is_table) return CLV_OK;
    find_columns(hdu, names, &t);
    const char *wave = t.name[CLV_ROLE_WAVE];
    if (!has_all(names, &t) || !*t.name[CLV_ROLE_FLUX] || (!*wave && !*t.name[CLV_ROLE_LOG_WAVE]))
        return CLV_OK;
    clv_file_array cells[CLV_ROLES] = { { 0 } };
    char model[24];
    clv_spectrum_columns c = { .bad_bits = clv_spectrum_mask_bits(t.name[CLV_ROLE_MASK]),
                               .per_hertz = clv_is_per_hertz(t.unit.of[CLV_ROLE_FLUX]),
                               .angstrom = clv_angstrom_in(t.unit.of[CLV_ROLE_WAVE]) };
    /* the masks of PypeIt's coadds mark the good pixels */
    c.marks_good =
        clv_fits_hdu_text(hdu, "DMODCLS", model, sizeof model) && strcmp(model, "OneSpec") == 0;
    clv_status status = CLV_OK;
    if (*t.unit.of[CLV_ROLE_WAVE] && c.angstrom == 0)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: the unit of column %s is \"%s\"; expected Angstrom, nm, um or m",
                          path, wave, t.unit.of[CLV_ROLE_WAVE]);
    if (!status) status = clv_spectrum_check_flux_unit(path, t.unit.of[CLV_ROLE_FLUX]);
    if (!status) status = read_columns(path, number, &t, cells, &c);
    *found =
        !status && c.value[CLV_ROLE_FLUX] && (c.value[CLV_ROLE_WAVE] || c.value[CLV_ROLE_LOG_WAVE]);
    if (*found) status = clv_spectrum_match_units(path, &t.unit, &c);
    if (*found && !status) status = clv_spectrum_assemble(path, &c, out);
    for (size_t role = 0; role < CLV_ROLES; ++role)
        clv_file_array_clear(&cells[role]);
    CLV_TRY(status);
    if (!*found) return CLV_OK;
    out->kind = kind_of(hdu, &t);
    if (strcmp(out->kind, "FITS table") != 0) out->medium = CLV_MEDIUM_VACUUM;
    if (clv_contains_nocase(wave, "_air")) out->medium = CLV_MEDIUM_AIR;
    clv_file_array helio = { 0 };
    bool there = false;
    CLV_TRY(clv_fits_read_cells(path, number, "VHELIO", &helio, &there));
    if (there && helio.shape[0]) out->barycentric = ((double *)helio.data)[0];
    clv_file_array_clear(&helio);
    return CLV_OK;
}

/* Returns whether the table `name` holds another part of the spectrum that the table `first` began, as COADD_B and
 * COADD_R of LAMOST do: the names differ only after '_'. */
static bool is_other_part(const char *name, const char *first)
{
    const char *end = strrchr(first, '_');
    const size_t same = end ? (size_t)(end - first) + 1 : 0;
    return same && strncmp(name, first, same) == 0 && strcmp(name, first) != 0;
}

clv_status clv_spectrum_read_table(const char *path, const clv_fits_hdus *hdus,
                                   const clv_spectrum_names *names, clv_one_spectrum *out,
                                   bool *found)
{
    size_t first = 0;
    *found = false;
    for (size_t i = 0; i < hdus->count && !*found; first = i++)
        CLV_TRY(read_one(path, &hdus->item[i], (int)i, names, out, found));
    for (size_t i = first + 1; *found && i < hdus->count; ++i) {
        clv_one_spectrum part = { 0 };
        bool more = false;
        if (!is_other_part(hdus->item[i].name, hdus->item[first].name)) continue;
        clv_status status = read_one(path, &hdus->item[i], (int)i, names, &part, &more);
        if (!status && more) status = clv_spectrum_append(path, &part, out);
        clv_one_spectrum_clear(&part);
        CLV_TRY(status);
    }
    return CLV_OK;
}

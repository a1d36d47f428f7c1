/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the spectra to fit: by target, S/N, exposure and redshift. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 256 };
static const double no_signal = -1e9; /* S/N of a spectrum without a good pixel */

bool specfit_is_listed(const char *list, int64_t id)
{
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, id);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        const size_t n = strcspn(at, ",");
        if (n == strlen(name) && strncmp(at, name, n) == 0) return true;
        if (!at[n]) break;
        at += n;
    }
    return false;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- S/N that the file does not tell --------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static double median_signal(const float *flux, const float *ivar, const int32_t *mask, size_t n,
                            float *room)
{
    size_t good = 0;
    for (size_t k = 0; k < n; ++k) {
        const float s = flux[k] * sqrtf(fmaxf(ivar[k], 0));
        if (ivar[k] > 0 && !(mask && mask[k] > 0) && isfinite(s)) room[good++] = s;
    }
    if (!good) return no_signal;
    qsort(room, good, sizeof *room, by_size);
    return 0.5 * ((double)room[(good - 1) / 2] + (double)room[good / 2]);
}

static bool signal_is_told(const clv_desi *d)
{
    for (size_t i = 0; i < d->rows; ++i)
        for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
            if (!isnan(d->row[i].snr[k])) return true;
    return false;
}

static clv_status measure_block(clv_desi *d, size_t first, size_t count)
{
    clv_desi_block b;
    CLV_TRY(clv_desi_read(d, first, count, false, &b));
    clv_status status = CLV_OK;
    for (size_t k = 0; k < CLV_DESI_ARMS && !status; ++k) {
        if (!d->present[k]) continue;
        const size_t n = d->wavelength[k].shape[0];
        float *room = clv_alloc(n, sizeof *room);
        if (!room) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", d->path);
        for (size_t i = 0; i < count && !status; ++i) {
            const float *flux = (const float *)b.flux[k].data + i * n;
            const float *ivar = (const float *)b.ivar[k].data + i * n;
            const int32_t *mask = b.mask[k].data;
            d->row[first + i].snr[k] =
                median_signal(flux, ivar, mask ? mask + i * n : NULL, n, room);
        }
        clv_free(room);
    }
    clv_desi_block_clear(&b);
    return status;
}

static clv_status measure_signal(clv_desi *d)
{
    for (size_t i = 0; i < d->rows; i += BLOCK_ROWS)
        CLV_TRY(measure_block(d, i, CLV_MIN((size_t)BLOCK_ROWS, d->rows - i)));
    return CLV_OK;
}

/* ---- redshifts ------------------------------------------------------------------------------- */

static int read_redshifts(const specfit_args *a, specfit_table *t)
{
    if (!a->redshifts && !a->zbest_include && !a->zbest_select) return CLI_OK;
    if (t->input_count > 1 || t->inputs[0].single)
        return cli_error(cli_running(), CLI_USAGE,
                         "--redshifts, --zbest_include and --zbest_select are possible with a "
                         "single DESI file only; run the files one by one");
    specfit_input *in = &t->inputs[0];
    t->redshift_file = a->redshifts ? clv_strdup(a->redshifts) : clv_redshifts_beside(in->path);
    if (t->redshift_file)
        return cli_input_status(cli_running(),
                                clv_redshifts_read(t->redshift_file, &in->desi, &in->redshifts));
    if (a->redshifts) return cli_error(cli_running(), CLI_FAILED, "out of memory");
    cli_warn(cli_running(),
             "%s: there is no redrock- or zbest- file beside it: fitting without redshifts",
             in->path);
    return CLI_OK;
}

static bool is_wanted(const specfit_args *a, const specfit_input *in, const specfit_ids *ids,
                      size_t row)
{
    const clv_desi_row *r = &in->desi.row[row];
    if (!r->is_star) return false;
    if ((a->targets || a->targets_file) &&
        !(ids->count && bsearch(&r->target, ids->ids, ids->count, sizeof *ids->ids, by_number)))
        return false;
    if (r->expid >= 0 && ((a->min_expid_given && r->expid <= a->min_expid) ||
                          (a->max_expid_given && r->expid > a->max_expid)))
        return false;
    if (a->zbest_select && in->redshifts && !in->redshifts[row].is_star) return false;
    bool bright = !a->min_sn_given;
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
        bright |= r->snr[k] > a->min_sn;
    return bright;
}

/* ---- stars --------------------------------------------------------------------------------------- */

/* Reads a single spectrum to measure its S/N. */
static clv_status measure_single(const specfit_args *a, specfit_input *in)
{
    clv_one_spectrum s = { 0 };
    clv_status status = specfit_read_single(a, in->path, &s);
    float *flux = clv_alloc(CLV_MAX(3 * s.pixels, (size_t)1), sizeof *flux);
    if (!status && !flux) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", in->path);
    for (size_t k = 0; k < s.pixels && !status; ++k) {
        const bool good = s.error[k] > 0;
        flux[k] = good ? (float)(s.flux[k] / s.error[k]) : 0, flux[s.pixels + k] = good;
    }
    if (!status)
        in->desi.row[0].snr[0] =
            median_signal(flux, flux + s.pixels, NULL, s.pixels, flux + 2 * s.pixels);
    clv_free(flux), clv_one_spectrum_clear(&s);
    return status;
}

/* A selected spectrum and its star, which a TARGETID or an OBJECT identifies. */
typedef struct member {
    specfit_place place;
    size_t order, group; /* the spectrum's number; the number of its star's first spectrum */
    int64_t target;
    const char *object;
} member;

static int by_star(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    const int order = strcmp(x->object, y->object);
    if (order) return order;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_group(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Returns whether two spectra are of one star. Spectra with neither a target nor an object are separate stars. */
static bool same_star(const member *x, const member *y)
{
    return x->target == y->target && strcmp(x->object, y->object) == 0 &&
           (x->target >= 0 || *x->object);
}

/* Sorts the spectra so that those of one star are adjacent, and stars are in the order of their first spectra. */
static void group(int combine, member *all, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        all[i].order = i, all[i].group = combine == SPECFIT_ALL_ONE ? 0 : i;
    if (combine != SPECFIT_BY_TARGET || !count) return;
    qsort(all, count, sizeof *all, by_star);
    for (size_t i = 1; i < count; ++i)
        if (same_star(&all[i - 1], &all[i])) all[i].group = all[i - 1].group;
    qsort(all, count, sizeof *all, by_group);
}

static int make_rows(const specfit_args *a, specfit_table *t, member *all, size_t count)
{
    t->rows = clv_zalloc(CLV_MAX(count, (size_t)1), sizeof *t->rows);
    t->places = clv_zalloc(CLV_MAX(count, (size_t)1), sizeof *t->places);
    if (!t->rows || !t->places)
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for the table");
    group(a->combine, all, count);
    for (size_t i = 0; i < count; ++i) {
        if (!i || all[i].group != all[i - 1].group) t->rows[t->count++].first = i;
        ++t->rows[t->count - 1].count;
        t->places[t->place_count++] = all[i].place;
    }
    for (size_t r = 0; r < t->count; ++r) {
        size_t spectra = 0;
        for (size_t e = 0; e < t->rows[r].count; ++e)
            for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
                spectra += t->inputs[t->places[t->rows[r].first + e].input].column[k] != SIZE_MAX;
        if (spectra > CLV_SPECTRA_MAX_SPECTRA)
            return cli_error(cli_running(), CLI_USAGE,
                             "--combine: a star has %zu spectra in %zu exposures, but at most %d "
                             "can be fitted together; "
                             "leave out some of the files",
                             spectra, t->rows[r].count, CLV_SPECTRA_MAX_SPECTRA);
    }
    return CLI_OK;
}

int specfit_select(const specfit_args *a, specfit_table *t)
{
    specfit_ids ids = { 0 };
    size_t all = 0, count = 0;
    int code = specfit_read_ids(a, &ids);
    if (!code) code = read_redshifts(a, t);
    for (size_t i = 0; i < t->input_count; ++i) {
        specfit_input *in = &t->inputs[i];
        all += in->desi.rows;
        if (code || !a->min_sn_given || (!in->single && signal_is_told(&in->desi))) continue;
        code = cli_input_status(cli_running(),
                                in->single ? measure_single(a, in) : measure_signal(&in->desi));
    }
    member *members = clv_zalloc(CLV_MAX(all, (size_t)1), sizeof *members);
    if (!members && !code)
        code = cli_error(cli_running(), CLI_FAILED, "not enough memory for the table");
    for (size_t i = 0; !code && i < t->input_count; ++i) {
        const specfit_input *in = &t->inputs[i];
        bool has_arm = false;
        for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
            has_arm |= in->column[k] != SIZE_MAX;
        for (size_t r = 0; r < in->desi.rows && has_arm; ++r)
            if (is_wanted(a, in, &ids, r))
                members[count++] = (member){ .place = { i, r },
                                             .target = in->desi.row[r].target,
                                             .object = in->desi.row[r].object };
    }
    if (!code) code = make_rows(a, t, members, count);
    clv_free(ids.ids), clv_free(members);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which spectra of the file are fitted: by target, S/N, exposure and redshift. */
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
        if (!room) status = clv_fail(CLV_E_MEMORY, "%s: no memory", d->path);
        for (size_t i = 0; i < count && !status; ++i) {
            const float *flux = (const float *)(d->sdss ? d->one[0].data : b.flux[k].data) + i * n;
            const float *ivar = (const float *)(d->sdss ? d->one[1].data : b.ivar[k].data) + i * n;
            const int32_t *mask = d->sdss ? d->one[2].data : b.mask[k].data;
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
    if (a->redshifts)
        t->redshift_file = clv_strdup(a->redshifts);
    else if (a->zbest_include || a->zbest_select)
        t->redshift_file = clv_redshifts_beside(a->spectra);
    if (t->redshift_file)
        return cli_input_status(cli_running(),
                                clv_redshifts_read(t->redshift_file, t->desi, &t->redshifts));
    if (a->redshifts) return cli_error(cli_running(), CLI_FAILED, "no memory");
    if (a->zbest_include || a->zbest_select)
        cli_warn(cli_running(), "%s: no redrock- or zbest- file beside it: fitted without",
                 a->spectra);
    return CLI_OK;
}

static bool is_wanted(const specfit_args *a, const specfit_table *t, const specfit_ids *ids,
                      size_t row)
{
    const clv_desi_row *r = &t->desi->row[row];
    if (!r->is_star) return false;
    if ((a->targets || a->targets_file) &&
        !(ids->count && bsearch(&r->target, ids->ids, ids->count, sizeof *ids->ids, by_number)))
        return false;
    if (r->expid >= 0 && ((a->min_expid_given && r->expid <= a->min_expid) ||
                          (a->max_expid_given && r->expid > a->max_expid)))
        return false;
    if (a->zbest_select && t->redshifts && !t->redshifts[row].is_star) return false;
    bool bright = !a->min_sn_given;
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
        bright |= r->snr[k] > a->min_sn;
    return bright;
}

int specfit_select(const specfit_args *a, specfit_table *t)
{
    specfit_ids ids = { 0 };
    int code = specfit_read_ids(a, &ids);
    if (!code) code = read_redshifts(a, t);
    if (!code && a->min_sn_given && !signal_is_told(t->desi))
        code = cli_input_status(cli_running(), measure_signal(t->desi));
    t->rows = clv_zalloc(CLV_MAX(t->desi->rows, (size_t)1), sizeof *t->rows);
    if (!t->rows && !code) code = cli_error(cli_running(), CLI_FAILED, "no memory for the table");
    for (size_t i = 0; !code && i < t->desi->rows; ++i)
        if (is_wanted(a, t, &ids, i)) t->rows[t->count++].row = i;
    clv_free(ids.ids);
    return code;
}

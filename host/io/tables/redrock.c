/* SPDX-License-Identifier: Apache-2.0 */
/* Reads redshifts and classes of spectra from a table of redrock, and matches them to the rows of a file of spectra. */
#include "host/io/tables/redrock.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double most_velocity = 1500, light = 3e5; /* km/s */

typedef struct columns {
    clv_file_array target, z, type, subtype;
} columns;

static void clear(columns *c)
{
    clv_file_array_clear(&c->target), clv_file_array_clear(&c->z);
    clv_file_array_clear(&c->type), clv_file_array_clear(&c->subtype);
}

static clv_status read_columns(const char *path, columns *c)
{
    static const char *const tables[] = { "REDSHIFTS", "ZBEST" };
    const char *table = tables[0];
    bool found = false, subtype = false;
    for (size_t i = 0; i < CLV_LEN(tables) && !found; ++i)
        CLV_TRY(
            clv_fits_read_column(path, table = tables[i], "TARGETID", CLV_I64, &c->target, &found));
    if (found) CLV_TRY(clv_fits_read_column(path, table, "Z", CLV_F64, &c->z, &found));
    if (found) CLV_TRY(clv_fits_read_column(path, table, "SPECTYPE", CLV_U8, &c->type, &found));
    if (found) CLV_TRY(clv_fits_read_column(path, table, "SUBTYPE", CLV_U8, &c->subtype, &subtype));
    const size_t rows = found ? c->target.shape[0] : 0;
    if (!found || c->z.shape[0] != rows || c->type.shape[0] != rows ||
        (subtype && c->subtype.shape[0] != rows))
        return clv_fail(
            CLV_E_FORMAT,
            "%s: there is no table REDSHIFTS or ZBEST with the columns TARGETID, Z and SPECTYPE",
            path);
    return CLV_OK;
}

/* Copies a text without trailing blanks. */
static void copy_text(const clv_file_array *texts, size_t row, char out[CLV_REDSHIFT_CLASS])
{
    *out = '\0';
    if (!texts->data) return;
    clv_copy_string(out, CLV_REDSHIFT_CLASS, (const char *)texts->data + row * texts->shape[1]);
    for (size_t n = strlen(out); n && out[n - 1] == ' '; --n)
        out[n - 1] = '\0';
}

static clv_redshift redshift_of(const columns *c, size_t row)
{
    clv_redshift r = { .z = ((const double *)c->z.data)[row] };
    copy_text(&c->type, row, r.type), copy_text(&c->subtype, row, r.subtype);
    r.is_star = strcmp(r.type, "STAR") == 0 || fabs(r.z) < most_velocity / light;
    return r;
}

typedef struct place {
    int64_t target;
    size_t row;
} place;

static int by_target(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Lists the row of each target in `places`, sorted by target, and returns their number. If a target has several rows,
 * the last one counts. */
static size_t sort_places(const columns *c, place *places, size_t rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows; ++i)
        places[i] = (place){ ((const int64_t *)c->target.data)[i], i };
    qsort(places, rows, sizeof *places, by_target);
    for (size_t i = 0; i < rows; ++i)
        if (i + 1 == rows || places[i + 1].target != places[i].target) places[kept++] = places[i];
    return kept;
}

static const place *find(const place *places, size_t count, int64_t target)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (places[middle].target < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && places[low].target == target ? &places[low] : NULL;
}

static clv_status match(const columns *c, const char *path, const clv_desi *d, clv_redshift *out)
{
    const size_t rows = c->target.shape[0];
    const int64_t *targets = c->target.data;
    bool same = rows == d->rows;
    for (size_t i = 0; i < rows && same; ++i)
        same = targets[i] == d->row[i].target;
    for (size_t i = 0; i < d->rows && same; ++i)
        out[i] = redshift_of(c, i);
    if (same) return CLV_OK;
    place *places = clv_alloc(CLV_MAX(rows, (size_t)1), sizeof *places);
    if (!places)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu redshifts", path, rows);
    const size_t count = sort_places(c, places, rows);
    for (size_t i = 0; i < d->rows; ++i) {
        const place *at = find(places, count, d->row[i].target);
        out[i] = at ? redshift_of(c, at->row) : (clv_redshift){ .z = NAN };
    }
    clv_free(places);
    return CLV_OK;
}

clv_status clv_redshifts_read(const char *path, const clv_desi *d, clv_redshift **out)
{
    columns c = { 0 };
    *out = NULL;
    clv_status status = read_columns(path, &c);
    clv_redshift *rows = status ? NULL : clv_zalloc(CLV_MAX(d->rows, (size_t)1), sizeof *rows);
    if (!status && !rows)
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for redshifts", path);
    if (!status) status = match(&c, path, d, rows);
    clear(&c);
    if (status)
        clv_free(rows);
    else
        *out = rows;
    return status;
}

char *clv_redshifts_beside(const char *spectra)
{
    static const char *const of[] = { "coadd-", "spectra-" }, *const is[] = { "redrock-",
                                                                              "zbest-" };
    const char *slash = strrchr(spectra, '/'), *name = slash ? slash + 1 : spectra;
    const char *rest = NULL;
    for (size_t i = 0; i < CLV_LEN(of) && !rest; ++i)
        if (clv_starts_with(name, of[i])) rest = name + strlen(of[i]);
    if (!rest) return NULL;
    const int length = (int)(strlen(rest) - (clv_ends_with(rest, ".gz") ? 3 : 0));
    for (size_t i = 0; i < 2 * CLV_LEN(is); ++i) {
        clv_text path = { 0 };
        clv_text_add(&path, "%.*s%s%.*s%s", (int)(name - spectra), spectra, is[i / 2], length, rest,
                     i % 2 ? ".gz" : "");
        if (!path.failed && access(path.data, R_OK) == 0) return path.data;
        clv_text_clear(&path);
    }
    return NULL;
}

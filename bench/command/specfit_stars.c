/* SPDX-License-Identifier: Apache-2.0 */
/* Provides the stars of the bench: synthetic ones in DESI's format, or those of the user's library and coadd. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "bench/command/specfit_stars.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/tables/desi.h"
#include "host/io/tables/speclib.h"
#include "host/synthetic/stars.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED = 1, MOST_MADE = 64 };

/* ---- files that were given -------------------------------------------------------------------- */

static struct given {
    const char *library_path, *coadd_path; /* NULL: none */
    clv_speclib library;
    clv_desi desi;
    clv_desi_block block;
    size_t row[MOST_MADE], rows; /* the rows of stars */
} given;

static clv_status open_given(void)
{
    size_t last = 0;
    if (!given.coadd_path || !given.library_path)
        return clv_fail(
            CLV_E_ARGUMENT,
            "%s is given without %s: the stars and the library to fit them by belong together",
            given.coadd_path ? "--coadd" : "--library",
            given.coadd_path ? "--library DIR" : "--coadd FILE");
    CLV_TRY(clv_speclib_read(given.library_path, &given.library));
    CLV_TRY(clv_desi_open(given.coadd_path, &given.desi));
    for (size_t i = 0; i < given.desi.rows && given.rows < MOST_MADE; ++i)
        if (given.desi.row[i].is_star) given.row[given.rows++] = last = i;
    if (!given.rows) return clv_fail(CLV_E_FORMAT, "%s: no star in it", given.coadd_path);
    return clv_desi_read(&given.desi, 0, last + 1, false, &given.block);
}

static clv_status spectra_of_given(size_t count, bench_stars *out)
{
    static clv_spectrum *items; /* kept for later calls, and replaced when a call needs more */
    static size_t room;
    const clv_desi *desi = &given.desi;
    size_t arms = 0, arm_of[CLV_DESI_ARMS], place[CLV_DESI_ARMS];
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k) {
        char name[16];
        snprintf(name, sizeof name, "desi_%c", "brz"[k]);
        place[arms] = clv_speclib_arm(&given.library, name);
        if (desi->present[k] && place[arms] < given.library.library.arm_count) arm_of[arms++] = k;
    }
    if (!arms) return clv_fail(CLV_E_SHAPE, "library and coadd share no arm");
    if (room < count) {
        clv_free(items);
        items = clv_zalloc(count * arms, sizeof *items);
        room = items ? count : 0;
    }
    if (!items) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu stars", count);
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < arms; ++k) {
            const size_t arm = arm_of[k], n = desi->wavelength[arm].shape[0];
            const size_t at = given.row[i % given.rows] * n;
            const clv_desi_block *b = &given.block;
            items[i * arms + k] = (clv_spectrum){
                .arm = place[k],
                .pixels = n,
                .wavelength = desi->wavelength[arm].data,
                .flux = (const float *)b->flux[arm].data + at,
                .ivar = (const float *)b->ivar[arm].data + at,
                .mask = b->mask[arm].data ? (const int32_t *)b->mask[arm].data + at : NULL,
            };
        }
    *out =
        (bench_stars){ given.library.library, { sizeof(clv_spectra_stars), count, arms, items } };
    return CLV_OK;
}

static clv_status link_to(const char *from, const char *to)
{
    char *whole = realpath(from, NULL);
    const bool ok = whole && (symlink(whole, to) == 0 || errno == EEXIST);
    free(whole);
    return ok ? CLV_OK : clv_fail(CLV_E_IO, "%s: %s", from, strerror(errno));
}

/* ---- for the cases ---------------------------------------------------------------------------- */

clv_status bench_stars_open(const char *library, const char *coadd)
{
    given.library_path = library, given.coadd_path = coadd;
    return library || coadd ? open_given() : CLV_OK;
}

size_t bench_stars_given(void)
{
    return given.rows;
}

clv_status bench_stars_get(size_t count, bench_stars *out)
{
    static synthetic_stars made; /* takes seconds */
    if (given.library_path) return spectra_of_given(count, out);
    if (made.stars.count < count) {
        const size_t all = CLV_MAX(count, (size_t)32);
        synthetic_stars_clear(&made);
        CLV_TRY(synthetic_stars_create_like(&synthetic_stars_desi, all, SEED, false, &made));
    }
    *out = (bench_stars){ made.library, made.stars };
    out->stars.count = count;
    return CLV_OK;
}

clv_status bench_stars_write(size_t count, const char *folder, const char *library)
{
    char described[BENCH_PATH + 16], coadd[BENCH_PATH];
    snprintf(described, sizeof described, "%s/lib.json", library);
    snprintf(coadd, sizeof coadd, "%.4000s/coadd.fits", folder);
    if (given.library_path) {
        CLV_TRY(link_to(given.library_path, library));
        return link_to(given.coadd_path, coadd);
    }
    synthetic_stars s;
    CLV_TRY(synthetic_stars_create_like(&synthetic_stars_desi, CLV_MIN(count, (size_t)MOST_MADE),
                                        SEED, false, &s));
    clv_status status = CLV_OK;
    if (access(described, R_OK)) status = synthetic_stars_write_library(&s, library);
    if (!status) status = synthetic_stars_write_coadd(&s, count, coadd);
    synthetic_stars_clear(&s);
    return status;
}

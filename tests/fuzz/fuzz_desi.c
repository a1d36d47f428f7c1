/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a file of spectra, as redshifts of its own rows, and as tables to be copied. An input that
 * begins with '=' is a recipe, see fuzz_cook. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/fits_copy.h"
#include "host/io/tables/redrock.h"

#include <string.h>

static void touch(const clv_file_array *a)
{
    if (a->data) fuzz_touch(a->data, clv_file_array_bytes(a));
}

static void try_block(const clv_desi *d, bool resolution)
{
    clv_desi_block b;
    const size_t first = d->rows / 2, count = CLV_MIN(d->rows - first, (size_t)4);
    if (clv_desi_read(d, first, count, resolution, &b)) {
        FUZZ_CHECK(!b.count && !b.flux[0].data);
        return;
    }
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k) {
        touch(&b.flux[k]), touch(&b.ivar[k]), touch(&b.mask[k]), touch(&b.resolution[k]);
        if (!d->present[k] || !count) continue;
        FUZZ_CHECK(b.flux[k].shape[0] == count && b.flux[k].shape[1] == d->wavelength[k].shape[0]);
    }
    clv_desi_block_clear(&b);
}

static void try_copy(const char *path, const char *name)
{
    clv_fits_raw raw;
    bool found;
    if (clv_fits_raw_read(path, name, &raw, &found) || !found) {
        FUZZ_CHECK(!raw.bytes && !raw.cards.data);
        return;
    }
    char type;
    unsigned repeat;
    const size_t rows[] = { 0, raw.rows ? raw.rows - 1 : 0 };
    clv_fits_table table = { 0 };
    (void)clv_fits_raw_column(&raw, "TARGETID", &type, &repeat);
    clv_fits_table_primary(&table, NULL, 0);
    clv_fits_raw_write(&raw, name, rows, raw.rows ? 2 : 0, &table);
    clv_fits_table_finish(&table);
    FUZZ_CHECK(fuzz_poor || !table.bytes.failed);
    FUZZ_CHECK(table.bytes.failed || table.bytes.length % 2880 == 0);
    clv_fits_table_clear(&table), clv_fits_raw_clear(&raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = { "TILEID", "EXPID" };
    if (size && *data == '=') data = fuzz_cook(data + 1, size - 1, &size);
    const char *path = fuzz_file(data, size);
    clv_desi d;
    clv_fits_raw primary;
    if (clv_fits_raw_primary(path, keys, CLV_LEN(keys), &primary) == CLV_OK)
        clv_fits_raw_clear(&primary);
    try_copy(path, "FIBERMAP");
    if (clv_desi_open(path, &d)) {
        FUZZ_CHECK(!d.row && !d.path && !d.rows);
        return 0;
    }
    clv_redshift *redshifts;
    for (size_t i = 0; i < d.rows; ++i)
        FUZZ_CHECK(memchr(d.row[i].catalogue, '\0', sizeof d.row[i].catalogue));
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
        touch(&d.wavelength[k]);
    try_block(&d, false), try_block(&d, true);
    if (clv_redshifts_read(path, &d, &redshifts) == CLV_OK) {
        for (size_t i = 0; i < d.rows; ++i)
            FUZZ_CHECK(memchr(redshifts[i].type, '\0', CLV_REDSHIFT_CLASS));
        clv_free(redshifts);
    } else {
        FUZZ_CHECK(!redshifts);
    }
    clv_desi_clear(&d);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, library and coadds of tests/data/specfit. */
#include "spectra_files.h"

#include "data.h"
#include "test.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

clv_speclib golden_library;

/* rvspecfit leaves out the range of DESI's dichroic. */
static const double dichroic[] = { 4300, 4450 };
const clv_specfit_options golden_options = { .size = sizeof golden_options,
                                             .ignored = dichroic,
                                             .ignored_count = 1 };

int golden_begin(void **state)
{
    (void)state;
    EXPECT_OK(clv_speclib_read(test_data("specfit/lib"), &golden_library));
    return 0;
}

int golden_end(void **state)
{
    (void)state;
    clv_speclib_clear(&golden_library);
    return 0;
}

clv_file_array golden_load(const char *format, ...)
{
    char name[128];
    clv_file_array a;
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    EXPECT_OK(clv_npy_read(test_data("specfit/%s.npy", name), &a));
    if (a.type == CLV_F32) EXPECT_OK(clv_file_array_convert(&a, name, CLV_F64));
    return a;
}

const double *golden_f64(const clv_file_array *a)
{
    assert_int_equal(a->type, CLV_F64);
    return a->data;
}

/* Largest |got - want| / (|want| + 1e-3 max |want|). */
void golden_close(const char *what, const double *want, const double *got, size_t n, double limit)
{
    double most = 0, worst = 0;
    for (size_t i = 0; i < n; ++i)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < n; ++i) {
        const double off = fabs(got[i] - want[i]) / (fabs(want[i]) + 1e-3 * most);
        worst = off > worst || isnan(off) ? off : worst;
    }
    print_message("%s: %.1e of %.0e\n", what, worst, limit);
    assert_true(worst <= limit);
}

golden_coadd golden_open(const char *tag, bool with_resolution)
{
    golden_coadd c = { 0 };
    EXPECT_OK(clv_desi_open(test_data("specfit/data/coadd-synth-%s.fits.gz", tag), &c.desi));
    EXPECT_OK(clv_desi_read(&c.desi, 0, c.desi.rows, with_resolution, &c.block));
    c.items = clv_zalloc(c.desi.rows * 3, sizeof *c.items);
    c.row = clv_zalloc(c.desi.rows, sizeof *c.row);
    for (size_t i = 0; i < c.desi.rows; ++i) {
        if (!c.desi.row[i].is_star) continue;
        for (size_t k = 0; k < 3; ++k) {
            const char name[] = { 'd', 'e', 's', 'i', '_', "brz"[k], '\0' };
            const size_t n = c.desi.wavelength[k].shape[0];
            clv_spectrum *s = &c.items[c.stars.count * 3 + k];
            *s = (clv_spectrum){ .arm = clv_speclib_arm(&golden_library, name),
                                 .pixels = n,
                                 .wavelength = c.desi.wavelength[k].data,
                                 .flux = (float *)c.block.flux[k].data + i * n,
                                 .ivar = (float *)c.block.ivar[k].data + i * n,
                                 .mask = (int32_t *)c.block.mask[k].data + i * n };
            if (!with_resolution) continue;
            s->diagonals = c.block.resolution[k].shape[1];
            s->resolution = (float *)c.block.resolution[k].data + i * n * s->diagonals;
        }
        c.row[c.stars.count++] = i;
    }
    c.stars.size = sizeof c.stars, c.stars.spectra = 3, c.stars.items = c.items;
    return c;
}

void golden_close_coadd(golden_coadd *c)
{
    clv_desi_block_clear(&c->block), clv_desi_clear(&c->desi);
    clv_free(c->items), clv_free(c->row);
}

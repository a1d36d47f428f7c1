/* SPDX-License-Identifier: Apache-2.0 */
/* The goldens of spectral fitting: tests/data/specfit. */
#ifndef CLEAVE_TESTS_SPECTRA_FILES_H
#define CLEAVE_TESTS_SPECTRA_FILES_H

#include "host/io/tables/desi.h"
#include "host/io/tables/speclib.h"
#include "host/spectra/spectra_plan.h"

extern const clv_specfit_options golden_options; /* as the goldens were made */
extern clv_speclib golden_library;               /* the small one */

/* Around the tests of a group: read the library, and forget it. */
int golden_begin(void **state);
int golden_end(void **state);

/* stages/... as float64; the name is a format. */
clv_file_array golden_load(const char *format, ...);
const double *golden_f64(const clv_file_array *array);

/* Largest |got - want| / (|want| + 1e-3 max |want|), printed, is at most `limit`. */
void golden_close(const char *what, const double *want, const double *got, size_t n, double limit);

/* The stars of a coadd, with the spectra of all three arms. */
typedef struct golden_coadd {
    clv_desi desi;
    clv_desi_block block;
    clv_spectrum *items;
    clv_spectra_stars stars;
    size_t *row;
} golden_coadd;

golden_coadd golden_open(const char *tag, bool with_resolution);
void golden_close_coadd(golden_coadd *coadd);

#endif

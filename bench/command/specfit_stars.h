/* SPDX-License-Identifier: Apache-2.0 */
/* The stars that `cleave bench specfit` fits: synthetic, or from the user's files. */
#ifndef CLEAVE_BENCH_COMMAND_SPECFIT_STARS_H
#define CLEAVE_BENCH_COMMAND_SPECFIT_STARS_H

#include "bench/command/bench.h"

#include <cleave/spectra.h>

typedef struct bench_stars {
    clv_spectra_library library;
    clv_spectra_stars stars;
} bench_stars;

/* Opens the files of --library and --coadd; if both are NULL, stars are synthetic. Returns CLV_E_ARGUMENT (one without
 * the other), or the errors of reading files. */
clv_status bench_stars_open(const char *library, const char *coadd);
/* Returns how many stars the files have, at most 64; 0 without files. */
size_t bench_stars_given(void);

/* Provides the first `count` stars. If the user's files have fewer stars, the stars repeat. All stars stay valid
 * until a later call asks for more. */
clv_status bench_stars_get(size_t count, bench_stars *out);

/* Writes coadd.fits of a case with `count` stars, and the library, which all cases share, beside the cases. The
 * user's files are linked instead. */
clv_status bench_stars_write(size_t count, const char *folder, const char *library);

#endif

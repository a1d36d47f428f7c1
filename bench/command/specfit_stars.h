/* SPDX-License-Identifier: Apache-2.0 */
/* The stars that `cleave bench specfit` fits: made up, or from the files that were given. */
#ifndef CLEAVE_BENCH_COMMAND_SPECFIT_STARS_H
#define CLEAVE_BENCH_COMMAND_SPECFIT_STARS_H

#include "bench/command/bench.h"

#include <cleave/spectra.h>

typedef struct bench_stars {
    clv_spectra_library library;
    clv_spectra_stars stars;
} bench_stars;

/* Takes the files of --library and --coadd; both NULL: stars are made up. CLV_E_ARGUMENT (one without the
 * other), and what reading files may give. */
clv_status bench_stars_open(const char *library, const char *coadd);
/* How many stars these have, at most 64; 0: none were given. */
size_t bench_stars_given(void);

/* The first `count` stars; those that there are, again and again. Made once a process, and never
 * freed. */
clv_status bench_stars_get(size_t count, bench_stars *out);

/* coadd.fits of a case with `count` stars, and the library beside the cases: it is the same for all.
 * Files that were given are linked to. */
clv_status bench_stars_write(size_t count, const char *folder, const char *library);

#endif

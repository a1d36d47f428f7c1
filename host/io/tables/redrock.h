/* SPDX-License-Identifier: Apache-2.0 */
/* Redshifts and classes of spectra, as redrock writes them. */
#ifndef CLEAVE_HOST_IO_TABLES_REDROCK_H
#define CLEAVE_HOST_IO_TABLES_REDROCK_H

#include "host/io/tables/desi.h"

enum { CLV_REDSHIFT_CLASS = 32 };

typedef struct clv_redshift {
    double z; /* NaN: the file does not know the spectrum */
    char type[CLV_REDSHIFT_CLASS], subtype[CLV_REDSHIFT_CLASS];
    bool is_star; /* of type STAR, or slower than 1500 km/s */
} clv_redshift;

/* The table REDSHIFTS (or ZBEST, as it once was called) for the rows of `desi`: row by row where both
 * have the same targets, else by TARGETID. `out` [desi->rows], freed with clv_free. CLV_E_IO;
 * CLV_E_FORMAT (no such table, no TARGETID, Z, SPECTYPE); CLV_E_MEMORY. */
clv_status clv_redshifts_read(const char *path, const clv_desi *desi, clv_redshift **out);

/* The file that lies beside `spectra`: redrock-X or zbest-X for coadd-X or spectra-X, perhaps with
 * .gz; NULL when there is none. Freed with clv_free. */
char *clv_redshifts_beside(const char *spectra);

#endif

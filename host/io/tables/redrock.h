/* SPDX-License-Identifier: Apache-2.0 */
/* Reads redshifts and classes of spectra, as redrock writes them. */
#ifndef CLEAVE_HOST_IO_TABLES_REDROCK_H
#define CLEAVE_HOST_IO_TABLES_REDROCK_H

#include "host/io/tables/desi.h"

enum { CLV_REDSHIFT_CLASS = 32 };

typedef struct clv_redshift {
    double z; /* NaN: the file does not list the spectrum */
    char type[CLV_REDSHIFT_CLASS], subtype[CLV_REDSHIFT_CLASS];
    bool is_star; /* of type STAR, or slower than 1500 km/s */
} clv_redshift;

/* Reads the table REDSHIFTS (or ZBEST, its former name) for the rows of `desi`: row by row if both have the same
 * targets, else by TARGETID. `out` [desi->rows] is freed with clv_free. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (no such
 * table, no TARGETID, Z, SPECTYPE); CLV_E_MEMORY. */
clv_status clv_redshifts_read(const char *path, const clv_desi *desi, clv_redshift **out);

/* Returns the file next to `spectra`: redrock-X or zbest-X for coadd-X or spectra-X, perhaps with .gz; NULL if there is
 * none. Free it with clv_free. */
char *clv_redshifts_beside(const char *spectra);

#endif

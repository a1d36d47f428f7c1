/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the redshifts and classes of spectra that redrock writes. */
#ifndef CLEAVE_HOST_IO_TABLES_REDROCK_H
#define CLEAVE_HOST_IO_TABLES_REDROCK_H

#include "host/io/tables/desi.h"

enum { CLV_REDSHIFT_CLASS = 32 };

typedef struct clv_redshift {
    double z; /* redshift; NaN: the file does not list the spectrum */
    char type[CLV_REDSHIFT_CLASS], subtype[CLV_REDSHIFT_CLASS];
    bool is_star; /* the type is STAR, or the velocity is below 1500 km/s */
} clv_redshift;

/* Reads the table REDSHIFTS (formerly ZBEST) for the rows of `desi`: row by row if both list the same targets in the
 * same order, else by TARGETID. Free *out [desi->rows] with clv_free. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (no such
 * table, or no TARGETID, Z or SPECTYPE); CLV_E_MEMORY. */
clv_status clv_redshifts_read(const char *path, const clv_desi *desi, clv_redshift **out);

/* Returns the path of the redrock file next to `spectra`: redrock-X or zbest-X for coadd-X or spectra-X, perhaps with
 * .gz; NULL if there is none. Free it with clv_free. */
char *clv_redshifts_beside(const char *spectra);

#endif

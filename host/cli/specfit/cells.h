/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the rows of the table of `cleave specfit`. */
#ifndef CLEAVE_HOST_CLI_SPECFIT_CELLS_H
#define CLEAVE_HOST_CLI_SPECFIT_CELLS_H

#include "host/cli/specfit/files.h"

#include "host/io/formats/fits.h"

enum { SPECFIT_MAX_CELLS = 96, SPECFIT_COMMENT = 69 /* a card holds 68 characters */ };

/* The input's tables that are copied to the output, with their rows unchanged. */
typedef struct specfit_copies {
    clv_fits_raw primary, fibermap, scores, exposures;
    bool has_fibermap, has_scores, has_exposures;
} specfit_copies;

/* The cells of one row of the table, as numbers and texts. */
typedef struct specfit_cells {
    clv_fits_column column[SPECFIT_MAX_CELLS];
    clv_fits_value value[SPECFIT_MAX_CELLS];
    size_t count;
    const specfit_copies *from; /* copied columns keep their type */
    unsigned type_width, subtype_width, file_width;
    char held[CLV_SPECTRA_UNKNOWNS][SPECFIT_COMMENT]; /* comments of the errors of each unknown */
    char covariance[SPECFIT_COMMENT];
} specfit_cells;

/* Finds the table's columns and their widths. */
void specfit_begin_row(const specfit_table *table, const specfit_copies *from,
                       specfit_cells *cells);
/* Makes the cells of a star. */
void specfit_make_row(const specfit_table *table, const specfit_row *row, specfit_cells *cells);
/* Makes a row that defines the columns of a table without rows. */
void specfit_make_empty_row(const specfit_table *table, specfit_cells *cells);

#endif

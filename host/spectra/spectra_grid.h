/* SPDX-License-Identifier: Apache-2.0 */
/* Templates from a regular grid of parameters: ln flux, linear in each of them. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_GRID_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_GRID_H

#include "cl/spectra/shared.clh"

#include <cleave/spectra.h>

#include <stdbool.h>

static inline bool clv_is_grid(const clv_spectra_arm *arm)
{
    return arm->nodes[0] > 0;
}

/* Axes that rise, rows that are there, nodes within 2^24. CLV_E_ARGUMENT, CLV_E_SHAPE. */
clv_status clv_grid_check(const clv_spectra_arm *arm);

/* Rows and weights for the parameters q (log10 teff, logg, feh, alpha) in the cell that holds `cell`,
 * linear beyond its faces too; where there is no such cell, or a corner of it is missing, the node
 * nearest to `cell` alone, distances in units of the axes' lengths. Returns that distance, else 0. */
double clv_grid_corners(const clv_spectra_arm *arm, const double cell[4], const double q[4],
                        size_t rows[CLV_GRID_CORNERS], double weights[CLV_GRID_CORNERS]);
/* exp of the interpolated ln flux, `out` [arm->points]; parameters with teff in K. The distance. */
double clv_grid_template(const clv_spectra_arm *arm, const double cell[4],
                         const double parameters[4], double *out);
/* The distance alone. */
double clv_grid_outside(const clv_spectra_arm *arm, const double parameters[4]);

#define CLV_GRID_START_ALPHA 0.2 /* the first that fits try */

/* Where a fit begins that starts from template `start`. A fit cannot improve anything in a cell of the grid that lacks
 * a corner. Where the template's own parameters, with the alpha that fits try first, lie in such a cell, the start
 * moves a little below them along some axes, if a whole cell is there; otherwise it tries the same with the template's
 * alpha; otherwise it moves to the nearest whole cell. True: fits begin with the alpha in `parameters`; false: with
 * theirs. */
bool clv_grid_start(const clv_spectra_library *library, size_t start, double parameters[4]);

/* What cl/spectra/grid.cl looks up: for each axis nodes and 1 / steps (the last: 1 / length), axis 0
 * as teff and in ln; then the row of every node, negative where there is none. */
size_t clv_grid_table_size(const clv_spectra_arm *arm);
void clv_grid_table_fill(const clv_spectra_arm *arm, float *table);

#endif

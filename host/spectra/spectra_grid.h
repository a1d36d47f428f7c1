/* SPDX-License-Identifier: Apache-2.0 */
/* Templates from a regular grid of parameters: ln flux, interpolated linearly in each of them. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_GRID_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_GRID_H

#include "cl/spectra/shared.clh"

#include <cleave/spectra.h>

#include <stdbool.h>

static inline bool clv_is_grid(const clv_spectra_arm *arm)
{
    return arm->nodes[0] > 0;
}

/* Checks that the axes rise, that all rows exist, and that there are fewer than 2^24 nodes. Returns CLV_OK,
 * CLV_E_ARGUMENT or CLV_E_SHAPE. */
clv_status clv_grid_check(const clv_spectra_arm *arm);

/* Finds rows and weights for the parameters q (log10 teff, logg, feh, alpha) in the cell that holds `cell`; the
 * interpolation continues linearly beyond the cell's faces. If there is no such cell, or one of its corners is missing,
 * uses only the node nearest to `cell`, with distances in units of the axes' lengths. Returns that distance, else 0. */
double clv_grid_corners(const clv_spectra_arm *arm, const double cell[4], const double q[4],
                        size_t rows[CLV_GRID_CORNERS], double weights[CLV_GRID_CORNERS]);
/* Computes exp of the interpolated ln flux, `out` [arm->points]; the parameters have teff in K. Returns the
 * distance. */
double clv_grid_template(const clv_spectra_arm *arm, const double cell[4],
                         const double parameters[4], double *out);
/* Returns only the distance. */
double clv_grid_outside(const clv_spectra_arm *arm, const double parameters[4]);

/* Raises `low` and lowers `high` to the first cells that lack a corner along each axis, from the cell that contains the
 * parameters. Fits treat them as limits, so that they move along the faces of such cells. Does nothing if the cell
 * itself lacks a corner. */
void clv_grid_walls(const clv_spectra_arm *arm, const double parameters[4], double low[4],
                    double high[4]);

/* Raises `low` and lowers `high` to the faces of the cell that contains the parameters. Does nothing if it lacks a
 * corner. */
void clv_grid_cell(const clv_spectra_arm *arm, const double parameters[4], double low[4],
                   double high[4]);

#define CLV_GRID_START_ALPHA 0.2 /* the alpha that fits try first */

/* Finds where a fit begins that starts from template `start`. In a cell that lacks a corner a fit cannot improve
 * anything. If the template's own parameters, with the alpha that fits try first, lie in such a cell, the start moves
 * slightly below them along some axes, if that leads to a whole cell. Otherwise it tries the same with the template's
 * alpha; otherwise it moves to the nearest whole cell. Returns true if fits must begin with the alpha in `parameters`,
 * false if they use their own. */
bool clv_grid_start(const clv_spectra_library *library, size_t start, double parameters[4]);

/* Moves parameters (teff in K) that lie in a cell that lacks a corner into the nearest whole cell. Does nothing if the
 * library has no grid, or if no cell is whole. */
void clv_grid_enter(const clv_spectra_library *library, double parameters[4]);

/* Moves parameters along one axis, up or down, just into the next cell that is whole. Returns false if there is
 * none. */
bool clv_grid_walk(const clv_spectra_library *library, int axis, bool up, double parameters[4]);

/* The table that cl/spectra/grid.cl reads: for each axis the nodes and 1 / steps (last element: 1 / length), axis 0 as
 * teff and its steps in ln; then the row of every node, negative where there is none. */
size_t clv_grid_table_size(const clv_spectra_arm *arm);
void clv_grid_table_fill(const clv_spectra_arm *arm, float *table);

#endif

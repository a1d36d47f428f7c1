/* SPDX-License-Identifier: Apache-2.0 */
/* Makes templates from a regular grid of parameters: ln flux is interpolated linearly in each parameter. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_GRID_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_GRID_H

#include "cl/spectra/shared.clh"

#include <cleave/spectra.h>

#include <stdbool.h>

static inline bool clv_is_grid(const clv_spectra_arm *arm)
{
    return arm->nodes[0] > 0;
}

/* Checks that the values on each axis of the arm's grid rise, that the rows of all nodes exist, and that there are
 * fewer than 2^24 nodes. Returns CLV_OK, CLV_E_ARGUMENT or CLV_E_SHAPE. */
clv_status clv_grid_check(const clv_spectra_arm *arm);

/* Finds the rows and weights that interpolate at the parameters q (log10 teff, logg, feh, alpha) in the cell that
 * contains the point `cell`; the interpolation continues linearly beyond the faces. If there is no such cell, or if it
 * lacks a corner, uses only the node nearest to `cell` and returns the distance of that node, in units of the axes'
 * lengths. Otherwise returns 0. */
double clv_grid_corners(const clv_spectra_arm *arm, const double cell[4], const double q[4],
                        size_t rows[CLV_GRID_CORNERS], double weights[CLV_GRID_CORNERS]);
/* Writes exp of the interpolated ln flux to `out` [arm->points]; the parameters have teff in K. Returns the distance of
 * the node that clv_grid_corners uses alone, or 0. */
double clv_grid_template(const clv_spectra_arm *arm, const double cell[4],
                         const double parameters[4], double *out);
/* Returns the distance that clv_grid_template returns, without making the template. */
double clv_grid_outside(const clv_spectra_arm *arm, const double parameters[4]);

/* Raises `low` and lowers `high` so that, along each axis from the cell that contains the parameters, they end at the
 * first cell that lacks a corner. Fits treat `low` and `high` as limits and thus move along the faces of such cells.
 * Does nothing if the cell that contains the parameters lacks a corner. */
void clv_grid_walls(const clv_spectra_arm *arm, const double parameters[4], double low[4],
                    double high[4]);

/* Raises `low` and lowers `high` to the faces of the cell that contains the parameters. Does nothing if this cell lacks
 * a corner. */
void clv_grid_cell(const clv_spectra_arm *arm, const double parameters[4], double low[4],
                   double high[4]);

#define CLV_GRID_START_ALPHA 0.2 /* the alpha that fits try first */

/* Finds the parameters at which a fit from start template `start` begins. They must lie in a whole cell (one that has
 * all its corners), because a fit cannot move in any other. The function tries in turn: the template's parameters with
 * the alpha that fits try first; slightly lower values of these along some axes; the same two with the template's own
 * alpha; and the nearest whole cell. Returns true if the fit must begin with the alpha in `parameters`, false if it
 * chooses alpha itself. */
bool clv_grid_start(const clv_spectra_library *library, size_t start, double parameters[4]);

/* Moves parameters (teff in K) that lie in a cell that lacks a corner into the nearest cell that has all its corners.
 * Does nothing if the library has no grid, or if no cell has all its corners. */
void clv_grid_enter(const clv_spectra_library *library, double parameters[4]);

/* Moves parameters along one axis, up or down, just into the next cell that has all its corners. Returns false if there
 * is no such cell. */
bool clv_grid_walk(const clv_spectra_library *library, int axis, bool up, double parameters[4]);

/* Returns the size of the table that cl/spectra/grid.cl reads. The table holds for each axis the nodes and 1 / step for
 * each step (last element: 1 / length); axis 0 has nodes in teff but steps in ln teff. After the axes follows the row
 * of every node, negative where the grid has no node. */
size_t clv_grid_table_size(const clv_spectra_arm *arm);
void clv_grid_table_fill(const clv_spectra_arm *arm, float *table);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Interpolates templates in a regular grid of parameters, in float64, and finds the grid's cells around a point. */
#include "host/spectra/spectra_grid.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { AXES = CLV_SPECTRA_PARAMETERS, MOST = 1 << 24 };

/* A float32 holds nodes within these limits (axis 0: 10 to the power of the node), and 1 / their steps. */
static const double largest = 1e30, largest_log = 30, least_step = 1e-30;

static size_t all_nodes(const clv_spectra_arm *a)
{
    return a->nodes[0] * a->nodes[1] * a->nodes[2] * a->nodes[3];
}

clv_status clv_grid_check(const clv_spectra_arm *a)
{
    size_t count = 1, there = 0;
    const char *name = a->name ? a->name : "?";
    for (int k = 0; k < AXES; ++k) {
        if (a->nodes[k] < 2 || a->nodes[k] > MOST / count || !a->axis[k])
            return clv_fail(CLV_E_SHAPE,
                            "specfit: arm %s: axis %d of its grid has %zu nodes; expected at least "
                            "2, and less than 2^24 in all",
                            name, k, a->nodes[k]);
        for (size_t i = 0; i < a->nodes[k]; ++i)
            if (!(fabs(a->axis[k][i]) <= (k ? largest : largest_log)) ||
                (i && !(a->axis[k][i] - a->axis[k][i - 1] >= least_step)))
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: arm %s: axis %d has the value %g at node %zu; expected "
                                "values within +-%g that rise from node to node, by %g at least",
                                name, k, a->axis[k][i], i, k ? largest : largest_log, least_step);
        count *= a->nodes[k];
    }
    if (!a->grid || !a->grid_log_flux || !a->grid_spectra || a->grid_spectra > MOST)
        return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s: its grid has no spectra", name);
    for (size_t i = 0; i < count; ++i) {
        if (a->grid[i] >= 0 && (size_t)a->grid[i] >= a->grid_spectra)
            return clv_fail(CLV_E_SHAPE,
                            "specfit: arm %s: node %zu names spectrum %d, but there are %zu", name,
                            i, (int)a->grid[i], a->grid_spectra);
        there += a->grid[i] >= 0;
    }
    return there ? CLV_OK
                 : clv_fail(CLV_E_ARGUMENT, "specfit: arm %s: its grid has no nodes", name);
}

static size_t node_of(const clv_spectra_arm *a, const size_t at[AXES])
{
    return ((at[0] * a->nodes[1] + at[1]) * a->nodes[2] + at[2]) * a->nodes[3] + at[3];
}

/* Finds the row of the node nearest to q; returns the distance between that node and q. */
static double nearest(const clv_spectra_arm *a, const double q[AXES], size_t *row)
{
    double best = INFINITY, length[AXES];
    size_t at[AXES];
    for (int k = 0; k < AXES; ++k)
        length[k] = a->axis[k][a->nodes[k] - 1] - a->axis[k][0];
    *row = SIZE_MAX;
    for (size_t i = 0, n = all_nodes(a); i < n; ++i) {
        if (a->grid[i] < 0) continue;
        double d = 0;
        size_t rest = i;
        for (int k = AXES; k-- > 0; rest /= a->nodes[k])
            at[k] = rest % a->nodes[k];
        for (int k = 0; k < AXES; ++k) {
            const double x = (q[k] - a->axis[k][at[k]]) / length[k];
            d += x * x;
        }
        if (d < best || *row == SIZE_MAX) best = d, *row = (size_t)a->grid[i];
    }
    return sqrt(best);
}

/* Returns whether a cell has all of its corners. */
static bool has_corners(const clv_spectra_arm *a, const size_t at[AXES])
{
    for (size_t c = 0; c < CLV_GRID_CORNERS; ++c) {
        const size_t corner[AXES] = { at[0] + (c & 1), at[1] + (c >> 1 & 1), at[2] + (c >> 2 & 1),
                                      at[3] + (c >> 3 & 1) };
        if (a->grid[node_of(a, corner)] < 0) return false;
    }
    return true;
}

/* Returns how far x lies from the first node of a cell, in steps. */
static double steps_from(const clv_spectra_arm *a, int axis, size_t cell, double x)
{
    const double *u = a->axis[axis] + cell, far = (x - u[0]) / (u[1] - u[0]);
    return fabs(far - round(far)) * CLV_GRID_CLOSE < 1 ? round(far) : far;
}

/* Finds the cell that contains q; returns false if q lies outside the grid. A cell contains its faces: if q lies on
 * faces that several cells share, the function prefers a cell that has all of its corners. */
static bool find_cell(const clv_spectra_arm *a, const double q[AXES], size_t cell[AXES])
{
    size_t beside[AXES], at[AXES];
    for (int k = 0; k < AXES; ++k) {
        const double *u = a->axis[k];
        const size_t n = a->nodes[k];
        if (!(q[k] >= u[0] && q[k] <= u[n - 1])) return false;
        cell[k] = 0;
        while (cell[k] + 2 < n && q[k] >= u[cell[k] + 1])
            ++cell[k];
        const double far = steps_from(a, k, cell[k], q[k]);
        const bool below = far <= 0 && cell[k] > 0, above = far >= 1 && cell[k] + 2 < n;
        beside[k] = below ? cell[k] - 1 : above ? cell[k] + 1 : cell[k];
    }
    for (int side = 0; side < 1 << AXES; ++side) {
        for (int k = 0; k < AXES; ++k)
            at[k] = side >> k & 1 ? beside[k] : cell[k];
        if (!has_corners(a, at)) continue;
        memcpy(cell, at, sizeof at);
        break;
    }
    return true;
}

double clv_grid_corners(const clv_spectra_arm *a, const double cell[4], const double q[4],
                        size_t rows[CLV_GRID_CORNERS], double weights[CLV_GRID_CORNERS])
{
    size_t at[AXES];
    bool full = find_cell(a, cell, at);
    for (size_t c = 0; c < CLV_GRID_CORNERS && full; ++c) {
        const size_t corner[AXES] = { at[0] + (c & 1), at[1] + (c >> 1 & 1), at[2] + (c >> 2 & 1),
                                      at[3] + (c >> 3 & 1) };
        const int32_t row = a->grid[node_of(a, corner)];
        full = row >= 0;
        rows[c] = (size_t)row;
        weights[c] = 1;
        for (int k = 0; k < AXES; ++k) {
            const double x = steps_from(a, k, at[k], q[k]);
            weights[c] *= c >> k & 1 ? x : 1 - x;
        }
    }
    if (full) return 0;
    const double distance = nearest(a, cell, &rows[0]);
    for (size_t c = 0; c < CLV_GRID_CORNERS; ++c)
        rows[c] = rows[0], weights[c] = c == 0;
    return distance;
}

static void inputs_of(const double parameters[4], double q[4])
{
    q[0] = log10(parameters[0]);
    for (int k = 1; k < AXES; ++k)
        q[k] = parameters[k];
}

double clv_grid_template(const clv_spectra_arm *a, const double cell[4], const double parameters[4],
                         double *out)
{
    double q[AXES], home[AXES], weights[CLV_GRID_CORNERS];
    size_t rows[CLV_GRID_CORNERS];
    inputs_of(parameters, q), inputs_of(cell, home);
    const double distance = clv_grid_corners(a, home, q, rows, weights);
    for (size_t i = 0; i < a->points; ++i) {
        double sum = 0;
        for (size_t c = 0; c < CLV_GRID_CORNERS; ++c)
            sum += weights[c] * (double)a->grid_log_flux[rows[c] * a->points + i];
        out[i] = exp(fmin(fmax(sum, -300), 300));
    }
    return distance;
}

double clv_grid_outside(const clv_spectra_arm *a, const double parameters[4])
{
    double q[AXES], weights[CLV_GRID_CORNERS];
    size_t rows[CLV_GRID_CORNERS];
    inputs_of(parameters, q);
    return clv_grid_corners(a, q, q, rows, weights);
}

/* Returns whether the cell that contains q has all of its corners. */
static bool is_whole(const clv_spectra_arm *a, const double q[AXES])
{
    size_t at[AXES];
    return find_cell(a, q, at) && has_corners(a, at);
}

static double at_node(const clv_spectra_arm *a, int axis, size_t node)
{
    return axis ? a->axis[axis][node] : pow(10, a->axis[axis][node]);
}

void clv_grid_walls(const clv_spectra_arm *a, const double parameters[4], double low[4],
                    double high[4])
{
    double q[AXES];
    size_t cell[AXES], at[AXES];
    inputs_of(parameters, q);
    if (!find_cell(a, q, cell) || !has_corners(a, cell)) return;
    for (int k = 0; k < AXES; ++k) {
        memcpy(at, cell, sizeof at);
        while (at[k] > 0 && has_corners(a, at))
            --at[k];
        if (!has_corners(a, at)) low[k] = fmax(low[k], at_node(a, k, at[k] + 1));
        memcpy(at, cell, sizeof at);
        while (at[k] + 2 < a->nodes[k] && has_corners(a, at))
            ++at[k];
        if (!has_corners(a, at)) high[k] = fmin(high[k], at_node(a, k, at[k]));
    }
}

void clv_grid_cell(const clv_spectra_arm *a, const double parameters[4], double low[4],
                   double high[4])
{
    double q[AXES];
    size_t cell[AXES];
    inputs_of(parameters, q);
    if (!find_cell(a, q, cell) || !has_corners(a, cell)) return;
    for (int k = 0; k < AXES; ++k) {
        low[k] = fmax(low[k], at_node(a, k, cell[k]));
        high[k] = fmin(high[k], at_node(a, k, cell[k] + 1));
    }
}

/* Returns whether, in every grid of the library, the cell that contains q has all of its corners. */
static bool all_whole(const clv_spectra_library *library, const double q[AXES])
{
    for (size_t i = 0; i < library->arm_count; ++i)
        if (clv_is_grid(&library->arms[i]) && !is_whole(&library->arms[i], q)) return false;
    return true;
}

/* Finds the point that is nearest to q, measured in steps of the grid, and lies at least `part` of a step inside a cell
 * that has all of its corners. */
static bool nearest_whole(const clv_spectra_library *library, const clv_spectra_arm *a, double part,
                          const double q[AXES], double moved[AXES])
{
    double best = INFINITY;
    size_t at[AXES];
    for (at[0] = 0; at[0] + 1 < a->nodes[0]; ++at[0])
        for (at[1] = 0; at[1] + 1 < a->nodes[1]; ++at[1])
            for (at[2] = 0; at[2] + 1 < a->nodes[2]; ++at[2])
                for (at[3] = 0; at[3] + 1 < a->nodes[3]; ++at[3]) {
                    double inside[AXES], distance = 0;
                    for (int k = 0; k < AXES; ++k) {
                        const double *u = a->axis[k] + at[k], step = u[1] - u[0];
                        inside[k] = fmin(fmax(q[k], u[0] + part * step), u[1] - part * step);
                        distance += (inside[k] - q[k]) * (inside[k] - q[k]) / (step * step);
                    }
                    if (distance >= best || !all_whole(library, inside)) continue;
                    best = distance;
                    memcpy(moved, inside, sizeof inside);
                }
    return isfinite(best);
}

/* Returns the library's first arm that has a grid; NULL if none has. */
static const clv_spectra_arm *first_grid(const clv_spectra_library *library)
{
    for (size_t i = 0; i < library->arm_count; ++i)
        if (clv_is_grid(&library->arms[i])) return &library->arms[i];
    return NULL;
}

static const double part = 0.02; /* fits begin this part of a step inside a whole cell */

void clv_grid_enter(const clv_spectra_library *library, double parameters[4])
{
    const clv_spectra_arm *a = first_grid(library);
    double q[AXES], moved[AXES];
    inputs_of(parameters, q);
    if (!a || all_whole(library, q) || !nearest_whole(library, a, part, q, moved)) return;
    parameters[0] = pow(10, moved[0]);
    memcpy(parameters + 1, moved + 1, (AXES - 1) * sizeof *moved);
}

bool clv_grid_walk(const clv_spectra_library *library, int axis, bool up, double parameters[4])
{
    const clv_spectra_arm *a = first_grid(library);
    double q[AXES];
    size_t at[AXES];
    inputs_of(parameters, q);
    if (!a || !find_cell(a, q, at)) return false;
    const double *u = a->axis[axis];
    for (size_t n = at[axis]; up ? n + 2 < a->nodes[axis] : n > 0;) {
        n += up ? 1 : (size_t)-1;
        q[axis] = up ? u[n] + part * (u[n + 1] - u[n]) : u[n + 1] - part * (u[n + 1] - u[n]);
        if (!all_whole(library, q)) continue;
        parameters[axis] = axis ? q[axis] : pow(10, q[axis]);
        return true;
    }
    return false;
}

bool clv_grid_start(const clv_spectra_library *library, size_t start, double parameters[4])
{
    const double *given = library->ccf_parameters + AXES * start;
    const clv_spectra_arm *a = first_grid(library);
    for (int k = 0; k < AXES; ++k)
        parameters[k] = given[k];
    if (!a) return false;
    const double *alphas = a->axis[3], lowest = alphas[0], highest = alphas[a->nodes[3] - 1];
    for (int own = 0; own < 2; ++own)
        for (int side = 0; side < 1 << AXES; ++side) { /* bits: axes along which it moves down */
            double q[AXES], moved[AXES];
            size_t at[AXES];
            inputs_of(given, q);
            if (!own && side >> 3) continue; /* alpha is the one that fits try first: no move */
            if (!own) q[3] = fmin(fmax(CLV_GRID_START_ALPHA, lowest), highest);
            if (!find_cell(a, q, at)) continue;
            for (int k = 0; k < AXES; ++k) {
                const double *u = a->axis[k] + at[k];
                moved[k] = q[k] - (side >> k & 1 ? part * (u[1] - u[0]) : 0);
            }
            if (!all_whole(library, moved)) continue;
            if (side & 1) parameters[0] = pow(10, moved[0]);
            for (int k = 1; k < AXES; ++k)
                parameters[k] = moved[k];
            return own != 0;
        }
    double q[AXES], moved[AXES];
    inputs_of(given, q);
    if (!nearest_whole(library, a, part, q, moved)) return false;
    parameters[0] = pow(10, moved[0]);
    memcpy(parameters + 1, moved + 1, (AXES - 1) * sizeof *moved);
    return true;
}

size_t clv_grid_table_size(const clv_spectra_arm *a)
{
    return 2 * (a->nodes[0] + a->nodes[1] + a->nodes[2] + a->nodes[3]) + all_nodes(a);
}

void clv_grid_table_fill(const clv_spectra_arm *a, float *table)
{
    for (int k = 0; k < AXES; ++k) {
        const double *u = a->axis[k], scale = k ? 1 : log(10.0);
        const size_t n = a->nodes[k];
        for (size_t i = 0; i < n; ++i) {
            const double step = i + 1 < n ? u[i + 1] - u[i] : u[n - 1] - u[0];
            table[i] = (float)(k ? u[i] : pow(10, u[i]));
            table[n + i] = (float)(1 / (step * scale));
        }
        table += 2 * n;
    }
    for (size_t i = 0, n = all_nodes(a); i < n; ++i)
        table[i] = (float)a->grid[i];
}

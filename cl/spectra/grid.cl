/* cl/spectra/grid.cl -- templates from a regular grid of parameters.
 *
 * clv_spectra_corners: finds the cell of an item's point: the rows of the cell's 16 corners, and their weights
 *                      for the point and for the four neighbours that the differences need. The neighbours
 *                      stay in the same cell. If there is no such cell or a corner is missing, the kernel takes
 *                      the nearest node for all five points, and writes its distance to CLV_S_OUTSIDE. Otherwise
 *                      it sets the walls CLV_S_WALL_TRY: along each axis, the nearest cells that lack a corner; and the
 *                      faces CLV_S_FACE_TRY, which are those of the cell. Launch x: items; local (WG, 1).
 * clv_spectra_blend:   computes exp(shift + sum over corners of weight * ln flux) as template lanes
 *                      [item][points][8]. Launch x: items, y: LANES neighbouring points.
 * The table of an arm has for each axis its nodes and 1 / steps (instead of the last step: 1 / the axis' length);
 * axis 0 holds teff, with steps in ln teff. Then comes the row of every node, negative if the node is missing.
 * Defines  LANES 16 (CPUs), 1 (GPUs); WG. */
#include "common/lanes.clh"
#include "common/loose.clh"
#include "spectra/spectra.clh"

#define ROWS CLV_SPECTRA_NETWORK_ROWS

/* Returns the distance of x from a node of an axis, in steps (times `inverse`). */
static float from_node(int axis, float x, float node, float inverse)
{
    return (axis ? x - node : log(x / node)) * inverse;
}

/* Returns the same distance, rounded to a whole number if x lies on a face of the cell that begins at the node. */
static float on_faces(int axis, float x, float node, float inverse)
{
    const float far = from_node(axis, x, node, inverse), whole = rint(far);
    return fabs(far - whole) * CLV_GRID_CLOSE < 1.0f ? whole : far;
}

/* Returns the distance of the node nearest to q, and the node's row in *row. Loops over the axes from the outermost
 * one, so that it can skip most nodes. */
static float nearest(__global const float *table, const int *nodes, __global const float *rows,
                     const float *q, int *row)
{
    __global const float *axis[4];
    float best = INFINITY;
    int at[4];
    for (int k = 0; k < 4; ++k) {
        axis[k] = table;
        table += 2 * nodes[k];
    }
    *row = 0;
    for (at[0] = 0; at[0] < nodes[0]; ++at[0]) {
        const float d0 = from_node(0, q[0], axis[0][at[0]], axis[0][2 * nodes[0] - 1]);
        if (!(d0 * d0 < best)) continue;
        for (at[1] = 0; at[1] < nodes[1]; ++at[1]) {
            const float d1 = from_node(1, q[1], axis[1][at[1]], axis[1][2 * nodes[1] - 1]);
            const float s1 = fma(d1, d1, d0 * d0);
            if (!(s1 < best)) continue;
            for (at[2] = 0; at[2] < nodes[2]; ++at[2]) {
                const float d2 = from_node(2, q[2], axis[2][at[2]], axis[2][2 * nodes[2] - 1]);
                const float s2 = fma(d2, d2, s1);
                if (!(s2 < best)) continue;
                for (at[3] = 0; at[3] < nodes[3]; ++at[3]) {
                    const float d3 = from_node(3, q[3], axis[3][at[3]], axis[3][2 * nodes[3] - 1]);
                    const float s3 = fma(d3, d3, s2);
                    const float here =
                        rows[((at[0] * nodes[1] + at[1]) * nodes[2] + at[2]) * nodes[3] + at[3]];
                    if (here >= 0.0f && s3 < best) best = s3, *row = (int)here;
                }
            }
        }
    }
    return sqrt(best);
}

/* Returns the row of corner c of a cell; negative if the node is missing. */
static float row_of(__global const float *rows, const int *nodes, const int *cell, int c)
{
    return rows[(((cell[0] + (c & 1)) * nodes[1] + cell[1] + (c >> 1 & 1)) * nodes[2] + cell[2] + (c >> 2 & 1)) *
                    nodes[3] + cell[3] + (c >> 3 & 1)];
}

static int has_corners(__global const float *rows, const int *nodes, const int *cell)
{
    int full = 1;
    for (int c = 0; c < CLV_GRID_CORNERS && full; ++c)
        full = row_of(rows, nodes, cell, c) >= 0.0f;
    return full;
}

/* Of the cells that share the faces on which a point lies, chooses one that has all of its corners, preferably the cell
 * in `cell`. `beside` holds the other cell along each axis. Returns whether there is such a cell. */
static int choose_cell(__global const float *rows, const int *nodes, const int *beside, int *cell)
{
    for (int side = 0; side < CLV_GRID_CORNERS; ++side) {
        int at[4];
        for (int k = 0; k < 4; ++k)
            at[k] = side >> k & 1 ? beside[k] : cell[k];
        if (!has_corners(rows, nodes, at)) continue;
        for (int k = 0; k < 4; ++k)
            cell[k] = at[k];
        return 1;
    }
    return 0;
}

/* Moves the walls of a point inwards to the first cells along each axis that lack a corner. */
static void find_walls(__global const float *axis, __global const float *rows, const int *nodes, const int *cell,
                       __global const float *box, __global float *wall)
{
    for (int k = 0; k < 4; ++k) {
        for (int side = 0; side < 2; ++side) {
            const int by = side ? 1 : -1;
            int at[4] = { cell[0], cell[1], cell[2], cell[3] }, full = 1;
            while (full) {
                at[k] += by;
                if (at[k] < 0 || at[k] + 1 >= nodes[k]) break;
                full = has_corners(rows, nodes, at);
            }
            if (full) continue;
            const float face = axis[at[k] + 1 - side];
            __global float *w = wall + 4 * side + k;
            *w = fmax(*w, side ? box[8 + k] - face : face - box[2 + k]);
        }
        axis += 2 * nodes[k];
    }
}

__kernel void clv_spectra_corners(__global float *restrict state, __global const int *restrict list,
                                  __global const float *restrict weights,
                                  __global float *restrict out, int width, uint table_at, int n0,
                                  int n1, int n2, int n3, int spectrum,
                                  __global const float *restrict box)
{
    const int item_at = (int)get_global_id(0);
    if (item_at >= list[0]) return;
    const int item = list[1 + item_at], nodes[4] = { n0, n1, n2, n3 };
    __global float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global float *o = out + (size_t)item * ROWS * width, *share = o + CLV_GRID_CORNERS;
    __global const float *table = weights + table_at, *rows = table + 2 * (n0 + n1 + n2 + n3);
    float q[4], low[4], inverse[4];
    int cell[4], beside[4], full = 1;
    __global const float *axis = table;
    for (int k = 0; k < 4; ++k) {
        q[k] = s[CLV_S_TRY + 2 + k];
        int i = 0;
        while (i + 2 < nodes[k] && q[k] >= axis[i + 1])
            ++i;
        full = full && q[k] >= axis[0] && q[k] <= axis[nodes[k] - 1];
        const float far = on_faces(k, q[k], axis[i], axis[nodes[k] + i]);
        cell[k] = i;
        beside[k] = far <= 0.0f && i > 0 ? i - 1 : far >= 1.0f && i + 2 < nodes[k] ? i + 1 : i;
        axis += 2 * nodes[k];
    }
    if (!full || !choose_cell(rows, nodes, beside, cell)) {
        int row;
        s[CLV_S_OUTSIDE + spectrum] = nearest(table, nodes, rows, q, &row);
        for (int c = 0; c < CLV_GRID_CORNERS; ++c) {
            o[c] = (float)row;
            for (int r = 0; r < ROWS; ++r)
                share[r * CLV_GRID_CORNERS + c] = c ? 0.0f : 1.0f;
        }
        return;
    }
    for (int c = 0; c < CLV_GRID_CORNERS; ++c)
        o[c] = row_of(rows, nodes, cell, c);
    s[CLV_S_OUTSIDE + spectrum] = 0.0f;
    find_walls(table, rows, nodes, cell, box, s + CLV_S_WALL_TRY);
    float x[4];
    __global float *face = s + CLV_S_FACE_TRY;
    axis = table;
    for (int k = 0; k < 4; ++k) {
        low[k] = axis[cell[k]], inverse[k] = axis[nodes[k] + cell[k]];
        x[k] = on_faces(k, q[k], low[k], inverse[k]);
        face[k] = fmax(face[k], low[k] - box[2 + k]);
        face[4 + k] = fmax(face[4 + k], box[8 + k] - axis[cell[k] + 1]);
        axis += 2 * nodes[k];
    }
    for (int r = 0; r < ROWS; ++r) {
        float y[4] = { x[0], x[1], x[2], x[3] };
        if (r) y[r - 1] = on_faces(r - 1, q[r - 1] + s[CLV_S_STEP + 1 + r], low[r - 1], inverse[r - 1]);
        for (int c = 0; c < CLV_GRID_CORNERS; ++c) {
            float w = 1.0f;
            for (int k = 0; k < 4; ++k)
                w *= c >> k & 1 ? y[k] : 1.0f - y[k];
            share[r * CLV_GRID_CORNERS + c] = w;
        }
    }
}

__kernel void clv_spectra_blend(__global const float *restrict in, __global float *restrict out,
                                __global const int *restrict list,
                                __global const float *restrict grid, ulong grid_at, int pitch,
                                int width, ulong points, float shift)
{
    const int at = (int)get_global_id(0), p = LANES * (int)get_global_id(1);
    if (at >= list[0] || p >= pitch) return;
    const int item = list[1 + at];
    __global const float *o = in + (size_t)item * ROWS * width, *share = o + CLV_GRID_CORNERS;
    __global const float *from = grid + grid_at + p;
    fvec s0 = shift, s1 = shift, s2 = shift, s3 = shift, s4 = shift;
    for (int c = 0; c < CLV_GRID_CORNERS; ++c) {
        const fvec f = lanes_load(from + (size_t)o[c] * pitch);
        s0 = fma(f, (fvec)(share[c]), s0);
        s1 = fma(f, (fvec)(share[CLV_GRID_CORNERS + c]), s1);
        s2 = fma(f, (fvec)(share[2 * CLV_GRID_CORNERS + c]), s2);
        s3 = fma(f, (fvec)(share[3 * CLV_GRID_CORNERS + c]), s3);
        s4 = fma(f, (fvec)(share[4 * CLV_GRID_CORNERS + c]), s4);
    }
    fvec sum[ROWS];
    sum[0] = exp(clamp(s0, -87.0f, 87.0f)), sum[1] = exp(clamp(s1, -87.0f, 87.0f));
    sum[2] = exp(clamp(s2, -87.0f, 87.0f)), sum[3] = exp(clamp(s3, -87.0f, 87.0f));
    sum[4] = exp(clamp(s4, -87.0f, 87.0f));
    const float *v = (const float *)sum;
    __global float *to = out + ((size_t)item * points + p) * 8;
    for (int k = 0; k < LANES; ++k)
        store8((float8)(v[k], v[k], v[LANES + k], v[2 * LANES + k], v[3 * LANES + k],
                         v[4 * LANES + k], 0.0f, 0.0f), k, to);
}

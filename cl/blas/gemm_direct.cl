/* blas/gemm_direct.cl -- C = act(alpha * A * B + bias) + beta * R from matrices that are not packed, for
 * small products on CPUs, where packing would cost a launch and more time than it saves.
 *
 * A work-item takes panels of MR rows of C, and computes two vectors of a panel's columns at a time. Rows of B are read
 * in whole vectors, except at the end of the matrix, where a whole vector would reach beyond its last element.
 *
 * Launch   3-D: global (shares of the panels, 1, batch), local (1, 1, 1).
 * Args     There are only a few, because each costs the driver as much time as a row of a small product. For A, B, C
 *          and R: the offset and batch stride, then the row and column stride. C's column stride is replaced by the
 *          offset of bias, and R's by whether there is a bias. Then come m, n, k and activation; alpha and beta.
 * Defines  LANES (16 or 8), MR rows of a tile, MORE: there is a bias or an R (else beta is 0).
 * Needs    OpenCL C 1.2.
 * Order    Every sum runs in ascending order of k by fma from 0, as in blas/gemm_rows.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define NV 2
#define NR (NV * LANES)
#define UNROLL _Pragma("unroll")

/* The place of a tile, and the values with which its sums are finished. */
typedef struct tile_t {
    __global const float *a;
    __global const float *b;
    ulong a_row, a_col, b_row, b_col;
    __global float *to;
    __global const float *bias, *add;
    ulong to_row, add_row;
    uint rows, columns, k;
    uint whole; /* terms whose whole vectors of B lie within the matrix */
    float alpha, beta;
    uint has_bias, act;
} tile_t;

static fvec some_floats(__global const float *from, uint lanes)
{
    float part[LANES];
    if (lanes >= LANES) return lanes_at(from);
    for (uint l = 0; l < LANES; ++l)
        part[l] = l < lanes ? from[l] : 0.0f;
    return lanes_load(part);
}

static fvec some_of_b(__global const float *from, ulong col, uint lanes)
{
    float part[LANES];
    if (col == 1 && lanes >= LANES) return lanes_at(from);
    for (uint l = 0; l < LANES; ++l)
        part[l] = l < lanes ? from[l * col] : 0.0f;
    return lanes_load(part);
}

static void finish(const float *sums, const tile_t *t)
{
    for (uint i = 0; i < t->rows; ++i)
        for (uint c = 0; c < t->columns; c += LANES) {
            const uint lanes = min(t->columns - c, (uint)LANES);
            __global float *to = t->to + i * t->to_row + c;
            float part[LANES];
            fvec x = lanes_load(sums + i * NR + c) * t->alpha;
            if (t->has_bias) x += some_floats(t->bias + c, lanes);
            if (t->act) x = activate(x, t->act);
            if (t->beta != 0.0f)
                x = fma((fvec)(t->beta), some_floats(t->add + i * t->add_row + c, lanes), x);
            if (lanes == LANES) {
                lanes_put(x, to);
                continue;
            }
            lanes_store(x, part);
            for (uint l = 0; l < lanes; ++l)
                to[l] = part[l];
        }
}

/* Adds one term to all sums of `V` vectors; rows of the tile beyond the last row of A repeat this row. */
#define TERM(V)                                                                 \
    UNROLL for (int i = 0; i < MR; ++i) {                                       \
        const fvec av = (fvec)(a[row[i]]);                                      \
        UNROLL for (int v = 0; v < V; ++v) acc[i][v] = fma(av, bv[v], acc[i][v]); \
    }

#define MULTIPLY(name, V)                                                                     \
    static void name(const tile_t *t)                                                         \
    {                                                                                         \
        __global const float *a = t->a;                                                       \
        __global const float *b = t->b;                                                         \
        const ulong a_col = t->a_col, b_row = t->b_row;                                       \
        ulong row[MR];                                                                        \
        fvec acc[MR][V], bv[V];                                                               \
        float sums[MR * NR];                                                                  \
        uint k = 0;                                                                           \
        UNROLL for (uint i = 0; i < MR; ++i) {                                                \
            row[i] = min(i, t->rows - 1) * t->a_row;                                          \
            UNROLL for (int v = 0; v < V; ++v) acc[i][v] = (fvec)(0.0f);                      \
        }                                                                                     \
        for (; k < t->whole; ++k, a += a_col, b += b_row) {                                   \
            UNROLL for (int v = 0; v < V; ++v) bv[v] = lanes_at(b + v * LANES);               \
            TERM(V)                                                                           \
        }                                                                                     \
        for (; k < t->k; ++k, a += a_col, b += b_row) {                                       \
            UNROLL for (int v = 0; v < V; ++v) bv[v] =                                        \
                some_of_b(b + v * LANES * t->b_col, t->b_col, max(t->columns, (uint)(v * LANES)) - v * LANES); \
            TERM(V)                                                                           \
        }                                                                                     \
        UNROLL for (int i = 0; i < MR; ++i)                                                   \
            UNROLL for (int v = 0; v < V; ++v) lanes_store(acc[i][v], sums + i * NR + v * LANES); \
        finish(sums, t);                                                                      \
    }
MULTIPLY(multiply_one, 1)
MULTIPLY(multiply_two, 2)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_gemm_direct(__global const float *restrict A, __global const float *restrict B,
                __global float *C, ulong2 a_first, ulong2 a_step, ulong2 b_first, ulong2 b_step,
                ulong2 c_first, ulong2 c_step, uint4 size, float2 factor
#if MORE
                , __global const float *bias, __global const float *R, ulong2 r_first, ulong2 r_step
#endif
)
{
    const ulong a_row = a_step.x, a_col = a_step.y, b_row = b_step.x, b_col = b_step.y;
    const ulong c_row = c_step.x, bias_offset = c_step.y;
    const uint m = size.x, n = size.y, k = size.z, act = size.w;
    const float alpha = factor.x, beta = factor.y;
#if MORE
    const ulong r_row = r_step.x;
    const uint has_bias = (uint)r_step.y;
    R += r_first.x + get_global_id(2) * r_first.y;
#else
    __global const float *const bias = C, *const R = C;
    const ulong r_row = 0;
    const uint has_bias = 0;
#endif
    const uint panels = (m + MR - 1) / MR, share = get_global_id(0), shares = get_global_size(0);
    const uint p0 = (uint)((ulong)panels * share / shares);
    const uint p1 = (uint)((ulong)panels * (share + 1) / shares);
    const size_t batch = get_global_id(2);
    const ulong b_floats = k ? (k - 1) * b_row + n : 0; /* if columns are neighbours */
    A += a_first.x + batch * a_first.y, B += b_first.x + batch * b_first.y;
    C += c_first.x + batch * c_first.y;
    for (uint p = p0; p < p1; ++p)
        for (uint j = 0; j < n; j += NR) {
            const ulong r = (ulong)p * MR;
            const uint columns = min(n - j, (uint)NR);
            const bool two = columns > LANES;
            const ulong reach = j + (two ? NR : LANES);
            tile_t t = { .a = A + r * a_row, .a_row = a_row, .a_col = a_col,
                         .b = B + j * b_col, .b_row = b_row, .b_col = b_col,
                         .to = C + r * c_row + j, .to_row = c_row,
                         .bias = bias + bias_offset + j, .has_bias = has_bias,
                         .add = R + r * r_row + j, .add_row = r_row,
                         .rows = min(m - p * MR, (uint)MR), .columns = columns, .k = k,
                         .alpha = alpha, .beta = beta, .act = act };
            if (b_col == 1 && k && reach <= b_floats)
                t.whole = b_row ? (uint)min((b_floats - reach) / b_row + 1, (ulong)k) : k;
            if (two)
                multiply_two(&t);
            else
                multiply_one(&t);
        }
}

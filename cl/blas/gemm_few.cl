/* blas/gemm_few.cl -- C = act(alpha * A * B + bias) + beta * R for a few rows of C, as fast as B can be read.
 *
 * A product with one row of A reads every element of B once and uses it once, so that memory bandwidth limits it, and
 * all of the device should read at the same time. Therefore the work-items of a group share the terms of a sum. If
 * there are too few columns to occupy the device, `splits` groups share a sum as well: they write their parts of the
 * sum to P, and clv_gemm_few_join adds these parts.
 *
 * clv_gemm_few:        is for B whose columns are neighbours in memory. A group has 64 columns; each of its four
 *                      quarters takes a quarter of the terms.
 * clv_gemm_few_turned: is for B whose terms are neighbours in memory (weights [n, k]). A group has COLUMNS columns, of
 *                      which work-item i takes the terms i, i + 64, ...
 * clv_gemm_few_join:   adds the parts of all splits, then finishes the sums.
 *
 * Launch   2-D: global (groups of columns * work-items, splits), local (256 or 64, 1); join: global (columns
 *          rounded up to 64, rows), local (64, 1).
 * Defines  LANES 1; MR rows: 1, 2, 4 or 8, of which m exist; B_HALF.
 * Needs    OpenCL C 1.2; local memory of MR * 4 * 64 floats, given as an argument.
 * Order    Each row has the same order of additions, whatever MR is: each work-item's terms in ascending order, then
 *          work-items in pairs, then splits in ascending order. The other kernels for products add in another order. */
#pragma OPENCL FP_CONTRACT OFF

#include "blas/shared.clh"
#include "common/functions.clh"

#define UNROLL _Pragma("unroll")
#if B_HALF
typedef half b_t;
#define AT_B(at) vload_half(0, at)
#else
typedef float b_t;
#define AT_B(at) (*(at))
#endif
#define COLUMNS CLV_FEW_COLUMNS
#define SIDE CLV_FEW_SIDE

/* The first term of split `s` of `splits`; it ends at FIRST_OF(s + 1). */
#define FIRST_OF(s) ((uint)((ulong)k * (s) / splits))

#define FEW_PARAMETERS                                                                                       \
    __global const float *restrict A, ulong a_offset, ulong a_row, ulong a_col, __global const b_t *restrict B, \
        ulong b_offset, ulong b_row, ulong b_col, __global float *C, ulong c_offset, ulong c_row,            \
        __global float *restrict P, __global const float *bias, ulong bias_offset, uint has_bias,            \
        __global const float *R, ulong r_offset, ulong r_row, uint m, uint n, uint k, float alpha,           \
        float beta, uint act, uint splits

static float finish(float x, uint r, uint c, __global const float *bias, uint has_bias,
                    __global const float *R, ulong r_row, float alpha, float beta, uint act)
{
    float y = x * alpha;
    if (has_bias) y += bias[c];
    y = activate(y, act);
    return beta != 0.0f ? fma(beta, R[r * r_row + c], y) : y;
}

/* Writes element (r, c) to C when its sum is complete, otherwise to P. */
#define PUT(x, r, c)                                                                                  \
    do {                                                                                              \
        if (splits > 1) P[((size_t)get_group_id(1) * m + (r)) * n + (c)] = (x);                       \
        else C[c_offset + (r) * c_row + (c)] = finish(x, r, c, bias + bias_offset, has_bias,          \
                                                      R + r_offset, r_row, alpha, beta, act);         \
    } while (0)

__kernel __attribute__((reqd_work_group_size(4 * SIDE, 1, 1))) void
clv_gemm_few(FEW_PARAMETERS, __local float *restrict sums)
{
    const uint id = get_local_id(0), side = id % SIDE, quarter = id / SIDE;
    const uint c = get_group_id(0) * SIDE + side;
    const uint first = FIRST_OF(get_group_id(1)), count = FIRST_OF(get_group_id(1) + 1) - first;
    const uint from = first + count * quarter / 4, to = first + count * (quarter + 1) / 4;
    __global const b_t *b = B + b_offset + min(c, n - 1) * b_col + from * b_row;
    __global const float *a = A + a_offset + from * a_col;
    float acc[MR];
    UNROLL for (int r = 0; r < MR; ++r) acc[r] = 0.0f;
    _Pragma("unroll 4") for (uint q = from; q < to; ++q, a += a_col, b += b_row) {
        const float x = AT_B(b);
        UNROLL for (int r = 0; r < MR; ++r) acc[r] = fma(a[min((uint)r, m - 1) * a_row], x, acc[r]);
    }
    UNROLL for (int r = 0; r < MR; ++r) sums[r * 4 * SIDE + id] = acc[r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = quarter; r < m; r += 4) {
        __local const float *part = sums + r * 4 * SIDE + side;
        const float x = (part[0] + part[SIDE]) + (part[2 * SIDE] + part[3 * SIDE]);
        if (c < n) PUT(x, r, c);
    }
}

__kernel __attribute__((reqd_work_group_size(SIDE, 1, 1))) void
clv_gemm_few_turned(FEW_PARAMETERS, __local float *restrict sums)
{
    const uint id = get_local_id(0), c0 = get_group_id(0) * COLUMNS;
    const uint first = FIRST_OF(get_group_id(1)), last = FIRST_OF(get_group_id(1) + 1);
    __global const b_t *b[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; ++c) b[c] = B + b_offset + min(c0 + c, n - 1) * b_col;
    float acc[MR][COLUMNS];
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int c = 0; c < COLUMNS; ++c) acc[r][c] = 0.0f;
    _Pragma("unroll 4") for (uint q = first + id; q < last; q += SIDE) {
        float x[COLUMNS];
        UNROLL for (int c = 0; c < COLUMNS; ++c) x[c] = AT_B(b[c] + q * b_row);
        UNROLL for (int r = 0; r < MR; ++r) {
            const float y = A[a_offset + min((uint)r, m - 1) * a_row + q * a_col];
            UNROLL for (int c = 0; c < COLUMNS; ++c) acc[r][c] = fma(y, x[c], acc[r][c]);
        }
    }
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int c = 0; c < COLUMNS; ++c) sums[(r * COLUMNS + c) * SIDE + id] = acc[r][c];
    for (uint apart = SIDE / 2; apart; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = id; e < m * COLUMNS * apart; e += SIDE) {
            const uint at = e / apart * SIDE + e % apart;
            sums[at] += sums[at + apart];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < m * COLUMNS) {
        const uint r = id / COLUMNS, c = c0 + id % COLUMNS;
        if (c < n) PUT(sums[id * SIDE], r, c);
    }
}

__kernel __attribute__((reqd_work_group_size(SIDE, 1, 1))) void
clv_gemm_few_join(__global const float *restrict P, __global float *C, ulong c_offset, ulong c_row,
                  __global const float *bias, ulong bias_offset, uint has_bias, __global const float *R,
                  ulong r_offset, ulong r_row, uint m, uint n, float alpha, float beta, uint act, uint splits)
{
    const uint c = get_global_id(0), r = get_global_id(1);
    if (c >= n) return;
    float x = 0.0f;
    for (uint s = 0; s < splits; ++s)
        x += P[((size_t)s * m + r) * n + c];
    C[c_offset + r * c_row + c] =
        finish(x, r, c, bias + bias_offset, has_bias, R + r_offset, r_row, alpha, beta, act);
}

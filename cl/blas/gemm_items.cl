/* blas/gemm_items.cl -- C = act(alpha * A * B + bias) + beta * R, by tiles in the registers of single
 * work-items, for devices that build vectors from work-items and have slow barriers: software rasterisers.
 *
 * A work-item computes RM rows by RN columns of C, the columns TX apart, so that neighbouring work-items read
 * neighbouring elements of B, and a row of work-items reads the same elements of A. A launch takes the terms
 * [k0, k1); sums are kept in P, which is C, or separate memory if C's old values are still needed.
 *
 * Launch   3-D: global (columns / RN, rows / RM, batch, both rounded up to whole groups), local (TX, TY, 1).
 * Defines  LANES 1, TX, TY, RM, RN, B_HALF.
 * Needs    OpenCL C 1.2.
 * Order    Every sum runs in ascending order of k by fma from 0, as in blas/gemm_rows.cl; on a device without
 *          fma, products are rounded and then added. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "blas/tiles.clh"

__kernel __attribute__((reqd_work_group_size(TX, TY, 1))) void clv_gemm_items(TILE_PARAMETERS)
{
    const uint m0 = get_global_id(1) * RM, n0 = get_group_id(0) * (TX * RN) + get_local_id(0);
    const size_t batch = get_group_id(2);
    TILE_ADVANCE(batch);

    float acc[RM][RN];
    ulong row[RM], column[RN]; /* those beyond the matrix repeat its last one, without a branch */
    UNROLL for (int i = 0; i < RM; ++i) {
        row[i] = min(m0 + i, m - 1) * a_row;
        UNROLL for (int j = 0; j < RN; ++j) acc[i][j] = 0.0f;
    }
    if (k0) {
        UNROLL for (int i = 0; i < RM; ++i)
            UNROLL for (int j = 0; j < RN; ++j)
                if (m0 + i < m && n0 + j * TX < n) acc[i][j] = P[(m0 + i) * p_row + n0 + j * TX];
    }
    UNROLL for (int j = 0; j < RN; ++j) column[j] = min(n0 + j * TX, n - 1) * b_col;
    for (uint q = k0; q < k1; ++q) {
        float b[RN];
        UNROLL for (int j = 0; j < RN; ++j) b[j] = B_AT(q * b_row + column[j]);
        UNROLL for (int i = 0; i < RM; ++i) {
            const float a = A[row[i] + q * a_col];
            UNROLL for (int j = 0; j < RN; ++j) acc[i][j] = fma(a, b[j], acc[i][j]);
        }
    }
    UNROLL for (int i = 0; i < RM; ++i)
        UNROLL for (int j = 0; j < RN; ++j)
            if (m0 + i < m && n0 + j * TX < n) P[(m0 + i) * p_row + n0 + j * TX] = acc[i][j];
    if (k1 < k) return;
    /* a loop of its own: compilers do not unroll loops with long bodies, and would keep the sums in memory */
    for (uint r = m0; r < min(m0 + RM, m); ++r)
        for (uint c = n0; c < min(n0 + TX * RN, n); c += TX) TILE_FINISH(P[r * p_row + c], r, c);
}

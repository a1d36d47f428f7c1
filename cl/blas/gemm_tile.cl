/* blas/gemm_tile.cl -- C = act(alpha * A * B + bias) + beta * R, by tiles in local memory, for GPUs.
 *
 * A work-group of TX * TY makes a tile of (TY * RM) x (TX * RN) of C, a work-item RM x RN of it, every
 * TY-th row and TX-th column. KT terms of all sums at a time are brought to local memory. A launch
 * takes the terms [k0, k1); sums wait in P between launches.
 *
 * Launch   3-D: global (tiles of n * TX, tiles of m * TY, batch), local (TX, TY, 1).
 * Defines  LANES 1, TX, TY, RM, RN, KT, B_HALF.
 * Needs    OpenCL C 1.2; local memory KT * (TY * RM + TX * RN + 2) floats, given as an argument.
 * Order    every sum runs over k upwards by fma from 0, as in blas/gemm_rows.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "blas/tiles.clh"

#define TM (TY * RM)
#define TN (TX * RN)
#define SA (TM + 1) /* floats from k to k in local memory */
#define SB (TN + 1)

__kernel __attribute__((reqd_work_group_size(TX, TY, 1))) void
clv_gemm_tile(TILE_PARAMETERS, __local float *tiles)
{
    const uint tx = get_local_id(0), ty = get_local_id(1), id = ty * TX + tx;
    const uint m0 = get_group_id(1) * TM, n0 = get_group_id(0) * TN;
    const size_t batch = get_global_id(2);
    __local float *ta = tiles, *tb = tiles + KT * SA;
    TILE_ADVANCE(batch);

    float acc[RM][RN];
    UNROLL for (int i = 0; i < RM; ++i) UNROLL for (int j = 0; j < RN; ++j) {
        const uint r = m0 + ty + i * TY, c = n0 + tx + j * TX;
        acc[i][j] = k0 && r < m && c < n ? P[r * p_row + c] : 0.0f;
    }
    for (uint kb = k0; kb < k1; kb += KT) {
        /* neighbours in the group read neighbours in memory */
        for (uint e = id; e < TM * KT; e += TX * TY) {
            const uint i = a_col == 1 ? e / KT : e % TM, q = a_col == 1 ? e % KT : e / TM;
            ta[q * SA + i] = m0 + i < m && kb + q < k1 ? A[(m0 + i) * a_row + (kb + q) * a_col] : 0.0f;
        }
        for (uint e = id; e < TN * KT; e += TX * TY) {
            const uint j = b_row == 1 ? e / KT : e % TN, q = b_row == 1 ? e % KT : e / TN;
            tb[q * SB + j] = n0 + j < n && kb + q < k1 ? B_AT((kb + q) * b_row + (n0 + j) * b_col) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int q = 0; q < KT; ++q) {
            float a[RM], b[RN];
            UNROLL for (int i = 0; i < RM; ++i) a[i] = ta[q * SA + ty + i * TY];
            UNROLL for (int j = 0; j < RN; ++j) b[j] = tb[q * SB + tx + j * TX];
            UNROLL for (int i = 0; i < RM; ++i)
                UNROLL for (int j = 0; j < RN; ++j) acc[i][j] = fma(a[i], b[j], acc[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < RM; ++i) for (int j = 0; j < RN; ++j) {
        const uint r = m0 + ty + i * TY, c = n0 + tx + j * TX;
        if (r >= m || c >= n) continue;
        if (k1 < k) P[r * p_row + c] = acc[i][j];
        else TILE_FINISH(acc[i][j], r, c);
    }
}

/* blas/gemm_matrix.cl -- C = act(alpha * A * B + bias) + beta * R for B of halves, by matrix units of GPUs.
 *
 * A is rounded to halves, to the nearest; sums are floats. A sub-group computes 2 x 2 matrices of 8 rows and SG
 * columns of C, and the SM x SN sub-groups of a work-group together a tile of TM x TN. Local memory holds the A and B
 * of one stage, KT terms of all sums, in one of two buffers: the work-items bring the next stage into the other buffer
 * before they multiply, so that each stage takes one barrier. Waits for memory are covered by other work-groups, since
 * the sums and operands of the matrix units take most registers.
 *
 * A launch takes the terms [k0, k1); sums are kept in P between launches.
 *
 * Launch   3-D: global (tiles of n * SG, tiles of m * SM * SN, batch), local (SG, SM * SN, 1).
 * Defines  LANES 1; SG 8 or 16; SM, SN; B_HALF 1; MATRIX_EMULATED. SG * SM * SN is a multiple of 64.
 * Needs    OpenCL C 1.2; common/matrix.clh; local memory of 2 * KT * (TM + TN) halves, given as an argument.
 * Memory   A work-item reads 8 terms of a row of A or of a column of B, as a vector where they are neighbours.
 * Error    At most 2^-11 of the sum of |a b|, because A is rounded, and the rounding of a sum of floats. An element of
 *          A beyond 65504 becomes infinite.
 * Order    Terms are added 16 at a time, in ascending order. Within these 16, the order is that of the matrix units,
 *          but depends on neither m, n nor k. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "common/matrix.clh"
#include "blas/shared.clh"
#include "blas/tiles.clh"

#define KT CLV_MATRIX_TERMS
#define GROUPS (SM * SN)
#define WG (SG * GROUPS)
#define TM (SM * 16)
#define TN (SN * 2 * SG)
#define EIGHTS (KT / 8)        /* vectors of 8 terms per row in a stage */
#define QA (TM * EIGHTS / WG) /* vectors of A that a work-item brings per stage */
#define QB (TN * EIGHTS / WG)
#define STAGE (KT * (TM + TN)) /* halves */

/* Where vector `i` of a work-item lies in a stage. Neighbouring work-items bring neighbouring vectors of a row (or
 * column) if its terms are adjacent in memory, otherwise neighbouring rows. */
static uint2 share_of(uint id, uint i, bool along, uint side)
{
    const uint e = id + i * WG;
    return along ? (uint2)(e / EIGHTS, e % EIGHTS) : (uint2)(e % side, e / side);
}

/* Loads 8 elements that lie `step` apart, of which `left` exist (not more than 8 are needed); zeros for the others. */
#define EIGHT_OF(type)                                                        \
    static type##8 type##_eight(__global const type *p, ulong step, int left) \
    {                                                                         \
        if (step == 1 && left >= 8) return vload8(0, p);                      \
        type##8 x = (type##8)(0);                                             \
        if (left > 0) x.s0 = p[0];                                            \
        if (left > 1) x.s1 = p[step];                                         \
        if (left > 2) x.s2 = p[2 * step];                                     \
        if (left > 3) x.s3 = p[3 * step];                                     \
        if (left > 4) x.s4 = p[4 * step];                                     \
        if (left > 5) x.s5 = p[5 * step];                                     \
        if (left > 6) x.s6 = p[6 * step];                                     \
        if (left > 7) x.s7 = p[7 * step];                                     \
        return x;                                                             \
    }
EIGHT_OF(float)
EIGHT_OF(ushort)

/* Stores 8 terms of a row of A, rounded, where the lanes of matrix_mad read them: [row / 8][term][row % 8] halves, with
 * pairs of terms in place of terms if SG is 8. */
static void keep_a(__local half *a, uint row, uint eighth, float8 x)
{
    __local half *to = a + row / 8 * (8 * KT) + eighth * 64;
#if SG == 8
    to += row % 8 * 2;
    vstorea_half2_rte(x.s01, 0, to), vstorea_half2_rte(x.s23, 8, to);
    vstorea_half2_rte(x.s45, 16, to), vstorea_half2_rte(x.s67, 24, to);
#else
    to += row % 8;
    vstore_half_rte(x.s0, 0, to), vstore_half_rte(x.s1, 8, to);
    vstore_half_rte(x.s2, 16, to), vstore_half_rte(x.s3, 24, to);
    vstore_half_rte(x.s4, 32, to), vstore_half_rte(x.s5, 40, to);
    vstore_half_rte(x.s6, 48, to), vstore_half_rte(x.s7, 56, to);
#endif
}

/* Stores 8 terms of a column of B: [term / 16][column][term % 16] halves. */
static void keep_b(__local ushort *b, uint column, uint eighth, ushort8 x)
{
    *(__local ushort8 *)(b + eighth / 2 * (16 * TN) + column * 16 + eighth % 2 * 8) = x;
}

/* Moves the four matrices of sums on by one place; `last` takes the last place. */
#define MOVE_ON(last) c00 = c01, c01 = c10, c10 = c11, c11 = (last)

__kernel MATRIX_SUB_GROUP __attribute__((reqd_work_group_size(SG, GROUPS, 1))) void
clv_gemm_matrix(TILE_PARAMETERS, __local int8 *tiles)
{
    const uint lane = get_local_id(0), group = get_local_id(1), id = group * SG + lane;
    const uint m0 = get_group_id(1) * TM, n0 = get_group_id(0) * TN;
    const uint row0 = group / SN * 16, column0 = group % SN * (2 * SG);
    const size_t batch = get_global_id(2);
    __local ushort *memory = (__local ushort *)tiles;
    TILE_ADVANCE(batch);

    __global const float *pa[QA];
    __global const ushort *pb[QB];
    const bool along_a = a_col == 1, along_b = b_row == 1;
    UNROLL for (uint i = 0; i < QA; ++i) {
        const uint2 s = share_of(id, i, along_a, TM);
        pa[i] = A + min(m0 + s.x, m - 1) * a_row + (k0 + s.y * 8) * a_col;
    }
    UNROLL for (uint i = 0; i < QB; ++i) {
        const uint2 s = share_of(id, i, along_b, TN);
        pb[i] = (__global const ushort *)B + min(n0 + s.x, n - 1) * b_col + (k0 + s.y * 8) * b_row;
    }
/* brings the stage that begins at term `kb` */
#define BRING(kb, buffer)                                                                             \
    {                                                                                                 \
        __local ushort *a = memory + (buffer)*STAGE;                                                  \
        UNROLL for (uint i = 0; i < QA; ++i) {                                                        \
            const uint2 s = share_of(id, i, along_a, TM);                                             \
            const long left = (long)k1 - (long)(kb) - (long)(s.y * 8);                                \
            keep_a((__local half *)a, s.x, s.y, float_eight(pa[i], a_col, (int)clamp(left, 0L, 8L))); \
            pa[i] += KT * a_col;                                                                      \
        }                                                                                             \
        UNROLL for (uint i = 0; i < QB; ++i) {                                                        \
            const uint2 s = share_of(id, i, along_b, TN);                                             \
            const long left = (long)k1 - (long)(kb) - (long)(s.y * 8);                                \
            keep_b(a + KT * TM, s.x, s.y, ushort_eight(pb[i], b_row, (int)clamp(left, 0L, 8L)));      \
            pb[i] += KT * b_row;                                                                      \
        }                                                                                             \
    }

    /* matrices of the upper (0) and lower (1) 8 rows; an array of more sums than these would be put into memory */
    float8 c00 = (float8)(0.0f), c01 = c00, c10 = c00, c11 = c00;
    if (k0) {
        _Pragma("unroll 1") for (uint t = 0; t < 4; ++t) {
            const uint r = m0 + row0 + t / 2 * 8, c = n0 + column0 + t % 2 * SG + lane;
            float8 x = (float8)(0.0f);
            _Pragma("unroll 1") for (uint e = 0; e < 8; ++e) {
                x = x.s12345670;
                x.s7 = r + e < m && c < n ? P[(r + e) * p_row + c] : 0.0f;
            }
            MOVE_ON(x);
        }
    }

    /* a turn brings a stage and multiplies the stage before it */
    uint buffer = 0;
    for (uint kb = k0;; kb += KT) {
        if (kb < k1) BRING(kb, buffer)
        buffer ^= 1;
        if (kb > k0) {
            __local const ushort *a_rows = memory + buffer * STAGE + row0 * KT + lane * (128 / SG);
            __local const ushort *b_columns = memory + buffer * STAGE + KT * TM + (column0 + lane) * 16;
            UNROLL for (uint q = 0; q < KT / 16; ++q) {
                const int8 b0 = *(__local const int8 *)(b_columns + q * (16 * TN));
                const int8 b1 = *(__local const int8 *)(b_columns + q * (16 * TN) + SG * 16);
                const matrix_a a0 = matrix_a_load(a_rows + q * 128), a1 = matrix_a_load(a_rows + 8 * KT + q * 128);
                c00 = matrix_mad(a0, b0, c00);
                c01 = matrix_mad(a0, b1, c01);
                c10 = matrix_mad(a1, b0, c10);
                c11 = matrix_mad(a1, b1, c11);
            }
        }
        if (kb >= k1) break;
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    _Pragma("unroll 1") for (uint t = 0; t < 4; ++t) {
        const uint r0 = m0 + row0 + t / 2 * 8, c = n0 + column0 + t % 2 * SG + lane;
        float8 x = c00;
        _Pragma("unroll 1") for (uint e = 0; e < 8; ++e) {
            const uint r = r0 + e;
            if (r < m && c < n) {
                if (k1 < k) P[r * p_row + c] = x.s0;
                else TILE_FINISH(x.s0, r, c);
            }
            x = x.s12345670;
        }
        MOVE_ON(x);
    }
}

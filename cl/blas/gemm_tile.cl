/* blas/gemm_tile.cl -- C = act(alpha * A * B + bias) + beta * R, by tiles in registers, for GPUs.
 *
 * A work-group of TX * TY work-items computes a tile of (TY * RM) x (TX * RN) of C. A work-item keeps
 * RM x RN sums in registers: groups of 4 rows and 4 columns, 4 * TY rows and 4 * TX columns apart, so
 * that it reads its part of A and B from local memory as float4. Local memory holds the A and B of one stage,
 * KT terms of all sums, in one of two buffers. While the work-items multiply from one buffer, they load the
 * next stage from global memory to registers and then store it in the other buffer, so that each stage takes
 * one barrier only.
 *
 * A launch takes the terms [k0, k1); sums are kept in P between launches.
 *
 * If A_HALF is 1, A is rounded to halves, to the nearest, and local memory holds A and B as halves, in half the room:
 * an element of C then differs by at most 2^-11 of the sum of |a b|, and one of A beyond 65504 becomes infinite.
 * Products and sums are still floats.
 *
 * Launch   3-D: global (tiles of n * TX, tiles of m * TY, batch), local (TX, TY, 1).
 * Defines  LANES 1; TX, TY, multiples of 8 and 4; RM, RN, multiples of 4; KT, a power of two; B_HALF; A_HALF (only with
 *          B_HALF).
 *          TX * TY is a multiple of KT, of TY * RM and of TX * RN.
 * Needs    OpenCL C 1.2; local memory of 2 * KT * (TY * RM + TX * RN + 8) floats (A_HALF: halves), given as an
 *          argument.
 * Memory   Neighbouring work-items read neighbouring elements of A and B, whichever of their strides
 *          is 1. Rows and columns beyond the matrix repeat its last one.
 * Order    Every sum runs in ascending order of k by fma from 0, as in blas/gemm_rows.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"
#include "blas/tiles.clh"

#define WG (TX * TY)
#define TM (TY * RM)
#define TN (TX * RN)
#define SA (TM + 4) /* floats from term to term in local memory; 4 more spread stores over its banks */
#define SB (TN + 4)
#define STAGE (KT * (SA + SB))
#define QA (TM * KT / WG) /* elements of A that a work-item loads per stage */
#define QB (TN * KT / WG)

#if A_HALF
typedef half kept_t; /* an element in local memory */
typedef ushort4 four_t;
#define KEPT(i, x) vstore_half_rte(x, i, memory)
#define FOUR(p) vloada_half4(0, (__local const half *)(p))
#else
typedef float kept_t;
typedef float4 four_t;
#define KEPT(i, x) memory[i] = x
#define FOUR(p) (*(p))
#endif

/* The elements of a stage that a work-item loads. Neighbouring work-items load neighbouring terms if those are
 * adjacent in memory, otherwise neighbouring rows (or columns). */
typedef struct share_t {
    uint at, term;           /* row (or column) and term of the work-item's first element */
    uint next_at, next_term; /* distances from one of its elements to the next */
} share_t;

static share_t share_of(uint id, bool along, uint side)
{
    share_t s;
    s.at = along ? id / KT : id % side;
    s.term = along ? id % KT : id / side;
    s.next_at = along ? WG / KT : 0;
    s.next_term = along ? 0 : WG / side;
    return s;
}

__kernel __attribute__((reqd_work_group_size(TX, TY, 1))) void
clv_gemm_tile(TILE_PARAMETERS, __local float4 *tiles)
{
    /* 32 consecutive work-items are an 8 x 4 block, and read 8 different float4 of B and 4 of A */
    const uint id = get_local_id(1) * TX + get_local_id(0), block = id / 32;
    const uint tx = block % (TX / 8) * 8 + id % 8, ty = block / (TX / 8) * 4 + id / 8 % 4;
    const uint m0 = get_group_id(1) * TM, n0 = get_group_id(0) * TN;
    const size_t batch = get_global_id(2);
    __local kept_t *memory = (__local kept_t *)tiles;
    TILE_ADVANCE(batch);

    const share_t sa = share_of(id, a_col == 1, TM), sb = share_of(id, b_row == 1, TN);
    __global const float *pa[QA];
    __global const b_t *pb[QB];
    UNROLL for (int i = 0; i < QA; ++i)
        pa[i] = A + min(m0 + sa.at + i * sa.next_at, m - 1) * a_row +
                (k0 + sa.term + i * sa.next_term) * a_col;
    UNROLL for (int i = 0; i < QB; ++i)
        pb[i] = B + min(n0 + sb.at + i * sb.next_at, n - 1) * b_col +
                (k0 + sb.term + i * sb.next_term) * b_row;
    const uint to_a = sa.term * SA + sa.at, step_a = sa.next_term * SA + sa.next_at;
    const uint to_b = KT * SA + sb.term * SB + sb.at, step_b = sb.next_term * SB + sb.next_at;
    const ulong far_a = KT * a_col, far_b = KT * b_row;

    float ra[QA], rb[QB];
/* loads the stage that begins `left` terms before the end */
#define BRING(left)                                                           \
    {                                                                         \
        UNROLL for (int i = 0; i < QA; ++i)                                   \
            ra[i] = sa.term + i * sa.next_term < (left) ? pa[i][0] : 0.0f;    \
        UNROLL for (int i = 0; i < QB; ++i)                                   \
            rb[i] = sb.term + i * sb.next_term < (left) ? AT_B(pb[i]) : 0.0f; \
        UNROLL for (int i = 0; i < QA; ++i) pa[i] += far_a;                   \
        UNROLL for (int i = 0; i < QB; ++i) pb[i] += far_b;                   \
    }
#define KEEP(buffer)                                                                         \
    {                                                                                        \
        UNROLL for (int i = 0; i < QA; ++i) KEPT((buffer)*STAGE + to_a + i * step_a, ra[i]); \
        UNROLL for (int i = 0; i < QB; ++i) KEPT((buffer)*STAGE + to_b + i * step_b, rb[i]); \
    }

    float acc[RM][RN];
    UNROLL for (int i = 0; i < RM; ++i) UNROLL for (int j = 0; j < RN; ++j) acc[i][j] = 0.0f;
    if (k0) {
        UNROLL for (int i = 0; i < RM; ++i) UNROLL for (int j = 0; j < RN; ++j) {
            const uint r = m0 + i / 4 * 4 * TY + ty * 4 + i % 4, c = n0 + j / 4 * 4 * TX + tx * 4 + j % 4;
            acc[i][j] = r < m && c < n ? P[r * p_row + c] : 0.0f;
        }
    }

    uint buffer = 0;
    BRING(k1 - k0)
    KEEP(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint kb = k0; kb < k1; kb += KT) {
        const bool more = kb + KT < k1;
        if (more) BRING(k1 - kb - KT)
        __local const four_t *a4 = (__local const four_t *)tiles + buffer * (STAGE / 4) + ty;
        __local const four_t *b4 = (__local const four_t *)tiles + buffer * (STAGE / 4) + KT * SA / 4 + tx;
        UNROLL for (int q = 0; q < KT; ++q) {
            float4 a[RM / 4], b[RN / 4];
            UNROLL for (int i = 0; i < RM / 4; ++i) a[i] = FOUR(a4 + q * (SA / 4) + i * TY);
            UNROLL for (int j = 0; j < RN / 4; ++j) b[j] = FOUR(b4 + q * (SB / 4) + j * TX);
            UNROLL for (int i = 0; i < RM / 4; ++i) {
                const float rows[4] = { a[i].x, a[i].y, a[i].z, a[i].w };
                UNROLL for (int e = 0; e < 4; ++e) UNROLL for (int j = 0; j < RN / 4; ++j) {
                    acc[4 * i + e][4 * j] = fma(rows[e], b[j].x, acc[4 * i + e][4 * j]);
                    acc[4 * i + e][4 * j + 1] = fma(rows[e], b[j].y, acc[4 * i + e][4 * j + 1]);
                    acc[4 * i + e][4 * j + 2] = fma(rows[e], b[j].z, acc[4 * i + e][4 * j + 2]);
                    acc[4 * i + e][4 * j + 3] = fma(rows[e], b[j].w, acc[4 * i + e][4 * j + 3]);
                }
            }
        }
        buffer ^= 1;
        if (more) {
            KEEP(buffer)
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    /* Every row of sums is moved to the place of the first row before it is written: if a variable indexed the array,
     * compilers would keep all sums in memory, and an unrolled loop would be very long. */
    _Pragma("unroll 1") for (uint i = 0; i < RM; ++i) {
        const uint r = m0 + i / 4 * 4 * TY + ty * 4 + i % 4;
        UNROLL for (int j = 0; j < RN; ++j) {
            const uint c = n0 + j / 4 * 4 * TX + tx * 4 + j % 4;
            if (r < m && c < n) {
                if (k1 < k) P[r * p_row + c] = acc[0][j];
                else TILE_FINISH(acc[0][j], r, c);
            }
        }
        UNROLL for (int e = 0; e + 1 < RM; ++e) UNROLL for (int j = 0; j < RN; ++j) acc[e][j] = acc[e + 1][j];
    }
}

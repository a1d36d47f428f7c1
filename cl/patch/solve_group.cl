/* cl/patch/solve_group.cl -- computes the same as solve_rows.cl for GPUs: a team of work-items holds the equations of a
 * patch in registers; a work-group has the teams of TEAMS neighbouring patches.
 *
 *   S_ij = V[lag(i,j)][k + o_j]              C = (1 - rho) S + rho diag(S) = L L'
 *   Y = L^-1 B,  G = Y' Y,  W = L^-T Y       A[m] = sum_n F[m][n] G_n, the polynomial a(f)
 *
 * Row i < P of the equations is row i of C and of B; row P + q is column q of B. Two work-items share a row:
 * each owns every other group of four elements. Step k subtracts row k, divided by its pivot, from the rows
 * below. Work-items exchange column k only, through local memory. Since C is symmetric, the elements of a row
 * right of its diagonal are the column of L that the back substitution from Y to W needs. The steps are
 * unrolled, because compilers keep an array in memory if a variable indexes it.
 *
 * Launch   2-D: global (width / TEAMS * WG, rows), local (WG, 1), WG = 2 * SIDE * TEAMS.
 * Defines  LANES 1, TILE 1; P, Q, MA as in solve_rows.cl; SIDE, P + Q at least, a multiple of 32; TEAMS.
 * Needs    barriers; `memory`, TEAMS * TEAM_FLOATS floats of local memory: an argument, since PoCL lets
 *          work-groups that run at the same time share arrays that a kernel declares and hands to a function.
 * Memory   V is read from the cache, where neighbouring patches read neighbouring elements; W and A are written
 *          once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"
#include "patch/steps.clh"

#define TEAM (2 * SIDE)
#define WG (TEAM * TEAMS)
#define ALL (P + Q)
#define OWN ((ALL + 7) / 8) /* groups of four elements of a row that a work-item owns */
#define FIRST (P / 8)       /* the first of these groups that holds an element of B */
#define PRODUCTS (Q * (Q + 1) / 2)
#define QS ((Q + 3) / 4 * 4)
/* Local memory of a team; solve_floats of host/patch/paco_family.c computes the same. */
#define COLUMN_FLOATS (SIDE > 8 * OWN ? SIDE : 8 * OWN)
/* From index NOWHERE on, every work-item has room for results that are not read: such a store replaces a branch, which
 * would delay sums. */
#define NOWHERE (2 * (OWN - FIRST))
#define OTHER (COLUMN_FLOATS + 4 * (NOWHERE + TEAM))
#define BUFFER_FLOATS (OTHER + SIDE)
#define SOLUTION_FLOATS (2 * BUFFER_FLOATS + P * QS + (PRODUCTS + 3) / 4 * 4)
#define TEAM_FLOATS (SOLUTION_FLOATS > 4 * TEAM ? SOLUTION_FLOATS : 4 * TEAM)
/* PoCL computes a work-item's comparisons for many steps at once, as a vector of bits that it keeps across barriers.
 * LLVM 15 then reads a byte per bit (its pass VectorCombine makes loads of elements out of loads of vectors), so that
 * steps took rows that are not below. Where the place is read anew, each step compares for itself. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define READ_ANEW volatile
#else
#define READ_ANEW
#endif
#define UNROLL _Pragma("unroll")

/* The column of element e of the work-item's group t. */
#define COLUMN(t, e) COLUMN_OF(t, (int)half_, e)
#define COLUMN_OF(t, half_, e) (4 * (2 * (t) + (half_)) + (e))

/* Returns to every work-item of a team the sum of `value` over the team, added in a fixed order. */
static float4 team_sum(__local float4 *part, float4 value, uint lane)
{
    part[lane] = value;
    for (uint left = TEAM; left > 1; left = (left + 1) / 2) {
        const uint above = left / 2, from = (left + 1) / 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < above) part[lane] += part[lane + from];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float4 sum = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* Returns rho from the sum of squares off the diagonal (x), the trace (y), the sum of squares on the diagonal (z) and
 * the number of pixels that do not vary (w), which must be 0; otherwise returns NAN. */
static float shrinkage(float4 sums, float frames, uint vip)
{
    const float off = sums.x, trace = sums.y, squares = sums.z;
    const float top = vip ? trace * trace - (off + squares) : off - squares + trace * trace;
    const float bottom = (frames + 1.0f) * off;
    if (sums.w > 0.0f) return NAN;
    return bottom > 0.0f ? fmin(fmax(top / bottom, 0.0f), 1.0f) : 1.0f;
}

/* Computes the coefficients of a(f): G = Y' Y, upper triangle by rows, times F. */
static void quadratic(__global float *A, __local float *G, __local const float *Y, __global const float *F,
                      float rho, uint lane)
{
    for (uint n = lane; n < PRODUCTS; n += TEAM) {
        uint p = 0, q = n;
        while (q >= Q - p) q -= Q - p, ++p;
        q += p;
        float g = 0.0f;
        _Pragma("unroll 4") for (uint i = 0; i < P; ++i) g = fma(Y[i * QS + p], Y[i * QS + q], g);
        G[n] = g;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint m = lane; m < MA; m += TEAM) {
        float sum = 0.0f;
        _Pragma("unroll 4") for (uint n = 0; n < PRODUCTS; ++n) sum = fma(F[n * MA + m], G[n], sum);
        A[m] = m == 0 && isnan(rho) ? NAN : sum;
    }
}

/* Subtracts from element e of a work-item's first group that has columns right of K. Elements that neither half has
 * there are left out: compilers would keep what is multiplied by 0 in registers until the end. */
#define BELOW(e, part)                                                                                     \
    if (COLUMN_OF(T, 1, e) > K)                                                                            \
        a[4 * T + e] = fma(select(0.0f, share, COLUMN(T, e) > K), next.part, a[4 * T + e]);

/* Publishes column k and subtracts row k from the rows below. */
#define STEP(k)                                                                                            \
    if ((k) < P) {                                                                                         \
        enum { K = (k) < P ? (k) : 0, T = K / 8 };                                                         \
        __local float *column = buffers + K % 2 * BUFFER_FLOATS;                                           \
        __local const float4 *fours = (__local const float4 *)column;                                      \
        column[half_ == K / 4 % 2 ? i : OTHER + i] = a[4 * T + K % 4];                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                      \
        const float scale = 1.0f / column[K], mine = -column[i] * scale;                                   \
        const float share = select(0.0f, mine, i > K);                                                     \
        const float4 next = fours[2 * T + half_];                                                          \
        BELOW(0, x) BELOW(1, y) BELOW(2, z) BELOW(3, w)                                                    \
        UNROLL for (int t = T + 1; t < OWN; ++t) {                                                         \
            const float4 l = fours[2 * t + half_];                                                         \
            a[4 * t] = fma(share, l.x, a[4 * t]), a[4 * t + 1] = fma(share, l.y, a[4 * t + 1]);            \
            a[4 * t + 2] = fma(share, l.z, a[4 * t + 2]), a[4 * t + 3] = fma(share, l.w, a[4 * t + 3]);    \
        }                                                                                                  \
    }

/* Publishes W of row k and subtracts it from the rows above. */
#define DOWN(k)                                                                                            \
    if ((k) > 0 && (k) < P) {                                                                              \
        enum { K = (k) < P ? (k) : 0, T = K / 8 };                                                         \
        __local float *column = buffers + K % 2 * BUFFER_FLOATS;                                           \
        __local float4 *done = (__local float4 *)(column + COLUMN_FLOATS);                                 \
        column[half_ == K / 4 % 2 ? i : OTHER + i] = a[4 * T + K % 4];                                              \
        UNROLL for (int t = FIRST; t < OWN; ++t)                                                           \
            done[own == K ? 2 * (t - FIRST) + half_ : NOWHERE + (int)lane] =                                   \
                (float4)(a[4 * t], a[4 * t + 1], a[4 * t + 2], a[4 * t + 3]) * inverse;                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                      \
        const float mine = -column[i], share = select(0.0f, mine, own < K);                                  \
        UNROLL for (int t = FIRST; t < OWN; ++t) {                                                         \
            const float4 w = done[2 * (t - FIRST) + half_];                                                \
            a[4 * t] = fma(select(share, 0.0f, COLUMN(t, 0) < P), w.x, a[4 * t]);                                \
            a[4 * t + 1] = fma(select(share, 0.0f, COLUMN(t, 1) < P), w.y, a[4 * t + 1]);                        \
            a[4 * t + 2] = fma(select(share, 0.0f, COLUMN(t, 2) < P), w.z, a[4 * t + 2]);                        \
            a[4 * t + 3] = fma(select(share, 0.0f, COLUMN(t, 3) < P), w.w, a[4 * t + 3]);                        \
        }                                                                                                  \
    }

/* `entry` [j][i]: the offset of S_ij, relative to V at the patch's first band row. */
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
clv_paco_solve_group(__global const float *restrict V, __global float *restrict W, __global float *restrict A,
                     __global float *restrict rho_out, __global const int *restrict entry,
                     __global const float *restrict B, __global const float *restrict F, uint first_band_row,
                     uint pitch, uint lags, float frames, uint vip, __local float4 *restrict memory)
{
    const uint item = get_local_id(0), team = item / TEAM, lane = item % TEAM, row = get_global_id(1);
    const uint x = get_group_id(0) * TEAMS + team, width = pitch - 2 * CLV_PACO_PAD;
    const READ_ANEW int i = lane % SIDE, half_ = lane / SIDE;
    __local float *buffers = (__local float *)(memory + team * (TEAM_FLOATS / 4));
    __local float *Y = buffers + 2 * BUFFER_FLOATS, *G = Y + P * QS;
    __global const float *v = V + (size_t)(first_band_row + row) * lags * pitch + CLV_PACO_PAD + x;
    const bool pixel = i < P;

    /* reads the row and sums what rho depends on */
    float a[4 * OWN];
    float4 sums = (float4)(0.0f);
    UNROLL for (int e = 0; e < 4 * OWN; ++e) a[e] = 0.0f;
    _Pragma("unroll 1") for (int t = 0; t < OWN; ++t) { /* shifts the array instead of indexing it */
        UNROLL for (int e = 0; e < 4 * OWN - 4; ++e) a[e] = a[e + 4];
        UNROLL for (int e = 0; e < 4; ++e) {
            const int m = COLUMN(t, e);
            float x = 0.0f;
            if (m < P && pixel) x = v[entry[m * P + i]];
            else if (m < P && i < ALL) x = B[m * Q + i - P];
            else if (m < ALL && pixel) x = B[i * Q + m - P];
            if (m < P && pixel && m != i) sums.x = fma(x, x, sums.x);
            if (m == i && pixel) sums.y = x, sums.z = x * x, sums.w = x > 0.0f ? 0.0f : 1.0f;
            a[4 * OWN - 4 + e] = x;
        }
    }
    const float rho = shrinkage(team_sum((__local float4 *)buffers, sums, lane), frames, vip);
    if (lane == 0) rho_out[(size_t)row * width + x] = rho;
    UNROLL for (int e = 0; e < 4 * OWN; ++e) {
        const int m = COLUMN(e / 4, e % 4);
        if (m < P && pixel && m != i) a[e] *= 1.0f - rho;
    }
    for (int e = SIDE + (int)lane; e < COLUMN_FLOATS; e += TEAM) /* columns beyond the last row */
        buffers[e] = buffers[BUFFER_FLOATS + e] = 0.0f;

    /* columns are not divided by roots: a[.] of row i is l_im times the root of pivot m */
    ALL_STEPS_UP
    /* The pivots, each known to one half, are exchanged after the last step. If each step selected its pivot, compilers
     * would keep all of them in registers. */
    float pivot = 1.0f;
    UNROLL for (int e = 0; e < 4 * OWN; ++e) pivot = select(pivot, a[e], COLUMN(e / 4, e % 4) == i);
    __local float *pivots = buffers + P % 2 * BUFFER_FLOATS; /* not the buffer of the last step, which is still read */
    pivots[half_ == i / 4 % 2 ? i : OTHER + i] = pivot;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float inverse = 1.0f / pivots[i]; /* of this row */
    const float root = sqrt(inverse);
    UNROLL for (int e = 4 * FIRST; e < 4 * OWN; ++e) {
        const int q = COLUMN(e / 4, e % 4) - P;
        if (pixel && q >= 0 && q < Q) Y[i * QS + q] = a[e] * root;
    }
    /* The row's number is read back from memory: otherwise compilers keep the results of all earlier comparisons
     * with it in registers. */
    __local float *number = buffers + half_ * BUFFER_FLOATS + OTHER + i;
    *number = as_float(i);
    barrier(CLK_LOCAL_MEM_FENCE);
    const READ_ANEW int own = as_int(*number);
    quadratic(A + ((size_t)row * width + x) * MA, G, Y, F, rho, lane);

    ALL_STEPS_DOWN
    __global float *w = W + ((size_t)row * width + x) * (P * Q);
    UNROLL for (int e = 4 * FIRST; e < 4 * OWN; ++e) {
        const int q = COLUMN(e / 4, e % 4) - P;
        if (pixel && q >= 0 && q < Q) w[i * Q + q] = a[e] * inverse;
    }
}

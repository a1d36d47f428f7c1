/* cl/patch/solve_rows.cl -- computes for each patch the shrunk covariance, its Cholesky factor, and the products of its
 * inverse with the images of a planet. A work-item takes LANES neighbouring patches; no barrier, no local memory.
 *
 *   S_ij = V[lag(i,j)][k + o_j]              C = (1 - rho) S + rho diag(S) = L L'
 *   Y = L^-1 B,  G = Y' Y,  W = L^-T Y       A[m] = sum_n F[m][n] G_n, the polynomial a(f)
 *
 * B [P][Q] holds the basis of the shifted PSF. An unusable patch gets A[0] = NaN. With LANES > 1, patches farther than
 * `reach` from the centre get nothing else: `centre_row` is relative to the first row.
 * The factor is built in blocks of 4 x 4 that stay in registers; P = 4 n + 1 for every disc, so
 * the last row is a strip of its own.
 *
 * Launch   1-D: global = workers, local (1) on CPUs; each worker takes every workers-th tile.
 *          `scratch` holds L and Y: workers * LANES * (P (P + 1) / 2 + P Q) floats.
 *          `vip` is 1 for the numerator of rho that vip-hci uses.
 * Defines  LANES, TILE; P patch pixels; Q vectors, 1 or a multiple of 5; MA terms of a(f).
 * Memory   V is read twice, from the cache; W and A are written once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"

#define N (P - 1)                              /* rows in blocks of 4; row N is the strip */
#define ROW(i) ((size_t)(i) * ((i) + 1) / 2 * stride) /* first entry of row i of the triangle */
#define QB (Q == 1 ? 1 : 5)                    /* right-hand sides at once */

/* AVX2 has 16 registers for vectors of 8. Sums of 4 x 4 or 4 x 5 do not fit into them and are stored and loaded at
 * every step: with 4 x 2 and 2 x 5 sums this kernel takes 0.77 of the time on a Zen 3. AVX-512 has 32 registers. */
#define CB (LANES == 8 ? 2 : 4) /* columns of a 4 x 4 block at once */
#define RB (LANES == 8 ? 2 : 4) /* rows of the right-hand sides at once */
#define GB (LANES == 1 ? 1 : QB) /* elements of G at once: sums that do not wait for each other */

typedef __global float *restrict scratch_ptr;

/* Returns rho of the patches, and in *usable whether every pixel of a patch varies. `entry` holds the offset of S_ij
 * (j <= i), relative to V at the patch's first band row. */
static fvec shrinkage(__global const float *V, __global const int *entry, float frames, uint vip,
                      ivec *usable)
{
    fvec all = 0.0f, trace = 0.0f, squares = 0.0f;
    ivec good = -1;
    for (int i = 0, e = 0; i < P; ++i) {
        for (int j = 0; j < i; ++j, ++e) {
            const fvec s = lanes_load(V + entry[e]);
            all = fma(s, s, all);
        }
        const fvec s = lanes_load(V + entry[e++]);
        trace += s;
        squares = fma(s, s, squares);
        good = good && (s > 0.0f);
    }
    all = 2.0f * all; /* both triangles: sum S_ij^2 - sum S_ii^2 */
    const fvec top = vip ? trace * trace - (all + squares) : all - squares + trace * trace;
    const fvec bottom = (frames + 1.0f) * all;
    *usable = good;
    return pick(bottom > 0.0f, fmin(fmax(top / bottom, 0.0f), 1.0f), (fvec)1.0f);
}

/* Subtracts from acc[r][c] the sum over k < depth of element k of row r of `a` times element k of row c of `b`, for the
 * CB columns from c0 on. */
static void update_columns(fvec acc[4][4], __global float *const a[4], __global float *const b[4], int c0, int depth,
                           size_t stride)
{
    for (int k = 0; k < depth; ++k) {
        fvec left[4], right[CB];
#pragma unroll
        for (int i = 0; i < 4; ++i) left[i] = lanes_load(a[i] + (size_t)k * stride);
#pragma unroll
        for (int i = 0; i < CB; ++i) right[i] = lanes_load(b[c0 + i] + (size_t)k * stride);
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int c = 0; c < CB; ++c) acc[r][c0 + c] = fma(-left[r], right[c], acc[r][c0 + c]);
    }
}

static void update(fvec acc[4][4], __global float *const a[4], __global float *const b[4], int depth,
                   size_t stride)
{
    update_columns(acc, a, b, 0, depth, stride);
#if LANES == 8
    update_columns(acc, a, b, 2, depth, stride);
#endif
}

/* Computes L, lower triangle by rows; the diagonal holds 1 / L_ii. */
static void factor(scratch_ptr L, size_t stride, __global const float *V,
                   __global const int *entry, fvec shrink)
{
    for (int i0 = 0; i0 < N; i0 += 4) {
        __global float *const mine[4] = { L + ROW(i0), L + ROW(i0 + 1), L + ROW(i0 + 2), L + ROW(i0 + 3) };
        for (int j0 = 0; j0 < i0; j0 += 4) {
            __global float *const theirs[4] = { L + ROW(j0), L + ROW(j0 + 1), L + ROW(j0 + 2), L + ROW(j0 + 3) };
            fvec acc[4][4];
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    acc[r][c] = lanes_load(V + entry[(i0 + r) * (i0 + r + 1) / 2 + j0 + c]) * shrink;
            update(acc, mine, theirs, j0, stride);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const fvec inverse = lanes_load(L + ROW(j0 + c) + (size_t)(j0 + c) * stride);
                fvec across[4];
#pragma unroll
                for (int d = 0; d < c; ++d)
                    across[d] = lanes_load(L + ROW(j0 + c) + (size_t)(j0 + d) * stride);
#pragma unroll
                for (int r = 0; r < 4; ++r) {
#pragma unroll
                    for (int d = 0; d < c; ++d) acc[r][c] = fma(-acc[r][d], across[d], acc[r][c]);
                    acc[r][c] *= inverse;
                    lanes_store(acc[r][c], L + ROW(i0 + r) + (size_t)(j0 + c) * stride);
                }
            }
        }
        fvec acc[4][4];
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                acc[r][c] = c > r ? (fvec)0.0f : lanes_load(V + entry[(i0 + r) * (i0 + r + 1) / 2 + i0 + c]);
                if (c < r) acc[r][c] *= shrink;
            }
        update(acc, mine, mine, i0, stride);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const fvec inverse = (fvec)1.0f / sqrt(acc[c][c]);
            lanes_store(inverse, L + ROW(i0 + c) + (size_t)(i0 + c) * stride);
#pragma unroll
            for (int r = c + 1; r < 4; ++r) {
                acc[r][c] *= inverse;
                lanes_store(acc[r][c], L + ROW(i0 + r) + (size_t)(i0 + c) * stride);
#pragma unroll
                for (int d = c + 1; d <= r; ++d) acc[r][d] = fma(-acc[r][c], acc[d][c], acc[r][d]);
            }
        }
    }
    /* the strip: row N */
    for (int j0 = 0; j0 < N; j0 += 4) {
        fvec acc[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) acc[c] = lanes_load(V + entry[N * (N + 1) / 2 + j0 + c]) * shrink;
        for (int k = 0; k < j0; ++k) {
            const fvec l = lanes_load(L + ROW(N) + (size_t)k * stride);
#pragma unroll
            for (int c = 0; c < 4; ++c) acc[c] = fma(-l, lanes_load(L + ROW(j0 + c) + (size_t)k * stride), acc[c]);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
#pragma unroll
            for (int d = 0; d < c; ++d)
                acc[c] = fma(-acc[d], lanes_load(L + ROW(j0 + c) + (size_t)(j0 + d) * stride), acc[c]);
            acc[c] *= lanes_load(L + ROW(j0 + c) + (size_t)(j0 + c) * stride);
            lanes_store(acc[c], L + ROW(N) + (size_t)(j0 + c) * stride);
        }
    }
    fvec last = lanes_load(V + entry[N * (N + 1) / 2 + N]);
    for (int k = 0; k < N; ++k) {
        const fvec l = lanes_load(L + ROW(N) + (size_t)k * stride);
        last = fma(-l, l, last);
    }
    lanes_store((fvec)1.0f / sqrt(last), L + ROW(N) + (size_t)N * stride);
}

#define YAT(i, q) (((size_t)(i) * Q + (q)) * stride)

/* Computes Y = L^-1 B. */
static void forward(scratch_ptr Y, scratch_ptr L, size_t stride, __global const float *B)
{
    for (int q0 = 0; q0 < Q; q0 += QB) {
        for (int i0 = 0; i0 < N; i0 += RB) {
            fvec acc[RB][QB];
#pragma unroll
            for (int r = 0; r < RB; ++r)
#pragma unroll
                for (int q = 0; q < QB; ++q) acc[r][q] = B[(i0 + r) * Q + q0 + q];
            for (int k = 0; k < i0; ++k) {
                fvec y[QB];
#pragma unroll
                for (int q = 0; q < QB; ++q) y[q] = lanes_load(Y + YAT(k, q0 + q));
#pragma unroll
                for (int r = 0; r < RB; ++r) {
                    const fvec l = lanes_load(L + ROW(i0 + r) + (size_t)k * stride);
#pragma unroll
                    for (int q = 0; q < QB; ++q) acc[r][q] = fma(-l, y[q], acc[r][q]);
                }
            }
#pragma unroll
            for (int r = 0; r < RB; ++r) {
#pragma unroll
                for (int d = 0; d < r; ++d) {
                    const fvec l = lanes_load(L + ROW(i0 + r) + (size_t)(i0 + d) * stride);
#pragma unroll
                    for (int q = 0; q < QB; ++q) acc[r][q] = fma(-l, acc[d][q], acc[r][q]);
                }
                const fvec inverse = lanes_load(L + ROW(i0 + r) + (size_t)(i0 + r) * stride);
#pragma unroll
                for (int q = 0; q < QB; ++q) {
                    acc[r][q] *= inverse;
                    lanes_store(acc[r][q], Y + YAT(i0 + r, q0 + q));
                }
            }
        }
        fvec acc[QB];
#pragma unroll
        for (int q = 0; q < QB; ++q) acc[q] = B[N * Q + q0 + q];
        for (int k = 0; k < N; ++k) {
            const fvec l = lanes_load(L + ROW(N) + (size_t)k * stride);
#pragma unroll
            for (int q = 0; q < QB; ++q) acc[q] = fma(-l, lanes_load(Y + YAT(k, q0 + q)), acc[q]);
        }
        const fvec inverse = lanes_load(L + ROW(N) + (size_t)N * stride);
#pragma unroll
        for (int q = 0; q < QB; ++q) lanes_store(acc[q] * inverse, Y + YAT(N, q0 + q));
    }
}

/* Computes the coefficients of a(f): G = Y'Y, upper triangle by rows, times F. */
static void quadratic(__global float *A, scratch_ptr Y, size_t stride,
                      __global const float *F, ivec usable)
{
    fvec sum[MA];
    for (int m = 0; m < MA; ++m) sum[m] = 0.0f;
    for (int p = 0; p < Q; ++p)
        for (int q0 = p / GB * GB; q0 < Q; q0 += GB) {
            fvec g[GB];
#pragma unroll
            for (int q = 0; q < GB; ++q) g[q] = 0.0f;
            for (int i = 0; i < P; ++i) {
                const fvec y = lanes_load(Y + YAT(i, p));
#pragma unroll
                for (int q = 0; q < GB; ++q) g[q] = fma(y, lanes_load(Y + YAT(i, q0 + q)), g[q]);
            }
#pragma unroll
            for (int q = 0; q < GB; ++q) {
                if (q0 + q < p) continue; /* below the diagonal */
                __global const float *f = F + (p * Q - p * (p - 1) / 2 + q0 + q - p) * MA;
#pragma unroll
                for (int m = 0; m < MA; ++m) sum[m] = fma((fvec)f[m], g[q], sum[m]);
            }
        }
    sum[0] = pick(usable, sum[0], (fvec)NAN);
    for (int m = 0; m < MA; ++m) lanes_store(sum[m], A + m * TILE);
}

/* Computes W = L^-T Y, directly in its place. */
static void backward(__global float *W, scratch_ptr L, scratch_ptr Y, size_t stride)
{
#define WAT(i, q) (((i) * Q + (q)) * TILE)
    for (int q0 = 0; q0 < Q; q0 += QB) {
        const fvec inverse_n = lanes_load(L + ROW(N) + (size_t)N * stride);
#pragma unroll
        for (int q = 0; q < QB; ++q)
            lanes_store(lanes_load(Y + YAT(N, q0 + q)) * inverse_n, W + WAT(N, q0 + q));
        for (int i0 = N - RB; i0 >= 0; i0 -= RB) {
            fvec acc[RB][QB];
#pragma unroll
            for (int r = 0; r < RB; ++r)
#pragma unroll
                for (int q = 0; q < QB; ++q) acc[r][q] = lanes_load(Y + YAT(i0 + r, q0 + q));
            for (int k = i0 + RB; k < P; ++k) {
                fvec w[QB];
#pragma unroll
                for (int q = 0; q < QB; ++q) w[q] = lanes_load(W + WAT(k, q0 + q));
#pragma unroll
                for (int r = 0; r < RB; ++r) {
                    const fvec l = lanes_load(L + ROW(k) + (size_t)(i0 + r) * stride);
#pragma unroll
                    for (int q = 0; q < QB; ++q) acc[r][q] = fma(-l, w[q], acc[r][q]);
                }
            }
#pragma unroll
            for (int r = RB - 1; r >= 0; --r) {
                const fvec inverse = lanes_load(L + ROW(i0 + r) + (size_t)(i0 + r) * stride);
#pragma unroll
                for (int d = r + 1; d < RB; ++d) {
                    const fvec l = lanes_load(L + ROW(i0 + d) + (size_t)(i0 + r) * stride);
#pragma unroll
                    for (int q = 0; q < QB; ++q) acc[r][q] = fma(-l, acc[d][q], acc[r][q]);
                }
#pragma unroll
                for (int q = 0; q < QB; ++q) {
                    acc[r][q] *= inverse;
                    lanes_store(acc[r][q], W + WAT(i0 + r, q0 + q));
                }
            }
        }
    }
}

__kernel void clv_paco_solve_rows(__global const float *restrict V, __global float *restrict W,
                                  __global float *restrict A, __global float *restrict rho_out,
                                  __global const int *restrict entry, __global const float *restrict B,
                                  __global const float *restrict F, __global float *restrict scratch,
                                  uint rows, uint first_band_row, uint tiles, uint pitch, uint lags,
                                  float frames, uint vip, uint workers
#if LANES > 1
                                  , float centre_row, float centre_column, float reach
#endif
)
{
    const uint width = pitch - 2 * CLV_PACO_PAD;
#if LANES == 1 /* neighbouring work-items access neighbouring elements */
    const size_t stride = workers;
    scratch_ptr L = scratch + get_global_id(0);
#else /* a worker's part stays in its cache */
    const size_t stride = LANES;
    scratch_ptr L = scratch + get_global_id(0) * (size_t)(P * (P + 1) / 2 + P * Q) * LANES;
#endif
    scratch_ptr Y = L + (size_t)(P * (P + 1) / 2) * stride;
    for (uint at = get_global_id(0); at < rows * tiles; at += workers) {
        const uint row = at / tiles, x = at % tiles * LANES;
#if LANES > 1
        const float dy = (float)row - centre_row;
        const float dx = fmax(fmax((float)x - centre_column, centre_column - (float)(x + LANES - 1)), 0.0f);
        if (dy * dy + dx * dx > reach * reach) { /* no valid position needs these patches */
            lanes_store((fvec)NAN, A + (size_t)row * MA * width + KEPT(x, 0, MA));
            continue;
        }
#endif
        __global const float *v = V + (size_t)(first_band_row + row) * lags * pitch + CLV_PACO_PAD + x;
        ivec usable;
        const fvec rho = shrinkage(v, entry, frames, vip, &usable);
        lanes_store(rho, rho_out + (size_t)row * width + x);
        factor(L, stride, v, entry, 1.0f - rho);
        forward(Y, L, stride, B);
        quadratic(A + (size_t)row * MA * width + KEPT(x, 0, MA), Y, stride, F, usable);
        backward(W + (size_t)row * P * Q * width + KEPT(x, 0, P * Q), L, Y, stride);
    }
}

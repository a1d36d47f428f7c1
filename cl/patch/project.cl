/* cl/patch/project.cl -- computes the terms a and b of a planet at the patches of a chunk, for every frame l.
 *
 * beta_q = sum_i W[i][q] D[l, k + o_i]. In frame l, patch k serves the map positions p whose rotated place rounds
 * to k. There are none, one, or two of them. Two are neighbours, so that the sum of row and column is even for one
 * and odd for the other, which selects the slot. With f the sub-pixel remainder:
 *   b(f) = sum_m X[m][.] . beta * phi_m(f)       a(f) = sum_m A[m] phi_m(f)
 * phi_m are the monomials of f's two components by total degree: 1, y, x, yy, yx, xx, ...
 * With SHIFTED 0 the PSF does not move: then b = beta and a = A[0], and there is one slot and no search.
 *
 * The geometry is computed in Q32 fixed point: exactly, and so equally on every device.
 *
 * Launch   3-D: global (tiles, rows, blocks of frames), local (1,1,1) on CPUs.
 * Defines  LANES, P, Q, MA, MB (terms of b), SHIFTED, FRAME_BLOCK frames at once.
 * Memory   W is read once per block of frames, and D from the cache; hits are written once. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"

#define QB (LANES == 1 || Q == 1 ? Q : 5) /* vectors q at once: 10 sums fit into the 16 registers of AVX2 */

#if SHIFTED
/* Computes phi up to the degree that the larger of MA and MB needs, each power from lower ones. */
static void monomials(fvec y, fvec x, fvec *phi)
{
    phi[0] = 1.0f;
    phi[1] = y, phi[2] = x;
    int last = 1, next = 3;
#pragma unroll
    for (int degree = 2; next < (MA > MB ? MA : MB); ++degree) {
#pragma unroll
        for (int i = 0; i < degree; ++i) phi[next + i] = phi[last + i] * y;
        phi[next + degree] = phi[last + degree - 1] * x;
        last = next;
        next += degree + 1;
    }
}

static fvec polynomial(const fvec *coefficient, const fvec *phi, int terms)
{
    fvec sum = coefficient[0];
#pragma unroll
    for (int m = 1; m < terms; ++m) sum = fma(coefficient[m], phi[m], sum);
    return sum;
}

/* Returns the offset of the Q32 coordinate `v` from the middle of its pixel, in [-0.5, 0.5). */
static fvec remainder_of(lvec v)
{
    return to_fvec(to_ivec((v & 0xffffffffL) - 0x80000000L)) * 0x1p-32f;
}

/* Returns whether a candidate position lies inside the patch pixel: both relative coordinates are in [0, 1). */
static ivec is_inside(lvec row, lvec col)
{
    return to_ivec(((row >> 32) | (col >> 32)) == 0L);
}
#endif

__kernel void clv_paco_project(__global const float *restrict D, __global const float *restrict W,
                               __global const float *restrict A, __global float *restrict hits,
                               __global const int *restrict pixel, __global const float *restrict X,
                               __global const rotation *restrict turn, uint rows,
                               uint first_band_row, uint row0, uint frames, uint pitch,
                               uint first_frame, uint last_frame, uint item_frames)
{
    const uint x = get_global_id(0) * LANES, row = get_global_id(1), width = pitch - 2 * CLV_PACO_PAD;
    if (x >= width || row >= rows) return;

    const uint from = first_frame + get_global_id(2) * item_frames;
    const uint to = min(from + item_frames, last_frame);
    __global const float *w = W + (size_t)row * P * Q * width + KEPT(x, 0, P * Q);
    __global const float *d0 = D + (size_t)(first_band_row + row) * frames * pitch + CLV_PACO_PAD + x;
#if LANES > 1
    if (all(isnan(lanes_load(A + (size_t)row * MA * width + KEPT(x, 0, MA))))) { /* unusable patches, or not needed */
        const uint slots = SHIFTED ? 2 : 1;
        for (uint at = from * slots; at < to * slots; ++at)
            lanes_store_pairs((fvec)NAN, (fvec)NAN, hits + (((size_t)row * frames * slots + at) * width + x) * 2);
        return;
    }
#endif
    fvec a[MA];
#pragma unroll
    for (int m = 0; m < MA; ++m) a[m] = lanes_load(A + (size_t)row * MA * width + KEPT(x, m, MA));

    for (uint l0 = from; l0 < to; l0 += FRAME_BLOCK) {
        fvec beta[FRAME_BLOCK][Q];
#pragma unroll
        for (int q0 = 0; q0 < Q; q0 += QB) {
            fvec sum[FRAME_BLOCK][QB];
#pragma unroll
            for (int l = 0; l < FRAME_BLOCK; ++l)
#pragma unroll
                for (int q = 0; q < QB; ++q) sum[l][q] = 0.0f;
            for (int i = 0; i < P; ++i) {
                fvec d[FRAME_BLOCK];
#pragma unroll
                for (int l = 0; l < FRAME_BLOCK; ++l) /* a block past the end repeats the last frame */
                    d[l] = lanes_load(d0 + pixel[i] + (size_t)min(l0 + l, to - 1) * pitch);
#pragma unroll
                for (int q = 0; q < QB; ++q) {
                    const fvec wi = lanes_load(w + (i * Q + q0 + q) * TILE);
#pragma unroll
                    for (int l = 0; l < FRAME_BLOCK; ++l) sum[l][q] = fma(wi, d[l], sum[l][q]);
                }
            }
#pragma unroll
            for (int l = 0; l < FRAME_BLOCK; ++l)
#pragma unroll
                for (int q = 0; q < QB; ++q) beta[l][q0 + q] = sum[l][q];
        }
#pragma unroll
        for (int l = 0; l < FRAME_BLOCK; ++l) {
            if (l0 + l >= to) break;
#if SHIFTED
            fvec b[MB];
#pragma unroll
            for (int m = 0; m < MB; ++m) {
                b[m] = X[m * Q] * beta[l][0];
#pragma unroll
                for (int q = 1; q < Q; ++q) b[m] = fma((fvec)X[m * Q + q], beta[l][q], b[m]);
            }
            /* this pixel's middle in the map, and the position at its upper left */
            const rotation r = turn[l0 + l];
            const lvec ky = (long)(row0 + row), kx = (long)x + to_lvec(lanes_iota());
            const lvec py = (ky * r.c + kx * r.s + r.back_row0) >> 32;
            const lvec px = (kx * r.c - ky * r.s + r.back_col0) >> 32;
            const lvec y00 = py * r.c - px * r.s + r.row0 - (ky << 32);
            const lvec x00 = px * r.c + py * r.s + r.col0 - (kx << 32);
            const ivec odd = to_ivec(((py + px) & 1L) == 1L);
            __global float *out = hits + (((size_t)row * frames + l0 + l) * 2 * width + x) * 2;
            /* (0,0) and (1,1) have one parity, (0,1) and (1,0) the other; never do both of a pair lie inside */
            fvec value[2][2];
#pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
                const lvec ya = pair ? y00 - r.s : y00, xa = pair ? x00 + r.c : x00;
                const lvec yb = pair ? y00 + r.c : y00 + r.c - r.s;
                const lvec xb = pair ? x00 + r.s : x00 + r.c + r.s;
                const ivec first = is_inside(ya, xa);
                const fvec fy = pick(first, remainder_of(ya), remainder_of(yb));
                const fvec fx = pick(first, remainder_of(xa), remainder_of(xb));
                fvec phi[36];
                monomials(fy, fx, phi);
                value[pair][0] = polynomial(a, phi, MA);
                value[pair][1] = polynomial(b, phi, MB);
            }
            lanes_store_pairs(pick(odd, value[1][0], value[0][0]),
                              pick(odd, value[1][1], value[0][1]), out);
            lanes_store_pairs(pick(odd, value[0][0], value[1][0]),
                              pick(odd, value[0][1], value[1][1]), out + 2 * (size_t)width);
#else
            lanes_store_pairs(a[0], beta[l][0],
                              hits + (((size_t)row * frames + l0 + l) * width + x) * 2);
#endif
        }
    }
}

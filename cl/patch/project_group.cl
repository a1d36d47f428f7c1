/* patch/project_group.cl -- computes the same as patch/project.cl for GPUs, and reads W only once.
 *
 * A work-group takes PATCHES neighbouring patches, keeps their W in local memory, and visits all frames: each of
 * its 256 work-items takes FRAME_BLOCK frames of one patch at a time. The frames of a wave are consecutive, so
 * that few waves are partly idle at the end of the frames.
 *
 * Launch   2-D: global (width / TILE * 256, rows), local (256, 1).
 * Defines  LANES 1, TILE 1; PATCHES of a work-group; P, Q, MA, MB, SHIFTED as in patch/project.cl; FRAME_BLOCK.
 * Needs    OpenCL C 1.2; local memory of PATCHES * (KEEP_A + KEEP) + MB * KEEP_X floats, an argument.
 * Memory   W and A are read once, and hits are written once. A work-group reads PATCHES + 2 radius columns of D, from
 *          the cache.
 * Order    Sums have the order of patch/project.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "patch/paco.clh"
#include "common/waves.clh"

#define WG CLV_PACO_PROJECT_GROUP
#define SPAN (WG / PATCHES * FRAME_BLOCK) /* frames that a work-group takes at a time */
#define SIDE 4 /* frames that are neighbours in a wave */
#define DEGREES (MA > 15 ? 6 : 5)
#define UNROLL _Pragma("unroll")

/* Local memory; project_floats of host/patch/paco_family.c computes the same. Patches are KEEP floats apart, twice an
 * odd number where Q is even and otherwise an odd number, so that neighbours are in different banks. */
#define KEEP (P * Q + (Q % 2 ? 1 - P % 2 : P * Q % 4 == 2 ? 0 : 2))
#define KEEP_A CLV_PACO_KEEP_A
#define KEEP_X ((Q + 3) / 4 * 4)

#if SHIFTED
/* Returns the offset of the Q32 coordinate `v` from the middle of its pixel, in [-0.5, 0.5). */
static float remainder_of(long v)
{
    return convert_float((int)((v & 0xffffffffL) - 0x80000000L)) * 0x1p-32f;
}

/* Returns the offset (fy, fx), from the middle of its pixel, of the position that has one parity. (0,0) and (1,1) have
 * one parity, (0,1) and (1,0) the other; never do both positions of a pair lie inside. */
static float2 place_of(long ya, long xa, long yb, long xb)
{
    const bool first = ((ya >> 32) | (xa >> 32)) == 0L;
    return (float2)(remainder_of(first ? ya : yb), remainder_of(first ? xa : xb));
}
#endif

/* Elements of W are read in pairs if Q is even. */
#if Q % 2 == 0
#define TAKE_W(i)                                                        \
    UNROLL for (int q = 0; q < Q; q += 2) {                              \
        const float2 both = *(__local const float2 *)(w + (i)*Q + q);    \
        wi[q] = both.x, wi[q + 1] = both.y;                              \
    }
#else
#define TAKE_W(i) UNROLL for (int q = 0; q < Q; ++q) wi[q] = w[(i)*Q + q];
#endif
/* Adds pixel i of the patch to the sums of all frames. */
#define ADD_PIXEL(i)                                                                                      \
    {                                                                                                     \
        const int near = pixel[i];                                                                        \
        float d[FRAME_BLOCK], wi[Q];                                                                      \
        UNROLL for (int l = 0; l < FRAME_BLOCK; ++l) d[l] = d0[l][near];                                  \
        TAKE_W(i)                                                                                         \
        UNROLL for (int q = 0; q < Q; ++q)                                                                \
            UNROLL for (int l = 0; l < FRAME_BLOCK; ++l) beta[l][q] = fma(wi[q], d[l], beta[l][q]);       \
    }

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) WAVES(3) void
clv_paco_project_group(__global const float *restrict D, __global const float *restrict W,
                       __global const float *restrict A, __global float *restrict hits,
                       __global const int *restrict pixel, __global const float *restrict X,
                       __global const rotation *restrict turn, uint rows, uint first_band_row, uint row0,
                       uint frames, uint pitch, __local float *restrict memory)
{
    __local float *a = memory, *xs = a + PATCHES * KEEP_A, *w = xs + MB * KEEP_X;
    const uint id = get_local_id(0), patch = id % PATCHES, share = id / PATCHES;
    const uint x0 = get_group_id(0) * PATCHES, x = x0 + patch, row = get_group_id(1), width = pitch - 2 * CLV_PACO_PAD;

    __global const float *from = W + (size_t)row * P * Q * width + (size_t)x0 * (P * Q);
    for (uint e = id; e < PATCHES * P * Q; e += WG) w[e / (P * Q) * KEEP + e % (P * Q)] = from[e];
    from = A + (size_t)row * MA * width + (size_t)x0 * MA;
    for (uint e = id; e < PATCHES * MA; e += WG) a[e / MA * KEEP_A + e % MA] = from[e];
    for (uint e = id; e < MB * Q; e += WG) xs[e / Q * KEEP_X + e % Q] = X[e];
    barrier(CLK_LOCAL_MEM_FENCE);
    w += patch * KEEP, a += patch * KEEP_A;

    const uint plane = frames * pitch;
    D += (size_t)(first_band_row + row) * plane + CLV_PACO_PAD + x;
    for (uint l0 = share / SIDE * (SIDE * FRAME_BLOCK) + share % SIDE; l0 < frames; l0 += SPAN) {
        __global const float *d0[FRAME_BLOCK]; /* a block past the end repeats the last frame */
        float beta[FRAME_BLOCK][Q];
        UNROLL for (int l = 0; l < FRAME_BLOCK; ++l) {
            d0[l] = D + min(l0 + SIDE * l, frames - 1) * pitch;
            UNROLL for (int q = 0; q < Q; ++q) beta[l][q] = 0.0f;
        }
        _Pragma("unroll 1") for (int i = 0; i + 1 < P; i += 2) {
            ADD_PIXEL(i)
            ADD_PIXEL(i + 1)
        }
        if (P % 2) ADD_PIXEL(P - 1)
#if SHIFTED
        /* The sums of every frame are moved to the place of the first frame: if a variable indexed the array, compilers
         * would keep all sums in memory. */
        _Pragma("unroll 1") for (uint frame = l0; frame < min(l0 + SIDE * FRAME_BLOCK, frames); frame += SIDE) {
            mem_fence(CLK_LOCAL_MEM_FENCE); /* otherwise all coefficients would be kept in registers */
            /* this pixel's middle in the map, and the position at its upper left */
            const rotation r = turn[frame];
            const long ky = (long)(row0 + row), kx = (long)x;
            const long py = (ky * r.c + kx * r.s + r.back_row0) >> 32;
            const long px = (kx * r.c - ky * r.s + r.back_col0) >> 32;
            const long y00 = py * r.c - px * r.s + r.row0 - (ky << 32);
            const long x00 = px * r.c + py * r.s + r.col0 - (kx << 32);
            const float2 even = place_of(y00, x00, y00 + r.c - r.s, x00 + r.c + r.s);
            const float2 other = place_of(y00 - r.s, x00 + r.c, y00 + r.c, x00 + r.s);
            const bool odd = ((py + px) & 1L) == 1L;
            const float2 f0 = odd ? other : even, f1 = odd ? even : other; /* of both slots */
            /* evaluates the polynomials (a, b) of both slots degree by degree: the powers y^(d - t) x^t are computed
             * from those of the degree below */
            float4 sum = (float4)(0.0f);
            float2 power[DEGREES];
            UNROLL for (int degree = 0; degree < DEGREES; ++degree) {
                power[degree] = (float2)(1.0f);
                if (degree) power[degree] = power[degree ? degree - 1 : 0] * (float2)(f0.y, f1.y);
                UNROLL for (int t = 0; t < DEGREES; ++t)
                    if (t < degree) power[t] *= (float2)(f0.x, f1.x);
                UNROLL for (int t = 0; t < DEGREES; ++t) {
                    const int m = degree * (degree + 1) / 2 + t;
                    if (t > degree) continue;
                    if (m < MA) {
                        const float4 fours = *(__local const float4 *)(a + m / 4 * 4);
                        const float c = m % 4 == 0 ? fours.x : m % 4 == 1 ? fours.y : m % 4 == 2 ? fours.z : fours.w;
                        sum.x = m ? fma(c, power[t].x, sum.x) : c;
                        sum.z = m ? fma(c, power[t].y, sum.z) : c;
                    }
                    if (m < MB) {
                        float b = 0.0f;
                        UNROLL for (int q = 0; q < Q; q += 4) {
                            const float4 c = *(__local const float4 *)(xs + m * KEEP_X + q);
                            b = q ? fma(c.x, beta[0][q], b) : c.x * beta[0][0];
                            if (q + 1 < Q) b = fma(c.y, beta[0][q + 1 < Q ? q + 1 : 0], b);
                            if (q + 2 < Q) b = fma(c.z, beta[0][q + 2 < Q ? q + 2 : 0], b);
                            if (q + 3 < Q) b = fma(c.w, beta[0][q + 3 < Q ? q + 3 : 0], b);
                        }
                        sum.y = m ? fma(b, power[t].x, sum.y) : b;
                        sum.w = m ? fma(b, power[t].y, sum.w) : b;
                    }
                }
            }
            __global float *out = hits + (((size_t)row * frames + frame) * 2 * width + x) * 2;
            vstore2(sum.xy, 0, out);
            vstore2(sum.zw, 0, out + 2 * (size_t)width);
            UNROLL for (int l = 0; l + 1 < FRAME_BLOCK; ++l)
                UNROLL for (int q = 0; q < Q; ++q) beta[l][q] = beta[l + 1][q];
        }
#else
        UNROLL for (int l = 0; l < FRAME_BLOCK; ++l) {
            const uint frame = l0 + SIDE * l;
            if (frame < frames)
                vstore2((float2)(a[0], beta[l][0]), 0, hits + (((size_t)row * frames + frame) * width + x) * 2);
        }
#endif
    }
}

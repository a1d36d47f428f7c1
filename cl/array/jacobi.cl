/* cl/array/jacobi.cl -- eigenvalues of many small symmetric matrices by cyclic Jacobi rotations
 * (Golub and Van Loan, Matrix Computations, 8.5), LANES matrices at a time.
 *
 * Scratch: the lower triangles, element e of matrix m at (m / LANES * e_count + e) * LANES +
 * m % LANES for LANES > 1, at e * pitch + m for LANES 1 (neighbours are work-items); after the
 * triangles come the sum of squares of each matrix, and the power of two by which its values were
 * divided, so that no number overflows or underflows. e_count = N(N+1)/2 + 2.
 * A converged matrix is not rotated any more, so its values do not depend on the other lanes' matrices.
 *
 * Defines: LANES (1 for GPUs, 16 for CPUs), N. Roofline: about 4 N^3 flop per sweep and 4 N^2 bytes
 * that stay in cache: bound by arithmetic. */
#include "common/lanes.clh"

#define SQUARES (N * (N + 1) / 2)
#define SCALE (SQUARES + 1)
#define E_COUNT (SQUARES + 2)
#define AT(i, j) ((i) * ((i) + 1) / 2 + (j)) /* i >= j */

#if LANES == 1
#define PLACE(block) (scratch + (block))
#define PITCH pitch
#define LEFT(count, block) ((block) < (count))
#else
#define PLACE(block) (scratch + (block) * (E_COUNT * (size_t)LANES))
#define PITCH LANES
#define LEFT(count, block) ((block) * LANES < (count))
#endif

#define GET(e) lanes_load(m + (size_t)(e) * PITCH)
#define SET(e, v) lanes_store(v, m + (size_t)(e) * PITCH)

/* Loads the lower triangles of matrices [0, count) into the scratch; lanes beyond `count` are 0. */
__kernel void clv_array_jacobi_load(__global const float *a, ulong offset, __global float *scratch,
                                    ulong pitch, uint count)
{
    const size_t block = get_global_id(0);
    if (!LEFT(count, block)) return;
    __global float *m = PLACE(block);
    fvec largest = (fvec)(0.0f);
    for (uint i = 0; i < N; ++i)
        for (uint j = 0; j <= i; ++j) {
#if LANES == 1
            const float v = a[offset + (block * N + i) * N + j];
#else
            float lane[LANES];
            for (uint l = 0; l < LANES; ++l) {
                const size_t which = block * LANES + l;
                lane[l] = which < count ? a[offset + (which * N + i) * N + j] : 0.0f;
            }
            const fvec v = LANES_JOIN(vload, LANES)(0, lane);
#endif
            SET(AT(i, j), v);
            largest = fmax(largest, fabs(v));
        }
    const ivec e = clamp(as_ivec(largest) >> 23, (ivec)(1), (ivec)(253));
    const fvec down = as_fvec(((ivec)(254) - e) << 23);
    fvec squares = (fvec)(0.0f);
    for (uint i = 0; i < N; ++i)
        for (uint j = 0; j <= i; ++j) {
            const fvec v = GET(AT(i, j)) * down;
            SET(AT(i, j), v);
            squares = fma(v * (i == j ? 1.0f : 2.0f), v, squares);
        }
    SET(SQUARES, squares);
    SET(SCALE, as_fvec(e << 23));
}

/* Applies the rotation that makes element (q,p) 0, q > p, in the lanes that are `active`. An element whose square does
 * not exceed `nothing` is set to 0 without a rotation: arithmetic on denormal numbers would take most of the time. */
static void rotate(__global float *m, ulong pitch, uint p, uint q, fvec active, fvec nothing)
{
    const fvec x = GET(AT(q, p)), app = GET(AT(p, p)), aqq = GET(AT(q, q));
    const fvec zero = (fvec)(0.0f), one = (fvec)(1.0f);
    const fvec h = (aqq - app) * 0.5f;
    /* t = tan of the smaller angle */
    const fvec root = fabs(h) + sqrt(fma(h, h, x * x));
    const fvec turn = pick(x * x > nothing, active, zero);
    const fvec t = pick(turn != zero, pick(h < zero, -x, x) / pick(turn != zero, root, one), zero);
    const fvec c = one / sqrt(fma(t, t, one)), s = t * c;
    SET(AT(p, p), fma(-t, x, app));
    SET(AT(q, q), fma(t, x, aqq));
    SET(AT(q, p), pick(active != zero, zero, x));
    for (uint k = 0; k < N; ++k) {
        if (k == p || k == q) continue;
        const uint ep = k < p ? AT(p, k) : AT(k, p), eq = k < q ? AT(q, k) : AT(k, q);
        const fvec u = GET(ep), v = GET(eq);
        SET(ep, fma(c, u, -s * v));
        SET(eq, fma(c, v, s * u));
    }
}

/* Does the rotations of rows [first, last) in a sweep. */
__kernel void clv_array_jacobi_sweep(__global float *scratch, ulong pitch, uint count, uint first,
                                     uint last)
{
    const size_t block = get_global_id(0);
    if (!LEFT(count, block)) return;
    __global float *m = PLACE(block);
    fvec off = (fvec)(0.0f);
    for (uint i = 1; i < N; ++i)
        for (uint j = 0; j < i; ++j) {
            const fvec v = GET(AT(i, j));
            off = fma(v, v, off);
        }
    /* the eigenvalues' errors are below `off` divided by the gaps between eigenvalues: if the root of `off` is 2^-26 of
     * the norm, float32 cannot represent them */
    const fvec squares = GET(SQUARES);
    const fvec active = pick(off > 0x1p-52f * squares, (fvec)(1.0f), (fvec)(0.0f));
    if (!lanes_any(active > (fvec)(0.0f))) return;
    for (uint p = first; p < last; ++p)
        for (uint q = p + 1; q < N; ++q)
            rotate(m, pitch, p, q, active, 0x1p-64f * squares);
}

/* out[matrix,N] = the diagonals. */
__kernel void clv_array_jacobi_store(__global const float *scratch, ulong pitch, uint count,
                                     __global float *out)
{
    const size_t block = get_global_id(0);
    if (!LEFT(count, block)) return;
    __global const float *m = PLACE(block);
    for (uint i = 0; i < N; ++i) {
#if LANES == 1
        out[block * N + i] = GET(AT(i, i)) * GET(SCALE);
#else
        float lane[LANES];
        LANES_JOIN(vstore, LANES)(GET(AT(i, i)) * GET(SCALE), 0, lane);
        for (uint l = 0; l < LANES && block * LANES + l < count; ++l)
            out[(block * LANES + l) * N + i] = lane[l];
#endif
    }
}

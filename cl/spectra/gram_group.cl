/* cl/spectra/gram_group.cl -- computes the sums of gram.clh by work-groups, for GPUs: a group takes a segment of 64
 * pixels.
 *
 * The terms of a pixel are the rows of a matrix [row][pixel] in local memory. Each work-item first computes the rows
 * of one pixel; neighbouring work-items read neighbouring pixels. Then it computes 2 x 2 sums of products of two rows,
 * four pixels at a time.
 *
 * clv_spectra_gram_group:   has the rows S_0 .. S_(N-1) and D, and computes the sums of S_i S_j and S_i D. These are
 *                           symmetric, so it computes only a triangle of them, and each work-item takes one of PARTS
 *                           parts of the pixels.
 * clv_spectra_around_group: has the rows g of 6 differences, S_0 .. S_(N-1) and r, and computes the sums of products of
 *                           each row with g and r, over all pixels. Then it replaces the first rows by the terms of the
 *                           slope of log det M and of the residual of unmasked pixels, and adds these.
 * Launch   x: segments * 64, y: items; local (64, 1).
 * Defines  NPOLY continuum terms, at most 15.
 * Order    Each product has four sums, of every fourth pixel in order, which are joined at the end; `gram` then joins
 *          its parts. */
#include "common/waves.clh"
#include "spectra/spectra.clh"

#define PIXELS CLV_SPECTRA_SEGMENT
#define PITCH (PIXELS + 4) /* floats from row to row; a multiple of 4, and rows begin in other banks */
#define LANES_OF_G 6       /* lanes 1 .. 6; 0 and 7 have no difference */
#define FOURS ((NPOLY + 3) / 4)
#define PAIRS ((NPOLY + 2) / 2) /* pairs of the rows S and D */
#define BLOCKS (PAIRS * (PAIRS + 1) / 2)
#define PARTS (BLOCKS < 4 ? PIXELS / 4 : PIXELS / BLOCKS) /* parts of the pixels; a part has at least four */

static float sum_of(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* Returns the sums of the products of two rows with two others, (a0 b0, a0 b1, a1 b0, a1 b1), over every `step`-th
 * group of four pixels from group `first` on. */
static float4 products(__local const float4 *a0, __local const float4 *a1, __local const float4 *b0,
                       __local const float4 *b1, int first, int step)
{
    float4 s00 = 0.0f, s01 = 0.0f, s10 = 0.0f, s11 = 0.0f;
#pragma unroll 4
    for (int k = first; k < PIXELS / 4; k += step) {
        const float4 x = a0[k], y = a1[k], u = b0[k], v = b1[k];
        s00 = fma(x, u, s00), s01 = fma(x, v, s01);
        s10 = fma(y, u, s10), s11 = fma(y, v, s11);
    }
    return (float4)(sum_of(s00), sum_of(s01), sum_of(s10), sum_of(s11));
}

__kernel __attribute__((reqd_work_group_size(PIXELS, 1, 1))) void
clv_spectra_gram_group(__global const float *restrict pixels, __global const float2 *restrict data,
                       __global const float *restrict basis, __global const float *restrict state,
                       __global const int *restrict list, __global float *restrict out,
                       int all_pixels)
{
    __local float row[(NPOLY + 1) * PITCH] __attribute__((aligned(16)));
    const int at = (int)get_global_id(1), me = (int)get_local_id(0), seg = (int)get_group_id(0);
    if (at >= list[0]) return; /* all of the group */
    const int item = list[1 + at], star = (int)state[(size_t)item * CLV_SPECTRA_STATE + CLV_S_STAR];
    const size_t pixel = get_global_id(0);
    const float2 point = data[(size_t)star * all_pixels + pixel];
    const float scale = pixels[((size_t)item * all_pixels + pixel) * 8] * fabs(point.x);
#pragma unroll
    for (int i = 0; i < FOURS; ++i) {
        const float4 s = vload4(pixel * 4 + i, basis) * scale;
        row[4 * i * PITCH + me] = s.x;
        if (4 * i + 1 < NPOLY) row[(4 * i + 1) * PITCH + me] = s.y;
        if (4 * i + 2 < NPOLY) row[(4 * i + 2) * PITCH + me] = s.z;
        if (4 * i + 3 < NPOLY) row[(4 * i + 3) * PITCH + me] = s.w;
    }
    row[NPOLY * PITCH + me] = point.y;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int part = me / BLOCKS, block = me % BLOCKS;
    int right = 0; /* block right (right + 1) / 2 + left holds the products of pairs left <= right */
#pragma unroll
    for (int r = 1; r < PAIRS; ++r)
        right += block >= r * (r + 1) / 2;
    const int left = block - right * (right + 1) / 2;
    __local const float4 *from = (__local const float4 *)row;
    float4 sum = 0.0f;
    if (part < PARTS)
        sum = products(from + 2 * left * (PITCH / 4), from + min(2 * left + 1, NPOLY) * (PITCH / 4),
                       from + 2 * right * (PITCH / 4), from + min(2 * right + 1, NPOLY) * (PITCH / 4), part, PARTS);
    barrier(CLK_LOCAL_MEM_FENCE); /* the sums take the place of the rows */
    __local float4 *sums = (__local float4 *)row;
    if (part < PARTS) sums[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int i = me / 8 * 2, j = me % 8 * 2; /* of 16 x 16; sums beyond the last row are not kept */
    const int low = min(min(i, j) / 2, PAIRS - 1), high = min(max(i, j) / 2, PAIRS - 1);
    sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
        sum += sums[p * BLOCKS + high * (high + 1) / 2 + low];
    if (i > j) sum = sum.s0213;
    const int segments = all_pixels / PIXELS;
    __global float *o = out + ((size_t)item * segments + seg) * CLV_SPECTRA_AROUND + i * 16 + j;
    const float2 beyond = (float2)(j <= NPOLY ? 1.0f : 0.0f, j + 1 <= NPOLY ? 1.0f : 0.0f);
    if (i < NPOLY) vstore2(beyond.x > 0.0f ? (float2)(sum.x, beyond.y > 0.0f ? sum.y : 0.0f) : (float2)(0.0f), 0, o);
    if (i + 1 < NPOLY)
        vstore2(beyond.x > 0.0f ? (float2)(sum.z, beyond.y > 0.0f ? sum.w : 0.0f) : (float2)(0.0f), 0,
                o + 16);
}

/* Returns the index in the result of the sum of row `a` (g, S, r) with column `b` (g, r); -1 if it is not stored. */
static int place_of(int a, int b)
{
    if (a > LANES_OF_G + NPOLY || b > LANES_OF_G) return -1;
    const bool last = b == LANES_OF_G;
    if (a < LANES_OF_G) return last ? -1 : CLV_A_NORMAL + (a + 1) * 8 + b + 1;
    if (a < LANES_OF_G + NPOLY) {
        const int i = a - LANES_OF_G;
        return last ? CLV_A_REST + i : CLV_A_CROSS + i * 8 + b + 1;
    }
    return last ? CLV_A_CHI : CLV_A_SLOPE + b + 1;
}

static void keep(__global float *o, int a, int b, float sum)
{
    const int place = place_of(a, b);
    if (place >= 0) o[place] = sum;
}

__kernel WAVES(NPOLY > 11 ? 2 : 3) __attribute__((reqd_work_group_size(PIXELS, 1, 1))) void
clv_spectra_around_group(__global const float *restrict pixels, __global const float2 *restrict data,
                         __global const float *restrict basis, __global const float *restrict state,
                         __global const int *restrict list, __global const int *restrict owner,
                         __global const float *restrict solved, __global float *restrict out,
                         int all_pixels, int spectra)
{
    __local float row[(LANES_OF_G + NPOLY + 1) * PITCH] __attribute__((aligned(16)));
    const int at = (int)get_global_id(1), me = (int)get_local_id(0), seg = (int)get_group_id(0);
    if (at >= list[0]) return; /* all of the group */
    const int item = list[1 + at], segments = all_pixels / PIXELS;
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global const float *v = solved + ((size_t)item * spectra + owner[seg]) * CLV_SPECTRA_SOLVED;
    __global float *o = out + ((size_t)item * segments + seg) * CLV_SPECTRA_AROUND;
    const size_t pixel = get_global_id(0);
    for (int i = me; i < CLV_SPECTRA_AROUND; i += PIXELS) /* lanes without a difference stay zero */
        o[i] = 0.0f;
    float p[4 * FOURS], q[NPOLY], continuum = 0.0f, length = 0.0f;
#pragma unroll
    for (int i = 0; i < FOURS; ++i) {
        const float4 four = vload4(pixel * 4 + i, basis);
        p[4 * i] = four.x, p[4 * i + 1] = four.y, p[4 * i + 2] = four.z, p[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < NPOLY; ++i) { /* L^-1 is a lower triangle; each column is stored as a row of 16 */
        q[i] = 0.0f;
#pragma unroll
        for (int k = 0; k <= i; ++k)
            q[i] = fma(v[CLV_V_INVERSE + k * 16 + i], p[k], q[i]);
        length = fma(q[i], q[i], length);
        continuum = fma(v[CLV_V_A + i], p[i], continuum);
    }
    const float2 point = data[(size_t)s[CLV_S_STAR] * all_pixels + pixel];
    const float weight = fabs(point.x);
    const float8 here = vload8((size_t)item * all_pixels + pixel, pixels);
    const float scaled = here.s0 * weight, r = point.y - continuum * scaled;
    const float8 per_step =
        (float8)(0.0f, 1.0f / s[CLV_S_STEP + 1], 1.0f / s[CLV_S_STEP + 2], 1.0f / s[CLV_S_STEP + 3],
                 1.0f / s[CLV_S_STEP + 4], 1.0f / s[CLV_S_STEP + 5], 1.0f / s[CLV_S_STEP], 0.0f);
    const float8 change = (here - (float8)(here.s0)) * per_step * weight, g = change * continuum;
    row[0 * PITCH + me] = g.s1, row[1 * PITCH + me] = g.s2, row[2 * PITCH + me] = g.s3;
    row[3 * PITCH + me] = g.s4, row[4 * PITCH + me] = g.s5, row[5 * PITCH + me] = g.s6;
#pragma unroll
    for (int i = 0; i < NPOLY; ++i)
        row[(LANES_OF_G + i) * PITCH + me] = p[i] * scaled;
    row[(LANES_OF_G + NPOLY) * PITCH + me] = r;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const int last = LANES_OF_G + NPOLY;
    const int a = me / 4 * 2, b = me % 4 * 2, b1 = b + 1 < LANES_OF_G ? b + 1 : last;
    __local const float4 *from = (__local const float4 *)row;
    const float4 sum = products(from + min(a, last) * (PITCH / 4), from + min(a + 1, last) * (PITCH / 4),
                                from + (b < LANES_OF_G ? b : last) * (PITCH / 4), from + b1 * (PITCH / 4), 0, 1);
    keep(o, a, b, sum.x), keep(o, a, b + 1, sum.y);
    keep(o, a + 1, b, sum.z), keep(o, a + 1, b + 1, sum.w);
    barrier(CLK_LOCAL_MEM_FENCE);
    const float8 det = change * (2.0f * scaled * length);
    row[0 * PITCH + me] = det.s1, row[1 * PITCH + me] = det.s2, row[2 * PITCH + me] = det.s3;
    row[3 * PITCH + me] = det.s4, row[4 * PITCH + me] = det.s5, row[5 * PITCH + me] = det.s6;
    row[6 * PITCH + me] = point.x > 0.0f ? r * r : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me > LANES_OF_G) return;
    float4 total = 0.0f;
    for (int k = 0; k < PIXELS / 4; ++k)
        total += from[me * (PITCH / 4) + k];
    o[me < LANES_OF_G ? CLV_A_DET + me + 1 : CLV_A_CHI_GOOD] = sum_of(total);
}

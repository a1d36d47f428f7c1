/* cl/spectra/gram.cl -- normal equations of the continuum and what surrounds their solution.
 *
 * With S_j = P_j t / s and D = d / s of a pixel:
 * clv_spectra_gram:   per segment the sums of S_i S_j, and of S_i D in column NPOLY.
 * clv_spectra_around: per segment, at the solution a: r = D - a.S, g = (a.P) dt / s for each
 *                     difference, and the sums of g g', S g', g r, S r, r r, and the slope of
 *                     log det M: 2 (t/s)(dt/s) P' M^-1 P.
 * clv_spectra_model:  the best fit, (a.P) t, in units of the data.
 * Launch   x: SPAN segments, y: items; local (WG, 1).
 * Defines  NPOLY continuum terms, at most 15; SPAN segments of one work-item; WG.
 * Memory   pixels [item][pixels][8], data [star][pixels] of (1/s, d/s), 1/s < 0: masked. */
#include "common/loose.clh"
#include "spectra/spectra.clh"

__kernel void clv_spectra_gram(__global const float *restrict pixels,
                               __global const float2 *restrict data,
                               __global const float *restrict basis,
                               __global const float *restrict state,
                               __global const int *restrict list, __global float *restrict out,
                               int all_pixels)
{
    const int at = (int)get_global_id(1), segments = all_pixels / CLV_SPECTRA_SEGMENT;
    const int first = (int)get_global_id(0) * SPAN, last = min(first + SPAN, segments);
    if (at >= list[0]) return;
    const int item = list[1 + at], star = (int)state[(size_t)item * CLV_SPECTRA_STATE + CLV_S_STAR];
    __global const float *t = pixels + (size_t)item * all_pixels * 8;
    __global const float2 *d = data + (size_t)star * all_pixels;
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const float16 data_column = select((float16)(0.0f), (float16)(1.0f), lane == NPOLY);
    for (int seg = first; seg < last; ++seg) {
        float16 sum[NPOLY];
#pragma unroll
        for (int i = 0; i < NPOLY; ++i)
            sum[i] = 0.0f;
        for (int k = seg * CLV_SPECTRA_SEGMENT; k < (seg + 1) * CLV_SPECTRA_SEGMENT; ++k) {
            const float2 point = d[k];
            __global const float *p = basis + (size_t)k * 16; /* zero from NPOLY on */
            const float scale = t[(size_t)k * 8] * fabs(point.x);
            const float16 v = fma(data_column, (float16)(point.y * scale),
                                  load16(0, p) * (scale * scale));
#pragma unroll
            for (int i = 0; i < NPOLY; ++i)
                sum[i] = fma((float16)(p[i]), v, sum[i]);
        }
        __global float *o = out + ((size_t)item * segments + seg) * CLV_SPECTRA_AROUND;
        for (int i = 0; i < NPOLY; ++i)
            store16(sum[i], i, o);
    }
}

static float total8(float8 v)
{
    const float4 a = v.lo + v.hi;
    const float2 b = a.lo + a.hi;
    return b.x + b.y;
}

static float total16(float16 v)
{
    return total8(v.lo + v.hi);
}

__kernel void clv_spectra_around(__global const float *restrict pixels,
                                 __global const float2 *restrict data,
                                 __global const float *restrict basis,
                                 __global const float *restrict state,
                                 __global const int *restrict list,
                                 __global const int *restrict owner,
                                 __global const float *restrict solved,
                                 __global float *restrict out, int all_pixels, int spectra)
{
    const int at = (int)get_global_id(1), segments = all_pixels / CLV_SPECTRA_SEGMENT;
    const int first = (int)get_global_id(0) * SPAN, last = min(first + SPAN, segments);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global const float *t = pixels + (size_t)item * all_pixels * 8;
    __global const float2 *d = data + (size_t)s[CLV_S_STAR] * all_pixels;
    const float8 per_step =
        (float8)(0.0f, 1.0f / s[CLV_S_STEP + 1], 1.0f / s[CLV_S_STEP + 2], 1.0f / s[CLV_S_STEP + 3],
                 1.0f / s[CLV_S_STEP + 4], 1.0f / s[CLV_S_STEP + 5], 1.0f / s[CLV_S_STEP], 0.0f);
    for (int seg = first; seg < last; ++seg) {
        __global const float *v = solved + ((size_t)item * spectra + owner[seg]) * CLV_SPECTRA_SOLVED;
        const float16 a = load16(0, v + CLV_V_A);
        float8 normal[8], cross[NPOLY], slope = 0.0f, det = 0.0f;
        float16 rest = 0.0f;
        float chi = 0.0f, good = 0.0f;
        for (int i = 0; i < 8; ++i)
            normal[i] = 0.0f;
        for (int i = 0; i < NPOLY; ++i)
            cross[i] = 0.0f;
        for (int k = seg * CLV_SPECTRA_SEGMENT; k < (seg + 1) * CLV_SPECTRA_SEGMENT; ++k) {
            const float2 point = d[k];
            const float weight = fabs(point.x);
            float16 p = load16(k, basis);
            const float *lane = (const float *)&p;
            float16 q = 0.0f;
            for (int i = 0; i < NPOLY; ++i)
                q = fma(load16(i, v + CLV_V_INVERSE), (float16)(lane[i]), q);
            const float8 here = load8(k, t);
            const float continuum = total16(a * p), scaled = here.s0 * weight;
            const float r = point.y - continuum * scaled;
            const float8 change = (here - (float8)(here.s0)) * per_step * weight;
            float8 g = change * continuum;
            const float *g_lane = (const float *)&g;
            const float16 design = p * scaled;
            for (int i = 1; i < 7; ++i)
                normal[i] = fma((float8)(g_lane[i]), g, normal[i]);
            for (int i = 0; i < NPOLY; ++i)
                cross[i] = fma((float8)(lane[i] * scaled), g, cross[i]);
            slope = fma((float8)(r), g, slope);
            det = fma((float8)(2.0f * scaled * total16(q * q)), change, det);
            rest = fma((float16)(r), design, rest);
            chi = fma(r, r, chi);
            if (point.x > 0.0f) good = fma(r, r, good);
        }
        __global float *o = out + ((size_t)item * segments + seg) * CLV_SPECTRA_AROUND;
        for (int i = 0; i < 8; ++i)
            store8(normal[i], i, o + CLV_A_NORMAL);
        for (int i = 0; i < NPOLY; ++i)
            store8(cross[i], i, o + CLV_A_CROSS);
        for (int i = NPOLY; i < 16; ++i)
            store8((float8)(0.0f), i, o + CLV_A_CROSS);
        store8(slope, 0, o + CLV_A_SLOPE);
        store8(det, 0, o + CLV_A_DET);
        store16(rest, 0, o + CLV_A_REST);
        o[CLV_A_CHI] = chi;
        o[CLV_A_CHI_GOOD] = good;
    }
}

__kernel void clv_spectra_model(__global const float *restrict pixels,
                                __global const float *restrict basis,
                                __global const int *restrict list,
                                __global const int *restrict owner,
                                __global const float *restrict solved, __global float *restrict out,
                                int all_pixels, int spectra)
{
    const int at = (int)get_global_id(1), segments = all_pixels / CLV_SPECTRA_SEGMENT;
    const int first = (int)get_global_id(0) * SPAN, last = min(first + SPAN, segments);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *t = pixels + (size_t)item * all_pixels * 8;
    for (int seg = first; seg < last; ++seg) {
        __global const float *v = solved + ((size_t)item * spectra + owner[seg]) * CLV_SPECTRA_SOLVED;
        const float16 a = load16(0, v + CLV_V_A);
        for (int k = seg * CLV_SPECTRA_SEGMENT; k < (seg + 1) * CLV_SPECTRA_SEGMENT; ++k)
            out[(size_t)item * all_pixels + k] =
                total16(a * load16(k, basis)) * t[(size_t)k * 8];
    }
}

/* cl/spectra/template.cl -- rotation, spline and resolution: from templates to pixels.
 *
 * clv_spectra_taps:    taps of the rotation's kernel, for vsini and for vsini + step, where RUN is 1
 *                      with the spline's prefilter in them; a work-item an item.
 * clv_spectra_spline:  coefficients of the cubic B-spline in ln lambda through the rotated template:
 *                      c = taps (*) template; runs filter by recursion, from both ends at once.
 * clv_spectra_sample:  t[k] = sum_i B_i(phase_k - delta) c[i]; phase and delta are whole + part.
 * clv_spectra_resolve: t[k] = sum_m R[k][m] t[k + m - half].
 * Launch   x: RUN neighbours, y: items; local (WG, 1).
 * Defines  RUN neighbours of one work-item (CPUs: many, GPUs: 1), WG. */
#include "common/loose.clh"
#include "spectra/spectra.clh"

#define PREFILTER 14     /* taps on either side: (2 - sqrt 3)^15 = 2.6e-9 */
#define WARM 16          /* points that a recursion begins earlier */
#define POLE -0.26794919243112270f
#define GAIN 1.7320508075688772f
#define EPSILON 0.6f     /* limb darkening */

/* Integral over [k - 1, k] (side 0) or [k, k + 1] (side 1) of the rotation's kernel times the
 * triangle around k, x in units of R pixels, by Gauss and Legendre in the angle: x = sin phi. */
static float part_of_tap(float k, float radius, int side)
{
    const float node[4] = { 0.1834346424956498f, 0.5255324099163290f, 0.7966664774136267f,
                            0.9602898564975363f };
    const float share[4] = { 0.3626837833783620f, 0.3137066458778873f, 0.2223810344533745f,
                             0.1012285362903763f };
    const float from = clamp((side ? k : k - 1.0f) / radius, -1.0f, 1.0f);
    const float to = clamp((side ? k + 1.0f : k) / radius, -1.0f, 1.0f);
    if (!(to > from)) return 0.0f;
    const float a = asin(from), b = asin(to);
    const float middle = 0.5f * (a + b), half_width = 0.5f * (b - a);
    float sum = 0.0f;
    ROLLED
    for (int i = 0; i < 8; ++i) {
        const float phi = middle + (i & 1 ? half_width : -half_width) * node[i >> 1];
        const float x = sin(phi) * radius, c = cos(phi);
        const float k_x = 2.0f * (1.0f - EPSILON) * c + 1.5707963267948966f * EPSILON * c * c;
        const float triangle = side ? k + 1.0f - x : x - k + 1.0f;
        sum += share[i >> 1] * k_x * c * fmax(triangle, 0.0f);
    }
    return sum * half_width;
}

/* taps [item][room][8]: a row of lanes for each distance, from row 1 on; row 0 begins with the reach
 * of the point and of its neighbour in vsini, lane 1. */
SELDOM __kernel void clv_spectra_taps(__global const float *restrict state,
                                      __global const int *restrict list, __global float *restrict taps,
                                      float dln)
{
    const int at = (int)get_global_id(0), which = (int)get_global_id(1);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global float *out = taps + (size_t)item * CLV_SPECTRA_TAPS * 8;
    const float vsini = s[CLV_S_TRY + 1] + (which ? s[CLV_S_STEP + 1] : 0.0f);
    const float radius = fmin(vsini / LIGHT / dln, (float)(CLV_SPECTRA_TAPS - PREFILTER - 4));
    const int wide = radius < 1e-6f ? 0 : (int)ceil(radius + 1.0f);
    const int reach = RUN > 1 ? wide : wide + PREFILTER;
    float w[CLV_SPECTRA_TAPS], sum = 0.0f;
    for (int k = 0; k <= wide; ++k) {
        w[k] = wide ? part_of_tap((float)k, radius, 0) + part_of_tap((float)k, radius, 1) : 1.0f;
        sum += k ? 2.0f * w[k] : w[k];
    }
#if RUN == 1
    float decay[PREFILTER + 1];
    for (int k = 0; k <= PREFILTER; ++k)
        decay[k] = k ? decay[k - 1] * POLE : GAIN;
#endif
    for (int j = 0; j <= reach; ++j) {
#if RUN == 1
        float tap = 0.0f;
        for (int k = max(-wide, j - PREFILTER); k <= min(wide, j + PREFILTER); ++k)
            tap = fma(w[abs(k)], decay[abs(j - k)], tap);
#else
        float tap = w[j];
#endif
        tap /= sum;
        if (which) {
            out[(1 + j) * 8 + 1] = tap;
            continue;
        }
        out[(1 + j) * 8] = tap;
        for (int lane = 2; lane < 8; ++lane)
            out[(1 + j) * 8 + lane] = lane < 6 ? tap : 0.0f;
    }
    for (int j = reach + 1; j < CLV_SPECTRA_TAPS - 1; ++j) { /* the neighbour's may reach further */
        out[(1 + j) * 8 + which] = 0.0f;
        for (int lane = 2; lane < 8 && !which; ++lane)
            out[(1 + j) * 8 + lane] = 0.0f;
    }
    out[which] = (float)reach;
}

/* taps (*) t at point n; beyond the ends: the last point */
static float8 filtered(__global const float *restrict t, __global const float *restrict tap,
                       int reach, int n, int points)
{
    float8 sum = load8(clamp(n, 0, points - 1), t) * load8(1, tap);
    for (int k = 1; k <= reach; ++k)
        sum = fma(load8(clamp(n - k, 0, points - 1), t) + load8(clamp(n + k, 0, points - 1), t),
                  load8(1 + k, tap), sum);
    return sum;
}

__kernel void clv_spectra_spline(__global const float *restrict templates,
                                 __global float *restrict spline, __global const int *restrict list,
                                 __global const float *restrict taps, int points, int pitch)
{
    const int at = (int)get_global_id(1), first = (int)get_global_id(0) * RUN;
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *tap = taps + (size_t)item * CLV_SPECTRA_TAPS * 8;
    const int reach = (int)fmax(tap[0], tap[1]);
    __global const float *t = templates + (size_t)item * pitch * 8;
    __global float *out = spline + (size_t)item * pitch * 8;
#if RUN == 1
    if (first < points) store8(filtered(t, tap, reach, first, points), first, out);
#else
    float8 x[RUN + 2 * WARM], up[RUN + 2 * WARM], down[RUN + 2 * WARM];
    const int from = first - WARM, count = min(first + RUN, points) + WARM - from;
    int i = 0;
    for (; i < min(max(reach - from, 0), count); ++i)
        x[i] = filtered(t, tap, reach, from + i, points);
    const float8 middle = load8(1, tap);
    for (; i + 3 < min(count, points - reach - from); i += 4) { /* four neighbours at once */
        __global const float *here = t + (size_t)(from + i) * 8;
        float16 a = load16(0, here) * (float16)(middle, middle),
                b = load16(1, here) * (float16)(middle, middle);
        for (int k = 1; k <= reach; ++k) {
            const float8 w = load8(1 + k, tap);
            a = fma(load16(0, here - k * 8) + load16(0, here + k * 8), (float16)(w, w), a);
            b = fma(load16(1, here - k * 8) + load16(1, here + k * 8), (float16)(w, w), b);
        }
        x[i] = a.lo, x[i + 1] = a.hi, x[i + 2] = b.lo, x[i + 3] = b.hi;
    }
    for (; i < count; ++i)
        x[i] = filtered(t, tap, reach, from + i, points);
    float8 above = x[0] / (1.0f - POLE), below = x[count - 1] / (1.0f - POLE);
    for (int k = 0; k < count; ++k) { /* sums of the powers of POLE to either side */
        above = fma(above, (float8)(POLE), x[k]), up[k] = above;
        below = fma(below, (float8)(POLE), x[count - 1 - k]), down[count - 1 - k] = below;
    }
    for (int k = WARM; k < count - WARM; ++k)
        store8((up[k] + down[k] - x[k]) * GAIN, from + k, out);
#endif
}

/* The four weights of the cubic B-spline at part f in [0, 1). */
static float4 weights_at(float f)
{
    const float g = 1.0f - f, f2 = f * f, g2 = g * g;
    return (float4)(g2 * g, 3.0f * f2 * f - 6.0f * f2 + 4.0f, 3.0f * g2 * g - 6.0f * g2 + 4.0f,
                    f2 * f) * 0.16666666666666667f;
}

/* Points of the template that a velocity shifts by, atanh(v / c) / dln: the whole ones, and the rest.
 * scale.x + scale.y = 1 / (c dln); the product's own rounding is kept, as 40 points have 20 bits
 * of their float before the point. */
static float shift_of(float v, float2 scale, float *rest)
{
    const float b = v / LIGHT, d = v * scale.x, whole = floor(d);
    const float lost = (fma)(v, scale.x, -d) + fma(d, b * b * 0.33333333333f, v * scale.y);
    *rest = (d - whole) + lost;
    return whole;
}

__kernel void clv_spectra_sample(__global const float *restrict spline,
                                 __global const float *restrict state,
                                 __global const int *restrict list,
                                 __global const int *restrict whole,
                                 __global const float *restrict part, __global float *restrict out,
                                 float2 scale, int points, int pitch, int first_pixel, int pixels,
                                 int all_pixels)
{
    const int at = (int)get_global_id(1), first = (int)get_global_id(0) * RUN;
    if (at >= list[0]) return;
    const int item = list[1 + at], last = min(first + RUN, pixels);
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global const float *c = spline + (size_t)item * pitch * 8;
    __global float *o = out + ((size_t)item * all_pixels + first_pixel) * 8;
    float rest0, rest6;
    const float w0 = shift_of(s[CLV_S_TRY], scale, &rest0),
                w6 = shift_of(s[CLV_S_TRY] + s[CLV_S_STEP], scale, &rest6);
    for (int k = first; k < last; ++k) {
        const float p = part[first_pixel + k];
        const int i = whole[first_pixel + k];
        const float f0 = p - rest0, f6 = p - rest6;
        const int less0 = f0 < 0.0f, less6 = f6 < 0.0f;
        const int i0 = clamp(i - (int)w0 - less0, 1, points - 3),
                  i6 = clamp(i - (int)w6 - less6, 1, points - 3);
        const float4 a = weights_at(less0 ? f0 + 1.0f : f0),
                     b = weights_at(less6 ? f6 + 1.0f : f6);
        __global const float *q = c + (size_t)(i0 - 1) * 8, *r = c + (size_t)(i6 - 1) * 8;
        float8 t = load8(0, q) * a.s0;
        t = fma(load8(1, q), (float8)(a.s1), t);
        t = fma(load8(2, q), (float8)(a.s2), t);
        t = fma(load8(3, q), (float8)(a.s3), t);
        t.s6 = fma(r[24], b.s3, fma(r[16], b.s2, fma(r[8], b.s1, r[0] * b.s0)));
        t.s7 = 0.0f;
        store8(t, k, o);
    }
}

__kernel void clv_spectra_resolve(__global const float *restrict in, __global float *restrict out,
                                  __global const float *restrict resolution,
                                  __global const float *restrict state,
                                  __global const int *restrict list, int diagonals, int first_pixel,
                                  int pixels, int all_pixels)
{
    const int at = (int)get_global_id(1), first = (int)get_global_id(0) * RUN;
    if (at >= list[0]) return;
    const int item = list[1 + at], last = min(first + RUN, pixels), half_width = diagonals / 2;
    const int star = (int)state[(size_t)item * CLV_SPECTRA_STATE + CLV_S_STAR];
    __global const float *t = in + ((size_t)item * all_pixels + first_pixel) * 8;
    __global float *o = out + ((size_t)item * all_pixels + first_pixel) * 8;
    for (int k = first; k < last; ++k) {
        __global const float *r =
            resolution + ((size_t)star * all_pixels + first_pixel + k) * diagonals;
        float8 sum = 0.0f;
        for (int m = 0; m < diagonals; ++m)
            sum = fma(load8(clamp(k + m - half_width, 0, pixels - 1), t), (float8)(r[m]), sum);
        store8(sum, k, o);
    }
}

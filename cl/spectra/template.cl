/* cl/spectra/template.cl -- rotation, spline and resolution: from templates to pixels.
 *
 * clv_spectra_taps:    taps of the rotation's kernel and the spline's prefilter in one, for vsini
 *                      and for vsini + step; a work-item an item.
 * clv_spectra_spline:  coefficients c = taps (*) template of the cubic B-spline in ln lambda.
 * clv_spectra_sample:  t[k] = sum_i B_i(phase_k - delta) c[i]; phase and delta are whole + part.
 * clv_spectra_resolve: t[k] = sum_m R[k][m] t[k + m - half].
 * Launch   x: RUN neighbours, y: items; local (WG, 1).
 * Defines  RUN neighbours of one work-item (CPUs: many, GPUs: 1), WG. */
#include "spectra/spectra.clh"

#define PREFILTER 14     /* taps on either side: (2 - sqrt 3)^15 = 2.6e-9 */
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
    for (int i = 0; i < 8; ++i) {
        const float phi = middle + (i & 1 ? half_width : -half_width) * node[i >> 1];
        const float x = sin(phi) * radius, c = cos(phi);
        const float k_x = 2.0f * (1.0f - EPSILON) * c + 1.5707963267948966f * EPSILON * c * c;
        const float triangle = side ? k + 1.0f - x : x - k + 1.0f;
        sum += share[i >> 1] * k_x * c * fmax(triangle, 0.0f);
    }
    return sum * half_width;
}

__kernel void clv_spectra_taps(__global const float *restrict state,
                               __global const int *restrict list, __global float *restrict taps,
                               float dln, int room)
{
    const int at = (int)get_global_id(0), which = (int)get_global_id(1);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *s = state + (size_t)item * STATE;
    __global float *out = taps + (size_t)(2 * item + which) * room;
    const float vsini = s[S_TRY + 1] + (which ? s[S_STEP + 1] : 0.0f);
    const float radius = vsini / LIGHT / dln;
    const int wide = radius < 1e-6f ? 0 : (int)ceil(radius + 1.0f);
    const int reach = min(wide + PREFILTER, room - 2);
    __global float *w = out + room - 1 - wide; /* the kernel alone, for a while, at the end */
    float sum = 0.0f;
    for (int k = 0; k <= wide; ++k) {
        const float v = wide ? part_of_tap((float)k, radius, 0) + part_of_tap((float)k, radius, 1) : 1.0f;
        w[k] = v;
        sum += k ? 2.0f * v : v;
    }
    for (int k = 0; k <= wide; ++k)
        w[k] /= sum;
    /* out[1 + j], j = 0..reach: tap at distance j; out[0] its reach */
    for (int j = 0; j <= reach; ++j) {
        float tap = 0.0f;
        for (int k = -wide; k <= wide; ++k) {
            const int d = abs(j - k);
            if (d <= PREFILTER) tap = fma(w[abs(k)], GAIN * pown(POLE, d), tap);
        }
        out[1 + j] = tap;
    }
    out[0] = (float)reach;
}

__kernel void clv_spectra_spline(__global const float *restrict templates,
                                 __global float *restrict spline, __global const int *restrict list,
                                 __global const float *restrict taps, int room, int points,
                                 int pitch)
{
    const int at = (int)get_global_id(1), first = (int)get_global_id(0) * RUN;
    if (at >= list[0]) return;
    const int item = list[1 + at], last = min(first + RUN, points);
    __global const float *base = taps + (size_t)(2 * item) * room, *more = base + room;
    const int reach = (int)fmax(base[0], more[0]), short_base = (int)base[0],
              short_more = (int)more[0];
    __global const float *t = templates + (size_t)item * pitch * 8;
    __global float *out = spline + (size_t)item * pitch * 8;
    for (int n = first; n < last; ++n) {
        const bool inside = n >= reach && n + reach < points;
        float8 sum = vload8(n, t);
        sum *= (float8)(base[1], more[1], base[1], base[1], base[1], base[1], 0.0f, 0.0f);
        for (int k = 1; k <= reach; ++k) {
            const float b = k <= short_base ? base[1 + k] : 0.0f,
                        m = k <= short_more ? more[1 + k] : 0.0f;
            const int left = inside ? n - k : max(n - k, 0),
                      right = inside ? n + k : min(n + k, points - 1);
            sum = fma(vload8(left, t) + vload8(right, t), (float8)(b, m, b, b, b, b, 0.0f, 0.0f), sum);
        }
        vstore8(sum, n, out);
    }
}

/* The four weights of the cubic B-spline at part f in [0, 1). */
static float4 weights_at(float f)
{
    const float g = 1.0f - f, f2 = f * f, g2 = g * g;
    return (float4)(g2 * g, 3.0f * f2 * f - 6.0f * f2 + 4.0f, 3.0f * g2 * g - 6.0f * g2 + 4.0f,
                    f2 * f) * 0.16666666666666667f;
}

/* Pixels of the template grid that a velocity shifts by. */
static float shift_of(float v, float dln)
{
    const float b = v / LIGHT;
    return b * (1.0f + b * b * 0.33333333333f) / dln;
}

__kernel void clv_spectra_sample(__global const float *restrict spline,
                                 __global const float *restrict state,
                                 __global const int *restrict list,
                                 __global const int *restrict whole,
                                 __global const float *restrict part, __global float *restrict out,
                                 float dln, int points, int pitch, int first_pixel, int pixels,
                                 int all_pixels)
{
    const int at = (int)get_global_id(1), first = (int)get_global_id(0) * RUN;
    if (at >= list[0]) return;
    const int item = list[1 + at], last = min(first + RUN, pixels);
    __global const float *s = state + (size_t)item * STATE;
    __global const float *c = spline + (size_t)item * pitch * 8;
    __global float *o = out + ((size_t)item * all_pixels + first_pixel) * 8;
    const float d0 = shift_of(s[S_TRY], dln), d6 = shift_of(s[S_TRY] + s[S_STEP], dln);
    const float w0 = floor(d0), w6 = floor(d6);
    for (int k = first; k < last; ++k) {
        const float p = part[first_pixel + k];
        const int i = whole[first_pixel + k];
        const float f0 = p - (d0 - w0), f6 = p - (d6 - w6);
        const int less0 = f0 < 0.0f, less6 = f6 < 0.0f;
        const int i0 = clamp(i - (int)w0 - less0, 1, points - 3),
                  i6 = clamp(i - (int)w6 - less6, 1, points - 3);
        const float4 a = weights_at(less0 ? f0 + 1.0f : f0),
                     b = weights_at(less6 ? f6 + 1.0f : f6);
        __global const float *q = c + (size_t)(i0 - 1) * 8, *r = c + (size_t)(i6 - 1) * 8;
        float8 t = vload8(0, q) * a.s0;
        t = fma(vload8(1, q), (float8)(a.s1), t);
        t = fma(vload8(2, q), (float8)(a.s2), t);
        t = fma(vload8(3, q), (float8)(a.s3), t);
        t.s6 = fma(r[24], b.s3, fma(r[16], b.s2, fma(r[8], b.s1, r[0] * b.s0)));
        t.s7 = 0.0f;
        vstore8(t, k, o);
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
    const int star = (int)state[(size_t)item * STATE + S_STAR];
    __global const float *t = in + ((size_t)item * all_pixels + first_pixel) * 8;
    __global float *o = out + ((size_t)item * all_pixels + first_pixel) * 8;
    for (int k = first; k < last; ++k) {
        __global const float *r =
            resolution + ((size_t)star * all_pixels + first_pixel + k) * diagonals;
        float8 sum = 0.0f;
        for (int m = 0; m < diagonals; ++m)
            sum = fma(vload8(clamp(k + m - half_width, 0, pixels - 1), t), (float8)(r[m]), sum);
        vstore8(sum, k, o);
    }
}

/* cl/spectra/ccf.cl -- start values: each template against each star over all lags. Directly: of the
 * lags of a transform only some 60 are wanted, and clFFT's inverse transforms alone take more than
 * twice as long (bench/bench_lags.c).
 *
 * clv_spectra_ccf:   chi2[lag] = sum_n w[n] T[n + lag]^2 - 2 q[n] T[n + lag] of one spectrum, lag
 *                    from -reach, 16 neighbours a work-item; x: lags, y: templates, z: STARS stars.
 * clv_spectra_few:   the same less that of T = 1, as its two sums apart, for the few templates that all others are
 *                    mixtures of. With L = T - 1, which is small: of (q[n] - w[n]) L[n + lag] for the first rows, of
 *                    w[n] L[n + lag]^2 for the others; x: lags, y: rows, z: stars, some together.
 * clv_spectra_mix:   chi2 of all templates from these; x: lags, y: MIXED templates, z: stars.
 * clv_spectra_peak:  lowest sum over the spectra on the common grid of velocities; x: templates,
 *                    y: stars.
 * clv_spectra_start: the first point of each item from the best template; x: items.
 * Defines  STARS that share a template's values (CPUs), 1 (GPUs), where MIXED is 1 instead of 4.
 * Layout   templates [templates][pitch], repeated circularly on both sides by `reach`; data
 *          [star][spectrum][2][points]; chi2 [star][spectrum][templates][lags]. */
#include "common/loose.clh"
#include "spectra/spectra.clh"

__kernel void clv_spectra_ccf(__global const float *restrict templates,
                              __global const float *restrict data, __global float *restrict chi,
                              ulong first_template, int pitch, int points, int room, int lags,
                              int which, int spectra, int count, int stars)
{
    const int lag = 16 * (int)get_global_id(0), model = (int)get_global_id(1),
              first = STARS * (int)get_global_id(2);
    if (lag >= lags || model >= count || first >= stars) return;
    __global const float *t = templates + first_template + (size_t)model * pitch + lag;
    __global const float *q[STARS];
    float16 cross[STARS], power[STARS];
#pragma unroll
    for (int i = 0; i < STARS; ++i) {
        q[i] = data + ((size_t)min(first + i, stars - 1) * spectra + which) * 2 * room;
        cross[i] = power[i] = 0.0f;
    }
    for (int n = 0; n < points; ++n) {
        const float16 m = load16(0, t + n), square = m * m;
#pragma unroll
        for (int i = 0; i < STARS; ++i) {
            cross[i] = fma((float16)(q[i][n]), m, cross[i]);
            power[i] = fma((float16)(q[i][room + n]), square, power[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < STARS; ++i)
        if (first + i < stars)
            store16(power[i] - 2.0f * cross[i], 0,
                     chi + (((size_t)(first + i) * spectra + which) * count + model) * lags + lag);
}

#define TOGETHER (STARS > 1 ? 2 * STARS : 1) /* stars, where each has one sum */

/* out [star][count][lags] */
__kernel void clv_spectra_few(__global const float *restrict templates,
                              __global const float *restrict data, __global const int *restrict rows,
                              __global float *restrict out, ulong first_template, int pitch, int points, int room,
                              int lags, int which, int spectra, int first_row, int crosses, int count, int stars)
{
    const int lag = 16 * (int)get_global_id(0), row = (int)get_global_id(1), first = TOGETHER * (int)get_global_id(2);
    if (lag >= lags || row >= count || first >= stars) return;
    __global const float *t = templates + first_template + (size_t)rows[first_row + row] * pitch + lag;
    __global const float *q[TOGETHER];
    float16 sum[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
        q[i] = data + ((size_t)min(first + i, stars - 1) * spectra + which) * 2 * room;
        sum[i] = 0.0f;
    }
    if (row < crosses)
        for (int n = 0; n < points; ++n) {
            const float16 line = load16(0, t + n) - 1.0f;
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
                sum[i] = fma((float16)(q[i][n] - q[i][room + n]), line, sum[i]);
        }
    else
        for (int n = 0; n < points; ++n) {
            const float16 line = load16(0, t + n) - 1.0f, square = line * line;
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i)
                sum[i] = fma((float16)(q[i][room + n]), square, sum[i]);
        }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i)
        if (first + i < stars) store16(sum[i], 0, out + ((size_t)(first + i) * count + row) * lags + lag);
}

#define MIXED (STARS > 1 ? 4 : 1)

/* few [star][rows][lags]; shares [templates][rows] */
__kernel void clv_spectra_mix(__global const float *restrict few, __global const float *restrict shares,
                              __global float *restrict chi, ulong first_share, int rows, int lags, int which,
                              int spectra, int count, int stars)
{
    const int lag = 16 * (int)get_global_id(0), first = MIXED * (int)get_global_id(1), star = (int)get_global_id(2);
    if (lag >= lags || first >= count || star >= stars) return;
    __global const float *f = few + (size_t)star * rows * lags + lag;
    __global const float *share[MIXED];
    float16 sum[MIXED];
#pragma unroll
    for (int i = 0; i < MIXED; ++i)
        share[i] = shares + first_share + (size_t)min(first + i, count - 1) * rows, sum[i] = 0.0f;
    for (int r = 0; r < rows; ++r) {
        const float16 here = load16(0, f + (size_t)r * lags);
#pragma unroll
        for (int i = 0; i < MIXED; ++i)
            sum[i] = fma((float16)(share[i][r]), here, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < MIXED; ++i)
        if (first + i < count)
            store16(sum[i], 0, chi + (((size_t)star * spectra + which) * count + first + i) * lags + lag);
}

#define COARSE 4 /* velocities: a lag of the start templates has several */

/* Sum over the spectra at a velocity; `step` km/s a lag and `reach` of each spectrum. */
static float at_velocity(__global const float *chi, __global const float *step,
                         __global const int *reach, float v, int spectra, size_t stride)
{
    float sum = 0.0f;
    for (int i = 0; i < spectra; ++i) {
        if (reach[i] < 1) continue;
        const float x = v / step[i], whole = floor(x), f = x - whole;
        const int at = clamp(reach[i] - (int)whole, 1, 2 * reach[i]);
        __global const float *c = chi + i * stride;
        sum += c[at] * (1.0f - f) + c[at - 1] * f;
    }
    return sum;
}

SELDOM __kernel void clv_spectra_peak(__global const float *restrict chi, __global const float *restrict step,
                                      __global const int *restrict reach, __global float *restrict best,
                                      float from, float by, int velocities, int spectra, int count,
                                      int lags)
{
    const int model = (int)get_global_id(0), star = (int)get_global_id(1);
    if (model >= count) return;
    __global const float *c = chi + ((size_t)star * spectra * count + model) * lags;
    const size_t stride = (size_t)count * lags;
    float least = INFINITY;
    int where = 0;
    for (int i = 0; i < velocities; i += COARSE) {
        const float v = at_velocity(c, step, reach, from + i * by, spectra, stride);
        if (v < least) least = v, where = i;
    }
    const int middle = where;
    for (int i = max(middle - COARSE + 1, 0); i < min(middle + COARSE, velocities); ++i) {
        const float v = at_velocity(c, step, reach, from + i * by, spectra, stride);
        if (v < least) least = v, where = i;
    }
    float top = from + where * by;
    if (where > 0 && where + 1 < velocities) {
        const float a = at_velocity(c, step, reach, top - by, spectra, stride),
                    b = at_velocity(c, step, reach, top + by, spectra, stride);
        const float bend = a - 2.0f * least + b;
        if (bend > 0.0f) top += by * 0.5f * (a - b) / bend;
    }
    best[((size_t)star * count + model) * 2] = least;
    best[((size_t)star * count + model) * 2 + 1] = top;
}

SELDOM __kernel void clv_spectra_start(__global const float *restrict best,
                                       __global const float *restrict points,
                                       __global const float *restrict box,
                                       __global const float *restrict usable,
                                       __global const float *restrict priors,
                                       __global float *restrict state, __global float *restrict found,
                                       int count, int starts, int items)
{
    const int item = (int)get_global_id(0);
    if (item >= items) return;
    const int star = item / starts, start = item % starts;
    __global float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    for (int i = 0; i < CLV_SPECTRA_STATE; ++i)
        s[i] = 0.0f;
    int model = 0;
    for (int i = 1; i < count; ++i)
        if (best[((size_t)star * count + i) * 2] < best[((size_t)star * count + model) * 2]) model = i;
    if (start == 0) {
        found[star * 2] = best[((size_t)star * count + model) * 2 + 1];
        found[star * 2 + 1] = (float)model;
    }
    const float vsini[4] = { 20.0f, 60.0f, 5.0f, 150.0f }, alpha[4] = { 0.2f, 0.0f, 0.4f, 0.1f };
    const float own = points[model * 4 + 3]; /* alpha */
    float x[CLV_S_UNKNOWNS] = { best[((size_t)star * count + model) * 2 + 1], vsini[start & 3],
                          points[model * 4], points[model * 4 + 1], points[model * 4 + 2],
                          own > CLV_SPECTRA_NO_ALPHA ? own : alpha[start & 3] };
    if (start & 4) x[2] *= 1.05f, x[3] += 0.5f;
    __global const float *prior = priors + (size_t)star * CLV_SPECTRA_PRIOR;
    const int fixed = (int)prior[12];
    for (int i = 0; i < 12; ++i)
        s[CLV_S_PRIOR + i] = prior[i];
    s[CLV_S_FIXED] = prior[12];
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        const bool held = fixed >> a & 1, far = fabs(x[a] - prior[a]) * sqrt(prior[6 + a]) > 3.0f;
        const float margin = held ? 0.0f : 1e-3f * (box[6 + a] - box[a]);
        const float from = held || far ? prior[a] : x[a];
        s[CLV_S_TRY + a] = s[CLV_S_BEST + a] = clamp(from, box[a] + margin, box[6 + a] - margin);
        s[CLV_S_STEP + a] = s[CLV_S_TRY + a] + box[18 + a] > box[6 + a] ? -box[18 + a] : box[18 + a];
    }
    s[CLV_S_LAMBDA] = 1e-3f;
    s[CLV_S_STAR] = (float)star;
    s[CLV_S_STATUS] = usable[star] > 0.0f ? 0.0f : 4.0f;
}

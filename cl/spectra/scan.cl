/* cl/spectra/scan.cl -- chi2 + log det M along velocity, all else fixed: a template is shifted to
 * many velocities of a regular grid, v = from + l * step of the item.
 *
 * With t_k(v) the shifted template, M_ij(v) = sum_k t_k(v)^2 (w_k P_ik P_jk) and u_j(v) = sum_k
 * t_k(v) (w_k d_k P_jk): products of the matrix of templates with tables of the basis.
 * clv_spectra_curve:    lane 0 of the spline's coefficients, kept for all arms of an item.
 * clv_spectra_best:     list of the items to scan: the best start of each star, or, again, those
 *                       whose scan was too narrow or too coarse.
 * clv_spectra_grid:     the item's grid: given, or from the expected error of the velocity.
 * clv_spectra_shift:    t of one spectrum.
 * clv_spectra_blur:     t seen through the resolution matrix.
 * clv_spectra_products: sums of M (blocks of PART columns) and u (the last block).
 * clv_spectra_along:    solves them; log det M into the values.
 * clv_spectra_residual: chi2 of the solution into the values.
 * clv_spectra_moments:  lowest point, spread, skewness, kurtosis of exp(-value / 2).
 * Launch   x: LANES velocities; local (WG, 1, 1). A batch of items at a time: list[1 + base + z].
 * Defines  LANES 16 (CPUs), 1 (GPUs); RUN pixels, BLOCKS of columns of a work-item; NPOLY; FP64;
 *          TILE velocities that lie together: LANES or a work-group.
 * Memory   t [item][velocities / TILE][pixels][TILE]: neighbours in velocity share pixels and basis,
 *          and the pixels of a tile stay in a CPU's cache. */
#include "common/lanes.clh"
#include "spectra/small.clh"

#define PART (NPOLY + 1)

/* The first lane of velocity v of an item of the batch, at pixel 0; pixels are TILE apart. */
static size_t tile_at(size_t item, int v, int pixels, int velocities)
{
    return (item * velocities + v / TILE * TILE) * pixels + v % TILE;
}

#define WANTED 5.0f /* steps in an error */

__kernel void clv_spectra_curve(__global const float *restrict spline,
                                __global const int *restrict list, __global float *restrict curve,
                                int points, int pitch, int first_point, int all_points)
{
    const int at = (int)get_global_id(1), first = (int)get_global_id(0) * RUN;
    if (at >= list[0]) return;
    const int item = list[1 + at], last = min(first + RUN, points);
    __global const float *from = spline + (size_t)item * pitch * 8;
    __global float *to = curve + (size_t)item * all_points + first_point;
    for (int n = first; n < last; ++n)
        to[n] = from[(size_t)n * 8];
}

__kernel void clv_spectra_best(__global const float *restrict state, __global int *restrict list,
                               int stars, int starts, int again)
{
    if (get_global_id(0) > 0) return;
    int count = 0;
    for (int star = 0; star < stars; ++star) {
        int best = -1;
        float least = INFINITY;
        for (int i = star * starts; i < (star + 1) * starts; ++i) {
            __global const float *s = state + (size_t)i * CLV_SPECTRA_STATE;
            const float value = s[CLV_S_VALUE] + s[CLV_S_LOST] + s[CLV_S_PRIOR_VALUE];
            const bool good = s[CLV_S_STATUS] > 0.5f && s[CLV_S_STATUS] < 2.5f;
            if (good && (value < least || best < 0)) best = i, least = value;
        }
        if (best < 0) continue;
        const float turn = state[(size_t)best * CLV_SPECTRA_STATE + CLV_S_SCAN_TURN];
        if (!again || turn > 0.0f) list[++count] = best;
    }
    list[0] = count;
}

/* step 0: as many steps as there are velocities around the best one, WANTED in an error. */
__kernel void clv_spectra_grid(__global float *restrict state, __global const int *restrict list,
                               __global const float *restrict box, float from, float step,
                               int velocities)
{
    const int at = (int)get_global_id(0);
    if (at >= list[0]) return;
    __global float *s = state + (size_t)list[1 + at] * CLV_SPECTRA_STATE;
    if (step == 0.0f) {
        const float most = (box[6] - box[0]) / velocities;
        const float curve = s[CLV_S_NORMAL];
        const float error = s[CLV_S_SCAN_TURN] > 0.0f ? s[CLV_S_SCAN + 1]
                            : curve > 0.0f        ? rsqrt(curve)
                                                  : INFINITY;
        step = clamp(error / WANTED, 1e-4f, most);
        from = s[CLV_S_BEST] - step * (velocities / 2);
    }
    s[CLV_S_SCAN_FROM] = from, s[CLV_S_SCAN_STEP] = step;
}

__kernel void clv_spectra_shift(__global const float *restrict curve,
                                __global const float *restrict state,
                                __global const int *restrict list,
                                __global const int *restrict whole,
                                __global const float *restrict part, __global float *restrict out,
                                float2 scale, int points, int first_point, int all_points,
                                int first_pixel, int pixels, int velocities, int base)
{
    const int v = LANES * (int)get_global_id(0), first = RUN * (int)get_global_id(1),
              at = base + (int)get_global_id(2), last = min(first + RUN, pixels);
    if (v >= velocities || at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global const float *c = curve + (size_t)item * all_points + first_point;
    __global float *o = out + tile_at(get_global_id(2), v, pixels, velocities);
    const fvec speed = fma((fvec)(s[CLV_S_SCAN_STEP]), to_fvec(v + lanes_iota()),
                           (fvec)(s[CLV_S_SCAN_FROM]));
    const fvec b = speed / LIGHT, d = speed * scale.x, w = floor(d);
    const fvec lost = (fma)(speed, (fvec)(scale.x), -d) +
                      fma(d, b * b * 0.33333333333f, speed * scale.y);
    const fvec rest = (d - w) + lost; /* as clv_spectra_sample has it */
    const ivec move = -to_ivec(w);
    const int *moves = (const int *)&move; /* falling with velocity */
    const int low = moves[LANES - 1] - 1, high = moves[0];
    for (int k = first; k < last; ++k) {
        const int i = whole[first_pixel + k];
        const fvec f0 = part[first_pixel + k] - rest;
        const ivec under = f0 < 0.0f;
        const ivec place = pick(under, move - 1, move);
        const fvec f = pick(under, f0 + 1.0f, f0), g = 1.0f - f, f2 = f * f, g2 = g * g;
        const fvec a0 = g2 * g, a1 = 3.0f * f2 * f - 6.0f * f2 + 4.0f,
                   a2 = 3.0f * g2 * g - 6.0f * g2 + 4.0f, a3 = f2 * f;
        fvec t = 0.0f;
        for (int j = low; j <= high; ++j) { /* the lanes whose velocity falls between these points */
            __global const float *q = c + clamp(i + j, 1, points - 3) - 1;
            const fvec here = fma(a3, (fvec)(q[3]), fma(a2, (fvec)(q[2]),
                                  fma(a1, (fvec)(q[1]), a0 * q[0])));
            t = pick(place == j, here, t);
        }
        lanes_store(t * 0.16666666666666667f, o + (size_t)k * TILE);
    }
}

__kernel void clv_spectra_blur(__global const float *restrict in, __global float *restrict out,
                               __global const float *restrict resolution,
                               __global const float *restrict state,
                               __global const int *restrict list, int diagonals, int first_pixel,
                               int pixels, int all_pixels, int velocities, int base)
{
    const int v = LANES * (int)get_global_id(0), first = RUN * (int)get_global_id(1),
              at = base + (int)get_global_id(2), last = min(first + RUN, pixels);
    if (v >= velocities || at >= list[0]) return;
    const int star = (int)state[(size_t)list[1 + at] * CLV_SPECTRA_STATE + CLV_S_STAR];
    const size_t box = tile_at(get_global_id(2), v, pixels, velocities);
    __global const float *t = in + box;
    __global float *o = out + box;
    for (int k = first; k < last; ++k) {
        __global const float *r =
            resolution + ((size_t)star * all_pixels + first_pixel + k) * diagonals;
        fvec sum = 0.0f;
        for (int m = 0; m < diagonals; ++m) {
            const int n = clamp(k + m - diagonals / 2, 0, pixels - 1);
            sum = fma(lanes_load(t + (size_t)n * TILE), (fvec)(r[m]), sum);
        }
        lanes_store(sum, o + (size_t)k * TILE);
    }
}

/* y: BLOCKS of PART columns each: the last block is u. A segment's pixels serve all of them while
 * they are near. table [columns / PART][all_pixels][PART]; out [item][2][columns][velocities]: sums
 * and what they lost. */
__kernel void clv_spectra_products(__global const float *restrict in,
                                   __global const float2 *restrict data,
                                   __global const float *restrict table,
                                   __global const float *restrict state,
                                   __global const int *restrict list, __global float *restrict out,
                                   int first_pixel, int pixels, int all_pixels, int velocities,
                                   int columns, int base)
{
    const int v = LANES * (int)get_global_id(0), at = base + (int)get_global_id(2);
    const int blocks = columns / PART, first = BLOCKS * (int)get_global_id(1);
    if (v >= velocities || first >= blocks || at >= list[0]) return;
    const int star = (int)state[(size_t)list[1 + at] * CLV_SPECTRA_STATE + CLV_S_STAR];
    __global const float *t = in + tile_at(get_global_id(2), v, pixels, velocities);
    __global const float2 *d = data + (size_t)star * all_pixels + first_pixel;
    fvec total[BLOCKS * PART], lost[BLOCKS * PART];
    for (int e = 0; e < BLOCKS * PART; ++e)
        total[e] = lost[e] = 0.0f;
    for (int seg = 0; seg < pixels; seg += CLV_SPECTRA_SEGMENT) {
        for (int block = 0; block < BLOCKS; ++block) {
            const bool linear = first + block + 1 == blocks;
            __global const float *q =
                table + ((size_t)(first + block) * all_pixels + first_pixel + seg) * PART;
            fvec sum[PART];
#pragma unroll
            for (int e = 0; e < PART; ++e)
                sum[e] = 0.0f;
            for (int k = 0; k < CLV_SPECTRA_SEGMENT; ++k) {
                const float2 point = d[seg + k];
                const fvec x = lanes_load(t + (size_t)(seg + k) * TILE) * fabs(point.x);
                const fvec m = linear ? x * point.y : x * x;
#pragma unroll
                for (int e = 0; e < PART; ++e)
                    sum[e] = fma(m, (fvec)(q[k * PART + e]), sum[e]);
            }
            fvec *whole = total + block * PART, *rest = lost + block * PART;
#pragma unroll
            for (int e = 0; e < PART; ++e) {
                const fvec next = whole[e] + sum[e], added = next - whole[e];
                rest[e] += (whole[e] - (next - added)) + (sum[e] - added);
                whole[e] = next;
            }
        }
    }
    __global float *o =
        out + ((size_t)get_global_id(2) * 2 * columns + (size_t)first * PART) * velocities + v;
    for (int e = 0; e < BLOCKS * PART; ++e) {
        lanes_store(total[e], o + (size_t)e * velocities);
        lanes_store(lost[e], o + (size_t)(columns + e) * velocities);
    }
}

/* x: velocities, one by one; y: items. solution [item][NPOLY][velocities]; values [item][2][...]. */
__kernel void clv_spectra_along(__global const float *restrict sums,
                                __global const int *restrict list,
                                __global float *restrict solution, __global float *restrict values,
                                int velocities, int columns, int base)
{
    const int v = (int)get_global_id(0), at = base + (int)get_global_id(1);
    if (v >= velocities || at >= list[0]) return;
    const size_t down = (size_t)columns * velocities;
    __global const float *g = sums + (size_t)get_global_id(1) * 2 * down + v;
    __global float *a = solution + (size_t)get_global_id(1) * NPOLY * velocities + v;
    __global float *value = values + (size_t)list[1 + at] * 2 * velocities + v;
    real m[NPOLY][NPOLY], x[NPOLY], log_det = 0;
    for (int i = 0, e = 0; i < NPOLY; ++i)
        for (int j = 0; j <= i; ++j, ++e)
            m[i][j] = (real)g[(size_t)e * velocities] + (real)g[(size_t)e * velocities + down];
    for (int i = 0; i < NPOLY; ++i) {
        const size_t e = (size_t)(columns - PART + i) * velocities;
        x[i] = (real)g[e] + (real)g[e + down];
    }
    const bool empty = !(m[0][0] > 0);
    (void)factor(m, &log_det);
    forward(m, x);
    for (int i = NPOLY - 1; i >= 0; --i) {
        real y = x[i];
        for (int k = i + 1; k < NPOLY; ++k)
            y -= m[k][i] * x[k];
        x[i] = y / m[i][i];
        a[(size_t)i * velocities] = empty ? 0.0f : (float)x[i];
    }
    if (empty) return;
    total sum = { value[0], value[velocities] };
    total_add(&sum, (float)log_det);
    total_add(&sum, (float)(log_det - (real)(float)log_det));
    value[0] = (float)sum.value;
    value[velocities] = (float)(sum.value - (real)value[0] + sum.lost);
}

__kernel void clv_spectra_residual(__global const float *restrict in,
                                   __global const float2 *restrict data,
                                   __global const float *restrict basis,
                                   __global const float *restrict state,
                                   __global const int *restrict list,
                                   __global const float *restrict solution,
                                   __global float *restrict values, int first_pixel, int pixels,
                                   int all_pixels, int velocities, int base)
{
    const int v = LANES * (int)get_global_id(0), at = base + (int)get_global_id(1);
    if (v >= velocities || at >= list[0]) return;
    const int item = list[1 + at], star = (int)state[(size_t)item * CLV_SPECTRA_STATE + CLV_S_STAR];
    __global const float *t = in + tile_at(get_global_id(1), v, pixels, velocities);
    __global const float2 *d = data + (size_t)star * all_pixels + first_pixel;
    __global float *value = values + (size_t)item * 2 * velocities + v;
    fvec a[NPOLY], total = lanes_load(value), lost = lanes_load(value + velocities);
#pragma unroll
    for (int i = 0; i < NPOLY; ++i)
        a[i] = lanes_load(solution + ((size_t)get_global_id(1) * NPOLY + i) * velocities + v);
    for (int seg = 0; seg < pixels; seg += CLV_SPECTRA_SEGMENT) {
        fvec chi = 0.0f;
        for (int k = seg; k < seg + CLV_SPECTRA_SEGMENT; ++k) {
            const float2 point = d[k];
            __global const float *p = basis + (size_t)(first_pixel + k) * 16;
            fvec model = 0.0f;
#pragma unroll
            for (int i = 0; i < NPOLY; ++i)
                model = fma(a[i], (fvec)(p[i]), model);
            const fvec x = lanes_load(t + (size_t)k * TILE) * fabs(point.x);
            const fvec r = point.y - model * x;
            chi = fma(r, r, chi);
        }
        const fvec next = total + chi, added = next - total;
        lost += (total - (next - added)) + (chi - added);
        total = next;
    }
    lanes_store(total, value);
    lanes_store(lost, value + velocities);
}

/* How far the value at one velocity is above that at another, the prior of velocity included. */
static float rise(__global const float *restrict s, __global const float *restrict p, int velocities, int i, int low)
{
    __global const float *q = p + velocities;
    const float step = s[CLV_S_SCAN_STEP], up = step * (i - low);
    const float twice = fma(step, (float)(i + low), 2.0f * (s[CLV_S_SCAN_FROM] - s[CLV_S_PRIOR]));
    return fma(s[CLV_S_PRIOR + 6] * up, twice, (p[i] - p[low]) + (q[i] - q[low]));
}

/* Only velocities inside the limits count. Another turn is wanted when the error is less than four
 * steps, or when one end is not far out. */
SELDOM __kernel void clv_spectra_moments(__global float *restrict state, __global const int *restrict list,
                                         __global const float *restrict box,
                                         __global const float *restrict values, int velocities, int turns)
{
    const int at = (int)get_global_id(0);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    __global const float *p = values + (size_t)item * 2 * velocities;
    const float from = s[CLV_S_SCAN_FROM], step = s[CLV_S_SCAN_STEP];
    const int first = clamp((int)ceil((box[0] - from) / step), 0, velocities - 1),
              last = clamp((int)floor((box[6] - from) / step), first, velocities - 1);
    int low = first;
    for (int i = first + 1; i <= last; ++i)
        if (rise(s, p, velocities, i, low) < 0.0f) low = i;
    float peak = low;
    if (low > first && low < last) {
        const float l = rise(s, p, velocities, low - 1, low), r = rise(s, p, velocities, low + 1, low);
        if (l + r > 0.0f) peak += 0.5f * (l - r) / (l + r);
    }
    float sum = 0.0f, second = 0.0f, third = 0.0f, fourth = 0.0f, ends = 0.0f;
    for (int i = first; i <= last; ++i) {
        const float w = exp(-0.5f * rise(s, p, velocities, i, low)), u = i - peak;
        sum += w;
        second = fma(w * u, u, second), third = fma(w * u * u, u, third);
        fourth = fma(w * u * u * u, u, fourth);
        if ((i == first && first == 0 && from > box[0]) ||
            (i == last && last == velocities - 1 && from + step * last < box[6]))
            ends = fmax(ends, w);
    }
    const float spread = sqrt(second / sum);
    s[CLV_S_SCAN] = from + step * peak, s[CLV_S_SCAN + 1] = spread * step;
    s[CLV_S_SCAN + 2] = third / sum / (spread * spread * spread);
    s[CLV_S_SCAN + 3] = fourth / sum / (spread * spread * spread * spread);
    const float turn = fabs(s[CLV_S_SCAN_TURN]) + 1.0f;
    const bool coarse = spread < WANTED - 1.0f && step > 1e-3f,
               narrow = ends > 1e-4f && last - first + 1 == velocities;
    if (narrow) s[CLV_S_SCAN + 1] *= 2.0f; /* the next turn looks that much wider */
    const bool again = isfinite(spread) && (coarse || narrow) && turn < (float)turns;
    if (narrow && !again) s[CLV_S_SCAN + 1] *= 0.5f;
    s[CLV_S_SCAN_TURN] = again ? turn : -turn;
}

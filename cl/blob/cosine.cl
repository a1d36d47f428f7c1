/* cl/blob/cosine.cl -- responses by cosine transforms, whose cost does not depend on sigma.
 *
 * With mirrored borders (d c b a | a b c d), filtering by a symmetric kernel is a product of cosine sums: the
 * cosine transform of kind II along y and x turns a filter into a product with the kernel's own cosine sum, and
 * kind III transforms the responses back. The kernel coefficients are the same as in rows.cl, truncated at the
 * same radius and folded as often as needed; only the order of the sums differs.
 *
 * Other methods were measured (512x512 pixels, 5 sigmas). A cascade that makes each Gaussian from the one before
 * saves a quarter of the coefficients, but its errors are up to 5e-3 of a plane's largest response. At half the
 * resolution, the errors are up to 1.6e-3 of it. The errors of these transforms are 4e-6 of the response itself. clFFT
 * has periodic borders, so that lines would be longer by twice the radius; it takes 1 to 2 ms for one such plane.
 *
 * Lines lie side by side: a vector holds one place of 16 lines. Two vectors of lines are the real and the
 * imaginary part of one complex Fourier transform, which gives the cosine sums of both (Makhoul 1980). Lengths
 * have no prime factors but 2, 3 and 5; a line of another length is continued by its mirror image, at least as
 * far as the kernel reaches.
 *
 * Memory   First comes the scratch of each work-item, 2 * 32 * the longest line; then, for each frame of a group:
 *   spectrum  [x or kx][ky]             columns * pitch
 *   halfway   [scale of the step][ky][x] responses that are transformed back in x, but not yet in y
 *   responses [scale][y][x]
 * Launch   1-D, local (1): each work-item takes block after block; its scratch stays in the cache.
 * Defines  LANES (16), PIXEL. DOG is 0 and not used: for differences of Gaussians, the cosine sums of the kernels
 *          already hold the difference.
 * Order    Sums have the order of the transform: bits do not depend on blocks, work-items or batches. */
#pragma OPENCL FP_CONTRACT OFF

#include "blob/blob.clh"

#define BLOCK (2 * LANES) /* lines at a time */
#define TIE 1e-6f /* smaller differences are rounding: a ridge of equal responses is one maximum here too */

typedef struct wave_t {
    fvec re, im;
} wave_t;

static inline wave_t load_wave(__global const float *p)
{
    wave_t w;
    w.re = lanes_load(p), w.im = lanes_load(p + LANES);
    return w;
}

static inline void store_wave(wave_t w, __global float *p)
{
    lanes_store(w.re, p), lanes_store(w.im, p + LANES);
}

static inline wave_t add(wave_t a, wave_t b)
{
    a.re += b.re, a.im += b.im;
    return a;
}

static inline wave_t sub(wave_t a, wave_t b)
{
    a.re -= b.re, a.im -= b.im;
    return a;
}

static inline wave_t times_minus_i(wave_t a)
{
    wave_t r;
    r.re = a.im, r.im = -a.re;
    return r;
}

static inline wave_t turn(wave_t a, float2 w)
{
    const fvec c = w.x, s = w.y;
    wave_t r;
    r.re = fma(a.re, c, -(a.im * s)), r.im = fma(a.re, s, a.im * c);
    return r;
}

/* Returns a + t * b for a number t. */
static inline wave_t plus(wave_t a, float t, wave_t b)
{
    a.re = fma((fvec)t, b.re, a.re), a.im = fma((fvec)t, b.im, a.im);
    return a;
}

/* Does one pass of the transform by the radix r = 2, 3, 4 or 5 (Stockham) from x to y: `s` transforms of length `m`
 * become r * s of length m / r. */
static void pass_by_4(__global const float *x, __global float *y, int parts, int s,
                      __global const float2 *w)
{
    const size_t step = (size_t)parts * s * BLOCK, out = (size_t)s * BLOCK;
    for (int p = 0; p < parts; ++p) {
        const float2 w1 = w[p * s], w2 = w[2 * p * s], w3 = w[3 * p * s];
        __global const float *from = x + (size_t)p * out;
        __global float *to = y + (size_t)4 * p * out;
        for (int q = 0; q < s; ++q, from += BLOCK, to += BLOCK) {
            const wave_t a = load_wave(from), b = load_wave(from + step),
                         c = load_wave(from + 2 * step), d = load_wave(from + 3 * step);
            const wave_t ac = add(a, c), bd = add(b, d), a_c = sub(a, c),
                         b_d = times_minus_i(sub(b, d));
            store_wave(add(ac, bd), to);
            store_wave(turn(add(a_c, b_d), w1), to + out);
            store_wave(turn(sub(ac, bd), w2), to + 2 * out);
            store_wave(turn(sub(a_c, b_d), w3), to + 3 * out);
        }
    }
}

static void pass_by_2(__global const float *x, __global float *y, int parts, int s,
                      __global const float2 *w)
{
    const size_t step = (size_t)parts * s * BLOCK, out = (size_t)s * BLOCK;
    for (int p = 0; p < parts; ++p) {
        const float2 w1 = w[p * s];
        __global const float *from = x + (size_t)p * out;
        __global float *to = y + (size_t)2 * p * out;
        for (int q = 0; q < s; ++q, from += BLOCK, to += BLOCK) {
            const wave_t a = load_wave(from), b = load_wave(from + step);
            store_wave(add(a, b), to);
            store_wave(turn(sub(a, b), w1), to + out);
        }
    }
}

static void pass_by_3(__global const float *x, __global float *y, int parts, int s,
                      __global const float2 *w)
{
    const size_t step = (size_t)parts * s * BLOCK, out = (size_t)s * BLOCK;
    for (int p = 0; p < parts; ++p) {
        const float2 w1 = w[p * s], w2 = w[2 * p * s];
        __global const float *from = x + (size_t)p * out;
        __global float *to = y + (size_t)3 * p * out;
        for (int q = 0; q < s; ++q, from += BLOCK, to += BLOCK) {
            const wave_t a = load_wave(from), b = load_wave(from + step),
                         c = load_wave(from + 2 * step), none = { 0.0f, 0.0f };
            const wave_t sum = add(b, c);
            const wave_t even = plus(a, -0.5f, sum);
            const wave_t odd = plus(none, 0.866025404f, times_minus_i(sub(b, c)));
            store_wave(add(a, sum), to);
            store_wave(turn(add(even, odd), w1), to + out);
            store_wave(turn(sub(even, odd), w2), to + 2 * out);
        }
    }
}

static void pass_by_5(__global const float *x, __global float *y, int parts, int s,
                      __global const float2 *w)
{
    const size_t step = (size_t)parts * s * BLOCK, out = (size_t)s * BLOCK;
    const float c1 = 0.309016994f, c2 = -0.809016994f, s1 = 0.951056516f, s2 = 0.587785252f;
    for (int p = 0; p < parts; ++p) {
        const float2 w1 = w[p * s], w2 = w[2 * p * s], w3 = w[3 * p * s], w4 = w[4 * p * s];
        __global const float *from = x + (size_t)p * out;
        __global float *to = y + (size_t)5 * p * out;
        for (int q = 0; q < s; ++q, from += BLOCK, to += BLOCK) {
            const wave_t a = load_wave(from), b = load_wave(from + step),
                         c = load_wave(from + 2 * step), d = load_wave(from + 3 * step),
                         e = load_wave(from + 4 * step), none = { 0.0f, 0.0f };
            const wave_t be = add(b, e), cd = add(c, d), b_e = times_minus_i(sub(b, e)),
                         c_d = times_minus_i(sub(c, d));
            const wave_t even1 = plus(plus(a, c1, be), c2, cd);
            const wave_t even2 = plus(plus(a, c2, be), c1, cd);
            const wave_t odd1 = plus(plus(none, s1, b_e), s2, c_d);
            const wave_t odd2 = plus(plus(none, s2, b_e), -s1, c_d);
            store_wave(add(a, add(be, cd)), to);
            store_wave(turn(add(even1, odd1), w1), to + out);
            store_wave(turn(add(even2, odd2), w2), to + 2 * out);
            store_wave(turn(sub(even2, odd2), w3), to + 3 * out);
            store_wave(turn(sub(even1, odd1), w4), to + 4 * out);
        }
    }
}

/* Computes the Fourier transform of the n complex vectors at x, alternating between x and y; returns where the result
 * is. */
static __global float *transform(__global float *x, __global float *y, int n,
                                 __global const float2 *w)
{
    for (int m = n, s = 1; m > 1;) {
        const int r = m % 4 == 0 ? 4 : m % 2 == 0 ? 2 : m % 3 == 0 ? 3 : 5;
        m /= r;
        if (r == 4)
            pass_by_4(x, y, m, s, w);
        else if (r == 2)
            pass_by_2(x, y, m, s, w);
        else if (r == 3)
            pass_by_3(x, y, m, s, w);
        else
            pass_by_5(x, y, m, s, w);
        s *= r;
        __global float *last = x;
        x = y, y = last;
    }
    return x;
}

/* Returns where element `i` of a line goes, so that a Fourier transform gives its cosine sums. */
static inline int shuffled(int i, int n)
{
    return i & 1 ? n - 1 - (i >> 1) : i >> 1;
}

/* Converts the Fourier transform of two lines to twice their cosine sums, in place. quarter[k] = (cos, sin) of
 * pi k / 2n. */
static void untangle(__global float *z, int n, __global const float2 *quarter)
{
    store_wave(add(load_wave(z), load_wave(z)), z);
    for (int k = 1; 2 * k <= n; ++k) {
        __global float *low = z + (size_t)k * BLOCK, *high = z + (size_t)(n - k) * BLOCK;
        const wave_t p = load_wave(low), q = load_wave(high);
        const fvec a = p.re + q.re, ai = p.im - q.im, b = p.im + q.im, bi = q.re - p.re;
        const fvec c = quarter[k].x, s = quarter[k].y;
        wave_t l, h;
        l.re = fma(c, a, s * ai), l.im = fma(c, b, s * bi);
        h.re = fma(s, a, -(c * ai)), h.im = fma(s, b, -(c * bi));
        store_wave(h, high), store_wave(l, low);
    }
}

/* Converts the cosine sums p (element k) and q (element n - k) of two lines to the input of the inverse Fourier
 * transform. Real and imaginary parts are exchanged, so that the forward transform computes the inverse. */
static inline void tangle(wave_t p, wave_t q, __global float *z, int k, int n,
                          __global const float2 *quarter)
{
    const fvec c = quarter[k].x, s = quarter[k].y;
    const fvec a = fma(c, p.re, s * q.re), ai = fma(s, p.re, -(c * q.re));
    const fvec b = fma(c, p.im, s * q.im), bi = fma(s, p.im, -(c * q.im));
    wave_t low, high;
    low.im = a - bi, low.re = ai + b;
    high.im = a + bi, high.re = b - ai;
    store_wave(high, z + (size_t)(n - k) * BLOCK);
    store_wave(low, z + (size_t)k * BLOCK);
}

/* Transposes 16 vectors. */
static inline void flip(fvec v[LANES])
{
    fvec t[LANES];
#pragma unroll
    for (int round = 0; round < 2; ++round) {
#pragma unroll
        for (int i = 0; i < LANES / 2; ++i) {
            t[2 * i].even = v[i].lo, t[2 * i].odd = v[i + LANES / 2].lo;
            t[2 * i + 1].even = v[i].hi, t[2 * i + 1].odd = v[i + LANES / 2].hi;
        }
#pragma unroll
        for (int i = 0; i < LANES / 2; ++i) {
            v[2 * i].even = t[i].lo, v[2 * i].odd = t[i + LANES / 2].lo;
            v[2 * i + 1].even = t[i].hi, v[2 * i + 1].odd = t[i + LANES / 2].hi;
        }
    }
}

/* Stores elements [at, at + 16) of the block's 32 lines; each line is a row of `out`, from column `at` on. */
static void store_lines(__global const float *z, int at, int n, bool back, __global float *out,
                        size_t pitch)
{
    fvec a[LANES], b[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
        const int place = at + i < n ? (back ? shuffled(at + i, n) : at + i) : 0;
        const wave_t w = load_wave(z + (size_t)place * BLOCK);
        a[i] = back ? w.im : w.re, b[i] = back ? w.re : w.im;
    }
    flip(a), flip(b);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
        lanes_store(a[i], out + (size_t)i * pitch + at);
        lanes_store(b[i], out + (size_t)(LANES + i) * pitch + at);
    }
}

static inline fvec bring_vector(__global const pixel_t *p, float pedestal, float gain)
{
    const fvec v = to_fvec(lanes_load(p));
#if PIXEL == CLV_BLOB_PIXEL_F32
    return pick(isfinite(v), (v - pedestal) * gain, (fvec)0.0f);
#else
    return (v - pedestal) * gain;
#endif
}

/* Transforms pixels to cosine sums along y: `nx` lines (columns) of length `ny`. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_blob_sums_of_columns(__global const pixel_t *restrict pixels, ulong offset, ulong frame_stride,
                         ulong row_stride, __global const float *restrict pedestals,
                         __global float *memory, ulong spectrum_at, int line,
                         __global const float2 *restrict waves, __global const float2 *restrict quarters,
                         int height, int width, int ny, int nx, int pitch, int frames, float gain,
                         uint at)
{
    const int blocks = (nx + BLOCK - 1) / BLOCK;
    __global float *spectrum = memory + spectrum_at;
    __global float *x = memory + (size_t)2 * line * BLOCK * get_global_id(0);
    __global float *y = x + (size_t)line * BLOCK;
    for (int b = get_global_id(0); b < blocks * frames; b += get_global_size(0)) {
        const int n = b / blocks, x0 = b % blocks * BLOCK;
        __global const pixel_t *frame = pixels + offset + (at + n) * (size_t)frame_stride;
        const float pedestal = pedestals[at + n];
        for (int i = 0; i < ny; ++i) {
            __global const pixel_t *row = frame + mirror(i, height) * (size_t)row_stride;
            __global float *to = x + (size_t)shuffled(i, ny) * BLOCK;
            if (x0 + BLOCK <= width) {
                lanes_store(bring_vector(row + x0, pedestal, gain), to);
                lanes_store(bring_vector(row + x0 + LANES, pedestal, gain), to + LANES);
            } else {
                for (int j = 0; j < BLOCK; ++j)
                    to[j] = x0 + j < nx ? bring(row[mirror(x0 + j, width)], pedestal, gain) : 0.0f;
            }
        }
        __global float *z = transform(x, y, ny, waves);
        untangle(z, ny, quarters);
        __global float *out = spectrum + ((size_t)n * blocks * BLOCK + x0) * pitch;
        for (int i = 0; i < pitch; i += LANES) store_lines(z, i, ny, false, out, pitch);
    }
}

/* Transforms cosine sums along y to cosine sums along both axes, in place. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_blob_sums_of_rows(__global float *memory, ulong spectrum_at, int line,
                      __global const float2 *restrict waves,
                      __global const float2 *restrict quarters, int nx, int pitch, int frames)
{
    __global float *spectrum = memory + spectrum_at;
    const int blocks = pitch / BLOCK;
    const size_t plane = (size_t)(nx + BLOCK - 1) / BLOCK * BLOCK * pitch;
    __global float *x = memory + (size_t)2 * line * BLOCK * get_global_id(0);
    __global float *y = x + (size_t)line * BLOCK;
    for (int b = get_global_id(0); b < blocks * frames; b += get_global_size(0)) {
        __global float *lines = spectrum + b / blocks * plane + b % blocks * BLOCK;
        for (int i = 0; i < nx; ++i)
            store_wave(load_wave(lines + (size_t)i * pitch), x + (size_t)shuffled(i, nx) * BLOCK);
        __global float *z = transform(x, y, nx, waves);
        untangle(z, nx, quarters);
        for (int i = 0; i < nx; ++i)
            store_wave(load_wave(z + (size_t)i * BLOCK), lines + (size_t)i * pitch);
    }
}

/* Applies a scale's filter: returns cosine sums multiplied by first_y first_x + second_y second_x. */
static inline wave_t filtered(__global const float *spectrum, int k, int pitch,
                              __global const float2 *along_x, wave_t first, wave_t second)
{
    const fvec f = along_x[k].x, s = along_x[k].y;
    wave_t w = load_wave(spectrum + (size_t)k * pitch);
    w.re *= fma(first.re, f, second.re * s), w.im *= fma(first.im, f, second.im * s);
    return w;
}

/* Filters the spectrum for the scales [from, from + scales) and transforms it back along x. filters: for each scale
 * [pitch] first_y, [pitch] second_y, [nx] pairs along x. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_blob_rows_from_sums(__global float *memory, ulong spectrum_at, ulong halfway_at, int line,
                        __global const float2 *restrict waves,
                        __global const float2 *restrict quarters,
                        __global const float *restrict filters, int nx, int pitch, int from,
                        int scales, int frames)
{
    __global const float *spectrum = memory + spectrum_at;
    __global float *halfway = memory + halfway_at;
    const int blocks = pitch / BLOCK, columns = (nx + BLOCK - 1) / BLOCK * BLOCK;
    const size_t plane = (size_t)columns * pitch;
    __global float *x = memory + (size_t)2 * line * BLOCK * get_global_id(0);
    __global float *y = x + (size_t)line * BLOCK;
    for (int b = get_global_id(0); b < blocks * scales * frames; b += get_global_size(0)) {
        const int k0 = b / scales % blocks * BLOCK, scale = b % scales, n = b / scales / blocks;
        __global const float *lines = spectrum + n * plane + k0;
        __global const float *filter = filters + (size_t)(from + scale) * 2 * (pitch + nx);
        __global const float2 *along_x = (__global const float2 *)(filter + 2 * pitch);
        const wave_t first = load_wave(filter + k0), second = load_wave(filter + pitch + k0);
        const wave_t p = filtered(lines, 0, pitch, along_x, first, second);
        wave_t swapped;
        swapped.re = p.im, swapped.im = p.re;
        store_wave(swapped, x);
        for (int k = 1; 2 * k <= nx; ++k)
            tangle(filtered(lines, k, pitch, along_x, first, second),
                   filtered(lines, nx - k, pitch, along_x, first, second), x, k, nx, quarters);
        __global float *z = transform(x, y, nx, waves);
        __global float *out = halfway + ((size_t)n * scales + scale) * plane + (size_t)k0 * columns;
        for (int i = 0; i < columns; i += LANES) store_lines(z, i, nx, true, out, columns);
    }
}

/* Transforms the filtered lines back along y, and stores the responses. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_blob_columns_from_sums(__global float *memory, ulong halfway_at, ulong responses_at, int line,
                           __global const float2 *restrict waves,
                           __global const float2 *restrict quarters,
                           __global const float *restrict pedestals,
                           __global const float *restrict leak, int height, int width, int ny,
                           int nx, int pitch, int from, int scales, int all_scales, int frames,
                           float gain, uint at)
{
    __global const float *halfway = memory + halfway_at;
    __global float *responses = memory + responses_at;
    const int blocks = (width + BLOCK - 1) / BLOCK, columns = (nx + BLOCK - 1) / BLOCK * BLOCK;
    __global float *x = memory + (size_t)2 * line * BLOCK * get_global_id(0);
    __global float *y = x + (size_t)line * BLOCK;
    for (int b = get_global_id(0); b < blocks * scales * frames; b += get_global_size(0)) {
        const int x0 = b % blocks * BLOCK, plane = b / blocks, n = plane / scales;
        const int k = from + plane % scales;
        __global const float *lines = halfway + (size_t)plane * columns * pitch + x0;
        const wave_t p = load_wave(lines);
        wave_t swapped;
        swapped.re = p.im, swapped.im = p.re;
        store_wave(swapped, x);
        for (int i = 1; 2 * i <= ny; ++i)
            tangle(load_wave(lines + (size_t)i * columns), load_wave(lines + (size_t)(ny - i) * columns),
                   x, i, ny, quarters);
        __global const float *z = transform(x, y, ny, waves);
        __global float *out = responses + (size_t)(n * all_scales + k) * height * width + x0;
        const float bias = leak[k] * pedestals[at + n] * gain;
        for (int i = 0; i < height; ++i, out += width) {
            const wave_t w = load_wave(z + (size_t)shuffled(i, ny) * BLOCK);
            if (x0 + BLOCK <= width) {
                lanes_store(w.im + bias, out), lanes_store(w.re + bias, out + LANES);
            } else {
                float v[BLOCK];
                LANES_JOIN(vstore, LANES)(w.im + bias, 0, v);
                LANES_JOIN(vstore, LANES)(w.re + bias, 0, v + LANES);
                for (int j = 0; x0 + j < width; ++j) out[j] = v[j];
            }
        }
    }
}

/* Counts the sizes of responses in bins, with one work-item per scale and frame: see blob.clh. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_blob_sizes(__global const float *restrict memory, ulong responses_at,
               __global uint *restrict bins, __global const float *restrict map,
               __global const float *restrict factor, int height, int width, int scales, int step,
               int across, int cells, int shift, uint at)
{
    const size_t plane = get_global_id(0);
    __global const float *responses = memory + responses_at + plane * height * width;
    bins += ((size_t)at * scales + plane) * CLV_BLOB_NOISE_BINS;
    const int k = plane % scales;
    map += (at + plane / scales) * cells;
    for (int y = 0; y < height; y += step)
        for (int x = 0; x < width; x += step)
            ++bins[noise_bin(responses[(size_t)y * width + x] /
                             floor_at(map, factor, across, shift, k, y, x))];
}

/* Returns whether any lane is set. The search for maxima uses this function to skip vectors without a response above
 * the threshold, as most are. */
static bool any_of(ivec mask)
{
    const long8 m = as_long8(mask);
    return (m.s0 | m.s1 | m.s2 | m.s3 | m.s4 | m.s5 | m.s6 | m.s7) != 0;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_blob_look_along(__global const float *restrict memory, ulong responses_at,
                    __global uint *restrict peaks, volatile __global uint *counts,
                    __global const float *restrict map, __global const float *restrict factor,
                    int height, int width, int scales, int rows, uint capacity, float relative,
                    int across, int cells, int shift, uint at)
{
    const int k = get_global_id(1) % scales;
    const uint n = get_global_id(1) / scales;
    const size_t plane = (size_t)height * width;
    __global const float *L = memory + responses_at + n * scales * plane;
    map += (size_t)(at + n) * cells;
    counts += 2 * (at + n), peaks += (size_t)(at + n) * capacity * CLV_BLOB_PEAK_WORDS;
    const int y0 = get_global_id(0) * rows;
    for (int y = y0; y < min(y0 + rows, height); ++y) {
        const float least = relative > 0.0f ? relative * largest_of(counts) : 0.0f;
        __global const float *row = L + k * plane + (size_t)y * width;
        const bool inner = y > 0 && y + 1 < height;
        for (int x = 0; x < width; x += LANES) {
            const float bound =
                fmax(least, floor_at(map, factor, across, shift, k, y, x)); /* a vector lies in one cell */
            int lane[LANES];
            if (x + LANES <= width) {
                const fvec c = lanes_load(row + x);
                ivec top = c > bound;
                if (!any_of(top)) continue;
                if (inner && x > 0 && x + LANES < width) {
                    const fvec clear = c * (1.0f - TIE), near = c * (1.0f + TIE);
                    top = top && clear > lanes_load(row + x - 1) && near >= lanes_load(row + x + 1) &&
                        clear > lanes_load(row + x - width) && near >= lanes_load(row + x + width);
                    if (k > 0) top = top && clear > lanes_load(row + x - plane);
                    if (k + 1 < scales) top = top && near >= lanes_load(row + x + plane);
                    if (!any_of(top)) continue;
                }
                LANES_JOIN(vstore, LANES)(top, 0, lane);
            } else {
                for (int i = 0; i < LANES; ++i) lane[i] = x + i < width && row[x + i] > bound;
            }
            for (int i = 0; i < LANES; ++i)
                if (lane[i])
                    consider(L, y, x + i, k, height, width, scales, TIE, relative, peaks, counts,
                             capacity);
        }
    }
}

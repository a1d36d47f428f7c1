/* transformer/optimise.cl -- steps of SGD and AdamW, and the squared length of a gradient.
 *
 * Launch   1-D: global (count / (LANES * each), rounded up to LOCAL), local (LOCAL).
 * Defines  LANES, LOCAL.
 * Sums     Steps add the bits of all weights and moments that they read and write to S, as integers modulo 2^32: what
 *          one step reads must be what the step before wrote. The sums have CLV_BIT_SLOTS places, so that work-groups
 *          seldom wait for each other; the host adds them.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"
#include "transformer/shared.clh"

typedef struct bit_sums {
    uvec weights_read, weights_written, moments_read, moments_written;
} bit_sums;

/* Returns the bits of the first `rest` lanes of a vector as integers, and 0 in the other lanes. */
static uvec bits_of(fvec x, uint rest)
{
#if LANES > 1
    return as_uvec(as_ivec(x) & ((ivec)(lanes_iota()) < (ivec)((int)rest)));
#else
    return as_uint(x);
#endif
}

static uint add_lanes(uvec x)
{
#if LANES == 16
    const uint8 a = x.lo + x.hi;
    const uint4 b = a.lo + a.hi;
    return (b.x + b.z) + (b.y + b.w);
#elif LANES == 8
    const uint4 b = x.lo + x.hi;
    return (b.x + b.z) + (b.y + b.w);
#else
    return x;
#endif
}

/* Sets the sums to 0. An initialiser would become a variable that SPIR-V 1.4 wants to be listed by the kernel, and that
 * Intel's compiler does not list. */
static void clear_sums(bit_sums *sums)
{
    sums->weights_read = sums->weights_written = (uvec)(0);
    sums->moments_read = sums->moments_written = (uvec)(0);
}

/* Adds the sums of a work-group to S; all work-items of the group must call this function. */
static void put_sums(const bit_sums *sums, __local uint *own, __global uint *S)
{
    const uint item = get_local_id(0);
    __global uint *slot = S + get_group_id(0) % CLV_BIT_SLOTS * CLV_BIT_SUMS;
    if (item == 0)
        for (uint i = 0; i < CLV_BIT_SUMS; ++i)
            own[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(own + CLV_BIT_WEIGHTS_READ, add_lanes(sums->weights_read));
    atomic_add(own + CLV_BIT_WEIGHTS_WRITTEN, add_lanes(sums->weights_written));
    atomic_add(own + CLV_BIT_MOMENTS_READ, add_lanes(sums->moments_read));
    atomic_add(own + CLV_BIT_MOMENTS_WRITTEN, add_lanes(sums->moments_written));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0)
        for (uint i = 0; i < CLV_BIT_SUMS; ++i)
            atomic_add(slot + i, own[i]);
}

/* g' = scale g + decay w;  m = momentum m + g' (the first step: m = g');  w -= rate m.
 * Without momentum, m is not used. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_sgd(__global float *restrict W, __global const float *restrict G, __global float *restrict M,
        __global uint *restrict S, ulong offset, ulong count, float scale, float rate, float momentum,
        float decay, uint first_step, uint each)
{
    __local uint own[CLV_BIT_SUMS];
    bit_sums sums;
    clear_sums(&sums);
    const size_t first = get_global_id(0) * each * LANES;
    __global float *w = W + offset, *m = M + offset;
    __global const float *g = G + offset;
    for (uint i = 0; i < each && first + i * LANES < count; ++i) {
        const size_t at = first + i * LANES;
        const uint rest = (uint)min(count - at, (ulong)LANES);
        const fvec old = columns(w + at, 0, rest);
        fvec step = fma(old, (fvec)(decay), columns(g + at, 0, rest) * scale);
        if (momentum != 0.0f) {
            if (!first_step) {
                const fvec mean = columns(m + at, 0, rest);
                sums.moments_read += bits_of(mean, rest);
                step = fma(mean, (fvec)(momentum), step);
            }
            sums.moments_written += bits_of(step, rest);
            put_columns(step, m + at, 0, rest);
        }
        const fvec now = fma(step, (fvec)(-rate), old);
        sums.weights_read += bits_of(old, rest);
        sums.weights_written += bits_of(now, rest);
        put_columns(now, w + at, 0, rest);
    }
    put_sums(&sums, own, S);
}

/* w *= 1 - rate decay;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 * w -= step m / (sqrt(v) * root + eps), with step = rate / (1 - b1^n) and root = 1 / sqrt(1 - b2^n) at
 * step n; g is G times `scale`. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_adamw(__global float *restrict W, __global const float *restrict G, __global float *restrict M,
          __global float *restrict V, __global uint *restrict S, ulong offset, ulong count, float scale,
          float keep, float b1, float b2, float left1, float left2, float step, float root, float eps,
          uint each)
{
    __local uint own[CLV_BIT_SUMS];
    bit_sums sums;
    clear_sums(&sums);
    const size_t first = get_global_id(0) * each * LANES;
    __global float *w = W + offset, *m = M + offset, *v = V + offset;
    __global const float *g = G + offset;
    for (uint i = 0; i < each && first + i * LANES < count; ++i) {
        const size_t at = first + i * LANES;
        const uint rest = (uint)min(count - at, (ulong)LANES);
        const fvec old = columns(w + at, 0, rest), old_mean = columns(m + at, 0, rest);
        const fvec old_square = columns(v + at, 0, rest);
        const fvec slope = columns(g + at, 0, rest) * scale;
        const fvec mean = fma(old_mean, (fvec)(b1), slope * left1);
        const fvec square = fma(old_square, (fvec)(b2), slope * slope * left2);
        put_columns(mean, m + at, 0, rest);
        put_columns(square, v + at, 0, rest);
        const fvec by = mean / fma(sqrt(square), (fvec)(root), (fvec)(eps));
        const fvec now = fma(by, (fvec)(-step), old * keep);
        put_columns(now, w + at, 0, rest);
        sums.weights_read += bits_of(old, rest);
        sums.weights_written += bits_of(now, rest);
        sums.moments_read += bits_of(old_mean, rest) + bits_of(old_square, rest);
        sums.moments_written += bits_of(mean, rest) + bits_of(square, rest);
    }
    put_sums(&sums, own, S);
}

/* P[item] = sum of G^2 over the item's `each` vectors; the host adds the items in order. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_squares(__global const float *restrict G, ulong offset, ulong count, __global float *restrict P,
            ulong p_offset, uint items, uint each)
{
    const size_t first = get_global_id(0) * each * LANES;
    if (get_global_id(0) >= items) return;
    fvec sum = (fvec)(0.0f);
    for (uint i = 0; i < each && first + i * LANES < count; ++i) {
        const size_t at = first + i * LANES;
        const fvec g = columns(G + offset + at, 0, (uint)min(count - at, (ulong)LANES));
        sum = fma(g, g, sum);
    }
    P[p_offset + get_global_id(0)] = lanes_sum(sum);
}

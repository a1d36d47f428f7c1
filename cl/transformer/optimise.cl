/* transformer/optimise.cl -- steps of SGD and AdamW, and the squared length of a gradient.
 *
 * Launch   1-D: global (count / (LANES * each), rounded up to LOCAL), local (LOCAL).
 * Defines  LANES, LOCAL.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"

/* g' = scale g + decay w;  m = momentum m + g' (the first step: m = g');  w -= rate m.
 * Without momentum, m is not used. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_sgd(__global float *restrict W, __global const float *restrict G, __global float *restrict M,
        ulong offset, ulong count, float scale, float rate, float momentum, float decay,
        uint first_step, uint each)
{
    const size_t first = get_global_id(0) * each * LANES;
    __global float *w = W + offset, *m = M + offset;
    __global const float *g = G + offset;
    for (uint i = 0; i < each; ++i) {
        const size_t at = first + i * LANES;
        if (at >= count) return;
        const uint rest = (uint)min(count - at, (ulong)LANES);
        const fvec old = columns(w + at, 0, rest);
        fvec step = fma(old, (fvec)(decay), columns(g + at, 0, rest) * scale);
        if (momentum != 0.0f) {
            if (!first_step) step = fma(columns(m + at, 0, rest), (fvec)(momentum), step);
            put_columns(step, m + at, 0, rest);
        }
        put_columns(fma(step, (fvec)(-rate), old), w + at, 0, rest);
    }
}

/* w *= 1 - rate decay;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 * w -= step m / (sqrt(v) * root + eps), with step = rate / (1 - b1^n) and root = 1 / sqrt(1 - b2^n) at
 * step n; g is G times `scale`. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_adamw(__global float *restrict W, __global const float *restrict G, __global float *restrict M,
          __global float *restrict V, ulong offset, ulong count, float scale, float keep, float b1,
          float b2, float left1, float left2, float step, float root, float eps, uint each)
{
    const size_t first = get_global_id(0) * each * LANES;
    __global float *w = W + offset, *m = M + offset, *v = V + offset;
    __global const float *g = G + offset;
    for (uint i = 0; i < each; ++i) {
        const size_t at = first + i * LANES;
        if (at >= count) return;
        const uint rest = (uint)min(count - at, (ulong)LANES);
        const fvec slope = columns(g + at, 0, rest) * scale;
        const fvec mean = fma(columns(m + at, 0, rest), (fvec)(b1), slope * left1);
        const fvec square = fma(columns(v + at, 0, rest), (fvec)(b2), slope * slope * left2);
        put_columns(mean, m + at, 0, rest);
        put_columns(square, v + at, 0, rest);
        const fvec by = mean / fma(sqrt(square), (fvec)(root), (fvec)(eps));
        put_columns(fma(by, (fvec)(-step), columns(w + at, 0, rest) * keep), w + at, 0, rest);
    }
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

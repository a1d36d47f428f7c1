/* transformer/elements_back.cl -- activations as separate kernels, and the backward pass of
 * activations, gates, rotary positions, pooling, and rows divided by their length.
 *
 * Launch   of rows: as in transformer/elements.cl; 1 part for rows that are divided by their length.
 * Defines  LANES, LOCAL, TEAM.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rope.clh"
#include "transformer/shared.clh"

/* act'(x). GELU: Phi(x) + x phi(x); SiLU: s (1 + x (1 - s)), s = 1 / (1 + exp(-x)); the tanh form is
 * x s(u), u = x (a + b x^2): s + x s (1 - s) (a + 3 b x^2). tanh: 4 s (1 - s), s = 1 / (1 + exp(-2 x)).
 * ReLU: 0 up to 0, then 1. */
static fvec slope_of(fvec x, uint kind)
{
    if (kind == CLV_ACT_GELU)
        return fma(x, exp_lanes(x * x * -0.5f) * 0.3989422804f, normal_below(x));
    if (kind == CLV_ACT_GELU_TANH) {
        const fvec squares = x * x;
        const fvec s = sigmoid_lanes(x * fma(squares, (fvec)(0.0713548162726f), (fvec)(1.59576912161f)));
        const fvec inner = fma(squares, (fvec)(0.2140644488178f), (fvec)(1.59576912161f));
        return fma(x * inner, s * (1.0f - s), s);
    }
    if (kind == CLV_ACT_SILU) {
        const fvec s = sigmoid_lanes(x);
        return s * fma(x, 1.0f - s, (fvec)(1.0f));
    }
    if (kind == CLV_ACT_TANH) {
        const fvec s = sigmoid_lanes(x + x);
        return 4.0f * s * (1.0f - s);
    }
    if (kind == CLV_ACT_RELU) return pick(x <= 0.0f, (fvec)(0.0f), (fvec)(1.0f));
    return (fvec)(1.0f);
}

/* Computes y = act(x) or, with `back`, y = g * act'(x). All are dense arrays of `count` numbers; y may be g.
 * Launch   1-D: global (count / (LANES * each), rounded up to LOCAL), local (LOCAL). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_activation(__global const float *restrict x, __global const float *g, __global float *y,
               uint count, uint act, uint back, uint each)
{
    const uint first = get_global_id(0) * each * LANES;
    const uint last = min(first + each * LANES, count);
    if (first >= count) return;
    for (uint c = first; c < last; c += LANES) {
        const fvec v = columns(x, c, count);
        put_columns(back ? columns(g, c, count) * slope_of(v, act) : activate(v, act), y, c, count);
    }
}

/* Computes y += x, from x_offset and y_offset on.
 * Launch   1-D: as clv_activation. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_add(__global const float *restrict x, ulong x_offset, __global float *restrict y, ulong y_offset,
        uint count, uint each)
{
    const uint first = get_global_id(0) * each * LANES;
    const uint last = min(first + each * LANES, count);
    if (first >= count) return;
    x += x_offset, y += y_offset;
    for (uint c = first; c < last; c += LANES)
        put_columns(columns(y, c, count) + columns(x, c, count), y, c, count);
}

/* The backward pass of y = act(gate) * up: dgate = g up act'(gate), dup = g act(gate). Rows of x
 * and dx hold gate, then up. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_gate_back(__global const float *restrict x, __global const float *restrict g,
              __global float *restrict dx, uint rows, uint width, uint act)
{
    const size_t r = OWN_ROW;
    if (r >= rows) return;
    __global const float *gate = x + r * 2 * width, *up = gate + width;
    __global float *to = dx + r * 2 * width;
    FOR_COLUMNS(c, width) {
        const fvec v = columns(gate, c, width), from = columns(g + r * width, c, width);
        put_columns(from * columns(up, c, width) * slope_of(v, act), to, c, width);
        put_columns(from * activate(v, act), to + width, c, width);
    }
}

/* Applies the rotation of clv_rope in the opposite direction, in place. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_rope_back(__global float *x, ulong offset, ulong row, __global const float2 *restrict turns,
              uint first, uint rows, uint heads, uint pairs)
{
    const size_t r = OWN_ROW;
    if (r >= rows) return;
    turn_heads(x + offset + r * row, turns + (first + r) * pairs, heads, pairs, -1.0f);
}

/* Distributes the gradient of a sequence's pooled vector to the sequence's rows: in equal shares (mean), to the first
 * row (CLS), or for each column to the first row that holds the maximum (max). Rows that do not count receive 0. The
 * lists are as in transformer/pool.cl.
 * Launch   2-D: global (work-items that share the columns, a multiple of LOCAL; sequences), local (LOCAL, 1). */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_pool_back(__global const float *restrict g, __global const float *restrict x,
              __global const int2 *restrict rows, __global const int *restrict weight,
              uint has_weight, __global float *restrict dx, uint width, uint kind)
{
    const uint s = get_global_id(1);
    const int2 where = rows[s];
    const size_t at = (size_t)where.x * width;
    weight += where.x;
    float counted = 0.0f;
    for (int t = 0; t < where.y; ++t)
        counted += !has_weight || weight[t] ? 1.0f : 0.0f;
    for (uint c = get_global_id(0) * LANES; c < width; c += get_global_size(0) * LANES) {
        const fvec from = columns(g + (size_t)s * width, c, width);
        const fvec share = kind == CLV_POOL_MEAN ? from / fmax(counted, 1.0f) : from;
        fvec high = (fvec)(-INFINITY);
        for (int t = 0; t < where.y && kind == CLV_POOL_MAX; ++t)
            if (!has_weight || weight[t])
                high = fmax(high, columns(x + at + (size_t)t * width, c, width));
        for (int t = 0; t < where.y; ++t) {
            const bool counts = !has_weight || weight[t];
            fvec v = counts && (kind != CLV_POOL_CLS || t == 0) ? share : (fvec)(0.0f);
            if (kind == CLV_POOL_MAX && counts) {
                const ivec hit = columns(x + at + (size_t)t * width, c, width) == high;
                v = pick(hit, share, (fvec)(0.0f));
                high = pick(hit, (fvec)(NAN), high); /* the first one only */
            }
            put_columns(v, dx + at + (size_t)t * width, c, width);
        }
    }
}

/* y = x / max(|x|, eps) row by row; with `back` y = (g - u (u . g)) / max(|x|, eps), u = x / |x|, where
 * |x| > eps, else g / eps. y may be g. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_unit_rows(__global const float *restrict x, __global const float *g, __global float *y, uint rows,
              uint width, float eps, uint back)
{
    TEAM_ROOM;
    const size_t r = OWN_ROW;
    if (r >= rows) return;
    __global const float *from = x + r * width, *slope = g + r * width;
    __global float *to = y + r * width;
    fvec squares = (fvec)(0.0f), along = (fvec)(0.0f);
    FOR_COLUMNS(c, width) {
        const fvec v = columns(from, c, width);
        squares = fma(v, v, squares);
        if (back) along = fma(v, columns(slope, c, width), along);
    }
    const float length = sqrt(team_sum(lanes_sum(squares), room)), divisor = fmax(length, eps);
    const float overlap = team_sum(lanes_sum(along), room); /* not under a condition: PoCL 3.1 miscompiles that */
    const float share = length > eps ? overlap / (length * length) : 0.0f;
    FOR_COLUMNS(c, width) {
        const fvec v = columns(from, c, width);
        put_columns((back ? columns(slope, c, width) - v * share : v) / divisor, to, c, width);
    }
}

/* search/dots.cl -- products of many rows with few queries on CPU cores, and the rows' lengths.
 *
 *   S[q, r] = sum over i of Q[query + q, i] * X[r, i]         scale[r] = 1 / |X[r]|, or 0 if the row is all zeros
 *
 * Reading X from memory takes most of the time, so every row is read once. A work-item takes STRIP rows, ROWS at a
 * time, and multiplies them by all queries, QUERIES at a time. ROWS * QUERIES vectors of partial sums stay in
 * registers.
 *
 * Launch   1-D: global (strips of rows), local 1.
 * Defines  LANES 8 or 16 (the width of a register); NORMS 1: writes `scale`; QUERIES 1, 2 or 4; BYTES 1: X is char, and
 *          converted to float as it is read.
 * Needs    OpenCL C 1.2. Rows of Q are padded with zeros to a multiple of 16 floats, and Q to a multiple of QUERIES
 *          rows. X may have any alignment; nothing beyond `width` is read.
 * Order    Terms are added within each lane in ascending order, then lanes in pairs. Sums differ
 *          from those of other products by rounding. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/lanes.clh"
#include "common/sums.clh"
#include "search/lengths.clh"
#include "search/shared.clh"

#define UNROLL _Pragma("unroll")
#define STRIP CLV_SEARCH_STRIP
#define ROWS (QUERIES == 1 ? 4 : 2)

#if BYTES
LANES_OF(__global, char)
typedef char number;
#define row_load(p) to_fvec(lanes_load(p))
#else
typedef float number;
#define row_load(p) lanes_load(p)
#endif

static float sum_of(fvec v)
{
#if LANES == 16
    const float8 a = v.lo + v.hi;
#else
    const float8 a = v;
#endif
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

/* Returns the last `count` elements of a row, followed by zeros. */
static fvec tail_of(__global const number *x, uint count)
{
    float v[LANES];
    UNROLL for (int i = 0; i < LANES; ++i) v[i] = (uint)i < count ? (float)x[i] : 0.0f;
    return lanes_load(v);
}

/* Returns 1 / |x| of a row whose squares add up to `sum`, or 0 if the row is all zeros. */
static float scale_of(__global const number *x, uint width, float sum)
{
    if (sum >= LEAST_SUM && sum <= MOST_SUM) return 1.0f / sqrt(sum);
    const float factor = FACTOR_OF(sum);
    float again = 0.0f;
    for (uint e = 0; e < width; ++e) {
        const float v = factor * (float)x[e];
        again = fma(v, v, again);
    }
    return again == 0.0f ? 0.0f : factor / sqrt(again);
}

/* Adds the products of all whole vectors, and does ALSO for each row's vector v[i]. */
#define MULTIPLY(ALSO)                                                                           \
    for (uint e = 0; e < whole; e += LANES) {                                                    \
        fvec v[ROWS];                                                                            \
        UNROLL for (int i = 0; i < ROWS; ++i)                                                    \
        {                                                                                        \
            v[i] = row_load(x[i] + e);                                                           \
            ALSO;                                                                                \
        }                                                                                        \
        UNROLL for (int j = 0; j < QUERIES; ++j)                                                 \
        {                                                                                        \
            const fvec y = lanes_load(q[j] + e);                                                 \
            UNROLL for (int i = 0; i < ROWS; ++i) acc[i][j] = fma(v[i], y, acc[i][j]);           \
        }                                                                                        \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_search_dots(__global const number *restrict X, ulong x_offset, ulong x_row, __global const float *restrict Q,
                uint q_row, uint query, __global float *restrict S, uint s_row, __global float *restrict scale,
                uint count, uint width, uint queries)
{
    const uint first = get_global_id(0) * STRIP, last = min(first + STRIP, count);
    const uint whole = width / LANES * LANES, rest = width - whole;
    for (uint r = first; r < last; r += ROWS) {
        __global const number *x[ROWS];
        fvec tail[ROWS], square[ROWS];
        UNROLL for (int i = 0; i < ROWS; ++i)
        {
            x[i] = X + x_offset + min(r + i, last - 1) * x_row;
            tail[i] = rest ? tail_of(x[i] + whole, rest) : (fvec)0.0f;
            square[i] = tail[i] * tail[i];
        }
        for (uint q0 = 0; q0 < queries; q0 += QUERIES) {
            __global const float *q[QUERIES];
            fvec acc[ROWS][QUERIES];
            UNROLL for (int j = 0; j < QUERIES; ++j)
            {
                q[j] = Q + (size_t)(query + q0 + j) * q_row;
                const fvec y = rest ? lanes_load(q[j] + whole) : (fvec)0.0f;
                UNROLL for (int i = 0; i < ROWS; ++i) acc[i][j] = tail[i] * y;
            }
            if (NORMS && q0 == 0) {
                MULTIPLY(square[i] = fma(v[i], v[i], square[i]))
            } else {
                MULTIPLY((void)0)
            }
            UNROLL for (int j = 0; j < QUERIES; ++j)
                UNROLL for (int i = 0; i < ROWS; ++i)
                    if (q0 + j < queries && r + i < last) S[(size_t)(q0 + j) * s_row + r + i] = sum_of(acc[i][j]);
        }
#if NORMS
        if (queries == 0)
            for (uint e = 0; e < whole; e += LANES)
                UNROLL for (int i = 0; i < ROWS; ++i)
                {
                    const fvec v = row_load(x[i] + e);
                    square[i] = fma(v, v, square[i]);
                }
        UNROLL for (int i = 0; i < ROWS; ++i)
        {
            if (r + i < last) scale[r + i] = scale_of(x[i], width, sum_of(square[i]));
        }
#endif
    }
}

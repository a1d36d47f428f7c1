/* transformer/pool.cl -- pools the rows of a sequence to one vector, and divides rows by their length.
 *
 * The weighted mean of n rows is (1 row_1 + 2 row_2 + ... + n row_n) / (1 + 2 + ... + n); `before` is
 * added to the weights 1 to n.
 *
 * `rows` are pairs (first row, number of rows); `weight` (has_weight) says of every row whether it
 * counts. A sequence without rows pools to 0, and 0 stays 0 when it is divided.
 *
 * A work-item takes `part` columns: on cores all columns, and on devices that limit the turns of loops a part of them.
 * In teams (transformer/team.clh), neighbouring work-items take neighbouring columns. Unless a work-item has all
 * columns, clv_pool_divide must follow.
 *
 * Launch   2-D: global (sequences rounded up to LOCAL, or times LOCAL for teams; parts), local (LOCAL, 1);
 *          clv_pool_divide 1-D.
 * Defines  LANES, LOCAL, TEAM.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/shared.clh"
#include "transformer/team.clh"

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_pool(__global const float *restrict x, __global const int2 *restrict rows, ulong first_row,
         int base, __global const int *restrict weight, uint has_weight,
         __global float *restrict out, ulong out_offset, uint sequences, uint width, uint kind,
         uint divide, uint part, int before)
{
    const uint s = OWN_ROW;
    if (s >= sequences) return;
    const int2 where = rows[first_row + s];
    __global const float *from = x + (size_t)(where.x - base) * width;
    __global float *to = out + out_offset + (size_t)s * width;
    weight += where.x - base;
    float counted = 0.0f;
    for (int t = 0; t < where.y; ++t)
        counted += has_weight && !weight[t] ? 0.0f : kind == CLV_POOL_WEIGHTED ? (float)(before + t + 1) : 1.0f;
    const int first = kind == CLV_POOL_LAST ? max(where.y - 1, 0) : 0;
    const int last = kind == CLV_POOL_CLS ? min(where.y, 1) : where.y;
    fvec squares = (fvec)(0.0f);
#if TEAM > 1
    FOR_COLUMNS(c, width) {
#else
    const uint begin = get_global_id(1) * part, end = min(begin + part, width);
    for (uint c = begin; c < end; c += LANES) {
#endif
        fvec v = (fvec)(kind == CLV_POOL_MAX && counted > 0.0f ? -INFINITY : 0.0f);
        for (int t = first; t < last; ++t) {
            if (has_weight && !weight[t]) continue;
            fvec r = columns(from + (size_t)t * width, c, width);
            if (kind == CLV_POOL_WEIGHTED) r = r * (float)(before + t + 1);
            v = kind == CLV_POOL_MAX ? fmax(v, r) : v + r;
        }
        if (kind == CLV_POOL_MEAN || kind == CLV_POOL_WEIGHTED) v = v / fmax(counted, 1.0f);
        put_columns(v, to, c, width);
        v = v * inside(c, width);
        squares = fma(v, v, squares);
    }
    if (!divide || part < width) return;
    const float length = fmax(sqrt(lanes_sum(squares)), 1e-12f);
    for (uint c = 0; c < width; c += LANES)
        put_columns(columns(to, c, width) / length, to, c, width);
}

/* Divides each of the rows of `width` at x by its length. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void
clv_pool_divide(__global float *restrict x, ulong offset, uint rows, uint width)
{
    TEAM_ROOM;
    const uint s = OWN_ROW;
    if (s >= rows) return;
    __global float *row = x + offset + (size_t)s * width;
    fvec squares = (fvec)(0.0f);
    FOR_COLUMNS(c, width) {
        const fvec v = columns(row, c, width);
        squares = fma(v, v, squares);
    }
    const float length = fmax(sqrt(team_sum(lanes_sum(squares), room)), 1e-12f);
    FOR_COLUMNS(c, width)
        put_columns(columns(row, c, width) / length, row, c, width);
}

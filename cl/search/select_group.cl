/* search/select_group.cl -- the `keep` largest scores of each query on GPUs: first one work-group per segment of rows,
 * then one work-group per query for the rows that the segments kept.
 *
 * The score of row r is S[q, r] * scale[r]. Scores become keys: unsigned numbers in the same order, 0 for what is never
 * kept (NaN, -infinity). The keep-th largest key is found from its highest byte to its lowest: a histogram in local
 * memory counts the keys that agree in the bytes found so far. All keys above the keep-th largest are kept, in any
 * order. Of the keys equal to it, the first in the order of rows are kept: work-item i owns the i-th run of
 * neighbouring rows, and finds the place of its keys by counting the equal keys in the runs before.
 *
 * clv_search_select: selects from the scores S, with rows counted from `first`.
 * clv_search_join:   selects from the scores and rows that were kept before.
 * clv_search_scale:  computes scale[r] = 1 / |X[r]|, or 0 if the row is all zeros; one work-group per row.
 *
 * Launch   2-D: global (GROUP * segments, queries), local (GROUP, 1); scale: global (GROUP, rows), local (GROUP, 1).
 * Defines  GROUP, a power of two up to CLV_SEARCH_GROUP; SCALED 0 or 1.
 * Needs    OpenCL C 1.2, local memory of 3 KB.
 * Out      best[q, segment, keep], at[...]: unsorted; an empty place has a score of -infinity and the row 2^32 - 1. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/sums.clh"
#include "search/lengths.clh"
#include "search/shared.clh"

#define BINS CLV_SEARCH_BINS
#define EMPTY 0xffffffffu
#define LOW 0x007fffffu /* the key of -infinity */

static uint key_of(float score)
{
    const uint bits = as_uint(score);
    const uint key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return isnan(score) || key <= LOW ? 0 : key;
}

static float score_of(uint key)
{
    return as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* Declares the local memory of SELECT, which must be in a kernel's outermost block. */
#define SELECT_ROOM                       \
    __local uint bins[BINS], runs[GROUP]; \
    __local uint cut, left, used

/* Keys and rows are read through KEY(i) and ROW(i), so that one text serves scores and candidates. */
#define SELECT(KEY, ROW, count, best, at)                                                           \
    do {                                                                                            \
        const uint id = get_local_id(0);                                                            \
        uint known = 0, mask = 0;                                                                   \
        if (id == 0) left = keep;                                                                   \
        for (int shift = 24; shift >= 0; shift -= 8) {                                              \
            for (uint b = id; b < BINS; b += GROUP) bins[b] = 0;                                    \
            barrier(CLK_LOCAL_MEM_FENCE);                                                           \
            for (uint i = id; i < (count); i += GROUP) {                                            \
                const uint key = KEY(i);                                                            \
                if (key && (key & mask) == known) atomic_inc(&bins[key >> shift & (BINS - 1)]);     \
            }                                                                                       \
            barrier(CLK_LOCAL_MEM_FENCE);                                                           \
            if (id == 0) {                                                                          \
                uint b = BINS - 1, wanted = left;                                                   \
                for (; b > 0 && bins[b] < wanted; --b) wanted -= bins[b];                           \
                left = wanted, cut = b;                                                             \
            }                                                                                       \
            barrier(CLK_LOCAL_MEM_FENCE);                                                           \
            known |= cut << shift;                                                                  \
            mask |= (uint)(BINS - 1) << shift;                                                      \
        }                                                                                           \
        /* the run of rows of this work-item */                                                     \
        const uint each = ((count) + GROUP - 1) / GROUP;                                            \
        const uint from = min(id * each, (uint)(count)), to = min(from + each, (uint)(count));      \
        uint same = 0;                                                                              \
        for (uint i = from; i < to; ++i) same += known && KEY(i) == known;                          \
        runs[id] = same;                                                                            \
        if (id == 0) used = 0;                                                                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
        uint before = 0;                                                                            \
        for (uint i = 0; i < id; ++i) before += runs[i];                                            \
        for (uint i = from; i < to; ++i) {                                                          \
            const uint key = KEY(i);                                                                \
            const bool larger = key > known;                                                        \
            if (larger || (known && key == known && before++ < left)) {                             \
                const uint place = atomic_inc(&used);                                               \
                (best)[place] = score_of(key), (at)[place] = ROW(i);                                \
            }                                                                                       \
        }                                                                                           \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
        for (uint i = used + id; i < keep; i += GROUP) (best)[i] = -INFINITY, (at)[i] = EMPTY;      \
    } while (0)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
clv_search_select(__global const float *restrict S, uint s_row, __global const float *restrict scale, uint first,
                  uint count, uint segment, uint keep, uint all_segments, uint first_segment,
                  __global float *restrict best, __global uint *restrict at)
{
    SELECT_ROOM;
    const uint seg = get_group_id(0), q = get_group_id(1), begin = seg * segment;
    const uint here = min(segment, count - begin);
    const size_t out = ((size_t)q * all_segments + first_segment + seg) * keep;
    __global const float *s = S + (size_t)q * s_row + begin;
#if SCALED
#define SCORE(i) key_of(s[i] * scale[begin + (i)])
#else
#define SCORE(i) key_of(s[i])
#endif
#define PLACE(i) (first + begin + (i))
    SELECT(SCORE, PLACE, here, best + out, at + out);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
clv_search_join(__global const float *restrict scores, __global const uint *restrict rows, uint count, uint keep,
                __global float *restrict best, __global uint *restrict at)
{
    SELECT_ROOM;
    const uint q = get_group_id(1);
    const size_t out = (size_t)q * keep, in = (size_t)q * count;
#define KEPT(i) key_of(scores[in + (i)])
#define KEPT_ROW(i) rows[in + (i)]
    SELECT(KEPT, KEPT_ROW, count, best + out, at + out);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
clv_search_scale(__global const float *restrict X, ulong x_offset, ulong x_row, uint width,
                 __global float *restrict scale)
{
    __local float sums[GROUP];
    const uint id = get_local_id(0), r = get_group_id(1);
    __global const float *x = X + x_offset + r * x_row;
    float factor = 1.0f, sum;
    for (;;) {
        float part = 0.0f;
        for (uint i = id; i < width; i += GROUP) {
            const float v = factor * x[i];
            part = fma(v, v, part);
        }
        sums[id] = part;
        for (uint apart = GROUP / 2; apart; apart /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (id < apart) sums[id] += sums[id + apart];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sum = sums[0];
        if (factor != 1.0f || (sum >= LEAST_SUM && sum <= MOST_SUM)) break;
        factor = FACTOR_OF(sum);
        barrier(CLK_LOCAL_MEM_FENCE); /* everyone has read sums[0] */
    }
    if (id == 0) scale[r] = sum == 0.0f ? 0.0f : factor / sqrt(sum);
}

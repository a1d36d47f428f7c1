/* search/select_cores.cl -- the `keep` largest scores of each query on CPU cores.
 *
 * The score of row r is S[q, r] * scale[r]. Each query has a heap of the best rows so far, whose root is the worst of
 * these: the row with the lowest score, among equal scores the one with the highest number. A vector of scores none of
 * which exceeds the root's costs one comparison. Rows come in ascending order, so that a row whose score equals the
 * root's never replaces the root.
 *
 * Launch   1-D: global (queries), local 1. The steps of a chunk follow each other and go on with the same heaps.
 * Defines  SCALED 0 or 1.
 * Needs    OpenCL C 1.2. Rows of S may have any length.
 * Out      best[q, keep], at[q, keep] in the order of the heap; an empty place has a score of -infinity and the row
 *          2^32 - 1. NaN and -infinity are never kept. */
#pragma OPENCL FP_CONTRACT OFF

#define LANES 16
#include "common/lanes.clh"

#define EMPTY 0xffffffffu

/* Puts a row in place of the root and restores the order of the heap. */
static void replace_root(__global float *best, __global uint *at, uint keep, float score, uint row)
{
    uint i = 0;
    for (;;) {
        uint c = 2 * i + 1;
        if (c >= keep) break;
        if (c + 1 < keep && (best[c + 1] < best[c] || (best[c + 1] == best[c] && at[c + 1] > at[c]))) ++c;
        if (best[c] > score || (best[c] == score && at[c] < row)) break;
        best[i] = best[c], at[i] = at[c];
        i = c;
    }
    best[i] = score, at[i] = row;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_search_select_cores(__global const float *restrict S, uint s_row, __global const float *restrict scale,
                        uint first, uint count, uint query, uint keep, uint fresh, __global float *restrict all_best,
                        __global uint *restrict all_at)
{
    const uint q = get_global_id(0);
    __global const float *s = S + (size_t)q * s_row;
    __global float *best = all_best + (size_t)(query + q) * keep;
    __global uint *at = all_at + (size_t)(query + q) * keep;
    if (fresh)
        for (uint i = 0; i < keep; ++i) best[i] = -INFINITY, at[i] = EMPTY;
    float root = best[0];
    uint r = 0;
    for (; r + LANES <= count; r += LANES) {
        fvec v = lanes_load(s + r);
#if SCALED
        v *= lanes_load(scale + r);
#endif
        if (!any(v > root)) continue;
        float each[LANES];
        lanes_store(v, each);
        for (uint l = 0; l < LANES; ++l)
            if (each[l] > root) {
                replace_root(best, at, keep, each[l], first + r + l);
                root = best[0];
            }
    }
    for (; r < count; ++r) {
#if SCALED
        const float v = s[r] * scale[r];
#else
        const float v = s[r];
#endif
        if (v > root) {
            replace_root(best, at, keep, v, first + r);
            root = best[0];
        }
    }
}

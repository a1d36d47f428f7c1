/* generate/attend_cores.cl -- keys, values and attention of a decoder for CPUs.
 *
 * Query head e attends to the keys and values of head e / GROUP. The GROUP query heads that share a head of keys are
 * processed together, so that keys and values are read once. The kernels also apply rotary positions and, if the model
 * has it, the norm of each head. Keys are stored in tiles of 16 tokens, term after term, so that tokens are lanes;
 * values are stored token after token.
 *
 *     keys     [kv head][token / 16][DH][16]
 *     values   [kv head][token][DV]              DV: DH in whole vectors of 16
 *
 * Launch   clv_cores_keep    1-D: global (tokens), local (1)
 *          clv_cores_attend  3-D: global (kv heads, blocks of QUERIES tokens, parts of the keys), local (1, 1, 1)
 * Defines  LANES 16, DH: width of a head, ROT: terms of it that are rotated, NEIGHBOURS: pairs are (2t, 2t + 1)
 *          instead of (t, t + ROT / 2), HEAD_NORM, GROUP, QUERIES, HALF: the cache holds halves.
 * Needs    OpenCL C 1.2.
 * Order    A query's sums run over its keys in ascending order, in tiles of 32: its bits depend on `parts`, not on its
 *          block or on the other queries. */
#pragma OPENCL FP_CONTRACT OFF

#include "common/functions.clh"

#define QTYPE 0
#define QLANES 16
#include "common/quants.clh"

#define UNROLL _Pragma("unroll")
#include "generate/heads.clh"

/* Writes the keys and values of all tokens to the cache. `room`: the number of tokens for which the cache has room, a
 * multiple of 16. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_keep(__global const float *restrict qkv, ulong stride, ulong k_at, ulong v_at,
               __global const float *restrict angles, __global const float *restrict weights,
               ulong k_norm, float eps, uint first, uint kv_heads, ulong room,
               __global kept *restrict keys, __global kept *restrict values)
{
    const uint t = get_global_id(0), position = first + t;
    const places p = places_of(qkv, t * stride, k_at, v_at, angles + (size_t)position * ROT,
                               weights, k_norm, eps);
    for (uint h = 0; h < kv_heads; ++h)
        keep(&p, h, position, room, keys, values);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_cores_attend(__global const float *restrict qkv, ulong qkv_offset, ulong stride, ulong k_at, ulong v_at,
                 __global const float *restrict angles, __global const float *restrict weights,
                 ulong q_norm, ulong k_norm, float eps, uint first, uint tokens, uint keeps,
                 float scale, ulong room, __global kept *keys, __global kept *values,
                 __global float *restrict out, ulong out_offset, ulong out_stride)
{
    const seeing s = { .qkv = qkv + qkv_offset, .angles = angles, .weights = weights, .stride = stride,
                       .k_at = k_at, .v_at = v_at, .q_norm = q_norm, .k_norm = k_norm,
                       .room = room, .out_stride = out_stride, .eps = eps, .scale = scale,
                       .first = first, .tokens = tokens, .keeps = keeps,
                       .parts = get_global_size(2), .kv_heads = get_global_size(0) };
    see(&s, get_global_id(0), get_global_id(1) * QUERIES, get_global_id(2), keys, values,
        out + out_offset);
}

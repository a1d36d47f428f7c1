/* transformer/attention_rows.cl -- o = softmax(q k^T * scale + mask) v for CPU cores. Formulas and arguments are as in
 * transformer/attention.cl.
 *
 * A work-item has up to QUERIES queries of one sequence and head, LANES in a vector, and processes two
 * vectors at a time. It takes TILE keys at a time and copies them to private memory: k by terms, eight
 * keys side by side, v row after row. Products are those of small matrices, with SIDE sums by two
 * vectors in registers: 16 registers of 16 lanes, or 8 of the 16 registers of 8 lanes that processors
 * without AVX-512 have. A tile's scores are in memory between the two products. The running maximum and
 * sum of every query are corrected tile by tile (online softmax). A query's result depends neither on
 * its block nor on LANES.
 *
 * Launch   2-D: global (heads, blocks), local (1, 1): neighbours share rows of memory.
 * Defines  LANES (16 or 8), QUERIES: a multiple of 32, DH: width of a head, TILE: keys at a time, a multiple
 *          of 8; BIAS or not.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"
#include "transformer/bias.clh"

#define UNROLL _Pragma("unroll")
#define WIDE ((DH + LANES - 1) / LANES * LANES) /* a row in vectors; zeros beyond DH */
#define VECTORS (QUERIES / LANES)
#define SIDE (LANES / 2) /* keys or terms whose sums are in registers at the same time */

/* Prefetches a cache line, if the compiler makes machine code rather than an intermediate form. */
#if defined(__has_builtin) && !defined(__SPIR__) && !defined(__SPIR64__)
#if __has_builtin(__builtin_prefetch)
#define FETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 3)
#endif
#endif

/* Returns terms [c, c + LANES) of a row of DH terms; zeros beyond the row. */
#if DH % LANES == 0
#define terms(row, c) lanes_at((row) + (c))
#define put_terms(x, row, c) lanes_put(x, (row) + (c))
#else
#define terms(row, c) columns(row, c, DH)
#define put_terms(x, row, c) put_columns(x, row, c, DH)
#endif

/* Returns the same as exp_lanes for x <= 0 and for NaN, without the steps for positive x. */
static fvec exp_below(fvec x)
{
    const fvec pushed = fma(x, (fvec)(1.44269504f), (fvec)(0x1.8p23f)), n = pushed - 0x1.8p23f;
    fvec r = fma(n, (fvec)(-0x1.62e400p-1f), x);
    r = fma(n, (fvec)(-0x1.7f7d1cp-20f), r);
    fvec p = (fvec)(0x1.6ab972p-10f);
    p = fma(p, r, (fvec)(0x1.126d1ap-7f));
    p = fma(p, r, (fvec)(0x1.55589ap-5f));
    p = fma(p, r, (fvec)(0x1.55540ap-3f));
    p = fma(p, r, (fvec)(0x1.fffffap-2f));
    p = fma(p, r, (fvec)(1.0f));
    p = fma(p, r, (fvec)(1.0f));
    const fvec e = as_fvec(as_ivec(p) + (as_ivec(pushed) << 23));
    /* restores NaN, which the integer arithmetic does not preserve */
    return pick(x < -87.33654f, (fvec)(0.0f), pick(x == x, e, x));
}

/* Stores the rows of eight tokens, from token `first` of `count` on, by terms: to[8 c + i] is term c of token
 * first + i; tokens beyond the last repeat it. */
static void eight_by_terms(__global const float *from, ulong row, int first, int count, fvec *to)
{
    for (uint c = 0; c < WIDE; c += LANES) {
        fvec x[8];
        UNROLL for (int i = 0; i < 8; ++i)
            x[i] = terms(from + (size_t)min(first + i, count - 1) * row, c);
        turn_eight(x);
        UNROLL for (int i = 0; i < 8; ++i) to[c / LANES * 8 + i] = x[i];
    }
}

/* Computes s[t][v] of SIDE keys and V vectors of queries at a time. */
#define SCORES(V)                                                                        \
    for (int t = 0; t < tiled; t += SIDE) {                                              \
        const float *key = (const float *)near_k + t / 8 * 8 * WIDE + t % 8;             \
        fvec acc[SIDE][V];                                                               \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)         \
            acc[i][v] = (fvec)(0.0f);                                                    \
        for (int c = 0; c < DH; ++c) {                                                   \
            fvec qv[V];                                                                  \
            UNROLL for (int v = 0; v < V; ++v) qv[v] = q[c][g + v];                      \
            UNROLL for (int i = 0; i < SIDE; ++i) {                                      \
                const fvec kv = (fvec)(key[c * 8 + i]);                                  \
                UNROLL for (int v = 0; v < V; ++v) acc[i][v] = fma(qv[v], kv, acc[i][v]); \
            }                                                                            \
        }                                                                                \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)         \
            s[t + i][v] = acc[i][v];                                                     \
    }

#define larger(a, b) pick((a) > (b), a, b) /* one instruction, unlike fmax */

/* Turns s[t][v] into the weight of key t, and updates the maximum and sum of every query. */
#define WEIGHTS(V)                                                                       \
    {                                                                                    \
        fvec high[2][V], from[V], all[V];                                                \
        UNROLL for (int v = 0; v < V; ++v) high[0][v] = high[1][v] = top[g + v];         \
        for (int t = 0; t < tiled; t += 2)                                               \
            UNROLL for (int i = 0; i < 2; ++i) UNROLL for (int v = 0; v < V; ++v)        \
                high[i][v] = larger(s[t + i][v], high[i][v]);                            \
        UNROLL for (int v = 0; v < V; ++v) {                                             \
            const fvec found = larger(high[0][v], high[1][v]);                           \
            /* nothing seen yet: any number does in its place, but not an infinite one */ \
            from[v] = pick(found == -INFINITY, (fvec)(0.0f), found);                     \
            shrink[v] = exp_below(top[g + v] - from[v]);                                 \
            top[g + v] = found;                                                          \
            all[v] = sum[g + v] * shrink[v];                                             \
        }                                                                                \
        for (int t = 0; t < tiled; ++t)                                                  \
            UNROLL for (int v = 0; v < V; ++v)                                           \
                all[v] += s[t][v] = exp_below(s[t][v] - from[v]);                        \
        UNROLL for (int v = 0; v < V; ++v) sum[g + v] = all[v];                          \
    }

/* o[c][v] = o[c][v] * shrink[v] + sum over t of s[t][v] value[t][c], SIDE terms at a time. */
#define MIX(V)                                                                           \
    for (int c = 0; c < DH; c += SIDE) {                                                 \
        fvec acc[SIDE][V];                                                               \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)         \
            acc[i][v] = o[c + i][g + v] * shrink[v];                                     \
        for (int t = 0; t < tiled; ++t) {                                                \
            fvec sv[V];                                                                  \
            UNROLL for (int v = 0; v < V; ++v) sv[v] = s[t][v];                          \
            UNROLL for (int i = 0; i < SIDE; ++i) {                                      \
                const fvec vv = (fvec)(((const float *)near_v)[t * WIDE + c + i]);       \
                UNROLL for (int v = 0; v < V; ++v) acc[i][v] = fma(sv[v], vv, acc[i][v]); \
            }                                                                            \
        }                                                                                \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)         \
            o[c + i][g + v] = acc[i][v];                                                 \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_attention_rows(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                   __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                   __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                   __global float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
                   __global const int4 *restrict blocks, ulong first_block, int base,
                   __global const int *restrict mask, uint has_mask, uint causal, uint group,
                   float scale, __global float2 *restrict tops, ulong top_head, uint keep BIAS_ARGUMENTS)
{
    const size_t h = get_global_id(0);
    const int4 where = blocks[2 * (first_block + get_global_id(1))];
    const int4 more = blocks[2 * (first_block + get_global_id(1)) + 1];
    const int queries = where.y, keys = where.w, i0 = more.x;
    if (i0 >= queries) return;
    const size_t qt = (size_t)(where.x - base), kt = (size_t)(where.z - base);
    const int vectors = (min(queries - i0, QUERIES) + LANES - 1) / LANES;
    Q += q_offset + qt * q_row + h * q_head;
    O += o_offset + qt * o_row + h * o_head;
    K += k_offset + kt * k_row + h / group * k_head;
    V += v_offset + kt * v_row + h / group * v_head;
    mask += more.y;
#ifdef BIAS
    bias += bias_at + h * bias_head;
#endif

    fvec q[WIDE][VECTORS], o[WIDE][VECTORS], s[TILE][2], top[VECTORS], sum[VECTORS];
    fvec near_k[TILE * WIDE / LANES], near_v[TILE * WIDE / LANES];
    for (int v = 0; v < vectors; ++v) {
        top[v] = (fvec)(-INFINITY), sum[v] = (fvec)(0.0f);
        for (int c = 0; c < WIDE; c += LANES) {
            fvec rows[LANES];
            UNROLL for (int l = 0; l < LANES; ++l)
                rows[l] = terms(Q + min(i0 + v * LANES + l, queries - 1) * q_row, c) * scale;
            lanes_turn(rows);
            UNROLL for (int l = 0; l < LANES; ++l)
                q[c + l][v] = rows[l], o[c + l][v] = (fvec)(0.0f);
        }
    }
    const int ahead = causal ? keys - queries : keys; /* query i sees keys up to i + ahead */
    const int end = min(keys, min(i0 + QUERIES, queries) + ahead);

    for (int j = 0; j < end; j += TILE) {
        const int count = min(TILE, end - j), tiled = (count + 7) / 8 * 8;
        for (int t = 0; t < tiled; t += 8) {
            eight_by_terms(K, k_row, j + t, keys, near_k + t * WIDE / LANES);
        }
#ifdef FETCH
        for (int t = 0; t < TILE; ++t) /* rows lie too far apart for the hardware prefetcher */
            UNROLL for (int c = 0; c < DH; c += LANES) {
                FETCH(K + (size_t)(j + TILE + t) * k_row + c);
                FETCH(V + (size_t)(j + TILE + t) * v_row + c);
            }
#endif
        for (int t = 0; t < tiled; ++t) {
            __global const float *from = V + (size_t)min(j + t, keys - 1) * v_row;
            UNROLL for (int c = 0; c < WIDE; c += LANES)
                near_v[(t * WIDE + c) / LANES] = terms(from, c);
        }
        for (int g = 0; g < vectors; g += 2) {
            const int pair = min(vectors - g, 2), first = i0 + g * LANES;
            fvec shrink[2];
            if (pair == 2)
                SCORES(2)
            else
                SCORES(1)
#ifdef BIAS
            for (int t = 0; t < tiled; ++t) /* queries of a vector follow each other, and so do biases */
                for (int v = 0; v < pair; ++v) s[t][v] += lanes_at(bias + (first + v * LANES - j - t));
#endif
            /* unless all queries see all keys of the tile, decides lane by lane */
            if (has_mask || j + tiled > keys || j + tiled > first + ahead + 1)
                for (int t = 0; t < tiled; ++t) {
                    const bool there = j + t < keys && (!has_mask || mask[min(j + t, keys - 1)]);
                    for (int v = 0; v < pair; ++v) {
                        const ivec sees = (ivec)(first + v * LANES + ahead) + lanes_iota();
                        s[t][v] = pick(sees < (ivec)(there ? j + t : INT_MAX), (fvec)(-INFINITY),
                                       s[t][v]);
                    }
                }
            if (pair == 2) {
                WEIGHTS(2)
                MIX(2)
            } else {
                WEIGHTS(1)
                MIX(1)
            }
        }
    }

    for (int v = 0; v < vectors; ++v) {
        const fvec inverse = pick(sum[v] > 0.0f, 1.0f / sum[v], (fvec)(0.0f));
        const int first = i0 + v * LANES;
        for (int c = 0; c < WIDE; c += LANES) {
            fvec rows[LANES];
            UNROLL for (int l = 0; l < LANES; ++l) rows[l] = o[c + l][v] * inverse;
            lanes_turn(rows);
            UNROLL for (int l = 0; l < LANES; ++l)
                if (first + l < queries)
                    put_terms(rows[l], O + (size_t)(first + l) * o_row, c);
        }
        if (!keep) continue;
        float highest[LANES], inverses[LANES];
        lanes_store(pick(sum[v] > 0.0f, top[v], (fvec)(0.0f)), highest);
        lanes_store(inverse, inverses);
        for (int l = 0; l < LANES && first + l < queries; ++l)
            tops[h * top_head + qt + first + l] = (float2)(highest[l], inverses[l]);
    }
}

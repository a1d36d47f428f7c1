/* transformer/attention_back_rows.cl -- the backward pass of attention for CPU cores, in one pass over queries and
 * keys. Formulas and arguments are as in transformer/attention_back.cl.
 *
 * A work-item has one text and one head of keys, with all heads of queries that share it. It takes two vectors of
 * LANES queries (one at the end of a text) and TILE keys at a time; P and S of such a tile are computed once and serve
 * dq (queries in lanes) as well as dk and dv (columns in lanes), which stay in memory between tiles. Products are
 * those of small matrices: a number of keys or terms by two vectors are in registers, so that each number that is
 * loaded serves two vectors. Sums run over heads, queries and keys in ascending order.
 *
 * Launch   2-D: global (blocks, heads of k), local (1, 1); blocks that are not the first of their
 *          text end at once.
 * Defines  LANES (16 or 8), DH: width of a head, TILE: keys at a time, a multiple of LANES / 2.
 * Needs    OpenCL C 1.2. */
#pragma OPENCL FP_CONTRACT OFF

#include "transformer/rows.clh"

#define UNROLL _Pragma("unroll")
#define WIDE ((DH + LANES - 1) / LANES * LANES)  /* a row in vectors; zeros beyond DH */
#define SIDE (LANES / 2)                         /* keys or terms whose sums are in registers at the same time */
#define SPAN (WIDE / LANES % 2 ? LANES : 2 * LANES) /* columns whose dk or dv grow side by side */
#define TOGETHER 4                               /* keys whose dk or dv grow side by side */

/* Copies `count` rows from token `first` on to constant distances; the last row repeats. */
static void rows_near(__global const float *from, ulong row, int first, int count, float *near)
{
    for (int t = 0; t < TILE; ++t) {
        __global const float *token = from + (size_t)min(first + t, count - 1) * row;
        UNROLL for (int c = 0; c < WIDE; c += LANES) lanes_store(columns(token, c, DH), near + t * WIDE + c);
    }
}

/* Reads `vectors` vectors of queries from token `first` of `count` on, times `factor`: x[2 c + v] is term c of vector
 * v. Copies the rows to `near` as well, unless it is NULL. */
static void queries_near(__global const float *from, ulong row, int first, int count, int vectors, float factor,
                         fvec *x, float *near)
{
    for (int v = 0; v < vectors; ++v)
        for (int c = 0; c < WIDE; c += LANES) {
            fvec rows[LANES];
            UNROLL for (int l = 0; l < LANES; ++l) {
                const size_t token = (size_t)min(first + v * LANES + l, count - 1);
                rows[l] = columns(from + token * row, c, DH) * factor;
                if (near) lanes_store(rows[l], near + (v * LANES + l) * WIDE + c);
            }
            lanes_turn(rows);
            UNROLL for (int l = 0; l < LANES; ++l) x[2 * (c + l) + v] = rows[l];
        }
}

/* Computes to[t][v] of SIDE keys and V vectors of queries at a time: the products of terms and rows of keys. */
#define PRODUCTS(to, terms, rows, V)                                                          \
    UNROLL for (int t = 0; t < TILE; t += SIDE) {                                             \
        fvec acc[SIDE][V];                                                                    \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)              \
            acc[i][v] = (fvec)(0.0f);                                                         \
        for (int c = 0; c < DH; ++c) {                                                        \
            fvec x[V];                                                                        \
            UNROLL for (int v = 0; v < V; ++v) x[v] = terms[2 * c + v];                       \
            UNROLL for (int i = 0; i < SIDE; ++i) {                                           \
                const fvec y = (fvec)(rows[(t + i) * WIDE + c]);                              \
                UNROLL for (int v = 0; v < V; ++v) acc[i][v] = fma(x[v], y, acc[i][v]);       \
            }                                                                                 \
        }                                                                                     \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)              \
            to[t + i][v] = acc[i][v];                                                         \
    }

/* dq[c][v] += sum over t of s[t][v] key[t][c], SIDE terms at a time. */
#define QUERIES_GROW(V)                                                                       \
    for (int c = 0; c < DH; c += SIDE) {                                                      \
        fvec acc[SIDE][V];                                                                    \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)              \
            acc[i][v] = dq[2 * (c + i) + v];                                                  \
        UNROLL for (int t = 0; t < TILE; ++t)                                                 \
            UNROLL for (int i = 0; i < SIDE; ++i) {                                           \
                const fvec y = (fvec)(near_k[t * WIDE + c + i]);                              \
                UNROLL for (int v = 0; v < V; ++v) acc[i][v] = fma(s[t][v], y, acc[i][v]);    \
            }                                                                                 \
        UNROLL for (int i = 0; i < SIDE; ++i) UNROLL for (int v = 0; v < V; ++v)              \
            dq[2 * (c + i) + v] = acc[i][v];                                                  \
    }

/* Adds to the rows `to` of keys, from row `first` of `count` on: the sum over `queries` queries of their weights in
 * `tile` (queries of a key are neighbours) times their rows. */
static void keys_grow(__global float *to, ulong to_row, int first, int count, const float *tile, const float *rows,
                      int queries)
{
    for (int t = 0; t < TILE && first + t < count; t += TOGETHER)
        for (int c = 0; c < WIDE; c += SPAN) {
            fvec acc[TOGETHER][SPAN / LANES];
            UNROLL for (int n = 0; n < TOGETHER; ++n) {
                __global const float *key = to + (size_t)min(first + t + n, count - 1) * to_row;
                UNROLL for (int u = 0; u < SPAN / LANES; ++u) acc[n][u] = columns(key, c + u * LANES, DH);
            }
            for (int l = 0; l < queries; ++l) {
                fvec x[SPAN / LANES];
                UNROLL for (int u = 0; u < SPAN / LANES; ++u) x[u] = lanes_load(rows + l * WIDE + c + u * LANES);
                UNROLL for (int n = 0; n < TOGETHER; ++n) {
                    const fvec y = (fvec)(tile[(t + n) * 2 * LANES + l]);
                    UNROLL for (int u = 0; u < SPAN / LANES; ++u) acc[n][u] = fma(y, x[u], acc[n][u]);
                }
            }
            UNROLL for (int n = 0; n < TOGETHER; ++n) {
                if (first + t + n >= count) continue;
                UNROLL for (int u = 0; u < SPAN / LANES; ++u)
                    put_columns(acc[n][u], to + (size_t)(first + t + n) * to_row, c + u * LANES, DH);
            }
        }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_attention_back_rows(__global const float *restrict Q, ulong q_offset, ulong q_row, ulong q_head,
                        __global const float *restrict K, ulong k_offset, ulong k_row, ulong k_head,
                        __global const float *restrict V, ulong v_offset, ulong v_row, ulong v_head,
                        __global const float *restrict O, ulong o_offset, ulong o_row, ulong o_head,
                        __global const float *restrict G, ulong g_offset, ulong g_row, ulong g_head,
                        __global float *restrict DQ, ulong dq_offset, ulong dq_row, ulong dq_head,
                        __global float *restrict DK, ulong dk_offset, ulong dk_row, ulong dk_head,
                        __global float *restrict DV, ulong dv_offset, ulong dv_row, ulong dv_head,
                        __global const int4 *restrict blocks, ulong first_block,
                        __global const int *restrict mask, uint has_mask, uint causal, uint group,
                        float scale, __global const float2 *restrict tops, ulong top_head)
{
    const size_t hk = get_global_id(1);
    const int4 where = blocks[2 * (first_block + get_global_id(0))];
    const int4 more = blocks[2 * (first_block + get_global_id(0)) + 1];
    const int queries = where.y, keys = where.w;
    if (more.x != 0) return;
    const size_t qt = (size_t)where.x, kt = (size_t)where.z;
    K += k_offset + kt * k_row + hk * k_head;
    V += v_offset + kt * v_row + hk * v_head;
    DK += dk_offset + kt * dk_row + hk * dk_head;
    DV += dv_offset + kt * dv_row + hk * dv_head;
    mask += more.y;
    for (int j = 0; j < keys; ++j)
        for (int c = 0; c < DH; c += LANES) {
            put_columns((fvec)(0.0f), DK + (size_t)j * dk_row, c, DH);
            put_columns((fvec)(0.0f), DV + (size_t)j * dv_row, c, DH);
        }

    for (uint part = 0; part < group; ++part) {
        const size_t h = hk * group + part;
        __global const float *qs = Q + q_offset + qt * q_row + h * q_head;
        __global const float *gs = G + g_offset + qt * g_row + h * g_head;
        __global const float *os = O + o_offset + qt * o_row + h * o_head;
        __global float *dqs = DQ + dq_offset + qt * dq_row + h * dq_head;
        for (int i0 = 0; i0 < queries; i0 += 2 * LANES) {
            const int vectors = i0 + LANES < queries ? 2 : 1;
            fvec q[2 * WIDE], g[2 * WIDE], dq[2 * WIDE], own[2], top[2], inverse[2];
            ivec see[2];
            float q_rows[2 * LANES * WIDE], g_rows[2 * LANES * WIDE];
            queries_near(os, o_row, i0, queries, vectors, 1.0f, dq, 0);
            queries_near(gs, g_row, i0, queries, vectors, 1.0f, g, g_rows);
            queries_near(qs, q_row, i0, queries, vectors, scale, q, q_rows);
            for (int v = 0; v < vectors; ++v) {
                const int first = i0 + v * LANES;
                float high[LANES], share[LANES];
                for (int l = 0; l < LANES; ++l) { /* lanes beyond the last query weigh nothing */
                    const float2 both = tops[h * top_head + qt + min(first + l, queries - 1)];
                    high[l] = both.x, share[l] = first + l < queries ? both.y : 0.0f;
                }
                top[v] = lanes_load(high), inverse[v] = lanes_load(share);
                see[v] = causal ? (ivec)(first + keys - queries) + lanes_iota() : (ivec)(keys);
                own[v] = (fvec)(0.0f);
                for (int c = 0; c < DH; ++c)
                    own[v] = fma(g[2 * c + v], dq[2 * c + v], own[v]);
                for (int c = 0; c < WIDE; ++c)
                    dq[2 * c + v] = (fvec)(0.0f);
            }
            const int end = causal ? min(keys, i0 + vectors * LANES + keys - queries) : keys;

            for (int j = 0; j < end; j += TILE) {
                fvec s[TILE][2], d[TILE][2];
                float near_k[TILE * WIDE], near_v[TILE * WIDE], p_tile[TILE * 2 * LANES], s_tile[TILE * 2 * LANES];
                rows_near(K, k_row, j, keys, near_k);
                rows_near(V, v_row, j, keys, near_v);
                if (vectors == 2) {
                    PRODUCTS(s, q, near_k, 2)
                    PRODUCTS(d, g, near_v, 2)
                } else {
                    PRODUCTS(s, q, near_k, 1)
                    PRODUCTS(d, g, near_v, 1)
                }
                for (int t = 0; t < TILE; ++t) {
                    const bool there = j + t < keys && (!has_mask || mask[min(j + t, keys - 1)] != 0);
                    for (int v = 0; v < vectors; ++v) {
                        const ivec hidden = see[v] < (ivec)(there ? j + t : INT_MAX);
                        const fvec p = pick(hidden, (fvec)(0.0f), exp_lanes(s[t][v] - top[v]) * inverse[v]);
                        s[t][v] = p * (d[t][v] - own[v]);
                        lanes_store(p, p_tile + (2 * t + v) * LANES);
                        lanes_store(s[t][v], s_tile + (2 * t + v) * LANES);
                    }
                }
                if (vectors == 2)
                    QUERIES_GROW(2)
                else
                    QUERIES_GROW(1)
                keys_grow(DK, dk_row, j, keys, s_tile, q_rows, vectors * LANES);
                keys_grow(DV, dv_row, j, keys, p_tile, g_rows, vectors * LANES);
            }
            for (int v = 0; v < vectors; ++v)
                for (int c = 0; c < WIDE; c += LANES) {
                    fvec rows[LANES];
                    UNROLL for (int l = 0; l < LANES; ++l) rows[l] = dq[2 * (c + l) + v] * scale;
                    lanes_turn(rows);
                    for (int l = 0; l < LANES && i0 + v * LANES + l < queries; ++l)
                        put_columns(rows[l], dqs + (size_t)(i0 + v * LANES + l) * dq_row, c, DH);
                }
        }
    }
}

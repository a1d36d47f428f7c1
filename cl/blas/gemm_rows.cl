/* blas/gemm_rows.cl -- C = act(alpha * A * B + bias) + beta * R, by tiles in registers, for CPUs.
 *
 * B is packed (clv_gemm_pack_b) in panels of NV vectors of columns, one k after the other. If no two work-items use
 * the same panel, B need not be packed (B_LIES): each work-item then packs its panels block by block. A
 * work-item takes `mi` panels of MR rows of A and its share of B's panels. For every block of `kb` terms
 * it copies its rows of A into scratch (one k after the other, AS floats for each), unless A already has that form
 * (`a_packed`), and then passes over B. Between blocks, it stores the sums in scratch, too, tile after tile,
 * because rows of C would share few cache sets and span many pages.
 *
 * Launch   3-D: global (shares of B's panels, panels of A / mi, batch), local (1, 1, 1).
 * Defines  LANES (16 or 8), MR rows (up to 8) and NV vectors of a tile, KC (the longest kb), FETCH_AHEAD (prefetch B),
 *          B_HALF: packed B holds halves; B_LIES: B is not packed; B_BLOCKS: B's columns are rows of quantised blocks
 *          (common/quants.clh, with QTYPE), which are widened panel by panel.
 * Needs    OpenCL C 1.2.
 * Kernels  clv_gemm_rows; clv_gemm_pack_b (without B_LIES and B_BLOCKS); clv_gemm_pack_a (without these two and
 *          B_HALF).
 * Order    Every sum runs in ascending order of k by fma from 0: its bits do not depend on tiles, blocks,
 *          other rows or other columns, and are those of blas/gemm_tile.cl. */
#pragma OPENCL FP_CONTRACT OFF

#include "blas/shared.clh"
#include "common/functions.clh"

#define NR (NV * LANES)
#define AS CLV_ROWS_TERM_FLOATS /* a small distance, because instructions with small offsets are short */
#define STEP 4  /* terms between two prefetches */
#define LINE 16 /* floats of a cache line */
#define UNROLL _Pragma("unroll")

#if B_BLOCKS
#define QLANES LANES
#include "common/quants.clh"
#endif

/* Packed B: floats, or halves that are widened panel by panel. */
#if B_HALF
typedef half b_t;
#define b_load(p) LANES_JOIN(vload_half, LANES)(0, p)
#define b_store(x, p) LANES_JOIN(LANES_JOIN(vstore_half, LANES), _rte)(x, 0, p)
#define b_put(x, p) vstore_half_rte(x, 0, p)
#else
typedef float b_t;
typedef float8 __attribute__((aligned(4))) eight_t;
#define b_load lanes_load
#define b_store lanes_put
#define b_put(x, p) (*(p) = (x))
#endif

/* Prefetches a cache line, if the compiler can. */
#if FETCH_AHEAD && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define FETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#define FETCH_TO_WRITE(p) __builtin_prefetch((const void *)(size_t)(p), 1, 3)
#endif
#endif
#ifndef FETCH
#define FETCH(p)
#define FETCH_TO_WRITE(p)
#endif

/* Packs terms [k0, k1) of a panel of `columns`, such that term 0 would lie at `to`; element (k, n) is at
 * from + k * row + n * col. Columns beyond the matrix become zeros. */
static void pack_panel(__global const float *restrict from, ulong row, ulong col, uint columns,
                       uint k0, uint k1, __global b_t *restrict to)
{
    if (columns < NR)
        for (uint i = k0; i < k1; ++i)
            UNROLL for (int v = 0; v < NV; ++v) b_store((fvec)(0.0f), to + (size_t)i * NR + v * LANES);
    if (col == 1 && columns == NR) {
        for (uint i = k0; i < k1; ++i)
            UNROLL for (int v = 0; v < NV; ++v)
                b_store(lanes_at(from + i * row + v * LANES), to + (size_t)i * NR + v * LANES);
        return;
    }
    if (row == 1) { /* columns are contiguous along k: loads a vector of each column and transposes the vectors */
        uint i = k0;
        for (; i + LANES <= k1; i += LANES) {
            uint j = 0;
#if !B_HALF
            for (; j + 8 <= columns; j += 8) {
                fvec x[8];
                UNROLL for (int c = 0; c < 8; ++c) x[c] = lanes_at(from + (j + c) * col + i);
                turn_eight(x);
                __global float *out = to + (size_t)i * NR + j;
                UNROLL for (int c = 0; c < 8; ++c, out += LANES / 8 * NR) {
#if LANES == 16
                    *(__global eight_t *)out = x[c].lo;
                    *(__global eight_t *)(out + NR) = x[c].hi;
#else
                    *(__global eight_t *)out = x[c];
#endif
                }
            }
#endif
            for (; j < columns; ++j) {
                float part[LANES];
                lanes_store(lanes_load(from + j * col + i), part);
                UNROLL for (int l = 0; l < LANES; ++l) b_put(part[l], to + (size_t)(i + l) * NR + j);
            }
        }
        for (; i < k1; ++i)
            for (uint j = 0; j < columns; ++j)
                b_put(from[j * col + i], to + (size_t)i * NR + j);
        return;
    }
    for (uint i = k0; i < k1; ++i)
        for (uint j = 0; j < columns; ++j)
            b_put(from[i * row + j * col], to + (size_t)i * NR + j);
}

#if B_BLOCKS
/* Converts terms [k0, k0 + kc) of panel j of `n` columns to floats, from `to` on. Columns beyond the matrix repeat its
 * last columns. This is a separate function because Intel's compiler took six times as long when the code was part of
 * the kernel, for types with blocks of 256 weights. */
#if QM
#define Q_BEGIN(k, d, m) { const qf scale = (d), least = (m);
#define Q_USE(k, v) lanes_put(fma(scale, v, least), column + (size_t)(k) * NR)
#else
#define Q_BEGIN(k, d, m) { const qf scale = (d);
#define Q_USE(k, v) lanes_put(scale * (v), column + (size_t)(k) * NR)
#endif
#define Q_END(k) }
static __attribute__((noinline)) void widen_panel(__global const uchar *blocks, uint per_row, uint j,
                                                  uint n, uint k0, uint kc, __global float *to)
{
    const uint last = (n + 15) / 16 - 1;
    for (uint c = 0; c < NR; c += LANES) {
        const uint group = min((j * NR + c) / 16, last), lane = (j * NR + c) % 16;
        __global const uchar *b = blocks + ((size_t)group * per_row + k0 / QBLOCK) * QBYTES;
        for (uint k = 0; k < kc; k += QBLOCK, b += QBYTES)
            for (uint u = 0; u < QBLOCK / QUNIT; ++u) {
                __global float *column = to + (size_t)(k + u * QUNIT) * NR + c;
                Q_UNIT(b, u)
            }
    }
}
#endif

#if !B_LIES && !B_BLOCKS
/* Packs all of B. Launch 3-D: global (panels, blocks of 256 of k, batch), local (1, 1, 1). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_gemm_pack_b(__global const float *restrict B, ulong offset, ulong row, ulong col, ulong batch,
                __global b_t *restrict packed, ulong packed_offset, ulong packed_batch, uint n,
                uint k)
{
    const uint j0 = get_global_id(0) * NR, k0 = get_global_id(1) * 256;
    pack_panel(B + offset + get_global_id(2) * batch + (size_t)j0 * col, row, col,
               min((uint)NR, n - j0), k0, min(k0 + 256, k),
               packed + packed_offset + get_global_id(2) * packed_batch + (size_t)j0 * k);
}
#endif

/* Packs rows [r0, r0 + MR) of the block [k0, k0 + kc), term after term; rows beyond the last are undefined. */
static void pack_rows(__global const float *restrict A, ulong row, ulong col, uint r0, uint m,
                      uint k0, uint kc, __global float *restrict to)
{
    const uint rows = min((uint)MR, m - r0);
    __global const float *from = A + r0 * row + k0 * col;
    uint k = 0;
    if (row == 1 && r0 + AS <= m)
        for (; k < kc; ++k, from += col)
            vstore8(vload8(0, from), k, to);
    if (col == 1)
        for (; k + LANES <= kc; k += LANES) {
            fvec x[8];
            UNROLL for (uint i = 0; i < 8; ++i)
                x[i] = i < MR ? lanes_at(from + min(i, rows - 1) * row + k) : (fvec)(0.0f);
            turn_eight(x);
            UNROLL for (int i = 0; i < 8; ++i) lanes_put(x[i], to + k * AS + i * LANES);
        }
    for (; k < kc; ++k)
        for (uint i = 0; i < AS; ++i)
            to[k * AS + i] = i < rows ? from[i * row + k * col] : 0.0f;
}

#if !B_LIES && !B_BLOCKS && !B_HALF
/* Packs all of A as pack_rows does. Launch 3-D: global (panels, blocks of kb, batch), local (1, 1, 1). */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_gemm_pack_a(__global const float *restrict A, ulong offset, ulong row, ulong col, ulong batch,
                __global float *restrict packed, ulong packed_batch, uint m, uint k, uint kb)
{
    const uint panel = get_global_id(0), block = get_global_id(1);
    pack_rows(A + offset + get_global_id(2) * batch, row, col, panel * MR, m, block * kb,
              min(kb, k - block * kb),
              packed + get_global_id(2) * packed_batch +
                  ((size_t)panel * get_global_size(1) + block) * (AS * KC));
}
#endif

/* The destination of a tile's sums, and the values with which the sums are finished. */
typedef struct finish_t {
    __global float *to; /* the tile's first element in C */
    __global const float *bias, *add;
    ulong to_row, add_row;
    float alpha, beta;
    uint has_bias, act;
} finish_t;

/* Finishes a whole tile, all vectors of a row at once. */
static void finish_whole(__global const float *tile, const finish_t *f)
{
    const float alpha = f->alpha, beta = f->beta;
    __global float *to = f->to;
    __global const float *add = f->add;
    fvec bias[NV];
    UNROLL for (int v = 0; v < NV; ++v)
        bias[v] = f->has_bias ? lanes_load(f->bias + v * LANES) : (fvec)(0.0f);
    for (uint i = 0; i < MR; ++i, to += f->to_row, add += f->add_row, tile += NR) {
        fvec x[NV];
        UNROLL for (int v = 0; v < NV; ++v) x[v] = lanes_load(tile + v * LANES) * alpha + bias[v];
        if (f->act) /* skips the call if there is no activation */
            UNROLL for (int v = 0; v < NV; ++v) x[v] = activate(x[v], f->act);
        if (beta != 0.0f)
            UNROLL for (int v = 0; v < NV; ++v)
                x[v] = fma((fvec)(beta), lanes_load(add + v * LANES), x[v]);
        UNROLL for (int v = 0; v < NV; ++v) lanes_store(x[v], to + v * LANES);
    }
}

static void copy_columns(__global const float *from, ulong from_row, uint rows, uint columns,
                         __global float *to, ulong to_row)
{
    for (uint i = 0; i < rows; ++i)
        for (uint c = 0; c < columns; ++c)
            to[i * to_row + c] = from[i * from_row + c];
}

/* Finishes a tile, which is followed in memory by room for another tile and a row. If C ends within the tile, the
 * function finishes a copy of the tile in this room: separate code for parts of vectors took Intel's compiler five
 * seconds. */
static void finish_tile(__global float *tile, const finish_t *f, uint rows, uint columns)
{
    const bool whole = rows == MR && columns == NR;
    finish_t g = *f;
    if (!whole) {
        __global float *add = tile + MR * NR, *bias = add + MR * NR;
        if (g.beta != 0.0f) copy_columns(f->add, f->add_row, rows, columns, add, NR);
        if (g.has_bias) copy_columns(f->bias, 0, 1, columns, bias, NR);
        g.to = tile, g.add = add, g.bias = bias;
        g.to_row = g.add_row = NR;
    }
    finish_whole(tile, &g);
    if (!whole) copy_columns(tile, NR, rows, columns, f->to, f->to_row);
}

/* Adds one term to every sum of a tile. */
#define TERM(k)                                                                        \
    {                                                                                  \
        fvec bv[NV];                                                                   \
        UNROLL for (int v = 0; v < NV; ++v) bv[v] = lanes_load(b + (k) * NR + v * LANES); \
        UNROLL for (int i = 0; i < MR; ++i) {                                          \
            const fvec av = (fvec)(a[(k) * AS + i]);                                   \
            UNROLL for (int v = 0; v < NV; ++v) acc[i][v] = fma(av, bv[v], acc[i][v]); \
        }                                                                              \
    }

/* Adds `kc` terms to every sum of a tile: multiplies rows of packed A by a panel of packed B. The sums begin with those
 * in `from`, or with 0 if `fresh`, and are written to `to`. The function also prefetches the tile's destination
 * (`out`), the sums of the next tile, and parts of the next panel of B and of the next block of A. */
static void multiply(__global const float *restrict a, __global const float *restrict b, uint kc,
                     __global const float *next, uint next_step, __global const float *row,
                     __global const float *out, size_t out_row, bool fresh, __global const float *from,
                     __global float *to)
{
    __global const float *then = from + MR * NR;
    fvec acc[MR][NV];
    UNROLL for (int i = 0; i < MR; ++i)
        UNROLL for (int v = 0; v < NV; ++v)
            acc[i][v] = fresh ? (fvec)(0.0f) : lanes_load(from + i * NR + v * LANES);
    uint k = 0;
    for (; k + STEP <= kc; k += STEP, a += STEP * AS, b += STEP * NR, next += next_step) {
        FETCH(next);
        FETCH(next + LINE);
        FETCH(row + k);
        if (k < MR * STEP) {
            UNROLL for (int c = 0; c < NR; c += LINE) FETCH_TO_WRITE(out + c);
            UNROLL for (int c = 0; c < NR; c += LINE) FETCH_TO_WRITE(then + c);
            out += out_row, then += NR;
        }
        UNROLL for (int u = 0; u < STEP; ++u) TERM(u)
    }
    for (; k < kc; ++k, a += AS, b += NR)
        TERM(0)
    UNROLL for (int i = 0; i < MR; ++i)
        UNROLL for (int v = 0; v < NV; ++v) lanes_store(acc[i][v], to + i * NR + v * LANES);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_gemm_rows(__global const float *restrict A, ulong a_offset, ulong a_row, ulong a_col,
              ulong a_batch, uint a_packed, __global const b_t *restrict B, ulong b_offset,
              ulong b_row, ulong b_col, ulong b_batch, __global float *C, ulong c_offset,
              ulong c_row, ulong c_batch, __global float *scratch, ulong item_floats,
              ulong sums_offset, ulong sums_batch, __global const float *bias, ulong bias_offset,
              uint has_bias, __global const float *R, ulong r_offset, ulong r_row, ulong r_batch,
              uint m, uint n, uint k, uint kb, uint mi, float alpha, float beta, uint act)
{
    const uint panels_m = (m + MR - 1) / MR, panels_n = (n + NR - 1) / NR;
    const uint shares = get_global_size(0), share = get_global_id(0);
    const uint j0 = (uint)((ulong)panels_n * share / shares);
    const uint j1 = (uint)((ulong)panels_n * (share + 1) / shares);
    const uint p0 = get_global_id(1) * mi, p1 = min(p0 + mi, panels_m);
    const uint next_step = p1 - p0 < STEP * NR / LINE ? 2 * LINE : LINE;
    /* a launch with zero sizes, which only makes the driver compile the kernel, does nothing */
    const uint blocks = kb ? max((k + kb - 1) / kb, 1u) : 0;
    const size_t batch = get_global_id(2);
#if B_BLOCKS
    B = (__global const b_t *)((__global const uchar *)B + b_offset);
#else
    B += b_offset + batch * b_batch;
#endif
    A += a_offset + batch * a_batch, bias += bias_offset;
    C += c_offset + batch * c_batch, R += r_offset + batch * r_batch;
    /* the work-item's scratch: a tile with room to finish it, its rows of A, a widened panel */
    __global float *tile =
        scratch + ((batch * get_global_size(1) + get_global_id(1)) * shares + share) * item_floats;
    __global float *mine = tile + (2 * MR + 1) * NR;
    __global float *sums = scratch + sums_offset + batch * sums_batch;

    for (uint block = 0; block < blocks; ++block) {
        const uint k0 = block * kb, kc = min(kb, k - k0);
        const bool last = block + 1 == blocks;
        if (!a_packed)
            for (uint p = p0; p < p1; ++p)
                pack_rows(A, a_row, a_col, p * MR, m, k0, kc, mine + (p - p0) * (AS * KC));
        for (uint j = j0; j < j1; ++j) {
#if B_BLOCKS
            __global const float *next = mine; /* prefetches nothing new: blocks are read in order anyway */
#else
            __global const b_t *panel = B + (size_t)j * k * NR + (size_t)k0 * NR;
            __global const float *next =
                (__global const float *)(panel + (size_t)(j + 1 < j1 ? k : kc) * NR);
#endif
#if B_HALF
            __global float *b = mine + (a_packed ? 0 : mi * (AS * KC));
            for (uint i = 0; i < kc * NR; i += LANES)
                lanes_store(b_load(panel + i), b + i);
#elif B_BLOCKS
            __global float *b = mine + (a_packed ? 0 : mi * (AS * KC));
            widen_panel((__global const uchar *)B, (k + QBLOCK - 1) / QBLOCK, j, n, k0,
                        (kc + QBLOCK - 1) / QBLOCK * QBLOCK, b);
#elif B_LIES
            __global float *b = mine + (a_packed ? 0 : mi * (AS * KC));
            pack_panel(B + k0 * b_row + (size_t)j * NR * b_col, b_row, b_col,
                       min((uint)NR, n - j * NR), 0, kc, b);
#else
            __global const float *b = panel;
#endif
            for (uint p = p0; p < p1; ++p, next += kc / STEP * next_step) {
                const size_t r = (size_t)p * MR, c = (size_t)j * NR;
                const uint rows = min((uint)MR, m - p * MR), columns = min((uint)NR, n - j * NR);
                __global const float *own = a_packed ? A + ((size_t)p * blocks + block) * (AS * KC)
                                                     : mine + (p - p0) * (AS * KC);
                __global const float *row = a_packed ? own + (AS * KC) : A + r * a_row + k0 + kc;
                if (j - j0 < MR) row += (j - j0) * (a_packed ? KC : a_row);
                __global float *wait = sums + ((size_t)j * panels_m + p) * (MR * NR);
                multiply(own, b, kc, next, next_step, row, last ? C + r * c_row + c : wait,
                         last ? c_row : NR, block == 0, wait, last ? tile : wait);
                if (!last) continue;
                const finish_t f = { .to = C + r * c_row + c, .to_row = c_row,
                                     .bias = bias + c, .has_bias = has_bias,
                                     .add = R + r * r_row + c, .add_row = r_row,
                                     .alpha = alpha, .beta = beta, .act = act };
                finish_tile(tile, &f, rows, columns);
            }
        }
    }
}

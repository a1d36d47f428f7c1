/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blas/gemm_rows.cl: tiles in registers, for CPUs. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/blas/shared.clh"
#include "cl_embedded.h"

enum { MOST_ROWS = 36, MOST_SHARES = 16, PACK_BLOCK = 256 };
enum { BLOCKS = 7 }; /* the first macro definition that describe() leaves unused */
/* Cost of a launch, in multiplications of one core; cost of packing and of widening a panel of B, in tiles. */
static const double launch_terms = 1e6, pack_b_tiles = 1.5, widen_b_tiles = 1;

static size_t tile_columns(const clv_gemm_form *f)
{
    return f->vectors * f->lanes;
}

static size_t panels(size_t extent, size_t side)
{
    return (extent + side - 1) / side;
}

static size_t blocks_of(const clv_gemm_form *f, size_t k)
{
    return CLV_MAX(panels(k, f->block), (size_t)1);
}

/* Returns the number of terms per block. All blocks are about equally long and hold whole blocks of quantised
 * weights. */
static size_t block_terms(const clv_gemm_form *f, size_t k, size_t multiple)
{
    return clv_round_up(CLV_MAX(panels(k, blocks_of(f, k)), (size_t)1), multiple);
}

/* Returns the number of floats in one panel of A of one block. */
static size_t panel_floats(const clv_gemm_form *f)
{
    return CLV_ROWS_TERM_FLOATS * f->block;
}

size_t clv_gemm_packed_a(const clv_gemm_form *f, size_t m, size_t k)
{
    return f->provider == CLV_GEMM_ROWS ? panels(m, f->rows) * blocks_of(f, k) * panel_floats(f)
                                        : 0;
}

size_t clv_gemm_packed_b(const clv_gemm_form *f, size_t n, size_t k)
{
    return f->provider == CLV_GEMM_ROWS ? clv_round_up(n, tile_columns(f)) * CLV_MAX(k, (size_t)1)
                                        : 0;
}

/* How the work is split: panels of A per work-item, shares into which B's panels are divided, and whether work-items
 * pack B themselves. */
typedef struct split {
    size_t rows, shares;
    bool packs_b;
} split;

/* Splits the work so that the slowest core has least to do. Costs are in units of one tile. Packing a panel of A
 * costs a sixth and each work-item a half; fetching a panel of B costs a third, or more if there are few rows to hide
 * it. */
static split share_work(const clv_gemm_form *f, const clv_gemm *g)
{
    const size_t pm = panels(g->m, f->rows), pn = panels(g->n, tile_columns(f));
    const size_t batch = CLV_MAX(g->batch, (size_t)1), matrices = g->b.batch ? batch : 1;
    const double launch =
        launch_terms / (double)(f->rows * tile_columns(f) * CLV_MAX(g->k, (size_t)1));
    split best = { 1, 1, false };
    double best_cost = -1;
    for (size_t own = CLV_MIN(pm, (size_t)MOST_ROWS); own; --own)
        for (size_t shares = 1; shares <= CLV_MIN(pn, (size_t)MOST_SHARES); ++shares) {
            const size_t columns = panels(pn, shares);
            const size_t items = panels(pm, own) * shares * batch;
            const bool packs_b = !g->b_packed && !g->b_blocks && own >= pm && matrices == batch;
            const double fetch = 0.3 + (own < 16 ? 0.06 * (double)(16 - own) : 0);
            const double item = (double)own * ((double)columns + (g->a_packed ? 0 : 0.17)) +
                                (packs_b       ? pack_b_tiles
                                 : g->b_blocks ? widen_b_tiles
                                               : fetch) *
                                    (double)columns +
                                0.5;
            double cost = (double)panels(items, f->units) * item;
            if (!g->b_packed && !g->b_blocks && !packs_b)
                cost += launch + pack_b_tiles * (double)panels(pn * matrices, f->units);
            if (best_cost < 0 || cost < best_cost)
                best = (split){ own, shares, packs_b }, best_cost = cost;
        }
    return best;
}

/* Layout of the scratch memory: for every work-item a tile, room to finish that tile, and rows of A; then packed B;
 * then unfinished sums. */
typedef struct layout {
    split split;
    size_t item, items_floats, b_floats, b_batch, sums_batch, sums_floats;
} layout;

static layout lay_out(const clv_gemm_form *f, const clv_gemm *g)
{
    layout l = { .split = share_work(f, g) };
    const size_t batch = CLV_MAX(g->batch, (size_t)1), pm = panels(g->m, f->rows);
    const size_t items = panels(pm, l.split.rows) * l.split.shares * batch;
    l.item = (2 * f->rows + 1) * tile_columns(f) +
             (g->a_packed ? 0 : l.split.rows * panel_floats(f)) +
             (g->b_half || g->b_blocks || l.split.packs_b ? f->block * tile_columns(f) : 0);
    l.items_floats = items * l.item;
    l.b_batch = clv_gemm_packed_b(f, g->n, g->k);
    if (!g->b_packed && !g->b_blocks && !l.split.packs_b)
        l.b_floats = l.b_batch * (g->b.batch ? batch : 1);
    if (blocks_of(f, g->k) > 1) l.sums_batch = pm * f->rows * clv_round_up(g->n, tile_columns(f));
    l.sums_floats = batch * l.sums_batch;
    return l;
}

size_t clv_gemm_rows_scratch(const clv_gemm_form *f, const clv_gemm *g)
{
    const layout l = lay_out(f, g);
    return l.items_floats + l.b_floats + l.sums_floats;
}

static clv_launch describe(const clv_gemm_form *f, const char *kernel, bool half, bool lies,
                           size_t x, size_t y, size_t z)
{
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_blas_gemm_rows,
                         .kernel = kernel,
                         .defines = { { "LANES", (long)f->lanes },
                                      { "MR", (long)f->rows },
                                      { "NV", (long)f->vectors },
                                      { "KC", (long)f->block },
                                      { "FETCH_AHEAD", f->fetch },
                                      { "B_HALF", half },
                                      { "B_LIES", lies } },
                         .global = { x, y, z },
                         .local = { 1, 1, 1 } };
}

static clv_status pack_b(clv_queue *queue, const clv_gemm_form *f, bool half, size_t n, size_t k,
                         size_t batch, const clv_matrix *b, clv_buffer *packed,
                         size_t packed_offset)
{
    if (f->provider != CLV_GEMM_ROWS)
        return clv_fail(CLV_E_ARGUMENT, "gemm: %s needs B unpacked", f->name);
    if (half && packed_offset % 16)
        return clv_fail(
            CLV_E_ARGUMENT,
            "gemm: the offset of packed float16 values is %zu, but it must be a multiple of 16",
            packed_offset);
    if (!n || !k) return CLV_OK;
    const clv_launch launch =
        describe(f, "clv_gemm_pack_b", half, false, panels(n, tile_columns(f)),
                 panels(k, PACK_BLOCK), CLV_MAX(batch, (size_t)1));
    const clv_arg args[] = {
        CLV_GEMM_GIVEN(*b),
        clv_arg_buffer(packed),
        clv_arg_u64(packed_offset),
        clv_arg_u64(clv_gemm_packed_b(f, n, k)),
        clv_gemm_u32(n),
        clv_gemm_u32(k),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_gemm_pack_b_enqueue(clv_queue *queue, const clv_gemm_form *f, size_t n, size_t k,
                                   size_t batch, const clv_matrix *b, clv_buffer *packed,
                                   size_t packed_offset)
{
    return pack_b(queue, f, false, n, k, batch, b, packed, packed_offset);
}

clv_status clv_gemm_pack_b_half_enqueue(clv_queue *queue, const clv_gemm_form *f, size_t n,
                                        size_t k, size_t batch, const clv_matrix *b,
                                        clv_buffer *packed, size_t packed_offset)
{
    return pack_b(queue, f, true, n, k, batch, b, packed, packed_offset);
}

clv_status clv_gemm_pack_a_enqueue(clv_queue *queue, const clv_gemm_form *f, size_t m, size_t k,
                                   size_t batch, const clv_matrix *a, clv_buffer *packed)
{
    if (f->provider != CLV_GEMM_ROWS)
        return clv_fail(CLV_E_ARGUMENT, "gemm: %s needs A unpacked", f->name);
    if (!m || !k) return CLV_OK;
    const clv_launch launch = describe(f, "clv_gemm_pack_a", false, false, panels(m, f->rows),
                                       blocks_of(f, k), CLV_MAX(batch, (size_t)1));
    const clv_arg args[] = {
        CLV_GEMM_GIVEN(*a), clv_arg_buffer(packed), clv_arg_u64(clv_gemm_packed_a(f, m, k)),
        clv_gemm_u32(m),    clv_gemm_u32(k),        clv_gemm_u32(block_terms(f, k, 8)),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_gemm_rows_enqueue(clv_queue *queue, const clv_gemm_form *f, const clv_gemm *g,
                                 clv_buffer *scratch, clv_event **done)
{
    const layout l = lay_out(f, g);
    const size_t batch = CLV_MAX(g->batch, (size_t)1);
    if (g->b_half && !g->b_packed)
        return clv_fail(CLV_E_ARGUMENT, "gemm: %s needs float16 values packed", f->name);
    if (g->b_blocks && (g->batch > 1 || f->block % CLV_MAX(g->b_block, (size_t)1)))
        return clv_fail(CLV_E_ARGUMENT,
                        "gemm: %s supports blocks of %zu weights only without a batch, and only in "
                        "whole blocks of its own %zu",
                        f->name, g->b_block, f->block);
    clv_matrix b = g->b;
    if (!g->b_packed && !g->b_blocks && !l.split.packs_b) {
        b = (clv_matrix){ scratch, l.items_floats, 0, 0, g->b.batch ? l.b_batch : 0 };
        CLV_TRY(clv_gemm_pack_b_enqueue(queue, f, g->n, g->k, g->b.batch ? batch : 1, &g->b,
                                        scratch, l.items_floats));
    }
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    clv_launch launch = describe(f, "clv_gemm_rows", g->b_half, l.split.packs_b, l.split.shares,
                                 panels(panels(g->m, f->rows), l.split.rows), batch);
    if (g->b_blocks) {
        launch.defines[BLOCKS] = (clv_define){ "B_BLOCKS", 1 };
        launch.defines[BLOCKS + 1] = (clv_define){ "QTYPE", (long)g->b_quant };
    }
    const clv_arg args[] = {
        CLV_GEMM_GIVEN(g->a),
        clv_gemm_u32(g->a_packed),
        CLV_GEMM_GIVEN(b),
        CLV_GEMM_PLACE(g->c),
        clv_arg_buffer(scratch),
        clv_arg_u64(l.item),
        clv_arg_u64(l.items_floats + l.b_floats),
        clv_arg_u64(l.sums_batch),
        CLV_GEMM_BIAS(g, scratch),
        CLV_GEMM_PLACE(add),
        CLV_GEMM_EXTENTS(g),
        clv_gemm_u32(block_terms(f, g->k, g->b_blocks ? g->b_block : 8)),
        clv_gemm_u32(l.split.rows),
        CLV_GEMM_END(g),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), done);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of cl/blas/gemm_rows.cl: tiles in registers, for CPUs. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

enum { MOST_SHARES = 16, PACK_BLOCK = 256 };

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

/* Floats of one panel of A for one block: rows lie block + 16 apart. */
static size_t panel_floats(const clv_gemm_form *f)
{
    return f->rows * (f->block + 16);
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

/* Panels of A for a work-item, and shares of B's panels. */
typedef struct split {
    size_t rows, shares;
} split;

/* The slowest core's work is what counts. In units of one tile: packing a panel of A costs a sixth,
 * fetching a panel of B a half, an item of its own a half. */
static split share_work(const clv_gemm_form *f, const clv_gemm *g)
{
    static const size_t rows[] = { 24, 20, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
    const size_t pm = panels(g->m, f->rows), pn = panels(g->n, tile_columns(f));
    split best = { 1, 1 };
    double best_cost = -1;
    for (size_t i = 0; i < CLV_LEN(rows); ++i)
        for (size_t shares = 1; shares <= CLV_MIN(pn, (size_t)MOST_SHARES); ++shares) {
            const size_t own = CLV_MIN(rows[i], pm), columns = panels(pn, shares);
            const size_t items = panels(pm, own) * shares * CLV_MAX(g->batch, (size_t)1);
            const double item = (double)own * ((double)columns + (g->a_packed ? 0 : 0.17)) +
                                0.5 * (double)columns + 0.5;
            const double cost = (double)panels(items, f->units) * item;
            if (best_cost < 0 || cost < best_cost) best = (split){ own, shares }, best_cost = cost;
        }
    return best;
}

/* Scratch: A's rows of every item, then packed B, then waiting sums. */
typedef struct layout {
    split split;
    size_t rows_floats, b_floats, b_batch, sums_floats;
} layout;

static layout lay_out(const clv_gemm_form *f, const clv_gemm *g)
{
    layout l = { .split = share_work(f, g) };
    const size_t batch = CLV_MAX(g->batch, (size_t)1);
    const size_t groups = panels(panels(g->m, f->rows), l.split.rows);
    if (!g->a_packed)
        l.rows_floats = groups * l.split.shares * batch * l.split.rows * panel_floats(f);
    l.b_batch = clv_gemm_packed_b(f, g->n, g->k);
    if (!g->b_packed) l.b_floats = l.b_batch * (g->b.batch ? batch : 1);
    /* between blocks sums wait in C, unless that is still to be read */
    if (g->beta != 0 && (!g->add.buffer || g->add.buffer == g->c.buffer) && blocks_of(f, g->k) > 1)
        l.sums_floats = batch * g->m * g->n;
    return l;
}

size_t clv_gemm_rows_scratch(const clv_gemm_form *f, const clv_gemm *g)
{
    const layout l = lay_out(f, g);
    return l.rows_floats + l.b_floats + l.sums_floats;
}

static clv_launch describe(const clv_gemm_form *f, const char *kernel, size_t x, size_t y, size_t z)
{
    return (clv_launch){ .source = &clv_cl_blas_gemm_rows,
                         .kernel = kernel,
                         .defines = { { "LANES", (long)f->lanes },
                                      { "MR", (long)f->rows },
                                      { "NV", (long)f->vectors },
                                      { "KC", (long)f->block },
                                      { "FETCH_AHEAD", f->fetch } },
                         .global = { x, y, z },
                         .local = { 1, 1, 1 } };
}

clv_status clv_gemm_pack_b_enqueue(clv_queue *queue, const clv_gemm_form *f, size_t n, size_t k,
                                   size_t batch, const clv_matrix *b, clv_buffer *packed,
                                   size_t packed_offset)
{
    if (f->provider != CLV_GEMM_ROWS)
        return clv_fail(CLV_E_ARGUMENT, "gemm: %s takes B as it is", f->name);
    if (!n || !k) return CLV_OK;
    const clv_launch launch = describe(f, "clv_gemm_pack_b", panels(n, tile_columns(f)),
                                       panels(k, PACK_BLOCK), CLV_MAX(batch, (size_t)1));
    const clv_arg args[] = {
        clv_arg_buffer(b->buffer),
        clv_arg_u64(b->offset),
        clv_arg_u64(b->row),
        clv_arg_u64(b->col),
        clv_arg_u64(b->batch),
        clv_arg_buffer(packed),
        clv_arg_u64(packed_offset),
        clv_arg_u64(clv_gemm_packed_b(f, n, k)),
        clv_gemm_u32(n),
        clv_gemm_u32(k),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_gemm_pack_a_enqueue(clv_queue *queue, const clv_gemm_form *f, size_t m, size_t k,
                                   size_t batch, const clv_matrix *a, clv_buffer *packed)
{
    if (f->provider != CLV_GEMM_ROWS)
        return clv_fail(CLV_E_ARGUMENT, "gemm: %s takes A as it is", f->name);
    if (!m || !k) return CLV_OK;
    const clv_launch launch = describe(f, "clv_gemm_pack_a", panels(m, f->rows), blocks_of(f, k),
                                       CLV_MAX(batch, (size_t)1));
    const clv_arg args[] = {
        clv_arg_buffer(a->buffer),
        clv_arg_u64(a->offset),
        clv_arg_u64(a->row),
        clv_arg_u64(a->col),
        clv_arg_u64(a->batch),
        clv_arg_buffer(packed),
        clv_arg_u64(clv_gemm_packed_a(f, m, k)),
        clv_gemm_u32(m),
        clv_gemm_u32(k),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_gemm_rows_enqueue(clv_queue *queue, const clv_gemm_form *f, const clv_gemm *g,
                                 clv_buffer *scratch, clv_event **done)
{
    const layout l = lay_out(f, g);
    const size_t batch = CLV_MAX(g->batch, (size_t)1);
    const clv_buffer *b = g->b_packed ? g->b.buffer : scratch;
    const size_t b_offset = g->b_packed ? g->b.offset : l.rows_floats;
    const size_t b_batch = g->b.batch ? (g->b_packed ? g->b.batch : l.b_batch) : 0;
    const size_t a_batch = g->a.batch;
    if (!g->b_packed)
        CLV_TRY(clv_gemm_pack_b_enqueue(queue, f, g->n, g->k, g->b.batch ? batch : 1, &g->b,
                                        scratch, l.rows_floats));
    const clv_matrix sums = l.sums_floats ? (clv_matrix){ .buffer = scratch,
                                                          .offset = l.rows_floats + l.b_floats,
                                                          .row = g->n,
                                                          .batch = g->m * g->n }
                                          : g->c;
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    const clv_launch launch = describe(f, "clv_gemm_rows", l.split.shares,
                                       panels(panels(g->m, f->rows), l.split.rows), batch);
    const clv_arg args[] = {
        clv_arg_buffer(g->a.buffer),
        clv_arg_u64(g->a.offset),
        clv_arg_u64(g->a.row),
        clv_arg_u64(g->a.col),
        clv_arg_u64(a_batch),
        clv_gemm_u32(g->a_packed),
        clv_arg_buffer(b),
        clv_arg_u64(b_offset),
        clv_arg_u64(b_batch),
        clv_arg_buffer(g->c.buffer),
        clv_arg_u64(g->c.offset),
        clv_arg_u64(g->c.row),
        clv_arg_u64(g->c.batch),
        clv_arg_buffer(sums.buffer),
        clv_arg_u64(sums.offset),
        clv_arg_u64(sums.row),
        clv_arg_u64(sums.batch),
        clv_arg_buffer(scratch),
        clv_arg_buffer(g->bias ? g->bias : scratch),
        clv_arg_u64(g->bias ? g->bias_offset : 0),
        clv_gemm_u32(g->bias != NULL),
        clv_arg_buffer(add.buffer),
        clv_arg_u64(add.offset),
        clv_arg_u64(add.row),
        clv_arg_u64(add.batch),
        clv_gemm_u32(g->m),
        clv_gemm_u32(g->n),
        clv_gemm_u32(g->k),
        clv_gemm_u32(l.split.rows),
        clv_arg_f32(g->alpha),
        clv_arg_f32(g->beta),
        clv_gemm_u32(g->activation),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), done);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blas/gemm_tile.cl, tiles in local memory for GPUs, cl/blas/gemm_matrix.cl, which uses their matrix units,
 * and cl/blas/gemm_items.cl, tiles of single work-items for software rasterisers. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/blas/shared.clh"
#include "cl_embedded.h"

/* Returns whether unfinished sums need memory of their own. A sum that takes several launches, or that its work-items
 * finish in a last step, is kept in C unless the old C is still to be read. */
static bool waits_elsewhere(const clv_gemm *g, const clv_gemm_form *f)
{
    return (g->k > f->most_terms || f->provider == CLV_GEMM_ITEMS) && g->beta != 0 &&
           (!g->add.buffer || g->add.buffer == g->c.buffer);
}

size_t clv_gemm_tile_scratch(const clv_gemm *g, const clv_gemm_form *f)
{
    return waits_elsewhere(g, f) ? CLV_MAX(g->batch, (size_t)1) * g->m * g->n : 0;
}

static clv_launch launch_of(const clv_gemm *g, const clv_gemm_form *f)
{
    const bool items = f->provider == CLV_GEMM_ITEMS;
    const size_t tm = f->ty * f->rm, tn = f->tx * f->rn;
    clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = items ? &clv_cl_blas_gemm_items : &clv_cl_blas_gemm_tile,
        .kernel = items ? "clv_gemm_items" : "clv_gemm_tile",
        .defines = { { "LANES", 1 },
                     { "TX", (long)f->tx },
                     { "TY", (long)f->ty },
                     { "RM", (long)f->rm },
                     { "RN", (long)f->rn },
                     { "B_HALF", g->b_half } },
        .global = { (g->n + tn - 1) / tn * f->tx, (g->m + tm - 1) / tm * f->ty,
                    CLV_MAX(g->batch, (size_t)1) },
        .local = { f->tx, f->ty, 1 },
    };
    if (items) return launch;
    launch.defines[6] = (clv_define){ "KT", (long)f->kt };
    if (f->halves && g->b_half) launch.defines[7] = (clv_define){ "A_HALF", 1 };
    return launch;
}

static bool by_matrix_units(const clv_gemm *g, const clv_gemm_form *f)
{
    return f->provider == CLV_GEMM_MATRIX && g->b_half;
}

/* The tile of C that a work-group computes by matrix units. */
static size_t matrix_rows(const clv_gemm_form *f)
{
    return 16 * f->down;
}

static size_t matrix_columns(const clv_gemm_form *f)
{
    return 2 * f->sub_group * f->across;
}

static clv_launch matrix_launch_of(const clv_gemm *g, const clv_gemm_form *f)
{
    const size_t tm = matrix_rows(f), tn = matrix_columns(f), groups = f->down * f->across;
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_blas_gemm_matrix,
                         .kernel = "clv_gemm_matrix",
                         .defines = { { "LANES", 1 },
                                      { "SG", (long)f->sub_group },
                                      { "SM", (long)f->down },
                                      { "SN", (long)f->across },
                                      { "B_HALF", 1 },
                                      { "MATRIX_EMULATED", f->emulated } },
                         .global = { (g->n + tn - 1) / tn * f->sub_group,
                                     (g->m + tm - 1) / tm * groups, CLV_MAX(g->batch, (size_t)1) },
                         .local = { f->sub_group, groups, 1 } };
}

/* Returns the bytes of local memory that a work-group needs. */
static size_t local_bytes(const clv_gemm *g, const clv_gemm_form *f)
{
    if (by_matrix_units(g, f))
        return 2 * CLV_MATRIX_TERMS * (matrix_rows(f) + matrix_columns(f)) * sizeof(uint16_t);
    return 2 * f->kt * (f->ty * f->rm + f->tx * f->rn + 8) *
           (f->halves && g->b_half ? sizeof(uint16_t) : sizeof(float));
}

clv_status clv_gemm_tile_enqueue(clv_queue *queue, const clv_gemm_form *f, const clv_gemm *g,
                                 clv_buffer *scratch, clv_event **done)
{
    const clv_matrix sums =
        waits_elsewhere(g, f) ? (clv_matrix){ .buffer = scratch, .row = g->n, .batch = g->m * g->n }
                              : g->c;
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    const clv_launch launch = by_matrix_units(g, f) ? matrix_launch_of(g, f) : launch_of(g, f);
    size_t k0 = 0;
    do {
        const size_t k1 = CLV_MIN(g->k, k0 + f->most_terms);
        const clv_arg args[] = {
            CLV_GEMM_GIVEN(g->a),
            CLV_GEMM_GIVEN(g->b),
            CLV_GEMM_PLACE(g->c),
            CLV_GEMM_PLACE(sums),
            CLV_GEMM_BIAS(g, scratch),
            CLV_GEMM_PLACE(add),
            CLV_GEMM_EXTENTS(g),
            clv_gemm_u32(k0),
            clv_gemm_u32(k1),
            CLV_GEMM_END(g),
            clv_arg_local(local_bytes(g, f)), /* last one: not for ITEMS */
        };
        const size_t count = CLV_LEN(args) - (f->provider == CLV_GEMM_ITEMS);
        CLV_TRY(clv_launch_enqueue(queue, &launch, args, count, k1 == g->k ? done : NULL));
        k0 = k1;
    } while (k0 < g->k);
    return CLV_OK;
}

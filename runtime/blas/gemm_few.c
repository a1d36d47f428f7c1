/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blas/gemm_few.cl, which computes products of a few rows on GPUs as fast as B can be read. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/blas/shared.clh"
#include "cl_embedded.h"

enum {
    SIDE = CLV_FEW_SIDE,
    COLUMNS = CLV_FEW_COLUMNS,
    GROUPS_A_UNIT = 16, /* work-groups per compute unit that hide the latency of memory */
    FEWEST_TERMS = 256, /* fewest terms per split: fewer do not pay for a second launch */
    MOST_SPLITS = 64,
};

bool clv_gemm_is_few(const clv_gemm_form *form, const clv_gemm *g)
{
    const bool cards = form->provider == CLV_GEMM_TILE || form->provider == CLV_GEMM_CLBLAST ||
                       form->provider == CLV_GEMM_MATRIX;
    return cards && g->any_order && g->m && g->m <= CLV_GEMM_FEW && g->k && g->batch <= 1 &&
           !g->b_packed && !g->a_packed && (g->b.row == 1 || g->b.col == 1);
}

/* Returns whether the terms of a sum lie next to each other, as in weights [n, k]. */
static bool is_turned(const clv_gemm *g)
{
    return g->b.col != 1;
}

/* Returns how many groups share a sum. The count depends only on the device, n and k, so that the number of rows does
 * not change the bits of any row. */
static size_t splits_of(const clv_gemm_form *form, const clv_gemm *g)
{
    const size_t side = is_turned(g) ? COLUMNS : SIDE;
    const size_t groups = (g->n + side - 1) / side, wanted = GROUPS_A_UNIT * form->units;
    const size_t most = CLV_MIN(CLV_MAX(g->k / FEWEST_TERMS, (size_t)1), (size_t)MOST_SPLITS);
    return CLV_MIN((wanted + groups - 1) / groups, most);
}

size_t clv_gemm_few_scratch(const clv_gemm_form *form, const clv_gemm *g)
{
    const size_t splits = splits_of(form, g);
    return splits > 1 ? splits * g->m * g->n : 0;
}

static size_t rows_of(size_t m)
{
    size_t rows = 1;
    while (rows < m)
        rows *= 2;
    return rows;
}

clv_status clv_gemm_few_enqueue(clv_queue *queue, const clv_gemm_form *form, const clv_gemm *g,
                                clv_buffer *scratch, clv_event **done)
{
    const bool turned = is_turned(g);
    const size_t splits = splits_of(form, g), rows = rows_of(g->m);
    const size_t side = turned ? COLUMNS : SIDE, local = turned ? SIDE : 4 * SIDE;
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blas_gemm_few,
        .kernel = turned ? "clv_gemm_few_turned" : "clv_gemm_few",
        .defines = { { "LANES", 1 }, { "MR", (long)rows }, { "B_HALF", g->b_half } },
        .global = { (g->n + side - 1) / side * local, splits },
        .local = { local, 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(g->a.buffer), clv_arg_u64(g->a.offset),
        clv_arg_u64(g->a.row),       clv_arg_u64(g->a.col),
        clv_arg_buffer(g->b.buffer), clv_arg_u64(g->b.offset),
        clv_arg_u64(g->b.row),       clv_arg_u64(g->b.col),
        clv_arg_buffer(g->c.buffer), clv_arg_u64(g->c.offset),
        clv_arg_u64(g->c.row),       clv_arg_buffer(scratch),
        CLV_GEMM_BIAS(g, scratch),   clv_arg_buffer(add.buffer),
        clv_arg_u64(add.offset),     clv_arg_u64(add.row),
        CLV_GEMM_EXTENTS(g),         CLV_GEMM_END(g),
        clv_gemm_u32(splits),        clv_arg_local(rows * 4 * SIDE * sizeof(float)),
    };
    CLV_TRY(clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), splits > 1 ? NULL : done));
    if (splits == 1) return CLV_OK;
    const clv_arg join[] = {
        clv_arg_buffer(scratch),   clv_arg_buffer(g->c.buffer),
        clv_arg_u64(g->c.offset),  clv_arg_u64(g->c.row),
        CLV_GEMM_BIAS(g, scratch), clv_arg_buffer(add.buffer),
        clv_arg_u64(add.offset),   clv_arg_u64(add.row),
        clv_gemm_u32(g->m),        clv_gemm_u32(g->n),
        CLV_GEMM_END(g),           clv_gemm_u32(splits),
    };
    launch.kernel = "clv_gemm_few_join";
    launch.global[0] = clv_round_up(g->n, SIDE), launch.global[1] = g->m;
    launch.local[0] = SIDE;
    return clv_launch_enqueue(queue, &launch, join, CLV_LEN(join), done);
}

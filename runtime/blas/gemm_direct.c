/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of cl/blas/gemm_direct.cl: small products as they lie, for CPUs. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

/* Another core costs its share of a launch: it is called for products of this many terms. */
static const double worth_a_core = 100e3;

clv_status clv_gemm_direct_enqueue(clv_queue *queue, const clv_gemm_form *f, const clv_gemm *g,
                                   clv_buffer *scratch, clv_event **done)
{
    if (g->b_half) return clv_fail(CLV_E_ARGUMENT, "gemm: %s takes no halves", f->name);
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    const size_t panels = (g->m + f->rows - 1) / f->rows, batch = CLV_MAX(g->batch, (size_t)1);
    const double terms = (double)g->m * (double)g->n * (double)g->k;
    const size_t worth = 1 + CLV_MIN((size_t)(terms / worth_a_core), f->units);
    const clv_launch launch = {
        .source = &clv_cl_blas_gemm_direct,
        .kernel = "clv_gemm_direct",
        .defines = { { "LANES", (long)f->lanes }, { "MR", (long)f->rows } },
        .global = { CLV_MIN(panels, CLV_MIN(worth, f->units)), 1, batch },
        .local = { 1, 1, 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(g->a.buffer),
        clv_arg_u64(g->a.offset),
        clv_arg_u64(g->a.row),
        clv_arg_u64(g->a.col),
        clv_arg_u64(g->a.batch),
        clv_arg_buffer(g->b.buffer),
        clv_arg_u64(g->b.offset),
        clv_arg_u64(g->b.row),
        clv_arg_u64(g->b.col),
        clv_arg_u64(g->b.batch),
        clv_arg_buffer(g->c.buffer),
        clv_arg_u64(g->c.offset),
        clv_arg_u64(g->c.row),
        clv_arg_u64(g->c.batch),
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
        clv_arg_f32(g->alpha),
        clv_arg_f32(g->beta),
        clv_gemm_u32(g->activation),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), done);
}

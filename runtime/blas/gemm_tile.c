/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of cl/blas/gemm_tile.cl: tiles in local memory, for GPUs. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

/* A sum that one launch cannot finish waits in C, unless that is still to be read. */
static bool waits_elsewhere(const clv_gemm *g, const clv_gemm_form *f)
{
    return g->k > f->most_terms && g->beta != 0 && (!g->add.buffer || g->add.buffer == g->c.buffer);
}

size_t clv_gemm_tile_scratch(const clv_gemm *g, const clv_gemm_form *f)
{
    return waits_elsewhere(g, f) ? CLV_MAX(g->batch, (size_t)1) * g->m * g->n : 0;
}

clv_status clv_gemm_tile_enqueue(clv_queue *queue, const clv_gemm_form *f, const clv_gemm *g,
                                 clv_buffer *scratch, clv_event **done)
{
    const size_t tm = f->ty * f->rm, tn = f->tx * f->rn;
    const clv_matrix sums =
        waits_elsewhere(g, f) ? (clv_matrix){ .buffer = scratch, .row = g->n, .batch = g->m * g->n }
                              : g->c;
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    const clv_launch launch = {
        .source = &clv_cl_blas_gemm_tile,
        .kernel = "clv_gemm_tile",
        .defines = { { "LANES", 1 },
                     { "TX", (long)f->tx },
                     { "TY", (long)f->ty },
                     { "RM", (long)f->rm },
                     { "RN", (long)f->rn },
                     { "KT", (long)f->kt },
                     { "B_HALF", g->b_half } },
        .global = { (g->n + tn - 1) / tn * f->tx, (g->m + tm - 1) / tm * f->ty,
                    CLV_MAX(g->batch, (size_t)1) },
        .local = { f->tx, f->ty, 1 },
    };
    size_t k0 = 0;
    do {
        const size_t k1 = CLV_MIN(g->k, k0 + f->most_terms);
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
            clv_arg_buffer(sums.buffer),
            clv_arg_u64(sums.offset),
            clv_arg_u64(sums.row),
            clv_arg_u64(sums.batch),
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
            clv_gemm_u32(k0),
            clv_gemm_u32(k1),
            clv_arg_f32(g->alpha),
            clv_arg_f32(g->beta),
            clv_gemm_u32(g->activation),
            clv_arg_local(f->kt * (tm + tn + 2) * sizeof(float)),
        };
        CLV_TRY(clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), k1 == g->k ? done : NULL));
        k0 = k1;
    } while (k0 < g->k);
    return CLV_OK;
}

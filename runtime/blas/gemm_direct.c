/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blas/gemm_direct.cl: small products of unpacked matrices, for CPUs. */
#include "runtime/blas/gemm.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <string.h>

enum { MORE_ARGS = 4 };

/* Terms that are worth one more core, since each further core costs its share of a launch. */
static const double worth_a_core = 100e3;

/* Makes an argument of two or four numbers. */
static clv_arg vector(const void *value, size_t bytes)
{
    clv_arg arg = { .kind = CLV_ARG_VALUE, .bytes = bytes };
    memcpy(arg.value, value, bytes);
    return arg;
}

static clv_arg pair(size_t first, size_t second)
{
    return vector((uint64_t[]){ first, second }, 16);
}

clv_status clv_gemm_direct_enqueue(clv_queue *queue, const clv_gemm_form *f, const clv_gemm *g,
                                   clv_event **done)
{
    if (g->b_half) return clv_fail(CLV_E_ARGUMENT, "gemm: %s does not support float16", f->name);
    const bool more = g->bias || g->beta != 0;
    const clv_matrix add = g->add.buffer ? g->add : g->c;
    const size_t panels = (g->m + f->rows - 1) / f->rows, batch = CLV_MAX(g->batch, (size_t)1);
    const double terms = (double)g->m * (double)g->n * (double)g->k;
    const size_t worth = 1 + CLV_MIN((size_t)(terms / worth_a_core), f->units);
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blas_gemm_direct,
        .kernel = "clv_gemm_direct",
        .defines = { { "LANES", (long)f->lanes }, { "MR", (long)f->rows }, { "MORE", more } },
        .global = { CLV_MIN(panels, CLV_MIN(worth, f->units)), 1, batch },
        .local = { 1, 1, 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(g->a.buffer),
        clv_arg_buffer(g->b.buffer),
        clv_arg_buffer(g->c.buffer),
        pair(g->a.offset, g->a.batch),
        pair(g->a.row, g->a.col),
        pair(g->b.offset, g->b.batch),
        pair(g->b.row, g->b.col),
        pair(g->c.offset, g->c.batch),
        pair(g->c.row, g->bias ? g->bias_offset : 0),
        vector(
            (uint32_t[]){ (uint32_t)g->m, (uint32_t)g->n, (uint32_t)g->k, (uint32_t)g->activation },
            16),
        vector((float[]){ g->alpha, g->beta }, 8),
        clv_arg_buffer(g->bias ? g->bias : g->c.buffer),
        clv_arg_buffer(add.buffer),
        pair(add.offset, add.batch),
        pair(add.row, g->bias != NULL),
    };
    return clv_launch_enqueue(queue, &launch, args,
                              more ? CLV_LEN(args) : CLV_LEN(args) - MORE_ARGS, done);
}

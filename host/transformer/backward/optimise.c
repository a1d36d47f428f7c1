/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of cl/transformer/optimise.cl: the steps of SGD and AdamW. */
#include "host/transformer/backward/back.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <math.h>

enum { CORE_VECTORS = 512 };

typedef struct geometry {
    size_t each, items, lanes, local;
} geometry;

static geometry geometry_of(const clv_device *device, size_t count)
{
    const clv_block_form f = clv_block_form_of(device);
    geometry g = { .each = f.lanes > 1 ? CORE_VECTORS : 4, .lanes = f.lanes, .local = f.local };
    g.items = (count + g.each * f.lanes - 1) / (g.each * f.lanes);
    return g;
}

static clv_launch describe(const geometry *g, const char *kernel)
{
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_transformer_optimise,
                         .kernel = kernel,
                         .defines = { { "LANES", (long)g->lanes }, { "LOCAL", (long)g->local } },
                         .global = { clv_round_up(g->items, g->local) },
                         .local = { g->local } };
}

clv_status clv_sgd_enqueue(clv_queue *queue, const clv_step_range *r, double momentum)
{
    const geometry g = geometry_of(clv_queue_device(queue), r->count);
    if (!r->count) return CLV_OK;
    const clv_launch launch = describe(&g, "clv_sgd");
    const clv_arg args[] = {
        clv_arg_buffer(r->weights),
        clv_arg_buffer(r->gradient),
        clv_arg_buffer(r->first ? r->first : r->gradient),
        clv_arg_buffer(r->bits),
        clv_arg_u64(r->at),
        clv_arg_u64(r->count),
        clv_arg_f32(r->scale),
        clv_arg_f32((float)r->rate),
        clv_arg_f32((float)momentum),
        clv_arg_f32((float)r->decay),
        clv_gemm_u32(r->step == 1),
        clv_gemm_u32(g.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_adamw_enqueue(clv_queue *queue, const clv_step_range *r, double beta1, double beta2,
                             double eps)
{
    const geometry g = geometry_of(clv_queue_device(queue), r->count);
    if (!r->count) return CLV_OK;
    const clv_launch launch = describe(&g, "clv_adamw");
    const clv_arg args[] = {
        clv_arg_buffer(r->weights),
        clv_arg_buffer(r->gradient),
        clv_arg_buffer(r->first),
        clv_arg_buffer(r->second),
        clv_arg_buffer(r->bits),
        clv_arg_u64(r->at),
        clv_arg_u64(r->count),
        clv_arg_f32(r->scale),
        clv_arg_f32((float)(1 - r->rate * r->decay)),
        clv_arg_f32((float)beta1),
        clv_arg_f32((float)beta2),
        clv_arg_f32((float)(1 - beta1)),
        clv_arg_f32((float)(1 - beta2)),
        clv_arg_f32((float)(r->rate / (1 - pow(beta1, (double)r->step)))),
        clv_arg_f32((float)(1 / sqrt(1 - pow(beta2, (double)r->step)))),
        clv_arg_f32((float)eps),
        clv_gemm_u32(g.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

size_t clv_squares_items(const clv_device *device, size_t count)
{
    return geometry_of(device, count).items;
}

clv_status clv_squares_enqueue(clv_queue *queue, const clv_buffer *gradient, size_t at,
                               size_t count, clv_buffer *parts, size_t parts_at)
{
    const geometry g = geometry_of(clv_queue_device(queue), count);
    if (!count) return CLV_OK;
    const clv_launch launch = describe(&g, "clv_squares");
    const clv_arg args[] = { clv_arg_buffer(gradient), clv_arg_u64(at),       clv_arg_u64(count),
                             clv_arg_buffer(parts),    clv_arg_u64(parts_at), clv_gemm_u32(g.items),
                             clv_gemm_u32(g.each) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

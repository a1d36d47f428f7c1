/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the blocks of a transformer, except attention, on a queue. */
#include "host/transformer/blocks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/transformer/shared.clh"
#include "cl_embedded.h"

#include <math.h>

/* WIDE: columns of the widest row that 64 work-items share; 256 share wider ones. COLUMNS_EACH: columns that each of
 * them takes where rows have no sums. */
enum { WIDE = 1024, COLUMNS_EACH = 4 };

clv_block_form clv_block_form_of(const clv_device *device)
{
    switch (clv_device_facts(device)->device_class) {
    case CLV_CLASS_CPU:
        return (clv_block_form){ .lanes = 16, .local = 1, .tile = 16, .each = 8, .queries = 64 };
    case CLV_CLASS_SOFTWARE:
        return (clv_block_form){ .lanes = 1, .local = 16, .tile = 4, .each = 1, .queries = 16 };
    default:
        return (clv_block_form){
            .lanes = 1, .local = 64, .tile = 4, .each = 1, .queries = 64, .groups = true
        };
    }
}

static size_t groups(size_t count, size_t side)
{
    return (count + side - 1) / side;
}

/* Returns the number of work-items that share a row: a power of two. */
static size_t team_of(const clv_device *device, size_t width)
{
    size_t team = width > WIDE ? 256 : 64;
    if (!clv_block_form_of(device).groups) return 1;
    while (team > clv_device_facts(device)->max_work_group)
        team /= 2;
    return team;
}

clv_launch clv_row_launch(const clv_queue *queue, const clv_row_kernel *k)
{
    const clv_device *device = clv_queue_device(queue);
    const clv_block_form f = clv_block_form_of(device);
    const size_t team = team_of(device, k->width), local = team > 1 ? team : f.local;
    const size_t parts = k->sums ? 1 : groups(k->width, team * COLUMNS_EACH);
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = k->source,
        .kernel = k->name,
        .defines = { { "LANES", (long)f.lanes }, { "LOCAL", (long)local }, { "TEAM", (long)team } },
        .global = { (team > 1 ? k->rows : groups(k->rows, k->each * local)) * local,
                    team > 1 ? CLV_MAX(parts, (size_t)1) : 0 },
        .local = { local, team > 1 ? 1 : 0 },
    };
}

clv_status clv_norm_enqueue(clv_queue *queue, const clv_norm *n)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!n->rows) return CLV_OK;
    clv_launch launch =
        clv_row_launch(queue, &(clv_row_kernel){ &clv_cl_transformer_norm, "clv_norm", n->rows,
                                                 n->width, f.each, true });
    launch.defines[3] = (clv_define){ "RMS", n->rms };
    const clv_arg args[] = {
        clv_arg_buffer(n->x.buffer),
        clv_arg_u64(n->x.offset),
        clv_arg_u64(n->x.stride),
        clv_arg_buffer(n->y.buffer),
        clv_arg_u64(n->y.offset),
        clv_arg_u64(n->y.stride),
        clv_arg_buffer(n->parameters),
        clv_arg_u64(n->weight),
        clv_arg_u64(n->bias),
        clv_arg_buffer(n->moments ? n->moments : n->y.buffer),
        clv_gemm_u32(n->moments != NULL),
        clv_gemm_u32(n->rows),
        clv_gemm_u32(n->width),
        clv_arg_f32(n->eps),
        clv_gemm_u32(f.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_embed_rows_enqueue(clv_queue *queue, const clv_embed_rows *e)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!e->rows) return CLV_OK;
    clv_launch launch =
        clv_row_launch(queue, &(clv_row_kernel){ &clv_cl_transformer_norm, "clv_embed", e->rows,
                                                 e->width, f.each, true });
    launch.defines[3] = (clv_define){ "RMS", 0 };
    const clv_arg args[] = {
        clv_arg_buffer(e->tokens),     clv_arg_u64(e->first),    clv_arg_buffer(e->word),
        clv_arg_buffer(e->parameters), clv_arg_u64(e->position), clv_arg_u64(e->type),
        clv_arg_u64(e->weight),        clv_arg_u64(e->bias),     clv_arg_buffer(e->y),
        clv_gemm_u32(e->rows),         clv_gemm_u32(e->width),   clv_arg_f32(e->eps),
        clv_gemm_u32(e->norm),         clv_gemm_u32(f.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

enum { POOLED = 4 }; /* columns per work-item: few, as devices may limit the turns of a loop */

_Static_assert((int)CLV_MODEL_MEAN == CLV_POOL_MEAN && (int)CLV_MODEL_CLS == CLV_POOL_CLS &&
                   (int)CLV_MODEL_MAX == CLV_POOL_MAX &&
                   (int)CLV_MODEL_WEIGHTED == CLV_POOL_WEIGHTED &&
                   (int)CLV_MODEL_LAST == CLV_POOL_LAST,
               "kernels count ways of pooling as cleave/model.h does");

clv_status clv_pool_enqueue(clv_queue *queue, const clv_pool_call *p)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    const size_t part = f.groups ? 0 : f.lanes > 1 ? p->width : CLV_MIN(p->width, POOLED);
    if (!p->sequences) return CLV_OK;
    clv_row_kernel kernel = {
        &clv_cl_transformer_pool, "clv_pool", p->sequences, p->width, 1, false
    };
    clv_launch launch = clv_row_launch(queue, &kernel);
    if (part) launch.global[1] = (p->width + part - 1) / part, launch.local[1] = 1;
    const clv_arg args[] = {
        clv_arg_buffer(p->x),
        clv_arg_buffer(p->rows),
        clv_arg_u64(p->first_row),
        clv_arg_i32((int32_t)p->base),
        clv_arg_buffer(p->weight ? p->weight : p->rows),
        clv_gemm_u32(p->weight != NULL),
        clv_arg_buffer(p->out),
        clv_arg_u64(p->out_offset),
        clv_gemm_u32(p->sequences),
        clv_gemm_u32(p->width),
        clv_gemm_u32(p->kind),
        clv_gemm_u32(p->divide),
        clv_gemm_u32(part),
        clv_arg_i32((int32_t)p->before),
    };
    CLV_TRY(clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL));
    if (!p->divide || part == p->width) return CLV_OK;
    const clv_arg rest[] = { clv_arg_buffer(p->out), clv_arg_u64(p->out_offset),
                             clv_gemm_u32(p->sequences), clv_gemm_u32(p->width) };
    kernel.name = "clv_pool_divide", kernel.sums = true;
    launch = clv_row_launch(queue, &kernel);
    return clv_launch_enqueue(queue, &launch, rest, CLV_LEN(rest), NULL);
}

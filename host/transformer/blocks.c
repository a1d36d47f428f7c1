/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a transformer as launches on a queue. */
#include "host/transformer/blocks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/transformer/shared.clh"
#include "cl_embedded.h"

#include <math.h>

enum { NARROW = 64 }; /* heads up to it take 32 keys at a time, wider ones 16 */

clv_block_form clv_block_form_of(const clv_device *device)
{
    switch (clv_device_facts(device)->device_class) {
    case CLV_CLASS_CPU:
        return (clv_block_form){ .lanes = 16, .local = 1, .tile = 16, .each = 8, .queries = 64 };
    case CLV_CLASS_SOFTWARE:
        return (clv_block_form){ .lanes = 1, .local = 16, .tile = 4, .each = 1, .queries = 16 };
    default:
        return (clv_block_form){ .lanes = 1, .local = 64, .tile = 4, .each = 1, .queries = 64 };
    }
}

static size_t groups(size_t count, size_t side)
{
    return (count + side - 1) / side;
}

clv_status clv_norm_enqueue(clv_queue *queue, const clv_norm *n)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!n->rows) return CLV_OK;
    const clv_launch launch = {
        .source = &clv_cl_transformer_norm,
        .kernel = "clv_norm",
        .defines = { { "LANES", (long)f.lanes }, { "LOCAL", (long)f.local } },
        .global = { groups(n->rows, f.each * f.local) * f.local },
        .local = { f.local },
    };
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
        clv_gemm_u32(n->rms),
        clv_gemm_u32(f.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_embed_rows_enqueue(clv_queue *queue, const clv_embed_rows *e)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!e->rows) return CLV_OK;
    const clv_launch launch = {
        .source = &clv_cl_transformer_norm,
        .kernel = "clv_embed",
        .defines = { { "LANES", (long)f.lanes }, { "LOCAL", (long)f.local } },
        .global = { groups(e->rows, f.each * f.local) * f.local },
        .local = { f.local },
    };
    const clv_arg args[] = {
        clv_arg_buffer(e->tokens),     clv_arg_u64(e->first),    clv_arg_buffer(e->word),
        clv_arg_buffer(e->parameters), clv_arg_u64(e->position), clv_arg_u64(e->type),
        clv_arg_u64(e->weight),        clv_arg_u64(e->bias),     clv_arg_buffer(e->y),
        clv_gemm_u32(e->rows),         clv_gemm_u32(e->width),   clv_arg_f32(e->eps),
        clv_gemm_u32(e->norm),         clv_gemm_u32(f.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

size_t clv_attention_block_count(const clv_block_form *form, size_t queries)
{
    return groups(queries, form->queries);
}

void clv_attention_fill(const clv_block_form *form, clv_attention_block sequence,
                        clv_attention_block *blocks)
{
    const size_t count = clv_attention_block_count(form, (size_t)sequence.queries);
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = sequence;
        blocks[i].first = (int32_t)(i * form->queries);
    }
}

/* Of PART columns each. */
static size_t parts_of(size_t width)
{
    return width / (width % 8 == 0 ? 8 : width % 4 == 0 ? 4 : 1);
}

/* May a walk over the keys take `turns` a tile and `others` beside them? */
static clv_status check_turns(const clv_device *device, size_t keys, size_t width, size_t turns,
                              size_t others)
{
    const uint64_t limit = clv_device_facts(device)->flags.loop_limit;
    const size_t tile = clv_block_form_of(device).tile;
    const uint64_t most = limit > others ? (limit - others) / turns * tile : 0;
    if (!limit || keys <= most) return CLV_OK;
    return clv_fail(
        CLV_E_DEVICE,
        "attention: %zu keys given, %s sees %llu by heads of width %zu, as it ends loops "
        "after %llu turns",
        keys, clv_device_label(device), (unsigned long long)most, width, (unsigned long long)limit);
}

clv_status clv_attention_check(const clv_device *device, size_t keys, size_t width)
{
    /* all loops of cl/transformer/attention.cl */
    const size_t tile = clv_block_form_of(device).tile, parts = parts_of(width);
    return check_turns(device, keys, width, 1 + 2 * parts + tile * (2 * parts + 3), 2 * width);
}

clv_status clv_attention_back_check(const clv_device *device, size_t keys, size_t width,
                                    size_t group)
{
    /* of cl/transformer/attention_back.cl the longer walk, over the queries of all heads of a group */
    const size_t tile = clv_block_form_of(device).tile, parts = parts_of(width);
    const size_t turns = 1 + 3 * parts + tile * (4 * parts + 2);
    return check_turns(device, keys, width, group * turns, 10 * width + 6 + group);
}

clv_status clv_attention_enqueue(clv_queue *queue, const clv_attention_call *a)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!a->block_count || !a->heads) return CLV_OK;
    const clv_launch by_rows = {
        .source = &clv_cl_transformer_attention_rows,
        .kernel = "clv_attention_rows",
        .defines = { { "LANES", (long)f.lanes },
                     { "QUERIES", (long)f.queries },
                     { "DH", (long)a->width },
                     { "TILE", a->width > NARROW ? 16 : 32 } },
        .global = { a->heads, a->block_count },
        .local = { 1, 1 },
    };
    const clv_launch by_items = {
        .source = &clv_cl_transformer_attention,
        .kernel = "clv_attention",
        .defines = { { "LANES", 1 },
                     { "LOCAL", (long)f.local },
                     { "DH", (long)a->width },
                     { "TILE", (long)f.tile } },
        .global = { a->block_count * f.local, a->heads },
        .local = { f.local, 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(a->q.buffer),
        clv_arg_u64(a->q.offset),
        clv_arg_u64(a->q.row),
        clv_arg_u64(a->q.head),
        clv_arg_buffer(a->k.buffer),
        clv_arg_u64(a->k.offset),
        clv_arg_u64(a->k.row),
        clv_arg_u64(a->k.head),
        clv_arg_buffer(a->v.buffer),
        clv_arg_u64(a->v.offset),
        clv_arg_u64(a->v.row),
        clv_arg_u64(a->v.head),
        clv_arg_buffer(a->o.buffer),
        clv_arg_u64(a->o.offset),
        clv_arg_u64(a->o.row),
        clv_arg_u64(a->o.head),
        clv_arg_buffer(a->blocks),
        clv_arg_u64(a->first_block),
        clv_arg_i32((int32_t)a->base),
        clv_arg_buffer(a->mask ? a->mask : a->blocks),
        clv_gemm_u32(a->mask != NULL),
        clv_gemm_u32(a->causal),
        clv_gemm_u32(a->heads / a->kv_heads),
        clv_arg_f32(a->scale),
        clv_arg_buffer(a->tops ? a->tops : a->o.buffer),
        clv_arg_u64(a->top_head),
        clv_gemm_u32(a->tops != NULL),
    };
    return clv_launch_enqueue(queue, f.lanes > 1 ? &by_rows : &by_items, args, CLV_LEN(args), NULL);
}

enum { POOLED = 4 }; /* columns of a work-item: devices may bound the turns of a loop */

_Static_assert((int)CLV_MODEL_MEAN == CLV_POOL_MEAN && (int)CLV_MODEL_CLS == CLV_POOL_CLS &&
                   (int)CLV_MODEL_MAX == CLV_POOL_MAX,
               "kernels count ways of pooling as cleave/model.h does");

clv_status clv_pool_enqueue(clv_queue *queue, const clv_pool_call *p)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    const size_t part = f.lanes > 1 ? p->width : CLV_MIN(p->width, POOLED);
    if (!p->sequences) return CLV_OK;
    clv_launch launch = {
        .source = &clv_cl_transformer_pool,
        .kernel = "clv_pool",
        .defines = { { "LANES", (long)f.lanes }, { "LOCAL", (long)f.local } },
        .global = { clv_round_up(p->sequences, f.local), (p->width + part - 1) / part },
        .local = { f.local, 1 },
    };
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
    };
    CLV_TRY(clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL));
    if (!p->divide || part == p->width) return CLV_OK;
    const clv_arg rest[] = { clv_arg_buffer(p->out), clv_arg_u64(p->out_offset),
                             clv_gemm_u32(p->sequences), clv_gemm_u32(p->width) };
    launch.kernel = "clv_pool_divide";
    launch.global[1] = 0, launch.local[1] = 0;
    return clv_launch_enqueue(queue, &launch, rest, CLV_LEN(rest), NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches attention in the form that suits the device: vectors of queries on CPUs, tiles per work-group on GPUs, and
 * one query per work-item elsewhere. */
#include "host/transformer/blocks.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/error.h"
#include "cl/transformer/shared.clh"
#include "cl_embedded.h"

enum {
    NARROW = 64, /* CPUs take 32 keys at a time for heads up to this width, 16 for wider heads */
    MOST_SHARED = 32, /* most queries that share a head of keys; for more, tiles are as fast */
    LEAST_KEYS = 128,
};
/* Most floats of one sequence, as the tile kernels use 32-bit offsets. */
static const size_t most_floats = (size_t)1 << 30;

size_t clv_attention_block_count(const clv_block_form *form, size_t queries)
{
    return (queries + form->queries - 1) / form->queries;
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

/* Returns the number of parts of a head, each of PART columns (cl/transformer/parts.clh). */
static size_t parts_of(size_t width)
{
    return width / (width % 8 == 0 ? 8 : width % 4 == 0 ? 4 : 1);
}

/* Checks that the device's limit on loop turns allows a pass over the keys that takes `turns` turns per tile and
 * `others` turns outside the tiles. */
static clv_status check_turns(const clv_device *device, size_t keys, size_t width, size_t turns,
                              size_t others)
{
    const uint64_t limit = clv_device_facts(device)->flags.loop_limit;
    const size_t tile = clv_block_form_of(device).tile;
    const uint64_t most = limit > others ? (limit - others) / turns * tile : 0;
    if (!limit || keys <= most) return CLV_OK;
    return clv_fail(CLV_E_DEVICE,
                    "attention: got %zu keys, but %s handles at most %llu with heads of width %zu, "
                    "because it ends loops after %llu iterations",
                    keys, clv_device_label(device), (unsigned long long)most, width,
                    (unsigned long long)limit);
}

clv_status clv_attention_check(const clv_device *device, size_t keys, size_t width)
{
    /* counts all loops of cl/transformer/attention.cl */
    const size_t tile = clv_block_form_of(device).tile, parts = parts_of(width);
    return check_turns(device, keys, width, 1 + 2 * parts + tile * (2 * parts + 3), 2 * width);
}

clv_status clv_attention_back_check(const clv_device *device, size_t keys, size_t width,
                                    size_t group)
{
    /* counts the longer pass of cl/transformer/attention_back.cl, over the queries of all heads of a group */
    const size_t tile = clv_block_form_of(device).tile, parts = parts_of(width);
    const size_t turns = 1 + 3 * parts + tile * (4 * parts + 2);
    return check_turns(device, keys, width, group * turns, 10 * width + 6 + group);
}

/* Returns the floats of local memory for a tile of `rows` rows with `tx` work-items side by side. */
static size_t tile_floats(size_t rows, size_t tx, size_t width)
{
    const size_t group = rows / 4 * tx, wide = (width + 4 * tx - 1) / (4 * tx);
    const size_t padded = (wide > 2 ? 4 : wide) * 4 * tx;
    const size_t scores = CLV_TILE_COLUMNS * (rows + 4) + CLV_TILE_MANY * padded;
    const size_t chunks = CLV_TILE_DEEP * (rows + 4 + CLV_TILE_COLUMNS + 4);
    return CLV_MAX(scores, chunks) + group + rows;
}

/* Returns the floats that the call's longest sequence spans in memory, all heads included; SIZE_MAX if unknown. */
static size_t reach_of(const clv_attention_call *a)
{
    const size_t rows[] = { a->q.row, a->k.row, a->v.row, a->o.row };
    size_t widest = 0, floats;
    for (size_t i = 0; i < CLV_LEN(rows); ++i)
        widest = CLV_MAX(widest, rows[i]);
    return a->longest && clv_size_mul(a->longest, widest, &floats) ? floats : SIZE_MAX;
}

/* The number of columns of a tile decides the order in which exponentials are summed. This number depends only on
 * the device and the width of a head, so that a sequence's bits do not depend on the other sequences of the call. The
 * number of rows of a tile does not influence the result. */
clv_attention_tile clv_attention_tile_of(const clv_device *device, const clv_attention_call *a,
                                         bool back)
{
    const clv_probe_device *facts = clv_device_facts(device);
    const bool few = facts->flags.few_registers, wide = a->width > 64;
    clv_attention_tile t = { .rows = 64, .tx = 16 };
    if (!back && !few && !wide) t.tx = 8;
    if ((few || back) && (wide || (few && back))) t.rows = 32, t.tx = 32;
    if (t.rows / 4 * t.tx > facts->max_work_group) t.rows = 64, t.tx = 8;
    if (a->longest <= 32) t.rows = 32;
    t.local = t.rows / 4 * t.tx;
    t.local_floats = tile_floats(t.rows, t.tx, a->width);
    t.fits = clv_block_form_of(device).groups && t.local <= facts->max_work_group &&
             t.local_floats * sizeof(float) <= facts->local_bytes && reach_of(a) < most_floats;
    return t;
}

size_t clv_attention_lanes(const clv_block_form *form)
{
    return form->lanes > 1 && clv_cpu_has_avx2_alone() ? 8 : form->lanes;
}

/* Returns the launch with vectors of queries, or with one query per work-item. */
static clv_launch launch_of(const clv_block_form *f, const clv_attention_call *a)
{
    if (f->lanes > 1)
        return (clv_launch){
            .size = sizeof(clv_launch),
            .source = &clv_cl_transformer_attention_rows,
            .kernel = "clv_attention_rows",
            .defines = { { "LANES", (long)clv_attention_lanes(f) },
                         { "QUERIES", (long)f->queries },
                         { "DH", (long)a->width },
                         { "TILE", a->width > NARROW ? 16 : 32 },
                         { a->bias ? "BIAS" : NULL, 1 } },
            .global = { a->heads, a->block_count },
            .local = { 1, 1 },
        };
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = &clv_cl_transformer_attention,
        .kernel = "clv_attention",
        .defines = { { "LANES", 1 },
                     { "LOCAL", (long)f->local },
                     { "DH", (long)a->width },
                     { "TILE", (long)f->tile },
                     { a->bias ? "BIAS" : NULL, 1 } },
        .global = { a->block_count * f->local, a->heads },
        .local = { f->local, 1 },
    };
}

/* Returns the launch with one tile per work-group. */
static clv_launch tile_launch_of(const clv_attention_tile *t, const clv_attention_call *a)
{
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = &clv_cl_transformer_attention_tile,
        .kernel = "clv_attention_tile",
        .defines = { { "LANES", 1 },
                     { "ROWS", (long)t->rows },
                     { "TX", (long)t->tx },
                     { "DH", (long)a->width },
                     { a->bias ? "BIAS" : NULL, 1 } },
        .global = { a->block_count * (64 / t->rows) * t->local, a->heads },
        .local = { t->local, 1 },
    };
}

/* ---- few queries, many keys ------------------------------------------------------------------------ */

static size_t part_width(size_t width)
{
    return width <= 64 ? 64 : width <= 128 ? 128 : 256;
}

static size_t key_parts(const clv_attention_call *a)
{
    return (a->longest + CLV_SPLIT_KEYS - 1) / CLV_SPLIT_KEYS;
}

size_t clv_attention_parts(const clv_device *device, const clv_attention_call *a)
{
    const clv_probe_device *facts = clv_device_facts(device);
    size_t floats;
    if (!clv_block_form_of(device).groups || facts->max_work_group < CLV_SPLIT_GROUP ||
        a->width > 256 || !a->few || a->few * a->heads / a->kv_heads > MOST_SHARED ||
        a->longest < LEAST_KEYS ||
        !clv_size_mul(a->block_count * a->few * a->heads, key_parts(a) * (part_width(a->width) + 2),
                      &floats))
        return 0;
    return floats;
}

static clv_status enqueue_parts(clv_queue *queue, const clv_attention_call *a)
{
    const size_t group = a->heads / a->kv_heads, rows = group * a->few,
                 width = part_width(a->width);
    size_t at_once = 1;
    while (at_once < rows && at_once < 8)
        at_once *= 2;
    clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_transformer_attention_split,
        .kernel = "clv_attention_part",
        .defines = { { "LANES", 1 },
                     { "DH", (long)a->width },
                     { "WIDTH", (long)width },
                     { "QN", (long)at_once } },
        .global = { key_parts(a) * CLV_SPLIT_GROUP, a->kv_heads * ((rows + at_once - 1) / at_once),
                    a->block_count },
        .local = { CLV_SPLIT_GROUP, 1, 1 },
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
        clv_arg_buffer(a->blocks),
        clv_arg_u64(a->first_block),
        clv_arg_i32((int32_t)a->base),
        clv_arg_buffer(a->mask ? a->mask : a->blocks),
        clv_gemm_u32(a->mask != NULL),
        clv_gemm_u32(a->causal),
        clv_gemm_u32(a->heads),
        clv_gemm_u32(group),
        clv_arg_f32(a->scale),
        clv_arg_buffer(a->parts),
        clv_gemm_u32(a->few * a->heads),
        clv_gemm_u32(key_parts(a)),
        clv_arg_local((at_once * (width + CLV_SPLIT_GROUP) + CLV_SPLIT_GROUP) * sizeof(float)),
    };
    CLV_TRY(clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL));
    const clv_arg join[] = {
        clv_arg_buffer(a->parts),        clv_arg_buffer(a->o.buffer),   clv_arg_u64(a->o.offset),
        clv_arg_u64(a->o.row),           clv_arg_u64(a->o.head),        clv_arg_buffer(a->blocks),
        clv_arg_u64(a->first_block),     clv_arg_i32((int32_t)a->base), clv_gemm_u32(a->heads),
        clv_gemm_u32(a->few * a->heads), clv_gemm_u32(key_parts(a)),
    };
    launch.kernel = "clv_attention_join";
    launch.global[0] = launch.local[0] = 64;
    launch.global[1] = a->few * a->heads;
    return clv_launch_enqueue(queue, &launch, join, CLV_LEN(join), NULL);
}

clv_status clv_attention_enqueue(clv_queue *queue, const clv_attention_call *a)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!a->block_count || !a->heads) return CLV_OK;
    if (a->parts && !a->tops && !a->bias && clv_attention_parts(clv_queue_device(queue), a))
        return enqueue_parts(queue, a);
    const clv_attention_tile t = clv_attention_tile_of(clv_queue_device(queue), a, false);
    const clv_launch launch = t.fits ? tile_launch_of(&t, a) : launch_of(&f, a);
    clv_arg args[] = {
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
        clv_arg_buffer(a->bias ? a->bias : a->o.buffer), /* this and the next two: BIAS only */
        clv_arg_u64(a->bias_at),
        clv_arg_u64(a->bias_head),
        clv_arg_local(t.local_floats * sizeof(float)), /* last argument: tiles only */
    };
    enum { COUNT = CLV_LEN(args), WITH_BIAS = 3 };
    if (a->bias) return clv_launch_enqueue(queue, &launch, args, COUNT - !t.fits, NULL);
    args[COUNT - 1 - WITH_BIAS] = args[COUNT - 1];
    return clv_launch_enqueue(queue, &launch, args, COUNT - WITH_BIAS - !t.fits, NULL);
}

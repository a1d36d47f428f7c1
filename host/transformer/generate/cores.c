/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a language model's kernels on CPUs: cl/generate/cores.cl and attend_cores.cl for one token, few_cores.cl for
 * a few tokens, and matrix products in register tiles for many tokens. */
#include "host/transformer/generate/part.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"
#include "host/transformer/blocks.h"
#include "runtime/device/device.h"

#include <math.h>

/* TOGETHER: number of tokens for which few_cores.cl unpacks the weights once. */
enum { KEYS = 32, ROWS_AT_ONCE = 32, TOGETHER = 4 };

clv_status clv_lm_cores_embed(clv_lm_part *p, clv_buffer *words, size_t rows)
{
    const clv_lm_linear *w = &p->word_rows;
    const clv_lm_widths widths = clv_lm_widths_of(&p->model->config);
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_generate_cores,
        .kernel = "clv_cores_embed",
        .defines = { { "LANES", CLV_LM_LANES }, { "QTYPE", (long)w->type } },
        .global = { rows },
        .local = { 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(words),   clv_arg_u64(w->offset),   clv_arg_buffer(p->ids),
        clv_gemm_u32(w->blocks), clv_gemm_u32(w->columns), clv_arg_buffer(p->x),
        clv_arg_u64(widths.x),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

/* ---- products ------------------------------------------------------------------------------------- */

/* Returns the scratch floats of a work-item, for x in whole blocks and for the sums of x; see cl/generate/rows.clh. */
static size_t item_floats(const clv_lm_part *p)
{
    const clv_lm_config *c = &p->model->config;
    const size_t widest = CLV_MAX(CLV_MAX(c->width, c->ffn), c->heads * c->head);
    const size_t padded = clv_round_up(widest, 256);
    return padded + padded / 16 + padded / 32 + padded / 4 * 3 + 64;
}

static clv_status one_row(clv_lm_part *p, const clv_lm_product *c)
{
    const clv_lm_linear *w = c->w;
    const clv_lm_config *config = &p->model->config;
    const size_t groups = w->rows / CLV_LM_LANES;
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_generate_cores,
        .kernel = "clv_cores_product",
        .defines = { { "LANES", CLV_LM_LANES }, { "QTYPE", (long)w->type }, { "INT8", p->int8 } },
        .global = { CLV_MIN(p->items, groups) },
        .local = { 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(c->weights),
        clv_arg_u64(w->offset),
        clv_arg_u64(c->second),
        clv_gemm_u32(groups),
        clv_gemm_u32(w->blocks),
        clv_gemm_u32(w->columns),
        clv_arg_buffer(c->x),
        clv_arg_u64(c->x_offset),
        clv_arg_u32(c->kind),
        clv_arg_buffer(c->norms ? c->norms : c->weights),
        clv_arg_u64(c->norm),
        clv_arg_f32(config->eps),
        clv_gemm_u32(c->splits),
        clv_gemm_u32(config->heads),
        clv_arg_buffer(p->scratch),
        clv_arg_u64(item_floats(p)),
        clv_arg_buffer(c->biases),
        clv_arg_u64(w->biased ? w->bias : 0),
        clv_arg_u32(w->biased),
        clv_arg_buffer(c->y),
        clv_arg_u64(c->y_offset + w->at),
        clv_arg_u32(c->finish),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status make_ready(clv_lm_part *p, const clv_lm_product *c)
{
    const clv_lm_linear *w = c->w;
    const clv_lm_config *config = &p->model->config;
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_generate_few_cores,
        .kernel = "clv_cores_ready",
        .defines = { { "LANES", CLV_LM_LANES },
                     { "QTYPE", (long)w->type },
                     { "TOKENS", TOGETHER },
                     { "INT8", p->int8 } },
        .global = { c->rows },
        .local = { 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(c->x),
        clv_arg_u64(c->x_offset),
        clv_arg_u64(c->x_stride),
        clv_arg_u32(c->kind),
        clv_arg_buffer(p->parts),
        clv_arg_u64(clv_lm_parts_floats(config)),
        clv_arg_buffer(p->row_parts),
        clv_gemm_u32(config->heads),
        clv_arg_buffer(c->norms ? c->norms : c->weights),
        clv_arg_u64(c->norm),
        clv_arg_f32(config->eps),
        clv_gemm_u32(w->blocks),
        clv_gemm_u32(w->columns),
        clv_arg_buffer(p->scratch),
        clv_arg_u64(item_floats(p)),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status few_rows(clv_lm_part *p, const clv_lm_product *c)
{
    const clv_lm_linear *w = c->w;
    const size_t groups = w->rows / CLV_LM_LANES;
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_generate_few_cores,
        .kernel = "clv_cores_few",
        .defines = { { "LANES", CLV_LM_LANES },
                     { "QTYPE", (long)w->type },
                     { "TOKENS", TOGETHER },
                     { "INT8", p->int8 } },
        .global = { CLV_MIN(p->items, groups) },
        .local = { 1 },
    };
    const clv_arg args[] = {
        clv_arg_buffer(c->weights),       clv_arg_u64(w->offset),
        clv_arg_u64(c->second),           clv_gemm_u32(groups),
        clv_gemm_u32(w->blocks),          clv_arg_buffer(p->scratch),
        clv_arg_u64(item_floats(p)),      clv_gemm_u32(c->rows),
        clv_arg_buffer(c->biases),        clv_arg_u64(w->biased ? w->bias : 0),
        clv_arg_u32(w->biased),           clv_arg_buffer(c->y),
        clv_arg_u64(c->y_offset + w->at), clv_arg_u64(c->y_stride),
        clv_arg_u32(c->finish),
    };
    CLV_TRY(make_ready(p, c));
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_gemm gemm_of(const clv_lm_product *c, clv_buffer *y, size_t y_offset, size_t y_stride)
{
    const clv_lm_linear *w = c->w;
    return (clv_gemm){ .m = c->rows,
                       .n = w->rows,
                       .k = w->columns,
                       .a = { c->x, c->x_offset, c->x_stride, 1, 0 },
                       .b = { (clv_buffer *)(uintptr_t)c->weights, w->offset, 0, 0, 0 },
                       .c = { y, y_offset, y_stride, 1, 0 },
                       .b_blocks = true,
                       .b_quant = w->type,
                       .b_block = clv_lm_block(w->type),
                       .alpha = 1,
                       .beta = c->finish == CLV_LM_ADDS ? 1 : 0,
                       .bias = w->biased ? c->biases : NULL,
                       .bias_offset = w->bias };
}

/* Computes the products with gate and up side by side in part->inner, then the gated values from both. */
static clv_status many_gated(clv_lm_part *p, const clv_lm_product *c)
{
    const size_t ffn = c->w->rows;
    clv_lm_linear both = *c->w;
    clv_lm_product call = *c;
    call.w = &both;
    if (c->finish == CLV_LM_GATES) both.rows *= 2; /* up follows gate in memory */
    const clv_gemm g = gemm_of(&call, p->inner, c->finish == CLV_LM_GATED ? ffn : 0, 2 * ffn);
    CLV_TRY(clv_gemm_enqueue(p->queue, &p->form, &g, p->scratch, NULL));
    return c->finish == CLV_LM_PLUS
               ? CLV_OK
               : clv_gate_enqueue(p->queue, p->inner, c->rows, ffn, CLV_ACTIVATION_SILU, c->y);
}

static clv_status many_rows(clv_lm_part *p, const clv_lm_product *c)
{
    if (c->y == p->gated) return many_gated(p, c);
    const clv_gemm g = gemm_of(c, c->y, c->y_offset + c->w->at, c->y_stride);
    return clv_gemm_enqueue(p->queue, &p->form, &g, p->scratch, NULL);
}

clv_status clv_lm_cores_product(clv_lm_part *p, const clv_lm_product *c)
{
    if (c->few) return few_rows(p, c);
    return c->rows == 1 ? one_row(p, c) : many_rows(p, c);
}

size_t clv_lm_cores_scratch(const clv_lm_part *p, size_t rows)
{
    size_t most = CLV_MAX(p->items, (size_t)CLV_LM_FEW) * item_floats(p);
    for (size_t i = 0; i < p->count && rows > 1; ++i) {
        const clv_lm_layer *l = &p->layers[i];
        const clv_lm_linear *all[] = { &l->qkv[0], &l->qkv[1], &l->qkv[2], &l->out,
                                       &l->gate,   &l->up,     &l->down };
        for (size_t k = 0; k < CLV_LEN(all); ++k) {
            if (!all[k]->rows) continue;
            clv_lm_linear w = *all[k];
            const clv_lm_product c = { .w = &w, .x_stride = w.columns, .rows = rows };
            if (all[k] == &l->gate && l->paired) w.rows *= 2;
            const clv_gemm g = gemm_of(&c, NULL, 0, w.rows);
            most = CLV_MAX(most, clv_gemm_scratch(&p->form, &g));
        }
    }
    return most;
}

/* ---- attention ------------------------------------------------------------------------------------ */

/* Returns the number of parts into which the keys of a single token are split: enough to occupy every core, but at most
 * one part per 128 keys, because shorter parts take longer than they save. */
size_t clv_lm_cores_splits(const clv_lm_part *p, size_t keys, size_t rows)
{
    const size_t heads = p->model->config.kv_heads, tiles = (keys + 4 * KEYS - 1) / (4 * KEYS);
    if (rows > 1 || heads >= 4 * p->units) return 1;
    return CLV_MIN(CLV_MIN((4 * p->units + heads - 1) / heads, tiles), (size_t)CLV_LM_SPLITS_MOST);
}

static clv_launch describe(const clv_lm_part *p, const char *kernel, size_t queries)
{
    const clv_lm_config *c = &p->model->config;
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_generate_attend_cores,
                         .kernel = kernel,
                         .defines = { { "LANES", 16 },
                                      { "DH", (long)c->head },
                                      { "ROT", (long)c->turned },
                                      { "NEIGHBOURS", c->neighbours },
                                      { "HEAD_NORM", c->head_norm },
                                      { "GROUP", (long)(c->heads / c->kv_heads) },
                                      { "QUERIES", (long)queries },
                                      { "HALF", p->half } },
                         .local = { 1, 1, 1 } };
}

/* One launch for the whole layer requires a device without a limit on the turns of a loop, because the work-items wait
 * for each other in a loop. */
bool clv_lm_cores_joined(const clv_lm_part *p, const clv_lm_layer *l)
{
    const clv_quant type = l->out.type;
    return l->qkv_count == 1 && l->paired && l->qkv[0].type == type && l->gate.type == type &&
           l->down.type == type && !clv_device_facts(clv_queue_device(p->queue))->flags.loop_limit;
}

clv_status clv_lm_cores_layer(clv_lm_part *p, const clv_lm_attend *a, size_t index)
{
    const clv_lm_config *c = &p->model->config;
    const clv_lm_widths w = clv_lm_widths_of(c);
    const clv_lm_layer *l = a->layer;
    clv_launch launch = describe(p, "clv_cores_layer", 1);
    size_t defines = 0;
    while (launch.defines[defines].name)
        ++defines;
    launch.source = &clv_cl_generate_layer_cores;
    launch.defines[defines] = (clv_define){ "QTYPE", (long)l->out.type };
    launch.defines[defines + 1] = (clv_define){ "INT8", p->int8 };
    /* There are only as many work-items as cores that this process may use. They wait for each other in a loop, so that
     * a waiting work-item must not occupy the core of one that has not begun. */
    launch.global[0] = p->workers, launch.local[1] = launch.local[2] = 0;
    clv_buffer *turns = p->turns;
    const clv_arg args[] = {
        clv_arg_buffer(l->weights),
        clv_arg_u64(l->qkv[0].offset),
        clv_arg_u64(l->out.offset),
        clv_arg_u64(l->gate.offset),
        clv_arg_u64(l->up.offset - l->gate.offset),
        clv_arg_u64(l->down.offset),
        clv_gemm_u32(l->qkv[0].rows / CLV_LM_LANES),
        clv_gemm_u32(c->width),
        clv_gemm_u32(c->ffn),
        clv_arg_u64(l->attn_norm),
        clv_arg_u64(l->ffn_norm),
        clv_arg_u64(l->q_norm),
        clv_arg_u64(l->k_norm),
        clv_arg_u64(l->qkv[0].bias),
        clv_arg_u32(l->qkv[0].biased),
        clv_arg_u64(l->out.bias),
        clv_arg_u32(l->out.biased),
        clv_arg_f32(c->eps),
        clv_arg_buffer(p->x),
        clv_arg_buffer(p->qkv),
        clv_arg_buffer(a->splits > 1 ? p->parts : p->seen),
        clv_arg_buffer(p->gated),
        clv_arg_buffer(p->scratch),
        clv_arg_u64(item_floats(p)),
        clv_arg_buffer(p->angles),
        clv_gemm_u32(a->first),
        clv_gemm_u32(c->kv_heads),
        clv_gemm_u32(a->splits),
        clv_arg_f32((float)(1 / sqrt((double)c->head))),
        clv_arg_u64(w.q),
        clv_arg_u64(w.q + w.kv),
        clv_arg_u64(a->room),
        clv_arg_buffer(a->keys),
        clv_arg_buffer(a->values),
        clv_arg_buffer(turns),
        clv_arg_u64(index * CLV_LM_TURNS),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status keep_many(clv_lm_part *p, const clv_lm_attend *a, size_t queries)
{
    const clv_lm_config *c = &p->model->config;
    const clv_lm_widths w = clv_lm_widths_of(c);
    clv_launch launch = describe(p, "clv_cores_keep", queries);
    launch.global[0] = a->rows, launch.local[1] = launch.local[2] = 0;
    const clv_arg args[] = {
        clv_arg_buffer(p->qkv),        clv_arg_u64(w.qkv),        clv_arg_u64(w.q),
        clv_arg_u64(w.q + w.kv),       clv_arg_buffer(p->angles), clv_arg_buffer(a->layer->weights),
        clv_arg_u64(a->layer->k_norm), clv_arg_f32(c->eps),       clv_gemm_u32(a->first),
        clv_gemm_u32(c->kv_heads),     clv_arg_u64(a->room),      clv_arg_buffer(a->keys),
        clv_arg_buffer(a->values),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_lm_cores_attend(clv_lm_part *p, const clv_lm_attend *a)
{
    const clv_lm_config *c = &p->model->config;
    const clv_lm_widths w = clv_lm_widths_of(c);
    const size_t group = c->heads / c->kv_heads;
    const size_t queries = a->rows == 1 ? 1 : CLV_MAX((size_t)ROWS_AT_ONCE / group, (size_t)1);
    if (a->rows > 1) CLV_TRY(keep_many(p, a, queries));
    clv_launch launch = describe(p, "clv_cores_attend", queries);
    launch.global[0] = c->kv_heads;
    launch.global[1] = (a->rows + queries - 1) / queries;
    launch.global[2] = a->splits;
    const bool parted = a->splits > 1;
    const clv_arg args[] = {
        clv_arg_buffer(p->qkv),
        clv_arg_u64(a->row * w.qkv),
        clv_arg_u64(w.qkv),
        clv_arg_u64(w.q),
        clv_arg_u64(w.q + w.kv),
        clv_arg_buffer(p->angles),
        clv_arg_buffer(a->layer->weights),
        clv_arg_u64(a->layer->q_norm),
        clv_arg_u64(a->layer->k_norm),
        clv_arg_f32(c->eps),
        clv_gemm_u32(a->first),
        clv_gemm_u32(a->rows),
        clv_arg_u32(a->rows == 1),
        clv_arg_f32((float)(1 / sqrt((double)c->head))),
        clv_arg_u64(a->room),
        clv_arg_buffer(a->keys),
        clv_arg_buffer(a->values),
        clv_arg_buffer(parted ? p->parts : p->seen),
        clv_arg_u64(a->row * (parted ? clv_lm_parts_floats(c) : w.seen)),
        clv_arg_u64(w.seen),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

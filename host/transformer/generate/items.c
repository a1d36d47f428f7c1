/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a language model's kernels on GPUs: cl/generate/items.cl and attend_items.cl. For products of many rows, one
 * slice of the weights at a time is converted to floats, and the device's matrix product runs on the slice. */
#include "host/transformer/generate/part.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"
#include "host/transformer/blocks.h"
#include "runtime/device/device.h"
#include "runtime/job/turn.h"

#include <math.h>

/* TOKENS: tokens per launch of the product kernel; FEW: most tokens for which that kernel is used;
 * KEYS_OF_PART: keys in one part of attention. */
enum { TOKENS = 4, FEW = 8, KEYS_OF_PART = 256 };
static const size_t wide_floats = (size_t)16 << 20; /* weights converted to floats at a time */

static size_t local_of(const clv_lm_part *p)
{
    return clv_block_form_of(clv_queue_device(p->queue)).local;
}

static clv_launch describe(const clv_lm_part *p, const char *kernel, clv_quant type)
{
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = &clv_cl_generate_items,
        .kernel = kernel,
        .defines = { { "LOCAL", (long)local_of(p) }, { "QTYPE", (long)type }, { "TOKENS", 1 } },
        .local = { local_of(p) }
    };
}

/* Returns the number of units in a row. A unit is the part of a block (QUNIT of cl/common/quants.clh) that a work-item
 * takes at once. */
static size_t units_of(const clv_lm_linear *w)
{
    switch (w->type) {
    case CLV_QUANT_Q2_K:
    case CLV_QUANT_Q3_K:
    case CLV_QUANT_Q6_K:
        return 2 * w->blocks;
    case CLV_QUANT_Q4_K:
    case CLV_QUANT_Q5_K:
        return 4 * w->blocks;
    case CLV_QUANT_IQ4_XS:
        return 8 * w->blocks;
    default:
        return w->blocks;
    }
}

clv_status clv_lm_items_choose(clv_context *context, clv_lm_part *p)
{
    enum { ROWS = 256 };
    const bool locked = clv_jobs_lock(context); /* clv_gemm_choose measures and stores its choice */
    const clv_status status = clv_gemm_choose(context, p->queue, ROWS, &p->form);
    if (locked) clv_jobs_unlock(context);
    return status;
}

clv_status clv_lm_items_embed(clv_lm_part *p, clv_buffer *words, size_t rows)
{
    const clv_lm_linear *w = &p->word_rows;
    const size_t local = local_of(p);
    clv_launch launch = describe(p, "clv_items_embed", w->type);
    launch.global[0] = clv_round_up(units_of(w), local);
    launch.global[1] = rows, launch.local[1] = 1;
    const clv_arg args[] = {
        clv_arg_buffer(words),
        clv_arg_u64(w->offset),
        clv_arg_buffer(p->ids),
        clv_gemm_u32(w->blocks),
        clv_gemm_u32(w->columns),
        clv_arg_buffer(p->x),
        clv_arg_u64(clv_lm_widths_of(&p->model->config).x),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

/* ---- products ------------------------------------------------------------------------------------- */

/* Enqueues rows [first, first + rows) of the product, at most TOKENS of them. */
static clv_status few_rows(clv_lm_part *p, const clv_lm_product *c, size_t first, size_t rows)
{
    const clv_lm_linear *w = c->w;
    clv_launch launch = describe(p, "clv_items_product", w->type);
    launch.defines[2].value = rows > 1 ? TOKENS : 1;
    launch.global[0] = w->rows / CLV_LM_LANES * local_of(p);
    const clv_arg args[] = {
        clv_arg_buffer(c->weights),
        clv_arg_u64(w->offset),
        clv_gemm_u32(w->blocks),
        clv_gemm_u32(w->columns),
        clv_arg_buffer(c->x),
        clv_arg_u64(c->x_offset + first * c->x_stride),
        clv_arg_u64(c->x_stride),
        clv_gemm_u32(rows),
        clv_arg_buffer(c->biases),
        clv_arg_u64(w->biased ? w->bias : 0),
        clv_arg_u32(w->biased),
        clv_arg_buffer(c->y),
        clv_arg_u64(c->y_offset + w->at + first * c->y_stride),
        clv_arg_u64(c->y_stride),
        clv_arg_u32(c->finish),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

/* Returns the number of groups of 16 rows that are converted to floats at a time. */
static size_t groups_at_once(const clv_lm_linear *w)
{
    const size_t group = CLV_LM_LANES * w->columns;
    return CLV_MIN(CLV_MAX(wide_floats / group, (size_t)1), w->rows / CLV_LM_LANES);
}

static clv_gemm gemm_of(const clv_lm_part *p, const clv_lm_product *c, clv_buffer *y, size_t y_at,
                        size_t y_stride, size_t groups)
{
    const clv_lm_linear *w = c->w;
    const size_t n = groups * CLV_LM_LANES;
    return (clv_gemm){ .m = c->rows,
                       .n = n,
                       .k = w->columns,
                       .a = { c->x, c->x_offset, c->x_stride, 1, 0 },
                       .b = { p->wide, 0, n, 1, 0 },
                       .c = { y, y_at, y_stride, 1, 0 },
                       .alpha = 1,
                       .beta = c->finish == CLV_LM_ADDS ? 1 : 0 };
}

static clv_status widen(clv_lm_part *p, const clv_lm_product *c, size_t first, size_t groups)
{
    const clv_lm_linear *w = c->w;
    clv_launch launch = describe(p, "clv_items_widen", w->type);
    launch.global[0] = clv_round_up(4 * groups, local_of(p));
    launch.global[1] = units_of(w), launch.local[1] = 1;
    const clv_arg args[] = {
        clv_arg_buffer(c->weights), clv_arg_u64(w->offset),  clv_gemm_u32(first),
        clv_gemm_u32(groups),       clv_gemm_u32(w->blocks), clv_gemm_u32(w->columns),
        clv_arg_buffer(p->wide),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status many_rows(clv_lm_part *p, const clv_lm_product *c, clv_buffer *y, size_t y_at,
                            size_t y_stride)
{
    const clv_lm_linear *w = c->w;
    const size_t all = w->rows / CLV_LM_LANES, most = groups_at_once(w);
    for (size_t first = 0; first < all; first += most) {
        const size_t groups = CLV_MIN(most, all - first), row = first * CLV_LM_LANES;
        clv_gemm g = gemm_of(p, c, y, y_at + row, y_stride, groups);
        g.bias = w->biased ? c->biases : NULL;
        g.bias_offset = w->bias + row;
        CLV_TRY(widen(p, c, first, groups));
        CLV_TRY(clv_gemm_enqueue(p->queue, &p->form, &g, p->scratch, NULL));
    }
    return CLV_OK;
}

clv_status clv_lm_items_product(clv_lm_part *p, const clv_lm_product *c)
{
    const size_t ffn = c->w->rows;
    if (c->rows <= FEW) {
        for (size_t first = 0; first < c->rows; first += TOKENS)
            CLV_TRY(few_rows(p, c, first, CLV_MIN(c->rows - first, (size_t)TOKENS)));
        return CLV_OK;
    }
    if (c->y != p->gated) return many_rows(p, c, c->y, c->y_offset + c->w->at, c->y_stride);
    /* writes the products with gate and up side by side; silu(gate) * up follows when both are complete */
    CLV_TRY(many_rows(p, c, p->inner, c->finish == CLV_LM_GATED ? ffn : 0, 2 * ffn));
    if (c->finish != CLV_LM_GATED) return CLV_OK;
    return clv_gate_enqueue(p->queue, p->inner, c->rows, ffn, CLV_ACTIVATION_SILU, c->y);
}

void clv_lm_items_scratch(const clv_lm_part *p, size_t rows, size_t *scratch, size_t *wide)
{
    *scratch = *wide = 0;
    for (size_t i = 0; i < p->count && rows > FEW; ++i) {
        const clv_lm_layer *l = &p->layers[i];
        const clv_lm_linear *all[] = { &l->qkv[0], &l->qkv[1], &l->qkv[2], &l->out,
                                       &l->gate,   &l->up,     &l->down };
        for (size_t k = 0; k < CLV_LEN(all); ++k) {
            if (!all[k]->rows) continue;
            const size_t groups = groups_at_once(all[k]);
            const clv_lm_product c = {
                .w = all[k], .x_stride = all[k]->columns, .rows = rows, .finish = CLV_LM_ADDS
            }; /* this finish uses the most scratch */
            const clv_gemm g = gemm_of(p, &c, NULL, 0, all[k]->rows, groups);
            *scratch = CLV_MAX(*scratch, clv_gemm_scratch(&p->form, &g));
            *wide = CLV_MAX(*wide, groups * CLV_LM_LANES * all[k]->columns);
        }
    }
}

/* ---- attention ------------------------------------------------------------------------------------ */

/* Returns the number of parts into which the keys of a single token are split: enough to occupy every core of the
 * device, but at most one part per KEYS_OF_PART keys, because shorter parts take longer than they save. */
size_t clv_lm_items_splits(const clv_lm_part *p, size_t keys, size_t rows)
{
    const size_t heads = p->model->config.kv_heads;
    const size_t wanted = (4 * p->units + heads - 1) / heads;
    if (rows > 1) return 1;
    return CLV_MIN(CLV_MIN(wanted, (keys + KEYS_OF_PART - 1) / KEYS_OF_PART),
                   (size_t)CLV_LM_SPLITS_MOST);
}

static clv_launch describe_attend(const clv_lm_part *p, const char *kernel)
{
    const clv_lm_config *c = &p->model->config;
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_generate_attend_items,
                         .kernel = kernel,
                         .defines = { { "LOCAL", (long)local_of(p) },
                                      { "DH", (long)c->head },
                                      { "ROT", (long)c->turned },
                                      { "NEIGHBOURS", c->neighbours },
                                      { "HEAD_NORM", c->head_norm },
                                      { "GROUP", (long)(c->heads / c->kv_heads) },
                                      { "HALF", p->half } },
                         .local = { local_of(p) } };
}

static clv_status turn(clv_lm_part *p, const clv_lm_attend *a)
{
    const clv_lm_config *c = &p->model->config;
    const clv_lm_widths w = clv_lm_widths_of(c);
    clv_launch launch = describe_attend(p, "clv_items_turn");
    launch.global[0] = (c->heads + c->kv_heads) * local_of(p);
    launch.global[1] = a->rows, launch.local[1] = 1;
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
        clv_gemm_u32(c->heads),
        clv_gemm_u32(c->kv_heads),
        clv_arg_f32((float)(1 / sqrt((double)c->head))),
        clv_arg_buffer(a->keys),
        clv_arg_buffer(a->values),
    };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_lm_items_attend(clv_lm_part *p, const clv_lm_attend *a)
{
    const clv_lm_config *c = &p->model->config;
    const clv_lm_widths w = clv_lm_widths_of(c);
    CLV_TRY(turn(p, a));
    clv_launch launch = describe_attend(p, "clv_items_attend");
    launch.global[0] = c->kv_heads * local_of(p);
    launch.global[1] = a->rows, launch.global[2] = a->splits;
    launch.local[1] = launch.local[2] = 1;
    const bool parted = a->splits > 1; /* only a single token's keys are split */
    const clv_arg args[] = {
        clv_arg_buffer(p->qkv),
        clv_arg_u64(a->row * w.qkv),
        clv_arg_u64(w.qkv),
        clv_gemm_u32(a->first),
        clv_gemm_u32(c->kv_heads),
        clv_arg_buffer(a->keys),
        clv_arg_buffer(a->values),
        clv_arg_buffer(parted ? p->parts : p->seen),
        clv_arg_u64(parted ? 0 : a->row * w.seen),
        clv_arg_u64(w.seen),
    };
    CLV_TRY(clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL));
    if (!parted) return CLV_OK;
    launch = describe_attend(p, "clv_items_join");
    launch.global[0] = c->heads * local_of(p);
    const clv_arg joins[] = {
        clv_arg_buffer(p->parts), clv_gemm_u32(a->splits),      clv_gemm_u32(c->heads),
        clv_arg_buffer(p->seen),  clv_arg_u64(a->row * w.seen),
    };
    return clv_launch_enqueue(p->queue, &launch, joins, CLV_LEN(joins), NULL);
}

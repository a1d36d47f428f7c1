/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of attention's gradients: cl/transformer/attention_back_tile.cl on GPUs, attention_back_rows.cl
 * on CPUs, attention_back.cl elsewhere. */
#include "host/transformer/backward/back.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <assert.h>

enum { MOST_ARGS = 48 };

void clv_attention_fill_keys(const clv_block_form *form, clv_attention_block sequence,
                             clv_attention_block *blocks)
{
    const size_t count = clv_attention_block_count(form, (size_t)sequence.keys);
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = sequence;
        blocks[i].first = (int32_t)(i * form->queries);
    }
}

static size_t add_heads(clv_arg *args, size_t used, const clv_heads *h)
{
    args[used] = clv_arg_buffer(h->buffer);
    args[used + 1] = clv_arg_u64(h->offset);
    args[used + 2] = clv_arg_u64(h->row);
    args[used + 3] = clv_arg_u64(h->head);
    return used + 4;
}

/* Appends to `args` the arguments that follow the arrays in all the kernels. Returns their new number. */
static size_t add_rest(clv_arg *args, size_t used, const clv_attention_back *b, bool by_keys,
                       bool with_delta)
{
    const clv_attention_call *a = &b->there;
    const clv_arg rest[] = {
        clv_arg_buffer(by_keys ? b->key_blocks : a->blocks),
        clv_arg_u64(by_keys ? 0 : a->first_block),
        clv_arg_buffer(a->mask ? a->mask : a->blocks),
        clv_gemm_u32(a->mask != NULL),
        clv_gemm_u32(a->causal),
        clv_gemm_u32(a->heads / a->kv_heads),
        clv_arg_f32(a->scale),
        clv_arg_buffer(a->tops),
    };
    for (size_t i = 0; i < CLV_LEN(rest); ++i)
        args[used++] = rest[i];
    if (with_delta) args[used++] = clv_arg_buffer(b->delta);
    args[used++] = clv_arg_u64(a->top_head);
    return used;
}

static clv_launch describe(const clv_block_form *f, const clv_attention_call *a)
{
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_transformer_attention_back,
                         .defines = { { "LANES", (long)f->lanes },
                                      { "LOCAL", (long)f->local },
                                      { "DH", (long)a->width },
                                      { "TILE", (long)f->tile } },
                         .local = { f->local, 1 } };
}

/* Computes all gradients by one kernel, in which a work-item takes a text and a head of keys. */
static clv_status by_rows(clv_queue *queue, const clv_block_form *f, const clv_attention_back *b)
{
    const clv_attention_call *a = &b->there;
    const clv_heads *const arrays[] = { &a->q, &a->k, &a->v, &a->o, &b->g, &b->dq, &b->dk, &b->dv };
    clv_block_form own = *f;
    own.lanes = clv_attention_lanes(f);
    own.tile = CLV_MIN(f->tile, own.lanes);
    clv_launch launch = describe(&own, a);
    launch.source = &clv_cl_transformer_attention_back_rows;
    launch.kernel = "clv_attention_back_rows";
    launch.global[0] = a->block_count;
    launch.global[1] = a->kv_heads;
    clv_arg args[MOST_ARGS];
    size_t used = 0;
    for (size_t i = 0; i < CLV_LEN(arrays); ++i)
        used = add_heads(args, used, arrays[i]);
    used = add_rest(args, used, b, false, false);
    assert(used <= CLV_LEN(args));
    return clv_launch_enqueue(queue, &launch, args, used, NULL);
}

static clv_launch describe_tile(const clv_attention_tile *t, const clv_attention_call *a)
{
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_transformer_attention_back_tile,
                         .defines = { { "LANES", 1 },
                                      { "ROWS", (long)t->rows },
                                      { "TX", (long)t->tx },
                                      { "DH", (long)a->width } },
                         .local = { t->local, 1 } };
}

/* Computes the gradients of queries by one kernel, then the gradients of keys and values by another. Each work-item
 * takes one query or key, or each work-group takes a tile of queries or keys. */
static clv_status by_items(clv_queue *queue, const clv_block_form *f, const clv_attention_back *b)
{
    const clv_attention_call *a = &b->there;
    const clv_attention_tile t = clv_attention_tile_of(clv_queue_device(queue), a, true);
    const clv_heads *const by_query[] = { &a->q, &a->k, &a->v, &a->o, &b->g, &b->dq };
    const clv_heads *const by_key[] = { &a->q, &a->k, &a->v, &b->g, &b->dk, &b->dv };
    const size_t block_items = t.fits ? 64 / t.rows * t.local : f->local;
    const clv_arg local = clv_arg_local(t.local_floats * sizeof(float));
    clv_launch launch = t.fits ? describe_tile(&t, a) : describe(f, a);
    clv_arg args[MOST_ARGS];
    size_t used = 0;
    launch.kernel = t.fits ? "clv_attention_back_q_tile" : "clv_attention_back_q";
    launch.global[0] = a->block_count * block_items;
    launch.global[1] = a->heads;
    for (size_t i = 0; i < CLV_LEN(by_query); ++i)
        used = add_heads(args, used, by_query[i]);
    used = add_rest(args, used, b, false, true);
    args[used] = local;
    CLV_TRY(clv_launch_enqueue(queue, &launch, args, used + t.fits, NULL));
    launch.kernel = t.fits ? "clv_attention_back_kv_tile" : "clv_attention_back_kv";
    launch.global[0] = b->key_block_count * block_items;
    launch.global[1] = a->kv_heads;
    used = 0;
    for (size_t i = 0; i < CLV_LEN(by_key); ++i)
        used = add_heads(args, used, by_key[i]);
    used = add_rest(args, used, b, true, true);
    args[used] = local;
    return clv_launch_enqueue(queue, &launch, args, used + t.fits, NULL);
}

clv_status clv_attention_back_enqueue(clv_queue *queue, const clv_attention_back *b)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!b->there.heads || !b->there.block_count || !b->key_block_count) return CLV_OK;
    return f.lanes > 1 ? by_rows(queue, &f, b) : by_items(queue, &f, b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the ops of training on one device. */
#include "host/transformer/train/ops.h"
#include "host/transformer/train/verified.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/queue.h"
#include "runtime/device/tensor_cache.h"
#include "runtime/record/context.h"

#include <math.h>

typedef struct device_ops {
    clv_train_ops ops; /* must be the first field: pointers to it are cast to device_ops */
    clv_queue *queue;
    bool owns_queue;
    clv_gemm_form form;
    clv_room scratch;     /* for products, and for sums over rows */
    clv_buffer *in_place; /* the caller's table in the host's memory; NULL: not used in place */
    const float *table;   /* the table for which in_place has been tried */
} device_ops;

static clv_device *device_of(clv_train_ops *ops)
{
    return clv_queue_device(((device_ops *)ops)->queue);
}

static clv_queue *queue_of(clv_train_ops *ops)
{
    return ((device_ops *)ops)->queue;
}

static clv_rows rows_of(clv_mem m, size_t stride)
{
    return (clv_rows){ m.memory, m.at, stride };
}

static clv_range range_of(clv_mem m)
{
    return (clv_range){ m.memory, m.at };
}

static clv_status take(clv_train_ops *ops, size_t count, void **memory)
{
    clv_buffer *buffer = NULL;
    size_t bytes;
    if (!clv_size_mul(CLV_MAX(count, (size_t)1), 4, &bytes))
        return clv_fail(CLV_E_DEVICE_MEMORY, "training: %zu numbers are too many for one call",
                        count);
    const clv_status status = clv_buffer_create(device_of(ops), bytes, CLV_BUFFER_DEVICE, &buffer);
    *memory = buffer;
    return status;
}

static void drop(clv_train_ops *ops, void *memory)
{
    (void)ops;
    clv_buffer_free(memory);
}

static clv_status put(clv_train_ops *ops, clv_mem to, const void *from, size_t count)
{
    return clv_write_verified(queue_of(ops), to.memory, to.at * 4, from, count * 4);
}

static clv_status get(clv_train_ops *ops, clv_mem from, void *to, size_t count)
{
    return clv_read_verified(queue_of(ops), from.memory, from.at * 4, to, count * 4);
}

static clv_status clear(clv_train_ops *ops, clv_mem what, size_t count)
{
    return count ? clv_fill_enqueue(queue_of(ops), what.memory, what.at * 4, count * 4, 0, NULL)
                 : CLV_OK;
}

static clv_status copy(clv_train_ops *ops, clv_mem from, clv_mem to, size_t count)
{
    return count ? clv_copy_enqueue(queue_of(ops), from.memory, from.at * 4, to.memory, to.at * 4,
                                    count * 4, NULL)
                 : CLV_OK;
}

static clv_status add(clv_train_ops *ops, clv_mem from, clv_mem to, size_t count)
{
    return clv_add_enqueue(queue_of(ops), range_of(from), range_of(to), count);
}

static void flush(clv_train_ops *ops)
{
    clv_queue_flush(queue_of(ops));
}

/* Returns scratch memory of at least `floats` floats. Before it replaces the memory by a larger one, it waits for the
 * queue, whose commands may still use the old memory. */
static clv_status scratch(device_ops *d, size_t floats, clv_buffer **buffer)
{
    if (floats > d->scratch.count) CLV_TRY(clv_queue_wait(d->queue));
    CLV_TRY(clv_room_fit(&d->ops, &d->scratch, floats));
    *buffer = d->scratch.memory;
    return CLV_OK;
}

/* Returns whether the device uses a table in the host's memory: a device that shares this memory needs no copy of the
 * tables, which are the largest of all weights. */
static bool is_in_place(device_ops *d, const clv_weight_piece *table)
{
    if (d->table == table->host) return d->in_place != NULL;
    if (d->table) return false;
    d->table = table->host;
    return !clv_buffer_wrap(clv_queue_device(d->queue), (void *)(uintptr_t)table->host,
                            table->n * sizeof *table->host, &d->in_place);
}

static clv_status hold(clv_train_ops *ops, size_t part, const clv_weight_piece *pieces,
                       size_t count, size_t *at, clv_train_held *held)
{
    device_ops *d = (device_ops *)ops;
    clv_kept_tensor *tensor;
    *held = (clv_train_held){ 0 };
    at[0] = 0;
    if (count == 1 && !pieces->k && is_in_place(d, pieces)) {
        held->memory = d->in_place;
        return CLV_OK;
    }
    CLV_TRY(clv_weights_get(d->queue, &d->form, ops, part, pieces, count, at, &tensor));
    *held = (clv_train_held){ clv_tensor_buffer(tensor), tensor };
    return CLV_OK;
}

static void let_go(clv_train_ops *ops, const clv_train_held *held)
{
    (void)ops;
    clv_tensor_put(held->pin);
}

static clv_status multiply(device_ops *d, const clv_gemm *g)
{
    clv_buffer *room;
    CLV_TRY(scratch(d, clv_gemm_scratch(&d->form, g), &room));
    return clv_gemm_enqueue(d->queue, &d->form, g, room, NULL);
}

static clv_status linear(clv_train_ops *ops, const clv_train_linear *l)
{
    device_ops *d = (device_ops *)ops;
    const clv_gemm g = { .m = l->rows,
                         .n = l->n,
                         .k = l->k,
                         .a = { l->x.memory, l->x.at, l->k, 1, 0 },
                         .b = { l->w.memory, l->w.at, 1, l->k, 0 },
                         .b_packed = l->held && clv_gemm_packed_b(&d->form, l->n, l->k),
                         .c = { l->y.memory, l->y.at, l->n, 1, 0 },
                         .alpha = l->alpha,
                         .beta = l->add.memory ? 1 : 0,
                         .add = { l->add.memory, l->add.at, l->n, 1, 0 },
                         .bias = l->b.memory,
                         .bias_offset = l->b.at };
    return multiply(d, &g);
}

static clv_status linear_back(clv_train_ops *ops, const clv_train_linear *l)
{
    device_ops *d = (device_ops *)ops;
    const clv_gemm by_weight = { .m = l->n,
                                 .n = l->k,
                                 .k = l->rows,
                                 .a = { l->g.memory, l->g.at, 1, l->n, 0 },
                                 .b = { l->x.memory, l->x.at, l->k, 1, 0 },
                                 .c = { l->dw.memory, l->dw.at, l->k, 1, 0 },
                                 .alpha = l->alpha };
    const clv_gemm by_input = { .m = l->rows,
                                .n = l->k,
                                .k = l->n,
                                .a = { l->g.memory, l->g.at, l->n, 1, 0 },
                                .b = { l->w.memory, l->w.at, l->k, 1, 0 },
                                .c = { l->dx.memory, l->dx.at, l->k, 1, 0 },
                                .alpha = l->alpha,
                                .beta = l->dx_add.memory ? 1 : 0,
                                .add = { l->dx_add.memory, l->dx_add.at, l->k, 1, 0 } };
    if (l->dw.memory) CLV_TRY(multiply(d, &by_weight));
    if (l->db.memory) {
        clv_column_sums s = {
            .g = rows_of(l->g, l->n), .sum = range_of(l->db), .rows = l->rows, .width = l->n
        };
        CLV_TRY(scratch(d, clv_column_scratch(l->rows, l->n), &s.scratch));
        CLV_TRY(clv_column_sums_enqueue(d->queue, &s));
    }
    return l->dx.memory ? multiply(d, &by_input) : CLV_OK;
}

/* Enqueues a norm, whose `weight` and `bias` must lie in one buffer. */
static clv_status norm(clv_train_ops *ops, const clv_train_norm *n)
{
    const clv_norm call = { .x = rows_of(n->x, n->width),
                            .y = rows_of(n->y, n->width),
                            .parameters = n->weight.memory,
                            .weight = n->weight.at,
                            .bias = n->bias.at,
                            .moments = n->moments.memory,
                            .rows = n->rows,
                            .width = n->width,
                            .eps = n->eps,
                            .rms = n->rms };
    return clv_norm_enqueue(queue_of(ops), &call);
}

static clv_status norm_back(clv_train_ops *ops, const clv_train_norm *n)
{
    device_ops *d = (device_ops *)ops;
    const clv_norm_back call = { .g = rows_of(n->g, n->width),
                                 .x = rows_of(n->x, n->width),
                                 .dx = rows_of(n->dx, n->width),
                                 .add = rows_of(n->dx_add, n->width),
                                 .moments = n->moments.memory,
                                 .weight = range_of(n->weight),
                                 .rows = n->rows,
                                 .width = n->width,
                                 .rms = n->rms };
    if (n->dweight.memory) { /* before dx, which may overwrite g */
        clv_column_sums s = { .g = call.g,
                              .x = call.x,
                              .moments = call.moments,
                              .sum = range_of(n->dbias),
                              .along = range_of(n->dweight),
                              .rows = n->rows,
                              .width = n->width };
        CLV_TRY(scratch(d, clv_column_scratch(n->rows, n->width), &s.scratch));
        CLV_TRY(clv_column_sums_enqueue(d->queue, &s));
    }
    return clv_norm_back_enqueue(d->queue, &call);
}

static clv_attention_call attention_of(const clv_train_attention *a)
{
    const size_t head = a->width / a->heads, kv_heads = a->kv_heads ? a->kv_heads : a->heads;
    const size_t kv = kv_heads * head, row = a->width + 2 * kv;
    return (clv_attention_call){
        .q = { a->qkv.memory, a->qkv.at, row, head },
        .k = { a->qkv.memory, a->qkv.at + a->width, row, head },
        .v = { a->qkv.memory, a->qkv.at + a->width + kv, row, head },
        .o = { a->o.memory, a->o.at, a->width, head },
        .blocks = a->batch->blocks,
        .block_count = a->batch->block_count,
        .mask = a->batch->mask,
        .causal = a->causal,
        .heads = a->heads,
        .kv_heads = kv_heads,
        .width = head,
        .scale = (float)(1 / sqrt((double)head)),
        .longest = a->batch->longest,
        .tops = a->tops.memory,
        .top_head = a->batch->tokens,
    };
}

static clv_status attend(clv_train_ops *ops, const clv_train_attention *a)
{
    const clv_attention_call call = attention_of(a);
    CLV_TRY(clv_attention_check(device_of(ops), a->batch->longest, call.width));
    return clv_attention_enqueue(queue_of(ops), &call);
}

static clv_status attend_back(clv_train_ops *ops, const clv_train_attention *a)
{
    const clv_attention_call there = attention_of(a);
    const size_t head = there.width, kv = there.kv_heads * head, row = there.q.row;
    const clv_attention_back call = {
        .there = there,
        .g = { a->g.memory, a->g.at, a->width, head },
        .dq = { a->dqkv.memory, a->dqkv.at, row, head },
        .dk = { a->dqkv.memory, a->dqkv.at + a->width, row, head },
        .dv = { a->dqkv.memory, a->dqkv.at + a->width + kv, row, head },
        .key_blocks = a->batch->blocks,
        .key_block_count = a->batch->block_count,
        .delta = a->delta.memory,
    };
    CLV_TRY(clv_attention_back_check(device_of(ops), a->batch->longest, head,
                                     there.heads / there.kv_heads));
    return clv_attention_back_enqueue(queue_of(ops), &call);
}

static clv_status activate(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t count,
                           clv_activation kind)
{
    return clv_activation_enqueue(queue_of(ops), x.memory, g.memory, y.memory, count, kind);
}

/* Enqueues a gate or its backward pass; all arrays must be whole buffers. */
static clv_status gate(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width, clv_activation kind)
{
    return g.memory ? clv_gate_back_enqueue(queue_of(ops), x.memory, g.memory, y.memory, rows,
                                            width, kind)
                    : clv_gate_enqueue(queue_of(ops), x.memory, rows, width, kind, y.memory);
}

static clv_status rope(clv_train_ops *ops, const clv_train_rope *r)
{
    const clv_rows x = rows_of(r->x, r->stride);
    return (r->back ? clv_rope_back_enqueue : clv_rope_enqueue)(
        queue_of(ops), &x, r->turns.memory, r->first, r->rows, r->heads, r->half);
}

static clv_status embed(clv_train_ops *ops, const clv_train_embed *e)
{
    const clv_embed_rows call = { .tokens = e->batch->ids,
                                  .word = e->word.memory,
                                  .parameters = e->position.memory,
                                  .position = e->position.at,
                                  .type = e->type.at,
                                  .y = e->y.memory,
                                  .rows = e->batch->tokens,
                                  .width = e->width };
    return clv_embed_rows_enqueue(queue_of(ops), &call);
}

static clv_status embed_back(clv_train_ops *ops, const clv_train_embed *e)
{
    device_ops *d = (device_ops *)ops;
    const clv_train_batch *b = e->batch;
    CLV_TRY(clv_segment_sums_enqueue(d->queue, e->g.memory, b->list, b->segments, 0,
                                     b->word_segments, range_of(e->dword), e->width));
    CLV_TRY(clv_segment_sums_enqueue(d->queue, e->g.memory, b->list, b->segments, b->word_segments,
                                     b->position_segments, range_of(e->dposition), e->width));
    if (!e->dtype.memory || !e->g.memory) return CLV_OK;
    clv_column_sums s = { .g = rows_of(e->g, e->width),
                          .sum = range_of(e->dtype),
                          .rows = b->tokens,
                          .width = e->width };
    CLV_TRY(scratch(d, clv_column_scratch(b->tokens, e->width), &s.scratch));
    return clv_column_sums_enqueue(d->queue, &s);
}

static clv_status pool(clv_train_ops *ops, const clv_train_pool *p)
{
    const clv_pool_call call = { .x = p->x.memory,
                                 .rows = p->batch->rows,
                                 .weight = p->batch->mask,
                                 .out = p->y.memory,
                                 .sequences = p->batch->texts,
                                 .width = p->width,
                                 .kind = p->kind };
    return clv_pool_enqueue(queue_of(ops), &call);
}

static clv_status pool_back(clv_train_ops *ops, const clv_train_pool *p)
{
    const clv_pool_back call = { .g = p->g.memory,
                                 .x = p->x.memory,
                                 .rows = p->batch->rows,
                                 .weight = p->batch->mask,
                                 .dx = p->dx.memory,
                                 .sequences = p->batch->texts,
                                 .width = p->width,
                                 .kind = p->kind };
    return clv_pool_back_enqueue(queue_of(ops), &call);
}

static clv_status unit(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width)
{
    return clv_unit_rows_enqueue(queue_of(ops), x.memory, g.memory, y.memory, rows, width);
}

static clv_status loss(clv_train_ops *ops, const clv_train_loss *l)
{
    return clv_cross_entropy_enqueue(queue_of(ops), l->x.memory, l->labels.memory, l->rows,
                                     l->classes, l->scale, l->loss.memory, l->g.memory);
}

static clv_status squares(clv_train_ops *ops, clv_mem x, size_t count, double *sum)
{
    device_ops *d = (device_ops *)ops;
    const size_t items = clv_squares_items(device_of(ops), count);
    clv_buffer *parts;
    *sum = 0;
    if (!count) return CLV_OK;
    CLV_TRY(scratch(d, items, &parts));
    float *host = clv_alloc(items, sizeof *host);
    if (!host) return clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu sums", items);
    clv_status status = clv_squares_enqueue(d->queue, x.memory, x.at, count, parts, 0);
    if (!status) status = clv_read_verified(d->queue, parts, 0, host, items * sizeof *host);
    for (size_t i = 0; i < items && !status; ++i)
        *sum += (double)host[i];
    clv_free(host);
    return status;
}

static clv_status update(clv_train_ops *ops, const clv_train_rule *rule, const clv_train_update *u)
{
    const clv_step_range range = { .weights = u->weights,
                                   .gradient = u->gradient,
                                   .first = u->first,
                                   .second = u->second,
                                   .bits = u->bits,
                                   .at = u->at,
                                   .count = u->count,
                                   .scale = u->scale,
                                   .rate = u->rate,
                                   .decay = u->decay,
                                   .step = u->step };
    return rule->kind == CLV_OPTIMIZER_SGD
               ? clv_sgd_enqueue(queue_of(ops), &range, rule->momentum)
               : clv_adamw_enqueue(queue_of(ops), &range, rule->beta1, rule->beta2, rule->eps);
}

static clv_status fail_ops(clv_train_ops *ops, clv_status status)
{
    return clv_queue_finish(queue_of(ops), status);
}

static void close_ops(clv_train_ops *ops)
{
    device_ops *d = (device_ops *)ops;
    clv_queue_drain(d->queue);
    clv_tensors_drop(clv_queue_device(d->queue), ops);
    clv_buffer_free(d->in_place);
    clv_room_free(ops, &d->scratch);
    if (d->owns_queue) clv_queue_free(d->queue);
    clv_free(d);
}

static const clv_train_ops table = { .take = take,
                                     .drop = drop,
                                     .put = put,
                                     .get = get,
                                     .clear = clear,
                                     .copy = copy,
                                     .add = add,
                                     .flush = flush,
                                     .hold = hold,
                                     .let_go = let_go,
                                     .linear = linear,
                                     .linear_back = linear_back,
                                     .norm = norm,
                                     .norm_back = norm_back,
                                     .attend = attend,
                                     .attend_back = attend_back,
                                     .activate = activate,
                                     .gate = gate,
                                     .rope = rope,
                                     .embed = embed,
                                     .embed_back = embed_back,
                                     .pool = pool,
                                     .pool_back = pool_back,
                                     .unit = unit,
                                     .loss = loss,
                                     .squares = squares,
                                     .update = update,
                                     .fail = fail_ops,
                                     .close = close_ops };

clv_status clv_train_ops_on(clv_queue *queue, bool owns, const clv_gemm_form *form,
                            clv_train_ops **ops)
{
    device_ops *d = clv_zalloc(1, sizeof *d);
    *ops = NULL;
    if (!d) return clv_fail(CLV_E_MEMORY, "training: out of memory");
    d->ops = table;
    d->ops.form = clv_block_form_of(clv_queue_device(queue));
    d->queue = queue;
    d->owns_queue = owns;
    d->form = *form;
    *ops = &d->ops;
    return CLV_OK;
}

clv_queue *clv_train_ops_queue(const clv_train_ops *ops, clv_gemm_form *form)
{
    const device_ops *d = (const device_ops *)ops;
    *form = d->form;
    return d->queue;
}

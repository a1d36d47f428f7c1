/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a batch of texts to the lists that the ops of training read. */
#include "host/transformer/train/net.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

/* A lookup of a table's row by a token. Sorted by row, then by token, the lookups have the order in which a row's
 * gradients are summed. */
typedef struct lookup {
    int32_t row, token;
} lookup;

static int by_row(const void *left, const void *right)
{
    const lookup *a = left, *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* Sorts the lookups, writes their tokens to list[base, base + tokens), and writes one segment per distinct row to
 * `out`. Returns the number of segments. */
static size_t segment(lookup *all, size_t tokens, size_t base, int32_t *list, clv_segment *out)
{
    size_t count = 0;
    qsort(all, tokens, sizeof *all, by_row);
    for (size_t i = 0; i < tokens; ++i) {
        list[base + i] = all[i].token;
        if (!i || all[i].row != all[i - 1].row)
            out[count++] = (clv_segment){ .first = (int32_t)(base + i), .row = all[i].row };
        ++out[count - 1].count;
    }
    return count;
}

typedef struct lists {
    int32_t *ids, *rows, *list;
    lookup *lookups;
    clv_segment *segments;
    clv_attention_block *blocks;
} lists;

static void lists_free(lists *l)
{
    clv_free(l->ids), clv_free(l->rows), clv_free(l->list);
    clv_free(l->lookups), clv_free(l->segments), clv_free(l->blocks);
}

static bool lists_make(lists *l, size_t tokens, size_t texts, size_t blocks)
{
    l->ids = clv_alloc(tokens + 1, 2 * sizeof *l->ids);
    l->rows = clv_alloc(texts + 1, 2 * sizeof *l->rows);
    l->list = clv_alloc(tokens + 1, 2 * sizeof *l->list);
    l->lookups = clv_alloc(tokens + 1, sizeof *l->lookups);
    l->segments = clv_zalloc(2 * tokens + 1, sizeof *l->segments);
    l->blocks = clv_zalloc(blocks + 1, sizeof *l->blocks);
    return l->ids && l->rows && l->list && l->lookups && l->segments && l->blocks;
}

static clv_status put(clv_train_ops *ops, clv_room *room, const void *list, size_t count,
                      void **memory)
{
    CLV_TRY(clv_room_fit(ops, room, CLV_MAX(count, (size_t)1)));
    *memory = room->memory;
    return ops->put(ops, (clv_mem){ room->memory, 0 }, list, count);
}

clv_status clv_batch_fill(clv_train_ops *ops, clv_batch_rooms *r, const int32_t *ids,
                          const size_t *offsets, size_t texts, const int32_t *mask)
{
    const size_t base = offsets[0], tokens = offsets[texts] - base;
    clv_train_batch *b = &r->batch;
    lists l = { 0 };
    *b = (clv_train_batch){ .tokens = tokens, .texts = texts };
    for (size_t i = 0; i < texts; ++i) {
        const size_t count = offsets[i + 1] - offsets[i];
        b->longest = CLV_MAX(b->longest, count);
        b->block_count += clv_attention_block_count(&ops->form, count);
    }
    clv_status status =
        lists_make(&l, tokens, texts, b->block_count)
            ? CLV_OK
            : clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu tokens", tokens);
    for (size_t i = 0, at = 0; i < texts && !status; ++i) {
        const size_t first = offsets[i] - base, count = offsets[i + 1] - offsets[i];
        const clv_attention_block text = { .query = (int32_t)first,
                                           .queries = (int32_t)count,
                                           .key = (int32_t)first,
                                           .keys = (int32_t)count,
                                           .mask = (int32_t)first };
        clv_attention_fill(&ops->form, text, l.blocks + at);
        at += clv_attention_block_count(&ops->form, count);
        l.rows[2 * i] = (int32_t)first;
        l.rows[2 * i + 1] = (int32_t)count;
        for (size_t t = 0; t < count; ++t) {
            l.ids[2 * (first + t)] = ids[base + first + t];
            l.ids[2 * (first + t) + 1] = (int32_t)t;
        }
    }
    for (size_t which = 0; which < 2 && !status; ++which) {
        for (size_t t = 0; t < tokens; ++t)
            l.lookups[t] = (lookup){ l.ids[2 * t + which], (int32_t)t };
        const size_t count = segment(l.lookups, tokens, which * tokens, l.list,
                                     l.segments + (which ? b->word_segments : 0));
        *(which ? &b->position_segments : &b->word_segments) = count;
    }
    if (!status) status = put(ops, &r->ids, l.ids, 2 * tokens, &b->ids);
    if (!status) status = put(ops, &r->rows, l.rows, 2 * texts, &b->rows);
    if (!status)
        status = put(ops, &r->blocks, l.blocks, b->block_count * sizeof *l.blocks / 4, &b->blocks);
    if (!status) status = put(ops, &r->list, l.list, 2 * tokens, &b->list);
    if (!status)
        status =
            put(ops, &r->segments, l.segments,
                (b->word_segments + b->position_segments) * sizeof *l.segments / 4, &b->segments);
    if (!status && mask) status = put(ops, &r->mask, mask, tokens, &b->mask);
    lists_free(&l);
    return status;
}

void clv_batch_free(clv_train_ops *ops, clv_batch_rooms *r)
{
    clv_room *const all[] = { &r->ids, &r->rows, &r->blocks, &r->mask, &r->list, &r->segments };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_room_free(ops, all[i]);
}

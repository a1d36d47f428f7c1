/* SPDX-License-Identifier: Apache-2.0 */
/* Searches a chunk of rows on a device: multiplies the rows by the queries, step by step, and finds the best rows of
 * every query. */
#include "host/search/search_job.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/results.h"
#include "cl/search/shared.clh"
#include "cl_embedded.h"
#include "runtime/record/device.h"

#include <math.h>

enum {
    FEW = 24, /* queries for which cores read rows once, by dots.cl; more go through GEMM */
    QUERY_BLOCK = 256,     /* queries of one product */
    CORE_FLOATS = 1 << 20, /* products at a time, so that they stay in a cache */
    CARD_FLOATS = 1 << 24,
    SEGMENT = 4096 /* rows of a work-group */
};

static clv_search_way way_of(const clv_device *device, const clv_search *s)
{
    const clv_probe_device *facts = clv_device_facts(device);
    clv_search_way w = { .cores = facts->device_class == CLV_CLASS_CPU };
    /* rasterisers take small work-groups only, whatever their drivers report for the device */
    w.group = facts->device_class == CLV_CLASS_SOFTWARE ? 32 : CLV_SEARCH_GROUP;
    while (w.group > 1 && w.group > facts->max_work_group)
        w.group /= 2;
    w.dots = w.cores && s->queries <= FEW;
    w.block = CLV_MIN(s->queries, (size_t)QUERY_BLOCK);
    if (w.cores && s->codes == CLV_CODES_INT8) w.block = CLV_MIN(s->queries, (size_t)FEW);
    w.segment = clv_round_up(CLV_MAX((size_t)SEGMENT, 4 * s->keep), SEGMENT);
    const size_t floats = w.cores ? CORE_FLOATS : CARD_FLOATS;
    w.step = w.cores ? CLV_MAX(floats / w.block / SEGMENT, (size_t)1) * SEGMENT
                     : CLV_MAX(floats / w.block / w.segment, (size_t)1) * w.segment;
    w.pitch = w.step;
    return w;
}

static size_t segments_of(const clv_search_way *w, size_t count)
{
    return w->cores ? 1 : (count + w->segment - 1) / w->segment;
}

clv_cost clv_search_cost(size_t first, size_t count, void *user)
{
    (void)first;
    const clv_search_plan *p = user;
    const clv_search *s = p->search;
    const double rows = (double)count * (double)p->stride * (p->codes ? 1 : sizeof(float));
    const double products = (double)count * (double)s->queries;
    const size_t block = CLV_MIN(s->queries, (size_t)QUERY_BLOCK);
    const size_t segments = count / CLV_MAX((size_t)SEGMENT, 4 * s->keep) + 2;
    const double found = (double)(s->queries * s->keep) * 8, parts = found * (double)segments;
    const double at_once =
        CLV_MIN((double)CARD_FLOATS, (double)block * ((double)count + SEGMENT)) * 4;
    const double operations =
        s->codes == CLV_CODES_BINARY ? 3 * (double)s->words : 2 * (double)s->width;
    return (clv_cost){ .flops = products * operations,
                       .traffic_bytes = rows + 2 * products * sizeof(float),
                       .transfer_bytes = rows + found,
                       .memory_bytes = (uint64_t)(rows + parts + found + at_once),
                       .buffer_bytes = (uint64_t)CLV_MAX(rows, parts / 2) };
}

clv_status clv_search_setup(clv_worker *worker, void *user)
{
    clv_search_plan *p = user;
    const clv_search *s = p->search;
    clv_queue *queue = clv_worker_queue(worker);
    const clv_search_way w = way_of(clv_worker_device(worker), s);
    const bool bits = s->codes == CLV_CODES_BINARY;
    const size_t bytes =
        bits ? clv_round_up(s->queries, CLV_SEARCH_BITS_BLOCK) * s->words * sizeof *s->bits
             : s->padded_queries * s->pitch * sizeof(float);
    clv_buffer *queries;
    CLV_TRY(clv_worker_buffer(worker, CLV_SEARCH_QUERIES, bytes, &queries));
    CLV_TRY(clv_write(queue, queries, 0, bits ? (const void *)s->bits : s->padded, bytes));
    if (w.dots || s->codes) return CLV_OK;
    return clv_gemm_choose(s->context, queue, w.block, &p->form[clv_worker_index(worker)]);
}

/* Whether products are still to be multiplied by the lengths of rows. */
static bool is_scaled(const clv_search_chunk *c)
{
    return c->search->similarity == CLV_SIMILARITY_COSINE && c->search->codes != CLV_CODES_BINARY;
}

static clv_status enqueue_product(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                                  size_t count)
{
    const clv_search *s = c->search;
    clv_buffer *scratch;
    const clv_gemm g = { .m = queries,
                         .n = count,
                         .k = s->width,
                         .a = { c->queries, q * s->pitch, s->pitch, 1, 0 },
                         .b = { c->x.buffer, clv_search_offset(c, at), 1, c->x.stride[1], 0 },
                         .c = { c->products, 0, c->way.pitch, 1, 0 },
                         .any_order = true,
                         .alpha = 1 };
    CLV_TRY(clv_slot_buffer(c->slot, CLV_SEARCH_SCRATCH,
                            clv_gemm_scratch(c->form, &g) * sizeof(float), &scratch));
    return clv_gemm_enqueue(c->queue, c->form, &g, scratch, NULL);
}

static clv_launch group_launch(const clv_search_chunk *c, const char *kernel, bool scaled,
                               size_t groups, size_t rows)
{
    const size_t group = c->way.group;
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_search_select_group,
                         .kernel = kernel,
                         .defines = { { "GROUP", (long)group }, { "SCALED", scaled } },
                         .global = { group * groups, rows },
                         .local = { group, 1 } };
}

static clv_status enqueue_scales(const clv_search_chunk *c, size_t at, size_t count)
{
    if (c->way.cores) return clv_search_enqueue_dots(c, 0, 0, at, count, true);
    const clv_launch launch = group_launch(c, "clv_search_scale", true, 1, count);
    const clv_arg args[] = { clv_arg_buffer(c->x.buffer), clv_arg_u64(clv_search_offset(c, at)),
                             clv_arg_u64(c->x.stride[1]), clv_arg_u32((uint32_t)c->search->width),
                             clv_arg_buffer(c->scales) };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status select_on_cores(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                                  size_t count)
{
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_search_select_cores,
                                .kernel = "clv_search_select_cores",
                                .defines = { { "SCALED", is_scaled(c) } },
                                .global = { queries },
                                .local = { 1 } };
    const clv_arg args[] = { clv_arg_buffer(c->products),
                             clv_arg_u32((uint32_t)c->way.pitch),
                             clv_arg_buffer(c->scales),
                             clv_arg_u32((uint32_t)at),
                             clv_arg_u32((uint32_t)count),
                             clv_arg_u32((uint32_t)q),
                             clv_arg_u32((uint32_t)c->search->keep),
                             clv_arg_u32(at == 0),
                             clv_arg_buffer(c->scores),
                             clv_arg_buffer(c->rows) };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status select_in_groups(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                                   size_t count)
{
    const clv_search *s = c->search;
    const clv_launch launch =
        group_launch(c, "clv_search_select", is_scaled(c), segments_of(&c->way, count), queries);
    const clv_arg args[] = {
        clv_arg_buffer(c->products),
        clv_arg_u32((uint32_t)c->way.pitch),
        clv_arg_buffer(c->scales),
        clv_arg_u32((uint32_t)at),
        clv_arg_u32((uint32_t)count),
        clv_arg_u32((uint32_t)c->way.segment),
        clv_arg_u32((uint32_t)s->keep),
        clv_arg_u32((uint32_t)c->segments),
        clv_arg_u32((uint32_t)(q * c->segments + at / c->way.segment)),
        clv_arg_buffer(c->segments > 1 ? c->part_scores : c->scores),
        clv_arg_buffer(c->segments > 1 ? c->part_rows : c->rows),
    };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status join(const clv_search_chunk *c)
{
    const clv_search *s = c->search;
    const clv_launch launch = group_launch(c, "clv_search_join", false, 1, s->queries);
    const clv_arg args[] = { clv_arg_buffer(c->part_scores),
                             clv_arg_buffer(c->part_rows),
                             clv_arg_u32((uint32_t)(c->segments * s->keep)),
                             clv_arg_u32((uint32_t)s->keep),
                             clv_arg_buffer(c->scores),
                             clv_arg_buffer(c->rows) };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

/* Rows [at, at + count) of the chunk, all queries. */
static clv_status enqueue_step(const clv_search_chunk *c, size_t at, size_t count)
{
    const clv_search *s = c->search;
    if (is_scaled(c) && !c->way.dots && !s->codes) CLV_TRY(enqueue_scales(c, at, count));
    for (size_t q = 0; q < s->queries; q += c->way.block) {
        const size_t queries = CLV_MIN(s->queries - q, c->way.block);
        CLV_TRY(s->codes      ? clv_search_enqueue_codes(c, q, queries, at, count)
                : c->way.dots ? clv_search_enqueue_dots(c, q, queries, at, count, is_scaled(c))
                              : enqueue_product(c, q, queries, at, count));
        CLV_TRY(c->way.cores ? select_on_cores(c, q, queries, at, count)
                             : select_in_groups(c, q, queries, at, count));
    }
    return CLV_OK;
}

static clv_status take_buffers(clv_search_chunk *c, size_t count)
{
    const clv_search *s = c->search;
    const size_t places = s->queries * s->keep,
                 step = CLV_MIN(c->way.step, clv_round_up(count, SEGMENT));
    c->way.pitch = step;
    CLV_TRY(clv_worker_buffer(clv_slot_worker(c->slot), CLV_SEARCH_QUERIES, 0, &c->queries));
    CLV_TRY(clv_slot_buffer(c->slot, CLV_SEARCH_PRODUCTS, c->way.block * step * sizeof(float),
                            &c->products));
    CLV_TRY(clv_slot_buffer(c->slot, CLV_SEARCH_SCALES, step * sizeof(float), &c->scales));
    CLV_TRY(clv_slot_output(c->slot, CLV_SEARCH_SCORES, places * sizeof(float), &c->scores));
    CLV_TRY(clv_slot_output(c->slot, CLV_SEARCH_ROWS, places * sizeof(uint32_t), &c->rows));
    c->segments = segments_of(&c->way, count);
    if (c->segments == 1) return CLV_OK;
    CLV_TRY(clv_slot_buffer(c->slot, CLV_SEARCH_PART_SCORES, places * c->segments * sizeof(float),
                            &c->part_scores));
    return clv_slot_buffer(c->slot, CLV_SEARCH_PART_ROWS, places * c->segments * sizeof(uint32_t),
                           &c->part_rows);
}

/* Some rasterisers compute wrongly beyond a number of loop turns: refuses chunks that need more. */
static clv_status check_turns(const clv_search_chunk *c, size_t count)
{
    enum { PASSES = 7 }; /* of a selection over its input */
    const clv_device *device = clv_queue_device(c->queue);
    const size_t joined = segments_of(&c->way, count) * c->search->keep;
    const size_t selected = PASSES * (CLV_MAX(joined, c->way.segment) / c->way.group + 1);
    const size_t turns = CLV_MAX(selected, c->plan->codes ? c->plan->stride : 0);
    if (c->way.cores || device->loop_limit == CLV_UNKNOWN || turns < device->loop_limit)
        return CLV_OK;
    return clv_fail(CLV_E_UNSUPPORTED,
                    "search: %zu rows per query need %zu loop iterations, but %s computes "
                    "correctly only up to %llu",
                    c->search->top, turns, clv_device_label(device),
                    (unsigned long long)device->loop_limit);
}

clv_status clv_search_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_search_plan *p = user;
    const clv_search *s = p->search;
    clv_worker *worker = clv_slot_worker(slot);
    clv_search_chunk c = { .plan = p,
                           .search = s,
                           .form = &p->form[clv_worker_index(worker)],
                           .way = way_of(clv_worker_device(worker), s),
                           .slot = slot,
                           .queue = clv_slot_queue(slot) };
    const clv_box box = { .host = p->codes ? (const void *)(p->codes + first * p->stride)
                                           : (const void *)(p->rows + first * p->stride),
                          .element_bytes = p->codes ? 1 : sizeof(float),
                          .extent = { 1, count, p->codes ? p->stride : s->width },
                          .stride = { 0, p->stride, 1 } };
    CLV_TRY(check_turns(&c, count));
    CLV_TRY(clv_slot_input(slot, CLV_SEARCH_ROWS_IN, &box, &c.x));
    CLV_TRY(take_buffers(&c, count));
    for (size_t at = 0; at < count; at += c.way.step)
        CLV_TRY(enqueue_step(&c, at, CLV_MIN(count - at, c.way.step)));
    return c.segments > 1 ? join(&c) : CLV_OK;
}

clv_status clv_search_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_search_plan *p = user;
    const clv_search *s = p->search;
    const size_t places = s->queries * s->keep;
    const float *scores;
    const uint32_t *rows;
    CLV_TRY(clv_slot_take(slot, CLV_SEARCH_SCORES, places * sizeof *scores, &scores));
    CLV_TRY(clv_slot_take(slot, CLV_SEARCH_ROWS, places * sizeof *rows, &rows));
    for (size_t i = 0; i < places; ++i)
        if (rows[i] < count)
            clv_hits_offer(p->found + i / s->keep * s->keep, &p->found_count[i / s->keep], s->keep,
                           (clv_hit){ (double)scores[i], (int64_t)(first + rows[i]) });
    return CLV_OK;
}

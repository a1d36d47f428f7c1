/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the products of a few queries with rows, and of queries with rows of codes, on a device. */
#include "host/search/search_job.h"

#include "base/alloc.h"
#include "cl/search/shared.clh"
#include "cl_embedded.h"

enum {
    CARD_QUERIES = 4, /* of a work-item; divides CLV_SEARCH_BITS_BLOCK */
    FEW = 3           /* queries for which cores count word by word */
};

clv_status clv_search_enqueue_dots(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                                   size_t count, bool scaled)
{
    const clv_search *s = c->search;
    const size_t lanes = clv_gemm_form_of(clv_queue_device(c->queue), 0).lanes == 16 ? 16 : 8;
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = &clv_cl_search_dots,
                          .kernel = "clv_search_dots",
                          .defines = { { "LANES", (long)lanes },
                                       { "NORMS", scaled },
                                       { "BYTES", c->search->codes == CLV_CODES_INT8 },
                                       { "QUERIES", queries < 2   ? 1
                                                    : queries < 4 ? 2
                                                                  : 4 } },
                          .global = { (count + CLV_SEARCH_STRIP - 1) / CLV_SEARCH_STRIP },
                          .local = { 1 } };
    const clv_arg args[] = { clv_arg_buffer(c->x.buffer),     clv_arg_u64(clv_search_offset(c, at)),
                             clv_arg_u64(c->x.stride[1]),     clv_arg_buffer(c->queries),
                             clv_arg_u32((uint32_t)s->pitch), clv_arg_u32((uint32_t)q),
                             clv_arg_buffer(c->products),     clv_arg_u32((uint32_t)c->way.pitch),
                             clv_arg_buffer(c->scales),       clv_arg_u32((uint32_t)count),
                             clv_arg_u32((uint32_t)s->width), clv_arg_u32((uint32_t)queries) };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_launch launch_of(const clv_search_chunk *c, bool bits, size_t queries, size_t count)
{
    const clv_define words = { bits ? "WORDS" : NULL, (long)c->search->words };
    if (c->way.cores)
        return (clv_launch){ .size = sizeof(clv_launch),
                             .source = &clv_cl_search_bits,
                             .kernel = queries <= FEW ? "clv_search_bits_few" : "clv_search_bits",
                             .defines = { words },
                             .global = { (count + CLV_SEARCH_STRIP - 1) / CLV_SEARCH_STRIP },
                             .local = { 1 } };
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = &clv_cl_search_codes_group,
        .kernel = bits ? "clv_search_bits_group" : "clv_search_bytes",
        .defines = { { "GROUP", (long)c->way.group }, { "QUERIES", CARD_QUERIES }, words },
        .global = { clv_round_up(count, c->way.group),
                    (queries + CARD_QUERIES - 1) / CARD_QUERIES },
        .local = { c->way.group, 1 }
    };
}

static clv_status enqueue_bits(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                               size_t count)
{
    const clv_search *s = c->search;
    const clv_launch launch = launch_of(c, true, queries, count);
    const clv_arg args[] = { clv_arg_buffer(c->x.buffer),
                             clv_arg_u64(clv_search_offset(c, at)),
                             clv_arg_u64(c->x.stride[1]),
                             clv_arg_buffer(c->queries),
                             clv_arg_u32((uint32_t)q),
                             clv_arg_buffer(c->products),
                             clv_arg_u32((uint32_t)c->way.pitch),
                             clv_arg_u32((uint32_t)count),
                             clv_arg_u32((uint32_t)c->plan->stride),
                             clv_arg_u32((uint32_t)s->width),
                             clv_arg_u32((uint32_t)queries) };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status enqueue_bytes(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                                size_t count)
{
    const clv_search *s = c->search;
    const clv_launch launch = launch_of(c, false, queries, count);
    const clv_arg args[] = { clv_arg_buffer(c->x.buffer),     clv_arg_u64(clv_search_offset(c, at)),
                             clv_arg_u64(c->x.stride[1]),     clv_arg_buffer(c->queries),
                             clv_arg_u32((uint32_t)s->pitch), clv_arg_u32((uint32_t)q),
                             clv_arg_buffer(c->products),     clv_arg_u32((uint32_t)c->way.pitch),
                             clv_arg_buffer(c->scales),       clv_arg_u32((uint32_t)count),
                             clv_arg_u32((uint32_t)s->width), clv_arg_u32((uint32_t)queries) };
    return clv_launch_enqueue(c->queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_search_enqueue_codes(const clv_search_chunk *c, size_t q, size_t queries, size_t at,
                                    size_t count)
{
    if (c->search->codes == CLV_CODES_BINARY) return enqueue_bits(c, q, queries, at, count);
    return c->way.cores ? clv_search_enqueue_dots(c, q, queries, at, count, q == 0)
                        : enqueue_bytes(c, q, queries, at, count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of cl/transformer/norm_back.cl and cl/transformer/sums.cl. */
#include "host/transformer/backward/back.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

enum { BLOCK = 128 }; /* rows per partial sum; the result's bits depend on it */

static size_t groups(size_t count, size_t side)
{
    return (count + side - 1) / side;
}

clv_status clv_norm_back_enqueue(clv_queue *queue, const clv_norm_back *n)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    if (!n->rows) return CLV_OK;
    clv_launch launch =
        clv_row_launch(queue, &(clv_row_kernel){ &clv_cl_transformer_norm_back, "clv_norm_back",
                                                 n->rows, n->width, f.each, true });
    launch.defines[3] = (clv_define){ "RMS", n->rms };
    const clv_rows *add = n->add.buffer ? &n->add : &n->dx;
    const clv_arg args[] = {
        clv_arg_buffer(n->g.buffer), clv_arg_u64(n->g.offset),
        clv_arg_u64(n->g.stride),    clv_arg_buffer(n->x.buffer),
        clv_arg_u64(n->x.offset),    clv_arg_u64(n->x.stride),
        clv_arg_buffer(n->moments),  clv_arg_buffer(n->weight.buffer),
        clv_arg_u64(n->weight.at),   clv_arg_buffer(n->dx.buffer),
        clv_arg_u64(n->dx.offset),   clv_arg_u64(n->dx.stride),
        clv_arg_buffer(add->buffer), clv_arg_u64(add->offset),
        clv_arg_u64(add->stride),    clv_gemm_u32(n->add.buffer != NULL),
        clv_gemm_u32(n->rows),       clv_gemm_u32(n->width),
        clv_gemm_u32(f.each),
    };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_launch describe(clv_queue *queue, const char *kernel, size_t columns, size_t rows)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &clv_cl_transformer_sums,
                         .kernel = kernel,
                         .defines = { { "LANES", (long)f.lanes }, { "LOCAL", (long)f.local } },
                         .global = { clv_round_up(groups(columns, f.lanes), f.local), rows },
                         .local = { f.local, rows ? 1 : 0 } };
}

size_t clv_column_scratch(size_t rows, size_t width)
{
    return CLV_MAX(groups(rows, BLOCK), (size_t)1) * 2 * width;
}

clv_status clv_column_sums_enqueue(clv_queue *queue, const clv_column_sums *s)
{
    const size_t blocks = groups(s->rows, BLOCK);
    const bool norm = s->along.buffer != NULL;
    if (!s->width) return CLV_OK;
    if (blocks) {
        const clv_launch launch = describe(queue, "clv_column_sums", s->width, blocks);
        const clv_arg args[] = {
            clv_arg_buffer(s->g.buffer),
            clv_arg_u64(s->g.offset),
            clv_arg_u64(s->g.stride),
            clv_arg_buffer(norm ? s->x.buffer : s->g.buffer),
            clv_arg_u64(s->x.offset),
            clv_arg_u64(s->x.stride),
            clv_arg_buffer(norm ? s->moments : s->g.buffer),
            clv_gemm_u32(norm),
            clv_arg_buffer(s->scratch),
            clv_gemm_u32(s->rows),
            clv_gemm_u32(s->width),
            clv_gemm_u32(BLOCK),
        };
        CLV_TRY(clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL));
    }
    const clv_range parts = { s->scratch, 0 }, second = { s->scratch, s->width };
    if (s->sum.buffer)
        CLV_TRY(clv_sum_blocks_enqueue(queue, parts, 2 * s->width, blocks, s->sum, s->width));
    if (s->along.buffer)
        CLV_TRY(clv_sum_blocks_enqueue(queue, second, 2 * s->width, blocks, s->along, s->width));
    return CLV_OK;
}

clv_status clv_sum_blocks_enqueue(clv_queue *queue, clv_range parts, size_t stride, size_t blocks,
                                  clv_range out, size_t width)
{
    if (!width) return CLV_OK;
    const clv_launch launch = describe(queue, "clv_sum_blocks", width, 0);
    const clv_arg args[] = { clv_arg_buffer(parts.buffer), clv_arg_u64(parts.at),
                             clv_arg_u64(stride),          clv_gemm_u32(blocks),
                             clv_arg_buffer(out.buffer),   clv_arg_u64(out.at),
                             clv_gemm_u32(width) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_segment_sums_enqueue(clv_queue *queue, const clv_buffer *g, const clv_buffer *list,
                                    const clv_buffer *segments, size_t first, size_t count,
                                    clv_range out, size_t width)
{
    if (!count || !width) return CLV_OK;
    clv_launch launch = describe(queue, "clv_segment_sums", width, count);
    /* a work-item takes all columns of a row on a CPU, and one on other devices, which may limit loop turns */
    if (clv_block_form_of(clv_queue_device(queue)).lanes > 1) launch.global[0] = launch.local[0];
    const clv_arg args[] = { clv_arg_buffer(g ? g : out.buffer),
                             clv_arg_buffer(list),
                             clv_arg_buffer(segments),
                             clv_arg_u64(first),
                             clv_arg_buffer(out.buffer),
                             clv_arg_u64(out.at),
                             clv_gemm_u32(width),
                             clv_gemm_u32(g == NULL) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

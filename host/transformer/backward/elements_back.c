/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of cl/transformer/elements_back.cl. */
#include "host/transformer/backward/back.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

enum { CORE_VECTORS = 128 }; /* vectors that a work-item processes on a CPU core */

static clv_launch describe(const clv_queue *queue, const char *kernel, size_t items, size_t rows)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = &clv_cl_transformer_elements_back,
        .kernel = kernel,
        .defines = { { "LANES", (long)f.lanes }, { "LOCAL", (long)f.local }, { "TEAM", 1 } },
        .global = { clv_round_up(items, f.local), rows },
        .local = { f.local, rows ? 1 : 0 }
    };
}

static clv_launch describe_rows(const clv_queue *queue, const char *kernel, size_t rows,
                                size_t width, bool sums)
{
    return clv_row_launch(queue, &(clv_row_kernel){ &clv_cl_transformer_elements_back, kernel, rows,
                                                    width, 1, sums });
}

clv_status clv_activation_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                  clv_buffer *y, size_t count, clv_activation activation)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    const size_t each = f.lanes > 1 ? CORE_VECTORS : 1, item = each * f.lanes;
    if (!count) return CLV_OK;
    if (count > UINT32_MAX - item * f.local)
        return clv_fail(CLV_E_SHAPE, "activation: %zu numbers are too many for one call", count);
    const clv_launch launch = describe(queue, "clv_activation", (count + item - 1) / item, 0);
    const clv_arg args[] = { clv_arg_buffer(x),        clv_arg_buffer(g ? g : x),
                             clv_arg_buffer(y),        clv_gemm_u32(count),
                             clv_gemm_u32(activation), clv_gemm_u32(g != NULL),
                             clv_gemm_u32(each) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_add_enqueue(clv_queue *queue, clv_range x, clv_range y, size_t count)
{
    const clv_block_form f = clv_block_form_of(clv_queue_device(queue));
    const size_t each = f.lanes > 1 ? CORE_VECTORS : 1, item = each * f.lanes;
    if (!count) return CLV_OK;
    if (count > UINT32_MAX - item * f.local)
        return clv_fail(CLV_E_SHAPE, "add: %zu numbers are too many for one call", count);
    const clv_launch launch = describe(queue, "clv_add", (count + item - 1) / item, 0);
    const clv_arg args[] = { clv_arg_buffer(x.buffer), clv_arg_u64(x.at),
                             clv_arg_buffer(y.buffer), clv_arg_u64(y.at),
                             clv_gemm_u32(count),      clv_gemm_u32(each) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_gate_back_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                 clv_buffer *dx, size_t rows, size_t width, clv_activation act)
{
    if (!rows || !width) return CLV_OK;
    const clv_launch launch = describe_rows(queue, "clv_gate_back", rows, width, false);
    const clv_arg args[] = { clv_arg_buffer(x),  clv_arg_buffer(g),   clv_arg_buffer(dx),
                             clv_gemm_u32(rows), clv_gemm_u32(width), clv_gemm_u32(act) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_rope_back_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                                 size_t first, size_t rows, size_t heads, size_t half)
{
    if (!rows) return CLV_OK;
    const clv_launch launch = describe_rows(queue, "clv_rope_back", rows, heads * half, false);
    const clv_arg args[] = { clv_arg_buffer(x->buffer), clv_arg_u64(x->offset),
                             clv_arg_u64(x->stride),    clv_arg_buffer(turns),
                             clv_gemm_u32(first),       clv_gemm_u32(rows),
                             clv_gemm_u32(heads),       clv_gemm_u32(half) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_pool_back_enqueue(clv_queue *queue, const clv_pool_back *p)
{
    if (!p->sequences || !p->width) return CLV_OK;
    /* a work-item takes all columns on a CPU, and one column on other devices, which may limit loop turns */
    const bool core = clv_block_form_of(clv_queue_device(queue)).lanes > 1;
    const clv_launch launch = describe(queue, "clv_pool_back", core ? 1 : p->width, p->sequences);
    const clv_arg args[] = { clv_arg_buffer(p->g),
                             clv_arg_buffer(p->x ? p->x : p->g),
                             clv_arg_buffer(p->rows),
                             clv_arg_buffer(p->weight ? p->weight : p->rows),
                             clv_gemm_u32(p->weight != NULL),
                             clv_arg_buffer(p->dx),
                             clv_gemm_u32(p->width),
                             clv_gemm_u32(p->kind) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

clv_status clv_unit_rows_enqueue(clv_queue *queue, const clv_buffer *x, const clv_buffer *g,
                                 clv_buffer *y, size_t rows, size_t width)
{
    if (!rows || !width) return CLV_OK;
    const clv_launch launch = describe_rows(queue, "clv_unit_rows", rows, width, true);
    const clv_arg args[] = { clv_arg_buffer(x),      clv_arg_buffer(g ? g : x), clv_arg_buffer(y),
                             clv_gemm_u32(rows),     clv_gemm_u32(width),       clv_arg_f32(1e-12f),
                             clv_gemm_u32(g != NULL) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of cl/transformer/elements.cl, and computes activations on the host. */
#include "host/transformer/blocks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <math.h>

double clv_activate(double x, clv_activation kind)
{
    switch (kind) {
    case CLV_ACTIVATION_GELU:
        return 0.5 * x * erfc(-x * 0.70710678118654752);
    case CLV_ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case CLV_ACTIVATION_SILU:
        return x / (1 + exp(-x));
    case CLV_ACTIVATION_TANH:
        return tanh(x);
    case CLV_ACTIVATION_RELU:
        return x < 0 ? 0 : x; /* NaN stays NaN */
    default:
        return x;
    }
}

static clv_launch describe(const clv_queue *queue, const char *kernel, size_t rows, size_t width,
                           bool sums)
{
    return clv_row_launch(
        queue, &(clv_row_kernel){ &clv_cl_transformer_elements, kernel, rows, width, 1, sums });
}

clv_status clv_gate_enqueue(clv_queue *queue, const clv_buffer *x, size_t rows, size_t width,
                            clv_activation activation, clv_buffer *y)
{
    if (!rows || !width) return CLV_OK;
    const clv_launch launch = describe(queue, "clv_gate", rows, width, false);
    const clv_arg args[] = { clv_arg_buffer(x),  clv_arg_u64(2 * width), clv_arg_buffer(y),
                             clv_gemm_u32(rows), clv_gemm_u32(width),    clv_gemm_u32(activation) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

void clv_rope_turns(size_t positions, size_t half, double base, float *turns)
{
    for (size_t p = 0; p < positions; ++p)
        for (size_t i = 0; i < half; ++i) {
            const double angle = (double)p * pow(base, -(double)i / (double)half);
            turns[2 * (p * half + i)] = (float)cos(angle);
            turns[2 * (p * half + i) + 1] = (float)sin(angle);
        }
}

clv_status clv_rope_enqueue(clv_queue *queue, const clv_rows *x, const clv_buffer *turns,
                            size_t first, size_t rows, size_t heads, size_t half)
{
    if (!rows) return CLV_OK;
    const clv_launch launch = describe(queue, "clv_rope", rows, heads * half, false);
    const clv_arg args[] = { clv_arg_buffer(x->buffer), clv_arg_u64(x->offset),
                             clv_arg_u64(x->stride),    clv_arg_buffer(turns),
                             clv_gemm_u32(first),       clv_gemm_u32(rows),
                             clv_gemm_u32(heads),       clv_gemm_u32(half) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

/* Checks that the device runs the kernel's loops to their end: three loops take eight classes per turn, three more
 * take the remaining classes. A device that ends loops earlier would return a wrong loss without an error. */
static clv_status check_classes(const clv_device *device, size_t classes)
{
    const uint64_t limit = clv_device_facts(device)->flags.loop_limit;
    const uint64_t most = limit > 24 ? (limit - 24) / 3 * 8 : 0;
    if (!limit || classes <= most) return CLV_OK;
    return clv_fail(CLV_E_DEVICE,
                    "loss: got %zu classes, but %s handles at most %llu, because it ends loops "
                    "after %llu iterations",
                    classes, clv_device_label(device), (unsigned long long)most,
                    (unsigned long long)limit);
}

clv_status clv_cross_entropy_enqueue(clv_queue *queue, const clv_buffer *x,
                                     const clv_buffer *labels, size_t rows, size_t classes,
                                     float scale, clv_buffer *loss, clv_buffer *gradient)
{
    if (!rows || !classes) return CLV_OK;
    CLV_TRY(check_classes(clv_queue_device(queue), classes));
    const clv_launch launch = describe(queue, "clv_cross_entropy", rows, classes, true);
    const clv_arg args[] = { clv_arg_buffer(x),
                             clv_arg_buffer(labels),
                             clv_arg_i32(CLV_LABEL_IGNORED),
                             clv_arg_buffer(loss),
                             clv_arg_buffer(gradient ? gradient : loss),
                             clv_gemm_u32(gradient != NULL),
                             clv_arg_f32(scale),
                             clv_gemm_u32(rows),
                             clv_gemm_u32(classes) };
    return clv_launch_enqueue(queue, &launch, args, CLV_LEN(args), NULL);
}

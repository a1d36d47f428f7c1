/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels that find the maxima of whole frames. All these kernels have the same arguments except a
 * work-group's local memory and the geometry. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"

#include <string.h>

clv_status clv_blob_launch(const clv_blob_pass *p, const clv_launch *launch, size_t at,
                           const clv_arg *memory, const size_t *geometry, size_t count)
{
    enum { MOST = 32 };
    const clv_blob_plan *plan = p->plan;
    const clv_arg inputs[] = {
        clv_arg_buffer(p->pixels.buffer),
        clv_arg_u64(p->pixels.offset),
        clv_arg_u64(p->pixels.stride[0]),
        clv_arg_u64(p->pixels.stride[1]),
        clv_arg_buffer(p->pedestal),
        clv_arg_buffer(p->table[CLV_BLOB_TAPS]),
        clv_arg_buffer(p->table[CLV_BLOB_LEVEL]),
        clv_arg_buffer(p->table[CLV_BLOB_LEAK]),
        clv_arg_buffer(p->map),
        clv_arg_buffer(p->table[CLV_BLOB_FACTOR]),
    };
    const clv_arg results[] = {
        clv_arg_buffer(p->peaks),         clv_arg_buffer(p->counts),       clv_arg_buffer(p->bins),
        clv_blob_int(plan->shape.height), clv_blob_int(plan->shape.width),
    };
    const clv_arg rules[] = {
        clv_arg_u32((uint32_t)plan->capacity),
        clv_arg_f32(plan->gain),
        clv_arg_f32(clv_blob_dog_factor(plan)),
        clv_arg_f32(plan->relative),
        clv_blob_int(clv_blob_step(plan)),
        clv_blob_int(plan->cells_across),
        clv_blob_int(plan->cells),
        clv_blob_int(plan->cell_shift),
        clv_arg_u32((uint32_t)at),
    };
    clv_arg args[MOST];
    size_t n = CLV_LEN(inputs);
    memcpy(args, inputs, sizeof inputs);
    if (memory) args[n++] = *memory;
    memcpy(args + n, results, sizeof results), n += CLV_LEN(results);
    for (size_t i = 0; i < count; ++i)
        args[n++] = clv_blob_int(geometry[i]);
    memcpy(args + n, rules, sizeof rules), n += CLV_LEN(rules);
    return clv_launch_enqueue(p->queue, launch, args, n, NULL);
}

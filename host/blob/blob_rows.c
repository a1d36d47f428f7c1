/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/rows.cl: bands of rows by explicit vectors. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "cl_embedded.h"

static clv_launch describe(const clv_blob_pass *p, size_t frames)
{
    return (clv_launch){
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_rows,
        .kernel = "clv_blob_rows",
        .defines = { { "LANES", (long)p->f->lanes },
                     { "PIXEL", (long)p->plan->shape.type },
                     { "DOG", p->plan->options.dog },
                     { "GROUP", (long)p->f->level_group } },
        .global = { p->f->tiles, p->f->bands, frames },
        .local = { 1, 1, 1 },
    };
}

clv_status clv_blob_look_rows(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_arg args[] = {
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
        clv_arg_buffer(p->scratch),
        clv_arg_buffer(p->peaks),
        clv_arg_buffer(p->counts),
        clv_arg_buffer(p->bins),
        clv_blob_int(plan->shape.height),
        clv_blob_int(plan->shape.width),
        clv_blob_int(p->f->tile),
        clv_blob_int(p->f->band),
        clv_blob_int(plan->levels),
        clv_blob_int(p->f->pad),
        clv_blob_int(p->f->ring),
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
    const clv_launch launch = describe(p, frames);
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/tile.cl: tiles in local memory. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "cl_embedded.h"

enum { TX = 32, TY = 16 };

size_t clv_blob_tile_floats(const clv_blob_plan *plan)
{
    const size_t reach = plan->max_radius, rows = TY + 2 + 2 * reach, rim = (TX + 2) * (TY + 2);
    const size_t planes = plan->options.dog ? 1 : 2;
    return rows * (TX + 3 + 2 * reach) + planes * rows * (TX + 2) +
           (plan->options.dog ? 4 : 3) * rim;
}

clv_status clv_blob_look_tile(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_frames *s = &plan->shape;
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
        clv_arg_local(clv_blob_tile_floats(plan) * sizeof(float)),
        clv_arg_buffer(p->peaks),
        clv_arg_buffer(p->counts),
        clv_arg_buffer(p->bins),
        clv_blob_int(s->height),
        clv_blob_int(s->width),
        clv_blob_int(plan->levels),
        clv_blob_int(plan->max_radius),
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
    const clv_launch l = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_tile,
        .kernel = "clv_blob_tile",
        .defines = { { "LANES", 1 },
                     { "PIXEL", (long)s->type },
                     { "DOG", plan->options.dog },
                     { "WG", (long)p->f->local },
                     { "TX", TX },
                     { "TY", TY } },
        .global = { (s->width + TX - 1) / TX * p->f->local, (s->height + TY - 1) / TY, frames },
        .local = { p->f->local, 1, 1 },
    };
    return clv_launch_enqueue(p->queue, &l, args, CLV_LEN(args), NULL);
}

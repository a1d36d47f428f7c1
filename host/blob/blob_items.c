/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/items.cl: one work-item per pixel, with planes in global memory. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

static clv_status launch(const clv_blob_pass *p, const char *kernel, size_t height, size_t depth,
                         const clv_arg *args, size_t count)
{
    const clv_launch l = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_items,
        .kernel = kernel,
        .defines = { { "LANES", 1 },
                     { "PIXEL", (long)p->plan->shape.type },
                     { "DOG", p->plan->options.dog },
                     { "WG", (long)p->f->local } },
        .global = { clv_round_up(p->plan->shape.width, p->f->local), height, depth },
        .local = { p->f->local, 1, 1 },
    };
    return clv_launch_enqueue(p->queue, &l, args, count, NULL);
}

static clv_status respond(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_frames *s = &plan->shape;
    const clv_arg args[] = {
        clv_arg_buffer(p->pixels.buffer), clv_arg_u64(p->pixels.offset),
        clv_arg_u64(p->pixels.stride[0]), clv_arg_u64(p->pixels.stride[1]),
        clv_arg_buffer(p->pedestal),      clv_arg_buffer(p->scratch),
        clv_blob_int(s->height),          clv_blob_int(s->width),
        clv_blob_int(plan->scales),       clv_arg_f32(plan->gain),
        clv_arg_u32((uint32_t)at),
    };
    CLV_TRY(launch(p, "clv_blob_bring", s->height, frames, args, CLV_LEN(args)));
    for (size_t l = 0; l < plan->levels; ++l) {
        const clv_arg across[] = {
            clv_arg_buffer(p->scratch),       clv_arg_buffer(p->table[CLV_BLOB_TAPS]),
            clv_blob_int(plan->first_tap[l]), clv_blob_int(plan->radius[l]),
            clv_blob_int(s->height),          clv_blob_int(s->width),
            clv_blob_int(plan->scales),
        };
        const clv_arg down[] = {
            clv_arg_buffer(p->scratch),
            clv_arg_buffer(p->table[CLV_BLOB_TAPS]),
            clv_blob_int(plan->first_tap[l]),
            clv_blob_int(plan->radius[l]),
            clv_blob_int(l),
            clv_arg_buffer(p->pedestal),
            clv_arg_buffer(p->table[CLV_BLOB_LEAK]),
            clv_blob_int(s->height),
            clv_blob_int(s->width),
            clv_blob_int(plan->scales),
            clv_arg_f32(plan->gain),
            clv_arg_f32(clv_blob_dog_factor(plan)),
            clv_arg_u32((uint32_t)at),
        };
        CLV_TRY(launch(p, "clv_blob_across", s->height, frames, across, CLV_LEN(across)));
        CLV_TRY(launch(p, "clv_blob_down", s->height, frames, down, CLV_LEN(down)));
    }
    return CLV_OK;
}

/* Enqueues the histogram of the responses' magnitudes, from which the noise is estimated. */
static clv_status count_sizes(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_frames *s = &plan->shape;
    const size_t rows = (s->height + plan->noise_step - 1) / plan->noise_step;
    const clv_arg count[] = {
        clv_arg_buffer(p->scratch),       clv_arg_buffer(p->bins),
        clv_arg_buffer(p->map),           clv_arg_buffer(p->table[CLV_BLOB_FACTOR]),
        clv_blob_int(s->height),          clv_blob_int(s->width),
        clv_blob_int(plan->scales),       clv_blob_int(plan->noise_step),
        clv_blob_int(plan->cells_across), clv_blob_int(plan->cells),
        clv_blob_int(plan->cell_shift),   clv_arg_u32((uint32_t)at),
    };
    return launch(p, "clv_blob_count", rows, frames * plan->scales, count, CLV_LEN(count));
}

clv_status clv_blob_look_items(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    CLV_TRY(respond(p, at, frames));
    if (plan->by_noise) CLV_TRY(count_sizes(p, at, frames));
    const clv_arg args[] = {
        clv_arg_buffer(p->scratch),
        clv_arg_buffer(p->peaks),
        clv_arg_buffer(p->counts),
        clv_arg_buffer(p->map),
        clv_arg_buffer(p->table[CLV_BLOB_FACTOR]),
        clv_blob_int(plan->shape.height),
        clv_blob_int(plan->shape.width),
        clv_blob_int(plan->scales),
        clv_arg_u32((uint32_t)plan->capacity),
        clv_arg_f32(plan->relative),
        clv_blob_int(plan->cells_across),
        clv_blob_int(plan->cells),
        clv_blob_int(plan->cell_shift),
        clv_arg_u32((uint32_t)at),
    };
    return launch(p, "clv_blob_look", plan->shape.height, frames * plan->scales, args,
                  CLV_LEN(args));
}

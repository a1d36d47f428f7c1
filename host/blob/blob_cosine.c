/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/cosine.cl, which computes the responses of large sigmas by cosine transforms on CPU cores. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

enum {
    BLOCK = CLV_BLOB_WAVE_BLOCK,
    ITEMS_A_CORE = 4,
    BLOCKS_AN_ITEM = 2,         /* fewest blocks per work-item when frames are small */
    MOST_STEP_FLOATS = 4 << 20, /* most floats in the half-transformed responses */
    MOST_GROUP_FLOATS = 16 << 20,
    LOOK_ROWS = 32,
};

/* Offsets of the parts of the scratch memory; see cosine.cl. */
typedef struct parts {
    size_t plane; /* padded height times padded width */
    size_t spectrum, halfway, responses, floats;
    size_t line; /* padded length of the longer side */
} parts;

static parts parts_of(const clv_blob_plan *plan, const clv_blob_family *f, size_t frames)
{
    const clv_blob_waves *w = &plan->waves;
    const size_t ny = w->along[0].padded, nx = w->along[1].padded;
    parts p = { .plane = ny * nx, .line = CLV_MAX(nx, ny) };
    p.spectrum = 2 * p.line * BLOCK * f->tiles; /* after the lines of all work-items */
    p.halfway = p.spectrum + frames * p.plane;
    p.responses = p.halfway + frames * f->level_group * p.plane;
    p.floats = p.responses + frames * plan->scales * plan->shape.height * plan->shape.width;
    return p;
}

clv_blob_family clv_blob_cosine_family(const clv_blob_plan *plan, size_t cores, size_t frames)
{
    clv_blob_family f = { .form = CLV_BLOB_COSINE, .local = 1, .lanes = 16 };
    const size_t nx = plan->waves.along[1].padded, plane = plan->waves.along[0].padded * nx;
    f.level_group = CLV_MAX(CLV_MIN(MOST_STEP_FLOATS / plane, plan->scales), (size_t)1);
    f.tiles = ITEMS_A_CORE * cores;
    const size_t wanted = BLOCKS_AN_ITEM * f.tiles / (nx / BLOCK);
    const size_t most = MOST_GROUP_FLOATS / (plane * (plan->scales + f.level_group + 1));
    f.group = CLV_MAX(CLV_MIN(CLV_MIN(wanted, most), frames), (size_t)1);
    f.scratch_floats = parts_of(plan, &f, CLV_MIN(f.group, frames)).floats;
    return f;
}

static clv_status launch(const clv_blob_pass *p, const char *kernel, size_t items, size_t planes,
                         const clv_arg *args, size_t count)
{
    const clv_launch l = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_cosine,
        .kernel = kernel,
        .defines = { { "LANES", (long)p->f->lanes },
                     { "PIXEL", (long)p->plan->shape.type },
                     { "DOG", 0 } },
        .global = { items, planes },
        .local = { 1, planes ? 1 : 0 },
    };
    return clv_launch_enqueue(p->queue, &l, args, count, NULL);
}

static clv_status there(const clv_blob_pass *p, const parts *at, size_t first, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_waves *w = &plan->waves;
    const clv_arg columns[] = {
        clv_arg_buffer(p->pixels.buffer),
        clv_arg_u64(p->pixels.offset),
        clv_arg_u64(p->pixels.stride[0]),
        clv_arg_u64(p->pixels.stride[1]),
        clv_arg_buffer(p->pedestal),
        clv_arg_buffer(p->scratch),
        clv_arg_u64(at->spectrum),
        clv_blob_int(at->line),
        clv_arg_buffer(p->table[CLV_BLOB_WAVES_Y]),
        clv_arg_buffer(p->table[CLV_BLOB_QUARTERS_Y]),
        clv_blob_int(plan->shape.height),
        clv_blob_int(plan->shape.width),
        clv_blob_int(w->along[0].length),
        clv_blob_int(w->along[1].length),
        clv_blob_int(w->along[0].padded),
        clv_blob_int(frames),
        clv_arg_f32(plan->gain),
        clv_arg_u32((uint32_t)first),
    };
    const clv_arg rows[] = {
        clv_arg_buffer(p->scratch),
        clv_arg_u64(at->spectrum),
        clv_blob_int(at->line),
        clv_arg_buffer(p->table[CLV_BLOB_WAVES_X]),
        clv_arg_buffer(p->table[CLV_BLOB_QUARTERS_X]),
        clv_blob_int(w->along[1].length),
        clv_blob_int(w->along[0].padded),
        clv_blob_int(frames),
    };
    CLV_TRY(launch(p, "clv_blob_sums_of_columns", p->f->tiles, 0, columns, CLV_LEN(columns)));
    return launch(p, "clv_blob_sums_of_rows", p->f->tiles, 0, rows, CLV_LEN(rows));
}

/* Transforms the scales [from, from + scales) of the group back into responses. */
static clv_status back(const clv_blob_pass *p, const parts *at, size_t from, size_t scales,
                       size_t first, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_waves *w = &plan->waves;
    const clv_arg rows[] = {
        clv_arg_buffer(p->scratch),
        clv_arg_u64(at->spectrum),
        clv_arg_u64(at->halfway),
        clv_blob_int(at->line),
        clv_arg_buffer(p->table[CLV_BLOB_WAVES_X]),
        clv_arg_buffer(p->table[CLV_BLOB_QUARTERS_X]),
        clv_arg_buffer(p->table[CLV_BLOB_FILTERS]),
        clv_blob_int(w->along[1].length),
        clv_blob_int(w->along[0].padded),
        clv_blob_int(from),
        clv_blob_int(scales),
        clv_blob_int(frames),
    };
    const clv_arg columns[] = {
        clv_arg_buffer(p->scratch),
        clv_arg_u64(at->halfway),
        clv_arg_u64(at->responses),
        clv_blob_int(at->line),
        clv_arg_buffer(p->table[CLV_BLOB_WAVES_Y]),
        clv_arg_buffer(p->table[CLV_BLOB_QUARTERS_Y]),
        clv_arg_buffer(p->pedestal),
        clv_arg_buffer(p->table[CLV_BLOB_LEAK]),
        clv_blob_int(plan->shape.height),
        clv_blob_int(plan->shape.width),
        clv_blob_int(w->along[0].length),
        clv_blob_int(w->along[1].length),
        clv_blob_int(w->along[0].padded),
        clv_blob_int(from),
        clv_blob_int(scales),
        clv_blob_int(plan->scales),
        clv_blob_int(frames),
        clv_arg_f32(plan->gain),
        clv_arg_u32((uint32_t)first),
    };
    CLV_TRY(launch(p, "clv_blob_rows_from_sums", p->f->tiles, 0, rows, CLV_LEN(rows)));
    return launch(p, "clv_blob_columns_from_sums", p->f->tiles, 0, columns, CLV_LEN(columns));
}

static clv_status count_sizes(const clv_blob_pass *p, const parts *at, size_t first, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_arg sizes[] = {
        clv_arg_buffer(p->scratch),
        clv_arg_u64(at->responses),
        clv_arg_buffer(p->bins),
        clv_arg_buffer(p->map),
        clv_arg_buffer(p->table[CLV_BLOB_FACTOR]),
        clv_blob_int(plan->shape.height),
        clv_blob_int(plan->shape.width),
        clv_blob_int(plan->scales),
        clv_blob_int(plan->noise_step),
        clv_blob_int(plan->cells_across),
        clv_blob_int(plan->cells),
        clv_blob_int(plan->cell_shift),
        clv_arg_u32((uint32_t)first),
    };
    return launch(p, "clv_blob_sizes", frames * plan->scales, 0, sizes, CLV_LEN(sizes));
}

clv_status clv_blob_look_cosine(const clv_blob_pass *p, size_t first, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const parts at = parts_of(plan, p->f, frames);
    CLV_TRY(there(p, &at, first, frames));
    for (size_t from = 0; from < plan->scales; from += p->f->level_group)
        CLV_TRY(back(p, &at, from, CLV_MIN(p->f->level_group, plan->scales - from), first, frames));
    if (plan->by_noise) CLV_TRY(count_sizes(p, &at, first, frames));
    const clv_arg look[] = {
        clv_arg_buffer(p->scratch),
        clv_arg_u64(at.responses),
        clv_arg_buffer(p->peaks),
        clv_arg_buffer(p->counts),
        clv_arg_buffer(p->map),
        clv_arg_buffer(p->table[CLV_BLOB_FACTOR]),
        clv_blob_int(plan->shape.height),
        clv_blob_int(plan->shape.width),
        clv_blob_int(plan->scales),
        clv_blob_int(LOOK_ROWS),
        clv_arg_u32((uint32_t)plan->capacity),
        clv_arg_f32(plan->relative),
        clv_blob_int(plan->cells_across),
        clv_blob_int(plan->cells),
        clv_blob_int(plan->cell_shift),
        clv_arg_u32((uint32_t)first),
    };
    const size_t bands = (plan->shape.height + LOOK_ROWS - 1) / LOOK_ROWS;
    return launch(p, "clv_blob_look_along", bands, frames * plan->scales, look, CLV_LEN(look));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the geometry of the volume kernels' forms and enqueues their launches. */
#include "host/blob/volume_family.h"
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"
#include "runtime/job/tune.h"

#include <string.h>

enum { TX = 32, TY = 16, LANES = 16, ITEMS_A_CORE = 8, MOST_CORES = 256, LOWEST_BAND = 64 };
/* Most work-items of a work-group. A tile's local memory leaves room for few groups, so they are large; in the other
 * kernels a group is a part of a row, whose end would leave much of a large group idle. */
enum { TILE_GROUP = 256, ROW_GROUP = 128 };

/* Returns how many arrays of sums a level's responses are computed from: A, for the LoG also C. */
static size_t inputs_of(const clv_volume_plan *plan)
{
    return plan->flat->options.dog ? 1 : 2;
}

size_t clv_volume_tile_floats(const clv_volume_plan *plan)
{
    const size_t rows = TY + 2 * plan->reach[CLV_Y], columns = TX + 2 * plan->reach[CLV_X];
    return rows * columns + inputs_of(plan) * rows * TX;
}

static clv_volume_family rows_family(const clv_volume_plan *plan, size_t cores, size_t planes)
{
    clv_volume_family f = { .form = CLV_VOLUME_ROWS, .pad = plan->reach[CLV_X] + LANES };
    const size_t wanted = (ITEMS_A_CORE * cores + planes - 1) / planes;
    f.bands = CLV_MAX(CLV_MIN(wanted, plan->height / LOWEST_BAND), (size_t)1);
    f.band = clv_round_up((plan->height + f.bands - 1) / f.bands, CLV_BLOB_STEP_ROWS);
    f.bands = (plan->height + f.band - 1) / f.band;
    for (f.ring = 4; f.ring < 2 * plan->reach[CLV_Y] + CLV_BLOB_STEP_ROWS;)
        f.ring *= 2;
    const size_t rings = inputs_of(plan) * f.ring * plan->pitch;
    f.own_floats = f.bands * planes * (plan->pitch + 2 * f.pad + rings);
    return f;
}

/* Returns the size, in floats, of the rows summed along x. */
static size_t items_floats(const clv_volume_plan *plan, size_t planes)
{
    return inputs_of(plan) * planes * plan->height * plan->pitch;
}

static const char *const for_cores[] = { "rows", NULL };
static const char *const for_gpus[] = { "tile", "items", NULL };
static const char *const for_rasterisers[] = { "items", "tile", NULL };

const char *const *clv_volume_variants(const clv_device *device)
{
    return clv_variants_for(device, for_cores, for_rasterisers, for_gpus);
}

clv_volume_family clv_volume_family_for(const clv_volume_plan *plan, const clv_worker *worker,
                                        size_t planes)
{
    const clv_device *device = clv_worker_device(worker);
    const clv_probe_device *facts = clv_device_facts(device);
    const char *name = clv_volume_variants(device)[clv_worker_variant(worker)];
    const size_t cores = CLV_MIN(CLV_MAX(facts->compute_units, 1u), (size_t)MOST_CORES);
    const bool small = facts->device_class == CLV_CLASS_SOFTWARE;
    if (strcmp(name, "rows") == 0) return rows_family(plan, cores, planes);
    if (strcmp(name, "tile") == 0 &&
        clv_volume_tile_floats(plan) * sizeof(float) <= facts->local_bytes)
        return (clv_volume_family){ .form = CLV_VOLUME_TILE,
                                    .local = small ? 32 : CLV_MIN(facts->max_work_group, ROW_GROUP),
                                    .tile_local =
                                        small ? 32 : CLV_MIN(facts->max_work_group, TILE_GROUP),
                                    .own_floats = 1 };
    return (clv_volume_family){ .form = CLV_VOLUME_ITEMS,
                                .local = small ? 32 : 64,
                                .own_floats = items_floats(plan, planes) };
}

size_t clv_volume_own_estimate(const clv_volume_plan *plan)
{
    enum { USUAL_CORES = 16 };
    const size_t planes = CLV_MIN(plan->slab + 2 + 2 * plan->reach[CLV_Z], plan->depth);
    return CLV_MAX(rows_family(plan, USUAL_CORES, planes).own_floats, items_floats(plan, planes));
}

size_t clv_volume_floats(const clv_volume_plan *plan, const clv_volume_family *f, int buffer)
{
    const bool dog = plan->flat->options.dog;
    const size_t plane = plan->height * plan->pitch, responses = plan->slab + 2,
                 inputs = CLV_MIN(responses + 2 * plan->reach[CLV_Z], plan->depth);
    switch (buffer) {
    case CLV_VOLUME_A:
        return inputs * plane;
    case CLV_VOLUME_C:
        return dog ? 1 : inputs * plane;
    case CLV_VOLUME_L:
        return CLV_VOLUME_KEPT * responses * plane;
    case CLV_VOLUME_G:
        return dog ? responses * plane : 1;
    default:
        return f->own_floats;
    }
}

/* ---- launches ------------------------------------------------------------------------------------ */

static clv_arg whole(size_t value)
{
    return clv_arg_i32((int32_t)value);
}

typedef struct grid {
    size_t x, y, z;
} grid;

static clv_status launch_in_groups(const clv_volume_pass *p, const char *kernel, size_t local,
                                   grid g, const clv_arg *args, size_t count)
{
    const bool rows = p->f->form == CLV_VOLUME_ROWS;
    clv_launch l = { .size = sizeof l,
                     .source = rows ? &clv_cl_blob_volume_rows : &clv_cl_blob_volume_items,
                     .kernel = kernel,
                     .defines = { { "LANES", rows ? LANES : 1 },
                                  { "PIXEL", (long)p->plan->flat->shape.type },
                                  { "DOG", p->plan->flat->options.dog } },
                     .global = { clv_round_up(g.x, local), g.y, g.z },
                     .local = { local, 1, 1 } };
    if (!rows) {
        l.defines[3] = (clv_define){ "WG", (long)local };
        l.defines[4] = (clv_define){ "TX", TX };
        l.defines[5] = (clv_define){ "TY", TY };
    }
    return clv_launch_enqueue(p->queue, &l, args, count, NULL);
}

static clv_status launch(const clv_volume_pass *p, const char *kernel, grid g, const clv_arg *args,
                         size_t count)
{
    const size_t local = p->f->form == CLV_VOLUME_ROWS ? 1 : p->f->local;
    return launch_in_groups(p, kernel, local, g, args, count);
}

static float dog_factor(const clv_volume_plan *plan)
{
    return (float)(1 / (plan->flat->options.sigma_ratio - 1));
}

/* Enqueues the sums A and C of level l in the rows form. */
static clv_status flat_rows(const clv_volume_pass *p, size_t l)
{
    const clv_volume_plan *plan = p->plan;
    const clv_volume_taps *y = &plan->along[l][CLV_Y], *x = &plan->along[l][CLV_X];
    const size_t planes = p->slab.high - p->slab.low;
    const clv_arg args[] = {
        clv_arg_buffer(p->pixels.buffer),
        clv_arg_u64(p->pixels.offset),
        clv_arg_u64(p->pixels.stride[0]),
        clv_arg_u64(p->pixels.stride[1]),
        clv_arg_buffer(p->table[CLV_VOLUME_TAPS]),
        whole(y->first),
        whole(y->radius),
        whole(x->first),
        whole(x->radius),
        clv_arg_buffer(p->buffer[CLV_VOLUME_A]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_C]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_OWN]),
        whole(p->f->band),
        whole(p->f->pad),
        whole(p->f->ring),
        whole(plan->height),
        whole(plan->width),
        whole(plan->pitch),
        whole(planes),
        clv_arg_f32(plan->pedestal),
        clv_arg_f32(plan->flat->gain),
    };
    return launch(p, "clv_volume_flat", (grid){ p->f->bands, planes, 1 }, args, CLV_LEN(args));
}

static clv_status flat_tile(const clv_volume_pass *p, size_t l)
{
    const clv_volume_plan *plan = p->plan;
    const clv_volume_taps *y = &plan->along[l][CLV_Y], *x = &plan->along[l][CLV_X];
    const size_t planes = p->slab.high - p->slab.low;
    const clv_arg args[] = {
        clv_arg_buffer(p->pixels.buffer),
        clv_arg_u64(p->pixels.offset),
        clv_arg_u64(p->pixels.stride[0]),
        clv_arg_u64(p->pixels.stride[1]),
        clv_arg_buffer(p->table[CLV_VOLUME_TAPS]),
        whole(y->first),
        whole(y->radius),
        whole(x->first),
        whole(x->radius),
        clv_arg_local(clv_volume_tile_floats(plan) * sizeof(float)),
        clv_arg_buffer(p->buffer[CLV_VOLUME_A]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_C]),
        whole(plan->height),
        whole(plan->width),
        whole(plan->pitch),
        whole(planes),
        clv_arg_f32(plan->pedestal),
        clv_arg_f32(plan->flat->gain),
    };
    const grid g = { (plan->width + TX - 1) / TX * p->f->tile_local, (plan->height + TY - 1) / TY,
                     planes };
    return launch_in_groups(p, "clv_volume_tile", p->f->tile_local, g, args, CLV_LEN(args));
}

/* Enqueues the sums A and C of level l in the items form. The rows summed along x are in the form's own memory: first
 * the rows of g, then those of q. */
static clv_status flat_items(const clv_volume_pass *p, size_t l)
{
    const clv_volume_plan *plan = p->plan;
    const clv_volume_taps *y = &plan->along[l][CLV_Y], *x = &plan->along[l][CLV_X];
    const size_t planes = p->slab.high - p->slab.low;
    const grid g = { plan->width, plan->height, planes };
    const clv_arg across[] = {
        clv_arg_buffer(p->pixels.buffer),
        clv_arg_u64(p->pixels.offset),
        clv_arg_u64(p->pixels.stride[0]),
        clv_arg_u64(p->pixels.stride[1]),
        clv_arg_buffer(p->table[CLV_VOLUME_TAPS]),
        whole(x->first),
        whole(x->radius),
        clv_arg_buffer(p->buffer[CLV_VOLUME_OWN]),
        whole(plan->height),
        whole(plan->width),
        whole(plan->pitch),
        whole(planes),
        clv_arg_f32(plan->pedestal),
        clv_arg_f32(plan->flat->gain),
    };
    const clv_arg down[] = {
        clv_arg_buffer(p->buffer[CLV_VOLUME_OWN]),
        clv_arg_buffer(p->table[CLV_VOLUME_TAPS]),
        whole(y->first),
        whole(y->radius),
        clv_arg_buffer(p->buffer[CLV_VOLUME_A]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_C]),
        whole(plan->height),
        whole(plan->width),
        whole(plan->pitch),
        whole(planes),
    };
    CLV_TRY(launch(p, "clv_volume_across", g, across, CLV_LEN(across)));
    return launch(p, "clv_volume_down", g, down, CLV_LEN(down));
}

static clv_status deep(const clv_volume_pass *p, size_t l)
{
    const clv_volume_plan *plan = p->plan;
    const clv_volume_taps *z = &plan->along[l][CLV_Z];
    const clv_arg args[] = {
        clv_arg_buffer(p->buffer[CLV_VOLUME_A]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_C]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_L]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_G]),
        clv_arg_buffer(p->table[CLV_VOLUME_TAPS]),
        whole(z->first),
        whole(z->radius),
        whole(l),
        whole(p->slab.z0),
        whole(p->slab.z1),
        whole(p->slab.low),
        whole(p->slab.high),
        whole(plan->depth),
        whole(plan->height),
        whole(plan->width),
        whole(plan->pitch),
        clv_arg_f32(plan->leak[l] * plan->pedestal * plan->flat->gain),
        clv_arg_f32(dog_factor(plan)),
    };
    const grid g = p->f->form == CLV_VOLUME_ROWS
                       ? (grid){ plan->height, 1, 1 }
                       : (grid){ plan->width, plan->height, p->slab.z1 - p->slab.z0 + 2 };
    return launch(p, "clv_volume_deep", g, args, CLV_LEN(args));
}

static clv_status look(const clv_volume_pass *p, size_t k)
{
    const clv_volume_plan *plan = p->plan;
    const clv_blob_plan *flat = plan->flat;
    const clv_arg args[] = {
        clv_arg_buffer(p->buffer[CLV_VOLUME_L]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_MAP]),
        clv_arg_buffer(p->table[CLV_VOLUME_FACTOR]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_PEAKS]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_COUNTS]),
        clv_arg_buffer(p->buffer[CLV_VOLUME_BINS]),
        whole(k),
        whole(p->slab.z0),
        whole(p->slab.z1),
        whole(plan->depth),
        whole(plan->height),
        whole(plan->width),
        whole(plan->pitch),
        whole(plan->scales),
        clv_arg_u32((uint32_t)plan->capacity),
        clv_arg_f32(flat->by_noise ? 0 : (float)flat->options.threshold_rel),
        whole(flat->by_noise ? plan->noise_step : 0),
        whole(flat->cells_across),
        whole(flat->cells),
        whole(flat->cell_shift),
        clv_arg_u32((uint32_t)p->number),
    };
    const size_t planes = p->slab.z1 - p->slab.z0;
    const grid g = p->f->form == CLV_VOLUME_ROWS ? (grid){ plan->height, planes, 1 }
                                                 : (grid){ plan->width, plan->height, planes };
    return launch(p, "clv_volume_look", g, args, CLV_LEN(args));
}

clv_status clv_volume_look_at(const clv_volume_pass *p)
{
    const clv_volume_plan *plan = p->plan;
    const size_t dog = plan->flat->options.dog;
    for (size_t l = 0; l < plan->levels; ++l) {
        CLV_TRY(p->f->form == CLV_VOLUME_ROWS   ? flat_rows(p, l)
                : p->f->form == CLV_VOLUME_TILE ? flat_tile(p, l)
                                                : flat_items(p, l));
        CLV_TRY(deep(p, l));
        /* scale l - dog - 1 now has both neighbours */
        if (l >= dog + 1) CLV_TRY(look(p, l - dog - 1));
    }
    return look(p, plan->scales - 1);
}

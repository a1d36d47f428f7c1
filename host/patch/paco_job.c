/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a chunk of PACO on a device: uploads constants, enqueues five launches, reads results. cl/patch/paco.clh
 * describes the layout of the arrays. */
#include "host/patch/paco_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/patch/shared.clh"
#include "runtime/job/tune.h"

#include <stdio.h>
#include <string.h>

/* Buffers of a worker, and of a chunk in flight in addition to its results. */
enum { LAG_SHIFT, LAG_ROW, ENTRY, PIXEL, BASIS_B, BASIS_X, BASIS_F, TURN };
enum {
    CUBE = CLV_PACO_RESULTS,
    DATA,
    LAG_COVARIANCE,
    WEIGHTS,
    QUADRATIC,
    SHRINKAGE,
    HITS,
    SCRATCH
};

clv_paco_chunk clv_paco_chunk_of(const clv_paco_plan *plan, size_t first, size_t count)
{
    const size_t r = plan->radius, units = clv_paco_units(plan), last = first + count;
    clv_paco_chunk c = { .centre0 = plan->margin + first, .centre_rows = count };
    /* the rows beyond the first and the last patch centre belong to the first and the last chunk */
    c.first = first ? c.centre0 : 0;
    c.rows = (last == units ? plan->in.height : plan->margin + last) - c.first;
    c.band0 = CLV_MIN(c.first, c.centre0 - r);
    c.band_rows = CLV_MAX(c.first + c.rows, c.centre0 + count + r) - c.band0;
    clv_paco_map_rows(plan, c.centre0, c.centre_rows, &c.map0, &c.map_rows);
    return c;
}

size_t clv_paco_units(const clv_paco_plan *plan)
{
    return plan->in.height - 2 * plan->margin;
}

enum { PART_ROWS = 8 };

/* Sizes of a chunk's arrays in bytes, and the number of rows that are solved and projected at a time: on CPUs a part of
 * the chunk, elsewhere all. */
typedef struct sizes {
    size_t rows, data, lags, weights, hits, sums, scratch;
} sizes;

static sizes sizes_of(const clv_paco_plan *plan, const clv_paco_chunk *c, const clv_paco_family *f)
{
    const size_t q = plan->basis.vectors, slots = plan->shifted ? 2 : 1, frames = plan->in.frames;
    const size_t weights = plan->pixels * q * f->width * sizeof(float),
                 hits = frames * slots * 2 * f->width * sizeof(float);
    const size_t few = CLV_MAX(plan->part_bytes / (weights + hits), (size_t)PART_ROWS);
    const size_t rows = f->lanes > 1 ? CLV_MIN(few, c->centre_rows) : c->centre_rows;
    const size_t workers = CLV_MIN(f->max_workers, rows * (f->width / f->lanes));
    return (sizes){
        .rows = rows,
        .data = c->band_rows * frames * f->pitch * sizeof(float),
        .lags = c->band_rows * f->lags_padded * f->pitch * sizeof(float),
        .weights = rows * weights,
        .hits = rows * hits,
        .sums = 4 * c->map_rows * f->width * sizeof(int64_t),
        .scratch = clv_paco_scratch_floats(plan, f, workers) * sizeof(float),
    };
}

clv_cost clv_paco_cost(size_t first, size_t count, void *user)
{
    const clv_paco_plan *plan = user;
    const clv_paco_chunk c = clv_paco_chunk_of(plan, first, count);
    const double t = (double)plan->in.frames, p = (double)plan->pixels,
                 q = (double)plan->basis.vectors;
    const double band = (double)(c.band_rows * plan->in.width),
                 patches = (double)(c.centre_rows * plan->in.width);
    const double terms = (double)(plan->basis.terms_a + plan->basis.terms_b);
    const clv_paco_family wide = { .lanes = 1,
                                   .max_workers = clv_paco_item_workers(plan),
                                   .pitch = plan->in.width + 96,
                                   .width = plan->in.width + 64,
                                   .lags_padded = plan->lags + 16 };
    const sizes s = sizes_of(plan, &c, &wide);
    clv_cost cost = {
        .flops = band * t * (2 * (double)plan->lags + 4) +
                 patches * (p * p * p / 3 + 4 * p * p * q + p * q * q +
                            2 * t * (p * q + q * (double)plan->basis.terms_b + 2 * terms)),
        .traffic_bytes = (double)(3 * s.data + 2 * s.lags + 2 * s.weights + 2 * s.hits + s.sums),
        .transfer_bytes = band * t * sizeof(float) + (double)s.sums,
        .memory_bytes = s.data * 2 + s.lags + s.weights + s.hits + 2 * s.sums + s.scratch,
        .buffer_bytes =
            CLV_MAX(CLV_MAX(CLV_MAX(s.data, s.lags), CLV_MAX(s.weights, s.hits)), s.scratch),
    };
    /* kernels index `hits` with 32 bits */
    if (s.hits / 8 > INT32_MAX) cost.buffer_bytes = cost.memory_bytes = UINT64_MAX;
    return cost;
}

static clv_status upload(clv_worker *worker, unsigned key, const void *data, size_t bytes)
{
    clv_buffer *buffer;
    CLV_TRY(clv_worker_buffer(worker, key, bytes, &buffer));
    return clv_write(clv_worker_queue(worker), buffer, 0, data, bytes);
}

/* Uploads the tables. Offsets are in elements within D and V and depend on the family's pitch. */
static clv_status upload_tables(clv_worker *worker, const clv_paco_plan *plan,
                                const clv_paco_family *f)
{
    const size_t entries =
        f->in_groups ? plan->pixels * plan->pixels : plan->pixels * (plan->pixels + 1) / 2;
    const int32_t plane = (int32_t)(plan->in.frames * f->pitch);
    int32_t *shift = clv_alloc(f->lags_padded, sizeof *shift),
            *entry = clv_alloc(entries, sizeof *entry);
    int32_t pixel[CLV_PACO_MAX_PIXELS];
    uint8_t *row = clv_alloc(f->lags_padded, 1);
    clv_status status = CLV_OK;
    if (!shift || !entry || !row) {
        status = clv_fail(CLV_E_MEMORY, "paco: not enough memory for tables");
        goto cleanup;
    }
    for (size_t k = 0; k < f->lags_padded; ++k) {
        /* the last block is filled up with a repeated lag */
        const clv_offset lag = plan->lag[CLV_MIN(k, plan->lags - 1)];
        shift[k] = lag.dy * plane + lag.dx;
        row[k] = (uint8_t)lag.dy;
    }
    for (size_t i = 0, e = 0; i < plan->pixels; ++i) {
        pixel[i] = plan->offset[i].dy * plane + plan->offset[i].dx;
        for (size_t j = 0; j <= i; ++j, ++e) {
            const size_t band_row = (size_t)(plan->offset[j].dy + (int)plan->radius);
            const int32_t at =
                (int32_t)((band_row * f->lags_padded + plan->entry_lag[e]) * f->pitch) +
                plan->offset[j].dx;
            if (!f->in_groups)
                entry[e] = at;
            else
                entry[j * plan->pixels + i] = entry[i * plan->pixels + j] = at; /* whole rows */
        }
    }
    status = upload(worker, LAG_SHIFT, shift, f->lags_padded * sizeof *shift);
    if (!status) status = upload(worker, LAG_ROW, row, f->lags_padded);
    if (!status) status = upload(worker, ENTRY, entry, entries * sizeof *entry);
    if (!status) status = upload(worker, PIXEL, pixel, plan->pixels * sizeof *pixel);
cleanup:
    clv_free(shift), clv_free(entry), clv_free(row);
    return status;
}

static clv_status upload_constants(clv_worker *worker, const clv_paco_plan *plan,
                                   const clv_paco_family *f)
{
    const clv_psf_basis *b = &plan->basis;
    const size_t pairs = b->vectors * (b->vectors + 1) / 2;
    CLV_TRY(upload_tables(worker, plan, f));
    CLV_TRY(upload(worker, BASIS_B, b->B, plan->pixels * b->vectors * sizeof *b->B));
    CLV_TRY(upload(worker, BASIS_X, b->X, b->terms_b * b->vectors * sizeof *b->X));
    CLV_TRY(upload(worker, BASIS_F, b->F, pairs * b->terms_a * sizeof *b->F));
    return upload(worker, TURN, plan->turn, plan->in.frames * sizeof *plan->turn);
}

/* What the launches of one chunk share. */
typedef struct pass {
    const clv_paco_plan *plan;
    const clv_paco_family *f;
    const clv_paco_chunk *c;
    clv_slot *slot;
} pass;

static clv_buffer *constant(const pass *p, unsigned key)
{
    clv_buffer *buffer = NULL;
    /* the buffer has existed since setup */
    (void)clv_worker_buffer(clv_slot_worker(p->slot), key, 0, &buffer);
    return buffer;
}

static clv_status launch(const pass *p, clv_paco_kernel kernel, size_t x, size_t y, size_t z,
                         const clv_arg *args, size_t count)
{
    const size_t local = p->f->local;
    clv_launch l = clv_paco_describe(p->plan, p->f, kernel);
    l.global[0] = clv_round_up(x, local), l.global[1] = y, l.global[2] = z;
    l.local[0] = local, l.local[1] = l.local[2] = 1;
    return clv_launch_enqueue(clv_slot_queue(p->slot), &l, args, count, NULL);
}

static clv_arg u32(size_t value)
{
    return clv_arg_u32((uint32_t)value);
}

static clv_status centre(const pass *p, const clv_place *cube, clv_buffer *data, clv_buffer *state)
{
    const clv_arg args[] = {
        clv_arg_buffer(cube->buffer), clv_arg_u64(cube->offset),
        clv_arg_u64(cube->stride[0]), clv_arg_u64(cube->stride[1]),
        clv_arg_buffer(data),         clv_arg_buffer(state),
        u32(p->c->band_rows),         u32(p->plan->in.frames),
        u32(p->plan->in.width),       u32(p->f->pitch),
        clv_arg_f32(p->plan->scale),  clv_arg_buffer(constant(p, TURN)),
    };
    return launch(p, CLV_PACO_CENTRE, p->f->pitch / p->f->lanes, p->c->band_rows, 0, args,
                  CLV_LEN(args));
}

static clv_status lag_covariance(const pass *p, clv_buffer *data, clv_buffer *lags)
{
    const size_t frames = p->plan->in.frames, block = p->f->lag_block;
    const float weight = (p->plan->vip ? 0.5f : 1.0f) / (float)frames;
    const size_t blocks =
        (size_t)CLV_MIN(p->f->max_turns / (frames + 1), p->f->lags_padded / block);
    const size_t step = CLV_MAX(blocks, (size_t)1) * block;
    for (size_t lag = 0; lag < p->f->lags_padded; lag += step) {
        const clv_arg args[] = {
            clv_arg_buffer(data),
            clv_arg_buffer(lags),
            clv_arg_buffer(constant(p, LAG_SHIFT)),
            clv_arg_buffer(constant(p, LAG_ROW)),
            u32(p->c->band_rows),
            u32(frames),
            u32(p->f->pitch),
            clv_arg_f32(weight),
            u32(lag),
            u32(CLV_MIN(lag + step, p->f->lags_padded)),
        };
        CLV_TRY(launch(p, CLV_PACO_LAG_COVARIANCE, p->f->pitch / p->f->lanes, p->c->band_rows, 0,
                       args, CLV_LEN(args)));
    }
    return CLV_OK;
}

static clv_status solve_in_rows(const pass *p, clv_buffer *lags, clv_buffer *weights,
                                clv_buffer *quadratic, clv_buffer *shrinkage)
{
    const size_t tiles = p->f->width / p->f->lanes;
    const size_t workers =
        clv_round_up(CLV_MIN(p->f->max_workers, p->c->centre_rows * tiles), p->f->local);
    clv_buffer *scratch;
    CLV_TRY(clv_slot_buffer(p->slot, SCRATCH,
                            clv_paco_scratch_floats(p->plan, p->f, workers) * sizeof(float),
                            &scratch));
    const clv_arg args[] = {
        clv_arg_buffer(lags),
        clv_arg_buffer(weights),
        clv_arg_buffer(quadratic),
        clv_arg_buffer(shrinkage),
        clv_arg_buffer(constant(p, ENTRY)),
        clv_arg_buffer(constant(p, BASIS_B)),
        clv_arg_buffer(constant(p, BASIS_F)),
        clv_arg_buffer(scratch),
        u32(p->c->centre_rows),
        u32(p->c->centre0 - p->plan->radius - p->c->band0),
        u32(tiles),
        u32(p->f->pitch),
        u32(p->f->lags_padded),
        clv_arg_f32((float)p->plan->in.frames),
        u32(p->plan->vip),
        u32(workers),
        clv_arg_f32((float)(p->plan->centre_y - (double)p->c->centre0)),
        clv_arg_f32((float)p->plan->centre_x),
        clv_arg_f32((float)p->plan->reach),
    };
    return launch(p, CLV_PACO_SOLVE_ROWS, workers, 0, 0, args,
                  CLV_LEN(args) - (p->f->lanes > 1 ? 0 : CLV_PACO_REACH_ARGS));
}

static clv_status solve_in_groups(const pass *p, clv_buffer *lags, clv_buffer *weights,
                                  clv_buffer *quadratic, clv_buffer *shrinkage)
{
    const clv_arg args[] = {
        clv_arg_buffer(lags),
        clv_arg_buffer(weights),
        clv_arg_buffer(quadratic),
        clv_arg_buffer(shrinkage),
        clv_arg_buffer(constant(p, ENTRY)),
        clv_arg_buffer(constant(p, BASIS_B)),
        clv_arg_buffer(constant(p, BASIS_F)),
        u32(p->c->centre0 - p->plan->radius - p->c->band0),
        u32(p->f->pitch),
        u32(p->f->lags_padded),
        clv_arg_f32((float)p->plan->in.frames),
        u32(p->plan->vip),
        clv_arg_local(clv_paco_local_floats(p->plan, p->f) * sizeof(float)),
    };
    clv_launch l = clv_paco_describe(p->plan, p->f, CLV_PACO_SOLVE_GROUP);
    l.local[0] = 2 * p->f->side * p->f->teams, l.local[1] = 1;
    l.global[0] = p->f->width / p->f->teams * l.local[0], l.global[1] = p->c->centre_rows;
    return clv_launch_enqueue(clv_slot_queue(p->slot), &l, args, CLV_LEN(args), NULL);
}

static clv_status project_in_groups(const pass *p, clv_buffer *data, clv_buffer *weights,
                                    clv_buffer *quadratic, clv_buffer *hits)
{
    const clv_arg args[] = {
        clv_arg_buffer(data),
        clv_arg_buffer(weights),
        clv_arg_buffer(quadratic),
        clv_arg_buffer(hits),
        clv_arg_buffer(constant(p, PIXEL)),
        clv_arg_buffer(constant(p, BASIS_X)),
        clv_arg_buffer(constant(p, TURN)),
        u32(p->c->centre_rows),
        u32(p->c->centre0 - p->c->band0),
        u32(p->c->centre0),
        u32(p->plan->in.frames),
        u32(p->f->pitch),
        clv_arg_local(clv_paco_project_floats(p->plan, p->f) * sizeof(float)),
    };
    clv_launch l = clv_paco_describe(p->plan, p->f, CLV_PACO_PROJECT_GROUPS);
    l.local[0] = CLV_PACO_PROJECT_GROUP, l.local[1] = 1;
    l.global[0] = p->f->width / p->f->project_patches * l.local[0];
    l.global[1] = p->c->centre_rows;
    return clv_launch_enqueue(clv_slot_queue(p->slot), &l, args, CLV_LEN(args), NULL);
}

static clv_status project(const pass *p, clv_buffer *data, clv_buffer *weights,
                          clv_buffer *quadratic, clv_buffer *hits)
{
    const size_t frames = p->plan->in.frames, block = p->f->frame_block;
    const size_t blocks =
        (size_t)CLV_MIN(p->f->max_turns / (p->plan->pixels + 1), frames / block + 1);
    const size_t step = CLV_MAX(blocks, (size_t)1) * block, item = CLV_MIN(p->f->item_frames, step);
    for (size_t from = 0; from < frames; from += step) {
        const size_t to = CLV_MIN(from + step, frames);
        const clv_arg args[] = {
            clv_arg_buffer(data),
            clv_arg_buffer(weights),
            clv_arg_buffer(quadratic),
            clv_arg_buffer(hits),
            clv_arg_buffer(constant(p, PIXEL)),
            clv_arg_buffer(constant(p, BASIS_X)),
            clv_arg_buffer(constant(p, TURN)),
            u32(p->c->centre_rows),
            u32(p->c->centre0 - p->c->band0),
            u32(p->c->centre0),
            u32(frames),
            u32(p->f->pitch),
            u32(from),
            u32(to),
            u32(item),
        };
        CLV_TRY(launch(p, CLV_PACO_PROJECT, p->f->width / p->f->lanes, p->c->centre_rows,
                       (to - from + item - 1) / item, args, CLV_LEN(args)));
    }
    return CLV_OK;
}

/* Adds the hits to the sums. `add`: keeps the sums that earlier launches for other rows of the chunk have written. */
static clv_status accumulate(const pass *p, clv_buffer *hits, clv_buffer *sums, clv_buffer *found,
                             bool add)
{
    const size_t frames = p->plan->in.frames;
    const size_t step =
        (size_t)CLV_MAX(CLV_MIN(p->f->max_turns / (p->f->map_rows + 1), frames), (uint64_t)1);
    for (size_t from = 0; from < frames; from += step) {
        const clv_arg args[] = {
            clv_arg_buffer(hits),
            clv_arg_buffer(sums),
            clv_arg_buffer(found),
            clv_arg_buffer(constant(p, TURN)),
            u32(p->c->centre_rows),
            u32(p->c->centre0),
            u32(frames),
            u32(from),
            u32(CLV_MIN(from + step, frames)),
            u32(p->plan->in.width),
            u32(p->f->pitch),
            u32(p->plan->margin),
            u32(p->c->map0),
            u32(p->c->map_rows),
            u32(p->f->width),
            u32(add || from),
        };
        CLV_TRY(launch(p, CLV_PACO_ACCUMULATE, p->f->width / p->f->lanes,
                       (p->c->map_rows + p->f->map_rows - 1) / p->f->map_rows, 0, args,
                       CLV_LEN(args)));
    }
    return CLV_OK;
}

clv_status clv_paco_enqueue_rows(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_paco_plan *plan = user;
    const clv_paco_input *in = &plan->in;
    const clv_paco_family f = clv_paco_family_for(plan, clv_slot_worker(slot));
    const clv_paco_chunk c = clv_paco_chunk_of(plan, first, count);
    const sizes s = sizes_of(plan, &c, &f);
    const pass p = { plan, &f, &c, slot };
    const clv_box box = { .host = in->cube + c.band0 * in->row_stride,
                          .element_bytes = sizeof(float),
                          .extent = { in->frames, c.band_rows, in->width },
                          .stride = { in->frame_stride, in->row_stride, 1 } };
    clv_place cube;
    clv_buffer *data, *state, *lags, *weights, *quadratic, *shrinkage, *hits, *sums, *found;
    CLV_TRY(clv_paco_note_layout(plan, slot));
    CLV_TRY(clv_slot_input(slot, CUBE, &box, &cube));
    CLV_TRY(clv_slot_buffer(slot, DATA, s.data, &data));
    CLV_TRY(clv_slot_output(slot, CLV_PACO_STATE, c.band_rows * f.pitch, &state));
    CLV_TRY(centre(&p, &cube, data, state));
    if (!c.map_rows) return CLV_OK;
    CLV_TRY(clv_slot_buffer(slot, LAG_COVARIANCE, s.lags, &lags));
    CLV_TRY(clv_slot_buffer(slot, WEIGHTS, s.weights, &weights));
    CLV_TRY(clv_slot_buffer(slot, QUADRATIC, s.rows * plan->basis.terms_a * f.width * sizeof(float),
                            &quadratic));
    CLV_TRY(clv_slot_buffer(slot, SHRINKAGE, s.rows * f.width * sizeof(float), &shrinkage));
    CLV_TRY(clv_slot_buffer(slot, HITS, s.hits, &hits));
    CLV_TRY(clv_slot_output(slot, CLV_PACO_SUMS, s.sums, &sums));
    CLV_TRY(clv_slot_output(slot, CLV_PACO_FOUND, c.map_rows * f.width * sizeof(uint32_t), &found));
    CLV_TRY(lag_covariance(&p, data, lags));
    for (size_t row = 0; row < c.centre_rows; row += s.rows) {
        clv_paco_chunk some = c;
        some.centre0 += row, some.centre_rows = CLV_MIN(s.rows, c.centre_rows - row);
        const pass now = { plan, &f, &some, slot };
        CLV_TRY(
            (f.teams ? solve_in_groups : solve_in_rows)(&now, lags, weights, quadratic, shrinkage));
        CLV_TRY((f.in_groups ? project_in_groups : project)(&now, data, weights, quadratic, hits));
        CLV_TRY(accumulate(&now, hits, sums, found, row > 0));
    }
    return CLV_OK;
}

/* Returns whether the device's limits allow the work-groups, for kernels that never leave loops early. */
static bool fits(const clv_paco_family *f)
{
    return f->teams && f->project_patches && f->max_turns == UINT64_MAX;
}

/* Runs a variant on the first rows of the problem, with its real data and sizes, to measure the variant's time. */
static clv_status try_variant(clv_slot *slot, void *user)
{
    const clv_paco_plan *plan = user;
    clv_worker *worker = clv_slot_worker(slot);
    const clv_paco_family f = clv_paco_family_for(plan, worker);
    /* a few work-groups per compute unit of a GPU */
    const clv_probe_device *facts = clv_device_facts(clv_worker_device(worker));
    const size_t filling =
        facts->device_class == CLV_CLASS_DISCRETE_GPU ? 128 * (size_t)facts->compute_units : 256;
    const size_t patches = CLV_MAX(4096 * 100 / plan->in.frames, filling);
    const size_t rows = CLV_MAX(patches / plan->in.width, (size_t)1);
    if (f.in_groups && !fits(&f))
        return clv_fail(CLV_E_DEVICE,
                        "paco: a work-group with this patch exceeds the device's limits");
    CLV_TRY(upload_constants(worker, plan, &f));
    return clv_paco_enqueue_rows(slot, 0, CLV_MIN(rows, clv_paco_units(plan)), user);
}

clv_status clv_paco_setup(clv_worker *worker, void *user)
{
    const clv_paco_plan *plan = user;
    char problem[64];
    snprintf(problem, sizeof problem, "P%zu Q%zu", plan->pixels, plan->basis.vectors);
    const clv_device *device = clv_worker_device(worker);
    const char *const *names = clv_paco_variants(device);
    size_t usual;
    if (clv_paco_usual(device, &usual))
        clv_tune_unmeasured(worker, "paco", problem, names, usual);
    else
        clv_tune(worker, "paco", problem, names, try_variant, user);
    const clv_paco_family f = clv_paco_family_for(plan, worker);
    /* declared for a smaller patch; the other kernels use no local memory */
    if (f.in_groups && !fits(&f)) clv_worker_use_variant(worker, 1);
    const clv_paco_family fitting = clv_paco_family_for(plan, worker);
    return upload_constants(worker, plan, &fitting);
}

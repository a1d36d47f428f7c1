/* SPDX-License-Identifier: Apache-2.0 */
/* Runs slabs of a stack on a device: uploads tables, allocates buffers, enqueues launches, reads results. */
#include "host/blob/volume_family.h"
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/results.h"
#include "runtime/job/tune.h"

#include <stdio.h>
#include <string.h>

clv_cost clv_volume_cost(size_t first, size_t count, void *user)
{
    (void)first;
    const clv_volume_plan *plan = user;
    const clv_volume_family most = { .own_floats = clv_volume_own_estimate(plan) };
    const size_t reach = 2 * plan->reach[CLV_Z] + 2, plane = plan->height * plan->width;
    const size_t pixels = (count * plan->slab + reach) * plane * plan->flat->pixel_bytes,
                 list = plan->capacity * sizeof(clv_volume_peak);
    double operations = 0;
    for (size_t l = 0; l < plan->levels; ++l)
        for (int a = 0; a < CLV_AXES; ++a)
            operations += (plan->flat->options.dog ? 3 : 8) * (double)plan->along[l][a].radius + 8;
    size_t scratch = 0, largest = pixels;
    for (int b = CLV_VOLUME_A; b < CLV_VOLUME_BUFFERS; ++b) {
        const size_t bytes = clv_volume_floats(plan, &most, b) * sizeof(float);
        scratch += bytes, largest = CLV_MAX(largest, bytes);
    }
    const double voxels = (double)(count * plan->slab) * (double)plane;
    return (clv_cost){ .flops = voxels * operations,
                       .traffic_bytes = voxels * 36 * (double)plan->levels,
                       .transfer_bytes = (double)(pixels + count * list),
                       .memory_bytes = pixels + count * list + scratch,
                       .buffer_bytes = largest };
}

static clv_status upload(clv_worker *worker, unsigned key, const void *data, size_t bytes)
{
    clv_buffer *buffer;
    CLV_TRY(clv_worker_buffer(worker, key, bytes, &buffer));
    return clv_write(clv_worker_queue(worker), buffer, 0, data, bytes);
}

static clv_status upload_constants(clv_worker *worker, const clv_volume_plan *plan)
{
    CLV_TRY(upload(worker, CLV_VOLUME_TAPS, plan->tap_f32, plan->taps * 2 * sizeof(float)));
    return upload(worker, CLV_VOLUME_FACTOR, plan->factor, plan->scales * sizeof *plan->factor);
}

/* Returns the slab that unites the slabs [first, first + count) and the planes that their responses require. */
static clv_volume_slab all_of(const clv_volume_plan *plan, size_t first, size_t count)
{
    const clv_volume_slab a = clv_volume_slab_of(plan, first),
                          b = clv_volume_slab_of(plan, first + count - 1);
    return (clv_volume_slab){ a.z0, b.z1, a.low, b.high };
}

static clv_status make_buffers(clv_volume_pass *p, clv_slot *slot, size_t first, size_t count)
{
    const clv_volume_plan *plan = p->plan;
    const clv_blob_plan *flat = plan->flat;
    const clv_blob_frames *s = &flat->shape;
    const clv_volume_slab all = all_of(plan, first, count);
    const clv_box box = { .host = (const char *)plan->voxels +
                                  all.low * s->frame_stride * flat->pixel_bytes,
                          .element_bytes = flat->pixel_bytes,
                          .extent = { all.high - all.low, s->height, s->width },
                          .stride = { s->frame_stride, s->row_stride, 1 } };
    clv_worker *worker = clv_slot_worker(slot);
    for (unsigned key = 0; key < CLV_VOLUME_TABLES; ++key) /* the tables have existed since setup */
        CLV_TRY(clv_worker_buffer(worker, key, 0, &p->table[key]));
    CLV_TRY(clv_slot_input(slot, CLV_VOLUME_PIXELS, &box, &p->pixels));
    const size_t map = plan->depth * flat->cells * sizeof *flat->map;
    CLV_TRY(clv_slot_buffer(slot, CLV_VOLUME_MAP, map, &p->buffer[CLV_VOLUME_MAP]));
    CLV_TRY(clv_write_enqueue(p->queue, p->buffer[CLV_VOLUME_MAP], 0, flat->map, map, NULL));
    for (int b = CLV_VOLUME_A; b < CLV_VOLUME_BUFFERS; ++b)
        CLV_TRY(clv_slot_buffer(slot, (unsigned)b, clv_volume_floats(plan, p->f, b) * sizeof(float),
                                &p->buffer[b]));
    const size_t counts = count * 2 * sizeof(uint32_t),
                 bins = plan->scales * CLV_BLOB_NOISE_BINS * sizeof(uint32_t);
    CLV_TRY(clv_slot_output(slot, CLV_VOLUME_COUNTS, counts, &p->buffer[CLV_VOLUME_COUNTS]));
    CLV_TRY(clv_fill_enqueue(p->queue, p->buffer[CLV_VOLUME_COUNTS], 0, counts, 0, NULL));
    CLV_TRY(clv_slot_output(slot, CLV_VOLUME_PEAKS,
                            count * plan->capacity * sizeof(clv_volume_peak),
                            &p->buffer[CLV_VOLUME_PEAKS]));
    CLV_TRY(clv_slot_output(slot, CLV_VOLUME_BINS, bins, &p->buffer[CLV_VOLUME_BINS]));
    return clv_fill_enqueue(p->queue, p->buffer[CLV_VOLUME_BINS], 0, bins, 0, NULL);
}

clv_status clv_volume_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_volume_plan *plan = user;
    const size_t planes = CLV_MIN(plan->slab + 2 + 2 * plan->reach[CLV_Z], plan->depth);
    const clv_volume_family f = clv_volume_family_for(plan, clv_slot_worker(slot), planes);
    clv_volume_pass p = { .plan = plan, .f = &f, .queue = clv_slot_queue(slot) };
    CLV_TRY(make_buffers(&p, slot, first, count));
    const size_t begin = p.pixels.offset, low = clv_volume_slab_of(plan, first).low;
    /* the slabs use the same memory one after the other */
    for (p.number = 0; p.number < count; ++p.number) {
        p.slab = clv_volume_slab_of(plan, first + p.number);
        p.pixels.offset = begin + (p.slab.low - low) * p.pixels.stride[0];
        CLV_TRY(clv_volume_look_at(&p));
    }
    return CLV_OK;
}

/* Runs a form on the first slab of the stack, to measure its time. */
static clv_status try_variant(clv_slot *slot, void *user)
{
    const clv_volume_plan *plan = user;
    clv_worker *worker = clv_slot_worker(slot);
    const clv_volume_family f = clv_volume_family_for(plan, worker, 1);
    const clv_device *device = clv_worker_device(worker);
    if (strcmp(clv_volume_variants(device)[clv_worker_variant(worker)], "tile") == 0 &&
        f.form != CLV_VOLUME_TILE)
        return clv_fail(CLV_E_DEVICE,
                        "volumes: the tile does not fit into the device's local memory");
    CLV_TRY(upload_constants(worker, plan));
    return clv_volume_enqueue(slot, 0, 1, user);
}

void clv_volume_problem(const clv_volume_plan *plan, char text[CLV_VOLUME_PROBLEM])
{
    snprintf(text, CLV_VOLUME_PROBLEM, "%s%zu R%zu Z%zu", plan->flat->options.dog ? "dog" : "log",
             plan->scales, plan->reach[CLV_X], plan->reach[CLV_Z]);
}

clv_status clv_volume_setup(clv_worker *worker, void *user)
{
    const clv_volume_plan *plan = user;
    char problem[CLV_VOLUME_PROBLEM];
    clv_volume_problem(plan, problem);
    clv_tune(worker, "volumes", problem, clv_volume_variants(clv_worker_device(worker)),
             try_variant, user);
    return upload_constants(worker, plan);
}

clv_status clv_volume_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)first;
    clv_volume_plan *plan = user;
    const size_t bin_count = plan->scales * CLV_BLOB_NOISE_BINS;
    const uint32_t *counts, *bins;
    const clv_volume_peak *peaks;
    CLV_TRY(clv_slot_take(slot, CLV_VOLUME_COUNTS, count * 2 * sizeof *counts, &counts));
    CLV_TRY(clv_slot_take(slot, CLV_VOLUME_BINS, bin_count * sizeof *bins, &bins));
    CLV_TRY(clv_slot_take(slot, CLV_VOLUME_PEAKS, count * plan->capacity * sizeof *peaks, &peaks));
    for (size_t i = 0; i < count; ++i) {
        const size_t found = counts[2 * i], kept = CLV_MIN(found, plan->capacity);
        float largest;
        memcpy(&largest, &counts[2 * i + 1], sizeof largest);
        if (!clv_reserve(&plan->peaks, &plan->room, plan->count + kept, sizeof *plan->peaks))
            return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for %zu maxima",
                            plan->count + kept);
        if (kept)
            memcpy(plan->peaks + plan->count, peaks + i * plan->capacity, kept * sizeof *peaks);
        plan->count += kept;
        plan->most = CLV_MAX(plan->most, found);
        if (largest > plan->max_response) plan->max_response = largest;
    }
    for (size_t i = 0; i < bin_count; ++i)
        plan->bins[i] += bins[i];
    return CLV_OK;
}

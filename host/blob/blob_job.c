/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a chunk of frames on a device: tables, launches, results. cl/blob/blob.clh describes the layout of the
 * arrays. */
#include "host/blob/blob_family.h"

#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/results.h"
#include "cl_embedded.h"
#include "runtime/job/tune.h"

#include <stdio.h>
#include <string.h>

/* Buffers of a chunk in flight in addition to its results. */
enum { PIXELS = CLV_BLOB_RESULTS, PEDESTAL, MAP, SCRATCH };

clv_cost clv_blob_cost(size_t first, size_t count, void *user)
{
    (void)first;
    const clv_blob_plan *plan = user;
    const double pixels = (double)plan->shape.height * (double)plan->shape.width;
    double operations = 0;
    for (size_t l = 0; l < plan->levels; ++l)
        operations += (plan->options.dog ? 4 : 10) * (double)plan->radius[l] + 8;
    const size_t bytes = plan->shape.height * plan->shape.width * plan->pixel_bytes;
    const size_t list = plan->capacity * sizeof(clv_blob_peak);
    const size_t scratch = clv_blob_scratch_estimate(plan);
    const double n = (double)count;
    return (clv_cost){
        .flops = n * pixels * operations,
        .traffic_bytes = n * pixels * ((double)plan->pixel_bytes + 4 * (double)plan->levels),
        .transfer_bytes = n * ((double)bytes + (double)list),
        .memory_bytes = count * (bytes + list + CLV_BLOB_NOISE_BINS * 4 * plan->scales) + scratch,
        .buffer_bytes = CLV_MAX(CLV_MAX(count * bytes, count * list), scratch),
    };
}

static clv_status upload(clv_worker *worker, unsigned key, const void *data, size_t bytes)
{
    clv_buffer *buffer;
    CLV_TRY(clv_worker_buffer(worker, key, bytes, &buffer));
    return clv_write(clv_worker_queue(worker), buffer, 0, data, bytes);
}

static clv_status upload_constants(clv_worker *worker, const clv_blob_plan *plan)
{
    int32_t level[2 * CLV_BLOB_MAX_LEVELS];
    for (size_t l = 0; l < plan->levels; ++l)
        level[2 * l] = (int32_t)plan->radius[l], level[2 * l + 1] = (int32_t)plan->first_tap[l];
    CLV_TRY(upload(worker, CLV_BLOB_TAPS, plan->tap_f32, plan->taps * 2 * sizeof(float)));
    CLV_TRY(upload(worker, CLV_BLOB_LEVEL, level, plan->levels * 2 * sizeof *level));
    CLV_TRY(upload(worker, CLV_BLOB_LEAK, plan->leak, plan->levels * sizeof *plan->leak));
    CLV_TRY(upload(worker, CLV_BLOB_FACTOR, plan->factor, plan->scales * sizeof *plan->factor));
    if (!plan->waves.used) return CLV_OK;
    const clv_blob_waves *w = &plan->waves;
    for (unsigned axis = 0; axis < 2; ++axis) {
        const size_t n = w->along[axis].length;
        CLV_TRY(
            upload(worker, CLV_BLOB_WAVES_Y + axis, w->along[axis].waves, n * 2 * sizeof(float)));
        CLV_TRY(upload(worker, CLV_BLOB_QUARTERS_Y + axis, w->along[axis].quarters,
                       (n / 2 + 1) * 2 * sizeof(float)));
    }
    return upload(worker, CLV_BLOB_FILTERS, w->filters, w->filter_floats * sizeof *w->filters);
}

/* Launches groups of frames one after the other. All groups use the same scratch memory, which therefore stays in the
 * cache. */
static clv_status in_groups(const clv_blob_pass *p, size_t count,
                            clv_status (*launch)(const clv_blob_pass *, size_t, size_t))
{
    for (size_t at = 0; at < count; at += p->f->group)
        CLV_TRY(launch(p, at, CLV_MIN(p->f->group, count - at)));
    return CLV_OK;
}

/* Returns the number of frames that a chunk's buffers hold. For small frames it is the same for every chunk, so that
 * the buffer pool can serve a camera's next push however the push is split. */
static size_t room_of(const clv_blob_plan *plan, clv_device *device, size_t count)
{
    enum { MOST_FRAMES = 32 };
    const uint64_t most_bytes = 8 << 20;
    if (clv_device_memory(device).budget_bytes < 8 * most_bytes) return count;
    const size_t each = plan->shape.height * plan->shape.width * plan->pixel_bytes +
                        plan->capacity * sizeof(clv_blob_peak) +
                        plan->scales * CLV_BLOB_NOISE_BINS * sizeof(uint32_t);
    const size_t fits = CLV_MIN((size_t)(most_bytes / each), (size_t)MOST_FRAMES);
    return CLV_MAX(CLV_MIN(fits, plan->shape.frames), count);
}

/* Allocates buffers for any chunk of up to `room` frames. */
static clv_status make_room(clv_slot *slot, const clv_blob_plan *plan, size_t room)
{
    const clv_worker *worker = clv_slot_worker(slot);
    const size_t bins = clv_blob_bins(plan, room) * sizeof(uint32_t);
    const size_t wanted[][2] = {
        { PEDESTAL, room * sizeof(float) },
        { CLV_BLOB_COUNTS, room * 2 * sizeof(uint32_t) },
        { CLV_BLOB_PEAKS, room * plan->capacity * sizeof(clv_blob_peak) },
        { MAP, room * plan->cells * sizeof(float) },
        { CLV_BLOB_BINS, bins },
        { PIXELS,
          clv_device_facts(clv_worker_device(worker))->device_class == CLV_CLASS_DISCRETE_GPU
              ? room * plan->shape.height * plan->shape.width * plan->pixel_bytes
              : 0 }
    };
    clv_buffer *buffer;
    for (size_t i = 0; i < CLV_LEN(wanted); ++i)
        if (wanted[i][1])
            CLV_TRY(clv_slot_buffer(slot, (unsigned)wanted[i][0], wanted[i][1], &buffer));
    size_t floats = 1;
    for (size_t n = 1; n <= room && n <= 32; ++n)
        floats = CLV_MAX(floats, clv_blob_family_for(plan, worker, n).scratch_floats);
    floats = CLV_MAX(floats, clv_blob_family_for(plan, worker, room).scratch_floats);
    return clv_slot_buffer(slot, SCRATCH, floats * sizeof(float), &buffer);
}

static clv_status make_buffers(clv_blob_pass *p, clv_slot *slot, size_t first, size_t count)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_frames *s = &plan->shape;
    const size_t frame = plan->base + first;
    const clv_box box = { .host = (const char *)plan->pixels +
                                  frame * s->frame_stride * plan->pixel_bytes,
                          .element_bytes = plan->pixel_bytes,
                          .extent = { count, s->height, s->width },
                          .stride = { s->frame_stride, s->row_stride, 1 } };
    const unsigned tables = plan->waves.used ? CLV_BLOB_TABLES : CLV_BLOB_WAVES_Y;
    for (unsigned key = 0; key < tables; ++key) /* the tables have existed since setup */
        CLV_TRY(clv_worker_buffer(clv_slot_worker(slot), key, 0, &p->table[key]));
    clv_device *device = clv_worker_device(clv_slot_worker(slot));
    CLV_TRY(make_room(slot, plan, room_of(plan, device, count)));
    CLV_TRY(clv_slot_input(slot, PIXELS, &box, &p->pixels));
    CLV_TRY(clv_slot_buffer(slot, PEDESTAL, count * sizeof(float), &p->pedestal));
    CLV_TRY(clv_write_enqueue(p->queue, p->pedestal, 0, plan->pedestal + frame,
                              count * sizeof(float), NULL));
    CLV_TRY(clv_slot_output(slot, CLV_BLOB_COUNTS, count * 2 * sizeof(uint32_t), &p->counts));
    CLV_TRY(clv_write_enqueue(p->queue, p->counts, 0, plan->seed + 2 * frame,
                              count * 2 * sizeof(uint32_t), NULL));
    CLV_TRY(clv_slot_output(slot, CLV_BLOB_PEAKS, count * plan->capacity * sizeof(clv_blob_peak),
                            &p->peaks));
    CLV_TRY(clv_slot_buffer(slot, SCRATCH, p->f->scratch_floats * sizeof(float), &p->scratch));
    CLV_TRY(clv_slot_buffer(slot, MAP, count * plan->cells * sizeof(float), &p->map));
    CLV_TRY(clv_write_enqueue(p->queue, p->map, 0, plan->map + frame * plan->cells,
                              count * plan->cells * sizeof(float), NULL));
    const size_t bytes = clv_blob_bins(plan, count) * sizeof(uint32_t);
    CLV_TRY(clv_slot_output(slot, CLV_BLOB_BINS, bytes, &p->bins));
    return clv_fill_enqueue(p->queue, p->bins, 0, bytes, 0, NULL);
}

clv_status clv_blob_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_blob_plan *plan = user;
    const clv_blob_family f = clv_blob_family_for(plan, clv_slot_worker(slot), count);
    clv_blob_pass p = { .plan = plan, .f = &f, .queue = clv_slot_queue(slot) };
    CLV_TRY(make_buffers(&p, slot, first, count));
    if (f.form == CLV_BLOB_ITEMS) return in_groups(&p, count, clv_blob_look_items);
    if (f.form == CLV_BLOB_COSINE) return in_groups(&p, count, clv_blob_look_cosine);
    if (f.form == CLV_BLOB_SWEEP) return in_groups(&p, count, clv_blob_look_sweep);
    return in_groups(&p, count, f.form == CLV_BLOB_TILE ? clv_blob_look_tile : clv_blob_look_rows);
}

/* Runs a form on the first frames of the push, to measure its time. */
static clv_status try_variant(clv_slot *slot, void *user)
{
    const clv_blob_plan *plan = user;
    clv_worker *worker = clv_slot_worker(slot);
    const clv_blob_family f = clv_blob_family_for(plan, worker, 1);
    const char *name = clv_blob_variants(clv_worker_device(worker))[clv_worker_variant(worker)];
    if (strcmp(name, "tile") == 0 && f.form != CLV_BLOB_TILE)
        return clv_fail(CLV_E_DEVICE,
                        "blobs: the tile does not fit into the device's local memory");
    if (strncmp(name, "sweep", 5) == 0 && f.form != CLV_BLOB_SWEEP)
        return clv_fail(CLV_E_DEVICE, "blobs: the windows do not fit into the device's registers");
    CLV_TRY(upload_constants(worker, plan));
    /* a few work-groups per compute unit of a GPU */
    const clv_probe_device *facts = clv_device_facts(clv_worker_device(worker));
    const size_t pixels = plan->shape.height * plan->shape.width, least = 4,
                 frames = facts->device_class == CLV_CLASS_DISCRETE_GPU
                              ? CLV_MAX(16384 * (size_t)facts->compute_units / pixels, least)
                              : least;
    return clv_blob_enqueue(slot, 0, CLV_MIN(plan->frames - plan->base, frames), user);
}

clv_status clv_blob_setup(clv_worker *worker, void *user)
{
    const clv_blob_plan *plan = user;
    char problem[64];
    snprintf(problem, sizeof problem, "%s%zu R%zu%s", plan->options.dog ? "dog" : "log",
             plan->scales, plan->max_radius, plan->by_noise ? " noise" : "");
    clv_tune(worker, "blobs", problem, clv_blob_variants(clv_worker_device(worker)), try_variant,
             user);
    return upload_constants(worker, plan);
}

clv_status clv_blob_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_blob_plan *plan = user;
    const uint32_t *counts, *bins = NULL;
    const clv_blob_peak *peaks;
    CLV_TRY(clv_slot_take(slot, CLV_BLOB_COUNTS, count * 2 * sizeof *counts, &counts));
    CLV_TRY(clv_slot_take(slot, CLV_BLOB_PEAKS, count * plan->capacity * sizeof *peaks, &peaks));
    if (plan->by_noise)
        CLV_TRY(clv_slot_take(slot, CLV_BLOB_BINS,
                              count * plan->scales * CLV_BLOB_NOISE_BINS * sizeof *bins, &bins));
    for (size_t i = 0; i < count; ++i) {
        const size_t frame = plan->base + first + i;
        const size_t kept = CLV_MIN((size_t)counts[2 * i], plan->capacity);
        if (!clv_reserve(&plan->peaks[frame], &plan->room[frame], kept, sizeof **plan->peaks))
            return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu maxima", kept);
        if (kept)
            memcpy(plan->peaks[frame], peaks + i * plan->capacity, kept * sizeof **plan->peaks);
        plan->found[frame] = counts[2 * i];
        memcpy(&plan->max_response[frame], &counts[2 * i + 1], sizeof(float));
        for (size_t k = 0; k < plan->scales && plan->by_noise; ++k)
            plan->spread[frame * plan->scales + k] =
                clv_blob_spread(bins + (i * plan->scales + k) * CLV_BLOB_NOISE_BINS);
    }
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* clv_volumes: runs one job per stack, in which the devices share the slabs, and then finds the spots. */
#include "host/blob/blob_noise.h"
#include "host/blob/volume_plan.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_THREADS = 16, SLABS_A_DEVICE = 4, PIXELS_A_THREAD = 1 << 20 };

/* The planes [first, last) whose medians, bad pixels and noise maps one thread computes. */
typedef struct share {
    clv_volume_plan *plan;
    size_t first, last;
    float *work;
} share;

static void *prepare_planes(void *argument)
{
    const share *s = argument;
    clv_blob_plan *flat = s->plan->flat;
    for (size_t z = s->first; z < s->last; ++z) {
        flat->pedestal[z] = clv_blob_median(flat, z, &flat->bad_pixels[z]);
        clv_blob_noise_map(flat, z, s->work);
    }
    return NULL;
}

/* Smooths each cell's noise along z with the weights 1/4, 1/2, 1/4, so that fewer pixels per plane have to be
 * sampled. */
static void smooth_map(const clv_volume_plan *plan, float *line)
{
    clv_blob_plan *flat = plan->flat;
    for (size_t c = 0; c < flat->cells && flat->by_noise; ++c) {
        for (size_t z = 0; z < plan->depth; ++z) {
            const size_t a = z ? z - 1 : z, b = z + 1 < plan->depth ? z + 1 : z;
            line[z] = 0.25f * flat->map[a * flat->cells + c] +
                      0.5f * flat->map[z * flat->cells + c] +
                      0.25f * flat->map[b * flat->cells + c];
        }
        for (size_t z = 0; z < plan->depth; ++z)
            flat->map[z * flat->cells + c] = line[z];
    }
}

/* Computes the stack's pedestal and its noise map. */
static clv_status prepare(clv_volume_plan *plan, size_t threads, size_t *bad)
{
    clv_blob_plan *flat = plan->flat;
    share shares[MOST_THREADS];
    clv_thread started[MOST_THREADS];
    bool running[MOST_THREADS] = { false };
    const size_t pixels = plan->depth * plan->height * plan->width;
    const size_t used = CLV_MIN(CLV_MIN(threads, plan->depth), pixels / PIXELS_A_THREAD + 1);
    const size_t room = CLV_MAX(2 * flat->cells, plan->depth);
    float *work = clv_alloc(used, room * sizeof *work);
    if (!work) return clv_fail(CLV_E_MEMORY, "volumes: not enough memory for the noise of a stack");
    flat->pixels = plan->voxels, flat->frames = plan->depth;
    for (size_t i = 0; i < used; ++i) {
        shares[i] =
            (share){ plan, plan->depth * i / used, plan->depth * (i + 1) / used, work + i * room };
        if (i)
            running[i] = clv_thread_start(&started[i], "cleave-volume", prepare_planes, &shares[i]);
    }
    for (size_t i = 0; i < used; ++i)
        if (!running[i]) prepare_planes(&shares[i]);
    for (size_t i = 0; i < used; ++i)
        if (running[i]) pthread_join(started[i], NULL);
    smooth_map(plan, work);
    for (size_t z = 0; z < plan->depth; ++z) {
        work[z] = flat->pedestal[z];
        *bad += flat->bad_pixels[z];
    }
    plan->pedestal = plan->depth == 1 ? work[0] : 0;
    if (plan->depth > 1) {
        double sum = 0;
        for (size_t z = 0; z < plan->depth; ++z)
            sum += (double)work[z];
        plan->pedestal = (float)(sum / (double)plan->depth);
    }
    clv_free(work);
    return CLV_OK;
}

static clv_status run_job(clv_context *context, clv_volume_plan *plan, clv_report *report)
{
    char signature[112];
    const clv_blob_plan *flat = plan->flat;
    snprintf(signature, sizeof signature, "%s%zu R%zu Z%zu W%zu H%zu D%zu S%zu B%zu",
             flat->options.dog ? "dog" : "log", plan->scales, plan->reach[CLV_X],
             plan->reach[CLV_Z], plan->width, plan->height, plan->depth, plan->slab,
             flat->pixel_bytes);
    const clv_job job = {
        .size = sizeof job,
        .name = "volumes",
        .signature = signature,
        .units = plan->slabs,
        .cost = clv_volume_cost,
        .setup = clv_volume_setup,
        .enqueue = clv_volume_enqueue,
        .commit = clv_volume_commit,
        .reference = clv_volume_reference,
        .progress = flat->options.progress,
        .progress_user = flat->options.progress_user,
        .rehearse = true,
    };
    plan->count = plan->most = 0, plan->max_response = 0;
    memset(plan->bins, 0, plan->scales * CLV_BLOB_NOISE_BINS * sizeof *plan->bins);
    return clv_job_run(context, &job, plan, report);
}

/* Runs the job. If a list was full, repeats the whole job with lists that hold all maxima. */
static clv_status detect(clv_context *context, clv_volume_plan *plan, clv_report *report,
                         size_t *reruns)
{
    CLV_TRY(run_job(context, plan, report));
    while (plan->most > plan->capacity) {
        plan->capacity = clv_round_up(plan->most, 1024), ++*reruns;
        CLV_TRY(run_job(context, plan, report));
    }
    return CLV_OK;
}

static clv_status one_stack(clv_context *context, clv_volume_plan *plan, size_t frame,
                            size_t threads, clv_volume_found *found, clv_blob_summary *s,
                            clv_report *report)
{
    const double started = clv_now();
    const size_t before = found->count;
    CLV_TRY(prepare(plan, threads, &s->bad_pixels));
    CLV_TRY(detect(context, plan, report, &s->reruns));
    const double detected = clv_now();
    CLV_TRY(clv_volume_finish(plan, frame, threads, found));
    s->max_response = fmax(s->max_response, (double)plan->max_response);
    s->job_s += detected - started, s->finish_s += clv_now() - detected;
    s->empty_frames += found->count == before;
    ++s->frames;
    return CLV_OK;
}

/* Returns the scratch memory in bytes that every device has for a slab. */
static size_t scratch_of(clv_context *context)
{
    uint64_t least = UINT64_MAX;
    const size_t count = clv_context_device_count(context);
    for (size_t i = 0; i < count; ++i) {
        const clv_memory_room room = clv_device_room(clv_context_device(context, i));
        least = CLV_MIN(least, CLV_MIN(room.limit_bytes / 4, room.largest_bytes));
    }
    return count ? (size_t)least : 0;
}

clv_status clv_volumes_in_slabs(clv_context *context, const clv_volume_stacks *shape,
                                const void *voxels, const clv_blob_options *options, size_t slabs,
                                clv_volume_spot **spots, size_t *count, clv_blob_summary *summary,
                                clv_report *report)
{
    const size_t devices = clv_context_device_count(context),
                 cores = clv_context_probe(context)->host.threads_allowed;
    const size_t threads = CLV_MIN(CLV_MAX(cores, (size_t)1), (size_t)MOST_THREADS);
    if (!slabs) slabs = devices > 1 ? SLABS_A_DEVICE * devices : 1;
    clv_volume_plan *plan;
    CLV_TRY(clv_volume_plan_create(shape, options, slabs, scratch_of(context), &plan));
    const size_t stride =
        shape->stack_stride ? shape->stack_stride : plan->depth * plan->flat->shape.frame_stride;
    clv_volume_found found = { .spots = NULL };
    clv_blob_summary s = { 0 };
    clv_status status = CLV_OK;
    if (shape->stacks > UINT32_MAX)
        status =
            clv_fail(CLV_E_SHAPE,
                     "volumes: there are more stacks than the frame number of a spot can count");
    for (size_t t = 0; t < shape->stacks && !status; ++t) {
        plan->voxels = (const char *)voxels + t * stride * plan->flat->pixel_bytes;
        status = one_stack(context, plan, t, threads, &found, &s, report);
    }
    clv_volume_plan_free(plan);
    s.spots = found.count, s.dropped_bad = found.dropped_bad, s.hot_pixels = found.hot;
    if (!status && found.count) {
        *spots = clv_alloc(found.count, sizeof **spots);
        if (!*spots)
            status =
                clv_fail(CLV_E_MEMORY, "volumes: not enough memory for %zu spots", found.count);
        else
            memcpy(*spots, found.spots, found.count * sizeof **spots), *count = found.count;
    }
    if (!status && summary) *summary = s;
    clv_free(found.spots);
    return status;
}

clv_status clv_volumes(clv_context *context, const clv_volume_stacks *stacks, const void *voxels,
                       const clv_blob_options *options, clv_volume_spot **spots, size_t *count,
                       clv_blob_summary *summary, clv_report *report)
{
    if (spots) *spots = NULL;
    if (count) *count = 0;
    if (summary) *summary = (clv_blob_summary){ 0 };
    if (!context || !stacks || !voxels || !spots || !count)
        return clv_fail(CLV_E_ARGUMENT, "volumes: context, stacks, voxels, spots or count is NULL");
    clv_blob_options o;
    clv_volume_stacks shape;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_volumes", "clv_blob_options"));
    CLV_TRY(clv_take_struct(&shape, sizeof shape, stacks, "clv_volumes", "clv_volume_stacks"));
    if (o.movie_scope)
        return clv_fail(CLV_E_ARGUMENT,
                        "volumes: a threshold relative to the whole movie is possible for frames "
                        "only; threshold_rel is relative to each stack");
    return clv_volumes_in_slabs(context, &shape, voxels, &o, 0, spots, count, summary, report);
}

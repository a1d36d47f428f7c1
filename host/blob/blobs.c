/* SPDX-License-Identifier: Apache-2.0 */
/* clv_blobs and the stream: runs each push as a job, repeats frames whose list of maxima was full, and keeps the spots
 * in order until the caller pulls them. */
#include "host/blob/blob_job.h"
#include "host/blob/blob_noise.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* most threads, and the number of maxima or pixels per thread */
enum { MOST_HELPERS = 16, MAXIMA_A_HELPER = 400, PIXELS_A_HELPER = 2 << 20 };

/* The share of one thread: the frames [first, last) of a push. */
typedef struct helper {
    clv_blob_plan *plan;
    size_t first, last;
    clv_blob_finisher finisher;
    float *work;           /* scratch memory for the noise map of a frame */
    clv_blob_found *spots; /* spots of all frames in the share */
    size_t count, room, dropped, hot, empty, bad;
    clv_error error;
} helper;

struct clv_blob_stream {
    clv_context *context;
    clv_blob_plan *plan;
    helper helpers[MOST_HELPERS];
    size_t helper_count;
    clv_blob_found *spots; /* [taken, count) wait to be pulled */
    size_t taken, count, room;
    size_t last; /* the last pull returned [last, taken) */
    clv_blob_summary summary;
};

static clv_status finish_frames(helper *h)
{
    for (size_t frame = h->first; frame < h->last; ++frame) {
        size_t count;
        CLV_TRY(clv_blob_finish(h->plan, frame, &h->finisher, &count));
        if (!clv_reserve(&h->spots, &h->room, h->count + count, sizeof *h->spots))
            return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu spots",
                            h->count + count);
        if (count) memcpy(h->spots + h->count, h->finisher.spots, count * sizeof *h->spots);
        h->count += count, h->dropped += h->finisher.dropped_bad;
        h->hot += h->finisher.hot, h->empty += count == 0;
    }
    return CLV_OK;
}

static void *run_helper(void *argument)
{
    helper *h = argument;
    const clv_status status = finish_frames(h);
    if (status) clv_error_take(&h->error, status);
    return NULL;
}

/* Appends the push's spots to the waiting ones. Callers see them only after the whole push has succeeded. */
static clv_status append(clv_blob_stream *stream, size_t used)
{
    size_t total = 0;
    for (size_t i = 0; i < used; ++i)
        total += stream->helpers[i].count;
    if (stream->taken) {
        memmove(stream->spots, stream->spots + stream->taken,
                (stream->count - stream->taken) * sizeof *stream->spots);
        stream->count -= stream->taken, stream->taken = stream->last = 0;
    }
    if (!clv_reserve(&stream->spots, &stream->room, stream->count + total, sizeof *stream->spots))
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu spots",
                        stream->count + total);
    for (size_t i = 0; i < used; ++i) {
        const helper *h = &stream->helpers[i];
        for (size_t s = 0; s < h->count; ++s) {
            stream->spots[stream->count] = h->spots[s];
            stream->spots[stream->count++].spot.frame += (uint32_t)stream->summary.frames;
        }
        stream->summary.dropped_bad += h->dropped, stream->summary.empty_frames += h->empty;
        stream->summary.hot_pixels += h->hot;
    }
    stream->summary.spots += total;
    return CLV_OK;
}

static void *prepare_frames(void *argument)
{
    helper *h = argument;
    for (size_t frame = h->first; frame < h->last; ++frame) {
        h->plan->pedestal[frame] = clv_blob_median(h->plan, frame, &h->plan->bad_pixels[frame]);
        h->bad += h->plan->bad_pixels[frame];
        clv_blob_noise_map(h->plan, frame, h->work);
    }
    return NULL;
}

/* Shares the frames of the push among `used` helpers. */
static void share_frames(clv_blob_stream *stream, size_t frames, size_t used, void *(*work)(void *))
{
    clv_thread threads[MOST_HELPERS];
    bool running[MOST_HELPERS] = { false };
    for (size_t i = 0; i < used; ++i) {
        helper *h = &stream->helpers[i];
        h->plan = stream->plan;
        h->first = frames * i / used, h->last = frames * (i + 1) / used;
        h->count = h->dropped = h->hot = h->empty = h->bad = 0;
        if (i) running[i] = clv_thread_start(&threads[i], "cleave-blobs", work, h);
    }
    for (size_t i = 0; i < used; ++i)
        if (!running[i]) work(&stream->helpers[i]);
    for (size_t i = 0; i < used; ++i)
        if (running[i]) pthread_join(threads[i], NULL);
}

/* Computes the pedestals and noise maps of the push's frames; returns the number of bad pixels. */
static size_t prepare(clv_blob_stream *stream, size_t frames)
{
    const size_t pixels = stream->plan->shape.height * stream->plan->shape.width;
    const size_t used =
        CLV_MIN(CLV_MIN(stream->helper_count, frames), frames * pixels / PIXELS_A_HELPER + 1);
    size_t bad = 0;
    share_frames(stream, frames, used, prepare_frames);
    for (size_t i = 0; i < used; ++i)
        bad += stream->helpers[i].bad;
    return bad;
}

static clv_status finish(clv_blob_stream *stream, size_t frames)
{
    size_t maxima = 0;
    for (size_t i = 0; i < frames; ++i)
        maxima += stream->plan->found[i];
    const size_t used =
        CLV_MIN(CLV_MIN(stream->helper_count, frames), maxima / MAXIMA_A_HELPER + 1);
    share_frames(stream, frames, used, run_helper);
    clv_status status = CLV_OK;
    for (size_t i = 0; i < used; ++i) {
        helper *h = &stream->helpers[i];
        if (h->error.status && !status) status = clv_error_give(&h->error);
        clv_error_clear(&h->error);
        h->error = (clv_error){ 0 };
    }
    return status ? status : append(stream, used);
}

static clv_status run_job(clv_blob_stream *stream, size_t units, clv_report *report)
{
    const clv_blob_plan *plan = stream->plan;
    char signature[96];
    snprintf(signature, sizeof signature, "%s%zu R%zu W%zu H%zu B%zu%s",
             plan->options.dog ? "dog" : "log", plan->scales, plan->taps, plan->shape.width,
             plan->shape.height, plan->pixel_bytes, plan->by_noise ? " noise" : "");
    const clv_job job = {
        .size = sizeof(clv_job),
        .name = "blobs",
        .signature = signature,
        .units = units,
        .cost = clv_blob_cost,
        .setup = clv_blob_setup,
        .enqueue = clv_blob_enqueue,
        .rehearse = true,
        .commit = clv_blob_commit,
        .reference = clv_blob_reference,
        .progress = plan->options.progress,
        .progress_user = plan->options.progress_user,
    };
    return clv_job_run(stream->context, &job, stream->plan, report);
}

/* Repeats the frames whose list was full, with room for all their maxima, starting from the largest response known.
 * Keeps the larger lists, because the next push is likely to have as many maxima. */
static clv_status run_again(clv_blob_stream *stream, size_t frames, clv_report *report)
{
    enum { MOST_KEPT = 16384 };
    clv_blob_plan *plan = stream->plan;
    const size_t listed = plan->capacity;
    size_t longest = listed;
    for (size_t i = 0; i < frames; ++i) {
        size_t end = i, most = listed;
        for (; end < frames && plan->found[end] > listed; ++end) {
            most = CLV_MAX(most, (size_t)plan->found[end]);
            memcpy(&plan->seed[2 * end + 1], &plan->max_response[end], sizeof(float));
        }
        if (end == i) continue;
        plan->base = i, plan->capacity = clv_round_up(most, 1024);
        longest = CLV_MAX(longest, plan->capacity);
        const clv_status status = run_job(stream, end - i, report);
        plan->base = 0, plan->capacity = listed;
        memset(plan->seed + 2 * i, 0, (end - i) * 2 * sizeof *plan->seed);
        if (status) return status;
        stream->summary.reruns += end - i;
        i = end - 1;
    }
    plan->capacity = CLV_MAX(listed, CLV_MIN(longest, (size_t)MOST_KEPT));
    return CLV_OK;
}

/* Allocates memory for usual numbers of spots. A push allocates more only if it finds more spots. */
static clv_status make_room(clv_blob_stream *stream)
{
    const size_t frames = CLV_MIN(stream->plan->shape.frames, (size_t)CLV_BLOB_USUAL_FRAMES),
                 usual = frames * CLV_BLOB_USUAL_SPOTS;
    stream->helper_count = CLV_MIN(stream->helper_count, stream->plan->shape.frames);
    for (size_t i = 0; i < stream->helper_count; ++i) {
        helper *h = &stream->helpers[i];
        CLV_TRY(clv_blob_finisher_create(stream->plan, &h->finisher));
        h->work = clv_alloc(2 * stream->plan->cells, sizeof *h->work);
        if (!h->work ||
            !clv_reserve(&h->spots, &h->room, usual / stream->helper_count + 1, sizeof *h->spots))
            return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for spots");
    }
    if (!clv_reserve(&stream->spots, &stream->room, usual, sizeof *stream->spots))
        return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for spots");
    return CLV_OK;
}

clv_status clv_blobs_open(clv_context *context, const clv_blob_frames *shape,
                          const clv_blob_options *options, clv_blob_stream **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "blobs: stream is NULL");
    *out = NULL;
    if (!context || !shape) return clv_fail(CLV_E_ARGUMENT, "blobs: context or shape is NULL");
    clv_blob_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_blobs_open", "clv_blob_options"));
    if (o.movie_scope)
        return clv_fail(CLV_E_ARGUMENT,
                        "blobs: a stream cannot use a threshold relative to the whole movie, "
                        "because it does not know the largest response beforehand");
    clv_blob_stream *stream = clv_zalloc(1, sizeof *stream);
    if (!stream) return clv_fail(CLV_E_MEMORY, "blobs: out of memory");
    stream->context = context;
    const size_t cores = clv_context_probe(context)->host.threads_allowed;
    stream->helper_count = CLV_MIN(CLV_MAX(cores, (size_t)1), (size_t)MOST_HELPERS);
    clv_status status = clv_blob_plan_create(shape, options, &stream->plan);
    if (!status) status = make_room(stream);
    if (status) {
        clv_blobs_close(stream);
        return status;
    }
    *out = stream;
    return CLV_OK;
}

clv_status clv_blobs_push(clv_blob_stream *stream, const void *pixels, size_t count,
                          clv_report *report)
{
    if (!stream || !pixels) return clv_fail(CLV_E_ARGUMENT, "blobs: stream or pixels is NULL");
    clv_blob_plan *plan = stream->plan;
    if (!count || count > plan->shape.frames)
        return clv_fail(CLV_E_ARGUMENT, "blobs: got %zu frames in one call, expected 1 to %zu",
                        count, plan->shape.frames);
    if (stream->summary.frames + count > UINT32_MAX)
        return clv_fail(
            CLV_E_SHAPE,
            "blobs: the movie has more frames than the frame number of a spot can count");
    const double started = clv_now();
    plan->pixels = pixels, plan->frames = count;
    const size_t bad = prepare(stream, count);
    const clv_blob_summary before = stream->summary;
    clv_status status = run_job(stream, count, report);
    if (!status) status = run_again(stream, count, report);
    const double detected = clv_now();
    if (!status) status = finish(stream, count);
    plan->pixels = NULL;
    if (status) {
        stream->summary = before;
        return status;
    }
    for (size_t i = 0; i < count; ++i)
        stream->summary.max_response =
            fmax(stream->summary.max_response, (double)plan->max_response[i]);
    stream->summary.frames += count;
    stream->summary.bad_pixels += bad;
    stream->summary.job_s += detected - started;
    stream->summary.finish_s += clv_now() - detected;
    return CLV_OK;
}

clv_status clv_blobs_warm(clv_blob_stream *stream, size_t count)
{
    if (!stream) return clv_fail(CLV_E_ARGUMENT, "blobs: stream is NULL");
    clv_blob_plan *plan = stream->plan;
    const size_t elements = CLV_MIN(count, plan->shape.frames) * plan->shape.frame_stride;
    void *dark = clv_zalloc(CLV_MAX(elements, (size_t)1), plan->pixel_bytes);
    if (!dark) return clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu dark frames", count);
    const clv_blob_summary before = stream->summary;
    clv_progress *progress = plan->options.progress;
    clv_status status = CLV_OK;
    plan->options.progress = NULL;
    for (int round = 0; round < 2 && !status;
         ++round) { /* the second round reuses the memory that the first one released */
        const size_t spots = stream->summary.spots;
        status = clv_blobs_push(stream, dark, count, NULL);
        stream->count -= stream->summary.spots - spots;
    }
    plan->options.progress = progress;
    stream->summary = before;
    clv_free(dark);
    return status;
}

clv_status clv_blobs_pull(clv_blob_stream *stream, clv_spot *spots, size_t capacity, size_t *count)
{
    if (count) *count = 0;
    if (!stream || !count || (capacity && !spots))
        return clv_fail(CLV_E_ARGUMENT, "blobs: stream, spots or count is NULL");
    *count = CLV_MIN(capacity, stream->count - stream->taken);
    stream->last = stream->taken;
    for (size_t i = 0; i < *count; ++i)
        spots[i] = stream->spots[stream->taken++].spot;
    return CLV_OK;
}

clv_status clv_blobs_errors(const clv_blob_stream *stream, clv_spot_error *errors, size_t capacity)
{
    if (!stream || (capacity && !errors))
        return clv_fail(CLV_E_ARGUMENT, "blobs: %s is NULL", stream ? "errors" : "stream");
    for (size_t i = 0; i < capacity && stream->last + i < stream->taken; ++i)
        errors[i] = stream->spots[stream->last + i].error;
    return CLV_OK;
}

clv_blob_summary clv_blobs_summary(const clv_blob_stream *stream)
{
    return stream ? stream->summary : (clv_blob_summary){ 0 };
}

void clv_blobs_close(clv_blob_stream *stream)
{
    if (!stream) return;
    for (size_t i = 0; i < MOST_HELPERS; ++i)
        clv_free(stream->helpers[i].work), clv_free(stream->helpers[i].spots),
            clv_blob_finisher_clear(&stream->helpers[i].finisher);
    clv_free(stream->spots);
    clv_blob_plan_free(stream->plan);
    clv_free(stream);
}

/* Runs one detection over all frames; *spots may be NULL. */
static clv_status whole(clv_context *context, const clv_blob_frames *frames, const void *pixels,
                        const clv_blob_options *options, clv_spot **spots, size_t *count,
                        clv_blob_summary *summary, clv_report *report)
{
    clv_blob_stream *stream;
    CLV_TRY(clv_blobs_open(context, frames, options, &stream));
    clv_status status = clv_blobs_push(stream, pixels, frames->frames, report);
    if (!status && spots && stream->count) {
        *spots = clv_alloc(stream->count, sizeof **spots);
        if (!*spots)
            status =
                clv_fail(CLV_E_MEMORY, "blobs: not enough memory for %zu spots", stream->count);
        else
            status = clv_blobs_pull(stream, *spots, stream->count, count);
    }
    if (!status && summary) *summary = stream->summary;
    clv_blobs_close(stream);
    return status;
}

clv_status clv_blobs(clv_context *context, const clv_blob_frames *frames, const void *pixels,
                     const clv_blob_options *options, clv_spot **spots, size_t *count,
                     clv_blob_summary *summary, clv_report *report)
{
    if (spots) *spots = NULL;
    if (count) *count = 0;
    if (summary) *summary = (clv_blob_summary){ 0 };
    if (!frames || !spots || !count)
        return clv_fail(CLV_E_ARGUMENT, "blobs: frames, spots or count is NULL");
    clv_blob_options o, once;
    clv_blob_frames shape;
    CLV_TRY(clv_take_struct(&shape, sizeof shape, frames, "clv_blobs", "clv_blob_frames"));
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_blobs", "clv_blob_options"));
    if (!o.movie_scope) return whole(context, &shape, pixels, &o, spots, count, summary, report);
    clv_blob_summary first;
    o.movie_scope = false;
    once = o;
    /* only the largest response is needed */
    once.threshold_rel = 1, once.threshold_rel_given = true;
    once.threshold_given = once.threshold_sigma_given = false;
    CLV_TRY(whole(context, &shape, pixels, &once, NULL, NULL, &first, report));
    const double part = o.threshold_rel_given ? o.threshold_rel : 0.2;
    o.threshold = fmax(o.threshold_given ? o.threshold : 0, part * first.max_response);
    o.threshold_given = true, o.threshold_rel_given = false;
    return whole(context, &shape, pixels, &o, spots, count, summary, report);
}

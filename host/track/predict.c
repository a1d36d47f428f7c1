/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts positions from the particles' velocities between the last two frames: the velocity of the nearest particle,
 * the mean of all, or the mean at one distance from the wall of a channel. */
#include "host/track/predict.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void clv_flow_begin(clv_flow *flow)
{
    flow->count = flow->bin_count = 0;
    memset(flow->mean, 0, sizeof flow->mean);
}

clv_status clv_flow_add(clv_flow *flow, const double from[3], const double to[3], double frames)
{
    if (!clv_reserve(&flow->samples, &flow->room, flow->count + 1, sizeof *flow->samples))
        return clv_fail(CLV_E_MEMORY, "link: not enough memory for %zu velocities",
                        flow->count + 1);
    clv_flow_sample *s = &flow->samples[flow->count++];
    for (int axis = 0; axis < 3; ++axis) {
        s->place[axis] = to[axis];
        s->velocity[axis] = (to[axis] - from[axis]) / frames;
        flow->mean[axis] += (s->velocity[axis] - flow->mean[axis]) / (double)flow->count;
    }
    return CLV_OK;
}

/* Returns the nearest sample; of equally near samples, the first. */
static const clv_flow_sample *nearest(const clv_flow *flow, const double place[3])
{
    const clv_flow_sample *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < flow->count; ++i) {
        const double *p = flow->samples[i].place;
        const double dz = p[0] - place[0], dy = p[1] - place[1], dx = p[2] - place[2],
                     far = dz * dz + dy * dy + dx * dx;
        if (far < least) least = far, best = &flow->samples[i];
    }
    return best;
}

static size_t along(const clv_flow *flow)
{
    return flow->options->channel_axis == CLV_CHANNEL_Y ? 1 : 2;
}

static int by_across(const void *left, const void *right)
{
    const clv_flow_bin *a = left, *b = right;
    return (a->across > b->across) - (a->across < b->across);
}

/* Creates a bin for each sample, at the sample's own distance or at the middle of the interval that contains it. Then
 * merges bins at equal distance and keeps those with at least `least` samples. */
static clv_status fill_bins(clv_flow *flow, bool own_distance, size_t least)
{
    const size_t axis = along(flow), across = 3 - axis;
    const double width = flow->options->channel_bin;
    if (!clv_reserve(&flow->bins, &flow->bin_room, flow->count, sizeof *flow->bins))
        return clv_fail(CLV_E_MEMORY, "link: not enough memory for %zu velocities", flow->count);
    for (size_t i = 0; i < flow->count; ++i) {
        const double at = flow->samples[i].place[across];
        flow->bins[i] = (clv_flow_bin){ own_distance ? at : (floor(at / width) + 0.5) * width,
                                        flow->samples[i].velocity[axis], 1 };
    }
    if (flow->count) qsort(flow->bins, flow->count, sizeof *flow->bins, by_across);
    size_t bins = 0;
    for (size_t i = 0, end; i < flow->count; i = end) {
        clv_flow_bin sum = flow->bins[i];
        for (end = i + 1; end < flow->count && !(flow->bins[end].across > sum.across); ++end)
            sum.velocity += (flow->bins[end].velocity - sum.velocity) / (double)++sum.count;
        if (sum.count >= least) flow->bins[bins++] = sum;
    }
    flow->bin_count = bins;
    return CLV_OK;
}

clv_status clv_flow_end(clv_flow *flow)
{
    enum { USUAL = 20 }; /* trackpy's default */
    if (flow->options->predict != CLV_PREDICT_CHANNEL) return CLV_OK;
    return fill_bins(flow, false,
                     flow->options->channel_least ? flow->options->channel_least : USUAL);
}

clv_status clv_flow_guess(clv_flow *flow)
{
    clv_flow_begin(flow);
    for (size_t i = 0; i < flow->options->guesses; ++i) {
        const double *to = flow->options->guess_places + 3 * i,
                     *velocity = flow->options->guess_velocities + 3 * i;
        const double from[3] = { to[0] - velocity[0], to[1] - velocity[1], to[2] - velocity[2] };
        CLV_TRY(clv_flow_add(flow, from, to, 1));
        memcpy(flow->samples[i].velocity, velocity, 3 * sizeof *velocity);
    }
    return flow->options->predict == CLV_PREDICT_CHANNEL ? fill_bins(flow, true, 1) : CLV_OK;
}

/* Returns the velocity of the nearest bin. */
static double velocity_across(const clv_flow *flow, double at)
{
    size_t low = 0, high = flow->bin_count; /* the first bin that is not before `at` */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (flow->bins[middle].across < at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == flow->bin_count ||
        (low && at - flow->bins[low - 1].across <= flow->bins[low].across - at))
        --low;
    return flow->bins[low].velocity;
}

void clv_flow_predict(const clv_flow *flow, const double place[3], size_t own, double frames,
                      double *later)
{
    const clv_link_options *o = flow->options;
    double channel[3] = { 0 };
    const double *velocity = o->guess_velocity;
    if (o->predict == CLV_PREDICT_DRIFT && flow->count) {
        velocity = flow->mean;
    } else if (o->predict == CLV_PREDICT_VELOCITY && flow->count) {
        const clv_flow_sample *s = own < flow->count ? &flow->samples[own] : nearest(flow, place);
        if (s) velocity = s->velocity;
    } else if (o->predict == CLV_PREDICT_CHANNEL && flow->bin_count) {
        channel[along(flow)] = velocity_across(flow, place[3 - along(flow)]);
        velocity = channel;
    }
    for (int axis = 0; axis < 3; ++axis)
        later[axis] = place[axis] + velocity[axis] * frames;
}

void clv_flow_clear(clv_flow *flow)
{
    clv_free(flow->samples), clv_free(flow->bins);
    *flow = (clv_flow){ .options = flow->options };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions from the velocities of the last two frames: of the nearest particle, or the mean of all. */
#include "host/track/predict.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

void clv_flow_begin(clv_flow *flow)
{
    flow->count = 0;
    memset(flow->mean, 0, sizeof flow->mean);
}

clv_status clv_flow_add(clv_flow *flow, const double from[3], const double to[3], double frames)
{
    if (!clv_reserve(&flow->samples, &flow->room, flow->count + 1, sizeof *flow->samples))
        return clv_fail(CLV_E_MEMORY, "link: no memory for %zu velocities", flow->count + 1);
    clv_flow_sample *s = &flow->samples[flow->count++];
    for (int axis = 0; axis < 3; ++axis) {
        s->place[axis] = to[axis];
        s->velocity[axis] = (to[axis] - from[axis]) / frames;
        flow->mean[axis] += (s->velocity[axis] - flow->mean[axis]) / (double)flow->count;
    }
    return CLV_OK;
}

/* The first of the nearest. */
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

void clv_flow_predict(const clv_flow *flow, clv_link_predict how, const double place[3], size_t own,
                      double frames, double *later)
{
    const double *velocity = flow->guess;
    if (how == CLV_PREDICT_DRIFT && flow->count) {
        velocity = flow->mean;
    } else if (how == CLV_PREDICT_VELOCITY && flow->count) {
        const clv_flow_sample *s = own < flow->count ? &flow->samples[own] : nearest(flow, place);
        if (s) velocity = s->velocity;
    }
    for (int axis = 0; axis < 3; ++axis)
        later[axis] = place[axis] + velocity[axis] * frames;
}

void clv_flow_clear(clv_flow *flow)
{
    clv_free(flow->samples);
    *flow = (clv_flow){ .guess = flow->guess };
}

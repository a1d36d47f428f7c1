/* SPDX-License-Identifier: Apache-2.0 */
/* Where particles will be: velocities of the last two frames, carried on. */
#ifndef CLEAVE_HOST_TRACK_PREDICT_H
#define CLEAVE_HOST_TRACK_PREDICT_H

#include <cleave/track.h>

/* A particle that was seen in both of the last two frames: its place (z, y, x) in the last one, and its velocity. */
typedef struct clv_flow_sample {
    double place[3], velocity[3]; /* per frame */
} clv_flow_sample;

/* Particles at one distance from the wall of a channel. */
typedef struct clv_flow_bin {
    double across, velocity;
    size_t count;
} clv_flow_bin;

/* Zero-initialise but for `options`. */
typedef struct clv_flow {
    const clv_link_options *options;
    clv_flow_sample *samples;
    size_t count, room;
    double mean[3];     /* of the velocities */
    clv_flow_bin *bins; /* across a channel, rising */
    size_t bin_count, bin_room;
} clv_flow;

/* The flow before the first frame: what is guessed. CLV_E_MEMORY. */
clv_status clv_flow_guess(clv_flow *flow);

/* Forgets the samples of the frame before. */
void clv_flow_begin(clv_flow *flow);
/* A particle went from `from` to `to` in that many frames. CLV_E_MEMORY. */
clv_status clv_flow_add(clv_flow *flow, const double from[3], const double to[3], double frames);
/* All samples of a frame are there. CLV_E_MEMORY. */
clv_status clv_flow_end(clv_flow *flow);
/* Where a particle at `place` is that many frames later; `own`: its sample, or SIZE_MAX. */
void clv_flow_predict(const clv_flow *flow, const double place[3], size_t own, double frames,
                      double *later);
void clv_flow_clear(clv_flow *flow);

#endif

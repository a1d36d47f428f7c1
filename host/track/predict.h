/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts particle positions by extrapolating the velocities between the last two frames. */
#ifndef CLEAVE_HOST_TRACK_PREDICT_H
#define CLEAVE_HOST_TRACK_PREDICT_H

#include <cleave/track.h>

/* A particle seen in both of the last two frames: its position (z, y, x) in the last one, and its velocity. */
typedef struct clv_flow_sample {
    double place[3], velocity[3]; /* place, and velocity per frame */
} clv_flow_sample;

/* The mean velocity of particles at one distance from the wall of a channel. */
typedef struct clv_flow_bin {
    double across, velocity;
    size_t count;
} clv_flow_bin;

/* Zero-initialise all fields except `options`. */
typedef struct clv_flow {
    const clv_link_options *options;
    clv_flow_sample *samples;
    size_t count, room;
    double mean[3];     /* mean velocity of all samples */
    clv_flow_bin *bins; /* sorted by position across the channel */
    size_t bin_count, bin_room;
} clv_flow;

/* Sets the flow before the first frame from the caller's guesses. Returns CLV_OK or CLV_E_MEMORY. */
clv_status clv_flow_guess(clv_flow *flow);

/* Discards the samples of the previous frame. */
void clv_flow_begin(clv_flow *flow);
/* Records that a particle moved from `from` to `to` in `frames` frames. Returns CLV_OK or CLV_E_MEMORY. */
clv_status clv_flow_add(clv_flow *flow, const double from[3], const double to[3], double frames);
/* Call this after the last sample of a frame. Returns CLV_OK or CLV_E_MEMORY. */
clv_status clv_flow_end(clv_flow *flow);
/* Predicts the position `frames` frames later of a particle at `place`. `own`: index of the particle's sample, or
 * SIZE_MAX. */
void clv_flow_predict(const clv_flow *flow, const double place[3], size_t own, double frames,
                      double *later);
void clv_flow_clear(clv_flow *flow);

#endif

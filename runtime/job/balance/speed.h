/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a device will take for a chunk, chunk_s + (units + extra) * unit_s, from the chunks it has done. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_SPEED_H
#define CLEAVE_RUNTIME_JOB_BALANCE_SPEED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clv_speed {
    double unit_s;    /* seconds per unit; 0: unknown */
    double chunk_s;   /* seconds per chunk, in addition to its units */
    double noise;     /* mean |measured / predicted - 1| */
    double doubt;     /* measured / predicted of the chunk in doubt; 0: none */
    unsigned samples; /* chunks measured */

    double extra; /* fixed work of a chunk, in units */

    /* Sums over the samples, in which old ones fade. With x = 1 / seconds and y = (units + extra) / seconds
     * the model is chunk_s * x + unit_s * y = 1, so that every sample counts by its relative error. */
    double xx, xy, yy, x, y;
    double shortest;         /* seconds; a fixed cost cannot be longer than a whole chunk */
    double fewest, most;     /* smallest and largest sample so far, in units */
    double doubt_n, doubt_s; /* units and seconds of the chunk in doubt */
} clv_speed;

/* Starts from the `units_per_s` and `chunk_s` of earlier jobs, <= 0 where unknown. */
clv_speed clv_speed_start(double units_per_s, double chunk_s, double chunk_units);

bool clv_speed_known(const clv_speed *speed);

/* Learns that a steady chunk took `seconds`. A chunk that is 50 % off may be noise or a new pace; the next chunk
 * decides. */
void clv_speed_observe(clv_speed *speed, size_t units, double seconds);

/* Predicts the seconds for a chunk. A slow chunk counts even while it is in doubt, because a late end costs
 * more than an early one. */
double clv_speed_predict(const clv_speed *speed, double units);

/* Predicts like clv_speed_predict, for callers that must not expect too short a time: beyond the sizes measured so
 * far it assumes that all time went into the units and none into the fixed cost. */
double clv_speed_predict_most(const clv_speed *speed, double units);

/* Returns the part of a predicted time by which noise alone may make a chunk late. */
double clv_speed_slack(const clv_speed *speed);

#endif

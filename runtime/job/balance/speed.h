/* SPDX-License-Identifier: Apache-2.0 */
/* How long a device needs for a chunk: chunk_s + (units + extra) * unit_s, learnt from the chunks it did. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_SPEED_H
#define CLEAVE_RUNTIME_JOB_BALANCE_SPEED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clv_speed {
    double unit_s;    /* of one unit; 0: unknown */
    double chunk_s;   /* of a chunk, beyond its units */
    double noise;     /* mean |measured / predicted - 1| */
    double doubt;     /* measured / predicted of a chunk that is not believed yet; 0: none */
    unsigned samples; /* chunks measured */

    double extra; /* fixed work of a chunk, in units */

    /* Sums over samples, old ones fading: with x = 1 / seconds and y = (units + extra) / seconds
     * the model is chunk_s * x + unit_s * y = 1, so every sample weighs by its relative error. */
    double xx, xy, yy, x, y;
    double shortest;         /* seconds; a fixed cost cannot be longer than a whole chunk */
    double fewest, most;     /* units in a sample so far */
    double doubt_n, doubt_s; /* the chunk in doubt */
} clv_speed;

/* `units_per_s` and `chunk_s` from earlier jobs, <= 0 where unknown. */
clv_speed clv_speed_start(double units_per_s, double chunk_s, double chunk_units);

bool clv_speed_known(const clv_speed *speed);

/* A steady chunk took `seconds`. One that is 50 % off is noise or a new pace: the next one tells. */
void clv_speed_observe(clv_speed *speed, size_t units, double seconds);

/* Seconds for a chunk. While a slow chunk is in doubt it counts: a late finish costs more than an
 * early one. */
double clv_speed_predict(const clv_speed *speed, double units);

/* The same where a chunk must not be thought too short: beyond the sizes measured so far, as if all
 * time had gone with the units and none were fixed cost. */
double clv_speed_predict_most(const clv_speed *speed, double units);

/* By how much of a predicted length the end may be late without any reason but noise. */
double clv_speed_slack(const clv_speed *speed);

#endif

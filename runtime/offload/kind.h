/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a kind of call on a device, and the choice that follows. Pure: times are handed in,
 * so that tests play through a process without a device and without a clock. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_KIND_H
#define CLEAVE_RUNTIME_OFFLOAD_KIND_H

#include "runtime/offload/offload.h"

typedef struct clv_offload_kind {
    clv_curve curve; /* as it was timed; count 0: it was not, or could not be */
    /* Logarithm of how many times longer calls take than the curve says, at each of its points. */
    double lean[2][CLV_CURVE_POINTS];
    clv_side last[CLV_CURVE_POINTS]; /* that a call near this point went to */
    bool built;                      /* the device did it in this process */
    double first_s; /* what the first call of a process adds on the device; negative: unknown */
    double lost_s;  /* to the host so far, as that first call did not pay yet */
    double spent_s; /* on the host, before the kind was timed */
} clv_offload_kind;

/* Whether timing the kind is worth it: its calls, with one of `next_s`, took as long as that lasts. */
bool clv_kind_is_due(const clv_offload_kind *kind, double next_s);

/* Seconds of both sides, from the curve and from what calls have shown since. */
void clv_kind_predict(const clv_offload_kind *kind, double work, double *host_s, double *device_s);

/* The side for a call of which these seconds are predicted. `first_s`: what its first call would add
 * on the device; less what the host has lost by now, it is weighed. A side that calls of about this
 * work went to is left for a gain of 4 % only. */
clv_side clv_kind_choose(const clv_offload_kind *kind, double work, double host_s, double device_s,
                         double first_s);
/* The same where calls went to `last` before. */
clv_side clv_kind_weigh(const clv_offload_kind *kind, clv_side last, double host_s, double device_s,
                        double first_s);
/* A call went to that side. */
void clv_kind_went(clv_offload_kind *kind, double work, clv_side side, double host_s,
                   double device_s);

/* A call took `seconds` where `predicted` was said. Each call moves the prediction by 10 % at most,
 * so that a single one that was held up does no harm, by 40 % where 5 ms or more were said; what is
 * known of the other side is forgotten by 1 %, so that a side that was slow for a time gets its
 * chance again. */
void clv_kind_saw(clv_offload_kind *kind, double work, clv_side side, double predicted,
                  double seconds);
/* That lesson for one figure of each side, the one that did the call and the other one. */
void clv_kind_lean(double *mine, double *other, double weight, double predicted, double seconds);

#endif

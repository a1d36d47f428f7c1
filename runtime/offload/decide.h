/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a kind of call, and the side that follows from it. Pure functions: times and the present
 * moment are passed in, so that tests play through a process without a device or a clock. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_DECIDE_H
#define CLEAVE_RUNTIME_OFFLOAD_DECIDE_H

#include "runtime/offload/curve.h"

#include <cleave/offload.h>

enum { CLV_SHAPES = 16, CLV_SHAPES_TEXT = 16 + CLV_SHAPES * 48 };

/* Calls of one exact shape at which both sides take about the same time. Between its points a curve errs by
 * a few per cent, which is too much there. So the shape keeps times of its own, which calls correct. */
typedef struct clv_shape {
    uint64_t name;             /* 0: free */
    unsigned used;             /* when it was last used, by the kind's count */
    double seconds[CLV_SIDES]; /* of a call whose operands all lie in host memory */
    bool timed;                /* `seconds` were timed for this shape; else they are the curve's */
    bool taught;               /* calls changed `seconds` since they were noted */
    clv_side side;             /* where its calls go, apart from tries */
    double side_s;             /* seconds of calls there since the last try */
    clv_side latest;           /* where the latest call went */
    double row_s, ended;       /* seconds of calls in a row there; when the latest one ended */
    bool failed;               /* the other side failed when it was tried */
    bool trying;               /* a try of the other side is under way */
    double tried_s;            /* seconds of calls in this try so far */
    int lessons;               /* how many of them taught something */
    int confirmed;             /* tries in a row that found the other side slower */
    double asked;              /* when the latest of them that counts was over */
} clv_shape;

/* What is known of calls of one kind on one device. */
typedef struct clv_kind {
    clv_curve curve; /* as timed; count 0: it was not timed, or could not be */
    /* Logarithm of how many times longer calls take than the curve says, at each of its points. */
    double lean[CLV_SIDES][CLV_CURVE_POINTS];
    clv_side last[CLV_CURVE_POINTS]; /* side of the last call near this point */
    bool built;                      /* the device has done one in this process */
    double first_s; /* what a process's first call adds on the device; negative: unknown */
    double lost_s;  /* seconds lost by calls on the host because that first one did not pay yet */
    double spent_s; /* seconds spent by calls on the host before the kind was timed */
    clv_shape shape[CLV_SHAPES];
    unsigned uses;
} clv_kind;

/* Tells whether it is worth timing the kind: its calls, with one of `next_s`, have taken as long as the
 * timing will. */
bool clv_kind_is_due(const clv_kind *kind, double next_s);

/* Returns the shape kept under that name, or NULL. */
clv_shape *clv_shape_find(clv_kind *kind, uint64_t name);
/* Tells whether times of its own would say more about a shape than the curve's `seconds`: its sides are
 * close, and its calls are long enough to matter. */
bool clv_shape_is_close(const double seconds[CLV_SIDES]);
/* Tells whether a call is short enough to be timed on both sides while the caller waits for a plan. */
bool clv_shape_is_brief(const double seconds[CLV_SIDES]);
/* Keeps a shape with these times. The shape that has not been used for longest makes room. */
clv_shape *clv_shape_keep(clv_kind *kind, uint64_t name, const double seconds[CLV_SIDES]);
/* Combines the seconds of the curve and of a timing taken at another moment: a value between the two, or the
 * timing's where they differ by more than a machine changes from one moment to the next. */
double clv_shape_between(double by_curve_s, double timed_s);

/* Predicts the seconds of both sides: from the shape or, if that is NULL, from the curve and what calls have
 * shown since. */
void clv_kind_predict(const clv_kind *kind, const clv_shape *shape, double work,
                      double seconds[CLV_SIDES]);
/* Chooses the side for a call with these predicted seconds. A side that such calls went to before is left
 * only for a clear gain. `first_s`: what the device's first call in this process would still add. */
clv_side clv_kind_choose(const clv_kind *kind, const clv_shape *shape, double work,
                         const double seconds[CLV_SIDES], double first_s);
/* Returns where the call goes: to `chosen` or, now and then, to the other side. Otherwise nothing would be
 * learnt about that one, and a machine does not stay as it was. */
clv_side clv_shape_turn(clv_shape *shape, clv_side chosen, double now);
/* Notes that a call tried on the other side was not done there: it is not tried again in this process. */
void clv_shape_failed(clv_shape *shape);

/* Notes that a call went to that side; `shape` may be NULL as above. */
void clv_kind_went(clv_kind *kind, const clv_shape *shape, double work, clv_side side,
                   const double seconds[CLV_SIDES]);
/* Learns from a call that took `seconds` and ended at `now`, where `predicted` seconds were expected. */
void clv_kind_saw(clv_kind *kind, clv_shape *shape, double work, clv_side side, double predicted,
                  double seconds, double now);

/* Reads "2 9ae16a3b2f90404f:1.2e-06:3.1e-05 ..."; a text of another version gives no shapes. */
void clv_shapes_read(const char *text, clv_kind *kind);
void clv_shapes_write(const clv_kind *kind, char *text, size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Records the times of a kind of call, and decides on a side from them. The functions are pure: times and the present
 * moment are passed in, so that tests need neither a device nor a clock. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_DECIDE_H
#define CLEAVE_RUNTIME_OFFLOAD_DECIDE_H

#include "runtime/offload/curve.h"

#include <cleave/offload.h>

enum { CLV_SHAPES = 16, CLV_SHAPES_TEXT = 16 + CLV_SHAPES * 48 };

/* Calls of one exact shape at which both sides take about the same time. Between its points a curve errs by a few per
 * cent, which is too much for such a shape. So the shape keeps times of its own, which calls correct. */
typedef struct clv_shape {
    uint64_t name;             /* 0: the entry is free */
    unsigned used;             /* value of the kind's `uses` when the shape was last used */
    double seconds[CLV_SIDES]; /* of a call whose operands all lie in host memory */
    bool timed;                /* `seconds` were timed for this shape; else they are the curve's */
    bool taught;               /* calls have changed `seconds` since they were noted */
    clv_side side;             /* where its calls go, apart from tries */
    double side_s;             /* seconds of calls on `side` since the last try */
    clv_side latest;           /* where the latest call went */
    double row_s, ended;       /* seconds of calls in a row on `latest`; end of the latest call */
    bool failed;               /* the other side failed when it was tried */
    bool trying;               /* a try of the other side is under way */
    double tried_s;            /* seconds of calls in this try so far */
    int lessons;               /* calls of this try that taught something */
    int confirmed;             /* tries in a row that found the other side slower */
    double asked;              /* when the latest of these tries that counts was over */
} clv_shape;

/* The known times of calls of one kind on one device. */
typedef struct clv_kind {
    clv_curve curve; /* as timed; count 0: the kind was not timed, or could not be */
    /* Logarithm of how many times longer calls take than the curve says, at each of the curve's points. */
    double lean[CLV_SIDES][CLV_CURVE_POINTS];
    clv_side last[CLV_CURVE_POINTS]; /* side of the last call near this point */
    bool built;                      /* the device has done a call of this kind in this process */
    double first_s; /* what a process's first call adds on the device; negative: unknown */
    double lost_s;  /* seconds lost on the host because the device's first call did not pay yet */
    double spent_s; /* seconds spent by calls on the host before the kind was timed */
    clv_shape shape[CLV_SHAPES];
    unsigned uses;
} clv_kind;

/* Returns whether timing the kind pays: its calls, with one of `next_s`, have taken as long as the timing will. */
bool clv_kind_is_due(const clv_kind *kind, double next_s);

/* Returns the shape kept under that name, or NULL. */
clv_shape *clv_shape_find(clv_kind *kind, uint64_t name);
/* Returns whether a shape should keep times of its own, given the curve's `seconds`: its sides are close, and its
 * calls are long enough to matter. */
bool clv_shape_is_close(const double seconds[CLV_SIDES]);
/* Returns whether a call is short enough to be timed on both sides while the caller waits for a plan. */
bool clv_shape_is_brief(const double seconds[CLV_SIDES]);
/* Keeps a shape with these times, in place of the shape that has not been used for longest. */
clv_shape *clv_shape_keep(clv_kind *kind, uint64_t name, const double seconds[CLV_SIDES]);
/* Combines the seconds of the curve with those of a timing at another moment. Returns a value between the two, or the
 * timing's seconds if the two differ by more than a machine changes from one moment to the next. */
double clv_shape_between(double by_curve_s, double timed_s);

/* Predicts the seconds of both sides: from the shape or, if `shape` is NULL, from the curve as later calls have
 * corrected it. */
void clv_kind_predict(const clv_kind *kind, const clv_shape *shape, double work,
                      double seconds[CLV_SIDES]);
/* Chooses the side for a call with these predicted seconds. The side that such calls went to before is left only for
 * a clear gain. `first_s`: seconds that the device's first call in this process would still add. */
clv_side clv_kind_choose(const clv_kind *kind, const clv_shape *shape, double work,
                         const double seconds[CLV_SIDES], double first_s);
/* Returns where the call goes: to `chosen` or, now and then, to the other side. Without such tries nothing would be
 * learnt about the other side, whose speed changes with the state of the machine. */
clv_side clv_shape_turn(clv_shape *shape, clv_side chosen, double now);
/* Notes that the other side did not do a call that was tried there: it is not tried again in this process. */
void clv_shape_failed(clv_shape *shape);

/* Notes that a call went to `side`; `shape` may be NULL as above. */
void clv_kind_went(clv_kind *kind, const clv_shape *shape, double work, clv_side side,
                   const double seconds[CLV_SIDES]);
/* Learns from a call that took `seconds`, instead of the expected `predicted`, and ended at `now`. */
void clv_kind_saw(clv_kind *kind, clv_shape *shape, double work, clv_side side, double predicted,
                  double seconds, double now);

/* Reads the shapes in "2 9ae16a3b2f90404f:1.2e-06:3.1e-05 ..."; a text of another version contains no shapes. */
void clv_shapes_read(const char *text, clv_kind *kind);
void clv_shapes_write(const clv_kind *kind, char *text, size_t room);

#endif

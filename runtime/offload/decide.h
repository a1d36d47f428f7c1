/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a kind of call, and the side that follows from it. Pure: times and the moment are handed
 * in, so that tests play through a process without a device and without a clock. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_DECIDE_H
#define CLEAVE_RUNTIME_OFFLOAD_DECIDE_H

#include "runtime/offload/curve.h"

#include <cleave/offload.h>

enum { CLV_SHAPES = 16, CLV_SHAPES_TEXT = 16 + CLV_SHAPES * 48 };

/* Calls of one exact shape, whose sides are close: between the points of a curve a few per cent are
 * guessed, which is too much there. So its own times are kept, and calls correct them. */
typedef struct clv_shape {
    uint64_t name;             /* 0: free */
    unsigned used;             /* when, by the kind's count */
    double seconds[CLV_SIDES]; /* of a call whose operands all lie with the host */
    bool timed;                /* they are this shape's; else the curve's */
    bool taught;               /* calls changed them since they were noted */
    clv_side side;             /* where calls go, except for tries */
    double side_s;             /* seconds of calls there since the last try */
    clv_side latest;           /* where the latest call went, */
    double row_s, ended;       /* for how many seconds of calls in a row, and when it ended */
    bool failed;               /* the other side could not do it when it was tried */
    bool trying;               /* the other side has its turn, */
    double tried_s;            /* for so many seconds of calls by now, */
    int lessons;               /* so many of which taught */
    int confirmed;             /* tries in a row that found the other side slower, */
    double asked;              /* and when the latest of them that counts was over */
} clv_shape;

/* Calls of one kind on one device. */
typedef struct clv_kind {
    clv_curve curve; /* as it was timed; count 0: it was not, or could not be */
    /* Logarithm of how many times longer calls take than the curve says, at each of its points. */
    double lean[CLV_SIDES][CLV_CURVE_POINTS];
    clv_side last[CLV_CURVE_POINTS]; /* where a call near this point went */
    bool built;                      /* the device did one in this process */
    double first_s; /* what the first call of a process adds on the device; negative: unknown */
    double lost_s;  /* by calls that went to the host since that first one did not pay yet */
    double spent_s; /* by calls on the host before the kind was timed */
    clv_shape shape[CLV_SHAPES];
    unsigned uses;
} clv_kind;

/* Whether timing the kind is worth it: its calls, with one of `next_s`, took as long as that lasts. */
bool clv_kind_is_due(const clv_kind *kind, double next_s);

/* NULL: none is kept under that name. */
clv_shape *clv_shape_find(clv_kind *kind, uint64_t name);
/* Whether times of its own would tell more of a shape than the curve's `seconds`: the sides are close,
 * and calls are long enough to matter. */
bool clv_shape_is_close(const double seconds[CLV_SIDES]);
/* Whether a call is short enough to be timed on both sides while somebody waits for a plan. */
bool clv_shape_is_brief(const double seconds[CLV_SIDES]);
/* With these times; the shape that was not used for longest makes room. */
clv_shape *clv_shape_keep(clv_kind *kind, uint64_t name, const double seconds[CLV_SIDES]);
/* Seconds by the curve and by a timing, which were taken at different moments: between the two, or the
 * timing's where they differ by more than a machine does from one moment to the next. */
double clv_shape_between(double by_curve_s, double timed_s);

/* Seconds of both sides: by the shape, or (NULL) by the curve and what calls have shown since. */
void clv_kind_predict(const clv_kind *kind, const clv_shape *shape, double work,
                      double seconds[CLV_SIDES]);
/* The side for a call of which these seconds are predicted; a side that such calls went to before is left
 * for a clear gain only. `first_s`: what the device's first call in this process would still add. */
clv_side clv_kind_choose(const clv_kind *kind, const clv_shape *shape, double work,
                         const double seconds[CLV_SIDES], double first_s);
/* Where the call goes, `chosen` or, now and then, the other side: nothing is heard of that one meanwhile,
 * and a machine does not stay as it was. */
clv_side clv_shape_turn(clv_shape *shape, clv_side chosen, double now);
/* What was tried there was not done there: not again in this process. */
void clv_shape_failed(clv_shape *shape);

/* A call went to that side; NULL as above. */
void clv_kind_went(clv_kind *kind, const clv_shape *shape, double work, clv_side side,
                   const double seconds[CLV_SIDES]);
/* It took `seconds` until `now` where `predicted` was said. */
void clv_kind_saw(clv_kind *kind, clv_shape *shape, double work, clv_side side, double predicted,
                  double seconds, double now);

/* "2 9ae16a3b2f90404f:1.2e-06:3.1e-05 ..."; a text of another version has no shapes. */
void clv_shapes_read(const char *text, clv_kind *kind);
void clv_shapes_write(const clv_kind *kind, char *text, size_t room);

#endif

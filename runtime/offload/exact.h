/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose sides are close, by their exact shape: what both took when just that was timed. Between
 * the points of a curve a few per cent are guessed, which is too much where the sides are alike. Pure:
 * times are handed in. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_EXACT_H
#define CLEAVE_RUNTIME_OFFLOAD_EXACT_H

#include "runtime/offload/offload.h"

enum { CLV_EXACT_SHAPES = 16, CLV_EXACT_WAITING = 4, CLV_EXACT_TEXT = 16 + CLV_EXACT_SHAPES * 48 };

typedef struct clv_exact {
    uint64_t name; /* 0: free */
    double host_s, device_s;
    double lean[2];        /* logarithm of how many times longer calls take than that */
    double usual[2];       /* what that was in some seconds of calls */
    double heard[2];       /* when a call there taught last, on the clock of who tells; 0: never */
    double told;           /* when calls left a side and `usual` was told so */
    double faded;          /* when `lean` was last looked through, by that clock */
    clv_side last;         /* that a call of this shape was found to be faster on */
    unsigned used;         /* when, by the table's count */
    clv_side now;          /* where calls go at present, for a time and number of calls: */
    double row_s, ended;   /* the latest one, on the clock of who tells */
    int row;               /* of those that taught */
    bool trying;           /* the side that is not `last`, for some calls */
    double tried_s;        /* of such calls */
    bool deaf;             /* the latest of them taught nothing: pauses are the rule */
    int confirmed;         /* of them, in a row and apart, that found that side slower, */
    double asked;          /* the latest one then */
    double wait_s, left_s; /* until that is done again, in seconds of calls */
} clv_exact;

/* Of one kind of call. */
typedef struct clv_exacts {
    clv_exact at[CLV_EXACT_SHAPES];
    struct {
        uint64_t name;
        double spent_s;           /* by calls so far */
    } waiting[CLV_EXACT_WAITING]; /* until timing them is worth it */
    double timed_s;               /* what timing took in this process */
    unsigned uses;
} clv_exacts;

/* Of a call's shape; never 0. */
uint64_t clv_exact_name(const clv_offload_request *request);

/* What a curve says of a call is not to be trusted: the sides are close, and it is long enough to
 * matter, short enough to be timed. */
bool clv_exact_doubts(double host_s, double device_s);

/* Neither is what it says of calls that are as close and too long to be timed once more: their own
 * times tell soon. */
bool clv_exact_follows(double host_s, double device_s);

/* NULL: nothing is known of that shape. */
clv_exact *clv_exact_find(clv_exacts *exacts, uint64_t name);

/* Whether timing the shape is worth it: its calls, with one of `next_s`, took about as long; `asked`:
 * somebody wants to know now. Never beyond what a process spends on a kind. */
bool clv_exact_is_due(const clv_exacts *exacts, uint64_t name, double next_s, bool asked);
/* A call of a shape that is not timed yet took that long. Of many shapes, who took least is forgotten. */
void clv_exact_waits(clv_exacts *exacts, uint64_t name, double seconds);

/* Seconds of a side by both, which were looked at at different moments, and a machine may be slower for
 * seconds at a time: between them. The timing's alone where they are apart by more than such a mood. */
double clv_exact_between(double by_curve_s, double timed_s);

/* Both sides' times; the shape that was not used for longest makes room. */
clv_exact *clv_exact_put(clv_exacts *exacts, uint64_t name, double host_s, double device_s);

void clv_exact_predict(const clv_exact *exact, double *host_s, double *device_s);

/* What a side showed at last counts less and less once it is not heard of, by a third in 2 s: a neighbour
 * who slowed it down may be gone. What it showed in the long run takes its place, and half of what is
 * unusual with the other side at present: both were timed in one mood of the machine. */
void clv_exact_fade(clv_exact *exact, double now);

/* The side that a call goes to where `chosen` is predicted to be done first. Of the other side nothing is
 * heard meanwhile, and a machine does not stay as it is: so now and then some calls go there, for 15 ms.
 * After 0.04 to 0.15 s of calls at first, the closer the sides the sooner (so that it costs 8 % at most),
 * and twice as long after each time that changed nothing, 4 s at most. After 30 calls where the side was
 * not heard of for 5 s by the clock; longer where it is more than 10 % slower, and twice as long each
 * time, seconds apart, that it was found so, 160 s at most. Never where a call takes 50 ms on either
 * side; given up after 60 ms, where the side is clearly slower, and at a pause once five calls
 * taught. */
clv_side clv_exact_turn(clv_exact *exact, clv_side chosen, double now);

/* A call on that side took `seconds` until `now`, all its operands having lain with the host. False: it is
 * no lesson, as its threads may be waking up: the side was not asked before it for 10 ms of calls, or not
 * since a pause. Where pauses are the rule, one such call in a while is one. */
bool clv_exact_saw(clv_exact *exact, clv_side side, double predicted, double seconds, double now);

/* What calls showed on the whole goes into the figures, which were timed in a tenth of a second. False:
 * nothing that is worth noting. */
bool clv_exact_settle(clv_exacts *exacts);

/* What was tried there was not done there: not soon again. */
void clv_exact_failed(clv_exact *exact);

/* "1 9ae16a3b2f90404f:1.2e-06:3.1e-05 ..."; what is not of this version or no such text is no shape. */
void clv_exact_read(const char *text, clv_exacts *exacts);
void clv_exact_write(const clv_exacts *exacts, char *text, size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the balancer share; nobody else includes it. balance.c is the state machine;
 * adaptive.c, rules.c and pool.c decide who gets what, on the forecasts of
 * plan.c; report.c says why. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_STATE_H
#define CLEAVE_RUNTIME_JOB_BALANCE_STATE_H

#include "runtime/job/balance/balance.h"
#include "runtime/job/balance/book.h"
#include "runtime/job/balance/speed.h"

#include <math.h>

typedef enum clv_phase {
    CLV_PHASE_NEW,    /* not admitted yet */
    CLV_PHASE_SETUP,  /* admitted, its first chunk not asked for yet */
    CLV_PHASE_ACTIVE, /* asks for chunks */
    CLV_PHASE_OUT,    /* lost, failed, or of no use: for good */
} clv_phase;

/* Where a member of a pool stands that might be better than the one that works. */
typedef enum clv_trial {
    CLV_TRIAL_NONE,    /* works, or is not in question */
    CLV_TRIAL_WARM_UP, /* its first chunk, beside the owner's: not measured */
    CLV_TRIAL_READY,   /* wants the cores to itself for one measured chunk */
    CLV_TRIAL_RUNNING, /* that chunk is in flight */
    CLV_TRIAL_JUDGED,  /* lost against the owner */
} clv_trial;

typedef enum clv_verdict {
    CLV_VERDICT_NONE,     /* nothing was asked yet */
    CLV_VERDICT_WORKS,    /* took a chunk */
    CLV_VERDICT_TOO_LATE, /* would end its chunk after the others have done everything */
    CLV_VERDICT_NO_GAIN,  /* would shorten the job by less than it may cost */
    CLV_VERDICT_SETUP,    /* its set-up takes longer than the others need */
    CLV_VERDICT_POOL,     /* another member of its pool works */
    CLV_VERDICT_SLOWER,   /* likewise, after both were measured */
    CLV_VERDICT_NO_WORK,  /* no units were left for it */
    CLV_VERDICT_MEMORY,   /* not even the smallest chunk fits */
    CLV_VERDICT_FAILED,   /* two failures in a row */
    CLV_VERDICT_LOST,     /* gone, reported by its driver */
    CLV_VERDICT_HUNG,     /* gone, found by the tick */
} clv_verdict;

typedef struct clv_member {
    clv_balance_device given;
    clv_speed speed;
    clv_phase phase;
    size_t limit;    /* largest chunk: memory, batch; a multiple of align or all units */
    size_t share;    /* static: units still meant for it */
    bool asked;      /* at least once */
    bool declined;   /* its last question was answered with WAIT: others do not count on it */
    bool ever_lent;  /* it took a chunk */
    double asked_at; /* its last question */
    double told_at;  /* the answer before this one, and the time it said to wait for; 0: none */
    double wait_until;
    double admitted_at; /* SETUP: since when */

    unsigned in_flight;
    unsigned failures; /* in a row */
    double busy_since; /* while in_flight */
    double last_end;   /* of a lease; the next chunk in its queue starts then */

    size_t owner; /* the device of its pool that works; itself outside a pool */
    clv_trial trial;
    unsigned trials;  /* measured chunks so far */
    double trial_end; /* READY, RUNNING: when the owner stops waiting for it; 0: not yet */
    bool suspended;   /* it owned its pool, but did not end its chunk, or did not come */

    clv_verdict verdict;
    double with_s, without_s; /* the numbers behind it: seconds from then on */
    clv_balance_stats stats;
} clv_member;

typedef struct clv_lease {
    unsigned id;
    size_t device;
    size_t first, count;
    double at;         /* when it was given */
    double expected_s; /* as predicted then; <= 0: unknown */
    double starts;     /* by the last forecast: its turn in the queue, */
    double due;        /* its end if all is well, */
    double ends;       /* and with allowance once it is overdue; infinity: unknown */
    bool speculative;
    bool doomed; /* some of its units were committed by another: it cannot commit any more */
} clv_lease;

struct clv_balance {
    clv_balance_job job;
    double start;
    size_t device_count;
    clv_member devices[CLV_BALANCE_MAX_DEVICES];
    clv_lease *leases; /* live ones, oldest first */
    size_t lease_count;
    clv_book book;
    unsigned next_id;
    double finished_at; /* when the last unit was committed */
    double event_at;    /* the last time anything ended */
};

/* Seconds in which the devices' threads should have asked for the first time. */
#define CLV_BALANCE_MUSTER_S 2e-3

/* ---- plan.c: what will be when ----------------------------------------------------- */

typedef struct clv_forecast {
    double free_at[CLV_BALANCE_MAX_DEVICES]; /* its queue is empty; infinity: do not count on it */
    double uncertain;  /* units in leases that nobody can predict: they may have to be done again */
    size_t unmeasured; /* devices at work whose speed is unknown */
} clv_forecast;

typedef struct clv_plan {
    double finish;                         /* of everything; infinity: nobody can be counted on */
    double share[CLV_BALANCE_MAX_DEVICES]; /* of the free units */
    double rate[CLV_BALANCE_MAX_DEVICES];  /* units/s with the cost of chunks; 0: not in the plan */
    double total_rate;
    size_t fastest; /* of those in the plan; device_count: nobody */
} clv_plan;

enum { CLV_NOBODY = CLV_BALANCE_MAX_DEVICES };

/* Predicts the end of every lease (lease->ends) and of every queue. */
clv_forecast clv_balance_forecast(clv_balance *balance, double now);

/* The split of `units` in which all end together, without `without` (or CLV_NOBODY); `asking`
 * takes part even when it declined before. */
clv_plan clv_balance_plan(const clv_balance *balance, const clv_forecast *forecast, double units,
                          size_t asking, size_t without, double now);

/* It never asked, and nobody counts on it until it does: its thread is busy with something else. */
bool clv_balance_absent(const clv_balance *balance, size_t device, double now);

/* A set-up that goes well; forecasts take one that does not. */
double clv_balance_hoped_setup(const clv_balance *balance, size_t device);

double clv_balance_rate(const clv_balance *balance, size_t device);     /* 0: unknown */
double clv_balance_shortest(const clv_balance *balance, size_t device); /* efficient chunk, units */
double clv_balance_longest(const clv_balance *balance, size_t device);  /* chunk by time, units */

/* ---- rules.c: static, dynamic, hguided --------------------------------------------- */

typedef struct clv_choice {
    size_t first, count; /* count 0: wait */
    bool speculative;
    double until;
} clv_choice;

clv_choice clv_balance_wait(double until);

/* A chunk of about `wanted` units from the beginning of the segment, within all limits. */
size_t clv_balance_cut(const clv_balance *balance, size_t device, double wanted,
                       const clv_segment *segment);
clv_choice clv_balance_by_rule(const clv_balance *balance, size_t device);

/* static: gives what is free and meant for nobody to those that take part. */
void clv_balance_share_out(clv_balance *balance);

/* Notes why the device does what it does; the times are absolute. */
void clv_balance_judge(clv_balance *balance, size_t device, clv_verdict verdict, double with,
                       double without, double now);

/* ---- pool.c: of devices that share their cores one works --------------------------- */

typedef enum clv_turn {
    CLV_TURN_WORK,
    CLV_TURN_WAIT,
    CLV_TURN_WARM_UP, /* a chunk whose time says nothing */
    CLV_TURN_TRIAL,   /* a chunk to be measured against the owner */
} clv_turn;

/* Gives every pool whose owner is gone (or not chosen yet) the best of its members. */
void clv_balance_choose_owners(clv_balance *balance);

/* Is it still to be tried against the owner of its pool? */
bool clv_balance_challenges(const clv_balance *balance, size_t device);

/* `remaining_s`: what the job still needs as things stand; *until for WAIT. */
clv_turn clv_balance_pool_turn(clv_balance *balance, size_t device, double remaining_s, double now,
                               double *until);

/* A trial: its size; it was lent; its chunk ended. */
double clv_balance_trial_units(const clv_balance *balance, size_t device, double remaining_s);
void clv_balance_trial_begin(clv_balance *balance, size_t device, size_t units, double remaining_s,
                             double now);
void clv_balance_trial_judge(clv_balance *balance, size_t device, double now);

/* Longest chunk, in seconds, that keeps nobody of the pool waiting: for a trial, or because it owned
 * the pool before and may come back. */
double clv_balance_pool_cap(const clv_balance *balance, size_t device, double remaining_s,
                            double now);

/* A member that does not challenge: when to ask whether the owner fails; <= now: it owns. */
double clv_balance_reserve_until(clv_balance *balance, size_t device, double now);

/* Owners that were given up and came back own again if they are better, as soon as the one that
 * works has nothing in flight. True: that one takes nothing more. */
bool clv_balance_pool_settle(clv_balance *balance, size_t device);

/* ---- adaptive.c: the default ------------------------------------------------------- */

clv_choice clv_balance_adapt(clv_balance *balance, size_t device, double now);

/* When to set the device up: <= now: at once; infinity: something else must happen first. */
double clv_balance_admit_at(clv_balance *balance, size_t device, double now);

#endif

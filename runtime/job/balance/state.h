/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the types and functions that the balancer's files share; no other file includes this one. balance.c is the
 * state machine; adaptive.c, rules.c and pool.c decide who gets which units, based on the forecasts of
 * plan.c; report.c explains the decisions. */
#ifndef CLEAVE_RUNTIME_JOB_BALANCE_STATE_H
#define CLEAVE_RUNTIME_JOB_BALANCE_STATE_H

#include "runtime/job/balance/balance.h"
#include "runtime/job/balance/book.h"
#include "runtime/job/balance/speed.h"

#include <math.h>

typedef enum clv_phase {
    CLV_PHASE_NEW,    /* not admitted yet */
    CLV_PHASE_SETUP,  /* admitted, but has not asked for its first chunk yet */
    CLV_PHASE_ACTIVE, /* asks for chunks */
    CLV_PHASE_OUT,    /* out for good: lost, failed, or of no use */
} clv_phase;

/* The state of the trial in which a member of a pool is compared with the pool's owner. */
typedef enum clv_trial {
    CLV_TRIAL_NONE,    /* owns the pool, or needs no trial */
    CLV_TRIAL_WARM_UP, /* does its first chunk, beside the owner's; it is not measured */
    CLV_TRIAL_READY,   /* waits to have the cores to itself for one measured chunk */
    CLV_TRIAL_RUNNING, /* its measured chunk is in flight */
    CLV_TRIAL_JUDGED,  /* lost against the owner */
} clv_trial;

typedef enum clv_verdict {
    CLV_VERDICT_NONE,     /* nothing was asked yet */
    CLV_VERDICT_WORKS,    /* took a chunk */
    CLV_VERDICT_TOO_LATE, /* would end its chunk after the other devices have done everything */
    CLV_VERDICT_NO_GAIN,  /* would shorten the job by less than a late chunk may cost */
    CLV_VERDICT_SETUP,    /* its set-up takes longer than the other devices need for all work */
    CLV_VERDICT_POOL,     /* another member of its pool works */
    CLV_VERDICT_SLOWER,   /* another member works, after both were measured */
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
    size_t limit;    /* largest chunk by memory and batch: a multiple of align, or all units */
    size_t share;    /* static schedule: units still assigned to it */
    bool asked;      /* it has asked at least once */
    bool declined;   /* was last told to WAIT: plans for other devices do not count on it */
    bool ever_lent;  /* it has taken a chunk */
    double asked_at; /* time of its last question */
    double told_at;  /* time of the last answer; wait_until: end of the wait it ordered, or 0 */
    double wait_until;
    double admitted_at; /* SETUP: time of admission */

    unsigned in_flight;
    unsigned failures; /* failures in a row */
    double busy_since; /* while in_flight: when it became busy */
    double last_end;   /* when its last lease ended, and the next chunk in its queue began */

    size_t owner; /* the member of its pool that works; the device itself outside a pool */
    clv_trial trial;
    unsigned trials;  /* measured chunks so far */
    double trial_end; /* READY, RUNNING: when the owner stops waiting for it; 0: not set */
    bool suspended;   /* owned its pool, but did not end its chunk or never asked for one */

    clv_verdict verdict;
    double with_s, without_s; /* times behind the verdict, in seconds from the verdict on */
    clv_balance_stats stats;
} clv_member;

typedef struct clv_lease {
    unsigned id;
    size_t device;
    size_t first, count;
    double at;         /* when it was given */
    double expected_s; /* predicted seconds at that time; <= 0: unknown */
    double starts;     /* from the last forecast: when its turn in the queue comes, */
    double due;        /* when it ends if all is well, */
    double ends;       /* and when it ends with an allowance once overdue; infinity: unknown */
    bool speculative;
    bool doomed; /* another device committed some of its units: this lease cannot commit any more */
} clv_lease;

struct clv_balance {
    clv_balance_job job;
    double start;
    size_t device_count;
    clv_member devices[CLV_BALANCE_MAX_DEVICES];
    clv_lease *leases; /* the live ones, oldest first */
    size_t lease_count;
    clv_book book;
    unsigned next_id;
    double finished_at; /* when the last unit was committed */
    double event_at;    /* the last time any lease ended */
};

/* seconds within which each device's thread should have asked for the first time */
#define CLV_BALANCE_MUSTER_S 2e-3

/* ---- plan.c: forecasts and plans --------------------------------------------------- */

enum { CLV_BALANCE_PROBES = 4096 }; /* 1 / PROBES of a job are units for a first try */

/* Returns the largest chunk by memory and batch, and by time if a chunk must not take long. */
size_t clv_balance_limit(const clv_balance *balance, size_t device);
typedef struct clv_forecast {
    double free_at[CLV_BALANCE_MAX_DEVICES]; /* when its queue is empty; infinity: not counted on */
    double uncertain;  /* units in leases with unpredictable ends: may have to be done again */
    size_t unmeasured; /* devices at work whose speed is unknown */
} clv_forecast;

typedef struct clv_plan {
    double finish;                         /* end of the job; infinity: no device counts */
    double share[CLV_BALANCE_MAX_DEVICES]; /* of the free units, for each device */
    double rate[CLV_BALANCE_MAX_DEVICES];  /* units/s, fixed costs of chunks included; 0: out */
    double total_rate;
    size_t fastest; /* fastest device in the plan; CLV_NOBODY: none */
} clv_plan;

enum { CLV_NOBODY = CLV_BALANCE_MAX_DEVICES };

/* Predicts when every lease ends (and sets its `starts`, `due` and `ends`) and when every queue is empty. */
clv_forecast clv_balance_forecast(clv_balance *balance, double now);

/* Splits `units` so that all devices end together. The device `without` (or CLV_NOBODY) takes no part;
 * `asking` does even if it declined before. */
clv_plan clv_balance_plan(const clv_balance *balance, const clv_forecast *forecast, double units,
                          size_t asking, size_t without, double now);

/* Returns whether a device should have asked for the first time by now but has not. Its thread is busy with something
 * else, and no plan counts on the device until it asks. */
bool clv_balance_absent(const clv_balance *balance, size_t device, double now);

/* Returns the seconds of a set-up that goes well; forecasts assume a set-up that goes badly. */
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

/* Returns the size of a chunk of about `wanted` units from the beginning of the segment, within all
 * limits. */
size_t clv_balance_cut(const clv_balance *balance, size_t device, double wanted,
                       const clv_segment *segment);
clv_choice clv_balance_by_rule(const clv_balance *balance, size_t device);

/* static: assigns the free units that are not assigned yet to the devices that take part. */
void clv_balance_share_out(clv_balance *balance);

/* Notes the verdict on a device, with the times at which the job ends `with` and `without` the device. These times
 * and `now` are absolute. */
void clv_balance_judge(clv_balance *balance, size_t device, clv_verdict verdict, double with,
                       double without, double now);

/* ---- pool.c: of devices that share their cores one works --------------------------- */

typedef enum clv_turn {
    CLV_TURN_WORK,
    CLV_TURN_WAIT,
    CLV_TURN_WARM_UP, /* a chunk that is not measured */
    CLV_TURN_TRIAL,   /* a chunk to be measured against the owner */
} clv_turn;

/* Makes the best member the owner of every pool whose owner is gone or not chosen yet. */
void clv_balance_choose_owners(clv_balance *balance);

/* Tells whether the device is still to be tried against the owner of its pool. */
bool clv_balance_challenges(const clv_balance *balance, size_t device);

/* Returns what a member of a pool may do now. `remaining_s`: seconds that the job still takes as things stand. Sets
 * *until for WAIT. */
clv_turn clv_balance_pool_turn(clv_balance *balance, size_t device, double remaining_s, double now,
                               double *until);

/* The steps of a trial: clv_balance_trial_units returns the size of its chunk in units, clv_balance_trial_begin notes
 * that the chunk was lent, and clv_balance_trial_judge decides after the chunk has ended. */
double clv_balance_trial_units(const clv_balance *balance, size_t device, double remaining_s);
void clv_balance_trial_begin(clv_balance *balance, size_t device, size_t units, double remaining_s,
                             double now);
void clv_balance_trial_judge(clv_balance *balance, size_t device, double now);

/* Returns the longest chunk, in seconds, that keeps no member of the pool waiting: neither for its
 * trial, nor because it owned the pool before and may come back. */
double clv_balance_pool_cap(const clv_balance *balance, size_t device, double remaining_s,
                            double now);

/* For a member that does not challenge the owner: returns when the member should check again whether the owner fails.
 * A time <= now means that the member is now the owner. */
double clv_balance_reserve_until(clv_balance *balance, size_t device, double now);

/* Lets owners that were given up and came back own the pool again if they are better, as soon as the working member
 * has nothing in flight. Returns true when the working member must take no more units. */
bool clv_balance_pool_settle(clv_balance *balance, size_t device);

/* ---- adaptive.c: the default ------------------------------------------------------- */

clv_choice clv_balance_adapt(clv_balance *balance, size_t device, double now);

/* Returns when to set up the device. A time <= now means at once; infinity means that something else must happen
 * first. */
double clv_balance_admit_at(clv_balance *balance, size_t device, double now);

#endif

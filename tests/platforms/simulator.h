/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that exist only as numbers, on a clock that only jumps: drives runtime/job/balance/ as the
 * dispatcher does (admit, then next, done and failed, and tick) and checks every answer. */
#ifndef CLEAVE_TESTS_SIMULATOR_H
#define CLEAVE_TESTS_SIMULATOR_H

#include "runtime/job/balance/balance.h"

enum { SIM_DEVICES = 8, SIM_PACES = 8, SIM_BLOCKS = 256 };

typedef struct sim_pace {
    double at, factor; /* from then on it runs at so much of its speed; 0: it stands still */
} sim_pace;

typedef struct sim_device {
    clv_balance_device told; /* what the balancer is told */

    /* what is true */
    double units_per_s, chunk_s, setup_s;
    double late_s;  /* before that it asks nothing: its thread is busy with something else */
    double first_s; /* what its first chunk takes longer; that one is not steady */
    double overlap; /* part of chunk_s hidden behind the chunk before, where one is queued */
    double noise;   /* relative deviation of the speed over stretches of the units */
    double jitter;  /* relative deviation of a chunk, whatever its units */
    size_t room;    /* more units than that do not fit; 0: any */
    double failing; /* probability that a chunk fails */
    double dies_at; /* infinity: never */
    bool silently;  /* it then hangs instead of reporting */
    sim_pace paces[SIM_PACES]; /* ascending; full speed before the first */
    size_t pace_count;
} sim_device;

typedef struct sim_scenario {
    uint64_t seed; /* of noise, failures and the order of questions */
    clv_balance_job job;
    double uneven; /* units differ in cost, on all devices alike: 0.5 means by half, smoothly */
    size_t device_count;
    sim_device devices[SIM_DEVICES];
    unsigned taking_part; /* bit i: device i is there; 0: all */
    size_t death_event;   /* 0: none; at the k-th event `death_device` dies, as its entry says */
    size_t death_device;
} sim_scenario;

typedef struct sim_result {
    const char *fault; /* what the balancer did wrong; NULL: nothing */
    bool finished, stuck;
    double makespan; /* until the last unit was committed */
    double drained;  /* until the last chunk of a living device was back, committed or not */
    double longest;  /* chunk that was committed, in seconds */
    size_t chunks, speculative, dropped, hung;
    size_t events, questions; /* questions: calls of admit and next */
    clv_balance_stats stats[SIM_DEVICES];
    double imbalance, efficiency;
    char why[SIM_DEVICES][200]; /* explanations; only where `sim_trace` is set */
} sim_result;

extern bool sim_trace; /* print every event */

sim_result sim_run(const sim_scenario *scenario);

/* Seconds that a schedule can hardly beat: from the end of their set-up all devices work without a
 * pause in the largest useful chunks, of a pool the best one. */
double sim_ideal(const sim_scenario *scenario);

/* The factor at time t, and when it changes next, on a clock on which the job begins at `start`. */
double sim_pace_of(const sim_device *device, double start, double t);
double sim_next_pace(const sim_device *device, double start, double t);

/* ---- random scenarios ----------------------------------------------------------------------- */

typedef struct sim_traits {
    bool warm;          /* everything is known, within a few per cent */
    bool stale;         /* some of what is told is wrong, up to ten times */
    bool uneven;        /* units differ in cost */
    bool disturbed;     /* speeds change on the way, devices stall */
    bool faulty;        /* devices die, chunks fail, memory is smaller than told */
    bool best_is_sound; /* the best single device does none of that */
} sim_traits;

/* The same scenario for the same seed, for ever. */
sim_scenario sim_random(uint64_t seed, sim_traits *traits);

/* Prints what a person needs to understand a failure. */
void sim_print(const sim_scenario *scenario, const sim_result *result);

#endif

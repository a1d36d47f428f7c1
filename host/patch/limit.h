/* SPDX-License-Identifier: Apache-2.0 */
/* Varies the flux of many planets at once until each planet is just detected. */
#ifndef CLEAVE_HOST_PATCH_LIMIT_H
#define CLEAVE_HOST_PATCH_LIMIT_H

#include "host/patch/calibrate.h"
#include "host/patch/trial.h"

/* A planet whose limiting flux is searched. S/N and flux have the units of the maps. */
typedef struct clv_sought {
    double x, y, target;
    /* the flux lies between low and high; high is infinite until a trial has exceeded the target */
    double low, low_snr, high, high_snr;
    /* flux of the next trial; at the end the result, infinite if no flux is high enough */
    double flux;
    double without;   /* b / a without a planet */
    double recovered; /* b / a with the planet of the last trial */
    double root;      /* sqrt(a) without a planet */
    int side;         /* the end of the interval that the last trial replaced */
    bool done;
} clv_sought;

enum { CLV_LIMIT_RINGS = 8 };

typedef struct clv_limits {
    clv_context *context;
    const clv_paco_plan *plan;
    clv_calibration noise;
    const clv_contrast_options *wanted;
    double fwhm, snr;
    clv_progress *progress;
    void *user;
    clv_report *report;
    size_t settled, total; /* numbers of planets, for the progress callback */
    /* by separation: how much larger a planet's S/N is in a trial than in a search; see verify.c */
    double ring[CLV_LIMIT_RINGS], shortfall[CLV_LIMIT_RINGS];
    size_t rings;
    const bool *masked; /* pixels near known companions */
} clv_limits;

/* A clv_progress callback that reports `settled` and `total` of the clv_limits in `user`. */
int clv_limit_progress(const char *job, size_t done, size_t total, void *user);

/* Runs trials without planets and stores the noise and sqrt(a) of every position. */
clv_status clv_limit_look(clv_limits *l, clv_sought *s, size_t count);
/* Prepares a search for the S/N `target`. The first flux is 1.5 times the flux that would reach the target if the
 * planet lost nothing. `both`: the noise at the position is ignored. */
void clv_limit_begin(clv_sought *s, double target, bool both);
/* Finds the flux of every planet that clv_limit_begin has prepared. `both`: the noise at its position cancels. */
clv_status clv_limit_seek(clv_limits *l, clv_sought *s, size_t count, bool both);

/* clv_limit_threshold returns the raw S/N that corresponds to the requested S/N for the noise alone; clv_limit_target
 * returns the raw S/N that a trial must reach. clv_limit_known returns whether (x, y) is within one FWHM of a known
 * companion. */
double clv_limit_threshold(const clv_limits *l, double x, double y);
double clv_limit_target(const clv_limits *l, double x, double y);
bool clv_limit_known(const clv_limits *l, double x, double y);

/* ---- verify.c ---- */

/* Measures `shortfall` at separations from `from` to `to` pixels. */
clv_status clv_limit_verify(clv_limits *l, const clv_paco_options *options, double from, double to);

#endif

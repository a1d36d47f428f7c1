/* SPDX-License-Identifier: Apache-2.0 */
/* Varies the flux of many planets at once until each is just detected. */
#ifndef CLEAVE_HOST_PATCH_LIMIT_H
#define CLEAVE_HOST_PATCH_LIMIT_H

#include "host/patch/calibrate.h"
#include "host/patch/trial.h"

/* A planet whose limiting flux is sought. S/N and flux have the units of the maps. */
typedef struct clv_sought {
    double x, y, target;
    double low, low_snr, high,
        high_snr;     /* the flux lies between low and high; high is infinite until it is known */
    double flux;      /* flux of the next trial; in the end the result, infinite if there is none */
    double without;   /* b / a without a planet */
    double recovered; /* b / a with it, of the last trial */
    double root;      /* sqrt(a) without a planet */
    int side;         /* which end of the interval the last trial replaced */
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
    /* by how much a planet's S/N in a trial exceeds its S/N in a search, by separation; see verify.c */
    double ring[CLV_LIMIT_RINGS], shortfall[CLV_LIMIT_RINGS];
    size_t rings;
    const bool *masked; /* pixels near known companions */
} clv_limits;

/* A clv_progress callback that reports `settled` and `total` of `user`, a clv_limits. */
int clv_limit_progress(const char *job, size_t done, size_t total, void *user);

/* Runs trials without planets and stores the noise and sqrt(a) of every position. */
clv_status clv_limit_look(clv_limits *l, clv_sought *s, size_t count);
/* Prepares a search for the S/N `target`. The first flux is 1.5 times the one that would reach it if the planet lost
 * nothing. `both`: the noise at the position does not count. */
void clv_limit_begin(clv_sought *s, double target, bool both);
/* Finds the flux of every planet that clv_limit_begin has prepared. `both`: the noise at its position cancels. */
clv_status clv_limit_seek(clv_limits *l, clv_sought *s, size_t count, bool both);

/* The raw S/N that corresponds to the requested one: clv_limit_threshold accounts for the noise alone, and
 * clv_limit_target returns the S/N that a trial must reach. clv_limit_known: is (x, y) within one FWHM of a known
 * companion? */
double clv_limit_threshold(const clv_limits *l, double x, double y);
double clv_limit_target(const clv_limits *l, double x, double y);
bool clv_limit_known(const clv_limits *l, double x, double y);

/* ---- verify.c ---- */

/* Measures `shortfall` at separations from `from` to `to`. */
clv_status clv_limit_verify(clv_limits *l, const clv_paco_options *options, double from, double to);

#endif

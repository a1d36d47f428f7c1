/* SPDX-License-Identifier: Apache-2.0 */
/* Planets that are brighter or fainter until they are just detected, many at once. */
#ifndef CLEAVE_HOST_PATCH_LIMIT_H
#define CLEAVE_HOST_PATCH_LIMIT_H

#include "host/patch/calibrate.h"
#include "host/patch/trial.h"

/* A planet whose flux is sought; S/N and flux in the units of the maps. */
typedef struct clv_sought {
    double x, y, target;
    double low, low_snr, high,
        high_snr;     /* the flux lies between; high is infinite before it is known */
    double flux;      /* of the next trial; at last the result, infinite where there is none */
    double without;   /* b / a without a planet */
    double recovered; /* b / a with it, of the last trial */
    double root;      /* sqrt(a) without a planet */
    int side;         /* which end the last trial replaced */
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
    size_t settled, total; /* planets, for the progress */
    /* by how much the S/N of a trial's planet exceeds what a search gives it, by separation; see verify.c */
    double ring[CLV_LIMIT_RINGS], shortfall[CLV_LIMIT_RINGS];
    size_t rings;
    const bool *masked; /* pixels near known companions */
} clv_limits;

/* A clv_progress with the numbers of `user`, a clv_limits. */
int clv_limit_progress(const char *job, size_t done, size_t total, void *user);

/* Noise and a: what the places hold without planets. */
clv_status clv_limit_look(clv_limits *l, clv_sought *s, size_t count);
/* Ready for a search of the S/N `target`, from a flux that is worth it if nothing of the planet were lost. */
void clv_limit_begin(clv_sought *s, double target, bool both);
/* Finds the flux of every planet that has begun; `both`: without the noise at its place. */
clv_status clv_limit_seek(clv_limits *l, clv_sought *s, size_t count, bool both);

/* The raw S/N that counts as the one that is asked for: by the noise alone, and as a trial has to have it. */
double clv_limit_threshold(const clv_limits *l, double x, double y);
double clv_limit_target(const clv_limits *l, double x, double y);
bool clv_limit_known(const clv_limits *l, double x, double y);

/* ---- verify.c ---- */

/* Measures `shortfall` between two separations. */
clv_status clv_limit_verify(clv_limits *l, const clv_paco_options *options, double from, double to);

#endif

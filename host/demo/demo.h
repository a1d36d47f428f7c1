/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the interface of a workload in `cleave demo`: one file with one function, and one row in demo.c's table. */
#ifndef CLEAVE_HOST_DEMO_DEMO_H
#define CLEAVE_HOST_DEMO_DEMO_H

#include "base/text.h"

#include <cleave/job.h>

typedef struct demo_stage {
    clv_context *context;
    const char *folder; /* an existing folder for pictures and inputs */
    clv_report *report; /* of all workloads */
    /* between clv_prepare_begin and clv_prepare_end: calls only register their kernels */
    bool preparing;
} demo_stage;

typedef struct demo_row {
    char input[48], found[48]; /* cells of the table */
    double seconds;            /* on warm devices, with compiled kernels */
    double reference_s;        /* seconds for the same work in plain C */
    char by[96];               /* what ran the workload, if the report has no shares */
    bool ok;                   /* the hidden answer was found, in agreement with the reference */
    clv_text notes;            /* lines for below the table, after the name */
} demo_row;

/* Makes an input, runs it on the context's devices until they are warm (the last run writes the report), checks the
 * results, and writes pictures and inputs to the folder. A disagreement is not a failure: it only sets row->ok to
 * false. While kernels are prepared, the workload makes the input and makes each of its calls once. */
typedef clv_status demo_workload(const demo_stage *stage, demo_row *row);

/* Iterates over the runs of a workload. The first one warms up the device; row->seconds becomes the shortest time of
 * the later runs.
 *
 *     for (demo_runs r = { 0 }; demo_next_run(&r, row);)
 *         CLV_TRY(compute(..., r.last ? report : NULL)); */
typedef struct demo_runs {
    int made;
    bool last;
    double started, spent;
} demo_runs;
bool demo_next_run(demo_runs *runs, demo_row *row);

/* Converts the status of a call that only prepared kernels: it is no failure that the call computed nothing. */
clv_status demo_prepared(clv_status status);

/* An operation that chooses between host and device. */
typedef clv_status demo_operation(clv_context *context, void *user);

/* Runs the operation once, on a device if there is one. */
clv_status demo_on_devices(clv_context *context, demo_operation *once, void *user);
/* Runs the operation several times on the host and on the device, the device last. Sets reference_s to the host's
 * time, and `seconds` and `by` to the better of the two, which an application's calls choose on their own. */
clv_status demo_both_sides(const demo_stage *stage, demo_operation *once, void *user,
                           demo_row *row);
/* Runs the operation once in plain C. */
clv_status demo_plain(demo_operation *once, void *user);

demo_workload demo_paco, demo_blobs, demo_specfit, demo_transformer, demo_arrays, demo_filter,
    demo_matrices, demo_regression, demo_search, demo_generate;
/* Returns whether a variable names a model; without one, demo_generate does not run. */
bool demo_has_model(void);
/* Returns the path of that model if it cannot be read (errno says why), else NULL. */
const char *demo_lost_model(void);

#endif

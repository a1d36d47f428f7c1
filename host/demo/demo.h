/* SPDX-License-Identifier: Apache-2.0 */
/* What a workload shows in `cleave demo`: one file with one function, one row in demo.c's table. */
#ifndef CLEAVE_HOST_DEMO_DEMO_H
#define CLEAVE_HOST_DEMO_DEMO_H

#include "base/text.h"

#include <cleave/job.h>

typedef struct demo_stage {
    clv_context *context;
    const char *folder; /* exists; for pictures and inputs */
    clv_report *report; /* of all workloads */
    bool preparing; /* between clv_prepare_begin and clv_prepare_end: calls note their kernels */
} demo_stage;

typedef struct demo_row {
    char input[48], found[48]; /* cells of the table */
    double seconds;            /* on devices that are ready, with kernels compiled */
    double reference_s;        /* the same in plain C */
    char by[96];               /* who did it, where there are no shares in the report */
    bool ok;                   /* found what was hidden, and as the reference has it */
    clv_text notes;            /* lines for below the table, behind the name */
} demo_row;

/* Makes an input, runs on the context's devices until they are warm, the last time into the report, checks,
 * and writes its pictures and inputs into the folder. A disagreement is no failure: it is row->ok. While
 * kernels are prepared it makes the input and one call of everything that it is going to call. */
typedef clv_status demo_workload(const demo_stage *stage, demo_row *row);

/* Runs of a workload. The first one warms the device up; row->seconds becomes the best of the others.
 *
 *     for (demo_runs r = { 0 }; demo_next_run(&r, row);)
 *         CLV_TRY(compute(..., r.last ? report : NULL)); */
typedef struct demo_runs {
    int made;
    bool last;
    double started, spent;
} demo_runs;
bool demo_next_run(demo_runs *runs, demo_row *row);

/* What a call is while kernels are prepared: that it computed nothing is no failure. */
clv_status demo_prepared(clv_status status);

/* Calls that choose between host and device. */
typedef clv_status demo_operation(clv_context *context, void *user);

/* Once, on a device where there is one. */
clv_status demo_on_devices(clv_context *context, demo_operation *once, void *user);
/* Several times on both sides, the device last: fills in reference_s, which is the host's time, and as
 * seconds and `by` the better of the two, as calls of an application choose by themselves. */
clv_status demo_both_sides(const demo_stage *stage, demo_operation *once, void *user,
                           demo_row *row);
/* Once in plain C. */
clv_status demo_plain(demo_operation *once, void *user);

demo_workload demo_paco, demo_blobs, demo_specfit, demo_transformer, demo_arrays, demo_filter,
    demo_matrices, demo_regression, demo_generate;
bool demo_has_model(void); /* of demo_generate, which runs only then */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a workload shows in `cleave demo`: one file with one function, one row in demo.c's table. */
#ifndef CLEAVE_HOST_CLI_DEMO_H
#define CLEAVE_HOST_CLI_DEMO_H

#include "base/text.h"

#include <cleave/job.h>

typedef struct demo_row {
    char input[48], found[48], check[48]; /* cells of the table */
    double first_s;     /* with kernels compiled and measured where they were not */
    double seconds;     /* again, on devices that are ready */
    double reference_s; /* the same in plain C on one core */
    char by[96];        /* who did it, where there are no shares in the report */
    bool ok;            /* found what was hidden, and as the reference has it */
    clv_text notes;     /* lines for below the table, behind the name */
} demo_row;

/* Makes an input, runs on the context's devices until they are warm (the last time into `report`), checks, and
 * writes its pictures and inputs into `folder`, which exists. A disagreement is no failure: it is
 * row->ok. */
typedef clv_status demo_workload(clv_context *context, const char *folder, clv_report *report,
                                 demo_row *row);

/* Runs of a workload: the first compiles kernels, and drivers do so again in the next; but nobody waits
 * for that more than twice where they take long.
 *
 *     for (demo_runs r = { 0 }; demo_next_run(&r, row);)
 *         CLV_TRY(compute(..., r.last ? report : NULL));
 *
 * fills in first_s, and seconds: the better one of those that follow. */
typedef struct demo_runs {
    int made;
    bool last;
    double started, spent;
} demo_runs;
bool demo_next_run(demo_runs *runs, demo_row *row);

/* What a workload times. */
typedef clv_status demo_operation(clv_context *context, void *user);

/* On the devices, as that is what the table is about; by whoever can where they fail. */
clv_status demo_on_devices(clv_context *context, demo_operation *once, void *user);
/* So, several times: fills in first_s, seconds (of the last one) and by. */
clv_status demo_turns(clv_context *context, demo_operation *once, void *user, demo_row *row);
/* In plain C. */
clv_status demo_plain(demo_operation *once, void *user, double *seconds);

demo_workload demo_paco, demo_blobs, demo_specfit, demo_transformer, demo_arrays, demo_filter,
    demo_matrices, demo_regression;

#endif

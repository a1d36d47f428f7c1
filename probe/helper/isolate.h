/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one process per driver and reports what it found and how it ended. */
#ifndef CLEAVE_PROBE_ISOLATE_H
#define CLEAVE_PROBE_ISOLATE_H

#include "probe/machine.h"
#include "probe/helper/nest.h"
#include "probe/helper/spawn.h"

/* Finds the helper program to start; if `wanted` is NULL, the installed one. CLV_E_IO if there is none. */
clv_status clv_helper_find(const char *wanted, char *path, size_t capacity);

/* A helper to run: clv_task_prepare, clv_tasks_run, read `child`, clv_task_clear. Tasks must not move between prepare
 * and clear. */
typedef struct clv_task {
    clv_child child;
    const char *argv[9];
    char numbers[3][24]; /* [0] is reserved; the caller may keep its arguments in the others */
    char **environment;
    size_t about; /* for the caller: index of a driver or a device */
} clv_task;

/* Prepares a helper with one driver: `library` as in the .icd file; with NULL the loader finds drivers itself. For
 * `job` and its arguments see probe/helper/child.h; they end at the first NULL. A "check" always builds its kernels
 * anew, unless CLEAVE_CACHE=0 says that results would not be kept. */
clv_status clv_task_prepare(clv_task *task, clv_nest *nest, const char *helper, const char *library,
                            const char *job, const char *first, const char *second);
void clv_task_clear(clv_task *task);
/* Runs all tasks at once. CLV_E_CANCELLED, CLV_E_MEMORY; each task's `child` tells how it ended. */
clv_status clv_tasks_run(clv_task *tasks, size_t count, const clv_patience *patience);

/* Returns whether a helper may have failed for reasons outside the driver: it could not be started, it was killed from
 * outside (by the kernel when memory ran out, or by a limit of CPU time), or this process has limits that are too tight
 * for a driver. */
bool clv_child_was_hindered(const clv_child *child);
/* Returns whether such limits exist: of the address space, CPU time, file size or number of descriptors. */
bool clv_has_tight_limits(void);

/* Returns why a helper gave no answer ("crashed", ...) and writes a sentence about it; NULL if its answer is
 * complete. */
const char *clv_child_failure(const clv_child *child, double timeout_s, char *message,
                              size_t capacity);

/* Appends the drivers that this process's loader would load, without loading any. A driver without file and library
 * stands for whatever the loader finds on its own. */
void clv_isolated_list(clv_machine *machine);

/* Enumerates each listed driver in `wanted` ([icd_count]; NULL: all) in its own helper, all at once; uses the options'
 * helper, timeout and progress. Broken drivers are facts, not errors. CLV_E_IO (no place for the helpers' folders, or
 * no helper), CLV_E_CANCELLED, CLV_E_MEMORY. */
clv_status clv_isolated_ask(clv_machine *machine, const clv_probe_options *options,
                            const bool *wanted);

/* Does both, and collects the facts about the host while the helpers run. */
clv_status clv_isolated_enumerate(clv_machine *machine, const clv_probe_options *options);

/* Reads a helper's answer into the machine, with its platforms under `icd`; an invalid answer leaves the machine
 * unchanged. Exposed for the fuzzer. */
clv_status clv_isolated_read(clv_machine *machine, const char *text, size_t length, size_t icd);

#endif

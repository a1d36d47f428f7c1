/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one helper process per driver, and reads its answer and the way in which it ended. */
#ifndef CLEAVE_PROBE_ISOLATE_H
#define CLEAVE_PROBE_ISOLATE_H

#include "probe/machine.h"
#include "probe/helper/nest.h"
#include "probe/helper/spawn.h"

/* Finds the helper program: `wanted`, or the installed one if `wanted` is NULL. Returns CLV_E_IO if it does not
 * exist. */
clv_status clv_helper_find(const char *wanted, char *path, size_t capacity);

/* One run of a helper: call clv_task_prepare and clv_tasks_run, read `child`, and call clv_task_clear. A task must not
 * move between prepare and clear. */
typedef struct clv_task {
    clv_child child;
    const char *argv[9];
    char numbers[3][24]; /* [0] is reserved; the caller may store arguments in the other two */
    char **environment;
    size_t about; /* for the caller's use: index of a driver or a device */
} clv_task;

/* Prepares a helper for one driver. `library` is the name in the .icd file; if it is NULL, the loader finds drivers
 * itself. probe/helper/child.h describes `job` and its arguments, which end at the first NULL. A "check" always builds
 * its kernels anew, unless CLEAVE_CACHE=0 is set, because then no results are recorded. */
clv_status clv_task_prepare(clv_task *task, clv_nest *nest, const char *helper, const char *library,
                            const char *job, const char *first, const char *second);
void clv_task_clear(clv_task *task);
/* Runs all tasks at once; each task's `child` says how it ended. CLV_E_CANCELLED, CLV_E_MEMORY. */
clv_status clv_tasks_run(clv_task *tasks, size_t count, const clv_patience *patience);

/* Returns whether a helper may have failed for reasons outside the driver: it could not be started; it was killed from
 * outside (by the kernel when memory ran out, or by a limit of CPU time); or this process has limits that are too tight
 * for a driver. */
bool clv_child_was_hindered(const clv_child *child);
/* Returns whether this process has tight limits of the address space, CPU time, file size or number of descriptors. */
bool clv_has_tight_limits(void);

/* Returns why a helper gave no complete answer ("crashed", ...) and writes a sentence about it to `message`. Returns
 * NULL if the answer is complete. */
const char *clv_child_failure(const clv_child *child, double timeout_s, char *message,
                              size_t capacity);

/* Appends the drivers that the loader of this process would load, without loading any. An entry without file and
 * library stands for all drivers that the loader finds on its own. */
void clv_isolated_list(clv_machine *machine);

/* Enumerates each listed driver in `wanted` ([icd_count]; NULL: all) in a helper of its own, all at once; uses the
 * options helper, timeout and progress. A broken driver is recorded as a fact and is not an error. CLV_E_IO (no place
 * for the helpers' folders, or no helper), CLV_E_CANCELLED, CLV_E_MEMORY. */
clv_status clv_isolated_ask(clv_machine *machine, const clv_probe_options *options,
                            const bool *wanted);

/* Lists and enumerates all drivers, and collects the facts about the host while the helpers run. */
clv_status clv_isolated_enumerate(clv_machine *machine, const clv_probe_options *options);

/* Reads a helper's answer into the machine and assigns its platforms to driver `icd`. An invalid answer leaves the
 * machine unchanged. Exposed for the fuzzer. */
clv_status clv_isolated_read(clv_machine *machine, const char *text, size_t length, size_t icd);

#endif

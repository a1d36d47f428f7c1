/* SPDX-License-Identifier: Apache-2.0 */
/* One process for each driver: what it finds, and how it ended. */
#ifndef CLEAVE_PROBE_ISOLATE_H
#define CLEAVE_PROBE_ISOLATE_H

#include "probe/machine.h"
#include "probe/helper/nest.h"
#include "probe/helper/spawn.h"

/* The helper program to start; NULL looks for the installed one. CLV_E_IO when there is none. */
clv_status clv_helper_find(const char *wanted, char *path, size_t capacity);

/* A helper in the making: clv_task_prepare, clv_tasks_run, read `child`, clv_task_clear. Tasks
 * must not move between prepare and clear. */
typedef struct clv_task {
    clv_child child;
    const char *argv[9];
    char numbers[3][24]; /* [0] is ours; the caller may keep its arguments in the others */
    char **environment;
    size_t about; /* the caller's: index of a driver or of a device */
} clv_task;

/* A helper with one driver: `library` as the .icd file has it, NULL lets the loader look around.
 * `job` and its arguments are probe/helper/child.h's; a NULL `first` ends them. A "check" builds its
 * kernels anew, unless CLEAVE_CACHE=0 says that nothing found would be remembered. */
clv_status clv_task_prepare(clv_task *task, clv_nest *nest, const char *helper, const char *library,
                            const char *job, const char *first, const char *second);
void clv_task_clear(clv_task *task);
/* All of them at once. CLV_E_CANCELLED, CLV_E_MEMORY; how each ended is in its child. */
clv_status clv_tasks_run(clv_task *tasks, size_t count, const clv_patience *patience);

/* Whether a helper's failure may come from outside the driver: it could not be started,
 * somebody ended it (the kernel for want of memory, a limit of CPU time), or this process has limits that a driver may
 * not get along with. */
bool clv_child_was_hindered(const clv_child *child);
/* The last of these alone: limits of the address space, CPU time, file size or number of descriptors. */
bool clv_has_tight_limits(void);

/* Why a helper has no answer ("crashed", ...) with a sentence; NULL when its answer is whole. */
const char *clv_child_failure(const clv_child *child, double timeout_s, char *message,
                              size_t capacity);

/* Appends the drivers that this process's loader would load, without loading any; one without file
 * and library stands for whatever the loader finds on its own. */
void clv_isolated_list(clv_machine *machine);

/* Enumerates each listed driver in `wanted` ([icd_count]; NULL: all) in a helper, all at once; uses
 * the options' helper, timeout and progress. Broken drivers are facts, not errors. CLV_E_IO (no
 * place for the helpers' folders, no helper), CLV_E_CANCELLED, CLV_E_MEMORY. */
clv_status clv_isolated_ask(clv_machine *machine, const clv_probe_options *options,
                            const bool *wanted);

/* Both, and the facts about the host while the helpers are at work. */
clv_status clv_isolated_enumerate(clv_machine *machine, const clv_probe_options *options);

/* Reads a helper's answer into the machine, with its platforms under `icd`; a bad one leaves the
 * machine as it was. Exposed for the fuzzer. */
clv_status clv_isolated_read(clv_machine *machine, const char *text, size_t length, size_t icd);

#endif

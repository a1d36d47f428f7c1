/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are compiled before the first launch waits for them: on all cores, by helper processes.
 *
 * Drivers of CPUs compile in one thread of a process at a time, however many threads and contexts ask
 * (measured: PoCL 3.1, Intel's CPU runtime 2026.2). What the helpers compile comes back through the cache
 * of programs or, where a driver keeps kernels itself, through the driver's. */
#ifndef CLEAVE_RUNTIME_PROGRAM_AHEAD_H
#define CLEAVE_RUNTIME_PROGRAM_AHEAD_H

#include <cleave/runtime.h>

#include <stdbool.h>

/* Kernels that are done and all of them; non-zero: it is not worth waiting for the rest. */
typedef int clv_ahead_progress(size_t done, size_t all, void *user);

/* Whether helpers would compile for this device: then it is worth to know what will be launched. */
bool clv_ahead_helps(const clv_device *device);

/* Notes a launch that will come. */
clv_status clv_ahead_note(clv_device *device, const clv_launch *launch, const clv_arg *args,
                          size_t count);

/* Kernels that were noted and that nobody has compiled yet. */
size_t clv_ahead_missing(clv_device *device);

/* Compiles those, and waits for it; progress may be NULL. What fails is left to the launch, which tells why;
 * so are those that a progress function does not wait for. `alone`: also where no helper helps. */
void clv_ahead_compile(clv_device *device, bool alone, clv_ahead_progress *progress, void *user);

#endif

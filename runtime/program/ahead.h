/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels ahead of time, so that no launch has to wait for them, on all cores, in helper processes.
 *
 * Drivers of CPUs compile in only one thread of a process at a time, however many threads and contexts ask (measured:
 * PoCL 3.1, Intel's CPU runtime 2026.2). The kernels that helpers compile come back through the program cache or,
 * where a driver keeps kernels itself, through the driver's own cache. */
#ifndef CLEAVE_RUNTIME_PROGRAM_AHEAD_H
#define CLEAVE_RUNTIME_PROGRAM_AHEAD_H

#include <cleave/runtime.h>

#include <stdbool.h>

/* Receives the numbers of kernels done and of all kernels. Returns non-zero to stop waiting for the rest. */
typedef int clv_ahead_progress(size_t done, size_t all, void *user);

/* Returns whether helpers would compile for this device. Only then is it useful to know the coming launches. */
bool clv_ahead_helps(const clv_device *device);

/* Notes a launch that is going to come. */
clv_status clv_ahead_note(clv_device *device, const clv_launch *launch, const clv_arg *args,
                          size_t count);

/* Counts the kernels that were noted and that no process has compiled yet. */
size_t clv_ahead_missing(clv_device *device);

/* Compiles the noted kernels and waits for them; `progress` may be NULL. Kernels that fail are left to their launch,
 * which reports the reason; so are those that `progress` does not wait for. `alone`: compiles even where no helper
 * can. */
void clv_ahead_compile(clv_device *device, bool alone, clv_ahead_progress *progress, void *user);

#endif

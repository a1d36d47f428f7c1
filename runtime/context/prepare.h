/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles all kernels of coming calls at once.
 *
 *     clv_prepare_begin(context);
 *     (void)clv_paco(context, ..);    the same calls with the same sizes: nothing is computed, their
 *     (void)clv_reduce(context, ..);  kernels are noted
 *     clv_prepare_end(context, progress, user);
 *
 * Between begin and end, jobs return CLV_E_CANCELLED. Calls that may choose a side are only planned, as in
 * clv_offload_dry: they write no results and return CLV_OK. */
#ifndef CLEAVE_RUNTIME_CONTEXT_PREPARE_H
#define CLEAVE_RUNTIME_CONTEXT_PREPARE_H

#include "runtime/program/ahead.h"
#include "runtime/record/device.h"

/* Tells whether kernels are compiled ahead for a device of the context; other devices need no preparation. */
bool clv_prepare_helps(const clv_context *context);

/* Starts noting kernels instead of computing. The thread that calls clv_prepare_begin also calls clv_prepare_end, and
 * no other thread uses the context in between. */
void clv_prepare_begin(clv_context *context);
/* Ends the preparation, compiles the noted kernels and waits for them. `progress` may be NULL; if it returns
 * non-zero, the kernels that are left are compiled at their first launches. */
void clv_prepare_end(clv_context *context, clv_ahead_progress *progress, void *user);

/* Ends the preparation without compiling: the next rehearsed job compiles the noted kernels together with its own. */
void clv_prepare_leave(clv_context *context);

/* Returns what compilers have cost this context so far, summed over its devices. */
clv_compile_cost clv_context_compiled(const clv_context *context);

#endif

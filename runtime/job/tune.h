/* SPDX-License-Identifier: Apache-2.0 */
/* Which variant of a kernel is the fastest on a device: measured once, then kept as text.
 *
 * Variants may round differently, so a choice once made stays: it is noted before the first job
 * uses it, and where notes are not kept the first variant is used without measuring. */
#ifndef CLEAVE_RUNTIME_JOB_TUNE_H
#define CLEAVE_RUNTIME_JOB_TUNE_H

#include <cleave/job.h>

/* Enqueues a small problem with the worker's variant; the queue is waited for and timed outside. */
typedef clv_status clv_tune_trial(clv_slot *slot, void *user);

/* Chooses the worker's variant, an index into `names` (the default first, ends with NULL): the noted one, else the
 * fastest. `problem` is the class for which the choice holds ("P49 Q10"). A variant that fails is no candidate. In a
 * job's setup. */
void clv_tune(clv_worker *worker, const char *kernel, const char *problem, const char *const *names,
              clv_tune_trial *trial, void *user);
/* The same without measuring, for which all variants would have to be compiled: the noted one, else `usual`. */
void clv_tune_unmeasured(clv_worker *worker, const char *kernel, const char *problem,
                         const char *const *names, size_t usual);
/* What was chosen, or used by order; 0 before that. */
size_t clv_worker_variant(const clv_worker *worker);
void clv_worker_use_variant(clv_worker *worker, size_t variant);

#endif

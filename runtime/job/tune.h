/* SPDX-License-Identifier: Apache-2.0 */
/* Which variant of a kernel is the fastest on a device: measured once, then kept as text.
 *
 * Variants may round differently, so a choice once made stays: it is noted before the first job
 * uses it, and where notes are not kept the first variant is used without measuring. */
#ifndef CLEAVE_RUNTIME_JOB_TUNE_H
#define CLEAVE_RUNTIME_JOB_TUNE_H

#include <cleave/job.h>

/* Enqueues variant `variant` on a small problem; the queue is waited for and timed outside. */
typedef clv_status clv_tune_trial(clv_slot *slot, size_t variant, void *user);

/* Index into `names` (the default first, ends with NULL). `problem` is the class for which the
 * choice holds ("P49 Q10"). A variant that fails is no candidate. In a job's setup. */
size_t clv_tune(clv_worker *worker, const char *kernel, const char *problem,
                const char *const *names, clv_tune_trial *trial, void *user);

#endif

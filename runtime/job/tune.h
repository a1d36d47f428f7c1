/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest variant of a kernel on a device. The variants are timed once, and the choice is kept as text.
 *
 * Variants may round differently, so a choice is never changed: it is noted before the first job uses it. Where notes
 * are not kept, the first variant is used without measuring. */
#ifndef CLEAVE_RUNTIME_JOB_TUNE_H
#define CLEAVE_RUNTIME_JOB_TUNE_H

#include <cleave/job.h>

/* Enqueues a small problem with the worker's variant; the caller waits for the queue and times it. */
typedef clv_status clv_tune_trial(clv_slot *slot, void *user);

/* Returns the list of variants for the device's kind: CPUs, software that draws on a CPU, or all other devices, which
 * are GPUs. */
const char *const *clv_variants_for(const clv_device *device, const char *const *cores,
                                    const char *const *rasterisers, const char *const *gpus);
/* Chooses the worker's variant: the noted one, else the fastest. `names` lists the variants, the default first, and
 * ends with NULL; the variant is an index into `names`. `problem` is the class of problems for which the choice holds
 * ("P49 Q10"). A variant that fails is no candidate. Call it in a job's setup. */
void clv_tune(clv_worker *worker, const char *kernel, const char *problem, const char *const *names,
              clv_tune_trial *trial, void *user);
/* Chooses without measuring, which would require compiling all variants: the noted variant, else `usual`. */
void clv_tune_unmeasured(clv_worker *worker, const char *kernel, const char *problem,
                         const char *const *names, size_t usual);
/* Returns the worker's variant as clv_tune or clv_worker_use_variant set it; 0 before that. */
size_t clv_worker_variant(const clv_worker *worker);
void clv_worker_use_variant(clv_worker *worker, size_t variant);

#endif

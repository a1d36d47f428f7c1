/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions of the job "specfit", whose units are stars. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_JOB_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_JOB_H

#include "host/spectra/spectra_plan.h"

/* Result buffers of a chunk. */
enum {
    CLV_SPECTRA_STATES, /* [stars,starts,CLV_SPECTRA_STATE] f32 */
    CLV_SPECTRA_FOUND,  /* [stars,CLV_SPECTRA_FOUND_BY_STAR] f32 */
    CLV_SPECTRA_MODELS, /* [stars,starts,all_pixels] f32, with options.models */
    CLV_SPECTRA_SCANS,  /* [stars,starts,2,velocities] f32: value along velocity, rounding */
    CLV_SPECTRA_FACTS,  /* [stars] clv_star_facts, which the host computes */
    CLV_SPECTRA_WATCHED,
    CLV_SPECTRA_RESULTS
};

/* Returns a job over `units` stars, without the caller's commit function and reference. */
clv_job clv_spectra_job(const char *name, size_t units);

clv_cost clv_spectra_cost(size_t first, size_t count, void *plan);
clv_status clv_spectra_setup(clv_worker *worker, void *plan);
clv_status clv_spectra_enqueue(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_spectra_reference(clv_slot *slot, size_t first, size_t count, void *plan);

/* ---- spectra_finish.c ---- */
clv_status clv_spectra_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
/* Runs the job of a plan, called `name` in the report. */
clv_status clv_spectra_run_plan(clv_context *context, clv_spectra_plan *plan, const char *name,
                                clv_report *report);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* clv_paco: makes the plan, runs the job and computes the maps from the job's sums. */
#include "host/patch/paco_family.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/job/results.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PADDING = 4096 }; /* most elements of a device's row beyond twice the width */

/* Adds a chunk's part of the map to the sums, row by row. */
static void add_part(clv_paco_plan *plan, const clv_paco_chunk *c, size_t pitch,
                     const int64_t *sums, const uint32_t *found)
{
    const size_t width = plan->in.width, positions = plan->in.height * width;
    for (size_t y = 0; y < c->map_rows; ++y) {
        const size_t to = (c->map0 + y) * width;
        for (size_t part = 0; part < 4; ++part) {
            const int64_t *from = sums + (part * c->map_rows + y) * pitch;
            int64_t *sum = plan->sums + part * positions + to;
            for (size_t x = 0; x < width; ++x)
                sum[x] += from[x];
        }
        for (size_t x = 0; x < width; ++x)
            plan->found[to + x] += found[y * pitch + x];
    }
}

clv_status clv_paco_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_paco_plan *plan = user;
    const clv_paco_chunk c = clv_paco_chunk_of(plan, first, count);
    const size_t width = plan->in.width;
    const clv_paco_layout *shape;
    const int64_t *sums;
    const uint32_t *found;
    const uint8_t *state;
    CLV_TRY(clv_slot_take(slot, CLV_PACO_SHAPE, sizeof *shape, &shape));
    const clv_paco_layout l = *shape;
    if (l.map_pitch < width || l.map_pitch > 2 * width + MOST_PADDING ||
        l.state_pitch < l.state_pad + width || l.state_pitch > 2 * width + MOST_PADDING)
        return clv_fail(
            CLV_E_FORMAT,
            "paco: the rows of a chunk are %zu and %zu long, but those of the image %zu",
            l.map_pitch, l.state_pitch, width);
    CLV_TRY(clv_slot_take(slot, CLV_PACO_STATE, c.band_rows * l.state_pitch, &state));
    for (size_t y = 0; y < c.rows; ++y)
        for (size_t x = 0; x < width; ++x)
            plan->state[(c.first + y) * width + x] =
                state[(c.first - c.band0 + y) * l.state_pitch + l.state_pad + x];
    if (!c.map_rows) return CLV_OK;
    const size_t places = c.map_rows * l.map_pitch;
    CLV_TRY(clv_slot_take(slot, CLV_PACO_SUMS, 4 * places * sizeof *sums, &sums));
    CLV_TRY(clv_slot_take(slot, CLV_PACO_FOUND, places * sizeof *found, &found));
    add_part(plan, &c, l.map_pitch, sums, found);
    return CLV_OK;
}

clv_status clv_paco_run(clv_context *context, clv_paco_plan *plan, clv_progress *progress,
                        void *user, double *a, double *b, clv_paco_counts *counts,
                        clv_report *report)
{
    const size_t positions = plan->in.height * plan->in.width;
    memset(plan->sums, 0, 4 * positions * sizeof *plan->sums);
    memset(plan->found, 0, positions * sizeof *plan->found);
    memset(plan->state, 0, positions * sizeof *plan->state);
    char signature[96];
    snprintf(signature, sizeof signature, "P%zu Q%zu T%zu W%zu", plan->pixels, plan->basis.vectors,
             plan->in.frames, plan->in.width);
    const clv_job job = {
        .size = sizeof(clv_job),
        .name = "paco",
        .signature = signature,
        .units = clv_paco_units(plan),
        .cost = clv_paco_cost,
        .setup = clv_paco_setup,
        .enqueue = clv_paco_enqueue_rows,
        .rehearse = true,
        .commit = clv_paco_commit,
        .reference = clv_paco_reference,
        .progress = progress,
        .progress_user = user,
    };
    CLV_TRY(clv_job_run(context, &job, plan, report));
    clv_paco_finish(plan, a, b, counts);
    return CLV_OK;
}

clv_status clv_paco(clv_context *context, const clv_paco_input *input,
                    const clv_paco_options *options, double *a, double *b, clv_paco_counts *counts,
                    clv_report *report)
{
    if (!context || !a || !b) return clv_fail(CLV_E_ARGUMENT, "paco: context, a or b is NULL");
    clv_paco_plan *plan;
    clv_paco_counts sorted;
    CLV_TRY(clv_paco_plan_create(input, options, &plan));
    const clv_status status =
        clv_paco_run(context, plan, options ? options->progress : NULL,
                     options ? options->progress_user : NULL, a, b, &sorted, report);
    if (!status) {
        if (counts) *counts = sorted;
        clv_report_note(report, "positions", (double)(plan->in.height * plan->in.width));
        clv_report_note(report, "valid", (double)sorted.valid);
        clv_report_note(report, "nan_outside", (double)sorted.outside);
        clv_report_note(report, "nan_not_finite", (double)sorted.not_finite);
        clv_report_note(report, "nan_constant", (double)sorted.constant);
        clv_report_note(report, "nan_degenerate", (double)sorted.degenerate);
    }
    clv_paco_plan_free(plan);
    return status;
}

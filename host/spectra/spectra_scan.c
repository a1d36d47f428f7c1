/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of a velocity scan, which evaluates one template of each item at many velocities. */
#include "host/spectra/spectra_pass.h"

#include "base/error.h"
#include "cl_embedded.h"

enum { LANES = 16, SCRATCH = 32 << 20, TURNS = 3 };

static const clv_small_kernel along_of = { &clv_cl_spectra_velocity, &clv_cl_spectra_solve_group,
                                           "clv_spectra_along", "clv_spectra_along_group", 16 };

size_t clv_scan_velocities(const clv_spectra_plan *plan)
{
    return clv_round_up(plan->wish.scan_count ? plan->wish.scan_count : CLV_SPECTRA_SCAN,
                        CLV_SCAN_ROUND_TO);
}

size_t clv_scan_batch(const clv_spectra_plan *plan, size_t items)
{
    size_t longest = CLV_SPECTRA_SEGMENT;
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        longest = CLV_MAX(longest, plan->grid[i].padded);
    const size_t bytes = longest * clv_scan_velocities(plan) * sizeof(float);
    return CLV_MAX(CLV_MIN(items, SCRATCH / bytes), (size_t)1);
}

typedef struct scan {
    size_t velocities, columns, runs, lanes, batch, block_runs;
} scan;

static scan scan_of(const clv_pass *p)
{
    const size_t terms = p->plan->options.terms, columns = clv_scan_columns(p->plan->options.terms);
    return (scan){
        .block_runs = columns / (terms + 1u) / clv_pass_blocks(p),
        .velocities = clv_scan_velocities(p->plan),
        .columns = columns,
        .runs = (size_t)p->f.run,
        .lanes = (size_t)p->f.lanes,
        .batch = p->batch,
    };
}

clv_status clv_pass_keep_curve(const clv_pass *p, size_t lead)
{
    const clv_spectra_plan *plan = p->plan;
    const scan s = scan_of(p);
    const size_t points = plan->library->arms[plan->grid[lead].arm].points;
    const clv_arg args[] = {
        clv_arg_buffer(p->spline),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->curve),
        clv_pass_int(points),
        clv_pass_int(clv_round_up(plan->sizes.longest_template, LANES) + LANES),
        clv_pass_int(plan->grid[lead].curve),
        clv_pass_int(plan->sizes.all_points),
    };
    return CLV_PASS_LAUNCH(p, velocity, "clv_spectra_curve", (points + s.runs - 1) / s.runs,
                           p->items, 1, false, args);
}

/* Shifts the templates of a spectrum to all velocities, for a batch of items from `base` on. */
static clv_status shift(const clv_pass *p, const scan *s, size_t spectrum, size_t base)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_grid *g = &plan->grid[spectrum];
    const size_t vectors = s->velocities / s->lanes, runs = (g->padded + s->runs - 1) / s->runs;
    const clv_arg args[] = {
        clv_arg_buffer(p->curve),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_pass_constant(p, CLV_PASS_WHOLE),
        clv_pass_constant(p, CLV_PASS_PART),
        clv_arg_buffer(p->shifted),
        clv_pass_shift(g),
        clv_pass_int(plan->library->arms[g->arm].points),
        clv_pass_int(plan->grid[clv_spectra_lead(plan, spectrum)].curve),
        clv_pass_int(plan->sizes.all_points),
        clv_pass_int(g->first),
        clv_pass_int(g->padded),
        clv_pass_int(s->velocities),
        clv_pass_int(base),
    };
    CLV_TRY(
        CLV_PASS_LAUNCH(p, velocity, "clv_spectra_shift", vectors, runs, s->batch, false, args));
    if (!plan->sizes.diagonals) return CLV_OK;
    const clv_arg blur[] = {
        clv_arg_buffer(p->shifted),
        clv_arg_buffer(p->blurred),
        clv_arg_buffer(p->resolution),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_pass_int(plan->sizes.diagonals),
        clv_pass_int(g->first),
        clv_pass_int(g->padded),
        clv_pass_int(plan->sizes.all_pixels),
        clv_pass_int(s->velocities),
        clv_pass_int(base),
    };
    return CLV_PASS_LAUNCH(p, velocity, "clv_spectra_blur", vectors, runs, s->batch, false, blur);
}

/* Adds the contribution of a spectrum to the values of a batch of items from `base` on. */
static clv_status judge(const clv_pass *p, const scan *s, size_t spectrum, size_t base,
                        clv_buffer *t)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_grid *g = &plan->grid[spectrum];
    const size_t vectors = s->velocities / s->lanes;
    const clv_arg products[] = {
        clv_arg_buffer(t),
        clv_arg_buffer(p->data),
        clv_pass_constant(p, CLV_PASS_PRODUCTS),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->sums),
        clv_pass_int(g->first),
        clv_pass_int(g->padded),
        clv_pass_int(plan->sizes.all_pixels),
        clv_pass_int(s->velocities),
        clv_pass_int(s->columns),
        clv_pass_int(base),
    };
    CLV_TRY(CLV_PASS_LAUNCH(p, velocity, "clv_spectra_products", vectors, s->block_runs, s->batch,
                            false, products));
    const clv_arg along[] = {
        clv_arg_buffer(p->sums),   clv_arg_buffer(p->list),     clv_arg_buffer(p->along),
        clv_arg_buffer(p->values), clv_pass_int(s->velocities), clv_pass_int(s->columns),
        clv_pass_int(base),
    };
    CLV_TRY(clv_pass_launch_small(p, &along_of, s->velocities, s->batch, 1, along, CLV_LEN(along)));
    const clv_arg residual[] = {
        clv_arg_buffer(t),
        clv_arg_buffer(p->data),
        clv_pass_constant(p, CLV_PASS_BASIS),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->along),
        clv_arg_buffer(p->values),
        clv_pass_int(g->first),
        clv_pass_int(g->padded),
        clv_pass_int(plan->sizes.all_pixels),
        clv_pass_int(s->velocities),
        clv_pass_int(base),
    };
    return CLV_PASS_LAUNCH(p, velocity, "clv_spectra_residual", vectors, s->batch, 1, false,
                           residual);
}

static clv_status one_turn(const clv_pass *p, const scan *s, size_t items)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_arg grid[] = {
        clv_arg_buffer(p->state),           clv_arg_buffer(p->list),
        clv_pass_constant(p, CLV_PASS_BOX), clv_arg_f32(plan->wish.scan_from),
        clv_arg_f32(plan->wish.scan_step),  clv_pass_int(s->velocities),
    };
    CLV_TRY(CLV_PASS_LAUNCH(p, velocity, "clv_spectra_grid", items, 1, 1, false, grid));
    CLV_TRY(clv_fill_enqueue(clv_slot_queue(p->slot), p->values, 0,
                             p->items * 2 * s->velocities * sizeof(float), 0, NULL));
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        for (size_t base = 0; base < items && plan->grid[i].wavelength; base += s->batch) {
            clv_buffer *t = plan->sizes.diagonals ? p->blurred : p->shifted;
            if (p->stages & CLV_SPECTRA_STAGE_SHIFT) CLV_TRY(shift(p, s, i, base));
            if (p->stages & CLV_SPECTRA_STAGE_VALUES) CLV_TRY(judge(p, s, i, base, t));
        }
    return CLV_OK;
}

clv_status clv_pass_scan(const clv_pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    const scan s = scan_of(p);
    int32_t items = (int32_t)p->stars;
    for (int turn = 0; turn < TURNS && items; ++turn) {
        const clv_arg best[] = {
            clv_arg_buffer(p->state),           clv_arg_buffer(p->list), clv_pass_int(p->stars),
            clv_pass_int(plan->options.starts), clv_arg_i32(turn > 0),
        };
        CLV_TRY(CLV_PASS_LAUNCH(p, velocity, "clv_spectra_best", 1, 1, 1, false, best));
        if (turn) CLV_TRY(clv_read(clv_slot_queue(p->slot), p->list, 0, &items, sizeof items));
        if (!items) break;
        CLV_TRY(one_turn(p, &s, (size_t)items));
        if (plan->wish.scan_count) break; /* the caller only wants the values */
        const clv_arg moments[] = {
            clv_arg_buffer(p->state),           clv_arg_buffer(p->list),
            clv_pass_constant(p, CLV_PASS_BOX), clv_arg_buffer(p->values),
            clv_pass_int(s.velocities),         clv_arg_i32(TURNS),
        };
        CLV_TRY(CLV_PASS_LAUNCH(p, velocity, "clv_spectra_moments", (size_t)items, 1, 1, false,
                                moments));
    }
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the kernels of a fit: they compute the start values, the templates at the pixels, the normal equations, and
 * the next point. */
#include "host/spectra/spectra_pass.h"

#include "base/error.h"
#include "cl_embedded.h"

static const clv_small_kernel taps_of = { &clv_cl_spectra_fit, &clv_cl_spectra_taps_group,
                                          "clv_spectra_taps", "clv_spectra_taps_group", 64 };
static const clv_small_kernel total_of = { &clv_cl_spectra_fit, &clv_cl_spectra_solve_group,
                                           "clv_spectra_total", "clv_spectra_total_group", 16 };
static const clv_small_kernel solve_of = { &clv_cl_spectra_fit, &clv_cl_spectra_solve_group,
                                           "clv_spectra_solve", "clv_spectra_solve_group", 16 };
static const clv_small_kernel step_of = { &clv_cl_spectra_fit, &clv_cl_spectra_solve_group,
                                          "clv_spectra_step", "clv_spectra_step_group", 16 };

static clv_arg u32(size_t value)
{
    return clv_arg_u32((uint32_t)value);
}

/* Correlates the few templates that form the mixtures of a spectrum's arm, then combines their results to the results
 * of all templates. */
static clv_status correlate_few(const clv_pass *p, size_t spectrum, size_t together)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_grid *g = &plan->grid[spectrum];
    const clv_spectra_weights *w = &plan->tables.arm[spectrum];
    const size_t spectra = plan->stars.spectra, templates = plan->library->ccf_count,
                 lags = plan->sizes.ccf_lags;
    const clv_arg few[] = {
        clv_pass_constant(p, CLV_PASS_CCF),
        clv_arg_buffer(p->start_data),
        clv_pass_constant(p, CLV_PASS_FEW),
        clv_arg_buffer(p->start_few),
        clv_arg_u64(w->ccf),
        clv_pass_int(w->ccf_pitch),
        clv_pass_int(g->ccf_points),
        clv_pass_int(plan->sizes.ccf_room),
        clv_pass_int(lags),
        clv_pass_int(spectrum),
        clv_pass_int(spectra),
        clv_pass_int(w->few),
        clv_pass_int(w->crosses),
        clv_pass_int(w->rows),
        clv_pass_int(p->stars),
    };
    const size_t stars = together > 1 ? 2 * together : 1;
    CLV_TRY(clv_pass_launch(p, &clv_cl_spectra_velocity, "clv_spectra_few", lags / 16, w->rows,
                            (p->stars + stars - 1) / stars, false, few, CLV_LEN(few)));
    const clv_arg mix[] = {
        clv_arg_buffer(p->start_few), clv_pass_constant(p, CLV_PASS_SHARES),
        clv_arg_buffer(p->start_chi), clv_arg_u64(w->share),
        clv_pass_int(w->rows),        clv_pass_int(lags),
        clv_pass_int(spectrum),       clv_pass_int(spectra),
        clv_pass_int(templates),      clv_pass_int(p->stars),
    };
    const size_t mixed = together > 1 ? 4 : 1;
    return clv_pass_launch(p, &clv_cl_spectra_velocity, "clv_spectra_mix", lags / 16,
                           (templates + mixed - 1) / mixed, p->stars, false, mix, CLV_LEN(mix));
}

/* Correlates every template of a spectrum's arm. */
static clv_status correlate_all(const clv_pass *p, size_t spectrum, size_t together)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_arg args[] = {
        clv_pass_constant(p, CLV_PASS_CCF),
        clv_arg_buffer(p->start_data),
        clv_arg_buffer(p->start_chi),
        clv_arg_u64(plan->tables.arm[spectrum].ccf),
        clv_pass_int(plan->tables.arm[spectrum].ccf_pitch),
        clv_pass_int(plan->grid[spectrum].ccf_points),
        clv_pass_int(plan->sizes.ccf_room),
        clv_pass_int(plan->sizes.ccf_lags),
        clv_pass_int(spectrum),
        clv_pass_int(plan->stars.spectra),
        clv_pass_int(plan->library->ccf_count),
        clv_pass_int(p->stars),
    };
    return clv_pass_launch(p, &clv_cl_spectra_velocity, "clv_spectra_ccf",
                           plan->sizes.ccf_lags / 16, plan->library->ccf_count,
                           (p->stars + together - 1) / together, false, args, CLV_LEN(args));
}

clv_status clv_pass_find_starts(const clv_pass *p)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_specfit_options *o = &plan->options;
    const size_t spectra = plan->stars.spectra, templates = plan->library->ccf_count;
    const size_t together = p->f.lanes > 1 ? (size_t)p->f.lanes / 4 : 1; /* registers limit it */
    for (size_t i = 0; i < spectra; ++i) {
        if (!plan->grid[i].wavelength) continue;
        CLV_TRY(plan->tables.arm[i].rows ? correlate_few(p, i, together)
                                         : correlate_all(p, i, together));
    }
    const clv_arg peak[] = {
        clv_arg_buffer(p->start_chi),
        clv_pass_constant(p, CLV_PASS_PLACE),
        clv_arg_buffer(p->start_best),
        clv_arg_f32((float)plan->box.low[0]),
        clv_arg_f32(
            (float)((plan->box.high[0] - plan->box.low[0]) / (double)(plan->sizes.velocities - 1))),
        clv_pass_int(plan->sizes.velocities),
        clv_pass_int(spectra),
        clv_pass_int(templates),
        clv_pass_int(plan->sizes.ccf_lags),
    };
    CLV_TRY(CLV_PASS_LAUNCH(p, velocity, "clv_spectra_peak", templates, p->stars, 1, false, peak));
    const clv_arg start[] = {
        clv_arg_buffer(p->start_best),
        clv_pass_constant(p, CLV_PASS_POINTS),
        clv_pass_constant(p, CLV_PASS_BOX),
        clv_arg_buffer(p->usable),
        clv_arg_buffer(p->priors),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->found),
        clv_pass_int(templates),
        clv_pass_int(o->starts),
        clv_pass_int(p->items),
    };
    return CLV_PASS_LAUNCH(p, velocity, "clv_spectra_start", p->items, 1, 1, false, start);
}

static clv_status network(const clv_pass *p, size_t spectrum, size_t pitch)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_arm *arm = &plan->library->arms[plan->grid[spectrum].arm];
    const clv_spectra_weights *w = &plan->tables.arm[spectrum];
    /* a work-item computes two vectors of outputs, or one output for each of two items */
    const size_t lanes = (size_t)p->f.lanes, items = lanes > 1 ? 1 : 2,
                 outputs = lanes > 1 ? 2 * lanes : 1;
    for (size_t l = 0; l < arm->layers; ++l) {
        const bool last = l + 1 == arm->layers;
        const clv_arg args[] = {
            clv_arg_buffer(p->hidden[l % 2]),
            clv_arg_buffer(last ? p->templates : p->hidden[(l + 1) % 2]),
            clv_arg_buffer(p->list),
            clv_pass_constant(p, CLV_PASS_WEIGHTS),
            u32(w->weight[l]),
            u32(w->bias[l]),
            clv_pass_int(arm->width[l]),
            clv_pass_int(w->pitch[l]),
            clv_pass_int(plan->sizes.widest),
            last ? clv_arg_u64(pitch) : clv_pass_int(1),
        };
        CLV_TRY(CLV_PASS_LAUNCH(p, fit, last ? "clv_spectra_output" : "clv_spectra_layer",
                                (p->items + items - 1) / items,
                                (w->pitch[l] + outputs - 1) / outputs, 1, true, args));
    }
    return CLV_OK;
}

static size_t pitch_of(const clv_spectra_plan *plan)
{
    return clv_round_up(plan->sizes.longest_template, 16) + 16;
}

/* Converts a point's parameters to the network's inputs, or to the corners of a regular grid. */
static clv_status place_points(const clv_pass *p, size_t lead)
{
    enum { OF_BOTH = 6 };
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_arm *arm = &plan->library->arms[plan->grid[lead].arm];
    const clv_arg args[] = {
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_pass_constant(p, CLV_PASS_WEIGHTS),
        clv_arg_buffer(p->hidden[0]),
        clv_pass_int(plan->sizes.widest),
        u32(plan->tables.arm[lead].scale),
        clv_pass_int(arm->nodes[0]),
        clv_pass_int(arm->nodes[1]),
        clv_pass_int(arm->nodes[2]),
        clv_pass_int(arm->nodes[3]),
        clv_pass_int(lead),
        clv_pass_constant(p, CLV_PASS_BOX),
    };
    if (clv_is_grid(arm))
        return CLV_PASS_LAUNCH(p, grid, "clv_spectra_corners", p->items, 1, 1, false, args);
    return clv_pass_launch(p, &clv_cl_spectra_fit, "clv_spectra_inputs", p->items, 1, 1, false,
                           args, OF_BOTH);
}

/* Interpolates the templates of a regular grid. */
static clv_status blend(const clv_pass *p, size_t lead)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_arm *arm = &plan->library->arms[plan->grid[lead].arm];
    const clv_arg args[] = {
        clv_arg_buffer(p->hidden[0]),
        clv_arg_buffer(p->templates),
        clv_arg_buffer(p->list),
        clv_pass_constant(p, CLV_PASS_GRID),
        clv_arg_u64(plan->tables.arm[lead].grid),
        clv_pass_int(arm->points),
        clv_pass_int(plan->sizes.widest),
        clv_arg_u64(pitch_of(plan)),
        clv_arg_f32((float)-plan->grid[lead].log_scale),
    };
    const size_t vectors = (arm->points + (size_t)p->f.lanes - 1) / (size_t)p->f.lanes;
    return CLV_PASS_LAUNCH(p, grid, "clv_spectra_blend", p->items, vectors, 1, true, args);
}

/* Makes the templates of the arm to which spectrum `lead` belongs. */
static clv_status make_templates(const clv_pass *p, size_t lead)
{
    const clv_spectra_plan *plan = p->plan;
    CLV_TRY(place_points(p, lead));
    if (clv_is_grid(&plan->library->arms[plan->grid[lead].arm])) return blend(p, lead);
    return network(p, lead, pitch_of(plan));
}

static clv_status make_spline(const clv_pass *p, size_t lead)
{
    const clv_spectra_plan *plan = p->plan;
    const size_t points = plan->library->arms[plan->grid[lead].arm].points, run = (size_t)p->f.run;
    const clv_arg taps[] = {
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->taps),
        clv_arg_f32((float)plan->grid[lead].dln),
    };
    CLV_TRY(clv_pass_launch_small(p, &taps_of, p->items, 2, 1, taps, CLV_LEN(taps)));
    const clv_arg spline[] = {
        clv_arg_buffer(p->templates), clv_arg_buffer(p->spline), clv_arg_buffer(p->list),
        clv_arg_buffer(p->taps),      clv_pass_int(points),      clv_pass_int(pitch_of(plan)),
    };
    return CLV_PASS_LAUNCH(p, fit, "clv_spectra_spline", (points + run - 1) / run, p->items, 1,
                           false, spline);
}

static clv_status sample(const clv_pass *p, size_t spectrum)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_spectra_grid *g = &plan->grid[spectrum];
    const size_t run = (size_t)p->f.run, runs = (g->padded + run - 1) / run;
    const clv_arg args[] = {
        clv_arg_buffer(p->spline),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_pass_constant(p, CLV_PASS_WHOLE),
        clv_pass_constant(p, CLV_PASS_PART),
        clv_arg_buffer(p->pixels),
        clv_pass_shift(g),
        clv_pass_int(plan->library->arms[g->arm].points),
        clv_pass_int(pitch_of(plan)),
        clv_pass_int(g->first),
        clv_pass_int(g->padded),
        clv_pass_int(plan->sizes.all_pixels),
    };
    CLV_TRY(CLV_PASS_LAUNCH(p, fit, "clv_spectra_sample", runs, p->items, 1, false, args));
    if (!plan->sizes.diagonals) return CLV_OK;
    const clv_arg resolve[] = {
        clv_arg_buffer(p->pixels),
        clv_arg_buffer(p->resolved),
        clv_arg_buffer(p->resolution),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_pass_int(plan->sizes.diagonals),
        clv_pass_int(g->first),
        clv_pass_int(g->padded),
        clv_pass_int(plan->sizes.all_pixels),
    };
    return CLV_PASS_LAUNCH(p, fit, "clv_spectra_resolve", runs, p->items, 1, false, resolve);
}

clv_status clv_pass_templates_of(const clv_pass *p, size_t lead, bool keep)
{
    const clv_spectra_plan *plan = p->plan;
    if (p->stages & CLV_SPECTRA_STAGE_NETWORK) CLV_TRY(make_templates(p, lead));
    if (!(p->stages & CLV_SPECTRA_STAGE_SPLINE)) return CLV_OK;
    CLV_TRY(make_spline(p, lead));
    if (keep && plan->wish.scans) CLV_TRY(clv_pass_keep_curve(p, lead));
    for (size_t i = lead; i < plan->stars.spectra; ++i)
        if (clv_spectra_lead(plan, i) == lead) CLV_TRY(sample(p, i));
    return CLV_OK;
}

/* Works arm by arm: device memory holds the templates of one arm at a time, which serve all spectra of that arm. */
clv_status clv_pass_templates(const clv_pass *p, bool keep)
{
    for (size_t lead = 0; lead < p->plan->stars.spectra; ++lead)
        if (clv_spectra_lead(p->plan, lead) == lead) CLV_TRY(clv_pass_templates_of(p, lead, keep));
    return CLV_OK;
}

static clv_status add_up(const clv_pass *p, size_t columns)
{
    const clv_spectra_plan *plan = p->plan;
    const clv_arg args[] = {
        clv_arg_buffer(p->partial),
        clv_pass_constant(p, CLV_PASS_RANGE),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->totals),
        clv_pass_int(plan->sizes.all_pixels / CLV_SPECTRA_SEGMENT),
        clv_pass_int(plan->stars.spectra),
        clv_pass_int(columns),
    };
    return clv_pass_launch_small(p, &total_of, CLV_SPECTRA_AROUND / 16, p->items,
                                 plan->stars.spectra, args, CLV_LEN(args));
}

/* Launches a kernel over segments: SPAN segments per work-item, or a work-group for each. */
static clv_status over_segments(const clv_pass *p, const char *kernel, const char *in_groups,
                                const clv_arg *args, size_t count)
{
    const size_t segments = p->plan->sizes.all_pixels / CLV_SPECTRA_SEGMENT,
                 span = (size_t)p->f.span;
    if (p->f.groups)
        return clv_pass_launch(p, &clv_cl_spectra_gram_group, in_groups,
                               segments * CLV_SPECTRA_SEGMENT, p->items, 1, false, args, count);
    return clv_pass_launch(p, &clv_cl_spectra_fit, kernel, (segments + span - 1) / span, p->items,
                           1, false, args, count);
}

/* Computes from the pixels the normal equations, then the residual with its slopes, and the next point. */
clv_status clv_pass_judge(const clv_pass *p, bool last)
{
    const clv_spectra_plan *plan = p->plan;
    const size_t spectra = plan->stars.spectra, span = (size_t)p->f.span;
    const size_t segments = plan->sizes.all_pixels / CLV_SPECTRA_SEGMENT;
    clv_buffer *pixels = plan->sizes.diagonals ? p->resolved : p->pixels;
    const clv_arg gram[] = {
        clv_arg_buffer(pixels),
        clv_arg_buffer(p->data),
        clv_pass_constant(p, CLV_PASS_BASIS),
        clv_arg_buffer(p->state),
        clv_arg_buffer(p->list),
        clv_arg_buffer(p->partial),
        clv_pass_int(plan->sizes.all_pixels),
    };
    CLV_TRY(over_segments(p, "clv_spectra_gram", "clv_spectra_gram_group", gram, CLV_LEN(gram)));
    CLV_TRY(add_up(p, plan->options.terms * 16));
    const clv_arg solve[] = { clv_arg_buffer(p->totals), clv_arg_buffer(p->list),
                              clv_arg_buffer(p->solved), clv_pass_int(spectra) };
    CLV_TRY(clv_pass_launch_small(p, &solve_of, p->items, spectra, 1, solve, CLV_LEN(solve)));
    const clv_arg around[] = {
        clv_arg_buffer(pixels),    clv_arg_buffer(p->data),    clv_pass_constant(p, CLV_PASS_BASIS),
        clv_arg_buffer(p->state),  clv_arg_buffer(p->list),    clv_pass_constant(p, CLV_PASS_OWNER),
        clv_arg_buffer(p->solved), clv_arg_buffer(p->partial), clv_pass_int(plan->sizes.all_pixels),
        clv_pass_int(spectra),
    };
    CLV_TRY(over_segments(p, "clv_spectra_around", "clv_spectra_around_group", around,
                          CLV_LEN(around)));
    CLV_TRY(add_up(p, CLV_SPECTRA_AROUND));
    const clv_arg step[] = {
        clv_arg_buffer(p->totals), clv_arg_buffer(p->solved), clv_pass_constant(p, CLV_PASS_BOX),
        clv_arg_buffer(p->list),   clv_arg_buffer(p->state),  clv_pass_int(spectra),
        clv_pass_int(last),
    };
    CLV_TRY(clv_pass_launch_small(p, &step_of, p->items, 1, 1, step, CLV_LEN(step)));
    if (!last || !plan->options.models) return CLV_OK;
    const clv_arg model[] = {
        clv_arg_buffer(pixels),
        clv_pass_constant(p, CLV_PASS_BASIS),
        clv_arg_buffer(p->list),
        clv_pass_constant(p, CLV_PASS_OWNER),
        clv_arg_buffer(p->solved),
        clv_arg_buffer(p->models),
        clv_pass_int(plan->sizes.all_pixels),
        clv_pass_int(spectra),
    };
    return CLV_PASS_LAUNCH(p, fit, "clv_spectra_model", (segments + span - 1) / span, p->items, 1,
                           false, model);
}

static clv_status list_items(const clv_pass *p, bool last, int32_t arm)
{
    const clv_arg list[] = {
        clv_arg_buffer(p->state), clv_arg_buffer(p->list), clv_pass_constant(p, CLV_PASS_BOX),
        clv_pass_int(p->items),   clv_pass_int(last),      clv_arg_i32(arm)
    };
    return CLV_PASS_LAUNCH(p, fit, "clv_spectra_list", 1, 1, 1, false, list);
}

clv_status clv_pass_list(const clv_pass *p, bool last)
{
    return list_items(p, last, 0);
}

clv_status clv_pass_list_arm(const clv_pass *p, size_t lead)
{
    return list_items(p, false, lead == SIZE_MAX ? -1 : (int32_t)lead + 1);
}

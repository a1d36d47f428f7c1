/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tables of constants that the kernels read (weights of the networks, start templates, segments), and chooses
 * the scale of the templates. */
#include "host/spectra/spectra_tables.h"

#include "host/spectra/spectra_grid.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, SCALE_LIMIT = 10 /* exponent of 2 */ };

size_t clv_spectra_lead(const clv_spectra_plan *plan, size_t spectrum)
{
    if (!plan->grid[spectrum].wavelength) return SIZE_MAX;
    size_t i = 0;
    while (!plan->grid[i].wavelength || plan->grid[i].arm != plan->grid[spectrum].arm)
        ++i;
    return i;
}

double clv_spectra_penalty(const clv_spectra_plan *plan, const double parameters[4])
{
    double penalty = 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        const clv_spectra_arm *arm = &plan->library->arms[plan->grid[i].arm];
        if (clv_spectra_lead(plan, i) == i && clv_is_grid(arm))
            penalty += clv_grid_outside(arm, parameters) * (double)plan->box.numbers[24];
    }
    return penalty;
}

/* Narrows the limits by calling `by` for each grid of templates that the stars use. */
static void narrow(const clv_spectra_plan *plan, const double parameters[4], double low[4],
                   double high[4],
                   void (*by)(const clv_spectra_arm *, const double[4], double[4], double[4]))
{
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        const clv_spectra_arm *arm = &plan->library->arms[plan->grid[i].arm];
        if (clv_spectra_lead(plan, i) == i && clv_is_grid(arm)) by(arm, parameters, low, high);
    }
}

void clv_spectra_walls(const clv_spectra_plan *plan, const double parameters[4], double low[4],
                       double high[4])
{
    narrow(plan, parameters, low, high, clv_grid_walls);
}

void clv_spectra_cell(const clv_spectra_plan *plan, const double parameters[4], double low[4],
                      double high[4])
{
    narrow(plan, parameters, low, high, clv_grid_cell);
}

/* Computes a typical template of an arm: that of the network at the centre of its training points, or that of a grid's
 * node. */
static void typical_template(const clv_spectra_arm *arm, double *work, double *out)
{
    if (!clv_is_grid(arm)) {
        const double middle[4] = { pow(10, arm->mean[0]), arm->mean[1], arm->mean[2],
                                   arm->mean[3] };
        clv_spectra_network(arm, middle, work, out);
        return;
    }
    const float *row = arm->grid_log_flux + arm->grid_spectra / 2 * arm->points;
    for (size_t n = 0; n < arm->points; ++n)
        out[n] = exp(fmin(fmax((double)row[n], -300), 300));
}

/* Chooses the scales of the arms. Templates far from 1 (PHOENIX has values near 1e+14) are divided by a power of two,
 * so that float32 can hold the sums of their squares. Templates near 1 are not scaled. */
clv_status clv_plan_find_scales(clv_spectra_plan *plan)
{
    const size_t most = plan->sizes.longest_template, wide = CLV_MAX(most, plan->sizes.widest);
    double *work = clv_alloc(2 * CLV_MAX(wide, (size_t)1), sizeof *work);
    double *out = clv_alloc(CLV_MAX(most, (size_t)1), sizeof *out);
    for (size_t i = 0; i < plan->stars.spectra && work && out; ++i) {
        clv_spectra_grid *g = &plan->grid[i];
        const size_t lead = clv_spectra_lead(plan, i);
        if (!g->wavelength) continue;
        if (lead != i) {
            g->log_scale = plan->grid[lead].log_scale;
            continue;
        }
        const clv_spectra_arm *arm = &plan->library->arms[g->arm];
        typical_template(arm, work, out);
        const double power = round(log2(clv_median(out, arm->points)));
        g->log_scale = isfinite(power) && fabs(power) > SCALE_LIMIT ? power * log(2) : 0;
    }
    const bool ok = work && out;
    clv_free(work), clv_free(out);
    return ok ? CLV_OK : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a template");
}

void clv_plan_lay_out(clv_spectra_plan *plan)
{
    size_t at = 0, ccf = 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        clv_spectra_grid *g = &plan->grid[i];
        clv_spectra_weights *w = &plan->tables.arm[i];
        if (!g->wavelength) continue;
        const clv_spectra_arm *arm = &plan->library->arms[g->arm];
        const size_t lead = clv_spectra_lead(plan, i);
        if (lead != i) {
            *w = plan->tables.arm[lead];
            continue;
        }
        g->curve = plan->sizes.all_points;
        plan->sizes.all_points += clv_round_up(arm->points, LANES);
        w->scale = at, at += LANES;
        if (clv_is_grid(arm)) {
            w->grid = plan->tables.grid_count,
            plan->tables.grid_count += arm->grid_spectra * arm->points;
            at += clv_round_up(clv_grid_table_size(arm), LANES);
        }
        for (size_t l = 0; l < arm->layers; ++l) {
            w->pitch[l] = clv_round_up(arm->width[l + 1], LANES);
            w->weight[l] = at, at += w->pitch[l] * arm->width[l];
            w->bias[l] = at, at += w->pitch[l];
        }
        w->ccf = ccf;
        w->ccf_pitch = g->ccf_points + plan->sizes.ccf_lags + LANES;
        ccf += w->ccf_pitch * plan->library->ccf_count;
    }
    plan->tables.weight_count = CLV_MAX(at, (size_t)1),
    plan->tables.ccf_count = CLV_MAX(ccf, (size_t)1);
}

void clv_plan_fill(clv_spectra_plan *plan, size_t i)
{
    const clv_spectra_grid *g = &plan->grid[i];
    const clv_spectra_arm *arm = &plan->library->arms[g->arm];
    const clv_spectra_weights *w = &plan->tables.arm[i];
    if (clv_is_grid(arm)) clv_grid_table_fill(arm, plan->tables.weights + w->scale);
    for (size_t k = 0; k < 4 && !clv_is_grid(arm); ++k) {
        plan->tables.weights[w->scale + k] = (float)arm->mean[k];
        plan->tables.weights[w->scale + 4 + k] = (float)(1 / arm->std[k]);
    }
    for (size_t l = 0; l < arm->layers; ++l)
        for (size_t first = 0; first < arm->width[l + 1]; first += LANES) {
            const size_t end = CLV_MIN(first + LANES, arm->width[l + 1]);
            memcpy(plan->tables.weights + w->bias[l] + first, arm->bias[l] + first,
                   (end - first) * sizeof(float));
            for (size_t o = first; o < end && l + 1 == arm->layers; ++o)
                plan->tables.weights[w->bias[l] + o] =
                    (float)((double)arm->bias[l][o] - g->log_scale);
            for (size_t in = 0; in < arm->width[l]; ++in)
                for (size_t o = first; o < end; ++o)
                    plan->tables
                        .weights[w->weight[l] + first * arm->width[l] + in * LANES + (o - first)] =
                        arm->weight[l][o * arm->width[l] + in];
        }
    for (size_t m = 0; m < plan->library->ccf_count; ++m) {
        float *to = plan->tables.ccf + w->ccf + m * w->ccf_pitch;
        const float *from = arm->ccf + m * arm->ccf_points;
        for (size_t n = 0; n < w->ccf_pitch; ++n) {
            const size_t at = (n + g->ccf_points - g->ccf_reach) % g->ccf_points * g->ccf_fold;
            double sum = 0;
            for (size_t k = 0; k < g->ccf_fold; ++k)
                sum += (double)from[at + k];
            to[n] = (float)(sum / (double)g->ccf_fold);
        }
    }
}

void clv_plan_fill_ranges(clv_spectra_plan *plan)
{
    const size_t spectra = plan->stars.spectra;
    int32_t *owner = plan->tables.ranges + 2 * spectra;
    for (size_t i = 0; i < spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        const size_t first = g->first / CLV_SPECTRA_SEGMENT,
                     count = g->padded / CLV_SPECTRA_SEGMENT;
        plan->tables.ranges[2 * i] = (int32_t)first,
                                plan->tables.ranges[2 * i + 1] = (int32_t)count;
        for (size_t k = 0; k < count; ++k)
            owner[first + k] = (int32_t)i;
    }
}

void clv_plan_fill_places(clv_spectra_plan *plan)
{
    const size_t spectra = plan->stars.spectra;
    const double by = (plan->box.high[0] - plan->box.low[0]) / (double)(plan->sizes.velocities - 1);
    for (size_t i = 0; i < plan->sizes.velocities; ++i)
        for (size_t k = 0; k < spectra; ++k) {
            const clv_spectra_grid *g = &plan->grid[k];
            if (!g->wavelength) continue;
            const double x = (plan->box.low[0] + by * (double)i) / g->ccf_step;
            float *place = plan->tables.places[i * spectra + k];
            place[0] = (float)((double)g->ccf_reach - floor(x)), place[1] = (float)(x - floor(x));
        }
}

bool clv_spectra_has_first_arms(const clv_spectra_plan *plan)
{
    size_t arms = 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        if (clv_spectra_lead(plan, i) != i) continue;
        if (clv_is_grid(&plan->library->arms[plan->grid[i].arm])) return false;
        ++arms;
    }
    return arms > 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of library, stars and options; tables for the kernels. */
#include "host/spectra/spectra_feed.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

_Static_assert((int)CLV_S_UNKNOWNS == (int)CLV_SPECTRA_UNKNOWNS &&
                   (int)CLV_S_SPECTRA == (int)CLV_SPECTRA_MAX_SPECTRA,
               "kernels count them as cleave/spectra.h does");

enum {
    LANES = 16,
    MIN_PIXELS = 16,
    MIN_POINTS = 64,
    MAX_SIDE = 1 << 24,
    LEAST_START_POINTS = 2048,
    WIDEST_LAG_KMS = 80,
    MOST_IGNORED = 16,
    SCALE_LIMIT = 10 /* as powers of two */
};

/* ---- checks -------------------------------------------------------------------------------- */

static clv_status check_rest(const clv_spectra_arm *a, const char *name)
{
    if (!(a->first > 0) || !(a->last > a->first) || !isfinite(a->last))
        return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s: wavelengths %g to %g", name, a->first,
                        a->last);
    if (!a->ccf || a->ccf_points < MIN_POINTS || a->ccf_points > MAX_SIDE ||
        !(a->ccf_log1 > a->ccf_log0) || !(a->ccf_spline_kms > 0))
        return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s has no start templates", name);
    return CLV_OK;
}

static clv_status check_arm(const clv_spectra_library *lib, size_t index)
{
    const clv_spectra_arm *a = &lib->arms[index];
    const char *name = a->name ? a->name : "?";
    const bool grid = clv_is_grid(a);
    if (grid) CLV_TRY(clv_grid_check(a));
    if (grid && (a->layers || a->points < MIN_POINTS || a->points > MAX_SIDE))
        return clv_fail(CLV_E_SHAPE, "specfit: arm %s: a grid with %zu layers and %zu points", name,
                        a->layers, a->points);
    if (grid) return check_rest(a, name);
    if (!a->layers || a->layers > CLV_SPECTRA_MAX_LAYERS)
        return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s has %zu layers, expected 1 to %d", name,
                        a->layers, CLV_SPECTRA_MAX_LAYERS);
    if (a->width[0] != 4 || a->width[a->layers] != a->points || a->points < MIN_POINTS ||
        a->points > MAX_SIDE)
        return clv_fail(CLV_E_SHAPE, "specfit: arm %s: a network of 4 to %zu values expected", name,
                        a->points);
    for (size_t i = 0; i < a->layers; ++i)
        if (!a->weight[i] || !a->bias[i] || !a->width[i] || a->width[i] > MAX_SIDE)
            return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s: layer %zu is empty", name, i);
    for (int k = 0; k < 4; ++k)
        if (!(a->std[k] > 0) || !isfinite(a->std[k]) || !isfinite(a->mean[k]))
            return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s: mean and std of the inputs", name);
    return check_rest(a, name);
}

static clv_status check_all(const clv_spectra_library *lib, const clv_spectra_stars *stars,
                            const clv_specfit_options *o)
{
    if (!lib->arms || !lib->arm_count || (stars->count && !stars->items))
        return clv_fail(CLV_E_ARGUMENT, "specfit: NULL given");
    if (!stars->spectra || stars->spectra > CLV_SPECTRA_MAX_SPECTRA)
        return clv_fail(CLV_E_SHAPE, "specfit: %zu spectra a star given, expected 1 to %d",
                        stars->spectra, CLV_SPECTRA_MAX_SPECTRA);
    if (o->terms > CLV_SPECTRA_MAX_TERMS || o->starts > 8)
        return clv_fail(CLV_E_ARGUMENT, "specfit: %u continuum terms (1 to %d), %u starts (1 to 8)",
                        o->terms, CLV_SPECTRA_MAX_TERMS, o->starts);
    const double v[] = { o->max_velocity_kms - o->min_velocity_kms, o->velocity_step_kms,
                         o->max_vsini_kms, o->library_sigma };
    for (size_t i = 0; i < CLV_LEN(v); ++i)
        if (!(v[i] > 0) || v[i] > 10000)
            return clv_fail(CLV_E_ARGUMENT, "specfit: velocity range, steps and widths must be "
                                            "positive and at most 10000");
    if (!(o->reject_sigma >= 3))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: reject_sigma is %g, but it must be at least 3 (or INFINITY, so "
                        "that no pixel is rejected)",
                        o->reject_sigma);
    if (o->ignored_count > MOST_IGNORED || (o->ignored_count && !o->ignored))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: %zu ranges of wavelengths to ignore given, expected at most %d",
                        o->ignored_count, MOST_IGNORED);
    for (size_t i = 0; i < o->ignored_count; ++i)
        if (!(o->ignored[2 * i] < o->ignored[2 * i + 1]))
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: the ignored range %zu is %g to %g Angstrom, but the first "
                            "bound must be below the second",
                            i, o->ignored[2 * i], o->ignored[2 * i + 1]);
    if (!lib->ccf_count || !lib->ccf_parameters)
        return clv_fail(CLV_E_ARGUMENT, "specfit: the library has no start templates");
    for (size_t i = 0; i < lib->arm_count; ++i)
        CLV_TRY(check_arm(lib, i));
    return CLV_OK;
}

static clv_status read_options(const clv_specfit_options *given, clv_specfit_options *out)
{
    clv_specfit_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, given, "clv_specfit", "clv_specfit_options"));
    if (!o.terms) o.terms = 10;
    if (!o.starts) o.starts = 1;
    if (o.max_velocity_kms == 0) o.max_velocity_kms = 1000;
    if (!o.min_velocity_given) o.min_velocity_kms = -o.max_velocity_kms;
    if (o.velocity_step_kms == 0) o.velocity_step_kms = 5;
    if (o.max_vsini_kms == 0) o.max_vsini_kms = 500;
    if (o.library_sigma == 0) o.library_sigma = 0.5;
    if (o.reject_sigma == 0) o.reject_sigma = 6;
    *out = o;
    return CLV_OK;
}

/* ---- grids --------------------------------------------------------------------------------- */

static double fastest(const clv_specfit_options *o)
{
    return fmax(fabs(o->min_velocity_kms), fabs(o->max_velocity_kms));
}

static clv_status check_grid(const clv_spectra_plan *plan, const clv_spectra_grid *g)
{
    const clv_spectra_arm *arm = &plan->library->arms[g->arm];
    const clv_specfit_options *o = &plan->options;
    const double b = fastest(o) / CLV_LIGHT_KMS;
    const double low = g->wavelength[0] * sqrt((1 - b) / (1 + b));
    const double high = g->wavelength[g->pixels - 1] * sqrt((1 + b) / (1 - b));
    for (size_t k = 0; k < g->pixels; ++k)
        if (!isfinite(g->wavelength[k]) || (k && !(g->wavelength[k] > g->wavelength[k - 1])))
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: wavelengths of arm %s do not rise at pixel %zu", arm->name,
                            k);
    if (!(low > arm->first) || !(high < arm->last))
        return clv_fail(CLV_E_SHAPE,
                        "specfit: arm %s of the library covers %.1f to %.1f Angstrom; the spectra "
                        "need %.1f to %.1f at +-%g km/s",
                        arm->name, arm->first, arm->last, low, high, fastest(o));
    return CLV_OK;
}

static clv_status find_grids(clv_spectra_plan *plan)
{
    const clv_spectra_stars *s = &plan->stars;
    for (size_t i = 0; i < s->spectra; ++i) {
        clv_spectra_grid *g = &plan->grid[i];
        for (size_t n = 0; n < s->count; ++n) {
            const clv_spectrum *x = &s->items[n * s->spectra + i];
            if (!x->pixels) continue;
            if (x->arm >= plan->library->arm_count || x->pixels < MIN_PIXELS ||
                x->pixels > MAX_SIDE || !x->wavelength || !x->flux || !x->ivar)
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: star %zu, spectrum %zu: an arm of the library, at least "
                                "%d pixels, wavelengths, flux and ivar expected",
                                n, i, MIN_PIXELS);
            if (!g->wavelength)
                g->wavelength = x->wavelength, g->pixels = x->pixels, g->arm = x->arm;
            const bool same = x->pixels == g->pixels && x->arm == g->arm &&
                              (x->wavelength == g->wavelength ||
                               !memcmp(x->wavelength, g->wavelength, x->pixels * sizeof(double)));
            if (!same)
                return clv_fail(CLV_E_SHAPE,
                                "specfit: spectrum %zu of star %zu has other "
                                "wavelengths than that of the stars before",
                                i, n);
            if (!x->resolution) continue;
            if (x->diagonals % 2 == 0 || x->diagonals > 63 ||
                (plan->sizes.diagonals && plan->sizes.diagonals != x->diagonals))
                return clv_fail(CLV_E_SHAPE,
                                "specfit: resolution with %zu diagonals; an odd "
                                "number below 64, the same for all, expected",
                                x->diagonals);
            plan->sizes.diagonals = x->diagonals;
        }
        g->first = plan->sizes.all_pixels;
        g->padded = clv_round_up(g->pixels, CLV_SPECTRA_SEGMENT);
        plan->sizes.all_pixels += g->padded;
        plan->sizes.longest_spectrum = CLV_MAX(plan->sizes.longest_spectrum, g->padded);
        if (!g->wavelength) continue;
        CLV_TRY(check_grid(plan, g));
        const clv_spectra_arm *arm = &plan->library->arms[g->arm];
        g->dln = log(arm->last / arm->first) / (double)(arm->points - 1);
        plan->sizes.longest_template = CLV_MAX(plan->sizes.longest_template, arm->points);
        for (size_t l = 0; l < arm->layers; ++l)
            plan->sizes.widest = CLV_MAX(plan->sizes.widest, arm->width[l]);
        if (clv_is_grid(arm)) plan->sizes.widest = CLV_MAX(plan->sizes.widest, (size_t)2 * LANES);
        const double lag = expm1((arm->ccf_log1 - arm->ccf_log0) / (double)arm->ccf_points) * 3e5;
        g->ccf_fold = 1; /* a start needs no finer grid than lines are wide */
        while (arm->ccf_points % (2 * g->ccf_fold) == 0 &&
               arm->ccf_points / (2 * g->ccf_fold) >= LEAST_START_POINTS &&
               lag * 2 * (double)g->ccf_fold <= WIDEST_LAG_KMS)
            g->ccf_fold *= 2;
        g->ccf_points = arm->ccf_points / g->ccf_fold;
        g->ccf_step = lag * (double)g->ccf_fold;
        plan->sizes.ccf_room = CLV_MAX(plan->sizes.ccf_room, g->ccf_points);
        g->ccf_reach = (size_t)ceil(fastest(&plan->options) / g->ccf_step) + 1;
        if (g->ccf_reach > CLV_SPECTRA_MAX_START_LAGS || g->ccf_reach >= g->ccf_points / 2)
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: arm %s: %g km/s are %zu lags of the start "
                            "templates",
                            arm->name, fastest(&plan->options), g->ccf_reach);
        plan->sizes.ccf_lags =
            CLV_MAX(plan->sizes.ccf_lags, clv_round_up(2 * g->ccf_reach + 1, LANES));
    }
    plan->sizes.widest = clv_round_up(CLV_MAX(plan->sizes.widest, (size_t)LANES), LANES);
    return CLV_OK;
}

/* [columns / (terms + 1)][all_pixels][terms + 1] */
static float *product_at(clv_spectra_plan *plan, size_t pixel, size_t column)
{
    const size_t part = plan->options.terms + 1u;
    return plan->tables.products + (column / part * plan->sizes.all_pixels + pixel) * part +
           column % part;
}

static clv_status make_grid(clv_spectra_plan *plan, clv_spectra_grid *g)
{
    const clv_spectra_arm *arm = &plan->library->arms[g->arm];
    const unsigned terms = plan->options.terms;
    const size_t columns = clv_scan_columns(terms);
    const double l0 = g->wavelength[0], l1 = g->wavelength[g->pixels - 1];
    g->basis = clv_alloc(g->pixels * terms, sizeof *g->basis);
    g->ccf_left = clv_alloc(arm->ccf_points, sizeof *g->ccf_left);
    g->ccf_right = clv_alloc(arm->ccf_points, sizeof *g->ccf_right);
    if (!g->basis || !g->ccf_left || !g->ccf_right)
        return clv_fail(CLV_E_MEMORY, "specfit: no memory for a grid");
    for (size_t k = 0; k < g->pixels; ++k) {
        double *b = g->basis + k * terms, narrow[CLV_SPECTRA_MAX_TERMS];
        clv_spectra_basis(2 * (g->wavelength[k] - l0) / (l1 - l0) - 1, terms, b);
        /* the tails of the Gaussians: nothing to float32, but slow, as subnormal numbers are */
        for (unsigned j = 0; j < terms; ++j)
            narrow[j] = fabs(b[j]) < 1e-15 ? 0 : b[j];
        for (unsigned j = 0, e = 0; j < terms; ++j) {
            plan->tables.basis[(g->first + k) * 16 + j] = (float)narrow[j];
            *product_at(plan, g->first + k, columns - terms - 1 + j) = (float)narrow[j];
            for (unsigned i = 0; i <= j; ++i, ++e)
                *product_at(plan, g->first + k, e) = (float)(narrow[i] * narrow[j]);
        }
        const double phase = log(g->wavelength[k] / arm->first) / g->dln;
        plan->tables.whole[g->first + k] = (int32_t)floor(phase);
        plan->tables.part[g->first + k] = (float)(phase - floor(phase));
    }
    const double by = (arm->ccf_log1 - arm->ccf_log0) / (double)(arm->ccf_points - 1);
    for (size_t i = 0, at = 0; i < arm->ccf_points; ++i) {
        const double x = exp(arm->ccf_log0 + by * (double)i);
        while (at + 1 < g->pixels && g->wavelength[at + 1] < x)
            ++at;
        const bool inside = x > l0 && x <= l1 && at + 1 < g->pixels;
        g->ccf_left[i] = inside ? at : SIZE_MAX;
        g->ccf_right[i] =
            inside ? (float)((x - g->wavelength[at]) / (g->wavelength[at + 1] - g->wavelength[at]))
                   : 0;
    }
    return clv_continuum_create(g->wavelength, g->pixels, arm->ccf_spline_kms, &g->continuum);
}

size_t clv_spectra_lead(const clv_spectra_plan *plan, size_t spectrum)
{
    if (!plan->grid[spectrum].wavelength) return SIZE_MAX;
    size_t i = 0;
    while (!plan->grid[i].wavelength || plan->grid[i].arm != plan->grid[spectrum].arm)
        ++i;
    return i;
}

size_t clv_scan_columns(unsigned terms)
{
    const size_t part = terms + 1u, products = (size_t)terms * (terms + 1u) / 2;
    return ((products + part - 1) / part + 1) * part;
}

/* ---- scale of the templates ---------------------------------------------------------------- */

/* A typical template of an arm: the network's in the middle of its training points, or a node's. */
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

/* Templates far from 1 (PHOENIX has 1e+14) are divided by a power of two, so that float32 can hold
 * the sums of their squares. Others stay as they are. */
static clv_status find_scales(clv_spectra_plan *plan)
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
    return ok ? CLV_OK : clv_fail(CLV_E_MEMORY, "specfit: no memory for a template");
}

/* ---- constants of the devices -------------------------------------------------------------- */

static void lay_out_weights(clv_spectra_plan *plan)
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

static void fill_weights(clv_spectra_plan *plan, size_t i)
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

static void fill_table(clv_spectra_plan *plan)
{
    const size_t spectra = plan->stars.spectra;
    int32_t *owner = plan->tables.ranges + 3 * spectra;
    for (size_t i = 0; i < spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        const size_t first = g->first / CLV_SPECTRA_SEGMENT,
                     count = g->padded / CLV_SPECTRA_SEGMENT;
        plan->tables.ranges[2 * i] = (int32_t)first,
                                plan->tables.ranges[2 * i + 1] = (int32_t)count;
        plan->tables.ranges[2 * spectra + i] = (int32_t)g->ccf_reach;
        plan->tables.ccf_step[i] = (float)g->ccf_step;
        for (size_t k = 0; k < count; ++k)
            owner[first + k] = (int32_t)i;
    }
}

/* The box around the library's training points, and the steps of the differences and the optimiser. */
static void make_box(clv_spectra_plan *plan)
{
    static const double step[6] = { 0.3, 0.3, 4, 0.01, 0.01, 0.01 };
    static const double longest[6] = { 150, 100, 1500, 1.5, 1, 0.5 };
    const clv_specfit_options *o = &plan->options;
    double low[6] = { o->min_velocity_kms, 0, 0, -INFINITY, -INFINITY, -INFINITY };
    double high[6] = {
        o->max_velocity_kms, o->max_vsini_kms, INFINITY, INFINITY, INFINITY, INFINITY
    };
    for (size_t i = 0; i < plan->library->arm_count; ++i) {
        const clv_spectra_arm *a = &plan->library->arms[i];
        for (size_t k = 0; k < 4; ++k) {
            double least = a->hull_count ? INFINITY : -3, most = -least;
            for (size_t n = 0; n < a->hull_count; ++n)
                least = fmin(least, a->hull[4 * n + k]), most = fmax(most, a->hull[4 * n + k]);
            least = a->mean[k] + a->std[k] * least, most = a->mean[k] + a->std[k] * most;
            if (clv_is_grid(a)) least = a->axis[k][0], most = a->axis[k][a->nodes[k] - 1];
            if (k == 0) least = pow(10, least), most = pow(10, most);
            low[2 + k] = fmax(low[2 + k], least), high[2 + k] = fmin(high[2 + k], most);
        }
    }
    for (size_t k = 0; k < 6; ++k) {
        plan->box.low[k] = low[k], plan->box.high[k] = high[k];
        plan->box.step[k] = step[k], plan->box.longest[k] = longest[k];
        plan->box.numbers[k] = (float)low[k], plan->box.numbers[6 + k] = (float)high[k];
        plan->box.numbers[12 + k] = (float)longest[k], plan->box.numbers[18 + k] = (float)step[k];
    }
    size_t pixels = 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        pixels += plan->grid[i].pixels;
    plan->box.numbers[24] = 10 * (float)pixels;
}

static clv_status check_priors(const clv_spectra_plan *plan)
{
    static const char *const names[] = { "velocity", "vsini", "teff", "logg", "feh", "alpha" };
    for (size_t i = 0; plan->stars.priors && i < plan->stars.count; ++i) {
        const clv_star_prior *p = &plan->stars.priors[i];
        for (int k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k) {
            const double x = p->value[k], sigma = p->sigma[k];
            if (!isfinite(x) || !(sigma >= 0) || !isfinite(sigma) || (sigma > 0 && sigma < 1e-6))
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: star %zu: the prior of %s is %g +- %g; finite numbers "
                                "with a sigma of 0 (no "
                                "prior) or at least 1e-6 expected",
                                i, names[k], x, sigma);
            if (p->fixed[k] && !(x >= plan->box.low[k] && x <= plan->box.high[k]))
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: star %zu: %s is to be fixed at %g, outside of %g to %g, "
                                "which the library and "
                                "the limits allow",
                                i, names[k], x, plan->box.low[k], plan->box.high[k]);
        }
    }
    return CLV_OK;
}

void clv_star_prior_numbers(const clv_spectra_plan *plan, size_t star, float out[CLV_SPECTRA_PRIOR])
{
    unsigned fixed = 0;
    memset(out, 0, CLV_SPECTRA_PRIOR * sizeof *out);
    if (!plan->stars.priors) return;
    const clv_star_prior *p = &plan->stars.priors[star];
    for (unsigned k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k) {
        if (p->fixed[k] || p->sigma[k] > 0) out[k] = (float)p->value[k];
        if (!p->fixed[k] && p->sigma[k] > 0) out[6 + k] = (float)(1 / (p->sigma[k] * p->sigma[k]));
        fixed |= (unsigned)p->fixed[k] << k;
    }
    out[12] = (float)fixed;
}

static clv_status allocate(clv_spectra_plan *p)
{
    const size_t n = CLV_MAX(p->sizes.all_pixels, (size_t)CLV_SPECTRA_SEGMENT),
                 s = p->stars.spectra;
    lay_out_weights(p);
    p->tables.weights = clv_zalloc(p->tables.weight_count, sizeof *p->tables.weights);
    p->tables.basis = clv_zalloc(n * 16, sizeof *p->tables.basis);
    p->tables.products =
        clv_zalloc(n * clv_scan_columns(p->options.terms), sizeof *p->tables.products);
    p->tables.whole = clv_zalloc(n, sizeof *p->tables.whole),
    p->tables.part = clv_zalloc(n, sizeof *p->tables.part);
    p->tables.ccf = clv_zalloc(p->tables.ccf_count, sizeof *p->tables.ccf);
    p->tables.ccf_points = clv_zalloc(p->library->ccf_count * 4, sizeof *p->tables.ccf_points);
    p->tables.ranges = clv_zalloc(3 * s + n / CLV_SPECTRA_SEGMENT, sizeof *p->tables.ranges);
    p->tables.ccf_step = clv_zalloc(s, sizeof *p->tables.ccf_step);
    p->run.facts = clv_zalloc(CLV_MAX(p->stars.count, (size_t)1), sizeof *p->run.facts);
    if (p->tables.weights && p->tables.basis && p->tables.products && p->tables.whole &&
        p->tables.part && p->tables.ccf && p->tables.ccf_points && p->tables.ranges &&
        p->tables.ccf_step && p->run.facts)
        return CLV_OK;
    return clv_fail(CLV_E_MEMORY, "specfit: no memory for %zu weights and %zu pixels",
                    p->tables.weight_count, n);
}

static clv_status build(clv_spectra_plan *plan)
{
    CLV_TRY(find_grids(plan));
    CLV_TRY(find_scales(plan));
    CLV_TRY(allocate(plan));
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        if (!plan->grid[i].wavelength) continue;
        CLV_TRY(make_grid(plan, &plan->grid[i]));
        fill_weights(plan, i);
    }
    for (size_t i = 0; i < plan->library->ccf_count; ++i) {
        double q[CLV_SPECTRA_PARAMETERS];
        if (!clv_grid_start(plan->library, i, q)) q[3] = CLV_SPECTRA_NO_ALPHA;
        for (size_t k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
            plan->tables.ccf_points[CLV_SPECTRA_PARAMETERS * i + k] = (float)q[k];
    }
    fill_table(plan);
    make_box(plan);
    CLV_TRY(check_priors(plan));
    const clv_specfit_options *o = &plan->options;
    plan->sizes.velocities =
        (size_t)((o->max_velocity_kms - o->min_velocity_kms) / o->velocity_step_kms) + 1;
    return plan->sizes.velocities > 1 && plan->sizes.velocities < 20000
               ? CLV_OK
               : clv_fail(CLV_E_ARGUMENT, "specfit: %zu velocities", plan->sizes.velocities);
}

clv_status clv_spectra_plan_create(const clv_spectra_library *library,
                                   const clv_spectra_stars *stars,
                                   const clv_specfit_options *options, clv_spectra_plan **out)
{
    clv_specfit_options o;
    clv_spectra_library own;
    clv_spectra_stars own_stars;
    *out = NULL;
    if (!library || !stars) return clv_fail(CLV_E_ARGUMENT, "specfit: library or stars is NULL");
    CLV_TRY(read_options(options, &o));
    CLV_TRY(clv_take_struct(&own, sizeof own, library, "clv_specfit", "clv_spectra_library"));
    CLV_TRY(
        clv_take_struct(&own_stars, sizeof own_stars, stars, "clv_specfit", "clv_spectra_stars"));
    CLV_TRY(check_all(&own, &own_stars, &o));
    clv_spectra_plan *plan = clv_zalloc(1, sizeof *plan);
    if (!plan) return clv_fail(CLV_E_MEMORY, "specfit: no memory");
    if (!clv_mutex_init(&plan->run.lock)) {
        clv_free(plan);
        return clv_fail(CLV_E_MEMORY, "specfit: no lock");
    }
    plan->own_library = own, plan->library = &plan->own_library;
    plan->stars = own_stars, plan->options = o;
    const clv_status status = build(plan);
    if (status)
        clv_spectra_plan_free(plan);
    else
        *out = plan;
    return status;
}

void clv_spectra_plan_free(clv_spectra_plan *p)
{
    if (!p) return;
    clv_star_feed_free(p->run.feed);
    for (size_t i = 0; i < CLV_SPECTRA_MAX_SPECTRA; ++i) {
        clv_free(p->grid[i].basis), clv_free(p->grid[i].ccf_left), clv_free(p->grid[i].ccf_right);
        clv_continuum_clear(&p->grid[i].continuum);
    }
    clv_free(p->tables.weights), clv_free(p->tables.basis), clv_free(p->tables.products),
        clv_free(p->tables.whole), clv_free(p->tables.part);
    clv_free(p->tables.ccf), clv_free(p->tables.ccf_points), clv_free(p->tables.ranges),
        clv_free(p->tables.ccf_step);
    clv_free(p->run.facts);
    (void)pthread_mutex_destroy(&p->run.lock);
    clv_free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the plan of a fit: its wavelength grids, the bounds of its unknowns, and the memory of its tables. */
#include "host/spectra/spectra_feed.h"
#include "host/spectra/spectra_tables.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

_Static_assert((int)CLV_S_UNKNOWNS == (int)CLV_SPECTRA_UNKNOWNS &&
                   (int)CLV_S_SPECTRA == (int)CLV_SPECTRA_MAX_SPECTRA,
               "kernels count them as cleave/spectra.h does");

enum { LANES = 16, LEAST_START_POINTS = 2048, WIDEST_LAG_KMS = 80 };

/* ---- grids --------------------------------------------------------------------------------- */

static clv_status find_grids(clv_spectra_plan *plan)
{
    const clv_spectra_stars *s = &plan->stars;
    for (size_t i = 0; i < s->spectra; ++i) {
        clv_spectra_grid *g = &plan->grid[i];
        for (size_t n = 0; n < s->count; ++n) {
            const clv_spectrum *x = &s->items[n * s->spectra + i];
            if (!x->pixels) continue;
            CLV_TRY(clv_plan_check_spectrum(plan, n, i));
            if (!g->wavelength)
                g->wavelength = x->wavelength, g->pixels = x->pixels, g->arm = x->arm;
            const bool same = x->pixels == g->pixels && x->arm == g->arm &&
                              (x->wavelength == g->wavelength ||
                               !memcmp(x->wavelength, g->wavelength, x->pixels * sizeof(double)));
            if (!same)
                return clv_fail(CLV_E_SHAPE,
                                "specfit: spectrum %zu of star %zu has wavelengths that differ "
                                "from those of the stars before it",
                                i, n);
            if (!x->resolution) continue;
            if (x->diagonals % 2 == 0 || x->diagonals > 63 ||
                (plan->sizes.diagonals && plan->sizes.diagonals != x->diagonals))
                return clv_fail(CLV_E_SHAPE,
                                "specfit: the resolution has %zu diagonals; expected an odd number "
                                "below 64, the same for all",
                                x->diagonals);
            plan->sizes.diagonals = x->diagonals;
        }
        g->first = plan->sizes.all_pixels;
        g->padded = clv_round_up(g->pixels, CLV_SPECTRA_SEGMENT);
        plan->sizes.all_pixels += g->padded;
        plan->sizes.longest_spectrum = CLV_MAX(plan->sizes.longest_spectrum, g->padded);
        if (!g->wavelength) continue;
        CLV_TRY(clv_plan_check_grid(plan, g));
        const clv_spectra_arm *arm = &plan->library->arms[g->arm];
        g->dln = log(arm->last / arm->first) / (double)(arm->points - 1);
        plan->sizes.longest_template = CLV_MAX(plan->sizes.longest_template, arm->points);
        for (size_t l = 0; l < arm->layers; ++l)
            plan->sizes.widest = CLV_MAX(plan->sizes.widest, arm->width[l]);
        if (clv_is_grid(arm)) plan->sizes.widest = CLV_MAX(plan->sizes.widest, (size_t)2 * LANES);
        const double lag = expm1((arm->ccf_log1 - arm->ccf_log0) / (double)arm->ccf_points) * 3e5;
        g->ccf_fold = 1; /* the cross-correlation can use a grid as coarse as the width of lines */
        while (arm->ccf_points % (2 * g->ccf_fold) == 0 &&
               arm->ccf_points / (2 * g->ccf_fold) >= LEAST_START_POINTS &&
               lag * 2 * (double)g->ccf_fold <= WIDEST_LAG_KMS)
            g->ccf_fold *= 2;
        g->ccf_points = arm->ccf_points / g->ccf_fold;
        g->ccf_step = lag * (double)g->ccf_fold;
        plan->sizes.ccf_room = CLV_MAX(plan->sizes.ccf_room, g->ccf_points);
        const double reach = ceil(clv_plan_fastest(&plan->options) / g->ccf_step) + 1;
        const size_t most = CLV_MIN((size_t)CLV_SPECTRA_MAX_START_LAGS, g->ccf_points / 2 - 1);
        if (!(reach <= (double)most))
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: arm %s: velocities up to %g km/s need %g steps of the first "
                            "search, but at most %zu are possible; allow only smaller velocities",
                            arm->name, clv_plan_fastest(&plan->options), reach, most);
        g->ccf_reach = (size_t)reach;
        plan->sizes.ccf_lags =
            CLV_MAX(plan->sizes.ccf_lags, clv_round_up(2 * g->ccf_reach + 1, LANES));
    }
    plan->sizes.widest = clv_round_up(CLV_MAX(plan->sizes.widest, (size_t)LANES), LANES);
    return CLV_OK;
}

/* Returns the address of an element in the table `products`, [columns / (terms + 1)][all_pixels][terms + 1]. */
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
        return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a grid");
    for (size_t k = 0; k < g->pixels; ++k) {
        double *b = g->basis + k * terms, narrow[CLV_SPECTRA_MAX_TERMS];
        clv_spectra_basis(2 * (g->wavelength[k] - l0) / (l1 - l0) - 1, terms, b);
        /* the tails of the Gaussians are negligible in float32, but slow as subnormal numbers */
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

size_t clv_scan_columns(unsigned terms)
{
    const size_t part = terms + 1u, products = (size_t)terms * (terms + 1u) / 2;
    return ((products + part - 1) / part + 1) * part;
}

/* Returns the float nearest to a limit and not beyond it, so that a fit that ends at the limit does not lie outside the
 * library. `inside` is 1 for a lower limit, -1 for an upper one. */
static float within(double limit, int inside)
{
    const float rounded = (float)limit;
    const bool beyond = inside > 0 ? (double)rounded < limit : (double)rounded > limit;
    return beyond ? nextafterf(rounded, inside > 0 ? INFINITY : -INFINITY) : rounded;
}

/* Returns the fastest rotation whose kernel has room in every template that the stars use. */
static double fastest_rotation(const clv_spectra_plan *plan)
{
    double most = plan->options.max_vsini_kms;
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        if (plan->grid[i].wavelength)
            most = fmin(most, CLV_SPECTRA_MOST_RADIUS * plan->grid[i].dln * CLV_LIGHT_KMS);
    if (most < plan->options.max_vsini_kms)
        clv_log(CLV_LOG_WARN,
                "specfit: vsini is limited to %.4g km/s, not %g: the library's templates have so "
                "many points per km/s that a faster rotation has no room",
                most, plan->options.max_vsini_kms);
    return most;
}

/* Computes the bounds of the unknowns from the library's training points, the steps of the finite differences, and the
 * longest moves of the optimiser. */
static clv_status make_box(clv_spectra_plan *plan)
{
    static const char *const names[4] = { "teff", "logg", "feh", "alpha" };
    static const double step[6] = { 0.3, 0.3, 4, 0.01, 0.01, 0.01 };
    static const double longest[6] = { 150, 100, 1500, 1.5, 1, 0.5 };
    const clv_specfit_options *o = &plan->options;
    double low[6] = { o->min_velocity_kms, 0, 0, -INFINITY, -INFINITY, -INFINITY };
    double high[6] = {
        o->max_velocity_kms, fastest_rotation(plan), INFINITY, INFINITY, INFINITY, INFINITY
    };
    for (size_t i = 0; i < plan->library->arm_count; ++i) {
        const clv_spectra_arm *a = &plan->library->arms[i];
        for (size_t k = 0; k < 4; ++k) {
            const size_t points = clv_is_grid(a) ? 0 : a->hull_count;
            double least = points ? INFINITY : -3, most = -least;
            for (size_t n = 0; n < points; ++n)
                least = fmin(least, a->hull[4 * n + k]), most = fmax(most, a->hull[4 * n + k]);
            least = a->mean[k] + a->std[k] * least, most = a->mean[k] + a->std[k] * most;
            if (clv_is_grid(a)) least = a->axis[k][0], most = a->axis[k][a->nodes[k] - 1];
            if (k == 0) least = pow(10, least), most = pow(10, most);
            low[2 + k] = fmax(low[2 + k], least), high[2 + k] = fmin(high[2 + k], most);
        }
    }
    for (size_t k = 0; k < 4; ++k)
        if (!isfinite(low[2 + k]) || !(low[2 + k] <= high[2 + k]) || !isfinite(high[2 + k]))
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: the library's %s goes from %g to %g, but the ranges of its "
                            "arms must be finite and overlap; check its nodes, or its training "
                            "points, means and standard deviations",
                            names[k], low[2 + k], high[2 + k]);
    for (size_t k = 0; k < 6; ++k) {
        plan->box.low[k] = low[k], plan->box.high[k] = high[k];
        plan->box.step[k] = step[k], plan->box.longest[k] = longest[k];
        plan->box.numbers[k] = within(low[k], 1), plan->box.numbers[6 + k] = within(high[k], -1);
        plan->box.numbers[12 + k] = (float)longest[k], plan->box.numbers[18 + k] = (float)step[k];
    }
    size_t pixels = 0;
    for (size_t i = 0; i < plan->stars.spectra; ++i)
        pixels += plan->grid[i].pixels;
    plan->box.numbers[24] = 10 * (float)pixels;
    return CLV_OK;
}

static clv_status allocate(clv_spectra_plan *p)
{
    const size_t n = CLV_MAX(p->sizes.all_pixels, (size_t)CLV_SPECTRA_SEGMENT),
                 s = p->stars.spectra;
    clv_plan_lay_out(p);
    p->tables.weights = clv_zalloc(p->tables.weight_count, sizeof *p->tables.weights);
    p->tables.basis = clv_zalloc(n * 16, sizeof *p->tables.basis);
    p->tables.products =
        clv_zalloc(n * clv_scan_columns(p->options.terms), sizeof *p->tables.products);
    p->tables.whole = clv_zalloc(n, sizeof *p->tables.whole),
    p->tables.part = clv_zalloc(n, sizeof *p->tables.part);
    p->tables.ccf = clv_zalloc(p->tables.ccf_count, sizeof *p->tables.ccf);
    p->tables.ccf_points = clv_zalloc(p->library->ccf_count * 4, sizeof *p->tables.ccf_points);
    p->tables.ranges = clv_zalloc(2 * s + n / CLV_SPECTRA_SEGMENT, sizeof *p->tables.ranges);
    p->tables.places = clv_zalloc(p->sizes.velocities * s, sizeof *p->tables.places);
    p->run.facts = clv_zalloc(CLV_MAX(p->stars.count, (size_t)1), sizeof *p->run.facts);
    if (p->tables.weights && p->tables.basis && p->tables.products && p->tables.whole &&
        p->tables.part && p->tables.ccf && p->tables.ccf_points && p->tables.ranges &&
        p->tables.places && p->run.facts)
        return CLV_OK;
    return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for %zu weights and %zu pixels",
                    p->tables.weight_count, n);
}

static clv_status count_velocities(clv_spectra_plan *plan)
{
    const clv_specfit_options *o = &plan->options;
    const double count =
        floor((o->max_velocity_kms - o->min_velocity_kms) / o->velocity_step_kms) + 1;
    if (!(count >= 2 && count < 20000))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: the range and step of velocities give %g velocities; expected 2 "
                        "to 19999",
                        count);
    plan->sizes.velocities = (size_t)count;
    return CLV_OK;
}

static clv_status build(clv_spectra_plan *plan)
{
    CLV_TRY(count_velocities(plan));
    CLV_TRY(find_grids(plan));
    CLV_TRY(clv_plan_find_scales(plan));
    CLV_TRY(allocate(plan));
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        if (!plan->grid[i].wavelength) continue;
        CLV_TRY(make_grid(plan, &plan->grid[i]));
        clv_plan_fill(plan, i);
    }
    CLV_TRY(clv_plan_mix(plan));
    for (size_t i = 0; i < plan->library->ccf_count; ++i) {
        double q[CLV_SPECTRA_PARAMETERS];
        if (!clv_grid_start(plan->library, i, q)) q[3] = CLV_SPECTRA_NO_ALPHA;
        for (size_t k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
            plan->tables.ccf_points[CLV_SPECTRA_PARAMETERS * i + k] = (float)q[k];
    }
    clv_plan_fill_ranges(plan);
    CLV_TRY(make_box(plan));
    clv_plan_fill_places(plan);
    return clv_plan_check_priors(plan);
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
    CLV_TRY(clv_plan_read_options(options, &o));
    CLV_TRY(clv_take_struct(&own, sizeof own, library, "clv_specfit", "clv_spectra_library"));
    CLV_TRY(
        clv_take_struct(&own_stars, sizeof own_stars, stars, "clv_specfit", "clv_spectra_stars"));
    CLV_TRY(clv_plan_check(&own, &own_stars, &o));
    clv_spectra_plan *plan = clv_zalloc(1, sizeof *plan);
    if (!plan) return clv_fail(CLV_E_MEMORY, "specfit: out of memory");
    if (!clv_mutex_init(&plan->run.lock)) {
        clv_free(plan);
        return clv_fail(CLV_E_MEMORY, "specfit: cannot create a lock");
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

int clv_spectra_most_rounds(const clv_spectra_plan *plan)
{
    return plan->wish.rounds ? plan->wish.rounds : CLV_SPECTRA_ROUNDS;
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
        clv_free(p->tables.places);
    clv_free(p->tables.few), clv_free(p->tables.shares);
    clv_free(p->run.facts);
    (void)pthread_mutex_destroy(&p->run.lock);
    clv_free(p);
}

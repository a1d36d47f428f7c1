/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the input of a fit: the library, the stars, the options and the priors. */
#include "host/spectra/spectra_tables.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MIN_PIXELS = 16, MIN_POINTS = 64, MAX_SIDE = 1 << 24, MOST_IGNORED = 16, MOST_LOG = 100 };
#define MOST_UNIT 1e200

static clv_status check_rest(const clv_spectra_arm *a, const char *name)
{
    if (!(a->first > 0) || !(a->last > a->first) || !isfinite(a->last / a->first))
        return clv_fail(
            CLV_E_ARGUMENT,
            "specfit: arm %s: the wavelengths go from %g to %g, but they must rise and be positive",
            name, a->first, a->last);
    if (!a->ccf || a->ccf_points < MIN_POINTS || a->ccf_points > MAX_SIDE ||
        !(a->ccf_spline_kms > 0))
        return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s has no start templates", name);
    if (!(a->ccf_log1 > a->ccf_log0) || !(fabs(a->ccf_log0) <= MOST_LOG) ||
        !(fabs(a->ccf_log1) <= MOST_LOG))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: arm %s: the start templates go from %g to %g in ln(wavelength), "
                        "but both must be finite, within +-%d, and rise",
                        name, a->ccf_log0, a->ccf_log1, MOST_LOG);
    return CLV_OK;
}

static clv_status check_arm(const clv_spectra_library *lib, size_t index)
{
    const clv_spectra_arm *a = &lib->arms[index];
    const char *name = a->name ? a->name : "?";
    const bool grid = clv_is_grid(a);
    if (grid) CLV_TRY(clv_grid_check(a));
    if (grid && (a->layers || a->points < MIN_POINTS || a->points > MAX_SIDE))
        return clv_fail(CLV_E_SHAPE,
                        "specfit: arm %s: a library has either a grid or layers, but this arm has "
                        "%zu layers and %zu points of a grid",
                        name, a->layers, a->points);
    if (grid) return check_rest(a, name);
    if (!a->layers || a->layers > CLV_SPECTRA_MAX_LAYERS)
        return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s has %zu layers, expected 1 to %d", name,
                        a->layers, CLV_SPECTRA_MAX_LAYERS);
    if (a->width[0] != 4 || a->width[a->layers] != a->points || a->points < MIN_POINTS ||
        a->points > MAX_SIDE)
        return clv_fail(CLV_E_SHAPE,
                        "specfit: arm %s: the network must have 4 inputs and %zu outputs", name,
                        a->points);
    for (size_t i = 0; i < a->layers; ++i)
        if (!a->weight[i] || !a->bias[i] || !a->width[i] || a->width[i] > MAX_SIDE)
            return clv_fail(CLV_E_ARGUMENT, "specfit: arm %s: layer %zu is empty", name, i);
    for (int k = 0; k < 4; ++k)
        if (!(a->std[k] > 0) || !isfinite(a->std[k]) || !isfinite(a->mean[k]))
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: arm %s: the means of the inputs must be finite and their "
                            "standard deviations positive",
                            name);
    for (size_t i = 0; i < a->hull_count; ++i)
        for (size_t k = 0; k < 4; ++k)
            if (!a->hull || !isfinite(a->hull[4 * i + k]))
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: arm %s: hull is NULL, or input %zu of its training point "
                                "%zu is not finite",
                                name, k, i);
    return check_rest(a, name);
}

clv_status clv_plan_check(const clv_spectra_library *lib, const clv_spectra_stars *stars,
                          const clv_specfit_options *o)
{
    if (!lib->arms || !lib->arm_count || (stars->count && !stars->items))
        return clv_fail(CLV_E_ARGUMENT, "specfit: an argument is NULL");
    if (!stars->spectra || stars->spectra > CLV_SPECTRA_MAX_SPECTRA)
        return clv_fail(CLV_E_SHAPE, "specfit: got %zu spectra per star, expected 1 to %d",
                        stars->spectra, CLV_SPECTRA_MAX_SPECTRA);
    if (o->terms > CLV_SPECTRA_MAX_TERMS || o->starts > 8)
        return clv_fail(
            CLV_E_ARGUMENT,
            "specfit: got %u continuum terms (possible: 1 to %d) and %u starts (possible: 1 to 8)",
            o->terms, CLV_SPECTRA_MAX_TERMS, o->starts);
    const struct {
        const char *name;
        double value;
    } v[] = { { "the range of velocities", o->max_velocity_kms - o->min_velocity_kms },
              { "velocity_step_kms", o->velocity_step_kms },
              { "max_vsini_kms", o->max_vsini_kms },
              { "library_sigma", o->library_sigma } };
    for (size_t i = 0; i < CLV_LEN(v); ++i)
        if (!(v[i].value > 0) || v[i].value > 10000)
            return clv_fail(CLV_E_ARGUMENT,
                            "specfit: %s is %g, but it must be above 0, and at most 10000",
                            v[i].name, v[i].value);
    if (!(o->reject_sigma >= 3))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: reject_sigma is %g, but it must be at least 3 (or INFINITY, so "
                        "that no pixel is rejected)",
                        o->reject_sigma);
    if (o->ignored_count > MOST_IGNORED || (o->ignored_count && !o->ignored))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: got %zu ranges of wavelengths to ignore, expected at most %d",
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

clv_status clv_plan_read_options(const clv_specfit_options *given, clv_specfit_options *out)
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

double clv_plan_fastest(const clv_specfit_options *o)
{
    return fmax(fabs(o->min_velocity_kms), fabs(o->max_velocity_kms));
}

clv_status clv_plan_check_spectrum(const clv_spectra_plan *plan, size_t star, size_t spectrum)
{
    const clv_spectrum *x = &plan->stars.items[star * plan->stars.spectra + spectrum];
    if (!(x->arm < plan->library->arm_count && x->pixels >= MIN_PIXELS && x->pixels <= MAX_SIDE &&
          x->wavelength && x->flux && x->ivar))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: star %zu, spectrum %zu: it must name an arm of the library and "
                        "have at least %d pixels, wavelengths, flux and ivar",
                        star, spectrum, MIN_PIXELS);
    if (x->unit != 0 && !(x->unit >= 1 / MOST_UNIT && x->unit <= MOST_UNIT))
        return clv_fail(CLV_E_ARGUMENT,
                        "specfit: star %zu, spectrum %zu: the unit of flux is %g, but it must be "
                        "%g to %g, or 0 for 1",
                        star, spectrum, x->unit, 1 / MOST_UNIT, MOST_UNIT);
    return CLV_OK;
}

clv_status clv_plan_check_grid(const clv_spectra_plan *plan, const clv_spectra_grid *g)
{
    const clv_spectra_arm *arm = &plan->library->arms[g->arm];
    const clv_specfit_options *o = &plan->options;
    const double b = clv_plan_fastest(o) / CLV_LIGHT_KMS;
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
                        arm->name, arm->first, arm->last, low, high, clv_plan_fastest(o));
    return CLV_OK;
}

/* Returns the tolerance for an unknown's limits: the library stores its limits in float32, so that they may lie a
 * rounding error inside the limits that its author wrote. */
static double rounding(const clv_spectra_plan *plan, int k)
{
    return FLT_EPSILON * fmax(fabs(plan->box.low[k]), fabs(plan->box.high[k]));
}

clv_status clv_plan_check_priors(const clv_spectra_plan *plan)
{
    static const char *const names[] = { "velocity", "vsini", "teff", "logg", "feh", "alpha" };
    for (size_t i = 0; plan->stars.priors && i < plan->stars.count; ++i) {
        const clv_star_prior *p = &plan->stars.priors[i];
        for (int k = 0; k < CLV_SPECTRA_UNKNOWNS; ++k) {
            const double x = p->value[k], sigma = p->sigma[k];
            if (!isfinite(x) || !(sigma >= 0) || !isfinite(sigma) || (sigma > 0 && sigma < 1e-6))
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: star %zu: the prior of %s is %g +- %g, but the numbers "
                                "must be finite and sigma must be 0 (no prior) or at least 1e-6",
                                i, names[k], x, sigma);
            if (p->fixed[k] && !(x >= plan->box.low[k] - rounding(plan, k) &&
                                 x <= plan->box.high[k] + rounding(plan, k)))
                return clv_fail(CLV_E_ARGUMENT,
                                "specfit: star %zu: %s is to be fixed at %g, but the library and "
                                "the limits allow only %g to %g",
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
        if (p->fixed[k])
            out[k] = (float)fmin(fmax(p->value[k], plan->box.low[k]), plan->box.high[k]);
        else if (p->sigma[k] > 0)
            out[k] = (float)p->value[k];
        if (!p->fixed[k] && p->sigma[k] > 0) out[6 + k] = (float)(1 / (p->sigma[k] * p->sigma[k]));
        fixed |= (unsigned)p->fixed[k] << k;
    }
    out[12] = (float)fixed;
}

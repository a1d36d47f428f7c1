/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a companion in several wavelengths: one position for all channels, and a flux for each. */
#include "host/patch/measure.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Creates the plans of the fit, one for each channel. */
static clv_status open_plans(const clv_channels *s, clv_paco_plan ***plans, clv_fit *fit)
{
    *plans = clv_zalloc(s->count, sizeof **plans);
    if (!*plans)
        return clv_fail(CLV_E_MEMORY, "asdi: not enough memory for %zu channels", s->count);
    for (size_t l = 0; l < s->count; ++l)
        CLV_TRY(clv_paco_plan_create(&s->rest[l], s->options, &(*plans)[l]));
    *fit = (clv_fit){ .context = s->context,
                      .plan = (*plans)[0],
                      .channels = (const clv_paco_plan *const *)*plans,
                      .channel_count = s->count,
                      .progress = s->options ? s->options->progress : NULL,
                      .user = s->options ? s->options->progress_user : NULL,
                      .report = s->report };
    return CLV_OK;
}

static void close_plans(clv_paco_plan **plans, size_t count)
{
    for (size_t l = 0; l < count && plans; ++l)
        clv_paco_plan_free(plans[l]);
    clv_free(plans);
}

/* Returns a fit of channel l alone that allows negative fluxes. If these were excluded, the spectrum would be biased
 * high in channels where the companion is not visible. */
static clv_fit alone(const clv_fit *all, size_t l)
{
    clv_fit one = *all;
    one.plan = all->channels[l], one.channels = NULL, one.channel_count = 0, one.negative = true;
    return one;
}

/* Measures the flux of every channel at a position, with the error from the likelihood. */
static clv_status fluxes_at(const clv_fit *fit, double fwhm, const clv_companion *c, double *fluxes)
{
    for (size_t l = 0; l < fit->channel_count; ++l) {
        const clv_fit one = alone(fit, l);
        clv_companion at = { .x = c->x, .y = c->y };
        CLV_TRY(clv_measure_fit(&one, fwhm, true, &at, 1, NULL));
        fluxes[2 * l] = at.flux, fluxes[2 * l + 1] = at.flux_err;
    }
    return CLV_OK;
}

static void to_mean_one(double *spectrum, size_t count)
{
    double sum = 0;
    for (size_t l = 0; l < count; ++l)
        sum += spectrum[l];
    for (size_t l = 0; l < count && sum > 0; ++l)
        spectrum[l] *= (double)count / sum;
}

/* Moves the expected spectrum towards the measured one by the part of their distance that the errors do not explain
 * (James and Stein 1961). Returns the moved fraction of the distance. */
static double update(double *spectrum, const double *fluxes, size_t count)
{
    double gg = 0, gf = 0, chi2 = 0, share = 0;
    for (size_t l = 0; l < count; ++l) {
        const double weight = 1 / (fluxes[2 * l + 1] * fluxes[2 * l + 1]);
        gg += spectrum[l] * spectrum[l] * weight, gf += spectrum[l] * fluxes[2 * l] * weight;
    }
    const double mean = gf / gg;
    for (size_t l = 0; l < count; ++l)
        chi2 += pow((fluxes[2 * l] - mean * spectrum[l]) / fluxes[2 * l + 1], 2);
    if (!(mean > 0) || !isfinite(chi2)) return 0;
    share = fmax(0, 1 - (double)count / chi2);
    for (size_t l = 0; l < count; ++l)
        spectrum[l] = fmax((1 - share) * spectrum[l] + share * fluxes[2 * l] / mean, 0);
    return share;
}

clv_status clv_channels_measure(const clv_channels *s, bool keep_place, double *spectrum,
                                clv_companion *c, double *fluxes)
{
    const double enough =
        0.1; /* a smaller change of the spectrum moves the position by less than its error */
    clv_paco_plan **plans;
    clv_fit fit;
    clv_status status = open_plans(s, &plans, &fit);
    to_mean_one(spectrum, s->count);
    for (int round = 0; round < 2 && !status; ++round) {
        status = clv_measure_fit(&fit, s->fwhm, keep_place, c, 1, spectrum);
        if (!status) status = fluxes_at(&fit, s->fwhm, c, fluxes);
        if (round || status || keep_place || update(spectrum, fluxes, s->count) < enough) break;
        to_mean_one(spectrum, s->count);
    }
    to_mean_one(spectrum, s->count);
    close_plans(plans, s->count);
    return status;
}

/* Measures the flux errors channel by channel, with all companions in one batch. For a faint companion, the injected
 * planets have a flux of three times the flux error. */
static clv_status flux_errors(const clv_channels *s, const clv_fit *fit, const clv_companion *found,
                              double *fluxes, size_t count)
{
    clv_companion *in_one = clv_alloc(count + 1, sizeof *in_one);
    if (!in_one) return clv_fail(CLV_E_MEMORY, "asdi: not enough memory for companions");
    clv_status status = CLV_OK;
    for (size_t l = 0; l < s->count && !status; ++l) {
        const clv_fit one = alone(fit, l);
        for (size_t k = 0; k < count; ++k) {
            const double *f = fluxes + 2 * (k * s->count + l);
            in_one[k] = (clv_companion){
                .x = found[k].x, .y = found[k].y, .flux = fmax(f[0], 3 * f[1]), .flux_err = f[1]
            };
        }
        status = clv_measure_rings(&one, s->fwhm, NULL, in_one, count, NULL);
        for (size_t k = 0; k < count && !status; ++k)
            fluxes[2 * (k * s->count + l) + 1] = in_one[k].flux_err;
    }
    clv_free(in_one);
    return status;
}

clv_status clv_channels_errors(const clv_channels *s, const double *spectra,
                               clv_companion *companions, double *fluxes, size_t count)
{
    clv_paco_plan **plans;
    clv_fit fit;
    if (!count) return CLV_OK;
    clv_status status = open_plans(s, &plans, &fit);
    if (!status) status = flux_errors(s, &fit, companions, fluxes, count);
    if (!status) status = clv_measure_rings(&fit, s->fwhm, NULL, companions, count, spectra);
    close_plans(plans, s->count);
    return status;
}

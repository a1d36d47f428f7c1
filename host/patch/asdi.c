/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in several wavelengths: runs PACO in every channel, combines the channels into one map, and measures each
 * companion's position and spectrum. */
#include "host/patch/combine.h"
#include "host/patch/measure.h"
#include "host/patch/peaks.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FOUND = 64, MOST_SPECTRA = 64 };

typedef struct state {
    clv_channels left; /* the channels, without the companions found so far */
    clv_combination how;
    const clv_paco_input *whole;
    float *rest; /* [channels][frames][height][width]: data without the companions found so far */
    size_t plane;
    double *a, *b; /* [channels][plane]: maps of `rest` */
    float *raw;    /* [spectra][plane]: S/N maps */
    float *shown;  /* [spectra][plane]: calibrated S/N maps */
    clv_price price;
    double *places; /* [count][2]: x, y of the companions found */
    clv_companion *found;
    size_t count;
    size_t *spectrum; /* [count]: index of each companion's best spectrum */
    double *used;     /* [count][channels]: spectra with which the positions were found */
    double *fluxes;   /* [count][channels][2]: flux and error of each channel */
} state;

static clv_status check(const clv_paco_input *channels, size_t count, const clv_asdi_options *o)
{
    if (!count) return clv_fail(CLV_E_ARGUMENT, "asdi: there is no channel; expected at least one");
    if (!(o->fwhm_px > 0) || !isfinite(o->fwhm_px) || isnan(o->threshold))
        return clv_fail(CLV_E_ARGUMENT,
                        "asdi: the FWHM is %g and the threshold %g, but the FWHM must be positive "
                        "and the threshold finite",
                        o->fwhm_px, o->threshold);
    if (o->spectrum_count > MOST_SPECTRA || (o->spectrum_count && !o->spectra))
        return clv_fail(CLV_E_ARGUMENT, "asdi: got %zu spectra, expected at most %d",
                        o->spectrum_count, MOST_SPECTRA);
    for (size_t l = 1; l < count; ++l)
        if (channels[l].frames != channels[0].frames || channels[l].height != channels[0].height ||
            channels[l].width != channels[0].width)
            return clv_fail(CLV_E_SHAPE,
                            "asdi: channel %zu is [%zu,%zu,%zu], but channel 0 is [%zu,%zu,%zu]; "
                            "all must have the same shape",
                            l, channels[l].frames, channels[l].height, channels[l].width,
                            channels[0].frames, channels[0].height, channels[0].width);
    for (size_t k = 0; k < o->spectrum_count; ++k) {
        double sum = 0;
        for (size_t l = 0; l < count; ++l) {
            const double g = o->spectra[k * count + l];
            if (!(g >= 0) || !isfinite(g))
                return clv_fail(
                    CLV_E_ARGUMENT,
                    "asdi: spectrum %zu is %g in channel %zu; expected finite fluxes of 0 or more",
                    k, g, l);
            sum += g;
        }
        if (!(sum > 0))
            return clv_fail(
                CLV_E_ARGUMENT,
                "asdi: spectrum %zu is 0 in all channels; expected at least one flux above 0", k);
    }
    return CLV_OK;
}

static clv_status maps_of(const state *s, const clv_paco_input *channels, double *a, double *b)
{
    for (size_t l = 0; l < s->left.count; ++l)
        CLV_TRY(clv_paco(s->left.context, &channels[l], s->left.options, a + l * s->plane,
                         b + l * s->plane, NULL, s->left.report));
    return CLV_OK;
}

static clv_status calibrate(const state *s, const float *raw, const float *noise, float *out)
{
    for (size_t k = 0; k < s->how.spectrum_count; ++k)
        CLV_TRY(clv_paco_calibrate(raw + k * s->plane, noise + k * s->plane, s->how.height,
                                   s->how.width, s->how.cx, s->how.cy, s->how.fwhm, s->places,
                                   s->count, out + k * s->plane));
    return CLV_OK;
}

/* Combines the maps a and b of the remaining data. The caller owns `w` and clears it. */
static clv_status combine_rest(state *s, clv_whitening *w)
{
    const size_t spectra = s->how.spectrum_count;
    double *alike = clv_alloc(spectra * spectra, sizeof *alike);
    clv_status status =
        alike ? CLV_OK : clv_fail(CLV_E_MEMORY, "asdi: not enough memory for %zu spectra", spectra);
    if (!status) status = clv_whitening_create(&s->how, s->a, s->b, s->places, s->count, w);
    if (!status) status = clv_combine(&s->how, w, s->a, s->b, s->raw, alike);
    if (!status) status = clv_price_create(alike, spectra, &s->price);
    if (!status) status = calibrate(s, s->raw, s->raw, s->shown);
    clv_free(alike);
    return status;
}

/* Finds the highest peak over all spectra. *snr is its S/N, corrected for the number of spectra tried; *any: the S/N
 * exceeds the threshold. */
static clv_status best_of_all(const state *s, double threshold, size_t *place, size_t *spectrum,
                              double *snr, bool *any)
{
    *any = false, *snr = threshold;
    for (size_t k = 0; k < s->how.spectrum_count; ++k) {
        const clv_peaks peaks = { .height = s->how.height,
                                  .width = s->how.width,
                                  .cx = s->how.cx,
                                  .cy = s->how.cy,
                                  .fwhm = s->how.fwhm,
                                  .raw = s->raw + k * s->plane,
                                  .calibrated = s->shown + k * s->plane,
                                  .places = s->places,
                                  .count = s->count };
        size_t best;
        double value;
        bool one;
        CLV_TRY(clv_peaks_best(&peaks, clv_price_unpaid(&s->price, *snr), &best, &value, &one));
        if (!one) continue;
        *any = true, *place = best, *spectrum = k, *snr = clv_price_paid(&s->price, value);
    }
    return CLV_OK;
}

/* Copies all channels; called only after a companion was found. */
static clv_status copy_channels(state *s)
{
    if (s->rest) return CLV_OK;
    const size_t frames = s->whole->frames, height = s->how.height, width = s->how.width;
    s->rest = clv_alloc(s->left.count * frames, s->plane * sizeof *s->rest);
    if (!s->rest)
        return clv_fail(CLV_E_MEMORY, "asdi: not enough memory for %zu channels", s->left.count);
    for (size_t l = 0; l < s->left.count; ++l) {
        const clv_paco_input *in = &s->whole[l];
        const size_t row = in->row_stride ? in->row_stride : width,
                     frame = in->frame_stride ? in->frame_stride : row * height;
        float *to = s->rest + l * frames * s->plane;
        for (size_t t = 0; t < frames; ++t)
            for (size_t y = 0; y < height; ++y)
                memcpy(to + (t * height + y) * width, in->cube + t * frame + y * row,
                       width * sizeof *to);
        s->left.rest[l].cube = to, s->left.rest[l].frame_stride = s->left.rest[l].row_stride = 0;
    }
    return CLV_OK;
}

/* Subtracts companion k from all channels; with sign -1 adds it back. */
static clv_status take_out(state *s, size_t k, double sign)
{
    for (size_t l = 0; l < s->left.count; ++l) {
        clv_companion one = s->found[k];
        one.flux = sign * s->fluxes[2 * (k * s->left.count + l)];
        CLV_TRY(clv_paco_subtract(&s->left.rest[l], s->left.options, &one, 1,
                                  s->rest + l * s->whole->frames * s->plane));
    }
    return CLV_OK;
}

/* Measures companion k in channels without the other companions. Afterwards companion k is subtracted from the channels
 * as well. */
static clv_status measure_one(state *s, size_t k, bool again)
{
    const size_t n = s->left.count;
    clv_companion *c = &s->found[k];
    const clv_companion before = *c;
    double *used = s->used + k * n, *fluxes = s->fluxes + 2 * k * n;
    if (again) CLV_TRY(take_out(s, k, -1));
    memcpy(used, s->how.spectra + s->spectrum[k] * n, n * sizeof *used);
    CLV_TRY(clv_channels_measure(&s->left, false, used, c, fluxes));
    if (!(c->flux > 0) || hypot(c->x - before.x, c->y - before.y) > 1.5 * s->how.fwhm) {
        *c = before; /* no maximum nearby: use the peak's own position and the flux there */
        CLV_TRY(clv_channels_measure(&s->left, true, used, c, fluxes));
    }
    s->places[2 * k] = c->x, s->places[2 * k + 1] = c->y;
    return take_out(s, k, 1);
}

static clv_status search(state *s, double threshold, clv_whitening *w)
{
    size_t best, spectrum, valid = 0;
    CLV_TRY(combine_rest(s, w));
    for (size_t p = 0; p < s->plane; ++p)
        valid += isfinite(s->shown[p]);
    while (s->count < MOST_FOUND) {
        double snr;
        bool any;
        CLV_TRY(best_of_all(s, threshold, &best, &spectrum, &snr, &any));
        if (!any) break;
        CLV_TRY(copy_channels(s));
        s->spectrum[s->count] = spectrum;
        s->found[s->count] =
            (clv_companion){ .x = (double)(best % s->how.width),
                             .y = (double)(best / s->how.width),
                             .snr = snr,
                             .false_alarm = clv_false_alarm(snr, (double)valid, s->how.fwhm) };
        CLV_TRY(measure_one(s, s->count, false));
        const clv_companion *c = &s->found[s->count++];
        for (size_t k = 0; k + 1 < s->count;
             ++k) /* the new companion may have biased the others while it was unknown */
            if (hypot(s->found[k].x - c->x, s->found[k].y - c->y) < 6 * s->how.fwhm)
                CLV_TRY(measure_one(s, k, true));
        CLV_TRY(maps_of(s, s->left.rest, s->a, s->b));
        clv_whitening_clear(w);
        CLV_TRY(combine_rest(s, w));
    }
    return CLV_OK;
}

/* Writes the map of the whole data, calibrated by the noise of the remaining data: at every position the S/N of the
 * best spectrum, corrected for the number of spectra tried. */
static clv_status show_whole(state *s, const clv_whitening *w, const double *a, const double *b,
                             float *snr, float *raw)
{
    const size_t spectra = s->how.spectrum_count;
    float *whole = clv_alloc(2 * spectra * s->plane, sizeof *whole),
          *shown = whole + spectra * s->plane;
    if (!whole)
        return clv_fail(CLV_E_MEMORY, "asdi: not enough memory for maps of %zu spectra", spectra);
    clv_status status = clv_combine(&s->how, w, a, b, whole, NULL);
    if (!status) status = calibrate(s, whole, s->raw, shown);
    for (size_t p = 0; p < s->plane && !status; ++p) {
        size_t best = 0;
        for (size_t k = 1; k < spectra; ++k)
            if (shown[k * s->plane + p] > shown[best * s->plane + p]) best = k;
        snr[p] = (float)clv_price_paid(&s->price, shown[best * s->plane + p]);
        if (raw) raw[p] = whole[best * s->plane + p];
    }
    clv_free(whole);
    return status;
}

/* Sorts all arrays of companions by S/N, highest first. */
static void sort(state *s)
{
    const size_t n = s->left.count;
    for (size_t i = 1; i < s->count; ++i)
        for (size_t j = i; j > 0 && s->found[j].snr > s->found[j - 1].snr; --j) {
            const clv_companion c = s->found[j];
            const size_t k = s->spectrum[j];
            s->found[j] = s->found[j - 1], s->found[j - 1] = c;
            s->spectrum[j] = s->spectrum[j - 1], s->spectrum[j - 1] = k;
            for (size_t l = 0; l < 2 * n; ++l) {
                double *x = s->fluxes + 2 * j * n + l, *y = x - 2 * n;
                const double f = *x;
                *x = *y, *y = f;
            }
        }
}

clv_status clv_paco_asdi(clv_context *context, const clv_paco_input *channels, size_t count,
                         const clv_paco_options *options, const clv_asdi_options *wanted, double *a,
                         double *b, float *snr, float *snr_raw, float *rest,
                         clv_asdi_companions *found, clv_report *report)
{
    if (found) *found = (clv_asdi_companions){ 0 };
    if (!context || !channels || !wanted || !a || !b || !snr || !found)
        return clv_fail(CLV_E_ARGUMENT,
                        "asdi: context, channels, options, a map or result is NULL");
    CLV_TRY(check(channels, count, wanted));
    const size_t plane = channels->height * channels->width,
                 spectra = wanted->spectrum_count ? wanted->spectrum_count : 1;
    state s = { .left = { context, NULL, count, options, wanted->fwhm_px, report },
                .how = { .channels = count,
                         .height = channels->height,
                         .width = channels->width,
                         .cx = options && options->centre_given ? options->centre_x
                                                                : (double)(channels->width / 2),
                         .cy = options && options->centre_given ? options->centre_y
                                                                : (double)(channels->height / 2),
                         .fwhm = wanted->fwhm_px,
                         .spectrum_count = spectra },
                .whole = channels,
                .plane = plane };
    clv_whitening w = { 0 };
    double *flat = clv_alloc(spectra * count, sizeof *flat);
    s.left.rest = clv_alloc(count, sizeof *s.left.rest);
    s.a = clv_alloc(2 * count * plane, sizeof *s.a), s.b = s.a + count * plane;
    s.raw = clv_alloc(2 * spectra * plane, sizeof *s.raw), s.shown = s.raw + spectra * plane;
    s.places = clv_alloc(2 * MOST_FOUND, sizeof *s.places);
    s.found = clv_zalloc(MOST_FOUND, sizeof *s.found),
    s.spectrum = clv_zalloc(MOST_FOUND, sizeof *s.spectrum);
    s.used = clv_zalloc(MOST_FOUND * count, sizeof *s.used);
    s.fluxes = clv_zalloc(2 * MOST_FOUND * count, sizeof *s.fluxes);
    clv_status status = CLV_OK;
    if (!flat || !s.left.rest || !s.a || !s.raw || !s.places || !s.found || !s.spectrum ||
        !s.used || !s.fluxes) {
        status = clv_fail(CLV_E_MEMORY, "asdi: not enough memory for %zu channels of %zux%zu",
                          count, s.how.width, s.how.height);
        goto cleanup;
    }
    for (size_t i = 0; i < spectra * count; ++i)
        flat[i] = wanted->spectrum_count ? wanted->spectra[i] : 1;
    s.how.spectra = flat;
    memcpy(s.left.rest, channels, count * sizeof *channels);
    status = maps_of(&s, channels, a, b);
    if (!status)
        memcpy(s.a, a, count * plane * sizeof *a), memcpy(s.b, b, count * plane * sizeof *b);
    if (!status) status = search(&s, wanted->threshold, &w);
    if (!status) status = show_whole(&s, &w, a, b, snr, snr_raw);
    if (!status) status = clv_channels_errors(&s.left, s.used, s.found, s.fluxes, s.count);
    if (!status && rest) status = copy_channels(&s);
    if (!status && rest) memcpy(rest, s.rest, count * channels->frames * plane * sizeof *rest);
    if (!status && s.count) {
        sort(&s);
        *found = (clv_asdi_companions){ s.count, count, s.found, s.spectrum, s.fluxes };
        s.found = NULL, s.spectrum = NULL, s.fluxes = NULL;
    }
cleanup:
    clv_whitening_clear(&w);
    clv_free(flat), clv_free(s.left.rest), clv_free(s.a), clv_free(s.raw), clv_free(s.places),
        clv_free(s.rest);
    clv_free(s.found), clv_free(s.spectrum), clv_free(s.used), clv_free(s.fluxes);
    return status;
}

void clv_asdi_companions_clear(clv_asdi_companions *found)
{
    if (!found) return;
    clv_free(found->companions), clv_free(found->spectrum), clv_free(found->fluxes);
    *found = (clv_asdi_companions){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares PACO maps of a device with those of the reference. */
#include "host/synthetic/paco_pair.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

clv_status paco_pair_compute(clv_context *context, const synthetic_adi *adi,
                             const clv_paco_options *options, paco_pair *pair, clv_report *report)
{
    const clv_paco_input input = {
        .size = sizeof(clv_paco_input),
        .cube = adi->cube,
        .frames = adi->frames,
        .height = adi->height,
        .width = adi->width,
        .angles = adi->angles,
        .psf = adi->psf,
        .psf_size = adi->psf_size,
    };
    const size_t count = adi->height * adi->width;
    *pair = (paco_pair){ .a = clv_alloc(count, sizeof *pair->a),
                         .b = clv_alloc(count, sizeof *pair->b),
                         .count = count };
    clv_status status = pair->a && pair->b
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "not enough memory for maps of %zux%zu",
                                       adi->width, adi->height);
    if (!status)
        status = clv_paco(context, &input, options, pair->a, pair->b, &pair->counts, report);
    if (status) paco_pair_clear(pair);
    return status;
}

clv_status paco_pair_reference(const synthetic_adi *adi, const clv_paco_options *options,
                               paco_pair *pair)
{
    const clv_context_options plain = { .size = sizeof plain,
                                        .mode = CLV_MODE_REFERENCE,
                                        .cache_dir = "" };
    clv_context *context;
    *pair = (paco_pair){ 0 };
    CLV_TRY(clv_context_create(&plain, &context));
    const clv_status status = paco_pair_compute(context, adi, options, pair, NULL);
    clv_context_free(context);
    return status;
}

void paco_pair_clear(paco_pair *pair)
{
    clv_free(pair->a), clv_free(pair->b);
    *pair = (paco_pair){ 0 };
}

/* Sets the limits, which were measured on the golden cases of PACO: the differences between float32 and float64 stay
 * well below them. */
static void set_limits(const clv_paco_options *options, paco_difference *d, double *factor)
{
    if (options->psf_mode == CLV_PSF_SHIFT) {
        d->a_limit = 1e-3, d->snr_limit = 2e-3, *factor = 0.5;
        return;
    }
    /* the VIP convention is worse conditioned */
    const double wider = options->convention == CLV_PACO_VIP ? 4 : 1;
    d->a_limit = 5e-5 * wider, d->snr_limit = 1e-3 * wider, *factor = 0.2;
}

paco_difference paco_pair_compare(const paco_pair *got, const paco_pair *want,
                                  const clv_paco_options *options)
{
    paco_difference d = { 0 };
    double factor;
    set_limits(options, &d, &factor);
    if (memcmp(&got->counts, &want->counts, sizeof got->counts) != 0) d.a = d.snr = INFINITY;
    for (size_t i = 0; i < want->count; ++i) {
        if (isnan(got->a[i]) != isnan(want->a[i]) || isnan(got->b[i]) != isnan(want->b[i])) {
            d.a = d.snr = INFINITY;
            break;
        }
        if (isnan(want->a[i])) continue;
        const double snr = got->b[i] / sqrt(got->a[i]), snr0 = want->b[i] / sqrt(want->a[i]);
        d.a = cli_worse(d.a, fabs(got->a[i] / want->a[i] - 1));
        d.snr = cli_worse(d.snr, fabs(snr - snr0) / (1 + factor * fabs(snr0)));
    }
    d.ok = d.a <= d.a_limit && d.snr <= d.snr_limit;
    return d;
}

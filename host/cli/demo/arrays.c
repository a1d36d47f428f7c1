/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: pi by counting random points, the count exact on whatever counted. */
#include "host/cli/demo/demo.h"

#include "base/clock.h"
#include "base/error.h"

#include <cleave/array.h>
#include <cleave/offload.h>

#include <math.h>
#include <stdio.h>

static const uint64_t SAMPLES = 200u << 20, CHECKED = 4u << 20;

static clv_status count_plain(uint64_t samples, uint64_t *inside)
{
    clv_context *context;
    const clv_context_options options = { .mode = CLV_MODE_REFERENCE, .cache_dir = "" };
    CLV_TRY(clv_context_create(&options, &context));
    const clv_status status = clv_monte_carlo_pi(context, samples, NULL, inside, NULL);
    clv_context_free(context);
    return status;
}

/* On the devices, as that is what the table is about; by whoever can where they fail. */
static clv_status count(clv_context *context, uint64_t samples, uint64_t *inside,
                        clv_report *report)
{
    const bool devices = clv_context_device_count(context) > 0;
    const clv_side before = clv_offload_force(devices ? CLV_SIDE_DEVICE : CLV_SIDE_AUTO);
    const clv_status status = clv_monte_carlo_pi(context, samples, NULL, inside, report);
    clv_offload_force(before);
    return status ? clv_monte_carlo_pi(context, samples, NULL, inside, report) : CLV_OK;
}

clv_status demo_arrays(clv_context *context, const char *folder, clv_report *report, demo_row *row)
{
    uint64_t inside = 0, want, got;
    (void)folder;
    snprintf(row->input, sizeof row->input, "%.0f million points", (double)SAMPLES / 1e6);
    for (int run = 0; run < 2; ++run) {
        const double started = clv_now();
        CLV_TRY(count(context, SAMPLES, &inside, run ? report : NULL));
        row->seconds = clv_now() - started;
        if (!run) row->first_s = row->seconds;
    }
    const double pi = 4.0 * (double)inside / (double)SAMPLES;
    snprintf(row->found, sizeof row->found, "pi is %.5f", pi);
    row->ok = fabs(pi - 3.14159265) < 6 * 1.64 / sqrt((double)SAMPLES);
    const double started = clv_now();
    CLV_TRY(count_plain(CHECKED, &want));
    row->reference_s = (clv_now() - started) * (double)(SAMPLES / CHECKED);
    CLV_TRY(count(context, CHECKED, &got, NULL));
    clv_text_add(&row->notes, "%s plain C: %llu of the first %llu points inside, %llu in C\n",
                 got == want ? "agrees with" : "DIFFERS FROM", (unsigned long long)got,
                 (unsigned long long)CHECKED, (unsigned long long)want);
    row->ok = row->ok && got == want;
    return CLV_OK;
}

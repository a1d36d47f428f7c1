/* SPDX-License-Identifier: Apache-2.0 */
/* Tests spectral fitting on the device under test against the reference. */
#include "host/selftest/selftest.h"
#include "host/synthetic/stars.h"
#include "host/synthetic/worse.h"

#include <math.h>

enum { STARS = 4, SEED = 11 };

static const struct {
    const char *name;
    bool resolution, damaged;
} cases[] = {
    { "specfit", false, false },
    { "specfit, resolution matrices", true, false },
    { "specfit, bad fibres", false, true },
};

static clv_status fit_reference(const synthetic_stars *s, clv_specfit_result *out)
{
    clv_context *context;
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    clv_status status = clv_context_create(&options, &context);
    if (!status) status = clv_specfit(context, &s->library, &s->stars, NULL, out, NULL);
    clv_context_free(context);
    return status;
}

/* Finds the largest difference of -2 log L, and of the velocity in sigma; infinite if flags differ. */
static void compare(const clv_specfit_result *want, const clv_specfit_result *got, double *value,
                    double *velocity)
{
    *value = *velocity = 0;
    for (size_t i = 0; i < STARS; ++i) {
        if (want[i].warnings != got[i].warnings) *value = INFINITY;
        if (want[i].warnings & CLV_SPECFIT_BAD_SPECTRUM) continue;
        *value = cli_worse(*value, fabs(want[i].neg2logl - got[i].neg2logl));
        *velocity =
            cli_worse(*velocity, fabs(want[i].velocity - got[i].velocity) / want[i].velocity_error);
    }
}

static void run_case(selftest *test, size_t index, const synthetic_stars *s)
{
    clv_specfit_result want[STARS], got[STARS];
    double value = 0, velocity = 0;
    clv_status status = fit_reference(s, want);
    selftest_begin(test, "%s: -2 log L", cases[index].name);
    if (!status) status = clv_specfit(test->context, &s->library, &s->stars, NULL, got, NULL);
    if (!status) compare(want, got, &value, &velocity);
    selftest_end(test, status, value, 0.05);
    if (!status) selftest_also(test, velocity, 0.1, "%s: velocity in sigma", cases[index].name);
}

void selftest_specfit(selftest *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        synthetic_stars s;
        const clv_status status = synthetic_stars_create(STARS, SEED, cases[i].resolution, &s);
        if (status) {
            selftest_begin(test, "%s", cases[i].name);
            selftest_end(test, status, 0, 0);
            continue;
        }
        if (cases[i].damaged) synthetic_stars_damage(&s);
        run_case(test, i, &s);
        synthetic_stars_clear(&s);
    }
}

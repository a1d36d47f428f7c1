/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: recovers the velocities of synthetic stars. */
#include "host/demo/demo.h"
#include "host/synthetic/stars.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>

enum { STARS = 64, CHECKED = 8, SEED = 21 };

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

static clv_status compute(const demo_stage *stage, const synthetic_stars *s,
                          clv_specfit_result *fits, demo_row *row)
{
    for (demo_runs r = { 0 }; demo_next_run(&r, row);)
        CLV_TRY(clv_specfit(stage->context, &s->library, &s->stars, NULL, fits,
                            r.last ? stage->report : NULL));
    return CLV_OK;
}

/* Fits the first stars in plain C, and estimates how long all of them would take. */
static clv_status check(synthetic_stars *s, const clv_specfit_result *fits, demo_row *row)
{
    clv_specfit_result want[CHECKED];
    const size_t all = s->stars.count;
    double off = 0;
    s->stars.count = CHECKED;
    const double started = clv_now();
    CLV_TRY(fit_reference(s, want));
    row->reference_s = (clv_now() - started) * (double)all / CHECKED;
    s->stars.count = all;
    for (size_t i = 0; i < CHECKED; ++i)
        off = cli_worse(off, fabs(want[i].neg2logl - fits[i].neg2logl));
    clv_text_add(&row->notes, "%s plain C: -2 log L of %d stars within %.1g (limit %.1g)\n",
                 off <= 0.05 ? "agrees with" : "DIFFERS FROM", CHECKED, off, 0.05);
    row->ok = row->ok && off <= 0.05;
    return CLV_OK;
}

/* Writes the stars to files, so that the user can try the command. */
static clv_status leave(const synthetic_stars *s, const char *folder, demo_row *row)
{
    char library[4096], coadd[4096];
    snprintf(library, sizeof library, "%s/specfit-library", folder);
    snprintf(coadd, sizeof coadd, "%s/specfit-coadd.fits", folder);
    CLV_TRY(synthetic_stars_write_library(s, library));
    CLV_TRY(synthetic_stars_write_coadd(s, STARS, coadd));
    clv_text_add(&row->notes,
                 "again: cleave specfit %s \\\n"
                 "  --library %s -o %s/stars.csv --plot %s/stars\n",
                 coadd, library, folder, folder);
    return CLV_OK;
}

static clv_status run(const demo_stage *stage, synthetic_stars *s, clv_specfit_result *fits,
                      demo_row *row)
{
    size_t near = 0;
    CLV_TRY(compute(stage, s, fits, row));
    for (size_t i = 0; i < STARS; ++i)
        near += fabs(fits[i].velocity - s->truth[i][0]) < 5 * fits[i].velocity_error;
    snprintf(row->found, sizeof row->found, "%zu of %d velocities", near, STARS);
    row->ok = row->ok && near == STARS;
    CLV_TRY(check(s, fits, row));
    return leave(s, stage->folder, row);
}

clv_status demo_specfit(const demo_stage *stage, demo_row *row)
{
    synthetic_stars s;
    CLV_TRY(synthetic_stars_create(STARS, SEED, false, &s));
    clv_specfit_result *fits = clv_zalloc(STARS, sizeof *fits);
    clv_status status = fits ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for fits");
    snprintf(row->input, sizeof row->input, "%d stars", STARS);
    if (!status && stage->preparing)
        status = demo_prepared(clv_specfit(stage->context, &s.library, &s.stars, NULL, fits, NULL));
    else if (!status)
        status = run(stage, &s, fits, row);
    clv_free(fits);
    synthetic_stars_clear(&s);
    return status;
}

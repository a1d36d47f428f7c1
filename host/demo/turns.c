/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: repeats workloads and operations until the devices are warm, and takes their best times. */
#include "host/demo/demo.h"

#include "base/clock.h"
#include "base/error.h"

#include <cleave/offload.h>

#include <math.h>
#include <stdio.h>

enum { RUNS = 5 };
static const double patience_s = 2; /* most seconds for the runs after the second */

bool demo_next_run(demo_runs *r, demo_row *row)
{
    const double took = clv_now() - r->started;
    if (r->made) {
        r->spent += took;
        row->seconds = r->made < 3 ? took : fmin(took, row->seconds);
    }
    if (r->last) return false;
    r->last = r->made == RUNS - 1 || (r->made && r->spent + took > patience_s);
    r->started = clv_now();
    ++r->made;
    return true;
}

clv_status demo_prepared(clv_status status)
{
    return status == CLV_E_CANCELLED ? CLV_OK : status;
}

static clv_status by_side(clv_context *context, clv_side side, demo_operation *once, void *user)
{
    const clv_side before = clv_offload_force(side);
    const clv_status status = once(context, user);
    clv_offload_force(before);
    return status;
}

clv_status demo_on_devices(clv_context *context, demo_operation *once, void *user)
{
    const bool devices = clv_context_device_count(context) > 0;
    return devices ? by_side(context, CLV_SIDE_DEVICE, once, user) : once(context, user);
}

/* Returns the best time of all turns except the first. */
static clv_status time_side(clv_context *context, clv_side side, demo_operation *once, void *user,
                            double *seconds)
{
    demo_row row = { 0 };
    *seconds = INFINITY;
    for (demo_runs r = { 0 }; demo_next_run(&r, &row);)
        CLV_TRY(by_side(context, side, once, user));
    *seconds = row.seconds;
    return CLV_OK;
}

clv_status demo_both_sides(const demo_stage *stage, demo_operation *once, void *user, demo_row *row)
{
    clv_offload where = { 0 };
    double device_s = INFINITY;
    if (stage->preparing)
        return clv_context_device_count(stage->context)
                   ? by_side(stage->context, CLV_SIDE_DEVICE, once, user)
                   : CLV_OK;
    CLV_TRY(time_side(stage->context, CLV_SIDE_HOST, once, user, &row->reference_s));
    if (clv_context_device_count(stage->context) &&
        time_side(stage->context, CLV_SIDE_DEVICE, once, user, &device_s))
        clv_text_add(&row->notes, "the host computed this, because: %s\n", clv_error_message());
    else if (clv_context_device_count(stage->context))
        CLV_TRY(clv_offload_last(&where));
    const bool host = !(device_s <= row->reference_s);
    row->seconds = host ? row->reference_s : device_s;
    snprintf(row->by, sizeof row->by, "%s", host ? "host" : where.device);
    if (host && isfinite(device_s)) {
        char took[24];
        clv_text_add(&row->notes, "%s takes %s, so calls go to the host, which is faster\n",
                     where.device, clv_format_seconds(device_s, took));
    }
    return CLV_OK;
}

clv_status demo_plain(demo_operation *once, void *user)
{
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    clv_context *context;
    CLV_TRY(clv_context_create(&options, &context));
    const clv_status status = once(context, user);
    clv_context_free(context);
    return status;
}

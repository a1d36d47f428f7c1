/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: workloads and operations again, until their drivers have compiled for good. */
#include "host/cli/demo/demo.h"

#include "base/clock.h"
#include "base/error.h"

#include <cleave/offload.h>

#include <math.h>
#include <stdio.h>

/* Drivers compile once more in the second and third call. */
enum { RUNS = 3, TURNS = 5 };
static const double patience_s = 5; /* for runs after the second */

bool demo_next_run(demo_runs *r, demo_row *row)
{
    const double took = clv_now() - r->started;
    if (r->made) {
        r->spent += took;
        if (r->made == 1) row->first_s = took;
        row->seconds = r->made < RUNS ? took : fmin(took, row->seconds);
    }
    if (r->last) return false;
    r->last = r->made == RUNS - 1 || (r->made && r->spent + took > patience_s);
    r->started = clv_now();
    ++r->made;
    return true;
}

clv_status demo_on_devices(clv_context *context, demo_operation *once, void *user)
{
    const bool devices = clv_context_device_count(context) > 0;
    const clv_side before = clv_offload_force(devices ? CLV_SIDE_DEVICE : CLV_SIDE_AUTO);
    const clv_status status = once(context, user);
    clv_offload_force(before);
    return status ? once(context, user) : CLV_OK;
}

clv_status demo_turns(clv_context *context, demo_operation *once, void *user, demo_row *row)
{
    clv_offload where;
    double spent = 0;
    for (int turn = 0; turn < TURNS && (turn < 2 || spent < patience_s); ++turn) {
        const double started = clv_now();
        CLV_TRY(demo_on_devices(context, once, user));
        row->seconds = clv_now() - started;
        if (!turn) row->first_s = row->seconds;
        spent += row->seconds;
    }
    CLV_TRY(clv_offload_last(&where));
    snprintf(row->by, sizeof row->by, "%s",
             where.side == CLV_SIDE_DEVICE ? where.device : "the host");
    return CLV_OK;
}

clv_status demo_plain(demo_operation *once, void *user, double *seconds)
{
    const clv_context_options options = { .mode = CLV_MODE_REFERENCE, .cache_dir = "" };
    clv_context *context;
    CLV_TRY(clv_context_create(&options, &context));
    const double started = clv_now();
    const clv_status status = once(context, user);
    *seconds = clv_now() - started;
    clv_context_free(context);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: an operation on the devices, until their drivers have compiled for good. */
#include "host/cli/demo/demo.h"

#include "base/clock.h"
#include "base/error.h"

#include <cleave/offload.h>

#include <stdio.h>

/* Drivers compile once more in the second and third call. */
enum { TURNS = 5 };

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
    for (int turn = 0; turn < TURNS; ++turn) {
        const double started = clv_now();
        CLV_TRY(demo_on_devices(context, once, user));
        row->seconds = clv_now() - started;
        if (!turn) row->first_s = row->seconds;
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

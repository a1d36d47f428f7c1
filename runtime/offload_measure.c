/* SPDX-License-Identifier: Apache-2.0 */
/* Timing both sides of an operation once, so that later calls know where to go. */
#include "runtime/offload_measure.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static const double budget_s = 0.4; /* of a curve, once it has four points */
static const double clear = 0.45;   /* of the host's time: the device wins from here on */

clv_status clv_offload_best(clv_status (*body)(void *user), void *user, double *seconds)
{
    enum { LEAST = 4, MOST = 60 };
    static const double enough_s = 4e-3, most_s = 60e-3;
    double spent = 0, best = 0;
    CLV_TRY(body(user)); /* compiles, allocates */
    for (int i = 0; i < MOST && (i < LEAST || spent < enough_s) && spent < most_s; ++i) {
        const double started = clv_now();
        CLV_TRY(body(user));
        const double took = clv_now() - started;
        spent += took;
        if (!i || took < best) best = took;
    }
    *seconds = CLV_MAX(best, 1e-8);
    return CLV_OK;
}

static clv_status time_both(clv_context *context, const clv_offload_request *r, double work,
                            double *host, double *device)
{
    const clv_side before = clv_offload_force(CLV_SIDE_HOST);
    const bool dry = clv_offload_dry(false);
    clv_status status = r->trial(context, work, CLV_SIDE_HOST, host, r->user);
    if (!status) {
        clv_offload_force(CLV_SIDE_DEVICE);
        status = r->trial(context, work, CLV_SIDE_DEVICE, device, r->user);
    }
    clv_offload_force(before);
    clv_offload_dry(dry);
    return status;
}

static clv_status add_point(clv_context *context, const clv_offload_request *r, double work,
                            clv_curve *curve)
{
    double host = 0, device = 0;
    CLV_TRY(time_both(context, r, work, &host, &device));
    clv_curve_add(curve, work, host, device);
    return CLV_OK;
}

/* Others use the machine too, for longer than a timing lasts: every point once more, later. */
static clv_status time_again(clv_context *context, const clv_offload_request *r, clv_curve *curve)
{
    for (size_t i = 0; i < curve->count; ++i) {
        double host, device;
        CLV_TRY(time_both(context, r, curve->at[i].work, &host, &device));
        curve->at[i].host_s = CLV_MIN(curve->at[i].host_s, host);
        curve->at[i].device_s = CLV_MIN(curve->at[i].device_s, device);
    }
    clv_curve_smooth(curve);
    return CLV_OK;
}

clv_status clv_offload_measure(clv_context *context, const clv_offload_request *r, clv_curve *curve)
{
    enum { COARSE = 10, FINE = 5 };
    const double started = clv_now();
    *curve = (clv_curve){ 0 };
    double work = r->least_work;
    while (work <= r->most_work * 1.001 && curve->count < COARSE) {
        CLV_TRY(add_point(context, r, work, curve));
        const size_t last = curve->count - 1;
        if (curve->at[last].device_s < clear * curve->at[last].host_s) break;
        if (curve->count >= 4 && clv_now() - started > budget_s) break;
        work *= 4;
    }
    CLV_TRY(time_again(context, r, curve));
    for (int i = 0; i < FINE && clv_curve_next(curve, &work); ++i) {
        CLV_TRY(add_point(context, r, work, curve));
        clv_curve_smooth(curve);
    }
    return curve->count > 2 && clv_now() - started < 2 * budget_s ? time_again(context, r, curve)
                                                                  : CLV_OK;
}

double clv_offload_transfer_rate(clv_context *context, clv_device *device)
{
    enum { BYTES = 8 << 20 };
    char key[300], note[64];
    double rate = 0;
    if (device->zero_copy) return 0;
    snprintf(key, sizeof key, "offload transfer on %s", device->key);
    if (clv_notes_get(&context->tuned, key, note, sizeof note) && clv_parse_double(note, &rate))
        return rate;
    clv_queue *queue = NULL;
    clv_buffer *buffer = NULL;
    void *host = clv_alloc_pages(BYTES);
    double best = 0;
    if (host && !clv_queue_create(device, &queue) &&
        !clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &buffer)) {
        memset(host, 1, BYTES);
        for (int i = 0; i < 4; ++i) {
            const double started = clv_now();
            if (clv_write(queue, buffer, 0, host, BYTES) || clv_read(queue, buffer, 0, host, BYTES))
                break;
            const double took = clv_now() - started;
            if (i && (best == 0 || took < best)) best = took;
        }
    }
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    clv_free(host);
    rate = best > 0 ? 2.0 * BYTES / best : 6e9;
    snprintf(note, sizeof note, "%.4g", rate);
    clv_notes_set(&context->tuned, key, note);
    return rate;
}

void clv_offload_guess(const clv_device *device, const clv_offload_request *r, double *host_s,
                       double *device_s, double *launch_s)
{
    const bool core = device && device->facts->device_class == CLV_CLASS_CPU;
    const double host_flops = r->host_flops > 0 ? r->host_flops : 3e9;
    *host_s = 3e-7 + CLV_MAX(r->flops / host_flops, r->bytes / 8e9);
    *launch_s = core ? 60e-6 : 30e-6;
    *device_s = *launch_s + (core ? CLV_MAX(r->flops / (4 * host_flops), r->bytes / 10e9)
                                  : CLV_MAX(r->flops / 1e12, r->bytes / 1e11));
    if (device && !device->zero_copy) *device_s += r->transfer_bytes / 6e9;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a kind of call on a device, and the choice that follows. Pure. */
#include "runtime/offload/kind.h"

#include "base/alloc.h"

#include <math.h>

static const double patience_s = 0.1;     /* about what timing a kind lasts */
static const double worth_leaving = 0.96; /* of the time on the side where calls went before */
static const double most_step = 0.1, part = 0.5, forgotten = 0.01; /* of a call's lesson */
static const double long_s = 5e-3, most_long_step = 0.35; /* such a call is not held up by chance */
static const double most_lean = 1.4;                      /* four times */

bool clv_kind_is_due(const clv_offload_kind *kind, double next_s)
{
    return kind->spent_s + next_s >= patience_s;
}

static size_t near(const clv_offload_kind *kind, double work, double *weight)
{
    size_t first;
    const double t = clv_curve_place(&kind->curve, work, &first);
    *weight = t;
    return first;
}

/* The point that is closer of the two. */
static size_t nearest(const clv_offload_kind *kind, double work)
{
    double t = 0;
    const size_t first = kind->curve.count ? near(kind, work, &t) : 0;
    return first + (t > 0.5);
}

void clv_kind_predict(const clv_offload_kind *kind, double work, double *host_s, double *device_s)
{
    double t;
    clv_curve_at(&kind->curve, work, host_s, device_s);
    if (!kind->curve.count) return;
    const size_t i = near(kind, work, &t), next = CLV_MIN(i + 1, kind->curve.count - 1);
    *host_s *= exp((1 - t) * kind->lean[0][i] + t * kind->lean[0][next]);
    *device_s *= exp((1 - t) * kind->lean[1][i] + t * kind->lean[1][next]);
}

clv_side clv_kind_choose(const clv_offload_kind *kind, double work, double host_s, double device_s,
                         double first_s)
{
    return clv_kind_weigh(kind, kind->last[nearest(kind, work)], host_s, device_s, first_s);
}

clv_side clv_kind_weigh(const clv_offload_kind *kind, clv_side last, double host_s, double device_s,
                        double first_s)
{
    const double wait_s = kind->built ? 0 : fmax(first_s - kind->lost_s, 0);
    double host = host_s, device = device_s + wait_s;
    if (last == CLV_SIDE_HOST) host *= worth_leaving;
    if (last == CLV_SIDE_DEVICE) device *= worth_leaving;
    return device < host ? CLV_SIDE_DEVICE : CLV_SIDE_HOST;
}

void clv_kind_went(clv_offload_kind *kind, double work, clv_side side, double host_s,
                   double device_s)
{
    const size_t i = nearest(kind, work);
    if (side == CLV_SIDE_HOST && !kind->built) kind->lost_s += fmax(host_s - device_s, 0);
    if (kind->built || side == CLV_SIDE_DEVICE) kind->last[i] = side;
}

void clv_kind_lean(double *mine, double *other, double weight, double predicted, double seconds)
{
    const double most = predicted < long_s ? most_step : most_long_step;
    const double step = fmax(-most, fmin(most, part * log(seconds / predicted)));
    *mine = fmax(-most_lean, fmin(most_lean, *mine + weight * step));
    *other *= 1 - forgotten * weight;
}

void clv_kind_saw(clv_offload_kind *kind, double work, clv_side side, double predicted,
                  double seconds)
{
    if (!kind->curve.count || !(predicted > 0) || !(seconds > 0)) return;
    double t;
    const int mine = side == CLV_SIDE_DEVICE;
    const size_t i = near(kind, work, &t), next = CLV_MIN(i + 1, kind->curve.count - 1);
    const double weight[2] = { 1 - t, t };
    for (int k = 0; k < 2; ++k)
        clv_kind_lean(&kind->lean[mine][k ? next : i], &kind->lean[!mine][k ? next : i], weight[k],
                      predicted, seconds);
}

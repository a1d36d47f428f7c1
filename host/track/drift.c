/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the motion that all tracks have in common. */
#include "base/alloc.h"
#include "base/error.h"
#include "host/track/tracks.h"

#include <math.h>
#include <string.h>

/* The mean displacement into a frame. */
typedef struct step {
    double mean[3];
    size_t count; /* number of tracks */
} step;

static void add_steps(const clv_tracks *t, int64_t first, step *steps)
{
    for (size_t k = 0; k < t->count; ++k) {
        const clv_track_spot *s = &t->spots[t->ranges[k].first];
        for (size_t i = 1; i < t->ranges[k].count; ++i) {
            if (s[i].frame - s[i - 1].frame != 1) continue;
            step *to = &steps[s[i].frame - first];
            for (int axis = 0; axis < 3; ++axis)
                to->mean[axis] += s[i].place[axis] - s[i - 1].place[axis];
            ++to->count;
        }
    }
}

/* Averages over the last `smooth` frames that have a step, and sums the averages to the drift. Returns the share of the
 * displacements' variance that is lost when the drift is removed. */
static double sum_up(step *steps, size_t frames, size_t smooth, double *drift)
{
    double lost = 0, displacements = 0;
    /* sums over the window: of the steps' means, and of 1 / (their numbers of tracks) */
    double sum[3] = { 0 }, inverse = 0;
    size_t oldest = 0, there = 0; /* first frame of the window; number of frames with steps in it */
    memset(drift, 0, 3 * sizeof *drift);
    for (size_t f = 0; f < frames; ++f) {
        if (f) memcpy(drift + 3 * f, drift + 3 * (f - 1), 3 * sizeof *drift);
        const double n = (double)steps[f].count;
        if (!steps[f].count) continue;
        for (int axis = 0; axis < 3; ++axis)
            sum[axis] += steps[f].mean[axis] /= n;
        inverse += 1 / n;
        if (++there > smooth) {
            while (!steps[oldest].count)
                ++oldest;
            for (int axis = 0; axis < 3; ++axis)
                sum[axis] -= steps[oldest].mean[axis];
            inverse -= 1 / (double)steps[oldest++].count;
            --there;
        }
        const double w = (double)there;
        for (int axis = 0; axis < 3; ++axis)
            drift[3 * f + (size_t)axis] += sum[axis] / w;
        /* the lost share of the variance of a displacement; an average over several frames also correlates neighbouring
         * steps */
        lost += n * (2 / (w * n) - inverse / (w * w) + (smooth > 1 ? 2 / (w * w * n) : 0));
        displacements += n;
    }
    return displacements > 0 ? fmin(lost / displacements, 1) : 0;
}

clv_status clv_tracks_drift(const clv_tracks *tracks, size_t smooth, double *drift, double *share)
{
    int64_t first, last;
    size_t frames;
    if (!tracks || !drift)
        return clv_fail(CLV_E_ARGUMENT, "tracks_drift: %s is NULL", tracks ? "drift" : "tracks");
    if (share) *share = 0;
    clv_tracks_frames(tracks, &first, &last);
    if (last < first) return CLV_OK;
    frames = (size_t)(last - first) + 1;
    step *steps = clv_zalloc(frames, sizeof *steps);
    if (!steps)
        return clv_fail(CLV_E_MEMORY, "tracks_drift: not enough memory for %zu frames", frames);
    add_steps(tracks, first, steps);
    const double lost = sum_up(steps, frames, CLV_MAX(smooth, (size_t)1), drift);
    if (share) *share = lost;
    clv_free(steps);
    return CLV_OK;
}

clv_status clv_tracks_subtract(clv_tracks *tracks, const double *drift)
{
    int64_t first, last;
    if (!tracks || !drift)
        return clv_fail(CLV_E_ARGUMENT, "tracks_subtract: %s is NULL", tracks ? "drift" : "tracks");
    clv_tracks_frames(tracks, &first, &last);
    for (size_t i = 0; last >= first && i < 3 * ((size_t)(last - first) + 1); ++i)
        if (!(fabs(drift[i]) <= 1e150))
            return clv_fail(CLV_E_ARGUMENT,
                            "tracks_subtract: the drift of frame %lld is %g, but it must be "
                            "finite, and at most 1e150",
                            (long long)(first + (int64_t)(i / 3)), drift[i]);
    for (size_t i = 0; i < tracks->spot_count; ++i) {
        clv_track_spot *s = &tracks->spots[i];
        for (int axis = 0; axis < 3; ++axis)
            s->place[axis] -= drift[3 * (size_t)(s->frame - first) + (size_t)axis];
    }
    return CLV_OK;
}

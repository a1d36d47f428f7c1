/* SPDX-License-Identifier: Apache-2.0 */
/* Computes mean squared displacements of one track and of all tracks. */
#include "base/alloc.h"
#include "base/error.h"
#include "host/track/tracks.h"

#include <math.h>
#include <string.h>

/* Returns the number of independent squared displacements at `lag` that carry as much information as all overlapping
 * ones of a path of `spots` positions: Qian et al. 1991, equation B4. */
static double independent(double spots, double lag)
{
    const double pairs = spots - lag;
    if (lag > spots / 2)
        return 1 / (1 + (pairs * pairs * pairs + 5 * lag - 4 * pairs * pairs * lag - spots) /
                            (6 * pairs * lag * lag));
    return 6 * pairs * pairs * lag /
           (2 * spots - lag + 4 * spots * lag * lag - 5 * lag * lag * lag);
}

static void one_lag(const clv_track_spot *s, size_t count, int64_t lag, clv_msd *m)
{
    size_t pairs = 0;
    double mean[3] = { 0 }, square[3] = { 0 };
    for (size_t i = 0, j = 1; j < count; ++j) {
        while (s[j].frame - s[i].frame > lag)
            ++i;
        if (s[j].frame - s[i].frame != lag) continue;
        ++pairs;
        for (int axis = 0; axis < 3; ++axis) {
            const double step = s[j].place[axis] - s[i].place[axis];
            mean[axis] += step, square[axis] += step * step;
        }
    }
    *m = (clv_msd){ .lag = lag, .pairs = pairs, .tracks = pairs > 0 };
    for (int axis = 0; axis < 3; ++axis) {
        m->mean[axis] = mean[axis] / (double)pairs; /* 0/0 is NaN */
        m->square[axis] = square[axis] / (double)pairs;
    }
    m->msd = m->square[0] + m->square[1] + m->square[2];
}

/* Computes all lags of a track. If gaps leave a lag without pairs, its weight goes to the other lags, as in trackpy. */
static void one_track(const clv_tracks *t, size_t index, size_t lags, clv_msd *msd)
{
    const clv_track_spot *s = &t->spots[t->ranges[index].first];
    const size_t count = t->ranges[index].count;
    const double span = (double)(s[count - 1].frame - s[0].frame) + 1, axes = t->deep ? 3 : 2;
    double wanted = 0, there = 0;
    for (size_t k = 0; k < lags; ++k) {
        clv_msd *m = &msd[k];
        const double lag = (double)k + 1;
        if (lag >= span) {
            *m = (clv_msd){ .lag = (int64_t)k + 1, .msd = NAN, .error = NAN };
            for (int axis = 0; axis < 3; ++axis)
                m->mean[axis] = m->square[axis] = NAN;
            continue;
        }
        one_lag(s, count, (int64_t)k + 1, m);
        m->independent = independent(span, lag) * (double)count / span;
        wanted += m->independent;
        if (!m->pairs) m->independent = 0;
        there += m->independent;
    }
    for (size_t k = 0; k < lags; ++k) {
        if (there < wanted) msd[k].independent *= wanted / there;
        msd[k].error = msd[k].msd * sqrt(2 / (axes * msd[k].independent));
    }
}

/* Sums of w, w m, w^2, w^2 m, w^2 m^2 over the tracks, from which the scatter is computed. `m` is relative to the first
 * track's value, to avoid cancellation. */
typedef struct moments {
    double w, wm, w2, w2m, w2m2, from;
} moments;

static void add(clv_msd *all, moments *sum, const clv_msd *m)
{
    if (!m->pairs) return;
    if (!all->tracks) sum->from = m->msd;
    const double w = m->independent, d = m->msd - sum->from;
    sum->w += w, sum->wm += w * d;
    sum->w2 += w * w, sum->w2m += w * w * d, sum->w2m2 += w * w * d * d;
    all->pairs += m->pairs, ++all->tracks;
    for (int axis = 0; axis < 3; ++axis)
        all->mean[axis] += w * m->mean[axis], all->square[axis] += w * m->square[axis];
}

enum { SCATTER_FROM = 10 }; /* from this number of tracks on, the error comes from their scatter */

static void finish(clv_msd *all, const moments *sum, double axes)
{
    for (int axis = 0; axis < 3; ++axis)
        all->mean[axis] /= sum->w, all->square[axis] /= sum->w;
    all->msd = all->square[0] + all->square[1] + all->square[2];
    all->independent = sum->w;
    if (all->tracks < SCATTER_FROM) {
        all->error = all->msd * sqrt(2 / (axes * sum->w));
        return;
    }
    const double d = sum->wm / sum->w, n = (double)all->tracks;
    const double scatter = sum->w2m2 - 2 * d * sum->w2m + d * d * sum->w2;
    all->error = sqrt(fmax(scatter, 0) * n / (n - 1)) / sum->w;
}

clv_status clv_tracks_msd(const clv_tracks *tracks, int64_t index, size_t lags, clv_msd *msd)
{
    size_t first, end;
    CLV_TRY(clv_tracks_pick(tracks, "tracks_msd", index, &first, &end));
    if (!msd && lags) return clv_fail(CLV_E_ARGUMENT, "tracks_msd: msd is NULL");
    if (index != CLV_ALL_TRACKS) {
        one_track(tracks, first, lags, msd);
        return CLV_OK;
    }
    clv_msd *one = clv_alloc(CLV_MAX(lags, (size_t)1), sizeof *one);
    moments *sums = clv_zalloc(CLV_MAX(lags, (size_t)1), sizeof *sums);
    if (!one || !sums) {
        clv_free(one), clv_free(sums);
        return clv_fail(CLV_E_MEMORY, "tracks_msd: not enough memory for %zu lags", lags);
    }
    for (size_t k = 0; k < lags; ++k)
        msd[k] = (clv_msd){ .lag = (int64_t)k + 1 };
    for (size_t i = first; i < end; ++i) {
        const clv_track_range *r = &tracks->ranges[i];
        const int64_t span =
            tracks->spots[r->first + r->count - 1].frame - tracks->spots[r->first].frame;
        const size_t own = (uint64_t)span < lags ? (size_t)span : lags;
        one_track(tracks, i, own, one);
        for (size_t k = 0; k < own; ++k)
            add(&msd[k], &sums[k], &one[k]);
    }
    for (size_t k = 0; k < lags; ++k)
        finish(&msd[k], &sums[k], tracks->deep ? 3 : 2);
    clv_free(one), clv_free(sums);
    return CLV_OK;
}

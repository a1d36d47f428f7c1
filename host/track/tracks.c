/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts, checks and filters tables of tracks. */
#include "host/track/tracks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct key {
    int64_t particle;
    clv_track_spot spot;
} key;

static int by_track(const void *left, const void *right)
{
    const key *a = left, *b = right;
    if (a->particle != b->particle) return a->particle < b->particle ? -1 : 1;
    return (a->spot.frame > b->spot.frame) - (a->spot.frame < b->spot.frame);
}

/* For coordinates within these bounds, squares and sums of squares neither underflow nor overflow; differences of
 * frames within the bounds fit their type. */
static const double most_place = 1e150;
static const int64_t most_frame = INT64_C(1) << 61;

static clv_status take_points(const clv_point *points, const double *z, const int64_t *particle,
                              size_t count, key *keys, size_t *taken)
{
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
        if (particle[i] < 0) continue;
        const double place[3] = { z ? z[i] : 0, points[i].y, points[i].x };
        for (int axis = 0; axis < 3; ++axis)
            if (!(fabs(place[axis]) <= most_place))
                return clv_fail(CLV_E_ARGUMENT,
                                "tracks: point %zu is at z %g, y %g, x %g, but positions must be "
                                "finite and at most 1e150",
                                i, place[0], place[1], place[2]);
        if (points[i].frame > most_frame || points[i].frame < -most_frame)
            return clv_fail(CLV_E_ARGUMENT,
                            "tracks: point %zu has the frame %lld, but at most 2^61 is possible", i,
                            (long long)points[i].frame);
        keys[n] = (key){ particle[i], { points[i].frame, { 0 } } };
        memcpy(keys[n++].spot.place, place, sizeof place);
    }
    *taken = n;
    return CLV_OK;
}

static clv_status make_ranges(clv_tracks *t, const key *keys)
{
    for (size_t i = 0; i < t->spot_count; ++i) {
        t->spots[i] = keys[i].spot;
        t->deep = t->deep || t->spots[i].place[0] != t->spots[0].place[0];
        if (i && keys[i].particle == keys[i - 1].particle) {
            if (keys[i].spot.frame == keys[i - 1].spot.frame)
                return clv_fail(CLV_E_ARGUMENT,
                                "tracks: the track %lld has two spots in frame %lld, but a track "
                                "has one spot per frame at most",
                                (long long)keys[i].particle, (long long)keys[i].spot.frame);
            ++t->ranges[t->count - 1].count;
        } else {
            t->ranges[t->count++] = (clv_track_range){ keys[i].particle, i, 1 };
        }
    }
    return CLV_OK;
}

clv_status clv_tracks_create(const clv_point *points, const double *z, const int64_t *particle,
                             size_t count, clv_tracks **tracks)
{
    if (!tracks) return clv_fail(CLV_E_ARGUMENT, "tracks: tracks is NULL");
    *tracks = NULL;
    if (count && (!points || !particle))
        return clv_fail(CLV_E_ARGUMENT, "tracks: %s is NULL", points ? "particle" : "points");
    const size_t room = CLV_MAX(count, (size_t)1);
    clv_tracks *t = clv_zalloc(1, sizeof *t);
    key *keys = clv_alloc(room, sizeof *keys);
    clv_status status = CLV_OK;
    if (t) {
        t->spots = clv_alloc(room, sizeof *t->spots);
        t->ranges = clv_alloc(room, sizeof *t->ranges);
    }
    if (!t || !keys || !t->spots || !t->ranges)
        status = clv_fail(CLV_E_MEMORY, "tracks: not enough memory for %zu points", count);
    if (!status) status = take_points(points, z, particle, count, keys, &t->spot_count);
    if (!status && t->spot_count) {
        qsort(keys, t->spot_count, sizeof *keys, by_track);
        status = make_ranges(t, keys);
    }
    clv_free(keys);
    if (status)
        clv_tracks_free(t);
    else
        *tracks = t;
    return status;
}

void clv_tracks_free(clv_tracks *tracks)
{
    if (!tracks) return;
    clv_free(tracks->spots), clv_free(tracks->ranges), clv_free(tracks);
}

size_t clv_tracks_count(const clv_tracks *tracks)
{
    return tracks->count;
}

size_t clv_tracks_axes(const clv_tracks *tracks)
{
    return tracks->deep ? 3 : 2;
}

static double distance(const double *a, const double *b)
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                (a[2] - b[2]) * (a[2] - b[2]));
}

clv_track clv_tracks_at(const clv_tracks *tracks, size_t index)
{
    const clv_track_range *r = &tracks->ranges[index];
    const clv_track_spot *s = &tracks->spots[r->first];
    double low[3], high[3];
    memcpy(low, s->place, sizeof low), memcpy(high, s->place, sizeof high);
    for (size_t i = 1; i < r->count; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = fmin(low[axis], s[i].place[axis]);
            high[axis] = fmax(high[axis], s[i].place[axis]);
        }
    return (clv_track){ .particle = r->particle,
                        .first = s->frame,
                        .last = s[r->count - 1].frame,
                        .spots = r->count,
                        .extent = distance(low, high),
                        .displacement = distance(s->place, s[r->count - 1].place) };
}

void clv_tracks_frames(const clv_tracks *tracks, int64_t *first, int64_t *last)
{
    *first = 0, *last = -1;
    for (size_t k = 0; k < tracks->count; ++k) {
        const clv_track_range *r = &tracks->ranges[k];
        const int64_t a = tracks->spots[r->first].frame,
                      b = tracks->spots[r->first + r->count - 1].frame;
        *first = k ? CLV_MIN(*first, a) : a;
        *last = k ? CLV_MAX(*last, b) : b;
    }
}

static bool keeps(const clv_track_filter *f, const clv_track *t)
{
    if (t->spots < f->min_spots || (f->max_spots && t->spots > f->max_spots)) return false;
    if (t->extent < f->min_extent || (f->max_extent > 0 && t->extent > f->max_extent)) return false;
    return t->displacement >= f->min_displacement &&
           !(f->max_displacement > 0 && t->displacement > f->max_displacement);
}

clv_status clv_tracks_filter(clv_tracks *tracks, const clv_track_filter *filter)
{
    clv_track_filter f;
    if (!tracks) return clv_fail(CLV_E_ARGUMENT, "tracks_filter: tracks is NULL");
    CLV_TRY(clv_take_struct(&f, sizeof f, filter, "tracks_filter", "clv_track_filter"));
    const double bounds[] = { f.min_extent, f.max_extent, f.min_displacement, f.max_displacement };
    for (size_t i = 0; i < CLV_LEN(bounds); ++i)
        if (!(bounds[i] >= 0))
            return clv_fail(CLV_E_ARGUMENT,
                            "tracks_filter: a bound of length is %g, but it must be 0 or more",
                            bounds[i]);
    size_t spots = 0, count = 0;
    for (size_t k = 0; k < tracks->count; ++k) {
        const clv_track track = clv_tracks_at(tracks, k);
        if (!keeps(&f, &track)) continue;
        clv_track_range r = tracks->ranges[k];
        memmove(tracks->spots + spots, tracks->spots + r.first, r.count * sizeof *tracks->spots);
        r.first = spots, spots += r.count;
        tracks->ranges[count++] = r;
    }
    tracks->spot_count = spots, tracks->count = count;
    return CLV_OK;
}

size_t clv_tracks_spots(const clv_tracks *tracks, clv_point *points, double *z, int64_t *particle)
{
    for (size_t k = 0; k < tracks->count; ++k) {
        const clv_track_range *r = &tracks->ranges[k];
        for (size_t i = r->first; i < r->first + r->count; ++i) {
            const clv_track_spot *s = &tracks->spots[i];
            if (points) points[i] = (clv_point){ s->frame, s->place[1], s->place[2] };
            if (z) z[i] = s->place[0];
            if (particle) particle[i] = r->particle;
        }
    }
    return tracks->spot_count;
}

clv_status clv_tracks_pick(const clv_tracks *tracks, const char *function, int64_t index,
                           size_t *first, size_t *end)
{
    if (!tracks) return clv_fail(CLV_E_ARGUMENT, "%s: tracks is NULL", function);
    *first = 0, *end = tracks->count;
    if (index == CLV_ALL_TRACKS) return CLV_OK;
    if (index < 0 || (uint64_t)index >= tracks->count)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: there is no track %lld; the %zu tracks are numbered from 0, and "
                        "CLV_ALL_TRACKS means all of them",
                        function, (long long)index, tracks->count);
    *first = (size_t)index, *end = *first + 1;
    return CLV_OK;
}

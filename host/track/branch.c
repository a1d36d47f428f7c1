/* SPDX-License-Identifier: Apache-2.0 */
/* Finds splits and merges of tracks by the best assignment between tracks that begin or end in a frame and tracks that
 * continue. */
#include <cleave/track.h>

#include "base/alloc.h"
#include "base/error.h"
#include "host/track/group.h"

#include <math.h>
#include <stdlib.h>

/* A spot of a track. */
typedef struct spot {
    int64_t frame, particle;
    double z, y, x;
    size_t index;
    bool begins, ends; /* the spot is the first (the last) of its track */
} spot;

static int by_track(const void *left, const void *right)
{
    const spot *a = left, *b = right;
    if (a->particle != b->particle) return a->particle < b->particle ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

static int by_frame(const void *left, const void *right)
{
    const spot *a = left, *b = right;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    if (a->z != b->z) return a->z < b->z ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static bool is_open(const spot *s, bool merges)
{
    return merges ? s->ends : s->begins;
}

/* Returns the index of the first spot whose y is at least `y`. The spots are sorted by y. */
static size_t first_from(const spot *spots, size_t count, double y)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (spots[middle].y < y)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Matches tracks in `open`, which begin in a frame, with tracks in `whole`, which continue, one frame earlier. For
 * merges, the tracks in `open` end in a frame, and those in `whole` are one frame later. */
static clv_status find_between(clv_groups *g, const spot *open, size_t opens, const spot *whole,
                               size_t wholes, bool merges)
{
    for (size_t s = 0; s < opens; ++s) {
        const spot *a = &open[s];
        if (!is_open(a, merges)) continue;
        for (size_t w = first_from(whole, wholes, a->y - g->range); w < wholes; ++w) {
            const spot *b = &whole[w];
            const double dz = a->z - b->z, dy = a->y - b->y, dx = a->x - b->x;
            const double far = dz * dz + dy * dy + dx * dx;
            if (dy < -g->range) break;
            if (far <= g->range * g->range && !is_open(b, !merges))
                CLV_TRY(clv_groups_add(g, (uint32_t)w, (uint32_t)s, far));
        }
    }
    return clv_groups_solve(g, wholes, opens);
}

static clv_status find_all(clv_groups *g, const spot *spots, size_t count, clv_branch *branches,
                           size_t *found)
{
    const spot *before = NULL;
    size_t befores = 0;
    for (size_t first = 0, n = 0; first < count; first += n) {
        const spot *now = spots + first;
        for (n = 1; first + n < count && now[n].frame == now->frame;)
            ++n;
        g->done = first, g->frame = now->frame;
        CLV_TRY(clv_watch_tell(g->watch, first));
        if (before && before->frame == now->frame - 1) {
            CLV_TRY(find_between(g, now, n, before, befores, false));
            for (size_t s = 0; s < n; ++s)
                if (g->taken[s] >= 0)
                    branches[(*found)++] =
                        (clv_branch){ CLV_BRANCH_SPLIT, before[g->taken[s]].index, now[s].index };
            CLV_TRY(find_between(g, before, befores, now, n, true));
            for (size_t s = 0; s < befores; ++s)
                if (g->taken[s] >= 0)
                    branches[(*found)++] =
                        (clv_branch){ CLV_BRANCH_MERGE, before[s].index, now[g->taken[s]].index };
        }
        before = now, befores = n;
    }
    return CLV_OK;
}

static clv_status take(const clv_point *points, const double *z, const int64_t *particle,
                       size_t count, spot *spots, size_t *taken)
{
    static const double most = 1e150;
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
        const double deep = z ? z[i] : 0;
        if (particle[i] < 0) continue;
        if (!(fabs(points[i].y) <= most && fabs(points[i].x) <= most && fabs(deep) <= most))
            return clv_fail(CLV_E_ARGUMENT,
                            "link: spot %zu is at z %g, y %g, x %g, but positions must be finite "
                            "and at most %g",
                            i, deep, points[i].y, points[i].x, most);
        spots[n++] =
            (spot){ points[i].frame, particle[i], deep, points[i].y, points[i].x, i, false, false };
    }
    if (n) qsort(spots, n, sizeof *spots, by_track);
    for (size_t i = 0; i < n; ++i) {
        spots[i].begins = i == 0 || spots[i - 1].particle != spots[i].particle;
        spots[i].ends = i + 1 == n || spots[i + 1].particle != spots[i].particle;
        if (!spots[i].begins && spots[i - 1].frame == spots[i].frame)
            return clv_fail(CLV_E_ARGUMENT, "link: particle %lld has two spots in frame %lld",
                            (long long)spots[i].particle, (long long)spots[i].frame);
    }
    if (n) qsort(spots, n, sizeof *spots, by_frame);
    *taken = n;
    return CLV_OK;
}

clv_status clv_link_branches(const clv_point *points, const double *z, const int64_t *particle,
                             size_t count, double range, clv_branch *branches, size_t *found)
{
    if (!found || (count && (!points || !particle || !branches)))
        return clv_fail(CLV_E_ARGUMENT,
                        "link_branches: points, particle, branches or found is NULL");
    *found = 0;
    if (!(range >= 1e-150 && range <= 1e150))
        return clv_fail(CLV_E_ARGUMENT,
                        "link_branches: the range is %g, but it must be more than 0 (1e-150 to "
                        "1e+150)",
                        range);
    if (count >= UINT32_MAX / 2)
        return clv_fail(CLV_E_ARGUMENT, "link_branches: got %zu spots, which is too many", count);
    clv_watch watch = clv_watch_begin("link", NULL, NULL, count);
    clv_groups groups = { .range = range, .watch = &watch };
    size_t taken = 0;
    spot *spots = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *spots);
    clv_status status =
        spots ? take(points, z, particle, count, spots, &taken)
              : clv_fail(CLV_E_MEMORY, "link_branches: not enough memory for %zu spots", count);
    if (!status) status = find_all(&groups, spots, taken, branches, found);
    if (status) *found = 0;
    clv_groups_clear(&groups);
    clv_free(spots);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Links spots frame by frame: finds candidates with a grid of cells, then the best assignment. */
#include <cleave/track.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "host/track/group.h"
#include "host/track/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A particle that may continue. */
typedef struct head {
    double z, y, x;  /* expected position */
    double place[3]; /* last seen position: z, y, x */
    int64_t frame;   /* frame in which it was last seen */
    int64_t track;
    size_t sample; /* index of the particle's velocity in the flow; SIZE_MAX: none */
} head;

typedef struct linker {
    const clv_point *points;
    const clv_link_options *options;
    clv_watch watch;
    size_t done;    /* number of spots in earlier frames */
    size_t *order;  /* indices of the points sorted by frame, z, y, x */
    int64_t *track; /* track of each point, in the order of `order` */
    int64_t tracks;
    head *heads;
    size_t head_count, head_room;
    clv_flow flow;
    int64_t seen; /* the last frame with spots */
    /* grid of cells over the heads of a frame */
    uint32_t *cell_head, *cell_next;
    size_t cell_room, next_room;
    double y0, x0;
    size_t rows, columns;
    clv_groups groups;
} linker;

typedef struct key {
    int64_t frame;
    double z, y, x;
    size_t index;
} key;

static int by_key(const void *left, const void *right)
{
    const key *a = left, *b = right;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    if (a->z != b->z) return a->z < b->z ? -1 : 1;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Returns the z of a point; 0 in two dimensions. */
static double z_of(const linker *l, size_t index)
{
    return l->options->z ? l->options->z[index] : 0;
}

static clv_status no_memory(void)
{
    return clv_fail(CLV_E_MEMORY, "link: out of memory");
}

static clv_status sort_points(linker *l, size_t count)
{
    key *keys = clv_alloc(count, sizeof *keys);
    l->order = clv_alloc(count, sizeof *l->order);
    l->track = clv_alloc(count, sizeof *l->track);
    if (!keys || !l->order || !l->track) {
        clv_free(keys);
        return no_memory();
    }
    for (size_t i = 0; i < count; ++i)
        keys[i] = (key){ l->points[i].frame, z_of(l, i), l->points[i].y, l->points[i].x, i };
    qsort(keys, count, sizeof *keys, by_key);
    for (size_t i = 0; i < count; ++i)
        l->order[i] = keys[i].index;
    clv_free(keys);
    return CLV_OK;
}

#define NOBODY UINT32_MAX
enum {
    MOST_CELLS = 1 << 20,
    MOST_ROUNDS = 1000000 /* rounds of the adaptive search */
};

/* For coordinates within these bounds, squares and sums of squares neither underflow nor overflow. */
static const double least = 1e-150, most = 1e150;

static size_t cell_along(double at, double from, double side, size_t count)
{
    const double cell = floor((at - from) / side);
    return cell < 0 ? 0 : cell >= (double)count ? count - 1 : (size_t)cell;
}

/* Sorts the heads into cells whose sides are at least the search range. */
static clv_status fill_cells(linker *l, double *side)
{
    double y1 = -INFINITY, x1 = -INFINITY;
    l->y0 = l->x0 = INFINITY;
    for (size_t i = 0; i < l->head_count; ++i) {
        l->y0 = fmin(l->y0, l->heads[i].y), y1 = fmax(y1, l->heads[i].y);
        l->x0 = fmin(l->x0, l->heads[i].x), x1 = fmax(x1, l->heads[i].x);
    }
    *side = l->options->search_range;
    const double cells = CLV_MAX(4.0 * (double)l->head_count, 64.0);
    while (((y1 - l->y0) / *side + 1) * ((x1 - l->x0) / *side + 1) > CLV_MIN(cells, MOST_CELLS))
        *side *= 1.5;
    l->rows = (size_t)((y1 - l->y0) / *side) + 1, l->columns = (size_t)((x1 - l->x0) / *side) + 1;
    if (!clv_reserve(&l->cell_head, &l->cell_room, l->rows * l->columns, sizeof *l->cell_head) ||
        !clv_reserve(&l->cell_next, &l->next_room, l->head_count, sizeof *l->cell_next))
        return no_memory();
    memset(l->cell_head, 0xFF, l->rows * l->columns * sizeof *l->cell_head);
    for (size_t i = l->head_count; i-- > 0;) {
        uint32_t *cell =
            &l->cell_head[cell_along(l->heads[i].y, l->y0, *side, l->rows) * l->columns +
                          cell_along(l->heads[i].x, l->x0, *side, l->columns)];
        l->cell_next[i] = *cell;
        *cell = (uint32_t)i;
    }
    return CLV_OK;
}

static clv_status find_edges(linker *l, size_t first, size_t count)
{
    const double range2 = l->options->search_range * l->options->search_range;
    double side;
    if (!l->head_count || !count) return CLV_OK;
    CLV_TRY(fill_cells(l, &side));
    for (size_t s = 0; s < count; ++s) {
        if (s % 64 == 0) CLV_TRY(clv_watch_tell(&l->watch, l->done));
        const clv_point *p = &l->points[l->order[first + s]];
        const double z = z_of(l, l->order[first + s]);
        const double row = floor((p->y - l->y0) / side), column = floor((p->x - l->x0) / side);
        if (row < -1 || column < -1 || row > (double)l->rows || column > (double)l->columns)
            continue;
        for (int64_t r = (int64_t)row - 1; r <= (int64_t)row + 1; ++r)
            for (int64_t c = (int64_t)column - 1; c <= (int64_t)column + 1; ++c) {
                if (r < 0 || c < 0 || r >= (int64_t)l->rows || c >= (int64_t)l->columns) continue;
                for (uint32_t h = l->cell_head[(size_t)r * l->columns + (size_t)c]; h != NOBODY;
                     h = l->cell_next[h]) {
                    const double dz = l->heads[h].z - z, dy = l->heads[h].y - p->y,
                                 dx = l->heads[h].x - p->x, far = dz * dz + dy * dy + dx * dx;
                    if (far <= range2) CLV_TRY(clv_groups_add(&l->groups, h, (uint32_t)s, far));
                }
            }
    }
    return CLV_OK;
}

/* Returns the number of frames from one frame to a later one. Frames above 2^53, such as times in nanoseconds, have no
 * exact float64, but small differences have one. */
static double frames_between(int64_t from, int64_t to)
{
    return (double)((uint64_t)to - (uint64_t)from);
}

/* Moves every head to its predicted position. */
static void predict(linker *l, int64_t frame)
{
    for (size_t i = 0; i < l->head_count; ++i) {
        head *h = &l->heads[i];
        double later[3];
        clv_flow_predict(&l->flow, h->place, h->sample, frames_between(h->frame, frame), later);
        /* a head predicted far outside all bounds matches no spot, as intended */
        h->z = fmin(fmax(later[0], -most), most);
        h->y = fmin(fmax(later[1], -most), most);
        h->x = fmin(fmax(later[2], -most), most);
    }
}

/* Moves a head to the spot that was assigned to it. */
static clv_status move_head(linker *l, head *h, const clv_point *p, double z, int64_t frame)
{
    const double to[3] = { z, p->y, p->x };
    h->sample = SIZE_MAX;
    if (l->options->predict != CLV_PREDICT_NONE) {
        if (h->frame == l->seen && h->frame != frame) {
            h->sample = l->flow.count;
            CLV_TRY(clv_flow_add(&l->flow, h->place, to, frames_between(h->frame, frame)));
        }
    }
    memcpy(h->place, to, sizeof to);
    h->z = z, h->y = p->y, h->x = p->x, h->frame = frame;
    return CLV_OK;
}

/* Links the spots [first, first + count) of one frame. */
static clv_status link_frame(linker *l, size_t first, size_t count, int64_t frame)
{
    size_t alive = 0;
    for (size_t i = 0; i < l->head_count; ++i) /* drops heads that were last seen too long ago */
        if ((uint64_t)frame - (uint64_t)l->heads[i].frame - 1 <= l->options->memory)
            l->heads[alive++] = l->heads[i];
    l->head_count = alive;
    if (l->options->predict != CLV_PREDICT_NONE) predict(l, frame);
    l->groups.done = first, l->groups.frame = frame;
    CLV_TRY(find_edges(l, first, count));
    CLV_TRY(clv_groups_solve(&l->groups, l->head_count, count));
    if (!clv_reserve(&l->heads, &l->head_room, l->head_count + count, sizeof *l->heads))
        return no_memory();
    if (first) clv_flow_begin(&l->flow); /* the guessed flow is also used in the second frame */
    for (size_t i = 0; i < l->head_count; ++i)
        l->heads[i].sample = SIZE_MAX;
    for (size_t s = 0; s < count; ++s) {
        const clv_point *p = &l->points[l->order[first + s]];
        const int64_t taken = l->groups.taken[s];
        head *h = taken >= 0 ? &l->heads[taken] : &l->heads[l->head_count];
        if (taken < 0) *h = (head){ .track = l->tracks++, .frame = frame }, ++l->head_count;
        CLV_TRY(move_head(l, h, p, z_of(l, l->order[first + s]), frame));
        l->track[first + s] = h->track;
    }
    l->seen = frame;
    return first ? clv_flow_end(&l->flow) : CLV_OK;
}

static clv_status number(const linker *l, size_t count, int64_t *particle, size_t *tracks)
{
    const size_t shortest = CLV_MAX(l->options->min_length, (size_t)1), n = (size_t)l->tracks;
    size_t *length = clv_zalloc(CLV_MAX(n, (size_t)1), sizeof *length);
    int64_t *name = clv_alloc(CLV_MAX(n, (size_t)1), sizeof *name);
    if (!length || !name) {
        clv_free(length), clv_free(name);
        return no_memory();
    }
    for (size_t i = 0; i < count; ++i)
        ++length[l->track[i]];
    int64_t next = 0; /* the tracks are already in the order of first frame, z, y, x */
    for (size_t t = 0; t < n; ++t)
        name[t] = length[t] >= shortest ? next++ : -1;
    for (size_t i = 0; i < count; ++i)
        particle[l->order[i]] = name[l->track[i]];
    if (tracks) *tracks = (size_t)next;
    clv_free(length), clv_free(name);
    return CLV_OK;
}

static void clear(linker *l)
{
    clv_free(l->order), clv_free(l->track), clv_free(l->heads);
    clv_free(l->cell_head), clv_free(l->cell_next);
    clv_groups_clear(&l->groups);
    clv_flow_clear(&l->flow);
}

/* Uses trackpy's step and largest group if the caller sets none. */
static clv_adaptive adaptive_of(const clv_link_options *o)
{
    return (clv_adaptive){ .stop = o->adaptive_stop,
                           .step = o->adaptive_step > 0 ? o->adaptive_step : 0.95,
                           .largest = o->adaptive_group ? o->adaptive_group : 15 };
}

static clv_status check_adaptive(const clv_link_options *o)
{
    if (o->adaptive_stop == 0) {
        if (o->adaptive_step == 0 && o->adaptive_group == 0) return CLV_OK;
        return clv_fail(CLV_E_ARGUMENT, "link: adaptive_step and adaptive_group have no effect "
                                        "without adaptive_stop, the shortest search range");
    }
    if (!(o->adaptive_stop >= least && o->adaptive_stop <= o->search_range))
        return clv_fail(CLV_E_ARGUMENT,
                        "link: adaptive_stop is %g, but it must be more than 0 (at least %g) and "
                        "at most the search range %g",
                        o->adaptive_stop, least, o->search_range);
    if (o->adaptive_step != 0 && !(o->adaptive_step > 0 && o->adaptive_step < 1))
        return clv_fail(
            CLV_E_ARGUMENT,
            "link: adaptive_step is %g, but it must be a factor between 0 and 1 (0 means 0.95)",
            o->adaptive_step);
    const double rounds = log(o->adaptive_stop / o->search_range) / log(adaptive_of(o).step);
    if (rounds > MOST_ROUNDS)
        return clv_fail(
            CLV_E_ARGUMENT,
            "link: adaptive_step is %.17g, which takes %.3g steps from the search range "
            "%g to adaptive_stop %g, but at most %d are possible; give a smaller factor",
            o->adaptive_step, rounds, o->search_range, o->adaptive_stop, MOST_ROUNDS);
    return CLV_OK;
}

static clv_status check_prediction(const clv_link_options *o)
{
    if (o->predict < CLV_PREDICT_NONE || o->predict > CLV_PREDICT_CHANNEL)
        return clv_fail(CLV_E_ARGUMENT, "link: predict is %d, expected one of clv_link_predict",
                        (int)o->predict);
    if (o->predict == CLV_PREDICT_CHANNEL && !(o->channel_bin >= least && o->channel_bin <= most))
        return clv_fail(CLV_E_ARGUMENT,
                        "link: channel_bin, the width of the strips of a channel that share one "
                        "velocity, is %g, but it must be more than 0",
                        o->channel_bin);
    if (o->channel_axis != CLV_CHANNEL_X && o->channel_axis != CLV_CHANNEL_Y)
        return clv_fail(CLV_E_ARGUMENT,
                        "link: channel_axis is %d, expected one of clv_link_channel",
                        (int)o->channel_axis);
    for (int axis = 0; axis < 3; ++axis)
        if (!(fabs(o->guess_velocity[axis]) <= most))
            return clv_fail(CLV_E_ARGUMENT, "link: guess_velocity is %g, but it must be finite",
                            o->guess_velocity[axis]);
    if (o->guesses && !(o->guess_places && o->guess_velocities))
        return clv_fail(CLV_E_ARGUMENT, "link: there are %zu guesses, but %s is NULL", o->guesses,
                        o->guess_places ? "guess_velocities" : "guess_places");
    for (size_t i = 0; i < 3 * o->guesses; ++i)
        if (!(fabs(o->guess_places[i]) <= most && fabs(o->guess_velocities[i]) <= most))
            return clv_fail(CLV_E_ARGUMENT, "link: guess %zu is not finite", i / 3);
    return CLV_OK;
}

clv_status clv_link(const clv_point *points, size_t count, const clv_link_options *options,
                    int64_t *particle, size_t *tracks)
{
    clv_link_options o = { .size = sizeof(clv_link_options) };
    if (tracks) *tracks = 0;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_link", "clv_link_options"));
    if (!options || (count && (!points || !particle)))
        return clv_fail(CLV_E_ARGUMENT, "link: points, options or particle is NULL");
    if (!(o.search_range >= least && o.search_range <= most))
        return clv_fail(CLV_E_ARGUMENT,
                        "link: the search range is %g, but it must be more than 0 (%g to %g)",
                        o.search_range, least, most);
    if (count >= NOBODY / 2)
        return clv_fail(CLV_E_ARGUMENT, "link: got %zu spots, which is too many", count);
    for (size_t i = 0; i < count; ++i)
        if (!(fabs(points[i].y) <= most && fabs(points[i].x) <= most) ||
            (o.z && !(fabs(o.z[i]) <= most)))
            return clv_fail(CLV_E_ARGUMENT,
                            "link: spot %zu is at z %g, y %g, x %g, but positions must be finite "
                            "and at most %g",
                            i, o.z ? o.z[i] : 0, points[i].y, points[i].x, most);
    CLV_TRY(check_prediction(&o));
    CLV_TRY(check_adaptive(&o));
    linker l = { .points = points,
                 .options = &o,
                 .flow = { .options = &o },
                 .watch = clv_watch_begin("link", o.progress, o.progress_user, count) };
    l.groups =
        (clv_groups){ .range = o.search_range, .adaptive = adaptive_of(&o), .watch = &l.watch };
    clv_status status = sort_points(&l, count);
    if (!status) status = clv_flow_guess(&l.flow);
    for (size_t first = 0, end; first < count && !status; first = end) {
        const int64_t frame = points[l.order[first]].frame;
        for (end = first; end < count && points[l.order[end]].frame == frame;)
            ++end;
        l.done = first;
        status = clv_watch_tell(&l.watch, first);
        if (!status) status = link_frame(&l, first, end - first, frame);
    }
    if (!status) status = number(&l, count, particle, tracks);
    if (!status) clv_watch_end(&l.watch);
    clear(&l);
    return status;
}

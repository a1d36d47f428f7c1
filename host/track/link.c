/* SPDX-License-Identifier: Apache-2.0 */
/* Linking frame by frame: candidates by cells, independent groups, an exact assignment in each. */
#include <cleave/track.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "host/track/assign.h"
#include "host/track/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A particle that may go on. */
typedef struct head {
    double z, y, x;  /* where it is looked for */
    double place[3]; /* where it was seen: z, y, x */
    int64_t frame;   /* last seen */
    int64_t track;
    size_t sample; /* its velocity in the flow; SIZE_MAX: none */
} head;

/* A possible link: head `from` of those that live, spot `to` of the frame. */
typedef struct edge {
    uint32_t from, to;
    double cost;
} edge;

typedef struct linker {
    const clv_point *points;
    const clv_link_options *options;
    clv_watch watch;
    size_t done;    /* spots of the frames before */
    size_t *order;  /* of the points: frame, z, y, x */
    int64_t *track; /* by order */
    int64_t tracks;
    head *heads;
    size_t head_count, head_room;
    clv_flow flow;
    int64_t seen; /* the last frame with spots */
    edge *edges;
    size_t edge_count, edge_room;
    /* cells over the heads of a frame */
    uint32_t *cell_head, *cell_next;
    size_t cell_room, next_room;
    double y0, x0;
    size_t rows, columns;
    /* groups */
    uint32_t *group; /* of heads, then spots */
    size_t group_room;
    int64_t *taken; /* of each spot of the frame: the head, or -1 */
    size_t taken_room;
    uint32_t *place; /* of heads, then spots: number in its group */
    size_t place_room;
    double *cost;
    size_t cost_room;
    clv_assign_work work;
    size_t work_room;
    size_t *column;
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

/* 0 where links are flat. */
static double z_of(const linker *l, size_t index)
{
    return l->options->z ? l->options->z[index] : 0;
}

static clv_status no_memory(void)
{
    return clv_fail(CLV_E_MEMORY, "link: no memory");
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

/* Of one group's assignment, some 40 s on a core: files made to do damage have more. */
#define MOST_STEPS 2e10
#define NOBODY UINT32_MAX
enum { MOST_CELLS = 1 << 20 };

/* Squares and their sums stay numbers. */
static const double least = 1e-150, most = 1e150;

static size_t cell_along(double at, double from, double side, size_t count)
{
    const double cell = floor((at - from) / side);
    return cell < 0 ? 0 : cell >= (double)count ? count - 1 : (size_t)cell;
}

/* Cells of at least the search range over the heads. */
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

static clv_status add_edge(linker *l, uint32_t from, uint32_t to, double cost)
{
    if (l->edge_count == NOBODY)
        return clv_fail(
            CLV_E_ARGUMENT,
            "link: 2^32 pairs of spots of one frame and those before it are within the search "
            "range %g; less expected",
            l->options->search_range);
    if (!clv_reserve(&l->edges, &l->edge_room, l->edge_count + 1, sizeof *l->edges))
        return no_memory();
    l->edges[l->edge_count++] = (edge){ from, to, cost };
    return CLV_OK;
}

static clv_status find_edges(linker *l, size_t first, size_t count)
{
    const double range2 = l->options->search_range * l->options->search_range;
    double side;
    l->edge_count = 0;
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
                    if (far <= range2) CLV_TRY(add_edge(l, h, (uint32_t)s, far));
                }
            }
    }
    return CLV_OK;
}

static uint32_t root(uint32_t *group, uint32_t i)
{
    while (group[i] != i)
        i = group[i] = group[group[i]];
    return i;
}

static int by_number(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The edges of the list that begins at `e`, by heads upwards, by spots upwards for each: in the list they
 * are by spots already. `end` [heads] are zeros, before and after. */
static size_t sort_edges(const linker *l, const uint32_t *next, uint32_t e, uint32_t *heads,
                         uint32_t *end, edge *sorted)
{
    size_t n = 0, count = 0;
    for (uint32_t i = e; i != NOBODY; i = next[i])
        if (!end[l->edges[i].from]++) heads[n++] = l->edges[i].from;
    qsort(heads, n, sizeof *heads, by_number);
    for (size_t i = 0; i < n; ++i) {
        const uint32_t own = end[heads[i]];
        end[heads[i]] = (uint32_t)count;
        count += own;
    }
    for (uint32_t i = e; i != NOBODY; i = next[i])
        sorted[end[l->edges[i].from]++] = l->edges[i];
    for (size_t i = 0; i < n; ++i)
        end[heads[i]] = 0;
    return n;
}

static bool work_for(linker *l, size_t n, size_t m)
{
    if (!clv_reserve(&l->cost, &l->cost_room, n * m, sizeof *l->cost)) return false;
    if (m + 1 <= l->work_room) return true;
    clv_assign_work *w = &l->work;
    const size_t room = 2 * (m + 1);
    clv_free(w->u), clv_free(w->v), clv_free(w->least), clv_free(w->row), clv_free(w->way);
    clv_free(w->used), clv_free(l->column);
    w->u = clv_alloc(room, sizeof *w->u), w->v = clv_alloc(room, sizeof *w->v);
    w->least = clv_alloc(room, sizeof *w->least), w->row = clv_alloc(room, sizeof *w->row);
    w->way = clv_alloc(room, sizeof *w->way), w->used = clv_alloc(room, 1);
    l->column = clv_alloc(room, sizeof *l->column);
    l->work_room = room;
    const bool ok = w->u && w->v && w->least && w->row && w->way && w->used && l->column;
    if (!ok) l->work_room = 0;
    return ok;
}

/* Edges [e, end) are one group: heads and spots numbered within it. Rows are spots; columns are
 * heads, and one way out for each spot, which costs range^2. Heads that are left over cost nothing:
 * they are as many as spots that are, but for a constant. */
static clv_status solve(linker *l, const edge *edges, size_t count, const uint32_t *heads, size_t n,
                        const uint32_t *spots, size_t m)
{
    const double out = l->options->search_range * l->options->search_range;
    const double never = 4 * out * (double)(n + m + 1);
    const size_t columns = n + m;
    if ((double)m * (double)m * (double)columns > MOST_STEPS)
        return clv_fail(
            CLV_E_ARGUMENT,
            "link: %zu spots of frame %lld compete for %zu particles within the search "
            "range %g of each other: their best assignment takes %.2g steps, and at most "
            "%.2g are done; give a smaller search range",
            m, (long long)l->points[l->order[l->done]].frame, n, l->options->search_range,
            (double)m * (double)m * (double)columns, MOST_STEPS);
    if (!work_for(l, m, columns)) return no_memory();
    for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < columns; ++j)
            l->cost[i * columns + j] = j == n + i ? out : never;
    for (size_t e = 0; e < count; ++e)
        l->cost[l->place[l->head_count + edges[e].to] * columns + l->place[edges[e].from]] =
            edges[e].cost;
    CLV_TRY(clv_assign(l->cost, m, columns, columns, &l->work, &l->watch, l->done, l->column));
    for (size_t i = 0; i < m; ++i)
        if (l->column[i] < n && l->cost[i * columns + l->column[i]] < never)
            l->taken[spots[i]] = heads[l->column[i]];
    return CLV_OK;
}

/* A group's members, and its edges, gathered from lists that are threaded through all edges. */
static clv_status solve_groups(linker *l, size_t spots)
{
    const size_t members = l->head_count + spots;
    if (!clv_reserve(&l->group, &l->group_room, 4 * members + l->edge_count, sizeof *l->group) ||
        !clv_reserve(&l->place, &l->place_room, 2 * members, sizeof *l->place))
        return no_memory();
    uint32_t *group = l->group, *first = group + members, *heads = first + members,
             *end = heads + members, *next = end + members, *place = l->place,
             *found = place + members;
    for (size_t i = 0; i < members; ++i)
        group[i] = (uint32_t)i, first[i] = NOBODY;
    memset(end, 0, members * sizeof *end);
    for (size_t e = 0; e < l->edge_count; ++e) {
        const uint32_t a = root(group, l->edges[e].from),
                       b = root(group, (uint32_t)l->head_count + l->edges[e].to);
        if (a != b) group[CLV_MAX(a, b)] = CLV_MIN(a, b);
    }
    CLV_TRY(clv_watch_tell(&l->watch, l->done));
    for (size_t e = l->edge_count; e-- > 0;) {
        const uint32_t r = root(group, l->edges[e].from);
        next[e] = first[r], first[r] = (uint32_t)e;
    }
    memset(place, 0xFF, members * sizeof *place);
    edge *mine = NULL;
    size_t room = 0;
    clv_status status = CLV_OK;
    for (size_t r = 0; r < members && !status; ++r) {
        if (first[r] == NOBODY) continue;
        const edge *one = &l->edges[first[r]];
        if (next[first[r]] == NOBODY) { /* most are */
            l->taken[one->to] = one->from;
            continue;
        }
        size_t m = 0, count = 0;
        for (uint32_t e = first[r]; e != NOBODY; e = next[e])
            ++count;
        status = clv_reserve(&mine, &room, count, sizeof *mine) ? clv_watch_tell(&l->watch, l->done)
                                                                : no_memory();
        if (status) break;
        const size_t n = sort_edges(l, next, first[r], heads, end, mine);
        for (size_t i = 0; i < n; ++i)
            place[heads[i]] = (uint32_t)i;
        for (size_t e = 0; e < count; ++e) {
            const uint32_t to = (uint32_t)l->head_count + mine[e].to;
            if (place[to] == NOBODY) place[to] = (uint32_t)m, found[m++] = mine[e].to;
        }
        status = solve(l, mine, count, heads, n, found, m);
    }
    clv_free(mine);
    return status;
}

/* Looks for every head where it is expected. */
static void predict(linker *l, int64_t frame)
{
    for (size_t i = 0; i < l->head_count; ++i) {
        head *h = &l->heads[i];
        double later[3];
        clv_flow_predict(&l->flow, l->options->predict, h->place, h->sample,
                         (double)frame - (double)h->frame, later);
        /* What has left all bounds is found nowhere, as is right. */
        h->z = fmin(fmax(later[0], -most), most);
        h->y = fmin(fmax(later[1], -most), most);
        h->x = fmin(fmax(later[2], -most), most);
    }
}

/* A head goes to the spot that it was given. */
static clv_status move_head(linker *l, head *h, const clv_point *p, double z, int64_t frame)
{
    const double to[3] = { z, p->y, p->x };
    h->sample = SIZE_MAX;
    if (l->options->predict == CLV_PREDICT_VELOCITY || l->options->predict == CLV_PREDICT_DRIFT) {
        if (h->frame == l->seen && h->frame != frame) {
            h->sample = l->flow.count;
            CLV_TRY(clv_flow_add(&l->flow, h->place, to, (double)frame - (double)h->frame));
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
    for (size_t i = 0; i < l->head_count; ++i) /* unseen for too long: gone */
        if ((uint64_t)frame - (uint64_t)l->heads[i].frame - 1 <= l->options->memory)
            l->heads[alive++] = l->heads[i];
    l->head_count = alive;
    if (l->options->predict != CLV_PREDICT_NONE) predict(l, frame);
    if (!clv_reserve(&l->taken, &l->taken_room, count, sizeof *l->taken)) return no_memory();
    for (size_t s = 0; s < count; ++s)
        l->taken[s] = -1;
    CLV_TRY(find_edges(l, first, count));
    if (l->edge_count) CLV_TRY(solve_groups(l, count));
    if (!clv_reserve(&l->heads, &l->head_room, l->head_count + count, sizeof *l->heads))
        return no_memory();
    clv_flow_begin(&l->flow);
    for (size_t i = 0; i < l->head_count; ++i)
        l->heads[i].sample = SIZE_MAX;
    for (size_t s = 0; s < count; ++s) {
        const clv_point *p = &l->points[l->order[first + s]];
        head *h = l->taken[s] >= 0 ? &l->heads[l->taken[s]] : &l->heads[l->head_count];
        if (l->taken[s] < 0) *h = (head){ .track = l->tracks++, .frame = frame }, ++l->head_count;
        CLV_TRY(move_head(l, h, p, z_of(l, l->order[first + s]), frame));
        l->track[first + s] = h->track;
    }
    l->seen = frame;
    return CLV_OK;
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
    int64_t next = 0; /* tracks are numbered by first frame, z, y, x already */
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
    clv_assign_work *w = &l->work;
    clv_free(l->order), clv_free(l->track), clv_free(l->heads), clv_free(l->edges);
    clv_free(l->cell_head), clv_free(l->cell_next), clv_free(l->group), clv_free(l->taken);
    clv_free(l->place), clv_free(l->cost), clv_free(w->u), clv_free(w->v), clv_free(w->least);
    clv_free(w->row), clv_free(w->way), clv_free(w->used), clv_free(l->column);
    clv_flow_clear(&l->flow);
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
                        "link: search range %g given, expected more than 0 (%g to %g)",
                        o.search_range, least, most);
    if (count >= NOBODY / 2) return clv_fail(CLV_E_ARGUMENT, "link: %zu spots are too many", count);
    for (size_t i = 0; i < count; ++i)
        if (!(fabs(points[i].y) <= most && fabs(points[i].x) <= most) ||
            (o.z && !(fabs(o.z[i]) <= most)))
            return o.z ? clv_fail(CLV_E_ARGUMENT,
                                  "link: the place of spot %zu is not finite (%g, %g, %g)", i,
                                  o.z[i], points[i].y, points[i].x)
                       : clv_fail(CLV_E_ARGUMENT,
                                  "link: the place of spot %zu is not finite (%g, %g)", i,
                                  points[i].y, points[i].x);
    if (o.predict != CLV_PREDICT_NONE && o.predict != CLV_PREDICT_VELOCITY &&
        o.predict != CLV_PREDICT_DRIFT)
        return clv_fail(CLV_E_ARGUMENT, "link: predict is %d, expected one of clv_link_predict",
                        (int)o.predict);
    for (int axis = 0; axis < 3; ++axis)
        if (!(fabs(o.guess_velocity[axis]) <= most))
            return clv_fail(CLV_E_ARGUMENT, "link: guess_velocity is %g, but it has to be finite",
                            o.guess_velocity[axis]);
    linker l = { .points = points,
                 .options = &o,
                 .flow = { .guess = o.guess_velocity },
                 .watch = clv_watch_begin("link", o.progress, o.progress_user, count) };
    clv_status status = sort_points(&l, count);
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

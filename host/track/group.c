/* SPDX-License-Identifier: Apache-2.0 */
/* Uses union-find to find the groups of links that share particles or spots, and computes an exact assignment in each
 * group. Groups that are too large can be split by reducing the range, step by step, for all large groups together;
 * trackpy's adaptive search does this for each group separately. */
#include "host/track/group.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most steps of one group's assignment, some 40 s on one core. Only malicious input needs more steps. */
#define MOST_STEPS 2e10
#define NOBODY UINT32_MAX
/* Largest ratio of the cost of an unassigned spot to that of all links of a group: leaves 33 bits for the links. */
#define MOST_RATIO 0x1p20

static clv_status no_memory(void)
{
    return clv_fail(CLV_E_MEMORY, "link: out of memory");
}

clv_status clv_groups_add(clv_groups *g, uint32_t from, uint32_t to, double cost)
{
    if (g->count == NOBODY)
        return clv_fail(CLV_E_ARGUMENT,
                        "link: 2^32 or more pairs of spots in one frame and the frames before it "
                        "are within the search range %g; give a smaller search range",
                        g->range);
    if (!clv_reserve(&g->edges, &g->room, g->count + 1, sizeof *g->edges)) return no_memory();
    g->edges[g->count++] = (clv_edge){ from, to, cost };
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

/* Sorts the edges of the list that begins at `e` by head, then by spot, in ascending order; the list is already in the
 * order of spots. `end` [heads] must be zero, and is zero again afterwards. Returns the number of heads. */
static size_t sort_edges(const clv_groups *g, const uint32_t *next, uint32_t e, uint32_t *heads,
                         uint32_t *end, clv_edge *sorted)
{
    size_t n = 0, count = 0;
    for (uint32_t i = e; i != NOBODY; i = next[i])
        if (!end[g->edges[i].from]++) heads[n++] = g->edges[i].from;
    qsort(heads, n, sizeof *heads, by_number);
    for (size_t i = 0; i < n; ++i) {
        const uint32_t own = end[heads[i]];
        end[heads[i]] = (uint32_t)count;
        count += own;
    }
    for (uint32_t i = e; i != NOBODY; i = next[i])
        sorted[end[g->edges[i].from]++] = g->edges[i];
    for (size_t i = 0; i < n; ++i)
        end[heads[i]] = 0;
    return n;
}

static bool work_for(clv_groups *g, size_t n, size_t m)
{
    if (!clv_reserve(&g->cost, &g->cost_room, n * m, sizeof *g->cost)) return false;
    if (m + 1 <= g->work_room) return true;
    clv_assign_work *w = &g->work;
    const size_t room = 2 * (m + 1);
    clv_free(w->u), clv_free(w->v), clv_free(w->least), clv_free(w->row), clv_free(w->way);
    clv_free(w->used), clv_free(g->column);
    w->u = clv_alloc(room, sizeof *w->u), w->v = clv_alloc(room, sizeof *w->v);
    w->least = clv_alloc(room, sizeof *w->least), w->row = clv_alloc(room, sizeof *w->row);
    w->way = clv_alloc(room, sizeof *w->way), w->used = clv_alloc(room, 1);
    g->column = clv_alloc(room, sizeof *g->column);
    g->work_room = room;
    const bool ok = w->u && w->v && w->least && w->row && w->way && w->used && g->column;
    if (!ok) g->work_room = 0;
    return ok;
}

/* Returns the cost of a spot that is left unassigned: range^2. If this is far more than all links of the group have,
 * the digits of short links would be lost in the sums; any cost above that of all links together gives the same
 * assignment, so the function returns such a cost. */
static double cost_of_none(double range, const clv_edge *edges, size_t count, size_t spots)
{
    double longest = 0;
    for (size_t e = 0; e < count; ++e)
        longest = fmax(longest, edges[e].cost);
    const double enough = longest * (double)(spots + 1);
    return longest > 0 && range * range > MOST_RATIO * enough ? enough : range * range;
}

/* Assigns one group; `place` numbers the particles and spots within it. Rows are spots. Columns are the particles, plus
 * one column per spot that leaves the spot unassigned at the cost of none. Unassigned particles cost nothing: up to a
 * constant, their number equals the number of unassigned spots. */
static clv_status solve(clv_groups *g, double range, size_t particles, const clv_edge *edges,
                        size_t count, const uint32_t *heads, size_t n, const uint32_t *spots,
                        size_t m)
{
    const double out = cost_of_none(range, edges, count, m), never = 4 * out * (double)(n + m + 1);
    const size_t columns = n + m;
    if ((double)m * (double)m * (double)columns > MOST_STEPS)
        return clv_fail(
            CLV_E_ARGUMENT,
            "link: %zu spots of frame %lld compete for %zu particles within the search range %g of "
            "each other: their best assignment takes %.2g steps, but at most %.2g are allowed; "
            "give a smaller search range, or one that adapts (adaptive_stop)",
            m, (long long)g->frame, n, range, (double)m * (double)m * (double)columns, MOST_STEPS);
    if (!work_for(g, m, columns)) return no_memory();
    for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < columns; ++j)
            g->cost[i * columns + j] = j == n + i ? out : never;
    for (size_t e = 0; e < count; ++e)
        g->cost[g->place[particles + edges[e].to] * columns + g->place[edges[e].from]] =
            edges[e].cost;
    CLV_TRY(clv_assign(g->cost, m, columns, columns, &g->work, g->watch, g->done, g->column));
    for (size_t i = 0; i < m; ++i)
        if (g->column[i] < n && g->cost[i * columns + g->column[i]] < never)
            g->taken[spots[i]] = heads[g->column[i]];
    return CLV_OK;
}

/* Keeps the shorter links of a group that is too large for the next round, in their order. */
static clv_status put_off(clv_groups *g, double range, const uint32_t *next, uint32_t first,
                          size_t n, uint8_t *again)
{
    if (range <= g->adaptive.stop)
        return clv_fail(
            CLV_E_ARGUMENT,
            "link: in frame %lld %zu particles compete for spots within the range %g, the smallest "
            "that adaptive_stop %g allows, but groups may have at most %zu (adaptive_group); give "
            "a smaller adaptive_stop or a larger adaptive_group",
            (long long)g->frame, n, range, g->adaptive.stop, g->adaptive.largest);
    const double shorter = range * g->adaptive.step;
    for (uint32_t e = first; e != NOBODY; e = next[e])
        again[e] = g->edges[e].cost <= shorter * shorter;
    return CLV_OK;
}

/* Assigns the groups of the edges at one range. Of groups that are too large, the shorter edges remain; g->count is
 * their number. The members of a group are gathered from linked lists through all edges. */
static clv_status solve_at(clv_groups *g, double range, size_t particles, size_t spots)
{
    const size_t members = particles + spots, edges = g->count;
    const size_t words = 4 * members + edges + (edges + 3) / 4;
    if (!clv_reserve(&g->group, &g->group_room, words, sizeof *g->group) ||
        !clv_reserve(&g->place, &g->place_room, 2 * members, sizeof *g->place))
        return no_memory();
    uint32_t *group = g->group, *first = group + members, *heads = first + members,
             *end = heads + members, *next = end + members, *place = g->place,
             *found = place + members;
    uint8_t *again = (uint8_t *)(next + edges);
    memset(again, 0, edges);
    for (size_t i = 0; i < members; ++i)
        group[i] = (uint32_t)i, first[i] = NOBODY;
    memset(end, 0, members * sizeof *end);
    for (size_t e = 0; e < edges; ++e) {
        const uint32_t a = root(group, g->edges[e].from),
                       b = root(group, (uint32_t)particles + g->edges[e].to);
        if (a != b) group[CLV_MAX(a, b)] = CLV_MIN(a, b);
    }
    CLV_TRY(clv_watch_tell(g->watch, g->done));
    for (size_t e = edges; e-- > 0;) {
        const uint32_t r = root(group, g->edges[e].from);
        next[e] = first[r], first[r] = (uint32_t)e;
    }
    memset(place, 0xFF, members * sizeof *place);
    for (size_t r = 0; r < members; ++r) {
        if (first[r] == NOBODY) continue;
        const clv_edge *one = &g->edges[first[r]];
        if (next[first[r]] == NOBODY) { /* the usual case: a group of one edge */
            g->taken[one->to] = one->from;
            continue;
        }
        size_t m = 0, count = 0;
        for (uint32_t e = first[r]; e != NOBODY; e = next[e])
            ++count;
        CLV_TRY(clv_reserve(&g->own, &g->own_room, count, sizeof *g->own)
                    ? clv_watch_tell(g->watch, g->done)
                    : no_memory());
        const size_t n = sort_edges(g, next, first[r], heads, end, g->own);
        if (g->adaptive.stop > 0 && n > g->adaptive.largest) {
            CLV_TRY(put_off(g, range, next, first[r], n, again));
            continue;
        }
        for (size_t i = 0; i < n; ++i)
            place[heads[i]] = (uint32_t)i;
        for (size_t e = 0; e < count; ++e) {
            const uint32_t to = (uint32_t)particles + g->own[e].to;
            if (place[to] == NOBODY) place[to] = (uint32_t)m, found[m++] = g->own[e].to;
        }
        CLV_TRY(solve(g, range, particles, g->own, count, heads, n, found, m));
    }
    g->count = 0;
    for (size_t e = 0; e < edges; ++e)
        if (again[e]) g->edges[g->count++] = g->edges[e];
    return CLV_OK;
}

clv_status clv_groups_solve(clv_groups *g, size_t particles, size_t spots)
{
    if (!clv_reserve(&g->taken, &g->taken_room, spots, sizeof *g->taken)) return no_memory();
    for (size_t s = 0; s < spots; ++s)
        g->taken[s] = -1;
    for (double range = g->range; g->count; range *= g->adaptive.step)
        CLV_TRY(solve_at(g, range, particles, spots));
    return CLV_OK;
}

void clv_groups_clear(clv_groups *g)
{
    clv_assign_work *w = &g->work;
    clv_free(g->edges), clv_free(g->taken), clv_free(g->group), clv_free(g->place);
    clv_free(g->own), clv_free(g->cost), clv_free(g->column);
    clv_free(w->u), clv_free(w->v), clv_free(w->least), clv_free(w->row), clv_free(w->way);
    clv_free(w->used);
}

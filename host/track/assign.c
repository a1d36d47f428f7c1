/* SPDX-License-Identifier: Apache-2.0 */
/* Solves the assignment problem by shortest augmenting paths with potentials, one row after the other, in n^2 m steps.
 *
 * Kuhn 1955, Munkres 1957; the form with potentials follows Jonker and Volgenant 1987. */
#include "host/track/assign.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

enum { SMALL = 64 }; /* problems of up to this many rows do not report progress */

/* Extends the shortest path until it reaches a free column; returns that column. Rows and columns count from 1; column
 * 0 holds the row that is being assigned. */
static size_t reach_free_column(const double *cost, size_t m, size_t stride,
                                const clv_assign_work *w)
{
    size_t here = 0;
    for (size_t j = 0; j <= m; ++j)
        w->least[j] = INFINITY, w->used[j] = 0;
    do {
        const size_t row = w->row[here];
        const double *costs = cost + (row - 1) * stride;
        double step = INFINITY;
        size_t next = 0;
        w->used[here] = 1;
        for (size_t j = 1; j <= m; ++j) {
            if (w->used[j]) continue;
            const double reduced = costs[j - 1] - w->u[row] - w->v[j];
            if (reduced < w->least[j]) w->least[j] = reduced, w->way[j] = here;
            if (w->least[j] < step) step = w->least[j], next = j;
        }
        for (size_t j = 0; j <= m; ++j) {
            if (w->used[j])
                w->u[w->row[j]] += step, w->v[j] -= step;
            else
                w->least[j] -= step;
        }
        here = next;
    } while (w->row[here]);
    return here;
}

clv_status clv_assign(const double *cost, size_t n, size_t m, size_t stride,
                      const clv_assign_work *w, clv_watch *watch, size_t done, size_t *column)
{
    memset(w->u, 0, (n + 1) * sizeof *w->u);
    memset(w->v, 0, (m + 1) * sizeof *w->v);
    memset(w->row, 0, (m + 1) * sizeof *w->row);
    for (size_t i = 1; i <= n; ++i) {
        if (n > SMALL) CLV_TRY(clv_watch_tell(watch, done));
        w->row[0] = i;
        size_t at = reach_free_column(cost, m, stride, w);
        while (at) {
            const size_t before = w->way[at];
            w->row[at] = w->row[before];
            at = before;
        }
    }
    for (size_t j = 1; j <= m; ++j)
        if (w->row[j]) column[w->row[j] - 1] = j - 1;
    return CLV_OK;
}

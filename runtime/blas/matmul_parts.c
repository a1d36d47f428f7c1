/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a long product in parts, so that its progress can be reported and the caller can end it. */
#include "runtime/blas/matmul_parts.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <math.h>

enum {
    FIRST = 1 << 28, /* operations: 10 ms where a core does 27 GFLOP/s */
    TOGETHER = 96,   /* rows of a part: a multiple of this, which every kernel form splits evenly */
    ON_HOST = 12,    /* the same for the host's tiles: 96 rows may take it seconds */
};
/* seconds per part: long enough to cost little, short enough for a caller who waits */
static const double wanted_s = 0.2;

clv_matmul_parts clv_matmul_parts_of(size_t m, size_t n, size_t k, size_t batch, bool on_host,
                                     clv_watch *watch)
{
    return (clv_matmul_parts){ .m = m,
                               .batch = batch,
                               .together = on_host ? ON_HOST : TOGETHER,
                               .row_flops = 2 * (double)n * (double)CLV_MAX(k, (size_t)1),
                               .flops = FIRST,
                               .started = watch ? clv_now() : 0,
                               .watch = watch };
}

bool clv_matmul_next_part(const clv_matmul_parts *p, clv_matmul_part *part)
{
    if (p->done == p->m * p->batch) return false;
    *part = (clv_matmul_part){ p->done / p->m, p->batch, p->done % p->m, p->m };
    if (!p->watch) return true;
    const double rows = fmax(p->flops / p->row_flops, 1);
    const size_t left = p->m - part->row;
    part->matrices = 1;
    part->rows =
        rows < (double)left ? CLV_MIN(clv_round_up((size_t)rows, p->together), left) : left;
    if (part->rows == p->m)
        part->matrices =
            (size_t)fmin(fmax(rows / (double)p->m, 1), (double)(p->batch - part->matrix));
    return true;
}

clv_status clv_matmul_part_done(clv_matmul_parts *p, const clv_matmul_part *part)
{
    const size_t rows = part->matrices * part->rows;
    p->done += rows;
    if (!p->watch) return CLV_OK;
    const double now = clv_now(), took = fmax(now - p->started, 1e-6);
    const double fits = p->row_flops * (double)rows * wanted_s / took;
    p->flops = fmin(fmax(fits, p->flops / 4), p->flops * 4);
    p->started = now;
    if (p->done < p->m * p->batch) return clv_watch_tell(p->watch, p->done);
    clv_watch_end(p->watch);
    return CLV_OK;
}

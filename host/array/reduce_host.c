/* SPDX-License-Identifier: Apache-2.0 */
/* Computes reductions in plain C, in the order of cl/array/reduce.cl. */
#include "host/array/reduce.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { DENSE_LANES = 16 };
static const uint32_t none = UINT32_MAX;

size_t clv_reduce_block(const clv_reduce_shape *s)
{
    const size_t least = s->inner == 1 ? 4096 : 256;
    return CLV_MAX(least, clv_round_up(s->len / 1024 + 1, DENSE_LANES));
}

void clv_reduce_scale(size_t n, float *high, float *low)
{
    *high = (float)(1.0 / (double)n);
    *low = (float)(1.0 / (double)n - (double)*high);
}

/* The lanes of one block: sums and their rounding errors, or values and their indices. */
typedef struct lanes {
    float *a, *e;
    uint32_t *place;
} lanes;

static void add_row(const lanes *l, const float *v, const float *mean, bool one_mean, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const float d = mean ? v[i] - mean[one_mean ? 0 : i] : v[i];
        const float t = mean ? d * d : d, sum = l->a[i] + t, part = sum - l->a[i];
        l->e[i] += (l->a[i] - (sum - part)) + (t - part);
        l->a[i] = sum;
    }
}

static void rank_row(const lanes *l, const float *v, bool largest, size_t at, size_t step,
                     size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const bool better = largest ? v[i] > l->a[i] : v[i] < l->a[i];
        if (l->place[i] == none || better || (isnan(v[i]) && !isnan(l->a[i]))) {
            l->a[i] = v[i];
            l->place[i] = (uint32_t)(at + i * step);
        }
    }
}

/* The partial result of one output. */
typedef struct total {
    float a, e;
    uint32_t place;
} total;

static void join_sum(total *t, float v, float error)
{
    const float sum = t->a + v, part = sum - t->a;
    t->e += ((t->a - (sum - part)) + (v - part)) + error;
    t->a = sum;
}

static void join_rank(total *t, float v, uint32_t place, bool largest)
{
    if (place == none) return;
    const bool better = largest ? v > t->a : v < t->a;
    const bool same = v == t->a || (isnan(v) && isnan(t->a));
    if (t->place == none || (!isnan(v) && !isnan(t->a) && better) || (isnan(v) && !isnan(t->a)) ||
        (same && place < t->place)) {
        t->a = v;
        t->place = place;
    }
}

static float finish(const total *t, clv_reduction what, size_t len)
{
    float a = t->a, high, low;
    if (what == CLV_REDUCE_MIN || what == CLV_REDUCE_MAX) return a;
    if (what == CLV_REDUCE_ARGMIN || what == CLV_REDUCE_ARGMAX) return (float)t->place;
    if (isfinite(a)) a += t->e;
    if (what == CLV_REDUCE_SUM || !isfinite(a)) return a;
    clv_reduce_scale(len, &high, &low);
    a = fmaf(a, high, a * low);
    return what == CLV_REDUCE_STD && a > 0 ? sqrtf(a) : a;
}

static void outer_row(clv_reduction what, const clv_reduce_shape *s, const float *in,
                      const float *mean, const lanes *l, total *totals, float *out)
{
    const bool ranks = what >= CLV_REDUCE_MIN;
    const bool largest = what == CLV_REDUCE_MAX || what == CLV_REDUCE_ARGMAX;
    const bool dense = s->inner == 1;
    const size_t width = dense ? DENSE_LANES : s->inner, block = clv_reduce_block(s);
    for (size_t i = 0; i < s->inner; ++i)
        totals[i] = (total){ 0, 0, none };
    for (size_t first = 0; first < s->len; first += block) {
        const size_t last = CLV_MIN(s->len, first + block);
        memset(l->a, 0, width * sizeof *l->a);
        memset(l->e, 0, width * sizeof *l->e);
        memset(l->place, 0xFF, width * sizeof *l->place);
        for (size_t j = first; j < last; j += dense ? DENSE_LANES : 1) {
            const float *v = in + j * s->inner;
            const size_t count = dense ? CLV_MIN((size_t)DENSE_LANES, last - j) : width;
            if (ranks)
                rank_row(l, v, largest, j, dense, count);
            else
                add_row(l, v, mean, dense, count);
        }
        for (size_t i = 0; i < width; ++i) {
            total *t = &totals[dense ? 0 : i];
            if (ranks)
                join_rank(t, l->a[i], l->place[i], largest);
            else
                join_sum(t, l->a[i], l->e[i]);
        }
    }
    for (size_t i = 0; i < s->inner; ++i)
        out[i] = finish(&totals[i], what, s->len);
}

static clv_status pass(clv_reduction what, const clv_reduce_shape *s, const float *in,
                       const float *mean, float *out)
{
    const size_t width = CLV_MAX((size_t)DENSE_LANES, s->inner);
    lanes l = { clv_alloc(width, sizeof *l.a), clv_alloc(width, sizeof *l.e),
                clv_alloc(width, sizeof *l.place) };
    total *totals = clv_alloc(s->inner, sizeof *totals);
    const bool room = l.a && l.e && l.place && totals;
    for (size_t o = 0; room && o < s->outer; ++o)
        outer_row(what, s, in + o * s->len * s->inner, mean ? mean + o * s->inner : NULL, &l,
                  totals, out + o * s->inner);
    clv_free(l.a), clv_free(l.e), clv_free(l.place), clv_free(totals);
    return room ? CLV_OK : clv_fail(CLV_E_MEMORY, "reduce: out of memory");
}

clv_status clv_reduce_host(clv_reduction what, const clv_reduce_shape *s, const float *in,
                           float *out)
{
    if (what != CLV_REDUCE_VAR && what != CLV_REDUCE_STD) return pass(what, s, in, NULL, out);
    float *mean = clv_alloc(s->outer * s->inner, sizeof *mean);
    clv_status status = mean ? pass(CLV_REDUCE_MEAN, s, in, NULL, mean)
                             : clv_fail(CLV_E_MEMORY, "reduce: out of memory");
    if (!status) status = pass(what, s, in, mean, out);
    clv_free(mean);
    return status;
}

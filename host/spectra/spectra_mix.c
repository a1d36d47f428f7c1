/* SPDX-License-Identifier: Apache-2.0 */
/* Expresses all start templates as linear combinations ("mixtures") of a few of them, since neighbours in a library
 * differ little. The device correlates only these few with a star and combines the results. */
#include "host/spectra/spectra_tables.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum {
    WORTH = 128,   /* libraries with fewer start templates use no mixtures */
    BUCKETS = 512, /* points of a sketch */
    PARTIAL = 16   /* partial sums of a product, for vectorisation */
};
/* The largest accepted root mean square errors of a mixture, over a template's points: `tolerance` for the template
 * itself, `square_tolerance` for (template - 1)^2. */
static const double tolerance = 5e-4, square_tolerance = 1e-4;

/* Reduces (template - 1), or its square, to BUCKETS points for each template. Each of these points is a sum of random
 * points of the template with random signs; such sums approximately preserve lengths and angles. */
static void sketch(const clv_spectra_plan *plan, size_t spectrum, bool squares, float *out)
{
    const clv_spectra_grid *g = &plan->grid[spectrum];
    const clv_spectra_weights *w = &plan->tables.arm[spectrum];
    for (size_t t = 0; t < plan->library->ccf_count; ++t) {
        const float *from = plan->tables.ccf + w->ccf + t * w->ccf_pitch + g->ccf_reach;
        float *to = out + t * BUCKETS;
        uint32_t dice = 2463534242u; /* Marsaglia's xorshift: the same for all templates */
        memset(to, 0, BUCKETS * sizeof *to);
        for (size_t n = 0; n < g->ccf_points; ++n) {
            dice ^= dice << 13, dice ^= dice >> 17, dice ^= dice << 5;
            const float line = from[n] - 1, v = squares ? line * line : line;
            to[dice % BUCKETS] += dice >> 31 ? v : -v;
        }
    }
}

static double product(const float *a, const float *b)
{
    float sum[PARTIAL] = { 0 };
    for (size_t n = 0; n < BUCKETS; n += PARTIAL)
        for (size_t k = 0; k < PARTIAL; ++k)
            sum[k] += a[n + k] * b[n + k];
    double all = 0;
    for (size_t k = 0; k < PARTIAL; ++k)
        all += (double)sum[k];
    return all;
}

/* Selects rows by the Gram-Schmidt process: takes next the row that has the largest part outside the span of the
 * selected rows. Fills `chosen`, and `along` [count][most] with the component of each row in each direction. Returns
 * the number of selected rows, or 0 if more than `most` are necessary. */
static size_t choose(float *rows, size_t count, size_t most, double limit, int32_t *chosen,
                     double *along)
{
    for (size_t k = 0; k <= most; ++k) {
        size_t worst = 0;
        double largest = -1;
        for (size_t t = 0; t < count; ++t) {
            const double length = product(rows + t * BUCKETS, rows + t * BUCKETS);
            if (length > largest) largest = length, worst = t;
        }
        if (!(largest > limit)) return k;
        if (k == most) return 0;
        float direction[BUCKETS];
        const double length = sqrt(largest);
        for (size_t n = 0; n < BUCKETS; ++n)
            direction[n] = (float)((double)rows[worst * BUCKETS + n] / length);
        chosen[k] = (int32_t)worst;
        for (size_t t = 0; t < count; ++t) {
            float *r = rows + t * BUCKETS;
            const float part = (float)product(r, direction);
            along[t * most + k] = (double)part;
            for (size_t n = 0; n < BUCKETS; ++n)
                r[n] -= part * direction[n];
        }
    }
    return 0;
}

/* Computes the coefficients ("shares") with which the chosen rows combine to each row. It solves the triangular system
 * along = shares . along_chosen, where along_chosen holds the rows of `along` that belong to the chosen rows. */
static void share_out(const double *along, size_t count, size_t most, const int32_t *chosen,
                      size_t rank, double factor, float *shares, size_t pitch)
{
    for (size_t t = 0; t < count; ++t) {
        double x[CLV_SPECTRA_FEW];
        for (size_t k = rank; k-- > 0;) {
            x[k] = along[t * most + k];
            for (size_t j = k + 1; j < rank; ++j)
                x[k] -= x[j] * along[(size_t)chosen[j] * most + k];
            x[k] /= along[(size_t)chosen[k] * most + k];
        }
        for (size_t k = 0; k < rank; ++k)
            shares[t * pitch + k] = (float)(factor * x[k]);
    }
}

static void mix_arm(clv_spectra_plan *plan, size_t spectrum, float *rows, double *along)
{
    enum { MOST = CLV_SPECTRA_FEW };
    const size_t count = plan->library->ccf_count;
    const double points = (double)plan->grid[spectrum].ccf_points;
    clv_spectra_weights *w = &plan->tables.arm[spectrum];
    int32_t *chosen = plan->tables.few + w->few, squares[MOST];
    double *of_squares = along + count * MOST;
    sketch(plan, spectrum, false, rows);
    w->crosses = choose(rows, count, MOST, tolerance * tolerance * points, chosen, along);
    sketch(plan, spectrum, true, rows);
    w->rows = w->crosses ? choose(rows, count, MOST, square_tolerance * square_tolerance * points,
                                  squares, of_squares)
                         : 0;
    if (!w->rows) return;
    memcpy(chosen + w->crosses, squares, w->rows * sizeof *squares);
    float *shares = plan->tables.shares + w->share;
    const size_t both = w->crosses + w->rows;
    share_out(along, count, MOST, chosen, w->crosses, -2, shares, both);
    share_out(of_squares, count, MOST, squares, w->rows, 1, shares + w->crosses, both);
    w->rows = both;
}

clv_status clv_plan_mix(clv_spectra_plan *plan)
{
    const size_t count = plan->library->ccf_count, spectra = plan->stars.spectra;
    if (count < WORTH) return CLV_OK;
    float *rows = clv_alloc(count * BUCKETS, sizeof *rows);
    double *along = clv_alloc(2 * count * CLV_SPECTRA_FEW, sizeof *along);
    plan->tables.few_count = spectra * 2 * CLV_SPECTRA_FEW;
    plan->tables.share_count = plan->tables.few_count * count;
    plan->tables.few = clv_zalloc(plan->tables.few_count, sizeof *plan->tables.few);
    plan->tables.shares = clv_zalloc(plan->tables.share_count, sizeof *plan->tables.shares);
    const bool ok = rows && along && plan->tables.few && plan->tables.shares;
    for (size_t i = 0; i < spectra && ok; ++i) {
        const size_t lead = clv_spectra_lead(plan, i);
        clv_spectra_weights *w = &plan->tables.arm[i];
        if (lead == SIZE_MAX) continue;
        w->few = lead * 2 * CLV_SPECTRA_FEW, w->share = w->few * count;
        if (lead == i)
            mix_arm(plan, i, rows, along);
        else
            w->crosses = plan->tables.arm[lead].crosses, w->rows = plan->tables.arm[lead].rows;
        plan->sizes.few = CLV_MAX(plan->sizes.few, w->rows);
    }
    clv_free(rows), clv_free(along);
    return ok ? CLV_OK
              : clv_fail(CLV_E_MEMORY,
                         "specfit: not enough memory for mixtures of %zu start templates", count);
}

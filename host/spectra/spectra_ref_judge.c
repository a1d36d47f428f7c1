/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates a point of a fit in plain C and float64: computes the templates at the pixels, the projected residual and
 * its slopes. */
#include "host/spectra/spectra_ref.h"

#include "host/spectra/spectra_pass.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS, TERMS = CLV_SPECTRA_MAX_TERMS };

void clv_ref_work_clear(clv_ref_work *w)
{
    clv_free(w->network), clv_free(w->wave), clv_free(w->raw), clv_free(w->turned);
    clv_free(w->bend), clv_free(w->sweep), clv_free(w->blurred), clv_free(w->rows);
    for (int i = 0; i < CLV_REF_LANES; ++i)
        clv_free(w->lane[i]);
    *w = (clv_ref_work){ 0 }; /* so that a second call does no harm */
}

clv_status clv_ref_work_create(const clv_spectra_plan *plan, clv_ref_work *w)
{
    const size_t t = plan->sizes.longest_template, p = plan->sizes.all_pixels;
    *w = (clv_ref_work){ 0 };
    w->network = clv_alloc(2 * CLV_MAX(t, plan->sizes.widest), sizeof(double));
    w->wave = clv_alloc(t, sizeof(double)), w->raw = clv_alloc(t, sizeof(double));
    w->turned = clv_alloc(t, sizeof(double)), w->bend = clv_alloc(t, sizeof(double));
    w->sweep = clv_alloc(t, sizeof(double)), w->blurred = clv_alloc(p, sizeof(double));
    w->rows = clv_alloc(p * CLV_MAX(plan->sizes.diagonals, (size_t)1), sizeof(double));
    bool ok = w->network && w->wave && w->raw && w->turned && w->bend && w->sweep && w->blurred &&
              w->rows;
    for (int i = 0; i < CLV_REF_LANES; ++i)
        ok &= (w->lane[i] = clv_zalloc(p, sizeof(double))) != NULL;
    if (ok) return CLV_OK;
    clv_ref_work_clear(w);
    return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for the reference");
}

static double step_at(const clv_spectra_plan *plan, const double x[N], int k)
{
    return x[k] + plan->box.step[k] > plan->box.high[k] ? -plan->box.step[k] : plan->box.step[k];
}

void clv_ref_lane(const clv_spectra_plan *plan, size_t i, const double home[N], const double x[N],
                  bool same, clv_ref_work *w, double *out)
{
    const clv_spectra_grid *g = &plan->grid[i];
    const clv_spectra_arm *arm = &plan->library->arms[g->arm];
    if (!same) {
        if (clv_is_grid(arm))
            (void)clv_grid_template(arm, home + 2, x + 2, w->raw);
        else
            clv_spectra_network(arm, x + 2, w->network, w->raw);
        const double scale = exp(-g->log_scale);
        for (size_t n = 0; n < arm->points && g->log_scale != 0; ++n)
            w->raw[n] *= scale;
        for (size_t n = 0; n < arm->points; ++n)
            w->wave[n] = arm->first * exp(g->dln * (double)n);
        clv_rotate(w->raw, arm->points, x[1] / CLV_LIGHT_KMS / g->dln, w->turned);
        clv_spline_prepare(w->wave, w->turned, arm->points, w->bend, w->sweep);
    }
    const double b = x[0] / CLV_LIGHT_KMS, factor = sqrt((1 - b) / (1 + b));
    double *to = plan->sizes.diagonals ? w->blurred : out;
    for (size_t k = 0; k < g->pixels; ++k)
        to[k] = clv_spline_at(w->wave, w->turned, w->bend, arm->points, g->wavelength[k] * factor);
    if (plan->sizes.diagonals)
        clv_resolution_apply(w->rows + g->first * plan->sizes.diagonals, plan->sizes.diagonals,
                             g->pixels, w->blurred, out);
}

/* Computes the Cholesky factor of a matrix in its lower triangle; replaces tiny pivots by positive ones. Returns true
 * if it replaced any. */
static bool factor(double m[TERMS][TERMS], unsigned n, double *log_det)
{
    bool bad = false;
    for (unsigned i = 0; i < n; ++i)
        for (unsigned j = 0; j <= i; ++j) {
            double v = m[i][j];
            for (unsigned k = 0; k < j; ++k)
                v -= m[i][k] * m[j][k];
            if (j < i) {
                m[i][j] = v / m[j][j];
                continue;
            }
            const double least = m[i][i] * 1e-13;
            if (!(v > least)) v = least > 0 ? least : 1, bad = true;
            m[i][i] = sqrt(v);
            *log_det += 2 * log(m[i][i]);
        }
    return bad;
}

static void forward(double m[TERMS][TERMS], unsigned n, double *x)
{
    for (unsigned i = 0; i < n; ++i) {
        for (unsigned k = 0; k < i; ++k)
            x[i] -= m[i][k] * x[k];
        x[i] /= m[i][i];
    }
}

/* Adds a spectrum to the evaluation of a point; `model` receives the model spectrum there, unless `model` is NULL. */
static void judge_spectrum(const clv_spectra_plan *plan, size_t i, const clv_star_data *d,
                           const double step[N], clv_ref_work *w, clv_ref_judged *now, float *model)
{
    const clv_spectra_grid *g = &plan->grid[i];
    const unsigned n = plan->options.terms;
    double m[TERMS][TERMS] = { { 0 } }, a[TERMS] = { 0 }, y[TERMS], cross[N][TERMS] = { { 0 } };
    double normal[N][N] = { { 0 } }, slope[N] = { 0 }, det[N] = { 0 }, chi = 0, good = 0;
    for (size_t k = 0; k < g->pixels; ++k) {
        const double *p = g->basis + k * n, s = w->lane[0][k] / d->sigma[g->first + k];
        for (unsigned r = 0; r < n; ++r) {
            a[r] += p[r] * s * d->flux[g->first + k] / d->sigma[g->first + k];
            for (unsigned c = 0; c <= r; ++c)
                m[r][c] += p[r] * p[c] * s * s;
        }
    }
    if (!(m[0][0] > 0)) return;
    now->bad |= factor(m, n, &now->log_det);
    forward(m, n, a);
    for (unsigned r = n; r-- > 0;) {
        for (unsigned k = r + 1; k < n; ++k)
            a[r] -= m[k][r] * a[k];
        a[r] /= m[r][r];
    }
    for (size_t k = 0; k < g->pixels; ++k) {
        const double *p = g->basis + k * n, inverse = 1 / d->sigma[g->first + k];
        double continuum = 0, leverage = 0, change[N];
        for (unsigned r = 0; r < n; ++r)
            continuum += a[r] * p[r], y[r] = p[r];
        forward(m, n, y);
        for (unsigned r = 0; r < n; ++r)
            leverage += y[r] * y[r];
        const double s = w->lane[0][k] * inverse;
        const double r = d->flux[g->first + k] * inverse - continuum * s;
        for (int u = 0; u < N; ++u) {
            change[u] = (w->lane[u ? u : 6][k] - w->lane[0][k]) / step[u] * inverse;
            det[u] += 2 * s * leverage * change[u];
            change[u] *= continuum;
            slope[u] += r * change[u];
            for (int v = 0; v <= u; ++v)
                normal[u][v] += change[u] * change[v];
            for (unsigned q = 0; q < n; ++q)
                cross[u][q] += p[q] * s * change[u];
        }
        chi += r * r;
        if (!d->bad[g->first + k]) good += r * r;
        if (model) model[g->first + k] = (float)(continuum * w->lane[0][k]);
    }
    for (int u = 0; u < N; ++u) {
        forward(m, n, cross[u]);
        now->slope[u] += slope[u];
        now->det[u] += det[u];
        for (int v = 0; v <= u; ++v) {
            for (unsigned q = 0; q < n; ++q)
                normal[u][v] -= cross[u][q] * cross[v][q];
            now->normal[u][v] += normal[u][v];
        }
    }
    now->chi[i] = good;
    now->value += chi;
}

void clv_ref_add_prior(const float prior[CLV_SPECTRA_PRIOR], const double x[N], clv_ref_judged *now)
{
    for (int a = 0; a < N; ++a) {
        const double weight = (double)prior[6 + a], off = x[a] - (double)prior[a];
        now->prior += weight * off * off;
        now->slope[a] -= weight * off;
        now->normal[a][a] += weight;
    }
}

void clv_ref_judge(const clv_spectra_plan *plan, const clv_star_data *d, const double x[N],
                   clv_ref_work *w, clv_ref_judged *now, float *model)
{
    double step[N];
    *now = (clv_ref_judged){ 0 };
    for (int k = 0; k < N; ++k)
        step[k] = step_at(plan, x, k);
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        if (!plan->grid[i].wavelength || !d->facts.present[i]) continue;
        for (int lane = 0; lane < CLV_REF_LANES; ++lane) {
            static const int order[CLV_REF_LANES] = {
                0, 6, 1, 2, 3, 4, 5
            }; /* a change of velocity reuses the spline */
            double at[N];
            const int unknown = order[lane] == 6 ? 0 : order[lane];
            memcpy(at, x, sizeof at);
            if (order[lane]) at[unknown] += step[unknown];
            clv_ref_lane(plan, i, x, at, order[lane] == 6, w, w->lane[order[lane]]);
        }
        judge_spectrum(plan, i, d, step, w, now, model);
    }
    now->penalty += clv_spectra_penalty(plan, x + 2);
    now->value += now->log_det;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fits stars in plain C and float64, as the reference for the kernels: start values, projected residual,
 * Levenberg-Marquardt steps. */
#include "host/spectra/spectra_ref.h"

#include "host/spectra/spectra_pass.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { N = CLV_SPECTRA_UNKNOWNS, TERMS = CLV_SPECTRA_MAX_TERMS };

static const double least_damping = 1e-6;

/* Solves (H + damping diag H) step = slope for the unknowns that are not held. */
static bool damped_step(double h[N][N], const double *slope, double damping, int held, double *step)
{
    double l[N][N];
    for (int a = 0; a < N; ++a)
        for (int b = 0; b <= a; ++b) {
            const bool off = held >> a & 1 || held >> b & 1;
            double v = off ? a == b : h[a][b] / sqrt(h[a][a] * h[b][b]);
            if (a == b) v *= 1 + damping;
            for (int k = 0; k < b; ++k)
                v -= l[a][k] * l[b][k];
            if (a == b && !(v > 1e-12)) return false;
            l[a][b] = a == b ? sqrt(v) : v / l[b][b];
        }
    for (int a = 0; a < N; ++a) {
        step[a] = held >> a & 1 ? 0 : slope[a] / sqrt(h[a][a]);
        for (int k = 0; k < a; ++k)
            step[a] -= l[a][k] * step[k];
        step[a] /= l[a][a];
    }
    for (int a = N; a-- > 0;) {
        for (int k = a + 1; k < N; ++k)
            step[a] -= l[k][a] * step[k];
        step[a] /= l[a][a];
    }
    for (int a = 0; a < N; ++a)
        step[a] /= sqrt(h[a][a]);
    return true;
}

/* The last step that the fit tried, and the change of the slope along this step. */
typedef struct secant {
    double step[N], change[N]; /* change: slope before minus slope after; 0: no step yet */
} secant;

/* Corrects the Hessian by a BFGS update with Powell's damping. The Gauss-Newton Hessian omits the curvature of the
 * model, which is large at low S/N; the last step measures this curvature along one direction. */
static void bend(double h[N][N], const secant *last)
{
    double hs[N], shs = 0, ys = 0, y[N];
    for (int a = 0; a < N; ++a) {
        hs[a] = 0;
        for (int b = 0; b < N; ++b)
            hs[a] += (a >= b ? h[a][b] : h[b][a]) * last->step[b];
        shs += hs[a] * last->step[a], ys += last->change[a] * last->step[a];
    }
    if (!(shs > (double)CLV_SPECTRA_BENDS)) return;
    const double keep = ys >= 0.2 * shs ? 1 : 0.8 * shs / (shs - ys);
    ys = 0;
    for (int a = 0; a < N; ++a) {
        y[a] = keep * last->change[a] + (1 - keep) * hs[a];
        ys += y[a] * last->step[a];
    }
    for (int a = 0; a < N; ++a)
        for (int b = 0; b <= a; ++b)
            h[a][b] += y[a] * y[b] / ys - hs[a] * hs[b] / shs;
}

/* The faces of the grid cell that contains the best point, as the kernels store them in CLV_S_FACE and CLV_S_FENCE. */
typedef struct fence {
    double low[N], high[N]; /* infinite without a grid */
    bool down[N], up[N];    /* whether there is a cell beyond the face */
    int stage;
} fence;

static void set_fence(const clv_spectra_plan *plan, const double x[N], fence *f)
{
    for (int a = 0; a < N; ++a)
        f->low[a] = -INFINITY, f->high[a] = INFINITY;
    clv_spectra_cell(plan, x + 2, f->low + 2, f->high + 2);
}

static bool has_crossed(const fence *f, const double x[N])
{
    bool crossed = false;
    for (int a = 2; a < N; ++a)
        crossed = crossed || x[a] < f->low[a] || x[a] > f->high[a];
    return crossed;
}

/* Returns the coordinate `next` of a step's end, or a face's coordinate if only a rounding error separates the two. */
static double on_face(double next, double step, double low, double high)
{
    const double near = 1e-5 * (high - low);
    return step > 0 && high - next < near ? high : step < 0 && next - low < near ? low : next;
}

/* Records in `f` whether the step moves along faces, which hold some of the unknowns `held`. If the expected gain is
 * small, sets `next` to the point just beyond these faces, once for each best point. */
static void fence_along(fence *f, const double x[N], int held, double gain, double next[N])
{
    const bool peeks = f->stage < CLV_FENCE_PEEKS && !(gain * CLV_SPECTRA_LAST > 1);
    bool along = false;
    for (int a = 2; a < N; ++a) {
        const bool down = x[a] <= f->low[a] && f->down[a], up = x[a] >= f->high[a] && f->up[a];
        const double by = (f->high[a] - f->low[a]) / CLV_GRID_PEEK;
        if (!(held >> a & 1) || !(down || up)) continue;
        if (!along && peeks) memcpy(next, x, N * sizeof *next);
        if (peeks) next[a] = down ? f->low[a] - by : f->high[a] + by;
        along = true;
    }
    if (f->stage < CLV_FENCE_PEEKS)
        f->stage = !along ? CLV_FENCE_UP : peeks ? CLV_FENCE_PEEKS : CLV_FENCE_ALONG;
}

/* Computes the next point from `x`; returns false if a Gauss-Newton step no longer promises a gain. Sets *promise to
 * the decrease of L2 expected from the damped step, and *gain to the scalar product of the slope and the whole step
 * (CLV_S_GAIN). */
static bool next_point(const clv_spectra_plan *plan, const clv_ref_judged *best, const double x[N],
                       const secant *last, int fixed, fence *f, double *damping, double next[N],
                       double *promise, double *gain)
{
    const bool fenced = f->stage > CLV_FENCE_NONE;
    double h[N][N], plain[N][N], slope[N], step[N] = { 0 }, whole[N] = { 0 }, shrink = 1;
    double low[N], high[N]; /* of the box, and of the cells around x */
    int held = fixed;
    memcpy(low, plan->box.low, sizeof low), memcpy(high, plan->box.high, sizeof high);
    clv_spectra_walls(plan, x + 2, low + 2, high + 2);
    for (int a = 0; a < N; ++a) {
        f->down[a] = f->low[a] > low[a], f->up[a] = f->high[a] < high[a];
        if (fenced) low[a] = fmax(low[a], f->low[a]), high[a] = fmin(high[a], f->high[a]);
        low[a] = fmin(low[a], x[a]), high[a] = fmax(high[a], x[a]);
        slope[a] = best->slope[a] - 0.5 * best->det[a];
        for (int b = 0; b <= a; ++b)
            h[a][b] =
                best->normal[a][b] + best->det[a] * best->det[b] / (4 * fmax(best->log_det, 1));
        h[a][a] = fmax(h[a][a], 1e-30);
    }
    memcpy(plain, h, sizeof h);
    bend(h, last);
    for (int round = 0; round < N; ++round) {
        int more = held;
        while (!damped_step(h, slope, *damping, held, step))
            if ((*damping = fmax(*damping * 10, 1e-4)) > 1e8) return false;
        for (int a = 0; a < N; ++a)
            if ((x[a] <= low[a] && step[a] < 0) || (x[a] >= high[a] && step[a] > 0)) more |= 1 << a;
        if (more == held) break;
        held = more;
    }
    if (!damped_step(plain, slope, least_damping, held, whole)) memcpy(whole, step, sizeof whole);
    for (int a = 0; a < N; ++a) {
        const double far = fabs(step[a]), room = step[a] > 0 ? high[a] - x[a] : x[a] - low[a];
        shrink = fmin(shrink, plan->box.longest[a] / fmax(far, 1e-20));
        if (fenced && a > 1 && far * shrink > room)
            shrink = room / far; /* the step ends at the first face */
    }
    *promise = *gain = 0;
    for (int a = 0; a < N; ++a) {
        if (!(held >> a & 1)) *gain += slope[a] * whole[a];
        next[a] = fmin(fmax(x[a] + shrink * step[a], low[a]), high[a]);
        if (fenced && a > 1) next[a] = on_face(next[a], step[a], low[a], high[a]);
    }
    for (int a = 0; a < N; ++a)
        for (int b = 0; b < N; ++b) {
            const double da = next[a] - x[a], db = next[b] - x[b];
            if (a == b) *promise += 2 * slope[a] * da;
            *promise -= da * db * (a >= b ? h[a][b] : h[b][a]);
        }
    if (fenced) fence_along(f, x, held & ~fixed, *gain, next);
    return *gain * CLV_SPECTRA_GAIN > 1;
}

static int descend(const clv_spectra_plan *plan, const clv_star_data *d,
                   const float prior[CLV_SPECTRA_PRIOR], double x[N], clv_ref_work *w,
                   clv_ref_judged *best, int *status)
{
    double next[N], damping = 1e-3, promise = 0, gain = 0;
    const int most = clv_spectra_most_rounds(plan);
    int rounds = 1;
    clv_ref_judged now;
    secant last = { { 0 }, { 0 } };
    fence f = { .stage = CLV_FENCE_NONE };
    set_fence(plan, x, &f);
    clv_ref_judge(plan, d, x, w, best, NULL);
    clv_ref_add_prior(prior, x, best);
    *status = isfinite(best->value) ? 1 : 3;
    while (*status == 1 && rounds < most) {
        const bool goes_on = next_point(plan, best, x, &last, (int)prior[12], &f, &damping, next,
                                        &promise, &gain),
                   peeks = f.stage == CLV_FENCE_PEEKS, crosses = has_crossed(&f, next);
        if (!goes_on && !peeks) break;
        clv_ref_judge(plan, d, next, w, &now, NULL);
        clv_ref_add_prior(prior, next, &now);
        ++rounds;
        for (int a = 0; a < N; ++a) {
            last.step[a] = crosses ? 0 : next[a] - x[a]; /* the slope jumps at a face */
            last.change[a] =
                best->slope[a] - 0.5 * best->det[a] - (now.slope[a] - 0.5 * now.det[a]);
        }
        const double drop =
            best->value + best->penalty + best->prior - now.value - now.penalty - now.prior;
        const bool ends = !peeks && !crosses && gain * CLV_SPECTRA_LAST < 1;
        if (isfinite(now.value) && (drop >= 0 || ends)) {
            const double kept = 2 * drop / fmax(promise, 1e-30) - 1;
            *best = now;
            memcpy(x, next, sizeof now.slope);
            set_fence(plan, x, &f);
            f.stage = f.stage == CLV_FENCE_ALONG ? CLV_FENCE_UP : CLV_FENCE_NONE;
            if (!peeks)
                damping = fmax(damping * fmin(fmax(1 - kept * kept * kept, 0.1), 2), least_damping);
        } else if (peeks || (crosses && f.stage == CLV_FENCE_NONE)) {
            f.stage = peeks ? CLV_FENCE_PEEKED : CLV_FENCE_UP;
        } else if ((damping = fmax(damping * 8, 1e-3)) > 1e6 ||
                   (!crosses && gain < (double)CLV_SPECTRA_BLURRED)) {
            break;
        }
        if (ends) break;
    }
    if (*status == 1 && rounds < most) *status = 2;
    return rounds;
}

/* Finds the lowest chi-square of a start template on the grid of velocities. */
static double find_peak(const clv_spectra_plan *plan, const clv_star_data *d, size_t template,
                        double *chi, double *velocity)
{
    const double from = plan->box.low[0],
                 by = (plan->box.high[0] - from) / (double)(plan->sizes.velocities - 1);
    double *sum = chi, *lag = chi + plan->sizes.velocities;
    memset(sum, 0, plan->sizes.velocities * sizeof *sum);
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        if (!g->wavelength || !d->facts.present[i]) continue;
        const float *m =
            plan->tables.ccf + plan->tables.arm[i].ccf + template * plan->tables.arm[i].ccf_pitch;
        const float *q = d->ccf + 2 * i * plan->sizes.ccf_room, *v = q + plan->sizes.ccf_room;
        for (size_t l = 0; l <= 2 * g->ccf_reach; ++l) {
            lag[l] = 0;
            for (size_t n = 0; n < g->ccf_points; ++n) {
                const double x = (double)m[l + n];
                lag[l] += ((double)v[n] * x - 2 * (double)q[n]) * x;
            }
        }
        for (size_t k = 0; k < plan->sizes.velocities; ++k) {
            const double x = (from + by * (double)k) / g->ccf_step, f = x - floor(x);
            const size_t at = (size_t)((double)g->ccf_reach - floor(x));
            sum[k] += lag[at] * (1 - f) + (at ? lag[at - 1] * f : 0);
        }
    }
    size_t low = 0;
    for (size_t k = 1; k < plan->sizes.velocities; ++k)
        if (sum[k] < sum[low]) low = k;
    *velocity = from + by * (double)low;
    if (!low || low + 1 == plan->sizes.velocities) return sum[low];
    const double bend = sum[low - 1] - 2 * sum[low] + sum[low + 1];
    if (bend > 0) *velocity += by * 0.5 * (sum[low - 1] - sum[low + 1]) / bend;
    return sum[low];
}

/* Finds the lowest minima of the start templates, as list_peaks of cl/spectra/ccf.clh does. `room` is scratch: two
 * numbers for each template, then the values of one template. */
static void find_start(const clv_spectra_plan *plan, const clv_star_data *d, double *room,
                       float found[CLV_SPECTRA_FOUND_BY_STAR])
{
    const size_t count = plan->library->ccf_count;
    double *least = room, *where = room + count;
    for (size_t t = 0; t < count; ++t)
        least[t] = find_peak(plan, d, t, room + 2 * count, &where[t]);
    double lowest = 0;
    for (size_t k = 0; k < CLV_SPECTRA_PEAKS; ++k) {
        float *peak = found + CLV_SPECTRA_PEAK * k;
        size_t at = SIZE_MAX;
        for (size_t t = 0; t < count; ++t) {
            bool apart = at == SIZE_MAX || least[t] < least[at];
            for (size_t j = 0; j < k; ++j)
                apart = apart &&
                        fabs(where[t] - (double)found[CLV_SPECTRA_PEAK * j]) >= CLV_SPECTRA_APART;
            if (apart) at = t;
        }
        const bool none = at == SIZE_MAX;
        if (!k) lowest = least[at];
        peak[0] = none ? CLV_SPECTRA_NO_PEAK : (float)where[at];
        peak[1] = none ? 0 : (float)at;
        peak[2] = none ? CLV_SPECTRA_NO_PEAK : (float)(least[at] - lowest);
    }
}

/* Computes chi-square + log det M at `count` velocities; the other unknowns are those of x. */
static void scan_values(const clv_spectra_plan *plan, const clv_star_data *d, const double x[N],
                        clv_ref_work *w, double from, double step, size_t count, double *values)
{
    double at[N], a[TERMS], value;
    memcpy(at, x, sizeof at);
    memset(values, 0, count * sizeof *values);
    for (size_t i = 0; i < plan->stars.spectra; ++i) {
        const clv_spectra_grid *g = &plan->grid[i];
        if (!g->wavelength || !d->facts.present[i]) continue;
        for (size_t k = 0; k < count; ++k) {
            at[0] = from + step * (double)k;
            clv_ref_lane(plan, i, at, at, k > 0, w, w->lane[1]);
            if (clv_spectra_value(g->basis, plan->options.terms, g->pixels, w->lane[1],
                                  d->flux + g->first, d->sigma + g->first, a, &value))
                values[k] += value;
        }
    }
}

/* Scans around the velocity of `x` and computes the moments, on the same sequence of grids as cl/spectra/scan.clh. */
static void scan_around(const clv_spectra_plan *plan, const clv_star_data *d, const double x[N],
                        double curvature, clv_ref_work *w, float *s)
{
    enum { COUNT = CLV_SPECTRA_SCAN, TURNS = 3 };
    static const double wanted = 2.5; /* steps per expected error */
    double values[COUNT], speeds[COUNT], moments[4];
    double error = curvature > 0 ? 1 / sqrt(curvature) : INFINITY;
    for (int turn = 1; turn <= TURNS; ++turn) {
        const double most = (plan->box.high[0] - plan->box.low[0]) / COUNT;
        const double step = fmin(fmax(error / wanted, 1e-4), most);
        const double from = x[0] - step * (COUNT / 2);
        size_t first = 0, last = COUNT - 1, low;
        for (size_t k = 0; k < COUNT; ++k)
            speeds[k] = from + step * (double)k;
        while (first < last && speeds[first] < plan->box.low[0])
            ++first;
        while (last > first && speeds[last] > plan->box.high[0])
            --last;
        scan_values(plan, d, x, w, from, step, COUNT, values);
        for (size_t k = 0; k < COUNT; ++k) {
            const double off = from + step * (double)k - (double)s[CLV_S_PRIOR];
            values[k] += (double)s[CLV_S_PRIOR + 6] * off * off;
        }
        clv_velocity_moments(speeds + first, values + first, last - first + 1, moments);
        for (size_t k = low = first; k <= last; ++k)
            if (values[k] < values[low]) low = k;
        for (int i = 0; i < 4; ++i)
            s[CLV_S_SCAN + i] = (float)moments[i];
        s[CLV_S_SCAN_TURN] = (float)-turn;
        const double ends = exp(-0.5 * (fmin(values[0], values[COUNT - 1]) - values[low]));
        const bool narrow = ends > 1e-4 && last - first + 1 == COUNT;
        const bool coarse = moments[1] < (wanted - 1) * step && step > 1e-3;
        if (!isfinite(moments[1]) || !(narrow || coarse)) break;
        error = narrow ? 2 * moments[1] : moments[1];
    }
}

static void write_state(const clv_ref_judged *j, const double x[N], int status, int rounds,
                        float *s)
{
    for (int a = 0, e = 0; a < N; ++a) {
        s[CLV_S_BEST + a] = (float)x[a];
        for (int b = 0; b <= a; ++b, ++e)
            s[CLV_S_NORMAL + e] = (float)j->normal[a][b];
    }
    s[CLV_S_VALUE] = (float)j->value;
    s[CLV_S_LOST] = (float)(j->value - (double)s[CLV_S_VALUE]);
    s[CLV_S_STATUS] = (float)status, s[CLV_S_ROUNDS] = (float)rounds;
    s[CLV_S_PENALTY] = (float)j->penalty, s[CLV_S_PRIOR_VALUE] = (float)j->prior;
    s[CLV_S_LOGDET] = (float)j->log_det, s[CLV_S_FLAGS] = (float)j->bad;
    for (size_t i = 0; i < CLV_SPECTRA_MAX_SPECTRA; ++i)
        s[CLV_S_CHI_OF + i] = (float)j->chi[i];
}

/* Scans along velocity around the star's best start. */
static void scan_best(const clv_spectra_plan *plan, const clv_star_data *d, clv_ref_work *w,
                      float *states)
{
    float *best = NULL;
    for (size_t k = 0; k < plan->options.starts; ++k) {
        float *s = states + k * CLV_SPECTRA_STATE;
        const bool good = s[CLV_S_STATUS] > 0.5f && s[CLV_S_STATUS] < 2.5f;
        const float height = s[CLV_S_VALUE] + s[CLV_S_PRIOR_VALUE];
        if (good && (!best || height < best[CLV_S_VALUE] + best[CLV_S_PRIOR_VALUE])) best = s;
    }
    if (!best) return;
    double x[N];
    for (int a = 0; a < N; ++a)
        x[a] = (double)best[CLV_S_BEST + a];
    scan_around(plan, d, x, (double)best[CLV_S_NORMAL], w, best);
}

/* Computes the requested values along velocity in the kernels' format: each value rounded to float32, and its rounding
 * error. */
static clv_status scan_given(const clv_spectra_plan *plan, size_t star, const clv_star_data *d,
                             clv_ref_work *w, float *out)
{
    const size_t n = plan->wish.scan_count, pitch = clv_scan_velocities(plan);
    double *values = clv_alloc(n, sizeof *values);
    if (!values) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for a scan");
    scan_values(plan, d, plan->wish.points + star * N, w, (double)plan->wish.scan_from,
                (double)plan->wish.scan_step, n, values);
    for (size_t k = 0; k < n; ++k) {
        out[k] = (float)values[k];
        out[pitch + k] = (float)(values[k] - (double)out[k]);
    }
    clv_free(values);
    return CLV_OK;
}

static void fit_star(clv_spectra_plan *plan, size_t star, const clv_star_data *d, clv_ref_work *w,
                     double *chi, float *states, float *found, float *models)
{
    static const double vsini[4] = { 20, 60, 5, 150 }, alpha[4] = { 0.2, 0, 0.4, 0.1 };
    const double *points = plan->wish.points, *begin = plan->wish.begin;
    float prior[CLV_SPECTRA_PRIOR] = { 0 };
    if (points) points += (size_t)(star * plan->options.starts) * N;
    if (!points) clv_star_prior_numbers(plan, star, prior);
    const int fixed = (int)prior[12];
    if (!points && !begin) find_start(plan, d, chi, found);
    const double velocity = (double)found[0];
    const size_t model = (size_t)found[1];
    for (unsigned start = 0; start < plan->options.starts; ++start) {
        double q[CLV_SPECTRA_PARAMETERS];
        const bool own = clv_grid_start(plan->library, model, q);
        double x[N] = {
            velocity, vsini[start & 3], q[0], q[1], q[2], own ? q[3] : alpha[start & 3]
        };
        clv_ref_judged best;
        int status = 2, rounds = 0;
        if (start & 4) x[2] *= 1.05, x[3] += 0.5;
        for (int a = 0; a < N; ++a) {
            const bool held = fixed >> a & 1;
            const double margin = held ? 0 : 1e-3 * (plan->box.high[a] - plan->box.low[a]);
            if (held || fabs(x[a] - (double)prior[a]) * sqrt((double)prior[6 + a]) > 3)
                x[a] = (double)prior[a];
            x[a] = fmin(fmax(x[a], plan->box.low[a] + margin), plan->box.high[a] - margin);
        }
        if (points) memcpy(x, points + start * N, sizeof x);
        if (begin) memcpy(x, begin + (star * plan->options.starts + start) * N, sizeof x);
        if (isnan(x[0])) {
            states[start * CLV_SPECTRA_STATE + CLV_S_STATUS] = 4;
            continue;
        }
        if (!points) rounds = descend(plan, d, prior, x, w, &best, &status);
        for (int a = 0; a < N && !points; ++a) /* as float32 it must not lie beyond a limit */
            x[a] = fmin(fmax(x[a], (double)plan->box.numbers[a]), (double)plan->box.numbers[6 + a]);
        if (points && !models) clv_ref_judge(plan, d, x, w, &best, NULL);
        if (models) {
            clv_ref_judge(plan, d, x, w, &best, models + start * plan->sizes.all_pixels);
            clv_ref_add_prior(prior, x, &best);
        }
        memcpy(states + start * CLV_SPECTRA_STATE + CLV_S_PRIOR, prior, 12 * sizeof *prior);
        states[start * CLV_SPECTRA_STATE + CLV_S_FIXED] = prior[12];
        write_state(&best, x, status, rounds, states + start * CLV_SPECTRA_STATE);
    }
    if (plan->wish.scans) scan_best(plan, d, w, states);
}

clv_status clv_spectra_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_spectra_plan *plan = user;
    const size_t items = count * plan->options.starts;
    void *states, *found, *scans, *facts, *models = NULL;
    clv_star_data d = { 0 };
    clv_ref_work w = { 0 };
    CLV_TRY(clv_slot_result_create(slot, CLV_SPECTRA_STATES,
                                   items * CLV_SPECTRA_STATE * sizeof(float), &states));
    CLV_TRY(clv_slot_result_create(slot, CLV_SPECTRA_FOUND,
                                   count * CLV_SPECTRA_FOUND_BY_STAR * sizeof(float), &found));
    const size_t scan = 2 * clv_scan_velocities(plan);
    CLV_TRY(clv_slot_result_create(slot, CLV_SPECTRA_SCANS, count * scan * sizeof(float), &scans));
    memset(scans, 0, count * scan * sizeof(float));
    if (plan->options.models)
        CLV_TRY(clv_slot_result_create(slot, CLV_SPECTRA_MODELS,
                                       items * plan->sizes.all_pixels * sizeof(float), &models));
    CLV_TRY(
        clv_slot_result_create(slot, CLV_SPECTRA_FACTS, count * sizeof(clv_star_facts), &facts));
    memset(states, 0, items * CLV_SPECTRA_STATE * sizeof(float));
    memset(found, 0, count * CLV_SPECTRA_FOUND_BY_STAR * sizeof(float));
    if (models) memset(models, 0, items * plan->sizes.all_pixels * sizeof(float));
    clv_status status = clv_star_data_create(plan, &d);
    if (!status) status = clv_ref_work_create(plan, &w);
    double *chi = clv_alloc(
        2 * plan->library->ccf_count + plan->sizes.velocities + plan->sizes.ccf_lags, sizeof *chi);
    if (!chi && !status) status = clv_fail(CLV_E_MEMORY, "specfit: out of memory");
    for (size_t i = 0; i < count && !status; ++i) {
        const size_t item = i * plan->options.starts;
        status = clv_star_prepare(plan, first + i, &d);
        ((clv_star_facts *)facts)[i] = d.facts;
        if (status || !d.facts.usable) continue;
        for (size_t k = 0;
             plan->sizes.diagonals && k < plan->sizes.all_pixels * plan->sizes.diagonals; ++k)
            w.rows[k] = (double)d.resolution[k];
        if (plan->wish.scan_count) {
            status = scan_given(plan, first + i, &d, &w, (float *)scans + i * scan);
            continue;
        }
        fit_star(plan, first + i, &d, &w, chi, (float *)states + item * CLV_SPECTRA_STATE,
                 (float *)found + CLV_SPECTRA_FOUND_BY_STAR * i,
                 models ? (float *)models + item * plan->sizes.all_pixels : NULL);
    }
    clv_free(chi), clv_ref_work_clear(&w), clv_star_data_clear(&d);
    return status;
}

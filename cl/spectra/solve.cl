/* cl/spectra/solve.cl -- the small dense problems: continuum of a spectrum, and the next point.
 *
 * clv_spectra_total: sums of all segments of a spectrum (x: 16 columns, y: items, z: spectra).
 * clv_spectra_solve: M = L L', a = M^-1 u, L^-1, log det M of one spectrum (x: items, y: spectra).
 * clv_spectra_step:  Levenberg and Marquardt on the projected residual, one item a work-item:
 *                    judges the point just evaluated, keeps it or not, sets the next one.
 * clv_spectra_list:  the items that still work, in order; one work-item.
 * Defines  FP64 1 where the device has doubles, else sums are compensated float32; NPOLY. */
#include "common/loose.clh"
#include "spectra/small.clh"

#define LEAST_DAMPING 1e-6f

/* Sum over the segments of a spectrum, column by column: value and what it lost to rounding. */
__kernel void clv_spectra_total(__global const float *restrict partial,
                                __global const int *restrict range,
                                __global const int *restrict list, __global float *restrict out,
                                int all_segments, int spectra, int columns)
{
    const int block = 16 * (int)get_global_id(0), at = (int)get_global_id(1),
              which = (int)get_global_id(2);
    if (at >= list[0] || block >= columns) return;
    const int item = list[1 + at], from = range[2 * which], count = range[2 * which + 1];
    __global const float *p = partial + ((size_t)item * all_segments + from) * CLV_SPECTRA_AROUND + block;
    float16 sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < count; ++i) {
        const float16 term = load16(0, p + (size_t)i * CLV_SPECTRA_AROUND);
        const float16 next = sum + term, part = next - sum;
        lost += (sum - (next - part)) + (term - part);
        sum = next;
    }
    __global float *o = out + ((size_t)item * spectra + which) * 2 * CLV_SPECTRA_AROUND + block;
    store16(sum, 0, o);
    store16(lost, 0, o + CLV_SPECTRA_AROUND);
}

static real sum_at(__global const float *totals, int column)
{
    return (real)totals[column] + (real)totals[CLV_SPECTRA_AROUND + column];
}

SELDOM __kernel void clv_spectra_solve(__global const float *restrict totals,
                                       __global const int *restrict list, __global float *restrict solved,
                                       int spectra)
{
    const int at = (int)get_global_id(0), which = (int)get_global_id(1);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global const float *g = totals + ((size_t)item * spectra + which) * 2 * CLV_SPECTRA_AROUND;
    __global float *out = solved + ((size_t)item * spectra + which) * CLV_SPECTRA_SOLVED;
    real m[NPOLY][NPOLY], y[NPOLY], a[NPOLY], log_det = 0;
    for (int i = 0; i < NPOLY; ++i) {
        for (int j = 0; j <= i; ++j)
            m[i][j] = sum_at(g, i * 16 + j);
        y[i] = sum_at(g, i * 16 + NPOLY);
        a[i] = 0;
    }
    const bool empty = !(m[0][0] > 0), bad = factor(m, &log_det);
    for (int i = 0; i < 16; ++i)
        out[CLV_V_A + i] = 0.0f;
    for (int i = 0; i < 256; ++i)
        out[CLV_V_INVERSE + i] = 0.0f;
    /* column c of L^-1; a = sum over rows i of (L^-1 u)_i * row i of L^-1 */
    forward(m, y);
    ROLLED
    for (int c = 0; c < NPOLY; ++c) {
        real x[NPOLY];
        for (int i = c; i < NPOLY; ++i) {
            real v = i == c;
            for (int k = c; k < i; ++k)
                v -= m[i][k] * x[k];
            x[i] = v / m[i][i];
            a[c] += x[i] * y[i];
            if (!empty) out[CLV_V_INVERSE + c * 16 + i] = (float)x[i];
        }
    }
    for (int i = 0; i < NPOLY; ++i)
        out[CLV_V_A + i] = empty ? 0.0f : (float)a[i];
    out[CLV_V_LOGDET] = empty ? 0.0f : (float)log_det;
    out[CLV_V_BAD] = !empty && bad;
}

/* What the point just evaluated amounts to. */
typedef struct judged {
    total chi; /* chi2 + log det */
    float log_det, bad;
    float normal[21], slope[6], det_slope[6];
} judged;

static int lane_of(int unknown)
{
    return unknown ? unknown : 6;
}

/* Adds one spectrum: sums of its segments, less what the continuum takes up. */
static void judge(judged *all, __global const float *sums, __global const float *solved,
                  __global float *chi_good)
{
    real rest[NPOLY], y[6][NPOLY];
    ROLLED
    for (int i = 0; i < NPOLY; ++i) {
        real v = 0;
        for (int k = 0; k <= i; ++k)
            v += (real)solved[CLV_V_INVERSE + k * 16 + i] * sum_at(sums, CLV_A_REST + k);
        rest[i] = v;
    }
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        for (int i = 0; i < NPOLY; ++i)
            y[a][i] = 0;
    ROLLED
    for (int k = 0; k < NPOLY; ++k)
        for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
            const real v = sum_at(sums, CLV_A_CROSS + k * 8 + lane_of(a));
            for (int i = k; i < NPOLY; ++i)
                y[a][i] += (real)solved[CLV_V_INVERSE + k * 16 + i] * v;
        }
    ROLLED
    for (int a = 0, e = 0; a < CLV_S_UNKNOWNS; ++a) {
        real v = sum_at(sums, CLV_A_SLOPE + lane_of(a));
        for (int i = 0; i < NPOLY; ++i)
            v -= y[a][i] * rest[i];
        all->slope[a] += (float)v;
        all->det_slope[a] += (float)sum_at(sums, CLV_A_DET + lane_of(a));
        for (int b = 0; b <= a; ++b, ++e) {
            real w = sum_at(sums, CLV_A_NORMAL + lane_of(a) * 8 + lane_of(b));
            for (int i = 0; i < NPOLY; ++i)
                w -= y[a][i] * y[b][i];
            all->normal[e] += (float)w;
        }
    }
    *chi_good = (float)sum_at(sums, CLV_A_CHI_GOOD);
    total_add(&all->chi, sums[CLV_A_CHI]);
    total_add(&all->chi, sums[CLV_SPECTRA_AROUND + CLV_A_CHI]);
    for (int i = 0; i < NPOLY; ++i)
        total_add(&all->chi, (float)(-rest[i] * rest[i]));
    total_add(&all->chi, solved[CLV_V_LOGDET]);
    all->log_det += solved[CLV_V_LOGDET];
    all->bad += solved[CLV_V_BAD];
}

/* (H + lambda diag H) step = slope over the free unknowns; false when not positive definite. */
static bool damped_step(const float *normal, const float *slope, float lambda, int held,
                        float *step)
{
    float l[CLV_S_UNKNOWNS][CLV_S_UNKNOWNS], scale[CLV_S_UNKNOWNS];
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        scale[a] = rsqrt(fmax(normal[a * (a + 1) / 2 + a], 1e-30f));
    ROLLED
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        for (int b = 0; b <= a; ++b) {
            const bool off = (held >> a & 1) || (held >> b & 1);
            float v = off ? (a == b ? 1.0f : 0.0f)
                          : normal[a * (a + 1) / 2 + b] * scale[a] * scale[b];
            if (a == b) v *= 1.0f + lambda;
            for (int k = 0; k < b; ++k)
                v -= l[a][k] * l[b][k];
            if (a == b) {
                if (!(v > 1e-7f)) return false;
                l[a][a] = sqrt(v);
            } else {
                l[a][b] = v / l[b][b];
            }
        }
    }
    ROLLED
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        float v = held >> a & 1 ? 0.0f : slope[a] * scale[a];
        for (int k = 0; k < a; ++k)
            v -= l[a][k] * step[k];
        step[a] = v / l[a][a];
    }
    ROLLED
    for (int a = CLV_S_UNKNOWNS - 1; a >= 0; --a) {
        float v = step[a];
        for (int k = a + 1; k < CLV_S_UNKNOWNS; ++k)
            v -= l[k][a] * step[k];
        step[a] = v / l[a][a];
    }
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        step[a] *= scale[a];
    return true;
}

/* Gauss and Newton leave out the curvature of the model, which is large at low S/N: the last step shows it
 * along one direction. An update of Broyden, Fletcher, Goldfarb and Shanno, damped as Powell's. */
static void bend(float *normal, __global const float *s)
{
    float step[CLV_S_UNKNOWNS], hs[CLV_S_UNKNOWNS], y[CLV_S_UNKNOWNS], shs = 0.0f, ys = 0.0f;
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        step[a] = s[CLV_S_MOVE + a], hs[a] = 0.0f;
    ROLLED
    for (int a = 0, e = 0; a < CLV_S_UNKNOWNS; ++a)
        for (int b = 0; b <= a; ++b, ++e) {
            hs[a] = fma(normal[e], step[b], hs[a]);
            if (b < a) hs[b] = fma(normal[e], step[a], hs[b]);
        }
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        shs = fma(hs[a], step[a], shs);
        ys = fma(s[CLV_S_CHANGE + a], step[a], ys);
    }
    if (!(shs > 1e-4f)) return; /* too short to see more than rounding */
    const float keep = ys >= 0.2f * shs ? 1.0f : 0.8f * shs / (shs - ys);
    ys = 0.0f;
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        y[a] = keep * s[CLV_S_CHANGE + a] + (1.0f - keep) * hs[a];
        ys = fma(y[a], step[a], ys);
    }
    ROLLED
    for (int a = 0, e = 0; a < CLV_S_UNKNOWNS; ++a)
        for (int b = 0; b <= a; ++b, ++e)
            normal[e] += y[a] / ys * y[b] - hs[a] / shs * hs[b];
}

/* The next point from the best one; false when a step of Gauss and Newton promises nothing any more, or
 * no damping gives a sensible one. */
static bool set_next(__global float *s, __global const float *box)
{
    float normal[21], plain[21], slope[CLV_S_UNKNOWNS], step[CLV_S_UNKNOWNS] = { 0 };
    const float det = fmax(s[CLV_S_LOGDET], 1.0f);
    ROLLED
    for (int a = 0, e = 0; a < CLV_S_UNKNOWNS; ++a) {
        slope[a] = s[CLV_S_SLOPE + a];
        for (int b = 0; b <= a; ++b, ++e)
            normal[e] = plain[e] = s[CLV_S_NORMAL + e] + s[CLV_S_DET_SLOPE + a] * s[CLV_S_DET_SLOPE + b] / (4.0f * det);
    }
    bend(normal, s);
    int held = (int)s[CLV_S_FIXED];
    for (int turn = 0; turn < CLV_S_UNKNOWNS; ++turn) { /* hold what would leave the box at once */
        while (!damped_step(normal, slope, s[CLV_S_LAMBDA], held, step)) {
            s[CLV_S_LAMBDA] = fmax(s[CLV_S_LAMBDA] * 10.0f, 1e-4f);
            if (s[CLV_S_LAMBDA] > 1e8f) return false;
        }
        int more = held;
        for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
            const float x = s[CLV_S_BEST + a];
            if ((x <= box[a] && step[a] < 0.0f) || (x >= box[6 + a] && step[a] > 0.0f))
                more |= 1 << a;
        }
        if (more == held) break;
        held = more;
    }
    float whole[CLV_S_UNKNOWNS], gain = 0.0f, shrink = 1.0f, promise = 0.0f;
    const bool newton = damped_step(plain, slope, LEAST_DAMPING, held, whole);
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        shrink = fmin(shrink, box[12 + a] / fmax(fabs(step[a]), 1e-20f));
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a)
        if (!(held >> a & 1)) gain += slope[a] * (newton ? whole[a] : step[a]);
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        const float next = clamp(s[CLV_S_BEST + a] + shrink * step[a], box[a], box[6 + a]);
        s[CLV_S_TRY + a] = next;
        s[CLV_S_MOVE + a] = next - s[CLV_S_BEST + a];
        s[CLV_S_STEP + a] = next + box[18 + a] > box[6 + a] ? -box[18 + a] : box[18 + a];
    }
    ROLLED
    for (int a = 0, e = 0; a < CLV_S_UNKNOWNS; ++a) {
        promise += 2.0f * slope[a] * s[CLV_S_MOVE + a];
        for (int b = 0; b <= a; ++b, ++e)
            promise -= (a == b ? 1.0f : 2.0f) * normal[e] * s[CLV_S_MOVE + a] * s[CLV_S_MOVE + b];
    }
    s[CLV_S_PROMISE] = promise, s[CLV_S_GAIN] = gain;
    return gain * CLV_SPECTRA_GAIN > 1.0f;
}

/* last: the point is the best one again; only its numbers are wanted. */
SELDOM __kernel void clv_spectra_step(__global const float *restrict totals,
                                      __global const float *restrict solved,
                                      __global const float *restrict box,
                                      __global const int *restrict list, __global float *restrict state,
                                      int spectra, int last)
{
    const int at = (int)get_global_id(0);
    if (at >= list[0]) return;
    const int item = list[1 + at];
    __global float *s = state + (size_t)item * CLV_SPECTRA_STATE;
    judged now = { .chi = { 0, 0 } };
    for (int i = 0; i < spectra; ++i)
        judge(&now, totals + ((size_t)item * spectra + i) * 2 * CLV_SPECTRA_AROUND,
              solved + ((size_t)item * spectra + i) * CLV_SPECTRA_SOLVED, s + CLV_S_CHI_OF + i);
    const real value = total_of(&now.chi);
    const bool first = s[CLV_S_STATUS] == 0.0f, usable = isfinite((float)value);
    float penalty = 0.0f; /* of points that a grid of templates does not have */
    for (int i = 0; i < spectra; ++i)
        penalty = fma(s[CLV_S_OUTSIDE + i], box[24], penalty);
    float prior = 0.0f; /* (x - centre)^2 / sigma^2, and what it does to slope and curvature */
    for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
        const float weight = s[CLV_S_PRIOR + 6 + a], off = s[CLV_S_TRY + a] - s[CLV_S_PRIOR + a];
        prior = fma(weight * off, off, prior);
        now.slope[a] = fma(-weight, off, now.slope[a]);
        now.normal[a * (a + 1) / 2 + a] += weight;
    }
    const float drop = first ? 1e30f
                             : (float)(((real)s[CLV_S_VALUE] - now.chi.value) +
                                       ((real)s[CLV_S_LOST] - now.chi.lost)) +
                                   (s[CLV_S_PENALTY] - penalty) + (s[CLV_S_PRIOR_VALUE] - prior);
    s[CLV_S_ROUNDS] += last ? 0.0f : 1.0f;
    s[CLV_S_FLAGS] = now.bad > 0.0f;
    for (int a = 0; a < CLV_S_UNKNOWNS && !last; ++a)
        s[CLV_S_CHANGE + a] =
            first ? 0.0f : s[CLV_S_SLOPE + a] - (now.slope[a] - 0.5f * now.det_slope[a]);
    if (last || (usable && drop >= 0.0f)) {
        for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
            s[CLV_S_BEST + a] = s[CLV_S_TRY + a];
            s[CLV_S_SLOPE + a] = now.slope[a] - 0.5f * now.det_slope[a];
            s[CLV_S_DET_SLOPE + a] = now.det_slope[a];
        }
        for (int e = 0; e < 21; ++e)
            s[CLV_S_NORMAL + e] = now.normal[e];
        s[CLV_S_VALUE] = (float)now.chi.value;
        s[CLV_S_LOST] = (float)((now.chi.value - (real)s[CLV_S_VALUE]) + now.chi.lost);
        s[CLV_S_LOGDET] = now.log_det;
        s[CLV_S_PENALTY] = penalty;
        s[CLV_S_PRIOR_VALUE] = prior;
        s[CLV_S_CHI] = (float)(value - (real)now.log_det);
        if (last) return;
        const float kept = 2.0f * drop / fmax(s[CLV_S_PROMISE], 1e-30f) - 1.0f;
        if (!first)
            s[CLV_S_LAMBDA] = fmax(s[CLV_S_LAMBDA] * clamp(1.0f - kept * kept * kept, 0.1f, 2.0f),
                                   LEAST_DAMPING);
        if (first) s[CLV_S_STATUS] = 1.0f, s[CLV_S_START_CHI] = (float)value;
    } else {
        s[CLV_S_LAMBDA] = fmax(s[CLV_S_LAMBDA] * 8.0f, 1e-3f);
        if (s[CLV_S_LAMBDA] > 1e6f) s[CLV_S_STATUS] = usable || !first ? 2.0f : 3.0f;
        if (first) s[CLV_S_STATUS] = 3.0f; /* nothing to improve on */
    }
    if (s[CLV_S_STATUS] != 1.0f) return;
    const bool goes_on = set_next(s, box);
    if (goes_on && s[CLV_S_GAIN] * CLV_SPECTRA_LAST > 1.0f) return;
    s[CLV_S_STATUS] = 2.0f;
    for (int a = 0; a < CLV_S_UNKNOWNS && goes_on; ++a) /* the last look judges it */
        s[CLV_S_BEST + a] = s[CLV_S_TRY + a];
}

/* last: all items, at their best point. */
__kernel void clv_spectra_list(__global float *restrict state, __global int *restrict list,
                               __global const float *restrict box, int items, int last)
{
    if (get_global_id(0) > 0) return;
    int count = 0;
    for (int i = 0; i < items; ++i) {
        __global float *s = state + (size_t)i * CLV_SPECTRA_STATE;
        if (last) {
            for (int a = 0; a < CLV_S_UNKNOWNS; ++a) {
                s[CLV_S_TRY + a] = s[CLV_S_BEST + a];
                s[CLV_S_STEP + a] = s[CLV_S_BEST + a] + box[18 + a] > box[6 + a] ? -box[18 + a] : box[18 + a];
            }
        }
        if (s[CLV_S_STATUS] < (last ? 3.5f : 1.5f)) list[++count] = i;
    }
    list[0] = count;
}

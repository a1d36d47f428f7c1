/* SPDX-License-Identifier: Apache-2.0 */
/* A network whose last layer holds Gaussian lines, so that nothing needs to be trained; stars are
 * its templates, rotated, shifted, reddened by a parabola and noisy. */
#include "host/cli/synthetic/stars.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/spectra/spectra_math.h"

#include <math.h>
#include <string.h>

enum {
    ARMS = 2,
    POINTS = 900,
    HIDDEN = 12,
    PIXELS = 350,
    CCF = 1024,
    GRID = 24,
    LINES = 60,
    DIAG = 7
};

static const double start_of[ARMS] = { 4500, 8300 }, step_of[ARMS] = { 0.8, 0.8 };

struct synthetic_stars_memory {
    clv_spectra_arm arm[ARMS];
    float *weight[ARMS][2], *bias[ARMS][2], *ccf[ARMS];
    double *wave[ARMS];
    double parameters[GRID][4];
    double hull[16][4];
    float *pixels[ARMS]; /* [count,(2 + DIAG),PIXELS] flux, ivar, resolution */
    int32_t *mask;       /* all flagged */
    clv_spectrum *items;
};

static double uniform(uint64_t *state, double low, double high)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return low + (high - low) * (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    const double a = uniform(state, 1e-12, 1), b = uniform(state, 0, 1);
    return sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

/* Lines of every hidden unit, deep where it is large; the bias has those that all stars have. */
static void make_lines(struct synthetic_stars_memory *m, size_t a, uint64_t *state)
{
    for (size_t h = 0; h <= HIDDEN; ++h)
        for (size_t l = 0; l < LINES; ++l) {
            const double centre = uniform(state, 0, POINTS), width = uniform(state, 1.5, 4);
            const double depth = h < HIDDEN ? uniform(state, -0.12, 0.04) : uniform(state, 0, 0.3);
            const double reach = 6 * width;
            for (double x = fmax(ceil(centre - reach), 0); x < fmin(centre + reach, POINTS); ++x) {
                const double u = (x - centre) / width, v = depth * exp(-0.5 * u * u);
                if (h < HIDDEN)
                    m->weight[a][1][(size_t)x * HIDDEN + h] += (float)v;
                else
                    m->bias[a][1][(size_t)x] -= (float)v;
            }
        }
}

static clv_status make_arm(synthetic_stars *s, size_t a, uint64_t *state)
{
    struct synthetic_stars_memory *m = s->memory;
    clv_spectra_arm *arm = &m->arm[a];
    static const char *const names[ARMS] = { "one", "two" };
    static const double mean[4] = { 3.75, 2.75, -1, 0.2 }, std[4] = { 0.1, 1.3, 0.9, 0.25 };
    const double margin = exp(1300 / CLV_LIGHT_KMS);
    const double last = start_of[a] + step_of[a] * (PIXELS - 1);
    m->weight[a][0] = clv_zalloc(HIDDEN * 4, sizeof(float));
    m->weight[a][1] = clv_zalloc(HIDDEN * POINTS, sizeof(float));
    m->bias[a][0] = clv_zalloc(HIDDEN, sizeof(float));
    m->bias[a][1] = clv_zalloc(POINTS, sizeof(float));
    m->ccf[a] = clv_zalloc(GRID * CCF, sizeof(float));
    m->wave[a] = clv_zalloc(PIXELS, sizeof(double));
    if (!m->weight[a][0] || !m->weight[a][1] || !m->bias[a][0] || !m->bias[a][1] || !m->ccf[a] ||
        !m->wave[a])
        return clv_fail(CLV_E_MEMORY, "no memory for made-up stars");
    for (size_t i = 0; i < HIDDEN * 4; ++i)
        m->weight[a][0][i] = (float)uniform(state, -0.7, 0.7);
    for (size_t i = 0; i < HIDDEN; ++i)
        m->bias[a][0][i] = (float)uniform(state, -0.5, 1);
    make_lines(m, a, state);
    for (size_t k = 0; k < PIXELS; ++k)
        m->wave[a][k] = start_of[a] + step_of[a] * (double)k;
    *arm = (clv_spectra_arm){
        .name = names[a],
        .points = POINTS,
        .first = start_of[a] / margin,
        .last = last * margin,
        .layers = 2,
        .width = { 4, HIDDEN, POINTS },
        .weight = { m->weight[a][0], m->weight[a][1] },
        .bias = { m->bias[a][0], m->bias[a][1] },
        .hull_count = 16,
        .hull = m->hull[0],
        .ccf = m->ccf[a],
        .ccf_points = CCF,
        .ccf_log0 = log(start_of[a]),
        .ccf_log1 = log(last),
        .ccf_spline_kms = 3000,
    };
    memcpy(arm->mean, mean, sizeof mean), memcpy(arm->std, std, sizeof std);
    return CLV_OK;
}

/* Start templates: what the network makes, on the grid of the cross-correlation. */
static clv_status make_starts(synthetic_stars *s, size_t a)
{
    struct synthetic_stars_memory *m = s->memory;
    const clv_spectra_arm *arm = &m->arm[a];
    double *work = clv_alloc(3 * POINTS, sizeof *work);
    if (!work) return clv_fail(CLV_E_MEMORY, "no memory for made-up stars");
    const double dln = log(arm->last / arm->first) / (POINTS - 1);
    for (size_t t = 0; t < GRID; ++t) {
        clv_spectra_network(arm, m->parameters[t], work, work + 2 * POINTS);
        for (size_t n = 0; n < CCF; ++n) {
            const double x =
                arm->ccf_log0 + (arm->ccf_log1 - arm->ccf_log0) * (double)n / (CCF - 1);
            const double p = (x - log(arm->first)) / dln, f = p - floor(p);
            const double *y = work + 2 * POINTS + (size_t)p;
            m->ccf[a][t * CCF + n] = (float)(y[0] * (1 - f) + y[1] * f);
        }
    }
    clv_free(work);
    return CLV_OK;
}

static void make_matrix(float *out)
{
    for (size_t d = 0; d < DIAG; ++d)
        for (size_t k = 0; k < PIXELS; ++k) {
            const double u = ((double)d - DIAG / 2) / 1.1;
            out[d * PIXELS + k] = (float)(exp(-0.5 * u * u) / (1.1 * 2.5066282746310002));
        }
}

static clv_status make_star(synthetic_stars *s, size_t star, size_t a, bool resolution,
                            uint64_t *state)
{
    struct synthetic_stars_memory *m = s->memory;
    const clv_spectra_arm *arm = &m->arm[a];
    const double *x = s->truth[star], b = x[0] / CLV_LIGHT_KMS;
    const double dln = log(arm->last / arm->first) / (POINTS - 1), snr = uniform(state, 15, 60);
    float *flux = m->pixels[a] + star * (2 + DIAG) * PIXELS, *ivar = flux + PIXELS;
    double *work = clv_alloc(6 * POINTS + PIXELS * (2 + DIAG), sizeof *work);
    if (!work) return clv_fail(CLV_E_MEMORY, "no memory for made-up stars");
    double *wave = work, *raw = work + POINTS, *turned = raw + POINTS, *bend = turned + POINTS;
    double *t = work + 6 * POINTS, *blurred = t + PIXELS, *rows = blurred + PIXELS;
    clv_spectra_network(arm, x + 2, work + 4 * POINTS, raw);
    for (size_t n = 0; n < POINTS; ++n)
        wave[n] = arm->first * exp(dln * (double)n);
    clv_rotate(raw, POINTS, x[1] / CLV_LIGHT_KMS / dln, turned);
    clv_spline_prepare(wave, turned, POINTS, bend, work + 4 * POINTS);
    for (size_t k = 0; k < PIXELS; ++k)
        t[k] = clv_spline_at(wave, turned, bend, POINTS, m->wave[a][k] * sqrt((1 - b) / (1 + b)));
    clv_status status = CLV_OK;
    make_matrix(ivar + PIXELS);
    if (resolution) {
        status = clv_resolution_rows(ivar + PIXELS, DIAG, PIXELS, 0.5 / step_of[a], rows);
        if (!status) clv_resolution_apply(rows, DIAG, PIXELS, t, blurred);
        memcpy(t, blurred, PIXELS * sizeof *t);
    }
    for (size_t k = 0; k < PIXELS; ++k) {
        const double u = (double)k / PIXELS - 0.5, clean = 100 * (1 + 0.4 * u - 0.3 * u * u) * t[k];
        const double sigma = 100 / snr;
        flux[k] = (float)(clean + sigma * normal(state));
        ivar[k] = (float)(1 / (sigma * sigma));
    }
    s->memory->items[star * ARMS + a] = (clv_spectrum){
        .arm = a,
        .pixels = PIXELS,
        .wavelength = m->wave[a],
        .flux = flux,
        .ivar = ivar,
        .resolution = resolution ? ivar + PIXELS : NULL,
        .diagonals = resolution ? DIAG : 0,
    };
    clv_free(work);
    return status;
}

static clv_status make_all(synthetic_stars *s, size_t count, uint64_t state, bool resolution)
{
    struct synthetic_stars_memory *m = s->memory;
    for (size_t i = 0; i < 16; ++i)
        for (size_t k = 0; k < 4; ++k)
            m->hull[i][k] = i >> k & 1 ? 1.9 : -1.9;
    for (size_t t = 0; t < GRID; ++t) {
        static const double teff[4] = { 4200, 5200, 6300, 7600 };
        m->parameters[t][0] = teff[t % 4], m->parameters[t][1] = t / 4 % 2 ? 4 : 1.8;
        m->parameters[t][2] = -2.2 + 1.1 * (double)(t / 8), m->parameters[t][3] = 0.2;
    }
    for (size_t a = 0; a < ARMS; ++a) {
        CLV_TRY(make_arm(s, a, &state));
        CLV_TRY(make_starts(s, a));
        m->pixels[a] = clv_zalloc(count * (2 + DIAG) * PIXELS, sizeof(float));
        if (!m->pixels[a]) return clv_fail(CLV_E_MEMORY, "no memory for made-up stars");
    }
    for (size_t i = 0; i < count; ++i) {
        const double truth[6] = { uniform(&state, -400, 400),  uniform(&state, 30, 250),
                                  uniform(&state, 4400, 7200), uniform(&state, 1.5, 4.3),
                                  uniform(&state, -2, 0.2),    uniform(&state, 0, 0.4) };
        memcpy(s->truth[i], truth, sizeof truth);
        for (size_t a = 0; a < ARMS; ++a)
            CLV_TRY(make_star(s, i, a, resolution, &state));
    }
    s->library = (clv_spectra_library){ ARMS, m->arm, GRID, m->parameters[0] };
    s->stars = (clv_spectra_stars){ count, ARMS, m->items };
    return CLV_OK;
}

clv_status synthetic_stars_create(size_t count, uint64_t seed, bool resolution, synthetic_stars *s)
{
    *s = (synthetic_stars){ 0 };
    s->memory = clv_zalloc(1, sizeof *s->memory);
    s->truth = clv_zalloc(count, sizeof *s->truth);
    if (s->memory) s->memory->items = clv_zalloc(count * ARMS, sizeof *s->memory->items);
    if (s->memory) s->memory->mask = clv_alloc(PIXELS, sizeof *s->memory->mask);
    clv_status status = s->memory && s->truth && s->memory->items && s->memory->mask
                            ? make_all(s, count, seed, resolution)
                            : clv_fail(CLV_E_MEMORY, "no memory for made-up stars");
    for (size_t k = 0; !status && k < PIXELS; ++k)
        s->memory->mask[k] = 1;
    if (status) synthetic_stars_clear(s);
    return status;
}

void synthetic_stars_damage(synthetic_stars *s)
{
    struct synthetic_stars_memory *m = s->memory;
    const size_t star = (2 + DIAG) * PIXELS;
    for (size_t a = 0; a < ARMS; ++a)
        for (size_t k = 0; k < PIXELS; ++k) {
            m->pixels[a][k] = NAN;
            m->pixels[a][star + PIXELS + k] = 0;
        }
    for (size_t a = 0; a < ARMS; ++a)
        m->items[2 * ARMS + a].mask = m->mask;
    m->items[3 * ARMS].pixels = 0;
}

void synthetic_stars_clear(synthetic_stars *s)
{
    struct synthetic_stars_memory *m = s->memory;
    for (size_t a = 0; m && a < ARMS; ++a) {
        for (int l = 0; l < 2; ++l)
            clv_free(m->weight[a][l]), clv_free(m->bias[a][l]);
        clv_free(m->ccf[a]), clv_free(m->wave[a]), clv_free(m->pixels[a]);
    }
    if (m) clv_free(m->items), clv_free(m->mask);
    clv_free(m), clv_free(s->truth);
    *s = (synthetic_stars){ 0 };
}

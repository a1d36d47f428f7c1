/* SPDX-License-Identifier: Apache-2.0 */
/* Makes synthetic stars. The library is a network whose last layer holds Gaussian lines, so that no training is
 * necessary. The stars are the library's templates, rotationally broadened, shifted, reddened by a parabola and
 * noisy. */
#include "host/synthetic/stars.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/spectra/spectra_math.h"

#include <math.h>
#include <string.h>

enum { MOST_ARMS = 3, MOST_LAYERS = 5 };

const synthetic_stars_shape synthetic_stars_small = {
    .arms = 2,
    .layers = 1,
    .hidden = { 12 },
    .start = { 4500, 8300 },
    .pixel = 0.8,
    .pixels = { 350, 350 },
    .ccf_points = 1024,
    .templates = 24,
    .lines = 60,
    .diagonals = 7,
    .margin_kms = 1300,
};

const synthetic_stars_shape synthetic_stars_desi = {
    .arms = 3,
    .layers = 4,
    .hidden = { 256, 256, 256, 200 },
    .start = { 3600, 5760, 7520 },
    .pixel = 0.8,
    .point = 0.4,
    .pixels = { 2751, 2326, 2881 },
    .ccf_points = 8192,
    .templates = 300,
    .lines = 60,
    .diagonals = 11,
    .margin_kms = 1100,
};

struct synthetic_stars_memory {
    synthetic_stars_shape shape;
    clv_spectra_arm arm[MOST_ARMS];
    float *weight[MOST_ARMS][MOST_LAYERS], *bias[MOST_ARMS][MOST_LAYERS], *ccf[MOST_ARMS];
    double *wave[MOST_ARMS];
    double (*parameters)[4];
    double hull[16][4];
    float *pixels[MOST_ARMS]; /* [count,(2 + diagonals),pixels]: flux, ivar, resolution */
    int32_t *mask;            /* a mask in which every pixel is flagged */
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

static size_t points_of(const synthetic_stars_shape *h, size_t a)
{
    if (h->point == 0) return 900;
    const double last = h->start[a] + h->pixel * (double)(h->pixels[a] - 1);
    const double step = log1p(h->point / (0.5 * (h->start[a] + last)));
    return (size_t)((log(last / h->start[a]) + 2 * h->margin_kms / CLV_LIGHT_KMS) / step);
}

/* Adds lines to every unit of the last hidden layer; a line is deep where the unit's value is large. The bias holds the
 * lines common to all stars. */
static void make_lines(struct synthetic_stars_memory *m, size_t a, uint64_t *state)
{
    const synthetic_stars_shape *h = &m->shape;
    const size_t last = h->layers, units = h->hidden[last - 1], points = m->arm[a].points;
    const double scale = sqrt(12.0 / (double)units);
    for (size_t u = 0; u <= units; ++u)
        for (size_t l = 0; l < h->lines; ++l) {
            const double centre = uniform(state, 0, (double)points), width = uniform(state, 1.5, 4);
            const double depth =
                u < units ? scale * uniform(state, -0.12, 0.04) : uniform(state, 0, 0.3);
            const double reach = 6 * width;
            for (double x = fmax(ceil(centre - reach), 0); x < fmin(centre + reach, (double)points);
                 ++x) {
                const double w = (x - centre) / width, v = depth * exp(-0.5 * w * w);
                if (u < units)
                    m->weight[a][last][(size_t)x * units + u] += (float)v;
                else
                    m->bias[a][last][(size_t)x] -= (float)v;
            }
        }
}

static clv_status make_network(struct synthetic_stars_memory *m, size_t a, uint64_t *state)
{
    const synthetic_stars_shape *h = &m->shape;
    clv_spectra_arm *arm = &m->arm[a];
    arm->layers = h->layers + 1;
    arm->width[0] = 4;
    for (size_t l = 0; l <= h->layers; ++l) {
        const size_t in = arm->width[l], out = l < h->layers ? h->hidden[l] : arm->points;
        arm->width[l + 1] = out;
        arm->weight[l] = m->weight[a][l] = clv_zalloc(out * in, sizeof(float));
        arm->bias[l] = m->bias[a][l] = clv_zalloc(out, sizeof(float));
        if (!arm->weight[l] || !arm->bias[l])
            return clv_fail(CLV_E_MEMORY, "not enough memory for synthetic stars");
        if (l == h->layers) break;
        const double most = l ? 1.7 / sqrt((double)in) : 0.7;
        for (size_t i = 0; i < out * in; ++i)
            m->weight[a][l][i] = (float)uniform(state, -most, most);
        for (size_t i = 0; i < out; ++i)
            m->bias[a][l][i] = (float)uniform(state, -0.5, 1);
    }
    make_lines(m, a, state);
    return CLV_OK;
}

static clv_status make_arm(synthetic_stars *s, size_t a, uint64_t *state)
{
    struct synthetic_stars_memory *m = s->memory;
    const synthetic_stars_shape *h = &m->shape;
    clv_spectra_arm *arm = &m->arm[a];
    static const char *const names[MOST_ARMS] = { "desi_b", "desi_r", "desi_z" };
    static const double mean[4] = { 3.75, 2.75, -1, 0.2 }, std[4] = { 0.1, 1.3, 0.9, 0.25 };
    const double margin = exp(h->margin_kms / CLV_LIGHT_KMS);
    const double last = h->start[a] + h->pixel * (double)(h->pixels[a] - 1);
    m->ccf[a] = clv_zalloc(h->templates * h->ccf_points, sizeof(float));
    m->wave[a] = clv_zalloc(h->pixels[a], sizeof(double));
    if (!m->ccf[a] || !m->wave[a])
        return clv_fail(CLV_E_MEMORY, "not enough memory for synthetic stars");
    for (size_t k = 0; k < h->pixels[a]; ++k)
        m->wave[a][k] = h->start[a] + h->pixel * (double)k;
    *arm = (clv_spectra_arm){
        .name = names[a],
        .points = points_of(h, a),
        .first = h->start[a] / margin,
        .last = last * margin,
        .hull_count = 16,
        .hull = m->hull[0],
        .ccf = m->ccf[a],
        .ccf_points = h->ccf_points,
        .ccf_log0 = log(h->start[a]),
        .ccf_log1 = log(last),
        .ccf_spline_kms = 3000,
    };
    memcpy(arm->mean, mean, sizeof mean), memcpy(arm->std, std, sizeof std);
    return make_network(m, a, state);
}

/* Makes the start templates: the network's spectra on the wavelength grid of the cross-correlation. */
static clv_status make_starts(synthetic_stars *s, size_t a)
{
    struct synthetic_stars_memory *m = s->memory;
    const clv_spectra_arm *arm = &m->arm[a];
    const size_t ccf = m->shape.ccf_points;
    double *work = clv_alloc(3 * arm->points, sizeof *work);
    if (!work) return clv_fail(CLV_E_MEMORY, "not enough memory for synthetic stars");
    const double dln = log(arm->last / arm->first) / (double)(arm->points - 1);
    for (size_t t = 0; t < m->shape.templates; ++t) {
        clv_spectra_network(arm, m->parameters[t], work, work + 2 * arm->points);
        for (size_t n = 0; n < ccf; ++n) {
            const double x =
                arm->ccf_log0 + (arm->ccf_log1 - arm->ccf_log0) * (double)n / (double)(ccf - 1);
            const double p = (x - log(arm->first)) / dln, f = p - floor(p);
            const double *y = work + 2 * arm->points + (size_t)p;
            m->ccf[a][t * ccf + n] = (float)(y[0] * (1 - f) + y[1] * f);
        }
    }
    clv_free(work);
    return CLV_OK;
}

static void make_matrix(float *out, size_t diagonals, size_t pixels)
{
    for (size_t d = 0; d < diagonals; ++d)
        for (size_t k = 0; k < pixels; ++k) {
            const double u = ((double)d - (double)(diagonals / 2)) / 1.1;
            out[d * pixels + k] = (float)(exp(-0.5 * u * u) / (1.1 * 2.5066282746310002));
        }
}

static clv_status make_star(synthetic_stars *s, size_t star, size_t a, bool resolution,
                            uint64_t *state)
{
    struct synthetic_stars_memory *m = s->memory;
    const clv_spectra_arm *arm = &m->arm[a];
    const size_t points = arm->points, pixels = m->shape.pixels[a], diag = m->shape.diagonals;
    const double *x = s->truth[star], b = x[0] / CLV_LIGHT_KMS;
    const double dln = log(arm->last / arm->first) / (double)(points - 1),
                 snr = uniform(state, 15, 60);
    float *flux = m->pixels[a] + star * (2 + diag) * pixels, *ivar = flux + pixels;
    double *work = clv_alloc(6 * points + pixels * (2 + diag), sizeof *work);
    if (!work) return clv_fail(CLV_E_MEMORY, "not enough memory for synthetic stars");
    double *wave = work, *raw = work + points, *turned = raw + points, *bend = turned + points;
    double *t = work + 6 * points, *blurred = t + pixels, *rows = blurred + pixels;
    clv_spectra_network(arm, x + 2, work + 4 * points, raw);
    for (size_t n = 0; n < points; ++n)
        wave[n] = arm->first * exp(dln * (double)n);
    clv_rotate(raw, points, x[1] / CLV_LIGHT_KMS / dln, turned);
    clv_spline_prepare(wave, turned, points, bend, work + 4 * points);
    for (size_t k = 0; k < pixels; ++k)
        t[k] = clv_spline_at(wave, turned, bend, points, m->wave[a][k] * sqrt((1 - b) / (1 + b)));
    clv_status status = CLV_OK;
    make_matrix(ivar + pixels, diag, pixels);
    if (resolution) {
        status = clv_resolution_rows(ivar + pixels, diag, pixels, 0.5 / m->shape.pixel, rows);
        if (!status) clv_resolution_apply(rows, diag, pixels, t, blurred);
        memcpy(t, blurred, pixels * sizeof *t);
    }
    for (size_t k = 0; k < pixels; ++k) {
        const double u = (double)k / (double)pixels - 0.5,
                     clean = 100 * (1 + 0.4 * u - 0.3 * u * u) * t[k];
        const double sigma = 100 / snr;
        flux[k] = (float)(clean + sigma * normal(state));
        ivar[k] = (float)(1 / (sigma * sigma));
    }
    s->memory->items[star * m->shape.arms + a] = (clv_spectrum){
        .arm = a,
        .pixels = pixels,
        .wavelength = m->wave[a],
        .flux = flux,
        .ivar = ivar,
        .resolution = resolution ? ivar + pixels : NULL,
        .diagonals = resolution ? diag : 0,
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
    for (size_t t = 0; t < m->shape.templates; ++t) {
        static const double teff[4] = { 4200, 5200, 6300, 7600 };
        m->parameters[t][0] = teff[t % 4], m->parameters[t][1] = t / 4 % 2 ? 4 : 1.8;
        m->parameters[t][2] = -2.2 + 1.1 * (double)(t / 8 % 3);
        m->parameters[t][3] = t / 24 ? 0.05 * (double)(t / 24 % 9) : 0.2;
    }
    for (size_t a = 0; a < m->shape.arms; ++a) {
        CLV_TRY(make_arm(s, a, &state));
        CLV_TRY(make_starts(s, a));
        m->pixels[a] =
            clv_zalloc(count * (2 + m->shape.diagonals) * m->shape.pixels[a], sizeof(float));
        if (!m->pixels[a]) return clv_fail(CLV_E_MEMORY, "not enough memory for synthetic stars");
    }
    for (size_t i = 0; i < count; ++i) {
        const double truth[6] = { uniform(&state, -400, 400),  uniform(&state, 30, 250),
                                  uniform(&state, 4400, 7200), uniform(&state, 1.5, 4.3),
                                  uniform(&state, -2, 0.2),    uniform(&state, 0, 0.4) };
        memcpy(s->truth[i], truth, sizeof truth);
        for (size_t a = 0; a < m->shape.arms; ++a)
            CLV_TRY(make_star(s, i, a, resolution, &state));
    }
    s->library = (clv_spectra_library){ sizeof(clv_spectra_library), m->shape.arms, m->arm,
                                        m->shape.templates, m->parameters[0] };
    s->stars = (clv_spectra_stars){ sizeof(clv_spectra_stars), count, m->shape.arms, m->items };
    return CLV_OK;
}

clv_status synthetic_stars_create_like(const synthetic_stars_shape *shape, size_t count,
                                       uint64_t seed, bool resolution, synthetic_stars *s)
{
    size_t most = 0;
    *s = (synthetic_stars){ 0 };
    struct synthetic_stars_memory *m = s->memory = clv_zalloc(1, sizeof *s->memory);
    s->truth = clv_zalloc(count, sizeof *s->truth);
    for (size_t a = 0; a < shape->arms; ++a)
        most = CLV_MAX(most, shape->pixels[a]);
    if (m) m->shape = *shape, m->items = clv_zalloc(count * shape->arms, sizeof *m->items);
    if (m) m->mask = clv_alloc(most, sizeof *m->mask);
    if (m) m->parameters = clv_zalloc(shape->templates, sizeof *m->parameters);
    clv_status status = m && s->truth && m->items && m->mask && m->parameters
                            ? make_all(s, count, seed, resolution)
                            : clv_fail(CLV_E_MEMORY, "not enough memory for synthetic stars");
    for (size_t k = 0; !status && k < most; ++k)
        m->mask[k] = 1;
    if (status) synthetic_stars_clear(s);
    return status;
}

clv_status synthetic_stars_create(size_t count, uint64_t seed, bool resolution, synthetic_stars *s)
{
    return synthetic_stars_create_like(&synthetic_stars_small, count, seed, resolution, s);
}

void synthetic_stars_damage(synthetic_stars *s)
{
    struct synthetic_stars_memory *m = s->memory;
    const size_t arms = m->shape.arms;
    for (size_t a = 0; a < arms; ++a)
        for (size_t k = 0; k < m->shape.pixels[a]; ++k) {
            const size_t star = (2 + m->shape.diagonals) * m->shape.pixels[a];
            m->pixels[a][k] = NAN;
            m->pixels[a][star + m->shape.pixels[a] + k] = 0;
        }
    for (size_t a = 0; a < arms; ++a)
        m->items[2 * arms + a].mask = m->mask;
    m->items[3 * arms].pixels = 0;
}

void synthetic_stars_clear(synthetic_stars *s)
{
    struct synthetic_stars_memory *m = s->memory;
    for (size_t a = 0; m && a < MOST_ARMS; ++a) {
        for (int l = 0; l < MOST_LAYERS; ++l)
            clv_free(m->weight[a][l]), clv_free(m->bias[a][l]);
        clv_free(m->ccf[a]), clv_free(m->wave[a]), clv_free(m->pixels[a]);
    }
    if (m) clv_free(m->items), clv_free(m->mask), clv_free(m->parameters);
    clv_free(m), clv_free(s->truth);
    *s = (synthetic_stars){ 0 };
}

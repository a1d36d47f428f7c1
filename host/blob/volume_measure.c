/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a spot's sub-voxel position, its width, and its light. */
#include "host/blob/volume_plan.h"

#include "base/alloc.h"
#include "base/sort.h"

#include <math.h>

enum { MOST_SHELL = 4096 }; /* most voxels of the background's shell that are sampled */

/* Finds the offset by a least-squares quadratic through the 27 responses. Along an axis at whose end the peak lies, the
 * offset stays 0. */
static void place(const clv_volume_plan *plan, const clv_volume_peak *p, double offset[CLV_AXES])
{
    const size_t at[CLV_AXES] = { p->z, p->y, p->x },
                 size[CLV_AXES] = { plan->depth, plan->height, plan->width };
    double slope[CLV_AXES] = { 0 }, curve[CLV_AXES][CLV_AXES] = { { 0 } };
    bool loose[CLV_AXES];
    for (int a = 0; a < CLV_AXES; ++a) {
        loose[a] = at[a] > 0 && at[a] + 1 < size[a];
        offset[a] = 0;
    }
    for (int i = 0; i < 27; ++i) {
        const double v = (double)p->around[i];
        const int d[CLV_AXES] = { i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1 };
        bool used = true;
        for (int a = 0; a < CLV_AXES; ++a)
            used = used && (loose[a] || d[a] == 0);
        if (!used) continue; /* the response is mirrored or outside */
        for (int a = 0; a < CLV_AXES; ++a) {
            slope[a] += v * d[a];
            curve[a][a] += v * (d[a] ? 1 : -2);
            for (int b = 0; b < a; ++b)
                curve[a][b] += v * d[a] * d[b];
        }
    }
    /* number of values; a third of them share a plane, and a ninth a line */
    double planes = 1;
    for (int a = 0; a < CLV_AXES; ++a)
        planes *= loose[a] ? 3 : 1;
    for (int a = 0; a < CLV_AXES; ++a) {
        if (!loose[a]) {
            slope[a] = 0, curve[a][a] = -1;
            continue;
        }
        slope[a] /= 2 * planes / 3, curve[a][a] /= planes / 3;
        for (int b = 0; b < a; ++b)
            curve[a][b] = loose[b] ? curve[a][b] / (4 * planes / 9) : 0;
    }
    for (int a = 0; a < CLV_AXES; ++a)
        for (int b = 0; b < a; ++b)
            curve[b][a] = curve[a][b] = loose[a] && loose[b] ? curve[a][b] : 0;
    /* solves curve * offset = -slope by Cramer's rule; `curve` is negative definite at a maximum */
    const double(*c)[CLV_AXES] = (const double(*)[CLV_AXES])curve;
    const double minor = c[0][0] * c[1][1] - c[0][1] * c[1][0];
    const double cofactor[CLV_AXES][CLV_AXES] = {
        { c[1][1] * c[2][2] - c[1][2] * c[2][1], c[0][2] * c[2][1] - c[0][1] * c[2][2],
          c[0][1] * c[1][2] - c[0][2] * c[1][1] },
        { c[1][2] * c[2][0] - c[1][0] * c[2][2], c[0][0] * c[2][2] - c[0][2] * c[2][0],
          c[0][2] * c[1][0] - c[0][0] * c[1][2] },
        { c[1][0] * c[2][1] - c[1][1] * c[2][0], c[0][1] * c[2][0] - c[0][0] * c[2][1], minor }
    };
    const double det =
        c[0][0] * cofactor[0][0] + c[0][1] * cofactor[1][0] + c[0][2] * cofactor[2][0];
    if (!(c[0][0] < 0) || !(minor > 0) || !(det < 0)) return;
    double step[CLV_AXES];
    for (int a = 0; a < CLV_AXES; ++a) {
        step[a] = 0;
        for (int b = 0; b < CLV_AXES; ++b)
            step[a] -= cofactor[a][b] * slope[b] / det;
        if (!(fabs(step[a]) <= 1)) return;
    }
    for (int a = 0; a < CLV_AXES; ++a)
        offset[a] = step[a];
}

/* Returns the spot's width. At scale s, a Gaussian spot of width w and amplitude A has the response A 3 s^2 w^3 / (w^2
 * + s^2)^(5/2), so the ratio of two scales' responses gives w. The two scales are the neighbours of the largest
 * response; if one neighbour is missing, the largest response takes its place. */
static double width_of(const clv_volume_plan *plan, const clv_volume_peak *p)
{
    const bool below = p->k > 0 && p->below > 0, above = p->k + 1 < plan->scales && p->above > 0;
    const double s1 = plan->sigma[below ? p->k - 1 : p->k],
                 s2 = plan->sigma[above ? p->k + 1 : p->k];
    const double usual = plan->sigma[p->k] * sqrt(1.5);
    if (plan->flat->options.dog || !(s2 > s1)) return usual;
    const double ratio = (double)(above ? p->above : p->own) / (double)(below ? p->below : p->own);
    const double root = pow(ratio * s1 * s1 / (s2 * s2), 0.4); /* (w^2 + s1^2) / (w^2 + s2^2) */
    if (!(root < 1)) return 3 * s2;
    const double w2 = (root * s2 * s2 - s1 * s1) / (1 - root);
    const double voxel = 1.0 / 12; /* variance of a voxel's own extent */
    return sqrt(fmax(w2 - voxel, 0.25 * s1 * s1));
}

void clv_volume_refine(const clv_volume_plan *plan, const clv_volume_peak *p, clv_volume_spot *spot)
{
    double offset[CLV_AXES] = { 0 };
    const bool none = plan->flat->options.subpixel == CLV_BLOB_SUBPIXEL_NONE;
    if (!none) place(plan, p, offset);
    spot->z = (float)((double)p->z + offset[CLV_Z]);
    spot->y = (float)((double)p->y + offset[CLV_Y]);
    spot->x = (float)((double)p->x + offset[CLV_X]);
    const double width = none ? plan->sigma[p->k] : width_of(plan, p);
    spot->sigma = (float)fmin(width, 3 * plan->sigma[plan->scales - 1]);
    spot->sigma_z = (float)((double)spot->sigma * plan->ratio[CLV_Z]);
    spot->response = p->own;
}

/* Sums over the voxels around a spot. */
typedef struct sums {
    float shell[MOST_SHELL];
    size_t seen, ball_count;
    double ball;
    bool saturated;
} sums;

static float median_of(float *v, size_t count)
{
    return clv_nth_float(v, count, count / 2);
}

void clv_volume_measure(const clv_volume_plan *plan, const clv_volume_peak *p,
                        clv_volume_spot *spot)
{
    const size_t size[CLV_AXES] = { plan->depth, plan->height, plan->width };
    const double centre[CLV_AXES] = { (double)spot->z, (double)spot->y, (double)spot->x };
    const double sigma = fmin(plan->sigma[p->k] * sqrt(1.5), 32);
    size_t low[CLV_AXES], high[CLV_AXES];
    double inner[CLV_AXES], outer[CLV_AXES], volume = 1;
    bool leaves = false;
    for (int a = 0; a < CLV_AXES; ++a) {
        inner[a] = 3 * sigma * plan->ratio[a], outer[a] = inner[a] + 2;
        low[a] = (size_t)fmax(0, ceil(centre[a] - outer[a]));
        high[a] = (size_t)fmin((double)size[a] - 1, floor(centre[a] + outer[a]));
        volume *= (double)(high[a] - low[a] + 1);
        const double radius = sqrt(2) * sigma * plan->ratio[a];
        leaves = leaves || centre[a] < radius || centre[a] + radius > (double)size[a] - 1;
    }
    /* step between the shell's voxels, so that at most MOST_SHELL are sampled */
    const size_t every = (size_t)(volume / MOST_SHELL) + 1;
    sums s = { .seen = 0 };
    size_t kept = 0;
    for (size_t z = low[CLV_Z]; z <= high[CLV_Z]; ++z)
        for (size_t y = low[CLV_Y]; y <= high[CLV_Y]; ++y)
            for (size_t x = low[CLV_X]; x <= high[CLV_X]; ++x) {
                const double d[CLV_AXES] = { (double)z - centre[CLV_Z], (double)y - centre[CLV_Y],
                                             (double)x - centre[CLV_X] };
                double in = 0, out = 0;
                for (int a = 0; a < CLV_AXES; ++a)
                    in += d[a] * d[a] / (inner[a] * inner[a]),
                        out += d[a] * d[a] / (outer[a] * outer[a]);
                if (out > 1) continue;
                const double v = clv_volume_voxel(plan, z, y, x);
                if (!isfinite(v)) continue;
                if (in <= 1) {
                    s.ball += v, ++s.ball_count;
                    s.saturated = s.saturated || v >= plan->flat->largest;
                } else if (s.seen++ % every == 0 && kept < MOST_SHELL) {
                    s.shell[kept++] = (float)v;
                }
            }
    double background = (double)plan->pedestal, noise = 0;
    if (kept) {
        background = (double)median_of(s.shell, kept);
        for (size_t i = 0; i < kept; ++i)
            s.shell[i] = fabsf(s.shell[i] - (float)background);
        noise = 1.4826 * (double)median_of(s.shell, kept);
    }
    const double mass = s.ball - background * (double)s.ball_count;
    spot->background = (float)background;
    spot->mass = (float)((double)plan->flat->gain * mass);
    if (noise > 0 && s.ball_count)
        spot->snr = (float)((double)spot->mass / (noise * sqrt((double)s.ball_count)));
    if (s.saturated) spot->flags |= CLV_SPOT_SATURATED;
    if (leaves) spot->flags |= CLV_SPOT_BORDER;
}

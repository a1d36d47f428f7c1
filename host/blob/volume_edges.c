/* SPDX-License-Identifier: Apache-2.0 */
/* Computes how the noise of responses grows at the edges of a volume: where a kernel extends beyond the volume,
 * mirrored voxels count twice, and so does their noise. */
#include "host/blob/volume_plan.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { MOST = 2 * CLV_BLOB_MAX_RADIUS + 1 };

/* Sums of products of two kernels along an axis, folded at the edges for a voxel at position `at`. */
typedef struct sums {
    double aa, ab, bb;
} sums;

/* Adds a kernel's values to the voxels that they weight: out[voxel - low]. The values are every second number from
 * `tap` on. */
static void fold(const double *tap, size_t radius, size_t at, size_t size, size_t low, double *out)
{
    for (int64_t j = -(int64_t)radius; j <= (int64_t)radius; ++j)
        out[clv_blob_mirror((int64_t)at + j, size) - low] += tap[2 * (j < 0 ? -j : j)];
}

static sums folded(const double *a, size_t a_radius, const double *b, size_t b_radius, size_t at,
                   size_t size)
{
    double first[MOST], second[MOST];
    const size_t reach = CLV_MAX(a_radius, b_radius), low = at > reach ? at - reach : 0,
                 count = CLV_MIN(at + reach, size - 1) - low + 1;
    sums s = { 0 };
    memset(first, 0, count * sizeof *first), memset(second, 0, count * sizeof *second);
    fold(a, a_radius, at, size, low, first), fold(b, b_radius, at, size, low, second);
    for (size_t i = 0; i < count; ++i)
        s.aa += first[i] * first[i], s.ab += first[i] * second[i], s.bb += second[i] * second[i];
    return s;
}

double clv_volume_edge(const clv_volume_plan *plan, size_t k, size_t z, size_t y, size_t x)
{
    const size_t at[CLV_AXES] = { z, y, x },
                 size[CLV_AXES] = { plan->depth, plan->height, plan->width };
    const bool dog = plan->flat->options.dog;
    sums s[CLV_AXES];
    bool inside = true;
    for (int a = 0; a < CLV_AXES; ++a) {
        const size_t reach = plan->along[dog ? k + 1 : k][a].radius;
        inside = inside && at[a] >= reach && at[a] + reach < size[a];
    }
    if (inside) return 1;
    for (int a = 0; a < CLV_AXES; ++a) {
        const clv_volume_taps *own = &plan->along[k][a], *next = &plan->along[dog ? k + 1 : k][a];
        s[a] = folded(plan->tap + 2 * own->first, own->radius,
                      plan->tap + 2 * next->first + (dog ? 0 : 1), next->radius, at[a], size[a]);
    }
    double squares = 0;
    for (int a = 0; a < CLV_AXES && !dog; ++a) {
        const sums *p = &s[a], *q = &s[(a + 1) % CLV_AXES], *r = &s[(a + 2) % CLV_AXES];
        squares += p->bb * q->aa * r->aa + 2 * p->ab * q->ab * r->aa;
    }
    if (dog) {
        const double c = 1 / (plan->flat->options.sigma_ratio - 1);
        squares =
            c * c *
            (s[CLV_Z].aa * s[CLV_Y].aa * s[CLV_X].aa - 2 * s[CLV_Z].ab * s[CLV_Y].ab * s[CLV_X].ab +
             s[CLV_Z].bb * s[CLV_Y].bb * s[CLV_X].bb);
    }
    return sqrt(fmax(squares, 0)) / plan->norm[k];
}

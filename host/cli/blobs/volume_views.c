/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the overlay of stacks: the maximum along z, along x and along y, side by side, each with the spots and tracks
 * seen from that direction. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { GAP = 4, VIEWS = 3 }; /* GAP: dark columns between the views */

static void put(float *most, float v, bool invert)
{
    if (!isfinite(*most) || (invert ? v < *most : v > *most)) *most = v;
}

clv_status blobs_volume_project(blobs_volume_views *v, const clv_movie_facts *f, const void *voxels,
                                bool invert)
{
    const size_t d = f->depth, h = f->height, w = f->width;
    if (!v->along_z) {
        const size_t all = h * w + h * d + d * w;
        *v = (blobs_volume_views){ d, h, w, clv_alloc(all, sizeof(float)), NULL, NULL };
        if (!v->along_z) return clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
        v->along_x = v->along_z + h * w, v->along_y = v->along_x + h * d;
        for (size_t i = 0; i < all; ++i)
            v->along_z[i] = NAN;
    }
    for (size_t z = 0; z < d; ++z)
        for (size_t y = 0; y < h; ++y)
            for (size_t x = 0; x < w; ++x) {
                const float value = blobs_value_at(f, voxels, (z * h + y) * w + x);
                if (!isfinite(value)) continue;
                put(&v->along_z[y * w + x], value, invert);
                put(&v->along_x[y * d + z], value, invert);
                put(&v->along_y[z * w + x], value, invert);
            }
    return CLV_OK;
}

void blobs_volume_views_clear(blobs_volume_views *v)
{
    clv_free(v->along_z);
    *v = (blobs_volume_views){ 0 };
}

/* Returns the number of pixels for the depth, so that planes are as far apart in the picture as in space. */
static size_t deep_pixels(const blobs_volume_views *v, double spacing)
{
    return (size_t)fmax(1, fmin(ceil((double)v->depth * spacing), 8192));
}

static float *paste(const blobs_volume_views *v, size_t deep, size_t height, size_t width)
{
    float *out = clv_alloc(height, width * sizeof *out);
    if (!out) return NULL;
    for (size_t i = 0; i < height * width; ++i)
        out[i] = NAN; /* dark */
    for (size_t y = 0; y < v->height; ++y) {
        memcpy(out + y * width, v->along_z + y * v->width, v->width * sizeof *out);
        for (size_t i = 0; i < deep; ++i)
            out[y * width + v->width + GAP + i] = v->along_x[y * v->depth + i * v->depth / deep];
    }
    for (size_t i = 0; i < deep; ++i)
        memcpy(out + (v->height + GAP + i) * width, v->along_y + i * v->depth / deep * v->width,
               v->width * sizeof *out);
    return out;
}

clv_status blobs_volume_draw(const blobs_volume_views *v, const double voxel[3],
                             const blobs_units *units, const clv_volume_spot *spots,
                             const int64_t *particle, size_t count, const char *path)
{
    const size_t deep = deep_pixels(v, voxel[0] / voxel[2]);
    const double scale = (double)deep / (double)v->depth; /* pixels of the picture per plane */
    const size_t height = v->height + GAP + deep, width = v->width + GAP + deep;
    blobs_projection p = { height, width, paste(v, deep, height, width) };
    clv_spot *flat = clv_zalloc(VIEWS * count + 1, sizeof *flat);
    int64_t *tracks = clv_alloc(VIEWS * count + 1, sizeof *tracks);
    clv_status status = p.values && flat && tracks
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "not enough memory for the overlay");
    /* tracks are drawn separately in each view */
    int64_t most = 0;
    for (size_t i = 0; i < count && particle; ++i)
        most = CLV_MAX(most, particle[i] + 1);
    for (size_t i = 0; i < count && !status; ++i) {
        const clv_volume_spot *s = &spots[i];
        const float z = (float)(((double)s->z + 0.5) * scale - 0.5);
        const float place[VIEWS][2] = { { s->y, s->x },
                                        { s->y, (float)(v->width + GAP) + z },
                                        { (float)(v->height + GAP) + z, s->x } };
        for (size_t view = 0; view < VIEWS; ++view) {
            flat[VIEWS * i + view] = (clv_spot){
                .frame = s->frame, .y = place[view][0], .x = place[view][1], .sigma = s->sigma
            };
            tracks[VIEWS * i + view] =
                particle && particle[i] >= 0 ? (int64_t)view * most + particle[i] : -1;
        }
    }
    if (!status)
        status = blobs_draw(&p, units, flat, particle ? tracks : NULL, VIEWS * count, path);
    clv_free(flat), clv_free(tracks);
    blobs_projection_clear(&p);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes synthetic image sequences for tests of PACO: a halo, correlated noise, and a PSF without symmetry. */
#include "cube.h"

#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* Fills `psf` with an elongated, tilted spot with a shoulder, so that a swap of rows and columns or of signs changes
 * it. */
static void make_psf(float *psf, size_t size)
{
    const double middle = (double)(size / 2);
    for (size_t i = 0; i < size * size; ++i) {
        const double y = (double)(i / size) - middle, x = (double)(i % size) - middle;
        const double u = 0.9 * x + 0.3 * y, v = 0.8 * y - 0.2 * x;
        const double shoulder = exp(-((x - 1.5) * (x - 1.5) + (y + 0.7) * (y + 0.7)));
        psf[i] = (float)(exp(-(u * u + v * v) / 3.1) + 0.15 * shoulder);
    }
}

/* Returns noise that is correlated between neighbouring pixels, so that covariances are neither diagonal nor
 * singular. */
static double noise(const double *white, size_t width, size_t y, size_t x)
{
    const double *w = white + y * (width + 2) + x;
    return 0.7 * w[0] + 0.5 * w[1] - 0.2 * w[2] + 0.4 * w[width + 2] + 0.3 * w[width + 3];
}

test_cube test_cube_make(const test_cube_shape *shape)
{
    const size_t t = shape->frames, h = shape->height, w = shape->width;
    const size_t row = w + shape->row_padding, frame = row * h + shape->frame_padding;
    const double unit = shape->unit != 0 ? shape->unit : 1, turn = shape->turn ? shape->turn : 40;
    const size_t psf_size = shape->psf_size ? shape->psf_size : 13;
    uint64_t state = shape->seed;
    test_cube c = { .floats = frame * t };
    double *white = clv_alloc((h + 1) * (w + 2), sizeof *white);
    c.cube = clv_alloc_pages(c.floats * sizeof *c.cube);
    c.psf = clv_alloc(psf_size * psf_size, sizeof *c.psf);
    c.angles = clv_alloc(t, sizeof *c.angles);
    c.weights = clv_alloc(t, sizeof *c.weights);
    assert_true(white && c.cube && c.psf && c.angles && c.weights);
    for (size_t l = 0; l < t; ++l)
        c.weights[l] = l % 3 == 1 ? 0.2 : l % 3 ? 2.5 : 5;
    for (size_t i = 0; i < c.floats; ++i)
        c.cube[i] = 3e33f; /* code that reads padding gets infinite squares */
    for (size_t l = 0; l < t; ++l) {
        for (size_t i = 0; i < (h + 1) * (w + 2); ++i)
            white[i] = test_uniform(&state, -1, 1);
        for (size_t y = 0; y < h; ++y)
            for (size_t x = 0; x < w; ++x) {
                const double dy = (double)y - (double)h / 2, dx = (double)x - (double)w / 2;
                const double halo = 1 + 9 * exp(-hypot(dy, dx) / 6);
                c.cube[l * frame + y * row + x] =
                    (float)(unit * (shape->level + 30 * halo + halo * noise(white, w, y, x)));
            }
        c.angles[l] =
            shape->first_angle + turn * ((double)l + 0.3 * test_uniform(&state, 0, 1)) / (double)t;
    }
    clv_free(white);
    make_psf(c.psf, psf_size);
    c.in = (clv_paco_input){ .size = sizeof(clv_paco_input),
                             .cube = c.cube,
                             .frames = t,
                             .height = h,
                             .width = w,
                             .frame_stride = shape->frame_padding || shape->row_padding ? frame : 0,
                             .row_stride = shape->row_padding ? row : 0,
                             .angles = c.angles,
                             .psf = c.psf,
                             .psf_size = psf_size,
                             .weights = shape->weighted ? c.weights : NULL };
    test_cube_settle(&c);
    return c;
}

float *test_cube_at(const test_cube *cube, size_t frame, size_t row, size_t column)
{
    const clv_paco_input *in = &cube->in;
    const size_t row_stride = in->row_stride ? in->row_stride : in->width;
    const size_t frame_stride = in->frame_stride ? in->frame_stride : row_stride * in->height;
    return cube->cube + frame * frame_stride + row * row_stride + column;
}

void test_cube_settle(test_cube *cube)
{
    clv_free(cube->before);
    cube->before = clv_alloc(cube->floats, sizeof *cube->before);
    assert_non_null(cube->before);
    memcpy(cube->before, cube->cube, cube->floats * sizeof *cube->cube);
}

void test_cube_check(const test_cube *cube)
{
    assert_memory_equal(cube->before, cube->cube, cube->floats * sizeof *cube->cube);
}

void test_cube_free(test_cube *cube)
{
    clv_free(cube->cube), clv_free(cube->psf), clv_free(cube->angles), clv_free(cube->weights),
        clv_free(cube->before);
    *cube = (test_cube){ 0 };
}

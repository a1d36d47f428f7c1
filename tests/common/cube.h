/* SPDX-License-Identifier: Apache-2.0 */
/* Makes synthetic image sequences for tests of PACO: a halo, correlated noise, and a PSF without symmetry. */
#ifndef CLEAVE_TESTS_CUBE_H
#define CLEAVE_TESTS_CUBE_H

#include <cleave/patch.h>

typedef struct test_cube {
    clv_paco_input in;
    float *cube, *psf, *before; /* `before`: a copy for test_cube_check */
    double *angles, *weights;
    size_t floats; /* number of floats in the cube, padding included */
} test_cube;

/* The sizes and the properties of a synthetic sequence; zero fields mean the default. */
typedef struct test_cube_shape {
    uint64_t seed;
    size_t frames, height, width;
    size_t row_padding, frame_padding; /* elements after each; filled with 3e33 */
    size_t psf_size;                   /* 0: 13 */
    double unit, level;                /* pixels: (noise + level) * unit; unit 0: 1 */
    double turn;                       /* degrees from the first frame to the last; 0: 40 */
    double first_angle;
    bool weighted; /* the frames have the weights 5, 0.2 and 2.5 in turn */
} test_cube_shape;

test_cube test_cube_make(const test_cube_shape *shape);
float *test_cube_at(const test_cube *cube, size_t frame, size_t row, size_t column);
/* Keeps a copy of the cube, with which test_cube_check compares it later. */
void test_cube_settle(test_cube *cube);
/* Fails the test if the cube or its padding has changed since test_cube_settle. */
void test_cube_check(const test_cube *cube);
void test_cube_free(test_cube *cube);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up image sequences for PACO: a halo, correlated noise, a PSF without symmetry. */
#ifndef CLEAVE_TESTS_CUBE_H
#define CLEAVE_TESTS_CUBE_H

#include <cleave/patch.h>

typedef struct test_cube {
    clv_paco_input in;
    float *cube, *psf, *before; /* `before`: the cube with its padding, as it was made */
    double *angles, *weights;
    size_t floats; /* of the cube, padding included */
} test_cube;

/* What differs from a dense cube of unit 1 without flaws. */
typedef struct test_cube_shape {
    uint64_t seed;
    size_t frames, height, width;
    size_t row_padding, frame_padding; /* elements behind each; poisoned */
    size_t psf_size;                   /* 0: 13 */
    double unit, level;                /* data are (noise + level) * unit; 0: 1 */
    double turn;                       /* degrees from the first frame to the last; 0: 40 */
    double first_angle;
    bool weighted; /* frames of weight 5, 2.5 and 0.2 */
} test_cube_shape;

test_cube test_cube_make(const test_cube_shape *shape);
float *test_cube_at(const test_cube *cube, size_t frame, size_t row, size_t column);
/* Notes the cube as it is now: what must not change from here on. */
void test_cube_settle(test_cube *cube);
/* Fails when anything of the cube changed. */
void test_cube_check(const test_cube *cube);
void test_cube_free(test_cube *cube);

#endif

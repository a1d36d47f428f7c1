/* SPDX-License-Identifier: Apache-2.0 */
/* The drift of a stage: known shifts, whole and in parts of a pixel, with noise, without a scene, with hot pixels. */
#include "test.h"

#include "base/alloc.h"
#include "host/stage/transform.h"

#include <cleave/stage.h>

#include <math.h>
#include <string.h>

enum { H = 97, W = 128, SPOTS = 60 };

static uint32_t seed;

static double uniform(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (double)(seed >> 8) / (1 << 24);
}

static double normal(void)
{
    return sqrt(-2 * log(uniform() + 1e-12)) * cos(6.283185307179586 * uniform());
}

/* Draws spots of sigma 1.5 that are shifted by dy, dx; the same spots each time. */
static void draw(float *frame, double dy, double dx, double noise, uint32_t noise_seed)
{
    seed = 7;
    for (size_t i = 0; i < H * W; ++i)
        frame[i] = 100;
    for (int n = 0; n < SPOTS; ++n) {
        const double y = uniform() * (H + 20) - 10 + dy, x = uniform() * (W + 20) - 10 + dx;
        const double height = 50 + 100 * uniform();
        for (int i = 0; i < H; ++i)
            for (int j = 0; j < W; ++j) {
                const double far = (i - y) * (i - y) + (j - x) * (j - x);
                if (far < 80) frame[i * W + j] += (float)(height * exp(-far / 4.5));
            }
    }
    seed = noise_seed;
    for (size_t i = 0; i < H * W && noise > 0; ++i)
        frame[i] += (float)(noise * normal());
}

static clv_blob_frames shape_of(clv_blob_pixel type)
{
    return (
        clv_blob_frames){ .size = sizeof(clv_blob_frames), .type = type, .height = H, .width = W };
}

/* Measures the second of two frames against the first. */
static clv_stage_shift measure(const float *frames)
{
    const clv_blob_frames shape = shape_of(CLV_BLOB_F32);
    clv_stage *stage;
    clv_stage_shift shifts[2];
    EXPECT_OK(clv_stage_open(&shape, NULL, &stage));
    EXPECT_OK(clv_stage_push(stage, frames, 2, shifts));
    clv_stage_close(stage);
    assert_true(shifts[0].found && shifts[0].y == 0 && shifts[0].x == 0 && shifts[0].y_err == 0);
    return shifts[1];
}

static void near(double got, double want, double error)
{
    if (!(fabs(got - want) <= error)) fail_msg("%.6f, expected %.6f +- %g", got, want, error);
}

static void transforms_are_those_of_the_formula(void **unused)
{
    (void)unused;
    enum { ROWS = 12, COLUMNS = 20, WAVES = COLUMNS / 2 + 1 };
    clv_transform *forward, *back;
    float image[ROWS * COLUMNS], again[ROWS * COLUMNS];
    clv_wave waves[ROWS * WAVES];
    seed = 1;
    for (size_t i = 0; i < CLV_LEN(image); ++i)
        image[i] = (float)uniform();
    EXPECT_OK(clv_transform_create(ROWS, COLUMNS, false, &forward));
    EXPECT_OK(clv_transform_create(ROWS, COLUMNS, true, &back));
    clv_transform_forward(forward, image, waves);
    for (int ky = 0; ky < ROWS; ++ky)
        for (int kx = 0; kx < WAVES; ++kx) {
            double re = 0, im = 0;
            for (int i = 0; i < ROWS * COLUMNS; ++i) {
                const double turn = -6.283185307179586 * ((double)ky * (i / COLUMNS) / ROWS +
                                                          (double)kx * (i % COLUMNS) / COLUMNS);
                re += (double)image[i] * cos(turn), im += (double)image[i] * sin(turn);
            }
            near((double)waves[ky * WAVES + kx].re, re, 1e-4);
            near((double)waves[ky * WAVES + kx].im, im, 1e-4);
        }
    clv_transform_back(back, waves, again);
    for (size_t i = 0; i < CLV_LEN(image); ++i)
        near((double)again[i] / (ROWS * COLUMNS), (double)image[i], 1e-6);
    clv_transform_free(forward), clv_transform_free(back), clv_transform_free(NULL);
    assert_int_equal(clv_transform_size(97), 100);
    assert_int_equal(clv_transform_size(512), 512);
    assert_int_equal(clv_transform_size(0), 4);
}

static void known_shifts_are_found(void **unused)
{
    (void)unused;
    static const double shifts[][2] = { { 0, 0 },         { 3, -2 },       { -7, 11 },
                                        { 0.5, 0.5 },     { 0.25, -0.75 }, { -1.3, 2.6 },
                                        { 12.34, -8.76 }, { 0.01, 0 } };
    static float frames[2][H * W];
    for (size_t i = 0; i < CLV_LEN(shifts); ++i) {
        draw(frames[0], 0, 0, 0, 0), draw(frames[1], shifts[i][0], shifts[i][1], 0, 0);
        const clv_stage_shift found = measure(frames[0]);
        assert_true(found.found);
        /* the window follows steps of up to 3 pixels here; in its slopes, longer ones look 1 to 2 % shorter */
        const double far = hypot(shifts[i][0], shifts[i][1]);
        const double error = 0.001 + (far < 3 ? 0.002 : 0.02) * far;
        near(found.y, shifts[i][0], error), near(found.x, shifts[i][1], error);
    }
}

static void noise_makes_errors_as_told(void **unused)
{
    (void)unused;
    enum { RUNS = 40 };
    static float frames[2][H * W];
    double sum[2] = { 0 }, squares[2] = { 0 }, told[2] = { 0 };
    for (uint32_t i = 0; i < RUNS; ++i) {
        draw(frames[0], 0, 0, 20, 2 * i + 1), draw(frames[1], 0.4, -0.3, 20, 2 * i + 2);
        const clv_stage_shift found = measure(frames[0]);
        assert_true(found.found);
        const double error[] = { found.y - 0.4, found.x + 0.3 };
        const double said[] = { found.y_err, found.x_err };
        for (int axis = 0; axis < 2; ++axis)
            sum[axis] += error[axis], squares[axis] += error[axis] * error[axis],
                told[axis] += said[axis] * said[axis];
    }
    for (int axis = 0; axis < 2; ++axis) {
        const double rms = sqrt(squares[axis] / RUNS), want = sqrt(told[axis] / RUNS);
        near(sum[axis] / RUNS, 0, 4 * want / sqrt(RUNS) + 0.005);
        if (!(rms < 1.4 * want && rms > 0.6 * want))
            fail_msg("axis %d: errors of %.4f px, said to be %.4f", axis, rms, want);
        assert_true(want > 0.01 && want < 0.1);
    }
}

static void scenes_without_structure_are_told(void **unused)
{
    (void)unused;
    const clv_blob_frames shape = shape_of(CLV_BLOB_F32);
    static float frames[5][H * W];
    clv_stage_shift shifts[5];
    clv_stage *stage;
    draw(frames[0], 0, 0, 2, 1), draw(frames[1], 2, 3, 2, 2);
    for (size_t i = 0; i < H * W; ++i)
        frames[2][i] = (float)normal(), frames[3][i] = NAN;
    draw(frames[4], 4, 5, 2, 3);
    frames[4][H / 2 * W + 5] = NAN, frames[4][17 * W + W / 2] = INFINITY;
    EXPECT_OK(clv_stage_open(&shape, NULL, &stage));
    EXPECT_OK(clv_stage_push(stage, frames, 5, shifts));
    clv_stage_close(stage);
    assert_true(shifts[1].found && !shifts[2].found && !shifts[3].found && shifts[4].found);
    near(shifts[3].y, shifts[1].y, 0), near(shifts[2].x, shifts[1].x, 0);
    assert_true(isnan(shifts[2].y_err));
    near(shifts[4].y, 4, 0.05), near(shifts[4].x, 5, 0.05);
}

static void hot_pixels_do_not_hold_the_scene(void **unused)
{
    (void)unused;
    static float frames[2][H * W];
    draw(frames[0], 0, 0, 3, 1), draw(frames[1], 2.5, -1.5, 3, 2);
    for (size_t i = 0; i < 40; ++i)
        frames[0][i * 307 % (H * W)] += 3000, frames[1][i * 307 % (H * W)] += 3000;
    const clv_stage_shift found = measure(frames[0]);
    near(found.y, 2.5, 0.06), near(found.x, -1.5, 0.06);
}

static void types_and_strides_do_not_matter(void **unused)
{
    (void)unused;
    enum { PITCH = W + 3 };
    static float frames[2][H * W];
    static uint16_t words[2][H][PITCH];
    clv_stage_shift shifts[2];
    clv_stage *stage;
    draw(frames[0], 0, 0, 3, 1), draw(frames[1], 1.2, 0.7, 3, 2);
    memset(words, 0xAB, sizeof words);
    for (size_t t = 0; t < 2; ++t)
        for (size_t y = 0; y < H; ++y)
            for (size_t x = 0; x < W; ++x) {
                frames[t][y * W + x] = rintf(frames[t][y * W + x]);
                words[t][y][x] = (uint16_t)frames[t][y * W + x];
            }
    clv_blob_frames shape = shape_of(CLV_BLOB_U16);
    shape.row_stride = PITCH;
    EXPECT_OK(clv_stage_open(&shape, NULL, &stage));
    EXPECT_OK(clv_stage_push(stage, words[0], 1, shifts));
    EXPECT_OK(clv_stage_push(stage, words[1], 1, shifts + 1));
    clv_stage_close(stage);
    const clv_stage_shift found = measure(frames[0]);
    near(shifts[1].y, found.y, 0), near(shifts[1].x, found.x, 0);
}

/* A frame after many at one place follows them all, not the first alone. */
static void long_drifts_are_followed(void **unused)
{
    (void)unused;
    enum { T = 30 };
    const clv_blob_frames shape = shape_of(CLV_BLOB_F32);
    const clv_stage_options options = { .size = sizeof options, .memory = 5 };
    static float frames[T][H * W];
    clv_stage_shift shifts[T];
    clv_stage *stage;
    for (uint32_t t = 0; t < T; ++t)
        draw(frames[t], 0.37 * t, -0.21 * t, 3, t + 1);
    EXPECT_OK(clv_stage_open(&shape, &options, &stage));
    EXPECT_OK(clv_stage_push(stage, frames, T, shifts));
    clv_stage_close(stage);
    for (int t = 0; t < T; ++t)
        near(shifts[t].y, 0.37 * t, 0.1), near(shifts[t].x, -0.21 * t, 0.1);
}

static void pictures_are_shifted_back(void **unused)
{
    (void)unused;
    static float in[H * W], out[H * W];
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x)
            in[y * W + x] = (float)(0.02 * y * y - 0.3 * x + 0.01 * x * y);
    EXPECT_OK(clv_stage_restore(in, H, W, 3, -2, out));
    near((double)out[10 * W + 10], (double)in[13 * W + 8], 0);
    assert_true(isnan(out[(H - 3) * W + 20]) && !isnan(out[(H - 4) * W + 20]));
    assert_true(isnan(out[5 * W + 1]) && !isnan(out[5 * W + 2]));
    EXPECT_OK(clv_stage_restore(in, H, W, 1.25, 0.5, out));
    const double y = 41.25, x = 60.5; /* cubic kernels reproduce parabolas */
    near((double)out[40 * W + 60], 0.02 * y * y - 0.3 * x + 0.01 * x * y, 1e-3);
    EXPECT_OK(clv_stage_restore(in, H, W, 1e300, 0, out));
    assert_true(isnan(out[0]));
}

static void wrong_arguments_are_refused(void **unused)
{
    (void)unused;
    clv_blob_frames shape = shape_of(CLV_BLOB_F32);
    clv_stage *stage;
    clv_stage_shift shift;
    float pixel = 0, out;
    assert_int_equal(clv_stage_open(NULL, NULL, &stage), CLV_E_ARGUMENT);
    assert_int_equal(clv_stage_open(&shape, NULL, NULL), CLV_E_ARGUMENT);
    shape.type = (clv_blob_pixel)9;
    assert_int_equal(clv_stage_open(&shape, NULL, &stage), CLV_E_ARGUMENT);
    assert_null(stage);
    shape = shape_of(CLV_BLOB_U8), shape.height = 31;
    assert_int_equal(clv_stage_open(&shape, NULL, &stage), CLV_E_SHAPE);
    shape = shape_of(CLV_BLOB_U8), shape.row_stride = W - 1;
    assert_int_equal(clv_stage_open(&shape, NULL, &stage), CLV_E_SHAPE);
    shape = shape_of(CLV_BLOB_U8);
    EXPECT_OK(clv_stage_open(&shape, NULL, &stage));
    assert_int_equal(clv_stage_push(stage, NULL, 1, &shift), CLV_E_ARGUMENT);
    assert_int_equal(clv_stage_push(NULL, &pixel, 1, &shift), CLV_E_ARGUMENT);
    EXPECT_OK(clv_stage_push(stage, NULL, 0, NULL));
    clv_stage_close(stage), clv_stage_close(NULL);
    assert_int_equal(clv_stage_restore(&pixel, 1, 1, NAN, 0, &out), CLV_E_ARGUMENT);
    assert_int_equal(clv_stage_restore(&pixel, 0, 1, 0, 0, &out), CLV_E_SHAPE);
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    const clv_blob_frames shape = shape_of(CLV_BLOB_U8);
    clv_stage *stage;
    unsigned long k = 1;
    clv_status status;
    do {
        clv_alloc_fail_at(k++);
        status = clv_stage_open(&shape, NULL, &stage);
        clv_alloc_fail_at(0);
        assert_true(status == CLV_OK ? stage != NULL : status == CLV_E_MEMORY && !stage);
        if (status) clv_stage_close(stage);
    } while (status && k < 100);
    assert_int_equal(status, CLV_OK);
    assert_true(k > 5);
    clv_stage_close(stage);
}

static void builds_without_the_library_say_so(void **unused)
{
    (void)unused;
    const clv_blob_frames shape = shape_of(CLV_BLOB_U8);
    clv_stage *stage;
    assert_int_equal(clv_stage_open(&shape, NULL, &stage), CLV_E_UNSUPPORTED);
    assert_null(stage);
    assert_non_null(strstr(clv_error_message(), "libkissfft-dev"));
}

int main(void)
{
    const struct CMUnitTest without[] = {
        cmocka_unit_test(builds_without_the_library_say_so),
        cmocka_unit_test(pictures_are_shifted_back),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_are_those_of_the_formula),
        cmocka_unit_test(known_shifts_are_found),
        cmocka_unit_test(noise_makes_errors_as_told),
        cmocka_unit_test(scenes_without_structure_are_told),
        cmocka_unit_test(hot_pixels_do_not_hold_the_scene),
        cmocka_unit_test(types_and_strides_do_not_matter),
        cmocka_unit_test(long_drifts_are_followed),
        cmocka_unit_test(pictures_are_shifted_back),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    if (!clv_stage_available()) return cmocka_run_group_tests(without, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

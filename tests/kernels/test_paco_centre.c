/* SPDX-License-Identifier: Apache-2.0 */
/* cl/patch/centre.cl against float64: D = (cube - cube[0]) * scale - mean, and the state. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAD = 16 };

static const double EPS = 0x1p-24; /* half a unit in the last place */

/* What the kernel leaves of a pixel, and how far it may be off: a rounding for each difference, for
 * each step of the sum, for the mean and for the last difference. */
static uint8_t centre_pixel(const stage *s, size_t row, size_t x, double *want, double *allowed)
{
    const size_t frames = s->plan->in.frames;
    const double scale = s->plan->scale, first = *test_cube_at(&s->cube, 0, row, x);
    double sum = 0, sizes = 0, weights = 0;
    bool finite = true, still = true;
    for (size_t l = 0; l < frames; ++l) {
        const double value = *test_cube_at(&s->cube, l, row, x);
        want[l] = (value - first) * scale;
        finite = finite && isfinite(value);
        still = still && value == first;
        const double weight = (double)s->plan->turn[l].weight;
        sum += weight * want[l], weights += weight;
        sizes += weight * fabs(want[l]);
    }
    const double mean = sum / weights, n = (double)frames;
    for (size_t l = 0; l < frames; ++l) {
        const double change = want[l];
        want[l] = finite && !still ? (change - mean) * (double)s->plan->turn[l].gain : 0;
        allowed[l] = EPS * (fabs(change) + (1 + (2 * n + 2) / weights) * sizes + 2 * fabs(want[l]));
    }
    return !finite ? CLV_PIXEL_NOT_FINITE : still ? CLV_PIXEL_CONSTANT : CLV_PIXEL_GOOD;
}

static void check_row(const stage *s, size_t row, const float *D, const uint8_t *state)
{
    const size_t frames = s->plan->in.frames, width = s->plan->in.width, pitch = s->f.pitch;
    double *want = clv_zalloc(frames * pitch, sizeof *want), *allowed;
    double *pixel = clv_alloc(2 * frames, sizeof *pixel);
    allowed = clv_zalloc(frames * pitch, sizeof *allowed);
    assert_true(want && allowed && pixel);
    for (size_t p = 0; p < pitch; ++p) {
        uint8_t expected = CLV_PIXEL_GOOD;
        if (p >= PAD && p < PAD + width)
            expected = centre_pixel(s, s->c.band0 + row, p - PAD, pixel, pixel + frames);
        else
            memset(pixel, 0, 2 * frames * sizeof *pixel); /* padding is zero, exactly */
        for (size_t l = 0; l < frames; ++l)
            want[l * pitch + p] = pixel[l], allowed[l * pitch + p] = pixel[frames + l];
        if (state[row * pitch + p] != expected)
            fail_msg("state of row %zu, column %zu is %d, expected %d", row, p,
                     state[row * pitch + p], expected);
    }
    test_expect_within("D", want, D + row * frames * pitch, allowed, frames * pitch);
    clv_free(want), clv_free(allowed), clv_free(pixel);
}

static void run_and_check(stage *s, size_t offset)
{
    const clv_paco_input *in = &s->plan->in;
    const size_t samples = s->c.band_rows * in->frames * s->f.pitch;
    const size_t from = s->c.band0 * in->row_stride;
    float *moved = clv_zalloc(offset + s->cube.floats - from, sizeof *moved);
    assert_non_null(moved);
    memcpy(moved + offset, s->cube.cube + from, (s->cube.floats - from) * sizeof *moved);
    test_array cube =
        test_array_from(s->device, moved, (offset + s->cube.floats - from) * sizeof(float));
    test_array D = test_array_new(s->device, samples * sizeof(float));
    test_array turn = test_array_from(s->device, s->plan->turn, in->frames * sizeof *s->plan->turn);
    test_array state = test_array_new(s->device, s->c.band_rows * s->f.pitch);
    const clv_arg args[] = {
        clv_arg_buffer(cube.buffer), clv_arg_u64(offset),         clv_arg_u64(in->frame_stride),
        clv_arg_u64(in->row_stride), clv_arg_buffer(D.buffer),    clv_arg_buffer(state.buffer),
        stage_u32(s->c.band_rows),   stage_u32(in->frames),       stage_u32(in->width),
        stage_u32(s->f.pitch),       clv_arg_f32(s->plan->scale), clv_arg_buffer(turn.buffer),
    };
    stage_launch(s, CLV_PACO_CENTRE, s->f.pitch / s->f.lanes, s->c.band_rows, 0, args,
                 CLV_LEN(args));
    test_array_read(&D);
    test_array_read(&state);
    for (size_t row = 0; row < s->c.band_rows; ++row)
        check_row(s, row, (const float *)(void *)D.host, state.host);
    test_array_free(&cube), test_array_free(&D), test_array_free(&state), test_array_free(&turn);
    clv_free(moved);
}

/* Every kind of pixel that there is, also on the edges. */
static void spoil(test_cube *cube)
{
    const size_t last = cube->in.frames - 1, h = cube->in.height, w = cube->in.width;
    *test_cube_at(cube, 0, 1, 2) = NAN;
    *test_cube_at(cube, last, 0, w - 1) = NAN;
    *test_cube_at(cube, last / 2, h - 1, 0) = INFINITY;
    *test_cube_at(cube, last, 2, 3) = -INFINITY;
    for (size_t l = 0; l <= last; ++l) {
        *test_cube_at(cube, l, 3, 1) = 7; /* dead, and a neighbour that changes once */
        *test_cube_at(cube, l, 3, 2) = 7;
        *test_cube_at(cube, l, 4, w - 1) = 0;
    }
    *test_cube_at(cube, last, 3, 2) = nextafterf(7, 8);
    test_cube_settle(cube);
}

static const struct {
    size_t frames, height, width, row_padding, frame_padding, offset;
    double unit, level;
} cases[] = {
    { 2, 9, 9, 0, 0, 0, 1, 0 },        /* smallest */
    { 3, 10, 17, 3, 5, 7, 1, 0 },      /* one more than a vector */
    { 7, 11, 63, 0, 2, 1, 1e-17, 0 },  /* one less than a work-group */
    { 8, 9, 65, 1, 0, 0, 1e14, 0 },    /* one more */
    { 50, 9, 16, 0, 0, 3, 1, 2e4 },    /* a level that would swallow the changes */
    { 300, 9, 33, 2, 0, 0, -1, -300 }, /* long */
};

static void check_form(test_device *device, const stage_form *form)
{
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        if (test_left_out(device, device->slow && i + 1 == CLV_LEN(cases), "the long case"))
            continue;
        if (stage_is_too_much(device, cases[i].frames * cases[i].height * cases[i].width)) continue;
        const stage_shape shape = { .cube = { .seed = 11 + i,
                                              .frames = cases[i].frames,
                                              .height = cases[i].height,
                                              .width = cases[i].width,
                                              .row_padding = cases[i].row_padding,
                                              .frame_padding = cases[i].frame_padding,
                                              .unit = cases[i].unit,
                                              .level = cases[i].level,
                                              .weighted = i % 3 == 1 },
                                    .options = { .size = sizeof(clv_paco_options),
                                                 .psf_mode = CLV_PSF_FIXED } };
        stage s;
        stage_open(&s, device, form, &shape);
        run_and_check(&s, cases[i].offset);
        spoil(&s.cube);
        run_and_check(&s, cases[i].offset);
        stage_close(&s);
    }
}

static void centres_and_judges_every_pixel(void **state)
{
    (void)state;
    stage_each_item_form(check_form);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(centres_and_judges_every_pixel) };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco_centre", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests spots on the rims of a frame, where nothing beyond the rim may count. In memory, other rows, and those of
 * other scales and frames, lie there. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/blob/blob_plan.h"

#include <cleave/blob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES = 2, HEIGHT = 96, WIDTH = 128, MIDDLE = 48, PLACES = 3 };

/* A spot in the middle of a vector of lanes, and about two borders of vectors. */
static const size_t places[PLACES] = { 24, 64, 95 };

static uint16_t pixels[FRAMES][HEIGHT][WIDTH];

static void add_spot(size_t frame, size_t cy, size_t cx, double sigma, double peak)
{
    for (size_t y = 0; y < HEIGHT; ++y)
        for (size_t x = 0; x < WIDTH; ++x) {
            const double dy = (double)y - (double)cy, dx = (double)x - (double)cx;
            const double far = (dy * dy + dx * dx) / (2 * sigma * sigma);
            pixels[frame][y][x] = (uint16_t)(pixels[frame][y][x] + peak * exp(-far));
        }
}

/* Dim and wide above, bright and narrow below in the first frame: the last row of the scale before
 * outshines them. In the second the other way round: the first row of the next scale does. On the
 * left and on the right likewise, by the end of the row above and the start of the row below. */
static void make_frames(void)
{
    for (size_t f = 0; f < FRAMES; ++f)
        for (size_t y = 0; y < HEIGHT; ++y)
            for (size_t x = 0; x < WIDTH; ++x)
                pixels[f][y][x] = 1000;
    for (size_t i = 0; i < PLACES; ++i) {
        add_spot(0, 0, places[i], 5, 6000), add_spot(0, HEIGHT - 1, places[i], 2, 50000);
        add_spot(1, 0, places[i], 6, 50000), add_spot(1, HEIGHT - 1, places[i], 2, 9000);
    }
    add_spot(0, MIDDLE, 0, 4, 6000), add_spot(0, MIDDLE - 1, WIDTH - 1, 4, 30000);
    add_spot(1, MIDDLE + 1, 0, 4, 30000), add_spot(1, MIDDLE, WIDTH - 1, 4, 6000);
}

static bool has(const clv_spot *spots, size_t count, const clv_spot *like)
{
    for (size_t i = 0; i < count; ++i)
        if (spots[i].frame == like->frame && fabsf(spots[i].y - like->y) < 1e-2f &&
            fabsf(spots[i].x - like->x) < 1e-2f &&
            fabsf(spots[i].response - like->response) < 1e-4f * like->response)
            return true;
    return false;
}

/* The spots that the plain C reference finds, dim ones on both rims among them. */
static void check(test_device *device)
{
    const clv_blob_frames shape = {
        sizeof(clv_blob_frames), CLV_BLOB_U16, FRAMES, HEIGHT, WIDTH, 0, 0
    };
    const double largest[] = { 6, 14 }; /* by taps; and by cosine transforms on cores */
    clv_context *plain = test_plain_context();
    for (size_t k = 0; k < CLV_LEN(largest); ++k) {
        const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                     .max_sigma_px = largest[k],
                                     .num_sigma = 4,
                                     .threshold_given = true,
                                     .threshold = 500,
                                     .keep_overlapping = true };
        clv_blob_plan *plan;
        clv_spot *want, *got;
        size_t wanted, found, rims[FRAMES][2] = { { 0 } }, sides[FRAMES][2] = { { 0 } };
        if (test_left_out(device, device->slow && k, "large sigmas: minutes")) break;
        EXPECT_OK(clv_blob_plan_create(&shape, &o, &plan));
        assert_true(plan->waves.used == (k == 1));
        clv_blob_plan_free(plan);
        EXPECT_OK(clv_blobs(plain, &shape, pixels, &o, &want, &wanted, NULL, NULL));
        EXPECT_OK(clv_blobs(device->context, &shape, pixels, &o, &got, &found, NULL, NULL));
        for (size_t i = 0; i < wanted; ++i) {
            if (want[i].y < 1 || want[i].y > HEIGHT - 2) ++rims[want[i].frame][want[i].y > 1];
            if (want[i].x < 1 || want[i].x > WIDTH - 2) ++sides[want[i].frame][want[i].x > 1];
            if (!has(got, found, &want[i]))
                fail_msg("%s: no spot in frame %zu at %.1f, %.1f of response %g", device->name,
                         (size_t)want[i].frame, (double)want[i].y, (double)want[i].x,
                         (double)want[i].response);
        }
        assert_int_equal(found, wanted);
        for (size_t f = 0; f < FRAMES; ++f) /* else nothing is tested */
            assert_true(rims[f][0] >= PLACES && rims[f][1] >= PLACES && sides[f][0] && sides[f][1]);
        free(want), free(got);
    }
    clv_context_free(plain);
}

static void nothing_beyond_the_rim_counts(void **state)
{
    (void)state;
    make_frames();
    test_each_device(check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_beyond_the_rim_counts) };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("blob_rim", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests thresholds that follow the noise, which may differ from place to place and may be skewed: empty frames stay
 * empty, spots are found, single pixels are not, and widths and close pairs are measured correctly. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/blob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 256, STEP = 24 };

static uint16_t frame[SIDE][SIDE];
static double light[SIDE][SIDE];

static double uniform(uint64_t *state)
{
    return ((double)(test_random(state) & 0xffffff) + 0.5) / 0x1000000;
}

/* Photon counts: exact for few, Gaussian for many. */
static double counts_of(uint64_t *state, double mean)
{
    if (mean > 60)
        return floor(mean +
                     sqrt(mean) * sqrt(-2 * log(uniform(state))) *
                         cos(6.283185307179586 * uniform(state)) +
                     0.5);
    double n = 0;
    for (double p = uniform(state), end = exp(-mean); p > end; p *= uniform(state))
        ++n;
    return n;
}

static void fill(double left, double right)
{
    for (size_t y = 0; y < SIDE; ++y)
        for (size_t x = 0; x < SIDE; ++x)
            light[y][x] = left + (right - left) * (double)x / (SIDE - 1);
}

static void expose(uint64_t *state)
{
    for (size_t y = 0; y < SIDE; ++y)
        for (size_t x = 0; x < SIDE; ++x)
            frame[y][x] = (uint16_t)counts_of(state, light[y][x]);
}

/* A Gaussian integrated over the pixels. */
static void add_spot(double cy, double cx, double peak, double sigma)
{
    const double r = 1 / (sigma * sqrt(2));
    for (size_t y = 0; y < SIDE; ++y)
        for (size_t x = 0; x < SIDE; ++x) {
            const double dy = (double)y - cy, dx = (double)x - cx;
            if (fabs(dy) > 6 * sigma || fabs(dx) > 6 * sigma) continue;
            light[y][x] += peak * 1.5707963267948966 * sigma * sigma *
                           (erf((dy + 0.5) * r) - erf((dy - 0.5) * r)) *
                           (erf((dx + 0.5) * r) - erf((dx - 0.5) * r));
        }
}

static size_t find(test_device *device, double sigmas, clv_spot **spots, clv_blob_summary *summary)
{
    const clv_blob_frames shape = { sizeof shape, CLV_BLOB_U16, 1, SIDE, SIDE, 0, 0 };
    const clv_blob_options o = { .size = sizeof o,
                                 .threshold_sigma_given = sigmas > 0,
                                 .threshold_sigma = sigmas };
    size_t count;
    EXPECT_OK(clv_blobs(device->context, &shape, frame, &o, spots, &count, summary, NULL));
    return count;
}

static const clv_spot *spot_at(const clv_spot *spots, size_t count, double y, double x)
{
    for (size_t i = 0; i < count; ++i)
        if (hypot((double)spots[i].y - y, (double)spots[i].x - x) < 1.5) return &spots[i];
    return NULL;
}

static void empty_frames_stay_empty(test_device *device)
{
    static const struct {
        const char *name;
        double left, right;
    } scenes[] = { { "few photons", 0.5, 0.5 },
                   { "ten photons", 10, 10 },
                   { "many photons", 1000, 1000 },
                   { "uneven light", 5, 200 } };
    uint64_t state = 11;
    for (size_t i = 0; i < CLV_LEN(scenes); ++i) {
        size_t found = 0;
        for (int round = 0; round < 4; ++round) { /* 0.26 million pixels */
            clv_spot *spots;
            fill(scenes[i].left, scenes[i].right);
            expose(&state);
            found += find(device, 5, &spots, NULL);
            free(spots);
        }
        if (found > 4) fail_msg("%s: %zu false spots", scenes[i].name, found);
    }
}

/* Where the light jumps, the responses on the bright side are positive all along the edge; spots there still count. */
static void edges_are_no_spots(test_device *device)
{
    static const double slope[] = { 0, 0.4, -1.3 }; /* of the edge: columns per row */
    uint64_t state = 21;
    size_t empty = 0, put = 0, got = 0;
    for (size_t i = 0; i < 2 * CLV_LEN(slope); ++i) {
        clv_spot *spots;
        const double tilt = slope[i / 2], bright = i % 2 ? 80 : 40;
        for (size_t y = 0; y < SIDE; ++y)
            for (size_t x = 0; x < SIDE; ++x)
                light[y][x] =
                    (double)x - SIDE / 2 - tilt * ((double)y - SIDE / 2) > 0 ? bright : 20;
        expose(&state);
        empty += find(device, 5, &spots, NULL);
        free(spots);
        for (size_t y = STEP / 2; y < SIDE; y += STEP) {
            const double x = SIDE / 2 + tilt * ((double)y - SIDE / 2) + 3;
            if (x > 8 && x < SIDE - 8) add_spot((double)y, x, 8 * sqrt(bright), 1.5);
        }
        expose(&state);
        const size_t count = find(device, 5, &spots, NULL);
        for (size_t y = STEP / 2; y < SIDE; y += STEP) {
            const double x = SIDE / 2 + tilt * ((double)y - SIDE / 2) + 3;
            if (x > 8 && x < SIDE - 8) ++put, got += spot_at(spots, count, (double)y, x) != NULL;
        }
        free(spots);
    }
    if (empty > 8) fail_msg("%zu false spots along edges", empty);
    if ((double)got < 0.95 * (double)put) fail_msg("%zu of %zu spots beside edges", got, put);
}

/* Peaks of eight times the noise of their place, all over the frame, under uneven light. */
static void spots_are_found_everywhere(test_device *device)
{
    uint64_t state = 5;
    clv_spot *spots;
    size_t put = 0, got = 0;
    fill(5, 200);
    for (size_t y = STEP; y + STEP / 2 < SIDE; y += STEP)
        for (size_t x = STEP; x + STEP / 2 < SIDE; x += STEP, ++put)
            add_spot((double)y + 0.3, (double)x - 0.2, 8 * sqrt(light[y][x]), 1.5);
    expose(&state);
    const size_t count = find(device, 0, &spots, NULL);
    for (size_t y = STEP; y + STEP / 2 < SIDE; y += STEP)
        for (size_t x = STEP; x + STEP / 2 < SIDE; x += STEP)
            got += spot_at(spots, count, (double)y + 0.3, (double)x - 0.2) != NULL;
    free(spots);
    if ((double)got < 0.98 * (double)put || count > got + 1)
        fail_msg("%zu spots put, %zu of them found, %zu in all", put, got, count);
}

static void single_pixels_are_no_spots(test_device *device)
{
    uint64_t state = 7;
    clv_spot *spots;
    clv_blob_summary summary;
    fill(100, 100);
    add_spot(100.2, 60.4, 300, 1);
    expose(&state);
    for (size_t i = 0; i < 40; ++i)
        frame[12 + 23 * (i / 8) + 60 * (i / 24)][9 + 30 * (i % 8)] += i % 2 ? 150 : 3000;
    const size_t count = find(device, 5, &spots, &summary);
    assert_non_null(spot_at(spots, count, 100.2, 60.4));
    free(spots);
    if (count > 3 || summary.hot_pixels < 38)
        fail_msg("%zu spots and %zu hot pixels, expected 1 and 40", count, summary.hot_pixels);
}

static void widths_are_right(test_device *device)
{
    static const double sigma[] = { 1.2, 1.5, 2, 2.5 };
    uint64_t state = 9;
    for (size_t i = 0; i < CLV_LEN(sigma); ++i) {
        clv_spot *spots;
        double sum = 0, found = 0;
        size_t there = 0;
        fill(100, 100);
        for (size_t y = STEP; y + STEP / 2 < SIDE; y += STEP)
            for (size_t x = STEP; x + STEP / 2 < SIDE; x += STEP, ++there)
                add_spot((double)y + uniform(&state) - 0.5, (double)x + uniform(&state) - 0.5, 300,
                         sigma[i]);
        expose(&state);
        const size_t count = find(device, 6, &spots, NULL);
        for (size_t s = 0; s < count; ++s)
            sum += (double)spots[s].sigma, ++found;
        free(spots);
        if (!(fabs(sum / found - sigma[i]) < 0.04 * sigma[i]))
            fail_msg("spots of sigma %g have %g on average", sigma[i], sum / found);
        if (count > there + there / 100 + 1)
            fail_msg("%zu spots of sigma %g are taken for %zu", there, sigma[i], count);
    }
}

/* Pairs of sigma 1.5 in all directions, at other places of the pixels in each frame. */
static void close_pairs_stay_two(test_device *device, double distance, double sky, double peak,
                                 double least)
{
    enum { FRAMES = 4 };
    uint64_t state = 3;
    size_t pairs = 0, apart = 0, count = 0;
    for (size_t f = 0; f < FRAMES; ++f) {
        clv_spot *spots;
        const size_t before = pairs;
        const double part = 0.25 * (double)f;
        fill(sky, sky);
        for (size_t y = STEP; y + STEP / 2 < SIDE; y += STEP)
            for (size_t x = STEP; x + STEP / 2 < SIDE; x += STEP, ++pairs) {
                const double way = 0.1 * (double)(pairs % 31), dy = distance / 2 * sin(way),
                             dx = distance / 2 * cos(way);
                add_spot((double)y + part - dy, (double)x + part - dx, peak, 1.5);
                add_spot((double)y + part + dy, (double)x + part + dx, peak, 1.5);
            }
        expose(&state);
        const size_t found = find(device, 6, &spots, NULL);
        pairs = before, count += found;
        for (size_t y = STEP; y + STEP / 2 < SIDE; y += STEP)
            for (size_t x = STEP; x + STEP / 2 < SIDE; x += STEP, ++pairs) {
                const double way = 0.1 * (double)(pairs % 31), dy = distance / 2 * sin(way),
                             dx = distance / 2 * cos(way);
                const clv_spot *a = spot_at(spots, found, (double)y + part - dy,
                                            (double)x + part - dx),
                               *b = spot_at(spots, found, (double)y + part + dy,
                                            (double)x + part + dx);
                apart += a && b && a != b;
            }
        free(spots);
    }
    if ((double)apart < least * (double)pairs)
        fail_msg("%zu of %zu pairs %g pixels apart are two", apart, pairs, distance);
    if ((double)count > 2.01 * (double)pairs) fail_msg("%zu spots of %zu pairs", count, pairs);
}

static void check(test_device *device)
{
    if (test_left_out(device, device->slow || device->tiny, "noise: many large frames")) return;
    empty_frames_stay_empty(device);
    edges_are_no_spots(device);
    spots_are_found_everywhere(device);
    single_pixels_are_no_spots(device);
    widths_are_right(device);
    close_pairs_stay_two(device, 5, 100, 300, 0.95);
    close_pairs_stay_two(device, 4, 100, 160, 0.9);
    close_pairs_stay_two(device, 4, 25, 40, 0.7);
    close_pairs_stay_two(device, 5, 25, 40, 0.98);
}

static void noise_is_known_for_each_place(void **state)
{
    (void)state;
    test_each_device(check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(noise_is_known_for_each_place) };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("blob_noise", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares clv_blobs on every device with its float64 reference: the spots must be the same for every size and pixel
 * type, and the bytes must not depend on how the frames are split. */
#include "device.h"
#include "mallocs.h"
#include "test.h"

#include "base/alloc.h"
#include "host/blob/blob_plan.h"

#include <cleave/blob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct movie {
    clv_blob_frames shape;
    void *pixels;
    size_t bytes;
} movie;

typedef struct movie_kind {
    clv_blob_pixel type;
    size_t frames, height, width, padding; /* behind each row */
    size_t spots;                          /* in a frame */
    uint64_t seed;
} movie_kind;

/* Spots of several widths on noise; whole numbers in every type. */
static movie make_movie(const movie_kind *k)
{
    static const size_t bytes[] = { 1, 2, 2, 4 };
    const size_t row = k->width + k->padding, count = k->frames * k->height * row;
    movie m = { .shape = { .size = sizeof(clv_blob_frames),
                           .type = k->type,
                           .frames = k->frames,
                           .height = k->height,
                           .width = k->width,
                           .row_stride = row,
                           .frame_stride = row * k->height },
                .bytes = count * bytes[k->type] };
    uint64_t state = k->seed;
    double *values = clv_alloc(count, sizeof *values);
    m.pixels = clv_alloc_pages(m.bytes);
    assert_true(values && m.pixels);
    for (size_t i = 0; i < count; ++i)
        values[i] = 40 + floor(test_uniform(&state, 0, 12));
    for (size_t i = 0; i < k->frames * k->spots; ++i) {
        const double cy = test_uniform(&state, 0, (double)k->height),
                     cx = test_uniform(&state, 0, (double)k->width),
                     sigma = test_uniform(&state, 1, 3), peak = test_uniform(&state, 50, 180);
        double *frame = values + i / k->spots * row * k->height;
        for (size_t y = 0; y < k->height; ++y)
            for (size_t x = 0; x < k->width; ++x) {
                const double dy = (double)y - cy, dx = (double)x - cx;
                frame[y * row + x] += floor(peak * exp(-(dy * dy + dx * dx) / (2 * sigma * sigma)));
            }
    }
    for (size_t i = 0; i < count; ++i) {
        const double v = i % row >= k->width ? 255 : fmin(values[i], 250); /* poison the padding */
        if (k->type == CLV_BLOB_U8) ((uint8_t *)m.pixels)[i] = (uint8_t)v;
        if (k->type == CLV_BLOB_U16) ((uint16_t *)m.pixels)[i] = (uint16_t)(v * 200);
        if (k->type == CLV_BLOB_I16) ((int16_t *)m.pixels)[i] = (int16_t)(v * 100 - 9000);
        if (k->type == CLV_BLOB_F32) ((float *)m.pixels)[i] = (float)v / 64;
    }
    clv_free(values);
    return m;
}

typedef struct answer {
    clv_spot *spots;
    size_t count;
    clv_blob_summary summary;
} answer;

static answer find(clv_context *context, const movie *m, const clv_blob_options *options)
{
    answer a = { 0 };
    EXPECT_OK(
        clv_blobs(context, &m->shape, m->pixels, options, &a.spots, &a.count, &a.summary, NULL));
    return a;
}

static answer find_by_reference(const movie *m, const clv_blob_options *options)
{
    clv_context *context = test_plain_context();
    const answer a = find(context, m, options);
    clv_context_free(context);
    return a;
}

static bool is_near(const clv_spot *a, const clv_spot *b)
{
    return a->frame == b->frame && fabsf(a->y - b->y) <= 1e-3f && fabsf(a->x - b->x) <= 1e-3f &&
           fabsf(a->sigma - b->sigma) <= 2e-3f * b->sigma &&
           fabsf(a->response - b->response) <= 1e-5f * b->response + 1e-6f;
}

/* Every spot has its like, but for those within 1e-4 of the threshold, of which there may be a
 * few. */
static void expect_same(const char *device, const char *what, const answer *got, const answer *want)
{
    size_t missing = 0;
    for (size_t i = 0; i < want->count; ++i) {
        bool found = false;
        for (size_t j = 0; j < got->count && !found; ++j)
            found = is_near(&got->spots[j], &want->spots[i]);
        missing += !found;
    }
    if (missing * 500 > want->count ||
        llabs((long long)got->count - (long long)want->count) * 500 > (long long)want->count)
        fail_msg("%s: %s: %zu of %zu spots are missing, %zu were found", device, what, missing,
                 want->count, got->count);
}

static void check_case(test_device *device, const char *what, const movie_kind *kind,
                       const clv_blob_options *options, size_t least)
{
    const movie m = make_movie(kind);
    answer want = find_by_reference(&m, options), got = find(device->context, &m, options);
    if (want.count < least) fail_msg("%s: only %zu spots: nothing is tested", what, want.count);
    expect_same(device->name, what, &got, &want);
    free(want.spots), free(got.spots), clv_free(m.pixels);
}

static void matches_at_every_size(test_device *device)
{
    static const size_t sides[][2] = { { 1, 1 },   { 1, 40 },  { 40, 1 },  { 2, 3 },
                                       { 15, 17 }, { 16, 16 }, { 49, 33 }, { 70, 129 } };
    const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                 .threshold_given = true,
                                 .threshold = 800 };
    for (size_t i = 0; i < CLV_LEN(sides); ++i) {
        const movie_kind kind = { CLV_BLOB_U16, 2, sides[i][0], sides[i][1], i % 3, 3, 10 + i };
        check_case(device, "sizes", &kind, &o, sides[i][0] * sides[i][1] > 100 ? 2 : 0);
    }
    (void)test_left_out(device, device->tiny, "columns after 90");
    const movie_kind wide = { CLV_BLOB_U16, 1, 37, device->tiny ? 90 : 1500, 5, 30, 33 };
    check_case(device, "several tiles", &wide, &o, device->tiny ? 2 : 15);
}

static void matches_in_every_type(test_device *device)
{
    for (int type = CLV_BLOB_U8; type <= CLV_BLOB_F32; ++type) {
        const movie_kind kind = { (clv_blob_pixel)type, 3, 61, 75, 1, 10, 50 + (uint64_t)type };
        /* one scale: with five, some compilers take seconds for each of the types */
        const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                     .num_sigma = 1,
                                     .min_sigma_px = 1.7 };
        check_case(device, "types", &kind, &o, 10);
    }
}

static void matches_with_every_option(test_device *device)
{
    const movie_kind kind = { CLV_BLOB_U16, 3, 64, 72, 0, 12, 77 };
    const clv_blob_options cases[] = {
        { .size = sizeof(clv_blob_options), .dog = true },
        { .size = sizeof(clv_blob_options), .threshold_sigma_given = true, .threshold_sigma = 5 },
        { .size = sizeof(clv_blob_options),
          .dog = true,
          .threshold_sigma_given = true,
          .threshold_sigma = 5 },
        { .size = sizeof(clv_blob_options),
          .taps = CLV_BLOB_TAPS_SCIPY,
          .threshold_given = true,
          .threshold = 500 },
        { .size = sizeof(clv_blob_options),
          .invert = true,
          .threshold_given = true,
          .threshold = 900 },
        { .size = sizeof(clv_blob_options), .num_sigma = 1, .min_sigma_px = 2 },
        { .size = sizeof(clv_blob_options), .num_sigma = 9, .max_sigma_px = 7, .log_scale = true },
        { .size = sizeof(clv_blob_options),
          .exclude_border = 9,
          .keep_overlapping = true,
          .subpixel = CLV_BLOB_SUBPIXEL_NONE },
        { .size = sizeof(clv_blob_options),
          .movie_scope = true,
          .threshold_rel_given = true,
          .threshold_rel = 0.3 },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        char what[32];
        snprintf(what, sizeof what, "option %zu", i);
        check_case(device, what, &kind, &cases[i], 3);
    }
}

/* Ladders for which cores take cosine transforms, of lengths with all their factors. */
static void matches_with_large_sigmas(test_device *device)
{
    static const size_t sides[][2] = { { 96, 128 }, { 90, 125 } };
    const clv_blob_options cases[] = {
        { .size = sizeof(clv_blob_options), .max_sigma_px = 14, .num_sigma = 4 },
        { .size = sizeof(clv_blob_options),
          .max_sigma_px = 60,
          .dog = true,
          .threshold_given = true,
          .threshold = 500 },
        { .size = sizeof(clv_blob_options),
          .max_sigma_px = 14,
          .threshold_sigma_given = true,
          .threshold_sigma = 4 },
    };
    if (test_left_out(device, device->slow, "large sigmas: no cosine form there")) return;
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        for (size_t s = 0; s < CLV_LEN(sides); ++s) {
            char what[40];
            const movie_kind kind = { CLV_BLOB_U16, 2, sides[s][0], sides[s][1], 3, 9, 90 + s };
            snprintf(what, sizeof what, "large sigmas %zu, sides %zu", i, s);
            clv_blob_plan *plan;
            const clv_blob_frames shape = { .size = sizeof(clv_blob_frames),
                                            .frames = 1,
                                            .height = sides[s][0],
                                            .width = sides[s][1] };
            EXPECT_OK(clv_blob_plan_create(&shape, &cases[i], &plan));
            assert_true(plan->waves.used);
            clv_blob_plan_free(plan);
            check_case(device, what, &kind, &cases[i], 2);
        }
}

/* More maxima than a list has room for: nothing is lost. */
static void full_lists_are_done_again(test_device *device)
{
    const movie_kind kind = { CLV_BLOB_U16, 2, 150, 170, 0, 0, 5 };
    const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                 .threshold_given = true,
                                 .keep_overlapping = true };
    const movie m = make_movie(&kind);
    answer want = find_by_reference(&m, &o), got = find(device->context, &m, &o);
    assert_true(want.count > 2 * 1024);
    assert_true(got.summary.reruns == 2);
    expect_same(device->name, "full lists", &got, &want);
    free(want.spots), free(got.spots), clv_free(m.pixels);
}

static void bad_pixels_spoil_their_neighbours_only(test_device *device)
{
    const movie_kind kind = { CLV_BLOB_F32, 3, 60, 64, 0, 10, 9 };
    movie m = make_movie(&kind);
    float *v = m.pixels;
    const size_t plane = kind.height * kind.width;
    v[20 * kind.width + 30] = NAN, v[plane + 5] = INFINITY, v[plane + 700] = -INFINITY;
    for (size_t i = 2 * plane; i < 3 * plane; ++i)
        v[i] = NAN;
    const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                 .num_sigma = 1,
                                 .min_sigma_px = 1.7 };
    answer want = find_by_reference(&m, &o), got = find(device->context, &m, &o);
    expect_same(device->name, "bad pixels", &got, &want);
    assert_true(got.summary.bad_pixels == plane + 3 && got.count > 8);
    for (size_t i = 0; i < got.count; ++i) {
        const clv_spot *s = &got.spots[i];
        assert_true(s->frame < 2 && isfinite(s->mass) && isfinite(s->snr) && isfinite(s->y));
        if (s->frame == 0) assert_true(hypotf(s->y - 20, s->x - 30) > s->sigma);
    }
    free(want.spots), free(got.spots), clv_free(m.pixels);
}

/* Plateaus, constants, one bright pixel: one spot or none, never two. */
static void ties_give_one_spot(test_device *device)
{
    enum { SIDE = 48 };
    static uint16_t v[4 * SIDE * SIDE];
    const movie m = { { .size = sizeof(clv_blob_frames),
                        .type = CLV_BLOB_U16,
                        .frames = 4,
                        .height = SIDE,
                        .width = SIDE },
                      v,
                      0 };
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        v[SIDE * SIDE + i] = 60000; /* frame 0 is zero, frame 1 constant */
    v[2 * SIDE * SIDE + 20 * SIDE + 17] = 50000;
    for (size_t y = 0; y < 2; ++y) /* two pixels high and wide: four equal maxima */
        for (size_t x = 0; x < 2; ++x)
            v[3 * SIDE * SIDE + (30 + y) * SIDE + 12 + x] = 40000;
    const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                 .keep_overlapping = true,
                                 .subpixel = CLV_BLOB_SUBPIXEL_NONE,
                                 .threshold_given = true,
                                 .threshold = 100 };
    answer got = find(device->context, &m, &o);
    size_t in[4] = { 0 };
    for (size_t i = 0; i < got.count; ++i)
        if (got.spots[i].response > 3000) ++in[got.spots[i].frame];
    assert_int_equal(in[0] + in[1], 0);
    assert_int_equal(in[2], 1);
    assert_int_equal(in[3], 1);
    free(got.spots);
}

/* A bar from corner to corner: along it responses are equal, or differ by rounding. */
static void a_ridge_is_no_row_of_spots(test_device *device)
{
    enum { SIDE = 128, HALF = 6 };
    static uint16_t v[SIDE * SIDE];
    const movie m = { { .size = sizeof(clv_blob_frames),
                        .type = CLV_BLOB_U16,
                        .frames = 1,
                        .height = SIDE,
                        .width = SIDE },
                      v,
                      0 };
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        v[i] = labs((long)(i / SIDE) - (long)(i % SIDE)) < HALF ? 40000 : 1000;
    const double largest[] = { 5, 14 }; /* by taps, and where cores take cosine transforms */
    if (test_left_out(device, device->slow, "a ridge: minutes")) return;
    for (size_t i = 0; i < CLV_LEN(largest); ++i) {
        const clv_blob_options o = { .size = sizeof(clv_blob_options),
                                     .keep_overlapping = true,
                                     .max_sigma_px = largest[i],
                                     .threshold_rel_given = true,
                                     .threshold_rel = 0.5 };
        answer got = find(device->context, &m, &o);
        size_t inner = 0;
        for (size_t s = 0; s < got.count; ++s)
            inner += got.spots[s].y > SIDE / 4 && got.spots[s].y < 3 * SIDE / 4;
        if (inner > 1) fail_msg("%s: %zu spots on a ridge", device->name, inner);
        free(got.spots);
    }
}

/* Contexts of a device share what is compiled: some compilers take seconds for a program. */
static const char *shared_cache(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", test_temp_dir(), name);
    return path;
}

static answer find_split(size_t nth, size_t batch, unsigned parts, const movie *m,
                         const clv_blob_options *o)
{
    test_device device;
    const clv_context_options c = { .size = sizeof(clv_context_options),
                                    .batch = batch,
                                    .sub_devices = parts,
                                    .cache_dir = shared_cache("own") };
    test_device_open(nth, &c, &device);
    const answer a = find(device.context, m, o);
    test_device_close(&device);
    return a;
}

static void check_splits(size_t nth, const movie *m, const clv_blob_options *o)
{
    test_device device;
    const clv_context_options whole = { .size = sizeof(clv_context_options),
                                        .cache_dir = shared_cache("own") };
    test_device_open(nth, &whole, &device);
    const unsigned parts = device.facts->device_class == CLV_CLASS_CPU ? 2 : 0;
    answer want = find(device.context, m, o);
    assert_true(want.count > 20);
    clv_blob_frames four = m->shape;
    clv_blob_stream *stream;
    four.frames = 4;
    EXPECT_OK(clv_blobs_open(device.context, &four, o, &stream));
    for (size_t at = 0, taken = 0; at < m->shape.frames; at += 4) {
        clv_spot spots[64];
        size_t count;
        EXPECT_OK(clv_blobs_push(stream, (const uint16_t *)m->pixels + at * four.frame_stride,
                                 CLV_MIN((size_t)4, m->shape.frames - at), NULL));
        do {
            EXPECT_OK(clv_blobs_pull(stream, spots, 64, &count));
            assert_true(taken + count <= want.count);
            assert_memory_equal(spots, want.spots + taken, count * sizeof *spots);
            taken += count;
        } while (count);
        if (at + 4 >= m->shape.frames) assert_int_equal(taken, want.count);
    }
    clv_blobs_close(stream);
    test_device_close(&device);
    static const size_t batches[] = { 1, 2, 4, 8 };
    for (size_t i = 0; i < CLV_LEN(batches) + (parts ? 1 : 0); ++i) {
        const bool split = i == CLV_LEN(batches);
        answer got = find_split(nth, split ? 2 : batches[i], split ? parts : 0, m, o);
        assert_int_equal(got.count, want.count);
        assert_memory_equal(got.spots, want.spots, want.count * sizeof *want.spots);
        free(got.spots);
    }
    free(want.spots);
}

/* The same bytes for every batch, number of sub-devices and run; and frame by frame as a stream. */
static void bytes_do_not_depend_on_the_split(void **unused)
{
    (void)unused;
    const movie_kind kind = { CLV_BLOB_U16, 9, 70, 90, 0, 12, 21 };
    const movie_kind square = { CLV_BLOB_U16, 9, 96, 96, 0, 12, 22 };
    const movie small = make_movie(&kind), large = make_movie(&square);
    for (size_t nth = 0; nth < test_device_count(); ++nth) {
        check_splits(nth, &small, &(clv_blob_options){ .size = sizeof(clv_blob_options) });
        check_splits(nth, &large,
                     &(clv_blob_options){ .size = sizeof(clv_blob_options),
                                          .max_sigma_px = 16 }); /* transforms */
    }
    clv_free(small.pixels), clv_free(large.pixels);
}

/* A camera's loop: once the first pushes have warmed everything up, a push takes not one block of
 * memory in any of our threads, and the caller's thread none at all, be it in a library. What a
 * driver takes in threads of ours is its own business. */
static void a_push_allocates_nothing(test_device *device)
{
    enum { FRAMES = 12, PUSHES = 32 };
    const movie_kind kind = { CLV_BLOB_U16, FRAMES, 64, 72, 0, 12, 78 };
    const movie m = make_movie(&kind);
    const clv_blob_options ways[] = { { .size = sizeof(clv_blob_options) },
                                      { .size = sizeof(clv_blob_options),
                                        .subpixel = CLV_BLOB_SUBPIXEL_FIT,
                                        .keep_overlapping = true,
                                        .threshold = 0 } };
    static clv_spot spots[4096];
    for (size_t way = 0; way < CLV_LEN(ways); ++way) {
        clv_blob_frames shape = m.shape;
        clv_blob_stream *stream;
        size_t total = 0, count;
        shape.frames = 4;
        EXPECT_OK(clv_blobs_open(device->context, &shape, &ways[way], &stream));
        for (size_t frames = 1; frames <= 4; ++frames)
            EXPECT_OK(clv_blobs_warm(stream, frames));
        assert_int_equal(clv_blobs_summary(stream).frames, 0);
        EXPECT_OK(clv_blobs_pull(stream, spots, CLV_LEN(spots), &count));
        assert_int_equal(count, 0);
        for (size_t push = 0; push < PUSHES; ++push) {
            const size_t frames = 1 + push % 4, at = push * 4 % FRAMES;
            clv_alloc_fail_at(0);
            const unsigned long before = test_mallocs_here();
            EXPECT_OK(clv_blobs_push(stream, (const uint16_t *)m.pixels + at * shape.frame_stride,
                                     frames, NULL));
            const unsigned long ours = clv_alloc_calls(), here = test_mallocs_here() - before;
            if (ours || here)
                fail_msg("%s: push %zu of %zu frames took %lu blocks, and %lu in its thread",
                         device->name, push, frames, ours, here);
            EXPECT_OK(clv_blobs_pull(stream, spots, CLV_LEN(spots), &count));
            total += count;
        }
        assert_true(total > 100 && clv_blobs_summary(stream).spots == total);
        clv_blobs_close(stream);
    }
    clv_free(m.pixels);
}

static void rejects_what_makes_no_sense(test_device *device)
{
    uint16_t pixel = 1;
    clv_spot *spots;
    size_t count;
    const clv_blob_frames one = { sizeof(clv_blob_frames), CLV_BLOB_U16, 1, 1, 1, 0, 0 },
                          none = { sizeof(clv_blob_frames), CLV_BLOB_U16, 1, 0, 1, 0, 0 };
    clv_context *c = device->context;
    const clv_blob_options bad[] = {
        { .size = sizeof(clv_blob_options), .min_sigma_px = -1 },
        { .size = sizeof(clv_blob_options), .min_sigma_px = 3, .max_sigma_px = 2 },
        { .size = sizeof(clv_blob_options), .num_sigma = 65 },
        { .size = sizeof(clv_blob_options), .dog = true, .sigma_ratio = 1 },
        { .size = sizeof(clv_blob_options), .threshold_given = true, .threshold = -1 },
        { .size = sizeof(clv_blob_options), .threshold_rel_given = true, .threshold_rel = 1.5 },
        { .size = sizeof(clv_blob_options), .overlap_given = true, .overlap = 2 },
        { .size = sizeof(clv_blob_options), .max_sigma_px = 1e6 },
        { .size = sizeof(clv_blob_options), .min_sigma_px = 1e-100 },
        { .size = sizeof(clv_blob_options), .min_sigma_px = 0.009, .dog = true },
        { .size = sizeof(clv_blob_options),
          .threshold_given = true,
          .threshold_sigma_given = true },
        { .size = sizeof(clv_blob_options), .threshold_given = true, .threshold = (double)NAN },
    };
    for (size_t i = 0; i < CLV_LEN(bad); ++i)
        EXPECT_FAIL(CLV_E_ARGUMENT,
                    "blobs:", clv_blobs(c, &one, &pixel, &bad[i], &spots, &count, NULL, NULL));
    EXPECT_FAIL(CLV_E_SHAPE,
                "blobs:", clv_blobs(c, &none, &pixel, NULL, &spots, &count, NULL, NULL));
    /* the products of these strides wrap around to 0 and 1 */
    const clv_blob_frames wide[] = {
        { sizeof(clv_blob_frames), CLV_BLOB_U16, 1, 3, 1, 1, SIZE_MAX / 2 + 1 },
        { sizeof(clv_blob_frames), CLV_BLOB_U16, 1, 2, 1, 0, SIZE_MAX / 2 + 1 },
        { sizeof(clv_blob_frames), CLV_BLOB_U16, 2, 1, 1, SIZE_MAX / 2 + 1, 0 }
    };
    for (size_t i = 0; i < CLV_LEN(wide); ++i)
        EXPECT_FAIL(CLV_E_SHAPE, "reach beyond what can be addressed",
                    clv_blobs(c, &wide[i], &pixel, NULL, &spots, &count, NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_blobs(c, &one, NULL, NULL, &spots, &count, NULL, NULL));
}

/* Runs with the kernels that the device gets, and on a CPU also with those of a GPU. */
static void in_both_forms(void (*claim)(test_device *device))
{
    for (size_t nth = 0; nth < test_device_count(); ++nth) {
        test_device device;
        clv_context_options options = { .size = sizeof(clv_context_options),
                                        .cache_dir = shared_cache("own") };
        test_device_open(nth, &options, &device);
        claim(&device);
        const bool cpu = device.facts->device_class == CLV_CLASS_CPU;
        test_device_close(&device);
        if (!cpu) continue;
        options.cache_dir = shared_cache("disguised");
        test_device_open(nth, &options, &device);
        test_device_disguise(&device, CLV_CLASS_DISCRETE_GPU);
        claim(&device);
        test_device_close(&device);
    }
}

#define ON_EACH(claim)                  \
    static void claim##_(void **unused) \
    {                                   \
        (void)unused;                   \
        in_both_forms(claim);           \
    }
ON_EACH(matches_at_every_size)
ON_EACH(matches_in_every_type)
ON_EACH(matches_with_every_option)
ON_EACH(matches_with_large_sigmas)
ON_EACH(a_ridge_is_no_row_of_spots)
ON_EACH(full_lists_are_done_again)
ON_EACH(bad_pixels_spoil_their_neighbours_only)
ON_EACH(ties_give_one_spot)
ON_EACH(a_push_allocates_nothing)
ON_EACH(rejects_what_makes_no_sense)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        { "matches_at_every_size", matches_at_every_size_, NULL, NULL, NULL },
        { "matches_in_every_type", matches_in_every_type_, NULL, NULL, NULL },
        { "matches_with_every_option", matches_with_every_option_, NULL, NULL, NULL },
        { "matches_with_large_sigmas", matches_with_large_sigmas_, NULL, NULL, NULL },
        { "a_ridge_is_no_row_of_spots", a_ridge_is_no_row_of_spots_, NULL, NULL, NULL },
        { "full_lists_are_done_again", full_lists_are_done_again_, NULL, NULL, NULL },
        { "bad_pixels_spoil_their_neighbours_only", bad_pixels_spoil_their_neighbours_only_, NULL,
          NULL, NULL },
        { "ties_give_one_spot", ties_give_one_spot_, NULL, NULL, NULL },
        { "bytes_do_not_depend_on_the_split", bytes_do_not_depend_on_the_split, NULL, NULL, NULL },
        { "a_push_allocates_nothing", a_push_allocates_nothing_, NULL, NULL, NULL },
        { "rejects_what_makes_no_sense", rejects_what_makes_no_sense_, NULL, NULL, NULL },
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

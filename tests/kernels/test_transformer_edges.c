/* SPDX-License-Identifier: Apache-2.0 */
/* Tests blocks of transformers where the golden cases do not reach: NaN, and texts with more tokens than a device can
 * loop over. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/backward/back.h"

#include <cleave/offload.h>
#include <cleave/transformer.h>

#include <math.h>
#include <string.h>

/* Whatever the bits of a NaN are. */
static void check_nan(test_device *device)
{
    static const uint32_t bits[] = { 0x7fc00000, 0x7fffffff, 0xffffffff, 0x7fc00001 };
    enum { NANS = CLV_LEN(bits), QUERIES = 7, WIDTH = 8 };
    uint64_t seed = 3;
    const clv_attention_shape s = { .size = sizeof(clv_attention_shape),
                                    .batch = 1,
                                    .heads = 1,
                                    .queries = QUERIES,
                                    .keys = QUERIES,
                                    .width = WIDTH };
    float q[QUERIES * WIDTH], k[QUERIES * WIDTH], v[QUERIES * WIDTH], o[QUERIES * WIDTH];
    for (size_t i = 0; i < CLV_LEN(q); ++i) {
        q[i] = (float)test_uniform(&seed, -1, 1);
        k[i] = (float)test_uniform(&seed, -1, 1);
        v[i] = (float)test_uniform(&seed, -1, 1);
    }
    for (size_t i = 0; i < NANS; ++i)
        memcpy(&q[i * WIDTH + i], &bits[i], sizeof bits[i]);
    EXPECT_OK(clv_attention_f32(device->context, &s, q, k, v, NULL, o));
    for (size_t i = 0; i < QUERIES; ++i)
        for (size_t c = 0; c < WIDTH; ++c)
            assert_int_equal(!!isnan(o[i * WIDTH + c]), i < NANS);
}

static void attention_to_nan_is_nan(void **state)
{
    (void)state;
    test_each_device(check_nan);
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_nan);
}

/* Heads of 4 elements, and sequences that are shorter than a tile, so that a card has work-groups without queries. */
static void check_narrow_heads(test_device *device)
{
    enum { BATCH = 2, HEADS = 2, TOKENS = 7, WIDTH = 4, TILE = TOKENS * WIDTH };
    uint64_t seed = 5;
    const clv_attention_shape s = { .size = sizeof(clv_attention_shape),
                                    .batch = BATCH,
                                    .heads = HEADS,
                                    .queries = TOKENS,
                                    .keys = TOKENS,
                                    .width = WIDTH };
    float q[BATCH * HEADS * TILE], k[CLV_LEN(q)], v[CLV_LEN(q)], o[CLV_LEN(q)];
    for (size_t i = 0; i < CLV_LEN(q); ++i) {
        q[i] = (float)test_uniform(&seed, -2, 2);
        k[i] = (float)test_uniform(&seed, -2, 2);
        v[i] = (float)test_uniform(&seed, -1, 1);
    }
    EXPECT_OK(clv_attention_f32(device->context, &s, q, k, v, NULL, o));
    for (size_t at = 0; at < CLV_LEN(q); at += TILE)
        for (size_t i = 0; i < TOKENS; ++i) {
            double sum = 0, want[WIDTH] = { 0 };
            for (size_t j = 0; j < TOKENS; ++j) {
                double dot = 0;
                for (size_t c = 0; c < WIDTH; ++c)
                    dot += (double)q[at + i * WIDTH + c] * (double)k[at + j * WIDTH + c];
                const double p = exp(dot / sqrt(WIDTH));
                sum += p;
                for (size_t c = 0; c < WIDTH; ++c)
                    want[c] += p * (double)v[at + j * WIDTH + c];
            }
            for (size_t c = 0; c < WIDTH; ++c)
                assert_true(fabs((double)o[at + i * WIDTH + c] - want[c] / sum) < 2e-6);
        }
}

static void narrow_heads_match(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_narrow_heads);
}

/* A long text and a short one: 300 rows of 384 are more turns than some rasterisers let a loop have. */
static void check_long_pool(test_device *device)
{
    enum { LONG = 300, SHORT = 2, ROWS = LONG + SHORT, WIDTH = 384 };
    static float x[ROWS * WIDTH];
    static const int32_t rows[] = { 0, LONG, LONG, SHORT };
    uint64_t seed = 5;
    for (size_t i = 0; i < CLV_LEN(x); ++i)
        x[i] = (float)test_uniform(&seed, -0.5, 1);
    test_array dx = test_array_from(device, x, sizeof x);
    test_array where = test_array_from(device, rows, sizeof rows);
    test_array y = test_array_new(device, 2 * WIDTH * sizeof(float));
    const clv_pool_call mean = { .x = dx.buffer,
                                 .rows = where.buffer,
                                 .out = y.buffer,
                                 .sequences = 2,
                                 .width = WIDTH,
                                 .kind = CLV_MODEL_MEAN,
                                 .divide = true };
    EXPECT_OK(clv_pool_enqueue(device->queue, &mean));
    test_array_read(&y);
    const float *got = (const float *)(void *)y.host;
    for (size_t s = 0; s < 2; ++s) {
        double want[WIDTH] = { 0 }, squares = 0;
        for (int32_t r = 0; r < rows[2 * s + 1]; ++r)
            for (size_t c = 0; c < WIDTH; ++c)
                want[c] += (double)x[(size_t)(rows[2 * s] + r) * WIDTH + c];
        for (size_t c = 0; c < WIDTH; ++c)
            squares += want[c] * want[c];
        for (size_t c = 0; c < WIDTH; ++c)
            assert_true(fabs((double)got[s * WIDTH + c] - want[c] / sqrt(squares)) < 1e-6);
    }
    test_array *all[] = { &dx, &where, &y };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(all[i]);
}

static void long_texts_pool(void **state)
{
    (void)state;
    test_each_device(check_long_pool);
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_long_pool);
}

/* ---- loops of more than 65,535 turns, were they not split where those are the end ----------------- */

static float *numbers(size_t count, uint64_t seed)
{
    float *out = clv_alloc(count, sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < count; ++i)
        out[i] = (float)test_uniform(&seed, -1, 1);
    return out;
}

static void expect_near(const char *what, test_array *got, const double *want, size_t count,
                        double allowed)
{
    test_array_read(got);
    const float *found = (const float *)(void *)got->host;
    for (size_t i = 0; i < count; ++i)
        if (!(fabs((double)found[i] - want[i]) <= allowed))
            fail_msg("%s: number %zu is %.9g, expected %.9g", what, i, (double)found[i], want[i]);
}

/* A vocabulary as classes. */
static void check_many_classes(test_device *device)
{
    enum { ROWS = 3, CLASSES = 50257 };
    static double loss[ROWS], gradient[ROWS * CLASSES];
    const int32_t labels[ROWS] = { 7, CLV_LABEL_IGNORED, CLASSES - 1 };
    float *x = numbers(ROWS * CLASSES, 11);
    for (size_t r = 0; r < ROWS; ++r) {
        double sum = 0;
        for (size_t c = 0; c < CLASSES; ++c)
            sum += exp((double)x[r * CLASSES + c]);
        if (labels[r] < 0) continue;
        loss[r] = log(sum) - (double)x[r * CLASSES + (size_t)labels[r]];
        for (size_t c = 0; c < CLASSES; ++c)
            gradient[r * CLASSES + c] =
                exp((double)x[r * CLASSES + c]) / sum - ((int32_t)c == labels[r]);
    }
    test_array dx = test_array_from(device, x, ROWS * CLASSES * sizeof *x);
    test_array dlabels = test_array_from(device, labels, sizeof labels);
    test_array dloss = test_array_new(device, ROWS * sizeof *x);
    EXPECT_OK(clv_cross_entropy_enqueue(device->queue, dx.buffer, dlabels.buffer, ROWS, CLASSES, 1,
                                        dloss.buffer, dx.buffer)); /* in place */
    expect_near("loss", &dloss, loss, ROWS, 2e-5);
    expect_near("gradient", &dx, gradient, (size_t)ROWS * CLASSES, 1e-6);
    test_device_disguise(device, device->facts->device_class);
    device->disguise.flags.loop_limit = 3 * (CLASSES / 8 + 7); /* too few for the last eight */
    EXPECT_FAIL(CLV_E_DEVICE, "got 50257 classes",
                clv_cross_entropy_enqueue(device->queue, dx.buffer, dlabels.buffer, ROWS, CLASSES,
                                          1, dloss.buffer, dx.buffer));
    device->disguise.flags.loop_limit = 3 * (CLASSES / 8 + 1) + 24;
    EXPECT_OK(clv_cross_entropy_enqueue(device->queue, dx.buffer, dlabels.buffer, ROWS, CLASSES, 1,
                                        dloss.buffer, dx.buffer));
    test_array_free(&dx), test_array_free(&dlabels), test_array_free(&dloss);
    clv_free(x);
}

/* A long text that is pooled, and the backward pass. */
static void check_long_text(test_device *device)
{
    enum { LONG = 4100, SHORT = 3, ROWS = LONG + SHORT, WIDTH = 272 };
    static double mean[2 * WIDTH], back[ROWS * WIDTH];
    static const int32_t rows[] = { 0, LONG, LONG, SHORT };
    float *x = numbers(ROWS * WIDTH, 12), *g = numbers(2 * WIDTH, 13);
    memset(mean, 0, sizeof mean); /* another device was here */
    for (size_t s = 0; s < 2; ++s)
        for (size_t r = 0; r < (size_t)rows[2 * s + 1]; ++r)
            for (size_t c = 0; c < WIDTH; ++c) {
                const size_t at = ((size_t)rows[2 * s] + r) * WIDTH + c;
                mean[s * WIDTH + c] += (double)x[at] / rows[2 * s + 1];
                back[at] = (double)g[s * WIDTH + c] / rows[2 * s + 1];
            }
    test_array dx = test_array_from(device, x, ROWS * WIDTH * sizeof *x);
    test_array dg = test_array_from(device, g, 2 * WIDTH * sizeof *g);
    test_array where = test_array_from(device, rows, sizeof rows);
    test_array y = test_array_new(device, 2 * WIDTH * sizeof *x);
    const clv_pool_call there = { .x = dx.buffer,
                                  .rows = where.buffer,
                                  .out = y.buffer,
                                  .sequences = 2,
                                  .width = WIDTH,
                                  .kind = CLV_MODEL_MEAN };
    EXPECT_OK(clv_pool_enqueue(device->queue, &there));
    expect_near("pooled", &y, mean, 2 * WIDTH, 2e-6);
    const clv_pool_back way = { .g = dg.buffer,
                                .rows = where.buffer,
                                .dx = dx.buffer,
                                .sequences = 2,
                                .width = WIDTH,
                                .kind = CLV_MODEL_MEAN };
    EXPECT_OK(clv_pool_back_enqueue(device->queue, &way));
    expect_near("back", &dx, back, (size_t)ROWS * WIDTH, 1e-7);
    test_array *all[] = { &dx, &dg, &where, &y };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(all[i]);
    clv_free(x), clv_free(g);
}

/* A word that a batch has in many places, and one that it has once. */
static void check_frequent_word(test_device *device)
{
    enum { OFTEN = 5000, ROWS = 8, WIDTH = 272 };
    static int32_t list[OFTEN + 1];
    static double want[2 * WIDTH];
    const int32_t segments[] = { 0, OFTEN, 1, 0, OFTEN, 1, 0, 0 };
    float *g = numbers(ROWS * WIDTH, 14);
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < (size_t)ROWS * WIDTH; ++i)
        g[i] = roundf(g[i] * 16) / 16; /* sums are exact */
    for (size_t i = 0; i < CLV_LEN(list); ++i)
        list[i] = (int32_t)(i % ROWS);
    for (size_t i = 0; i < CLV_LEN(list); ++i)
        for (size_t c = 0; c < WIDTH; ++c)
            want[(i < OFTEN ? WIDTH : 0) + c] += (double)g[(size_t)list[i] * WIDTH + c];
    test_array dg = test_array_from(device, g, ROWS * WIDTH * sizeof *g);
    test_array dlist = test_array_from(device, list, sizeof list);
    test_array dsegments = test_array_from(device, segments, sizeof segments);
    test_array out = test_array_new(device, 2 * WIDTH * sizeof *g);
    EXPECT_OK(clv_segment_sums_enqueue(device->queue, dg.buffer, dlist.buffer, dsegments.buffer, 0,
                                       2, (clv_range){ out.buffer, 0 }, WIDTH));
    expect_near("sums", &out, want, 2 * WIDTH, 0);
    test_array *all[] = { &dg, &dlist, &dsegments, &out };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(all[i]);
    clv_free(g);
}

/* A few queries of many keys, on the side that is forced. */
enum { QUERIES = 5, KEYS = 2100, WIDEST = 128 };

static clv_status attend(test_device *device, clv_side side, size_t width, const float *x, float *o)
{
    const clv_attention_shape s = { .size = sizeof(clv_attention_shape),
                                    .batch = 1,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .queries = QUERIES,
                                    .keys = KEYS,
                                    .width = width };
    const clv_side was = clv_offload_force(side);
    const clv_status status = clv_attention_f32(device->context, &s, x, x + QUERIES * width,
                                                x + (QUERIES + KEYS) * width, NULL, o);
    clv_offload_force(was);
    return status;
}

static void expect_attended(const float *q, size_t width, const float *o)
{
    const float *k = q + QUERIES * width, *v = k + KEYS * width;
    for (size_t i = 0; i < QUERIES; ++i) {
        double want[WIDEST] = { 0 }, sum = 0;
        for (size_t j = 0; j < KEYS; ++j) {
            double score = 0;
            for (size_t c = 0; c < width; ++c)
                score += (double)q[i * width + c] * (double)k[j * width + c];
            const double p = exp(score / sqrt((double)width));
            sum += p;
            for (size_t c = 0; c < width; ++c)
                want[c] += p * (double)v[j * width + c];
        }
        for (size_t c = 0; c < width; ++c)
            if (!(fabs((double)o[i * width + c] - want[c] / sum) <= 1e-6))
                fail_msg("query %zu: %.9g, expected %.9g", i, (double)o[i * width + c],
                         want[c] / sum);
    }
}

/* Where the device would end the loops the host attends, and a forced device says so. */
static void check_many_keys(test_device *device)
{
    if (test_left_out(device, device->tiny, "%d keys", KEYS)) return;
    float *x = numbers((QUERIES + 2 * KEYS) * WIDEST, 15), o[QUERIES * WIDEST];
    EXPECT_OK(attend(device, CLV_SIDE_DEVICE, WIDEST / 2, x, o));
    expect_attended(x, WIDEST / 2, o);
    EXPECT_OK(attend(device, CLV_SIDE_AUTO, WIDEST, x, o));
    expect_attended(x, WIDEST, o);
    if (device->facts->flags.loop_limit)
        EXPECT_FAIL(CLV_E_DEVICE, "got 2100 keys", attend(device, CLV_SIDE_DEVICE, WIDEST, x, o));
    clv_free(x);
}

static void long_loops_are_split(void **state)
{
    (void)state;
    test_each_device(check_many_classes);
    test_each_device(check_long_text);
    test_each_device(check_frequent_word);
    test_each_device(check_many_keys);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_to_nan_is_nan),
        cmocka_unit_test(narrow_heads_match),
        cmocka_unit_test(long_texts_pool),
        cmocka_unit_test(long_loops_are_split),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("transformer_edges", tests, NULL, NULL);
}

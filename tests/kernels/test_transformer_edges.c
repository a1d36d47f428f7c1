/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of transformers where golden cases do not reach: NaN, and texts longer than loops may be. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/blocks.h"

#include <cleave/transformer.h>

#include <math.h>
#include <string.h>

/* Whatever the bits of a NaN are. */
static void check_nan(test_device *device)
{
    static const uint32_t bits[] = { 0x7fc00000, 0x7fffffff, 0xffffffff, 0x7fc00001 };
    enum { NANS = CLV_LEN(bits), QUERIES = 7, WIDTH = 8 };
    uint64_t seed = 3;
    const clv_attention_shape s = {
        .batch = 1, .heads = 1, .queries = QUERIES, .keys = QUERIES, .width = WIDTH
    };
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_to_nan_is_nan),
        cmocka_unit_test(long_texts_pool),
    };
    return cmocka_run_group_tests_name("transformer_edges", tests, NULL, NULL);
}

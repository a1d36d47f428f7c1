/* SPDX-License-Identifier: Apache-2.0 */
/* Tests flat calls of transformer blocks: the host computes what a device has no room for, and a thread may force
 * either side. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/offload.h>
#include <cleave/transformer.h>

#include <math.h>

enum { ROWS = 96, WIDTH = 16, INNER = 3000 }; /* what is between: more than 1 MiB */
static float x[ROWS * WIDTH], w1[INNER * WIDTH], w2[WIDTH * INNER], want[ROWS * WIDTH],
    got[ROWS * WIDTH];

static void fill(float *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; ++i)
        values[i] = (float)test_uniform(&seed, -0.5, 0.5);
}

static clv_status feed_forward(clv_context *context, clv_side side, float *y)
{
    const clv_side before = clv_offload_force(side);
    const clv_status status =
        clv_ffn_f32(context, ROWS, WIDTH, INNER, CLV_ACTIVATION_GELU, x, w1, NULL, w2, NULL, y);
    assert_int_equal(clv_offload_force(before), side);
    return status;
}

static void check_room(size_t nth)
{
    test_device device;
    const clv_context_options small = { .size = sizeof(clv_context_options),
                                        .memory_bytes = 1 << 20 };
    test_device_open(nth, &small, &device);
    EXPECT_OK(feed_forward(device.context, CLV_SIDE_HOST, want));
    assert_true(fabsf(want[0]) > 0);
    EXPECT_OK(feed_forward(device.context, CLV_SIDE_AUTO, got));
    assert_memory_equal(got, want, sizeof got); /* the host's */
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "were asked for",
                feed_forward(device.context, CLV_SIDE_DEVICE, got));
    test_device_close(&device);
}

static void no_room_is_the_hosts(void **state)
{
    (void)state;
    fill(x, CLV_LEN(x), 1), fill(w1, CLV_LEN(w1), 2), fill(w2, CLV_LEN(w2), 3);
    for (size_t i = 0, count = test_device_count(); i < count; ++i)
        check_room(i);
}

static clv_status attend(clv_context *context, clv_side side, float *o)
{
    const clv_attention_shape s = { .size = sizeof(clv_attention_shape),
                                    .batch = 1,
                                    .heads = 1,
                                    .queries = ROWS,
                                    .keys = ROWS,
                                    .width = WIDTH };
    const clv_side before = clv_offload_force(side);
    const clv_status status = clv_attention_f32(context, &s, x, w1, w2, NULL, o);
    (void)clv_offload_force(before);
    return status;
}

/* Without a device: the host, or an error for who insists. */
static void orders_are_followed(void **state)
{
    (void)state;
    fill(x, CLV_LEN(x), 1), fill(w1, CLV_LEN(w1), 2), fill(w2, CLV_LEN(w2), 3);
    clv_context *context = test_plain_context();
    EXPECT_OK(attend(context, CLV_SIDE_AUTO, got));
    EXPECT_OK(attend(context, CLV_SIDE_HOST, want));
    assert_memory_equal(got, want, sizeof got);
    EXPECT_FAIL(CLV_E_NO_DEVICE, "attention: a device was demanded",
                attend(context, CLV_SIDE_DEVICE, got));
    EXPECT_FAIL(CLV_E_NO_DEVICE, "ffn: a device was demanded",
                feed_forward(context, CLV_SIDE_DEVICE, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "activation is 6, but it must be an enumerator from 0 to 5",
                clv_ffn_f32(context, 1, 1, 1, (clv_activation)6, x, w1, NULL, w2, NULL, got));
    clv_context_free(context);
}

/* What is no number stays none, for the queries that it concerns; one that sees nothing gives 0. */
static void check_no_numbers(clv_context *context, clv_side side)
{
    enum { KEYS = 4, HEAD = 2 };
    const float k[KEYS * HEAD] = { 1, 0, 0, 1, NAN, 1, 1, 1 },
                         v[KEYS * HEAD] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const float q[KEYS * HEAD] = { 1, 2, 3, 4, 5, 6, INFINITY, 1 };
    const clv_attention_shape s = { .size = sizeof(clv_attention_shape),
                                    .batch = 1,
                                    .heads = 1,
                                    .queries = KEYS,
                                    .keys = KEYS,
                                    .width = HEAD,
                                    .causal = true };
    const int32_t all[KEYS] = { 1, 1, 1, 1 }, later[KEYS] = { 0, 1, 0, 1 };
    float o[KEYS * HEAD];
    const clv_side before = clv_offload_force(side);
    EXPECT_OK(clv_attention_f32(context, &s, q, k, v, all, o));
    assert_true(o[0] == 1 && o[1] == 2 && isfinite(o[2]));
    for (size_t i = 2 * HEAD; i < KEYS * HEAD; ++i)
        assert_true(isnan(o[i]));
    EXPECT_OK(clv_attention_f32(context, &s, q, k, v, later, o));
    assert_true(o[0] == 0 && o[1] == 0 && o[2] == 3 && isnan(o[6])); /* the infinite query */
    (void)clv_offload_force(before);
}

static void what_is_no_number_stays_none(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    check_no_numbers(context, CLV_SIDE_HOST);
    clv_context_free(context);
    for (size_t i = 0, count = test_device_count(); i < count; ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        check_no_numbers(device.context, CLV_SIDE_DEVICE);
        check_no_numbers(device.context, CLV_SIDE_HOST);
        test_device_close(&device);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_room_is_the_hosts),
        cmocka_unit_test(orders_are_followed),
        cmocka_unit_test(what_is_no_number_stays_none),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("flat", tests, NULL, NULL);
}

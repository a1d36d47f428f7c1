/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that operands may be the same array or share memory, and that results may share memory with nothing. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/array/data.h"
#include "runtime/device/pool.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/array_typed.h>
#include <cleave/blas.h>
#include <cleave/offload.h>

#include <string.h>

enum { N = 40, ALL = N * N, OUT = 2 * ALL };

/* An operation on x [N,N], y [N], w [N]; `out` [OUT]. */
typedef clv_status operation(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                             float *out);

static clv_array *wrap(clv_context *context, float *host, size_t rows, size_t columns)
{
    const size_t shape[] = { rows, columns };
    clv_array *array;
    EXPECT_OK(clv_array_wrap(context, host, columns ? 2 : rows != 0, shape, &array));
    return array;
}

static clv_status map(clv_context *c, clv_array *x, clv_array *y, clv_array *w, float *out)
{
    clv_array *z = wrap(c, out, N, N);
    const clv_map_input in[] = { { "x", x, 0 }, { "y", y, 0 }, { "w", w, 0 } };
    const clv_status status = clv_map(c, "x * y + w", in, 3, z);
    clv_array_free(z);
    return status;
}

static clv_status multiply(clv_context *c, clv_array *x, clv_array *y, clv_array *w, float *out)
{
    (void)y, (void)w;
    clv_array *z = wrap(c, out, N, N);
    const clv_product_options turned = { .size = sizeof turned, .b_transposed = true };
    const clv_status status = clv_product(c, x, x, &turned, z);
    clv_array_free(z);
    return status;
}

static clv_status step(clv_context *c, clv_array *x, clv_array *y, clv_array *w, float *out)
{
    clv_array *gradient = wrap(c, out, N, 0), *loss = wrap(c, out + N, 0, 0);
    const clv_status status = clv_linear_step(c, x, y, w, loss, gradient);
    clv_array_free(gradient), clv_array_free(loss);
    return status;
}

/* Apart, as one array, and as two arrays in one memory: the same bits on either side. */
static void alike(clv_context *context, operation *run)
{
    static float memory[ALL + 3 * N], out[3][OUT];
    memset(out, 0, sizeof out);
    for (int i = 0; i < ALL; ++i)
        memory[i] = (float)(i * 37 % 101) / 101 - 0.4f;
    float *y = memory + ALL, *w = y + N;
    memcpy(y, memory, N * sizeof *y);
    memcpy(w, memory, N * sizeof *w);
    clv_array *x = wrap(context, memory, N, N), *first = wrap(context, y, N, 0),
              *second = wrap(context, w, N, 0), *inside = wrap(context, memory, N, 0);
    EXPECT_OK(run(context, x, first, second, out[0]));
    EXPECT_OK(run(context, x, first, first, out[1]));
    EXPECT_OK(run(context, x, inside, second, out[2]));
    assert_memory_equal(out[0], out[1], sizeof *out);
    assert_memory_equal(out[0], out[2], sizeof *out);
    assert_true(out[0][0] != 0 && out[0][1] != 0);
    clv_array_free(x), clv_array_free(first), clv_array_free(second), clv_array_free(inside);
}

/* A filter reads copies: the image and its kernel may be one, and the result either of them. */
static void filter(clv_context *context)
{
    static float image[ALL], kernel[25], want[ALL];
    for (int i = 0; i < ALL; ++i)
        image[i] = (float)(i * 7919 % 1009) / 1009;
    memcpy(kernel, image, sizeof kernel);
    EXPECT_OK(clv_convolve_2d(context, image, N, N, kernel, 5, 5, NULL, want, NULL));
    EXPECT_OK(clv_convolve_2d(context, image, N, N, image, 5, 5, NULL, image, NULL));
    assert_memory_equal(image, want, sizeof want);
}

static void share(test_device *device)
{
    for (int side = CLV_SIDE_HOST; side <= CLV_SIDE_DEVICE; ++side) {
        clv_offload_force((clv_side)side);
        alike(device->context, map);
        alike(device->context, multiply);
        alike(device->context, step);
        if (!device->tiny) filter(device->context);
    }
    clv_offload_force(CLV_SIDE_AUTO);
}

static void operands_may_be_one(void **state)
{
    (void)state;
    test_each_device(share);
}

static void results_are_nobodys_else(void **state)
{
    (void)state;
    static float memory[3 * ALL], other[ALL];
    clv_context *c = test_plain_context();
    clv_array *x = wrap(c, memory, N, N), *y = wrap(c, memory + ALL, N, 0),
              *row = wrap(c, memory + N, N, 0), *z = wrap(c, memory + 2 * ALL, N, N),
              *one = wrap(c, memory + 3, 0, 0), *part = wrap(c, other, N, 0),
              *over = wrap(c, memory + ALL - 1, N, N);
    const clv_map_input in[] = { { "x", x, 0 } };
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_map(c, "x", in, 1, over));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_reduce(c, CLV_REDUCE_SUM, x, -1, one));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_product(c, x, x, NULL, over));
    EXPECT_FAIL(CLV_E_ARGUMENT, "are the same array", clv_product(c, x, x, NULL, x));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_normalize(c, x, over, NULL, NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "same array", clv_normalize(c, x, x, NULL, NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "same array", clv_normalize(c, x, z, NULL, part, part));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_normalize(c, x, z, NULL, row, part));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_linear_step(c, x, y, part, one, row));
    EXPECT_FAIL(CLV_E_ARGUMENT, "also as an operand", clv_linear_step(c, x, y, y, one, y));
    EXPECT_FAIL(CLV_E_ARGUMENT, "also as an operand", clv_linear_train(c, x, y, y, 0.1f, 2, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory", clv_linear_train(c, x, y, row, 0.1f, 2, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory",
                clv_matmul_f32(c, N, N, N, memory, memory, memory + ALL - 1));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory with the matrices",
                clv_eigvalsh(c, memory, 4, 5, NULL, memory + 99, NULL));
    EXPECT_OK(clv_eigvalsh(c, memory, 4, 5, NULL, memory + 100, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory",
                clv_eigvals(c, memory, 4, 5, NULL, memory + 99, other, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "shares memory",
                clv_eigvals(c, memory, 4, 5, NULL, other + 5, other + 24, NULL));
    clv_array *all[] = { x, y, row, z, one, part, over };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_array_free(all[i]);
    clv_context_free(c);
}

/* ---- copies -------------------------------------------------------------------------------------- */

static void expect_contents(clv_array *array, const float *want)
{
    float got[12] = { 0 };
    EXPECT_OK(clv_array_get(array, got));
    assert_memory_equal(got, want, sizeof got);
}

/* An owned array, its copy of another shape and one of wrapped memory; then all but the copies change. */
static void copies_share_nothing(clv_context *context, bool device)
{
    static const float first[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, later[12] = { 3 };
    float memory[12];
    const size_t shape[] = { 3, 4 }, other[] = { 2, 6 }, wrong[] = { 5, 2 };
    clv_array *owned, *wrapped, *copy, *again, *none;
    memcpy(memory, first, sizeof memory);
    EXPECT_OK(clv_array_from(context, first, 2, shape, &owned));
    EXPECT_OK(clv_array_wrap(context, memory, 2, shape, &wrapped));
    const clv_array_stats before = clv_array_statistics(context);
    EXPECT_OK(clv_array_copy(owned, 2, other, &copy));
    const clv_array_stats after = clv_array_statistics(context);
    assert_true(before.uploads == after.uploads && before.downloads == after.downloads);
    assert_int_equal(clv_array_is_on_device(copy), device);
    assert_memory_equal(clv_array_shape(copy), other, sizeof other);
    EXPECT_OK(clv_array_copy(wrapped, 0, NULL, &again));
    assert_memory_equal(clv_array_shape(again), shape, sizeof shape);
    memcpy(memory, later, sizeof memory);
    EXPECT_OK(clv_array_put(owned, later));
    expect_contents(copy, first), expect_contents(again, first), expect_contents(owned, later);
    EXPECT_FAIL(CLV_E_SHAPE, "10 elements, but the array has 12",
                clv_array_copy(owned, 2, wrong, &none));
    assert_null(none);
    EXPECT_OK(clv_array_create(context, 2, shape, &none));
    clv_array_free(again);
    EXPECT_OK(clv_array_copy(none, 2, other, &again));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no values", clv_array_get(again, memory));
    clv_array *all[] = { owned, wrapped, copy, again, none };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        clv_array_free(all[i]);
}

static void copies_of(test_device *device)
{
    copies_share_nothing(device->context, true);
}

static void copies_lie_where_the_array_does(void **state)
{
    (void)state;
    test_each_device(copies_of);
    clv_context *plain = test_plain_context();
    copies_share_nothing(plain, false);
    clv_context_free(plain);
    EXPECT_FAIL(CLV_E_ARGUMENT, "array or result is NULL", clv_array_copy(NULL, 0, NULL, NULL));
}

/* The memory that a device shares is the device's until the host maps it. A CPU driver would not show a missing map by
 * wrong numbers, so the state of the buffer is looked at. */
static void turns_of(test_device *device)
{
    if (!device->device->zero_copy) return;
    const float x[3] = { 1, 2, 3 };
    const size_t shape[] = { 3 };
    float got[3];
    clv_array *in;
    EXPECT_OK(clv_array_from(device->context, x, 1, shape, &in));
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    clv_array *out = clv_array_compute(CLV_OP_NEGATE, in, NULL, 0);
    (void)clv_offload_force(before);
    assert_non_null(out);
    const clv_buffer *buffer = out->storage->buffer;
    assert_true(buffer && buffer->kind == CLV_BUFFER_SHARED && !buffer->mapped);
    EXPECT_OK(clv_array_get(out, got));
    assert_non_null(buffer->mapped);
    assert_true(got[0] == -1 && got[1] == -2 && got[2] == -3);
    clv_array_free(in), clv_array_free(out);
}

static void the_host_maps_what_the_device_had(void **state)
{
    (void)state;
    test_each_device(turns_of);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_may_be_one),
        cmocka_unit_test(results_are_nobodys_else),
        cmocka_unit_test(copies_lie_where_the_array_does),
        cmocka_unit_test(the_host_maps_what_the_device_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

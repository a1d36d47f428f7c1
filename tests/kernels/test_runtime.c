/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what an application does with a device directly: copies and their events, arguments of every kind, memory of
 * its own, and the pool from which buffers come. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "runtime/device/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000, BYTES = COUNT * sizeof(uint32_t) };

static void wait_and_free(clv_event *done)
{
    assert_non_null(done);
    EXPECT_OK(clv_event_wait(done));
    clv_event_free(done);
}

static void check_copies(test_device *device)
{
    static uint32_t in[COUNT], out[COUNT];
    clv_buffer *a, *b;
    clv_event *done = NULL;
    for (uint32_t i = 0; i < COUNT; ++i)
        in[i] = i * 2654435761u;
    memset(out, 0, sizeof out);
    assert_ptr_equal(clv_queue_device(device->queue), device->device);
    EXPECT_OK(clv_buffer_create(device->device, BYTES, CLV_BUFFER_DEVICE, &a));
    EXPECT_OK(clv_buffer_create(device->device, BYTES, CLV_BUFFER_STAGING, &b));
    assert_int_equal(clv_buffer_bytes(a), BYTES);
    EXPECT_OK(clv_write_enqueue(device->queue, a, 0, in, BYTES, &done));
    wait_and_free(done);
    EXPECT_OK(clv_fill_enqueue(device->queue, b, 0, BYTES, 7, NULL));
    EXPECT_OK(clv_copy_enqueue(device->queue, a, 400, b, 800, 1200, &done));
    wait_and_free(done);
    EXPECT_OK(clv_read_enqueue(device->queue, b, 0, out, BYTES, &done));
    wait_and_free(done);
    for (size_t i = 0; i < COUNT; ++i)
        if (out[i] != (i >= 200 && i < 500 ? in[i - 100] : 7u))
            fail_msg("%s: number %zu is %u", device->name, i, out[i]);
    EXPECT_FAIL(CLV_E_SHAPE, "into a buffer of 4000",
                clv_write_enqueue(device->queue, a, BYTES - 4, in, 8, &done)); /* beyond its end */
    assert_null(done);
    EXPECT_OK(clv_queue_wait(device->queue));
    clv_buffer_free(a), clv_buffer_free(b);
}

static void copies_tell_when_they_are_done(void **state)
{
    (void)state;
    test_each_device(check_copies);
}

static void check_arguments(test_device *device)
{
    static const char text[] =
        "#ifdef DOUBLES\n"
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
        "#endif\n"
        "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void\n"
        "all_kinds(__global long *out, int i, uint u, long l, ulong m, float f, __local int *room\n"
        "#ifdef DOUBLES\n"
        "          , double d\n"
        "#endif\n"
        ")\n"
        "{\n"
        "    room[7] = i;\n"
        "    out[0] = room[7], out[1] = u, out[2] = l, out[3] = (long)m, out[4] = (long)(f * "
        "4.0f);\n"
        "#ifdef DOUBLES\n"
        "    out[5] = (long)(d * 1e15);\n"
        "#endif\n"
        "}\n";
    static const clv_cl_source source = { "all_kinds", text, sizeof text - 1 };
    const int64_t want[] = { -5, 4000000000, INT64_MIN + 3, -2, -7, 1250000000000001 };
    const bool doubles = device->facts->fp64;
    int64_t got[6] = { 0 };
    test_array out = test_array_new(device, sizeof got);
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = &source,
                          .kernel = "all_kinds",
                          .global = { 1 },
                          .local = { 1 } };
    if (doubles) launch.defines[0] = (clv_define){ "DOUBLES", 1 };
    const clv_arg args[] = { clv_arg_buffer(out.buffer),     clv_arg_i32(-5),
                             clv_arg_u32(4000000000u),       clv_arg_i64(INT64_MIN + 3),
                             clv_arg_u64(UINT64_MAX - 1),    clv_arg_f32(-1.75f),
                             clv_arg_local(8 * sizeof(int)), clv_arg_f64(1.250000000000001) };
    EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args) - !doubles, NULL));
    test_array_read(&out);
    memcpy(got, out.host, sizeof got);
    for (size_t i = 0; i < 5 + (size_t)doubles; ++i)
        if (llabs((long long)(got[i] - want[i])) > (i == 5))
            fail_msg("%s: argument %zu is %lld", device->name, i, (long long)got[i]);
    test_array_free(&out);
}

static void arguments_of_every_kind_arrive(void **state)
{
    (void)state;
    test_each_device(check_arguments);
}

/* What a device that shares the host's memory is handed, it reads and writes in place. */
/* Programs that cl/common/builtins.clh serves, and one that needs a function which it lacks. */
static void check_builtins(test_device *device)
{
    static const char known[] =
        "__kernel void f(__global float *x) { x[0] = fma(x[0], 2.0f, 3.0f); }\n";
    static const char other[] = "__kernel void f(__global float *x) { x[0] = ldexp(x[0], 3); }\n";
    static const clv_cl_source sources[] = { { "known (generated)", known, sizeof known - 1 },
                                             { "other (generated)", other, sizeof other - 1 } };
    static const float want[] = { 6, 12 };
    for (size_t i = 0; i < CLV_LEN(sources); ++i) {
        float got = 1.5f;
        test_array x = test_array_from(device, &got, sizeof got);
        const clv_launch launch = { .size = sizeof(clv_launch),
                                    .source = &sources[i],
                                    .kernel = "f",
                                    .global = { 1 },
                                    .local = { 1 } };
        const clv_arg args[] = { clv_arg_buffer(x.buffer) };
        clv_device *own = device->context->devices;
        const bool declares = own->declares;
        EXPECT_OK(clv_launch_enqueue(device->queue, &launch, args, CLV_LEN(args), NULL));
        test_array_read(&x);
        memcpy(&got, x.host, sizeof got);
        test_array_free(&x);
        assert_float_equal(got, want[i], 0);
        assert_int_equal(own->again, i && declares ? 1 : 0);
        assert_int_equal(own->declares, declares && !i);
        own->again = 0;
    }
}

static void programs_may_use_any_builtin_function(void **state)
{
    (void)state;
    test_each_device(check_builtins);
}

static void check_wrapped(test_device *device)
{
    uint32_t *host = clv_alloc_pages(BYTES), got[COUNT];
    clv_buffer *wrapped;
    assert_non_null(host);
    for (uint32_t i = 0; i < COUNT; ++i)
        host[i] = i;
    const clv_status status = clv_buffer_wrap(device->device, host, BYTES, &wrapped);
    if (!device->device->zero_copy) {
        EXPECT_FAIL(CLV_E_DEVICE, "", status);
        assert_null(wrapped);
    } else {
        EXPECT_OK(status);
        EXPECT_OK(clv_fill_enqueue(device->queue, wrapped, BYTES / 2, BYTES / 2, 9, NULL));
        EXPECT_OK(clv_read(device->queue, wrapped, 0, got, BYTES));
        for (size_t i = 0; i < COUNT; ++i)
            assert_int_equal(got[i], i < COUNT / 2 ? i : 9);
        clv_buffer_free(wrapped);
    }
    EXPECT_OK(clv_queue_wait(device->queue));
    clv_free(host);
}

static void memory_of_the_host_is_wrapped(void **state)
{
    (void)state;
    test_each_device(check_wrapped);
}

/* Host and device use a shared buffer in turns, also one that was freed while the device had it. */
static void check_turns(test_device *device)
{
    if (!device->device->zero_copy) return;
    uint32_t got[COUNT];
    clv_buffer *shared;
    for (uint32_t turn = 1; turn <= 3; ++turn) {
        EXPECT_OK(clv_buffer_create(device->device, BYTES, CLV_BUFFER_SHARED, &shared));
        assert_non_null(shared->mapped);
        for (uint32_t i = 0; i < COUNT; ++i)
            ((uint32_t *)shared->mapped)[i] = turn * i;
        EXPECT_OK(clv_buffer_lend(device->queue, shared));
        assert_null(shared->mapped);
        EXPECT_OK(clv_fill_enqueue(device->queue, shared, 0, BYTES / 2, 9, NULL));
        if (turn == 2) { /* the host takes it back; in the other turns the device keeps it */
            EXPECT_OK(clv_buffer_reclaim(device->queue, shared));
            memcpy(got, shared->mapped, BYTES);
        } else {
            EXPECT_OK(clv_read(device->queue, shared, 0, got, BYTES));
        }
        for (uint32_t i = 0; i < COUNT; ++i)
            assert_int_equal(got[i], i < COUNT / 2 ? 9 : turn * i);
        clv_buffer_free(shared);
    }
    assert_true(clv_device_memory(device->device).pool_hits >= 2);
}

static void memory_is_used_in_turns(void **state)
{
    (void)state;
    test_each_device(check_turns);
}

static void check_pool(test_device *device)
{
    enum { PIECE = 300000, PIECES = 3 };
    clv_buffer *held[PIECES], *huge = NULL;
    EXPECT_OK(clv_device_reserve(device->device, PIECE, PIECES));
    const clv_memory_stats before = clv_device_memory(device->device);
    assert_true(before.cached_bytes >= (uint64_t)PIECE * PIECES);
    for (size_t i = 0; i < PIECES; ++i)
        EXPECT_OK(clv_buffer_create(device->device, PIECE, CLV_BUFFER_DEVICE, &held[i]));
    const clv_memory_stats full = clv_device_memory(device->device);
    assert_int_equal(full.pool_hits - before.pool_hits, PIECES);
    assert_int_equal(full.raw_allocations, before.raw_allocations);
    assert_true(full.used_bytes >= before.used_bytes + (uint64_t)PIECE * PIECES);
    assert_true(full.peak_bytes >= full.used_bytes + full.cached_bytes);
    for (size_t i = 0; i < PIECES; ++i)
        clv_buffer_free(held[i]);
    const clv_memory_room room = clv_device_room(device->device);
    assert_int_equal(room.limit_bytes, full.budget_bytes);
    if (!device->device->zero_copy) assert_true(room.limit_bytes <= room.total_bytes);
    assert_true(room.free_bytes == room.limit_bytes - before.used_bytes);
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "",
                clv_buffer_create(device->device, (size_t)room.limit_bytes + 4096,
                                  CLV_BUFFER_DEVICE, &huge));
    assert_null(huge);
    clv_device_trim(device->device);
    assert_int_equal(clv_device_memory(device->device).cached_bytes, 0);
}

static void memory_is_kept_and_given_back(void **state)
{
    (void)state;
    test_each_device(check_pool);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_tell_when_they_are_done),
        cmocka_unit_test(arguments_of_every_kind_arrive),
        cmocka_unit_test(programs_may_use_any_builtin_function),
        cmocka_unit_test(memory_of_the_host_is_wrapped),
        cmocka_unit_test(memory_is_used_in_turns),
        cmocka_unit_test(memory_is_kept_and_given_back),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}

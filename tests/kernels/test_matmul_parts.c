/* SPDX-License-Identifier: Apache-2.0 */
/* A product that somebody watches is done in parts: every row once, the same bits, and an end. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "runtime/blas/matmul_parts.h"

#include <cleave/blas.h>
#include <cleave/offload.h>

#include <string.h>

static void every_row_is_in_one_part(void **state)
{
    (void)state;
    static const size_t shapes[][4] = {
        { 1, 1, 1, 1 }, { 5000, 700, 300, 1 }, { 50, 60, 70, 4000 }, { 3000, 2000, 900, 3 }
    };
    for (size_t i = 0; i < CLV_LEN(shapes); ++i) {
        const size_t *s = shapes[i];
        test_told t = { .job = "matmul" };
        clv_watch watch = clv_watch_begin("matmul", test_note, &t, s[0] * s[3]);
        clv_matmul_parts parts = clv_matmul_parts_of(s[0], s[1], s[2], s[3], &watch);
        size_t at = 0, count = 0;
        for (clv_matmul_part p; clv_matmul_next_part(&parts, &p); ++count) {
            assert_true(p.rows && p.matrices && p.row + p.rows <= s[0]);
            assert_true(p.matrices == 1 || (!p.row && p.rows == s[0]));
            assert_int_equal(p.matrix * s[0] + p.row, at);
            at += p.matrices * p.rows;
            EXPECT_OK(clv_matmul_part_done(&parts, &p));
        }
        assert_int_equal(at, s[0] * s[3]);
        assert_true(i ? count > 1 : count == 1);
        assert_true(t.done == at && t.total == at); /* the end is told */
    }
}

static void who_says_so_ends_it(void **state)
{
    (void)state;
    test_told t = { .job = "matmul", .answer = 1 };
    clv_watch watch = clv_watch_begin("matmul", test_note, &t, 5000);
    clv_matmul_parts parts = clv_matmul_parts_of(5000, 700, 300, 1, &watch);
    clv_matmul_part p;
    assert_true(clv_matmul_next_part(&parts, &p));
    watch.next = 0; /* a tenth of a second is over */
    EXPECT_FAIL(CLV_E_CANCELLED, "matmul: cancelled after", clv_matmul_part_done(&parts, &p));
    assert_int_equal(t.calls, 1);
    watch = clv_watch_begin("matmul", test_note, &t, 1);
    parts = clv_matmul_parts_of(1, 1, 1, 1, &watch);
    assert_true(clv_matmul_next_part(&parts, &p));
    watch.next = 0;
    EXPECT_OK(clv_matmul_part_done(&parts, &p)); /* nothing is left to cancel */
    assert_int_equal(t.calls, 2);
}

enum { M = 1300, N = 512, K = 290 }; /* two parts */

static void compare(clv_context *context, clv_side side, const float *a, const float *b, float *c)
{
    test_told t = { .job = "matmul" };
    clv_matmul_options o = { .size = sizeof o };
    const clv_side before = clv_offload_force(side);
    memset(c, 0, sizeof *c * 2 * M * N);
    EXPECT_OK(clv_matmul(context, M, N, K, a, b, &o, c));
    o.progress = test_note, o.progress_user = &t;
    EXPECT_OK(clv_matmul(context, M, N, K, a, b, &o, c + M * N));
    assert_true(t.calls && t.done == M && t.total == M);
    assert_memory_equal(c, c + M * N, sizeof *c * M * N);
    o.size = offsetof(clv_matmul_options, progress); /* a caller that knows of no progress */
    t.calls = 0;
    EXPECT_OK(clv_matmul(context, M, N, K, a, b, &o, c));
    assert_int_equal(t.calls, 0);
    (void)clv_offload_force(before);
}

static void parts_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    float *a = clv_alloc(M * K, sizeof *a), *b = clv_alloc(K * N, sizeof *b);
    float *c = clv_alloc(2 * M * N, sizeof *c);
    uint64_t seed = 3;
    for (size_t i = 0; i < (size_t)M * K; ++i)
        a[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0; i < (size_t)K * N; ++i)
        b[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0, count = test_device_count(); i < count; ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        compare(device.context, CLV_SIDE_DEVICE, a, b, c);
        if (!i) compare(device.context, CLV_SIDE_HOST, a, b, c);
        test_device_close(&device);
    }
    clv_free(a), clv_free(b), clv_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_one_part),
        cmocka_unit_test(who_says_so_ends_it),
        cmocka_unit_test(parts_have_the_bits_of_the_whole),
    };
    return cmocka_run_group_tests_name("matmul_parts", tests, NULL, NULL);
}

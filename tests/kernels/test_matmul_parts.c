/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a product with a progress function is computed in parts: each row once, with the same bits, and cancelled
 * when the function asks for it. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "runtime/blas/matmul_parts.h"

#include <cleave/blas.h>
#include <cleave/offload.h>

#include <math.h>
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
        clv_matmul_parts parts = clv_matmul_parts_of(s[0], s[1], s[2], s[3], i % 2 == 0, &watch);
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

static void the_first_part_on_the_host_is_short(void **state)
{
    (void)state;
    test_told t = { .job = "matmul" };
    clv_watch watch = clv_watch_begin("matmul", test_note, &t, 12000);
    clv_matmul_parts parts = clv_matmul_parts_of(12000, 12000, 12000, 1, true, &watch);
    clv_matmul_part p;
    assert_true(clv_matmul_next_part(&parts, &p));
    /* a second where a core does 4 GFLOP/s */
    assert_true(2.0 * 12000 * 12000 * (double)p.rows <= 4e9);
}

static void who_says_so_ends_it(void **state)
{
    (void)state;
    test_told t = { .job = "matmul", .answer = 1 };
    clv_watch watch = clv_watch_begin("matmul", test_note, &t, 5000);
    clv_matmul_parts parts = clv_matmul_parts_of(5000, 700, 300, 1, false, &watch);
    clv_matmul_part p;
    assert_true(clv_matmul_next_part(&parts, &p));
    watch.next = 0; /* a tenth of a second is over */
    EXPECT_FAIL(CLV_E_CANCELLED, "matmul: cancelled after", clv_matmul_part_done(&parts, &p));
    assert_int_equal(t.calls, 1);
    watch = clv_watch_begin("matmul", test_note, &t, 1);
    parts = clv_matmul_parts_of(1, 1, 1, 1, false, &watch);
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

/* ---- between the rows of C ----------------------------------------------------------------------------- */

static const struct {
    size_t m, n, k, batch, row, matrix; /* the last two: elements from one to the next */
    float beta;
} layouts[] = {
    { 30, 17, 20, 1, 20, 0, 0 }, { 30, 17, 20, 1, 20, 0, -0.5f },
    { 9, 5, 7, 3, 8, 80, 0.5f }, { 9, 5, 7, 3, 8, 75, 0 }, /* no whole rows from one to the next */
    { 9, 5, 7, 3, 21, 7, 0.5f },                           /* row by row in turns */
    { 1, 17, 20, 2, 99, 18, 0 },
};

typedef struct neighbour {
    float *c;
    size_t layout;
} neighbour;

static size_t place_of(size_t layout, size_t t, size_t r)
{
    return t * layouts[layout].matrix + r * layouts[layout].row;
}

/* Writes into the place behind every row, as another thread would. */
static int write_between(const char *job, size_t done, size_t total, void *user)
{
    const neighbour *n = user;
    (void)job, (void)done, (void)total;
    for (size_t t = 0; t < layouts[n->layout].batch; ++t)
        for (size_t r = 0; r < layouts[n->layout].m; ++r)
            n->c[place_of(n->layout, t, r) + layouts[n->layout].n] = 5;
    return 0;
}

static void check_between(clv_context *context, size_t i)
{
    enum { ROOM = 700 };
    float a[ROOM], b[ROOM], c[ROOM], want[ROOM];
    uint64_t seed = i;
    neighbour user = { c, i };
    const size_t n = layouts[i].n, k = layouts[i].k;
    clv_matmul_options o = { .size = sizeof o,
                             .c_row = layouts[i].row,
                             .c_col = 1,
                             .batch = layouts[i].batch,
                             .a_batch = 1,
                             .c_batch = layouts[i].matrix,
                             .scale_given = true,
                             .alpha = 1,
                             .beta = layouts[i].beta };
    for (size_t e = 0; e < ROOM; ++e) {
        a[e] = (float)test_uniform(&seed, -1, 1), b[e] = (float)test_uniform(&seed, -1, 1);
        c[e] = want[e] = 1;
    }
    const clv_side before = clv_offload_force(CLV_SIDE_HOST);
    EXPECT_OK(clv_matmul(context, layouts[i].m, n, k, a, b, &o, want));
    o.progress = write_between, o.progress_user = &user;
    (void)clv_offload_force(CLV_SIDE_DEVICE);
    EXPECT_OK(clv_matmul(context, layouts[i].m, n, k, a, b, &o, c));
    (void)clv_offload_force(before);
    user.c = want;
    (void)write_between("", 0, 0, &user);
    for (size_t e = 0; e < ROOM; ++e)
        if (!(fabsf(c[e] - want[e]) <= 1e-5f))
            fail_msg("layout %zu, element %zu: %g, expected %g", i, e, (double)c[e],
                     (double)want[e]);
}

static void what_lies_between_rows_is_the_callers(void **state)
{
    (void)state;
    for (size_t d = 0, count = test_device_count(); d < count; ++d) {
        test_device device;
        test_device_open(d, NULL, &device);
        for (int copies = 0; copies < 2; ++copies) {
            if (copies) device.device->zero_copy = false;
            for (size_t i = 0; i < CLV_LEN(layouts); ++i)
                check_between(device.context, i);
        }
        test_device_close(&device);
    }
}

/* Copies and packed operands of a large product are room for others behind it. */
static void nothing_large_is_held(void **state)
{
    (void)state;
    enum { SIDE = 640, MOST = 4 << 20 };
    float *a = clv_zalloc(3 * SIDE * SIDE, sizeof *a);
    assert_non_null(a);
    for (size_t d = 0, count = test_device_count(); d < count; ++d) {
        test_device device;
        test_device_open(d, NULL, &device);
        clv_offload_force(CLV_SIDE_DEVICE);
        for (int copies = 0; copies < 2; ++copies) {
            if (copies) device.device->zero_copy = false;
            const uint64_t before = clv_device_memory(device.device).used_bytes;
            for (int turn = 0; turn < 2; ++turn)
                EXPECT_OK(clv_matmul_f32(device.context, SIDE, SIDE, SIDE, a, a + SIDE * SIDE,
                                         a + 2 * SIDE * SIDE));
            const clv_memory_stats after = clv_device_memory(device.device);
            assert_true(after.used_bytes < before + MOST);
            assert_true(!copies || after.cached_bytes >= 3 * SIDE * SIDE * sizeof *a);
        }
        clv_offload_force(CLV_SIDE_AUTO);
        test_device_close(&device);
    }
    clv_free(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_one_part),
        cmocka_unit_test(the_first_part_on_the_host_is_short),
        cmocka_unit_test(who_says_so_ends_it),
        cmocka_unit_test(parts_have_the_bits_of_the_whole),
        cmocka_unit_test(what_lies_between_rows_is_the_callers),
        cmocka_unit_test(nothing_large_is_held),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("matmul_parts", tests, NULL, NULL);
}

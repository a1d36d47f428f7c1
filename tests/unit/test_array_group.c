/* SPDX-License-Identifier: Apache-2.0 */
/* Work-groups of kernels for arrays: they cover all elements, fill waves, and stay within what a card can launch. */
#include "test.h"

#include "base/alloc.h"
#include "host/array/group.h"

static const clv_probe_device cards[] = {
    { .device_class = CLV_CLASS_DISCRETE_GPU,
      .compute_units = 60,
      .wavefront = 64,
      .max_work_group = 256,
      .max_work_item_sizes = { 1024, 1024, 1024 } },
    { .device_class = CLV_CLASS_DISCRETE_GPU,
      .compute_units = 28,
      .preferred_multiple = 32,
      .max_work_group = 1024,
      .max_work_item_sizes = { 1024, 1024, 64 } },
    { .device_class = CLV_CLASS_INTEGRATED_GPU,
      .compute_units = 96,
      .preferred_multiple = 64,
      .max_work_group = 256,
      .max_work_item_sizes = { 256, 256, 8 } },
};
static const clv_probe_device rusticl = { .device_class = CLV_CLASS_SOFTWARE,
                                          .compute_units = 2,
                                          .max_work_group = 1024,
                                          .preferred_multiple = 8 };

static size_t wave_of(const clv_probe_device *d)
{
    return CLV_MAX(d->preferred_multiple, (size_t)d->wavefront);
}

static void groups_are_waves(void **state)
{
    (void)state;
    for (size_t c = 0; c < CLV_LEN(cards); ++c)
        assert_int_equal(clv_array_group(&cards[c], 1), wave_of(&cards[c]));
    assert_int_equal(clv_array_group(&cards[1], 28 * 4 * 128 - 1), 64);
    assert_int_equal(clv_array_group(&cards[1], 28 * 4 * 128), 128);
    assert_int_equal(clv_array_group(&cards[0], (size_t)1 << 30), CLV_ARRAY_GROUP_MOST);
    assert_int_equal(clv_array_group(&rusticl, (size_t)1 << 30), 32);
    clv_probe_device small = cards[2];
    small.max_work_group = 32;
    assert_int_equal(clv_array_group(&small, (size_t)1 << 30), 32);
}

static void check(const clv_probe_device *d, size_t width, size_t rows)
{
    const clv_array_grid g = clv_array_grid_of(d, width, rows);
    const size_t items = g.local[0] * g.local[1];
    for (int i = 0; i < 2; ++i)
        assert_true(g.local[i] && g.global[i] && g.global[i] % g.local[i] == 0);
    assert_true(g.global[0] >= width && g.global[0] - width < g.local[0]);
    assert_true(g.global[1] * g.each >= rows && items <= d->max_work_group);
    if (d == &rusticl) {
        assert_true(g.local[1] == 1 && g.each == 1 && g.local[0] <= 32);
        return;
    }
    assert_true(g.global[1] / g.local[1] <= CLV_ARRAY_ROWS_MOST);
    assert_true(g.local[1] <= d->max_work_item_sizes[1] && g.local[1] <= d->max_work_item_sizes[2]);
    /* a wave is filled unless there are too few rows, or the third dimension is too short */
    if (width * rows >= 4096 && width >= 8) assert_true(items % wave_of(d) == 0);
    /* idle are less than half of the items, and less than a third where rows are long */
    assert_true(g.global[0] < 2 * width && (width < 48 || 3 * g.global[0] < 4 * width + 64));
    assert_true(g.each == 1 || rows > CLV_ARRAY_ROWS_MOST * g.local[1]);
}

static void grids_cover_all_elements(void **state)
{
    (void)state;
    static const size_t widths[] = { 1,  2,  3,   7,   15,  16,  17,   31,    32,
                                     33, 63, 100, 127, 129, 130, 1000, 65535, 5000000 };
    static const size_t rows[] = {
        1, 2, 3, 9, 64, 4096, 65535, 65536, 65537, 10000000, 0xFFFFFFFF
    };
    for (size_t c = 0; c <= CLV_LEN(cards); ++c)
        for (size_t w = 0; w < CLV_LEN(widths); ++w)
            for (size_t r = 0; r < CLV_LEN(rows); ++r)
                check(c < CLV_LEN(cards) ? &cards[c] : &rusticl, widths[w], rows[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_waves),
        cmocka_unit_test(grids_cover_all_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

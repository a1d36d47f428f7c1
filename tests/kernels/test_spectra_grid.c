/* SPDX-License-Identifier: Apache-2.0 */
/* Tests templates from a regular grid in plain C and on every device: the golden of the reference, the walls and faces
 * of cells, and the way of a point into a whole cell. Whole fits are in test_spectra_grid_fits.c. */
#include "data.h"
#include "device.h"
#include "spectra_files.h"
#include "spectra_watch.h"
#include "test.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"
#include "host/spectra/spectra_again.h"
#include "host/spectra/spectra_job.h"
#include "host/synthetic/stars.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CCF_POINTS = 256, QUERIES = 40 };

/* ---- the golden ------------------------------------------------------------------------------ */

typedef struct golden_grid {
    clv_file_array axis[4], grid, spectra, query, want, outside;
    clv_spectra_arm arm;
    clv_spectra_library library;
    double parameters[4], points[QUERIES * 6];
    float ccf[CCF_POINTS];
} golden_grid;

static clv_file_array load_as_is(const char *name)
{
    clv_file_array a;
    EXPECT_OK(clv_npy_read(test_data("specfit/stages/1b_gridinterp/%s.npy", name), &a));
    return a;
}

static void open_golden(golden_grid *g)
{
    *g = (golden_grid){ .parameters = { 5000, 3, -1, 0.2 } };
    for (int k = 0; k < 4; ++k)
        g->axis[k] = golden_load("stages/1b_gridinterp/uvec%d", k);
    g->grid = load_as_is("idgrid"), g->spectra = load_as_is("logspec");
    g->query = golden_load("stages/1b_gridinterp/query");
    g->want = golden_load("stages/1b_gridinterp/result");
    g->outside = golden_load("stages/1b_gridinterp/outside");
    assert_true(g->grid.type == CLV_I32 && g->spectra.type == CLV_F32);
    assert_int_equal(g->query.shape[0], QUERIES);
    g->arm = (clv_spectra_arm){ .name = "grid",
                                .points = g->spectra.shape[1],
                                .first = 4000,
                                .last = 4400,
                                .grid = g->grid.data,
                                .grid_spectra = g->spectra.shape[0],
                                .grid_log_flux = g->spectra.data,
                                .ccf = g->ccf,
                                .ccf_points = CCF_POINTS,
                                .ccf_log0 = log(4000),
                                .ccf_log1 = log(4000) + CCF_POINTS * 1e-4,
                                .ccf_spline_kms = 1000 };
    for (int k = 0; k < 4; ++k) {
        g->arm.nodes[k] = g->axis[k].shape[0], g->arm.axis[k] = golden_f64(&g->axis[k]);
        assert_int_equal(g->grid.shape[k], g->arm.nodes[k]);
    }
    g->library = (clv_spectra_library){ sizeof(clv_spectra_library), 1, &g->arm, 1, g->parameters };
    for (size_t i = 0; i < QUERIES; ++i)
        for (size_t k = 0; k < 4; ++k) {
            const double q = golden_f64(&g->query)[4 * i + k];
            g->points[6 * i + 2 + k] = k ? q : pow(10, q);
        }
}

static void close_golden(golden_grid *g)
{
    for (int k = 0; k < 4; ++k)
        clv_file_array_clear(&g->axis[k]);
    clv_file_array_clear(&g->grid), clv_file_array_clear(&g->spectra);
    clv_file_array_clear(&g->query), clv_file_array_clear(&g->want);
    clv_file_array_clear(&g->outside);
}

static void interpolation_in_plain_c(void **state)
{
    (void)state;
    golden_grid g;
    open_golden(&g);
    const size_t n = g.arm.points;
    double *got = clv_alloc(n, sizeof *got);
    EXPECT_OK(clv_grid_check(&g.arm));
    for (size_t i = 0; i < QUERIES; ++i) {
        const double *p = g.points + 6 * i + 2;
        const double distance = clv_grid_template(&g.arm, p, p, got);
        golden_close("grid", golden_f64(&g.want) + i * n, got, n, 1e-6);
        assert_true(fabs(distance - golden_f64(&g.outside)[i]) < 1e-9);
        assert_true(clv_grid_outside(&g.arm, p) == distance);
    }
    clv_free(got), close_golden(&g);
}

/* The cell of a point on the upmost face is the last one: nothing jumps there. */
static void faces_belong_to_the_grid(void **state)
{
    (void)state;
    golden_grid g;
    open_golden(&g);
    const size_t n = g.arm.points;
    double *at = clv_alloc(n, sizeof *at), *near = clv_alloc(n, sizeof *near);
    const double top[4] = { pow(10, g.arm.axis[0][2]), 5, 0, 0.4 };
    const double inside[4] = { top[0] * (1 - 1e-9), 5 - 1e-9, -1e-9, 0.4 - 1e-9 };
    assert_true(clv_grid_template(&g.arm, top, top, at) == 0);
    assert_true(clv_grid_template(&g.arm, inside, inside, near) == 0);
    golden_close("face", at, near, n, 1e-7);
    clv_free(at), clv_free(near), close_golden(&g);
}

/* The walls and faces of a point (distances from the limits) that the kernel finds are those of plain C. Returns how
 * many walls there are. A point outside the grid has none. */
static size_t expect_walls(const golden_grid *g, const clv_spectra_plan *plan,
                           const double point[4], const float *state)
{
    const double *low = plan->box.low + 2, *high = plan->box.high + 2;
    double wall[2][4], face[2][4];
    size_t walls = 0;
    memcpy(wall[0], low, sizeof wall[0]), memcpy(wall[1], high, sizeof wall[1]);
    memcpy(face[0], low, sizeof face[0]), memcpy(face[1], high, sizeof face[1]);
    clv_grid_walls(&g->arm, point, wall[0], wall[1]);
    clv_grid_cell(&g->arm, point, face[0], face[1]);
    for (size_t k = 0; k < 8; ++k) {
        const double *from = k < 4 ? low : high,
                     near = 1e-5 * (fabs(low[k % 4]) + fabs(high[k % 4]));
        const double want[] = { fabs(wall[k / 4][k % 4] - from[k % 4]),
                                fabs(face[k / 4][k % 4] - from[k % 4]) };
        assert_true(fabs((double)state[CLV_S_WALL + k] - want[0]) <= near);
        assert_true(fabs((double)state[CLV_S_FACE + k] - want[1]) <= near);
        walls += want[0] > near;
    }
    return walls;
}

/* The point and its neighbours, which stay in the point's cell. */
static void interpolation_on(test_device *device)
{
    if (test_left_out(device, device->tiny, "spectra of a file: too long")) return;
    golden_grid g;
    open_golden(&g);
    const size_t n = g.arm.points, pitch = clv_round_up(n, 16) + 16;
    const size_t queries = device->slow ? 6 : QUERIES;
    (void)test_left_out(device, queries < QUERIES, "all points but the first %zu", queries);
    float ones[16];
    double wave[16], *got = clv_alloc(n, sizeof *got), *near = clv_alloc(n, sizeof *near);
    for (size_t k = 0; k < 16; ++k)
        wave[k] = 4200 + (double)k, ones[k] = 1;
    const clv_spectrum one = { .pixels = 16, .wavelength = wave, .flux = ones, .ivar = ones };
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), 1, 1, &one };
    clv_spectra_plan *plan;
    EXPECT_OK(clv_spectra_plan_create(&g.library, &stars, NULL, &plan));
    watch_run(device, plan, g.points, queries, CLV_WATCH_TEMPLATES, queries * pitch * 8);
    size_t walls = 0;
    for (size_t i = 0; i < queries; ++i) {
        const double *p = g.points + 6 * i + 2;
        const float *s = watched.states + i * CLV_SPECTRA_STATE;
        watch_lane(i, pitch, 0, n, 0, got);
        golden_close("grid", golden_f64(&g.want) + i * n, got, n, 2e-5);
        walls += expect_walls(&g, plan, p, s);
        const double penalty = golden_f64(&g.outside)[i] * (double)plan->box.numbers[24];
        assert_true(fabs((double)s[CLV_S_PENALTY] - penalty) <= 1e-5 * penalty);
        for (size_t k = 0; k < 4; ++k) {
            double q[4];
            memcpy(q, p, sizeof q);
            q[k] += q[k] + plan->box.step[2 + k] > plan->box.high[2 + k] ? -plan->box.step[2 + k]
                                                                         : plan->box.step[2 + k];
            (void)clv_grid_template(&g.arm, p, q, near);
            watch_lane(i, pitch, 0, n, 2 + k, got);
            golden_close("its neighbour", near, got, n, 2e-5);
        }
    }
    assert_true(walls > 0);
    watch_forget(plan);
    clv_free(got), clv_free(near), close_golden(&g);
}

static void interpolation_on_devices(void **state)
{
    (void)state;
    test_each_device(interpolation_on);
}

/* A start whose own cells all lack a corner moves to the whole cell that is nearest. */
static void starts_move_to_whole_cells(void **state)
{
    (void)state;
    static const double teff[] = { 3.6, 3.7, 3.8, 3.9 }, two[] = { 0, 1 };
    static const double start[2][4] = { { 6310, 0, 1, 1 }, { 7943, 1, 1, 1 } };
    int32_t grid[32];
    for (int32_t i = 0; i < 32; ++i)
        grid[i] = i < 16 ? i : -1; /* whole: 3.6 to 3.7 */
    grid[20] = 16, grid[31] = 17;
    const clv_spectra_arm arm = { .nodes = { 4, 2, 2, 2 },
                                  .axis = { teff, two, two, two },
                                  .grid = grid };
    const clv_spectra_library library = {
        .arm_count = 1, .arms = &arm, .ccf_count = 2, .ccf_parameters = &start[0][0]
    };
    for (size_t i = 0; i < 2; ++i) {
        double q[4];
        assert_true(clv_grid_start(&library, i, q));
        assert_true(fabs(log10(q[0]) - 3.698) < 1e-9);
        for (int k = 1; k < 4; ++k)
            assert_true(fabs(q[k] - (start[i][k] > 0.5 ? 0.98 : 0.02)) < 1e-9);
    }
    for (size_t i = 0; i < 16; ++i)
        grid[i] = -1;
    double q[4];
    assert_false(clv_grid_start(&library, 0, q)); /* there is no whole cell */
    assert_true(q[0] == 6310 && q[3] == 1);
    clv_grid_enter(&library, q);
    assert_true(q[0] == 6310 && q[3] == 1);
}

/* A point in a whole cell stays where it is; others move to the nearest one. */
static void points_enter_whole_cells(void **state)
{
    (void)state;
    static const double teff[] = { 3.6, 3.7, 3.8 }, two[] = { 0, 1 };
    int32_t grid[24];
    for (int32_t i = 0; i < 24; ++i)
        grid[i] = i < 16 ? i : -1;
    const clv_spectra_arm arm = { .nodes = { 3, 2, 2, 2 },
                                  .axis = { teff, two, two, two },
                                  .grid = grid };
    const clv_spectra_library library = { .arm_count = 1, .arms = &arm },
                              networks = { .arm_count = 1, .arms = &(clv_spectra_arm){ 0 } };
    double inside[4] = { 4500, 0.999, 0.5, 0.001 }, outside[4] = { 6000, 0.5, 0.25, 1 };
    clv_grid_enter(&library, inside);
    assert_true(inside[0] == 4500 && inside[1] == 0.999 && inside[3] == 0.001);
    clv_grid_enter(&networks, outside);
    assert_true(outside[0] == 6000);
    clv_grid_enter(&library, outside);
    assert_true(fabs(log10(outside[0]) - 3.698) < 1e-9 && outside[1] == 0.5 && outside[2] == 0.25);
    assert_true(fabs(outside[3] - 0.98) < 1e-9);
}

/* From a cell that lacks a corner, the nearest whole cell along an axis is found on either side. */
static void walks_find_whole_cells(void **state)
{
    (void)state;
    static const double teff[] = { 3.5, 3.6, 3.7, 3.8, 3.9, 4 }, two[] = { 0, 1 };
    int32_t grid[48];
    for (int32_t i = 0; i < 48; ++i)
        grid[i] = i / 8 == 2 || i / 8 == 3 ? -1 : i; /* whole: 3.5 to 3.6, 3.9 to 4 */
    const clv_spectra_arm arm = { .nodes = { 6, 2, 2, 2 },
                                  .axis = { teff, two, two, two },
                                  .grid = grid };
    const clv_spectra_library library = { .arm_count = 1, .arms = &arm };
    const double from[4] = { pow(10, 3.75), 0.5, 0.25, 1 };
    double q[4];
    memcpy(q, from, sizeof q);
    assert_true(clv_grid_walk(&library, 0, false, q));
    assert_true(fabs(log10(q[0]) - 3.598) < 1e-9 && q[1] == 0.5 && q[3] == 1);
    memcpy(q, from, sizeof q);
    assert_true(clv_grid_walk(&library, 0, true, q));
    assert_true(fabs(log10(q[0]) - 3.902) < 1e-9 && q[1] == 0.5 && q[3] == 1);
    memcpy(q, from, sizeof q);
    assert_false(clv_grid_walk(&library, 1, true, q) || clv_grid_walk(&library, 1, false, q));
    assert_memory_equal(q, from, sizeof q);
}

static void rejects_what_is_no_grid(void **state)
{
    (void)state;
    golden_grid g;
    open_golden(&g);
    const double falling[3] = { 3.6, 3.5, 3.8 };
    clv_spectra_arm a = g.arm;
    a.axis[0] = falling;
    EXPECT_FAIL(CLV_E_ARGUMENT, "rise", clv_grid_check(&a));
    /* numbers that kernels, in float32, would take for infinite */
    const double hot[3] = { 3.6, 3.7, 39 }, far[3] = { -1e39, 0, 1 }, close[3] = { 0, 1e-40, 1 };
    a = g.arm, a.nodes[0] = 3, a.axis[0] = hot;
    EXPECT_FAIL(CLV_E_ARGUMENT, "value 39 at node 2; expected values within +-30",
                clv_grid_check(&a));
    a = g.arm, a.nodes[1] = 3, a.axis[1] = far;
    EXPECT_FAIL(CLV_E_ARGUMENT, "value -1e+39 at node 0; expected values within +-1e+30",
                clv_grid_check(&a));
    a.axis[1] = close;
    EXPECT_FAIL(CLV_E_ARGUMENT, "value 1e-40 at node 1", clv_grid_check(&a));
    a = g.arm, a.nodes[2] = 1;
    EXPECT_FAIL(CLV_E_SHAPE, "axis 2", clv_grid_check(&a));
    a = g.arm, a.nodes[0] = SIZE_MAX / 2;
    EXPECT_FAIL(CLV_E_SHAPE, "axis 0", clv_grid_check(&a));
    a = g.arm, a.grid_spectra = 10;
    EXPECT_FAIL(CLV_E_SHAPE, "spectrum 10, but there are 10", clv_grid_check(&a));
    a = g.arm, a.grid = NULL;
    EXPECT_FAIL(CLV_E_ARGUMENT, "no spectra", clv_grid_check(&a));
    close_golden(&g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolation_in_plain_c),   cmocka_unit_test(faces_belong_to_the_grid),
        cmocka_unit_test(rejects_what_is_no_grid),    cmocka_unit_test(interpolation_on_devices),
        cmocka_unit_test(starts_move_to_whole_cells), cmocka_unit_test(points_enter_whole_cells),
        cmocka_unit_test(walks_find_whole_cells),
    };
    test_choose(argc, argv);
    test_isolate();
    return cmocka_run_group_tests(tests, golden_begin, golden_end);
}

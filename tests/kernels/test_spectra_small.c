/* SPDX-License-Identifier: Apache-2.0 */
/* The small systems of spectral fits, on every device: work-groups that share systems (solve_group.cl, taps_group.cl)
 * give the bits of a work-item for each system. Where a driver divides or has log() and sin() in another way in the
 * other form, what depends on them differs by rounding errors; PoCL gives the same bits for all. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "cl/spectra/shared.clh"
#include "cl_embedded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 11, SPECTRA = 3, SEGMENTS = 5, VELOCITIES = 36, BOX = 25, TERMS = 10 };
static const size_t totals_count = ITEMS * SPECTRA * 2 * CLV_SPECTRA_AROUND;
static const size_t solved_count = ITEMS * SPECTRA * CLV_SPECTRA_SOLVED;
static uint64_t seed = 7;

static float any(float low, float high)
{
    return low + (high - low) * (float)(test_random(&seed) >> 40) / (float)(1 << 24);
}

static float *numbers(size_t count, float low, float high)
{
    float *made = clv_alloc(count, sizeof *made);
    assert_non_null(made);
    for (size_t i = 0; i < count; ++i)
        made[i] = any(low, high);
    return made;
}

/* All items but the second, in another order: the last group is not full. */
static test_array list_of(test_device *device)
{
    int32_t list[ITEMS + 1] = { ITEMS - 1 };
    for (int i = 0, at = 0; i < ITEMS; ++i)
        if (i != 1) list[1 + at++] = ITEMS - 1 - i == 1 ? ITEMS - 2 : ITEMS - 1 - i;
    return test_array_from(device, list, sizeof list);
}

static void launch(test_device *device, const clv_cl_source *source, const char *kernel, size_t x,
                   size_t y, size_t z, size_t local, const clv_arg *args, size_t count)
{
    const clv_probe_device *facts = clv_device_facts(device->device);
    clv_launch l = { .size = sizeof l,
                     .source = source,
                     .kernel = kernel,
                     .global = { clv_round_up(x, local), y, z },
                     .local = { local, 1, 1 },
                     .defines = { { "LANES", 1 },
                                  { "NPOLY", TERMS },
                                  { "FP64", facts->fp64 },
                                  { "RUN", 1 },
                                  { "LOOSE", 0 },
                                  { "SPAN", 1 },
                                  { "TILE", 32 },
                                  { "BLOCKS", 1 } } };
    EXPECT_OK(clv_launch_enqueue(device->queue, &l, args, count, NULL));
    EXPECT_OK(clv_queue_wait(device->queue));
}

/* Runs both forms on copies of `start`, and compares: the same bits, or values within `near` of each other. */
static void compare(test_device *device, const char *what, clv_arg *args, size_t count, size_t out,
                    const float *start, size_t floats, const clv_cl_source *source,
                    const char *kernel, const clv_cl_source *group_source, const char *in_groups,
                    const size_t size[3], size_t items, double near)
{
    size_t off = 0;
    test_array one = test_array_from(device, start, floats * sizeof *start),
               group = test_array_from(device, start, floats * sizeof *start);
    args[out] = clv_arg_buffer(one.buffer);
    launch(device, source, kernel, size[0], size[1], size[2], 1, args, count);
    args[out] = clv_arg_buffer(group.buffer);
    launch(device, group_source, in_groups, size[0] * items, size[1], size[2], 64, args, count);
    test_array_read(&one), test_array_read(&group);
    const float *a = (const float *)one.host, *b = (const float *)group.host;
    assert_true(memcmp(a, start, floats * sizeof *start) != 0);
    for (size_t i = 0; i < floats; ++i) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0) continue;
        ++off;
        if (!(fabs((double)(a[i] - b[i])) <= near * fmax(fabs((double)a[i]), 1)))
            fail_msg("%s: %.9g in groups, %.9g by itself, at %zu", what, (double)b[i], (double)a[i],
                     i);
    }
    print_message("%s: %zu of %zu numbers have other bits\n", what, off, floats);
    assert_true(near > 0 || off == 0);
    test_array_free(&one), test_array_free(&group);
}

/* Sums whose matrices are positive definite; one of them is empty, and one has a pivot that is not positive. */
static float *make_totals(void)
{
    float *totals = numbers(totals_count, -1, 1);
    for (size_t s = 0; s < ITEMS * SPECTRA; ++s) {
        float *g = totals + s * 2 * CLV_SPECTRA_AROUND;
        for (size_t i = 0; i < CLV_SPECTRA_AROUND; ++i)
            g[CLV_SPECTRA_AROUND + i] *= 1e-7f;
        for (size_t i = 0; i < TERMS; ++i)
            g[i * 16 + i] = any(8, 20);
    }
    totals[5 * 2 * CLV_SPECTRA_AROUND] = totals[5 * 2 * CLV_SPECTRA_AROUND + CLV_SPECTRA_AROUND] =
        0;
    totals[9 * 2 * CLV_SPECTRA_AROUND + 4 * 16 + 4] = -3;
    return totals;
}

static float *make_states(void)
{
    float *state = numbers(ITEMS * CLV_SPECTRA_STATE, 0.1f, 1);
    for (size_t i = 0; i < ITEMS; ++i) {
        float *s = state + i * CLV_SPECTRA_STATE;
        s[CLV_S_STATUS] = (float)(i % 2), s[CLV_S_FIXED] = i == 3 ? 5 : 0, s[CLV_S_LAMBDA] = 1e-3f;
        s[CLV_S_VALUE] = i % 4 == 1 ? 1e4f : 1; /* points that are accepted, and others */
        s[CLV_S_TRY + 1] = (float)(i * i);      /* vsini */
        for (size_t a = 0, e = 0; a < CLV_S_UNKNOWNS; ++a)
            for (size_t b = 0; b <= a; ++b, ++e)
                if (a == b) s[CLV_S_NORMAL + e] += 10;
    }
    return state;
}

static void systems_on(test_device *device)
{
    if (test_left_out(device, device->slow || device->facts->max_work_group < 64,
                      "work-groups of 64: it takes 32 of these kernels"))
        return;
    const clv_cl_source *fit = &clv_cl_spectra_fit, *velocity = &clv_cl_spectra_velocity,
                        *in_groups = &clv_cl_spectra_solve_group;
    const double near = 3e-7;
    float *totals = make_totals(), *state = make_states(), *solved = numbers(solved_count, -1, 1);
    test_array list = list_of(device);
    /* columns of segments */
    float *partial = numbers(ITEMS * SPECTRA * SEGMENTS * CLV_SPECTRA_AROUND, -1.3f, 0.9f);
    const int32_t range[2 * SPECTRA] = { 0, 5, 5, 4, 9, 6 };
    test_array partials = test_array_from(device, partial,
                                          sizeof *partial * ITEMS * SPECTRA * SEGMENTS *
                                              CLV_SPECTRA_AROUND),
               ranges = test_array_from(device, range, sizeof range);
    clv_arg total[] = { clv_arg_buffer(partials.buffer), clv_arg_buffer(ranges.buffer),
                        clv_arg_buffer(list.buffer),     { 0 },
                        clv_arg_i32(SPECTRA * SEGMENTS), clv_arg_i32(SPECTRA),
                        clv_arg_i32(CLV_SPECTRA_AROUND) };
    compare(device, "totals", total, CLV_LEN(total), 3, totals, totals_count, fit,
            "clv_spectra_total", in_groups, "clv_spectra_total_group",
            (size_t[]){ CLV_SPECTRA_AROUND / 16, ITEMS, SPECTRA }, 16, 0);
    /* the continuum */
    test_array sums = test_array_from(device, totals, totals_count * sizeof *totals);
    clv_arg solve[] = {
        clv_arg_buffer(sums.buffer), clv_arg_buffer(list.buffer), { 0 }, clv_arg_i32(SPECTRA)
    };
    compare(device, "solve", solve, CLV_LEN(solve), 2, solved, solved_count, fit,
            "clv_spectra_solve", in_groups, "clv_spectra_solve_group",
            (size_t[]){ ITEMS, SPECTRA, 1 }, 16, near);
    /* the next point */
    float box[BOX];
    for (size_t a = 0; a < 6; ++a)
        box[a] = -1, box[6 + a] = 2, box[12 + a] = 0.3f, box[18 + a] = 1e-2f;
    box[24] = 0.5f;
    for (size_t s = 0; s < ITEMS * SPECTRA;
         ++s) { /* small: the matrices of the unknowns stay definite */
        for (size_t i = 0; i < 256; ++i)
            solved[s * CLV_SPECTRA_SOLVED + CLV_V_INVERSE + i] *= 0.1f;
        for (size_t a = 1; a < 7; ++a)
            totals[s * 2 * CLV_SPECTRA_AROUND + CLV_A_NORMAL + a * 9] = any(8, 20);
    }
    test_array boxes = test_array_from(device, box, sizeof box),
               continua = test_array_from(device, solved, solved_count * sizeof *solved),
               around = test_array_from(device, totals, totals_count * sizeof *totals);
    for (int last = 0; last < 2; ++last) {
        clv_arg step[] = { clv_arg_buffer(around.buffer),
                           clv_arg_buffer(continua.buffer),
                           clv_arg_buffer(boxes.buffer),
                           clv_arg_buffer(list.buffer),
                           { 0 },
                           clv_arg_i32(SPECTRA),
                           clv_arg_i32(last) };
        compare(device, "step", step, CLV_LEN(step), 4, state, ITEMS * CLV_SPECTRA_STATE, fit,
                "clv_spectra_step", in_groups, "clv_spectra_step_group", (size_t[]){ ITEMS, 1, 1 },
                16, 1e-5); /* Intel's compiler divides in another way */
    }
    /* taps of the rotation */
    test_array states = test_array_from(device, state, ITEMS * CLV_SPECTRA_STATE * sizeof *state);
    float *tap = numbers(ITEMS * CLV_SPECTRA_TAPS * 8, 1, 2);
    clv_arg taps[] = {
        clv_arg_buffer(states.buffer), clv_arg_buffer(list.buffer), { 0 }, clv_arg_f32(1e-5f)
    };
    compare(device, "taps", taps, CLV_LEN(taps), 2, tap, ITEMS * CLV_SPECTRA_TAPS * 8, fit,
            "clv_spectra_taps", &clv_cl_spectra_taps_group, "clv_spectra_taps_group",
            (size_t[]){ ITEMS, 2, 1 }, 64, near);
    /* the kernels that scan along velocity */
    const size_t columns =
        (TERMS * (TERMS + 1) / 2 + TERMS) / (TERMS + 1) * (TERMS + 1) + TERMS + 1;
    const size_t along_count = ITEMS * 2 * columns * VELOCITIES, values = ITEMS * 2 * VELOCITIES;
    float *along = numbers(along_count, -1, 1), *value = numbers(values, 10, 20),
          *solution = numbers(ITEMS * TERMS * VELOCITIES, 0, 1);
    for (size_t i = 0; i < ITEMS; ++i)
        for (size_t v = 0; v < VELOCITIES; ++v)
            for (size_t a = 0; a < TERMS; ++a)
                along[(i * 2 * columns + a * (a + 3) / 2) * VELOCITIES + v] = any(9, 20);
    test_array velocities = test_array_from(device, along, along_count * sizeof *along),
               lines = test_array_from(device, value, values * sizeof *value);
    clv_arg scan[] = { clv_arg_buffer(velocities.buffer),
                       clv_arg_buffer(list.buffer),
                       { 0 },
                       clv_arg_buffer(lines.buffer),
                       clv_arg_i32(VELOCITIES),
                       clv_arg_i32((int32_t)columns),
                       clv_arg_i32(0) };
    compare(device, "along: solutions", scan, CLV_LEN(scan), 2, solution,
            ITEMS * TERMS * VELOCITIES, velocity, "clv_spectra_along", in_groups,
            "clv_spectra_along_group", (size_t[]){ VELOCITIES, ITEMS, 1 }, 16, 0);
    test_array sink = test_array_from(device, solution, ITEMS * TERMS * VELOCITIES * sizeof(float));
    scan[2] = clv_arg_buffer(sink.buffer);
    compare(device, "along: values", scan, CLV_LEN(scan), 3, value, values, velocity,
            "clv_spectra_along", in_groups, "clv_spectra_along_group",
            (size_t[]){ VELOCITIES, ITEMS, 1 }, 16, near);
    test_array all[] = { list,   partials, ranges,     sums,  boxes, continua,
                         around, states,   velocities, lines, sink };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        test_array_free(&all[i]);
    clv_free(totals), clv_free(state), clv_free(solved), clv_free(partial), clv_free(tap);
    clv_free(along), clv_free(value), clv_free(solution);
}

static void groups_give_the_same_bits(void **state)
{
    (void)state;
    test_each_device(systems_on);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(groups_give_the_same_bits) };
    test_choose(argc, argv);
    test_isolate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

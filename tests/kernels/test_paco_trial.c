/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the kernels of trials, in the forms for CPUs and for GPUs, on every device with plain C in float64: planets
 * subtracted, injected at the same place and elsewhere, all radii, odd sizes, and a patch that cannot be used. */
#include "cube.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/patch/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TRIALS = 7, COPIES = 2 }; /* six of use in each copy: CPUs do four at a time */

typedef struct trial_case {
    test_cube_shape cube;
    unsigned radius;
} trial_case;

static const trial_case cases[] = {
    { { .seed = 1, .frames = 19, .height = 41, .width = 38, .psf_size = 13, .weighted = true }, 4 },
    { { .seed = 2, .frames = 7, .height = 33, .width = 35, .psf_size = 12 }, 2 },
    { { .seed = 3, .frames = 12, .height = 35, .width = 35, .psf_size = 17, .unit = 1e-9 }, 3 },
    { { .seed = 4, .frames = 9, .height = 43, .width = 44, .row_padding = 3 }, 5 },
    { { .seed = 5, .frames = 5, .height = 45, .width = 45, .frame_padding = 7 }, 6 },
};

/* Fluxes are some of the errors that each trial has by itself. */
static void make_trials(const clv_paco_plan *plan, double unit, clv_trial *trials)
{
    const double cx = plan->centre_x, cy = plan->centre_y;
    const clv_trial made[TRIALS] = {
        { .x = cx + 7.3, .y = cy - 2.6 },
        { .x = cx - 4.1, .y = cy + 6.9, .flux = 0.8 },
        { .x = cx + 0.4, .y = cy - 8.0, .flux = 0.7, .injected = 1.5 },
        { .x = cx - 6.8,
          .y = cy - 3.2,
          .flux = 1.1,
          .injected = 1.2,
          .aside_x = 0.3,
          .aside_y = -1.4 },
        { .x = cx + 2.2, .y = cy + 7.9, .flux = 0.5 },
        { .x = cx - 0.9, .y = cy + 0.4, .flux = 0.6 }, /* several frames in a patch */
        { .x = 1, .y = 1, .flux = 1 },
    };
    memcpy(trials, made, sizeof made);
    for (int k = 0; k < TRIALS; ++k)
        trials[k].flux *= unit, trials[k].injected *= unit;
}

/* The sums are compared in units of the diagonal of A, c in units of the likelihood's errors. */
static void compare(const char *where, const clv_trial *want, const clv_trial *got)
{
    for (int k = 0; k < TRIALS; ++k) {
        const clv_trial *w = &want[k], *g = &got[k];
        assert_true(isnan(w->a) == (k == TRIALS - 1) && isnan(w->a) == isnan(g->a));
        if (isnan(w->a)) continue;
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                const double size = sqrt(w->A[4 * i] * w->A[4 * j]);
                if (!(fabs(g->A[3 * i + j] - w->A[3 * i + j]) <= 2e-3 * size))
                    fail_msg("%s: trial %d: A[%d][%d] is %.9g, expected %.9g", where, k, i, j,
                             g->A[3 * i + j], w->A[3 * i + j]);
            }
        for (int i = 0; i < 3; ++i)
            if (!(fabs(g->c[i] - w->c[i]) <= 5e-3 * sqrt(w->A[4 * i])))
                fail_msg("%s: trial %d: c[%d] is %.9g, expected %.9g", where, k, i, g->c[i],
                         w->c[i]);
        if (!(fabs(g->a / w->a - 1) <= 1e-4 && fabs(g->b - w->b) <= 2e-3 * sqrt(w->a)))
            fail_msg("%s: trial %d: a and b are %.9g and %.9g, expected %.9g and %.9g", where, k,
                     g->a, g->b, w->a, w->b);
    }
}

static void check(test_device *device)
{
    for (size_t n = 0; n < CLV_LEN(cases); ++n) {
        if (device->tiny && n != 1) continue; /* the smallest is enough for an interpreter */
        if (test_brief() && n > 1) break;     /* each radius is a program that drivers compile */
        test_cube cube = test_cube_make(&cases[n].cube);
        const clv_paco_options options = { .size = sizeof options, .radius = cases[n].radius };
        const double unit = cases[n].cube.unit > 0 ? cases[n].cube.unit : 1;
        clv_trial want[TRIALS], got[COPIES * TRIALS];
        const size_t copies = device->tiny ? 1 : COPIES;
        clv_paco_plan *plan;
        clv_report *report;
        char where[200];
        snprintf(where, sizeof where, "case %zu", n);
        EXPECT_OK(clv_paco_plan_create(&cube.in, &options, &plan));
        EXPECT_OK(clv_report_create(&report));
        make_trials(plan, unit, want);
        for (size_t i = 0; i < copies; ++i)
            make_trials(plan, unit, got + i * TRIALS);
        clv_context *plain = test_plain_context();
        EXPECT_OK(clv_trials_run(plain, plan, want, TRIALS, NULL, NULL, NULL));
        clv_context_free(plain);
        EXPECT_OK(clv_trials_run(device->context, plan, got, copies * TRIALS, NULL, NULL, report));
        /* the device itself must have done it */
        for (size_t i = 0; i < clv_report_share_count(report); ++i) {
            const clv_share share = clv_report_share(report, i);
            if (share.chunks && strstr(share.device, "host"))
                fail_msg("%s: the host did what the device should", where);
        }
        for (size_t i = 0; i < copies; ++i)
            compare(where, want, got + i * TRIALS);
        test_cube_check(&cube);
        clv_report_free(report), clv_paco_plan_free(plan);
        test_cube_free(&cube);
    }
}

static void rows_match_the_reference(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_CPU, check);
}

static void groups_match_the_reference(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match_the_reference),
        cmocka_unit_test(groups_match_the_reference),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco_trial", tests, NULL, NULL);
}

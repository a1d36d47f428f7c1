/* SPDX-License-Identifier: Apache-2.0 */
/* Tests spots in volumes: compares the kernels with the reference in float64, on every device and in every form; tests
 * slabs, ties, noise and damaged pixels; and compares positions, widths and errors with simulated spots. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/blob/volume_family.h"
#include "host/blob/volume_plan.h"
#include "runtime/job/tune.h"

#include <cleave/volume.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers --------------------------------------------------------------------------------- */

static uint64_t seed;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(seed >> 33) + 0.5) / 2147483648.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Knuth's for small means, a rounded Gaussian for large ones. */
static double poisson(double mean)
{
    if (mean > 50) return fmax(0, floor(mean + sqrt(mean) * normal() + 0.5));
    const double limit = exp(-mean);
    double product = uniform();
    int count = 0;
    for (; product > limit; ++count)
        product *= uniform();
    return count;
}

/* ---- volumes ---------------------------------------------------------------------------------------- */

typedef struct volume {
    size_t depth, height, width;
    double *light; /* expected */
} volume;

static volume dark(size_t depth, size_t height, size_t width, double ground)
{
    volume v = { depth, height, width, malloc(depth * height * width * sizeof(double)) };
    assert_non_null(v.light);
    for (size_t i = 0; i < depth * height * width; ++i)
        v.light[i] = ground;
    return v;
}

static double part(double at, double centre, double sigma)
{
    return 0.5 * (erf((at + 0.5 - centre) / sigma * sqrt(0.5)) -
                  erf((at - 0.5 - centre) / sigma * sqrt(0.5)));
}

static void add_spot(volume *v, double z, double y, double x, double sigma_z, double sigma,
                     double light)
{
    for (size_t i = 0; i < v->depth; ++i) {
        const double pz = part((double)i, z, sigma_z);
        if (pz < 1e-9) continue;
        for (size_t j = 0; j < v->height; ++j) {
            const double py = part((double)j, y, sigma);
            if (py < 1e-9) continue;
            for (size_t k = 0; k < v->width; ++k)
                v->light[(i * v->height + j) * v->width + k] +=
                    light * pz * py * part((double)k, x, sigma);
        }
    }
}

static uint16_t *counts_of(const volume *v)
{
    const size_t n = v->depth * v->height * v->width;
    uint16_t *pixels = malloc(n * sizeof *pixels);
    assert_non_null(pixels);
    for (size_t i = 0; i < n; ++i)
        pixels[i] = (uint16_t)fmin(poisson(v->light[i]), 65535);
    return pixels;
}

static clv_volume_stacks shape_of(const volume *v)
{
    return (clv_volume_stacks){ .size = sizeof(clv_volume_stacks),
                                .type = CLV_BLOB_U16,
                                .stacks = 1,
                                .depth = v->depth,
                                .height = v->height,
                                .width = v->width };
}

/* ---- the kernels ------------------------------------------------------------------------------------ */

static bool same(const clv_volume_spot *a, const clv_volume_spot *b)
{
    return a->frame == b->frame && fabsf(a->z - b->z) < 1e-3f && fabsf(a->y - b->y) < 1e-3f &&
           fabsf(a->x - b->x) < 1e-3f && fabsf(a->sigma - b->sigma) < 1e-3f * b->sigma &&
           fabsf(a->response - b->response) <= 1e-5f * b->response;
}

static void expect_same(const clv_volume_spot *got, size_t count, const clv_volume_spot *want,
                        size_t wanted)
{
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; ++i)
        if (!same(&got[i], &want[i]))
            fail_msg("spot %zu is at %.3f %.3f %.3f (sigma %.3f, response %.6g), the reference has "
                     "it at %.3f "
                     "%.3f %.3f (%.3f, %.6g)",
                     i, (double)got[i].z, (double)got[i].y, (double)got[i].x, (double)got[i].sigma,
                     (double)got[i].response, (double)want[i].z, (double)want[i].y,
                     (double)want[i].x, (double)want[i].sigma, (double)want[i].response);
}

static const struct {
    size_t depth, height, width;
    bool dog, scipy;
    double voxel[3];
    double most;
} kernels[] = {
    { 19, 37, 45, false, false, { 0, 0, 0 }, 3 },   { 19, 37, 45, true, false, { 0, 0, 0 }, 4 },
    { 9, 33, 70, false, false, { 2, 1, 1 }, 3 },    { 21, 40, 35, false, true, { 0.5, 1, 1 }, 2 },
    { 1, 20, 33, false, false, { 0, 0, 0 }, 2 },    { 3, 5, 2, false, false, { 0, 0, 0 }, 2 },
    { 40, 1, 17, true, false, { 1, 1.5, 1 }, 2.5 }, { 12, 30, 33, false, false, { 0, 0, 0 }, 6 },
};

/* Every form, whatever the device is. */
static const struct {
    const char *name;
    clv_device_class class;
} forms[] = { { "rows", CLV_CLASS_CPU },
              { "tile", CLV_CLASS_DISCRETE_GPU },
              { "items", CLV_CLASS_DISCRETE_GPU } };

static void force(test_device *device, size_t form, const clv_volume_stacks *shape,
                  const clv_blob_options *o)
{
    clv_volume_plan *plan;
    char problem[CLV_VOLUME_PROBLEM], key[400];
    if (!device->slow) test_device_disguise(device, forms[form].class);
    EXPECT_OK(clv_volume_plan_create(shape, o, 1, 0, &plan));
    clv_volume_problem(plan, problem);
    clv_volume_plan_free(plan);
    snprintf(key, sizeof key, "volumes %s on %s", problem, device->device->key);
    clv_notes_set(&device->context->tuned, key, forms[form].name);
}

/* Every form, in one slab and in several, against the reference. How many spots there are. */
static size_t expect_reference(test_device *device, clv_context *plain,
                               const clv_volume_stacks *shape, const uint16_t *pixels,
                               const clv_blob_options *o)
{
    clv_volume_spot *want, *got;
    size_t wanted, count;
    EXPECT_OK(clv_volumes(plain, shape, pixels, o, &want, &wanted, NULL, NULL));
    for (size_t form = 0; form < CLV_LEN(forms); ++form) {
        if (device->slow && form == 0) continue; /* vectors of 16 are not for rasterisers */
        force(device, form, shape, o);
        for (size_t slabs = 1; slabs < 8; slabs += 6) {
            EXPECT_OK(clv_volumes_in_slabs(device->context, shape, pixels, o, slabs, &got, &count,
                                           NULL, NULL));
            expect_same(got, count, want, wanted);
            clv_free(got);
        }
    }
    clv_free(want);
    return wanted;
}

static void check_kernels(test_device *device)
{
    clv_context *plain = test_plain_context();
    for (size_t c = 0; c < CLV_LEN(kernels); ++c) {
        if (test_brief() && c > 1) break; /* one of each kind of response */
        if (test_left_out(device, device->slow && c > 2, "more shapes: minutes")) break;
        if (test_left_out(device, device->tiny && c != 4 && c != 5, "shape %zu: minutes", c))
            continue;
        seed = 17 + c;
        volume v = dark(kernels[c].depth, kernels[c].height, kernels[c].width, 100);
        for (int i = 0; i < 12; ++i) {
            const double z = uniform() * (double)v.depth, y = uniform() * (double)v.height,
                         x = uniform() * (double)v.width;
            add_spot(&v, z, y, x, 1.2, 1.2 + uniform(), 4000);
        }
        uint16_t *pixels = counts_of(&v);
        const clv_volume_stacks shape = shape_of(&v);
        clv_blob_options o = { .size = sizeof o,
                               .min_sigma_px = 1,
                               .max_sigma_px = kernels[c].most,
                               .num_sigma = 4,
                               .sigma_ratio = 1.6,
                               .dog = kernels[c].dog,
                               .taps =
                                   kernels[c].scipy ? CLV_BLOB_TAPS_SCIPY : CLV_BLOB_TAPS_ZERO_SUM,
                               .threshold_given = true,
                               .threshold = 8,
                               .keep_overlapping = true };
        memcpy(o.voxel_size, kernels[c].voxel, sizeof o.voxel_size);
        const size_t spots = expect_reference(device, plain, &shape, pixels, &o);
        if (c < 4) assert_true(spots > 8);
        free(pixels), free(v.light);
    }
    clv_context_free(plain);
}

/* Four equal voxels: their responses are the same to the last bit, and the first in (k, z, y, x) is the maximum. */
static void check_ties(test_device *device)
{
    enum { DEPTH = 12, HEIGHT = 20, WIDTH = 40, ALL = DEPTH * HEIGHT * WIDTH };
    static uint16_t pixels[ALL];
    const clv_volume_stacks shape = {
        sizeof shape, CLV_BLOB_U16, 1, DEPTH, HEIGHT, WIDTH, 0, 0, 0
    };
    clv_context *plain = test_plain_context();
    memset(pixels, 0, sizeof pixels);
    for (size_t i = 0; i < 4; ++i)
        pixels[((5 + i / 2) * HEIGHT + 9) * WIDTH + 20 + i % 2] = 4000;
    for (int dog = 0; dog < (test_brief() ? 1 : 2); ++dog) {
        const clv_blob_options o = { .size = sizeof o,
                                     .dog = dog,
                                     .threshold_given = true,
                                     .threshold = 100,
                                     .keep_overlapping = true };
        assert_int_equal(expect_reference(device, plain, &shape, pixels, &o), 1);
    }
    clv_context_free(plain);
}

static void the_first_of_equal_voxels_is_the_maximum(void **unused)
{
    (void)unused;
    test_each_device(check_ties);
}

/* Spots from bright to faint: a limit by the largest response, and one by the noise that the kernels count. */
static void check_limits(test_device *device)
{
    clv_context *plain = test_plain_context();
    volume v = dark(16, 40, 96, 100);
    for (int i = 0; i < 12; ++i)
        add_spot(&v, 7.6, 9.8 + 20 * (i / 6), 8.3 + 15.7 * (i % 6), 1.5, 1.5, 250 * pow(1.4, i));
    seed = 3;
    uint16_t *pixels = counts_of(&v);
    const clv_volume_stacks shape = shape_of(&v);
    for (int dog = 0; dog < 2; ++dog)
        for (int by_noise = 0; by_noise < 2; ++by_noise) {
            if (test_brief() && dog != by_noise) continue;
            const clv_blob_options o = { .size = sizeof o,
                                         .dog = dog,
                                         .threshold_rel_given = !by_noise,
                                         .threshold_rel = by_noise ? 0 : 0.25,
                                         .threshold_sigma_given = by_noise,
                                         .threshold_sigma = by_noise ? 6 : 0 };
            const size_t spots = expect_reference(device, plain, &shape, pixels, &o);
            assert_true(spots > 3 && spots < 12);
        }
    free(pixels), free(v.light);
    clv_context_free(plain);
}

static void limits_match_the_reference(void **unused)
{
    (void)unused;
    test_each_device(check_limits);
}

static void every_form_matches_the_reference(void **unused)
{
    (void)unused;
    test_each_device(check_kernels);
}

/* ---- what a plateau, damaged pixels and a dark stack give -------------------------------------------- */

static void odd_stacks_are_taken(void **unused)
{
    (void)unused;
    enum { SIDE = 24, ALL = SIDE * SIDE * SIDE };
    static float voxels[2 * ALL];
    clv_context *plain = test_plain_context();
    const clv_volume_stacks shape = { sizeof shape, CLV_BLOB_F32, 2, SIDE, SIDE, SIDE, 0, 0, 0 };
    clv_volume_spot *spots;
    size_t count;
    clv_blob_summary summary;
    EXPECT_OK(clv_volumes(plain, &shape, voxels, NULL, &spots, &count, &summary, NULL));
    assert_int_equal(count, 0);
    assert_int_equal(summary.empty_frames, 2);
    /* four equal voxels in the second stack: one spot between them, and once only */
    for (size_t i = 0; i < 4; ++i)
        voxels[ALL + ((12 + i / 2) * SIDE + 12) * SIDE + 12 + i % 2] = 100;
    voxels[7] = NAN;
    EXPECT_OK(clv_volumes(plain, &shape, voxels, NULL, &spots, &count, &summary, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(summary.bad_pixels, 1);
    assert_int_equal(spots[0].frame, 1);
    assert_true(fabsf(spots[0].z - 12.5f) < 0.2f && fabsf(spots[0].y - 12) < 0.05f &&
                fabsf(spots[0].x - 12.5f) < 0.2f);
    clv_free(spots);
    clv_context_free(plain);
}

/* Spots so faint that one in five is found: fits keep to widths that optics make, and the deviations of positions are
 * those that the errors tell. */
static void check_faint(test_device *device)
{
    if (device->slow) return; /* the host fits, so one device is as good as another */
    enum { APART = 18, ACROSS = 9, HIGH = 2, SIDE = APART * ACROSS, STACKS = 3 };
    double squares = 0;
    int found = 0, narrow = 0;
    for (uint64_t stack = 0; stack < STACKS; ++stack) {
        double at[HIGH * ACROSS * ACROSS][3];
        volume v = dark(APART * HIGH, SIDE, SIDE, 60);
        seed = 40 + stack;
        for (int i = 0; i < (int)CLV_LEN(at); ++i) {
            const int cell[3] = { i / (ACROSS * ACROSS), i / ACROSS % ACROSS, i % ACROSS };
            for (int a = 0; a < 3; ++a)
                at[i][a] = APART * cell[a] + 9 + 2 * uniform() - 1;
            add_spot(&v, at[i][0], at[i][1], at[i][2], 1.5, 1.5, 600);
        }
        uint16_t *voxels = counts_of(&v);
        const clv_volume_stacks shape = shape_of(&v);
        const clv_blob_options o = { .size = sizeof o,
                                     .threshold_sigma_given = true,
                                     .threshold_sigma = 5,
                                     .subpixel = CLV_BLOB_SUBPIXEL_FIT };
        clv_volume_spot *spots;
        size_t count;
        EXPECT_OK(clv_volumes(device->context, &shape, voxels, &o, &spots, &count, NULL, NULL));
        for (size_t i = 0; i < count; ++i) {
            const clv_volume_spot *s = &spots[i];
            const int cell =
                ((int)s->z / APART * ACROSS + (int)s->y / APART) * ACROSS + (int)s->x / APART;
            const double d[3] = { s->z - at[cell][0], s->y - at[cell][1], s->x - at[cell][2] };
            if (!(s->z_err > 0) || sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) > 3) continue;
            narrow += s->sigma < 0.9f || s->sigma_z < 0.9f;
            squares += pow(d[0] / s->z_err, 2) + pow(d[1] / s->y_err, 2) + pow(d[2] / s->x_err, 2);
            ++found;
        }
        clv_free(spots), free(voxels), free(v.light);
    }
    const double scatter = sqrt(squares / (3 * found));
    print_message("%d faint spots, %d narrow, deviations %.3f errors\n", found, narrow, scatter);
    assert_true(found > 80 && narrow < 3 && scatter > 0.9 && scatter < 1.1);
}

static void errors_of_faint_spots(void **unused)
{
    (void)unused;
    test_each_device(check_faint);
}

static void wrong_stacks_are_refused(void **unused)
{
    (void)unused;
    static const uint16_t pixels[8];
    clv_context *plain = test_plain_context();
    clv_volume_stacks shape = { sizeof shape, CLV_BLOB_U16, 1, 2, 2, 2, 0, 0, 0 };
    clv_blob_options o = { .size = sizeof o, .voxel_size = { 1, 0, 1 } };
    clv_volume_spot *spots;
    size_t count;
    EXPECT_FAIL(CLV_E_ARGUMENT, "voxel",
                clv_volumes(plain, &shape, pixels, &o, &spots, &count, NULL, NULL));
    o.voxel_size[1] = 1, o.movie_scope = true;
    EXPECT_FAIL(CLV_E_ARGUMENT, "whole movie",
                clv_volumes(plain, &shape, pixels, &o, &spots, &count, NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL",
                clv_volumes(plain, &shape, NULL, NULL, &spots, &count, NULL, NULL));
    const clv_volume_stacks whole = shape;
    /* the products of these strides wrap around to those of small stacks */
    shape.height = 3, shape.plane_stride = 2, shape.row_stride = SIZE_MAX / 2 + 1;
    EXPECT_FAIL(CLV_E_SHAPE, "reach beyond what can be addressed",
                clv_volumes(plain, &shape, pixels, NULL, &spots, &count, NULL, NULL));
    shape = whole, shape.stacks = 3, shape.stack_stride = SIZE_MAX / 2 + 1;
    EXPECT_FAIL(CLV_E_SHAPE, "reach beyond what can be addressed",
                clv_volumes(plain, &shape, pixels, NULL, &spots, &count, NULL, NULL));
    shape = whole, shape.depth = 0;
    EXPECT_FAIL(CLV_E_SHAPE, "every extent must be",
                clv_volumes(plain, &shape, pixels, NULL, &spots, &count, NULL, NULL));
    clv_context_free(plain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_matches_the_reference),
        cmocka_unit_test(the_first_of_equal_voxels_is_the_maximum),
        cmocka_unit_test(limits_match_the_reference),
        cmocka_unit_test(odd_stacks_are_taken),
        cmocka_unit_test(errors_of_faint_spots),
        cmocka_unit_test(wrong_stacks_are_refused),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("volume", tests, NULL, NULL);
}

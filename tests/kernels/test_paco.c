/* SPDX-License-Identifier: Apache-2.0 */
/* Compares clv_paco on every device and in every form with its float64 reference: values, the exact pattern of NaN,
 * and the counts; and checks that no memory of the caller changes. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/record/notes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct maps {
    double *a, *b;
    clv_paco_counts counts;
    size_t positions;
} maps;

static const double UNTOUCHED = -12345.5;

static maps make_maps(const clv_paco_input *in)
{
    maps m = { .positions = in->height * in->width };
    m.a = clv_alloc(m.positions + 1, sizeof *m.a);
    m.b = clv_alloc(m.positions + 1, sizeof *m.b);
    assert_true(m.a && m.b);
    for (size_t i = 0; i <= m.positions; ++i)
        m.a[i] = m.b[i] = UNTOUCHED;
    return m;
}

static void free_maps(maps *m)
{
    clv_free(m->a), clv_free(m->b);
}

static maps run(clv_context *context, const test_cube *cube, const clv_paco_options *options)
{
    maps m = make_maps(&cube->in);
    EXPECT_OK(clv_paco(context, &cube->in, options, m.a, m.b, &m.counts, NULL));
    assert_true(m.a[m.positions] == UNTOUCHED && m.b[m.positions] == UNTOUCHED);
    test_cube_check(cube);
    return m;
}

static maps run_reference(const test_cube *cube, const clv_paco_options *options)
{
    clv_context *context = test_plain_context();
    maps m = run(context, cube, options);
    clv_context_free(context);
    return m;
}

typedef struct tolerance {
    double a, snr, snr_relative; /* relative; absolute and relative */
} tolerance;

/* Without the PSF's basis only rounding is left: a few times the worst seen on any device. With it
 * the bounds are the documented ones; the kernels by themselves are held to far less by the other
 * tests of this folder. */
static tolerance tolerance_of(const clv_paco_options *options)
{
    if (options->psf_mode == CLV_PSF_FIXED) return (tolerance){ 4e-6, 1e-5, 1e-5 };
    if (options->psf_vectors == 5) return (tolerance){ 3e-2, 1e-1, 3e-2 };
    return (tolerance){ .a = 1e-3, .snr = 2e-3, .snr_relative = 1e-3 };
}

static void compare(const char *what, const maps *want, const maps *got, tolerance t)
{
    const clv_paco_counts *n = &got->counts;
    size_t valid = 0;
    assert_memory_equal(&want->counts, n, sizeof *n);
    assert_int_equal(n->valid + n->outside + n->not_finite + n->constant + n->degenerate,
                     got->positions);
    for (size_t i = 0; i < want->positions; ++i) {
        const double a = got->a[i], b = got->b[i], a0 = want->a[i], b0 = want->b[i];
        if (isnan(a) != isnan(a0) || isnan(b) != isnan(b0) || isnan(a) != isnan(b))
            fail_msg("%s: position %zu is (%g, %g), expected (%g, %g)", what, i, a, b, a0, b0);
        if (isnan(a)) continue;
        const double snr = b / sqrt(a), snr0 = b0 / sqrt(a0);
        if (!(fabs(a / a0 - 1) <= t.a))
            fail_msg("%s: a at %zu is %.9g, expected %.9g (off by %.2g)", what, i, a, a0,
                     a / a0 - 1);
        if (!(fabs(snr - snr0) <= t.snr + t.snr_relative * fabs(snr0)))
            fail_msg("%s: S/N at %zu is %.9g, expected %.9g", what, i, snr, snr0);
        ++valid;
    }
    assert_int_equal(valid, n->valid);
}

/* Notes the variant as the one that won, for every problem of this patch. */
static void force(test_device *device, const stage_form *form, const clv_paco_options *options)
{
    static const size_t pixels[] = { 0, 0, 13, 29, 49, 81, 113 };
    static const int vectors[] = { 1, 5, 10, 15 };
    char key[400];
    test_device_disguise(device, form->device_class);
    for (size_t i = 0; i < CLV_LEN(vectors); ++i) {
        snprintf(key, sizeof key, "paco P%zu Q%d on %s",
                 pixels[options->radius ? options->radius : 4], vectors[i], device->device->key);
        clv_notes_set(&device->context->tuned, key, form->variant);
    }
}

/* ---- the table ---- */

typedef struct test_case {
    const char *name;
    test_cube_shape cube;
    clv_paco_options options;
    void (*spoil)(test_cube *cube);
    bool on_slow; /* also on a rasteriser */
} test_case;

/* A NaN, infinities and dead pixels, some where many arcs pass. */
static void spoil_some(test_cube *cube)
{
    const size_t last = cube->in.frames - 1, h = cube->in.height, w = cube->in.width;
    *test_cube_at(cube, last, h / 2, w / 2 + 7) = NAN;
    *test_cube_at(cube, 1, h - 3, 2) = INFINITY;
    *test_cube_at(cube, 0, 1, w - 2) = -INFINITY;
    for (size_t l = 0; l <= last; ++l) {
        *test_cube_at(cube, l, 3, w / 2 - 4) = 0;
        *test_cube_at(cube, l, h / 2 + 6, w / 2) = 21.5f;
        for (size_t x = 0; x < w; ++x) /* a zero-filled edge */
            *test_cube_at(cube, l, h - 1, x) = 0;
    }
}

static void spoil_all(test_cube *cube)
{
    for (size_t l = 0; l < cube->in.frames; ++l)
        for (size_t y = 0; y < cube->in.height; ++y)
            for (size_t x = 0; x < cube->in.width; ++x)
                *test_cube_at(cube, l, y, x) = l && (x + y) % 2 ? NAN : 4;
}

/* One pixel that never changes, under the star: every arc near it is lost, the rest is not. */
static void spoil_centre(test_cube *cube)
{
    for (size_t l = 0; l < cube->in.frames; ++l)
        *test_cube_at(cube, l, cube->in.height / 2, cube->in.width / 2) = 1e-3f;
}

static const test_case cases[] = {
    { "one patch", { 1, 2, 5, 5 }, { .radius = 2 }, NULL, true },
    { "one patch of vip", { 2, 2, 7, 7 }, { .radius = 2, .convention = CLV_PACO_VIP } },
    { "16 wide", { 3, 3, 9, 16 }, { .radius = 2 }, NULL, true },
    { "17 wide, padded",
      { 4, 7, 12, 17, .row_padding = 3, .frame_padding = 5 },
      { .radius = 2, .centre_given = true, .centre_x = 7.75, .centre_y = 6.1 } },
    { "63 wide", { 5, 8, 10, 63 }, { .radius = 2, .psf_mode = CLV_PSF_FIXED } },
    { "65 wide, level, reversed",
      { 6, 9, 11, 65, .level = 2e4 },
      { .radius = 2, .reverse_angles = true } },
    { "small unit", { 8, 12, 13, 33, .unit = 1e-17 }, { .radius = 2, .psf_mode = CLV_PSF_FIXED } },
    { "large unit", { 9, 12, 13, 33, .unit = 1e14 }, { .radius = 2 } },
    { "weighted frames", { 21, 13, 14, 19, .weighted = true }, { .radius = 2 } },
    { "weighted frames, fixed",
      { 22, 9, 13, 17, .weighted = true },
      { .radius = 2, .psf_mode = CLV_PSF_FIXED } },
    { "negative unit", { 9, 12, 14, 19, .unit = -3e5 }, { .radius = 2 } },
    { "vip fixed",
      { 10, 15, 14, 18 },
      { .radius = 2, .convention = CLV_PACO_VIP, .psf_mode = CLV_PSF_FIXED } },
    { "vip shift", { 11, 16, 14, 18 }, { .radius = 2, .convention = CLV_PACO_VIP } },
    { "vip nearest",
      { 11, 5, 12, 16 },
      { .radius = 2, .convention = CLV_PACO_VIP, .rounding = CLV_ROUND_NEAREST } },
    { "truncated", { 12, 11, 12, 16 }, { .radius = 2, .rounding = CLV_ROUND_TRUNC } },
    { "flaws", { 13, 9, 24, 26 }, { .radius = 2 }, spoil_some, true },
    { "flaws, padded",
      { 14, 6, 25, 31, .row_padding = 1 },
      { .radius = 2, .psf_mode = CLV_PSF_FIXED },
      spoil_some },
    { "nothing usable", { 15, 4, 10, 12 }, { .radius = 2 }, spoil_all },
    { "dead star", { 16, 5, 19, 19 }, { .radius = 2 }, spoil_centre },
    { "full turns",
      { 17, 12, 16, 16, .turn = 740, .first_angle = -3000 },
      { .radius = 2, .centre_given = true, .centre_x = 8, .centre_y = 7.5 } },
    { "corner star",
      { 18, 6, 15, 20, .turn = 20 },
      { .radius = 2, .centre_given = true, .centre_x = 0, .centre_y = 14 } },
    { "many frames", { 19, 170, 8, 12 }, { .radius = 2, .psf_mode = CLV_PSF_FIXED } },
};

/* Of every size of patch and basis one: each is a program to compile. In everyday forms. The
 * defaults are compared with golden maps, by tests/cli/paco_goldens.py. */
static const test_case sizes[] = {
    { "5 vectors", { 20, 6, 12, 13 }, { .radius = 2, .psf_vectors = 5 } },
    { "radius 3, 15 vectors", { 23, 7, 12, 13 }, { .radius = 3, .psf_vectors = 15 } },
    { "radius 5", { 21, 9, 14, 13 }, { .radius = 5 } },
    { "radius 6", { 22, 5, 14, 18, .psf_size = 14 }, { .radius = 6, .psf_mode = CLV_PSF_FIXED } },
};

static void check_case(test_device *device, const stage_form *form, const test_case *c)
{
    test_cube cube = test_cube_make(&c->cube);
    char what[160];
    clv_paco_options options = c->options;
    options.size = sizeof options;
    snprintf(what, sizeof what, "%s: %s in form %s", device->name, c->name, form->name);
    if (c->spoil) c->spoil(&cube), test_cube_settle(&cube);
    force(device, form, &options);
    maps want = run_reference(&cube, &options);
    maps got = run(device->context, &cube, &options);
    if (!c->spoil && c->cube.width > 7 && !got.counts.valid)
        fail_msg("%s: nothing was compared", what);
    compare(what, &want, &got, tolerance_of(&options));
    free_maps(&want), free_maps(&got);
    test_cube_free(&cube);
}

/* A device of a rasteriser's kind gets no lanes. */
static bool is_hopeless(const test_device *device, const stage_form *form)
{
    return test_left_out(device, device->slow && form->device_class == CLV_CLASS_CPU,
                         "%s: its compiler takes minutes for lanes", form->name);
}

static void check_form(test_device *device, const stage_form *form)
{
    if (is_hopeless(device, form)) return;
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        if (!test_left_out(device, device->slow && !cases[i].on_slow, "%s in form %s: slow",
                           cases[i].name, form->name))
            check_case(device, form, &cases[i]);
}

static void rows_match_the_reference(void **state)
{
    (void)state;
    stage_each("rows", check_form);
}

static void items_match_the_reference(void **state)
{
    (void)state;
    stage_each("items", check_form);
    stage_each("group", check_form);
}

static void check_sizes(test_device *device, const stage_form *form)
{
    if (!stage_is_main(form)) return;
    if (test_left_out(device, device->slow, "sizes in form %s: each compiles long", form->name))
        return;
    if (test_left_out(device,
                      form->device_class != CLV_CLASS_CPU && test_device_is_another_driver(device),
                      "sizes in form %s: another driver of this CPU has them", form->name))
        return;
    for (size_t i = 0; i < CLV_LEN(sizes); ++i)
        check_case(device, form, &sizes[i]);
}

static void rows_match_at_every_size(void **state)
{
    (void)state;
    stage_each("rows16", check_sizes);
}

static void groups_match_at_every_size(void **state)
{
    (void)state;
    stage_each("group", check_sizes);
}

/* The way of a card: copies of boxes, staging memory, two chunks in flight. */
static void check_card(test_device *device)
{
    if (test_left_out(device, device->slow, "the way of a card: work-groups are too large")) return;
    test_device_as_card(device);
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        if (cases[i].cube.width > 40) continue;
        const stage_form as_group = { "group on a card", "group", CLV_CLASS_DISCRETE_GPU };
        device->context->batch = 3;
        check_case(device, &as_group, &cases[i]);
    }
}

static void matches_with_memory_of_its_own(void **state)
{
    (void)state;
    const clv_context_options options = { .size = sizeof(clv_context_options), .cache_dir = "" };
    for (size_t i = 0; i < test_device_count(); ++i) {
        test_device device;
        test_device_open(i, &options, &device);
        check_card(&device);
        test_device_close(&device);
    }
}

/* A device that counts loop turns gets the same work in shorter launches: the same bits. Groups have no shorter
 * launches, and such a device is never given them. */
static void check_short_loops(test_device *device, const stage_form *form)
{
    static const clv_paco_options options = { .size = sizeof(clv_paco_options),
                                              .radius = 2,
                                              .psf_mode = CLV_PSF_FIXED };
    static const test_cube_shape shape = { 31, 9, 12, 17 };
    if (is_hopeless(device, form)) return;
    test_cube cube = test_cube_make(&shape);
    force(device, form, &options);
    maps whole = run(device->context, &cube, &options);
    device->disguise.flags.loop_limit = 80;
    maps cut = run(device->context, &cube, &options);
    assert_memory_equal(whole.a, cut.a, whole.positions * sizeof *whole.a);
    assert_memory_equal(whole.b, cut.b, whole.positions * sizeof *whole.b);
    free_maps(&whole), free_maps(&cut);
    test_cube_free(&cube);
}

static void short_loops_change_no_bit(void **state)
{
    (void)state;
    stage_each_item_form(check_short_loops);
}

/* CPUs solve and project a chunk's rows in parts: the same bits as all rows at once. */
static void check_parts(test_device *device, const stage_form *form)
{
    static const clv_paco_options options = { .size = sizeof(clv_paco_options), .radius = 2 };
    static const test_cube_shape shape = { 32, 9, 27, 17 };
    if (is_hopeless(device, form)) return;
    test_cube cube = test_cube_make(&shape);
    force(device, form, &options);
    const size_t positions = shape.height * shape.width;
    double *sums = clv_alloc(4 * positions, sizeof *sums);
    assert_non_null(sums);
    for (size_t few = 0; few < 2; ++few) {
        clv_paco_plan *plan;
        clv_paco_counts counts;
        double *a = sums + 2 * few * positions;
        EXPECT_OK(clv_paco_plan_create(&cube.in, &options, &plan));
        if (few) plan->part_bytes = 1;
        EXPECT_OK(clv_paco_run(device->context, plan, NULL, NULL, a, a + positions, &counts, NULL));
        assert_true(counts.valid > 0);
        clv_paco_plan_free(plan);
    }
    assert_memory_equal(sums, sums + 2 * positions, 2 * positions * sizeof *sums);
    clv_free(sums);
    test_cube_free(&cube);
}

static void parts_change_no_bit(void **state)
{
    (void)state;
    stage_each("rows", check_parts);
}

/* ---- the choice of a variant ---- */

static void keep_lanes(clv_log_level level, const char *line, void *user)
{
    const char *lanes = strstr(line, "cl/patch/centre.cl ") ? strstr(line, "-DLANES=") : NULL;
    (void)level;
    if (lanes) snprintf(user, 24, "%.*s", (int)strcspn(lanes + 2, " ]"), lanes + 2);
}

static void check_note(test_device *device)
{
    static const clv_paco_options options = { .size = sizeof(clv_paco_options),
                                              .radius = 2,
                                              .psf_mode = CLV_PSF_FIXED };
    static const test_cube_shape shape = { 32, 3, 9, 16 };
    char path[400], text[400], lanes[24] = "";
    if (strcmp(clv_paco_variants(device->device)[0], "rows16") != 0) return;
    const size_t nth = (size_t)(device->facts - device->context->probe->devices);
    snprintf(path, sizeof path, "%s/tuning.txt", device->cache_dir);
    size_t usual;
    assert_true(clv_paco_usual(device->device, &usual));
    /* Where eight lanes are the usual ones, the others are noted. */
    const bool narrow = usual != 0;
    snprintf(text, sizeof text, "# by hand\npaco P13 Q1 on %s = %s  # because\n",
             device->device->key, narrow ? "rows16" : "rows8");
    clv_context_options again = { .size = sizeof(clv_context_options),
                                  .cache_dir = device->cache_dir,
                                  .no_tuning = true };
    char index[32];
    snprintf(index, sizeof index, "%zu", nth);
    again.devices = index;
    EXPECT_OK(clv_file_write_private(path, text, strlen(text)));
    clv_context *context;
    EXPECT_OK(clv_context_create(&again, &context));
    test_cube cube = test_cube_make(&shape);
    clv_log_set(CLV_LOG_DEBUG, keep_lanes, lanes);
    maps got = run(context, &cube, &options);
    clv_log_set(CLV_LOG_NONE, NULL, NULL);
    assert_string_equal(lanes, narrow ? "LANES=16" : "LANES=8");
    clv_context_free(context);
    free_maps(&got);
    test_cube_free(&cube);
}

static void a_note_in_the_cache_directory_chooses(void **state)
{
    (void)state;
    test_each_device(check_note);
}

/* One test or all: together they take long when no driver has the kernels yet. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match_the_reference),
        cmocka_unit_test(items_match_the_reference),
        cmocka_unit_test(rows_match_at_every_size),
        cmocka_unit_test(groups_match_at_every_size),
        cmocka_unit_test(matches_with_memory_of_its_own),
        cmocka_unit_test(short_loops_change_no_bit),
        cmocka_unit_test(parts_change_no_bit),
        cmocka_unit_test(a_note_in_the_cache_directory_chooses),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco", tests, NULL, NULL);
}

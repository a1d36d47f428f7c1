/* SPDX-License-Identifier: Apache-2.0 */
/* Compares cl/patch/project.cl and project_group.cl with float64: the terms of a planet at every patch in every frame,
 * and their slots. The geometry is computed in integers, so the position that a patch serves is exact. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"
#include "cl/patch/shared.clh"

#include <math.h>
#include <string.h>

enum { PAD = 16 };

static const double EPS = 0x1p-24;

typedef struct inputs {
    float *D, *W, *A;
    size_t D_floats, W_floats, A_floats;
} inputs;

static float *random_floats(size_t count, double size, uint64_t *seed)
{
    float *values = clv_alloc(count, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; ++i)
        values[i] = (float)test_uniform(seed, -size, size);
    return values;
}

static inputs make_inputs(const stage *s, uint64_t seed)
{
    const clv_paco_plan *plan = s->plan;
    const size_t patches = s->c.centre_rows * s->f.width;
    inputs in = { .D_floats = s->c.band_rows * plan->in.frames * s->f.pitch,
                  .W_floats = patches * plan->pixels * plan->basis.vectors,
                  .A_floats = patches * plan->basis.terms_a };
    in.D = random_floats(in.D_floats, 2, &seed);
    in.W = random_floats(in.W_floats, 1, &seed);
    in.A = random_floats(in.A_floats, 3, &seed);
    for (size_t patch = 0; patch < patches; patch += 7) /* unusable ones */
        in.A[stage_kept(s, patch / s->f.width, patch % s->f.width, 0, plan->basis.terms_a)] = NAN;
    return in;
}

/* Monomials by total degree and the sum of their sizes' effects is left to the caller. */
static void monomials(double y, double x, size_t terms, double *phi)
{
    size_t next = 0;
    for (int degree = 0; next < terms; ++degree)
        for (int k = 0; k <= degree && next < terms; ++k)
            phi[next++] = pow(y, degree - k) * pow(x, k);
}

typedef struct hit {
    double a, b, a_allowed, b_allowed;
} hit;

static hit expect_hit(const stage *s, const inputs *in, size_t row, size_t x, size_t frame,
                      double fy, double fx)
{
    const clv_paco_plan *plan = s->plan;
    const size_t q_count = plan->basis.vectors, p_count = plan->pixels;
    const size_t frames = plan->in.frames, pitch = s->f.pitch;
    const float *here =
        in->D + ((s->c.centre0 - s->c.band0 + row) * frames + frame) * pitch + PAD + x;
    double beta[CLV_PACO_MAX_VECTORS] = { 0 }, beta_size[CLV_PACO_MAX_VECTORS] = { 0 };
    double phi[CLV_PACO_TERMS_A];
    hit h = { 0 };
    for (size_t i = 0; i < p_count; ++i)
        for (size_t q = 0; q < q_count; ++q) {
            const double w = in->W[stage_kept(s, row, x, i * q_count + q, p_count * q_count)];
            const double d = here[stage_step(s, plan->offset[i])];
            beta[q] += w * d;
            beta_size[q] += fabs(w * d);
        }
    const size_t terms_a = plan->basis.terms_a, terms_b = plan->basis.terms_b;
    monomials(fy, fx, CLV_MAX(terms_a, terms_b), phi);
    for (size_t m = 0; m < terms_a; ++m) {
        const double term = in->A[stage_kept(s, row, x, m, terms_a)] * phi[m];
        h.a += term;
        h.a_allowed += fabs(term);
    }
    for (size_t m = 0; m < terms_b; ++m)
        for (size_t q = 0; q < q_count; ++q) {
            const double factor = plan->basis.X[m * q_count + q] * phi[m];
            h.b += factor * beta[q];
            h.b_allowed += fabs(factor) * beta_size[q];
        }
    /* a rounding for each step of each sum, and a few for powers of a rounded remainder */
    h.a_allowed *= EPS * (double)(terms_a + 12);
    h.b_allowed *= EPS * (double)(p_count + q_count + terms_b + 12);
    return h;
}

static void expect_near(const char *what, double want, float got, double allowed, size_t row,
                        size_t x, size_t frame)
{
    if (isnan(want) ? isnan(got) : fabs(got - want) <= allowed) return;
    fail_msg("%s of patch (%zu, %zu) in frame %zu is %.9g, expected %.9g within %.3g", what, row, x,
             frame, (double)got, want, allowed);
}

/* Every position of the map, and a frame around it, finds its patch; returns how many did. */
static size_t check_shifted(const stage *s, const inputs *in, const float *hits)
{
    const clv_paco_plan *plan = s->plan;
    const int64_t reach = 3, height = (int64_t)plan->in.height, width = (int64_t)plan->in.width;
    size_t served = 0;
    for (size_t l = 0; l < plan->in.frames; ++l)
        for (int64_t y = -reach; y < height + reach; ++y)
            for (int64_t x = -reach; x < width + reach; ++x) {
                const clv_rotation *r = &plan->turn[l];
                const int64_t row = y * r->c - x * r->s + r->row0,
                              col = x * r->c + y * r->s + r->col0;
                const int64_t at = (row >> 32) - (int64_t)s->c.centre0, to = col >> 32;
                if (at < 0 || at >= (int64_t)s->c.centre_rows || to < 0 || to >= width) continue;
                const double fy = (double)((row & 0xffffffff) - INT64_C(0x80000000)) * 0x1p-32;
                const double fx = (double)((col & 0xffffffff) - INT64_C(0x80000000)) * 0x1p-32;
                const hit want = expect_hit(s, in, (size_t)at, (size_t)to, l, fy, fx);
                const size_t slot = (size_t)((y + x) & 1);
                const float *got =
                    hits +
                    ((((size_t)at * plan->in.frames + l) * 2 + slot) * s->f.width + (size_t)to) * 2;
                expect_near("a", want.a, got[0], want.a_allowed, (size_t)at, (size_t)to, l);
                expect_near("b", want.b, got[1], want.b_allowed, (size_t)at, (size_t)to, l);
                ++served;
            }
    return served;
}

static size_t check_fixed(const stage *s, const inputs *in, const float *hits)
{
    for (size_t row = 0; row < s->c.centre_rows; ++row)
        for (size_t x = 0; x < s->plan->in.width; ++x)
            for (size_t l = 0; l < s->plan->in.frames; ++l) {
                const hit want = expect_hit(s, in, row, x, l, 0, 0);
                const float *got = hits + ((row * s->plan->in.frames + l) * s->f.width + x) * 2;
                expect_near("a", want.a, got[0], want.a_allowed, row, x, l);
                expect_near("b", want.b, got[1], want.b_allowed, row, x, l);
            }
    return s->c.centre_rows;
}

static void launch(const stage *s, const inputs *in, const test_array *hits, size_t step)
{
    const clv_paco_plan *plan = s->plan;
    const clv_psf_basis *basis = &plan->basis;
    const size_t frames = plan->in.frames, item = CLV_MIN(s->f.item_frames, step);
    int32_t pixel[CLV_PACO_MAX_PIXELS];
    for (size_t i = 0; i < plan->pixels; ++i)
        pixel[i] = stage_step(s, plan->offset[i]);
    test_array D = test_array_from(s->device, in->D, in->D_floats * sizeof(float));
    test_array W = test_array_from(s->device, in->W, in->W_floats * sizeof(float));
    test_array A = test_array_from(s->device, in->A, in->A_floats * sizeof(float));
    test_array pixels = test_array_from(s->device, pixel, plan->pixels * sizeof *pixel);
    test_array X =
        test_array_from(s->device, basis->X, basis->terms_b * basis->vectors * sizeof *basis->X);
    test_array turn = test_array_from(s->device, plan->turn, frames * sizeof *plan->turn);
    if (s->f.in_groups) {
        const clv_arg args[] = {
            clv_arg_buffer(D.buffer),
            clv_arg_buffer(W.buffer),
            clv_arg_buffer(A.buffer),
            clv_arg_buffer(hits->buffer),
            clv_arg_buffer(pixels.buffer),
            clv_arg_buffer(X.buffer),
            clv_arg_buffer(turn.buffer),
            stage_u32(s->c.centre_rows),
            stage_u32(s->c.centre0 - s->c.band0),
            stage_u32(s->c.centre0),
            stage_u32(frames),
            stage_u32(s->f.pitch),
            clv_arg_local(clv_paco_project_floats(plan, &s->f) * sizeof(float)),
        };
        const size_t global[3] = { s->f.width / s->f.project_patches * CLV_PACO_PROJECT_GROUP,
                                   s->c.centre_rows, 0 };
        stage_launch_as(s, CLV_PACO_PROJECT_GROUPS, global, CLV_PACO_PROJECT_GROUP, args,
                        CLV_LEN(args));
    }
    for (size_t from = s->f.in_groups ? frames : 0; from < frames; from += step) {
        const size_t to = CLV_MIN(from + step, frames);
        const clv_arg args[] = {
            clv_arg_buffer(D.buffer),
            clv_arg_buffer(W.buffer),
            clv_arg_buffer(A.buffer),
            clv_arg_buffer(hits->buffer),
            clv_arg_buffer(pixels.buffer),
            clv_arg_buffer(X.buffer),
            clv_arg_buffer(turn.buffer),
            stage_u32(s->c.centre_rows),
            stage_u32(s->c.centre0 - s->c.band0),
            stage_u32(s->c.centre0),
            stage_u32(frames),
            stage_u32(s->f.pitch),
            stage_u32(from),
            stage_u32(to),
            stage_u32(item),
        };
        stage_launch(s, CLV_PACO_PROJECT, s->f.width / s->f.lanes, s->c.centre_rows,
                     (to - from + item - 1) / item, args, CLV_LEN(args));
    }
    test_array_free(&D), test_array_free(&W), test_array_free(&A);
    test_array_free(&pixels), test_array_free(&X), test_array_free(&turn);
}

static const struct {
    unsigned radius, vectors;
    size_t frames, height, width, first, rows;
    clv_psf_mode mode;
    clv_rounding rounding;
    double turn, cx, cy;
} cases[] = {
    { 2, 10, 2, 5, 5, 0, 0, CLV_PSF_SHIFT, CLV_ROUND_NEAREST, 90, 2, 2 },
    { 2, 10, 7, 17, 17, 3, 5, CLV_PSF_SHIFT, CLV_ROUND_TRUNC, 311, 7.3, 9.8 },
    { 2, 10, 37, 9, 33, 1, 3, CLV_PSF_SHIFT, CLV_ROUND_NEAREST, -150, 16.5, 4 },
    { 3, 5, 40, 9, 9, 0, 0, CLV_PSF_SHIFT, CLV_ROUND_NEAREST, 20, 4,
      4 }, /* an odd number of vectors */
    { 2, 10, 3, 6, 17, 0, 0, CLV_PSF_FIXED, CLV_ROUND_NEAREST, 60, 8, 3 },
    { 4, 10, 19, 12, 65, 0, 0, CLV_PSF_FIXED, CLV_ROUND_NEAREST, 33, 32, 6 },
};

/* Compilers need seconds for every radius and mode: the smallest patch is one claim, the others are
 * another. */
static bool is_small(size_t i)
{
    return cases[i].radius == 2 && cases[i].mode == CLV_PSF_SHIFT;
}

static void check_form(test_device *device, const stage_form *form, bool small)
{
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        if (is_small(i) != small || (test_brief() && !small)) continue;
        if (test_left_out(device, small && device->slow && i > 1, "%zu frames: half a minute",
                          cases[i].frames))
            continue;
        if (stage_is_too_much(device, cases[i].frames * cases[i].height * cases[i].width)) continue;
        const stage_shape shape = {
            .cube = { .seed = 1,
                      .frames = cases[i].frames,
                      .height = cases[i].height,
                      .width = cases[i].width,
                      .turn = cases[i].turn },
            .options = { .size = sizeof(clv_paco_options),
                         .radius = cases[i].radius,
                         .psf_vectors = cases[i].vectors,
                         .psf_mode = cases[i].mode,
                         .rounding = cases[i].rounding,
                         .centre_given = true,
                         .centre_x = cases[i].cx,
                         .centre_y = cases[i].cy },
            .first = cases[i].first,
            .rows = cases[i].rows,
        };
        stage s;
        stage_open(&s, device, form, &shape);
        inputs in = make_inputs(&s, 400 + i);
        const size_t bytes = s.c.centre_rows * cases[i].frames * (s.plan->shifted ? 2 : 1) *
                             s.f.width * 2 * sizeof(float);
        test_array hits = test_array_new(device, bytes), pieces = test_array_new(device, bytes);
        launch(&s, &in, &hits, cases[i].frames);
        test_array_read(&hits);
        const float *got = (const float *)(void *)hits.host;
        assert_true((s.plan->shifted ? check_shifted : check_fixed)(&s, &in, got) >=
                    s.c.centre_rows);
        if (!s.f.in_groups && /* for devices that count loop turns */
            !test_left_out(device, device->tiny && i, "pieces of case %zu", i)) {
            launch(&s, &in, &pieces, 2 * s.f.frame_block);
            test_array_read(&pieces);
            assert_memory_equal(hits.host, pieces.host, bytes);
        }
        test_array_free(&hits), test_array_free(&pieces);
        clv_free(in.D), clv_free(in.W), clv_free(in.A);
        stage_close(&s);
    }
}

static void check_small(test_device *device, const stage_form *form)
{
    check_form(device, form, true);
}

static void check_others(test_device *device, const stage_form *form)
{
    check_form(device, form, false);
}

static void finds_what_a_planet_would_show(void **state)
{
    (void)state;
    stage_each("", check_small);
}

/* Larger patches, an odd number of vectors, a PSF that stays on the pixel. */
static void finds_it_in_patches_of_all_kinds(void **state)
{
    (void)state;
    stage_each("", check_others);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(finds_what_a_planet_would_show),
                                        cmocka_unit_test(finds_it_in_patches_of_all_kinds) };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco_project", tests, NULL, NULL);
}

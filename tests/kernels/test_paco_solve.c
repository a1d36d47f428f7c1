/* SPDX-License-Identifier: Apache-2.0 */
/* cl/patch/solve_rows.cl and cl/patch/solve_group.cl against float64: shrinkage, weights C^-1 B and
 * the coefficients of a(f), from the same covariances in float32. */
#include "stage.h"
#include "test.h"

#include "base/alloc.h"
#include "base/linalg.h"
#include "cl/patch/shared.clh"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAD = 16 };
/* In pixels: with eight lanes, some tiles of the cases are farther from the centre. */
#define REACH 1.2f

/* D of the real kind: noise that neighbours share. A dead pixel, or zeros beyond the width. */
static double *make_data(const stage *s)
{
    const size_t frames = s->plan->in.frames, pitch = s->f.pitch;
    double *data = clv_zalloc(s->c.band_rows * frames * pitch, sizeof *data);
    assert_non_null(data);
    for (size_t row = 0; row < s->c.band_rows; ++row)
        for (size_t x = 0; x < s->plan->in.width; ++x) {
            double mean = 0;
            for (size_t l = 0; l < frames; ++l)
                mean += *test_cube_at(&s->cube, l, s->c.band0 + row, x);
            mean /= (double)frames; /* exact where all are the same */
            for (size_t l = 0; l < frames; ++l)
                data[(row * frames + l) * pitch + PAD + x] =
                    *test_cube_at(&s->cube, l, s->c.band0 + row, x) - mean;
        }
    return data;
}

static float *make_covariances(const stage *s)
{
    const size_t frames = s->plan->in.frames, pitch = s->f.pitch, lags = s->f.lags_padded;
    double *data = make_data(s);
    float *V = clv_zalloc(s->c.band_rows * lags * pitch, sizeof *V);
    assert_non_null(V);
    for (size_t row = 0; row < s->c.band_rows; ++row)
        for (size_t k = 0; k < s->plan->lags; ++k) {
            if (row + (size_t)s->plan->lag[k].dy >= s->c.band_rows) continue;
            for (size_t p = PAD; p < pitch - PAD; ++p) {
                double sum = 0;
                for (size_t l = 0; l < frames; ++l) {
                    const double *here = data + (row * frames + l) * pitch + p;
                    sum += here[0] * here[stage_step(s, s->plan->lag[k])];
                }
                V[(row * lags + k) * pitch + p] = (float)(sum / (double)frames);
            }
        }
    clv_free(data);
    return V;
}

/* One patch in float64. */
typedef struct patch {
    double C[CLV_PACO_MAX_PIXELS * CLV_PACO_MAX_PIXELS];
    double Y[CLV_PACO_MAX_VECTORS][CLV_PACO_MAX_PIXELS],
        W[CLV_PACO_MAX_VECTORS][CLV_PACO_MAX_PIXELS];
    double rho;
    bool usable;
} patch;

static void shrink(const stage *s, const float *v, const int32_t *entry, patch *out)
{
    const size_t p = s->plan->pixels;
    double all = 0, trace = 0, squares = 0;
    out->usable = true;
    for (size_t i = 0, e = 0; i < p; ++i)
        for (size_t j = 0; j <= i; ++j, ++e) {
            const double c = v[entry[e]];
            out->C[i * p + j] = c;
            all += (i == j ? 1 : 2) * c * c;
            if (i != j) continue;
            trace += c, squares += c * c;
            out->usable = out->usable && c > 0;
        }
    const double top = all + trace * trace - 2 * (s->plan->vip ? all : squares);
    const double bottom = ((double)s->plan->in.frames + 1) * (all - squares);
    out->rho = bottom > 0 ? fmin(fmax(top / bottom, 0), 1) : 1;
    for (size_t i = 0; i < p; ++i)
        for (size_t j = 0; j < i; ++j)
            out->C[i * p + j] *= 1 - out->rho;
}

static void solve(const stage *s, const float *v, const int32_t *entry, patch *out)
{
    const size_t p = s->plan->pixels, q = s->plan->basis.vectors;
    shrink(s, v, entry, out);
    if (!out->usable) return;
    assert_true(clv_cholesky(out->C, p));
    for (size_t k = 0; k < q; ++k) {
        for (size_t i = 0; i < p; ++i)
            out->Y[k][i] = s->plan->basis.B[i * q + k];
        clv_forward_substitute(out->C, p, out->Y[k]);
        for (size_t i = p; i-- > 0;) {
            double sum = out->Y[k][i];
            for (size_t j = i + 1; j < p; ++j)
                sum -= out->C[j * p + i] * out->W[k][j];
            out->W[k][i] = sum / out->C[i * p + i];
        }
    }
}

/* About twice the worst seen: conditions here are 1e2 to 1e3. */
static const double W_TOLERANCE = 4e-6, A_TOLERANCE = 6e-6, RHO_TOLERANCE = 3e-6;

static void check_weights(const stage *s, const patch *want, const float *W, size_t row, size_t x)
{
    const size_t p = s->plan->pixels, q = s->plan->basis.vectors;
    for (size_t k = 0; k < q; ++k) {
        double largest = 0;
        for (size_t i = 0; i < p; ++i)
            largest = fmax(largest, fabs(want->W[k][i]));
        for (size_t i = 0; i < p; ++i) {
            const float got = W[stage_kept(s, row, x, i * q + k, p * q)];
            if (!(fabs(got - want->W[k][i]) <= W_TOLERANCE * largest))
                fail_msg("W of patch (%zu, %zu), vector %zu, pixel %zu is %.9g, expected %.9g "
                         "within %.3g",
                         row, x, k, i, (double)got, want->W[k][i], W_TOLERANCE * largest);
        }
    }
}

static void check_quadratic(const stage *s, const patch *want, const float *A, size_t row, size_t x)
{
    const clv_psf_basis *basis = &s->plan->basis;
    const size_t q = basis->vectors, terms = basis->terms_a;
    for (size_t m = 0; m < terms; ++m) {
        double sum = 0, sizes = 0;
        for (size_t i = 0, n = 0; i < q; ++i)
            for (size_t j = i; j < q; ++j, ++n) {
                double g = 0;
                for (size_t k = 0; k < s->plan->pixels; ++k)
                    g += want->Y[i][k] * want->Y[j][k];
                sum += basis->F[n * terms + m] * g;
                sizes += fabs(basis->F[n * terms + m] * g);
            }
        const float got = A[stage_kept(s, row, x, m, terms)];
        if (!(fabs(got - sum) <= A_TOLERANCE * sizes))
            fail_msg("A of patch (%zu, %zu), term %zu is %.9g, expected %.9g within %.3g", row, x,
                     m, (double)got, sum, A_TOLERANCE * sizes);
    }
}

typedef struct results {
    test_array W, A, rho;
} results;

static void launch(const stage *s, const test_array *V, const int32_t *entry, const results *r)
{
    const clv_paco_plan *plan = s->plan;
    const clv_psf_basis *basis = &plan->basis;
    const size_t p = plan->pixels, q = basis->vectors, first = s->c.centre0 - plan->radius;
    const size_t tiles = s->f.width / s->f.lanes, patches = s->c.centre_rows * tiles;
    const size_t workers = clv_round_up(CLV_MIN(s->f.max_workers, patches), s->f.local);
    int32_t *both = clv_alloc(p * p, sizeof *both);
    assert_non_null(both);
    for (size_t i = 0, e = 0; i < p; ++i) /* the solver in groups reads whole rows */
        for (size_t j = 0; j <= i; ++j, ++e)
            both[i * p + j] = both[j * p + i] = entry[e];
    test_array entries = s->f.in_groups
                             ? test_array_from(s->device, both, p * p * sizeof *both)
                             : test_array_from(s->device, entry, p * (p + 1) / 2 * sizeof *entry);
    test_array B = test_array_from(s->device, basis->B, p * q * sizeof *basis->B);
    test_array F =
        test_array_from(s->device, basis->F, q * (q + 1) / 2 * basis->terms_a * sizeof *basis->F);
    test_array scratch =
        test_array_new(s->device, clv_paco_scratch_floats(plan, &s->f, workers) * sizeof(float));
    const clv_arg args[] = {
        clv_arg_buffer(V->buffer),
        clv_arg_buffer(r->W.buffer),
        clv_arg_buffer(r->A.buffer),
        clv_arg_buffer(r->rho.buffer),
        clv_arg_buffer(entries.buffer),
        clv_arg_buffer(B.buffer),
        clv_arg_buffer(F.buffer),
        clv_arg_buffer(scratch.buffer),
        stage_u32(s->c.centre_rows),
        stage_u32(first - s->c.band0),
        stage_u32(tiles),
        stage_u32(s->f.pitch),
        stage_u32(s->f.lags_padded),
        clv_arg_f32((float)plan->in.frames),
        stage_u32(plan->vip),
        stage_u32(workers),
        clv_arg_f32((float)(plan->centre_y - (double)s->c.centre0)),
        clv_arg_f32((float)plan->centre_x),
        clv_arg_f32(REACH),
    };
    const clv_arg memory = clv_arg_local(clv_paco_local_floats(plan, &s->f) * sizeof(float));
    const clv_arg group_args[] = { args[0],  args[1],  args[2], args[3],  args[4],
                                   args[5],  args[6],  args[9], args[11], args[12],
                                   args[13], args[14], memory };
    if (s->f.in_groups) {
        const size_t local = 2 * s->f.side * s->f.teams;
        assert_true(s->f.teams > 0);
        const size_t global[3] = { s->f.width / s->f.teams * local, s->c.centre_rows, 0 };
        stage_launch_as(s, CLV_PACO_SOLVE_GROUP, global, local, group_args, CLV_LEN(group_args));
    } else {
        stage_launch(s, CLV_PACO_SOLVE_ROWS, workers, 0, 0, args,
                     CLV_LEN(args) - (s->f.lanes > 1 ? 0 : CLV_PACO_REACH_ARGS));
        test_array_read(&scratch);
    }
    test_array_free(&entries), test_array_free(&B), test_array_free(&F), test_array_free(&scratch);
    clv_free(both);
}

/* Forms with lanes leave out tiles whose patches are all farther from the centre. */
static bool is_needed(const stage *s, size_t row, size_t x)
{
    const double tile = (double)(x / s->f.lanes * s->f.lanes), last = tile + (double)s->f.lanes - 1;
    const double dy = (double)(s->c.centre0 + row) - s->plan->centre_y;
    const double dx = fmax(fmax(tile - s->plan->centre_x, s->plan->centre_x - last), 0);
    return s->f.lanes == 1 || dy * dy + dx * dx <= REACH * REACH;
}

/* Every patch of the chunk, also those that no position will use. */
static void check(const stage *s, const float *V, const int32_t *entry, const results *r)
{
    const float *W = (const float *)(void *)r->W.host, *A = (const float *)(void *)r->A.host,
                *rho = (const float *)(void *)r->rho.host;
    const size_t first = s->c.centre0 - s->plan->radius - s->c.band0;
    patch *want = clv_alloc(1, sizeof *want);
    assert_non_null(want);
    for (size_t row = 0; row < s->c.centre_rows; ++row)
        for (size_t x = 0; x < s->f.width; ++x) {
            const float *v = V + (first + row) * s->f.lags_padded * s->f.pitch + PAD + x;
            const float a0 = A[stage_kept(s, row, x, 0, s->plan->basis.terms_a)];
            solve(s, v, entry, want);
            const bool wanted = want->usable && is_needed(s, row, x);
            if (wanted == (bool)isnan(a0))
                fail_msg("patch (%zu, %zu) is %swanted, its A is %g", row, x, wanted ? "" : "not ",
                         (double)a0);
            if (!wanted) continue;
            if (!(fabs(rho[row * s->f.width + x] - want->rho) <= RHO_TOLERANCE))
                fail_msg("rho of patch (%zu, %zu) is %.9g, expected %.9g", row, x,
                         (double)rho[row * s->f.width + x], want->rho);
            check_weights(s, want, W, row, x);
            check_quadratic(s, want, A, row, x);
        }
    clv_free(want);
}

static const struct {
    unsigned radius, vectors;
    size_t frames, height, width, first, rows;
    clv_psf_mode mode;
    bool vip, all_forms; /* else, beyond radius 2, the everyday forms only */
} cases[] = {
    { 2, 10, 3, 5, 5, 0, 0, CLV_PSF_SHIFT, false },    /* one patch, few frames */
    { 2, 10, 30, 11, 17, 2, 3, CLV_PSF_SHIFT, false }, /* a band inside the frame */
    { 2, 10, 12, 7, 19, 0, 0, CLV_PSF_FIXED, true },   /* vip-hci's shrinkage */
    { 4, 10, 20, 10, 19, 0, 0, CLV_PSF_FIXED, false },
    { 4, 10, 200, 10, 14, 1, 1, CLV_PSF_SHIFT, false, true },
    { 6, 10, 40, 13, 14, 0, 0, CLV_PSF_FIXED, false }, /* the largest patch */
};

/* Compilers need seconds for the larger patches, which have claims of their own. */
static bool is_small(size_t i)
{
    return cases[i].radius == 2;
}

static void check_form(test_device *device, const stage_form *form, bool small)
{
    if (test_left_out(device, device->slow && form->device_class == CLV_CLASS_CPU,
                      "%s: its compiler takes minutes for lanes", form->name))
        return;
    if (test_left_out(device,
                      !small && form->device_class != CLV_CLASS_CPU &&
                          test_device_is_another_driver(device),
                      "%s of large patches: another driver of this CPU has them", form->name))
        return;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        if (is_small(i) != small || (test_brief() && !small)) continue;
        if (cases[i].radius > 2 && !cases[i].all_forms && !stage_is_main(form)) continue;
        if (test_left_out(
                device, cases[i].radius == 4 && !cases[i].all_forms && !strcmp(form->name, "group"),
                "one vector and radius 4: compiles for long, radius 6 has it"))
            continue;
        if (test_left_out(device, device->slow && cases[i].radius > 2,
                          "radius %u: compiles for minutes", cases[i].radius))
            continue;
        if (stage_is_too_much(device, cases[i].frames * cases[i].height * cases[i].width)) continue;
        const stage_shape shape = {
            .cube = { .seed = 21 + i, cases[i].frames, cases[i].height, cases[i].width },
            .options = { .size = sizeof(clv_paco_options),
                         .radius = cases[i].radius,
                         .psf_mode = cases[i].mode,
                         .psf_vectors = cases[i].vectors,
                         .convention = cases[i].vip ? CLV_PACO_VIP : CLV_PACO_PAPER },
            .first = cases[i].first,
            .rows = cases[i].rows,
        };
        stage s;
        stage_open(&s, device, form, &shape);
        for (size_t l = 0; l < cases[i].frames && i; ++l) { /* dead pixels spoil some patches, */
            *test_cube_at(&s.cube, l, s.c.centre0, cases[i].width - 2) = 5;
            *test_cube_at(&s.cube, l, s.c.centre0 + cases[i].radius, cases[i].width / 2) =
                5; /* one by its last pixel */
        }
        const size_t patches = s.c.centre_rows * s.f.width, terms = s.plan->basis.terms_a;
        const size_t weights = patches * s.plan->pixels * s.plan->basis.vectors;
        float *covariances = make_covariances(&s);
        int32_t *entry = stage_entries(&s);
        test_array V = test_array_from(device, covariances,
                                       s.c.band_rows * s.f.lags_padded * s.f.pitch * sizeof(float));
        results r = { test_array_new(device, weights * sizeof(float)),
                      test_array_new(device, patches * terms * sizeof(float)),
                      test_array_new(device, patches * sizeof(float)) };
        launch(&s, &V, entry, &r);
        test_array_read(&r.W), test_array_read(&r.A), test_array_read(&r.rho);
        check(&s, covariances, entry, &r);
        test_array_free(&r.W), test_array_free(&r.A), test_array_free(&r.rho), test_array_free(&V);
        clv_free(covariances), clv_free(entry);
        stage_close(&s);
    }
}

static void check_small(test_device *device, const stage_form *form)
{
    check_form(device, form, true);
}

static void check_large(test_device *device, const stage_form *form)
{
    check_form(device, form, false);
}

static void rows_invert_every_patch(void **state)
{
    (void)state;
    stage_each("rows", check_small);
}

static void items_and_groups_invert_every_patch(void **state)
{
    (void)state;
    stage_each("items", check_small);
    stage_each("group", check_small);
}

static void rows_invert_large_patches(void **state)
{
    (void)state;
    stage_each("rows", check_large);
}

static void items_and_groups_invert_large_patches(void **state)
{
    (void)state;
    stage_each("items", check_large);
    stage_each("group", check_large);
}

/* One test or several. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_invert_every_patch),
        cmocka_unit_test(items_and_groups_invert_every_patch),
        cmocka_unit_test(rows_invert_large_patches),
        cmocka_unit_test(items_and_groups_invert_large_patches),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("paco_solve", tests, NULL, NULL);
}

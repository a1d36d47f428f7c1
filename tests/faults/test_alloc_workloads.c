/* SPDX-License-Identifier: Apache-2.0 */
/* Tests PACO, the fits of stars, blobs, links, searches and models, in which the k-th allocation of the library fails,
 * for k = 1, 2, 3, ... until the operation makes fewer, in plain C and on PoCL. Each time the operation gives the right
 * result, or CLV_E_MEMORY with a message and no result; it works when it is repeated, and leaves nothing behind. */
#include "job_test.h"

#include "cube.h"
#include "data.h"
#include "device.h"

#include "base/alloc.h"
#include "host/synthetic/stars.h"

#include <cleave/blob.h>
#include <cleave/motion.h>
#include <cleave/search.h>
#include <cleave/tokenizer.h>
#include <cleave/track.h>
#include <cleave/transformer.h>
#include <cleave/volume.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 5, SIDE = 21, PIXELS = SIDE * SIDE, STARS = 2, MOST = 4096, ENOUGH = 4000 };

static const double FWHM = 3;

/* Made once: what the operations read. */
static test_cube cube;
static synthetic_stars stars;
static clv_model *model;
static uint16_t movie[4 * PIXELS];

/* An operation writes its results to `out` and returns their number in *count. */
typedef struct operation {
    const char *name;
    clv_status (*run)(clv_context *context, double *out, size_t *count);
    bool on_device;   /* its work depends on the device */
    double tolerance; /* relative, of what the host computes in the device's place */
    unsigned stride;  /* of k; after every so many failures the operation is repeated */
} operation;

/* ---- PACO ------------------------------------------------------------------------------------------ */

static const clv_paco_options paco_options = { .size = sizeof(clv_paco_options), .radius = 2 };

static clv_status paco(clv_context *context, double *out, size_t *count)
{
    *count = (size_t)2 * PIXELS;
    return clv_paco(context, &cube.in, &paco_options, out, out + PIXELS, NULL, NULL);
}

static clv_status paco_fixed(clv_context *context, double *out, size_t *count)
{
    clv_paco_options options = paco_options;
    options.psf_mode = CLV_PSF_FIXED;
    *count = (size_t)2 * PIXELS;
    return clv_paco(context, &cube.in, &options, out, out + PIXELS, NULL, NULL);
}

static clv_status prepare(clv_context *context, double *out, size_t *count)
{
    (void)context;
    static float copy[FRAMES * PIXELS], psf[13 * 13];
    clv_paco_frame frames[FRAMES];
    clv_star star;
    size_t kept, mended;
    memcpy(copy, cube.cube, sizeof copy);
    memcpy(psf, cube.psf, sizeof psf);
    copy[PIXELS + 5 * SIDE + 7] = NAN;
    *count = 0;
    CLV_TRY(clv_paco_frames(&cube.in, 5, frames, &kept));
    CLV_TRY(clv_paco_star(&cube.in, FWHM, &star));
    CLV_TRY(clv_paco_mend(copy, FRAMES, SIDE, SIDE, FWHM, &mended));
    CLV_TRY(clv_psf_recentre(psf, 13, &out[0], &out[1]));
    CLV_TRY(clv_psf_fwhm(psf, 13, &out[2]));
    out[3] = (double)kept, out[4] = (double)mended, out[5] = star.x;
    for (size_t l = 0; l < FRAMES; ++l)
        out[6 + l] = frames[l].scale;
    *count = 6 + FRAMES;
    return CLV_OK;
}

/* ---- stars ----------------------------------------------------------------------------------------- */

static size_t put_fits(const clv_specfit_result *r, size_t count, double *out)
{
    for (size_t i = 0; i < count; ++i) {
        const double values[] = { r[i].neg2logl, r[i].velocity, r[i].teff, r[i].chisq[0],
                                  r[i].warnings };
        memcpy(out + i * CLV_LEN(values), values, sizeof values);
    }
    return 5 * count;
}

static clv_status fit(clv_context *context, double *out, size_t *count)
{
    const clv_specfit_options options = { .size = sizeof options, .models = true };
    clv_specfit_result r[STARS] = { 0 };
    const clv_status status = clv_specfit(context, &stars.library, &stars.stars, &options, r, NULL);
    for (size_t i = 0; status && i < STARS; ++i)
        assert_true(r[i].velocity == 0 && !r[i].model[0] && !r[i].model[1]);
    *count = put_fits(r, STARS, out);
    clv_specfit_results_clear(r, STARS);
    return status;
}

static clv_status fit_at(clv_context *context, double *out, size_t *count)
{
    clv_specfit_result r[STARS] = { 0 };
    const clv_status status =
        clv_specfit_at(context, &stars.library, &stars.stars, stars.truth[0], 1, NULL, r, NULL);
    *count = put_fits(r, STARS, out);
    clv_specfit_results_clear(r, STARS);
    return status;
}

static clv_status scan(clv_context *context, double *out, size_t *count)
{
    *count = (size_t)STARS * 3;
    return clv_specfit_scan(context, &stars.library, &stars.stars, stars.truth[0], -40, 40, 3, NULL,
                            out, NULL);
}

/* ---- spots and tracks ------------------------------------------------------------------------------ */

static clv_status blobs(clv_context *context, double *out, size_t *count)
{
    const clv_blob_frames shape = {
        .size = sizeof shape, .type = CLV_BLOB_U16, .frames = 4, .height = SIDE, .width = SIDE
    };
    const clv_blob_options options = { .size = sizeof options,
                                       .subpixel = CLV_BLOB_SUBPIXEL_FIT,
                                       .threshold_sigma_given = true,
                                       .threshold_sigma = 3 };
    clv_spot *spots = NULL;
    size_t n = 0;
    const clv_status status = clv_blobs(context, &shape, movie, &options, &spots, &n, NULL, NULL);
    assert_true(!status || (!spots && !n));
    *count = CLV_MIN(n, MOST / 3) * 3;
    for (size_t i = 0; i < *count / 3; ++i)
        out[3 * i] = spots[i].frame, out[3 * i + 1] = (double)spots[i].y,
                out[3 * i + 2] = (double)spots[i].x;
    clv_free(spots);
    return status;
}

static clv_status volumes(clv_context *context, double *out, size_t *count)
{
    const clv_volume_stacks shape = { .size = sizeof shape,
                                      .type = CLV_BLOB_U16,
                                      .stacks = 1,
                                      .depth = 4,
                                      .height = SIDE,
                                      .width = SIDE };
    const clv_blob_options options = { .size = sizeof options, .subpixel = CLV_BLOB_SUBPIXEL_FIT };
    clv_volume_spot *spots = NULL;
    size_t n = 0;
    const clv_status status = clv_volumes(context, &shape, movie, &options, &spots, &n, NULL, NULL);
    assert_true(!status || (!spots && !n));
    *count = CLV_MIN(n, MOST / 2) * 2;
    for (size_t i = 0; i < *count / 2; ++i)
        out[2 * i] = (double)spots[i].z, out[2 * i + 1] = (double)spots[i].x;
    clv_free(spots);
    return status;
}

static clv_status link_spots(clv_context *context, double *out, size_t *count)
{
    (void)context;
    enum { PARTICLES = 6, TIMES = 5, POINTS = PARTICLES * TIMES };
    clv_point points[POINTS];
    int64_t particle[POINTS];
    size_t tracks, branches;
    clv_branch branch[POINTS];
    clv_tracks *motion = NULL;
    uint64_t state = 9;
    for (size_t i = 0; i < POINTS; ++i)
        points[i] = (clv_point){ .frame = (int64_t)(i / PARTICLES),
                                 .y = (double)(i % PARTICLES) * 3 + test_uniform(&state, -1, 1),
                                 .x = (double)(i / PARTICLES) * 0.5 + test_uniform(&state, -1, 1) };
    *count = 0;
    for (clv_link_predict predict = CLV_PREDICT_NONE; predict <= CLV_PREDICT_CHANNEL; ++predict) {
        const clv_link_options options = { .size = sizeof options,
                                           .search_range = 4,
                                           .memory = 1,
                                           .predict = predict,
                                           .adaptive_stop = 0.5,
                                           .adaptive_group = 3,
                                           .channel_bin = 4 };
        CLV_TRY(clv_link(points, POINTS, &options, particle, &tracks));
        for (size_t i = 0; i < POINTS; ++i)
            out[(*count)++] = (double)particle[i];
    }
    CLV_TRY(clv_link_branches(points, NULL, particle, POINTS, 4, branch, &branches));
    out[(*count)++] = (double)branches;
    CLV_TRY(clv_tracks_create(points, NULL, particle, POINTS, &motion));
    out[(*count)++] = (double)clv_tracks_count(motion);
    clv_tracks_free(motion);
    return CLV_OK;
}

/* ---- vectors and models ---------------------------------------------------------------------------- */

static clv_status search_rows(clv_context *context, double *out, size_t *count)
{
    enum { WIDTH = 16, ROWS = 40, QUERIES = 3, TOP = 4 };
    float rows[ROWS * WIDTH], scores[QUERIES * TOP];
    int64_t best[QUERIES * TOP];
    const clv_search_options options = { .size = sizeof options, .top = TOP };
    clv_search *search = NULL;
    uint64_t state = 4;
    for (size_t i = 0; i < CLV_LEN(rows); ++i)
        rows[i] = (float)test_uniform(&state, -1, 1);
    *count = (size_t)QUERIES * TOP;
    CLV_TRY(clv_search_create(context, rows, QUERIES, WIDTH, &options, &search));
    clv_status status = clv_search_add(search, rows, ROWS, 0, NULL);
    if (!status) status = clv_search_result(search, best, scores);
    for (size_t i = 0; !status && i < *count; ++i)
        out[i] = (double)best[i];
    clv_search_free(search);
    return status;
}

static clv_status embed(clv_context *context, double *out, size_t *count)
{
    float vectors[JOB_TEXTS * JOB_WIDTH] = { 0 };
    CLV_TRY(job_test_encode(context, model, vectors));
    *count = CLV_LEN(vectors);
    for (size_t i = 0; i < *count; ++i)
        out[i] = (double)vectors[i];
    return CLV_OK;
}

static clv_status open_model(clv_context *context, double *out, size_t *count)
{
    (void)context;
    clv_model *opened = NULL;
    const clv_status status = clv_model_open(test_data("cross_encoder/one"), &opened);
    assert_true(!status == !!opened);
    *count = 1;
    out[0] = status ? 0 : (double)clv_model_get_config(opened)->width;
    clv_model_close(opened);
    return status;
}

static clv_status tokenize(clv_context *context, double *out, size_t *count)
{
    (void)context;
    static const char *const texts[] = { "The cats are here.", "caf\xc3\xa9 ole", "" };
    const clv_tokenizer_options options = { .size = sizeof options };
    clv_tokenizer *tokenizer = NULL;
    clv_token_rows rows = { 0 };
    *count = 0;
    CLV_TRY(clv_tokenizer_open(test_data("model/tiny"), &options, &tokenizer));
    const clv_status status = clv_tokenize(tokenizer, texts, NULL, 3, NULL, &rows);
    *count = status ? 0 : rows.tokens;
    for (size_t i = 0; i < *count; ++i)
        out[i] = rows.ids[i];
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(tokenizer);
    return status;
}

static const operation operations[] = {
    { "paco", paco, true, 2e-3, 2 },       { "paco, fixed PSF", paco_fixed, true, 1e-3, 1 },
    { "prepare", prepare, false, 0, 1 },   { "fit", fit, true, 2e-2, 7 },
    { "fit at", fit_at, true, 1e-2, 2 },   { "scan", scan, true, 1e-2, 2 },
    { "blobs", blobs, true, 1e-3, 1 },     { "volumes", volumes, true, 1e-3, 1 },
    { "link", link_spots, false, 0, 1 },   { "search rows", search_rows, true, 0, 1 },
    { "embed", embed, true, 1e-5, 1 },     { "open a model", open_model, false, 0, 1 },
    { "tokenize", tokenize, false, 0, 1 },
};

/* ---- sweeps ---------------------------------------------------------------------------------------- */

/* Runs an operation with the k-th allocation failing. */
static clv_status run(clv_context *context, const operation *o, unsigned long k, double *out,
                      size_t *count, bool *met)
{
    clv_alloc_fail_at(k);
    const clv_status status = o->run(context, out, count);
    *met = clv_alloc_calls() >= k;
    clv_alloc_fail_at(0);
    assert_true(*count <= MOST);
    return status;
}

static void expect_right(const operation *o, unsigned long k, const double *got, const double *want,
                         size_t count, double tolerance)
{
    for (size_t i = 0; i < count; ++i) {
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (!(fabs(got[i] - want[i]) <= tolerance * fmax(1, fabs(want[i]))))
            fail_msg("%s, allocation %lu: result %zu is %.9g, expected %.9g", o->name, k, i, got[i],
                     want[i]);
    }
}

static void sweep(clv_context *context, const operation *o, double tolerance)
{
    static double want[MOST], got[MOST];
    size_t count, counted;
    unsigned long k = 1, failed = 0;
    bool met = true, again;
    EXPECT_OK(run(context, o, 0, want, &count, &met));
    assert_true(count > 0);
    for (met = true; met; k += o->stride) {
        clv_status status = run(context, o, k, got, &counted, &met);
        failed += status != CLV_OK;
        if (status && (!met || status != CLV_E_MEMORY || !*clv_error_message()))
            fail_msg("%s, allocation %lu: %s \"%s\"", o->name, k, clv_status_name(status),
                     clv_error_message());
        if (status && failed % o->stride) continue;
        if (status) status = run(context, o, 0, got, &counted, &again);
        EXPECT_OK(status);
        assert_int_equal(counted, count);
        expect_right(o, k, got, want, count, tolerance);
        assert_true(k < ENOUGH);
    }
    printf("%-16s %lu failures, up to allocation %lu\n", o->name, failed, k - o->stride);
    assert_true(failed > 0);
}

static void in_plain_c(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        sweep(context, &operations[i], 0);
    clv_context_free(context);
}

static void on_a_device(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    for (size_t i = 0; i < CLV_LEN(operations); ++i)
        if (operations[i].on_device) sweep(context, &operations[i], operations[i].tolerance);
    job_test_close(context);
}

/* Spots of one width on noise, which move by a pixel per frame. */
static void make_movie(void)
{
    uint64_t state = 12;
    for (int t = 0; t < 4; ++t)
        for (int y = 0; y < SIDE; ++y)
            for (int x = 0; x < SIDE; ++x) {
                const double dy = y - 6 - t, dx = x - 7, ey = y - 15, ex = x - 11 - t;
                movie[(t * SIDE + y) * SIDE + x] = (uint16_t)(100 + test_uniform(&state, 0, 10) +
                                                              800 * exp(-(dy * dy + dx * dx) / 4) +
                                                              500 * exp(-(ey * ey + ex * ex) / 4));
            }
}

static int make_inputs(void **state)
{
    (void)state;
    const test_cube_shape shape = {
        .seed = 5, .frames = FRAMES, .height = SIDE, .width = SIDE, .turn = 60
    };
    cube = test_cube_make(&shape);
    make_movie();
    model = job_test_model(1);
    return synthetic_stars_create(STARS, 11, true, &stars);
}

static int free_inputs(void **state)
{
    (void)state;
    test_cube_free(&cube);
    clv_model_close(model);
    synthetic_stars_clear(&stars);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_plain_c),
        cmocka_unit_test(on_a_device),
    };
    job_test_begin();
    return cmocka_run_group_tests_name("alloc_workloads", tests, make_inputs, free_inputs);
}

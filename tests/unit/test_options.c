/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that were compiled with an older header: what lies behind their structures is not looked at.
 * Callers that name no place for what they want. */
#include "device.h"
#include "test.h"

#include <cleave/cleave.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nobody may call it. */
static int beyond(const char *job, size_t done, size_t total, void *user)
{
    (void)job, (void)done, (void)total, (void)user;
    abort();
}

static void operations_read_what_callers_have(void **state)
{
    enum { SIDE = 4 };
    clv_context *context = *state;
    const float one = 1;
    float image[SIDE * SIDE], out[SIDE * SIDE], values[2];
    for (int i = 0; i < SIDE * SIDE; ++i)
        image[i] = (float)i;
    const clv_convolve_options convolve = {
        offsetof(clv_convolve_options, constant), CLV_EDGE_WRAP, 3, 100, 100, beyond, NULL
    };
    EXPECT_OK(clv_convolve_2d(context, image, SIDE, SIDE, &one, 1, 1, &convolve, out, NULL));
    assert_memory_equal(image, out, sizeof out);

    const float matrix[] = { 2, 0, 0, 3 };
    const clv_eigen_options eigen = { offsetof(clv_eigen_options, progress), beyond, NULL };
    EXPECT_OK(clv_eigvalsh(context, matrix, 1, 2, &eigen, values, NULL));
    assert_true(values[0] == 2 && values[1] == 3);

    uint64_t inside, plain;
    const clv_monte_carlo_options experiment = {
        offsetof(clv_monte_carlo_options, key), { 1, 2 }, beyond, NULL
    };
    EXPECT_OK(clv_monte_carlo_pi(context, 300000, &experiment, &inside, NULL));
    EXPECT_OK(clv_monte_carlo_pi(context, 300000, NULL, &plain, NULL));
    assert_int_equal(inside, plain);
}

static void nowhere_is_an_error(void **unused)
{
    (void)unused;
    EXPECT_FAIL(CLV_E_ARGUMENT, "context: out is NULL", clv_context_create(NULL, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "report: out is NULL", clv_report_create(NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "queue is NULL", clv_queue_wait(NULL));
}

/* Names longer than there is room for are not cut, and a trace that cannot be written is told. */
static void places_that_cannot_be_are_told(void **unused)
{
    (void)unused;
    char name[2001];
    memset(name, 'x', 2000), name[2000] = '\0';
    const clv_context_options far = { .size = sizeof(clv_context_options),
                                      .mode = CLV_MODE_REFERENCE,
                                      .cache_dir = name };
    clv_context *context;
    EXPECT_FAIL(CLV_E_ARGUMENT, "cache_dir: the name has 2000 bytes, but it may have at most 1023",
                clv_context_create(&far, &context));
    assert_null(context);
    setenv("CLEAVE_TRACE", name, 1);
    const clv_context_options plain = { .size = sizeof(clv_context_options),
                                        .mode = CLV_MODE_REFERENCE,
                                        .cache_dir = "" };
    EXPECT_FAIL(CLV_E_ARGUMENT, "at most 1023", clv_context_create(&plain, &context));
    snprintf(name, sizeof name, "%s/nowhere/trace.json", test_temp_dir());
    setenv("CLEAVE_TRACE", name, 1);
    EXPECT_FAIL(CLV_E_ARGUMENT, "the environment variable CLEAVE_TRACE is",
                clv_context_create(&plain, &context));
    EXPECT_FAIL(CLV_E_ARGUMENT, "nowhere/trace.json: cannot create",
                clv_context_create(&plain, &context));
    unsetenv("CLEAVE_TRACE");
}

/* Every public struct that a caller fills in, zeroed: refused by each function that takes it. */
static void a_size_of_zero_is_refused(void **state)
{
    clv_context *context = *state;
    float number = 1, out[4];
    double wide[4];
    size_t count;
    uint64_t inside;
    int64_t particle;
    clv_array *array;
    void *made;
    EXPECT_OK(clv_array_wrap(context, &number, 0, NULL, &array));
#define REFUSED(type, call)                                                                        \
    do {                                                                                           \
        static const type zero;                                                                    \
        EXPECT_FAIL(CLV_E_ARGUMENT,                                                                \
                    "the size field of " #type " is 0; start the struct with CLV_INIT(" #type ")", \
                    call);                                                                         \
    } while (0)
    REFUSED(clv_context_options, clv_context_create(&zero, (clv_context **)&made));
    REFUSED(clv_probe_options, clv_probe_run(&zero, (clv_probe_report **)&made));
    REFUSED(clv_launch, clv_launch_enqueue(NULL, &zero, NULL, 0, NULL));
    REFUSED(clv_job, clv_job_run(context, &zero, NULL, NULL));
    REFUSED(clv_items, clv_items_run(context, &zero, NULL, 0, NULL, NULL));
    REFUSED(clv_matmul_options, clv_matmul(context, 1, 1, 1, &number, &number, &zero, out));
    REFUSED(clv_convolve_options,
            clv_convolve_2d(context, &number, 1, 1, &number, 1, 1, &zero, out, NULL));
    REFUSED(clv_eigen_options, clv_eigvalsh(context, &number, 1, 1, &zero, out, NULL));
    REFUSED(clv_eigen_options, clv_eigvals(context, &number, 1, 1, &zero, out, out + 1, NULL));
    REFUSED(clv_monte_carlo_options, clv_monte_carlo_pi(context, 1, &zero, &inside, NULL));
    REFUSED(clv_product_options, clv_product(context, array, array, &zero, array));
    REFUSED(clv_attention_shape,
            clv_attention_f32(context, &zero, &number, &number, &number, NULL, out));
    REFUSED(clv_paco_input, clv_paco(context, &zero, NULL, wide, wide, NULL, NULL));
    const clv_paco_input cube = CLV_INIT(clv_paco_input);
    REFUSED(clv_paco_options, clv_paco(context, &cube, &zero, wide, wide, NULL, NULL));
    const clv_blob_frames frames = CLV_INIT(clv_blob_frames);
    REFUSED(clv_blob_frames,
            clv_blobs(context, &zero, &number, NULL, (clv_spot **)&made, &count, NULL, NULL));
    REFUSED(clv_blob_options,
            clv_blobs(context, &frames, &number, &zero, (clv_spot **)&made, &count, NULL, NULL));
    REFUSED(clv_blob_frames, clv_blobs_open(context, &zero, NULL, (clv_blob_stream **)&made));
    REFUSED(clv_blob_options, clv_blobs_open(context, &frames, &zero, (clv_blob_stream **)&made));
    REFUSED(clv_blob_options, clv_blobs_ladder(&zero, wide, &count));
    REFUSED(clv_link_options, clv_link(NULL, 0, &zero, &particle, &count));
    const clv_spectra_library library = CLV_INIT(clv_spectra_library);
    const clv_spectra_stars stars = CLV_INIT(clv_spectra_stars);
    REFUSED(clv_spectra_stars, clv_specfit(context, &library, &zero, NULL, NULL, NULL));
    REFUSED(clv_spectra_library, clv_specfit(context, &zero, &stars, NULL, NULL, NULL));
    REFUSED(clv_specfit_options, clv_specfit(context, &library, &stars, &zero, NULL, NULL));
    const clv_model_config sizes = CLV_INIT(clv_model_config);
    const clv_model_weights weights = CLV_INIT(clv_model_weights);
    REFUSED(clv_model_config, clv_model_create_random(&zero, 1, (clv_model **)&made));
    REFUSED(clv_model_config,
            clv_encoder_open(context, &zero, &weights, NULL, (clv_encoder **)&made));
    REFUSED(clv_model_weights,
            clv_encoder_open(context, &sizes, &zero, NULL, (clv_encoder **)&made));
    REFUSED(clv_encoder_options,
            clv_encoder_open(context, &sizes, &weights, &zero, (clv_encoder **)&made));
    REFUSED(clv_tokenizer_options, clv_tokenizer_open("nowhere", &zero, (clv_tokenizer **)&made));
    REFUSED(clv_language_options,
            clv_language_open(context, "nowhere", &zero, (clv_language **)&made));
#undef REFUSED
    clv_array_free(array);
}

static int open_context(void **state)
{
    *state = test_plain_context();
    return 0;
}

static int close_context(void **state)
{
    clv_context_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_read_what_callers_have),
        cmocka_unit_test(nowhere_is_an_error),
        cmocka_unit_test(a_size_of_zero_is_refused),
        cmocka_unit_test(places_that_cannot_be_are_told),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}

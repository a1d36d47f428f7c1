/* SPDX-License-Identifier: Apache-2.0 */
/* Weights kept on a device whose driver refuses memory: they make room before anything fails, and an
 * encoder whose k-th allocation or command fails still gives the right vectors. */
#include "job_test.h"

#include "runtime/tensor_cache.h"

#include <cleave/transformer.h>

#include <math.h>
#include <stdio.h>

enum { BYTES = 3 << 20 };

static clv_status fill(clv_queue *queue, clv_buffer *buffer, const void *user)
{
    (void)user;
    return clv_fill_enqueue(queue, buffer, 0, BYTES, 1, NULL);
}

static void a_refused_buffer_takes_the_oldest_tensor(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queue;
    clv_tensor *tensors[3];
    clv_buffer *buffer;
    EXPECT_OK(clv_queue_create(device, &queue));
    for (size_t i = 0; i < 3; ++i)
        EXPECT_OK(clv_tensor_get(queue, &device, i, BYTES, fill, NULL, &tensors[i]));
    clv_tensor_put(tensors[0]);
    clv_tensor_put(tensors[2]);
    job_test_faults("buffer=1");
    EXPECT_OK(clv_buffer_create(device, 2 * BYTES, CLV_BUFFER_DEVICE, &buffer));
    assert_int_equal(job_test_stats().injected, 1);
    assert_int_equal(clv_device_memory(device).tensor_evictions, 1);
    assert_int_equal(clv_device_memory(device).failures, 0);
    job_test_faults("");
    EXPECT_OK(clv_tensor_get(queue, &device, 2, BYTES, fill, NULL, &tensors[2]));
    assert_int_equal(clv_device_memory(device).tensor_hits, 1); /* the younger one stayed */
    clv_tensor_put(tensors[1]);
    clv_tensor_put(tensors[2]);
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    job_test_close(context); /* which frees the others */
}

static void a_fill_that_fails_leaves_nothing(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queue;
    clv_tensor *tensor;
    EXPECT_OK(clv_queue_create(device, &queue));
    job_test_faults("enqueue=1;code=-5");
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "clEnqueueFillBuffer",
                clv_tensor_get(queue, &device, 0, BYTES, fill, NULL, &tensor));
    job_test_faults("");
    assert_int_equal(clv_device_memory(device).tensor_bytes, 0);
    EXPECT_OK(clv_tensor_get(queue, &device, 0, BYTES, fill, NULL, &tensor));
    clv_tensor_put(tensor);
    clv_queue_free(queue);
    job_test_close(context);
}

/* ---- an encoder ------------------------------------------------------------------------------------- */

static const clv_model_config small = { .width = 32,
                                        .heads = 2,
                                        .layers = 2,
                                        .ffn = 48,
                                        .vocabulary = 30,
                                        .positions = 20,
                                        .types = 2,
                                        .eps = 1e-12f,
                                        .act = CLV_ACTIVATION_GELU,
                                        .pooling = CLV_MODEL_MEAN,
                                        .normalize = true,
                                        .max_length = 20 };
enum { TEXTS = 3, TOKENS = 24, WIDTH = 32 };

static clv_status encode(clv_context *context, const clv_model *model, float *out)
{
    static const size_t offsets[TEXTS + 1] = { 0, 9, 10, TOKENS };
    static const int32_t ids[TOKENS] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8 };
    const clv_encoder_options options = { .size = sizeof options, .batch_tokens = 10 };
    clv_encoder *encoder;
    EXPECT_OK(clv_encoder_open(context, &small, clv_model_get_weights(model), &options, &encoder));
    const clv_status status = clv_encode(encoder, ids, offsets, TEXTS, out, NULL);
    clv_encoder_close(encoder);
    return status;
}

static void sweep(const clv_model *model, const float *want, const char *fault, uint64_t tensors)
{
    float got[TEXTS * WIDTH];
    unsigned long k = 1;
    for (bool met = true; met; k += 1 + k / 8) {
        char faults[48];
        clv_context *context = job_test_context(&(clv_context_options){ .cache_dir = "",
                                                                        .no_tuning = true,
                                                                        .no_qualification = true,
                                                                        .tensor_bytes = tensors });
        job_test_as_cards(context);
        snprintf(faults, sizeof faults, "%s=%lu;code=-4", fault, k);
        job_test_faults(faults);
        EXPECT_OK(encode(context, model, got));
        met = job_test_stats().injected > 0;
        job_test_faults("");
        for (size_t i = 0; i < TEXTS * WIDTH; ++i)
            if (!(fabsf(got[i] - want[i]) <= 2e-6f))
                fail_msg("%s: element %zu is %.9g, expected %.9g", faults, i, (double)got[i],
                         (double)want[i]);
        assert_int_equal(clv_device_memory(clv_context_device(context, 0)).tensor_bytes, 0);
        job_test_close(context);
        if (k > 2000) fail_msg("no end after %lu calls", k);
    }
    printf("%s: up to %lu\n", fault, k);
}

static void an_encoder_survives_every_refusal(void **state)
{
    (void)state;
    float want[TEXTS * WIDTH];
    clv_model *model;
    EXPECT_OK(clv_model_create_random(&small, 3, &model));
    clv_context *context = job_test_context(NULL);
    EXPECT_OK(encode(context, model, want));
    job_test_close(context);
    sweep(model, want, "buffer", 0);
    sweep(model, want, "enqueue", 0);
    sweep(model, want, "buffer", 1); /* weights come and go */
    sweep(model, want, "event", 1);
    clv_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_buffer_takes_the_oldest_tensor),
        cmocka_unit_test(a_fill_that_fails_leaves_nothing),
        cmocka_unit_test(an_encoder_survives_every_refusal),
    };
    job_test_begin();
    return cmocka_run_group_tests_name("tensor_faults", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests weights kept on a device whose driver refuses memory: they are dropped before any other allocation fails, and
 * an encoder whose k-th allocation or command fails still gives the right vectors. */
#include "job_test.h"

#include "base/clock.h"
#include "runtime/device/pool.h"
#include "runtime/device/tensor_cache.h"

#include <cleave/transformer.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 3 << 20 };

static clv_status fill(clv_queue *queue, clv_buffer *buffer, const void *user)
{
    (void)user;
    return clv_fill_enqueue(queue, buffer, 0, BYTES, 1, NULL);
}

static clv_status fill_half(clv_queue *queue, clv_buffer *buffer, const void *user)
{
    (void)user;
    return clv_fill_enqueue(queue, buffer, 0, BYTES / 2, 1, NULL);
}

static void a_refused_buffer_takes_the_oldest_tensor(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queue;
    clv_kept_tensor *tensors[3];
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
    clv_kept_tensor *tensor;
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

/* The second command is refused, and then the first ends with an error as well. */
static clv_status fill_twice(clv_queue *queue, clv_buffer *buffer, const void *user)
{
    (void)user;
    for (int i = 0; i < 2; ++i)
        CLV_TRY(clv_fill_enqueue(queue, buffer, 0, BYTES, 1, NULL));
    return CLV_OK;
}

static void of_two_failures_the_first_is_told(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queue;
    clv_kept_tensor *tensor;
    EXPECT_OK(clv_queue_create(device, &queue));
    job_test_faults("lost=1;code=-5");
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "clEnqueueFillBuffer",
                clv_tensor_get(queue, &device, 0, BYTES, fill_twice, NULL, &tensor));
    clv_queue_free(queue);
    assert_non_null(strstr(clv_error_message(), "clEnqueueFillBuffer"));
    job_test_faults("");
    job_test_close(context);
}

/* ---- one buffer, several queues ------------------------------------------------------------------ */

static clv_status copy_one(clv_queue *queue, clv_buffer *buffer)
{
    static const char text[] = "__kernel void one(__global uint *a) { a[get_global_id(0)] = 1; }\n";
    static const clv_cl_source source = { "one.cl", text, sizeof text - 1 };
    const clv_arg arg = clv_arg_buffer(buffer);
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &source,
                                .kernel = "one",
                                .global = { 64 },
                                .local = { 16 } };
    return clv_launch_enqueue(queue, &launch, &arg, 1, NULL);
}

/* The queue that was last to use a buffer is through with it, another one is not. */
static void a_buffer_is_idle_when_every_queue_is(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queues[2];
    clv_buffer *buffer, *other;
    clv_kept_tensor *tensor;
    job_releaser r;
    for (size_t i = 0; i < 2; ++i)
        EXPECT_OK(clv_queue_create(device, &queues[i]));
    EXPECT_OK(clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &buffer));
    EXPECT_OK(clv_tensor_get(queues[0], &device, 0, BYTES / 2, fill_half, NULL, &tensor));
    EXPECT_OK(copy_one(queues[0], buffer));
    EXPECT_OK(clv_queue_wait(queues[0]));
    job_test_faults("hold=1");
    EXPECT_OK(copy_one(queues[0], buffer));
    EXPECT_OK(copy_one(queues[0], clv_tensor_buffer(tensor)));
    EXPECT_OK(fill(queues[1], buffer, NULL));
    EXPECT_OK(fill_half(queues[1], clv_tensor_buffer(tensor), NULL));
    EXPECT_OK(clv_queue_wait(queues[1]));

    clv_buffer_free(buffer); /* is kept, and given to nobody yet */
    EXPECT_OK(clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &other));
    assert_ptr_not_equal(other, buffer);
    clv_tensor_put(tensor);
    job_test_release_later(&r, 0.5);
    assert_true(clv_tensors_evict(device)); /* waits for the first queue */
    job_test_expect_released(&r);
    clv_buffer_free(other);
    EXPECT_OK(clv_queue_wait(queues[0]));
    EXPECT_OK(clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &other));
    EXPECT_OK(clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &buffer));
    assert_int_equal(clv_device_memory(device).pool_hits, 2);
    clv_buffer_free(buffer);
    clv_buffer_free(other);
    for (size_t i = 0; i < 2; ++i)
        clv_queue_free(queues[i]);
    assert_int_equal(job_test_stats().early, 0);
    job_test_close(context);
}

enum { THREADS = 4, TURNS = 200 };

static void *use_often(void *buffer)
{
    clv_queue *queue;
    uint32_t got = 0;
    bool ok = clv_queue_create(((clv_buffer *)buffer)->device, &queue) == CLV_OK;
    for (int i = 0; ok && i < TURNS; ++i)
        ok = clv_read(queue, buffer, 0, &got, sizeof got) == CLV_OK && got == 1;
    if (queue) clv_queue_free(queue);
    return ok ? buffer : NULL;
}

/* Each on its own queue, all with one buffer. */
static void threads_share_a_buffer(void **state)
{
    (void)state;
    clv_context *context = job_test_context(NULL);
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queue;
    clv_buffer *buffer;
    pthread_t threads[THREADS];
    EXPECT_OK(clv_queue_create(device, &queue));
    EXPECT_OK(clv_buffer_create(device, BYTES, CLV_BUFFER_DEVICE, &buffer));
    EXPECT_OK(fill(queue, buffer, NULL));
    EXPECT_OK(clv_queue_wait(queue));
    for (size_t i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, buffer), 0);
    for (size_t i = 0; i < THREADS; ++i) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, buffer);
    }
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    job_test_close(context); /* every event was released once */
}

/* ---- an encoder ------------------------------------------------------------------------------------- */

static void sweep(const clv_model *model, const float *want, const char *fault, uint64_t tensors)
{
    float got[JOB_TEXTS * JOB_WIDTH];
    unsigned long k = 1;
    for (bool met = true; met; k += 1 + k / 8) {
        char faults[48];
        clv_context *context =
            job_test_context(&(clv_context_options){ .size = sizeof(clv_context_options),
                                                     .cache_dir = "",
                                                     .no_tuning = true,
                                                     .no_qualification = true,
                                                     .tensor_bytes = tensors });
        job_test_as_cards(context);
        snprintf(faults, sizeof faults, "%s=%lu;code=-4", fault, k);
        job_test_faults(faults);
        EXPECT_OK(job_test_encode(context, model, got));
        met = job_test_stats().injected > 0;
        job_test_faults("");
        for (size_t i = 0; i < JOB_TEXTS * JOB_WIDTH; ++i)
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
    float want[JOB_TEXTS * JOB_WIDTH];
    clv_model *model = job_test_model(2);
    clv_context *context = job_test_context(NULL);
    EXPECT_OK(job_test_encode(context, model, want));
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
        cmocka_unit_test(of_two_failures_the_first_is_told),
        cmocka_unit_test(a_buffer_is_idle_when_every_queue_is),
        cmocka_unit_test(threads_share_a_buffer),
        cmocka_unit_test(an_encoder_survives_every_refusal),
    };
    job_test_begin();
    return cmocka_run_group_tests_name("tensor_faults", tests, NULL, NULL);
}

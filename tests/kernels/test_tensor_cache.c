/* SPDX-License-Identifier: Apache-2.0 */
/* Tests weights that are kept on a device: the limit, pins, which weights are dropped first, and encoders that do not
 * fit. */
#include "device.h"
#include "test.h"

#include "runtime/device/tensor_cache.h"

#include <cleave/transformer.h>

#include <string.h>

enum { COUNT = 16384, BYTES = COUNT * sizeof(uint32_t) }; /* a size class of its own */

static unsigned fills;

static clv_status fill(clv_queue *queue, clv_buffer *buffer, const void *user)
{
    ++fills;
    return clv_fill_enqueue(queue, buffer, 0, BYTES, *(const uint32_t *)user, NULL);
}

/* Gets the tensor, which must hold its number everywhere, and says whether it had to be filled. */
static bool get(test_device *device, const void *owner, uint32_t part, clv_kept_tensor **out)
{
    static uint32_t got[COUNT];
    const unsigned before = fills;
    EXPECT_OK(clv_tensor_get(device->queue, owner, part, BYTES, fill, &part, out));
    EXPECT_OK(clv_read(device->queue, clv_tensor_buffer(*out), 0, got, BYTES));
    for (size_t i = 0; i < COUNT; ++i)
        assert_int_equal(got[i], part);
    return fills > before;
}

static bool touch(test_device *device, const void *owner, uint32_t part)
{
    clv_kept_tensor *tensor;
    const bool filled = get(device, owner, part, &tensor);
    clv_tensor_put(tensor);
    return filled;
}

static void limit(test_device *device, uint64_t tensors)
{
    device->device->tensors->wish = tensors * BYTES;
}

static void check_order(test_device *device)
{
    static const char mine = 1, yours = 2;
    limit(device, 3);
    for (uint32_t i = 1; i <= 3; ++i)
        assert_true(touch(device, &mine, i));
    assert_false(touch(device, &mine, 1)); /* now the latest */
    assert_true(touch(device, &yours, 2)); /* another owner's: 2 goes */
    assert_false(touch(device, &mine, 1));
    assert_false(touch(device, &mine, 3));
    assert_true(touch(device, &mine, 2)); /* takes the place of yours */
    assert_true(touch(device, &yours, 2));
    const clv_memory_stats stats = clv_device_memory(device->device);
    assert_int_equal(stats.tensor_bytes, 3 * BYTES);
    assert_int_equal(stats.tensor_hits, 3);
    assert_int_equal(stats.tensor_fills, 6);
    assert_int_equal(stats.tensor_evictions, 3);
    assert_true(stats.used_bytes >= stats.tensor_bytes);
    clv_tensors_drop(device->device, &mine);
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, BYTES);
    assert_false(touch(device, &yours, 2));
    clv_tensors_drop(device->device, &yours);
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, 0);
}

static void the_least_recently_used_goes_first(void **state)
{
    (void)state;
    test_each_device(check_order);
}

static void check_pins(test_device *device)
{
    static const char mine = 1;
    clv_kept_tensor *one, *two, *again;
    limit(device, 2);
    assert_true(get(device, &mine, 1, &one));
    assert_true(get(device, &mine, 2, &two));
    assert_false(get(device, &mine, 2, &again));
    assert_true(touch(device, &mine, 3)); /* over the limit: nobody can go */
    assert_int_equal(clv_device_memory(device->device).tensor_evictions, 0);
    assert_true(touch(device, &mine, 4)); /* but 3 can, now */
    assert_int_equal(clv_device_memory(device->device).tensor_evictions, 1);
    clv_tensor_put(two); /* still pinned by the other */
    clv_device_trim(device->device);
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, 2 * BYTES);
    assert_false(touch(device, &mine, 1));
    assert_false(touch(device, &mine, 2));
    /* an owner that ends while a tensor is pinned: another one at its address finds nothing */
    clv_tensors_drop(device->device, &mine);
    assert_true(touch(device, &mine, 1));
    clv_tensor_put(one);
    clv_tensor_put(again);
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, BYTES);
    clv_tensor_put(NULL);
}

static void pinned_ones_stay(void **state)
{
    (void)state;
    test_each_device(check_pins);
}

/* Memory that is wanted goes before weights that only might be. */
static void check_room(test_device *device)
{
    static const char mine = 1;
    clv_buffer *large, *more;
    clv_kept_tensor *pinned;
    EXPECT_OK(clv_device_open(device->device));
    device->device->budget = (uint64_t)8 * BYTES;
    limit(device, 6);
    assert_true(get(device, &mine, 1, &pinned));
    for (uint32_t i = 2; i <= 6; ++i)
        assert_true(touch(device, &mine, i));
    EXPECT_OK(clv_buffer_create(device->device, 4 * BYTES, CLV_BUFFER_DEVICE, &large));
    const clv_memory_stats stats = clv_device_memory(device->device);
    assert_int_equal(stats.tensor_bytes, 4 * BYTES);
    assert_int_equal(stats.failures, 0);
    /* what is pinned is nobody's to have: of eight five are gone, and three weights would go */
    const clv_memory_room room = clv_device_room(device->device);
    assert_int_equal(room.limit_bytes - room.free_bytes, 5 * BYTES);
    EXPECT_FAIL(CLV_E_DEVICE_MEMORY, "of the budget",
                clv_buffer_create(device->device, 4 * BYTES, CLV_BUFFER_DEVICE, &more));
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, BYTES);
    assert_int_equal(clv_device_memory(device->device).failures, 1);
    clv_buffer_free(large);
    clv_tensor_put(pinned);
}

static void memory_that_is_wanted_takes_them(void **state)
{
    (void)state;
    test_each_device(check_room);
}

/* ---- encoders --------------------------------------------------------------------------------------- */

static const clv_model_config small = { .size = sizeof(clv_model_config),
                                        .width = 48,
                                        .heads = 3,
                                        .layers = 2,
                                        .ffn = 80,
                                        .vocabulary = 60,
                                        .positions = 40,
                                        .types = 2,
                                        .eps = 1e-12f,
                                        .act = CLV_ACTIVATION_GELU,
                                        .pooling = CLV_MODEL_MEAN,
                                        .normalize = true,
                                        .max_length = 40 };
enum { TEXTS = 4, TOKENS = 60, WIDTH = 48 };

static void encode(clv_encoder *encoder, float *out)
{
    static const size_t offsets[TEXTS + 1] = { 0, 17, 20, 21, TOKENS };
    int32_t ids[TOKENS];
    uint64_t seed = 5;
    for (size_t t = 0; t < TOKENS; ++t)
        ids[t] = (int32_t)(test_random(&seed) % small.vocabulary);
    EXPECT_OK(clv_encode(encoder, ids, offsets, TEXTS, out, NULL));
}

static void check_encoders(test_device *device)
{
    static float want[TEXTS * WIDTH], got[TEXTS * WIDTH];
    const clv_encoder_options options = { .size = sizeof options, .batch_tokens = 20 };
    clv_model *model;
    clv_encoder *encoder, *second;
    device->device->zero_copy = false; /* the table of words is a tensor, too */
    device->device->depth = 2;
    EXPECT_OK(clv_model_create_random(&small, 3, &model));
    const clv_model_weights *weights = clv_model_get_weights(model);
    EXPECT_OK(clv_encoder_open(device->context, &small, weights, &options, &encoder));
    encode(encoder, want);
    clv_memory_stats stats = clv_device_memory(device->device);
    assert_int_equal(stats.tensor_fills, 3);
    assert_int_equal(stats.tensor_evictions, 0);
    assert_true(stats.tensor_bytes > 0);

    device->device->tensors->wish = 1; /* less than a layer: each is brought when its turn comes */
    EXPECT_OK(clv_encoder_open(device->context, &small, weights, &options, &second));
    encode(second, got);
    assert_memory_equal(want, got, sizeof want);
    stats = clv_device_memory(device->device);
    assert_true(stats.tensor_evictions > 3);
    assert_true(stats.tensor_bytes <= (uint64_t)3 * 48 * 48 * 80); /* one, not all */
    encode(encoder, got); /* the first one's are gone as well */
    assert_memory_equal(want, got, sizeof want);

    device->device->tensors->wish = 0;
    encode(second, got);
    encode(second, got);
    assert_memory_equal(want, got, sizeof want);
    clv_encoder_close(second);
    clv_encoder_close(encoder);
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, 0);
    clv_model_close(model);
}

static void an_encoder_beyond_the_limit_gives_the_same_bits(void **state)
{
    (void)state;
    test_each_device(check_encoders);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(pinned_ones_stay),
        cmocka_unit_test(memory_that_is_wanted_takes_them),
        cmocka_unit_test(an_encoder_beyond_the_limit_gives_the_same_bits),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("tensor_cache", tests, NULL, NULL);
}

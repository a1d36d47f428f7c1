/* SPDX-License-Identifier: Apache-2.0 */
/* A small decoder on every device against PyTorch: scores, greedy tokens, drawn ones, refusals. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/generate.h>
#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 48, PROMPT = 9, MADE = 24 };

static int32_t prompt[PROMPT], tokens[MADE];
static float want[PROMPT * WORDS];

static void read_expected(void)
{
    clv_tensors *file;
    EXPECT_OK(clv_tensors_open(DECODER_DATA "/expected.safetensors", &file));
    EXPECT_OK(clv_tensors_read(file, clv_tensors_find(file, "prompt"), prompt, sizeof prompt));
    EXPECT_OK(clv_tensors_read(file, clv_tensors_find(file, "tokens"), tokens, sizeof tokens));
    EXPECT_OK(clv_tensors_read(file, clv_tensors_find(file, "scores"), want, sizeof want));
    clv_tensors_close(file);
}

static void expect_scores(const char *what, const float *got, size_t token)
{
    for (size_t i = 0; i < WORDS; ++i)
        if (!(fabsf(got[i] - want[token * WORDS + i]) <= 2e-5f))
            fail_msg("%s, token %zu: score %zu is %.7g, expected %.7g", what, token, i,
                     (double)got[i], (double)want[token * WORDS + i]);
}

static void check_decoder(test_device *device)
{
    clv_decoder *d;
    float got[WORDS];
    int32_t made[80], again[80];
    size_t count;
    const size_t new_tokens = device->tiny ? 3 : MADE;
    (void)test_left_out(device, new_tokens < MADE, "tokens after %zu", new_tokens);
    clv_generate_options o = { .size = sizeof o, .tokens = new_tokens };
    EXPECT_OK(clv_decoder_open(device->context, DECODER_DATA, 40, &d));
    assert_int_equal(clv_decoder_get_config(d)->kv_heads, 2);
    EXPECT_OK(clv_decoder_feed(d, 0, prompt, PROMPT, got));
    expect_scores("all at once", got, PROMPT - 1);
    for (size_t i = 0; i < PROMPT; ++i) {
        EXPECT_OK(clv_decoder_feed(d, i, prompt + i, 1, got));
        expect_scores("one by one", got, i);
    }
    EXPECT_OK(clv_decoder_feed(d, 4, prompt + 4, 3, got)); /* back, and on with other ones */
    expect_scores("in parts", got, 6);

    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
    assert_int_equal(count, new_tokens);
    assert_memory_equal(made, tokens, new_tokens * sizeof *made);
    o.stops = true, o.stop = tokens[2];
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
    assert_true(count <= 3 && made[count - 1] == tokens[2]);
    o.stops = false, o.temperature = 2, o.top_k = 1; /* nothing to draw from */
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
    assert_memory_equal(made, tokens, new_tokens * sizeof *made);
    o.top_k = 0, o.seed = 5;
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, again, &count));
    assert_memory_equal(made, again, new_tokens * sizeof *made);
    o.seed = 6;
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, again, &count));
    if (!device->tiny) assert_memory_not_equal(made, again, new_tokens * sizeof *made);
    if (!test_left_out(device, device->tiny, "a text until no room is left")) {
        o.tokens = 80, o.temperature = 0;
        EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
        assert_int_equal(count, 40 - PROMPT + 1);
    }
    clv_decoder_close(d);
}

static void says_what_pytorch_says(void **state)
{
    (void)state;
    read_expected();
    test_each_device(check_decoder);
}

/* The first token, drawn with many seeds, as often as its softmax says. */
static void check_drawing(test_device *device)
{
    clv_decoder *d;
    const size_t draws = device->slow ? 20 : 400;
    size_t often[WORDS] = { 0 }, count;
    double sum = 0;
    if (test_left_out(device, device->tiny, "%zu draws", draws)) return;
    EXPECT_OK(clv_decoder_open(device->context, DECODER_DATA, 0, &d));
    const float *last = want + (size_t)(PROMPT - 1) * WORDS;
    const double temperature = 1.5;
    for (size_t i = 0; i < WORDS; ++i)
        sum += exp((double)last[i] / temperature);
    for (uint64_t seed = 0; seed < draws; ++seed) {
        const clv_generate_options o = { .tokens = 1, .temperature = temperature, .seed = seed };
        int32_t made;
        EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, &made, &count));
        ++often[made];
    }
    for (size_t i = 0; i < WORDS; ++i) {
        const double p = exp((double)last[i] / temperature) / sum;
        const double spread = sqrt((double)draws * p * (1 - p));
        if (!(fabs((double)often[i] - (double)draws * p) <= 4.5 * spread + 1))
            fail_msg("word %zu: drawn %zu of %zu times, expected %.1f", i, often[i], draws,
                     (double)draws * p);
    }
    clv_decoder_close(d);
}

static void draws_as_the_scores_say(void **state)
{
    (void)state;
    test_each_device(check_drawing);
}

/* A limit below a single layer: weights come when their turn is, and go; the tokens are the same. */
static void check_small_cache(test_device *device)
{
    clv_decoder *d, *other;
    int32_t made[MADE];
    size_t count;
    const size_t new_tokens = device->tiny || device->slow ? 2 : 6;
    const clv_generate_options o = { .size = sizeof o, .tokens = new_tokens };
    EXPECT_OK(clv_decoder_open(device->context, DECODER_DATA, 40, &d));
    clv_memory_stats stats = clv_device_memory(device->device);
    const uint64_t all = stats.tensor_bytes, fills = stats.tensor_fills;
    assert_int_equal(fills, 2 + clv_decoder_get_config(d)->layers);
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
    assert_memory_equal(made, tokens, new_tokens * sizeof *made);
    assert_int_equal(clv_device_memory(device->device).tensor_fills, fills); /* packed once */

    device->device->tensors.wish = 1;
    EXPECT_OK(clv_decoder_open(device->context, DECODER_DATA, 40, &other));
    EXPECT_OK(clv_generate(other, prompt, PROMPT, &o, made, &count));
    assert_memory_equal(made, tokens, new_tokens * sizeof *made);
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count)); /* its own are gone as well */
    assert_memory_equal(made, tokens, new_tokens * sizeof *made);
    stats = clv_device_memory(device->device);
    assert_true(stats.tensor_fills >= 2 * fills + 2 * new_tokens * fills);
    assert_true(stats.tensor_bytes < all);
    clv_decoder_close(other);
    clv_decoder_close(d);
    assert_int_equal(clv_device_memory(device->device).tensor_bytes, 0);
}

static void a_decoder_beyond_the_limit_says_the_same(void **state)
{
    (void)state;
    read_expected();
    test_each_device(check_small_cache);
}

static void check_refusals(test_device *device)
{
    clv_decoder *d;
    float got[WORDS];
    int32_t made[4], bad[] = { 1, WORDS };
    size_t count;
    clv_generate_options o = { .tokens = 4, .temperature = -1 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "the model has 64",
                clv_decoder_open(device->context, DECODER_DATA, 65, &d));
    EXPECT_FAIL(CLV_E_IO, "nothing_here", clv_decoder_open(device->context, "nothing_here", 0, &d));
    EXPECT_OK(clv_decoder_open(device->context, DECODER_DATA, 8, &d));
    EXPECT_FAIL(CLV_E_SHAPE, "room for 8", clv_decoder_feed(d, 0, prompt, PROMPT, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "vocabulary has 48", clv_decoder_feed(d, 0, bad, 2, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "0 are kept", clv_decoder_feed(d, 1, prompt, 1, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "temperature", clv_generate(d, prompt, 2, &o, made, &count));
    clv_decoder_close(d);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    test_each_device(check_refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_pytorch_says),
        cmocka_unit_test(draws_as_the_scores_say),
        cmocka_unit_test(a_decoder_beyond_the_limit_says_the_same),
        cmocka_unit_test(refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests_name("generate", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a small decoder on every device with PyTorch: scores, greedy tokens and drawn tokens; and tests which calls
 * are refused. */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "runtime/device/tensor_cache.h"

#include <cleave/generate.h>
#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 48, PROMPT = 9, MADE = 24 };

static int32_t prompt[PROMPT], tokens[MADE];
static float want[PROMPT * WORDS];

static void read_expected(void)
{
    clv_tensors *file;
    EXPECT_OK(clv_tensors_open(test_data("decoder/expected.safetensors"), &file));
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
    EXPECT_OK(clv_decoder_open(device->context, test_data("decoder"), 40, &d));
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
    EXPECT_OK(clv_decoder_open(device->context, test_data("decoder"), 0, &d));
    const float *last = want + (size_t)(PROMPT - 1) * WORDS;
    const double temperature = 1.5;
    for (size_t i = 0; i < WORDS; ++i)
        sum += exp((double)last[i] / temperature);
    for (uint64_t seed = 0; seed < draws; ++seed) {
        const clv_generate_options o = { .size = sizeof(clv_generate_options),
                                         .tokens = 1,
                                         .temperature = temperature,
                                         .seed = seed };
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
    EXPECT_OK(clv_decoder_open(device->context, test_data("decoder"), 40, &d));
    clv_memory_stats stats = clv_device_memory(device->device);
    const uint64_t all = stats.tensor_bytes, fills = stats.tensor_fills;
    assert_int_equal(fills, 2 + clv_decoder_get_config(d)->layers);
    EXPECT_OK(clv_generate(d, prompt, PROMPT, &o, made, &count));
    assert_memory_equal(made, tokens, new_tokens * sizeof *made);
    assert_int_equal(clv_device_memory(device->device).tensor_fills, fills); /* packed once */

    device->device->tensors->wish = 1;
    EXPECT_OK(clv_decoder_open(device->context, test_data("decoder"), 40, &other));
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
    clv_generate_options o = { .size = sizeof(clv_generate_options),
                               .tokens = 4,
                               .temperature = -1 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "the model has at most 64",
                clv_decoder_open(device->context, test_data("decoder"), 65, &d));
    EXPECT_FAIL(CLV_E_IO, "nothing_here", clv_decoder_open(device->context, "nothing_here", 0, &d));
    EXPECT_OK(clv_decoder_open(device->context, test_data("decoder"), 8, &d));
    EXPECT_FAIL(CLV_E_SHAPE, "room for 8", clv_decoder_feed(d, 0, prompt, PROMPT, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "token 1 is 48, expected an id below 48",
                clv_decoder_feed(d, 0, bad, 2, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "only 0 are kept", clv_decoder_feed(d, 1, prompt, 1, got));
    EXPECT_FAIL(CLV_E_ARGUMENT, "temperature", clv_generate(d, prompt, 2, &o, made, &count));
    clv_decoder_close(d);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    test_each_device(check_refusals);
}

/* ---- other configurations ---------------------------------------------------------------------------- */

/* A folder with these weights and a config.json in which `was` is `now`. */
static const char *folder_with(const char *was, const char *now)
{
    static char folder[256], path[300], text[8192], changed[9000];
    snprintf(folder, sizeof folder, "%s/decoder", test_temp_dir());
    (void)mkdir(folder, 0700);
    FILE *file = fopen(test_data("decoder/config.json"), "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(text, was);
    assert_non_null(at);
    const int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, now,
                                at + strlen(was));
    snprintf(path, sizeof path, "%s/config.json", folder);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(changed, 1, (size_t)length, file), length);
    fclose(file);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (access(path, F_OK) != 0)
        assert_int_equal(symlink(test_data("decoder/model.safetensors"), path), 0);
    return folder;
}

/* What would change the scores, and is not computed, is refused by name. */
static void check_configurations(test_device *device)
{
    static const struct {
        const char *was, *now, *part;
        clv_status status;
    } wrong[] = {
        { "\"rope_type\": \"default\"", "\"rope_type\": \"llama3\", \"factor\": 8.0",
          "low_freq_factor is nothing, expected a number", CLV_E_FORMAT },
        { "\"rope_type\": \"default\"", "\"factor\": 8.0",
          "rope_scaling has a factor but no rope_type", CLV_E_FORMAT },
        { "\"use_cache\": true", "\"rope_scaling\": {\"type\": \"longrope\", \"factor\": 2}",
          "rope_scaling is \"longrope\"; only", CLV_E_UNSUPPORTED },
        { "\"use_cache\": true", "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 0.5}",
          "rope_scaling has factor 0.5", CLV_E_FORMAT },
        { "\"use_cache\": true", "\"partial_rotary_factor\": 0.5",
          "partial_rotary_factor is 0.5; only", CLV_E_UNSUPPORTED },
        { "\"use_cache\": true", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}",
          "the factor of rotary positions is 0.5, expected 1", CLV_E_FORMAT },
        { "\"hidden_size\": 32", "\"hidden_size\": \"32\"",
          "hidden_size is text, expected a whole number", CLV_E_FORMAT },
        { "\"hidden_size\": 32,", "", "hidden_size is nothing, expected a whole number",
          CLV_E_FORMAT },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0",
          "num_hidden_layers is 0, expected 1 to", CLV_E_FORMAT },
        { "\"head_dim\": 8", "\"head_dim\": 16", "asks for 64 rows of 32 weights", CLV_E_FORMAT },
        { "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 2",
          "the epsilon of the norms is 2, expected a number above 0", CLV_E_FORMAT },
        { "\"intermediate_size\": 56", "\"intermediate_size\": 57",
          "asks for 57 rows of 32 weights", CLV_E_FORMAT },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
          "\"model.layers.2.input_layernorm.weight\" is missing", CLV_E_FORMAT },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
          "has no place in a model of architecture llama with 1 layers", CLV_E_UNSUPPORTED },
        { "\"use_cache\": true", "\"rope_scaling\": [{\"type\": \"linear\", \"factor\": 8}]",
          "rope_scaling is a list, expected an object", CLV_E_FORMAT },
    };
    static const struct {
        const char *was, *now;
        double base;
    } good[] = {
        { "\"use_cache\": true", "\"rope_theta\": 5e5", 1e4 }, /* rope_parameters come first */
        { "\"rope_theta\": 10000.0", "\"rope_theta\": 2e4", 2e4 },
        { "\"use_cache\": true",
          "\"rope_scaling\": {\"rope_type\": \"default\", \"rope_theta\": 3e4}", 3e4 },
        { "\"rope_parameters\": {", "\"rope_theta\": 4e4, \"other\": {", 4e4 },
        { "\"rope_parameters\": {", "\"other\": {", 1e4 },
        { "\"use_cache\": true", "\"rope_scaling\": null", 1e4 },
        { "\"head_dim\": 8", "\"head_dim\": null", 1e4 },
    };
    clv_decoder *d;
    for (size_t i = 0; i < CLV_LEN(wrong); ++i)
        EXPECT_FAIL(
            wrong[i].status, wrong[i].part,
            clv_decoder_open(device->context, folder_with(wrong[i].was, wrong[i].now), 8, &d));
    for (size_t i = 0; i < CLV_LEN(good); ++i) {
        EXPECT_OK(clv_decoder_open(device->context, folder_with(good[i].was, good[i].now), 8, &d));
        assert_true(clv_decoder_get_config(d)->rope_base == good[i].base);
        clv_decoder_close(d);
    }
}

static void configurations_are_obeyed_or_refused(void **state)
{
    (void)state;
    test_device device; /* any one */
    test_device_open(0, NULL, &device);
    check_configurations(&device);
    test_device_close(&device);
}

/* A weight that is not a number is named. Formerly the device was blamed for the scores. */
static void a_weight_that_is_no_number_is_named(void **state)
{
    (void)state;
    enum { LAST = 4 };
    static const unsigned char nan[LAST] = { 0, 0, 0xC0, 0x7F };
    const clv_generate_options o = { .size = sizeof(clv_generate_options), .tokens = 2 };
    char path[400];
    char *bytes;
    size_t length, count;
    int32_t made[2];
    clv_decoder *d;
    test_device device; /* any one */
    test_device_open(0, NULL, &device);
    const char *folder = folder_with("\"use_cache\": true", "\"use_cache\": true");
    EXPECT_OK(clv_file_read(test_data("decoder/model.safetensors"), 1 << 24, &bytes, &length));
    memcpy(bytes + length - LAST, nan, LAST);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    EXPECT_OK(clv_file_write(path, bytes, length));
    EXPECT_OK(clv_decoder_open(device.context, folder, 8, &d));
    EXPECT_FAIL(CLV_E_FORMAT, "is nan, so the scores of this model are no numbers",
                clv_generate(d, prompt, 2, &o, made, &count));
    clv_decoder_close(d);
    clv_free(bytes);
    test_device_close(&device);
}

/* Feeds `count` tokens of a repeated text after the first `used`. */
static clv_status feed(clv_decoder *d, size_t used, size_t count, float *scores)
{
    int32_t ids[512];
    for (size_t i = 0; i < count; ++i)
        ids[i] = prompt[(used + i) % PROMPT];
    return clv_decoder_feed(d, used, ids, count, scores);
}

/* Without memory at any time while the cache of keys and values begins, and then while it grows. */
static void check_growth(test_device *device)
{
    enum { FIRST = 512 };
    float want_first[WORDS], want_last[WORDS], want_next[WORDS], got[WORDS];
    clv_decoder *d;
    unsigned long failed = 0;
    if (test_left_out(device, device->tiny || device->slow, "texts of 513 tokens")) return;
    const char *folder =
        folder_with("\"max_position_embeddings\": 64", "\"max_position_embeddings\": 2048");
    EXPECT_OK(clv_decoder_open(device->context, folder, 2048, &d));
    EXPECT_OK(feed(d, 0, FIRST, want_first));
    EXPECT_OK(feed(d, FIRST - 1, 1, want_last));
    EXPECT_OK(feed(d, FIRST, 1, want_next));
    clv_decoder_close(d);
    for (size_t used = 0; used <= FIRST; used += FIRST) {
        bool all = false;
        for (unsigned long k = 1; !all; ++k) {
            EXPECT_OK(clv_decoder_open(device->context, folder, 2048, &d));
            if (used) EXPECT_OK(feed(d, 0, used, got));
            if (used) EXPECT_OK(feed(d, used - 1, 1, got));
            clv_device_trim(device->device); /* so that buffers need memory, too */
            clv_alloc_fail_at(k);
            const clv_status status = feed(d, used, used ? 1 : FIRST, got);
            all = clv_alloc_calls() < k;
            clv_alloc_fail_at(0);
            failed += status != CLV_OK;
            if (status) {
                assert_true(status == CLV_E_MEMORY || status == CLV_E_DEVICE_MEMORY);
                if (used) {
                    EXPECT_OK(feed(d, used - 1, 1, got)); /* which needs no more room */
                    assert_memory_equal(got, want_last, sizeof got);
                }
                EXPECT_OK(feed(d, used, used ? 1 : FIRST, got));
            }
            if (memcmp(got, used ? want_next : want_first, sizeof got) != 0)
                fail_msg("other scores after %zu tokens and allocation %lu", used, k);
            clv_decoder_close(d);
        }
    }
    printf("%lu allocations\n", failed);
    assert_true(failed > 8);
}

static void a_cache_that_could_not_grow_is_the_same_as_before(void **state)
{
    (void)state;
    read_expected();
    test_each_device(check_growth);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_pytorch_says),
        cmocka_unit_test(draws_as_the_scores_say),
        cmocka_unit_test(a_decoder_beyond_the_limit_says_the_same),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(configurations_are_obeyed_or_refused),
        cmocka_unit_test(a_cache_that_could_not_grow_is_the_same_as_before),
        cmocka_unit_test(a_weight_that_is_no_number_is_named),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("generate", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that several tokens computed together have the bits of each one computed alone: several texts, and guesses
 * that are checked together. */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <cleave/generate.h>
#include <cleave/init.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 512, MOST_WORDS = 512, TEXTS = 11, STEPS = 3 };

/* Long enough that attention is cut into parts of the keys, and short ones beside them. */
static const size_t long_and_short[TEXTS] = { 1, 9, 140, 3, 270, 17, 128, 2, 31, 5, 33 };

/* A model of the goldens with a longer context: its file, changed. */
static const char *longer(const char *name)
{
    static char path[400];
    static const char key[] = "context_length";
    char *data;
    size_t length;
    EXPECT_OK(clv_file_read(test_data("generate/tiny/%s", name), 1 << 24, &data, &length));
    size_t at = 0;
    while (memcmp(data + at, key, sizeof key - 1) != 0)
        ++at;
    const uint32_t context = CONTEXT; /* behind the key and its type */
    memcpy(data + at + sizeof key - 1 + 4, &context, sizeof context);
    snprintf(path, sizeof path, "%s/%s", test_temp_dir(), name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
    clv_free(data);
    return path;
}

static size_t words_of(const clv_language *l)
{
    clv_language_info info = CLV_INIT(clv_language_info);
    EXPECT_OK(clv_language_get_info(l, &info));
    assert_true(info.vocabulary <= MOST_WORDS);
    return info.vocabulary;
}

static int32_t id_of(size_t text, size_t place, size_t words)
{
    return (int32_t)((text * 7919 + place * 104729 + 13) % words);
}

static clv_sequence *prompt(clv_language *l, size_t text, size_t count, size_t words)
{
    int32_t ids[CONTEXT];
    clv_sequence *s;
    for (size_t i = 0; i < count; ++i)
        ids[i] = id_of(text, i, words);
    EXPECT_OK(clv_sequence_create(l, &s));
    EXPECT_OK(clv_sequence_feed(s, ids, count, NULL));
    return s;
}

/* The scores of `texts` texts in each step: of each alone, then of all together. */
static void check_together(clv_language *l, const char *what, const size_t *lengths, size_t texts,
                           size_t steps)
{
    static float alone[TEXTS][STEPS][MOST_WORDS];
    clv_sequence *all[TEXTS];
    int32_t ids[TEXTS];
    const size_t words = words_of(l);
    for (size_t t = 0; t < texts; ++t) {
        all[t] = prompt(l, t, lengths[t], words);
        for (size_t i = 0; i < steps; ++i) {
            const int32_t id = id_of(t, lengths[t] + i, words);
            EXPECT_OK(clv_sequence_feed(all[t], &id, 1, alone[t][i]));
        }
        EXPECT_OK(clv_sequence_rewind(all[t], lengths[t]));
    }
    for (size_t i = 0; i < steps; ++i) {
        for (size_t t = 0; t < texts; ++t)
            ids[t] = id_of(t, lengths[t] + i, words);
        EXPECT_OK(clv_sequences_feed(all, texts, ids));
        for (size_t t = 0; t < texts; ++t) {
            const float *scores;
            EXPECT_OK(clv_sequence_scores(all[t], &scores));
            for (size_t k = 0; k < words; ++k)
                if (memcmp(&scores[k], &alone[t][i][k], sizeof *scores) != 0)
                    fail_msg("%s, text %zu, step %zu: score %zu is %.9g, alone %.9g", what, t, i, k,
                             (double)scores[k], (double)alone[t][i][k]);
        }
    }
    EXPECT_FAIL(CLV_E_ARGUMENT, "texts 0 and 1 are the same",
                clv_sequences_feed((clv_sequence *const[]){ all[0], all[0] }, 2, ids));
    for (size_t t = 0; t < texts; ++t)
        clv_sequence_free(all[t]);
}

static clv_written write_text(clv_language *l, const clv_sampling *sampling, size_t lookup,
                              size_t tokens)
{
    clv_writing w = CLV_INIT(clv_writing);
    clv_written out = CLV_INIT(clv_written);
    int32_t ids[12];
    clv_sequence *s;
    const size_t words = words_of(l);
    for (size_t i = 0; i < CLV_LEN(ids); ++i) /* says everything twice */
        ids[i] = id_of(1, i % 6, words);
    w.sampling = sampling, w.tokens = tokens, w.ignore_end = true, w.lookup = lookup;
    EXPECT_OK(clv_sequence_create(l, &s));
    EXPECT_OK(clv_sequence_feed(s, ids, CLV_LEN(ids), NULL));
    EXPECT_OK(clv_sequence_write(s, &w, &out));
    clv_sequence_free(s);
    return out;
}

static size_t hits, misses; /* of a device's guesses, all models together */

/* Guesses change no token, be they taken by the highest score or drawn. */
static void check_guesses(clv_language *l, size_t tokens)
{
    clv_sampling sampling = CLV_SAMPLING_INIT;
    for (int drawn = 0; drawn < 2; ++drawn) {
        sampling.temperature = drawn ? 0.3 : 0, sampling.seed = 4;
        clv_written plain = write_text(l, &sampling, 0, tokens);
        for (size_t lookup = 1; lookup <= 7; lookup += 3) {
            clv_written guessed = write_text(l, &sampling, lookup, tokens);
            assert_int_equal(guessed.count, plain.count);
            assert_memory_equal(guessed.tokens, plain.tokens, plain.count * sizeof *plain.tokens);
            assert_string_equal(guessed.text, plain.text);
            hits += guessed.hits, misses += guessed.guessed - guessed.hits;
            clv_free(guessed.tokens), clv_free(guessed.text);
        }
        clv_free(plain.tokens), clv_free(plain.text);
    }
}

/* A simulated device that watches every access takes a minute for hundreds of tokens. */
static void check_model(test_device *device, const char *name, clv_language_activations how)
{
    static const size_t few_and_short[] = { 2, 1, 3 };
    clv_language *l;
    clv_language_options o = CLV_INIT(clv_language_options);
    o.activations = how;
    if (device->tiny) { /* it does not know the prefetches of products of many rows */
        o.chunk = 1;
        EXPECT_OK(clv_language_open(device->context, longer(name), &o, &l));
        check_together(l, name, few_and_short, CLV_LEN(few_and_short), 1);
        clv_language_close(l);
        return;
    }
    EXPECT_OK(clv_language_open(device->context, longer(name), &o, &l));
    check_together(l, name, long_and_short, device->slow ? 3 : TEXTS, STEPS);
    check_guesses(l, device->slow ? 8 : 40);
    clv_language_close(l);
}

static void check_device(test_device *device)
{
    hits = misses = 0;
    check_model(device, "tiny-qwen2.gguf", CLV_LANGUAGE_F32);
    if (test_left_out(device, device->slow || device->tiny, "other types, rounded activations"))
        return;
    if (test_left_out(device, test_device_is_another_driver(device),
                      "other types, rounded activations: another driver of this CPU has them"))
        return;
    check_model(device, "tiny-legacy.gguf", CLV_LANGUAGE_F32);
    check_model(device, "tiny-qwen3.gguf", CLV_LANGUAGE_F32);
    check_model(device, "tiny-legacy.gguf", CLV_LANGUAGE_INT8);
    if (!hits || !misses) fail_msg("%zu guesses were right, %zu wrong", hits, misses);
}

static void a_few_tokens_have_the_bits_of_each_alone(void **state)
{
    (void)state;
    test_each_device(check_device);
}

static void check_card(test_device *device)
{
    check_model(device, "tiny-qwen2.gguf", CLV_LANGUAGE_F32);
}

static void kernels_for_gpus_give_the_same_bits(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_card);
}

/* Several texts of plain C, and writing of them together. */
static void texts_written_together_are_those_alone(void **state)
{
    (void)state;
    clv_language *l;
    const clv_language_options o = CLV_INIT(clv_language_options);
    EXPECT_OK(clv_language_open(NULL, longer("tiny-qwen2.gguf"), &o, &l));
    const size_t words = words_of(l);
    clv_sampling sampling[3];
    clv_writing w[3];
    clv_written alone[3], together[3];
    clv_sequence *all[3];
    for (size_t i = 0; i < 3; ++i) {
        sampling[i] = (clv_sampling)CLV_SAMPLING_INIT;
        sampling[i].seed = i;
        w[i] = (clv_writing)CLV_INIT(clv_writing);
        w[i].sampling = &sampling[i], w[i].tokens = 3 + 4 * i, w[i].ignore_end = true;
        alone[i] = together[i] = (clv_written)CLV_INIT(clv_written);
        all[i] = prompt(l, i, 4 + i, words);
        EXPECT_OK(clv_sequence_write(all[i], &w[i], &alone[i]));
        clv_sequence_free(all[i]);
        all[i] = prompt(l, i, 4 + i, words);
    }
    EXPECT_OK(
        clv_sequences_write(all, 3, (const clv_writing *const[]){ &w[0], &w[1], &w[2] },
                            (clv_written *const[]){ &together[0], &together[1], &together[2] }));
    for (size_t i = 0; i < 3; ++i) {
        assert_int_equal(together[i].count, 3 + 4 * i);
        assert_int_equal(together[i].stop, CLV_STOP_LENGTH);
        assert_memory_equal(together[i].tokens, alone[i].tokens,
                            alone[i].count * sizeof *alone[i].tokens);
        assert_string_equal(together[i].text, alone[i].text);
        clv_free(alone[i].tokens), clv_free(alone[i].text);
        clv_free(together[i].tokens), clv_free(together[i].text);
        clv_sequence_free(all[i]);
    }
    w[0].lookup = 8;
    clv_sequence *s = prompt(l, 0, 4, words);
    clv_written out = CLV_INIT(clv_written);
    EXPECT_FAIL(CLV_E_ARGUMENT, "lookup is 8, expected 0 to 7", clv_sequence_write(s, &w[0], &out));
    clv_sequence_free(s);
    clv_language_close(l);
}

/* A caller that was built before guesses were known has a shorter struct. */
static void older_callers_get_what_they_know(void **state)
{
    (void)state;
    clv_language *l;
    const clv_language_options o = CLV_INIT(clv_language_options);
    EXPECT_OK(clv_language_open(NULL, longer("tiny-qwen2.gguf"), &o, &l));
    clv_sequence *s = prompt(l, 0, 4, words_of(l));
    clv_writing w = CLV_INIT(clv_writing);
    clv_written out = { .guessed = 12345, .hits = 54321 };
    w.size = offsetof(clv_writing, lookup), out.size = offsetof(clv_written, guessed);
    w.tokens = 2, w.lookup = 99;
    EXPECT_OK(clv_sequence_write(s, &w, &out));
    assert_int_equal(out.count, 2);
    assert_true(out.guessed == 12345 && out.hits == 54321);
    clv_free(out.tokens), clv_free(out.text);
    clv_sequence_free(s);
    clv_language_close(l);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_tokens_have_the_bits_of_each_alone),
        cmocka_unit_test(kernels_for_gpus_give_the_same_bits),
        cmocka_unit_test(texts_written_together_are_those_alone),
        cmocka_unit_test(older_callers_get_what_they_know),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("language_few", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares language models of every architecture and weight type, on every device and in plain C, with a decoder in
 * double precision; and tests texts that are written token by token. */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#include <cleave/generate.h>
#include <cleave/init.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_IDS = 128, MOST_WORDS = 512 };

static clv_json *golden;
static size_t words; /* of the model's vocabulary */

static clv_language *open_tiny(clv_context *context, const char *name,
                               const clv_language_options *options)
{
    clv_language *l;
    EXPECT_OK(clv_language_open(context, test_data("generate/tiny/%s", name), options, &l));
    clv_language_info info = CLV_INIT(clv_language_info);
    EXPECT_OK(clv_language_get_info(l, &info));
    words = info.vocabulary;
    assert_true(words <= MOST_WORDS);
    return l;
}

static size_t ids_of(const clv_json *list, int32_t *ids)
{
    const size_t count = clv_json_count(list);
    assert_true(count <= MOST_IDS);
    for (size_t i = 0; i < count; ++i)
        ids[i] = (int32_t)clv_json_number(clv_json_at(list, i), -1);
    return count;
}

static int32_t highest(const float *scores)
{
    size_t best = 0;
    for (size_t i = 1; i < words; ++i)
        if (scores[i] > scores[best]) best = i;
    return (int32_t)best;
}

static void expect_top(const char *what, const clv_json *one, const float *scores, double tolerance)
{
    const clv_json *top = clv_json_get(one, "top");
    for (size_t i = 0; i < clv_json_count(top); ++i) {
        const clv_json *pair = clv_json_at(top, i);
        const size_t id = (size_t)clv_json_number(clv_json_at(pair, 0), -1);
        const double want = clv_json_number(clv_json_at(pair, 1), 0);
        if (!(fabs((double)scores[id] - want) <= tolerance))
            fail_msg("%s: score of token %zu is %.6f, expected %.6f", what, id, (double)scores[id],
                     want);
    }
}

/* A golden case: the prompt in one go, the highest tokens after it, then every prefix of the prompt. */
static void check_case(const char *what, clv_sequence *s, const clv_json *one, double tolerance,
                       size_t tokens)
{
    int32_t ids[MOST_IDS], made[MOST_IDS], best[MOST_IDS];
    float scores[MOST_WORDS];
    const size_t count = ids_of(clv_json_get(one, "prompt_tokens"), ids);
    const size_t wanted = ids_of(clv_json_get(one, "tokens"), made);
    const size_t places = ids_of(clv_json_get(one, "argmax_of_all"), best);
    EXPECT_OK(clv_sequence_rewind(s, 0));
    EXPECT_OK(clv_sequence_feed(s, ids, count, scores));
    expect_top(what, one, scores, tolerance);
    for (size_t i = 0; i < CLV_MIN(wanted, tokens); ++i) {
        const double lead = clv_json_number(clv_json_at(clv_json_get(one, "leads"), i), 0);
        if (lead < 2 * tolerance) break; /* a tie as far as this goes */
        const int32_t id = highest(scores);
        if (id != made[i]) fail_msg("%s: token %zu is %d, expected %d", what, i, id, made[i]);
        EXPECT_OK(clv_sequence_feed(s, &id, 1, scores));
    }
    if (!places || tokens < wanted) return;
    EXPECT_OK(clv_sequence_rewind(s, 0));
    for (size_t i = 0; i < places; ++i) {
        EXPECT_OK(clv_sequence_feed(s, &ids[i], 1, scores));
        if (highest(scores) != best[i]) fail_msg("%s: prefix %zu", what, i);
    }
}

static void check_model(clv_context *context, const char *name, const char *device,
                        const clv_language_options *options, double tolerance, size_t tokens)
{
    char what[256];
    clv_sequence *s;
    const clv_json *cases = clv_json_get(golden, name);
    clv_language *l = open_tiny(context, name, options);
    EXPECT_OK(clv_sequence_create(l, &s));
    assert_int_equal(clv_json_count(cases), 4);
    for (size_t i = 0; i < clv_json_count(cases); ++i) {
        snprintf(what, sizeof what, "%s on %s, case %zu", name, device, i);
        check_case(what, s, clv_json_at(cases, i), tolerance, tokens);
        if (tokens < 4) break;
    }
    clv_sequence_free(s);
    clv_language_close(l);
}

#define ONE_BY_ONE 1.5e-5 /* of scores below 10 */
static const clv_language_options usual = CLV_INIT(clv_language_options);

/* Together they have all formats of weights, which are programs of their own. */
static bool has_every_block(const char *name)
{
    return strcmp(name, "tiny-float.gguf") == 0 || strcmp(name, "tiny-k.gguf") == 0 ||
           strcmp(name, "tiny-legacy.gguf") == 0;
}

/* Set once a CPU has run all models with the kernels for GPUs. That test runs first. */
static bool seen_for_cards;

static void check_models_with(test_device *device, const clv_language_options *options)
{
    const char *name = NULL;
    while ((name = clv_json_next_key(golden, name)))
        if (!test_left_out(device, device->tiny && strcmp(name, "tiny-qwen2.gguf") != 0, "%s",
                           name) &&
            !test_left_out(device, test_device_is_another_driver(device) && !has_every_block(name),
                           "%s: another driver of this CPU has it", name) &&
            !test_left_out(device, device->slow && seen_for_cards && !has_every_block(name),
                           "%s: another driver has it, by the same kernels", name))
            check_model(device->context, name, "the device", options, 1e-4, device->tiny ? 2 : 24);
}

static void check_models(test_device *device)
{
    check_models_with(device, &usual);
}

/* oclgrind does not know the prefetches of products of many rows, which have a test of their own there. */
static void check_models_on_cores(test_device *device)
{
    clv_language_options o = usual;
    if (device->tiny) o.chunk = 1;
    check_models_with(device, &o);
}

static void every_model_scores_as_in_double_precision(void **state)
{
    (void)state;
    test_each_device(check_models_on_cores);
}

/* The kernels for GPUs, on the first CPU, and on what takes them anyway: compilers need minutes for all models. */
static void check_models_for_gpus(test_device *device)
{
    static bool seen;
    if (test_left_out(device, seen && !device->slow,
                      "kernels for GPUs: another driver of this CPU has them"))
        return;
    seen |= !device->slow;
    check_models(device);
    seen_for_cards |= !device->slow && !device->tiny;
}

static void kernels_for_gpus_score_as_in_double_precision(void **state)
{
    (void)state;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_models_for_gpus);
}

static void plain_c_scores_as_in_double_precision(void **state)
{
    (void)state;
    const char *name = NULL;
    while ((name = clv_json_next_key(golden, name)))
        check_model(NULL, name, "plain C", &usual, 2e-5, 24);
}

/* Prompts in pieces, a cache of halves. */
static void check_ways(test_device *device)
{
    static const size_t chunks[] = { 1, 5, 9 };
    static bool seen;
    clv_language_options o = usual;
    if (test_left_out(device, device->tiny || device->slow, "pieces of prompts, halves")) return;
    if (test_left_out(device, seen,
                      "pieces of prompts, halves: another driver of this CPU has them"))
        return;
    seen = true;
    for (size_t i = 0; i < CLV_LEN(chunks); ++i) {
        o.chunk = chunks[i];
        /* Token by token, weights may be multiplied in slices of bytes: these have to be as exact as floats. */
        check_model(device->context, "tiny-legacy.gguf", "the device, in pieces", &o,
                    i ? 1e-4 : ONE_BY_ONE, 24);
    }
    o = usual, o.cache = CLV_LANGUAGE_CACHE_F16;
    check_model(device->context, "tiny-qwen3.gguf", "the device, halves", &o, 0.02, 24);
}

static void pieces_and_halves_say_the_same(void **state)
{
    (void)state;
    test_each_device(check_ways);
}

/* Layers on two devices: the row of a token goes from one to the other. */
static void layers_on_two_devices_score_the_same(void **state)
{
    (void)state;
    static const size_t layers[] = { 1, 1 };
    const clv_context_options options = { .size = sizeof options, .devices = "0,1" };
    clv_language_options o = usual;
    clv_language_share share = CLV_INIT(clv_language_share);
    clv_context *context = NULL;
    if (clv_context_create(&options, &context) || clv_context_device_count(context) < 2) {
        clv_context_free(context);
        test_skip("layers on two devices: there is one");
        return;
    }
    o.split = layers, o.split_count = 2;
    clv_language *l = open_tiny(context, "tiny-qwen2.gguf", &o);
    EXPECT_OK(clv_language_get_share(l, 1, &share));
    assert_int_equal(share.first, 1);
    assert_int_equal(share.layers, 1);
    clv_language_close(l);
    check_model(context, "tiny-qwen2.gguf", "two devices", &o, 1e-4, 8);
    o.split_count = 1; /* a sum that is not the model's */
    EXPECT_FAIL(CLV_E_ARGUMENT, "must add up to the model's 2 layers",
                clv_language_open(context, test_data("generate/tiny/tiny-qwen2.gguf"), &o, &l));
    clv_context_free(context);
}

/* ---- texts ----------------------------------------------------------------------------------------- */

typedef struct told {
    char text[4096];
    size_t length, pieces, most;
} told;

static int listen(const char *text, size_t length, int32_t id, void *user)
{
    told *t = user;
    (void)id;
    assert_true(t->length + length < sizeof t->text);
    assert_true(!length ||
                ((unsigned char)text[0] & 0xC0) != 0x80); /* no piece begins within a character */
    memcpy(t->text + t->length, text, length);
    t->text[t->length += length] = '\0';
    return ++t->pieces == t->most;
}

static clv_written write_text(clv_language *l, clv_writing *w, const char *prompt)
{
    clv_written out = CLV_INIT(clv_written);
    clv_token_rows rows = { 0 };
    clv_sequence *s;
    EXPECT_OK(clv_tokenize(clv_language_tokenizer(l), &prompt, NULL, 1, NULL, &rows));
    EXPECT_OK(clv_sequence_create(l, &s));
    EXPECT_OK(clv_sequence_feed(s, rows.ids, rows.tokens, NULL));
    EXPECT_OK(clv_sequence_write(s, w, &out));
    clv_sequence_free(s);
    clv_token_rows_clear(&rows);
    return out;
}

static void texts_are_told_in_whole_characters_and_stop(void **state)
{
    (void)state;
    clv_language *l = open_tiny(NULL, "tiny-spm.gguf", &usual);
    clv_sampling sampling = CLV_SAMPLING_INIT;
    told t = { .most = SIZE_MAX };
    clv_writing w = CLV_INIT(clv_writing);
    w.tokens = 40, w.ignore_end = true, w.piece = listen, w.user = &t, w.sampling = &sampling;
    sampling.temperature = 3, sampling.top_k = 0, sampling.top_p = 0, sampling.min_p = 0;
    clv_written whole = write_text(l, &w, "the cat");
    assert_int_equal(whole.stop, CLV_STOP_LENGTH);
    assert_int_equal(whole.count, 40);
    assert_string_equal(t.text, whole.text);
    assert_true(t.pieces > 4);

    char stop[8] = { 0 }; /* what came in the middle ends another text of the same seed */
    const char *const stops[] = { "nothing of the kind", stop, NULL };
    size_t at = whole.length / 2;
    while (((unsigned char)whole.text[at] & 0xC0) == 0x80)
        ++at;
    memcpy(stop, whole.text + at, CLV_MIN(whole.length - at, (size_t)3));
    const char *first = strstr(whole.text, stop);
    t = (told){ .most = SIZE_MAX };
    w.stops = stops;
    clv_written cut = write_text(l, &w, "the cat");
    assert_int_equal(cut.stop, CLV_STOP_TEXT);
    assert_int_equal(cut.length, (size_t)(first - whole.text));
    assert_memory_equal(cut.text, whole.text, cut.length);
    assert_string_equal(t.text, cut.text);

    t = (told){ .most = 3 };
    w.stops = NULL;
    clv_written broken = write_text(l, &w, "the cat");
    assert_int_equal(broken.stop, CLV_STOP_CALLER);
    assert_int_equal(t.pieces, 3);
    clv_free(whole.tokens), clv_free(whole.text), clv_free(cut.tokens), clv_free(cut.text);
    clv_free(broken.tokens), clv_free(broken.text);
    clv_language_close(l);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    clv_language *l;
    clv_sequence *s;
    clv_language_options o = usual;
    int32_t ids[9] = { 1, 2, 3 };
    EXPECT_FAIL(CLV_E_IO, "cannot open the model",
                clv_language_open(NULL, "nothing.gguf", &usual, &l));
    o.context = 1 << 20;
    EXPECT_FAIL(CLV_E_ARGUMENT, "asked for, but the model has",
                clv_language_open(NULL, test_data("generate/tiny/tiny-k.gguf"), &o, &l));
    o.context = 8;
    l = open_tiny(NULL, "tiny-k.gguf", &o);
    EXPECT_OK(clv_sequence_create(l, &s));
    EXPECT_FAIL(CLV_E_SHAPE, "9 tokens, but the context has room for 8",
                clv_sequence_feed(s, ids, 9, NULL));
    ids[1] = 1 << 20;
    EXPECT_FAIL(CLV_E_ARGUMENT, "token 1 is 1048576", clv_sequence_feed(s, ids, 2, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "to 1 tokens, but there are 0", clv_sequence_rewind(s, 1));
    clv_sequence_free(s);
    clv_language_close(l);
}

/* ---- failures --------------------------------------------------------------------------------------- */

/* A file that another program cuts while it is in use: each call says so, until the file is whole again. */
static void weights_that_could_not_be_read_are_read_again(void **state)
{
    (void)state;
    const int32_t ids[3] = { 1, 2, 3 };
    float want[MOST_WORDS], got[MOST_WORDS];
    char path[400], *bytes;
    size_t length;
    clv_language *l = open_tiny(NULL, "tiny-float.gguf", &usual);
    clv_sequence *s;
    EXPECT_OK(clv_sequence_create(l, &s));
    EXPECT_OK(clv_sequence_feed(s, ids, 3, want));
    clv_sequence_free(s);
    clv_language_close(l);

    EXPECT_OK(clv_file_read(test_data("generate/tiny/tiny-float.gguf"), 1 << 24, &bytes, &length));
    snprintf(path, sizeof path, "%s/cut.gguf", test_temp_dir());
    EXPECT_OK(clv_file_write(path, bytes, length));
    EXPECT_OK(clv_language_open(NULL, path, &usual, &l));
    EXPECT_OK(clv_sequence_create(l, &s));
    assert_int_equal(truncate(path, (off_t)length / 2), 0);
    for (int i = 0; i < 2; ++i)
        EXPECT_FAIL(CLV_E_FORMAT, "truncated while in use", clv_sequence_feed(s, ids, 3, got));
    FILE *file = fopen(path, "rb+");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    EXPECT_OK(clv_sequence_feed(s, ids, 3, got));
    assert_memory_equal(got, want, words * sizeof *got);
    clv_sequence_free(s);
    clv_language_close(l);
    clv_free(bytes);
}

static int read_golden(void **state)
{
    char *text;
    size_t length;
    (void)state;
    EXPECT_OK(clv_file_read(test_data("generate/tiny.json"), 1 << 24, &text, &length));
    EXPECT_OK(clv_json_parse("tiny.json", text, length, &golden));
    clv_free(text);
    return 0;
}

static int free_golden(void **state)
{
    (void)state;
    clv_json_free(golden);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_for_gpus_score_as_in_double_precision),
        cmocka_unit_test(every_model_scores_as_in_double_precision),
        cmocka_unit_test(plain_c_scores_as_in_double_precision),
        cmocka_unit_test(pieces_and_halves_say_the_same),
        cmocka_unit_test(layers_on_two_devices_score_the_same),
        cmocka_unit_test(texts_are_told_in_whole_characters_and_stop),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(weights_that_could_not_be_read_are_read_again),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("language", tests, read_golden, free_golden);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the scores of cross-encoders with those of sentence-transformers, on every device and in plain C. */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/json.h"

#include <cleave/rank.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PAIRS = 32, MOST_SCORES = 3 };

static clv_json *golden;
static const char *texts[2 * MOST_PAIRS];
static size_t lengths[2 * MOST_PAIRS], pairs[2 * MOST_PAIRS], pair_count;

static void copy(const char *from, const char *folder, const char *name)
{
    char path[500];
    size_t length;
    char *bytes = test_data_read(from, &length);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, length, file) == length && !fclose(file));
    clv_free(bytes);
}

/* Puts a model and its tokenizer into the test's folder. */
static const char *model_folder(const char *name)
{
    const char *folder = test_temp_dir();
    char from[100];
    snprintf(from, sizeof from, "cross_encoder/%s/config.json", name);
    copy(from, folder, "config.json");
    snprintf(from, sizeof from, "cross_encoder/%s/model.safetensors", name);
    copy(from, folder, "model.safetensors");
    copy("model/tiny/tokenizer.json", folder, "tokenizer.json");
    snprintf(from, sizeof from, "%s/tokenizer_config.json", folder); /* of a family's model */
    remove(from);
    return folder;
}

static double score_of(const char *model, const char *kind, size_t pair, size_t c)
{
    const clv_json *one = clv_json_at(clv_json_get(clv_json_get(golden, model), kind), pair);
    return clv_json_number(clv_json_is_array(one) ? clv_json_at(one, c) : one, (double)NAN);
}

static void compare(clv_context *context, const char *model, size_t each,
                    clv_rank_activation activation, const char *kind)
{
    const clv_ranker_options options = { .size = sizeof options, .activation = activation };
    float scores[MOST_PAIRS * MOST_SCORES];
    size_t truncated;
    clv_ranker *ranker;
    EXPECT_OK(clv_ranker_open(context, model_folder(model), &options, &ranker));
    assert_int_equal(clv_classes_count(clv_ranker_classes(ranker)), each);
    assert_int_equal(clv_ranker_max_length(ranker), 16);
    EXPECT_OK(clv_ranker_scores(ranker, texts, lengths, 2 * pair_count, pairs, pair_count, scores,
                                &truncated, NULL));
    assert_int_equal(truncated, 6);
    for (size_t i = 0; i < pair_count * each; ++i) {
        const double want = score_of(model, kind, i / each, i % each);
        if (!(fabs((double)scores[i] - want) <= 5e-6))
            fail_msg("%s, %s: pair %zu has score %.8g, expected %.8g", model, kind, i / each,
                     (double)scores[i], want);
    }
    clv_ranker_close(ranker);
}

static void compare_all(clv_context *context)
{
    compare(context, "one", 1, CLV_RANK_DEFAULT, "scores"); /* a sigmoid */
    compare(context, "one", 1, CLV_RANK_NONE, "raw");
    compare(context, "three", 3, CLV_RANK_DEFAULT, "scores"); /* a sigmoid, as config.json says */
    compare(context, "three", 3, CLV_RANK_NONE, "raw");
}

/* ---- other families -------------------------------------------------------------------------- */

static const char *const families[] = { "distilbert", "electra",     "roberta",
                                        "mpnet",      "xlm-roberta", "albert" };

static const char *family_folder(const char *name)
{
    static const char *const files[][2] = { { "pairs/config.json", "config.json" },
                                            { "pairs/model.safetensors", "model.safetensors" },
                                            { "tokenizer.json", "tokenizer.json" },
                                            { "tokenizer_config.json", "tokenizer_config.json" } };
    const char *folder = test_temp_dir();
    for (size_t i = 0; i < CLV_LEN(files); ++i) {
        char from[100];
        snprintf(from, sizeof from, "model/families/%s/%s", name, files[i][0]);
        copy(from, folder, files[i][1]);
    }
    return folder;
}

static void compare_family(clv_context *context, const char *name)
{
    char path[100];
    size_t length, lengths_of[2 * MOST_PAIRS], numbers[2 * MOST_PAIRS];
    const char *texts_of[2 * MOST_PAIRS];
    float scores[MOST_PAIRS];
    clv_json *of;
    clv_ranker *ranker;
    snprintf(path, sizeof path, "model/families/%s/pairs/golden.json", name);
    char *text = test_data_read(path, &length);
    EXPECT_OK(clv_json_parse("golden.json", text, length, &of));
    clv_free(text);
    const clv_json *list = clv_json_get(of, "pairs");
    const size_t count = clv_json_count(list);
    assert_true(count > 10 && count <= MOST_PAIRS);
    for (size_t i = 0; i < 2 * count; ++i) {
        texts_of[i] = clv_json_string(clv_json_at(clv_json_at(list, i / 2), i % 2), "");
        lengths_of[i] = strlen(texts_of[i]), numbers[i] = i;
    }
    const clv_ranker_options options = { .size = sizeof options,
                                         .max_length =
                                             (size_t)clv_json_int(clv_json_get(of, "length"), 0),
                                         .activation = CLV_RANK_NONE };
    EXPECT_OK(clv_ranker_open(context, family_folder(name), &options, &ranker));
    EXPECT_OK(clv_ranker_scores(ranker, texts_of, lengths_of, 2 * count, numbers, count, scores,
                                NULL, NULL));
    clv_ranker_close(ranker);
    for (size_t i = 0; i < count; ++i) {
        const double want =
            clv_json_number(clv_json_at(clv_json_get(of, "scores"), i), (double)NAN);
        if (!(fabs((double)scores[i] - want) <= 5e-6))
            fail_msg("%s: pair %zu has score %.8g, expected %.8g", name, i, (double)scores[i],
                     want);
    }
    clv_json_free(of);
}

static void check_scores(test_device *device)
{
    if (test_left_out(device, device->tiny, "cross-encoders")) return;
    compare_all(device->context);
    for (size_t k = 0; k < CLV_LEN(families); ++k)
        compare_family(device->context, families[k]);
}

static void scores_are_those_of_sentence_transformers(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    compare_all(context);
    for (size_t k = 0; k < CLV_LEN(families); ++k)
        compare_family(context, families[k]);
    clv_context_free(context);
    test_each_device(check_scores);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const char *const bad[] = { "fine", "not \xFF UTF-8" };
    static const size_t bad_lengths[] = { 4, 11 }, one[] = { 0, 1 }, beyond[] = { 0, 2 };
    clv_context *context = test_plain_context();
    clv_ranker_options options = { .size = sizeof options, .activation = CLV_RANK_SOFTMAX };
    clv_ranker *ranker;
    float score;
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_ranker_open(NULL, ".", NULL, &ranker));
    EXPECT_FAIL(CLV_E_ARGUMENT, "softmax of a single score",
                clv_ranker_open(context, model_folder("one"), &options, &ranker));
    options = (clv_ranker_options){ .size = sizeof options, .max_length = 2 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "at least 3 are needed",
                clv_ranker_open(context, model_folder("one"), &options, &ranker));
    EXPECT_OK(clv_ranker_open(context, model_folder("one"), NULL, &ranker));
    EXPECT_FAIL(CLV_E_ARGUMENT, "pair 0 names text 2, but there are 2",
                clv_ranker_scores(ranker, bad, bad_lengths, 2, beyond, 1, &score, NULL, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "UTF-8",
                clv_ranker_scores(ranker, bad, bad_lengths, 2, one, 1, &score, NULL, NULL));
    EXPECT_OK(clv_ranker_scores(ranker, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL));
    clv_ranker_close(ranker);
    clv_context_free(context);
}

static int open_goldens(void **state)
{
    (void)state;
    size_t length;
    char *text = test_data_read("cross_encoder/scores.json", &length);
    EXPECT_OK(clv_json_parse("scores.json", text, length, &golden));
    clv_free(text);
    const clv_json *list = clv_json_get(golden, "pairs");
    pair_count = clv_json_count(list);
    assert_true(pair_count > 10 && pair_count <= MOST_PAIRS);
    for (size_t i = 0; i < 2 * pair_count; ++i) {
        texts[i] = clv_json_string(clv_json_at(clv_json_at(list, i / 2), i % 2), NULL);
        assert_non_null(texts[i]);
        lengths[i] = strlen(texts[i]);
        pairs[i] = i;
    }
    return 0;
}

static int close_goldens(void **state)
{
    (void)state;
    clv_json_free(golden);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_sentence_transformers),
        cmocka_unit_test(refuses_what_does_not_fit),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("rank", tests, open_goldens, close_goldens);
}

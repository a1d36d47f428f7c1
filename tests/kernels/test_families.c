/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a small model of each family on every device with the token ids of transformers and the vectors of
 * sentence-transformers (tests/data/model/families). */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "base/json.h"
#include "host/transformer/encoder.h"

#include <cleave/classes.h>
#include <cleave/tokenizer.h>
#include <cleave/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const families[] = { "distilbert", "electra",     "roberta",
                                        "mpnet",      "xlm-roberta", "albert" };
enum { FAMILIES = CLV_LEN(families), TEXTS_MAX = 64, WIDTH_MAX = 512 };

typedef struct family {
    clv_json *golden;
    clv_model *model;
    clv_token_rows rows;
    size_t texts, width;
    float plain[TEXTS_MAX * WIDTH_MAX];
} family;
static family all[FAMILIES];

static const clv_json *member(const family *f, const char *key)
{
    const clv_json *value = clv_json_get(f->golden, key);
    assert_non_null(value);
    return value;
}

static void tokenize(family *f, const char *folder)
{
    const char *texts[TEXTS_MAX];
    clv_tokenizer *tokenizer;
    for (size_t i = 0; i < f->texts; ++i)
        texts[i] = clv_json_string(clv_json_at(member(f, "texts"), i), NULL);
    EXPECT_OK(clv_tokenizer_open(folder, NULL, &tokenizer));
    EXPECT_OK(clv_tokenize(tokenizer, texts, NULL, f->texts, NULL, &f->rows));
    clv_tokenizer_close(tokenizer);
}

static void open_family(family *f, const char *name)
{
    char folder[4096];
    size_t length;
    snprintf(folder, sizeof folder, "%s", test_data("model/families/%s", name));
    snprintf(folder + strlen(folder), 64, "/golden.json");
    char relative[256];
    snprintf(relative, sizeof relative, "model/families/%s/golden.json", name);
    char *text = test_data_read(relative, &length);
    EXPECT_OK(clv_json_parse("golden.json", text, length, &f->golden));
    clv_free(text);
    *strrchr(folder, '/') = '\0';
    f->texts = clv_json_count(member(f, "texts"));
    assert_true(f->texts > 20 && f->texts <= TEXTS_MAX);
    EXPECT_OK(clv_model_open(folder, &f->model));
    f->width = clv_model_get_config(f->model)->output;
    assert_int_equal(f->width, clv_json_count(clv_json_at(member(f, "vectors"), 0)));
    assert_true(f->width <= WIDTH_MAX);
    tokenize(f, folder);
}

static void texts_become_the_same_ids(void **state)
{
    (void)state;
    for (size_t k = 0; k < FAMILIES; ++k) {
        const family *f = &all[k];
        assert_int_equal(f->rows.rows, f->texts);
        for (size_t i = 0; i < f->texts; ++i) {
            const clv_json *ids = clv_json_at(member(f, "ids"), i);
            const size_t count = f->rows.offsets[i + 1] - f->rows.offsets[i];
            if (count != clv_json_count(ids))
                fail_msg("%s: text %zu has %zu tokens, expected %zu", families[k], i, count,
                         clv_json_count(ids));
            for (size_t t = 0; t < count; ++t)
                if (f->rows.ids[f->rows.offsets[i] + t] != clv_json_int(clv_json_at(ids, t), -1))
                    fail_msg("%s: token %zu of text %zu is %d", families[k], t, i,
                             (int)f->rows.ids[f->rows.offsets[i] + t]);
        }
    }
}

/* Encodes all texts in small batches, so that batches begin and end inside a chunk. */
static void encode(const family *f, clv_context *context, bool half, float *out)
{
    const clv_encoder_options o = { .size = sizeof o, .batch_tokens = 100, .half = half };
    clv_encoder *encoder;
    EXPECT_OK(clv_encoder_open(context, clv_model_get_config(f->model),
                               clv_model_get_weights(f->model), &o, &encoder));
    EXPECT_OK(clv_encode(encoder, f->rows.ids, f->rows.offsets, f->texts, out, NULL));
    clv_encoder_close(encoder);
}

/* Compares with the vectors of sentence-transformers: cosines, and single numbers. */
static void compare(const char *where, size_t k, const float *got, double least, double allowed)
{
    const family *f = &all[k];
    for (size_t i = 0; i < f->texts; ++i) {
        const clv_json *row = clv_json_at(member(f, "vectors"), i);
        double ab = 0, aa = 0, bb = 0, apart = 0;
        for (size_t c = 0; c < f->width; ++c) {
            const double a = (double)got[i * f->width + c];
            const double b = clv_json_number(clv_json_at(row, c), NAN);
            ab += a * b, aa += a * a, bb += b * b;
            apart = fmax(apart, fabs(a - b));
        }
        if (!(ab / sqrt(aa * bb) >= least) || !(apart <= allowed))
            fail_msg("%s: %s: text %zu: the cosine is 1 - %.3g and the largest difference %.3g",
                     where, families[k], i, 1 - ab / sqrt(aa * bb), apart);
    }
}

static void check_device(test_device *device)
{
    static float got[TEXTS_MAX * WIDTH_MAX];
    for (size_t k = 0; k < FAMILIES; ++k) {
        encode(&all[k], device->context, false, got);
        compare(device->name, k, got, 0.999999, 5e-5);
        encode(&all[k], device->context, true, got);
        compare(device->name, k, got, 0.999, 0.2);
    }
}

/* The forms of cards: tiles of queries and keys. */
static void check_card(test_device *device)
{
    static float got[TEXTS_MAX * WIDTH_MAX];
    for (size_t k = 0; k < FAMILIES; ++k) {
        encode(&all[k], device->context, false, got);
        compare("as a card", k, got, 0.999999, 5e-5);
    }
}

static void vectors_are_those_of_sentence_transformers(void **state)
{
    (void)state;
    clv_context *context;
    EXPECT_OK(clv_context_create(
        &(clv_context_options){ .size = sizeof(clv_context_options), .mode = CLV_MODE_REFERENCE },
        &context));
    for (size_t k = 0; k < FAMILIES; ++k) {
        encode(&all[k], context, false, all[k].plain);
        compare("plain C", k, all[k].plain, 0.999999, 5e-5);
    }
    clv_context_free(context);
    test_each_device(check_device);
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, check_card);
}

/* Compares the head of each family with the probabilities of transformers, in plain C. */
static void classes_have_the_same_probabilities(void **state)
{
    (void)state;
    enum { CLASSES = 3, WIDTH = 16, IDS_MAX = 32 };
    clv_context *context;
    EXPECT_OK(clv_context_create(
        &(clv_context_options){ .size = sizeof(clv_context_options), .mode = CLV_MODE_REFERENCE },
        &context));
    for (size_t k = 0; k < FAMILIES; ++k) {
        char folder[4096], name[256];
        size_t length;
        clv_json *golden;
        clv_model *model;
        clv_classes *classes;
        clv_encoder *encoder;
        snprintf(folder, sizeof folder, "%s",
                 test_data("model/families/%s/classifier", families[k]));
        snprintf(name, sizeof name, "model/families/%s/classifier/golden.json", families[k]);
        char *text = test_data_read(name, &length);
        EXPECT_OK(clv_json_parse("golden.json", text, length, &golden));
        clv_free(text);
        EXPECT_OK(clv_model_open(folder, &model));
        EXPECT_OK(clv_classes_open(model, folder, &classes));
        assert_int_equal(clv_classes_count(classes), CLASSES);
        EXPECT_OK(clv_encoder_open(context, clv_classes_get_config(classes),
                                   clv_model_get_weights(model), NULL, &encoder));
        const clv_json *rows = clv_json_get(golden, "ids");
        assert_int_equal(clv_json_count(rows), 4);
        for (size_t i = 0; i < clv_json_count(rows); ++i) {
            const clv_json *row = clv_json_at(rows, i);
            const clv_json *want = clv_json_at(clv_json_get(golden, "probabilities"), i);
            const size_t offsets[2] = { 0, clv_json_count(row) };
            int32_t ids[IDS_MAX];
            float vector[WIDTH], got[CLASSES];
            for (size_t t = 0; t < offsets[1]; ++t)
                ids[t] = (int32_t)clv_json_int(clv_json_at(row, t), -1);
            EXPECT_OK(clv_encode(encoder, ids, offsets, 1, vector, NULL));
            EXPECT_OK(clv_classes_probabilities(classes, vector, 1, got));
            for (size_t c = 0; c < CLASSES; ++c) {
                const double wanted = clv_json_number(clv_json_at(want, c), NAN);
                if (!(fabs((double)got[c] - wanted) <= 2e-6))
                    fail_msg("%s: row %zu: class %zu is %.8f, expected %.8f", families[k], i, c,
                             (double)got[c], wanted);
            }
        }
        clv_encoder_close(encoder), clv_classes_close(classes), clv_model_close(model);
        clv_json_free(golden);
    }
    clv_context_free(context);
}

/* Checks that the borders between rows of the table are where float32 puts them. */
static void relative_positions_have_the_same_rows(void **state)
{
    (void)state;
    const clv_json *sides = clv_json_get(all[3].golden, "buckets");
    assert_int_equal(clv_json_count(sides), 2);
    for (size_t side = 0; side < 2; ++side)
        for (ptrdiff_t i = 0; i <= 600; ++i)
            assert_int_equal(clv_relative_bucket(side ? -i : i, 32),
                             clv_json_int(clv_json_at(clv_json_at(sides, side), (size_t)i), -1));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_the_same_ids),
        cmocka_unit_test(relative_positions_have_the_same_rows),
        cmocka_unit_test(classes_have_the_same_probabilities),
        cmocka_unit_test(vectors_are_those_of_sentence_transformers),
    };
    test_share_compiled();
    test_choose(argc, argv);
    for (size_t k = 0; k < FAMILIES; ++k)
        open_family(&all[k], families[k]);
    const int failed = cmocka_run_group_tests_name("families", tests, NULL, NULL);
    for (size_t k = 0; k < FAMILIES; ++k) {
        clv_model_close(all[k].model);
        clv_token_rows_clear(&all[k].rows);
        clv_json_free(all[k].golden);
    }
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/tokenizer_open.c: what the files of a folder say together. */
#include "io_test.h"

#include "base/alloc.h"
#include "base/text.h"

#include <cleave/init.h>
#include <cleave/tokenizer.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNCASED "\"strip_accents\": null, \"lowercase\": true"
#define CASED "\"strip_accents\": null, \"lowercase\": false"
#define ACCENTS "\"strip_accents\": false, \"lowercase\": true"
#define RIGHT "\"direction\": \"Right\""
#define LEFT "\"direction\": \"Left\""

static const char *folder(const char *name)
{
    const char *path = io_temp(name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void put(const char *in, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", in, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* The tokenizer.json of a folder of the tests' data, with one part replaced. */
static void put_changed(const char *in, const char *source, const char *from, const char *to)
{
    unsigned char *bytes;
    size_t length;
    clv_text text = { 0 };
    char path[128];
    snprintf(path, sizeof path, "model/%s/tokenizer.json", source);
    io_load(test_data("%s", path), &bytes, &length);
    bytes[length] = '\0';
    const char *at = strstr((char *)bytes, from);
    assert_non_null(at);
    clv_text_bytes(&text, bytes, (size_t)(at - (char *)bytes));
    clv_text_add(&text, "%s%s", to, at + strlen(from));
    put(in, "tokenizer.json", text.data);
    clv_text_clear(&text);
    free(bytes);
}

static void put_tiny(const char *in, const char *from, const char *to)
{
    put_changed(in, "tiny", from, to);
}

static void a_folder_says_how_long_texts_may_be(void **state)
{
    (void)state;
    const char *in = folder("limits");
    clv_tokenizer *t;
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    clv_tokenizer_options options = { .size = sizeof options };
    EXPECT_FAIL(CLV_E_IO, "neither tokenizer.json nor vocab.txt", clv_tokenizer_open(in, NULL, &t));
    put(in, "vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nthe\r\nThe\r\n");
    static const struct {
        const char *name, *text;
        size_t want;
    } steps[] = { { "config.json", "{\"max_position_embeddings\": 64}", 64 },
                  { "tokenizer_config.json", "{\"max_len\": 40}", 40 },
                  { "tokenizer_config.json", "{\"max_len\": 40, \"model_max_length\": 1e30}", 64 },
                  { "tokenizer_config.json",
                    "{\"a\": \"1\\\"000000000000000000000\", \"model_max_length\": "
                    "1000000000000000019884624838656}",
                    64 },
                  { "tokenizer_config.json", "{\"max_len\": 40, \"model_max_length\": 32}", 32 },
                  { "sentence_distilbert_config.json", "{\"max_seq_length\": 24}", 24 },
                  { "sentence_bert_config.json", "{\"max_seq_length\": 48}", 48 },
                  { "sentence_bert_config.json", "{\"max_seq_length\": 100}", 64 } };
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    clv_tokenizer_get_info(t, &info);
    assert_true(info.max_length == SIZE_MAX && info.mask == -1 && info.vocabulary == 6);
    clv_tokenizer_close(t);
    for (size_t i = 0; i < CLV_LEN(steps); ++i) {
        put(in, steps[i].name, steps[i].text);
        EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
        clv_tokenizer_get_info(t, &info);
        assert_int_equal(info.max_length, steps[i].want);
        clv_tokenizer_close(t);
    }
    options.max_length = 16;
    EXPECT_OK(clv_tokenizer_open(in, &options, &t));
    clv_tokenizer_get_info(t, &info);
    assert_int_equal(info.max_length, 16);
    clv_tokenizer_close(t);
    options.max_length = 65;
    EXPECT_FAIL(CLV_E_ARGUMENT, "max_length is 65, but it must be 2 to 64",
                clv_tokenizer_open(in, &options, &t));
    options.max_length = 1;
    EXPECT_FAIL(CLV_E_ARGUMENT, "max_length is 1, but it must be at least 2",
                clv_tokenizer_open(in, &options, &t));
    put(in, "tokenizer_config.json", "{\"tokenizer_class\": \"RobertaTokenizer\"}");
    EXPECT_FAIL(CLV_E_FORMAT, "RobertaTokenizer", clv_tokenizer_open(in, NULL, &t));
    put(in, "tokenizer_config.json",
        "{\"do_lower_case\": false, \"unk_token\": {\"content\": \"the\"}}");
    put(in, "sentence_bert_config.json", "{\"do_lower_case\": true}");
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    clv_token_rows rows = { 0 };
    EXPECT_OK(clv_tokenize(t, (const char *const[]){ "The cat" }, NULL, 1, NULL, &rows));
    assert_memory_equal(rows.ids, ((const int32_t[]){ 2, 4, 4, 3 }), 16); /* "the" is 4 */
    clv_tokenizer_close(t);
    put(in, "sentence_bert_config.json", "{}");
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    clv_tokenizer_get_info(t, &info);
    assert_int_equal(info.unk, 4);
    EXPECT_OK(clv_tokenize(t, (const char *const[]){ "The cat" }, NULL, 1, NULL, &rows));
    assert_memory_equal(rows.ids, ((const int32_t[]){ 2, 5, 4, 3 }), 16);
    assert_int_equal(rows.unknown, 1);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
    put(in, "vocab.txt", "[PAD]\n[UNK]\n[SEP]\n");
    EXPECT_FAIL(CLV_E_FORMAT, "has no \"the\"", clv_tokenizer_open(in, NULL, &t));
    put(in, "tokenizer_config.json", "{}");
    EXPECT_FAIL(CLV_E_FORMAT, "has no \"[CLS]\"", clv_tokenizer_open(in, NULL, &t));
    EXPECT_FAIL(CLV_E_ARGUMENT, "or a model folder",
                clv_tokenizer_open(test_data("model/tokens.json"), NULL, &t));
}

/* What stays of a text that is too long: as transformers reads the two files. */
static void the_end_stays_where_the_folder_says_so(void **state)
{
    (void)state;
    enum { MOST = 5, TEXTS = 3 };
    static const char *const texts[TEXTS] = { "the cat the cat unaffable", "the",
                                              "12 running 12 the" };
    static const struct {
        const char *direction, *config;
        bool left;
    } steps[] = { { RIGHT, "{\"truncation_side\": \"left\"}", true },
                  { LEFT, "{\"truncation_side\": \"right\"}", false },
                  { LEFT, "{\"model_max_length\": 512}", true },
                  { RIGHT, "{}", false } };
    const clv_tokenizer_options options = { .size = sizeof options, .max_length = MOST };
    const clv_tokenizer_options no_limit = { .size = sizeof no_limit, .unlimited = true };
    const char *in = folder("left");
    clv_tokenizer *all, *t;
    clv_token_rows whole = { 0 }, rows = { 0 };
    EXPECT_OK(clv_tokenizer_open(test_data("model/tiny"), &no_limit, &all));
    EXPECT_OK(clv_tokenize(all, texts, NULL, TEXTS, NULL, &whole));
    for (size_t k = 0; k < CLV_LEN(steps); ++k) {
        put_tiny(in, RIGHT, steps[k].direction);
        put(in, "tokenizer_config.json", steps[k].config);
        EXPECT_OK(clv_tokenizer_open(in, &options, &t));
        EXPECT_OK(clv_tokenize(t, texts, NULL, TEXTS, NULL, &rows));
        assert_int_equal(rows.truncated, 2);
        for (size_t i = 0; i < TEXTS; ++i) {
            const int32_t *had = whole.ids + whole.offsets[i], *has = rows.ids + rows.offsets[i];
            const size_t before = whole.offsets[i + 1] - whole.offsets[i];
            const size_t left = CLV_MIN(before, (size_t)MOST),
                         cut = steps[k].left ? before - left : 0;
            assert_int_equal(rows.offsets[i + 1] - rows.offsets[i], left);
            assert_int_equal(has[0], had[0]);
            assert_memory_equal(has + 1, had + 1 + cut, (left - 2) * sizeof *has);
            assert_int_equal(has[left - 1], had[before - 1]);
        }
        clv_tokenizer_close(t);
    }
    clv_tokenizer_close(all);
    put(in, "tokenizer_config.json", "{\"truncation_side\": \"both\"}");
    EXPECT_FAIL(CLV_E_FORMAT, "truncation_side is \"both\"", clv_tokenizer_open(in, NULL, &t));
    clv_token_rows_clear(&whole), clv_token_rows_clear(&rows);
}

/* Two files of a folder may say two things. Like transformers, the library obeys tokenizer_config.json, and does what
 * BERT does where that says nothing. */
static void other_rules_beside_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *rules, *text, *part; /* part NULL: nothing to tell */
    } steps[] = {
        { UNCASED, "{\"do_lower_case\": true, \"strip_accents\": null}", NULL },
        { UNCASED, "{\"do_lower_case\": false}",
          "do_lower_case is false in tokenizer_config.json" },
        { UNCASED, "{\"strip_accents\": false}",
          "strip_accents is false in tokenizer_config.json" },
        { UNCASED, "{\"tokenize_chinese_chars\": false}", "but true in tokenizer.json" },
        { UNCASED, "{}", NULL },
        { UNCASED, "{\"do_lower_case\": false, \"tokenizer_class\": \"PreTrainedTokenizerFast\"}",
          NULL },
        { CASED, "{}", "do_lower_case is not there, so true in tokenizer_config.json" },
        { CASED, "{\"do_lower_case\": false}", NULL },
        { CASED, "{\"tokenizer_class\": \"TokenizersBackend\"}", NULL },
        { UNCASED, "{\"additional_special_tokens\": [\"[MASK]\"]}", NULL },
        { UNCASED, "{\"additional_special_tokens\": [\"[MASK]\", \"[NEW]\"]}",
          "adds the token \"[NEW]\"" },
        { UNCASED, "{\"added_tokens_decoder\": {\"0\": {\"content\": \"[PAD]\"}}}", NULL },
        { UNCASED, "{\"added_tokens_decoder\": {\"9000\": {\"content\": \"[E1]\"}}}",
          "adds the token \"[E1]\"" },
        { UNCASED, "{\"extra_special_tokens\": {\"new_token\": \"[E2]\"}}",
          "adds the token \"[E2]\"" },
        { ACCENTS, "{}", "strip_accents is not there, so true in tokenizer_config.json" },
    };
    const char *in = folder("rules");
    clv_tokenizer *t;
    put(in, "config.json", "{\"model_type\": \"bert\"}");
    for (size_t i = 0; i < CLV_LEN(steps); ++i) {
        put_tiny(in, UNCASED, steps[i].rules);
        put(in, "tokenizer_config.json", steps[i].text);
        test_listen();
        EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
        const char *warned = test_heard();
        assert_true(steps[i].part ? strstr(warned, steps[i].part) != NULL : !*warned);
        clv_tokenizer_close(t);
    }
    static const char *const texts[] = { "The", "the" }; /* equal only if capitals are not kept */
    clv_token_rows rows = { 0 };
    put_tiny(in, UNCASED, UNCASED);
    for (size_t lower = 0; lower < 2; ++lower) {
        put(in, "tokenizer_config.json", lower ? "{}" : "{\"do_lower_case\": false}");
        EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
        EXPECT_OK(clv_tokenize(t, texts, NULL, 2, NULL, &rows));
        const size_t second = rows.offsets[1];
        assert_int_equal(rows.tokens == 2 * second && rows.ids[1] == rows.ids[second + 1], lower);
        clv_tokenizer_close(t);
    }
    clv_token_rows_clear(&rows);
    /* a token that is searched for in normal form, here "[pad]", is known by its own text */
    put_tiny(in, "\"normalized\": false", "\"normalized\": true");
    put(in, "tokenizer_config.json",
        "{\"added_tokens_decoder\": {\"0\": {\"content\": \"[PAD]\"}}}");
    test_listen();
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    assert_string_equal(test_heard(), "");
    clv_tokenizer_close(t);
}

/* Without tokenizer_config.json, or without a class in it, the rules of BERT count if config.json names a model, else
 * those of tokenizer.json. The ids are those of transformers 5.24. */
static void a_tokenizer_alone_follows_its_own_rules(void **state)
{
    (void)state;
    static const struct {
        const char *model, *config; /* NULL: no such file */
        bool lower;
    } steps[] = {
        { NULL, NULL, false },
        { "{}", NULL, false },
        { NULL, "{\"do_lower_case\": true}", false },
        { NULL, "{\"tokenizer_class\": \"BertTokenizer\"}", true },
        { "{\"model_type\": \"bert\"}", NULL, true },
        { "{\"model_type\": \"bert\"}", "{\"do_lower_case\": false}", false },
        { "{\"model_type\": \"bert\"}", "{\"tokenizer_class\": \"TokenizersBackend\"}", false },
    };
    static const char *const texts[] = { "The", "the" };
    char in[32];
    clv_tokenizer *t;
    clv_token_rows rows = { 0 };
    for (size_t i = 0; i < CLV_LEN(steps); ++i) {
        snprintf(in, sizeof in, "alone-%zu", i);
        const char *at = folder(in);
        put_tiny(at, UNCASED, CASED);
        if (steps[i].model) put(at, "config.json", steps[i].model);
        if (steps[i].config) put(at, "tokenizer_config.json", steps[i].config);
        EXPECT_OK(clv_tokenizer_open(at, NULL, &t));
        EXPECT_OK(clv_tokenize(t, texts, NULL, 2, NULL, &rows));
        const size_t second = rows.offsets[1];
        const bool same = rows.tokens == 2 * second && rows.ids[1] == rows.ids[second + 1];
        if (same != steps[i].lower) fail_msg("step %zu: capitals are kept: %d", i, !same);
        clv_tokenizer_close(t);
    }
    clv_token_rows_clear(&rows);
}

/* vocab.txt beside tokens that are listed elsewhere. The ids are those of transformers 5.24. */
static void listed_tokens_are_found_in_texts(void **state)
{
    (void)state;
    const char *in = folder("listed");
    const char *text = "the [E1] the";
    clv_tokenizer *t;
    clv_token_rows rows = { 0 };
    put(in, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
    put(in, "tokenizer_config.json",
        "{\"added_tokens_decoder\": {\"5\": {\"content\": \"[E1]\", \"special\": true}}}");
    test_listen();
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    assert_string_equal(test_heard(), "");
    EXPECT_OK(clv_tokenize(t, &text, NULL, 1, NULL, &rows));
    static const int32_t ids[] = { 2, 4, 5, 4, 3 };
    assert_int_equal(rows.tokens, CLV_LEN(ids));
    assert_memory_equal(rows.ids, ids, sizeof ids);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
    put(in, "tokenizer_config.json", "{}");
    put(in, "added_tokens.json", "{\"[E2]\": 8, \"[E1]\": 7, \"the\": 6}"); /* the next free ids */
    test_listen();
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    assert_string_equal(test_heard(), "");
    EXPECT_OK(clv_tokenize(t, (const char *const[]){ "the[e2] [E1]" }, NULL, 1, NULL, &rows));
    assert_int_equal(rows.tokens, 5);
    assert_memory_equal(rows.ids, ((const int32_t[]){ 2, 4, 6, 5, 3 }), 20);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
}

/* Without added_tokens_decoder, special_tokens_map.json takes the place of members of tokenizer_config.json. The ids
 * are those of transformers 5.24. */
static void the_map_of_special_tokens_counts(void **state)
{
    (void)state;
    static const struct {
        const char *config, *map;
        int32_t ids[4]; /* of the text "the The" */
    } cases[] = {
        { "{}", "{\"cls_token\": \"the\"}", { 4, 4, 4, 3 } },
        { "{\"cls_token\": \"[CLS]\"}",
          "{\"sep_token\": {\"content\": \"[UNK]\"}}",
          { 2, 4, 4, 1 } },
        { "{\"do_lower_case\": true}", "{\"do_lower_case\": false}", { 2, 4, 1, 3 } },
        { "{\"added_tokens_decoder\": {}}", "{\"cls_token\": \"the\"}", { 2, 4, 4, 3 } },
    };
    const char *in = folder("map"), *text = "the The";
    put(in, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
    clv_tokenizer *t;
    clv_token_rows rows = { 0 };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        put(in, "tokenizer_config.json", cases[i].config);
        put(in, "special_tokens_map.json", cases[i].map);
        EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
        EXPECT_OK(clv_tokenize(t, &text, NULL, 1, NULL, &rows));
        assert_int_equal(rows.tokens, CLV_LEN(cases[i].ids));
        assert_memory_equal(rows.ids, cases[i].ids, sizeof cases[i].ids);
        clv_tokenizer_close(t);
    }
    clv_token_rows_clear(&rows);
    put(in, "tokenizer_config.json", "{}");
    put(in, "special_tokens_map.json", "[]");
    EXPECT_FAIL(CLV_E_FORMAT, "is not a JSON object", clv_tokenizer_open(in, NULL, &t));
}

static void padding_on_the_left_is_told(void **state)
{
    (void)state;
    static const char *const sides[] = { "right", "left" };
    const char *in = folder("padding");
    clv_tokenizer *t;
    put(in, "config.json", "{\"model_type\": \"bert\", \"max_position_embeddings\": 16}");
    put(in, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
    for (size_t i = 0; i < CLV_LEN(sides); ++i) {
        char text[64];
        snprintf(text, sizeof text, "{\"padding_side\": \"%s\"}", sides[i]);
        put(in, "tokenizer_config.json", text);
        test_listen();
        EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
        assert_int_equal(strstr(test_heard(), "pads on the left") != NULL, i == 1);
        clv_tokenizer_close(t);
    }
}

static const char *const class_texts[] = { "The Planets, caf\u00e9  a Star ", " it's \u0d60" };

/* Returns the ids of class_texts; the caller clears them. */
static clv_token_rows ids_of(clv_tokenizer *t)
{
    clv_token_rows rows = { 0 };
    EXPECT_OK(clv_tokenize(t, class_texts, NULL, CLV_LEN(class_texts), NULL, &rows));
    clv_tokenizer_close(t);
    return rows;
}

/* transformers makes tokenizers of some classes without the rules of tokenizer.json. "Same": the ids are those of the
 * unchanged folder, as with transformers 5.24. */
static void classes_have_rules_of_their_own(void **state)
{
    (void)state;
    static const char spaces[] = "{\n        \"type\": \"WhitespaceSplit\"\n      },";
    static const char plain[] = "\"normalizer\": null",
                      lower[] = "\"normalizer\": {\"type\": \"Lowercase\"}";
    static const char small[] = "\"type\": \"Lowercase\"", frame[] = "\"post_processor\":";
    static const struct {
        const char *family, *from, *to, *config;
        bool same;
        const char *part; /* of the warning; NULL: none */
    } steps[] = {
        { "xlm-roberta", spaces, "", "{}", true, "that of XLMRobertaTokenizer" },
        { "xlm-roberta", spaces, "", "{\"tokenizer_class\": \"XLMRobertaTokenizerFast\"}", true,
          "that of XLMRobertaTokenizer" },
        { "xlm-roberta", spaces, "", "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}", false,
          NULL },
        { "xlm-roberta", spaces, spaces, "{\"add_prefix_space\": false}", false, "that of XLM" },
        { "xlm-roberta", "\"unk_id\": 3", "\"unk_id\": 5", "{}", true, NULL },
        { "xlm-roberta", frame, "\"unused\":", "{}", true, NULL },
        { "xlm-roberta", frame, frame, "{\"bos_token\": \"<mask>\"}", false, NULL },
        { "roberta", plain, lower, "{}", true, "that of RobertaTokenizer" },
        { "roberta", plain, lower, "{\"tokenizer_class\": \"TokenizersBackend\"}", false, NULL },
        { "roberta", plain, plain, "{\"add_prefix_space\": true}", false, "that of Roberta" },
        { "roberta", frame, "\"unused\":", "{}", true, NULL },
        { "roberta", plain, plain, "{\"tokenizer_class\": \"MyTokenizer\"}", true,
          "does not know the tokenizer class MyTokenizer" },
        { "albert", small, "\"type\": \"NFC\"", "{}", true, "that of AlbertTokenizer" },
        { "albert", small, small, "{\"do_lower_case\": false}", false, "that of Albert" },
        { "albert", small, small, "{\"keep_accents\": true}", false, "that of Albert" },
        { "albert", frame, "\"unused\":", "{}", true, NULL },
    };
    const char *in = folder("classes");
    clv_tokenizer *t;
    char text[64];
    for (size_t i = 0; i < CLV_LEN(steps); ++i) {
        snprintf(text, sizeof text, "model/families/%s/tokenizer.json", steps[i].family);
        EXPECT_OK(clv_tokenizer_open(test_data("%s", text), NULL, &t));
        clv_token_rows wanted = ids_of(t);
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", steps[i].family);
        put(in, "config.json", text);
        put(in, "tokenizer_config.json", steps[i].config);
        snprintf(text, sizeof text, "families/%s", steps[i].family);
        put_changed(in, text, steps[i].from, steps[i].to);
        test_listen();
        EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
        const char *heard = test_heard();
        if (steps[i].part ? !strstr(heard, steps[i].part) : *heard)
            fail_msg("step %zu: heard \"%s\"", i, heard);
        clv_token_rows rows = ids_of(t);
        const bool same = rows.tokens == wanted.tokens &&
                          memcmp(rows.ids, wanted.ids, rows.tokens * sizeof *rows.ids) == 0;
        if (same != steps[i].same) fail_msg("step %zu: the ids are the same: %d", i, same);
        clv_token_rows_clear(&rows), clv_token_rows_clear(&wanted);
    }
}

static void files_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    const char *in = folder("contradictions");
    clv_tokenizer *t;
    put(in, "config.json", "{\"model_type\": \"bert\"}");
    put_tiny(in, UNCASED, UNCASED);
    put(in, "tokenizer_config.json", "{\"tokenizer_class\": \"RobertaTokenizer\"}");
    EXPECT_FAIL(CLV_E_FORMAT, "model is WordPiece, which this class does not read",
                clv_tokenizer_open(in, NULL, &t));
    put(in, "tokenizer_config.json", "{\"cls_token\": \"[NONE]\"}");
    EXPECT_FAIL(CLV_E_FORMAT, "cls_token is \"[NONE]\", which the vocabulary does not have",
                clv_tokenizer_open(in, NULL, &t));
    put(in, "tokenizer_config.json", "{\"cls_token\": {\"content\": \"[SEP]\"}}");
    EXPECT_OK(clv_tokenizer_open(in, NULL, &t));
    clv_token_rows rows = ids_of(t);
    assert_int_equal(rows.ids[0], rows.ids[rows.offsets[1] - 1]); /* as transformers does */
    clv_token_rows_clear(&rows);
    put(in, "sentence_bert_config.json", "{\"tokenizer_args\": {\"do_lower_case\": false}}");
    EXPECT_FAIL(CLV_E_FORMAT, "arguments for the tokenizer are not supported",
                clv_tokenizer_open(in, NULL, &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_says_how_long_texts_may_be),
        cmocka_unit_test(the_end_stays_where_the_folder_says_so),
        cmocka_unit_test(other_rules_beside_are_told),
        cmocka_unit_test(a_tokenizer_alone_follows_its_own_rules),
        cmocka_unit_test(listed_tokens_are_found_in_texts),
        cmocka_unit_test(the_map_of_special_tokens_counts),
        cmocka_unit_test(padding_on_the_left_is_told),
        cmocka_unit_test(classes_have_rules_of_their_own),
        cmocka_unit_test(files_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests_name("tokenizer_folder", tests, NULL, NULL);
}

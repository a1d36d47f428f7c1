/* SPDX-License-Identifier: Apache-2.0 */
/* host/tokenizer: byte pair encoding and SentencePiece, by the ids that the libraries of these models give;
 * and back to text. */
#define _XOPEN_SOURCE 700
#include "io_test.h"
#include "run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"

#include <cleave/init.h>
#include <cleave/tokenizer.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const clv_tokenizer_options lenient = { .size = sizeof lenient, .replace_invalid = true };
static const clv_tokenize_options bare = { .size = sizeof bare, .bare = true };

static void expect_ids(const clv_token_rows *rows, const int32_t *ids, size_t count)
{
    assert_int_equal(rows->tokens, count);
    for (size_t i = 0; i < count; ++i)
        assert_int_equal(rows->ids[i], ids[i]);
}

#define EXPECT_IDS(t, text, options, ...)                                     \
    do {                                                                      \
        const char *const texts_[] = { text };                                \
        const size_t lengths_[] = { sizeof(text) - 1 };                       \
        const int32_t want_[] = { __VA_ARGS__ };                              \
        clv_token_rows rows_ = { 0 };                                         \
        EXPECT_OK(clv_tokenize((t), texts_, lengths_, 1, (options), &rows_)); \
        expect_ids(&rows_, want_, CLV_LEN(want_));                            \
        clv_token_rows_clear(&rows_);                                         \
    } while (0)

/* The text of ids; free with clv_text_clear. */
static clv_text text_of(const clv_tokenizer *t, const int32_t *ids, size_t count, bool control)
{
    clv_detokenizer *d;
    clv_text all = { 0 };
    const char *piece;
    size_t length;
    EXPECT_OK(clv_detokenizer_create(t, control, &d));
    for (size_t i = 0; i < count; ++i) {
        EXPECT_OK(clv_detokenizer_add(d, ids[i], &piece, &length));
        for (size_t at = 0, bytes; at < length; at += bytes) { /* whole characters only */
            uint32_t c;
            bytes = clv_utf8_decode(piece + at, length - at, &c);
            assert_true(bytes);
        }
        clv_text_bytes(&all, piece, length);
    }
    EXPECT_OK(clv_detokenizer_finish(d, &piece, &length));
    clv_text_bytes(&all, piece, length);
    clv_detokenizer_free(d);
    return all;
}

/* ---- goldens of public vocabularies -------------------------------------------------------------- */

/* "12 7 9|12 8": are the ids one of these lists? */
static bool is_one_of(const clv_token_rows *rows, const char *lists)
{
    for (const char *at = lists;;) {
        size_t i = 0;
        bool same = true;
        while (*at && *at != '|') {
            char *end;
            const long id = strtol(at, &end, 10);
            if (end == at) break;
            same = same && i < rows->tokens && rows->ids[i] == (int32_t)id;
            ++i, at = end;
            while (*at == ' ')
                ++at;
        }
        if (same && i == rows->tokens) return true;
        if (*at != '|') return false;
        ++at;
    }
}

static size_t from_hex(const char *hex, size_t digits, char *out)
{
    for (size_t i = 0; i < digits / 2; ++i) {
        const char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        out[i] = (char)strtoul(pair, NULL, 16);
    }
    return digits / 2;
}

/* Every line: number, bytes in hex, lists of ids, where they come from. `returns`: ids of valid texts
 * become the text again. */
static size_t check_table(const clv_tokenizer *t, const char *name, bool returns)
{
    size_t length, seen = 0;
    char file[64];
    snprintf(file, sizeof file, "generate/%s", name);
    char *table = test_data_read(file, &length);
    clv_token_rows rows = { 0 };
    for (char *line = strtok(table, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line == '#') continue;
        const char *hex = strchr(line, '\t') + 1;
        char *ids = strchr(hex, '\t') + 1, *end = strchr(ids, '\t');
        const size_t digits = (size_t)(ids - 1 - hex);
        const bool valid = !strstr(end, "\tbytes"); /* else the text is not UTF-8 */
        char *text = clv_alloc(digits / 2 + 1, 1);
        const size_t bytes = from_hex(hex, digits, text);
        const char *const texts[] = { text };
        *end = '\0';
        EXPECT_OK(clv_tokenize(t, texts, &bytes, 1, &bare, &rows));
        if (!is_one_of(&rows, ids))
            fail_msg("%s, line %.5s: the ids differ from %s", name, line, ids);
        if (valid && returns) {
            clv_text again = text_of(t, rows.ids, rows.tokens, true);
            assert_int_equal(again.length, bytes);
            assert_memory_equal(clv_text_get(&again), text, bytes);
            clv_text_clear(&again);
        }
        clv_free(text);
        ++seen;
    }
    clv_token_rows_clear(&rows);
    clv_free(table);
    return seen;
}

static void public_vocabulary(const char *file, const char *table, size_t count, bool returns)
{
    const char *folder = getenv("CLEAVE_VOCABULARIES");
    char path[4096];
    clv_tokenizer *t;
    if (!folder)
        test_skip("third-party data (files ggml-vocab-*.gguf of llama.cpp): CLEAVE_VOCABULARIES is "
                  "not set");
    snprintf(path, sizeof path, "%s/%s", folder, file);
    EXPECT_OK(clv_tokenizer_open(path, &lenient, &t));
    assert_int_equal(check_table(t, table, returns), count);
    clv_tokenizer_close(t);
}

static void ids_of_gpt2(void **state)
{
    (void)state;
    public_vocabulary("ggml-vocab-gpt-2.gguf", "tokenizer-gpt-2.tsv", 64, true);
}

static void ids_of_llama3(void **state)
{
    (void)state;
    public_vocabulary("ggml-vocab-llama-bpe.gguf", "tokenizer-llama-bpe.tsv", 64, true);
}

static void ids_of_qwen2(void **state) /* which normalizes texts: not all return */
{
    (void)state;
    public_vocabulary("ggml-vocab-qwen2.gguf", "tokenizer-qwen2.tsv", 64, false);
}

static void ids_of_llama2(void **state) /* spaces around special tokens are lost */
{
    (void)state;
    public_vocabulary("ggml-vocab-llama-spm.gguf", "tokenizer-llama-spm.tsv", 64, false);
}

static void ids_of_smollm2(void **state)
{
    (void)state;
    const char *path = getenv("CLEAVE_SMOLLM2");
    clv_tokenizer *t;
    if (!path)
        test_skip(
            "third-party data (the model SmolLM2-135M-Instruct, Q4_1): CLEAVE_SMOLLM2 is not set");
    EXPECT_OK(clv_tokenizer_open(path, &lenient, &t));
    assert_int_equal(check_table(t, "tokenizer.tsv", true), 332);
    clv_tokenizer_close(t);
}

/* ---- small vocabularies ---------------------------------------------------------------------------- */

static void ids_of_the_tiny_models(void **state)
{
    (void)state;
    size_t length, seen = 0;
    clv_json *root;
    clv_token_rows rows = { 0 };
    char *text = test_data_read("generate/tiny.json", &length);
    EXPECT_OK(clv_json_parse("tiny.json", text, length, &root));
    for (const char *name = NULL; (name = clv_json_next_key(root, name));) {
        const clv_json *cases = clv_json_get(root, name);
        char path[64];
        clv_tokenizer *t;
        snprintf(path, sizeof path, "tiny/%s", name);
        EXPECT_OK(clv_tokenizer_open(test_data("generate/%s", path), NULL, &t));
        for (size_t i = 0; i < clv_json_count(cases); ++i) {
            const clv_json *ids = clv_json_get(clv_json_at(cases, i), "prompt_tokens");
            const char *prompt =
                clv_json_string(clv_json_get(clv_json_at(cases, i), "prompt"), NULL);
            if (!prompt) continue;
            EXPECT_OK(clv_tokenize(t, &prompt, NULL, 1, NULL, &rows));
            assert_int_equal(rows.tokens, clv_json_count(ids));
            for (size_t k = 0; k < rows.tokens; ++k)
                assert_int_equal(rows.ids[k], clv_json_int(clv_json_at(ids, k), -1));
            ++seen;
        }
        clv_tokenizer_close(t);
    }
    assert_int_equal(seen, 24);
    clv_token_rows_clear(&rows);
    clv_json_free(root);
    clv_free(text);
}

static void what_is_known_is_told(void **state)
{
    (void)state;
    clv_tokenizer *t;
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    EXPECT_OK(clv_tokenizer_open(test_data("generate/tiny/tiny-legacy.gguf"), NULL, &t));
    clv_tokenizer_get_info(t, &info);
    assert_int_equal(info.kind, CLV_TOKENIZER_BPE);
    assert_int_equal(info.vocabulary, 300);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.eos, 2);
    assert_true(info.adds_bos);
    assert_int_equal(clv_tokenizer_type(t, 1), CLV_TOKEN_CONTROL);
    assert_int_equal(clv_tokenizer_type(t, 40), CLV_TOKEN_NORMAL);
    assert_int_equal(clv_tokenizer_type(t, 300), CLV_TOKEN_NONE);
    clv_tokenizer_close(t);
    EXPECT_OK(clv_tokenizer_open(test_data("generate/tiny/tiny-spm.gguf"), NULL, &t));
    clv_tokenizer_get_info(t, &info);
    assert_int_equal(info.kind, CLV_TOKENIZER_SENTENCEPIECE);
    assert_int_equal(clv_tokenizer_type(t, 3), CLV_TOKEN_BYTE);
    assert_true(info.adds_bos);
    clv_tokenizer_close(t);
}

static void special_tokens_in_a_text(void **state)
{
    (void)state;
    static const clv_tokenize_options literal = { .size = sizeof literal, .literal = true };
    clv_tokenizer *t;
    clv_token_rows rows = { 0 }, plain = { 0 };
    EXPECT_OK(clv_tokenizer_open(test_data("generate/tiny/tiny-float.gguf"), NULL, &t));
    EXPECT_IDS(t, "<|im_start|>the<|im_end|>", NULL, 1, clv_tokenizer_find(t, "the"), 2);
    /* as text they are characters, of which none is special */
    const char *text = "<|im_end|>";
    EXPECT_OK(clv_tokenize(t, &text, NULL, 1, &literal, &plain));
    assert_true(plain.tokens > 3);
    for (size_t i = 0; i < plain.tokens; ++i)
        assert_int_equal(clv_tokenizer_type(t, plain.ids[i]), CLV_TOKEN_NORMAL);
    /* the first is the user's, the second is not; its neighbours are tokenized together */
    static const char both[] = "a<|im_end|>b<|im_end|>c";
    unsigned char marks[sizeof both - 1] = { 0 };
    memset(marks + 3, 1, 2);
    EXPECT_OK(clv_tokenize_marked(t, both, marks, sizeof both - 1, NULL, &rows));
    assert_int_equal(rows.tokens, plain.tokens + 4);
    assert_int_equal(rows.ids[rows.tokens - 2], 2);
    assert_memory_equal(rows.ids + 1, plain.ids, plain.tokens * sizeof *plain.ids);
    EXPECT_FAIL(CLV_E_FORMAT, "byte 1 (0xFF) is not UTF-8",
                clv_tokenize_marked(t, "a\xFF", marks, 2, NULL, &rows));
    clv_token_rows_clear(&rows), clv_token_rows_clear(&plain);
    clv_tokenizer_close(t);
}

static void bytes_that_are_no_text(void **state)
{
    (void)state;
    static const clv_tokenizer_options drop = { .size = sizeof drop, .drop_invalid = true };
    clv_tokenizer *strict, *replaces, *drops;
    clv_token_rows rows = { 0 };
    const char *path = test_data("generate/tiny/tiny-float.gguf"), *bad = "a\xE2\x82y";
    EXPECT_OK(clv_tokenizer_open(path, NULL, &strict));
    EXPECT_OK(clv_tokenizer_open(path, &lenient, &replaces));
    EXPECT_OK(clv_tokenizer_open(path, &drop, &drops));
    EXPECT_FAIL(CLV_E_FORMAT, "text 0: byte 1 (0xE2) is not UTF-8",
                clv_tokenize(strict, &bad, NULL, 1, NULL, &rows));
    EXPECT_OK(clv_tokenize(replaces, &bad, NULL, 1, NULL, &rows));
    assert_int_equal(rows.tokens, 5); /* one U+FFFD is three bytes */
    assert_int_equal(rows.replaced, 2);
    EXPECT_OK(clv_tokenize(drops, &bad, NULL, 1, NULL, &rows));
    assert_int_equal(rows.tokens, 2);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(strict), clv_tokenizer_close(replaces), clv_tokenizer_close(drops);
}

static void pieces_are_whole_characters(void **state)
{
    (void)state;
    clv_tokenizer *t;
    clv_detokenizer *d;
    clv_token_rows rows = { 0 };
    const char *text = "\xF0\x9F\x98\x80!", *piece; /* an emoji: four tokens */
    size_t length;
    EXPECT_OK(clv_tokenizer_open(test_data("generate/tiny/tiny-float.gguf"), NULL, &t));
    EXPECT_OK(clv_tokenize(t, &text, NULL, 1, NULL, &rows));
    assert_int_equal(rows.tokens, 5);
    EXPECT_OK(clv_detokenizer_create(t, false, &d));
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_OK(clv_detokenizer_add(d, rows.ids[i], &piece, &length));
        assert_int_equal(length, 0);
    }
    EXPECT_OK(clv_detokenizer_add(d, rows.ids[3], &piece, &length));
    assert_string_equal(piece, "\xF0\x9F\x98\x80");
    /* cut: one U+FFFD, before what follows or at the end */
    EXPECT_OK(clv_detokenizer_add(d, rows.ids[0], &piece, &length));
    EXPECT_OK(clv_detokenizer_add(d, rows.ids[1], &piece, &length));
    EXPECT_OK(clv_detokenizer_add(d, rows.ids[4], &piece, &length));
    assert_string_equal(piece, "\xEF\xBF\xBD!");
    EXPECT_OK(clv_detokenizer_add(d, rows.ids[0], &piece, &length));
    assert_int_equal(length, 0);
    EXPECT_OK(clv_detokenizer_finish(d, &piece, &length));
    assert_string_equal(piece, "\xEF\xBF\xBD");
    /* control tokens give nothing, unless they are asked for */
    EXPECT_OK(clv_detokenizer_add(d, 2, &piece, &length));
    assert_int_equal(length, 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "id 300 is not", clv_detokenizer_add(d, 300, &piece, &length));
    clv_detokenizer_free(d);
    const int32_t end = 2;
    clv_text shown = text_of(t, &end, 1, true);
    assert_string_equal(clv_text_get(&shown), "<|im_end|>");
    clv_text_clear(&shown);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
}

static void sentencepiece_spells_by_bytes(void **state)
{
    (void)state;
    clv_tokenizer *t;
    clv_token_rows rows = { 0 };
    EXPECT_OK(clv_tokenizer_open(test_data("generate/tiny/tiny-spm.gguf"), NULL, &t));
    const char *nothing = "";
    EXPECT_OK(clv_tokenize(t, &nothing, NULL, 1, &bare, &rows));
    assert_int_equal(rows.tokens, 0); /* not even a space */
    const char *text = "the caf\xC3\xA9";
    EXPECT_OK(clv_tokenize(t, &text, NULL, 1, NULL, &rows));
    assert_int_equal(rows.ids[0], 1);
    assert_int_equal(rows.ids[rows.tokens - 1], 3 + 0xA9);
    assert_int_equal(rows.ids[rows.tokens - 2], 3 + 0xC3);
    clv_text again = text_of(t, rows.ids, rows.tokens, false);
    assert_string_equal(clv_text_get(&again), text);
    clv_text_clear(&again);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
}

/* Twice as long takes about twice the time, not four times. */
static void long_words_take_no_quadratic_time(void **state)
{
    (void)state;
    enum { LONG = 400000 };
    static const char *const models[] = { "tiny/tiny-float.gguf", "tiny/tiny-spm.gguf" };
    char *word = clv_alloc(LONG + 1, 1);
    assert_non_null(word);
    for (size_t i = 0; i < LONG; ++i)
        word[i] = "thein"[i * 7 % 5];
    word[LONG] = '\0';
    for (size_t i = 0; i < CLV_LEN(models); ++i) {
        clv_tokenizer *t;
        clv_token_rows rows = { 0 };
        const char *texts[] = { word };
        EXPECT_OK(clv_tokenizer_open(test_data("generate/%s", models[i]), NULL, &t));
        const double started = clv_now();
        EXPECT_OK(clv_tokenize(t, texts, NULL, 1, NULL, &rows));
        if (clv_now() - started > 20) fail_msg("%s: %.1f s", models[i], clv_now() - started);
        assert_true(rows.tokens > LONG / 8 && rows.tokens < LONG);
        clv_token_rows_clear(&rows);
        clv_tokenizer_close(t);
    }
    clv_free(word);
}

/* ---- vocabularies that are wrong -------------------------------------------------------------------- */

static void files_with_a_wrong_vocabulary(void **state)
{
    (void)state;
    clv_tokenizer *t;
    EXPECT_FAIL(CLV_E_FORMAT, "tokenizer.ggml.tokens is missing",
                clv_tokenizer_open(test_data("generate/bad/no_tokens.gguf"), NULL, &t));
    EXPECT_FAIL(CLV_E_FORMAT, "tokenizer.ggml.pre is \"nobody-knows\"",
                clv_tokenizer_open(test_data("generate/bad/unknown_pre.gguf"), NULL, &t));
    assert_null(t);
    EXPECT_OK(clv_tokenizer_open(test_data("generate/bad/ok.gguf"), NULL, &t));
    EXPECT_IDS(t, "the a", NULL, clv_tokenizer_find(t, "th"), 'e',
               clv_tokenizer_find(t, "\xC4\xA0"
                                     "a"));
    clv_tokenizer_close(t);
}

/* tokenizer.json of a tiny model with one part changed. */
static clv_status open_changed(const char *from, const char *to, clv_tokenizer **t)
{
    size_t length;
    char *text = test_data_read("generate/tiny/hf-llama/tokenizer.json", &length);
    char *at = strstr(text, from);
    assert_non_null(at);
    clv_text changed = { 0 };
    clv_text_add(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    char folder[4096], path[4200];
    snprintf(folder, sizeof folder, "%s", test_temp_dir());
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(changed.data, 1, changed.length, file), changed.length);
    assert_int_equal(fclose(file), 0);
    clv_text_clear(&changed);
    clv_free(text);
    return clv_tokenizer_open(folder, NULL, t);
}

static void rules_of_tokenizer_json(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } wrong[] = {
        { "\\\\p{N}{1,3}", "\\\\p{N}{1,4}", "splits texts by \"(?i:'s|" },
        { "\"Isolated\"", "\"Removed\"", "(Removed), which is not supported" },
        { "\"type\":\"Split\"", "\"type\":\"Whitespace\"", "pre_tokenizer is Whitespace" },
        { "\"normalizer\":null", "\"normalizer\":{\"type\":\"Nmt\"}", "normalizer is Nmt" },
        { "\"post_processor\":null", "\"post_processor\":{\"type\":\"OtherProcessing\"}",
          "post_processor is OtherProcessing" },
        { "[\"t\",\"h\"]", "[\"t\"]", "merge 0 is \"t\"" },
        { "[\"t\",\"h\"]", "\"th\"", "merge 0 is \"th\"" },
        { "[\"t\",\"h\"]", "[\"t\",\"zz\"]", "1 of 41 merges name pieces" },
        { "\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
          "end_of_word_suffix is </w>, expected none" },
        { "\"dropout\":null", "\"dropout\":0.1", "dropout is not 0" },
    };
    clv_tokenizer *t;
    for (size_t i = 0; i < CLV_LEN(wrong); ++i)
        EXPECT_FAIL(CLV_E_FORMAT, wrong[i].part, open_changed(wrong[i].from, wrong[i].to, &t));
    EXPECT_OK(open_changed("[\"t\",\"h\"]", "\"t h\"", &t)); /* as older files write it */
    EXPECT_IDS(t, "the", NULL, clv_tokenizer_find(t, "the"));
    clv_tokenizer_close(t);
    EXPECT_OK(open_changed("\"post_processor\":null",
                           "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{"
                           "\"SpecialToken\":{\"id\":\"<b>\",\"type_id\":0}},{\"Sequence\":{\"id\":"
                           "\"A\",\"type_id\":0}}],\"special_tokens\":{\"<b>\":{\"id\":\"<b>\","
                           "\"ids\":[1],\"tokens\":[\"<b>\"]}}}",
                           &t));
    EXPECT_IDS(t, "the", NULL, 1, clv_tokenizer_find(t, "the"));
    EXPECT_IDS(t, "the", &bare, clv_tokenizer_find(t, "the"));
    clv_tokenizer_close(t);
    EXPECT_OK(open_changed("\"single_word\":false,\"lstrip\":false,\"rstrip\":false",
                           "\"single_word\":true,\"lstrip\":true,\"rstrip\":true", &t));
    EXPECT_IDS(t, "the \n<|endoftext|>  the", NULL, clv_tokenizer_find(t, "the"), 0,
               clv_tokenizer_find(t, "the"));
    const char *inside = "a<|endoftext|>";
    clv_token_rows rows = { 0 };
    EXPECT_OK(clv_tokenize(t, &inside, NULL, 1, NULL, &rows));
    assert_true(rows.tokens > 2 && rows.ids[1] != 0);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_the_tiny_models),
        cmocka_unit_test(what_is_known_is_told),
        cmocka_unit_test(special_tokens_in_a_text),
        cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(pieces_are_whole_characters),
        cmocka_unit_test(sentencepiece_spells_by_bytes),
        cmocka_unit_test(long_words_take_no_quadratic_time),
        cmocka_unit_test(files_with_a_wrong_vocabulary),
        cmocka_unit_test(rules_of_tokenizer_json),
        cmocka_unit_test(ids_of_gpt2),
        cmocka_unit_test(ids_of_llama3),
        cmocka_unit_test(ids_of_qwen2),
        cmocka_unit_test(ids_of_llama2),
        cmocka_unit_test(ids_of_smollm2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

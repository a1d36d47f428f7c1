/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/tokenizer*.c, wordpiece.c, chars.c: ids of the library tokenizers, and bad input. */
#include "io_test.h"

#include <cleave/init.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "host/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct goldens {
    clv_json *root;
    size_t count;
    char **texts;
    size_t *lengths;
} goldens;

static goldens g;

static clv_json *load_json(const char *path)
{
    unsigned char *text;
    size_t length;
    clv_json *root;
    io_load(path, &text, &length);
    EXPECT_OK(clv_json_parse(path, (const char *)text, length, &root));
    free(text);
    return root;
}

/* U+F0000 stands for NUL in the file of goldens. */
static int load_goldens(void **state)
{
    (void)state;
    static const char stand_in[] = "\xF3\xB0\x80\x80";
    g.root = load_json(test_data("model/tokens.json"));
    const clv_json *texts = clv_json_get(g.root, "texts");
    g.count = clv_json_count(texts);
    g.texts = calloc(g.count, sizeof *g.texts);
    g.lengths = calloc(g.count, sizeof *g.lengths);
    for (size_t i = 0; i < g.count; ++i) {
        const char *text = clv_json_string(clv_json_at(texts, i), "");
        g.texts[i] = malloc(strlen(text) + 1);
        for (; *text; ++g.lengths[i]) {
            const int is_nul = strncmp(text, stand_in, 4) == 0;
            g.texts[i][g.lengths[i]] = is_nul ? '\0' : *text;
            text += is_nul ? 4 : 1;
        }
    }
    return 0;
}

static int free_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < g.count; ++i)
        free(g.texts[i]);
    free(g.texts), free(g.lengths);
    clv_json_free(g.root);
    return 0;
}

static void expect_goldens(const char *way, const clv_token_rows *rows, size_t most)
{
    const clv_json *all = clv_json_get(g.root, way);
    assert_int_equal(rows->rows, g.count);
    for (size_t i = 0; i < g.count; ++i) {
        const clv_json *want = clv_json_at(all, i);
        const size_t full = clv_json_count(want), count = CLV_MIN(full, most);
        const int32_t *got = rows->ids + rows->offsets[i];
        if (rows->offsets[i + 1] - rows->offsets[i] != count)
            fail_msg("%s, text %zu: %zu tokens, expected %zu", way, i,
                     rows->offsets[i + 1] - rows->offsets[i], count);
        for (size_t k = 0; k < count; ++k) { /* the cut leaves [SEP] at the end */
            const size_t from = k + 1 == count ? full - 1 : k;
            if (got[k] != clv_json_int(clv_json_at(want, from), -2))
                fail_msg("%s, text %zu, token %zu: %d", way, i, k, got[k]);
        }
    }
}

static clv_tokenizer *open_tiny(const char *name, size_t max_length)
{
    clv_tokenizer *t;
    const clv_tokenizer_options options = { .size = sizeof options,
                                            .max_length = max_length,
                                            .unlimited = max_length == 0 };
    EXPECT_OK(clv_tokenizer_open(test_data("model/tiny%s", name), &options, &t));
    return t;
}

static clv_status tokenize(const clv_tokenizer *t, size_t threads, clv_token_rows *rows)
{
    const clv_tokenize_options options = { .size = sizeof options, .threads = threads };
    return clv_tokenize(t, (const char *const *)g.texts, g.lengths, g.count, &options, rows);
}

static void ids_are_those_of_the_reference(void **state)
{
    (void)state;
    static const char *const names[] = { "", "/tokenizer.json", "/vocab.txt" };
    clv_token_rows rows = { 0 };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        clv_tokenizer *t = open_tiny(names[i], 0);
        EXPECT_OK(tokenize(t, 1, &rows));
        expect_goldens("uncased", &rows, SIZE_MAX);
        assert_int_equal(rows.truncated, 0);
        clv_tokenizer_close(t);
    }
    clv_token_rows_clear(&rows);
}

/* tokenizer.json with one part replaced. */
static clv_status open_changed(const char *from, const char *to, clv_tokenizer *t)
{
    unsigned char *bytes;
    size_t length;
    io_load(test_data("model/tiny/tokenizer.json"), &bytes, &length);
    bytes[length] = '\0';
    char *at = strstr((char *)bytes, from);
    assert_non_null(at);
    clv_text text = { 0 };
    clv_text_bytes(&text, bytes, (size_t)(at - (char *)bytes));
    clv_text_add(&text, "%s", to);
    clv_text_bytes(&text, at + strlen(from), strlen(at + strlen(from)));
    memset(t, 0, sizeof *t);
    const clv_status status = clv_tokenizer_from_json(t, "changed.json", text.data, text.length);
    clv_text_clear(&text);
    free(bytes);
    return status;
}

static void other_ways_of_normalising_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *way, *to;
    } ways[] = { { "cased", "\"strip_accents\": null, \"lowercase\": false" },
                 { "accents", "\"strip_accents\": false, \"lowercase\": true" },
                 { "plain", "\"strip_accents\": true, \"lowercase\": false" } };
    clv_token_rows rows = { 0 };
    clv_tokenizer *t = malloc(sizeof *t);
    for (size_t i = 0; i < CLV_LEN(ways); ++i) {
        EXPECT_OK(open_changed("\"strip_accents\": null, \"lowercase\": true", ways[i].to, t));
        t->max_length = SIZE_MAX;
        EXPECT_OK(tokenize(t, 1, &rows));
        expect_goldens(ways[i].way, &rows, SIZE_MAX);
        clv_tokenizer_discard(t);
    }
    clv_token_rows_clear(&rows);
    free(t);
}

static void long_texts_are_cut_and_counted(void **state)
{
    (void)state;
    clv_token_rows rows = { 0 };
    for (size_t most = 2; most < 12; most += 3) {
        clv_tokenizer *t = open_tiny("", most);
        EXPECT_OK(tokenize(t, 1, &rows));
        expect_goldens("uncased", &rows, most);
        size_t cut = 0;
        for (size_t i = 0; i < g.count; ++i)
            cut += clv_json_count(clv_json_at(clv_json_get(g.root, "uncased"), i)) > most;
        assert_int_equal(rows.truncated, cut);
        clv_tokenizer_close(t);
    }
    clv_token_rows_clear(&rows);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    enum { COPIES = 64 }; /* enough bytes for several threads */
    clv_tokenizer *t = open_tiny("", 0);
    const size_t count = COPIES * g.count;
    const char **texts = malloc(count * sizeof *texts);
    size_t *lengths = malloc(count * sizeof *lengths);
    for (size_t i = 0; i < count; ++i)
        texts[i] = g.texts[i % g.count], lengths[i] = g.lengths[i % g.count];
    clv_token_rows one = { 0 }, many = { 0 };
    EXPECT_OK(clv_tokenize(t, texts, lengths, count, NULL, &one));
    for (size_t threads = 2; threads <= 100; threads += 7) {
        const clv_tokenize_options options = { .size = sizeof options, .threads = threads };
        EXPECT_OK(clv_tokenize(t, texts, lengths, count, &options, &many));
        assert_int_equal(many.rows, count);
        assert_int_equal(many.tokens, one.tokens);
        assert_int_equal(many.unknown, one.unknown);
        assert_memory_equal(many.offsets, one.offsets, (count + 1) * sizeof *one.offsets);
        assert_memory_equal(many.ids, one.ids, one.tokens * sizeof *one.ids);
    }
    lengths[count - 1] = 1, texts[count - 1] = "\xFF"; /* the failure of a thread comes through */
    const clv_tokenize_options options = {
        .size = sizeof options, .threads = 3, .first = 1, .what = "line"
    };
    char part[64];
    snprintf(part, sizeof part, "line %zu: byte 0 (0xFF) is not UTF-8", count);
    EXPECT_FAIL(CLV_E_FORMAT, part, clv_tokenize(t, texts, lengths, count, &options, &many));
    assert_int_equal(many.rows, 0);
    free(texts), free(lengths);
    clv_token_rows_clear(&one), clv_token_rows_clear(&many);
    clv_tokenizer_close(t);
}

static void what_is_not_utf8_is_named_or_dropped(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "the\x80",         "the\xC0\x80", "the\xE0\x80\x80",    "the\xED\xA0\x80",
        "the\xF5\x80\x80", "the\xE6\x9D", "the\xF4\x90\x80\x80"
    };
    clv_tokenizer *t = open_tiny("", 0), *lenient;
    const clv_tokenizer_options options = { .size = sizeof options, .replace_invalid = true };
    clv_token_rows rows = { 0 };
    EXPECT_OK(clv_tokenizer_open(test_data("model/tiny"), &options, &lenient));
    for (size_t i = 0; i < CLV_LEN(broken); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, "text 0: byte 3 (0x",
                    clv_tokenize(t, &broken[i], NULL, 1, NULL, &rows));
        EXPECT_OK(clv_tokenize(lenient, &broken[i], NULL, 1, NULL, &rows));
        assert_int_equal(rows.tokens, 3); /* [CLS] the [SEP] */
        assert_string_equal(clv_tokenizer_piece(t, rows.ids[1]), "the");
        assert_int_equal(rows.replaced, strlen(broken[i]) - 3);
    }
    EXPECT_OK(clv_tokenize(t, NULL, NULL, 0, NULL, &rows));
    assert_int_equal(rows.rows + rows.tokens, 0);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(t), clv_tokenizer_close(lenient);
}

static void pieces_are_found_by_text_and_id(void **state)
{
    (void)state;
    clv_tokenizer *t = open_tiny("", 0);
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    clv_tokenizer_get_info(t, &info);
    assert_true(info.cls == 2 && info.sep == 3 && info.unk == 1 && info.pad == 0 && info.mask == 4);
    assert_true(info.lower_case && info.max_length == SIZE_MAX);
    assert_int_equal(info.vocabulary, 1674);
    for (int32_t id = 0; id < (int32_t)info.vocabulary; ++id)
        assert_int_equal(clv_tokenizer_find(t, clv_tokenizer_piece(t, id)), id);
    assert_null(clv_tokenizer_piece(t, -1));
    assert_null(clv_tokenizer_piece(t, 1674));
    assert_int_equal(clv_tokenizer_find(t, "not there"), -1);
    clv_tokenizer_close(t);
}

static void the_longest_added_token_wins(void **state)
{
    (void)state;
    static const char *const texts[] = { "[MASK]xy[MASK]" };
    clv_token_rows rows = { 0 };
    clv_tokenizer *t = malloc(sizeof *t);
    EXPECT_OK(open_changed("}], \"normalizer\"",
                           "}, {\"id\": 2000, \"content\": \"[MASK]x\"}, "
                           "{\"id\": 2001, \"content\": \"[\"}], \"normalizer\"",
                           t));
    t->max_length = SIZE_MAX;
    EXPECT_OK(clv_tokenize(t, texts, NULL, 1, NULL, &rows));
    assert_int_equal(rows.tokens, 5);
    assert_true(rows.ids[1] == 2000 && rows.ids[3] == 4);
    assert_null(clv_tokenizer_piece(t, 1999)); /* a gap between vocabulary and added tokens */
    assert_string_equal(clv_tokenizer_piece(t, 2000), "[MASK]x");
    clv_token_rows_clear(&rows);
    clv_tokenizer_discard(t);
    free(t);
}

static void rules_that_are_not_known_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } changes[] = {
        { "\"type\": \"WordPiece\", \"unk", "\"type\": \"WordLevel\", \"unk",
          "model is WordLevel" },
        { "\"type\": \"WordPiece\", \"unk", "\"type\": \"Unigram\", \"unk", "vocab is an object" },
        { "\"type\": \"WordPiece\", \"unk", "\"type\": \"BPE\", \"unk",
          "prefix is ##, expected none" },
        { "BertNormalizer", "NFC", "normalizer is NFC, expected BertNormalizer" },
        { "BertPreTokenizer", "Metaspace", "pre_tokenizer is Metaspace" },
        { "TemplateProcessing", "OtherProcessing", "post_processor is OtherProcessing" },
        { "\"clean_text\": true", "\"clean_text\": false", "clean_text is false" },
        { "\"clean_text\": true", "\"clean_text\": 1", "clean_text is a whole number" },
        { "\"single_word\": false", "\"single_word\": true", "\"[PAD]\" has single_word" },
        { "\"normalized\": false", "\"normalized\": 1", "normalized is a whole number" },
        { "\"content\": \"[PAD]\"", "\"content\": \"x\"",
          "token \"x\" has the id 0, which already belongs to \"[PAD]\"" },
        { "\"max_input_chars_per_word\": 100", "\"max_input_chars_per_word\": 1000", "1 to 256" },
        { "\"unk_token\": \"[UNK]\"", "\"unk_token\": \"<unk>\"", "has no \"<unk>\"" },
        { "{\"[PAD]\": 0,", "{\"[PAD]\": 1,", "same id 1" },
        { "{\"[PAD]\": 0,", "{\"[PAD]\": -1,", "has the id -1" },
        { "{\"[PAD]\": 0,", "{\"[PAD]\": 0.5,", "a number with a fraction" },
        { "\"continuing_subword_prefix\": \"##\"", "\"continuing_subword_prefix\": \"\"",
          "continuing_subword_prefix" },
        { "\"single\": [{\"Sp", "\"single\": [{\"Sequence\": 1}, {\"Sp",
          "does not make [CLS] text [SEP]" },
        { "\"model\"", "\"mode\"", "model is nothing, expected an object" },
        { "{\"version\"", "[\"version\"", "not valid JSON" },
    };
    clv_tokenizer *t = malloc(sizeof *t);
    for (size_t i = 0; i < CLV_LEN(changes); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, changes[i].part, open_changed(changes[i].from, changes[i].to, t));
        clv_tokenizer_discard(t);
    }
    free(t);
}

/* Ids whose lowest 32 bits are those of a token. */
static void ids_of_more_than_32_bits_are_refused(void **state)
{
    (void)state;
    static const char *const frames[] = {
        "{\"type\": \"RobertaProcessing\", \"cls\": [\"a\", 4294967297], \"sep\": [\"a\", 1]}",
        "{\"type\": \"RobertaProcessing\", \"cls\": [\"a\", 1], \"sep\": [\"a\", 4294967297]}",
        ("{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"a\"}}, "
         "{\"Sequence\": {}}], \"special_tokens\": {\"a\": {\"ids\": [4294967297]}}}")
    };
    clv_tokenizer *t = malloc(sizeof *t);
    for (size_t i = 0; i < CLV_LEN(frames); ++i) {
        clv_text text = { 0 };
        memset(t, 0, sizeof *t);
        clv_text_add(&text,
                     "{\"added_tokens\": [], \"post_processor\": %s, \"model\": {\"type\": "
                     "\"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -2]]}}",
                     frames[i]);
        EXPECT_FAIL(CLV_E_FORMAT, "adds the id 4294967297, which the vocabulary does not have",
                    clv_tokenizer_from_json(t, "small.json", text.data, text.length));
        clv_text_clear(&text);
        clv_tokenizer_discard(t);
    }
    free(t);
}

/* ---- Unigram, character maps and normal forms ---------------------------------------------------- */

#define MARK "\xE2\x96\x81"
#define META \
    "{\"type\": \"Metaspace\", \"replacement\": \"" MARK "\", \"prepend_scheme\": \"first\"}"

/* A tokenizer.json with a few pieces, this normalizer, and these pre_tokenizers. */
static clv_status open_unigram(const char *normalizer, const char *splits, clv_tokenizer *t)
{
    clv_text text = { 0 };
    memset(t, 0, sizeof *t);
    clv_text_add(&text,
                 "{\"added_tokens\": [], \"normalizer\": %s, \"pre_tokenizer\": {\"type\": "
                 "\"Sequence\", \"pretokenizers\": [%s]}, \"model\": {\"type\": \"Unigram\", "
                 "\"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"" MARK "\", -2], [\"2\", -2], "
                 "[\"0\", -2], [\"4\", -2], [\"a\", -2], [\"" MARK "2\", -1], [\"" MARK
                 "a\", -1], [\"\xC3\xA9\", -2], [\"xa\", -8]]}}",
                 normalizer, splits);
    const clv_status status = clv_tokenizer_from_json(t, "small.json", text.data, text.length);
    t->max_length = SIZE_MAX;
    clv_text_clear(&text);
    return status;
}

/* Opens a character map of 99 units that replaces "a": `tail` is the base64 text from the unit for "a" on, which holds
 * the unit with the value and the texts. */
static clv_status open_charsmap(const char *tail, const char *splits, clv_tokenizer *t)
{
    enum { BEFORE = 522 }; /* characters in front of the unit for "a"; all units there are 0 */
    char zeros[BEFORE - 3 + 1], normalizer[1024];
    memset(zeros, 'A', sizeof zeros);
    zeros[sizeof zeros - 1] = '\0';
    snprintf(normalizer, sizeof normalizer,
             "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"jAE%s%s\"}", zeros, tail);
    return open_unigram(normalizer, splits, t);
}

static void expect_tokens(const clv_tokenizer *t, const char *text, size_t count,
                          const int32_t *ids)
{
    clv_token_rows rows = { 0 };
    EXPECT_OK(clv_tokenize(t, &text, NULL, 1, NULL, &rows));
    if (rows.tokens != count || memcmp(rows.ids, ids, count * sizeof *ids) != 0)
        fail_msg("\"%s\": %zu tokens, of which the first is %d", text, rows.tokens, rows.ids[0]);
    clv_token_rows_clear(&rows);
}

static void character_maps_give_whole_characters(void **state)
{
    (void)state;
    static const char spaces[] = "{\"type\": \"WhitespaceSplit\"}, " META;
    clv_tokenizer *t = malloc(sizeof *t);
    EXPECT_FAIL(CLV_E_FORMAT, "byte 0 (0xFF) of the texts of precompiled_charsmap is not UTF-8",
                open_charsmap("BhDQAAAAAAAP8A", spaces, t)); /* "\xFF" */
    clv_tokenizer_discard(t);
    EXPECT_OK(open_charsmap("BhDQAAAAAAAMOpAA==", spaces, t)); /* byte 0 of "\xC3\xA9" */
    expect_tokens(t, "a", 2, (const int32_t[]){ 1, 8 });
    clv_tokenizer_discard(t);
    EXPECT_OK(open_charsmap("BhDQAAAQAAAMOpAA==", spaces, t)); /* byte 1, which begins no text */
    expect_tokens(t, "a", 1, (const int32_t[]){ 7 });
    clv_tokenizer_discard(t);
    free(t);
    for (clv_split_kind kind = CLV_SPLIT_NUMBERS; kind <= CLV_SPLIT_SPACES; ++kind)
        assert_true(clv_split_next(&(clv_split){ .kind = kind, .mark = " " }, "\xFF\xFF", 2) > 0);
}

/* The ids are those of the library tokenizers 0.23.3. */
static void only_the_first_piece_gets_a_mark(void **state)
{
    (void)state;
    clv_tokenizer *t = malloc(sizeof *t);
    EXPECT_OK(
        open_unigram("null", "{\"type\": \"Digits\", \"individual_digits\": true}, " META, t));
    expect_tokens(t, "2024", 4, (const int32_t[]){ 6, 3, 2, 4 });
    expect_tokens(t, "a2024", 5, (const int32_t[]){ 7, 2, 3, 2, 4 });
    expect_tokens(t, "a a", 2, (const int32_t[]){ 7, 7 });
    expect_tokens(t, " a2", 2, (const int32_t[]){ 7, 2 });
    clv_tokenizer_discard(t);
    free(t);
}

/* An unknown character scores 10 below the worst piece, so that a piece with it wins. The ids are those of the library
 * tokenizers 0.23.3. */
static void unknown_characters_score_lowest(void **state)
{
    (void)state;
    clv_tokenizer *t = malloc(sizeof *t);
    EXPECT_OK(open_unigram("null", META, t));
    expect_tokens(t, "xa", 2, (const int32_t[]){ 1, 9 });
    expect_tokens(t, "ax2", 3, (const int32_t[]){ 7, 0, 2 });
    clv_tokenizer_discard(t);
    free(t);
}

/* Sorts many marks of two classes, U+0301 (230) and U+0316 (220), behind a letter. */
static void runs_of_marks_take_no_quadratic_time(void **state)
{
    (void)state;
    enum { MARKS = 1000000 };
    char *text = malloc(1 + 2 * MARKS);
    text[0] = 'x';
    for (size_t i = 0; i < MARKS; ++i)
        memcpy(text + 1 + 2 * i, i % 2 ? "\xCC\x96" : "\xCC\x81", 2);
    for (size_t way = 0; way < 3; ++way) {
        clv_text out = { 0 };
        const double started = clv_now();
        if (way < 2) clv_text_decompose(text, 1 + 2 * MARKS, way, &out);
        if (way == 2) clv_utf8_compose(text, 1 + 2 * MARKS, false, &out);
        if (clv_now() - started > 20) fail_msg("way %zu: %.1f s", way, clv_now() - started);
        assert_true(!out.failed && out.length == 1 + 2 * MARKS && out.data[0] == 'x');
        for (size_t i = 0; i < MARKS; ++i)
            if (memcmp(out.data + 1 + 2 * i, i < MARKS / 2 ? "\xCC\x96" : "\xCC\x81", 2) != 0)
                fail_msg("way %zu: mark %zu is out of order", way, i);
        clv_text_clear(&out);
    }
    free(text);
}

/* A few thousand added tokens, of which one is searched for in the normal form. */
static void many_added_tokens_cost_little(void **state)
{
    (void)state;
    enum { TOKENS = 4000, LENGTH = 2000000 };
    clv_text added = { 0 };
    clv_token_rows rows = { 0 };
    clv_tokenizer *t = malloc(sizeof *t);
    clv_text_add(&added, "}, {\"id\": 2000, \"content\": \"[Late]\", \"normalized\": true}");
    for (int i = 1; i < TOKENS; ++i)
        clv_text_add(&added, ", {\"id\": %d, \"content\": \"[Token%d]\"}", 2000 + i, i);
    clv_text_add(&added, "], \"normalizer\"");
    EXPECT_OK(open_changed("}], \"normalizer\"", added.data, t));
    t->max_length = SIZE_MAX;
    char *text = malloc(LENGTH + 1);
    memset(text, ' ', LENGTH);
    text[LENGTH] = '\0';
    memcpy(text, "[LATE][Token7]", 14);
    const char *const texts[] = { text };
    const double started = clv_now();
    EXPECT_OK(clv_tokenize(t, texts, NULL, 1, NULL, &rows));
    if (clv_now() - started > 10) fail_msg("%.1f s", clv_now() - started);
    assert_true(rows.tokens == 4 && rows.ids[1] == 2000 && rows.ids[2] == 2007);
    clv_token_rows_clear(&rows);
    clv_text_clear(&added);
    clv_tokenizer_discard(t);
    free(text), free(t);
}

static clv_tokenizer *opened;
static clv_token_rows made;

static clv_status open_and_tokenize(void)
{
    clv_status status = clv_tokenizer_open(test_data("model/tiny/vocab.txt"), NULL, &opened);
    if (!status) status = tokenize(opened, 2, &made);
    clv_tokenizer_close(opened);
    clv_token_rows_clear(&made);
    return status;
}

static int nothing_left(void)
{
    return made.ids == NULL;
}

static void a_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_true(io_without_memory(open_and_tokenize, nothing_left) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_reference),
        cmocka_unit_test(other_ways_of_normalising_are_exact),
        cmocka_unit_test(long_texts_are_cut_and_counted),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(what_is_not_utf8_is_named_or_dropped),
        cmocka_unit_test(pieces_are_found_by_text_and_id),
        cmocka_unit_test(the_longest_added_token_wins),
        cmocka_unit_test(rules_that_are_not_known_are_refused),
        cmocka_unit_test(ids_of_more_than_32_bits_are_refused),
        cmocka_unit_test(character_maps_give_whole_characters),
        cmocka_unit_test(only_the_first_piece_gets_a_mark),
        cmocka_unit_test(unknown_characters_score_lowest),
        cmocka_unit_test(runs_of_marks_take_no_quadratic_time),
        cmocka_unit_test(many_added_tokens_cost_little),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, load_goldens, free_goldens);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* host/chat: templates as jinja2 renders them, what comes from users, what is refused, limits. */
#include "run.h"
#include "data.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <cleave/chat.h>
#include <cleave/gguf.h>
#include <cleave/init.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 16, DAY = 1721990000 }; /* 26 July 2024 */

static size_t take_messages(const clv_json *list, clv_chat_message *out)
{
    const size_t count = clv_json_count(list);
    assert_true(count <= MOST_MESSAGES);
    for (size_t i = 0; i < count; ++i)
        out[i] =
            (clv_chat_message){ clv_json_string(clv_json_get(clv_json_at(list, i), "role"), NULL),
                                clv_json_string(clv_json_get(clv_json_at(list, i), "content"),
                                                NULL) };
    return count;
}

static void expect_text(const char *source, const clv_chat_message *messages, size_t count,
                        const clv_chat_options *options, const char *want)
{
    char *text;
    size_t length;
    EXPECT_OK(clv_chat_render(source, messages, count, options, &text, NULL, &length));
    if (strcmp(text, want) != 0) fail_msg("%s: \"%s\", expected \"%s\"", source, text, want);
    assert_int_equal(length, strlen(want));
    clv_free(text);
}

static void templates_are_rendered_as_by_jinja(void **state)
{
    (void)state;
    size_t length;
    clv_json *root;
    clv_chat_message messages[MOST_MESSAGES];
    char *text = test_data_read("generate/templates.json", &length);
    EXPECT_OK(clv_json_parse("templates.json", text, length, &root));
    const size_t count = take_messages(clv_json_get(root, "messages"), messages);
    clv_chat_options options = CLV_INIT(clv_chat_options);
    options.bos = "<s>", options.eos = "</s>";
    const clv_json *cases = clv_json_get(root, "cases");
    assert_true(clv_json_count(cases) >= 40);
    for (size_t i = 0; i < clv_json_count(cases); ++i) {
        const clv_json *c = clv_json_at(cases, i);
        expect_text(clv_json_string(clv_json_get(c, "source"), NULL), messages, count, &options,
                    clv_json_string(clv_json_get(c, "text"), NULL));
    }
    clv_json_free(root);
    clv_free(text);
}

/* ---- templates of public models ------------------------------------------------------------------- */

/* The file that holds the template of a golden; NULL: in the GGUF file of SmolLM2. */
static const char *const files[][2] = {
    { "smollm2", NULL },
    { "qwen2.5", "Qwen-Qwen2.5-7B-Instruct" },
    { "llama-3.2", "meta-llama-Llama-3.2-3B-Instruct" },
    { "gemma-2", "google-gemma-2-2b-it" },
    { "phi-3.5", "microsoft-Phi-3.5-mini-instruct" },
    { "mistral-nemo", "mistralai-Mistral-Nemo-Instruct-2407" },
    { "deepseek-r1-qwen", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B" },
    { "qwen3", "Qwen-Qwen3-0.6B" },
};

static char *template_of_smollm2(void)
{
    clv_gguf *file;
    clv_gguf_value v;
    EXPECT_OK(clv_gguf_open(getenv("CLEAVE_SMOLLM2"), &file));
    assert_true(clv_gguf_get(file, "tokenizer.chat_template", &v));
    clv_text text = { 0 };
    clv_text_bytes(&text, v.text, v.length);
    clv_gguf_close(file);
    return text.data;
}

static char *template_of(const char *name)
{
    char path[4096], *text;
    size_t length;
    for (size_t i = 0; i < CLV_LEN(files); ++i) {
        if (strcmp(files[i][0], name) != 0) continue;
        if (!files[i][1]) return template_of_smollm2();
        snprintf(path, sizeof path, "%s/templates/%s.jinja", getenv("CLEAVE_VOCABULARIES"),
                 files[i][1]);
        EXPECT_OK(clv_file_read(path, 1 << 20, &text, &length));
        return text;
    }
    fail_msg("no template %s", name);
    return NULL;
}

static void conversations_of_public_models(void **state)
{
    (void)state;
    size_t length;
    clv_json *root;
    clv_chat_message messages[MOST_MESSAGES];
    if (!getenv("CLEAVE_SMOLLM2") || !getenv("CLEAVE_VOCABULARIES"))
        test_skip("third-party data (SmolLM2, and templates of llama.cpp): CLEAVE_SMOLLM2 or "
                  "CLEAVE_VOCABULARIES is not set");
    char *text = test_data_read("generate/chat.json", &length);
    EXPECT_OK(clv_json_parse("chat.json", text, length, &root));
    assert_int_equal(clv_json_count(root), 32);
    for (size_t i = 0; i < clv_json_count(root); ++i) {
        const clv_json *c = clv_json_at(root, i);
        const char *name = clv_json_string(clv_json_get(c, "template"), NULL);
        const char *want = clv_json_string(clv_json_get(c, "text"), NULL);
        const bool llama = strstr(name, "llama");
        clv_chat_options options = CLV_INIT(clv_chat_options);
        options.bos = strstr(name, "gemma") ? "<bos>" : llama ? "<|begin_of_text|>" : "<s>";
        options.eos = llama ? "<|end_of_text|>" : "</s>";
        options.now = DAY;
        const size_t count = take_messages(clv_json_get(c, "messages"), messages);
        char *source = template_of(name), *out;
        size_t out_length;
        if (want)
            expect_text(source, messages, count, &options, want);
        else
            EXPECT_FAIL(
                CLV_E_ARGUMENT, "the template refuses this conversation",
                clv_chat_render(source, messages, count, &options, &out, NULL, &out_length));
        clv_free(source);
    }
    clv_json_free(root);
    clv_free(text);
}

static void families_are_known_by_their_tokens(void **state)
{
    (void)state;
    static const clv_chat_message talk[] = { { "user", " Hi " },
                                             { "assistant", "Hello!" },
                                             { "user", "Bye" } };
    static const struct {
        const char *part, *family, *text;
    } known[] = {
        { "x<|im_start|>y", "chatml",
          "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
          "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n" },
        { "<|start_header_id|>", "llama3",
          "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant"
          "<|end_header_id|>\n\nHello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye"
          "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" },
        { "[INST] <<SYS>>", "llama2", "<s>[INST] Hi [/INST] Hello! </s><s>[INST] Bye [/INST]" },
        { "[INST]", "mistral", "<s>[INST]  Hi  [/INST] Hello!</s>[INST] Bye [/INST]" },
        { "<start_of_turn>", "gemma",
          "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"
          "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n" },
        { "<|user|><|end|>", "phi3",
          "<|user|>\n Hi <|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\nBye<|end|>\n"
          "<|assistant|>\n" },
        { "<|user|>", "zephyr",
          "<|user|>\n Hi </s>\n<|assistant|>\nHello!</s>\n<|user|>\nBye</s>\n<|assistant|>\n" },
    };
    clv_chat_options options = CLV_INIT(clv_chat_options);
    options.bos = "<s>", options.eos = "</s>";
    for (size_t i = 0; i < CLV_LEN(known); ++i) {
        assert_string_equal(clv_chat_family(known[i].part), known[i].family);
        expect_text(clv_chat_template(known[i].family), talk, CLV_LEN(talk), &options,
                    known[i].text);
    }
    assert_null(clv_chat_family("### User:"));
    assert_null(clv_chat_template("vicuna"));
    static const clv_chat_message system[] = { { "system", "S" }, { "user", "U" } };
    expect_text(clv_chat_template("llama2"), system, 2, &options,
                "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]");
    expect_text(clv_chat_template("mistral"), system, 2, &options, "<s>[INST] S\n\nU [/INST]");
}

/* ---- what users wrote ------------------------------------------------------------------------------- */

static void what_users_wrote_is_marked(void **state)
{
    (void)state;
    static const clv_chat_message talk[] = { { "user", "  a<b>c " } };
    static const struct {
        const char *source, *text, *marks;
    } cases[] = {
        { "<{{ messages[0].content }}>", "<  a<b>c >", "0111111110" },
        { "<{{ messages[0].content | trim | upper }}>", "<A<B>C>", "0111110" },
        { "{{ 'x' + messages[0].content[2:4] ~ 'y' }}", "xa<y", "0110" },
        { "{{ messages[0].content | replace('<b>', '<z>') }}", "  a<z>c ", "11100011" },
        { "{{ messages[0].content.split('<')[1] }}<", "b>c <", "11110" },
        { "{{ messages[0].content | tojson }}", "\"  a<b>c \"", "0111111110" },
        { "{% set x %}<{{ messages[0].content | trim }}{% endset %}{{ x }}", "<a<b>c", "011111" },
        { "{% set n = namespace(x='') %}{% set n.x %}<{{ messages[0].content | trim }}{% endset "
          "%}{{ n.x }}",
          "<a<b>c", "011111" },
        { "{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(messages[0].content[2]) }}", "<a>", "010" },
        { "{{ messages[0].role }}{{ messages[0].content[::-1] | trim }}", "userc>b<a",
          "000011111" },
        { "{{ messages | map(attribute='content') | join('-') | trim }}", "a<b>c", "11111" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        char *text;
        unsigned char *marks;
        size_t length;
        EXPECT_OK(clv_chat_render(cases[i].source, talk, 1, NULL, &text, &marks, &length));
        assert_string_equal(text, cases[i].text);
        for (size_t k = 0; k < length; ++k)
            if (marks[k] + '0' != cases[i].marks[k])
                fail_msg("%s: byte %zu is marked %d", cases[i].source, k, marks[k]);
        clv_free(text), clv_free(marks);
    }
}

/* ---- what cannot be done ---------------------------------------------------------------------------- */

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        clv_status status;
        const char *source, *part;
    } wrong[] = {
        { CLV_E_FORMAT, "a\n{{ x", "line 2: a tag without an end" },
        { CLV_E_FORMAT, "{% if x %}", "the template ends where endif was expected" },
        { CLV_E_FORMAT, "{% endif %}", "found \"{%\", expected the end of the template" },
        { CLV_E_FORMAT, "{% for x y %}{% endfor %}", "found \"y\", expected in" },
        { CLV_E_FORMAT, "{{ 1 + }}", "expected a value" },
        { CLV_E_FORMAT, "{{ (1 }}", "expected )" },
        { CLV_E_FORMAT, "{{ 'a }}", "a text without an end" },
        { CLV_E_FORMAT, "{# x", "a comment without an end" },
        { CLV_E_FORMAT, "{{ a ? b }}", "the character \"?\"" },
        { CLV_E_UNSUPPORTED, "\n\n{% import 'x' as y %}", "line 3: the statement \"import\"" },
        { CLV_E_UNSUPPORTED, "{% include 'x' %}", "the statement \"include\"" },
        { CLV_E_UNSUPPORTED, "{{ x.y }}", "a member of something undefined" },
        { CLV_E_UNSUPPORTED, "{{ f() }}", "the function \"f\"" },
        { CLV_E_UNSUPPORTED, "{{ 1 | tojson(sort_keys=true) }}", "\"tojson\" with sort_keys" },
        { CLV_E_UNSUPPORTED, "{{ 'a' | md5 }}", "the filter \"md5\" of a text" },
        { CLV_E_UNSUPPORTED, "{{ 'a' is prime }}", "the test \"prime\" of a text" },
        { CLV_E_UNSUPPORTED, "{{ 'a'.encode() }}", "the method \"encode\" of a text" },
        { CLV_E_UNSUPPORTED, "{{ messages.append(1) }}", "the method \"append\" of a list" },
        { CLV_E_UNSUPPORTED, "{{ ''.__class__.x }}", "a member of something undefined" },
        { CLV_E_UNSUPPORTED, "{{ 'a' + 1 }}", "a text + a number" },
        { CLV_E_UNSUPPORTED, "{{ 'a' < 1 }}", "a text and a number have no order" },
        { CLV_E_UNSUPPORTED, "{% set messages.x = 1 %}", "a member of a list is set" },
        { CLV_E_UNSUPPORTED, "{% for a, b in [[1]] %}{% endfor %}", "a list for 2 names" },
        { CLV_E_ARGUMENT, "{{ raise_exception('no ' ~ 1) }}", "refuses this conversation: no 1" },
        { CLV_E_ARGUMENT, "{{ 1 // 0 }}", "a division by zero" },
        { CLV_E_ARGUMENT, "\xFF", "byte 0 is not UTF-8" },
        { CLV_E_SHAPE, "{{ 9223372036854775807 + 1 }}", "a number beyond 64 bits" },
        /* limits */
        { CLV_E_SHAPE,
          "{% for a in range(3000) %}{% for b in range(3000) %}{% endfor %}{% endfor %}",
          "more than " },
        { CLV_E_SHAPE, "{% for a in range(1000000000) %}{% endfor %}", "more than " },
        { CLV_E_SHAPE,
          "{% set n = namespace(x='0123456789') %}{% for a in range(60) %}{% set n.x = n.x + n.x %}"
          "{% endfor %}",
          "more than 256 MB" },
        { CLV_E_SHAPE,
          "{% set n = namespace(x=[1]) %}{% for a in range(45) %}{% set n.x = [n.x, n.x] %}"
          "{% endfor %}{{ n.x == [n.x[0], n.x[0]] }}{{ n.x }}",
          "more than" },
        { CLV_E_SHAPE, "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested more than 100" },
    };
    static const clv_chat_message talk[] = { { "user", "x" } };
    for (size_t i = 0; i < CLV_LEN(wrong); ++i) {
        char *text;
        size_t length = 1;
        EXPECT_FAIL(wrong[i].status, wrong[i].part,
                    clv_chat_render(wrong[i].source, talk, 1, NULL, &text, NULL, &length));
        assert_null(text);
        assert_int_equal(length, 0);
    }
}

/* Whole numbers that a float64 would round. */
static void whole_numbers_are_exact_up_to_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *source, *text;
    } cases[] = { { "{{ 9007199254740993 == 9007199254740992 }}", "False" },
                  { "{{ 9007199254740993 > 9007199254740992 }}", "True" },
                  { "{{ 9007199254740993 in [9007199254740992] }}", "False" },
                  { "{{ 9007199254740993 | int }}", "9007199254740993" },
                  { "{{ 9223372036854775807 | int }}", "9223372036854775807" },
                  { "{{ \" 9007199254740993 \" | int }}", "9007199254740993" },
                  { "{{ 9.1e18 | int }}", "9100000000000000000" },
                  { "{{ \"1e3\" | int }}", "1000" } };
    const clv_chat_options options = CLV_INIT(clv_chat_options);
    char *text;
    size_t length;
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        expect_text(cases[i].source, NULL, 0, &options, cases[i].text);
    EXPECT_FAIL(CLV_E_SHAPE, "a number beyond 64 bits",
                clv_chat_render("{{ 1e19 | int }}", NULL, 0, &options, &text, NULL, &length));
}

static void deep_templates_end(void **state)
{
    (void)state;
    static const char *const opening[] = { "(", "[", "not ", "-" };
    for (size_t i = 0; i < CLV_LEN(opening); ++i) {
        clv_text source = { 0 };
        char *text;
        size_t length;
        clv_text_add(&source, "{{ ");
        for (size_t k = 0; k < 100000; ++k)
            clv_text_add(&source, "%s", opening[i]);
        clv_text_add(&source, "1 }}");
        EXPECT_FAIL(CLV_E_SHAPE, "nested more than",
                    clv_chat_render(clv_text_get(&source), NULL, 0, NULL, &text, NULL, &length));
        clv_text_clear(&source);
    }
}

/* A program that uses the library may have chosen a locale with a decimal comma. */
static void numbers_have_a_point_in_every_locale(void **state)
{
    (void)state;
    test_comma();
    expect_text("{{ 0.1 }} {{ [1.5, 1e30]|tojson }} {{ '2.5'|float }} {{ 1e999 }} {{ 1_0.5 * 3 }}",
                NULL, 0, NULL, "0.1 [1.5, 1e+30] 2.5 inf 31.5");
    test_point();
}

static void arguments_are_checked(void **state)
{
    (void)state;
    static const clv_chat_message bad = { "user", "\xFF" }, none = { "user", NULL };
    const clv_chat_options old = { .size = 0 };
    char *text;
    size_t length;
    EXPECT_FAIL(CLV_E_ARGUMENT, "message 0: byte 0 is not UTF-8",
                clv_chat_render("x", &bad, 1, NULL, &text, NULL, &length));
    EXPECT_FAIL(CLV_E_ARGUMENT, "message 0 has a role or content",
                clv_chat_render("x", &none, 1, NULL, &text, NULL, &length));
    EXPECT_FAIL(CLV_E_ARGUMENT, "messages is NULL",
                clv_chat_render(NULL, NULL, 0, NULL, &text, NULL, &length));
    EXPECT_FAIL(CLV_E_ARGUMENT, "CLV_INIT(clv_chat_options)",
                clv_chat_render("x", NULL, 0, &old, &text, NULL, &length));
    expect_text("", NULL, 0, NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_are_rendered_as_by_jinja),
        cmocka_unit_test(families_are_known_by_their_tokens),
        cmocka_unit_test(what_users_wrote_is_marked),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(whole_numbers_are_exact_up_to_64_bits),
        cmocka_unit_test(deep_templates_end),
        cmocka_unit_test(numbers_have_a_point_in_every_locale),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(conversations_of_public_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

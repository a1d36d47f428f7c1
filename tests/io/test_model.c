/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/model*.c: the settings of model folders, right and wrong ones. test_model_weights.c has their weights. */
#include "model_test.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>
#include <unistd.h>

static const char modules_text[] =
    "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},\n"
    "{\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},\n"
    "{\"idx\": 2, \"path\": \"2\", \"type\": \"sentence_transformers.models.Normalize\"}]";
static const char pooling_text[] =
    "{\"word_embedding_dimension\": 8, \"pooling_mode_cls_token\": true,\n"
    "\"pooling_mode_mean_tokens\": false}";

static void a_folder_is_read(void **state)
{
    (void)state;
    const char *folder = model_make("plain");
    clv_model *m, *want;
    EXPECT_OK(clv_model_create_random(&model_tiny, 7, &want));
    EXPECT_OK(clv_model_open(folder, &m));
    const clv_model_config *c = clv_model_get_config(m);
    assert_true(c->width == 8 && c->heads == 2 && c->layers == 2 && c->ffn == 12);
    assert_true(c->vocabulary == 20 && c->positions == 16 && c->types == 2 && c->eps == 1e-12f);
    assert_true(c->act == CLV_ACTIVATION_GELU && c->pooling == CLV_MODEL_MEAN && !c->normalize);
    assert_int_equal(c->max_length, 16);
    model_expect_same(m, want);
    const clv_model_weights *w = clv_model_get_weights(m);
    const clv_model_layer *l = &w->layer[1];
    assert_true(l->k_weight == l->q_weight + 64 && l->v_weight == l->q_weight + 128);
    assert_true(l->k_bias == l->q_bias + 8 && l->v_bias == l->q_bias + 16);
    assert_true(w->norm_weight[3] == 1 && w->norm_bias[3] == 0 && w->pooler_weight != NULL);
    assert_int_equal((uintptr_t)w->word % 4096, 0);
    clv_model_close(m), clv_model_close(want);
}

static void sentence_transformers_files_are_obeyed(void **state)
{
    (void)state;
    const char *folder = model_make("sentence");
    clv_model *m;
    model_put(folder, "modules.json", modules_text);
    model_put(folder, "1_Pooling/config.json", pooling_text);
    model_put(folder, "sentence_bert_config.json", "{\"max_seq_length\": 12}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->pooling, CLV_MODEL_CLS);
    assert_true(clv_model_get_config(m)->normalize);
    assert_int_equal(clv_model_get_config(m)->max_length, 12);
    clv_model_close(m);
    model_put(folder, "1_Pooling/config.json",
              "{\"word_embedding_dimension\": 8, \"pooling_mode_lasttoken\": true}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->pooling, CLV_MODEL_LAST);
    clv_model_close(m);
    model_put(folder, "1_Pooling/config.json", "{\"word_embedding_dimension\": 8}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->pooling, CLV_MODEL_MEAN);
    clv_model_close(m);
    model_put(folder, "1_Pooling/config.json", "{\"pooling_mode\": [\"cls\", \"weightedmean\"]}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->joined_count, 2);
    assert_int_equal(clv_model_get_config(m)->joined[1], CLV_MODEL_WEIGHTED);
    clv_model_close(m);

    static const struct {
        const char *name, *text, *part;
    } wrong[] = {
        { "1_Pooling/config.json", "{\"word_embedding_dimension\": 9, \"pooling_mode\": \"mean\"}",
          "word_embedding_dimension is 9, expected 8 to 8" },
        { "1_Pooling/config.json", "{\"pooling_mode\": []}", "has no pooling" },
        { "1_Pooling/config.json", "{\"embedding_dimension\": 9, \"pooling_mode\": [\"mean\"]}",
          "embedding_dimension is 9" },
        { "1_Pooling/config.json", "{\"pooling_mode\": [\"mean\", 7]}", "is a whole number" },
        { "1_Pooling/config.json",
          "{\"pooling_mode\": [\"mean\", \"max\", \"cls\", \"mean\", \"mean\"]}",
          "more than 4 poolings" },
        { "1_Pooling/config.json", "{\"pooling_mode\": \"median\"}", "pooling_mode is median" },
        { "1_Pooling/config.json", "{\"pooling_mode_cls_token\": 1}", "expected true or false" },
        { "1_Pooling/config.json", "{\"pooling_mode_median_tokens\": true}", "no such pooling" },
        { "1_Pooling/config.json", "{\"include_prompt\": 0}", "include_prompt is a whole number" },
        { "modules.json", "[{\"path\": \"\", \"type\": \"a.Router\"}]", "type \"a.Router\"" },
        { "modules.json", "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Dense\"}]",
          "module 0 is Dense" },
        { "modules.json",
          "[{\"path\": \"../x\", \"type\": \"sentence_transformers.models.Pooling\"}]",
          "\"../x\"" },
        { "modules.json",
          "[{\"path\": \"../0\", \"type\": \"sentence_transformers.models.Transformer\"}]",
          "lies in \"../0\"" },
        { "modules.json",
          "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}]",
          "there is no Pooling module" },
        { "modules.json", "[{\"path\": \"\", \"type\": \"a.Transformer\"}]",
          "a module of type \"a.Transformer\"" },
        { "modules.json", "{}", "expected a list of 1 to 32 modules" },
        { "modules.json", "[", "not valid JSON" },
    };
    for (size_t i = 0; i < CLV_LEN(wrong); ++i) {
        model_put(folder, wrong[i].name, wrong[i].text);
        EXPECT_FAIL(CLV_E_FORMAT, wrong[i].part, clv_model_open(folder, &m));
        assert_null(m);
    }
}

/* Settings of sentence-transformers that would change the vectors are refused. */
static void settings_of_the_transformer_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part; /* part NULL: accepted */
    } cases[] = {
        { "{\"model_args\": {\"dtype\": \"float32\"}, \"config_args\": {}}", NULL },
        { "{\"transformer_task\": \"feature-extraction\", \"module_output_name\": "
          "\"token_embeddings\", \"modality_config\": {\"text\": {\"method\": \"forward\", "
          "\"method_output_name\": \"last_hidden_state\"}}}",
          NULL },
        { "{\"config_args\": {\"num_hidden_layers\": 1}}", "config_args sets num_hidden_layers" },
        { "{\"config_kwargs\": {\"hidden_act\": \"relu\"}}", "config_kwargs sets hidden_act" },
        { "{\"model_args\": {\"layers\": 1}}", "model_args sets layers" },
        { "{\"transformer_task\": \"fill-mask\"}", "transformer_task is fill-mask" },
        { "{\"module_output_name\": 3}", "module_output_name is a whole number" },
        { "{\"modality_config\": {\"text\": {\"method_output_name\": \"pooler_output\"}}}",
          "modality_config does not take" },
        { "{\"modality_config\": {\"text\": {\"method\": \"other\"}}}",
          "modality_config does not take" },
    };
    const char *folder = model_make("settings");
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        model_put(folder, "sentence_bert_config.json", cases[i].text);
        if (cases[i].part)
            EXPECT_FAIL(CLV_E_FORMAT, cases[i].part, clv_model_open(folder, &m));
        else
            EXPECT_OK(clv_model_open(folder, &m));
        clv_model_close(m);
    }
    model_put(folder, "sentence_bert_config.json", "{}");
    model_put(folder, "adapter_config.json", "{}");
    EXPECT_FAIL(CLV_E_FORMAT, "describes an adapter", clv_model_open(folder, &m));
}

/* What sentence-transformers would put before every text. */
static void prompts_are_known_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fallback, *named;
    } cases[] = {
        { "{\"prompts\": {\"q\": \"query: \", \"d\": \"\"}, \"default_prompt_name\": \"q\"}",
          "query: ", "query: " },
        { "{\"prompts\": {\"q\": \"query: \", \"d\": \"\"}, \"default_prompt_name\": \"d\"}", "",
          "query: " },
        { "{\"prompts\": {\"q\": \"query: \"}, \"default_prompt_name\": null}", "", "query: " },
        { "{}", "", NULL }
    };
    const char *folder = model_make("prompts"), *prompt;
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        model_put(folder, "config_sentence_transformers.json", cases[i].text);
        EXPECT_OK(clv_model_open(folder, &m));
        EXPECT_OK(clv_model_prompt(m, NULL, &prompt));
        assert_string_equal(prompt, cases[i].fallback);
        EXPECT_OK(clv_model_prompt(m, "q", &prompt));
        if (cases[i].named)
            assert_string_equal(prompt, cases[i].named);
        else
            assert_null(prompt);
        EXPECT_OK(clv_model_prompt(m, "other", &prompt));
        assert_null(prompt);
        clv_model_close(m);
    }
    model_put(folder, "config_sentence_transformers.json", "{\"default_prompt_name\": \"q\"}");
    EXPECT_FAIL(CLV_E_FORMAT, "there is no prompt of that name", clv_model_open(folder, &m));
    model_put(folder, "config_sentence_transformers.json", "{\"prompts\": {\"q\": [1]}}");
    EXPECT_FAIL(CLV_E_FORMAT, "the prompt \"q\" is", clv_model_open(folder, &m));
}

static void wrong_configurations_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } changes[] = {
        { "\"bert\"", "\"t5\"", "model_type is t5, expected bert, distilbert" },
        { "\"model_type\": \"bert\"", "\"x\": 1", "model_type is nothing, expected bert" },
        { "\"gelu\"", "\"relu6\"", "hidden_act is relu6" },
        { "\"hidden_act\"", "\"position_embedding_type\": \"relative_key\", \"hidden_act\"",
          "position_embedding_type is relative_key" },
        { "\"hidden_act\"", "\"is_decoder\": true, \"hidden_act\"", "is_decoder is true" },
        { "\"hidden_act\"", "\"is_decoder\": 1, \"hidden_act\"", "is_decoder is a whole number" },
        { "\"hidden_act\"", "\"add_cross_attention\": true, \"hidden_act\"",
          "add_cross_attention is true" },
        { "\"hidden_act\"", "\"quantization_config\": {}, \"hidden_act\"",
          "quantised weights are not supported" },
        { "\"hidden_act\"", "\"pad_token_id\": 20, \"hidden_act\"",
          "pad_token_id is 20, but the vocabulary has 20 tokens" },
        { "\"hidden_size\": 8", "\"hidden_size\": 9",
          "expected a multiple of num_attention_heads" },
        { "\"hidden_size\": 8", "\"hidden_size\": 0", "hidden_size is 0" },
        { "\"hidden_size\": 8", "\"hidden_size\": \"8\"", "hidden_size is text" },
        { "\"hidden_size\": 8", "\"hidden_size\": 8.0", "a number with a fraction" },
        { "\"hidden_size\": 8", "\"hidden_size\": 99999999", "expected 1 to 16777216" },
        { "\"vocab_size\": 20", "\"x\": 20", "vocab_size is nothing" },
        { "1e-12", "0", "layer_norm_eps" },
        { "1e-12", "\"a\"", "layer_norm_eps" },
        { "{", "[", "not valid JSON" },
    };
    const char *folder = model_make("config");
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(changes); ++i) {
        const char *at = strstr(model_config_text, changes[i].from);
        assert_non_null(at);
        clv_text text = { 0 };
        clv_text_add(&text, "%.*s%s%s", (int)(at - model_config_text), model_config_text,
                     changes[i].to, at + strlen(changes[i].from));
        model_put(folder, "config.json", text.data);
        EXPECT_FAIL(CLV_E_FORMAT, changes[i].part, clv_model_open(folder, &m));
        EXPECT_FAIL(CLV_E_FORMAT, "config.json", clv_model_open(folder, &m));
        clv_text_clear(&text);
    }
    unlink(model_path(folder, "config.json"));
    EXPECT_FAIL(CLV_E_IO, "config.json: cannot open", clv_model_open(folder, &m));
}

static clv_model *opened;
static const char *memory_folder;

static clv_status open_and_write(void)
{
    clv_status status = clv_model_open(memory_folder, &opened);
    if (!status) status = clv_model_write(opened, NULL, io_temp("again.safetensors"), NULL);
    clv_model_close(opened);
    opened = NULL;
    return status;
}

static int nothing_left(void)
{
    return 1;
}

static void a_failing_allocation_is_reported(void **state)
{
    (void)state;
    memory_folder = model_make("memory");
    model_put(memory_folder, "modules.json", modules_text);
    model_put(memory_folder, "1_Pooling/config.json", pooling_text);
    assert_true(io_without_memory(open_and_write, nothing_left) >= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_read),
        cmocka_unit_test(sentence_transformers_files_are_obeyed),
        cmocka_unit_test(settings_of_the_transformer_are_refused),
        cmocka_unit_test(prompts_are_known_by_name),
        cmocka_unit_test(wrong_configurations_are_named),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

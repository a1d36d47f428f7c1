/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/model*.c: model folders, right and wrong ones. */
#include "io_test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "host/model/model.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const clv_model_config tiny = { .size = sizeof(clv_model_config),
                                       .width = 8,
                                       .heads = 2,
                                       .layers = 2,
                                       .ffn = 12,
                                       .vocabulary = 20,
                                       .positions = 16,
                                       .types = 2,
                                       .eps = 1e-12f,
                                       .act = CLV_ACTIVATION_GELU,
                                       .max_length = 16 };
static const char config_text[] =
    "{\"hidden_act\": \"gelu\", \"hidden_size\": 8, \"intermediate_size\": 12,\n"
    "\"layer_norm_eps\": 1e-12, \"max_position_embeddings\": 16, \"model_type\": \"bert\",\n"
    "\"num_attention_heads\": 2, \"num_hidden_layers\": 2, \"vocab_size\": 20}";
static const char modules_text[] =
    "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},\n"
    "{\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},\n"
    "{\"idx\": 2, \"path\": \"2\", \"type\": \"sentence_transformers.models.Normalize\"}]";
static const char pooling_text[] =
    "{\"word_embedding_dimension\": 8, \"pooling_mode_cls_token\": true,\n"
    "\"pooling_mode_mean_tokens\": false}";

static const char *path_in(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *folder, const char *name, const char *text)
{
    FILE *file = fopen(path_in(folder, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* A whole model folder; its weights are those of the random model. */
static const char *make(const char *name)
{
    static char path[1024];
    clv_model *m;
    snprintf(path, sizeof path, "%s", io_temp(name));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(path_in(path, "1_Pooling"), 0700), 0);
    put(path, "config.json", config_text);
    EXPECT_OK(clv_model_create_random(&tiny, 7, &m));
    EXPECT_OK(clv_model_write(m, NULL, path_in(path, "model.safetensors"), NULL));
    clv_model_close(m);
    return path;
}

static void expect_same_weights(const clv_model *got, const clv_model *want)
{
    const float *a, *b;
    const size_t count = clv_model_parameters(want, &b);
    assert_int_equal(clv_model_parameters(got, &a), count);
    assert_memory_equal(a, b, count * sizeof *a);
}

static void a_folder_is_read(void **state)
{
    (void)state;
    const char *folder = make("plain");
    clv_model *m, *want;
    EXPECT_OK(clv_model_create_random(&tiny, 7, &want));
    EXPECT_OK(clv_model_open(folder, &m));
    const clv_model_config *c = clv_model_get_config(m);
    assert_true(c->width == 8 && c->heads == 2 && c->layers == 2 && c->ffn == 12);
    assert_true(c->vocabulary == 20 && c->positions == 16 && c->types == 2 && c->eps == 1e-12f);
    assert_true(c->act == CLV_ACTIVATION_GELU && c->pooling == CLV_MODEL_MEAN && !c->normalize);
    assert_int_equal(c->max_length, 16);
    expect_same_weights(m, want);
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
    const char *folder = make("sentence");
    clv_model *m;
    put(folder, "modules.json", modules_text);
    put(folder, "1_Pooling/config.json", pooling_text);
    put(folder, "sentence_bert_config.json", "{\"max_seq_length\": 12}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->pooling, CLV_MODEL_CLS);
    assert_true(clv_model_get_config(m)->normalize);
    assert_int_equal(clv_model_get_config(m)->max_length, 12);
    clv_model_close(m);
    put(folder, "1_Pooling/config.json",
        "{\"word_embedding_dimension\": 8, \"pooling_mode_lasttoken\": true}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->pooling, CLV_MODEL_LAST);
    clv_model_close(m);
    put(folder, "1_Pooling/config.json", "{\"word_embedding_dimension\": 8}");
    EXPECT_OK(clv_model_open(folder, &m));
    assert_int_equal(clv_model_get_config(m)->pooling, CLV_MODEL_MEAN);
    clv_model_close(m);
    put(folder, "1_Pooling/config.json", "{\"pooling_mode\": [\"cls\", \"weightedmean\"]}");
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
        put(folder, wrong[i].name, wrong[i].text);
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
    const char *folder = make("settings");
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        put(folder, "sentence_bert_config.json", cases[i].text);
        if (cases[i].part)
            EXPECT_FAIL(CLV_E_FORMAT, cases[i].part, clv_model_open(folder, &m));
        else
            EXPECT_OK(clv_model_open(folder, &m));
        clv_model_close(m);
    }
    put(folder, "sentence_bert_config.json", "{}");
    put(folder, "adapter_config.json", "{}");
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
    const char *folder = make("prompts"), *prompt;
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        put(folder, "config_sentence_transformers.json", cases[i].text);
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
    put(folder, "config_sentence_transformers.json", "{\"default_prompt_name\": \"q\"}");
    EXPECT_FAIL(CLV_E_FORMAT, "there is no prompt of that name", clv_model_open(folder, &m));
    put(folder, "config_sentence_transformers.json", "{\"prompts\": {\"q\": [1]}}");
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
    const char *folder = make("config");
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(changes); ++i) {
        const char *at = strstr(config_text, changes[i].from);
        assert_non_null(at);
        clv_text text = { 0 };
        clv_text_add(&text, "%.*s%s%s", (int)(at - config_text), config_text, changes[i].to,
                     at + strlen(changes[i].from));
        put(folder, "config.json", text.data);
        EXPECT_FAIL(CLV_E_FORMAT, changes[i].part, clv_model_open(folder, &m));
        EXPECT_FAIL(CLV_E_FORMAT, "config.json", clv_model_open(folder, &m));
        clv_text_clear(&text);
    }
    unlink(path_in(folder, "config.json"));
    EXPECT_FAIL(CLV_E_IO, "config.json: cannot open", clv_model_open(folder, &m));
}

/* The random model's tensors, to be changed and written again. */
typedef struct sources {
    clv_tensors *file;
    clv_tensor_source list[64];
    float *data[64];
    char names[64][128];
    size_t count;
} sources;

static sources load(const char *folder)
{
    static sources s;
    EXPECT_OK(clv_tensors_open(path_in(folder, "model.safetensors"), &s.file));
    s.count = clv_tensors_count(s.file);
    for (size_t i = 0; i < s.count; ++i) {
        const clv_tensor *t = clv_tensors_at(s.file, i);
        s.data[i] = malloc(t->bytes + 8);
        EXPECT_OK(clv_tensors_read_f32(s.file, t, 0, t->count, s.data[i]));
        snprintf(s.names[i], sizeof s.names[i], "%s", t->name);
        s.list[i] = (clv_tensor_source){ s.names[i], t->type, t->rank, { 0 }, s.data[i] };
        memcpy(s.list[i].shape, t->shape, sizeof t->shape);
    }
    clv_tensors_close(s.file);
    return s;
}

static void save(const char *folder, sources *s)
{
    for (size_t i = 0; i < s->count; ++i)
        s->list[i].name = s->names[i];
    EXPECT_OK(clv_tensors_write(path_in(folder, "model.safetensors"), s->list, s->count, NULL));
    for (size_t i = 0; i < s->count; ++i)
        free(s->data[i]);
}

/* Writes the same tensors under another name; their memory is gone, so their numbers are not read. */
static void copy_weights(const char *folder, const char *name)
{
    size_t length = 0;
    char *bytes = NULL, to[4096];
    snprintf(to, sizeof to, "%s", path_in(folder, name));
    EXPECT_OK(clv_file_read_plain(path_in(folder, "model.safetensors"), 1 << 24, &bytes, &length));
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    clv_free(bytes);
}

static size_t index_of(const sources *s, const char *name)
{
    for (size_t i = 0; i < s->count; ++i)
        if (strcmp(s->names[i], name) == 0) return i;
    fail_msg("no tensor %s", name);
    return 0;
}

static void other_names_and_types_are_taken(void **state)
{
    (void)state;
    static const char *const prefixes[] = { "bert.", "0.auto_model." };
    clv_model *m, *want;
    EXPECT_OK(clv_model_create_random(&tiny, 7, &want));
    for (size_t p = 0; p < CLV_LEN(prefixes); ++p) {
        const char *folder = make(p ? "auto" : "bert");
        sources s = load(folder);
        for (size_t i = 0; i < s.count; ++i) {
            char name[128];
            snprintf(name, sizeof name, "%s", s.names[i]);
            char *norm = strstr(name, "LayerNorm.");
            if (norm) strcpy(norm + 10, norm[10] == 'w' ? "gamma" : "beta");
            snprintf(s.names[i], sizeof s.names[i], "%.16s%.96s", prefixes[p], name);
        }
        static const int64_t ids[2] = { 0, 1 }; /* what is not needed is ignored */
        snprintf(s.names[s.count], 128, "bert.embeddings.position_ids");
        s.data[s.count] = malloc(1);
        s.list[s.count++] = (clv_tensor_source){ NULL, CLV_TENSOR_I64, 2, { 1, 2 }, ids };
        save(folder, &s);
        test_listen();
        EXPECT_OK(clv_model_open(folder, &m));
        assert_int_equal(strstr(test_heard(), "transformers does not find them") != NULL, p == 1);
        expect_same_weights(m, want);
        clv_model_close(m);
    }
    clv_model_close(want);
}

/* transformers would take one of the two, but which one depends on their order. */
static void a_weight_under_two_names_is_refused(void **state)
{
    (void)state;
    static const char *const twins[][2] = {
        { "embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma" },
        { "embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.bias" },
        { "pooler.dense.bias", "model.pooler.dense.bias" },
    };
    clv_model *m;
    for (size_t i = 0; i < CLV_LEN(twins); ++i) {
        char name[16];
        snprintf(name, sizeof name, "twins-%zu", i);
        const char *folder = make(name);
        sources s = load(folder);
        const size_t at = index_of(&s, twins[i][0]);
        s.list[s.count] = s.list[at];
        snprintf(s.names[s.count], 128, "%s", twins[i][1]);
        s.data[s.count] = malloc(1);
        ++s.count;
        save(folder, &s);
        EXPECT_FAIL(CLV_E_FORMAT, twins[i][1], clv_model_open(folder, &m));
        assert_null(m);
    }
}

static void narrow_weights_are_widened_and_the_pooler_may_be_missing(void **state)
{
    (void)state;
    const char *folder = make("half");
    sources s = load(folder);
    const size_t at = index_of(&s, "embeddings.LayerNorm.bias");
    static const uint16_t halves[8] = { 0x3C00, 0xC000, 0, 0x0001, 0x7BFF, 0x3555, 0x8000, 0x3800 };
    static const float wide[8] = { 1, -2, 0, 0x1p-24f, 65504, 0x1.554p-2f, -0.0f, 0.5f };
    s.list[at].type = CLV_TENSOR_F16, s.list[at].data = halves;
    for (size_t i = 0; i < s.count;) {
        if (strncmp(s.names[i], "pooler.", 7) != 0) {
            ++i;
            continue;
        }
        free(s.data[i]);
        --s.count;
        memmove(s.names[i], s.names[i + 1], (s.count - i) * sizeof *s.names);
        memmove(&s.list[i], &s.list[i + 1], (s.count - i) * sizeof *s.list);
        memmove(&s.data[i], &s.data[i + 1], (s.count - i) * sizeof *s.data);
    }
    save(folder, &s);
    clv_model *m;
    EXPECT_OK(clv_model_open(folder, &m));
    assert_memory_equal(clv_model_get_weights(m)->norm_bias, wide, sizeof wide);
    assert_null(clv_model_get_weights(m)->pooler_weight);
    assert_null(clv_model_get_weights(m)->pooler_bias);
    EXPECT_OK(clv_model_write(m, NULL, io_temp("half.safetensors"), NULL));
    clv_model_close(m);
}

static void wrong_weights_are_named(void **state)
{
    (void)state;
    clv_model *m;
    const char *folder = make("weights");
    sources s = load(folder);
    strcpy(s.names[index_of(&s, "encoder.layer.1.attention.self.key.weight")], "other");
    save(folder, &s);
    EXPECT_FAIL(CLV_E_FORMAT,
                "no tensor \"encoder.layer.1.attention.self.key.weight\"; expected a tensor [8,8]",
                clv_model_open(folder, &m));
    s = load(folder);
    strcpy(s.names[index_of(&s, "other")], "encoder.layer.1.attention.self.key.weight");
    const size_t up = index_of(&s, "encoder.layer.0.intermediate.dense.weight");
    s.list[up].shape[0] = 8, s.list[up].shape[1] = 12; /* transposed */
    save(folder, &s);
    EXPECT_FAIL(
        CLV_E_FORMAT,
        "\"encoder.layer.0.intermediate.dense.weight\" is [8,12], but config.json says [12,8]",
        clv_model_open(folder, &m));
    s = load(folder);
    s.list[up].shape[0] = 12, s.list[up].shape[1] = 8;
    const size_t word = index_of(&s, "embeddings.word_embeddings.weight");
    s.list[word].type = CLV_TENSOR_I32;
    save(folder, &s);
    EXPECT_FAIL(CLV_E_FORMAT, "\"embeddings.word_embeddings.weight\" is I32, expected F32",
                clv_model_open(folder, &m));
    folder = make("nan");
    s = load(folder);
    s.data[index_of(&s, "encoder.layer.1.output.dense.bias")][3] = NAN;
    save(folder, &s);
    test_listen();
    EXPECT_OK(clv_model_open(folder, &m));
    assert_non_null(
        strstr(test_heard(), "\"encoder.layer.1.output.dense.bias\" holds values that are not"));
    clv_model_close(m);

    copy_weights(folder, "part.safetensors");
    unlink(path_in(folder, "model.safetensors"));
    EXPECT_FAIL(CLV_E_IO, "model.safetensors: cannot open", clv_model_open(folder, &m));
    put(folder, "pytorch_model.bin", "PK");
    EXPECT_FAIL(CLV_E_FORMAT, "pytorch_model.bin is a pickle", clv_model_open(folder, &m));
    put(folder, "model.safetensors.index.json", "{}");
    EXPECT_FAIL(CLV_E_FORMAT, "weight_map is nothing", clv_model_open(folder, &m));
    put(folder, "model.safetensors.index.json", "{\"weight_map\": {\"a\": \"../x.safetensors\"}}");
    EXPECT_FAIL(CLV_E_FORMAT, "the name of a .safetensors file", clv_model_open(folder, &m));
    put(folder, "model.safetensors.index.json", "{\"weight_map\": {\"a\": \"no.safetensors\"}}");
    EXPECT_FAIL(CLV_E_IO, "no.safetensors", clv_model_open(folder, &m));
    put(folder, "model.safetensors.index.json", "{\"weight_map\": {\"a\": \"part.safetensors\"}}");
    EXPECT_FAIL(CLV_E_FORMAT, "\"a\" is in part.safetensors, which lacks it",
                clv_model_open(folder, &m));
    put(folder, "model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
    EXPECT_FAIL(CLV_E_FORMAT, "a Git LFS pointer", clv_model_open(folder, &m));
}

static void made_models_check_their_sizes(void **state)
{
    (void)state;
    clv_model *m;
    clv_model_config c = tiny;
    c.heads = 3;
    EXPECT_FAIL(CLV_E_ARGUMENT, "do not fit", clv_model_create_random(&c, 1, &m));
    c = tiny, c.max_length = 17;
    EXPECT_FAIL(CLV_E_ARGUMENT, "do not fit", clv_model_create_random(&c, 1, &m));
    c = tiny, c.joined_count = CLV_LEN(c.joined) + 1;
    EXPECT_FAIL(CLV_E_ARGUMENT, "5 joined poolings", clv_model_create_random(&c, 1, &m));
    c = tiny, c.embedding = 4;
    EXPECT_FAIL(CLV_E_ARGUMENT, "embedding is 4", clv_model_create_random(&c, 1, &m));
    c.family = CLV_MODEL_ELECTRA, c.joined_count = 2;
    EXPECT_OK(clv_model_create_random(&c, 1, &m));
    assert_int_equal(clv_model_get_config(m)->output, 16);
    clv_model_close(m);
    EXPECT_OK(clv_model_create_random(&tiny, 1, &m));
    assert_int_equal(clv_model_get_config(m)->output, 8);
    const float *first;
    double sum = 0, squares = 0;
    clv_model_parameters(m, &first);
    for (size_t i = 0; i < 160; ++i) /* the word table */
        sum += first[i], squares += (double)first[i] * first[i];
    assert_true(fabs(sum / 160) < 0.006 && fabs(sqrt(squares / 160) - 0.02) < 0.005);
    clv_model_close(m);
}

/* A struct of weights that ends before the newest fields, as in a program built with an older header. */
static void older_weights_are_written(void **state)
{
    (void)state;
    enum { OLD = offsetof(clv_model_weights, project_weight) };
    clv_model *m, *narrow;
    clv_model_weights old;
    clv_model_config c = tiny;
    EXPECT_OK(clv_model_create_random(&tiny, 3, &m));
    memset(&old, 0x5A, sizeof old);
    memcpy(&old, clv_model_get_weights(m), OLD);
    old.size = OLD;
    EXPECT_OK(clv_model_write(m, &old, io_temp("old.safetensors"), NULL));
    old.size = 0;
    EXPECT_FAIL(CLV_E_ARGUMENT, "size field", clv_model_write(m, &old, io_temp("none"), NULL));
    c.family = CLV_MODEL_ELECTRA, c.embedding = 4;
    EXPECT_OK(clv_model_create_random(&c, 3, &narrow));
    memcpy(&old, clv_model_get_weights(narrow), OLD);
    old.size = OLD;
    EXPECT_FAIL(CLV_E_ARGUMENT, "the weights have no embeddings_project.weight",
                clv_model_write(narrow, &old, io_temp("none"), NULL));
    clv_model_close(m), clv_model_close(narrow);
}

/* A head beside the model's own tensors, and weights in place of the model's. */
static void more_tensors_are_written_beside(void **state)
{
    (void)state;
    clv_model *m;
    clv_tensors *file;
    static const float head[6] = { 1, 2, 3, 4, 5, 6 };
    const int64_t labels[2] = { 7, -8 };
    const clv_tensor_source more[] = {
        { "head.weight", CLV_TENSOR_F32, 2, { 3, 2 }, head },
        { "head.labels", CLV_TENSOR_I64, 1, { 2 }, labels },
    };
    EXPECT_OK(clv_model_create_random(&tiny, 3, &m));
    EXPECT_OK(clv_model_write(m, NULL, io_temp("plain.safetensors"), NULL));
    EXPECT_OK(clv_tensors_open(io_temp("plain.safetensors"), &file));
    const size_t own = clv_tensors_count(file);
    assert_null(clv_tensors_find(file, "head.weight"));
    clv_tensors_close(file);
    EXPECT_OK(clv_model_write_with(m, NULL, more, 2, io_temp("more.safetensors"), NULL));
    EXPECT_OK(clv_tensors_open(io_temp("more.safetensors"), &file));
    assert_int_equal(clv_tensors_count(file), own + 2);
    const clv_tensor *weight = clv_tensors_find(file, "head.weight");
    const clv_tensor *names = clv_tensors_find(file, "head.labels");
    assert_true(weight && names && weight->rank == 2 && weight->shape[0] == 3);
    float read[6];
    int64_t back[2];
    EXPECT_OK(clv_tensors_read_f32(file, weight, 0, 6, read));
    assert_memory_equal(read, head, sizeof head);
    EXPECT_OK(clv_tensors_read(file, names, back, sizeof back));
    assert_memory_equal(back, labels, sizeof labels);
    const clv_tensor *words = clv_tensors_find(file, "embeddings.word_embeddings.weight");
    const float *first;
    clv_model_parameters(m, &first);
    assert_non_null(words);
    EXPECT_OK(clv_tensors_read_f32(file, words, 0, 6, read));
    assert_memory_equal(read, first, sizeof read);
    clv_tensors_close(file);
    const clv_tensor_source twice = {
        "embeddings.word_embeddings.weight", CLV_TENSOR_F32, 1, { 6 }, head
    };
    EXPECT_FAIL(CLV_E_ARGUMENT, "word_embeddings",
                clv_model_write_with(m, NULL, &twice, 1, io_temp("twice.safetensors"), NULL));
    clv_model_close(m);
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
    memory_folder = make("memory");
    put(memory_folder, "modules.json", modules_text);
    put(memory_folder, "1_Pooling/config.json", pooling_text);
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
        cmocka_unit_test(other_names_and_types_are_taken),
        cmocka_unit_test(a_weight_under_two_names_is_refused),
        cmocka_unit_test(narrow_weights_are_widened_and_the_pooler_may_be_missing),
        cmocka_unit_test(wrong_weights_are_named),
        cmocka_unit_test(made_models_check_their_sizes),
        cmocka_unit_test(more_tensors_are_written_beside),
        cmocka_unit_test(older_weights_are_written),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

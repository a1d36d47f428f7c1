/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/model*.c: the weights of models, read, made and written. */
#include "model_test.h"

#include "base/alloc.h"
#include "base/file.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    EXPECT_OK(clv_tensors_open(model_path(folder, "model.safetensors"), &s.file));
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
    EXPECT_OK(clv_tensors_write(model_path(folder, "model.safetensors"), s->list, s->count, NULL));
    for (size_t i = 0; i < s->count; ++i)
        free(s->data[i]);
}

/* Writes the same tensors under another name; their memory is gone, so their numbers are not read. */
static void copy_weights(const char *folder, const char *name)
{
    size_t length = 0;
    char *bytes = NULL, to[4096];
    snprintf(to, sizeof to, "%s", model_path(folder, name));
    EXPECT_OK(
        clv_file_read_plain(model_path(folder, "model.safetensors"), 1 << 24, &bytes, &length));
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
    EXPECT_OK(clv_model_create_random(&model_tiny, 7, &want));
    for (size_t p = 0; p < CLV_LEN(prefixes); ++p) {
        const char *folder = model_make(p ? "auto" : "bert");
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
        model_expect_same(m, want);
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
        const char *folder = model_make(name);
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
    const char *folder = model_make("half");
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
    const char *folder = model_make("weights");
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
    folder = model_make("nan");
    s = load(folder);
    s.data[index_of(&s, "encoder.layer.1.output.dense.bias")][3] = NAN;
    save(folder, &s);
    test_listen();
    EXPECT_OK(clv_model_open(folder, &m));
    assert_non_null(
        strstr(test_heard(), "\"encoder.layer.1.output.dense.bias\" holds values that are not"));
    clv_model_close(m);

    s = load(folder);
    snprintf(s.names[0], sizeof s.names[0], "encoder.layer.0.attention.self.query.lora_A.weight");
    save(folder, &s);
    EXPECT_FAIL(CLV_E_FORMAT, "query.lora_A.weight\" belongs to an adapter",
                clv_model_open(folder, &m));

    copy_weights(folder, "part.safetensors");
    unlink(model_path(folder, "model.safetensors"));
    EXPECT_FAIL(CLV_E_IO, "model.safetensors: cannot open", clv_model_open(folder, &m));
    model_put(folder, "pytorch_model.bin", "PK");
    EXPECT_FAIL(CLV_E_FORMAT, "pytorch_model.bin is a pickle", clv_model_open(folder, &m));
    model_put(folder, "model.safetensors.index.json", "{}");
    EXPECT_FAIL(CLV_E_FORMAT, "weight_map is nothing", clv_model_open(folder, &m));
    model_put(folder, "model.safetensors.index.json",
              "{\"weight_map\": {\"a\": \"../x.safetensors\"}}");
    EXPECT_FAIL(CLV_E_FORMAT, "the name of a .safetensors file", clv_model_open(folder, &m));
    model_put(folder, "model.safetensors.index.json",
              "{\"weight_map\": {\"a\": \"no.safetensors\"}}");
    EXPECT_FAIL(CLV_E_IO, "no.safetensors", clv_model_open(folder, &m));
    model_put(folder, "model.safetensors.index.json",
              "{\"weight_map\": {\"a\": \"part.safetensors\"}}");
    EXPECT_FAIL(CLV_E_FORMAT, "\"a\" is in part.safetensors, which lacks it",
                clv_model_open(folder, &m));
    model_put(folder, "model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
    EXPECT_FAIL(CLV_E_FORMAT, "a Git LFS pointer", clv_model_open(folder, &m));
}

static void made_models_check_their_sizes(void **state)
{
    (void)state;
    clv_model *m;
    clv_model_config c = model_tiny;
    c.heads = 3;
    EXPECT_FAIL(CLV_E_ARGUMENT, "do not fit", clv_model_create_random(&c, 1, &m));
    c = model_tiny, c.max_length = 17;
    EXPECT_FAIL(CLV_E_ARGUMENT, "do not fit", clv_model_create_random(&c, 1, &m));
    c = model_tiny, c.joined_count = CLV_LEN(c.joined) + 1;
    EXPECT_FAIL(CLV_E_ARGUMENT, "5 joined poolings", clv_model_create_random(&c, 1, &m));
    c = model_tiny, c.embedding = 4;
    EXPECT_FAIL(CLV_E_ARGUMENT, "embedding is 4", clv_model_create_random(&c, 1, &m));
    c.family = CLV_MODEL_ELECTRA, c.joined_count = 2;
    EXPECT_OK(clv_model_create_random(&c, 1, &m));
    assert_int_equal(clv_model_get_config(m)->output, 16);
    clv_model_close(m);
    EXPECT_OK(clv_model_create_random(&model_tiny, 1, &m));
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
    clv_model_config c = model_tiny;
    EXPECT_OK(clv_model_create_random(&model_tiny, 3, &m));
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
    EXPECT_OK(clv_model_create_random(&model_tiny, 3, &m));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_names_and_types_are_taken),
        cmocka_unit_test(a_weight_under_two_names_is_refused),
        cmocka_unit_test(narrow_weights_are_widened_and_the_pooler_may_be_missing),
        cmocka_unit_test(wrong_weights_are_named),
        cmocka_unit_test(made_models_check_their_sizes),
        cmocka_unit_test(more_tensors_are_written_beside),
        cmocka_unit_test(older_weights_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

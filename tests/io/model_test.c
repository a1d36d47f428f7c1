/* SPDX-License-Identifier: Apache-2.0 */
/* The tiny model of the tests, and its folders. */
#include "model_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const clv_model_config model_tiny = { .size = sizeof(clv_model_config),
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
const char model_config_text[] =
    "{\"hidden_act\": \"gelu\", \"hidden_size\": 8, \"intermediate_size\": 12,\n"
    "\"layer_norm_eps\": 1e-12, \"max_position_embeddings\": 16, \"model_type\": \"bert\",\n"
    "\"num_attention_heads\": 2, \"num_hidden_layers\": 2, \"vocab_size\": 20}";

const char *model_path(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void model_put(const char *folder, const char *name, const char *text)
{
    FILE *file = fopen(model_path(folder, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

const char *model_make(const char *name)
{
    static char path[1024];
    clv_model *m;
    snprintf(path, sizeof path, "%s", io_temp(name));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(model_path(path, "1_Pooling"), 0700), 0);
    model_put(path, "config.json", model_config_text);
    EXPECT_OK(clv_model_create_random(&model_tiny, 7, &m));
    EXPECT_OK(clv_model_write(m, NULL, model_path(path, "model.safetensors"), NULL));
    clv_model_close(m);
    return path;
}

void model_expect_same(const clv_model *got, const clv_model *want)
{
    const float *a, *b;
    const size_t count = clv_model_parameters(want, &b);
    assert_int_equal(clv_model_parameters(got, &a), count);
    assert_memory_equal(a, b, count * sizeof *a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the sizes and rules of a model: config.json, modules.json and the files that it names. */
#include "host/model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"

#include <math.h>
#include <string.h>

enum { MAX_EXTENT = 1 << 24, MAX_LAYERS = 4096 };

static const struct {
    const char *name;
    clv_activation act;
} acts[] = { { "gelu", CLV_ACTIVATION_GELU },
             { "gelu_new", CLV_ACTIVATION_GELU_TANH },
             { "gelu_pytorch_tanh", CLV_ACTIVATION_GELU_TANH },
             { "silu", CLV_ACTIVATION_SILU },
             { "swish", CLV_ACTIVATION_SILU } };

/* Checks that a member is the given word. */
static clv_status expect_word(const char *what, const clv_json *root, const char *key,
                              const char *word, bool needed)
{
    const clv_json *value = clv_json_get(root, key);
    if (!value && !needed) return CLV_OK;
    const char *text = clv_json_string(value, NULL);
    if (text && strcmp(text, word) == 0) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: %s is %.60s, expected %s", what, key,
                    text ? text : clv_folder_kind(value), word);
}

static clv_status take_act(const char *what, const clv_json *root, clv_model_config *out)
{
    const clv_json *value = clv_json_get(root, "hidden_act");
    const char *text = clv_json_string(value, value ? NULL : "gelu");
    for (size_t i = 0; text && i < CLV_LEN(acts); ++i)
        if (strcmp(acts[i].name, text) == 0) {
            out->act = acts[i].act;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: hidden_act is %.60s, expected gelu, gelu_new, gelu_pytorch_tanh or silu",
                    what, text ? text : clv_folder_kind(value));
}

static clv_status take_eps(const char *what, const clv_json *root, clv_model_config *out)
{
    const clv_json *value = clv_json_get(root, "layer_norm_eps");
    const double eps = clv_json_number(value, value ? NAN : 1e-12);
    if (!(eps > 0 && (float)eps < 1)) /* as the float that is kept, which may round up */
        return clv_fail(CLV_E_FORMAT,
                        "%s: layer_norm_eps is %s, expected a number above 0, below 1", what,
                        clv_folder_kind(value));
    out->eps = (float)eps;
    return CLV_OK;
}

clv_status clv_model_config_parse(const char *what, const clv_json *root, clv_model_config *out)
{
    const struct {
        const char *key;
        int64_t most, fallback;
        size_t *slot;
    } sizes[] = { { "hidden_size", MAX_EXTENT, -1, &out->width },
                  { "num_attention_heads", MAX_EXTENT, -1, &out->heads },
                  { "num_hidden_layers", MAX_LAYERS, -1, &out->layers },
                  { "intermediate_size", MAX_EXTENT, -1, &out->ffn },
                  { "vocab_size", MAX_EXTENT, -1, &out->vocabulary },
                  { "max_position_embeddings", MAX_EXTENT, -1, &out->positions },
                  { "type_vocab_size", MAX_EXTENT, 2, &out->types } };
    *out = (clv_model_config){ .size = sizeof(clv_model_config), .pooling = CLV_MODEL_MEAN };
    if (!clv_json_is_object(root)) return clv_fail(CLV_E_FORMAT, "%s: no object", what);
    CLV_TRY(expect_word(what, root, "model_type", "bert", true));
    CLV_TRY(expect_word(what, root, "position_embedding_type", "absolute", false));
    if (clv_json_bool(clv_json_get(root, "is_decoder"), false))
        return clv_fail(CLV_E_FORMAT, "%s: is_decoder is true, expected an encoder", what);
    for (size_t i = 0; i < CLV_LEN(sizes); ++i) {
        int64_t value;
        CLV_TRY(
            clv_folder_int(what, root, sizes[i].key, 1, sizes[i].most, sizes[i].fallback, &value));
        *sizes[i].slot = (size_t)value;
    }
    if (out->width % out->heads)
        return clv_fail(CLV_E_FORMAT,
                        "%s: hidden_size is %zu, expected a multiple of num_attention_heads, %zu",
                        what, out->width, out->heads);
    CLV_TRY(take_act(what, root, out));
    CLV_TRY(take_eps(what, root, out));
    out->max_length = out->positions;
    return CLV_OK;
}

/* ---- sentence-transformers ----------------------------------------------------------------- */

static clv_status take_pooling(const char *what, const clv_json *root, clv_model_config *config)
{
    static const struct {
        const char *flag, *word;
        int pooling; /* -1: not supported */
    } modes[] = { { "pooling_mode_mean_tokens", "mean", CLV_MODEL_MEAN },
                  { "pooling_mode_cls_token", "cls", CLV_MODEL_CLS },
                  { "pooling_mode_max_tokens", "max", CLV_MODEL_MAX },
                  { "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", -1 },
                  { "pooling_mode_weightedmean_tokens", "weightedmean", -1 },
                  { "pooling_mode_lasttoken", "lasttoken", -1 } };
    const clv_json *mode = clv_json_get(root, "pooling_mode");
    if (clv_json_is_array(mode) && clv_json_count(mode) == 1) mode = clv_json_at(mode, 0);
    const char *word = clv_json_string(mode, NULL);
    size_t chosen = CLV_LEN(modes), count = 0;
    int64_t width;
    for (size_t i = 0; i < CLV_LEN(modes); ++i)
        if (word ? strcmp(word, modes[i].word) == 0
                 : clv_json_bool(clv_json_get(root, modes[i].flag), false))
            chosen = i, ++count;
    if (!count && mode)
        return clv_fail(CLV_E_FORMAT, "%s: pooling_mode is %.60s, expected mean, cls or max", what,
                        word ? word : clv_folder_kind(mode));
    if (count != 1)
        return clv_fail(CLV_E_FORMAT, "%s: %zu ways of pooling, expected one of mean, cls, max",
                        what, count);
    if (modes[chosen].pooling < 0)
        return clv_fail(CLV_E_FORMAT, "%s: %s, expected the pooling mean, cls or max", what,
                        modes[chosen].flag);
    config->pooling = (clv_model_pooling)modes[chosen].pooling;
    config->skips_prompt = !clv_json_bool(clv_json_get(root, "include_prompt"), true);
    const int64_t expected = (int64_t)config->width;
    CLV_TRY(
        clv_folder_int(what, root, "embedding_dimension", expected, expected, expected, &width));
    return clv_folder_int(what, root, "word_embedding_dimension", expected, expected, expected,
                          &width); /* as it was called before sentence-transformers 6 */
}

static clv_status take_module(const char *folder, const clv_json *module, clv_model_config *config)
{
    const char *type = clv_json_string(clv_json_get(module, "type"), "");
    const char *path = clv_json_string(clv_json_get(module, "path"), "");
    const char *dot = strrchr(type, '.'), *kind = dot ? dot + 1 : type;
    if (strcmp(kind, "Transformer") == 0) {
        if (!*path) return CLV_OK;
        return clv_fail(CLV_E_FORMAT,
                        "%s/modules.json: the transformer lies in \"%.60s\", expected "
                        "the folder itself",
                        folder, path);
    }
    if (strcmp(kind, "Normalize") == 0) {
        config->normalize = true;
        return CLV_OK;
    }
    if (strcmp(kind, "Pooling") != 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s/modules.json: a module of type \"%.60s\", expected "
                        "Transformer, Pooling or Normalize",
                        folder, type);
    if (!*path || *path == '/' || strstr(path, "..") || strlen(path) > 200)
        return clv_fail(CLV_E_FORMAT,
                        "%s/modules.json: the pooling lies in \"%.60s\", expected a "
                        "folder below",
                        folder, path);
    clv_json *root = NULL;
    char *inside = clv_folder_path(folder, path);
    char *what = inside ? clv_folder_path(inside, "config.json") : NULL;
    clv_status status = what ? clv_folder_json(inside, "config.json", true, &root)
                             : clv_fail(CLV_E_MEMORY, "%s: no memory", folder);
    if (!status) status = take_pooling(what, root, config);
    clv_json_free(root);
    clv_free(inside), clv_free(what);
    return status;
}

static clv_status take_modules(const char *folder, const clv_json *list, clv_model_config *config)
{
    size_t poolings = 0;
    if (!clv_json_is_array(list) || !clv_json_count(list))
        return clv_fail(CLV_E_FORMAT, "%s/modules.json: no list of modules", folder);
    for (size_t i = 0; i < clv_json_count(list); ++i) {
        const clv_json *module = clv_json_at(list, i);
        const char *type = clv_json_string(clv_json_get(module, "type"), "");
        CLV_TRY(take_module(folder, module, config));
        poolings += strstr(type, "Pooling") != NULL;
    }
    if (poolings != 1)
        return clv_fail(CLV_E_FORMAT, "%s/modules.json: %zu poolings, expected one", folder,
                        poolings);
    return CLV_OK;
}

clv_status clv_model_modules(const char *folder, clv_model_config *config)
{
    clv_json *modules = NULL, *sentence = NULL;
    clv_status status = clv_folder_json(folder, "modules.json", false, &modules);
    if (!status && modules) status = take_modules(folder, modules, config);
    if (!status) status = clv_folder_json(folder, "sentence_bert_config.json", false, &sentence);
    if (!status) {
        int64_t length;
        status = clv_folder_int("sentence_bert_config.json", sentence, "max_seq_length", 2,
                                (int64_t)1 << 40, (int64_t)config->positions, &length);
        if (!status) config->max_length = CLV_MIN((size_t)length, config->positions);
    }
    clv_json_free(modules), clv_json_free(sentence);
    return status;
}

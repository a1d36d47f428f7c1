/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks config.json: the sizes and the rules of a model. */
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
             { "gelu_python", CLV_ACTIVATION_GELU },
             { "gelu_new", CLV_ACTIVATION_GELU_TANH },
             { "gelu_fast", CLV_ACTIVATION_GELU_TANH },
             { "gelu_accurate", CLV_ACTIVATION_GELU_TANH },
             { "gelu_pytorch_tanh", CLV_ACTIVATION_GELU_TANH },
             { "gelu_python_tanh", CLV_ACTIVATION_GELU_TANH },
             { "silu", CLV_ACTIVATION_SILU },
             { "swish", CLV_ACTIVATION_SILU },
             { "relu", CLV_ACTIVATION_RELU },
             { "tanh", CLV_ACTIVATION_TANH } };

enum { DISTILBERT_NAMES = 1, POSITIONS_BEHIND_PADDING = 2, NARROW_TABLES = 4, RELATIVE = 8 };

static const struct {
    const char *type;
    clv_model_family family;
    int traits;
} families[] = {
    { "bert", CLV_MODEL_BERT, 0 },
    { "distilbert", CLV_MODEL_DISTILBERT, DISTILBERT_NAMES },
    { "electra", CLV_MODEL_ELECTRA, NARROW_TABLES },
    { "roberta", CLV_MODEL_ROBERTA, POSITIONS_BEHIND_PADDING },
    { "xlm-roberta", CLV_MODEL_ROBERTA, POSITIONS_BEHIND_PADDING },
    { "mpnet", CLV_MODEL_MPNET, POSITIONS_BEHIND_PADDING | RELATIVE },
    { "albert", CLV_MODEL_ALBERT, NARROW_TABLES },
};

/* Fails if the member `key` is not the word `word`; a missing member is an error only if `needed` is set. */
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

static clv_status take_act(const char *what, const clv_json *root, const char *key,
                           clv_model_config *out)
{
    const clv_json *value = clv_json_get(root, key);
    const char *usual = out->family == CLV_MODEL_ALBERT ? "gelu_new" : "gelu";
    const char *text = clv_json_string(value, value ? NULL : usual);
    for (size_t i = 0; text && i < CLV_LEN(acts); ++i)
        if (strcmp(acts[i].name, text) == 0) {
            out->act = acts[i].act;
            return CLV_OK;
        }
    return clv_fail(
        CLV_E_FORMAT,
        "%s: %s is %.60s, expected gelu, gelu_new, gelu_pytorch_tanh, silu, relu or tanh", what,
        key, text ? text : clv_folder_kind(value));
}

static clv_status take_eps(const char *what, const clv_json *root, clv_model_config *out)
{
    const clv_json *value = clv_json_get(root, "layer_norm_eps");
    const double eps = clv_json_number(value, value ? NAN : 1e-12);
    if (!(eps > 0 && (float)eps < 1)) /* checked after rounding to float, which may round up to 1 */
        return clv_fail(CLV_E_FORMAT,
                        "%s: layer_norm_eps is %s, expected a number above 0, below 1", what,
                        clv_folder_kind(value));
    out->eps = (float)eps;
    return CLV_OK;
}

/* Finds the model's family, and sets *traits to its traits. */
static clv_status take_family(const char *what, const clv_json *root, clv_model_config *out,
                              int *traits)
{
    const clv_json *value = clv_json_get(root, "model_type");
    const char *text = clv_json_string(value, NULL);
    for (size_t i = 0; text && i < CLV_LEN(families); ++i)
        if (strcmp(families[i].type, text) == 0) {
            out->family = families[i].family;
            *traits = families[i].traits;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: model_type is %.60s, expected bert, distilbert, electra, roberta, "
                    "xlm-roberta, mpnet or albert",
                    what, text ? text : clv_folder_kind(value));
}

/* Reads the settings that only some families have. */
static clv_status take_traits(const char *what, const clv_json *root, int traits,
                              clv_model_config *out)
{
    int64_t value;
    if (traits & POSITIONS_BEHIND_PADDING) {
        /* the largest padding id that leaves at least two tokens */
        const int64_t most = (int64_t)out->positions - 3;
        /* MPNet ignores pad_token_id and uses 1 */
        const char *key = out->family == CLV_MODEL_MPNET ? "" : "pad_token_id";
        const clv_json *padding = clv_json_get(root, key);
        if (padding && clv_folder_absent(padding))
            return clv_fail(CLV_E_FORMAT, "%s: %s is null, expected a whole number", what, key);
        CLV_TRY(clv_folder_int(what, root, key, 0, most, 1, &value));
        if (value > most)
            return clv_fail(CLV_E_FORMAT, "%s: max_position_embeddings is %zu, expected at least 4",
                            what, out->positions);
        out->first_position = (size_t)value + 1;
        out->positions -= out->first_position;
    }
    if (traits & NARROW_TABLES) {
        CLV_TRY(clv_folder_int(what, root, "embedding_size", 1, MAX_EXTENT, 128, &value));
        const bool always = out->family == CLV_MODEL_ALBERT;
        out->embedding = always || (size_t)value != out->width ? (size_t)value : 0;
    }
    if (traits & RELATIVE) {
        enum { BUCKETS = 32, MOST = 1 << 16 }; /* transformers ignores any other number */
        CLV_TRY(clv_folder_int(what, root, "relative_attention_num_buckets", BUCKETS, BUCKETS,
                               BUCKETS, &value));
        out->buckets = (size_t)value;
        if (out->positions > MOST)
            return clv_fail(CLV_E_FORMAT,
                            "%s: max_position_embeddings is %zu, expected at most %d for mpnet",
                            what, out->positions + out->first_position, MOST);
    }
    if (out->family == CLV_MODEL_ALBERT) {
        CLV_TRY(clv_folder_int(what, root, "inner_group_num", 1, 1, 1, &value));
        CLV_TRY(
            clv_folder_int(what, root, "num_hidden_groups", 1, (int64_t)out->layers, 1, &value));
        out->groups = (size_t)value;
    }
    return CLV_OK;
}

/* Fails if the model is a decoder, or if its weights are not numbers but codes. */
static clv_status expect_encoder(const char *what, const clv_json *root)
{
    static const char *const keys[] = { "is_decoder", "add_cross_attention" };
    for (size_t i = 0; i < CLV_LEN(keys); ++i) {
        const clv_json *value = clv_json_get(root, keys[i]);
        const bool given = clv_json_bool(value, false);
        if (value && (given || !clv_json_is_bool(value)))
            return clv_fail(CLV_E_FORMAT, "%s: %s is %s, but only encoders are supported", what,
                            keys[i], given ? "true" : clv_folder_kind(value));
    }
    if (!clv_folder_absent(clv_json_get(root, "quantization_config")))
        return clv_fail(CLV_E_FORMAT,
                        "%s: there is a quantization_config, but quantised weights are not "
                        "supported; expected weights in F32, F16, BF16 or F64",
                        what);
    return CLV_OK;
}

/* Fails if the padding token lies beyond the vocabulary, which transformers refuses, too. */
static clv_status check_padding(const char *what, const clv_json *root, size_t vocabulary)
{
    const int64_t id = clv_json_int(clv_json_get(root, "pad_token_id"), 0);
    if (id < (int64_t)vocabulary && id >= -(int64_t)vocabulary) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: pad_token_id is %lld, but the vocabulary has %zu tokens",
                    what, (long long)id, vocabulary);
}

clv_status clv_model_config_parse(const char *what, const clv_json *root, clv_model_config *out)
{
    int traits = 0;
    *out = (clv_model_config){ .size = sizeof(clv_model_config), .pooling = CLV_MODEL_MEAN };
    if (!clv_json_is_object(root)) return clv_fail(CLV_E_FORMAT, "%s: not a JSON object", what);
    CLV_TRY(take_family(what, root, out, &traits));
    CLV_TRY(expect_word(what, root, "position_embedding_type", "absolute", false));
    CLV_TRY(expect_encoder(what, root));
    const bool distil = traits & DISTILBERT_NAMES;
    const struct {
        const char *key;
        int64_t most, fallback;
        size_t *slot;
    } sizes[] = { { distil ? "dim" : "hidden_size", MAX_EXTENT, -1, &out->width },
                  { distil ? "n_heads" : "num_attention_heads", MAX_EXTENT, -1, &out->heads },
                  { distil ? "n_layers" : "num_hidden_layers", MAX_LAYERS, -1, &out->layers },
                  { distil ? "hidden_dim" : "intermediate_size", MAX_EXTENT, -1, &out->ffn },
                  { "vocab_size", MAX_EXTENT, -1, &out->vocabulary },
                  { "max_position_embeddings", MAX_EXTENT, -1, &out->positions },
                  { "type_vocab_size", MAX_EXTENT, 2, &out->types } };
    const bool typeless = distil || out->family == CLV_MODEL_MPNET;
    for (size_t i = 0; i < CLV_LEN(sizes) - typeless; ++i) {
        int64_t value;
        CLV_TRY(
            clv_folder_int(what, root, sizes[i].key, 1, sizes[i].most, sizes[i].fallback, &value));
        *sizes[i].slot = (size_t)value;
    }
    if (typeless) out->types = 1;
    CLV_TRY(check_padding(what, root, out->vocabulary));
    if (out->width % out->heads)
        return clv_fail(CLV_E_FORMAT, "%s: %s is %zu, expected a multiple of %s, %zu", what,
                        sizes[0].key, out->width, sizes[1].key, out->heads);
    CLV_TRY(take_act(what, root, distil ? "activation" : "hidden_act", out));
    if (distil)
        out->eps = 1e-12f;
    else
        CLV_TRY(take_eps(what, root, out));
    CLV_TRY(take_traits(what, root, traits, out));
    out->max_length = out->positions;
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of a decoder: sizes and rules, each checked. */
#include "host/transformer/generate/generate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 24, MOST_PATH = 4096 };

static bool is_given(const clv_json *value) /* null says nothing */
{
    return clv_json_is_number(value) || clv_json_is_string(value) || clv_json_is_bool(value) ||
           clv_json_is_array(value) || clv_json_is_object(value);
}

static clv_status take_size(const char *path, const clv_json *root, const char *key,
                            size_t fallback, size_t *out)
{
    const clv_json *value = clv_json_get(root, key);
    const int64_t found = clv_json_int(value, (int64_t)fallback);
    if (is_given(value) ? !clv_json_is_int(value) : !fallback)
        return clv_fail(CLV_E_FORMAT, "%s: %s is %s, expected a whole number from 1 to %d", path,
                        key, is_given(value) ? "something else" : "missing", LARGEST);
    if (found < 1 || found > LARGEST)
        return clv_fail(CLV_E_FORMAT, "%s: %s is %lld, expected 1 to %d", path, key,
                        (long long)found, LARGEST);
    *out = (size_t)found;
    return CLV_OK;
}

/* Rotary positions as they are: of an object that has more than their base, the kind must say so. */
static clv_status refuse_rope(const char *path, const char *key, const clv_json *rope)
{
    const bool plain = clv_json_count(rope) == (clv_json_get(rope, "rope_theta") != NULL);
    const char *fallback = !clv_json_is_object(rope) || plain ? "default" : "scaled";
    const char *older = clv_json_string(clv_json_get(rope, "type"), fallback);
    const char *kind = clv_json_string(clv_json_get(rope, "rope_type"), older);
    if (strcmp(kind, "default") == 0) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: %s is %.60s, expected default", path, key, kind);
}

/* What we cannot compute is refused by name. */
static clv_status refuse(const char *path, const clv_json *root)
{
    const char *type = clv_json_string(clv_json_get(root, "model_type"), "nothing");
    const char *act = clv_json_string(clv_json_get(root, "hidden_act"), "silu");
    if (strcmp(type, "llama") != 0)
        return clv_fail(CLV_E_FORMAT, "%s: model_type is %.60s, expected llama", path, type);
    if (strcmp(act, "silu") != 0)
        return clv_fail(CLV_E_FORMAT, "%s: hidden_act is %.60s, expected silu", path, act);
    static const char *const biases[] = { "attention_bias", "mlp_bias" };
    for (size_t i = 0; i < CLV_LEN(biases); ++i)
        if (clv_json_bool(clv_json_get(root, biases[i]), false))
            return clv_fail(CLV_E_FORMAT, "%s: %s is true, expected false", path, biases[i]);
    static const char *const ropes[] = { "rope_scaling", "rope_parameters" };
    for (size_t i = 0; i < CLV_LEN(ropes); ++i)
        CLV_TRY(refuse_rope(path, ropes[i], clv_json_get(root, ropes[i])));
    return CLV_OK;
}

static clv_status parse(const char *path, const clv_json *root, clv_decoder_config *c)
{
    CLV_TRY(refuse(path, root));
    CLV_TRY(take_size(path, root, "hidden_size", 0, &c->width));
    CLV_TRY(take_size(path, root, "num_attention_heads", 0, &c->heads));
    CLV_TRY(take_size(path, root, "num_key_value_heads", c->heads, &c->kv_heads));
    CLV_TRY(take_size(path, root, "num_hidden_layers", 0, &c->layers));
    CLV_TRY(take_size(path, root, "intermediate_size", 0, &c->ffn));
    CLV_TRY(take_size(path, root, "vocab_size", 0, &c->vocabulary));
    CLV_TRY(take_size(path, root, "max_position_embeddings", 2048, &c->positions));
    const clv_json *scaling = clv_json_get(root, "rope_scaling"), *rope = scaling;
    if (!clv_json_count(scaling)) rope = clv_json_get(root, "rope_parameters");
    const double base = clv_json_number(clv_json_get(root, "rope_theta"), 1e4);
    c->rope_base = clv_json_number(clv_json_get(rope, "rope_theta"), base);
    c->eps = (float)clv_json_number(clv_json_get(root, "rms_norm_eps"), 1e-6);
    c->tied = clv_json_bool(clv_json_get(root, "tie_word_embeddings"), false);
    const size_t head = c->width / c->heads;
    size_t given = 0;
    CLV_TRY(take_size(path, root, "head_dim", head ? head : 1, &given));
    if (c->width % c->heads || c->heads % c->kv_heads || head % 2 || head > 256 || given != head)
        return clv_fail(CLV_E_FORMAT,
                        "%s: hidden_size %zu, %zu heads of head_dim %zu, %zu of keys: expected "
                        "hidden_size / heads for head_dim, even, at most 256, and heads of keys "
                        "that divide the heads",
                        path, c->width, c->heads, given, c->kv_heads);
    if (!(c->eps > 0 && c->eps < 1) || !(c->rope_base >= 1 && c->rope_base < 1e12))
        return clv_fail(CLV_E_FORMAT,
                        "%s: rms_norm_eps %g, rope_theta %g, expected above 0 and below 1, 1 to "
                        "less than 1e12",
                        path, (double)c->eps, c->rope_base);
    return CLV_OK;
}

clv_status clv_decoder_config_read(const char *folder, clv_decoder_config *config)
{
    char path[MOST_PATH], *text;
    size_t length;
    clv_json *root = NULL;
    const int used = snprintf(path, sizeof path, "%s/config.json", folder);
    if (used < 0 || used >= MOST_PATH)
        return clv_fail(CLV_E_ARGUMENT, "decoder: a path of %d bytes", used);
    *config = (clv_decoder_config){ 0 };
    CLV_TRY(clv_file_read(path, LARGEST, &text, &length));
    clv_status status = clv_json_parse(path, text, length, &root);
    if (!status) status = parse(path, root, config);
    clv_json_free(root);
    clv_free(text);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a language model from a folder in the format of the Python library transformers: config.json, one or several
 * safetensors files, and the tokenizer's files. */
#define _GNU_SOURCE
#include "host/transformer/generate/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SHARDS = 1024, MOST_TEMPLATE = 1 << 20 };

typedef struct reader {
    clv_lm_model *m;
    const char *path; /* path of config.json, for messages */
    const clv_json *config;
} reader;

/* ---- config.json ---------------------------------------------------------------------------------- */

static clv_status take_size(const reader *r, const char *key, size_t fallback, size_t *out)
{
    int64_t value;
    CLV_TRY(clv_folder_int(r->path, r->config, key, 1, CLV_LM_MOST,
                           fallback ? (int64_t)fallback : -1, &value));
    *out = (size_t)value;
    return CLV_OK;
}

static clv_status take_number(const reader *r, const clv_json *object, const char *key,
                              double fallback, double *out)
{
    const clv_json *value = clv_json_get(object, key);
    *out = fallback;
    if (clv_folder_absent(value) && fallback > 0) return CLV_OK;
    if (!clv_json_is_number(value))
        return clv_fail(CLV_E_FORMAT, "%s: %s is %s, expected a number", r->path, key,
                        clv_folder_kind(value));
    *out = clv_json_number(value, fallback);
    return CLV_OK;
}

static clv_status take_kind(const reader *r, clv_lm_config *c)
{
    static const char *const known[] = { "llama", "mistral", "qwen2", "qwen3" };
    const char *type = clv_json_string(clv_json_get(r->config, "model_type"), "nothing");
    const char *act = clv_json_string(clv_json_get(r->config, "hidden_act"), "silu");
    bool found = false;
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        found = found || strcmp(known[i], type) == 0;
    if (!found)
        return clv_fail(
            CLV_E_UNSUPPORTED,
            "%s: model_type is \"%.40s\"; only llama, mistral, qwen2 and qwen3 are supported",
            r->path, type);
    if (strcmp(act, "silu") != 0)
        return clv_fail(CLV_E_UNSUPPORTED, "%s: hidden_act is \"%.40s\"; only silu is supported",
                        r->path, act);
    if (clv_json_bool(clv_json_get(r->config, "mlp_bias"), false))
        return clv_fail(CLV_E_UNSUPPORTED, "%s: mlp_bias is true, which is not supported", r->path);
    snprintf(c->architecture, sizeof c->architecture, "%s", type);
    return CLV_OK;
}

static clv_status take_llama3(const reader *r, const clv_json *s)
{
    clv_lm_llama3 by;
    CLV_TRY(take_number(r, s, "factor", 0, &by.factor));
    CLV_TRY(take_number(r, s, "low_freq_factor", 0, &by.low));
    CLV_TRY(take_number(r, s, "high_freq_factor", 0, &by.high));
    CLV_TRY(take_number(r, s, "original_max_position_embeddings", 0, &by.original));
    return clv_lm_scale_llama3(r->m, r->path, "rope_scaling", &by);
}

/* Reads YaRN's parameters as the transformers library does, with its defaults for missing keys. */
static clv_status take_yarn(const reader *r, const clv_json *s)
{
    const double context = (double)r->m->config.context;
    clv_lm_yarn y = { .whole = clv_json_bool(clv_json_get(s, "truncate"), true) };
    double scale = 0, scale_all = 0;
    CLV_TRY(take_number(r, s, "original_max_position_embeddings", context, &y.original));
    CLV_TRY(take_number(r, s, "factor", CLV_MAX(context / y.original, 1e-30), &y.factor));
    CLV_TRY(take_number(r, s, "beta_fast", 32, &y.fast));
    CLV_TRY(take_number(r, s, "beta_slow", 1, &y.slow));
    if (!clv_folder_absent(clv_json_get(s, "mscale")))
        CLV_TRY(take_number(r, s, "mscale", 0, &scale));
    if (!clv_folder_absent(clv_json_get(s, "mscale_all_dim")))
        CLV_TRY(take_number(r, s, "mscale_all_dim", 0, &scale_all));
    if (!clv_folder_absent(clv_json_get(s, "attention_factor")))
        CLV_TRY(take_number(r, s, "attention_factor", 0, &y.swell));
    else if (scale != 0 && scale_all != 0)
        y.swell = clv_lm_yarn_swell(y.factor, scale) / clv_lm_yarn_swell(y.factor, scale_all);
    return clv_lm_scale_yarn(r->m, r->path, "rope_scaling", &y);
}

/* Handles dynamic scaling, whose frequencies depend on the length of a text that exceeds the positions for which the
 * model was trained. Limits the context to these positions, up to which the frequencies do not change. */
static clv_status take_dynamic(const reader *r, const clv_json *s, clv_lm_config *c)
{
    double original;
    CLV_TRY(take_number(r, s, "original_max_position_embeddings", (double)c->context, &original));
    if (original >= 1 && original < (double)c->context) c->context = (size_t)original;
    return CLV_OK;
}

static clv_status take_scaling(const reader *r, clv_lm_config *c)
{
    const clv_json *s = clv_json_get(r->config, "rope_scaling");
    double part;
    CLV_TRY(take_number(r, r->config, "partial_rotary_factor", 1, &part));
    if (clv_folder_absent(s)) s = clv_json_get(r->config, "rope_parameters");
    if (!clv_folder_absent(s)) CLV_TRY(take_number(r, s, "partial_rotary_factor", part, &part));
    if (part != 1)
        return clv_fail(CLV_E_UNSUPPORTED, "%s: partial_rotary_factor is %g; only 1 is supported",
                        r->path, part);
    if (clv_folder_absent(s)) return CLV_OK;
    if (!clv_json_is_object(s))
        return clv_fail(CLV_E_FORMAT, "%s: rope_scaling is %s, expected an object", r->path,
                        clv_folder_kind(s));
    CLV_TRY(take_number(r, s, "rope_theta", c->base, &c->base));
    CLV_TRY(clv_lm_check_config(r->path, c));
    const char *old = clv_json_string(clv_json_get(s, "type"), "default");
    const char *kind = clv_json_string(clv_json_get(s, "rope_type"), old);
    const bool plain = strcmp(kind, "default") == 0;
    if (plain && !clv_folder_absent(clv_json_get(s, "factor")))
        return clv_fail(CLV_E_FORMAT,
                        "%s: rope_scaling has a factor but no rope_type, expected linear, dynamic, "
                        "yarn or llama3",
                        r->path);
    if (plain) return CLV_OK;
    if (strcmp(kind, "linear") == 0) return take_number(r, s, "factor", 0, &c->stretch);
    if (strcmp(kind, "llama3") == 0) return take_llama3(r, s);
    if (strcmp(kind, "yarn") == 0) return take_yarn(r, s);
    if (strcmp(kind, "dynamic") == 0) return take_dynamic(r, s, c);
    return clv_fail(CLV_E_UNSUPPORTED,
                    "%s: rope_scaling is \"%.40s\"; only default, linear, dynamic, yarn and llama3 "
                    "are supported",
                    r->path, kind);
}

/* Reads the sliding window. Mistral always uses it, Qwen models only if use_sliding_window is true. */
static clv_status take_window(const reader *r, clv_lm_config *c)
{
    const bool qwen = strncmp(c->architecture, "qwen", 4) == 0;
    if (qwen && !clv_json_bool(clv_json_get(r->config, "use_sliding_window"), false)) return CLV_OK;
    if (clv_folder_absent(clv_json_get(r->config, "sliding_window"))) return CLV_OK;
    return take_size(r, "sliding_window", 0, &c->window);
}

static clv_status take_config(const reader *r)
{
    clv_lm_config *c = &r->m->config;
    double eps;
    CLV_TRY(take_kind(r, c));
    CLV_TRY(take_size(r, "hidden_size", 0, &c->width));
    CLV_TRY(take_size(r, "num_hidden_layers", 0, &c->layers));
    CLV_TRY(take_size(r, "intermediate_size", 0, &c->ffn));
    CLV_TRY(take_size(r, "num_attention_heads", 0, &c->heads));
    CLV_TRY(take_size(r, "num_key_value_heads", c->heads, &c->kv_heads));
    CLV_TRY(take_size(r, "head_dim", CLV_MAX(c->width / c->heads, (size_t)1), &c->head));
    CLV_TRY(take_size(r, "vocab_size", 0, &c->vocabulary));
    CLV_TRY(take_size(r, "max_position_embeddings", 2048, &c->context));
    CLV_TRY(take_number(r, r->config, "rms_norm_eps", 1e-6, &eps));
    CLV_TRY(take_number(r, r->config, "rope_theta", 1e4, &c->base));
    CLV_TRY(take_window(r, c));
    c->eps = (float)eps;
    c->turned = c->head;
    c->head_norm = strcmp(c->architecture, "qwen3") == 0;
    c->tied = clv_json_bool(clv_json_get(r->config, "tie_word_embeddings"), false);
    c->stretch = c->swell = 1;
    CLV_TRY(clv_lm_check_config(r->path, c));
    if (c->layers > CLV_LM_LAYERS_MOST)
        return clv_fail(CLV_E_FORMAT, "%s: num_hidden_layers is %zu, expected 1 to %d", r->path,
                        c->layers, CLV_LM_LAYERS_MOST);
    CLV_TRY(take_scaling(r, c));
    return clv_lm_check_config(r->path, c);
}

/* Adds the tokens that end a text, which `ends` holds as one id or as a list of ids. */
static clv_status take_ends(const reader *r, const clv_json *ends)
{
    if (clv_json_is_int(ends)) return clv_lm_add_end(r->m, clv_json_int(ends, -1));
    for (size_t i = 0; clv_json_is_array(ends) && i < clv_json_count(ends); ++i)
        CLV_TRY(clv_lm_add_end(r->m, clv_json_int(clv_json_at(ends, i), -1)));
    return CLV_OK;
}

static clv_status take_all_ends(const reader *r)
{
    clv_json *generation = NULL;
    CLV_TRY(clv_folder_json(r->m->path, "generation_config.json", false, &generation));
    const clv_json *ends = clv_json_get(generation, "eos_token_id");
    const clv_status status =
        take_ends(r, clv_folder_absent(ends) ? clv_json_get(r->config, "eos_token_id") : ends);
    clv_json_free(generation);
    return status;
}

/* ---- tensors -------------------------------------------------------------------------------------- */

/* Opens one file of weights. Its name comes from the index and must not lead out of the folder. */
static clv_status open_shard(clv_lm_model *m, const char *name)
{
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s/model.safetensors.index.json: the file \"%.80s\" is not "
                        "in the folder",
                        m->path, name);
    char *path = clv_folder_path(m->path, name);
    if (!path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    const clv_status status = clv_tensors_open(path, &m->shards[m->shard_count]);
    clv_free(path);
    m->shard_count += !status;
    return status;
}

/* Opens each file to which the index maps a tensor once; `names` borrows its strings from the index. */
static clv_status open_shards(clv_lm_model *m, const clv_json *map)
{
    const char *names[MOST_SHARDS];
    size_t count = 0;
    for (const char *key = NULL; (key = clv_json_next_key(map, key));) {
        const char *file = clv_json_string(clv_json_get(map, key), "");
        size_t i = 0;
        while (i < count && strcmp(names[i], file) != 0)
            ++i;
        if (i < count) continue;
        if (count == MOST_SHARDS)
            return clv_fail(CLV_E_FORMAT, "%s: there are more than %d files of weights", m->path,
                            MOST_SHARDS);
        names[count++] = file;
    }
    if (!count)
        return clv_fail(CLV_E_FORMAT, "%s/model.safetensors.index.json: there is no weight_map",
                        m->path);
    m->shards = clv_zalloc(count, sizeof *m->shards);
    if (!m->shards) return clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    for (size_t i = 0; i < count; ++i)
        CLV_TRY(open_shard(m, names[i]));
    return CLV_OK;
}

static clv_status open_files(clv_lm_model *m)
{
    static const char index[] = "model.safetensors.index.json", one[] = "model.safetensors";
    clv_json *root = NULL;
    if (!clv_folder_has(m->path, one)) CLV_TRY(clv_folder_json(m->path, index, false, &root));
    if (!root) {
        m->shards = clv_zalloc(1, sizeof *m->shards);
        return m->shards ? open_shard(m, one)
                         : clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    }
    const clv_status status = open_shards(m, clv_json_get(root, "weight_map"));
    clv_json_free(root);
    return status;
}

static clv_status take_type(const clv_lm_model *m, const clv_tensor *t, clv_quant *type)
{
    switch (t->type) {
    case CLV_TENSOR_F32:
    case CLV_TENSOR_F64:
        *type = CLV_QUANT_F32;
        return CLV_OK;
    case CLV_TENSOR_F16:
        *type = CLV_QUANT_F16;
        return CLV_OK;
    case CLV_TENSOR_BF16:
        *type = CLV_QUANT_BF16;
        return CLV_OK;
    default:
        return clv_fail(
            CLV_E_UNSUPPORTED,
            "%s: tensor \"%s\" is of type %s; only F32, F16, BF16 and F64 are supported", m->path,
            t->name, t->type_name);
    }
}

static clv_status take_tensor(clv_lm_model *m, const char *name, const clv_lm_need *need,
                              clv_lm_tensor *out)
{
    const clv_tensor *t = NULL;
    size_t file = 0;
    for (; file < m->shard_count; ++file)
        if ((t = clv_tensors_find(m->shards[file], name))) break;
    if (!t && need->optional) return CLV_OK;
    if (!t) return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is missing", m->path, name);
    const bool vector = need->rows == 1;
    if (t->rank != (vector ? 1u : 2u) || t->count != need->rows * need->columns ||
        t->shape[t->rank - 1] != need->columns)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: tensor \"%s\" has %zu axes and %zu weights, but config.json asks for %zu rows of "
            "%zu weights",
            m->path, name, t->rank, t->count, need->rows, need->columns);
    *out = (clv_lm_tensor){ .name = t->name,
                            .rows = need->rows,
                            .columns = need->columns,
                            .bytes = t->bytes,
                            .plain = t,
                            .file = file };
    return take_type(m, t, &out->type);
}

static clv_status take_tensors(clv_lm_model *m)
{
    clv_lm_config *c = &m->config;
    size_t there = 0, head = 0;
    for (size_t i = 0; i < m->shard_count; ++i) {
        there += clv_tensors_count(m->shards[i]);
        head += clv_tensors_find(m->shards[i], "lm_head.weight") != NULL;
    }
    if (c->layers > there)
        return clv_fail(CLV_E_FORMAT, "%s: there are too many tensors: %zu layers of %zu tensors",
                        m->path, c->layers, there);
    if (!head) c->tied = true;
    m->layers = clv_zalloc(c->layers, sizeof *m->layers);
    if (!m->layers) return clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    for (clv_lm_role role = 0; role < CLV_LM_MODEL_ROLES; ++role) {
        const clv_lm_need need = clv_lm_needed(c, role);
        if (!need.folder || (role == CLV_LM_OUT && c->tied)) continue;
        CLV_TRY(take_tensor(m, need.folder, &need, &m->top[role]));
    }
    for (size_t l = 0; l < c->layers; ++l)
        for (clv_lm_role role = CLV_LM_MODEL_ROLES; role < CLV_LM_ROLES; ++role) {
            const clv_lm_need need = clv_lm_needed(c, role);
            char name[96];
            snprintf(name, sizeof name, "model.layers.%zu.%s", l, need.folder);
            CLV_TRY(take_tensor(m, name, &need, &m->layers[l][role]));
        }
    return CLV_OK;
}

static bool is_used(const clv_lm_model *m, const clv_tensor *t)
{
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i)
        if (m->top[i].plain == t) return true;
    for (size_t l = 0; l < m->config.layers; ++l)
        for (size_t i = CLV_LM_MODEL_ROLES; i < CLV_LM_ROLES; ++i)
            if (m->layers[l][i].plain == t) return true;
    /* the frequencies of rotary positions, and the output matrix of a model whose word table makes the scores */
    return strstr(t->name, "rotary_emb.inv_freq") ||
           (m->config.tied && strcmp(t->name, "lm_head.weight") == 0);
}

/* Rejects a tensor that this decoder does not use, such as weights of LoRA or scales of a quantisation: to ignore a
 * weight would silently compute another model. */
static clv_status refuse_unused(const clv_lm_model *m)
{
    for (size_t i = 0; i < m->shard_count; ++i)
        for (size_t k = 0; k < clv_tensors_count(m->shards[i]); ++k) {
            const clv_tensor *t = clv_tensors_at(m->shards[i], k);
            if (is_used(m, t)) continue;
            return clv_fail(CLV_E_UNSUPPORTED,
                            "%s: tensor \"%s\" has no place in a model of architecture %s with "
                            "%zu layers",
                            m->path, t->name, m->config.architecture, m->config.layers);
        }
    return CLV_OK;
}

/* ---- texts ---------------------------------------------------------------------------------------- */

static clv_status keep_template(clv_lm_model *m, const char *text)
{
    m->chat_template = clv_strdup(text);
    return m->chat_template ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
}

/* Reads the chat template from a file of its own, or from tokenizer_config.json, which holds it as one text or as the
 * entry "default" of a list. */
static clv_status take_template(clv_lm_model *m)
{
    clv_json *config = NULL;
    if (clv_folder_has(m->path, "chat_template.jinja")) {
        char *path = clv_folder_path(m->path, "chat_template.jinja"), *text = NULL;
        size_t length;
        clv_status status = path ? clv_file_read_plain(path, MOST_TEMPLATE, &text, &length)
                                 : clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
        clv_free(path);
        m->chat_template = text;
        return status;
    }
    CLV_TRY(clv_folder_json(m->path, "tokenizer_config.json", false, &config));
    const clv_json *given = clv_json_get(config, "chat_template");
    clv_status status = CLV_OK;
    if (clv_json_is_string(given)) status = keep_template(m, clv_json_string(given, ""));
    for (size_t i = 0; clv_json_is_array(given) && i < clv_json_count(given) && !status; ++i) {
        const clv_json *one = clv_json_at(given, i);
        if (strcmp(clv_json_string(clv_json_get(one, "name"), ""), "default") == 0)
            status = keep_template(m, clv_json_string(clv_json_get(one, "template"), ""));
    }
    clv_json_free(config);
    return status;
}

static clv_status read_config(clv_lm_model *m)
{
    clv_json *root;
    CLV_TRY(clv_folder_json(m->path, "config.json", true, &root));
    char *path = clv_folder_path(m->path, "config.json");
    const reader r = { m, path, root };
    clv_status status =
        path ? take_config(&r) : clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    if (!status) status = take_all_ends(&r);
    clv_free(path);
    clv_json_free(root);
    return status;
}

clv_status clv_lm_read_folder(clv_lm_model *m)
{
    clv_tokenizer_info info = { .size = sizeof info };
    CLV_TRY(read_config(m));
    CLV_TRY(open_files(m));
    CLV_TRY(take_tensors(m));
    CLV_TRY(refuse_unused(m));
    if (!m->texts) return CLV_OK;
    const clv_tokenizer_options options = { .size = sizeof options, .replace_invalid = true };
    CLV_TRY(clv_tokenizer_open(m->path, &options, &m->tokenizer));
    clv_tokenizer_get_info(m->tokenizer, &info);
    if (info.eos >= 0) CLV_TRY(clv_lm_add_end(m, info.eos));
    return take_template(m);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a language model from a GGUF file: checks each hyper-parameter, and finds the tensors by name. */
#include "host/transformer/generate/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    clv_lm_model *m;
    const clv_gguf *file;
    const char *path, *architecture;
} reader;

/* ---- values --------------------------------------------------------------------------------------- */

/* Looks up a key with the architecture's prefix: "block_count" becomes "llama.block_count" in `full`. */
static bool look_up(const reader *r, const char *key, char full[96], clv_gguf_value *v)
{
    snprintf(full, 96, "%s.%s", r->architecture, key);
    return clv_gguf_get(r->file, full, v);
}

static bool is_whole(clv_gguf_type type)
{
    return type != CLV_GGUF_F32 && type != CLV_GGUF_F64 && type != CLV_GGUF_STRING &&
           type != CLV_GGUF_ARRAY && type != CLV_GGUF_BOOL;
}

/* Reads a whole number from 1 to `most`. A missing key yields `fallback`; if `fallback` is 0, the key must exist. */
static clv_status take_size(const reader *r, const char *key, size_t most, size_t fallback,
                            size_t *out)
{
    char full[96];
    clv_gguf_value v;
    *out = fallback;
    if (!look_up(r, key, full, &v))
        return fallback ? CLV_OK
                        : clv_fail(CLV_E_FORMAT, "%s: the key %s is missing", r->path, full);
    if (!is_whole(v.type))
        return clv_fail(CLV_E_FORMAT, "%s: %s is not a whole number", r->path, full);
    if (v.whole < 1 || (uint64_t)v.whole > most)
        return clv_fail(CLV_E_FORMAT, "%s: %s is %lld, expected 1 to %zu", r->path, full,
                        (long long)v.whole, most);
    *out = (size_t)v.whole;
    return CLV_OK;
}

static clv_status take_number(const reader *r, const char *key, double fallback, double *out)
{
    char full[96];
    clv_gguf_value v;
    *out = fallback;
    if (!look_up(r, key, full, &v))
        return fallback > 0 ? CLV_OK
                            : clv_fail(CLV_E_FORMAT, "%s: the key %s is missing", r->path, full);
    if ((v.type != CLV_GGUF_F32 && v.type != CLV_GGUF_F64) || !isfinite(v.number))
        return clv_fail(CLV_E_FORMAT, "%s: %s is %s, expected a finite number", r->path, full,
                        isfinite(v.number) ? "of another type" : "not finite");
    *out = v.number;
    return CLV_OK;
}

static bool text_is(const clv_gguf_value *v, const char *text)
{
    return v->type == CLV_GGUF_STRING && v->length == strlen(text) &&
           memcmp(v->text, text, v->length) == 0;
}

/* ---- hyper-parameters ----------------------------------------------------------------------------- */

static clv_status take_architecture(reader *r)
{
    static const char *const known[] = { "llama", "mistral", "qwen2", "qwen3" };
    clv_gguf_value v;
    if (!clv_gguf_get(r->file, "general.architecture", &v))
        return clv_fail(CLV_E_FORMAT, "%s: the key general.architecture is missing", r->path);
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (text_is(&v, known[i])) {
            r->architecture = known[i];
            snprintf(r->m->config.architecture, sizeof r->m->config.architecture, "%s", known[i]);
            return CLV_OK;
        }
    if (v.type != CLV_GGUF_STRING)
        return clv_fail(CLV_E_FORMAT, "%s: general.architecture is not a string", r->path);
    return clv_fail(
        CLV_E_UNSUPPORTED,
        "%s: the architecture is \"%.*s\"; only llama, mistral, qwen2 and qwen3 are supported",
        r->path, (int)CLV_MIN(v.length, (size_t)40), v.text);
}

/* Reads YaRN's parameters from the keys that llama.cpp uses. */
static clv_status take_yarn(const reader *r, double factor)
{
    clv_lm_yarn y = { .factor = factor, .whole = true };
    double multiplier, swell, extent;
    size_t original;
    CLV_TRY(take_size(r, "rope.scaling.original_context_length", CLV_LM_MOST, r->m->config.context,
                      &original));
    CLV_TRY(take_number(r, "rope.scaling.yarn_beta_fast", 32, &y.fast));
    CLV_TRY(take_number(r, "rope.scaling.yarn_beta_slow", 1, &y.slow));
    CLV_TRY(take_number(r, "rope.scaling.attn_factor", 1, &swell));
    CLV_TRY(take_number(r, "rope.scaling.yarn_ext_factor", 1, &extent));
    CLV_TRY(take_number(r, "rope.scaling.yarn_log_multiplier", 1e-30, &multiplier));
    if (extent != 1)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "%s: %s.rope.scaling.yarn_ext_factor is %g; only 1 is supported", r->path,
                        r->architecture, extent);
    y.original = (double)original;
    y.swell = swell * clv_lm_yarn_swell(factor, 1) / clv_lm_yarn_swell(factor, multiplier);
    return clv_lm_scale_yarn(r->m, r->path, "rope.scaling", &y);
}

/* Reads the scaling of rotary positions. A factor without a type means linear scaling; files from 2023 store the factor
 * under another key. */
static clv_status take_scaling(const reader *r, clv_lm_config *c)
{
    char full[96];
    clv_gguf_value v;
    double factor;
    const bool typed = look_up(r, "rope.scaling.type", full, &v);
    if (typed && v.type != CLV_GGUF_STRING)
        return clv_fail(CLV_E_FORMAT, "%s: %s is not a string", r->path, full);
    if (typed && text_is(&v, "none")) return CLV_OK;
    CLV_TRY(take_number(r, "rope.scale_linear", 1, &factor));
    CLV_TRY(take_number(r, "rope.scaling.factor", factor > 0 ? factor : 1, &factor));
    if (factor == 0) factor = 1; /* files store 0 for "not set" */
    if (!typed || text_is(&v, "linear")) {
        c->stretch = factor;
        return CLV_OK;
    }
    if (text_is(&v, "yarn")) return take_yarn(r, factor);
    return clv_fail(CLV_E_UNSUPPORTED,
                    "%s: %s is \"%.*s\"; only none, linear and yarn are supported", r->path, full,
                    (int)CLV_MIN(v.length, (size_t)40), v.text);
}

/* Rejects a model that requires an operation that this decoder lacks, such as experts or capped scores: without this
 * check, its results would be wrong without an error. */
static clv_status refuse_others(const reader *r)
{
    static const char *const keys[] = { "expert_count", "attention.logit_softcapping",
                                        "final_logit_softcapping", "attention.clamp_kqv",
                                        "attention.alibi_bias_max" };
    char full[96];
    clv_gguf_value v;
    for (size_t i = 0; i < CLV_LEN(keys); ++i)
        if (look_up(r, keys[i], full, &v) && v.number != 0)
            return clv_fail(CLV_E_UNSUPPORTED, "%s: %s is %g, which is not supported", r->path,
                            full, v.number);
    if (clv_gguf_get(r->file, "split.count", &v) && v.number > 1)
        return clv_fail(
            CLV_E_UNSUPPORTED,
            "%s is one of %g parts of a split file, which is not supported; join the parts first",
            r->path, v.number);
    return CLV_OK;
}

static clv_status take_heads(const reader *r, clv_lm_config *c)
{
    size_t values;
    CLV_TRY(take_size(r, "attention.head_count", CLV_LM_MOST, 0, &c->heads));
    CLV_TRY(take_size(r, "attention.head_count_kv", CLV_LM_MOST, c->heads, &c->kv_heads));
    const size_t head = c->width / c->heads;
    CLV_TRY(take_size(r, "attention.key_length", CLV_LM_MOST, CLV_MAX(head, (size_t)1), &c->head));
    CLV_TRY(take_size(r, "attention.value_length", CLV_LM_MOST, c->head, &values));
    CLV_TRY(take_size(r, "rope.dimension_count", CLV_LM_MOST, c->head, &c->turned));
    if (values != c->head)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "%s: the heads have keys of %zu terms and values of %zu, which is not "
                        "supported; they must be equal",
                        r->path, c->head, values);
    return CLV_OK;
}

static clv_status take_config(reader *r)
{
    clv_lm_config *c = &r->m->config;
    const clv_gguf_tensor *words = clv_gguf_tensor_find(r->file, "token_embd.weight");
    double eps;
    clv_gguf_value v;
    char full[96];
    CLV_TRY(take_architecture(r));
    CLV_TRY(refuse_others(r));
    CLV_TRY(take_size(r, "block_count", CLV_LM_LAYERS_MOST, 0, &c->layers));
    CLV_TRY(take_size(r, "embedding_length", CLV_LM_MOST, 0, &c->width));
    CLV_TRY(take_size(r, "feed_forward_length", CLV_LM_MOST, 0, &c->ffn));
    CLV_TRY(take_size(r, "context_length", CLV_LM_MOST, 0, &c->context));
    CLV_TRY(take_heads(r, c));
    CLV_TRY(take_number(r, "attention.layer_norm_rms_epsilon", 0, &eps));
    CLV_TRY(take_number(r, "rope.freq_base", 1e4, &c->base));
    c->stretch = c->swell = 1;
    c->eps = (float)eps;
    const bool windowed = look_up(r, "attention.sliding_window", full, &v);
    if (windowed && !(is_whole(v.type) && v.whole == 0))
        CLV_TRY(take_size(r, "attention.sliding_window", CLV_LM_MOST, 0, &c->window));
    if (!words)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"token_embd.weight\" is missing%s", r->path,
                        clv_gguf_tensor_count(r->file) ? "" : ": the file holds a vocabulary only");
    if (words->extent[1] > CLV_LM_MOST)
        return clv_fail(CLV_E_FORMAT, "%s: the word table has %llu rows; expected at most %d",
                        r->path, (unsigned long long)words->extent[1], CLV_LM_MOST);
    c->vocabulary = (size_t)words->extent[1];
    c->neighbours =
        strcmp(r->architecture, "llama") == 0 || strcmp(r->architecture, "mistral") == 0;
    c->head_norm = strcmp(r->architecture, "qwen3") == 0;
    c->tied = !clv_gguf_tensor_find(r->file, "output.weight");
    if (clv_gguf_get(r->file, "general.name", &v) && v.type == CLV_GGUF_STRING)
        snprintf(c->name, sizeof c->name, "%.*s", (int)CLV_MIN(v.length, sizeof c->name - 1),
                 v.text);
    CLV_TRY(clv_lm_check_config(r->path, c));
    CLV_TRY(take_scaling(r, c));
    return clv_lm_check_config(r->path, c);
}

/* ---- tensors -------------------------------------------------------------------------------------- */

static clv_status take_tensor(const reader *r, const char *name, const clv_lm_need *need,
                              bool vector, clv_lm_tensor *out)
{
    const clv_gguf_tensor *t = clv_gguf_tensor_find(r->file, name);
    if (!t && need->optional) return CLV_OK;
    if (!t) return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is missing", r->path, name);
    if (t->extent[0] != need->columns || t->extent[1] != need->rows ||
        t->extent[2] * t->extent[3] != 1)
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\" has the shape [%llu,%llu], expected [%zu,%zu]", r->path,
                        name, (unsigned long long)t->extent[0], (unsigned long long)t->extent[1],
                        need->columns, need->rows);
    const clv_quant_facts *facts = clv_quant_get_facts(t->type);
    if (!facts->supported)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "%s: tensor \"%s\" is of type %s (%u), which is not supported", r->path,
                        name, facts->name, (unsigned)t->type);
    if (vector && t->type != CLV_QUANT_F32 && t->type != CLV_QUANT_F16 && t->type != CLV_QUANT_BF16)
        return clv_fail(CLV_E_UNSUPPORTED, "%s: tensor \"%s\" is of type %s, expected F32", r->path,
                        name, facts->name);
    *out = (clv_lm_tensor){ .name = t->name,
                            .type = (clv_quant)t->type,
                            .rows = need->rows,
                            .columns = need->columns,
                            .bytes = t->bytes,
                            .block = t };
    return CLV_OK;
}

static clv_status take_tensors(reader *r)
{
    clv_lm_model *m = r->m;
    const clv_lm_config *c = &m->config;
    /* each layer has about a dozen tensors, so that the file's number of tensors bounds the memory taken here */
    if (c->layers > clv_gguf_tensor_count(r->file))
        return clv_fail(CLV_E_FORMAT, "%s: there are too many tensors: %zu layers of %zu tensors",
                        r->path, c->layers, clv_gguf_tensor_count(r->file));
    m->layers = clv_zalloc(c->layers, sizeof *m->layers);
    if (!m->layers) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    for (clv_lm_role role = 0; role < CLV_LM_MODEL_ROLES; ++role) {
        const clv_lm_need need = clv_lm_needed(c, role);
        CLV_TRY(take_tensor(r, need.gguf, &need, need.rows == 1, &m->top[role]));
    }
    for (size_t l = 0; l < c->layers; ++l)
        for (clv_lm_role role = CLV_LM_MODEL_ROLES; role < CLV_LM_ROLES; ++role) {
            const clv_lm_need need = clv_lm_needed(c, role);
            char name[64];
            snprintf(name, sizeof name, "blk.%zu.%s", l, need.gguf);
            CLV_TRY(take_tensor(r, name, &need, need.rows == 1, &m->layers[l][role]));
        }
    return CLV_OK;
}

/* Rejects a file with a tensor that this decoder does not use: to ignore a weight would silently compute another
 * model. */
static clv_status refuse_unused(const reader *r)
{
    const clv_gguf_tensor *first = clv_gguf_tensor_at(r->file, 0);
    const size_t count = clv_gguf_tensor_count(r->file);
    bool *used = clv_zalloc(count, sizeof *used);
    if (!used) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i)
        if (r->m->top[i].block) used[r->m->top[i].block - first] = true;
    for (size_t l = 0; l < r->m->config.layers; ++l)
        for (size_t i = CLV_LM_MODEL_ROLES; i < CLV_LM_ROLES; ++i)
            if (r->m->layers[l][i].block) used[r->m->layers[l][i].block - first] = true;
    const char *name = NULL;
    for (size_t i = 0; i < count && !name; ++i)
        if (!used[i] && !strstr(first[i].name, "rot_embd")) name = first[i].name;
    clv_free(used);
    if (!name) return CLV_OK;
    return clv_fail(CLV_E_UNSUPPORTED,
                    "%s: tensor \"%s\" has no place in a model of architecture %s", r->path, name,
                    r->architecture);
}

/* ---- texts ---------------------------------------------------------------------------------------- */

static clv_status take_template(const reader *r)
{
    clv_gguf_value v;
    if (!clv_gguf_get(r->file, "tokenizer.chat_template", &v)) return CLV_OK;
    if (v.type != CLV_GGUF_STRING || memchr(v.text, 0, v.length))
        return clv_fail(CLV_E_FORMAT, "%s: tokenizer.chat_template is not a string", r->path);
    r->m->chat_template = clv_alloc(v.length + 1, 1);
    if (!r->m->chat_template) return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
    memcpy(r->m->chat_template, v.text, v.length);
    r->m->chat_template[v.length] = '\0';
    return CLV_OK;
}

static clv_status take_ends(const reader *r)
{
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    for (size_t i = 0; i < CLV_LEN(keys); ++i) {
        clv_gguf_value v;
        if (!clv_gguf_get(r->file, keys[i], &v)) continue;
        if (!is_whole(v.type) || v.whole < 0 || (uint64_t)v.whole >= r->m->config.vocabulary)
            return clv_fail(CLV_E_FORMAT, "%s: %s is %lld, expected an id below %zu", r->path,
                            keys[i], (long long)v.whole, r->m->config.vocabulary);
        CLV_TRY(clv_lm_add_end(r->m, v.whole));
    }
    return CLV_OK;
}

clv_status clv_lm_read_gguf(clv_lm_model *m)
{
    CLV_TRY(clv_gguf_open(m->path, &m->gguf));
    reader r = { m, m->gguf, m->path, NULL };
    CLV_TRY(take_config(&r));
    CLV_TRY(take_tensors(&r));
    CLV_TRY(refuse_unused(&r));
    if (!m->texts) return take_ends(&r);
    const clv_tokenizer_options options = { .size = sizeof options, .replace_invalid = true };
    CLV_TRY(clv_tokenizer_open_gguf(m->gguf, &options, &m->tokenizer));
    CLV_TRY(take_ends(&r));
    return take_template(&r);
}

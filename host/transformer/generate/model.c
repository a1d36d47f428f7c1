/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and reads a language model's files, whether a GGUF file or a folder. */
#define _GNU_SOURCE
#include "host/transformer/generate/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "base/quant.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Adds the control tokens that end an answer in any known family of models, even if the file does not list them as
 * such. */
static clv_status add_known_ends(clv_lm_model *m)
{
    static const char *const names[] = { "<|im_end|>",      "<|eot_id|>",    "<|endoftext|>",
                                         "<|end_of_text|>", "<end_of_turn>", "</s>",
                                         "<|end|>" };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        const int32_t id = clv_tokenizer_find(m->tokenizer, names[i]);
        if (clv_tokenizer_type(m->tokenizer, id) == CLV_TOKEN_CONTROL)
            CLV_TRY(clv_lm_add_end(m, id));
    }
    return CLV_OK;
}

static clv_status check_vocabulary(const clv_lm_model *m)
{
    clv_tokenizer_info info = { .size = sizeof info };
    clv_tokenizer_get_info(m->tokenizer, &info);
    if (info.vocabulary <= m->config.vocabulary) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the vocabulary has %zu tokens, but the word table has %zu rows", m->path,
                    info.vocabulary, m->config.vocabulary);
}

/* ---- reading --------------------------------------------------------------------------------------- */

size_t clv_lm_row_bytes(const clv_lm_tensor *t)
{
    const clv_quant_facts *facts = clv_quant_get_facts(t->type);
    return t->columns / facts->count * facts->bytes;
}

static bool is_wide(const clv_lm_tensor *t) /* F64 */
{
    return t->plain && t->plain->type == CLV_TENSOR_F64;
}

clv_status clv_lm_read(const clv_lm_model *m, const clv_lm_tensor *t, size_t first, size_t count,
                       void *out)
{
    const size_t row = clv_lm_row_bytes(t);
    if (t->block) return clv_gguf_read(m->gguf, t->block, (uint64_t)first * row, out, count * row);
    const clv_tensors *file = m->shards[t->file];
    if (is_wide(t) || t->type == CLV_QUANT_F32)
        return clv_tensors_read_f32(file, t->plain, first * t->columns, count * t->columns, out);
    return clv_tensors_read_part(file, t->plain, (uint64_t)first * row, out, count * row);
}

clv_status clv_lm_read_vector(const clv_lm_model *m, const clv_lm_tensor *t, float *out)
{
    if (t->block) return clv_gguf_read_f32(m->gguf, t->block, 0, t->columns, out);
    return clv_tensors_read_f32(m->shards[t->file], t->plain, 0, t->columns, out);
}

/* Reads the divisors of rotary frequencies that some models store as a tensor. */
static clv_status read_factors(clv_lm_model *m)
{
    const clv_lm_tensor *t = &m->top[CLV_LM_FACTORS];
    if (!t->name) return CLV_OK;
    const bool scaled = m->factors != NULL; /* then the factors of both sources are multiplied */
    if (!scaled) m->factors = clv_alloc(t->columns, sizeof *m->factors);
    float *values = clv_alloc(t->columns, sizeof *values);
    clv_status status = m->factors && values ? clv_lm_read_vector(m, t, values)
                                             : clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    for (size_t i = 0; i < t->columns && !status; ++i)
        if (values[i] > 0 && !isinf(values[i]))
            m->factors[i] = (scaled ? m->factors[i] : 1) * (double)values[i];
        else
            status = clv_fail(CLV_E_FORMAT, "%s: %s[%zu] is %g, expected a number above 0", m->path,
                              t->name, i, (double)values[i]);
    clv_free(values);
    return status;
}

/* Writes the number of tensors of each type to m->types as a text, the type with the most bytes first. */
static void name_types(clv_lm_model *m)
{
    enum { TYPES = 64 };
    size_t tensors[TYPES] = { 0 }, length = 0;
    uint64_t bytes[TYPES] = { 0 };
    for (size_t l = 0; l <= m->config.layers; ++l)
        for (size_t i = l ? CLV_LM_MODEL_ROLES : 0; i < (l ? CLV_LM_ROLES : CLV_LM_MODEL_ROLES);
             ++i) {
            const clv_lm_tensor *t = l ? &m->layers[l - 1][i] : &m->top[i];
            if (!t->name || (unsigned)t->type >= TYPES) continue;
            ++tensors[t->type];
            bytes[t->type] += t->bytes;
        }
    for (;;) {
        size_t most = 0;
        for (size_t i = 1; i < TYPES; ++i)
            if (bytes[i] > bytes[most]) most = i;
        if (!bytes[most] || length + 40 > sizeof m->types) return;
        length += (size_t)snprintf(m->types + length, sizeof m->types - length, "%s%zu %s",
                                   length ? ", " : "", tensors[most],
                                   clv_quant_get_facts((clv_quant)most)->name);
        bytes[most] = 0;
    }
}

static void count_weights(clv_lm_model *m)
{
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i) {
        m->bytes += m->top[i].bytes;
        if (i != CLV_LM_FACTORS) m->parameters += (uint64_t)m->top[i].rows * m->top[i].columns;
    }
    for (size_t l = 0; l < m->config.layers; ++l)
        for (size_t i = CLV_LM_MODEL_ROLES; i < CLV_LM_ROLES; ++i) {
            const clv_lm_tensor *t = &m->layers[l][i];
            m->bytes += t->bytes;
            if (t->name) m->parameters += (uint64_t)t->rows * t->columns;
        }
}

static clv_status open_all(const char *path, clv_lm_model *m)
{
    struct stat info;
    if (stat(path, &info))
        return clv_fail(
            CLV_E_IO,
            "%s: cannot open the model: %s; expected a GGUF file or a folder with config.json",
            path, strerror(errno));
    CLV_TRY(S_ISDIR(info.st_mode) ? clv_lm_read_folder(m) : clv_lm_read_gguf(m));
    if (m->texts) CLV_TRY(check_vocabulary(m));
    if (m->texts) CLV_TRY(add_known_ends(m));
    CLV_TRY(read_factors(m));
    count_weights(m);
    name_types(m);
    return CLV_OK;
}

clv_status clv_lm_open(const char *path, bool texts, clv_lm_model **out)
{
    *out = NULL;
    clv_lm_model *m = clv_zalloc(1, sizeof *m);
    if (m) m->path = clv_strdup(path), m->texts = texts;
    clv_status status =
        m && m->path ? open_all(path, m) : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    if (status)
        clv_lm_close(m);
    else
        *out = m;
    return status;
}

void clv_lm_close(clv_lm_model *m)
{
    if (!m) return;
    clv_tokenizer_close(m->tokenizer);
    clv_gguf_close(m->gguf);
    for (size_t i = 0; m->shards && i < m->shard_count; ++i)
        clv_tensors_close(m->shards[i]);
    clv_free(m->shards), clv_free(m->layers), clv_free(m->factors);
    clv_free(m->chat_template), clv_free(m->path);
    clv_free(m);
}

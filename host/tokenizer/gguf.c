/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tokenizer from the metadata of a GGUF file. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

#include <string.h>

#define KEY "tokenizer.ggml."

typedef struct reader {
    clv_tokenizer *t;
    const clv_gguf *file;
    const char *path;
    uint64_t count; /* number of tokens */
    uint64_t rows;  /* rows of the word table if the file has one; ids must be below */
} reader;

/* ---- values of a checked type -------------------------------------------------------------------- */

static bool is_whole(clv_gguf_type type)
{
    return type != CLV_GGUF_F32 && type != CLV_GGUF_F64 && type != CLV_GGUF_STRING &&
           type != CLV_GGUF_ARRAY && type != CLV_GGUF_BOOL;
}

static bool text_is(const clv_gguf_value *v, const char *text)
{
    return v->length == strlen(text) && memcmp(v->text, text, v->length) == 0;
}

static clv_status take_text(const reader *r, const char *key, clv_gguf_value *v)
{
    if (!clv_gguf_get(r->file, key, v))
        return clv_fail(CLV_E_FORMAT, "%s: the key %s is missing; the model has no vocabulary",
                        r->path, key);
    if (v->type != CLV_GGUF_STRING)
        return clv_fail(CLV_E_FORMAT, "%s: %s is not a string", r->path, key);
    return CLV_OK;
}

static clv_status take_flag(const reader *r, const char *key, bool fallback, bool *out)
{
    clv_gguf_value v;
    *out = fallback;
    if (!clv_gguf_get(r->file, key, &v)) return CLV_OK;
    if (v.type != CLV_GGUF_BOOL)
        return clv_fail(CLV_E_FORMAT, "%s: %s is not a bool", r->path, key);
    *out = v.whole != 0;
    return CLV_OK;
}

/* Reads an id. If the file lacks the key, *out is `fallback`, or -1 if that is not the id of a token. */
static clv_status take_id(const reader *r, const char *key, int32_t fallback, int32_t *out)
{
    clv_gguf_value v;
    const uint64_t ids = CLV_MAX(r->count, r->rows);
    *out = fallback >= 0 && (uint64_t)fallback < r->count ? fallback : -1;
    if (!clv_gguf_get(r->file, key, &v)) return CLV_OK;
    if (!is_whole(v.type) || v.whole < 0 || (uint64_t)v.whole >= ids)
        return clv_fail(CLV_E_FORMAT, "%s: %s is %lld, expected an id below %llu", r->path, key,
                        (long long)v.whole, (unsigned long long)ids);
    *out = (int32_t)v.whole;
    return CLV_OK;
}

/* Reads an array of `count` elements of type `type` (UINT64_MAX: of any length). *there is false if the file has no
 * such key, which is an error if `needed` is set. */
static clv_status take_array(const reader *r, const char *key, clv_gguf_type type, uint64_t count,
                             bool needed, clv_gguf_value *v, bool *there)
{
    *there = clv_gguf_get(r->file, key, v);
    if (!*there && !needed) return CLV_OK;
    if (!*there) return clv_fail(CLV_E_FORMAT, "%s: the key %s is missing", r->path, key);
    if (v->type != CLV_GGUF_ARRAY || v->of != type)
        return clv_fail(CLV_E_FORMAT, "%s: %s is not an array of %s", r->path, key,
                        type == CLV_GGUF_STRING ? "texts"
                        : type == CLV_GGUF_F32  ? "f32"
                                                : "i32");
    if (v->count != count && count != UINT64_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: %s has %llu elements, but there are %llu tokens",
                        r->path, key, (unsigned long long)v->count, (unsigned long long)count);
    return CLV_OK;
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static clv_status take_tokens(reader *r)
{
    clv_gguf_value tokens, token;
    bool there;
    CLV_TRY(take_array(r, KEY "tokens", CLV_GGUF_STRING, UINT64_MAX, true, &tokens, &there));
    r->count = tokens.count;
    if (!r->count || r->count > CLV_PIECE_ID_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: there are %llu tokens; expected 1 to %d", r->path,
                        (unsigned long long)r->count, CLV_PIECE_ID_MAX);
    for (int64_t id = 0; clv_gguf_next(&tokens, &token); ++id)
        CLV_TRY(clv_pieces_add(&r->t->pieces, r->path, token.text, token.length, id));
    return CLV_OK;
}

static clv_status take_types(reader *r)
{
    clv_gguf_value types, type;
    bool there;
    CLV_TRY(take_array(r, KEY "token_type", CLV_GGUF_I32, r->count, false, &types, &there));
    r->t->types = clv_alloc((size_t)r->count, 1);
    if (!r->t->types)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the vocabulary", r->path);
    memset(r->t->types, CLV_TOKEN_NORMAL, (size_t)r->count);
    for (size_t i = 0; there && clv_gguf_next(&types, &type); ++i) {
        if (type.whole < 0 || type.whole > CLV_TOKEN_BYTE)
            return clv_fail(CLV_E_FORMAT, "%s: token %zu is of type %lld, expected 0 to %d",
                            r->path, i, (long long)type.whole, CLV_TOKEN_BYTE);
        r->t->types[i] = type.whole ? (unsigned char)type.whole : CLV_TOKEN_NORMAL;
    }
    return CLV_OK;
}

static clv_status take_scores(reader *r)
{
    clv_gguf_value scores, score;
    bool there;
    const bool needed = r->t->kind == CLV_TOKENIZER_SENTENCEPIECE;
    CLV_TRY(take_array(r, KEY "scores", CLV_GGUF_F32, r->count, needed, &scores, &there));
    if (!there || !needed) return CLV_OK;
    r->t->scores = clv_alloc((size_t)r->count, sizeof *r->t->scores);
    if (!r->t->scores)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the vocabulary", r->path);
    for (size_t i = 0; clv_gguf_next(&scores, &score); ++i) {
        if (!(score.number >= -1e30 && score.number <= 1e30))
            return clv_fail(CLV_E_FORMAT, "%s: the score of token %zu is %g, but it must be finite",
                            r->path, i, score.number);
        r->t->scores[i] = (float)score.number;
    }
    return CLV_OK;
}

/* Adds the special tokens, for which texts are searched. */
static clv_status add_specials(const reader *r)
{
    clv_tokenizer *t = r->t;
    for (size_t i = 0; i < r->count; ++i) {
        const char *text = clv_pieces_text(&t->pieces, (int32_t)i);
        const bool user = t->types[i] == CLV_TOKEN_USER;
        if (!*text || (!user && t->types[i] != CLV_TOKEN_CONTROL)) continue;
        const clv_special special = { .text = (char *)(uintptr_t)text,
                                      .id = (int32_t)i,
                                      .plain = user };
        CLV_TRY(clv_tokenizer_add(t, r->path, &special));
    }
    return CLV_OK;
}

/* ---- byte pair encoding -------------------------------------------------------------------------- */

static clv_status take_merge(const reader *r, const clv_gguf_value *line, size_t i, size_t *skipped)
{
    const char *text = line->text;
    const char *space = line->length > 1 ? memchr(text + 1, ' ', line->length - 1) : NULL;
    const size_t left = space ? (size_t)(space - text) : 0;
    if (!space || *text == ' ' || left + 1 == line->length ||
        memchr(space + 1, ' ', line->length - left - 1))
        return clv_fail(CLV_E_FORMAT,
                        "%s: merge %zu is \"%.*s\", expected two pieces with a space between",
                        r->path, i, (int)CLV_MIN(line->length, (size_t)60), text);
    return clv_bpe_merge_line(r->t, r->path, text, left, space + 1, line->length - left - 1,
                              (uint32_t)i, skipped);
}

static clv_status take_merges(const reader *r)
{
    clv_gguf_value merges, line;
    bool there;
    size_t skipped = 0;
    CLV_TRY(take_array(r, KEY "merges", CLV_GGUF_STRING, UINT64_MAX, true, &merges, &there));
    if (merges.count > CLV_PIECE_ID_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: there are %llu merges; expected at most %d", r->path,
                        (unsigned long long)merges.count, CLV_PIECE_ID_MAX);
    CLV_TRY(clv_bpe_make_merges(r->t, r->path, (size_t)merges.count));
    for (size_t i = 0; clv_gguf_next(&merges, &line); ++i)
        CLV_TRY(take_merge(r, &line, i, &skipped));
    if (skipped)
        clv_log(CLV_LOG_WARN,
                "%s: %zu merges name pieces that are not in the vocabulary; they are left out",
                r->path, skipped);
    return CLV_OK;
}

/* The rules that split texts into words. Files name them; several names may mean the same rule. */
typedef enum word_rule { GPT2, NUMBERS, LLAMA3, QWEN2 } word_rule;

static const struct {
    const char *name;
    word_rule rule;
} names[] = {
    { "gpt-2", GPT2 },
    { "phi-2", GPT2 },
    { "mpt", GPT2 },
    { "olmo", GPT2 },
    { "jais", GPT2 },
    { "mellum", GPT2 },
    { "smollm", NUMBERS },
    { "starcoder", NUMBERS },
    { "refact", NUMBERS },
    { "codeshell", NUMBERS },
    { "command-r", NUMBERS },
    { "minerva-7b", NUMBERS },
    { "llama-bpe", LLAMA3 },
    { "llama3", LLAMA3 },
    { "llama-v3", LLAMA3 },
    { "falcon3", LLAMA3 },
    { "pixtral", LLAMA3 },
    { "qwen2", QWEN2 },
    { "deepseek-r1-qwen", QWEN2 },
    { "megrez", QWEN2 },
};

static void set_rule(clv_tokenizer *t, word_rule rule)
{
    static const clv_split number = { .kind = CLV_SPLIT_NUMBERS, .most = 1 };
    static const clv_split words = { .kind = CLV_SPLIT_WORDS, .contractions = true };
    clv_split lines = { .kind = CLV_SPLIT_WORDS,
                        .contractions = true,
                        .any_case = true,
                        .any_lead = true,
                        .lines = true,
                        .most = rule == LLAMA3 ? 3 : 1 };
    t->byte_level = true;
    t->whole_words = rule == LLAMA3;
    if (rule == QWEN2) t->normal[t->normal_count++].kind = CLV_NORMAL_NFC;
    if (rule == NUMBERS) t->split[t->split_count++] = number;
    t->split[t->split_count++] = rule == LLAMA3 || rule == QWEN2 ? lines : words;
}

static clv_status take_rule(const reader *r, bool *adds_bos)
{
    clv_gguf_value v;
    *adds_bos = false;
    if (!clv_gguf_get(r->file, KEY "pre", &v)) {
        clv_log(CLV_LOG_WARN,
                "%s: %spre does not say how texts are split into words; assuming gpt-2, which may "
                "be wrong",
                r->path, KEY);
        set_rule(r->t, GPT2);
        return CLV_OK;
    }
    if (v.type != CLV_GGUF_STRING)
        return clv_fail(CLV_E_FORMAT, "%s: %spre is not a string", r->path, KEY);
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (text_is(&v, names[i].name)) {
            *adds_bos = names[i].rule == LLAMA3;
            set_rule(r->t, names[i].rule);
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: %spre is \"%.*s\", which is not supported; supported are gpt-2, smollm, "
                    "llama-bpe, qwen2 and their variants",
                    r->path, KEY, (int)CLV_MIN(v.length, (size_t)40), v.text);
}

/* ---- SentencePiece ------------------------------------------------------------------------------- */

#define MARK "\xE2\x96\x81" /* U+2581, which stands for a space */

static clv_status take_spaces(const reader *r)
{
    static const clv_normal front = { .kind = CLV_NORMAL_PREPEND, .to = MARK };
    static const clv_normal spaces = { .kind = CLV_NORMAL_REPLACE, .from = " ", .to = MARK };
    clv_tokenizer *t = r->t;
    bool prefix;
    CLV_TRY(take_flag(r, KEY "add_space_prefix", true, &prefix));
    if (prefix) t->normal[t->normal_count++] = front;
    t->normal[t->normal_count++] = spaces;
    t->strip_first = prefix;
    t->bytes_as_hex = true;
    return CLV_OK;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static clv_status take_specials(const reader *r, bool adds_bos)
{
    clv_tokenizer *t = r->t;
    const bool pieces = t->kind == CLV_TOKENIZER_SENTENCEPIECE;
    bool adds_eos;
    const struct {
        const char *key;
        int32_t fallback, *out;
    } ids[] = { { KEY "bos_token_id", pieces ? 1 : -1, &t->bos },
                { KEY "eos_token_id", pieces ? 2 : -1, &t->eos },
                { KEY "unknown_token_id", pieces ? 0 : -1, &t->unk },
                { KEY "padding_token_id", -1, &t->pad },
                { KEY "seperator_token_id", -1, &t->sep },
                { KEY "cls_token_id", -1, &t->cls },
                { KEY "mask_token_id", -1, &t->mask } };
    for (size_t i = 0; i < CLV_LEN(ids); ++i)
        CLV_TRY(take_id(r, ids[i].key, ids[i].fallback, ids[i].out));
    CLV_TRY(take_flag(r, KEY "add_bos_token", adds_bos, &adds_bos));
    CLV_TRY(take_flag(r, KEY "add_eos_token", false, &adds_eos));
    if ((adds_bos && t->bos < 0) || (adds_eos && t->eos < 0))
        return clv_fail(
            CLV_E_FORMAT,
            "%s: a token is to be added at the start or end of texts, but %s%s is missing", r->path,
            KEY, adds_bos && t->bos < 0 ? "bos_token_id" : "eos_token_id");
    t->before[0] = t->bos, t->before_count = adds_bos;
    t->after[0] = t->eos, t->after_count = adds_eos;
    return CLV_OK;
}

clv_status clv_tokenizer_from_gguf(clv_tokenizer *t, const clv_gguf *file)
{
    const clv_gguf_tensor *words = clv_gguf_tensor_find(file, "token_embd.weight");
    reader r = { t, file, clv_gguf_path(file), 0, words ? words->extent[1] : 0 };
    clv_gguf_value model;
    bool adds_bos = true;
    CLV_TRY(take_text(&r, KEY "model", &model));
    const bool pieces = text_is(&model, "llama");
    if (!pieces && !text_is(&model, "gpt2"))
        return clv_fail(CLV_E_FORMAT, "%s: %smodel is \"%.*s\", expected gpt2 or llama", r.path,
                        KEY, (int)CLV_MIN(model.length, (size_t)40), model.text);
    t->kind = pieces ? CLV_TOKENIZER_SENTENCEPIECE : CLV_TOKENIZER_BPE;
    CLV_TRY(take_tokens(&r));
    CLV_TRY(take_types(&r));
    CLV_TRY(take_scores(&r));
    CLV_TRY(pieces ? take_spaces(&r) : take_rule(&r, &adds_bos));
    CLV_TRY(take_specials(&r, adds_bos));
    CLV_TRY(add_specials(&r));
    CLV_TRY(clv_bpe_finish(t, r.path));
    return pieces ? CLV_OK : take_merges(&r);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the normalizers of tokenizer.json, and the pieces of a Unigram model. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"

#include <math.h>
#include <string.h>

static bool is(const clv_json *object, const char *type)
{
    return strcmp(clv_json_string(clv_json_get(object, "type"), ""), type) == 0;
}

clv_status clv_tokenizer_take_mark(const char *what, const clv_json *object, const char *key,
                                   bool empty, char out[8])
{
    const clv_json *value = clv_json_get(object, key);
    const char *text = clv_json_string(value, NULL);
    if (!text || (!*text && !empty) || strlen(text) >= 8)
        return clv_tokenizer_refuse(what, key, value, "a text of 1 to 7 bytes");
    memcpy(out, text, strlen(text) + 1);
    return CLV_OK;
}

clv_status clv_tokenizer_take_bert(const char *what, const clv_json *n, clv_char_flags *flags)
{
    bool clean;
    CLV_TRY(clv_tokenizer_flag(what, n, "clean_text", true, &clean));
    CLV_TRY(clv_tokenizer_flag(what, n, "handle_chinese_chars", true, &flags->cjk));
    CLV_TRY(clv_tokenizer_flag(what, n, "lowercase", true, &flags->lower));
    CLV_TRY(clv_tokenizer_flag(what, n, "strip_accents", flags->lower, &flags->strip));
    if (!clean)
        return clv_fail(CLV_E_FORMAT, "%s: clean_text is false; only true is supported", what);
    return CLV_OK;
}

/* Reads a normalizer that replaces a text, or two or more spaces, by another text. */
static clv_status take_replace(const char *what, const clv_json *n, clv_normal *out)
{
    const clv_json *pattern = clv_json_get(n, "pattern"), *regex = clv_json_get(pattern, "Regex");
    CLV_TRY(clv_tokenizer_take_mark(what, n, "content", true, out->to));
    if (!regex) {
        out->kind = CLV_NORMAL_REPLACE;
        return clv_tokenizer_take_mark(what, pattern, "String", false, out->from);
    }
    out->kind = CLV_NORMAL_SPACES;
    if (strcmp(clv_json_string(regex, ""), " {2,}") == 0) return CLV_OK;
    return clv_tokenizer_refuse(what, "the regular expression of a Replace", regex, "\" {2,}\"");
}

static clv_status take_charsmap(clv_tokenizer *t, const char *what, const clv_json *n)
{
    const clv_json *value = clv_json_get(n, "precompiled_charsmap");
    if (t->charsmap.units)
        return clv_fail(CLV_E_FORMAT,
                        "%s: there are two Precompiled normalizers; only one is supported", what);
    if (!clv_json_is_string(value))
        return clv_tokenizer_refuse(what, "precompiled_charsmap", value, "text");
    return clv_charsmap_open(&t->charsmap, what, clv_json_string(value, ""));
}

static clv_status add_normal(clv_tokenizer *t, const char *what, const clv_json *n)
{
    static const struct {
        const char *type;
        clv_normal_kind kind;
    } kinds[] = { { "NFC", CLV_NORMAL_NFC },
                  { "NFD", CLV_NORMAL_NFD },
                  { "NFKC", CLV_NORMAL_NFKC },
                  { "NFKD", CLV_NORMAL_NFKD },
                  { "Lowercase", CLV_NORMAL_LOWER },
                  { "StripAccents", CLV_NORMAL_ACCENTS },
                  { "Strip", CLV_NORMAL_STRIP },
                  { "Prepend", CLV_NORMAL_PREPEND },
                  { "Replace", CLV_NORMAL_REPLACE },
                  { "Precompiled", CLV_NORMAL_CHARSMAP },
                  { "BertNormalizer", CLV_NORMAL_BERT } };
    if (t->normal_count == CLV_STAGES_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: there are more than %d normalizers", what,
                        CLV_STAGES_MAX);
    clv_normal *out = &t->normal[t->normal_count];
    size_t i = 0;
    while (i < CLV_LEN(kinds) && !is(n, kinds[i].type))
        ++i;
    if (i == CLV_LEN(kinds))
        return clv_tokenizer_refuse(what, "the type of a normalizer", clv_json_get(n, "type"),
                                    "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, "
                                    "Precompiled, BertNormalizer, Prepend or Replace");
    out->kind = kinds[i].kind;
    if (out->kind == CLV_NORMAL_PREPEND)
        CLV_TRY(clv_tokenizer_take_mark(what, n, "prepend", false, out->to));
    if (out->kind == CLV_NORMAL_REPLACE) CLV_TRY(take_replace(what, n, out));
    if (out->kind == CLV_NORMAL_CHARSMAP) CLV_TRY(take_charsmap(t, what, n));
    if (out->kind == CLV_NORMAL_BERT) CLV_TRY(clv_tokenizer_take_bert(what, n, &out->bert));
    if (out->kind == CLV_NORMAL_STRIP) {
        CLV_TRY(clv_tokenizer_flag(what, n, "strip_left", true, &out->left));
        CLV_TRY(clv_tokenizer_flag(what, n, "strip_right", true, &out->right));
    }
    ++t->normal_count;
    return CLV_OK;
}

static clv_status add_normals(clv_tokenizer *t, const char *what, const clv_json *n)
{
    if (clv_folder_absent(n)) return CLV_OK;
    if (!is(n, "Sequence")) return add_normal(t, what, n);
    const clv_json *list = clv_json_get(n, "normalizers");
    for (size_t i = 0; i < clv_json_count(list); ++i)
        CLV_TRY(add_normal(t, what, clv_json_at(list, i)));
    return CLV_OK;
}

clv_status clv_tokenizer_take_normalizer(clv_tokenizer *t, const char *what, const clv_json *n)
{
    /* lower case comes before the other normalizers */
    if (t->lower_asked) t->normal[t->normal_count++].kind = CLV_NORMAL_LOWER;
    return add_normals(t, what, n);
}

/* ---- Unigram -------------------------------------------------------------------------------------- */

clv_status clv_tokenizer_take_unigram(clv_tokenizer *t, const char *what, const clv_json *model)
{
    /* the score of an unknown character is this much below the worst piece's */
    enum { PENALTY = 10 };
    const clv_json *list = clv_json_get(model, "vocab");
    const size_t count = clv_json_count(list);
    int64_t unknown;
    double least = INFINITY;
    if (!clv_json_is_array(list) || !count || count > CLV_PIECE_ID_MAX)
        return clv_tokenizer_refuse(what, "vocab", list, "a list of pieces with scores");
    t->kind = CLV_TOKENIZER_UNIGRAM;
    t->weights = clv_alloc(count, sizeof *t->weights);
    if (!t->weights)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu scores", what, count);
    for (size_t i = 0; i < count; ++i) {
        const clv_json *pair = clv_json_at(list, i), *score = clv_json_at(pair, 1);
        const char *piece = clv_json_string(clv_json_at(pair, 0), NULL);
        if (!piece || !clv_json_is_number(score) || clv_json_count(pair) != 2)
            return clv_fail(CLV_E_FORMAT, "%s: vocab[%zu] is not a pair of a piece and its score",
                            what, i);
        CLV_TRY(clv_pieces_add(&t->pieces, what, piece, strlen(piece), (int64_t)i));
        t->weights[i] = clv_json_number(score, 0);
        least = fmin(least, t->weights[i]);
    }
    CLV_TRY(clv_folder_int(what, model, "unk_id", 0, (int64_t)count - 1, -1, &unknown));
    t->unk = (int32_t)unknown;
    t->unknown_weight = least - PENALTY;
    return clv_tokenizer_flag(what, model, "byte_fallback", false, &t->bytes_as_hex);
}

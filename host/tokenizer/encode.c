/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tokens of one text by byte pair encoding: cuts it at added tokens into fragments, and splits these into
 * words. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <string.h>

/* The working memory for one text, released when the text has been encoded. */
typedef struct work {
    const clv_tokenizer *t;
    clv_token_rows *rows;
    clv_bpe_work *bpe;
    clv_text repaired, normal[2], meta;
    bool first;     /* the current fragment begins the text */
    bool text_only; /* late special tokens are treated as text */
} work;

static clv_status no_memory(size_t length)
{
    return clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for a text of %zu bytes", length);
}

/* Replaces spaces by marks, and puts a mark in front if the rule `s` requires it. */
static clv_status add_marks(work *k, const clv_split *s, const char **text, size_t *length)
{
    const size_t mark = strlen(s->mark);
    const bool begins = *length >= mark && memcmp(*text, s->mark, mark) == 0;
    clv_text_restart(&k->meta);
    if (s->prefix && (k->first || !s->first_only) && **text != ' ' && !begins)
        clv_text_bytes(&k->meta, s->mark, mark);
    for (size_t i = 0; i < *length; ++i)
        clv_text_bytes(&k->meta, (*text)[i] == ' ' ? s->mark : *text + i,
                       (*text)[i] == ' ' ? mark : 1);
    if (k->meta.failed) return no_memory(*length);
    *text = clv_text_get(&k->meta);
    *length = k->meta.length;
    return CLV_OK;
}

static clv_status add_space(work *k, const char **text, size_t *length)
{
    clv_text_restart(&k->meta);
    clv_text_bytes(&k->meta, " ", 1);
    clv_text_bytes(&k->meta, *text, *length);
    if (k->meta.failed) return no_memory(*length);
    *text = clv_text_get(&k->meta);
    *length = k->meta.length;
    return CLV_OK;
}

/* Splits a text into words by the rules from number `stage` on, and appends the words' tokens. */
static clv_status split(work *k, size_t stage, const char *text, size_t length)
{
    if (stage == k->t->split_count)
        return (k->t->kind == CLV_TOKENIZER_UNIGRAM ? clv_unigram_word : clv_bpe_word)(
            k->t, k->bpe, text, length, k->rows);
    const clv_split *s = &k->t->split[stage];
    if (s->kind == CLV_SPLIT_META)
        CLV_TRY(add_marks(k, s, &text, &length));
    else if (s->prefix && *text != ' ')
        CLV_TRY(add_space(k, &text, &length));
    for (size_t at = 0, bytes; at < length; at += bytes) {
        if (s->kind == CLV_SPLIT_SPACES) {
            const size_t spaces = clv_spaces_behind(text, at, length);
            k->first = k->first && !spaces;
            if ((at = spaces) == length) break;
        }
        bytes = clv_split_next(s, text + at, length - at);
        CLV_TRY(split(k, stage + 1, text + at, bytes));
        k->first = false; /* only the word at the text's first byte begins the text */
    }
    return CLV_OK;
}

static clv_status encode_words(work *k, const char *text, size_t length)
{
    const clv_status status = length ? split(k, 0, text, length) : CLV_OK;
    if (length) k->first = false;
    return status;
}

/* Encodes a fragment between early tokens: normalises it, and finds late tokens in its normal form. */
static clv_status encode_fragment(work *k, const char *text, size_t length)
{
    size_t normal = length, from = 0;
    if (!length) return CLV_OK;
    const char *shown = clv_text_normalize(k->t, text, &normal, k->normal);
    if (!shown) return no_memory(length);
    for (size_t at = 0; at < normal && k->t->late.count;) {
        const clv_special *s =
            clv_specials_match(&k->t->late, shown, at, normal, k->text_only, NULL);
        if (!s) {
            ++at;
            continue;
        }
        CLV_TRY(encode_words(k, shown + from,
                             (s->left ? clv_spaces_before(shown, from, at) : at) - from));
        if (!clv_token_push(k->rows, s->id)) return no_memory(length);
        k->first = false;
        at += s->length;
        from = at = s->right ? clv_spaces_behind(shown, at, normal) : at;
    }
    const clv_status status = encode_words(k, shown + from, normal - from);
    k->first = false;
    return status;
}

static clv_status encode(work *k, const char *text, size_t length, bool literal,
                         const unsigned char *marks)
{
    size_t from = 0;
    for (size_t at = 0; at < length;) {
        const clv_special *s = clv_specials_match(&k->t->early, text, at, length, literal, marks);
        if (!s) {
            ++at;
            continue;
        }
        const size_t end = s->left ? clv_spaces_before(text, from, at) : at;
        CLV_TRY(encode_fragment(k, text + from, end - from));
        if (!clv_token_push(k->rows, s->id)) return no_memory(length);
        k->first = false;
        at += s->length;
        from = at = s->right ? clv_spaces_behind(text, at, length) : at;
    }
    return encode_fragment(k, text + from, length - from);
}

clv_status clv_bpe_encode(const clv_tokenizer *t, const char *text, size_t length, bool literal,
                          const unsigned char *marks, clv_token_rows *rows, size_t *bad)
{
    work k = { .t = t, .rows = rows, .first = true, .text_only = literal || marks };
    *bad = SIZE_MAX;
    const char *good = clv_text_repair(t, text, &length, &k.repaired, rows, bad);
    if ((!good && !k.repaired.failed) || (marks && good != text)) {
        clv_text_clear(&k.repaired);
        /* marks refer to the original bytes, so a text with marks is not repaired */
        return CLV_E_FORMAT;
    }
    *bad = SIZE_MAX;
    k.bpe = clv_bpe_work_create();
    clv_status status = good && k.bpe ? CLV_OK : no_memory(length);
    if (!status) status = encode(&k, good, length, literal, marks);
    clv_bpe_work_free(k.bpe);
    clv_text_clear(&k.repaired), clv_text_clear(&k.meta);
    clv_text_clear(&k.normal[0]), clv_text_clear(&k.normal[1]);
    return status;
}

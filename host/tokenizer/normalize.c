/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs invalid UTF-8 in texts, and computes the normal form for which a vocabulary was made. */
#include "host/tokenizer/tokenizer.h"

#include "base/error.h"
#include "base/unicode.h"

#include <string.h>

/* Returns the position of the first byte, from `at` on, with which no valid character begins; `length` if there is
 * none. */
static size_t find_bad(const char *text, size_t at, size_t length)
{
    while (at < length) {
        uint32_t c;
        const size_t step =
            (unsigned char)text[at] < 0x80 ? 1 : clv_utf8_decode(text + at, length - at, &c);
        if (!step) break;
        at += step;
    }
    return at;
}

const char *clv_text_repair(const clv_tokenizer *t, const char *text, size_t *length,
                            clv_text *copy, clv_token_rows *rows, size_t *bad)
{
    size_t at = find_bad(text, 0, *length), from = 0;
    if (at == *length) return text;
    *bad = at;
    if (!t->replace_invalid && !t->drop_invalid) return NULL;
    clv_text_restart(copy);
    while (at < *length) {
        const size_t part = clv_utf8_bad(text + at, *length - at);
        clv_text_bytes(copy, text + from, at - from);
        if (!t->drop_invalid) clv_text_bytes(copy, "\xEF\xBF\xBD", 3);
        rows->replaced += part;
        from = at + part;
        at = find_bad(text, from, *length);
    }
    clv_text_bytes(copy, text + from, at - from);
    *length = copy->length;
    return copy->failed ? NULL : clv_text_get(copy);
}

static void replace(const clv_normal *n, const char *text, size_t length, clv_text *out)
{
    const size_t from = strlen(n->from), to = strlen(n->to);
    size_t kept = 0;
    for (size_t at = 0; at + from <= length;) {
        if (memcmp(text + at, n->from, from) != 0) {
            ++at;
            continue;
        }
        clv_text_bytes(out, text + kept, at - kept);
        clv_text_bytes(out, n->to, to);
        kept = at += from;
    }
    clv_text_bytes(out, text + kept, length - kept);
}

/* Returns whether a text is certainly composed (NFC), because all its characters are below U+0300. */
static bool is_composed(const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if ((unsigned char)text[i] >= 0xCC) return false;
    return true;
}

/* Returns whether a text is ASCII. NFC, decompositions and the removal of marks do not change ASCII. */
static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

static bool changes_nothing(const clv_normal *n, const char *text, size_t length)
{
    switch (n->kind) {
    case CLV_NORMAL_NFC:
        return is_composed(text, length);
    case CLV_NORMAL_NFD:
    case CLV_NORMAL_NFKD:
    case CLV_NORMAL_NFKC:
    case CLV_NORMAL_ACCENTS:
        return is_ascii(text, length);
    default:
        return false;
    }
}

static void replace_spaces(const clv_normal *n, const char *text, size_t length, clv_text *out)
{
    for (size_t at = 0, run; at < length; at += run) {
        for (run = 0; at + run < length && text[at + run] == ' ';)
            ++run;
        if (run > 1)
            clv_text_bytes(out, n->to, strlen(n->to));
        else
            clv_text_bytes(out, text + at, run = 1);
    }
}

static void apply(const clv_tokenizer *t, const clv_normal *n, const char *text, size_t length,
                  clv_text *out)
{
    size_t from = 0, to = length;
    switch (n->kind) {
    case CLV_NORMAL_NFC:
    case CLV_NORMAL_NFKC:
        clv_utf8_compose(text, length, n->kind == CLV_NORMAL_NFKC, out);
        break;
    case CLV_NORMAL_NFD:
    case CLV_NORMAL_NFKD:
        clv_text_decompose(text, length, n->kind == CLV_NORMAL_NFKD, out);
        break;
    case CLV_NORMAL_PREPEND:
        clv_text_bytes(out, n->to, strlen(n->to));
        clv_text_bytes(out, text, length);
        break;
    case CLV_NORMAL_REPLACE:
        replace(n, text, length, out);
        break;
    case CLV_NORMAL_SPACES:
        replace_spaces(n, text, length, out);
        break;
    case CLV_NORMAL_LOWER:
        clv_text_lower(text, length, out);
        break;
    case CLV_NORMAL_ACCENTS:
        clv_text_drop_marks(text, length, out);
        break;
    case CLV_NORMAL_STRIP:
        if (n->left) from = clv_spaces_behind(text, 0, length);
        if (n->right) to = clv_spaces_before(text, from, length);
        clv_text_bytes(out, text + from, to - from);
        break;
    case CLV_NORMAL_CHARSMAP:
        clv_charsmap_apply(&t->charsmap, text, length, out);
        break;
    case CLV_NORMAL_BERT:
        clv_text_bert(n->bert, text, length, out);
        break;
    }
}

const char *clv_text_normalize(const clv_tokenizer *t, const char *text, size_t *length,
                               clv_text work[2])
{
    size_t next = 0;
    for (size_t i = 0; i < t->normal_count && *length; ++i) {
        const clv_normal *n = &t->normal[i];
        if (changes_nothing(n, text, *length)) continue;
        clv_text *out = &work[next];
        next = !next;
        clv_text_restart(out);
        apply(t, n, text, *length, out);
        if (out->failed) return NULL;
        text = clv_text_get(out);
        *length = out->length;
    }
    return text;
}

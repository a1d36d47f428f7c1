/* SPDX-License-Identifier: Apache-2.0 */
/* Finds added tokens in a text, before anything else is done to it; the leftmost and longest match counts. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

clv_status clv_tokenizer_add(clv_tokenizer *t, const char *what, const clv_special *special)
{
    if (t->special_count >= CLV_SPECIALS_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: there are more than %d added tokens", what,
                        CLV_SPECIALS_MAX);
    CLV_TRY(clv_pieces_check_length(what, "added token", special->text, strlen(special->text)));
    if (!clv_reserve(&t->specials, &t->special_room, t->special_count + 1, sizeof *t->specials))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
    clv_special *own = &t->specials[t->special_count];
    *own = *special;
    own->text = clv_strdup(special->text);
    if (!own->text) return clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
    own->length = strlen(own->text);
    ++t->special_count;
    return CLV_OK;
}

clv_status clv_tokenizer_add_special(clv_tokenizer *t, const char *what, const char *text,
                                     int64_t id)
{
    const size_t length = strlen(text);
    if (!length) return clv_fail(CLV_E_FORMAT, "%s: an added token has no text", what);
    for (size_t i = 0; i < t->special_count; ++i)
        if (strcmp(t->specials[i].text, text) == 0) {
            if (t->specials[i].id == id) return CLV_OK;
            return clv_fail(CLV_E_FORMAT, "%s: the token \"%.60s\" has the ids %d and %lld", what,
                            text, t->specials[i].id, (long long)id);
        }
    const char *there = clv_pieces_text(&t->pieces, id <= CLV_PIECE_ID_MAX ? (int32_t)id : -1);
    if (!there) /* the id is beyond the vocabulary or in a gap of it */
        CLV_TRY(clv_pieces_add(&t->pieces, what, text, length, id));
    else if (strcmp(there, text) != 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s: token \"%.60s\" has the id %lld, which already belongs to \"%.60s\"",
                        what, text, (long long)id, there);
    const clv_special special = { .text = (char *)(uintptr_t)text, .id = (int32_t)id };
    return clv_tokenizer_add(t, what, &special);
}

/* ---- where one begins ---------------------------------------------------------------------------- */

static bool is_marked(const unsigned char *marks, size_t at, size_t length)
{
    for (size_t i = 0; marks && i < length; ++i)
        if (marks[at + i]) return true;
    return false;
}

static bool is_word(uint32_t c)
{
    return c == '_' || clv_char_is_letter(c) || clv_char_is_number(c) ||
           clv_char_classify(c) == CLV_CHAR_MARK;
}

/* Returns whether a letter, mark, number or underscore is next to text[at, at + token). */
static bool inside_word(const char *text, size_t at, size_t token, size_t length)
{
    uint32_t c = 0;
    size_t before = at;
    while (before && ((unsigned char)text[before - 1] & 0xC0) == 0x80)
        --before;
    if (before && clv_utf8_decode(text + before - 1, at - before + 1, &c) && is_word(c))
        return true;
    return at + token < length && clv_utf8_decode(text + at + token, length - at - token, &c) &&
           is_word(c);
}

/* The tokens are sorted by their bytes, so those that share a prefix with the text are neighbours, and every byte of
 * the text narrows their range. The last token that the bytes complete is the longest match. */
const clv_special *clv_specials_match(const clv_special_set *set, const char *text, size_t at,
                                      size_t length, bool literal, const unsigned char *marks)
{
    const clv_special *found = NULL, *tokens = set->tokens;
    size_t low = 0, high = set->count;
    if (!set->start[(unsigned char)text[at]]) return NULL;
    for (size_t depth = 0; low < high && at + depth < length; ++depth) {
        const unsigned char byte = (unsigned char)text[at + depth];
        while (low < high &&
               (tokens[low].length <= depth || (unsigned char)tokens[low].text[depth] < byte))
            ++low;
        while (low < high && (unsigned char)tokens[high - 1].text[depth] > byte)
            --high;
        /* among tokens with a common prefix, the shortest comes first */
        if (low == high || tokens[low].length != depth + 1) continue;
        const clv_special *s = &tokens[low];
        if (!s->plain && (literal || is_marked(marks, at, s->length))) continue;
        if (s->single_word && inside_word(text, at, s->length, length)) continue;
        found = s;
    }
    return found;
}

/* ---- the order of the search --------------------------------------------------------------------- */

static int early_by_bytes(const void *left, const void *right)
{
    const clv_special *a = left, *b = right;
    if (a->late != b->late) return a->late ? 1 : -1;
    return strcmp(a->text, b->text);
}

/* Normalises the text of a late token: texts are normalised before late tokens are searched in them. */
static clv_status normalize_late(const clv_tokenizer *t, const char *what, clv_special *s)
{
    clv_text work[2] = { { 0 }, { 0 } };
    size_t length = s->length;
    const char *normal = clv_text_normalize(t, s->text, &length, work);
    char *own = normal ? clv_alloc(length + 1, 1) : NULL;
    if (own) {
        memcpy(own, normal, length);
        own[length] = '\0';
        clv_free(s->text);
        s->text = own, s->length = length;
    }
    clv_text_clear(&work[0]), clv_text_clear(&work[1]);
    return own ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
}

static void fill_set(clv_special_set *set, clv_special *tokens, size_t count)
{
    set->tokens = tokens, set->count = count;
    for (size_t i = 0; i < count; ++i)
        set->start[(unsigned char)tokens[i].text[0]] = true;
}

clv_status clv_specials_finish(clv_tokenizer *t, const char *what)
{
    size_t early = 0;
    for (size_t i = 0; i < t->special_count; ++i) {
        clv_special *s = &t->specials[i];
        s->late = s->late && t->normal_count;
        if (s->late) CLV_TRY(normalize_late(t, what, s));
        early += !s->late;
    }
    if (t->special_count) qsort(t->specials, t->special_count, sizeof *t->specials, early_by_bytes);
    fill_set(&t->early, t->specials, early);
    while (early < t->special_count && !t->specials[early].length)
        ++early; /* a late token whose normal form is empty, so that it is never found */
    if (early < t->special_count) fill_set(&t->late, t->specials + early, t->special_count - early);
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Splits one word into tokens by byte pair encoding: joins neighbours until no pair can join, the pair with the lowest
 * rank (or the highest score) first, and the leftmost among equal ones. A heap of pairs and a linked list of symbols
 * make this O(n log n).
 *
 * Sources: Sennrich, Haddow, Birch 2016 (BPE); Kudo, Richardson 2018 (SentencePiece). */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <string.h>

enum { NONE = -1 };

/* A part of the word. After it was joined to its left neighbour, a symbol has length 0. */
typedef struct symbol {
    size_t start, length;
    ptrdiff_t before, behind; /* neighbours; NONE at the ends */
    int32_t id;               /* id of its piece; -1: none */
} symbol;

/* Two neighbouring symbols that may join. */
typedef struct candidate {
    uint32_t order; /* the lowest order joins first, ... */
    uint32_t left;  /* ... and among equal ones the leftmost */
    /* of both symbols when the candidate was made; if it differs now, the candidate is out of date */
    size_t length;
    int32_t id;
} candidate;

struct clv_bpe_work {
    symbol *symbols;
    candidate *heap;
    size_t count, symbol_room, waiting, heap_room;
    clv_text word; /* the word's bytes, each written as a character */
    clv_best_end *ends;
    size_t end_room;
};

clv_bpe_work *clv_bpe_work_create(void)
{
    return clv_zalloc(1, sizeof(clv_bpe_work));
}

void clv_bpe_work_free(clv_bpe_work *k)
{
    if (!k) return;
    clv_free(k->symbols), clv_free(k->heap), clv_free(k->ends);
    clv_text_clear(&k->word);
    clv_free(k);
}

clv_best_end *clv_bpe_work_ends(clv_bpe_work *k, size_t count)
{
    return clv_reserve(&k->ends, &k->end_room, count, sizeof *k->ends) ? k->ends : NULL;
}

/* ---- merges -------------------------------------------------------------------------------------- */

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Returns the slot of a pair in the hash table of merges, or the free slot for it. The pieces' random seed enters the
 * hash, so that nobody can make a file whose merges share a slot. */
static size_t slot_of(const clv_tokenizer *t, uint64_t pair)
{
    const size_t mask = t->merge_slots - 1;
    uint64_t hash = (pair ^ t->pieces.seed) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
    size_t at = (size_t)(hash >> 32) & mask;
    while (t->merges[at].id >= 0 && t->merges[at].pair != pair)
        at = (at + 1) & mask;
    return at;
}

clv_status clv_bpe_make_merges(clv_tokenizer *t, const char *what, size_t count)
{
    for (t->merge_slots = 64; t->merge_slots < 2 * count;)
        t->merge_slots *= 2;
    t->merges = clv_alloc(t->merge_slots, sizeof *t->merges);
    if (!t->merges)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu merges", what, count);
    for (size_t i = 0; i < t->merge_slots; ++i)
        t->merges[i] = (clv_merge){ .id = NONE };
    return CLV_OK;
}

void clv_bpe_add_merge(clv_tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    const uint64_t pair = pair_of(left, right);
    const size_t at = slot_of(t, pair);
    if (t->merges[at].id < 0) t->merges[at] = (clv_merge){ pair, rank, id };
}

clv_status clv_bpe_merge_line(clv_tokenizer *t, const char *what, const char *left,
                              size_t left_length, const char *right, size_t right_length,
                              uint32_t rank, size_t *skipped)
{
    clv_text both = { 0 };
    clv_text_bytes(&both, left, left_length);
    clv_text_bytes(&both, right, right_length);
    if (both.failed) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a merge", what);
    const int32_t a = clv_pieces_find(&t->pieces, left, left_length);
    const int32_t b = clv_pieces_find(&t->pieces, right, right_length);
    const int32_t id = clv_pieces_find(&t->pieces, both.data, both.length);
    clv_text_clear(&both);
    if (a >= 0 && b >= 0 && id >= 0)
        clv_bpe_add_merge(t, a, b, rank, id);
    else
        ++*skipped;
    return CLV_OK;
}

/* Returns whether plain text may become the token `id`; tokens that control the model may not. */
static bool is_text(const clv_tokenizer *t, int32_t id)
{
    const clv_token_type type = id < 0 ? CLV_TOKEN_NONE : clv_tokenizer_type(t, id);
    return type == CLV_TOKEN_NORMAL || type == CLV_TOKEN_USER;
}

/* ---- candidates ---------------------------------------------------------------------------------- */

static bool goes_first(const candidate *a, const candidate *b)
{
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}

static clv_status push(clv_bpe_work *k, candidate c)
{
    if (!clv_reserve(&k->heap, &k->heap_room, k->waiting + 1, sizeof *k->heap))
        return clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for a word of %zu symbols",
                        k->count);
    size_t at = k->waiting++;
    for (; at && goes_first(&c, &k->heap[(at - 1) / 2]); at = (at - 1) / 2)
        k->heap[at] = k->heap[(at - 1) / 2];
    k->heap[at] = c;
    return CLV_OK;
}

static candidate pop(clv_bpe_work *k)
{
    const candidate first = k->heap[0], last = k->heap[--k->waiting];
    size_t at = 0;
    for (size_t child = 1; child < k->waiting; child = 2 * at + 1) {
        if (child + 1 < k->waiting && goes_first(&k->heap[child + 1], &k->heap[child])) ++child;
        if (!goes_first(&k->heap[child], &last)) break;
        k->heap[at] = k->heap[child];
        at = child;
    }
    k->heap[at] = last;
    return first;
}

/* Returns a rank for a score: the higher the score, the lower the rank. */
static uint32_t order_of(float score)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000 ? bits : ~bits & 0x7FFFFFFF;
}

/* Adds a candidate to the heap if symbol `left` and its right neighbour can join. */
static clv_status consider(const clv_tokenizer *t, clv_bpe_work *k, const char *word,
                           ptrdiff_t left)
{
    const symbol *a = &k->symbols[left];
    if (a->behind == NONE) return CLV_OK;
    const symbol *b = &k->symbols[a->behind];
    candidate c = { .left = (uint32_t)left, .length = a->length + b->length, .id = NONE };
    if (t->kind == CLV_TOKENIZER_SENTENCEPIECE) {
        if (c.length > t->pieces.longest[CLV_PIECE_HEAD]) return CLV_OK;
        c.id = clv_pieces_find(&t->pieces, word + a->start, c.length);
        if (!is_text(t, c.id)) return CLV_OK;
        c.order = order_of(t->scores[c.id]);
    } else {
        if (a->id < 0 || b->id < 0) return CLV_OK;
        const clv_merge *m = &t->merges[slot_of(t, pair_of(a->id, b->id))];
        if (!is_text(t, m->id)) return CLV_OK;
        c.id = m->id, c.order = m->rank;
    }
    return push(k, c);
}

static clv_status join_all(const clv_tokenizer *t, clv_bpe_work *k, const char *word)
{
    k->waiting = 0;
    for (size_t i = 0; i + 1 < k->count; ++i)
        CLV_TRY(consider(t, k, word, (ptrdiff_t)i));
    while (k->waiting) {
        const candidate c = pop(k);
        symbol *a = &k->symbols[c.left];
        if (!a->length || a->behind == NONE) continue;
        symbol *b = &k->symbols[a->behind];
        if (a->length + b->length != c.length) continue;
        a->length = c.length, a->id = c.id;
        a->behind = b->behind;
        b->length = 0;
        if (a->behind != NONE) k->symbols[a->behind].before = (ptrdiff_t)c.left;
        CLV_TRY(consider(t, k, word, (ptrdiff_t)c.left));
        if (a->before != NONE) CLV_TRY(consider(t, k, word, a->before));
    }
    return CLV_OK;
}

/* ---- symbols ------------------------------------------------------------------------------------- */

static clv_status add_symbol(clv_bpe_work *k, size_t start, size_t length, int32_t id)
{
    if (k->count >= INT32_MAX ||
        !clv_reserve(&k->symbols, &k->symbol_room, k->count + 1, sizeof *k->symbols))
        return clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for a word of %zu symbols",
                        k->count);
    const ptrdiff_t at = (ptrdiff_t)k->count++;
    k->symbols[at] = (symbol){ start, length, at - 1, NONE, id };
    if (at) k->symbols[at - 1].behind = at;
    return CLV_OK;
}

/* Makes a symbol of every byte of the word, each with its own piece. */
static clv_status take_bytes(const clv_tokenizer *t, clv_bpe_work *k, const char *word,
                             size_t length)
{
    for (size_t i = 0; i < length; ++i)
        CLV_TRY(add_symbol(k, i, 1, t->byte_ids[(unsigned char)word[i]]));
    return CLV_OK;
}

static bool has_bytes(const clv_tokenizer *t, const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if (t->byte_ids[(unsigned char)text[i]] < 0) return false;
    return true;
}

/* Makes a symbol of every character of the word. With a list of merges (BPE), a character without a piece becomes one
 * symbol per byte. */
static clv_status take_characters(const clv_tokenizer *t, clv_bpe_work *k, const char *word,
                                  size_t length)
{
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t c;
        bytes = clv_utf8_decode(word + at, length - at, &c);
        if (!bytes) bytes = 1; /* callers repair texts; this guarantees that the loop ends */
        const int32_t id = clv_pieces_find(&t->pieces, word + at, bytes);
        const bool apart = id < 0 && t->kind == CLV_TOKENIZER_BPE && has_bytes(t, word + at, bytes);
        if (!apart) CLV_TRY(add_symbol(k, at, bytes, id));
        for (size_t i = 0; apart && i < bytes; ++i)
            CLV_TRY(add_symbol(k, at + i, 1, t->byte_ids[(unsigned char)word[at + i]]));
    }
    return CLV_OK;
}

/* ---- ids ----------------------------------------------------------------------------------------- */

/* Appends the tokens of a symbol without a piece: the pieces of its bytes if they exist, else the unknown token. */
static clv_status put_unknown(const clv_tokenizer *t, const char *text, size_t length,
                              bool *was_unknown, clv_token_rows *rows)
{
    bool fits = true;
    if (has_bytes(t, text, length)) {
        for (size_t i = 0; i < length; ++i)
            fits = fits && clv_token_push(rows, t->byte_ids[(unsigned char)text[i]]);
        *was_unknown = false;
    } else if (t->unk >= 0) {
        if (!*was_unknown || !t->fuse_unknown) fits = clv_token_push(rows, t->unk);
        ++rows->unknown;
        *was_unknown = true;
    } else {
        return clv_fail(
            CLV_E_FORMAT,
            "tokenizer: byte 0x%02X is not in the vocabulary, which has no unknown token either",
            (unsigned char)text[0]);
    }
    return fits ? CLV_OK
                : clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for %zu tokens",
                           rows->tokens);
}

static clv_status put_symbols(const clv_tokenizer *t, const clv_bpe_work *k, const char *word,
                              clv_token_rows *rows)
{
    bool was_unknown = false;
    for (ptrdiff_t i = k->count ? 0 : NONE; i != NONE; i = k->symbols[i].behind) {
        const symbol *s = &k->symbols[i];
        const bool by_byte =
            s->length == 1 && s->id >= 0 && s->id == t->byte_ids[(unsigned char)word[s->start]];
        if (!by_byte && !is_text(t, s->id)) {
            CLV_TRY(put_unknown(t, word + s->start, s->length, &was_unknown, rows));
            continue;
        }
        was_unknown = false;
        if (!clv_token_push(rows, s->id))
            return clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for %zu tokens",
                            rows->tokens);
    }
    return CLV_OK;
}

/* Returns the id of the piece that is the whole word; -1 if there is none. */
static int32_t find_whole(const clv_tokenizer *t, clv_bpe_work *k, const char *word, size_t length)
{
    if (!t->byte_level) return clv_pieces_find(&t->pieces, word, length);
    if (length > t->pieces.longest[CLV_PIECE_HEAD]) return NONE;
    clv_text_restart(&k->word);
    for (size_t i = 0; i < length; ++i) {
        char bytes[4];
        clv_text_bytes(&k->word, bytes,
                       clv_utf8_encode(clv_byte_char((unsigned char)word[i]), bytes));
    }
    return k->word.failed ? NONE
                          : clv_pieces_find(&t->pieces, clv_text_get(&k->word), k->word.length);
}

clv_status clv_bpe_word(const clv_tokenizer *t, clv_bpe_work *k, const char *word, size_t length,
                        clv_token_rows *rows)
{
    if (t->whole_words) {
        const int32_t id = find_whole(t, k, word, length);
        if (is_text(t, id))
            return clv_token_push(rows, id)
                       ? CLV_OK
                       : clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for %zu tokens",
                                  rows->tokens);
    }
    k->count = 0;
    CLV_TRY(t->byte_level ? take_bytes(t, k, word, length) : take_characters(t, k, word, length));
    CLV_TRY(join_all(t, k, word));
    return put_symbols(t, k, word, rows);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Splits one word into tokens by Unigram: of all ways to cut the word into pieces, finds the one with the highest sum
 * of scores (Viterbi). Among ways with equal sums, it takes the first one from the left. This takes O(n m) for n bytes
 * and pieces of up to m bytes.
 *
 * Source: Kudo 2018 (subword regularization). */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"

static clv_status no_memory(size_t length)
{
    return clv_fail(CLV_E_MEMORY, "tokenizer: not enough memory for a word of %zu bytes", length);
}

static void offer(clv_best_end *to, double score, size_t from, int32_t id)
{
    if (to->from == SIZE_MAX || score > to->score) *to = (clv_best_end){ score, from, id };
}

static size_t char_bytes(const char *text, size_t length)
{
    uint32_t c;
    const size_t bytes = clv_utf8_decode(text, length, &c);
    return bytes ? bytes : 1; /* callers repair texts; this guarantees that the loop ends */
}

/* Offers every piece that begins at word[at] to the ends of best paths; offers the unknown token if no piece is the
 * single character. */
static void offer_pieces(const clv_tokenizer *t, const char *word, size_t at, size_t length,
                         clv_best_end *ends)
{
    const clv_pieces *p = &t->pieces;
    const size_t most = CLV_MIN(length - at, p->longest[CLV_PIECE_HEAD]);
    const size_t single = char_bytes(word + at, length - at);
    const double here = ends[at].score;
    uint64_t hash = clv_piece_start(p, CLV_PIECE_HEAD);
    bool found = false;
    for (size_t n = 1; n <= most; ++n) {
        hash = clv_piece_step(hash, (unsigned char)word[at + n - 1]);
        if (!p->lengths[n]) continue;
        if (at + n < length && ((unsigned char)word[at + n] & 0xC0) == 0x80)
            continue; /* the piece would end inside a character */
        const int32_t id = clv_pieces_match(p, hash, word + at, n);
        if (id < 0) continue;
        offer(&ends[at + n], t->weights[id] + here, at, id);
        found = found || n == single;
    }
    if (!found) offer(&ends[at + single], t->unknown_weight + here, at, t->unk);
}

/* Appends the token of a part of the word; if the part is no piece, the pieces of its bytes if they exist, else the
 * unknown token. */
static clv_status put(const clv_tokenizer *t, const char *part, size_t length, clv_token_rows *rows)
{
    const int32_t id = clv_pieces_find(&t->pieces, part, length);
    bool bytes = id < 0 && t->bytes_as_hex, fits = true;
    for (size_t i = 0; i < length && bytes; ++i)
        bytes = t->byte_ids[(unsigned char)part[i]] >= 0;
    for (size_t i = 0; i < length && bytes && fits; ++i)
        fits = clv_token_push(rows, t->byte_ids[(unsigned char)part[i]]);
    if (id < 0 && !bytes) ++rows->unknown;
    if (!bytes) fits = clv_token_push(rows, id < 0 ? t->unk : id);
    return fits ? CLV_OK : no_memory(length);
}

clv_status clv_unigram_word(const clv_tokenizer *t, clv_bpe_work *work, const char *word,
                            size_t length, clv_token_rows *rows)
{
    const clv_best_end nowhere = { .from = SIZE_MAX };
    clv_best_end *ends = length < SIZE_MAX ? clv_bpe_work_ends(work, length + 1) : NULL;
    if (!ends) return no_memory(length);
    for (size_t i = 0; i <= length; ++i)
        ends[i] = nowhere;
    ends[0].score = 0;
    for (size_t at = 0; at < length; at += char_bytes(word + at, length - at))
        offer_pieces(t, word, at, length, ends);
    /* reverses the path: from now on, `id` is the piece that begins here, and `from` is its end */
    clv_best_end behind = nowhere;
    for (size_t end = length; end != 0;) {
        const clv_best_end here = ends[end];
        ends[end] = behind;
        behind = (clv_best_end){ here.score, end, here.id };
        end = here.from;
        if (!end) ends[0] = behind;
    }
    for (size_t at = 0; at < length;) {
        size_t end = ends[at].from;
        if (ends[at].id == t->unk) /* adjacent unknown parts become one token */
            while (end < length && ends[end].id == t->unk)
                end = ends[end].from;
        CLV_TRY(put(t, word + at, end - at, rows));
        at = end;
    }
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tokens of one text, from characters to words to pieces, in one pass and without copying the text. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <string.h>

enum { WORD_BYTES = 4 * CLV_WORD_CHARS_MAX };

/* The word that is being collected. */
typedef struct word {
    char bytes[WORD_BYTES + 8];
    size_t length, chars; /* chars may exceed max_word_chars, length stays within `bytes` */
    /* The combining marks at the end of the word, which NFD sorts by class: almost always none. */
    size_t run_at, run_count;
    struct {
        uint32_t c;
        unsigned combining;
    } run[CLV_WORD_CHARS_MAX];
} word;

typedef struct work {
    const clv_tokenizer *t;
    clv_token_rows *rows;
    size_t begin, most; /* begin: position of the text's first id; most: largest number of ids */
    bool full, failed;
    word w;
} work;

/* Appends an id. Returns false, and sets `full`, if the text already has `most` ids. */
static bool emit(work *k, int32_t id)
{
    clv_token_rows *r = k->rows;
    if (r->tokens - k->begin >= k->most) {
        k->full = true;
        return false;
    }
    if (r->tokens == r->id_room &&
        !clv_reserve(&r->ids, &r->id_room, r->tokens + 1, sizeof *r->ids)) {
        k->failed = true;
        return false;
    }
    r->ids[r->tokens++] = id;
    return true;
}

/* Returns the longest piece with which `text` begins, and its length in *taken; -1 if there is none. */
static int32_t longest_piece(const clv_pieces *p, const char *text, size_t length, int kind,
                             size_t *taken)
{
    uint64_t hashes[WORD_BYTES + 1];
    const size_t most = CLV_MIN(length, p->longest[kind]);
    hashes[0] = clv_piece_start(p, kind);
    for (size_t i = 0; i < most; ++i)
        hashes[i + 1] = clv_piece_step(hashes[i], (unsigned char)text[i]);
    for (size_t n = most; n; --n) {
        if (n < length && ((unsigned char)text[n] & 0xC0) == 0x80)
            continue; /* the piece would end inside a character */
        const int32_t id = clv_pieces_match(p, hashes[n], text, n);
        if (id >= 0) {
            *taken = n;
            return id;
        }
    }
    return -1;
}

static void split_word(work *k)
{
    const clv_pieces *p = &k->t->pieces;
    int32_t ids[WORD_BYTES];
    size_t count = 0, taken = 0;
    for (size_t at = 0; at < k->w.length; at += taken) {
        const int32_t id = longest_piece(p, k->w.bytes + at, k->w.length - at,
                                         at ? CLV_PIECE_TAIL : CLV_PIECE_HEAD, &taken);
        if (id < 0) { /* the rest begins with no piece, so the whole word is unknown */
            k->rows->unknown += emit(k, k->t->unk);
            return;
        }
        ids[count++] = id;
    }
    for (size_t i = 0; i < count; ++i)
        emit(k, ids[i]);
}

static void end_word(work *k)
{
    word *w = &k->w;
    w->run_count = 0;
    if (!w->chars) return;
    if (w->chars > k->t->max_word_chars) {
        k->rows->unknown += emit(k, k->t->unk);
    } else {
        uint64_t hash = clv_piece_start(&k->t->pieces, CLV_PIECE_HEAD);
        for (size_t i = 0; i < w->length; ++i)
            hash = clv_piece_step(hash, (unsigned char)w->bytes[i]);
        const int32_t id = clv_pieces_match(&k->t->pieces, hash, w->bytes, w->length);
        if (id >= 0)
            emit(k, id);
        else
            split_word(k);
    }
    w->length = w->chars = 0;
}

static void add_letter(work *k, uint32_t c)
{
    word *w = &k->w;
    w->run_count = 0;
    /* a word of more characters is unknown in any case */
    if (w->chars++ >= k->t->max_word_chars) return;
    w->length += clv_utf8_encode(c, w->bytes + w->length);
}

/* Adds a combining mark to the word; it comes after those of its run with the same or a lower class. */
static void add_combining(work *k, uint32_t c, unsigned combining)
{
    word *w = &k->w;
    if (w->chars++ >= k->t->max_word_chars) return;
    if (!w->run_count) w->run_at = w->length;
    size_t at = w->run_count++;
    for (; at && w->run[at - 1].combining > combining; --at)
        w->run[at] = w->run[at - 1];
    w->run[at].c = c;
    w->run[at].combining = combining;
    w->length = w->run_at;
    for (size_t i = 0; i < w->run_count; ++i)
        w->length += clv_utf8_encode(w->run[i].c, w->bytes + w->length);
}

static void add_alone(work *k, uint32_t c)
{
    end_word(k);
    add_letter(k, c);
    end_word(k);
}

static void add_spelled(work *k, uint32_t c)
{
    clv_spelled s[CLV_SPELLED_MAX];
    const size_t count = clv_char_spell(k->t->flags, c, s);
    for (size_t i = 0; i < count; ++i) {
        if (s[i].rule == CLV_RULE_SPACE)
            end_word(k);
        else if (s[i].rule == CLV_RULE_ALONE)
            add_alone(k, s[i].c);
        else if (s[i].rule == CLV_RULE_MARK)
            k->w.run_count = s[i].combining ? k->w.run_count : 0;
        else if (s[i].combining)
            add_combining(k, s[i].c, s[i].combining);
        else
            add_letter(k, s[i].c);
    }
}

/* Appends the special token that begins at text[at]; returns its length in bytes, 0 if there is none. */
static size_t take_special(work *k, const char *text, size_t at, size_t length)
{
    const clv_special *s = clv_specials_match(&k->t->early, text, at, length, false, NULL);
    if (!s) return 0;
    end_word(k);
    emit(k, s->id);
    return s->length;
}

static void take_char(work *k, uint32_t c)
{
    if (c >= CLV_CHAR_TABLE) {
        add_spelled(k, c);
        return;
    }
    const uint32_t rule = k->t->rules[c], becomes = rule & CLV_CODE_POINT;
    switch ((clv_rule)(rule >> CLV_RULE_SHIFT)) {
    case CLV_RULE_LETTER:
        add_letter(k, becomes);
        break;
    case CLV_RULE_SPACE:
        end_word(k);
        break;
    case CLV_RULE_ALONE:
        add_alone(k, becomes);
        break;
    case CLV_RULE_DROP:
        break;
    default:
        add_spelled(k, c);
        break;
    }
}

/* Tokenizes a text up to its end, or until there are enough tokens. */
static clv_status run(work *k, const char *text, size_t length, bool specials, size_t *bad)
{
    const clv_tokenizer *t = k->t;
    size_t at = 0;
    while (at < length && !k->full && !k->failed) {
        const unsigned char byte = (unsigned char)text[at];
        if (specials && t->early.start[byte]) {
            const size_t step = take_special(k, text, at, length);
            at += step;
            if (step) continue;
        }
        uint32_t c = byte;
        if (byte < 0x80) {
            take_char(k, c);
            ++at;
            continue;
        }
        const size_t step = clv_utf8_decode(text + at, length - at, &c);
        if (!step && !t->replace_invalid) {
            *bad = at;
            return CLV_E_FORMAT;
        }
        if (step)
            take_char(k, c);
        else
            ++k->rows->replaced; /* counts the invalid byte; its replacement U+FFFD is dropped */
        at += step ? step : 1;
    }
    if (!k->full && !k->failed) end_word(k);
    return k->failed ? CLV_E_MEMORY : CLV_OK;
}

/* Tokenizes a fragment, which contains no early tokens: normalises it and cuts it at late tokens. Applying the rules
 * again to normalised text changes nothing, so that the parts between late tokens are tokenized like any text. */
static clv_status take_fragment(work *k, const char *text, size_t length, size_t *bad)
{
    const clv_tokenizer *t = k->t;
    clv_text copy = { 0 }, normal[2] = { { 0 }, { 0 } };
    size_t from = 0;
    clv_status status = CLV_E_MEMORY;
    const char *good = clv_text_repair(t, text, &length, &copy, k->rows, bad);
    if (!good && !copy.failed) status = CLV_E_FORMAT;
    const char *shown = good ? clv_text_normalize(t, good, &length, normal) : NULL;
    if (shown) status = CLV_OK;
    for (size_t at = 0; !status && at <= length; ++at) {
        const clv_special *s =
            at < length ? clv_specials_match(&t->late, shown, at, length, false, NULL) : NULL;
        if (!s && at < length) continue;
        status = run(k, shown + from, at - from, false, bad);
        if (s && !status) {
            emit(k, s->id);
            at += s->length - 1, from = at + 1;
        }
    }
    clv_text_clear(&copy), clv_text_clear(&normal[0]), clv_text_clear(&normal[1]);
    return status;
}

/* Cuts a text at early tokens, and tokenizes each fragment between them by take_fragment. */
static clv_status run_late(work *k, const char *text, size_t length, size_t *bad)
{
    size_t from = 0;
    for (size_t at = 0; at <= length && !k->full && !k->failed; ++at) {
        const clv_special *s =
            at < length ? clv_specials_match(&k->t->early, text, at, length, false, NULL) : NULL;
        if (!s && at < length) continue;
        const clv_status status = take_fragment(k, text + from, at - from, bad);
        if (status == CLV_E_FORMAT) *bad += from;
        CLV_TRY(status);
        if (s) {
            emit(k, s->id);
            at += s->length - 1, from = at + 1;
        }
    }
    return CLV_OK;
}

clv_status clv_wordpiece(const clv_tokenizer *t, const char *text, size_t length, size_t most,
                         clv_token_rows *rows, size_t *bad)
{
    work k;
    k.t = t, k.rows = rows, k.begin = rows->tokens, k.most = most;
    k.full = k.failed = false;
    k.w.length = k.w.chars = k.w.run_count = 0;
    CLV_TRY(t->late.count ? run_late(&k, text, length, bad) : run(&k, text, length, true, bad));
    rows->truncated += k.full;
    return k.failed ? CLV_E_MEMORY : CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts fragments into words, which byte pair encoding never joins.
 *
 * The regular expressions of published vocabularies differ in few points, so one scanner with these points as
 * parameters replaces all of them. At each place it takes the first alternative that fits:
 *
 *     GPT-2                      Llama 3                                 Qwen2
 *     's|'t|'re|'ve|'m|'ll|'d    the same in any case                    as Llama 3
 *      ?\p{L}+                   [^\r\n\p{L}\p{N}]?\p{L}+
 *      ?\p{N}+                   \p{N}{1,3}                              \p{N}
 *      ?[^\s\p{L}\p{N}]+          ?[^\s\p{L}\p{N}]+[\r\n]*
 *     (none)                     \s*[\r\n]+
 *     \s+(?!\S)|\s+              the same
 *
 * As a result, a run of white space gives its last character to the word that follows. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/unicode.h"

#include <string.h>

typedef enum char_kind { LETTER, NUMBER, SPACE, OTHER, END } char_kind;

/* A position in a text, and the character at it. */
typedef struct place {
    const char *text;
    size_t at, length;
    uint32_t c;
    size_t bytes;
    char_kind kind;
} place;

static char_kind kind_of(uint32_t c)
{
    if (c < 0x80) {
        if ((c | 32) >= 'a' && (c | 32) <= 'z') return LETTER;
        if (c >= '0' && c <= '9') return NUMBER;
        return c == ' ' || (c >= 9 && c <= 13) ? SPACE : OTHER;
    }
    if (clv_char_is_letter(c)) return LETTER;
    if (clv_char_is_number(c)) return NUMBER;
    return clv_char_is_space(c) ? SPACE : OTHER;
}

static void look(place *p)
{
    p->bytes = p->at < p->length ? clv_utf8_decode(p->text + p->at, p->length - p->at, &p->c) : 0;
    if (!p->bytes && p->at < p->length) /* callers repair texts; this guarantees that loops end */
        p->bytes = 1, p->c = 0xFFFD;
    p->kind = p->bytes ? kind_of(p->c) : END;
}

static void step(place *p)
{
    p->at += p->bytes;
    look(p);
}

/* Moves past the characters of class `kind` at the place, at most `most` of them (0: any number); returns their
 * number. */
static size_t pass(place *p, char_kind kind, size_t most)
{
    size_t count = 0;
    for (; p->kind == kind && (!most || count < most); ++count)
        step(p);
    return count;
}

static bool is_line_end(uint32_t c)
{
    return c == '\r' || c == '\n';
}

/* Returns the length in bytes of the contraction that begins with the apostrophe at the place; 0 if there is none. */
static size_t contraction(const place *p, bool any_case)
{
    static const char *const ends[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    if (p->kind != OTHER || p->c != '\'') return 0;
    for (size_t i = 0; i < CLV_LEN(ends); ++i) {
        const size_t letters = strlen(ends[i]);
        size_t same = 0;
        while (same < letters && p->at + 1 + same < p->length) {
            const char given = p->text[p->at + 1 + same];
            const bool upper = any_case && given >= 'A' && given <= 'Z';
            if ((upper ? (char)(given | 32) : given) != ends[i][same]) break;
            ++same;
        }
        if (same == letters) return 1 + letters;
        /* U+017F, the long s, is another lower-case form of s */
        if (any_case && i == 0 && p->at + 2 < p->length &&
            memcmp(p->text + p->at + 1, "\xC5\xBF", 2) == 0)
            return 3;
    }
    return 0;
}

/* Returns the end of the word that begins with the run of white space at the place. */
static size_t end_of_space(place p, bool lines)
{
    size_t last = p.at, line_end = 0, count = 0;
    for (; p.kind == SPACE; ++count) {
        last = p.at;
        if (is_line_end(p.c)) line_end = p.at + p.bytes;
        step(&p);
    }
    if (lines && line_end) return line_end;
    return p.kind == END || count == 1 ? p.at : last;
}

static size_t words_next(const clv_split *s, place p)
{
    const size_t found = s->contractions ? contraction(&p, s->any_case) : 0;
    if (found) return found;
    place next = p;
    step(&next);
    const bool space = p.kind == SPACE && p.c == ' ';
    const bool leads =
        s->any_lead ? (p.kind == SPACE || p.kind == OTHER) && !is_line_end(p.c) : space;
    if (leads && next.kind == LETTER) p = next;
    if (p.kind == LETTER) {
        pass(&p, LETTER, 0);
        return p.at;
    }
    if (p.kind == NUMBER || (space && !s->any_lead && next.kind == NUMBER)) {
        if (p.kind != NUMBER) p = next;
        pass(&p, NUMBER, s->most);
        return p.at;
    }
    if (p.kind == OTHER || (space && next.kind == OTHER)) {
        if (p.kind != OTHER) p = next;
        pass(&p, OTHER, 0);
        while (s->lines && p.kind == SPACE && is_line_end(p.c))
            step(&p);
        return p.at;
    }
    return end_of_space(p, s->lines);
}

/* Returns the end of the word that begins at `p`: a word of digits, or all text before the next digit. */
static size_t numbers_next(const clv_split *s, place p)
{
    if (pass(&p, NUMBER, s->most)) return p.at;
    while (p.kind != NUMBER && p.kind != END)
        step(&p);
    return p.at;
}

/* Returns the end of the first word, which is the beginning of the next mark. */
static size_t meta_next(const clv_split *s, const char *text, size_t length)
{
    const size_t mark = strlen(s->mark);
    for (size_t at = 1; s->cuts && at + mark <= length; ++at)
        if (memcmp(text + at, s->mark, mark) == 0) return at;
    return length;
}

size_t clv_split_next(const clv_split *s, const char *text, size_t length)
{
    place p = { .text = text, .length = length };
    if (s->kind == CLV_SPLIT_META) return meta_next(s, text, length);
    look(&p);
    if (s->kind == CLV_SPLIT_SPACES) {
        while (p.kind != SPACE && p.kind != END)
            step(&p);
        return p.at;
    }
    return s->kind == CLV_SPLIT_NUMBERS ? numbers_next(s, p) : words_next(s, p);
}

/* ---- which rule a regular expression is ---------------------------------------------------------- */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BEHIND_NUMBERS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2_WORDS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

bool clv_split_of_pattern(const char *pattern, clv_split *split)
{
    static const clv_split gpt2 = { .kind = CLV_SPLIT_WORDS, .contractions = true };
    static const clv_split lines = { .kind = CLV_SPLIT_WORDS,
                                     .contractions = true,
                                     .any_case = true,
                                     .any_lead = true,
                                     .lines = true };
    static const struct {
        const char *pattern;
        const clv_split *split;
        size_t most;
    } known[] = {
        { "'s|'t|'re|'ve|'m|'ll|'d" GPT2_WORDS, &gpt2, 0 },
        { "'(?:[sdmt]|ll|ve|re)" GPT2_WORDS, &gpt2, 0 },
        { CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" BEHIND_NUMBERS, &lines, 3 },
        { CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" BEHIND_NUMBERS, &lines, 1 },
        { CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+" BEHIND_NUMBERS, &lines, 0 },
    };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcmp(known[i].pattern, pattern) == 0) {
            *split = *known[i].split;
            split->most = known[i].most;
            return true;
        }
    return false;
}

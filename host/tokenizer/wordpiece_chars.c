/* SPDX-License-Identifier: Apache-2.0 */
/* Determines how BERT's normaliser and splitter treat a code point.
 *
 * The reference (the Rust library tokenizers) takes its character classes from Unicode 8 and treats characters that
 * were added later as ordinary ones, whatever their class is today. Vocabularies were trained that way, so the table
 * `young` reproduces it. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/unicode.h"

/* Ranges with the marks, punctuation and controls that were added after Unicode 8; ordinary characters may lie
 * between them. */
static const clv_char_range young[] = {
    { 0x5C8, 0x5C9 },     { 0x61D, 0x61D },     { 0x7FD, 0x7FD },     { 0x890, 0x8E2 },
    { 0x9FD, 0x9FE },     { 0xA76, 0xA76 },     { 0xAFA, 0xAFF },     { 0xB53, 0xB55 },
    { 0xC04, 0xC04 },     { 0xC3C, 0xC3C },     { 0xC77, 0xC77 },     { 0xC84, 0xC84 },
    { 0xD00, 0xD00 },     { 0xD3B, 0xD3C },     { 0xD81, 0xD81 },     { 0xEBA, 0xEBA },
    { 0xECE, 0xECE },     { 0x180F, 0x180F },   { 0x1885, 0x1886 },   { 0x1ABF, 0x1AF0 },
    { 0x1B4E, 0x1B4F },   { 0x1B7D, 0x1B7F },   { 0x1DF6, 0x1DFB },   { 0x2E43, 0x2E63 },
    { 0xA82C, 0xA82C },   { 0xA8C5, 0xA8C5 },   { 0xA8FF, 0xA8FF },   { 0xA9BD, 0xA9BD },
    { 0x105C9, 0x105E4 }, { 0x10D24, 0x10D27 }, { 0x10D69, 0x10D6E }, { 0x10EAB, 0x10F89 },
    { 0x11070, 0x11074 }, { 0x110C2, 0x110CD }, { 0x111CF, 0x111CF }, { 0x1123E, 0x11241 },
    { 0x1133B, 0x1133B }, { 0x11383, 0x113E2 }, { 0x11438, 0x1145E }, { 0x11660, 0x1166C },
    { 0x116B9, 0x116B9 }, { 0x1182F, 0x1183B }, { 0x11938, 0x11FFF }, { 0x12FF1, 0x13455 },
    { 0x1611E, 0x1612F }, { 0x16D68, 0x16D6F }, { 0x16E97, 0x16E9A }, { 0x16F4F, 0x16F4F },
    { 0x16FE2, 0x16FE4 }, { 0x1CF00, 0x1CF46 }, { 0x1D127, 0x1D128 }, { 0x1D250, 0x1D281 },
    { 0x1E000, 0x1E6F5 }, { 0x1E944, 0x1E95F },
};

/* The reference decomposes (NFD) by Unicode 9. That version has the combining classes of these `young` characters, but
 * not of the other ones nor of those in `unsorted`. */
static const clv_char_range nine[] = {
    { 0x8D4, 0x8E1 },     { 0x1DFB, 0x1DFB },   { 0x11442, 0x11446 },
    { 0x11C3F, 0x11C3F }, { 0x1E000, 0x1E02A }, { 0x1E944, 0x1E94A },
};
static const clv_char_range unsorted[] = { { 0x1715, 0x1715 }, { 0x16FF0, 0x16FF1 } };

/* The reference's StripAccents drops all marks of Unicode 9. `dropped` holds the marks within `young` that it drops;
 * `staying` holds the marks outside `young` that it keeps. */
static const clv_char_range dropped[] = {
    { 0x8D4, 0x8E1 },     { 0x1885, 0x1886 },   { 0x1CF2, 0x1CF3 },   { 0x1DFB, 0x1DFB },
    { 0xA8C5, 0xA8C5 },   { 0xA9BD, 0xA9BD },   { 0x1123E, 0x1123E }, { 0x11438, 0x11446 },
    { 0x11C2F, 0x11C36 }, { 0x11C38, 0x11C3F }, { 0x11C92, 0x11CA7 }, { 0x11CA9, 0x11CB6 },
    { 0x1E000, 0x1E006 }, { 0x1E008, 0x1E018 }, { 0x1E01B, 0x1E021 }, { 0x1E023, 0x1E024 },
    { 0x1E026, 0x1E02A }, { 0x1E944, 0x1E94A },
};
static const clv_char_range staying[] = {
    { 0xCF3, 0xCF3 },     { 0x1715, 0x1715 },   { 0x1CF7, 0x1CF7 },   { 0x11145, 0x11146 },
    { 0x111C9, 0x111C9 }, { 0x111CE, 0x111CE }, { 0x1182C, 0x1182E }, { 0x11930, 0x11937 },
    { 0x16F7F, 0x16F87 }, { 0x16FF0, 0x16FF1 },
};
/* Characters whose compatibility decomposition was added after Unicode 9. */
static const clv_char_range whole[] = {
    { 0x32FF, 0x32FF },   { 0xA7F1, 0xA7F4 },   { 0xAB69, 0xAB69 },   { 0x10781, 0x107BA },
    { 0x1CCD6, 0x1CCF9 }, { 0x1F16C, 0x1F16C }, { 0x1FBF0, 0x1FBF9 },
};

/* Ideographs, each of which is a word of its own in BERT's vocabularies; kana and Hangul are not among them. */
static const clv_char_range ideographs[] = {
    { 0x3400, 0x4DBF },   { 0x4E00, 0x9FFF },   { 0xF900, 0xFAFF },   { 0x20000, 0x2A6DF },
    { 0x2A700, 0x2B73F }, { 0x2B740, 0x2B81F }, { 0x2B920, 0x2CEAF }, { 0x2F800, 0x2FA1F },
};

/* `moved`: characters that have left their class since Unicode 8. `late`: lower-case forms that the installed tables
 * may lack. */
static const struct {
    uint32_t c;
    clv_char_class was;
} moved[] = { { 0x166D, CLV_CHAR_PUNCTUATION },
              { 0x111C9, CLV_CHAR_PUNCTUATION },
              { 0x1734, CLV_CHAR_MARK } };
static const struct {
    uint32_t upper, lower;
} late[] = { { 0x1C89, 0x1C8A }, { 0xA7CB, 0x264 },  { 0xA7CC, 0xA7CD }, { 0xA7CE, 0xA7CF },
             { 0xA7D2, 0xA7D3 }, { 0xA7D4, 0xA7D5 }, { 0xA7DA, 0xA7DB }, { 0xA7DC, 0x19B } };

static bool is_ascii_punctuation(uint32_t c)
{
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
}

static clv_char_class class_of(uint32_t c)
{
    if (clv_char_within(young, CLV_LEN(young), c)) return CLV_CHAR_OTHER;
    for (size_t i = 0; i < CLV_LEN(moved); ++i)
        if (moved[i].c == c) return moved[i].was;
    return clv_char_classify(c);
}

static uint32_t lower_of(uint32_t c)
{
    for (size_t i = 0; i < CLV_LEN(late); ++i)
        if (late[i].upper == c) return late[i].lower;
    if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20; /* Garay */
    if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B; /* Beria Erfe */
    return clv_char_lower(c);
}

static unsigned combining_of(uint32_t c)
{
    if (clv_char_within(unsorted, CLV_LEN(unsorted), c)) return 0;
    if (clv_char_within(young, CLV_LEN(young), c) && !clv_char_within(nine, CLV_LEN(nine), c))
        return 0;
    return clv_char_combining(c);
}

bool clv_char_is_old_mark(uint32_t c)
{
    if (clv_char_within(dropped, CLV_LEN(dropped), c)) return true;
    return clv_char_is_mark(c) && !clv_char_within(young, CLV_LEN(young), c) &&
           !clv_char_within(staying, CLV_LEN(staying), c);
}

unsigned clv_char_old_combining(uint32_t c)
{
    return combining_of(c);
}

size_t clv_char_old_decompose(uint32_t c, bool compat, uint32_t out[CLV_COMPAT_MAX])
{
    if (clv_char_within(young, CLV_LEN(young), c) ||
        (compat && clv_char_within(whole, CLV_LEN(whole), c))) {
        out[0] = c;
        return 1;
    }
    return compat ? clv_char_decompose_compat(c, out, CLV_COMPAT_MAX) : clv_char_decompose(c, out);
}

size_t clv_char_old_lower(uint32_t c, uint32_t out[2])
{
    out[0] = c == 0x130 ? 'i' : lower_of(c);
    out[1] = 0x307;
    return c == 0x130 ? 2 : 1; /* full mapping: i and a dot */
}

static clv_spelled spelled(uint32_t c, unsigned combining)
{
    clv_spelled out = { .c = c, .rule = CLV_RULE_LETTER, .combining = combining };
    if (clv_char_is_space(c))
        out.rule = CLV_RULE_SPACE;
    else if (is_ascii_punctuation(c) || class_of(c) == CLV_CHAR_PUNCTUATION)
        out.rule = CLV_RULE_ALONE;
    return out;
}

size_t clv_char_spell(clv_char_flags flags, uint32_t c, clv_spelled out[CLV_SPELLED_MAX])
{
    static const clv_spelled space = { .c = ' ', .rule = CLV_RULE_SPACE };
    const bool kept = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (!kept && class_of(c) == CLV_CHAR_CONTROL)) return 0;
    if (clv_char_is_space(c)) {
        out[0] = space;
        return 1;
    }
    const bool apart = flags.cjk && clv_char_within(ideographs, CLV_LEN(ideographs), c);
    uint32_t parts[CLV_DECOMPOSED_MAX] = { c };
    size_t count = 1, used = 0;
    if (flags.strip && !clv_char_within(young, CLV_LEN(young), c))
        count = clv_char_decompose(c, parts);
    if (apart) out[used++] = space;
    for (size_t i = 0; i < count; ++i) {
        const unsigned combining = flags.strip ? combining_of(parts[i]) : 0;
        if (flags.strip && class_of(parts[i]) == CLV_CHAR_MARK) {
            out[used++] = (clv_spelled){ parts[i], CLV_RULE_MARK, combining };
        } else if (flags.lower && parts[i] == 0x130) { /* full mapping: i and a dot */
            out[used++] = spelled('i', 0);
            out[used++] = spelled(0x307, 0);
        } else {
            out[used++] = spelled(flags.lower ? lower_of(parts[i]) : parts[i], combining);
        }
    }
    if (apart) out[used++] = space;
    return used;
}

uint32_t clv_char_rule(clv_char_flags flags, uint32_t c)
{
    clv_spelled s[CLV_SPELLED_MAX];
    const size_t count = clv_char_spell(flags, c, s);
    uint32_t rule = CLV_RULE_SPELL;
    if (!count)
        rule = CLV_RULE_DROP;
    else if (count == 1 && (s[0].rule != CLV_RULE_LETTER || !s[0].combining))
        rule = s[0].rule;
    else if (count == 2 && s[0].rule == CLV_RULE_LETTER && !s[0].combining &&
             s[1].rule == CLV_RULE_MARK && s[1].combining)
        /* the accent is dropped; a run of combining marks continues after the base letter */
        rule = CLV_RULE_LETTER;
    if (rule == CLV_RULE_MARK) rule = s[0].combining ? CLV_RULE_DROP : CLV_RULE_SPELL;
    return rule << CLV_RULE_SHIFT | (count ? s[0].c : 0);
}

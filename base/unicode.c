/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes UTF-8. Facts about characters come from utf8proc, which only this file includes. */
#include "base/unicode.h"

#include "base/alloc.h"

#include <utf8proc.h>

enum { CLASSES = 256 }; /* canonical combining classes are smaller */

clv_char_class clv_char_classify(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_MN:
        return CLV_CHAR_MARK;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return CLV_CHAR_PUNCTUATION;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
        return CLV_CHAR_CONTROL;
    default:
        return CLV_CHAR_OTHER;
    }
}

bool clv_char_is_letter(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool clv_char_is_number(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool clv_char_is_mark(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool clv_char_is_space(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

size_t clv_char_decompose(uint32_t c, uint32_t out[CLV_DECOMPOSED_MAX])
{
    utf8proc_int32_t parts[CLV_DECOMPOSED_MAX];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)c, parts, CLV_DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > CLV_DECOMPOSED_MAX) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i)
        out[i] = (uint32_t)parts[i];
    return (size_t)count;
}

size_t clv_char_decompose_compat(uint32_t c, uint32_t *out, size_t room)
{
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)c, (utf8proc_int32_t *)out, (utf8proc_ssize_t)room,
        (utf8proc_option_t)(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), &boundary);
    if (count >= 1 && (size_t)count <= room) return (size_t)count;
    out[0] = c;
    return 1;
}

unsigned clv_char_combining(uint32_t c)
{
    return (unsigned)utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

uint32_t clv_char_lower(uint32_t c)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

uint32_t clv_char_upper(uint32_t c)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
}

static int follows(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t clv_utf8_decode(const char *text, size_t length, uint32_t *c)
{
    const unsigned char *t = (const unsigned char *)text;
    if (!length) return 0;
    if (t[0] < 0x80) {
        *c = t[0];
        return 1;
    }
    if (t[0] < 0xC2) return 0; /* a continuation byte, or overlong */
    if (t[0] < 0xE0) {
        if (length < 2 || !follows(t[1])) return 0;
        *c = (uint32_t)(t[0] & 0x1F) << 6 | (t[1] & 0x3F);
        return 2;
    }
    if (t[0] < 0xF0) {
        if (length < 3 || !follows(t[1]) || !follows(t[2])) return 0;
        *c = (uint32_t)(t[0] & 0x0F) << 12 | (uint32_t)(t[1] & 0x3F) << 6 | (t[2] & 0x3F);
        return *c < 0x800 || (*c >= 0xD800 && *c < 0xE000) ? 0 : 3;
    }
    if (t[0] > 0xF4 || length < 4 || !follows(t[1]) || !follows(t[2]) || !follows(t[3])) return 0;
    *c = (uint32_t)(t[0] & 0x07) << 18 | (uint32_t)(t[1] & 0x3F) << 12 |
         (uint32_t)(t[2] & 0x3F) << 6 | (t[3] & 0x3F);
    return *c < 0x10000 || *c > 0x10FFFF ? 0 : 4;
}

size_t clv_utf8_encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

size_t clv_utf8_bad(const char *text, size_t length)
{
    const unsigned char *t = (const unsigned char *)text;
    const unsigned char first = t[0];
    if (first < 0xC2 || first > 0xF4 || length < 2 || !follows(t[1])) return 1;
    if (first < 0xE0) return 1; /* two bytes that fit together are a character */
    if (first < 0xF0) {
        const bool overlong = first == 0xE0 && t[1] < 0xA0;
        return overlong || (first == 0xED && t[1] >= 0xA0) ? 1 : 2;
    }
    if ((first == 0xF0 && t[1] < 0x90) || (first == 0xF4 && t[1] >= 0x90)) return 1;
    return length > 2 && follows(t[2]) ? 3 : 2;
}

/* Sorts a run of combining marks by their class, and keeps the order within a class. Takes one pass per class, of
 * which there are a few dozen, because runs can be long: utf8proc_map takes time that grows with the square of the
 * length. `sorted` has room for the run. */
static void sort_marks(utf8proc_int32_t *run, size_t count, utf8proc_int32_t *sorted)
{
    unsigned next = CLASSES;
    size_t done = 0;
    for (size_t i = 0; i < count; ++i) {
        const unsigned combining = clv_char_combining((uint32_t)run[i]);
        if (combining < next) next = combining;
    }
    while (next < CLASSES) {
        const unsigned now = next;
        next = CLASSES;
        for (size_t i = 0; i < count; ++i) {
            const unsigned combining = clv_char_combining((uint32_t)run[i]);
            if (combining == now) sorted[done++] = run[i];
            if (combining > now && combining < next) next = combining;
        }
    }
    for (size_t i = 0; i < count; ++i)
        run[i] = sorted[i];
}

static void sort_all_marks(utf8proc_int32_t *c, size_t count, utf8proc_int32_t *sorted)
{
    for (size_t from = 0, to; from < count; from = to) {
        unsigned last = 0, combining;
        bool ordered = true;
        for (to = from; to < count; ++to, last = combining) {
            combining = clv_char_combining((uint32_t)c[to]);
            if (!combining) break;
            ordered = ordered && combining >= last;
        }
        if (!ordered) sort_marks(c + from, to - from, sorted);
        if (to == from) ++to; /* a starter */
    }
}

void clv_utf8_compose(const char *text, size_t length, bool compat, clv_text *out)
{
    const utf8proc_option_t form =
        (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0));
    utf8proc_int32_t *parts = NULL, *sorted = NULL;
    size_t count = 0, room = 0;
    int boundary = 0;
    bool good = true;
    for (size_t at = 0, step; good && at < length; at += step) {
        uint32_t c = 0;
        step = clv_utf8_decode(text + at, length - at, &c);
        good = step && clv_reserve(&parts, &room, count + CLV_COMPAT_MAX, sizeof *parts);
        const utf8proc_ssize_t more =
            good ? utf8proc_decompose_char((utf8proc_int32_t)c, parts + count, CLV_COMPAT_MAX, form,
                                           &boundary)
                 : 0;
        good = good && more >= 0 && more <= CLV_COMPAT_MAX;
        count += good ? (size_t)more : 0;
    }
    if (good && count) good = (sorted = clv_alloc(count, sizeof *sorted)) != NULL;
    if (good && count) {
        sort_all_marks(parts, count, sorted);
        const utf8proc_ssize_t left =
            utf8proc_normalize_utf32(parts, (utf8proc_ssize_t)count, form);
        for (utf8proc_ssize_t i = 0; i < left; ++i) {
            char bytes[4];
            clv_text_bytes(out, bytes, clv_utf8_encode((uint32_t)parts[i], bytes));
        }
        good = left >= 0;
    }
    clv_free(parts), clv_free(sorted);
    out->failed = out->failed || !good;
}

bool clv_char_within(const clv_char_range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && c >= ranges[low].first;
}

/* ---- grapheme clusters ----------------------------------------------------------------------------- */

/* Characters that extend the preceding character since Unicode 16 or 17, which the installed utf8proc may not know
 * yet, and those of them that are spacing marks. */
static const clv_char_range extending[] = {
    { 0x897, 0x897 },     { 0xCC0, 0xCC0 },     { 0xCC7, 0xCC8 },     { 0xCCA, 0xCCB },
    { 0x1715, 0x1715 },   { 0x1734, 0x1734 },   { 0x1ACF, 0x1ADD },   { 0x1AE0, 0x1AEB },
    { 0x1B3B, 0x1B3B },   { 0x1B3D, 0x1B3D },   { 0x1B43, 0x1B43 },   { 0x1BAA, 0x1BAA },
    { 0x1BF2, 0x1BF3 },   { 0xA953, 0xA953 },   { 0x10D69, 0x10D6D }, { 0x10EFA, 0x10EFC },
    { 0x111C0, 0x111C0 }, { 0x11235, 0x11235 }, { 0x1134D, 0x1134D }, { 0x113B8, 0x113C0 },
    { 0x113C2, 0x113C2 }, { 0x113C5, 0x113C5 }, { 0x113C7, 0x113CA }, { 0x113CC, 0x113D0 },
    { 0x113D2, 0x113D2 }, { 0x113E1, 0x113E2 }, { 0x116B6, 0x116B6 }, { 0x1193D, 0x1193D },
    { 0x11B60, 0x11B67 }, { 0x11F41, 0x11F41 }, { 0x11F5A, 0x11F5A }, { 0x1611E, 0x1612F },
    { 0x16FF0, 0x16FF1 }, { 0x1D166, 0x1D166 }, { 0x1D16D, 0x1D16D }, { 0x1E5EE, 0x1E5EF },
    { 0x1E6E3, 0x1E6E3 }, { 0x1E6E6, 0x1E6E6 }, { 0x1E6EE, 0x1E6EF }, { 0x1E6F5, 0x1E6F5 },
};

static const clv_char_range spacing[] = {
    { 0x113B9, 0x113BA }, { 0x113CA, 0x113CA }, { 0x113CC, 0x113CD }, { 0x1171E, 0x1171E },
    { 0x11B61, 0x11B61 }, { 0x11B65, 0x11B65 }, { 0x11B67, 0x11B67 }, { 0x1612A, 0x1612C },
};

/* Consonants that a linker (a virama) joins to the following consonant, and the linkers: rule GB9c of Unicode 15.1,
 * with the characters that Unicode 17 adds to the rule. */
static const clv_char_range consonants[] = {
    { 0x915, 0x939 },     { 0x958, 0x95F },     { 0x978, 0x97F },     { 0x995, 0x9A8 },
    { 0x9AA, 0x9B0 },     { 0x9B2, 0x9B2 },     { 0x9B6, 0x9B9 },     { 0x9DC, 0x9DD },
    { 0x9DF, 0x9DF },     { 0x9F0, 0x9F1 },     { 0xA95, 0xAA8 },     { 0xAAA, 0xAB0 },
    { 0xAB2, 0xAB3 },     { 0xAB5, 0xAB9 },     { 0xAF9, 0xAF9 },     { 0xB15, 0xB28 },
    { 0xB2A, 0xB30 },     { 0xB32, 0xB33 },     { 0xB35, 0xB39 },     { 0xB5C, 0xB5D },
    { 0xB5F, 0xB5F },     { 0xB71, 0xB71 },     { 0xC15, 0xC28 },     { 0xC2A, 0xC39 },
    { 0xC58, 0xC5A },     { 0xD15, 0xD3A },     { 0x1000, 0x102A },   { 0x103F, 0x103F },
    { 0x1050, 0x1055 },   { 0x105A, 0x105D },   { 0x1061, 0x1061 },   { 0x1065, 0x1066 },
    { 0x106E, 0x1070 },   { 0x1075, 0x1081 },   { 0x108E, 0x108E },   { 0x1780, 0x17B3 },
    { 0x1A20, 0x1A54 },   { 0x1B0B, 0x1B0C },   { 0x1B13, 0x1B33 },   { 0x1B45, 0x1B4C },
    { 0x1B83, 0x1BA0 },   { 0x1BAE, 0x1BAF },   { 0x1BBB, 0x1BBD },   { 0xA989, 0xA98B },
    { 0xA98F, 0xA9B2 },   { 0xA9E0, 0xA9E4 },   { 0xA9E7, 0xA9EF },   { 0xA9FA, 0xA9FE },
    { 0xAA60, 0xAA6F },   { 0xAA71, 0xAA73 },   { 0xAA7A, 0xAA7A },   { 0xAA7E, 0xAA7F },
    { 0xAAE0, 0xAAEA },   { 0xABC0, 0xABDA },   { 0x10A00, 0x10A00 }, { 0x10A10, 0x10A13 },
    { 0x10A15, 0x10A17 }, { 0x10A19, 0x10A35 }, { 0x11103, 0x11126 }, { 0x11144, 0x11144 },
    { 0x11147, 0x11147 }, { 0x11380, 0x11389 }, { 0x1138B, 0x1138B }, { 0x1138E, 0x1138E },
    { 0x11390, 0x113B5 }, { 0x11900, 0x11906 }, { 0x11909, 0x11909 }, { 0x1190C, 0x11913 },
    { 0x11915, 0x11916 }, { 0x11918, 0x1192F }, { 0x11A00, 0x11A00 }, { 0x11A0B, 0x11A32 },
    { 0x11A50, 0x11A50 }, { 0x11A5C, 0x11A83 }, { 0x11F04, 0x11F10 }, { 0x11F12, 0x11F33 },
};
static const uint32_t linkers[] = { 0x94D,   0x9CD,   0xACD,   0xB4D,   0xC4D,   0xD4D,  0x1039,
                                    0x17D2,  0x1A60,  0x1B44,  0x1BAB,  0xA9C0,  0xAAF6, 0x10A3F,
                                    0x11133, 0x113D0, 0x1193E, 0x11A47, 0x11A99, 0x11F42 };

/* Returns a character that every version of utf8proc knows and that breaks in the same way as `c`. */
static utf8proc_int32_t alike(uint32_t c)
{
    if (clv_char_within(spacing, CLV_LEN(spacing), c)) return 0x903;
    if (clv_char_within(extending, CLV_LEN(extending), c)) return 0x300;
    if (c == 0x113D1) return 0x600; /* joins what follows */
    if (c == 0x11A3A) return 'a';   /* no longer joins what follows */
    return (utf8proc_int32_t)c;
}

/* How much of a conjunct the characters read so far form. */
typedef enum conjunct { NO_CONJUNCT, CONSONANT, LINKED } conjunct;

static conjunct advance(conjunct state, uint32_t c, bool joins)
{
    if (c < 0x300) return NO_CONJUNCT;
    if (clv_char_within(consonants, CLV_LEN(consonants), c)) return CONSONANT;
    if (!state || !joins || c == 0x200C) return NO_CONJUNCT;
    for (size_t i = 0; i < CLV_LEN(linkers); ++i)
        if (c == linkers[i]) return LINKED;
    const int kind = utf8proc_get_property(alike(c))->boundclass;
    return kind == UTF8PROC_BOUNDCLASS_EXTEND || kind == UTF8PROC_BOUNDCLASS_ZWJ ? state
                                                                                 : NO_CONJUNCT;
}

size_t clv_grapheme_length(const char *text, size_t length)
{
    uint32_t left = 0, right = 0;
    utf8proc_int32_t state = 0;
    size_t at = clv_utf8_decode(text, length, &left);
    if (!at) return 1;
    conjunct before = advance(NO_CONJUNCT, left, false);
    for (size_t bytes; at < length; at += bytes, left = right) {
        bytes = clv_utf8_decode(text + at, length - at, &right);
        if (!bytes) break;
        const bool joins = !utf8proc_grapheme_break_stateful(alike(left), alike(right), &state);
        const conjunct behind = advance(before, right, joins);
        if (!joins && !(before == LINKED && behind == CONSONANT)) break;
        before = behind;
    }
    return at;
}

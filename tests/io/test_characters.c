/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about characters that ids depend on, and that must not depend on the version of the installed utf8proc: which
 * marks are dropped, and where grapheme clusters end. The expected values are those of the library tokenizers 0.23.3
 * (StripAccents; Precompiled, which keeps the second mark of a cluster of 6 bytes or more). */
#include "io_test.h"

#include "base/alloc.h"
#include "base/unicode.h"
#include "host/tokenizer/tokenizer.h"

#include <string.h>

static void marks_are_those_of_unicode_9(void **state)
{
    (void)state;
    static const struct {
        uint32_t c;
        bool dropped;
    } marks[] = {
        { 0x301, true },    { 0x903, true },    { 0x1885, true },   { 0x1CF2, true },
        { 0x1E006, true },  { 0x1E02A, true },  { 0xCF3, false },   { 0x5C8, false },
        { 0x897, false },   { 0xB53, false },   { 0x1ACF, false },  { 0x10D69, false },
        { 0x113CE, false }, { 0x1612F, false }, { 0x1D250, false }, { 0x1E007, false },
        { 0x1E019, false }, { 0x1E01A, false }, { 0x1E022, false }, { 0x1E025, false },
        { 0x1E5EE, false }, { 0x1E6F5, false }, { 0x1160, false },  { 'a', false },
    };
    for (size_t i = 0; i < CLV_LEN(marks); ++i)
        if (clv_char_is_old_mark(marks[i].c) != marks[i].dropped)
            fail_msg("U+%04X is %s", (unsigned)marks[i].c, marks[i].dropped ? "kept" : "dropped");
}

static void characters_that_came_later_stay_whole(void **state)
{
    (void)state;
    static const uint32_t later[] = {
        0xA7F1, 0x105C9, 0x113C5, 0x16121, 0x16D68, 0x1CCD6, 0x1E030
    };
    for (size_t i = 0; i < CLV_LEN(later); ++i) {
        uint32_t parts[CLV_COMPAT_MAX];
        if (clv_char_old_decompose(later[i], true, parts) != 1 || parts[0] != later[i] ||
            clv_char_old_combining(later[i]))
            fail_msg("U+%04X decomposes", (unsigned)later[i]);
    }
}

static void clusters_are_those_of_unicode_17(void **state)
{
    (void)state;
    static const struct {
        uint32_t c[5]; /* ends with 0 */
        size_t first;  /* the characters of the first cluster */
    } texts[] = {
        { { 'a', 0x301, 0x327, 'b' }, 3 },
        { { 0xBD, 0x897, 'b' }, 2 },
        { { 0xBD, 0x301, 0x1AE0, 0x10EFA, 'b' }, 4 },
        { { 0xBD, 0x1ADE }, 1 },
        { { 0x113D1, 0xBD, 0x301, 'b' }, 3 },
        { { 0x11A3A, 0xBD }, 1 },
        { { 0x915, 0x94D, 0x958, 0x301, 'b' }, 4 },
        { { 0x915, 0x94D, 0xB5C, 0x301, 0x915 }, 4 },
        { { 0x915, 0x93C, 0x94D, 0x200D, 0x937 }, 5 },
        { { 0x915, 0x94D, 0x903, 0x958 }, 3 },
        { { 0x915, 0x94D, 0xCC0, 0x958 }, 4 },
        { { 0x915, 0x94D, 0x1171E, 0x958 }, 3 },
        { { 0x915, 0x94D, 0x200C, 0x958 }, 3 },
        { { 0x915, 0x958 }, 1 },
        { { 0x94D, 0x958 }, 1 },
        { { 0x915, 0x94D, 'a', 0x301 }, 2 },
        { { '\r', '\n', 0x301 }, 2 },
        { { 0x1F469, 0x200D, 0x1F680, 0x1F680 }, 3 },
        { { 0x1100, 0x1160, 0x11A8, 0x1100 }, 3 },
        { { '\n', 0x1160 }, 1 },
    };
    for (size_t i = 0; i < CLV_LEN(texts); ++i) {
        char text[5 * 4];
        size_t length = 0, expected = 0;
        for (size_t k = 0; k < CLV_LEN(texts[i].c) && texts[i].c[k]; ++k) {
            if (k == texts[i].first) expected = length;
            length += clv_utf8_encode(texts[i].c[k], text + length);
        }
        if (!expected) expected = length;
        const size_t found = clv_grapheme_length(text, length);
        if (found != expected)
            fail_msg("text %zu: the first cluster has %zu bytes, expected %zu", i, found, expected);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_those_of_unicode_9),
        cmocka_unit_test(characters_that_came_later_stay_whole),
        cmocka_unit_test(clusters_are_those_of_unicode_17),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

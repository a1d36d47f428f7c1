/* SPDX-License-Identifier: Apache-2.0 */
/* Parses sizes with a physical unit, and writes units as parts of column names. */
#include "host/cli/units.h"

#include "base/alloc.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

/* Parses a number above 0 at the beginning of `*text` and moves `*text` past it. */
static bool take_number(const char **text, double *value)
{
    char number[40];
    const size_t length = strspn(*text, "0123456789.eE+-");
    if (!length || length >= sizeof number) return false;
    memcpy(number, *text, length);
    number[length] = '\0';
    *text += length;
    return clv_parse_double(number, value) && *value > 0;
}

/* Copies the unit, which is empty or begins with a letter ("um", or a letter that is not ASCII). */
static bool take_unit(const char *text, char *unit, size_t room)
{
    const unsigned char first = (unsigned char)*text;
    if (first && first < 0x80 && !isalpha(first)) return false;
    if (strlen(text) >= room) return false;
    clv_copy_string(unit, room, text);
    return true;
}

bool cli_parse_size(const char *text, double *size, char *unit, size_t room)
{
    return take_number(&text, size) && take_unit(text, unit, room);
}

bool cli_parse_voxel(const char *text, double voxel[3], char *unit, size_t room)
{
    for (int axis = 0; axis < 3; ++axis) {
        if (!take_number(&text, &voxel[axis])) return false;
        if (axis < 2 && *text++ != ',') return false;
    }
    return take_unit(text, unit, room);
}

void cli_unit_word(const char *unit, char *out, size_t room)
{
    static const struct {
        const char *spelt, *word;
    } words[] = {
        { "\xC2\xB5m", "um" },  { "\xCE\xBCm", "um" },  { "micron", "um" },    { "microns", "um" },
        { "micrometer", "um" }, { "micrometre", "um" }, { "nanometer", "nm" }, { "sec", "s" },
        { "second", "s" },      { "seconds", "s" },     { "msec", "ms" },      { "pixel", "" },
        { "pixels", "" },       { "px", "" },           { "frame", "" },
    };
    size_t used = 0;
    for (size_t i = 0; i < CLV_LEN(words); ++i)
        if (strcmp(words[i].spelt, unit) == 0) {
            clv_copy_string(out, room, words[i].word);
            return;
        }
    for (; *unit && used + 1 < room; ++unit)
        if (strspn(unit, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))
            out[used++] = *unit;
    out[used] = '\0';
}

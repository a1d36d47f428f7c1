/* SPDX-License-Identifier: Apache-2.0 */
/* Physical units of a movie, and the columns of a table that are in them. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

int blobs_units_of(const blobs_args *a, const clv_movie_facts *facts, blobs_units *units)
{
    *units = (blobs_units){ .pixel_size = facts->pixel_size,
                            .interval = facts->interval,
                            .movie = a->movie,
                            .width = facts->width,
                            .height = facts->height,
                            .depth = facts->depth,
                            .frames = facts->frames / CLV_MAX(facts->depth, (size_t)1),
                            .row = facts->pixel_size > 0 ? facts->row_spacing : 0 };
    clv_copy_string(units->space, sizeof units->space,
                    facts->pixel_unit[0] ? facts->pixel_unit : "pixel");
    clv_copy_string(units->time, sizeof units->time,
                    facts->time_unit[0] ? facts->time_unit : "sec");
    if (a->pixel_size) {
        char number[40];
        const size_t length = strspn(a->pixel_size, "0123456789.eE+-");
        if (length >= sizeof number)
            return cli_error(cli_running(), CLI_USAGE, "--pixel-size: too long");
        memcpy(number, a->pixel_size, length);
        number[length] = '\0';
        if (!clv_parse_double(number, &units->pixel_size) || !(units->pixel_size > 0))
            return cli_error(cli_running(), CLI_USAGE,
                             "--pixel-size: \"%s\" given, expected a size such as 0.1um",
                             a->pixel_size);
        clv_copy_string(units->space, sizeof units->space,
                        a->pixel_size[length] ? a->pixel_size + length : "pixel");
        units->row = 0;
        const bool xml = (a->output && cli_formats_of(a->output) == CLI_XML) ||
                         (a->tracks && cli_formats_of(a->tracks) == CLI_XML);
        if (a->format == BLOBS_CLEAVE && !xml && !blobs_has_unit(units))
            return cli_error(cli_running(), CLI_USAGE,
                             "--pixel-size %s has no unit, after which columns are called: give "
                             "one, such as %sum",
                             a->pixel_size, number);
    }
    if (a->interval_given) {
        if (!(a->interval > 0))
            return cli_error(cli_running(), CLI_USAGE, "--interval: %g given, expected more than 0",
                             a->interval);
        units->interval = a->interval;
        clv_copy_string(units->time, sizeof units->time, "sec");
    }
    return -1;
}

/* A unit as part of a column's name: "um" of its many spellings, else its letters and digits; "": none. */
static void word_of(const char *unit, char *out, size_t room)
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

bool blobs_has_unit(const blobs_units *units)
{
    char word[sizeof units->space];
    word_of(units->space, word, sizeof word);
    return word[0] != '\0';
}

void blobs_find_extra(const blobs_units *u, bool volume, blobs_extra *extra)
{
    static const char *const axes[] = { "z", "y", "x" };
    char word[sizeof u->space];
    *extra = (blobs_extra){ .count = 0 };
    word_of(u->space, word, sizeof word);
    if (u->pixel_size > 0 && word[0]) {
        const double side[] = { u->plane, u->row > 0 ? u->row : u->pixel_size, u->pixel_size };
        for (int axis = volume ? 0 : 1; axis < 3; ++axis) {
            snprintf(extra->name[extra->count], sizeof extra->name[0], "%s_%s", axes[axis], word);
            extra->scale[extra->count++] = side[axis];
        }
        extra->places = extra->count;
    }
    word_of(u->time, word, sizeof word);
    if (u->interval > 0 && word[0]) {
        snprintf(extra->name[extra->count], sizeof extra->name[0], "t_%s", word);
        extra->scale[extra->count++] = u->interval;
    }
}

void blobs_extra_values(const blobs_extra *extra, uint32_t frame, const double *place,
                        double *values)
{
    for (size_t i = 0; i < extra->count; ++i)
        values[i] = (i < extra->places ? place[i] : (double)frame) * extra->scale[i];
}

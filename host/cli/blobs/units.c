/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the physical units of a movie, and the names and values of the table columns in these units. */
#include "host/cli/blobs/blobs.h"
#include "host/cli/units.h"

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
        char unit[sizeof units->space];
        if (!cli_parse_size(a->pixel_size, &units->pixel_size, unit, sizeof unit))
            return cli_error(cli_running(), CLI_USAGE,
                             "--pixel-size is \"%s\", but it must be a size such as 0.1um",
                             a->pixel_size);
        clv_copy_string(units->space, sizeof units->space, unit[0] ? unit : "pixel");
        units->row = 0;
        const bool xml = (a->output && cli_formats_of(a->output) == CLI_XML) ||
                         (a->tracks && cli_formats_of(a->tracks) == CLI_XML);
        const bool named = a->format == BLOBS_CLEAVE || a->format == BLOBS_NAPARI;
        if (named && !xml && !blobs_has_unit(units))
            return cli_error(cli_running(), CLI_USAGE,
                             "--pixel-size %s has no unit, but the names of columns contain it; "
                             "add one, such as %gum",
                             a->pixel_size, units->pixel_size);
    }
    if (a->interval_given) {
        if (!(a->interval > 0))
            return cli_error(cli_running(), CLI_USAGE,
                             "--interval is %g, but it must be more than 0", a->interval);
        units->interval = a->interval;
        clv_copy_string(units->time, sizeof units->time, "sec");
    }
    return -1;
}

bool blobs_has_unit(const blobs_units *units)
{
    char word[sizeof units->space];
    cli_unit_word(units->space, word, sizeof word);
    return word[0] != '\0';
}

void blobs_find_extra(const blobs_units *u, bool volume, blobs_extra *extra)
{
    static const char *const axes[] = { "z", "y", "x" };
    char word[sizeof u->space];
    *extra = (blobs_extra){ .count = 0 };
    cli_unit_word(u->space, word, sizeof word);
    if (u->pixel_size > 0 && word[0]) {
        const double side[] = { u->plane, u->row > 0 ? u->row : u->pixel_size, u->pixel_size };
        for (int axis = volume ? 0 : 1; axis < 3; ++axis) {
            snprintf(extra->name[extra->count], sizeof extra->name[0], "%s_%s", axes[axis], word);
            extra->scale[extra->count++] = side[axis];
        }
        extra->places = extra->count;
    }
    cli_unit_word(u->time, word, sizeof word);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the steps between reading and the search: finds the star, chooses the frames to use, and fills in pixels. */
#include "host/cli/paco/files.h"

#include "base/alloc.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest scale of a frame that is still used. `worst_scale` applies if all frames have the same weight (good
 * sequences reach 3), `worst_weighed` if frames are weighted, because the worst frames then count next to nothing. */
static const double worst_scale = 4, worst_weighed = 1000;

enum { ROBUST, VARIANCE, ALIKE }; /* --frame-weights */

const char *paco_weights_name(const paco_args *a)
{
    static const char *const names[] = { "robust", "variance", "none" };
    return names[a->weights];
}

static clv_paco_input channel_of(const paco_inputs *in, size_t channel)
{
    return (clv_paco_input){ .size = sizeof(clv_paco_input),
                             .cube = in->cube + channel * in->frames * in->height * in->width,
                             .frames = in->frames,
                             .height = in->height,
                             .width = in->width,
                             .weights = in->weights };
}

/* Parses "3,7-9" and marks these frames; returns false if the list is not valid. */
static bool mark_list(const char *list, clv_paco_frame *frames, size_t count)
{
    for (const char *at = list;;) {
        char *end;
        if (!isdigit((unsigned char)*at)) return false; /* strtoul takes "-3" as well */
        const unsigned long first = strtoul(at, &end, 10);
        unsigned long last = first;
        if (*end == '-') {
            at = end + 1;
            if (!isdigit((unsigned char)*at)) return false;
            last = strtoul(at, &end, 10);
        }
        if (last < first || last >= count) return false;
        for (unsigned long l = first; l <= last; ++l)
            frames[l].rejected = true;
        if (!*end) return true;
        if (*end != ',') return false;
        at = end + 1;
    }
}

/* Judges the frames by all channels in use: one bad channel rejects a frame. */
static int judge_frames(const paco_args *a, paco_inputs *in)
{
    const bool automatic = !a->reject || strcmp(a->reject, "auto") == 0,
               none = a->reject && strcmp(a->reject, "none") == 0;
    const double limit = a->weights == ALIKE ? worst_scale : worst_weighed;
    clv_paco_frame *one = clv_alloc(in->frames + 1, sizeof *one);
    in->quality = clv_zalloc(in->frames + 1, sizeof *in->quality);
    int code = one && in->quality ? CLI_OK
                                  : cli_error(cli_running(), CLI_FAILED,
                                              "not enough memory for %zu frames", in->frames);
    for (size_t c = 0; c < in->channels_used && !code; ++c) {
        size_t kept;
        const clv_paco_input input = channel_of(in, in->first_channel + c);
        code = cli_status(cli_running(),
                          clv_paco_frames(&input, automatic ? limit : INFINITY, one, &kept));
        for (size_t l = 0; l < in->frames && !code; ++l) {
            clv_paco_frame *all = &in->quality[l];
            all->scale = fmax(all->scale, one[l].scale),
            all->missing = fmax(all->missing, one[l].missing);
            all->rejected = all->rejected || (automatic && one[l].rejected);
        }
    }
    clv_free(one);
    if (!code && !automatic && !none && !mark_list(a->reject, in->quality, in->frames))
        code = cli_error(cli_running(), CLI_USAGE,
                         "--reject-frames is \"%s\", but it must be auto, none, or frames from 0 "
                         "to %zu, such as 3,7-9",
                         a->reject, in->frames - 1);
    return code;
}

/* Computes the weights of the frames that were read, 0 for rejected ones, and prints how many count less. */
static int weigh_frames(const paco_args *a, paco_inputs *in)
{
    in->weights_read = clv_alloc(in->frames + 1, sizeof *in->weights_read);
    in->weights = a->weights == ALIKE ? NULL : clv_alloc(in->frames + 1, sizeof *in->weights);
    if (!in->weights_read || (a->weights != ALIKE && !in->weights))
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for %zu frames", in->frames);
    if (in->weights) {
        const clv_status status = clv_paco_frame_weights(
            in->quality, in->frames,
            a->weights == VARIANCE ? CLV_WEIGHTS_VARIANCE : CLV_WEIGHTS_ROBUST, in->weights_read);
        if (status) return cli_status(cli_running(), status);
    }
    size_t n = 0, least = 0;
    for (size_t l = 0; l < in->frames; ++l) {
        double *weight = &in->weights_read[l];
        if (!in->weights) *weight = 1;
        if (in->quality[l].rejected) *weight = 0;
        if (in->quality[l].rejected || !in->weights) continue;
        in->weights[n++] = *weight;
        if (*weight >= 1) continue;
        if (!in->lowered++ || *weight < in->weights_read[least]) least = l;
    }
    if (in->lowered && a->weights == ROBUST && !a->common.quiet)
        cli_say(stderr,
                "%zu of %zu frames have a reduced weight; the lowest is that of frame %zu (weight "
                "%.2g, %.3g times the usual deviation). frames.csv lists all; --frame-weights none "
                "weights all frames equally\n",
                in->lowered, in->frames, least, in->weights_read[least], in->quality[least].scale);
    return CLI_OK;
}

/* Moves the frames that are kept to the front, in all channels. */
static int drop_frames(const paco_args *a, const char *cube, paco_inputs *in)
{
    const size_t plane = in->height * in->width;
    size_t kept = 0, first = 0;
    for (size_t l = in->frames; l-- > 0;) {
        kept += !in->quality[l].rejected;
        if (in->quality[l].rejected) first = l;
    }
    in->frames_read = in->frames;
    in->angles_read = clv_alloc(in->frames + 1, sizeof *in->angles_read);
    if (!in->angles_read)
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for %zu angles", in->frames);
    memcpy(in->angles_read, in->angles, in->frames * sizeof *in->angles);
    if (kept == in->frames) return CLI_OK;
    if (kept < 2)
        return cli_error(cli_running(), CLI_USAGE,
                         "%s: only %zu of %zu frames can be used, but statistics over time need at "
                         "least 2; the other frames are mostly NaN, or very different from these "
                         "(--reject-frames none keeps them)",
                         cube, kept, in->frames);
    if (!a->common.quiet)
        cli_say(stderr,
                "%zu of %zu frames are left out, frame %zu first (%.3g times the usual deviation, "
                "%.0f %% of its pixels missing); frames.csv lists all\n",
                in->frames - kept, in->frames, first, in->quality[first].scale,
                100 * in->quality[first].missing);
    float *to = in->cube;
    for (size_t c = 0; c < in->channels; ++c)
        for (size_t l = 0; l < in->frames; ++l) {
            if (in->quality[l].rejected) continue;
            memmove(to, in->cube + (c * in->frames + l) * plane, plane * sizeof *to);
            to += plane;
        }
    for (size_t l = 0, n = 0; l < in->frames; ++l)
        if (!in->quality[l].rejected) in->angles[n++] = in->angles[l];
    in->frames = kept;
    return CLI_OK;
}

static int mend(const paco_args *a, paco_inputs *in)
{
    const size_t plane = in->height * in->width;
    for (size_t c = 0; c < in->channels_used; ++c) {
        size_t mended;
        float *cube = in->cube + (in->first_channel + c) * in->frames * plane;
        const clv_status status =
            clv_paco_mend(cube, in->frames, in->height, in->width, in->fwhm, &mended);
        if (status) return cli_status(cli_running(), status);
        in->mended += mended;
    }
    if (in->mended && !a->common.quiet)
        cli_say(stderr,
                "%zu pixels were NaN or infinite: filled in from their neighbours (--nan mask "
                "leaves them out)\n",
                in->mended);
    return CLI_OK;
}

static int find_star(paco_args *a, paco_inputs *in)
{
    const double far = 0.3, middle_x = (double)(in->width / 2), middle_y = (double)(in->height / 2);
    const bool automatic = !a->centre || strcmp(a->centre, "auto") == 0;
    if (a->centre && strchr(a->centre, ',')) return CLI_OK;
    a->centre_x = middle_x, a->centre_y = middle_y;
    if (!automatic) return CLI_OK;
    clv_star star;
    const clv_paco_input input = channel_of(in, in->first_channel);
    const clv_status status = clv_paco_star(&input, in->fwhm, &star);
    if (status) return cli_status(cli_running(), status);
    if (!star.found) {
        if (!a->common.quiet)
            cli_say(stderr,
                    "no sufficiently symmetric star was found: using (%g, %g) as its position "
                    "(--center sets it)\n",
                    middle_x, middle_y);
    } else if (hypot(star.x - middle_x, star.y - middle_y) > far) {
        cli_warn(cli_running(),
                 "the star is at (%.2f, %.2f), not at (%g, %g): using the measured position "
                 "(--center middle uses the middle of the frame)",
                 star.x, star.y, middle_x, middle_y);
        a->centre_x = star.x, a->centre_y = star.y;
    }
    return CLI_OK;
}

/* Checks that the positions that the user gave lie in the frames. */
static int check_places(const paco_args *a, const paco_inputs *in)
{
    for (size_t i = 0; a->at.items[i]; ++i) {
        double x, y;
        if (!paco_parse_place(a->at.items[i], &x, &y) || !(x >= 0 && y >= 0) ||
            x > (double)(in->width - 1) || y > (double)(in->height - 1))
            return cli_error(
                cli_running(), CLI_USAGE,
                "--at is \"%s\", which is outside the frames of %zux%zu; expected X from 0 to %zu "
                "and Y from 0 to %zu, the column and row of a pixel, not a distance from the star",
                a->at.items[i], in->width, in->height, in->width - 1, in->height - 1);
    }
    return CLI_OK;
}

int paco_prepare(paco_args *a, const char *cube, paco_inputs *in)
{
    int code = check_places(a, in);
    if (!code) code = judge_frames(a, in);
    if (!code) code = weigh_frames(a, in);
    if (!code) code = drop_frames(a, cube, in);
    if (!code && !a->nan) code = mend(a, in);
    if (!code) code = find_star(a, in);
    return code;
}

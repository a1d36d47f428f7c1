/* SPDX-License-Identifier: Apache-2.0 */
/* Turns spots into tracks: links them, drops short tracks, fills gaps, and writes the file. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A spot and the track to which it belongs. */
typedef struct member {
    clv_spot spot;
    clv_spot_error error;
    int64_t particle;
} member;

static int by_track(const void *left, const void *right)
{
    const member *a = left, *b = right;
    if (a->particle != b->particle) return a->particle < b->particle ? -1 : 1;
    return (a->spot.frame > b->spot.frame) - (a->spot.frame < b->spot.frame);
}

static int by_frame(const void *left, const void *right)
{
    const member *a = left, *b = right;
    if (a->spot.frame != b->spot.frame) return a->spot.frame < b->spot.frame ? -1 : 1;
    if (a->spot.y != b->spot.y) return a->spot.y < b->spot.y ? -1 : 1;
    if (a->spot.x != b->spot.x) return a->spot.x < b->spot.x ? -1 : 1;
    return (a->particle > b->particle) - (a->particle < b->particle);
}

static float between(float a, float b, float part)
{
    return a + (b - a) * part;
}

static clv_spot step_between(const clv_spot *a, const clv_spot *b, uint32_t frame)
{
    const float part = (float)(frame - a->frame) / (float)(b->frame - a->frame);
    return (clv_spot){
        .frame = frame,
        .flags = CLV_SPOT_GAP,
        .y = between(a->y, b->y, part),
        .x = between(a->x, b->x, part),
        .sigma = between(a->sigma, b->sigma, part),
        .response = between(a->response, b->response, part),
        .mass = between(a->mass, b->mass, part),
        .background = between(a->background, b->background, part),
        .snr = between(a->snr, b->snr, part),
    };
}

clv_status blobs_check_gaps(const char *path, double made, size_t bytes_each)
{
    static const double most = 1e8;
    if (made > most)
        return clv_fail(CLV_E_MEMORY,
                        "%s: --fill-gaps would add %.4g spots, but at most %.4g are possible; give "
                        "a smaller --memory, or leave out --fill-gaps",
                        path, made, most);
    return clv_io_need(path, "with its gaps filled", (uint64_t)(made * (double)bytes_each));
}

/* Adds spots in the frames where a track was not detected; members are sorted by track and frame. */
static clv_status fill_gaps(member **members, size_t *count)
{
    size_t room = *count, total = *count;
    double made = 0;
    for (size_t i = 1; i < *count; ++i)
        if ((*members)[i].particle == (*members)[i - 1].particle)
            made += (double)(*members)[i].spot.frame - (double)(*members)[i - 1].spot.frame - 1;
    CLV_TRY(blobs_check_gaps("blobs", made, 2 * sizeof **members));
    for (size_t i = 1, seen = *count; i < seen; ++i) {
        if ((*members)[i].particle != (*members)[i - 1].particle) continue;
        const uint32_t last = (*members)[i].spot.frame;
        for (uint32_t f = (*members)[i - 1].spot.frame + 1; f < last; ++f) {
            if (!clv_reserve(members, &room, total + 1, sizeof **members))
                return clv_fail(CLV_E_MEMORY, "not enough memory to fill gaps");
            (*members)[total++] = (member){
                step_between(&(*members)[i - 1].spot, &(*members)[i].spot, f),
                { NAN, NAN },
                (*members)[i].particle,
            };
        }
    }
    *count = total;
    return CLV_OK;
}

static clv_status link_members(const blobs_spot *spots, size_t count, const blobs_args *a,
                               int64_t *particle, size_t *tracks)
{
    clv_point *points = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *points);
    if (!points) return clv_fail(CLV_E_MEMORY, "not enough memory to link %zu spots", count);
    for (size_t i = 0; i < count; ++i)
        points[i] = (clv_point){ spots[i].is.frame, (double)spots[i].is.y, (double)spots[i].is.x };
    const clv_link_options options = { .size = sizeof options,
                                       .search_range = a->link,
                                       .memory = (size_t)a->memory,
                                       .min_length = (size_t)a->min_length,
                                       .predict = (clv_link_predict)a->predict };
    const clv_status status = clv_link(points, count, &options, particle, tracks);
    clv_free(points);
    return status;
}

clv_status blobs_link(blobs_spot **spots, size_t *count, const blobs_args *a, int64_t **particle,
                      size_t *tracks)
{
    const size_t seen = *count;
    int64_t *of = clv_alloc(CLV_MAX(seen, (size_t)1), sizeof *of);
    member *members = clv_alloc(CLV_MAX(seen, (size_t)1), sizeof *members);
    clv_status status =
        of && members ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory to link");
    if (!status) status = link_members(*spots, seen, a, of, tracks);
    size_t kept = 0;
    for (size_t i = 0; i < seen && !status; ++i)
        if (of[i] >= 0) members[kept++] = (member){ (*spots)[i].is, (*spots)[i].error, of[i] };
    if (!status && a->fill_gaps) {
        qsort(members, kept, sizeof *members, by_track);
        status = fill_gaps(&members, &kept);
    }
    if (!status) {
        qsort(members, kept, sizeof *members, by_frame);
        blobs_spot *all = clv_realloc(*spots, CLV_MAX(kept, (size_t)1), sizeof *all);
        if (all) *spots = all;
        clv_free(of);
        of = clv_alloc(CLV_MAX(kept, (size_t)1), sizeof *of);
        if (!all || !of) status = clv_fail(CLV_E_MEMORY, "not enough memory for %zu spots", kept);
    }
    if (!status) {
        for (size_t i = 0; i < kept; ++i)
            (*spots)[i] = (blobs_spot){ members[i].spot, members[i].error },
            of[i] = members[i].particle;
        *count = kept, *particle = of, of = NULL;
    }
    clv_free(of), clv_free(members);
    return status;
}

clv_status blobs_write_tracks(const blobs_args *a, const blobs_units *units,
                              const blobs_spot *spots, const int64_t *particle, size_t count)
{
    blobs_writer writer;
    CLV_TRY(blobs_writer_open(&writer, a->tracks, a, units, true));
    clv_status status = blobs_writer_add(&writer, spots, particle, count);
    if (!status) return blobs_writer_finish(&writer);
    blobs_writer_abandon(&writer);
    return status;
}

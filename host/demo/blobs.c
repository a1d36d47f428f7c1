/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: detects and tracks wandering particles. */
#include "host/demo/demo.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/cli/blobs/blobs.h"
#include "host/io/formats/npy.h"
#include "host/synthetic/movie.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 40, SIDE = 256, PARTICLES = 40, SEED = 11 };

static const clv_blob_options options = { .size = sizeof(clv_blob_options),
                                          .threshold_sigma_given = true,
                                          .threshold_sigma = 6 };

typedef struct outcome {
    synthetic_movie movie;
    clv_spot *spots;
    size_t count;
    int64_t *particle;
    size_t tracks;
} outcome;

static clv_status once(clv_context *context, clv_report *report, outcome *o)
{
    clv_free(o->spots), o->spots = NULL;
    return clv_blobs(context, &o->movie.shape, o->movie.pixels, &options, &o->spots, &o->count,
                     NULL, report);
}

static clv_status compute(const demo_stage *stage, outcome *o, demo_row *row)
{
    for (demo_runs r = { 0 }; demo_next_run(&r, row);)
        CLV_TRY(once(stage->context, r.last ? stage->report : NULL, o));
    return CLV_OK;
}

static clv_status link_spots(outcome *o)
{
    clv_point *points = clv_alloc(o->count + 1, sizeof *points);
    o->particle = clv_alloc(o->count + 1, sizeof *o->particle);
    if (!points || !o->particle) {
        clv_free(points);
        return clv_fail(CLV_E_MEMORY, "not enough memory to link");
    }
    for (size_t i = 0; i < o->count; ++i)
        points[i] = (clv_point){ o->spots[i].frame, (double)o->spots[i].y, (double)o->spots[i].x };
    const clv_link_options how = {
        .size = sizeof(clv_link_options), .search_range = 4, .memory = 1, .min_length = FRAMES / 2
    };
    const clv_status status = clv_link(points, o->count, &how, o->particle, &o->tracks);
    clv_free(points);
    return status;
}

/* Compares the spots that were found with the reference's, one by one. */
static clv_status check(const outcome *o, demo_row *row)
{
    clv_context *plain;
    clv_spot *want = NULL;
    size_t count = 0, differ = 0;
    const clv_context_options reference = { .size = sizeof(clv_context_options),
                                            .mode = CLV_MODE_REFERENCE,
                                            .cache_dir = "" };
    CLV_TRY(clv_context_create(&reference, &plain));
    const double started = clv_now();
    const clv_status status =
        clv_blobs(plain, &o->movie.shape, o->movie.pixels, &options, &want, &count, NULL, NULL);
    row->reference_s = clv_now() - started;
    clv_context_free(plain);
    for (size_t i = 0; i < count && i < o->count; ++i)
        differ += o->spots[i].frame != want[i].frame ||
                  !(fabsf(o->spots[i].y - want[i].y) <= 1e-3f) ||
                  !(fabsf(o->spots[i].x - want[i].x) <= 1e-3f);
    clv_free(want);
    if (status) return status;
    const bool same = count == o->count && !differ;
    clv_text_add(&row->notes, "%s plain C: %zu spots, places within 0.001 pixels\n",
                 same ? "agrees with" : "DIFFERS FROM", count);
    row->ok = row->ok && same;
    return CLV_OK;
}

static clv_status show(const outcome *o, const char *folder, demo_row *row)
{
    char path[4096];
    blobs_projection p = { 0 };
    const clv_movie_facts facts = {
        .type = CLV_U16, .frames = FRAMES, .height = SIDE, .width = SIDE
    };
    const clv_file_array array = { CLV_U16, 3, { FRAMES, SIDE, SIDE }, o->movie.pixels };
    if (!blobs_project(&p, &facts, o->movie.pixels, FRAMES, NULL, false))
        return clv_fail(CLV_E_MEMORY, "not enough memory for a picture");
    snprintf(path, sizeof path, "%s/blobs-tracks.png", folder);
    clv_status status = blobs_draw(&p, NULL, o->spots, o->particle, o->count, path);
    blobs_projection_clear(&p);
    if (!status) clv_text_add(&row->notes, "%s: brightest values, spots and tracks\n", path);
    if (status == CLV_E_FORMAT) { /* a build without PNG: everything else was written */
        clv_text_add(&row->notes, "%s: %s\n", path, clv_error_message());
        status = CLV_OK;
    }
    snprintf(path, sizeof path, "%s/blobs-movie.npy", folder);
    if (!status) status = clv_npy_write(path, &array);
    clv_text_add(&row->notes,
                 "again: cleave blobs %s --threshold-sigma 6 --link 4 \\\n"
                 "  -o %s/blobs.csv\n",
                 path, folder);
    return status;
}

static void tell_spots(const outcome *o, demo_row *row)
{
    const synthetic_score score = synthetic_movie_judge(&o->movie, o->spots, o->count, 2);
    const size_t all = (size_t)FRAMES * PARTICLES;
    snprintf(row->found, sizeof row->found, "%.1f %% of %d particles",
             100 * (double)score.found / (double)all, PARTICLES);
    clv_text_add(&row->notes,
                 "%zu of %zu spots found, %zu too many, %.2f pixels off (rms); %zu "
                 "tracks\n",
                 score.found, all, score.extra, score.rms_px, o->tracks);
    if (score.found * 100 < all * 97 || score.extra * 100 > all * 3 || score.rms_px > 0.3)
        row->ok = false;
}

static clv_status run(const demo_stage *stage, outcome *o, demo_row *row)
{
    CLV_TRY(compute(stage, o, row));
    CLV_TRY(link_spots(o));
    tell_spots(o, row);
    CLV_TRY(check(o, row));
    return show(o, stage->folder, row);
}

clv_status demo_blobs(const demo_stage *stage, demo_row *row)
{
    outcome o = { 0 };
    clv_status status = synthetic_movie_create(FRAMES, SIDE, SIDE, PARTICLES, SEED, &o.movie);
    snprintf(row->input, sizeof row->input, "%d frames of %dx%d", FRAMES, SIDE, SIDE);
    if (!status && stage->preparing)
        status = demo_prepared(once(stage->context, NULL, &o));
    else if (!status)
        status = run(stage, &o, row);
    synthetic_movie_clear(&o.movie);
    clv_free(o.spots);
    clv_free(o.particle);
    return status;
}

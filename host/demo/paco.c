/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: uses PACO to find planets that are invisible in any single frame. */
#include "host/demo/demo.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/io/formats/npy.h"
#include "host/io/pictures/map.h"
#include "host/io/pictures/png.h"
#include "host/synthetic/paco_pair.h"

#include <math.h>
#include <stdio.h>

enum { FRAMES = 40, SIDE = 64, SEED = 2 };

static const double threshold = 5, near_px = 1.5;

typedef struct outcome {
    synthetic_adi adi;
    paco_pair maps;
    float *snr, *flux, *sigma;
    clv_detection *found;
    size_t found_count;
} outcome;

static clv_status search(outcome *o)
{
    const synthetic_adi *adi = &o->adi;
    const size_t count = o->maps.count;
    o->snr = clv_alloc(count, sizeof *o->snr), o->flux = clv_alloc(count, sizeof *o->flux);
    o->sigma = clv_alloc(count, sizeof *o->sigma);
    if (!o->snr || !o->flux || !o->sigma)
        return clv_fail(CLV_E_MEMORY, "not enough memory for maps");
    clv_paco_maps(o->maps.a, o->maps.b, count, o->snr, o->flux, o->sigma);
    return clv_paco_detect(o->snr, o->flux, o->sigma, adi->height, adi->width,
                           (double)(adi->width / 2), (double)(adi->height / 2), adi->fwhm,
                           threshold, &o->found, &o->found_count);
}

static const clv_detection *detection_near(const outcome *o, const synthetic_planet *planet)
{
    for (size_t i = 0; i < o->found_count; ++i)
        if (hypot((double)o->found[i].x - planet->x, (double)o->found[i].y - planet->y) <= near_px)
            return &o->found[i];
    return NULL;
}

/* Notes the planets that were found; returns whether every hidden planet was found at its position. */
static bool tell_planets(const outcome *o, demo_row *row)
{
    size_t hits = 0;
    clv_text_add(&row->notes, "planets hidden at");
    for (size_t i = 0; i < o->adi.planet_count; ++i)
        clv_text_add(&row->notes, "%s (%.0f, %.0f)", i ? "," : "", o->adi.planets[i].x,
                     o->adi.planets[i].y);
    clv_text_add(&row->notes, "; found there with S/N");
    for (size_t i = 0; i < o->adi.planet_count; ++i) {
        const clv_detection *d = detection_near(o, &o->adi.planets[i]);
        if (d)
            clv_text_add(&row->notes, "%s %.1f", i ? "," : "", d->snr);
        else
            clv_text_add(&row->notes, "%s NOT FOUND", i ? "," : "");
        hits += d != NULL;
    }
    clv_text_add(&row->notes, "\n");
    snprintf(row->found, sizeof row->found, "%zu of %zu planets", hits, o->adi.planet_count);
    return hits == o->adi.planet_count;
}

static clv_status draw(const outcome *o, const float *values, const clv_map_style *style,
                       const char *folder, const char *name, const char *what, demo_row *row)
{
    char path[4096];
    clv_image image = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CLV_TRY(clv_map_draw(values, o->adi.height, o->adi.width, style, &image));
    const clv_status status = clv_png_write(path, &image);
    clv_image_clear(&image);
    if (status == CLV_E_FORMAT) { /* a build without PNG: everything else was written */
        clv_text_add(&row->notes, "%s: %s\n", path, clv_error_message());
        return CLV_OK;
    }
    if (!status) clv_text_add(&row->notes, "%s: %s\n", path, what);
    return status;
}

static clv_status draw_pictures(const outcome *o, const char *folder, demo_row *row)
{
    clv_map_mark marks[SYNTHETIC_MAX_PLANETS];
    char labels[SYNTHETIC_MAX_PLANETS][16];
    size_t count = 0;
    for (size_t i = 0; i < o->found_count && count < SYNTHETIC_MAX_PLANETS; ++i, ++count) {
        snprintf(labels[count], sizeof labels[count], "%.1f", o->found[i].snr);
        marks[count] = (clv_map_mark){ .x = (double)o->found[i].x,
                                       .y = (double)o->found[i].y,
                                       .radius = 1.2 * o->adi.fwhm,
                                       .label = labels[count] };
    }
    const clv_map_style frame = { .title = "A FRAME", .unit = "COUNTS", .first_row_below = true };
    const clv_map_style map = { .title = "PACO S/N",
                                .unit = "S/N",
                                .up_to_peak = true,
                                .first_row_below = true,
                                .marks = marks,
                                .mark_count = count };
    CLV_TRY(draw(o, o->adi.cube, &frame, folder, "paco-frame.png", "a frame; the planets are in it",
                 row));
    return draw(o, o->snr, &map, folder, "paco-snr.png", "the S/N map, detections circled", row);
}

/* Writes the inputs, so that the user can repeat the run with the command. */
static clv_status write_inputs(const synthetic_adi *adi, const char *folder, demo_row *row)
{
    const clv_file_array arrays[] = {
        { CLV_F32, 3, { adi->frames, adi->height, adi->width }, adi->cube },
        { CLV_F64, 1, { adi->frames }, adi->angles },
        { CLV_F32, 2, { adi->psf_size, adi->psf_size }, adi->psf },
    };
    static const char *const names[] = { "paco-cube.npy", "paco-angles.npy", "paco-psf.npy" };
    char path[4096];
    clv_text_add(&row->notes, "again: cleave paco");
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        CLV_TRY(clv_npy_write(path, &arrays[i]));
        clv_text_add(&row->notes, "%s%s", i == 1 ? " \\\n  " : " ", path);
    }
    clv_text_add(&row->notes, " -o %s/paco\n", folder);
    return CLV_OK;
}

static clv_status compute(const demo_stage *stage, const clv_paco_options *options, outcome *o,
                          demo_row *row)
{
    for (demo_runs r = { 0 }; demo_next_run(&r, row);) {
        paco_pair_clear(&o->maps);
        CLV_TRY(paco_pair_compute(stage->context, &o->adi, options, &o->maps,
                                  r.last ? stage->report : NULL));
    }
    return CLV_OK;
}

static clv_status check(const clv_paco_options *options, const outcome *o, demo_row *row)
{
    paco_pair want;
    const double started = clv_now();
    CLV_TRY(paco_pair_reference(&o->adi, options, &want));
    row->reference_s = clv_now() - started;
    const paco_difference d = paco_pair_compare(&o->maps, &want, options);
    paco_pair_clear(&want);
    clv_text_add(&row->notes, "%s plain C: S/N within %.1g (limit %.1g)\n",
                 d.ok ? "agrees with" : "DIFFERS FROM", d.snr, d.snr_limit);
    row->ok = row->ok && d.ok;
    return CLV_OK;
}

static clv_status run(const demo_stage *stage, const clv_paco_options *options, outcome *o,
                      demo_row *row)
{
    CLV_TRY(compute(stage, options, o, row));
    CLV_TRY(search(o));
    if (!tell_planets(o, row)) row->ok = false;
    CLV_TRY(check(options, o, row));
    CLV_TRY(draw_pictures(o, stage->folder, row));
    return write_inputs(&o->adi, stage->folder, row);
}

clv_status demo_paco(const demo_stage *stage, demo_row *row)
{
    const clv_paco_options options = { .size = sizeof options };
    outcome o = { 0 };
    clv_status status = synthetic_adi_create(FRAMES, SIDE, SIDE, SEED, &o.adi);
    snprintf(row->input, sizeof row->input, "%d frames of %dx%d", FRAMES, SIDE, SIDE);
    if (!status && stage->preparing)
        status = demo_prepared(paco_pair_compute(stage->context, &o.adi, &options, &o.maps, NULL));
    else if (!status)
        status = run(stage, &options, &o, row);
    synthetic_adi_clear(&o.adi);
    paco_pair_clear(&o.maps);
    clv_free(o.snr), clv_free(o.flux), clv_free(o.sigma);
    clv_free(o.found);
    return status;
}

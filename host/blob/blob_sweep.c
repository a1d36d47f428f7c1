/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/sweep.cl, which moves windows in registers along strips of columns. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "cl_embedded.h"

enum {
    FEWEST_COLUMNS = 4,
    MOST_RADIUS = 16, /* needs 33 sums and 34 taps per work-item */
    MOST_RADIUS_OF_PAIRS = 12,
    SHORTEST_BAND = 32,
};

static size_t rounded_radius(const clv_blob_plan *plan)
{
    return CLV_MAX(clv_round_up(plan->max_radius, 4), (size_t)4);
}

bool clv_blob_sweep_family(const clv_blob_plan *plan, size_t each, size_t items, size_t groups,
                           size_t frames, clv_blob_family *f)
{
    /* all work-items of a wavefront should have the same level */
    const size_t most = items / plan->levels, local = most >= 64 ? 64 : most >= 32 ? 32 : most;
    const size_t widest = each > 1 ? MOST_RADIUS_OF_PAIRS : MOST_RADIUS;
    if (local * each < FEWEST_COLUMNS || rounded_radius(plan) > widest) return false;
    const size_t height = plan->shape.height, width = plan->shape.width;
    *f = (clv_blob_family){
        .form = CLV_BLOB_SWEEP, .local = local, .lanes = each, .group = frames, .scratch_floats = 1
    };
    f->tile = local * each - 2;
    f->tiles = (width + f->tile - 1) / f->tile;
    f->bands = (groups + f->tiles * frames - 1) / (f->tiles * frames);
    f->bands = CLV_MAX(CLV_MIN(f->bands, height / SHORTEST_BAND), (size_t)1);
    f->band = (height + f->bands - 1) / f->bands;
    f->bands = (height + f->band - 1) / f->band;
    return true;
}

clv_status clv_blob_look_sweep(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_family *f = p->f;
    const clv_launch l = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_sweep,
        .kernel = "clv_blob_sweep",
        .defines = { { "LANES", 1 },
                     { "PIXEL", (long)plan->shape.type },
                     { "DOG", plan->options.dog },
                     { "COLS", (long)(f->local * f->lanes) },
                     { "EACH", (long)f->lanes },
                     { "LEVELS", (long)plan->levels },
                     { "RADIUS", (long)rounded_radius(plan) } },
        .global = { f->tiles * f->local, plan->levels * f->bands, frames },
        .local = { f->local, plan->levels, 1 },
    };
    return clv_blob_launch(p, &l, at, NULL, &f->band, 1);
}

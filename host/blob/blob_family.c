/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the geometry of the kernels' forms: rows of explicit vectors for CPUs; strips, tiles or one work-item per
 * pixel for GPUs. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "runtime/job/tune.h"

#include <string.h>

enum {
    /* most columns of a tile, so that the ring buffers of a usual ladder of sigmas fit the L2 cache */
    WIDEST = 640,
    LOWEST_BAND = 48, /* fewest rows of a band; in lower bands most of the work is overlap */
    /* per launch, so that a core that is slow for a while delays the others little */
    ITEMS_A_CORE = 6,
    BANDS_A_CORE = 2, /* used if there are few frames, because the overlap of bands costs time */
    MOST_CORES = 256,
    MOST_GROUP = 5, /* levels per horizontal pass, so that their sums fit in registers */
    MOST_PLANE_FLOATS = 16 << 20,
};

static size_t power_of_two(size_t least)
{
    size_t p = 4;
    while (p < least)
        p *= 2;
    return p;
}

static size_t item_floats(const clv_blob_plan *plan, const clv_blob_family *f)
{
    const size_t length = f->tile + CLV_BLOB_SLACK * f->lanes, planes = plan->options.dog ? 1 : 2;
    const size_t rows = plan->levels * (planes * f->ring + CLV_BLOB_KEPT_ROWS) + CLV_BLOB_STEP_ROWS;
    return length + 2 * f->pad + length * rows +
           (plan->by_noise ? plan->scales * CLV_BLOB_NOISE_BINS : 0);
}

clv_blob_family clv_blob_rows_family(const clv_blob_plan *plan, size_t lanes, size_t cores,
                                     uint64_t max_turns, size_t frames)
{
    clv_blob_family f = { .form = CLV_BLOB_ROWS, .lanes = lanes };
    const size_t width = plan->shape.width, height = plan->shape.height;
    f.tiles = (width + WIDEST - 1) / WIDEST;
    f.tile = clv_round_up((width + f.tiles - 1) / f.tiles, lanes);
    f.tiles = (width + f.tile - 1) / f.tile;
    f.pad = clv_round_up(plan->max_radius, lanes);
    f.ring = power_of_two(2 * plan->max_radius + CLV_BLOB_STEP_ROWS);
    const size_t passes = (plan->levels + MOST_GROUP - 1) / MOST_GROUP;
    f.level_group = (plan->levels + passes - 1) / passes;
    const size_t wanted = ITEMS_A_CORE * cores, bands_wanted = BANDS_A_CORE * cores;
    f.bands = (bands_wanted + frames * f.tiles - 1) / (frames * f.tiles);
    f.bands = CLV_MAX(CLV_MIN(f.bands, height / LOWEST_BAND), (size_t)1);
    f.band = (height + f.bands - 1) / f.bands;
    if (max_turns != UINT64_MAX) { /* upper bound of the loop iterations per row */
        uint64_t row = f.tile / lanes * plan->levels * 4 + 3 * f.tile / lanes + 4 * f.pad;
        for (size_t l = 0; l < plan->levels; ++l)
            row += 2 * (f.tile / lanes / 2 + 2) * plan->radius[l];
        const uint64_t fits = max_turns / row;
        const uint64_t around = 2 * plan->max_radius + 2 * CLV_BLOB_STEP_ROWS;
        f.band = CLV_MIN(f.band, fits > around ? (size_t)(fits - around) : 1);
    }
    f.bands = (height + f.band - 1) / f.band;
    f.group = CLV_MAX(wanted / (f.tiles * f.bands), (size_t)1);
    f.scratch_floats = item_floats(plan, &f) * f.tiles * f.bands * CLV_MIN(f.group, frames);
    return f;
}

/* Returns the geometry of the items form, one work-item per pixel. It holds planes of a few frames at a time. */
clv_blob_family clv_blob_items_family(const clv_blob_plan *plan, size_t local, size_t frames)
{
    const size_t plane = plan->shape.height * plan->shape.width;
    const size_t frame = (plan->scales + 3) * plane;
    clv_blob_family f = { .form = CLV_BLOB_ITEMS, .local = local };
    f.group = CLV_MAX(MOST_PLANE_FLOATS / frame, (size_t)1);
    f.scratch_floats = frame * CLV_MIN(f.group, frames);
    return f;
}

clv_blob_family clv_blob_tile_family(size_t local, size_t frames)
{
    return (clv_blob_family){
        .form = CLV_BLOB_TILE, .local = local, .group = frames, .scratch_floats = 1
    };
}

static const char *const for_cores[] = { "rows", NULL };
static const char *const for_gpus[] = { "sweep", "sweep of pairs", "tile", "items", NULL };
static const char *const for_rasterisers[] = { "items", "sweep", "tile", NULL };

const char *const *clv_blob_variants(const clv_device *device)
{
    return clv_variants_for(device, for_cores, for_rasterisers, for_gpus);
}

/* Returns whether a tile fits in local memory; if it does not, the items form is used instead. */
static bool tile_fits(const clv_blob_plan *plan, const clv_probe_device *facts)
{
    return clv_blob_tile_floats(plan) * sizeof(float) <= facts->local_bytes;
}

clv_blob_family clv_blob_family_for(const clv_blob_plan *plan, const clv_worker *worker,
                                    size_t frames)
{
    const clv_device *device = clv_worker_device(worker);
    const clv_probe_device *facts = clv_device_facts(device);
    const char *name = clv_blob_variants(device)[clv_worker_variant(worker)];
    const size_t cores = CLV_MIN(CLV_MAX(facts->compute_units, 1u), (size_t)MOST_CORES);
    const uint64_t turns = facts->flags.loop_limit ? facts->flags.loop_limit / 2 : UINT64_MAX;
    const bool small = facts->device_class == CLV_CLASS_SOFTWARE;
    enum { USUAL_GROUP = 256, GROUPS_PER_UNIT = 8 };
    const size_t items = small ? 32 : CLV_MIN(facts->max_work_group, (size_t)USUAL_GROUP);
    clv_blob_family sweep;
    if (strcmp(name, "rows") == 0 && plan->waves.used && turns == UINT64_MAX)
        return clv_blob_cosine_family(plan, cores, frames);
    if (strcmp(name, "rows") == 0) return clv_blob_rows_family(plan, 16, cores, turns, frames);
    const bool pairs = strcmp(name, "sweep of pairs") == 0;
    if ((pairs || strcmp(name, "sweep") == 0) &&
        clv_blob_sweep_family(plan, pairs ? 2 : 1, items, GROUPS_PER_UNIT * facts->compute_units,
                              frames, &sweep))
        return sweep;
    if (strcmp(name, "items") != 0 && tile_fits(plan, facts))
        return clv_blob_tile_family(items, frames);
    return clv_blob_items_family(plan, small ? 32 : 64, frames);
}

size_t clv_blob_scratch_estimate(const clv_blob_plan *plan)
{
    const clv_blob_family rows = clv_blob_rows_family(plan, 16, 8, UINT64_MAX, 1),
                          planes = clv_blob_items_family(plan, 64, 1);
    const size_t floats = CLV_MAX(2 * rows.scratch_floats, planes.scratch_floats);
    if (!plan->waves.used) return floats * sizeof(float);
    const clv_blob_family waves = clv_blob_cosine_family(plan, 8, 1);
    return CLV_MAX(floats, waves.scratch_floats) * sizeof(float);
}

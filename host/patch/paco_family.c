/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the geometry of the kernels' forms: rows of explicit vectors for CPUs, one work-item per pixel or work-groups
 * for GPUs. */
#include "host/patch/paco_family.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/text.h"
#include "cl/patch/shared.clh"
#include "cl_embedded.h"
#include "runtime/job/tune.h"

#include <string.h>

/* The variants. rows: explicit vectors along x, work-groups of 1, for CPUs. items: one work-item per pixel. group: the
 * work-items of a work-group share the patches' equations and W, for GPUs. */
enum { SIXTEEN_LANES, EIGHT_LANES };
static const char *const for_cores[] = {
    [SIXTEEN_LANES] = "rows16", [EIGHT_LANES] = "rows8", NULL
};
static const char *const for_gpus[] = { "group", "items", NULL };
static const char *const for_rasterisers[] = { "items", NULL };

const char *const *clv_paco_variants(const clv_device *device)
{
    return clv_variants_for(device, for_cores, for_rasterisers, for_gpus);
}

/* Figures from 49 pixels per patch. With AVX-512, sixteen lanes are 1.6 times as fast as eight. With AVX2 alone (EPYC,
 * Zen 3), eight lanes take 0.75 of the time of sixteen for a shifted PSF (25.5 ms and 34.2 ms with PoCL, 28.8 ms and
 * 38.3 ms with Intel's runtime), and 0.87 for a fixed PSF (22.2 ms and 25.6 ms with PoCL, 12.3 ms and 13.4 ms with
 * Intel's runtime). */
bool clv_paco_usual(const clv_device *device, size_t *variant)
{
    if (clv_device_facts(device)->device_class != CLV_CLASS_CPU) return false;
    *variant = clv_cpu_has_avx2_alone() ? EIGHT_LANES : SIXTEEN_LANES;
    return true;
}

/* Returns the local memory of a team in floats, the value of TEAM_FLOATS in cl/patch/solve_group.cl. */
static size_t solve_floats(size_t p, size_t q, size_t side)
{
    const size_t own = (p + q + 7) / 8, team = 2 * side;
    const size_t other = CLV_MAX(side, 8 * own) + 4 * (2 * (own - p / 8) + team);
    const size_t solution =
        2 * (other + side) + p * clv_round_up(q, 4) + clv_round_up(q * (q + 1) / 2, 4);
    return CLV_MAX(solution, 4 * team);
}

size_t clv_paco_local_floats(const clv_paco_plan *plan, const clv_paco_family *f)
{
    return f->teams * solve_floats(plan->pixels, plan->basis.vectors, f->side);
}

/* Returns the local memory of the projection in floats; cl/patch/project_group.cl has the same formula. */
static size_t project_floats(const clv_paco_plan *plan, size_t patches)
{
    const size_t p = plan->pixels, q = plan->basis.vectors;
    const size_t keep = p * q + (q % 2 ? 1 - p % 2 : p * q % 4 == 2 ? 0 : 2);
    return patches * (CLV_PACO_KEEP_A + keep) + plan->basis.terms_b * clv_round_up(q, 4);
}

size_t clv_paco_project_floats(const clv_paco_plan *plan, const clv_paco_family *f)
{
    return project_floats(plan, f->project_patches);
}

/* Chooses work-group sizes within the device's limits; a size is 0 if none fits. */
static void choose_groups(const clv_paco_plan *plan, const clv_probe_device *facts,
                          clv_paco_family *f)
{
    /* limited by the solver's registers, a compute unit of sm_86 runs 3 groups of 128 but only 1 of 256; limited by the
     * projection's local memory, 3 to 6 */
    const size_t group = 128, few_bytes = 20480;
    f->side = clv_round_up(plan->pixels + plan->basis.vectors, 32);
    f->teams = CLV_MAX(group / (2 * f->side), (size_t)1);
    if (facts->max_work_group < 2 * f->side * f->teams ||
        clv_paco_local_floats(plan, f) * sizeof(float) > facts->local_bytes)
        f->teams = 0;
    const size_t bytes = (size_t)CLV_MIN(facts->local_bytes, (uint64_t)few_bytes);
    f->project_patches = 8;
    while (f->project_patches && project_floats(plan, f->project_patches) * sizeof(float) > bytes)
        f->project_patches /= 2;
    if (f->project_patches < 4 || facts->max_work_group < CLV_PACO_PROJECT_GROUP)
        f->project_patches = 0;
}

clv_paco_family clv_paco_family_of(const clv_paco_plan *plan, const clv_device *device,
                                   size_t variant)
{
    const clv_probe_device *facts = clv_device_facts(device);
    const char *name = clv_paco_variants(device)[variant];
    clv_paco_family f = { .lag_block = 16,
                          .max_turns = UINT64_MAX,
                          .frame_block = plan->shifted ? 2 : 8 };
    if (clv_starts_with(name, "rows")) {
        f.lanes = f.tile = strcmp(name, "rows8") == 0 ? 8 : 16;
        f.local = 1;
        f.map_rows = 8;
        f.item_frames = plan->in.frames;
        /* several per core, so that a core that is slow for a while delays the others little */
        f.max_workers = 8 * CLV_MAX(facts->compute_units, 1u);
    } else {
        f.lanes = 1;
        f.tile = f.local = facts->device_class == CLV_CLASS_SOFTWARE ? 32 : 64;
        f.map_rows = 1;
        f.item_frames = 16;
        f.max_workers = clv_paco_item_workers(plan);
        f.in_groups = strcmp(name, "group") == 0;
        if (f.in_groups) {
            f.tile = 1; /* each team writes only its own patch */
            if (plan->shifted) f.frame_block = facts->flags.few_registers ? 2 : 4;
            choose_groups(plan, facts, &f);
        }
    }
    if (facts->flags.loop_limit) {
        /* beyond the limit, results are wrong without an error: stays well below it */
        f.max_turns = facts->flags.loop_limit / 2;
        f.max_workers = SIZE_MAX;
    }
    f.lags_padded = clv_round_up(plan->lags, f.lag_block);
    f.width = clv_round_up(plan->in.width, CLV_MAX(f.tile, f.local));
    f.pitch = f.width + 2 * CLV_PACO_PAD;
    return f;
}

clv_paco_family clv_paco_family_for(const clv_paco_plan *plan, const clv_worker *worker)
{
    return clv_paco_family_of(plan, clv_worker_device(worker), clv_worker_variant(worker));
}

/* ---- kernels ---- */

enum {
    LANES = 1 << 0,
    TILE = 1 << 1,
    SYSTEM = 1 << 2, /* P, Q, MA: the dimensions of the equations */
    TERMS_B = 1 << 3,
    SHIFTED = 1 << 4,
    LAGS = 1 << 5,
    FRAME_BLOCK = 1 << 6,
    MAP_ROWS = 1 << 7,
    TEAMS = 1 << 8,
    PATCHES = 1 << 9,
};

static const struct {
    const clv_cl_source *source;
    const char *name;
    unsigned reads;
} kernels[CLV_PACO_KERNELS] = {
    [CLV_PACO_CENTRE] = { &clv_cl_patch_centre, "clv_paco_centre", LANES },
    [CLV_PACO_LAG_COVARIANCE] = { &clv_cl_patch_lag_covariance, "clv_paco_lag_covariance",
                                  LANES | LAGS },
    [CLV_PACO_SOLVE_ROWS] = { &clv_cl_patch_solve_rows, "clv_paco_solve_rows",
                              LANES | TILE | SYSTEM },
    [CLV_PACO_SOLVE_GROUP] = { &clv_cl_patch_solve_group, "clv_paco_solve_group",
                               LANES | TILE | SYSTEM | TEAMS },
    [CLV_PACO_PROJECT] = { &clv_cl_patch_project, "clv_paco_project",
                           LANES | TILE | SYSTEM | TERMS_B | SHIFTED | FRAME_BLOCK },
    [CLV_PACO_PROJECT_GROUPS] = { &clv_cl_patch_project_group, "clv_paco_project_group",
                                  LANES | TILE | SYSTEM | TERMS_B | SHIFTED | FRAME_BLOCK |
                                      PATCHES },
    [CLV_PACO_ACCUMULATE] = { &clv_cl_patch_accumulate, "clv_paco_accumulate",
                              LANES | SHIFTED | MAP_ROWS },
};

clv_launch clv_paco_describe(const clv_paco_plan *plan, const clv_paco_family *f,
                             clv_paco_kernel kernel)
{
    const struct {
        unsigned group;
        clv_define define;
    } all[] = {
        { LANES, { "LANES", (long)f->lanes } },
        { TILE, { "TILE", (long)f->tile } },
        { SYSTEM, { "P", (long)plan->pixels } },
        { SYSTEM, { "Q", (long)plan->basis.vectors } },
        { SYSTEM, { "MA", (long)plan->basis.terms_a } },
        { TERMS_B, { "MB", (long)plan->basis.terms_b } },
        { SHIFTED, { "SHIFTED", plan->shifted } },
        { LAGS, { "LAGS", (long)f->lags_padded } },
        { LAGS, { "LAG_BLOCK", (long)f->lag_block } },
        { FRAME_BLOCK, { "FRAME_BLOCK", (long)f->frame_block } },
        { MAP_ROWS, { "MAP_ROWS", (long)f->map_rows } },
        { TEAMS, { "SIDE", (long)f->side } },
        { TEAMS, { "TEAMS", (long)f->teams } },
        { PATCHES, { "PATCHES", (long)f->project_patches } },
    };
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = kernels[kernel].source,
                          .kernel = kernels[kernel].name };
    for (size_t i = 0, n = 0; i < CLV_LEN(all); ++i)
        if (kernels[kernel].reads & all[i].group) launch.defines[n++] = all[i].define;
    return launch;
}

size_t clv_paco_item_workers(const clv_paco_plan *plan)
{
    enum { MOST = 1 << 14, GROUP = 64 };
    const clv_paco_family one = { .lanes = 1 };
    const size_t fit = ((size_t)1 << 28) / (clv_paco_scratch_floats(plan, &one, 1) * sizeof(float));
    return CLV_MIN(fit / GROUP * GROUP, (size_t)MOST);
}

size_t clv_paco_scratch_floats(const clv_paco_plan *plan, const clv_paco_family *family,
                               size_t workers)
{
    return workers * family->lanes *
           (plan->pixels * (plan->pixels + 1) / 2 + plan->pixels * plan->basis.vectors);
}

clv_status clv_paco_note_layout(const clv_paco_plan *plan, clv_slot *slot)
{
    const clv_worker *worker = clv_slot_worker(slot);
    clv_paco_layout layout = { .map_pitch = plan->in.width, .state_pitch = plan->in.width };
    if (clv_worker_device(worker)) {
        const clv_paco_family f = clv_paco_family_for(plan, worker);
        layout = (clv_paco_layout){ f.width, f.pitch, CLV_PACO_PAD };
    }
    void *noted;
    CLV_TRY(clv_slot_result_create(slot, CLV_PACO_SHAPE, sizeof layout, &noted));
    memcpy(noted, &layout, sizeof layout);
    return CLV_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the plan of a detection in volumes, which is made before the first stack, and the data of one stack's job.
 * */
#ifndef CLEAVE_HOST_BLOB_VOLUME_PLAN_H
#define CLEAVE_HOST_BLOB_VOLUME_PLAN_H

#include "host/blob/blob_plan.h"

#include <cleave/volume.h>

enum { CLV_Z, CLV_Y, CLV_X, CLV_AXES };

/* A maximum as the kernels and the reference store it; cl/blob/volume.clh describes the layout. */
typedef struct clv_volume_peak {
    uint32_t z, y, x, k;
    /* responses of the peak's scale: z - 1 to z + 1, y - 1 to y + 1, x - 1 to x + 1 */
    float around[27];
    float below, above; /* responses of the neighbouring scales; -inf if there is no such scale */
    float own;
    uint32_t zero[2];
} clv_volume_peak;

/* A kernel along one axis. */
typedef struct clv_volume_taps {
    double sigma;
    uint32_t radius, first; /* `first`: index into plan->tap */
} clv_volume_taps;

typedef struct clv_volume_plan {
    /* a plan in which every plane is a frame: holds options, pixels and the noise map */
    clv_blob_plan *flat;
    size_t depth, height, width;
    double ratio[CLV_AXES]; /* sigma along an axis, in voxels, divided by the sigma along x */
    size_t scales, levels;
    double sigma[CLV_BLOB_MAX_LEVELS]; /* sigma of each level along x */
    clv_volume_taps along[CLV_BLOB_MAX_LEVELS][CLV_AXES];
    size_t reach[CLV_AXES]; /* largest radius of the taps along each axis */
    size_t taps;
    double *tap; /* [taps][2], half kernels: Gaussian, and -sigma^2 times its second derivative */
    float *tap_f32;
    float leak[CLV_BLOB_MAX_LEVELS];   /* response of each level to a constant 1 */
    float factor[CLV_BLOB_MAX_SCALES]; /* kernels list maxima above factor * map */
    double norm[CLV_BLOB_MAX_SCALES], cubes[CLV_BLOB_MAX_SCALES]; /* as in clv_blob_plan */
    size_t noise_step;
    /* slabs: the job's units */
    size_t slab, slabs; /* planes per slab; number of slabs */
    size_t pitch;       /* floats per row of responses */

    /* ---- data of one stack ---- */
    const void *voxels;
    float pedestal;
    size_t capacity; /* peaks that a slab's list can hold */
    clv_volume_peak *peaks;
    size_t count, room;
    size_t most; /* number of maxima in the fullest slab */
    float max_response;
    uint32_t *bins;                     /* [scales][CLV_BLOB_NOISE_BINS], summed over all slabs */
    double spread[CLV_BLOB_MAX_SCALES]; /* standard deviation of response / (factor * map) */
} clv_volume_plan;

/* Creates a plan with at least `slabs_wanted` slabs, unless slabs would become too thin. A slab takes about 512 MiB of
 * scratch memory, or up to `scratch` bytes if planes are large. Free the plan with clv_volume_plan_free. */
clv_status clv_volume_plan_create(const clv_volume_stacks *stacks, const clv_blob_options *options,
                                  size_t slabs_wanted, size_t scratch, clv_volume_plan **plan);
void clv_volume_plan_free(clv_volume_plan *plan); /* accepts NULL */

/* The planes [z0, z1) of a slab, and the planes [low, high) that its responses require. */
typedef struct clv_volume_slab {
    size_t z0, z1, low, high;
} clv_volume_slab;
clv_volume_slab clv_volume_slab_of(const clv_volume_plan *plan, size_t unit);

/* Does the work of clv_volumes with at least `slabs` slabs, unless slabs would become too thin; 0: as many as the
 * devices prefer. `options` and `stacks` are complete structs. */
clv_status clv_volumes_in_slabs(clv_context *context, const clv_volume_stacks *stacks,
                                const void *voxels, const clv_blob_options *options, size_t slabs,
                                clv_volume_spot **spots, size_t *count, clv_blob_summary *summary,
                                clv_report *report);

/* Writes a text that names the class of stacks for which a chosen form is valid. */
enum { CLV_VOLUME_PROBLEM = 64 };
void clv_volume_problem(const clv_volume_plan *plan, char text[CLV_VOLUME_PROBLEM]);

/* Returns a voxel's value; NaN and inf stay as they are. */
static inline double clv_volume_voxel(const clv_volume_plan *plan, size_t z, size_t y, size_t x)
{
    return clv_blob_pixel_at(plan->flat, z, y, x);
}

/* ---- volume_job.c, volume_ref.c: the job ---- */
clv_cost clv_volume_cost(size_t first, size_t count, void *plan);
clv_status clv_volume_setup(clv_worker *worker, void *plan);
clv_status clv_volume_enqueue(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_volume_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_volume_reference(clv_slot *slot, size_t first, size_t count, void *plan);
/* Computes the responses [scales][depth][height][width] of the stack in float64. The reference and tests use this
 * function. */
clv_status clv_volume_responses(const clv_volume_plan *plan, double *responses);
enum { CLV_VOLUME_COUNTS, CLV_VOLUME_PEAKS, CLV_VOLUME_BINS, CLV_VOLUME_RESULTS };

/* ---- volume_edges.c ---- */
/* Returns the noise of scale k's responses at a voxel, relative to the noise far from the edges. */
double clv_volume_edge(const clv_volume_plan *plan, size_t k, size_t z, size_t y, size_t x);

/* ---- volume_finish.c: from maxima to spots ---- */
typedef struct clv_volume_found {
    clv_volume_spot *spots;
    size_t count, room;
    size_t dropped_bad, hot;
} clv_volume_found;
/* Adds the stack's spots to `found`, sorted by z, y, x, sigma. Uses up to `threads` threads. */
clv_status clv_volume_finish(clv_volume_plan *plan, size_t frame, size_t threads,
                             clv_volume_found *found);

/* ---- volume_measure.c ---- */
/* Finds the sub-voxel position and the sigma by quadratics through the responses. */
void clv_volume_refine(const clv_volume_plan *plan, const clv_volume_peak *peak,
                       clv_volume_spot *spot);
/* Measures the background, mass, S/N and flags of a spot. */
void clv_volume_measure(const clv_volume_plan *plan, const clv_volume_peak *peak,
                        clv_volume_spot *spot);

/* ---- volume_fit.c ---- */
/* Fits the spots [from, to) of `guess`, which is sorted by z. `before` is the result of a first sweep, or NULL. A spot
 * whose fit fails keeps the guess and gets a flag. Returns false without memory; `spots` is then not written. */
bool clv_volume_fit(const clv_volume_plan *plan, const clv_volume_spot *guess,
                    const clv_volume_spot *before, clv_volume_spot *spots, size_t count,
                    size_t from, size_t to);

#endif

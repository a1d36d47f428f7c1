/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: bright spots in stacks of planes, over several scales, with sub-voxel positions. */
#ifndef CLEAVE_VOLUME_H
#define CLEAVE_VOLUME_H

#include <cleave/blob.h>

CLV_BEGIN_DECLS

typedef struct clv_volume_stacks {
    size_t size; /**< sizeof(clv_volume_stacks) */
    clv_blob_pixel type;
    size_t stacks, depth, height, width; /**< depth, height and width at least 1, at most 65535 */
    size_t stack_stride, plane_stride, row_stride; /**< in elements; 0: dense */
} clv_volume_stacks;

/** One spot of a volume. Position 0 is the centre of the first voxel. Frozen. */
typedef struct clv_volume_spot {
    uint32_t frame; /**< the stack, from 0 */
    uint32_t flags; /**< CLV_SPOT_... */
    float z, y, x;  /**< voxels */
    float sigma;    /**< standard deviation, in voxels along x */
    /** The same along z, in planes; unless it is fitted, sigma times the ratio of the voxel's sides. */
    float sigma_z;
    /** L = -sum over axes of sigma^2 d2/da2 of the smoothed volume, at the maximum. */
    float response;
    float mass;       /**< sum above the background within 3 sigma (fit: the Gaussian's volume) */
    float background; /**< median of a shell around that (fit: the fit's) */
    float snr;        /**< mass over the background's scatter in as many voxels; 0: no scatter */
    float z_err, y_err,
        x_err; /**< standard deviations of the position, from the fit; 0: not known */
} clv_volume_spot;

/**
 * Finds the spots of volumes [stacks, depth, height, width]: maxima in z, y, x and sigma of the
 * scale-normalised Laplacian (or of differences of Gaussians) of every stack; pruned by the overlap of their
 * balls of radius sqrt(3) sigma; sub-voxel positions; measured.
 *
 * The ladder of options->min_sigma_px to max_sigma_px is in voxels along x; along y and z a sigma has
 * voxel_size[2] / voxel_size[axis] as many voxels, so that it is the same length. Thresholds, noise, hot
 * pixels, borders, ties, taps and prune mean what they do in frames (clv_blobs); movie_scope is
 * CLV_E_ARGUMENT. With CLV_BLOB_TAPS_SCIPY the axes are weighted as scikit-image does: by the square of the
 * mean sigma. CLV_BLOB_SUBPIXEL_NONE gives whole voxels and sigmas of the ladder, of which a Gaussian spot
 * answers most strongly at sqrt(2/3) of its own.
 *
 * @param context  the devices to use; the spots do not depend on their number.
 * @param voxels   [stacks,depth,height,width] of stacks->type; borrowed, not written.
 * @param options  NULL means all defaults.
 * @param spots    out, by frame, z, y, x, sigma; free with clv_free(); NULL when there is none.
 * @param summary  may be NULL; its frames are stacks. `report` may be NULL.
 * @return as clv_blobs; CLV_E_SHAPE also for more than 65535 planes.
 *
 * Accuracy: responses within 1e-5 of float64's. Positions of single spots, as simulated (700 to 20000 photons,
 * sigmas of 1 to 2.5 voxels, some of them unlike along z; 256 spots each): with `fit` 0.95 to 1.1 times the
 * Cramer-Rao bound along each axis, with `quad` 1.4 to 2.5 times. True errors are up to 1.16 times z_err and its
 * kin.
 * Memory: slabs of a stack of about 512 MiB each, 5 to 7 floats per voxel (a single plane may need more, and so do
 * cores where sigmas are above 50 voxels).
 * Threads: any; one job at a time per context.
 * Source: Lindeberg 1998 (scale space); scikit-image's blob_log and blob_dog (conventions).
 */
CLV_API clv_status clv_volumes(clv_context *context, const clv_volume_stacks *stacks,
                               const void *voxels, const clv_blob_options *options,
                               clv_volume_spot **spots, size_t *count, clv_blob_summary *summary,
                               clv_report *report);

CLV_END_DECLS

#endif

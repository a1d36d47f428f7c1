/* SPDX-License-Identifier: Apache-2.0 */
/* Finds bright spots of several sizes in volumes (stacks of planes), and their sub-voxel positions. */
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
    uint32_t frame; /**< index of the stack, counted from 0 */
    uint32_t flags; /**< CLV_SPOT_... */
    float z, y, x;  /**< voxels */
    float sigma;    /**< standard deviation, in voxels along x */
    /** Standard deviation along z, in planes: fitted, or else sigma times the ratio of the voxel's sides. */
    float sigma_z;
    /** L = -sum over axes of sigma^2 d2/da2 of the smoothed volume, at the maximum. */
    float response;
    float mass;       /**< sum above the background within 3 sigma (fit: the Gaussian's volume) */
    float background; /**< median of a shell around the ball of 3 sigma (fit: fitted background) */
    float snr;        /**< mass / (background scatter * sqrt(voxels in ball)); 0: no scatter */
    /** Standard deviations of the position, from the fit; 0: not known. */
    float z_err, y_err, x_err;
} clv_volume_spot;

/**
 * Finds the spots of volumes [stacks, depth, height, width]. In every stack, the function looks for maxima in z, y, x
 * and sigma of the scale-normalised Laplacian (or of differences of Gaussians), drops spots whose balls of radius
 * sqrt(3) sigma overlap too much, refines the positions to fractions of a voxel, and measures the spots.
 *
 * The sigmas from options->min_sigma_px to max_sigma_px are in voxels along x; along y and z a sigma is
 * voxel_size[2] / voxel_size[axis] times as many voxels, which is the same length. Thresholds, noise, hot pixels,
 * borders, ties, kernel coefficients (taps) and pruning work as in frames (clv_blobs); movie_scope is refused with
 * CLV_E_ARGUMENT. With CLV_BLOB_TAPS_SCIPY the axes are weighted as in scikit-image: by the square of the mean sigma.
 * With CLV_BLOB_SUBPIXEL_NONE you get whole voxels and the sigma of the scale that responds most strongly, which for a
 * Gaussian spot is sqrt(2/3) of its own sigma.
 *
 * @param context  the devices to use; the spots do not depend on their number.
 * @param voxels   [stacks,depth,height,width] of stacks->type; borrowed, not written.
 * @param options  NULL means all defaults.
 * @param spots    out, ordered by frame, z, y, x, sigma; free with clv_free(); NULL if there are none.
 * @param summary  may be NULL; its frames are stacks. `report` may be NULL.
 * @return the statuses of clv_blobs; CLV_E_SHAPE also for more than 65535 planes.
 *
 * Accuracy: responses are within 1e-5 of float64's. The errors of single spots' positions were simulated (700 to 20000
 * photons, sigmas of 1 to 2.5 voxels, some with another sigma along z; 256 spots each): along each axis they are 0.95
 * to 1.1 times the Cramer-Rao bound with CLV_BLOB_SUBPIXEL_FIT and 1.4 to 2.5 times with CLV_BLOB_SUBPIXEL_QUAD.
 * Deviations from the truth are 0.91 to 1.06 times z_err, y_err and x_err for spots of 600 to 1500 photons (1.11 times
 * in one case of 24), and up to twice as large for 600 photons on a background of 100.
 * Memory: a stack is processed in slabs of about 512 MiB each, 5 to 7 floats per voxel. Slabs of large planes take up
 * to a quarter of the memory that each device may use, which saves most of the work. A single plane may need more, and
 * so do CPU devices if sigmas are above 50 voxels.
 * Threads: any; one job at a time per context.
 * Source: Lindeberg 1998 (scale space); scikit-image's blob_log and blob_dog (conventions).
 */
CLV_API clv_status clv_volumes(clv_context *context, const clv_volume_stacks *stacks,
                               const void *voxels, const clv_blob_options *options,
                               clv_volume_spot **spots, size_t *count, clv_blob_summary *summary,
                               clv_report *report);

CLV_END_DECLS

#endif

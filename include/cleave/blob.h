/* SPDX-License-Identifier: Apache-2.0 */
/* Finds blobs, which are bright spots of several sizes in the frames of a movie, and their sub-pixel positions. */
#ifndef CLEAVE_BLOB_H
#define CLEAVE_BLOB_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

typedef enum clv_blob_pixel {
    CLV_BLOB_U8 = 0,
    CLV_BLOB_U16,
    CLV_BLOB_I16,
    CLV_BLOB_F32,
} clv_blob_pixel;

/** How the coefficients of the filter kernels are computed. */
typedef enum clv_blob_taps {
    CLV_BLOB_TAPS_ZERO_SUM = 0, /**< the sum is zero: a constant background gives no response */
    CLV_BLOB_TAPS_SCIPY,        /**< sampled as in scipy and scikit-image; for comparisons */
} clv_blob_taps;

/** How a spot's position is refined. */
typedef enum clv_blob_subpixel {
    CLV_BLOB_SUBPIXEL_QUAD = 0, /**< a quadratic through the 9 responses around the maximum */
    CLV_BLOB_SUBPIXEL_FIT,      /**< a Gaussian integrated over pixels, by weighted least squares */
    CLV_BLOB_SUBPIXEL_NONE,     /**< no refinement: whole pixels and the sigma of the scale */
} clv_blob_subpixel;

enum { CLV_BLOB_MAX_SCALES = 64, CLV_BLOB_MAX_RADIUS = 1024 };

/** Options of clv_blobs. Zero fields mean the default. There are three thresholds. You may give one of them, or
 *  threshold and threshold_rel together, of which the stricter one counts; threshold_sigma cannot be combined with
 *  another threshold. If you give no threshold, threshold_sigma is 6, or with movie_scope, threshold_rel is 0.2. */
typedef struct clv_blob_options {
    size_t size;         /**< sizeof(clv_blob_options) */
    double min_sigma_px; /**< sigma of the smallest spots, in pixels; 0: 1 */
    double max_sigma_px; /**< sigma of the largest spots, in pixels; 0: 3 */
    unsigned num_sigma; /**< number of scales from min to max sigma, 1 to 64; 0: 5; not for `dog` */
    bool log_scale;     /**< space the scales geometrically, not linearly */
    bool dog;           /**< use differences of Gaussians, with the scales min * ratio^i */
    double sigma_ratio; /**< the ratio for `dog`; 0: 1.6 */
    bool threshold_given, threshold_rel_given, threshold_sigma_given;
    double threshold;     /**< keep responses above this, in units of the pixels (>= 0) */
    double threshold_rel; /**< keep responses above this share of the frame's largest, 0 to 1 */
    /** Keep responses above this many standard deviations of the responses' noise, at this scale and place. If the
     * noise is skewed (few photons), the threshold is higher: skewed noise exceeds it as rarely as Gaussian noise
     * exceeds this many standard deviations. Must be above 0. */
    double threshold_sigma;
    bool movie_scope; /**< threshold_rel refers to the movie's largest response; clv_blobs only */
    clv_blob_taps taps;
    bool normalize; /**< `threshold` is a share of the integer type's largest value */
    bool invert;    /**< find dark spots */
    clv_blob_subpixel subpixel;
    bool keep_overlapping; /**< keep spots that overlap */
    bool overlap_given;
    double overlap; /**< drop a spot if it overlaps more than this share of the smaller disc, 0 to
                         1; not given: 0.5 */
    size_t exclude_border;  /**< width in pixels of a border without spots */
    clv_progress *progress; /**< NULL: none; a non-zero return cancels */
    void *progress_user;
    bool keep_hot_pixels; /**< keep single pixels that are brighter than a spot of min_sigma_px can
                               make them; else threshold_sigma drops them */
    /** For clv_volumes: distances between voxels along z, y, x, in any unit; only their ratios count. All 0: voxels are
     * cubes. clv_blobs ignores this field. */
    double voxel_size[3];
} clv_blob_options;

enum {
    CLV_SPOT_FIT_FAILED = 1, /**< the fit failed, so the quadratic's position was kept */
    CLV_SPOT_SATURATED = 2,  /**< the brightest pixel has the type's largest value */
    CLV_SPOT_BAD_PIXEL = 4,  /**< there is a NaN or inf within 4 sigma */
    CLV_SPOT_BORDER = 8, /**< the spot's disc of radius sqrt(2) sigma reaches beyond the frame */
    CLV_SPOT_GAP = 16,   /**< position interpolated by the linker in a gap of a track */
};

/** One spot. Position 0 is the centre of the first pixel. Frozen. */
typedef struct clv_spot {
    uint32_t frame;   /**< counted from 0, in the order in which frames were pushed */
    uint32_t flags;   /**< CLV_SPOT_... */
    float y, x;       /**< pixels */
    float sigma;      /**< pixels; the radius is about sqrt(2) sigma */
    float response;   /**< L = -sigma^2 (d2/dx2 + d2/dy2) of the smoothed frame, at the maximum */
    float mass;       /**< sum above the background over a disc of radius 3 sigma (fit: the
                         Gaussian's volume) */
    float background; /**< median of a ring around that disc (fit: the fitted background) */
    float snr;        /**< mass / (background scatter * sqrt(pixels in disc)); 0: no scatter */
} clv_spot;

typedef struct clv_blob_frames {
    size_t size; /**< sizeof(clv_blob_frames) */
    clv_blob_pixel type;
    size_t frames, height, width;    /**< height and width at least 1, at most 65535 */
    size_t frame_stride, row_stride; /**< in elements; 0: dense */
} clv_blob_frames;

/** What clv_blobs found in a movie, or a clv_blob_stream in the frames pushed so far. Frozen. */
typedef struct clv_blob_summary {
    size_t frames, spots, empty_frames;
    size_t bad_pixels;      /**< pixels that are NaN or inf */
    size_t dropped_bad;     /**< spots dropped because a bad pixel is within 2 sigma */
    double max_response;    /**< largest response of all frames */
    size_t reruns;          /**< frames computed again, because their list of maxima was full */
    double job_s, finish_s; /**< time on devices; time to refine and measure on the host */
    size_t hot_pixels;      /**< maxima dropped because they are hot pixels */
} clv_blob_summary;

/**
 * Finds the blobs of a movie. In every frame, the function looks for maxima in y, x and sigma of the scale-normalised
 * Laplacian (or of differences of Gaussians), drops spots that overlap too much, refines the positions to fractions of
 * a pixel, and measures the spots.
 *
 * Borders mirror the frame (d c b a | a b c d | d c b a). Of neighbours with equal responses, the first one in the
 * order (sigma, y, x) is the maximum. A frame without contrast has no spots.
 *
 * @param context  the devices to use; the spots do not depend on their number, nor on how many frames are computed
 *                 together.
 * @param pixels   [frames,height,width] of frames->type; borrowed, not written.
 * @param options  NULL means all defaults.
 * @param spots    out, ordered by frame, y, x, sigma; free with clv_free(); NULL if there are none.
 * @param summary, report  may be NULL.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an option outside its range); CLV_E_SHAPE (an empty frame,
 *         strides that overlap, more than 65535 rows or columns); CLV_E_CANCELLED; CLV_E_MEMORY;
 *         and the CLV_E_DEVICE... statuses of clv_job_run.
 *
 * Accuracy: responses are within 1e-5 of float64's. One device gives the same bytes for every batch and number of
 * sub-devices. Errors of positions are about 1.5 times (QUAD) and 1.1 times (FIT) the Cramer-Rao bound.
 * Threads: any; one job at a time per context.
 * Source: Lindeberg 1998 (scale space). tests/kernels/test_blob.c checks the responses and the bytes, and
 * tests/cli/blobs_goldens.py the errors of positions.
 */
CLV_API clv_status clv_blobs(clv_context *context, const clv_blob_frames *frames,
                             const void *pixels, const clv_blob_options *options, clv_spot **spots,
                             size_t *count, clv_blob_summary *summary, clv_report *report);

/* ---- frame by frame: for a camera, and for movies that do not fit memory ------------------- */

typedef struct clv_blob_stream clv_blob_stream;

/**
 * Opens a stream of frames. `shape->frames` is the largest number of frames in one push (at least 1). Options are as
 * for clv_blobs, but movie_scope is refused with CLV_E_ARGUMENT.
 *
 * This call allocates host memory for frames and spots; device memory is allocated by clv_blobs_warm, or by the first
 * push of each number of frames. After that, a push without a report allocates nothing, unless it finds more spots than
 * any push before it. The driver may still allocate memory for its commands.
 */
CLV_API clv_status clv_blobs_open(clv_context *context, const clv_blob_frames *shape,
                                  const clv_blob_options *options, clv_blob_stream **stream);

/** Processes `count` dark frames completely, so that kernels are built, memory is allocated, and the first push of
 *  `count` frames is as fast as later ones. Call it before the camera starts. These frames are not counted: they do not
 *  appear in frame numbers, spots or summary. Statuses: those of clv_blobs. */
CLV_API clv_status clv_blobs_warm(clv_blob_stream *stream, size_t count);

/** Finds the spots of `count` frames (with the strides given to clv_blobs_open) and returns when you can pull them.
 *  After an error the frames count as not pushed. Statuses: those of clv_blobs. */
CLV_API clv_status clv_blobs_push(clv_blob_stream *stream, const void *pixels, size_t count,
                                  clv_report *report);

/** Moves up to `capacity` spots from the stream to `spots`, oldest first. *count receives how many were moved; 0 means
 *  that no spots are left. */
CLV_API clv_status clv_blobs_pull(clv_blob_stream *stream, clv_spot *spots, size_t capacity,
                                  size_t *count);

/** Standard deviations of a spot's position; NaN unless it was fitted (CLV_BLOB_SUBPIXEL_FIT). Frozen. */
typedef struct clv_spot_error {
    float y, x; /**< pixels */
} clv_spot_error;

/**
 * Gets the position errors of the spots that the last clv_blobs_pull moved out, in the same order. Call it before the
 * next push. The errors follow from the scatter of the fit's residuals.
 *
 * @param errors  out: as many as were pulled, but at most `capacity`.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL).
 *
 * Accuracy: true deviations are 1.03 to 1.05 times these errors for spots of 3000 and more photons, and 1.1 times for
 * spots of 600 photons (simulated, sigma 1.4, background 20).
 */
CLV_API clv_status clv_blobs_errors(const clv_blob_stream *stream, clv_spot_error *errors,
                                    size_t capacity);

CLV_API clv_blob_summary clv_blobs_summary(const clv_blob_stream *stream);
CLV_API void clv_blobs_close(clv_blob_stream *stream); /**< accepts NULL */

/** Gets the sigmas of all scales for these options, at most CLV_BLOB_MAX_SCALES of them. */
CLV_API clv_status clv_blobs_ladder(const clv_blob_options *options, double *sigma_px,
                                    size_t *count);

CLV_END_DECLS

#endif

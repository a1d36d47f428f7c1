/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs: bright spots in the frames of a movie, over several scales, with sub-pixel positions. */
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

typedef enum clv_blob_taps {
    CLV_BLOB_TAPS_ZERO_SUM = 0, /**< flat areas answer exactly nothing */
    CLV_BLOB_TAPS_SCIPY,        /**< as scipy and scikit-image sample them; for comparisons */
} clv_blob_taps;

typedef enum clv_blob_subpixel {
    CLV_BLOB_SUBPIXEL_QUAD = 0, /**< quadratic through the 9 responses around the maximum */
    CLV_BLOB_SUBPIXEL_FIT,      /**< Gaussian integrated over pixels, weighted least squares */
    CLV_BLOB_SUBPIXEL_NONE,     /**< whole pixels, sigmas of the ladder */
} clv_blob_subpixel;

enum { CLV_BLOB_MAX_SCALES = 64, CLV_BLOB_MAX_RADIUS = 1024 };

/** All-zero means default. Thresholds: one given alone rules alone, of threshold and threshold_rel the
 *  stricter one, threshold_sigma goes with no other; with none, threshold_sigma is 6 (with
 *  movie_scope, threshold_rel is 0.2). */
typedef struct clv_blob_options {
    size_t size;         /**< sizeof(clv_blob_options) */
    double min_sigma_px; /**< 0: 1 */
    double max_sigma_px; /**< 0: 3 */
    unsigned num_sigma;  /**< of the LoG's ladder, 1 to 64; 0: 5 */
    bool log_scale;      /**< geometric ladder in place of a linear one */
    bool dog;            /**< differences of Gaussians; their ladder is min * ratio^i */
    double sigma_ratio;  /**< of the DoG's ladder; 0: 1.6 */
    bool threshold_given, threshold_rel_given, threshold_sigma_given;
    double threshold;     /**< responses above this, in units of the pixels (>= 0) */
    double threshold_rel; /**< above this part of the frame's largest response, 0 to 1 */
    /** Above this many deviations of the noise of the responses of that scale at that place; where the noise is skewed
     * (few photons), above what is as rare. More than 0. */
    double threshold_sigma;
    bool movie_scope; /**< clv_blobs: threshold_rel of the movie's largest response */
    clv_blob_taps taps;
    bool normalize; /**< `threshold` is a part of the integer type's largest value */
    bool invert;    /**< dark spots */
    clv_blob_subpixel subpixel;
    bool keep_overlapping; /**< no pruning */
    bool overlap_given;
    double overlap; /**< pruned above this part of the smaller disc, 0 to 1; not given: 0.5 */
    size_t exclude_border;  /**< pixels from each edge without spots */
    clv_progress *progress; /**< NULL: none; a non-zero return cancels */
    void *progress_user;
    bool keep_hot_pixels; /**< threshold_sigma drops single pixels that are brighter than a spot of
                               min_sigma_px can make them; this keeps them */
    /** clv_volumes: distances between voxels along z, y, x, in any unit; only their ratios count. All 0: cubes.
     * clv_blobs does not read it. */
    double voxel_size[3];
} clv_blob_options;

enum {
    CLV_SPOT_FIT_FAILED = 1, /**< the quadratic's answer was kept */
    CLV_SPOT_SATURATED = 2,  /**< the brightest pixel has the type's largest value */
    CLV_SPOT_BAD_PIXEL = 4,  /**< a NaN or inf within 4 sigma */
    CLV_SPOT_BORDER = 8,     /**< its disc of radius sqrt(2) sigma leaves the frame */
    CLV_SPOT_GAP = 16,       /**< interpolated by the linker */
};

/** One spot. Position 0 is the centre of the first pixel. Frozen. */
typedef struct clv_spot {
    uint32_t frame;   /**< in the order they were pushed, from 0 */
    uint32_t flags;   /**< CLV_SPOT_... */
    float y, x;       /**< pixels */
    float sigma;      /**< pixels; the radius is about sqrt(2) sigma */
    float response;   /**< L = -sigma^2 (d2/dx2 + d2/dy2) of the smoothed frame, at the maximum */
    float mass;       /**< sum above the background over a disc of radius 3 sigma (fit: the
                         Gaussian's volume) */
    float background; /**< median of a ring around that disc (fit: the fit's) */
    float snr;        /**< mass over the background's scatter in such a disc; 0: no scatter */
} clv_spot;

typedef struct clv_blob_frames {
    size_t size; /**< sizeof(clv_blob_frames) */
    clv_blob_pixel type;
    size_t frames, height, width;    /**< height and width at least 1, at most 65535 */
    size_t frame_stride, row_stride; /**< in elements; 0: dense */
} clv_blob_frames;

/** Frozen. */
typedef struct clv_blob_summary {
    size_t frames, spots, empty_frames;
    size_t bad_pixels;      /**< NaN and inf */
    size_t dropped_bad;     /**< spots within 2 sigma of such a pixel */
    double max_response;    /**< of all frames */
    size_t reruns;          /**< frames done again, because their list of maxima was full */
    double job_s, finish_s; /**< on devices; refining and measuring on the host */
    size_t hot_pixels;      /**< maxima that were dropped as such */
} clv_blob_summary;

/**
 * Finds the blobs of a movie: maxima in y, x and sigma of the scale-normalised Laplacian (or of
 * differences of Gaussians) of every frame; pruned by overlap; sub-pixel positions; measured.
 *
 * Borders mirror the frame (d c b a | a b c d | d c b a). Of equal neighbours the first in
 * (sigma, y, x) is taken. A frame without contrast gives nothing.
 *
 * @param context  the devices to use; the spots do not depend on their number, nor on batches.
 * @param pixels   [frames,height,width] of frames->type; borrowed, not written.
 * @param options  NULL means all defaults.
 * @param spots    out, by frame, y, x, sigma; free with clv_free(); NULL when there is none.
 * @param summary, report  may be NULL.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an option outside its range); CLV_E_SHAPE (an empty frame,
 *         strides that overlap, more than 65535 rows or columns); CLV_E_CANCELLED; CLV_E_MEMORY;
 *         CLV_E_DEVICE... of the job.
 *
 * Accuracy: responses within 1e-5 of float64's. On one device the same bytes for every batch and
 * number of sub-devices. Positions: `quad` about 1.5 times, `fit` 1.1 times the Cramer-Rao bound.
 * Threads: any; one job at a time per context.
 * Source: Lindeberg 1998 (scale space); SPEC figures as measured in tests/kernels/test_blob.c.
 */
CLV_API clv_status clv_blobs(clv_context *context, const clv_blob_frames *frames,
                             const void *pixels, const clv_blob_options *options, clv_spot **spots,
                             size_t *count, clv_blob_summary *summary, clv_report *report);

/* ---- frame by frame: for a camera, and for movies that do not fit memory ------------------- */

typedef struct clv_blob_stream clv_blob_stream;

/**
 * Opens a stream of frames; `shape->frames` is the most that one push may bring (at least 1).
 * Options as above; movie_scope is CLV_E_ARGUMENT here. Memory for frames and spots is taken now
 * and, on the devices, by clv_blobs_warm or the first pushes of each number of frames. After that a
 * push without a report allocates nothing, unless it finds more spots than any before it; what the
 * driver takes for its commands is not ours to say.
 */
CLV_API clv_status clv_blobs_open(clv_context *context, const clv_blob_frames *shape,
                                  const clv_blob_options *options, clv_blob_stream **stream);

/** Before the camera starts: takes `count` dark frames through the whole way, so that kernels are
 *  built and memory is at hand, and the first push of `count` frames is as quick as the next ones.
 *  Frames, spots and summary do not show it. Statuses as clv_blobs. */
CLV_API clv_status clv_blobs_warm(clv_blob_stream *stream, size_t count);

/** Detects in `count` frames (strides as opened) and returns when their spots can be pulled.
 *  After an error the frames count as not pushed. Statuses as clv_blobs. */
CLV_API clv_status clv_blobs_push(clv_blob_stream *stream, const void *pixels, size_t count,
                                  clv_report *report);

/** Moves at most `capacity` spots out, oldest first; *count 0: none is left. */
CLV_API clv_status clv_blobs_pull(clv_blob_stream *stream, clv_spot *spots, size_t capacity,
                                  size_t *count);

/** Standard deviations of a place; NaN unless it was fitted (CLV_BLOB_SUBPIXEL_FIT). Frozen. */
typedef struct clv_spot_error {
    float y, x; /**< pixels */
} clv_spot_error;

/**
 * The errors of the places of the spots that the last clv_blobs_pull moved out, in their order; to be called before the
 * next push. They follow from the scatter of the fit's residuals.
 *
 * @param errors  out, the first min(capacity, what was pulled).
 * @return CLV_OK; CLV_E_ARGUMENT (NULL).
 *
 * Accuracy: the deviations from the truth are 1.03 to 1.05 times as large for spots of 3000 and more photons, and 1.1
 * times for spots of 600 (simulated, sigma 1.4, background 20).
 */
CLV_API clv_status clv_blobs_errors(const clv_blob_stream *stream, clv_spot_error *errors,
                                    size_t capacity);

CLV_API clv_blob_summary clv_blobs_summary(const clv_blob_stream *stream);
CLV_API void clv_blobs_close(clv_blob_stream *stream); /**< accepts NULL */

/** The sigmas of the responses for these options: at most CLV_BLOB_MAX_SCALES. */
CLV_API clv_status clv_blobs_ladder(const clv_blob_options *options, double *sigma_px,
                                    size_t *count);

CLV_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how far the stage of a microscope drifted, from the frames of a movie. */
#ifndef CLEAVE_STAGE_H
#define CLEAVE_STAGE_H

#include <cleave/blob.h>

#include <stdbool.h>

CLV_BEGIN_DECLS

/** An open measurement of drift. */
typedef struct clv_stage clv_stage;

/** Options of clv_stage_open; all fields but `size` may be zero. */
typedef struct clv_stage_options {
    size_t size; /**< sizeof(clv_stage_options) */
    /** Over how many frames the reference averages: more frames make it more precise, fewer let it follow a scene that
     *  changes. 0: 20. */
    size_t memory;
} clv_stage_options;

/** How far the picture in a frame is shifted relative to the first frame. Frozen. */
typedef struct clv_stage_shift {
    double y, x; /**< pixels; positive: the picture moved towards larger y, x */
    /** Standard errors in pixels; 0 in the first frame, and NaN where `found` is false. */
    double y_err, x_err;
    /** false: the frame has no significant correlation with the reference; y and x then repeat those of the frame
     *  before. */
    bool found;
} clv_stage_shift;

/** Returns whether this build of the library can measure drifts: it needs the library KISS FFT. */
CLV_API bool clv_stage_available(void);

/**
 * Begins to measure the drift of a movie. The shift d of a frame f against a reference r maximises
 *
 *     c(d) = sum over frequencies k of w(|k|) Re(F[k] conj(R[k]) exp(2 pi i k d)),
 *
 * where F and R are the Fourier transforms of the frames. Before a transform, the median is subtracted, and the frame
 * is multiplied by a window that moves with the scene. The reference is the mean of the frames so far. Each frame is
 * first shifted by the drift since it was taken, and older frames count less.
 *
 * The weight w is g^2 / (1 - g^2) / |F conj(R)|, averaged over rings of |k|: g, at most 0.95, is the coherence of the
 * frame and the reference. It is estimated first from the noise at the highest frequencies, then from the frames
 * themselves. The maximum is found on a grid of the correlation, and between its points by Newton's method.
 *
 * @param frames   type, height, width and strides of the frames; `frames` is not used. Height and width at least 32.
 * @param options  may be NULL.
 * @param stage    out; close it with clv_stage_close.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a type that is none of clv_blob_pixel); CLV_E_SHAPE; CLV_E_UNSUPPORTED (see
 *         clv_stage_available); CLV_E_MEMORY.
 *
 * Accuracy: see docs/microscopy.md for simulated movies. The standard errors are those of a frame against the
 *           reference, for noise that is the same everywhere. If most of the noise is the photon noise of the spots
 *           themselves, true errors are up to twice as large. The error of the reference itself changes slowly and is
 *           not included.
 *           Single steps longer than 1/32 of the frame look 1 to 2 % shorter than they are in frames of 100 pixels, and
 *           less so in larger frames (as the inverse square of the size).
 *           Single pixels that stand out from their neighbours (hot pixels) are replaced. Other things that do not move
 *           with the stage, such as dirt on the camera, count as part of the scene and draw the result towards zero.
 *           Particles that move by themselves are part of the scene too: their common motion looks like a drift.
 * Threads:  computes on the caller's thread; any thread, one at a time for each clv_stage.
 * Source:   the generalised correlation of Knapp and Carter (1976), in two dimensions; Guizar-Sicairos et al. (2008)
 *           for the idea to refine the maximum from the transforms alone.
 */
CLV_API clv_status clv_stage_open(const clv_blob_frames *frames, const clv_stage_options *options,
                                  clv_stage **stage);

/**
 * Measures the next frames, in the order of time.
 *
 * @param pixels  [count][height][width] at the strides given to clv_stage_open. Pixels that are NaN or infinite count
 *                as the median of the other pixels.
 * @param shifts  out, [count].
 * @return CLV_OK; CLV_E_ARGUMENT (NULL).
 */
CLV_API clv_status clv_stage_push(clv_stage *stage, const void *pixels, size_t count,
                                  clv_stage_shift *shifts);
CLV_API void clv_stage_close(clv_stage *stage); /**< accepts NULL */

/**
 * Shifts an image back by y and x: out[i, j] = in(i + y, j + x), interpolated by Keys' cubic kernel (a = -1/2). Pixels
 * that would come from outside the image become NaN.
 *
 * @param in, out  [height][width], dense; they must not overlap.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a shift that is not finite); CLV_E_SHAPE (an extent of 0).
 */
CLV_API clv_status clv_stage_restore(const float *in, size_t height, size_t width, double y,
                                     double x, float *out);

CLV_END_DECLS

#endif

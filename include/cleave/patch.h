/* SPDX-License-Identifier: Apache-2.0 */
/* Patch statistics: PACO, the search for exoplanets in angular differential imaging. */
#ifndef CLEAVE_PATCH_H
#define CLEAVE_PATCH_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

typedef enum clv_psf_mode {
    CLV_PSF_SHIFT = 0, /**< the PSF moves with the sub-pixel place of the planet in each frame */
    CLV_PSF_FIXED,     /**< it stays on the pixel: faster, S/N off by up to 0.6 */
} clv_psf_mode;

typedef enum clv_paco_convention {
    CLV_PACO_PAPER = 0, /**< the formulas of the paper */
    CLV_PACO_VIP,       /**< what vip-hci computes: half the covariance, its shrinkage, truncated
                             centres, one more pixel of margin; for comparisons only */
} clv_paco_convention;

typedef enum clv_rounding {
    CLV_ROUND_DEFAULT = 0, /**< nearest for PAPER, truncation for VIP */
    CLV_ROUND_NEAREST,
    CLV_ROUND_TRUNC,
} clv_rounding;

/** A sequence of star-centred frames that were not derotated. Borrowed; nothing is written. */
typedef struct clv_paco_input {
    size_t size;                     /**< sizeof(clv_paco_input) */
    const float *cube;               /**< [frames,height,width], any unit; NaN and inf are masks */
    size_t frames, height, width;    /**< frames >= 2; sides at least 2 radius + 1 */
    size_t frame_stride, row_stride; /**< in elements; 0: dense */
    const double *angles;            /**< [frames] parallactic angles, degrees, any order */
    const float *psf;                /**< [psf_size,psf_size], finite, centre at psf_size / 2 */
    size_t psf_size;                 /**< at least 2 radius + 1 */
} clv_paco_input;

/** All-zero means default. */
typedef struct clv_paco_options {
    size_t size;     /**< sizeof(clv_paco_options) */
    unsigned radius; /**< patch = disc of this radius, 2 to 6; 0: 4 (49 pixels) */
    clv_psf_mode psf_mode;
    clv_paco_convention convention;
    clv_rounding rounding;
    bool reverse_angles;       /**< the angles turn the other way */
    bool centre_given;         /**< else the star is on pixel (width / 2, height / 2) */
    double centre_x, centre_y; /**< column and row, 0-based, fractions allowed */
    unsigned psf_vectors;      /**< basis of the shifted PSF: 5, 10 or 15; 0: 10, fewer if enough */
    clv_progress *progress;    /**< NULL: none; a non-zero return cancels */
    void *progress_user;
} clv_paco_options;

/** Map positions by what became of them; the five add up to height * width. Frozen. */
typedef struct clv_paco_counts {
    size_t valid;
    size_t outside;    /**< the arc leaves the frame, or comes closer to its edge than the radius */
    size_t not_finite; /**< a patch on the arc holds a NaN or inf in some frame */
    size_t constant;   /**< a patch on the arc holds a pixel that never changes */
    size_t
        degenerate; /**< numbers beyond the range: a patch a million times quieter than the rest */
} clv_paco_counts;

/**
 * PACO's two maps (Flasseur, Denis, Thiebaut, Langlois 2018, A&A 618, A138).
 *
 *   a = sum_l h_l' C_k^-1 h_l      b = sum_l h_l' C_k^-1 (r_{k,l} - m_k)
 *
 * over the frames l, with k = k(l) the patch through which a planet at the map position would pass
 * in frame l, m_k and C_k the mean and the shrunk covariance of that patch over time, r its pixels
 * and h_l the PSF there. S/N = b / sqrt(a), flux = b / a, sigma = 1 / sqrt(a): clv_paco_maps.
 *
 * @param context  the devices to use; the maps do not depend on their number.
 * @param options  NULL means all defaults.
 * @param a, b     out, [height,width], dense, in (input unit)^-2 and (input unit)^-1 per PSF unit;
 *                 NaN where a position cannot be judged.
 * @param counts   out, may be NULL.
 * @param report   may be NULL; the run is added.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, radius outside 2 to 6, centre outside the frame, a PSF that
 *         is not finite or all zero); CLV_E_SHAPE (fewer than 2 frames, a frame or PSF smaller than
 *         the patch); CLV_E_CANCELLED; CLV_E_MEMORY; CLV_E_DEVICE... of the job. After an error the
 *         maps are not written.
 *
 * Accuracy: against float64, a within 5e-5 and S/N within 1e-3 (FIXED) or 1e-3 and 2e-3 (SHIFT);
 * observed 3e-6 and 2e-4. On one device the same bits for every batch, chunk and sub-device.
 * Threads: any; one job at a time per context.
 */
CLV_API clv_status clv_paco(clv_context *context, const clv_paco_input *input,
                            const clv_paco_options *options, double *a, double *b,
                            clv_paco_counts *counts, clv_report *report);

/** snr = b / sqrt(a), flux = b / a, sigma = 1 / sqrt(a) for `count` positions; NaN stays NaN. Each
 *  output may be NULL. */
CLV_API void clv_paco_maps(const double *a, const double *b, size_t count, float *snr, float *flux,
                           float *sigma);

/** One maximum of the S/N map. Frozen. */
typedef struct clv_detection {
    size_t x, y;           /**< column and row */
    double separation_px;  /**< from the centre */
    double position_angle; /**< atan2(-(x - cx), y - cy) in [0,360) degrees */
    double snr, flux, sigma;
} clv_detection;

/**
 * Maxima of the S/N map above `threshold` that nothing within `fwhm_px` exceeds; highest first.
 *
 * @param detections  out, free with free(); NULL when there is none.
 * @return CLV_OK, CLV_E_ARGUMENT, CLV_E_MEMORY.
 */
CLV_API clv_status clv_paco_detect(const float *snr, const float *flux, const float *sigma,
                                   size_t height, size_t width, double centre_x, double centre_y,
                                   double fwhm_px, double threshold, clv_detection **detections,
                                   size_t *count);

typedef enum clv_psf_norm {
    CLV_PSF_NORM_NONE = 0, /**< flux in the PSF's own unit */
    CLV_PSF_NORM_PEAK,     /**< highest pixel 1 */
    CLV_PSF_NORM_SUM,      /**< sum 1 */
    CLV_PSF_NORM_APERTURE, /**< flux 1 in a disc of diameter 1 FWHM */
} clv_psf_norm;

/** FWHM in pixels of a round Gaussian with background fitted to the PSF. CLV_E_FORMAT when the fit
 *  finds no peak near the centre. */
CLV_API clv_status clv_psf_fwhm(const float *psf, size_t size, double *fwhm_px);

/** Divides by the peak, the sum or the aperture flux; `fwhm_px` matters for APERTURE only.
 *  CLV_E_FORMAT when what it would divide by is not positive. */
CLV_API clv_status clv_psf_normalize(float *psf, size_t size, clv_psf_norm norm, double fwhm_px);

CLV_END_DECLS

#endif

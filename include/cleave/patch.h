/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for exoplanets in angular differential imaging by the PACO algorithm, which models the statistics of
 * patches. */
#ifndef CLEAVE_PATCH_H
#define CLEAVE_PATCH_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

typedef enum clv_psf_mode {
    CLV_PSF_SHIFT = 0, /**< the PSF is shifted to the planet's sub-pixel position in each frame */
    CLV_PSF_FIXED,     /**< the PSF stays centred on a pixel: faster, but S/N is off by up to 0.6 */
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

/** A sequence of star-centred frames that were not derotated. Its memory is borrowed and not written to. */
typedef struct clv_paco_input {
    size_t size;                  /**< sizeof(clv_paco_input) */
    const float *cube;            /**< [frames,height,width], any unit; NaN, inf: masked pixels */
    size_t frames, height, width; /**< frames >= 2; sides at least 2 radius + 1 */
    size_t frame_stride, row_stride; /**< in elements; 0: dense */
    const double *angles;            /**< [frames] parallactic angles, degrees, any order */
    const float *psf;                /**< [psf_size,psf_size], finite, centre at psf_size / 2 */
    size_t psf_size;                 /**< at least 2 radius + 1 */
    /** [frames] above 0: 1 / variance of each frame's noise, in any unit; NULL: all are 1. */
    const double *weights;
} clv_paco_input;

/** Options of clv_paco. Zero fields mean the default. */
typedef struct clv_paco_options {
    size_t size;     /**< sizeof(clv_paco_options) */
    unsigned radius; /**< a patch is a disc of this radius, 2 to 6; 0: 4 (49 pixels) */
    clv_psf_mode psf_mode;
    clv_paco_convention convention;
    clv_rounding rounding;
    bool reverse_angles;       /**< change the sign of all angles */
    bool centre_given;         /**< else the star is on pixel (width / 2, height / 2) */
    double centre_x, centre_y; /**< column and row of the star, 0-based, fractions allowed */
    unsigned psf_vectors; /**< size of the shifted PSF's basis: 5, 10, 15; 0: 10, or 5 if enough */
    clv_progress *progress; /**< NULL: none; a non-zero return cancels */
    void *progress_user;
    /** Radius of the patch with which clv_paco_characterize and clv_paco_search measure companions, 2 to 6; 0:
     * `radius`. A wider patch gives better positions. If it does not fit into the frames, `radius` is used. */
    unsigned measure_radius;
} clv_paco_options;

/** How many map positions are valid, and how many are not for each reason; the five counts add up to height * width.
 *  "The arc" is the path of a planet through the frames. Frozen. */
typedef struct clv_paco_counts {
    size_t valid;
    size_t outside;    /**< the arc leaves the frame, or comes closer to its edge than the radius */
    size_t not_finite; /**< a patch on the arc holds a NaN or inf in some frame */
    size_t constant;   /**< a patch on the arc holds a pixel that never changes */
    /** A patch on the arc varies a million times less than other patches, so that its numbers are out of range. */
    size_t degenerate;
} clv_paco_counts;

/**
 * Computes PACO's two maps (Flasseur, Denis, Thiebaut, Langlois 2018, A&A 618, A138).
 *
 *   a = sum_l h_l' C_k^-1 h_l      b = sum_l h_l' C_k^-1 (r_{k,l} - m_k)
 *
 * The sums run over the frames l. k = k(l) is the patch in which a planet at the map position would be in frame l, m_k
 * and C_k are the mean and the shrunk covariance of that patch over time, r are the patch's pixels, and h_l is the PSF
 * in the patch. With weights w, the noise of frame l has the covariance C_k / w_l: m_k is the mean with these weights,
 * C_k comes from sqrt(w_l) (r - m_k), and frame l counts w_l times in a and b. clv_paco_maps computes
 * S/N = b / sqrt(a), flux = b / a and sigma = 1 / sqrt(a).
 *
 * @param context  the devices to use; the maps do not depend on their number.
 * @param options  NULL means all defaults.
 * @param a, b     out, [height,width], dense, in (input unit)^-2 and (input unit)^-1 per PSF unit;
 *                 NaN where the position is not valid (see clv_paco_counts).
 * @param counts   out, may be NULL.
 * @param report   may be NULL; the run is added to it.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, radius outside 2 to 6, centre outside the frame, a PSF that
 *         is not finite or all zero, a weight that is not above 0); CLV_E_SHAPE (fewer than 2 frames, a frame or PSF
 *         smaller than the patch); CLV_E_CANCELLED; CLV_E_MEMORY; and the CLV_E_DEVICE... statuses of clv_job_run.
 *         After an error the maps are not written.
 *
 * Accuracy: compared with float64, a is within 5e-5 and S/N within 1e-3 (FIXED), or within 1e-3 and 2e-3 (SHIFT). The
 * errors observed are 3e-6 in a and 2e-4 in S/N. One device gives the same bits for every batch, chunk and sub-device.
 * Threads: any; one job at a time per context.
 */
CLV_API clv_status clv_paco(clv_context *context, const clv_paco_input *input,
                            const clv_paco_options *options, double *a, double *b,
                            clv_paco_counts *counts, clv_report *report);

/** Computes snr = b / sqrt(a), flux = b / a and sigma = 1 / sqrt(a) for `count` positions; NaN stays NaN. Each output
 *  may be NULL. */
CLV_API void clv_paco_maps(const double *a, const double *b, size_t count, float *snr, float *flux,
                           float *sigma);

/** One maximum of the S/N map. Frozen. */
typedef struct clv_detection {
    size_t x, y;           /**< column and row */
    double separation_px;  /**< distance from the centre */
    double position_angle; /**< atan2(-(x - cx), y - cy) in [0,360) degrees */
    double snr, flux, sigma;
} clv_detection;

/**
 * Finds the maxima of the S/N map: values above `threshold` that no other value within `fwhm_px` pixels exceeds.
 *
 * @param detections  out, highest S/N first; free with clv_free(); NULL if there are none.
 * @return CLV_OK, CLV_E_ARGUMENT, CLV_E_MEMORY.
 */
CLV_API clv_status clv_paco_detect(const float *snr, const float *flux, const float *sigma,
                                   size_t height, size_t width, double centre_x, double centre_y,
                                   double fwhm_px, double threshold, clv_detection **detections,
                                   size_t *count);

/** A companion: its position in the map and its flux, with standard errors. */
typedef struct clv_companion {
    double x, y;           /**< column and row, 0-based, sub-pixel */
    double x_err, y_err;   /**< standard errors; 0: you gave the position; NaN: there is no flux */
    double separation_px;  /**< distance from the centre */
    double position_angle; /**< atan2(-(x - cx), y - cy) in [0,360) degrees */
    double flux, flux_err; /**< in units of the PSF; NaN if a patch on the arc cannot be used */
    /** Set by clv_paco_search: the calibrated peak, and the probability that noise alone gives such a peak anywhere in
     *  the map. clv_paco_characterize does not change them. */
    double snr, false_alarm;
    double recovery; /**< mean flux / true flux of the planets injected for the errors; NaN: none */
    size_t ring;     /**< how many planets were injected */
} clv_companion;

/**
 * Measures flux and position of companions whose position is roughly known (Flasseur et al. 2018, algorithm 3).
 *
 * The flux of clv_paco's maps is too low, because the planet itself contributes to the statistics with which it is
 * compared. For a position (x, y), this function therefore repeats four steps until the flux changes by less than its
 * error: subtract flux * h_t from all frames t of each patch k(l); compute the mean m and the covariance C of the
 * remaining data; compute a and b with the pixels from before the subtraction; set flux = max(b, 0) / a. The position
 * is the place where the likelihood of the planet's image has no slope; m and C are again those of the data without the
 * planet: sum_l (dh_l/dx)' C^-1 (r_l - m - flux h_l) = 0, and the same for y. Flux and position are found together
 * (Gauss-Newton), for all companions in one batch on the context's devices.
 *
 * Errors are those of the likelihood, (J' C^-1 J)^-1 with J = (h, flux dh/dx, flux dh/dy), times one factor for the
 * flux and one for the position. The factors come from injected planets: planets of the same flux are injected into the
 * cube without all companions of this call, at up to 24 other angles of the same separation, and measured. A factor is
 * how far n results are from the injected values, in units of their own errors, times sqrt(n / (n - 2)), since the
 * scatter of n results is itself uncertain (Student's distribution). If fewer than 6 such planets fit, the nearest
 * larger separation is used.
 *
 * @param options      as for clv_paco; the PSF is always shifted to sub-pixel positions (`psf_mode` is ignored).
 * @param fwhm_px      FWHM of the PSF.
 * @param keep_places  true: the given positions are exact, so measure only the flux.
 * @param companions   in: x, y; out: everything. [count], which may be 0.
 * @param report       may be NULL; the runs are added to it.
 * @return CLV_OK; CLV_E_ARGUMENT and CLV_E_SHAPE as for clv_paco; CLV_E_CANCELLED; CLV_E_MEMORY; the statuses of
 *         clv_job_run.
 *
 * Accuracy: flux is within 1e-3 of a computation in float64. Two sets of 24 planets were injected into a real sequence,
 *           with fluxes of 20, 40 and 80 times 1 / sqrt(a). At these three fluxes, the rms errors of the positions per
 *           axis were, in pixels: for the first set, 0.25, 0.13 and 0.065 with radius 4, and 0.22, 0.11 and 0.055 with
 *           radius 5; for the second set, 0.21, 0.11 and 0.056 with radius 4, 0.17, 0.089 and 0.046 with radius 5, and
 *           0.16, 0.084 and 0.043 with radius 6. In units of the stated errors, positions scatter by 1.1 and fluxes by
 *           1.0 to 1.1.
 * Threads:  any; one job at a time per context.
 */
CLV_API clv_status clv_paco_characterize(clv_context *context, const clv_paco_input *input,
                                         const clv_paco_options *options, double fwhm_px,
                                         bool keep_places, clv_companion *companions, size_t count,
                                         clv_report *report);

/**
 * Subtracts companions from a sequence: cube -= flux times the PSF at the companion's position in each frame. A
 * negative flux adds a planet.
 *
 * @param cube  with the strides of `input`; may be input->cube. Changed in place.
 * @return the statuses of clv_paco. Threads: any.
 */
CLV_API clv_status clv_paco_subtract(const clv_paco_input *input, const clv_paco_options *options,
                                     const clv_companion *companions, size_t count, float *cube);

/**
 * Calibrates an S/N map, so that its noise has a standard deviation of 1 at every separation.
 *
 * The noise at a separation is the scatter in an annulus as wide as the PSF. Masked places do not count, nor do values
 * that deviate by more than 5 times 1.4826 MAD. Close to the star an annulus holds few independent samples, n = 2 pi r
 * / FWHM, so that large values are more frequent than in a normal distribution. Each value is therefore taken as one of
 * Student's t with n - 1 degrees of freedom, and replaced by the equally rare value of a normal distribution (Mawet et
 * al. 2014, ApJ 792, 97); then the noise is scaled to 1 again. A larger value always gives a larger result.
 *
 * @param noise       the map from which the noise is measured (without planets); NULL: snr itself.
 * @param masked_xy   [masked_count,2] column and row of places to leave out, each with everything within one FWHM.
 * @param calibrated  out, [height,width]; NaN stays NaN.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_MEMORY. Threads: any.
 */
CLV_API clv_status clv_paco_calibrate(const float *snr, const float *noise, size_t height,
                                      size_t width, double centre_x, double centre_y,
                                      double fwhm_px, const double *masked_xy, size_t masked_count,
                                      float *calibrated);

/**
 * Finds companions one after the other: measures the highest peak of the calibrated S/N map (see
 * clv_paco_characterize), subtracts that companion from the cube and computes the map again, until no peak exceeds the
 * threshold. A bright companion that has been subtracted causes no false peaks. Peaks within one FWHM of a companion
 * are ignored. At most 64 companions are found.
 *
 * @param a, b        the maps that clv_paco gave for this input.
 * @param snr         out, [height,width]: the S/N of those maps, calibrated with the noise of the cube without
 *                    companions.
 * @param rest        out, may be NULL: the cube without companions, with the strides of `input`.
 * @param companions  out, highest S/N first; free with clv_free(); NULL if there are none.
 * @return the statuses of clv_paco_characterize. Threads: any; one job at a time per context.
 */
CLV_API clv_status clv_paco_search(clv_context *context, const clv_paco_input *input,
                                   const clv_paco_options *options, double fwhm_px,
                                   double threshold, const double *a, const double *b, float *snr,
                                   float *rest, clv_companion **companions, size_t *count,
                                   clv_report *report);

/** What clv_paco_asdi looks for. */
typedef struct clv_asdi_options {
    size_t size;      /**< sizeof(clv_asdi_options) */
    double fwhm_px;   /**< FWHM of the PSF, above 0 */
    double threshold; /**< S/N of the faintest companion to find; infinity: compute only the maps */
    /** [spectrum_count,channels] spectra that a companion may have: fluxes of at least 0, in units of each channel's
     *  PSF; only the shapes matter. */
    const double *spectra;
    size_t spectrum_count; /**< at most 64; 0: one spectrum, with the same flux in all channels */
} clv_asdi_options;

/** Companions with their spectra, highest S/N first. Free with clv_asdi_companions_clear. */
typedef struct clv_asdi_companions {
    size_t count, channels;
    clv_companion *companions; /**< [count]; their flux is the mean of all channels */
    size_t *spectrum;          /**< [count] index of the spectrum that fits best */
    double *fluxes; /**< [count,channels,2] flux and its error in each channel; may be negative */
} clv_asdi_companions;

/**
 * Searches a sequence of several wavelengths as a whole (PACO ASDI: Flasseur et al. 2020, A&A 637, A9).
 *
 * Every channel l has its own maps a_l, b_l, with its own statistics. With s_l = b_l / sqrt(a_l), the spectrum g of a
 * companion and u_l = g_l sqrt(a_l), the S/N of all channels together is
 *
 *   u' R^-1 s / sqrt(u' R^-1 u)
 *
 * where R is the covariance of the noise of s. Channels are correlated, because they show the same speckles. Both the
 * correlation and the scatter of each channel are measured in the maps, without the companions: the correlation in
 * zones (rings around the star) and shrunk as the covariance of a patch is, and the scatter at every separation,
 * relative to the mean of all channels. If the channels are independent and have the same scatter, the S/N is sum g b /
 * sqrt(sum g^2 a). Of several spectra, the one with the highest S/N counts. Because this is the best of several trials,
 * its S/N is then lowered to the value that is equally rare in a single trial (importance sampling over the spectra's
 * correlated maps).
 *
 * Companions are found, measured and subtracted as in clv_paco_search. A companion has one position in all channels,
 * found with all of them together, and a flux in each channel, measured as in clv_paco_characterize.
 *
 * @param channels  [count] one input per wavelength: each has its own cube and PSF, all have the same frames, sizes and
 *                  angles. Do not scale the frames with wavelength: a planet must be at the same place in all channels.
 * @param options   as for clv_paco.
 * @param a, b      out, [count,height,width], as for clv_paco.
 * @param snr       out, [height,width], calibrated (clv_paco_calibrate) with the noise without companions; NaN where a
 *                  channel has no value.
 * @param snr_raw   out, may be NULL: the formula above with the best spectrum, neither calibrated nor lowered.
 * @param rest      out, may be NULL: [count,frames,height,width], the cubes without the companions.
 * @param found     out.
 * @return the statuses of clv_paco_search; CLV_E_SHAPE (channels of different sizes); CLV_E_ARGUMENT (a spectrum that
 *         is negative, not finite or zero).
 *
 * Accuracy: 4 to 39 independent channels of equal noise and flux reach at least 0.95 sqrt(count) times the S/N of one.
 * Threads:  any; one job at a time per context.
 */
CLV_API clv_status clv_paco_asdi(clv_context *context, const clv_paco_input *channels, size_t count,
                                 const clv_paco_options *options, const clv_asdi_options *wanted,
                                 double *a, double *b, float *snr, float *snr_raw, float *rest,
                                 clv_asdi_companions *found, clv_report *report);
CLV_API void clv_asdi_companions_clear(clv_asdi_companions *found); /**< accepts NULL */

/** Which planets clv_paco_contrast injects. Zero fields mean the default. */
typedef struct clv_contrast_options {
    size_t size; /**< sizeof(clv_contrast_options) */
    double snr;  /**< S/N of a detection; 0: 5 */
    /** Planets to inject at each separation; 0: two for each FWHM of the circle, but at least 24 and at most 200. */
    size_t injections;
    bool raw; /**< use b / sqrt(a) as it is; false: calibrate it, see clv_paco_calibrate */
    /** [known_count,2] column and row of companions that were in the cube: no planet is injected within one FWHM of
     *  them, and they do not count as noise. Borrowed; may be NULL. */
    const double *known_xy;
    size_t known_count;
} clv_contrast_options;

/** What can be detected at one separation; fluxes in units of the PSF. Frozen. */
typedef struct clv_contrast_point {
    double separation_px; /**< in: the separation */
    /** The flux at which half of the planets reach the S/N of a detection; NaN if there is no such flux. */
    double flux;
    double flux_low, flux_high; /**< fluxes at which 16 % and 84 % of the planets reach the S/N */
    double flux_normal;         /**< as `flux`, without Student's correction for small samples */
    /** Median over the injected planets of (b / a with the planet - b / a without the planet) / flux. */
    double throughput;
    double noise; /**< standard deviation of b / a without planets */
    /** The S/N of a detection, in standard deviations of the noise at this separation, with Student's correction. */
    double threshold;
    size_t injections; /**< how many planets were injected */
} clv_contrast_point;

/**
 * Measures how faint a planet clv_paco and clv_paco_search can detect, by injection and recovery.
 *
 * At each separation, planets are injected at equal distances on a circle, one at a time. For each planet, the function
 * finds the flux at which the S/N at the planet's position is exactly `wanted->snr`; as in a search, the planet then
 * contributes to the statistics with which it is compared. The median over the circle is the flux at which half of the
 * planets are detected. All planets of a step are one batch on the context's devices.
 *
 * `map` estimates this flux for every pixel, without the pixel's own noise: planets of positive and of negative flux
 * are injected at up to 500 places, and flux * sqrt(a) / S/N is interpolated between them.
 *
 * @param input    a sequence without companions (`rest` of clv_paco_search).
 * @param options  as for clv_paco; its progress counts planets. The PSF is always shifted to sub-pixel positions, and
 *                 the formulas are those of the paper.
 * @param fwhm_px  FWHM of the PSF.
 * @param wanted   NULL means all defaults.
 * @param points   in: separation_px; out: everything. [count].
 * @param map      out, [height,width]: flux at which a planet reaches the S/N; NaN where the position is not valid. May
 *                 be NULL.
 * @param report   may be NULL; the runs are added to it.
 * @return CLV_OK; CLV_E_ARGUMENT and CLV_E_SHAPE as for clv_paco; CLV_E_CANCELLED; CLV_E_MEMORY; the statuses of
 *         clv_job_run.
 *
 * Accuracy: at `flux`, 50 % of other planets injected into the same sequence reach the S/N, to within the scatter of
 *           their number; each planet's own flux is found within 0.5 %.
 * Threads:  any; one job at a time per context.
 */
CLV_API clv_status clv_paco_contrast(clv_context *context, const clv_paco_input *input,
                                     const clv_paco_options *options, double fwhm_px,
                                     const clv_contrast_options *wanted, clv_contrast_point *points,
                                     size_t count, float *map, clv_report *report);

/** Where the star of a sequence is. */
typedef struct clv_star {
    double x, y;      /**< column and row, 0-based; (width / 2, height / 2) if none was found */
    double asymmetry; /**< of the mean frame about (x, y): 0 for none, about 1 for noise alone */
    bool found;       /**< false: no point within reach has an asymmetry of 0.06 or less */
} clv_star;

/**
 * Finds the star: the point near the middle of the frame about which the mean frame is symmetric.
 *
 * It minimises sum_d w(d) (I(c + d) - I(c - d))^2 over a disc of 1.1 FWHM, w = 1 / (1 + |d|), so it also finds
 * saturated stars and stars behind a coronagraph. It searches within an eighth of the shorter side, but at most 12
 * pixels, of the middle.
 *
 * @param input  only cube, sizes, strides and weights are used; NaN pixels are left out.
 * @return CLV_OK, also if no star was found; CLV_E_ARGUMENT; CLV_E_MEMORY.
 * Accuracy: 0.05 pixels on a real coronagraphic sequence; static speckles set the limit. Threads: any.
 */
CLV_API clv_status clv_paco_star(const clv_paco_input *input, double fwhm_px, clv_star *star);

/** How much a frame differs from the other frames of its sequence. */
typedef struct clv_paco_frame {
    /** Median over pixels of |value - median over time| / MAD over time; 1 for usual frames. */
    double scale;
    double missing; /**< fraction of its pixels that are NaN or inf */
    bool rejected;  /**< scale is above the limit, or more than half of its pixels are missing */
} clv_paco_frame;

/**
 * Compares every frame of a sequence with the other frames, using 4096 of its pixels.
 *
 * @param limit   the largest scale of a good frame; infinity: reject frames only for missing pixels.
 * @param frames  out, [input->frames].
 * @param kept    out: number of frames that are not rejected.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_MEMORY. Threads: any.
 */
CLV_API clv_status clv_paco_frames(const clv_paco_input *input, double limit,
                                   clv_paco_frame *frames, size_t *kept);

/** How the weight of a frame follows from its scale. */
typedef enum clv_frame_weighting {
    /** min(1, (2 / scale)^2): usual frames all have the weight 1, frames that deviate from them have less. */
    CLV_WEIGHTS_ROBUST = 0,
    CLV_WEIGHTS_VARIANCE, /**< 1 / scale^2, with a scale of at least 0.1: for frames of different noise */
} clv_frame_weighting;

/**
 * Computes weights for clv_paco_input from the results of clv_paco_frames. A frame whose scale is not known gets 1.
 *
 * @param weights  out, [count]; at least 1e-12.
 * @return CLV_OK; CLV_E_ARGUMENT. Threads: any.
 */
CLV_API clv_status clv_paco_frame_weights(const clv_paco_frame *frames, size_t count,
                                          clv_frame_weighting weighting, double *weights);

/**
 * Replaces pixels that are NaN or inf in some frames by an estimate from their neighbours in the same frame. With m and
 * s, the mean and the standard deviation of each pixel over time, the estimate is m + s z, where z is the weighted mean
 * of (value - m) / s over the neighbours. Pixels that are missing in more than half of the frames stay as they are.
 * Frames that deviate four times as much as usual (clv_paco_frames) are repaired, but do not count in m and s.
 *
 * @param cube    [frames,height,width], dense, changed in place.
 * @param mended  out: how many pixels were replaced.
 * @return CLV_OK; CLV_E_ARGUMENT; CLV_E_MEMORY. Threads: any.
 */
CLV_API clv_status clv_paco_mend(float *cube, size_t frames, size_t height, size_t width,
                                 double fwhm_px, size_t *mended);

/** What clv_psf_normalize does. */
typedef enum clv_psf_norm {
    CLV_PSF_NORM_NONE = 0, /**< leaves the PSF as it is: fluxes are in its own unit */
    CLV_PSF_NORM_PEAK,     /**< makes the highest pixel 1 */
    CLV_PSF_NORM_SUM,      /**< makes the sum of all pixels 1 */
    CLV_PSF_NORM_APERTURE, /**< makes the flux in a disc of diameter 1 FWHM 1 */
} clv_psf_norm;

/** Measures the FWHM of a PSF in pixels, by fitting a round Gaussian with a background. Returns CLV_E_FORMAT if the fit
 *  finds no peak near the centre. */
CLV_API clv_status clv_psf_fwhm(const float *psf, size_t size, double *fwhm_px);

/** Shifts the PSF so that the Gaussian of clv_psf_fwhm has its centre on pixel size / 2. The shift is a Fourier shift
 *  with zeros outside the edges; a shift of less than 0.02 pixels is not made. `dx` and `dy` receive the centre's
 *  position before the shift, relative to pixel size / 2. */
CLV_API clv_status clv_psf_recentre(float *psf, size_t size, double *dx, double *dy);

/** Divides the PSF by its peak, its sum or its aperture flux; `fwhm_px` is used only for APERTURE. Returns CLV_E_FORMAT
 *  if the divisor is not positive. */
CLV_API clv_status clv_psf_normalize(float *psf, size_t size, clv_psf_norm norm, double fwhm_px);

CLV_END_DECLS

#endif

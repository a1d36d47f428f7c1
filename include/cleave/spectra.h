/* SPDX-License-Identifier: Apache-2.0 */
/* Stellar spectra: velocity, rotation and parameters of stars by a library of templates. */
#ifndef CLEAVE_SPECTRA_H
#define CLEAVE_SPECTRA_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

enum {
    CLV_SPECTRA_MAX_LAYERS = 8,   /**< of a network */
    CLV_SPECTRA_MAX_SPECTRA = 36, /**< of one star */
    CLV_SPECTRA_MAX_TERMS = 15,   /**< of the continuum */
    CLV_SPECTRA_PARAMETERS = 4,   /**< teff, logg, feh, alpha */
    CLV_SPECTRA_UNKNOWNS = 6,     /**< velocity and vsini before them */
};

/**
 * The templates of one arm, on a grid of `points` wavelengths, equidistant in ln lambda from `first`
 * to `last`: a network that makes exp(net(q)), or a regular grid of parameters (`nodes`).
 * q = (log10 teff, logg, feh, alpha); a network's inputs are (q - mean) / std, with SiLU after every
 * layer but the last. All pointers are borrowed.
 *
 * Frozen.
 */
typedef struct clv_spectra_arm {
    const char *name;                            /**< "desi_b" */
    size_t points;                               /**< of a template, at least 64 */
    double first, last;                          /**< Angstrom */
    size_t layers;                               /**< 1 to CLV_SPECTRA_MAX_LAYERS */
    size_t width[CLV_SPECTRA_MAX_LAYERS + 1];    /**< 4, ..., points */
    const float *weight[CLV_SPECTRA_MAX_LAYERS]; /**< [width[i + 1],width[i]] */
    const float *bias[CLV_SPECTRA_MAX_LAYERS];   /**< [width[i + 1]] */
    double mean[CLV_SPECTRA_PARAMETERS], std[CLV_SPECTRA_PARAMETERS];
    size_t hull_count;  /**< training points that bound the parameters; 0: no bounds known */
    const double *hull; /**< [hull_count,4] network inputs (q - mean) / std of training points */

    /* for start values: templates divided by their continuum, on an own grid in ln lambda */
    const float *ccf;          /**< [ccf_count,ccf_points] */
    size_t ccf_points;         /**< a power of two */
    double ccf_log0, ccf_log1; /**< ln of the first and of the last point */
    double ccf_spline_kms;     /**< distance of the continuum's nodes */

    double sigma; /**< Angstrom, of the Gaussian in these templates; 0: options.library_sigma */

    /**
     * A regular grid in place of the network (layers, hull and std are not looked at): ln flux at
     * nodes of log10 teff, logg, feh and alpha, linear in each of them between nodes. Fits stay
     * within the axes. Where a corner of a cell is missing the nearest node stands for all of it,
     * and its distance (in units of the axes' lengths) times ten times the number of pixels is added
     * to what a fit minimises, so that it turns back; neg2logl never includes that.
     */
    size_t nodes[CLV_SPECTRA_PARAMETERS];       /**< of each axis, at least 2; 0: a network */
    const double *axis[CLV_SPECTRA_PARAMETERS]; /**< [nodes[k]], rising */
    const int32_t *grid; /**< [nodes[0],nodes[1],nodes[2],nodes[3]] a node's row; negative: none */
    size_t grid_spectra;
    const float *grid_log_flux; /**< [grid_spectra,points] */
} clv_spectra_arm;

/** Templates of one instrument. Borrowed; nothing is written. */
typedef struct clv_spectra_library {
    size_t size; /**< sizeof(clv_spectra_library) */
    size_t arm_count;
    const clv_spectra_arm *arms;
    size_t ccf_count;             /**< of start templates, the same in all arms */
    const double *ccf_parameters; /**< [ccf_count,4] teff, logg, feh, alpha */
} clv_spectra_library;

/** One spectrum of a star. Borrowed. Frozen. */
typedef struct clv_spectrum {
    size_t arm;               /**< of the library */
    size_t pixels;            /**< at least 16; 0: the star has none here */
    const double *wavelength; /**< [pixels] Angstrom, rising; the same pointer for all stars whose
                                    spectra share the grid (they are then handled together) */
    const float *flux, *ivar; /**< [pixels], in units of `unit` and 1 / `unit`^2 */
    const int32_t *mask;      /**< [pixels], above 0: bad; NULL: none */
    const float *resolution;  /**< [diagonals,pixels] as DESI has it; NULL: not used */
    size_t diagonals;
    double unit; /**< what flux is to be multiplied by; 0: 1. For fluxes whose inverse squares float
                      cannot hold (1e-25 has 1e+50). The fit does not depend on it, except that
                      neg2logl is that of flux * unit; models are in the numbers of flux. */
    bool
        resolution_is_final; /**< resolution acts on the library's templates as they are; false: their
                                   own Gaussian is taken out of it first, as DESI's matrices need it */
} clv_spectrum;

/**
 * What is known of a star beforehand, for velocity, vsini, teff, logg, feh and alpha. A prior adds
 * ((x - value) / sigma)^2 to what is minimised, never to neg2logl; errors and covariance include it.
 * What is fixed stays at its value, and has errors of 0. All-zero: nothing is known. Frozen.
 */
typedef struct clv_star_prior {
    double value[CLV_SPECTRA_UNKNOWNS];
    double sigma[CLV_SPECTRA_UNKNOWNS]; /**< of a Gaussian around value; 0: no prior */
    bool fixed[CLV_SPECTRA_UNKNOWNS];   /**< sigma is not looked at then */
} clv_star_prior;

/** Every star has the same number of spectra, with the same wavelengths at the same place. */
typedef struct clv_spectra_stars {
    size_t size; /**< sizeof(clv_spectra_stars) */
    size_t count, spectra;
    const clv_spectrum *items;    /**< [count,spectra] */
    const clv_star_prior *priors; /**< [count]; NULL: nothing is known of any; fits only */
} clv_spectra_stars;

/** All-zero means default. */
typedef struct clv_specfit_options {
    size_t size;              /**< sizeof(clv_specfit_options) */
    unsigned terms;           /**< of the continuum, 1 to 15; 0: 10 */
    unsigned starts;          /**< of each star, 1 to 8; 0: 1 */
    double max_velocity_kms;  /**< 0: 1000 */
    double velocity_step_kms; /**< of the start's grid; 0: 5 */
    double max_vsini_kms;     /**< 0: 500 */
    double library_sigma;   /**< Angstrom, of the Gaussian that the library is convolved with; only
                                 with resolution matrices; 0: 0.5 */
    bool models;            /**< results point to best fits */
    clv_progress *progress; /**< NULL: none; a non-zero return cancels */
    void *progress_user;
    bool min_velocity_given;
    double min_velocity_kms; /**< not given: -max_velocity_kms */
    const double *ignored;   /**< [ignored_count,2] ranges of wavelengths in Angstrom, bounds
                                  excluded, that are left out of every spectrum; NULL: none */
    size_t ignored_count;    /**< at most 16 */
    double
        reject_sigma; /**< A pixel that is further from the best fit than this many times its error
                              and the local scatter is left out, and the star is fitted again, at
                              most three times. At least 3; 0: 6; INFINITY: none is left out. */
} clv_specfit_options;

enum {
    CLV_SPECFIT_LOW_CONTRAST = 1,   /**< chi2 less than 50 below that of a continuum alone */
    CLV_SPECFIT_VELOCITY_EDGE = 2,  /**< within 5 km/s of a limit */
    CLV_SPECFIT_VELOCITY_ERROR = 4, /**< above 100 km/s */
    CLV_SPECFIT_PARAMETER_EDGE = 8, /**< at a limit of the library */
    CLV_SPECFIT_FAST_ROTATION = 16, /**< vsini above 100 km/s */
    CLV_SPECFIT_BAD_SPECTRUM = 32,  /**< nothing to fit */
    CLV_SPECFIT_BAD_HESSIAN = 64,   /**< errors are not to be trusted */
    CLV_SPECFIT_BAD_FIT = 128,      /**< chi-square per degree of freedom above 3 */
    CLV_SPECFIT_WIDE_ERROR = 256,   /**< a parameter's error is as large as the spread of all values
                                         that the library has, its range / sqrt(12) */
};

/** The best fit of a star; velocities in km/s, teff in K, the others in dex. Frozen. */
typedef struct clv_specfit_result {
    double velocity, vsini, teff, logg, feh, alpha; /**< NaN when there was nothing to fit */
    double velocity_error; /**< the other parameters fixed: spread of exp(-L2 / 2) along velocity */
    double skewness, kurtosis; /**< of the same; NaN from clv_specfit_at */
    double teff_error, logg_error, feh_error, alpha_error; /**< velocity and vsini fixed */
    double covariance[21]; /**< of all six, lower triangle, order as above */
    double start_velocity; /**< before the fit */
    double neg2logl;       /**< sum over spectra of log det M + 2 sum ln s + |D - a'S|^2 */
    double chisq[CLV_SPECTRA_MAX_SPECTRA];           /**< unmasked pixels; 0: no spectrum */
    double chisq_continuum[CLV_SPECTRA_MAX_SPECTRA]; /**< of the continuum without a template */
    size_t pixels[CLV_SPECTRA_MAX_SPECTRA];          /**< unmasked, without the rejected ones */
    size_t rejected[CLV_SPECTRA_MAX_SPECTRA];        /**< see options.reject_sigma */
    double signal_to_noise[CLV_SPECTRA_MAX_SPECTRA]; /**< median of flux / sigma, unmasked */
    float *model[CLV_SPECTRA_MAX_SPECTRA]; /**< [pixels] best fit; NULL without options.models */
    unsigned starts_agreed;                /**< starts that ended within 0.5 of the best value */
    unsigned rounds;                       /**< of the optimiser, of the best start */
    unsigned warnings;                     /**< CLV_SPECFIT_... */
} clv_specfit_result;

/**
 * Fits every star: the minimum over velocity, vsini, teff, logg, feh and alpha of
 *
 *   L2 = sum over spectra of  log det M + 2 sum_k ln s_k + | D - a' S |^2,
 *   S_jk = P_j(lambda_k) t_k / s_k,  D_k = d_k / s_k,  M = S S',  a = M^-1 S D,
 *
 * with t the template, rotated, shifted and seen through the resolution matrix, and P a basis of
 * `terms` functions for the continuum. Start by cross-correlation with the library's start
 * templates, then Levenberg and Marquardt on the projected residual.
 *
 * @param context  the devices to use; the results do not depend on their number.
 * @param options  NULL means all defaults.
 * @param results  out, [stars->count]; free what they point to with clv_specfit_results_clear.
 * @param report   may be NULL; the run is added.
 * @return CLV_OK, also when some stars could not be fitted: they are flagged; CLV_E_ARGUMENT (NULL,
 *         an option outside its range, no start templates); CLV_E_SHAPE (grids that differ, a
 *         library that does not cover a spectrum at the velocity limits: the message has both
 *         ranges); CLV_E_CANCELLED; CLV_E_MEMORY; CLV_E_DEVICE... of the job. After an error the
 *         results are zero.
 *
 * Accuracy: L2 at the result within 0.02 + 1e-6 |L2| of float64 (0.1 without doubles, to S/N 100).
 * On one kind of device the same bits for every batch and number of devices.
 * Threads: any; one job at a time per context.
 * Source: rvspecfit (Koposov 2019); the optimiser is our own.
 */
CLV_API clv_status clv_specfit(clv_context *context, const clv_spectra_library *library,
                               const clv_spectra_stars *stars, const clv_specfit_options *options,
                               clv_specfit_result *results, clv_report *report);

/**
 * The same numbers at given points: no fit, only what L2 and its surroundings are there.
 *
 * @param points   [stars->count,count,6] velocity, vsini, teff, logg, feh, alpha.
 * @param count    points of each star, 1 to 1024.
 * @param results  out, [stars->count,count].
 * Everything else as clv_specfit.
 */
CLV_API clv_status clv_specfit_at(clv_context *context, const clv_spectra_library *library,
                                  const clv_spectra_stars *stars, const double *points,
                                  size_t count, const clv_specfit_options *options,
                                  clv_specfit_result *results, clv_report *report);

/**
 * L2 of every star along velocity, its other parameters fixed: the building block of searches.
 *
 * @param points   [stars->count,6] as for clv_specfit_at; the velocity in it does not matter.
 * @param velocity_kms, step_kms, count  the grid: velocity_kms + k * step_kms, 1 to 16384 of them.
 *                 Beyond options.max_velocity_kms the template may end: values there mean nothing.
 * @param values   out, [stars->count,count] L2, with 2 sum ln s; NaN for stars without a spectrum.
 * Everything else as clv_specfit; accuracy as L2 there. values is undefined after an error.
 */
CLV_API clv_status clv_specfit_scan(clv_context *context, const clv_spectra_library *library,
                                    const clv_spectra_stars *stars, const double *points,
                                    double velocity_kms, double step_kms, size_t count,
                                    const clv_specfit_options *options, double *values,
                                    clv_report *report);

/** Frees the models of `count` results and zeroes them. */
CLV_API void clv_specfit_results_clear(clv_specfit_result *results, size_t count);

CLV_END_DECLS

#endif

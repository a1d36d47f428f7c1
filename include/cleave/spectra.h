/* SPDX-License-Identifier: Apache-2.0 */
/* Fits stellar spectra: velocity, rotation and parameters of stars, with a library of templates. */
#ifndef CLEAVE_SPECTRA_H
#define CLEAVE_SPECTRA_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

enum {
    CLV_SPECTRA_MAX_LAYERS = 8,   /**< largest number of layers of a network */
    CLV_SPECTRA_MAX_SPECTRA = 36, /**< largest number of spectra of one star */
    CLV_SPECTRA_MAX_TERMS = 15,   /**< largest number of terms of the continuum */
    CLV_SPECTRA_PARAMETERS = 4,   /**< teff, logg, feh, alpha */
    CLV_SPECTRA_UNKNOWNS = 6,     /**< velocity, vsini, teff, logg, feh, alpha */
};

/**
 * The templates of one arm of a spectrograph, on a grid of `points` wavelengths, equidistant in ln lambda from `first`
 * to `last`. They come from a network, whose templates are exp(net(q)), or from a regular grid of parameters (`nodes`).
 * q = (log10 teff, logg, feh, alpha); a network's inputs are (q - mean) / std, and SiLU follows every layer but the
 * last. All pointers are borrowed.
 *
 * Frozen.
 */
typedef struct clv_spectra_arm {
    const char *name;   /**< name of the arm, such as "desi_b" */
    size_t points;      /**< points of a template, at least 64 */
    double first, last; /**< Angstrom */
    size_t layers;      /**< 1 to CLV_SPECTRA_MAX_LAYERS */
    /** Widths of the layers: the first is 4, the last `points`. */
    size_t width[CLV_SPECTRA_MAX_LAYERS + 1];
    const float *weight[CLV_SPECTRA_MAX_LAYERS]; /**< [width[i + 1],width[i]] */
    const float *bias[CLV_SPECTRA_MAX_LAYERS];   /**< [width[i + 1]] */
    double mean[CLV_SPECTRA_PARAMETERS], std[CLV_SPECTRA_PARAMETERS];
    size_t hull_count;  /**< number of training points that bound the parameters; 0: no bounds */
    const double *hull; /**< [hull_count,4] network inputs (q - mean) / std of these points */

    /* for start values: templates divided by their continuum, on a separate grid in ln lambda */
    const float *ccf;          /**< [ccf_count,ccf_points] the start templates */
    size_t ccf_points;         /**< a power of two */
    double ccf_log0, ccf_log1; /**< ln of the wavelengths of its first and last point */
    double ccf_spline_kms;     /**< distance between the nodes of the continuum's spline, km/s */

    /** Standard deviation in Angstrom of the Gaussian with which these templates were smoothed; 0:
     *  options.library_sigma. */
    double sigma;

    /**
     * A regular grid in place of the network (layers, hull and std are then ignored): ln flux at nodes of log10 teff,
     * logg, feh and alpha, interpolated linearly in each of them. Fits stay within the axes. If a corner of a cell is
     * missing, the nearest node stands for the whole cell. To make a fit turn back there, the distance to that node (in
     * units of the axes' lengths), times ten times the number of pixels, is added to what the fit minimises; neg2logl
     * never includes this.
     */
    size_t nodes[CLV_SPECTRA_PARAMETERS]; /**< nodes of each axis, at least 2; 0: use the network */
    const double *axis[CLV_SPECTRA_PARAMETERS]; /**< [nodes[k]], rising */
    const int32_t *grid; /**< [nodes[0],nodes[1],nodes[2],nodes[3]] row of a node; negative: none */
    size_t grid_spectra;
    const float *grid_log_flux; /**< [grid_spectra,points] ln flux */
} clv_spectra_arm;

/** Templates of one instrument. Borrowed; nothing is written. */
typedef struct clv_spectra_library {
    size_t size; /**< sizeof(clv_spectra_library) */
    size_t arm_count;
    const clv_spectra_arm *arms;
    size_t ccf_count;             /**< number of start templates, the same in all arms */
    const double *ccf_parameters; /**< [ccf_count,4] teff, logg, feh, alpha */
} clv_spectra_library;

/** One spectrum of a star. Borrowed. Frozen. */
typedef struct clv_spectrum {
    size_t arm;               /**< index of its arm in the library */
    size_t pixels;            /**< at least 16; 0: the star has no spectrum here */
    const double *wavelength; /**< [pixels] Angstrom, rising; the same for all stars, preferably by
                                    the same pointer: see clv_spectra_stars */
    const float *flux, *ivar; /**< [pixels], in units of `unit` and 1 / `unit`^2 */
    const int32_t *mask;      /**< [pixels], above 0: bad; NULL: none */
    const float *resolution;  /**< [diagonals,pixels] as DESI has it; NULL: not used */
    size_t diagonals;
    /** The unit of flux, from 1e-200 to 1e200; 0: 1. Use a unit if the inverse squares of the fluxes do not fit into
     *  float: fluxes of 1e-25 would have an ivar of 1e+50. The fit does not depend on the unit, except that neg2logl is
     *  computed for flux * unit. Models have the scale of flux. */
    double unit;
    /** true: apply resolution to the library's templates as they are. false: first remove the templates' own Gaussian
     *  from the resolution, as DESI's matrices need. */
    bool resolution_is_final;
} clv_spectrum;

/**
 * What you know about a star before the fit, for velocity, vsini, teff, logg, feh and alpha. A prior adds
 * ((x - value) / sigma)^2 to what the fit minimises, never to neg2logl; errors and covariance include it. A fixed
 * parameter stays at its value and has errors of 0. All fields zero: nothing is known. Frozen.
 */
typedef struct clv_star_prior {
    double value[CLV_SPECTRA_UNKNOWNS];
    /** Standard deviation of a Gaussian around value; 0: no prior. */
    double sigma[CLV_SPECTRA_UNKNOWNS];
    bool fixed[CLV_SPECTRA_UNKNOWNS]; /**< keep the parameter at value; sigma is then ignored */
} clv_star_prior;

/** The spectra of stars. Every star has the same number of spectra, and spectrum i of every star has the same arm and
 *  the same wavelengths (or no pixels). */
typedef struct clv_spectra_stars {
    size_t size; /**< sizeof(clv_spectra_stars) */
    size_t count, spectra;
    const clv_spectrum *items;    /**< [count,spectra] */
    const clv_star_prior *priors; /**< [count]; NULL: nothing is known; for clv_specfit only */
} clv_spectra_stars;

/** Options of clv_specfit. Zero fields mean the default. */
typedef struct clv_specfit_options {
    size_t size;              /**< sizeof(clv_specfit_options) */
    unsigned terms;           /**< functions of the continuum, 1 to 15; 0: 10 */
    unsigned starts;          /**< start values to fit from for each star, 1 to 8; 0: 1 */
    double max_velocity_kms;  /**< 0: 1000 */
    double velocity_step_kms; /**< step of the search for start values; 0: 5 */
    double max_vsini_kms;     /**< 0: 500; less if 110 points of a template hold less */
    double library_sigma;   /**< standard deviation in Angstrom of the library's own Gaussian; used
                                 only with resolution matrices; 0: 0.5 */
    bool models;            /**< results include the best-fit models */
    clv_progress *progress; /**< NULL: none; a non-zero return cancels */
    void *progress_user;
    bool min_velocity_given;
    double min_velocity_kms; /**< not given: -max_velocity_kms */
    /** [ignored_count,2] ranges of wavelengths in Angstrom that are left out of every spectrum; the bounds themselves
     *  stay in. NULL: none. */
    const double *ignored;
    size_t ignored_count; /**< at most 16 */
    /** Leaves out pixels that are further from the best fit than this many times their error and the local scatter, and
     *  fits the star again, at most three times. At least 3; 0: 6; INFINITY: leave no pixel out. */
    double reject_sigma;
} clv_specfit_options;

enum {
    CLV_SPECFIT_LOW_CONTRAST = 1,   /**< chi2 is less than 50 below chi2 of a continuum alone */
    CLV_SPECFIT_VELOCITY_EDGE = 2,  /**< the velocity is within 5 km/s of a limit */
    CLV_SPECFIT_VELOCITY_ERROR = 4, /**< the velocity's error is above 100 km/s */
    CLV_SPECFIT_PARAMETER_EDGE =
        8, /**< a parameter is at a limit of the library or of a grid's nodes */
    CLV_SPECFIT_FAST_ROTATION = 16, /**< vsini is above 100 km/s */
    CLV_SPECFIT_BAD_SPECTRUM = 32,  /**< there is nothing to fit */
    CLV_SPECFIT_BAD_HESSIAN = 64,   /**< do not trust the errors; the fit may not have converged */
    CLV_SPECFIT_BAD_FIT = 128,      /**< chi-square per degree of freedom is above 3 */
    CLV_SPECFIT_WIDE_ERROR = 256,   /**< a parameter's error is as large as the spread of all values
                                         in the library: its range / sqrt(12) */
};

/** The best fit of a star; velocities in km/s, teff in K, logg, feh and alpha in dex. Frozen. */
typedef struct clv_specfit_result {
    double velocity, vsini, teff, logg, feh, alpha; /**< NaN when there was nothing to fit */
    double velocity_error;     /**< spread of exp(-L2 / 2) along velocity, other parameters fixed */
    double skewness, kurtosis; /**< of exp(-L2 / 2) along velocity; NaN from clv_specfit_at */
    double teff_error, logg_error, feh_error, alpha_error; /**< with velocity and vsini fixed */
    /** Lower triangle of the covariance of all six parameters, in the order above. */
    double covariance[21];
    double start_velocity; /**< where the fit started */
    double neg2logl;       /**< sum over spectra of log det M + 2 sum ln s + |D - a'S|^2 */
    double chisq[CLV_SPECTRA_MAX_SPECTRA]; /**< chi-square of the unmasked pixels; 0: no spectrum */
    double chisq_continuum[CLV_SPECTRA_MAX_SPECTRA]; /**< chi-square without a template */
    size_t pixels[CLV_SPECTRA_MAX_SPECTRA];   /**< pixels fitted: neither masked nor rejected */
    size_t rejected[CLV_SPECTRA_MAX_SPECTRA]; /**< outliers left out: options.reject_sigma */
    double signal_to_noise[CLV_SPECTRA_MAX_SPECTRA]; /**< median flux / sigma of unmasked pixels */
    float *model[CLV_SPECTRA_MAX_SPECTRA]; /**< [pixels] best fit; NULL without options.models */
    /** Number of starts and further points that ended within 0.5 of the best value. */
    unsigned starts_agreed;
    unsigned rounds;   /**< rounds of the optimiser from the best start */
    unsigned warnings; /**< CLV_SPECFIT_... */
} clv_specfit_result;

/**
 * Fits every star: finds the minimum over velocity, vsini, teff, logg, feh and alpha of
 *
 *   L2 = sum over spectra of  log det M + 2 sum_k ln s_k + | D - a' S |^2,
 *   S_jk = P_j(lambda_k) t_k / s_k,  D_k = d_k / s_k,  M = S S',  a = M^-1 S D,
 *
 * where t is the template (rotated, shifted and convolved by the resolution matrix) and P a basis of `terms` functions
 * for the continuum. Start values come from cross-correlation with the library's start templates; the fit then uses
 * the method of Levenberg and Marquardt on the projected residual.
 *
 * If a lower minimum may lie elsewhere, the star is fitted from further points as well, in up to three rounds of at
 * most eight points, and the lowest minimum is kept. The further points are:
 * - the lowest minima along velocity of seven templates, each without rotation and with 200 km/s, if the result has
 *   CLV_SPECFIT_LOW_CONTRAST or CLV_SPECFIT_VELOCITY_EDGE, or if it has CLV_SPECFIT_FAST_ROTATION and the template
 *   lowers chi2 by less than 1000;
 * - both ends of the range of the least certain parameter, and of others whose error is as large as the spread of all
 *   values in the library, if the result has CLV_SPECFIT_WIDE_ERROR or CLV_SPECFIT_PARAMETER_EDGE;
 * - up to six values of v sin i, if the template lowers chi2 by less than 1000;
 * - the other minima of the cross-correlation whose chi2 is within 30 of the lowest.
 *
 * @param context  the devices to use; the results do not depend on their number.
 * @param options  NULL means all defaults.
 * @param results  out, [stars->count]; free what they point to with clv_specfit_results_clear.
 * @param report   may be NULL; the run is added.
 * @return CLV_OK, also if some stars could not be fitted (see `warnings` of their results); CLV_E_ARGUMENT (NULL, an
 *         option outside its range, no start templates); CLV_E_SHAPE (grids that differ, or a library that does not
 *         cover a spectrum at the velocity limits; the message has both ranges); CLV_E_CANCELLED; CLV_E_MEMORY;
 *         CLV_E_DEVICE and other errors of the job. After an error the results are zero.
 *
 * Accuracy: L2 at the result is within 0.02 + 1e-6 |L2| of float64 (0.1 on devices without doubles, up to S/N 100). One
 * kind of device gives the same bits for every batch and number of devices.
 * Threads: any; one job at a time per context.
 * Source: rvspecfit (Koposov 2019); the optimiser is our own.
 */
CLV_API clv_status clv_specfit(clv_context *context, const clv_spectra_library *library,
                               const clv_spectra_stars *stars, const clv_specfit_options *options,
                               clv_specfit_result *results, clv_report *report);

/**
 * Computes the results of clv_specfit at points that you give: evaluates L2 and its derivatives there, without a fit.
 *
 * @param points   [stars->count,count,6] velocity, vsini, teff, logg, feh, alpha.
 * @param count    points per star, 1 to 1024.
 * @param results  out, [stars->count,count].
 * Everything else is as for clv_specfit.
 */
CLV_API clv_status clv_specfit_at(clv_context *context, const clv_spectra_library *library,
                                  const clv_spectra_stars *stars, const double *points,
                                  size_t count, const clv_specfit_options *options,
                                  clv_specfit_result *results, clv_report *report);

/**
 * Computes L2 of every star for many velocities, with its other parameters fixed, as a building block for searches.
 *
 * @param points   [stars->count,6] as for clv_specfit_at; their velocities are ignored.
 * @param velocity_kms, step_kms, count  the grid: velocity_kms + k * step_kms, 1 to 16384 of them, which differ as
 *                 float32 numbers.
 *                 Beyond options.max_velocity_kms the template may end, so values there are meaningless.
 * @param values   out, [stars->count,count] L2, including the term 2 sum ln s; NaN for stars without a spectrum.
 * Everything else is as for clv_specfit, including the accuracy of L2. After an error `values` is undefined.
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

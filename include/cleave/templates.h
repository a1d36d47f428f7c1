/* SPDX-License-Identifier: Apache-2.0 */
/* Makes templates of stellar spectra from high-resolution models: smooths and resamples them to the grids of fits. */
#ifndef CLEAVE_TEMPLATES_H
#define CLEAVE_TEMPLATES_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

/** The wavelengths and the resolution of the model spectra. Borrowed only while the maker is created. */
typedef struct clv_template_source {
    size_t size;              /**< sizeof(clv_template_source) */
    size_t points;            /**< points of each spectrum, at least 16 */
    const double *wavelength; /**< [points] Angstrom in vacuum, rising */
    double resolving_power;   /**< wavelength / FWHM of these spectra; 0: infinitely sharp */
} clv_template_source;

/** The range, the step and the resolution of an arm's templates. Wavelengths are in Angstrom, in vacuum. */
typedef struct clv_template_arm {
    size_t size;        /**< sizeof(clv_template_arm) */
    double first, last; /**< range of the spectra that will be fitted */
    double step;        /**< step of the templates' grid, in the middle between first and last */
    /** Standard deviation of the Gaussian that is the templates' resolution; 0: given by resolving_power. */
    double sigma;
    double resolving_power; /**< wavelength / FWHM of the Gaussian; 0: sigma is given */
    double margin_kms;      /**< how far templates reach beyond first and last; 0: 1000 */
    /** true: keep the slope of the spectra. false: divide them by a straight line in ln flux through the medians of
     *  both halves. */
    bool keep_slope;
} clv_template_arm;

/** The grids of an arm's templates, for the fields of the same names in clv_spectra_arm. Frozen. */
typedef struct clv_template_grid {
    size_t points;      /**< points of a template, equidistant in ln lambda */
    double first, last; /**< Angstrom */
    double sigma;       /**< sigma of the Gaussian in the middle of the grid, Angstrom */
    size_t ccf_points;  /**< points of a start template: a power of two */
    double ccf_log0, ccf_log1, ccf_spline_kms;
} clv_template_grid;

typedef struct clv_template_maker clv_template_maker;

/**
 * Creates a maker, which computes every point n of the template's grid as a weighted sum over the source's points i.
 * The weights are
 *
 *   w_ni = 1 / (l2 - l1) * integral over x of hat_i(x) * (Phi((l2 - x) / s) - Phi((l1 - x) / s)),
 *
 * which means: interpolate the source linearly between its points (hat_i), convolve it with a Gaussian of
 * s^2 = (arm's)^2 - (source's)^2, and average it over the interval l1 to l2 of point n. All of this is done with fluxes
 * in photons (flux times wavelength).
 *
 * @param maker  out; free with clv_template_maker_free.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a number outside its range, a source of lower resolution than the arm);
 *         CLV_E_SHAPE (wavelengths that do not rise, or do not cover the arm; the message has both ranges);
 *         CLV_E_MEMORY. *maker is NULL after a failure.
 * Source: the grid and the weights are those of rvspecfit's make_interpol (Koposov 2019).
 */
CLV_API clv_status clv_template_maker_create(const clv_template_source *source,
                                             const clv_template_arm *arm,
                                             clv_template_maker **maker);
CLV_API void clv_template_maker_free(clv_template_maker *maker); /**< accepts NULL */
CLV_API clv_template_grid clv_template_maker_grid(const clv_template_maker *maker);

/**
 * Makes templates of `count` spectra: smooths and resamples them, divides them by their median and slope, and takes the
 * logarithm.
 *
 * @param flux      [count,source.points] flux per wavelength, in any unit that fits into float; its scale is ignored.
 * @param log_flux  out, [count,grid.points].
 * @param report    may be NULL; the run is added to it.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_FORMAT (a flux that is not a number, or not above 0 after smoothing; the
 *         message has spectrum and wavelength); and what clv_items_run returns. After an error log_flux is undefined.
 *
 * Accuracy: ln flux is within 5e-6 (absolute) of float64. Any number of devices of one kind gives the same bits.
 * Threads: as for clv_job_run.
 */
CLV_API clv_status clv_template_maker_run(const clv_template_maker *maker, clv_context *context,
                                          const float *flux, size_t count, float *log_flux,
                                          clv_report *report);

/**
 * Makes start templates on the grid of the cross-correlation: exp(log_flux) divided by its continuum, which is a robust
 * quadratic spline in ln flux. The host computes them.
 *
 * @param log_flux  [count,grid.points] as clv_template_maker_run gives it.
 * @param ccf       out, [count,grid.ccf_points].
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_MEMORY.
 * Threads: any; several may use one maker.
 */
CLV_API clv_status clv_template_maker_starts(const clv_template_maker *maker, const float *log_flux,
                                             size_t count, float *ccf);

CLV_END_DECLS

#endif

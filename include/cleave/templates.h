/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of stellar spectra from high-resolution models: smoothed, resampled, on the grids that fits use. */
#ifndef CLEAVE_TEMPLATES_H
#define CLEAVE_TEMPLATES_H

#include <cleave/job.h>

CLV_BEGIN_DECLS

/** Where the spectra of models are known. Borrowed while the maker is created. */
typedef struct clv_template_source {
    size_t size;              /**< sizeof(clv_template_source) */
    size_t points;            /**< of each spectrum, at least 16 */
    const double *wavelength; /**< [points] Angstrom in vacuum, rising */
    double resolving_power;   /**< wavelength / FWHM of these spectra; 0: infinitely sharp */
} clv_template_source;

/** What an arm of a library needs. Angstrom, in vacuum. */
typedef struct clv_template_arm {
    size_t size;        /**< sizeof(clv_template_arm) */
    double first, last; /**< of the spectra that will be fitted */
    double step;        /**< of the templates, in the middle between first and last */
    /** Standard deviation of the Gaussian that templates are as sharp as; 0: resolving_power tells. */
    double sigma;
    double resolving_power; /**< wavelength / FWHM of that Gaussian; 0: sigma tells */
    double margin_kms;      /**< how far templates reach beyond first and last; 0: 1000 */
    /** false: a straight line in ln flux through the medians of both halves is divided out. */
    bool keep_slope;
} clv_template_arm;

/** The grids of an arm, as clv_spectra_arm has them. Frozen. */
typedef struct clv_template_grid {
    size_t points;      /**< of a template, equidistant in ln lambda */
    double first, last; /**< Angstrom */
    double sigma;       /**< Angstrom, of the Gaussian in the middle */
    size_t ccf_points;  /**< of a start template: a power of two */
    double ccf_log0, ccf_log1, ccf_spline_kms;
} clv_template_grid;

typedef struct clv_template_maker clv_template_maker;

/**
 * Prepares the making of templates: for every point n of the template's grid the weights w_ni with which the source's
 * points i add up to it,
 *
 *   w_ni = 1 / (l2 - l1) * integral over x of hat_i(x) * (Phi((l2 - x) / s) - Phi((l1 - x) / s)),
 *
 * that is: the source, linear between its points (hat_i), convolved with a Gaussian of s^2 = (arm's)^2 - (source's)^2
 * and averaged over the point's own interval l1 to l2. Fluxes are taken as photons meanwhile (times wavelength).
 *
 * @param maker  out; free with clv_template_maker_free.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a number outside its range, a source that is less sharp than the arm);
 *         CLV_E_SHAPE (wavelengths that do not rise, or do not cover the arm: the message has both ranges);
 *         CLV_E_MEMORY. *maker is NULL after a failure.
 * Source: rvspecfit's make_interpol (Koposov 2019), whose grid and weights these are.
 */
CLV_API clv_status clv_template_maker_create(const clv_template_source *source,
                                             const clv_template_arm *arm,
                                             clv_template_maker **maker);
CLV_API void clv_template_maker_free(clv_template_maker *maker); /**< accepts NULL */
CLV_API clv_template_grid clv_template_maker_grid(const clv_template_maker *maker);

/**
 * Templates of `count` spectra: smoothed, resampled, divided by their median and slope; ln of that.
 *
 * @param flux      [count,source.points] per wavelength, in any unit that float holds; scale does not matter.
 * @param log_flux  out, [count,grid.points].
 * @param report    may be NULL; the run is added.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_FORMAT (a flux that is no number, or not above 0 after smoothing: the
 *         message has spectrum and wavelength); and what clv_items_run returns. log_flux is undefined after an error.
 *
 * Accuracy: within 5e-6 of float64 (ln flux, absolute). The same bits for every number of devices of one kind.
 * Threads: as clv_job_run.
 */
CLV_API clv_status clv_template_maker_run(const clv_template_maker *maker, clv_context *context,
                                          const float *flux, size_t count, float *log_flux,
                                          clv_report *report);

/**
 * Start templates: exp(log_flux) divided by its continuum, a robust quadratic spline in ln flux, on the grid of the
 * cross-correlation. The host does this.
 *
 * @param log_flux  [count,grid.points] as clv_template_maker_run gives it.
 * @param ccf       out, [count,grid.ccf_points].
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_MEMORY.
 * Threads: any, also with one maker.
 */
CLV_API clv_status clv_template_maker_starts(const clv_template_maker *maker, const float *log_flux,
                                             size_t count, float *ccf);

CLV_END_DECLS

#endif

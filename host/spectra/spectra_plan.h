/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the plan of a fit, which is made before the first star (grids, weights and basis in the layout that the
 * kernels read), and the prepared data of a star. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_PLAN_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_PLAN_H

#include "base/thread.h"
#include "cl/spectra/shared.clh"
#include "host/spectra/spectra_grid.h"
#include "host/spectra/spectra_math.h"

enum {
    CLV_SPECTRA_ROUNDS = 240, /* most rounds of a fit; few fits need more than 12 */
    CLV_SPECTRA_MAX_START_LAGS = 2048,
    CLV_SPECTRA_FEW = 48,  /* most templates that form mixtures; as many more for their squares */
    CLV_SPECTRA_SCAN = 32, /* velocities of a scan, up to 6.4 standard errors from the best */
};

/* Stages that a job can repeat for timing. */
enum {
    CLV_SPECTRA_STAGE_NETWORK = 1,
    CLV_SPECTRA_STAGE_SPLINE = 2, /* rotation, spline, its value at the pixels, resolution */
    CLV_SPECTRA_STAGE_JUDGE = 4,
    CLV_SPECTRA_STAGE_SHIFT = 8, /* of a scan; so is STAGE_VALUES */
    CLV_SPECTRA_STAGE_VALUES = 16,
    CLV_SPECTRA_STAGE_START = 32
};

/* The intermediate result that a job returns for tests, with the values of the last arm it worked on. */
typedef enum clv_spectra_watch {
    CLV_WATCH_NOTHING,
    CLV_WATCH_TEMPLATES, /* [stars,starts,pitch,8] */
    CLV_WATCH_SPLINE,
    CLV_WATCH_PIXELS, /* [stars,starts,all_pixels,8] */
    CLV_WATCH_RESOLVED,
    CLV_WATCH_START_CHI
} clv_spectra_watch;

/* The continuum model of the cross-correlation: a quadratic spline with few nodes, three of which determine the value
 * at each pixel. */
typedef struct clv_continuum {
    size_t nodes;
    uint16_t *first; /* [pixels] index of the first of a pixel's three nodes */
    double *weight;  /* [3,pixels] */
    double *edge;    /* [nodes + 1] Angstrom: edges of the bins of the first guess */
} clv_continuum;

/* One of a star's spectra, and the wavelengths that all stars share in it. */
typedef struct clv_spectra_grid {
    /* first: index in the star's pixels; padded to whole segments */
    size_t arm, pixels, first, padded;
    const double *wavelength; /* NULL: no star has this spectrum */
    double dln;               /* step in ln wavelength of the arm's template */
    double *basis;            /* [pixels,terms] */
    double log_scale;         /* the arm's templates are divided by exp(log_scale), a power of 2 */
    clv_continuum continuum;
    size_t *ccf_left;  /* [ccf_points] pixel to the left; SIZE_MAX: none */
    float *ccf_right;  /* [ccf_points] weight of the pixel to the right */
    size_t ccf_fold;   /* points of the start templates that are merged into one */
    size_t ccf_points; /* number of points after merging */
    size_t ccf_reach;  /* lags on either side of lag 0 */
    double ccf_step;   /* km/s per lag */
    size_t curve;      /* offset of the arm's template in the points that a scan keeps */
} clv_spectra_grid;

typedef struct clv_spectra_weights {
    size_t weight[CLV_SPECTRA_MAX_LAYERS], bias[CLV_SPECTRA_MAX_LAYERS],
        pitch[CLV_SPECTRA_MAX_LAYERS];
    size_t scale; /* offset of the inputs' mean and 1 / std; for a grid: of the grid's table */
    size_t grid;  /* offset into the spectra of all grids */
    size_t ccf;   /* offset into the start templates */
    size_t ccf_pitch;
    size_t few, share; /* offsets into the tables `few` and `shares` */
    /* number of rows of `few`: those for products with q, and all; rows 0: every template is correlated */
    size_t crosses, rows;
} clv_spectra_weights;

/* The bounds of the unknowns, the steps of their finite differences, and their longest moves. */
typedef struct clv_spectra_box {
    double low[6], high[6], step[6], longest[6];
    float numbers[25]; /* the same for kernels; last: penalty per distance from the nearest node */
} clv_spectra_box;

/* The sizes of a star's arrays, of the arms, and of the search for start values. */
typedef struct clv_spectra_sizes {
    size_t all_pixels, diagonals; /* padded pixels per star; diagonals 0: no resolution matrix */
    size_t all_points;            /* points of the templates that a scan keeps */
    size_t longest_template, longest_spectrum;
    size_t widest;             /* width of the widest hidden layer */
    size_t velocities;         /* number of velocities that the start tries */
    size_t ccf_room, ccf_lags; /* points and lags of the largest arm */
    size_t few;                /* most rows that an arm has in the table `few` */
} clv_spectra_sizes;

/* The tables of constants that the kernels read; each worker uploads them to its device once. */
typedef struct clv_spectra_tables {
    float *weights;
    size_t weight_count;
    size_t grid_count; /* floats of all grids' spectra, which stay in the library */
    clv_spectra_weights arm[CLV_SPECTRA_MAX_SPECTRA]; /* by grid */
    float *basis;                                     /* [all_pixels,16] */
    int32_t *whole; /* [all_pixels] a pixel's position in the template, rounded down */
    float *part;
    float *ccf;
    size_t ccf_count;
    float *ccf_points; /* [templates,4] */
    int32_t *few;      /* templates of the mixtures; NULL: no mixtures are used */
    float *shares;     /* [templates,rows] of each arm */
    size_t few_count, share_count;
    int32_t *ranges; /* ranges [spectra,2], owner [segments] */
    /* [velocities,spectra] of the start values' search: the lag next above, 0 without a spectrum; the weight of the
     * lag below */
    float (*places)[2];
    float *products; /* for the scan: P_i P_j, then P_j; blocks of terms + 1 columns */
} clv_spectra_tables;

/* What one run computes in addition to the fit or instead of the fit. */
typedef struct clv_spectra_wish {
    const double *points; /* [stars,starts,6] points to evaluate as they are; NULL: fit */
    const double
        *begin; /* [stars,starts,6] points to fit from; NULL: the cross-correlation's minima */
    bool scans; /* evaluate along velocity after the fit */
    size_t scan_count; /* size of the scan's own grid; 0: scans around the best velocity */
    float scan_from, scan_step;
    double *scan_values; /* [stars,scan_count] */
    size_t threads;      /* host threads that prepare stars; 0: the devices' own */
    int rounds;          /* most rounds of a fit; 0: CLV_SPECTRA_ROUNDS; for tests only */
    unsigned stages;     /* stages to repeat; for benchmarks and tests only */
    size_t repeats;
    clv_spectra_watch watch;
} clv_spectra_wish;

/* The state of a running job; L: the lock guards it. */
typedef struct clv_spectra_run {
    clv_mutex lock;
    struct clv_star_feed *feed;   /* L; created when first needed */
    struct clv_star_facts *facts; /* [stars] L */
    clv_specfit_result *results;
    float *peaks; /* [stars,CLV_SPECTRA_FOUND_BY_STAR] of the cross-correlation; NULL: not wanted */
} clv_spectra_run;

typedef struct clv_spectra_plan {
    /* given */
    clv_spectra_library own_library;
    const clv_spectra_library *library; /* &own_library */
    clv_spectra_stars stars;
    clv_specfit_options options; /* defaults filled in */
    /* computed before the first star */
    clv_spectra_grid grid[CLV_SPECTRA_MAX_SPECTRA];
    clv_spectra_sizes sizes;
    clv_spectra_box box;
    clv_spectra_tables tables;
    /* for one job */
    clv_spectra_wish wish;
    clv_spectra_run run;
} clv_spectra_plan;

/* What is known about a star before the fit. */
typedef struct clv_star_facts {
    /* 2 sum ln s over the fitted pixels, corrected for the scaling's effect on log det M */
    double log_sigmas;
    double scale[CLV_SPECTRA_MAX_SPECTRA]; /* power of two by which flux and sigma are divided */
    double chisq_continuum[CLV_SPECTRA_MAX_SPECTRA], signal_to_noise[CLV_SPECTRA_MAX_SPECTRA];
    size_t good[CLV_SPECTRA_MAX_SPECTRA]; /* unmasked pixels */
    bool present[CLV_SPECTRA_MAX_SPECTRA];
    size_t
        first_arm; /* 1 + the first spectrum of the arm that the first rounds use; 0: they use all */
    bool usable;   /* at least one pixel can be fitted */
    bool resolution_bad;
} clv_star_facts;

/* The prepared data of a star; the arrays run over the padded pixels of all its spectra. */
typedef struct clv_star_data {
    clv_star_facts facts;
    double *flux, *sigma; /* 0 and 1 at padding */
    unsigned char *bad;
    float *pairs;         /* (1/s, d/s) per pixel; 1/s < 0: masked */
    float *resolution;    /* [all_pixels,diagonals]; NULL if not used */
    double *resolution64; /* scratch: [pixels,diagonals] of one spectrum at a time */
    float *ccf;           /* [spectra,2,ccf_room] */
    double *scratch;      /* [4 * all_pixels] */
} clv_star_data;

clv_status clv_spectra_plan_create(const clv_spectra_library *library,
                                   const clv_spectra_stars *stars,
                                   const clv_specfit_options *options, clv_spectra_plan **plan);
void clv_spectra_plan_free(clv_spectra_plan *plan); /* accepts NULL */
/* Returns the first spectrum that uses the same arm of the library; SIZE_MAX if no star has this spectrum. */
size_t clv_spectra_lead(const clv_spectra_plan *plan, size_t spectrum);
int clv_spectra_most_rounds(const clv_spectra_plan *plan);
/* Returns whether the first rounds of fits may use a single arm: if there are several, and none is a regular grid,
 * whose gaps count for all arms. */
bool clv_spectra_has_first_arms(const clv_spectra_plan *plan);
/* Returns the penalty that the fit adds to -2 log L for parameters (teff in K) in a grid cell that lacks a corner; 0
 * for other parameters. */
double clv_spectra_penalty(const clv_spectra_plan *plan, const double parameters[4]);
/* Narrows the limits of the parameters as clv_grid_walls does, for all grids of templates. */
void clv_spectra_walls(const clv_spectra_plan *plan, const double parameters[4], double low[4],
                       double high[4]);

/* Narrows the limits of the parameters to the faces of the cell that contains them, in all grids of templates. */
void clv_spectra_cell(const clv_spectra_plan *plan, const double parameters[4], double low[4],
                      double high[4]);

clv_status clv_star_data_create(const clv_spectra_plan *plan, clv_star_data *data);
void clv_star_data_clear(clv_star_data *data);
/* Prepares a star for the fit: computes its masks and errors, interpolates across masked pixels, and computes the input
 * of the cross-correlation. */
clv_status clv_star_prepare(const clv_spectra_plan *plan, size_t star, clv_star_data *data);

/* Writes a star's priors in the layout that the kernels read: centres, weights, and a bit mask of the fixed
 * unknowns. */
void clv_star_prior_numbers(const clv_spectra_plan *plan, size_t star,
                            float out[CLV_SPECTRA_PRIOR]);

/* Prepares flux, sigma and mask of one spectrum for the fit. Returns false if the spectrum must be left out. */
bool clv_spectrum_prepare(const clv_spectrum *in, const clv_specfit_options *options, bool edges,
                          double *flux, double *sigma, unsigned char *bad, double *scratch);

/* Returns the number of columns in the table `products`, a multiple of terms + 1. */
size_t clv_scan_columns(unsigned terms);

/* ---- spectra_start.c: the input of the cross-correlation ---- */
clv_status clv_continuum_create(const double *wavelength, size_t pixels, double spline_kms,
                                clv_continuum *continuum);
void clv_continuum_clear(clv_continuum *continuum);
/* Fits a robust continuum to `flux` [pixels], whose median is `level`, and writes it to `out` [pixels]. `scratch` is
 * [pixels]. */
void clv_continuum_fit(const clv_continuum *continuum, const double *wavelength, size_t pixels,
                       const double *flux, const double *sigma, double level, double *scratch,
                       double *out);
/* Divides a spectrum by its continuum, and adds q = spectrum * ivar and ivar to the arrays on the arm's grid. `plain`
 * receives the divided spectrum, unless `plain` is NULL. */
void clv_start_arrays(const clv_spectra_plan *plan, size_t spectrum, const double *flux,
                      const double *sigma, const unsigned char *bad, double *scratch, float *q,
                      float *ivar, double *plain);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave templates` share: options, models, grid. */
#ifndef CLEAVE_HOST_CLI_TEMPLATES_TEMPLATES_H
#define CLEAVE_HOST_CLI_TEMPLATES_TEMPLATES_H

#include "host/cli/cli.h"
#include "host/io/tables/spectrum.h"

#include <cleave/spectra.h>
#include <cleave/templates.h>

enum { TEMPLATES_ARMS = 12, TEMPLATES_NAME = 40, TEMPLATES_NODES = 1 << 24 };

typedef struct templates_arm {
    char name[TEMPLATES_NAME];
    clv_template_arm arm;
} templates_arm;

typedef struct templates_args {
    const char *models, *output, *wave, *select;
    cli_list arm_texts;
    double sigma, resolving_power, model_power, margin_kms;
    bool sigma_given, resolving_power_given, model_power_given;
    uint64_t starts;
    int medium; /* medium of the models' wavelengths: unknown, vacuum, air */
    bool keep_slope;
    templates_arm arms[TEMPLATES_ARMS];
    size_t arm_count;
    double low[CLV_SPECTRA_PARAMETERS], high[CLV_SPECTRA_PARAMETERS]; /* of --select */
    cli_common common;
} templates_args;

typedef struct templates_model {
    char *path;
    double parameter[CLV_SPECTRA_PARAMETERS]; /* teff, logg, feh, alpha */
} templates_model;

/* The models that were found, sorted by teff, logg, feh, alpha. Zero-initialise; find, clear. */
typedef struct templates_models {
    bool phoenix; /* a PHOENIX folder: all models share one wavelength file */
    char *wave;   /* path of that file */
    double *wavelength;
    size_t points;
    size_t count, capacity, left_out; /* `left_out`: models that --select excludes */
    templates_model *items;
} templates_models;

/* The nodes of the models' grid. */
typedef struct templates_grid {
    size_t nodes[CLV_SPECTRA_PARAMETERS];
    double *axis[CLV_SPECTRA_PARAMETERS]; /* log10 teff, logg, feh, alpha */
    /* all models have one value on this axis, so a second node is placed 0.001 beside it */
    bool single[CLV_SPECTRA_PARAMETERS];
    size_t all, missing, cells, whole_cells;
    int32_t *row; /* [all] the model of a node, or -1 */
} templates_grid;

extern const char *const templates_parameters[CLV_SPECTRA_PARAMETERS];

/* ---- models.c ---- */
/* Finds the models below the folder or in the table args->models. Returns CLI_OK or the exit code. */
int templates_find(const templates_args *args, templates_models *models);
void templates_clear(templates_models *models);
/* Reads one model: wavelengths in vacuum (*own owns them, unless all models share them) and flux. */
clv_status templates_read(const templates_args *args, const templates_models *models, size_t model,
                          double **own, const double **wavelength, float **flux, size_t *points);

/* ---- grid.c ---- */
int templates_make_grid(const templates_models *models, templates_grid *grid);
void templates_clear_grid(templates_grid *grid);
/* Chooses every `every`-th model along a curve that fills the parameter space; `list` has room for all. Returns their
 * number. */
size_t templates_choose(const templates_models *models, const templates_grid *grid, size_t every,
                        size_t *list);

/* ---- build.c ---- */
/* Makes the library in a folder inside the output and moves it to its place when it is complete; after a failure
 * nothing stays. Returns CLI_OK or the exit code. */
int templates_build(const templates_args *args, const templates_models *models,
                    const templates_grid *grid, clv_context *context, clv_report *report);

#endif

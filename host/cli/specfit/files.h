/* SPDX-License-Identifier: Apache-2.0 */
/* What `cleave specfit` reads and writes. */
#ifndef CLEAVE_HOST_CLI_SPECFIT_FILES_H
#define CLEAVE_HOST_CLI_SPECFIT_FILES_H

#include "host/cli/cli.h"
#include "host/io/desi.h"
#include "host/io/fits_rows.h"
#include "host/io/speclib.h"

typedef struct specfit_args {
    const char *library, *output, *models, *plots, *config, *gpu_devices, *targets;
    uint64_t starts, npoly, gpu_batch_size;
    double min_vel, max_vel, vel_step, max_vsini, min_sn;
    double sigma0, sigma_of[CLV_DESI_ARMS]; /* Angstrom; of an arm: 0, when it is sigma0 */
    bool min_sn_given, use_gpu, zbest;
    int resolution;
    cli_common common;
} specfit_args;

/* One row of the output: which spectrum of the file, and its fit. */
typedef struct specfit_row {
    size_t row;
    clv_specfit_result fit;
} specfit_row;

typedef struct specfit_table {
    const clv_desi *desi;
    size_t count;
    specfit_row *rows;
    size_t slots;                 /* spectra a star */
    size_t arm_of[CLV_DESI_ARMS]; /* arm of the file, by slot */
} specfit_table;

/* By the name's end: .fits, else CSV ("-": standard output). CLI_OK or the exit code. */
int specfit_write(const specfit_args *args, const specfit_table *table);
/* Models go to their file block by block: a coadd of thousands of stars is never in memory. */
int specfit_models_begin(const specfit_args *args, const specfit_table *table, clv_fits_rows *file);
int specfit_models_put(const specfit_table *table, size_t from, size_t count, clv_fits_rows *file);
/* A picture of one star; block holds its spectra. */
int specfit_plot(const specfit_args *args, const specfit_table *table, const specfit_row *row,
                 const clv_desi_block *block);
int specfit_plot_summary(const specfit_args *args, const specfit_table *table);

#endif

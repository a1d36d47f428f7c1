/* SPDX-License-Identifier: Apache-2.0 */
/* What `cleave specfit` reads and writes. */
#ifndef CLEAVE_HOST_CLI_SPECFIT_FILES_H
#define CLEAVE_HOST_CLI_SPECFIT_FILES_H

#include "base/text.h"
#include "host/cli/cli.h"
#include "host/io/formats/fits_copy.h"
#include "host/io/formats/fits_rows.h"
#include "host/io/tables/desi.h"
#include "host/io/tables/redrock.h"
#include "host/io/tables/speclib.h"

enum { SPECFIT_IGNORED = 16 };

typedef struct specfit_args {
    const char *spectra; /* the file */
    const char *library, *output, *models, *plots, *config, *gpu_devices, *targets, *targets_file,
        *redshifts, *ignore;
    uint64_t starts, npoly, gpu_batch_size, save_every;
    int64_t min_expid, max_expid;
    double min_vel, max_vel, vel_step, max_vsini, min_sn;
    double sigma0, sigma_of[CLV_DESI_ARMS]; /* Angstrom; of an arm: 0, when it is sigma0 */
    bool min_sn_given, min_expid_given, max_expid_given, use_gpu, zbest_include, zbest_select,
        resume;
    int resolution;
    double ignored[2 * SPECFIT_IGNORED]; /* Angstrom, of --ignore or of the file's kind */
    size_t ignored_count;
    double reject;
    cli_common common;
} specfit_args;

/* One row of the output: which spectrum of the file, and its fit. */
typedef struct specfit_row {
    size_t row;
    clv_specfit_result fit;
} specfit_row;

typedef struct specfit_table {
    clv_desi *desi;
    size_t count;
    specfit_row *rows;
    size_t slots;                 /* spectra a star */
    size_t arm_of[CLV_DESI_ARMS]; /* arm of the file, by slot */
    clv_redshift *redshifts;      /* [desi->rows]; NULL: no such file */
    char *redshift_file;
} specfit_table;

/* ---- settings.c ---- */
/* --config: what an option has set stays. CLI_OK or the exit code. */
int specfit_read_config(specfit_args *args);
typedef struct specfit_ids {
    int64_t *ids; /* sorted; clv_free */
    size_t count, capacity;
} specfit_ids;
/* --targets and --targets-file. CLI_OK or the exit code. */
int specfit_read_ids(const specfit_args *args, specfit_ids *list);

/* ---- select.c ---- */
/* Whether a comma list of numbers holds `id`. */
bool specfit_is_listed(const char *list, int64_t id);
/* The rows to fit, and the redshifts; CLI_OK or the exit code. */
int specfit_select(const specfit_args *args, specfit_table *table);

/* ---- write.c ---- */
/* By the name's end: .fits, else CSV ("-": standard output). CLI_OK or the exit code. */
int specfit_write(const specfit_args *args, const specfit_table *table);
/* Models go to their file block by block: a coadd of thousands of stars is never in memory. */
int specfit_models_begin(const specfit_args *args, const specfit_table *table, clv_fits_rows *file);
int specfit_models_put(const specfit_table *table, size_t from, size_t count, clv_fits_rows *file);
int specfit_models_end(const specfit_args *args, const specfit_table *table, clv_fits_rows *file);

/* ---- tell.c ---- */
/* Lines for the reader: stars, time, devices, warnings by kind. */
void specfit_tell(const specfit_args *args, const specfit_table *table, const clv_report *report,
                  double seconds);

/* ---- plot.c ---- */
/* A picture of one star; block holds its spectra. */
int specfit_plot(const specfit_args *args, const specfit_table *table, const specfit_row *row,
                 const clv_desi_block *block);
int specfit_plot_summary(const specfit_args *args, const specfit_table *table);

/* ---- journal.c: finished stars of a run that may be killed ---- */
typedef struct specfit_journal {
    int file; /* < 0: none */
    char *path;
    bool with_models;
} specfit_journal;

/* What the table's bytes depend on, as lines "key value". */
clv_status specfit_identity(const specfit_args *args, const specfit_table *table,
                            const clv_spectra_library *library, const clv_context *context,
                            clv_text *identity);
/* Opens PATH for the run that `identity` describes, or begins it. *done is the number of stars that
 * it holds, the first ones of the table: their fits are filled in, and their models given to `models`.
 * CLV_E_FORMAT: a journal of another run, or none at all; CLV_E_IO (another run writes it). */
clv_status specfit_journal_open(const char *path, const char *identity, bool with_models,
                                const specfit_table *table, clv_fits_rows *models,
                                specfit_journal *journal, size_t *done);
/* Adds stars [from, from + count), models included. */
clv_status specfit_journal_put(specfit_journal *journal, const specfit_table *table, size_t from,
                               size_t count);
void specfit_journal_close(specfit_journal *journal, bool remove);

#endif

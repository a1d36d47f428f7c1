/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave specfit` share: options, inputs, results. */
#ifndef CLEAVE_HOST_CLI_SPECFIT_FILES_H
#define CLEAVE_HOST_CLI_SPECFIT_FILES_H

#include "base/text.h"
#include "host/cli/cli.h"
#include "host/io/formats/fits_copy.h"
#include "host/io/formats/fits_rows.h"
#include "host/io/tables/desi.h"
#include "host/io/tables/redrock.h"
#include "host/io/tables/speclib.h"
#include "host/io/tables/spectrum.h"

enum {
    SPECFIT_IGNORED = 16,
    SPECFIT_COLUMNS = 12, /* arms of the library that one run may use */
    SPECFIT_MOST_FILES = 100000
};

/* The values of --combine. */
enum { SPECFIT_ALONE, SPECFIT_BY_TARGET, SPECFIT_ALL_ONE };

typedef struct specfit_args {
    const char *spectra; /* the first file, as the user named it */
    const char *library, *output, *models, *plots, *config, *gpu_devices, *targets, *targets_file,
        *redshifts, *ignore, *arm, *barycentric, *prior, *fix, *priors, *columns;
    clv_spectrum_names names; /* from --columns */
    uint64_t starts, npoly, gpu_batch_size, save_every;
    int64_t min_expid, max_expid;
    double min_vel, max_vel, vel_step, max_vsini, min_sn;
    double sigma0, sigma_of[CLV_DESI_ARMS]; /* Angstrom, from --config; NaN: not given */
    bool starts_given, resolving_power_given, min_sn_given, min_expid_given, max_expid_given,
        use_gpu, zbest_include, zbest_select, resume;
    int resolution, combine, medium;
    double resolving_power;              /* 0: not given */
    double velocity_added;               /* km/s, from --barycentric; NaN: as the headers say */
    double ignored[2 * SPECFIT_IGNORED]; /* Angstrom, from --ignore or by the kind of file */
    size_t ignored_count;
    double reject;
    cli_common common;
} specfit_args;

/* An input file. A single spectrum is one row, cut into one piece per arm of the library; its numbers are read again
 * when it is fitted. */
typedef struct specfit_input {
    char *path;
    clv_desi desi;
    bool single;
    size_t column[CLV_DESI_ARMS]; /* column of the table for each of its arms; SIZE_MAX: not used */
    size_t from[CLV_DESI_ARMS];   /* single: first pixel of the piece */
    size_t diagonals;             /* single: of its resolution matrix; 0: it has none */
    clv_redshift *redshifts;      /* [desi.rows]; NULL: no such file */
} specfit_input;

/* One spectrum of a file, with all its arms. */
typedef struct specfit_place {
    size_t input, row;
} specfit_place;

/* One row of the output: a star, its spectra, and its fit. */
typedef struct specfit_row {
    size_t first, count; /* range of the star's spectra in table->places */
    clv_specfit_result fit;
} specfit_row;

typedef struct specfit_table {
    size_t input_count;
    specfit_input *inputs;
    bool plain;     /* one DESI file in which each spectrum is a star: rvspecfit's table */
    size_t columns; /* number of arms in use */
    clv_spectra_arm arms[SPECFIT_COLUMNS];
    char suffix[SPECFIT_COLUMNS][24]; /* of column names: B, R, Z, or the arm's name */
    size_t count, place_count;
    specfit_row *rows;
    specfit_place *places;
    clv_star_prior *priors; /* [count]; NULL: nothing is known */
    char *redshift_file;
    char device[160]; /* the device that fits, for headers */
} specfit_table;

/* One spectrum of a star; results list the spectra in the order of the slots. */
typedef struct specfit_slot {
    const specfit_input *input;
    size_t row, arm, column;
    size_t pixels;
    const double *wavelength;
} specfit_slot;

/* ---- settings.c ---- */
/* Reads the file of --config; values set by an option stay. Returns CLI_OK or the exit code. */
int specfit_read_config(specfit_args *args);
/* Parses --ignore, or uses the range that is known to be bad in this kind of file. Returns CLI_OK or the exit code. */
int specfit_read_ignored(specfit_args *args, const specfit_table *table);
/* Parses --barycentric: a velocity, or NaN for the header's. Returns CLI_OK or the exit code. */
int specfit_read_barycentric(specfit_args *args);
/* Parses --columns. Returns CLI_OK or the exit code. */
int specfit_read_columns(specfit_args *args);
typedef struct specfit_ids {
    int64_t *ids; /* sorted; free with clv_free */
    size_t count, capacity;
} specfit_ids;
/* Reads --targets and --targets-file. Returns CLI_OK or the exit code. */
int specfit_read_ids(const specfit_args *args, specfit_ids *list);

/* ---- options.c ---- */
enum { SPECFIT_OPTIONS = 36 };
enum { SPECFIT_BLOCK_ROWS = 512 }; /* most stars of a job, unless there are many ranks */
/* Fills table [SPECFIT_OPTIONS + 1], which writes to `args`. */
void specfit_make_options(specfit_args *args, cli_option *table);
/* Sets what neither an option nor the settings have set. */
void specfit_set_defaults(specfit_args *args);
/* Returns -1, or the exit code of options that are refused. */
int specfit_check_options(const specfit_args *args);

/* ---- inputs.c ---- */
/* Opens the files that the operands name: paths, patterns, or @FILE with one path per line. */
int specfit_open_inputs(const specfit_args *args, char *const *operands, int count,
                        specfit_table *table);
/* Assigns the wavelengths of each file to arms of the library, and the arms to columns of the output. */
int specfit_match(const specfit_args *args, const clv_speclib *library, specfit_table *table);
/* Refuses options for single spectra if all files are DESI files, and warns if only some are. */
int specfit_check_kinds(const specfit_args *args, const specfit_table *table);
/* Reads a single spectrum and converts its wavelengths to vacuum and to the rest frame of the barycentre. */
clv_status specfit_read_single(const specfit_args *args, const char *path,
                               clv_one_spectrum *spectrum);
void specfit_table_clear(specfit_table *table);

/* ---- slots.c ---- */
/* Lists the spectra of a star; returns their number. */
size_t specfit_slots(const specfit_table *table, const specfit_row *row,
                     specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA]);
/* Returns what the input file says about the star's first spectrum. */
const clv_desi_row *specfit_about(const specfit_table *table, const specfit_row *row);
/* These two return whether the unknown is held fixed in the fits of all stars, and of at least one star. */
bool specfit_is_held(const specfit_table *table, int unknown);
bool specfit_is_held_somewhere(const specfit_table *table, int unknown);

/* ---- batch.c ---- */
/* The spectra of one input file, in memory, for stars that are neighbours in the table. */
typedef struct specfit_piece {
    size_t input;
    clv_desi_block block; /* rows of a DESI file, or the pieces of a single spectrum */
    double unit[CLV_DESI_ARMS];
} specfit_piece;

typedef struct specfit_batch {
    size_t count;
    specfit_piece *pieces;
} specfit_batch;

/* Returns how many stars from `from` on, at most `most`, can be fitted in one job because they have the same
 * wavelengths. */
size_t specfit_batch_length(const specfit_table *table, size_t from, size_t most);
clv_status specfit_batch_read(const specfit_args *args, const specfit_table *table, size_t from,
                              size_t count, specfit_batch *batch);
/* Returns the spectrum of a slot in the form that the fit takes. */
clv_spectrum specfit_batch_spectrum(const specfit_table *table, const specfit_batch *batch,
                                    const specfit_slot *slot);
void specfit_batch_clear(specfit_batch *batch);

/* ---- select.c ---- */
/* Returns whether a comma list of numbers contains `id`. */
bool specfit_is_listed(const char *list, int64_t id);
/* Selects the rows to fit and reads the redshifts; returns CLI_OK or the exit code. */
int specfit_select(const specfit_args *args, specfit_table *table);

/* ---- priors.c ---- */
int specfit_read_priors(const specfit_args *args, specfit_table *table);

/* ---- write.c ---- */
/* Writes the table: as FITS if the name ends in .fits, else as CSV ("-": standard output). Returns CLI_OK or the exit
 * code. */
int specfit_write(const specfit_args *args, const specfit_table *table);
/* These two make the HDUs before and after the images of models. */
clv_status specfit_head_of_models(const specfit_args *args, const specfit_table *table,
                                  clv_fits_table *head);
clv_status specfit_tail_of_models(const specfit_table *table, clv_fits_table *tail);

/* ---- models.c ---- */
/* Write the models to their file block by block, so that a coadd of thousands of stars is never in memory at once. */
int specfit_models_begin(const specfit_args *args, const specfit_table *table, clv_fits_rows *file);
int specfit_models_put(const specfit_table *table, size_t from, size_t count, clv_fits_rows *file);
int specfit_models_end(const specfit_args *args, const specfit_table *table, clv_fits_rows *file);

/* ---- tell.c ---- */
/* Warns about what was assumed of a spectrum's wavelengths. `used` is the number of pixels that the library's arms
 * cover; if it is 0, that error is the only message. */
void specfit_tell_placed(const specfit_args *args, const char *path,
                         const clv_one_spectrum *spectrum, size_t used);
/* Prints a summary for the user: stars, time, devices, and the number of warnings of each kind. */
void specfit_tell(const specfit_args *args, const specfit_table *table, const clv_report *report,
                  double seconds);

/* ---- plot.c ---- */
/* Plots one star, whose spectra the batch holds. */
int specfit_plot(const specfit_args *args, const specfit_table *table, const specfit_row *row,
                 const specfit_batch *batch);
int specfit_plot_summary(const specfit_args *args, const specfit_table *table);

/* ---- journal.c: finished stars of a run that may be killed ---- */
typedef struct specfit_journal {
    int file; /* < 0: none */
    char *path;
    bool with_models;
} specfit_journal;

/* Writes everything that determines the table's bytes, as lines "key value". */
clv_status specfit_identity(const specfit_args *args, const specfit_table *table,
                            const clv_spectra_library *library, const clv_context *context,
                            clv_text *identity);
/* Opens the journal PATH of the run that `identity` describes, or creates the journal. *done is the number of stars
 * in the journal, which are the first ones of the table: their fits are filled in, and their models are written to
 * `models`. CLV_E_FORMAT: PATH is a journal of another run or no journal; CLV_E_IO (another run is writing it). */
clv_status specfit_journal_open(const char *path, const char *identity, bool with_models,
                                const specfit_table *table, clv_fits_rows *models,
                                specfit_journal *journal, size_t *done);
/* Adds stars [from, from + count), models included. */
clv_status specfit_journal_put(specfit_journal *journal, const specfit_table *table, size_t from,
                               size_t count);
void specfit_journal_close(specfit_journal *journal, bool remove);

#endif

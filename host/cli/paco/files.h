/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave paco` share: options, inputs, results. */
#ifndef CLEAVE_HOST_CLI_PACO_FILES_H
#define CLEAVE_HOST_CLI_PACO_FILES_H

#include "host/cli/cli.h"
#include "host/io/formats/fits_cards.h"

#include <cleave/patch.h>

typedef struct paco_args {
    const char *output, *centre, *channel, *reject, *angle_column;
    cli_list at;
    uint64_t radius, patch_area; /* radius 0: chosen from the FWHM */
    uint64_t measure_radius;     /* patch radius for measuring companions; 0: `radius` */
    bool radius_given, rounding_given, fwhm_given, no_subtract, scale_given, star_given;
    bool contrast;
    char *command_line;
    const char *wavelengths; /* if given, all channels are searched together */
    cli_list spectra;
    double star_temperature;
    bool temperature_given;
    const char *contrast_radii;
    uint64_t contrast_injections;
    int psf_mode, psf_norm, conv, rounding, angle_sign, format, nan, snr, weights;
    double fwhm, threshold, pixel_scale, true_north;
    double star_flux; /* given, or computed from star_ratio and the PSF, which sets star_given */
    double star_ratio;
    bool ratio_given;
    double centre_x, centre_y; /* of the star: given or, after paco_prepare, found */
    cli_common common;
} paco_args;

typedef struct paco_inputs {
    const char *cube_path;
    float *cube; /* [channels,frames,height,width], from page-aligned memory */
    size_t channels, frames, height, width;
    size_t first_channel, channels_used;
    double *angles;
    float *psf; /* [psf_count,psf_size,psf_size]: one, or one per channel */
    size_t psf_count, psf_size;
    double fwhm;
    double *wavelengths; /* [channels] in micrometres; NULL without --wavelengths */
    double *spectra;     /* [spectrum_count,channels] */
    size_t spectrum_count;
    clv_fits_cards cards; /* header cards of the cube; copied to the maps */
    /* set by paco_prepare: the frames as read, of which `frames` are kept */
    size_t frames_read;
    clv_paco_frame *quality;            /* [frames_read] */
    double *angles_read, *weights_read; /* [frames_read]; weight 0: rejected */
    double *weights;                    /* [frames]; NULL: all are equal */
    size_t lowered;                     /* number of frames used with a weight below 1 */
    size_t mended;
} paco_inputs;

typedef struct paco_found {
    size_t channel;
    clv_companion companion; /* flux_err and snr come from the maps if nothing was subtracted */
} paco_found;

typedef struct paco_maps {
    size_t channels;
    double *a, *b;                   /* [channels,height,width] */
    float *snr, *raw, *flux, *sigma; /* raw: S/N before calibration; NULL without */
    bool together;                   /* snr and raw are one map [height,width] for all channels */
    clv_asdi_companions companions;  /* companions found, if `together` */
    clv_paco_counts counts;          /* over all channels */
    paco_found *detections;
    size_t detection_count, detection_capacity;
    clv_contrast_point *limits; /* [channels,limit_count]; NULL without --contrast */
    size_t limit_count;
    float *limit_map; /* [channels,height,width] */
    paco_found *at;   /* positions that the user asked for */
    size_t at_count, at_capacity;
} paco_maps;

/* Makes the table of the command's own options, which ends with an empty row. */
enum { PACO_OPTIONS = 30 };
void paco_make_table(paco_args *a, cli_option *table);
/* Checks options that depend on other options or inputs: returns an exit code, or -1 to continue. */
int paco_check_args(paco_args *a);

/* paco_read, paco_maps_create and paco_prepare return CLI_OK, or the exit code after the message. */
int paco_read(paco_args *args, const char *cube, const char *angles, const char *psf,
              paco_inputs *inputs);
int paco_maps_create(const paco_args *args, const paco_inputs *inputs, paco_maps *maps);
/* Finds the star, weights the frames, rejects the worst ones and repairs pixels; prints what was done. */
int paco_prepare(paco_args *args, const char *cube, paco_inputs *inputs);
/* Returns "robust", "variance" or "none". */
const char *paco_weights_name(const paco_args *args);
/* Parses "X,Y" as two numbers. */
bool paco_parse_place(const char *text, double *x, double *y);
/* Writes everything into args->output, report.json last. */
int paco_write(const paco_args *args, const paco_inputs *inputs, const paco_maps *maps,
               clv_report *report, double started);

/* ---- asdi.c ---- */

/* Checks the options; returns -1, or the exit code after the message. */
int paco_asdi_check(const paco_args *args);
/* Reads wavelengths and spectra if --wavelengths is given. */
int paco_asdi_read(const paco_args *args, paco_inputs *inputs);
/* Returns the name of spectrum k: "flat", "1500K" or its file. */
const char *paco_spectrum_name(const paco_args *args, size_t k);
/* Computes maps and detections of all channels together; `rest` may be NULL. */
int paco_asdi_run(const paco_args *args, const paco_inputs *inputs, clv_context *context,
                  const clv_paco_input *channels, const clv_paco_options *options, float *rest,
                  paco_maps *maps, clv_report *report);
/* Writes spectra.csv and spectra.png. */
clv_status paco_asdi_write(const paco_args *args, const paco_inputs *inputs, const paco_maps *maps);

/* ---- contrast.c ---- */

/* Checks the options; returns -1, or the exit code after the message. */
int paco_contrast_check(const paco_args *args);
/* Makes maps->limits, with the separations filled in, and maps->limit_map. */
clv_status paco_contrast_prepare(const paco_args *args, const paco_inputs *inputs, paco_maps *maps);
/* Fills in the limits of one channel; the companions have been subtracted from `input`. */
clv_status paco_contrast_run(const paco_args *args, const paco_inputs *inputs, clv_context *context,
                             const clv_paco_input *input, const clv_paco_options *options,
                             size_t channel, const clv_companion *known, size_t count,
                             paco_maps *maps, clv_report *report);
/* Writes contrast.csv and contrast.png. */
clv_status paco_contrast_write(const paco_args *args, const paco_inputs *inputs,
                               const paco_maps *maps);

bool paco_add_detections(paco_maps *maps, size_t channel, const clv_companion *found, size_t count);
/* Reports maps without any value as an error and says why. */
int paco_check_maps(const paco_inputs *inputs, const paco_maps *maps);
/* Writes detections.csv, at.csv and frames.csv with its plot (table.c). */
clv_status paco_write_tables(const paco_args *args, const paco_inputs *inputs,
                             const paco_maps *maps);
void paco_inputs_clear(paco_inputs *inputs);
void paco_maps_clear(paco_maps *maps);

#endif

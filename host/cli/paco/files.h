/* SPDX-License-Identifier: Apache-2.0 */
/* What `cleave paco` reads and writes. */
#ifndef CLEAVE_HOST_CLI_PACO_FILES_H
#define CLEAVE_HOST_CLI_PACO_FILES_H

#include "host/cli/cli.h"
#include "host/io/formats/fits_cards.h"

#include <cleave/patch.h>

typedef struct paco_args {
    const char *output, *centre, *channel;
    uint64_t radius, patch_area;
    bool radius_given, rounding_given, fwhm_given;
    int psf_mode, psf_norm, conv, rounding, angle_sign, format;
    double fwhm, threshold, centre_x, centre_y;
    cli_common common;
} paco_args;

typedef struct paco_inputs {
    float *cube; /* [channels,frames,height,width], from page-aligned memory */
    size_t channels, frames, height, width;
    size_t first_channel, channels_used;
    double *angles;
    float *psf; /* [psf_count,psf_size,psf_size]: one, or one a channel */
    size_t psf_count, psf_size;
    double fwhm;
    clv_fits_cards cards; /* of the cube, for the maps */
} paco_inputs;

typedef struct paco_found {
    size_t channel;
    clv_detection detection;
} paco_found;

typedef struct paco_maps {
    size_t channels;
    double *a, *b; /* [channels,height,width] */
    float *snr, *flux, *sigma;
    clv_paco_counts counts; /* of all channels */
    paco_found *detections;
    size_t detection_count, detection_capacity;
} paco_maps;

/* All three return CLI_OK or the exit code after the message. */
int paco_read(const paco_args *args, const char *cube, const char *angles, const char *psf,
              paco_inputs *inputs);
int paco_maps_create(const paco_inputs *inputs, paco_maps *maps);
/* Everything into args->output, report.json last. */
int paco_write(const paco_args *args, const paco_inputs *inputs, const paco_maps *maps,
               clv_report *report, double started);

bool paco_add_detections(paco_maps *maps, size_t channel, const clv_detection *found, size_t count);
/* Says what a user should know about maps that are empty or suspicious. */
void paco_warn_about_maps(const paco_args *args, const paco_inputs *inputs, const paco_maps *maps);
void paco_inputs_clear(paco_inputs *inputs);
void paco_maps_clear(paco_maps *maps);

#endif

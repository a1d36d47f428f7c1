/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `cleave tracks` share: the options, the tracks in their unit, what was found. */
#ifndef CLEAVE_HOST_CLI_TRACKS_TRACKS_H
#define CLEAVE_HOST_CLI_TRACKS_TRACKS_H

#include "host/cli/endings.h"

#include <cleave/motion.h>

typedef struct tracks_args {
    const char *input, *output, *msd, *track_msd, *drift, *positions, *summary, *plot;
    const char *columns, *pixel_size, *voxel_size;
    double interval, position_error, exposure;
    double min_extent, max_extent, min_displacement, max_displacement;
    uint64_t min_length, max_length, lags, smooth;
    int decimal;
    bool interval_given, position_error_given, smooth_given, subtract_drift, quiet;
} tracks_args;

/* What tables of this command may be. */
enum { TRACKS_TABLES = CLI_CSV | CLI_TSV | CLI_JSON };

/* Units as they stand in the names of columns: "um" or "px"; "s" or "frame". */
typedef struct tracks_units {
    char space[16], time[16];
    double scale[3]; /* of the table's z, y, x */
    double interval; /* units of time between frames */
    bool physical;   /* space is no pixel */
} tracks_units;

typedef struct tracks_found {
    const tracks_args *a;
    tracks_units units;
    clv_tracks *tracks; /* in units.space; what stays */
    size_t all_tracks;  /* before the filters */
    size_t axes;
    int64_t first, last; /* frames */
    double *drift; /* [last - first + 1][3], in units.space; NULL: no spots, or too many frames */
    double drift_share; /* lost where it is subtracted, else 0 */
    size_t lags;
    clv_msd *msd;            /* of all tracks: [lags] */
    clv_diffusion diffusion; /* of all tracks, per frame */
} tracks_found;

/* ---- tracks/read.c --------------------------------------------------------------------------------------- */

/* Reads the table into found->tracks; finds units and tells what was chosen. */
clv_status tracks_read(const char *path, tracks_found *found);
/* --pixel-size, --voxel-size and --interval to found->units. Returns -1 to go on, else the exit code. */
int tracks_find_units(tracks_found *found);

/* ---- tracks/write.c -------------------------------------------------------------------------------------- */

/* D of a track or of all; options of the command. */
clv_status tracks_diffusion(const tracks_found *found, int64_t index, clv_diffusion *result);
clv_status tracks_write(const tracks_found *found); /* every table that was asked for */

/* ---- tracks/plot.c --------------------------------------------------------------------------------------- */

/* Mean squared displacements of all tracks, of some single ones, and the fit. */
clv_status tracks_plot(const tracks_found *found, const char *path);

#endif

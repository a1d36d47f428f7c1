/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave tracks` share: the options, the tracks in their unit, and the results. */
#ifndef CLEAVE_HOST_CLI_TRACKS_TRACKS_H
#define CLEAVE_HOST_CLI_TRACKS_TRACKS_H

#include "host/cli/endings.h"

#include <cleave/motion.h>

typedef struct tracks_args {
    const char *input, *output, *msd, *track_msd, *drift, *positions, *summary, *plot;
    const char *columns, *pixel_size, *voxel_size, *stage_drift;
    double interval, position_error, exposure;
    double min_extent, max_extent, min_displacement, max_displacement;
    uint64_t min_length, max_length, lags, smooth;
    int decimal;
    bool interval_given, position_error_given, smooth_given, subtract_drift, quiet;
} tracks_args;

/* Formats that the tables of `cleave tracks` may have. */
enum { TRACKS_TABLES = CLI_CSV | CLI_TSV | CLI_JSON };

/* Units as they are written in column names: "um" or "px"; "s" or "frame". */
typedef struct tracks_units {
    char space[16], time[16];
    double scale[3]; /* factors for the table's z, y, x */
    double interval; /* time between frames, in units of time */
    bool physical;   /* lengths are not in pixels */
} tracks_units;

typedef struct tracks_found {
    const tracks_args *a;
    tracks_units units;
    clv_tracks *tracks; /* in units.space, after the filters */
    size_t all_tracks;  /* before the filters */
    size_t axes;
    int64_t first, last; /* frames */
    double *drift; /* [last - first + 1][3], in units.space; NULL: no spots, or too many frames */
    bool drifts;   /* the drift is significant, and is not subtracted */
    double drift_share; /* share of the motion lost by subtracting the drift, else 0 */
    size_t lags;
    clv_msd *msd;            /* of all tracks: [lags] */
    clv_diffusion diffusion; /* of all tracks, per frame */
} tracks_found;

/* ---- tracks/read.c --------------------------------------------------------------------------------------- */

/* Reads the table into found->tracks, finds the units and prints what was chosen. */
clv_status tracks_read(const char *path, tracks_found *found);
/* Reads --pixel-size, --voxel-size and --interval into found->units. Returns -1 to continue, else the exit code. */
int tracks_find_units(tracks_found *found);

/* ---- tracks/write.c -------------------------------------------------------------------------------------- */

/* Computes D of one track or of all, with the command's options. */
clv_status tracks_diffusion(const tracks_found *found, int64_t index, clv_diffusion *result);
clv_status tracks_write(const tracks_found *found); /* all tables that were requested */

/* ---- tracks/plot.c --------------------------------------------------------------------------------------- */

/* Plots the mean squared displacements of all tracks together, of some single tracks, and the fit. */
clv_status tracks_plot(const tracks_found *found, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave blobs` for stacks of planes share. */
#ifndef CLEAVE_HOST_CLI_BLOBS_VOLUME_H
#define CLEAVE_HOST_CLI_BLOBS_VOLUME_H

#include "host/cli/blobs/blobs.h"

/* A spot and its track. */
typedef struct volume_member {
    clv_volume_spot spot;
    int64_t particle; /* -1: none */
} volume_member;

/* The spots of all stacks, and the units and format that determine their columns. */
typedef struct volume_table {
    const blobs_units *units;
    const blobs_extra *extra;
    const double *voxel; /* the voxel's sides along z, y, x */
    const volume_member *members;
    size_t count;
    int format; /* BLOBS_CLEAVE and so on */
} volume_table;

/* Writes a table in the format that the path's ending gives; `tracks`: with the track numbers in a column
 * "particle". */
clv_status volume_write(const volume_table *table, const char *path, bool tracks);

#endif

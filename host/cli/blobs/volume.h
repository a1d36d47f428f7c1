/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `cleave blobs` that work on stacks of planes share. */
#ifndef CLEAVE_HOST_CLI_BLOBS_VOLUME_H
#define CLEAVE_HOST_CLI_BLOBS_VOLUME_H

#include "host/cli/blobs/blobs.h"

/* A spot and its track. */
typedef struct volume_member {
    clv_volume_spot spot;
    int64_t particle; /* -1: none */
} volume_member;

/* The spots of all stacks, and what their columns depend on. */
typedef struct volume_table {
    const blobs_units *units;
    const blobs_extra *extra;
    const double *voxel; /* its sides along z, y, x */
    const volume_member *members;
    size_t count;
    int format; /* BLOBS_CLEAVE and so on */
} volume_table;

/* Writes a table in the format that the path's ending gives; `tracks`: with the column "particle". */
clv_status volume_write(const volume_table *table, const char *path, bool tracks);

#endif

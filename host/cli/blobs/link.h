/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave link` share: the table, its points, the lines of the output. */
#ifndef CLEAVE_HOST_CLI_BLOBS_LINK_H
#define CLEAVE_HOST_CLI_BLOBS_LINK_H

#include "host/cli/blobs/blobs.h"
#include "host/cli/columns.h"
#include "host/cli/drift.h"
#include "host/io/tables/any.h"

/* A row of the output: a row of the input, or one filled in between two of its rows. */
typedef struct link_line {
    int64_t frame, particle;
    double z, y, x;
    size_t row; /* SIZE_MAX: filled in */
} link_line;

typedef struct link_rows {
    clv_csv_table *table;
    clv_point *points;
    double *z;                     /* NULL: the table has no z */
    bool moved;                    /* the drift of the stage was subtracted from the points */
    size_t physical[COLUMN_ROLES]; /* moved: columns such as y_um; SIZE_MAX: none */
    double side[2]; /* units of the physical columns per unit of the columns y and x */
    int64_t *particle;
    size_t count, tracks;
    size_t column[COLUMN_ROLES];
    const char *name;     /* name of the new column */
    size_t old;           /* the column that it replaces; SIZE_MAX: none */
    clv_branch *branches; /* splits and merges; NULL: not requested */
    size_t branch_count;
    int64_t *parent,
        *child;        /* [tracks]: the track that it splits from, that it merges into; -1: none */
    blobs_units units; /* for TrackMate's XML: sides of a voxel and time between frames */
    link_line *lines;
    size_t line_count, line_room;
} link_rows;

/* Writes the table in the format of the path's ending ("-": CSV). Input rows stay as they were, with the new column
 * after them; filled rows contain what is known, and flag 16 if the table has flags. */
clv_status link_write(const link_rows *rows, const char *path);

#endif

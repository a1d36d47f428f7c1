/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns of somebody's table hold the frame and the position. */
#ifndef CLEAVE_HOST_CLI_COLUMNS_H
#define CLEAVE_HOST_CLI_COLUMNS_H

#include "host/cli/cli.h"
#include "host/io/tables/csv.h"

enum { COLUMN_FRAME, COLUMN_Y, COLUMN_X, COLUMN_Z, COLUMN_PARTICLE, COLUMN_ROLES };

/* --columns "frame=t,y=row": is it one? Returns -1 to go on, else the exit code. */
int cli_check_columns(const cli_command *command, const char *given, bool particle);

/* The columns of the roles in `wanted` (bits): as given, else those that are called so, else by other usual names,
 * which is told. SIZE_MAX: no z. CLV_E_FORMAT: not there, or not clear. */
clv_status cli_find_columns(clv_csv_table *table, const char *path, const char *given,
                            unsigned wanted, bool quiet, size_t column[COLUMN_ROLES]);

/* The column of exactly that name; SIZE_MAX: none. */
size_t cli_column_called(const clv_csv_table *table, const char *name);
/* Columns such as y_um and x_um (and z_um), which `cleave blobs` writes: the roles y, x and z of `column` are set, z to
 * SIZE_MAX where it is not there. Returns the unit; NULL: there are none, and `column` stays. */
const char *cli_find_physical(const clv_csv_table *table, size_t column[COLUMN_ROLES]);

/* Drops the lines below the header of a table of TrackMate; tells so. */
clv_status cli_drop_header_lines(clv_csv_table *table, const char *path, size_t frame, bool quiet);

#endif

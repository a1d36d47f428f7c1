/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the columns of a user's table that hold the frame and the position. */
#ifndef CLEAVE_HOST_CLI_COLUMNS_H
#define CLEAVE_HOST_CLI_COLUMNS_H

#include "host/cli/cli.h"
#include "host/io/tables/csv.h"

enum { COLUMN_FRAME, COLUMN_Y, COLUMN_X, COLUMN_Z, COLUMN_PARTICLE, COLUMN_ROLES };

/* Checks that `given` is a valid value of --columns ("frame=t,y=row"). Returns -1 to continue, else the exit code. */
int cli_check_columns(const cli_command *command, const char *given, bool particle);

/* Finds the columns of the roles in `wanted` (a bit mask): by the user's names, else by the roles' own names, else
 * by other usual names, and prints which usual name was found. SIZE_MAX: there is no z column. CLV_E_FORMAT: a
 * column is missing or ambiguous. */
clv_status cli_find_columns(clv_csv_table *table, const char *path, const char *given,
                            unsigned wanted, bool quiet, size_t column[COLUMN_ROLES]);

/* Check the number `value` in row `row` (counted from 0) of the column that has a role: the first that it is a whole
 * number of at most `most` (either sign), the second that it can be a position. CLV_E_FORMAT: it is not. */
clv_status cli_check_whole(const clv_csv_table *table, const char *path, size_t row, size_t column,
                           const char *role, double value, double most);
clv_status cli_check_place(const clv_csv_table *table, const char *path, size_t row, size_t column,
                           double value);

/* Returns the column with exactly that name, or SIZE_MAX. */
size_t cli_column_called(const clv_csv_table *table, const char *name);
/* Finds columns such as y_um and x_um (and z_um), which `cleave blobs` writes, and sets the roles y, x and z of
 * `column`; z is SIZE_MAX if it is missing. Returns the unit, or NULL if there are no such columns; `column` is then
 * unchanged. */
const char *cli_find_physical(const clv_csv_table *table, size_t column[COLUMN_ROLES]);

/* Drops the extra header lines of a TrackMate table and prints a message about it. */
clv_status cli_drop_header_lines(clv_csv_table *table, const char *path, size_t frame, bool quiet);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one column of numbers from a text file, which may be a table with a line of column names. */
#ifndef CLEAVE_HOST_IO_FORMATS_COLUMN_H
#define CLEAVE_HOST_IO_FORMATS_COLUMN_H

#include <cleave/status.h>

#include <stddef.h>

/* Reads every file that clv_text_vector_read reads, and tables. A table's cells are separated by commas, semicolons or
 * tabs if its first row has any of these, else by blanks. The first line holds the columns' names if one of its cells
 * is not a number. A comment (#) before the numbers holds them if it has as many words as the table has columns.
 * `column` is a name, in any case, or a number from 1; NULL selects the column called PA, PARANG... or ANGLE..., or the
 * only one. Free *values with clv_free. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT, whose message names the line and the
 * cell, or lists the columns; CLV_E_MEMORY. */
clv_status clv_text_column_read(const char *path, const char *column, double **values,
                                size_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one column of a text file, which may be a table with a line of names. */
#ifndef CLEAVE_HOST_IO_FORMATS_COLUMN_H
#define CLEAVE_HOST_IO_FORMATS_COLUMN_H

#include <cleave/status.h>

#include <stddef.h>

/* Reads everything that clv_text_vector_read reads, and tables. Their cells are separated by commas, semicolons or tabs
 * if the first row has any of these, else by blanks. The first line names the columns if one of its cells is not a
 * number; so does a comment (#) before it with as many words. `column` is a name, in any case, or a number from 1; NULL
 * selects the column called PA, PARANG... or ANGLE..., or the only one. Free *values with clv_free. Returns CLV_OK;
 * CLV_E_IO; CLV_E_FORMAT, whose message names the line and the cell, or lists the columns; CLV_E_MEMORY. */
clv_status clv_text_column_read(const char *path, const char *column, double **values,
                                size_t *count);

#endif

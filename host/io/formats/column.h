/* SPDX-License-Identifier: Apache-2.0 */
/* One column of a text file, which may be a table with a line of names. */
#ifndef CLEAVE_HOST_IO_FORMATS_COLUMN_H
#define CLEAVE_HOST_IO_FORMATS_COLUMN_H

#include <cleave/status.h>

#include <stddef.h>

/* Reads what clv_text_vector_read reads, and tables: cells between commas, semicolons or tabs if the first row has
 * such, else between blanks; the first line names the columns where one of its cells is no number, and so does a
 * comment (#) before it with as many words. `column` is a name, in any case, or a number from 1. NULL: the column
 * called PA, PARANG... or ANGLE..., or the only one. Free *values with clv_free. CLV_E_IO; CLV_E_FORMAT names the line and
 * the cell, or the columns there are; CLV_E_MEMORY. */
clv_status clv_text_column_read(const char *path, const char *column, double **values,
                                size_t *count);

#endif

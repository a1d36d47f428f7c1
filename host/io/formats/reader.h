/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an array or a vector from a file, whose format is recognised by its content, not its name. */
#ifndef CLEAVE_HOST_IO_FORMATS_READER_H
#define CLEAVE_HOST_IO_FORMATS_READER_H

#include "host/io/array.h"
#include "host/io/formats/fits_cards.h"

/* A path is the name of a file. If no such file exists, "FILE[EXT]" is an HDU of a FITS file: its number (0 is the
 * primary one), its EXTNAME, or EXTNAME,EXTVER. */

/* Reads NPY, or FITS (the first image with data). `cards` may be NULL; it must be zero on entry, and stays so for a
 * format without cards. Returns the statuses of clv_npy_read and clv_fits_read; for another format the CLV_E_FORMAT
 * message says what it seems to be. */
clv_status clv_array_read(const char *path, clv_file_array *array, clv_fits_cards *cards);

/* Reads a list of numbers, such as angles: NPY ([T], [T,1] or [1,T]), FITS (image or table) or text. Free *values with
 * clv_free. Returns the statuses above, and those of clv_text_vector_read. */
clv_status clv_vector_read(const char *path, double **values, size_t *count);

/* Does the same, but reads from a table (FITS or text) the column of that name, or of that number from 1. NULL: as
 * clv_vector_read. */
clv_status clv_column_read(const char *path, const char *column, double **values, size_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an array or a vector from a file, whose format is recognised by its content, not its name. */
#ifndef CLEAVE_HOST_IO_FORMATS_READER_H
#define CLEAVE_HOST_IO_FORMATS_READER_H

#include "host/io/array.h"
#include "host/io/formats/fits_cards.h"

/* In every function below, `path` is the name of a file. If no such file exists, "FILE[EXT]" is an HDU of a FITS file:
 * its number (0 is the primary one), its EXTNAME, or EXTNAME,EXTVER. */

/* Reads an array from an NPY file, or from a FITS file (the first image with data). `cards` may be NULL; it must be
 * zero on entry, and stays zero for NPY. Returns the statuses of clv_npy_read and clv_fits_read; for another format the
 * CLV_E_FORMAT message says what the file seems to be. */
clv_status clv_array_read(const char *path, clv_file_array *array, clv_fits_cards *cards);

/* Reads a list of numbers, such as angles, from an NPY ([T], [T,1] or [1,T]), FITS (image or table) or text file. Free
 * *values with clv_free. Returns the statuses of clv_array_read and clv_text_vector_read. */
clv_status clv_vector_read(const char *path, double **values, size_t *count);

/* Reads angles in degrees like clv_vector_read, or from one column of a table (FITS or text): `column` is its name, or
 * its number from 1; NULL: any. Angles in a FITS file whose unit (TUNIT, BUNIT) is rad, arcmin, arcsec or mas are
 * converted; returns CLV_E_FORMAT for a unit that is not one of angles. */
clv_status clv_angles_read(const char *path, const char *column, double **values, size_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* FITS images and vectors; only host/io/fits/ knows the library. A path is a path: brackets,
 * "http://" and the like in it mean nothing. In a build without FITS every call is a
 * CLV_E_FORMAT that says so. Threads: any, also on the same file.
 *
 * Claimed sizes are checked against the file, headers before CFITSIO reads them. Tile-compressed images are
 * unpacked in a process of their own, which can do nothing but compute, because CFITSIO (4.2) trusts what the
 * tiles hold: damage that crashes it is CLV_E_FORMAT. That process is made by fork, of a process with any number
 * of threads. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_H

#include "host/io/array.h"
#include "host/io/formats/fits_cards.h"

enum { CLV_FITS_FIRST_IMAGE = -1 };

/* The image of an HDU (0 is the primary one), or the first one with data; of a plain file, one
 * compressed by gzip, or one with tile-compressed images (.fz).
 *
 * `array` has the axes in C order, [NAXIS3,NAXIS2,NAXIS1], rank 1 to 4, and the type that holds
 * every pixel after BSCALE and BZERO exactly: BITPIX 16 with BZERO 32768 is uint16; other scalings
 * are float32 (8 and 16 bits) or float64. Integers with BLANK are float too, with NaN for blank
 * pixels; signed bytes are int16; 64 unsigned bits are float64, rounded.
 *
 * `cards`, unless NULL, gets the cards that a result may carry on. It is zero on entry.
 *
 * CLV_E_IO; CLV_E_FORMAT (no FITS, damaged, no image, too short for its sizes); CLV_E_SHAPE
 * (rank, overflow); CLV_E_MEMORY. Outputs are zero after a failure. */
clv_status clv_fits_read(const char *path, int hdu, clv_file_array *array, clv_fits_cards *cards);

/* The same of the HDU that `extension` names as CFITSIO does between brackets: a number (0 is the primary one), or
 * EXTNAME in any case, "NAME,2" the one with EXTVER 2. NULL: the first image with data. CLV_E_FORMAT too when there is
 * no such HDU. */
clv_status clv_fits_read_extension(const char *path, const char *extension, clv_file_array *array,
                                   clv_fits_cards *cards);

/* A vector, of angles for instance: the first HDU that is an image with one axis longer than 1
 * ([T], [1,T], [T,1]), or a table with a column PA, PARANG... or ANGLE..., or with one column of numbers. A column
 * whose unit is rad comes in degrees. Blank values are NaN. Free *values with clv_free. Statuses as above; CLV_E_FORMAT
 * too for a table of several columns of numbers with other names. */
clv_status clv_fits_read_vector(const char *path, double **values, size_t *count);

/* The same, where `extension` (see above) is the only HDU that is looked at, and `column` the only column, a name or
 * a number from 1; NULL: any. */
clv_status clv_fits_read_vector_of(const char *path, const char *extension, const char *column,
                                   double **values, size_t *count);

/* Rows [first, first + rows) of the outermost axis of the image that is called `name` (EXTNAME), all
 * of it when `rows` is 0. Without such an HDU *found is false and the array zero: no failure. */
clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_file_array *array, bool *found);

/* A column of scalars of a table: CLV_I64 or CLV_F64 [rows], or, for text, CLV_U8 [rows,width + 1],
 * each terminated. Blank floats are NaN. Without such a table or column *found is false. */
clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_file_array *array, bool *found);

/* The numbers of a column of HDU `hdu` as CLV_F64 [cells]: one in each row, or all in the only row. Logical values
 * are 0 and 1, blank ones NaN. Without such a table or column *found is false. */
clv_status clv_fits_read_cells(const char *path, int hdu, const char *column, clv_file_array *array,
                               bool *found);

/* float32 or float64, rank 1 to 4, into the primary HDU; NaN stays NaN; the same input gives the
 * same bytes. `cards` may be NULL. Complete or absent, see clv_parts_write. CLV_E_IO,
 * CLV_E_MEMORY, CLV_E_ARGUMENT (type, rank). */
clv_status clv_fits_write(const char *path, const clv_file_array *array,
                          const clv_fits_cards *cards);

#endif

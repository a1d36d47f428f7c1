/* SPDX-License-Identifier: Apache-2.0 */
/* FITS images and vectors; only host/io/formats/fits/ knows the library. A path is taken literally: brackets, "http://"
 * and the like have no special meaning. In a build without FITS every call returns CLV_E_FORMAT and says so. Any thread
 * may call, also for the same file.
 *
 * Claimed sizes are checked against the file, and headers before CFITSIO reads them. Tile-compressed images are
 * unpacked in a process of their own that can only compute, because CFITSIO (4.2) trusts what the tiles hold: damage
 * that crashes it becomes CLV_E_FORMAT. That process is forked, from a process with any number of threads. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_H

#include "host/io/array.h"
#include "host/io/formats/fits_cards.h"

enum { CLV_FITS_FIRST_IMAGE = -1 };

/* Reads the image of an HDU (0 is the primary one), or the first one with data. The file may be plain, compressed by
 * gzip, or hold tile-compressed images (.fz).
 *
 * `array` has the axes in C order, [NAXIS3,NAXIS2,NAXIS1], rank 1 to 4, and the type that holds every pixel after
 * BSCALE and BZERO exactly: BITPIX 16 with BZERO 32768 becomes uint16; other scalings become float32 (8 and 16 bits) or
 * float64. Integers with BLANK also become float, with NaN for blank pixels; signed bytes become int16; 64 unsigned
 * bits become float64, rounded.
 *
 * `cards`, unless NULL, gets the cards that a result may carry on. It must be zero on entry.
 *
 * Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (not FITS, damaged, no image, too short for its sizes); CLV_E_SHAPE (rank,
 * overflow); CLV_E_MEMORY. Outputs are zero after a failure. */
clv_status clv_fits_read(const char *path, int hdu, clv_file_array *array, clv_fits_cards *cards);

/* Does the same for the HDU that `extension` names, as CFITSIO does between brackets: a number (0 is the primary one),
 * or EXTNAME in any case; "NAME,2" is the one with EXTVER 2. NULL: the first image with data. Also returns CLV_E_FORMAT
 * if there is no such HDU. */
clv_status clv_fits_read_extension(const char *path, const char *extension, clv_file_array *array,
                                   clv_fits_cards *cards);

/* Reads a vector, for instance of angles, from the first HDU that is an image with one axis longer than 1 ([T], [1,T],
 * [T,1]), a table with a column PA, PARANG... or ANGLE..., or a table with one column of numbers. A column whose unit
 * is rad is converted to degrees. Blank values become NaN. Free *values with clv_free. Returns the statuses above; also
 * CLV_E_FORMAT for a table with several columns of numbers that have other names. */
clv_status clv_fits_read_vector(const char *path, double **values, size_t *count);

/* Does the same, but reads only the HDU that `extension` names (see above), and only the column `column`, a name or a
 * number from 1; NULL: any. */
clv_status clv_fits_read_vector_of(const char *path, const char *extension, const char *column,
                                   double **values, size_t *count);

/* Reads rows [first, first + rows) of the outermost axis of the image called `name` (EXTNAME), or all of it if `rows`
 * is 0. Without such an HDU *found is false and the array zero; this is not a failure. */
clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_file_array *array, bool *found);

/* Reads a column of scalars of a table: CLV_I64 or CLV_F64 [rows] or, for text, CLV_U8 [rows,width + 1] with every text
 * terminated. Blank floats become NaN. Without such a table or column *found is false. */
clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_file_array *array, bool *found);

/* Reads the numbers of a column of HDU `hdu` as CLV_F64 [cells]: one from each row, or all from the only row. Logical
 * values become 0 and 1, blank ones NaN. Without such a table or column *found is false. */
clv_status clv_fits_read_cells(const char *path, int hdu, const char *column, clv_file_array *array,
                               bool *found);

/* Writes float32 or float64, rank 1 to 4, into the primary HDU; NaN stays NaN; the same input gives the same bytes.
 * `cards` may be NULL. The file is complete or absent, see clv_parts_write. Returns CLV_OK, CLV_E_IO, CLV_E_MEMORY or
 * CLV_E_ARGUMENT (type, rank). */
clv_status clv_fits_write(const char *path, const clv_file_array *array,
                          const clv_fits_cards *cards);

#endif

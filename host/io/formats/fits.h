/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes FITS images, and reads vectors and tables from FITS files. Only the files in host/io/formats/fits/
 * call CFITSIO. A path is taken literally: brackets, "http://" and the like have no special meaning. In a build without
 * FITS every function returns CLV_E_FORMAT with a message that says so. The functions may run in several threads at
 * once, also on the same file.
 *
 * Sizes that a header claims are checked against the file, and headers are checked before CFITSIO reads them.
 * Tile-compressed images are unpacked in a process of their own that can only compute, because CFITSIO (4.2) does not
 * check the contents of tiles: damage that crashes it becomes CLV_E_FORMAT. The calling process, which may have any
 * number of threads, forks the unpacking process. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_H
#define CLEAVE_HOST_IO_FORMATS_FITS_H

#include "host/io/array.h"
#include "host/io/formats/fits_cards.h"

enum { CLV_FITS_FIRST_IMAGE = -1 };

/* Reads the image of HDU `hdu` (0 is the primary one), or, if it is CLV_FITS_FIRST_IMAGE, the first image with data.
 * The file may be plain or compressed by gzip, or hold tile-compressed images (.fz).
 *
 * `array` has the axes in C order, [NAXIS3,NAXIS2,NAXIS1], rank 1 to 4, and the type that holds every pixel after
 * BSCALE and BZERO exactly: BITPIX 16 with BZERO 32768 becomes uint16; other scalings become float32 (8 and 16 bits) or
 * float64. Integers with BLANK also become float, with NaN for blank pixels; signed bytes become int16; unsigned 64-bit
 * integers become float64, rounded.
 *
 * `cards`, unless NULL, gets the cards that may be copied to a result (clv_fits_card_carry). It must be zero on entry.
 *
 * Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (not FITS, damaged, no image, or shorter than its header claims); CLV_E_SHAPE
 * (rank, overflow); CLV_E_MEMORY. Outputs are zero after a failure. */
clv_status clv_fits_read(const char *path, int hdu, clv_file_array *array, clv_fits_cards *cards);

/* Reads an image like clv_fits_read, but from the HDU that `extension` names, as in CFITSIO's brackets: a number (0 is
 * the primary one), or EXTNAME in any case; "NAME,2" is the one with EXTVER 2. NULL: the first image with data. Also
 * returns CLV_E_FORMAT if there is no such HDU. */
clv_status clv_fits_read_extension(const char *path, const char *extension, clv_file_array *array,
                                   clv_fits_cards *cards);

/* Reads a vector, for instance of angles, from the first HDU that is an image with one axis longer than 1 ([T], [1,T],
 * [T,1]), a table with a column PA, PARANG... or ANGLE..., or a table with one column of numbers. Blank values become
 * NaN. Free *values with clv_free. Returns the statuses of clv_fits_read; also CLV_E_FORMAT for a table with several
 * columns of numbers that have other names. */
clv_status clv_fits_read_vector(const char *path, double **values, size_t *count);

enum { CLV_FITS_UNIT = 72 };

/* Reads a vector like clv_fits_read_vector, but only from the HDU that `extension` names, as for
 * clv_fits_read_extension, and from the table column `column`, a name or a number from 1. NULL for either: any.
 * `unit` gets the unit of the values (BUNIT, TUNIT), "" if the file has none; it may be NULL. */
clv_status clv_fits_read_vector_of(const char *path, const char *extension, const char *column,
                                   double **values, size_t *count, char unit[CLV_FITS_UNIT]);

/* Reads rows [first, first + rows) of the outermost axis of the image called `name` (EXTNAME), or all rows if `rows` is
 * 0. If there is no such HDU, returns CLV_OK, *found is false and the array is zero. */
clv_status clv_fits_read_named(const char *path, const char *name, size_t first, size_t rows,
                               clv_file_array *array, bool *found);

/* Reads a column of scalars from a table: CLV_I64 or CLV_F64 [rows] or, for text, CLV_U8 [rows,width + 1], where a NUL
 * ends every text. Blank floats become NaN. If there is no such table or column, returns CLV_OK and *found is false. */
clv_status clv_fits_read_column(const char *path, const char *table, const char *column,
                                clv_type type, clv_file_array *array, bool *found);

/* Reads the numbers of a column of HDU `hdu` as CLV_F64 [cells]: one from each row, or, if the table has a single row,
 * all numbers of its cell. Logical values become 0 and 1; blank values become NaN. If there is no such table or column,
 * returns CLV_OK and *found is false. */
clv_status clv_fits_read_cells(const char *path, int hdu, const char *column, clv_file_array *array,
                               bool *found);

/* Writes a float32 or float64 array of rank 1 to 4 into the primary HDU. NaN stays NaN, and the same input gives the
 * same bytes. `cards` may be NULL. The file is complete or absent, see clv_parts_write. Returns CLV_OK, CLV_E_IO,
 * CLV_E_MEMORY or CLV_E_ARGUMENT (type, rank). */
clv_status clv_fits_write(const char *path, const clv_file_array *array,
                          const clv_fits_cards *cards);

#endif

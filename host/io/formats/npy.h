/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes NumPy's .npy files. The reader refuses files that are not exactly as long as their header says. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_H
#define CLEAVE_HOST_IO_FORMATS_NPY_H

#include "host/io/array.h"

/* Reads format versions 1 to 3, C and Fortran order, either byte order, and rank 0 to 4. The element type is one of
 * clv_file_array's, or bool (becomes uint8), float16 (float32) or int8 (int16). The file must end where its data end.
 * Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT, whose message says what was found and what was expected; CLV_E_SHAPE (rank,
 * overflow); CLV_E_MEMORY. `array` is zero after a failure. */
clv_status clv_npy_read(const char *path, clv_file_array *array);

/* Writes an array in format version 1, in C order and this machine's byte order. The file is complete or absent, see
 * clv_parts_write. */
clv_status clv_npy_write(const char *path, const clv_file_array *array);

#endif

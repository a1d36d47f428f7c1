/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes NumPy's .npy files. The reader is strict, the writer plain. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_H
#define CLEAVE_HOST_IO_FORMATS_NPY_H

#include "host/io/array.h"

/* Reads format versions 1 to 3, C and Fortran order, either byte order, rank 0 to 4; the types of clv_file_array, and
 * bool (becomes uint8), float16 (float32), int8 (int16). The file must end where its data end. Returns CLV_OK;
 * CLV_E_IO; CLV_E_FORMAT, whose message says what was found and what was expected; CLV_E_SHAPE (rank, overflow);
 * CLV_E_MEMORY. `array` is zero after a failure. */
clv_status clv_npy_read(const char *path, clv_file_array *array);

/* Writes version 1, C order, this machine's byte order; the file is complete or absent, see clv_parts_write. */
clv_status clv_npy_write(const char *path, const clv_file_array *array);

#endif

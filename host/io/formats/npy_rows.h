/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of a matrix in an .npy file as float32, some at a time, so that it may be larger than memory. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_ROWS_H
#define CLEAVE_HOST_IO_FORMATS_NPY_ROWS_H

#include "host/io/formats/npy_header.h"

typedef struct clv_npy_rows {
    size_t rows, width;
    clv_input input; /* private, like the fields below */
    clv_npy_header header;
    uint64_t data;
    void *raw; /* numbers as stored in the file, if they are not float32 */
    size_t raw_room;
} clv_npy_rows;

/* Opens a matrix [rows, width] of float32, float16 or float64 in C order. Zero-initialise *file. Returns CLV_OK;
 * CLV_E_IO; CLV_E_FORMAT, also for other types and Fortran order; CLV_E_SHAPE (not a matrix, rows without numbers, or
 * too large). */
clv_status clv_npy_rows_open(clv_npy_rows *file, const char *path);
/* Reads rows [first, first + count). Returns CLV_OK, CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_npy_rows_read(clv_npy_rows *file, size_t first, size_t count, float *out);
void clv_npy_rows_close(clv_npy_rows *file); /* accepts a zero-initialised one */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes matrices of bytes in .npy files, some rows at a time. Searches store the codes of vectors in
 * them. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_CODES_H
#define CLEAVE_HOST_IO_FORMATS_NPY_CODES_H

#include "host/io/formats/npy_header.h"
#include "host/io/output.h"

typedef struct clv_npy_codes {
    size_t rows, bytes; /* bytes: per row */
    bool is_signed;     /* the numbers are int8, else uint8 */
    clv_input input;    /* private, like the fields below */
    uint64_t data;
} clv_npy_codes;

/* Opens a matrix [rows, bytes] of int8 or uint8 in C order. Zero-initialise *file. Returns CLV_OK; CLV_E_IO;
 * CLV_E_FORMAT, also for other types and Fortran order; CLV_E_SHAPE (not a matrix, rows without numbers, or too
 * large). */
clv_status clv_npy_codes_open(clv_npy_codes *file, const char *path);
/* Reads rows [first, first + count). Returns CLV_OK, CLV_E_IO or CLV_E_FORMAT. */
clv_status clv_npy_codes_read(const clv_npy_codes *file, size_t first, size_t count, void *out);
void clv_npy_codes_close(clv_npy_codes *file); /* accepts a zero-initialised one */

/* Opens a file for writing and writes its header. The caller then writes rows * bytes bytes with clv_output_write, and
 * finishes or abandons the output. Zero-initialise *output. Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_npy_codes_create(clv_output *output, const char *path, size_t rows, size_t bytes,
                                bool is_signed);

#endif

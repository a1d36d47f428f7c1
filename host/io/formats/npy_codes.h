/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes matrices of bytes as .npy files, some rows at a time: codes of vectors for a search. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_CODES_H
#define CLEAVE_HOST_IO_FORMATS_NPY_CODES_H

#include "host/io/formats/npy_header.h"
#include "host/io/output.h"

typedef struct clv_npy_codes {
    size_t rows, bytes; /* of a row */
    bool is_signed;     /* int8, else uint8 */
    clv_input input;    /* private, like what follows */
    uint64_t data;
} clv_npy_codes;

/* Opens [rows, bytes] of int8 or uint8 in C order; zero-initialise *file. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT, also
 * for other types and Fortran order; CLV_E_SHAPE (no matrix, no width, or too large). */
clv_status clv_npy_codes_open(clv_npy_codes *file, const char *path);
/* Reads rows [first, first + count). Returns CLV_OK, CLV_E_IO or CLV_E_FORMAT. */
clv_status clv_npy_codes_read(const clv_npy_codes *file, size_t first, size_t count, void *out);
void clv_npy_codes_close(clv_npy_codes *file); /* accepts a zero-initialised one */

/* Opens a file to write and writes its header; then write rows * bytes bytes by clv_output_write, and finish or abandon
 * the output. Zero-initialise *output. Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_npy_codes_create(clv_output *output, const char *path, size_t rows, size_t bytes,
                                bool is_signed);

#endif
